"""Calls of kernels as the records of operations, layers and optimizers make them.

All records are run on the CPU with their derivatives, and each call of a kernel is noted: that is
what the kernels for devices are compared on.
"""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from helpers import case
from samples import ALL

import chainrule
from chainrule import backend
from chainrule.backend.recorded import plain, recording

__all__ = ["MOST", "Call", "harvested"]

Call = tuple[tuple[Any, ...], dict[str, Any], Any]
MOST = 4  # calls of one kernel that are kept, of float32 one more


class _Notes:
    """Takes the calls of all kernels."""

    def __init__(self) -> None:
        self.calls: dict[str, dict[Any, Call]] = {}

    def call(self, kernel: str, function: Any, args: Any, kwargs: Any) -> Any:
        """Computes a call; keeps it if there is none of its form yet."""
        if kernel.startswith("numpy."):
            return function(*args, **kwargs)
        form = _form((args, kwargs))
        kept = self.calls.setdefault(kernel, {})
        alike = [known for known in kept if ("<f4" in repr(known)) is ("<f4" in repr(form))]
        if form in kept or len(alike) >= (MOST if "<f4" not in repr(form) else 1):
            return function(*args, **kwargs)
        before = _copied((args, kwargs))
        out = function(*args, **kwargs)
        kept[form] = (*before, _copied(out))
        return out

    def refuse(self, reason: str) -> None:
        """Nothing is repeated."""

    def fails_with(self, error: Any) -> None:
        """Nothing is repeated."""

    def again(self, function: Any, args: Any) -> Any:
        """Nothing is repeated."""
        return contextlib.nullcontext()


def _form(tree: Any) -> Any:
    if isinstance(tree, np.ndarray):
        return (tree.shape, tree.dtype.str)
    if isinstance(tree, (list, tuple)):
        return tuple(_form(part) for part in tree)
    if isinstance(tree, dict):
        return tuple((k, _form(v)) for k, v in tree.items())
    return repr(tree) if isinstance(tree, (int, float, str, slice, type(None))) else type(tree)


def _copied(tree: Any) -> Any:
    if isinstance(tree, np.ndarray):
        return np.array(plain(tree))
    if isinstance(tree, (list, tuple)):
        parts = [_copied(part) for part in tree]
        return tree.__class__(parts) if tree.__class__ in (list, tuple) else tuple(parts)
    if isinstance(tree, dict):
        return {k: _copied(v) for k, v in tree.items()}
    return copy.deepcopy(tree) if isinstance(tree, np.random.Generator) else tree


def _programs() -> Iterator[Any]:
    for sample in ALL:
        for dtype in (np.float64, np.float32) if sample.float32 else (np.float64,):

            def run(sample: Any = sample, dtype: Any = dtype) -> None:
                c = case(sample)
                variables = c.variables(dtype, requires_grad=sample.differentiable)
                c(*variables)
                if sample.differentiable and variables:
                    c.gradients(variables)

            yield run
    yield _steps


def _steps() -> None:
    """What only training calls: updates, clipping, masks."""
    for dtype in (chainrule.float32, chainrule.float64):
        for kind in (chainrule.optim.SGD, chainrule.optim.Adam, chainrule.optim.RMSprop):
            w = chainrule.ones(3, 2, dtype=dtype, requires_grad=True)
            optimizer = kind([w], lr=0.1)
            for limit in (0.5, 50.0):
                optimizer.zero_grad()
                chainrule.nn.functional.dropout(w * w, 0.5).sum().backward()
                chainrule.nn.utils.clip_grad_norm_([w], limit)
                chainrule.nn.utils.clip_grad_norm_([w], limit, float("inf"))
                chainrule.nn.utils.clip_grad_value_([w], limit)
                optimizer.step()


_found: dict[str, list[Call]] = {}


def harvested() -> dict[str, list[Call]]:
    """The calls of each kernel, its arguments with its result, by NumPy."""
    if not _found:
        notes = _Notes()
        before = backend.current()
        backend.use("numpy")
        chainrule.manual_seed(0)
        with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
            for run in _programs():
                with recording(notes), contextlib.suppress(RuntimeError, ValueError, IndexError):
                    run()
        backend.use(before)
        _found.update({name: list(kept.values()) for name, kept in notes.calls.items()})
    return _found
