"""Linear models on features: what the probabilities are, and that they are learned rightly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special
from sklearn.linear_model import LogisticRegression

import chainrule
from chainrule import models, nn, optim, problems, train
from chainrule.autograd import gradcheck
from chainrule.nn import functional as F

DOUBLE = chainrule.float64


def feature_net() -> nn.Sequential:
    chainrule.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 5), nn.Tanh()).double()


def features_by_hand(net: nn.Sequential, x: np.ndarray) -> np.ndarray:
    weight, bias = (p.detach().numpy() for p in net[0].parameters())
    return np.tanh(x @ weight.T + bias)


def residual(columns: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, float]:
    """The coefficients of the best linear function of the columns, and what is left of values."""
    design = np.c_[columns, np.ones(len(columns))]
    found = np.linalg.lstsq(design, values, rcond=None)[0]
    return found, float(np.abs(design @ found - values).max())


def fit_head(model: Any, loss: Any) -> None:
    """Trains the head alone to the minimum."""
    optimizer = optim.LBFGS(model.head.parameters(), max_iter=500, line_search_fn="strong_wolfe")

    def closure() -> chainrule.Tensor:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        return value

    optimizer.step(closure)


def test_a_binary_head_is_linear_in_the_log_odds_of_its_features() -> None:
    """M11: log P(1|x) / P(0|x) = w.f(x) + b, read off the probabilities alone."""
    net = feature_net()
    model = models.BinaryClassifier(net, 5).double()
    x = np.random.default_rng(0).normal(size=(40, 2))
    p = model.predict_proba(chainrule.tensor(x)).numpy()
    found, left = residual(features_by_hand(net, x), np.log(p / (1 - p)))
    assert left < 1e-12
    np.testing.assert_allclose(found[:5], model.head.weight.detach().numpy()[0], rtol=1e-9)
    np.testing.assert_allclose(found[5], model.head.bias.item(), rtol=1e-9)
    assert residual(x, np.log(p / (1 - p)))[1] > 0.01  # and not in x itself
    assert model.predict(chainrule.tensor(x)).tolist() == (p > 0.5).astype(int).tolist()
    assert not model.predict_proba(chainrule.tensor(x)).requires_grad


def test_a_binary_head_is_logistic_regression_on_its_features() -> None:
    r = np.random.default_rng(1)
    net, x = feature_net(), r.normal(size=(200, 2))
    f = features_by_hand(net, x)
    y = (r.random(200) < special.expit(f @ [2.0, -1, 1, 0, 3] - 0.5)).astype(int)
    model = models.BinaryClassifier(net, 5).double()
    target = chainrule.tensor(y[:, None].astype(float))
    inputs = chainrule.tensor(x)
    fit_head(model, lambda: F.binary_cross_entropy_with_logits(model(inputs), target))
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(f, y)
    probabilities = model.predict_proba(inputs).numpy()
    np.testing.assert_allclose(probabilities, theirs.predict_proba(f)[:, 1], atol=1e-4)


def test_a_multi_class_head_is_the_softmax_of_linear_scores_of_its_features() -> None:
    """M12: P(k|x) = softmax_k(w_k.f(x) + b_k), read off the probabilities alone."""
    net = feature_net()
    model = models.Classifier(net, 5, 3).double()
    x = np.random.default_rng(0).normal(size=(40, 2))
    p = model.predict_proba(chainrule.tensor(x)).numpy()
    f, (w, b) = features_by_hand(net, x), (q.detach().numpy() for q in model.head.parameters())
    np.testing.assert_allclose(p, special.softmax(f @ w.T + b, axis=1), rtol=1e-12)
    np.testing.assert_allclose(p.sum(1), 1, rtol=1e-12)
    for k in (1, 2):  # only differences of the scores matter
        found, left = residual(f, np.log(p[:, k] / p[:, 0]))
        assert left < 1e-12
        np.testing.assert_allclose(found, np.r_[w[k] - w[0], b[k] - b[0]], rtol=1e-8)
    assert model.predict(chainrule.tensor(x)).tolist() == p.argmax(1).tolist()


def test_a_multi_class_head_is_softmax_regression_on_its_features() -> None:
    r = np.random.default_rng(2)
    net, x = feature_net(), r.normal(size=(300, 2))
    f = features_by_hand(net, x)
    chances = special.softmax(f @ r.normal(size=(5, 3)) * 2, axis=1)
    y = np.array([r.choice(3, p=p) for p in chances])
    model = models.Classifier(net, 5, 3).double()
    inputs, target = chainrule.tensor(x), chainrule.tensor(y)
    fit_head(model, lambda: F.cross_entropy(model(inputs), target))
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(f, y)
    probabilities = model.predict_proba(inputs).numpy()
    np.testing.assert_allclose(probabilities, theirs.predict_proba(f), atol=1e-4)


@pytest.mark.parametrize("kind", ["binary", "classes"])
def test_features_and_head_learn_together(kind: str) -> None:
    chainrule.manual_seed(0)
    body = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh())
    if kind == "binary":
        p = problems.moons(200, noise=0.1)
        model: Any = models.BinaryClassifier(body, 16)
        loss, y = "bce_with_logits", p.targets.reshape(-1, 1).float()
    else:
        p = problems.blobs(200, noise=0.3)
        model = models.Classifier(body, 16, 3)
        loss, y = "cross_entropy", p.targets
    before = [q.clone() for q in body.parameters()]
    optimizer = optim.Adam(model.parameters(), lr=0.02)
    train.Trainer(model, loss, optimizer).fit((p.inputs, y), epochs=60)
    assert not any(chainrule.equal(a, b) for a, b in zip(before, body.parameters(), strict=True))
    right = model.predict(p.inputs) == p.targets.reshape(-1)
    assert right.double().mean() > 0.97


def test_xor_from_two_and_neurons() -> None:
    """M14: y = (x1 and not x2) or (not x1 and x2); a line divides the points (h1, h2)."""
    network = models.xor_from_ands()
    x = chainrule.tensor([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    hidden = network[:2](x)
    table = [[bool(a) for a in row] for row in x.tolist()]
    assert hidden[:, 0].bool().tolist() == [a and not b for a, b in table]
    assert hidden[:, 1].bool().tolist() == [not a and b for a, b in table]
    y = network(x)[:, 0]
    assert y.bool().tolist() == [a != b for a, b in table]
    assert y.tolist() == hidden.max(1).values.tolist()  # the output is OR
    labels = 2 * y - 1
    assert optim.separability(x, labels) != "complete"
    assert optim.separability(hidden, labels) == "complete"
    line = network[2](hidden)[:, 0]  # and it is the border of the output neuron
    assert bool((line * labels > 0).all())


def squares(x: chainrule.Tensor) -> chainrule.Tensor:
    return chainrule.stack([x[..., 0] ** 2, x[..., 1] ** 2, x[..., 0] * x[..., 1]], -1)


def test_a_model_on_a_feature_map_is_the_formula() -> None:
    """M16: h(x) = g(w.phi(x) + b)."""
    chainrule.manual_seed(0)
    model = models.FeatureMapModel(squares, 3, 2, activation="sigmoid").double()
    x = np.random.default_rng(0).normal(size=(6, 2))
    phi = np.c_[x[:, 0] ** 2, x[:, 1] ** 2, x[:, 0] * x[:, 1]]
    w, b = (p.detach().numpy() for p in model.head.parameters())
    out = model(chainrule.tensor(x)).detach().numpy()
    np.testing.assert_allclose(out, special.expit(phi @ w.T + b), rtol=1e-12)
    assert gradcheck(model, (chainrule.tensor(x, requires_grad=True),))
    plain = models.FeatureMapModel(squares, 3).double()
    with chainrule.no_grad():
        plain.head.weight.copy_(chainrule.tensor([[1.0, 1.0, 0.0]]))
        plain.head.bias.fill_(-1.0)
    np.testing.assert_allclose(
        plain(chainrule.tensor(x))[:, 0].detach().numpy(), (x**2).sum(1) - 1, rtol=1e-12
    )


def test_a_circle_is_a_straight_border_in_the_squares() -> None:
    chainrule.manual_seed(0)
    x = chainrule.randn(300, 2)
    inside = ((x**2).sum(1, keepdim=True) < 1).float()
    found = {}
    for name, phi, width in (("squares", squares, 3), ("plain", lambda t: t, 2)):
        model = models.FeatureMapModel(phi, width)
        optimizer = optim.Adam(model.parameters(), lr=0.1)
        trainer = train.Trainer(model, "bce_with_logits", optimizer, metrics="accuracy")
        trainer.fit((x, inside), epochs=100)
        found[name] = trainer.evaluate((x, inside))["accuracy"]
    assert found["squares"] > 0.97
    assert found["plain"] < 0.75


def test_wrong_features() -> None:
    with pytest.raises(TypeError, match="Classifier: features must be a module or a function"):
        models.Classifier(3, 5, 2)  # type: ignore[arg-type]
    model = models.BinaryClassifier(nn.Linear(2, 4), 5)
    with pytest.raises(ValueError, match=r"expected features \(N, 5\), got shape \(3, 4\)"):
        model(chainrule.ones(3, 2))
