"""Modules that hold other modules."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import Any, Self, TypeAlias, TypeVar, overload

from chainrule.nn.layers.activated import ACTIVATED
from chainrule.nn.module.base import Module
from chainrule.tensor import Tensor

__all__ = ["ModuleDict", "ModuleList", "Sequential"]

T = TypeVar("T")
Named: TypeAlias = Mapping[str, T] | Iterable[tuple[str, T]]  # a dictionary, or pairs


def position_of(index: int, length: int, what: str) -> int:
    """An index into so many entries, counted from the front."""
    if not -length <= index < length:
        raise IndexError(f"{what}: index {index} is out of range for {length} entries")
    return index % length


def check_iterable(method: str, values: object) -> None:
    """Refuses what cannot be gone through, and a tensor, which is one value."""
    if not isinstance(values, Iterable) or isinstance(values, Tensor):
        raise TypeError(
            f"{method} should be called with an iterable, but got {type(values).__name__}"
        )


def pairs_of(method: str, given: Named[T]) -> list[tuple[str, T]]:
    """The keys and values of a dictionary or of pairs."""
    if hasattr(given, "items"):
        return list(given.items())
    check_iterable(method, given)
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
        return self._modules[keys[position_of(index, len(keys), type(self).__name__)]]

    def __setitem__(self, index: int, module: Module) -> None:
        keys = list(self._modules)
        setattr(self, keys[position_of(index, len(keys), type(self).__name__)], module)

    def __delitem__(self, index: int | slice) -> None:
        keys = list(self._modules)
        chosen = index if isinstance(index, slice) else position_of(index, len(keys), "del")
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
        check_iterable(f"{type(self).__name__}.extend", modules)
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
    """Modules one after the other: y = module_n(... module_2(module_1(x))).

    Shape: that of the modules, each of which takes what the one before it gives.

    Args:
        modules: the modules, or a dictionary of them by name.

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
        layer = None  # one that waits for its activation
        for module in self._modules.values():
            if layer is not None:
                out = ACTIVATED[layer.__class__](layer, module, input)
                if out is not None:
                    input, layer = out, None
                    continue
                input, layer = layer(input), None
            if module.__class__ in ACTIVATED:
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
    """A list of modules: those in it are among the children of the module that has the list.

    Args:
        modules: what it holds at first.

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
    """A dictionary of modules: those in it are among the children of the module that has it.

    Args:
        modules: what it holds at first, a dictionary or pairs.

    >>> from chainrule import nn
    >>> nn.ModuleDict({"hidden": nn.Linear(2, 3), "act": nn.Tanh()})["act"]
    Tanh()
    """

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
        for key, module in pairs_of("ModuleDict.update", modules):
            self[key] = module
