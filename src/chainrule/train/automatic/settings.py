"""How a network is made and trained by itself."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

__all__ = ["EFFORTS", "Settings", "hidden_sizes", "seconds_of"]

LARGEST = 10**9  # weights of a network; with their gradients and Adam's states, 16 GB
EFFORTS = ("quick", "normal", "high")
# What a plain network has where nothing else is asked for.
PLAIN: dict[str, Any] = {
    "hidden": (64, 64),
    "activation": "relu",
    "dropout": 0.0,
    "optimizer": "adam",
    "weight_decay": 0.0,
    "epochs": 200,
    "batch_size": 32,
    "patience": 20,
}


@dataclass
class Settings:
    """How a network is made and trained; see ``chainrule fit --help``.

    What is None is chosen. Where ``hidden``, ``activation``, ``dropout``, ``norm`` or ``optimizer``
    is given, the network is a plain :class:`~chainrule.models.MLP`, with hidden layers of 64 and 64
    ReLUs, Adam, 200 epochs, batches of 32 and a patience of 20 where these are not given. Otherwise
    it is a :class:`~chainrule.models.TabularNetwork`.
    """

    hidden: tuple[int, ...] | None = None
    activation: str | None = None
    dropout: float | None = None
    norm: str | None = None
    optimizer: str | None = None
    lr: float | None = None
    weight_decay: float | None = None
    epochs: int | None = None
    batch_size: int | None = None
    patience: int | None = None
    class_weight: str | None = None
    test_size: float = 0.2
    validation_size: float = 0.15
    seed: int = 0
    doctor: bool = False
    effort: str = "normal"
    time_limit: float | None = None  # in seconds, for the effort "high"

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        if self.lr is not None and not 0 < self.lr < math.inf:
            raise ValueError(f"lr must be a positive number, got {self.lr}")
        if self.hidden is not None:
            _check_size(self.hidden)
        if self.effort not in EFFORTS:
            raise ValueError(f"effort must be one of {', '.join(EFFORTS)}, got {self.effort!r}")
        if self.effort != "normal" and self.is_plain:
            raise ValueError(
                f"effort {self.effort!r} chooses the network, but its layers or its optimizer are "
                "given; leave one of both out"
            )

        if self.time_limit is not None and self.effort != "high":
            raise ValueError(
                "a time limit is for the effort 'high', which searches for so long; the effort is "
                f"{self.effort!r}"
            )
        if self.time_limit is not None and not self.time_limit > 0:
            raise ValueError(f"the time limit must be positive, got {self.time_limit}")

    @property
    def is_plain(self) -> bool:
        """Whether a plain MLP is asked for."""
        wanted = (self.hidden, self.activation, self.dropout, self.norm, self.optimizer)
        return any(value is not None for value in wanted)

    def as_plain(self) -> Self:
        """These settings for a plain network, with a value for all that it needs."""
        missing = {k: v for k, v in PLAIN.items() if getattr(self, k) is None}
        return replace(self, **missing)

    def as_dict(self) -> dict[str, Any]:
        """As JSON holds them."""
        return {**vars(self), "hidden": None if self.hidden is None else list(self.hidden)}


def _check_size(hidden: Sequence[int]) -> None:
    weights = sum(a * b for a, b in itertools.pairwise((1, *hidden, 1)))
    if weights > LARGEST:
        raise ValueError(
            f"hidden layers of {','.join(map(str, hidden))} units have {weights:.1e} "
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


def seconds_of(text: str) -> float:
    """A time like "90", "90s", "10m" or "1.5h" in seconds."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([smh]?)\s*", text)
    seconds = float(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[found[2]] if found else 0.0
    if not (seconds > 0 and math.isfinite(seconds)):
        raise ValueError(f"a time limit is a time like 90s, 10m or 1h, got {text!r}")
    return seconds
