"""Soft weight sharing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
from regularize.networks import F64, network, numeric, weights
from regularize.problem import problem

import chainrule
from chainrule import models, nn, optim, regularize, train


def mixture(**settings: Any) -> regularize.SoftWeightSharing:
    sharing = regularize.SoftWeightSharing(0.2, 3, dtype=F64, min_sigma=0.01, **settings)
    rng = np.random.default_rng(0)
    for p in sharing.parameters():
        p.data = p.data + chainrule.tensor(rng.normal(size=3) * 0.3)
    return sharing


def test_soft_sharing_is_the_likelihood_of_a_mixture() -> None:
    sharing, model = mixture(), network()
    alpha, mu, sigma = (t.detach().numpy() for t in (sharing.alpha, sharing.mu, sharing.sigma))
    w = weights(model)
    each = alpha * scipy.stats.norm.pdf(w[:, None], mu, sigma)
    assert float(sharing(model)) == pytest.approx(-0.2 * np.log(each.sum(1)).sum(), rel=1e-12)
    np.testing.assert_allclose(
        sharing.responsibilities(chainrule.tensor(w)).detach().numpy(),
        each / each.sum(1, keepdims=True),
        rtol=1e-10,
    )


def test_soft_sharing_pulls_by_the_responsibilities() -> None:
    """p(j|w), not p(w|j), weighs the pull toward mean j."""
    sharing, model = mixture(), network()
    sharing(model).backward()
    w = model[0].weight.detach().numpy()
    alpha, mu, sigma = (t.detach().numpy() for t in (sharing.alpha, sharing.mu, sharing.sigma))
    density = scipy.stats.norm.pdf(w[..., None], mu, sigma)
    posterior = alpha * density / (alpha * density).sum(-1, keepdims=True)
    pull = 0.2 * (posterior * (w[..., None] - mu) / sigma**2).sum(-1)
    np.testing.assert_allclose(model[0].weight.grad.numpy(), pull, rtol=1e-10)
    wrong = 0.2 * (density * (w[..., None] - mu) / sigma**2).sum(-1)
    assert np.abs(wrong - pull).max() > 0.1 * np.abs(pull).max()


def test_soft_sharing_gradient_by_the_mixture() -> None:
    sharing, model = mixture(), network()
    sharing(model).backward()
    for name, p in sharing.named_parameters():
        expected = numeric(lambda: sharing(model).detach(), p)
        np.testing.assert_allclose(p.grad.numpy(), expected, rtol=1e-6, atol=1e-8, err_msg=name)


def test_soft_sharing_is_learned_by_the_trainer_and_kept_in_checkpoints(tmp_path: Path) -> None:
    x, y = problem()

    def trainer() -> tuple[train.Trainer, Any]:
        sharing = regularize.SoftWeightSharing(1e-3, 3).start_from(network())
        made = train.Trainer(
            network(), "mse", lambda p: optim.Adam(p, lr=0.02), penalties=[sharing], seed=0
        )
        return made, sharing

    (first, sharing), (second, other), (third, _) = trainer(), trainer(), trainer()
    start = sharing.mu.detach().numpy().copy()
    history = first.fit((x, y), epochs=6)
    assert np.abs(sharing.mu.detach().numpy() - start).max() > 1e-2
    assert len(history["soft_sharing"]) == 6
    third.fit((x, y), epochs=3)
    third.save_checkpoint(tmp_path / "c")
    second.fit((x, y), epochs=6, resume=tmp_path / "c")
    np.testing.assert_array_equal(other.mu.detach().numpy(), sharing.mu.detach().numpy())
    np.testing.assert_array_equal(weights(second.model), weights(first.model))
    plain = train.Trainer(network(), "mse", seed=0)
    with pytest.raises(ValueError, match="differ in the penalties"):
        plain.fit((x, y), epochs=6, resume=tmp_path / "c")


def test_soft_sharing_gathers_weights() -> None:
    """Weights in two heaps: the mixture finds both, and pulls each weight into its heap."""
    model = nn.Linear(20, 10, bias=False, dtype=F64)
    heaps = np.where(np.arange(200) % 2, 1.0, -0.5) + 0.1 * np.random.default_rng(0).normal(
        size=200
    )
    model.weight.data = chainrule.tensor(heaps.reshape(10, 20))
    sharing = regularize.SoftWeightSharing(1e-3, 2, dtype=F64).start_from(model)
    mixed = optim.Adam(sharing.parameters(), lr=0.03)
    for _ in range(300):
        mixed.zero_grad()
        sharing(model).backward()
        mixed.step()
    np.testing.assert_allclose(np.sort(sharing.mu.detach().numpy()), [-0.5, 1.0], atol=0.02)
    np.testing.assert_allclose(sharing.sigma.detach().numpy(), 0.1, atol=0.01)
    np.testing.assert_allclose(sharing.alpha.detach().numpy(), 0.5, atol=0.02)
    for _ in range(100):
        model.zero_grad()
        sharing(model).backward()
        optim.SGD(model.parameters(), lr=1.0).step()
    w = model.weight.detach().numpy().ravel()
    assert w[1::2].std() < 1e-3
    assert w[::2].std() < 1e-3


def test_soft_sharing_errors() -> None:
    model = network()
    sharing = regularize.SoftWeightSharing(0.1, 3)
    with pytest.raises(ValueError, match="'soft_sharing' has parameters that the optimizer"):
        train.Trainer(model, "mse", optim.SGD(model.parameters(), lr=0.1), penalties=[sharing])
    frozen = sharing.requires_grad_(False)
    train.Trainer(model, "mse", optim.SGD(model.parameters(), lr=0.1), penalties=[frozen])
    with pytest.raises(ValueError, match="at least one component and low <= high"):
        regularize.SoftWeightSharing(0.1, 0)
    with pytest.raises(ValueError, match="min_sigma < sigma, got min_sigma=1.0, sigma=0.5"):
        regularize.SoftWeightSharing(0.1, sigma=0.5, min_sigma=1.0)
    with pytest.raises(ValueError, match="matches no parameter"):
        regularize.SoftWeightSharing(0.1, where="x")(model)


def test_other_tasks_regularize() -> None:
    """Twelve noisy samples of one task, and eleven related tasks: the shared trunk knows better."""
    rng = np.random.default_rng(0)
    direction = rng.normal(size=(10, 2)) / np.sqrt(10)
    heads = rng.normal(size=(2, 12))
    x, far = rng.normal(size=(12, 10)), rng.normal(size=(500, 10))
    y = x @ direction @ heads + 0.3 * rng.normal(size=(12, 12))
    errors = []
    for tasks in (1, 12):
        chainrule.manual_seed(0)
        trunk = nn.Linear(10, 2, bias=False, dtype=F64)
        model = models.MultiTaskNet(
            trunk, {str(t): nn.Linear(2, 1, bias=False, dtype=F64) for t in range(tasks)}
        )

        def loss(outputs: Any, target: Any, tasks: int = tasks) -> Any:
            return sum(((outputs[str(t)] - target[:, t : t + 1]) ** 2).mean() for t in range(tasks))

        optimizer = optim.Adam(model.parameters(), lr=0.02)
        inputs, targets = chainrule.tensor(x), chainrule.tensor(y)
        for _ in range(600):
            optimizer.zero_grad()
            loss(model(inputs), targets).backward()
            optimizer.step()
        predicted = model(chainrule.tensor(far))["0"].detach().numpy()[:, 0]
        errors.append(((predicted - far @ direction @ heads[:, 0]) ** 2).mean())
    assert errors[1] < 0.5 * errors[0]
