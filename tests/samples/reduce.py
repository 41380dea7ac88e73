"""Records of reductions, order statistics and scans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from samples.record import Sample, ints, normal, positive
from scipy import integrate, special, stats

import chainrule

__all__ = ["SAMPLES"]

Args = Callable[[np.random.Generator], tuple[Any, ...]]
INF = float("inf")


# --- arguments ------------------------------------------------------------------------------------


def then(args: Args, *more: Any) -> Args:
    """An input, then arguments that are the same in every call."""
    return lambda r: (*args(r), *more)


def with_nan(*shape: int) -> Args:
    """One input with some NaN, but no row or column of nothing else."""

    def args(r: np.random.Generator) -> tuple[Any, ...]:
        x = r.normal(size=shape)
        x.reshape(-1)[::7] = np.nan
        return (x,)

    return args


def constant(values: Any) -> Args:
    """The same input in every call."""
    return lambda r: (np.array(values),)


def two(*shapes: tuple[int, ...]) -> Args:
    """Several inputs of these shapes."""
    return lambda r: tuple(r.normal(size=s) for s in shapes)


# --- references -----------------------------------------------------------------------------------


def reducing(function: Callable[..., Any]) -> Callable[..., Any]:
    """A NumPy reduction with PyTorch's names of the arguments."""
    return lambda x, dim=None, keepdim=False: function(x, axis=dim, keepdims=keepdim)


def spread_of(function: Callable[..., Any]) -> Callable[..., Any]:
    def reference(x: Any, dim: Any = None, keepdim: bool = False, correction: float = 1) -> Any:
        return function(x, axis=dim, keepdims=keepdim, ddof=correction)

    return reference


def with_mean(function: Callable[..., Any]) -> Callable[..., Any]:
    def reference(x: Any, dim: Any = None, keepdim: bool = False, correction: float = 1) -> Any:
        spread = function(x, axis=dim, keepdims=keepdim, ddof=correction)
        return spread, np.mean(x, axis=dim, keepdims=keepdim)

    return reference


def p_norm(x: Any, p: Any = 2, dim: Any = None, keepdim: bool = False) -> Any:
    if dim is None:
        size = np.linalg.norm(x.ravel(), 2 if p == "fro" else p)
        return np.reshape(size, (1,) * x.ndim) if keepdim else size
    if isinstance(dim, tuple):
        rows = np.moveaxis(x, dim, range(len(dim)))
        rows = rows.reshape(-1, *rows.shape[len(dim) :])
        size = np.linalg.norm(rows, 2 if p == "fro" else p, axis=0)
        return np.expand_dims(size, dim) if keepdim else size
    return np.linalg.norm(x, 2 if p == "fro" else p, axis=dim, keepdims=keepdim)


def chosen(values: Callable[..., Any], indices: Callable[..., Any]) -> Callable[..., Any]:
    """The values that a function finds along ``dim`` and where it finds them."""

    def reference(x: Any, dim: int = -1, keepdim: bool = False) -> Any:
        return (
            values(x, axis=dim, keepdims=keepdim),
            np.asarray(indices(x, axis=dim, keepdims=keepdim)),
        )

    return reference


def lower_median(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    return np.quantile(x, 0.5, axis=axis, keepdims=keepdims, method="lower")


def lower_nanmedian(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    return np.nanquantile(x, 0.5, axis=axis, keepdims=keepdims, method="lower")


def place_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """Where the value that a function finds along ``axis`` stands."""

    def indices(x: Any, axis: int, keepdims: bool) -> Any:
        equal = x == function(x, axis=axis, keepdims=True)
        return np.argmax(equal, axis=axis, keepdims=keepdims)

    return indices


def running(ufunc: Any) -> Callable[..., Any]:
    return lambda x, dim: ufunc.accumulate(x, axis=dim)


def running_choice(ufunc: Any) -> Callable[..., Any]:
    def reference(x: Any, dim: int) -> Any:
        values = ufunc.accumulate(x, axis=dim)
        place = np.expand_dims(np.arange(x.shape[dim]), tuple(range(1, -(dim % x.ndim - x.ndim))))
        return values, np.maximum.accumulate(np.where(x == values, place, 0), axis=dim)

    return reference


def quantile_of(function: Callable[..., Any]) -> Callable[..., Any]:
    def reference(
        x: Any, q: Any, dim: Any = None, keepdim: bool = False, interpolation: str = "linear"
    ) -> Any:
        return function(x, q, axis=dim, keepdims=keepdim, method=interpolation)

    return reference


def logsumexp(x: Any, dim: Any, keepdim: bool = False) -> Any:
    return special.logsumexp(x, axis=dim, keepdims=keepdim)


def mode(x: Any, dim: int = -1, keepdim: bool = False) -> Any:
    return stats.mode(x, axis=dim, keepdims=keepdim).mode


def truth(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, dim=None, keepdim=False: np.asarray(function(x, axis=dim, keepdims=keepdim))


def first(out: Any) -> Any:
    return out[0]


# --- records --------------------------------------------------------------------------------------


def linear(*args: Any, **kwargs: Any) -> Sample:
    """Linear, or piecewise so: the second derivative is zero."""
    return Sample(*args, second_order=False, **kwargs)


def choice(*args: Any, **kwargs: Any) -> Sample:
    """Integers and truth values: nothing to differentiate."""
    return Sample(*args, differentiable=False, **kwargs)


def forms(
    name: str, reference: Any, args: Callable[..., Args] = normal, make: Any = Sample, **kwargs: Any
) -> list[Sample]:
    """A reduction that takes None, one or several dimensions, in all these forms."""
    shape = (2, 3, 4)
    return [
        make(name, args(*shape), reference=reference, **kwargs),
        make(name, then(args(*shape), 1), reference=reference, note="dim", **kwargs),
        make(
            name,
            then(args(*shape), -1),
            {"keepdim": True},
            reference=reference,
            note="keepdim",
            **kwargs,
        ),
        make(name, then(args(*shape), (0, -1)), reference=reference, note="dims", **kwargs),
        make(
            name,
            then(args(*shape), (0, 2), True),
            reference=reference,
            note="dims, keepdim",
            **kwargs,
        ),
        make(name, args(), reference=reference, note="no dimensions", **kwargs),
        make(
            name,
            then(args(), -1),
            reference=lambda x, dim: reference(x),
            note="no dimensions, dim",
            **kwargs,
        ),
    ]


def spreads(name: str, reference: Any) -> list[Sample]:
    x = normal(3, 4)
    return [
        Sample(name, x, reference=reference),
        Sample(name, then(x, 1), reference=reference, note="dim"),
        Sample(name, then(x, (0, 1)), {"keepdim": True}, reference=reference, note="dims, keepdim"),
        Sample(name, then(x, -1), {"correction": 0}, reference=reference, note="correction 0"),
        Sample(name, x, {"correction": 2.5}, reference=reference, note="correction 2.5"),
        Sample(
            name,
            then(x, 0, False),
            note="biased",
            reference=lambda x, dim, unbiased: reference(x, dim, False, 0),
        ),
        Sample(
            name,
            then(x, False),
            note="biased, all",
            reference=lambda x, unbiased: reference(x, None, False, 0),
        ),
    ]


def scans(name: str, reference: Any, make: Any = Sample) -> list[Sample]:
    return [
        make(name, then(normal(5), 0), reference=reference),
        make(name, then(normal(2, 4, 3), 1), reference=reference, note="middle"),
        make(name, then(normal(3, 4), -1), reference=reference, note="last"),
        linear(name, then(normal(3, 1), 1), reference=reference, note="one element"),
        linear(name, then(normal(0, 3), 0), reference=reference, note="empty"),
        linear(name, then(normal(), 0), note="no dimensions"),
    ]


def choices(name: str, reference: Any, args: Callable[..., Args] = normal) -> list[Sample]:
    """One element along a dimension, and its index."""
    return [
        linear(name, then(args(3, 4), 0), reference=reference, note="dim"),
        linear(
            name,
            then(args(2, 5, 3), -2),
            {"keepdim": True},
            reference=reference,
            note="dim, keepdim",
        ),
        linear(name, then(args(), 0), note="no dimensions, dim"),
    ]


SUMS = [
    *forms("sum", reducing(np.sum), make=linear),
    linear("sum", normal(0, 3), reference=reducing(np.sum), note="empty"),
    linear("sum", then(normal(0, 3), 0), reference=reducing(np.sum), note="empty, dim"),
    linear("sum", then(normal(2, 3), ()), reference=lambda x, dim: x.sum(), note="no dims"),
    choice("sum", ints(0, 9, 2, 3), reference=reducing(np.sum), note="integers"),
    choice("sum", constant([True, False, True]), reference=reducing(np.sum), note="booleans"),
    choice("sum", ints(0, 9, 4), {"dtype": chainrule.float64}, note="dtype"),
    *forms("mean", reducing(np.mean), make=linear),
    choice("mean", ints(0, 9, 4), {"dtype": chainrule.float64}, note="dtype"),
    *forms("nansum", reducing(np.nansum), with_nan, make=linear),
    choice("nansum", ints(0, 9, 2, 3), reference=reducing(np.nansum), note="integers"),
    *forms("nanmean", reducing(np.nanmean), with_nan, make=linear)[:-2],
    Sample("prod", normal(2, 3), reference=reducing(np.prod)),
    Sample("prod", then(normal(2, 3, 2), 1), reference=reducing(np.prod), note="dim"),
    Sample(
        "prod",
        then(normal(2, 3), -1),
        {"keepdim": True},
        reference=reducing(np.prod),
        note="keepdim",
    ),
    Sample("prod", constant([2.0, 0.0, -3.0]), reference=np.prod, note="a zero"),
    Sample(
        "prod",
        constant([[2.0, 0.0, 3.0], [0.0, 0.0, 5.0]]),
        {"dim": 1},
        reference=reducing(np.prod),
        note="zeros",
    ),
    linear("prod", normal(), reference=np.prod, note="no dimensions"),
    Sample("prod", then(normal(0, 3), 0), reference=reducing(np.prod), note="empty"),
    choice("prod", ints(1, 5, 4), reference=np.prod, note="integers"),
    *forms("logsumexp", logsumexp)[1:-2],
    Sample("logsumexp", then(normal(), 0), reference=logsumexp, note="no dimensions"),
    Sample(
        "logsumexp",
        constant([[1000.0, 999.0], [-1000.0, -1001.0]]),
        {"dim": 1},
        reference=logsumexp,
        float32=False,
        note="large",
    ),
    Sample(
        "logsumexp",
        constant([-INF, 0.5, 1.0]),
        {"dim": 0},
        reference=logsumexp,
        second_order=False,
        note="-inf",
    ),
    choice("logsumexp", then(ints(0, 5, 4), 0), note="integers"),
]

SPREADS = [
    *spreads("var", spread_of(np.var)),
    *spreads("std", spread_of(np.std)),
    *spreads("var_mean", with_mean(np.var)),
    *spreads("std_mean", with_mean(np.std)),
]

NORMS = [
    Sample("norm", normal(3, 4), reference=p_norm),
    Sample("norm", then(normal(3, 4), 2, 1), reference=p_norm, note="dim"),
    Sample(
        "norm",
        then(normal(3, 4), "fro", (0, 1)),
        {"keepdim": True},
        reference=p_norm,
        note="fro, keepdim",
    ),
    linear("norm", then(normal(3, 4), 1, 0), reference=p_norm, note="1"),
    Sample("norm", then(normal(2, 3, 4), 3, (0, 2)), reference=p_norm, note="3"),
    Sample("norm", then(normal(3, 4), 1.5, -1), reference=p_norm, note="1.5"),
    Sample("norm", then(positive(3, 4), 0.5), reference=p_norm, note="0.5"),
    Sample("norm", then(normal(3, 4), -1, 1), reference=p_norm, note="-1"),
    linear("norm", then(normal(3, 4), INF, 1), reference=p_norm, note="inf"),
    linear("norm", then(normal(3, 4), -INF), reference=p_norm, note="-inf"),
    linear("norm", then(normal(3, 4), 0, 1), reference=p_norm, note="0"),
    Sample("norm", normal(), reference=p_norm, note="no dimensions"),
    Sample("norm", then(normal(3, 0), 2, 1), reference=p_norm, note="empty"),
    Sample("dist", two((3, 4), (3, 4)), reference=lambda x, y: p_norm(x - y)),
    Sample(
        "dist",
        then(two((3, 4), (4,)), 3),
        reference=lambda x, y, p: p_norm(x - y, p),
        note="broadcast",
    ),
]

TRUTHS = [
    *forms("all", truth(np.all), lambda *s: ints(0, 9, *s), make=choice),
    *forms("any", truth(np.any), lambda *s: ints(0, 2, *s), make=choice),
    choice("all", then(ints(0, 2, 2, 3), ()), reference=lambda x, dim: x != 0, note="no dims"),
    choice("any", normal(0, 3), reference=truth(np.any), note="empty"),
    choice("count_nonzero", ints(0, 3, 3, 4), reference=lambda x: np.asarray(np.count_nonzero(x))),
    choice(
        "count_nonzero",
        then(ints(0, 3, 3, 4), 1),
        note="dim",
        reference=lambda x, dim: np.count_nonzero(x, dim),
    ),
    choice(
        "count_nonzero",
        then(normal(3, 4, 2), (0, -1)),
        note="dims",
        reference=lambda x, dim: np.count_nonzero(x, dim),
    ),
    choice("equal", two((3,), (3,)), reference=np.array_equal, vmap=False),
    choice(
        "equal",
        lambda r: (np.arange(3), np.arange(3)),
        reference=np.array_equal,
        vmap=False,
        note="true",
    ),
    choice("equal", two((3,), (4,)), reference=np.array_equal, vmap=False, note="shapes"),
    choice("allclose", two((3,), (3,)), reference=np.allclose, vmap=False),
    choice(
        "allclose",
        lambda r: (np.ones(3), np.full(3, 1.001)),
        {"rtol": 0.01},
        reference=np.allclose,
        vmap=False,
        note="rtol",
    ),
]

EXTREMES = [
    *forms("amax", reducing(np.max), make=linear),
    *forms("amin", reducing(np.min), make=linear),
    linear("aminmax", normal(3, 4), reference=lambda x: (x.min(), x.max())),
    linear(
        "aminmax",
        normal(3, 4),
        {"dim": 1, "keepdim": True},
        note="dim, keepdim",
        reference=lambda x, dim, keepdim: (x.min(1, keepdims=True), x.max(1, keepdims=True)),
    ),
    linear("max", normal(3, 4), reference=np.max),
    linear("min", normal(3, 4), reference=np.min),
    linear("max", normal(), reference=np.max, note="no dimensions"),
    choice("max", ints(0, 9, 5), reference=np.max, note="integers"),
    *choices("max", chosen(np.max, np.argmax)),
    *choices("min", chosen(np.min, np.argmin)),
    linear("max", two((3, 4), (4,)), reference=np.maximum, note="other"),
    linear("min", two((3, 4), (3, 1)), reference=np.minimum, note="other"),
]
for _name, _place in (("argmax", np.argmax), ("argmin", np.argmin)):
    EXTREMES += [
        choice(_name, normal(3, 4), reference=truth(_place)),
        choice(_name, then(normal(3, 4), 1), reference=truth(_place), note="dim"),
        choice(_name, then(ints(0, 9, 2, 5, 3), -2, True), reference=truth(_place), note="keepdim"),
        choice(
            _name, normal(2, 3), {"keepdim": True}, reference=truth(_place), note="all, keepdim"
        ),
        choice(_name, then(normal(), 0), note="no dimensions"),
    ]

MIDDLES = [
    linear("median", normal(3, 3), reference=lower_median),
    linear("median", normal(3, 4), reference=lower_median, note="even"),
    choice("median", ints(0, 9, 6), reference=lower_median, note="integers"),
    *choices("median", chosen(lower_median, place_of(lower_median))),
    linear("nanmedian", with_nan(3, 5), reference=lower_nanmedian),
    *choices("nanmedian", chosen(lower_nanmedian, place_of(lower_nanmedian)), with_nan)[:-1],
    choice("mode", then(ints(0, 3, 4, 9), -1), reference=mode, pick=first),
    choice(
        "mode",
        then(ints(0, 3, 9, 4), 0),
        {"keepdim": True},
        reference=mode,
        pick=first,
        note="keepdim",
    ),
    choice("mode", then(ints(0, 3, 4, 9), 1), note="indices", pick=lambda out: out[1]),
    linear("mode", normal(3, 4), note="gradient"),
    linear("quantile", then(normal(3, 4), 0.3), reference=quantile_of(np.quantile)),
    linear("quantile", then(normal(3, 5), 0.6, 0), reference=quantile_of(np.quantile), note="dim"),
    linear(
        "quantile",
        then(normal(2, 3, 4), 0.25, 1, True),
        reference=quantile_of(np.quantile),
        note="keepdim",
    ),
    linear(
        "quantile",
        then(normal(3, 4), 0.25),
        {"keepdim": True},
        reference=quantile_of(np.quantile),
        note="all, keepdim",
    ),
    linear(
        "quantile",
        lambda r: (r.normal(size=(3, 5)), np.array([0.1, 0.55, 0.8]), 1),
        reference=quantile_of(np.quantile),
        note="several",
    ),
    linear(
        "quantile",
        lambda r: (r.normal(size=(2, 5, 3)), np.array([0.1, 0.55]), 1, True),
        reference=quantile_of(np.quantile),
        note="several, keepdim",
    ),
    linear(
        "quantile",
        lambda r: (r.normal(size=(3, 5)), np.array(0.4)),
        reference=quantile_of(np.quantile),
        note="tensor without dimensions",
    ),
    linear(
        "quantile", then(normal(), 0.3), reference=quantile_of(np.quantile), note="no dimensions"
    ),
    *[
        linear(
            "quantile",
            then(normal(3, 6), 0.37, 1),
            {"interpolation": kind},
            reference=quantile_of(np.quantile),
            note=kind,
        )
        for kind in ("lower", "higher", "midpoint", "nearest")
    ],
    linear("nanquantile", then(with_nan(3, 5), 0.3), reference=quantile_of(np.nanquantile)),
    linear(
        "nanquantile",
        then(with_nan(3, 5), 0.6, 1),
        reference=quantile_of(np.nanquantile),
        note="dim",
    ),
]

SCANS = [
    *scans("cumsum", running(np.add), linear),
    choice("cumsum", then(ints(0, 9, 2, 3), 1), reference=running(np.add), note="integers"),
    choice("cumsum", then(ints(0, 9, 3), 0), {"dtype": chainrule.float64}, note="dtype"),
    *scans("cumprod", running(np.multiply)),
    Sample(
        "cumprod",
        constant([2.0, 0.0, 3.0, 4.0]),
        {"dim": 0},
        reference=running(np.multiply),
        note="a zero",
    ),
    Sample(
        "cumprod",
        constant([[2.0, 0.0, 3.0, 0.0, 5.0]] * 6),
        {"dim": 1},
        reference=running(np.multiply),
        note="zeros",
    ),
    *scans("logcumsumexp", running(np.logaddexp)),
    Sample(
        "logcumsumexp",
        constant([1.0, -INF, 2.0]),
        {"dim": 0},
        reference=running(np.logaddexp),
        second_order=False,
        note="-inf",
    ),
    *scans("cummax", running_choice(np.maximum), linear),
    *scans("cummin", running_choice(np.minimum), linear),
    choice(
        "cummax", then(ints(0, 4, 3, 6), 1), reference=running_choice(np.maximum), note="integers"
    ),
    linear("diff", normal(3, 4), reference=np.diff),
    linear(
        "diff",
        normal(5, 2),
        {"n": 2, "dim": 0},
        reference=lambda x, n, dim: np.diff(x, n, axis=dim),
        note="n, dim",
    ),
    linear("diff", normal(4), {"n": 0}, reference=lambda x, n: x, note="n is 0"),
    linear("diff", normal(2, 3), {"n": 4}, reference=lambda x, n: x[:, :0], note="n is large"),
    linear(
        "diff",
        lambda r: (*two((2, 3))(r), 1, 1, *two((2, 1), (2, 2))(r)),
        reference=lambda x, n, dim, p, a: np.diff(x, n, dim, p, a),
        note="prepend, append",
    ),
    choice("diff", ints(0, 9, 5), reference=np.diff, note="integers"),
    choice("diff", constant([True, True, False]), reference=np.diff, note="booleans"),
    linear("trapezoid", normal(3, 4), reference=integrate.trapezoid),
    linear(
        "trapezoid",
        normal(3, 4),
        {"dx": 0.5, "dim": 0},
        note="dx, dim",
        reference=lambda y, dx, dim: integrate.trapezoid(y, dx=dx, axis=dim),
    ),
    Sample("trapezoid", two((3, 4), (4,)), reference=integrate.trapezoid, note="x"),
    Sample(
        "trapezoid",
        two((3, 4), (3,)),
        {"dim": 0},
        note="x, dim",
        reference=lambda y, x, dim: integrate.trapezoid(y, x, axis=dim),
    ),
    Sample("trapezoid", two((3, 4), (3, 4)), reference=integrate.trapezoid, note="x of one shape"),
    linear("trapezoid", normal(3, 1), reference=integrate.trapezoid, note="one sample"),
    choice("trapezoid", ints(0, 9, 5), reference=integrate.trapezoid, note="integers"),
    Sample("trapz", two((3, 4), (4,)), reference=integrate.trapezoid),
    linear("cumulative_trapezoid", normal(3, 4), reference=integrate.cumulative_trapezoid),
    linear(
        "cumulative_trapezoid",
        normal(3, 4),
        {"dx": 2, "dim": 0},
        note="dx, dim",
        reference=lambda y, dx, dim: integrate.cumulative_trapezoid(y, dx=dx, axis=dim),
    ),
    Sample(
        "cumulative_trapezoid",
        two((3, 4), (4,)),
        reference=integrate.cumulative_trapezoid,
        note="x",
    ),
]

SAMPLES: list[Sample] = [*SUMS, *SPREADS, *NORMS, *TRUTHS, *EXTREMES, *MIDDLES, *SCANS]
