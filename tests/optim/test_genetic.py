"""The genetic algorithm: solves small problems, never makes a loss worse, can be resumed."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import nn, optim
from chainrule.nn import functional as F


def seeded(seed: int = 0) -> chainrule.Generator:
    return chainrule.Generator().manual_seed(seed)


def parameter(*values: float) -> chainrule.Tensor:
    return chainrule.tensor(values, dtype=chainrule.float64, requires_grad=True)


def rosenbrock(w: chainrule.Tensor) -> chainrule.Tensor:
    return (1 - w[0]) ** 2 + 100 * (w[1] - w[0] ** 2) ** 2


# --- problems -------------------------------------------------------------------------------------


def test_rosenbrock() -> None:
    w = parameter(-1.2, 1.0)
    optimizer = optim.GeneticAlgorithm([w], 60, mutation=0.5, decay=0.96, generator=seeded())
    report = optimizer.run(lambda: rosenbrock(w), 200)
    assert report.loss < 1e-6
    assert_close(w, np.ones(2), atol=2e-3)
    assert (report.iterations, report.evaluations, report.gradients) == (200, 12000, 0)
    assert report.reason == "reached max_iter = 200"
    assert not report.converged


def test_xor_with_two_hidden_units() -> None:
    x = chainrule.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    y = chainrule.tensor([[0.0], [1.0], [1.0], [0.0]])
    chainrule.manual_seed(3)
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 1))
    optimizer = optim.GeneticAlgorithm(
        model.parameters(), 60, strength=1.0, decay=0.97, mutation=0.3, generator=seeded(3)
    )
    report = optimizer.run(lambda: F.mse_loss(model(x), y), 200, lambda i, loss: loss < 1e-3)
    assert report.reason == "stopped by the callback"
    assert report.evaluations == 60 * report.iterations
    assert ((model(x) > 0.5) == (y > 0.5)).all()


# --- what a generation is -------------------------------------------------------------------------


def test_a_generation_by_hand() -> None:
    """Selection, crossover and mutation from the same stream of numbers, in NumPy."""
    size, places, elite, rate, cross, strength, decay, rounds = 6, 3, 2, 0.5, 0.7, 0.4, 0.9, 4
    w, g = parameter(1.0, -2.0, 0.5), seeded(5)
    optimizer = optim.GeneticAlgorithm(
        [w], size, 2, cross, rate, strength, decay, elite, spread=0.3, generator=seeded(5)
    )
    double = {"dtype": chainrule.float64, "generator": g}
    loss = lambda rows: (rows**2).sum(-1)  # noqa: E731
    start = w.detach().numpy().copy()
    rows = np.concatenate([start[None], start + 0.3 * chainrule.randn(5, 3, **double).numpy()])
    for t in range(rounds):
        fitness = loss(rows)
        order = np.argsort(fitness, kind="stable")
        best, count = rows[order[0]], size - elite
        parents = []
        for _ in range(2):
            entrants = chainrule.randint(0, size, (count, 2), generator=g).numpy()
            parents.append(rows[[min(pair, key=lambda i: fitness[i]) for pair in entrants]])
        crossed = chainrule.rand(count, 1, **double).numpy() < cross
        mixed = crossed & (chainrule.rand(count, places, **double).numpy() < 0.5)
        children = np.where(mixed, parents[1], parents[0])
        change = strength * decay**t * chainrule.randn(count, places, **double).numpy()
        children += np.where(chainrule.rand(count, places, **double).numpy() < rate, change, 0)
        rows = np.concatenate([rows[order[:elite]], children])
        before = optimizer.step(lambda: (w * w).sum())
        assert float(before) == pytest.approx(float((start**2).sum()))
        assert_close(w, best)
        start = best
    assert_close(optimizer.memory["population"], rows)


def test_every_individual_is_evaluated_once_a_generation() -> None:
    w, seen = parameter(1.0, 2.0), []

    def closure() -> Any:
        seen.append(w.detach().numpy().copy())
        return (w * w).sum()

    optimizer = optim.GeneticAlgorithm([w], population=7, generator=seeded())
    optimizer.step(closure)
    assert_close(seen[0], np.array([1.0, 2.0]))
    assert len({tuple(s) for s in seen}) == len(seen) == 7
    assert_close(w, min(seen, key=lambda s: (s**2).sum()))
    assert optimizer.report.evaluations == 7


def test_the_loss_never_grows() -> None:
    w = parameter(0.1, -0.1, 0.2)
    optimizer = optim.GeneticAlgorithm([w], 10, strength=5.0, spread=5.0, generator=seeded())
    losses = [float(optimizer.step(lambda: (w * w).sum())) for _ in range(30)]
    losses.append(float((w * w).sum()))
    assert (np.diff(losses) <= 0).all()
    assert losses[-1] < losses[0]


def test_parameters_that_were_moved_in_between_are_respected() -> None:
    w = parameter(5.0, 5.0)
    optimizer = optim.GeneticAlgorithm([w], 10, generator=seeded())
    optimizer.step(lambda: (w * w).sum())
    with chainrule.no_grad():
        w.zero_()
    optimizer.step(lambda: (w * w).sum())
    assert_close(w, np.zeros(2), 0, 0)


def test_a_closure_may_call_backward() -> None:
    def run(backward: bool) -> Any:
        w = parameter(1.0, 2.0)
        optimizer = optim.GeneticAlgorithm([w], 8, generator=seeded())

        def closure() -> Any:
            loss = rosenbrock(w)
            if backward:
                loss.backward()
            return loss

        optimizer.run(closure, 5)
        return w.detach()

    assert_close(run(True), run(False), 0, 0)


def test_frozen_parameters_are_left_alone() -> None:
    w, frozen = parameter(1.0, 2.0), parameter(3.0).requires_grad_(False)
    optimizer = optim.GeneticAlgorithm([frozen, w], 10, generator=seeded())
    optimizer.run(lambda: ((w + frozen) ** 2).sum(), 5)
    assert frozen.item() == 3.0
    assert np.abs(w.detach().numpy() - [1.0, 2.0]).min() > 0


def test_converges_if_the_population_becomes_one_point() -> None:
    w = parameter(1.0)
    optimizer = optim.GeneticAlgorithm([w], 10, mutation=0.0, generator=seeded())
    report = optimizer.run(lambda: (w * w).sum(), 500)
    assert report.converged
    assert report.reason == "the individuals differ by less than tolerance_change"
    assert report.iterations < 100


def test_float32_stays_float32() -> None:
    w = chainrule.ones(3, requires_grad=True)
    optimizer = optim.GeneticAlgorithm([w], 5, generator=seeded())
    optimizer.step(lambda: (w * w).sum())
    assert w.dtype == optimizer.memory["population"].dtype == chainrule.float32


# --- seeds and files ------------------------------------------------------------------------------


def test_a_seed_decides_everything() -> None:
    def run(seed: int) -> Any:
        w = parameter(-1.2, 1.0)
        optim.GeneticAlgorithm([w], 10, generator=seeded(seed)).run(lambda: rosenbrock(w), 5)
        return w.detach().numpy()

    assert_close(run(1), run(1), 0, 0)
    assert np.abs(run(1) - run(2)).max() > 1e-6
    with chainrule.random.fork_rng():  # without a generator, the default one
        results = []
        for _ in range(2):
            chainrule.manual_seed(4)
            w = parameter(-1.2, 1.0)
            optim.GeneticAlgorithm([w], 10).run(lambda w=w: rosenbrock(w), 5)
            results.append(w.detach().numpy())
    assert_close(results[0], results[1], 0, 0)


def test_resume() -> None:
    w = parameter(-1.2, 1.0)
    optimizer = optim.GeneticAlgorithm([w], 10, decay=0.8, generator=seeded())
    for _ in range(4):
        optimizer.step(lambda: rosenbrock(w))
    saved = pickle.loads(pickle.dumps((w.detach(), optimizer.state_dict())))
    v = saved[0].clone().requires_grad_()
    other = optim.GeneticAlgorithm([v], 10, generator=seeded(99))
    other.load_state_dict(saved[1])
    for _ in range(4):
        optimizer.step(lambda: rosenbrock(w))
        other.step(lambda: rosenbrock(v))
    assert_close(v, w, 0, 0)
    assert_close(other.memory["population"], optimizer.memory["population"], 0, 0)


# --- errors ---------------------------------------------------------------------------------------


def test_a_failing_closure_leaves_the_best_parameters() -> None:
    w, calls = parameter(2.0, 2.0), []

    def closure() -> Any:
        calls.append(1)
        if len(calls) > 3:
            raise KeyError("no data")
        return (w * w).sum()

    with pytest.raises(KeyError, match="no data"):
        optim.GeneticAlgorithm([w], 10, generator=seeded()).step(closure)
    assert_close(w, np.array([2.0, 2.0]), 0, 0)


def test_losses_that_are_not_finite() -> None:
    w = parameter(1.0, 1.0)
    optimizer = optim.GeneticAlgorithm([w], 10, spread=10.0, generator=seeded())
    optimizer.run(lambda: w.log().sum() ** 2 + (w - 3).square().sum(), 20)  # NaN below zero
    assert (w > 0).all()
    with pytest.raises(RuntimeError, match="loss of all 10 individuals is not finite; no param"):
        optim.GeneticAlgorithm([w], 10, generator=seeded()).step(lambda: (w * float("nan")).sum())


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"population": 1}, ValueError, r"invalid population: 1; it must lie in \[2, infinity\)"),
        ({"population": 4.5}, ValueError, "invalid population: 4.5; it must be an integer"),
        ({"population": 4, "elite": 4}, ValueError, "an elite of 4 leaves no place for children"),
        ({"elite": 0}, ValueError, "invalid elite: 0"),
        ({"tournament": 0}, ValueError, "invalid tournament: 0"),
        ({"mutation": 1.1}, ValueError, r"invalid mutation: 1.1; it must lie in \[0.0, 1.0\]"),
        ({"crossover": -0.1}, ValueError, "invalid crossover: -0.1"),
        ({"strength": -1}, ValueError, "invalid strength: -1"),
        ({"decay": 0}, ValueError, r"invalid decay: 0; it must lie in \(0, 1\]"),
        ({"spread": -1}, ValueError, "invalid spread: -1"),
        ({"generator": 3}, TypeError, "generator must be a chainrule.Generator, got int"),
    ],
    ids=lambda v: "-".join(v) if isinstance(v, dict) else None,
)
def test_errors(settings: dict[str, Any], error: Any, message: str) -> None:
    with pytest.raises(error, match=f"GeneticAlgorithm: .*{message}|{message}"):
        optim.GeneticAlgorithm([parameter(1.0)], **settings)


def test_a_closure_is_needed() -> None:
    with pytest.raises(ValueError, match="GeneticAlgorithm.step: needs a closure that returns"):
        optim.GeneticAlgorithm([parameter(1.0)]).step()
    with pytest.raises(RuntimeError, match="closure returned None"):
        optim.GeneticAlgorithm([parameter(1.0)]).step(lambda: None)
