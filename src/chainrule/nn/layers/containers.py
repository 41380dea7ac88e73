"""Modules that hold other modules or parameters."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import Any, Self, TypeAlias, TypeVar, overload

from chainrule.nn.layers.activated_linear import activated
from chainrule.nn.layers.linear import Linear
from chainrule.nn.module.base import Module
from chainrule.nn.parameter import Parameter
from chainrule.tensor import Tensor

__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]

T = TypeVar("T")
Named: TypeAlias = Mapping[str, T] | Iterable[tuple[str, T]]  # a dictionary, or pairs


def _position(index: int, length: int, what: str) -> int:
    if not -length <= index < length:
        raise IndexError(f"{what}: index {index} is out of range for {length} entries")
    return index % length


class _Numbered(Module):
    """Modules under the names 0, 1, 2, ..."""

    _modules: dict[str, Any]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __contains__(self, module: object) -> bool:
        return any(module is m for m in self)

    @overload
    def __getitem__(self, index: int) -> Module: ...
    @overload
    def __getitem__(self, index: slice) -> Any: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            items = list(self._modules.items())[index]
            return self._like(items)
        keys = list(self._modules)
        return self._modules[keys[_position(index, len(keys), type(self).__name__)]]

    def __setitem__(self, index: int, module: Module) -> None:
        keys = list(self._modules)
        setattr(self, keys[_position(index, len(keys), type(self).__name__)], module)

    def __delitem__(self, index: int | slice) -> None:
        keys = list(self._modules)
        chosen = index if isinstance(index, slice) else _position(index, len(keys), "del")
        for key in keys[chosen] if isinstance(chosen, slice) else [keys[chosen]]:
            del self._modules[key]
        self._renumber(list(self._modules.values()))

    def _renumber(self, modules: list[Any]) -> None:
        for module in modules:
            if module is not None and not isinstance(module, Module):
                raise TypeError(f"{type(module).__name__} is not a Module subclass")
        self._modules.clear()
        self._modules.update({str(i): module for i, module in enumerate(modules)})

    def append(self, module: Module) -> Self:
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Puts a module at a place, the others moving up."""
        n = len(self)
        if not -n <= index <= n:
            raise IndexError(f"{type(self).__name__}.insert: index {index} is out of range for {n}")
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Adds modules at the end."""
        _check_iterable(f"{type(self).__name__}.extend", modules)
        for module in list(modules):
            self.append(module)
        return self

    def pop(self, key: int | slice) -> Any:
        """Takes a module (or those of a slice) out and returns it."""
        module = self[key]
        del self[key]
        return module

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def _like(self, items: list[tuple[str, Any]]) -> Any:
        """A container of the same kind with these modules."""
        raise NotImplementedError


class Sequential(_Numbered):
    """Modules applied one after the other.

    >>> from chainrule import nn
    >>> nn.Sequential(nn.Linear(2, 3), nn.Tanh())
    Sequential(
      (0): Linear(in_features=2, out_features=3, bias=True)
      (1): Tanh()
    )
    """

    def __init__(self, *modules: Module | Mapping[str, Module]):
        super().__init__()
        given: Iterable[tuple[str, Any]] = ((str(i), m) for i, m in enumerate(modules))
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            given = modules[0].items()
        for name, module in given:
            self.add_module(name, module)

    def _like(self, items: list[tuple[str, Any]]) -> Any:
        return Sequential(OrderedDict(items))

    def forward(self, input: Any) -> Any:
        layer = None  # a linear layer that waits for its activation
        for module in self._modules.values():
            if layer is not None:
                out = activated(layer, module, input)
                if out is not None:
                    input, layer = out, None
                    continue
                input, layer = layer(input), None
            if module.__class__ is Linear:
                layer = module
            else:
                input = module(input)
        return input if layer is None else layer(input)

    def __add__(self, other: Sequential) -> Sequential:
        _check_sequential(other)
        return Sequential(*self, *other)

    def __iadd__(self, other: Sequential) -> Self:
        _check_sequential(other)
        return self.extend(other)

    def __mul__(self, other: int) -> Sequential:
        """The same modules several times over, one after the other."""
        return Sequential(*self._times(other))

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Self:
        return self.extend(self._times(other)[len(self) :])

    def _times(self, count: int) -> list[Any]:
        if not isinstance(count, int):
            raise TypeError(
                f"unsupported operand type(s) for *: 'Sequential' and {type(count).__name__!r}"
            )
        if count <= 0:
            raise ValueError(f"Non-positive multiplication factor {count} for a Sequential")
        return list(self) * count


def _check_sequential(other: object) -> None:
    if not isinstance(other, Sequential):
        raise ValueError(
            f"add operator supports only objects of Sequential class, but {type(other)} is given."
        )


class ModuleList(_Numbered):
    """A list of modules that are registered.

    >>> from chainrule import nn
    >>> len(nn.ModuleList([nn.Linear(2, 2) for _ in range(3)]))
    3
    """

    def __init__(self, modules: Iterable[Module] | None = None):
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def _like(self, items: list[tuple[str, Any]]) -> Any:
        return type(self)([module for _, module in items])

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __repr__(self) -> str:
        """Equal modules in a row are printed once, with their count."""
        lines, start = [], 0
        for text, group in itertools.groupby(repr(module) for module in self):
            n = len(list(group))
            label = f"({start}): " if n == 1 else f"({start}-{start + n - 1}): {n} x "
            lines.append(label + text.replace("\n", "\n  "))
            start += n
        if not lines:
            return f"{self._get_name()}()"
        return "\n  ".join([f"{self._get_name()}(", *lines]) + "\n)"


class ModuleDict(Module):
    """A dictionary of modules that are registered."""

    _modules: dict[str, Any]

    def __init__(self, modules: Named[Module] | None = None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def keys(self) -> KeysView[str]:
        """The names of the modules."""
        return self._modules.keys()

    def values(self) -> ValuesView[Module]:
        """The modules."""
        return self._modules.values()

    def items(self) -> ItemsView[str, Module]:
        """The names and the modules."""
        return self._modules.items()

    def clear(self) -> None:
        """Takes all modules out."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Takes a module out and returns it."""
        return self._modules.pop(key)

    def update(self, modules: Named[Module]) -> None:
        """Adds the modules of a dictionary or of pairs."""
        for key, module in _pairs("ModuleDict.update", modules):
            self[key] = module


def _as_parameter(value: object) -> object:
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


def _check_iterable(method: str, values: object) -> None:
    if not isinstance(values, Iterable) or isinstance(values, Tensor):
        raise TypeError(
            f"{method} should be called with an iterable, but got {type(values).__name__}"
        )


def _pairs(method: str, given: Any) -> list[tuple[str, Any]]:
    """The keys and values of a dictionary or of pairs."""
    if hasattr(given, "items"):
        return list(given.items())
    _check_iterable(method, given)
    pairs = list(given)
    for j, pair in enumerate(pairs):
        if not isinstance(pair, (list, tuple)):
            raise TypeError(
                f"{method}: element #{j} should be a pair of key and value, is "
                f"{type(pair).__name__}"
            )
        if len(pair) != 2:
            raise ValueError(f"{method}: element #{j} has length {len(pair)}; 2 is required")
    return pairs


class ParameterList(Module):
    """A list of parameters that are registered."""

    def __init__(self, values: Iterable[object] | None = None):
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return ParameterList([self[i] for i in range(*index.indices(self._size))])
        return getattr(self, str(_position(index, self._size, "ParameterList")))

    def __setitem__(self, index: int, value: object) -> None:
        setattr(self, str(_position(index, self._size, "ParameterList")), _as_parameter(value))

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(self._size))

    def append(self, value: object) -> Self:
        """Adds a parameter at the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[object]) -> Self:
        """Adds parameters at the end."""
        _check_iterable("ParameterList.extend", values)
        for value in list(values):
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[object]) -> Self:
        return self.extend(values)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        raise RuntimeError("ParameterList should not be called.")

    def extra_repr(self) -> str:
        return "\n".join(_line(i, p) for i, p in enumerate(self))


class ParameterDict(Module):
    """A dictionary of parameters that are registered."""

    def __init__(self, parameters: Named[object] | None = None):
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, value: object) -> None:
        if not isinstance(key, str):
            raise TypeError(f"ParameterDict: a key must be a string, got {type(key).__name__}")
        setattr(self, key, _as_parameter(value))
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def keys(self) -> KeysView[str]:
        """The names of the parameters."""
        return self._keys.keys()

    def values(self) -> list[Any]:
        """The parameters."""
        return [self[k] for k in self._keys]

    def items(self) -> list[tuple[str, Any]]:
        """The names and the parameters."""
        return [(k, self[k]) for k in self._keys]

    def update(self, parameters: Named[object]) -> None:
        """Adds the parameters of a dictionary (an unordered one by the order of its keys) or of
        pairs."""
        pairs = _pairs("ParameterDict.update", parameters)
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            pairs = sorted(pairs, key=lambda pair: pair[0])
        for key, value in pairs:
            self[key] = value

    def get(self, key: str, default: object = None) -> Any:
        """The parameter, or the default if there is none."""
        return self[key] if key in self._keys else default

    def setdefault(self, key: str, default: object = None) -> Any:
        """The parameter, which is the default from now on if there was none."""
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str) -> Any:
        """Takes a parameter out and returns it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Takes the last parameter out and returns its key and itself."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def clear(self) -> None:
        """Takes all parameters out."""
        for key in list(self._keys):
            del self[key]

    def copy(self) -> ParameterDict:
        """A dictionary with the same parameters."""
        return ParameterDict(OrderedDict(self.items()))

    def fromkeys(self, keys: Iterable[str], default: object = None) -> ParameterDict:
        """A new dictionary with these keys and one value."""
        return ParameterDict([(key, default) for key in keys])

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __or__(self, other: Named[object]) -> ParameterDict:
        both = self.copy()
        both.update(other)
        return both

    def __ior__(self, other: Named[object]) -> Self:
        self.update(other)
        return self

    def __call__(self, *args: object, **kwargs: object) -> Any:
        raise RuntimeError("ParameterDict should not be called.")

    def extra_repr(self) -> str:
        return "\n".join(_line(k, p) for k, p in self.items())


def _line(name: object, value: object) -> str:
    if not isinstance(value, Tensor):
        return f"  ({name}): Object of type: {type(value).__name__}"
    size = "x".join(str(n) for n in value.shape)
    kind = type(value).__name__
    return f"  ({name}): {kind} containing: [{value.dtype} of size {size}]"
