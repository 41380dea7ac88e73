"""What operations cost: every one has a rule, and the rules agree with counting by hand."""

from __future__ import annotations

import importlib
import itertools
import pkgutil
from collections.abc import Iterable
from typing import Any

import pytest

import chainrule
import chainrule.nn
import chainrule.ops
import chainrule.sparse
from chainrule import Tensor, nn
from chainrule.nn import functional as F
from chainrule.ops.core.apply import watching
from chainrule.ops.core.counting import RULES, UNKNOWN, Cost, cost_of, has_rule
from chainrule.ops.core.primitive import REGISTRY, Op
from chainrule.ops.recurrent import steps


def spent(function: Any) -> Cost:
    """What the operations of a function cost together."""
    total = Cost(0, 0)

    def note(op: Op, inputs: tuple[Tensor, ...], params: dict[str, Any], out: Any) -> None:
        nonlocal total
        cost = cost_of(op, inputs, params, out if isinstance(out, tuple) else (out,))
        assert cost is not None, op.name
        total += cost

    with watching(note), chainrule.no_grad():
        function()
    return total


# --- every operation ------------------------------------------------------------------------------


def test_every_operation_has_a_rule_or_a_kind_that_gives_one() -> None:
    for package in (chainrule.ops, chainrule.nn, chainrule.sparse):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    missing = {name for name, op in REGISTRY.items() if not has_rule(op)}
    assert missing == UNKNOWN
    assert set(RULES) <= set(REGISTRY), "a rule without an operation"
    assert not set(RULES) & UNKNOWN


def test_an_operation_without_a_rule_is_not_free() -> None:
    x = chainrule.eye(3)
    op = REGISTRY["eigh"]
    assert cost_of(op, (x,), {}, (x,)) is None


# --- numbers that count ---------------------------------------------------------------------------


class Ledger:
    """Multiplications that are added to a sum, counted one by one in loops over the definition."""

    def __init__(self) -> None:
        self.macs = 0

    def dot(self, pairs: Iterable[tuple[int, int]]) -> None:
        self.macs += sum(1 for _ in pairs)


def convolution_by_loops(
    n: int, c_in: int, c_out: int, k: int, out: int, nd: int, groups: int
) -> int:
    ledger = Ledger()
    for _ in range(n):
        for o in range(c_out):
            group = o // (c_out // groups)
            channels = range(group * (c_in // groups), (group + 1) * (c_in // groups))
            for _place in itertools.product(range(out), repeat=nd):
                kernel = itertools.product(channels, *[range(k)] * nd)
                ledger.dot((c, o) for c, *_ in kernel)
    return ledger.macs


@pytest.mark.parametrize("nd", [1, 2, 3])
@pytest.mark.parametrize(
    ("stride", "dilation", "padding", "groups"), [(1, 1, 0, 1), (2, 1, 1, 2), (1, 2, 2, 2)]
)
def test_convolutions(nd: int, stride: int, dilation: int, padding: int, groups: int) -> None:
    layer = getattr(nn, f"Conv{nd}d")(2, 4, 3, stride, padding, dilation, groups, bias=False)
    x = chainrule.ones(2, 2, *[7] * nd)
    out = layer(x)
    by_hand = convolution_by_loops(2, 2, 4, 3, out.shape[-1], nd, groups)
    assert spent(lambda: layer(x)) == (by_hand, 2 * by_hand)
    biased = getattr(nn, f"Conv{nd}d")(2, 4, 3, stride, padding, dilation, groups)
    assert spent(lambda: biased(x)).flops == 2 * by_hand + out.numel()


@pytest.mark.parametrize("nd", [1, 2])
@pytest.mark.parametrize(("stride", "groups"), [(1, 1), (2, 1), (3, 2)])
def test_transposed_convolutions(nd: int, stride: int, groups: int) -> None:
    """Every input is multiplied with the kernel of each output channel of its group."""
    layer = getattr(nn, f"ConvTranspose{nd}d")(4, 2, 3, stride, groups=groups, bias=False)
    x = chainrule.ones(2, 4, *[5] * nd)
    ledger = Ledger()
    for _ in itertools.product(range(2), range(4), *[range(5)] * nd):
        ledger.dot((0, 0) for _ in itertools.product(range(2 // groups), *[range(3)] * nd))
    assert spent(lambda: layer(x)).macs == ledger.macs


@pytest.mark.parametrize("shape", [(3,), (5, 3), (2, 5, 3), (2, 1, 4, 3)])
def test_dense_layers_of_any_rank(shape: tuple[int, ...]) -> None:
    rows = chainrule.ones(*shape).numel() // 3
    x = chainrule.ones(*shape)
    assert spent(lambda: nn.Linear(3, 4)(x)) == (rows * 12, rows * (24 + 4))
    assert spent(lambda: nn.Linear(3, 4, bias=False)(x)) == (rows * 12, rows * 24)


@pytest.mark.parametrize(
    ("a", "b", "macs"),
    [
        ((3,), (3,), 3),
        ((2, 3), (3,), 6),
        ((3,), (3, 4), 12),
        ((2, 3), (3, 4), 24),
        ((5, 2, 3), (5, 3, 4), 120),
        ((5, 1, 2, 3), (6, 3, 4), 5 * 6 * 24),
        ((0, 3), (3, 4), 0),
    ],
)
def test_products(a: tuple[int, ...], b: tuple[int, ...], macs: int) -> None:
    assert spent(lambda: chainrule.ones(*a) @ chainrule.ones(*b)) == (macs, 2 * macs)


def test_einsum() -> None:
    x, y = chainrule.ones(2, 3, 4), chainrule.ones(2, 4, 5)
    assert spent(lambda: chainrule.einsum("bij,bjk->bik", x, y)).macs == 2 * 3 * 4 * 5
    # What only one of them has is summed before the product: 2 * 4 products are left.
    assert spent(lambda: chainrule.einsum("bij,bjk->", x, y)).macs == 2 * 4
    assert spent(lambda: chainrule.einsum("bij,bij->bij", x, x)) == (0, 24)


# --- recurrent layers: the primitive costs what its steps cost, operation by operation ------------


@pytest.mark.parametrize("name", ["rnn", "lstm", "projected", "gru", "peephole", "full", "deep"])
def test_recurrent_primitives_cost_what_their_steps_cost(name: str) -> None:
    ones = chainrule.ones
    x, h, c = {k: ones(4, 2, k * 3) for k in (1, 3, 4)}, ones(2, 3), ones(2, 3)
    reverse = {"reverse": False}
    inputs: dict[str, tuple[str, tuple[Any, ...], dict[str, Any], Any]] = {
        "rnn": ("rnn", (x[1], h, ones(3, 3)), {"nonlinearity": "tanh"}, steps.rnn_steps),
        "lstm": ("lstm", (x[4], h, c, ones(12, 3)), {"projected": False}, steps.lstm_steps),
        "projected": (
            "lstm",
            (x[4], ones(2, 2), c, ones(12, 2), ones(2, 3)),
            {"projected": True},
            steps.lstm_steps,
        ),
        "gru": ("gru", (x[3], h, ones(9, 3), ones(9)), {}, steps.gru_steps),
        "peephole": (
            "peephole",
            (x[4], h, c, ones(12, 3), ones(3), ones(3), ones(3)),
            {"full": False},
            steps.peephole_steps,
        ),
        "full": (
            "peephole",
            (x[4], h, c, ones(12, 3), ones(3, 3), ones(3, 3), ones(3, 3)),
            {"full": True},
            steps.peephole_steps,
        ),
        "deep": (
            "deep_rnn",
            (x[1], ones(2, 2), ones(3, 2), ones(2, 3), ones(2)),
            {"layers": 1, "nonlinearity": "tanh"},
            steps.deep_rnn_steps,
        ),
    }
    op, given, params, written_out = inputs[name]
    importlib.import_module("chainrule.ops.recurrent.peephole")
    importlib.import_module("chainrule.ops.recurrent.deep")
    whole = spent(lambda: REGISTRY[f"{op}_sequence"](*given, **params, **reverse))
    assert whole == spent(lambda: written_out(*given, **params, **reverse))
    assert whole.macs > 0


def test_recurrent_convolutions() -> None:
    x, kernel = chainrule.ones(4, 1, 2, 5, 5), 9
    for kind, gates in (("ConvLSTM", 4), ("ConvRNN", 1)):
        layer = getattr(nn, kind)(2, 3, 3)
        macs = 4 * 1 * 25 * kernel * gates * 3 * (2 + 3)
        assert spent(lambda layer=layer: layer(x)).macs == macs, kind


@pytest.mark.parametrize(
    ("kind", "gates", "options", "factor"),
    [
        ("RNN", 1, {}, 1),
        ("LSTM", 4, {}, 1),
        ("GRU", 3, {}, 1),
        ("LSTM", 4, {"bidirectional": True}, 2),
        ("GRU", 3, {"bias": False}, 1),
    ],
)
def test_recurrent_layers(kind: str, gates: int, options: dict[str, Any], factor: int) -> None:
    """gates D (D_in + D) multiply-adds for each sample and step."""
    layer = getattr(nn, kind)(3, 5, **options)
    x = chainrule.ones(7, 2, 3)
    assert spent(lambda: layer(x)).macs == factor * 7 * 2 * gates * 5 * (3 + 5)


def test_a_projected_lstm() -> None:
    layer = nn.LSTM(3, 5, proj_size=2)
    x = chainrule.ones(7, 2, 3)
    assert spent(lambda: layer(x)).macs == 7 * 2 * (4 * 5 * (3 + 2) + 2 * 5)


def test_a_packed_batch_counts_its_padding() -> None:
    from chainrule.nn.utils.rnn import pack_padded_sequence

    layer = nn.GRU(3, 5)
    packed = pack_padded_sequence(chainrule.ones(7, 2, 3), chainrule.tensor([7, 4]))
    full = spent(lambda: layer(chainrule.ones(7, 2, 3)))
    assert spent(lambda: layer(packed)).macs == full.macs


def test_attention() -> None:
    """Four projections of D^2, and scores and values of D for each pair of positions."""
    n, length, d = 2, 5, 8
    x = chainrule.ones(n, length, d)
    projections, products = 4 * n * length * d * d, 2 * n * length * length * d
    layer = nn.MultiheadAttention(d, 2, batch_first=True)
    assert spent(lambda: layer(x, x, x)).macs == projections + products
    assert spent(lambda: F.scaled_dot_product_attention(x, x, x)).macs == products


# --- compositions cost what they are composed of --------------------------------------------------


def test_softmax_is_its_parts() -> None:
    x = chainrule.rand(4, 6)

    def composed() -> Tensor:
        e = (x - x.amax(-1, keepdim=True)).exp()
        return e / e.sum(-1, keepdim=True)

    assert spent(lambda: x.softmax(-1)) == spent(composed) == (0, 5 * 24)

    def logarithm() -> Tensor:
        d = x - x.amax(-1, keepdim=True)
        return d - d.exp().sum(-1, keepdim=True).log()

    assert spent(lambda: x.log_softmax(-1)) == spent(logarithm)


def test_normalization_is_its_parts() -> None:
    x, w, b = chainrule.rand(4, 6), chainrule.rand(6), chainrule.rand(6)

    def composed() -> Tensor:
        d = x - x.mean(-1, keepdim=True)
        return d * ((d * d).mean(-1, keepdim=True) + 1e-5).rsqrt() * w + b

    assert spent(lambda: F.layer_norm(x, (6,), w, b)) == spent(composed)


def test_pooling_sees_its_windows() -> None:
    x = chainrule.rand(2, 3, 8, 8)
    assert spent(lambda: F.max_pool2d(x, 2)).flops == 2 * 3 * 16 * 4
    assert spent(lambda: F.avg_pool2d(x, 2)).flops == 2 * 3 * 16 * (4 + 1)
    assert spent(lambda: F.adaptive_avg_pool2d(x, 3)).flops == 2 * 3 * (10 * 10 + 9)


def test_what_moves_elements_is_free() -> None:
    table = nn.Embedding(5, 3)
    index = chainrule.tensor([[0, 4], [1, 1]])
    x = chainrule.rand(4, 6)
    assert spent(lambda: table(index)) == (0, 0)
    assert spent(lambda: chainrule.cat([x, x.mT.reshape(4, 6)])[1:].flip(0)) == (0, 0)


def test_equations() -> None:
    a, b = chainrule.eye(6) * 2, chainrule.ones(6, 2)
    assert spent(lambda: chainrule.linalg.solve(a, b)).flops >= 2 * 6**3 / 3 + 2 * 36 * 2
    assert spent(lambda: chainrule.linalg.cholesky(a)).flops >= 72
    z = chainrule.zeros(8, dtype=chainrule.complex64)
    assert spent(lambda: chainrule.fft.fft(z)).flops == 5 * 8 * 3
