"""The page about a fitted network: what its sections show, and that they stand in one file."""

from __future__ import annotations

import base64
import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import chainrule
from chainrule import data, inspect, metrics, train
from chainrule.data import Table
from chainrule.inspect.core.svg import bar_chart, curve_chart, scatter_chart
from chainrule.train.reporting import curves, html
from chainrule.train.reporting.cases import worst_cases
from chainrule.train.reporting.health import health
from chainrule.train.reporting.importance import importance, importances
from chainrule.train.reporting.dependence import dependence_of
from chainrule.train.reporting.predictions import calibration, predictions
from chainrule.train.reporting.thresholds import thresholds

QUICK = train.Settings(hidden=(8,), epochs=6, lr=0.02)


class Reader(HTMLParser):
    """Whether what is opened is closed, and which headings and pictures there are."""

    void = ("meta", "img", "br", "input")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.headings: list[str] = []
        self.unnamed: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        known = dict(attrs)
        if tag == "img" and not known.get("alt"):
            self.unnamed.append("img")
        if tag == "svg" and not known.get("aria-label"):
            self.unnamed.append("svg")
        if tag in ("h1", "h2", "h3"):
            self.headings.append(tag)
        if tag not in self.void:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def mixed() -> Table:
    """A table in which one column says everything, one of words a little, and one nothing."""
    g = chainrule.Generator().manual_seed(0)
    x, noise = (chainrule.randn(120, generator=g).tolist() for _ in range(2))
    word = ["a" if v > 0.5 else "b" for v in noise]
    y = [3 * v + (w == "a") for v, w in zip(x, word, strict=True)]
    useless = [float(i % 7) for i in range(120)]
    return Table.from_dict({"says all": x, "word <b>": word, "nothing": useless, "y": y})


@pytest.fixture(scope="module")
def classes() -> train.FittedNetwork:
    return train.fit_table(data.embedded("iris").table, settings=QUICK, progress=False)


@pytest.fixture(scope="module")
def numbers() -> train.FittedNetwork:
    return train.fit_table(mixed(), "y", settings=QUICK, progress=False)


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_the_page_is_whole(kind: str, request: pytest.FixtureRequest) -> None:
    network = request.getfixturevalue(kind)
    page = train.html_report(network, "chainrule fit <data>")
    seen = Reader(page)
    assert seen.open == []
    assert seen.unnamed == []
    assert seen.headings[0] == "h1"
    assert seen.headings.count("h1") == 1
    assert "cannot be shown" not in page
    sections = re.findall(r'<section id="([^"]+)"><h2>([^<]+)</h2>', page)
    assert [name.lower().replace(" ", "-") for _, name in sections] == [i for i, _ in sections]
    assert re.findall(r'<a href="#([^"]+)">', page) == [i for i, _ in sections]
    wanted = ["Scores", "Predictions", "Thresholds", "Calibration", "Importance", "Effects"]
    wanted += ["Worst cases", "Learning", "Data", "Network", "Settings", "Code"]
    if kind == "numbers":
        wanted = [name for name in wanted if name not in ("Thresholds", "Calibration")]
        wanted.insert(2, "Intervals")
    assert [name for _, name in sections] == wanted
    assert "chainrule fit &lt;data&gt;" in page
    assert len(page.encode()) < 100_000


def test_names_from_the_data_are_text(numbers: train.FittedNetwork) -> None:
    page = train.html_report(numbers)
    assert "word <b>" not in page
    assert "word &lt;b&gt;" in page


def test_a_loaded_network_has_a_page_without_what_is_not_saved(
    numbers: train.FittedNetwork, tmp_path: Path
) -> None:
    numbers.save(tmp_path / "m")
    page = train.html_report(train.FittedNetwork.load(tmp_path / "m"))
    assert Reader(page).open == []
    assert "cannot be shown" not in page
    assert '<section id="learning">' in page
    assert '<section id="predictions">' not in page


def test_a_section_that_fails_says_so_and_leaves_the_others() -> None:
    def fail() -> str:
        raise RuntimeError("<no> memory")

    _, text = html.section("Network", fail)
    assert "This cannot be shown: RuntimeError: &lt;no&gt; memory" in text


def test_many_columns_and_rows_stay_below_a_megabyte() -> None:
    g = chainrule.Generator().manual_seed(0)
    columns = {f"column {i}": chainrule.randn(300, generator=g).tolist() for i in range(300)}
    table = Table.from_dict({**columns, "y": chainrule.randn(300, generator=g).tolist()})
    settings = train.Settings(hidden=(4,), epochs=400, patience=400, batch_size=256)
    network = train.fit_table(table, settings=settings, progress=False)
    page = train.html_report(network)
    assert len(page.encode()) < 1_000_000
    assert "cannot be shown" not in page


# --- curves ---------------------------------------------------------------------------------------


def test_the_script_has_the_numbers_of_the_picture(classes: train.FittedNetwork) -> None:
    text = curves.learning(classes)
    held = [json.loads(t) for t in re.findall(r'<script type="application/json">(.*?)</sc', text)]
    assert [h["title"] for h in held] == ["Loss", "accuracy", "Gradient norm of each layer"]
    assert held[0]["series"][1]["values"] == pytest.approx(classes.history["val_loss"], rel=1e-4)
    assert held[0]["mark"] == classes.about["best_epoch"]
    assert text.count("<svg") == text.count('<g class="plot">') == 3


def test_a_name_cannot_end_the_script(classes: train.FittedNetwork) -> None:
    text = curves._figure({"</script><b>": [1.0, 2.0]}, "t", "y", None)
    assert "</script><b>" not in text


def test_not_finite_values_are_gaps() -> None:
    text = curves._figure({"a": [1.0, math.nan, 3.0]}, "t", "y", None)
    assert '"values":[1.0,null,3.0]' in text


# --- charts ---------------------------------------------------------------------------------------


def test_bars_are_as_long_as_their_values() -> None:
    text = bar_chart({"a": 2.0, "b": 1.0, "c": -1.0}, "t", "x")
    rects = re.findall(r'<rect x="([\d.]+)" y="\d+" width="([\d.]+)"', text)
    (a, wa), (_, wb), (c, wc) = [(float(x), float(w)) for x, w in rects]
    assert wa == pytest.approx(2 * wb, abs=0.2)
    assert wb == pytest.approx(wc, abs=0.2)
    assert c + wc == pytest.approx(a, abs=0.2)  # to the left of zero
    with pytest.raises(ValueError, match="no values to draw"):
        bar_chart({}, "t", "x")


def test_a_line_at_zero_and_points_by_size() -> None:
    text = scatter_chart([1, 2], [-1, 3], "t", "x", "y", "zero", sizes=[1, 4])
    line = re.search(r'<line x1="[\d.]+" y1="([\d.]+)" x2="[\d.]+" y2="([\d.]+)" stroke', text)
    assert line
    assert line[1] == line[2]
    assert re.findall(r' r="([\d.]+)"', text) == ["7.5", "12.0"]
    with pytest.raises(ValueError, match="line must be 'equal' or 'zero'"):
        scatter_chart([1], [1], "t", "x", "y", "one")


def test_names_of_many_curves_do_not_lie_on_each_other() -> None:
    named = {f"a layer with a name {i}": [(1.0, 1.0), (2.0, i)] for i in range(7)}
    text = curve_chart(named, "t")
    found = re.findall(r'<text x="([\d.]+)" y="([\d.]+)">([^<]+)</text>', text)
    places = [(float(x), float(y)) for x, y, _ in found]
    assert len(places) == 7
    for i, (x, y) in enumerate(places):
        for other, below in places[i + 1 :]:
            assert abs(other - x) > 7 * 20 or abs(below - y) >= 15
    height = float(re.search(r'height="(\d+)"', text)[1])  # type: ignore[index]
    assert max(y for _, y in places) < height


# --- sections -------------------------------------------------------------------------------------


def test_importance_is_that_of_a_shuffled_column(numbers: train.FittedNetwork) -> None:
    found = importances(numbers)
    assert list(found) == ["says all", "word <b>", "nothing"]
    assert found == importances(numbers)  # the same each time
    assert max(found, key=lambda n: found[n]) == "says all"
    assert found["says all"] > 10 * abs(found["nothing"])


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_importance_is_what_the_instrument_measures(
    kind: str, request: pytest.FixtureRequest
) -> None:
    network = request.getfixturevalue(kind)
    score = "nll" if kind == "classes" else "rmse"
    seen = inspect.permutation_importance(network, network.held_out["rows"], None, score=score)
    assert importances(network) == pytest.approx(
        dict(zip(seen.names, seen.mean, strict=True)), rel=1e-4, abs=1e-5
    )


def test_importance_of_a_column_that_a_network_does_not_use(numbers: train.FittedNetwork) -> None:
    first = numbers.model.get_parameter(next(n for n, _ in numbers.model.named_parameters()))
    kept = first.detach().clone()
    with chainrule.no_grad():
        first[:, 0] = 0.0
    try:
        assert importances(numbers)["says all"] == 0.0
    finally:
        with chainrule.no_grad():
            first.copy_(kept)


def test_importance_of_too_many_columns(
    numbers: train.FittedNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chainrule.train.reporting.importance.COLUMNS", 2)
    assert "Not measured for 3 columns" in importance(numbers)


def test_calibration_shows_each_bin(classes: train.FittedNetwork) -> None:
    text = calibration(classes)
    output, target = classes.held_out["output"], classes.held_out["target"]
    p = chainrule.softmax(output.double(), 1)
    error = metrics.calibration_error(p, target, 10, scores="probabilities")
    assert f"calibration error {error:.3f}" in text
    filled = {min(9, int(v * 10)) for v in p.max(1)[0].tolist()}
    assert text.count("<circle") == len(filled)


def test_worst_cases_are_those_with_the_largest_loss(numbers: train.FittedNetwork) -> None:
    text = worst_cases(numbers)
    output, true = (numbers.held_out[k].reshape(-1) for k in ("output", "target"))
    worst = int((output - true).abs().argmax())
    first = text[text.index('class="case"') :]
    row = numbers.held_out["rows"].take([worst])
    assert first.index(f"<b>{row['y'].values[0]:.4g}, predicted") < 30
    cell = f'<td>nothing</td><td class="n">{row["nothing"].values[0]:.4g}</td>'
    assert cell in first.split("</table>")[0]
    assert text.count('class="case"') == 8


def test_beside_a_worst_case_is_the_nearest_training_row(numbers: train.FittedNetwork) -> None:
    output, true = (numbers.held_out[k].reshape(-1) for k in ("output", "target"))
    worst = int((output - true).abs().argmax())
    x, rows, _ = numbers.held_out["examples"]
    scale = x.double().std(0)
    near = int((((x - numbers.held_out["inputs"][worst]) / scale) ** 2).sum(1).argmin())
    text = worst_cases(numbers)
    first = text[text.index('class="case"') :].split("</table>")[0]
    assert f'<td class="n">{rows["says all"].values[near]:.4g}</td></tr>' in first
    assert len(x) == len(rows) == numbers.about["split"]["train"]


def test_worst_cases_without_training_rows(numbers: train.FittedNetwork) -> None:
    kept = numbers.held_out.pop("examples")
    try:
        assert "nearest" not in worst_cases(numbers)
    finally:
        numbers.held_out["examples"] = kept


def test_columns_of_pixels_are_shown_as_pictures() -> None:
    table = data.embedded("digits").table.take(range(200))
    settings = train.Settings(hidden=(8,), epochs=1)
    text = worst_cases(train.fit_table(table, settings=settings, progress=False))
    found = re.findall(r'src="data:image/png;base64,([^"]+)"', text)
    assert len(found) == 16  # eight, and the nearest of each
    file = base64.b64decode(found[0])
    assert file[:8] == b"\x89PNG\r\n\x1a\n"
    assert (int.from_bytes(file[16:20]), int.from_bytes(file[20:24])) == (8, 8)


def test_health_only_where_a_doctor_was_asked() -> None:
    assert health({}) == ""
    finding = {
        "rule": "dead units",
        "severity": "error",
        "layer": "0",
        "sentence": "all < 0",
        "remedy": "a smaller rate",
    }
    check = {"name": "data", "passed": False, "reason": "constant"}
    text = health({"findings": [finding], "preflight": [check]})
    assert 'class="finding error"' in text
    assert "all &lt; 0" in text
    assert "Remedy: a smaller rate" in text
    assert "fails" in text
    assert "found nothing" in health({"findings": [], "preflight": []})


# --- thresholds and effects -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def two() -> train.FittedNetwork:
    table = data.embedded("breast_cancer").table.take(range(300))
    return train.fit_table(table, settings=QUICK, progress=False)


def test_a_threshold_counts_rows(two: train.FittedNetwork) -> None:
    text = thresholds(two)
    held = json.loads(re.findall(r'<script type="application/json">(.*?)</sc', text)[0])
    p = chainrule.softmax(two.held_out["output"].double(), 1)[:, 1].tolist()
    own = two.held_out["target"].tolist()
    for percent in (1, 30, 50, 99):
        hits = sum(v >= percent / 100 and t == 1 for v, t in zip(p, own, strict=True))
        alarms = sum(v >= percent / 100 and t == 0 for v, t in zip(p, own, strict=True))
        assert held["counts"][percent - 1] == [hits, alarms]
    assert held["own"] == sum(own)
    assert held["own"] + held["others"] == len(own)
    hits, alarms = held["counts"][49]
    assert f"{hits} of {held['own']} are found, {alarms} of {held['others']}" in text
    assert text.count('class="at"') == 2
    auc = inspect.Roc.from_predictions(own, p).auc["1"]
    assert f'<td class="n">{auc:.3f}</td>' in text


def test_thresholds_of_several_classes_have_no_slider(classes: train.FittedNetwork) -> None:
    text = thresholds(classes)
    assert "threshold" not in text
    assert text.count("<svg") == 2
    assert text.count("<polyline") == 3 + 1 + 3


def test_thresholds_where_one_class_is_held_out(two: train.FittedNetwork) -> None:
    kept = dict(two.held_out)
    few = [i for i, t in enumerate(kept["target"].tolist()) if t == 1]
    two.held_out |= {k: kept[k][few] for k in ("output", "target", "inputs")}
    try:
        assert "needs samples of at least two classes" in thresholds(two)
        assert "svg" in predictions(two)
    finally:
        two.held_out.update(kept)


def test_scores_of_each_class(classes: train.FittedNetwork) -> None:
    text = predictions(classes)
    seen = inspect.Confusion.from_predictions(
        classes.held_out["target"], classes.held_out["output"], classes=classes.about["classes"]
    )
    for k, name in enumerate(seen.classes):
        rows = int(seen.counts[k].sum())
        cells = [name, f"{rows}", f"{seen.recall[k]:.1%}"]
        line = cells[0] + "".join(f'</td><td class="n">{c}' for c in cells[1:])
        assert f"<td>{line}</td>" in text


@pytest.mark.parametrize("kind", ["numbers", "two"])
def test_effects_are_what_the_instrument_measures(
    kind: str, request: pytest.FixtureRequest
) -> None:
    network = request.getfixturevalue(kind)
    rows, name = network.held_out["rows"], "nothing" if kind == "numbers" else "mean_radius"
    few = rows.take(range(min(len(rows), 100)))
    found = dependence_of(network, rows, name)
    assert found is not None
    values, answers = found
    k = 0 if kind == "numbers" else 1
    if kind == "numbers":
        seen = inspect.partial_dependence(network, few, name)
        assert seen.grid[0].tolist() == values
        assert answers[:, k].tolist() == pytest.approx(seen.average.tolist(), rel=1e-5)
    else:
        at = few[name].numbers.tolist()[0]
        low, high = min(values), max(values)
        assert low < high
        p = network.predict_proba(
            Table(
                [
                    data.Column(c.name, "number", [values[3]] * len(few)) if c.name == name else c
                    for c in few
                ]
            )
        )
        assert float(answers[3, 1]) == pytest.approx(float(p[:, 1].double().mean()), rel=1e-5)
        assert isinstance(at, float)


def test_effects_of_words(numbers: train.FittedNetwork) -> None:
    found = dependence_of(numbers, numbers.held_out["rows"], "word <b>")
    assert found is not None
    assert sorted(map(str, found[0])) == ["a", "b"]
    a, b = (float(found[1][found[0].index(word), 0]) for word in ("a", "b"))  # type: ignore[arg-type]
    assert a > b


def test_a_column_that_does_not_change_has_no_effect(numbers: train.FittedNetwork) -> None:
    same = [i for i, v in enumerate(numbers.held_out["rows"]["nothing"].values) if v == 0]
    assert dependence_of(numbers, numbers.held_out["rows"].take(same), "nothing") is None
