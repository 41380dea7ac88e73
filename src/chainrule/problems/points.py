"""Points in the plane with labels.

The labels of random sets follow one another (0, 1, ..., 0, 1, ...), so that every part of the data
is balanced. Without noise, ``rule`` gives back the labels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from chainrule.backend import dtypes
from chainrule.ops.creation.patterns import arange
from chainrule.ops.elementwise.functions import atan2, cos, hypot, minimum, remainder, sin
from chainrule.ops.elementwise.logic import where
from chainrule.ops.elementwise.options import clamp, round
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.reduce.order import argmin
from chainrule.ops.core.promotion import cast
from chainrule.ops.reduce.reductions import sum
from chainrule.ops.shape.stacking import stack
from chainrule.problems.problem import Problem, floating, normal, uniform, whole
from chainrule.tensor import Tensor
from chainrule.typing import DType, Random

__all__ = ["blobs", "boolean", "circles", "moons", "spirals"]

_TABLES = {  # of (0, 0), (0, 1), (1, 0), (1, 1)
    "or": (0, 1, 1, 1),
    "and": (0, 0, 0, 1),
    "and1": (0, 0, 1, 0),
    "and2": (0, 1, 0, 0),
    "xor": (0, 1, 1, 0),
    "nor": (1, 0, 0, 0),
    "nand": (1, 1, 1, 0),
    "xnor": (1, 0, 0, 1),
}


def boolean(name: str = "xor", signed: bool = False, dtype: DType | None = None) -> Problem:
    """The table of a Boolean function of two variables: four inputs (4, 2), targets (4, 1).

    "or", "and", "xor", "nor", "nand", "xnor", "and1" (x1 and not x2), "and2" (not x1 and x2). With
    ``signed``, false and true are -1 and 1 in the targets. ``known["separable"]`` says whether a
    line separates true from false: for all but "xor" and "xnor".

    >>> from chainrule import problems
    >>> problems.boolean("xor").targets.flatten()
    tensor([0., 1., 1., 0.])
    """
    key = name.lower()
    if key not in _TABLES:
        raise ValueError(f"boolean: {name!r} is not one of {', '.join(_TABLES)}")
    dtype = floating("boolean", dtype)
    table = tensor(_TABLES[key], dtype=dtype)
    values = 2 * table - 1 if signed else table

    def rule(x: Tensor) -> Tensor:
        return values[cast(2 * x[:, 0] + x[:, 1], dtypes.int64)][:, None]

    inputs = tensor([[0.0, 0], [0, 1], [1, 0], [1, 1]], dtype=dtype)
    return Problem(
        key,
        "documents 000, 001, 003 and 004 (section 4.5, its last label corrected)",
        inputs=inputs,
        targets=rule(inputs),
        rule=rule,
        known={"separable": key not in ("xor", "xnor")},
    )


# --- random sets ----------------------------------------------------------------------------------


def _checked(op: str, n: int, classes: int, noise: float, dtype: DType | None) -> dtypes.dtype:
    whole(op, n=n)
    whole(op, 2, classes=classes)
    if not 0 <= noise < math.inf:
        raise ValueError(f"{op}: noise must not be negative, got {noise}")
    return floating(op, dtype)


def _made(
    name: str,
    x: Tensor,
    labels: Tensor,
    noise: float,
    rule: Callable[[Tensor], Tensor],
    generator: Random,
    **known: Any,
) -> Problem:
    x = x + normal(noise, *x.shape, generator=generator, dtype=x.dtype) if noise else x
    return Problem(
        name,
        "document 002, the point sets of its figures",
        inputs=x,
        targets=labels,
        rule=rule,
        known=known,
    )


def _labels(n: int, classes: int) -> Tensor:
    return arange(n) % classes


def _arc_distance(x: Tensor, sign: float, center: tuple[float, float]) -> Tensor:
    """How far points are from the half circle above (sign 1) or below (-1) a center."""
    u, v = x[:, 0] - center[0], sign * (x[:, 1] - center[1])
    ends = minimum(hypot(u - 1, v), hypot(u + 1, v))
    return where(v >= 0, (hypot(u, v) - 1).abs(), ends)


def moons(
    n: int = 200, noise: float = 0.1, generator: Random = None, dtype: DType | None = None
) -> Problem:
    """Two half circles that reach into each other; a point's rule is the nearer one.

    >>> from chainrule import problems
    >>> p = problems.moons(6, noise=0.0)
    >>> p.targets, bool((p.rule(p.inputs) == p.targets).all())
    (tensor([0, 1, 0, 1, 0, 1]), True)
    """
    dtype = _checked("moons", n, 2, noise, dtype)
    labels = _labels(n, 2)
    t = uniform(0.0, math.pi, n, generator=generator, dtype=dtype)
    upper = labels < 1
    x = stack([where(upper, cos(t), 1 - cos(t)), where(upper, sin(t), 0.5 - sin(t))], 1)

    def rule(x: Tensor) -> Tensor:
        distances = [_arc_distance(x, 1.0, (0.0, 0.0)), _arc_distance(x, -1.0, (1.0, 0.5))]
        return argmin(stack(distances, 1), 1)

    return _made("moons", x, labels, noise, rule, generator)


def circles(
    n: int = 200,
    classes: int = 2,
    noise: float = 0.05,
    generator: Random = None,
    dtype: DType | None = None,
) -> Problem:
    """Circles around 0 with radii 1 / classes, ..., 1; the label counts from the inside.

    >>> from chainrule import problems
    >>> p = problems.circles(4, noise=0.0)
    >>> (p.inputs ** 2).sum(1).sqrt()
    tensor([0.5000, 1.0000, 0.5000, 1.0000])
    """
    dtype = _checked("circles", n, classes, noise, dtype)
    labels = _labels(n, classes)
    t = uniform(0.0, 2 * math.pi, n, generator=generator, dtype=dtype)
    radii = cast(labels + 1, dtype) / classes
    x = stack([radii * cos(t), radii * sin(t)], 1)

    def rule(x: Tensor) -> Tensor:
        ring = round(classes * hypot(x[:, 0], x[:, 1])) - 1
        return cast(clamp(ring, 0, classes - 1), dtypes.int64)

    return _made("circles", x, labels, noise, rule, generator)


def spirals(
    n: int = 300,
    classes: int = 3,
    turns: float = 0.75,
    noise: float = 0.02,
    generator: Random = None,
    dtype: DType | None = None,
) -> Problem:
    """Arms that wind around 0: radius r in [0.1, 1), angle 2 pi (turns r + label / classes).

    >>> from chainrule import problems
    >>> problems.spirals(30, classes=3).inputs.shape
    chainrule.Size([30, 2])
    """
    dtype = _checked("spirals", n, classes, noise, dtype)
    labels = _labels(n, classes)
    r = uniform(0.1, 1.0, n, generator=generator, dtype=dtype)
    t = 2 * math.pi * (turns * r + cast(labels, dtype) / classes)
    x = stack([r * cos(t), r * sin(t)], 1)

    def rule(x: Tensor) -> Tensor:
        angle = atan2(x[:, 1], x[:, 0]) / (2 * math.pi) - turns * hypot(x[:, 0], x[:, 1])
        return cast(remainder(round(classes * angle), classes), dtypes.int64)

    return _made("spirals", x, labels, noise, rule, generator, turns=turns)


def blobs(
    n: int = 200,
    classes: int = 3,
    noise: float = 0.3,
    generator: Random = None,
    dtype: DType | None = None,
) -> Problem:
    """Normal clouds of standard deviation ``noise`` around centers on the unit circle.

    The rule, the nearest center, is the best there is: no classifier errs less often.

    >>> from chainrule import problems
    >>> problems.blobs(classes=3).known["centers"]
    tensor([[ 1.0000,  0.0000],
            [-0.5000,  0.8660],
            [-0.5000, -0.8660]])
    """
    dtype = _checked("blobs", n, classes, noise, dtype)
    labels = _labels(n, classes)
    angles = [2 * math.pi * k / classes for k in range(classes)]
    centers = tensor([[math.cos(a), math.sin(a)] for a in angles], dtype=dtype)

    def rule(x: Tensor) -> Tensor:
        d = x[:, None] - centers
        return argmin(sum(d * d, -1), 1)

    return _made("blobs", centers[labels], labels, noise, rule, generator, centers=centers)
