"""An LSTM whose gates see the cell, over a whole sequence.

``full`` says that the peepholes w_ci, w_cf and w_co are matrices (H, H), not vectors (H).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chainrule.backend.numpy_kernels.recurrent import (
    Array,
    Held,
    before,
    gate_scales,
    in_time,
    parts,
)

__all__ = ["peephole_sequence", "peephole_sequence_backward"]


def peephole_sequence(
    x: Array, h0: Array, c0: Array, w: Array, *others: Array, full: bool, reverse: bool
) -> tuple[Array, Array, Array]:
    """An LSTM as ``lstm_sequence``, with i + look(c_{t-1}, w_ci), f alike, o + look(c_t, w_co).

    Returns h, c and the gates, which the backward kernel reads.
    """
    held, n = Held(others[3:]), c0.shape[-1]
    scale, shift = gate_scales(n, x.dtype, 2, 4)
    wt, gates = np.multiply(w.T, scale, order="C"), x * scale
    # The gates that see the cell are sigmoids, whose arguments are halved.
    w_ci, w_cf, w_co = (np.multiply(v.T, 0.5, order="C") for v in others[:3])
    product = np.matmul if full else np.multiply
    h_out, c_out = (np.empty((*x.shape[:2], n), x.dtype) for _ in range(2))
    h, c = h0, c0
    memory, m = np.empty(x.shape[1:], x.dtype), np.empty(c0.shape, x.dtype)
    for t in in_time(len(x), reverse):
        a, new_h, new_c = gates[t], h_out[t], c_out[t]
        i, f, g, o = parts(a, n)
        a += np.matmul(h, wt, out=memory)
        i += product(c, w_ci, out=m)
        f += product(c, w_cf, out=m)
        _to_gates(a[:, : 3 * n], scale[: 3 * n], shift[: 3 * n])
        np.multiply(f, c, out=new_c)
        new_c += np.multiply(i, g, out=m)
        o += product(new_c, w_co, out=m)
        _to_gates(o, scale[3 * n :], shift[3 * n :])
        np.multiply(o, np.tanh(new_c, out=m), out=new_h)
        pad = held.at(t)
        if pad is not None:
            np.copyto(new_h, h, where=pad)
            np.copyto(new_c, c, where=pad)
        h, c = new_h, new_c
    return h_out, c_out, gates


def _to_gates(a: Array, scale: Array, shift: Array) -> None:
    np.tanh(a, out=a)
    a *= scale
    a += shift


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
    held, n = Held(mask), c0.shape[-1]
    w_ci, w_cf, w_co = peepholes
    product = np.matmul if full else np.multiply
    gx, carry_h, carry_c = np.empty_like(gates), np.zeros_like(c0), np.zeros_like(c0)
    total_h, total_c, m, cell = (np.empty_like(c0) for _ in range(4))
    slope = np.empty_like(gates[0])
    slope_g, slope_o = slope[:, 2 * n : 3 * n], slope[:, 3 * n :]
    for t in in_time(len(gh), not reverse):
        a, d = gates[t], gx[t]
        i, f, g, o = parts(a, n)
        di, df, dg, do = parts(d, n)
        np.add(gh[t], carry_h, out=total_h)
        np.add(gc[t], carry_c, out=total_c)
        # The slope of a sigmoid is s(1 - s), that of tanh 1 - g^2.
        np.subtract(1, a, out=slope)
        slope *= a
        np.multiply(g, g, out=slope_g)
        np.subtract(1, slope_g, out=slope_g)
        np.tanh(c_out[t], out=m)
        np.multiply(total_h, m, out=do)
        do *= slope_o
        m *= m
        np.subtract(1, m, out=m)
        m *= o
        m *= total_h
        np.add(total_c, m, out=cell)
        cell += product(do, w_co, out=m)
        np.multiply(cell, g, out=di)
        np.multiply(cell, before(c_out, c0, t, reverse), out=df)
        np.multiply(cell, i, out=dg)
        d[:, : 3 * n] *= slope[:, : 3 * n]
        pad = held.at(t)
        if pad is not None:
            np.copyto(d, 0, where=pad)
        np.matmul(d, w, out=carry_h)
        np.multiply(cell, f, out=carry_c)
        carry_c += product(di, w_ci, out=m)
        carry_c += product(df, w_cf, out=m)
        if pad is not None:
            np.copyto(carry_h, total_h, where=pad)
            np.copyto(carry_c, total_c, where=pad)
    return gx, carry_h, carry_c
