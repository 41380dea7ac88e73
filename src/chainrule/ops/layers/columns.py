"""Images as columns: the windows of a convolution side by side, and the way back."""

from __future__ import annotations

import math

from chainrule.ops.core.primitive import Linear
from chainrule.ops.layers.spatial import (
    Ints,
    batched,
    output_size,
    per_dim,
    space_of,
    window_settings,
)
from chainrule.tensor import Tensor
from chainrule.typing import Sizes

__all__ = ["col2im", "im2col"]
METHODS: tuple[str, ...] = ()
INPLACE: tuple[str, ...] = ()

_im2col = Linear(
    "im2col",
    lambda g, shape_in, size, kernel, **p: _col2im(
        g, size=tuple(shape_in[-len(size) :]), outputs=size, kernel=kernel, **p
    ),
)
_col2im = Linear("col2im", lambda g, shape_in, size, outputs, **p: _im2col(g, size=outputs, **p))


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
        return _im2col(x, size=_blocks("im2col", space_of(x.shape), settings), **settings)

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


def _blocks(op: str, sizes: Ints, settings: dict[str, Ints]) -> Ints:
    kernel, stride, padding, dilation = settings.values()
    each = zip(sizes, kernel, stride, padding, dilation, strict=True)
    blocks = tuple([output_size(i, k, s, 2 * p, d) for i, k, s, p, d in each])
    if min(blocks) < 1:
        raise RuntimeError(
            f"{op}: given spatial size {sizes}, {_described(settings)}, the array of sliding "
            f"blocks has shape {blocks}, but must be at least one in each dimension"
        )
    return blocks
