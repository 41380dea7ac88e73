"""The rows of ``gpu.py`` written by hand for JAX: pure functions, jitted, with donated state.

The weights are lists in the order of ``named_parameters`` of the same network in chainrule, so that
the first losses of all libraries are the same. Products follow ``jax_default_matmul_precision``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp

__all__ = ["Training", "gpt", "hessian_product", "lstm", "mlp", "resnet18"]

Array = Any
Loss = Callable[..., Any]


# --- updates --------------------------------------------------------------------------------------


def adam(params: Any, grads: Any, moments: Any, t: Array, decay: float = 0.0) -> Any:
    """Adam with PyTorch's defaults, and AdamW with a ``decay``."""
    c1, c2 = 1 - 0.9**t, 1 - 0.999**t

    def one(p: Array, g: Array, s: Any) -> Any:
        m, v = 0.9 * s[0] + 0.1 * g, 0.999 * s[1] + 0.001 * g * g
        return p * (1 - 1e-3 * decay) - 1e-3 * (m / c1) / (jnp.sqrt(v / c2) + 1e-8), (m, v)

    new = [one(*row) for row in zip(params, grads, moments, strict=True)]
    return [p for p, _ in new], [s for _, s in new]


def adamw(params: Any, grads: Any, moments: Any, t: Array) -> Any:
    """AdamW with PyTorch's defaults."""
    return adam(params, grads, moments, t, 0.01)


def sgd(params: Any, grads: Any, moments: Any, t: Array) -> Any:
    """SGD with a momentum of 0.9."""
    moments = [(0.9 * s[0] + g,) for s, g in zip(moments, grads, strict=True)]
    return [p - 1e-3 * s[0] for p, s in zip(params, moments, strict=True)], moments


class Training:
    """A jitted step, and a scan over many, of a loss ``(params, extra, *batch) -> loss, extra``."""

    def __init__(self, loss: Loss, params: Any, update: Any, extra: Any = ()):
        one = update is sgd
        params = [jnp.array(p) for p in params]
        moments = [(jnp.zeros_like(p), *([] if one else [jnp.zeros_like(p)])) for p in params]
        self.state = (params, moments, extra, jnp.float32(1))

        def step(state: Any, batch: Any) -> Any:
            params, moments, extra, t = state
            of = jax.value_and_grad(loss, has_aux=True)
            (value, extra), grads = of(params, extra, *batch)
            params, moments = update(params, grads, moments, t)
            return (params, moments, extra, t + 1), value

        self.single = jax.jit(step, donate_argnums=0)

        def scan(state: Any, data: Any) -> Any:
            return jax.lax.scan(step, state, data)

        self.scan = jax.jit(scan, donate_argnums=0)

    @staticmethod
    def array(values: Any) -> Array:
        """An array of JAX's."""
        return jnp.asarray(values)

    def steps(self, batch: Any, times: int) -> float:
        """So many single steps; waits for the last loss."""
        for _ in range(times):
            self.state, value = self.single(self.state, batch)
        return float(value)

    def epoch(self, data: Any) -> Array:
        """A step for each batch of the data, in one call; their losses, not waited for."""
        self.state, values = self.scan(self.state, data)
        return values


def cross_entropy(logits: Array, y: Array) -> Array:
    """The mean of -log softmax at y."""
    logs = jax.nn.log_softmax(logits)
    return -jnp.take_along_axis(logs, y[:, None], 1).mean()


# --- networks -------------------------------------------------------------------------------------


def _perceptron(params: Any, x: Array) -> Array:
    layers = list(zip(params[::2], params[1::2], strict=True))
    for w, b in layers[:-1]:
        x = jax.nn.relu(x @ w.T + b)
    w, b = layers[-1]
    return x @ w.T + b


def mlp(params: Any) -> Training:
    """ReLU layers and cross-entropy, by Adam."""

    def loss(params: Any, extra: Any, x: Array, y: Array) -> Any:
        return cross_entropy(_perceptron(params, x), y), extra

    return Training(loss, params, adam)


def hessian_product(params: Any, x: Any, y: Any) -> Callable[[Any], Any]:
    """The Hessian of the perceptron's loss times a vector, jitted."""

    def loss(params: Any, x: Array, y: Array) -> Array:
        return cross_entropy(_perceptron(params, x), y)

    # What is not an argument is a constant, and most of the work would be done while compiling.
    product = jax.jit(lambda p, x, y, v: jax.jvp(lambda p: jax.grad(loss)(p, x, y), (p,), (v,))[1])
    params = [jnp.asarray(p) for p in params]
    return lambda v: product(params, x, y, v)


def resnet18(params: Any, narrow: Any = None) -> Training:
    """ResNet-18 for small images by SGD with momentum; ``narrow`` is the type of products."""

    def conv(x: Array, w: Array, stride: int) -> Array:
        pad = w.shape[2] // 2
        options: dict[str, Any] = {}
        if narrow is not None:
            x, w = x.astype(narrow), w.astype(narrow)
            options = {"preferred_element_type": narrow}
        return jax.lax.conv_general_dilated(
            x, w, (stride, stride), [(pad, pad)] * 2, dimension_numbers=("NCHW", "OIHW", "NCHW"),
            **options,
        )  # fmt: skip

    def norm(x: Array, w: Array, b: Array, extra: Iterator[Any], new: list[Any]) -> Array:
        mean_before, var_before = next(extra)
        z = x.astype(jnp.float32)
        mean = z.mean((0, 2, 3))
        var = jnp.square(z).mean((0, 2, 3)) - jnp.square(mean)  # in one pass
        new.append((0.9 * mean_before + 0.1 * mean, 0.9 * var_before + 0.1 * var))
        scale = w * jax.lax.rsqrt(var + 1e-5)
        out = z * scale[:, None, None] + (b - mean * scale)[:, None, None]
        return out.astype(x.dtype)

    def loss(params: Any, extra: Any, x: Array, y: Array) -> Any:
        p, e, new = iter(params), iter(extra), []

        def normed(x: Array, stride: int = 1) -> Array:
            return norm(conv(x, next(p), stride), next(p), next(p), e, new)

        x = jax.nn.relu(normed(x))
        for stage in range(4):
            for i in range(2):
                stride = 2 if stage and not i else 1
                out = normed(jax.nn.relu(normed(x, stride)))
                x = jax.nn.relu(out + (normed(x, stride) if stride == 2 else x))
        x = x.astype(jnp.float32).mean((2, 3))
        return cross_entropy(x @ next(p).T + next(p), y), new

    widths = [64] * 5 + [w for n in (128, 256, 512) for w in [n] * 5]
    return Training(loss, params, sgd, [(jnp.zeros(n), jnp.ones(n)) for n in widths])


def lstm(params: Any) -> Training:
    """One layer of LSTM and a linear layer over its last state; squared error, by Adam."""

    def loss(params: Any, extra: Any, x: Array, y: Array) -> Any:
        w_x, w_h, b_x, b_h, w, b = params
        given = jnp.swapaxes(x @ w_x.T + (b_x + b_h), 0, 1)
        zero = jnp.zeros((x.shape[0], w_h.shape[1]))

        def step(state: Any, a: Array) -> Any:
            h, c = state
            i, f, g, o = jnp.split(a + h @ w_h.T, 4, 1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

        (h, _), _ = jax.lax.scan(step, (zero, zero), given)
        return jnp.square(h @ w.T + b - y).mean(), extra

    return Training(loss, params, adam)


def gpt(params: Any, layers: int, heads: int, narrow: Any = None) -> Training:
    """A language model of letters after GPT-2, by AdamW."""

    def cast(a: Array) -> Array:
        return a if narrow is None else a.astype(narrow)

    def linear(x: Array, w: Array, b: Array | None = None) -> Array:
        out = cast(x) @ cast(w).T
        return out if b is None else out + cast(b)

    def norm(x: Array, w: Array, b: Array) -> Array:
        z = x.astype(jnp.float32)
        d = z - z.mean(-1, keepdims=True)
        out = d * jax.lax.rsqrt(jnp.square(d).mean(-1, keepdims=True) + 1e-5) * w + b
        return out.astype(x.dtype)

    def attend(x: Array, w: Array, b: Array) -> Array:
        n, length, width = x.shape
        q, k, v = jnp.split(linear(x, w, b).reshape(n, length, 3 * heads, -1), 3, 2)
        y = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        return y.reshape(n, length, width)

    def loss(params: Any, extra: Any, x: Array, y: Array) -> Any:
        words, places, *rest = params
        h = words[x] + places[: x.shape[1]]
        for i in range(layers):
            n1w, n1b, n2w, n2b, qw, qb, ow, ob, uw, ub, dw, db = rest[12 * i : 12 * i + 12]
            h = h + linear(attend(norm(h, n1w, n1b), qw, qb), ow, ob)
            up = jax.nn.gelu(linear(norm(h, n2w, n2b), uw, ub), approximate=False)
            h = h + linear(up, dw, db)
        norm_w, norm_b, head = rest[12 * layers :]
        logits = linear(norm(h, norm_w, norm_b), head).astype(jnp.float32)
        return cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1)), extra

    return Training(loss, params, adamw)
