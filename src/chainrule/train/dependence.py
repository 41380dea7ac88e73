"""What a step depends on besides tensors and modules, and whether Python keeps something in it."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from chainrule import nn
from chainrule.compiler.guards import PLAIN, Names, Same
from chainrule.tensor import Tensor

if TYPE_CHECKING:
    from chainrule.train.trainer import Trainer

__all__ = ["Dependence", "modules_of", "python_state"]

FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType)
DEPTH = 3  # of objects in objects in penalties and losses


def modules_of(trainer: Trainer) -> list[nn.Module]:
    """The modules that a step may call."""
    given = [trainer.model, trainer.loss.loss, *trainer.penalties.values()]
    return [m for m in given if isinstance(m, nn.Module)]


class Dependence:
    """Some settings, and the numbers in the user's own functions and objects.

    Args:
        modules: that a step may call.
        called: the loss and the penalties.
        settings: gives what else it depends on.
    """

    def __init__(
        self, modules: Sequence[nn.Module], called: Sequence[Any], settings: Callable[[], list[Any]]
    ):
        self.settings = settings
        self._objects = [c for c in called if not isinstance(c, (*FUNCTIONS, nn.Module))]
        kinds = {type(m) for root in modules for m in root.modules()}
        code: list[Any] = [kind.forward for kind in kinds]
        code += [c if isinstance(c, FUNCTIONS) else type(c).__call__ for c in called]
        self._names = [Names(f) for f in code if not _is_own(f)]
        self.before = self.now()

    @classmethod
    def of(cls, t: Trainer) -> Dependence:
        """What the steps of a trainer depend on."""

        def settings() -> list[Any]:
            own = [t.clip_norm, t.clip_value, t.accumulate, t.model, t.loss, t.optimizer]
            return [*own, *t.penalties.values(), *t.metrics]

        return cls(modules_of(t), [t.loss.loss, *t.penalties.values()], settings)

    def now(self) -> list[Any]:
        """All of it, as it is."""
        found = self.settings()
        for value in self._objects:
            found += _plain_in(value, DEPTH)
        for names in self._names:
            found += names.values()
        return found

    def changed(self) -> bool:
        """Whether it is another than when this was asked last."""
        before, self.before = self.before, self.now()
        pairs = zip(before, self.before, strict=False)
        return len(before) != len(self.before) or any([not _is_same(a, b) for a, b in pairs])


def _is_same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    return a.__class__ is b.__class__ and isinstance(a, (*PLAIN, Same)) and bool(a == b)


def _is_own(function: Callable[..., Any]) -> bool:
    return (getattr(function, "__module__", None) or "").split(".")[0] == "chainrule"


def _plain_in(value: Any, depth: int) -> Iterator[Any]:
    """Numbers and text in an object, and in the objects that it holds."""
    if isinstance(value, PLAIN):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _plain_in(part, depth)
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _plain_in(part, depth)
    elif depth and hasattr(value, "__dict__") and not isinstance(value, (nn.Module, Tensor, type)):
        for part in vars(value).values():
            yield from _plain_in(part, depth - 1)


def python_state(watched: Sequence[Any]) -> list[Any]:
    """What modules hold besides parameters: a step that changes it cannot be repeated."""
    found: list[Any] = []
    for root in watched:
        for m in root.modules() if isinstance(root, nn.Module) else ():
            for name, value in vars(m).items():
                if isinstance(value, (list, dict, set)):
                    found.append((name, id(value), len(value)))
                else:
                    found.append((name, value if isinstance(value, PLAIN) else id(value)))
    return found
