"""Gradients through time, and long sequences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import nn
from chainrule.nn import functional as F
from chainrule.tensor import Tensor, of_array


L, N, D, H, S = 5, 3, 2, 3, 2


def normal(*shape: int, seed: int = 0) -> Tensor:
    return of_array(np.random.default_rng([seed, *shape]).normal(size=shape))


# --- long sequences -------------------------------------------------------------------------------


def test_lstm_of_1000_steps_trains_a_step() -> None:
    chainrule.manual_seed(0)
    lstm, out = nn.LSTM(1, 16), nn.Linear(16, 1)
    parameters = [*lstm.parameters(), *out.parameters()]
    x = chainrule.sin(0.05 * chainrule.arange(1000.0)).reshape(1000, 1, 1)
    losses = []
    for _ in range(2):
        loss = ((out(lstm(x)[0])[:-1] - x[1:]) ** 2).mean()
        for p in parameters:
            p.grad = None
        loss.backward()
        losses.append(loss.item())
        with chainrule.no_grad():
            for p in parameters:
                assert np.isfinite(p.grad.numpy()).all()
                p -= 0.1 * p.grad
    assert losses[1] < losses[0]


def test_second_order_through_1000_steps() -> None:
    """The Hessian-vector product along a line, against a difference of gradients."""
    a, h0, w = normal(1000, 1, 3), normal(1, 3), 0.3 * normal(3, 3)

    def gradient(w: Tensor, create_graph: bool = False) -> Tensor:
        loss = (F.rnn_sequence(a, h0, w) ** 2).mean()
        return chainrule.autograd.grad(loss, w, create_graph=create_graph)[0]

    w.requires_grad_()
    (hvp,) = chainrule.autograd.grad(gradient(w, True).sum(), w)
    ahead, behind = ((w.detach() + s).requires_grad_() for s in (1e-5, -1e-5))
    assert_close(hvp, (gradient(ahead) - gradient(behind)) / 2e-5, rtol=1e-6, atol=1e-9)


# --- back-propagation through time ----------------------------------------------------------------


def elman(steps: int = 6) -> dict[str, np.ndarray]:
    r = np.random.default_rng(4)
    return {
        "x": r.normal(size=(steps, D)),
        "wx": r.normal(size=(H, D)),
        "wh": 0.7 * r.normal(size=(H, H)),
        "wo": r.normal(size=(2, H)),
        "y": r.normal(size=(steps, 2)),
    }


def states(net: dict[str, np.ndarray]) -> np.ndarray:
    h, found = np.zeros(H), []
    for xt in net["x"]:
        h = np.tanh(net["wx"] @ xt + net["wh"] @ h)
        found.append(h)
    return np.array(found)


def ours(net: dict[str, np.ndarray]) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss of the same network in operations, and its weights."""
    w = {k: of_array(net[k].copy()).requires_grad_() for k in ("wx", "wh", "wo")}
    a = F.linear(of_array(net["x"])[:, None], w["wx"])
    h = F.rnn_sequence(a, chainrule.zeros(1, H, dtype=chainrule.float64), w["wh"])
    return 0.5 * ((F.linear(h[:, 0], w["wo"]) - of_array(net["y"])) ** 2).sum(), w


def jacobian(net: dict[str, np.ndarray], h: np.ndarray, t: int, tau: int) -> np.ndarray:
    """dh_t/dh_tau: the product of diag(g'(a_s)) W_h for s from t down to tau + 1."""
    product = np.eye(H)
    for s in range(t, tau, -1):
        product = product @ np.diag(1 - h[s] ** 2) @ net["wh"]
    return product


def test_bptt_is_a_sum_of_products_of_jacobians() -> None:
    """dl/dW_h = sum over t and tau <= t of dl_t/dh_t (dh_t/dh_tau) da_tau/dW_h, and W_x likewise.

    dz/dW_o has indices [p, l], da_t/dW_x reads x[t], and dh_s/dh_{s-1} = diag(g'(a_s)) W_h.
    """
    net = elman()
    h = states(net)
    error = h @ net["wo"].T - net["y"]
    expected = {"wo": error.T @ h, "wh": np.zeros((H, H)), "wx": np.zeros((H, D))}
    for t in range(len(h)):
        for tau in range(t + 1):
            at_a = error[t] @ net["wo"] @ jacobian(net, h, t, tau) @ np.diag(1 - h[tau] ** 2)
            before = h[tau - 1] if tau else np.zeros(H)
            expected["wh"] += np.outer(at_a, before)
            expected["wx"] += np.outer(at_a, net["x"][tau])
    loss, w = ours(net)
    loss.backward()
    for name, value in expected.items():
        assert_close(w[name].grad, value, rtol=1e-10, atol=1e-12)


def test_jacobian_of_one_step() -> None:
    """diag(g'(a_s)) W_h; the transposed product W^T diag(.) of a well-known text differs."""
    w = normal(H, H)
    h0 = normal(H, seed=1)
    a = normal(1, 1, H, seed=2)
    found = chainrule.func.jacrev(lambda h: F.rnn_sequence(a, h[None], w)[0, 0])(h0)
    slope = np.diag(1 - np.tanh(a[0, 0].numpy() + w.numpy() @ h0.numpy()) ** 2)
    assert_close(found, slope @ w.numpy(), rtol=1e-12, atol=1e-13)
    assert np.abs(found.numpy() - w.numpy().T @ slope).max() > 0.1


def test_gradient_of_the_input_weight_reads_the_present_input() -> None:
    """da_t[m]/dW_x[i, j] = delta_mi x_j[t] where h_{t-1} is held."""
    x = normal(1, 1, D)
    w = chainrule.zeros(H, D, dtype=chainrule.float64)
    found = chainrule.func.jacrev(lambda w: F.linear(x, w)[0, 0])(w)
    expected = np.einsum("mi,j->mij", np.eye(H), x.numpy()[0, 0])
    assert_close(found, expected, rtol=0, atol=0)


def test_largest_singular_value_bounds_the_gradient_not_the_spectral_radius() -> None:
    """[[.5, 10], [0, .5]]: all eigenvalues are .5, but one step back grows the gradient tenfold."""
    w = np.array([[0.5, 10.0], [0.0, 0.5]])
    assert max(abs(np.linalg.eigvals(w))) == 0.5
    sigma = np.linalg.norm(w, 2)
    assert sigma == pytest.approx(10.02, abs=5e-3)
    h0 = chainrule.zeros(1, 2, dtype=chainrule.float64).requires_grad_()
    a = chainrule.zeros(1, 1, 2, dtype=chainrule.float64)
    out = F.rnn_sequence(a, h0, of_array(w))  # tanh'(0) = 1
    (g,) = chainrule.autograd.grad(out[-1, 0, 0], h0)
    assert np.linalg.norm(g.numpy()) > 10


@pytest.mark.parametrize(
    ("activation", "gamma"), [(chainrule.tanh, 1.0), (chainrule.sigmoid, 0.25)]
)
def test_gradient_vanishes_if_the_largest_singular_value_is_below_1_over_gamma(
    activation: Callable[[Tensor], Tensor], gamma: float
) -> None:
    """|dh_t/dh_tau| <= delta^(t - tau), delta = gamma sigma_1, gamma = sup|g'|."""
    r = np.random.default_rng(3)
    w = r.normal(size=(4, 4))
    w *= 0.9 / gamma / np.linalg.norm(w, 2)
    a, h0 = normal(20, 1, 4), normal(1, 4, seed=1)
    back = chainrule.func.jacrev(
        lambda h: F.rnn_sequence(a, h, of_array(w), nonlinearity=activation)[:, 0]
    )(h0)
    norms = [np.linalg.norm(back.numpy()[t, :, 0], 2) for t in range(20)]
    for t, norm in enumerate(norms):
        assert norm <= 0.9 ** (t + 1) * (1 + 1e-12)
    assert norms[-1] < 1e-2 * norms[0]
    # The gradient by a weight sums over all steps back, so its bound is a sum of powers of delta.
    bound = sum(0.9 ** (19 - tau) for tau in range(20))
    reach = chainrule.func.jacrev(
        lambda a: F.rnn_sequence(a, h0, of_array(w), nonlinearity=activation)[-1, 0]
    )(a)
    total = sum(np.linalg.norm(reach.numpy()[:, tau, 0], 2) for tau in range(20))
    assert total <= gamma * bound


def test_gradient_explodes_for_large_weights() -> None:
    w = 3 * np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    h0 = chainrule.zeros(1, 4, dtype=chainrule.float64).requires_grad_()
    out = F.rnn_sequence(chainrule.zeros(30, 1, 4, dtype=chainrule.float64), h0, of_array(w))
    (g,) = chainrule.autograd.grad(out[-1, 0, 0], h0)
    assert np.linalg.norm(g.numpy()) == pytest.approx(3.0**30, rel=1e-9)


def test_truncated_bptt_is_the_gradient_within_the_window() -> None:
    """Detached states between chunks: each chunk's gradient stays in the chunk, values do not."""
    chainrule.manual_seed(1)
    lstm = nn.LSTM(D, H).double()
    x, weights = normal(12, N, D), list(lstm.parameters())
    state, found, whole_loss = None, [], 0.0
    for k in range(3):
        output, state = lstm(x[4 * k : 4 * k + 4], state)
        loss = (output**2).sum()
        found.append(chainrule.autograd.grad(loss, weights))
        whole_loss += loss.item()
        state = tuple(s.detach() for s in state)
    assert whole_loss == pytest.approx((lstm(x)[0] ** 2).sum().item(), rel=1e-12)

    # The same without detaching, with a copy of the weights for every chunk: the gradient of a
    # chunk's loss by the chunk's own copy is the truncated one, and all pairs make the full one.
    copies = [[w.detach().clone().requires_grad_() for w in weights] for _ in range(3)]
    h = c = chainrule.zeros(1, N, H, dtype=chainrule.float64)
    losses = []
    for k, copy in enumerate(copies):
        part = x[4 * k : 4 * k + 4]
        output, h, c = F.lstm(part, (h, c), copy, True, 1, 0.0, False, False, False)
        losses.append((output**2).sum())
    for k in range(3):
        own = chainrule.autograd.grad(losses[k], copies[k], retain_graph=True)
        for a, b in zip(own, found[k], strict=True):
            assert_close(a, b, rtol=1e-10, atol=1e-12)
    every = [chainrule.autograd.grad(sum(losses), copy, retain_graph=True) for copy in copies]
    full = chainrule.autograd.grad((lstm(x)[0] ** 2).sum(), weights)
    for parts, g in zip(zip(*every, strict=True), full, strict=True):
        assert_close(sum(parts), g, rtol=1e-10, atol=1e-12)


def test_truncation_loses_what_lies_before_the_window() -> None:
    lstm = nn.LSTM(D, H).double()
    x = normal(6, 1, D).requires_grad_()
    _, state = lstm(x[:3])
    output, _ = lstm(x[3:], tuple(s.detach() for s in state))
    (g,) = chainrule.autograd.grad(output.sum(), x)
    assert (g[:3] == 0).all()
    assert (g[3:] != 0).all()
