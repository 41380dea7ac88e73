"""Tensors of a module that are computed from others: ``weight = f(original)``.

A module with a parametrized tensor is of a class made from its own, in which the tensor's name is a
property. What it is computed from stands in ``module.parametrizations``, and is what is learned.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from chainrule.autograd.modes import no_grad
from chainrule.nn.layers.containers import ModuleDict, ModuleList
from chainrule.nn.module.base import Module
from chainrule.nn.parameter import Parameter
from chainrule.tensor import Tensor
from chainrule.typing import DType

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]


class _Cache(threading.local):
    """What parametrized tensors were, while this thread has a ``with cached():`` open."""

    depth = 0
    values: dict[tuple[int, str], Tensor]

    def __init__(self) -> None:
        self.values = {}


_cache = _Cache()


@contextmanager
def cached() -> Iterator[None]:
    """Computes each parametrized tensor once, however often this thread uses it inside."""
    _cache.depth += 1
    try:
        yield
    finally:
        _cache.depth -= 1
        if not _cache.depth:
            _cache.values.clear()


# --- what a tensor is computed from ---------------------------------------------------------------


class ParametrizationList(ModuleList):
    """The functions that a tensor passes through, and what it is computed from.

    The latter is ``original``, or ``original0``, ``original1``, ... where the first function takes
    several tensors.
    """

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False):
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        new = self._inverse(original, strict=False)
        self.is_tensor = isinstance(new, Tensor)
        if self.is_tensor:
            _check("right_inverse", new, original.dtype)
            original.data = new.detach()
            _hold(self, "original", original)
            self.ntensors = 1
        else:
            _check_sequence(new)
            self.ntensors = len(new)
            for i, part in enumerate(new):
                learned = isinstance(original, Parameter)
                value = Parameter(part, original.requires_grad) if learned else part
                _hold(self, f"original{i}", value)
        if not unsafe:
            _check("forward", self(), dtype, shape)

    def _inverse(self, value: Any, strict: bool) -> Any:
        """What the functions must be given to return a value (if not strict: as far as known)."""
        with no_grad():
            for module in reversed(list(self)):
                inverse = getattr(module, "right_inverse", None)
                if inverse is None and strict:
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement "
                        "right_inverse; define it, or set the original tensor instead"
                    )
                if inverse is None:
                    continue
                try:
                    value = inverse(value)
                except NotImplementedError:
                    if strict:
                        raise
        return value

    def right_inverse(self, value: Tensor) -> None:
        """Sets what the tensor is computed from so that it becomes ``value``."""
        new = self._inverse(value, strict=True)
        if not self.is_tensor:
            _check_sequence(new)
        parts = [new] if self.is_tensor else list(new)
        if len(parts) != self.ntensors:
            raise ValueError(
                f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got "
                f"a sequence of length {len(parts)}."
            )
        for original, part in zip(self.originals(), parts, strict=True):
            _check("right_inverse", part, original.dtype)
            original.data = part.detach()

    def originals(self) -> list[Any]:
        """The tensors that the parametrized one is computed from."""
        names = ["original"] if self.is_tensor else [f"original{i}" for i in range(self.ntensors)]
        return [getattr(self, name) for name in names]

    def forward(self) -> Any:
        first, *others = self
        value = first(*self.originals())
        for module in others:
            value = module(value)
        return value


def _hold(module: Module, name: str, tensor: Any) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _check(method: str, value: Any, dtype: DType | None, shape: Any = None) -> None:
    """Refuses what a parametrization's method may not return."""
    if not isinstance(value, Tensor):
        raise ValueError(
            f"A parametrization must return a tensor from {method}. Got {type(value).__name__}."
        )
    for what, got, wanted in (("dtype", value.dtype, dtype), ("shape", value.shape, shape)):
        if wanted is not None and got != wanted:
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the tensor, unless "
                f"the `unsafe` flag is enabled: {method} makes {got} of {wanted}"
            )


def _check_sequence(value: Any) -> None:
    if not isinstance(value, (list, tuple)) or not all(isinstance(t, Tensor) for t in value):
        raise ValueError(
            "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got "
            f"{type(value).__name__}"
        )


# --- the module's class ---------------------------------------------------------------------------


@functools.cache
def _class_with(base: type, names: tuple[str, ...]) -> type:
    """The class made from ``base`` in which these names are computed."""
    if not names:
        return base
    members: dict[str, Any] = {name: _computed(name) for name in names}
    members.update(_base=base, _names=names, __reduce_ex__=_reduce, __doc__=base.__doc__)
    return type(f"Parametrized{base.__name__}", (base,), members)


def _computed(name: str) -> property:
    def value(self: Any) -> Tensor:
        compute = self._modules["parametrizations"][name]
        if not _cache.depth:
            return compute()
        key = (id(self), name)
        if key not in _cache.values:
            _cache.values[key] = compute()
        return _cache.values[key]

    def assign(self: Any, value: Tensor) -> None:
        self._modules["parametrizations"][name].right_inverse(value)

    return property(value, assign)


def _reduce(self: Any, protocol: Any) -> Any:
    """How to copy or pickle a module whose class cannot be imported."""
    return _blank, (self._base, self._names), self.__dict__


def _blank(base: type, names: tuple[str, ...]) -> Any:
    cls: Any = _class_with(base, names)
    return cls.__new__(cls)


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a tensor of the module (any, if no name is given) is parametrized."""
    names = getattr(type(module), "_names", ())
    return bool(names) if tensor_name is None else tensor_name in names


def type_before_parametrizations(module: Module) -> type:
    """The class of a module without its parametrizations."""
    return getattr(type(module), "_base", type(module)) if is_parametrized(module) else type(module)


# --- adding and removing --------------------------------------------------------------------------


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Makes ``module.<tensor_name>`` what ``parametrization`` computes; returns the module.

    If it has ``right_inverse``, the tensor starts from what it gives for the present value, which
    may be several tensors. Several parametrizations of one tensor apply one after the other.

    Args:
        module: the module that has the tensor.
        tensor_name: the name of a parameter or buffer.
        parametrization: a module from tensor to tensor.
        unsafe: whether it may change shape and dtype.

    >>> from chainrule import nn, ones
    >>> from chainrule.nn.utils import parametrize
    >>> class Symmetric(nn.Module):
    ...     def forward(self, X):
    ...         return X.triu() + X.triu(1).T
    >>> layer = parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
    >>> bool((layer.weight == layer.weight.T).all())
    True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        functions = module.parametrizations[tensor_name]
        if not unsafe:
            _check_next(parametrization, getattr(module, tensor_name))
        functions.append(parametrization)
        functions.unsafe |= unsafe
        return module
    original = {**module._parameters, **module._buffers}.get(tensor_name)
    if original is None:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            f"with name '{tensor_name}'"
        )
    functions = ParametrizationList([parametrization], original, unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        module.parametrizations = ModuleDict()
    module.parametrizations._modules[tensor_name] = functions
    _compute(module, tuple(module.parametrizations))
    return module


def _check_next(parametrization: Any, value: Tensor) -> None:
    """Refuses a further parametrization that changes shape or dtype."""
    new = parametrization(value)
    _check("forward", new, value.dtype, value.shape)
    if hasattr(parametrization, "right_inverse"):
        try:
            back = parametrization.right_inverse(new)
        except NotImplementedError:
            return
        _check("right_inverse", back, value.dtype, value.shape)


def _compute(module: Module, names: tuple[str, ...]) -> None:
    module.__class__ = _class_with(type_before_parametrizations(module), names)


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Makes a tensor an ordinary one again, with its present value or with the original one."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    functions = module.parametrizations[tensor_name]
    if not leave_parametrized and not functions.is_tensor:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    original = functions.originals()[0]
    if leave_parametrized:
        with no_grad():
            value = getattr(module, tensor_name).detach()
        if functions.is_tensor:
            original.data = value  # the same parameter, which an optimizer may hold
        else:
            learned = isinstance(original, Parameter)
            original = Parameter(value, original.requires_grad) if learned else value
    del module.parametrizations[tensor_name]
    _compute(module, tuple(module.parametrizations))
    if not is_parametrized(module):
        del module.parametrizations
    _hold(module, tensor_name, original)
    return module


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Gives ``to_module`` the parametrizations of another, with the tensors they start from."""
    if not is_parametrized(from_module):
        return to_module
    for name in list(from_module.parametrizations) if tensor_name is None else [tensor_name]:
        functions = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach()))
        for function in functions:
            register_parametrization(to_module, name, function)
        new = to_module.parametrizations[name]
        for key, tensor in {**functions._parameters, **functions._buffers}.items():
            setattr(new, key, tensor)
    return to_module
