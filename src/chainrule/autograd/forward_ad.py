"""Forward mode: dual numbers, with levels.

A :class:`Dual` stands where an array would stand in a tensor and holds a primal and a tangent, both
tensors themselves. So everything nests: the tangent may be differentiated in reverse, carry
tangents of an outer level, or be a batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from chainrule.autograd.levels import flags_within, innermost, level_of, new_level
from chainrule.ops.elementwise.functions import zeros_like_of
from chainrule.ops.core.apply import apply
from chainrule.ops.core.primitive import Op
from chainrule.graph import Box, mode
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Array

__all__ = ["Dual", "dual_level", "make_dual", "unpack", "unpack_dual"]


class Dual(Box):
    """A value and its tangent (None for zero) at one level of forward differentiation."""

    __slots__ = ("dtype", "level", "primal", "shape", "tangent")
    transformation = "jvp (forward-mode differentiation)"

    def __init__(self, level: int, primal: Tensor, tangent: Tensor | None = None):
        self.level = level
        self.primal = primal
        self.tangent = tangent
        self.shape = primal.array.shape
        self.dtype = primal.array.dtype

    def process(
        self, op: Op, inputs: tuple[Tensor, ...], params: dict[str, Any]
    ) -> Dual | tuple[Dual, ...]:
        """f(x + eps t) = f(x) + eps f'(x) t: the operation on primals, its jvp on tangents."""
        primals: list[Tensor] = []
        tangents: list[Tensor | None] = []
        for t in inputs:
            dual = t.array
            if dual.__class__ is Dual and dual.level == self.level:
                primals.append(dual.primal)
                tangents.append(dual.tangent)
            else:
                primals.append(t)
                tangents.append(None)
        op = op.inner()
        tangent: Any = None
        flags = mode.flags
        try:
            mode.flags = flags_within(op, primals, flags)
            out = apply(op, tuple(primals), params)
            if op.differentiable and any([t is not None for t in tangents]):
                if mode.flags != flags:
                    mode.flags = flags_within(op, tangents, flags)
                tangent = op.jvp(tangents, out, primals, params)
        finally:
            mode.flags = flags
        if isinstance(out, tuple):
            parts = tangent if tangent is not None else (None,) * len(out)
            return tuple(Dual(self.level, o, t) for o, t in zip(out, parts, strict=True))
        return Dual(self.level, out, tangent)

    def held(self) -> tuple[Tensor, ...]:
        return (self.primal,) if self.tangent is None else (self.primal, self.tangent)

    def constant(self, value: Tensor) -> Dual:
        return Dual(self.level, value)

    def detached(self) -> Dual:
        return Dual(self.level, self.primal.detach())

    def numbers(self, what: str) -> Array:
        return self.primal._numbers(what)


def unpack(level: int, x: Tensor) -> tuple[Tensor, Tensor | None]:
    """The primal and the tangent (None for zero) that a tensor has at a level."""
    if level_of(x) == level:
        return x.array.primal, x.array.tangent
    return x, None


class UnpackedDualTensor(NamedTuple):
    """A dual tensor taken apart."""

    primal: Tensor
    tangent: Tensor | None


@contextmanager
def dual_level() -> Iterator[int]:
    """Opens a level of forward differentiation for :func:`make_dual`.

    >>> import chainrule
    >>> from chainrule.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(chainrule.tensor(3.0), chainrule.tensor(1.0))
    ...     forward_ad.unpack_dual(x * x).tangent
    tensor(6.)
    """
    with new_level(Dual) as level:
        yield level


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A dual tensor: ``tensor`` moving in the direction ``tangent``."""
    if not innermost():
        raise RuntimeError("make_dual: no level is open; use it inside `with dual_level():`")
    check_tangent("make_dual", tensor, tangent)
    return of_array(Dual(level or innermost(), tensor, tangent))


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The primal and the tangent of a dual tensor (None if it has none)."""
    return UnpackedDualTensor(*unpack(level or innermost(), tensor))


def check_tangent(op: str, primal: Tensor, tangent: Tensor) -> None:
    """A tangent must have the primal's shape and type."""
    if not isinstance(primal, Tensor) or not isinstance(tangent, Tensor):
        kinds = f"{type(primal).__name__} and {type(tangent).__name__}"
        raise TypeError(f"{op}: primals and tangents must be Tensors, got {kinds}")
    if primal.array.shape != tangent.array.shape or primal.array.dtype != tangent.array.dtype:
        raise RuntimeError(
            f"{op}: expected the tangent to have the shape and dtype of the primal, "
            f"{tuple(primal.shape)} {primal.dtype}, but got {tuple(tangent.shape)} {tangent.dtype}"
        )


def tangent_of(level: int, x: Tensor) -> Tensor:
    """The tangent at a level, zeros if there is none."""
    primal, tangent = unpack(level, x)
    return zeros_like_of(primal) if tangent is None else tangent
