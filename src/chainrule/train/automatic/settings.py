"""How a network is made and trained by itself."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Settings", "hidden_sizes"]

LARGEST = 10**9  # weights of a network; with their gradients and Adam's states, 16 GB


@dataclass
class Settings:
    """How a network is made and trained; see ``chainrule fit --help``."""

    hidden: tuple[int, ...] = (64, 64)
    activation: str = "relu"
    dropout: float = 0.0
    norm: str | None = None
    optimizer: str = "adam"
    lr: float | None = None
    weight_decay: float = 0.0
    epochs: int = 200
    batch_size: int = 32
    patience: int = 20
    class_weight: str | None = None
    test_size: float = 0.2
    validation_size: float = 0.15
    seed: int = 0
    doctor: bool = False

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        weights = sum(a * b for a, b in itertools.pairwise((1, *self.hidden, 1)))
        if weights > LARGEST:
            raise ValueError(
                f"hidden layers of {','.join(map(str, self.hidden))} units have {weights:.1e} "
                f"weights; at most {LARGEST:.0e} fit. Give fewer units, like 64,64"
            )


def hidden_sizes(text: str) -> Sequence[int]:
    """ "64,64" as (64, 64)."""
    try:
        sizes = tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        sizes = (0,)
    if any(s < 1 for s in sizes):
        raise ValueError(f"hidden sizes are positive whole numbers like 64,64, got {text!r}")
    return sizes
