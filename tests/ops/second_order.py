"""The derivatives of a backward pass: those of both modes against differences of first ones.

What :func:`chainrule.autograd.gradgradcheck` compares, to the same accuracy, in a fraction of its
time: all differences are one ``vmap``, all directions of forward mode another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from helpers import assert_close, weight

from chainrule.autograd import grad
from chainrule.func import jvp, vjp, vmap
from chainrule.tensor import Tensor, of_array

__all__ = ["check_backward_pass"]

EPS, ATOL, RTOL = 1e-6, 1e-5, 1e-3  # those of gradcheck
Function = Callable[..., tuple[Tensor, ...]]


def check_backward_pass(function: Function, values: Sequence[np.ndarray]) -> None:
    """The Jacobian of J(x)^T g by x and g, entry by entry; a row for each entry of x and g."""
    count = len(values)

    def pulled(*args: Tensor) -> tuple[Tensor, ...]:
        return tuple(vjp(function, *args[:count])[1](args[count:]))

    outputs = function(*[of_array(v.copy()) for v in values])
    point = [*values, *(weight(tuple(y.shape)) - 0.3 for y in outputs)]
    numerical = by_differences(pulled, point)
    forward, backward = by_forward_mode(pulled, point), by_reverse_mode(pulled, point)
    assert np.isfinite(numerical).all()
    assert_close(forward, numerical, rtol=RTOL, atol=ATOL)
    assert_close(backward, numerical, rtol=RTOL, atol=ATOL)
    assert_close(forward, backward, rtol=1e-7, atol=1e-9)


def units(point: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The unit vectors of a point, stacked: in each some entry of some array is 1."""
    sizes = [a.size for a in point]
    pieces = np.split(np.eye(sum(sizes)), np.cumsum(sizes)[:-1], axis=1)
    return [u.reshape(len(u), *a.shape) for u, a in zip(pieces, point, strict=True)]


def rows(stacks: Sequence[Any]) -> np.ndarray:
    """Stacks of arrays as one matrix, a row for each place in the stack."""
    plain = [s.numpy() if isinstance(s, Tensor) else s for s in stacks]
    return np.concatenate([s.reshape(len(s), math.prod(s.shape[1:])) for s in plain], axis=1)


def by_differences(function: Function, point: Sequence[np.ndarray]) -> np.ndarray:
    ahead, behind = (
        [a + step * u for a, u in zip(point, units(point), strict=True)] for step in (EPS, -EPS)
    )
    right, left = (rows(vmap(function)(*map(of_array, end))) for end in (ahead, behind))
    with np.errstate(invalid="ignore"):  # at infinity
        width = (rows(ahead) - rows(behind)).sum(axis=1, keepdims=True)  # in floating point
    return (right - left) / np.where(np.isnan(width), 2 * EPS, width)


def by_forward_mode(function: Function, point: Sequence[np.ndarray]) -> np.ndarray:
    """In all directions at once, and in one alone."""
    at = tuple(map(of_array, point))

    def push(*directions: Tensor) -> tuple[Tensor, ...]:
        values, tangents = jvp(function, at, directions)
        assert [(t.shape, t.dtype) for t in tangents] == [(v.shape, v.dtype) for v in values]
        return tuple(tangents)

    jacobian = rows(vmap(push)(*map(of_array, units(point))))
    one = [weight(a.shape) for a in point]
    alone = push(*map(of_array, one))
    expected = np.concatenate([a.ravel() for a in one]) @ jacobian
    found = np.concatenate([t.numpy().ravel() for t in alone])
    assert_close(found, expected, rtol=1e-7, atol=1e-9 * max(1.0, np.abs(jacobian).max(initial=0)))
    return jacobian


def by_reverse_mode(function: Function, point: Sequence[np.ndarray]) -> np.ndarray:
    """One output after the other, and the last one twice."""
    at = [of_array(a.copy()).requires_grad_() for a in point]
    values = function(*at)
    kept = [v.requires_grad for v in values]

    def pull(unit: Sequence[np.ndarray]) -> np.ndarray:
        parts = [of_array(u) for u, keep in zip(unit, kept, strict=True) if keep]
        outputs = [v for v, keep in zip(values, kept, strict=True) if keep]
        if not outputs:
            return np.concatenate([np.zeros(a.size) for a in point])
        found = grad(outputs, at, parts, retain_graph=True, materialize_grads=True)
        dense = [f.to_dense() for f in found]
        assert [(d.shape, d.dtype) for d in dense] == [(a.shape, a.dtype) for a in at]
        return np.concatenate([d.numpy().ravel() for d in dense])

    each = [*zip(*units([v.detach().numpy() for v in values]), strict=True)]
    columns = [pull(unit) for unit in each]
    assert_close(pull(each[-1]), columns[-1], rtol=0, atol=0)
    return np.stack(columns, axis=1)
