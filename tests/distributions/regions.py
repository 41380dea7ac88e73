"""One record per constraint: how it is made, members, values on its border, and values outside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import chainrule

__all__ = ["REGIONS", "Region", "build"]

INF, NAN = float("inf"), float("nan")
TINY = float(np.nextafter(0, 1))
ABOVE_1, BELOW_1 = float(np.nextafter(1, 2)), float(np.nextafter(1, 0))


@dataclass(frozen=True, eq=False)
class Region:
    """``make(constraints, tensor)`` with a library's module and its way from a list to a tensor.

    ``inside`` and ``outside`` are lists of values, border cases among them; ``torch`` is False
    where PyTorch's answer is another. ``free`` is the shape of the numbers from
    which ``biject_to``, or ``transform_to`` where there is no bijection, makes two values.
    """

    label: str
    make: Callable[[Any, Any], Any]
    inside: list[Any]
    outside: list[Any]
    event_dim: int = 0
    is_discrete: bool = False
    free: tuple[int, ...] | None = None
    bijective: bool = True
    torch: bool = True


def build(region: Region, library: Any = chainrule) -> Any:
    """The constraint of a record."""
    return region.make(
        library.distributions.constraints, lambda x: library.tensor(x, dtype=library.float64)
    )


EYE, HALF = np.eye(2).tolist(), np.sqrt(0.5)
LOWER = [[1.0, 0.0], [2.0, 3.0]]
UNIT_ROWS = [[1.0, 0.0], [HALF, HALF]]
FULL = [[2.0, 1.0], [1.0, 2.0]]

NUMBERS = [
    Region("real", lambda c, t: c.real, [0.0, -INF, INF], [NAN], free=(2,)),
    Region("positive", lambda c, t: c.positive, [TINY, 1.0, INF], [0.0, -1.0, NAN], free=(2,)),
    Region("nonnegative", lambda c, t: c.nonnegative, [0.0, -0.0, INF], [-TINY, NAN], free=(2,)),
    Region("greater_than", lambda c, t: c.greater_than(1.0), [ABOVE_1], [1.0, 0.0, NAN], free=(2,)),
    Region(
        "greater_than of a tensor",
        lambda c, t: c.greater_than(t([0.0, 2.0])),
        [[1.0, 3.0]],
        [[0.0, 2.0], [NAN, -1.0]],
        free=(2, 2),
    ),
    Region(
        "greater_than_eq",
        lambda c, t: c.greater_than_eq(1.0),
        [1.0, 2.0],
        [BELOW_1, NAN],
        free=(2,),
    ),
    Region("less_than", lambda c, t: c.less_than(1.0), [BELOW_1, -INF], [1.0, 2.0, NAN], free=(2,)),
    Region(
        "unit_interval",
        lambda c, t: c.unit_interval,
        [0.0, 0.5, 1.0],
        [-TINY, ABOVE_1, NAN],
        free=(2,),
    ),
    Region(
        "interval",
        lambda c, t: c.interval(-1.0, t(1.0)),
        [-1.0, 0.0, 1.0],
        [-ABOVE_1, ABOVE_1, NAN],
        free=(2,),
    ),
    Region(
        "half_open_interval",
        lambda c, t: c.half_open_interval(-1.0, 1.0),
        [-1.0, BELOW_1],
        [1.0, -2.0, NAN],
        free=(2,),
    ),
    Region("boolean", lambda c, t: c.boolean, [0.0, 1.0], [0.5, 2.0, -1.0, NAN], 0, True),
    Region(
        "integer_interval",
        lambda c, t: c.integer_interval(-1, 2),
        [-1.0, 0.0, 2.0],
        [-2.0, 0.5, 3.0, NAN, INF],
        0,
        True,
    ),
    Region(
        "nonnegative_integer",
        lambda c, t: c.nonnegative_integer,
        [0.0, 1e15],
        [-1.0, 0.5, NAN],
        0,
        True,
    ),
    Region(
        "positive_integer", lambda c, t: c.positive_integer, [1.0, 7.0], [0.0, 1.5, NAN], 0, True
    ),
]

VECTORS = [
    Region(
        "real_vector",
        lambda c, t: c.real_vector,
        [[1.0, -INF]],
        [[NAN, 1.0], [1.0, NAN]],
        1,
        free=(2, 3),
    ),
    Region(
        "independent",
        lambda c, t: c.independent(c.positive, 2),
        [[[1.0, 2.0], [3.0, 4.0]]],
        [[[1.0, 2.0], [3.0, 0.0]], [[NAN, 1.0], [1.0, 1.0]]],
        2,
        free=(2, 3, 2),
    ),
    Region(
        "independent simplex",
        lambda c, t: c.independent(c.simplex, 1),
        [[[0.5, 0.5], [0.0, 1.0]]],
        [[[0.5, 0.5], [0.0, 0.9]]],
        2,
        free=(2, 3, 2),
    ),
    Region(
        "simplex",
        lambda c, t: c.simplex,
        [[0.2, 0.8], [0.0, 1.0], [0.5, 0.5 + 9e-7]],
        [[0.2, 0.7], [-0.1, 1.1], [0.5, 0.5 + 2e-6], [NAN, 1.0]],
        1,
        free=(2, 3),
    ),
    Region(
        "one_hot",
        lambda c, t: c.one_hot,
        [[0.0, 1.0], [1.0, 0.0]],
        [[0.0, 0.0], [1.0, 1.0], [0.5, 0.5], [NAN, 1.0]],
        1,
        True,
    ),
    Region(
        "multinomial",
        lambda c, t: c.multinomial(3),
        [[1.0, 2.0], [0.0, 3.0]],
        [[2.0, 2.0], [-1.0, 4.0], [NAN, 3.0]],
        1,
        True,
    ),
    Region(
        "multinomial of fewer",
        lambda c, t: c.multinomial(3),
        [[3.0, 0.0]],
        [[1.0, 1.0]],
        1,
        True,
        torch=False,
    ),
]

MATRICES = [
    Region(
        "lower_triangular",
        lambda c, t: c.lower_triangular,
        [LOWER, [[-1.0, 0.0], [2.0, 0.0]]],
        [[[1.0, 1e-9], [2.0, 3.0]], [[1.0, 0.0], [NAN, 3.0]]],
        2,
    ),
    Region(
        "lower_cholesky",
        lambda c, t: c.lower_cholesky,
        [LOWER, EYE],
        [[[1.0, 0.1], [2.0, 3.0]], [[1.0, 0.0], [2.0, 0.0]], [[NAN, 0.0], [2.0, 1.0]]],
        2,
        free=(2, 3, 3),
        bijective=False,
    ),
    Region(
        "corr_cholesky",
        lambda c, t: c.corr_cholesky,
        [EYE, UNIT_ROWS],
        [LOWER, [[1.0, 0.0], [HALF, -HALF]], [[1.0, 0.0], [HALF, HALF + 1e-9]], [[1, 0], [NAN, 1]]],
        2,
        free=(2, 3),
    ),
    Region("square", lambda c, t: c.square, [EYE, LOWER], [], 2),
    Region("square of others", lambda c, t: c.square, [], [[[1.0, 2.0]]], 2),
    Region(
        "symmetric",
        lambda c, t: c.symmetric,
        [EYE, FULL, [[0.0, 1.0], [1.0 + 1e-6, INF]]],
        [LOWER, [[0.0, 1.0], [1.001, 0.0]], [[NAN, 0.0], [0.0, 1.0]]],
        2,
    ),
    Region("symmetric of others", lambda c, t: c.symmetric, [], [[[1.0, 2.0]]], 2),
    Region(
        "positive_semidefinite",
        lambda c, t: c.positive_semidefinite,
        [EYE, FULL, [[1.0, 0.0], [0.0, 0.0]]],
        [[[1.0, 2.0], [2.0, 1.0]], LOWER, [[-1.0, 0.0], [0.0, 1.0]]],
        2,
        free=(2, 3, 3),
        bijective=False,
    ),
    Region(
        "positive_definite",
        lambda c, t: c.positive_definite,
        [EYE, FULL, [[1e-9, 0.0], [0.0, 1.0]]],
        [[[1.0, 2.0], [2.0, 1.0]], [[1.0, 0.0], [0.0, 0.0]], [[-1.0, 0.0], [0.0, 1.0]]],
        2,
        free=(2, 3, 3),
        bijective=False,
    ),
    Region(
        "positive_definite among others",
        lambda c, t: c.positive_definite,
        [EYE],
        [LOWER, [[1.0, 2.0], [2.0, 1.0]], [[NAN, 0.0], [0.0, 1.0]], [[INF, 0.0], [0.0, 1.0]]],
        2,
        free=(2, 3, 3),
        bijective=False,
        torch=False,
    ),
    Region(
        "definite of others",
        lambda c, t: c.positive_definite,
        [],
        [[[1.0, 2.0]]],
        2,
        free=(2, 1, 1),
        bijective=False,
    ),
]

PARTS = [
    Region(
        "cat of vectors",
        lambda c, t: c.cat([c.independent(c.positive, 1), c.real_vector], -1, [1, 2]),
        [[1.0, -1.0, 0.0]],
        [[0.0, 1.0, 1.0], [1.0, 1.0, NAN]],
        1,
        free=(2, 3),
        torch=False,
    ),
    Region(
        "cat of both kinds",
        lambda c, t: c.cat([c.real_vector, c.boolean], -1, [1, 2]),
        [[-1.0, 0.0, 1.0]],
        [[NAN, 0.0, 1.0], [1.0, 1.0, 0.5]],
        1,
        True,
        torch=False,
    ),
    Region(
        "stack of values",
        lambda c, t: c.stack([c.positive, c.unit_interval], -1),
        [[2.0, 1.0]],
        [[0.0, 0.5], [1.0, 1.5], [NAN, 0.5]],
        1,
        free=(2, 2),
        torch=False,
    ),
    Region(
        "stack of vectors",
        lambda c, t: c.stack([c.real_vector, c.independent(c.positive, 1)], -2),
        [[[-1.0, 2.0], [1.0, 2.0]]],
        [[[1.0, 2.0], [-1.0, 2.0]], [[NAN, 2.0], [1.0, 2.0]]],
        2,
        free=(2, 2, 3),
        torch=False,
    ),
    Region(
        "mixture",
        lambda c, t: c.MixtureSameFamilyConstraint(c.interval(t([0.0, -1.0]), 1.0)),
        [0.0, 1.0],
        [-0.5, 1.5, NAN],
    ),
    Region(
        "mixture of vectors",
        lambda c, t: c.MixtureSameFamilyConstraint(c.simplex),
        [[0.5, 0.5]],
        [[0.5, 0.6]],
        1,
    ),
]

REGIONS = NUMBERS + VECTORS + MATRICES + PARTS
