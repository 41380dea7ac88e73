"""Records of pooling, with references that visit every window in a loop."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from samples.conv import per_dim
from samples.record import Sample

__all__ = ["SAMPLES", "adaptive", "average", "maximum", "norm"]

# --- references -----------------------------------------------------------------------------------


def windows(
    spatial: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> list[list[list[int]]]:
    """For each dimension and each output, the places (maybe outside) that its window sees."""
    found = []
    for n, k, s, p, d in zip(spatial, kernel, stride, padding, dilation, strict=True):
        room = (n + 2 * p - d * (k - 1) - 1) / s
        count = (math.ceil(room) if ceil_mode else math.floor(room)) + 1
        starts = [i * s - p for i in range(count)]
        if ceil_mode and starts[-1] >= n:
            starts.pop()
        found.append([[start + j * d for j in range(k)] for start in starts])
    return found


def pooled(x: Any, places: list[list[list[int]]], function: Callable[..., Any]) -> Any:
    """``function`` of each window: of the places along each dimension and of the values there."""
    nd = len(places)
    out = np.zeros((*x.shape[:-nd], *map(len, places)))
    for at in np.ndindex(*map(len, places)):
        seen = [each[i] for each, i in zip(places, at, strict=True)]
        inside = [
            [j for j in axis if 0 <= j < n] for axis, n in zip(seen, x.shape[-nd:], strict=True)
        ]
        values = x[(..., *np.ix_(*inside))].reshape(*x.shape[:-nd], math.prod(map(len, inside)))
        out[(..., *at)] = function(values, seen)
    return out


def settings(nd: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any) -> list[Any]:
    stride = kernel_size if stride is None else stride
    return [per_dim(v, nd) for v in (kernel_size, stride, padding, dilation)]


def maximum(nd: int) -> Any:
    def reference(
        x: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> Any:
        numbers = settings(nd, kernel_size, stride, padding, dilation)
        places = windows(x.shape[-nd:], *numbers, ceil_mode)
        return pooled(x, places, lambda values, seen: values.max(axis=-1))

    return reference


def average(nd: int) -> Any:
    def reference(
        x: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
        dilation: Any = 1,
    ) -> Any:
        numbers = settings(nd, kernel_size, stride, padding, dilation)
        spatial, pad = x.shape[-nd:], numbers[2]

        def mean(values: Any, seen: Any) -> Any:
            count = 1
            for axis, n, p in zip(seen, spatial, pad, strict=True):
                margin = p if count_include_pad else 0
                count *= sum(-margin <= j < n + margin for j in axis)
            return values.sum(axis=-1) / (divisor_override or count)

        return pooled(x, windows(spatial, *numbers, ceil_mode), mean)

    return reference


def norm(nd: int) -> Any:
    def reference(x: Any, norm_type: float, kernel_size: Any, stride: Any = None) -> Any:
        numbers = settings(nd, kernel_size, stride, 0, 1)
        places = windows(x.shape[-nd:], *numbers, False)
        power = pooled(x, places, lambda values, seen: (values**norm_type).sum(axis=-1))
        return power ** (1 / norm_type)

    return reference


def adaptive(nd: int, function: Callable[..., Any]) -> Any:
    def reference(x: Any, output_size: Any) -> Any:
        spatial = x.shape[-nd:]
        wanted = (output_size,) * nd if isinstance(output_size, int) else output_size
        places = []
        for n, o in zip(spatial, wanted, strict=True):
            o = n if o is None else o
            bounds = [(math.floor(i * n / o), math.ceil((i + 1) * n / o)) for i in range(o)]
            places.append([list(range(a, b)) for a, b in bounds])
        return pooled(x, places, lambda values, seen: function(values, axis=-1))

    return reference


# --- records --------------------------------------------------------------------------------------

SHAPES = {1: (2, 2, 9), 2: (2, 2, 6, 5), 3: (1, 2, 4, 5, 4)}


def distinct(*shape: int) -> Any:
    """Values whose maxima are far from ties, in random order."""

    def args(r: np.random.Generator) -> tuple[Any, ...]:
        n = int(np.prod(shape))
        return (r.permutation(np.linspace(-2.0, 2.0, n)).reshape(shape),)

    return args


def record(name: str, nd: int, reference: Any, note: str, **kwargs: Any) -> Sample:
    torch = "" if kwargs.get("dilation", 1) != 1 and "avg" in name else f"nn.functional.{name}{nd}d"
    return Sample(f"{name}{nd}d", distinct(*SHAPES[nd]), kwargs, reference(nd), torch, note=note)


def in_each_dimension() -> list[Sample]:
    found = []
    for nd in (1, 2, 3):
        found += [
            record("max_pool", nd, maximum, "plain", kernel_size=2),
            record("max_pool", nd, maximum, "overlapping", kernel_size=3, stride=1),
            record(
                "max_pool",
                nd,
                maximum,
                "all",
                kernel_size=2,
                stride=2,
                padding=1,
                dilation=2,
                ceil_mode=True,
            ),
            record("avg_pool", nd, average, "plain", kernel_size=2),
            record("avg_pool", nd, average, "overlapping", kernel_size=3, stride=1, padding=1),
            record(
                "avg_pool",
                nd,
                average,
                "inside",
                kernel_size=3,
                stride=2,
                padding=1,
                ceil_mode=True,
                count_include_pad=False,
            ),
            record(
                "avg_pool", nd, average, "ceil", kernel_size=2, stride=3, padding=1, ceil_mode=True
            ),
            record("avg_pool", nd, average, "dilation", kernel_size=2, stride=1, dilation=2),
            record(
                "adaptive_avg_pool", nd, lambda nd: adaptive(nd, np.mean), "uneven", output_size=3
            ),
            record(
                "adaptive_max_pool", nd, lambda nd: adaptive(nd, np.max), "uneven", output_size=3
            ),
            record(
                "adaptive_avg_pool", nd, lambda nd: adaptive(nd, np.mean), "global", output_size=1
            ),
            record(
                "adaptive_max_pool", nd, lambda nd: adaptive(nd, np.max), "global", output_size=1
            ),
            Sample(
                f"lp_pool{nd}d",
                lambda r, nd=nd: (r.uniform(0.5, 2.0, size=SHAPES[nd]),),
                {"norm_type": 3.0, "kernel_size": 2, "stride": 1},
                norm(nd),
                f"nn.functional.lp_pool{nd}d",
            ),
        ]
    return found


def unpooling(nd: int, shape: tuple[int, ...], **kwargs: Any) -> Sample:
    """Maxima go back to where they came from, whatever their values are now."""

    def args(r: np.random.Generator) -> tuple[Any, ...]:
        pooled_shape = (*shape[:-nd], *[n // 2 for n in shape[-nd:]])
        at = [
            2 * np.arange(n).reshape(-1, *[1] * i)
            for i, n in enumerate(pooled_shape[: -nd - 1 : -1])
        ]
        steps = [1, *np.cumprod(shape[:-nd:-1])]
        index = sum(a * s for a, s in zip(at, steps, strict=True)) + r.integers(0, 2, pooled_shape)
        return (r.normal(size=pooled_shape), np.asarray(index, np.int64), 2)

    def reference(x: Any, index: Any, kernel: int, **_: Any) -> Any:
        out = np.zeros(shape)
        for lead in np.ndindex(*shape[:-nd]):
            out[lead].reshape(-1)[index[lead].reshape(-1)] = x[lead].reshape(-1)
        return out

    return Sample(
        f"max_unpool{nd}d",
        args,
        kwargs,
        reference,
        f"nn.functional.max_unpool{nd}d",
        note=f"{len(shape)} dimensions",
    )


SAMPLES: list[Sample] = [
    *in_each_dimension(),
    record("avg_pool", 2, average, "divisor", kernel_size=(2, 3), stride=1, divisor_override=5),
    record("adaptive_avg_pool", 2, lambda nd: adaptive(nd, np.mean), "None", output_size=(3, None)),
    record("adaptive_avg_pool", 2, lambda nd: adaptive(nd, np.mean), "larger", output_size=(7, 8)),
    Sample(
        "max_pool2d",
        distinct(2, 4, 4),
        {"kernel_size": (2, 1), "stride": (1, 2)},
        maximum(2),
        "nn.functional.max_pool2d",
        note="no batch",
    ),
    Sample(
        "max_pool2d",
        distinct(2, 2, 4, 4),
        {"kernel_size": 2, "return_indices": True},
        torch="nn.functional.max_pool2d",
        note="indices",
    ),
    Sample(
        "adaptive_max_pool2d",
        distinct(2, 2, 5, 4),
        {"output_size": 3, "return_indices": True},
        torch="nn.functional.adaptive_max_pool2d",
        note="indices",
    ),
    Sample(
        "max_pool2d",
        lambda r: (np.zeros((1, 1, 4, 4)),),
        {"kernel_size": 2, "return_indices": True},
        torch="nn.functional.max_pool2d",
        differentiable=False,
        note="ties",
    ),
    Sample(
        "avg_pool2d",
        distinct(2, 4, 4),
        {"kernel_size": 2},
        average(2),
        "nn.functional.avg_pool2d",
        note="no batch",
    ),
    Sample(
        "max_pool2d",
        distinct(0, 2, 4, 4),
        {"kernel_size": 2},
        maximum(2),
        "nn.functional.max_pool2d",
        note="no samples",
    ),
    Sample(
        "avg_pool2d",
        distinct(0, 2, 4, 4),
        {"kernel_size": 2},
        average(2),
        "nn.functional.avg_pool2d",
        note="no samples",
    ),
    unpooling(1, (2, 3, 8)),
    unpooling(2, (2, 2, 4, 6)),
    unpooling(2, (2, 5, 6), output_size=(5, 6)),
    unpooling(3, (1, 2, 4, 2, 4)),
]
