"""Other libraries, where they have the model: scikit-learn's MLP, and jitted steps of JAX.

Each entry makes the work of the row of its name in ``workloads.py``, on the same data.
"""

from __future__ import annotations

import importlib.util
import itertools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from workloads import MNIST_MLP, Work, mlp_weights, samples

__all__ = ["jax_steps", "sklearn_steps"]

Steps = dict[str, Callable[[], Work]]


def sklearn_steps() -> Steps:
    """One ``partial_fit`` with a batch: forward, backward, Adam."""
    if importlib.util.find_spec("sklearn") is None:
        return {}
    from sklearn.neural_network import MLPClassifier

    def step(hidden: Sequence[int], activation: str, pairs: Any, classes: int) -> Work:
        batch = len(pairs[0][0])
        model = MLPClassifier(
            tuple(hidden), activation=activation, batch_size=batch, alpha=0.0, shuffle=False
        )
        feed = itertools.cycle(pairs)
        model.partial_fit(*next(feed), classes=np.arange(classes))

        def work() -> None:
            model.partial_fit(*next(feed))

        return work

    return {
        "iris": lambda: step([8], "tanh", samples((4,), 5, 3, n=30), 3),
        "mnist": lambda: step(MNIST_MLP[1:-1], "relu", samples((784,), 128, 10), 10),
    }


def jax_steps() -> Steps:
    """One call of a jitted step from a Python loop, until its result is there."""
    if importlib.util.find_spec("jax") is None:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import jax
        import jax.numpy as jnp

    def cross_entropy(outputs: Any, labels: Any) -> Any:
        chances = jax.nn.log_softmax(outputs)
        return -jnp.take_along_axis(chances, labels[:, None], 1).mean()

    def mean_square(outputs: Any, targets: Any) -> Any:
        return ((jax.nn.sigmoid(outputs) - targets) ** 2).mean()

    def mlp(weights: Any, x: Any) -> Any:
        for w, b in weights[:-1]:
            x = jnp.tanh(x @ w.T + b)
        w, b = weights[-1]
        return x @ w.T + b

    def adam(p: Any, g: Any, state: Any, t: Any) -> Any:
        m, v = 0.9 * state[0] + 0.1 * g, 0.999 * state[1] + 0.001 * g * g
        step = 1e-3 * m / (1 - 0.9**t) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8)
        return p - step, (m, v)

    def momentum(p: Any, g: Any, state: Any, t: Any) -> Any:
        b = 0.9 * state[0] + g
        return p - 0.1 * b, (b,)

    def sgd(p: Any, g: Any, state: Any, t: Any) -> Any:
        return p - 1e-3 * g, ()

    def step(loss: Any, update: Any, parameters: list[Any], kept: int, data: Any) -> Work:
        flat, tree = jax.tree_util.tree_flatten(parameters)

        @jax.jit
        def jitted(flat: Any, states: Any, t: Any, *batch: Any) -> Any:
            value = lambda leaves: loss(jax.tree_util.tree_unflatten(tree, leaves), *batch)  # noqa: E731
            new = [
                update(p, g, s, t)
                for p, g, s in zip(flat, jax.grad(value)(flat), states, strict=True)
            ]
            return [p for p, _ in new], [s for _, s in new], t + 1

        feed = itertools.cycle([tuple(jnp.asarray(part) for part in batch) for batch in data])
        state = [
            flat,
            [tuple(jnp.zeros_like(p) for _ in range(kept)) for p in flat],
            jnp.float32(1),
        ]

        def work() -> None:
            state[:] = jitted(*state, *next(feed))
            jax.block_until_ready(state[0])

        return work

    def of_mlp(widths: Sequence[int], loss: Any, update: Any, kept: int, data: Any) -> Work:
        weights = [(jnp.asarray(w), jnp.asarray(b)) for w, b in mlp_weights(widths)]
        return step(lambda w, x, y: loss(mlp(w, x), y), update, weights, kept, data)

    def rosenbrock(w: Any) -> Any:
        x, y = w
        return (1 - x) ** 2 + 100 * (y - x * x) ** 2

    parity = np.array([[0], [1], [1], [0]], "float32")
    corners = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], "float32")
    small = samples((4,), 5, 3, n=30)
    return {
        "iris": lambda: of_mlp([4, 8, 3], cross_entropy, adam, 2, small),
        "xor": lambda: of_mlp(
            [2, 4, 1],
            mean_square,
            momentum,
            1,
            [(corners, parity)],
        ),
        "deep10": lambda: of_mlp([4, *[5] * 10, 3], cross_entropy, sgd, 0, small),
        "surface": lambda: step(rosenbrock, adam, [jnp.float32(-1.5), jnp.float32(2.0)], 2, [()]),
    }
