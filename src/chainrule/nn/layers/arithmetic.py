"""Convolution arithmetic: sizes, numbers of weights, cost and receptive fields.

These are the sums one does on paper before building a network. Of networks of any form
``chainrule.inspect`` tells the same from a forward pass: ``inspect.count``, ``receptive_field`` and
``summary``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from chainrule.autograd.modes import no_grad
from chainrule.nn.layers.conv import Convolutional, _ConvNd
from chainrule.nn.layers.linear import Linear
from chainrule.nn.module.base import Module
from chainrule.nn.layers.pooling import _AvgPool, _LPPool, _MaxPool
from chainrule.nn.parameter import is_lazy
from chainrule.ops.core.apply import watching
from chainrule.ops.core.counting import cost_of
from chainrule.ops.creation.patterns import zeros
from chainrule.ops.layers.spatial import (
    Ints,
    conv_output_size,
    conv_transpose_output_size,
    per_dim,
)
from chainrule.tensor import Tensor
from chainrule.typing import Sizes

__all__ = [
    "conv_cost",
    "conv_output_size",
    "conv_transpose_output_size",
    "dense_weights",
    "effective_kernel_size",
    "half_width",
    "receptive_field",
    "shared_weights",
    "stack_cost",
]

# --- one layer ------------------------------------------------------------------------------------


def effective_kernel_size(kernel_size: int, dilation: int = 1) -> int:
    """How many inputs a dilated kernel spans: k + (k - 1) (d - 1).

    >>> from chainrule.nn.layers.arithmetic import effective_kernel_size
    >>> effective_kernel_size(3, dilation=2)
    5
    """
    return kernel_size + (kernel_size - 1) * (dilation - 1)


def half_width(kernel_size: int, dilation: int = 1) -> int:
    """How far a kernel of odd size reaches from its center, l = (k - 1) / 2: with this padding a
    convolution keeps the size.

    >>> from chainrule.nn.layers.arithmetic import half_width
    >>> half_width(3), half_width(5)
    (1, 2)
    """
    span = effective_kernel_size(kernel_size, dilation)
    if kernel_size < 1 or span % 2 == 0:
        raise ValueError(
            "half_width: only a kernel that spans an odd number of inputs has a center, got "
            f"kernel_size={kernel_size}, dilation={dilation}; padding='same' pads even ones"
        )
    return (span - 1) // 2


def shared_weights(
    in_channels: int,
    out_channels: int,
    kernel_size: Sizes,
    groups: int = 1,
    bias: bool = True,
    nd: int = 2,
) -> int:
    """The number of a convolution's weights, k^nd C / groups (+ 1) for each feature map: they are
    shared by all places of an image, whatever its size.

    >>> from chainrule.nn.layers.arithmetic import shared_weights
    >>> shared_weights(1, 20, 5)
    520
    """
    kernel = math.prod(per_dim("shared_weights", "kernel_size", kernel_size, nd))
    return out_channels * (kernel * in_channels // groups + bias)


def dense_weights(in_features: int, out_features: int, bias: bool = True) -> int:
    """The number of weights of a fully connected layer, to compare with :func:`shared_weights`.

    >>> from chainrule.nn.layers.arithmetic import dense_weights
    >>> dense_weights(28 * 28, 30)
    23550
    """
    return out_features * (in_features + bias)


def conv_cost(
    in_channels: int,
    out_channels: int,
    kernel_size: Sizes,
    output_size: Sizes,
    groups: int = 1,
    nd: int = 2,
) -> int:
    """The multiplications of a convolution: in_channels / groups * out_channels * k^nd * m^nd, with
    k the size of the kernel and m that of the output.

    >>> from chainrule.nn.layers.arithmetic import conv_cost
    >>> conv_cost(3, 6, 5, output_size=28)
    352800
    """
    kernel = math.prod(per_dim("conv_cost", "kernel_size", kernel_size, nd))
    places = math.prod(per_dim("conv_cost", "output_size", output_size, nd))
    return in_channels // groups * out_channels * kernel * places


# --- stacks of layers -----------------------------------------------------------------------------


class ReceptiveField(NamedTuple):
    """What a unit sees, along one dimension: unit i sees the ``size`` inputs from ``start`` +
    i ``stride`` on (of a dilated layer only some of these)."""

    size: int
    stride: int
    start: int


class _Window(NamedTuple):
    """A layer whose outputs see windows, one entry per dimension."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]


def _windows(op: str, layers: Any) -> Iterator[_Window]:
    """The layers with windows, in the order of a Sequential or list."""
    for layer in layers.children() if isinstance(layers, Module) else layers:
        if isinstance(layer, (_ConvNd, _MaxPool, _AvgPool, _LPPool)):
            yield _window_of(layer)
        elif isinstance(layer, Module):
            if isinstance(layer, Linear) or "Adaptive" in type(layer).__name__:
                raise ValueError(f"{op}: {layer} sees its whole input; leave it out")
            if "Transpose" in type(layer).__name__ or hasattr(layer, "scale_factor"):
                raise ValueError(f"{op}: {layer} enlarges its input, which is not supported")
            yield from _windows(op, layer)
        else:
            yield _from_numbers(op, layer)


def _window_of(layer: Any) -> _Window:
    name, nd = type(layer).__name__, layer.nd
    k = per_dim(name, "kernel_size", layer.kernel_size, nd)
    s = k if layer.stride is None else per_dim(name, "stride", layer.stride, nd)
    d = per_dim(name, "dilation", getattr(layer, "dilation", 1), nd)
    given = getattr(layer, "padding", 0)
    if given == "same":
        p = tuple([(a - 1) * b // 2 for a, b in zip(k, d, strict=True)])
    else:
        p = per_dim(name, "padding", 0 if given == "valid" else given, nd)
    return _Window(k, s, p, d)


def _from_numbers(op: str, numbers: Any) -> _Window:
    """(kernel_size, stride=1, padding=0, dilation=1)"""
    if not isinstance(numbers, (tuple, list)) or not 1 <= len(numbers) <= 4:
        raise TypeError(
            f"{op}: expected a layer or (kernel_size, stride, padding, dilation), got {numbers!r}"
        )
    names, defaults = ("kernel_size", "stride", "padding", "dilation"), (1, 1, 0, 1)
    nd = max(len(n) if isinstance(n, (tuple, list)) else 1 for n in numbers)
    given = (*numbers, *defaults[len(numbers) :])
    k, s, p, d = (per_dim(op, name, n, nd) for name, n in zip(names, given, strict=True))
    return _Window(k, s, p, d)


def receptive_field(layers: Module | Iterable[Any]) -> Any:
    """The inputs that can reach one unit of the last of several layers.

    ``layers`` is a Sequential or a list of layers, where one that works on each place by itself (an
    activation, a normalization) changes nothing; or a list of (kernel_size, stride, padding,
    dilation), of which the last may be left out. The result has one entry per dimension, or is one
    where all dimensions are alike:

    size = 1 + sum over l of (k_l - 1) d_l s_1 ... s_(l-1),  stride = s_1 s_2 ...

    >>> from chainrule import nn
    >>> from chainrule.nn.layers.arithmetic import receptive_field
    >>> receptive_field([(3,), (3,)]).size  # two 3x3 convolutions see what one 5x5 sees
    5
    >>> receptive_field(nn.Sequential(nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2)))
    ReceptiveField(size=6, stride=2, start=0)
    """
    windows = list(_windows("receptive_field", layers))
    if not windows:
        return ReceptiveField(1, 1, 0)
    nd = len(windows[0].kernel)
    if any(len(w.kernel) != nd for w in windows):
        raise ValueError("receptive_field: the layers differ in their numbers of dimensions")
    fields = []
    for dim in range(nd):
        size, stride, start = 1, 1, 0
        for w in windows:
            start -= w.padding[dim] * stride
            size += (w.kernel[dim] - 1) * w.dilation[dim] * stride
            stride *= w.stride[dim]
        fields.append(ReceptiveField(size, stride, start))
    return fields[0] if len(set(fields)) == 1 else tuple(fields)


def stack_cost(layers: Module | Iterable[Any], input_size: Sizes) -> int:
    """The multiplications of all convolutions of a network, for one image of this size:

    sum over l of C_(l-1) C_l k_l^nd m_l^nd, with m_l the size of layer l's output.

    ``layers`` is a module, which is called with an image of zeros and whose convolutions are
    counted as they run, so that branches and functional code count; or a list of modules that
    follow each other and of windows (kernel_size, stride, padding, dilation), which change the
    size alone. ``chainrule.inspect.count`` counts all operations.

    >>> from chainrule import nn
    >>> from chainrule.nn.layers.arithmetic import stack_cost
    >>> stack_cost(nn.Sequential(nn.Conv2d(3, 6, 5), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5)), 32)
    592800
    """
    parts = [layers] if isinstance(layers, Module) else list(layers)
    first = next((c for c in map(_first_convolution, parts) if c is not None), None)
    if first is None:
        return 0
    size = per_dim("stack_cost", "input_size", input_size, first.nd)
    image = zeros(1, first.in_channels, *size, dtype=first.weight.dtype, device=first.weight.device)
    total = 0
    for part in parts:
        if isinstance(part, Module):
            cost, image = _convolved(part, image)
            total += cost
        else:
            w = _from_numbers("stack_cost", part)
            kept = (per_dim("stack_cost", "size", n, first.nd) for n in w)
            image = zeros(
                *image.shape[:2], *_size_after(image, *kept), dtype=image.dtype, device=image.device
            )
    return total


def _size_after(image: Tensor, k: Ints, s: Ints, p: Ints, d: Ints) -> Ints:
    return tuple(conv_output_size(tuple(image.shape[2:]), k, s, p, d))


def _first_convolution(part: Any) -> Any:
    """The first convolution of a module, in the order of its parts."""
    if not isinstance(part, Module):
        return None
    found = next((m for m in part.modules() if isinstance(m, Convolutional)), None)
    if found is not None and is_lazy(found.weight):
        raise ValueError(f"stack_cost: {found} does not know its channels yet; call it once before")
    return found


def _convolved(part: Module, image: Tensor) -> tuple[int, Any]:
    """The multiplications of the convolutions in a call, and what it returns. The module is called
    in evaluation mode, in which nothing of it changes."""
    total = 0

    def note(op: Any, inputs: Any, params: dict[str, Any], out: Any) -> None:
        nonlocal total
        if op.name in ("convolution", "convolution_input"):
            cost = cost_of(op, inputs, params, [out])
            total += 0 if cost is None else cost.macs

    modes = [(m, m.training) for m in part.modules()]
    try:
        with no_grad(), watching(note):
            result = part.eval()(image)
    finally:
        for module, training in modes:
            module.training = training
    return total, result
