"""Normalization: deviations from the mean over their standard deviation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any

from chainrule.backend import K
from chainrule.ops.core.apply import apply
from chainrule.ops.core.pointwise import F32, F64
from chainrule.ops.core.promotion import is_complex_value
from chainrule.ops.core.recording import several
from chainrule.ops.core.batching import align, spread
from chainrule.ops.elementwise.functions import rsqrt
from chainrule.ops.elementwise.options import clamp
from chainrule.ops.core.primitive import Op, broadcast_to, sum_to
from chainrule.ops.reduce.reductions import mean, var
from chainrule.ops.shape.views import reshape
from chainrule.graph import Mode, Node, mode
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Array, Gradients, Tangents, V, Value

__all__: list[str] = []
METHODS: tuple[str, ...] = ()
INPLACE: tuple[str, ...] = ()


def _standard(x: V, dim: tuple[int, ...], eps: float, center: bool) -> tuple[V, V]:
    """z = (x - mean) / sqrt(var + eps) and 1 / sqrt(var + eps), in operations."""
    d = x - mean(x, dim, True) if center else x
    rstd = rsqrt(mean(d * d, dim, True) + eps)
    return d * rstd, rstd


def _projected(h: V, z: V, rstd: V, dim: tuple[int, ...], center: bool) -> V:
    """rstd (h - mean(h) - z mean(h z)): the Jacobian of z is symmetric, one rule for both modes."""
    out = h - z * mean(h * z, dim, True)
    return rstd * (out - mean(h, dim, True) if center else out)


class Normalize(Op):
    """weight * (x - mean) / sqrt(var + eps) + bias, as one node.

    For speed: the forward pass keeps the means and the scales, so that an ordinary backward pass is
    one kernel. Where the gradient is differentiated again, it is written in operations.
    """

    def vjp(self, node: Node, g: Value, tensors: bool) -> Gradients:
        edges, shapes = node.edges, node.shapes
        x, *affine = node.saved[: len(edges)]
        dim, eps, center = node.params["dim"], node.params["eps"], node.params["center"]
        needs = tuple([e is not None for e in edges])
        if not tensors:
            kept = node.saved[len(edges) :]
            if kept:
                rstd, m = kept[0].array, kept[1].array if center else None
            else:
                _, m, rstd, _ = K.normalize_parts(x.array, dim=dim, eps=eps, center=center)
            w = affine[0].array if affine else None
            given: Sequence[Any] = K.normalize_backward(g, x.array, m, rstd, w, dim, shapes, needs)
            return given
        z, rstd = _standard(x, dim, eps, center)
        h = g * affine[0] if affine else g
        gx = _projected(h, z, rstd, dim, center) if needs[0] else None
        parts: tuple[Any, ...] = (gx, g * z if affine else None, g)
        return [
            sum_to(part, shape=shape) if need and part.shape != shape else part
            for part, shape, need in zip(parts, shapes, needs, strict=False)
        ]

    def jvp(
        self, tangents: Tangents, out: Value, inputs: Sequence[Value], params: dict[str, Any]
    ) -> Value:
        dim, eps, center = params["dim"], params["eps"], params["center"]
        x, *affine = inputs
        z, rstd = _standard(x, dim, eps, center)
        parts = []
        if tangents[0] is not None:
            change = _projected(tangents[0], z, rstd, dim, center)
            parts.append(change * affine[0] if affine else change)
        if len(tangents) > 1 and tangents[1] is not None:
            parts.append(z * tangents[1])
        if len(tangents) > 2 and tangents[2] is not None:
            parts.append(broadcast_to(tangents[2], shape=tuple(out.shape)))
        return reduce(add, parts)


def _batched(
    op: Op, size: int, values: Sequence[Tensor], mapped: Sequence[bool], params: dict[str, Any]
) -> Tensor:
    """The input gets the batch in front; weight and bias are brought to its rank where mapped."""
    x = values[0] if mapped[0] else spread(values[0], size)
    return align(op, size, (x, *values[1:]), (True, *mapped[1:]), params)


_normalize = Normalize("normalize", _batched)


def normalized(
    x: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    dim: tuple[int, ...],
    eps: float,
    center: bool = True,
) -> Tensor:
    """weight * (x - mean) / sqrt(var + eps) + bias; without ``center``, x / sqrt(mean(x^2) + eps).

    Mean and (biased) variance are taken over ``dim``, negative numbers; ``weight`` and ``bias``
    broadcast to ``x``.
    """
    return _normalized(x, weight, bias, dim, eps, center)[0]


def normalized_with_statistics(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, *, dim: tuple[int, ...], eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """:func:`normalized`, and the means and the variances, as constants and as vectors."""
    out, means, variances = _normalized(x, weight, bias, dim, eps, True)
    if means is None or variances is None:
        x = x.detach()
        return out, reshape(mean(x, dim), (-1,)), reshape(var(x, dim, correction=0), (-1,))
    return out, of_array(means.reshape(-1)), of_array(variances.reshape(-1))


Limits = tuple[float | None, float | None]


def scaled_channels(
    x: Tensor, scale: Tensor, shift: Tensor, limits: Limits = (None, None)
) -> Tensor:
    """x * scale + shift for x (N, C, ...) and vectors of C numbers, held between the limits.

    Where nothing is recorded or looked at it is one pass over the memory, with the same bits.
    """
    arrays = (x.array, scale.array, shift.array)
    dtype = arrays[0].dtype
    if mode.flags == 0 and (dtype is F32 or dtype is F64):
        if arrays[1].dtype is dtype and arrays[2].dtype is dtype:
            return of_array(K.scale_channels(*arrays, *limits))
    column = (-1, *[1] * (x.ndim - 2))
    out = x * reshape(scale, column) + reshape(shift, column)
    return out if limits == (None, None) else clamp(out, *limits)


def _normalized(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    dim: tuple[int, ...],
    eps: float,
    center: bool,
) -> tuple[Tensor, Array | None, Array | None]:
    """The output and, where they are at hand, the arrays of means and variances."""
    if weight is None:
        inputs: tuple[Tensor, ...] = (x,)
    else:
        inputs = (x, weight) if bias is None else (x, weight, bias)
    params = {"dim": dim, "eps": eps, "center": center}
    flags = mode.flags & ~Mode.AUTOCAST  # no product is in it
    if flags > 1 or x.array.itemsize == 2 or is_complex_value(x):
        out, m, v = apply(_normalize, inputs, params), None, None
    else:
        array, m, rstd, v = K.normalize_parts(*[t.array for t in inputs], **params)
        out = several(_normalize, inputs, array, flags, params, (rstd, m) if center else (rstd,))
    return out if weight is not None or bias is None else out + bias, m, v
