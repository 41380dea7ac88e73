"""Sparse linear models: least squares with an L1 penalty, by coordinate descent."""

from __future__ import annotations

from chainrule.autograd.modes import no_grad
from chainrule.backend import dtypes
from chainrule.linalg import matrix_rank
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.elementwise.complex_numbers import abs
from chainrule.ops.elementwise.logic import where
from chainrule.ops.elementwise.functions import sign
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.reduce.order import max
from chainrule.ops.reduce.reductions import mean
from chainrule.optim.linear import Data, FitReport, LinearFit, centered, least_squares, told
from chainrule.optim.optimizer import check_range
from chainrule.tensor import Tensor

__all__ = ["lasso", "lasso_limit"]


class _Normal:
    """The normal equations of (centered) data: gram = X^T X / N, moment = X^T y / N."""

    def __init__(self, data: Data, bias: bool):
        self.x, y = data.x, data.y
        self.means: tuple[Tensor, Tensor] | None = None
        if bias:
            (self.x, x_mean), (y, y_mean) = centered(data.x), centered(data.y)
            self.means = x_mean, y_mean
        n = data.x.shape[0]
        self.gram, self.moment = matmul(self.x.mT, self.x) / n, matmul(self.x.mT, y) / n

    def bias(self, w: Tensor) -> Tensor | None:
        return None if self.means is None else self.means[1] - matmul(self.means[0], w)


@no_grad()
def lasso_limit(x: Tensor, y: Tensor, bias: bool = True) -> float:
    """The smallest l1 for which :func:`lasso` makes all weights 0: the largest |X^T y| / N.

    >>> from chainrule import optim, tensor
    >>> optim.lasso_limit(tensor([[-1.0], [0.0], [1.0]]), tensor([-3.0, 0, 3]))
    2.0
    """
    return float(max(abs(_Normal(Data("lasso_limit", x, y, (1,)), bias).moment)))


@no_grad()
def lasso(
    x: Tensor,
    y: Tensor,
    l1: float = 1.0,
    bias: bool = True,
    *,
    max_iter: int = 10_000,
    tolerance: float = 1e-9,
) -> LinearFit:
    """The w and b that minimize |x w + b - y|^2 / (2 N) + l1 |w|_1, most of w exactly 0.

    Coordinate descent (Friedman et al., 2007): w_j <- S(c_j, l1) / G_jj, one weight after the
    other, with G = X^T X / N, c_j = X_j^T (y - the rest) / N and the soft threshold S(c, l1) =
    sign(c) max(|c| - l1, 0). The bias is not penalized.

    Shape: x (N, D), y (N,) -> weight (D,), bias ().

    Args:
        x: inputs.
        y: targets.
        l1: the weight of the penalty; from :func:`lasso_limit` on all weights are 0.
        bias: whether there is an offset.
        max_iter: passes over the weights at most.
        tolerance: how far from 0 the derivatives may be at the end, relative to those at w = 0.

    >>> from chainrule import optim, tensor
    >>> optim.lasso(tensor([[-1.0], [0.0], [1.0]]), tensor([-3.0, 0, 3]), l1=0.5).weight
    tensor([2.2500])
    """
    check_range("lasso", l1=l1, tolerance=tolerance)
    check_range("lasso", 1, max_iter=max_iter)
    if l1 == 0:
        return least_squares(x, y, bias)
    data = Data("lasso", x, y, (1,))
    normal = _Normal(data, bias)
    goal = tolerance * float(max(abs(normal.moment)))
    weights, passes = _descended(normal, l1, goal, max_iter)
    w = tensor(weights.w, dtype=dtypes.float64)
    b = normal.bias(w)
    residual = matmul(data.x, w) - data.y if b is None else matmul(data.x, w) + b - data.y
    report = _report(weights, normal, goal, passes, float(mean(residual * residual)) / 2)
    return told("lasso", data.fit(w, b, report))


class _Weights:
    """Weights, and the gradient g of the squares at them, kept as the weights change."""

    def __init__(self, normal: _Normal, l1: float):
        self.l1, self.g = l1, -normal.moment
        self.rows, self.scales = list(normal.gram), normal.gram.diagonal().tolist()
        self.w = [0.0] * len(self.rows)
        self.every = [j for j, scale in enumerate(self.scales) if scale > 0]

    def improve(self, j: int) -> float:
        """Goes to where the loss is least along a coordinate; the derivative that was there."""
        scale, before, l1 = self.scales[j], self.w[j], self.l1
        c = before * scale - float(self.g[j])
        after = (c - l1 if c > l1 else c + l1 if c < -l1 else 0.0) / scale
        step = after - before
        if step:
            self.w[j], self.g = after, self.g + step * self.rows[j]
        return scale * (step if step > 0 else -step)

    def left(self) -> float:
        """The largest derivative: of the weights at 0, what the penalty does not hold."""
        w = tensor(self.w, dtype=dtypes.float64)
        slack = (abs(self.g) - self.l1).clamp(min=0.0)
        return float(max(where(w == 0, slack, abs(self.g + self.l1 * sign(w)))))


def _descended(normal: _Normal, l1: float, goal: float, max_iter: int) -> tuple[_Weights, int]:
    """Passes over all weights, and between them over those that are not 0 until they are still."""
    weights = _Weights(normal, l1)
    passes = 0
    while passes < max_iter and weights.left() > goal:
        places = weights.every
        while passes < max_iter:
            passes += 1
            moved = [weights.improve(j) for j in places]
            if not moved or sorted(moved)[-1] <= goal / 10:
                break
            places = [j for j in weights.every if weights.w[j]]
    return weights, passes


def _report(weights: _Weights, normal: _Normal, goal: float, passes: int, loss: float) -> FitReport:
    left = weights.left()
    if left > goal:
        reason = f"reached max_iter = {passes} with a derivative of {left:.2g}"
        return FitReport(passes, False, reason, loss)
    # Weights may differ only where the penalty is all that holds them.
    held = (abs(weights.g) >= weights.l1 - 10 * goal).nonzero().reshape(-1)
    unique = not held.numel() or int(matrix_rank(normal.x[:, held])) == held.numel()
    reason = "the derivatives are zero to the tolerance"
    if not unique:
        reason += "; columns of the inputs depend on each other, other weights do as well"
    return FitReport(passes, True, reason, loss, unique)
