"""What PyTorch's records hold (tensors, dtypes, functions), as the same thing of chainrule."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import chainrule

__all__ = ["Missing", "function", "method", "of_chainrule", "sharing", "to_array", "to_torch"]

Function = Callable[..., Any]


class Missing(Exception):
    """chainrule has no such name; whether it says why is tested elsewhere."""


def of_chainrule(value: Any, requires_grad: bool = False) -> Any:
    """The same arguments for chainrule: tensors are copied, with their strides and their views."""
    if isinstance(value, torch.Tensor):
        return _tensor(value, requires_grad)
    if isinstance(value, torch.dtype):
        return _named(str(value).removeprefix("torch."))
    if isinstance(value, torch.device):
        return chainrule.device(str(value))
    if isinstance(value, torch.memory_format | torch.layout):
        return _named(str(value).removeprefix("torch."))
    if isinstance(value, torch.Size):
        return chainrule.Size(value)
    if isinstance(value, torch.Generator):
        return chainrule.Generator()
    if isinstance(value, (list, tuple)):
        return type(value)(of_chainrule(v, requires_grad) for v in value)
    if isinstance(value, dict):
        return {k: of_chainrule(v, requires_grad) for k, v in value.items()}
    if isinstance(value, slice):
        return slice(*(of_chainrule(v) for v in (value.start, value.stop, value.step)))
    if callable(value) and not isinstance(value, type):
        return function(value, getattr(value, "__name__", ""))
    return value


def _tensor(x: torch.Tensor, requires_grad: bool) -> chainrule.Tensor:
    if x.layout != torch.strided:
        raise Missing("sparse tensors are compared elsewhere")
    array = to_array(x)
    y = chainrule.as_tensor(_like_strides(array, x.stride()))
    inexact = x.is_floating_point() or x.is_complex()
    return y.requires_grad_(bool(requires_grad and inexact and x.requires_grad))


def sharing(value: Any, memory: dict[int, np.ndarray] | None = None) -> Any:
    """The same arguments for chainrule, in which tensors overlap where they do in PyTorch."""
    memory = {} if memory is None else memory
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return type(value)(sharing(v, memory) for v in value)
    if isinstance(value, dict):
        return {k: sharing(v, memory) for k, v in value.items()}
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided or not value.numel():
        return of_chainrule(value)
    if value.dtype == torch.bfloat16 or value.dim() > 64:  # NumPy's limit
        raise Missing("no such array")
    whole = torch.tensor([], dtype=value.dtype).set_(value.untyped_storage())
    shared = memory.setdefault(value.untyped_storage().data_ptr(), to_array(whole))
    strides = [n * shared.itemsize for n in value.stride()]
    return chainrule.from_numpy(
        np.lib.stride_tricks.as_strided(shared[value.storage_offset() :], value.shape, strides)
    )


def _like_strides(array: np.ndarray, strides: tuple[int, ...]) -> np.ndarray:
    """A copy whose dimensions lie in memory in the same order."""
    if array.ndim < 2:
        return array
    order = sorted(range(array.ndim), key=lambda d: -strides[d])
    return np.ascontiguousarray(array.transpose(order)).transpose(np.argsort(order).astype(int))


def to_array(x: torch.Tensor) -> np.ndarray:
    """The values of a tensor of PyTorch, in the dtype of NumPy with its name."""
    x = x.detach().resolve_conj().resolve_neg()
    if x.dtype == torch.bfloat16:
        bits: np.ndarray = x.contiguous().view(torch.int16).numpy()
        return bits.view(_named("bfloat16").array_dtype)
    return np.array(x.numpy(force=True))


def to_torch(array: Any) -> torch.Tensor:
    """An array as a tensor of PyTorch, bfloat16 by its bits."""
    array = np.asarray(array)
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _named(path: str) -> Any:
    found: Any = chainrule
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError as error:
            raise Missing(path) from error
    return found


def method(name: str) -> Function:
    """The method of Tensor of this name."""
    found: Function = _named(f"Tensor.{name}")
    return found


def function(theirs: Function, name: str) -> Function:
    """chainrule's twin of a function of PyTorch, which a record calls ``name``.

    A function written in the records themselves is run as it stands, with chainrule as ``torch``.
    """
    if isinstance(theirs, functools.partial):
        return functools.partial(function(theirs.func, name), *theirs.args, **theirs.keywords)
    if isinstance(theirs, types.FunctionType) and "testing" in (theirs.__module__ or ""):
        return _rebound(theirs)
    if (theirs.__class__.__name__ in {"method_descriptor", "wrapper_descriptor"}) or (
        getattr(theirs, "__qualname__", "").startswith(("TensorBase.", "Tensor."))
    ):
        return method(theirs.__name__)
    if getattr(theirs, "__module__", "") in {"_operator", "operator", "builtins", "numpy"}:
        return theirs
    found: Function = _named(name)
    return found


_NAMES: dict[tuple[int, str], dict[str, Any]] = {}  # thousands each, asked for at every sample


def _names(theirs: types.FunctionType) -> dict[str, Any]:
    """What a function of the records sees of its module, with chainrule as ``torch``.

    A wrapper says that it is of another module than the one whose names it sees.
    """
    module, key = theirs.__module__, (id(theirs.__globals__), theirs.__module__)
    if key in _NAMES:
        return _NAMES[key]
    names = _NAMES[key] = {**theirs.__globals__, "torch": chainrule}
    for name, value in theirs.__globals__.items():
        if isinstance(value, type) and value.__module__.startswith("torch.optim.lr_scheduler"):
            names[name] = _named(f"optim.lr_scheduler.{name}")
        if isinstance(value, types.FunctionType) and value.__module__ == module:
            names[name] = _Late(value)
    return names


def _rebound(theirs: types.FunctionType) -> Function:
    names = _names(theirs)
    closure = tuple(types.CellType(_cell(c.cell_contents)) for c in theirs.__closure__ or ())
    ours = types.FunctionType(
        theirs.__code__, names, theirs.__name__, theirs.__defaults__, closure or None
    )
    ours.__kwdefaults__ = theirs.__kwdefaults__
    return ours


class _Late:
    """A helper of the records that is translated when it is called."""

    def __init__(self, theirs: types.FunctionType):
        self.theirs = theirs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _rebound(self.theirs)(*args, **kwargs)


def _cell(value: Any) -> Any:
    if isinstance(value, torch.Tensor | torch.dtype):
        return of_chainrule(value)
    if isinstance(value, types.FunctionType | types.BuiltinFunctionType):
        return function(value, value.__name__)
    return value
