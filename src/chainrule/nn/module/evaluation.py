"""A network as it is used: in evaluation, and predictions with their error bars."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from chainrule.nn.module.base import Module
from chainrule.tensor import Tensor

__all__ = ["Prediction", "evaluating", "modes_restored"]


class Prediction(NamedTuple):
    """The mean of a prediction and its standard deviation, both shaped like the output."""

    mean: Tensor
    std: Tensor


@contextmanager
def modes_restored(model: object) -> Iterator[None]:
    """Afterwards each module is in training or evaluation as it was before.

    Of a model that is no module but a function there is nothing to restore.
    """
    modes = [(m, m.training) for m in model.modules()] if isinstance(model, Module) else []
    try:
        yield
    finally:
        for m, training in modes:
            m.training = training


@contextmanager
def evaluating(model: object) -> Iterator[None]:
    """Evaluation mode, and afterwards each module as it was.

    In it nothing is random, running statistics stay, and no sample depends on another.

    >>> from chainrule import nn
    >>> model = nn.Sequential(nn.Dropout(0.5))
    >>> with evaluating(model):
    ...     model.training, model[0].training
    (False, False)
    >>> model.training, model[0].training
    (True, True)
    """
    with modes_restored(model):
        if isinstance(model, Module):
            model.eval()
        yield
