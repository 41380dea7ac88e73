"""Several tensors as one: along a dimension they have, or along a new one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainrule.graph import Edges, Node, Saved
from chainrule.ops.core.synonyms import numpy_names, takes_out
from chainrule.ops.core.primitive import REGISTRY, Op
from chainrule.ops.core.promotion import promote
from chainrule.ops.elementwise.functions import zeros_like_of
from chainrule.ops.index.choice import FULL, slice_view
from chainrule.ops.shape.views import canonical_dim, shape_of
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


@takes_out(exact=False)
@numpy_names
def cat(tensors: Sequence[V], dim: int = 0) -> V:
    """Tensors joined along an existing dimension.

    >>> import chainrule
    >>> chainrule.cat([chainrule.ones(1, 2), chainrule.zeros(2, 2)]).shape
    chainrule.Size([3, 2])
    """
    if tensors.__class__ is Tensor:
        raise TypeError(
            "cat(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor"
        )
    tensors = list(tensors)
    if not tensors:
        raise ValueError("cat: expected a non-empty list of tensors")
    try:
        shapes = [x.array.shape if isinstance(x, Tensor) else x.shape for x in tensors]
    except AttributeError:
        bad = next(x for x in tensors if not hasattr(x, "shape"))
        raise TypeError(
            f"cat(): expected a sequence of Tensors, but found an element {type(bad).__name__}"
        ) from None
    if () in shapes:
        raise RuntimeError("cat: zero-dimensional tensors cannot be concatenated; use stack")
    if (0,) in shapes:  # joins anything, as in PyTorch
        full = [i for i, shape in enumerate(shapes) if shape != (0,)] or [0]
        tensors, shapes = [tensors[i] for i in full], [shapes[i] for i in full]
    first = shapes[0]
    d = canonical_dim("cat", dim, len(first))
    _check_sizes(shapes, d)
    return _joined(tensors, d)


def _joined(tensors: Sequence[V], d: int) -> V:
    """Tensors that fit joined along a dimension (from the end), in their common type."""
    dtypes = {x.array.dtype if isinstance(x, Tensor) else x.dtype for x in tensors}
    if len(dtypes) > 1 and any(isinstance(x, Tensor) for x in tensors):
        tensors = promote(*tensors)
    return _cat(*tensors, dim=d)


def _check_sizes(shapes: Sequence[tuple[int, ...]], d: int) -> None:
    """Refuses shapes that differ in another dimension than ``d``."""
    first = shapes[0]
    for i, shape in enumerate(shapes):
        if shape == first:
            continue
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


@takes_out(exact=False)
@numpy_names
def stack(tensors: Sequence[V], dim: int = 0) -> V:
    """Tensors of one shape joined along a new dimension."""
    tensors = list(tensors)
    if not tensors:
        raise RuntimeError("stack: expected a non-empty list of tensors")
    first = tuple(shape_of(tensors[0]))
    for i, x in enumerate(tensors):
        if shape_of(x) != first:
            raise RuntimeError(
                f"stack: expects each tensor to be equal size, but got {first} at entry 0 and "
                f"{tuple(x.shape)} at entry {i}"
            )
    ndim = len(first) + 1
    d = canonical_dim("unsqueeze", dim, ndim)
    shape = (*first[: d + ndim], 1, *first[d + ndim :])
    reshape = REGISTRY["reshape"]
    return _joined([reshape(x, shape=shape) for x in tensors], d)
