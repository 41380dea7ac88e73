"""Delta-delta and delta-bar-delta against their equations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import assert_close
from optim.traces import GRADIENTS, START, check_left_alone, check_resume, follow, parameter

import chainrule
from chainrule import optim

MAKERS = {
    "DeltaDelta": lambda p: optim.DeltaDelta(p, lr=0.1, gamma=0.05),
    "DeltaBarDelta": lambda p: optim.DeltaBarDelta(p, lr=0.1, kappa=0.02),
}
each = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


# --- delta-delta ----------------------------------------------------------------------------------


@pytest.mark.parametrize("maximize", [False, True])
def test_delta_delta(maximize: bool) -> None:
    gamma, wd = 0.05, 0.2
    p = parameter()
    w, r, last, expected = START.copy(), np.full(4, 0.1), np.zeros(4), []
    for raw in -GRADIENTS if maximize else GRADIENTS:
        g = raw + wd * w
        r = r + gamma * g * last
        w, last = w - r * g, g
        expected.append(w)
    optimizer = optim.DeltaDelta([p], 0.1, gamma, wd, maximize=maximize)
    assert_close(follow(optimizer, p), np.array(expected))
    assert_close(optimizer.state[p]["step_size"], r)


def test_delta_delta_is_descent_on_the_rates() -> None:
    """dL/dr of the loss after the step is -g(t) g(t-1)."""
    a, r, w = 3.0, 0.1, 1.7  # L = a w^2 / 2
    before, h = a * w, 1e-6
    loss = lambda rate: a * (w - rate * before) ** 2 / 2  # noqa: E731
    slope = (loss(r + h) - loss(r - h)) / (2 * h)
    p = parameter([w])
    optimizer = optim.DeltaDelta([p], lr=r, gamma=1.0)
    follow(optimizer, p, [[before], [a * (w - r * before)]])
    assert_close(optimizer.state[p]["step_size"], np.array([r - slope]), rtol=1e-8)


def test_a_rate_of_delta_delta_can_turn_negative() -> None:
    p = parameter([0.0])
    optimizer = optim.DeltaDelta([p], lr=0.1, gamma=0.05)
    follow(optimizer, p, [[2.0], [-2.0]])
    assert_close(optimizer.state[p]["step_size"], np.array([-0.1]))
    assert_close(p, np.array([-0.2 - 0.2]))  # the second step went uphill


# --- delta-bar-delta ------------------------------------------------------------------------------


@pytest.mark.parametrize("maximize", [False, True])
def test_delta_bar_delta(maximize: bool) -> None:
    kappa, phi, theta, wd = 0.02, 0.3, 0.6, 0.1
    p = parameter()
    w, r, mean, expected = START.copy(), np.full(4, 0.1), np.zeros(4), []
    for raw in -GRADIENTS if maximize else GRADIENTS:
        g = raw + wd * w
        for i in range(4):
            if mean[i] * g[i] > 0:
                r[i] += kappa
            elif mean[i] * g[i] < 0:
                r[i] -= phi * r[i]
        w = w - r * g
        mean = (1 - theta) * g + theta * mean
        expected.append(w)
    optimizer = optim.DeltaBarDelta([p], 0.1, kappa, phi, theta, wd, maximize=maximize)
    assert_close(follow(optimizer, p), np.array(expected))
    assert_close(optimizer.state[p]["step_size"], r)
    assert_close(optimizer.state[p]["exp_avg"], mean)


def test_alternating_gradients_lower_the_rate() -> None:
    """The printed rule compares g(t) with a mean that holds g(t), and raises the rate always."""
    p = parameter([0.0])
    optimizer = optim.DeltaBarDelta([p], lr=0.1, kappa=0.01, phi=0.1, theta=0.5)
    rates, printed, mean = [0.1], 0, 0.0
    for t in range(100):
        g = (-1.0) ** t
        follow(optimizer, p, [[g]])
        rates.append(optimizer.state[p]["step_size"].item())
        mean = 0.5 * g + 0.5 * mean
        printed += mean * g > 0
    assert printed == 100
    assert int((np.diff(rates) < 0).sum()) == 99


def test_rates_turn_a_valley_into_a_bowl() -> None:
    """On w1^2 + 5 w2^2 one rate for both weights is slower than rates that are learned."""
    steps = {}
    for name in ("SGD", "DeltaBarDelta"):
        p = parameter([10.0, 1.0])
        optimizer = optim.SGD([p], lr=0.02) if name == "SGD" else optim.DeltaBarDelta([p], lr=0.02)
        steps[name] = 0
        while p.detach().abs().max() > 1e-3:
            optimizer.zero_grad()
            (p[0] ** 2 + 5 * p[1] ** 2).backward()
            optimizer.step()
            steps[name] += 1
    assert steps["DeltaBarDelta"] < 0.6 * steps["SGD"]


# --- both -----------------------------------------------------------------------------------------


@each
def test_rates_start_from_lr(make: Any) -> None:
    p = parameter()
    optimizer = make([p])
    follow(optimizer, p, GRADIENTS[:1])
    assert_close(optimizer.state[p]["step_size"], np.full(4, 0.1), 0, 0)


@pytest.mark.parametrize("cls", [optim.DeltaDelta, optim.DeltaBarDelta])
def test_rates_may_start_apart(cls: Any) -> None:
    rates = np.array([0.1, 0.2, 0.3, 0.4])
    p = parameter()
    optimizer = cls([p], lr=chainrule.tensor(rates))
    assert_close(follow(optimizer, p, GRADIENTS[:1])[0], START - rates * GRADIENTS[0])


@each
def test_complex_parameters_are_pairs_of_real_ones(make: Any) -> None:
    z = chainrule.tensor(START[:2] + 1j * START[2:], requires_grad=True)
    optimizer = make([z])
    for g in GRADIENTS:
        z.grad = chainrule.tensor(g[:2] + 1j * g[2:])
        optimizer.step()
    p = parameter()
    last = follow(make([p]), p)[-1]
    assert_close(z, last[:2] + 1j * last[2:])


@each
def test_resume(make: Any) -> None:
    check_resume(make)


@each
def test_a_parameter_without_gradient_is_left_alone(make: Any) -> None:
    check_left_alone(make)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: optim.DeltaDelta(p, lr=-0.1), r"DeltaDelta: invalid lr: -0.1"),
        (lambda p: optim.DeltaDelta(p, gamma=-1.0), r"DeltaDelta: invalid gamma: -1.0; it must"),
        (lambda p: optim.DeltaBarDelta(p, kappa=-1.0), r"DeltaBarDelta: invalid kappa: -1.0"),
        (lambda p: optim.DeltaBarDelta(p, phi=1.0), r"invalid phi: 1.0; it must lie in \[0.0, 1.0"),
        (lambda p: optim.DeltaBarDelta(p, theta=1.2), r"invalid theta: 1.2"),
    ],
)
def test_errors(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call([parameter()])
