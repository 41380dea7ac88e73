"""What the network said about held-out rows and what was true, in one form for all tasks."""

from __future__ import annotations

from dataclasses import dataclass

from chainrule.tensor import Tensor
from chainrule.train.fitted import FittedNetwork

__all__ = ["CLASSES", "LABELS", "NUMBERS", "Seen", "said_by", "seen_of"]

CLASSES, LABELS, NUMBERS = "classes", "labels", "numbers"
KINDS = {"classification": CLASSES}


@dataclass(frozen=True, eq=False)
class Seen:
    """Of N held-out rows what was said and what is true.

    Classes: probabilities (N, K) and class indices (N,). Labels, of which a row may have several:
    probabilities (N, K) and zeros and ones (N, K). Numbers: (N, m) both, in the target's own unit.
    ``names`` are those of the classes, labels or numbers.
    """

    kind: str
    said: Tensor
    true: Tensor
    names: list[str]

    def __len__(self) -> int:
        return len(self.true)


def said_by(network: FittedNetwork, output: Tensor) -> Tensor:
    """Outputs of a network as probabilities (N, K), or as numbers (N, m) in the target's unit."""
    if network.task in KINDS:
        return network.probabilities(output.double())
    return output.double().reshape(len(output), -1) * network.target.spread + network.target.mean


def seen_of(network: FittedNetwork) -> Seen:
    """What the network said about the rows that were held out."""
    output, target = network.held_out["output"], network.held_out["target"]
    about, kind = network.about, KINDS.get(network.task, NUMBERS)
    said = said_by(network, output)
    if kind != NUMBERS:
        return Seen(kind, said, target, list(about["classes"]))
    true = target.double().reshape(len(target), -1) * network.target.spread + network.target.mean
    return Seen(kind, said, true, [about["target"]])
