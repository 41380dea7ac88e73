"""The primitives that read, place and replace chosen elements.

Integer tensors that say what is chosen are inputs of these primitives, so that ``vmap`` may map
them; the rest of a subscript is a parameter (see ``ops/index/subscript.py``). Reading and placing
are each other's transposes, so derivatives of every order stay within this file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from chainrule.ops.core.arguments import placed_like
from chainrule.backend import K
from chainrule.ops.core.batching import Rule, spread
from chainrule.ops.core.primitive import Linear, Nondifferentiable, Op
from chainrule.ops.shape.views import movedim
from chainrule.graph import Edges, Node, Saved
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Gradients, Tangents, V, Value

__all__ = [
    "FULL",
    "Choice",
    "Replacement",
    "data_dependent",
    "gather_along",
    "gather_place",
    "index_batch",
    "index_place",
    "index_put",
    "mask_select",
    "nonzero_indices",
    "read",
    "scatter_along",
    "slice_view",
]

FULL = slice(None)


class Choice(Op):
    """A function linear in its first input; the others are integers that say what is chosen.

    ``transpose(g, shape, *indices, **params)`` gives back a tensor of the first input's shape.
    """

    def __init__(self, name: str, transpose: Callable[..., Any], batch: Rule | str):
        super().__init__(name, batch)
        self.transpose = transpose

    def save(self, inputs: tuple[Tensor, ...], edges: Edges) -> Saved:
        return (None, *inputs[1:])

    def vjp(self, node: Node, g: Value, tensors: bool) -> Gradients:
        indices = node.saved[1:] if tensors else [t.array for t in node.saved[1:]]
        gx = self.transpose(g, node.shapes[0], *indices, **node.params)
        return (gx, *[None] * len(indices))

    def jvp(
        self, tangents: Tangents, out: Value, inputs: Sequence[Value], params: dict[str, Any]
    ) -> Value:
        return self(tangents[0], *inputs[1:], **params)


class Replacement(Op):
    """``x`` with some elements replaced by those of ``value``; linear in both.

    The further inputs are integers that say which; ``read(x, *indices, **params)`` reads those.
    """

    def __init__(self, name: str, read: Callable[..., Any], batch: Rule | str):
        super().__init__(name, batch)
        self.read = read

    def save(self, inputs: tuple[Tensor, ...], edges: Edges) -> Saved:
        return (None, None, *inputs[2:])

    def vjp(self, node: Node, g: Value, tensors: bool) -> Gradients:
        indices = node.saved[2:] if tensors else [t.array for t in node.saved[2:]]
        gx = gv = None
        if node.edges[1] is not None:
            gv = self.read(g, *indices, **node.params)
        if node.edges[0] is not None:
            gx = self(g, _zeros(node.shapes[1], g), *indices, **node.params)
        return (gx, gv, *[None] * len(indices))

    def jvp(
        self, tangents: Tangents, out: Value, inputs: Sequence[Value], params: dict[str, Any]
    ) -> Value:
        x, value = [
            _zeros(tuple(v.shape), out) if t is None else t
            for t, v in zip(tangents[:2], inputs[:2], strict=True)
        ]
        return self(x, value, *inputs[2:], **params)


def _zeros(shape: tuple[int, ...], like: V) -> V:
    if isinstance(like, Tensor):
        return placed_like(like, of_array(K.zeros(shape, like.array.dtype)))
    return K.zeros(shape, like.dtype)


# --- batching -------------------------------------------------------------------------------------


def _number_members(
    size: int, entries: tuple[Any, ...], extra: int, indices: Sequence[Tensor]
) -> tuple[tuple[Any, ...], tuple[Tensor, ...], int]:
    """Mapped integer tensors: each member of the batch chooses in its own slice of dimension 0."""
    ndim = max(t.ndim for t in indices) - 1
    numbers = K.arange(0, size, 1, "int64").reshape((size, *[1] * ndim))
    members = placed_like(indices[0], of_array(numbers))
    return (..., *[FULL] * extra, *entries), (members, *indices), ndim


def _consumed(entries: tuple[Any, ...]) -> int:
    return sum([e is not None for e in entries])


def index_batch(
    op: Op, size: int, values: Sequence[Tensor], mapped: Sequence[bool], params: dict[str, Any]
) -> Tensor:
    """vmap: the batch is one more leading dimension, or one more integer where indices have it."""
    x, indices = values[0], values[1:]
    entries, tail = params["entries"], params["tail"]
    if not any(mapped[1:]):
        return op(x, *indices, **params)
    ndim = max(t.ndim for t in indices) - 1
    if mapped[0]:
        extra = x.ndim - 1 - _consumed(entries)
        entries, indices, ndim = _number_members(size, entries, extra, indices)
    out = op(x, *indices, **(params | {"entries": entries}))
    return movedim(out, -tail - ndim - 1, 0)


def _batch_place(
    op: Op, size: int, values: Sequence[Tensor], mapped: Sequence[bool], params: dict[str, Any]
) -> Tensor:
    g, indices = values[0], values[1:]
    entries, tail, shape = params["entries"], params["tail"], (size, *params["shape"])
    if any(mapped[1:]):
        g = g if mapped[0] else spread(g, size)
        extra = len(shape) - 1 - _consumed(entries)
        entries, indices, ndim = _number_members(size, entries, extra, indices)
        g = movedim(g, 0, -tail - ndim - 1)
    return op(g, *indices, **(params | {"entries": entries, "shape": shape}))


def _batch_put(
    op: Op, size: int, values: Sequence[Tensor], mapped: Sequence[bool], params: dict[str, Any]
) -> Tensor:
    x, value = [v if m else spread(v, size) for v, m in zip(values[:2], mapped[:2], strict=True)]
    indices = values[2:]
    entries, tail = params["entries"], params["tail"]
    if any(mapped[2:]):
        extra = x.ndim - 1 - _consumed(entries)
        entries, indices, ndim = _number_members(size, entries, extra, indices)
        value = movedim(value, 0, -tail - ndim - 1)
    return op(x, value, *indices, **(params | {"entries": entries}))


def _batch_gather_place(
    op: Op, size: int, values: Sequence[Tensor], mapped: Sequence[bool], params: dict[str, Any]
) -> Tensor:
    values = [v if m else spread(v, size) for v, m in zip(values, mapped, strict=True)]
    return op(*values, **(params | {"shape": (size, *params["shape"])}))


def data_dependent(
    op: Op, size: int, values: Sequence[Tensor], mapped: Sequence[bool], params: dict[str, Any]
) -> NoReturn:
    """The rule of an operation that has none: its output's size depends on the values."""
    raise RuntimeError(
        f"vmap: {op.name} cannot be mapped, because the size of its output depends on the values "
        "(it also stands behind x[mask]); use where(mask, x, other) or sums weighted by the mask"
    )


# --- primitives -----------------------------------------------------------------------------------

slice_view = Linear(
    "slice",
    lambda g, shape, entries: index_place(g, entries=entries, tail=0, shape=shape, distinct=True),
    kernel="slice_view",
    is_view=True,
)


def _add_at_slice(total: K.Array, g: K.Array, entries: tuple[Any, ...]) -> K.Array:
    part = K.add(K.slice_view(total, entries=entries), g)
    return K.write_subscript(total, part, entries=entries, tail=0)


slice_view.adds_into = _add_at_slice


def read(x: V, *indices: V, entries: tuple[Any, ...], tail: int, distinct: bool = False) -> V:
    """The elements at a subscript."""
    if not indices:
        return slice_view(x, entries=entries)
    return _index(x, *indices, entries=entries, tail=tail, distinct=distinct)


_index = Choice(
    "index",
    lambda g, shape, *indices, **params: index_place(g, *indices, shape=shape, **params),
    index_batch,
)
index_place = Choice(
    "index_place",
    lambda g, shape_in, *indices, shape, **params: read(g, *indices, **params),
    _batch_place,
)
index_put = Replacement(
    "index_put", lambda g, *indices, **params: read(g, *indices, **params), _batch_put
)
nonzero_indices = Nondifferentiable("nonzero", data_dependent)
# A mask of the whole tensor needs no integers: half the time of nonzero and index.
mask_select = Choice(
    "mask_select", lambda g, shape, mask: mask_place(g, mask), batch=data_dependent
)
mask_place = Choice("mask_place", lambda g, shape, mask: mask_select(g, mask), batch=data_dependent)
gather_along = Choice(
    "gather",
    lambda g, shape, index, dim: gather_place(g, index, dim=dim, shape=shape),
    "carry",
)
gather_place = Choice(
    "gather_place",
    lambda g, shape_in, index, dim, shape: gather_along(g, index, dim=dim),
    _batch_gather_place,
)
scatter_along = Replacement(
    "scatter", lambda g, index, dim: gather_along(g, index, dim=dim), "carry"
)
