"""What rooms above attach to Tensor: methods, operators, properties. See tools/stub.py."""

import builtins
from chainrule.attributes import layout, memory_format
from chainrule.autograd.hooks import RemovableHandle
from chainrule.backend import dtypes
from chainrule.ops.linalg.decompositions import QR, SVD
from chainrule.ops.linalg.householder import Geqrf
from chainrule.ops.linalg.lu import LUFactor
from chainrule.ops.linalg.solving import Slogdet
from chainrule.ops.reduce.histograms import Histogram
from chainrule.ops.reduce.order import MinMax, ValuesIndices
from chainrule.placement import Located
from chainrule.random import Generator
from chainrule.sparse.sparse_tensor import SparseTensor
from chainrule.tensor import Tensor
from chainrule.typing import Array, ArrayLike, DType, Device, Dims, Index, Memory, Number, Operand, Real, Shape, Sizes
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, Self, Unpack, overload

_bool = bool
_float = float
_int = int

class TensorMethods(Located):
    @property
    def H(self) -> Tensor:
        """The conjugate transpose of a matrix: ``x.H``."""
    @property
    def T(self) -> Tensor:
        """All dimensions in reverse order: ``x.T``."""
    def __abs__(self) -> Tensor: ...
    def __add__(self, other: Operand) -> Tensor: ...
    def __and__(self, other: Operand) -> Tensor: ...
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any: ...
    def __eq__(self, other: object) -> Tensor: ...  # type: ignore[override]
    def __floordiv__(self, other: Operand) -> Tensor: ...
    def __ge__(self, other: Operand) -> Tensor: ...
    def __getitem__(self, index: Index) -> Tensor: ...
    def __gt__(self, other: Operand) -> Tensor: ...
    def __iadd__(self, other: Operand) -> Self: ...
    def __iand__(self, other: Operand) -> Self: ...
    def __ifloordiv__(self, other: Operand) -> Self: ...
    def __ilshift__(self, other: Operand) -> Self: ...
    def __imod__(self, other: Operand) -> Self: ...
    def __imul__(self, other: Operand) -> Self: ...
    def __invert__(self) -> Tensor: ...
    def __ior__(self, other: Operand) -> Self: ...
    def __ipow__(self, other: Operand) -> Self: ...
    def __irshift__(self, other: Operand) -> Self: ...
    def __isub__(self, other: Operand) -> Self: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __itruediv__(self, other: Operand) -> Self: ...
    def __ixor__(self, other: Operand) -> Self: ...
    def __le__(self, other: Operand) -> Tensor: ...
    def __lshift__(self, other: Operand) -> Tensor: ...
    def __lt__(self, other: Operand) -> Tensor: ...
    def __matmul__(self, other: Tensor | Array) -> Tensor: ...
    def __mod__(self, other: Operand) -> Tensor: ...
    def __mul__(self, other: Operand) -> Tensor: ...
    def __ne__(self, other: object) -> Tensor: ...  # type: ignore[override]
    def __neg__(self) -> Tensor: ...
    def __or__(self, other: Operand) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __pow__(self, other: Operand) -> Tensor: ...
    def __radd__(self, other: Operand) -> Tensor: ...
    def __rand__(self, other: Operand) -> Tensor: ...
    def __repr__(self) -> str: ...
    def __rfloordiv__(self, other: Operand) -> Tensor: ...
    def __rlshift__(self, other: Operand) -> Tensor: ...
    def __rmatmul__(self, other: Tensor | Array) -> Tensor: ...
    def __rmod__(self, other: Operand) -> Tensor: ...
    def __rmul__(self, other: Operand) -> Tensor: ...
    def __ror__(self, other: Operand) -> Tensor: ...
    def __rpow__(self, other: Operand) -> Tensor: ...
    def __rrshift__(self, other: Operand) -> Tensor: ...
    def __rshift__(self, other: Operand) -> Tensor: ...
    def __rsub__(self, other: Operand) -> Tensor: ...
    def __rtruediv__(self, other: Operand) -> Tensor: ...
    def __rxor__(self, other: Operand) -> Tensor: ...
    def __setitem__(self, index: Index, value: Operand) -> None: ...
    def __sub__(self, other: Operand) -> Tensor: ...
    def __truediv__(self, other: Operand) -> Tensor: ...
    def __xor__(self, other: Operand) -> Tensor: ...
    def _of_sizes_or_values(self, data: Any, *sizes: _int) -> Any:
        """The array of ``Tensor(2, 3)`` and ``Tensor([1, 2])``, of the default type, or a tensor's."""
    def abs(self) -> Tensor:
        """The absolute value of each element."""
    def abs_(self) -> Self:
        """The absolute value of each element."""
    def absolute(self) -> Tensor:
        """The absolute value of each element."""
    def absolute_(self) -> Self:
        """The absolute value of each element."""
    def acos(self) -> Tensor:
        """The inverse cosine of x."""
    def acos_(self) -> Self:
        """The inverse cosine of x."""
    def acosh(self) -> Tensor:
        """The inverse hyperbolic cosine of x."""
    def acosh_(self) -> Self:
        """The inverse hyperbolic cosine of x."""
    def add(self, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
        """input + alpha * other"""
    def add_(self, other: Tensor | Number, *, alpha: Number = 1) -> Self:
        """input + alpha * other"""
    def addbmm(self, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """beta * input + alpha * (the sum of bmm(batch1, batch2) over the batch)"""
    def addbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Self:
        """beta * input + alpha * (the sum of bmm(batch1, batch2) over the batch)"""
    def addcdiv(self, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
        """input + value * tensor1 / tensor2"""
    def addcdiv_(self, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Self:
        """input + value * tensor1 / tensor2"""
    def addcmul(self, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
        """input + value * tensor1 * tensor2"""
    def addcmul_(self, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Self:
        """input + value * tensor1 * tensor2"""
    def addmm(self, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """beta * input + alpha * (mat1 @ mat2), for matrices."""
    def addmm_(self, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Self:
        """beta * input + alpha * (mat1 @ mat2), for matrices."""
    def addmv(self, mat: Tensor, vec: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """beta * input + alpha * (mat @ vec), for a matrix and a vector."""
    def addmv_(self, mat: Tensor, vec: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Self:
        """beta * input + alpha * (mat @ vec), for a matrix and a vector."""
    def addr(self, vec1: Tensor, vec2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """beta * input + alpha * outer(vec1, vec2)"""
    def addr_(self, vec1: Tensor, vec2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Self:
        """beta * input + alpha * outer(vec1, vec2)"""
    def adjoint(self) -> Tensor:
        """The conjugate of the matrix transpose: ``x.mH``."""
    def all(self, dim: Dims = None, keepdim: _bool = False, *, axis: Dims = None, keepdims: _bool = False) -> Tensor:
        """Whether all elements (along some dimensions) are nonzero."""
    def allclose(self, other: Tensor, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> _bool:
        """Whether all elements satisfy |input - other| <= atol + rtol * |other|."""
    def amax(self, dim: Dims = None, keepdim: _bool = False, *, axis: Dims = None, keepdims: _bool = False) -> Tensor:
        """The largest element (along some dimensions); ties share the gradient evenly."""
    def amin(self, dim: Dims = None, keepdim: _bool = False, *, axis: Dims = None, keepdims: _bool = False) -> Tensor:
        """The smallest element (along some dimensions); ties share the gradient evenly."""
    def aminmax(self, *, dim: _int | None = None, keepdim: _bool = False, axis: _int | None = None, keepdims: _bool = False) -> MinMax:
        """The smallest and the largest element (along one dimension), as ``(min, max)``."""
    def angle(self) -> Tensor:
        """The angle in the complex plane: pi for negative numbers, 0 for positive ones."""
    def any(self, dim: Dims = None, keepdim: _bool = False, *, axis: Dims = None, keepdims: _bool = False) -> Tensor:
        """Whether any element (along some dimensions) is nonzero."""
    def apply_(self, callable: Callable[[Any], Any]) -> Self:
        """Replaces each element by a Python function of it: slow, and without derivative."""
    def arccos(self) -> Tensor:
        """The inverse cosine of x."""
    def arccos_(self) -> Self:
        """The inverse cosine of x."""
    def arccosh(self) -> Tensor:
        """The inverse hyperbolic cosine of x."""
    def arccosh_(self) -> Self:
        """The inverse hyperbolic cosine of x."""
    def arcsin(self) -> Tensor:
        """The inverse sine of x."""
    def arcsin_(self) -> Self:
        """The inverse sine of x."""
    def arcsinh(self) -> Tensor:
        """The inverse hyperbolic sine of x."""
    def arcsinh_(self) -> Self:
        """The inverse hyperbolic sine of x."""
    def arctan(self) -> Tensor:
        """The inverse tangent of x."""
    def arctan2(self, other: Tensor | Number) -> Tensor:
        """The angle of the point (y, x): ``atan2(input, other)`` is the angle whose tangent is x / y."""
    def arctan2_(self, other: Tensor | Number) -> Self:
        """The angle of the point (y, x): ``atan2(input, other)`` is the angle whose tangent is x / y."""
    def arctan_(self) -> Self:
        """The inverse tangent of x."""
    def arctanh(self) -> Tensor:
        """The inverse hyperbolic tangent of x."""
    def arctanh_(self) -> Self:
        """The inverse hyperbolic tangent of x."""
    def argmax(self, dim: _int | None = None, keepdim: _bool = False, *, axis: _int | None = None, keepdims: _bool = False) -> Tensor:
        """The index of the largest element (the first), in the flattened tensor or along ``dim``."""
    def argmin(self, dim: _int | None = None, keepdim: _bool = False, *, axis: _int | None = None, keepdims: _bool = False) -> Tensor:
        """The index of the smallest element (the first), in the flattened tensor or along ``dim``."""
    def argsort(self, dim: _int = -1, descending: _bool = False, *, stable: _bool = False, axis: _int = -1) -> Tensor:
        """Where the elements in order along ``dim`` are; always stable."""
    def argwhere(self) -> Tensor:
        """Where the elements are not zero: one row for each."""
    def as_strided(self, size: Shape, stride: Shape, storage_offset: _int | None = None) -> Tensor:
        """A view of the memory of ``input`` in which element (i, j, ...) of the given size lies at storage_offset + i stride[0] + j stride[1] + ..."""
    def as_strided_(self, size: Shape, stride: Shape, storage_offset: _int | None = None) -> Self:
        """A view of the memory of ``input`` in which element (i, j, ...) of the given size lies at storage_offset + i stride[0] + j stride[1] + ..."""
    def as_strided_scatter(self, src: Tensor, size: Shape, stride: Shape, storage_offset: _int | None = None) -> Tensor:
        """A copy of ``input`` with ``src`` where :func:`as_strided` of these arguments looks."""
    def asin(self) -> Tensor:
        """The inverse sine of x."""
    def asin_(self) -> Self:
        """The inverse sine of x."""
    def asinh(self) -> Tensor:
        """The inverse hyperbolic sine of x."""
    def asinh_(self) -> Self:
        """The inverse hyperbolic sine of x."""
    def atan(self) -> Tensor:
        """The inverse tangent of x."""
    def atan2(self, other: Tensor | Number) -> Tensor:
        """The angle of the point (y, x): ``atan2(input, other)`` is the angle whose tangent is x / y."""
    def atan2_(self, other: Tensor | Number) -> Self:
        """The angle of the point (y, x): ``atan2(input, other)`` is the angle whose tangent is x / y."""
    def atan_(self) -> Self:
        """The inverse tangent of x."""
    def atanh(self) -> Tensor:
        """The inverse hyperbolic tangent of x."""
    def atanh_(self) -> Self:
        """The inverse hyperbolic tangent of x."""
    def backward(self, gradient: Tensor | None = None, retain_graph: _bool | None = None, create_graph: _bool = False, inputs: Tensor | Iterable[Tensor] | None = None) -> None:
        """Adds the gradient of this tensor to the ``.grad`` of every leaf it was computed from."""
    def baddbmm(self, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """beta * input + alpha * bmm(batch1, batch2)"""
    def baddbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Self:
        """beta * input + alpha * bmm(batch1, batch2)"""
    def bernoulli(self, p: _float | None = None, *, generator: Generator | None = None) -> Tensor:
        """1 with the probability that ``input`` holds (or with probability p), else 0."""
    def bernoulli_(self, p: _float | Tensor = 0.5, *, generator: Generator | None = None) -> Self:
        """Fills the tensor with ones (with probability p, a number or a tensor) and zeros."""
    def bfloat16(self, *, memory_format: memory_format = ...) -> Tensor:
        """This tensor as bfloat16."""
    def bincount(self, weights: Tensor | None = None, minlength: _int = 0) -> Tensor:
        """How often each of the numbers 0, 1, 2, ... occurs (or the sum of its weights)."""
    def bitwise_and(self, other: Tensor | Number) -> Tensor:
        """The bits set in both x and y."""
    def bitwise_and_(self, other: Tensor | Number) -> Self:
        """The bits set in both x and y."""
    def bitwise_left_shift(self, other: Tensor | Number) -> Tensor:
        """x shifted left by y bits."""
    def bitwise_left_shift_(self, other: Tensor | Number) -> Self:
        """x shifted left by y bits."""
    def bitwise_not(self) -> Tensor:
        """x with every bit flipped."""
    def bitwise_not_(self) -> Self:
        """x with every bit flipped."""
    def bitwise_or(self, other: Tensor | Number) -> Tensor:
        """The bits set in x or y."""
    def bitwise_or_(self, other: Tensor | Number) -> Self:
        """The bits set in x or y."""
    def bitwise_right_shift(self, other: Tensor | Number) -> Tensor:
        """x shifted right by y bits."""
    def bitwise_right_shift_(self, other: Tensor | Number) -> Self:
        """x shifted right by y bits."""
    def bitwise_xor(self, other: Tensor | Number) -> Tensor:
        """The bits set in exactly one of x and y."""
    def bitwise_xor_(self, other: Tensor | Number) -> Self:
        """The bits set in exactly one of x and y."""
    def bmm(self, mat2: Tensor) -> Tensor:
        """The products of the matrices of two batches of the same size, without broadcasting."""
    def bool(self, *, memory_format: memory_format = ...) -> Tensor:
        """This tensor as bool."""
    def broadcast_to(self, size: Shape) -> Tensor:
        """``input`` expanded to a shape, without copying."""
    def byte(self, *, memory_format: memory_format = ...) -> Tensor:
        """This tensor as uint8."""
    def cauchy_(self, median: _float = 0, sigma: _float = 1, *, generator: Generator | None = None) -> Self:
        """Fills the tensor with numbers from the Cauchy distribution."""
    def cdouble(self, *, memory_format: memory_format = ...) -> Tensor:
        """This tensor as complex128."""
    def ceil(self) -> Tensor:
        """The integer at or above x."""
    def ceil_(self) -> Self:
        """The integer at or above x."""
    def cfloat(self, *, memory_format: memory_format = ...) -> Tensor:
        """This tensor as complex64."""
    def char(self, *, memory_format: memory_format = ...) -> Tensor:
        """This tensor as int8."""
    def cholesky(self, *, upper: _bool = False) -> Tensor:
        """The lower triangular L with LL* = A, for a Hermitian positive definite A (L* if ``upper``)."""
    def cholesky_inverse(self, upper: _bool = False) -> Tensor:
        """The inverse of LL* from its Cholesky factor (of L*L if ``upper``)."""
    @overload
    def cholesky_solve(self, L: Tensor, upper: _bool = False) -> Tensor:
        """The solution X of AX = B, given the Cholesky factor ``L`` of A (LL* = A, or L*L if upper)."""
    @overload
    def cholesky_solve(self, *, input2: Tensor, upper: _bool = False) -> Tensor:
        """The solution X of AX = B, given the Cholesky factor ``L`` of A (LL* = A, or L*L if upper)."""
    def chunk(self, chunks: _int, dim: _int = 0, *, axis: _int = 0) -> tuple[Tensor, ...]:
        """At most ``chunks`` pieces of one size, the last of which may be smaller."""
    def clamp(self, min: Tensor | Real | None = None, max: Tensor | Real | None = None) -> Tensor:
        """``input`` limited to [min, max]; the gradient is 1 inside and at the limits, 0 outside."""
    def clamp_(self, min: Tensor | Real | None = None, max: Tensor | Real | None = None) -> Self:
        """``input`` limited to [min, max]; the gradient is 1 inside and at the limits, 0 outside."""
    def clamp_max(self, max: Tensor | Real) -> Tensor:
        """``input``, at most ``max``."""
    def clamp_max_(self, max: Tensor | Real) -> Self:
        """``input``, at most ``max``."""
    def clamp_min(self, min: Tensor | Real) -> Tensor:
        """``input``, at least ``min``."""
    def clamp_min_(self, min: Tensor | Real) -> Self:
        """``input``, at least ``min``."""
    def clip(self, min: Tensor | Real | None = None, max: Tensor | Real | None = None) -> Tensor:
        """``input`` limited to [min, max]; the gradient is 1 inside and at the limits, 0 outside."""
    def clip_(self, min: Tensor | Real | None = None, max: Tensor | Real | None = None) -> Self:
        """``input`` limited to [min, max]; the gradient is 1 inside and at the limits, 0 outside."""
    def clone(self, *, memory_format: memory_format | None = None) -> Tensor:
        """A copy of ``input`` with its own memory, through which gradients flow back to ``input``."""
    def conj(self) -> Tensor:
        """The complex conjugate; a real tensor is returned as it is."""
    def conj_physical(self) -> Tensor:
        """The complex conjugate; a real tensor is returned as it is."""
    def conj_physical_(self) -> Self:
        """The complex conjugate; a real tensor is returned as it is."""
    def contiguous(self, *, memory_format: memory_format = ...) -> Tensor:
        """``input`` with its elements in memory one after the other: itself, or a copy."""
    @overload
    def copy_(self, src: Operand, non_blocking: _bool = False) -> Self:
        """Copies ``src``, broadcast and converted, into the tensor, in place."""
    @overload
    def copy_(self, *, other: Operand, non_blocking: _bool = False) -> Self:
        """Copies ``src``, broadcast and converted, into the tensor, in place."""
    def copysign(self, other: Tensor | Number) -> Tensor:
        """The magnitude of x with the sign of y."""
    def copysign_(self, other: Tensor | Number) -> Self:
        """The magnitude of x with the sign of y."""
    def corrcoef(self) -> Tensor:
        """The correlation coefficients of the rows of ``input``, in both parts within [-1, 1]."""
    def cos(self) -> Tensor:
        """The cosine of x."""
    def cos_(self) -> Self:
        """The cosine of x."""
    def cosh(self) -> Tensor:
        """The hyperbolic cosine of x."""
    def cosh_(self) -> Self:
        """The hyperbolic cosine of x."""
    def count_nonzero(self, dim: Dims = None, *, axis: Dims = None) -> Tensor:
        """How many elements (along some dimensions) are not zero."""
    def cov(self, *, correction: _int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
        """The covariances of the rows of ``input``, whose columns are observations."""
    def cpu(self, *, memory_format: memory_format = ...) -> Tensor:
        """``input`` on the CPU, itself if it is there and in the order that is asked for."""
    def cross(self, other: Tensor, dim: _int | None = None, *, axis: _int | None = None) -> Tensor:
        """The cross product of vectors along ``dim`` (the first dimension of size 3 if not given)."""
    def cuda(self, device: Device | _int | None = None, non_blocking: _bool = False) -> Tensor:
        """``input`` on a GPU."""
    @overload
    def cummax(self, dim: _int) -> ValuesIndices:
        """The largest element so far and its (latest) index."""
    @overload
    def cummax(self, *, axis: _int) -> ValuesIndices:
        """The largest element so far and its (latest) index."""
    @overload
    def cummin(self, dim: _int) -> ValuesIndices:
        """The smallest element so far and its (latest) index."""
    @overload
    def cummin(self, *, axis: _int) -> ValuesIndices:
        """The smallest element so far and its (latest) index."""
    @overload
    def cumprod(self, dim: _int, *, dtype: DType | None = None) -> Tensor:
        """The running product: y[i] = x[0] * ... * x[i]; its gradient is exact also at zeros."""
    @overload
    def cumprod(self, *, axis: _int, dtype: DType | None = None) -> Tensor:
        """The running product: y[i] = x[0] * ... * x[i]; its gradient is exact also at zeros."""
    @overload
    def cumprod_(self, dim: _int, *, dtype: DType | None = None) -> Self:
        """The running product: y[i] = x[0] * ... * x[i]; its gradient is exact also at zeros."""
    @overload
    def cumprod_(self, *, axis: _int, dtype: DType | None = None) -> Self:
        """The running product: y[i] = x[0] * ... * x[i]; its gradient is exact also at zeros."""
    @overload
    def cumsum(self, dim: _int, *, dtype: DType | None = None) -> Tensor:
        """The running sum: y[i] = x[0] + ... + x[i]."""
    @overload
    def cumsum(self, *, axis: _int, dtype: DType | None = None) -> Tensor:
        """The running sum: y[i] = x[0] + ... + x[i]."""
    @overload
    def cumsum_(self, dim: _int, *, dtype: DType | None = None) -> Self:
        """The running sum: y[i] = x[0] + ... + x[i]."""
    @overload
    def cumsum_(self, *, axis: _int, dtype: DType | None = None) -> Self:
        """The running sum: y[i] = x[0] + ... + x[i]."""
    def data_ptr(self) -> _int:
        """The address of the first element, of a tensor on the CPU."""
    def deg2rad(self) -> Tensor:
        """Degrees to radians."""
    def deg2rad_(self) -> Self:
        """Degrees to radians."""
    def dense_dim(self) -> _int:
        """The number of dense dimensions: all."""
    def det(self) -> Tensor:
        """The determinant. Its gradient, the matrix of cofactors, is exact for singular matrices, too."""
    def diag(self, diagonal: _int = 0) -> Tensor:
        """The diagonal of a matrix, or the matrix with a given diagonal."""
    def diag_embed(self, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> Tensor:
        """Matrices with the last dimension of ``input`` on their diagonal and zeros elsewhere."""
    def diagflat(self, offset: _int = 0) -> Tensor:
        """The matrix with all elements of ``input`` on its diagonal."""
    def diagonal(self, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
        """A view of the diagonal of two dimensions, as the last dimension of the result."""
    def diagonal_scatter(self, src: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
        """A copy of ``input`` with ``src`` on the diagonal of two dimensions."""
    def diff(self, n: _int = 1, dim: _int = -1, prepend: Tensor | None = None, append: Tensor | None = None, *, axis: _int = -1) -> Tensor:
        """The n-th differences along ``dim``: x[i+1] - x[i], n times."""
    def digamma(self) -> Tensor:
        """The derivative of lgamma at x."""
    def digamma_(self) -> Self:
        """The derivative of lgamma at x."""
    def dist(self, other: Tensor, p: _float = 2) -> Tensor:
        """The p-norm of ``input - other``."""
    def div(self, other: Tensor | Number, *, rounding_mode: str | None = None) -> Tensor:
        """input / other, rounded towards zero (``"trunc"``) or down (``"floor"``) if asked."""
    def div_(self, other: Tensor | Number, *, rounding_mode: str | None = None) -> Self:
        """input / other, rounded towards zero (``"trunc"``) or down (``"floor"``) if asked."""
    def divide(self, other: Tensor | Number, *, rounding_mode: str | None = None) -> Tensor:
        """input / other, rounded towards zero (``"trunc"``) or down (``"floor"``) if asked."""
    def divide_(self, other: Tensor | Number, *, rounding_mode: str | None = None) -> Self:
        """input / other, rounded towards zero (``"trunc"``) or down (``"floor"``) if asked."""
    def dot(self, tensor: Tensor) -> Tensor:
        """The dot product of two vectors."""
    def double(self, *, memory_format: memory_format = ...) -> Tensor:
        """This tensor as float64."""
    @overload
    def dsplit(self, indices_or_sections: Sizes | Tensor) -> tuple[Tensor, ...]:
        """Pieces one behind the other: along the third dimension."""
    @overload
    def dsplit(self, *, sections: Sizes | Tensor) -> tuple[Tensor, ...]:
        """Pieces one behind the other: along the third dimension."""
    @overload
    def dsplit(self, *, indices: Sizes | Tensor) -> tuple[Tensor, ...]:
        """Pieces one behind the other: along the third dimension."""
    def eq(self, other: Tensor | Number) -> Tensor:
        """Whether x equals y."""
    def eq_(self, other: Tensor | Number) -> Self:
        """Whether x equals y."""
    def equal(self, other: Tensor) -> _bool:
        """Whether two tensors have the same shape and elements."""
    def erf(self) -> Tensor:
        """The error function of x."""
    def erf_(self) -> Self:
        """The error function of x."""
    def erfc(self) -> Tensor:
        """1 - erf(x)"""
    def erfc_(self) -> Self:
        """1 - erf(x)"""
    def erfinv(self) -> Tensor:
        """The inverse of erf at x."""
    def erfinv_(self) -> Self:
        """The inverse of erf at x."""
    def exp(self) -> Tensor:
        """e to the power x."""
    def exp2(self) -> Tensor:
        """2 to the power x."""
    def exp2_(self) -> Self:
        """2 to the power x."""
    def exp_(self) -> Self:
        """e to the power x."""
    def expand(self, *sizes: _int | Shape, size: Shape | None = None) -> Tensor:
        """Dimensions of size 1 repeated to the given sizes without copying; -1 keeps a size."""
    def expand_as(self, other: Tensor) -> Tensor:
        """``input`` expanded to the shape of ``other``."""
    def expm1(self) -> Tensor:
        """exp(x) - 1, exact for small x."""
    def expm1_(self) -> Self:
        """exp(x) - 1, exact for small x."""
    def exponential_(self, lambd: _float = 1, *, generator: Generator | None = None) -> Self:
        """Fills the tensor with exponential numbers of rate ``lambd``."""
    def fill_(self, value: Number | Tensor) -> Self:
        """Fills the tensor with one number (or a tensor without dimensions), in place."""
    def fill_diagonal_(self, fill_value: Number, wrap: _bool = False) -> Self:
        """Writes one number on the main diagonal; with ``wrap`` again below it in a tall matrix."""
    def fix(self) -> Tensor:
        """x without its fraction."""
    def fix_(self) -> Self:
        """x without its fraction."""
    def flatten(self, start_dim: _int = 0, end_dim: _int = -1) -> Tensor:
        """The dimensions from ``start_dim`` to ``end_dim`` as one."""
    def flip(self, *along: _int | Shape, dims: _int | Shape | None = None) -> Tensor:
        """The elements in reverse order along the given dimensions."""
    def fliplr(self) -> Tensor:
        """The columns in reverse order."""
    def flipud(self) -> Tensor:
        """The rows in reverse order."""
    def float(self, *, memory_format: memory_format = ...) -> Tensor:
        """This tensor as float32."""
    def float_power(self, exponent: Tensor | Number) -> Tensor:
        """``input`` to the power ``exponent``, in float64 (complex128 for complex numbers)."""
    def float_power_(self, exponent: Tensor | Number) -> Self:
        """``input`` to the power ``exponent``, in float64 (complex128 for complex numbers)."""
    def floor(self) -> Tensor:
        """The integer at or below x."""
    def floor_(self) -> Self:
        """The integer at or below x."""
    def floor_divide(self, other: Tensor | Number) -> Tensor:
        """floor(x / y)"""
    def floor_divide_(self, other: Tensor | Number) -> Self:
        """floor(x / y)"""
    def fmax(self, other: Tensor | Number) -> Tensor:
        """The larger of x and y; the number if the other is NaN."""
    def fmax_(self, other: Tensor | Number) -> Self:
        """The larger of x and y; the number if the other is NaN."""
    def fmin(self, other: Tensor | Number) -> Tensor:
        """The smaller of x and y; the number if the other is NaN."""
    def fmin_(self, other: Tensor | Number) -> Self:
        """The smaller of x and y; the number if the other is NaN."""
    def fmod(self, other: Tensor | Number) -> Tensor:
        """The rest of x / y with the sign of x."""
    def fmod_(self, other: Tensor | Number) -> Self:
        """The rest of x / y with the sign of x."""
    def frac(self) -> Tensor:
        """x - trunc(x)"""
    def frac_(self) -> Self:
        """x - trunc(x)"""
    def frexp(self) -> tuple[Tensor, Tensor]:
        """The mantissa, in [0.5, 1), and the int32 exponent of each number."""
    @overload
    def gather(self, dim: _int, index: Tensor) -> Tensor:
        """Elements chosen along ``dim``: ``out[i][j] = input[index[i][j]][j]`` for ``dim=0``."""
    @overload
    def gather(self, *, axis: _int, index: Tensor) -> Tensor:
        """Elements chosen along ``dim``: ``out[i][j] = input[index[i][j]][j]`` for ``dim=0``."""
    def gcd(self, other: Tensor | Number) -> Tensor:
        """The greatest common divisor of x and y."""
    def gcd_(self, other: Tensor | Number) -> Self:
        """The greatest common divisor of x and y."""
    def ge(self, other: Tensor | Number) -> Tensor:
        """Whether x >= y."""
    def ge_(self, other: Tensor | Number) -> Self:
        """Whether x >= y."""
    def geometric_(self, p: _float, *, generator: Generator | None = None) -> Self:
        """Fills the tensor with the number of trials of probability p up to the first success."""
    def geqrf(self) -> Geqrf:
        """R of input = QR with the Householder vectors of Q below the diagonal, and their factors tau: what :func:`ormqr` and ``linalg.householder_product`` take. Without derivative."""
    def ger(self, vec2: Tensor) -> Tensor:
        """All products of an element of one vector and an element of another."""
    def get_device(self) -> _int:
        """The number of its device, -1 for the CPU."""
    def greater(self, other: Tensor | Number) -> Tensor:
        """Whether x > y."""
    def greater_(self, other: Tensor | Number) -> Self:
        """Whether x > y."""
    def greater_equal(self, other: Tensor | Number) -> Tensor:
        """Whether x >= y."""
    def greater_equal_(self, other: Tensor | Number) -> Self:
        """Whether x >= y."""
    def gt(self, other: Tensor | Number) -> Tensor:
        """Whether x > y."""
    def gt_(self, other: Tensor | Number) -> Self:
        """Whether x > y."""
    def half(self, *, memory_format: memory_format = ...) -> Tensor:
        """This tensor as float16."""
    def heaviside(self, values: Tensor | Number) -> Tensor:
        """0 for x < 0, y at x = 0, 1 for x > 0."""
    def heaviside_(self, values: Tensor | Number) -> Self:
        """0 for x < 0, y at x = 0, 1 for x > 0."""
    def histc(self, bins: _int = 100, min: _float = 0, max: _float = 0) -> Tensor:
        """How many elements lie in each of ``bins`` equal intervals between ``min`` and ``max`` (the smallest and the largest element, if both are equal); elements outside do not count."""
    def histogram(self, bins: _int | Tensor, *, range: Sequence[_float] | None = None, weight: Tensor | None = None, density: _bool = False) -> Histogram:
        """How many elements lie in each interval; the last one includes its right end."""
    @overload
    def hsplit(self, indices_or_sections: Sizes | Tensor) -> tuple[Tensor, ...]:
        """Pieces side by side: along the second dimension, of a vector along the first."""
    @overload
    def hsplit(self, *, sections: Sizes | Tensor) -> tuple[Tensor, ...]:
        """Pieces side by side: along the second dimension, of a vector along the first."""
    @overload
    def hsplit(self, *, indices: Sizes | Tensor) -> tuple[Tensor, ...]:
        """Pieces side by side: along the second dimension, of a vector along the first."""
    def hypot(self, other: Tensor | Number) -> Tensor:
        """sqrt(x*x + y*y)"""
    def hypot_(self, other: Tensor | Number) -> Self:
        """sqrt(x*x + y*y)"""
    def i0(self) -> Tensor:
        """The modified Bessel function of order 0."""
    def i0_(self) -> Self:
        """The modified Bessel function of order 0."""
    def igamma(self, other: Tensor | Number) -> Tensor:
        """The regularized lower incomplete gamma function of shape x at y."""
    def igamma_(self, other: Tensor | Number) -> Self:
        """The regularized lower incomplete gamma function of shape x at y."""
    def igammac(self, other: Tensor | Number) -> Tensor:
        """The regularized upper incomplete gamma function of shape x at y."""
    def igammac_(self, other: Tensor | Number) -> Self:
        """The regularized upper incomplete gamma function of shape x at y."""
    @property
    def imag(self) -> Tensor:
        """The imaginary part of a complex tensor, a view of it."""
    @overload
    def index_add(self, dim: _int, index: Tensor, source: Tensor, *, alpha: _float = 1) -> Tensor:
        """``input`` with ``alpha`` times the slices of ``source`` added at the places in ``index``."""
    @overload
    def index_add(self, *, axis: _int, index: Tensor, source: Tensor, alpha: _float = 1) -> Tensor:
        """``input`` with ``alpha`` times the slices of ``source`` added at the places in ``index``."""
    @overload
    def index_add_(self, dim: _int, index: Tensor, source: Tensor, *, alpha: _float = 1) -> Self:
        """``input`` with ``alpha`` times the slices of ``source`` added at the places in ``index``."""
    @overload
    def index_add_(self, *, axis: _int, index: Tensor, source: Tensor, alpha: _float = 1) -> Self:
        """``input`` with ``alpha`` times the slices of ``source`` added at the places in ``index``."""
    @overload
    def index_copy(self, dim: _int, index: Tensor, source: Tensor) -> Tensor:
        """``input`` with the slices at the places in ``index`` replaced by those of ``source``."""
    @overload
    def index_copy(self, *, axis: _int, index: Tensor, source: Tensor) -> Tensor:
        """``input`` with the slices at the places in ``index`` replaced by those of ``source``."""
    @overload
    def index_copy_(self, dim: _int, index: Tensor, source: Tensor) -> Self:
        """``input`` with the slices at the places in ``index`` replaced by those of ``source``."""
    @overload
    def index_copy_(self, *, axis: _int, index: Tensor, source: Tensor) -> Self:
        """``input`` with the slices at the places in ``index`` replaced by those of ``source``."""
    @overload
    def index_fill(self, dim: _int, index: Tensor, value: Number | Tensor) -> Tensor:
        """``input`` with the slices at the places in ``index`` filled with one number."""
    @overload
    def index_fill(self, *, axis: _int, index: Tensor, value: Number | Tensor) -> Tensor:
        """``input`` with the slices at the places in ``index`` filled with one number."""
    @overload
    def index_fill_(self, dim: _int, index: Tensor, value: Number | Tensor) -> Self:
        """``input`` with the slices at the places in ``index`` filled with one number."""
    @overload
    def index_fill_(self, *, axis: _int, index: Tensor, value: Number | Tensor) -> Self:
        """``input`` with the slices at the places in ``index`` filled with one number."""
    def index_put(self, indices: Sequence[Tensor], values: Tensor, accumulate: _bool = False) -> Tensor:
        """``input`` with ``input[indices] = values`` done, or ``+=`` with ``accumulate`` (where an element named twice gets both)."""
    def index_put_(self, indices: Sequence[Tensor], values: Tensor, accumulate: _bool = False) -> Self:
        """``input`` with ``input[indices] = values`` done, or ``+=`` with ``accumulate`` (where an element named twice gets both)."""
    @overload
    def index_reduce(self, dim: _int, index: Tensor, source: Tensor, reduce: str, *, include_self: _bool = True) -> Tensor:
        """:func:`scatter_reduce` of whole slices: those of ``source`` along ``dim``, grouped by a vector of integers, reduced by "prod", "mean", "amax" or "amin"."""
    @overload
    def index_reduce(self, *, axis: _int, index: Tensor, source: Tensor, reduce: str, include_self: _bool = True) -> Tensor:
        """:func:`scatter_reduce` of whole slices: those of ``source`` along ``dim``, grouped by a vector of integers, reduced by "prod", "mean", "amax" or "amin"."""
    @overload
    def index_reduce_(self, dim: _int, index: Tensor, source: Tensor, reduce: str, *, include_self: _bool = True) -> Self:
        """:func:`scatter_reduce` of whole slices: those of ``source`` along ``dim``, grouped by a vector of integers, reduced by "prod", "mean", "amax" or "amin"."""
    @overload
    def index_reduce_(self, *, axis: _int, index: Tensor, source: Tensor, reduce: str, include_self: _bool = True) -> Self:
        """:func:`scatter_reduce` of whole slices: those of ``source`` along ``dim``, grouped by a vector of integers, reduced by "prod", "mean", "amax" or "amin"."""
    @overload
    def index_select(self, dim: _int, index: Tensor) -> Tensor:
        """The slices of ``input`` along ``dim`` that a vector of integers names."""
    @overload
    def index_select(self, *, axis: _int, index: Tensor) -> Tensor:
        """The slices of ``input`` along ``dim`` that a vector of integers names."""
    def inner(self, other: Tensor) -> Tensor:
        """The products summed along the last dimensions; with a number, the product."""
    def int(self, *, memory_format: memory_format = ...) -> Tensor:
        """This tensor as int32."""
    def inverse(self) -> Tensor:
        """The inverse of a square matrix. Raises :class:`LinAlgError` if it is singular."""
    def is_conj(self) -> _bool:
        """False: a conjugate is computed at once."""
    def is_inference(self) -> _bool:
        """Whether the tensor was made in inference mode."""
    def is_neg(self) -> _bool:
        """False: a negative is computed at once."""
    def is_nonzero(self) -> builtins.bool:
        """Whether the one element of ``input`` is not zero."""
    def is_pinned(self) -> _bool:
        """False: no memory is pinned for a GPU."""
    def is_same_size(self, other: Tensor) -> _bool:
        """Whether two tensors have one shape."""
    def is_shared(self) -> _bool:
        """Whether other processes see the memory of the tensor: they do not."""
    def is_signed(self) -> _bool:
        """Whether the elements can be negative."""
    def isclose(self, other: Tensor, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> Tensor:
        """Whether |input - other| <= atol + rtol * |other|, element by element."""
    def isfinite(self) -> Tensor:
        """Whether x is neither infinite nor NaN."""
    def isinf(self) -> Tensor:
        """Whether x is infinite."""
    def isnan(self) -> Tensor:
        """Whether x is not a number."""
    def isneginf(self) -> Tensor:
        """Whether x is -inf."""
    def isposinf(self) -> Tensor:
        """Whether x is +inf."""
    def isreal(self) -> Tensor:
        """Whether the imaginary part of each element is 0."""
    def istft(self, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: Tensor | None = None, center: _bool = True, normalized: _bool = False, onesided: _bool | None = None, length: _int | None = None, return_complex: _bool = False) -> Tensor:
        """The signal of which these are the spectra by :func:`stft`: pieces are added where they overlap, and divided by the sum of the squares of the window there."""
    def kron(self, other: Tensor) -> Tensor:
        """The Kronecker product: every element of ``input`` times the whole of ``other``."""
    def kthvalue(self, k: _int, dim: _int = -1, keepdim: _bool = False, *, axis: _int = -1, keepdims: _bool = False) -> ValuesIndices:
        """The ``k``-th smallest element along ``dim`` (``k=1`` is the smallest), and where it is."""
    def lcm(self, other: Tensor | Number) -> Tensor:
        """The least common multiple of x and y."""
    def lcm_(self, other: Tensor | Number) -> Self:
        """The least common multiple of x and y."""
    def ldexp(self, other: Tensor | Number) -> Tensor:
        """input * 2**other"""
    def ldexp_(self, other: Tensor | Number) -> Self:
        """input * 2**other"""
    def le(self, other: Tensor | Number) -> Tensor:
        """Whether x <= y."""
    def le_(self, other: Tensor | Number) -> Self:
        """Whether x <= y."""
    def lerp(self, end: Tensor, weight: Tensor | Number) -> Tensor:
        """input + weight * (end - input)"""
    def lerp_(self, end: Tensor, weight: Tensor | Number) -> Self:
        """input + weight * (end - input)"""
    def less(self, other: Tensor | Number) -> Tensor:
        """Whether x < y."""
    def less_(self, other: Tensor | Number) -> Self:
        """Whether x < y."""
    def less_equal(self, other: Tensor | Number) -> Tensor:
        """Whether x <= y."""
    def less_equal_(self, other: Tensor | Number) -> Self:
        """Whether x <= y."""
    def lgamma(self) -> Tensor:
        """log |gamma(x)|"""
    def lgamma_(self) -> Self:
        """log |gamma(x)|"""
    def log(self) -> Tensor:
        """The natural logarithm of x."""
    def log10(self) -> Tensor:
        """The logarithm of x to base 10."""
    def log10_(self) -> Self:
        """The logarithm of x to base 10."""
    def log1p(self) -> Tensor:
        """log(1 + x), exact for small x."""
    def log1p_(self) -> Self:
        """log(1 + x), exact for small x."""
    def log2(self) -> Tensor:
        """The logarithm of x to base 2."""
    def log2_(self) -> Self:
        """The logarithm of x to base 2."""
    def log_(self) -> Self:
        """The natural logarithm of x."""
    def log_normal_(self, mean: _float = 1, std: _float = 2, *, generator: Generator | None = None) -> Self:
        """Fills the tensor with exp of normal numbers of this mean and standard deviation."""
    @overload
    def log_softmax(self, dim: _int, dtype: DType | None = None) -> Tensor:
        """log(softmax(x)) along ``dim``, exact where softmax is close to 0."""
    @overload
    def log_softmax(self, *, axis: _int, dtype: DType | None = None) -> Tensor:
        """log(softmax(x)) along ``dim``, exact where softmax is close to 0."""
    def logaddexp(self, other: Tensor | Number) -> Tensor:
        """log(exp(x) + exp(y)), without overflow; of complex numbers, y + log1p(exp(x - y)) for the y with the larger real part."""
    def logaddexp2(self, other: Tensor | Number) -> Tensor:
        """log2(2**x + 2**y), without overflow."""
    def logaddexp2_(self, other: Tensor | Number) -> Self:
        """log2(2**x + 2**y), without overflow."""
    def logaddexp_(self, other: Tensor | Number) -> Self:
        """log(exp(x) + exp(y)), without overflow; of complex numbers, y + log1p(exp(x - y)) for the y with the larger real part."""
    @overload
    def logcumsumexp(self, dim: _int) -> Tensor:
        """The running logsumexp: y[i] = log(exp(x[0]) + ... + exp(x[i])), without overflow."""
    @overload
    def logcumsumexp(self, *, axis: _int) -> Tensor:
        """The running logsumexp: y[i] = log(exp(x[0]) + ... + exp(x[i])), without overflow."""
    def logdet(self) -> Tensor:
        """The logarithm of the determinant: NaN if that is negative, -inf if it is zero; the complex logarithm of a complex determinant."""
    def logical_and(self, other: Tensor | Number) -> Tensor:
        """Whether x and y are both nonzero."""
    def logical_and_(self, other: Tensor | Number) -> Self:
        """Whether x and y are both nonzero."""
    def logical_not(self) -> Tensor:
        """Whether x is zero."""
    def logical_not_(self) -> Self:
        """Whether x is zero."""
    def logical_or(self, other: Tensor | Number) -> Tensor:
        """Whether x or y is nonzero."""
    def logical_or_(self, other: Tensor | Number) -> Self:
        """Whether x or y is nonzero."""
    def logical_xor(self, other: Tensor | Number) -> Tensor:
        """Whether exactly one of x and y is nonzero."""
    def logical_xor_(self, other: Tensor | Number) -> Self:
        """Whether exactly one of x and y is nonzero."""
    def logit(self, eps: _float | None = None) -> Tensor:
        """log(x / (1 - x)), with x first limited to [eps, 1 - eps] if ``eps`` is given."""
    def logit_(self, eps: _float | None = None) -> Self:
        """log(x / (1 - x)), with x first limited to [eps, 1 - eps] if ``eps`` is given."""
    @overload
    def logsumexp(self, dim: Dims, keepdim: _bool = False, *, keepdims: _bool = False) -> Tensor:
        """log(sum(exp(input))), without overflow."""
    @overload
    def logsumexp(self, *, axis: Dims, keepdim: _bool = False, keepdims: _bool = False) -> Tensor:
        """log(sum(exp(input))), without overflow."""
    def long(self, *, memory_format: memory_format = ...) -> Tensor:
        """This tensor as int64."""
    def lt(self, other: Tensor | Number) -> Tensor:
        """Whether x < y."""
    def lt_(self, other: Tensor | Number) -> Self:
        """Whether x < y."""
    def lu(self, pivot: _bool = True, get_infos: _bool = False) -> LUFactor | tuple[Tensor, Tensor, Tensor]:
        """What :func:`linalg.lu_factor` returns: both factors in one matrix, and the pivots; with ``get_infos`` also, for each matrix, the first pivot that is zero, from 1, or 0."""
    def lu_solve(self, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
        """:func:`linalg.lu_solve` with the right side first."""
    @property
    def mH(self) -> Tensor:
        """The conjugate of the matrix transpose: ``x.mH``."""
    @property
    def mT(self) -> Tensor:
        """The last two dimensions exchanged: ``x.mT``."""
    def map_(self, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Self:
        """Replaces each element by a Python function of it and that of another tensor."""
    def masked_fill(self, mask: Tensor, value: Number | Tensor) -> Tensor:
        """``input`` with one number where the mask holds; the mask is broadcast."""
    def masked_fill_(self, mask: Tensor, value: Number | Tensor) -> Self:
        """``input`` with one number where the mask holds; the mask is broadcast."""
    def masked_scatter(self, mask: Tensor, source: Tensor) -> Tensor:
        """``input`` with the elements of ``source``, in order, where the mask holds."""
    def masked_scatter_(self, mask: Tensor, source: Tensor) -> Self:
        """``input`` with the elements of ``source``, in order, where the mask holds."""
    def masked_select(self, mask: Tensor) -> Tensor:
        """The elements where the mask holds, as a vector; both are broadcast."""
    def matmul(self, other: Tensor) -> Tensor:
        """The product of two tensors, ``input @ other``."""
    def matrix_exp(self) -> Tensor:
        """The matrix exponential I + A + A A / 2 + A A A / 6 + ..."""
    def matrix_power(self, n: _int) -> Tensor:
        """A multiplied by itself n times; its inverse for negative n, the identity for 0."""
    @overload
    def max(self) -> Tensor:
        """The largest of all elements; with ``dim``, the largest along it and their indices."""
    @overload
    def max(self, dim: _int, keepdim: _bool = False, *, keepdims: _bool = False) -> ValuesIndices:
        """The largest of all elements; with ``dim``, the largest along it and their indices."""
    @overload
    def max(self, *, axis: _int, keepdim: _bool = False, keepdims: _bool = False) -> ValuesIndices:
        """The largest of all elements; with ``dim``, the largest along it and their indices."""
    @overload
    def max(self, other: Tensor, /) -> Tensor:
        """The largest of all elements; with ``dim``, the largest along it and their indices."""
    @overload
    def max(self, *, other: Tensor) -> Tensor:
        """The largest of all elements; with ``dim``, the largest along it and their indices."""
    def maximum(self, other: Tensor | Number) -> Tensor:
        """The larger of x and y; at a tie each gets half of the gradient."""
    def maximum_(self, other: Tensor | Number) -> Self:
        """The larger of x and y; at a tie each gets half of the gradient."""
    def mean(self, dim: Dims = None, keepdim: _bool = False, *, dtype: DType | None = None, axis: Dims = None, keepdims: _bool = False) -> Tensor:
        """The mean over all elements, or along some dimensions."""
    @overload
    def median(self) -> Tensor:
        """The median of all elements; with ``dim``, the medians along it and their indices."""
    @overload
    def median(self, dim: _int, keepdim: _bool = False, *, keepdims: _bool = False) -> ValuesIndices:
        """The median of all elements; with ``dim``, the medians along it and their indices."""
    @overload
    def median(self, *, axis: _int, keepdim: _bool = False, keepdims: _bool = False) -> ValuesIndices:
        """The median of all elements; with ``dim``, the medians along it and their indices."""
    @overload
    def min(self) -> Tensor:
        """The smallest of all elements; with ``dim``, the smallest along it and their indices."""
    @overload
    def min(self, dim: _int, keepdim: _bool = False, *, keepdims: _bool = False) -> ValuesIndices:
        """The smallest of all elements; with ``dim``, the smallest along it and their indices."""
    @overload
    def min(self, *, axis: _int, keepdim: _bool = False, keepdims: _bool = False) -> ValuesIndices:
        """The smallest of all elements; with ``dim``, the smallest along it and their indices."""
    @overload
    def min(self, other: Tensor, /) -> Tensor:
        """The smallest of all elements; with ``dim``, the smallest along it and their indices."""
    @overload
    def min(self, *, other: Tensor) -> Tensor:
        """The smallest of all elements; with ``dim``, the smallest along it and their indices."""
    def minimum(self, other: Tensor | Number) -> Tensor:
        """The smaller of x and y; at a tie each gets half of the gradient."""
    def minimum_(self, other: Tensor | Number) -> Self:
        """The smaller of x and y; at a tie each gets half of the gradient."""
    def mm(self, mat2: Tensor) -> Tensor:
        """The product of two matrices."""
    def mode(self, dim: _int = -1, keepdim: _bool = False, *, axis: _int = -1, keepdims: _bool = False) -> ValuesIndices:
        """The most frequent element along ``dim`` (the smallest of several) and its last index."""
    def moveaxis(self, source: Sizes, destination: Sizes) -> Tensor:
        """Dimensions moved to new places, the others keeping their order."""
    def movedim(self, source: Sizes, destination: Sizes) -> Tensor:
        """Dimensions moved to new places, the others keeping their order."""
    def msort(self) -> Tensor:
        """The elements in order along the first dimension."""
    def mul(self, other: Tensor | Number) -> Tensor:
        """x * y"""
    def mul_(self, other: Tensor | Number) -> Self:
        """x * y"""
    def multinomial(self, num_samples: _int, replacement: _bool = False, *, generator: Generator | None = None) -> Tensor:
        """Indices drawn with probabilities proportional to the weights in each row of ``input``."""
    def multiply(self, other: Tensor | Number) -> Tensor:
        """x * y"""
    def multiply_(self, other: Tensor | Number) -> Self:
        """x * y"""
    def mv(self, vec: Tensor) -> Tensor:
        """The product of a matrix and a vector."""
    def mvlgamma(self, p: _int) -> Tensor:
        """The logarithm of the gamma function of p dimensions: p (p - 1) / 4 log(pi) + the sum of lgamma(x - i / 2) over i < p."""
    def mvlgamma_(self, p: _int) -> Self:
        """The logarithm of the gamma function of p dimensions: p (p - 1) / 4 log(pi) + the sum of lgamma(x - i / 2) over i < p."""
    def nan_to_num(self, nan: _float = 0.0, posinf: _float | None = None, neginf: _float | None = None) -> Tensor:
        """``input`` with NaN replaced by ``nan`` and infinities by the given or largest numbers."""
    def nan_to_num_(self, nan: _float = 0.0, posinf: _float | None = None, neginf: _float | None = None) -> Self:
        """``input`` with NaN replaced by ``nan`` and infinities by the given or largest numbers."""
    def nanmean(self, dim: Dims = None, keepdim: _bool = False, *, dtype: DType | None = None, axis: Dims = None, keepdims: _bool = False) -> Tensor:
        """The mean of the elements that are not NaN."""
    @overload
    def nanmedian(self) -> Tensor:
        """Like :func:`median`, of the elements that are not NaN."""
    @overload
    def nanmedian(self, dim: _int, keepdim: _bool = False, *, keepdims: _bool = False) -> ValuesIndices:
        """Like :func:`median`, of the elements that are not NaN."""
    @overload
    def nanmedian(self, *, axis: _int, keepdim: _bool = False, keepdims: _bool = False) -> ValuesIndices:
        """Like :func:`median`, of the elements that are not NaN."""
    def nanquantile(self, q: _float | Tensor, dim: _int | None = None, keepdim: _bool = False, *, interpolation: str = 'linear', axis: _int | None = None, keepdims: _bool = False) -> Tensor:
        """Like :func:`quantile`, of the elements that are not NaN."""
    def nansum(self, dim: Dims = None, keepdim: _bool = False, *, dtype: DType | None = None, axis: Dims = None, keepdims: _bool = False) -> Tensor:
        """The sum with NaN counted as zero."""
    @overload
    def narrow(self, dim: _int, start: _int | Tensor, length: _int) -> Tensor:
        """``length`` elements from ``start`` on along ``dim``; a view."""
    @overload
    def narrow(self, *, axis: _int, start: _int | Tensor, length: _int) -> Tensor:
        """``length`` elements from ``start`` on along ``dim``; a view."""
    @overload
    def narrow_copy(self, dim: _int, start: _int, length: _int) -> Tensor:
        """A copy of what :func:`narrow` shows."""
    @overload
    def narrow_copy(self, *, axis: _int, start: _int, length: _int) -> Tensor:
        """A copy of what :func:`narrow` shows."""
    def ndimension(self) -> builtins.int:
        """The number of dimensions."""
    def ne(self, other: Tensor | Number) -> Tensor:
        """Whether x differs from y."""
    def ne_(self, other: Tensor | Number) -> Self:
        """Whether x differs from y."""
    def neg(self) -> Tensor:
        """-x"""
    def neg_(self) -> Self:
        """-x"""
    def negative(self) -> Tensor:
        """-x"""
    def negative_(self) -> Self:
        """-x"""
    def nelement(self) -> builtins.int:
        """The number of elements."""
    def new(self, *args: Any) -> Tensor:
        """A new tensor of this one's type: ``x.new(2, 3)`` by its sizes, ``x.new([1, 2])`` by values."""
    def new_empty(self, *sizes: _int | Shape, size: Shape | None = None, dtype: DType | None = None, device: Device | None = None, requires_grad: _bool = False, **memory: Unpack[Memory]) -> Tensor:
        """An uninitialized tensor of the given size in the type of this tensor."""
    def new_empty_strided(self, size: Shape, stride: Shape, *, dtype: DType | None = None, device: Device | None = None, requires_grad: _bool = False) -> Tensor:
        """:func:`empty_strided` in the type of this tensor."""
    def new_full(self, size: Shape, fill_value: Number | Tensor, *, dtype: DType | None = None, device: Device | None = None, requires_grad: _bool = False, **memory: Unpack[Memory]) -> Tensor:
        """One value everywhere, of the given size, in the type of this tensor."""
    def new_ones(self, *sizes: _int | Shape, size: Shape | None = None, dtype: DType | None = None, device: Device | None = None, requires_grad: _bool = False, **memory: Unpack[Memory]) -> Tensor:
        """Ones of the given size in the type of this tensor."""
    def new_tensor(self, data: ArrayLike, *, dtype: DType | None = None, device: Device | None = None, requires_grad: _bool = False) -> Tensor:
        """A new tensor with a copy of ``data`` in the type of this one."""
    def new_zeros(self, *sizes: _int | Shape, size: Shape | None = None, dtype: DType | None = None, device: Device | None = None, requires_grad: _bool = False, **memory: Unpack[Memory]) -> Tensor:
        """Zeros of the given size in the type of this tensor."""
    def nextafter(self, other: Tensor | Number) -> Tensor:
        """The number next to x in direction of y, which moves with x."""
    def nextafter_(self, other: Tensor | Number) -> Self:
        """The number next to x in direction of y, which moves with x."""
    @overload
    def nonzero(self, *, as_tuple: Literal[False] = False) -> Tensor:
        """Where the elements are not zero: a row for each, or with ``as_tuple`` a vector per dimension."""
    @overload
    def nonzero(self, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]:
        """Where the elements are not zero: a row for each, or with ``as_tuple`` a vector per dimension."""
    def nonzero_static(self, *, size: _int, fill_value: _int = -1) -> Tensor:
        """:func:`nonzero` in ``size`` rows: the first ones, or filled up with ``fill_value``."""
    def norm(self, p: _float | str | None = 'fro', dim: Dims = None, keepdim: _bool = False, dtype: DType | None = None, *, axis: Dims = None, keepdims: _bool = False) -> Tensor:
        """(sum |x|^p)^(1/p); the largest |x| for p = inf, the smallest for -inf, nonzeros for 0."""
    def normal_(self, mean: _float = 0, std: _float = 1, *, generator: Generator | None = None) -> Self:
        """Fills the tensor with normal numbers."""
    def not_equal(self, other: Tensor | Number) -> Tensor:
        """Whether x differs from y."""
    def not_equal_(self, other: Tensor | Number) -> Self:
        """Whether x differs from y."""
    def orgqr(self, tau: Tensor) -> Tensor:
        """The first n columns of Q = H_1 ... H_k, for A (*, m, n) with the Householder vectors below its diagonal and tau (*, k), as :func:`chainrule.geqrf` returns them."""
    def ormqr(self, tau: Tensor, other: Tensor, left: _bool = True, transpose: _bool = False) -> Tensor:
        """Q other, or other Q if not ``left``, for the square Q = H_1 ... H_k; with Q* for Q if ``transpose``. ``input`` and ``tau`` are what :func:`geqrf` returns."""
    def outer(self, vec2: Tensor) -> Tensor:
        """All products of an element of one vector and an element of another."""
    def permute(self, *order: _int | Shape, dims: Shape | None = None) -> Tensor:
        """The dimensions in another order: ``x.permute(2, 0, 1)``."""
    def pin_memory(self) -> Tensor:
        """``input`` itself: JAX copies to a device from any memory."""
    def pinverse(self, rcond: _float = 1e-15) -> Tensor:
        """The pseudoinverse; see :func:`chainrule.linalg.pinv`."""
    def polygamma(self, n: _int) -> Tensor:
        """The n-th derivative of digamma: a method has the tensor first."""
    def polygamma_(self, n: _int) -> Self:
        """The n-th derivative of digamma: a method has the tensor first."""
    def positive(self) -> Tensor:
        """``input`` itself."""
    def pow(self, exponent: Tensor | Number) -> Tensor:
        """x to the power y."""
    def pow_(self, exponent: Tensor | Number) -> Self:
        """x to the power y."""
    def prod(self, dim: _int | None = None, keepdim: _bool = False, *, dtype: DType | None = None, axis: _int | None = None, keepdims: _bool = False) -> Tensor:
        """The product of all elements, or along one dimension; its gradient is exact also at zeros."""
    def put(self, index: Tensor, source: Tensor, accumulate: _bool = False) -> Tensor:
        """``input`` with the elements of these numbers, counted as if it were flat, replaced by those of ``source`` (or with them added, with ``accumulate``)."""
    def put_(self, index: Tensor, source: Tensor, accumulate: _bool = False) -> Self:
        """``input`` with the elements of these numbers, counted as if it were flat, replaced by those of ``source`` (or with them added, with ``accumulate``)."""
    def qr(self, some: _bool = True) -> QR:
        """Q and R of :func:`linalg.qr`; Q is square if not ``some``."""
    def quantile(self, q: _float | Tensor, dim: _int | None = None, keepdim: _bool = False, *, interpolation: str = 'linear', axis: _int | None = None, keepdims: _bool = False) -> Tensor:
        """The q-th quantiles of all elements or along ``dim``; several q give a dimension in front."""
    def rad2deg(self) -> Tensor:
        """Radians to degrees."""
    def rad2deg_(self) -> Self:
        """Radians to degrees."""
    def random_(self, from_: _int | None = None, to: _int | None = None, *, generator: Generator | None = None) -> Self:
        """Fills the tensor with integers from ``from_`` (0) up to, without, ``to``."""
    def ravel(self) -> Tensor:
        """The elements in one dimension, one after the other: a view, or else a copy."""
    @property
    def real(self) -> Tensor:
        """The real part, a view; a real tensor is returned as it is."""
    def reciprocal(self) -> Tensor:
        """1 / x"""
    def reciprocal_(self) -> Self:
        """1 / x"""
    def record_stream(self, stream: Any) -> None:
        """Notes that a stream of a GPU uses the tensor, which XLA knows."""
    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
        """Calls ``hook(gradient)`` when the tensor's gradient is known; what it returns replaces it."""
    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """Calls ``hook(tensor)`` when a backward pass has added the gradient of a leaf to ``.grad``."""
    def relu(self) -> Tensor:
        """max(x, 0)"""
    def relu_(self) -> Self:
        """max(x, 0)"""
    def remainder(self, other: Tensor | Number) -> Tensor:
        """The rest of x / y with the sign of y."""
    def remainder_(self, other: Tensor | Number) -> Self:
        """The rest of x / y with the sign of y."""
    @overload
    def renorm(self, p: _float, dim: _int, maxnorm: _float) -> Tensor:
        """The slices along ``dim`` scaled down to a p-norm of ``maxnorm`` where theirs is larger."""
    @overload
    def renorm(self, p: _float, *, axis: _int, maxnorm: _float) -> Tensor:
        """The slices along ``dim`` scaled down to a p-norm of ``maxnorm`` where theirs is larger."""
    @overload
    def renorm_(self, p: _float, dim: _int, maxnorm: _float) -> Self:
        """The slices along ``dim`` scaled down to a p-norm of ``maxnorm`` where theirs is larger."""
    @overload
    def renorm_(self, p: _float, *, axis: _int, maxnorm: _float) -> Self:
        """The slices along ``dim`` scaled down to a p-norm of ``maxnorm`` where theirs is larger."""
    def repeat(self, *sizes: _int | Shape, repeats: Shape | None = None) -> Tensor:
        """``input`` laid out as many times as given for each dimension."""
    def repeat_interleave(self, repeats: _int | Tensor | None = None, dim: _int | None = None, *, output_size: _int | None = None, axis: _int | None = None) -> Tensor:
        """Each element (or slice along ``dim``) repeated, next to itself."""
    def reshape(self, *sizes: _int | Shape, shape: Shape | None = None) -> Tensor:
        """The same elements in another shape; one entry may be -1, to be worked out."""
    def reshape_as(self, other: Tensor) -> Tensor:
        """The elements of ``input`` in the shape of ``other``."""
    def resize_(self, *sizes: _int | Shape, size: Shape | None = None) -> Self:
        """Another size in place: the first elements stay, what is new is not initialized."""
    def resize_as_(self, the_template: Tensor) -> Self:
        """:func:`resize_` to the size of another tensor."""
    def resolve_conj(self) -> Tensor:
        """``input`` itself: a conjugate is computed at once."""
    def resolve_neg(self) -> Tensor:
        """``input`` itself: a negative is computed at once."""
    def retain_grad(self) -> None:
        """Keeps the gradient of a tensor that is not a leaf in its ``.grad`` too."""
    def roll(self, shifts: Sizes, dims: Dims = None) -> Tensor:
        """The elements moved along dimensions; what leaves at one end enters at the other."""
    def rot90(self, k: _int = 1, dims: Shape = ...) -> Tensor:
        """A plane turned by 90 degrees k times, from the first of the dimensions to the second."""
    def round(self, *, decimals: _int = 0) -> Tensor:
        """The nearest number with that many decimals; halves go to the even neighbour."""
    def round_(self, *, decimals: _int = 0) -> Self:
        """The nearest number with that many decimals; halves go to the even neighbour."""
    def rsqrt(self) -> Tensor:
        """1 / sqrt(x)"""
    def rsqrt_(self) -> Self:
        """1 / sqrt(x)"""
    @overload
    def scatter(self, dim: _int, index: Tensor, src: Tensor | Number | None = None, *, value: Number | Tensor | None = None, reduce: str | None = None) -> Tensor:
        """``input`` with the elements that ``index`` names along ``dim`` replaced by those of ``src`` (or by a number): ``out[index[i][j]][j] = src[i][j]`` for ``dim=0``."""
    @overload
    def scatter(self, *, axis: _int, index: Tensor, src: Tensor | Number | None = None, value: Number | Tensor | None = None, reduce: str | None = None) -> Tensor:
        """``input`` with the elements that ``index`` names along ``dim`` replaced by those of ``src`` (or by a number): ``out[index[i][j]][j] = src[i][j]`` for ``dim=0``."""
    @overload
    def scatter_(self, dim: _int, index: Tensor, src: Tensor | Number | None = None, *, value: Number | Tensor | None = None, reduce: str | None = None) -> Self:
        """``input`` with the elements that ``index`` names along ``dim`` replaced by those of ``src`` (or by a number): ``out[index[i][j]][j] = src[i][j]`` for ``dim=0``."""
    @overload
    def scatter_(self, *, axis: _int, index: Tensor, src: Tensor | Number | None = None, value: Number | Tensor | None = None, reduce: str | None = None) -> Self:
        """``input`` with the elements that ``index`` names along ``dim`` replaced by those of ``src`` (or by a number): ``out[index[i][j]][j] = src[i][j]`` for ``dim=0``."""
    @overload
    def scatter_add(self, dim: _int, index: Tensor, src: Tensor) -> Tensor:
        """``input`` with the elements of ``src`` added where ``index`` says along ``dim``."""
    @overload
    def scatter_add(self, *, axis: _int, index: Tensor, src: Tensor) -> Tensor:
        """``input`` with the elements of ``src`` added where ``index`` says along ``dim``."""
    @overload
    def scatter_add_(self, dim: _int, index: Tensor, src: Tensor) -> Self:
        """``input`` with the elements of ``src`` added where ``index`` says along ``dim``."""
    @overload
    def scatter_add_(self, *, axis: _int, index: Tensor, src: Tensor) -> Self:
        """``input`` with the elements of ``src`` added where ``index`` says along ``dim``."""
    @overload
    def scatter_reduce(self, dim: _int, index: Tensor, src: Tensor, reduce: str, *, include_self: _bool = True) -> Tensor:
        """Groups of ``src`` by ``index`` along ``dim``, each reduced to one element: by "sum", "prod", "mean", "amax" or "amin". ``include_self`` counts the element of ``input`` as one of its group."""
    @overload
    def scatter_reduce(self, *, axis: _int, index: Tensor, src: Tensor, reduce: str, include_self: _bool = True) -> Tensor:
        """Groups of ``src`` by ``index`` along ``dim``, each reduced to one element: by "sum", "prod", "mean", "amax" or "amin". ``include_self`` counts the element of ``input`` as one of its group."""
    @overload
    def scatter_reduce_(self, dim: _int, index: Tensor, src: Tensor, reduce: str, *, include_self: _bool = True) -> Self:
        """Groups of ``src`` by ``index`` along ``dim``, each reduced to one element: by "sum", "prod", "mean", "amax" or "amin". ``include_self`` counts the element of ``input`` as one of its group."""
    @overload
    def scatter_reduce_(self, *, axis: _int, index: Tensor, src: Tensor, reduce: str, include_self: _bool = True) -> Self:
        """Groups of ``src`` by ``index`` along ``dim``, each reduced to one element: by "sum", "prod", "mean", "amax" or "amin". ``include_self`` counts the element of ``input`` as one of its group."""
    @overload
    def select(self, dim: _int, index: _int) -> Tensor:
        """``input[:, ..., index]`` with the index at ``dim``; a view."""
    @overload
    def select(self, *, axis: _int, index: _int) -> Tensor:
        """``input[:, ..., index]`` with the index at ``dim``; a view."""
    @overload
    def select_scatter(self, src: Tensor, dim: _int, index: _int) -> Tensor:
        """A copy of ``input`` with ``src`` as its slice ``index`` along a dimension."""
    @overload
    def select_scatter(self, src: Tensor, *, axis: _int, index: _int) -> Tensor:
        """A copy of ``input`` with ``src`` as its slice ``index`` along a dimension."""
    def set_(self, source: Tensor) -> Self:
        """Shares the memory of another tensor from now on, in place."""
    def sgn(self) -> Tensor:
        """The sign, and for complex numbers x / |x| (0 at 0)."""
    def sgn_(self) -> Self:
        """The sign, and for complex numbers x / |x| (0 at 0)."""
    def share_memory_(self) -> Self:
        """Refused: workers get copies."""
    def short(self, *, memory_format: memory_format = ...) -> Tensor:
        """This tensor as int16."""
    def sigmoid(self) -> Tensor:
        """1 / (1 + exp(-x))"""
    def sigmoid_(self) -> Self:
        """1 / (1 + exp(-x))"""
    def sign(self) -> Tensor:
        """-1, 0 or 1, by the sign of x."""
    def sign_(self) -> Self:
        """-1, 0 or 1, by the sign of x."""
    def signbit(self) -> Tensor:
        """Whether the sign bit of x is set."""
    def signbit_(self) -> Self:
        """Whether the sign bit of x is set."""
    def sin(self) -> Tensor:
        """The sine of x."""
    def sin_(self) -> Self:
        """The sine of x."""
    def sinc(self) -> Tensor:
        """sin(pi x) / (pi x), 1 at 0."""
    def sinc_(self) -> Self:
        """sin(pi x) / (pi x), 1 at 0."""
    def sinh(self) -> Tensor:
        """The hyperbolic sine of x."""
    def sinh_(self) -> Self:
        """The hyperbolic sine of x."""
    def slice_scatter(self, src: Tensor, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1, *, axis: _int = 0) -> Tensor:
        """A copy of ``input`` with ``src`` in ``start:end:step`` along a dimension."""
    def slogdet(self) -> Slogdet:
        """The sign of the determinant and the logarithm of its absolute value (-inf if singular)."""
    @overload
    def softmax(self, dim: _int, dtype: DType | None = None) -> Tensor:
        """exp(x) / sum(exp(x)) along ``dim``: positive numbers that sum to 1."""
    @overload
    def softmax(self, *, axis: _int, dtype: DType | None = None) -> Tensor:
        """exp(x) / sum(exp(x)) along ``dim``: positive numbers that sum to 1."""
    def sort(self, dim: _int = -1, descending: _bool = False, *, stable: _bool | None = None, axis: _int = -1) -> ValuesIndices:
        """The elements in order along ``dim``, and where each came from; always stable."""
    def sparse_dim(self) -> _int:
        """The number of sparse dimensions: 0."""
    def sparse_mask(self, mask: SparseTensor) -> SparseTensor:
        """What this tensor has at the places of a sparse one."""
    @overload
    def split(self, split_size_or_sections: Sizes, dim: _int = 0, *, axis: _int = 0) -> tuple[Tensor, ...]:
        """Views of pieces of a given size (the last may be smaller), or of the listed sizes."""
    @overload
    def split(self, *, split_size: Sizes, dim: _int = 0, axis: _int = 0) -> tuple[Tensor, ...]:
        """Views of pieces of a given size (the last may be smaller), or of the listed sizes."""
    def split_with_sizes(self, split_sizes: Shape, dim: _int = 0, *, axis: _int = 0) -> tuple[Tensor, ...]:
        """Views of pieces of the listed sizes."""
    def sqrt(self) -> Tensor:
        """The square root of x."""
    def sqrt_(self) -> Self:
        """The square root of x."""
    def square(self) -> Tensor:
        """x * x"""
    def square_(self) -> Self:
        """x * x"""
    def squeeze(self, dim: Dims = None, *, axis: Dims = None) -> Tensor:
        """Without the dimensions of size 1 (all, or those named)."""
    def squeeze_(self, dim: Dims = None, *, axis: Dims = None) -> Self:
        """Without the dimensions of size 1 (all, or those named)."""
    def std(self, dim: Dims = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction: _float | None = None, axis: Dims = None, keepdims: _bool = False) -> Tensor:
        """The standard deviation, the root of :func:`var`; its gradient is 0 where it is 0."""
    def stft(self, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: Tensor | None = None, center: _bool = True, pad_mode: str = 'reflect', normalized: _bool = False, onesided: _bool | None = None, return_complex: _bool | None = None) -> Tensor:
        """The spectra (..., frequencies, pieces) of pieces of n_fft samples, hop_length apart, of a signal (L,) or (N, L)."""
    def storage_offset(self) -> _int:
        """Where a view begins in the memory it shows, in elements."""
    def sub(self, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
        """input - alpha * other"""
    def sub_(self, other: Tensor | Number, *, alpha: Number = 1) -> Self:
        """input - alpha * other"""
    def subtract(self, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
        """input - alpha * other"""
    def subtract_(self, other: Tensor | Number, *, alpha: Number = 1) -> Self:
        """input - alpha * other"""
    def sum(self, dim: Dims = None, keepdim: _bool = False, *, dtype: DType | None = None, axis: Dims = None, keepdims: _bool = False) -> Tensor:
        """The sum over all elements, or along some dimensions; integers are summed as int64."""
    def sum_to_size(self, *sizes: _int | Shape, size: Shape | None = None) -> Tensor:
        """The sum over what broadcasting would repeat: the result has the given size."""
    def svd(self, some: _bool = True, compute_uv: _bool = True) -> SVD:
        """U, S and V (not its adjoint, as :func:`linalg.svd`) with input = U diag(S) V*."""
    def swapaxes(self, axis0: _int, axis1: _int) -> Tensor:
        """Two dimensions exchanged: NumPy's name of :func:`transpose`."""
    def swapaxes_(self, axis0: _int, axis1: _int) -> Self:
        """Two dimensions exchanged: NumPy's name of :func:`transpose`."""
    def swapdims(self, dim0: _int, dim1: _int) -> Tensor:
        """Two dimensions exchanged."""
    def swapdims_(self, dim0: _int, dim1: _int) -> Self:
        """Two dimensions exchanged."""
    def t(self) -> Tensor:
        """The transpose of a matrix; a vector as it is."""
    def t_(self) -> Self:
        """The transpose of a matrix; a vector as it is."""
    def take(self, index: Tensor) -> Tensor:
        """Elements of the flattened input, in the shape of ``index``."""
    def take_along_dim(self, indices: Tensor, dim: _int | None = None, *, axis: _int | None = None) -> Tensor:
        """Elements chosen along ``dim`` with broadcasting: what ``argsort`` and ``argmax`` return fits."""
    def tan(self) -> Tensor:
        """The tangent of x."""
    def tan_(self) -> Self:
        """The tangent of x."""
    def tanh(self) -> Tensor:
        """The hyperbolic tangent of x."""
    def tanh_(self) -> Self:
        """The hyperbolic tangent of x."""
    @overload
    def tensor_split(self, indices_or_sections: Sizes | Tensor, dim: _int = 0, *, axis: _int = 0) -> tuple[Tensor, ...]:
        """Views of as many pieces as asked for, equal if possible, or of the pieces between indices."""
    @overload
    def tensor_split(self, *, sections: Sizes | Tensor, dim: _int = 0, axis: _int = 0) -> tuple[Tensor, ...]:
        """Views of as many pieces as asked for, equal if possible, or of the pieces between indices."""
    @overload
    def tensor_split(self, *, indices: Sizes | Tensor, dim: _int = 0, axis: _int = 0) -> tuple[Tensor, ...]:
        """Views of as many pieces as asked for, equal if possible, or of the pieces between indices."""
    def tile(self, *sizes: _int | Shape, dims: Shape | None = None) -> Tensor:
        """Like :func:`repeat`; missing numbers in front count as 1."""
    @overload
    def to(self, dtype: DType, non_blocking: builtins.bool = False, copy: builtins.bool = False, *, memory_format: memory_format | None = None) -> Tensor:
        """``input`` in another type or on another device: ``x.to(dtype)``, ``x.to(device, dtype)``, or as another tensor is, ``x.to(other)``."""
    @overload
    def to(self, device: Device | None = None, dtype: DType | None = None, non_blocking: builtins.bool = False, copy: builtins.bool = False, *, memory_format: memory_format | None = None) -> Tensor:
        """``input`` in another type or on another device: ``x.to(dtype)``, ``x.to(device, dtype)``, or as another tensor is, ``x.to(other)``."""
    @overload
    def to(self, other: Tensor, non_blocking: builtins.bool = False, copy: builtins.bool = False, *, memory_format: memory_format | None = None) -> Tensor:
        """``input`` in another type or on another device: ``x.to(dtype)``, ``x.to(device, dtype)``, or as another tensor is, ``x.to(other)``."""
    def to_dense(self, dtype: DType | None = None, *, masked_grad: _bool | None = None) -> Tensor:
        """``input``, which is dense, in another type if one is given."""
    def to_sparse(self, sparse_dim: _int | None = None, *, layout: layout | None = None) -> SparseTensor:
        """The nonzero elements as a sparse tensor; with ``sparse_dim`` the first so many dimensions are sparse, and the entries are slices."""
    def to_sparse_coo(self) -> SparseTensor:
        """The nonzero elements as a sparse tensor in coordinates."""
    def to_sparse_csr(self, dense_dim: _int | None = None) -> SparseTensor:
        """The nonzero elements of a matrix as a sparse one with compressed rows."""
    def topk(self, k: _int, dim: _int = -1, largest: _bool = True, sorted: _bool = True, *, axis: _int = -1) -> ValuesIndices:
        """The ``k`` largest (or smallest) elements along ``dim``, in order, and where they are."""
    def trace(self) -> Tensor:
        """The sum of the elements on the diagonal of a matrix."""
    def transpose(self, dim0: _int, dim1: _int) -> Tensor:
        """Two dimensions exchanged."""
    def transpose_(self, dim0: _int, dim1: _int) -> Self:
        """Two dimensions exchanged."""
    def tril(self, diagonal: _int = 0) -> Tensor:
        """The lower triangle of each matrix, the other elements zero."""
    def tril_(self, diagonal: _int = 0) -> Self:
        """The lower triangle of each matrix, the other elements zero."""
    def triu(self, diagonal: _int = 0) -> Tensor:
        """The upper triangle of each matrix, the other elements zero."""
    def triu_(self, diagonal: _int = 0) -> Self:
        """The upper triangle of each matrix, the other elements zero."""
    def true_divide(self, other: Tensor | Number) -> Tensor:
        """x / y"""
    def true_divide_(self, other: Tensor | Number) -> Self:
        """x / y"""
    def trunc(self) -> Tensor:
        """x without its fraction."""
    def trunc_(self) -> Self:
        """x without its fraction."""
    @overload
    def type(self) -> str:
        """The name of the tensor's type and device, or the tensor in another type; a type that tells the device, too, like ``cuda.FloatTensor``, moves it there."""
    @overload
    def type(self, dtype: DType, non_blocking: builtins.bool = False) -> Tensor:
        """The name of the tensor's type and device, or the tensor in another type; a type that tells the device, too, like ``cuda.FloatTensor``, moves it there."""
    def type_as(self, other: Tensor) -> Tensor:
        """``input`` in the type of ``other``, and on its device."""
    def unbind(self, dim: _int = 0, *, axis: _int = 0) -> tuple[Tensor, ...]:
        """Views of all slices along a dimension, without that dimension."""
    @overload
    def unflatten(self, dim: _int, sizes: Shape) -> Tensor:
        """One dimension as several; one size may be -1, to be worked out."""
    @overload
    def unflatten(self, *, axis: _int, sizes: Shape) -> Tensor:
        """One dimension as several; one size may be -1, to be worked out."""
    def unfold(self, dimension: _int, size: _int, step: _int) -> Tensor:
        """A view of the windows of ``size`` elements along a dimension, ``step`` elements apart."""
    def uniform_(self, from_: _float = 0, to: _float = 1, *, generator: Generator | None = None) -> Self:
        """Fills the tensor with numbers uniform in [from_, to)."""
    @overload
    def unique(self, sorted: _bool = True, return_inverse: Literal[False] = False, return_counts: Literal[False] = False, dim: _int | None = None, *, axis: _int | None = None) -> Tensor:
        """The different elements (or slices along ``dim``), in order."""
    @overload
    def unique(self, sorted: _bool = True, *, return_inverse: Literal[True], return_counts: _bool = False, dim: _int | None = None, axis: _int | None = None) -> tuple[Tensor, ...]:
        """The different elements (or slices along ``dim``), in order."""
    @overload
    def unique(self, sorted: _bool = True, *, return_inverse: _bool = False, return_counts: Literal[True], dim: _int | None = None, axis: _int | None = None) -> tuple[Tensor, ...]:
        """The different elements (or slices along ``dim``), in order."""
    @overload
    def unique_consecutive(self, return_inverse: Literal[False] = False, return_counts: Literal[False] = False, dim: _int | None = None, *, axis: _int | None = None) -> Tensor:
        """The elements (or slices along ``dim``) without repetitions of their left neighbour."""
    @overload
    def unique_consecutive(self, *, return_inverse: Literal[True], return_counts: _bool = False, dim: _int | None = None, axis: _int | None = None) -> tuple[Tensor, ...]:
        """The elements (or slices along ``dim``) without repetitions of their left neighbour."""
    @overload
    def unique_consecutive(self, *, return_inverse: _bool = False, return_counts: Literal[True], dim: _int | None = None, axis: _int | None = None) -> tuple[Tensor, ...]:
        """The elements (or slices along ``dim``) without repetitions of their left neighbour."""
    def unsafe_chunk(self, chunks: _int, dim: _int = 0, *, axis: _int = 0) -> tuple[Tensor, ...]:
        """At most ``chunks`` pieces of one size, the last of which may be smaller."""
    @overload
    def unsafe_split(self, split_size_or_sections: Sizes, dim: _int = 0, *, axis: _int = 0) -> tuple[Tensor, ...]:
        """Views of pieces of a given size (the last may be smaller), or of the listed sizes."""
    @overload
    def unsafe_split(self, *, split_size: Sizes, dim: _int = 0, axis: _int = 0) -> tuple[Tensor, ...]:
        """Views of pieces of a given size (the last may be smaller), or of the listed sizes."""
    @overload
    def unsqueeze(self, dim: _int) -> Tensor:
        """A dimension of size 1 inserted at ``dim``."""
    @overload
    def unsqueeze(self, *, axis: _int) -> Tensor:
        """A dimension of size 1 inserted at ``dim``."""
    @overload
    def unsqueeze_(self, dim: _int) -> Self:
        """A dimension of size 1 inserted at ``dim``."""
    @overload
    def unsqueeze_(self, *, axis: _int) -> Self:
        """A dimension of size 1 inserted at ``dim``."""
    def var(self, dim: Dims = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction: _float | None = None, axis: Dims = None, keepdims: _bool = False) -> Tensor:
        """The variance: sum((x - mean(x))**2) / (n - correction), with correction 1 by default."""
    def vdot(self, other: Tensor) -> Tensor:
        """The dot product of two vectors, the first conjugated."""
    def view(self, *sizes: _int | Shape | dtypes.dtype, size: Shape | None = None, dtype: DType | None = None) -> Tensor:
        """Like :func:`reshape`, but never copies: the memory must allow it."""
    def view_as(self, other: Tensor) -> Tensor:
        """The elements of ``input`` in the shape of ``other``, without copying."""
    @overload
    def vsplit(self, indices_or_sections: Sizes | Tensor) -> tuple[Tensor, ...]:
        """Pieces one below the other: along the first dimension."""
    @overload
    def vsplit(self, *, sections: Sizes | Tensor) -> tuple[Tensor, ...]:
        """Pieces one below the other: along the first dimension."""
    @overload
    def vsplit(self, *, indices: Sizes | Tensor) -> tuple[Tensor, ...]:
        """Pieces one below the other: along the first dimension."""
    def where(self, condition: Tensor, other: Tensor | Number) -> Tensor:
        """``input`` where the condition holds, ``other`` elsewhere."""
    def xlogy(self, other: Tensor | Number) -> Tensor:
        """x * log(y), 0 where x is 0."""
    def xlogy_(self, other: Tensor | Number) -> Self:
        """x * log(y), 0 where x is 0."""
    def zero_(self) -> Self:
        """Fills the tensor with zeros, in place."""
