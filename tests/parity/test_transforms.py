"""Transforms against PyTorch's, by the same records."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from distributions.functions import CASES, Case, build, points
from helpers import assert_close
from parity.compare import assert_agree

import chainrule

torch = pytest.importorskip("torch")

RIGHT = [c for c in CASES if c.torch]
ONE_TO_ONE = [c for c in RIGHT if build(c).bijective]


def each(cases: list[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=[c.label for c in cases])


@each(CASES)
def test_values(case: Case) -> None:
    """And their first two derivatives."""
    second = case.label != "abs"  # of which PyTorch has none
    assert_agree(build(case), build(case, torch), [case.x], second_order=second)


# Computed from the rest of y instead of 1 minus its beginning: the same on the region, where y has
# fewer degrees of freedom than numbers, so that only derivatives along it can be compared.
BY_THE_REST = ("stick breaking", "compose numbers and vectors", "corr cholesky")


@each(CASES)
def test_inverses(case: Case) -> None:
    ours, theirs = build(case), build(case, torch)
    if case.label in BY_THE_REST:
        assert_agree(lambda x: ours.inv(ours(x)), lambda x: theirs.inv(theirs(x)), [case.x])
        y = ours(points(case)).numpy()
        assert_close(ours.inv(chainrule.tensor(y)), theirs.inv(torch.tensor(y)), rtol=1e-10)
    else:
        second = "definite" not in case.label
        assert_agree(ours.inv, theirs.inv, [ours(points(case)).numpy()], second_order=second)


@each(ONE_TO_ONE)
def test_volumes(case: Case) -> None:
    ours, theirs = build(case), build(case, torch)
    assert_agree(
        lambda x: ours.log_abs_det_jacobian(x, ours(x)),
        lambda x: theirs.log_abs_det_jacobian(x, theirs(x)),
        [case.x],
    )


@each([c for c in CASES if not c.torch])
def test_what_pytorch_adds_up_wrongly(case: Case) -> None:
    """Ours is the determinant of the Jacobian (see the test of that); if PyTorch's is one day, the
    record should say so."""
    f, theirs = build(case), build(case, torch)
    x, other = points(case), torch.from_numpy(case.x)
    ours = f.log_abs_det_jacobian(x, f(x)).numpy()
    try:
        got = theirs.log_abs_det_jacobian(other, theirs(other)).numpy()
    except RuntimeError:  # of parts that do not fit together
        return
    assert got.shape != ours.shape or not np.allclose(got, ours)


@each(RIGHT)
def test_regions_and_shapes(case: Case) -> None:
    a, b = build(case), build(case, torch)
    assert a.bijective == b.bijective
    assert (a._cache_size, a.inv.bijective) == (b._cache_size, b.inv.bijective)
    for ours, theirs in ((a.domain, b.domain), (a.codomain, b.codomain)):
        assert ours.event_dim == theirs.event_dim
        assert ours.is_discrete == theirs.is_discrete
    assert outcome(lambda: a.event_dim) == outcome(lambda: b.event_dim)
    assert_same_sign(a, b)
    y = tuple(a(points(case)).shape)
    assert tuple(a.forward_shape(case.x.shape)) == tuple(b.forward_shape(case.x.shape))
    assert tuple(a.inverse_shape(y)) == tuple(b.inverse_shape(y))


def outcome(call: Any) -> Any:
    """What a call gives, or the class of what it raises."""
    try:
        return call()
    except (NotImplementedError, ValueError) as error:
        return type(error)


def assert_same_sign(a: Any, b: Any) -> None:
    ours, theirs = outcome(lambda: a.sign), outcome(lambda: b.sign)
    if isinstance(theirs, type):
        assert ours is theirs
    else:
        assert_close(np.asarray(ours, float), np.asarray(theirs, float))


@each([c for c in CASES if c.label != "identity"])
def test_caches(case: Case) -> None:
    """The same calls are answered from memory."""
    seen = []
    for library, make in ((chainrule, chainrule.tensor), (torch, torch.tensor)):
        f = build(case, library).with_cache(1)
        x = make(case.x)
        y = f(x)
        seen.append([f(x) is y, f.inv(y) is x, f.inv.inv is f, f.with_cache(1) is f])
        x = make(case.x)
        seen[-1] += [f(x) is y, f.inv(y) is x]
    assert seen[0] == seen[1] == [True] * 4 + [False] * 2


@pytest.mark.parametrize(
    "name", [n for n in torch.distributions.transforms.__all__ if n[0].isupper()]
)
def test_signatures(name: str) -> None:
    ours, theirs = (
        inspect.signature(getattr(library.distributions.transforms, name).__init__).parameters
        for library in (chainrule, torch)
    )
    assert [(p.name, p.default) for p in ours.values()] == [
        (p.name, p.default) for p in theirs.values()
    ]


@pytest.mark.parametrize("x", [-300.0, -20.0, -5.0, 0.0, 5.0, 20.0, 300.0])
@pytest.mark.parametrize("name", ["TanhTransform", "SigmoidTransform", "SoftplusTransform"])
def test_far_from_zero(name: str, x: float) -> None:
    """Value, inverse and volume, infinities included."""
    results = []
    for library in (chainrule, torch):
        f = getattr(library.distributions.transforms, name)()
        value = library.tensor([x], dtype=library.float64)
        y = f(value)
        results.append([y, f.inv(y), f.log_abs_det_jacobian(value, y)])
    for a, b in zip(*results, strict=True):
        assert_close(a, b, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize(
    "equal",
    [
        lambda t, v: t.ExpTransform() == t.ExpTransform(),
        lambda t, v: t.ExpTransform() == t.TanhTransform(),
        lambda t, v: t.ExpTransform().inv == t.ExpTransform().inv,
        lambda t, v: t.AffineTransform(1.0, 2.0) == t.AffineTransform(1, 2),
        lambda t, v: t.AffineTransform(v([1.0, 1.0]), 2.0) == t.AffineTransform(1.0, v(2.0)),
        lambda t, v: t.AffineTransform(v([1.0, 0.0]), 2.0) == t.AffineTransform(1.0, 2.0),
        lambda t, v: t.AffineTransform(0.0, 2.0, 1) == t.AffineTransform(0.0, 2.0),
        lambda t, v: t.PowerTransform(2.0) == t.PowerTransform(v([2.0, 2.0])),
        lambda t, v: t.PowerTransform(2.0) == t.PowerTransform(3.0),
        lambda t, v: (
            t.ComposeTransform([t.ExpTransform()]).inv == t.ComposeTransform([t.ExpTransform().inv])
        ),
        lambda t, v: t.ComposeTransform([]) == t.identity_transform,
    ],
)
def test_equality(equal: Any) -> None:
    ours, theirs = (
        equal(library.distributions.transforms, library.tensor) for library in (chainrule, torch)
    )
    assert ours is theirs


@pytest.mark.parametrize(
    "call",
    [
        lambda t, lib: t.ExpTransform(cache_size=2),
        lambda t, lib: t.ReshapeTransform((2, 3), (5,)),
        lambda t, lib: t.ReshapeTransform((2, 3), (6,)).forward_shape((6,)),
        lambda t, lib: t.ReshapeTransform((2, 3), (6,)).event_dim,
        lambda t, lib: t.CorrCholeskyTransform().forward_shape((4,)),
        lambda t, lib: t.CorrCholeskyTransform().inverse_shape((3, 2)),
        lambda t, lib: t.StickBreakingTransform().forward_shape(()),
        lambda t, lib: t.IndependentTransform(t.ExpTransform(), 2)(lib.zeros(3)),
        lambda t, lib: t.IndependentTransform(t.CorrCholeskyTransform(), 1).inv(lib.eye(3)),
        lambda t, lib: t.AbsTransform().log_abs_det_jacobian(lib.ones(2), lib.ones(2)),
        lambda t, lib: t.SoftmaxTransform().sign,
    ],
)
def test_refusals(call: Any) -> None:
    """Of the same class."""
    kinds = []
    for library in (chainrule, torch):
        with pytest.raises((ValueError, NotImplementedError)) as error:
            call(library.distributions.transforms, library)
        kinds.append(error.type)
    assert kinds[0] is kinds[1]


@pytest.mark.parametrize(
    "make",
    [
        lambda t: t.ExpTransform(),
        lambda t: t.ExpTransform().inv,
        lambda t: t.IndependentTransform(t.TanhTransform(), 2),
        lambda t: t.ComposeTransform([t.ExpTransform(), t.SigmoidTransform()]),
    ],
)
def test_printing(make: Any) -> None:
    ours, theirs = (repr(make(library.distributions.transforms)) for library in (chainrule, torch))
    assert ours == theirs
