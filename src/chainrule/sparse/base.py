"""What a sparse tensor is: a structure, the places of its entries, and a tensor of their values."""

from __future__ import annotations

from typing import Any, NoReturn, Self

from chainrule.backend import dtypes
from chainrule.graph import Box, Node
from chainrule.ops.core.promotion import cast
from chainrule.ops.creation.conversion import clone, to
from chainrule.ops.index.choice import FULL, index_place, read
from chainrule.ops.shape.views import reshape
from chainrule.printing import format_entries
from chainrule.sparse.structure import Structure
from chainrule.tensor import OtherLayout, Size, Tensor, device, of_array, sparse_coo, sparse_csr
from chainrule.tensor import layout as Layout
from chainrule.typing import Array, Device, DType

__all__ = ["Sparse", "alias", "gathered", "summed"]


def alias(entries: Tensor) -> Tensor:
    """Another tensor in the same memory, to which the history goes on."""
    if entries.requires_grad or isinstance(entries.array, Box):
        return reshape(entries, tuple(entries.shape))
    return entries.detach()


def gathered(values: Tensor, entries: Array) -> Tensor:
    """The values of some entries."""
    return read(values, of_array(entries), **_rows_of(values))


def summed(values: Tensor, group: Array, count: int) -> Tensor:
    """The sums of the values by groups: out[group[e]] += values[e]."""
    if values.dtype is dtypes.bool_:
        return cast(summed(cast(values, dtypes.int64), group, count), dtypes.bool_)
    shape = (count, *values.shape[1:])
    return index_place(values, of_array(group), shape=shape, **_rows_of(values))


def _rows_of(values: Tensor) -> dict[str, Any]:
    """What a choice along the first dimension is called with."""
    tail = values.ndim - 1
    return {"entries": (..., *[FULL] * tail), "tail": tail, "distinct": False}


class Sparse(OtherLayout):
    """A structure and the values of its entries, an ordinary tensor with its history: through that
    derivatives flow. What stands nowhere in the structure is zero."""

    __slots__ = ("__weakref__", "entries", "structure")
    entries: Tensor  # (nnz, *dense)
    structure: Structure

    is_cpu = True
    is_cuda = is_meta = is_mps = is_nested = is_quantized = is_xpu = False

    @classmethod
    def of(cls, structure: Structure, entries: Tensor) -> Self:
        """A sparse tensor of parts that fit each other."""
        out = object.__new__(cls)
        out.structure, out.entries = structure, entries
        return out

    def with_values(self, entries: Tensor) -> Self:
        """Other values at the same places."""
        return self.of(self.structure, entries)

    # --- what it is -------------------------------------------------------------------------------

    @property
    def shape(self) -> Size:  # type: ignore[override]
        return self.structure.shape

    @property
    def ndim(self) -> int:
        return len(self.structure.shape)

    @property
    def dtype(self) -> dtypes.dtype:
        return self.entries.dtype

    @property
    def device(self) -> device:
        return self.entries.device

    @property
    def layout(self) -> Layout:  # type: ignore[override]
        return self.structure.layout

    @property
    def is_sparse(self) -> bool:
        return self.structure.starts is None

    @property
    def is_sparse_csr(self) -> bool:
        return self.structure.starts is not None

    def size(self, dim: int | None = None) -> Size | int:
        """The shape, or one of its entries."""
        if dim is None:
            return self.shape
        if not -self.ndim <= dim < self.ndim:
            raise IndexError(
                f"size: dimension {dim} is out of range for a tensor of shape {tuple(self.shape)}"
            )
        return self.shape[dim]

    def dim(self) -> int:
        """The number of dimensions."""
        return self.ndim

    def numel(self) -> int:
        """The number of elements, zeros included."""
        return self.shape.numel()

    def sparse_dim(self) -> int:
        """The number of leading dimensions that the indices name."""
        return self.structure.sparse_dim

    def dense_dim(self) -> int:
        """The number of dimensions that the value of an entry has."""
        return self.ndim - self.structure.sparse_dim

    def _nnz(self) -> int:
        return self.structure.nnz

    def is_floating_point(self) -> bool:
        """Whether the values are floating-point numbers."""
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        """Whether the values are complex numbers."""
        return self.dtype.is_complex

    # --- its entries ------------------------------------------------------------------------------

    def _only(self, name: str, wanted: Layout) -> None:
        if self.layout is not wanted:
            other = "to_sparse_coo" if wanted is sparse_coo else "to_sparse_csr"
            raise RuntimeError(
                f"{name}: expected a tensor of layout {wanted}, got {self.layout}; convert it with "
                f".{other}()"
            )

    def _coalesced(self, name: str) -> None:
        self._only(name, sparse_coo)
        if not self.structure.is_coalesced:
            raise RuntimeError(
                f"{name}: cannot get {name} of an uncoalesced tensor; call .coalesce() first"
            )

    def is_coalesced(self) -> bool:
        """Whether no place is named twice and the places are sorted, for all that is known."""
        self._only("is_coalesced", sparse_coo)
        return self.structure.is_coalesced

    def indices(self) -> Tensor:
        """The places of the entries, (sparse_dim, nnz)."""
        self._coalesced("indices")
        return of_array(self.structure.indices)

    def values(self) -> Tensor:
        """The values of the entries, (nnz, *dense); derivatives flow through them."""
        if self.structure.starts is None:
            self._coalesced("values")
        return self.entries

    def _indices(self) -> Tensor:
        self._only("_indices", sparse_coo)
        return of_array(self.structure.indices)

    def _values(self) -> Tensor:
        return self.entries.detach()

    def crow_indices(self) -> Tensor:
        """Where each row begins among the entries, and behind the last one their number."""
        self._only("crow_indices", sparse_csr)
        return of_array(self.structure.starts)

    def col_indices(self) -> Tensor:
        """The columns of the entries, row by row."""
        self._only("col_indices", sparse_csr)
        return of_array(self.structure.indices[1])

    def distinct(self) -> Self:
        """The same tensor with every place once and sorted, in its own layout."""
        structure, group, first = self.structure.summed()
        if group is None or first is None:
            return self if structure is self.structure else self.of(structure, alias(self.entries))
        if len(first) == len(group):
            return self.of(structure, gathered(self.entries, first))
        return self.of(structure, summed(self.entries, group, len(first)))

    def in_rows(self) -> Self:
        """The same matrix in compressed rows."""
        same = self.distinct()
        return self.of(same.structure.compressed(), alias(same.entries))

    # --- its place in the graph -------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        return self.entries.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Asks for a gradient of the entries (or stops asking), in place."""
        self.entries.requires_grad_(requires_grad)
        return self

    @property
    def is_leaf(self) -> bool:
        return self.entries.is_leaf

    @property
    def grad_fn(self) -> Node | None:
        return self.entries.grad_fn

    def retain_grad(self) -> None:
        """Keeps the gradient of this tensor, though it is no leaf."""
        self.entries.retain_grad()

    @property
    def grad(self) -> Self | Any:
        """The gradient that ``backward()`` accumulated: sparse, an entry at each place of this."""
        return None if self.entries.grad is None else self.gradient_of(self.entries.grad)

    @grad.setter
    def grad(self, value: Sparse | None) -> None:
        if value is not None and not (
            isinstance(value, Sparse) and value.structure.equals(self.structure)
        ):
            raise RuntimeError(
                "grad: the gradient of a sparse tensor must be a sparse tensor with entries at the "
                f"same places, or None; got {type(value).__name__}"
            )
        self.entries.grad = None if value is None else value.entries

    def gradient_of(self, entries: Tensor) -> Self:
        """The gradient of this tensor from that of its values: entries at one place have the same,
        which stands there once."""
        structure, _, first = self.structure.summed()
        return self.of(structure, entries if first is None else gathered(entries, first))

    def detach(self) -> Self:
        """The same memory without history."""
        return self.with_values(self.entries.detach())

    @property
    def data(self) -> Self:
        """The same memory without history."""
        return self.with_values(self.entries.data)

    @data.setter
    def data(self, value: Sparse) -> None:
        if not isinstance(value, Sparse):
            raise TypeError(f"data: expected a sparse tensor, got {type(value).__name__}")
        self.structure, self.entries = value.structure, value.entries.data

    # --- copies and conversions -------------------------------------------------------------------

    def clone(self) -> Self:
        """A copy through which gradients flow back."""
        return self.with_values(clone(self.entries))

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """In another type: ``x.to(dtype)``, ``x.to(device, dtype)`` or ``x.to(other)``.

        Of a tensor on a device the values are there, not the indices.
        """
        args = tuple([a.entries if isinstance(a, Sparse) else a for a in args])
        entries = to(self.entries, *args, **kwargs)
        return self if entries is self.entries else self.with_values(entries)

    def copy_(self, src: Sparse, non_blocking: bool = False) -> Self:
        """Takes the entries of another sparse tensor of the same shape and layout, in place."""
        if not isinstance(src, Sparse) or src.layout is not self.layout or src.shape != self.shape:
            what = f"{tuple(getattr(src, 'shape', ()))}, {getattr(src, 'layout', type(src))}"
            raise RuntimeError(
                f"copy_: expected a sparse tensor of shape {tuple(self.shape)} and layout "
                f"{self.layout}, got {what}"
            )
        if self.requires_grad:
            raise RuntimeError(
                "copy_: a sparse tensor that requires grad cannot be changed in place; detach() it"
            )
        self.structure, self.entries = (
            src.structure,
            to(src.entries.detach(), self.dtype, copy=True),
        )
        return self

    def zero_(self) -> Self:
        """Sets the values to zero in place; the entries stay where they are."""
        self.entries.zero_()
        return self

    def cpu(self) -> Self:
        """This tensor with its values on the CPU."""
        return self.to("cpu")

    def cuda(self, device: int | Device | None = None) -> Self:
        """This tensor with its values on a GPU; products of sparse matrices are the CPU's."""
        return self.to("cuda" if device is None else device)

    def type_as(self, other: Any) -> Self:
        """This tensor in the type of another."""
        return self.to(other.dtype)

    def type(self, dtype: DType) -> Self:
        """This tensor in another type."""
        return self.to(dtypes.as_dtype(dtype))

    def half(self) -> Self:
        """float16"""
        return self.to(dtypes.float16)

    def bfloat16(self) -> Self:
        """bfloat16"""
        return self.to(dtypes.bfloat16)

    def float(self) -> Self:
        """float32"""
        return self.to(dtypes.float32)

    def double(self) -> Self:
        """float64"""
        return self.to(dtypes.float64)

    def cfloat(self) -> Self:
        """complex64"""
        return self.to(dtypes.complex64)

    def cdouble(self) -> Self:
        """complex128"""
        return self.to(dtypes.complex128)

    def int(self) -> Self:
        """int32"""
        return self.to(dtypes.int32)

    def long(self) -> Self:
        """int64"""
        return self.to(dtypes.int64)

    def bool(self) -> Self:
        """bool"""
        return self.to(dtypes.bool_)

    def numpy(self, *, force: Any = False) -> NoReturn:
        """Refuses: there is no array of all elements."""
        raise self.refusal("numpy")

    def __getattr__(self, name: str) -> NoReturn:
        told = f"{type(self).__name__!r} object has no attribute {name!r}"
        if hasattr(Tensor, name):
            told += ": it is for dense tensors; convert with .to_dense() first"
        raise AttributeError(told)

    def __len__(self) -> Any:
        if not self.ndim:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __bool__(self) -> Any:
        raise self.refusal("bool")

    def __deepcopy__(self, memo: dict[Any, Any]) -> Self:
        if id(self) not in memo:
            memo[id(self)] = self.with_values(self.entries.__deepcopy__(memo))
        return memo[id(self)]

    def __reduce__(self) -> tuple[Any, ...]:
        s = self.structure
        return _rebuilt, (
            type(self),
            s.indices,
            tuple(s.shape),
            s.starts,
            s.is_coalesced,
            self.entries,
        )

    def __repr__(self) -> str:
        if self.structure.starts is None:
            indices = {"indices": self._indices()}
        else:
            indices = {"crow_indices": self.crow_indices(), "col_indices": self.col_indices()}
        about = [f"size={tuple(self.shape)}", f"nnz={self._nnz()}"]
        return format_entries(indices, self.entries, about, f"layout={self.layout}")


def _rebuilt(
    cls: type[Sparse],
    indices: Array,
    shape: tuple[int, ...],
    starts: Array | None,
    is_coalesced: bool,
    entries: Tensor,
) -> Sparse:
    return cls.of(Structure(indices, shape, starts, is_coalesced), entries)
