"""Whether classes can be separated, and the perceptron."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.special

import chainrule
from chainrule import optim, problems, tensor


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def seeded(seed: int = 0) -> chainrule.Generator:
    return chainrule.Generator().manual_seed(seed)


def close(got: Any, expected: Any, rtol: float = 1e-9, atol: float = 1e-12) -> None:
    np.testing.assert_allclose(got.numpy(), expected, rtol=rtol, atol=atol)


# --- separability ---------------------------------------------------------------------------------


def divided(x: np.ndarray, y: np.ndarray) -> str:
    """By linear programs: the largest margin, and the largest sum of margins that are all >= 0."""
    b = np.c_[x, np.ones(len(x))] * y[:, None]
    bounds = [(-1, 1)] * b.shape[1]
    zero, one = np.zeros(len(b)), np.ones(len(b))
    program = scipy.optimize.linprog(
        [0] * b.shape[1] + [-1], np.c_[-b, one], zero, bounds=[*bounds, (None, 1)]
    )
    if -program.fun > 1e-9:
        return "complete"
    program = scipy.optimize.linprog(-b.sum(0), -b, zero, bounds=bounds)
    return "quasi" if -program.fun > 1e-9 else "none"


def test_separability_is_that_of_linear_programs() -> None:
    """Points on a small lattice, where all three cases are common."""
    found = []
    for seed in range(120):
        r = np.random.default_rng(seed)
        x = r.integers(0, 3, size=(r.integers(3, 9), 2)).astype(float)
        y = r.choice([-1.0, 1.0], size=len(x))
        found.append(divided(x, y))
        assert optim.separability(tensor(x), tensor(y)) == found[-1], (x, y)
    assert min(found.count(kind) for kind in ("complete", "quasi", "none")) >= 10


def test_separability_of_many_points() -> None:
    x = normal(2000, 8)
    y = np.sign(x @ normal(8, seed=1) + 0.2)
    assert optim.separability(tensor(x), tensor(y)) == "complete"
    assert optim.separability(tensor(x * np.logspace(-5, 5, 8)), tensor(y)) == "complete"
    assert optim.separability(tensor(x + 5), tensor(y), bias=False) != "complete"
    y[np.abs(x @ normal(8, seed=1)).argmax()] *= -1
    assert optim.separability(tensor(x), tensor(y)) == "none"


# --- the perceptron -------------------------------------------------------------------------------


def rosenblatt(x: np.ndarray, y: np.ndarray, lr: float, passes: int) -> tuple[np.ndarray, int]:
    """The rule, one example after the other, as in the course (a border point is a mistake)."""
    w, updates = np.zeros(x.shape[1]), 0
    for _ in range(passes):
        before = updates
        for xn, yn in zip(x, y, strict=True):
            if yn * (w @ xn) <= 0:
                w = w + lr * yn * xn
                updates += 1
        if updates == before:
            break
    return w, updates


@pytest.mark.parametrize("bias", [True, False])
def test_online_perceptron_is_the_rule(bias: bool) -> None:
    x = normal(40, 3)
    y = np.sign(x @ [1.0, -2, 0.5])
    fit = optim.perceptron(tensor(x), tensor(y), 0.5, bias=bias)
    w, updates = rosenblatt(np.c_[x, np.ones(40)] if bias else x, y, 0.5, 1000)
    close(fit.weight, w[:3], atol=1e-10)
    assert fit.report.updates == updates > 1
    assert fit.report.converged
    assert (np.sign(x @ fit.weight.numpy() + (fit.bias.item() if bias else 0)) == y).all()


def test_batch_perceptron_adds_all_mistakes() -> None:
    x = normal(30, 2)
    y = np.sign(x @ [1.0, 1])
    fit = optim.perceptron(tensor(x), tensor(y), online=False, bias=False)
    w, steps = np.zeros(2), 0
    while (wrong := y * (x @ w) <= 0).any():
        w, steps = w + (y[wrong, None] * x[wrong]).sum(0), steps + 1
    close(fit.weight, w)
    assert fit.report.updates == steps


def test_separable_data_need_finitely_many_updates() -> None:
    """At most (R / margin)^2 (Novikoff)."""
    for seed in range(5):
        x = normal(60, 2, seed=seed)
        direction = np.array([0.6, 0.8])
        x = x[np.abs(x @ direction) > 0.1]
        y = np.sign(x @ direction)
        report = optim.perceptron(tensor(x), tensor(y), bias=False).report
        margin = np.abs(x @ direction).min()
        assert report.converged
        assert report.updates <= (np.linalg.norm(x, axis=1).max() / margin) ** 2


def test_the_perceptron_leaves_zero() -> None:
    """With sign(0) = 0 taken for 'no mistake' it never would."""
    fit = optim.perceptron(tensor([[1.0], [2.0]]), tensor([1, 1]), bias=False)
    assert fit.weight.item() == 1
    assert fit.report.updates == 1


def test_without_offset_the_perceptron_is_not_translation_invariant() -> None:
    x, y = tensor([[1.0], [2.0], [3.0], [4.0]]), tensor([-1, -1, 1, 1])
    assert optim.perceptron(x - 2.5, y, bias=False).report.converged
    assert optim.perceptron(x, y).report.converged
    with pytest.warns(UserWarning, match="not linearly separable"):
        assert not optim.perceptron(x, y, bias=False).report.converged


@pytest.mark.parametrize("name", ["or", "and", "and1", "and2", "nor", "nand", "xor", "xnor"])
@pytest.mark.parametrize("online", [True, False], ids=["online", "batch"])
def test_the_perceptron_learns_all_boolean_functions_but_two(name: str, online: bool) -> None:
    """XOR's last label is 0; with 1, as once printed, it would be OR, which is learned."""
    p = problems.boolean(name, signed=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error" if p.known["separable"] else "ignore")
        fit = optim.perceptron(p.inputs, p.targets[:, 0], online=online)
    assert fit.report.converged == p.known["separable"]
    assert (fit.report.mistakes == 0) == p.known["separable"]


def test_data_that_are_not_separable_are_told_at_once() -> None:
    p = problems.boolean("xor", signed=True)
    with pytest.warns(
        UserWarning, match="perceptron: the classes are not linearly separable.*pock"
    ):
        report = optim.perceptron(p.inputs, p.targets[:, 0], max_iter=10**9).report
    assert report.iterations == 10
    with pytest.warns(UserWarning, match="not linearly separable.* after 3 passes"):
        assert optim.perceptron(p.inputs, p.targets[:, 0], max_iter=3).report.iterations == 3


def test_too_few_passes_are_told_apart_from_hopeless_ones() -> None:
    x = np.array([[1.0, 1.0], [1.0, 1.001], [0.5, 0.5], [0.5, 0.5004]])
    y = tensor([1, -1, 1, -1])
    with pytest.warns(UserWarning, match="max_iter = 20 .*are separable, more passes will succeed"):
        assert not optim.perceptron(tensor(x), y, max_iter=20, bias=False).report.converged


def test_the_pocket_keeps_the_best() -> None:
    x = normal(100, 2)
    y = np.sign(x @ [1.0, -1] + 0.3)
    y[:5] *= -1

    def run(**options: Any) -> optim.LinearFit:
        with pytest.warns(UserWarning, match="not linearly separable"):
            return optim.perceptron(tensor(x), tensor(y), max_iter=30, **options)

    pocket = run(pocket=True, generator=seeded())
    scores = y * (x @ pocket.weight.numpy() + pocket.bias.item())
    assert pocket.report.mistakes == (scores <= 0).sum() <= 6
    assert run().report.mistakes > pocket.report.mistakes
    assert pocket.report.loss == pytest.approx(np.maximum(-scores, 0).mean())
    assert run(pocket=True, generator=seeded()).weight.tolist() == pocket.weight.tolist()
    assert run(pocket=True, online=False).report.mistakes <= 15


def test_shuffled_passes_depend_on_the_seed() -> None:
    x = normal(60, 3)
    y = np.sign(x @ [1.0, 2, 3])
    weights = [
        optim.perceptron(tensor(x), tensor(y), shuffle=True, generator=seeded(s)).weight.tolist()
        for s in (0, 0, 1)
    ]
    assert weights[0] == weights[1] != weights[2]


def test_the_pocket_draws_at_random_and_finds_the_fewest_mistakes_on_xor() -> None:
    """Three of four is the best a line can do; passes over all four, in any order, miss it."""
    x, y = tensor([[0.0, 0], [0, 1], [1, 0], [1, 1]]), tensor([-1.0, 1, 1, -1])

    for seed in range(10):
        with pytest.warns(UserWarning, match="not linearly separable"):
            fit = optim.perceptron(x, y, pocket=True, max_iter=500, generator=seeded(seed))
        assert fit.report.mistakes == 1
        assert int(((x @ fit.weight + fit.bias) * y > 0).sum()) == 3


def test_a_pocket_of_separable_examples_stops_without_mistakes() -> None:
    x = normal(80, 3)
    y = np.sign(x @ [1.0, 2, 3])
    fit = optim.perceptron(tensor(x), tensor(y), pocket=True, generator=seeded())
    assert fit.report.converged
    assert (y * (x @ fit.weight.numpy() + fit.bias.item()) > 0).all()
    assert fit.report.iterations < 1000
