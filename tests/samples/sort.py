"""Records of sorting, searching and counting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from samples.record import Sample, ints, normal

__all__ = ["SAMPLES"]

Args = Callable[[np.random.Generator], tuple[Any, ...]]


def then(args: Args, *more: Any) -> Args:
    """An input, then arguments that are the same in every call."""
    return lambda r: (*args(r), *more)


def in_rows(*shape: int) -> Args:
    """Sorted numbers, and the same number of rows of values to look for among them."""

    def args(r: np.random.Generator) -> tuple[Any, ...]:
        return np.sort(r.normal(size=shape), axis=-1), r.normal(size=(*shape[:-1], 3))

    return args


# --- references -----------------------------------------------------------------------------------


def order(x: Any, dim: int = -1, descending: bool = False) -> Any:
    return np.argsort(-x if descending else x, axis=dim, kind="stable")


def in_order(x: Any, dim: int = -1, descending: bool = False) -> list[Any]:
    index = order(x, dim, descending)
    return [np.take_along_axis(x, index, dim), index]


def first_of(x: Any, k: int, dim: int = -1, largest: bool = True) -> list[Any]:
    return [np.take(part, range(k), axis=dim) for part in in_order(x, dim, largest)]


def kth(x: Any, k: int, dim: int = -1, keepdim: bool = False) -> list[Any]:
    return [np.take(part, [k - 1] if keepdim else k - 1, axis=dim) for part in in_order(x, dim)]


def search(sequence: Any, values: Any, right: bool = False) -> Any:
    side = "right" if right else "left"
    if sequence.ndim == 1:
        return np.searchsorted(sequence, values, side)
    rows = zip(sequence, values, strict=True)
    return np.stack([np.searchsorted(s, v, side) for s, v in rows])


def runs(x: Any) -> list[Any]:
    starts = np.flatnonzero(np.diff(x, prepend=x[0] - 1))
    return [x[starts], np.diff(np.append(starts, len(x)))]


def integers(name: str, *args: Any, **kwargs: Any) -> Sample:
    return Sample(name, *args, differentiable=False, **kwargs)


def choice(name: str, *args: Any, **kwargs: Any) -> Sample:
    """Piecewise linear: the second derivative is zero."""
    return Sample(name, *args, second_order=False, **kwargs)


SAMPLES: list[Sample] = [
    choice("sort", normal(3, 5), reference=in_order),
    choice("sort", then(normal(4, 3), 0, True), reference=in_order, note="descending"),
    choice(
        "sort",
        normal(2, 3, 4),
        {"dim": -2, "stable": True},
        reference=lambda x, dim: in_order(x, dim),
        note="stable",
    ),
    choice("sort", normal(), reference=lambda x: [x, np.array(0)], note="no dimensions"),
    choice("sort", normal(2, 0), reference=in_order, note="empty"),
    integers(
        "sort",
        ints(0, 3, 2, 8),
        {"descending": True, "stable": True},
        note="ties",
        reference=lambda x, descending: in_order(x, -1, descending),
    ),
    integers("argsort", normal(3, 5), reference=order),
    integers("argsort", then(normal(4, 3), 0, True), reference=order, note="descending"),
    choice("msort", normal(4, 3), reference=lambda x: np.sort(x, axis=0)),
    choice("topk", then(normal(3, 5), 2), reference=first_of),
    choice(
        "topk", then(normal(5, 3), 2, 0), {"largest": False}, reference=first_of, note="smallest"
    ),
    choice("topk", then(normal(2, 300), 4), reference=first_of, note="few of many"),
    choice("topk", then(normal(2, 3), 0), reference=first_of, note="none"),
    choice("kthvalue", then(normal(3, 5), 2), reference=kth),
    choice("kthvalue", then(normal(4, 3), 4, 0, True), reference=kth, note="keepdim"),
    integers("unique", ints(0, 4, 3, 4), vmap=False, reference=np.unique),
    integers(
        "unique",
        ints(0, 4, 9),
        {"return_inverse": True, "return_counts": True},
        vmap=False,
        reference=lambda x: list(np.unique(x, return_inverse=True, return_counts=True)),
        note="inverse and counts",
    ),
    integers(
        "unique",
        ints(0, 2, 6, 2),
        {"dim": 0},
        vmap=False,
        note="rows",
        reference=lambda x: np.unique(x, axis=0),
    ),
    integers(
        "unique_consecutive", ints(0, 2, 12), {"return_counts": True}, vmap=False, reference=runs
    ),
    integers("bincount", ints(0, 5, 9), {"minlength": 7}, vmap=False, reference=np.bincount),
    integers(
        "bincount",
        lambda r: (r.integers(0, 5, size=9), r.normal(size=9)),
        vmap=False,
        reference=np.bincount,
        note="weights",
    ),
    integers("searchsorted", in_rows(6), reference=search),
    integers("searchsorted", in_rows(2, 6), {"right": True}, reference=search, note="rows"),
    integers(
        "searchsorted",
        lambda r: (np.arange(5), r.integers(0, 5, size=(2, 3))),
        {"right": True},
        reference=search,
        note="right",
    ),
    integers(
        "bucketize",
        lambda r: (r.normal(size=(2, 3)), np.sort(r.normal(size=4))),
        reference=lambda x, edges: np.searchsorted(edges, x),
    ),
    integers(
        "histc",
        normal(20),
        {"bins": 5, "min": -2, "max": 2},
        reference=lambda x, bins, min, max: np.histogram(x, bins, (min, max))[0] * 1.0,
    ),
    integers(
        "histc",
        normal(2, 9),
        {"bins": 4},
        vmap=False,
        note="whole range",
        reference=lambda x, bins: np.histogram(x, bins)[0] * 1.0,
    ),
    integers(
        "isin",
        lambda r: (r.integers(0, 9, size=(3, 4)), r.integers(0, 9, size=5)),
        reference=np.isin,
    ),
    integers(
        "isin",
        lambda r: (r.integers(0, 9, size=(3, 4)), r.integers(0, 9, size=(2, 2))),
        {"invert": True},
        reference=lambda x, s: ~np.isin(x, s),
        note="inverted",
    ),
]
