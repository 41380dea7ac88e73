"""What the network said about held-out rows and what was true, in one form for all tasks."""

from __future__ import annotations

from dataclasses import dataclass

from chainrule.backend import dtypes
from chainrule.ops.creation.from_data import tensor
from chainrule.tensor import Tensor
from chainrule.train.fitted import FittedNetwork

__all__ = [
    "CLASSES",
    "KINDS",
    "LABELS",
    "NUMBERS",
    "Seen",
    "said_by",
    "seen_in",
    "seen_of",
    "true_of",
]

CLASSES, LABELS, NUMBERS = "classes", "labels", "numbers"
KINDS = {"classification": CLASSES, "ordinal": CLASSES, "multilabel": LABELS}


@dataclass(frozen=True, eq=False)
class Seen:
    """Of N held-out rows what was said and what is true.

    Classes: probabilities (N, K) and class indices (N,). Labels, of which a row may have several:
    probabilities (N, K) and zeros and ones (N, K). Numbers: (N, m) both, in the target's own unit;
    of quantiles several are said for the one that is true, and ``quantiles`` are which. ``names``
    are those of the classes, labels or numbers.
    """

    kind: str
    said: Tensor
    true: Tensor
    names: list[str]
    quantiles: tuple[float, ...] = ()

    def __len__(self) -> int:
        return len(self.true)

    @property
    def centers(self) -> Tensor:
        """One number for each true one: of quantiles that nearest to the median."""
        if not self.quantiles:
            return self.said
        k = min(range(len(self.quantiles)), key=lambda i: abs(self.quantiles[i] - 0.5))
        return self.said[:, k : k + 1]

    @property
    def answers(self) -> list[str]:
        """A name for each column of what is said."""
        if not self.quantiles:
            return self.names
        return [f"{self.names[0]}, quantile {q:g}" for q in self.quantiles]


def said_by(network: FittedNetwork, output: Tensor) -> Tensor:
    """Outputs of a network as probabilities (N, K), or as numbers (N, m) in the target's unit."""
    if network.task in KINDS:
        return network.probabilities(output.double())
    if network.task == "regression":
        return output.double() * _row(network.target.spreads) + _row(network.target.means)
    columns = list(network.target.columns(output).values())
    return tensor(columns, dtype=dtypes.float64).mT


def true_of(network: FittedNetwork, target: Tensor) -> Tensor:
    """Encoded targets as class indices, as zeros and ones, or as numbers in their own unit."""
    if network.task in KINDS:
        return target
    numbers = target.double().reshape(len(target), -1)
    return numbers * _row(network.target.spreads) + _row(network.target.means)


def _row(numbers: list[float]) -> Tensor:
    return tensor(numbers, dtype=dtypes.float64)


def seen_in(network: FittedNetwork, output: Tensor, target: Tensor) -> Seen:
    """Outputs of a network beside encoded targets."""
    kind = KINDS.get(network.task, NUMBERS)
    names = list(network.target.classes if kind != NUMBERS else network.target.names)
    said, true = said_by(network, output), true_of(network, target)
    return Seen(kind, said, true, names, tuple(network.target.quantiles))


def seen_of(network: FittedNetwork) -> Seen:
    """What the network said about the rows that were held out."""
    return seen_in(network, network.held_out["output"], network.held_out["target"])
