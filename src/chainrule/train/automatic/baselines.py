"""What a network has to beat: a constant and a linear model."""

from __future__ import annotations

from chainrule import nn, optim
from chainrule.autograd.modes import no_grad
from chainrule.backend import dtypes
from chainrule.data import TableEncoder, TargetEncoder
from chainrule.ops.core.promotion import cast
from chainrule.ops.creation.patterns import arange, ones
from chainrule.ops.elementwise.functions import log
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.reduce.order import argmax
from chainrule.ops.reduce.reductions import sum
from chainrule.ops.reduce.scan import cumsum
from chainrule.ops.reduce.sort import sort
from chainrule.ops.shape.stacking import stack
from chainrule.optim.linear import untold
from chainrule.tensor import Tensor
from chainrule.train.automatic.parts import Parts
from chainrule.train.losses import WeightedLoss
from chainrule.train.scoring import scores_of

__all__ = ["baselines", "constant_outputs"]

BASELINE_ROWS = 20_000  # on which the linear model is fitted, at most
LEAST = 1e-9  # probability
NAMES = {
    "classification": "majority class",
    "regression": "mean",
    "multilabel": "most frequent labels",
    "count": "mean",
    "quantile": "quantiles of all rows",
    "ordinal": "median",
}


def baselines(parts: Parts) -> dict[str, dict[str, float]]:
    """The scores on the test part of a constant prediction and of a linear model.

    The linear model is fitted on the first 20,000 training rows, which are in random order.
    """
    (x, y), (x_test, y_test), target = parts.train, parts.test, parts.target
    constant = constant_outputs(target, y, parts.weights[0])
    if isinstance(parts.inputs, TableEncoder):  # an index is no number
        plain = int(x.shape[1]) - len(parts.inputs.index_sizes)
        x, x_test = x[:, :plain], x_test[:, :plain]
    flat, flat_test = (t.reshape(t.shape[0], -1).double() for t in (x[:BASELINE_ROWS], x_test))
    weight = None if parts.weights[0] is None else parts.weights[0][:BASELINE_ROWS].double()
    y = y[:BASELINE_ROWS]
    if weight is None and target.task in ("regression", "classification"):
        matrix, bias = _solved(target, flat, y)
    else:
        matrix, bias = _descended(target, flat, y, weight, constant)
    outputs = {
        NAMES[target.task]: constant.expand(len(x_test), target.outputs),
        "linear model": matmul(flat_test, matrix.mT) + bias,
    }
    return {
        name: scores_of(target, output, y_test, parts.weights[2])
        for name, output in outputs.items()
    }


def constant_outputs(target: TargetEncoder, y: Tensor, weight: Tensor | None = None) -> Tensor:
    """The outputs of the best constant prediction of encoded targets."""
    w = ones(len(y), dtype=dtypes.float64) if weight is None else weight.double()
    w = w / sum(w)
    if target.task == "quantile":
        return _quantiles(y.reshape(-1).double(), w, target.quantiles)
    if target.task == "classification":
        shares = (y.reshape(-1, 1) == arange(len(target.classes))).double()
    elif target.task == "ordinal":
        shares = (y.reshape(-1, 1) > arange(target.outputs)).double()
    else:
        shares = y.reshape(len(y), -1).double()
    share = matmul(w, shares)
    if target.task == "regression":
        return share
    if target.task in ("classification", "count"):
        return log(share.clamp(min=LEAST))
    share = share.clamp(LEAST, 1 - LEAST)
    return log(share / (1 - share))


def _quantiles(y: Tensor, weight: Tensor, quantiles: list[float]) -> Tensor:
    ordered, place = sort(y)
    reached = cumsum(weight[place], 0)
    return stack([ordered[argmax((reached >= q - 1e-12).int())] for q in quantiles])


def _solved(target: TargetEncoder, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Ridge or softmax regression."""
    if target.task == "regression":
        fit = optim.ridge(x, y.double(), l2=1.0)
        return fit.weight, fit.bias
    k = len(target.classes)
    with untold():  # not converged is good enough here
        weights = x.shape[1] * k
        big = weights > 3000 or len(x) * weights**2 > 10**10  # of the second derivatives
        method, steps = ("gradient", 300) if big else ("newton", 50)
        fit = optim.softmax_regression(x, y, k, method, l2=1.0, max_iter=steps)
    return fit.weight, fit.bias


def _descended(
    target: TargetEncoder, x: Tensor, y: Tensor, weight: Tensor | None, start: Tensor
) -> tuple[Tensor, Tensor]:
    """The linear model that has the least loss of the target, with the penalty |W|^2 / 2."""
    model = nn.Linear(int(x.shape[1]), target.outputs, dtype=dtypes.float64)
    with no_grad():
        model.weight.zero_()
        model.bias.copy_(start)
    loss = WeightedLoss(target.loss)
    goal = cast(y, dtypes.float64) if y.dtype.is_floating_point else y
    optimizer = optim.LBFGS(
        model.parameters(), max_iter=100, line_search_fn="strong_wolfe", history_size=10
    )

    def closure() -> Tensor:
        optimizer.zero_grad()
        value = loss(model(x), goal, weight) + 0.5 * sum(model.weight**2) / len(x)
        value.backward()
        return value

    optimizer.step(closure)
    return model.weight.detach(), model.bias.detach()
