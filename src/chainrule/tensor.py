"""Tensor: an array, its gradient, and where it came from.

A tensor wraps one array. If it was computed from tensors that require a gradient, it also points to
the :class:`Node` that made it; nodes point to the nodes of their inputs, and that is the whole
graph.

Operators and methods such as ``x.tanh()`` are attached in ``ops/methods.py`` and ``backward()`` in
``autograd/``: those rooms lie above this one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, overload

from chainrule.attributes import (
    LayoutError,
    OtherLayout,
    Size,
    check_format,
    check_layout,
    contiguous_format,
    layout,
    memory_format,
    no_dimension,
    one_name,
    sparse_coo,
    sparse_csr,
    strided,
)
from chainrule.backend import K, dtypes
from chainrule.placement import Located, device
from chainrule.graph import Box, mode, Mode, next_seq, Node, Storage

if TYPE_CHECKING:
    # Methods and operators are attached by the rooms above (ops/methods.py, autograd/); what an
    # editor and a type checker see of them is written by tools/stub.py.
    from chainrule._tensor_methods import TensorMethods
    from chainrule.typing import Array, ArrayDType, MaybeNone
else:
    TensorMethods = Located

__all__ = [
    "LayoutError",
    "OtherLayout",
    "Size",
    "Tensor",
    "check_layout",
    "device",
    "layout",
    "of_array",
    "sparse_coo",
    "sparse_csr",
    "strided",
]

new = object.__new__


class Tensor(TensorMethods):
    """An array with derivatives.

    ``Tensor`` objects come from :func:`chainrule.tensor`, the other creation functions, and from
    operations. ``Tensor(2, 3)`` and ``Tensor([1, 2])`` are PyTorch's older way to make one by its
    sizes or its values, of the default type. The library makes its own by :func:`of_array`.

    >>> import chainrule
    >>> x = chainrule.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_grad",
        "_node",
        "_store",
        "_view",
        "array",
        "needs_grad",
    )
    array: Any
    needs_grad: bool  # for those who know that a view is up to date; else ``requires_grad``
    _node: Any  # Node | None
    _grad: Any  # Tensor | None
    _store: Any  # Storage | None: made when a view is taken or the memory is written
    _view: Any  # View | None
    _hooks: dict[int, Any] | None = None  # in __dict__ of the few leaves that have hooks

    # What no tensor is, and how it lies: one answer for all tensors.
    is_ipu = is_maia = is_meta = is_mkldnn = is_mps = is_mtia = False
    is_nested = is_quantized = is_sparse = is_sparse_csr = is_vulkan = is_xpu = False
    layout = strided

    def __init__(self, data: Any = (), *sizes: int):
        self._hold(self._of_sizes_or_values(data, *sizes))

    def _hold(self, array: Any) -> None:
        """Starts as a leaf around an array."""
        self.array = array
        self.needs_grad = False
        self._node = self._grad = self._store = self._view = None

    # --- what it is -------------------------------------------------------------------------------

    @property
    def shape(self) -> Size:
        return Size(self.array.shape)

    @property
    def dtype(self) -> dtypes.dtype:
        return dtypes.from_array_dtype(self.array.dtype)

    @property
    def ndim(self) -> int:
        return self.array.ndim

    @property
    def itemsize(self) -> int:
        return self.array.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.array.size * self.array.dtype.itemsize

    @overload
    def size(self, dim: None = None) -> Size: ...
    @overload
    def size(self, dim: int) -> int: ...
    @overload
    def size(self, *, axis: int) -> int: ...
    def size(self, dim: int | None = None, *, axis: int | None = None) -> Size | int:
        """The shape, or one of its entries."""
        if axis is not None:
            dim = one_name("size", dim, axis)
        if dim is None:
            return Size(self.array.shape)
        try:
            return self.array.shape[dim]
        except IndexError:
            raise no_dimension("size", dim, self.array.shape) from None

    def dim(self) -> int:
        return self.array.ndim

    def numel(self) -> int:
        return self.array.size

    def element_size(self) -> int:
        return self.array.dtype.itemsize

    def is_floating_point(self) -> bool:
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        return self.dtype.is_complex

    def is_contiguous(self, *, memory_format: memory_format = contiguous_format) -> bool:
        """Whether the elements lie one behind the other, in this order of the dimensions."""
        if memory_format is contiguous_format:
            return K.is_contiguous(self.array)
        order = check_format("is_contiguous", memory_format).order
        return K.is_contiguous(self.array) if order is None else K.is_in_order(self.array, order)

    @overload
    def stride(self, dim: None = None) -> tuple[int, ...]: ...
    @overload
    def stride(self, dim: int) -> int: ...
    @overload
    def stride(self, *, axis: int) -> int: ...
    def stride(self, dim: int | None = None, *, axis: int | None = None) -> tuple[int, ...] | int:
        """The steps between neighbors along each dimension, in elements, or along one."""
        if axis is not None:
            dim = one_name("stride", dim, axis)
        size = self.array.dtype.itemsize
        if dim is None:
            return tuple([s // size for s in self.array.strides])
        try:
            return self.array.strides[dim] // size
        except IndexError:
            raise no_dimension("stride", dim, self.array.shape) from None

    # --- its place in the graph -------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        if self._view is not None:
            self._refresh()
        return self.needs_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Asks for a gradient of this tensor (or stops asking), in place."""
        if self._node is not None:
            if requires_grad:
                return self
            raise RuntimeError(
                "requires_grad_: you can only change requires_grad flags of leaf tensors; this one "
                f"was made by {self._node.name()}. Use detach() to get a tensor without history."
            )
        if requires_grad and not (self.dtype.is_floating_point or self.dtype.is_complex):
            raise RuntimeError(
                "requires_grad_: only tensors of floating point and complex dtype can require "
                f"gradients, got {self.dtype}; convert with .float() first"
            )
        if requires_grad and isinstance(self.array, Box):
            raise RuntimeError(
                "requires_grad_: called inside a function that is being transformed by "
                f"{self.array.transformation}; use chainrule.func.grad for derivatives there"
            )
        self.needs_grad = bool(requires_grad)
        return self

    @property
    def is_leaf(self) -> bool:
        return self.grad_fn is None

    @property
    def grad_fn(self) -> Node | None:
        if self._view is not None:
            self._refresh()
        return self._node

    @property
    def grad(self) -> Tensor | MaybeNone:
        """The gradient that ``backward()`` accumulated here."""
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            if not isinstance(value, (Tensor, OtherLayout)):
                raise TypeError(
                    f"grad: assigned grad expected to be a Tensor or None but got {type(value)}"
                )
            if tuple(value.shape) != self.array.shape:
                raise RuntimeError(
                    f"grad: assigned grad has shape {tuple(value.shape)}, but the tensor has shape "
                    f"{tuple(self.shape)}"
                )
            if value.dtype is not self.dtype:
                raise RuntimeError(
                    f"grad: assigned grad has dtype {value.dtype}, but the tensor has {self.dtype}"
                )
            self._check_beside(value)
        self._grad = value

    @property
    def _version(self) -> int:
        """Grows with every in-place change of this tensor's memory."""
        return 0 if self._store is None else self._store.last_write

    @property
    def _base(self) -> Tensor | None:
        return None if self._view is None else self._view.base

    def storage(self) -> Storage:
        """What this tensor shares with its views, made when first asked for."""
        if self._store is None:
            self._store = Storage()
            if self._node is not None and self._node.out is not None:
                self._node.extras().store = self._store
        return self._store

    def _refresh(self) -> None:
        """Gives a view its new history if its base was changed in place since it was taken."""
        view, store = self._view, self._store
        if store is None or store.rebased <= view.stamp:
            return
        view.stamp = next_seq()
        flags = mode.flags
        mode.flags = flags | Mode.GRAD
        try:
            again = view.replay(view.base)
        finally:
            mode.flags = flags
        self.array, self._node, self.needs_grad = again.array, again._node, again.needs_grad

    def detach(self) -> Tensor:
        """The same memory without history."""
        out = self.data
        out._store = self.storage()
        return out

    def detach_(self) -> Self:
        """Forgets this tensor's history, in place."""
        if self._view is not None:
            raise RuntimeError(
                "detach_: can't detach views in-place; use detach() for a tensor without history"
            )
        self.array = self.data.array
        self._node = None
        self.needs_grad = False
        return self

    @property
    def data(self) -> Tensor:
        """The same memory without history, and without a record of writes made through it."""
        if isinstance(self.array, Box):
            if self._view is not None:
                self._refresh()
            return of_array(self.array.detached())
        return of_array(self.array)

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"data: expected a Tensor, got {type(value).__name__}")
        self.array = value.array
        self._store = self._view = None  # other memory, which it shares with no view or base

    # --- out of the library -----------------------------------------------------------------------

    def numpy(self, *, force: bool = False) -> Array:
        """The same memory as a NumPy array."""
        if self.requires_grad and not force:
            raise RuntimeError(
                "numpy: can't call numpy() on a tensor that requires grad; use x.detach().numpy()"
            )
        if not force:
            self._check_on_host("numpy")
        return self._numbers("numpy()")

    def item(self) -> Any:
        """The value of a tensor with one element as a Python number."""
        if self.array.size != 1:
            raise RuntimeError(
                f"item: a tensor with {self.array.size} elements (shape {tuple(self.shape)}) "
                "cannot be converted to a scalar; reduce it first, for example with .mean()"
            )
        return self._numbers("item()").item()

    def tolist(self) -> Any:
        """The values as nested Python lists (a number if there are no dimensions)."""
        return self._numbers("tolist()").tolist()

    def _numbers(self, what: str) -> Array:
        if isinstance(self.array, Box):
            if self._view is not None:
                self._refresh()
            return self.array.numbers(what)
        return K.to_numpy(self.array)

    def __array__(self, dtype: ArrayDType | None = None, copy: bool | None = None) -> Array:
        return K.asarray(self.numpy(), dtype=dtype, copy=copy)

    def __dlpack__(self, **kwargs: Any) -> Any:
        if self.dtype is dtypes.bfloat16:
            raise BufferError(
                "__dlpack__: NumPy exports no bfloat16; pass x.view(chainrule.int16) and view that "
                "as bfloat16 where it arrives"
            )
        return self.numpy().__dlpack__(**kwargs)

    def __dlpack_device__(self) -> Any:
        return self._numbers("__dlpack__").__dlpack_device__()

    def __len__(self) -> int:
        if self.array.ndim == 0:
            raise TypeError("len() of a 0-d tensor")
        return self.array.shape[0]

    def __bool__(self) -> bool:
        if self.array.size != 1:
            what = "no values" if self.array.size == 0 else "more than one value"
            raise RuntimeError(
                f"bool: Boolean value of Tensor with {what} is ambiguous (shape "
                f"{tuple(self.shape)}); use .any() or .all()"
            )
        return bool(self._numbers("bool()").item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        if self.dtype.category > dtypes.INTEGER or self.array.size != 1:
            raise TypeError(
                "index: only integer tensors of a single element can be converted to an index, got "
                f"{self.dtype} of shape {tuple(self.shape)}"
            )
        return int(self.item())

    __hash__ = object.__hash__  # by identity, as in PyTorch

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if self.ndim == 0 else object.__format__(self, spec)

    # --- copies -----------------------------------------------------------------------------------

    def __copy__(self) -> Tensor:
        out = object.__new__(type(self))
        for name in ("array", "needs_grad", "_node", "_grad", "_store", "_view"):
            setattr(out, name, getattr(self, name))
        out.__dict__.update(self.__dict__)
        return out

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if self._node is not None:
            raise RuntimeError(
                "deepcopy: only tensors created explicitly by the user (graph leaves) support "
                "copying; use x.detach().clone(), or x.clone() to keep the history"
            )
        if id(self) in memo:
            return memo[id(self)]
        out = object.__new__(type(self))
        out._hold(K.copy(self.array))
        memo[id(self)] = out
        out.needs_grad = self.needs_grad
        out._grad = None if self._grad is None else self._grad.__deepcopy__(memo)
        out.__dict__.update(self.__dict__)
        return out

    def __reduce__(self) -> tuple[Any, ...]:
        if self._node is not None:
            raise RuntimeError("pickle: a tensor with history cannot be pickled; pickle x.detach()")
        state = (self.needs_grad, self._grad, self.__dict__)
        return _rebuild, (type(self), self._numbers("pickle"), state)


def of_array(array: Any) -> Tensor:
    """A tensor around an array of the backend (or a box) as it is, of its type, without a copy."""
    out = new(Tensor)
    out.array = array
    out.needs_grad = False
    out._node = None
    out._grad = None
    out._store = None
    out._view = None
    return out


def _rebuild(cls: type[Tensor], array: Any, state: tuple[bool, Any, dict[str, Any]]) -> Tensor:
    out = object.__new__(cls)
    out._hold(dtypes.with_own_dtype(K.asarray(array)))
    out.needs_grad, out._grad = state[0], state[1]
    out.__dict__.update(state[2])
    return out
