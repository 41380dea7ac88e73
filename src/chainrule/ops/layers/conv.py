"""Convolution and its transpose, in one to three dimensions."""

from __future__ import annotations

from typing import Any

from chainrule.graph import mode
from chainrule.ops.core.pointwise import F32, F64
from chainrule.ops.core.primitive import Bilinear
from chainrule.ops.core.rounding import rounds_product_once
from chainrule.ops.core.recording import affine
from chainrule.ops.layers.conv_primitives import (
    biased_convolution,
    convolution,
    convolution_input,
)
from chainrule.ops.layers.spatial import (
    Ints,
    Known,
    batched,
    conv_output_size,
    conv_transpose_output_size,
    listed,
    output_size,
    padding_of,
    per_dim,
    positive,
    space_of,
    transposed_size,
)
from chainrule.ops.shape.views import reshape
from chainrule.tensor import Tensor, check_layout
from chainrule.typing import Sizes

__all__ = [
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_output_size",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "conv_transpose_output_size",
]
METHODS: tuple[str, ...] = ()
INPLACE: tuple[str, ...] = ()

# --- convolution ----------------------------------------------------------------------------------


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation of ``input`` (N, C, L) with ``weight`` (C_out, C / groups, R): see conv2d.

    y[n, o, i] = bias[o] + sum over c, a of w[o, c, a] * x[n, c, i stride + a dilation - padding]
    """
    return _conv("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation of ``input`` (N, C, H, W) with ``weight`` (C_out, C / groups, kH, kW).

    y[n, o, i, j] = bias[o] + sum over c, a, b of
    w[o, c, a, b] * x[n, c, i stride + a dilation - padding, j stride + b dilation - padding]

    ``padding`` is a number of zeros for both sides, "valid" (none) or "same" (as many as keep the
    size). With ``groups``, each group of input channels makes its own output channels.

    >>> import chainrule
    >>> x = chainrule.ones(1, 3, 8, 8)
    >>> chainrule.conv2d(x, chainrule.ones(4, 3, 3, 3), stride=2, padding=1).shape
    chainrule.Size([1, 4, 4, 4])
    """
    return _conv("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation of ``input`` (N, C, Z, H, W) with ``weight`` (C_out, C / groups, *kernel):
    that of conv2d with one dimension more."""
    return _conv("conv3d", 3, input, weight, bias, stride, padding, dilation, groups)


_known = Known()


def _conv(
    op: str,
    nd: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sizes,
    padding: Sizes | str,
    dilation: Sizes,
    groups: int,
) -> Tensor:
    def convolve(x: Tensor) -> Tensor:
        if mode.flags > 1 or not isinstance(bias, Tensor) or not isinstance(weight, Tensor):
            params = _conv_settings(op, nd, x, weight, bias, stride, padding, dilation, groups)
            return _with_bias(x, convolution, weight, bias, params)
        shapes = (op, x.array.shape, weight.array.shape, bias.array.shape)
        params = _known.get(shapes, stride, padding, dilation, groups)
        if params is None:
            params = _conv_settings(op, nd, x, weight, bias, stride, padding, dilation, groups)
            _known.put(params, shapes, stride, padding, dilation, groups)
        out = _ordinaryconvolution(op, x, weight, bias, params)
        return _with_bias(x, convolution, weight, bias, params) if out is None else out

    return batched(op, input, nd, convolve)


def _conv_settings(
    op: str,
    nd: int,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sizes,
    padding: Sizes | str,
    dilation: Sizes,
    groups: int,
) -> dict[str, Any]:
    """The parameters of the primitive, once everything is known to fit."""
    out_channels, channels = _check_weight(op, nd, weight, groups)
    _check_operands(op, x, weight, bias, groups, channels * groups, out_channels)
    kernel = space_of(weight.shape)
    s, d = _steps(op, nd, stride, dilation)
    before, both = padding_of(op, padding, kernel, s, d)
    sizes = space_of(x.shape)
    size = tuple(map(output_size, sizes, kernel, s, both, d))
    if min(size) < 1 or min(sizes) + min(both) < 1:
        raise RuntimeError(
            f"{op}: calculated padded input size per channel: "
            f"{listed(map(sum, zip(sizes, both, strict=True)))}. Kernel size: "
            f"{listed(kernel)}, dilation {d}. Kernel size can't be greater than actual input "
            "size; use a larger input, more padding or a smaller kernel"
        )
    return {"size": size, "stride": s, "padding": before, "dilation": d, "groups": groups}


def _ordinaryconvolution(
    op: str, input: Tensor, weight: Tensor, bias: Tensor, params: dict[str, Any]
) -> Tensor | None:
    """A convolution whose shapes are known to fit; None if the type is not an ordinary one."""
    x, w, b = input.array, weight.array, bias.array
    dtype = x.dtype
    if dtype is not w.dtype or dtype is not b.dtype:
        _check_types(op, input, weight, bias)
    if dtype is not F32 and dtype is not F64:
        return None
    array = convolution.raw(x, w, bias=b, **params)
    return affine(biased_convolution, input, weight, bias, array, mode.flags, params)


@rounds_product_once
def _with_bias(
    x: Tensor, op: Bilinear, weight: Tensor, bias: Tensor | None, params: dict[str, Any]
) -> Tensor:
    out: Tensor = op(x, weight, **params)
    return out if bias is None else out + reshape(bias, (-1, *[1] * len(params["size"])))


def _steps(op: str, nd: int, stride: Sizes, dilation: Sizes) -> tuple[Ints, Ints]:
    s, d = per_dim(op, "stride", stride, nd), per_dim(op, "dilation", dilation, nd)
    positive(op, "stride", s)
    positive(op, "dilation", d)
    return s, d


# --- transposed convolution -----------------------------------------------------------------------


def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """The transpose of conv1d for ``weight`` (C, C_out / groups, R): see conv_transpose2d.

    y[n, o, i stride + a dilation - padding] += w[c, o, a] * x[n, c, i] for all c, i, a
    """
    op = "conv_transpose1d"
    return _conv_transpose(
        op, 1, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """The transpose of conv2d for ``weight`` (C, C_out / groups, kH, kW).

    y[n, o, i stride + a dilation - padding, j stride + b dilation - padding] +=
    w[c, o, a, b] * x[n, c, i, j] for all c, i, j, a, b

    ``stride`` and ``padding`` are those of the convolution that it transposes; ``output_padding``
    chooses among the sizes which that convolution would bring to the size of ``input``.

    >>> import chainrule
    >>> x = chainrule.ones(1, 4, 7, 7)
    >>> chainrule.conv_transpose2d(x, chainrule.ones(4, 3, 4, 4), stride=2, padding=1).shape
    chainrule.Size([1, 3, 14, 14])
    """
    op = "conv_transpose2d"
    return _conv_transpose(
        op, 2, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """The transpose of conv3d for ``weight`` (C, C_out / groups, kZ, kH, kW): that of
    conv_transpose2d with one dimension more."""
    op = "conv_transpose3d"
    return _conv_transpose(
        op, 3, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


def _conv_transpose(
    op: str,
    nd: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sizes,
    padding: Sizes,
    output_padding: Sizes,
    groups: int,
    dilation: Sizes,
) -> Tensor:
    def convolve(x: Tensor) -> Tensor:
        channels, out_channels = _check_weight(op, nd, weight, groups)
        _check_operands(op, x, weight, bias, groups, channels, out_channels * groups)
        s, d = _steps(op, nd, stride, dilation)
        p = per_dim(op, "padding", padding, nd)
        extra = per_dim(op, "output_padding", output_padding, nd)
        positive(op, "padding", p, at_least=0)
        positive(op, "output_padding", extra, at_least=0)
        if any(e >= max(a, b) for e, a, b in zip(extra, s, d, strict=True)):
            raise RuntimeError(
                f"{op}: output padding must be smaller than either stride or dilation, but got "
                f"output_padding={extra}, stride={s}, dilation={d}"
            )
        sizes = space_of(x.shape)
        each = zip(sizes, space_of(weight.shape), s, p, extra, d, strict=True)
        size = tuple([transposed_size(*numbers) for numbers in each])
        if min(size) < 1 or min(sizes) < 1:
            raise RuntimeError(
                f"{op}: given input size per channel {listed(sizes)}, the calculated output size "
                f"per channel is {listed(size)}; output size is too small: use less padding"
            )
        params = {"size": size, "stride": s, "padding": p, "dilation": d, "groups": groups}
        return _with_bias(x, convolution_input, weight, bias, params)

    return batched(op, input, nd, convolve)


# --- checks ---------------------------------------------------------------------------------------


def _check_weight(op: str, nd: int, weight: Tensor, groups: int) -> Ints:
    """The two leading sizes of a weight, once it is known to have them."""
    if not isinstance(weight, Tensor):
        check_layout(op, weight)
        raise TypeError(f"{op}(): argument 'weight' must be Tensor, not {type(weight).__name__}")
    shape = tuple(weight.shape)
    if len(shape) != nd + 2 or 0 in shape[2:]:
        raise RuntimeError(
            f"{op}: expected a weight of {nd + 2} dimensions with a kernel of size at least 1, but "
            f"got weight of size {shape}"
        )
    if groups < 1:
        raise RuntimeError(f"{op}: non-positive groups is not supported, got groups={groups}")
    if shape[0] % groups or shape[0] < 1:
        raise RuntimeError(
            f"{op}: given groups={groups}, expected weight to be divisible by {groups} at "
            f"dimension 0 and not empty, but got weight of size {shape}"
        )
    return shape[:2]


def _check_operands(
    op: str,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    groups: int,
    channels: int,
    out_channels: int,
) -> None:
    """Refuses channels and types that do not fit together."""
    if bias is not None and not isinstance(bias, Tensor):
        raise TypeError(f"{op}(): argument 'bias' must be Tensor, not {type(bias).__name__}")
    shape = tuple(weight.shape)
    if x.shape[1] != channels:
        raise RuntimeError(
            f"{op}: given groups={groups}, weight of size {shape}, expected input "
            f"{tuple(x.shape)} to have {channels} channels, but got {x.shape[1]} channels instead"
        )
    if bias is not None and tuple(bias.shape) != (out_channels,):
        raise RuntimeError(
            f"{op}: given weight of size {shape}, expected bias to be 1-dimensional with "
            f"{out_channels} elements, but got bias of size {tuple(bias.shape)} instead"
        )
    _check_types(op, x, weight, bias)


def _check_types(op: str, x: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    """Refuses operands of different types."""
    for name, other in (("weight", weight), ("bias", bias)):
        if other is not None and other.array.dtype != x.array.dtype:
            raise RuntimeError(
                f"{op}: input type ({x.dtype}) and {name} type ({other.dtype}) should be the same; "
                "convert one of them"
            )
