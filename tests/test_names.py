"""The package exports what its files export: the lists of names are current."""

from __future__ import annotations

from pathlib import Path

import names
import pytest

import chainrule
from chainrule import nn
from chainrule.nn.activations import functions, learned, piecewise, smooth, vector
from chainrule.ops import families


@pytest.mark.parametrize("path", names.LISTS)
def test_the_lists_are_current(path: str) -> None:
    source = (names.PACKAGE / path).read_text("utf-8")
    assert names.MARK in source
    assert names.current(source) == source, "run make stub"


def test_the_package_exports_its_operations() -> None:
    shown = set(chainrule.__all__)
    missing = {f.__name__: set(f.__all__) - shown for f in families}
    assert not any(missing.values()), missing
    assert sum(len(f.__all__) for f in families) > 300


def test_nn_exports_its_activations() -> None:
    assert set(functions.__all__) <= set(nn.functional.__all__)
    for kind in (learned, piecewise, smooth, vector):
        assert set(kind.__all__) <= set(nn.__all__)


BEFORE = """
from chainrule import part
from chainrule.a import one  # all of it
from chainrule.b import (
    other, three as four,
)
from chainrule.c import _hidden

__all__ = ["gone"]
"""
AFTER = """
from chainrule import part
from chainrule.a import one, Two  # all of it
from chainrule.b import (
    other, three as four,
)
from chainrule.c import _hidden

__all__ = [
    "four", "one", "other", "part", "Two",
]
"""


def test_a_list_is_brought_up_to_date(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text('__all__ = ["Two", "one"]\n')
    assert names.current(BEFORE, tmp_path) == AFTER
    assert names.current(AFTER, tmp_path) == AFTER


def test_long_lists_are_packed(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(f"__all__ = {[f'name{i:02}' for i in range(30)]}\n")
    written = names.current("from chainrule.a import name00  # all of it\n", tmp_path).splitlines()
    assert written[0] == "from chainrule.a import (  # all of it"
    assert written[-1] == ")"
    assert 80 < len(written[1]) <= 100


def test_a_module_without_a_list_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one = 1\n")
    with pytest.raises(LookupError, match=r"chainrule\.a has no __all__"):
        names.current("from chainrule.a import one  # all of it\n", tmp_path)
