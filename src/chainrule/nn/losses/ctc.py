"""Connectionist temporal classification: the loss of a label sequence without an alignment."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from chainrule.backend import dtypes
from chainrule.nn.losses.reduction import Loss, check_floating, check_tensors, reduced, reduction_of
from chainrule.ops.creation.patterns import full
from chainrule.ops.layers.ctc import ctc_log_likelihood
from chainrule.ops.elementwise.logic import isposinf, where
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.index.reading import gather
from chainrule.ops.core.promotion import cast
from chainrule.ops.shape.views import expand, flatten, reshape, squeeze, unsqueeze
from chainrule.ops.shape.stacking import cat, stack
from chainrule.ops.index.subscript import numbers_of
from chainrule.tensor import Tensor

__all__ = ["CTCLoss", "ctc_loss"]


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """-log(sum over all alignments of their probabilities); see :class:`chainrule.nn.CTCLoss`."""
    reduction_of("ctc_loss", reduction)
    check_tensors("ctc_loss", log_probs=log_probs, targets=targets)
    check_floating("ctc_loss", "log_probs", log_probs)
    single = log_probs.ndim == 2
    if single:
        log_probs = unsqueeze(log_probs, 1)
    steps, n, classes = _checked_shape(log_probs)
    if not 0 <= blank < classes:
        raise RuntimeError(f"ctc_loss: blank must be a label in [0, {classes - 1}], got {blank}")
    inputs = _lengths("input_lengths", input_lengths, n)
    outputs = _lengths("target_lengths", target_lengths, n)
    if max(inputs) > steps:
        raise RuntimeError(
            f"ctc_loss: expected input_lengths to be at most {steps}, the length of log_probs, but "
            f"got {max(inputs)}"
        )
    labels = _padded(targets, outputs, classes, blank)
    losses = -_log_likelihood(log_probs, labels, inputs, outputs, blank)
    if zero_infinity:
        losses = where(isposinf(losses), 0.0, losses)
    if reduction == "mean":
        losses = losses / tensor(
            [max(k, 1) for k in outputs], dtype=losses.dtype, device=losses.device
        )
    if single and reduction == "none":
        return squeeze(losses, 0)
    return reduced(losses, reduction)


def _log_likelihood(
    log_probs: Tensor, labels: Tensor, inputs: Sequence[int], outputs: Sequence[int], blank: int
) -> Tensor:
    """Of the states blank, label, blank, label, ..., blank under all paths through them."""
    steps, n, _ = log_probs.shape
    blanks = full((n, 1), blank, dtype=dtypes.int64, device=labels.device)
    pairs = stack([labels, expand(blanks, labels.shape)], -1)
    states = cat([blanks, reshape(pairs, (n, 2 * labels.shape[1]))], 1)
    # A blank between two labels may be left out unless they are equal. No path enters the first
    # state by skipping, and every path may begin with the second, the first label.
    none = full((n, 1), -1, dtype=dtypes.int64, device=labels.device)
    skip = states != cat([blanks, none, states], 1)[:, :-2]
    places = expand(unsqueeze(states, 0), (steps, *states.shape))
    return ctc_log_likelihood(gather(log_probs, 2, places), skip, inputs, outputs)


def _padded(targets: Tensor, lengths: Sequence[int], classes: int, blank: int) -> Tensor:
    """The labels as (N, S), with blanks after the end of each sequence."""
    n, longest, total = len(lengths), max(lengths), sum(lengths)
    targets = cast(targets, dtypes.int64)
    if targets.ndim == 1:
        if targets.shape[0] != total:
            raise RuntimeError(
                f"ctc_loss: concatenated targets must have sum(target_lengths) = {total} labels, "
                f"got {targets.shape[0]}; targets of shape (N, S) may be padded"
            )
        starts = itertools.accumulate(lengths, initial=0)
        places = [
            [s + i if i < k else 0 for i in range(longest)]
            for s, k in zip(starts, lengths, strict=False)
        ]
        padded = (
            targets[tensor(places, dtype=dtypes.int64, device=targets.device)]
            if total
            else reshape(targets, (n, 0))
        )
    else:
        if targets.ndim != 2 or targets.shape[0] != n or targets.shape[1] < longest:
            raise RuntimeError(
                f"ctc_loss: targets must have shape (N, S) with N = {n} sequences and S >= "
                f"{longest}, their greatest length, got {tuple(targets.shape)}"
            )
        padded = targets[:, :longest]
    inside = tensor(
        [[i < k for i in range(longest)] for k in lengths],
        dtype=dtypes.bool_,
        device=targets.device,
    )
    padded = where(inside, padded, blank)
    _check_labels(padded, classes)
    return padded


# --- checks ---------------------------------------------------------------------------------------


def _checked_shape(log_probs: Tensor) -> tuple[int, int, int]:
    shape = tuple(log_probs.shape)
    if len(shape) != 3 or 0 in shape:
        raise RuntimeError(
            "ctc_loss: log_probs must have shape (L, N, K) or (L, K) and must not be empty, got "
            f"{shape}"
        )
    return shape


def _lengths(name: str, lengths: Tensor | Sequence[int], n: int) -> list[int]:
    """The lengths as Python numbers: they decide how many steps are taken."""
    if isinstance(lengths, Tensor) and lengths.dtype.category > dtypes.INTEGER:
        raise RuntimeError(f"ctc_loss: {name} must be integers, got {lengths.dtype}")
    numbers = flatten(lengths).tolist() if isinstance(lengths, Tensor) else lengths
    found = [int(k) for k in numbers]
    if len(found) != n:
        raise RuntimeError(
            f"ctc_loss: {name} must have one length for each of the {n} sequences, got {len(found)}"
        )
    if min(found) < 0:
        raise RuntimeError(f"ctc_loss: expected {name} to be at least 0, but got {min(found)}")
    return found


def _check_labels(labels: Tensor, classes: int) -> None:
    numbers = numbers_of(labels)
    if numbers is None:
        return
    wrong = (numbers < 0) | (numbers >= classes)
    if wrong.any():
        raise IndexError(
            f"ctc_loss: target {numbers[wrong].flat[0]} is out of bounds; with {classes} classes "
            f"(the blank among them) a label must lie in [0, {classes - 1}]"
        )


# --- module ---------------------------------------------------------------------------------------


class CTCLoss(Loss):
    """Minus the logarithm of the probability that the network's outputs read as the target.

    A reading goes through the steps, drops repeated labels and then blanks, so that "aa-b" and
    "-abb" both read "ab"; loss = -log(sum over the ways to read the target of their
    probabilities). A target that no way leads to has an infinite loss, and the gradient 0.

    Shape: log_probs (L, N, K) or (L, K), logarithms of probabilities; targets (N, S), padded, or
    (sum of target_lengths,), one after the other; input_lengths and target_lengths (N,) -> () or,
    with reduction="none", (N,).

    Args:
        blank: the label that stands for no label.
        reduction: "mean" (each loss divided by the length of its target, then averaged), "sum", or
            "none".
        zero_infinity: whether an infinite loss counts 0.

    >>> from chainrule import nn, tensor
    >>> steps = tensor([[[0.5, 0.5]], [[0.5, 0.5]]]).log()
    >>> nn.CTCLoss()(steps, tensor([[1]]), (2,), (1,)).exp()  # 11, 1- and -1: 3 ways in 4
    tensor(1.3333)
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False):
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(
        self,
        log_probs: Tensor,
        targets: Tensor,
        input_lengths: Tensor | Sequence[int],
        target_lengths: Tensor | Sequence[int],
    ) -> Tensor:
        return ctc_loss(
            log_probs,
            targets,
            input_lengths,
            target_lengths,
            self.blank,
            self.reduction,
            self.zero_infinity,
        )
