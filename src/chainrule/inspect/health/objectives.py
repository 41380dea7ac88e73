"""What a loss is made of, seen from the operations it runs: its kind, its scores, its labels."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from chainrule.autograd.modes import no_grad
from chainrule.inspect.core.arguments import tensors
from chainrule.nn import functional as F
from chainrule.ops.core.apply import watching
from chainrule.ops.reduce.reductions import mean
from chainrule.tensor import Tensor

__all__ = ["Loss", "Objective", "class_shares", "look_at"]

Loss = Callable[..., Tensor]

# The operations that decide what a loss is, and what its scores are to be.
KINDS = {
    "cross_entropy": "cross-entropy",
    "negative_log_likelihood": "likelihood",
    "binary_cross_entropy_with_logits": "binary with logits",
    "binary_cross_entropy": "binary",
}
FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    "cross-entropy": F.cross_entropy,
    "likelihood": F.nll_loss,
    "binary with logits": F.binary_cross_entropy_with_logits,
    "binary": F.binary_cross_entropy,
}


@dataclass(eq=False)
class Objective:
    """A loss at work: ``kind`` is one of ``KINDS``, "regression" or "unknown"."""

    value: Tensor
    kind: str
    scores: Tensor | None
    labels: Tensor | None
    widened: tuple[tuple[int, ...], tuple[int, ...]] | None  # shapes that broadcast to a larger one
    _loss: Loss
    _output: Any

    @property
    def classes(self) -> bool:
        """Whether the labels are numbers of classes."""
        return (
            self.kind in ("cross-entropy", "likelihood")
            and self.labels is not None
            and not self.labels.dtype.is_floating_point
        )

    def at(self, scores: Tensor) -> float | None:
        """The loss of other scores; None where it cannot be asked."""
        with no_grad():
            try:
                if self.kind in FUNCTIONS:
                    value = FUNCTIONS[self.kind](scores, self.labels)
                else:
                    value = mean(self._loss(scores, self.labels))
            except (RuntimeError, TypeError, ValueError, IndexError):
                return None
        return float(value)

    def constant(self) -> Tensor | None:
        """The best scores that do not depend on the inputs, for every sample."""
        if self.scores is None or self.labels is None:
            return None
        with no_grad():
            if self.classes:
                shares = class_shares(self.labels, self.scores.shape[1]).clamp(min=1e-6)
                shape = [1, -1] + [1] * (self.scores.ndim - 2)
                return shares.log().reshape(shape).expand(*self.scores.shape)
            labels = self.labels.detach()
            center = labels.mean(0, keepdim=True) if labels.ndim else labels
            if self.kind == "cross-entropy":
                center = center.clamp(min=1e-6).log()
            elif self.kind == "binary with logits":
                center = center.clamp(1e-6, 1 - 1e-6).logit()
            return center.expand(*self.scores.shape)

    def chance(self) -> float | None:
        """The loss of the best constant, which a network that learned nothing has."""
        constant = self.constant()
        return None if constant is None else self.at(constant)

    def expected(self) -> tuple[float, str] | None:
        """The loss at a start that knows nothing, and its formula."""
        if self.classes and self.scores is not None:
            k = int(self.scores.shape[1])
            return math.log(k), f"ln {k}"
        if self.kind in ("binary", "binary with logits"):
            return math.log(2), "ln 2"
        chance = self.chance()
        return None if chance is None else (chance, "the loss of the mean target")


def class_shares(labels: Tensor, classes: int) -> Tensor:
    """The share of each class among the labels that name one."""
    flat = labels.detach().reshape(-1)
    counts = flat[(flat >= 0) & (flat < classes)].bincount(minlength=classes).double()
    return counts / max(1.0, float(counts.sum()))


def look_at(loss: Loss, output: Any, targets: Any) -> Objective:
    """Calls a loss, and sees what it does with outputs and targets."""
    seen: list[tuple[str, tuple[Tensor, ...], Any]] = []
    with watching(lambda op, inputs, params, out: seen.append((str(op.name), inputs, out))):
        value = loss(output, targets)
    if not isinstance(value, Tensor):
        raise TypeError(f"doctor: the loss returned {type(value).__name__}, not a tensor")
    kind, scores, labels = "unknown", None, None
    for name, inputs, _ in seen:
        if name in KINDS and len(inputs) >= 2:
            kind, scores, labels = KINDS[name], inputs[0], inputs[1]
    if kind == "unknown":
        kind, scores, labels = _as_regression(output, targets)
    return Objective(value, kind, scores, labels, _widened(seen), loss, output)


def _as_regression(output: Any, targets: Any) -> tuple[str, Tensor | None, Tensor | None]:
    given = tensors(output)
    if len(given) == 1 and isinstance(targets, Tensor) and targets.dtype.is_floating_point:
        if tuple(given[0].shape) == tuple(targets.shape):
            return "regression", given[0], targets
    return "unknown", None, None


def _widened(
    seen: list[tuple[str, tuple[Tensor, ...], Any]],
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """A column against a row, which makes a matrix of all pairs."""
    for _, inputs, out in seen:
        if len(inputs) != 2 or not isinstance(out, Tensor):
            continue
        a, b = inputs
        if a.ndim == b.ndim + 1 or b.ndim == a.ndim + 1:
            long, short = (a, b) if a.ndim > b.ndim else (b, a)
            n = short.numel()
            if short.ndim == 1 and n > 1 and tuple(long.shape) == (n, 1):
                if tuple(out.shape) == (n, n):
                    return tuple(a.shape), tuple(b.shape)
    return None
