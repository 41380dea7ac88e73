"""Pooling: the greatest and the mean of windows."""

from __future__ import annotations

import math
from collections.abc import Callable

from chainrule.onnx.graph import is_fixed
from chainrule.onnx.site import Made, Rule, Site

__all__ = ["RULES"]


def _pads(s: Site, space: int) -> list[int]:
    """The padding in front and behind; behind it may be more, where a last window is begun."""
    keys = ("kernel", "stride", "padding", "dilation")
    kernel, stride, padding, dilation = (s.param(k) for k in keys)
    ends = []
    lead = s.ndim() - space
    for d in range(space):
        reach = dilation[d] * (kernel[d] - 1) + 1
        made = [step.params["size"][d] for step in s.steps]
        pairs = list(zip(s.shape()[lead + d], made, strict=True))
        if all((n + 2 * padding[d] - reach) // stride[d] + 1 == m for n, m in pairs):
            ends.append(padding[d])
            continue
        needed = [(m - 1) * stride[d] + reach - n - padding[d] for n, m in pairs]
        if not is_fixed(needed):
            s.fail("ceil_mode with a dynamic axis along which windows move")
        ends.append(int(needed[0]))
    return [*padding, *ends]


def _batched(s: Site, space: int, pooled: Callable[[str], str]) -> str:
    """ONNX's pooling wants a batch and channels in front."""
    if s.ndim() == space + 2:
        return pooled(s.x())
    axis = s.integers([0])
    return s.add("Squeeze", pooled(s.add("Unsqueeze", s.x(), axis)), axis)


def _windows(pool: Site) -> dict[str, list[int]]:
    keys = ("kernel", "stride", "dilation")
    kernel, stride, dilation = (list(pool.param(k)) for k in keys)
    pads = _pads(pool, len(kernel))
    return {"kernel_shape": kernel, "strides": stride, "dilations": dilation, "pads": pads}


def _max_pool(s: Site, pool: Site) -> str:
    """The values at the places that ``pool`` has found."""
    how = _windows(pool)
    return _batched(s, len(how["pads"]) // 2, lambda x: s.add("MaxPool", x, **how))


def _places(s: Site) -> Made:
    """Where the greatest are, in each plane; ONNX counts through batch and channels, too."""
    how = _windows(s)
    space = len(how["pads"]) // 2
    plane = [math.prod(step.shapes[0][-space:]) for step in s.steps]
    found = _batched(s, space, lambda x: s.add("MaxPool", x, outputs=2, **how)[1])
    return s.add("Mod", found, s.graph.size(plane, s.what))


def _pool_scatter(s: Site) -> Made:
    """Values at their places in planes of zeros."""
    nd = len(s.step.params["size"])
    lead = s.shape()[: s.ndim() - nd]
    made = s.out_shape()[len(lead) :]
    plane = [math.prod(d[p] for d in made) for p in range(len(s.steps))]
    flat = s.graph.sizes([*lead, [-1] * len(s.steps)], s.what)
    zeros = s.add("Expand", s.number_of(0.0), s.graph.sizes([*lead, plane], s.what))
    values, places = (s.add("Reshape", s.x(i), flat) for i in (0, 1))
    found = s.add("ScatterElements", zeros, places, values, axis=s.ndim() - nd)
    return s.add("Reshape", found, s.graph.sizes(s.out_shape(), s.what))


def _pool_gather(s: Site) -> Made:
    pool = s.source(1)
    if pool is not None and pool.step.inputs[0] == s.step.inputs[0]:
        if pool.name == "max_pool_indices":
            return _max_pool(s, pool)
        if pool.name == "adaptive_max_pool_indices":
            return _adaptive(s, list(pool.param("size")), "ReduceMax")
    return s.fail("it reads values at places that were not found by pooling the same tensor")


def _avg_pool(s: Site) -> Made:
    size = s.param("size") if all("size" in st.params for st in s.steps) else ()
    space = len(s.many("kernel")[0])
    dims = list(range(s.ndim() - space, s.ndim()))
    covered = [
        all(k == n for k, n in zip(step.params["kernel"], step.shapes[0][-space:], strict=True))
        and not any(step.params["padding"])
        and step.params["divisor"] in (None, math.prod(step.params["kernel"]))
        for step in s.steps
    ]
    if all(covered) and all(n == 1 for n in size):
        return s.add("ReduceMean", s.x(), s.integers(dims), keepdims=1)
    if not all(d == 1 for d in s.param("dilation")):
        s.fail("AveragePool of ONNX has no dilation before opset 19")
    kernel, stride = list(s.param("kernel")), list(s.param("stride"))
    pads, counts, divisor = _pads(s, space), bool(s.param("count_pad")), s.param("divisor")
    if (counts or divisor) and pads[:space] != pads[space:]:
        s.fail("ceil_mode where padding counts in the mean (count_include_pad) has no counterpart")
    counts = counts or divisor is not None
    how = {"kernel_shape": kernel, "strides": stride, "pads": pads}
    found = _batched(
        s, space, lambda x: s.add("AveragePool", x, count_include_pad=int(counts), **how)
    )
    whole = math.prod(kernel)
    if divisor in (None, whole):
        return found
    return s.add("Mul", found, s.number_of(whole / divisor))


def _adaptive(s: Site, sizes: list[int], kind: str) -> str:
    """Along each dimension by itself: window i goes from floor(i n / m) to ceil((i + 1) n / m)."""
    found = s.x()
    lead = s.ndim() - len(sizes)
    for d, made in enumerate(sizes):
        size = s.shape()[lead + d]
        if made == 1:
            found = s.add(kind, found, s.integers([lead + d]), keepdims=1)
            continue
        if not is_fixed(size):
            s.fail(f"adaptive pooling to the size {made} along a dynamic axis")
        n, axis, parts = int(size[0]), s.integers([lead + d]), []
        if n == made:
            continue
        for i in range(made):
            ends = s.integers([i * n // made]), s.integers([-(-(i + 1) * n // made)])
            parts.append(s.add(kind, s.add("Slice", found, *ends, axis), axis, keepdims=1))
        found = s.add("Concat", *parts, axis=lead + d)
    return found


RULES: dict[str, Rule] = {
    "adaptive_avg_pool": lambda s: _adaptive(s, list(s.param("size")), "ReduceMean"),
    "avg_pool": _avg_pool,
    "max_pool_indices": _places,
    "pool_gather": _pool_gather,
    "pool_scatter": _pool_scatter,
}
