"""Watching a training: right numbers, by name, before clipping, and nothing left behind."""

from __future__ import annotations

import csv
import itertools
import json
import math
from pathlib import Path
from typing import Any

import chainrule
import numpy as np
import pytest
from looking.drawn import assert_drawn_well, figure_of

from chainrule import Tensor, inspect, models, nn, optim, train
from chainrule.inspect.training.statistics import QUANTILES, SAMPLE, statistics

X = np.random.default_rng(0).normal(size=(64, 4)).astype("float32")
Y = (X[:, :1] * X[:, 1:2]).astype("float32")


def network() -> nn.Sequential:
    chainrule.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))


def loss_of(model: nn.Module) -> Tensor:
    return ((model(chainrule.tensor(X)) - chainrule.tensor(Y)) ** 2).mean()


def hooks(model: nn.Module) -> list[Any]:
    held = [len(v) for m in model.modules() for k, v in m.__dict__.items() if "_hooks" in k]
    return [held, [sorted(m.__dict__) for m in model.modules()]]


# --- one tensor -----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 7, 1000, SAMPLE])
def test_statistics_are_numpys(size: int) -> None:
    x = np.random.default_rng(size).normal(2.0, 3.0, size=size)
    x[:: max(2, size // 5)] = 0.0
    found = statistics(chainrule.tensor(x))
    assert found.norm == pytest.approx(np.linalg.norm(x), rel=1e-12)
    assert (found.mean, found.std) == pytest.approx((x.mean(), x.std()), rel=1e-9)
    assert (found.min, found.max) == (x.min(), x.max())
    assert found.zeros == pytest.approx((x == 0).mean())
    assert found.quantiles == pytest.approx(np.quantile(x, QUANTILES), rel=1e-9, abs=1e-12)
    assert sum(found.counts) == found.counted == size
    if size > 1:
        expected, _ = np.histogram(x, found.edges)
        np.testing.assert_allclose(found.counts, expected, atol=1)  # a value on an edge
        widths = np.diff(found.edges)
        assert np.dot(found.density, widths) == pytest.approx(1.0)


def test_a_small_spread_beside_a_large_mean_shows_its_shape() -> None:
    """The case in which a histogram from zero has one bar."""
    x = np.random.default_rng(0).normal(0.97, 1e-3, size=20000).astype("float32")
    found = statistics(chainrule.tensor(x))
    assert (found.mean, found.std) == pytest.approx((0.97, 1e-3), rel=0.02)
    assert sum(n > 0 for n in found.counts) > 30
    assert max(found.counts) < 0.1 * found.counted
    centers = (np.array(found.edges[1:]) + np.array(found.edges[:-1])) / 2
    normal = np.exp(-0.5 * ((centers - 0.97) / 1e-3) ** 2) / (1e-3 * math.sqrt(2 * math.pi))
    np.testing.assert_allclose(found.density[1:-1], normal[1:-1], atol=0.25 * normal.max())


def test_one_large_value_does_not_hide_the_rest() -> None:
    x = np.random.default_rng(0).normal(size=1000)
    x[0] = 1e6
    found = statistics(chainrule.tensor(x))
    assert found.max == 1e6
    assert sum(n > 0 for n in found.counts) > 25


def test_large_tensors_are_sampled_over_all_columns() -> None:
    """Each column has its own level; all of them are among the values that are counted."""
    columns = np.arange(64, dtype="float64")
    x = np.broadcast_to(columns, (1024, 64)).copy()
    found = statistics(chainrule.tensor(x).reshape(-1))
    assert SAMPLE / 2 < found.counted <= SAMPLE
    assert found.quantiles == pytest.approx(np.quantile(columns, QUANTILES), abs=1.0)


def test_values_that_are_not_finite_are_counted_and_left_out() -> None:
    found = statistics(chainrule.tensor([1.0, math.nan, 3.0, math.inf]))
    assert (found.size, found.nonfinite, found.mean, found.max) == (4, 2, 2.0, 3.0)
    none = statistics(chainrule.tensor([math.nan, -math.inf]))
    assert none.nonfinite == 2
    assert math.isnan(none.norm)


# --- around a loop of one's own -------------------------------------------------------------------


def test_gradients_are_those_before_clipping_and_updates_those_that_were_made() -> None:
    model = network()
    optimizer = optim.SGD(model.parameters(), lr=0.5)
    expected: dict[int, dict[str, Any]] = {}
    with inspect.watch(model, optimizer, every=2) as seen:
        for step in range(5):
            optimizer.zero_grad()
            loss_of(model).backward()
            before = {n: p.detach().numpy().copy() for n, p in model.named_parameters()}
            grads = {n: np.linalg.norm(p.grad.numpy()) for n, p in model.named_parameters()}
            nn.utils.clip_grad_norm_(model.parameters(), 0.01)
            optimizer.step()
            after = {n: p.detach().numpy() for n, p in model.named_parameters()}
            moved = {n: np.linalg.norm(after[n] - before[n]) for n in before}
            ratio = {n: moved[n] / np.linalg.norm(before[n]) for n in before}
            weight = {n: np.linalg.norm(after[n]) for n in before}
            expected[step] = {"grad": grads, "update": moved, "weight": weight, "ratio": ratio}
    for name in grads:
        for what in ("grad", "update", "weight"):
            series = seen[what][name]
            assert series.steps == [0, 2, 4]
            found = [expected[s][what][name] for s in series.steps]
            np.testing.assert_allclose(series.values("norm"), found, rtol=1e-5)
        ratios = [expected[s]["ratio"][name] for s in (0, 2, 4)]
        np.testing.assert_allclose(seen["update"][name].values("ratio"), ratios, rtol=1e-4)
    assert list(seen["grad"]) == [n for n, _ in model.named_parameters()]


def test_gradients_of_several_backward_passes_are_their_sum() -> None:
    model = network()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    with inspect.watch(model, optimizer, what="grad", every=1) as seen:
        for _ in range(3):
            loss_of(model).backward()
        total = float(chainrule.linalg.vector_norm(model[0].weight.grad))
        optimizer.step()
    assert seen["grad"]["0.weight"].values("norm") == pytest.approx([total])


def test_activations_are_what_the_layers_returned() -> None:
    model = network()
    with inspect.watch(model, None, what=["activation", "preactivation"], every=1) as seen:
        loss_of(model).backward()
        seen.step()
    h = chainrule.tensor(X)
    for i, layer in enumerate(model):
        h = layer(h)
        kind = "preactivation" if isinstance(layer, nn.Linear) else "activation"
        found = seen[kind][str(i)].last
        values = h.detach().numpy()
        assert found.norm == pytest.approx(np.linalg.norm(values), rel=1e-5)
        assert found.std == pytest.approx(values.std(), rel=1e-5)


def test_passes_without_gradients_do_not_count() -> None:
    model = network()
    with inspect.watch(model, None, what="activation", every=1) as seen:
        loss_of(model).backward()
        with chainrule.no_grad():
            model(chainrule.zeros(3, 4))
        seen.step()
    assert seen["activation"]["1"].last.size == 64 * 8


def test_nothing_is_attached_between_the_steps_that_are_looked_at_and_after() -> None:
    model = network()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    untouched = hooks(model)
    with inspect.watch(model, optimizer, every=3) as seen:
        for step in range(5):
            assert (hooks(model) == untouched) == (step % 3 != 0)
            optimizer.zero_grad()
            loss_of(model).backward()
            optimizer.step()
    assert hooks(model) == untouched
    assert not any(optimizer._hooks.values())
    assert seen["activation"]["1"].steps == [0, 3]


def test_an_error_in_the_model_leaves_nothing_behind() -> None:
    model = network()
    untouched = hooks(model)
    with pytest.raises(RuntimeError), inspect.watch(model, None, every=1):
        model(chainrule.zeros(3, 5))
    assert hooks(model) == untouched
    assert chainrule.relu(chainrule.ones(1)).item() == 1.0  # operations are no longer noted


def test_the_numbers_of_training_are_the_same_when_watched() -> None:
    results = []
    for watched in (False, True):
        model = network()
        optimizer = optim.Adam(model.parameters())
        seen = inspect.Watch(every=1)
        if watched:
            seen.attach(model, optimizer)
        for _ in range(4):
            optimizer.zero_grad()
            loss_of(model).backward()
            optimizer.step()
        seen.detach()
        results.append([p.detach().numpy() for p in model.parameters()])
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)


class Functional(nn.Module):
    """Activations as functions, a layer that is used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.ModuleDict({"a": nn.Linear(4, 4)})
        self.head = nn.Linear(4, 1)

    def forward(self, x: Tensor) -> Tensor:
        h = chainrule.tanh(self.encoder["a"](x))
        return self.head(nn.functional.relu(self.encoder["a"](h)))


def test_functions_and_layers_that_are_used_twice() -> None:
    seen = inspect.activations(Functional(), chainrule.tensor(X))
    assert list(seen["activation"]) == ["tanh", "relu"]
    assert list(seen["preactivation"]) == ["encoder.a", "encoder.a#2", "head"]
    assert seen["activation"]["relu"].last.min == 0


def test_names_are_chosen_by_patterns() -> None:
    model = Functional()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    with inspect.watch(model, optimizer, "encoder.*", "*.bias", every=1) as seen:
        loss_of(model).backward()
        optimizer.step()
    assert list(seen["grad"]) == ["encoder.a.weight", "encoder.a.bias", "head.bias"]
    assert list(seen["preactivation"]) == ["encoder.a", "encoder.a#2"]
    assert list(inspect.activations(model, chainrule.tensor(X), "encoder")["preactivation"]) == [
        "encoder.a",
        "encoder.a#2",
    ]


# --- in a Trainer ---------------------------------------------------------------------------------


def test_in_a_trainer_with_clipping_and_validation() -> None:
    norms = []
    for options in ({}, {"clip_norm": 1e-6}):
        model, seen = network(), inspect.Watch(every=2)
        optimizer = optim.SGD(model.parameters(), lr=0.0)
        trainer = train.Trainer(
            model, "mse", optimizer, callbacks=[seen], progress=False, **options
        )
        trainer.fit((X, Y), (X, Y), epochs=2, batch_size=16, shuffle=False)
        assert seen["grad"]["0.weight"].steps == [0, 2, 4, 6]
        assert seen["grad"]["0.weight"].epochs == [0, 0, 1, 1]
        assert seen["activation"]["1"].last.size == 16 * 8
        norms.append(seen["grad"]["0.weight"].values("norm"))
    assert norms[0] == norms[1]
    assert min(norms[0]) > 1e-3
    assert hooks(model) == hooks(network())


@pytest.mark.parametrize("optimizer", ["lbfgs", "adam"])
def test_optimizers_that_look_at_the_loss_themselves(optimizer: str) -> None:
    seen = inspect.Watch(every=1)
    train.Trainer(network(), "mse", optimizer, callbacks=[seen], progress=False).fit(
        (X, Y), epochs=2, batch_size=64
    )
    assert seen["update"]["0.weight"].steps == [0, 1]
    assert min(seen["update"]["0.weight"].values("norm")) > 0


def test_a_training_that_fails_leaves_the_model_as_it_was() -> None:
    model = network()
    data = X.copy()
    data[0, 0] = math.nan
    trainer = train.Trainer(model, "mse", callbacks=[inspect.Watch(every=1)], progress=False)
    with pytest.raises(train.DivergedError):
        trainer.fit((data, Y), epochs=1)
    assert hooks(model) == hooks(network())


def test_a_resumed_run_goes_on(tmp_path: Path) -> None:
    def trainer(seen: inspect.Watch) -> train.Trainer:
        model = network()
        optimizer = optim.SGD(model.parameters(), lr=0.01)
        return train.Trainer(model, "mse", optimizer, callbacks=[seen], progress=False, seed=1)

    whole = inspect.Watch(every=3)
    trainer(whole).fit((X, Y), epochs=4)
    first = inspect.Watch(every=3)
    one = trainer(first)
    one.fit((X, Y), epochs=2)
    one.save_checkpoint(tmp_path / "half")
    second = inspect.Watch(every=3)
    trainer(second).fit((X, Y), epochs=4, resume=tmp_path / "half")
    assert json.dumps(second.state_dict()) == json.dumps(whole.state_dict())


# --- recurrent layers -----------------------------------------------------------------------------


def test_states_and_gates_of_a_recurrent_layer_are_those_of_its_cells() -> None:
    chainrule.manual_seed(0)
    lstm = nn.LSTM(3, 4, num_layers=2, bidirectional=True)
    x = chainrule.randn(6, 2, 3)
    seen = inspect.activations(lstm, x)["activation"]
    cell = nn.LSTMCell(3, 4)
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        getattr(cell, name).data = getattr(lstm, f"{name}_l0_reverse").data
    h, c = chainrule.zeros(2, 4), chainrule.zeros(2, 4)
    hidden, cells, forget = [], [], []
    for t in reversed(range(6)):
        z = x[t] @ cell.weight_ih.mT + cell.bias_ih + h @ cell.weight_hh.mT + cell.bias_hh
        forget.append(chainrule.sigmoid(z[:, 4:8]).detach().numpy())
        h, c = cell(x[t], (h, c))
        hidden.append(h.detach().numpy())
        cells.append(c.detach().numpy())
    parts = (("hidden", hidden), ("cell", cells), ("forget gate", forget))
    for part, values in parts:
        found = seen[f"LSTM.l0_reverse.{part}"].last
        assert found.norm == pytest.approx(np.linalg.norm(values), rel=1e-5)
        assert found.mean == pytest.approx(np.mean(values), rel=1e-4)


def test_recurrent_layers_are_watched_in_training() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gru, self.head = nn.GRU(2, 3, batch_first=True), nn.Linear(3, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.gru(x)[0][:, -1])

    seen = inspect.Watch("gru", every=1)
    x = chainrule.randn(16, 5, 2)
    trainer = train.Trainer(Net(), "mse", callbacks=[seen], progress=False)
    trainer.fit((x, chainrule.zeros(16, 1)), epochs=2, batch_size=8)
    names = ["gru.hidden", "gru.reset gate", "gru.update gate", "gru.candidate", "gru"]
    assert list(seen["activation"]) == names
    assert len(seen["activation"]["gru.hidden"].steps) == 4
    assert seen["preactivation"]["gru.sums"].last.size == 8 * 5 * 9


# --- files, words, pictures -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def deep() -> inspect.Watched:
    """The network of the course: ten tanh layers of five units, whose first layers hardly learn."""
    chainrule.manual_seed(3)
    layers: list[nn.Module] = []
    for i in range(10):
        layers += [nn.Linear(5 if i else 4, 5), nn.Tanh()]
    model = nn.Sequential(*layers, nn.Linear(5, 1))
    optimizer = optim.SGD(model.parameters(), lr=0.01)
    with inspect.watch(model, optimizer, every=5) as seen:
        for _ in range(30):
            optimizer.zero_grad()
            loss_of(model).backward()
            optimizer.step()
    return seen


def test_early_layers_of_a_deep_tanh_network_vanish(deep: inspect.Watched) -> None:
    first = deep["grad"]["0.weight"].values("norm")
    last = deep["grad"]["20.weight"].values("norm")
    assert all(a < 0.02 * b for a, b in zip(first, last, strict=True))
    assert len(first) == 6


def test_every_line_of_the_file_is_json_and_the_table_opens(
    deep: inspect.Watched, tmp_path: Path
) -> None:
    lines = deep.to_jsonl(tmp_path / "seen.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line, parse_constant=lambda c: pytest.fail(c)) for line in lines]
    assert len(rows) == sum(1 for _ in deep.rows())
    assert rows[0]["what"] == "grad"
    assert rows[0]["norm"] == deep["grad"]["0.weight"].values("norm")[0]
    assert rows[0]["ratio"] is None
    with deep.to_csv(tmp_path / "seen.csv").open() as file:
        table = list(csv.DictReader(file))
    assert len(table) == len(rows)
    assert float(table[0]["q50"]) == rows[0]["quantiles"][3]


def test_remarks_name_layer_number_and_remedy() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
    with chainrule.no_grad():
        model[0].bias.fill_(-100.0)
    optimizer = optim.SGD(model.parameters(), lr=10.0)
    with inspect.watch(model, optimizer, every=1) as seen:
        loss_of(model).backward()
        optimizer.step()
    said = str(seen)
    assert "the gradient of 0.weight, 0.bias, 2.weight is exactly 0" in said
    assert "are all units behind it dead?" in said
    assert "1: at least 95% of the activations are 0" in said
    assert "2.bias: an update changes more than 10%" in said
    with chainrule.no_grad():
        model[0].weight[0, 0] = math.nan
    assert "not finite" in str(inspect.activations(model, chainrule.tensor(X)))


@pytest.mark.parametrize("kind", ["norms", "updates", "histograms", "densities", "ridges", "heat"])
def test_pictures(deep: inspect.Watched, kind: str) -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    options: dict[str, Any] = {"what": "activation"} if kind in ("histograms", "ridges") else {}
    name = "*.weight" if kind in ("norms", "updates") else None
    drawn = deep.plot(kind, name=name, **options)
    try:
        assert_drawn_well(drawn)
        if kind == "norms":
            assert drawn.get_yscale() == "log"
            line = drawn.get_lines()[0]
            np.testing.assert_allclose(line.get_ydata(), deep["grad"]["0.weight"].values("norm"))
    finally:
        plt.close(figure_of(drawn))


def test_norms_against_the_epoch_are_those_of_gradient_norms() -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    seen, norms = inspect.Watch(what="grad", every=1), train.GradientNorms()
    callbacks = [seen, norms]
    trainer = train.Trainer(network(), "mse", "sgd", callbacks=callbacks, progress=False)
    trainer.fit((X, Y), epochs=3, batch_size=16)
    ax = seen.plot("norms", against="epoch")
    try:
        np.testing.assert_allclose(ax.get_lines()[0].get_ydata(), norms.norms["0.weight"])
        assert list(ax.get_lines()[0].get_xdata()) == [0, 1, 2]
        assert ax.get_xlabel() == "epoch"
    finally:
        plt.close(ax.figure)
    with pytest.raises(ValueError, match="against must be"):
        seen.plot("norms", against="hour")


def test_wide_layers_relu_grows_tanh_shrinks_selu_stays() -> None:
    """Five layers of 512 units with weights of variance 1 / fan_in, for ReLU 3 / fan_in."""
    x = chainrule.randn(64, 512, generator=chainrule.Generator().manual_seed(0))
    stds = {}
    for name, f, gain in (("relu", nn.ReLU, 3.0), ("tanh", nn.Tanh, 1.0), ("selu", nn.SELU, 1.0)):
        chainrule.manual_seed(0)
        layers: list[nn.Module] = []
        for _ in range(5):
            layer = nn.Linear(512, 512, bias=False)
            nn.init.normal_(layer.weight, 0.0, math.sqrt(gain / 512))
            layers += [layer, f()]
        seen = inspect.activations(nn.Sequential(*layers), x)
        stds[name] = [s.last.std for s in seen["preactivation"].values()]
    assert all(b > 1.1 * a for a, b in itertools.pairwise(stds["relu"]))
    assert all(b < 0.97 * a for a, b in itertools.pairwise(stds["tanh"]))
    np.testing.assert_allclose(stds["selu"], 1.0, atol=0.05)


# --- what is refused ------------------------------------------------------------------------------


def test_what_is_refused() -> None:
    model = network()
    with pytest.raises(ValueError, match=r"'0.wieght' matches no module.*near it are.*0.weight"):
        inspect.Watch("0.wieght").attach(model)
    with pytest.raises(ValueError, match="what must be some of"):
        inspect.Watch(what=["gradient"])
    with pytest.raises(ValueError, match="every must be at least 1"):
        inspect.Watch(every=0)
    with pytest.raises(ValueError, match="detail must be one of"):
        inspect.Watch(detail="all")
    with pytest.raises(RuntimeError, match="step before attach"):
        inspect.Watch().step()
    with pytest.raises(ValueError, match="nothing was seen yet"):
        inspect.Watch().plot()
    assert "nothing was seen" in str(inspect.Watch())
    with pytest.raises(KeyError, match="was not looked at"):
        inspect.Watch()["grad"]
    seen = inspect.activations(model, chainrule.tensor(X))
    with pytest.raises(ValueError, match="kind must be one of"):
        seen.plot("pie")
    with pytest.raises(ValueError, match="there is no statistic 'median'"):
        seen["activation"]["1"].values("median")
    with pytest.raises(ValueError, match="mode must be"):
        inspect.activations(model, chainrule.tensor(X), mode="test")
    wide = models.MLP(4, [3] * 30, 1)
    with pytest.raises(ValueError, match="too many to be read"):
        inspect.activations(wide, chainrule.tensor(X)).plot()


def test_a_layer_that_calls_none_of_its_parts_is_seen() -> None:
    chainrule.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    x = chainrule.randn(2, 5, 8)
    seen = inspect.activations(layer, x)["activation"]["self_attn"]
    expected = layer.self_attn(x, x, x, need_weights=False)[0]
    assert seen.last.norm == pytest.approx(float(expected.detach().norm()), rel=1e-5)
