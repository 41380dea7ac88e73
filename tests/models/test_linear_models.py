"""Linear models with a learning rule: layers like any other, fitted in one call."""

from __future__ import annotations

import math

import numpy as np
import pytest

import chainrule
from chainrule import models, nn, optim, problems, tensor


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def test_linear_regression_fits_and_is_a_layer() -> None:
    x, y = tensor(normal(30, 3)), tensor(normal(30, 2, seed=1))
    model = models.LinearRegression(3, 2, dtype=chainrule.float64)
    assert isinstance(model, nn.Module)
    assert model.report is None
    report = model.fit(x, y)
    assert report is model.report
    assert report.converged
    expected = np.linalg.lstsq(np.c_[x.numpy(), np.ones(30)], y.numpy(), rcond=None)[0]
    np.testing.assert_allclose(model.weight.detach().numpy(), expected[:3].T, rtol=1e-9)
    np.testing.assert_allclose(model.bias.detach().numpy(), expected[3], rtol=1e-9)
    loss = nn.MSELoss()(model(x), y)
    assert loss.item() == pytest.approx(report.loss, rel=1e-12)
    loss.backward()
    assert model.weight.grad.abs().max().item() < 1e-12
    assert sorted(model.state_dict()) == ["bias", "weight"]
    copy = models.LinearRegression(3, 2, dtype=chainrule.float64)
    copy.load_state_dict(model.state_dict())
    assert (copy(x) == model(x)).all()


def test_linear_regression_by_other_rules() -> None:
    x, y = tensor(normal(30, 3)), tensor(normal(30, seed=1))
    model = models.LinearRegression(3, bias=False, dtype=chainrule.float64)
    model.fit(x, y, l2=2.0)
    w = np.linalg.solve(x.numpy().T @ x.numpy() + 2 * np.eye(3), x.numpy().T @ y.numpy())
    np.testing.assert_allclose(model.weight.detach().numpy()[0], w, rtol=1e-9)
    report = model.fit(x, y[:, None], "delta", lr=0.5, tolerance=1e-10)
    assert report.iterations > 1
    w = np.linalg.lstsq(x.numpy(), y.numpy(), rcond=None)[0]
    np.testing.assert_allclose(model.weight.detach().numpy()[0], w, rtol=1e-7)


@pytest.mark.parametrize("name", ["or", "and", "and1", "and2", "xor"])
def test_perceptron_model(name: str) -> None:
    p = problems.boolean(name, signed=True)
    model = models.Perceptron(2)
    if p.known["separable"]:
        assert model.fit(p.inputs, p.targets).converged
        assert model.predict(p.inputs).tolist() == p.targets[:, 0].tolist()
    else:
        with pytest.warns(UserWarning, match="not linearly separable"):
            report = model.fit(p.inputs, p.targets, pocket=True, max_iter=20)
        wrong = int((model.predict(p.inputs) != p.targets[:, 0].long()).sum())
        assert 1 <= wrong <= report.mistakes <= 3
    assert model(p.inputs).shape == (4, 1)


def test_perceptron_model_learns_by_an_optimizer_too() -> None:
    p = problems.boolean("or", signed=True)
    model = models.Perceptron(2)
    with chainrule.no_grad():
        model.weight.zero_()
        model.bias.zero_()
    optimizer = optim.SGD(model.parameters(), lr=1.0)
    for _ in range(20):
        optimizer.zero_grad()
        nn.PerceptronLoss(reduction="sum")(model(p.inputs), p.targets).backward()
        optimizer.step()
    assert model.predict(p.inputs).tolist() == p.targets[:, 0].tolist()


def test_logistic_regression_model() -> None:
    x = tensor(normal(80, 2))
    y = tensor((normal(80, seed=1) + x.numpy()[:, 0] > 0).astype(int))
    model = models.LogisticRegression(2, dtype=chainrule.float64)
    report = model.fit(x, y)
    assert report.converged
    loss = nn.BCEWithLogitsLoss()(model(x)[:, 0], y.double())
    assert loss.item() == pytest.approx(report.loss, rel=1e-12)
    loss.backward()
    assert model.weight.grad.abs().max().item() < 1e-9
    p = model.predict_proba(x)
    logits = model(x).detach().numpy()[:, 0]
    np.testing.assert_allclose(p.numpy(), 1 / (1 + np.exp(-logits)), rtol=1e-12)
    assert model.predict(x).tolist() == (logits > 0).astype(int).tolist()
    gradient = models.LogisticRegression(2, dtype=chainrule.float64)
    gradient.fit(x, y, "gradient", lr=1.0, tolerance=1e-9)
    np.testing.assert_allclose(
        gradient.weight.detach().numpy(), model.weight.detach().numpy(), rtol=1e-6
    )


def test_softmax_regression_model() -> None:
    p = problems.blobs(150, noise=0.6, generator=chainrule.Generator().manual_seed(0))
    model = models.SoftmaxRegression(2, 3)
    report = model.fit(p.inputs, p.targets)
    assert report.converged
    assert nn.CrossEntropyLoss()(model(p.inputs), p.targets).item() == pytest.approx(
        report.loss, rel=1e-5
    )
    q = model.predict_proba(p.inputs)
    assert (q.sum(1) - 1).abs().max().item() < 1e-6
    assert model.predict(p.inputs).tolist() == q.argmax(1).tolist()
    best = (p.rule(p.inputs) == p.targets).double().mean().item()
    found = (model.predict(p.inputs) == p.targets).double().mean().item()
    assert found == pytest.approx(best, abs=0.05)


def test_a_model_without_bias() -> None:
    x, y = tensor(normal(20, 2)), tensor(np.sign(normal(20, 2) @ [1.0, 2]))
    model = models.Perceptron(2, bias=False, dtype=chainrule.float64)
    assert model.fit(x, y).converged
    assert model.bias is None
    assert model.predict(x).tolist() == y.tolist()


def test_a_failed_fit_leaves_the_weights() -> None:
    model = models.LogisticRegression(2)
    before = model.weight.tolist()
    with pytest.raises(ValueError, match="labels y must be 0 and 1"):
        model.fit(chainrule.ones(3, 2), tensor([0, 1, 2]))
    with pytest.raises(ValueError, match="x has values that are NaN"):
        model.fit(chainrule.full((3, 2), math.nan), tensor([0, 1, 1]))
    assert model.weight.tolist() == before
    assert model.report is None


def test_shapes_that_do_not_fit_the_layer() -> None:
    with pytest.raises(
        ValueError, match=r"Perceptron.fit: x must be of shape \(N, 3\), got \(4, 2"
    ):
        models.Perceptron(3).fit(chainrule.ones(4, 2), chainrule.ones(4))
    with pytest.raises(ValueError, match=r"y must be of shape \(N, 2\), got \(4, 3\)"):
        models.LinearRegression(2, 2).fit(chainrule.ones(4, 2), chainrule.ones(4, 3))
    with pytest.raises(ValueError, match=r"y must be of shape \(N, 2\), got \(4,\)"):
        models.LinearRegression(2, 2).fit(chainrule.ones(4, 2), chainrule.ones(4))
    with pytest.raises(ValueError, match="must lie below classes = 2, found 2"):
        models.SoftmaxRegression(1, 2).fit(chainrule.ones(3, 1), tensor([0, 1, 2]))
    with pytest.raises(ValueError, match="method must be 'exact' .* got 'newton'"):
        models.LinearRegression(1).fit(chainrule.ones(3, 1), chainrule.ones(3), "newton")
    with pytest.raises(ValueError, match="method must be 'exact' .*'lr': 1.0"):
        models.LinearRegression(1).fit(chainrule.ones(3, 1), chainrule.ones(3), lr=1.0)
