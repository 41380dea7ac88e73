"""Targets of every task: detected, encoded, decoded, saved, and refused where they do not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special

import chainrule
from chainrule.data import Column, Table, TableError, TargetEncoder, detect_task

LISTS = ["red;blue", "blue", "red", "green;red", "blue;green", "red"]


def column(values: Any, name: str = "y") -> Column:
    return Table.from_dict({name: values})[name]


FITTED: dict[str, TargetEncoder] = {
    "classification": TargetEncoder().fit(column(["b", "a", "b"])),
    "regression": TargetEncoder("regression").fit(column([1.0, 2.0, 6.0])),
    "several": TargetEncoder().fit(Table.from_dict({"a": [1.5, 2.0, 6.0], "b": [0.0, 10, 20]})),
    "lists": TargetEncoder().fit(column(LISTS)),
    "multilabel": TargetEncoder().fit(Table.from_dict({"a": [0, 1, 1], "b": ["yes", "no", "yes"]})),
    "count": TargetEncoder("count").fit(column([0, 1, 5])),
    "quantile": TargetEncoder("quantile", quantiles=(0.2, 0.8)).fit(column([1.0, 2.0, 6.0])),
    "ordinal": TargetEncoder("ordinal").fit(column([1, 2, 10, 2])),
}


# --- which task it is -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "task"),
    [
        ({"y": LISTS}, "multilabel"),
        ({"y": ["a|b", "b", "a|b", "a"]}, "multilabel"),
        ({"y": ["c, d", "a", "c, d", "b"]}, "classification"),  # a comma may be part of a name
        ({"y": [f"x{i};y{i}" for i in range(20)]}, "classification"),  # none occurs again
        ({"a": [0, 1, 1], "b": [1, 0, 1]}, "multilabel"),
        ({"a": [True, False, True], "b": [1, 0, 1]}, "multilabel"),
        ({"a": [0.5, 1, 1], "b": [1, 0, 1]}, "regression"),
    ],
)
def test_detected(columns: dict[str, Any], task: str) -> None:
    table = Table.from_dict(columns)
    target = table if len(columns) > 1 else table["y"]
    assert detect_task(target) == task
    assert TargetEncoder().fit(target).task == task


@pytest.mark.parametrize(
    ("words", "numbers"),
    [
        (["$1,234", "$99.50", "-$3", "$7"], [1234, 99.5, -3, 7]),
        (["12 %", "7.5 %", "100 %", "0 %"], [0.12, 0.075, 1, 0]),
        (["1.234,50 €", "99 €", "7,25 €", "0,50 €"], [1234.5, 99, 7.25, 0.5]),
        (["1,234", "12", "990", "2,100"], [1234, 12, 990, 2100]),
    ],
)
def test_numbers_in_words(words: list[str], numbers: list[float]) -> None:
    encoder = TargetEncoder().fit(column(words))
    assert encoder.task == "regression"
    again = TargetEncoder()
    again.load_state_dict(encoder.state_dict())
    for same in (encoder, again):
        assert same.decode(same(column(words))) == pytest.approx(numbers, rel=1e-5, abs=1e-4)
        assert same(column(numbers)).tolist() == same(column(words)).tolist()
    with pytest.raises(TableError, match=r"'y' is numbers, but row 2 has 'much'"):
        encoder(column([words[0], "much"]))


def test_few_numbers_in_words_are_classes() -> None:
    encoder = TargetEncoder().fit(column(["$10", "$20", "$10"] * 5))
    assert (encoder.task, encoder.classes) == ("classification", ["$10", "$20"])
    assert TargetEncoder("count").fit(column(["1,000", "12", "7"])).means == [0.0]
    several = Table.from_dict({"a": ["$1.50", "$2", "$3"], "b": [1.0, 2.0, 5.0]})
    assert TargetEncoder().fit(several)(several).shape == (3, 2)
    plain = TargetEncoder("regression").fit(column([1.0, 2.0, 3.5]))
    with pytest.raises(TableError, match="was numbers in training, now text"):
        plain(column(["$1", "$2"]))
    with pytest.raises(TableError, match="'y' is dates, which cannot be predicted as numbers"):
        TargetEncoder("regression").fit(column(["2024-01-01", "2024-01-02"]))
    state = {**encoder.get_extra_state(), **plain.get_extra_state(), "marks": ["x"]}
    with pytest.raises(ValueError, match="has the decimal marks"):
        TargetEncoder().set_extra_state(state)


def test_counts_with_rare_values_are_no_classes() -> None:
    few = [0] * 40 + [1] * 30 + [2] * 20 + [7]
    assert detect_task(column(few)) == "regression"
    assert detect_task(column([*few, 7, 7])) == "classification"
    assert detect_task(column([0] * 40 + [1])) == "classification"  # a question with two answers


def test_ranks_whose_order_is_known() -> None:
    encoder = TargetEncoder("ordinal").fit(column(["high", "low", "medium", "low"]))
    assert encoder.classes == ["low", "medium", "high"]


def test_several_targets_of_text_are_refused() -> None:
    table = Table.from_dict({"a": [1.0, 2.0], "b": ["x", "y"]})
    with pytest.raises(TableError, match="'b' holds text; train a network for each"):
        TargetEncoder().fit(table)
    with pytest.raises(TableError, match="classification has one target, got 'a', 'b'"):
        TargetEncoder("classification").fit(table)


# --- there and back -------------------------------------------------------------------------------


def test_several_numbers() -> None:
    encoder = FITTED["several"]
    assert (encoder.task, encoder.outputs, encoder.loss) == ("regression", 2, "mse")
    table = Table.from_dict({"other": [1], "b": [30.0], "a": [1.5]})  # by name, not by place
    y = encoder(table)
    assert y.shape == (1, 2)
    np.testing.assert_allclose(encoder.decode(y), [[1.5, 30.0]], rtol=1e-6)
    assert list(encoder.columns(y)) == ["a", "b"]
    with pytest.raises(ValueError, match="there are 2 targets; use means and spreads"):
        _ = encoder.spread


def test_lists_of_labels() -> None:
    encoder = FITTED["lists"]
    assert (encoder.classes, encoder.outputs) == (["blue", "green", "red"], 3)
    y = encoder(column(["green; red", "blue"]))
    assert y.tolist() == [[0, 1, 1], [1, 0, 0]]
    assert encoder.decode(2 * y - 1) == ["green;red", "blue"]
    assert encoder.columns(2 * y - 1) == {"y": ["green;red", "blue"]}
    logits = chainrule.tensor([[0.0, 1.0, -2.0]])
    np.testing.assert_allclose(encoder.probabilities(logits).numpy(), special.expit(logits.numpy()))
    with pytest.raises(TableError, match="labels that were not in training: 'pink'"):
        encoder(column(["red;pink"]))


def test_columns_of_labels() -> None:
    encoder = FITTED["multilabel"]
    assert (encoder.names, encoder.classes) == (["a", "b"], ["a", "b"])
    y = encoder(Table.from_dict({"b": ["no", "Yes"], "a": [1, 0]}))
    assert y.tolist() == [[1, 0], [0, 1]]
    assert encoder.columns(2 * y - 1) == {"a": [1, 0], "b": [0, 1]}
    with pytest.raises(TableError, match="'b' was 0 and 1 in training, now it has 'maybe'"):
        encoder(Table.from_dict({"a": [1], "b": ["maybe"]}))
    with pytest.raises(TableError, match="'a' holds more than 0 and 1"):
        TargetEncoder("multilabel").fit(Table.from_dict({"a": [0, 2], "b": [0, 1]}))
    with pytest.raises(TableError, match="the same labels in all 2 rows"):
        TargetEncoder("multilabel").fit(column(["a;b", "b;a"]))


def test_counts_in_units_of_their_mean() -> None:
    encoder = FITTED["count"]
    y = encoder(column([0, 4]))
    np.testing.assert_allclose(y.numpy(), [[0], [2]])
    assert encoder.decode(chainrule.zeros(1, 1)) == [2.0]
    np.testing.assert_allclose(encoder.decode(chainrule.tensor([[1.0]])), [2 * np.e], rtol=1e-6)
    assert np.isfinite(encoder.decode(chainrule.tensor([[1e30]]))[0])
    for bad in ([0.5, 1], [-1, 1]):
        with pytest.raises(TableError, match="'y' is not a count: .*use regression"):
            TargetEncoder("count").fit(column(bad))


def test_the_loss_of_counts_does_not_depend_on_the_unit() -> None:
    """exp(x) - (y / m) x is 1 / m times the loss of counts with the rate m exp(x), and so."""
    x, counts = chainrule.randn(3, 1, dtype=chainrule.float64), [0.0, 3.0, 6.0]
    y = chainrule.tensor([[v / 3] for v in counts], dtype=chainrule.float64)
    scaled = chainrule.func.grad(lambda x: chainrule.nn.functional.poisson_nll_loss(x, y))(x)
    plain = chainrule.func.grad(lambda x: chainrule.nn.functional.poisson_nll_loss(x, 3 * y))
    np.testing.assert_allclose(scaled.numpy(), plain(x + np.log(3)).numpy() / 3, rtol=1e-12)


def test_quantiles_do_not_cross() -> None:
    encoder = FITTED["quantile"]
    assert encoder.outputs == 2
    assert encoder(column([1.0])).shape == (1, 1)
    low, high = encoder.decode(chainrule.tensor([[1.0, -1.0]]))[0]
    assert low < high
    assert (low + high) / 2 == pytest.approx(3.0)
    assert list(encoder.columns(chainrule.zeros(1, 2))) == ["y 0.2", "y 0.8"]
    assert repr(encoder.loss) == "PinballLoss(quantiles=[0.2, 0.8])"
    for bad in ((), (0.5, 0.2), (0.5, 0.5), (0.0, 0.5)):
        with pytest.raises(ValueError, match="quantiles are numbers between 0 and 1"):
            TargetEncoder("quantile", quantiles=bad)


def test_ranks() -> None:
    encoder = FITTED["ordinal"]
    assert (encoder.classes, encoder.outputs) == (["1", "2", "10"], 2)
    assert encoder(column([10, 1])).tolist() == [2, 0]
    output = chainrule.tensor([[2.0, 1.0], [-1.0, 3.0], [1.0, -1.0]])
    assert encoder.decode(output) == ["10", "1", "2"]
    p = encoder.probabilities(output)
    assert bool((p >= 0).all())
    np.testing.assert_allclose(p.sum(1).numpy(), 1, rtol=1e-6)
    s = special.expit([2.0, 1.0])
    np.testing.assert_allclose(p[0].numpy(), [1 - s[0], s[0] - s[1], s[1]], rtol=1e-5)
    with pytest.raises(TableError, match="text, whose order is not known: .*--levels"):
        TargetEncoder("ordinal").fit(column(["low", "high"]))
    sizes = TargetEncoder("ordinal", classes=["low", "mid", "high"]).fit(column(["mid", "low"]))
    assert sizes(column(["high", "low"])).tolist() == [2, 0]


def test_classes_may_be_named_beforehand() -> None:
    encoder = TargetEncoder("classification", classes=["c", "b", "a"]).fit(column(["a", "b"]))
    assert encoder(column(["a", "c"])).tolist() == [2, 0]
    for bad in (["a"], ["a", "a"]):
        with pytest.raises(ValueError, match="classes are different ones, two or more"):
            TargetEncoder(classes=bad)


@pytest.mark.parametrize("name", list(FITTED))
def test_the_loss_and_the_metric_fit_the_outputs(name: str) -> None:
    from chainrule.metrics import METRICS
    from chainrule.train.losses import WeightedLoss

    encoder = FITTED[name]
    tables = {
        "lists": column(LISTS),
        "several": Table.from_dict({"a": [1.0, 2.0], "b": [0.0, 3.0]}),
        "multilabel": Table.from_dict({"a": [1, 0], "b": [0, 1]}),
        "classification": column(["a", "b"]),
        "ordinal": column([1, 10]),
    }
    y = encoder(tables.get(name, column([1.0, 2.0])))
    output = chainrule.randn(len(y), encoder.outputs)
    assert np.isfinite(METRICS[encoder.metric](output, y))
    loss = WeightedLoss(encoder.loss)
    each = loss.each(output, y)
    assert each.shape == (len(y),)
    assert float(loss(output, y)) == pytest.approx(float(each.mean()), rel=1e-5)


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(FITTED))
def test_saved_and_loaded(name: str, tmp_path: Path) -> None:
    encoder = FITTED[name]
    chainrule.save(encoder, tmp_path / "kept")
    loaded = chainrule.load(tmp_path / "kept")
    output = chainrule.randn(5, encoder.outputs)
    assert loaded.decode(output) == encoder.decode(output)
    assert loaded.get_extra_state() == encoder.get_extra_state()
    assert (loaded.task, loaded.names, loaded.classes) == (
        encoder.task,
        encoder.names,
        encoder.classes,
    )


BAD: list[Any] = [None, [], {}, "x", -1, 1.5, True, [1], ["a", "a"], [None], [[]]]
BAD += [[float("nan")], [10**400], [1e-320]]


@pytest.mark.parametrize("name", list(FITTED))
def test_a_forged_state_is_refused(name: str) -> None:
    """Each entry missing, or replaced by what it must not be: ValueError, or a state that works."""
    state = FITTED[name].get_extra_state()
    for key in state:
        for value in [*BAD, ...]:
            forged = {k: v for k, v in state.items() if k != key}
            if value is not ...:
                forged[key] = value
            encoder = TargetEncoder()
            try:
                encoder.set_extra_state(forged)
            except ValueError:
                continue
            if encoder.is_fitted:
                encoder.decode(chainrule.zeros(2, encoder.outputs))
                encoder.extra_repr()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("regression", {"spreads": [0.0]}),
        ("several", {"means": [1.0]}),
        ("quantile", {"quantiles": [0.8, 0.2]}),
        ("quantile", {"names": ["a", "b"]}),
        ("count", {"spreads": [-1.0]}),
        ("count", {"means": [1.0]}),
        ("classification", {"classes": ["a"]}),
        ("ordinal", {"classes": []}),
        ("lists", {"classes": []}),
        ("multilabel", {"classes": ["a", "c"]}),
        ("regression", {"task": "clustering"}),
        ("regression", {"task": "auto"}),
    ],
)
def test_a_state_that_contradicts_itself(name: str, change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="TargetEncoder: "):
        TargetEncoder().set_extra_state({**FITTED[name].get_extra_state(), **change})
