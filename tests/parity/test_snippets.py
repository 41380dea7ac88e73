"""Small programs run on both libraries: same gradients, or the same type of exception."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import chainrule
from parity import snippets_graph, snippets_in_place

torch = pytest.importorskip("torch")

PROGRAMS = [
    f
    for module in (snippets_in_place, snippets_graph)
    for f in vars(module).values()
    if inspect.isfunction(f)
]


def run(lib: Any, program: Any) -> Any:
    rng = np.random.default_rng(0)
    x = lib.tensor(rng.normal(size=(2, 3)), requires_grad=True)
    w = lib.tensor(rng.normal(size=(2, 3)), requires_grad=True)
    try:
        out = program(lib, x, w)
        out.sum().backward()
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        return type(error), str(error)
    values = [out.detach(), x.grad, w.grad, x.detach(), w.detach()]
    return [None if v is None else v.numpy().copy() for v in values]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_program(program: Any) -> None:
    ours, theirs = run(chainrule, program), run(torch, program)
    if isinstance(theirs, tuple):
        assert isinstance(ours, tuple), f"PyTorch raises {theirs}, we return {ours}"
        assert issubclass(theirs[0], ours[0]) or issubclass(ours[0], theirs[0]), (ours, theirs)
        return
    assert not isinstance(ours, tuple), f"PyTorch computes, we raise {ours}"
    for a, b in zip(ours, theirs, strict=True):
        if b is None:
            assert a is None or not a.any()
        else:
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
