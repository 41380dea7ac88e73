"""Penalties against closed forms and finite differences, and in the Trainer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
from regularize.networks import (
    F64,
    Recurrent,
    assert_gradient,
    convolutional,
    network,
    numeric,
    weights,
)

import chainrule
from chainrule import models, nn, optim, regularize, train
from chainrule.regularize.where import select

# --- values ---------------------------------------------------------------------------------------


def test_l2_is_half_the_squared_norm() -> None:
    model = network()
    w = weights(model)
    assert float(regularize.L2(0.3)(model)) == pytest.approx(0.15 * w @ w, rel=1e-13)


def test_l2_alone_makes_weights_decay() -> None:
    model = network()
    start, lr, strength = weights(model), 0.1, 0.5
    penalty, optimizer = regularize.L2(strength), optim.SGD(model.parameters(), lr=lr)
    for _ in range(20):
        optimizer.zero_grad()
        penalty(model).backward()
        optimizer.step()
    np.testing.assert_allclose(weights(model), (1 - lr * strength) ** 20 * start, rtol=1e-12)


def test_l1_is_the_sum_of_sizes() -> None:
    model = network()
    assert float(regularize.L1(0.3)(model)) == pytest.approx(0.3 * np.abs(weights(model)).sum())
    model[0].weight.data.zero_()
    regularize.L1(0.3)(model).backward()
    assert not model[0].weight.grad.numpy().any()  # at zero nothing pulls


def test_cauchy() -> None:
    model = network()
    w = weights(model)
    joint, each = regularize.Cauchy(0.3), regularize.Cauchy(0.3, scale=2.0, joint=False)
    assert float(joint(model)) == pytest.approx(0.3 * np.log(1 + w @ w))
    assert float(each(model)) == pytest.approx(0.3 * np.log(1 + (w / 2) ** 2).sum())


def test_weight_elimination() -> None:
    model = network()
    s = (weights(model) / 0.2) ** 2
    assert float(regularize.WeightElimination(0.3)(model)) == pytest.approx(
        0.3 * (s / (1 + s)).sum()
    )
    model[0].weight.data.fill_(100.0)
    model[2].weight.data.fill_(0.0)
    assert float(regularize.WeightElimination(1.0)(model)) == pytest.approx(12, abs=1e-3)


@pytest.mark.parametrize(
    ("groups", "axes"),
    [("rows", (1, 2, 3)), ("columns", (0, 2, 3)), ("kernels", (2, 3)), ("tensors", (0, 1, 2, 3))],
)
def test_group_lasso(groups: str, axes: tuple[int, ...]) -> None:
    model = nn.Conv2d(3, 4, 2, dtype=F64)
    w = model.weight.detach().numpy()
    size = np.prod([w.shape[a] for a in axes])
    expected = np.sqrt(size) * np.sqrt((w**2).sum(axes)).sum()
    penalty = regularize.GroupLasso(0.1, groups=groups)
    assert float(penalty(model)) == pytest.approx(0.1 * expected)
    model.weight.data[1] = 0.0
    penalty(model).backward()
    assert np.isfinite(model.weight.grad.numpy()).all()


def test_group_lasso_removes_inputs() -> None:
    """Of five inputs two matter: the columns of the others fall to nothing."""
    chainrule.manual_seed(0)
    x = chainrule.randn(200, 5, dtype=F64)
    y = x[:, :1] - 2 * x[:, 1:2]
    model = nn.Linear(5, 1, dtype=F64)
    trainer = train.Trainer(
        model,
        "mse",
        optim.SGD(model.parameters(), lr=0.05),
        penalties=regularize.GroupLasso(0.2, groups="columns"),
    )
    trainer.fit((x, y), epochs=60, batch_size=200)
    left = np.abs(model.weight.detach().numpy()[0])
    assert (left[:2] > 0.7).all()
    assert (left[2:] < 0.02).all()


def test_orthogonality_of_each_gate() -> None:
    cell = nn.LSTMCell(3, 4, dtype=F64)
    blocks = cell.weight_hh.detach().numpy().reshape(4, 4, 4)
    expected = sum(0.5 * ((b.T @ b - np.eye(4)) ** 2).sum() for b in blocks)
    penalty = regularize.Orthogonality(0.1)
    assert float(penalty(cell)) == pytest.approx(0.1 * expected)
    optimizer = optim.SGD(cell.parameters(), lr=0.3)
    for _ in range(500):
        optimizer.zero_grad()
        penalty(cell).backward()
        optimizer.step()
    singular = np.linalg.svd(cell.weight_hh.detach().numpy().reshape(4, 4, 4))[1]
    np.testing.assert_allclose(singular, 1.0, atol=1e-6)


def test_orthogonality_of_a_wide_matrix() -> None:
    layer = nn.Linear(5, 2, dtype=F64)
    w = layer.weight.detach().numpy()
    expected = 0.5 * ((w @ w.T - np.eye(2)) ** 2).sum()
    assert float(regularize.Orthogonality(1.0, where="weight")(layer)) == pytest.approx(expected)


def test_spectral_penalty_takes_the_largest_singular_value() -> None:
    cell = nn.RNNCell(2, 2, dtype=F64)
    w = np.array([[0.5, 10.0], [0.0, 0.5]])  # its spectral radius is 0.5
    cell.weight_hh.data = chainrule.tensor(w)
    s = np.linalg.norm(w, 2)
    assert s == pytest.approx(10.0249, abs=1e-4)
    assert float(regularize.Spectral(1.0)(cell)) == pytest.approx(s**2 / 2)
    assert float(regularize.Spectral(1.0, limit=1.0)(cell)) == pytest.approx((s - 1) ** 2 / 2)
    assert float(regularize.Spectral(1.0, limit=11.0)(cell)) == 0


PENALTIES = [
    regularize.L2(0.3),
    regularize.L1(0.3),
    regularize.L2(0.3, where="*"),
    regularize.Cauchy(0.3),
    regularize.Cauchy(0.3, scale=0.5, joint=False),
    regularize.WeightElimination(0.3),
    regularize.GroupLasso(0.3),
    regularize.GroupLasso(0.3, groups="columns"),
    regularize.Orthogonality(0.3, where="*.weight"),
    regularize.Spectral(0.3, where="*.weight"),
    regularize.L2({"0.*": 0.1, "*.weight": 0.7}),
    regularize.SoftWeightSharing(0.1, dtype=F64),
]


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_gradients(penalty: Any) -> None:
    assert_gradient(penalty, network())


@pytest.mark.parametrize("dtype", [chainrule.float32, F64])
@pytest.mark.parametrize("make", [network, convolutional, Recurrent])
def test_any_module_in_its_own_dtype(make: Callable[[], Any], dtype: Any) -> None:
    model = make().to(dtype)
    for penalty in PENALTIES[:3] + PENALTIES[4:8]:
        value = penalty(model)
        assert value.dtype == dtype
        assert value.shape == ()
        value.backward()
        assert model.get_parameter(next(iter(penalty.weights(model)))).grad.dtype == dtype


# --- which parameters -----------------------------------------------------------------------------


def test_patterns_lists_and_predicates() -> None:
    model = Recurrent()
    assert list(select("t", model, "*.weight")) == ["norm.weight", "head.weight", "skip.weight"]
    assert list(select("t", model, ["head.*", "lstm.weight_hh*"])) == [
        "lstm.weight_hh_l0",
        "head.weight",
        "head.bias",
    ]
    assert list(select("t", model, lambda name: name.endswith("skip.bias"))) == ["skip.bias"]
    assert list(select("t", model)) == [
        "lstm.weight_ih_l0",
        "lstm.weight_hh_l0",
        "head.weight",
        "skip.weight",
    ]


def test_strength_of_each_layer() -> None:
    model = network()
    penalty = regularize.L2({"0.weight": 0.1, "2.*": 0.5})
    first, second = model[0].weight.detach().numpy(), model[2].weight.detach().numpy()
    bias = model[2].bias.detach().numpy()
    expected = 0.05 * (first**2).sum() + 0.25 * ((second**2).sum() + (bias**2).sum())
    assert float(penalty(model)) == pytest.approx(expected)
    assert repr(penalty) == "L2({'0.weight': 0.1, '2.*': 0.5})"


def test_a_shared_weight_counts_once_under_any_of_its_names() -> None:
    model = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False))
    model[1].weight = model[0].weight
    w = weights(model)
    assert float(regularize.L2(1.0)(model).detach()) == pytest.approx(w @ w / 2)
    assert float(regularize.L2(1.0, where="1.*")(model).detach()) == pytest.approx(w @ w / 2)


def test_names_and_representations() -> None:
    assert repr(regularize.L2(1e-4, where="*.weight")) == "L2(0.0001, where='*.weight')"
    assert repr(regularize.GroupLasso(1.0, groups="columns")) == "GroupLasso(1.0, groups='columns')"
    assert repr(regularize.Tikhonov(0.1, order=2)) == "Tikhonov(0.1, order=2)"
    assert regularize.L1(0.1).name == "l1"
    assert regularize.WeightElimination(0.1).name == "weight_elimination"
    assert regularize.L1(0.1, name="sparse").name == "sparse"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda m: regularize.L2(1.0, where="*.kernel")(m),
            r"'\*.kernel' matches no parameter; there are 0.weight, 0.bias, 2.weight, 2.bias",
        ),
        (lambda m: regularize.L2(1.0, where=["0.*", "conv*"])(m), r"'conv\*' matches no parameter"),
        (lambda m: regularize.L2(1.0, where=lambda n: False)(m), "matches no parameter"),
        (
            lambda m: regularize.L2({"*": 1.0, "0.*": 2.0})(m),
            r"'0.\*' matches no parameter that an earlier pattern has not taken",
        ),
        (lambda m: regularize.Spectral(1.0)(m), r"'\*weight_hh\*' matches no parameter"),
        (lambda m: regularize.L2(1.0)(nn.Tanh()), "has no weights .* among no parameters"),
        (lambda m: regularize.L2(1.0)(nn.LayerNorm(3)), r"no weights .*where='\*' means all"),
        (lambda m: regularize.L2(-1.0), "strength must be a number >= 0, got -1.0"),
        (lambda m: regularize.L2({}), "dictionary of strengths is empty"),
        (lambda m: regularize.L2({"0.*": 1.0}, where="*"), "where must be None"),
        (lambda m: regularize.WeightElimination(1.0, threshold=0.0), "threshold must be positive"),
        (lambda m: regularize.Cauchy(1.0, scale=-1.0), "scale must be positive"),
        (lambda m: regularize.GroupLasso(1.0, groups="units"), "groups must be 'rows'"),
        (
            lambda m: regularize.GroupLasso(1.0, where="0.bias", groups="columns")(m),
            r"0.bias has shape \(4,\) and no columns",
        ),
        (lambda m: regularize.Orthogonality(1.0, where="*")(m), r"0.bias has shape \(4,\) and is"),
        (lambda m: regularize.Spectral(1.0, limit=-1.0), "limit must be >= 0"),
        (lambda m: regularize.L2(1.0)(nn.LazyLinear(3)), "has no shape yet; call the model once"),
    ],
)
def test_errors(make: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(network())


def test_wrong_types() -> None:
    with pytest.raises(TypeError, match="where must be a pattern"):
        regularize.L2(1.0, where=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected a Module, got list"):
        regularize.L2(1.0)([])  # type: ignore[arg-type]


# --- priors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("penalty", "law"),
    [
        (regularize.gaussian_prior(0.5, n=20), scipy.stats.norm(scale=0.5)),
        (regularize.laplace_prior(0.5, n=20), scipy.stats.laplace(scale=0.5)),
        (regularize.cauchy_prior(0.5, n=20), scipy.stats.cauchy(scale=0.5)),
    ],
    ids=["gaussian", "laplace", "cauchy"],
)
def test_penalties_are_priors(penalty: Any, law: Any) -> None:
    """-ln p(w) / n up to a constant: the same differences between any two sets of weights."""
    first, second = network(0), network(1)
    prior = [-law.logpdf(weights(m)).sum() / 20 for m in (first, second)]
    difference = float(penalty(first)) - float(penalty(second))
    assert difference == pytest.approx(prior[0] - prior[1], rel=1e-12)


def test_a_prior_makes_ridge_regression() -> None:
    """The most probable weights of a linear model are those of ridge regression."""
    rng = np.random.default_rng(0)
    x, noise, std = rng.normal(size=(30, 3)), 0.7, 0.5
    y = x @ np.array([1.0, -2.0, 0.5]) + noise * rng.normal(size=30)
    model = nn.Linear(3, 1, bias=False, dtype=F64)
    penalty = regularize.gaussian_prior(std, n=30)
    inputs, targets = chainrule.tensor(x), chainrule.tensor(y[:, None])

    def closure() -> Any:
        misfit = ((model(inputs) - targets) ** 2).mean() / (2 * noise**2)
        return misfit + penalty(model)

    optim.minimize(closure, model.parameters(), method="newton")
    expected = np.linalg.solve(x.T @ x + noise**2 / std**2 * np.eye(3), x.T @ y)
    np.testing.assert_allclose(model.weight.detach().numpy()[0], expected, rtol=1e-8)
    with pytest.raises(ValueError, match="std must be positive, got 0"):
        regularize.gaussian_prior(0.0)
    with pytest.raises(ValueError, match="n must be at least 1, got 0"):
        regularize.laplace_prior(1.0, n=0)


# --- what weight decay does -----------------------------------------------------------------------


def test_l2_optimum_in_the_eigenbasis() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=(20, 4)) * [3.0, 1.0, 0.3, 0.01]
    h, w0, strength = a.T @ a, rng.normal(size=4), 0.5
    found = regularize.l2_optimum(chainrule.tensor(h), chainrule.tensor(w0), strength)
    expected = np.linalg.solve(h + strength * np.eye(4), h @ w0)
    np.testing.assert_allclose(found.weights.numpy(), expected, rtol=1e-10)
    values = np.linalg.eigvalsh(h)
    np.testing.assert_allclose(found.kept.numpy(), values / (values + strength), rtol=1e-9)
    rotated = found.eigenvectors.numpy().T @ np.stack([found.weights.numpy(), w0], 1)
    np.testing.assert_allclose(rotated[:, 0], found.kept.numpy() * rotated[:, 1], rtol=1e-9)
    full = regularize.l2_optimum(chainrule.tensor(h), chainrule.tensor(w0), 0.0)
    np.testing.assert_allclose(full.weights.numpy(), w0, rtol=1e-9)
    with pytest.raises(ValueError, match="there is no minimum: the Hessian has the eigenvalue -2"):
        regularize.l2_optimum(chainrule.tensor([[-2.0]]), chainrule.tensor([1.0]), 1.0)
    with pytest.raises(RuntimeError, match=r"got \(4, 4\) and \(3,\)"):
        regularize.l2_optimum(chainrule.tensor(h), chainrule.zeros(3), 1.0)


def test_l2_optimum_is_where_training_ends() -> None:
    """Of a linear model, whose loss is a quadratic: the Trainer's penalty against the formula."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(40, 3)), rng.normal(size=(40, 1))
    h, w0 = x.T @ x * (2 / 40), np.linalg.lstsq(x, y, rcond=None)[0][:, 0]
    expected = regularize.l2_optimum(chainrule.tensor(h), chainrule.tensor(w0), 0.3).weights
    model = nn.Linear(3, 1, bias=False, dtype=F64)
    trainer = train.Trainer(
        model, "mse", optim.SGD(model.parameters(), lr=0.3), penalties=[regularize.L2(0.3)]
    )
    history = trainer.fit((x, y), epochs=200, batch_size=40)
    np.testing.assert_allclose(model.weight.detach().numpy()[0], expected.numpy(), rtol=1e-9)
    assert history["l2"][-1] == pytest.approx(0.15 * float((expected**2).sum()), rel=1e-6)


def test_choice_by_complexity() -> None:
    assert regularize.simplest_adequate([3, 1, 2], [0.1, 0.5, 0.1]) == 2
    assert regularize.simplest_adequate([3, 1, 2], [0.1, 0.5, 0.12], errors=[0.05, 0, 0]) == 2
    assert regularize.simplest_adequate([3, 1, 2], [0.1, 0.5, float("nan")]) == 0
    with pytest.raises(ValueError, match="as many complexities as risks"):
        regularize.simplest_adequate([1], [])
    with pytest.raises(ValueError, match="expected 1 errors >= 0"):
        regularize.simplest_adequate([1], [1], [-1.0])


def test_the_bound_of_the_risk_holds_and_grows_with_complexity() -> None:
    bounds = [regularize.risk_bound(0.1, h, 1000) for h in (1, 5, 50)]
    assert bounds == sorted(bounds)
    assert regularize.risk_bound(0.1, 5, 10**7) == pytest.approx(0.1, abs=5e-3)
    # Thresholds on a line have VC dimension 1: their true risk stays below the bound.
    rng = np.random.default_rng(0)
    for _ in range(200):
        x = rng.uniform(size=50)
        y = (x > 0.5) ^ (rng.uniform(size=50) < 0.1)
        cuts = np.linspace(0, 1, 101)
        errors = [((x > c) != y).mean() for c in cuts]
        best = cuts[np.argmin(errors)]
        risk = 0.1 + 0.8 * abs(best - 0.5)
        assert risk <= regularize.risk_bound(min(errors), 1, 50)
    with pytest.raises(ValueError, match="dimension=60, n=50"):
        regularize.risk_bound(0.1, 60, 50)
    with pytest.raises(ValueError, match="must lie between 0 and 1"):
        regularize.risk_bound(2.0, 1, 50)


# --- in the loop ----------------------------------------------------------------------------------


def problem() -> tuple[Any, Any]:
    g = chainrule.Generator().manual_seed(1)
    x = chainrule.randn(40, 3, generator=g, dtype=F64)
    return x, chainrule.tanh(x[:, :2])


def test_penalties_have_columns_of_their_own() -> None:
    x, y = problem()
    model = network()
    penalties = [
        regularize.L2(1e-3),
        regularize.L1(1e-3, where="0.*"),
        regularize.Tikhonov(1e-3),
        regularize.FlatMinimum(1e-4),
    ]
    before = [float(p(model, x) if p.needs_inputs else p(model)) for p in penalties]
    trainer = train.Trainer(
        model, "mse", optim.SGD(model.parameters(), lr=0.1), penalties=penalties
    )
    history = trainer.fit((x, y), epochs=2, batch_size=40)
    for penalty, value in zip(penalties, before, strict=True):
        assert history[penalty.name][0] == pytest.approx(value, rel=1e-12)


def test_normalized_gradient() -> None:
    model = network()
    x, y = problem()
    ((model(x) - y) ** 2).mean().backward()
    loss = {n: p.grad.numpy().copy() for n, p in model.named_parameters()}
    regularize.Normalized(regularize.L1(7.0), 0.3).after_backward(model)
    omega = {n: np.sign(p.detach().numpy()) for n, p in model.named_parameters() if p.ndim == 2}
    size = np.sqrt(sum((loss[n] ** 2).sum() for n in omega))
    own = np.sqrt(sum((g**2).sum() for g in omega.values()))
    for name, p in model.named_parameters():
        expected = loss[name] + (0.3 * size * omega[name] / own if name in omega else 0.0)
        np.testing.assert_allclose(p.grad.numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("penalty", [regularize.L2(1.0), regularize.Tikhonov(1.0)], ids=repr)
def test_normalized_penalty_in_the_trainer(penalty: Any, accumulate: int) -> None:
    x, y = problem()
    by_hand, model = network(), network()
    normalized = regularize.Normalized(penalty, 0.2)
    optimizer = optim.SGD(by_hand.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        ((by_hand(x) - y) ** 2).mean().backward()
        normalized.after_backward(by_hand, *([x] if penalty.needs_inputs else []))
        optimizer.step()
    trainer = train.Trainer(
        model,
        "mse",
        optim.SGD(model.parameters(), lr=0.1),
        penalties=[normalized],
        accumulate=accumulate,
    )
    history = trainer.fit((x, y), epochs=2, batch_size=40 // accumulate, shuffle=False)
    np.testing.assert_allclose(weights(model), weights(by_hand), rtol=1e-11)
    assert history[penalty.name][0] > 0
    assert history["loss"][0] == pytest.approx(float(((network()(x) - y) ** 2).mean()))


def test_a_penalty_without_slope_adds_nothing() -> None:
    model = network()
    for p in model.parameters():
        p.data.zero_()
        p.grad = chainrule.ones_like(p)
    regularize.Normalized(regularize.L2(1.0), 0.5).after_backward(model)
    assert all((p.grad.numpy() == 1).all() for p in model.parameters())


def test_a_changed_gradient_needs_an_optimizer_that_takes_it() -> None:
    model = network()
    penalty = regularize.Normalized(regularize.L2(1.0), 0.5)
    for optimizer in (optim.LBFGS(model.parameters()), optim.BFGS(model.parameters())):
        with pytest.raises(ValueError, match="'l2' changes the gradient and not the loss"):
            train.Trainer(model, "mse", optimizer, penalties=penalty)
    with pytest.raises(TypeError, match="expected a penalty, got 3"):
        regularize.Normalized(3, 0.5)
    with pytest.raises(ValueError, match="would not be learned"):
        regularize.Normalized(regularize.SoftWeightSharing(0.1), 0.5)


# --- soft weight sharing --------------------------------------------------------------------------


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
