"""What holds for every instrument: a test calls it, and what is called is public."""

from __future__ import annotations

import re
from pathlib import Path

from chainrule import inspect

TESTS = Path(__file__).resolve().parent.parent


def unused(names: list[str], texts: list[str]) -> list[str]:
    """The names that no text has as a word of its own, other than between quotes."""
    words = {word for text in texts for word in re.findall(r'(?<!["\w])\w+', text)}
    return [name for name in names if name not in words]


def test_every_instrument_has_a_test() -> None:
    files = [path for path in TESTS.rglob("*.py") if path.name != Path(__file__).name]
    texts = [path.read_text("utf-8") for path in files]
    functions = [n for n in inspect.__all__ if not isinstance(getattr(inspect, n), type)]
    assert unused(functions, texts) == []
    here = "\n".join(path.read_text("utf-8") for path in files if path.parent.name == "inspect")
    assert set(re.findall(r"\binspect\.(\w+)\(", here)) <= set(inspect.__all__)


def test_one_without_a_test_is_found() -> None:
    assert unused(["seen", "unseen"], ["x = inspect.seen(net)", '"unseen", unseen_too']) == [
        "unseen"
    ]
