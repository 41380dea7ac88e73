"""Records of views by strides, of complex numbers as pairs, and of elements by number."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from samples.record import Sample, normal

import chainrule

__all__ = ["SAMPLES"]

linear = partial(Sample, second_order=False)


def parts(out: Any) -> list[Any]:
    """The real and imaginary parts: records differentiate real results."""
    return [(out * 1).real, (out * 1).imag]


def strided(x: np.ndarray, size: Any, stride: Any, offset: int = 0) -> np.ndarray:
    steps = [n * x.itemsize for n in stride]
    return np.lib.stride_tricks.as_strided(x.ravel()[offset:], size, steps)


def strided_scatter(x: np.ndarray, src: np.ndarray, size: Any, stride: Any) -> np.ndarray:
    out = x.copy()
    strided(out, size, stride)[...] = src
    return out


def select_scatter(x: np.ndarray, src: np.ndarray, dim: int, index: int) -> np.ndarray:
    out = x.copy()
    np.moveaxis(out, dim, 0)[index] = src
    return out


def slice_scatter(
    x: np.ndarray, src: np.ndarray, dim: int, start: int, end: int, step: int
) -> np.ndarray:
    out = x.copy()
    np.moveaxis(out, dim, 0)[start:end:step] = np.moveaxis(src, dim, 0)
    return out


def put(x: np.ndarray, index: np.ndarray, src: np.ndarray, accumulate: bool = False) -> np.ndarray:
    out = x.copy()
    if accumulate:
        np.add.at(out.reshape(-1), index, src)
    else:
        np.put(out, index, src)
    return out


def renorm(x: np.ndarray, p: float, dim: int, maxnorm: float) -> np.ndarray:
    axes = tuple(d for d in range(x.ndim) if d != dim % x.ndim)
    size = (np.abs(x) ** p).sum(axes, keepdims=True) ** (1 / p)
    return x * np.where(size > maxnorm, maxnorm / (size + 1e-7), 1)


def then(shape: tuple[int, ...], *rest: Any) -> Any:
    return lambda r: (r.normal(size=shape), *rest)


def two(first: tuple[int, ...], second: tuple[int, ...], *rest: Any) -> Any:
    return lambda r: (r.normal(size=first), r.normal(size=second), *rest)


SCATTERED = two((3, 4), (2, 2), (2, 2), (5, 2))
SAMPLES = [
    linear("as_strided", then((3, 4), (2, 3), (4, 1), 1), reference=strided),
    linear("as_strided", then((6,), (4, 3), (1, 1)), reference=strided, note="overlapping"),
    # PyTorch's gradient passes where the elements were replaced, and not where they are kept.
    linear("as_strided_scatter", SCATTERED, reference=strided_scatter, torch=""),
    linear("as_strided_scatter", SCATTERED, note="value", differentiable=False),
    linear(
        "view",
        lambda r: (r.integers(0, 9, size=(2, 3)), chainrule.float64),
        torch="Tensor.view",
        reference=lambda x, d: x.view(np.float64),
        differentiable=False,
        note="bits",
    ),
    linear("select_scatter", two((3, 4), (3,), 1, 2), reference=select_scatter),
    linear("slice_scatter", two((3, 5), (3, 2), 1, 1, 4, 2), reference=slice_scatter),
    linear(
        "view_as_complex",
        normal(3, 2),
        reference=lambda x: [x[:, 0], x[:, 1]],
        pick=parts,
    ),
    linear(
        "view_as_real",
        normal(3, 2),
        prepare=lambda x: (x * (1 + 2j),),
        reference=lambda x: np.stack([x.real, x.imag], -1),
    ),
    Sample(
        "polar",
        lambda r: (r.uniform(0.5, 2.0, size=(3, 4)), r.normal(size=(3, 4))),
        reference=lambda a, b: [a * np.cos(b), a * np.sin(b)],
        pick=parts,
    ),
    linear(
        "put",
        lambda r: (r.normal(size=(3, 4)), r.permutation(12)[:3], r.normal(size=3)),
        reference=put,
    ),
    linear(
        "put",
        lambda r: (r.normal(size=(3, 4)), r.integers(0, 12, size=9), r.normal(size=9), True),
        reference=put,
        note="accumulate",
    ),
    Sample(
        "unravel_index",
        lambda r: (r.integers(0, 24, size=5), (2, 3, 4)),
        reference=lambda i, shape: list(np.unravel_index(i, shape)),
        differentiable=False,
    ),
    Sample("renorm", then((3, 4), 2, 0, 1.5), reference=renorm),
    Sample("renorm", then((3, 4), 1, -1, 2.0), reference=renorm, note="p1"),
    Sample(
        "Tensor.where", lambda r: (r.normal(size=3), r.random(3) > 0.5, 0.0), second_order=False
    ),
]
