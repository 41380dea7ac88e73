"""Worst cases, importance and dependence: against scikit-learn and by hand, on any kind of data."""

from __future__ import annotations

import math

import numpy as np
import pandas
import pytest
from sklearn import inspection
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression

import chainrule
from chainrule import data, inspect, nn, train
from chainrule.nn import functional as F
from looking.drawn import assert_drawn_well, figure_of

R = np.random.default_rng(0)
X = R.normal(size=(40, 3))
Y = X[:, 0] * X[:, 1] + X[:, 0]
KINDS = (X[:, 0] + X[:, 1] > 0).astype(int)
FOREST = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X, KINDS)


# --- top losses -----------------------------------------------------------------------------------


def test_the_worst_rows_by_hand() -> None:
    x = chainrule.tensor([[0.0, 1.0], [4.0, 1.0], [2.0, 3.0], [8.0, 8.0]])
    y = chainrule.tensor([0.0, 1.0, 2.5, 5.0])
    known = (chainrule.tensor([[4.0, 1.5], [8.0, 8.0], [0.0, 0.0]]), chainrule.tensor([4.0, 8, 0]))
    seen = inspect.top_losses(lambda x: x[:, 0], x, y, training=known, k=2)
    assert [(c.index, c.loss, c.nearest) for c in seen.cases] == [(1, 9.0, 0), (3, 9.0, 1)]
    assert seen.losses.tolist() == [0.0, 9.0, 0.25, 9.0]
    first, second = seen.cases
    assert (first.target, first.prediction, first.nearest_target) == ("1", "4", "4")
    spread = float(known[0][:, 1].std())
    assert first.distance == pytest.approx(0.5 / spread)  # features count in deviations
    assert second.distance == 0
    assert second.is_twin
    assert "samples 3: the same inputs were trained on with another target" in str(seen)
    assert seen.share == pytest.approx(18 / 18.25)


def test_losses_of_classes_and_labels_are_cross_entropies() -> None:
    net = nn.Linear(3, 4)
    x, y = chainrule.randn(10, 3), chainrule.arange(10) % 4
    with chainrule.no_grad():
        expected = F.cross_entropy(net(x), y, reduction="none")
    seen = inspect.top_losses(net, x, y, k=3)
    np.testing.assert_allclose(seen.losses.numpy(), expected.numpy(), rtol=1e-5)
    own = inspect.top_losses(net, x, y, k=3, loss=F.cross_entropy)
    np.testing.assert_allclose(own.losses.numpy(), expected.numpy(), rtol=1e-5)
    several = (chainrule.rand(10, 4) > 0.4).float()
    with chainrule.no_grad():
        p = F.binary_cross_entropy_with_logits(net(x), several, reduction="none").mean(1)
    seen = inspect.top_losses(net, x, several, classes=["a", "b", "c", "d"], k=10)
    np.testing.assert_allclose(seen.losses.numpy(), p.numpy(), rtol=1e-5)
    names = [n for n, on in zip("abcd", several[seen.cases[0].index].tolist(), strict=True) if on]
    assert seen.cases[0].target == ("+".join(names) or "none")


@pytest.mark.parametrize("shape", [(8, 1, 6, 6), (8, 3, 6, 6), (8, 12, 2), (8, 5)])
@pytest.mark.parametrize("training", [True, False])
def test_pictures_series_and_rows_are_drawn(shape: tuple[int, ...], training: bool) -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    x, y = chainrule.rand(*shape), chainrule.arange(8) % 3
    net = nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape[1:]), 3))
    known = (x + 0.01, y) if training else None
    seen = inspect.top_losses(net, x, y, training=known, k=4)
    assert seen.kind == {4: "pictures", 3: "series", 2: "rows"}[len(shape)]
    assert not training or all(c.nearest == c.index for c in seen.cases)
    panels = seen.plot()
    assert len(panels) == (8 if training and len(shape) == 4 else 4)
    assert_drawn_well(panels)
    plt.close(figure_of(panels))


def test_worst_rows_of_a_fitted_network_have_its_names() -> None:
    columns = {"a": X[:, 0].tolist(), "b": X[:, 1].tolist(), "kind": ["xy"[k] for k in KINDS]}
    rows = data.Table.from_dict(columns)
    settings = train.Settings(hidden=(4,), epochs=2)
    fitted = train.fit_table(rows, "kind", settings=settings, progress=False)
    seen = inspect.top_losses(fitted, rows, None, training=(rows, None), k=2)
    assert seen.names == ["a", "b"]
    assert {case.target for case in seen.cases} <= {"x", "y"}
    assert seen.cases[0].nearest == seen.cases[0].index
    lost = inspect.permutation_importance(fitted, rows, None, repeats=2)
    assert lost.names == ["a", "b"]
    assert lost.baseline == pytest.approx(fitted.evaluate(rows)["accuracy"])
    one = inspect.partial_dependence(fitted, rows, "b", points=4)
    assert one.average.shape == (4,)
    assert one.output == "probability of class y"
    words = data.Table.from_dict(columns | {"a": ["red", "blue"] * 20})
    fitted = train.fit_table(words, "kind", settings=settings, progress=False)
    assert inspect.permutation_importance(fitted, words, None, repeats=1).names == ["a", "b"]
    with pytest.raises(ValueError, match="'a' has words"):
        inspect.partial_dependence(fitted, words, "a")


def test_bad_input_of_top_losses() -> None:
    x, y = chainrule.randn(4, 3), chainrule.tensor([0, 1, 0, 1])
    net = nn.Linear(3, 2)
    with pytest.raises(ValueError, match="k must be"):
        inspect.top_losses(net, x, y, k=0)
    with pytest.raises(ValueError, match="as many predictions"):
        inspect.top_losses(net, x, y[:3])
    with pytest.raises(TypeError, match="pair"):
        inspect.top_losses(net, x, y, training=x)
    with pytest.raises(ValueError, match="prepare both"):
        inspect.top_losses(lambda x: x[:, :2], x, y, training=(chainrule.randn(4, 5), y))
    with pytest.raises(ValueError, match="names for"):
        inspect.top_losses(net, x, y, names=["a"])
    with pytest.raises(TypeError, match="needs a module"):
        inspect.top_losses(lambda x: x, x, x, loss=F.mse_loss)
    with pytest.raises(ValueError, match="finite"):
        inspect.top_losses(net, x * math.nan, y)


# --- permutation importance -----------------------------------------------------------------------


def orders_of_scikit_learn(seed: int, repeats: int, count: int) -> list[np.ndarray]:
    """The permutations that it draws for every column."""
    start = np.random.RandomState(seed).randint(np.iinfo(np.int32).max + 1)
    state, shuffled, made = np.random.RandomState(start), np.arange(count), [np.arange(count)]
    for _ in range(repeats):
        state.shuffle(shuffled)
        made.append(made[-1][shuffled])  # it shuffles what it had shuffled before
    return made[1:]


@pytest.mark.parametrize(
    ("model", "y"), [(FOREST, KINDS), (LinearRegression().fit(X, Y), Y)], ids=["classes", "numbers"]
)
def test_importances_are_those_of_scikit_learn(model: object, y: np.ndarray) -> None:
    expected = inspection.permutation_importance(model, X, y, n_repeats=4, random_state=3)
    orders = orders_of_scikit_learn(3, 4, len(X))
    seen = inspect.permutation_importance(model, X, y, orders=orders)
    np.testing.assert_allclose(seen.importances.numpy(), expected.importances, atol=1e-12)
    np.testing.assert_allclose(seen.mean, expected.importances_mean, atol=1e-12)
    error = expected.importances.std(1, ddof=1) / 2
    np.testing.assert_allclose([h for _, h in seen.interval], seen.mean + 2 * error, atol=1e-12)
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    named = LinearRegression().fit(frame, Y)
    seen = inspect.PermutationImportance.from_estimator(named, frame, Y, score="mse", repeats=2)
    assert seen.names == ["a", "b", "c"]
    assert seen.mean[seen.order[0]] > 0  # an error that grows is a loss


def test_a_feature_that_is_not_used_is_not_missed() -> None:
    x = chainrule.randn(30, 3)
    seen = inspect.permutation_importance(
        lambda x: 3 * x[:, 1], x, 3 * x[:, 1], names=["a", "b", "c"]
    )
    assert seen.idle == ["a", "c"]
    assert seen.order[0] == 1
    assert "not missed: a, c" in str(seen)
    again = inspect.permutation_importance(lambda x: 3 * x[:, 1], x, 3 * x[:, 1])
    assert again.mean == seen.mean  # one seed, one result


def test_several_labels_and_own_scores() -> None:
    x = chainrule.randn(20, 2)
    labels = (x > 0).float()
    seen = inspect.permutation_importance(lambda x: 5 * x, x, labels, repeats=2)
    assert seen.baseline == 1
    own = inspect.permutation_importance(lambda x: x, x, labels, score=lambda p, y: 7.0, repeats=1)
    assert own.mean == [0.0, 0.0]


def test_bad_input_of_importance() -> None:
    x = chainrule.randn(5, 2)
    for options, match in (
        ({"repeats": 0}, "repeats"),
        ({"orders": [[0, 1, 2]]}, "permutations"),
        ({"names": ["a"]}, "1 names for 2 features"),
        ({"score": "beauty"}, "unknown name"),
    ):
        with pytest.raises(ValueError, match=match):
            inspect.permutation_importance(lambda x: x[:, 0], x, x[:, 0], **options)


# --- partial dependence ---------------------------------------------------------------------------


def test_dependence_is_that_of_scikit_learn() -> None:
    for features in ([1], [0, 2]):
        theirs = inspection.partial_dependence(
            FOREST,
            X,
            [tuple(features)] if len(features) > 1 else features,
            method="brute",
            kind="both" if len(features) == 1 else "average",
            grid_resolution=7,
        )
        seen = inspect.partial_dependence(FOREST, X, features, points=7)
        for ours, expected in zip(seen.grid, theirs["grid_values"], strict=True):
            np.testing.assert_allclose(ours.numpy(), expected, rtol=1e-6)
        np.testing.assert_allclose(seen.average.numpy(), theirs["average"][0], rtol=1e-6)
        if len(features) == 1:
            np.testing.assert_allclose(seen.individual.numpy(), theirs["individual"][0], rtol=1e-6)


def test_single_lines_show_what_the_mean_hides() -> None:
    x = chainrule.tensor([[a, b] for a in (-1.0, 0.0, 1.0) for b in (-1.0, 1.0)])
    seen = inspect.partial_dependence(lambda x: x[:, 0] * x[:, 1], x, 0)
    assert seen.average.tolist() == [0.0, 0.0, 0.0]
    assert seen.disagreement == pytest.approx(math.sqrt(2 / 3))
    assert "hides" in str(seen)
    plain = inspect.partial_dependence(lambda x: x[:, 0] + x[:, 1], x, 0)
    assert plain.disagreement == 0
    assert plain.effect == 2


def test_dependence_is_drawn() -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    seen = inspect.partial_dependence(FOREST, X, 0, points=6, names=["a", "b", "c"])
    ax = seen.plot(lines=5)
    assert_drawn_well(ax)
    mean = next(line for line in ax.lines if line.get_label() == "mean")
    np.testing.assert_array_equal(mean.get_ydata(), seen.average.numpy())
    pair = inspect.PartialDependence.from_estimator(FOREST, X, (0, 1), points=5).plot()
    assert_drawn_well(pair)
    lost = inspect.permutation_importance(FOREST, X, KINDS, repeats=2).plot()
    assert_drawn_well(lost)
    plt.close("all")


def test_bad_input_of_dependence() -> None:
    three = nn.Linear(3, 3)
    x = chainrule.randn(6, 3)
    for options, match in (
        ({"features": 5}, "no feature 5"),
        ({"features": "age"}, "no feature 'age'"),
        ({"features": [0, 1, 2]}, "one or two"),
        ({}, "say which"),
        ({"output": 3}, "no output 3"),
        ({"points": 1}, "points"),
        ({"percentiles": (0.9, 0.1)}, "percentiles"),
        ({"task": "ranking"}, "task"),
    ):
        with pytest.raises(ValueError, match=match):
            inspect.partial_dependence(three, x, **options)
    with pytest.raises(ValueError, match="not finite"):
        inspect.partial_dependence(lambda x: x[:, 0], x * math.inf)
    with pytest.raises(ValueError, match="pictures have no columns"):
        inspect.partial_dependence(lambda x: x, chainrule.rand(2, 1, 4, 4))
