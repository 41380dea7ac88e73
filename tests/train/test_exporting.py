"""Fitted networks as ONNX files: raw columns go in, and what ``predict`` says comes out."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_running import engines

import chainrule
from chainrule import data, train
from chainrule.data import Table
from chainrule.onnx import OnnxExporterError

SETTINGS = train.Settings(epochs=3, hidden=[8])
SIZES = ["small", "medium", "large"]


def rows(count: int, seed: int) -> dict[str, list[Any]]:
    """A column of each kind that ONNX can read."""
    r = random.Random(seed)
    return {
        "age": [r.gauss(40, 10) if r.random() > 0.1 else None for _ in range(count)],
        "color": [r.choice(["red", "green", "blue", None]) for _ in range(count)],
        "size": [r.choice(SIZES) for _ in range(count)],
        "member": [r.choice(["Yes", "No"]) for _ in range(count)],
        "city": [f"city {r.randrange(40)}" for _ in range(count)],
        "code": [r.choice([3.0, 7.0, 11.5]) for _ in range(count)],
    }


def score_of(columns: dict[str, list[Any]]) -> list[float]:
    parts = zip(*[columns[k] for k in ("age", "color", "size", "member")], strict=True)
    return [
        (a or 40) / 10 + 2 * (c == "red") + SIZES.index(s) + (m == "Yes") for a, c, s, m in parts
    ]


def fitted(task: str, target: list[Any], **how: Any) -> train.FittedNetwork:
    table = Table.from_dict({**rows(200, 0), "y": target})
    roles = {"code": "category", "size": SIZES}
    return train.fit_table(table, "y", task, SETTINGS, roles=roles, progress=False, **how)


def feed_of(columns: dict[str, list[Any]]) -> dict[str, Any]:
    """As a user has them: numbers as float64, text as it is."""
    found: dict[str, Any] = {}
    for name, values in columns.items():
        if name in ("age", "code"):
            found[name] = np.array([math.nan if v is None else v for v in values], dtype=np.float64)
        else:
            found[name] = np.array(["" if v is None else v for v in values], dtype=object)
    return found


def strange_rows() -> dict[str, list[Any]]:
    """New rows, with what was not in training."""
    found = rows(50, 1)
    found["color"][:3] = ["mauve", "NA", "n/a"]
    found["city"][0], found["code"][1], found["code"][2] = "nowhere", 99.0, None
    found["member"][:4] = ["yes", "NO", "perhaps", None]
    found["age"][5] = 1e7
    return found


SCORES = score_of(rows(200, 0))
TASKS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "classification": (["high" if v > 6 else "mid" if v > 5 else "low" for v in SCORES], {}),
    "ordinal": (
        ["c" if v > 6 else "b" if v > 5 else "a" for v in SCORES],
        {"levels": ["a", "b", "c"]},
    ),
    "multilabel": (["p;q" if v > 6 else "p" if v > 5 else "q" for v in SCORES], {}),
    "regression": (SCORES, {}),
    "count": ([float(int(v)) for v in SCORES], {}),
    "quantile": (SCORES, {"quantiles": [0.1, 0.5, 0.9]}),
}


@pytest.mark.parametrize("task", TASKS)
def test_every_task(task: str) -> None:
    target, how = TASKS[task]
    network = fitted(task, target, **how)
    program = network.export()
    assert program.inputs == {
        name: f"{'float64' if name in ('age', 'code') else 'text'} (rows)" for name in rows(1, 0)
    }
    given = strange_rows()
    table = Table.from_dict(given)
    want = network.predict(table)
    for run in engines(program):
        first, *others = run.run(None, feed_of(given))
        if task in ("classification", "ordinal"):
            assert list(program.outputs) == ["label", "probabilities"]
            assert list(first) == want
        elif task == "multilabel":
            assert list(program.outputs) == ["labels", "probabilities"]
            classes = network.target.classes
            told = [";".join(c for c, yes in zip(classes, r, strict=True) if yes) for r in first]
            assert told == want
        else:
            assert list(program.outputs) == ["prediction"]
            np.testing.assert_allclose(first, want, rtol=1e-5, atol=1e-5)
        for p in others:
            np.testing.assert_allclose(p, network.predict_proba(table).numpy(), atol=1e-5)


def test_the_file_says_what_it_is_for(tmp_path: Path) -> None:
    network = fitted("classification", TASKS["classification"][0])
    network.save(tmp_path / "run")
    again = train.FittedNetwork.load(tmp_path / "run")
    program = again.export(tmp_path / "net.onnx", opset_version=21)
    assert (
        (tmp_path / "net.onnx").read_bytes()
        == program.content
        == network.export(opset_version=21).content
    )
    engines(program)
    told = {p.key: p.value for p in program.model_proto.metadata_props}
    assert told["task"] == "classification"
    assert json.loads(told["classes"]) == ["high", "low", "mid"]
    assert json.loads(told["targets"]) == ["y"]
    versions = {o.domain: o.version for o in program.model_proto.opset_import}
    assert versions == {"": 21, "ai.onnx.ml": 3}


def test_several_targets() -> None:
    columns = rows(200, 0)
    table = Table.from_dict({"age": columns["age"], "u": SCORES, "v": [-2 * s for s in SCORES]})
    network = train.fit_table(table, ["u", "v"], "auto", SETTINGS, progress=False)
    program = network.export()
    assert program.outputs == {"prediction": "float64 (rows, 2)"}
    given = {"age": rows(20, 2)["age"]}
    for run in engines(program):
        (found,) = run.run(None, feed_of(given))
        np.testing.assert_allclose(found, network.predict(Table.from_dict(given)), rtol=1e-5)


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "diabetes"])
def test_embedded_tables(name: str) -> None:
    source = data.embedded(name)
    network = train.fit_table(source.table, source.target, settings=SETTINGS, progress=False)
    program = network.export()
    table = source.table.without(source.target)
    for run in engines(program):
        feed = {c.name: c.numbers.numpy() for c in table if c.name in program.inputs}
        found = run.run(None, feed)[0]
        want = network.predict(table)
        if source.task == "classification":
            assert list(found) == want
        else:
            np.testing.assert_allclose(found, want, rtol=1e-5)


def test_columns_with_the_names_of_outputs() -> None:
    names = ("label", "probabilities", "answer")
    columns = {n: rows(200, k)["age"] for k, n in enumerate(names)}
    table = Table.from_dict({**columns, "y": ["a" if v > 5 else "b" for v in SCORES]})
    program = train.fit_table(table, "y", settings=SETTINGS, progress=False).export()
    assert list(program.inputs) == list(names)
    assert list(program.outputs) == ["label_", "probabilities_"]
    assert engines(program)


DAYS = [f"2024-{1 + i % 12:02}-{1 + i % 28:02}" for i in range(200)]
UNREADABLE = {
    "date": (DAYS, "column 'x' .date. .*no operator reads dates and times"),
    "number": ([f"${1000 + 7 * i:,}" for i in range(200)], r'like "\$1,234", are text'),
    "text": (
        [f"the {'good' if i % 2 else 'bad'} thing number {i} was seen there" for i in range(200)],
        "column 'x' .text. .*no operator reads text",
    ),
}


@pytest.mark.parametrize("role", UNREADABLE)
def test_columns_that_onnx_cannot_read(role: str, tmp_path: Path) -> None:
    values, match = UNREADABLE[role]
    table = Table.from_dict({"age": rows(200, 0)["age"], "x": values, "y": SCORES})
    network = train.fit_table(table, "y", settings=SETTINGS, roles={"x": role}, progress=False)
    with pytest.raises(OnnxExporterError, match=match):
        network.export(tmp_path / "net.onnx")
    assert not (tmp_path / "net.onnx").exists()


def test_images(tmp_path: Path) -> None:
    from PIL import Image

    r = np.random.default_rng(0)
    paths = []
    for kind, level in (("dark", 60), ("light", 180)):
        (tmp_path / kind).mkdir()
        for i in range(12):
            pixels = np.clip(r.normal(level, 30, (8, 8)), 0, 255).astype(np.uint8)
            paths.append(tmp_path / kind / f"{i}.png")
            Image.fromarray(pixels).save(paths[-1])
    network = train.fit_images(tmp_path, SETTINGS, progress=False)
    program = network.export()
    assert program.inputs == {"image": "float32 (rows, 1, 8, 8)"}
    pictures = [np.asarray(Image.open(p), dtype=np.float32)[None] / 255 for p in paths]
    for run in engines(program):
        label, p = run.run(None, {"image": np.stack(pictures)})
        assert list(label) == network.predict(paths)
        np.testing.assert_allclose(p, network.predict_proba(paths).numpy(), atol=1e-5)


def test_a_wrong_opset() -> None:
    network = fitted("regression", SCORES)
    with pytest.raises(ValueError, match="opset_version must be from 18 to 23, got 3"):
        network.export(opset_version=3)


def test_an_export_leaves_predictions_as_they_were() -> None:
    network = fitted("regression", SCORES)
    table = Table.from_dict(rows(10, 3))
    before = network.outputs(table)
    network.export()
    assert bool((network.outputs(table) == before).all())
    assert isinstance(before, chainrule.Tensor)
