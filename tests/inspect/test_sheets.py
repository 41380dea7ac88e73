"""Curves of a training, schedules, folds, sheets, reconstructions, fits: what they hold."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import StratifiedKFold

import chainrule
from chainrule import data, inspect, nn, optim, train
from chainrule.optim import lr_scheduler
from looking.drawn import assert_drawn_well

ROWS = [
    {"epoch": 1, "loss": 100.0, "val_loss": 90.0, "accuracy": 0.5, "val_accuracy": 0.4, "lr": 0.1},
    {"epoch": 2, "loss": 10.0, "val_loss": 9.0, "accuracy": 0.7, "val_accuracy": 0.6, "lr": 0.1},
    {"epoch": 3, "loss": 0.5, "val_loss": 12.0, "accuracy": 0.9, "val_accuracy": 0.5, "lr": 0.05},
]


@pytest.fixture(autouse=True)
def plt() -> Iterator[Any]:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    yield pyplot
    pyplot.close("all")


# --- learning curves ------------------------------------------------------------------------------


def test_a_history_draws_its_losses() -> None:
    """Training and validation loss in one panel, logarithmic by itself."""
    history = train.History(ROWS)
    panels = history.plot(alpha=0.5)
    loss = panels[0]
    lines = {line.get_label(): line for line in loss.lines}
    np.testing.assert_array_equal(lines["loss"].get_ydata(), [100, 10, 0.5])
    np.testing.assert_array_equal(lines["val_loss"].get_ydata(), [90, 9, 12])
    assert lines["loss"].get_alpha() == 0.5
    assert loss.get_yscale() == "log"  # two decades
    assert loss.get_xlabel() == "epoch"
    np.testing.assert_array_equal(lines["best: 2"].get_xydata(), [[2, 9]])
    assert_drawn_well(panels)


def test_a_history_draws_its_metrics_and_rate() -> None:
    """A panel for each metric, and one for the learning rate."""
    panels = train.History(ROWS).plot()
    assert [ax.get_title() for ax in panels] == ["Loss", "Accuracy", "Learning rate"]
    lines = {line.get_label(): line.get_ydata() for line in panels[1].lines}
    np.testing.assert_array_equal(lines["accuracy"], [0.5, 0.7, 0.9])
    np.testing.assert_array_equal(lines["val_accuracy"], [0.4, 0.6, 0.5])
    assert panels[1].get_yscale() == "linear"
    (only,) = train.History(ROWS).plot(columns=["val_accuracy"])
    assert [line.get_label() for line in only.lines] == ["val_accuracy"]


def test_a_training_is_drawn() -> None:
    x = chainrule.linspace(-1, 1, 20).reshape(-1, 1)
    trainer = train.Trainer(nn.Linear(1, 1), "mse", metrics=["mae"], progress=False)
    history = trainer.fit((x, 2 * x), epochs=3, validation=(x, 2 * x))
    seen = inspect.learning_curves(history)
    assert seen.panels["loss"]["loss"] == history["loss"]
    assert seen.panels["mae"]["val_mae"] == history["val_mae"]
    assert_drawn_well(history.plot())


def test_a_validation_loss_that_turns_is_named() -> None:
    rows = [{"loss": 1 / i, "val_loss": 1 / i + 0.02 * i} for i in range(1, 20)]
    assert "stop early" in str(inspect.learning_curves(rows))
    falling = [{"loss": 1 / i, "val_loss": 1.1 / i} for i in range(1, 20)]
    assert inspect.learning_curves(falling).verdict == ""
    broken = [*falling, {"loss": math.nan, "val_loss": None}]
    assert inspect.learning_curves(broken).best == (19.0, pytest.approx(1.1 / 19))
    assert_drawn_well(inspect.learning_curves(broken).plot())


def test_bad_histories() -> None:
    with pytest.raises(ValueError, match="no epochs"):
        train.History().plot()
    with pytest.raises(ValueError, match="no curve 'f1'"):
        train.History(ROWS).plot(columns=["f1"])
    with pytest.raises(ValueError, match="no columns of numbers"):
        inspect.learning_curves([{"epoch": 1, "note": "good"}])
    with pytest.raises(ValueError, match="3 panels need 3 axes"):
        train.History(ROWS).plot(axes=[])


# --- schedules and rates --------------------------------------------------------------------------


def rates_of(schedule: Any) -> dict[str, list[float]]:
    return inspect.schedules(schedule, 6).rates


def test_schedules_are_the_rates_that_training_sees() -> None:
    made = []
    for kind, options in (
        (lr_scheduler.StepLR, {"step_size": 2, "gamma": 0.1}),
        (lr_scheduler.CosineAnnealingLR, {"T_max": 5}),
        (lr_scheduler.OneCycleLR, {"max_lr": 1.0, "total_steps": 6}),
    ):
        optimizer = optim.SGD([chainrule.zeros(1, requires_grad=True)], lr=0.5)
        schedule = kind(optimizer, **options)
        seen = rates_of(schedule)[kind.__name__]
        made.append(schedule)
        stepped = []
        for _ in range(6):
            stepped.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            schedule.step() if len(stepped) < 6 else None
        assert seen == pytest.approx(stepped)
    several = {"a": lambda t: 1 / (t + 1), "b": [0.5, 0.25]}
    assert rates_of(several) == {"a": [1, 1 / 2, 1 / 3, 1 / 4, 1 / 5, 1 / 6], "b": [0.5, 0.25]}
    ax = inspect.schedules({"falls": lambda t: 10.0**-t}, 4).plot()
    assert ax.get_yscale() == "log"
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [1, 0.1, 0.01, 0.001])
    assert_drawn_well(ax)


def test_bad_schedules() -> None:
    optimizer = optim.SGD([chainrule.zeros(1, requires_grad=True)], lr=0.5)
    with pytest.raises(TypeError, match="depend on a metric"):
        inspect.schedules(lr_scheduler.ReduceLROnPlateau(optimizer))
    with pytest.raises(ValueError, match="steps"):
        inspect.schedules(lambda t: 0.1, 0)
    with pytest.raises(ValueError, match="not finite"):
        inspect.schedules(lambda t: math.inf)
    with pytest.raises(ValueError, match="none to show"):
        inspect.schedules([])


def test_searches_of_the_rate_draw_what_they_found() -> None:
    x = chainrule.randn(20, 1)
    given = (nn.Linear(1, 1), nn.functional.mse_loss, optim.SGD, [(x, 3 * x + 2)])
    found = optim.learning_rate_range_test(*given, steps=40)
    ax = found.plot()
    np.testing.assert_array_equal(ax.lines[1].get_ydata(), found.smoothed)
    assert ax.get_xscale() == "log"
    assert any(t.get_text().startswith("suggestion") for t in ax.get_legend().get_texts())
    assert_drawn_well(ax)
    tried = optim.logarithmic_search(*given, lr=10.0)
    ax = tried.plot()
    assert len(ax.lines) == len(tried.rates)
    assert_drawn_well(ax)


# --- complexity -----------------------------------------------------------------------------------


def test_a_complexity_curve_draws_both_errors() -> None:
    rows = [
        {
            "complexity": c,
            "parameters": p,
            "train": a,
            "test": b,
            "train_error": 0.01,
            "test_error": 0.02,
        }
        for c, p, a, b in (
            (1, 4, 1.0, 1.1),
            (2, 7, 0.5, 0.61),
            (8, 25, 0.2, 0.6),
            (32, 97, 0.1, 0.9),
        )
    ]
    curve = train.ComplexityCurve(train.History(rows), [])
    ax = curve.plot()
    np.testing.assert_array_equal(ax.containers[0].lines[0].get_ydata(), [1.0, 0.5, 0.2, 0.1])
    np.testing.assert_array_equal(ax.containers[1].lines[0].get_ydata(), [1.1, 0.61, 0.6, 0.9])
    marks = {line.get_label(): line.get_xydata()[0].tolist() for line in ax.lines}
    assert marks["lowest test error"] == [8, 0.6]
    assert marks["simplest as good"] == [2, 0.61]
    assert_drawn_well(ax)
    words = [row | {"complexity": f"net {i}"} for i, row in enumerate(rows)]
    assert_drawn_well(train.ComplexityCurve(train.History(words), []).plot())


# --- folds ----------------------------------------------------------------------------------------


def test_folds_are_those_of_the_split() -> None:
    y = np.arange(12) % 2
    for split, given in (
        (data.KFold(3), 12),
        (data.StratifiedKFold(3), chainrule.zeros(12, 1)),
        (StratifiedKFold(3), np.zeros((12, 1))),
        (data.TimeSeriesSplit(3), 12),
    ):
        seen = inspect.folds(split, given, y)
        rows = chainrule.zeros(12, 1).numpy() if isinstance(given, int) else given
        for row, (known, test) in zip(seen.uses, split.split(rows, y), strict=True):
            assert [i for i, use in enumerate(row) if use == "train"] == sorted(map(int, known))
            assert [i for i, use in enumerate(row) if use == "test"] == sorted(map(int, test))
    assert "tested 0 to 1 times" in str(seen)
    assert "every sample is tested once" in str(inspect.folds(data.KFold(3), 12))


def test_the_picture_of_folds_covers_every_sample() -> None:
    seen = inspect.folds([([0, 1, 2], [3, 4]), ([3, 4], [0, 1])], targets=["a", "a", "b", "b", "b"])
    assert seen.uses[1] == ["test", "test", "unused", "train", "train"]
    boxes = re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)"[^>]*><title>', seen.svg)
    for y in {y for _, y, _ in boxes}:
        widths = [float(w) for _, at, w in boxes if at == y]
        assert sum(widths) == pytest.approx(640 - 76 - 16, abs=0.1)
    assert [t for t in ("fold 1", "fold 2", "class", "sample 4") if f">{t}<" not in seen.svg] == []
    assert "not used" in seen.svg


def test_bad_folds() -> None:
    with pytest.raises(ValueError, match="both trained on and tested in fold 2"):
        inspect.folds([([0], [1]), ([0, 1], [1])])
    with pytest.raises(TypeError, match="data is missing"):
        inspect.folds(data.KFold(3))
    with pytest.raises(TypeError, match="pairs"):
        inspect.folds([(1, 2, 3)])
    with pytest.raises(TypeError, match="method split"):
        inspect.folds(5)
    with pytest.raises(ValueError, match="none"):
        inspect.folds([])
    with pytest.raises(ValueError, match="2 targets"):
        inspect.folds([([0, 1], [2])], targets=[0, 1])


# --- sheets ---------------------------------------------------------------------------------------


def test_a_sheet_shows_pictures_with_their_classes() -> None:
    images = chainrule.rand(10, 1, 5, 5)
    labels = chainrule.tensor([0, 1, 1, 1, 1, 1, 1, 1, 1, 0])
    seen = inspect.data_sheet(images, labels, classes=["cat", "dog"], per_class=3)
    assert seen.indices == [0, 9, 1, 2, 3]
    assert seen.labels == ["cat", "cat", "dog", "dog", "dog"]
    assert seen.counts == {"cat": 2, "dog": 8}
    panels = seen.plot()
    assert [ax.get_title() for ax in panels] == seen.labels
    shown = panels[2].images[0].get_array()
    np.testing.assert_allclose(shown, images[1, 0].numpy(), rtol=1e-6)
    assert_drawn_well(panels)
    pairs = [(images[i], int(labels[i])) for i in range(10)]
    assert inspect.data_sheet(pairs, per_class=3).indices == seen.indices
    plain = inspect.data_sheet(images[:, 0], count=4)
    assert plain.indices == [0, 1, 2, 3]
    rare = chainrule.tensor([0] * 1 + [1] * 30)
    assert "30 times" in str(inspect.data_sheet(chainrule.rand(31, 4, 4), rare))


def test_a_sheet_of_a_table() -> None:
    x, y = data.embedded("iris").tensors()
    names = ["sepal length", "sepal width", "petal length", "petal width"]
    seen = inspect.data_sheet(x, y, names=names)
    assert seen.counts == {"0": 50, "1": 50, "2": 50}
    panels = seen.plot()
    assert [ax.get_title() for ax in panels] == names
    assert_drawn_well(panels)
    heights = sum(p.get_height() for p in panels[0].containers[-1].patches)
    assert heights == 50
    assert "petal width" in str(seen)


def test_bad_sheets() -> None:
    with pytest.raises(ValueError, match="4 samples and 3 targets"):
        inspect.data_sheet(chainrule.rand(4, 1, 3, 3), [0, 1, 2])
    with pytest.raises(ValueError, match="1 names for 2 classes"):
        inspect.data_sheet(chainrule.rand(2, 1, 3, 3), [0, 1], classes=["a"])
    with pytest.raises(ValueError, match="not finite"):
        inspect.data_sheet(chainrule.tensor([[math.nan]]))
    with pytest.raises(ValueError, match="expected pictures"):
        inspect.data_sheet(chainrule.rand(2, 1, 3, 3, 3))
    with pytest.raises(TypeError, match="dataset"):
        inspect.data_sheet(5)


def test_an_augmentation_sheet_shows_the_original_beside_each_transform() -> None:
    image = chainrule.rand(3, 6, 6)
    transforms = {
        "flip": lambda x: x.flip(-1),
        "noise": lambda x: x + 0.1 * chainrule.randn(x.shape),
    }
    seen = inspect.augmentation_sheet(image, transforms, copies=2, seed=3)
    np.testing.assert_array_equal(seen.changed["flip"][1].numpy(), image.numpy()[..., ::-1])
    assert not np.array_equal(seen.changed["noise"][0].numpy(), seen.changed["noise"][1].numpy())
    again = inspect.augmentation_sheet(image, transforms, copies=2, seed=3)
    np.testing.assert_array_equal(again.changed["noise"].numpy(), seen.changed["noise"].numpy())
    panels = seen.plot()
    assert len(panels) == 6
    np.testing.assert_allclose(
        panels[3].images[0].get_array(), np.moveaxis(image.numpy(), 0, 2), rtol=1e-6
    )
    assert_drawn_well(panels)
    assert "yes" in str(seen)
    assert list(inspect.augmentation_sheet(image, [chainrule.neg, chainrule.neg]).changed) == [
        "neg",
        "neg (2)",
    ]
    for given, match in (
        ((chainrule.rand(2, 3, 4, 4), [chainrule.neg]), "one picture"),
        ((image, [lambda x: x.sum()]), "of a picture"),
    ):
        with pytest.raises(ValueError, match=match):
            inspect.augmentation_sheet(*given)
    with pytest.raises(TypeError, match="functions"):
        inspect.augmentation_sheet(image, [])


def test_reconstructions_stand_below_their_originals() -> None:
    x = chainrule.rand(3, 1, 4, 4)
    seen = inspect.reconstructions(lambda x: 0.5 * x.flatten(1), x)
    np.testing.assert_allclose(seen.errors, (0.25 * x**2).flatten(1).mean(1).numpy(), rtol=1e-5)
    panels = seen.plot()
    assert [ax.get_title() for ax in panels[3:]] == [f"error {e:.2g}" for e in seen.errors]
    low, high = float(x.min()), float(x.max())
    shown = np.clip((0.5 * x[2, 0].numpy() - low) / (high - low), 0, 1)
    np.testing.assert_allclose(panels[5].images[0].get_array(), shown, atol=1e-6)
    assert_drawn_well(panels)
    rows = inspect.reconstructions(nn.Identity(), chainrule.rand(4, 12), size=(3, 4))
    assert rows.originals.shape == (4, 1, 3, 4)
    assert "no better than the mean" in str(inspect.reconstructions(lambda x: 9 * x, x))
    with pytest.raises(ValueError, match="same number of values"):
        inspect.reconstructions(nn.Linear(4, 3), chainrule.rand(2, 4))
    with pytest.raises(ValueError, match="size="):
        inspect.reconstructions(nn.Identity(), chainrule.rand(2, 5))


# --- fit ------------------------------------------------------------------------------------------


def test_a_fit_is_drawn_over_training_and_validation_data() -> None:
    x = np.linspace(-1, 1, 12).reshape(-1, 1)
    y = x[:, 0] ** 2
    line = LinearRegression().fit(x[::2], y[::2])
    seen = inspect.regression_fit(line, x[::2], y[::2], validation=(x[1::2], y[1::2]))
    expected = math.sqrt(((line.predict(x[1::2]) - y[1::2]) ** 2).mean())
    assert seen.rmse["validation"] == pytest.approx(expected)
    assert seen.curve is not None
    np.testing.assert_allclose(
        seen.curve.numpy(), line.predict(seen.grid.numpy().reshape(-1, 1)), atol=1e-6
    )
    ax = seen.plot()
    np.testing.assert_allclose(ax.lines[0].get_xydata(), np.stack([x[::2, 0], y[::2]], 1))
    np.testing.assert_allclose(ax.lines[1].get_xydata(), np.stack([x[1::2, 0], y[1::2]], 1))
    assert_drawn_well(ax)
    noisy = inspect.regression_fit(
        lambda x: 0 * x, [0.0, 0.1], [0.0, 0.1], validation=([0.5], [2.0])
    )
    assert "regularize" in str(noisy)
    several = inspect.regression_fit(lambda x: x.sum(1), chainrule.rand(5, 3), chainrule.rand(5))
    assert several.curve is None
    assert_drawn_well(several.plot())
    with pytest.raises(ValueError, match="outputs have no one curve"):
        inspect.regression_fit(lambda x: x, chainrule.rand(5, 2), chainrule.rand(5, 2))
    with pytest.raises(ValueError, match="points"):
        inspect.regression_fit(lambda x: x, chainrule.rand(5, 1), chainrule.rand(5), points=1)
