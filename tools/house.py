"""The state of the house: how the sources are arranged, typed and documented, against the targets.

``make house`` prints the table; ``tests/test_house.py`` holds the targets that cannot hurt.
"""

from __future__ import annotations

import ast
import gc
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "chainrule"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef

# --- sources --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Source:
    """One module: its dotted name below the package, its path, its text and its tree."""

    name: str
    path: Path
    text: str
    tree: ast.Module


@cache
def sources(package: Path = PACKAGE) -> tuple[Source, ...]:
    """All modules of the package, ``chainrule/__init__.py`` as the name "", read once."""
    found = []
    for path in sorted(package.rglob("*.py")):
        text = path.read_text("utf-8")
        parts = path.relative_to(package).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found.append(Source(name, path, text, ast.parse(text)))
    gc.freeze()  # the trees stay: no search of memory visits their millions of nodes
    return tuple(found)


def is_private(source: Source) -> bool:
    return any(part.startswith("_") and part != "__main__" for part in source.name.split("."))


# --- imports --------------------------------------------------------------------------------------


def is_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name.lstrip("_") == "TYPE_CHECKING"


def executed(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below this one, without what only a type checker reads."""
    return _below(node, ast.iter_child_nodes)


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """The statements directly below one, and what holds statements: ``except`` and ``case``."""
    for name in ("body", "handlers", "cases", "orelse", "finalbody"):
        yield from getattr(node, name, ())


def _below(node: ast.AST, children: Callable[[ast.AST], Iterable[ast.AST]]) -> Iterator[ast.AST]:
    """In the order of the text. A stack of its own: generators in generators are slow."""
    waiting = [*children(node)][::-1]
    while waiting:
        child = waiting.pop()
        if isinstance(child, ast.If) and is_type_checking(child.test):
            waiting += child.orelse[::-1]
        else:
            yield child
            waiting += [*children(child)][::-1]


def imported_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and full name of everything a module imports, wherever in it."""
    for node in _below(tree, _statements):  # an expression imports nothing
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield node.lineno, f"{'.' * node.level}{node.module or ''}.{alias.name}"


def import_graph(found: Iterable[Source]) -> dict[str, set[str]]:
    """Which module imports which, imports inside functions included."""
    trees = {f"chainrule.{s.name}".rstrip("."): s.tree for s in found}
    graph: dict[str, set[str]] = {}
    for name, tree in trees.items():
        targets = set()
        for _, full in imported_names(tree):
            target = full if full in trees else full.rpartition(".")[0]
            if target in trees and target != name:
                targets.add(target)
        graph[name] = targets
    return graph


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The groups of modules that import each other, directly or through others (Tarjan)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(module: str) -> None:
        number[module] = lowest[module] = len(number)
        stack.append(module)
        for target in graph[module]:
            if target not in number:
                visit(target)
                lowest[module] = min(lowest[module], lowest[target])
            elif target in stack:
                lowest[module] = min(lowest[module], number[target])
        if lowest[module] == number[module]:
            at = stack.index(module)
            group = stack[at:]
            del stack[at:]
            if len(group) > 1:
                groups.append(sorted(group))

    for module in graph:
        if module not in number:
            visit(module)
    return groups


# --- public parameters ----------------------------------------------------------------------------


def public_functions(source: Source) -> Iterator[tuple[str, Function]]:
    """The public functions of a module and the public methods of its public classes."""
    if is_private(source):
        return
    for node in source.tree.body:
        if isinstance(node, FUNCTIONS) and not node.name.startswith("_"):
            yield node.name, node
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for part in node.body:
                if isinstance(part, FUNCTIONS) and (
                    not part.name.startswith("_") or part.name in ("__init__", "__call__")
                ):
                    yield f"{node.name}.{part.name}", part


def parameters(function: Function) -> list[ast.arg]:
    """Every parameter but self and cls."""
    a = function.args
    rest = [x for x in (a.vararg, a.kwarg) if x is not None]
    every = [*a.posonlyargs, *a.args, *a.kwonlyargs, *rest]
    return [x for x in every if x.arg not in ("self", "cls")]


def is_any(annotation: ast.expr | None) -> bool:
    """Whether an annotation says nothing: Any, or a union with it."""
    if annotation is None:
        return True
    if isinstance(annotation, ast.BinOp):
        return is_any(annotation.left) or is_any(annotation.right)
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return is_any(ast.parse(annotation.value, mode="eval").body)
    return getattr(annotation, "id", getattr(annotation, "attr", "")) == "Any"


def any_share(found: Iterable[Source]) -> tuple[int, int]:
    """How many public parameters are Any, and how many there are."""
    annotations = [
        x.annotation for s in found for _, f in public_functions(s) for x in parameters(f)
    ]
    return sum(is_any(a) for a in annotations), len(annotations)


# --- lengths --------------------------------------------------------------------------------------


def function_lengths(found: Iterable[Source]) -> list[tuple[int, str]]:
    """The length of every function in lines, longest first."""
    lengths = [
        (node.end_lineno - node.lineno + 1, f"{s.name}.{node.name}")
        for s in found
        for node in ast.walk(s.tree)
        if isinstance(node, FUNCTIONS) and node.end_lineno is not None
    ]
    return sorted(lengths, reverse=True)


def file_lengths(found: Iterable[Source]) -> list[tuple[int, str]]:
    """The length of every file in lines, longest first."""
    return sorted(((s.text.count("\n"), s.name) for s in found), reverse=True)


def engine(found: Iterable[Source]) -> list[Source]:
    """The modules of the engine."""
    return [s for s in found if s.name.startswith("autograd") or s.name == "graph"]


# --- nodes made by hand ---------------------------------------------------------------------------

MAKERS = ("ops.core.recording",)


def nodes_by_hand(found: Iterable[Source]) -> list[str]:
    """Where an operation makes a node itself instead of leaving it to the one place."""
    return [
        f"{s.name}:{node.lineno}"
        for s in found
        if s.name.startswith("ops.") and s.name not in MAKERS
        for node in ast.walk(s.tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Node"
    ]


def users_constructors(found: Iterable[Source]) -> list[str]:
    """Where the library calls ``Tensor(...)``, which converts to the default type.

    That is for users of PyTorch's older way; ``of_array`` makes a tensor of an array as it is.
    """
    return [
        f"{s.name}:{node.lineno}"
        for s in found
        for node in ast.walk(s.tree)
        if isinstance(node, ast.Call)
        and "Tensor" in [getattr(f, "id", "") for f in (node.func, *_handed_on(node))]
    ]


def _handed_on(call: ast.Call) -> list[ast.expr]:
    """The function that ``map`` or a decorator will call."""
    return call.args[:1] if getattr(call.func, "id", "") in ("map", "staticmethod") else []


# --- docstrings -----------------------------------------------------------------------------------


def is_overload(node: ast.AST) -> bool:
    """Whether a definition is one of several signatures; the docstring stands below the last."""
    decorators = getattr(node, "decorator_list", [])
    return any(getattr(d, "id", getattr(d, "attr", "")) == "overload" for d in decorators)


def undocumented(found: Iterable[Source]) -> list[str]:
    """The public functions (of modules) and classes without a docstring."""
    return [
        f"{s.name}.{node.name}"
        for s in found
        if not is_private(s)
        for node in s.tree.body
        if isinstance(node, (*FUNCTIONS, ast.ClassDef))
        and not node.name.startswith("_")
        and not is_overload(node)
        and not ast.get_docstring(node)
    ]


# --- the table ------------------------------------------------------------------------------------


def count(directory: Path) -> int:
    """The modules that lie flat in a folder."""
    return len([p for p in directory.glob("*.py") if p.name != "__init__.py"])


def skips(root: Path = ROOT) -> int:
    """The places at which the formatter is told to look away."""
    marks = ("# fmt: " + "skip", "# fmt: " + "off")
    folders = ("src", "tests", "benchmarks", "examples", "tools")
    files = [p for folder in folders for p in (root / folder).rglob("*.py")]
    return sum(p.read_text("utf-8").count(mark) for p in files for mark in marks)


def rows() -> Iterator[tuple[str, str, str]]:
    """What is measured, its value, and what it should be."""
    found = sources()
    ops = [s for s in found if s.name == "ops" or s.name.startswith("ops.")]
    yield "nodes made by hand in ops", str(len(nodes_by_hand(found))), "0"
    for name, group, target in (("ops", ops, 15), ("the package", found, 10)):
        vague, total = any_share(group)
        share = f"{100 * vague / total:.1f} % of {total:,}"
        yield f"Any in the public parameters of {name}", share, f"under {target} %"
    loops = cycles(import_graph(found))
    yield "import cycles, deferred imports counted", str(len(loops)), "0"
    flat = max((count(p), p.name) for p in PACKAGE.rglob("*") if p.is_dir())
    yield "modules flat in one folder, most", f"{flat[0]} ({flat[1]})", "-"
    yield "fmt: skip and fmt: off", str(skips()), "under 40"
    length, name = file_lengths(engine(found))[0]
    yield "longest file of the engine", f"{length} ({name})", "at most 250"
    length, name = file_lengths(found)[0]
    yield "longest file", f"{length} ({name})", "at most 450"
    lengths = function_lengths(found)
    yield "longest function", f"{lengths[0][0]} ({lengths[0][1]})", "at most 80"
    yield "median function", str(lengths[len(lengths) // 2][0]), "-"
    yield "public functions and classes without docstring", str(len(undocumented(found))), "0"


def main() -> None:
    table = list(rows())
    widths = [max(len(row[i]) for row in table) for i in range(3)]
    for what, value, target in table:
        print(f"{what:<{widths[0]}}  {value:<{widths[1]}}  {target}")


if __name__ == "__main__":
    main()
