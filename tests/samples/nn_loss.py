"""Records of the losses."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from samples.record import Sample
from samples.softmax import (
    bce,
    bce_with_logits,
    classes,
    cross_entropy,
    nll,
    reduced,
    soft,
    two_classes,
)
from scipy import spatial, special, stats

__all__ = ["SAMPLES", "ctc"]

Args = Callable[[np.random.Generator], tuple[Any, ...]]
HOW = ("mean", "sum", "none")

# --- arguments ------------------------------------------------------------------------------------


def several(count: int, *shape: int) -> Args:
    """So many tensors of one shape."""
    return lambda r: tuple(np.asarray(r.normal(size=shape)) for _ in range(count))


def with_signs(count: int, *shape: int, labels: tuple[int, ...] | None = None) -> Args:
    """So many tensors of one shape, then labels -1 and 1 (of that shape, or of another)."""

    def args(r: np.random.Generator) -> tuple[Any, ...]:
        signs = np.asarray(2 * r.integers(0, 2, size=shape if labels is None else labels) - 1)
        return (*[r.normal(size=shape) for _ in range(count)], signs)

    return args


def with_classes(*shape: int) -> Args:
    return lambda r: (r.normal(size=shape), np.asarray(r.integers(0, shape[-1], size=shape[:-1])))


def with_labels(*shape: int) -> Args:
    """Scores and lists of labels, of different lengths, that end with -1."""

    def args(r: np.random.Generator) -> tuple[Any, ...]:
        lists = np.stack([r.permutation(shape[-1]) for _ in range(int(np.prod(shape[:-1])))])
        for i, row in enumerate(lists):
            row[1 + i % shape[-1] :] = -1
        return (r.normal(size=shape), lists.reshape(shape))

    return args


def distributions(*shape: int, log_target: bool = False) -> Args:
    def args(r: np.random.Generator) -> tuple[Any, ...]:
        p, q = (special.log_softmax(r.normal(size=shape), axis=-1) for _ in range(2))
        return p, q if log_target else np.exp(q)

    return args


def with_variance(shape: tuple[int, ...], var: tuple[int, ...]) -> Args:
    return lambda r: (r.normal(size=shape), r.normal(size=shape), r.uniform(0.5, 2.0, size=var))


def alignments(
    steps: int, inputs: tuple[int, ...], outputs: tuple[int, ...], joined: bool = False
) -> Args:
    """Logits of four classes, labels of the last three, and the lengths."""

    def args(r: np.random.Generator) -> tuple[Any, ...]:
        labels = r.integers(1, 4, size=(len(inputs), max(outputs)))
        if joined:
            labels = np.concatenate([row[:n] for row, n in zip(labels, outputs, strict=True)])
        return (r.normal(size=(steps, len(inputs), 4)), labels, inputs, outputs)

    return args


def normalized(x: Any, *rest: Any) -> tuple[Any, ...]:
    """Logits as logarithms of probabilities, in any library."""
    logs = special.log_softmax(x, axis=-1) if isinstance(x, np.ndarray) else x.log_softmax(-1)
    return (logs, *rest)


# --- references -----------------------------------------------------------------------------------


def elementwise(function: Callable[..., Any]) -> Callable[..., Any]:
    """A loss from what it is for each element."""

    def loss(*args: Any, reduction: str = "mean", **kwargs: Any) -> Any:
        return reduced(function(*args, **kwargs), reduction)

    return loss


def weighted(x: Any, y: Any, weight: Any, reduction: str, power: int) -> Any:
    losses = weight * np.abs(x - y) ** power
    return losses.sum() / weight.sum() if reduction == "mean" else reduced(losses, reduction)


@elementwise
def huber(x: Any, y: Any, weight: Any = 1.0, delta: float = 1.0) -> Any:
    return weight * special.huber(delta, x - y)


@elementwise
def smooth_l1(x: Any, y: Any, beta: float = 1.0) -> Any:
    return special.huber(beta, x - y) / beta if beta else np.abs(x - y)


@elementwise
def gaussian_nll(x: Any, y: Any, var: Any, full: bool = False) -> Any:
    var = np.asarray(var)
    var = var[..., None] if var.shape == x.shape[:-1] else var
    logs = stats.norm.logpdf(y, x, np.sqrt(var))
    return -logs - (0 if full else 0.5 * np.log(2 * np.pi))


@elementwise
def poisson_nll(x: Any, y: Any, log_input: bool = True, full: bool = False) -> Any:
    losses = np.exp(x) - y * x if log_input else x - y * np.log(x + 1e-8)
    stirling = y * np.log(y) - y + 0.5 * np.log(2 * np.pi * y)
    return losses + np.where(y > 1, stirling, 0.0) if full else losses


def kl_div(x: Any, y: Any, reduction: str = "mean", log_target: bool = False) -> Any:
    q = np.exp(y) if log_target else y
    losses = special.rel_entr(q, np.exp(x))
    return losses.sum() / len(x) if reduction == "batchmean" else reduced(losses, reduction)


@elementwise
def hinge_embedding(x: Any, y: Any, margin: float = 1.0) -> Any:
    return np.where(y == 1, x, np.maximum(0, margin - x))


@elementwise
def multi_margin(x: Any, y: Any, p: int = 1, margin: float = 1.0, weight: Any = None) -> Any:
    """Class by class, as it is written in a book."""
    rows, targets = np.atleast_2d(x), np.atleast_1d(y)
    losses = np.zeros(len(rows))
    for n, (row, k) in enumerate(zip(rows, targets, strict=True)):
        for i in range(len(row)):
            if i != k:
                w = 1.0 if weight is None else weight[k]
                losses[n] += w * max(0, margin - row[k] + row[i]) ** p / len(row)
    return losses.reshape(np.shape(y))


@elementwise
def multilabel_margin(x: Any, y: Any) -> Any:
    rows, lists = np.atleast_2d(x), np.atleast_2d(y)
    losses = np.zeros(len(rows))
    for n, (row, labels) in enumerate(zip(rows, lists, strict=True)):
        own = list(itertools.takewhile(lambda k: k >= 0, labels))
        others = [i for i in range(len(row)) if i not in own]
        losses[n] = sum(max(0, 1 - row[j] + row[i]) for j in own for i in others) / len(row)
    return losses.reshape(x.shape[:-1])


@elementwise
def multilabel_soft_margin(x: Any, y: Any, weight: Any = 1.0) -> Any:
    return bce_with_logits(x, y, weight, "none").mean(axis=-1)


def cosine(x: Any, y: Any, dim: int = 1) -> Any:
    return (x * y).sum(axis=dim) / (np.linalg.norm(x, axis=dim) * np.linalg.norm(y, axis=dim))


@elementwise
def cosine_embedding(x: Any, y: Any, t: Any, margin: float = 0.0) -> Any:
    c = cosine(x, y, -1)
    return np.where(t == 1, 1 - c, np.maximum(0, c - margin))


def distance(x: Any, y: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Any:
    return np.linalg.norm(x - y + eps, p, axis=-1, keepdims=keepdim)


@elementwise
def triplet(
    anchor: Any,
    positive: Any,
    negative: Any,
    margin: float = 1.0,
    swap: bool = False,
    p: float = 2.0,
) -> Any:
    far = distance(anchor, negative, p)
    far = np.minimum(far, distance(positive, negative, p)) if swap else far
    return np.maximum(0, distance(anchor, positive, p) - far + margin)


def ctc(
    log_probs: Any,
    targets: Any,
    inputs: Any,
    outputs: Any,
    blank: int = 0,
    reduction: str = "mean",
) -> Any:
    """By listing every way through the steps and what it reads as."""
    if targets.ndim == 1:
        targets = np.split(targets, np.cumsum(outputs)[:-1])
    losses = []
    for n, (steps, length) in enumerate(zip(inputs, outputs, strict=True)):
        wanted, total = list(targets[n][:length]), 0.0
        for way in itertools.product(range(log_probs.shape[2]), repeat=steps):
            if [k for k, _ in itertools.groupby(way) if k != blank] == wanted:
                total += np.exp(sum(log_probs[t, n, k] for t, k in enumerate(way)))
        losses.append(-np.log(total))
    if reduction == "mean":
        losses = [x / max(n, 1) for x, n in zip(losses, outputs, strict=True)]
    return reduced(np.array(losses), reduction)


# --- records --------------------------------------------------------------------------------------


def record(name: str, args: Args, reference: Any, note: str = "", **kwargs: Any) -> Sample:
    """Settings of the record are given by name, the rest are arguments of the loss."""
    names = ("torch", "second_order", "prepare", "float32", "torch_call", "differentiable", "vmap")
    settings = {k: kwargs.pop(k) for k in names if k in kwargs}
    return Sample(f"nn.functional.{name}", args, kwargs, reference, note=note, **settings)


def reductions(
    name: str, args: Args, reference: Any, note: str = "", **kwargs: Any
) -> list[Sample]:
    before = f"{note}, " if note else ""
    return [record(name, args, reference, before + how, reduction=how, **kwargs) for how in HOW]


SQUARED = elementwise(lambda x, y: (x - y) ** 2)
SOFT_MARGIN = elementwise(lambda x, y: np.log1p(np.exp(-y * x)))
RANKING = elementwise(lambda x, y, t, margin=0.0: np.maximum(0, margin - t * (x - y)))
PERCEPTRON = elementwise(lambda x, y: np.maximum(0, -y * x))
PIECEWISE = {"second_order": False}  # piecewise linear; PyTorch has no second derivative

SAMPLES: list[Sample] = [
    *reductions("l1_loss", several(2, 4, 3), elementwise(lambda x, y: np.abs(x - y))),
    *reductions("mse_loss", several(2, 4, 3), SQUARED),
    record("mse_loss", several(2), SQUARED, "no dimensions"),
    record("mse_loss", several(2, 0, 3), SQUARED, "empty", reduction="sum"),
    *[
        record(
            name,
            lambda r: (
                r.normal(size=(4, 3)),
                r.normal(size=(4, 3)),
                r.uniform(0.5, 2.0, size=(4, 3)),
            ),
            lambda x, y, a, b, how, w, k=power: weighted(x, y, w, how, k),
            f"weight, {how}",
            prepare=lambda x, y, w, how=how: (x, y, None, None, how, w),
        )
        for name, power in (("l1_loss", 1), ("mse_loss", 2))
        for how in HOW
    ],
    *reductions(
        "half_squared_loss", several(2, 4, 3), elementwise(lambda x, y: (x - y) ** 2 / 2), torch=""
    ),
    *reductions("smooth_l1_loss", several(2, 4, 3), smooth_l1),
    record("smooth_l1_loss", several(2, 4, 3), smooth_l1, "beta", beta=0.3),
    record("smooth_l1_loss", several(2, 4, 3), smooth_l1, "beta 0", beta=0.0),
    *reductions("huber_loss", several(2, 4, 3), huber),
    record("huber_loss", several(2, 4, 3), huber, "delta", delta=0.3),
    record(
        "huber_loss",
        several(3, 4, 3),
        lambda x, y, how, delta, w: huber(x, y, w, delta=delta),
        "weight",
        prepare=lambda x, y, w: (x, y, "mean", 0.7, w),
    ),
    *reductions("gaussian_nll_loss", with_variance((4, 3), (4, 3)), gaussian_nll),
    record("gaussian_nll_loss", with_variance((4, 3), (4,)), gaussian_nll, "shared", full=True),
    record("gaussian_nll_loss", with_variance((4, 3), (1, 3)), gaussian_nll, "of each output"),
    record(
        "gaussian_nll_loss",
        lambda r: (r.normal(size=3), r.normal(size=3), 0.7),
        gaussian_nll,
        "number",
    ),
    *reductions(
        "poisson_nll_loss",
        lambda r: (r.normal(size=(4, 3)), r.uniform(0, 5, size=(4, 3))),
        poisson_nll,
    ),
    record(
        "poisson_nll_loss",
        lambda r: (r.normal(size=5), r.uniform(0.2, 5, size=5)),
        poisson_nll,
        "full",
        full=True,
    ),
    record(
        "poisson_nll_loss",
        lambda r: (r.uniform(0.5, 3, size=5), r.uniform(0.2, 5, size=5)),
        poisson_nll,
        "rate",
        log_input=False,
    ),
    *reductions("kl_div", distributions(4, 3), kl_div),
    record("kl_div", distributions(4, 3), kl_div, "batchmean", reduction="batchmean"),
    record(
        "kl_div",
        distributions(4, 3, log_target=True),
        kl_div,
        "log_target",
        log_target=True,
        reduction="batchmean",
    ),
    *reductions("binary_cross_entropy", two_classes(4, 3, low=0.05, high=0.95), bce),
    record(
        "binary_cross_entropy",
        two_classes(4, 3, low=0.05, high=0.95, more=(3,)),
        bce,
        "weight",
        torch="",
    ),
    *reductions("binary_cross_entropy_with_logits", two_classes(4, 3), bce_with_logits),
    record(
        "binary_cross_entropy_with_logits",
        lambda r: tuple(map(np.asarray, two_classes()(r))),
        bce_with_logits,
        "no dimensions",
    ),
    record(
        "binary_cross_entropy_with_logits",
        two_classes(4, 3, more=(4, 1)),
        bce_with_logits,
        "weight",
        torch="",
    ),
    *reductions("soft_margin_loss", with_signs(1, 4, 3), SOFT_MARGIN),
    *reductions("cross_entropy", classes(5, 3), cross_entropy),
    record("cross_entropy", soft(4, 3), cross_entropy, "soft", label_smoothing=0.1),
    record("cross_entropy", classes(2, 3, 4, ignored=1), cross_entropy, "ignored", ignore_index=1),
    *reductions("nll_loss", classes(5, 3, ignored=-100), nll),
    *reductions(
        "zero_one_loss",
        with_classes(5, 3),
        elementwise(lambda x, y: 1.0 * (x.argmax(axis=1) != y)),
        torch="",
        differentiable=False,
    ),
    record(
        "zero_one_loss",
        lambda r: (r.integers(0, 2, size=6), r.integers(0, 2, size=6)),
        lambda x, y: np.mean(x != y),
        "labels",
        torch="",
        differentiable=False,
    ),
    *reductions("perceptron_loss", with_signs(1, 4, 3), PERCEPTRON, torch=""),
    *reductions("hinge_embedding_loss", with_signs(1, 4, 3), hinge_embedding, margin=0.7),
    *reductions("margin_ranking_loss", with_signs(2, 4), RANKING, margin=0.3),
    *reductions("multi_margin_loss", with_classes(5, 3), multi_margin, **PIECEWISE),
    record(
        "multi_margin_loss", with_classes(5, 3), multi_margin, "p 2", p=2, margin=0.5, **PIECEWISE
    ),
    record(
        "multi_margin_loss",
        with_classes(3),
        multi_margin,
        "no batch",
        reduction="none",
        **PIECEWISE,
    ),
    record(
        "multi_margin_loss",
        lambda r: (*with_classes(5, 3)(r), r.uniform(0.5, 2.0, size=3)),
        lambda x, y, p, margin, w: multi_margin(x, y, p, margin, w),
        "weight",
        torch="",
        prepare=lambda x, y, w: (x, y, 1, 1.0, w),
    ),
    *reductions("multilabel_margin_loss", with_labels(5, 4), multilabel_margin, **PIECEWISE),
    record("multilabel_margin_loss", with_labels(4), multilabel_margin, "no batch", **PIECEWISE),
    *reductions("multilabel_soft_margin_loss", two_classes(4, 3), multilabel_soft_margin),
    record(
        "multilabel_soft_margin_loss",
        two_classes(4, 3, more=(3,)),
        multilabel_soft_margin,
        "weight",
    ),
    record("cosine_similarity", several(2, 4, 3), cosine),
    record("cosine_similarity", several(2, 2, 3, 4), cosine, "dim", dim=-1),
    record(
        "cosine_similarity",
        lambda r: (r.normal(size=(2, 1, 4)), r.normal(size=(3, 4))),
        lambda x, y, dim: cosine(x + 0 * y, y + 0 * x, dim),
        "broadcast",
        dim=2,
    ),
    record("pdist", several(1, 4, 3), spatial.distance.pdist),
    record("pairwise_distance", several(2, 4, 3), distance),
    record("pairwise_distance", several(2, 3), distance, "keepdim", p=3.0, keepdim=True),
    record(
        "pairwise_distance",
        lambda r: (r.normal(size=(4, 3)), r.normal(size=(1, 3))),
        distance,
        "broadcast",
        p=1.0,
    ),
    *reductions("cosine_embedding_loss", with_signs(2, 4, 3, labels=(4,)), cosine_embedding),
    record(
        "cosine_embedding_loss",
        with_signs(2, 3, labels=()),
        cosine_embedding,
        "no batch",
        margin=0.2,
    ),
    *reductions("triplet_margin_loss", several(3, 5, 3), triplet),
    record("triplet_margin_loss", several(3, 5, 3), triplet, "swap", p=3.0, swap=True, margin=0.4),
    *reductions("triplet_margin_with_distance_loss", several(3, 5, 3), triplet, swap=True),
    *reductions("ctc_loss", alignments(4, (4, 3), (2, 1)), ctc, prepare=normalized, **PIECEWISE),
    record(
        "ctc_loss",
        alignments(4, (4, 4), (1, 2), joined=True),
        ctc,
        "joined",
        prepare=normalized,
        **PIECEWISE,
    ),
    record(
        "ctc_loss", alignments(3, (3, 2), (0, 1)), ctc, "no labels", prepare=normalized, **PIECEWISE
    ),
    record(
        "ctc_loss", alignments(4, (4, 3), (2, 1)), ctc, "unnormalized", torch="", reduction="none"
    ),
    Sample(
        "nn.functional.weighted_sum",
        lambda r: (list(several(2)(r)), (0.3, 2.0)),
        reference=lambda losses, weights: np.dot(losses, weights),
        torch="",
    ),
]
