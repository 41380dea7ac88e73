"""Sums, extremes and the like along dimensions."""

from __future__ import annotations

import math

from chainrule.backend import dtypes
from chainrule.onnx.graph import Quantity, is_fixed
from chainrule.onnx.site import Made, Rule, Site

__all__ = ["RULES", "count_of"]

LONGEST = 512  # steps of a scan that is written out


def _reduce(kind: str) -> Rule:
    def rule(s: Site) -> Made:
        x = s.as_type(s.x(), s.input_dtype(), s.dtype)
        return s.add(kind, x, s.integers(s.dims()), keepdims=int(bool(s.param("keepdim", False))))

    return rule


def _truths(kind: str) -> Rule:
    def rule(s: Site) -> Made:
        numbers = s.graph.cast(s.graph.cast(s.x(), dtypes.bool_), dtypes.int32)
        keep = int(bool(s.param("keepdim", False)))
        return s.graph.cast(s.add(kind, numbers, s.integers(s.dims()), keepdims=keep), dtypes.bool_)

    return rule


def count_of(s: Site, dims: list[int]) -> Quantity:
    """How many elements are put together, in each pass."""
    sizes = s.shape()
    return [math.prod(sizes[d][p] for d in dims) for p in range(len(s.steps))]


def _variance(s: Site, root: bool) -> Made:
    dims, keep = s.dims(), int(bool(s.param("keepdim", False)))
    axes = s.integers(dims)
    centered = s.add("Sub", s.x(), s.add("ReduceMean", s.x(), axes, keepdims=1))
    total = s.add("ReduceSum", s.add("Mul", centered, centered), axes, keepdims=keep)
    left = [n - s.param("correction") for n in count_of(s, dims)]
    found = s.add("Div", total, s.graph.number(left, s.dtype, s.what))
    return s.add("Sqrt", found) if root else found


def _logsumexp(s: Site) -> Made:
    axes, keep = s.integers(s.dims()), bool(s.param("keepdim", False))
    top = s.add("ReduceMax", s.x(), axes, keepdims=1)
    total = s.add("ReduceSum", s.add("Exp", s.add("Sub", s.x(), top)), axes, keepdims=1)
    found = s.add("Add", s.add("Log", total), top)
    return found if keep else s.add("Squeeze", found, axes)


def _norm(s: Site) -> Made:
    p, axes = s.param("p"), s.integers(s.dims())
    keep = int(bool(s.param("keepdim", False)))
    if p in (1, 2):
        return s.add(f"ReduceL{int(p)}", s.x(), axes, keepdims=keep)
    size = s.add("Abs", s.x())
    if math.isinf(p):
        return s.add("ReduceMax" if p > 0 else "ReduceMin", size, axes, keepdims=keep)
    total = s.add("ReduceSum", s.add("Pow", size, s.number_of(p)), axes, keepdims=keep)
    return s.add("Pow", total, s.number_of(1 / p))


def _place(kind: str) -> Rule:
    def rule(s: Site) -> Made:
        keep = int(bool(s.param("keepdim", False)))
        if s.param("dim") is None:
            flat = s.add("Reshape", s.x(), s.integers([-1]))
            found = s.add(kind, flat, axis=0, keepdims=0)
            return s.add("Reshape", found, s.integers([1] * s.ndim())) if keep else found
        return s.add(kind, s.x(), axis=s.dims()[0], keepdims=keep)

    return rule


def _extreme(reduce: str, place: str) -> Rule:
    def rule(s: Site) -> Made:
        (dim,), keep = s.dims(), int(bool(s.param("keepdim", False)))
        found = s.add(reduce, s.x(), s.integers([dim]), keepdims=keep)
        return found, s.add(place, s.x(), axis=dim, keepdims=keep)

    return rule


def _cumsum(s: Site) -> Made:
    x = s.as_type(s.x(), s.input_dtype(), s.dtype)
    axis = s.number_of(s.dims()[0], dtypes.int64)
    return s.add("CumSum", x, axis, reverse=int(bool(s.param("reverse", False))))


def _scan(kind: str) -> Rule:
    """ONNX has no other scan than that of sums, so that the steps are written out."""

    def rule(s: Site) -> Made:
        (dim,) = s.dims()
        size = s.shape()[dim]
        if not is_fixed(size) or size[0] > LONGEST:
            s.fail(
                f"ONNX has no operator for it; written out it needs a fixed size of at most "
                f"{LONGEST} along its dimension"
            )
        axis = s.integers([dim])
        found: list[str] = []
        for k in range(int(size[0])):
            part = s.add("Slice", s.x(), s.integers([k]), s.integers([k + 1]), axis)
            found.append(s.add(kind, found[-1], part) if found else part)
        return (s.add("Concat", *found, axis=dim), None)[: len(s.step.results)]

    return rule


def _top(s: Site) -> Made:
    count = s.integers([s.param("k")])
    _, places = s.add(
        "TopK", s.x(), count, axis=s.dims()[0], largest=int(s.param("largest")), outputs=2
    )
    return places


def _order(s: Site) -> Made:
    """All places, sorted; the order of equal values is that of the program that runs the file."""
    (dim,) = s.dims()
    count = s.graph.size(s.shape()[dim], s.what)
    largest = int(bool(s.param("descending", False)))
    return s.add("TopK", s.x(), count, axis=dim, largest=largest, outputs=2)[1]


RULES: dict[str, Rule] = {
    "all": _truths("ReduceMin"),
    "amax": _reduce("ReduceMax"),
    "amin": _reduce("ReduceMin"),
    "any": _truths("ReduceMax"),
    "argmax": _place("ArgMax"),
    "argmin": _place("ArgMin"),
    "argsort": _order,
    "cummax": _scan("Max"),
    "cummin": _scan("Min"),
    "cumprod": _scan("Mul"),
    "cumsum": _cumsum,
    "logsumexp": _logsumexp,
    "max_along": _extreme("ReduceMax", "ArgMax"),
    "mean": _reduce("ReduceMean"),
    "min_along": _extreme("ReduceMin", "ArgMin"),
    "pnorm": _norm,
    "prod": _reduce("ReduceProd"),
    "std": lambda s: _variance(s, root=True),
    "sum": _reduce("ReduceSum"),
    "topk": _top,
    "var": lambda s: _variance(s, root=False),
}
