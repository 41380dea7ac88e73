"""Modules as data: the class by name, the arguments it was made with, and nothing to execute."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from chainrule import nn
from chainrule.autograd.modes import no_grad
from chainrule.nn.utils.parametrize import is_parametrized
from chainrule.ops.core.arguments import AllocationLimit

__all__ = ["Describer", "Rebuilder"]

# Where classes and functions that a file may name are looked up, by the first part of the name.
ROOMS = {
    "nn.functional": "chainrule.nn.functional",
    "nn": "chainrule.nn",
    "models": "chainrule.models",
    "data": "chainrule.data",
    "regularize": "chainrule.regularize",
    "chainrule": "chainrule",
    "einops": "chainrule.interop.einops_layers",
}
OPTIONAL = ("einops",)  # imported only for what is at home there
HOMES = tuple(
    f"chainrule.{room}." for room in ("ops", "nn", "models", "data", "regularize", "interop")
)
UNSAVED = 2**26  # elements: a mask of 8192 by 8192
CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)
Encode = Callable[[Any, str], Any]


def _public_name(thing: Any) -> str | None:
    """The name under which a class or function of chainrule is public: "nn.Linear"."""
    name = getattr(thing, "__name__", "")
    if not getattr(thing, "__module__", "").startswith("chainrule."):
        return None
    for room, module in ROOMS.items():
        if room in OPTIONAL and thing.__module__ != module:
            continue
        try:
            home = importlib.import_module(module)
        except ModuleNotFoundError:
            continue
        if name in home.__all__ and getattr(home, name, None) is thing:
            return f"{room}.{name}"
    return None


class Describer:
    """Describes modules as JSON; ``encode(value, path)`` describes what is in their arguments."""

    def __init__(self, encode: Encode):
        self.encode = encode
        self.seen: dict[int, tuple[int, nn.Module]] = {}  # the module is kept, so its id is

    def describe(self, module: nn.Module, path: str, with_state: bool = True) -> dict[str, Any]:
        """The class, its arguments (or children), its state, what is frozen and what is shared."""
        if id(module) in self.seen:
            return {"same": self.seen[id(module)][0]}
        self.seen[id(module)] = (len(self.seen), module)
        if is_parametrized(module):
            raise ValueError(
                f"save: {path or type(module).__name__} has parametrizations; remove them with "
                "nn.utils.parametrize.remove_parametrizations, or save model.state_dict() instead"
            )
        name = _public_name(type(module)) or f"user.{type(module).__qualname__}"
        told: dict[str, Any] = {"class": name}
        if type(module) in CONTAINERS:
            told["children"] = [
                [name, None if child is None else self.describe(child, f"{path}.{name}", False)]
                for name, child in module._modules.items()
            ]
        else:
            args, kwargs = module._init_args
            told["args"] = [self._argument(a, path) for a in args]
            told["kwargs"] = {k: self._argument(v, path) for k, v in kwargs.items()}
        if with_state:
            told |= self._state(module, path)
        return told

    def _argument(self, value: Any, path: str) -> Any:
        if isinstance(value, nn.Module):
            return {"module": self.describe(value, path, False)}
        if isinstance(value, (type,)) or (callable(value) and hasattr(value, "__name__")):
            name = _public_name(value)
            if name is None:
                raise ValueError(
                    f"save: the model was made with {value!r}, which a file cannot hold: only "
                    "functions and classes of chainrule can be named in it. Save "
                    "model.state_dict() instead, or write the function as a Module and pass it to "
                    "load(..., classes=[...])"
                )
            return {"named": name}
        return self.encode(value, path)

    def _state(self, module: nn.Module, path: str) -> dict[str, Any]:
        state = module.state_dict()
        modes = {name: m.training for name, m in module.named_modules()}
        odd = [name for name, training in modes.items() if training != module.training]
        return {
            "training": module.training,
            "other_mode": odd,
            "frozen": [n for n, p in module.named_parameters() if not p.requires_grad],
            "shared": _shared(module),
            "state": [[k, self.encode(v, f"{path}.{k}")] for k, v in state.items()],
        }


def _shared(module: nn.Module) -> list[list[str]]:
    """The names of each parameter that has several."""
    names: dict[int, list[str]] = {}
    for name, p in module.named_parameters(remove_duplicate=False):
        names.setdefault(id(p), []).append(name)
    return [group for group in names.values() if len(group) > 1]


class Rebuilder:
    """Makes modules from their descriptions; ``decode(told)`` gives the other values."""

    def __init__(
        self,
        decode: Callable[[Any], Any],
        classes: Iterable[type],
        elements: int,
        tensors: int,
        where: str,
    ):
        self.decode, self.where = decode, where
        self.classes = {c.__qualname__: c for c in classes}
        # With room for what a module makes and does not keep in its state: masks, positions.
        self.limit = AllocationLimit(4 * elements + UNSAVED, 8 * tensors + 20_000)
        self.made: list[Any] = []

    def rebuild(self, told: Mapping[str, Any]) -> nn.Module:
        """The module that was described, with its state."""
        try:
            with self.limit:
                module = self._make(told)
        except MemoryError:
            raise ValueError(
                f"load: {self.where} describes a model that is larger than the weights it holds; "
                "the file is damaged or was made to exhaust the memory"
            ) from None
        except Exception as error:  # of a constructor that is given anything at all
            raise ValueError(
                f"load: the model described in {self.where} cannot be made: {_said(error)}"
            ) from error
        self._restore(module, told)
        return module

    def _make(self, told: Mapping[str, Any]) -> Any:
        if "same" in told:
            return self.made[told["same"]]
        number = len(self.made)
        self.made.append(None)
        cls = self._class(told["class"])
        if "children" in told:
            module = cls()
            for name, child in told["children"]:
                module.add_module(name, None if child is None else self._make(child))
        else:
            args = [self._argument(a) for a in told["args"]]
            kwargs = {k: self._argument(v) for k, v in told["kwargs"].items()}
            module = cls(*args, **kwargs)
        self.made[number] = module
        return module

    def _argument(self, told: Any) -> Any:
        if isinstance(told, dict) and "module" in told:
            return self._make(told["module"])
        if isinstance(told, dict) and "named" in told:
            return self._named(told["named"])
        return self.decode(told)

    def _class(self, name: str) -> Any:
        if name.startswith("user."):
            wanted = name.removeprefix("user.")
            if wanted not in self.classes:
                raise ValueError(
                    f"it uses the class {wanted!r}, which is not chainrule's; pass it: "
                    f"load(..., classes=[{wanted}])"
                )
            return self.classes[wanted]
        found = self._named(name)
        if not (isinstance(found, type) and issubclass(found, nn.Module)):
            raise ValueError(f"{name!r} is not a class of modules")
        return found

    def _named(self, name: Any) -> Any:
        room, _, thing = str(name).rpartition(".")
        if room not in ROOMS:
            raise ValueError(f"there is no {name!r} in chainrule")
        home = importlib.import_module(ROOMS[room])
        if thing not in home.__all__:
            raise ValueError(f"there is no {name!r} in chainrule; was it saved by a later version?")
        found = getattr(home, thing)
        if not callable(found) or not str(getattr(found, "__module__", "")).startswith(HOMES):
            raise ValueError(f"{name!r} is neither a module nor a function of tensors")
        return found

    def _restore(self, module: nn.Module, told: Mapping[str, Any]) -> None:
        try:
            state = {key: self.decode(value) for key, value in told["state"]}
            with no_grad():
                module.load_state_dict(state, assign=True)
            for group in told["shared"]:
                first = module.get_parameter(group[0])
                for name in group[1:]:
                    owner, _, own = name.rpartition(".")
                    module.get_submodule(owner)._parameters[own] = first
            for name in told["frozen"]:
                module.get_parameter(name).requires_grad_(False)
            module.train(bool(told["training"]))
            for name in told["other_mode"]:
                module.get_submodule(name).training = not told["training"]
        except Exception as error:
            raise ValueError(
                f"load: the state in {self.where} does not fit: {_said(error)}"
            ) from error


def _said(error: Exception) -> str:
    """The message of an error, which of a missing key is nothing but the key."""
    return f"{type(error).__name__}: {error}" if isinstance(error, LookupError) else str(error)
