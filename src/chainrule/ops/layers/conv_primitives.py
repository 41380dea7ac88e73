"""The primitives of convolution.

All of it is one sum, over batch n, channels c and o, outputs i and places k of the kernel,

    sum  y[n, o, i] * w[o, c, k] * x[n, c, i * stride + k * dilation - padding]

with x zero outside its bounds. It is linear in each of x, w and y, and its gradient with respect to
each is one primitive: ``convolution`` (by y), ``convolution_input`` (by x: the transposed
convolution) and ``convolution_weight`` (by w). So each one's derivatives are the other two, to any
order. ``size`` is the spatial size of what a primitive computes, ``padding`` what precedes x in
each dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any

from chainrule.graph import Edges, Node, Saved
from chainrule.ops.core.batching import Rule
from chainrule.ops.core.primitive import Bilinear, Op, broadcast_to, sum_to
from chainrule.ops.core.recording import saved_values
from chainrule.ops.layers.spatial import space_of
from chainrule.ops.shape.views import movedim, reshape, unsqueeze
from chainrule.tensor import Tensor
from chainrule.typing import Array, Gradients, Shape, Tangents, V, Value

__all__ = [
    "BiasedConvolution",
    "biased_convolution",
    "convolution",
    "convolution_input",
    "convolution_weight",
]

# The leading dimensions of x, w and y by their letters; g counts the groups.
_X, _W, _Y = "ngc", "goc", "ngo"


def _fold(value: V, layout: str, letter: str, groups: int) -> V:
    """The batch in front of ``value`` made part of the dimension ``letter``."""
    size, shape = value.shape[0], list(value.shape[1:])
    split = _split(shape, layout, groups)
    at = layout.index(letter)
    moved = movedim(reshape(value, (size, *split, *shape[2:])), 0, at)
    split[at] *= size
    return reshape(moved, (*_join(split, layout), *shape[2:]))


def _unfold(value: V, layout: str, letter: str, groups: int, size: int) -> V:
    """The inverse of :func:`_fold`: the batch taken out of ``letter`` and put in front."""
    shape = list(value.shape)
    split = _split(shape, layout, groups * size if letter == "g" else groups)
    at = layout.index(letter)
    split[at] //= size
    apart = reshape(value, (*split[:at], size, *split[at:], *shape[2:]))
    return reshape(movedim(apart, at, 0), (size, *_join(split, layout), *shape[2:]))


def _split(shape: Shape, layout: str, groups: int) -> list[int]:
    """The sizes of the three letters from those of the two dimensions in which they are stored."""
    if layout[0] == "g":
        return [groups, shape[0] // groups, shape[1]]
    return [shape[0], groups, shape[1] // groups]


def _join(split: Sequence[int], layout: str) -> tuple[int, int]:
    a, b, c = split
    return (a * b, c) if layout[0] == "g" else (a, b * c)


def _batch_rule(first: str, second: str, result: str) -> Rule:
    """vmap as one larger convolution.

    A batch of one operand joins the letter that only this operand and the result have; if both have
    a batch, it joins the groups.
    """

    def rule(
        op: Op, size: int, values: Sequence[Tensor], mapped: Sequence[bool], params: dict[str, Any]
    ) -> Tensor:
        groups, (a, b) = params["groups"], values
        if all(mapped):
            letter = "g"
        else:
            own, other = (first, second) if mapped[0] else (second, first)
            letter = next(k for k in own if k in result and k not in other)
        if mapped[0]:
            a = _fold(a, first, letter, groups)
        if mapped[1]:
            b = _fold(b, second, letter, groups)
        folded = params | {"groups": groups * size} if letter == "g" else params
        return _unfold(op(a, b, **folded), result, letter, groups, size)

    return rule


_BATCH_OF_CONVOLUTION = _batch_rule(_X, _W, _Y)
convolution = Bilinear(
    "convolution",
    (
        lambda g, x_shape, w, size, **p: convolution_input(g, w, size=space_of(x_shape), **p),
        lambda g, x, w_shape, size, **p: convolution_weight(x, g, size=space_of(w_shape), **p),
    ),
    batch=_BATCH_OF_CONVOLUTION,
)
convolution_input = Bilinear(
    "convolution_input",
    (
        lambda g, y_shape, w, size, **p: convolution(g, w, size=space_of(y_shape), **p),
        lambda g, y, w_shape, size, **p: convolution_weight(g, y, size=space_of(w_shape), **p),
    ),
    batch=_batch_rule(_Y, _W, _X),
)
convolution_weight = Bilinear(
    "convolution_weight",
    (
        lambda g, x_shape, y, size, **p: convolution_input(y, g, size=space_of(x_shape), **p),
        lambda g, x, y_shape, size, **p: convolution(x, g, size=space_of(y_shape), **p),
    ),
    batch=_batch_rule(_X, _Y, _W),
)


class BiasedConvolution(Op):
    """Convolution and the sum with a bias: one node and one pass over the memory.

    Only the ordinary path makes it; transformations and traces see the two operations.
    """

    def raw(self, x: Array, w: Array, b: Array, **params: Any) -> Array:
        return convolution.raw(x, w, bias=b, **params)

    def save(self, inputs: tuple[Tensor, ...], edges: Edges) -> Saved:
        x, w, _ = inputs
        return (x if edges[1] is not None else None, w if edges[0] is not None else None, None)

    def vjp(self, node: Node, g: Value, tensors: bool) -> Gradients:
        x, w = saved_values(node, tensors)[:2]
        edges, shapes, params = node.edges, node.shapes, node.params
        by_x, by_w = convolution.transposes
        gx = None if edges[0] is None else by_x(g, shapes[0], w, **params)
        gw = None if edges[1] is None else by_w(g, x, shapes[1], **params)
        gb = None
        if edges[2] is not None:
            (channels,) = shapes[2]
            gb = reshape(sum_to(g, shape=(channels, *[1] * (g.ndim - 2))), (channels,))
        return gx, gw, gb

    def jvp(
        self, tangents: Tangents, out: Value, inputs: Sequence[Value], params: dict[str, Any]
    ) -> Value:
        (x, w, _), (tx, tw, tb) = inputs, tangents
        parts = [] if tx is None else [convolution(tx, w, **params)]
        parts += [] if tw is None else [convolution(x, tw, **params)]
        if tb is not None:
            column = reshape(tb, (*tb.shape, *[1] * (out.ndim - 2)))
            parts.append(broadcast_to(column, shape=tuple(out.shape)))
        return reduce(add, parts)


def _batch_of_biased(
    op: Op, size: int, values: Sequence[Tensor], mapped: Sequence[bool], params: dict[str, Any]
) -> Tensor:
    """vmap: the convolution's rule, then the sum with the bias of each member."""
    x, w, b = values
    if mapped[0] or mapped[1]:
        out = _BATCH_OF_CONVOLUTION(convolution, size, (x, w), mapped[:2], params)
    else:
        out = unsqueeze(convolution(x, w, **params), 0)
    dimensions = [1] * len(params["size"])
    return out + reshape(b, (size, 1, -1, *dimensions) if mapped[2] else (-1, *dimensions))


biased_convolution = BiasedConvolution("biased_convolution", _batch_of_biased)
