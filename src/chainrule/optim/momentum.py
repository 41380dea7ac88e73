"""Descent along a running direction: SGD with decoupled decay, averaged momentum, Lion."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

from chainrule.ops.elementwise.functions import sign
from chainrule.optim.optimizer import Optimizer
from chainrule.optim.rules import decayed, fused
from chainrule.optim.settings import FRACTION, NOT_NEGATIVE, Fused, Implementation, check_pair
from chainrule.optim.sgd import SGD
from chainrule.typing import Params, Rates, Value

__all__ = ["AveragedMomentum", "Lion", "SGDW"]


class _SGDW(Fused, total=False):
    maximize: bool


class SGDW(SGD):
    """Gradient descent whose weight decay shrinks the parameters, not the gradient.

    b <- momentum b + (1 - dampening) g (b = g at the first step);
    p <- (1 - lr weight_decay) p - lr b, or with nesterov ... - lr (g + momentum b)

    The decay does not pass through the momentum, unlike that of :class:`SGD`. Loshchilov and
    Hutter, 2019.

    Args:
        params: the parameters, or groups of them.
        lr: the learning rate: a number, or tensors that fit the parameters (default 1e-3).
        momentum: how much of the last direction is kept (default 0).
        dampening: how much less of the gradient enters the direction (default 0).
        weight_decay: the part of a parameter that is taken away, in units of lr (default 1e-2).
        nesterov: whether to look ahead.
        options: ``maximize``, whether to climb.

    >>> import chainrule
    >>> from chainrule import optim
    >>> w = chainrule.tensor([1.0], requires_grad=True)
    >>> optimizer = optim.SGDW([w], lr=0.1, weight_decay=0.5)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.7500])
    """

    def __init__(
        self,
        params: Params,
        lr: Rates = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 1e-2,
        nesterov: bool = False,
        **options: Unpack[_SGDW],
    ):
        super().__init__(params, lr, momentum, dampening, weight_decay, nesterov, **options)

    @staticmethod
    @fused("sgdw")
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
        shrunk = p * (1 - lr * weight_decay) if weight_decay else p
        return SGD.rule(
            shrunk,
            g,
            lr,
            b,
            momentum=momentum,
            dampening=dampening,
            weight_decay=0,
            nesterov=nesterov,
            maximize=maximize,
        )


class AveragedMomentum(Optimizer):
    """Descent along the running mean of the gradient.

    m <- momentum m + (1 - momentum) g; p <- p - lr m

    From m = 0, so that after t steps m = (1 - momentum) sum over i of momentum^(t - i) g_i. It is
    :class:`SGD` with the rate lr (1 - momentum): how large a step is depends on lr alone. Polyak,
    1964.

    Args:
        params: the parameters, or groups of them.
        lr: the learning rate: a number, or tensors that fit the parameters (default 1e-2).
        momentum: how much of the last direction is kept (default 0.9).
        weight_decay: the strength of the penalty ||p||^2 / 2 (default 0).
        maximize: whether to climb.

    >>> import chainrule
    >>> from chainrule import optim
    >>> w = chainrule.tensor([1.0], requires_grad=True)
    >>> optimizer = optim.AveragedMomentum([w], lr=0.5, momentum=0.9)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.9000])
    """

    keeps_step = False
    ranges: ClassVar = {"momentum": FRACTION, "weight_decay": NOT_NEGATIVE}

    def __init__(
        self,
        params: Params,
        lr: Rates = 1e-2,
        momentum: float = 0.9,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
        **implementation: Unpack[Implementation],
    ):
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, defaults, implementation)

    def states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("momentum_buffer",)

    def constants(self, group: dict[str, Any], step: int, **scalars: float) -> dict[str, Any]:
        return {name: group[name] for name in ("momentum", "weight_decay", "maximize")}

    @staticmethod
    @fused("averaged_momentum")
    def rule(
        p: Value,
        g: Value,
        lr: Value | float,
        m: Value,
        *,
        momentum: float,
        weight_decay: float,
        maximize: bool,
    ) -> tuple[Value, ...]:
        g = decayed(p, g, weight_decay, maximize)
        m = momentum * m + (1 - momentum) * g
        return p - lr * m, m


class Lion(Optimizer):
    """Steps of one size along the sign of a running direction.

    p <- (1 - lr weight_decay) p - lr sign(beta1 m + (1 - beta1) g); m <- beta2 m + (1 - beta2) g

    Every parameter moves by lr, so lr is taken three to ten times smaller than Adam's and
    weight_decay as much larger. Chen et al., 2023.

    Args:
        params: the parameters, or groups of them.
        lr: the learning rate: a number, or tensors that fit the parameters (default 1e-4).
        betas: beta1 and beta2 (default (0.9, 0.99)).
        weight_decay: the decay of the parameters themselves (default 0).
        maximize: whether to climb.

    >>> import chainrule
    >>> from chainrule import optim
    >>> w = chainrule.tensor([1.0, -3.0], requires_grad=True)
    >>> optimizer = optim.Lion([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([ 0.9000, -2.9000])
    """

    keeps_step = False
    ranges: ClassVar = {"betas": FRACTION, "weight_decay": NOT_NEGATIVE}

    def __init__(
        self,
        params: Params,
        lr: Rates = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0,
        *,
        maximize: bool = False,
        **implementation: Unpack[Implementation],
    ):
        defaults = {"lr": lr, "betas": betas, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, defaults, implementation)

    def check_settings(self, settings: dict[str, Any]) -> None:
        check_pair(self._name, "betas", settings["betas"])
        super().check_settings(settings)

    def states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("exp_avg",)

    def constants(self, group: dict[str, Any], step: int, **scalars: float) -> dict[str, Any]:
        beta1, beta2 = group["betas"]
        rest = {name: group[name] for name in ("weight_decay", "maximize")}
        return {"beta1": beta1, "beta2": beta2, **rest}

    @staticmethod
    @fused("lion")
    def rule(
        p: Value,
        g: Value,
        lr: Value | float,
        m: Value,
        *,
        beta1: float,
        beta2: float,
        weight_decay: float,
        maximize: bool,
    ) -> tuple[Value, ...]:
        g = -g if maximize else g
        p = p * (1 - lr * weight_decay) if weight_decay else p
        return p - lr * sign(beta1 * m + (1 - beta1) * g), beta2 * m + (1 - beta2) * g
