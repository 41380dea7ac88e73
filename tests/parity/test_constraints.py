"""Constraints, and the transforms that lead into them, against PyTorch's, by the same records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from distributions.regions import REGIONS, Region, build
from parity.compare import assert_agree

import chainrule

torch = pytest.importorskip("torch")

ALIKE = [r for r in REGIONS if r.torch]
REACHED = [r for r in ALIKE if r.free is not None]


def each(regions: list[Region]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("region", regions, ids=[r.label for r in regions])


@each(ALIKE)
def test_checks(region: Region) -> None:
    """One value at a time: see docs/pytorch.md for matrices beside each other."""
    ours, theirs = build(region), build(region, torch)
    assert (ours.event_dim, ours.is_discrete) == (theirs.event_dim, theirs.is_discrete)
    for value in [*region.inside, *region.outside]:
        a = ours.check(chainrule.tensor(value, dtype=chainrule.float64))
        b = theirs.check(torch.tensor(value, dtype=torch.float64))
        assert a.tolist() == b.tolist(), value


@each(REACHED)
@pytest.mark.parametrize("registry", ["biject_to", "transform_to"])
def test_transforms_into_a_region(region: Region, registry: str) -> None:
    """Value and derivatives; and where PyTorch knows no way, nor do we."""
    x = np.random.default_rng(3).normal(size=region.free)
    ours, theirs = (
        lambda library=library: getattr(library.distributions, registry)(build(region, library))
        for library in (chainrule, torch)
    )
    if registry == "biject_to" and not region.bijective:
        for make in (ours, theirs):
            with pytest.raises(NotImplementedError):
                make()
        return
    assert_agree(ours(), theirs(), [x])
    assert ours().bijective == theirs().bijective
    if ours().bijective:
        assert_agree(
            lambda x: ours().log_abs_det_jacobian(x, ours()(x)),
            lambda x: theirs().log_abs_det_jacobian(x, theirs()(x)),
            [x],
        )


@pytest.mark.parametrize("registry", ["biject_to", "transform_to"])
def test_every_region_that_pytorch_reaches(registry: str) -> None:
    theirs = getattr(torch.distributions, registry)._registry
    ours = getattr(chainrule.distributions, registry)._registry
    names = {
        type(c) if not isinstance(c, type) else c: name
        for name, c in vars(torch.distributions.constraints).items()
        if name in torch.distributions.constraints.__all__
    }
    for kind in theirs:
        own = getattr(chainrule.distributions.constraints, names[kind])
        assert (own if isinstance(own, type) else type(own)) in ours, names[kind]
    assert len(ours) == len(theirs)


@pytest.mark.parametrize(
    "call",
    [
        lambda lib: lib.distributions.constraints.dependent.event_dim,
        lambda lib: lib.distributions.constraints.dependent.is_discrete,
        lambda lib: lib.distributions.constraints.dependent.check(lib.zeros(2)),
        lambda lib: lib.distributions.MixtureSameFamily.support.event_dim,
        lambda lib: lib.distributions.Independent.support.is_discrete,
        lambda lib: lib.distributions.constraints.real_vector.check(lib.tensor(1.0)),
        lambda lib: lib.distributions.biject_to(lib.distributions.constraints.boolean),
        lambda lib: lib.distributions.biject_to.register(3, lambda c: c),
        lambda lib: lib.distributions.register_kl("p", lib.distributions.Normal),
    ],
)
def test_refusals(call: Any) -> None:
    """Of the same class."""
    kinds = []
    for library in (chainrule, torch):
        with pytest.raises((NotImplementedError, ValueError, TypeError)) as error:
            call(library)
        kinds.append(error.type)
    assert kinds[0] is kinds[1]


@pytest.mark.parametrize("family", ["Uniform", "Categorical", "Binomial", "Multinomial", "Pareto"])
def test_what_a_class_says_of_its_region(family: str) -> None:
    ours, theirs = (
        getattr(library.distributions, family).support for library in (chainrule, torch)
    )
    assert (ours.event_dim, ours.is_discrete) == (theirs.event_dim, theirs.is_discrete)
    for library, region in ((chainrule, ours), (torch, theirs)):
        assert library.distributions.constraints.is_dependent(region)
        assert isinstance(region, library.distributions.constraints.Constraint)
