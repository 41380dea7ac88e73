"""Windows of signals against PyTorch's."""

from __future__ import annotations

from typing import Any

import pytest
from helpers import assert_close

import chainrule

torch = pytest.importorskip("torch")

CALLS: list[tuple[str, dict[str, Any]]] = [
    *[(name, {}) for name in chainrule.signal.windows.__all__ if name != "general_cosine"],
    ("general_cosine", {"a": [0.46, 0.23, 0.31]}),
    ("general_hamming", {"alpha": 0.7}),
    ("exponential", {"tau": 2.5}),
    ("exponential", {"center": 1, "sym": False, "tau": 0.4}),
    ("gaussian", {"std": 0.7}),
    ("kaiser", {"beta": 3.0}),
    ("kaiser", {"beta": 0.0}),
]


@pytest.mark.parametrize(("name", "options"), CALLS, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_value(name: str, options: dict[str, Any], dtype: str) -> None:
    for sym in (True, False):
        for m in (0, 1, 2, 3, 6, 17):
            given = {"sym": sym, **options}
            if given["sym"] and "center" in given:
                continue
            theirs, ours = (
                getattr(t.signal.windows, name)(m, dtype=getattr(t, dtype), **given)
                for t in (torch, chainrule)
            )
            assert ours.dtype.name == dtype
            close = {"rtol": 1e-5, "atol": 1e-6} if dtype == "float32" else {"atol": 1e-12}
            assert_close(ours, theirs, **close)
