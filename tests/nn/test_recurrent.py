"""Recurrent layers: their definition, lengths, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import nn
from chainrule.func import jvp, vmap
from chainrule.nn import functional as F
from chainrule.ops.recurrent.steps import gru_steps, lstm_steps, rnn_steps
from chainrule.tensor import Tensor, of_array


L, N, D, H, S = 5, 3, 2, 3, 2


def normal(*shape: int, seed: int = 0) -> Tensor:
    return of_array(np.random.default_rng([seed, *shape]).normal(size=shape))


def tuple_of(out: Any) -> tuple[Tensor, ...]:
    return out if isinstance(out, tuple) else (out,)


# --- the primitive is the composition -------------------------------------------------------------


MASK = of_array(np.arange(L)[:, None] < np.array([5, 2, 3]))


RNN = ((L, N, H), (N, H), (H, H))


LSTM = ((L, N, 4 * H), (N, H), (N, H), (4 * H, H))


PROJECTED = ((L, N, 4 * H), (N, S), (N, H), (4 * H, S), (S, H))


GRU = ((L, N, 3 * H), (N, H), (3 * H, H), (3 * H,))


def pairs(mask: Tensor | None, reverse: bool) -> dict[str, tuple[Any, Any, Any]]:
    """Primitive, composition of single steps, and the shapes of their inputs."""
    m = () if mask is None else (mask,)
    how: dict[str, Any] = {"reverse": reverse}
    tanh, relu = how | {"nonlinearity": "tanh"}, how | {"nonlinearity": "relu"}
    plain, projected = how | {"projected": False}, how | {"projected": True}
    return {
        "tanh": (
            lambda *a: F.rnn_sequence(*a, *m, **tanh),
            lambda *a: rnn_steps(*a, *m, **tanh),
            RNN,
        ),
        "relu": (
            lambda *a: F.rnn_sequence(*a, *m, **relu),
            lambda *a: rnn_steps(*a, *m, **relu),
            RNN,
        ),
        "lstm": (
            lambda *a: F.lstm_sequence(*a, None, *m, **how),
            lambda *a: lstm_steps(*a, *m, **plain)[:2],
            LSTM,
        ),
        "projected": (
            lambda *a: F.lstm_sequence(*a, *m, **how),
            lambda *a: lstm_steps(*a, *m, **projected)[:2],
            PROJECTED,
        ),
        "gru": (
            lambda *a: F.gru_sequence(*a, *m, **how),
            lambda *a: gru_steps(*a, *m, **how)[0],
            GRU,
        ),
    }


each_kind = pytest.mark.parametrize("kind", ["tanh", "relu", "lstm", "projected", "gru"])


each_way = pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])


each_mask = pytest.mark.parametrize("mask", [None, MASK], ids=["whole", "masked"])


@each_kind
@each_way
@each_mask
def test_primitive_equals_single_steps(kind: str, reverse: bool, mask: Tensor | None) -> None:
    """Value, gradient by the kernel and by the rule in operations, second order, forward mode."""
    whole, steps, shapes = pairs(mask, reverse)[kind]
    inputs = [normal(*s, seed=i).requires_grad_() for i, s in enumerate(shapes)]
    results = []
    for function in (whole, steps):
        outputs = tuple_of(function(*inputs))
        total = sum((y * normal(*y.shape, seed=9)).sum() for y in outputs)
        first = chainrule.autograd.grad(total, inputs, retain_graph=True)
        again = chainrule.autograd.grad(total, inputs, create_graph=True)
        second = chainrule.autograd.grad(sum((g**2).sum() for g in again), inputs)
        moves = tuple(normal(*s, seed=20 + i) for i, s in enumerate(shapes))
        tangents = tuple_of(jvp(function, tuple(x.detach() for x in inputs), moves)[1])
        results.append([*outputs, *first, *again, *second, *tangents])
    for a, b in zip(*results, strict=True):
        assert_close(a.detach(), b.detach(), rtol=1e-9, atol=1e-11)


@each_kind
@each_mask
def test_vmap_with_shared_and_own_weights(kind: str, mask: Tensor | None) -> None:
    """Shared weights: the batch joins N, and stays one operation. Own weights: step by step."""
    whole, _, shapes = pairs(mask, False)[kind]
    for first_mapped in (0, 1, len(shapes) - 1):
        dims = tuple(0 if i >= first_mapped else None for i in range(len(shapes)))
        if first_mapped == 0:
            dims = (0,) + (None,) * (len(shapes) - 1)
        inputs = [
            normal(*((2, *s) if d == 0 else s), seed=i)
            for i, (s, d) in enumerate(zip(shapes, dims, strict=True))
        ]
        mapped = tuple_of(vmap(whole, in_dims=dims)(*inputs))
        for k in range(2):
            one = [x[k] if d == 0 else x for x, d in zip(inputs, dims, strict=True)]
            for a, b in zip(mapped, tuple_of(whole(*one)), strict=True):
                assert_close(a[k], b, rtol=1e-12, atol=1e-13)


def test_saturated_gates_stay_finite() -> None:
    x = of_array(np.array([1e30, -1e30, 1e4, -1e4] * 3).reshape(1, 1, 12)).float().requires_grad_()
    zero = chainrule.zeros(1, 3)
    h, c = F.lstm_sequence(x, zero, zero, chainrule.zeros(12, 3))
    (h.sum() + c.sum()).backward()
    assert np.isfinite(h.numpy(force=True)).all()
    assert np.isfinite(x.grad.numpy()).all()


# --- what a recurrent layer is --------------------------------------------------------------------


def test_infinite_impulse_response() -> None:
    """With g = identity the answer to an impulse is w^t: it never ends."""
    rnn = nn.RNN(1, 1, nonlinearity=lambda a: a, bias=False).double()
    with chainrule.no_grad():
        rnn.weight_ih_l0.fill_(1.0)
        rnn.weight_hh_l0.fill_(0.9)
    impulse = chainrule.zeros(200, 1, 1, dtype=chainrule.float64)
    impulse[0] = 1.0
    assert_close(rnn(impulse)[0][:, 0, 0].detach(), 0.9 ** np.arange(200), rtol=1e-12, atol=0)


def count(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


def test_an_lstm_has_four_times_the_parameters() -> None:
    assert (count(nn.LSTM(10, 20)), count(nn.RNN(10, 20))) == (2560, 640)
    assert count(nn.GRU(10, 20)) == 3 * 640


def test_a_closed_input_gate_and_an_open_forget_gate_keep_the_cell() -> None:
    lstm = nn.LSTM(2, 3).double()
    with chainrule.no_grad():
        for p in lstm.parameters():
            p.zero_()
        lstm.bias_ih_l0[:3] = -1000.0  # i = 0
        lstm.bias_ih_l0[3:6] = 1000.0  # f = 1
    c0 = normal(1, 1, 3).requires_grad_()
    h0 = chainrule.zeros(1, 1, 3, dtype=chainrule.float64)
    _, (_, c) = lstm(normal(500, 1, 2), (h0, c0))
    assert_close(c.detach(), c0.detach(), rtol=0, atol=0)
    (g,) = chainrule.autograd.grad(c.sum(), c0)
    assert (g == 1).all()


def test_stacked_lstm_is_an_lstm_per_layer() -> None:
    """Each layer is an LSTM on the states of the one below, not the simple update."""
    both = nn.LSTM(D, H, num_layers=2)
    x = normal(L, N, D).float()
    layers = [nn.LSTM(D, H), nn.LSTM(H, H)]
    for k, layer in enumerate(layers):
        layer.load_state_dict(
            {f"{n[:-3]}_l0": p for n, p in both.state_dict().items() if n[-1] == str(k)}
        )
    below, (h1, c1) = layers[0](x)
    above, (h2, c2) = layers[1](below)
    output, (h, c) = both(x)
    assert_close(output.detach(), above.detach(), rtol=1e-6, atol=1e-7)
    assert_close(h.detach(), chainrule.cat([h1, h2]).detach(), rtol=1e-6, atol=1e-7)
    assert_close(c.detach(), chainrule.cat([c1, c2]).detach(), rtol=1e-6, atol=1e-7)


def test_backward_direction_starts_at_the_end() -> None:
    """hb_t = g(W_h hb_{t+1} + W_x x_t + b), read out at the same t."""
    rnn = nn.RNN(D, H, bidirectional=True).double()
    x = normal(L, 1, D)
    w = {k: v.numpy() for k, v in rnn.state_dict().items()}
    hb, expected = np.zeros(H), np.zeros((L, H))
    for t in reversed(range(L)):
        hb = np.tanh(
            w["weight_hh_l0_reverse"] @ hb
            + w["weight_ih_l0_reverse"] @ x.numpy()[t, 0]
            + w["bias_ih_l0_reverse"]
            + w["bias_hh_l0_reverse"]
        )
        expected[t] = hb
    output, h_n = rnn(x)
    assert_close(output[:, 0, H:].detach(), expected, rtol=1e-12, atol=1e-13)
    assert_close(h_n[1, 0].detach(), expected[0], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_cell_in_a_loop_is_the_layer(kind: str) -> None:
    layer, cell = getattr(nn, kind)(D, H).double(), getattr(nn, kind + "Cell")(D, H).double()
    cell.load_state_dict({k.removesuffix("_l0"): v for k, v in layer.state_dict().items()})
    x, state, found = normal(L, N, D), None, []
    for t in range(L):
        state = cell(x[t], state)
        found.append(state[0] if kind == "LSTM" else state)
    assert_close(chainrule.stack(found).detach(), layer(x)[0].detach(), rtol=1e-12, atol=1e-13)


def test_any_activation_and_its_parameters() -> None:
    prelu = nn.PReLU().double()
    rnn = nn.RNN(D, H, nonlinearity=prelu).double()
    assert "nonlinearity.weight" in rnn.state_dict()
    output, _ = rnn(normal(L, N, D))
    output.sum().backward()
    assert prelu.weight.grad is not None
    doubled = nn.RNN(D, H, nonlinearity=lambda a: 2 * a.tanh())
    assert doubled.mode == "RNN"
    x = normal(1, N, D).float()
    plain = nn.RNN(D, H)
    plain.load_state_dict(doubled.state_dict())
    assert_close(doubled(x)[0].detach(), 2 * plain(x)[0].detach(), rtol=1e-6, atol=1e-7)


def test_weights_by_layer() -> None:
    lstm = nn.LSTM(D, H, 2, bidirectional=True, proj_size=2)
    assert len(lstm.all_weights) == 4
    assert lstm.all_weights[3][4] is lstm.weight_hr_l1_reverse
    assert tuple(lstm.weight_ih_l1.shape) == (4 * H, 4)
    lstm.flatten_parameters()
    bound = 1 / np.sqrt(H)
    for p in lstm.parameters():
        assert p.abs().max() <= bound


# --- sequences of different lengths ---------------------------------------------------------------


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("batch_first", [True, False])
def test_mask_is_each_sequence_alone(kind: str, batch_first: bool) -> None:
    """Whatever stands in the padding: no output, no state, no gradient depends on it."""
    layer = getattr(nn, kind)(D, H, 2, batch_first=batch_first, bidirectional=True).double()
    lengths = [5, 2, 3]
    values = normal(N, L, D).numpy()
    mask = np.arange(L) < np.array(lengths)[:, None]
    values[~mask] = np.nan
    if not batch_first:
        values, mask = values.swapaxes(0, 1), mask.swapaxes(0, 1)
    output, last = layer(of_array(values), mask=of_array(mask))
    grads = chainrule.autograd.grad((output**2).sum(), list(layer.parameters()))
    total = [0 * p.detach() for p in layer.parameters()]
    for n, length in enumerate(lengths):
        one = of_array(values[n, :length] if batch_first else values[:length, n])
        alone, alone_last = layer(one)
        found = output[n] if batch_first else output[:, n]
        assert_close(found[:length].detach(), alone.detach(), rtol=1e-11, atol=1e-12)
        assert (found[length:] == 0).all()
        pairs = zip(last, alone_last, strict=True) if kind == "LSTM" else [(last, alone_last)]
        for a, b in pairs:
            assert_close(a[:, n].detach(), b.detach(), rtol=1e-11, atol=1e-12)
        parts = chainrule.autograd.grad((alone**2).sum(), list(layer.parameters()))
        total = [a + b for a, b in zip(total, parts, strict=True)]
    assert_close(list(grads), total, rtol=1e-9, atol=1e-11)


def test_dropout_between_layers_only() -> None:
    chainrule.manual_seed(0)
    layer = nn.LSTM(D, H, 2, dropout=1.0)
    below = layer(normal(L, N, D).float())[0]
    other = layer(normal(L, N, D, seed=5).float())[0]
    assert_close(below.detach(), other.detach(), rtol=0, atol=0)  # the second layer saw zeros
    layer.eval()
    assert (layer(normal(L, N, D).float())[0] != below).any()
    half = nn.GRU(D, H, 2, dropout=0.5)
    x = normal(L, N, D).float()
    assert (half(x)[0] != half(x)[0]).any()
    with pytest.warns(UserWarning, match="num_layers greater than 1"):
        nn.LSTM(D, H, dropout=0.5)


# --- wrong calls ----------------------------------------------------------------------------------


LAYER_ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: nn.RNN(2, 3, nonlinearity="sine"), ValueError, "'sine'.*tanh.*relu"),
    (lambda: nn.LSTM(0, 3), ValueError, "LSTM: input_size must be greater than zero, got 0"),
    (lambda: nn.GRU(2, 3, bias=1), TypeError, "bias should be of type bool, got: int"),
    (lambda: nn.LSTM(2, 3, proj_size=3), ValueError, r"smaller than hidden_size \(3\).*got 3"),
    (lambda: nn.GRU(2, 3, 2, dropout=2), ValueError, r"range \[0, 1\].*got 2"),
    (lambda: nn.LSTM(2, 3)(chainrule.ones(4, 1, 5)), RuntimeError, "Expected 2, got 5"),
    (lambda: nn.LSTM(2, 3)(chainrule.ones(4)), ValueError, "2D or 3D, got 1D"),
    (lambda: nn.RNN(2, 3)(chainrule.ones(0, 1, 2)), RuntimeError, r"one step.*\(0, 1, 2\)"),
    (lambda: nn.RNN(2, 3)(chainrule.ones(4, 0, 2)), RuntimeError, r"at least one sequence"),
    (lambda: nn.RNN(2, 3)(chainrule.ones(4, 1, 2).double()), ValueError, "does not match weight"),
    (
        lambda: nn.RNN(2, 3)(chainrule.ones(4, 1, 2), chainrule.ones(1, 2, 3)),
        RuntimeError,
        r"expected hidden size \(1, 1, 3\), got \(1, 2, 3\)",
    ),
    (
        lambda: nn.LSTM(2, 3)(
            chainrule.ones(4, 1, 2), (chainrule.ones(1, 1, 3), chainrule.ones(1, 1, 4))
        ),
        RuntimeError,
        r"hidden\[1\] size",
    ),
    (
        lambda: nn.GRU(2, 3)(chainrule.ones(4, 2), chainrule.ones(1, 1, 3)),
        RuntimeError,
        "for unbatched 2-D input",
    ),
    (
        lambda: nn.RNN(2, 3)(chainrule.ones(4, 1, 2), mask=chainrule.ones(4, 1)),
        RuntimeError,
        "mask must be boolean",
    ),
    (
        lambda: nn.RNN(2, 3)(chainrule.ones(4, 1, 2), mask=chainrule.ones(1, 4) > 0),
        RuntimeError,
        r"shape \(4, 1\).*got.*\(1, 4\)",
    ),
    (lambda: nn.RNNCell(2, 3)(chainrule.ones(1, 4)), RuntimeError, "got 4 .*expected 2"),
    (lambda: nn.LSTMCell(2, 3)(chainrule.ones(1, 1, 2)), ValueError, "LSTMCell: expected input to"),
    (
        lambda: nn.GRUCell(2, 3)(chainrule.ones(1, 2), chainrule.ones(2, 3)),
        RuntimeError,
        "batch size 1 doesn't match hidden batch size 2",
    ),
    (lambda: nn.RNNCell(2, 3, nonlinearity="sine")(chainrule.ones(1, 2)), RuntimeError, "sine"),
    (
        lambda: F.rnn_sequence(chainrule.ones(4, 1, 3), chainrule.ones(1, 3), chainrule.ones(3, 2)),
        RuntimeError,
        r"weight_hh has shape \(3, 2\), but the state needs \(3, 3\)",
    ),
    (
        lambda: F.rnn_sequence(chainrule.ones(4, 1, 2), chainrule.ones(1, 3), chainrule.ones(3, 3)),
        RuntimeError,
        r"\(4, 1, 2\) must be 3",
    ),
    (
        lambda: F.rnn_sequence(chainrule.ones(4, 1, 3), chainrule.ones(2, 3), chainrule.ones(3, 3)),
        RuntimeError,
        "the batch",
    ),
    (
        lambda: F.rnn_sequence(chainrule.ones(4, 3), chainrule.ones(1, 3), chainrule.ones(3, 3)),
        RuntimeError,
        r"\(steps, batch, gates\)",
    ),
    (
        lambda: F.rnn_sequence(
            chainrule.ones(4, 1, 3), chainrule.ones(1, 3), chainrule.ones(3, 3), nonlinearity="sine"
        ),
        ValueError,
        "'tanh', 'relu', 'sigmoid' or",
    ),
    (lambda: F.rnn_sequence([1.0], chainrule.ones(1, 3), chainrule.ones(3, 3)), TypeError, "list"),
    (
        lambda: F.rnn_sequence(
            chainrule.ones(4, 1, 3), chainrule.ones(1, 3).double(), chainrule.ones(3, 3)
        ),
        RuntimeError,
        "one floating dtype",
    ),
    (
        lambda: F.rnn_sequence(
            chainrule.ones(4, 1, 3),
            chainrule.ones(1, 3),
            chainrule.ones(3, 3),
            chainrule.ones(4, 2) > 0,
        ),
        RuntimeError,
        r"mask of shape \(4, 2\)",
    ),
    (
        lambda: F.lstm_sequence(
            chainrule.ones(4, 1, 12),
            chainrule.ones(1, 2),
            chainrule.ones(1, 3),
            chainrule.ones(12, 2),
        ),
        RuntimeError,
        "without a projection",
    ),
    (
        lambda: F.gru_sequence(
            chainrule.ones(4, 1, 9), chainrule.ones(1, 3), chainrule.ones(9, 3), chainrule.ones(3)
        ),
        RuntimeError,
        "bias_hh has shape",
    ),
]


@pytest.mark.parametrize(("call", "error", "match"), LAYER_ERRORS)
def test_errors(call: Callable[[], Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        call()
