"""Recurrent layers as they are wired: over time, and inside a step."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from looking.diagrams import assert_laid_out_well
from looking.nets import NETS

import chainrule
from chainrule import inspect, nn, randn, sigmoid, tanh
from chainrule.inspect.structure.scene import Drawing

LAYERS: dict[str, Callable[[], nn.Module]] = {
    "rnn": lambda: nn.RNN(3, 4, nonlinearity="relu"),
    "gru_both": lambda: nn.GRU(3, 4, 2, bidirectional=True),
    "lstm": lambda: nn.LSTM(3, 5, 3),
    "lstm_both": lambda: nn.LSTM(3, 5, bidirectional=True),
    "lstm_projected": lambda: nn.LSTM(3, 5, 2, proj_size=2, bidirectional=True),
    "rnn_cell": lambda: nn.RNNCell(3, 4),
    "gru_cell": lambda: nn.GRUCell(3, 4),
    "lstm_cell": lambda: nn.LSTMCell(3, 4),
    "peephole": lambda: nn.PeepholeLSTM(3, 4),
    "brnn": lambda: nn.Bidirectional(nn.RNN(3, 4), nn.LSTM(3, 5), output_size=2),
}


def pairs(drawing: Drawing) -> list[tuple[str, str]]:
    return [(e.source, e.target) for e in drawing.edges]


@pytest.mark.parametrize("name", LAYERS)
def test_wirings_are_laid_out_well(name: str) -> None:
    for steps in (1, 2, 5):
        assert_laid_out_well(inspect.wiring(LAYERS[name](), steps))
    assert_laid_out_well(inspect.wiring(LAYERS[name](), cell=True))


def test_states_run_from_step_to_step() -> None:
    assert pairs(inspect.wiring(nn.RNN(3, 4), 2)) == [
        ("h0", "h1"), ("x1", "h1"), ("h1", "h2"), ("x2", "h2"), ("h2", "h_n"),
        ("h1", "y1"), ("h2", "y2"),
    ]  # fmt: skip


def test_an_lstm_hands_on_two_states() -> None:
    drawing = inspect.wiring(nn.LSTM(3, 4), 2)
    assert pairs(drawing).count(("h1, c1", "h2, c2")) == 2
    notes = [e.note for e in drawing.edges if e.source == "h1, c1"]
    assert notes[:2] == ["h through weight_hh_l0", "c"]


def test_two_directions_run_against_each_other() -> None:
    drawing = inspect.wiring(nn.GRU(3, 4, bidirectional=True), 3)
    recurrent = [e for e in drawing.edges if e.source in ("h1", "h2") and e.target in ("h1", "h2")]
    ways = {(e.source, e.target): e.points[1][0] > e.points[0][0] for e in recurrent}
    assert ways == {("h1", "h2"): True, ("h2", "h1"): False}
    rows = {b.facts["direction"]: b.y for b in drawing.boxes if b.kind == "step"}
    assert rows["forward"] > rows["backward"]
    assert pairs(drawing).count(("h1", "y1")) == 2  # of both directions


def test_sizes_and_names_are_those_of_the_module() -> None:
    words = [w.words for w in inspect.wiring(nn.LSTM(3, 5, 2, proj_size=2)).labels]
    module = nn.LSTM(3, 5, 2, proj_size=2)
    for name, p in module.named_parameters():
        if p.ndim == 2:
            assert f"{name} {tuple(p.shape)}" in words
    assert "3 numbers" in words


@chainrule.no_grad()
def test_the_rows_of_an_lstm_are_those_of_its_gates() -> None:
    lstm = nn.LSTM(3, 5, proj_size=2)
    drawing = inspect.wiring(lstm, cell=True)
    rows = {b.name[0]: b.facts["rows"] for b in drawing.boxes if "rows" in b.facts}
    functions = {b.name[0]: b.facts["function"] for b in drawing.boxes if "rows" in b.facts}
    x, h, c = randn(2, 3), randn(2, 2), randn(2, 5)
    sums = x @ lstm.weight_ih_l0.mT + lstm.bias_ih_l0 + h @ lstm.weight_hh_l0.mT + lstm.bias_hh_l0
    gate = {}
    for letter, found in rows.items():
        start, stop = map(int, found.split(":"))
        gate[letter] = {"sigmoid": sigmoid, "tanh": tanh}[functions[letter]](sums[:, start:stop])
    new = gate["f"] * c + gate["i"] * gate["g"]
    out = (gate["o"] * tanh(new)) @ lstm.weight_hr_l0.mT
    _, (h_n, c_n) = lstm(x[None], (h[None], c[None]))
    chainrule.testing.assert_close(h_n[0], out)
    chainrule.testing.assert_close(c_n[0], new)
    words = [w.words for w in drawing.labels]
    assert "c_t = f * c_{t-1} + i * g" in words
    assert "h_t = o * tanh(c_t), times weight_hr_l0" in words


@chainrule.no_grad()
def test_the_rows_of_a_gru_are_those_of_its_gates() -> None:
    gru = nn.GRUCell(3, 4)
    rows = {
        b.name: b.facts["rows"] for b in inspect.wiring(gru, cell=True).boxes if "rows" in b.facts
    }
    x, h = randn(2, 3), randn(2, 4)

    def parts(name: str) -> tuple[chainrule.Tensor, chainrule.Tensor]:
        start, stop = map(int, rows[name].split(":"))
        of_x = x @ gru.weight_ih[start:stop].mT + gru.bias_ih[start:stop]
        return of_x, h @ gru.weight_hh[start:stop].mT + gru.bias_hh[start:stop]

    r, z = (sigmoid(sum(parts(name))) for name in ("r: reset gate", "z: update gate"))
    n = tanh(parts("W x_t + b")[0] + r * parts("U h_{t-1} + b")[1])
    chainrule.testing.assert_close(gru(x, h), (1 - z) * n + z * h)


def test_the_inside_of_a_step_has_its_products_and_sums() -> None:
    found = pairs(inspect.wiring(nn.LSTM(3, 5), cell=True))
    times = "\N{MULTIPLICATION SIGN}"
    expected = [
        ("c_{t-1}", times), ("f: forget gate", times), ("i: input gate", times),
        ("g: candidate", times), (times, "+"), ("+", "tanh"), ("o: output gate", times),
        ("tanh", times), (times, "h_t"), ("+", "c_t"),
    ]  # fmt: skip
    assert set(expected) <= set(found)
    peep = pairs(inspect.wiring(nn.PeepholeLSTM(3, 5), cell=True))
    assert ("c_{t-1}", "f: forget gate") in peep
    assert ("+", "o: output gate") in peep
    assert ("c_{t-1}", "f: forget gate") not in found


def test_a_recurrent_layer_is_found_in_a_model() -> None:
    net = NETS["lstm"]()
    assert inspect.wiring(net.model).title.startswith("lstm: LSTM(3, 5")
    two = nn.ModuleDict({"a": nn.GRU(2, 2), "b": nn.RNN(2, 3)})
    assert inspect.wiring(two, layer="b").title.startswith("b: RNN")


def test_what_is_not_recurrent_is_refused() -> None:
    with pytest.raises(TypeError, match="Linear has no recurrent layer"):
        inspect.wiring(nn.Linear(2, 2))
    with pytest.raises(
        ValueError, match="'head' is no recurrent layer of this model; it has 'lstm'"
    ):
        inspect.wiring(NETS["lstm"]().model, layer="head")
    with pytest.raises(ValueError, match="steps must be at least 1"):
        inspect.wiring(nn.RNN(1, 1), 0)
    deep = nn.Bidirectional(nn.RNN(2, 3, 2), nn.RNN(2, 3), output_size=1)
    with pytest.raises(ValueError, match="several layers"):
        inspect.wiring(deep)
