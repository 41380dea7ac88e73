"""Displays and pictures of what cannot be shown: an error that says why, and what to do."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

import chainrule
from chainrule import inspect, nn
from chainrule.inspect.attribution.methods import METHODS

X = chainrule.randn(6, 3)
NAN = math.nan


class Cut:
    """Cuts more off each time."""

    rows = 9

    def __call__(self, picture: chainrule.Tensor) -> chainrule.Tensor:
        self.rows -= 1
        return picture[:, : self.rows]


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "words as scores": (
        lambda: inspect.Roc.from_predictions(["a", "b", "a"], ["a", "b", "b"]),
        "roc: predicted labels such as 'a' have no scores.*inspect.confusion",
    ),
    "labels of three classes as scores": (
        lambda: inspect.PrecisionRecall.from_predictions([0, 1, 2], [0, 1, 2]),
        r"give probabilities \(N, K\) for K classes",
    ),
    "words of a regression": (
        lambda: inspect.Residuals.from_predictions(["a", "b"], [1.0, 2.0]),
        "residuals: the targets are words such as 'a' and no numbers",
    ),
    "axes of scikit-learn": (
        lambda: inspect.Roc.from_predictions([0, 1], [0.2, 0.7], ax=None),
        r"roc: there is no option 'ax'; the display draws itself: .plot\(ax=...\)",
    ),
    "an option of nobody": (
        lambda: inspect.Calibration.from_predictions([0, 1], [0.2, 0.7], colour="red"),
        "calibration: there is no option 'colour'; there are classes, bins, of",
    ),
    "one sample shuffled": (
        lambda: inspect.permutation_importance(lambda x: x[:, 0], X[:1], X[:1, 0]),
        "one sample cannot be shuffled",
    ),
    "a constant feature": (
        lambda: inspect.partial_dependence(lambda x: x[:, 0], chainrule.ones(5, 2), 0),
        "the feature '0' has one value, 1",
    ),
    "an output of one": (
        lambda: inspect.partial_dependence(lambda x: x[:, 0], X, 0, output=3),
        "the model has one output; leave out output=3",
    ),
    "an output below all": (
        lambda: inspect.partial_dependence(lambda x: x, X, 0, output=-4),
        "there is no output -4",
    ),
    "no schedule": (lambda: inspect.schedules("cosine"), "schedules: give one of optim"),
    "an empty sheet": (lambda: inspect.data_sheet(chainrule.zeros(0, 3)), "there are no samples"),
    "a sheet of numbers": (
        lambda: inspect.data_sheet(X, X[:, 0]),
        "data_sheet: targets must be classes",
    ),
    "a sheet of targets that are nan": (
        lambda: inspect.data_sheet(X, [NAN] * 6),
        "data_sheet: targets must be classes, got nan",
    ),
    "sizes that differ": (
        lambda: inspect.augmentation_sheet(chainrule.ones(1, 9, 9), {"cut": Cut()}),
        "cut makes pictures of different sizes",
    ),
    "reconstructions of nan": (
        lambda: inspect.reconstructions(nn.Identity(), chainrule.full((2, 1, 3, 3), NAN)),
        "reconstructions: .* not finite",
    ),
    "steps of another method": (
        lambda: inspect.attribute(nn.Linear(3, 2), X, method="deeplift", steps=9),
        "steps belong to 'integrated_gradients', not to 'deeplift'",
    ),
    "an output that is nan": (
        lambda: inspect.attribute(lambda x: x * NAN, X),
        "the output for the inputs is not finite",
    ),
    "a baseline without an output": (
        lambda: inspect.attribute(lambda x: x.log(), X.abs() + 1),
        "the output for the baseline is not finite; give another one",
    ),
    "maps that are nan": (
        lambda: inspect.feature_maps(nn.Conv2d(1, 2, 3), chainrule.full((1, 1, 5, 5), NAN)),
        "feature_maps: layer '' puts out values that are not finite",
    ),
    "maps of a series": (
        lambda: inspect.feature_maps(nn.Conv1d(1, 2, 3), chainrule.randn(2, 1, 9)),
        r"the output of layer '' has shape \(2, 2, 7\); pictures .* two dimensions",
    ),
    "filters of a series": (
        lambda: inspect.filters(nn.Conv1d(1, 2, 3)),
        "the model has no convolution in two dimensions",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    look, message = REFUSED[case]
    with pytest.raises((ValueError, TypeError), match=message):
        look()


def test_what_no_sample_is_of_has_no_share() -> None:
    text = str(inspect.Confusion.from_predictions([1, 1], [0.2, 0.9]))
    assert text.splitlines()[3].split() == ["0", "0", "0", "-", "0.0%"]


def test_epochs_without_a_loss_are_named() -> None:
    rows = [{"epoch": e, "loss": v} for e, v in enumerate((1.0, NAN, math.inf), 1)]
    seen = inspect.learning_curves(rows)
    assert seen.broken == {"loss": [2.0, 3.0]}
    assert "loss is not finite in epoch 2 and 1 more: inspect.autopsy" in str(seen)


def test_a_sheet_of_a_frame_has_its_columns_and_one_row_no_spread() -> None:
    pandas = pytest.importorskip("pandas")
    seen = inspect.data_sheet(pandas.DataFrame({"height": [1.5], "weight": [60.0]}))
    assert seen.columns == ["height", "weight"]
    assert str(seen).splitlines()[1].split() == ["height", "1.5", "1.5", "1.5", "0"]


def test_two_features_have_a_coarser_grid() -> None:
    x = chainrule.rand(100, 2)
    pair = inspect.partial_dependence(lambda x: x[:, 0] * x[:, 1], x, [0, 1])
    assert [len(g) for g in pair.grid] == [20, 20]
    assert len(inspect.partial_dependence(lambda x: x[:, 0], x, 0).grid[0]) == 50


def test_occlusion_does_not_claim_to_add_up() -> None:
    assert [name for name, (_, adds) in METHODS.items() if not adds] == ["sensitivity", "occlusion"]
    seen = inspect.attribute(nn.Linear(3, 2), X, method="occlusion")
    assert "what the output loses without its window" in str(seen)


def test_the_title_says_which_input() -> None:
    class Two(nn.Module):
        def forward(self, a: chainrule.Tensor, b: chainrule.Tensor) -> chainrule.Tensor:
            return a + 2 * b

    seen = inspect.attribute(Two(), {"a": X, "b": X}, method="gradient_x_input")
    assert seen.plot(input=1).get_title().endswith("of sample 0, b")
    with pytest.raises(IndexError, match=r"there is no input 2; there are \['a', 'b'\]"):
        seen.plot(input=2)
