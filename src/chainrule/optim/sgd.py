"""Gradient descent, its momenta and its average."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

from chainrule.optim.optimizer import Optimizer
from chainrule.optim.rules import decayed, fused
from chainrule.optim.settings import NOT_NEGATIVE, Capturable, Fused, Interval
from chainrule.tensor import Tensor
from chainrule.typing import Params, Rate, Rates, Value

__all__ = ["ASGD", "SGD"]


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


class ASGD(Optimizer):
    """Averaged gradient descent: the state ``ax`` is the mean of the parameters after step t0 + 1.

    g <- g + weight_decay p; p <- (1 - lambd eta) p - eta g; ax <- ax + mu (p - ax);
    eta <- lr / (1 + lambd lr t)^alpha; mu <- 1 / max(1, t - t0)

    Polyak and Juditsky, 1992; Bottou, 2010. A new learning rate takes effect one step later.

    Args:
        params: the parameters, or groups of them.
        lr: the learning rate, one number (default 1e-2).
        lambd: the decay of the parameters and of the learning rate (default 1e-4).
        alpha: the power of the decay of the learning rate (default 0.75).
        t0: the step at which averaging starts (default 1e6).
        weight_decay: the strength of the penalty ||p||^2 / 2 (default 0).
        maximize: whether to climb.

    >>> import chainrule
    >>> from chainrule import optim
    >>> w = chainrule.tensor([1.0], requires_grad=True)
    >>> optimizer = optim.ASGD([w], lr=0.5, lambd=0.0, t0=0)
    >>> for target in (0.0, 1.0, 0.0, 1.0):
    ...     optimizer.zero_grad()
    ...     ((w - target) ** 2 / 2).sum().backward()
    ...     optimizer.step()
    >>> w.detach(), optimizer.state[w]["ax"]
    (tensor([0.6875]), tensor([0.6042]))
    """

    implementation_keys = ("foreach", "capturable", "differentiable")
    ranges: ClassVar[dict[str, Interval]] = dict.fromkeys(
        ("lambd", "alpha", "t0", "weight_decay"), NOT_NEGATIVE
    )
    scalar_states: ClassVar[dict[str, float]] = {"eta": 0.0, "mu": 1.0}  # eta starts from lr

    def __init__(
        self,
        params: Params,
        lr: Rate = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
        **implementation: Unpack[Capturable],
    ):
        super().__init__(
            params,
            {
                "lr": lr,
                "lambd": lambd,
                "alpha": alpha,
                "t0": t0,
                "weight_decay": weight_decay,
                "maximize": maximize,
            },
            implementation,
        )

    def check_settings(self, settings: dict[str, Any]) -> None:
        super().check_settings(settings)
        lr = settings["lr"]
        one = not isinstance(lr, (list, tuple, Tensor)) or (isinstance(lr, Tensor) and _is_one(lr))
        if not one:
            raise ValueError(
                f"{self._name}: lr must be one number that needs no gradient, for it is kept as a "
                f"number, got {lr}"
            )

    def states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("ax",)

    def new_scalar(self, name: str, group: dict[str, Any]) -> float:
        return float(group["lr"]) if name == "eta" else super().new_scalar(name, group)

    def constants(self, group: dict[str, Any], step: int, **scalars: float) -> dict[str, Any]:
        return {
            "lambd": group["lambd"],
            "weight_decay": group["weight_decay"],
            "maximize": group["maximize"],
            **scalars,
        }

    def advance(self, group: dict[str, Any], step: int, **scalars: float) -> dict[str, float]:
        lr = float(group["lr"])
        return {
            "eta": lr / (1 + group["lambd"] * lr * step) ** group["alpha"],
            "mu": 1 / max(1, step - group["t0"]),
        }

    @staticmethod
    @fused("asgd")
    def rule(
        p: Value,
        g: Value,
        lr: Value | float,
        mean: Value,
        *,
        eta: float,
        mu: float,
        lambd: float,
        weight_decay: float,
        maximize: bool,
    ) -> tuple[Value, ...]:
        g = decayed(p, g, weight_decay, maximize)
        p = (1 - lambd * eta) * p - eta * g
        return p, (p if mu == 1 else mean + mu * (p - mean))


def _is_one(lr: Tensor) -> bool:
    return lr.numel() == 1 and not lr.requires_grad
