"""The examples of the course run, mended where the errata say so, and show what they claim."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import chainrule
from chainrule import nn, optim


@pytest.fixture
def example() -> object:
    return lambda name: importlib.import_module(f"chainrule.atlas.course.{name}")


def test_example_1_a_layer_of_neurons(example) -> None:  # type: ignore[no-untyped-def]
    assert example("ex01_neuron").main() == (5, 10)


def test_example_2_a_multi_layer_perceptron(example) -> None:  # type: ignore[no-untyped-def]
    assert example("ex02_mlp").main() == 784 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10


def test_example_3_an_image_as_a_tensor(example) -> None:  # type: ignore[no-untyped-def]
    image = example("ex03_image").main()
    assert image.shape == (1, 3, 188, 257)
    assert 0 <= image.min().item() < image.max().item() <= 1


def test_example_4_filters(example) -> None:  # type: ignore[no-untyped-def]
    shapes = [s[2:] for s in example("ex04_filters").main()]
    assert shapes == [(188, 257), (188, 257), (184, 253), (94, 129), (170, 239)]


def test_example_5_pooling(example) -> None:  # type: ignore[no-untyped-def]
    maps = example("ex05_pooling").main()
    assert maps["convolution"].shape == (1, 4, 188, 257)
    assert maps["average pooling"].shape == maps["maximum pooling"].shape == (1, 3, 188, 257)
    assert (maps["maximum pooling"] >= maps["average pooling"]).all()


def test_example_6_a_convolutional_classifier(example) -> None:  # type: ignore[no-untyped-def]
    assert example("ex06_classifier").main() > 0.9


@pytest.mark.parametrize("name", ["ex07_rnn", "ex08_lstm"])
def test_examples_7_and_8_recurrent_networks(example, name) -> None:  # type: ignore[no-untyped-def]
    first, last = example(name).main()
    assert last < 0.3 * first


def test_example_9_dies_with_the_sum_and_learns_with_the_mean(example) -> None:  # type: ignore[no-untyped-def]
    result = example("ex09_x07_exponential").main(epochs=30, seeds=2)
    assert result["sum"] == pytest.approx([3874.4] * 2, abs=0.05)  # the output is 0 for ever
    assert result["zero"] == pytest.approx([3874.4], abs=0.05)
    assert result["mean"] == pytest.approx([154.6] * 2, abs=0.05)
    assert result["line"] == pytest.approx([152.5], abs=0.05)


def test_examples_10_to_15_optimizers(example) -> None:  # type: ignore[no-untyped-def]
    module = example("ex10_ex15_optimizers")
    result = module.main(epochs=30)
    assert set(module.EXAMPLES) < set(result)
    last = {name: errors[-1] for name, errors in result.items() if name != "parabola"}
    assert last["9 SGD"] == pytest.approx(154.6, abs=0.05)
    assert max(last.values()) < 3874.4  # all of them learn
    assert last["14 Adadelta"] > last["12 AdaGrad"] > last["15 Adam"] > last["13 RMSprop"]
    # Momentum 0.5 / eta = 5 as printed, against the recursion by hand.
    w, v = 1.0, 0.0
    for _ in range(30):
        v = 5 * v + w
        w -= 0.1 * v
    assert w == pytest.approx(-1.4e19, rel=0.05)
    assert result["parabola"][1] == pytest.approx(w, rel=1e-9)
    assert abs(result["parabola"][0]) < 1e-3


def _adam_by_hand(start: tuple[float, float], steps: int) -> np.ndarray:
    """Adam with rate 20 on equation 78, from its formulas."""
    t, m, v = np.array(start), np.zeros(2), np.zeros(2)
    for i in range(1, steps + 1):
        g = np.array(
            [
                8 * 0.15 * np.sin(2 * (0.15 * t[0] - 3)) + 0.6 / 5 * (t[0] / 5 - 12),
                -8 / 10 * np.sin(2 * (t[1] / 10 - 2)) + 0.6 / 10 * (t[1] / 10 - 8),
            ]
        )
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        t = t - 20 * m / (1 - 0.9**i) / (np.sqrt(v / (1 - 0.999**i)) + 1e-8)
    return t


def test_example_16_the_landscape(example) -> None:  # type: ignore[no-untyped-def]
    module = example("ex16_x06_landscape")
    lowest = np.array([61.770, 67.590])
    away = [np.linalg.norm(np.array(start) - lowest) for start in module.STARTS]
    assert away == pytest.approx([99.53, 36.65], abs=0.01)  # (45, 35) is the nearer one
    results = module.main(steps=400, copies=2)
    exact, single = results.values()
    for run in (exact, single):
        assert run["SGD g=.7 t=.6", 0]["at the minimum"] == 1
        assert run["SGD g=.7 t=.6", 1]["at the minimum"] == 0
        assert run["SGD g=.7 t=.6", 0]["end"] == pytest.approx(lowest, abs=1e-3)
        for name, nearest in (("Adadelta a=.9", 30), ("RMSprop a=.9 lr=12", 3), ("Adam", 3)):
            assert run[name, 1]["at the minimum"] == 0
            # In float32 how near a run comes follows from the rounding of its sines.
            assert exact[name, 1]["nearest"] > nearest
        assert run["RMSprop g=.5 a=.5", 0]["moving"] > 1
    # Rounding is enough to send some runs elsewhere.
    assert any(np.hypot(*np.subtract(exact[k]["end"], single[k]["end"])) > 5 for k in exact)


def test_example_16_runs_adam(example) -> None:  # type: ignore[no-untyped-def]
    module = example("ex16_x06_landscape")
    ends = module.run(30, 1, chainrule.float64)
    for j, start in enumerate(module.STARTS):
        assert ends["Adam", j]["end"] == pytest.approx(_adam_by_hand(start, 30), abs=1e-8)


def test_example_17_gradient_descent_finds_the_least_squares(example) -> None:  # type: ignore[no-untyped-def]
    module = example("ex17_x08_gradient_descent")
    x, y = (t.double().numpy().ravel() for t in module.points(10.1842550, 1.0, 0.1))
    result = module.main()
    assert result["least squares"] == pytest.approx(np.polyfit(x, y, 1), abs=1e-9)
    assert result["found"] == pytest.approx((17.1042, 23.7503), abs=2e-4)


def test_example_18_the_classifier_of_irises(example) -> None:  # type: ignore[no-untyped-def]
    # PyTorch's program with 200 seeds: 0.574 +- 0.172; the seed 0 of the course gives 0.60.
    seeds = 16
    result = example("ex18_x09_iris").main(seeds=seeds)
    assert np.mean(result["last"]) == pytest.approx(0.574, abs=3 * 0.172 / np.sqrt(seeds))
    assert np.std(result["last"]) > 0.05
    assert all(best >= last for best, last in zip(result["best"], result["last"], strict=True))


def test_example_18_learns_in_the_end(example) -> None:  # type: ignore[no-untyped-def]
    history, h_theta = example("ex18_x09_iris").train(seed=0, epochs=60)
    assert max(history) > 0.9
    assert [tuple(p.shape) for p in h_theta.parameters()] == [(8, 4), (8,), (3, 8), (3,)]


def _one_by_one(module: ModuleType, activation: Any, seed: int, epochs: int) -> list[float]:
    """One network trained alone; the norm of the gradient of each weight at the end."""
    chainrule.manual_seed(seed)
    h_theta = module.network(activation)
    x, _, y, _ = module.split(seed)
    optimizer = optim.Adam(h_theta.parameters(), lr=0.001)
    norms = []
    for epoch in range(epochs + 1):
        for i in range(0, 105, 5):
            optimizer.zero_grad()
            nn.functional.cross_entropy(h_theta(x[i : i + 5]), y[i : i + 5]).backward()
            if epoch < epochs:
                optimizer.step()
                continue
            weights = [p for n, p in h_theta.named_parameters() if n.endswith("weight")]
            norms.append([float(np.linalg.norm(p.grad.numpy())) for p in weights])
    return list(np.mean(norms, 0))


@pytest.mark.parametrize("activation", [nn.Tanh, nn.ReLU])
def test_example_19_trains_every_seed_as_alone(example, activation) -> None:  # type: ignore[no-untyped-def]
    module = example("ex19_x10_vanishing")
    runs = module.train(activation, 3, 2)
    for seed, run in enumerate(runs):
        alone = _one_by_one(module, activation, seed, 2)
        assert run["last"] == pytest.approx(alone, rel=1e-2, abs=1e-8)


def test_example_19_relu_does_not_prevent_vanishing_gradients(example) -> None:  # type: ignore[no-untyped-def]
    module = example("ex19_x10_vanishing")
    results = module.main(epochs=3, seeds=20)
    for runs in results.values():
        ratios = [r["first"][0] / r["first"][-1] for r in runs]
        assert np.median(ratios) < 0.02  # ten layers shrink the gradient in both
    assert not any(map(module.dead, results["tanh"]))
    assert sum(map(module.dead, results["ReLU"])) >= 1


def _line_by_hand(x: np.ndarray, y: np.ndarray, beta: float, nesterov: bool) -> np.ndarray:
    """Algorithms 1-3 of document 001 with a new sample for every iteration."""
    theta, v = np.array([10.0, 5.0]), np.zeros(2)
    for x_i, y_i in zip(x, y, strict=True):
        at = theta + beta * v if nesterov else theta
        error = y_i - at[0] - at[1] * x_i
        v = beta * v + 0.005 * 2 * error * np.array([1, x_i])
        theta = theta + v
    return theta


@pytest.mark.parametrize(("beta", "nesterov"), [(0.0, False), (0.6, False), (0.8, True)])
def test_line_follows_the_algorithms_of_001(example, beta, nesterov) -> None:  # type: ignore[no-untyped-def]
    module = example("x01_x03_line")
    x, y = module.data(-3.0, 3.0, 2, chainrule.Generator().manual_seed(1))
    index = chainrule.randint(0, 30, (50, 2), generator=chainrule.Generator().manual_seed(2))
    theta = module.descend(x, y, index, beta, nesterov)
    for run in range(2):
        picked = index[:, run].numpy()
        expected = _line_by_hand(x.numpy()[run, picked], y.numpy()[run, picked], beta, nesterov)
        assert theta[:, run].tolist() == pytest.approx(expected, abs=1e-12)


def test_line_gives_the_printed_numbers_for_symmetric_inputs(example) -> None:  # type: ignore[no-untyped-def]
    symmetric, positive = (-3.0, 3.0), (0.0, 1.0)
    results = example("x01_x03_line").main(runs=300, ranges=(symmetric, positive))
    far = {k: np.abs(v[2]) for k, v in results.items()}
    assert far["X01 SGD", symmetric].max() < 1.5
    assert far["X02 momentum", symmetric].max() < 1.7
    assert 1.4 < far["X03 Nesterov", symmetric][0] < 2.4  # the offset is low
    assert far["X01 SGD", positive].min() > 2.5
    assert far["X02 momentum", positive].min() > 2


def _xor_by_hand(params: list[np.ndarray], epochs: int) -> np.ndarray:
    """Which 2-4-1 networks learn XOR by full batches: forward, backward and momentum by hand."""

    def sigmoid(z: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-z))

    def outputs() -> tuple[np.ndarray, np.ndarray]:
        h = sigmoid(x @ w1.swapaxes(1, 2) + b1[:, None])
        return h, sigmoid(h @ w2.swapaxes(1, 2) + b2[:, None])

    x, y = np.array([[0, 0], [0, 1], [1, 0], [1, 1.0]]), np.array([[0], [1], [1], [0.0]])
    w1, b1, w2, b2 = params = [p.astype(float) for p in params]
    velocity = [np.zeros_like(p) for p in params]
    for _ in range(epochs):
        h, a = outputs()
        d = (a - y) / 4
        d_h = d @ w2 * h * (1 - h)
        grads = [d_h.swapaxes(1, 2) @ x, d_h.sum(1), d.swapaxes(1, 2) @ h, d.sum(1)]
        for p, v, g in zip(params, velocity, grads, strict=True):
            v *= 0.99
            v += g
            p -= 0.1 * v
    return ((outputs()[1] > 0.5) == (y > 0.5)).all((1, 2))


def test_xor_restarts_learn_as_by_hand(example) -> None:  # type: ignore[no-untyped-def]
    module = example("x04_xor_restarts")
    for init in module.PRINTED:
        starts = []
        for seed in range(40):
            chainrule.manual_seed(seed)
            starts.append([p.detach().numpy() for p in module.network(init).parameters()])
        params = [np.stack(p) for p in zip(*starts, strict=True)]
        fits = module.restarts(init, 40, epochs=300)
        assert fits.jobs == 1
        wrong = np.array(module.learned(fits.models)) != _xor_by_hand(params, 300)
        assert wrong.sum() <= 1  # a start on the edge may go either way


def test_xor_restarts_fail_as_often_as_measured(example) -> None:  # type: ignore[no-untyped-def]
    # Over 400 starts: 49 % and 1.8 %; the course has 6 and 0 of 20.
    count = 150
    failures = example("x04_xor_restarts").main(count=count, batches=(4,))
    for init, rate in (("U(-10, 10)", 0.49), ("LeCun", 0.018)):
        error = np.sqrt(rate * (1 - rate) * (1 / count + 1 / 400))
        assert failures[init, 4] / count == pytest.approx(rate, abs=3 * error)
