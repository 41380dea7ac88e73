"""Learning rules of the linear neuron: least squares, ridge regression, the delta rule.

All rules of linear models compute in float64, whatever the data are, and return weights in the type
of the data, of the shapes of ``nn.Linear`` (its weight (D,) for targets (N,)), and a report.
"""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from chainrule.autograd.modes import no_grad
from chainrule.backend import K, dtypes
from chainrule.linalg import qr, solve, svd, svdvals
from chainrule.ops.elementwise.complex_numbers import abs
from chainrule.ops.creation.patterns import ones, zeros
from chainrule.ops.shape.diagonal import diag
from chainrule.ops.elementwise.functions import sqrt
from chainrule.ops.elementwise.logic import where
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.reduce.order import amax, max
from chainrule.ops.core.promotion import cast
from chainrule.ops.reduce.reductions import mean, sum
from chainrule.ops.shape.stacking import cat
from chainrule.optim.optimizer import check_range
from chainrule.tensor import Tensor
from chainrule.typing import MaybeNone

__all__ = [
    "Data",
    "Design",
    "FitReport",
    "LinearFit",
    "delta_rule",
    "descend",
    "least_squares",
    "least_squares_hessian",
    "ridge",
    "told",
    "untold",
]


@dataclass(frozen=True)
class FitReport:
    """What a learning rule did: why it stopped, and whether its answer is final.

    ``loss`` is the mean of the rule's loss over the data, ``unique`` says whether other weights do
    as well. ``updates`` and ``mistakes`` are the perceptron's.
    """

    iterations: int
    converged: bool
    reason: str
    loss: float
    unique: bool = True
    updates: int | None = None
    mistakes: int | None = None


class LinearFit(NamedTuple):
    """Weights, bias (None without) and report of a learning rule."""

    weight: Tensor
    bias: Tensor | MaybeNone
    report: FitReport


class _Telling(threading.local):
    quiet = False


_telling = _Telling()


@contextmanager
def untold() -> Iterator[None]:
    """Inside, this thread is not warned of results that are not the one answer there is."""
    before, _telling.quiet = _telling.quiet, True
    try:
        yield
    finally:
        _telling.quiet = before


def told(op: str, fit: LinearFit) -> LinearFit:
    """Warns the caller of a rule of a result that is not the one answer there is."""
    if not (_telling.quiet or (fit.report.converged and fit.report.unique)):
        warnings.warn(f"{op}: {fit.report.reason}", UserWarning, stacklevel=4)
    return fit


# --- data -----------------------------------------------------------------------------------------


class Data:
    """Checked inputs x (N, D) and targets y (N, ...) in float64."""

    def __init__(self, op: str, x: Tensor, y: Tensor, target_dims: tuple[int, ...] = (1, 2)):
        for name, value in (("x", x), ("y", y)):
            if not isinstance(value, Tensor):
                raise TypeError(f"{op}: {name} must be a tensor, got {type(value).__name__}")
        if x.ndim != 2 or y.ndim not in target_dims or x.shape[0] != y.shape[0]:
            wanted = " or ".join({1: "(N,)", 2: "(N, K)"}[d] for d in target_dims)
            raise ValueError(
                f"{op}: expected x (N, D) and y {wanted} with the same N, got shapes "
                f"{tuple(x.shape)} and {tuple(y.shape)}"
            )
        if x.numel() == 0 or y.numel() == 0:
            raise ValueError(f"{op}: the data are empty, of shape {tuple(x.shape)}")
        self.dtype = x.dtype if x.is_floating_point() else dtypes.get_default_dtype()
        self.x, self.y = (cast(t.detach(), dtypes.float64) for t in (x, y))
        for name, value in (("x", self.x), ("y", self.y)):
            if not bool(value.isfinite().all()):
                raise ValueError(f"{op}: {name} has values that are NaN or infinite")

    def fit(self, w: Tensor, b: Tensor | None, report: FitReport) -> LinearFit:
        """Weights (D,) or (D, K) and bias, in the type of the data and the shape of nn.Linear."""
        weight = cast(w.mT if w.ndim == 2 else w, self.dtype)
        return LinearFit(weight, None if b is None else cast(b, self.dtype), report)

    def augmented(self, bias: bool) -> Tensor:
        """The inputs, and a column of ones behind them for a bias."""
        return with_ones(self.x) if bias else self.x


def with_ones(x: Tensor) -> Tensor:
    """The inputs and a column of ones behind them."""
    return cat([x, ones(x.shape[0], 1, dtype=x.dtype, device=x.device)], 1)


def centered(x: Tensor) -> tuple[Tensor, Tensor]:
    """Rows less their mean, and the mean; in two steps, so that little of a large mean stays."""
    first = mean(x, 0)
    second = mean(x - first, 0)
    return (x - first) - second, first + second


def parted(w: Tensor, bias: bool) -> tuple[Tensor, Tensor | None]:
    """Weights and bias from the weights of :meth:`Data.augmented`."""
    return (w[:-1], w[-1]) if bias else (w, None)


class Design:
    """Inputs in an orthogonal basis: (x - mean) T = columns, with columns^T columns = N I.

    There are as many columns as the rank of the (with a bias: centered) inputs. A rule that works
    on them is well conditioned however the inputs are scaled; T brings its answer back, and where
    many weights give the same outputs, T makes the smallest.
    """

    def __init__(self, data: Data, bias: bool):
        self.bias, (n, features) = bias, data.x.shape
        x = data.x
        self.mean: Tensor | None = None
        if bias:
            x, self.mean = centered(data.x)
        # What the rounding of the data's own type makes of zero counts as zero.
        eps = K.rounding_error(data.dtype.array_dtype)
        scale = sqrt(mean(x * x, 0))
        scale = where(scale > 4 * eps * amax(abs(data.x), 0), scale, 0.0)
        u, s, vh = svd(x / where(scale > 0, scale, math.inf), full_matrices=False)
        rank = int(sum(s > s[0] * (n if n > features else features) * eps))
        u, s, v = u[:, :rank] * math.sqrt(n), s[:rank] / math.sqrt(n), vh[:rank].mT
        self.unique = rank == features
        self.many = f"the inputs have rank {rank} of {features}: the weights are not unique"
        self.columns = with_ones(u) if bias else u
        if self.unique:
            self.back = v / s / scale[:, None]
        else:  # x = U S V^T D: the weights in the space of the rows, that of D V = Q R
            q, r = qr(scale[:, None] * v)
            self.back = matmul(q, solve(r.mT, diag(1 / s)))

    def weights(self, v: Tensor) -> tuple[Tensor, Tensor | None]:
        """Weights and bias for the inputs from those for the columns (the bias last)."""
        v, b = parted(v, self.bias)
        w = matmul(self.back, v)
        return w, None if b is None or self.mean is None else b - matmul(self.mean, w)


# --- closed forms ---------------------------------------------------------------------------------


def _squared_error(data: Data, w: Tensor, b: Tensor | None) -> float:
    r = matmul(data.x, w) - data.y if b is None else matmul(data.x, w) + b - data.y
    return float(mean(r * r))


@no_grad()
def least_squares(x: Tensor, y: Tensor, bias: bool = True) -> LinearFit:
    """The w and b with the least sum of squares of x w + b - y: w = (X^T X)^{-1} X^T y.

    It is computed from singular vectors of the (centered, scaled) inputs, not by the inverse. If
    the columns of x depend on each other, many weights fit equally well; a warning says so, and the
    smallest are returned.

    Shape: x (N, D), y (N,) or (N, K) -> weight (D,) or (K, D), bias () or (K,).

    >>> from chainrule import optim, tensor
    >>> fit = optim.least_squares(tensor([[0.0], [1.0], [2.0]]), tensor([2.0, 5, 8]))
    >>> fit.weight, fit.bias
    (tensor([3.]), tensor(2.))
    """
    data = Data("least_squares", x, y)
    design = Design(data, bias)
    # Without the mean: the columns are orthogonal to ones but for rounding, and it may be large.
    y, middle = centered(data.y) if bias else (data.y, None)
    w, b = design.weights(matmul(design.columns.mT, y) / data.x.shape[0])
    if b is not None and middle is not None:
        b = b + middle
    reason = "the closed form"
    if not design.unique:
        reason += f"; {design.many}, these are the smallest"
    report = FitReport(0, True, reason, _squared_error(data, w, b), design.unique)
    return told("least_squares", data.fit(w, b, report))


@no_grad()
def ridge(x: Tensor, y: Tensor, l2: float = 1.0, bias: bool = True) -> LinearFit:
    """The w and b that minimize |x w + b - y|^2 + l2 |w|^2: w = (X^T X + l2 I)^{-1} X^T y.

    The bias is not penalized. For l2 > 0 the answer is unique whatever the rank of x.

    >>> from chainrule import optim, tensor
    >>> optim.ridge(tensor([[-1.0], [0.0], [1.0]]), tensor([-1.0, 0, 1]), l2=2.0).weight
    tensor([0.5000])
    """
    check_range("ridge", l2=l2)
    if l2 == 0:
        return least_squares(x, y, bias)
    data = Data("ridge", x, y)
    (x, x_mean), (y, y_mean) = centered(data.x), centered(data.y)
    u, s, vh = svd(x if bias else data.x, full_matrices=False)
    w = matmul(vh.mT * (s / (s * s + l2)), matmul(u.mT, y if bias else data.y))
    b = y_mean - matmul(x_mean, w) if bias else None
    report = FitReport(0, True, "the closed form", _squared_error(data, w, b))
    return data.fit(w, b, report)


def least_squares_hessian(x: Tensor, bias: bool = False) -> Tensor:
    """X^T X, the Hessian of |x w - y|^2 / 2: definite only if x has full column rank.

    >>> from chainrule import optim, tensor
    >>> optim.least_squares_hessian(tensor([[1.0, 2.0]]))
    tensor([[1., 2.],
            [2., 4.]])
    """
    x = with_ones(x) if bias else x
    return matmul(x.mT, x)


# --- gradient descent -----------------------------------------------------------------------------


class Descent(NamedTuple):
    """Where gradient descent ended, and how."""

    w: Tensor
    loss: float
    iterations: int
    converged: bool
    reason: str


def descend(
    value_and_gradient: Callable[[Tensor], tuple[float, Tensor]],
    w: Tensor,
    lr: float,
    max_iter: int,
    tolerance: float,
    bound: float,
) -> Descent:
    """w <- w - lr g until no entry of g is above the tolerance.

    ``bound`` is the largest rate for which this cannot diverge; where it diverges, the weights with
    the smallest loss are returned.
    """
    loss, g = value_and_gradient(w)
    start, best = loss, (loss, w)
    for i in range(max_iter):
        if float(max(abs(g))) <= tolerance:
            return Descent(w, loss, i, True, "the gradient is zero to the tolerance")
        w = w - lr * g
        loss, g = value_and_gradient(w)
        if not math.isfinite(loss) or loss > 10 * start + 1:
            why = f"it diverged: the loss rose from {start:.4g}; lr = {lr} is above {bound:.4g}"
            return Descent(best[1], best[0], i + 1, False, why)
        if loss < best[0]:
            best = (loss, w)
    if float(max(abs(g))) <= tolerance:
        return Descent(w, loss, max_iter, True, "the gradient is zero to the tolerance")
    why = f"reached max_iter = {max_iter} with a gradient of {float(max(abs(g))):.2g}"
    if lr > bound:
        why += f"; lr = {lr} is above {bound:.4g}, from where on it may swing to and fro"
    return Descent(best[1], best[0], max_iter, False, why)


def check_descent(op: str, lr: float, max_iter: int, tolerance: float) -> None:
    """Refuses settings of gradient descent that make no sense."""
    check_range(op, lr=lr, tolerance=tolerance)
    check_range(op, 1, max_iter=max_iter)


def factor(op: str, reduction: str, n: int) -> float:
    """What a sum over the data is multiplied by."""
    if reduction not in ("mean", "sum"):
        raise ValueError(f"{op}: reduction must be 'mean' or 'sum', got {reduction!r}")
    return 1 / n if reduction == "mean" else 1.0


@no_grad()
def delta_rule(
    x: Tensor,
    y: Tensor,
    lr: float = 0.1,
    max_iter: int = 1000,
    tolerance: float = 1e-8,
    *,
    online: bool = False,
    bias: bool = True,
    reduction: str = "mean",
) -> LinearFit:
    """Gradient descent of the linear neuron, from weights 0 (Widrow and Hoff).

    Batch: w <- w - lr X^T (X w - y) / N (without / N if reduction is "sum"). It converges for
    lr < 2 / (largest eigenvalue of X^T X / N). Online, one example after the other:
    w <- w - lr (w . x - y) x; with a constant rate it comes to rest only near the minimum.

    Args:
        x: inputs (N, D).
        y: targets (N,) or (N, K).
        lr: the learning rate.
        max_iter: passes over the data at most.
        tolerance: converged if no entry of the gradient (online: of the change in one pass) is
            larger.
        online: one example at a time.
        bias: whether there is an offset.
        reduction: the mean or the sum of the examples' losses.

    >>> from chainrule import optim, tensor
    >>> fit = optim.delta_rule(tensor([[0.0], [1.0], [2.0]]), tensor([2.0, 5, 8]))
    >>> fit.weight, fit.bias, fit.report.converged
    (tensor([3.]), tensor(2.), True)
    """
    check_descent("delta_rule", lr, max_iter, tolerance)
    data = Data("delta_rule", x, y)
    z, n = data.augmented(bias), data.x.shape[0]
    by = factor("delta_rule", reduction, n)
    w = zeros(z.shape[1], *data.y.shape[1:], dtype=dtypes.float64)
    if online:
        descent = _online(z, data.y, w, lr, max_iter, tolerance)
    else:

        def value_and_gradient(w: Tensor) -> tuple[float, Tensor]:
            error = matmul(z, w) - data.y
            return float(sum(error * error)) * by / 2, matmul(z.mT, error) * by

        bound = 2 / (float(svdvals(z)[0]) ** 2 * by)
        descent = descend(value_and_gradient, w, lr, max_iter, tolerance, bound)
    weight, b = parted(descent.w, bias)
    report = FitReport(
        descent.iterations, descent.converged, descent.reason, _squared_error(data, weight, b)
    )
    return told("delta_rule", data.fit(weight, b, report))


def _online(z: Tensor, y: Tensor, w: Tensor, lr: float, max_iter: int, tolerance: float) -> Descent:
    start, examples = w, list(zip(z, y, strict=True))
    for i in range(max_iter):
        before = w
        for x, target in examples:
            error = matmul(x, w) - target
            w = w - lr * (x * error if w.ndim == 1 else x[:, None] * error)
        change = float(max(abs(w - before)))
        if not math.isfinite(change) or change > 1e100:
            # A single example with |x|^2 > 2 / lr is enough to make its own error grow.
            bound = 2 / float(max(sum(z * z, 1)))
            why = f"it diverged; lr = {lr} may be too large, {bound:.4g} is safe for each example"
            return Descent(start, math.inf, i + 1, False, why)
        if change <= tolerance:
            why = "a pass over the data no longer changes the weights"
            return Descent(w, math.nan, i + 1, True, why)
    return Descent(w, math.nan, max_iter, False, f"reached max_iter = {max_iter}")
