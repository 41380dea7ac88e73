"""Recurrent layers through time: Jacobians against the engine's, gates against the equations."""

from __future__ import annotations

from typing import Any

import chainrule
import numpy as np
import pytest
from looking.drawn import assert_drawn_well, figure_of

from chainrule import Tensor, func, inspect, nn

F64 = chainrule.float64


def layer_of(kind: str, **options: Any) -> nn.Module:
    chainrule.manual_seed(0)
    return getattr(nn, kind)(2, 3, dtype=F64, **options)


def sequence(steps: int = 6, batch: int = 2) -> Tensor:
    return chainrule.randn(steps, batch, 2, dtype=F64)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_norms_are_those_of_the_jacobians_of_the_layer(kind: str) -> None:
    """dh_t/dh_s by jacrev of the layer itself, run on from the state at s."""
    layer, x = layer_of(kind), sequence()
    seen = inspect.through_time(layer, x)[kind]
    states = [None]
    for t in range(6):
        states.append(layer(x[t : t + 1], states[-1])[1])
    for s in range(5):
        rest: Any = states[s + 1]
        for t in range(s + 1, 6):

            def end(h: Tensor, s: int = s, t: int = t, rest: Any = rest) -> Tensor:
                first = (h[None], rest[1]) if kind == "LSTM" else h[None]
                return layer(x[s + 1 : t + 1], first)[0][-1]

            h = rest[0][0] if kind == "LSTM" else rest[0]
            whole = func.jacrev(end)(h.detach()).detach().numpy()  # (N, D, N, D)
            norms = [np.linalg.norm(whole[n, :, n, :]) for n in range(2)]
            assert seen.norms[t][s] == pytest.approx(np.mean(norms), rel=1e-9)
    assert seen.check < 1e-10
    assert np.isnan(seen.norms[0][1])
    assert seen.norms[3][3] == pytest.approx(np.sqrt(3))


def test_norms_of_the_cell() -> None:
    """With closed input and output paths c_t = f c_{t-1}: the norm is the product of the gates."""
    layer = layer_of("LSTM")
    with chainrule.no_grad():
        layer.weight_hh_l0.fill_(0.0)
    one = inspect.through_time(layer, sequence(), samples=1)["LSTM"]
    assert one.cell_norms is not None
    forget = one.gates["forget gate"].numpy()
    for s in range(5):
        expected = np.linalg.norm(np.prod(forget[s + 1 :], axis=0))
        assert one.cell_norms[5][s] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("factor", "verdict", "word"),
    [(0.5, "vanishing", "LSTM or a GRU"), (1.0, "stable", ""), (2.0, "exploding", "clip_norm")],
)
def test_a_linear_recurrence_has_its_factor_as_rate(factor: float, verdict: str, word: str) -> None:
    """relu of positive numbers is linear: dh_t/dh_s = W^(t - s) with W = factor * identity."""
    layer = nn.RNN(2, 3, nonlinearity="relu", bias=False, dtype=F64)
    with chainrule.no_grad():
        layer.weight_hh_l0.copy_(factor * chainrule.eye(3, dtype=F64))
        layer.weight_ih_l0.fill_(1.0)
    seen = inspect.through_time(layer, chainrule.ones(12, 1, 2, dtype=F64))["RNN"]
    assert seen.rate == pytest.approx(factor)
    np.testing.assert_allclose(seen.gains, factor ** np.arange(12.0))
    assert seen.verdict == verdict
    assert word in str(seen)
    assert seen.memory == (7 if factor < 1 else None)


def test_layers_and_directions_inside_a_model_have_names() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.reader = nn.GRU(2, 3, num_layers=2, bidirectional=True, batch_first=True)
            self.writer = nn.LSTM(6, 2, proj_size=1)

        def forward(self, x: Tensor) -> Tensor:
            return self.writer(self.reader(x)[0])[0]

    seen = inspect.through_time(Net(), chainrule.randn(4, 5, 2))
    both = [f"reader.l{i}{d}" for i in (0, 1) for d in ("", "_reverse")]
    assert list(seen.layers) == [*both, "writer"]
    assert max(one.check for one in seen.layers.values()) < 1e-10
    assert (
        list(inspect.through_time(Net(), chainrule.randn(4, 5, 2), "reader.l1*").layers) == both[2:]
    )


def test_a_mask_holds_the_state() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.RNN(2, 3, dtype=F64)

        def forward(self, x: Tensor, mask: Tensor) -> Tensor:
            return self.rnn(x, mask=mask)[0]

    mask = chainrule.tensor([[True], [True], [False], [False]])
    seen = inspect.through_time(Net(), (sequence(4, 1), mask))["rnn"]
    assert seen.norms[3][1] == pytest.approx(np.sqrt(3))
    assert seen.norms[1][0] != pytest.approx(np.sqrt(3))


@pytest.mark.parametrize("kind", ["jacobians", "states"])
def test_pictures(kind: str) -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    drawn = inspect.through_time(layer_of("LSTM"), sequence(12)).plot(kind)
    try:
        assert_drawn_well(drawn)
        assert len(drawn) == (2 if kind == "jacobians" else 6)
    finally:
        plt.close(figure_of(drawn))


def test_what_is_refused() -> None:
    layer = layer_of("LSTM")
    with pytest.raises(ValueError, match=r"'gru' matches no recurrent layer; there are LSTM"):
        inspect.through_time(layer, sequence(), "gru")
    with pytest.raises(ValueError, match="a sample and two steps"):
        inspect.through_time(layer, sequence(), samples=0)
    with pytest.raises(ValueError, match="no recurrent layer of two steps"):
        inspect.through_time(layer, sequence(1))
    with pytest.raises(ValueError, match="GiB; look at fewer steps"):
        inspect.through_time(nn.LSTM(2, 500), chainrule.randn(60, 2, 2), samples=2)
    with pytest.raises(ValueError, match="kind must be"):
        inspect.through_time(layer, sequence()).plot("gates")
