"""Muon: momentum made orthogonal."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

from chainrule.linalg import vector_norm
from chainrule.ops.elementwise.options import clamp
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.shape.views import transpose
from chainrule.optim.matrices.whole import WholeSteps
from chainrule.optim.settings import NOT_NEGATIVE, Interval
from chainrule.tensor import Tensor
from chainrule.typing import Params, Rate

__all__ = ["Muon"]


class Muon(WholeSteps):
    """Momentum whose matrix is made nearly orthogonal: steps of equal length in all directions.

    b <- momentum b + (1 - momentum) g; m = (1 - momentum) g + momentum b with nesterov, else m = b;
    O = m / |m|, ns_steps times O <- a O + (b O O^T + c (O O^T)^2) O;
    p <- (1 - lr weight_decay) p - lr s O, s = sqrt(max(1, rows / columns))

    For the matrices of hidden layers; other parameters go to another optimizer. PyTorch rounds O to
    bfloat16 between the steps, here it keeps the dtype of the parameter. Jordan, 2024.

    Args:
        params: matrices, or groups of them.
        lr: the learning rate (default 1e-3).
        weight_decay: the part of a parameter that is taken away, in units of lr (default 0.1).
        momentum: how much of the last direction is kept (default 0.95).
        nesterov: whether to look ahead.
        ns_coefficients: a, b and c (default (3.4445, -4.775, 2.0315)).
        eps: keeps |m| from zero (default 1e-7).
        ns_steps: how often O is improved (default 5).
        adjust_lr_fn: "original" for s as above, or "match_rms_adamw" for
            s = 0.2 sqrt(max(rows, columns)), so that rates of AdamW can be used.

    >>> import chainrule
    >>> from chainrule import optim
    >>> w = chainrule.tensor([[3.0, 0.0], [0.0, 0.1]], requires_grad=True)
    >>> optimizer = optim.Muon([w], lr=0.1, weight_decay=0, ns_steps=20)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> bool(abs(w[0, 0] - 2.9) < 0.04)
    True
    """

    implementation_keys = ()
    keeps_step = False
    ranges: ClassVar[dict[str, Interval]] = {
        "momentum": NOT_NEGATIVE,
        "weight_decay": NOT_NEGATIVE,
        "eps": NOT_NEGATIVE,
    }

    def __init__(
        self,
        params: Params,
        lr: Rate = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: Literal["original", "match_rms_adamw"] | None = None,
    ):
        super().__init__(
            params,
            {
                "lr": lr,
                "weight_decay": weight_decay,
                "momentum": momentum,
                "nesterov": nesterov,
                "ns_coefficients": ns_coefficients,
                "eps": eps,
                "ns_steps": ns_steps,
                "adjust_lr_fn": adjust_lr_fn,
            },
        )

    def check_settings(self, settings: dict[str, Any]) -> None:
        if settings["adjust_lr_fn"] not in (None, "original", "match_rms_adamw"):
            raise ValueError(
                f"Muon: Adjust learning rate function {settings['adjust_lr_fn']} is not supported"
            )
        if settings["ns_steps"] >= 100:
            raise ValueError(
                f"Muon: ns_steps={settings['ns_steps']}; Number of steps must be less than 100 for "
                "computational efficiency"
            )
        if len(settings["ns_coefficients"]) != 3:
            raise ValueError(
                "Muon: Coefficients must be a tuple of exactly 3 values, got "
                f"{settings['ns_coefficients']}"
            )
        for p in settings.get("params", ()):
            if p.ndim != 2:
                raise ValueError(
                    "Muon only supports 2D parameters whereas we found a parameter with size: "
                    f"{tuple(p.shape)}; give those to another optimizer, AdamW say"
                )
        super().check_settings(settings)

    def states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("momentum_buffer",)

    def moved(self, group: dict[str, Any], p: Tensor, g: Tensor, state: dict[str, Any]) -> Tensor:
        lr, momentum = float(group["lr"]), group["momentum"]
        b = state["momentum_buffer"]
        b = state["momentum_buffer"] = b + (1 - momentum) * (g - b)
        m = g + momentum * (b - g) if group["nesterov"] else b
        direction = _orthogonalized(m, group["ns_coefficients"], group["ns_steps"], group["eps"])
        rows, columns = p.shape
        if group["adjust_lr_fn"] == "match_rms_adamw":
            scale = 0.2 * math.sqrt(max(rows, columns))
        else:
            scale = math.sqrt(max(1, rows / max(1, columns)))
        return p * (1 - lr * group["weight_decay"]) - lr * scale * direction


def _orthogonalized(
    m: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float
) -> Tensor:
    """Newton and Schulz' iteration towards U V^T of m = U S V^T, by an odd polynomial of m."""
    a, b, c = coefficients
    tall = m.shape[0] > m.shape[1]
    x = transpose(m, 0, 1) if tall else m
    x = x / clamp(vector_norm(x), min=eps)
    for _ in range(steps):
        gram = matmul(x, transpose(x, 0, 1))
        x = a * x + matmul(b * gram + c * matmul(gram, gram), x)
    return transpose(x, 0, 1) if tall else x
