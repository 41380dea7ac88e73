"""How many of PyTorch's public names are here: the table of docs/pytorch.md is what is counted."""

from __future__ import annotations

import importlib
import os
import pathlib
import re
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest

torch = pytest.importorskip("torch")

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "pytorch.md"
PATHS = (
    "torch",
    "torch.Tensor",
    "torch.nn",
    "torch.nn.functional",
    "torch.nn.init",
    "torch.optim",
    "torch.optim.lr_scheduler",
    "torch.linalg",
    "torch.special",
    "torch.fft",
    "torch.sparse",
    "torch.distributions",
    "torch.utils.data",
)


def owner(path: str) -> Any:
    """A module, or the class Tensor."""
    room, _, name = path.rpartition(".")
    return getattr(importlib.import_module(room), name) if name == "Tensor" else _module(path)


def _module(path: str) -> ModuleType:
    return importlib.import_module(path)


def public(theirs: Any) -> list[str]:
    """What PyTorch offers there: ``__all__``, else all names that are not imported modules."""
    if hasattr(theirs, "__all__") and theirs is not torch:
        return sorted(set(theirs.__all__) - {"Tensor"})

    return [name for name in dir(theirs) if _is_own(theirs, name)]


def _is_own(theirs: Any, name: str) -> bool:
    value = getattr(theirs, name, None)
    if name.startswith("_") or name in ("Tensor", "torch", "TYPE_CHECKING"):
        return False
    if isinstance(value, ModuleType):
        return value.__name__.startswith("torch.")
    if theirs is not torch.nn.functional:
        return True
    # It has no list of its own: what was made for it, without what it imports to check types.
    home = getattr(value, "__module__", None)
    return callable(value) and (home in (None, "torch") or home.startswith("torch.nn"))


def row(path: str) -> str:
    """A row of the table: names here, names that say why they are not."""
    names, ours = public(owner(path)), owner(path.replace("torch", "chainrule", 1))
    here = [name for name in names if hasattr(ours, name)]
    for name in set(names) - set(here):
        with pytest.raises(AttributeError, match=r"has no attribute .*: "):
            getattr(ours, name)
    return f"| `{path}` | {len(here)} | {len(names) - len(here)} |"


def test_the_table_is_what_is_counted() -> None:
    page = PAGE.read_text()
    found = re.findall(r"^\| `torch[\w.]*` \| \d+ \| \d+ \|$", page, flags=re.MULTILINE)
    # In a process of its own: what other tests import of PyTorch adds names to it.
    program = (
        "from parity.test_counts_of_names import PATHS, row; print(*map(row, PATHS), sep='\\n')"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    assert found == done.stdout.splitlines()
