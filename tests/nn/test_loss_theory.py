"""Risks, objectives of several parts, canonical links."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import assert_close
from scipy import special

import chainrule
from chainrule import nn, tensor
from chainrule.func import grad, jacrev
from chainrule.nn import functional as F
from chainrule.tensor import Tensor, of_array


def normal(*shape: int, seed: int = 0) -> Tensor:
    return of_array(np.random.default_rng(seed).normal(size=shape))


# --- risks (S03, S04, S18) ------------------------------------------------------------------------


def test_empirical_risk_is_the_mean_over_samples() -> None:
    x, y = normal(6, 4), tensor([0, 1, 2, 3, 0, 1])
    samples = [F.cross_entropy(x[i], y[i]) for i in range(6)]
    assert_close(F.cross_entropy(x, y), sum(samples) / 6)


def test_loss_summed_over_time() -> None:
    """1/N sum_t sum_i l(y_i[t], h_i[t])."""
    h, y = normal(5, 3, 2), normal(5, 3, 2, seed=1)  # time, sample, output
    by_step = sum(F.mse_loss(h[t, i], y[t, i], reduction="sum") for t in range(5) for i in range(3))
    assert_close(F.mse_loss(h, y, reduction="sum") / 3, by_step / 3)


def test_sum_and_mean_have_one_minimum_and_different_steps() -> None:
    """With the sum, a learning rate that is right for the mean is N times too large."""
    x, y = normal(40), normal(40, seed=1)

    def slope(w: Tensor, reduction: str) -> Tensor:
        return grad(lambda w: F.half_squared_loss(w * x, y, reduction=reduction))(w)

    w = tensor(0.3, dtype=chainrule.float64)
    assert_close(slope(w, "sum"), 40 * slope(w, "mean"), rtol=1e-12)
    best = of_array(np.asarray(np.dot(x, y) / np.dot(x, x)))
    ends = {}
    for how in ("mean", "sum"):
        assert abs(slope(best, how).item()) < 1e-12
        w = tensor(0.3, dtype=chainrule.float64)
        for _ in range(60):
            w = w - 0.5 * slope(w, how)
        ends[how] = abs(w - best).item()
    assert ends["mean"] < 1e-6 < 1e6 < ends["sum"]


# --- objectives of several parts (S14, S15, S16) --------------------------------------------------


def test_regularized_objective() -> None:
    """R_emp + lambda Omega(w), and the gradient of the sum."""
    w = normal(3)
    x, y = normal(10, 3, seed=1), normal(10, seed=2)

    def objective(w: Tensor) -> Tensor:
        parts = {"risk": F.mse_loss(x @ w, y), "penalty": (w**2).sum()}
        return F.weighted_sum(parts, {"penalty": 0.01})

    plain = grad(lambda w: F.mse_loss(x @ w, y))(w)
    assert_close(grad(objective)(w), plain + 0.02 * w, rtol=1e-12)


def test_tasks_and_augmented_data() -> None:
    tasks = [tensor(2.0), tensor(3.0), tensor(5.0)]
    assert F.weighted_sum(tasks, [1.0, 0.5, 0.2]).item() == pytest.approx(4.5)
    assert F.weighted_sum(tasks).item() == 10  # 1/N sum L + 1/L sum L(aug): each a mean already
    assert F.weighted_sum({"data": tasks[0], "augmented": tasks[1]}).item() == 5


def test_weighted_sum_of_wrong_parts() -> None:
    one = tensor(1.0)
    with pytest.raises(ValueError, match=r"weights are given for \['b'\].*called \['a'\]"):
        F.weighted_sum({"a": one}, {"b": 1.0})
    with pytest.raises(ValueError, match="2 losses need 2 weights, got 1"):
        F.weighted_sum([one, one], [1.0])
    with pytest.raises(TypeError, match="both have names"):
        F.weighted_sum([one], {"a": 1.0})
    with pytest.raises(ValueError, match="at least one loss"):
        F.weighted_sum({})


# --- canonical links (S17, A18) -------------------------------------------------------------------


TARGETS = {
    "regression": lambda r: r.normal(size=(4, 3)),
    "binary classification": lambda r: r.uniform(size=(4, 3)),
    "multiclass classification": lambda r: r.dirichlet(np.ones(3), size=4),
    "counts": lambda r: r.integers(0, 6, size=(4, 3)).astype(float),
}


@pytest.mark.parametrize("task", nn.CANONICAL_LINKS)
def test_delta_is_prediction_minus_target(task: str) -> None:
    """Through activation and loss, and through the fused loss of the scores."""
    link = nn.CANONICAL_LINKS[task]
    s, y = normal(4, 3), of_array(TARGETS[task](np.random.default_rng(1)))
    a = link.activation(s)
    assert_close(link.delta(s, y), a - y)
    through = grad(lambda s: link.loss(link.activation(s), y))(s)
    fused = grad(lambda s: link.loss_of_scores(s, y))(s)
    assert_close([through, fused], [a - y] * 2, rtol=1e-10, atol=1e-13)
    assert_close(link.loss(a, y), link.loss_of_scores(s, y), rtol=1e-12)


@pytest.mark.parametrize("task", nn.CANONICAL_LINKS)
def test_links_name_a_module_of_their_loss(task: str) -> None:
    link = nn.CANONICAL_LINKS[task]
    s, y = normal(4, 3), of_array(TARGETS[task](np.random.default_rng(1)))
    module = getattr(nn, link.module)(reduction="sum")
    assert_close(module(s, y), link.loss_of_scores(s, y), rtol=1e-12)


def test_output_activation_by_task() -> None:
    s = normal(5)
    tasks = nn.CANONICAL_LINKS
    assert_close(tasks["regression"].activation(s), s)
    assert_close(tasks["binary classification"].activation(s), special.expit(s.numpy()))
    assert_close(tasks["multiclass classification"].activation(s), special.softmax(s.numpy()))
    assert_close(tasks["counts"].activation(s), np.exp(s.numpy()))


def test_softmax_delta_needs_the_whole_jacobian() -> None:
    """dL/da_k f'(s_k) alone is not the delta of softmax outputs."""
    s, y = normal(4), of_array(np.array([0.0, 1.0, 0.0, 0.0]))
    by_a = grad(lambda a: -(y * a.log()).sum())(s.softmax(0))
    jacobian = jacrev(lambda s: s.softmax(0))(s)
    delta = s.softmax(0) - y
    assert_close(by_a @ jacobian, delta, rtol=1e-12)
    diagonal = by_a * jacobian.diagonal()
    assert abs(diagonal - delta).max().item() > 0.05
