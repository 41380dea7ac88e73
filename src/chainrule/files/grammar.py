"""What a description may look like: checked once, before anything is made from it.

A value is null, true, 7, 0.5, "text", [value, ...], {"dict": [[key, value], ...]},
{"tuple": [value, ...]}, {"tensor": name, ...}, {"sparse": {...}}, {"float": "nan"},
{"dtype": "float32"}, {"device": "cpu"}, {"module": module} or {"object": {"kind": name, "parts":
[[name, value], ...]}}. A module is {"same": number}, one
that was told before, or {"class": name} with its children, [[name, module], ...], or its args and
kwargs, which are values, modules or {"named": function}; with it come its state, [[name, value],
...], and what of it is training, frozen and shared.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from typing import Any

__all__ = ["Misfit", "check_value"]


class Misfit(ValueError):
    """A part of a description that is not as the grammar says."""


def _fail(place: str, expected: str, got: Any) -> Misfit:
    # The whole text of what may be huge would take longer than to refuse it.
    return Misfit(f"{place}: expected {expected}, got {reprlib.repr(got):.60}")


def check_value(told: Any, place: str = "value") -> None:
    """Raises :class:`Misfit`, which names the place, where a value is not as it can be read."""
    if told is None or isinstance(told, (bool, int, float, str)):
        return
    if isinstance(told, list):
        for i, part in enumerate(told):
            check_value(part, f"{place}[{i}]")
        return
    kind = next(iter(told), None)
    if kind not in _KINDS:
        raise Misfit(f"{place} is a value of an unknown kind, {kind!r}, not {', '.join(_KINDS)}")
    if kind == "tensor":
        _check_tensor(told, place)
    else:
        _KINDS[kind](told[kind], place if kind in ("dict", "tuple") else f"{place}.{kind}")


def _list(told: Any, place: str) -> list[Any]:
    if not isinstance(told, list):
        raise _fail(place, "a list", told)
    return told


def _text(told: Any, place: str) -> None:
    if not isinstance(told, str):
        raise _fail(place, "a name", told)


def _names(told: Any, place: str) -> None:
    for i, name in enumerate(_list(told, place)):
        _text(name, f"{place}[{i}]")


def _tuple(told: Any, place: str) -> None:
    check_value(_list(told, place), place)


def _pairs(told: Any, place: str) -> list[Any]:
    """A list of pairs, whose first parts are keys."""
    for i, pair in enumerate(_list(told, place)):
        if not isinstance(pair, list) or len(pair) != 2 or isinstance(pair[0], (list, dict)):
            raise _fail(f"{place}[{i}]", "a key and a value", pair)
    return told


def _dict(told: Any, place: str) -> None:
    for key, value in _pairs(told, place):
        check_value(value, f"{place}.{key}")


def _named_pairs(told: Any, place: str) -> list[Any]:
    for key, _ in _pairs(told, place):
        _text(key, place)
    return told


def _check_tensor(told: dict[str, Any], place: str) -> None:
    _text(told["tensor"], f"{place}.tensor")
    for key in ("complex", "parameter", "requires_grad"):
        if not isinstance(told.get(key, False), bool):
            raise _fail(f"{place}.{key}", "true or false", told[key])


def _sparse(told: Any, place: str) -> None:
    parts = ("starts", "columns") if isinstance(told, dict) and "starts" in told else ("indices",)
    for key in ("values", "shape", "is_coalesced", *parts):
        if not isinstance(told, dict) or key not in told:
            raise _fail(place, f"a sparse tensor with its {key}", told)
    for key in ("values", *parts):
        if not isinstance(told[key], dict) or "tensor" not in told[key]:
            raise _fail(f"{place}.{key}", "a tensor", told[key])
        _check_tensor(told[key], f"{place}.{key}")
    if not all([type(n) is int for n in _list(told["shape"], f"{place}.shape")]):
        raise _fail(f"{place}.shape", "whole numbers", told["shape"])


def _object(told: Any, place: str) -> None:
    for key in ("kind", "parts"):
        if not isinstance(told, dict) or key not in told:
            raise _fail(place, f"an object with its {key}", told)
    _text(told["kind"], f"{place}.kind")
    for key, value in _named_pairs(told["parts"], f"{place}.parts"):
        check_value(value, f"{place}.{key}")


def _number(told: Any, place: str) -> None:
    if told not in ("nan", "inf", "-inf"):
        raise _fail(place, "nan, inf or -inf", told)


def _check_module(told: Any, place: str) -> None:
    """A module at the root of its kind: with its state, if it is not one that was told before."""
    _inner_module(told, place)
    if "same" in told:
        return
    for key in ("state", "shared", "frozen", "training", "other_mode"):
        if key not in told:
            raise _fail(place, f"a module with its {key}", list(told))
    for key, value in _named_pairs(told["state"], f"{place}.state"):
        check_value(value, f"{place}.state.{key}")
    for i, group in enumerate(_list(told["shared"], f"{place}.shared")):
        _names(group, f"{place}.shared[{i}]")
        if not group:
            raise _fail(f"{place}.shared[{i}]", "names", group)
    for key in ("frozen", "other_mode"):
        _names(told[key], f"{place}.{key}")
    if not isinstance(told["training"], bool):
        raise _fail(f"{place}.training", "true or false", told["training"])


def _inner_module(told: Any, place: str) -> None:
    if not isinstance(told, dict) or not ("same" in told or "class" in told):
        raise _fail(place, "a module", told)
    if "same" in told:
        if type(told["same"]) is not int or told["same"] < 0:
            raise _fail(f"{place}.same", "the number of a module", told["same"])
        return
    _text(told["class"], f"{place}.class")
    if "children" in told:
        for name, child in _named_pairs(told["children"], f"{place}.children"):
            if child is not None:
                _inner_module(child, f"{place}.{name}")
        return
    if not isinstance(told.get("args"), list) or not isinstance(told.get("kwargs"), dict):
        raise _fail(place, "a module with its args and kwargs", list(told))
    for i, value in enumerate(told["args"]):
        _argument(value, f"{place}.args[{i}]")
    for key, value in told["kwargs"].items():
        _argument(value, f"{place}.{key}")


def _argument(told: Any, place: str) -> None:
    if isinstance(told, dict) and "module" in told:
        _inner_module(told["module"], place)
    elif isinstance(told, dict) and "named" in told:
        _text(told["named"], place)
    else:
        check_value(told, place)


_KINDS: dict[str, Callable[[Any, str], object]] = {
    "tensor": _text,
    "sparse": _sparse,
    "module": _check_module,
    "object": _object,
    "dict": _dict,
    "tuple": _tuple,
    "float": _number,
    "dtype": _text,
    "device": _text,
}
