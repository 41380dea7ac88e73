"""Learning rates that are learned: one for each weight, by the signs of its gradients."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

from chainrule.ops.elementwise.complex_numbers import complex, real
from chainrule.ops.creation.conversion import clone
from chainrule.ops.elementwise.logic import where
from chainrule.ops.shape.views import expand
from chainrule.optim.optimizer import Optimizer
from chainrule.optim.rules import decayed, fused
from chainrule.optim.settings import FRACTION, NOT_NEGATIVE, Implementation
from chainrule.tensor import Tensor
from chainrule.typing import Params, Rates, Value

__all__ = ["DeltaBarDelta", "DeltaDelta"]


class _LearnedRates(Optimizer):
    """The state ``step_size`` holds the rate of every weight, which starts from lr."""

    keeps_step = False

    def new_state(self, name: str, p: Tensor, group: dict[str, Any]) -> Tensor:
        if name != "step_size":
            return super().new_state(name, p, group)
        (rate,) = self._rates(group, [p], each=True)
        rate = clone(expand(rate.detach(), *p.shape))
        return complex(real(rate), real(rate)) if p.dtype.is_complex else rate


class DeltaDelta(_LearnedRates):
    """The delta-delta rule: descent on the rates as well as on the weights.

    r <- r + gamma g(t) g(t-1); p <- p - r g(t)

    with a rate r for every weight, which grows as long as the gradient keeps its sign. Since
    dL(t)/dr = -g(t) g(t-1), this is gradient descent for r. Nothing keeps a rate from turning
    negative, and gamma has to fit the size of the gradients: :class:`DeltaBarDelta` mends both.
    Jacobs, 1988.

    Args:
        params: the parameters, or groups of them.
        lr: what the rates start from: a number, or tensors that fit the parameters (default 1e-2).
            A schedule of lr changes nothing once a parameter has its rates.
        gamma: the learning rate of the rates (default 1e-3).
        weight_decay: the strength of the penalty ||p||^2 / 2 (default 0).
        maximize: whether to climb.

    >>> import chainrule
    >>> from chainrule import optim
    >>> w = chainrule.tensor([1.0], requires_grad=True)
    >>> optimizer = optim.DeltaDelta([w], lr=0.1, gamma=0.01)
    >>> for _ in range(2):
    ...     optimizer.zero_grad()
    ...     (w * w).sum().backward()
    ...     optimizer.step()
    >>> optimizer.state[w]["step_size"]
    tensor([0.1320])
    """

    ranges: ClassVar = {"gamma": NOT_NEGATIVE, "weight_decay": NOT_NEGATIVE}

    def __init__(
        self,
        params: Params,
        lr: Rates = 1e-2,
        gamma: float = 1e-3,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
        **implementation: Unpack[Implementation],
    ):
        defaults = {"lr": lr, "gamma": gamma, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, defaults, implementation)

    def states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("step_size", "prev")

    def constants(self, group: dict[str, Any], step: int, **scalars: float) -> dict[str, Any]:
        return {name: group[name] for name in ("gamma", "weight_decay", "maximize")}

    @staticmethod
    @fused("delta_delta")
    def rule(
        p: Value,
        g: Value,
        lr: Value | float,
        r: Value,
        prev: Value,
        *,
        gamma: float,
        weight_decay: float,
        maximize: bool,
    ) -> tuple[Value, ...]:
        g = decayed(p, g, weight_decay, maximize)
        r = r + gamma * (g * prev)
        return p - r * g, r, g


class DeltaBarDelta(_LearnedRates):
    """The delta-bar-delta rule: rates that grow by steps and shrink by a factor.

    r <- r + kappa if gbar(t-1) g(t) > 0, (1 - phi) r if gbar(t-1) g(t) < 0, else r;
    p <- p - r g(t); gbar(t) = (1 - theta) g(t) + theta gbar(t-1)

    The gradient is compared with the mean of those *before* it: gbar(t) holds g(t) itself, and
    would nearly always agree with it. Jacobs, 1988.

    Args:
        params: the parameters, or groups of them.
        lr: what the rates start from: a number, or tensors that fit the parameters (default 1e-2).
            A schedule of lr changes nothing once a parameter has its rates.
        kappa: by how much a rate grows (default 1e-3).
        phi: the part of a rate that is taken away (default 0.1).
        theta: how much of the mean gradient is kept (default 0.7).
        weight_decay: the strength of the penalty ||p||^2 / 2 (default 0).
        maximize: whether to climb.

    >>> import chainrule
    >>> from chainrule import optim
    >>> w = chainrule.tensor([1.0], requires_grad=True)
    >>> optimizer = optim.DeltaBarDelta([w], lr=0.1, kappa=0.05)
    >>> for _ in range(2):
    ...     optimizer.zero_grad()
    ...     (w * w).sum().backward()
    ...     optimizer.step()
    >>> optimizer.state[w]["step_size"]
    tensor([0.1500])
    """

    ranges: ClassVar = {
        "kappa": NOT_NEGATIVE,
        "phi": FRACTION,
        "theta": FRACTION,
        "weight_decay": NOT_NEGATIVE,
    }

    def __init__(
        self,
        params: Params,
        lr: Rates = 1e-2,
        kappa: float = 1e-3,
        phi: float = 0.1,
        theta: float = 0.7,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
        **implementation: Unpack[Implementation],
    ):
        defaults = {
            "lr": lr,
            "kappa": kappa,
            "phi": phi,
            "theta": theta,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, defaults, implementation)

    def states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("step_size", "exp_avg")

    def constants(self, group: dict[str, Any], step: int, **scalars: float) -> dict[str, Any]:
        names = ("kappa", "phi", "theta", "weight_decay", "maximize")
        return {name: group[name] for name in names}

    @staticmethod
    @fused("delta_bar_delta")
    def rule(
        p: Value,
        g: Value,
        lr: Value | float,
        r: Value,
        mean: Value,
        *,
        kappa: float,
        phi: float,
        theta: float,
        weight_decay: float,
        maximize: bool,
    ) -> tuple[Value, ...]:
        g = decayed(p, g, weight_decay, maximize)
        agreement = mean * g
        r = where(agreement > 0, r + kappa, where(agreement < 0, (1 - phi) * r, r))
        return p - r * g, r, (1 - theta) * g + theta * mean
