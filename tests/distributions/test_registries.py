"""From a region to a transform into it; divergences by the classes of distributions."""

from __future__ import annotations

import numpy as np
import pytest
from distributions.families import ALL
from distributions.record import Family, make
from distributions.regions import REGIONS, Region, build
from helpers import assert_close

import chainrule
from chainrule import distributions
from chainrule.distributions import (
    AffineTransform,
    ExpTransform,
    Normal,
    SigmoidTransform,
    biject_to,
    constraints,
    kl_divergence,
    register_kl,
    transform_to,
)
from chainrule.distributions.constraint_registry import ConstraintRegistry
from chainrule.distributions.kl import _REGISTRY

REACHED = [r for r in REGIONS if r.free is not None]
BIJECTED = [r for r in REACHED if r.bijective]
REST = [r for r in REGIONS if r.free is None]


def each(regions: list[Region]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("region", regions, ids=[r.label for r in regions])


def numbers(region: Region, scale: float = 1.0) -> chainrule.Tensor:
    """Numbers without any constraint."""
    assert region.free is not None
    return chainrule.tensor(scale * np.random.default_rng(3).normal(size=region.free))


@each(REACHED)
@pytest.mark.parametrize("scale", [0.0, 1.0, 5.0])
def test_all_numbers_lead_into_the_region(region: Region, scale: float) -> None:
    c, x = build(region), numbers(region, scale)
    for registry in (biject_to, transform_to) if region.bijective else (transform_to,):
        y = registry(c)(x)
        valid = c.check(y)
        assert bool(valid.all())
        assert valid.shape == y.shape[: y.ndim - c.event_dim]


@each(BIJECTED)
def test_bijections(region: Region) -> None:
    """One to one, from real numbers, with a volume."""
    c, x = build(region), numbers(region)
    f = biject_to(c)
    assert f.bijective
    assert bool(f.domain.check(x).all())
    y = f(x)
    assert_close(f.inv(y), x, rtol=1e-9, atol=1e-10)
    assert bool(f.log_abs_det_jacobian(x, y).isfinite().all())
    if region.inside and "real" not in region.label:
        assert f.codomain.event_dim == c.event_dim


@each(REACHED)
def test_transforms_have_a_way_back(region: Region) -> None:
    f = transform_to(build(region))
    y = f(numbers(region))
    assert_close(f(f.inv(y)), y, rtol=1e-9, atol=1e-12)


@each([r for r in REACHED if not r.bijective])
def test_no_bijection(region: Region) -> None:
    with pytest.raises(NotImplementedError, match="no transform into .* is registered"):
        biject_to(build(region))


@each(REST)
def test_nothing_leads_there(region: Region) -> None:
    for registry in (biject_to, transform_to):
        with pytest.raises(NotImplementedError, match="no transform into .* is registered"):
            registry(build(region))


def test_the_simplest_transforms() -> None:
    assert biject_to(constraints.real) is distributions.identity_transform
    assert biject_to(constraints.positive) == ExpTransform()
    assert biject_to(constraints.nonnegative) == ExpTransform()
    assert biject_to(constraints.unit_interval) == SigmoidTransform()
    assert biject_to(constraints.greater_than(2.0)).parts == [ExpTransform(), AffineTransform(2, 1)]
    assert biject_to(constraints.less_than(2.0)).parts == [ExpTransform(), AffineTransform(2, -1)]
    assert biject_to(constraints.interval(1.0, 3.0)).parts == [
        SigmoidTransform(),
        AffineTransform(1.0, 2.0),
    ]


def free_parameters(family: Family) -> list[str]:
    known = make(family).arg_constraints
    return [n for n in family.variables if not constraints.is_dependent(known.get(n))]


LEARNED = [f for f in ALL if free_parameters(f)]


@pytest.mark.parametrize("family", LEARNED, ids=[f.label for f in LEARNED])
def test_parameters_of_every_family_can_be_optimized(family: Family) -> None:
    """transform_to(arg_constraints[name]) leads from any number to a parameter."""
    d = make(family)
    for name in free_parameters(family):
        region = d.arg_constraints.get(name, constraints.positive)  # of a temperature
        f = transform_to(region)
        value = getattr(d, name)
        free = f.inv(value).detach() + 0.3
        assert bool(region.check(f(free)).all()), name


# --- registries of one's own ----------------------------------------------------------------------


class Even(constraints.Constraint):
    """A region of one's own."""


def test_registration() -> None:
    registry = ConstraintRegistry()
    with pytest.raises(NotImplementedError, match="no transform into Even is registered"):
        registry(Even())
    factory = registry.register(Even, lambda region: AffineTransform(0.0, 2.0))
    assert callable(factory)
    assert registry(Even()) == AffineTransform(0.0, 2.0)

    @registry.register(Even())
    def other(region: Even) -> AffineTransform:
        return AffineTransform(0.0, 4.0)

    assert registry(Even()) == other(Even())
    with pytest.raises(NotImplementedError, match="no transform into Odd is registered"):
        registry(type("Odd", (Even,), {})())
    for wrong in (3, int, "real"):
        with pytest.raises(TypeError, match="expected a constraint or a class of constraints, got"):
            registry.register(wrong, lambda region: ExpTransform())


# --- divergences ----------------------------------------------------------------------------------


def test_a_divergence_of_ones_own() -> None:
    class Mine(Normal):
        pass

    p, q = Mine(1.0, 1.0), Normal(0.0, 1.0)
    assert_close(kl_divergence(p, q), np.float32(0.5), rtol=1e-6)

    def seven(p: Mine, q: Normal) -> chainrule.Tensor:
        return 0 * p.loc + 7

    try:
        assert register_kl(Mine, Normal)(seven) is seven
        assert kl_divergence(p, q).item() == 7
        assert_close(kl_divergence(q, p), np.float32(0.5), rtol=1e-6)
    finally:
        del _REGISTRY[Mine, Normal]


@pytest.mark.parametrize("pair", [(int, Normal), (Normal, "Normal"), (Normal(0.0, 1.0), Normal)])
def test_only_families_have_divergences(pair: tuple[type, type]) -> None:
    with pytest.raises(TypeError, match="register_kl: expected a subclass of Distribution, got"):
        register_kl(*pair)
