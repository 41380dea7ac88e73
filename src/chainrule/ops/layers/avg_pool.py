"""Average pooling, which is linear, and what is made of it: the p-norm of each window."""

from __future__ import annotations

import math
from collections.abc import Callable

from chainrule.ops.core.arguments import placed_like
from chainrule.backend import K, dtypes
from chainrule.ops.core.primitive import Linear
from chainrule.ops.core.promotion import cast
from chainrule.ops.elementwise.functions import maximum, pow
from chainrule.ops.elementwise.logic import where
from chainrule.ops.elementwise.options import round
from chainrule.ops.layers.class_targets import check_floating
from chainrule.ops.layers.spatial import (
    Known,
    OutputSize,
    adapted_size,
    batched,
    divides,
    last_sizes,
    check_adaptive,
    per_dim,
    pooled_size,
    window_settings,
)
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Sizes

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
]
METHODS: tuple[str, ...] = ()
INPLACE: tuple[str, ...] = ()

# --- primitives -----------------------------------------------------------------------------------

_avg_pool = Linear(
    "avg_pool",
    lambda g, shape_in, size, **p: _avg_pool_transpose(g, size=last_sizes(shape_in, size), **p),
)
_avg_pool_transpose = Linear(
    "avg_pool_transpose",
    lambda g, shape_in, size, **p: _avg_pool(g, size=last_sizes(shape_in, size), **p),
)
_adaptive_avg_pool = Linear(
    "adaptive_avg_pool",
    lambda g, shape_in, size: _adaptive_avg_pool_transpose(g, size=last_sizes(shape_in, size)),
)
_adaptive_avg_pool_transpose = Linear(
    "adaptive_avg_pool_transpose",
    lambda g, shape_in, size: _adaptive_avg_pool(g, size=last_sizes(shape_in, size)),
)

# --- averages -------------------------------------------------------------------------------------

_known = Known()


def avg_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    *,
    dilation: Sizes = 1,
) -> Tensor:
    """The average of each window of ``input`` (N, C, L): see avg_pool2d.

    y[i] = mean over a of x[i stride + a dilation]
    """
    return _average(
        "avg_pool1d",
        1,
        input,
        kernel_size,
        stride,
        padding,
        ceil_mode,
        count_include_pad,
        None,
        dilation,
    )


def avg_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    dilation: Sizes = 1,
) -> Tensor:
    """The average of each window of ``input`` (N, C, H, W).

    y[i, j] = mean over a, b of x[i stride + a dilation, j stride + b dilation]

    ``stride`` is ``kernel_size`` if not given. ``ceil_mode`` keeps a last window that is partly
    outside. Zeros of the padding count as elements if ``count_include_pad``; ``divisor_override``
    divides by something else altogether. ``dilation``, which PyTorch has for max pooling alone,
    spaces the elements of a window.

    >>> import chainrule
    >>> chainrule.avg_pool2d(chainrule.ones(1, 4, 4), 2).shape
    chainrule.Size([1, 2, 2])
    """
    return _average(
        "avg_pool2d",
        2,
        input,
        kernel_size,
        stride,
        padding,
        ceil_mode,
        count_include_pad,
        divisor_override,
        dilation,
    )


def avg_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    dilation: Sizes = 1,
) -> Tensor:
    """The average of each window of ``input`` (N, C, Z, H, W): see avg_pool2d.

    y[h, i, j] = mean over a, b, c of
    x[h stride + a dilation, i stride + b dilation, j stride + c dilation]
    """
    return _average(
        "avg_pool3d",
        3,
        input,
        kernel_size,
        stride,
        padding,
        ceil_mode,
        count_include_pad,
        divisor_override,
        dilation,
    )


def _average(
    op: str,
    nd: int,
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None,
    padding: Sizes,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int | None,
    dilation: Sizes,
) -> Tensor:
    def pool(x: Tensor) -> Tensor:
        given = (kernel_size, stride, padding, ceil_mode, count_include_pad, divisor, dilation)
        settings = _known.get((op, x.array.shape, x.array.dtype), *given)
        if settings is None:
            windows = window_settings(op, nd, kernel_size, stride, padding, dilation)
            if divisor == 0:
                raise RuntimeError(f"{op}: divisor must be not zero")
            check_floating(op, x)
            size = pooled_size(op, x, nd, ceil_mode, windows)
            by = divisor
            if by is None and not ceil_mode and (count_include_pad or not any(windows["padding"])):
                by = math.prod(windows["kernel"])  # every window is whole
            settings = {"size": size, "divisor": by, "count_pad": count_include_pad, **windows}
            _known.put(settings, (op, x.array.shape, x.array.dtype), *given)
        return _avg_pool(x, **settings)

    if isinstance(input, Tensor) and input.dtype is dtypes.int64:
        by = divisor if divisor is not None else 0
        settings = (kernel_size, stride, padding, ceil_mode, count_include_pad)
        return _integer_average(lambda x, d: _average(op, nd, x, *settings, d, dilation), input, by)
    return batched(op, input, nd, pool)


def _integer_average(
    average: Callable[[Tensor, int | None], Tensor], input: Tensor, divisor: int
) -> Tensor:
    """The sum of each window divided by the number of its elements, cut to an integer."""
    total = average(cast(input, dtypes.float64), 1)
    if divisor:
        return cast(total / divisor, dtypes.int64)
    ones = placed_like(input, of_array(K.ones(tuple(input.shape), "float64")))
    share = average(ones, None) / maximum(average(ones, 1), 1)  # 1 by the number of elements
    count = round(1 / where(share > 0, share, 1))
    return cast(total / count, dtypes.int64)


# --- to a given size ------------------------------------------------------------------------------


def adaptive_avg_pool1d(input: Tensor, output_size: OutputSize) -> Tensor:
    """Average pooling of (N, C, L) to a given size: see adaptive_avg_pool2d.

    y[i] = mean over the elements from floor(i L / L_out) to ceil((i + 1) L / L_out)
    """
    return _adaptive_average("adaptive_avg_pool1d", 1, input, output_size)


def adaptive_avg_pool2d(input: Tensor, output_size: OutputSize) -> Tensor:
    """Average pooling of (N, C, H, W) to a given size; the windows follow from it.

    y[i, j] = mean over the rows from floor(i H / H_out) to ceil((i + 1) H / H_out), columns alike

    Output i is the average of the inputs from floor(i n / size) to ceil((i + 1) n / size). A size
    of None keeps the input's; ``output_size=1`` is global average pooling.

    >>> import chainrule
    >>> chainrule.adaptive_avg_pool2d(chainrule.ones(2, 3, 7, 9), (3, None)).shape
    chainrule.Size([2, 3, 3, 9])
    """
    return _adaptive_average("adaptive_avg_pool2d", 2, input, output_size)


def adaptive_avg_pool3d(input: Tensor, output_size: OutputSize) -> Tensor:
    """Average pooling of (N, C, Z, H, W) to a given size: see adaptive_avg_pool2d.

    y[h, i, j] = mean over the layers from floor(h Z / Z_out) to ceil((h + 1) Z / Z_out), rows and
    columns alike
    """
    return _adaptive_average("adaptive_avg_pool3d", 3, input, output_size)


def _adaptive_average(op: str, nd: int, input: Tensor, output_size: OutputSize) -> Tensor:
    check_adaptive(op, input, nd, output_size)

    def pool(x: Tensor) -> Tensor:
        check_floating(op, x)
        size = adapted_size(op, x, nd, output_size)
        spatial = last_sizes(x.shape, size)
        if not divides(size, spatial):
            return _adaptive_avg_pool(x, size=size)
        kernel = tuple([n // o for n, o in zip(spatial, size, strict=True)])
        return _avg_pool(
            x,
            size=size,
            kernel=kernel,
            stride=kernel,
            padding=(0,) * nd,
            dilation=(1,) * nd,
            divisor=math.prod(kernel),
            count_pad=True,
        )

    return batched(op, input, nd, pool)


# --- repeated -------------------------------------------------------------------------------------


def repeated_pixels(input: Tensor, times: tuple[int, ...]) -> Tensor:
    """``input`` with each element repeated so often along each of the last dimensions.

    y[i, j] = x[floor(i / times), floor(j / times)], the transpose of the sum over windows
    """
    nd = len(times)
    size = tuple([n * t for n, t in zip(input.shape[-nd:], times, strict=True)])
    return _avg_pool_transpose(
        input,
        size=size,
        kernel=times,
        stride=times,
        padding=(0,) * nd,
        dilation=(1,) * nd,
        divisor=1,
        count_pad=True,
    )


# --- powers ---------------------------------------------------------------------------------------


def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The p-norm of each window of ``input`` (N, C, L): see lp_pool2d.

    y[i] = (sum over a of x[i stride + a]^p)^(1 / p) with p the norm_type
    """
    return _lp_pool(avg_pool1d, 1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The p-norm of each window of ``input`` (N, C, H, W).

    y[i, j] = (sum over a, b of x[i stride + a, j stride + b]^p)^(1 / p) with p the norm_type
    """
    return _lp_pool(avg_pool2d, 2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    input: Tensor,
    norm_type: float,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The p-norm of each window of ``input`` (N, C, Z, H, W): see lp_pool2d.

    y[h, i, j] = (sum over a, b, c of x[h stride + a, i stride + b, j stride + c]^p)^(1 / p) with p
    the norm_type
    """
    return _lp_pool(avg_pool3d, 3, input, norm_type, kernel_size, stride, ceil_mode)


def _lp_pool(
    average: Callable[..., Tensor],
    nd: int,
    input: Tensor,
    norm_type: float,
    kernel_size: Sizes,
    stride: Sizes | None,
    ceil_mode: bool,
) -> Tensor:
    elements = math.prod(per_dim("lp_pool", "kernel_size", kernel_size, nd))
    mean = average(pow(input, norm_type), kernel_size, stride, 0, ceil_mode)
    return pow(mean * elements, 1.0 / norm_type)
