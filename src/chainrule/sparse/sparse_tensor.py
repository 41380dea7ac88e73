"""SparseTensor: the operations that a sparse tensor has, as methods and operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from chainrule.ops.core.promotion import cast
from chainrule.ops.elementwise import functions
from chainrule.ops.linalg.norms import norm
from chainrule.ops.shape.views import canonical_dim, canonical_dims
from chainrule.backend import K
from chainrule.sparse import elementwise, entries, products, reductions
from chainrule.sparse.base import Sparse, alias
from chainrule.tensor import Tensor, layout, of_array, sparse_coo, sparse_csr
from chainrule.typing import Dims, DType, Number

__all__ = ["SparseTensor"]


def _function(name: str) -> Callable[..., Any]:
    """The method of a function with f(0) = 0."""

    def method(self: SparseTensor, **options: Any) -> Any:
        return elementwise.applied(name, self, **options)

    method.__name__, method.__doc__ = name, f"The {name} of each element."
    return method


class SparseTensor(Sparse):
    """A tensor of which only some elements are held, its entries; all others are zero.

    It comes from :func:`chainrule.sparse_coo_tensor`, :func:`chainrule.sparse_csr_tensor` and
    ``x.to_sparse()``. Its values are an ordinary tensor, and derivatives of any order flow through
    them; what is no entry is a constant. A leaf that requires a gradient gets a sparse one.

    >>> import chainrule
    >>> edges = chainrule.tensor([[0, 1, 2], [1, 2, 0]])
    >>> a = chainrule.sparse_coo_tensor(edges, chainrule.tensor([1.0, 2.0, 3.0]), (3, 3))
    >>> a @ chainrule.ones(3, 1)
    tensor([[1.],
            [2.],
            [3.]])
    """

    __slots__ = ()

    # --- conversion -------------------------------------------------------------------------------

    def coalesce(self) -> Self:
        """This tensor with its places sorted and each once, values at one place summed."""
        self._only("coalesce", sparse_coo)
        return self.distinct()

    def to_dense(self, dtype: DType | None = None, *, masked_grad: bool | None = None) -> Tensor:
        """All elements, the zeros too. Only entries have a gradient, whatever ``masked_grad``."""
        out = elementwise.to_dense(self)
        return out if dtype is None else cast(out, dtype)

    def to_sparse(self, sparse_dim: int | None = None, *, layout: layout | None = None) -> Self:
        """This tensor, in another layout if one is given."""
        if sparse_dim is not None and sparse_dim != self.sparse_dim():
            raise RuntimeError(
                f"to_sparse: this tensor has {self.sparse_dim()} sparse dimensions, got "
                f"sparse_dim={sparse_dim}; go through .to_dense()"
            )
        return self.to_sparse_csr() if layout is sparse_csr else self.to_sparse_coo()

    def to_sparse_coo(self) -> Self:
        """This tensor in coordinates."""
        if self.structure.starts is None:
            return self
        same = self.distinct()
        return self.of(same.structure.with_coordinates(), alias(same.entries))

    def to_sparse_csr(self, dense_dim: int | None = None) -> Self:
        """This matrix with compressed rows."""
        if self.sparse_dim() != 2 or self.ndim != 2 or dense_dim:
            raise RuntimeError(
                "to_sparse_csr: compressed rows are for matrices of numbers, got shape "
                f"{tuple(self.shape)} with {self.sparse_dim()} sparse dimensions"
            )
        if self.structure.starts is not None:
            return self
        return self.in_rows()

    def to_scipy(self) -> Any:
        """The same as an array of ``scipy.sparse``: ``coo_array`` or ``csr_array``."""
        if self.dense_dim():
            raise RuntimeError("to_scipy: the values of SciPy's sparse arrays are numbers")
        if self.requires_grad:
            raise RuntimeError("to_scipy: this tensor requires grad; use x.detach().to_scipy()")
        s = self.structure
        return K.scipy_sparse(self.entries.numpy(), s.indices, s.starts, tuple(s.shape))

    # --- products ---------------------------------------------------------------------------------

    def matmul(self, other: Any) -> Any:
        """self @ other: dense, or sparse if ``other`` is."""
        return products.matmul(self, other)

    mm = mv = spmm = matmul

    def __matmul__(self, other: Any) -> Any:
        return products.matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return products.matmul(other, self)

    # --- arithmetic -------------------------------------------------------------------------------

    def add(self, other: Any, *, alpha: Number = 1) -> Any:
        """self + alpha * other"""
        return elementwise.add(self, other, alpha)

    def sub(self, other: Any, *, alpha: Number = 1) -> Any:
        """self - alpha * other"""
        return elementwise.add(self, other, -alpha)

    def mul(self, other: Any) -> Self:
        """self * other, element by element; sparse in any case."""
        return elementwise.mul(self, other)

    def div(self, other: Number | Tensor) -> Self:
        """self / other, a number."""
        return elementwise.div(self, other)

    def pow(self, exponent: float) -> Self:
        """Each element to a power above 0."""
        return elementwise.pow(self, exponent)

    def __add__(self, other: Any) -> Any:
        return elementwise.add(self, other)

    def __radd__(self, other: Any) -> Any:
        return elementwise.add(other, self)

    def __sub__(self, other: Any) -> Any:
        return elementwise.add(self, other, -1)

    def __rsub__(self, other: Any) -> Any:
        return elementwise.add(other, self, -1)

    def __mul__(self, other: Any) -> Self:
        return elementwise.mul(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Self:
        return elementwise.div(self, other)

    def __rtruediv__(self, other: Any) -> Self:
        return elementwise.div(other, self)

    def __floordiv__(self, other: Any) -> Self:
        return elementwise.div(self, other, functions.floor_divide)

    def __pow__(self, exponent: Any) -> Self:
        return elementwise.pow(self, exponent)

    def __rpow__(self, base: Any) -> Self:
        return elementwise.pow(base, self)

    def __neg__(self) -> Self:
        return elementwise.applied("neg", self)

    def __pos__(self) -> Self:
        return self

    def __abs__(self) -> Self:
        return elementwise.applied("abs", self)

    def _refuse_comparison(self, other: object) -> Any:
        raise self.refusal("comparison")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse_comparison
    __hash__ = object.__hash__  # by identity, as in PyTorch

    # --- shape ------------------------------------------------------------------------------------

    def transpose(self, dim0: int, dim1: int) -> Self:
        """Two dimensions exchanged."""
        d0, d1 = (canonical_dim("transpose", d, self.ndim) + self.ndim for d in (dim0, dim1))
        dims = list(range(self.ndim))
        dims[d0], dims[d1] = dims[d1], dims[d0]
        return entries.permuted(self, tuple(dims))

    def permute(self, *dims: Any) -> Self:
        """The dimensions in another order."""
        order = dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
        found = [d + self.ndim for d in canonical_dims("permute", order, self.ndim)]
        if len(found) != self.ndim:
            raise RuntimeError(f"permute: expected {self.ndim} dimensions, got {tuple(order)}")
        return entries.permuted(self, tuple(found))

    def t(self) -> Self:
        """The transpose of a matrix; a vector as it is."""
        if self.ndim > 2:
            raise RuntimeError(f"t: expects a tensor with <= 2 dimensions, but got {self.ndim}")
        return self if self.ndim < 2 else self.transpose(0, 1)

    @property
    def T(self) -> Self:
        """All dimensions in reverse order."""
        return entries.permuted(self, tuple(range(self.ndim - 1, -1, -1)))

    @property
    def mT(self) -> Self:
        """The last two dimensions exchanged."""
        return self.transpose(-2, -1)

    def index_select(self, dim: int, index: Tensor) -> Self:
        """The slices along ``dim`` that a vector of integers names."""
        return entries.chosen(self, dim, index)

    def select(self, dim: int, index: int) -> Any:
        """One slice along ``dim``: sparse if it has a sparse dimension left, else dense."""
        return entries.select(self, dim, index)

    def __getitem__(self, index: Any) -> Any:
        return entries.subscript(self, index)

    def sparse_mask(self, mask: SparseTensor) -> SparseTensor:
        """What this tensor has at the places of another."""
        return entries.masked(self, mask)

    # --- reductions -------------------------------------------------------------------------------

    def sum(self, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Any:
        """The sum of all elements, or along dimensions: sparse if a sparse one is left."""
        return reductions.sum_along(self, dim, keepdim, dtype)

    def norm(self, p: float = 2) -> Tensor:
        """The p-norm of all elements, for p above 0."""
        if p <= 0:
            raise RuntimeError(f"norm: p must be above 0 for a sparse tensor, got {p}")
        return norm(self.distinct().entries, p)

    # --- functions --------------------------------------------------------------------------------

    abs, absolute = _function("abs"), _function("abs")
    asin, asinh = _function("asin"), _function("asinh")
    atan, atanh = _function("atan"), _function("atanh")
    ceil, floor = _function("ceil"), _function("floor")
    conj, imag, real = _function("conj"), property(_function("imag")), property(_function("real"))
    deg2rad, rad2deg = _function("deg2rad"), _function("rad2deg")
    erf, erfinv = _function("erf"), _function("erfinv")
    expm1, log1p = _function("expm1"), _function("log1p")
    frac, round, trunc = _function("frac"), _function("round"), _function("trunc")
    isinf, isnan, nan_to_num = _function("isinf"), _function("isnan"), _function("nan_to_num")
    neg, negative, positive = _function("neg"), _function("neg"), _function("positive")
    relu = _function("relu")
    sgn, sign = _function("sgn"), _function("sign")
    sin, sinh = _function("sin"), _function("sinh")
    sqrt, square = _function("sqrt"), _function("square")
    tan, tanh = _function("tan"), _function("tanh")

    def operate(self, name: str, operands: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """What functions of the library make of a sparse tensor."""
        operands = tuple([of_array(x) if isinstance(x, K.Array) else x for x in operands])
        if name in OPERATIONS:
            return OPERATIONS[name](*operands, **params)
        if name in elementwise.KEEP_ZEROS or name in elementwise.LINEAR:
            return elementwise.applied(name, self)
        raise self.refusal(name)


# By the names of the primitives that the functions of the library apply.
OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": elementwise.add,
    "cast": lambda x, dtype, **params: x.to(dtype),
    "cast_to_integer": lambda x, dtype: x.to(dtype),
    "clone": SparseTensor.clone,
    "div": elementwise.div,
    "floor_divide": lambda x, y: elementwise.div(x, y, functions.floor_divide),
    "linear": products.linear,
    "matmul": products.matmul,
    "mul": elementwise.mul,
    "permute": lambda x, dims: x.permute(*dims),
    "pow": elementwise.pow,
    "sub": lambda x, y: elementwise.add(x, y, -1),
    "sum": reductions.sum_along,
}
