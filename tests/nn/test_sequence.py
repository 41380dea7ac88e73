"""Peepholes, deep transitions, two directions, and convolutions in the place of products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import assert_close
from scipy.special import expit

import chainrule
from chainrule import nn
from chainrule.nn import functional as F
from chainrule.tensor import Tensor, of_array

L, N, D, H, K = 5, 3, 2, 3, 2


def normal(*shape: int, seed: int = 0) -> Tensor:
    return of_array(np.random.default_rng([seed, *shape]).normal(size=shape))


def weights(module: nn.Module) -> dict[str, np.ndarray]:
    return {name: p.numpy() for name, p in module.state_dict().items()}


def count(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


# --- peepholes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("full", [False, True])
def test_peephole_equations(full: bool) -> None:
    """i and f see c_{t-1}, o sees c_t; the recursion and the output read the cell, tanh(c_t)."""
    layer = nn.PeepholeLSTM(D, H, full=full).double()
    w = weights(layer)
    x = normal(L, 1, D)
    look = (lambda m, c: m @ c) if full else (lambda m, c: m * c)
    (wi, wf, wg, wo), (ui, uf, ug, uo), (bi, bf, bg, bo) = (
        np.split(w[k], 4) for k in ("weight_ih", "weight_hh", "bias")
    )
    h, c, found = np.zeros(H), np.zeros(H), []
    for xt in x.numpy()[:, 0]:
        i = expit(wi @ xt + ui @ h + look(w["weight_ci"], c) + bi)
        f = expit(wf @ xt + uf @ h + look(w["weight_cf"], c) + bf)
        c = i * np.tanh(wg @ xt + ug @ h + bg) + f * c
        o = expit(wo @ xt + uo @ h + look(w["weight_co"], c) + bo)
        h = o * np.tanh(c)
        found.append(h)
    output, (h_n, c_n) = layer(x)
    assert_close(output[:, 0].detach(), np.array(found), rtol=1e-12, atol=1e-13)
    assert_close(h_n[0].detach(), h, rtol=1e-12, atol=1e-13)
    assert_close(c_n[0].detach(), c, rtol=1e-12, atol=1e-13)


def test_without_peepholes_it_is_an_lstm() -> None:
    layer, lstm = nn.PeepholeLSTM(D, H).double(), nn.LSTM(D, H).double()
    with chainrule.no_grad():
        for name in ("weight_ci", "weight_cf", "weight_co"):
            getattr(layer, name).zero_()
        lstm.weight_ih_l0.copy_(layer.weight_ih)
        lstm.weight_hh_l0.copy_(layer.weight_hh)
        lstm.bias_ih_l0.copy_(layer.bias)
        lstm.bias_hh_l0.zero_()
    x = normal(L, N, D)
    assert_close(layer(x)[0].detach(), lstm(x)[0].detach(), rtol=1e-12, atol=1e-13)


def test_parameters_of_full_peepholes() -> None:
    """One bias each: 3680 against the 620 of the simple network, 5.94 times as many."""
    elman = nn.DeepRNN(10, 20, 1)
    recurrent = count(elman.from_input) + count(elman.from_hidden)
    full = count(nn.PeepholeLSTM(10, 20, full=True))
    assert (full, recurrent) == (3680, 620)
    assert full / recurrent == pytest.approx(5.94, abs=5e-3)
    assert count(nn.PeepholeLSTM(10, 20)) == 4 * 620 + 3 * 20


def test_closed_gates_keep_the_cell() -> None:
    layer = nn.PeepholeLSTM(D, H).double()
    with chainrule.no_grad():
        layer.bias[:H] = -2000.0  # i = 0
        layer.bias[H : 2 * H] = 2000.0  # f = 1
    h0, c0 = chainrule.zeros(1, H, dtype=chainrule.float64), normal(1, H).requires_grad_()
    _, (_, c) = layer(normal(300, 1, D), (h0, c0))
    assert_close(c.detach(), c0.detach(), rtol=0, atol=0)
    (g,) = chainrule.autograd.grad(c.sum(), c0)
    assert_close(g, np.ones((1, H)), rtol=1e-12, atol=0)


# --- deep transitions -----------------------------------------------------------------------------


def test_elman_network() -> None:
    """a_t = W_h h_{t-1} + W_x x_t + b; h_t = g(a_t); z_t = g_o(W_o h_t + b_o)"""
    net = nn.DeepRNN(D, H, K, output_nonlinearity="sigmoid").double()
    w = weights(net)
    x, h, found = normal(L, 1, D), np.zeros(H), []
    for xt in x.numpy()[:, 0]:
        h = np.tanh(
            w["from_hidden.weight"] @ h + w["from_input.weight"] @ xt + w["from_input.bias"]
        )
        found.append(expit(w["output.weight"] @ h + w["output.bias"]))
    z, h_n = net(x)
    assert_close(z[:, 0].detach(), np.array(found), rtol=1e-12, atol=1e-13)
    assert_close(h_n[0].detach(), h, rtol=1e-12, atol=1e-13)


def test_deep_maps_and_extra_inputs_of_the_output() -> None:
    """z_t = g_o(W_o MLP(h_t) + b_o + W_ox x_t + W_oh h_{t-1}), with an MLP in each map."""
    net = nn.DeepRNN(
        D, H, K, [4], [5], [6], "sigmoid", "tanh", True, True, batch_first=True
    ).double()
    w = weights(net)

    def layer(name: str, v: np.ndarray) -> np.ndarray:
        return expit(w[f"{name}.weight"] @ v + w[f"{name}.bias"])

    x, h0 = normal(1, L, D), normal(1, H, seed=1)
    h, found = h0.numpy()[0], []
    for xt in x.numpy()[0]:
        before = h
        u = layer("input_mlp.0", xt)
        a = w["from_input.weight"] @ u + w["from_input.bias"] + w["from_hidden.weight"] @ before
        h = layer("hidden_mlp.1", layer("hidden_mlp.0", expit(a)))
        z = w["output.weight"] @ layer("output_mlp.0", h) + w["output.bias"]
        z = z + w["output_from_input.weight"] @ xt + w["output_from_previous.weight"] @ before
        found.append(np.tanh(z))
    z, h_n = net(x, h0)
    assert_close(z[0].detach(), np.array(found), rtol=1e-12, atol=1e-13)
    assert_close(h_n[0].detach(), h, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.DeepRNN(D, H, K, hidden_layers=[2]),
        lambda: nn.DeepRNN(D, H, K, nonlinearity="relu", output_from_previous=True),
        lambda: nn.PeepholeLSTM(D, H),
    ],
)
def test_masked_steps_do_not_count(make: Callable[[], Any]) -> None:
    net = make().double()
    lengths = [5, 2, 3]
    x = normal(L, N, D).numpy()
    mask = np.arange(L)[:, None] < np.array(lengths)
    x[~mask] = np.nan
    output, last = net(of_array(x), mask=of_array(mask))
    for n, length in enumerate(lengths):
        alone, alone_last = net(of_array(x[:length, n : n + 1]))
        assert_close(output[:length, n].detach(), alone[:, 0].detach(), rtol=1e-12, atol=1e-13)
        assert (output[length:, n] == 0).all()
        for a, b in (
            zip(last, alone_last, strict=True) if isinstance(last, tuple) else [(last, alone_last)]
        ):
            assert_close(a[n].detach(), b[0].detach(), rtol=1e-12, atol=1e-13)


# --- two directions -------------------------------------------------------------------------------


def test_bidirectional_output() -> None:
    """y_t = g_o(W_f hf_t + W_b hb_t + b): what PyTorch's bidirectional layer and a Linear make."""
    net = nn.Bidirectional(nn.RNN(D, H), nn.RNN(D, H), K, chainrule.tanh).double()
    rnn, out = nn.RNN(D, H, bidirectional=True).double(), nn.Linear(2 * H, K).double()
    w = net.state_dict()
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    rnn.load_state_dict(
        {n: w[f"forward_layer.{n}"] for n in names}
        | {f"{n}_reverse": w[f"backward_layer.{n}"] for n in names}
    )
    both = chainrule.cat([w["from_forward.weight"], w["from_backward.weight"]], 1)
    out.load_state_dict({"weight": both, "bias": w["from_forward.bias"]})
    x = normal(L, N, D)
    assert_close(net(x).detach(), out(rnn(x)[0]).tanh().detach(), rtol=1e-12, atol=1e-13)
    mask = of_array(np.arange(L)[:, None] < np.array([5, 2, 3]))
    expected = out(rnn(x, mask=mask)[0]).tanh()
    found = net(x, mask=mask)
    assert_close(found[:2].detach(), expected[:2].detach(), rtol=1e-12, atol=1e-13)


# --- losses over time -----------------------------------------------------------------------------


def test_time_summed_loss() -> None:
    """(1/N) sum over t and i: not divided by the number of steps."""
    z, y = normal(L, N, K), normal(L, N, K, seed=1)
    expected = 0.0
    for t in range(L):
        for i in range(N):
            expected += float(((z[t, i] - y[t, i]) ** 2).sum()) / N
    assert float(F.time_summed(F.mse_loss, z, y)) == pytest.approx(expected, rel=1e-12)
    mean = float(F.mse_loss(z, y))
    assert expected == pytest.approx(mean * L * K, rel=1e-12)
    both = F.time_summed(F.mse_loss, z.transpose(0, 1), y.transpose(0, 1), batch_first=True)
    assert float(both) == pytest.approx(expected, rel=1e-12)


# --- convolutions ---------------------------------------------------------------------------------


def test_conv_lstm_of_kernel_1_is_an_lstm_at_every_place() -> None:
    conv, lstm = nn.ConvLSTM(D, H, 1).double(), nn.LSTM(D, H).double()
    with chainrule.no_grad():
        lstm.weight_ih_l0.copy_(conv.weight_ih[:, :, 0, 0])
        lstm.weight_hh_l0.copy_(conv.weight_hh[:, :, 0, 0])
        lstm.bias_ih_l0.copy_(conv.bias)
        lstm.bias_hh_l0.zero_()
    x = normal(L, N, D, 2, 4)
    output, (_, c) = conv(x)
    places = x.permute(0, 1, 3, 4, 2).reshape(L, N * 8, D)
    expected, (_, c_n) = lstm(places)
    assert_close(
        output.permute(0, 1, 3, 4, 2).reshape(L, N * 8, H).detach(),
        expected.detach(),
        rtol=1e-11,
        atol=1e-12,
    )
    assert_close(
        c.permute(0, 2, 3, 1).reshape(N * 8, H).detach(), c_n[0].detach(), rtol=1e-11, atol=1e-12
    )


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("kind", ["ConvRNN", "ConvLSTM"])
def test_cell_in_a_loop_is_the_layer(kind: str, dim: int) -> None:
    layer = getattr(nn, kind)(D, H, 3, dim, batch_first=True).double()
    cell = getattr(nn, kind + "Cell")(D, H, 3, dim).double()
    cell.load_state_dict(layer.state_dict())
    x, state, found = normal(2, 3, D, *[3] * dim), None, []
    for t in range(3):
        state = cell(x[:, t], state)
        found.append(state[0] if kind == "ConvLSTM" else state)
    expected = chainrule.stack(found, 1)
    assert_close(layer(x)[0].detach(), expected.detach(), rtol=1e-11, atol=1e-12)


def test_conv_mask_is_each_sequence_alone() -> None:
    layer = nn.ConvLSTM(1, 2, 3, dim=1).double()
    x, mask = normal(4, 2, 1, 5), of_array(np.array([[1, 1], [1, 1], [1, 0], [1, 0]], bool))
    output, (h, c) = layer(x, mask=mask)
    alone, (h1, c1) = layer(x[:2, 1:])
    assert_close(output[:2, 1:].detach(), alone.detach(), rtol=1e-12, atol=1e-13)
    assert (output[2:, 1] == 0).all()
    assert_close(
        [h[1:].detach(), c[1:].detach()], [h1.detach(), c1.detach()], rtol=1e-12, atol=1e-13
    )


def test_recurrent_links_widen_the_receptive_field() -> None:
    """One convolution of size 3 sees one neighbour on each side; t iterations see t."""
    x = chainrule.zeros(1, 1, 21, dtype=chainrule.float64)
    x[0, 0, 10] = 1.0
    for steps in (1, 2, 4):
        layer = nn.RecurrentConv(1, 1, 3, dim=1, bias=False, steps=steps).double()
        reached = (layer(x)[0, 0] != 0).nonzero().flatten().tolist()
        assert reached == list(range(10 - steps, 10 + steps + 1))
    once = nn.RecurrentConv(1, 2, 3, steps=1)
    image = normal(1, 1, 6, 6).float()
    expected = F.conv2d(image, once.weight_ih, once.bias, padding=1).tanh()
    assert_close(once(image).detach(), expected.detach(), rtol=1e-6, atol=1e-7)


def test_a_cnn_feeds_an_rnn() -> None:
    cnn = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    features = nn.TimeDistributed(cnn)
    rnn = nn.LSTM(8, 3)
    video = normal(5, 2, 1, 4, 4).float()
    output, _ = rnn(features(video))
    assert tuple(output.shape) == (5, 2, 3)
    each = chainrule.stack([cnn(video[t]) for t in range(5)])
    assert_close(features(video).detach(), each.detach(), rtol=1e-6, atol=1e-7)
    output.sum().backward()
    assert all(p.grad is not None for p in cnn.parameters())


# --- wrong calls ----------------------------------------------------------------------------------

ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: nn.PeepholeLSTM(0, 3), ValueError, "input_size must be greater than zero, got 0"),
    (lambda: nn.PeepholeLSTM(2, 3)(normal(4, 1, 5)), RuntimeError, r"D = 2.*got \(4, 1, 5\)"),
    (lambda: nn.DeepRNN(2, 3, 1, nonlinearity="sine"), ValueError, "'sine'.*sigmoid"),
    (lambda: nn.DeepRNN(2, 3, 1)(normal(0, 1, 2)), RuntimeError, "at least one step"),
    (
        lambda: nn.DeepRNN(2, 3, 1)(chainrule.ones(4, 1, 2), mask=chainrule.ones(4, 1)),
        RuntimeError,
        "DeepRNN: mask must be boolean",
    ),
    (
        lambda: nn.Bidirectional(nn.RNN(2, 3), nn.RNN(2, 3, batch_first=True), 1),
        ValueError,
        "agree in batch_first",
    ),
    (lambda: nn.TimeDistributed(nn.Identity())(normal(3)), RuntimeError, "at least 2 dimensions"),
    (lambda: F.time_summed(F.mse_loss, normal(4, 2, 1), normal(4, 3, 1)), ValueError, "samples"),
    (lambda: nn.ConvLSTM(1, 2, 3, dim=4), ValueError, "dim must be 1, 2 or 3, got 4"),
    (lambda: nn.ConvRNN(1, 2, (3,)), ValueError, "2 sizes of the kernel"),
    (lambda: nn.ConvLSTM(1, 2, 3)(chainrule.ones(4, 1, 3, 5, 5)), RuntimeError, r"\(N, 1, \*sp"),
    (lambda: nn.ConvLSTM(1, 2, 3)(chainrule.ones(4, 1, 1, 5)), RuntimeError, "of 5 dimensions"),
    (
        lambda: nn.ConvRNNCell(1, 2, 3)(chainrule.ones(1, 1, 5, 5), chainrule.ones(1, 2, 5, 4)),
        RuntimeError,
        r"expected hidden size \(1, 2, 5, 5\)",
    ),
    (lambda: nn.RecurrentConv(1, 2, 3, steps=0), ValueError, "steps must be positive, got 0"),
]


@pytest.mark.parametrize(("call", "error", "match"), ERRORS)
def test_errors(call: Callable[[], Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        call()
