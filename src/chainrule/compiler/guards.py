"""What a program depends on besides its inputs, and whether any of it has changed."""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from chainrule import backend, nn
from chainrule.backend import dtypes
from chainrule.backend.placed import Placed
from chainrule.compiler.program import Program
from chainrule.graph import mode
from chainrule.nn.module.hooks import changes
from chainrule.optim import Optimizer
from chainrule.tensor import Tensor

__all__ = ["PLAIN", "Guards", "Names", "Same", "form_of", "owned_by", "tensors_in"]

PLAIN = (bool, int, float, complex, str, bytes, type(None))
LEVELS = 4  # of lists and dictionaries inside each other that are looked into


def tensors_in(tree: Any) -> Iterator[Tensor]:
    """The tensors in nested lists, tuples and dictionaries, in order."""
    if isinstance(tree, Tensor):
        yield tree
    elif isinstance(tree, (list, tuple)):
        for part in tree:
            yield from tensors_in(part)
    elif isinstance(tree, dict):
        for part in tree.values():
            yield from tensors_in(part)


def form_of(tree: Any) -> Any:
    """What of the arguments has to be the same: shapes and types of tensors, all other values."""
    if isinstance(tree, Tensor):
        a = tree.array
        if a.__class__ is Placed:
            return (*a.form(), tree.needs_grad)
        strides = None if a.flags.c_contiguous else a.strides
        return (a.shape, strides, a.dtype, tree.needs_grad)
    if isinstance(tree, (list, tuple)):
        return (tree.__class__, *[form_of(part) for part in tree])
    if isinstance(tree, dict):
        return (tree.__class__, *[(key, form_of(part)) for key, part in tree.items()])
    return (tree.__class__, tree) if isinstance(tree, PLAIN) else Same(tree)


class Same:
    """An object that is the same if it is this very one."""

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


class Guards:
    """The surroundings in which a program was recorded."""

    def __init__(self, function: Callable[..., Any], program: Program, arguments: Any):
        self.names = Names(function, _others(arguments))
        self.flags = (mode.flags, backend.current(), dtypes.get_default_dtype())
        self.values = self.names.values()
        self.modules = _all_below([*self.names.modules(), *program.modules])
        self.settings = _settings(self.modules)
        self.containers = [*self.names.containers(), *_containers_of(self.modules)]
        self.contents = [_told(c) for c in self.containers]
        self.changes = changes.count
        self.state = [
            (ref, slot.value, t is not None and t.needs_grad)
            for slot in program.slots
            if slot.kind == "state"
            for ref, t in [(ref, ref()) for ref in slot.holders]
        ]
        self.without_grads = program.without_grads
        self.updates = program.updates
        self.groups = [(o, [*o.param_groups]) for o in program.optimizers]

    def _still_held(self, value: Any) -> bool:
        """Whether a tensor holds an array of the state; those that are gone were passing by."""
        self.state = [held for held in self.state if held[0]() is not None]
        return any([array is value for _, array, _ in self.state])

    def changed(self) -> str:
        """What has changed, in words; "" if nothing has."""
        if (mode.flags, backend.current(), dtypes.get_default_dtype()) != self.flags:
            return "the mode of gradients, the kernels or the default dtype"
        for ref, value, needs_grad in self.state:
            t = ref()
            if t is None and self._still_held(value):
                continue
            if t is None or t.array is not value:
                return "a tensor that the step uses was replaced"
            if t.needs_grad is not needs_grad:
                return "a tensor that the step uses was frozen, or asks for a gradient now"
        if any([leaf._grad is not None for leaf in self.without_grads]):
            return "there is a gradient that the step would add to"
        for optimizer, groups in self.groups:
            if not _same(optimizer.param_groups, groups):
                return "the groups of an optimizer"
        if not all([u.is_current() for u in self.updates]):
            return "the states of an optimizer were replaced"
        if changes.count != self.changes:
            if _settings(self.modules) != self.settings:
                return "a module was changed: its mode, a setting or its hooks"
            self.changes = changes.count
        if not _alike(self.names.values(), self.values):
            return "a number or text that the step names"
        if [_told(c) for c in self.containers] != self.contents:
            return "what a list or dictionary holds that the step uses"
        return ""


def _same(now: Sequence[Any], before: Sequence[Any]) -> bool:
    """Whether a list holds the very same objects."""
    return len(now) == len(before) and all(map(operator.is_, now, before))


def _alike(now: Sequence[Any], before: Sequence[Any]) -> bool:
    """Whether values are the same: plain ones are equal, others the very same objects."""
    if len(now) != len(before):
        return False
    for a, b in zip(now, before, strict=True):
        if a is not b and not (isinstance(a, PLAIN) and isinstance(b, PLAIN) and a == b):
            return False
    return True


def _told(value: Any, levels: int = LEVELS) -> Any:
    """Plain values as they are, lists and dictionaries by what they hold, all else by identity."""
    if isinstance(value, PLAIN):
        return value
    if levels and isinstance(value, (list, tuple)):
        return (value.__class__, *[_told(part, levels - 1) for part in value])
    if levels and isinstance(value, dict):
        return (value.__class__, *[(k, _told(part, levels - 1)) for k, part in value.items()])
    return Same(value)


def _containers_in(value: Any, levels: int = LEVELS) -> Iterator[Any]:
    """The lists and dictionaries in a value, itself included: what can change in place."""
    if not levels or not isinstance(value, (list, tuple, dict)):
        return
    if not isinstance(value, tuple):
        yield value
    for part in value.values() if isinstance(value, dict) else value:
        yield from _containers_in(part, levels - 1)


def _containers_of(modules: list[nn.Module]) -> Iterator[Any]:
    """Those among the attributes of modules; what all modules have has guards of its own."""
    common = vars(nn.Module()).keys()
    for m in modules:
        for name, value in vars(m).items():
            if name not in common:
                yield from _containers_in(value)


def _settings(modules: list[nn.Module]) -> list[Any]:
    """What modules hold: settings as they are, tensors and modules by identity."""
    found: list[Any] = []
    for m in modules:
        found.append(Same(m))
        for name, value in vars(m).items():
            if isinstance(value, PLAIN):
                found.append((name, value))
            elif name in ("_parameters", "_buffers", "_modules"):
                found += [(key, Same(part)) for key, part in value.items()]
            elif name.endswith("_hooks") and value:
                found.append((name, tuple(value)))
            elif isinstance(value, tuple):
                found.append((name, repr(value)))
    return found


class Names:
    """What the code of a function names outside of itself: closures, globals, its object."""

    def __init__(self, function: Callable[..., Any], arguments: Sequence[Any] = ()):
        self.arguments = arguments
        self.owner = getattr(function, "__self__", None)
        inner = getattr(function, "__func__", function)
        self.code = getattr(inner, "__code__", None)
        self.closure = getattr(inner, "__closure__", None) or ()
        self.globals = getattr(inner, "__globals__", {})
        names = self.code.co_names if self.code is not None else ()
        self.used = [n for n in names if n in self.globals and _matters(self.globals[n])]

    def _objects(self) -> list[Any]:
        try:
            found = [cell.cell_contents for cell in self.closure]
        except ValueError:
            found = [_held(cell) for cell in self.closure]
        found += [self.globals.get(name) for name in self.used]
        found += self.arguments
        if self.owner is not None:
            found.append(self.owner)
        return found

    def dicts(self) -> list[dict[str, Any]]:
        """The attributes of the objects, but not of those that have guards of their own."""
        return [vars(v) for v in self._objects() if _has_attributes(v)]

    def containers(self) -> Iterator[Any]:
        """The lists and dictionaries among the objects and their attributes."""
        for value in self._objects():
            yield from _containers_in(value)
        for attributes in self.dicts():
            for value in attributes.values():
                yield from _containers_in(value)

    def values(self) -> list[Any]:
        """The objects, and their attributes."""
        objects = self._objects()
        for value in objects[:]:
            if _has_attributes(value):
                objects += vars(value).values()
        return objects

    def modules(self) -> Iterator[nn.Module]:
        """The modules among them."""
        for value in self._objects():
            yield from _modules_in(value)
        for attributes in self.dicts():
            for value in attributes.values():
                yield from _modules_in(value)


def _held(cell: Any) -> Any:
    """What a cell of a closure holds; None if it is not filled yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _others(tree: Any) -> list[Any]:
    """The arguments that are no tensors and no plain values."""
    if isinstance(tree, (list, tuple)):
        return [found for part in tree for found in _others(part)]
    if isinstance(tree, dict):
        return [found for part in tree.values() for found in _others(part)]
    return [] if isinstance(tree, (Tensor, *PLAIN)) else [tree]


def _has_attributes(value: Any) -> bool:
    """Whether it is an object of a user's class: the library's own have guards of their own."""
    kind: Any = type(value)
    return _of_user(kind) and hasattr(value, "__dict__")


@functools.lru_cache(1024)
def _of_user(kind: Any) -> bool:
    known = (nn.Module, Optimizer, Tensor, type, types.FunctionType, types.ModuleType)
    return not issubclass(kind, known) and kind.__module__.partition(".")[0] != _LIBRARY


_LIBRARY = __name__.partition(".")[0]


def _all_below(modules: list[nn.Module]) -> list[nn.Module]:
    """The modules with those inside them, each once."""
    return list({id(m): m for root in modules for m in root.modules()}.values())


def owned_by(function: Callable[..., Any]) -> Iterator[Tensor]:
    """Tensors among what the code of a function names, and those of its modules."""
    names = Names(function)
    for value in names._objects():
        yield from tensors_in(value)
    for m in _all_below([*names.modules()]):
        for part in vars(m).values():
            yield from tensors_in(part)


def _matters(value: Any) -> bool:
    return not isinstance(value, (types.ModuleType, type, types.BuiltinFunctionType))


def _modules_in(value: Any) -> Iterator[nn.Module]:
    if isinstance(value, nn.Module):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _modules_in(part)
    elif isinstance(value, dict):
        for part in value.values():
            yield from _modules_in(part)
