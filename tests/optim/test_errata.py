"""The update rules of the courses in their corrected forms: the values their errata give.

Each docstring names the erratum; ``docs/errata.md`` says what is printed and what is right.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import chainrule
from chainrule import Tensor, optim


def path(
    make: Callable[[list[Tensor]], Any], gradients: Sequence[float], start: float = 0.0
) -> tuple[list[float], Any]:
    """Where one weight goes under given gradients, and the optimizer's state of it."""
    w = chainrule.tensor(start, dtype=chainrule.float64, requires_grad=True)
    optimizer = make([w])
    places = []
    for g in gradients:
        w.grad = chainrule.tensor(g, dtype=chainrule.float64)
        optimizer.step()
        places.append(w.item())
    return places, optimizer.state[w]


def descended(optimizer: Any, w: Tensor, curvature: Any, steps: int) -> None:
    """Steps on the parabola curvature w^2 / 2."""
    for _ in range(steps):
        w.grad = curvature * w.detach()
        optimizer.step()


# --- momentum -------------------------------------------------------------------------------------


def test_dampening_weakens_the_gradient_after_the_first_step() -> None:
    """Erratum 22: the factor is 1 - tau, not 1 - <tau - 1>, and the first step is spared it."""
    places, _ = path(lambda p: optim.SGD(p, lr=1.0, momentum=0.7, dampening=0.6), [1.0] * 3)
    assert places == pytest.approx([-1.0, -2.1, -3.27])


def test_the_learning_rate_is_applied_once() -> None:
    """Erratum 23: a first step of eta g = 0.1, not eta^2 g = 0.01."""
    places, _ = path(lambda p: optim.SGD(p, lr=0.1, momentum=0.9), [1.0, 0.0])
    assert places == pytest.approx([-0.1, -0.19])


def test_nesterov_looks_ahead_from_the_last_point() -> None:
    """Errata 24 and 25: v <- 0.9 v + 0.1 f'(x - 0.9 v), x <- x - v on x^2 / 2, from 1, reaches
    -0.0052 after 50 steps; the printed forms reach -0.0990 and 0.0928. The optimizer keeps the
    point it looks ahead to, x - 0.9 v."""
    w = chainrule.tensor(1.0, dtype=chainrule.float64, requires_grad=True)
    optimizer = optim.SGD([w], lr=0.1, momentum=0.9, nesterov=True)
    descended(optimizer, w, 1.0, 50)
    x = w.item() + 0.9 * 0.1 * optimizer.state[w]["momentum_buffer"].item()
    assert x == pytest.approx(-0.0052191, abs=1e-7)


@pytest.mark.parametrize(
    ("momentum", "rate"),
    [(0.0, 0.980), (0.1 / 11, 0.980), (9 / 11, 0.905), ((9 / 11) ** 2, 0.825)],
    ids=["none", "as printed", "root", "squared"],
)
def test_optimal_momentum_of_the_heavy_ball(momentum: float, rate: float) -> None:
    """Erratum 26: curvatures 1 and 100; the best rate of convergence over all learning rates."""
    curvature = chainrule.tensor([1.0, 100.0], dtype=chainrule.float64)
    rates = chainrule.linspace(0.001, 0.04, 400, dtype=chainrule.float64)[:, None]
    w = chainrule.ones(400, 2, dtype=chainrule.float64).requires_grad_()
    optimizer = optim.SGD([w], lr=rates, momentum=momentum)
    optimizer.check_finite = False  # some of the rates are too large
    sizes = []
    for steps in (200, 1000):
        descended(optimizer, w, curvature, steps)
        buffer = optimizer.state[w].get("momentum_buffer", chainrule.zeros_like(w.detach()))
        sizes.append((w.detach().abs() + rates * buffer.abs()).amax(1).numpy())
    found = float(np.nanmin((sizes[1] / sizes[0]) ** (1 / 1000)))
    assert found == pytest.approx(rate, abs=0.003)


def test_averaged_momentum_is_momentum_with_a_smaller_rate() -> None:
    """Erratum 116: eta' = +eta (1 - mu); with the printed minus sign it would climb."""
    gradients = [1.0, -0.5, 2.0, 0.3]
    averaged, _ = path(lambda p: optim.AveragedMomentum(p, lr=0.01, momentum=0.9), gradients)
    velocity, _ = path(lambda p: optim.SGD(p, lr=0.01 * (1 - 0.9), momentum=0.9), gradients)
    assert averaged == pytest.approx(velocity, rel=1e-12)
    assert averaged[0] == pytest.approx(-0.001)


# --- rates from the squares of gradients ----------------------------------------------------------


def test_adagrad_counts_the_current_gradient() -> None:
    """Errata 27, 28 and 122: eta g / sqrt(g^2) = eta at first, not eta g / sqrt(eps) = 200 nor
    eta g / G; so the effective rate is 0.01 / sqrt(4) = 0.005."""
    (first,), _ = path(lambda p: optim.Adagrad(p, lr=0.01), [2.0])
    assert first == pytest.approx(-0.01)
    assert -first / 2.0 == pytest.approx(0.005)


def test_rmsprop_averages_squares() -> None:
    """Erratum 29: of constant g^2 = 4 the average is 4, not 3596.8 as from the cumulative sum."""
    _, state = path(lambda p: optim.RMSprop(p), [2.0] * 1000)
    assert state["square_avg"].item() == pytest.approx(4 * (1 - 0.99**1000), rel=1e-12)
    assert state["square_avg"].item() == pytest.approx(4.0, rel=1e-4)


def test_rmsprop_without_memory_is_the_sign_and_not_adagrad() -> None:
    """Erratum 119: 1, -1, 1 for 3, -1, 0.5; AdaGrad, of summed squares, takes 1, -0.316, 0.156."""
    gradients = [3.0, -1.0, 0.5]
    signs, _ = path(lambda p: optim.RMSprop(p, lr=1.0, alpha=0.0, eps=0.0), gradients)
    sums, _ = path(lambda p: optim.Adagrad(p, lr=1.0, eps=0.0), gradients)
    assert np.diff([0.0, *signs]).tolist() == pytest.approx([-1.0, 1.0, -1.0])
    steps = [-3 / 3, 1 / math.sqrt(10), -0.5 / math.sqrt(10.25)]
    assert np.diff([0.0, *sums]).tolist() == pytest.approx(steps)
    assert steps == pytest.approx([-1.0, 0.316, -0.156], abs=5e-4)


def test_adadelta_averages_squares_of_steps_and_goes_down() -> None:
    """Errata 30 and 120: the mean of u^2, the new u, and a minus sign."""
    places, _ = path(optim.Adadelta, [1.0, 0.5, -0.3, 0.8])
    assert places == pytest.approx([-0.0032, -0.0052, -0.0039, -0.0069], abs=5e-5)


def test_adadelta_divides_by_the_curvature() -> None:
    """Erratum 31: RMS(step) / RMS(g) stands for the inverse of the curvature, not for it: a loss
    1000 times as steep makes the same steps, and that ratio is 1000 times smaller."""

    def run(curvature: float) -> tuple[float, float]:
        w = chainrule.tensor(1.0, dtype=chainrule.float64, requires_grad=True)
        optimizer = optim.Adadelta([w], eps=1e-12)
        descended(optimizer, w, curvature, 50)
        state = optimizer.state[w]
        return w.item(), math.sqrt(state["acc_delta"].item() / state["square_avg"].item())

    (flat, ratio), (steep, smaller) = run(1.0), run(1000.0)
    assert steep == pytest.approx(flat, rel=1e-9)
    assert ratio / smaller == pytest.approx(1000.0, rel=1e-6)


# --- Adam -----------------------------------------------------------------------------------------


def test_adam_averages_the_current_square() -> None:
    """Erratum 32: V = 4 (1 - 0.999^t) for g^2 = 4, not 1473 after 1000 steps."""
    _, state = path(optim.Adam, [2.0] * 1000)
    assert state["exp_avg_sq"].item() == pytest.approx(4 * (1 - 0.999**1000), rel=1e-10)


def test_bias_correction_depends_on_the_step() -> None:
    """Errata 33 and 121: under a constant gradient every step is eta, the first one too (not 3.16
    eta, nor 1.34, 2.06, 1.02 times eta at steps 2, 10, 100)."""
    places, _ = path(lambda p: optim.Adam(p, lr=0.1), [2.0] * 2000)
    steps = -np.diff([0.0, *places])
    assert steps[[0, 1, 9, 99, 1999]].tolist() == pytest.approx([0.1] * 5, rel=1e-6)


@pytest.mark.parametrize(("name", "factor"), [("Adam", 1.0), ("RMSprop", 0.1), ("Adagrad", 1.0)])
def test_epsilon_beside_or_under_the_root(name: str, factor: float) -> None:
    """Erratum 34: a convention; beside the root as in PyTorch, or under it with eps_in_root.
    ``factor`` is what the rule makes of the first |g|."""
    g, eps = 1e-8, 1e-8

    def first(inside: bool) -> float:
        kind = getattr(optim, name)
        (place,), _ = path(lambda p: kind(p, lr=1.0, eps=eps, eps_in_root=inside), [g])
        return -place

    assert first(False) == pytest.approx(g / (factor * g + eps), rel=1e-9)
    assert first(True) == pytest.approx(g / math.sqrt((factor * g) ** 2 + eps), rel=1e-9)


def test_decoupled_decay_shrinks() -> None:
    """Erratum 35: - eta lambda theta: 1 -> 0.85; the printed + lambda w gives 1.4."""
    (place,), _ = path(lambda p: optim.AdamW(p, lr=0.1, weight_decay=0.5), [1.0], start=1.0)
    assert place == pytest.approx(0.85, abs=1e-8)
