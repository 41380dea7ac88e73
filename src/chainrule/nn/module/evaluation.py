"""A network as it is used: in evaluation, and predictions with their error bars."""

from __future__ import annotations

import threading
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


class _Stay(NamedTuple):
    """A thread inside a block, and in which mode it found the module."""

    thread: int
    training: bool


_lock = threading.Lock()
_stays: dict[int, list[_Stay]] = {}  # of each module that is inside a block, by its id


@contextmanager
def modes_restored(model: object) -> Iterator[None]:
    """Afterwards each module is in training or evaluation as it was before.

    Of a model that is no module but a function there is nothing to restore. While several threads
    are inside with one module, its mode is theirs; the last one restores what the first one found.
    """
    modules = list(model.modules()) if isinstance(model, Module) else []
    with _lock:
        entered = [(m, _enter(m)) for m in modules]
    try:
        yield
    finally:
        with _lock:
            for m, stay in entered:
                _leave(m, stay)


def _enter(module: Module) -> _Stay:
    me, stays = threading.get_ident(), _stays.setdefault(id(module), [])
    alone = all([stay.thread == me for stay in stays])
    stay = _Stay(me, module.training if alone else stays[0].training)
    stays.append(stay)
    return stay


def _leave(module: Module, stay: _Stay) -> None:
    stays = _stays[id(module)]
    stays.remove(stay)
    if all([other.thread == stay.thread for other in stays]):
        module.training = stay.training
    if not stays:
        del _stays[id(module)]


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
