"""The scores of a network's outputs for every task, with weights of rows, and how sure they are.

A score is a function of weights (B, N) of the rows, so that one formula gives the score, the score
of weighted rows, and by random weights what other rows might have given.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from chainrule.backend import dtypes
from chainrule.data import TargetEncoder
from chainrule.metrics.multilabel import labels_of
from chainrule.metrics.ordered import deviances, predicted_ranks
from chainrule.nn.functional import binary_cross_entropy_with_logits, pinball_loss
from chainrule.ops.core.promotion import cast
from chainrule.ops.creation.patterns import arange, ones
from chainrule.ops.creation.sampling import rand, randperm
from chainrule.ops.elementwise.complex_numbers import abs
from chainrule.ops.elementwise.functions import exp, log, sqrt, xlogy
from chainrule.ops.elementwise.logic import where
from chainrule.ops.layers.softmax import log_softmax
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.reduce.order import amax, amin
from chainrule.ops.reduce.reductions import mean, sum
from chainrule.ops.reduce.scan import cumsum
from chainrule.ops.reduce.sort import argsort, searchsorted, sort
from chainrule.ops.shape.stacking import cat
from chainrule.ops.creation.patterns import zeros
from chainrule.random import Generator
from chainrule.tensor import Tensor

__all__ = ["LEVEL", "PROPORTIONS", "intervals_of", "scores_of", "wilson"]

LEVEL = 0.95  # of intervals
DRAWS = 400  # of random weights
MOST = 4000  # rows that are weighted at random; of more a sample, whose interval is narrowed
# Shares of rows, for which there is a formula that holds for few rows and near 0 and 1, too.
PROPORTIONS = ("accuracy", "subset_accuracy", "coverage")

Score = Callable[[Tensor], Tensor]  # of weights (B, N), a score for each B


def scores_of(
    target: TargetEncoder, output: Tensor, truth: Tensor, weight: Tensor | None = None
) -> dict[str, float]:
    """The scores of outputs (N, K) for encoded targets, in the target's own unit.

    Classes: accuracy, F1 (mean over the classes), log loss, for two the area under the ROC curve.
    Numbers: R2 and errors; of several the mean R2 and the error of each. Labels: F1 of all together
    and of each in the mean, the share that is wrong, that of rows that are all right, log loss.
    Counts: the deviance that is explained, and errors. Quantiles: the pinball loss, and the share
    of truths between the outer ones. Ranks: mean distance, accuracy, kappa of squared distances.

    Args:
        weight: of each row (N,); by default all count alike.
    """
    given = _weights(output, weight)
    return {name: float(score(given)[0]) for name, score in _scores(target, output, truth).items()}


def intervals_of(
    target: TargetEncoder,
    output: Tensor,
    truth: Tensor,
    weight: Tensor | None = None,
    seed: int = 0,
) -> dict[str, list[float]]:
    """Where the scores of other rows of the same kind would lie, in 95 of 100 cases.

    Shares of rows by Wilson's formula; the others by the Bayesian bootstrap (Rubin, 1981): the
    score under random weights of the rows.
    """
    given = _weights(output, weight)
    rows = int(given.shape[1])
    found: dict[str, list[float]] = {}
    values = {n: float(s(given)[0]) for n, s in _scores(target, output, truth).items()}
    effective = float(given.sum()) ** 2 / float((given**2).sum())
    for name in PROPORTIONS:
        if name in values:
            found[name] = list(wilson(values[name], effective))
    generator = Generator().manual_seed(seed)
    if rows > MOST:
        chosen = randperm(rows, generator=generator)[:MOST]
        output, truth, given = output[chosen], truth[chosen], given[:, chosen]
    kept = min(rows, MOST)
    draws = -log(1 - rand(DRAWS, kept, dtype=dtypes.float64, generator=generator)) * given
    narrower = math.sqrt(kept / rows)
    for name, score in _scores(target, output, truth).items():
        if name in PROPORTIONS or name not in values:
            continue
        drawn, own = sort(score(draws))[0], float(score(given)[0])
        edge = round((1 - LEVEL) / 2 * (DRAWS - 1))
        ends = (float(drawn[edge]), float(drawn[DRAWS - 1 - edge]))
        found[name] = [values[name] + narrower * (end - own) for end in ends]
    return {name: found[name] for name in values if name in found}


def wilson(share: float, rows: float, z: float = 1.959964) -> tuple[float, float]:
    """The interval for a share of so many rows (Wilson, 1927).

    >>> [round(v, 3) for v in wilson(1.0, 30)]
    [0.886, 1.0]
    """
    middle = (share + z * z / (2 * rows)) / (1 + z * z / rows)
    half = z / (1 + z * z / rows) * math.sqrt(share * (1 - share) / rows + (z / (2 * rows)) ** 2)
    return max(0.0, middle - half), min(1.0, middle + half)


def _weights(output: Tensor, weight: Tensor | None) -> Tensor:
    if weight is None:
        return ones(1, len(output), dtype=dtypes.float64)
    return cast(weight.detach().reshape(1, -1), dtypes.float64)


def _scores(target: TargetEncoder, output: Tensor, truth: Tensor) -> dict[str, Score]:
    output, truth = output.detach(), truth.detach()
    makers: dict[str, Callable[[TargetEncoder, Tensor, Tensor], dict[str, Score]]] = {
        "classification": _of_classes,
        "regression": _of_numbers,
        "multilabel": _of_labels,
        "count": _of_counts,
        "quantile": _of_quantiles,
        "ordinal": _of_ranks,
    }
    return makers[target.task](target, output.double(), truth)


# --- formulas of weights --------------------------------------------------------------------------


def _mean(values: Tensor) -> Score:
    """The weighted mean of numbers (N,)."""
    values = values.double()
    return lambda w: matmul(w, values) / sum(w, 1)


def _root(values: Tensor) -> Score:
    own = _mean(values)
    return lambda w: sqrt(own(w))


def _f1(given: Tensor, true: Tensor, micro: bool = False) -> Score:
    """F1 of columns of truths (N, K): of all together, or the mean over those that occur."""
    hits, both = (given & true).double(), given.double() + true.double()
    occurs = sum(both, 0) > 0
    if micro:
        hits, both = sum(hits, 1, keepdim=True), sum(both, 1, keepdim=True)
    elif bool(occurs.any()):
        hits, both = hits[:, occurs], both[:, occurs]

    def score(w: Tensor) -> Tensor:
        tp, all_of = matmul(w, hits), matmul(w, both)
        return mean(where(all_of > 0, 2 * tp / where(all_of > 0, all_of, 1.0), 0.0), 1)

    return score


def _auc(scores: Tensor, positive: Tensor) -> Score:
    """The probability that a row of the class has the higher score; ties count half."""
    order = argsort(scores)
    ordered, is_positive = scores[order].contiguous(), positive[order].double()
    first = searchsorted(ordered, ordered)
    last = searchsorted(ordered, ordered, right=True)

    def score(w: Tensor) -> Tensor:
        w = w[:, order]
        negative = w * (1 - is_positive)
        below = cat([zeros(len(w), 1, dtype=w.dtype, device=w.device), cumsum(negative, 1)], 1)
        ranked = (below[:, first] + below[:, last]) / 2
        hits = sum(w * is_positive * ranked, 1)
        return hits / (sum(w * is_positive, 1) * below[:, -1])

    return score


def _r2(output: Tensor, truth: Tensor) -> Score:
    """The mean over the columns of 1 - RSS / the sum of squares about the weighted mean."""
    centered = truth - mean(truth, 0, keepdim=True)
    residual = (output - truth) ** 2

    def score(w: Tensor) -> Tensor:
        rss = matmul(w, residual)
        total = matmul(w, centered**2) - matmul(w, centered) ** 2 / sum(w, 1, keepdim=True)
        perfect = where(rss == 0, 1.0, 0.0)
        return mean(where(total > 0, 1 - rss / where(total > 0, total, 1.0), perfect), 1)

    return score


# --- tasks ----------------------------------------------------------------------------------------


def _of_classes(target: TargetEncoder, output: Tensor, truth: Tensor) -> dict[str, Score]:
    k = len(target.classes)
    predicted = output.argmax(1)
    logs = log_softmax(output, 1)[arange(len(truth)), truth]
    each = arange(k)
    scores = {
        "accuracy": _mean(predicted == truth),
        "f1": _f1(predicted.reshape(-1, 1) == each, truth.reshape(-1, 1) == each),
        "nll": _mean(-logs),
    }
    if k == 2 and bool((truth == 0).any()) and bool((truth == 1).any()):
        scores["roc_auc"] = _auc(output[:, 1] - output[:, 0], truth == 1)
    return scores


def _of_numbers(target: TargetEncoder, output: Tensor, truth: Tensor) -> dict[str, Score]:
    output, truth = (t.double().reshape(len(t), -1) for t in (output, truth))
    scores = {"r2": _r2(output, truth)}
    for i, (name, spread) in enumerate(zip(target.names, target.spreads, strict=True)):
        error = (output[:, i] - truth[:, i]) * spread
        mark = f" {name}" if len(target.names) > 1 else ""
        scores[f"rmse{mark}"] = _root(error**2)
        scores[f"mae{mark}"] = _mean(abs(error))
    return scores


def _of_labels(target: TargetEncoder, output: Tensor, truth: Tensor) -> dict[str, Score]:
    given, true = labels_of("evaluate", output, truth, "logits")
    wrong = (given != true).double()
    loss = binary_cross_entropy_with_logits(output, truth.double(), reduction="none")
    return {
        "label_f1": _f1(given, true, micro=True),
        "f1": _f1(given, true),
        "hamming_loss": _mean(mean(wrong, 1)),
        "subset_accuracy": _mean(sum(wrong, 1) == 0),
        "nll": _mean(sum(loss, 1)),
    }


def _of_counts(target: TargetEncoder, output: Tensor, truth: Tensor) -> dict[str, Score]:
    scale = target.spread
    rate = exp(output.reshape(-1).clamp(max=300.0)) * scale
    true = truth.reshape(-1).double() * scale
    deviance, own = _mean(deviances(rate, true)), _mean(xlogy(true, true))
    count = _mean(true)

    def explained(w: Tensor) -> Tensor:
        constant = 2 * (own(w) - xlogy(count(w), count(w)))
        return where(constant > 0, 1 - deviance(w) / where(constant > 0, constant, 1.0), 0.0)

    return {
        "d2": explained,
        "deviance": deviance,
        "rmse": _root((rate - true) ** 2),
        "mae": _mean(abs(rate - true)),
    }


def _of_quantiles(target: TargetEncoder, output: Tensor, truth: Tensor) -> dict[str, Score]:
    output, truth = sort(output, 1)[0], truth.double().reshape(-1)
    losses = pinball_loss(output, truth, target.quantiles, "none") * target.spread
    scores = {"pinball": _mean(mean(losses, 1))}
    if len(target.quantiles) > 1:
        scores["coverage"] = _mean((truth >= amin(output, 1)) & (truth <= amax(output, 1)))
    if 0.5 in target.quantiles:
        middle = output[:, target.quantiles.index(0.5)]
        scores["mae"] = _mean(abs(middle - truth) * target.spread)
    return scores


def _of_ranks(target: TargetEncoder, output: Tensor, truth: Tensor) -> dict[str, Score]:
    predicted, k = predicted_ranks(output), len(target.classes)
    each = arange(k)
    squares = ((each.reshape(-1, 1) - each) ** 2).double()
    given, true = ((t.reshape(-1, 1) == each).double() for t in (predicted, truth))
    missed = squares[truth, predicted]

    def kappa(w: Tensor) -> Tensor:
        by_chance = sum(matmul(matmul(w, true), squares) * matmul(w, given), 1) / sum(w, 1)
        found = matmul(w, missed)
        return where(by_chance > 0, 1 - found / where(by_chance > 0, by_chance, 1.0), 1.0)

    return {
        "rank_mae": _mean(abs(predicted - truth).double()),
        "accuracy": _mean(predicted == truth),
        "kappa": kappa,
    }
