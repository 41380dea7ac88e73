"""The likelihood of a label sequence under all its alignments: what the CTC loss is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainrule.backend import K
from chainrule.ops.core.batching import spread
from chainrule.ops.creation.patterns import full
from chainrule.ops.elementwise.functions import exp, logaddexp
from chainrule.ops.elementwise.logic import where
from chainrule.ops.elementwise.options import clamp
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.index.reading import gather
from chainrule.ops.core.primitive import Op, Primitive
from chainrule.ops.reduce.reductions import sum
from chainrule.ops.shape.views import movedim, reshape, unsqueeze
from chainrule.ops.shape.stacking import cat, stack
from chainrule.tensor import Tensor
from chainrule.typing import V

__all__ = ["ctc_log_likelihood"]

# log(0), finite so that its derivatives are; what is below the second number is impossible.
_NEVER, _IMPOSSIBLE = -1e30, -1e25


def _posterior(e: V, skip: V, input_lengths: Sequence[int], target_lengths: Sequence[int]) -> V:
    """The probability (L, N, S) of each state at each step, given that the path ends well.

    The derivative of the log-likelihood by the states' log-probabilities. On tensors, where a
    derivative is to be differentiated again, the kernel's recursions are written in operations.
    """
    if not isinstance(e, Tensor):
        return K.ctc_posterior(e, skip, input_lengths, target_lengths)
    steps, n, states = e.shape
    if not steps:
        return e
    e = clamp(e, min=_NEVER)
    never = full((n, 2), _NEVER, dtype=e.dtype, device=e.device)
    jump = where(skip, 0.0, _NEVER)
    jump_on = cat([jump[:, 2:], never], 1)[:, :states]
    start = [[0.0 if s == 1 else _NEVER for s in range(states + 2)] for _ in range(n)]
    alphas = [tensor(start, dtype=e.dtype, device=e.device)]
    for t in range(steps):
        a = alphas[-1]
        total = logaddexp(logaddexp(a[:, 2:], a[:, 1:-1]), a[:, :-2] + jump)
        alphas.append(cat([never, total + e[t]], 1))
    betas: list[Any] = [None] * steps
    beta = full((n, states), _NEVER, dtype=e.dtype, device=e.device)
    for t in range(steps - 1, -1, -1):
        if t < steps - 1:
            b = cat([beta + e[t + 1], never], 1)
            beta = logaddexp(logaddexp(b[:, :-2], b[:, 1:-1]), b[:, 2:] + jump_on)
        beta = _with_ends(beta, t, input_lengths, target_lengths)
        betas[t] = beta
    last = [[2 * k + 1, 2 * k + 2] for k in target_lengths]
    ends = stack([alphas[length][i] for i, length in enumerate(input_lengths)])
    ends = gather(ends, 1, tensor(last, device=e.device))
    total = unsqueeze(logaddexp(ends[:, 0], ends[:, 1]), 1)
    possible = total > _IMPOSSIBLE
    logs = stack(alphas[1:])[:, :, 2:] + stack(betas)
    return where(possible & (logs > _IMPOSSIBLE), exp(where(possible, logs - total, 0.0)), 0.0)


def _with_ends(
    beta: Tensor, t: int, input_lengths: Sequence[int], target_lengths: Sequence[int]
) -> Tensor:
    """beta, with the last two states certain in the sequences that end after step t."""
    states = beta.shape[1]
    ends = [length == t + 1 for length in input_lengths]
    if not any(ends):
        return beta
    certain = [
        [0.0 if s in (2 * k - 1, 2 * k) else _NEVER for s in range(states)] for k in target_lengths
    ]
    return where(
        tensor([[end] for end in ends], device=beta.device),
        tensor(certain, dtype=beta.dtype, device=beta.device),
        beta,
    )


def _batched(
    op: Op, size: int, values: Sequence[Tensor], mapped: Sequence[bool], params: dict[str, Any]
) -> Tensor:
    """The members of the batch as further sequences."""
    e, skip = (v if m else spread(v, size) for v, m in zip(values, mapped, strict=True))
    _, steps, n, states = e.shape
    e = reshape(movedim(e, 0, 1), (steps, size * n, states))
    lengths = {name: size * given for name, given in params.items()}
    return reshape(op(e, reshape(skip, (size * n, states)), **lengths), (size, n))


_ctc_log_likelihood = Primitive(
    "ctc_log_likelihood",
    lambda g, out, e, skip, needs, **lengths: (
        reshape(g, (*g.shape, 1)) * _posterior(e, skip, **lengths),
        None,
    ),
    lambda tangents, out, e, skip, **lengths: sum(
        tangents[0] * _posterior(e, skip, **lengths), (0, 2)
    ),
    batch=_batched,
    saves_out=False,
)


def ctc_log_likelihood(
    emissions: Tensor, skip: Tensor, input_lengths: Sequence[int], target_lengths: Sequence[int]
) -> Tensor:
    """The log-probability (N,) of all paths through the states of N label sequences.

    ``emissions`` (L, N, S) are the log-probabilities of the states: of each label and of the blanks
    before, between and after them. A path stays, goes on, or skips a state where ``skip`` (N, S)
    allows it to enter from the one before the last. One kernel, because a graph with a node for
    each step costs more than what the steps compute.
    """
    return _ctc_log_likelihood(
        emissions, skip, input_lengths=tuple(input_lengths), target_lengths=tuple(target_lengths)
    )
