"""A layer's docstring: one sentence, the equation, Shape, Args, and an example that runs.

What the sections say is checked where that is possible: the letters of Shape are those of
docs/conventions.md, Args names every argument of the constructor, and the doctests run the example.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

from chainrule import models, nn
from chainrule.nn import functional, init, utils

CONVENTIONS = Path(__file__).parents[2] / "docs" / "conventions.md"
LETTERS = {
    letter
    for row in re.findall(r"^\| ([A-Z](?:, [A-Z])*) \|", CONVENTIONS.read_text("utf-8"), re.M)
    for letter in row.split(", ")
}

# Where the tensors are made, PyTorch's reductions of old, and arguments that are given on.
KNOWN = {"device", "dtype", "size_average", "reduce", "args", "kwargs"}

# Something with a name or an index stands on the left: "y = ", "h_t = ", "y[n, o] = ", "c' = ".
EQUATION = re.compile(r"(?:^|[\s(:;,])[A-Za-z][\w']*(?:\[[^]=]*\]|_\{[^}]*\}|\([^)=]*\))? = \S")


def sections(text: str) -> dict[str, str]:
    """The parts of a docstring: "Shape", "Args", "example", and "" for the rest."""
    parts: dict[str, list[str]] = {"": [], "Shape": [], "Args": [], "example": []}
    now = ""
    for line in inspect.cleandoc(text).split("\n"):
        if line.startswith(">>>"):
            now = "example"
        elif line.startswith(("Shape:", "Args:")):
            now = line.partition(":")[0]
        elif not line.strip():
            now = ""
        parts[now].append(line)
    return {name: "\n".join(lines) for name, lines in parts.items()}


def arguments(cls: type) -> list[str]:
    """The arguments of the constructor that belong into Args."""
    names = list(inspect.signature(cls.__init__).parameters)[1:]
    return [name for name in names if not name.startswith("_")]


def documented(args: str) -> set[str]:
    """The names that Args explains: "a, b: what they are"."""
    entries = re.findall(r"^    (\w[\w, ]*):", args, re.M)
    return {name for entry in entries for name in entry.split(", ")}


def faults(cls: type[nn.Module]) -> list[str]:
    """What a layer's docstring lacks. Only what computes has an equation and shapes."""
    text = vars(cls).get("__doc__")
    if not text:
        return ["no docstring of its own"]
    parts, found = sections(text), []
    if cls.forward is not nn.Module.forward:
        if not EQUATION.search(parts[""]):
            found.append("no equation")
        if not parts["Shape"]:
            found.append("no Shape:")
    letters = set(re.findall(r"\b([A-Z])(?:_\w+)?\b", parts["Shape"]))
    if letters - LETTERS:
        found.append(f"{sorted(letters - LETTERS)} in Shape: are not in docs/conventions.md")
    names = arguments(cls)
    if names and not parts["Args"]:
        found.append("no Args:")
    elif missing := set(names) - KNOWN - documented(parts["Args"]):
        found.append(f"{sorted(missing)} not in Args:")
    if unknown := documented(parts["Args"]) - set(names):
        if not {"args", "kwargs"} & set(names):
            found.append(f"{sorted(unknown)} in Args: are no arguments")
    if not parts["example"]:
        found.append("no example")
    return found


LAYERS = {
    cls.__name__: cls
    for room in (nn, models)
    for cls in (getattr(room, name) for name in room.__all__)
    if isinstance(cls, type) and issubclass(cls, nn.Module)
}
FUNCTIONS = (
    functional,
    init,
    utils,
    utils.parametrizations,
    utils.parametrize,
    utils.prune,
    utils.rnn,
)


@pytest.mark.parametrize("name", sorted(LAYERS))
def test_a_layer_says_what_it_computes(name: str) -> None:
    assert faults(LAYERS[name]) == []


def test_there_are_layers() -> None:
    assert len(LAYERS) > 190
    assert {"N", "C", "H", "W", "L", "D", "K"} <= LETTERS


@pytest.mark.parametrize("room", FUNCTIONS, ids=lambda room: room.__name__)
def test_a_function_has_a_docstring(room: ModuleType) -> None:
    named = {name: getattr(room, name) for name in room.__all__}
    called = {name: f for name, f in named.items() if not inspect.ismodule(f)}
    assert [name for name, f in called.items() if not f.__doc__] == []


# --- the check itself -----------------------------------------------------------------------------


class Good(nn.Module):
    """An affine map: y = x A^T + b.

    Shape: (*, D) -> (*, K).

    Args:
        D, K: sizes.
        bias: whether there is b.

    >>> 1 + 1
    2
    """

    def __init__(self, D: int, K: int, bias: bool = True, device: str | None = None):
        super().__init__()

    def forward(self, input: object) -> object:
        return input


def without(*lines: str) -> str:
    """The good docstring without the lines that contain these words."""
    kept = [line for line in (Good.__doc__ or "").split("\n") if not any(w in line for w in lines)]
    return "\n".join(kept)


BAD = {
    "no equation": (Good.__doc__ or "").replace("y = x A^T + b", "an affine map of x (bias=True)"),
    "no Shape:": without("Shape:"),
    "no Args:": without("Args:", "D, K:", "bias:"),
    "['bias'] not in Args:": without("bias:"),
    "['gain'] in Args: are no arguments": (Good.__doc__ or "").replace(
        "bias: ", "bias: b.\n        gain: "
    ),
    "['Q'] in Shape: are not in docs/conventions.md": (Good.__doc__ or "").replace(
        "(*, K)", "(*, Q_out)"
    ),
    "no example": without(">>>", "2"),
}


def test_a_whole_docstring_has_no_faults() -> None:
    assert faults(Good) == []


@pytest.mark.parametrize("fault", BAD)
def test_a_fault_is_found(fault: str) -> None:
    planted = type("Planted", (Good,), {"__doc__": BAD[fault]})
    assert faults(planted) == [fault]


def test_an_inherited_docstring_does_not_count() -> None:
    class Planted(Good):
        pass

    assert faults(Planted) == ["no docstring of its own"]


def test_an_equation_in_a_section_does_not_count() -> None:
    text = (Good.__doc__ or "").replace("y = x A^T + b", "a map")
    for place in ("whether there is b.", "(*, K).", "1 + 1"):
        planted = type("Planted", (Good,), {"__doc__": text.replace(place, f"{place} y = x")})
        assert faults(planted) == ["no equation"]


def test_what_only_holds_needs_no_equation() -> None:
    class Holder(nn.Module):
        """Holds modules.

        >>> 1 + 1
        2
        """

    assert faults(Holder) == []
