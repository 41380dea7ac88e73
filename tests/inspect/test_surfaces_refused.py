"""Surfaces, paths, regions and hidden spaces of what cannot be drawn: an error that says why."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import chainrule
from chainrule import Tensor, inspect, nn, optim
from chainrule.nn import functional as F

NET = nn.Linear(2, 2)
X, Y = chainrule.randn(8, 2), chainrule.arange(8) % 2
BAD = X * math.nan


def bowl(w: Tensor) -> Tensor:
    return (w**2).sum()


def sgd(rate: float) -> Callable[[list[nn.Parameter]], optim.SGD]:
    return lambda p: optim.SGD(p, lr=rate)


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "a loss that is nan": (
        lambda: inspect.landscape(NET, F.cross_entropy, (BAD, Y)),
        r"landscape: the loss .* is nan; inspect.autopsy",
    ),
    "a line from nan": (
        lambda: inspect.loss_line(NET, F.cross_entropy, (BAD, Y)),
        r"loss_line: the loss .* is nan; inspect.autopsy",
    ),
    "many losses": (
        lambda: inspect.landscape(NET, lambda y, t: y[:, 0], (X, Y)),
        "landscape: the loss must be one number",
    ),
    "no loss": (lambda: inspect.landscape(NET, None, (X, Y)), "loss must be a function"),  # type: ignore[arg-type]
    "parallel directions": (
        lambda: inspect.landscape(
            NET, F.cross_entropy, (X, Y), directions=(chainrule.ones(6), 2 * chainrule.ones(6))
        ),
        "must span a plane",
    ),
    "another kind of network": (
        lambda: inspect.loss_line(NET, F.cross_entropy, (X, Y), direction=nn.Linear(1, 1)),
        "the other network has 2 weights, the model 6",
    ),
    "a start of a network": (
        lambda: inspect.optimizer_paths(
            NET, [optim.SGD], chainrule.ones(2), loss=F.cross_entropy, data=(X, Y)
        ),
        "begins at its own weights",
    ),
    "batches of a function": (
        lambda: inspect.optimizer_paths(bowl, [optim.SGD], chainrule.ones(2), batch_size=3),
        "belong to a network",
    ),
    "batches of nobody": (
        lambda: inspect.optimizer_paths(
            NET, [optim.SGD], loss=F.cross_entropy, data=(X, Y), batch_size={"Adam": 2}
        ),
        r"batch_size names 'Adam', which is none of \['SGD'\]",
    ),
    "empty batches": (
        lambda: inspect.optimizer_paths(
            NET, [optim.SGD], loss=F.cross_entropy, data=(X, Y), batch_size=0
        ),
        "batch_size must be positive, got 0",
    ),
    "a start that is nan": (
        lambda: inspect.optimizer_paths(bowl, [optim.SGD], chainrule.tensor([math.nan, 1.0])),
        "start must be finite",
    ),
    "networks that diverge at once": (
        lambda: inspect.optimizer_paths(
            nn.Linear(2, 1), {"a": sgd(1e30)}, loss=F.mse_loss, data=(X, X[:, :1]), steps=5
        ),
        "all optimizers diverge in their first steps",
    ),
    "answers that are nan": (lambda: inspect.regions(lambda x: x * math.nan, X, Y), "not finite"),
    "targets that are nan": (
        lambda: inspect.regions(lambda x: x[:, :1], X, X[:, 0] * math.nan),
        "the targets have values that are not finite",
    ),
    "classes of a regression": (
        lambda: inspect.regions(lambda x: x[:, :1], X, X[:, 0], classes=["a", "b"]),
        "this is a regression",
    ),
    "classes that the model has not": (
        lambda: inspect.regions(NET, X, Y + 5),
        "the target 5 is none of the model's classes 0, 1",
    ),
    "words without an order": (
        lambda: inspect.regions(NET, X, ["a", "b"] * 4),
        r"targets are words such as 'a'; say which output is which: classes=",
    ),
    "an unknown word": (
        lambda: inspect.regions(NET, X, ["a", "b"] * 4, classes=["a", "c"]),
        "the target 'b' is none of the classes",
    ),
    "a hidden space of nan": (
        lambda: inspect.hidden_space(nn.Sequential(NET, nn.Tanh(), NET), BAD, Y),
        "hidden_space: layer '1' puts out values that are not finite",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    look, message = REFUSED[case]
    with pytest.raises((ValueError, TypeError), match=message):
        look()


def test_no_optimizer_is_lost_and_divergence_is_said() -> None:
    seen = inspect.optimizer_paths(bowl, [sgd(1e20), sgd(1e25)], chainrule.ones(2), steps=9)
    assert seen.names == ["lambda", "lambda (2)"]
    assert "All diverged: lower the rates." in str(seen)


def test_the_flattest_is_the_one_with_the_least_curvature_of_either_sign() -> None:
    t = chainrule.tensor([-1.0, 0.0, 1.0])
    line = inspect.LossLine(t, {"a": t, "b": t}, {"a": 0, "b": 0}, {"a": -9.0, "b": 1.0}, "t")
    assert "b lies flattest along this line, a sharpest." in str(line)


def test_span_widens_the_plane_of_a_path() -> None:
    path = [chainrule.randn(6) for _ in range(4)]
    small = inspect.landscape(NET, F.cross_entropy, (X, Y), path=path, points=3)
    wide = inspect.landscape(NET, F.cross_entropy, (X, Y), path=path, points=3, span=50)
    assert float(small.x[-1]) < 50
    assert wide.x.tolist() == [-50, 0, 50]


def test_values_that_are_not_finite_are_counted() -> None:
    seen = inspect.surface(lambda w: w[0].log(), points=5)
    assert "not finite     15 of 25 points, left white" in str(seen)
    seen.plot()


@pytest.mark.parametrize("kind", ["one-hot", "words"])
def test_classes_in_other_words(kind: str) -> None:
    plain = inspect.regions(NET, X, Y, points=5)
    targets = F.one_hot(Y, 2) if kind == "one-hot" else [["no", "yes"][k] for k in Y.tolist()]
    classes = None if kind == "one-hot" else ["no", "yes"]
    other = inspect.regions(NET, X, targets, points=5, classes=classes)
    assert other.accuracy == plain.accuracy
    np.testing.assert_array_equal(other.targets.numpy(), Y.numpy())  # type: ignore[union-attr]


@pytest.mark.filterwarnings("error")
def test_regions_of_estimators_with_frames_words_and_no_probabilities() -> None:
    from sklearn.datasets import load_iris
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import SVC

    iris = load_iris(as_frame=True)
    words = iris.target_names[iris.target]
    for model in (LogisticRegression(max_iter=1000), SVC()):
        fitted = model.fit(iris.data, words)
        seen = inspect.regions(fitted, iris.data, words, points=20, features=[2, 3])
        assert seen.labels == ("petal length (cm)", "petal width (cm)")
        assert seen.classes == ["setosa", "versicolor", "virginica"]
        assert seen.accuracy == pytest.approx(fitted.score(iris.data, words))
        np.testing.assert_allclose(seen.values.sum(-1).numpy(), 1)


def test_hidden_space_of_numbers_has_a_scale_and_ten_classes_differ() -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    seen = inspect.hidden_space(net, X, X[:, 0])
    assert seen.separation is None
    ax = seen.plot()
    np.testing.assert_allclose(np.asarray(ax.collections[0].get_array()), X[:, 0].numpy())
    many = inspect.hidden_space(net, chainrule.randn(20, 2), chainrule.arange(20) % 10).plot()
    looks = {(line.get_color(), line.get_marker()) for line in many.lines}
    assert len(looks) == 10
