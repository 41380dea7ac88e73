"""What editors and type checkers see of Tensor's methods is what there is."""

from __future__ import annotations

import ast
import inspect

import stub

import chainrule
from chainrule.ops.absent_methods import Absent


def test_the_file_is_current() -> None:
    assert stub.PATH.read_text("utf-8") == stub.text(), "run make stub"


def declared() -> dict[str, ast.FunctionDef]:
    tree = ast.parse(stub.PATH.read_text("utf-8"))
    (cls,) = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    return {node.name: node for node in cls.body if isinstance(node, ast.FunctionDef)}


def is_absent(value: object) -> bool:
    return isinstance(value, Absent)


def test_every_method_is_declared() -> None:
    """Those of the class itself stand in tensor.py, all others in the stub."""
    of_object = set(dir(object))
    nodes = list(ast.walk(ast.parse(inspect.getsource(chainrule.Tensor))))
    own = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    own |= {t.id for n in nodes if isinstance(n, ast.Assign) for t in n.targets if hasattr(t, "id")}
    slots = set(chainrule.Tensor.__slots__) | {"__slots__", "__module__", "__annotations__"}
    there = {name for name, value in vars(chainrule.Tensor).items() if not is_absent(value)}
    missing = there - set(declared()) - own - slots - of_object
    assert missing <= {"_hooks"}


def test_parameters_are_those_of_the_functions() -> None:
    """By name, for every method with one signature."""
    for name, node in declared().items():
        method = inspect.getattr_static(chainrule.Tensor, name)
        if isinstance(method, property) or name.startswith("__"):
            continue
        if any(getattr(d, "id", "") == "overload" for d in node.decorator_list):
            continue
        names = [p.name for p in stub.own_parameters(method)] + [*stub.synonyms_of(method)]
        a = node.args
        stars = [x for x in (a.vararg, a.kwarg) if x is not None]
        _, *written = [x.arg for x in (*a.posonlyargs, *a.args)]
        written += [x.arg for x in stars[:1] if a.vararg] + [x.arg for x in a.kwonlyargs]
        written += [a.kwarg.arg] if a.kwarg else []
        assert written == names, name
