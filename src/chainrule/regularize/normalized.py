"""A penalty whose gradient is as long as that of the loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule.autograd.engine import grad
from chainrule.autograd.modes import enable_grad, no_grad
from chainrule.nn.module.base import Module
from chainrule.ops.elementwise.functions import sqrt
from chainrule.ops.reduce.reductions import sum
from chainrule.regularize.penalty import check_strength
from chainrule.tensor import Tensor

__all__ = ["Normalized"]


class Normalized:
    """Adds strength |grad R| grad Omega / |grad Omega| to the gradient of the loss R.

    Omega is the penalty, and both norms are over the weights it is about. However large or small
    the loss is, the penalty's share in the step stays the same. It is a change of the gradient and
    not of the loss: a ``Trainer`` reports the value of Omega, does not add it to the loss, and
    calls :meth:`after_backward`; a loop by hand calls that between ``loss.backward()`` and
    ``optimizer.step()``. Where grad Omega is zero nothing is added.

    Args:
        penalty: the penalty Omega; its own strength does not matter unless it has several.
        strength: the length of its gradient in lengths of the gradient of the loss.
        name: the name of its column; by default that of the penalty.

    >>> from chainrule import nn, ones, regularize
    >>> layer = nn.Linear(1, 1, bias=False)
    >>> _ = nn.init.constant_(layer.weight, 2.0)
    >>> penalty = regularize.Normalized(regularize.L2(1.0), 0.5)
    >>> layer(-ones(1, 1)).sum().backward()  # a gradient of -1
    >>> penalty.after_backward(layer)
    >>> layer.weight.grad  # and half its length toward zero
    tensor([[-0.5000]])
    """

    def __init__(self, penalty: Callable[..., Tensor], strength: float, name: str | None = None):
        check_strength("Normalized", strength)
        if not callable(penalty) or hasattr(penalty, "after_backward"):
            raise TypeError(f"Normalized: expected a penalty, got {penalty!r}")
        if isinstance(penalty, Module) and any(p.requires_grad for p in penalty.parameters()):
            raise ValueError(
                f"Normalized: the parameters of {penalty!r} would not be learned; freeze them with "
                "requires_grad_(False)"
            )
        self.penalty, self.strength = penalty, strength
        self.name = name or getattr(penalty, "name", "") or getattr(penalty, "__name__", "penalty")
        self.needs_inputs = bool(getattr(penalty, "needs_inputs", False))

    def __call__(self, model: Module, *inputs: object) -> Tensor:
        """The value of the penalty."""
        return self.penalty(model, *inputs)

    def after_backward(self, model: Module, *inputs: object) -> None:
        """Adds the normalized gradient to the ``.grad`` of the parameters."""
        wanted = [p for p in model.parameters() if p.requires_grad]
        with enable_grad():
            value = self.penalty(model, *inputs)
        if not value.requires_grad:
            return
        found = grad(value, wanted, allow_unused=True)
        pairs = [(p, g) for p, g in zip(wanted, found, strict=True) if g is not None]
        with no_grad():
            own = _norm([g for _, g in pairs])
            if float(own) == 0:
                return
            loss = _norm([p.grad for p, _ in pairs if p.grad is not None])
            scale = self.strength * loss / own
            for p, g in pairs:
                p.grad = scale * g if p.grad is None else p.grad + scale * g

    def __repr__(self) -> str:
        return f"Normalized({self.penalty!r}, {self.strength})"


def _norm(tensors: list[Any]) -> Any:
    total: Any = 0.0
    for t in tensors:
        total = total + sum(t.detach() * t.detach())
    return sqrt(total) if isinstance(total, Tensor) else total
