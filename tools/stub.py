"""Writes ``src/chainrule/_tensor_methods.pyi``: Tensor's methods as editors and checkers see them.

Methods are functions of ``ops``, ``autograd`` and ``sparse``, attached to Tensor when these are
imported. Their signatures are read from these functions, so there is one place for each.
``make stub`` writes the file, ``tests/test_stub.py`` says whether it is current.
"""

from __future__ import annotations

import builtins
import collections.abc
import inspect
import keyword
import re
import sys
import typing
from collections.abc import Callable, Iterator, Sequence
from inspect import Parameter
from pathlib import Path
from typing import Any

import chainrule
from chainrule import typing as words
from chainrule.autograd import METHODS as OF_AUTOGRAD
from chainrule.ops.methods import attributes
from chainrule.sparse import METHODS as OF_SPARSE

PATH = Path(__file__).resolve().parent.parent / "src" / "chainrule" / "_tensor_methods.pyi"
HEADER = (
    '"""What rooms above attach to Tensor: methods, operators, properties. See tools/stub.py."""'
)

NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*(?:\.[A-Za-z_][A-Za-z_0-9]*)*")
OPERATOR = "(self, other: Operand) -> Tensor"
# Signatures of what is no function of its own.
GIVEN = {
    "__array_ufunc__": "(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any",
    "__eq__": "(self, other: object) -> Tensor",
    "__getitem__": "(self, index: Index) -> Tensor",
    "__iter__": "(self) -> Iterator[Tensor]",
    "__matmul__": "(self, other: Tensor | Array) -> Tensor",
    "__ne__": "(self, other: object) -> Tensor",
    "__repr__": "(self) -> str",
    "__rmatmul__": "(self, other: Tensor | Array) -> Tensor",
    "__setitem__": "(self, index: Index, value: Operand) -> None",
}
UNARY = {"__abs__", "__invert__", "__neg__", "__pos__"}
OVERRIDES = {"__eq__", "__ne__"}  # of object, where they return bool


def is_in_place(name: str) -> bool:
    """Whether a method returns the tensor itself: ``x.add_(y)``, ``x += y``."""
    operator = name.startswith("__i") and name not in UNARY and name not in GIVEN
    return operator or (name.endswith("_") and not name.endswith("__"))


def shown(default: Any) -> str:
    """A default value as an editor shows it."""
    return (
        repr(default) if default is None or isinstance(default, (bool, int, float, str)) else "..."
    )


def own_parameters(function: Callable[..., Any]) -> list[Parameter]:
    """Those after the first, which is the tensor; NumPy's words are told apart (``with_words``)."""
    _, *others = inspect.signature(function).parameters.values()
    return [p for p in others if p.name not in ("names", "out")]


def synonyms_of(function: Callable[..., Any]) -> dict[str, str]:
    """Other words for parameters of a method, where it was declared to take them."""
    declared = inspect.unwrap(function, stop=lambda f: hasattr(f, "synonyms"))
    words = getattr(declared, "synonyms", {})
    own = {p.name for p in own_parameters(inspect.unwrap(function))} if words else ()
    return {w: name for w, name in words.items() if name in own and not keyword.iskeyword(w)}


def with_words(parameters: Sequence[Parameter], words: dict[str, str]) -> list[list[Parameter]]:
    """The parameters of a method as it may be called if some have a word of NumPy's as well.

    A word for an argument that may be left out is one more keyword. If the argument may not, there
    is a second way to call: with the word, and keywords for all that follows.
    """
    optional, required = [], []
    for word, name in words.items():
        for p in parameters:
            if p.name == name:
                named = p.replace(name=word, kind=p.KEYWORD_ONLY)
                (required if p.default is p.empty else optional).append((p, named))
    ways = [[*parameters, *(named for _, named in optional)]]
    for p, named in required:
        i = list(parameters).index(p)
        after = [q.replace(kind=q.KEYWORD_ONLY) for q in parameters[i + 1 :]]
        ways.append([*parameters[:i], named, *after, *(word for _, word in optional)])
    return ways


class Stub:
    """Collects declarations and the names they need."""

    def __init__(self, members: set[str]):
        self.members = members
        self.imports: dict[str, set[str]] = {"chainrule.tensor": {"Tensor"}}
        self.modules: set[str] = set()
        self.aliases: set[str] = set()

    def resolved(self, annotation: str, scope: dict[str, Any]) -> str:
        """An annotation with names that mean the same inside the class."""

        def one(match: re.Match[str]) -> str:
            name = match.group()
            first = name.split(".")[0]
            if name in ("V", "Value"):
                return "Tensor"
            if name in ("None", "True", "False") or annotation[: match.start()].endswith(
                ('"', "'")
            ):
                return name
            if hasattr(builtins, first):
                if first in self.members:
                    self.aliases.add(first)
                    return f"_{name}"
                return name
            self._import(first, scope)
            return name

        return NAME.sub(one, annotation)

    def _import(self, name: str, scope: dict[str, Any]) -> None:
        found = scope.get(name)
        if name == "Tensor":
            return
        if inspect.ismodule(found):
            package, _, module = found.__name__.rpartition(".")
            if not package:
                self.modules.add(module)
                return
            home = package
        elif name in words.__all__:
            home = words.__name__
        elif found is None:
            home = "collections.abc" if hasattr(collections.abc, name) else "typing"
        else:
            home = getattr(found, "__module__", "")
            if getattr(sys.modules.get(home), name, None) is not found:
                home = scope["__name__"]
        self.imports.setdefault(home, set()).add(name)

    def signature(
        self, function: Callable[..., Any], parameters: Sequence[Parameter] | None = None
    ) -> str:
        """``(self, dim: int = 0) -> Tensor`` of a function whose first parameter is the tensor."""
        scope = function.__globals__  # type: ignore[attr-defined]
        parts, mark = ["self"], False
        for p in own_parameters(function) if parameters is None else parameters:
            if p.kind is p.KEYWORD_ONLY and not mark:
                parts.append("*")
            mark = mark or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
            stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
            text = f"{stars}{p.name}: {self.resolved(str(p.annotation), scope)}"
            parts.append(text if p.default is p.empty else f"{text} = {shown(p.default)}")
            if p.kind is p.POSITIONAL_ONLY:
                parts.append("/")
        if parts.count("/") > 1:
            last = len(parts) - 1 - parts[::-1].index("/")
            parts = [x for i, x in enumerate(parts) if x != "/" or i == last]
        returns = function.__annotations__.get("return", "Any")
        return f"({', '.join(parts)}) -> {self.resolved(str(returns), scope)}"

    def declared(self, name: str, value: Any) -> Iterator[str]:
        """The lines of one member."""
        if isinstance(value, property):
            yield "    @property"
            yield from self._line(name, self.signature(value.fget), value.fget.__doc__)
            return
        synonyms = synonyms_of(value)
        value = inspect.unwrap(value)
        doc = value.__doc__
        if name in GIVEN:
            text = GIVEN[name]
            for word in NAME.findall(text):
                if word in words.__all__ or word in ("Any", "Iterator"):
                    self._import(word, {})
            yield from self._line(name, text, None, name in OVERRIDES)
        elif name in UNARY:
            yield from self._line(name, "(self) -> Tensor", None)
        elif name.startswith("__"):
            self._import("Operand", {})
            yield from self._line(name, OPERATOR, None)
        else:
            shapes = typing.get_overloads(value) or [value]
            ways = [(f, way) for f in shapes for way in with_words(own_parameters(f), synonyms)]
            for function, way in ways:
                if len(ways) > 1:
                    self.imports.setdefault("typing", set()).add("overload")
                    yield "    @overload"
                yield from self._line(name, self.signature(function, way), doc)

    def _line(
        self, name: str, signature: str, doc: str | None, overrides: bool = False
    ) -> Iterator[str]:
        if is_in_place(name):  # a parameter stays a parameter
            self._import("Self", {})
            signature = signature.rpartition("->")[0] + "-> Self"
        mark = "  # type: ignore[override]" if overrides else ""
        if doc is None:
            yield f"    def {name}{signature}: ...{mark}"
            return
        first = doc.strip().split("\n\n")[0]
        text = " ".join(line.strip() for line in first.splitlines()).replace("\\", "\\\\")
        yield f"    def {name}{signature}:{mark}"
        yield f'        """{text}"""'


def text() -> str:
    """The whole file."""
    members = dict(attributes()) | OF_AUTOGRAD | OF_SPARSE
    stub = Stub(set(members) | {n for n in dir(chainrule.Tensor) if not n.startswith("_")})
    body = [line for name in sorted(members) for line in stub.declared(name, members[name])]
    stub.imports.setdefault("chainrule.placement", set()).add("Located")
    imports = [f"import {name}" for name in sorted(stub.modules)]
    imports += [
        f"from {module} import {', '.join(sorted(names))}"
        for module, names in sorted(stub.imports.items())
    ]
    aliases = [f"_{name} = {name}" for name in sorted(stub.aliases)]
    parts = [
        HEADER,
        "\n".join(imports),
        "\n".join(aliases),
        "class TensorMethods(Located):\n" + "\n".join(body),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


if __name__ == "__main__":
    PATH.write_text(text(), "utf-8")
    sys.stdout.write(f"{PATH.relative_to(PATH.parents[2])}: {text().count(' def ')} methods\n")
