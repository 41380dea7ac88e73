"""Adam and AdamW: step sizes from running moments of the gradient."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

from chainrule.ops.elementwise.functions import maximum
from chainrule.optim.optimizer import Optimizer
from chainrule.optim.rules import decayed, fused, root
from chainrule.optim.settings import (
    FRACTION,
    NOT_NEGATIVE,
    Implementation,
    Interval,
    check_pair,
)
from chainrule.typing import Params, Rates, Value

__all__ = ["Adam", "AdamW", "Moments", "SparseAdam", "moments", "shrunk"]


class Moments(Optimizer):
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


def shrunk(
    p: Value, g: Value, lr: Value | float, weight_decay: float, decoupled: bool, maximize: bool
) -> tuple[Value, Value]:
    """The parameter and the gradient after weight decay, which acts on one of the two."""
    if decoupled and weight_decay:
        return p * (1 - lr * weight_decay), decayed(p, g, 0, maximize)
    return p, decayed(p, g, weight_decay, maximize)


def moments(g: Value, m: Value, v: Value, beta1: float, beta2: float) -> tuple[Value, Value]:
    """The running means of the gradient and of its square."""
    return beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * (g * g)


class Adam(Moments):
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
        p, g = shrunk(p, g, lr, weight_decay, decoupled, maximize)
        m, v = moments(g, m, v, beta1, beta2)
        top = v if largest is None else maximum(largest, v)
        p = p - lr / correction1 * m / root(top / correction2, eps, eps_in_root)
        return (p, m, v) if largest is None else (p, m, v, top)


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
        maximize: whether to climb.
        eps_in_root: whether to add eps under the root instead.

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
        *,
        maximize: bool = False,
        eps_in_root: bool = False,
        **implementation: Unpack[Implementation],
    ):
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            maximize=maximize,
            decoupled_weight_decay=True,
            eps_in_root=eps_in_root,
            **implementation,
        )


class SparseAdam(Moments):
    """Adam of the rows that have a gradient: the moments of all others stay as they are.

    m <- beta1 m + (1 - beta1) g; v <- beta2 v + (1 - beta2) g^2;
    p <- p - lr sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + eps)

    For the sparse gradients of ``nn.Embedding(sparse=True)``; a dense gradient is one of all rows.
    Kingma and Ba, 2015.

    Args:
        params: the parameters, or groups of them.
        lr: the learning rate (default 1e-3).
        betas: beta1 and beta2 (default (0.9, 0.999)).
        eps: keeps the denominator from zero (default 1e-8).
        maximize: whether to climb.

    >>> import chainrule
    >>> from chainrule import nn, optim
    >>> table = nn.Embedding(3, 1, sparse=True, _weight=chainrule.zeros(3, 1))
    >>> optimizer = optim.SparseAdam(table.parameters(), lr=0.1)
    >>> table(chainrule.tensor([2])).sum().backward()
    >>> optimizer.step()
    >>> table.weight.detach().flatten()
    tensor([ 0.0000,  0.0000, -0.1000])
    """

    implementation_keys = ()

    def __init__(
        self,
        params: Params,
        lr: Rates = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})

    def takes_rows(self, group: dict[str, Any]) -> bool:
        return True

    def constants(self, group: dict[str, Any], step: int, **scalars: float) -> dict[str, Any]:
        beta1, beta2 = group["betas"]
        correction = (1 - beta2**step) ** 0.5 / (1 - beta1**step)
        chosen = {"eps": group["eps"], "maximize": group["maximize"]}
        return {"beta1": beta1, "beta2": beta2, "correction": correction, **chosen}

    @staticmethod
    def rule(
        p: Value,
        g: Value,
        lr: Value | float,
        m: Value,
        v: Value,
        *,
        beta1: float,
        beta2: float,
        correction: float,
        eps: float,
        maximize: bool,
    ) -> tuple[Value, ...]:
        m, v = moments(decayed(p, g, 0, maximize), m, v, beta1, beta2)
        return p - lr * correction * (m / root(v, eps)), m, v
