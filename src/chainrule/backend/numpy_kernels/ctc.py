"""Connectionist temporal classification: the forward and the backward algorithm, in logarithms.

A sequence of labels with blanks around them has S states. At each of L steps a path stays in its
state, moves to the next, or skips one where ``skip`` allows it; it ends in one of the last two.
"""

from __future__ import annotations

import numpy as np

__all__ = ["ctc_log_likelihood", "ctc_posterior"]

Lengths = tuple[int, ...]


def ctc_log_likelihood(
    e: np.ndarray, skip: np.ndarray, input_lengths: Lengths, target_lengths: Lengths
) -> np.ndarray:
    """The log-probability (N,) of all paths through the states with log-probabilities (L, N, S)."""
    return _at_the_end(_forward(e, skip), input_lengths, target_lengths)


def ctc_posterior(
    e: np.ndarray, skip: np.ndarray, input_lengths: Lengths, target_lengths: Lengths
) -> np.ndarray:
    """The probability (L, N, S) of each state at each step, given that the path ends well.

    It is 0 for a sequence that no path leads through.
    """
    alpha = _forward(e, skip)
    total = _at_the_end(alpha, input_lengths, target_lengths)
    possible = np.where(total == -np.inf, 0, total).astype(e.dtype, copy=False)
    beta = _backward(e, skip, input_lengths, target_lengths)
    out = np.exp(alpha[1:, :, 2:] + beta - possible[:, None])
    # The states of a step have probability 1 together: what rounding they share is taken out.
    whole = np.add.reduce(out, axis=2, keepdims=True)
    return np.divide(out, whole, out=out, where=whole > 0)


def _forward(e: np.ndarray, skip: np.ndarray) -> np.ndarray:
    """alpha (L + 1, N, 2 + S): the log-probability of all paths up to each step and state.

    Two states stand in front, so that the first ones need no case of their own: before the first
    step every path is in the second of them.
    """
    steps, n, states = e.shape
    alpha = np.full((steps + 1, n, states + 2), -np.inf, e.dtype)
    alpha[0, :, 1] = 0
    jump = np.where(skip, 0, -np.inf).astype(e.dtype)
    for t in range(steps):
        a = alpha[t]
        total = np.logaddexp(a[:, 2:], a[:, 1:-1])
        np.logaddexp(total, a[:, :-2] + jump, out=total)
        np.add(total, e[t], out=alpha[t + 1, :, 2:])
    return alpha


def _backward(
    e: np.ndarray, skip: np.ndarray, input_lengths: Lengths, target_lengths: Lengths
) -> np.ndarray:
    """beta (L, N, S): the log-probability of all ways from each state after each step to an end."""
    steps, n, states = e.shape
    beta = np.full((steps, n, states), -np.inf, e.dtype)
    jump = np.full((n, states), -np.inf, e.dtype)
    jump[:, :-2] = np.where(skip[:, 2:], 0, -np.inf)
    behind = np.full((n, states + 2), -np.inf, e.dtype)  # the next step, two states behind the last
    for t in range(steps - 1, -1, -1):
        if t < steps - 1:
            np.add(beta[t + 1], e[t + 1], out=behind[:, :-2])
            np.logaddexp(behind[:, :-2], behind[:, 1:-1], out=beta[t])
            np.logaddexp(beta[t], behind[:, 2:] + jump, out=beta[t])
        for i, (length, labels) in enumerate(zip(input_lengths, target_lengths, strict=True)):
            if length == t + 1:
                beta[t, i] = -np.inf
                beta[t, i, max(2 * labels - 1, 0) : 2 * labels + 1] = 0
    return beta


def _at_the_end(alpha: np.ndarray, input_lengths: Lengths, target_lengths: Lengths) -> np.ndarray:
    """The log-probability of the last two states at the end of each sequence."""
    t, row = np.array(input_lengths, int), np.arange(alpha.shape[1])
    last = 2 * np.array(target_lengths, int) + 2
    return np.logaddexp(alpha[t, row, last], alpha[t, row, last - 1])
