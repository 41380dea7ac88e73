"""Penalties: values, which parameters they mean, and in the loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from regularize.networks import F64, Recurrent, assert_gradient, convolutional, network, weights
from regularize.problem import problem

import chainrule
from chainrule import nn, optim, regularize, train
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


# --- in the loop ----------------------------------------------------------------------------------


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
