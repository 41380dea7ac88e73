"""The four kinds of resilient propagation: what happens where the gradient changes its sign.

=============  ==========================================================================
Rprop-         the step size shrinks, and the weight moves on with it
Rprop+         the step size shrinks, and the last step is taken back
iRprop-        the step size shrinks, and the weight stays (:class:`Rprop`, as in PyTorch)
iRprop+        the step size shrinks, and the last step is taken back if the loss has grown
=============  ==========================================================================

All but Rprop- then forget the gradient, so that the step after does not count as a second change of
sign. Igel and Huesken, 2000, whose experiments found iRprop+ the best.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Unpack, overload

from chainrule.ops.elementwise.functions import sign
from chainrule.ops.elementwise.logic import where
from chainrule.optim.optimizer import Loss
from chainrule.optim.rules import fused
from chainrule.optim.rprop import Limits, Rprop, adapted
from chainrule.tensor import Tensor
from chainrule.typing import Value

__all__ = ["IRpropMinus", "IRpropPlus", "RpropMinus", "RpropPlus"]


class RpropMinus(Rprop):
    """Resilient propagation without taking back steps (Rprop-).

    size <- etaplus size where the gradient kept its sign, etaminus size where it changed, at least
    and at most ``step_sizes``; p <- p - size sign(g)

    Riedmiller, 1994. Arguments: see :class:`Rprop`.

    >>> import chainrule
    >>> from chainrule import optim
    >>> w = chainrule.tensor([0.3], requires_grad=True)
    >>> optimizer = optim.RpropMinus([w], lr=0.4)
    >>> for _ in range(2):  # beyond the minimum, and half as far back
    ...     optimizer.zero_grad()
    ...     (w * w).sum().backward()
    ...     optimizer.step()
    ...     print(w.detach())
    tensor([-0.1000])
    tensor([0.1000])
    """

    @staticmethod
    @fused("rprop_minus")
    def rule(
        p: Value,
        g: Value,
        lr: Value | float,
        prev: Value,
        size: Value,
        *,
        maximize: bool,
        **limits: Unpack[Limits],
    ) -> tuple[Value, ...]:
        g = -g if maximize else g
        size = adapted(size, g * prev, **limits)
        return p - size * sign(g), g, size


class IRpropMinus(Rprop):
    """Improved resilient propagation without taking back steps (iRprop-): :class:`Rprop` itself.

    size <- etaplus size where the gradient kept its sign, etaminus size where it changed, at least
    and at most ``step_sizes``; g <- 0 where it changed; p <- p - size sign(g)

    PyTorch's Rprop is this variant, so both classes here are one, under the name it has in the
    paper. Igel and Huesken, 2000. Arguments: see :class:`Rprop`.

    >>> import chainrule
    >>> from chainrule import optim
    >>> w = chainrule.tensor([0.3], requires_grad=True)
    >>> optimizer = optim.IRpropMinus([w], lr=0.4)
    >>> for _ in range(2):  # beyond the minimum, where it stays for a step
    ...     optimizer.zero_grad()
    ...     (w * w).sum().backward()
    ...     optimizer.step()
    ...     print(w.detach())
    tensor([-0.1000])
    tensor([-0.1000])
    """


class RpropPlus(Rprop):
    """Resilient propagation with weight back-tracking (Rprop+).

    size <- etaplus size where the gradient kept its sign, etaminus size where it changed, at least
    and at most ``step_sizes``; d <- -size sign(g), but where the sign changed d <- -d, the last
    step is undone, and g <- 0; p <- p + d

    Riedmiller and Braun, 1993. Arguments: see :class:`Rprop`.

    >>> import chainrule
    >>> from chainrule import optim
    >>> w = chainrule.tensor([0.3], requires_grad=True)
    >>> optimizer = optim.RpropPlus([w], lr=0.4)
    >>> for _ in range(2):  # beyond the minimum, and back
    ...     optimizer.zero_grad()
    ...     (w * w).sum().backward()
    ...     optimizer.step()
    ...     print(w.detach())
    tensor([-0.1000])
    tensor([0.3000])
    """

    def states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("prev", "step_size", "delta")

    def constants(self, group: dict[str, Any], step: int, **scalars: float) -> dict[str, Any]:
        return {**super().constants(group, step, **scalars), "undo": True}

    @staticmethod
    @fused("rprop_plus")
    def rule(
        p: Value,
        g: Value,
        lr: Value | float,
        prev: Value,
        size: Value,
        *last: Value,
        maximize: bool,
        undo: bool = True,
        **limits: Unpack[Limits],
    ) -> tuple[Value, ...]:
        g = -g if maximize else g
        agreement = g * prev
        changed = agreement < 0
        size = adapted(size, agreement, **limits)
        (d,) = last
        d = where(changed, -d if undo else 0.0 * d, -size * sign(g))
        return p + d, where(changed, 0.0 * g, g), size, d


class IRpropPlus(RpropPlus):
    """Improved resilient propagation with weight back-tracking (iRprop+).

    size as in :class:`RpropPlus`; d <- -size sign(g), but where the sign changed g <- 0 and d <- -d
    if the loss has grown since the last step, d <- 0 if not; p <- p + d

    So ``step`` needs a closure that computes the loss and its gradient and returns the loss. Igel
    and Huesken, 2000. Arguments: see :class:`Rprop`.

    >>> import chainrule
    >>> from chainrule import optim
    >>> w = chainrule.tensor([0.3], requires_grad=True)
    >>> optimizer = optim.IRpropPlus([w], lr=0.4)
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = (w * w).sum()
    ...     loss.backward()
    ...     return loss
    >>> for _ in range(2):  # beyond the minimum, where the loss is lower: no reason to go back
    ...     loss = optimizer.step(closure)
    ...     print(w.detach())
    tensor([-0.1000])
    tensor([-0.1000])
    """

    scalar_states: ClassVar = {"loss": float("inf")}
    _loss = float("inf")  # what the closure returned in this step

    @overload
    def step(self, closure: None = None) -> None: ...
    @overload
    def step(self, closure: Callable[[], Loss]) -> Loss: ...
    def step(self, closure: Callable[[], Loss] | None = None) -> Loss | None:
        """Updates all parameters once, after calling the closure for the loss."""
        if closure is None:
            raise ValueError(
                "IRpropPlus.step: needs a closure that calls backward() and returns the loss, "
                "since steps are undone only if the loss has grown; the other variants need none"
            )

        def evaluated() -> Loss:
            loss = closure()
            if loss is None:
                raise RuntimeError("IRpropPlus.step: the closure returned None, not the loss")
            self._loss = float(loss.detach() if isinstance(loss, Tensor) else loss)
            return loss

        return super().step(evaluated)

    def constants(self, group: dict[str, Any], step: int, **scalars: float) -> dict[str, Any]:
        grown = self._loss - scalars["loss"]
        worse = grown < 0 if group["maximize"] else grown > 0
        return {**super().constants(group, step), "undo": worse}

    def advance(self, group: dict[str, Any], step: int, **scalars: float) -> dict[str, float]:
        return {"loss": self._loss}
