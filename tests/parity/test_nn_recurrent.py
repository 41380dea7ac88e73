"""Recurrent layers against PyTorch, by value: every combination of their settings."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule.nn.utils import rnn as ours_utils

torch = pytest.importorskip("torch")
from torch.nn.utils import rnn as their_utils  # noqa: E402

D, H, L, N, P = 3, 4, 5, 3, 2
LENGTHS = [3, 5, 2]


def pair(kind: str, **settings: Any) -> tuple[Any, Any]:
    """The same layer in both libraries, with the same weights in float64."""
    ours = getattr(chainrule.nn, kind)(D, H, **settings).double()
    theirs = getattr(torch.nn, kind)(D, H, **settings).double()
    theirs.load_state_dict({k: torch.from_numpy(v.numpy()) for k, v in ours.state_dict().items()})
    return ours, theirs


def first_states(kind: str, count: int, batch: tuple[int, ...], proj: int) -> list[np.ndarray]:
    r = np.random.default_rng(3)
    sizes = [proj or H, H] if kind == "LSTM" else [H]
    return [r.normal(size=(count, *batch, size)) for size in sizes]


def run(library: Any, module: Any, x: Any, states: Any, make: Any) -> tuple[list[Any], list[Any]]:
    """The outputs and the gradients of a weighted sum of them: of x, of states, of weights."""
    given = [make(s).requires_grad_() for s in states]
    hx = None if not given else tuple(given) if len(given) > 1 else given[0]
    output, last = module(x[0], hx)
    if hasattr(output, "batch_sizes"):
        output = output.data
    results = [output, *(last if isinstance(last, tuple) else (last,))]
    r = np.random.default_rng(5)
    total = sum((y * make(r.normal(size=tuple(y.shape)))).sum() for y in results)
    leaves = [x[1], *given, *module.parameters()]
    return results, list(library.autograd.grad(total, leaves))


def compare(kind: str, layout: str, with_states: bool, settings: dict[str, Any]) -> None:
    ours, theirs = pair(kind, **settings)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    r = np.random.default_rng(1)
    count = settings.get("num_layers", 1) * (2 if settings.get("bidirectional") else 1)
    shape = (N, L, D) if settings.get("batch_first") else (L, N, D)
    if layout == "unbatched":
        shape = (L, D)
    batch = () if layout == "unbatched" else (N,)
    states = first_states(kind, count, batch, settings.get("proj_size", 0)) if with_states else []
    values = r.normal(size=shape)
    found = []
    for library, module, utils in (
        (chainrule, ours, ours_utils),
        (torch, theirs, their_utils),
    ):
        make = library.from_numpy
        x = make(values.copy()).requires_grad_()
        given: Any = x
        if layout == "packed":
            given = utils.pack_padded_sequence(
                x, LENGTHS, settings.get("batch_first", False), enforce_sorted=False
            )
        found.append(run(library, module, (given, x), states, make))
    for mine, other in zip(*found, strict=True):
        for a, b in zip(mine, other, strict=True):
            assert tuple(a.shape) == tuple(b.shape)
            assert_close(a, b.detach(), rtol=1e-9, atol=1e-12)


GRID = list(itertools.product((1, 2), (False, True), (False, True), (False, True), (False, True)))


@pytest.mark.parametrize("layout", ["batched", "unbatched", "packed"])
@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("RNN", {}),
        ("RNN", {"nonlinearity": "relu"}),
        ("GRU", {}),
        ("LSTM", {}),
        ("LSTM", {"proj_size": P}),
    ],
    ids=["tanh", "relu", "gru", "lstm", "projected"],
)
def test_every_setting(kind: str, more: dict[str, Any], layout: str) -> None:
    """Layers x directions x batch_first x bias x first states: outputs and all gradients."""
    chainrule.manual_seed(0)
    for layers, both, batch_first, bias, with_states in GRID:
        settings = {"num_layers": layers, "bidirectional": both, "batch_first": batch_first}
        compare(kind, layout, with_states, settings | {"bias": bias} | more)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_float32_and_dropout_in_evaluation(kind: str) -> None:
    ours = getattr(chainrule.nn, kind)(D, H, 2, dropout=0.5).eval()
    theirs = getattr(torch.nn, kind)(D, H, 2, dropout=0.5).eval()
    ours.load_state_dict(theirs.state_dict())
    x = np.random.default_rng(0).normal(size=(L, N, D)).astype(np.float32)
    output = ours(chainrule.from_numpy(x))[0]
    assert output.dtype == chainrule.float32
    assert_close(output, theirs(torch.from_numpy(x))[0].detach(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    ("kind", "more"),
    [("RNNCell", {}), ("RNNCell", {"nonlinearity": "relu"}), ("GRUCell", {}), ("LSTMCell", {})],
)
def test_cells(kind: str, more: dict[str, Any], bias: bool, batched: bool) -> None:
    ours, theirs = pair(kind, bias=bias, **more)
    assert repr(ours) == repr(theirs)
    r = np.random.default_rng(1)
    batch = (N,) if batched else ()
    arrays = [r.normal(size=(*batch, D))]
    arrays += [r.normal(size=(*batch, H)) for _ in range(2 if kind == "LSTMCell" else 1)]
    for with_states in (True, False):
        found = []
        for library, module in ((chainrule, ours), (torch, theirs)):
            x, *h = [library.from_numpy(a.copy()).requires_grad_() for a in arrays]
            hx = None if not with_states else tuple(h) if len(h) > 1 else h[0]
            out = module(x, hx)
            results = list(out) if isinstance(out, tuple) else [out]
            total = sum((y * (1 + y)).sum() for y in results)
            leaves = [x, *(h if with_states else []), *module.parameters()]
            found.append([*results, *library.autograd.grad(total, leaves)])
        for a, b in zip(*found, strict=True):
            assert_close(a, b.detach(), rtol=1e-9, atol=1e-12)


def test_second_order() -> None:
    """PyTorch differentiates its own LSTM twice on the CPU."""
    for kind in ("RNN", "GRU", "LSTM"):
        ours, theirs = pair(kind, num_layers=2, bidirectional=True)
        values = np.random.default_rng(2).normal(size=(L, N, D))
        found = []
        for library, module in ((chainrule, ours), (torch, theirs)):
            x = library.from_numpy(values.copy()).requires_grad_()
            leaves = [x, *module.parameters()]
            first = library.autograd.grad((module(x)[0] ** 2).sum(), leaves, create_graph=True)
            found.append(library.autograd.grad(sum((g**2).sum() for g in first), leaves))
        for a, b in zip(*found, strict=True):
            assert_close(a, b, rtol=1e-8, atol=1e-9)


# --- wrong calls ----------------------------------------------------------------------------------

MAKE = {
    "zero size": lambda nn: nn.LSTM(0, 4),
    "zero hidden": lambda nn: nn.GRU(3, 0),
    "no layers": lambda nn: nn.RNN(3, 4, 0),
    "float size": lambda nn: nn.RNN(3.0, 4),
    "bias no bool": lambda nn: nn.LSTM(3, 4, 1, 1),
    "dropout": lambda nn: nn.LSTM(3, 4, 2, dropout=1.5),
    "projection too large": lambda nn: nn.LSTM(3, 4, proj_size=4),
    "projection negative": lambda nn: nn.LSTM(3, 4, proj_size=-1),
    "nonlinearity": lambda nn: nn.RNN(3, 4, nonlinearity="sine"),
}
CALL = {
    "4D": ("LSTM", (2, 3, 4, 3), None),
    "width": ("RNN", (5, 2, 4), None),
    "state rank": ("RNN", (5, 2, 3), (1, 4)),
    "unbatched state rank": ("GRU", (5, 3), (1, 1, 4)),
    "state size": ("GRU", (5, 2, 3), (1, 2, 5)),
    "state batch": ("RNN", (5, 2, 3), (1, 3, 4)),
    "no steps": ("LSTM", (0, 2, 3), None),
    "cell 3D": ("RNNCell", (1, 2, 3), None),
    "cell width": ("GRUCell", (2, 4), None),
    "cell state": ("GRUCell", (2, 3), (2, 5)),
    "cell batch": ("RNNCell", (2, 3), (3, 4)),
}


def error_of(function: Any) -> type[BaseException]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function()
        except (RuntimeError, ValueError, TypeError) as error:
            return type(error)
    raise AssertionError("no error")


@pytest.mark.parametrize("case", MAKE)
def test_same_error_when_made(case: str) -> None:
    assert error_of(lambda: MAKE[case](chainrule.nn)) is error_of(lambda: MAKE[case](torch.nn))


@pytest.mark.parametrize("case", CALL)
def test_same_error_when_called(case: str) -> None:
    kind, shape, state = CALL[case]

    def call(library: Any) -> Any:
        hx = None if state is None else library.zeros(*state)
        return getattr(library.nn, kind)(3, 4)(library.zeros(*shape), hx)

    assert error_of(lambda: call(chainrule)) is error_of(lambda: call(torch))
