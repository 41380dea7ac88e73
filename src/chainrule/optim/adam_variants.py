"""The relatives of Adam: Adamax, NAdam and RAdam."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

from chainrule.ops.elementwise.complex_numbers import abs
from chainrule.ops.elementwise.functions import maximum
from chainrule.optim.adam import Moments, moments, shrunk
from chainrule.optim.rules import decayed, fused, root
from chainrule.optim.settings import Capturable
from chainrule.typing import Params, Rates, Value

__all__ = ["Adamax", "NAdam", "RAdam"]


class Adamax(Moments):
    """Adamax: Adam with the largest gradient, fading, in place of the root of the mean square.

    g <- g + weight_decay p; m <- beta1 m + (1 - beta1) g; u <- max(beta2 u, |g| + eps);
    p <- p - lr / (1 - beta1^t) m / u

    Kingma and Ba, 2015.

    Args:
        params: the parameters, or groups of them.
        lr: the learning rate: a number, or tensors that fit the parameters (default 2e-3).
        betas: beta1 and beta2 (default (0.9, 0.999)).
        eps: keeps the denominator from zero (default 1e-8).
        weight_decay: the strength of the penalty ||p||^2 / 2 (default 0).
        maximize: whether to climb.

    >>> import chainrule
    >>> from chainrule import optim
    >>> w = chainrule.tensor([1.0], requires_grad=True)
    >>> optimizer = optim.Adamax([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.9000])
    """

    implementation_keys = ("foreach", "capturable", "differentiable")

    def __init__(
        self,
        params: Params,
        lr: Rates = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
        **implementation: Unpack[Capturable],
    ):
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
            },
            implementation,
        )

    def states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("exp_avg", "exp_inf")

    @staticmethod
    @fused("adamax")
    def rule(
        p: Value,
        g: Value,
        lr: Value | float,
        m: Value,
        u: Value,
        *,
        beta1: float,
        beta2: float,
        eps: float,
        weight_decay: float,
        maximize: bool,
        correction1: float,
        **rest: object,
    ) -> tuple[Value, ...]:
        g = decayed(p, g, weight_decay, maximize)
        m = beta1 * m + (1 - beta1) * g
        u = maximum(beta2 * u, abs(g) + eps)
        return p - lr / correction1 * m / u, m, u


class NAdam(Moments):
    """Adam with Nesterov's look ahead, whose momentum grows from beta1 / 2 to beta1.

    mu_t = beta1 (1 - 0.96^(t momentum_decay) / 2); m and v as in :class:`Adam`;
    d <- mu_(t+1) m / (1 - mu_1 ... mu_(t+1)) + (1 - mu_t) g / (1 - mu_1 ... mu_t);
    p <- p - lr d / (sqrt(v / (1 - beta2^t)) + eps)

    Dozat, 2016.

    Args:
        params: the parameters, or groups of them.
        lr: the learning rate: a number, or tensors that fit the parameters (default 2e-3).
        betas: beta1 and beta2 (default (0.9, 0.999)).
        eps: keeps the denominator from zero (default 1e-8).
        weight_decay: the strength of the penalty ||p||^2 / 2 (default 0).
        momentum_decay: how fast the momentum grows (default 4e-3).
        decoupled_weight_decay: whether to decay the parameters themselves, as AdamW does.
        maximize: whether to climb.

    >>> import chainrule
    >>> from chainrule import optim
    >>> w = chainrule.tensor([1.0], requires_grad=True)
    >>> optimizer = optim.NAdam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.8944])
    """

    implementation_keys = ("foreach", "capturable", "differentiable")
    scalar_states: ClassVar[dict[str, float]] = {"mu_product": 1.0}

    def __init__(
        self,
        params: Params,
        lr: Rates = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        **implementation: Unpack[Capturable],
    ):
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "momentum_decay": momentum_decay,
                "decoupled_weight_decay": decoupled_weight_decay,
                "maximize": maximize,
            },
            implementation,
        )

    @staticmethod
    def _momentum(group: dict[str, Any], step: int) -> float:
        return group["betas"][0] * (1 - 0.5 * 0.96 ** (step * group["momentum_decay"]))

    def constants(self, group: dict[str, Any], step: int, **scalars: float) -> dict[str, Any]:
        mu, following = self._momentum(group, step), self._momentum(group, step + 1)
        product = scalars["mu_product"] * mu
        return {
            **super().constants(group, step, **scalars),
            "of_g": (1 - mu) / (1 - product),
            "of_m": following / (1 - product * following),
        }

    def advance(self, group: dict[str, Any], step: int, **scalars: float) -> dict[str, float]:
        return {"mu_product": scalars["mu_product"] * self._momentum(group, step)}

    @staticmethod
    @fused("nadam")
    def rule(
        p: Value,
        g: Value,
        lr: Value | float,
        m: Value,
        v: Value,
        *,
        beta1: float,
        beta2: float,
        eps: float,
        weight_decay: float,
        decoupled: bool,
        maximize: bool,
        correction2: float,
        of_g: float,
        of_m: float,
        **rest: object,
    ) -> tuple[Value, ...]:
        p, g = shrunk(p, g, lr, weight_decay, decoupled, maximize)
        m, v = moments(g, m, v, beta1, beta2)
        return p - lr * (of_g * g + of_m * m) / root(v / correction2, eps), m, v


class RAdam(Moments):
    """Rectified Adam: momentum alone until the mean of squares has seen enough to be trusted.

    m and v as in :class:`Adam`; n_max = 2 / (1 - beta2) - 1;
    n = n_max - 2 t beta2^t / (1 - beta2^t);
    r = sqrt((n - 4)(n - 2) n_max / ((n_max - 4)(n_max - 2) n));
    p <- p - lr m / (1 - beta1^t) r sqrt(1 - beta2^t) / (sqrt(v) + eps) if n > 5,
    p <- p - lr m / (1 - beta1^t) otherwise

    Liu and others, 2020.

    Args:
        params: the parameters, or groups of them.
        lr: the learning rate: a number, or tensors that fit the parameters (default 1e-3).
        betas: beta1 and beta2 (default (0.9, 0.999)).
        eps: keeps the denominator from zero (default 1e-8).
        weight_decay: the strength of the penalty ||p||^2 / 2 (default 0).
        decoupled_weight_decay: whether to decay the parameters themselves, as AdamW does.
        maximize: whether to climb.

    >>> import chainrule
    >>> from chainrule import optim
    >>> w = chainrule.tensor([1.0], requires_grad=True)
    >>> optimizer = optim.RAdam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.8000])
    """

    implementation_keys = ("foreach", "capturable", "differentiable")

    def __init__(
        self,
        params: Params,
        lr: Rates = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        **implementation: Unpack[Capturable],
    ):
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "decoupled_weight_decay": decoupled_weight_decay,
                "maximize": maximize,
            },
            implementation,
        )

    def constants(self, group: dict[str, Any], step: int, **scalars: float) -> dict[str, Any]:
        beta2 = group["betas"][1]
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * step * beta2**step / (1 - beta2**step)
        trust = None
        if length > 5:
            most = (longest - 4) * (longest - 2) / longest
            trust = ((length - 4) * (length - 2) / length / most * (1 - beta2**step)) ** 0.5
        return {**super().constants(group, step, **scalars), "trust": trust}

    @staticmethod
    @fused("radam")
    def rule(
        p: Value,
        g: Value,
        lr: Value | float,
        m: Value,
        v: Value,
        *,
        beta1: float,
        beta2: float,
        eps: float,
        weight_decay: float,
        decoupled: bool,
        maximize: bool,
        correction1: float,
        trust: float | None,
        **rest: object,
    ) -> tuple[Value, ...]:
        p, g = shrunk(p, g, lr, weight_decay, decoupled, maximize)
        m, v = moments(g, m, v, beta1, beta2)
        d = lr / correction1 * m
        return p - (d if trust is None else d * (trust / root(v, eps))), m, v
