"""Eigenvalues, traces, diagonals and densities of spectra from products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import assert_close
from small_network import normal, tensor
from curvature.modules import Case

import chainrule
from chainrule import Tensor, curvature, nn
from chainrule.curvature import Fisher, Hessian, lanczos_eigenpairs, ravel, spectral_density


F = nn.functional


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))


def conv_bn() -> nn.Module:
    layers = [nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Tanh(), nn.AvgPool2d(2), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(8, 2))


def flat(tree: Any) -> np.ndarray:
    return ravel(tree)[0].numpy()


def generator(seed: int = 0) -> chainrule.Generator:
    return chainrule.Generator().manual_seed(seed)


def symmetric(eigenvalues: Any, seed: int = 0) -> tuple[np.ndarray, Callable[[Tensor], Tensor]]:
    """A matrix with these eigenvalues, and its products."""
    q, _ = np.linalg.qr(normal(len(eigenvalues), len(eigenvalues), seed=seed))
    matrix = (q * np.asarray(eigenvalues)) @ q.T
    return matrix, lambda rows: rows @ tensor(matrix)


@pytest.mark.parametrize("which", ["largest", "smallest", "magnitude"])
@pytest.mark.parametrize(
    "values",
    [
        np.linspace(-3, 10, 250),
        np.r_[10.0, 10.0, 10.0, np.linspace(0, 9, 97)],  # an eigenvalue that occurs three times
        np.r_[np.full(60, 1e-3), 5.0, -100.0],
        np.ones(30),
        np.zeros(7),
        np.array([2.0, 1.0, -4.0, 0.5]),
    ],
    ids=["dense", "repeated", "gaps", "identity", "zero", "as many as there are"],
)
def test_lanczos_finds_known_spectra(values: np.ndarray, which: str) -> None:
    matrix, multiply = symmetric(values)
    found = lanczos_eigenpairs(
        multiply, len(values), 4, chainrule.float64, which=which, generator=generator()
    )
    key = {"largest": -values, "smallest": values, "magnitude": -np.abs(values)}[which]
    scale = np.abs(values).max()
    assert found.converged
    assert found.products <= len(values) + 4
    assert_close(
        found.values, values[np.argsort(key, kind="stable")][:4], rtol=0, atol=1e-8 * scale
    )
    v = found.vectors.numpy()
    assert_close(v @ v.T, np.eye(4), atol=1e-12)
    errors = np.linalg.norm(v @ matrix - found.values.numpy()[:, None] * v, axis=1)
    assert_close(found.residuals, errors, rtol=1e-3, atol=1e-11 * scale)


def test_lanczos_restarts_when_its_basis_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.linspace(-1, 10, 300)
    _, multiply = symmetric(values)
    monkeypatch.setattr(curvature.spectrum, "CHUNK_BYTES", 1)  # 32 vectors
    found = lanczos_eigenpairs(multiply, 300, 2, chainrule.float64, generator=generator())
    assert found.converged
    assert found.products > 64
    assert_close(found.values, values[:-3:-1].copy(), rtol=1e-8)
    tight = lanczos_eigenpairs(
        multiply, 300, 2, chainrule.float64, tolerance=1e-10, generator=generator()
    )
    assert float(tight.residuals.max()) <= 1e-9 < float(found.residuals.max())


def test_lanczos_says_if_it_did_not_converge() -> None:
    values = np.linspace(0, 1, 200)
    _, multiply = symmetric(values)
    with pytest.warns(RuntimeWarning, match=r"after \d+ products \d of 2 pairs have a residual"):
        found = lanczos_eigenpairs(multiply, 200, 2, chainrule.float64, max_products=10)
    assert not found.converged
    errors = np.abs(found.values.numpy()[:, None] - values).min(1)
    assert (errors <= found.residuals.numpy()).all()  # an eigenvalue lies within the residual


def test_spectral_density_has_the_moments_of_the_spectrum() -> None:
    values = np.r_[np.zeros(150), np.linspace(0.5, 1.5, 40), np.full(10, 5.0)]
    _, multiply = symmetric(values)
    density = spectral_density(
        multiply, 200, chainrule.float64, samples=60, steps=20, generator=generator()
    )
    assert density.nodes.shape == (60, 20)
    assert_close(density.weights.sum(1), np.ones(60))
    for power in (1, 2, 3):
        assert density.moment(power) == pytest.approx((values**power).mean(), rel=0.1)
    assert density.share(-0.1, 0.1) == pytest.approx(0.75, abs=0.03)
    assert density.share(4.9, 5.1) == pytest.approx(0.05, abs=0.02)
    x = chainrule.linspace(-2, 8, 2001, dtype=chainrule.float64)
    assert float(chainrule.trapezoid(density(x, 0.1), x)) == pytest.approx(1, abs=1e-6)
    exhausted = spectral_density(multiply, 200, chainrule.float64, samples=3, steps=60)
    assert exhausted.share(4.99, 5.01) == pytest.approx(0.05, abs=0.1)
    hessian = Hessian(lambda w: (tensor([1.0, 2.0, 3.0]) * w**2).sum(), params=tensor(normal(3)))
    assert_close(hessian.spectral_density(2, 3).nodes[0], np.array([2.0, 4.0, 6.0]))


@pytest.mark.parametrize("method", ["hutchinson", "hutch++"])
def test_trace_estimates_lie_within_their_errors(method: str) -> None:
    case = Case("LSTM")
    hessian = Hessian(case.model, case.x, case.loss)
    exact = hessian.trace()
    runs = [
        hessian.estimate_trace(60, method=method, generator=generator(seed)) for seed in range(40)
    ]
    z = np.array([(r.value - exact) / r.error for r in runs])
    assert np.abs(z.mean()) < 4 / np.sqrt(40)
    assert (np.abs(z) < 3).mean() > 0.9
    assert all(r.products == 60 for r in runs)
    again = hessian.estimate_trace(60, method=method, generator=generator(0))
    assert again.value == runs[0].value


def test_hutch_plus_plus_is_exact_where_few_eigenvalues_are() -> None:
    _, multiply = symmetric(np.r_[np.zeros(90), np.arange(10.0)])
    found = curvature.hutch_plus_plus(multiply, 100, 60, chainrule.float64)
    assert found.value == pytest.approx(45, abs=1e-9)
    assert found.error < 1e-9
    plain = curvature.hutchinson_trace(multiply, 100, 60, chainrule.float64)
    assert plain.error > 0.1


def test_diagonal_estimates_lie_within_their_errors() -> None:
    case = Case("GRU")
    hessian = Hessian(case.model, case.x, case.loss)
    fisher = Fisher(case.model, case.x, "categorical")
    for matrix in (hessian, fisher):
        exact = flat(matrix.diagonal())
        z = []
        for seed in range(10):
            found = matrix.estimate_diagonal(200, generator=generator(seed))
            z.append((flat(found.value) - exact) / flat(found.error))
        assert np.abs(np.mean(z, 0)).max() < 5 / np.sqrt(10)
        assert np.std(z) == pytest.approx(1, abs=0.2)


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli", "categorical"])
def test_fisher_diagonal_by_drawn_targets(likelihood: str) -> None:
    """All entries have a relative error of about sqrt(2 / samples)."""
    case = Case("mlp", samples=20)
    settings: Any = {"variance": 0.3} if likelihood == "gaussian" else {}
    fisher = Fisher(case.model, case.x, likelihood, **settings)
    exact = flat(fisher.diagonal())
    found = fisher.estimate_diagonal(2000, generator=generator())
    assert (flat(found.value) >= 0).all()
    assert np.abs(flat(found.value) / exact - 1).max() < 5 * np.sqrt(2 / 2000)
    assert_close(
        fisher.matrix(),
        curvature.fisher(case.model, case.x, likelihood, **settings).numpy(),
        atol=1e-12,
    )


def test_condition_numbers() -> None:
    scale = tensor([1.0, 4.0, 50.0])
    bowl = Hessian(lambda w: (scale * w**2).sum() / 2, params=tensor(normal(3)))
    assert bowl.condition_number() == pytest.approx(50)
    assert bowl.condition_number(method="lanczos") == pytest.approx(50)
    assert bowl.condition_number(damping=10.0) == pytest.approx(60 / 11)
    saddle = Hessian(lambda w: (tensor([-1.0, 2.0]) * w**2).sum(), params=tensor(normal(2)))
    assert saddle.condition_number() == pytest.approx(2)
    with pytest.raises(ValueError, match="reach from -2 to 4"):
        saddle.condition_number(method="lanczos")
    flat_direction = Hessian(lambda w: w.sum() ** 2, params=tensor(normal(3)))
    assert flat_direction.condition_number() == np.inf
    assert flat_direction.condition_number(damping=1.0) == pytest.approx(7)
