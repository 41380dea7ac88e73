"""L-BFGS on parameters that are complex, or of several dtypes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from helpers import assert_close

import chainrule
from chainrule import optim


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_complex_parameters_find_the_least_squares(search: str | None) -> None:
    r = chainrule.Generator().manual_seed(0)
    a = chainrule.randn(6, 3, dtype=chainrule.complex128, generator=r)
    b = chainrule.randn(6, dtype=chainrule.complex128, generator=r)
    w = chainrule.zeros(3, dtype=chainrule.complex128, requires_grad=True)
    optimizer = optim.LBFGS(
        [w], max_iter=200, tolerance_grad=1e-10, tolerance_change=1e-15, line_search_fn=search
    )
    optimizer.step(lambda: ((a @ w - b).abs() ** 2).sum())
    assert_close(w.detach(), chainrule.linalg.lstsq(a, b[:, None])[0][:, 0], rtol=1e-6)


def test_parameters_of_several_dtypes_keep_theirs() -> None:
    u = chainrule.zeros(2, requires_grad=True)
    v = chainrule.zeros(2, dtype=chainrule.float64, requires_grad=True)
    optimizer = optim.LBFGS([u, v], line_search_fn="strong_wolfe")
    optimizer.step(lambda: ((u - 1) ** 2).sum() + ((v - 2) ** 2).sum())
    assert (u.dtype, v.dtype) == (chainrule.float32, chainrule.float64)
    assert_close(u.detach(), chainrule.ones(2), rtol=1e-5)
    assert_close(v.detach(), 2 * chainrule.ones(2, dtype=chainrule.float64), rtol=1e-5)


def closure(w: chainrule.Tensor) -> Callable[[], chainrule.Tensor]:
    return lambda: ((w**2 - 2).abs() ** 2).sum()


def test_a_saved_complex_run_goes_on() -> None:
    def make() -> tuple[chainrule.Tensor, optim.LBFGS]:
        w = chainrule.tensor([1 + 1j, 2 - 3j], requires_grad=True)
        return w, optim.LBFGS([w], max_iter=3)

    w, optimizer = make()
    optimizer.step(closure(w))
    again, other = make()
    other.load_state_dict(optimizer.state_dict())
    with chainrule.no_grad():
        again.copy_(w)
    optimizer.step(closure(w))
    other.step(closure(again))
    assert w.tolist() == again.tolist()
