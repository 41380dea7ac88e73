"""Kernels that only move elements, as copies from array to array."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chainrule.backend import K
from chainrule.compiler.program import Instruction

__all__ = ["copies_of"]

COPIES = {"copy", "numpy.copy", "owned", "to_contiguous", "astype", "numpy.astype", "cast"}


def copies_of(
    step: Instruction, args: tuple[Any, ...], kwargs: dict[str, Any], places: tuple[Any, ...]
) -> list[tuple[Any, Any]] | None:
    """The targets and sources of the copies that an instruction comes to, in their order.

    None if it is something else than copies.
    """
    if step.kernel == "write" and not kwargs:
        target, value = args
        return [(target, value)] if isinstance(value, K.Array) else None
    if len(places) != 1:
        return None
    if step.kernel in COPIES:
        return [(places[0], args[0])]
    if step.kernel == "permute":
        return [(places[0], step.function(*args, **kwargs))]  # which is a view of its argument
    if step.kernel == "spread" and len(args) == 1 and K.is_contiguous(args[0]):
        return [(places[0], _along(args[0], **kwargs))]
    if step.kernel == "cat" and list(kwargs) == ["dim"]:
        return list(_side_by_side(places[0], args, kwargs["dim"]))
    if step.kernel == "index_place" and len(args) == 1 and kwargs["distinct"]:
        zero = K.zeros((), places[0].dtype)
        return [(places[0], zero), (places[0][(..., *kwargs["entries"])], args[0])]
    if step.kernel == "index_put" and len(args) == 2:
        return [(places[0], args[0]), (places[0][(..., *kwargs["entries"])], args[1])]
    return None


def _along(a: Any, shape: tuple[int, ...], dim: tuple[int, ...], keepdim: bool) -> Any:
    """A view of an array with a dimension of 1 wherever it is repeated."""
    if keepdim or len(dim) == len(shape):
        return a
    return a.reshape([1 if i in dim else n for i, n in enumerate(shape, -len(shape))])


def _side_by_side(place: Any, arrays: tuple[Any, ...], dim: int) -> Iterator[tuple[Any, Any]]:
    """The parts of an array along a dimension, and what fills them."""
    begin = 0
    for a in arrays:
        end = begin + a.shape[dim]
        at = [slice(None)] * place.ndim
        at[dim] = slice(begin, end)
        yield place[tuple(at)], a
        begin = end
