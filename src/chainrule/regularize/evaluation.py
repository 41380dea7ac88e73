"""The network as it will be used: what penalties of its outputs differentiate."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from chainrule.nn.module.base import Module

__all__ = ["evaluating"]


@contextmanager
def evaluating(model: Module) -> Iterator[None]:
    """Evaluation mode, and afterwards each module as it was.

    In it nothing is random, running statistics stay, and no sample depends on another.
    """
    modes = [(m, m.training) for m in model.modules()]
    try:
        for m, _ in modes:
            m.training = False
        yield
    finally:
        for m, training in modes:
            m.training = training
