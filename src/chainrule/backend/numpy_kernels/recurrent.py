"""Recurrent layers over a whole sequence: a loop over time, all gates in one product per step.

``x`` (L, N, G*H) is what the input contributes to the gates, ``pad`` (L, N) is True where a
sequence has ended: there the state is held. The backward kernels run the same loop from its end and
compute what the rules in ``ops/recurrent`` say in operations.

The loops of the simple network and of the LSTM are given the product of the state with its weights
as a function ``product(h, memory)``, which may use that memory for its result: they serve
convolutions as well, where the gates lie along the channels, (L, N, G*H, *space).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = [
    "gru_sequence",
    "gru_sequence_backward",
    "lstm_sequence",
    "lstm_sequence_backward",
    "rnn_sequence",
    "rnn_sequence_backward",
    "state_weight_gradient",
    "time_steps",
]

Array = np.ndarray
Product = Callable[[Array, Array], Array]


def time_steps(x: Array, dim: int) -> tuple[Array, ...]:
    """The slices along one dimension."""
    return tuple(np.moveaxis(x, dim, 0))


class Held:
    """Which elements of the batch hold their state at which step."""

    def __init__(self, mask: tuple[Array, ...], ndim: int = 3):
        self.pad: Array | None = None
        self.any: list[bool] = []
        if mask:
            pad = ~mask[0]
            self.any = np.logical_or.reduce(pad, axis=1).tolist()
            self.pad = pad.reshape(*pad.shape, *[1] * (ndim - 2))

    def at(self, t: int) -> Array | None:
        """The held elements of step t as a column (N, 1, ...), or None if there are none."""
        return self.pad[t] if self.pad is not None and self.any[t] else None


def in_time(length: int, reverse: bool) -> Iterator[int]:
    """The steps 0..length-1, from the last one if ``reverse``."""
    return iter(range(length - 1, -1, -1) if reverse else range(length))


def before(states: Array, first: Array, t: int, reverse: bool) -> Array:
    """The state that step t started from."""
    t += 1 if reverse else -1
    return states[t] if 0 <= t < len(states) else first


def state_weight_gradient(g: Array, states: Array, first: Array, *, reverse: bool) -> Array:
    """The gradient of w in h_{t-1} w' from that of the product, summed over steps and batch."""
    ends = (states[1:], first[None]) if reverse else (first[None], states[:-1])
    rows, size = g.shape[0] * g.shape[1], first.shape[-1]
    return g.reshape(rows, g.shape[-1]).T @ np.concatenate(ends).reshape(rows, size)


def by_matrix(w: Array) -> Product:
    """The product of a state with a matrix."""
    return lambda h, memory: np.matmul(h, w, out=memory)


# --- the simple network ---------------------------------------------------------------------------


def activate(a: Array, nonlinearity: str) -> Array:
    """Applies the activation of this name in place."""
    if nonlinearity == "relu":
        return np.maximum(a, 0, out=a)
    if nonlinearity == "tanh":
        return np.tanh(a, out=a)
    a *= 0.5  # sigmoid(a) = tanh(a / 2) / 2 + 1/2, which does not overflow
    np.tanh(a, out=a)
    a *= 0.5
    a += 0.5
    return a


def slope_of(out: Array, nonlinearity: str) -> Array:
    """The derivative of the activation of this name, from its output."""
    if nonlinearity == "relu":
        return (out > 0).astype(out.dtype)
    return 1 - out * out if nonlinearity == "tanh" else out * (1 - out)


def rnn_loop(
    x: Array, h0: Array, product: Product, mask: tuple[Array, ...], nonlinearity: str, reverse: bool
) -> Array:
    """h_t = g(x_t + product(h_{t-1}))"""
    held, out = Held(mask, x.ndim), np.empty(x.shape, x.dtype)
    h = h0
    for t in in_time(len(x), reverse):
        new = out[t]
        activate(np.add(product(h, new), x[t], out=new), nonlinearity)
        pad = held.at(t)
        if pad is not None:
            np.copyto(new, h, where=pad)
        h = new
    return out


def rnn_loop_backward(
    g: Array,
    out: Array,
    product: Product,
    mask: tuple[Array, ...],
    nonlinearity: str,
    reverse: bool,
) -> tuple[Array, Array]:
    """The gradients of x and h0; ``product`` is the transpose of the one before."""
    held, gx = Held(mask, g.ndim), slope_of(out, nonlinearity)
    carry = np.zeros(out.shape[1:], out.dtype)
    for t in in_time(len(g), not reverse):
        total = g[t] + carry
        d = gx[t]
        d *= total
        pad = held.at(t)
        if pad is not None:
            np.copyto(d, 0, where=pad)
        carry = product(d, carry)
        if pad is not None:
            np.copyto(carry, total, where=pad)
    return gx, carry


def rnn_sequence(
    x: Array, h0: Array, w: Array, *mask: Array, nonlinearity: str, reverse: bool
) -> Array:
    """h_t = g(x_t + h_{t-1} w')"""
    # The product is twice as fast with a transposed copy than with a transposed view.
    return rnn_loop(x, h0, by_matrix(np.ascontiguousarray(w.T)), mask, nonlinearity, reverse)


def rnn_sequence_backward(
    g: Array, out: Array, w: Array, *mask: Array, nonlinearity: str, reverse: bool
) -> tuple[Array, Array]:
    """The gradients of x and h0."""
    return rnn_loop_backward(g, out, by_matrix(w), mask, nonlinearity, reverse)


# --- LSTM -----------------------------------------------------------------------------------------


def gate_scales(
    hidden: int, dtype: npt.DTypeLike, tanh_gate: int, gates: int
) -> tuple[Array, Array]:
    """sigmoid(a) = tanh(a / 2) / 2 + 1/2: the factors with which one tanh serves all gates."""
    scale = np.full((gates, hidden), 0.5, dtype)
    shift = scale.copy()
    scale[tanh_gate], shift[tanh_gate] = 1, 0
    return scale.reshape(-1), shift.reshape(-1)


def lstm_loop(
    gates: Array,
    h0: Array,
    c0: Array,
    product: Product,
    projection: Array | None,
    mask: tuple[Array, ...],
    scale: Array,
    shift: Array,
    reverse: bool,
) -> tuple[Array, Array, Array]:
    """Runs an LSTM in the memory of ``gates``: what the input contributes, times ``scale``."""
    held, n = Held(mask, gates.ndim), c0.shape[1]
    h_out = np.empty((len(gates), *h0.shape), gates.dtype)
    c_out = np.empty((len(gates), *c0.shape), gates.dtype)
    h, c = h0, c0
    memory, m = np.empty(gates.shape[1:], gates.dtype), np.empty(c0.shape, gates.dtype)
    for t in in_time(len(gates), reverse):
        a, new_h, new_c = gates[t], h_out[t], c_out[t]
        a += product(h, memory)
        np.tanh(a, out=a)
        a *= scale
        a += shift
        np.multiply(a[:, n : 2 * n], c, out=new_c)
        new_c += np.multiply(a[:, :n], a[:, 2 * n : 3 * n], out=m)
        np.tanh(new_c, out=m)
        if projection is None:
            np.multiply(a[:, 3 * n :], m, out=new_h)
        else:
            m *= a[:, 3 * n :]
            np.matmul(m, projection, out=new_h)
        pad = held.at(t)
        if pad is not None:
            np.copyto(new_h, h, where=pad)
            np.copyto(new_c, c, where=pad)
        h, c = new_h, new_c
    return h_out, c_out, gates


def lstm_sequence(
    x: Array, h0: Array, c0: Array, w: Array, *others: Array, projected: bool, reverse: bool
) -> tuple[Array, Array, Array]:
    """i, f, g, o = gates(x_t + h_{t-1} w'); c_t = f c_{t-1} + i g; h_t = o tanh(c_t) [w_hr']

    Returns h, c and the gates, which the backward kernel reads.
    """
    scale, shift = gate_scales(c0.shape[-1], x.dtype, 2, 4)
    product = by_matrix(np.multiply(w.T, scale, order="C"))
    projection = others[0].T if projected else None
    mask = others[projected:]
    return lstm_loop(x * scale, h0, c0, product, projection, mask, scale, shift, reverse)


def lstm_loop_backward(
    gh: Array,
    gc: Array,
    c_out: Array,
    gates: Array,
    c0: Array,
    product: Product,
    projection: Array | None,
    mask: tuple[Array, ...],
    reverse: bool,
) -> tuple[Array, Array, Array, Array]:
    """The gradients of x, h0 and c0, and those that arrive at each h_t (for the projection)."""
    held, n = Held(mask, gates.ndim), c0.shape[1]
    gx, arrived = np.empty_like(gates), gh if projection is None else np.empty_like(gh)
    carry_h, carry_c = np.zeros(gh.shape[1:], gh.dtype), np.zeros(c0.shape, gh.dtype)
    total_h, total_c = np.empty_like(carry_h), np.empty_like(carry_c)
    tanh_c, slope = np.empty_like(carry_c), np.empty(gates.shape[1:], gh.dtype)
    slope_g = slope[:, 2 * n : 3 * n]
    for t in in_time(len(gh), not reverse):
        a, d = gates[t], gx[t]
        i, f, g, o = parts(a, n)
        di, df, dg, do = parts(d, n)
        pad = held.at(t)
        np.add(gh[t], carry_h, out=total_h)
        np.add(gc[t], carry_c, out=total_c)
        gm = total_h if projection is None else np.matmul(total_h, projection)
        # d tanh(c)/dc = 1 - tanh(c)^2, and for a sigmoid s(1 - s), for tanh 1 - g^2.
        np.tanh(c_out[t], out=tanh_c)
        np.multiply(gm, tanh_c, out=do)
        tanh_c *= tanh_c
        np.subtract(1, tanh_c, out=tanh_c)
        tanh_c *= o
        tanh_c *= gm
        cell = np.add(tanh_c, total_c, out=tanh_c)
        np.multiply(cell, g, out=di)
        np.multiply(cell, before(c_out, c0, t, reverse), out=df)
        np.multiply(cell, i, out=dg)
        np.subtract(1, a, out=slope)
        slope *= a
        np.multiply(g, g, out=slope_g)
        np.subtract(1, slope_g, out=slope_g)
        d *= slope
        if pad is not None:
            np.copyto(d, 0, where=pad)
        carry_h = product(d, carry_h)
        np.multiply(cell, f, out=carry_c)
        if pad is not None:
            np.copyto(carry_h, total_h, where=pad)
            np.copyto(carry_c, total_c, where=pad)
            np.copyto(total_h, 0, where=pad)
        if projection is not None:
            arrived[t] = total_h
    return gx, carry_h, carry_c, arrived


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
    projection = others[0] if projected else None
    mask = others[projected:]
    return lstm_loop_backward(gh, gc, c_out, gates, c0, by_matrix(w), projection, mask, reverse)


def parts(gates: Array, n: int) -> list[Array]:
    """The four gates, of n units each."""
    return [gates[:, k : k + n] for k in range(0, 4 * n, n)]


# --- GRU ------------------------------------------------------------------------------------------


def gru_sequence(
    x: Array, h0: Array, w: Array, b: Array, *mask: Array, reverse: bool
) -> tuple[Array, Array]:
    """r, z = sigmoid(x_t + h_{t-1} w' + b); n = tanh(x_t + r (h_{t-1} w' + b)), of their parts;
    h_t = (1 - z) n + z h_{t-1}

    Returns h and (r, z, n, h_{t-1} w_n' + b_n), which the backward kernel reads.
    """
    held, n = Held(mask), h0.shape[-1]
    wt = np.ascontiguousarray(w.T)
    out = np.empty((*x.shape[:2], n), x.dtype)
    kept = np.empty((*x.shape[:2], 4 * n), x.dtype)
    product = np.empty(x.shape[1:], x.dtype)
    h = h0
    for t in in_time(len(x), reverse):
        a, new = kept[t], out[t]
        np.matmul(h, wt, out=product)
        product += b
        rz, candidate = a[:, : 2 * n], a[:, 2 * n : 3 * n]
        np.add(x[t][:, : 2 * n], product[:, : 2 * n], out=rz)
        rz *= 0.5
        np.tanh(rz, out=rz)
        rz *= 0.5
        rz += 0.5
        a[:, 3 * n :] = product[:, 2 * n :]
        np.multiply(a[:, :n], a[:, 3 * n :], out=candidate)
        candidate += x[t][:, 2 * n :]
        np.tanh(candidate, out=candidate)
        np.subtract(h, candidate, out=new)
        new *= a[:, n : 2 * n]
        new += candidate
        pad = held.at(t)
        if pad is not None:
            np.copyto(new, h, where=pad)
        h = new
    return out, kept


def gru_sequence_backward(
    g: Array, out: Array, kept: Array, h0: Array, w: Array, *mask: Array, reverse: bool
) -> tuple[Array, Array, Array]:
    """The gradients of x, of h_{t-1} w' + b at every step, and of h0."""
    held, n = Held(mask), h0.shape[-1]
    gx = np.empty((*g.shape[:2], 3 * n), g.dtype)
    gp = np.empty_like(gx)
    carry = np.zeros(h0.shape, g.dtype)
    for t in in_time(len(g), not reverse):
        r, z, c, q = (kept[t][:, k * n : (k + 1) * n] for k in range(4))
        dr, dz, dc = (gx[t][:, k * n : (k + 1) * n] for k in range(3))
        total = g[t] + carry
        np.multiply(total, 1 - z, out=dc)
        dc *= 1 - c * c
        np.multiply(total, before(out, h0, t, reverse) - c, out=dz)
        dz *= z * (1 - z)
        np.multiply(dc, q, out=dr)
        dr *= r * (1 - r)
        gp[t] = gx[t]
        gp[t][:, 2 * n :] *= r
        pad = held.at(t)
        if pad is not None:
            np.copyto(gx[t], 0, where=pad)
            np.copyto(gp[t], 0, where=pad)
        np.matmul(gp[t], w, out=carry)
        carry += total * z
        if pad is not None:
            np.copyto(carry, total, where=pad)
    return gx, gp, carry
