"""Every layer over a sequence is one primitive, which computes what its single steps compute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import nn
from chainrule.func import jvp, vmap
from chainrule.graph import Node
from chainrule.nn import functional as F
from chainrule.ops.recurrent.conv import CONVOLUTION
from chainrule.ops.recurrent.steps import deep_rnn_steps, lstm_steps, peephole_steps, rnn_steps
from chainrule.tensor import Tensor, of_array

# --- the primitive is the composition -------------------------------------------------------------

Random = np.random.Generator
Pair = tuple[Callable[..., Any], Callable[..., Any], list[tuple[int, ...]]]


def mask_of(r: Random, steps: int, batch: int) -> Tensor:
    return of_array(np.arange(steps)[:, None] < r.integers(1, steps + 1, size=batch))


def peephole_pair(r: Random, mask: Any, reverse: bool, L: int, N: int, full: bool) -> Pair:
    h = int(r.integers(1, 5))
    look = (h, h) if full else (h,)
    shapes = [(L, N, 4 * h), (N, h), (N, h), (4 * h, h), look, look, look]
    return (
        lambda *a: F.peephole_sequence(*a[:4], a[4:], mask, reverse=reverse),
        lambda *a: peephole_steps(*a, *given(mask), full=full, reverse=reverse)[:2],
        shapes,
    )


def deep_pair(r: Random, mask: Any, reverse: bool, L: int, N: int, g: str) -> Pair:
    h, *widths = (int(n) for n in r.integers(1, 5, size=4))
    layers = list(zip([*widths[1:], h], widths, strict=True))
    shapes = [(L, N, widths[0]), (N, h), (widths[0], h)]
    for out, size in layers:
        shapes += [(out, size), (out,)]
    how: Any = {"nonlinearity": g, "reverse": reverse}

    def whole(x: Any, h0: Any, w: Any, *others: Any) -> Any:
        pairs = list(zip(others[::2], others[1::2], strict=True))
        return F.deep_rnn_sequence(x, h0, w, pairs, mask, **how)

    return (
        whole,
        lambda *a: deep_rnn_steps(*a, *given(mask), layers=len(layers), **how)[0],
        shapes,
    )


def conv_pair(r: Random, mask: Any, reverse: bool, L: int, N: int, kind: str) -> Pair:
    dim, h = (int(r.integers(1, 4)), int(r.integers(1, 3)))
    space, kernel = tuple(r.integers(1, 4, size=dim)), tuple(r.integers(1, 4, size=dim))
    how: Any = {"reverse": reverse}
    by_steps: Any = {"product": CONVOLUTION.of, "dim": -3 - dim, **how}
    if kind == "lstm":
        shapes = [(L, N, 4 * h, *space), (N, h, *space), (N, h, *space), (4 * h, h, *kernel)]
        return (
            lambda *a: F.conv_lstm_sequence(*a, mask, **how),
            lambda *a: lstm_steps(*a, *given(mask), **by_steps)[:2],
            shapes,
        )
    return (
        lambda *a: F.conv_rnn_sequence(*a, mask, nonlinearity=kind, **how),
        lambda *a: rnn_steps(*a, mask, nonlinearity=kind, **by_steps),
        [(L, N, h, *space), (N, h, *space), (h, h, *kernel)],
    )


def given(mask: Tensor | None) -> tuple[Tensor, ...]:
    return () if mask is None else (mask,)


KINDS: dict[str, tuple[Any, Any]] = {
    "peephole": (peephole_pair, False),
    "full peephole": (peephole_pair, True),
    "deep tanh": (deep_pair, "tanh"),
    "deep relu": (deep_pair, "relu"),
    "deep sigmoid": (deep_pair, "sigmoid"),
    "conv tanh": (conv_pair, "tanh"),
    "conv relu": (conv_pair, "relu"),
    "conv sigmoid": (conv_pair, "sigmoid"),
    "conv lstm": (conv_pair, "lstm"),
}


def made(kind: str, seed: int, masked: bool, reverse: bool) -> tuple[Pair, list[np.ndarray]]:
    """Primitive and steps of random sizes, and values for their inputs."""
    r = np.random.default_rng(seed)
    length, batch = (int(n) for n in r.integers(1, 6, size=2))
    make, setting = KINDS[kind]
    mask = mask_of(r, length, batch) if masked else None
    pair = make(r, mask, reverse, length, batch, setting)
    return pair, [r.normal(size=s) for s in pair[2]]


def tuple_of(out: Any) -> tuple[Tensor, ...]:
    return out if isinstance(out, tuple) else (out,)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("masked", "reverse"),
    [(False, False), (True, False), (True, True)],
    ids=["whole", "masked", "masked, reverse"],
)
@pytest.mark.parametrize("kind", KINDS)
def test_primitive_equals_single_steps(kind: str, masked: bool, reverse: bool, seed: int) -> None:
    """Value, gradient by the kernel and by the rule in operations, second order, forward mode."""
    (whole, steps, shapes), values = made(kind, seed, masked, reverse)
    inputs = [of_array(v).requires_grad_() for v in values]
    r = np.random.default_rng(seed)
    moves = tuple(of_array(r.normal(size=s)) for s in shapes)
    results = []
    for function in (whole, steps):
        outputs = tuple_of(function(*inputs))
        total = sum((y * y.detach().cos()).sum() for y in outputs)
        first = chainrule.autograd.grad(total, inputs, retain_graph=True)
        again = chainrule.autograd.grad(total, inputs, create_graph=True)
        second = chainrule.autograd.grad(sum((g**2).sum() for g in again), inputs)
        tangents = tuple_of(jvp(function, tuple(x.detach() for x in inputs), moves)[1])
        results.append([*outputs, *first, *again, *second, *tangents])
    for a, b in zip(*results, strict=True):
        assert_close(a.detach(), b.detach(), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("kind", ["lstm", "projected", "peephole"])
@pytest.mark.parametrize("used", [0, 1])
def test_an_output_that_is_not_used(kind: str, used: int) -> None:
    """Its gradient is zero, to second order, as if it were multiplied by zero."""
    r = np.random.default_rng(3)
    size = 2 if kind == "projected" else 3
    shapes = [(4, 2, 12), (2, size), (2, 3), (12, size)]
    shapes += {"lstm": [], "projected": [(2, 3)], "peephole": [(3,)] * 3}[kind]
    values = [of_array(r.normal(size=s)).requires_grad_() for s in shapes]

    def states(*a: Any) -> Any:
        if kind == "peephole":
            return F.peephole_sequence(*a[:4], a[4:])
        return F.lstm_sequence(*a)

    def gradients(*outputs: Tensor) -> list[Tensor]:
        loss = outputs[0].sin().sum() + sum((0 * o).sum() for o in outputs[1:])
        plain = chainrule.autograd.grad(loss, values, retain_graph=True)
        first = chainrule.autograd.grad(loss, values, create_graph=True)
        second = chainrule.autograd.grad(sum((g * g).sum() for g in first), values)
        return [t.detach() for t in (*plain, *first, *second)]

    alone, out = gradients(states(*values)[used]), states(*values)
    for a, b in zip(alone, gradients(out[used], out[1 - used]), strict=True):
        assert_close(a, b)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_vmap_with_shared_and_own_weights(kind: str, masked: bool) -> None:
    """Shared weights: the batch joins N, and stays one operation. Own weights: step by step."""
    (whole, _, shapes), values = made(kind, 5, masked, False)
    last = len(shapes) - 1
    for mapped in ({0}, {1}, {last}, set(range(len(shapes)))):
        dims = tuple(0 if i in mapped else None for i in range(len(shapes)))
        inputs = [
            of_array(np.stack([v, 1 - v]) if i in mapped else v) for i, v in enumerate(values)
        ]
        results = tuple_of(vmap(whole, in_dims=dims)(*inputs))
        for k in range(2):
            one = [x[k] if i in mapped else x for i, x in enumerate(inputs)]
            for a, b in zip(results, tuple_of(whole(*one)), strict=True):
                assert_close(a[k], b, rtol=1e-11, atol=1e-12)


# --- the graph ------------------------------------------------------------------------------------


def nodes(y: Tensor) -> list[Node]:
    """All nodes that a tensor was computed by."""
    seen, stack = set(), [y.grad_fn]
    while stack:
        node = stack.pop()
        if isinstance(node, Node) and node not in seen:
            seen.add(node)
            stack += [edge for edge in node.edges if edge is not None]
    return list(seen)


LAYERS: dict[str, tuple[Callable[[], Any], tuple[int, ...], str]] = {
    "RNN": (lambda: nn.RNN(2, 3), (2,), "RnnSequence"),
    "LSTM": (lambda: nn.LSTM(2, 3), (2,), "LstmSequence"),
    "GRU": (lambda: nn.GRU(2, 3), (2,), "GruSequence"),
    "PeepholeLSTM": (lambda: nn.PeepholeLSTM(2, 3), (2,), "PeepholeSequence"),
    "full peepholes": (lambda: nn.PeepholeLSTM(2, 3, full=True), (2,), "PeepholeSequence"),
    "DeepRNN": (lambda: nn.DeepRNN(2, 3, 1, hidden_layers=[4]), (2,), "DeepRnnSequence"),
    "Elman": (lambda: nn.DeepRNN(2, 3, 1, nonlinearity="sigmoid"), (2,), "RnnSequence"),
    "ConvRNN": (lambda: nn.ConvRNN(2, 3, 3), (2, 4, 4), "ConvRnnSequence"),
    "ConvLSTM": (lambda: nn.ConvLSTM(2, 3, 3, dim=1), (2, 4), "ConvLstmSequence"),
}


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("kind", LAYERS)
def test_a_sequence_is_one_node(kind: str, masked: bool) -> None:
    """The size of the graph does not depend on the number of steps."""
    make, size, name = LAYERS[kind]
    layer, counts = make(), []
    for steps in (2, 40):
        mask = mask_of(np.random.default_rng(0), steps, 3) if masked else None
        found = nodes(layer(chainrule.ones(steps, 3, *size), mask=mask)[0])
        counts.append(len(found))
        assert [node.name() for node in found].count(f"{name}Backward") == 1
    assert counts[0] == counts[1] <= 15


def test_iterations_on_one_image_are_one_node() -> None:
    image = chainrule.ones(1, 1, 5, 5)
    counts = [len(nodes(nn.RecurrentConv(1, 2, 3, steps=steps)(image))) for steps in (2, 20)]
    assert counts[0] == counts[1]


# --- what is computed step by step ----------------------------------------------------------------


def same_as(layer: nn.Module, other: nn.Module, x: Tensor) -> None:
    """Both layers compute the same, with the same gradients of their parameters."""
    results = []
    for net in (layer, other):
        net.zero_grad()
        out = net(x)[0]
        (out**2).sum().backward()
        results.append([out.detach(), *(p.grad for p in net.parameters())])
    for a, b in zip(*results, strict=True):
        assert_close(a, b, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("g", ["tanh", "sigmoid"])
def test_a_function_in_the_place_of_a_name(g: str) -> None:
    function = getattr(chainrule, g)
    x, images = (
        of_array(np.random.default_rng(0).normal(size=s)) for s in ((4, 3, 2), (4, 2, 2, 5))
    )
    for make, data in (
        (lambda g: nn.DeepRNN(2, 3, 1, hidden_layers=[4], nonlinearity=g), x),
        (lambda g: nn.DeepRNN(2, 3, 1, nonlinearity=g), x),
        (lambda g: nn.ConvRNN(2, 3, 3, dim=1, nonlinearity=g), images),
    ):
        named, called = make(g).double(), make(function).double()
        called.load_state_dict(named.state_dict())
        same_as(named, called, data)


def test_an_activation_with_parameters_or_randomness_runs_at_every_step() -> None:
    x = chainrule.ones(6, 3, 2)
    net = nn.DeepRNN(2, 3, 1, hidden_layers=[4], nonlinearity=nn.PReLU())
    net(x)[0].sum().backward()
    assert net.nonlinearity.weight.grad is not None
    calls: list[int] = []

    def noisy(a: Tensor) -> Tensor:
        calls.append(1)
        return chainrule.tanh(a + chainrule.randn(*a.shape))

    nn.ConvRNN(1, 2, 3, dim=1, nonlinearity=noisy)(chainrule.ones(6, 1, 1, 5))
    assert len(calls) == 6


@pytest.mark.parametrize("name", ["hidden_mlp.0", "hidden_mlp.1", "from_hidden"])
def test_hooks_of_the_inner_layers_fire_at_every_step(name: str) -> None:
    plain, hooked = (nn.DeepRNN(2, 3, 1, hidden_layers=[4]).double() for _ in range(2))
    hooked.load_state_dict(plain.state_dict())
    fired: list[tuple[int, ...]] = []
    layer = hooked.get_submodule(name)
    handle = layer.register_forward_hook(lambda m, args, out: fired.append(tuple(out.shape)))
    x = of_array(np.random.default_rng(0).normal(size=(5, 2, 2)))
    same_as(plain, hooked, x)
    assert fired == [(2, layer.out_features)] * 5
    handle.remove()
    hooked(x)
    assert len(fired) == 5


def test_other_modules_between_the_states() -> None:
    net = nn.DeepRNN(2, 3, 1, hidden_layers=[4]).double()
    first = net.hidden_mlp[0]
    x = of_array(np.random.default_rng(0).normal(size=(5, 2, 2)))
    expected = net(x)[0].detach()
    net.hidden_mlp[0] = nn.Sequential(first, nn.Identity())
    assert_close(net(x)[0].detach(), expected, rtol=1e-12, atol=1e-13)
    net.hidden_mlp[0] = nn.Linear(3, 4, bias=False).double()
    net.hidden_mlp[0].weight = first.weight
    with chainrule.no_grad():
        first.bias.zero_()
    without = net(x)[0].detach()
    net.hidden_mlp[0] = first
    assert_close(net(x)[0].detach(), without, rtol=1e-12, atol=1e-13)


# --- wrong calls ----------------------------------------------------------------------------------


def ones(*shape: int) -> Tensor:
    return chainrule.ones(*shape)


ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (
        lambda: F.peephole_sequence(
            ones(4, 1, 12), ones(1, 3), ones(1, 3), ones(12, 3), [ones(3), ones(3, 3), ones(3)]
        ),
        RuntimeError,
        r"weight_cf has shape \(3, 3\), but the state needs \(3,\)",
    ),
    (
        lambda: F.peephole_sequence(
            ones(4, 1, 9), ones(1, 3), ones(1, 3), ones(12, 3), [ones(3)] * 3
        ),
        RuntimeError,
        r"\(4, 1, 9\) must be 12",
    ),
    (
        lambda: F.deep_rnn_sequence(ones(4, 1, 2), ones(1, 3), ones(2, 3), [(ones(3, 4), None)]),
        RuntimeError,
        r"weight of layer 0 has shape \(3, 4\).*needs \(3, 2\)",
    ),
    (
        lambda: F.deep_rnn_sequence(ones(4, 1, 2), ones(1, 3), ones(2, 3), []),
        RuntimeError,
        r"weight_hh has shape \(2, 3\).*needs \(3, 3\)",
    ),
    (
        lambda: F.deep_rnn_sequence(ones(4, 1, 3), ones(1, 3), ones(3, 3), [], nonlinearity="sine"),
        ValueError,
        "'sine'",
    ),
    (
        lambda: F.conv_rnn_sequence(ones(4, 1, 2, 5), ones(1, 2, 4), ones(2, 2, 3)),
        RuntimeError,
        r"\(1, 2, 4\) must be \(batch, channels, \*space\).*and its space",
    ),
    (
        lambda: F.conv_rnn_sequence(ones(4, 1, 2), ones(1, 2), ones(2, 2)),
        RuntimeError,
        "kernel of 1, 2 or 3 dimensions",
    ),
    (
        lambda: F.conv_rnn_sequence(
            ones(4, 1, 2, 5), ones(1, 2, 5), ones(2, 2, 3), nonlinearity="sine"
        ),
        ValueError,
        "'sigmoid' or a function",
    ),
    (
        lambda: F.conv_lstm_sequence(ones(4, 1, 8, 5), ones(1, 2, 5), ones(1, 2, 5), ones(2, 2, 3)),
        RuntimeError,
        r"weight_hh has shape \(2, 2, 3\), but the state needs \(8, 2, 3\)",
    ),
    (
        lambda: F.conv_lstm_sequence(ones(4, 1, 8), ones(1, 2, 5), ones(1, 2, 5), ones(8, 2, 3)),
        RuntimeError,
        r"\(steps, batch, gates, \*space\) of 4 dimensions",
    ),
]


@pytest.mark.parametrize(("call", "error", "match"), ERRORS)
def test_errors(call: Callable[[], Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        call()
