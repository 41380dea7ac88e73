"""Records of indexing: subscripts, gather and scatter, masks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from samples.record import Sample, normal

__all__ = ["SAMPLES"]

Args = Callable[[np.random.Generator], tuple[Any, ...]]


# --- arguments ------------------------------------------------------------------------------------


def then(args: Args, *more: Any) -> Args:
    """An input, then arguments that are the same in every call."""
    return lambda r: (*args(r), *more)


def chosen(shape: tuple[int, ...], dim: int | None, *index: int) -> Args:
    """An input, a dimension, and random places along it."""

    def args(r: np.random.Generator) -> tuple[Any, ...]:
        n = shape[dim or 0] if shape else 1
        return r.normal(size=shape), dim, r.integers(0, n, size=index)

    return args


def written(
    shape: tuple[int, ...],
    dim: int,
    index: tuple[int, ...],
    src: tuple[int, ...],
    distinct: bool = False,
    *more: Any,
) -> Args:
    """An input, a dimension, random places along it, and what to write there."""

    def args(r: np.random.Generator) -> tuple[Any, ...]:
        n = shape[dim] if shape else 1
        places = r.integers(0, n, size=index)
        if distinct:
            places = r.permuted(np.broadcast_to(np.arange(n), (*index[:-1], n)), axis=-1)
            places = places[..., : index[-1]]
        return r.normal(size=shape), dim, places, r.normal(size=src), *more

    return args


def masked(shape: tuple[int, ...], mask: tuple[int, ...], *more: Any) -> Args:
    return lambda r: (r.normal(size=shape), r.random(size=mask) > 0.4, *more)


def subscript(shape: tuple[int, ...], *items: Any) -> Args:
    """An input and a subscript; pairs (size, shape) stand for random integers."""

    def args(r: np.random.Generator) -> tuple[Any, ...]:
        index = [r.integers(-i[0], i[0], size=i[1]) if type(i) is list else i for i in items]
        return r.normal(size=shape), tuple(index)

    return args


# --- references -----------------------------------------------------------------------------------


def take_along(x: Any, dim: int, index: Any) -> Any:
    """gather, element by element."""
    x, index = np.atleast_1d(x), np.asarray(index)
    out = np.empty(index.shape)
    for at in np.ndindex(index.shape):
        place = list(at or (0,))
        place[dim] = index[at]
        out[at] = x[tuple(place)]
    return out


def scattered(x: Any, dim: int, index: Any, src: Any, put: Callable[[Any, Any], Any]) -> Any:
    out = np.array(x)
    for at in np.ndindex(index.shape):
        place = list(at)
        place[dim] = index[at]
        out[tuple(place)] = put(out[tuple(place)], src[at])
    return out


def scatter(x: Any, dim: int, index: Any, src: Any, reduce: Any = None) -> Any:
    src = np.broadcast_to(src, index.shape) if np.ndim(src) == 0 else src
    puts = {None: lambda a, b: b, "add": lambda a, b: a + b, "multiply": lambda a, b: a * b}
    return scattered(x, dim, index, src, puts[reduce])


def scatter_reduce(
    x: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool = True
) -> Any:
    groups: dict[tuple[int, ...], list[float]] = {}
    for at in np.ndindex(index.shape):
        place = list(at)
        place[dim] = index[at]
        groups.setdefault(tuple(place), []).append(src[at])
    functions = {"sum": np.sum, "prod": np.prod, "mean": np.mean, "amax": np.max, "amin": np.min}
    out = np.array(x)
    for place, group in groups.items():
        out[place] = functions[reduce]([*group, x[place]] if include_self else group)
    return out


def along(x: Any, dim: int, index: Any, source: Any, change: Callable[[Any, Any], Any]) -> Any:
    """Slices of ``x`` along ``dim`` changed one after the other."""
    out = np.moveaxis(np.array(x), dim, 0)
    source = np.moveaxis(source, dim, 0)
    for k, i in enumerate(index):
        out[i] = change(out[i], source[k])
    return np.moveaxis(out, 0, dim)


def index_fill(x: Any, dim: int, index: Any, value: Any) -> Any:
    out = np.moveaxis(np.array(x), dim, 0)
    out[index] = value
    return np.moveaxis(out, 0, dim)


def index_put(x: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    out = np.array(x)
    if accumulate:
        np.add.at(out, indices, values)
    else:
        out[indices] = values
    return out


def masked_scatter(x: Any, mask: Any, source: Any) -> Any:
    out = np.array(np.broadcast_to(x, np.broadcast_shapes(x.shape, mask.shape)))
    mask = np.broadcast_to(mask, out.shape)
    out[mask] = source.reshape(-1)[: mask.sum()]
    return out


def linear(*args: Any, **kwargs: Any) -> Sample:
    """Most of these are linear: their second derivative is zero."""
    return Sample(*args, second_order=False, **kwargs)


def getitem(*args: Any, **kwargs: Any) -> Sample:
    return linear(
        "Tensor.__getitem__",
        *args,
        reference=lambda x, i: x[i],
        torch_call=lambda torch, x, i: x[i],
        **kwargs,
    )


def integers(name: str, *args: Any, **kwargs: Any) -> Sample:
    return Sample(name, *args, differentiable=False, **kwargs)


FULL = slice(None)

SAMPLES: list[Sample] = [
    getitem(subscript((3, 4), 1), note="number"),
    getitem(subscript((3, 4), -1, slice(1, 4, 2)), note="number and slice"),
    getitem(subscript((3, 4), ..., None, 2), note="new dimension"),
    getitem(subscript((5, 3), [5, (4,)]), note="vector"),
    getitem(subscript((5, 3), [5, ()]), note="integer without dimensions", vmap=True),
    getitem(subscript((5, 3), [5, (2, 3)]), note="matrix"),
    getitem(subscript((4, 3, 2), FULL, [3, (4,)]), note="second dimension"),
    getitem(subscript((4, 3, 2), [4, (3,)], [3, (2, 1)]), note="two, broadcast"),
    getitem(subscript((4, 3, 2), [4, (2,)], FULL, [2, (2,)]), note="two apart"),
    getitem(subscript((4, 3, 5), slice(1, 3), [3, (2, 2)], [5, (2, 2)]), note="slice and two"),
    getitem(masked((3, 4), (3, 4)), note="mask", vmap=False),
    getitem(masked((3, 4), (3,)), note="mask of rows", vmap=False),
    linear("select", then(normal(3, 4), 1, 2), reference=lambda x, d, i: np.take(x, i, d)),
    linear(
        "select",
        then(normal(3, 4), -2, -1),
        reference=lambda x, d, i: np.take(x, i, d),
        note="negative",
    ),
    linear("narrow", then(normal(3, 5), 1, 1, 3), reference=lambda x, d, a, n: x[:, a : a + n]),
    linear(
        "narrow",
        then(normal(3, 5), 0, -2, 2),
        reference=lambda x, d, a, n: x[-2:],
        note="from the end",
    ),
    linear("narrow", then(normal(3, 5), 0, 1, 0), reference=lambda x, d, a, n: x[:0], note="empty"),
    linear("index_select", chosen((3, 4), 1, 5), reference=lambda x, d, i: np.take(x, i, d)),
    linear(
        "index_select",
        chosen((3, 4), -2, 2),
        reference=lambda x, d, i: np.take(x, i, d),
        note="negative dimension",
    ),
    linear(
        "index_select", chosen((3, 4), 0), reference=lambda x, d, i: np.take(x, [i], d), note="one"
    ),
    linear("gather", chosen((3, 4), 1, 3, 6), reference=take_along),
    linear("gather", chosen((3, 4), 0, 5, 4), reference=take_along, note="first dimension"),
    linear("gather", chosen((4, 3, 2), -2, 2, 5, 1), reference=take_along, note="smaller index"),
    linear("gather", chosen((), 0), reference=take_along, note="no dimensions"),
    linear("gather", chosen((3, 4), 1, 3, 0), reference=take_along, note="empty"),
    linear(
        "take_along_dim",
        lambda r: (r.normal(size=(3, 4)), r.integers(-4, 4, size=(3, 2)), 1),
        reference=np.take_along_axis,
    ),
    linear(
        "take_along_dim",
        lambda r: (r.normal(size=(3, 4)), r.integers(0, 4, size=(1, 2)), 1),
        reference=lambda x, i, d: np.take(x, i[0], d),
        note="broadcast",
    ),
    linear(
        "take_along_dim",
        lambda r: (r.normal(size=(1, 4)), r.integers(0, 4, size=(3, 2)), -1),
        reference=lambda x, i, d: x[0][i],
        note="broadcast input",
    ),
    linear(
        "take_along_dim",
        lambda r: (r.normal(size=(3, 4)), r.integers(0, 12, size=5)),
        reference=np.take,
        note="flattened",
    ),
    linear(
        "take",
        lambda r: (r.normal(size=(3, 4)), r.integers(-12, 12, size=(2, 3))),
        reference=np.take,
    ),
    integers(
        "nonzero", lambda r: (r.integers(0, 2, size=(3, 4)),), vmap=False, reference=np.argwhere
    ),
    integers(
        "nonzero",
        lambda r: (r.integers(0, 2, size=(3, 4)),),
        {"as_tuple": True},
        vmap=False,
        reference=lambda x: list(np.nonzero(x)),
        note="tuple",
        pick=list,
    ),
    integers(
        "argwhere",
        lambda r: (r.normal(size=(3, 4)) * r.integers(0, 2, size=(3, 4)),),
        vmap=False,
        reference=np.argwhere,
    ),
    integers(
        "one_hot",
        lambda r: (r.integers(0, 5, size=(2, 3)), 5),
        torch="nn.functional.one_hot",
        reference=lambda i, n: np.eye(n, dtype=int)[i],
    ),
    integers(
        "one_hot",
        lambda r: (np.array([2, 0, 1]),),
        torch="nn.functional.one_hot",
        vmap=False,
        reference=lambda i: np.eye(3, dtype=int)[i],
        note="counted",
    ),
    linear("masked_select", masked((3, 4), (3, 4)), vmap=False, reference=lambda x, m: x[m]),
    linear(
        "masked_select",
        masked((3, 4), (3, 1)),
        vmap=False,
        note="broadcast",
        reference=lambda x, m: x[np.broadcast_to(m, x.shape)],
    ),
    linear("scatter", written((3, 5), 1, (3, 4), (3, 4), True), reference=scatter),
    linear(
        "scatter",
        written((5, 3), 0, (1, 2), (4, 3)),
        reference=scatter,
        note="larger source",
        # PyTorch has no gradient for a source larger than the index.
        torch_call=lambda torch, x, d, i, s: torch.scatter(x, d, i, s[:1, :2]),
    ),
    linear(
        "scatter",
        lambda r: (r.normal(size=(3, 5)), -1, r.integers(0, 5, size=(2, 3)), 1.5),
        reference=scatter,
        note="number",
    ),
    linear(
        "scatter",
        written((3, 5), 1, (3, 4), (3, 4)),
        {"reduce": "add"},
        reference=scatter,
        note="add",
        torch_call=lambda torch, x, d, i, s: torch.scatter_add(x, d, i, s),
    ),
    Sample(
        "scatter",
        written((3, 5), 1, (3, 4), (3, 4)),
        {"reduce": "multiply"},
        reference=scatter,
        note="multiply",
        torch_call=lambda torch, x, d, i, s: torch.scatter_reduce(x, d, i, s, "prod"),
    ),
    linear(
        "scatter_add",
        written((3, 5), 1, (3, 7), (3, 7)),
        reference=lambda *args: scatter(*args, "add"),
    ),
    linear(
        "scatter_add",
        written((5, 3), -2, (7, 2), (8, 3)),
        note="larger source",
        torch_call=lambda torch, x, d, i, s: torch.scatter_add(x, d, i, s[:7, :2]),
        reference=lambda *args: scatter(*args, "add"),
    ),
    *[
        Sample(
            "scatter_reduce",
            written((3, 5), 1, (3, 7), (3, 7), False, reduce),
            {"include_self": include},
            reference=scatter_reduce,
            second_order=reduce == "prod",
            note=reduce + ("" if include else ", without self"),
        )
        for reduce in ("sum", "prod", "mean", "amax", "amin")
        for include in (True, False)
    ],
    linear(
        "index_add",
        written((3, 5), 1, (4,), (3, 4)),
        reference=lambda *args: along(*args, lambda a, b: a + b),
    ),
    linear(
        "index_add",
        written((4, 2), 0, (3,), (3, 2)),
        {"alpha": -2.0},
        note="alpha",
        reference=lambda *args: along(*args, lambda a, b: a - 2 * b),
    ),
    linear(
        "index_copy",
        written((3, 5), 1, (4,), (3, 4), True),
        reference=lambda *args: along(*args, lambda a, b: b),
    ),
    linear(
        "index_copy",
        written((4, 2, 2), -3, (3,), (3, 2, 2), True),
        note="negative dimension",
        reference=lambda *args: along(*args, lambda a, b: b),
    ),
    linear(
        "index_fill",
        lambda r: (r.normal(size=(3, 4)), 1, r.integers(-4, 4, size=2), 2.0),
        reference=index_fill,
    ),
    linear(
        "index_fill",
        lambda r: (r.normal(size=(3, 4)), 0, r.integers(0, 3, size=2), np.array(r.normal())),
        reference=index_fill,
        note="tensor",
    ),
    linear(
        "index_put",
        lambda r: (r.normal(size=(4, 3)), (r.permutation(4)[:2],), r.normal(size=3)),
        reference=index_put,
    ),
    linear(
        "index_put",
        lambda r: (
            r.normal(size=(4, 3)),
            (r.integers(0, 4, size=5), r.integers(-3, 3, size=5)),
            r.normal(size=5),
            True,
        ),
        reference=index_put,
        note="accumulate",
    ),
    linear("masked_fill", masked((3, 4), (3, 4), 2.0), reference=lambda x, m, v: np.where(m, v, x)),
    linear(
        "masked_fill",
        lambda r: (r.normal(size=4), r.random(size=(3, 1)) > 0.5, np.array(r.normal())),
        reference=lambda x, m, v: np.where(m, v, x),
        note="broadcast, tensor",
    ),
    linear(
        "masked_scatter",
        lambda r: (r.normal(size=(3, 4)), r.random(size=(3, 4)) > 0.4, r.normal(size=(4, 3))),
        reference=masked_scatter,
    ),
    linear(
        "masked_scatter",
        lambda r: (r.normal(size=(3, 4)), r.random(size=4) > 0.4, r.normal(size=14)),
        reference=masked_scatter,
        note="broadcast",
    ),
]
