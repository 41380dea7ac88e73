"""Runs the programs of ``tests/programs``, which are written for PyTorch, on either library.

The import is all that changes: :func:`changed` rewrites the statements that import ``torch`` or a
module of it, and nothing else of a program. Each program has a ``main()`` that prints as it goes
and returns the losses it has seen; :func:`run` calls it in an empty folder with an empty command
line.

Nothing about random numbers is prepared here: a program seeds and draws as it likes. For the
comparison, in ``tests/parity``, PyTorch is made to draw from chainrule's generators
(``shared_draws``).
"""

from __future__ import annotations

import ast
import contextlib
import io
import math
import os
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np

FOLDER = Path(__file__).resolve().parent / "programs"
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.py"))


class _Imports(ast.NodeTransformer):
    """``torch`` in import statements becomes ``chainrule``; the names they bind stay."""

    def visit_Import(self, node: ast.Import) -> Any:
        names = [part for alias in node.names for part in _renamed(alias)]
        return ast.copy_location(ast.Import(names), node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        module = node.module if node.level else _moved(node.module or "")
        return ast.copy_location(ast.ImportFrom(module, node.names, node.level), node)


def _moved(module: str) -> str:
    return re.sub(r"^torch(?=\.|$)", "chainrule", module)


def _renamed(alias: ast.alias) -> list[ast.alias]:
    module = _moved(alias.name)
    if module == alias.name:
        return [alias]
    if alias.asname is not None:
        return [ast.alias(module, alias.asname)]
    # ``import torch.nn`` binds torch, and makes torch.nn an attribute of it.
    inner = [ast.alias(module, "_")] if "." in module else []
    return [*inner, ast.alias("chainrule", "torch")]


def changed(source: str) -> ast.Module:
    """The program with ``chainrule`` imported in the place of ``torch``."""
    return ast.fix_missing_locations(_Imports().visit(ast.parse(source)))


def load(path: Path, library: str) -> ModuleType:
    """A program as a module (its ``__name__`` is not ``__main__``, so that nothing is run)."""
    source = path.read_text(encoding="utf-8")
    tree = changed(source) if library == "chainrule" else ast.parse(source)
    module = ModuleType(f"{path.stem} on {library}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # where dataclasses and pickles look
    exec(compile(tree, str(path), "exec"), module.__dict__)
    return module


def run(path: Path, library: str, folder: Path) -> tuple[list[float], str]:
    """What ``main()`` returns, and what it prints. The program starts as a process would."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - as programs do
    printed = io.StringIO()
    command_line = mock.patch.object(sys, "argv", [path.name])
    with _inside(folder), contextlib.redirect_stdout(printed), command_line:
        losses = load(path, library).main()
    return [float(loss) for loss in losses], printed.getvalue()


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = os.getcwd()
    folder.mkdir(exist_ok=True)
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|nan|inf)")


def assert_same_text(ours: str, theirs: str, relative: float) -> None:
    """The same lines: words exactly, numbers up to the tolerance or to their last digit."""
    assert NUMBER.sub("#", ours) == NUMBER.sub("#", theirs).replace("torch.", "chainrule.")
    for a, b in zip(NUMBER.findall(ours), NUMBER.findall(theirs), strict=True):
        assert a == b or math.isclose(
            float(a), float(b), rel_tol=relative, abs_tol=_last_digit(b)
        ), f"printed {a}, PyTorch {b}"


def _last_digit(text: str) -> float:
    """What one more in the last digit of a number is worth; 0 for integers, which are exact."""
    digits, _, exponent = text.lower().partition("e")
    decimals = len(digits.partition(".")[2])
    return 10.0 ** (int(exponent or 0) - decimals) * 1.01 if "." in digits else 0.0
