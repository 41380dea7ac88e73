"""The loss as a function of one vector: what line searches and second-order methods work on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from chainrule.autograd import engine
from chainrule.autograd.modes import enable_grad, no_grad
from chainrule.ops.creation.conversion import clone
from chainrule.ops.creation.patterns import zeros_like
from chainrule.ops.shape.views import reshape
from chainrule.ops.shape.stacking import cat
from chainrule.ops.shape.strided import view_as_complex, view_as_real
from chainrule.tensor import Tensor

__all__ = ["Closure", "Objective", "Outputs"]

# What some methods take instead of the loss: outputs, and the loss as a function of them.
Outputs: TypeAlias = tuple[Tensor, Callable[[Tensor], Tensor]]
Closure: TypeAlias = Callable[[], Tensor | float | Outputs]


class Objective:
    """A closure as a function of the vector of all parameters, with counts of its evaluations.

    The closure returns the loss (one number), or the vector of residuals r where a method asks for
    them; it may call ``backward()`` itself as PyTorch's closures do, except for methods that need
    second derivatives or residuals. Every method here leaves the parameters at the last x it was
    given; ``gradient``, ``hessian`` and the like are those at the parameters as they are.

    Args:
        params: the parameters; those that do not require grad are left alone. A complex number is
            two entries of the vector, and of several dtypes the vector has the widest.
        closure: returns the loss for the parameters as they are.
    """

    def __init__(self, params: Sequence[Tensor], closure: Closure, name: str = "minimize"):
        self.params = [p for p in params if p.requires_grad]
        self.closure, self.name = closure, name
        if not self.params:
            raise ValueError(f"{name}: no parameter requires grad; call requires_grad_() on them")
        self.evaluations = 0  # of the loss
        self.gradients = 0  # of the loss's gradient
        self.products = 0  # of a matrix of second derivatives with a vector
        self.first: Tensor | None = None  # what the closure returned when it was first called
        self.calls_backward = False  # whether the closure left gradients at the last call
        self.quiet = True  # whether the closure can be tried without recording a graph

    # --- the parameters as a vector ---------------------------------------------------------------

    def vector(self) -> Tensor:
        """A copy of all parameters, end to end."""
        with no_grad():
            return clone(cat([_flat(p) for p in self.params]))

    def move_to(self, x: Tensor) -> None:
        """Writes a vector into the parameters."""
        with no_grad():
            for p, part in zip(self.params, self.split(x), strict=True):
                p.copy_(part)

    def split(self, x: Tensor) -> list[Tensor]:
        """A vector as tensors of the shapes of the parameters."""
        parts, start = [], 0
        for p in self.params:
            shape = (*p.shape, 2) if p.is_complex() else tuple(p.shape)
            stop = start + math.prod(shape)
            part = reshape(x[start:stop], shape)
            parts.append(view_as_complex(part) if p.is_complex() else part)
            start = stop
        return parts

    # --- first order ------------------------------------------------------------------------------

    def value(self, x: Tensor | None = None) -> float:
        """The loss at x (or where the parameters are), without a graph; infinite if not finite."""
        self._go(x)
        self.evaluations += 1
        return self._number(self._call(enable=False))

    def value_and_gradient(self, x: Tensor | None = None) -> tuple[float, Tensor]:
        """The loss and its gradient at x."""
        self._go(x)
        self.evaluations += 1
        self.gradients += 1
        loss = self._call(enable=True)
        number = self._number(loss)
        grads = [p._grad for p in self.params] if self.calls_backward else self._grad(loss)
        with no_grad():
            return number, self._joined(grads)

    def _joined(self, grads: Sequence[Tensor | None]) -> Tensor:
        """Gradients end to end; zeros for the parameters that the loss does not depend on."""
        flat = [
            zeros_like(_flat(p)) if g is None else _flat(g)
            for p, g in zip(self.params, grads, strict=True)
        ]
        return clone(cat(flat))

    def _go(self, x: Tensor | None) -> None:
        if x is not None:
            self.move_to(x)

    def _call(self, enable: bool = True) -> Tensor | float | Outputs:
        """What the closure returns; its gradients stay where it left them if it made any."""
        before = [p._grad for p in self.params]
        self.set_grads([None] * len(before))
        self.calls_backward = False
        try:
            result = self._recorded() if enable or not self.quiet else self._unrecorded()
            self.calls_backward = any([p._grad is not None for p in self.params])
        finally:
            if not self.calls_backward:
                self.set_grads(before)
        if self.first is None and isinstance(result, Tensor):
            self.first = result.detach()
        self.quiet = self.quiet and not self.calls_backward
        return result

    def _recorded(self) -> Tensor | float | Outputs:
        with enable_grad():
            return self.closure()

    def _unrecorded(self) -> Tensor | float | Outputs:
        """Without a graph, unless the closure needs one: it calls backward(), or differentiates."""
        try:
            with no_grad():
                return self.closure()
        except RuntimeError:
            self.quiet = False
            return self._recorded()

    def set_grads(self, grads: Sequence[Tensor | None]) -> None:
        """Gives each parameter its ``.grad``, or None."""
        for p, g in zip(self.params, grads, strict=True):
            p._grad = g

    def _grad(self, loss: object, create_graph: bool = False) -> Sequence[Tensor | None]:
        grads: Sequence[Tensor | None] = [None]
        if isinstance(loss, Tensor) and loss.requires_grad:
            grads = engine.grad(loss, self.params, create_graph=create_graph, allow_unused=True)
        if all([g is None for g in grads]):
            raise RuntimeError(
                f"{self.name}: the loss does not depend on the parameters; the closure has to "
                "compute it from them, with gradients enabled, and return it"
            )
        return grads

    def _number(self, loss: Any) -> float:
        if loss is None:
            raise RuntimeError(f"{self.name}: the closure returned None; it has to return the loss")
        if isinstance(loss, Tensor) and loss.numel() != 1:
            raise RuntimeError(
                f"{self.name}: the closure has to return one number, the loss, got a tensor of "
                f"shape {tuple(loss.shape)}"
            )
        number = float(loss.detach() if isinstance(loss, Tensor) else loss)
        return number if math.isfinite(number) else math.inf


def _flat(x: Tensor) -> Tensor:
    """The numbers of a tensor in a row, real and imaginary parts in turn."""
    x = x.detach()
    return reshape(view_as_real(x) if x.is_complex() else x, (-1,))
