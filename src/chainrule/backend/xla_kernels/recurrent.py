"""Recurrent layers over a whole sequence: one scan, all gates in one product per step.

The arguments are those of the NumPy kernels. A product with the state is given as a function, so
that the same loops serve convolutions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from chainrule.backend.xla_kernels.conv import convolution, convolution_input
from chainrule.backend.xla_kernels.products import product as multiplied
from chainrule.backend.xla_kernels.special import sigmoid

__all__ = [
    "conv_lstm_sequence",
    "conv_lstm_sequence_backward",
    "conv_rnn_sequence",
    "conv_rnn_sequence_backward",
    "deep_rnn_sequence",
    "deep_rnn_sequence_backward",
    "gru_sequence",
    "gru_sequence_backward",
    "lstm_sequence",
    "lstm_sequence_backward",
    "peephole_sequence",
    "peephole_sequence_backward",
    "rnn_sequence",
    "rnn_sequence_backward",
    "state_weight_gradient",
    "time_steps",
]

Array = Any
Product = Callable[[Array], Array]


def time_steps(x: Array, dim: int) -> tuple[Array, ...]:
    """The slices along one dimension."""
    return tuple(jnp.moveaxis(x, dim, 0))


def _held(mask: Sequence[Array], like: Array, ndim: int) -> Array:
    """Where a sequence has ended (L, N, 1, ...), and its state is held."""
    if not mask:
        return jnp.zeros((like.shape[0], *[1] * (ndim - 1)), bool)
    pad = ~jnp.asarray(mask[0])
    return pad.reshape(*pad.shape, *[1] * (ndim - 2))


def _before(states: Array, first: Array, reverse: bool) -> Array:
    """The state that each step started from."""
    ends = (states[1:], first[None]) if reverse else (first[None], states[:-1])
    return jnp.concatenate(ends)


def state_weight_gradient(g: Array, states: Array, first: Array, *, reverse: bool) -> Array:
    """The gradient of w in h_{t-1} w' from that of the product, summed over steps and batch."""
    rows, size = g.shape[0] * g.shape[1], first.shape[-1]
    before = _before(states, first, reverse).reshape(rows, size)
    return multiplied(g.reshape(rows, g.shape[-1]).T, before)


# --- the simple network ---------------------------------------------------------------------------


def _activate(a: Array, nonlinearity: str) -> Array:
    if nonlinearity == "relu":
        return jnp.maximum(a, 0)
    return jnp.tanh(a) if nonlinearity == "tanh" else sigmoid(a)


def _slope_of(out: Array, nonlinearity: str) -> Array:
    if nonlinearity == "relu":
        return (out > 0).astype(out.dtype)
    return 1 - out * out if nonlinearity == "tanh" else out * (1 - out)


def _rnn(
    x: Array, h0: Array, product: Product, mask: Any, nonlinearity: str, reverse: bool
) -> Array:
    def step(h: Array, given: tuple[Array, Array]) -> tuple[Array, Array]:
        x_t, pad = given
        new = jnp.where(pad, h, _activate(product(h) + x_t, nonlinearity))
        return new, new

    return jax.lax.scan(step, h0, (x, _held(mask, x, x.ndim)), reverse=reverse)[1]


def _rnn_backward(
    g: Array, out: Array, product: Product, mask: Any, nonlinearity: str, reverse: bool
) -> tuple[Array, Array]:
    def step(carry: Array, given: tuple[Array, ...]) -> tuple[Array, Array]:
        g_t, slope, pad = given
        total = g_t + carry
        d = jnp.where(pad, jnp.zeros((), g.dtype), slope * total)
        return jnp.where(pad, total, product(d)), d

    first = jnp.zeros(out.shape[1:], out.dtype)
    given = (g, _slope_of(out, nonlinearity), _held(mask, g, g.ndim))
    carry, gx = jax.lax.scan(step, first, given, reverse=not reverse)
    return gx, carry


def rnn_sequence(
    x: Array, h0: Array, w: Array, *mask: Array, nonlinearity: str, reverse: bool
) -> Array:
    """h_t = g(x_t + h_{t-1} w')"""
    return _rnn(x, h0, lambda h: multiplied(h, w.T), mask, nonlinearity, reverse)


def rnn_sequence_backward(
    g: Array, out: Array, w: Array, *mask: Array, nonlinearity: str, reverse: bool
) -> tuple[Array, Array]:
    """The gradients of x and h0."""
    return _rnn_backward(g, out, lambda d: multiplied(d, w), mask, nonlinearity, reverse)


# --- LSTM -----------------------------------------------------------------------------------------


def _gates(a: Array, n: int) -> tuple[Array, ...]:
    return tuple([a[:, k : k + n] for k in range(0, 4 * n, n)])


def _lstm(
    x: Array,
    h0: Array,
    c0: Array,
    product: Product,
    projection: Array | None,
    mask: Any,
    reverse: bool,
) -> tuple[Array, Array, Array]:
    n = c0.shape[1]

    def step(state: Any, given: tuple[Array, Array]) -> Any:
        (h, c), (x_t, pad) = state, given
        i, f, g, o = _gates(x_t + product(h), n)
        i, f, g, o = sigmoid(i), sigmoid(f), jnp.tanh(g), sigmoid(o)
        new_c = f * c + i * g
        new_h = o * jnp.tanh(new_c)
        if projection is not None:
            new_h = multiplied(new_h, projection.T)
        new_h, new_c = jnp.where(pad, h, new_h), jnp.where(pad, c, new_c)
        return (new_h, new_c), (new_h, new_c, jnp.concatenate([i, f, g, o], 1))

    return jax.lax.scan(step, (h0, c0), (x, _held(mask, x, x.ndim)), reverse=reverse)[1]


def _lstm_backward(
    gh: Array,
    gc: Array,
    c_out: Array,
    gates: Array,
    c0: Array,
    product: Product,
    projection: Array | None,
    mask: Any,
    reverse: bool,
) -> tuple[Array, Array, Array, Array]:
    n, zero = c0.shape[1], jnp.zeros((), gh.dtype)

    def step(state: Any, given: tuple[Array, ...]) -> Any:
        gh_t, gc_t, c_t, a, c_before, pad = given
        i, f, g, o = _gates(a, n)
        total_h, total_c = gh_t + state[0], gc_t + state[1]
        gm = total_h if projection is None else multiplied(total_h, projection)
        t = jnp.tanh(c_t)
        cell = total_c + gm * o * (1 - t * t)
        parts = (
            cell * g * i * (1 - i),
            cell * c_before * f * (1 - f),
            cell * i * (1 - g * g),
            gm * t * o * (1 - o),
        )
        d = jnp.where(pad, zero, jnp.concatenate(parts, 1))
        carry = jnp.where(pad, total_h, product(d)), jnp.where(pad, total_c, cell * f)
        return carry, (d, jnp.where(pad, zero, total_h))

    first = jnp.zeros(gh.shape[1:], gh.dtype), jnp.zeros(c0.shape, gh.dtype)
    given = (gh, gc, c_out, gates, _before(c_out, c0, reverse), _held(mask, gh, gates.ndim))
    (carry_h, carry_c), (gx, arrived) = jax.lax.scan(step, first, given, reverse=not reverse)
    return gx, carry_h, carry_c, gh if projection is None else arrived


def lstm_sequence(
    x: Array, h0: Array, c0: Array, w: Array, *others: Array, projected: bool, reverse: bool
) -> tuple[Array, Array, Array]:
    """i, f, g, o = gates(x_t + h_{t-1} w'); c_t = f c_{t-1} + i g; h_t = o tanh(c_t) [w_hr']"""
    projection = others[0] if projected else None
    return _lstm(x, h0, c0, lambda h: multiplied(h, w.T), projection, others[projected:], reverse)


def lstm_sequence_backward(
    gh: Array,
    gc: Array,
    c_out: Array,
    gates: Array,
    c0: Array,
    w: Array,
    *others: Array,
    projected: bool,
    reverse: bool,
) -> tuple[Array, Array, Array, Array]:
    """The gradients of x, h0 and c0, and those that arrive at each h_t (for the projection)."""
    projection, mask = others[0] if projected else None, others[projected:]
    back = lambda d: multiplied(d, w)  # noqa: E731
    return _lstm_backward(gh, gc, c_out, gates, c0, back, projection, mask, reverse)


# --- GRU ------------------------------------------------------------------------------------------


def gru_sequence(
    x: Array, h0: Array, w: Array, b: Array, *mask: Array, reverse: bool
) -> tuple[Array, Array]:
    """r, z = sigmoid(x_t + h_{t-1} w' + b); n = tanh(x_t + r (h_{t-1} w' + b)), of their parts;
    h_t = (1 - z) n + z h_{t-1}"""
    n = h0.shape[-1]

    def step(h: Array, given: tuple[Array, Array]) -> Any:
        x_t, pad = given
        product = multiplied(h, w.T) + b
        rz = sigmoid(x_t[:, : 2 * n] + product[:, : 2 * n])
        q = product[:, 2 * n :]
        c = jnp.tanh(rz[:, :n] * q + x_t[:, 2 * n :])
        new = jnp.where(pad, h, (h - c) * rz[:, n:] + c)
        return new, (new, jnp.concatenate([rz, c, q], 1))

    return jax.lax.scan(step, h0, (x, _held(mask, x, 3)), reverse=reverse)[1]


def gru_sequence_backward(
    g: Array, out: Array, kept: Array, h0: Array, w: Array, *mask: Array, reverse: bool
) -> tuple[Array, Array, Array]:
    """The gradients of x, of h_{t-1} w' + b at every step, and of h0."""
    n, zero = h0.shape[-1], jnp.zeros((), g.dtype)

    def step(carry: Array, given: tuple[Array, ...]) -> Any:
        g_t, a, h, pad = given
        r, z, c, q = _gates(a, n)
        total = g_t + carry
        dc = total * (1 - z) * (1 - c * c)
        dz = total * (h - c) * (z * (1 - z))
        dr = dc * q * (r * (1 - r))
        gx = jnp.where(pad, zero, jnp.concatenate([dr, dz, dc], 1))
        gp = jnp.where(pad, zero, jnp.concatenate([dr, dz, dc * r], 1))
        return jnp.where(pad, total, multiplied(gp, w) + total * z), (gx, gp)

    given = (g, kept, _before(out, h0, reverse), _held(mask, g, 3))
    first = jnp.zeros(h0.shape, g.dtype)
    carry, (gx, gp) = jax.lax.scan(step, first, given, reverse=not reverse)
    return gx, gp, carry


# --- products that are convolutions ---------------------------------------------------------------


def _settings(w: Array, x: Array) -> dict[str, Any]:
    """A convolution with w that keeps the size of x."""
    ones = (1,) * (w.ndim - 2)
    padding = tuple([(k - 1) // 2 for k in w.shape[2:]])
    size = x.shape[-len(ones) :]
    return {"size": size, "stride": ones, "padding": padding, "dilation": ones, "groups": 1}


def conv_rnn_sequence(
    x: Array, h0: Array, w: Array, *mask: Array, nonlinearity: str, reverse: bool
) -> Array:
    """h_t = g(x_t + w * h_{t-1})"""
    settings = _settings(w, x)
    return _rnn(x, h0, lambda h: convolution(h, w, **settings), mask, nonlinearity, reverse)


def conv_rnn_sequence_backward(
    g: Array, out: Array, w: Array, *mask: Array, nonlinearity: str, reverse: bool
) -> tuple[Array, Array]:
    """The gradients of x and h0."""
    settings = _settings(w, out)
    spread = lambda d: convolution_input(d, w, **settings)  # noqa: E731
    return _rnn_backward(g, out, spread, mask, nonlinearity, reverse)


def conv_lstm_sequence(
    x: Array, h0: Array, c0: Array, w: Array, *mask: Array, reverse: bool
) -> tuple[Array, Array, Array]:
    """i, f, g, o = gates(x_t + w * h_{t-1}); c_t = f c_{t-1} + i g; h_t = o tanh(c_t)"""
    settings = _settings(w, x)
    return _lstm(x, h0, c0, lambda h: convolution(h, w, **settings), None, mask, reverse)


def conv_lstm_sequence_backward(
    gh: Array,
    gc: Array,
    c_out: Array,
    gates: Array,
    c0: Array,
    w: Array,
    *mask: Array,
    reverse: bool,
) -> tuple[Array, Array, Array, Array]:
    """The gradients of x, h0 and c0, and those of h (for the same rule as a projected LSTM)."""
    settings = _settings(w, c0)
    spread = lambda d: convolution_input(d, w, **settings)  # noqa: E731
    return _lstm_backward(gh, gc, c_out, gates, c0, spread, None, mask, reverse)


# --- layers between the states --------------------------------------------------------------------


def deep_rnn_sequence(
    x: Array, h0: Array, w: Array, *others: Array, layers: int, nonlinearity: str, reverse: bool
) -> tuple[Array, ...]:
    """a = g(x_t + h_{t-1} w'), then a = g(a w_k' + b_k) for each layer; the last one is h_t."""
    weights, biases = (w, *others[: 2 * layers : 2]), others[1 : 2 * layers : 2]

    def step(h: Array, given: tuple[Array, Array]) -> Any:
        x_t, pad = given
        a, values = h, []
        for k, v in enumerate(weights):
            a = _activate(multiplied(a, v.T) + (biases[k - 1] if k else x_t), nonlinearity)
            values.append(a)
        values[-1] = jnp.where(pad, h, a)
        return values[-1], (values[-1], *values[:-1])

    held = _held(others[2 * layers :], x, 3)
    return jax.lax.scan(step, h0, (x, held), reverse=reverse)[1]


def deep_rnn_sequence_backward(
    g: Array,
    values: Sequence[Array],
    matrices: Sequence[Array],
    *mask: Array,
    nonlinearity: str,
    reverse: bool,
) -> tuple[list[Array], Array]:
    """The gradients of what each layer activates to ``values``, and of h0."""
    slopes = tuple([_slope_of(a, nonlinearity) for a in values])

    def step(carry: Array, given: tuple[Any, ...]) -> Any:
        g_t, slope, pad = given
        total = g_t + carry
        back = jnp.where(pad, jnp.zeros((), g.dtype), total)
        arrived = []
        for s, v in reversed(list(zip(slope, matrices, strict=True))):
            arrived.append(s * back)
            back = multiplied(arrived[-1], v)
        return jnp.where(pad, total, back), tuple(reversed(arrived))

    first = jnp.zeros(g.shape[1:], g.dtype)
    carry, arrived = jax.lax.scan(step, first, (g, slopes, _held(mask, g, 3)), reverse=not reverse)
    return list(arrived), carry


# --- gates that see the cell ----------------------------------------------------------------------


def peephole_sequence(
    x: Array, h0: Array, c0: Array, w: Array, *others: Array, full: bool, reverse: bool
) -> tuple[Array, Array, Array]:
    """An LSTM as ``lstm_sequence``, with i + look(c_{t-1}, w_ci), f alike, o + look(c_t, w_co)."""
    n, (w_ci, w_cf, w_co) = c0.shape[-1], others[:3]

    def look(c: Array, v: Array) -> Array:
        return multiplied(c, v.T) if full else c * v

    def step(state: Any, given: tuple[Array, Array]) -> Any:
        (h, c), (x_t, pad) = state, given
        i, f, g, o = _gates(x_t + multiplied(h, w.T), n)
        i, f, g = sigmoid(i + look(c, w_ci)), sigmoid(f + look(c, w_cf)), jnp.tanh(g)
        new_c = f * c + i * g
        o = sigmoid(o + look(new_c, w_co))
        new_h, new_c = jnp.where(pad, h, o * jnp.tanh(new_c)), jnp.where(pad, c, new_c)
        return (new_h, new_c), (new_h, new_c, jnp.concatenate([i, f, g, o], 1))

    return jax.lax.scan(step, (h0, c0), (x, _held(others[3:], x, 3)), reverse=reverse)[1]


def peephole_sequence_backward(
    gh: Array,
    gc: Array,
    c_out: Array,
    gates: Array,
    c0: Array,
    w: Array,
    peepholes: Sequence[Array],
    *mask: Array,
    full: bool,
    reverse: bool,
) -> tuple[Array, Array, Array]:
    """The gradients of x, h0 and c0."""
    n, (w_ci, w_cf, w_co), zero = c0.shape[-1], peepholes, jnp.zeros((), gh.dtype)

    def look_back(d: Array, v: Array) -> Array:
        return multiplied(d, v) if full else d * v

    def step(state: Any, given: tuple[Array, ...]) -> Any:
        gh_t, gc_t, c_t, a, c_before, pad = given
        i, f, g, o = _gates(a, n)
        total_h, total_c, t = gh_t + state[0], gc_t + state[1], jnp.tanh(c_t)
        do = total_h * t * o * (1 - o)
        cell = total_c + (1 - t * t) * o * total_h + look_back(do, w_co)
        di, df = cell * g * i * (1 - i), cell * c_before * f * (1 - f)
        d = jnp.concatenate([di, df, cell * i * (1 - g * g), do], 1)
        d = jnp.where(pad, zero, d)
        di, df = jnp.where(pad, zero, di), jnp.where(pad, zero, df)
        carry_c = cell * f + look_back(di, w_ci) + look_back(df, w_cf)
        return (jnp.where(pad, total_h, multiplied(d, w)), jnp.where(pad, total_c, carry_c)), d

    first = jnp.zeros_like(c0), jnp.zeros_like(c0)
    given = (gh, gc, c_out, gates, _before(c_out, c0, reverse), _held(mask, gh, 3))
    (carry_h, carry_c), gx = jax.lax.scan(step, first, given, reverse=not reverse)
    return gx, carry_h, carry_c
