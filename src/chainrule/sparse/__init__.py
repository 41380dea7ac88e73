"""Sparse tensors in coordinates (COO) and in compressed rows (CSR), under PyTorch's names.

A :class:`SparseTensor` has the places of its entries and a tensor of their values, through which
derivatives of both modes and any order flow. Products with dense matrices run over compressed rows,
which a tensor makes once and shares with all that have its places.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn

from chainrule.backend import dtypes
from chainrule.sparse import creation, entries, products, reductions
from chainrule.sparse.sparse_tensor import SparseTensor
from chainrule.tensor import Tensor, layout, sparse_coo, sparse_csr
from chainrule.typing import ArrayLike, Device, Dims, DType, Number, Shape

__all__ = [
    "BFloat16Tensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
    "SparseTensor",
    "addmm",
    "from_scipy",
    "log_softmax",
    "mm",
    "sampled_addmm",
    "softmax",
    "sparse_coo_tensor",
    "sparse_csr_tensor",
    "spdiags",
    "spmm",
    "sum",
    "to_scipy",
]

Matrix = Tensor | SparseTensor


# --- new ones -------------------------------------------------------------------------------------


def sparse_coo_tensor(
    indices: ArrayLike,
    values: ArrayLike | None = None,
    size: Shape | None = None,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> SparseTensor:
    """A sparse tensor in coordinates: entry e has the value ``values[e]`` at ``indices[:, e]``.

    Entries at the same place are summed. If ``values`` require a gradient, it flows to them; with
    ``requires_grad`` the new tensor is a leaf, and its own gradient is sparse.

    Shape: indices (sparse_dim, nnz), values (nnz, \\*dense).

    Args:
        indices: integers; that they are inside the size is always checked. A size alone makes a
            tensor without entries.
        values: of the entries.
        size: of the whole; if not given, what holds all indices.
        dtype, device: of the values.
        pin_memory: must be False: there is no GPU.
        requires_grad: whether the new tensor is a leaf that gets a gradient.
        check_invariants: False leaves out the check of ``is_coalesced``.
        is_coalesced: promises that the places are sorted and different.

    >>> import chainrule
    >>> i, v = chainrule.tensor([[0, 1], [2, 0]]), chainrule.tensor([3.0, 4.0])
    >>> chainrule.sparse_coo_tensor(i, v, (2, 3))
    tensor(indices=tensor([[0, 1],
                           [2, 0]]),
           values=tensor([3., 4.]),
           size=(2, 3), nnz=2, layout=chainrule.sparse_coo)
    """
    _no_pinning("sparse_coo_tensor", pin_memory)
    return creation.coo(
        SparseTensor,
        indices,
        values,
        size,
        dtype=dtype,
        device=device,
        requires_grad=requires_grad,
        check_invariants=check_invariants,
        is_coalesced=is_coalesced,
    )


def sparse_csr_tensor(
    crow_indices: ArrayLike,
    col_indices: ArrayLike,
    values: ArrayLike,
    size: Shape | None = None,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> SparseTensor:
    """A sparse matrix in compressed rows: those of row i are ``crow_indices[i]`` up to
    ``crow_indices[i + 1]`` of ``col_indices`` and ``values``.

    Shape: crow_indices (rows + 1), col_indices (nnz), values (nnz).

    Args:
        crow_indices, col_indices: integers; that they fit each other and the size is always
            checked.
        values: of the entries.
        size: of the whole; if not given, what holds all indices.
        dtype, device: of the values.
        pin_memory: must be False: there is no GPU.
        requires_grad: whether the new tensor is a leaf that gets a gradient.
        check_invariants: True checks, too, that the columns of each row grow.

    >>> import chainrule
    >>> chainrule.sparse_csr_tensor([0, 1, 2], [1, 0], [5.0, 6.0]).to_dense()
    tensor([[0., 5.],
            [6., 0.]])
    """
    _no_pinning("sparse_csr_tensor", pin_memory)
    return creation.csr(
        SparseTensor,
        crow_indices,
        col_indices,
        values,
        size,
        dtype=dtype,
        device=device,
        requires_grad=requires_grad,
        check_invariants=check_invariants,
    )


def _no_pinning(op: str, pin_memory: bool) -> None:
    if pin_memory:
        raise RuntimeError(f"{op}: memory is pinned for a GPU, and there is none; leave it out")


def _typed(dtype: dtypes.dtype) -> Callable[..., SparseTensor]:
    """PyTorch's older way to make a sparse tensor of one type."""

    def make(
        indices: ArrayLike, values: ArrayLike | None = None, size: Shape | None = None
    ) -> SparseTensor:
        return sparse_coo_tensor(indices, values, size, dtype=dtype)

    make.__doc__ = f"sparse_coo_tensor of {dtype}, by the name it had in older programs."
    return make


ByteTensor, CharTensor = _typed(dtypes.uint8), _typed(dtypes.int8)
ShortTensor, IntTensor, LongTensor = (_typed(d) for d in (dtypes.int16, dtypes.int32, dtypes.int64))
HalfTensor, BFloat16Tensor = _typed(dtypes.float16), _typed(dtypes.bfloat16)
FloatTensor, DoubleTensor = _typed(dtypes.float32), _typed(dtypes.float64)


def spdiags(
    diagonals: Tensor, offsets: Tensor, shape: Shape, layout: layout | None = None
) -> SparseTensor:
    """A sparse matrix whose diagonals are rows of ``diagonals``: row i at ``offsets[i]`` (above the
    main diagonal if positive), the element ``diagonals[i, j]`` in column j.

    >>> import chainrule
    >>> d = chainrule.tensor([[1.0, 2.0, 3.0]])
    >>> chainrule.sparse.spdiags(d, chainrule.tensor([1]), (3, 3)).to_dense()
    tensor([[0., 2., 0.],
            [0., 0., 3.],
            [0., 0., 0.]])
    """
    return creation.diagonals(SparseTensor, diagonals, offsets, shape, layout)


def from_scipy(matrix: Any) -> SparseTensor:
    """A sparse array of SciPy as a sparse tensor with memory of its own: in compressed rows if it
    is so, else in coordinates.

    >>> import chainrule, scipy.sparse
    >>> chainrule.sparse.from_scipy(scipy.sparse.eye_array(2, format="csr")).crow_indices()
    tensor([0, 1, 2])
    """
    return creation.from_scipy(SparseTensor, matrix)


def to_scipy(input: SparseTensor) -> Any:
    """A sparse tensor as a sparse array of SciPy: ``coo_array`` or ``csr_array``."""
    return _sparse("to_scipy", input).to_scipy()


# --- products -------------------------------------------------------------------------------------


def mm(mat1: Matrix, mat2: Matrix, reduce: str | None = None) -> Any:
    """mat1 @ mat2 for matrices of which at least one is sparse: sparse if both are.

    With ``reduce`` ("mean", "amax", "amin") the terms of each element of the product are not
    summed but averaged, or the largest or smallest is taken; the first matrix is sparse then.

    >>> import chainrule
    >>> a = chainrule.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse()
    >>> chainrule.sparse.mm(a, chainrule.eye(2))
    tensor([[0., 2.],
            [3., 0.]])
    """
    for x in (mat1, mat2):
        if x.ndim != 2:
            raise RuntimeError(f"sparse.mm: expected matrices, got shape {tuple(x.shape)}")
    if reduce is not None:
        return products.reduced_product(mat1, mat2, reduce)
    if not isinstance(mat1, SparseTensor) and not isinstance(mat2, SparseTensor):
        return mat1 @ mat2
    return products.matmul(mat1, mat2, "sparse.mm")


def spmm(input: Matrix, mat2: Matrix) -> Any:
    """input @ mat2 for matrices of which at least one is sparse: :func:`mm` by its older name."""
    return mm(input, mat2)


def addmm(mat: Matrix, mat1: Matrix, mat2: Matrix, *, beta: Number = 1, alpha: Number = 1) -> Any:
    """beta * mat + alpha * (mat1 @ mat2), where matrices may be sparse."""
    return products.addmm(mat, mat1, mat2, beta, alpha)


def sampled_addmm(
    input: SparseTensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1
) -> SparseTensor:
    """beta * input + alpha * (mat1 @ mat2), computed at the entries of ``input`` alone.

    ``input`` has compressed rows, and so has the result, at the same places.
    """
    return products.sampled_addmm(input, mat1, mat2, beta, alpha)


# --- reductions -----------------------------------------------------------------------------------


def sum(input: SparseTensor, dim: Dims = None, dtype: DType | None = None) -> Any:
    """The sum of all elements, or along dimensions: sparse if a sparse one is left, else dense.

    >>> import chainrule
    >>> chainrule.sparse.sum(chainrule.eye(3).to_sparse(), 0).to_dense()
    tensor([1., 1., 1.])
    """
    return reductions.sum_along(_sparse("sparse.sum", input), dim, False, dtype)


def softmax(input: SparseTensor, dim: int, *, dtype: DType | None = None) -> SparseTensor:
    """exp(x) / sum(exp(x)) along ``dim`` over the entries: what is no entry counts as -inf, so
    the entries of each line sum to 1. Attention over the neighbors of each node of a graph.

    >>> import chainrule
    >>> scores = chainrule.tensor([[1.0, 1.0, 0.0], [0.0, 0.0, 2.0]]).to_sparse()
    >>> chainrule.sparse.softmax(scores, 1).values()
    tensor([0.5000, 0.5000, 1.0000])
    """
    return reductions.softmax(_sparse("sparse.softmax", input), dim, dtype)


def log_softmax(input: SparseTensor, dim: int, *, dtype: DType | None = None) -> SparseTensor:
    """log(softmax(x)) along ``dim`` over the entries."""
    return reductions.log_softmax(_sparse("sparse.log_softmax", input), dim, dtype)


def _sparse(op: str, input: Any) -> SparseTensor:
    if not isinstance(input, SparseTensor):
        raise TypeError(
            f"{op}: expected a sparse tensor, got {type(input).__name__}; .to_sparse() makes one"
        )
    return input


# --- methods of dense tensors ---------------------------------------------------------------------


def _to_sparse(
    self: Tensor, sparse_dim: int | None = None, *, layout: layout | None = None
) -> SparseTensor:
    """The nonzero elements as a sparse tensor; with ``sparse_dim`` the first so many dimensions
    are sparse, and the entries are slices."""
    if layout is not None and layout not in (sparse_coo, sparse_csr):
        raise RuntimeError(
            f"to_sparse: layout must be chainrule.sparse_coo or chainrule.sparse_csr, got {layout}"
        )
    return creation.from_dense(SparseTensor, self, sparse_dim, layout or sparse_coo)


def _to_sparse_coo(self: Tensor) -> SparseTensor:
    """The nonzero elements as a sparse tensor in coordinates."""
    return creation.from_dense(SparseTensor, self, None, sparse_coo)


def _to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> SparseTensor:
    """The nonzero elements of a matrix as a sparse one with compressed rows."""
    if dense_dim:
        raise RuntimeError(f"to_sparse_csr: entries are numbers, got dense_dim={dense_dim}")
    return creation.from_dense(SparseTensor, self, None, sparse_csr)


def _sparse_mask(self: Tensor, mask: SparseTensor) -> SparseTensor:
    """What this tensor has at the places of a sparse one."""
    return entries.masked(self, mask)


def _sparse_dim(self: Tensor) -> int:
    """The number of sparse dimensions: 0."""
    return 0


def _dense_dim(self: Tensor) -> int:
    """The number of dense dimensions: all."""
    return self.ndim


METHODS: dict[str, Callable[..., Any]] = {
    "dense_dim": _dense_dim,
    "sparse_dim": _sparse_dim,
    "sparse_mask": _sparse_mask,
    "to_sparse": _to_sparse,
    "to_sparse_coo": _to_sparse_coo,
    "to_sparse_csr": _to_sparse_csr,
}
for _name, _method in METHODS.items():
    setattr(Tensor, _name, _method)


ABSENT = {
    "as_sparse_gradcheck": "check a function of the values: autograd.gradcheck(f, values)",
    "check_sparse_tensor_invariants": "indices are always checked to be inside the size",
}


def __getattr__(name: str) -> NoReturn:
    absent = import_module("chainrule.absent")
    raise (
        absent.absent(__name__, name, ABSENT)
        if name in ABSENT
        else absent.of_pytorch(__name__, name)
    )
