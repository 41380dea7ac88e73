"""Quickprop: exact on parabolas, and Fahlman's rules elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import assert_close
from optim.traces import GRADIENTS, START, check_left_alone, check_resume, follow, parameter

import chainrule
from chainrule import nn, optim

MAKE = lambda p: optim.Quickprop(p, lr=0.1)  # noqa: E731


def fahlman(w: Any, gradients: Any, lr: float, mu: float, linear: bool = True) -> np.ndarray:
    """Weight by weight, as the paper's program has it."""
    w, step, last, places = np.array(w), np.zeros(len(w)), np.zeros(len(w)), []
    shrink = mu / (1 + mu)
    for slopes in gradients:
        for i, s in enumerate(slopes):
            d, p, new = step[i], last[i], 0.0
            if d < 0:
                if s > 0 and linear:
                    new -= lr * s
                new += mu * d if s >= shrink * p else d * s / (p - s)
            elif d > 0:
                if s < 0 and linear:
                    new -= lr * s
                new += mu * d if s <= shrink * p else d * s / (p - s)
            else:
                new -= lr * s
            step[i], last[i] = new, s
            w[i] += new
        places.append(w.copy())
    return np.array(places)


@pytest.mark.parametrize("linear", [True, False])
@pytest.mark.parametrize("mu", [1.75, 0.8])
def test_golden_trace(mu: float, linear: bool) -> None:
    p = parameter()
    optimizer = optim.Quickprop([p], lr=0.1, growth=mu, gradient_term=linear)
    assert_close(follow(optimizer, p), fahlman(START, GRADIENTS, 0.1, mu, linear))


def test_weight_decay_and_climbing() -> None:
    p = parameter([1.0])
    optimizer = optim.Quickprop([p], lr=0.1, weight_decay=0.5, maximize=True)
    (first,) = follow(optimizer, p, [[0.3]])
    assert_close(first, np.array([1 - 0.1 * (-0.3 + 0.5)]))


def descend(optimizer: Any, loss: Any, steps: int) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()


@pytest.mark.parametrize("term", [True, False])
def test_exact_on_a_parabola_if_the_first_step_goes_too_far(term: bool) -> None:
    """A gradient step, then one Quickprop step; each weight has its own curvature."""
    curvature, minimum = np.array([2.0, 5.0, 0.9]), np.array([3.0, -1.0, 0.25])
    p = parameter([4.0, 2.0, -1.0])
    optimizer = optim.Quickprop([p], lr=1.3, gradient_term=term)
    a, c = chainrule.tensor(curvature), chainrule.tensor(minimum)
    descend(optimizer, lambda: (a * (p - c) ** 2).sum() / 2, 2)
    assert_close(p, minimum, rtol=1e-14)


def test_exact_on_a_parabola_from_the_near_side_without_the_gradient_term() -> None:
    """The first step has to go far enough for the growth limit: 1 / (1 + 1.75) of the way."""
    for lr, exact in ((0.4, True), (0.3, False)):
        p = parameter([4.0])
        optimizer = optim.Quickprop([p], lr=lr, gradient_term=False)
        descend(optimizer, lambda p=p: ((p - 3) ** 2 / 2).sum(), 2)
        assert (abs(p.item() - 3) < 1e-14) == exact


def test_flat_and_concave_places_take_the_largest_step() -> None:
    """Slopes as steep as before or steeper: no parabola with a minimum ahead."""
    for slopes in ([1.0, 1.0], [1.0, 2.0], [1.0, 0.7], [-1.0, -1.5]):
        p = parameter([0.0])
        optimizer = optim.Quickprop([p], lr=0.1, gradient_term=False)
        first, second = follow(optimizer, p, np.array(slopes)[:, None]).ravel()
        assert second - first == pytest.approx(1.75 * first, rel=1e-12)


def test_a_step_is_never_uphill_nor_too_large() -> None:
    rng = np.random.default_rng(0)
    gradients = rng.normal(size=(300, 50)) * 10 ** rng.uniform(-3, 3, size=(300, 50))
    p = parameter(np.zeros(50))
    places = follow(optim.Quickprop([p], lr=0.0, gradient_term=False), p, gradients[:1])
    assert not places.any()
    p = parameter(np.zeros(50))
    places = follow(optim.Quickprop([p], lr=1e-3, gradient_term=False), p, gradients)
    steps = np.diff(np.concatenate([np.zeros((1, 50)), places]), axis=0)
    assert np.isfinite(places).all()
    assert (steps * gradients <= 0).all()
    last = np.abs(steps[:-1])
    assert (np.abs(steps[1:]) <= 1.75 * last * (1 + 1e-9) + 1e-12 * np.abs(places[1:])).all()


def test_a_weight_that_stopped_starts_again() -> None:
    p = parameter([1.0])
    places = follow(optim.Quickprop([p], lr=0.5), p, [[1.0], [0.0], [0.0], [2.0]]).ravel()
    assert_close(places, np.array([0.5, 0.5, 0.5, -0.5]))


def test_it_learns_a_small_task_faster_than_gradient_descent() -> None:
    x = chainrule.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]).double()
    y = x.sum(1, keepdim=True) >= 1

    def steps(make: Any) -> int:
        chainrule.manual_seed(0)
        model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)).double()
        optimizer = make(model.parameters())
        for t in range(3000):
            optimizer.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(model(x), y.double())
            if loss.item() < 0.01:
                return t
            loss.backward()
            optimizer.step()
        return 3000

    quick = steps(lambda p: optim.Quickprop(p, lr=0.1))
    plain = steps(lambda p: optim.SGD(p, lr=0.1))
    assert quick < plain / 3


# --- state, errors --------------------------------------------------------------------------------


def test_resume() -> None:
    check_resume(MAKE)


def test_a_parameter_without_gradient_is_left_alone() -> None:
    check_left_alone(MAKE)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lr": -0.1}, r"Quickprop: invalid lr: -0.1"),
        ({"growth": 0}, r"Quickprop: invalid growth: 0; it must lie in \(0, infinity\)"),
        ({"weight_decay": -1}, r"Quickprop: invalid weight_decay: -1"),
    ],
)
def test_errors(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        optim.Quickprop([parameter()], **settings)
