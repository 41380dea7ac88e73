"""Max pooling and its partial inverse: a choice in each window, then a linear gathering."""

from __future__ import annotations

import math
from typing import Literal, overload

from chainrule.backend import dtypes
from chainrule.ops.core.primitive import Nondifferentiable, Primitive
from chainrule.ops.core.promotion import check_kind
from chainrule.ops.layers.spatial import (
    Ints,
    Known,
    OutputSize,
    adapted_size,
    check_adaptive,
    batched,
    divides,
    last_sizes,
    pooled_size,
    window_settings,
)
from chainrule.tensor import Tensor
from chainrule.typing import Shape, Sizes

__all__ = [
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
]
METHODS: tuple[str, ...] = ()
INPLACE: tuple[str, ...] = ()

# --- primitives -----------------------------------------------------------------------------------

_max_pool_indices = Nondifferentiable("max_pool_indices", "carry")
_adaptive_max_pool_indices = Nondifferentiable("adaptive_max_pool_indices", "carry")
_checked_indices = Nondifferentiable("checked_indices", "carry")

# Gathering from each channel by index and scattering back, linear in the first input: each is the
# transpose of the other.
_gather = Primitive(
    "pool_gather",
    lambda g, out, x, index, needs, nd, unique: (
        _scatter(g, index, size=tuple(x.shape[-nd:]), unique=unique),
        None,
    ),
    lambda tangents, out, x, index, **p: _gather(tangents[0], index, **p),
    batch="carry",
    saves_out=False,
)
_scatter = Primitive(
    "pool_scatter",
    lambda g, out, x, index, needs, size, unique: (
        _gather(g, index, nd=len(size), unique=unique),
        None,
    ),
    lambda tangents, out, x, index, **p: _scatter(tangents[0], index, **p),
    batch="carry",
    saves_out=False,
)


# --- maxima ---------------------------------------------------------------------------------------

_known = Known()


@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: Literal[False] = False,
) -> Tensor: ...
@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]: ...
def max_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """The maximum of each window of ``input`` (N, C, L): see max_pool2d.

    y[i] = max over a of x[i stride + a dilation]
    """
    return _max_pool(
        "max_pool1d", 1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices
    )


@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: Literal[False] = False,
) -> Tensor: ...
@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]: ...
def max_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """The maximum of each window of ``input`` (N, C, H, W).

    y[i, j] = max over a, b of x[i stride + a dilation, j stride + b dilation]

    ``stride`` is ``kernel_size`` if not given. ``ceil_mode`` keeps a last window that is partly
    outside. With ``return_indices``, also the index of each maximum within its channel, as
    max_unpool2d takes it. Of equal maxima the first gets the gradient.

    >>> import chainrule
    >>> x = chainrule.tensor([[[1.0, 2.0, 5.0], [4.0, 3.0, 0.0]]])
    >>> chainrule.max_pool2d(x, 2, stride=1)
    tensor([[[4., 5.]]])
    """
    return _max_pool(
        "max_pool2d", 2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices
    )


@overload
def max_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: Literal[False] = False,
) -> Tensor: ...
@overload
def max_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]: ...
def max_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """The maximum of each window of ``input`` (N, C, Z, H, W): see max_pool2d.

    y[h, i, j] = max over a, b, c of
    x[h stride + a dilation, i stride + b dilation, j stride + c dilation]
    """
    return _max_pool(
        "max_pool3d", 3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices
    )


def _max_pool(
    op: str,
    nd: int,
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool,
    return_indices: bool,
) -> Tensor | tuple[Tensor, Tensor]:
    def pool(x: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        check_kind(op, "biuf", x.array.dtype)
        given = (kernel_size, stride, padding, dilation, ceil_mode)
        found = _known.get((op, x.array.shape), *given)
        if found is None:
            windows = window_settings(op, nd, kernel_size, stride, padding, dilation)
            size = pooled_size(op, x, nd, ceil_mode, windows)
            found = {"size": size, **windows}, _apart(windows)
            _known.put(found, (op, x.array.shape), *given)
        settings, unique = found
        narrow = not return_indices and _is_narrow(x, nd)
        index = _max_pool_indices(x, **settings, narrow=narrow)
        values = _gather(x, index, nd=nd, unique=unique)
        return (values, index) if return_indices else values

    return batched(op, input, nd, pool)


def _is_narrow(x: Tensor, nd: int) -> bool:
    """Whether places in a channel fit into 32 bits: indices that nobody sees take half the memory
    until the backward pass."""
    return math.prod(x.shape[-nd:]) < 1 << 31


def _apart(windows: dict[str, Ints]) -> bool:
    """Whether no two windows share an element."""
    each = zip(windows["kernel"], windows["stride"], windows["dilation"], strict=True)
    return all(s > (k - 1) * d for k, s, d in each)


# --- to a given size ------------------------------------------------------------------------------


@overload
def adaptive_max_pool1d(
    input: Tensor, output_size: OutputSize, return_indices: Literal[False] = False
) -> Tensor: ...
@overload
def adaptive_max_pool1d(
    input: Tensor, output_size: OutputSize, return_indices: Literal[True]
) -> tuple[Tensor, Tensor]: ...
def adaptive_max_pool1d(
    input: Tensor, output_size: OutputSize, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """Max pooling of (N, C, L) to a given size: see adaptive_max_pool2d.

    y[i] = max over the elements from floor(i L / L_out) to ceil((i + 1) L / L_out)
    """
    return _adaptive_max_pool("adaptive_max_pool1d", 1, input, output_size, return_indices)


@overload
def adaptive_max_pool2d(
    input: Tensor, output_size: OutputSize, return_indices: Literal[False] = False
) -> Tensor: ...
@overload
def adaptive_max_pool2d(
    input: Tensor, output_size: OutputSize, return_indices: Literal[True]
) -> tuple[Tensor, Tensor]: ...
def adaptive_max_pool2d(
    input: Tensor, output_size: OutputSize, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """Max pooling of (N, C, H, W) to a given size; the windows follow from it (None keeps a size).

    y[i, j] = max over the rows from floor(i H / H_out) to ceil((i + 1) H / H_out), columns alike

    Output i is the maximum of the inputs from floor(i n / size) to ceil((i + 1) n / size).
    """
    return _adaptive_max_pool("adaptive_max_pool2d", 2, input, output_size, return_indices)


@overload
def adaptive_max_pool3d(
    input: Tensor, output_size: OutputSize, return_indices: Literal[False] = False
) -> Tensor: ...
@overload
def adaptive_max_pool3d(
    input: Tensor, output_size: OutputSize, return_indices: Literal[True]
) -> tuple[Tensor, Tensor]: ...
def adaptive_max_pool3d(
    input: Tensor, output_size: OutputSize, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """Max pooling of (N, C, Z, H, W) to a given size: see adaptive_max_pool2d.

    y[h, i, j] = max over the layers from floor(h Z / Z_out) to ceil((h + 1) Z / Z_out), rows and
    columns alike
    """
    return _adaptive_max_pool("adaptive_max_pool3d", 3, input, output_size, return_indices)


def _adaptive_max_pool(
    op: str, nd: int, input: Tensor, output_size: OutputSize, return_indices: bool
) -> Tensor | tuple[Tensor, Tensor]:
    check_adaptive(op, input, nd, output_size)

    def pool(x: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        check_kind(op, "biuf", x.array.dtype)
        size = adapted_size(op, x, nd, output_size)
        narrow = not return_indices and _is_narrow(x, nd)
        index = _adaptive_max_pool_indices(x, size=size, narrow=narrow)
        values = _gather(x, index, nd=nd, unique=divides(size, last_sizes(x.shape, size)))
        return (values, index) if return_indices else values

    return batched(op, input, nd, pool)


# --- put back -------------------------------------------------------------------------------------


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Shape | None = None,
) -> Tensor:
    """A partial inverse of max_pool1d: see max_unpool2d.

    y = 0 but for y[indices[i]] = x[i]
    """
    return _max_unpool("max_unpool1d", 1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Shape | None = None,
) -> Tensor:
    """A partial inverse of max_pool2d: y = 0 but for y[indices[i, j]] = x[i, j].

    ``output_size`` chooses among the sizes which pooling would bring to the size of ``input``.
    """
    return _max_unpool("max_unpool2d", 2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Shape | None = None,
) -> Tensor:
    """A partial inverse of max_pool3d: see max_unpool2d.

    y = 0 but for y[indices[h, i, j]] = x[h, i, j]
    """
    return _max_unpool("max_unpool3d", 3, input, indices, kernel_size, stride, padding, output_size)


def _max_unpool(
    op: str,
    nd: int,
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None,
    padding: Sizes,
    output_size: Shape | None,
) -> Tensor:
    if tuple(indices.shape) != tuple(input.shape):
        raise RuntimeError(
            f"{op}: expected shape of indices to be same as that of the input tensor "
            f"{tuple(input.shape)}, but got {tuple(indices.shape)}"
        )
    if indices.dtype is not dtypes.int64:
        raise RuntimeError(f"{op}: elements in indices should be int64 but got {indices.dtype}")
    if input.ndim not in (nd + 1, nd + 2):
        raise RuntimeError(
            f"{op}: expected {nd + 1}D (unbatched) or {nd + 2}D (batched) input, but got input of "
            f"size {tuple(input.shape)}"
        )
    k, s, p, _ = window_settings(op, nd, kernel_size, stride, padding, 1).values()
    each = zip(input.shape[-nd:], k, s, p, strict=True)
    default = tuple([(n - 1) * b + a - 2 * c for n, a, b, c in each])
    size = default if output_size is None else _unpooled_size(op, output_size, default, s)
    index = _checked_indices(indices, elements=math.prod(size))
    return _scatter(input, index, size=size, unique=True)


def _unpooled_size(op: str, output_size: Shape, default: Ints, stride: Ints) -> Ints:
    nd = len(default)
    size = tuple(output_size)
    if len(size) not in (nd, nd + 2):
        raise ValueError(
            f"{op}: output_size should be a sequence of {nd} or {nd + 2} elements, but it has a "
            f"length of {len(size)}"
        )
    size = size[-nd:]
    for n, d, s in zip(size, default, stride, strict=True):
        if not d - s < n < d + s:
            raise ValueError(
                f"{op}: invalid output_size {size}: each size must be less than one stride "
                f"{stride} away from {default}"
            )
    return size
