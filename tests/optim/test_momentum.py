"""SGDW, averaged momentum and Lion against their equations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import assert_close
from optim.traces import GRADIENTS, START, check_left_alone, check_resume, follow, parameter

import chainrule
from chainrule import optim

MAKERS = {
    "SGDW": lambda p: optim.SGDW(p, lr=0.1, momentum=0.9, weight_decay=0.2),
    "AveragedMomentum": lambda p: optim.AveragedMomentum(p, lr=0.1),
    "Lion": lambda p: optim.Lion(p, lr=0.1, weight_decay=0.1),
}
each = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


# --- SGDW -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("maximize", [False, True])
def test_sgdw(nesterov: bool, maximize: bool) -> None:
    lr, mu, wd = 0.1, 0.9, 0.3
    p = parameter()
    optimizer = optim.SGDW([p], lr, mu, weight_decay=wd, nesterov=nesterov, maximize=maximize)
    w, b, expected = START.copy(), np.zeros(4), []
    for g in -GRADIENTS if maximize else GRADIENTS:
        b = mu * b + g
        w = (1 - lr * wd) * w - lr * (g + mu * b if nesterov else b)
        expected.append(w)
    assert_close(follow(optimizer, p), np.array(expected))


def test_sgdw_dampening_starts_at_the_second_step() -> None:
    lr, mu, tau, wd = 0.1, 0.5, 0.4, 0.3
    p = parameter()
    w, expected = START.copy(), []
    b = np.zeros(4)
    for t, g in enumerate(GRADIENTS):
        b = g if t == 0 else mu * b + (1 - tau) * g
        w = (1 - lr * wd) * w - lr * b
        expected.append(w)
    assert_close(follow(optim.SGDW([p], lr, mu, tau, wd), p), np.array(expected))


def test_sgdw_decay_does_not_pass_through_the_momentum() -> None:
    """Without gradients the weights shrink by one factor at each step; those of SGD do not."""
    for cls, constant in ((optim.SGDW, True), (optim.SGD, False)):
        p = parameter()
        w = follow(cls([p], lr=0.1, momentum=0.9, weight_decay=0.5), p, np.zeros((5, 4)))
        factors = (w / np.concatenate([START[None], w[:-1]]))[:, 0]
        assert np.allclose(factors, 0.95, rtol=1e-12) == constant


def test_sgdw_with_a_rate_for_each_weight() -> None:
    rates = np.array([0.1, 0.2, 0.0, 0.4])
    p = parameter()
    optimizer = optim.SGDW([p], lr=[chainrule.tensor(rates)], weight_decay=0.5)
    (w,) = follow(optimizer, p, GRADIENTS[:1])
    assert_close(w, (1 - rates * 0.5) * START - rates * GRADIENTS[0])


# --- averaged momentum ----------------------------------------------------------------------------


def test_averaged_momentum_is_the_closed_form() -> None:
    """m(t) = (1 - mu) sum over i of mu^(t - i) g_i"""
    lr, mu = 0.1, 0.8
    p = parameter()
    optimizer = optim.AveragedMomentum([p], lr, mu)
    places = follow(optimizer, p)
    means = [
        (1 - mu) * sum(mu ** (t - i) * GRADIENTS[i] for i in range(t + 1))
        for t in range(len(GRADIENTS))
    ]
    assert_close(places, START - lr * np.cumsum(means, axis=0))
    assert_close(optimizer.state[p]["momentum_buffer"], means[-1])


def test_averaged_momentum_with_decay_uphill() -> None:
    lr, mu, wd = 0.1, 0.8, 0.3
    p = parameter()
    w, m, expected = START.copy(), np.zeros(4), []
    for g in GRADIENTS:
        m = mu * m + (1 - mu) * (-g + wd * w)
        w = w - lr * m
        expected.append(w)
    optimizer = optim.AveragedMomentum([p], lr, mu, wd, maximize=True)
    assert_close(follow(optimizer, p), np.array(expected))


def test_averaged_momentum_is_sgd_with_a_smaller_rate() -> None:
    """Up to the rate; SGD's buffer starts from the first gradient, which is the same thing."""
    p, q = parameter(), parameter()
    averaged = follow(optim.AveragedMomentum([p], lr=0.5, momentum=0.9), p)
    assert_close(averaged, follow(optim.SGD([q], lr=0.05, momentum=0.9), q))


# --- Lion -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("maximize", [False, True])
def test_lion(maximize: bool) -> None:
    lr, b1, b2, wd = 0.1, 0.7, 0.9, 0.2
    p = parameter()
    w, m, expected = START.copy(), np.zeros(4), []
    for g in -GRADIENTS if maximize else GRADIENTS:
        w = (1 - lr * wd) * w - lr * np.sign(b1 * m + (1 - b1) * g)
        m = b2 * m + (1 - b2) * g
        expected.append(w)
    optimizer = optim.Lion([p], lr, (b1, b2), wd, maximize=maximize)
    assert_close(follow(optimizer, p), np.array(expected))
    assert_close(optimizer.state[p]["exp_avg"], m)


def test_lion_moves_every_weight_by_lr() -> None:
    p = parameter()
    places = np.concatenate([START[None], follow(optim.Lion([p], lr=0.01), p)])
    assert_close(np.abs(np.diff(places, axis=0)), np.full((12, 4), 0.01), rtol=1e-9)


# --- all ------------------------------------------------------------------------------------------


@each
def test_resume(make: Any) -> None:
    check_resume(make)


@each
def test_a_parameter_without_gradient_is_left_alone(make: Any) -> None:
    check_left_alone(make)


@each
def test_float32_stays_float32(make: Any) -> None:
    p = chainrule.tensor(START.astype(np.float32), requires_grad=True)
    optimizer = make([p])
    p.grad = chainrule.tensor(GRADIENTS[0].astype(np.float32))
    optimizer.step()
    assert {p.dtype, *[s.dtype for s in optimizer.state[p].values()]} == {chainrule.float32}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: optim.SGDW(p, lr=-1.0), r"SGDW: invalid lr: -1.0; it must lie in \[0"),
        (lambda p: optim.SGDW(p, weight_decay=-0.1), r"invalid weight_decay: -0.1"),
        (lambda p: optim.SGDW(p, nesterov=True), r"Nesterov momentum requires a momentum"),
        (
            lambda p: optim.AveragedMomentum(p, momentum=1.0),
            r"AveragedMomentum: invalid momentum: 1.0; it must lie in \[0.0, 1.0\)",
        ),
        (lambda p: optim.AveragedMomentum(p, weight_decay=-1), r"invalid weight_decay: -1"),
        (lambda p: optim.Lion(p, betas=(0.9, 1.5)), r"Lion: invalid betas: \(0.9, 1.5\)"),
        (lambda p: optim.Lion(p, betas=(0.9,)), r"Lion: betas must be a pair of numbers"),
        (lambda p: optim.Lion([{"params": p, "weight_decay": -2}]), r"invalid weight_decay: -2"),
    ],
)
def test_errors(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call([parameter()])
