"""The rows of ``compiled.py`` as jitted steps and scans of JAX, where it is installed."""

from __future__ import annotations

import importlib.util
import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["jax_functions", "jax_training"]

Candidates = dict[str, Callable[[], Any]]
if importlib.util.find_spec("jax") is not None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import jax
        import jax.numpy as jnp

    ready = jax.block_until_ready

rng = np.random.default_rng(0)


# --- what is trained ------------------------------------------------------------------------------


def _weights(widths: list[int]) -> Any:
    return [
        (jnp.asarray(rng.normal(size=(n, m)) / np.sqrt(n), jnp.float32), jnp.zeros(m))
        for n, m in itertools.pairwise(widths)
    ]


def _outputs(weights: Any, x: Any, activation: Any) -> Any:
    for w, b in weights[:-1]:
        x = activation(x @ w + b)
    return x @ weights[-1][0] + weights[-1][1]


def _cross_entropy(outputs: Any, y: Any) -> Any:
    return -jnp.take_along_axis(jax.nn.log_softmax(outputs), y[:, None], 1).mean()


def _classifier(widths: list[int], activation: str, batch: int) -> Any:
    """Loss, parameters and one batch; samples of all steps are made from it."""
    act = getattr(jax.nn if activation == "relu" else jnp, activation)
    x = jnp.asarray(rng.normal(size=(batch, widths[0])), jnp.float32)
    y = jnp.arange(batch) % widths[-1]
    return lambda w, x, y: _cross_entropy(_outputs(w, x, act), y), _weights(widths), (x, y)


def _regression() -> Any:
    x = jnp.asarray(rng.normal(size=(100, 2)), jnp.float32)
    loss = lambda w, x, y: ((_outputs(w, x, jnp.tanh) - y) ** 2).mean()  # noqa: E731
    return loss, _weights([2, 100, 100, 1]), (x, x[:, :1] * x[:, 1:])


def _xor() -> Any:
    x = jnp.asarray([[0, 0], [0, 1], [1, 0], [1, 1]], jnp.float32)
    y = jnp.asarray([[0], [1], [1], [0]], jnp.float32)

    def loss(w: Any) -> Any:
        p = jax.nn.sigmoid(_outputs(w, x, jax.nn.sigmoid))
        return -(y * jnp.log(p) + (1 - y) * jnp.log(1 - p)).mean()

    return loss, _weights([2, 4, 1]), ()


def _surface() -> Any:
    def loss(w: Any) -> Any:
        x, y = w
        return (1 - x) ** 2 + 100 * (y - x * x) ** 2

    return loss, (jnp.float32(-1.0), jnp.float32(1.5)), ()


def _chain() -> Any:
    def loss(w: Any) -> Any:
        a = jnp.tanh(w * 2 + 1)
        b = jax.nn.sigmoid(a * w - 0.5)
        return ((a * b + jnp.exp(w) * 0.01 - b / (1 + a * a)) ** 2).mean()

    return loss, jnp.asarray(rng.normal(size=(256, 1024)), jnp.float32), ()


# --- how ------------------------------------------------------------------------------------------


def _adam(p: Any, g: Any, s: Any, t: Any, decay: float = 0.0) -> Any:
    m, v = 0.9 * s[0] + 0.1 * g, 0.999 * s[1] + 0.001 * g * g
    step = 1e-3 * m / (1 - 0.9**t) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return p * (1 - 1e-3 * decay) - step, (m, v)


def _adamw(p: Any, g: Any, s: Any, t: Any) -> Any:
    return _adam(p, g, s, t, 0.01)


def _sgd(p: Any, g: Any, s: Any, t: Any) -> Any:
    return p - 1e-4 * g, s


def _rmsprop(p: Any, g: Any, s: Any, t: Any) -> Any:
    v = 0.99 * s[0] + 0.01 * g * g
    return p - 1e-4 * g / (jnp.sqrt(v) + 1e-8), (v, s[1])


def _adadelta(p: Any, g: Any, s: Any, t: Any) -> Any:
    v = 0.9 * s[0] + 0.1 * g * g
    d = jnp.sqrt(s[1] + 1e-6) / jnp.sqrt(v + 1e-6) * g
    return p - 1e-4 * d, (v, 0.9 * s[1] + 0.1 * d * d)


TRAININGS: dict[str, Callable[[], Any]] = {
    "4-8-3, batch 5, Adam": lambda: (_classifier([4, 8, 3], "relu", 5), _adam),
    "ten layers of 5, batch 5, Adam": lambda: (_classifier([4, *[5] * 10, 3], "relu", 5), _adam),
    "XOR of raw tensors, SGD": lambda: (_xor(), _sgd),
    "surface of raw numbers, SGD": lambda: (_surface(), _sgd),
    "surface of raw numbers, Adam": lambda: (_surface(), _adam),
    "surface of raw numbers, RMSprop": lambda: (_surface(), _rmsprop),
    "surface of raw numbers, Adadelta": lambda: (_surface(), _adadelta),
    "64-32-10, batch 32, Adam": lambda: (_classifier([64, 32, 10], "tanh", 32), _adam),
    "2-100-100-1, batch 100, AdamW": lambda: (_regression(), _adamw),
    "784-512x3-10, batch 128, Adam": lambda: (
        _classifier([784, 512, 512, 512, 10], "relu", 128),
        _adam,
    ),
    "elementwise chain, 256x1024": lambda: (_chain(), _sgd),
}


def jax_training(label: str, steps: int) -> Candidates:
    """A jitted step, and a scan over so many, each until its result is there."""
    if importlib.util.find_spec("jax") is None or label not in TRAININGS:
        return {}
    (loss, params, batch), update = TRAININGS[label]()

    def step(state: Any, batch: Any) -> Any:
        params, moments, t = state
        value, grads = jax.value_and_grad(loss)(params, *batch)
        flat, tree = jax.tree_util.tree_flatten(params)
        new = [
            update(p, g, s, t)
            for p, g, s in zip(flat, jax.tree_util.tree_leaves(grads), moments, strict=True)
        ]
        params = jax.tree_util.tree_unflatten(tree, [p for p, _ in new])
        return (params, [s for _, s in new], t + 1), value

    moments = [(jnp.zeros_like(p), jnp.zeros_like(p)) for p in jax.tree_util.tree_leaves(params)]
    single, state = jax.jit(step), [(params, moments, jnp.float32(1))]
    many = tuple([jnp.stack([part] * steps) for part in batch])
    scan = jax.jit(lambda state, many: jax.lax.scan(step, state, many, length=steps))

    def one() -> None:
        state[0], value = single(state[0], batch)
        ready(value)

    def all_() -> None:
        state[0], values = scan(state[0], many)
        ready(values)

    return {"jax.jit": one, "scan": all_}


def jax_functions(label: str) -> Candidates:
    """A jitted function."""
    if importlib.util.find_spec("jax") is None:
        return {}
    if "131" in label:
        function, arguments = _of_small_loss(label)
    elif label.startswith(("4-8-3", "ten")):
        weights = _weights([4, 8, 3] if label.startswith("4") else [4, *[5] * 10, 3])
        function = lambda x: _outputs(weights, x, jax.nn.relu)  # noqa: E731
        arguments = (jnp.ones((1, 4)),)
    else:
        return {}
    jitted = jax.jit(function)
    return {"jax.jit": lambda: ready(jitted(*arguments))}


def _of_small_loss(label: str) -> Any:
    x, y = jnp.asarray(rng.normal(size=(30, 4)), jnp.float32), jnp.arange(30) % 3

    def loss(w: Any) -> Any:
        h = jnp.tanh(x @ w[:64].reshape(4, 16) + w[64:80])
        return _cross_entropy(h @ w[80:128].reshape(16, 3) + w[128:131], y)

    w = jnp.asarray(rng.normal(size=131) * 0.3, jnp.float32)
    if label.startswith("Hessian-vector"):
        return lambda w, v: jax.jvp(jax.grad(loss), (w,), (v,))[1], (w, jnp.ones(131))
    return (jax.hessian(loss) if label.startswith("Hessian") else jax.grad(loss)), (w,)
