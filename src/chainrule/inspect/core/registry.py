"""The list of all instruments, from which tests, documentation and the command line are made."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from chainrule.inspect.core.untouched import untouched
from chainrule.nn.module.base import Module

__all__ = ["INSTRUMENTS", "Instrument", "instrument"]

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Instrument:
    """A function that looks: its name, what it is for, the courses' items that it shows, and
    what it needs, in words of its parameters (``model``, ``inputs``, ``targets``, ``loss``)."""

    name: str
    function: Callable[..., Any]
    room: str
    items: tuple[str, ...]
    needs: tuple[str, ...]

    @property
    def purpose(self) -> str:
        """The first sentence of the function's documentation."""
        text = " ".join((self.function.__doc__ or "").split("\n\n")[0].split())
        return text.partition(". ")[0].rstrip(".") + "."


INSTRUMENTS: dict[str, Instrument] = {}


def instrument(
    *items: str, needs: tuple[str, ...] = ("model",), gradients: bool = False
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Puts a function on the list, and has it leave the models that it is given untouched.

    Args:
        items: ids of the courses' items that it shows, such as "V18".
        needs: what it has to be given, of "model", "inputs", "targets" and "loss".
        gradients: whether it looks at the gradients that are there; else it sees none.
    """

    def listed(function: Callable[P, R]) -> Callable[P, R]:
        name, room = function.__name__, function.__module__.rpartition(".")[0].rpartition(".")[2]
        takes_module = function.__annotations__.get("model") == "Module"

        @functools.wraps(function)
        def looking(*args: P.args, **kwargs: P.kwargs) -> R:
            if takes_module:
                _check_model(name, kwargs["model"] if "model" in kwargs else args[0])
            models = [a for a in (*args, *kwargs.values()) if isinstance(a, Module)]
            with untouched(*models, gradients=gradients):
                return function(*args, **kwargs)

        if name in INSTRUMENTS:
            raise ValueError(f"instrument: there are two of the name {name!r}")
        INSTRUMENTS[name] = Instrument(name, looking, room, items, needs)
        return looking

    return listed


def _check_model(name: str, model: object) -> None:
    if isinstance(model, Module):
        return
    if isinstance(model, type) and issubclass(model, Module):
        got, fix = f"the class {model.__name__}", f"make one: {model.__name__}(...)"
    else:
        got, fix = type(model).__name__, "put what it computes into the forward of an nn.Module"
    raise TypeError(f"{name}: model must be an nn.Module, got {got}; {fix}")
