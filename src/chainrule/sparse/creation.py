"""New sparse tensors: from indices and values, from dense tensors, of diagonals, from SciPy."""

from __future__ import annotations

from typing import Any, TypeVar

from chainrule.backend import K, dtypes
from chainrule.ops.core.arguments import check_device, checked_size
from chainrule.ops.core.promotion import cast
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.creation.patterns import arange, zeros
from chainrule.ops.elementwise.logic import ne
from chainrule.ops.index.reading import nonzero
from chainrule.ops.reduce.reductions import any as any_of
from chainrule.ops.shape.stacking import cat, stack
from chainrule.ops.shape.views import reshape
from chainrule.sparse.base import Sparse, alias
from chainrule.sparse.structure import Structure
from chainrule.tensor import Tensor, layout, of_array, sparse_coo, sparse_csr
from chainrule.typing import Array, ArrayLike, Device, DType, Shape

__all__ = ["at_places", "coo", "csr", "diagonals", "from_dense", "from_scipy"]

S = TypeVar("S", bound=Sparse)


def coo(
    cls: type[S],
    indices: ArrayLike,
    values: ArrayLike | None,
    size: Shape | None,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> S:
    """A sparse tensor from the places of its entries (sparse_dim, nnz) and their values."""
    op = "sparse_coo_tensor"
    check_device(op, device)
    if values is None:  # PyTorch's sparse_coo_tensor(size): no entries
        shape = checked_size(op, indices)  # type: ignore[arg-type]
        places = K.zeros((len(shape), 0), dtypes.int64.array_dtype)
        entries = zeros(0, dtype=dtype)
        return cls.of(Structure(places, shape, None, True), _leaf(entries, requires_grad))
    places = _integers(op, "indices", indices)
    if places.ndim != 2:
        raise RuntimeError(
            f"{op}: indices must be of shape (sparse_dim, nnz), got {places.shape}; one row for "
            "each dimension, one column for each entry"
        )
    entries = _values(op, values, dtype)
    nnz = places.shape[1]
    if not entries.ndim or entries.shape[0] != nnz:
        raise RuntimeError(
            f"{op}: indices name {nnz} entries, values have shape {tuple(entries.shape)}; their "
            "first dimension must be the number of entries"
        )
    _check_lower(op, places)
    if size is None:
        ends = [int(row.max()) + 1 if nnz else 0 for row in places]
        shape = (*ends, *entries.shape[1:])
    else:
        shape = _fitting_size(op, size, places, entries)
    if is_coalesced and check_invariants is not False:
        _check_sorted(op, Structure(places, shape))
    structure = Structure(places, shape, None, bool(is_coalesced) or nnz < 2)
    return cls.of(structure, _leaf(entries, requires_grad))


def csr(
    cls: type[S],
    crow_indices: ArrayLike,
    col_indices: ArrayLike,
    values: ArrayLike,
    size: Shape | None,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> S:
    """A sparse matrix from where each row begins, the columns and the values of its entries."""
    op = "sparse_csr_tensor"
    check_device(op, device)
    starts = _integers(op, "crow_indices", crow_indices)
    columns = _integers(op, "col_indices", col_indices)
    entries = _values(op, values, dtype)
    if starts.ndim != 1 or columns.ndim != 1 or entries.ndim != 1 or not starts.size:
        raise RuntimeError(
            f"{op}: crow_indices, col_indices and values must be vectors, one matrix at a time; "
            f"got shapes {starts.shape}, {columns.shape} and {tuple(entries.shape)}"
        )
    nnz = columns.size
    if entries.shape[0] != nnz:
        raise RuntimeError(
            f"{op}: col_indices name {nnz} entries, values have shape {tuple(entries.shape)}"
        )
    if starts[0] != 0 or starts[-1] != nnz or (starts[1:] < starts[:-1]).any():
        raise RuntimeError(
            f"{op}: crow_indices must grow from 0 to the number of entries, {nnz}; got "
            f"{starts[:8].tolist()}{'...' if starts.size > 8 else ''}"
        )
    rows = starts.size - 1
    _check_lower(op, columns[None], first=1)
    shape = (rows, int(columns.max()) + 1 if nnz else 0)
    if size is not None:
        shape = checked_size(op, size)  # type: ignore[assignment]
        if len(shape) != 2 or shape[0] != rows:
            raise RuntimeError(
                f"{op}: size {shape} does not fit crow_indices of length {starts.size}: they are "
                f"of a matrix with {rows} rows"
            )
        _check_upper(op, columns[None], shape[1:], first=1)
    structure = Structure.of_rows(starts, columns, shape)
    if check_invariants:
        _check_sorted(op, structure)
    return cls.of(structure, _leaf(entries, requires_grad))


# --- checks ---------------------------------------------------------------------------------------


def _integers(op: str, name: str, given: ArrayLike) -> Array:
    """Indices as an array of int64 of their own."""
    found = as_tensor(given).detach()
    if found.dtype.category != dtypes.INTEGER and found.numel():
        raise RuntimeError(
            f"{op}: {name} must be integers, got {found.dtype}; convert them with .long()"
        )
    array: Array = cast(found, dtypes.int64)._numbers(op)
    return K.owned(array, True)  # the caller may go on to write into the given ones


def _values(op: str, given: ArrayLike, dtype: DType | None) -> Tensor:
    if isinstance(given, Sparse):
        raise TypeError(f"{op}: values must be a dense tensor, got a sparse one; use its .values()")
    return as_tensor(given, dtype)


def _leaf(entries: Tensor, requires_grad: bool) -> Tensor:
    """The values as a tensor of their own, in the same memory: a leaf, or one with the history of
    the given values."""
    return entries.detach().requires_grad_() if requires_grad else alias(entries)


def _check_lower(op: str, places: Array, first: int = 0) -> None:
    if places.size and places.min() < 0:
        row = int(places.min(axis=1).argmin())
        raise RuntimeError(
            f"{op}: found negative index {int(places[row].min())} for dimension {row + first}; "
            "indices count from 0"
        )


def _check_upper(op: str, places: Array, shape: tuple[int, ...], first: int = 0) -> None:
    if not places.size:
        return
    for d, n in enumerate(shape):
        largest = int(places[d].max())
        if largest >= n:
            raise RuntimeError(
                f"{op}: size is inconsistent with indices: for dimension {d + first}, size is {n} "
                f"but found index {largest}"
            )


def _fitting_size(op: str, size: Shape, places: Array, entries: Tensor) -> tuple[int, ...]:
    shape = checked_size(op, size)
    sparse_dim, dense = places.shape[0], tuple(entries.shape[1:])
    if len(shape) != sparse_dim + len(dense):
        raise RuntimeError(
            f"{op}: size {shape} has {len(shape)} dimensions, but indices name {sparse_dim} and "
            f"each value has {len(dense)}"
        )
    if shape[sparse_dim:] != dense:
        raise RuntimeError(
            f"{op}: values have incorrect size, expected {(places.shape[1], *shape[sparse_dim:])}, "
            f"got {tuple(entries.shape)}"
        )
    _check_upper(op, places, shape[:sparse_dim])
    return shape


def _check_sorted(op: str, structure: Structure) -> None:
    if structure.summed()[1] is not None:
        raise RuntimeError(
            f"{op}: the indices are not sorted, or name a place twice; make the tensor with "
            "sparse_coo_tensor and call .coalesce()"
        )


# --- from dense tensors ---------------------------------------------------------------------------


def from_dense(cls: type[S], dense: Tensor, sparse_dim: int | None, wanted: layout) -> S:
    """The nonzero elements of a dense tensor, or its slices that are not all zero."""
    n = dense.ndim if sparse_dim is None else sparse_dim
    if not (0 < n <= dense.ndim or n == dense.ndim == 0):
        raise RuntimeError(
            f"to_sparse: sparse_dim must be between 1 and the number of dimensions, {dense.ndim}; "
            f"got {sparse_dim}"
        )
    if wanted is sparse_csr and (dense.ndim != 2 or n != 2):
        raise RuntimeError(
            f"to_sparse: chainrule.sparse_csr is for matrices, got shape {tuple(dense.shape)}"
        )
    known = dense.detach()
    if n < dense.ndim:
        known = any_of(reshape(ne(known, 0), (*dense.shape[:n], -1)), -1)
    places: Array = nonzero(known)._numbers("to_sparse").T
    structure = Structure(K.owned(places, True), tuple(dense.shape), None, True)
    if wanted is sparse_csr:
        structure = structure.compressed()
    return at_places(cls, dense, structure)


def at_places(cls: type[S], dense: Tensor, structure: Structure) -> S:
    """What a dense tensor has at the places of a structure."""
    if not structure.sparse_dim:
        return cls.of(structure, reshape(dense, (1, *dense.shape)))
    return cls.of(structure, dense[tuple(map(of_array, structure.indices))])


def diagonals(
    cls: type[S], values: Tensor, offsets: Tensor, shape: Shape, wanted: layout | None
) -> S:
    """A matrix whose diagonals are the rows of ``values``, each at its offset."""
    op = "spdiags"
    size = checked_size(op, shape)
    rows = reshape(values, (1, -1)) if values.ndim == 1 else values
    steps = reshape(offsets, (-1,)).tolist()
    if rows.ndim != 2 or len(size) != 2 or len(steps) != rows.shape[0]:
        raise ValueError(
            f"{op}: expected a row of diagonals for each of {len(steps)} offsets and a matrix's "
            f"shape, got diagonals of shape {tuple(values.shape)} and shape {size}"
        )
    if len(set(steps)) != len(steps):
        raise ValueError(f"{op}: offsets must be different, got {steps}")
    places, parts = [], []
    for i, step in enumerate(steps):
        # As in SciPy: the element of the diagonal that stands in column j is values[i, j].
        low, high = max(0, step), min(size[1], size[0] + step, rows.shape[1])
        columns = arange(low, max(low, high))
        places.append(stack([columns - step, columns]))
        parts.append(rows[i, low : max(low, high)])
    out = coo(cls, cat(places, 1), cat(parts), size)
    if wanted is None or wanted is sparse_coo:
        return out
    if wanted is not sparse_csr:
        raise ValueError(f"{op}: layout must be chainrule.sparse_coo or sparse_csr, got {wanted}")
    return out.in_rows()


def from_scipy(cls: type[S], matrix: Any) -> S:
    """A SciPy sparse array: compressed rows as such, all others in coordinates."""
    if not hasattr(matrix, "tocoo"):
        raise TypeError(
            f"from_scipy: expected a sparse array of scipy.sparse, got {type(matrix).__name__}"
        )
    if matrix.format == "csr" and matrix.ndim == 2:
        parts = (K.owned(matrix.data, True), tuple(map(int, matrix.shape)))
        return csr(cls, matrix.indptr, matrix.indices, *parts)
    matrix = matrix.tocoo()
    indices = cat([reshape(as_tensor(c), (1, -1)) for c in matrix.coords])
    return coo(cls, indices, K.owned(matrix.data, True), tuple(map(int, matrix.shape)))
