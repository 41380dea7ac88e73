"""What a network has to beat: a constant and a linear model."""

from __future__ import annotations

from chainrule import optim
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.reduce.reductions import mean
from chainrule.optim.linear import untold
from chainrule.train.automatic.parts import Parts
from chainrule.train.fitted import scores_of

__all__ = ["baselines"]

BASELINE_ROWS = 20_000  # on which the linear model is fitted, at most


def baselines(parts: Parts) -> dict[str, dict[str, float]]:
    """The scores on the test part of a constant prediction and of a linear model.

    The linear model is fitted on the first 20,000 training rows, which are in random order.
    """
    (x, y), (x_test, y_test) = parts.train, parts.test
    flat, flat_test = x.reshape(x.shape[0], -1), x_test.reshape(x_test.shape[0], -1)
    flat = flat[:BASELINE_ROWS].double()
    if parts.target.task == "regression":
        constant = y_test * 0 + mean(y)
        fit = optim.ridge(flat, y[:BASELINE_ROWS].double(), l2=1.0)
        linear = matmul(flat_test.double(), fit.weight.mT) + fit.bias
        names = ("mean", "linear model")
    else:
        k = len(parts.target.classes)
        counts = y.bincount(minlength=k).double()
        constant = (counts / counts.sum()).clamp(min=1e-9).log().expand(x_test.shape[0], k)
        with untold():  # not converged is good enough here
            weights = flat.shape[1] * k
            big = weights > 3000 or len(flat) * weights**2 > 10**10  # of the second derivatives
            fit = optim.softmax_regression(
                flat,
                y[:BASELINE_ROWS],
                k,
                "gradient" if big else "newton",
                l2=1.0,
                max_iter=300 if big else 50,
            )
        linear = matmul(flat_test.double(), fit.weight.mT) + fit.bias
        names = ("majority class", "linear model")
    return {
        name: scores_of(parts.target, output, y_test)
        for name, output in zip(names, (constant, linear), strict=True)
    }
