"""Rearranging: transposes, shapes, repetitions and turns; compositions of a few primitives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import overload

from chainrule.backend import K, dtypes
from chainrule.ops.core.synonyms import numpy_names
from chainrule.ops.creation.conversion import clone, contiguous
from chainrule.ops.core.arguments import placed_like, same_place
from chainrule.ops.index.reading import choose, narrow
from chainrule.ops.core.promotion import broadcast_shapes
from chainrule.ops.core.primitive import Linear
from chainrule.ops.shape.views import (
    _permute,
    canonical_dim,
    canonical_dims,
    expand,
    flatten,
    movedim,
    permute,
    reshape,
    shape_argument,
    tensors_argument,
    transpose,
    unsqueeze,
    view,
)
from chainrule.ops.shape.stacking import cat, stack
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Array, Dims, Shape, Sizes, V, Value

__all__ = [
    "adjoint",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_tensors",
    "broadcast_to",
    "cartesian_prod",
    "combinations",
    "flip",
    "fliplr",
    "flipud",
    "meshgrid",
    "moveaxis",
    "ravel",
    "repeat_interleave",
    "roll",
    "rot90",
    "swapdims",
    "t",
    "tile",
    "unflatten",
]
METHODS = (
    "adjoint",
    "broadcast_to",
    "expand_as",
    "flip",
    "fliplr",
    "flipud",
    "moveaxis",
    "ravel",
    "repeat",
    "repeat_interleave",
    "reshape_as",
    "roll",
    "rot90",
    "swapdims",
    "t",
    "tile",
    "unflatten",
    "view_as",
)
INPLACE: tuple[str, ...] = ()
INPLACE_VIEWS = ("swapdims", "t")

moveaxis, swapdims = movedim, transpose


def existing_dim(op: str, dim: int, input: Value) -> int:
    """A dimension that exists, counted from the end."""
    if input.ndim == 0:
        raise IndexError(f"{op}: dimension specified as {dim} but tensor has no dimensions")
    return canonical_dim(op, dim, input.ndim)


# --- transposes -----------------------------------------------------------------------------------


def t(input: V) -> V:
    """The transpose of a matrix; a vector as it is."""
    if input.ndim > 2:
        raise RuntimeError(
            f"t: expects a tensor with <= 2 dimensions, but got {input.ndim}; use transpose or mT"
        )
    return _permute(input, dims=(-1, -2)) if input.ndim == 2 else input


def transpose_all(input: V) -> V:
    """All dimensions in reverse order: ``x.T``."""
    if input.ndim == 2:
        return _permute(input, dims=(-1, -2))
    return permute(input, tuple(range(input.ndim - 1, -1, -1)))


def matrix_transpose(input: V) -> V:
    """The last two dimensions exchanged: ``x.mT``."""
    if input.ndim == 1:
        raise RuntimeError(
            "mT: only supported on matrices or batches of matrices, got a 1-D tensor; use "
            "unsqueeze to make it a row or a column"
        )
    return _permute(input, dims=(*range(-input.ndim, -2), -1, -2)) if input.ndim else input


def adjoint(input: Tensor) -> Tensor:
    """The conjugate of the matrix transpose: ``x.mH``."""
    out = matrix_transpose(input)
    return out.conj() if out.is_complex() else out


def conjugate_transpose(input: Tensor) -> Tensor:
    """The conjugate transpose of a matrix: ``x.H``."""
    if input.ndim not in (0, 2):
        raise RuntimeError(
            f"H: only supported on matrices (2-D tensors), got a {input.ndim}-D tensor; use mH for "
            "batches of matrices"
        )
    return adjoint(input)


# --- shapes ---------------------------------------------------------------------------------------


def ravel(input: V) -> V:
    """The elements in one dimension, one after the other: a view, or else a copy."""
    return flatten(contiguous(input) if isinstance(input, Tensor) else input)


@numpy_names
def unflatten(input: V, dim: int, sizes: Shape) -> V:
    """One dimension as several; one size may be -1, to be worked out."""
    d, sizes = existing_dim("unflatten", dim, input) + input.ndim, tuple(sizes)
    shape = tuple(input.shape)
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    known = 1
    for n in sizes:
        known *= n if n != -1 else 1
    inferred = sizes.count(-1)
    if inferred == 1 and known > 0 and shape[d] % known == 0:
        sizes = tuple(shape[d] // known if n == -1 else n for n in sizes)
    elif inferred or known != shape[d]:
        raise RuntimeError(
            f"unflatten: sizes {sizes} don't multiply up to the size of dim {dim} ({shape[d]}) in "
            f"the input of shape {shape}"
        )
    return reshape(input, (*shape[:d], *sizes, *shape[d + 1 :]))


def broadcast_to(input: V, size: Shape) -> V:
    """``input`` expanded to a shape, without copying."""
    return expand(input, tuple(size))


def broadcast_tensors(*tensors: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The tensors expanded to their common shape."""
    given = tensors_argument(tensors)
    shape = broadcast_shapes(*[x.shape for x in given], op="broadcast_tensors")
    return tuple(expand(x, shape) for x in given)


def expand_as(input: V, other: Value) -> V:
    """``input`` expanded to the shape of ``other``."""
    return expand(input, tuple(other.shape))


def view_as(input: Tensor, other: Value) -> Tensor:
    """The elements of ``input`` in the shape of ``other``, without copying."""
    return view(input, tuple(other.shape))


def reshape_as(input: V, other: Value) -> V:
    """The elements of ``input`` in the shape of ``other``."""
    return reshape(input, tuple(other.shape))


def _at_least(
    make: Callable[[Tensor], Tensor], tensors: tuple[Tensor | Sequence[Tensor], ...]
) -> Tensor | tuple[Tensor, ...]:
    """One tensor for one, a tuple for several or for a list."""
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return make(tensors[0])
    return tuple(make(x) for x in tensors_argument(tensors))


@overload
def atleast_1d(tensor: Tensor, /) -> Tensor: ...
@overload
def atleast_1d(first: Tensor, second: Tensor, /, *others: Tensor) -> tuple[Tensor, ...]: ...
@overload
def atleast_1d(tensors: Sequence[Tensor], /) -> tuple[Tensor, ...]: ...
def atleast_1d(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """Each tensor with at least one dimension."""
    return _at_least(lambda x: x if x.ndim else reshape(x, (1,)), tensors)


@overload
def atleast_2d(tensor: Tensor, /) -> Tensor: ...
@overload
def atleast_2d(first: Tensor, second: Tensor, /, *others: Tensor) -> tuple[Tensor, ...]: ...
@overload
def atleast_2d(tensors: Sequence[Tensor], /) -> tuple[Tensor, ...]: ...
def atleast_2d(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """Each tensor with at least two dimensions; a vector becomes a row."""
    return _at_least(lambda x: x if x.ndim > 1 else reshape(x, (1, x.numel())), tensors)


def _three(x: Tensor) -> Tensor:
    if x.ndim < 2:
        return reshape(x, (1, x.numel(), 1))
    return unsqueeze(x, -1) if x.ndim == 2 else x


@overload
def atleast_3d(tensor: Tensor, /) -> Tensor: ...
@overload
def atleast_3d(first: Tensor, second: Tensor, /, *others: Tensor) -> tuple[Tensor, ...]: ...
@overload
def atleast_3d(tensors: Sequence[Tensor], /) -> tuple[Tensor, ...]: ...
def atleast_3d(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """Each tensor with at least three dimensions: (N,) as (1, N, 1) and (M, N) as (M, N, 1)."""
    return _at_least(_three, tensors)


# --- repeating ------------------------------------------------------------------------------------


def repeat(input: V, *sizes: int | Shape, repeats: Shape | None = None) -> V:
    """``input`` laid out as many times as given for each dimension."""
    if not sizes and repeats is None:
        raise TypeError('repeat() missing 1 required positional argument: "repeats"')
    times = shape_argument(sizes, repeats)
    if len(times) < input.ndim:
        raise RuntimeError(
            f"repeat: number of dimensions of repeats {times} can not be smaller than number of "
            f"dimensions of the tensor (shape {tuple(input.shape)})"
        )
    if any(n < 0 for n in times):
        raise RuntimeError(f"repeat: repeats must not be negative, got {times}")
    shape = (1,) * (len(times) - input.ndim) + tuple(input.shape)
    apart = [n for size in shape for n in (1, size)]
    spread = [n for r, size in zip(times, shape, strict=True) for n in (r, size)]
    joined = tuple(r * size for r, size in zip(times, shape, strict=True))
    out = reshape(expand(reshape(input, apart), spread), joined)
    # Where each dimension has one element or is not repeated, the joined one is still a view.
    return out if any(r != 1 != size for r, size in zip(times, shape, strict=True)) else clone(out)


def tile(input: V, *sizes: int | Shape, dims: Shape | None = None) -> V:
    """Like :func:`repeat`; missing numbers in front count as 1."""
    times = shape_argument(sizes, dims)
    return repeat(input, (1,) * (input.ndim - len(times)) + times)


@numpy_names
def repeat_interleave(
    input: Tensor,
    repeats: int | Tensor | None = None,
    dim: int | None = None,
    *,
    output_size: int | None = None,
) -> Tensor:
    """Each element (or slice along ``dim``) repeated, next to itself.

    >>> import chainrule
    >>> chainrule.repeat_interleave(chainrule.tensor([1, 2]), chainrule.tensor([1, 3]))
    tensor([1, 2, 2, 2])
    """
    if repeats is None:
        return placed_like(input, of_array(_repeated_numbers(input, None, output_size)))
    if dim is None:
        input, dim = ravel(input), 0
    d = existing_dim("repeat_interleave", dim, input)
    n = input.shape[d]
    if isinstance(repeats, Tensor) and repeats.numel() == 1 and repeats.ndim < 2:
        repeats = repeats.item()
    if not isinstance(repeats, Tensor):
        if repeats < 0:
            raise RuntimeError(f"repeat_interleave: repeats must be non-negative, got {repeats}")
        apart, shape = unsqueeze(input, d), list(input.shape)
        full = list(apart.shape)
        full[d], shape[d] = repeats, n * repeats
        out = reshape(expand(apart, full), shape)
        return clone(out) if n == 1 or repeats == 1 else out  # there it is still a view
    same_place("repeat_interleave", input, repeats)
    rows = of_array(_repeated_numbers(repeats, n, output_size))
    return choose(input, d, rows, "repeat_interleave")


def _repeated_numbers(repeats: Tensor, n: int | None, output_size: int | None) -> Array:
    if repeats.ndim != 1:
        raise RuntimeError(
            f"repeat_interleave: repeats must be 0-dim or 1-dim, got shape {tuple(repeats.shape)}"
        )
    if repeats.dtype not in (dtypes.int64, dtypes.int32):
        raise NotImplementedError(
            f"repeat_interleave: repeats must be int64 or int32, got {repeats.dtype}"
        )
    if n is not None and len(repeats) != n:
        raise RuntimeError(
            f"repeat_interleave: repeats must have the same size as input along dim, but got "
            f"{len(repeats)} repeats for a size of {n}"
        )
    times = repeats._numbers("repeat_interleave")
    if times.size and times.min() < 0:
        raise RuntimeError("repeat_interleave: repeats can not be negative")
    if output_size is not None and output_size != times.sum():
        raise RuntimeError(
            f"repeat_interleave: output_size is {output_size}, but the repeats sum to {times.sum()}"
        )
    return K.repeat_numbers(times)


# --- turning --------------------------------------------------------------------------------------

_flip = Linear("flip", lambda g, shape_in, dims: _flip(g, dims=dims))


def flip(input: V, *along: int | Shape, dims: int | Shape | None = None) -> V:
    """The elements in reverse order along the given dimensions."""
    named = shape_argument(along, dims)
    return _flip(input, dims=canonical_dims("flip", named, input.ndim) if named else ())


def fliplr(input: V) -> V:
    """The columns in reverse order."""
    if input.ndim < 2:
        raise RuntimeError(f"fliplr: input must be >= 2-d, got shape {tuple(input.shape)}")
    return flip(input, 1)


def flipud(input: V) -> V:
    """The rows in reverse order."""
    if input.ndim < 1:
        raise RuntimeError("flipud: input must be >= 1-d, got shape ()")
    return flip(input, 0)


def roll(input: V, shifts: Sizes, dims: Dims = None) -> V:
    """The elements moved along dimensions; what leaves at one end enters at the other.

    >>> import chainrule
    >>> chainrule.roll(chainrule.arange(5), 2)
    tensor([3, 4, 0, 1, 2])
    """
    steps = shape_argument((shifts,))
    if dims is None or dims == ():
        if len(steps) != 1:
            raise RuntimeError(f"roll: shifts {steps} and dimensions () must align")
        return reshape(_rolled(ravel(input), steps[0], -1), tuple(input.shape))
    along = shape_argument((dims,))
    if len(steps) != len(along):
        raise RuntimeError(f"roll: shifts {steps} and dimensions {along} must align")
    for step, dim in zip(steps, along, strict=True):
        input = _rolled(input, step, existing_dim("roll", dim, input))
    return input


def _rolled(input: V, step: int, dim: int) -> V:
    n = input.shape[dim]
    cut = step % n if n else 0
    if cut == 0:
        return clone(input)
    return cat([narrow(input, dim, n - cut, cut), narrow(input, dim, 0, n - cut)], dim)


def rot90(input: V, k: int = 1, dims: Shape = (0, 1)) -> V:
    """A plane turned by 90 degrees k times, from the first of the dimensions to the second."""
    if len(dims) != 2:
        raise RuntimeError(f"rot90: expected total rotation dims == 2, but got dims {tuple(dims)}")
    if input.ndim < 2:
        raise RuntimeError(f"rot90: expected total dims >= 2, but got shape {tuple(input.shape)}")
    a, b = [canonical_dim("rot90", d, input.ndim) for d in dims]
    if a == b:
        raise RuntimeError(f"rot90: expected rotation dims to be different, but got {tuple(dims)}")
    turns = k % 4
    if turns == 2:
        return flip(input, a, b)
    if turns == 0:
        return clone(input)
    return transpose(flip(input, b), a, b) if turns == 1 else flip(transpose(input, a, b), b)


# --- all choices ----------------------------------------------------------------------------------


def meshgrid(*tensors: Tensor | Sequence[Tensor], indexing: str = "ij") -> tuple[Tensor, ...]:
    """The coordinates of a grid: each vector along its own dimension, repeated along the others."""
    given = tensors_argument(tensors)
    if not given:
        raise RuntimeError("meshgrid: expects a non-empty list of tensors")
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'meshgrid: indexing must be one of "xy" or "ij", but got {indexing!r}')
    for x in given:
        if x.ndim > 1:
            raise RuntimeError(
                f"meshgrid: expected 0D or 1D tensors but got shape {tuple(x.shape)}"
            )
        if x.dtype is not given[0].dtype:
            raise RuntimeError(
                "meshgrid: expects all tensors to have the same dtype, got "
                f"{given[0].dtype} and {x.dtype}"
            )
    same_place("meshgrid", *given)
    count, swap = len(given), indexing == "xy" and len(given) > 1
    sizes = [x.numel() for x in given]
    places = [1, 0, *range(2, count)] if swap else list(range(count))
    full = tuple(sizes[p] for p in places)
    return tuple(
        expand(reshape(x, [-1 if d == place else 1 for d in range(count)]), full)
        for x, place in zip(given, places, strict=True)
    )


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of one element of each vector, one per row."""
    for x in tensors:
        if x.ndim != 1:
            raise RuntimeError(
                f"cartesian_prod: expects 1D vectors, but got shape {tuple(x.shape)}"
            )
    if len(tensors) == 1:
        return tensors[0]
    return stack([ravel(grid) for grid in meshgrid(*tensors)], 1)


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of r elements of a vector, in order, one per row."""
    if input.ndim != 1:
        raise RuntimeError(f"combinations: expects a 1D vector, but got shape {tuple(input.shape)}")
    if r < 0:
        raise RuntimeError(f"combinations: expects a non-negative number, but got {r}")
    rows = K.combination_numbers(input.shape[0], r, with_replacement)
    if r == 0:
        return narrow(input, 0, 0, 0)
    return reshape(choose(input, -1, of_array(rows.reshape(-1)), "combinations"), rows.shape)
