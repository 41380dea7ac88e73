"""One record per transform: how it is made in either library, and values of its domain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import chainrule

__all__ = ["CASES", "Case", "build", "points"]

Maker = Callable[[Any, Any], Any]
A = np.array


@dataclass(frozen=True, eq=False)
class Case:
    """``make(transforms, tensor)`` with a library's module and its way from a list to a tensor.

    ``free`` takes one value of the codomain to as many numbers as one of the domain has, where it
    has more; ``torch`` is False for what PyTorch computes wrongly.
    """

    label: str
    make: Maker
    x: Any
    free: Callable[[Any], Any] = lambda y: y
    torch: bool = True


def build(case: Case, library: Any = chainrule) -> Any:
    """The transform of a record."""
    return case.make(
        library.distributions.transforms, lambda x: library.tensor(x, dtype=library.float64)
    )


def points(case: Case) -> Any:
    """The values of a record as a tensor."""
    return chainrule.tensor(np.asarray(case.x, np.float64))


def below(y: Any) -> Any:
    """The numbers below the diagonal of a matrix, row by row."""
    rows, columns = np.tril_indices(y.shape[-1], -1)
    return y[..., rows, columns]


r = np.random.default_rng(5)
LINE = A([[-1.5, -0.2, 0.3], [0.7, 1.1, 2.0]])
ABOVE = np.exp(LINE)
VECTORS = r.normal(size=(2, 3))
MATRICES = r.normal(size=(2, 2, 2))
MIXED = [[1.0, 0.5], [2.0, 3.0]]

NUMBERS = [
    Case("identity", lambda t, _: t.identity_transform, LINE),
    Case("exp", lambda t, _: t.ExpTransform(), LINE),
    Case("exp inverse", lambda t, _: t.ExpTransform().inv, ABOVE),
    Case("sigmoid", lambda t, _: t.SigmoidTransform(), LINE),
    Case("softplus", lambda t, _: t.SoftplusTransform(), LINE),
    Case("tanh", lambda t, _: t.TanhTransform(), LINE),
    Case("abs", lambda t, _: t.AbsTransform(), LINE),
    Case("power", lambda t, _: t.PowerTransform(4.0), ABOVE),
    Case("root", lambda t, _: t.PowerTransform(-0.5), ABOVE),
    Case("powers", lambda t, tensor: t.PowerTransform(tensor([1.0, -2.0, 0.5])), ABOVE),
    Case("affine", lambda t, _: t.AffineTransform(1.5, -2.0), LINE),
    Case("affine of ints", lambda t, _: t.AffineTransform(1, 2), LINE),
    Case(
        "affines",
        lambda t, tensor: t.AffineTransform(tensor([1.0, 2.0, 3.0]), tensor([2.0, -1.0, 0.5])),
        LINE,
    ),
    Case(
        "affine vectors",
        lambda t, tensor: t.AffineTransform(0.5, tensor([2.0, -1.0, 0.5]), event_dim=1),
        LINE,
    ),
    Case(
        "affine vectors by one number",
        lambda t, tensor: t.AffineTransform(0.5, tensor(2.0), event_dim=1),
        LINE,
        torch=False,  # counts the number once, not once for each element
    ),
    Case("affine matrices", lambda t, _: t.AffineTransform(0.5, 3.0, event_dim=2), LINE),
    Case(
        "distribution function",
        lambda t, tensor: t.CumulativeDistributionTransform(
            normal(t)(tensor([0.0, 1.0, -1.0]), 2.0)
        ),
        LINE,
    ),
    Case(
        "quantile",
        lambda t, tensor: t.CumulativeDistributionTransform(normal(t)(tensor(0.5), 2.0)).inv,
        A([0.1, 0.4, 0.95]),
    ),
]


def normal(transforms: Any) -> Any:
    """The class Normal of the library that a module of transforms belongs to."""
    library = __import__(transforms.__name__.partition(".")[0])
    return library.distributions.Normal


WHOLE = [
    Case("softmax", lambda t, _: t.SoftmaxTransform(), VECTORS),
    Case("stick breaking", lambda t, _: t.StickBreakingTransform(), VECTORS, lambda y: y[..., :-1]),
    Case("lower cholesky", lambda t, _: t.LowerCholeskyTransform(), MATRICES),
    Case("positive definite", lambda t, _: t.PositiveDefiniteTransform(), MATRICES),
    Case("corr cholesky", lambda t, _: t.CorrCholeskyTransform(), VECTORS, below),
    Case("reshape", lambda t, _: t.ReshapeTransform((2, 2), (4,)), MATRICES),
    Case("reshape to a number", lambda t, _: t.ReshapeTransform((1,), ()), VECTORS[:, :1]),
]

MADE = [
    Case(
        "compose", lambda t, _: t.ComposeTransform([t.ExpTransform(), t.PowerTransform(2.0)]), LINE
    ),
    Case(
        "compose falling",
        lambda t, _: t.ComposeTransform([t.TanhTransform(), t.AffineTransform(1.0, -3.0)]),
        LINE,
    ),
    Case(
        "compose inverse",
        lambda t, _: t.ComposeTransform([t.ExpTransform(), t.AffineTransform(0.0, 2.0)]).inv,
        ABOVE,
    ),
    Case(
        "compose numbers and vectors",
        lambda t, tensor: t.ComposeTransform(
            [t.AffineTransform(tensor([1.0, 0.0, 2.0]), 0.5), t.StickBreakingTransform()]
        ),
        VECTORS,
        lambda y: y[..., :-1],
    ),
    Case(
        "compose vectors and matrices",
        lambda t, _: t.ComposeTransform(
            [t.TanhTransform(), t.ReshapeTransform((4,), (2, 2)), t.ExpTransform()]
        ),
        r.normal(size=(3, 4)),
    ),
    Case("independent", lambda t, _: t.IndependentTransform(t.ExpTransform(), 1), LINE),
    Case("independent 2", lambda t, _: t.IndependentTransform(t.TanhTransform(), 2), LINE),
    Case(
        "independent reshape",
        lambda t, _: t.IndependentTransform(t.ReshapeTransform((2, 2), (4,)), 1),
        MATRICES,
    ),
    Case(
        "cat",
        lambda t, _: t.CatTransform([t.ExpTransform(), t.AffineTransform(0.0, -2.0)], -1, [1, 2]),
        LINE,
    ),
    Case(
        "cat of ones",
        lambda t, _: t.CatTransform([t.ExpTransform(), t.TanhTransform()], dim=0),
        LINE,
    ),
    Case(
        "cat of vectors",
        lambda t, _: t.CatTransform(
            [t.IndependentTransform(t.ExpTransform(), 1), t.TanhTransform()], -1, [1, 2]
        ),
        LINE,
    ),
    Case(
        "cat of rows",
        lambda t, _: t.CatTransform(
            [t.IndependentTransform(t.ExpTransform(), 1), t.TanhTransform()], 0
        ),
        LINE,
    ),
    Case(
        "stack",
        lambda t, _: t.StackTransform([t.ExpTransform(), t.AffineTransform(0.0, -2.0)], 0),
        LINE,
    ),
    Case(
        "stack of columns",
        lambda t, _: t.StackTransform([t.ExpTransform(), t.TanhTransform()], dim=1),
        A(MIXED),
    ),
    Case(
        "stack of values",
        lambda t, _: t.StackTransform([t.ExpTransform(), t.TanhTransform()], dim=-1),
        A(MIXED),
        torch=False,  # says that they are vectors, but does not add up
    ),
    Case(
        "stack of vectors",
        lambda t, _: t.StackTransform(
            [t.IndependentTransform(t.ExpTransform(), 1), t.TanhTransform()], dim=-2
        ),
        MATRICES,
        torch=False,
    ),
    Case(
        "stack along vectors",
        lambda t, _: t.StackTransform(
            [t.IndependentTransform(t.ExpTransform(), 1), t.TanhTransform()], dim=-1
        ),
        MATRICES,
        torch=False,
    ),
]

CASES = NUMBERS + WHOLE + MADE
