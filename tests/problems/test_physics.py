"""Problems of physics: the flow of Darcy, the oscillator of Bouc and Wen."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import scipy.special
import scipy.stats

import chainrule
from chainrule import nn, problems
from chainrule.autograd import gradcheck


F64 = chainrule.float64


def seeded(seed: int = 0) -> chainrule.Generator:
    return chainrule.Generator().manual_seed(seed)


# --- Darcy ----------------------------------------------------------------------------------------


def test_darcy_discharge() -> None:
    p = problems.darcy(50, 4, (1.0, 2.0, 5.0), 3.0, 2.0, 8.0, seeded(), F64)
    k = p.inputs.numpy()
    assert set(k.ravel()) == {1.0, 2.0, 5.0}
    np.testing.assert_allclose(p.targets.numpy(), k.sum(1) * 3 * 2 / 8, rtol=1e-14)
    solved = np.linalg.lstsq(k, p.targets.numpy(), rcond=None)[0]
    np.testing.assert_allclose(p.minimizer.numpy(), solved, rtol=1e-12)
    assert p.known["entropy"] / math.log(3) == pytest.approx(4)
    counts = np.bincount(
        problems.darcy(6000, 5, (1, 2, 3), generator=seeded()).inputs.numpy().astype(int).ravel()
    )[1:]
    assert counts.min() > 9700


def test_darcy_configurations_are_counted() -> None:
    """(N + b - 1)! / (N! (b - 1)!), by trying all."""
    for channels, values in [(2, 3), (4, 3), (5, 2), (3, 5)]:
        tried = {tuple(sorted(c)) for c in itertools.product(range(values), repeat=channels)}
        assert problems.configurations(channels, values) == len(tried)
    assert [problems.configurations(2, 3), problems.configurations(4, 3)] == [6, 15]
    assert problems.darcy(channels=4).known["configurations"] == 15


def test_darcy_arrangements_and_their_approximation() -> None:
    """N! / prod b_i!, and e^{N H} / sqrt((2 pi N)^(b - 1) prod f_i) for large N."""
    ways = sum(sorted(c) == [0, 0, 1, 2] for c in itertools.product(range(3), repeat=4))
    assert math.exp(problems.arrangements([2, 1, 1])) == pytest.approx(ways)
    counts = [300, 180, 120]
    exact = math.lgamma(601) - sum(math.lgamma(c + 1) for c in counts)
    assert problems.arrangements(counts) == pytest.approx(exact, rel=1e-14)
    assert exact == pytest.approx(problems.arrangements(counts, approximate=True), abs=5e-3)
    assert exact == pytest.approx(611.31, abs=5e-3)


def test_darcy_probability_of_the_mean_composition_tends_to_zero() -> None:
    """p = N_Q prod p_i^{b_i} falls like N^{-(b - 1) / 2}; only ln p / N tends to 0."""
    p = [0.5, 0.3, 0.2]

    def log_probability(n: int) -> float:
        counts = [round(n * q) for q in p]
        return problems.arrangements(counts) + sum(
            c * math.log(q) for c, q in zip(counts, p, strict=True)
        )

    values = {n: log_probability(n) for n in (60, 600, 6000)}
    assert math.exp(values[60]) == pytest.approx(0.0151, abs=5e-4)
    assert math.exp(values[600]) == pytest.approx(0.0015, abs=5e-5)
    for n in (60, 600):
        assert values[n] - values[10 * n] == pytest.approx(math.log(10), rel=0.01)
    assert abs(values[6000] / 6000) < 0.002


# --- Bouc-Wen -------------------------------------------------------------------------------------


def reference_response(
    ground: np.ndarray, dt: float, floors: int, **p: float
) -> tuple[np.ndarray, np.ndarray]:
    """SciPy's integration of the equations as they are written, matrices and all."""
    difference = np.eye(floors) - np.eye(floors, k=-1)
    times = dt * np.arange(len(ground))

    def derivative(t: float, s: np.ndarray) -> np.ndarray:
        _, v, f = s.reshape(3, floors)
        drift = difference @ v
        force = difference.T @ (p["damping"] * drift + f)
        rate = (
            p["stiffness"] * drift
            - p["alpha"] * np.abs(drift) * np.abs(f) ** (p["n"] - 1) * f
            - p["beta"] * drift * np.abs(f) ** p["n"]
        )
        acceleration = -force / p["mass"] - np.interp(t, times, ground)
        return np.concatenate([v, acceleration, rate])

    s = scipy.integrate.solve_ivp(
        derivative,
        (0, times[-1]),
        np.zeros(3 * floors),
        t_eval=times,
        rtol=1e-9,
        atol=1e-12,
        max_step=dt / 2,
    ).y
    return s[:floors].T, s[2 * floors :].T


OSCILLATOR = {"mass": 1.5, "damping": 0.8, "stiffness": 400.0, "alpha": 3.0, "beta": 6.0, "n": 1.5}


def test_bouc_wen_response_is_scipys() -> None:
    ground = problems.ground_motion(2, 60, generator=seeded(), dtype=F64)
    y, f = problems.bouc_wen_response(ground, 0.02, 3, substeps=8, **OSCILLATOR)
    assert y.shape == f.shape == (2, 60, 3)
    for i in range(2):
        expected = reference_response(ground[i].numpy(), 0.02, 3, **OSCILLATOR)
        np.testing.assert_allclose(y[i].numpy(), expected[0], atol=2e-4 * np.abs(expected[0]).max())
        np.testing.assert_allclose(f[i].numpy(), expected[1], atol=2e-4 * np.abs(expected[1]).max())


def test_default_steps_are_fine_enough_or_it_says_so() -> None:
    p = problems.bouc_wen(8, 120, generator=seeded(2), dtype=F64)
    fine = 1000 * problems.bouc_wen_response(p.inputs[:, :, 0], substeps=12)[0]
    assert (p.targets - fine).abs().max().item() < 1e-3 * fine.abs().max().item()
    fast = problems.ground_motion(1, 50, peak=3000.0, generator=seeded(), dtype=F64)
    with pytest.raises(RuntimeError, match="became unstable; 1 substeps are too few"):
        problems.bouc_wen_response(fast, substeps=1)


def test_without_hysteresis_it_is_a_linear_oscillator() -> None:
    """A constant ground acceleration g: y = -(g / w^2) (1 - e^{-z w t} (cos + z w / v sin))."""
    ground = chainrule.full((1, 200), 2.0, dtype=F64)
    y, f = problems.bouc_wen_response(
        ground, 0.01, 1, mass=2.0, damping=4.0, stiffness=200.0, alpha=0.0, beta=0.0, substeps=4
    )
    w, z = 10.0, 0.1
    v, t = w * math.sqrt(1 - z * z), 0.01 * np.arange(200)
    free = np.exp(-z * w * t) * (np.cos(v * t) + z * w / v * np.sin(v * t))
    np.testing.assert_allclose(y[0, :, 0].numpy(), -0.02 * (1 - free), atol=1e-9)
    np.testing.assert_allclose(f.numpy(), 200 * y.numpy(), atol=1e-9)


def test_bouc_wen_forces_are_bounded_and_leave_a_permanent_drift() -> None:
    ground = problems.ground_motion(4, 150, peak=20.0, generator=seeded(1), dtype=F64)
    y, f = problems.bouc_wen_response(ground)
    bound = (400 / (3.125 + 3.125)) ** 0.5
    assert bound == 8
    assert 0.99 * bound < f.abs().max().item() <= bound * (1 + 1e-6)
    assert (f[..., 0] - 400 * y[..., 0]).abs().max().item() > bound  # it does not come back


def test_bouc_wen_is_the_form_with_consistent_units() -> None:
    """|f|^n: with forces c times larger, k becomes c k, alpha and beta c^(1 - n) times as large."""
    ground = problems.ground_motion(1, 60, generator=seeded(), dtype=F64)
    c, n = 3.0, 2.0
    y, f = problems.bouc_wen_response(ground)
    scaled = problems.bouc_wen_response(
        ground,
        mass=c,
        damping=0.8 * c,
        stiffness=400 * c,
        alpha=3.125 * c ** (1 - n),
        beta=3.125 * c ** (1 - n),
        n=n,
    )
    np.testing.assert_allclose(scaled[0].numpy(), y.numpy(), rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(scaled[1].numpy(), c * f.numpy(), rtol=1e-9, atol=1e-12)


def test_bouc_wen_parameters_have_gradients() -> None:
    ground = problems.ground_motion(1, 8, generator=seeded(), dtype=F64)
    k = chainrule.tensor([300.0, 400.0], dtype=F64).requires_grad_()
    a = chainrule.tensor(3.0, dtype=F64).requires_grad_()

    def last(k: Any, a: Any) -> Any:
        return 1000 * problems.bouc_wen_response(ground, 0.02, 2, stiffness=k, alpha=a)[0][0, -1]

    assert gradcheck(last, (k, a), eps=1e-4, atol=1e-6)
    assert all(g.abs().min() > 0 for g in chainrule.autograd.grad(last(k, a).sum(), (k, a)))


def test_bouc_wen_sequences() -> None:
    p = problems.bouc_wen(3, 80, peak=2.0, floors=2, generator=seeded(), dtype=F64)
    assert p.inputs.shape == (3, 80, 1)
    assert p.targets.shape == (3, 80, 2)
    assert p.targets[:, 0].abs().max().item() == 0
    np.testing.assert_allclose(p.rule(p.inputs).numpy(), p.targets.numpy(), rtol=1e-12)
    lstm = nn.LSTM(1, 4, batch_first=True).double()
    assert lstm(p.inputs)[0].shape == (3, 80, 4)


def test_ground_motion_has_peak_envelope_and_spectrum() -> None:
    a = problems.ground_motion(200, 1024, 0.02, 5.0, seeded(), F64).numpy()
    np.testing.assert_allclose(np.abs(a).max(1), 5.0)
    energy = (a**2).mean(0)
    assert energy[0] == 0
    assert energy[250:500].mean() > 5 * energy[-100:].mean()
    power = (np.abs(np.fft.rfft(a)) ** 2).mean(0)
    frequency = 2 * np.pi * np.fft.rfftfreq(1024, 0.02)
    assert 8 < frequency[power.argmax()] < 16  # the soil's, 15 rad/s, damped
    assert power[frequency > 60].mean() < 0.1 * power.max()
