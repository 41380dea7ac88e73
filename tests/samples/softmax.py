"""Records of softmax and the cross-entropies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from samples.record import Sample
from scipy import special

import chainrule

__all__ = ["SAMPLES", "cross_entropy", "nll"]

Args = Callable[[np.random.Generator], tuple[Any, ...]]

# --- arguments ------------------------------------------------------------------------------------


def logits(*shape: int, more: tuple[Any, ...] = ()) -> Args:
    """One input, then arguments that are the same in every call."""
    return lambda r: (np.asarray(2 * r.normal(size=shape)), *more)


def classes(*shape: int, ignored: int | None = None, weighted: bool = False) -> Args:
    """Logits and class numbers (of which every third is to be ignored), and weights if asked."""

    def args(r: np.random.Generator) -> tuple[Any, ...]:
        c = shape[0] if len(shape) == 1 else shape[1]
        target = np.asarray(r.integers(0, c, size=shape[:1] + shape[2:] if len(shape) > 1 else ()))
        if ignored is not None:
            target.reshape(-1)[::3] = ignored
        weights = (r.uniform(0.5, 2.0, size=c),) if weighted else ()
        return (2 * r.normal(size=shape), target, *weights)

    return args


def soft(*shape: int) -> Args:
    """Logits and a distribution over the classes for each sample."""

    def args(r: np.random.Generator) -> tuple[Any, ...]:
        p = r.uniform(0.1, 1.0, size=shape)
        return (2 * r.normal(size=shape), p / p.sum(axis=min(1, len(shape) - 1), keepdims=True))

    return args


def two_classes(
    *shape: int, low: float = -3.0, high: float = 3.0, more: tuple[int, ...] = ()
) -> Args:
    """Inputs and targets, and a weight of the shape ``more`` if it is given."""

    def args(r: np.random.Generator) -> tuple[Any, ...]:
        weights = (r.uniform(0.5, 2.0, size=more),) if more else ()
        return (r.uniform(low, high, size=shape), r.uniform(0.1, 0.9, size=shape), *weights)

    return args


# --- references -----------------------------------------------------------------------------------


def nll(
    logp: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean"
) -> Any:
    """Sample by sample, as it is written in a book."""
    axis = min(1, logp.ndim - 1)
    rows = np.moveaxis(logp, axis, -1)
    losses, weights = np.zeros(target.shape), np.zeros(target.shape)
    for i in np.ndindex(target.shape):
        t = target[i]
        if t != ignore_index:
            weights[i] = 1.0 if weight is None else weight[t]
            losses[i] = -weights[i] * rows[i][t]
    if reduction == "none":
        return losses
    return losses.sum() if reduction == "sum" else losses.sum() / weights.sum()


def cross_entropy(
    x: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    """From probabilities: class numbers are turned into one-hot vectors and those are smoothed."""
    axis = min(1, x.ndim - 1)
    c = x.shape[axis]
    w = np.ones(c) if weight is None else weight
    rows, numbers = np.moveaxis(x, axis, -1), target.dtype.kind == "i"
    kept = target != ignore_index if numbers else np.ones(rows.shape[:-1], bool)
    hot = np.eye(c)[np.where(kept, target, 0)] if numbers else np.moveaxis(target, axis, -1)
    hot = hot * (1 - label_smoothing) + label_smoothing / c
    losses = -(kept[..., None] * w * hot * special.log_softmax(rows, axis=-1)).sum(axis=-1)
    if reduction != "mean":
        return losses if reduction == "none" else losses.sum()
    count = w[target[kept]].sum() if numbers else losses.size
    return losses.sum() / count


def reduced(losses: Any, reduction: str) -> Any:
    if reduction == "none":
        return losses
    return losses.sum() if reduction == "sum" else losses.mean()


def bce(x: Any, y: Any, weight: Any = 1.0, reduction: str = "mean") -> Any:
    return reduced(-weight * (special.xlogy(y, x) + special.xlog1py(1 - y, -x)), reduction)


def bce_with_logits(x: Any, y: Any, weight: Any = 1.0, reduction: str = "mean") -> Any:
    return bce(special.expit(x), y, weight, reduction)


def with_pos_weight(x: Any, y: Any, pos_weight: Any) -> Any:
    p = special.expit(x)
    return -(pos_weight * y * np.log(p) + (1 - y) * np.log(1 - p)).mean()


# --- records --------------------------------------------------------------------------------------

CE, NLL = "nn.functional.cross_entropy", "nn.functional.nll_loss"
BCE = "nn.functional.binary_cross_entropy"
BCE_LOGITS = "nn.functional.binary_cross_entropy_with_logits"


def softmaxes() -> list[Sample]:
    found = []
    for name, function in (("softmax", special.softmax), ("log_softmax", special.log_softmax)):
        found += [
            Sample(
                name,
                logits(2, 3, 4, more=(dim,)),
                note=f"dim {dim}",
                reference=lambda x, dim, f=function: f(x, axis=dim),
            )
            for dim in (0, 1, -1)
        ]
        found += [
            Sample(
                name, logits(more=(0,)), note="scalar", reference=lambda x, dim, f=function: f(x)
            ),
            Sample(name, logits(0, 3, more=(1,)), note="no rows", reference=lambda x, dim: x),
            Sample(name, logits(3, 0, more=(1,)), note="no classes", reference=lambda x, dim: x),
            Sample(
                name,
                logits(4, more=(0,)),
                kwargs={"dtype": chainrule.float64},
                note="dtype",
                float32=False,
            ),
            Sample(
                name,
                lambda r: (r.normal(size=(2, 3)) * 300, 1),
                note="large",
                float32=False,
                reference=lambda x, dim, f=function: f(x, axis=dim),
            ),
        ]
    return found


SAMPLES: list[Sample] = [
    *softmaxes(),
    *[
        Sample("cross_entropy", classes(5, 3), {"reduction": how}, cross_entropy, CE, note=how)
        for how in ("mean", "sum", "none")
    ],
    *[
        Sample(
            "cross_entropy",
            classes(5, 3, ignored=-100),
            {"reduction": how},
            cross_entropy,
            CE,
            note=f"ignored, {how}",
        )
        for how in ("mean", "sum", "none")
    ],
    Sample(
        "cross_entropy",
        classes(4, 3, ignored=1),
        {"ignore_index": 1},
        cross_entropy,
        CE,
        note="ignored class",
    ),
    Sample("cross_entropy", classes(4), {}, cross_entropy, CE, note="no batch"),
    Sample("cross_entropy", classes(2, 3, 4), {}, cross_entropy, CE, note="sequence"),
    Sample("cross_entropy", classes(2, 3, 2, 2, ignored=-100), {}, cross_entropy, CE, note="image"),
    Sample("cross_entropy", classes(0, 3), {"reduction": "sum"}, cross_entropy, CE, note="empty"),
    Sample("cross_entropy", classes(5, 3, weighted=True), {}, cross_entropy, "", note="weight"),
    Sample(
        "cross_entropy",
        classes(2, 3, 4, weighted=True, ignored=-100),
        {"label_smoothing": 0.2},
        cross_entropy,
        "",
        note="weight, smoothed",
    ),
    Sample(
        "cross_entropy",
        classes(5, 3, ignored=-100),
        {"label_smoothing": 0.3},
        cross_entropy,
        CE,
        note="smoothed",
    ),
    Sample(
        "cross_entropy",
        classes(5, 3),
        {"label_smoothing": 0.3, "reduction": "none"},
        cross_entropy,
        CE,
        note="smoothed, none",
    ),
    Sample(
        "cross_entropy",
        classes(2, 3, 2, 2, ignored=-100),
        {"label_smoothing": 0.1, "reduction": "sum"},
        cross_entropy,
        CE,
        note="smoothed image",
    ),
    Sample(
        "cross_entropy",
        classes(4),
        {"label_smoothing": 1.0},
        cross_entropy,
        CE,
        note="smoothed, no batch",
    ),
    Sample(
        "cross_entropy",
        classes(0, 3),
        {"label_smoothing": 0.1, "reduction": "sum"},
        cross_entropy,
        CE,
        note="smoothed, empty",
    ),
    Sample("cross_entropy", soft(4, 3), {}, cross_entropy, CE, note="soft"),
    Sample(
        "cross_entropy", soft(3), {"reduction": "sum"}, cross_entropy, CE, note="soft, no batch"
    ),
    Sample(
        "cross_entropy",
        soft(2, 3, 2),
        {"label_smoothing": 0.1, "reduction": "none"},
        cross_entropy,
        CE,
        note="soft, smoothed",
    ),
    *[
        Sample("nll_loss", classes(5, 3, ignored=-100), {"reduction": how}, nll, NLL, note=how)
        for how in ("mean", "sum", "none")
    ],
    Sample("nll_loss", classes(2, 3, 2, 2), {}, nll, NLL, note="image"),
    Sample("nll_loss", classes(3), {}, nll, NLL, note="no batch"),
    Sample("nll_loss", classes(5, 3, weighted=True), {}, nll, "", note="weight"),
    Sample(
        "nll_loss",
        classes(5, 3, weighted=True, ignored=-100),
        {"reduction": "none"},
        nll,
        "",
        note="weight, none",
    ),
    *[
        Sample(
            "binary_cross_entropy_with_logits",
            two_classes(4, 3),
            {"reduction": how},
            bce_with_logits,
            BCE_LOGITS,
            note=how,
        )
        for how in ("mean", "sum", "none")
    ],
    Sample(
        "binary_cross_entropy_with_logits",
        two_classes(4, 3, more=(3,)),
        {},
        bce_with_logits,
        BCE_LOGITS,
        torch_call=lambda torch, x, y, w: (
            torch.nn.functional.binary_cross_entropy_with_logits(x, y) * 0
            + (
                torch.nn.functional.binary_cross_entropy_with_logits(x, y, reduction="none") * w
            ).mean()
        ),
        note="weight",
    ),
    Sample(
        "binary_cross_entropy_with_logits",
        two_classes(0, 3),
        {"reduction": "sum"},
        bce_with_logits,
        BCE_LOGITS,
        note="empty",
    ),
    Sample(
        "binary_cross_entropy_with_logits",
        two_classes(4, 3, more=(3,)),
        prepare=lambda x, y, w: (x, y, None, "mean", w),
        torch="",
        reference=lambda x, y, weight, reduction, w: with_pos_weight(x, y, w),
        note="pos_weight",
    ),
    *[
        Sample(
            "binary_cross_entropy",
            two_classes(4, 3, low=0.05, high=0.95),
            {"reduction": how},
            bce,
            BCE,
            note=how,
        )
        for how in ("mean", "sum", "none")
    ],
    Sample(
        "binary_cross_entropy",
        two_classes(4, 3, low=0.05, high=0.95, more=(4, 3)),
        {},
        bce,
        "",
        note="weight",
    ),
]
