"""Several tensors as one: along a dimension they have, or along a new one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainrule.graph import Edges, Node, Saved
from chainrule.ops.core.primitive import Op
from chainrule.ops.core.promotion import promote
from chainrule.ops.elementwise.functions import zeros_like_of
from chainrule.ops.index.choice import FULL, slice_view
from chainrule.ops.shape.views import canonical_dim, unsqueeze
from chainrule.tensor import Tensor
from chainrule.typing import Gradients, Tangents, V, Value

__all__ = ["cat", "stack"]
METHODS: tuple[str, ...] = ()
INPLACE: tuple[str, ...] = ()


def _split_like(g: V, shapes: Sequence[tuple[int, ...]], dim: int) -> tuple[V, ...]:
    """The parts of ``g`` along ``dim`` that belong to each of the concatenated inputs."""
    parts, start = [], 0
    for shape in shapes:
        length = shape[dim]
        parts.append(slice_view(g, entries=(slice(start, start + length, 1), *[FULL] * (-dim - 1))))
        start += length
    return tuple(parts)


def _cat_tangents(tangents: Tangents, inputs: Sequence[Value], dim: int) -> Value:
    parts = [zeros_like_of(x) if t is None else t for t, x in zip(tangents, inputs, strict=True)]
    return _cat(*parts, dim=dim)


class _Cat(Op):
    """Linear in all its inputs: nothing is saved but their shapes."""

    def save(self, inputs: tuple[Tensor, ...], edges: Edges) -> Saved:
        return None

    def vjp(self, node: Node, g: Value, tensors: bool) -> Gradients:
        return _split_like(g, node.shapes, node.params["dim"])

    def jvp(
        self,
        tangents: Tangents,
        out: Value,
        inputs: Sequence[Value],
        params: dict[str, Any],
    ) -> Value:
        return _cat_tangents(tangents, inputs, params["dim"])


_cat = _Cat("cat", batch="carry")


def cat(tensors: Sequence[V], dim: int = 0) -> V:
    """Tensors joined along an existing dimension.

    >>> import chainrule
    >>> chainrule.cat([chainrule.ones(1, 2), chainrule.zeros(2, 2)]).shape
    chainrule.Size([3, 2])
    """
    tensors = list(tensors)
    if not tensors:
        raise ValueError("cat: expected a non-empty list of tensors")
    if any(x.ndim == 0 for x in tensors):
        raise RuntimeError("cat: zero-dimensional tensors cannot be concatenated; use stack")
    # A tensor of shape (0,) joins anything, as in PyTorch.
    full = [x for x in tensors if tuple(x.shape) != (0,)] or tensors[:1]
    d = canonical_dim("cat", dim, full[0].ndim)
    first = tuple(full[0].shape)
    for i, x in enumerate(full):
        shape = tuple(x.shape)
        if len(shape) != len(first):
            raise RuntimeError(
                f"cat: tensors must have same number of dimensions: got {first} and {shape} "
                f"(tensor {i} of the list)"
            )
        same = all(
            a == b for j, (a, b) in enumerate(zip(first, shape, strict=True), -len(first)) if j != d
        )
        if not same:
            raise RuntimeError(
                f"cat: sizes of tensors must match except in dimension {d + len(first)}: got "
                f"{first} and {shape} (tensor {i} of the list)"
            )
    if any(isinstance(x, Tensor) for x in full) and len({x.dtype for x in full}) > 1:
        full = list(promote(*full))
    return _cat(*full, dim=d)


def stack(tensors: Sequence[V], dim: int = 0) -> V:
    """Tensors of one shape joined along a new dimension."""
    tensors = list(tensors)
    if not tensors:
        raise RuntimeError("stack: expected a non-empty list of tensors")
    for i, x in enumerate(tensors):
        if tuple(x.shape) != tuple(tensors[0].shape):
            raise RuntimeError(
                f"stack: expects each tensor to be equal size, but got {tuple(tensors[0].shape)} "
                f"at entry 0 and {tuple(x.shape)} at entry {i}"
            )
    return cat([unsqueeze(x, dim) for x in tensors], dim)
