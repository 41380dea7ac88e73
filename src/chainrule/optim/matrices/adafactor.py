"""Adafactor: the second moments of a matrix in the memory of a row and a column."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from chainrule.backend import K
from chainrule.linalg import vector_norm
from chainrule.ops.creation.patterns import zeros
from chainrule.ops.elementwise.functions import sqrt
from chainrule.ops.elementwise.options import clamp
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.reduce.reductions import mean
from chainrule.optim.matrices.whole import WholeSteps
from chainrule.optim.settings import NOT_NEGATIVE, Interval
from chainrule.tensor import Tensor
from chainrule.typing import Params, Rate

__all__ = ["Adafactor"]


def _mean_of_squares(g: Tensor, dim: int) -> Tensor:
    return mean(g * g, dim, True)


class Adafactor(WholeSteps):
    """Adam with the mean square of a matrix's gradient kept as a product of a column and a row.

    b = t^beta2_decay; R <- (1 - b) R + b mean over columns of g^2; C likewise, over rows;
    V = R C / mean(R), for parameters of fewer than two dimensions V <- (1 - b) V + b g^2;
    u = g / sqrt(max(V, eps1^2)); p <- p - a u / max(1, rms(u) / d),
    a = max(eps2, rms(p)) min(lr, 1 / sqrt(t)), after p <- (1 - lr weight_decay) p

    Shazeer and Stern, 2018.

    Args:
        params: the parameters, or groups of them.
        lr: the largest relative step (default 1e-2).
        beta2_decay: the exponent by which new squares count less (default -0.8).
        eps: eps1 (None: the rounding error of the dtype) and eps2 (default (None, 1e-3)).
        d: how large the root mean square of u may be (default 1.0).
        weight_decay: the part of a parameter that is taken away, in units of lr (default 0.0).
        foreach: accepted for PyTorch's sake.
        maximize: whether to climb.

    >>> import chainrule
    >>> from chainrule import optim
    >>> w = chainrule.tensor([[2.0, -2.0]], requires_grad=True)
    >>> optimizer = optim.Adafactor([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([[ 1.8000, -1.8000]])
    """

    implementation_keys = ("foreach",)
    ranges: ClassVar[dict[str, Interval]] = {
        "beta2_decay": Interval(-math.inf, 0.0, "(]"),
        "d": Interval(1.0),
        "weight_decay": NOT_NEGATIVE,
    }

    def __init__(
        self,
        params: Params,
        lr: Rate = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ):
        super().__init__(
            params,
            {
                "lr": lr,
                "beta2_decay": beta2_decay,
                "eps": eps,
                "d": d,
                "weight_decay": weight_decay,
                "maximize": maximize,
            },
            {"foreach": foreach},
        )

    def check_settings(self, settings: dict[str, Any]) -> None:
        for number in settings["eps"]:
            if number is not None:
                NOT_NEGATIVE.check(self._name, "eps", number)
        super().check_settings(settings)

    def _make_state(self, group: dict[str, Any], p: Tensor, names: tuple[str, ...]) -> bool:
        state: dict[str, Any] = self.state[p]
        state["step"] = 0
        if p.ndim > 1:
            *front, rows, columns = p.shape
            state["row_var"] = zeros(*front, rows, 1, dtype=p.dtype, device=p.device)
            state["col_var"] = zeros(*front, 1, columns, dtype=p.dtype, device=p.device)
        else:
            state["variance"] = zeros(p.shape, dtype=p.dtype, device=p.device)
        return True

    def moved(self, group: dict[str, Any], p: Tensor, g: Tensor, state: dict[str, Any]) -> Tensor:
        state["step"] += 1
        lr, (eps1, eps2) = float(group["lr"]), group["eps"]
        eps1 = K.rounding_error(p.array.dtype) if eps1 is None else eps1
        g = -g if group["maximize"] else g
        share = state["step"] ** group["beta2_decay"]
        largest = min(lr, 1 / math.sqrt(state["step"]))
        size = max(eps2, _rms(p)) * largest
        if group["weight_decay"]:
            p = p * (1 - lr * group["weight_decay"])
        if p.ndim > 1:
            for name, dim in (("row_var", -1), ("col_var", -2)):
                old = state[name]
                state[name] = old + share * (_mean_of_squares(g, dim) - old)
            rows = state["row_var"]
            variance = matmul(rows, state["col_var"]) / clamp(mean(rows, -2, True), min=eps1)
        else:
            old = state["variance"]
            variance = state["variance"] = old + share * (g * g - old)
        u = g / sqrt(clamp(variance, min=eps1 * eps1))
        return p - size / max(1.0, _rms(u) / group["d"]) * u


def _rms(x: Tensor) -> float:
    """The root of the mean square."""
    return float(vector_norm(x)) / math.sqrt(x.numel()) if x.numel() else 0.0
