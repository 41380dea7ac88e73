"""Constraints by their records: members, borders, NaN, dimensions, and what is refused."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import pytest
from distributions.regions import REGIONS, Region, build

import chainrule
from chainrule import distributions, func
from chainrule.distributions import constraints

each = pytest.mark.parametrize("region", REGIONS, ids=[r.label for r in REGIONS])


def checked(region: Region, values: list[Any], c: Any = None) -> list[bool]:
    """What a constraint says of each value, all at once."""
    x = chainrule.tensor(values, dtype=chainrule.float64)
    valid = (c or build(region)).check(x)
    assert valid.dtype is chainrule.bool
    assert valid.shape == (len(values),) if region.event_dim else valid.shape == x.shape
    return [bool(v.all()) for v in valid]


def test_every_constraint_has_a_record() -> None:
    tested = " ".join(inspect.getsource(r.make) for r in REGIONS)
    settled = {"Constraint", "dependent", "dependent_property", "is_dependent"}
    assert [n for n in constraints.__all__ if n not in settled and f"c.{n}" not in tested] == []


@each
def test_members(region: Region) -> None:
    c = build(region)
    assert (c.event_dim, c.is_discrete) == (region.event_dim, region.is_discrete)
    if region.inside:
        assert checked(region, region.inside) == [True] * len(region.inside)
    if region.outside:
        assert checked(region, region.outside) == [False] * len(region.outside)


@each
def test_the_others_change_nothing(region: Region) -> None:
    """A value is checked by itself, whatever lies beside it."""
    values = [*region.inside, *region.outside]
    expected = [True] * len(region.inside) + [False] * len(region.outside)
    assert checked(region, values) == expected
    assert checked(region, values[::-1]) == expected[::-1]
    assert [checked(region, [v]) for v in values] == [[e] for e in expected]


@each
def test_vmap(region: Region) -> None:
    c = build(region)
    x = chainrule.tensor([*region.inside, *region.outside], dtype=chainrule.float64)
    assert func.vmap(c.check)(x).tolist() == c.check(x).tolist()


@each
def test_copies(region: Region) -> None:
    c = build(region)
    for other in (copy.deepcopy(c), pickle.loads(pickle.dumps(c))):
        assert repr(other) == repr(c)
        if region.inside:
            assert all(checked(region, region.inside, other))


@pytest.mark.parametrize("dtype", [chainrule.bool, chainrule.int64, chainrule.float32])
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("boolean", [True, True]),
        ("nonnegative_integer", [True, True]),
        ("positive_integer", [False, True]),
        ("nonnegative", [True, True]),
        ("real", [True, True]),
    ],
)
def test_other_types(name: str, expected: list[bool], dtype: Any) -> None:
    x = chainrule.tensor([0, 1], dtype=dtype)
    assert getattr(constraints, name).check(x).tolist() == expected


@pytest.mark.parametrize(
    ("c", "shape", "expected"),
    [
        (constraints.cat([constraints.real] * 2, 0, [1, 2]), (3, 4), (3, 4)),
        (constraints.cat([constraints.simplex] * 2, 0, [1, 2]), (3, 4), (3,)),
        (constraints.cat([constraints.simplex] * 2, -2, [1, 2]), (3, 4), (3,)),
        (constraints.cat([constraints.real, constraints.simplex], 0, [1, 2]), (3, 4), (3,)),
        (constraints.stack([constraints.real] * 3, 0), (3, 4), (3, 4)),
        (constraints.stack([constraints.real] * 4, 1), (3, 4), (3, 4)),
        (constraints.stack([constraints.simplex] * 3, 0), (3, 4), (3,)),
        (constraints.stack([constraints.real] * 3, -2), (3, 4), (3, 4)),
        (constraints.stack([constraints.real, constraints.simplex], 0), (2, 5, 4), (2, 5)),
        (constraints.square, (5, 2, 2), (5,)),
        (constraints.independent(constraints.real, 0), (3, 4), (3, 4)),
    ],
)
def test_shapes(c: Any, shape: Any, expected: Any) -> None:
    assert c.check(chainrule.zeros(shape)).shape == expected


REPRS = [
    (constraints.real, "real"),
    (constraints.simplex, "simplex"),
    (constraints.positive, "greater_than(lower_bound=0.0)"),
    (constraints.interval(0, chainrule.tensor(2.5)), "interval(lower_bound=0, upper_bound=2.5)"),
    (constraints.nonnegative_integer, "integer_from(lower_bound=0)"),
    (constraints.real_vector, "independent(base_constraint=real, reinterpreted_batch_ndims=1)"),
    (constraints.stack([constraints.real], -1), "stack(cseq=[real], dim=-1)"),
    (constraints.dependent(event_dim=1), "dependent"),
]


@pytest.mark.parametrize(("c", "text"), REPRS, ids=[text for _, text in REPRS])
def test_printing(c: Any, text: str) -> None:
    assert repr(c) == text


# --- regions that depend on other parameters ------------------------------------------------------


class Window(distributions.Distribution):
    """A family of one's own, whose region is known of an object only."""

    def __init__(self, width: float):
        self.width = width
        super().__init__()

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.interval(0.0, self.width)


def test_dependent() -> None:
    known = constraints.dependent(is_discrete=True)
    assert known.is_discrete
    assert known(event_dim=2).event_dim == 2
    assert known(event_dim=2).is_discrete
    for c in (known, Window.support, distributions.Independent.support):
        assert constraints.is_dependent(c)
        assert isinstance(c, constraints.Constraint)
        with pytest.raises(NotImplementedError, match="event_dim of a region that depends on ot"):
            _ = c.event_dim
        with pytest.raises(ValueError, match="depends on other parameters has no check"):
            c.check(chainrule.zeros(2))
    with pytest.raises(NotImplementedError, match="is_discrete of a region that depends"):
        _ = constraints.dependent.is_discrete
    assert Window(2.0).support.check(chainrule.tensor([1.0, 3.0])).tolist() == [True, False]
    assert not constraints.is_dependent(Window(2.0).support)


@pytest.mark.parametrize(
    ("family", "discrete", "dims"),
    [
        ("Uniform", False, 0),
        ("Categorical", True, 0),
        ("Multinomial", True, 1),
        ("Pareto", False, 0),
    ],
)
def test_of_some_classes_the_kind_of_region_is_known(
    family: str, discrete: bool, dims: int
) -> None:
    region = getattr(distributions, family).support
    assert constraints.is_dependent(region)
    assert (region.is_discrete, region.event_dim) == (discrete, dims)


# --- refusals -------------------------------------------------------------------------------------

REFUSED = [
    (lambda: constraints.independent(constraints.real, -1), "must not be negative, got -1"),
    (lambda: constraints.independent(3, 1), "constraints.independent: expected constraints, got i"),
    (
        lambda: constraints.cat([constraints.real, 1]),
        "constraints.cat: expected constraints, got in",
    ),
    (lambda: constraints.stack(["real"]), "constraints.stack: expected constraints, got str"),
    (
        lambda: constraints.cat([constraints.real], 0, [1, 2]),
        "constraints.cat: 1 regions, but 2 len",
    ),
    (
        lambda: constraints.real_vector.check(chainrule.tensor(1.0)),
        r"expected values with at least 1 dimensions, got shape \(\)",
    ),
    (
        lambda: constraints.cat([constraints.real], 0, [2]).check(chainrule.zeros(3)),
        r"constraints.cat: expected size 2 in dimension 0, got shape \(3,\)",
    ),
    (
        lambda: constraints.stack([constraints.real] * 2).check(chainrule.zeros(3)),
        r"constraints.stack: expected size 2 in dimension 0, got shape \(3,\)",
    ),
    (
        lambda: constraints.stack([constraints.real], dim=2).check(chainrule.zeros(3)),
        r"constraints.stack: expected size 1 in dimension 2, got shape \(3,\)",
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[m[:40] for _, m in REFUSED])
def test_refusals(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_a_region_without_a_check() -> None:
    class Mine(constraints.Constraint):
        pass

    with pytest.raises(NotImplementedError, match="Mine has no check"):
        Mine().check(chainrule.zeros(1))
