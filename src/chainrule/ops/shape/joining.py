"""Joining and splitting: several tensors as one, one as several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from chainrule.ops.core.synonyms import also_named, numpy_names, takes_out
from chainrule.ops.index.choice import FULL, slice_view
from chainrule.ops.shape.rearrange import atleast_1d, atleast_2d, atleast_3d, existing_dim
from chainrule.ops.shape.views import canonical_dim, reshape
from chainrule.ops.shape.stacking import cat
from chainrule.tensor import Tensor
from chainrule.typing import Shape, Sizes, V

__all__ = [
    "chunk",
    "column_stack",
    "concat",
    "concatenate",
    "dsplit",
    "dstack",
    "hsplit",
    "hstack",
    "row_stack",
    "split",
    "tensor_split",
    "unbind",
    "vsplit",
    "vstack",
]
METHODS = (
    "chunk",
    "dsplit",
    "hsplit",
    "split",
    "split_with_sizes",
    "tensor_split",
    "unbind",
    "vsplit",
)
INPLACE: tuple[str, ...] = ()

# --- joining --------------------------------------------------------------------------------------


@takes_out(exact=False)
@numpy_names
def concat(tensors: Sequence[V], dim: int = 0) -> V:
    """Tensors joined along an existing dimension: another name of :func:`cat`."""
    return cat(tensors, dim)


concatenate = concat


def _listed(op: str, tensors: Sequence[V]) -> list[V]:
    if not len(tensors):
        raise RuntimeError(f"{op}: expects a non-empty list of tensors")
    return list(tensors)


@takes_out(exact=False)
def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors joined side by side: along the second dimension, vectors along the first."""
    several = [atleast_1d(x) for x in _listed("hstack", tensors)]
    return cat(several, 0 if several[0].ndim == 1 else 1)


@takes_out(exact=False)
def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors joined one below the other, along the first dimension; vectors are rows."""
    return cat([atleast_2d(x) for x in _listed("vstack", tensors)], 0)


@takes_out(exact=False)
def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors joined one behind the other, along the third dimension."""
    return cat([atleast_3d(x) for x in _listed("dstack", tensors)], 2)


@takes_out(exact=False)
def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Vectors as the columns of a matrix; matrices are joined side by side."""
    several = _listed("column_stack", tensors)
    return hstack([reshape(x, (x.numel(), 1)) if x.ndim < 2 else x for x in several])


row_stack = vstack

# --- splitting ------------------------------------------------------------------------------------


def _parts(input: V, dim: int, entries: Iterable[int | slice]) -> tuple[V, ...]:
    """Views of what lies at each of the entries along ``dim`` (from the end)."""
    rest = (FULL,) * (-dim - 1)
    return tuple([slice_view(input, entries=(entry, *rest)) for entry in entries])


def _between(input: V, dim: int, starts: Sequence[int], ends: Sequence[int]) -> tuple[V, ...]:
    """Views of the pieces from each start to its end."""
    pieces = [slice(a, max(a, b), 1) for a, b in zip(starts, ends, strict=True)]
    return _parts(input, dim, pieces)


@also_named(split_size="split_size_or_sections", input="tensor")
def split(tensor: V, split_size_or_sections: Sizes, dim: int = 0) -> tuple[V, ...]:
    """Views of pieces of a given size (the last may be smaller), or of the listed sizes.

    >>> import chainrule
    >>> chainrule.split(chainrule.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    if tensor.ndim == 0:
        raise RuntimeError("split: expects at least a 1-dimensional tensor")
    if not isinstance(split_size_or_sections, int):
        return split_with_sizes(tensor, split_size_or_sections, dim)
    d = canonical_dim("split", dim, tensor.ndim)
    n, size = tensor.shape[d], split_size_or_sections
    if size < 0 or (size == 0 and n > 0):
        raise RuntimeError(
            f"split: expects split_size to be positive, got {size} for a dimension of size {n}"
        )
    starts = range(0, n, size) if n else (0,)
    return _between(tensor, d, starts, [min(i + size, n) for i in starts])


@numpy_names
def split_with_sizes(tensor: V, split_sizes: Shape, dim: int = 0) -> tuple[V, ...]:
    """Views of pieces of the listed sizes."""
    d, sizes = existing_dim("split", dim, tensor), [int(n) for n in split_sizes]
    n = tensor.shape[d]
    if sum(sizes) != n or any(s < 0 for s in sizes):
        raise RuntimeError(
            f"split: expects split_sizes to be non-negative and to sum exactly to {n} (the size at "
            f"dimension {dim}), but got {sizes}"
        )
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return _between(tensor, d, starts, [i + s for i, s in zip(starts, sizes, strict=True)])


@numpy_names
def chunk(input: V, chunks: int, dim: int = 0) -> tuple[V, ...]:
    """At most ``chunks`` pieces of one size, the last of which may be smaller."""
    if input.ndim == 0:
        raise RuntimeError("chunk: expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk: expects chunks to be greater than 0, got {chunks}")
    d = canonical_dim("chunk", dim, input.ndim)
    n = input.shape[d]
    if n == 0:
        return _between(input, d, [0] * chunks, [0] * chunks)
    return split(input, -(-n // chunks), d)


@also_named(sections="indices_or_sections", indices="indices_or_sections")
def tensor_split(input: V, indices_or_sections: Sizes | Tensor, dim: int = 0) -> tuple[V, ...]:
    """Views of as many pieces as asked for, equal if possible, or of the pieces between indices."""
    if input.ndim == 0:
        raise RuntimeError("tensor_split: expected at least a 1-dimensional tensor, got 0 dims")
    d = canonical_dim("tensor_split", dim, input.ndim)
    n = input.shape[d]
    pieces: Any = indices_or_sections
    if isinstance(pieces, Tensor):
        pieces = pieces.tolist()
    if isinstance(pieces, int):
        sections = pieces
        if sections <= 0:
            raise RuntimeError(
                f"tensor_split: number of sections must be larger than 0, got {sections}"
            )
        larger = n % sections
        cuts = [i * (n // sections) + min(i, larger) for i in range(1, sections)]
    else:
        cuts = [slice(i).indices(n)[1] for i in pieces]
    return _between(input, d, [0, *cuts], [*cuts, n])


def _split_evenly(
    op: str, input: V, pieces: Sizes | Tensor, dim: int, at_least: int
) -> tuple[V, ...]:
    if input.ndim < at_least:
        raise RuntimeError(
            f"{op}: requires a tensor with at least {at_least} dimension(s), got shape "
            f"{tuple(input.shape)}"
        )
    if isinstance(pieces, int) and (pieces <= 0 or input.shape[dim] % pieces):
        raise RuntimeError(
            f"{op}: the size {input.shape[dim]} of dimension {dim} is not divisible by {pieces}; "
            "tensor_split makes unequal pieces"
        )
    return tensor_split(input, pieces, dim)


@also_named(sections="indices_or_sections", indices="indices_or_sections")
def hsplit(input: V, indices_or_sections: Sizes | Tensor) -> tuple[V, ...]:
    """Pieces side by side: along the second dimension, of a vector along the first."""
    return _split_evenly("hsplit", input, indices_or_sections, 1 if input.ndim > 1 else 0, 1)


@also_named(sections="indices_or_sections", indices="indices_or_sections")
def vsplit(input: V, indices_or_sections: Sizes | Tensor) -> tuple[V, ...]:
    """Pieces one below the other: along the first dimension."""
    return _split_evenly("vsplit", input, indices_or_sections, 0, 2)


@also_named(sections="indices_or_sections", indices="indices_or_sections")
def dsplit(input: V, indices_or_sections: Sizes | Tensor) -> tuple[V, ...]:
    """Pieces one behind the other: along the third dimension."""
    return _split_evenly("dsplit", input, indices_or_sections, 2, 3)


@numpy_names
def unbind(input: V, dim: int = 0) -> tuple[V, ...]:
    """Views of all slices along a dimension, without that dimension."""
    d = existing_dim("unbind", dim, input)
    return _parts(input, d, range(input.shape[d]))
