"""Values inside ``vmap``: a batch of samples, standing where one sample would.

A :class:`Batched` stands where an array would stand in a tensor and holds a tensor with the batch
as its first dimension. An operation that meets one is carried out by its batching rule
(``ops/core/batching.py``) as one operation on the whole batch, never as a loop over samples.
"""

from __future__ import annotations

from typing import Any, NoReturn

from chainrule.graph import ORDINARY, Box, Mode, mode
from chainrule.ops.core.apply import apply, wrap
from chainrule.ops.core.recording import edge_of
from chainrule.ops.core.batching import ON_ARRAYS, rule_of
from chainrule.ops.core.primitive import Op
from chainrule.tensor import Tensor

__all__ = ["Batched"]


class Batched(Box):
    """A tensor with the batch as dimension 0 (or, if not ``mapped``, one value for all samples)."""

    __slots__ = ("dtype", "level", "mapped", "shape", "size_of_batch", "value")
    transformation = "vmap"

    def __init__(self, level: int, value: Tensor, size: int, mapped: bool = True):
        self.level = level
        self.value = value
        self.mapped = mapped
        self.size_of_batch = size
        self.shape = value.array.shape[1:] if mapped else value.array.shape
        self.dtype = value.array.dtype

    def process(
        self, op: Op, inputs: tuple[Tensor, ...], params: dict[str, Any]
    ) -> Batched | tuple[Batched, ...]:
        """Carries the operation out for all samples at once."""
        level, size, flags = self.level, self.size_of_batch, mode.flags
        values: list[Tensor] = []
        mapped: list[bool] = []
        boxed = op.takes_tensors  # the user's own operations may hold boxes that are no inputs
        recording, recorded = bool(flags & Mode.GRAD), op.is_view or flags > ORDINARY
        for t in inputs:
            box = t.array
            if box.__class__ is Batched and box.level == level:
                t = box.value
                mapped.append(box.mapped)
            else:
                mapped.append(False)
            values.append(t)
            boxed = boxed or isinstance(t.array, Box)
            recorded = recorded or (recording and edge_of(t) is not None)
        any_mapped = True in mapped
        rule = rule_of(op) if any_mapped else _once
        if not (boxed or recorded) and rule in ON_ARRAYS:
            out = wrap(rule(op, size, [t.array for t in values], mapped, params))
        else:
            # Where no transformation is left around it, it is computed as ordinary tensors are.
            mode.flags = flags if boxed else flags & ~Mode.BOXED
            try:
                out = rule(op, size, values, mapped, params)
            finally:
                mode.flags = flags
        if out.__class__ is tuple:
            return tuple([Batched(level, o, size, any_mapped) for o in out])
        return Batched(level, out, size, any_mapped)

    def held(self) -> tuple[Tensor, ...]:
        return (self.value,)

    def constant(self, value: Tensor) -> Batched:
        return Batched(self.level, value, self.size_of_batch, mapped=False)

    def detached(self) -> Batched:
        return Batched(self.level, self.value.detach(), self.size_of_batch, self.mapped)

    def numbers(self, what: str) -> NoReturn:
        raise RuntimeError(
            f"{what}: inside vmap a tensor has a different value for every sample, so its numbers "
            "(and anything that depends on them, like `if x > 0`) are not available; use where(...)"
        )


def _once(op: Op, size: int, values: Any, mapped: Any, params: dict[str, Any]) -> Any:
    """In place of a rule, where no input is mapped: once for all samples."""
    return apply(op, tuple(values), params)
