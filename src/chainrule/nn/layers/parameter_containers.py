"""Modules that hold parameters."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, KeysView, Mapping
from typing import Any, Self

from chainrule.nn.layers.containers import Named, check_iterable, pairs_of, position_of
from chainrule.nn.module.base import Module
from chainrule.nn.parameter import Parameter
from chainrule.tensor import Tensor

__all__ = ["ParameterDict", "ParameterList"]


def _as_parameter(value: object) -> object:
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


class ParameterList(Module):
    """A list of parameters: those in it are among the parameters of the module that has the list.

    Args:
        values: what it holds at first; a plain tensor becomes a parameter.

    >>> from chainrule import nn, ones
    >>> [name for name, _ in nn.ParameterList([ones(2), ones(3)]).named_parameters()]
    ['0', '1']
    """

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
        return getattr(self, str(position_of(index, self._size, "ParameterList")))

    def __setitem__(self, index: int, value: object) -> None:
        setattr(self, str(position_of(index, self._size, "ParameterList")), _as_parameter(value))

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(self._size))

    def append(self, value: object) -> Self:
        """Adds a parameter at the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[object]) -> Self:
        """Adds parameters at the end."""
        check_iterable("ParameterList.extend", values)
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
    """A dictionary of parameters: those in it are among the parameters of the module that has it.

    Args:
        parameters: what it holds at first, a dictionary or pairs; a plain tensor becomes a
            parameter.

    >>> from chainrule import nn, ones
    >>> [name for name, _ in nn.ParameterDict({"left": ones(2)}).named_parameters()]
    ['left']
    """

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
        pairs = pairs_of("ParameterDict.update", parameters)
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
