"""Pictures of the courses that instruments draw: what they show is measured, not looked at."""

from __future__ import annotations


import itertools

import numpy as np
import pytest

import chainrule
from chainrule import Tensor, inspect, nn, optim
from chainrule.nn import functional as F


def neuron(w: tuple[float, float], b: float) -> nn.Sequential:
    net = nn.Sequential(nn.Linear(2, 1), nn.Sigmoid())
    net.load_state_dict({"0.weight": chainrule.tensor([w]), "0.bias": chainrule.tensor([b])})
    return net


def test_a_neuron_is_a_ridge_with_a_line_of_decision() -> None:
    net = neuron((3.0, 4.0), -1.0)
    with chainrule.no_grad():
        ridge = inspect.surface(lambda x: net(x.reshape(1, 2)), (-2, 2), (-2, 2), points=41)
    x, y = np.meshgrid(ridge.x.numpy(), ridge.y.numpy())
    np.testing.assert_allclose(
        ridge.values.numpy(), 1 / (1 + np.exp(1 - 3 * x - 4 * y)), rtol=0, atol=1e-6
    )
    # The same value four to the right and three down: along the ridge nothing changes.
    assert abs(float(ridge.values[20, 4] - ridge.values[8, 20])) < 1e-6
    seen = inspect.regions(net, [[-2.0, -2.0], [2.0, 2.0]], [0, 1], points=50, margin=0.0)
    side = 3 * seen.x.reshape(1, -1) + 4 * seen.y.reshape(-1, 1) - 1 > 0  # type: ignore[union-attr]
    assert bool((seen.values.argmax(-1) == side.long()).all())
    assert len(seen.plot().collections) == 1  # the line of decision


@pytest.mark.parametrize(
    ("name", "w", "b", "right"),
    [("or", (20, 20), -10, 4), ("and1", (20, 20), -30, 4), ("and2", (-20, 20), -10, 4)],
)
def test_one_line_solves_a_truth_table(
    name: str, w: tuple[float, float], b: float, right: int
) -> None:
    table = {"or": [0, 1, 1, 1], "and1": [0, 0, 0, 1], "and2": [0, 1, 0, 0]}[name]
    corners = chainrule.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    seen = inspect.regions(neuron(w, b), corners, table, points=40)
    assert seen.accuracy == right / 4
    # One straight line: each row of the grid changes its answer at most once.
    changes = seen.values.argmax(-1).diff(dim=1).abs().sum(1)
    assert int(changes.max()) <= 1


def test_no_line_solves_xor_and_two_do() -> None:
    corners = chainrule.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    for w, b in (((20, 20), -10), ((20, 20), -30), ((-20, 20), -10), ((20, -20), -10)):
        assert (inspect.regions(neuron(w, b), corners, [0, 1, 1, 0], points=9).accuracy or 0) < 1
    net = nn.Sequential(nn.Linear(2, 2), nn.Sigmoid(), nn.Linear(2, 1), nn.Sigmoid())
    net.load_state_dict(
        {
            "0.weight": chainrule.tensor([[20.0, 20.0], [-20.0, -20.0]]),
            "0.bias": chainrule.tensor([-10.0, 30.0]),
            "2.weight": chainrule.tensor([[20.0, 20.0]]),
            "2.bias": chainrule.tensor([-30.0]),
        }
    )
    seen = inspect.regions(net, corners, [0, 1, 1, 0], points=40)
    assert seen.accuracy == 1
    assert int(seen.values.argmax(-1).diff(dim=1).abs().sum(1).max()) == 2


def test_the_path_of_small_batches_is_noisy() -> None:
    chainrule.manual_seed(0)
    x = chainrule.randn(64, 2)
    y = x @ chainrule.tensor([[1.0], [-2.0]]) + 0.5 * chainrule.randn(64, 1)
    rates = {n: lambda p: optim.SGD(p, lr=0.1) for n in ("all samples", "batches of 4")}
    seen = inspect.optimizer_paths(
        nn.Linear(2, 1),
        rates,
        loss=F.mse_loss,
        data=(x, y),
        steps=40,
        batch_size={"batches of 4": 4},
    )
    rises = {n: sum(b > a for a, b in itertools.pairwise(v)) for n, v in seen.values.items()}
    assert rises["all samples"] == 0
    assert rises["batches of 4"] >= 5
    whole = inspect.optimizer_paths(
        nn.Linear(2, 1), rates, loss=F.mse_loss, data=(x, y), steps=3, batch_size=64, points=5
    )
    one, other = whole.values.values()
    np.testing.assert_allclose(one, other, rtol=1e-6)


def test_momentum_damps_the_valley_and_crosses_the_plateau() -> None:
    def valley(w: Tensor) -> Tensor:
        return 0.5 * (w[0] ** 2 + 40 * w[1] ** 2)

    def plateau(w: Tensor) -> Tensor:
        return -chainrule.exp(-0.5 * (w**2).sum() / 2)

    plain, heavy = (lambda p: optim.SGD(p, lr=0.045)), (lambda p: optim.SGD(p, 0.045, momentum=0.7))
    made = {"gradient": plain, "momentum": heavy}
    start = chainrule.tensor([5.0, 1.0])
    seen = inspect.optimizer_paths(valley, made, start, steps=40, points=9)
    across = {n: [at[1] for at in path] for n, path in seen.points.items()}
    turns = {n: sum(a * b < 0 for a, b in itertools.pairwise(v)) for n, v in across.items()}
    assert turns["gradient"] == 40  # from one side to the other in every step
    assert turns["momentum"] < 40
    assert seen.values["momentum"][-1] < 0.1 * seen.values["gradient"][-1]
    flat = inspect.optimizer_paths(plateau, made, chainrule.tensor([4.5, 0.0]), steps=400, points=9)
    assert flat.values["momentum"][-1] < -0.9 < -0.1 < flat.values["gradient"][-1]


def test_standardized_inputs_make_round_contours() -> None:
    chainrule.manual_seed(0)
    raw = chainrule.randn(200, 2) * chainrule.tensor([10.0, 1.0])
    y = raw @ chainrule.tensor([[0.1], [1.0]])
    net = nn.Linear(2, 1, bias=False)
    axes = (chainrule.tensor([1.0, 0.0]), chainrule.tensor([0.0, 1.0]))

    def stretch(x: Tensor) -> float:
        """How much steeper the surface is in one direction than in the other."""
        seen = inspect.landscape(net, F.mse_loss, (x, y), directions=axes, points=5)
        rise = [seen.values[2, 4] + seen.values[2, 0], seen.values[4, 2] + seen.values[0, 2]]
        bends = [float(r) - 2 * seen.center for r in rise]
        return max(bends) / min(bends)

    scaled = (raw - raw.mean(0)) / raw.std(0)
    moments = (raw**2).mean(0)
    assert stretch(raw) == pytest.approx(float(moments[0] / moments[1]), rel=1e-3)
    assert stretch(raw) > 50
    assert stretch(scaled) == pytest.approx(1, abs=0.01)


def test_a_radial_target_under_its_samples() -> None:
    chainrule.manual_seed(0)
    x = 4 * chainrule.rand(50, 2) - 2

    def radial(x: Tensor) -> Tensor:
        return chainrule.exp(-(x**2).sum(1))

    seen = inspect.regions(radial, x, radial(x), points=41)
    distance = np.hypot(*np.meshgrid(seen.x.numpy(), seen.y.numpy()))  # type: ignore[union-attr]
    np.testing.assert_allclose(seen.values.numpy(), np.exp(-(distance**2)), atol=1e-6)
    ax = seen.plot()
    (dots,) = ax.collections
    np.testing.assert_allclose(np.asarray(dots.get_offsets()), x.numpy(), atol=1e-6)
    np.testing.assert_allclose(np.asarray(dots.get_array()), radial(x).numpy(), atol=1e-6)


@pytest.mark.parametrize(
    "settings",
    [
        {"kernel_size": 3},
        {"stride": 2},
        {"padding": 2},
        {"dilation": 2},
        {"padding": 1, "stride": 3},
    ],
)
def test_feature_maps_for_kernel_stride_padding_and_dilation(settings: dict[str, int]) -> None:
    torch = pytest.importorskip("torch")
    options = {"kernel_size": 5} | settings
    layer, other = nn.Conv2d(1, 4, **options), torch.nn.Conv2d(1, 4, **options)
    layer.load_state_dict(
        {k: chainrule.from_numpy(v.detach().numpy()) for k, v in other.state_dict().items()}
    )
    image = chainrule.randn(1, 1, 17, 17)
    seen = inspect.feature_maps(nn.Sequential(layer, nn.Tanh()), image, layer="1")
    expected = other(torch.tensor(image.numpy())).tanh().detach().numpy()
    np.testing.assert_allclose(seen.maps.numpy(), expected, rtol=1e-5, atol=1e-6)


def test_maps_of_convolution_average_and_maximum() -> None:
    image = chainrule.randn(2, 1, 8, 8)
    blocks = image.numpy().reshape(2, 1, 4, 2, 4, 2)
    mean = inspect.feature_maps(nn.Sequential(nn.AvgPool2d(2)), image, layer="0").maps.numpy()
    largest = inspect.feature_maps(nn.Sequential(nn.MaxPool2d(2)), image, layer="0").maps.numpy()
    np.testing.assert_allclose(mean, blocks.mean((3, 5)), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(largest, blocks.max((3, 5)))
    quarter = nn.Conv2d(1, 1, 2, stride=2, bias=False)
    quarter.load_state_dict({"weight": chainrule.full((1, 1, 2, 2), 0.25)})
    same = inspect.feature_maps(nn.Sequential(quarter), image).maps.numpy()
    np.testing.assert_allclose(same, mean, rtol=1e-5, atol=1e-6)
