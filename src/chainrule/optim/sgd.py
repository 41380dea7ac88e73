"""Gradient descent and its momenta."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

from chainrule.optim.optimizer import Optimizer, decayed, fused
from chainrule.optim.settings import NOT_NEGATIVE, Fused, Interval
from chainrule.typing import Params, Rates, Value

__all__ = ["SGD"]


class SGD(Optimizer):
    """Gradient descent, with momentum, dampening, Nesterov's look ahead and weight decay.

    g <- g + weight_decay p; b <- momentum b + (1 - dampening) g (b = g at the first step);
    p <- p - lr b, or with nesterov p <- p - lr (g + momentum b)

    Robbins and Monro, 1951; Polyak, 1964 (momentum); Nesterov, 1983.

    Args:
        params: the parameters, or groups of them.
        lr: the learning rate: a number, or tensors that fit the parameters (default 1e-3).
        momentum: how much of the last direction is kept (default 0).
        dampening: how much less of the gradient enters the direction (default 0).
        weight_decay: the strength of the penalty ||p||^2 / 2 (default 0).
        nesterov: whether to look ahead.
        maximize: whether to climb.

    >>> import chainrule
    >>> from chainrule import optim
    >>> w = chainrule.tensor([1.0], requires_grad=True)
    >>> optimizer = optim.SGD([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.8000])
    """

    implementation_keys = ("foreach", "differentiable", "fused")
    ranges: ClassVar[dict[str, Interval]] = {
        "momentum": NOT_NEGATIVE,
        "weight_decay": NOT_NEGATIVE,
    }
    keeps_step = False

    def __init__(
        self,
        params: Params,
        lr: Rates = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        **implementation: Unpack[Fused],
    ):
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
            },
            implementation,
        )

    def check_settings(self, settings: dict[str, Any]) -> None:
        super().check_settings(settings)
        momentum, dampening = settings["momentum"], settings["dampening"]
        if settings["nesterov"] and (momentum <= 0 or dampening != 0):
            raise ValueError(
                f"{self._name}: Nesterov momentum requires a momentum and zero dampening, got "
                f"momentum={momentum}, dampening={dampening}"
            )

    def takes_rows(self, group: dict[str, Any]) -> bool:
        return not group["momentum"] and not group["weight_decay"]

    def states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("momentum_buffer",) if group["momentum"] else ()

    def constants(self, group: dict[str, Any], step: int, **scalars: float) -> dict[str, Any]:
        names = ("momentum", "weight_decay", "nesterov", "maximize")
        dampening = 0 if step == 1 else group["dampening"]
        return {**{name: group[name] for name in names}, "dampening": dampening}

    @staticmethod
    @fused("sgd")
    def rule(
        p: Value,
        g: Value,
        lr: Value | float,
        b: Value | None = None,
        *,
        momentum: float,
        dampening: float,
        weight_decay: float,
        nesterov: bool,
        maximize: bool,
    ) -> tuple[Value, ...]:
        g = decayed(p, g, weight_decay, maximize)
        if b is None:
            return (p - lr * g,)
        b = momentum * b + (1 - dampening) * g
        return p - lr * (g + momentum * b if nesterov else b), b
