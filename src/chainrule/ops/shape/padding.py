"""Padding and windows: a tensor made larger at its borders, or shown in overlapping pieces."""

from __future__ import annotations


from chainrule.ops.core.arguments import placed_like
from chainrule.backend import K
from chainrule.ops.elementwise.logic import where
from chainrule.ops.index.reading import choose, narrow
from chainrule.ops.core.primitive import Linear
from chainrule.ops.shape.views import canonical_dim, reshape
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Shape, V, Value

__all__ = ["pad"]
METHODS = ("unfold",)
INPLACE: tuple[str, ...] = ()


def _cut(g: V, shape_in: tuple[int, ...], pads: tuple[tuple[int, int], ...]) -> V:
    """Without the border: the transpose of padding with zeros."""
    for dim, (before, after) in enumerate(pads, -len(pads)):
        if before or after:
            g = narrow(g, dim, before, shape_in[dim])
    return g


pad_zeros = Linear("pad_zeros", _cut)
_unfold = Linear(
    "unfold",
    lambda g, shape_in, **windows: _unfold_place(g, shape=tuple(shape_in), **windows),
    is_view=True,
)
_unfold_place = Linear(
    "unfold_place", lambda g, shape_in, shape, **windows: _unfold(g, **windows), batch="shape"
)


def unfold(input: V, dimension: int, size: int, step: int) -> V:
    """A view of the windows of ``size`` elements along a dimension, ``step`` elements apart.

    >>> import chainrule
    >>> chainrule.arange(5).unfold(0, 3, 1)
    tensor([[0, 1, 2],
            [1, 2, 3],
            [2, 3, 4]])
    """
    dim = canonical_dim("unfold", dimension, input.ndim)
    n = input.shape[dim] if input.ndim else 1
    if size < 0 or step <= 0:
        raise RuntimeError(f"unfold: size must be >= 0 and step > 0, got size={size}, step={step}")
    if size > n:
        raise RuntimeError(
            f"unfold: maximum size for tensor at dimension {dimension} is {n} but size is {size} "
            f"(shape {tuple(input.shape)})"
        )
    if not input.ndim:
        return narrow(reshape(input, (1,)), 0, 0, size)
    return _unfold(input, dim=dim, size=size, step=step)


def pad(input: V, pad: Shape, mode: str = "constant", value: float | None = None) -> V:
    """``input`` with a border: ``pad`` lists (before, after) for the last dimension, then for the
    one before it, and so on.

    ``mode`` says what stands there: ``"constant"`` (``value``), ``"reflect"`` (a mirror image
    without the border element), ``"replicate"`` (the border element) or ``"circular"`` (the other
    end). Negative numbers cut elements off.

    >>> import chainrule
    >>> chainrule.pad(chainrule.tensor([[1, 2, 3]]), (2, 1), mode="replicate")
    tensor([[1, 1, 1, 2, 3, 3]])
    """
    pads = _pairs(tuple(int(n) for n in pad), tuple(input.shape))
    if mode == "constant":
        return _constant(input, pads, 0 if value is None else value)
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(
            f"pad: unrecognised padding mode {mode!r}; use 'constant', 'reflect', 'replicate' or "
            "'circular'"
        )
    if value:
        raise RuntimeError(f"pad: padding mode {mode!r} doesn't take in value argument")
    _check_border(input, pads, mode)
    for dim, (before, after) in enumerate(pads, -len(pads)):
        if before or after:
            numbers = K.pad_numbers(input.shape[dim], before, after, mode)
            index = of_array(numbers) if isinstance(input, Tensor) else numbers
            input = choose(input, dim, index, "pad")
    return input


def _pairs(pad: tuple[int, ...], shape: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """(before, after) for the last dimensions, in the order of the dimensions."""
    if len(pad) % 2:
        raise RuntimeError(f"pad: padding length must be divisible by 2, got {pad}")
    if len(pad) > 2 * len(shape):
        raise RuntimeError(
            "pad: padding length should be less than or equal to two times the input dimension, "
            f"got {pad} for an input of shape {shape}"
        )
    pairs = tuple((pad[i], pad[i + 1]) for i in range(0, len(pad), 2))[::-1]
    for dim, (before, after) in enumerate(pairs, -len(pairs)):
        if shape[dim] + before + after < 0:
            raise RuntimeError(
                f"pad: the padding {(before, after)} leaves a negative size at dimension "
                f"{dim + len(shape)} of shape {shape}"
            )
    return pairs


def _constant(input: V, pads: tuple[tuple[int, int], ...], value: float) -> V:
    for dim, (before, after) in enumerate(pads, -len(pads)):
        if before < 0 or after < 0:
            first = max(-before, 0)
            input = narrow(input, dim, first, input.shape[dim] - first - max(-after, 0))
    border = tuple((max(before, 0), max(after, 0)) for before, after in pads)
    if not any(n for pair in border for n in pair):
        return input if any(n for pair in pads for n in pair) else input * 1
    out = pad_zeros(input, pads=border)
    if value == 0:
        return out
    inside = K.pad_zeros(K.ones(tuple(input.shape), "bool"), border)
    if not isinstance(input, Tensor):
        return K.where(inside, out, K.asarray(value, input.dtype))
    filled = of_array(K.from_python(value, input.array.dtype))
    return where(placed_like(input, of_array(inside)), out, filled)


def _check_border(input: Value, pads: tuple[tuple[int, int], ...], mode: str) -> None:
    """Refuses what PyTorch refuses of padding that repeats the tensor's own elements."""
    shape, count = tuple(input.shape), len(pads)
    if count not in (1, 2, 3) or len(shape) - count not in (1, 2):
        raise NotImplementedError(
            f"pad: padding {count} dimensions of a {len(shape)}D tensor with mode {mode!r} is not "
            "supported; 1 to 3 dimensions are, behind one or two that are not padded (N and C)"
        )
    if 0 in shape[len(shape) - count - 1 :]:
        raise RuntimeError(f"pad: mode {mode!r} needs sizes above 0, got an input of shape {shape}")
    for dim, (before, after) in enumerate(pads, -count):
        n, most = shape[dim], max(before, after)
        if mode == "reflect" and most >= n:
            raise RuntimeError(
                "pad: padding size should be less than the corresponding input dimension, but got "
                f"{(before, after)} at dimension {dim + len(shape)} of input {shape}"
            )
        if mode == "circular" and most > n:
            raise RuntimeError(
                "pad: padding value causes wrapping around more than once: "
                f"{(before, after)} at dimension {dim + len(shape)} of input {shape}"
            )
