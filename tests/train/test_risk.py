"""Empirical risk, with and without augmented data: sums by hand, gradients, closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule
from chainrule import data, models, nn, train


def points(n: int, seed: int = 0) -> tuple[Any, Any]:
    r = np.random.default_rng(seed)
    return chainrule.tensor(r.normal(size=(n, 3))), chainrule.tensor(r.integers(0, 4, size=n))


def network() -> nn.Module:
    chainrule.manual_seed(0)
    return models.MLP(3, [5], 4).double()


def risk_by_hand(model: nn.Module, x: Any, y: Any) -> float:
    """1/N sum_n -log softmax(g(x_n))[y_n], one sample after the other, with NumPy."""
    total = 0.0
    for row, k in zip(x, y.tolist(), strict=True):
        scores = model(row).detach().numpy()
        total -= np.log(np.exp(scores - scores.max())[k] / np.exp(scores - scores.max()).sum())
    return total / len(x)


@pytest.mark.parametrize("batch_size", [1, 7, 10, 256])
def test_the_risk_is_the_mean_over_samples_whatever_the_batches(batch_size: int) -> None:
    """S03, with a last batch that is smaller."""
    model, (x, y) = network(), points(23)
    expected = risk_by_hand(model, x, y)
    risk = train.empirical_risk(model, (x, y), "cross_entropy", batch_size=batch_size)
    assert risk.item() == pytest.approx(expected, rel=1e-12)
    loader = data.DataLoader(data.TensorDataset(x, y), batch_size=batch_size)
    again = train.empirical_risk(model, loader, nn.CrossEntropyLoss())
    assert again.item() == pytest.approx(expected, rel=1e-12)
    evaluated = train.Trainer(model, "cross_entropy").evaluate((x, y), batch_size=batch_size)
    assert evaluated["loss"] == pytest.approx(expected, rel=1e-9)


def test_its_gradient_is_that_of_the_mean() -> None:
    model, (x, y) = network(), points(23)
    parameters = list(model.parameters())
    found = chainrule.autograd.grad(
        train.empirical_risk(model, (x, y), "cross_entropy", batch_size=7), parameters
    )
    step = 1e-6
    for p, g in zip(parameters, found, strict=True):
        place = (0,) * p.ndim
        sides = []
        for sign in (1, -1):
            with chainrule.no_grad():
                p[place] += sign * step
            sides.append(risk_by_hand(model, x, y))
            with chainrule.no_grad():
                p[place] -= sign * step
        assert g[place].item() == pytest.approx((sides[0] - sides[1]) / (2 * step), abs=1e-8)


def test_weights_of_samples() -> None:
    model, (x, y) = network(), points(10)
    w = chainrule.tensor(np.arange(10.0))
    found = train.empirical_risk(model, (x, y, w), "cross_entropy", batch_size=4).item()
    each = [risk_by_hand(model, x[i : i + 1], y[i : i + 1]) for i in range(10)]
    assert found == pytest.approx(np.average(each, weights=np.arange(10)), rel=1e-12)


def test_the_augmented_objective_is_the_sum_of_two_means() -> None:
    """S16: 1/N sum L + 1/L sum L(aug), with L = 4 N here."""
    model, (x, y), (xa, ya) = network(), points(10), points(40, seed=1)
    data_risk, augmented = risk_by_hand(model, x, y), risk_by_hand(model, xa, ya)
    found = train.augmented_risk(model, (x, y), (xa, ya), "cross_entropy", batch_size=16)
    assert found.item() == pytest.approx(data_risk + augmented, rel=1e-12)
    less = train.augmented_risk(model, (x, y), (xa, ya), "cross_entropy", weight=0.3)
    assert less.item() == pytest.approx(data_risk + 0.3 * augmented, rel=1e-12)
    together = risk_by_hand(model, chainrule.cat([x, xa]), chainrule.cat([y, ya]))
    assert abs(found.item() / 2 - together) > 1e-3  # not the mean over all of them
    parts = [
        chainrule.autograd.grad(risk, list(model.parameters()))
        for risk in (
            train.augmented_risk(model, (x, y), (xa, ya), "cross_entropy"),
            train.empirical_risk(model, (x, y), "cross_entropy"),
            train.empirical_risk(model, (xa, ya), "cross_entropy"),
        )
    ]
    for whole, first, second in zip(*parts, strict=True):
        np.testing.assert_allclose(whole.numpy(), (first + second).numpy(), atol=1e-14)


def test_a_function_augments_batch_by_batch() -> None:
    model, (x, y) = network(), points(10)
    seen: list[int] = []

    def turned(inputs: Any) -> Any:
        seen.append(len(inputs))
        return -inputs

    found = train.augmented_risk(model, (x, y), turned, "cross_entropy", copies=2, batch_size=4)
    expected = risk_by_hand(model, x, y) + risk_by_hand(model, -x, y)
    assert found.item() == pytest.approx(expected, rel=1e-12)
    assert seen == [4, 4, 2] * 2


def test_noise_on_the_inputs_of_a_linear_model_is_weight_decay() -> None:
    """The minimum of 1/N sum (y - w x)^2 + E (y - w (x + e))^2 is ridge regression, closed form."""
    r = np.random.default_rng(0)
    x = r.normal(size=(50, 1))
    y = 3 * x + 0.1 * r.normal(size=(50, 1))
    spread = 0.8
    expected = (x * y).sum() / ((x * x).sum() + 50 * spread**2 / 2)
    model = nn.Linear(1, 1, bias=False).double()
    noise = chainrule.tensor(r.normal(size=(400, 50, 1)) * spread)
    copies = chainrule.cat([chainrule.tensor(x) + e for e in noise])
    augmented = (copies, chainrule.tensor(np.tile(y, (400, 1))))
    given = (chainrule.tensor(x), chainrule.tensor(y))
    optimizer = chainrule.optim.LBFGS(model.parameters(), line_search_fn="strong_wolfe")

    def closure() -> chainrule.Tensor:
        optimizer.zero_grad()
        risk = train.augmented_risk(model, given, augmented, "mse", batch_size=20_000)
        risk.backward()
        return risk

    optimizer.step(closure)
    assert model.weight.item() == pytest.approx(expected, rel=0.02)
    plain = (x * y).sum() / (x * x).sum()
    assert abs(model.weight.item() - plain) > 0.3


def test_wrong_calls() -> None:
    model, given = network(), points(4)
    with pytest.raises(ValueError, match="augmented_risk: copies must be positive, got 0"):
        train.augmented_risk(model, given, lambda x: x, "cross_entropy", copies=0)
    with pytest.raises(ValueError, match="empirical_risk: the data has no samples"):
        train.empirical_risk(model, iter([]), "cross_entropy")
    with pytest.raises(ValueError, match="unknown name 'xent'"):
        train.empirical_risk(model, given, "xent")
