"""Learning rules that maximize the likelihood of classes: logistic and softmax regression."""

from __future__ import annotations

import math
from collections.abc import Callable

from chainrule.autograd.modes import no_grad
from chainrule.backend import dtypes
from chainrule.linalg import LinAlgError, lstsq, solve, svdvals
from chainrule.ops.elementwise.complex_numbers import abs
from chainrule.ops.creation.patterns import arange, eye, zeros
from chainrule.ops.shape.diagonal import block_diag
from chainrule.ops.elementwise.functions import sigmoid, softplus
from chainrule.ops.index.reading import one_hot
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.reduce.order import max, min
from chainrule.ops.linalg.products import kron
from chainrule.ops.core.promotion import cast
from chainrule.ops.reduce.reductions import logsumexp, mean, sum
from chainrule.ops.shape.views import reshape
from chainrule.ops.shape.stacking import cat
from chainrule.ops.layers.softmax import softmax
from chainrule.optim.linear import (
    Data,
    Descent,
    Design,
    FitReport,
    LinearFit,
    check_descent,
    descend,
    parted,
    told,
    with_ones,
)
from chainrule.optim.optimizer import check_range
from chainrule.optim.separation import separability_of_rows
from chainrule.tensor import Tensor

__all__ = [
    "logistic_hessian",
    "logistic_regression",
    "softmax_hessian",
    "softmax_regression",
]

# --- Newton's method ------------------------------------------------------------------------------


def _newton(
    loss_of: Callable[[Tensor], float],
    derivatives: Callable[[Tensor], tuple[Tensor, Tensor]],
    v: Tensor,
    max_iter: int,
    tolerance: float,
) -> Descent:
    """v <- v - H^{-1} g, halved while the loss would rise, until no entry of g is too large."""
    loss = loss_of(v)
    for i in range(max_iter + 1):
        g, h = derivatives(v)
        if float(max(abs(g))) <= tolerance:
            return Descent(v, loss, i, True, "the gradient is zero to the tolerance")
        if i == max_iter:
            break
        step, t = _solved(h, g), 1.0
        while not loss_of(v - t * step) <= loss + 1e-14 * math.fabs(loss):
            t /= 2
            if t < 1e-12:
                return Descent(v, loss, i, False, "no lower loss was found along the direction")
        v = v - t * step
        loss = loss_of(v)
    reason = f"reached max_iter = {max_iter} with a gradient of {float(max(abs(g))):.2g}"
    return Descent(v, loss, max_iter, False, reason)


def _solved(h: Tensor, g: Tensor) -> Tensor:
    try:
        step = solve(h, g)
    except LinAlgError:
        return lstsq(h, g).solution
    return step if bool(step.isfinite().all()) else lstsq(h, g).solution


def _method(op: str, method: str, choices: tuple[str, str]) -> bool:
    """Whether the first of two methods is asked for."""
    if method not in choices:
        raise ValueError(f"{op}: method must be {choices[0]!r} or {choices[1]!r}, got {method!r}")
    return method == choices[0]


def _maximum_missing(descent: Descent, reason: str) -> Descent:
    why = (
        f"{reason}: the likelihood has no maximum, the weights grow without bound (stopped after "
        f"{descent.iterations} steps); use l2 > 0"
    )
    return descent._replace(converged=False, reason=why)


# --- logistic regression --------------------------------------------------------------------------


@no_grad()
def logistic_regression(
    x: Tensor,
    y: Tensor,
    method: str = "irls",
    *,
    l2: float = 0.0,
    bias: bool = True,
    lr: float = 0.1,
    max_iter: int | None = None,
    tolerance: float | None = None,
) -> LinearFit:
    """p(y = 1) = sigmoid(w . x + b), for labels y = 0 and 1, by the largest likelihood.

    It minimizes -sum log p(y_n) + l2 |w|^2 / 2, from weights 0. "irls", iteratively reweighted
    least squares, is Newton's method: w <- w - (X^T R X)^{-1} X^T (a - y) with R = diag a (1 - a)
    and a = sigmoid(X w + b). "gradient" descends the mean: w <- w - lr X^T (a - y) / N.

    If a hyperplane separates the classes (even with points lying on it) the likelihood has no
    maximum. This is decided exactly and told by a warning, as is data in which the columns of x
    depend on each other, where the smallest weights are returned.

    Args:
        x: inputs (N, D).
        y: labels (N,).
        method: "irls" or "gradient".
        l2: the strength of the penalty; the bias is not penalized.
        bias: whether there is an offset.
        lr: the learning rate of "gradient"; it cannot diverge below 8 / (largest eigenvalue of
            X^T X / N).
        max_iter: at most so many steps, by default 100 or 10000.
        tolerance: converged if no entry of the gradient of the mean is larger, by default 1e-10
            or 1e-6.

    >>> from chainrule import optim, tensor
    >>> x, y = tensor([[0.0], [1.0], [2.0], [3.0]]), tensor([0, 1, 0, 1])
    >>> fit = optim.logistic_regression(x, y)
    >>> fit.weight, fit.report.converged
    (tensor([0.9082]), True)
    """
    op = "logistic_regression"
    irls = _method(op, method, ("irls", "gradient"))
    check_range(op, l2=l2)
    max_iter = max_iter if max_iter is not None else 100 if irls else 10000
    tolerance = tolerance if tolerance is not None else 1e-10 if irls else 1e-6
    check_descent(op, lr, max_iter, tolerance)
    data = Data(op, x, y, (1,))
    _check_zero_one(op, data.y)
    design, n = Design(data, bias), data.x.shape[0]
    z = design.columns if irls else data.augmented(bias)
    penalty = _penalty(design, z.shape[1], l2 / n, basis=irls)

    def loss_of(v: Tensor) -> float:
        s = matmul(z, v)
        return float(mean(softplus(s) - data.y * s) + sum(v * matmul(penalty, v)) / 2)

    def gradient(v: Tensor) -> tuple[Tensor, Tensor]:
        a = sigmoid(matmul(z, v))
        return matmul(z.mT, a - data.y) / n + matmul(penalty, v), a

    def derivatives(v: Tensor) -> tuple[Tensor, Tensor]:
        g, a = gradient(v)
        return g, _weighted(z, a * (1 - a)) / n + penalty

    v = zeros(z.shape[1], dtype=dtypes.float64)
    if irls:
        descent = _newton(loss_of, derivatives, v, max_iter, tolerance)
    else:
        bound = 2 / (float(svdvals(z)[0]) ** 2 / (4 * n) + l2 / n)
        descent = descend(lambda v: (loss_of(v), gradient(v)[0]), v, lr, max_iter, tolerance, bound)
    unsure = abs(sigmoid(matmul(z, descent.w)) - data.y)
    if l2 == 0 and (float(min(unsure)) < 1e-3 or not descent.converged):
        if separability_of_rows(design.columns * (2 * data.y - 1)[:, None]) != "none":
            descent = _maximum_missing(descent, "the classes are separable")
    return told(op, _finished(data, design, descent, irls, l2 > 0))


def _check_zero_one(op: str, y: Tensor) -> None:
    wrong = y[y * (y - 1) != 0]
    if wrong.shape[0]:
        hint = "; use (y + 1) / 2 for labels -1 and 1" if float(wrong[0]) == -1 else ""
        raise ValueError(f"{op}: the labels y must be 0 and 1, found {float(wrong[0])}{hint}")


def _penalty(design: Design, size: int, strength: float, basis: bool) -> Tensor:
    """The matrix P that makes strength |w|^2 = v^T P v, the bias left out."""
    features = size - design.bias
    if basis:
        p = strength * matmul(design.back.mT, design.back)
    else:
        p = strength * eye(features, dtype=dtypes.float64)
    return block_diag(p, zeros(1, 1, dtype=dtypes.float64)) if design.bias else p


def _finished(
    data: Data, design: Design, descent: Descent, basis: bool, penalized: bool
) -> LinearFit:
    weight, b = design.weights(descent.w) if basis else parted(descent.w, design.bias)
    unique = design.unique or penalized
    reason = descent.reason if unique else f"{descent.reason}; {design.many}"
    return data.fit(
        weight, b, FitReport(descent.iterations, descent.converged, reason, descent.loss, unique)
    )


def _weighted(z: Tensor, r: Tensor) -> Tensor:
    return matmul(z.mT, r[:, None] * z)


def logistic_hessian(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """X^T R X with R = diag a (1 - a): the Hessian of the logistic loss, summed, by the weights.

    With a bias, a column of ones stands behind those of x.

    >>> from chainrule import optim, tensor
    >>> optim.logistic_hessian(tensor([[2.0, 4.0]]), tensor([0.0, 0.0]))
    tensor([[1., 2.],
            [2., 4.]])
    """
    s = matmul(x, reshape(weight, (-1,)))
    a = sigmoid(s if bias is None else s + bias)
    return _weighted(x if bias is None else with_ones(x), a * (1 - a))


# --- softmax regression ---------------------------------------------------------------------------


@no_grad()
def softmax_regression(
    x: Tensor,
    y: Tensor,
    classes: int | None = None,
    method: str = "newton",
    *,
    l2: float = 0.0,
    bias: bool = True,
    lr: float = 0.1,
    max_iter: int | None = None,
    tolerance: float | None = None,
) -> LinearFit:
    """p(y) = softmax(W x + b), for class numbers y = 0, ..., K - 1, by the largest likelihood.

    It minimizes -sum log p(y_n) + l2 |W|^2 / 2, from weights 0: by "newton", which solves a system
    of K (D + 1) equations in each step, or by "gradient": W <- W - lr (a - y)^T X / N. Of the many
    weights that give the same probabilities, both find those that add up to 0 over the classes.
    As :func:`logistic_regression` it tells where there is no maximum (for N K^2 D up to 2e7).

    Shape: x (N, D), y (N,) -> weight (K, D), bias (K,).

    >>> from chainrule import optim, tensor
    >>> x, y = tensor([[0.0], [1.0], [2.0], [3.0], [1.0], [2.0]]), tensor([0, 1, 0, 2, 2, 1])
    >>> optim.softmax_regression(x, y).weight.shape
    chainrule.Size([3, 1])
    """
    op = "softmax_regression"
    newton = _method(op, method, ("newton", "gradient"))
    check_range(op, l2=l2)
    max_iter = max_iter if max_iter is not None else 100 if newton else 10000
    tolerance = tolerance if tolerance is not None else 1e-10 if newton else 1e-6
    check_descent(op, lr, max_iter, tolerance)
    data = Data(op, x, y, (1,))
    k = _check_classes(op, data.y, classes)
    target = cast(one_hot(cast(data.y, dtypes.int64), k), dtypes.float64)
    design, n = Design(data, bias), data.x.shape[0]
    z = design.columns if newton else data.augmented(bias)
    p = z.shape[1]
    penalty = _penalty(design, p, l2 / n, basis=newton)
    # The classes' common part leaves the probabilities alone; this keeps the equations solvable.
    common = kron(eye(p, dtype=dtypes.float64), zeros(k, k, dtype=dtypes.float64) + 1 / k)

    def loss_of(v: Tensor) -> float:
        v = reshape(v, (p, k))
        s = matmul(z, v)
        return float(mean(logsumexp(s, 1) - sum(target * s, 1)) + sum(v * matmul(penalty, v)) / 2)

    def gradient(v: Tensor) -> tuple[Tensor, Tensor]:
        v = reshape(v, (p, k))
        a = softmax(matmul(z, v), 1)
        return reshape(matmul(z.mT, a - target) / n + matmul(penalty, v), (-1,)), a

    def derivatives(v: Tensor) -> tuple[Tensor, Tensor]:
        g, a = gradient(v)
        h = _softmax_curvature(z, a) / n
        return g, h + common + kron(penalty, eye(k, dtype=dtypes.float64))

    v = zeros(p * k, dtype=dtypes.float64)
    if newton:
        descent = _newton(loss_of, derivatives, v, max_iter, tolerance)
    else:
        bound = 2 / (float(svdvals(z)[0]) ** 2 / (2 * n) + l2 / n)
        descent = descend(lambda v: (loss_of(v), gradient(v)[0]), v, lr, max_iter, tolerance, bound)
    descent = descent._replace(w=reshape(descent.w, (p, k)))
    unlikely = float(min(softmax(matmul(z, descent.w), 1)))
    if l2 == 0 and (unlikely < 1e-3 or not descent.converged):
        if _classes_separable(design.columns, data.y, k):
            descent = _maximum_missing(descent, "the classes are separable")
    return told(op, _finished(data, design, descent, newton, l2 > 0))


def _check_classes(op: str, y: Tensor, classes: int | None) -> int:
    low, high = float(min(y)), float(max(y))
    if not bool((y == y.floor()).all()) or low < 0:
        raise ValueError(
            f"{op}: y must hold class numbers 0, 1, ..., found values from {low} to {high}"
        )
    if classes is not None and (classes < 1 or high >= classes):
        raise ValueError(f"{op}: y must lie below classes = {classes}, found {int(high)}")
    return int(high) + 1 if classes is None else classes


def _classes_separable(z: Tensor, y: Tensor, k: int) -> bool:
    """Whether some weights rank, nowhere wrongly, the right class above another one."""
    n, p = z.shape
    if n * k * k * p > 2e7:
        return False
    labels = cast(y, dtypes.int64)
    rows = []
    for other in range(k):
        chosen = labels != other
        sides = one_hot(labels[chosen], k) - one_hot(arange(1) + other, k)
        product = cast(sides, z.dtype)[:, :, None] * z[chosen][:, None, :]
        rows.append(reshape(product, (-1, k * p)))
    return separability_of_rows(cat(rows)) != "none"


def _softmax_curvature(z: Tensor, a: Tensor) -> Tensor:
    """sum_n (diag a_n - a_n a_n^T) for the classes times z_n z_n^T, rows in the order (D, K)."""
    n, p = z.shape
    k = a.shape[1]
    q = reshape(z[:, :, None] * a[:, None, :], (n, p * k))
    blocks = block_diag(*[_weighted(z, a[:, i]) for i in range(k)])
    by_class = reshape(reshape(blocks, (k, p, k, p)).permute(1, 0, 3, 2), (p * k, p * k))
    return by_class - matmul(q.mT, q)


def softmax_hessian(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """The Hessian of the cross-entropy of softmax(W x + b), summed, by W (K, D) row after row.

    H[(k, i), (l, j)] = sum_n a_nk (delta_kl - a_nl) x_ni x_nj. With a bias, a column of ones stands
    behind those of x. It is never definite: weights may change by the same for all classes.

    >>> from chainrule import optim, tensor
    >>> optim.softmax_hessian(tensor([[2.0]]), tensor([[0.0], [0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    s = matmul(x, weight.mT)
    a = softmax(s if bias is None else s + bias, -1)
    z = x if bias is None else with_ones(x)
    k, p = a.shape[1], z.shape[1]
    h = reshape(_softmax_curvature(z, a), (p, k, p, k)).permute(1, 0, 3, 2)
    return reshape(h, (k * p, k * p))
