"""Containers give the same facts in both libraries."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
from parity.stories import Stories, Story, check, outcome


program = Stories()


@program
def sequential(lib: Any) -> Any:
    nn = lib.nn

    def fresh() -> Any:
        return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2), nn.Sigmoid())

    def attempt(change: Callable[[Any], Any]) -> Any:
        s = fresh()
        result = outcome(lambda: repr(change(s)))
        return result, repr(s), list(s.state_dict())

    return [
        attempt(f)
        for f in (
            lambda s: s[0],
            lambda s: s[-1],
            lambda s: s[1:3],
            lambda s: s[::-1],
            lambda s: s[9],
            lambda s: s.__setitem__(1, nn.ReLU()),
            lambda s: s.__setitem__(9, nn.ReLU()),
            lambda s: s.__delitem__(0),
            lambda s: s.__delitem__(slice(1, 3)),
            lambda s: s.pop(1),
            lambda s: s.append(nn.ReLU()),
            lambda s: s.insert(1, nn.ReLU()),
            lambda s: s.pop(-1),
            lambda s: s.insert(9, nn.ReLU()),
            lambda s: s.insert(-1, nn.ReLU()),
            lambda s: s.append(3),
            lambda s: s.extend([nn.ReLU(), nn.Tanh()]),
            lambda s: s + fresh(),
            lambda s: s.__add__([1]),
            lambda s: s.__iadd__(fresh()),
            lambda s: s * 2,
            lambda s: 2 * s,
            lambda s: s * 0,
            lambda s: s * 1.5,
            lambda s: s.__imul__(2),
            lambda s: len(s),
            lambda s: s.add_module("2", s[0]),
            lambda s: [type(m).__name__ for m in s],
            lambda s: nn.Sequential(OrderedDict(a=s, b=s)),
        )
    ]


@program
def module_list(lib: Any) -> Any:
    nn = lib.nn

    def attempt(change: Callable[[Any], Any]) -> Any:
        m = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 2)])
        result = outcome(lambda: repr(change(m)))
        return result, repr(m), list(m.state_dict())

    return [
        attempt(f)
        for f in (
            lambda m: m[0],
            lambda m: m[-1],
            lambda m: m[1:],
            lambda m: m[4],
            lambda m: m.pop(0),
            lambda m: m.append(nn.Tanh()),
            lambda m: m.extend([nn.Tanh()]),
            lambda m: m.extend(3),
            lambda m: m.__delitem__(1),
            lambda m: m.__delitem__(slice(0, 2)),
            lambda m: m.__add__([nn.Tanh()]),
            lambda m: m.__iadd__([nn.Tanh()]),
            lambda m: m.__setitem__(2, nn.Linear(2, 2)),
            lambda m: m(1),
            lambda m: len(m),
            lambda m: m.append(3),
            lambda m: nn.ModuleList(),
            lambda m: nn.ModuleList([nn.ModuleList(m), nn.ModuleList(m)]),
        )
    ]


@program
def module_dict(lib: Any) -> Any:
    nn = lib.nn

    def attempt(change: Callable[[Any], Any]) -> Any:
        m = nn.ModuleDict({"b": nn.Linear(2, 2), "a": nn.Tanh()})
        result = outcome(lambda: repr(change(m)))
        return result, repr(m), list(m)

    return [
        attempt(f)
        for f in (
            lambda m: m["a"],
            lambda m: m["c"],
            lambda m: m.pop("b"),
            lambda m: m.pop("c"),
            lambda m: m.update({"c": nn.Tanh(), "a": nn.ReLU()}),
            lambda m: m.update([("c",)]),
            lambda m: m.update(3),
            lambda m: m.update([3]),
            lambda m: m.update([["c", nn.Tanh()]]),
            lambda m: m.clear(),
            lambda m: m.__delitem__("a"),
            lambda m: "a" in m,
            lambda m: len(m),
            lambda m: list(m.keys()),
            lambda m: list(m.values()),
            lambda m: list(m.items()),
            lambda m: m.__setitem__("keys", nn.Tanh()),
            lambda m: m.__setitem__("a.b", nn.Tanh()),
            lambda m: m.__setitem__("c", 3),
            lambda m: m(1),
            lambda m: m.update(nn.ModuleDict(m)),
        )
    ]


@program
def parameter_list(lib: Any) -> Any:
    nn = lib.nn

    def attempt(change: Callable[[Any], Any]) -> Any:
        p = nn.ParameterList([lib.zeros(2), nn.Parameter(lib.ones(2, 3))])
        result = outcome(lambda: str(change(p)).replace("chainrule.", "torch."))
        return result, repr(p).replace("chainrule.", "torch."), list(p.state_dict())

    return [
        attempt(f)
        for f in (
            lambda p: p,
            lambda p: p[-1].shape,
            lambda p: p[2],
            lambda p: p[1:],
            lambda p: len(p),
            lambda p: p.append(lib.zeros(3)),
            lambda p: p.extend([lib.zeros(3), "text"]),
            lambda p: p.extend(lib.zeros(3)),
            lambda p: p.extend(3),
            lambda p: p(1),
            lambda p: p.__iadd__([lib.zeros(1)]),
            lambda p: p.__setitem__(0, lib.ones(5)),
            lambda p: p.__setitem__(7, lib.ones(5)),
            lambda p: [q.requires_grad for q in p],
            lambda p: nn.ParameterList(),
            lambda p: nn.ParameterList([lib.zeros(4)]),
        )
    ]


@program
def parameter_dict(lib: Any) -> Any:
    nn = lib.nn

    def attempt(change: Callable[[Any], Any]) -> Any:
        p = nn.ParameterDict({"b": lib.zeros(2), "a": nn.Parameter(lib.ones(2, 3))})
        result = outcome(lambda: str(change(p)).replace("chainrule.", "torch."))
        return result, list(p), list(p.state_dict())

    return [
        attempt(f)
        for f in (
            lambda p: p["a"].shape,
            lambda p: p.pop("a").shape,
            lambda p: p.popitem()[0],
            lambda p: p.get("c", 3),
            lambda p: p.get("a").shape,
            lambda p: p.setdefault("c", 4),
            lambda p: p.setdefault("a", 4).shape,
            lambda p: p.clear(),
            lambda p: list(p.copy()),
            lambda p: p.update({"z": lib.zeros(1), "c": lib.zeros(1)}),
            lambda p: p.update(3),
            lambda p: p.update(OrderedDict(z=lib.zeros(1), c=lib.zeros(1))),
            lambda p: p.update([3]),
            lambda p: p.update([("z", lib.zeros(1)), ("c", 5)]),
            lambda p: p.update([(1, 2, 3)]),
            lambda p: list(p | nn.ParameterDict({"c": lib.zeros(1)})),
            lambda p: list(reversed(p)),
            lambda p: list(p.fromkeys(["x", "y"], lib.zeros(1))),
            lambda p: len(p),
            lambda p: p(1),
            lambda p: [k for k, _ in p.items()],
            lambda p: len(list(p.values())),
            lambda p: p.__delitem__("a"),
            lambda p: p.__setitem__("b", "text"),
            lambda p: "b" in p,
            lambda p: p.__ior__({"q": lib.zeros(1)}) is p,
        )
    ]


@pytest.mark.parametrize("story", program, ids=lambda p: p.__name__)
def test_program(story: Story) -> None:
    check(story)
