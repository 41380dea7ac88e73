"""A recurrent network with layers between its states: the loop over time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chainrule.backend.numpy_kernels.recurrent import Array, Held, activate, in_time, slope_of

__all__ = ["deep_rnn_sequence", "deep_rnn_sequence_backward"]


def deep_rnn_sequence(
    x: Array, h0: Array, w: Array, *others: Array, layers: int, nonlinearity: str, reverse: bool
) -> tuple[Array, ...]:
    """a = g(x_t + h_{t-1} w'), then a = g(a w_k' + b_k) for each layer; the last one is h_t.

    ``others`` are the weight and the bias of each layer, then the mask if there is one. Returns h
    and the values of all layers but the last, which the reverse rule reads.
    """
    held = Held(others[2 * layers :])
    weights = [np.ascontiguousarray(v.T) for v in (w, *others[: 2 * layers : 2])]
    biases = others[1 : 2 * layers : 2]
    lead, dtype = x.shape[:2], x.dtype
    inner = [np.empty((*lead, v.shape[1]), dtype) for v in weights[:-1]]
    out = np.empty((*lead, h0.shape[1]), dtype)
    values = [*inner, out]
    h = h0
    for t in in_time(len(x), reverse):
        a = h
        for k, v in enumerate(weights):
            new = np.matmul(a, v, out=values[k][t])
            new += biases[k - 1] if k else x[t]
            a = activate(new, nonlinearity)
        pad = held.at(t)
        if pad is not None:
            np.copyto(a, h, where=pad)
        h = a
    return (out, *inner)


def deep_rnn_sequence_backward(
    g: Array,
    values: Sequence[Array],
    matrices: Sequence[Array],
    *mask: Array,
    nonlinearity: str,
    reverse: bool,
) -> tuple[list[Array], Array]:
    """The gradients of what each layer activates to ``values``, and of h0.

    ``matrices`` are the weights that lead to each of the values.
    """
    held = Held(mask)
    arrived = [slope_of(a, nonlinearity) for a in values]
    backwards = list(zip(arrived, matrices, strict=True))[::-1]
    memory = [np.empty((g.shape[1], v.shape[1]), g.dtype) for _, v in backwards]
    carry = np.zeros(g.shape[1:], g.dtype)
    total = np.empty_like(carry)
    for t in in_time(len(g), not reverse):
        back = np.add(g[t], carry, out=total)
        pad = held.at(t)
        if pad is not None:
            back = np.where(pad, g.dtype.type(0), total)
        for (gradients, v), space in zip(backwards, memory, strict=True):
            d = gradients[t]
            d *= back
            back = np.matmul(d, v, out=space)
        if pad is not None:
            np.copyto(back, total, where=pad)
        carry = back
    return arrived, carry
