"""Array libraries are named in the backend alone, and nothing outside it writes into an array.

Two things depend on it: a second array library (one with immutable arrays, too) can take the place
of the first, and no saved value changes between the forward and the backward pass.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import house
import numpy as np
import pytest
from helpers import case
from house import PACKAGE, executed
from samples import BY_FAMILY

import chainrule
from chainrule import backend

ARRAY_LIBRARIES = {"numpy", "scipy"}
MAY_NAME_THEM = {"backend", "random"}
PROGRAM = "atlas.course.ex09_x07_exponential"  # its data are drawn as the course draws them
MAY_NOT_WRITE = {"ops", "autograd", "nn", "optim"}

WRITING_METHODS = {"fill", "sort", "put", "partition", "resize", "byteswap"}  # of an array
WRITING_CALLS = {"copyto", "itemset", "setflags", "putmask", "place", "put_along_axis"}  # of any

# --- which modules name an array library ----------------------------------------------------------


def foreign_imports(module: str, tree: ast.AST) -> list[str]:
    if module.split(".")[0] in MAY_NAME_THEM or module == PROGRAM:
        return []
    return [
        f"{module}:{line} imports {name}"
        for line, name in house.imported_names(tree)
        if name.split(".")[0] in ARRAY_LIBRARIES
    ]


def test_only_the_backend_names_an_array_library() -> None:
    found = [v for s in house.sources() for v in foreign_imports(s.name or "__init__", s.tree)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("line", ["import numpy as np", "from scipy import special"])
def test_a_planted_import_is_caught(line: str) -> None:
    assert foreign_imports("ops.shape", ast.parse(f"def f():\n    {line}"))
    assert not foreign_imports("backend.dtypes", ast.parse(line))


# --- which modules write into an array, by reading them -------------------------------------------


def _pairs(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The (target, value) pairs of an assignment, tuples taken apart."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                yield from zip(target.elts, node.value.elts, strict=False)
            else:
                yield target, node.value
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
        yield node.target, node.value


def _is_harmless(value: ast.expr, harmless_calls: set[str]) -> bool:
    """Whether an expression is a list, a dictionary or a Python number for certain."""
    if isinstance(value, ast.BoolOp):
        return all(_is_harmless(v, harmless_calls) for v in value.values)
    if isinstance(value, ast.BinOp):
        return any(_is_harmless(v, harmless_calls) for v in (value.left, value.right))
    if isinstance(value, ast.Call):
        return getattr(value.func, "id", "") in harmless_calls
    return isinstance(value, (ast.List, ast.Dict, ast.ListComp, ast.DictComp))


def _annotated_as_container(annotation: ast.expr | None) -> bool:
    text = "" if annotation is None else ast.unparse(annotation)
    return text.startswith(("list", "dict", "defaultdict", "MutableMapping", "MutableSequence"))


def _is_array(node: ast.expr, arrays: set[str]) -> bool:
    """``x.array``, ``x.array[...]``, or a name that one of these was given."""
    while isinstance(node, (ast.Subscript, ast.Starred)):
        node = node.value
    if isinstance(node, ast.Attribute):
        return node.attr == "array"
    return isinstance(node, ast.Name) and node.id in arrays


def _harmless_calls(tree: ast.AST) -> set[str]:
    """The functions whose results are lists, dictionaries or Python numbers."""
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    own = {f.name for f in functions if _annotated_as_container(f.returns)}
    return {"list", "dict", "int", "float", "len"} | own


def _names(tree: ast.AST, harmless_calls: set[str]) -> tuple[set[str], set[str], set[str]]:
    """The names that hold arrays, containers, and arguments of unknown type."""
    arrays, containers, unknown = set(), set(), set()
    for node in executed(tree):
        if isinstance(node, ast.arg):
            if _annotated_as_container(node.annotation):
                containers.add(node.arg)
            elif node.annotation is None or ast.unparse(node.annotation) == "Any":
                unknown.add(node.arg)
        if isinstance(node, ast.AnnAssign) and _annotated_as_container(node.annotation):
            containers.add(getattr(node.target, "id", ""))
        for target, value in _pairs(node):
            if isinstance(target, ast.Name):
                if _is_harmless(value, harmless_calls):
                    containers.add(target.id)
                elif _is_array(value, arrays):
                    arrays.add(target.id)
    return arrays, containers, unknown


def _written(target: ast.expr, arrays: set[str], safe: set[str] | None) -> bool:
    """Whether assigning to this may write into an array (``safe``: names of other things)."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return any(_written(t, arrays, safe) for t in target.elts)
    if not isinstance(target, ast.Subscript):
        return False
    if _is_array(target.value, arrays):
        return True
    return safe is not None and isinstance(target.value, ast.Name) and target.value.id not in safe


def _writes(node: ast.AST, arrays: set[str], safe: set[str] | None, unknown: set[str]) -> bool:
    if isinstance(node, ast.Assign):
        return any(_written(t, arrays, safe) for t in node.targets)
    if isinstance(node, ast.AugAssign):
        names = arrays | unknown - (safe or set())
        return _is_array(node.target, names) or _written(node.target, arrays, safe)
    if isinstance(node, ast.Call):
        if any(keyword.arg == "out" for keyword in node.keywords):
            return True
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if isinstance(node.func, ast.Attribute) and name in WRITING_METHODS:
            return _is_array(node.func.value, arrays)
        return name in WRITING_CALLS
    return False


def writes(module: str, tree: ast.AST) -> list[str]:
    """The lines of a module that may write into an array.

    An argument without a type (it may be an array) is not changed by ``+=`` and its like. In
    ``ops``, where the rules handle bare arrays, a subscript is only assigned to what is a list or a
    dictionary for certain.
    """
    strict = module.split(".")[0] == "ops"
    calls = _harmless_calls(tree)
    _, outer, _ = _names(tree, calls)
    found = set()
    for function in [tree, *[n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]]:
        arrays, containers, unknown = _names(function, calls)
        for node in executed(function):
            if function is tree and not isinstance(node, (ast.Assign, ast.Call)):
                continue
            if _writes(node, arrays, containers | outer if strict else None, unknown):
                found.add(f"{module}:{getattr(node, 'lineno', 0)} {ast.unparse(node)[:80]}")
    return sorted(found)


def test_nothing_outside_the_backend_writes_into_an_array() -> None:
    found = []
    for source in house.sources():
        if source.name.split(".")[0] in MAY_NOT_WRITE:
            found += writes(source.name, source.tree)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "body",
    [
        "x.array[0] = 1",
        "x.array += 1",
        "a = x.array\n    a[0] = 1",
        "a, b = x.array, y.array\n    b *= 2",
        "a = x.array\n    a[0] += 1",
        "g[0] = 0",
        "g += 1",
        "r = g * 2\n    r[0] = 0",
        "K.add(x, y, out=x)",
        "x.array.fill(0)",
        "a = x.array\n    a.sort()",
        "np.copyto(x, y)",
        "x.setflags(write=True)",
    ],
)
def test_a_planted_write_is_caught(body: str) -> None:
    assert writes("ops.planted", ast.parse(f"def f(g, x, y):\n    {body}"))


@pytest.mark.parametrize(
    "body",
    [
        "x.array = K.write(x.array, y)",
        "parts = [None] * 3\n    parts[0] = 1",
        "d: dict[str, int] = make()\n    d['a'] = 1",
        "n = 1\n    n += 1",
        "values = list(x)\n    values.sort()",
        "shape = list(x.shape) or [1]\n    shape[0] = 2",
        "g = int(g)\n    g += 1",
    ],
)
def test_a_harmless_line_passes(body: str) -> None:
    assert not writes("ops.harmless", ast.parse(f"def f(g, x, y):\n    {body}"))


# --- and by running: kernels whose arrays cannot be written ---------------------------------------


def _seal(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    elif isinstance(value, (tuple, list)):
        for v in value:
            _seal(v)
    return value


def _open(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def _read_only(kernel: Callable[..., Any]) -> Callable[..., Any]:
    def sealed(*args: Any, **kwargs: Any) -> Any:
        _seal(args)
        _seal(list(kwargs.values()))
        return _seal(kernel(*args, **kwargs))

    return sealed


def _write_a_copy(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """What a library with immutable arrays does: the result is a new array."""

    def sealed(*args: Any, **kwargs: Any) -> Any:
        return _seal(kernel(*[_open(a) for a in args], **kwargs))

    return sealed


@pytest.fixture
def immutable_arrays(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A double of the kernels in use that takes and returns arrays which cannot be written."""
    before = backend.current()
    families = []
    for family in backend._IMPLEMENTATIONS[before]:
        double = SimpleNamespace(__all__=list(family.__all__))
        for name in family.__all__:
            kernel = getattr(family, name)
            if callable(kernel) and not isinstance(kernel, type):
                kernel = (_write_a_copy if name.startswith("write") else _read_only)(kernel)
            setattr(double, name, kernel)
        families.append(double)
    monkeypatch.setitem(backend._IMPLEMENTATIONS, "immutable", tuple(families))
    backend.use("immutable")
    yield
    backend.use(before)


def representative_program() -> list[Any]:
    """Forward, backward twice into the same gradient, second order, and a step in place."""
    r = np.random.default_rng(0)
    x = chainrule.tensor(r.normal(size=(5, 4)))
    w1 = chainrule.tensor(r.normal(size=(4, 8)), requires_grad=True)
    b1 = chainrule.tensor(r.normal(size=8), requires_grad=True)
    w2 = chainrule.tensor(r.normal(size=(8, 3)), requires_grad=True)
    labels = chainrule.tensor([0, 1, 2, 1, 0])

    def loss() -> Any:
        h = chainrule.tanh(x @ w1 + b1) * chainrule.sigmoid(x @ w1)
        logits = chainrule.cat([h[:, :4], h[:, 4:].exp()], dim=1) @ w2
        penalty = (w1**2).mean() + w2.abs().sum(dim=0).max() + (h / (1 + h * h)).var()
        return chainrule.cross_entropy(logits, labels) + 0.1 * penalty

    results = []
    for _ in range(2):
        loss().backward()
    results += [p.grad.clone() for p in (w1, b1, w2)]
    first = chainrule.autograd.grad(loss(), [w1, b1, w2], create_graph=True)
    squares = sum((g * g).sum() for g in first)
    results += chainrule.autograd.grad(squares, [w1, b1, w2])
    with chainrule.no_grad():
        for p in (w1, b1, w2):
            p -= 0.1 * p.grad
            p.grad = None
    loss().backward()
    return [t.tolist() for t in (*results, w1.detach(), w1.grad, loss().detach())]


def test_program_runs_unchanged_on_immutable_arrays(request: pytest.FixtureRequest) -> None:
    expected = representative_program()
    request.getfixturevalue("immutable_arrays")
    assert representative_program() == expected


@pytest.mark.parametrize("family", list(BY_FAMILY))
def test_every_operation_runs_on_immutable_arrays(immutable_arrays: None, family: str) -> None:
    """Forward and backward of each record: a rule that writes into an array fails."""
    for sample in BY_FAMILY[family]:
        c = case(sample)
        if c.values and sample.differentiable:
            c.gradients(c.variables())


def test_the_double_refuses_writes(immutable_arrays: None) -> None:
    a = backend.K.ones((2,), "float32")
    with pytest.raises(ValueError, match="read-only"):
        backend.K.exp(a)[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        a += 1
    changed = backend.K.write(a, a * 2)
    assert a.tolist() == [1, 1]
    assert changed.tolist() == [2, 2]


def test_sources_are_found() -> None:
    assert Path(PACKAGE, "ops", "core", "primitive.py").exists()
