"""What a service takes, and how long it waits."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from chainrule.serve.pictures import takes_images
from chainrule.train import FittedNetwork

__all__ = ["Limits", "limits_for"]

OF_IMAGES = {"max_bytes": 2**24}  # what is usual for them


@dataclass(frozen=True)
class Limits:
    """The limits of a service; beyond them requests are refused with a reason.

    Args:
        max_rows: rows in one request (413).
        max_bytes: bytes in the body of one request (413); 16 MiB for networks of images, if no
            limits are given.
        max_pixels: pixels of all images of one request together, before any is unpacked (422).
        max_held: bytes of the bodies of all requests at work together (429).
        max_waiting: rows that wait for their turn, of all requests together (429).
        batch_rows: rows that are computed at once; rows of several requests are joined.
        batch_wait: seconds for which the first row waits for others.
        timeout: seconds for a body to arrive (408), and for an answer (503).

    >>> Limits(max_rows=10).max_rows
    10
    """

    max_rows: int = 1000
    max_bytes: int = 2**20
    max_pixels: int = 2**24
    max_held: int = 2**28
    max_waiting: int = 20_000
    batch_rows: int = 1024
    batch_wait: float = 0.002
    timeout: float = 30.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not value > 0 and not (field.name == "batch_wait" and value == 0):
                raise ValueError(f"Limits: {field.name} must be positive, got {value}")


def limits_for(network: FittedNetwork, **given: Any) -> Limits:
    """The limits that were given, and those that are usual for such a network."""
    images = takes_images(network)
    if "max_pixels" in given and not images:
        raise ValueError(
            "max_pixels is for networks of images, and this one takes the rows of tables"
        )
    return Limits(**{**(OF_IMAGES if images else {}), **given})
