"""What the network said about held-out rows and what was true, in one form for all tasks."""

from __future__ import annotations

from dataclasses import dataclass

from chainrule.tensor import Tensor
from chainrule.train.fitted import FittedNetwork

__all__ = ["CLASSES", "LABELS", "NUMBERS", "Seen", "seen_of"]

CLASSES, LABELS, NUMBERS = "classes", "labels", "numbers"


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


def seen_of(network: FittedNetwork) -> Seen:
    """What the network said about the rows that were held out."""
    output, target = network.held_out["output"], network.held_out["target"]
    about = network.about
    if network.task == "classification":
        p = network.probabilities(output.double())
        return Seen(CLASSES, p, target, list(about["classes"]))
    spread, mean = network.target.spread, network.target.mean
    said, true = (t.double().reshape(len(t), -1) * spread + mean for t in (output, target))
    names = (
        [about["target"]]
        if said.shape[1] == 1
        else [f"{about['target']} {i + 1}" for i in range(said.shape[1])]
    )
    return Seen(NUMBERS, said, true, names)
