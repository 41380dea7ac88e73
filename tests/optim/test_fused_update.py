"""One fused update for all parameters, and single rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import assert_close
from optim.weights import with_gradient

import chainrule
from chainrule import Tensor, optim
from chainrule.backend import K
from chainrule.backend.numpy_kernels import update
from chainrule.tensor import of_array


def weight(*values: float) -> Tensor:
    return chainrule.tensor(values, dtype=chainrule.float64, requires_grad=True)


# --- the fused update -----------------------------------------------------------------------------


class Counted(optim.SGD):
    """Gradient descent that notes how many elements each call of its rule has."""

    calls: list[int]

    def constants(self, group: dict[str, Any], step: int, **scalars: float) -> dict[str, Any]:
        return {"calls": self.calls}

    @staticmethod
    def rule(p: Any, g: Any, lr: Any, *, calls: list[int]) -> tuple[Any, ...]:  # type: ignore[override]
        calls.append(p.size)
        return (p - lr * g,)


def counted(arrays: list[np.ndarray], lr: Any = 0.5) -> list[int]:
    """The sizes of the rule's calls for one step, whose result is checked."""
    params = [of_array(a.copy(order="K") if a.flags.forc else a) for a in arrays]
    before = [p.numpy().copy() for p in params]
    optimizer = Counted(params, lr=lr)
    optimizer.calls = []
    for i, p in enumerate(params):
        p.grad = chainrule.full_like(p, i + 1.0)
    optimizer.step()
    for i, (p, old) in enumerate(zip(params, before, strict=True)):
        assert_close(p, old - 0.5 * (i + 1))
    return optimizer.calls


BLOCK = update.BLOCK


def test_small_parameters_are_updated_in_one_call() -> None:
    r = np.random.default_rng(0)
    shapes = [(), (3,), (0, 2), (4, 5)] * 25
    assert counted([np.asarray(r.normal(size=s)) for s in shapes]) == [25 * (1 + 3 + 20)]
    rates = [chainrule.tensor(0.5, dtype=chainrule.float64)] * 100
    assert counted([np.asarray(r.normal(size=s)) for s in shapes], rates) == [600]


def test_a_large_parameter_is_updated_in_blocks() -> None:
    r = np.random.default_rng(0)
    large, small = r.normal(size=(2 * BLOCK + 5,)), r.normal(size=3)
    assert counted([large]) == [BLOCK, BLOCK, 5]
    assert counted([small, large, small]) == [3, BLOCK, BLOCK, 5, 3]
    assert counted([large], lr=chainrule.tensor(0.5, dtype=chainrule.float64)) == [BLOCK, BLOCK, 5]
    rates = [chainrule.full((2 * BLOCK + 5,), 0.5, dtype=chainrule.float64)]
    assert counted([large], lr=rates) == [BLOCK, BLOCK, 5]


def test_batches_of_small_parameters_fill_blocks() -> None:
    parts = [np.zeros(BLOCK // 2)] * 3
    assert counted(parts) == [BLOCK, BLOCK // 2]


def test_arrays_that_are_not_contiguous() -> None:
    r = np.random.default_rng(0)
    sliced = np.repeat(r.normal(size=(200, 100)), 2, axis=1)[:, ::2]
    assert sliced.size > BLOCK
    assert counted([sliced]) == [20000]
    assert counted([np.asfortranarray(r.normal(size=(4, 5))), sliced[:2]]) == [20 + 200]


def test_only_empty_parameters() -> None:
    assert counted([np.zeros((0, 3)), np.zeros(0)]) == [0]


def test_all_finite() -> None:
    assert K.all_finite([np.zeros(0), np.array(1e300), np.full(3, 1e300)])
    assert not K.all_finite([np.ones(3), np.array([1.0, np.nan])])
    assert not K.all_finite([np.array([[1.0, -np.inf]])])
    assert not K.all_finite([np.array([1.0, 1j * np.inf])])


# --- single rules ---------------------------------------------------------------------------------


def test_centered_rmsprop_survives_a_constant_gradient() -> None:
    """Its variance is zero, and rounding must not make it negative."""
    w = weight(0.1, 0.3, 0.7)
    optimizer = optim.RMSprop([w], alpha=0.5, centered=True)
    for _ in range(200):
        w.grad = chainrule.tensor([0.1, 0.3, 0.7], dtype=chainrule.float64)
        optimizer.step()
    assert bool(w.isfinite().all())


def test_adagrad_knows_groups_that_were_added() -> None:
    w, v = with_gradient(1.0), with_gradient(1.0)
    optimizer = optim.Adagrad([w], lr=0.1)
    optimizer.add_param_group({"params": [v], "initial_accumulator_value": 3.0})
    assert optimizer.state[v]["sum"].item() == 3.0
    optimizer.step()
    assert [w.item(), v.item()] == pytest.approx([0.9, 1 - 0.1 / 2])


def test_asgd_averages_the_points_it_visits() -> None:
    w = weight(1.0)
    optimizer = optim.ASGD([w], lr=0.5, lambd=0.0, t0=0)
    places = []
    for target in (0.0, 1.0, 0.0, 1.0, 0.0):
        w.grad = w.detach() - target
        optimizer.step()
        places.append(w.item())
    assert optimizer.state[w]["ax"].item() == pytest.approx(np.mean(places[1:]), rel=1e-14)


def test_asgd_lowers_its_rate() -> None:
    """lr / (1 + lambd lr t)^alpha, one step later."""
    w = weight(0.0)
    optimizer = optim.ASGD([w], lr=0.1, lambd=2.0, alpha=0.5)
    w.grad = chainrule.zeros(1, dtype=chainrule.float64)
    for _ in range(3):
        optimizer.step()
    assert optimizer.state[w]["eta"] == pytest.approx(0.1 / (1 + 2.0 * 0.1 * 3) ** 0.5, rel=1e-14)


def test_rprop_needs_the_sign_alone() -> None:
    """Steps 0.1, 0.12; then the sign changes: half the size and no move; then on with that."""
    places = []
    w = weight(0.0)
    optimizer = optim.Rprop([w], lr=0.1)
    for g in (3.0, 0.001, -50.0, -1.0, -1.0):
        w.grad = chainrule.tensor([g], dtype=chainrule.float64)
        optimizer.step()
        places.append(w.item())
    expected = [-0.1, -0.22, -0.22, -0.22 + 0.06, -0.22 + 0.06 + 0.072]
    assert places == pytest.approx(expected, rel=1e-12)
