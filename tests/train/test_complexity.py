"""Complexity: curves of errors, and capacity before regularization."""

from __future__ import annotations

import pytest

import chainrule
from chainrule import models, nn, optim, problems, train


def noisy(n: int, seed: int) -> tuple[chainrule.Tensor, chainrule.Tensor]:
    g = chainrule.Generator().manual_seed(seed)
    x = chainrule.rand(n, 1, generator=g) * 2 - 1
    return x, (3 * x).sin() + 0.3 * chainrule.randn(n, 1, generator=g)


def test_the_training_error_falls_and_the_test_error_turns() -> None:
    """Polynomials of rising degree through noisy points: Figures 5.3 and 8.1 of document 004."""

    class Polynomial(nn.Module):
        def __init__(self, degree: int):
            super().__init__()
            self.degree = degree
            self.linear = nn.Linear(degree, 1)

        def forward(self, input: chainrule.Tensor) -> chainrule.Tensor:
            powers = [(k * input.acos()).cos() for k in range(1, self.degree + 1)]
            return self.linear(chainrule.cat(powers, -1))

    (x, y), test = noisy(20, 0), noisy(400, 1)
    curve = train.complexity_curve(
        Polynomial,
        [1, 3, 5, 8, 13],
        (x, y),
        test,
        "mse",
        lambda p: optim.Adam(p, lr=0.1),
        epochs=150,
        batch_size=20,
        seeds=[0, 1],
    )
    errors, new = curve.table["train"], curve.table["test"]
    assert errors == sorted(errors, reverse=True)
    best = new.index(min(new))
    assert 0 < best < 4
    assert new[-1] > 1.5 * new[best]
    assert new[0] > 1.2 * new[best]
    assert curve.table["parameters"] == [2, 4, 6, 9, 14]
    assert curve.table["gap"] == pytest.approx([b - a for a, b in zip(errors, new, strict=True)])
    assert curve.best["complexity"] == [1, 3, 5, 8, 13][best]
    assert curve.simplest["parameters"] <= curve.best["parameters"]
    assert len(curve.models) == 5
    assert len(curve.models[0]) == 2
    assert "complexity" in str(curve)


def test_curves_of_a_metric() -> None:
    moons, new = problems.moons(60), problems.moons(60)
    curve = train.complexity_curve(
        lambda h: models.MLP(2, [h], 2),
        [1, 6],
        (moons.inputs, moons.targets),
        (new.inputs, new.targets),
        "cross_entropy",
        metric="accuracy",
        epochs=5,
        seeds=[0],
    )
    assert all(0 <= v <= 1 for v in curve.table["test"])
    assert curve.table["test_error"] == [0, 0]
    with pytest.raises(ValueError, match="at least one complexity"):
        train.complexity_curve(lambda h: nn.Linear(2, 2), [], None, None, "mse")


def test_overfit_first() -> None:
    chainrule.manual_seed(0)
    xor = problems.boolean("xor")
    data = (xor.inputs, xor.targets)
    model = models.MLP(2, [8], 1, "tanh", dropout=0.5)
    weights = [p.detach().clone() for p in model.parameters()]
    check = train.overfit_first(model, data, "bce_with_logits")
    assert check
    assert check.baseline == pytest.approx(0.6931, abs=1e-3)  # log 2
    assert check.loss <= 0.05 * check.baseline
    assert check.epochs < 500
    assert "now regularize it" in str(check)
    assert model[2].p == 0.5
    for p, before in zip(model.parameters(), weights, strict=True):
        assert bool((p == before).all())

    single = train.overfit_first(nn.Linear(2, 1), data, "bce_with_logits", epochs=60)
    assert not single
    assert single.epochs == 60
    assert "use more units or layers" in str(single)


def test_data_that_no_network_can_fit() -> None:
    chainrule.manual_seed(0)
    x = chainrule.tensor([[0.0], [0.0], [1.0]])
    y = chainrule.tensor([0, 1, 1])
    check = train.overfit_first(models.MLP(1, [8], 2), (x, y), "cross_entropy", epochs=50)
    assert not check
    assert "1 inputs occur with different targets" in str(check)


def test_the_baseline_is_the_best_constant() -> None:
    chainrule.manual_seed(0)
    x, y = noisy(50, 0)
    check = train.overfit_first(nn.Linear(1, 1), (x, y), "mse", epochs=10)
    assert check.baseline == pytest.approx(float(((y - y.mean()) ** 2).mean()), rel=1e-3)


def test_wrong_calls() -> None:
    x, y = noisy(5, 0)
    model = nn.Linear(1, 1)
    with pytest.raises(ValueError, match="fraction must lie between 0 and 1"):
        train.overfit_first(model, (x, y), "mse", fraction=2.0)
    with pytest.raises(TypeError, match="belongs to the parameters of another network"):
        train.overfit_first(model, (x, y), "mse", optim.SGD(model.parameters()))
