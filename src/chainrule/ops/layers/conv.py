"""Convolution, its transpose, and the rearrangement of images into windows.

All of it is one sum, over batch n, channels c and o, outputs i and places k of the kernel,

    sum  y[n, o, i] * w[o, c, k] * x[n, c, i * stride + k * dilation - padding]

with x zero outside its bounds. It is linear in each of x, w and y, and its gradient with respect to
each is one primitive: ``convolution`` (by y), ``convolution_input`` (by x: the transposed
convolution) and ``convolution_weight`` (by w). So each one's derivatives are the other two, to any
order. ``size`` is the spatial size of what a primitive computes, ``padding`` what precedes x in
each dimension.
"""

from __future__ import annotations

import math
from functools import reduce
from operator import add
from collections.abc import Sequence
from typing import Any

from chainrule.graph import Node, mode
from chainrule.ops.core.recording import affine, saved_values
from chainrule.ops.core.pointwise import F32, F64
from chainrule.ops.core.primitive import Bilinear, Linear, Op, broadcast_to, sum_to
from chainrule.ops.shape.views import movedim, reshape, unsqueeze
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
    window_settings,
)
from chainrule.tensor import Tensor
from chainrule.ops.core.batching import Rule
from chainrule.typing import Shape, Sizes, V

__all__ = [
    "col2im", "conv1d", "conv2d", "conv3d", "conv_output_size", "conv_transpose1d",
    "conv_transpose2d", "conv_transpose3d", "conv_transpose_output_size", "im2col",
]  # fmt: skip
METHODS: tuple[str, ...] = ()
INPLACE: tuple[str, ...] = ()

# --- primitives -----------------------------------------------------------------------------------

# The leading dimensions of x, w and y by their letters; g counts the groups.
_X, _W, _Y = "ngc", "goc", "ngo"


def _fold(value: V, layout: str, letter: str, groups: int) -> V:
    """The batch in front of ``value`` made part of the dimension ``letter``."""
    size, shape = value.shape[0], list(value.shape[1:])
    split = _split(shape, layout, groups)
    at = layout.index(letter)
    moved = movedim(reshape(value, (size, *split, *shape[2:])), 0, at)
    split[at] *= size
    return reshape(moved, (*_join(split, layout), *shape[2:]))


def _unfold(value: V, layout: str, letter: str, groups: int, size: int) -> V:
    """The inverse of :func:`_fold`: the batch taken out of ``letter`` and put in front."""
    shape = list(value.shape)
    split = _split(shape, layout, groups * size if letter == "g" else groups)
    at = layout.index(letter)
    split[at] //= size
    apart = reshape(value, (*split[:at], size, *split[at:], *shape[2:]))
    return reshape(movedim(apart, at, 0), (size, *_join(split, layout), *shape[2:]))


def _split(shape: Shape, layout: str, groups: int) -> list[int]:
    """The sizes of the three letters from those of the two dimensions in which they are stored."""
    if layout[0] == "g":
        return [groups, shape[0] // groups, shape[1]]
    return [shape[0], groups, shape[1] // groups]


def _join(split: Sequence[int], layout: str) -> tuple[int, int]:
    a, b, c = split
    return (a * b, c) if layout[0] == "g" else (a, b * c)


def _batch_rule(first: str, second: str, result: str) -> Rule:
    """vmap as one larger convolution.

    A batch of one operand joins the letter that only this operand and the result have; if both have
    a batch, it joins the groups.
    """

    def rule(
        op: Op, size: int, values: Sequence[Tensor], mapped: Sequence[bool], params: dict[str, Any]
    ) -> Tensor:
        groups, (a, b) = params["groups"], values
        if all(mapped):
            letter = "g"
        else:
            own, other = (first, second) if mapped[0] else (second, first)
            letter = next(k for k in own if k in result and k not in other)
        if mapped[0]:
            a = _fold(a, first, letter, groups)
        if mapped[1]:
            b = _fold(b, second, letter, groups)
        folded = params | {"groups": groups * size} if letter == "g" else params
        return _unfold(op(a, b, **folded), result, letter, groups, size)

    return rule


_BATCH_OF_CONVOLUTION = _batch_rule(_X, _W, _Y)
_convolution = Bilinear(
    "convolution",
    (
        lambda g, x_shape, w, size, **p: _convolution_input(g, w, size=_spatial(x_shape), **p),
        lambda g, x, w_shape, size, **p: _convolution_weight(x, g, size=_spatial(w_shape), **p),
    ),
    batch=_BATCH_OF_CONVOLUTION,
)
_convolution_input = Bilinear(
    "convolution_input",
    (
        lambda g, y_shape, w, size, **p: _convolution(g, w, size=_spatial(y_shape), **p),
        lambda g, y, w_shape, size, **p: _convolution_weight(g, y, size=_spatial(w_shape), **p),
    ),
    batch=_batch_rule(_Y, _W, _X),
)
_convolution_weight = Bilinear(
    "convolution_weight",
    (
        lambda g, x_shape, y, size, **p: _convolution_input(y, g, size=_spatial(x_shape), **p),
        lambda g, x, y_shape, size, **p: _convolution(x, g, size=_spatial(y_shape), **p),
    ),
    batch=_batch_rule(_X, _Y, _W),
)


class BiasedConvolution(Op):
    """Convolution and the sum with a bias: one node and one pass over the memory.

    Only the ordinary path makes it; transformations and traces see the two operations.
    """

    def raw(self, x: Any, w: Any, b: Any, **params: Any) -> Any:
        return _convolution.raw(x, w, bias=b, **params)

    def save(self, inputs: tuple[Tensor, ...], edges: tuple[Any, ...]) -> Any:
        x, w, _ = inputs
        return (x if edges[1] is not None else None, w if edges[0] is not None else None, None)

    def vjp(self, node: Node, g: Any, tensors: bool) -> Sequence[Any]:
        x, w = saved_values(node, tensors)[:2]
        edges, shapes, params = node.edges, node.shapes, node.params
        by_x, by_w = _convolution.transposes
        gx = None if edges[0] is None else by_x(g, shapes[0], w, **params)
        gw = None if edges[1] is None else by_w(g, x, shapes[1], **params)
        gb = None
        if edges[2] is not None:
            (channels,) = shapes[2]
            gb = reshape(sum_to(g, shape=(channels, *[1] * (g.ndim - 2))), (channels,))
        return gx, gw, gb

    def jvp(
        self, tangents: Sequence[Any], out: Any, inputs: Sequence[Any], params: dict[str, Any]
    ) -> Any:
        (x, w, _), (tx, tw, tb) = inputs, tangents
        parts = [] if tx is None else [_convolution(tx, w, **params)]
        parts += [] if tw is None else [_convolution(x, tw, **params)]
        if tb is not None:
            column = reshape(tb, (*tb.shape, *[1] * (out.ndim - 2)))
            parts.append(broadcast_to(column, shape=tuple(out.shape)))
        return reduce(add, parts)


def _batch_of_biased(
    op: Op, size: int, values: Sequence[Any], mapped: Sequence[bool], params: dict[str, Any]
) -> Any:
    """vmap: the convolution's rule, then the sum with the bias of each member."""
    x, w, b = values
    if mapped[0] or mapped[1]:
        out = _BATCH_OF_CONVOLUTION(_convolution, size, (x, w), mapped[:2], params)
    else:
        out = unsqueeze(_convolution(x, w, **params), 0)
    dimensions = [1] * len(params["size"])
    return out + reshape(b, (size, 1, -1, *dimensions) if mapped[2] else (-1, *dimensions))


biased_convolution = BiasedConvolution("biased_convolution", _batch_of_biased)


def _spatial(shape: Shape) -> Ints:
    return tuple(shape[2:])


_im2col = Linear(
    "im2col",
    lambda g, shape_in, size, kernel, **p: _col2im(
        g, size=tuple(shape_in[-len(size) :]), outputs=size, kernel=kernel, **p
    ),
)
_col2im = Linear("col2im", lambda g, shape_in, size, outputs, **p: _im2col(g, size=outputs, **p))

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
            return _with_bias(_convolution(x, weight, **params), bias, nd)
        shapes = (op, x.array.shape, weight.array.shape, bias.array.shape)
        params = _known.get(shapes, stride, padding, dilation, groups)
        if params is None:
            params = _conv_settings(op, nd, x, weight, bias, stride, padding, dilation, groups)
            _known.put(params, shapes, stride, padding, dilation, groups)
        out = _ordinary_convolution(op, x, weight, bias, params)
        return _with_bias(_convolution(x, weight, **params), bias, nd) if out is None else out

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
    kernel = _spatial(weight.shape)
    s, d = _steps(op, nd, stride, dilation)
    before, both = padding_of(op, padding, kernel, s, d)
    spatial = _spatial(x.shape)
    size = tuple(map(output_size, spatial, kernel, s, both, d))
    if min(size) < 1 or min(spatial) + min(both) < 1:
        raise RuntimeError(
            f"{op}: calculated padded input size per channel: "
            f"{listed(map(sum, zip(spatial, both, strict=True)))}. Kernel size: "
            f"{listed(kernel)}, dilation {d}. Kernel size can't be greater than actual input "
            "size; use a larger input, more padding or a smaller kernel"
        )
    return {"size": size, "stride": s, "padding": before, "dilation": d, "groups": groups}


def _ordinary_convolution(
    op: str, input: Tensor, weight: Tensor, bias: Tensor, params: dict[str, Any]
) -> Tensor | None:
    """A convolution whose shapes are known to fit; None if the type is not an ordinary one."""
    x, w, b = input.array, weight.array, bias.array
    dtype = x.dtype
    if dtype is not w.dtype or dtype is not b.dtype:
        _check_types(op, input, weight, bias)
    if dtype is not F32 and dtype is not F64:
        return None
    array = biased_convolution.raw(x, w, b, **params)
    return affine(biased_convolution, input, weight, bias, array, mode.flags, params)


def _with_bias(out: Tensor, bias: Tensor | None, nd: int) -> Tensor:
    return out if bias is None else out + reshape(bias, (-1, *[1] * nd))


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
        spatial = _spatial(x.shape)
        size = conv_transpose_output_size(spatial, _spatial(weight.shape), s, p, extra, d)
        if min(size) < 1 or min(spatial) < 1:
            raise RuntimeError(
                f"{op}: given input size per channel {listed(spatial)}, the calculated output size "
                f"per channel is {listed(size)}; output size is too small: use less padding"
            )
        out = _convolution_input(
            x, weight, size=size, stride=s, padding=p, dilation=d, groups=groups
        )
        return _with_bias(out, bias, nd)

    return batched(op, input, nd, convolve)


# --- windows as columns ---------------------------------------------------------------------------


def im2col(
    input: Tensor, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
) -> Tensor:
    """The windows of ``input`` (N, C, H, W) as columns: (N, C * kH * kW, number of windows).

    PyTorch's ``nn.functional.unfold``. A convolution is a product with these columns.

    >>> import chainrule
    >>> chainrule.im2col(chainrule.ones(1, 3, 8, 8), 2, stride=2).shape
    chainrule.Size([1, 12, 16])
    """
    settings = window_settings("im2col", 2, kernel_size, stride, padding, dilation, True)

    def rearrange(x: Tensor) -> Tensor:
        return _im2col(x, size=_blocks("im2col", _spatial(x.shape), settings), **settings)

    return batched("im2col", input, 2, rearrange)


def col2im(
    input: Tensor,
    output_size: Sizes,
    kernel_size: Sizes,
    dilation: Sizes = 1,
    padding: Sizes = 0,
    stride: Sizes = 1,
) -> Tensor:
    """Columns (N, C * kH * kW, number of windows) added up into an image (N, C, H, W).

    PyTorch's ``nn.functional.fold``, the transpose of :func:`im2col`.
    """
    settings = window_settings("col2im", 2, kernel_size, stride, padding, dilation, True)
    size = per_dim("col2im", "output_size", output_size, 2)
    outputs = _blocks("col2im", size, settings)
    places, count = math.prod(settings["kernel"]), math.prod(outputs)

    def rearrange(x: Tensor) -> Tensor:
        if x.shape[1] % places or x.shape[2] != count:
            raise RuntimeError(
                f"col2im: expected columns of shape (N, C * {places}, {count}) for "
                f"output_size={size}, {_described(settings)}, but got {tuple(x.shape)}"
            )
        return _col2im(x, size=size, outputs=outputs, **settings)

    return batched("col2im", input, 1, rearrange)


def _described(settings: dict[str, Ints]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def _blocks(op: str, spatial: Ints, settings: dict[str, Ints]) -> Ints:
    kernel, stride, padding, dilation = settings.values()
    blocks = conv_output_size(spatial, kernel, stride, padding, dilation)
    if min(blocks) < 1:
        raise RuntimeError(
            f"{op}: given spatial size {spatial}, {_described(settings)}, the array of sliding "
            f"blocks has shape {blocks}, but must be at least one in each dimension"
        )
    return blocks


# --- checks ---------------------------------------------------------------------------------------


def _check_weight(op: str, nd: int, weight: Tensor, groups: int) -> Ints:
    """The two leading sizes of a weight, once it is known to have them."""
    if not isinstance(weight, Tensor):
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
