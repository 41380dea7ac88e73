"""Error bars from curvature, and the bound of Cramer and Rao."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from helpers import assert_close
from small_network import normal, softmax, tensor
from curvature.modules import Case

import chainrule
from chainrule import Tensor, curvature, nn
from chainrule.curvature import Laplace, cramer_rao, last_layer, ravel


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


# --- Laplace --------------------------------------------------------------------------------------


def linear_gaussian() -> Any:
    """Bayesian linear regression in closed form: the posterior and its predictions."""
    x, noise, prior = normal(30, 3, seed=5), 0.4, 2.5
    y = x @ np.array([1.0, -2.0, 0.5]) + 3 + np.sqrt(noise) * normal(30, seed=6)
    design = np.c_[x, np.ones(30)]
    precision = design.T @ design / noise + prior * np.eye(4)
    w = np.linalg.solve(precision, design.T @ y / noise)
    model = nn.Linear(3, 1).double()
    with chainrule.no_grad():
        model.weight.copy_(tensor(w[None, :3]))
        model.bias.copy_(tensor(w[3:]))
    return model, x, y, noise, prior, np.linalg.inv(precision)


def test_laplace_is_bayesian_linear_regression() -> None:
    model, x, y, noise, prior, covariance = linear_gaussian()
    new = normal(7, 3, seed=8)
    design = np.c_[new, np.ones(7)]
    variance = np.einsum("ni,ij,nj->n", design, covariance, design)[:, None]
    settings: Any = {"variance": noise, "prior_precision": prior}
    for targets in (None, tensor(y[:, None])):  # Gauss-Newton and Hessian are equal
        laplace = Laplace(model, tensor(x), "gaussian", targets=targets, **settings)
        assert laplace.damping == 0
        assert_close(laplace.covariance(), covariance)
        assert_close(laplace.std()["bias"], np.sqrt(covariance[3:, 3]))
        mean, std = laplace.predict(tensor(new))
        assert_close(mean, model(tensor(new)).detach().numpy())
        assert_close(std, np.sqrt(variance))
        assert_close(laplace.predict(tensor(new), noise=True).std, np.sqrt(variance + noise))
        assert_close(laplace.predict_covariance(tensor(new)), variance[:, :, None])
    drawn = laplace.sample(4000, generator=generator())
    rows = np.c_[drawn["weight"].numpy().reshape(4000, 3), drawn["bias"].numpy()]
    assert_close(np.cov(rows.T), covariance, rtol=0.15, atol=3e-4)
    each = Laplace(
        model,
        tensor(x),
        "gaussian",
        variance=noise,
        prior_precision=tensor([prior, prior, prior, 0.0]),
    )
    precision = np.linalg.inv(covariance) - np.diag([0, 0, 0, prior])
    assert_close(each.covariance(), np.linalg.inv(precision))


def test_laplace_with_a_diagonal() -> None:
    model, x, _, noise, prior, covariance = linear_gaussian()
    laplace = Laplace(
        model, tensor(x), "gaussian", variance=noise, prior_precision=prior, structure="diagonal"
    )
    diagonal = 1 / np.diagonal(np.linalg.inv(covariance))
    assert_close(laplace.covariance(), np.diag(diagonal))
    assert_close(flat(laplace.std()), np.sqrt(diagonal))
    design = np.c_[x, np.ones(30)]
    assert_close(laplace.predict(tensor(x)).std[:, 0], np.sqrt(design**2 @ diagonal))
    drawn = flat_rows(laplace.sample(4000, generator=generator()))
    assert_close(drawn.std(0), np.sqrt(diagonal), rtol=0.1)


def flat_rows(tree: dict[str, Tensor]) -> np.ndarray:
    return np.concatenate([t.numpy().reshape(len(t), -1) for t in tree.values()], 1)


def test_laplace_of_the_last_layer_is_regression_on_its_inputs() -> None:
    case = Case("mlp", samples=40)
    model = case.model
    assert last_layer(model) == ["2.weight", "2.bias"]
    settings: Any = {"variance": 0.1, "prior_precision": 0.7, "where": last_layer(model)}
    laplace = Laplace(model, case.x, "gaussian", **settings)
    features = model[1](model[0](case.x)).detach().numpy()
    design = np.c_[features, np.ones(40)]
    one = np.linalg.inv(design.T @ design / 0.1 + 0.7 * np.eye(6))  # of each of the two outputs
    variance = np.einsum("ni,ij,nj->n", design, one, design)
    assert_close(laplace.predict(case.x).std, np.sqrt(np.c_[variance, variance]), rtol=1e-8)
    outputs = laplace.predict_covariance(case.x)
    assert_close(outputs, variance[:, None, None] * np.eye(2), rtol=1e-8, atol=1e-14)


@pytest.mark.parametrize("name", ["conv and batch norm in training", "residual", "LSTM", "GRU"])
def test_laplace_through_any_module(name: str) -> None:
    """J (F + prior)^-1 J^T with the Jacobian of the whole batch, in evaluation."""
    case = Case(name)
    modes = [m.training for m in case.model.modules()]
    laplace = Laplace(case.model, case.x, "categorical", prior_precision=0.5, chunk_size=2)
    mean, std = laplace.predict(case.x)
    assert [m.training for m in case.model.modules()] == modes
    case.model.eval()
    assert_close(mean, case.model(case.x).detach().numpy())
    fisher = curvature.fisher(case.model, case.x, "categorical", reduction="sum").numpy()
    jacobian = case.jacobian()
    covariance = np.linalg.inv(fisher + 0.5 * np.eye(len(fisher)))
    expected = np.einsum("oi,ij,oj->o", jacobian, covariance, jacobian)
    assert_close(std.reshape(-1), np.sqrt(expected), rtol=1e-7)
    z = mean.numpy() / np.sqrt(1 + np.pi / 8 * std.numpy() ** 2)
    assert_close(laplace.probabilities(case.x), softmax(z))


def test_laplace_is_less_certain_far_from_the_data() -> None:
    x = tensor(normal(40, 2, seed=2))
    y = (x[:, :1] > 0).double()
    chainrule.manual_seed(0)
    model = nn.Linear(2, 1).double()
    chainrule.optim.LBFGS(model.parameters(), max_iter=100).step(
        lambda: _backward(model, F.binary_cross_entropy_with_logits(model(x), y, reduction="sum"))
    )
    laplace = Laplace(model, x, "bernoulli", prior_precision=1.0, targets=y)
    far = tensor([[0.1, 0.0], [20.0, 0.0], [0.1, 30.0]])
    p, sure = laplace.probabilities(far), model(far).sigmoid()
    assert ((p - 0.5).abs() < (sure - 0.5).abs()).all()
    assert float(laplace.predict(far).std[2]) > 5 * float(laplace.predict(far).std[0])


def _backward(model: nn.Module, loss: Tensor) -> Tensor:
    total = loss + sum((p**2).sum() for p in model.parameters()) / 2
    for p in model.parameters():
        p.grad = None
    total.backward()
    return total


def test_a_precision_that_is_not_positive_is_damped_and_said() -> None:
    case = Case("mlp")
    with pytest.warns(RuntimeWarning, match=r"not positive definite .* was added to it"):
        laplace = Laplace(case.model, case.x, "categorical", prior_precision=0.0)
    assert laplace.damping > 0
    assert bool(laplace.predict(case.x).std.isfinite().all())
    with pytest.warns(RuntimeWarning, match="leave out targets"):
        laplace = Laplace(
            case.model, case.x, "categorical", prior_precision=1e-3, targets=1 - case.y
        )
    hessian = np.linalg.inv(laplace.covariance().numpy())
    assert np.linalg.eigvalsh(hessian).min() > 0
    with pytest.warns(RuntimeWarning, match="was added"):
        Laplace(case.model, 0 * case.x, "categorical", prior_precision=0.0, structure="diagonal")


def test_error_bars_by_dropout_are_those_of_all_masks() -> None:
    """The mean and the spread over the 64 masks of six hidden units, each with its chance."""
    chainrule.manual_seed(1)
    model = nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Dropout(0.3), nn.Linear(6, 2)).double()
    x = tensor(normal(5, 2, seed=3))
    hidden = model[:2](x).detach().numpy()
    w, b = (p.detach().numpy() for p in model[3].parameters())
    masks = np.array(list(itertools.product([0.0, 1.0], repeat=6)))
    chances = 0.7 ** masks.sum(1) * 0.3 ** (6 - masks.sum(1))
    outputs = np.einsum("mh,nh,kh->mnk", masks / 0.7, hidden, w) + b
    mean = np.einsum("m,mnk->nk", chances, outputs)
    std = np.sqrt(np.einsum("m,mnk->nk", chances, (outputs - mean) ** 2))
    found = F.monte_carlo_predict(model, x, samples=6000)
    assert_close(found.mean, mean, rtol=0, atol=5 * std.max() / np.sqrt(6000))
    assert_close(found.std, std, rtol=0.06)


def test_error_bars_by_curvature_and_by_dropout_are_larger_far_from_the_data() -> None:
    """Both are a mean and a standard deviation, of the shape of the output."""
    chainrule.manual_seed(1)
    model = nn.Sequential(nn.Linear(1, 50), nn.ReLU(), nn.Dropout(0.1), nn.Linear(50, 1)).double()
    x = chainrule.linspace(-1, 1, 60, dtype=chainrule.float64).reshape(-1, 1)
    y = (3 * x).sin()
    optimizer = chainrule.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(300):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
    points = tensor([[0.0], [4.0], [-4.0]])
    dropout = F.monte_carlo_predict(model, points, samples=500)
    model.eval()
    laplace = Laplace(model, x, "gaussian", variance=0.05).predict(points)
    for found in (dropout, laplace):
        assert type(found) is curvature.Prediction
        assert found.mean.shape == found.std.shape == (3, 1)
        assert float(found.std[0]) > 0
        assert bool((found.std[1:] > 3 * found.std[0]).all())
    assert_close(laplace.mean, model(points).detach().numpy())
    assert_close(dropout.mean[:1], model(points[:1]).detach().numpy(), atol=0.1)


def test_error_bars_hold_what_they_promise() -> None:
    """Of intervals of 1.96 standard deviations, 95 in 100 hold the truth: 2000 of them tried."""
    r = np.random.default_rng(0)
    x = r.normal(size=(20, 2))
    design, new = np.c_[x, np.ones(20)], r.normal(size=(5, 2)) * 2
    w, noise = np.array([1.0, -2.0, 0.5]), 0.3
    model = nn.Linear(2, 1).double()
    truth = np.c_[new, np.ones(5)] @ w
    hits = 0
    for _ in range(400):
        y = design @ w + np.sqrt(noise) * r.normal(size=20)
        fitted = np.linalg.lstsq(design, y, rcond=None)[0]
        with chainrule.no_grad():
            model.weight.copy_(tensor(fitted[None, :2]))
            model.bias.copy_(tensor(fitted[2:]))
        laplace = Laplace(model, tensor(x), "gaussian", variance=noise, prior_precision=0.0)
        mean, std = (t.numpy()[:, 0] for t in laplace.predict(tensor(new)))
        hits += int((np.abs(mean - truth) < 1.96 * std).sum())
    assert 0.93 < hits / 2000 < 0.97


# --- the bound of Cramer and Rao ------------------------------------------------------------------


def test_cramer_rao_of_linear_regression_is_reached_by_least_squares() -> None:
    x, w, noise = normal(25, 2, seed=1), np.array([1.0, -2.0]), 0.3
    bound = cramer_rao(lambda w, x: x @ w, tensor(x), "gaussian", tensor(w), variance=noise)
    expected = noise * np.linalg.inv(x.T @ x)
    assert bound.rank == 2
    assert_close(bound.covariance(), expected)
    assert_close(bound.std, np.sqrt(np.diagonal(expected)))
    y = x @ w + np.sqrt(noise) * normal(20000, 25, seed=2)
    estimates = y @ np.linalg.pinv(x).T
    assert_close(estimates.std(0), np.sqrt(np.diagonal(expected)), rtol=0.02)
    # a function of the parameters: |dg|^2 F^-1
    found = bound.of(lambda w: w[0] * w[1], tensor(w))
    g = np.array([w[1], w[0]])
    assert_close(found, np.sqrt(g @ expected @ g))
    model = nn.Linear(2, 1).double()
    named = cramer_rao(model, tensor(x), "gaussian", variance=noise)
    design = np.c_[x, np.ones(25)]
    deviations = np.sqrt(np.diagonal(noise * np.linalg.inv(design.T @ design)))
    assert_close(named.std["weight"], deviations[None, :2])
    assert_close(named.std["bias"], deviations[2:])
    total = named.of(lambda p: p["weight"].sum() + p["bias"].sum(), dict(model.named_parameters()))
    assert_close(total, np.sqrt(named.covariance().numpy().sum()))


def test_cramer_rao_of_a_bernoulli_variable() -> None:
    """N observations of probability p: Var p >= p (1 - p) / N."""
    count, p = 50, 0.3
    logit = tensor([np.log(p / (1 - p))])
    x = chainrule.ones(count, 1, dtype=chainrule.float64)
    bound = cramer_rao(lambda w, x: x * w, x, "bernoulli", logit)
    assert_close(bound.of(lambda w: w.sigmoid(), logit), np.sqrt([p * (1 - p) / count]))


def test_what_the_data_do_not_determine_has_no_bound() -> None:
    """The product of two weights is determined, neither of them is; a third one is."""
    x = tensor(normal(20, 2))
    w = {"a": tensor(2.0), "b": tensor(3.0), "c": tensor(1.0)}
    bound = cramer_rao(lambda w, x: w["a"] * w["b"] * x[:, 0] + w["c"] * x[:, 1], x, "gaussian", w)
    assert bound.rank == 2
    assert float(bound.std["a"]) == float(bound.std["b"]) == np.inf
    expected = np.sqrt(np.diagonal(np.linalg.inv(x.numpy().T @ x.numpy())))
    assert_close(bound.std["c"], expected[1])
    assert_close(bound.of(lambda w: w["a"] * w["b"], w), expected[0], rtol=1e-7)


def test_variance_of_the_residuals() -> None:
    x, y = normal(20, 2), normal(20, 1, seed=3)
    model = nn.Linear(2, 1).double()
    got = curvature.residual_variance(model, tensor(x), tensor(y))
    r = model(tensor(x)).detach().numpy() - y
    assert got == pytest.approx((r**2).sum() / 17)
    with pytest.raises(ValueError, match="2 target values leave nothing over for 3 parameters"):
        curvature.residual_variance(model, tensor(x[:2]), tensor(y[:2]))
    with pytest.raises(RuntimeError, match=r"shape of the output \(20, 1\)"):
        curvature.residual_variance(model, tensor(x), tensor(y[:, 0]))
