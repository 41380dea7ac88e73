"""Adam and its family: step sizes from running moments of the gradient."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

from chainrule.ops.elementwise.complex_numbers import abs
from chainrule.ops.elementwise.functions import maximum
from chainrule.optim.optimizer import Optimizer, decayed, fused, root
from chainrule.optim.settings import (
    FRACTION,
    NOT_NEGATIVE,
    Capturable,
    Implementation,
    Interval,
    check_pair,
)
from chainrule.typing import Params, Rates, Value

__all__ = ["Adam", "AdamW", "Adamax", "NAdam", "RAdam"]


class _Moments(Optimizer):
    """What the family shares: betas, eps, weight decay of both kinds, running moments."""

    ranges: ClassVar[dict[str, Interval]] = {
        "betas": FRACTION,
        "eps": NOT_NEGATIVE,
        "weight_decay": NOT_NEGATIVE,
        "momentum_decay": NOT_NEGATIVE,
    }

    def check_settings(self, settings: dict[str, Any]) -> None:
        check_pair(self._name, "betas", settings["betas"])
        super().check_settings(settings)

    def states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq")

    def constants(self, group: dict[str, Any], step: int, **scalars: float) -> dict[str, Any]:
        beta1, beta2 = group["betas"]
        return {
            "beta1": beta1,
            "beta2": beta2,
            "eps": group["eps"],
            "maximize": group["maximize"],
            "weight_decay": group["weight_decay"],
            "decoupled": group.get("decoupled_weight_decay", False),
            "correction1": 1 - beta1**step,
            "correction2": 1 - beta2**step,
        }


def _shrunk(
    p: Value, g: Value, lr: Value | float, weight_decay: float, decoupled: bool, maximize: bool
) -> tuple[Value, Value]:
    """The parameter and the gradient after weight decay, which acts on one of the two."""
    if decoupled and weight_decay:
        return p * (1 - lr * weight_decay), decayed(p, g, 0, maximize)
    return p, decayed(p, g, weight_decay, maximize)


def _moments(g: Value, m: Value, v: Value, beta1: float, beta2: float) -> tuple[Value, Value]:
    """The running means of the gradient and of its square."""
    return beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * (g * g)


class Adam(_Moments):
    """Adam: the running mean of the gradient over the root of that of its square.

    m <- beta1 m + (1 - beta1) g; v <- beta2 v + (1 - beta2) g^2;
    p <- p - lr m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps)

    With ``amsgrad`` the largest v so far takes the place of v. Kingma and Ba, 2015; Reddi, Kale and
    Kumar, 2018 (amsgrad).

    Args:
        params: the parameters, or groups of them.
        lr: the learning rate: a number, or tensors that fit the parameters (default 1e-3).
        betas: beta1 and beta2 (default (0.9, 0.999)).
        eps: keeps the denominator from zero (default 1e-8).
        weight_decay: the strength of the penalty ||p||^2 / 2, added to the gradient (to the
            parameter itself with ``decoupled_weight_decay``, as AdamW does) (default 0).
        amsgrad: whether to use the largest v.
        maximize: whether to climb.
        decoupled_weight_decay: whether to decay as AdamW does.
        eps_in_root: whether to add eps under the root instead.

    >>> import chainrule
    >>> from chainrule import optim
    >>> w = chainrule.tensor([1.0], requires_grad=True)
    >>> optimizer = optim.Adam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.9000])
    """

    def __init__(
        self,
        params: Params,
        lr: Rates = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        decoupled_weight_decay: bool = False,
        eps_in_root: bool = False,
        **implementation: Unpack[Implementation],
    ):
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
                "decoupled_weight_decay": decoupled_weight_decay,
                **({"eps_in_root": True} if eps_in_root else {}),
            },
            implementation,
        )

    def states(self, group: dict[str, Any]) -> tuple[str, ...]:
        names = super().states(group)
        return (*names, "max_exp_avg_sq") if group["amsgrad"] else names

    def constants(self, group: dict[str, Any], step: int, **scalars: float) -> dict[str, Any]:
        constants = super().constants(group, step, **scalars)
        constants["eps_in_root"] = group.get("eps_in_root", False)
        return constants

    @staticmethod
    @fused("adam")
    def rule(
        p: Value,
        g: Value,
        lr: Value | float,
        m: Value,
        v: Value,
        largest: Value | None = None,
        *,
        beta1: float,
        beta2: float,
        eps: float,
        weight_decay: float,
        decoupled: bool,
        maximize: bool,
        correction1: float,
        correction2: float,
        eps_in_root: bool,
    ) -> tuple[Value, ...]:
        p, g = _shrunk(p, g, lr, weight_decay, decoupled, maximize)
        m, v = _moments(g, m, v, beta1, beta2)
        top = v if largest is None else maximum(largest, v)
        p = p - lr / correction1 * m / root(top / correction2, eps, eps_in_root)
        return (p, m, v) if largest is None else (p, m, v, top)


class _AdamW(Implementation, total=False):
    maximize: bool
    eps_in_root: bool


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameters themselves, not the gradient.

    p <- (1 - lr weight_decay) p, then the step of :class:`Adam`. Loshchilov and Hutter, 2019.

    Args:
        params: the parameters, or groups of them.
        lr: the learning rate: a number, or tensors that fit the parameters (default 1e-3).
        betas: beta1 and beta2 (default (0.9, 0.999)).
        eps: keeps the denominator from zero (default 1e-8).
        weight_decay: the part of a parameter that is taken away, in units of lr (default 1e-2).
        amsgrad: whether to use the largest v.
        options: ``maximize`` and ``eps_in_root``, see :class:`Adam`.

    >>> import chainrule
    >>> from chainrule import optim
    >>> w = chainrule.tensor([1.0], requires_grad=True)
    >>> optimizer = optim.AdamW([w], lr=0.1, weight_decay=0.5)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.8500])
    """

    def __init__(
        self,
        params: Params,
        lr: Rates = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        **options: Unpack[_AdamW],
    ):
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, decoupled_weight_decay=True, **options
        )


class Adamax(_Moments):
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


class NAdam(_Moments):
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
        p, g = _shrunk(p, g, lr, weight_decay, decoupled, maximize)
        m, v = _moments(g, m, v, beta1, beta2)
        return p - lr * (of_g * g + of_m * m) / root(v / correction2, eps), m, v


class RAdam(_Moments):
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
        p, g = _shrunk(p, g, lr, weight_decay, decoupled, maximize)
        m, v = _moments(g, m, v, beta1, beta2)
        d = lr / correction1 * m
        return p - (d if trust is None else d * (trust / root(v, eps))), m, v
