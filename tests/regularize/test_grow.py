"""Growing: cascade correlation and tiling."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import chainrule
from chainrule import models, nn, problems, regularize, train
from chainrule.func import grad

F64 = chainrule.float64


def parity(n: int, dtype: Any = None) -> tuple[Any, Any]:
    """All corners of the cube, and the product of their coordinates -1 and 1."""
    x = chainrule.tensor(list(itertools.product([-1.0, 1.0], repeat=n)), dtype=dtype)
    return x, x.prod(1)


# --- what a candidate maximizes -------------------------------------------------------------------


def test_each_output_has_its_own_sign() -> None:
    """The gradient of sum_k |sum_n (a - mean a)(e_k - mean e_k)|: the sign stands inside the sum
    over the outputs, not in front of it."""
    g = chainrule.Generator().manual_seed(0)
    x = chainrule.randn(12, 3, generator=g, dtype=F64)
    e = chainrule.randn(12, 2, generator=g, dtype=F64)
    e[:, 1] = e[:, 1] - 2 * x[:, 0]  # correlations of different signs
    e[:, 0] = e[:, 0] + 2 * x[:, 0]
    w = chainrule.randn(3, generator=g, dtype=F64)

    def score(w: Any) -> Any:
        return regularize.correlation((x @ w).tanh()[:, None], e)[0]

    s = x @ w
    slope = (1 - s.tanh() ** 2)[:, None] * x
    centered = e - e.mean(0)
    per_output = centered.mT @ slope  # sum over n, one row for each output
    signs = (s.tanh()[None] @ centered)[0].sign()
    assert signs.prod() == -1
    right = (signs[:, None] * per_output).sum(0)
    printed = per_output.sum(0)
    found = grad(score)(w)
    numeric = chainrule.stack(
        [(score(w + h) - score(w - h)) / 2e-6 for h in 1e-6 * chainrule.eye(3, dtype=F64)]
    )
    assert float((found - right).abs().max()) < 1e-12
    assert float((found - numeric).abs().max()) < 1e-7
    for sign in (1, -1):
        assert float((found - sign * printed).abs().max()) > 0.1


def test_scores_of_candidates_are_independent() -> None:
    g = chainrule.Generator().manual_seed(0)
    a = chainrule.randn(9, 4, generator=g, dtype=F64)
    e = chainrule.randn(9, 3, generator=g, dtype=F64)
    together = regularize.correlation(a, e)
    alone = [regularize.correlation(a[:, i : i + 1], e)[0] for i in range(4)]
    assert together.tolist() == pytest.approx([float(s) for s in alone])
    assert together.tolist() == pytest.approx(regularize.correlation(a + 5, e - 3).tolist())
    with pytest.raises(RuntimeError, match=r"got shapes \(9, 4\) and \(8, 3\)"):
        regularize.correlation(a, e[:8])


# --- cascade correlation --------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["least_squares", "softmax", "logistic"])
def test_two_spirals(output: str) -> None:
    chainrule.manual_seed(0)
    spirals = problems.spirals(194, classes=2, turns=3.0, noise=0.0)
    fit = regularize.cascade_correlation(spirals.inputs, spirals.targets, output=output)
    assert fit.steps[-1].error == 0
    assert 5 <= len(fit.model.units) <= 30
    assert fit.stopped == "the error is 0"
    out = fit.model(spirals.inputs)
    found = (out[:, 0] > 0).long() if output == "logistic" else out.argmax(1)
    assert bool((found == spirals.targets).all())
    assert fit.steps[0].error > 0.3  # a line is of no use here


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_parity(n: int) -> None:
    chainrule.manual_seed(1)
    x, y = parity(n)
    fit = regularize.cascade_correlation(x, y, tolerance=1e-3)
    assert fit.steps[-1].error <= 1e-3
    assert bool((fit.model(x)[:, 0].sign() == y).all())
    if n == 2:
        assert len(fit.model.units) == 1


def test_growth_is_the_network_itself() -> None:
    """Units are frozen as they were chosen, and the outputs are the least squares of them."""
    chainrule.manual_seed(0)
    x, y = parity(4, F64)
    first = regularize.cascade_correlation(
        x, y, max_units=3, patience=9, generator=chainrule.Generator().manual_seed(5)
    )
    more = regularize.cascade_correlation(
        x,
        y,
        max_units=5,
        patience=9,
        tolerance=-1.0,
        generator=chainrule.Generator().manual_seed(5),
    )
    for a, b in zip(first.model.units, more.model.units, strict=False):
        assert bool((a.weight == b.weight).all())
        assert not b.weight.requires_grad
    assert [s.units for s in more.steps] == list(range(6))
    assert more.stopped == "reached max_units = 5"
    losses = [s.loss for s in more.steps]
    assert losses == sorted(losses, reverse=True)
    features = more.model.features(x)
    assert features.shape == (16, 9)
    residual = more.model(x)[:, 0] - y
    assert float((features.mT @ residual).abs().max()) < 1e-4  # orthogonal to all that it sees
    assert float(residual.sum().abs()) < 1e-9


def test_a_grown_network_is_an_ordinary_module() -> None:
    chainrule.manual_seed(0)
    x, y = parity(3)
    fit = regularize.cascade_correlation(x, y, tolerance=1e-6)
    again = models.CascadeNetwork(3, 1, units=len(fit.model.units))
    again.load_state_dict(fit.model.state_dict())
    assert bool((again(x) == fit.model(x)).all())
    thawed = fit.model.requires_grad_()
    before = float(((thawed(x)[:, 0] - 2 * y) ** 2).mean())
    trainer = train.Trainer(thawed, "mse", progress=False)
    trainer.fit((x, 2 * y[:, None]), epochs=50)
    assert trainer.evaluate((x, 2 * y[:, None]))["loss"] < before
    assert "units" in str(fit)
    assert "stopped" in str(fit)


def test_growth_stops_when_it_does_not_help() -> None:
    chainrule.manual_seed(0)
    x = chainrule.ones(8, 1)
    y = chainrule.tensor([0.0, 1.0] * 4)  # nothing to see in x
    fit = regularize.cascade_correlation(x, y, patience=2, candidate_epochs=5)
    assert fit.stopped == "2 units in a row did not lower the loss"
    assert len(fit.model.units) == 2


def test_several_outputs_and_other_activations() -> None:
    chainrule.manual_seed(0)
    x, y = parity(3, F64)
    targets = chainrule.stack([y, x[:, 0] * x[:, 1]], 1)
    fit = regularize.cascade_correlation(
        x, targets, activation=chainrule.sin, tolerance=1e-4, candidates=4
    )
    assert fit.steps[-1].error <= 1e-4
    assert fit.model(x).shape == (8, 2)


def test_wrong_calls_of_cascade_correlation() -> None:
    x, y = parity(2)
    with pytest.raises(ValueError, match="output must be one of"):
        regularize.cascade_correlation(x, y, output="linear")
    with pytest.raises(ValueError, match=r"got shapes \(4, 2\) and \(3,\)"):
        regularize.cascade_correlation(x, y[:3])
    with pytest.raises(ValueError, match="needs class numbers"):
        regularize.cascade_correlation(x, y, output="softmax")
    with pytest.raises(ValueError, match="candidates"):
        regularize.cascade_correlation(x, y, candidates=0)
    with pytest.raises(ValueError, match="units not negative"):
        regularize.CascadeNetwork(2, 1, units=-1)


# --- tiling ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_tiling_solves_parity(n: int) -> None:
    chainrule.manual_seed(0)
    x, y = parity(n)
    fit = regularize.tiling(x, y, passes=20)
    assert bool((fit.model(x)[:, 0] == y).all())
    assert fit.mistakes[-1] == 0
    assert fit.mistakes == sorted(fit.mistakes, reverse=True)
    assert len(set(fit.mistakes)) == len(fit.mistakes)  # each master makes fewer
    assert fit.widths[-1] == 1
    assert fit.units == sum(fit.widths)


@pytest.mark.parametrize("seed", [0, 8, 11, 16, 22])
def test_tiling_solves_any_boolean_function_even_with_a_weak_pocket(seed: int) -> None:
    """The first weights of a master guarantee progress, whatever the pocket finds."""
    chainrule.manual_seed(seed)
    x, _ = parity(5)
    y = (chainrule.rand(32) > 0.5).long()  # labels 0 and 1
    fit = regularize.tiling(x, y, passes=1)
    assert bool((fit.model(x)[:, 0] == 2 * y - 1).all())
    assert all(a > b for a, b in itertools.pairwise(fit.mistakes))


def test_the_last_layer_of_tiling_separates() -> None:
    chainrule.manual_seed(0)
    x, y = parity(4)
    fit = regularize.tiling(x, y)
    hidden: Any = nn.Sequential(*list(fit.model)[:2])(x)
    codes: dict[tuple[float, ...], set[float]] = {}
    for code, label in zip(hidden.tolist(), y.tolist(), strict=True):
        codes.setdefault(tuple(code), set()).add(label)
    assert all(len(labels) == 1 for labels in codes.values())  # the layer is faithful


def test_tiling_of_points_in_the_plane() -> None:
    chainrule.manual_seed(0)
    spirals = problems.spirals(60, classes=2, noise=0.0)
    fit = regularize.tiling(spirals.inputs, spirals.targets, passes=20)
    assert bool((fit.model(spirals.inputs)[:, 0] == 2 * spirals.targets - 1).all())


def test_wrong_calls_of_tiling() -> None:
    x, y = parity(2)
    with pytest.raises(ValueError, match=r"\[1.0, 1.0\] has both labels"):
        regularize.tiling(chainrule.cat([x, x[3:]]), chainrule.cat([y, -y[3:]]))
    with pytest.raises(ValueError, match="for two classes"):
        regularize.tiling(x, chainrule.tensor([0, 1, 2, 0]))
    with pytest.raises(ValueError, match="expected inputs"):
        regularize.tiling(x, y[:3])
    with pytest.raises(RuntimeError, match="1 layers are not enough"):
        regularize.tiling(x, y, max_layers=1)
