"""Resilient propagation: steps whose size depends on the signs of the gradient alone."""

from __future__ import annotations

from typing import Any, TypedDict, Unpack

from chainrule.ops.elementwise.complex_numbers import complex, real
from chainrule.ops.creation.conversion import clone
from chainrule.ops.elementwise.functions import sign
from chainrule.ops.elementwise.logic import where
from chainrule.ops.elementwise.options import clamp
from chainrule.ops.shape.views import expand
from chainrule.optim.optimizer import Optimizer
from chainrule.optim.rules import fused
from chainrule.optim.settings import Capturable, check_pair
from chainrule.tensor import Tensor
from chainrule.typing import Params, Rates, Value

__all__ = ["Limits", "Rprop", "adapted"]


class Limits(TypedDict):
    """How step sizes change: the two factors, the smallest size and the largest."""

    etaminus: float
    etaplus: float
    smallest: float
    largest: float


def adapted(
    size: Value,
    agreement: Value,
    *,
    etaminus: float,
    etaplus: float,
    smallest: float,
    largest: float,
) -> Value:
    """Step sizes: larger where the gradient kept its sign (agreement > 0), smaller where not."""
    grown = where(agreement > 0, etaplus * size, where(agreement < 0, etaminus * size, size))
    return clamp(grown, smallest, largest)


class Rprop(Optimizer):
    """Resilient propagation: a step size for each weight, and of the gradient only its sign.

    size <- etaplus size where the gradient kept its sign, etaminus size where it changed, at least
    and at most ``step_sizes``; g <- 0 where it changed; p <- p - size sign(g)

    This is PyTorch's variant, which stays where it is after a change of sign (iRprop-). For whole
    batches: noise changes signs. Riedmiller and Braun, 1993; Igel and Huesken, 2000.

    Args:
        params: the parameters, or groups of them.
        lr: the first step size: a number, or tensors that fit the parameters (default 1e-2).
        etas: etaminus and etaplus, 0 < etaminus < 1 < etaplus (default (0.5, 1.2)).
        step_sizes: the smallest and the largest step size (default (1e-6, 50)).
        maximize: whether to climb.

    >>> import chainrule
    >>> from chainrule import optim
    >>> w = chainrule.tensor([5.0, -0.001], requires_grad=True)
    >>> optimizer = optim.Rprop([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([4.9000, 0.0990])
    """

    implementation_keys = ("foreach", "capturable", "differentiable")

    def __init__(
        self,
        params: Params,
        lr: Rates = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        maximize: bool = False,
        **implementation: Unpack[Capturable],
    ):
        super().__init__(
            params,
            {"lr": lr, "etas": etas, "step_sizes": step_sizes, "maximize": maximize},
            implementation,
        )

    def check_settings(self, settings: dict[str, Any]) -> None:
        super().check_settings(settings)
        for key in ("etas", "step_sizes"):
            check_pair(self._name, key, settings[key])
        minus, plus = settings["etas"]
        if not 0 < minus < 1 < plus:
            raise ValueError(
                f"{self._name}: invalid etas: {(minus, plus)}; they must be 0 < etaminus < 1 < "
                "etaplus"
            )
        smallest, largest = settings["step_sizes"]
        if not 0 <= smallest <= largest:
            raise ValueError(
                f"{self._name}: invalid step_sizes: {(smallest, largest)}; they must be 0 <= "
                "smallest <= largest"
            )

    def states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("prev", "step_size")

    def new_state(self, name: str, p: Tensor, group: dict[str, Any]) -> Tensor:
        if name != "step_size":
            return super().new_state(name, p, group)
        (rate,) = self._rates(group, [p], each=True)
        size = clone(expand(rate, *p.shape))
        return complex(real(size), real(size)) if p.dtype.is_complex else size

    def constants(self, group: dict[str, Any], step: int, **scalars: float) -> dict[str, Any]:
        minus, plus = group["etas"]
        smallest, largest = group["step_sizes"]
        return {
            "etaminus": minus,
            "etaplus": plus,
            "smallest": smallest,
            "largest": largest,
            "maximize": group["maximize"],
        }

    @staticmethod
    @fused("rprop")
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
        agreement = g * prev
        size = adapted(size, agreement, **limits)
        g = where(agreement < 0, 0.0, g)
        return p - size * sign(g), g, size
