"""Penalties of derivatives of the outputs: smoothing, and flat minima."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from regularize.networks import F64, Recurrent, assert_gradient, convolutional, network

import chainrule
from chainrule import nn, regularize
from chainrule.curvature import input_jacobian, parameter_jacobian, per_output_hvp
from chainrule.func import functional_call, hessian, jacrev


def inputs(*shape: int) -> Any:
    return chainrule.randn(*shape, generator=chainrule.Generator().manual_seed(3), dtype=F64)


# --- smoothing ------------------------------------------------------------------------------------


def test_tikhonov_is_the_squared_jacobian() -> None:
    model, x = network(), inputs(5, 3)
    j = input_jacobian(model, x, per_sample=True)
    expected = 0.1 * float((j * j).sum().detach()) / 5
    assert float(regularize.Tikhonov(0.1)(model, x)) == pytest.approx(expected, rel=1e-12)


def test_tikhonov_of_second_and_third_order() -> None:
    model, x = network(), inputs(4, 3)
    second = chainrule.stack([hessian(model)(x[i]) for i in range(4)]).detach().numpy()
    third = chainrule.stack([jacrev(hessian(model))(x[i]) for i in range(4)]).detach().numpy()
    for order, d in ((2, second), (3, third)):
        got = float(regularize.Tikhonov(0.1, order=order)(model, x))
        assert got == pytest.approx(0.1 * (d**2).sum() / 4, rel=1e-11)


def test_tikhonov_with_more_outputs_than_inputs_and_in_chunks() -> None:
    model, x = nn.Sequential(nn.Linear(2, 5), nn.Tanh()).double(), inputs(4, 2)
    j = input_jacobian(model, x, per_sample=True)
    whole = float(regularize.Tikhonov(1.0)(model, x))
    assert whole == pytest.approx(float((j * j).sum().detach()) / 4, rel=1e-12)
    parts = regularize.Tikhonov(1.0, order=2, chunk_size=1)(model, x)
    at_once = regularize.Tikhonov(1.0, order=2)(model, x)
    assert float(parts.detach()) == pytest.approx(float(at_once.detach()), rel=1e-12)


@pytest.mark.parametrize("order", [1, 2])
def test_gradient_of_tikhonov(order: int) -> None:
    assert_gradient(regularize.Tikhonov(0.1, order=order), network(), inputs(3, 3))


@pytest.mark.parametrize(("make", "shape"), [(Recurrent, (2, 3, 3)), (convolutional, (2, 1, 4, 4))])
def test_gradient_of_tikhonov_of_other_networks(make: Callable[[], Any], shape: Any) -> None:
    chainrule.manual_seed(0)
    model = make().double()
    assert_gradient(regularize.Tikhonov(0.1), model, inputs(*shape), tol=1e-6)
    assert model.training
    again = regularize.Tikhonov(0.1)(model, inputs(*shape))
    model.float()
    single = regularize.Tikhonov(0.1)(model, inputs(*shape).float())
    assert single.dtype == chainrule.float32
    assert float(single.detach()) == pytest.approx(float(again.detach()), rel=1e-4)


def test_tikhonov_takes_the_network_as_in_evaluation() -> None:
    model = nn.Sequential(
        nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 2)
    ).double()
    state = {k: v.clone() for k, v in model.state_dict().items()}
    x, penalty = inputs(6, 3), regularize.Tikhonov(1.0)
    value = float(penalty(model, x).detach())
    assert value == float(penalty(model, x).detach())
    for key, before in state.items():
        np.testing.assert_array_equal(model.state_dict()[key].numpy(), before.numpy())
    assert value == pytest.approx(float(penalty(model.eval(), x).detach()))
    assert not any(m.training for m in model.modules())


def test_noise_on_inputs_is_tikhonov() -> None:
    """For a linear model exactly: E (f(x + s n) - t)^2 = (f(x) - t)^2 + s^2 |df/dx|^2."""
    chainrule.manual_seed(0)
    model, x = nn.Linear(3, 1, dtype=F64), inputs(1, 3)
    noisy = nn.Sequential(nn.GaussianNoise(0.5), model)
    measured = float(((noisy(x.expand(400_000, 3)) - 2.0) ** 2).mean().detach())
    expected = ((model(x) - 2.0) ** 2).mean() + regularize.Tikhonov(0.25)(model, x)
    assert measured == pytest.approx(float(expected.detach()), rel=5e-3)


def test_tikhonov_estimated_along_random_directions() -> None:
    model, x = network(), inputs(5, 3)
    for order in (1, 2):
        exact = float(regularize.Tikhonov(1.0, order=order)(model, x).detach())
        g = chainrule.Generator().manual_seed(0)
        estimate = regularize.Tikhonov(1.0, order=order, probes=4000, generator=g)
        assert float(estimate(model, x).detach()) == pytest.approx(exact, rel=0.05)
    assert_gradient(_repeated(model, x), model)


def _repeated(model: Any, x: Any) -> Callable[[Any], Any]:
    """An estimate with the same directions each time."""

    def penalty(model: Any) -> Any:
        g = chainrule.Generator().manual_seed(0)
        return regularize.Tikhonov(0.1, order=2, probes=3, generator=g)(model, x)

    return penalty


def test_tikhonov_by_another_input() -> None:
    model = nn.Bilinear(2, 3, 4, dtype=F64)
    a, b = inputs(5, 2), inputs(5, 3)
    j = np.einsum("kij,ni->nkj", model.weight.detach().numpy(), a.numpy())
    got = float(regularize.Tikhonov(1.0, argnum=1)(model, a, b).detach())
    assert got == pytest.approx((j**2).sum() / 5)


def test_tikhonov_errors() -> None:
    model = network()
    with pytest.raises(ValueError, match="order must be at least 1, got 0"):
        regularize.Tikhonov(1.0, order=0)
    with pytest.raises(ValueError, match="probes must be None or at least 1, got 0"):
        regularize.Tikhonov(1.0, probes=0)
    with pytest.raises(ValueError, match=r"called with 0 inputs; call it as penalty\(model, x\)"):
        regularize.Tikhonov(1.0)(model)
    with pytest.raises(TypeError, match="floating-point inputs, got chainrule.int64"):
        regularize.Tikhonov(1.0)(nn.Embedding(3, 2), chainrule.tensor([1, 2]))
    with pytest.raises(TypeError, match="must return one Tensor .* got tuple"):
        regularize.Tikhonov(1.0)(nn.LSTM(3, 2, batch_first=True), chainrule.zeros(2, 4, 3))


# --- flat minima ----------------------------------------------------------------------------------


def description(j: np.ndarray, tolerance: float) -> float:
    """B of one sample, written as in the paper, for the Jacobian (K, W)."""
    w = j.shape[1]
    square = (j**2).sum(0)
    last = ((np.abs(j) / np.sqrt(square)).sum(1) ** 2).sum()
    return 0.5 * (-w * np.log(tolerance) + np.log(square).sum() + w * np.log(last))


def jacobian(model: Any, x: Any) -> np.ndarray:
    found = parameter_jacobian(model, x)
    return np.concatenate(
        [found[n].numpy().reshape(2, -1) for n, p in model.named_parameters() if p.ndim == 2], 1
    )


def test_flat_minimum_is_the_description_length() -> None:
    model, x = network(), inputs(4, 3)
    expected = np.mean([description(jacobian(model, x[i]), 0.1) for i in range(4)])
    penalty = regularize.FlatMinimum(0.3, tolerance=0.1)
    assert float(penalty(model, x)) == pytest.approx(0.3 * expected, rel=1e-12)
    parts = regularize.FlatMinimum(0.3, tolerance=0.1, chunk_size=1)
    assert float(parts(model, x)) == pytest.approx(0.3 * expected, rel=1e-12)


def test_gradient_of_the_flat_minimum() -> None:
    assert_gradient(regularize.FlatMinimum(0.01), network(), inputs(2, 3), tol=1e-6)
    chainrule.manual_seed(0)
    recurrent = Recurrent().double()
    penalty = regularize.FlatMinimum(0.01, where=["head.*", "skip.*"])
    assert_gradient(penalty, recurrent, inputs(1, 2, 3), tol=1e-5)


def test_gradient_of_the_flat_minimum_by_a_product_for_each_output() -> None:
    """dB/dw = sum_k H^k v_k with v_k = dB/dJ_k: O(K W), no second derivatives are kept."""
    model, x = network(), inputs(1, 3)
    penalty = regularize.FlatMinimum(1.0, where="*")
    penalty(model, x).backward()
    own = {n: p.detach() for n, p in model.named_parameters()}
    j = parameter_jacobian(model, x[0], own)
    rows = {n: v.clone().requires_grad_() for n, v in j.items()}
    flat = chainrule.cat([v.reshape(2, -1) for v in rows.values()], 1)
    used = flat[:, (flat.detach() != 0).any(0)]
    box = regularize.flat_box(used, 0.1)
    (-box.log().sum()).backward()
    vectors = {n: v.grad for n, v in rows.items()}
    products = per_output_hvp(lambda p, v: functional_call(model, p, (v,)), x[0], vectors, own)
    for name, p in model.named_parameters():
        got = np.zeros(p.shape) if p.grad is None else p.grad.numpy()
        np.testing.assert_allclose(got, products[name].detach().numpy(), rtol=1e-9, atol=1e-12)


def test_the_box_is_flat() -> None:
    """Its corners move the outputs by the tolerance, and every weight takes an equal part."""
    rng = np.random.default_rng(0)
    j = rng.normal(size=(3, 7))
    box = regularize.flat_box(chainrule.tensor(j), 0.2).numpy()
    assert ((np.abs(j) @ box) ** 2).sum() == pytest.approx(0.2)
    parts = box**2 * (j**2).sum(0)
    np.testing.assert_allclose(parts, parts[0])
    assert -np.log(box).sum() == pytest.approx(description(j, 0.2))
    j[:, 2] = 0.0
    assert np.isinf(regularize.flat_box(chainrule.tensor(j), 0.2).numpy()[2])


def test_silent_weights_are_left_out() -> None:
    """A unit that is off for a sample needs no digits there, and makes no infinities."""
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2)).double()
    model[0].weight.data = chainrule.tensor([[1.0, 0.5], [-1.0, -1.0], [0.3, 2.0]]).double()
    model[0].bias.data = chainrule.zeros(3, dtype=F64)
    x = chainrule.tensor([[1.0, 1.0]], dtype=F64)
    j = jacobian(model, x[0])
    alive = j[:, (j != 0).any(0)]
    assert alive.shape[1] == 8  # of 12: the second unit is off
    penalty = regularize.FlatMinimum(1.0)
    assert float(penalty(model, x).detach()) == pytest.approx(description(alive, 0.1))
    penalty(model, x).backward()
    assert all(np.isfinite(p.grad.numpy()).all() for p in model.parameters() if p.ndim == 2)
    model[0].weight.data = -abs(model[0].weight.detach())
    model[2].weight.data.zero_()
    assert float(penalty(model, x).detach()) == 0.0  # nothing matters


def test_flat_minimum_prefers_few_weights() -> None:
    """Descent on B alone makes most hidden units irrelevant, and B falls."""
    model, x = network(), inputs(8, 3)
    penalty = regularize.FlatMinimum(1.0)
    before = float(penalty(model, x).detach())
    optimizer = chainrule.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(30):
        optimizer.zero_grad()
        penalty(model, x).backward()
        optimizer.step()
    assert float(penalty(model, x).detach()) < before - 5


def test_flat_minimum_errors() -> None:
    with pytest.raises(ValueError, match="tolerance must be positive, got 0"):
        regularize.FlatMinimum(1.0, tolerance=0.0)
    with pytest.raises(ValueError, match=r"call it as penalty\(model, x\)"):
        regularize.FlatMinimum(1.0)(network())
    with pytest.raises(ValueError, match="'nothing' matches no parameter"):
        regularize.FlatMinimum(1.0, where="nothing")(network(), inputs(2, 3))
    with pytest.raises(RuntimeError, match=r"shape \(K, W\), got \(3,\)"):
        regularize.flat_box(chainrule.ones(3), 0.1)
    with pytest.raises(TypeError, match="must return one Tensor, got tuple"):
        regularize.FlatMinimum(1.0)(nn.LSTM(3, 2, batch_first=True), chainrule.zeros(2, 4, 3))
