"""Elements by their number in a tensor that is thought of as flat, and the diagonal."""

from __future__ import annotations

from chainrule.ops.core.arguments import placed_like, same_place
from chainrule.backend import K
from chainrule.ops.core.inplace import assign
from chainrule.ops.elementwise.logic import where as choose
from chainrule.ops.index.replacing import index_put
from chainrule.ops.shape.views import reshape
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Number, Shape

__all__ = ["put", "unravel_index"]
METHODS = ("fill_diagonal_", "put", "where")
INPLACE = ("put",)


def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """``input`` with the elements of these numbers, counted as if it were flat, replaced by those
    of ``source`` (or with them added, with ``accumulate``).

    >>> import chainrule
    >>> chainrule.zeros(2, 2).put(chainrule.tensor([1, 3]), chainrule.tensor([5.0, 6.0]))
    tensor([[0., 5.],
            [0., 6.]])
    """
    if index.numel() != source.numel():
        raise RuntimeError(
            f"put: expected source and index to have the same number of elements, got "
            f"{source.numel()} and {index.numel()}"
        )
    same_place("put", input, index)
    flat, values = reshape(input, (-1,)), reshape(source, (-1,))
    return reshape(index_put(flat, (reshape(index, (-1,)),), values, accumulate), input.shape)


def where(input: Tensor, condition: Tensor, other: Tensor | Number) -> Tensor:
    """``input`` where the condition holds, ``other`` elsewhere."""
    return choose(condition, input, other)


def fill_diagonal_(input: Tensor, fill_value: Number, wrap: bool = False) -> Tensor:
    """Writes one number on the main diagonal; with ``wrap`` again below it in a tall matrix."""
    shape = tuple(input.shape)
    if len(shape) < 2 or (len(shape) > 2 and len(set(shape)) > 1):
        raise RuntimeError(
            f"fill_diagonal_: expected a matrix, or dimensions of equal length, got {shape}"
        )
    step = sum(input.numel() // _product(shape[: i + 1]) for i in range(len(shape)) if shape[i])
    end = input.numel() if wrap or len(shape) > 2 else min(shape) * step
    places = K.arange(0, min(end, input.numel()), step, "int64")
    flags = K.write_index(K.zeros(input.numel(), "bool"), places, True).reshape(shape)
    return assign(
        input, choose(placed_like(input, of_array(flags)), fill_value, input), "fill_diagonal_"
    )


def _product(sizes: Shape) -> int:
    total = 1
    for n in sizes:
        total *= n
    return total


def unravel_index(indices: Tensor, shape: Shape) -> tuple[Tensor, ...]:
    """The coordinates in a tensor of this shape of elements numbered as if it were flat.

    >>> import chainrule
    >>> chainrule.unravel_index(chainrule.tensor(5), (2, 3))
    (tensor(1), tensor(2))
    """
    out, rest = [], indices
    for n in reversed(tuple(shape)):
        out.append(rest % n)
        rest = rest // n
    return tuple(reversed(out))
