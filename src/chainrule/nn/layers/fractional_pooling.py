"""Max pooling by windows that start at random places: sizes shrink by any factor (Graham, 2014)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from chainrule.backend import dtypes
from chainrule.nn.layers.pooling import Maxima, Pool
from chainrule.ops.core.promotion import cast
from chainrule.ops.creation.patterns import arange
from chainrule.ops.creation.sampling import rand
from chainrule.ops.index.reading import gather
from chainrule.ops.layers.spatial import per_dim
from chainrule.ops.reduce.order import max
from chainrule.ops.shape.stacking import cat
from chainrule.ops.shape.views import reshape, squeeze, unsqueeze
from chainrule.tensor import Tensor
from chainrule.typing import Sizes

__all__ = [
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
]

Ratios = float | Sequence[float]


def _starts(u: Tensor, size: int, outputs: int, window: int) -> Tensor:
    """Where the windows of each plane start: steps that alternate, the last window at the end."""
    last = unsqueeze(cast(0 * u, dtypes.int64) + (size - window), -1)
    if outputs == 1:
        return last
    step = (size - window) / (outputs - 1)
    u = unsqueeze(u, -1)
    at = (arange(outputs - 1, dtype=u.dtype, device=u.device) + u) * step
    return cat([cast(at, dtypes.int64) - cast(u * step, dtypes.int64), last], -1)


def _pool(
    nd: int,
    input: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None,
    output_ratio: Ratios | None,
    samples: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """The maxima, and where they are in each plane."""
    op = f"fractional_max_pool{nd}d"
    if input.ndim == nd + 1:
        first = None if samples is None else samples[:1]  # numbers for a batch serve one, too
        out, places = _pool(nd, unsqueeze(input, 0), kernel_size, output_size, output_ratio, first)
        return squeeze(out, 0), squeeze(places, 0)
    if input.ndim != nd + 2:
        raise RuntimeError(
            f"{op}: expected an input of {nd + 1} or {nd + 2} dimensions, got {tuple(input.shape)}"
        )
    sizes, windows = input.shape[2:], per_dim(op, "kernel_size", kernel_size, nd)
    outputs = _outputs(op, nd, sizes, output_size, output_ratio)
    for size, window, count in zip(sizes, windows, outputs, strict=True):
        if count < 1 or count + window - 1 > size:
            raise RuntimeError(
                f"{op}: windows of {tuple(windows)} do not fit {tuple(outputs)} times into an "
                f"input of shape {tuple(input.shape)}"
            )
    n, c = input.shape[:2]
    if samples is None:
        samples = rand(n, c, nd, dtype=input.dtype, device=input.device)
    # PyTorch's order of the random numbers: width first in two dimensions, depth first in three.
    order = (1, 0) if nd == 2 else (0, 1, 2)
    index: Any = 0
    for d, (size, window, count) in enumerate(zip(sizes, windows, outputs, strict=True)):
        start = _starts(samples[:, :, order[d]], size, count, window)
        spots = unsqueeze(start, -1) + arange(window, dtype=dtypes.int64, device=input.device)
        shape = [n, c, *[1] * (2 * nd)]
        shape[2 + d], shape[2 + nd + d] = count, window
        index = index * size + reshape(spots, tuple(shape))
    counts, inside = (n, c, *outputs), math.prod(windows)
    flat = reshape(index, (n, c, math.prod(outputs) * inside))
    places = reshape(input, (n, c, math.prod(sizes)))
    values = reshape(gather(places, 2, flat), (*counts, inside))
    best, which = max(values, -1)
    found = gather(reshape(flat, (*counts, inside)), -1, unsqueeze(which, -1))
    return best, squeeze(found, -1)


def _outputs(
    op: str, nd: int, sizes: Sequence[int], given: Sizes | None, ratio: Ratios | None
) -> tuple[int, ...]:
    if given is not None:
        return tuple(per_dim(op, "output_size", given, nd))
    if ratio is None:
        raise ValueError(f"{op} requires specifying either an output_size or an output_ratio")
    return tuple(int(size * r) for size, r in zip(sizes, _ratios(ratio, nd), strict=True))


def _ratios(ratio: Ratios, nd: int) -> tuple[float, ...]:
    return (ratio,) * nd if isinstance(ratio, (int, float)) else tuple(ratio)


def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None = None,
    output_ratio: Ratios | None = None,
    return_indices: bool = True,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """:func:`fractional_max_pool2d` and where the maxima are."""
    return _pool(2, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None = None,
    output_ratio: Ratios | None = None,
    return_indices: bool = True,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """:func:`fractional_max_pool3d` and where the maxima are."""
    return _pool(3, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None = None,
    output_ratio: Ratios | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Maxima:
    """The maxima of windows that start at random, growing places: ``output_size`` of them."""
    found = _pool(2, input, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]


def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None = None,
    output_ratio: Ratios | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Maxima:
    """The maxima of windows that start at random, growing places: ``output_size`` of them."""
    found = _pool(3, input, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]


class _FractionalMaxPool(Pool):
    _random_samples: Tensor | None

    def __init__(
        self,
        kernel_size: Sizes,
        output_size: Sizes | None = None,
        output_ratio: Ratios | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ):
        super().__init__()
        name = type(self).__name__
        self.kernel_size = tuple(per_dim(name, "kernel_size", kernel_size, self.nd))
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = (
            None
            if output_size is None
            else tuple(per_dim(name, "output_size", output_size, self.nd))
        )
        self.output_ratio = None if output_ratio is None else _ratios(output_ratio, self.nd)
        if output_size is None and output_ratio is None:
            raise ValueError(
                f"{name} requires specifying either an output size, or a pooling ratio"
            )
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Maxima:
        return self.function(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPool):
    """Maxima of windows that start at random: y[n, c, i, j] = max of x[n, c, a_i.., b_j..].

    a_i = floor((i + u) s) - floor(u s), s = (H - k) / (H_out - 1), u uniform in [0, 1), drawn for
    each plane at every call; likewise b_j.

    Shape: (N, C, H, W) -> (N, C, H_out, W_out), or both without N.

    Args:
        kernel_size: k, the size of a window.
        output_size: (H_out, W_out), or one number for both.
        output_ratio: H_out / H and W_out / W instead, between 0 and 1.
        return_indices: also return where the maxima are, as :class:`MaxUnpool2d` takes them.

    >>> from chainrule import nn, ones
    >>> nn.FractionalMaxPool2d(2, output_ratio=0.7)(ones(1, 3, 10, 10)).shape
    chainrule.Size([1, 3, 7, 7])
    """

    nd, function = 2, staticmethod(fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPool):
    """Maxima of windows that start at random: y[n, c, i, ..] = max of x[n, c, a_i.., ..].

    a_i = floor((i + u) s) - floor(u s), s = (Z - k) / (Z_out - 1), u uniform in [0, 1), drawn for
    each volume at every call; likewise for height and width.

    Shape: (N, C, Z, H, W) -> (N, C, Z_out, H_out, W_out), or both without N.

    Args:
        kernel_size: k, the size of a window.
        output_size: (Z_out, H_out, W_out), or one number for all.
        output_ratio: Z_out / Z, H_out / H and W_out / W instead, between 0 and 1.
        return_indices: also return where the maxima are, as :class:`MaxUnpool3d` takes them.

    >>> from chainrule import nn, ones
    >>> nn.FractionalMaxPool3d(2, output_size=3)(ones(1, 2, 5, 6, 7)).shape
    chainrule.Size([1, 2, 3, 3, 3])
    """

    nd, function = 3, staticmethod(fractional_max_pool3d)
