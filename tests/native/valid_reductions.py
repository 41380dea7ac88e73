"""Random valid calls of the compiled reductions."""

from __future__ import annotations

import numpy as np

from native.drawing import Call, Draw, makes

__all__: list[str] = []


def _some(d: Draw, ndim: int) -> tuple[int, ...]:
    """Some dimensions, counted from the end."""
    return tuple(i for i in range(-ndim, 0) if d.flag())


@makes("sum", "mean", "amax", "amin", "prod", "logsumexp")
def _reduced(d: Draw, name: str) -> Call:
    shape = d.sizes()
    return (d.array(*shape),), {"dim": _some(d, len(shape)), "keepdim": d.flag()}


@makes("pnorm")
def _norm(d: Draw, name: str) -> Call:
    args, named = _reduced(d, name)
    return args, {**named, "p": d.pick(1, 2.0, 3, 0.5, 0)}


@makes("var", "std")
def _variance(d: Draw, name: str) -> Call:
    # The mean of infinite numbers is one, or none: that depends on the order.
    d.odd = [np.nan, -0.0, 0.0]
    args, named = _reduced(d, name)
    return args, {**named, "correction": d.pick(0, 1, 0.5)}


@makes("argmax", "argmin", "max_along", "min_along")
def _chosen(d: Draw, name: str) -> Call:
    shape = d.sizes(1)
    a = d.array(*shape)
    if d.chance(0.3):
        a = np.asarray(np.round(a))  # many equal ones
    return (a,), {"dim": d.r.randint(-len(shape), -1), "keepdim": d.flag()}


@makes("cumsum")
def _running(d: Draw, name: str) -> Call:
    shape = d.sizes(1)
    return (d.array(*shape),), {"dim": d.r.randint(-len(shape), -1), "reverse": d.flag()}


@makes("sum_to")
def _sum_to(d: Draw, name: str) -> Call:
    shape = d.sizes(1, 4)
    ones = tuple(d.pick(1, n) for n in shape)
    return (d.array(*shape), d.pick(shape[-1:], ones, ones[1:], (), (1,))), {}
