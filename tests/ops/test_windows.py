"""Windows of signals: against SciPy's, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from helpers import assert_close
from scipy.signal import windows as scipy_windows

import chainrule
from chainrule.signal import windows


@pytest.mark.parametrize("sym", [True, False])
@pytest.mark.parametrize(
    ("name", "ours", "theirs"),
    [
        *[(n, {}, {}) for n in ("bartlett", "blackman", "cosine", "hamming", "hann", "nuttall")],
        ("kaiser", {}, {"beta": 12.0}),
        ("gaussian", {"std": 2.0}, {"std": 2.0}),
        ("exponential", {"tau": 2.0}, {"tau": 2.0}),
        ("general_cosine", {"a": [0.6, 0.3, 0.1]}, {"a": [0.6, 0.3, 0.1]}),
        ("general_hamming", {"alpha": 0.7}, {"alpha": 0.7}),
    ],
)
def test_value(name: str, ours: dict[str, Any], theirs: dict[str, Any], sym: bool) -> None:
    for m in (1, 2, 7, 12):
        w = getattr(windows, name)(m, sym=sym, dtype=chainrule.float64, **ours)
        assert_close(w, getattr(scipy_windows, name)(m, sym=sym, **theirs), atol=1e-12)


def test_arguments_that_no_window_has() -> None:
    with pytest.raises(TypeError, match=r"hann\(\) got an unexpected keyword argument 'periodic'"):
        windows.hann(3, periodic=True)  # type: ignore[call-arg]
    assert windows.hann(3, layout=chainrule.strided).tolist() == [0.0, 1.0, 0.0]


def test_defaults() -> None:
    assert windows.hann(4).dtype is chainrule.float32
    assert windows.hann(0).shape == (0,)
    assert windows.kaiser(3, beta=0.0).tolist() == [1.0, 1.0, 1.0]
    assert windows.hann(5, requires_grad=True).is_leaf
    assert windows.hann(5, requires_grad=True).requires_grad


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        (
            "hann",
            {"M": 3, "layout": chainrule.sparse_coo},
            "is implemented for strided tensors only",
        ),
        ("hann", {"M": -1}, "non-negative window length, got M=-1"),
        ("hann", {"M": 3, "dtype": "complex64"}, "expects float32 or float64 dtypes, got"),
        ("kaiser", {"M": 3, "beta": -1.0}, "beta must be non-negative, got -1.0"),
        ("gaussian", {"M": 3, "std": 0.0}, "standard deviation must be positive"),
        ("exponential", {"M": 3, "tau": -1.0}, "tau must be positive"),
        ("exponential", {"M": 3, "center": 1}, "center must be None for symmetric windows"),
        ("general_cosine", {"M": 3, "a": []}, "coefficients cannot be empty"),
    ],
)
def test_refused(name: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        getattr(windows, name)(**given)
