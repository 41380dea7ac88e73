"""Loss surfaces, lines, paths of optimizers, decision regions, hidden space."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule
from chainrule import Tensor, func, inspect, nn, optim, problems, tensor
from chainrule.inspect.surfaces.planes import filter_normalized, weights_of
from chainrule.nn import functional as F
from chainrule.train import Trainer
from helpers import assert_close


def regression() -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    chainrule.manual_seed(1)
    net = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1)).double()
    x = chainrule.randn(12, 2, dtype="float64")
    return net, (x, (x[:, :1] * x[:, 1:]).sin())


def loss_with(net: nn.Module, vector: Tensor, data: tuple[Tensor, Tensor]) -> float:
    """The loss after the weights were really put into a network."""
    import copy

    other = copy.deepcopy(net)
    nn.utils.vector_to_parameters(vector, other.parameters())
    return float(F.mse_loss(other(data[0]), data[1]).detach())


# --- landscapes -----------------------------------------------------------------------------------


def test_a_landscape_is_the_loss_of_the_weights_of_its_plane() -> None:
    net, data = regression()
    chainrule.manual_seed(3)
    directions = (chainrule.randn(17, dtype="float64"), chainrule.randn(17, dtype="float64"))
    seen = inspect.landscape(net, F.mse_loss, data, directions=directions, points=5, span=0.7)
    center = weights_of(net)
    for i, b in enumerate(seen.y.tolist()):
        for j, a in enumerate(seen.x.tolist()):
            expected = loss_with(net, center + a * directions[0] + b * directions[1], data)
            assert float(seen.values[i, j]) == pytest.approx(expected, rel=1e-6)
    assert seen.center == pytest.approx(loss_with(net, center, data), rel=1e-12)


def test_a_random_direction_is_as_long_as_each_filter() -> None:
    net = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(12, 2))
    direction = filter_normalized("landscape", net, chainrule.Generator().manual_seed(0))
    parts = {}
    for name, p in net.named_parameters():
        parts[name], direction = direction[: p.numel()].reshape(p.shape), direction[p.numel() :]
    for name in ("0.weight", "3.weight"):
        own = dict(net.named_parameters())[name].detach().flatten(1).norm(dim=1)
        assert_close(parts[name].flatten(1).norm(dim=1), own, rtol=1e-5)
    for name in ("0.bias", "1.weight", "1.bias", "3.bias"):
        assert float(parts[name].abs().max()) == 0


def test_a_path_in_a_plane_is_seen_without_a_gap() -> None:
    net, data = regression()
    center = weights_of(net)
    chainrule.manual_seed(4)
    one, other = chainrule.randn(17, dtype="float64"), chainrule.randn(17, dtype="float64")
    other -= one * (one @ other) / (one @ one)
    places = [(3.0, 1.0), (2.0, -1.0), (1.0, 0.5), (0.0, 0.0)]
    path = [center + a * one + b * other for a, b in places]
    seen = inspect.landscape(net, F.mse_loss, data, path=path, points=5)
    assert seen.explained is not None
    assert sum(seen.explained) == pytest.approx(1.0)
    assert seen.gap < 1e-9
    # Distances from the end are those of the weights.
    for (a, b), (x, y) in zip(places, seen.path, strict=True):
        far = math.hypot(a * float(one.norm()), b * float(other.norm()))
        assert math.hypot(x, y) == pytest.approx(far, rel=1e-9, abs=1e-9)


def test_what_a_plane_misses_is_said() -> None:
    net, data = regression()
    chainrule.manual_seed(5)
    path = [weights_of(net) + chainrule.randn(17, dtype="float64") for _ in range(8)]
    seen = inspect.landscape(net, F.mse_loss, data, path=path, points=5)
    assert seen.explained is not None
    assert sum(seen.explained) < 0.8
    expected = [loss_with(net, w, data) for w in path]
    np.testing.assert_allclose(seen.true_losses, expected, rtol=1e-12)
    assert seen.gap == pytest.approx(
        max(abs(a - b) for a, b in zip(expected, seen.plane_losses, strict=True))
    )
    assert "% of the path" in str(seen)


def test_a_trainer_records_a_path() -> None:
    chainrule.manual_seed(0)
    net, path, steps = nn.Linear(2, 1), inspect.WeightPath(), inspect.WeightPath(every=2)
    data = chainrule.utils.data.TensorDataset(chainrule.randn(8, 2), chainrule.randn(8, 1))
    trainer = Trainer(net, "mse", optim.SGD(net.parameters(), lr=0.1), callbacks=[path, steps])
    trainer.fit(data, epochs=4, batch_size=2)
    assert len(path) == 5
    assert len(steps) == 1 + 4 * 4 // 2
    assert chainrule.equal(path[-1], weights_of(net))
    seen = inspect.landscape(net, F.mse_loss, data.tensors, path=path, points=5)
    assert len(seen.path) == 5
    again = inspect.WeightPath()
    again.load_state_dict(path.state_dict())
    assert len(again) == 5


def test_a_surface_of_a_function() -> None:
    seen = inspect.surface(lambda w: w[0] ** 2 + 10 * w[1], (-1, 1), (0, 2), points=3)
    assert seen.values.tolist() == [[1, 0, 1], [11, 10, 11], [21, 20, 21]]


NET, DATA = regression()
WRONG_LANDSCAPES: list[tuple[Any, str]] = [
    (lambda: inspect.landscape(NET, F.mse_loss, DATA, path=[weights_of(NET)] * 2), "2 points"),
    (lambda: inspect.landscape(NET, F.mse_loss, DATA, path=[weights_of(NET)] * 3), "not move"),
    (lambda: inspect.landscape(NET, F.mse_loss, DATA, path=[tensor([1.0])] * 3), "17"),
    (lambda: inspect.landscape(NET, F.mse_loss, DATA, points=2), "at least 3"),
    (lambda: inspect.landscape(NET, F.mse_loss, DATA, span=-1), "span must be positive"),
    (lambda: inspect.landscape(nn.Tanh(), F.mse_loss, DATA), "no parameters"),
    (lambda: inspect.landscape(NET, lambda y, t: y - t, DATA), "one number"),
    (lambda: inspect.surface(lambda w: w, points=3), "one number"),
    (lambda: inspect.surface(lambda w: w.sum(), (1, 0)), "smaller to a larger"),
    (lambda: inspect.loss_line(NET, F.mse_loss, DATA, direction="up"), "'random', 'gradient'"),
    (lambda: inspect.loss_line(NET, F.mse_loss, DATA, direction=chainrule.zeros(17)), "zero"),
    (lambda: inspect.WeightPath(every=0), "positive number of updates"),
]


@pytest.mark.parametrize(("call", "text"), WRONG_LANDSCAPES)
def test_what_cannot_be_a_landscape(call: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        call()


# --- lines ----------------------------------------------------------------------------------------


def test_the_parabola_of_a_quadratic_loss_is_the_loss() -> None:
    net, data = nn.Linear(3, 1).double(), chainrule.randn(9, 3, dtype="float64")
    target = chainrule.randn(9, 1, dtype="float64")
    seen = inspect.loss_line(net, F.mse_loss, (data, target), direction="gradient", points=9)
    assert_close(seen.parabolas["Linear"].double(), seen.losses["Linear"].double(), rtol=1e-5)
    extended = chainrule.cat([data, chainrule.ones(9, 1, dtype="float64")], 1)
    hessian = 2 / 9 * extended.T @ extended
    weights = weights_of(net)
    slope = 2 / 9 * extended.T @ (extended @ weights.reshape(4, 1) - target)
    d = -slope.reshape(-1)
    assert seen.curvatures["Linear"] == pytest.approx(float(d @ hessian @ d), rel=1e-9)
    assert seen.slopes["Linear"] == pytest.approx(float(-(d @ d)), rel=1e-9)


def test_flat_and_sharp_minima_are_told_apart() -> None:
    flat, sharp = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)
    for net, w in ((flat, 1.0), (sharp, 10.0)):
        net.weight.data.fill_(w)
    seen = inspect.loss_line(
        {"flat": flat, "sharp": sharp}, lambda y, t: ((y - t) ** 2).mean() * t.abs().mean(),
        (chainrule.ones(1, 1), chainrule.ones(1, 1)), points=5,
    )  # fmt: skip
    # A filter-normalized direction is as long as the weight: (10 / 1)^2 times the curvature.
    assert seen.curvatures["sharp"] == pytest.approx(100 * seen.curvatures["flat"], rel=1e-5)
    assert "flat lies flattest" in str(seen)


def test_the_way_between_two_networks_ends_at_both() -> None:
    net, data = regression()
    other = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1)).double()
    seen = inspect.loss_line(net, F.mse_loss, data, direction=other, span=0.5, points=5)
    assert seen.t.tolist() == pytest.approx([-0.5, 0.0, 0.5, 1.0, 1.5])
    losses = seen.losses["Sequential"].tolist()
    assert losses[1] == pytest.approx(loss_with(net, weights_of(net), data), rel=1e-6)
    assert losses[3] == pytest.approx(loss_with(net, weights_of(other), data), rel=1e-6)


# --- paths of optimizers --------------------------------------------------------------------------


def test_gradient_descent_on_a_bowl_goes_where_the_formula_says() -> None:
    start = tensor([1.0, 1.0], dtype="float64")
    seen = inspect.optimizer_paths(
        problems.bowl().function, {"gd": lambda p: optim.SGD(p, lr=0.05)}, start, steps=6
    )
    # w1^2 + 5 w2^2: each weight shrinks by 1 - 2 lr and 1 - 10 lr.
    expected = [(0.9**t, 0.5**t) for t in range(7)]
    np.testing.assert_allclose(seen.points["gd"], expected, rtol=1e-12)
    np.testing.assert_allclose(seen.values["gd"], [a * a + 5 * b * b for a, b in expected])
    first = math.hypot(0.1, 0.5)
    assert seen.step_sizes["gd"][0] == pytest.approx(first)
    assert "Lowest at the end: gd." in str(seen)


def test_the_effect_of_the_learning_rate() -> None:
    """On w1^2 + 5 w2^2 the largest eigenvalue is 10: too small, best (2 / (2 + 10)), too large
    (the steep direction swings), above 2 / 10 divergent."""
    rates = {"too small": 0.005, "best": 1 / 6, "too large": 0.195, "divergent": 0.21}
    made = {name: lambda p, lr=lr: optim.SGD(p, lr=lr) for name, lr in rates.items()}
    seen = inspect.optimizer_paths(
        problems.bowl().function, made, tensor([1.0, 1.0], dtype="float64"), steps=40, points=9
    )
    end = {name: values[-1] for name, values in seen.values.items()}
    assert end["best"] < end["too large"] < end["too small"] < 6 < end["divergent"]
    factor = {name: max(abs(1 - 2 * lr), abs(1 - 10 * lr)) for name, lr in rates.items()}
    for name, path in seen.points.items():
        assert max(map(abs, path[-1])) == pytest.approx(factor[name] ** 40, rel=1e-9)
    swings = [y for _, y in seen.points["too large"]]
    assert all(a * b < 0 for a, b in itertools.pairwise(swings))


def test_optimizers_that_leave_all_bounds_are_said_to_diverge() -> None:
    made = {
        "right": lambda p: optim.SGD(p, lr=0.1),
        "too large": lambda p: optim.SGD(p, lr=1e30),
        "LBFGS": lambda p: optim.LBFGS(p),
    }
    seen = inspect.optimizer_paths(
        problems.bowl().function, made, tensor([1.0, 1.0]), steps=40, points=9
    )
    lines = {line.split("  ")[0]: line for line in str(seen).splitlines()}
    assert "diverged" in lines["too large"]
    assert "diverged" not in lines["right"]
    assert seen.values["LBFGS"][-1] < 1e-10
    assert bool(seen.background.values.isfinite().all())


def test_all_optimizers_start_with_the_same_random_numbers() -> None:
    def noisy(w: Tensor) -> Tensor:
        return (w * w).sum() + (w * chainrule.randn(2)).sum()

    made = {"a": lambda p: optim.SGD(p, lr=0.1), "b": lambda p: optim.SGD(p, lr=0.1)}
    seen = inspect.optimizer_paths(noisy, made, tensor([1.0, 1.0]), steps=5, points=5)
    assert seen.points["a"] == seen.points["b"]


def test_networks_are_trained_as_copies_on_one_plane(tmp_path: Path) -> None:
    net, data = regression()
    before = weights_of(net)
    made = [optim.SGD, optim.Adam]
    seen = inspect.optimizer_paths(net, made, loss=F.mse_loss, data=data, steps=5, points=5)
    assert seen.names == ["SGD", "Adam"]
    assert chainrule.equal(weights_of(net), before)
    assert len(seen.points["Adam"]) == 6
    assert seen.points["SGD"][0] == seen.points["Adam"][0]
    assert seen.values["Adam"][0] == pytest.approx(loss_with(net, before, data))
    pytest.importorskip("matplotlib").use("agg")
    assert seen.film(3).save(tmp_path / "film.html").read_text("utf-8").count("<section") == 3


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: inspect.optimizer_paths(NET, [optim.SGD]), "loss="),
        (lambda: inspect.optimizer_paths(lambda w: w.sum(), [optim.SGD]), "start="),
        (lambda: inspect.optimizer_paths(lambda w: w.sum(), [optim.SGD], tensor([1.0])), "two"),
        (lambda: inspect.optimizer_paths(lambda w: w.sum(), [], tensor([1.0, 2.0])), "no optimi"),
    ],
)
def test_what_cannot_be_followed(call: Any, text: str) -> None:
    with pytest.raises((TypeError, ValueError), match=text):
        call()


# --- regions --------------------------------------------------------------------------------------


def linear_classifier() -> nn.Linear:
    """Class 1 right of x = 0.5."""
    net = nn.Linear(2, 2)
    net.load_state_dict({"weight": tensor([[0.0, 0.0], [4.0, 0.0]]), "bias": tensor([0.0, -2.0])})
    return net


def test_regions_are_the_probabilities_of_a_classifier() -> None:
    x = tensor([[0.0, 0.0], [1.0, 1.0]])
    seen = inspect.regions(linear_classifier(), x, tensor([0, 1]), points=101, margin=0.0)
    expected = 1 / (1 + np.exp(-(4 * seen.x.numpy() - 2)))
    np.testing.assert_allclose(seen.values[7, :, 1].numpy(), expected, rtol=1e-5)
    assert seen.shares == pytest.approx([0.5, 0.5], abs=0.01)
    assert (seen.accuracy, seen.off_plane, seen.where) == (1.0, 0.0, "both features")


def test_one_output_and_other_names_of_classes() -> None:
    net = nn.Linear(1, 1)
    net.load_state_dict({"weight": tensor([[2.0]]), "bias": tensor([0.0])})
    x = tensor([[-1.0], [1.0]])
    zero_one = inspect.regions(net, x, tensor([0, 1]), points=5)
    assert zero_one.classes == ["0", "1"]
    assert float(zero_one.values[2, 1]) == pytest.approx(0.5)
    signs = inspect.regions(nn.Sequential(net, nn.Tanh()), x, tensor([-1, 1]), points=5)
    assert signs.classes == ["-1", "1"]
    assert signs.accuracy == 1.0
    assert float(signs.values[2, 0]) == pytest.approx(0.5)


def test_regressions_are_curves_and_surfaces() -> None:
    x = chainrule.linspace(0, 1, 5).reshape(5, 1)
    curve = inspect.regions(lambda v: 3 * v, x, 3 * x, points=11, margin=0.0)
    np.testing.assert_allclose(curve.values.numpy(), 3 * curve.x.numpy(), rtol=1e-6)
    assert curve.classes == []
    assert curve.y is None
    surface = inspect.regions(lambda v: v.sum(1), chainrule.rand(6, 2), task="regression", points=4)
    assert surface.values.shape == (4, 4)


def test_a_plane_of_many_features_is_chosen_and_named() -> None:
    chainrule.manual_seed(0)
    flat = chainrule.randn(30, 2) @ chainrule.randn(2, 5)
    net = nn.Linear(5, 3)
    seen = inspect.regions(net, flat, points=5)
    assert "100% of the variance" in seen.where
    assert seen.off_plane == 0.0
    chosen = inspect.regions(net, flat, features=["b", 3], names=list("abcde"), points=5)
    assert chosen.where == "b and d, the others at their medians"
    assert chosen.labels == ("b", "d")
    assert chosen.off_plane > 0
    low = float(flat[:, 1].min())
    assert float(chosen.x[0]) < low


def test_estimators_are_looked_into_as_well() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    chainrule.manual_seed(0)
    x = chainrule.randn(40, 2)
    y = (x[:, 0] > 0).long()
    model = linear_model.LogisticRegression().fit(x.numpy(), y.numpy())
    seen = inspect.regions(model, x, y, points=5)
    grid = np.stack(np.meshgrid(seen.x.numpy(), seen.y.numpy()), -1).reshape(-1, 2)
    np.testing.assert_allclose(seen.values.reshape(-1, 2).numpy(), model.predict_proba(grid))
    assert seen.accuracy == model.score(x.numpy(), y.numpy())


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: inspect.regions(nn.Linear(2, 2), chainrule.zeros(0, 2)), "table"),
        (lambda: inspect.regions(nn.Linear(2, 2), tensor([[math.nan, 0.0]])), "not finite"),
        (lambda: inspect.regions(nn.Linear(2, 2), chainrule.rand(3, 2), tensor([1])), "3 inputs"),
        (
            lambda: inspect.regions(nn.Linear(2, 2), chainrule.rand(3, 2), features=[5]),
            "no feature",
        ),
        (lambda: inspect.regions(nn.Linear(2, 2), chainrule.rand(3, 2), task="x"), "task must be"),
        (lambda: inspect.regions(3, chainrule.rand(3, 2)), "a module, a function or an estim"),
        (
            lambda: inspect.regions(nn.Linear(2, 2), chainrule.rand(3, 2), task="regression"),
            "2 outputs",
        ),
    ],
)
def test_what_has_no_regions(call: Any, text: str) -> None:
    with pytest.raises((TypeError, ValueError), match=text):
        call()


# --- hidden space ---------------------------------------------------------------------------------


def test_hidden_space_of_xor() -> None:
    """h1 = or, h2 = and: the hidden layer makes the classes separable."""
    net = nn.Sequential(nn.Linear(2, 2), nn.Sigmoid(), nn.Linear(2, 1)).double()
    with chainrule.no_grad():
        net[0].weight.copy_(tensor([[20.0, 20.0], [20.0, 20.0]]))
        net[0].bias.copy_(tensor([-10.0, -30.0]))
    x = tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], dtype="float64")
    seen = inspect.hidden_space(net, x, tensor([0, 1, 1, 0]))
    assert seen.layer == "1"
    expected = [[0, 0], [1, 0], [1, 0], [1, 1]]
    np.testing.assert_allclose(seen.points.numpy(), expected, atol=1e-4)
    assert seen.explained == 1.0


def test_hidden_space_keeps_distances_of_flat_data() -> None:
    chainrule.manual_seed(0)
    rows = chainrule.randn(6, 2, dtype="float64") @ chainrule.randn(2, 9, dtype="float64")
    seen = inspect.hidden_space(nn.Identity(), rows, layer=None)
    assert seen.explained == pytest.approx(1.0)
    own = func.vmap(lambda a: ((rows - a) ** 2).sum(1))(rows)
    shown = func.vmap(lambda a: ((seen.points - a) ** 2).sum(1))(seen.points)
    assert_close(shown, own, rtol=1e-6, atol=1e-9)


def test_a_layer_that_is_not_there_is_named() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    with pytest.raises(ValueError, match=r"no layer is called 'hidden'. There are|'hidden'"):
        inspect.hidden_space(net, chainrule.ones(3, 2), layer="hidden")
    with pytest.raises(ValueError, match="2 targets"):
        inspect.hidden_space(net, chainrule.ones(3, 2), tensor([1, 2]))
