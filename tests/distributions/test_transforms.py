"""Transforms by their records: inverses, volumes, derivatives, regions, shapes, caches."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest
from distributions.functions import CASES, Case, build, points
from helpers import assert_close

import chainrule
from chainrule import func
from chainrule.autograd import gradcheck, gradgradcheck
from chainrule.distributions import Normal, constraints, transforms
from chainrule.distributions.transforms import (
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StackTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    identity_transform,
)

Vector = chainrule.tensor


def each(cases: list[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=[c.label for c in cases])


ONE_TO_ONE = [c for c in CASES if build(c).bijective]
OTHERS = [c for c in CASES if not build(c).bijective]
PLAIN = [c for c in CASES if "tensor" not in repr(build(c)) and "Normal" not in repr(build(c))]


def test_every_transform_has_a_record() -> None:
    def parts(f: Any) -> set[str]:
        own = getattr(f, "parts", None) or getattr(f, "transforms", None) or []
        for name in ("base_transform", "transform"):
            own = [*own, getattr(f, name)] if hasattr(f, name) else own
        return {type(f).__name__}.union(*map(parts, own))

    made = set().union(*[parts(build(c)) for c in CASES])
    assert {n for n in transforms.__all__ if n[0].isupper()} <= made | {"Transform"}
    assert [c.label for c in OTHERS] == ["abs", "softmax", "lower cholesky", "positive definite"]


# --- values ---------------------------------------------------------------------------------------


@each(ONE_TO_ONE)
def test_inverse(case: Case) -> None:
    f, x = build(case), points(case)
    y = f(x)
    assert_close(f.inv(y), x, rtol=1e-10, atol=1e-12)
    assert_close(f(f.inv(y)), y, rtol=1e-12)
    assert f.inv.inv is f
    assert f.inv.bijective


@each(OTHERS)
def test_the_inverse_of_what_is_not_one_to_one_is_one_of_several(case: Case) -> None:
    f, x = build(case), points(case)
    y = f(x)
    assert not bool((f.inv(y) == x).all())
    assert_close(f(f.inv(y)), y, rtol=1e-12)
    assert_close(f.inv(f(f.inv(y))), f.inv(y), rtol=1e-10, atol=1e-12)
    with pytest.raises(NotImplementedError, match=f"{type(f).__name__}: log_abs_det_jacobian is"):
        f.log_abs_det_jacobian(x, y)


@each(ONE_TO_ONE)
def test_volume_is_the_determinant_of_the_jacobian(case: Case) -> None:
    """One value at a time, by autograd."""
    f, x = build(case), points(case)
    got = f.log_abs_det_jacobian(x, f(x))
    assert tuple(got.shape) == tuple(x.shape[: x.ndim - f.domain.event_dim])
    assert_close(f.inv.log_abs_det_jacobian(f(x), x), -got, rtol=1e-12)
    expected = np.empty(got.shape)
    for place in np.ndindex(*got.shape):

        def g(value: Any, place: tuple[int, ...] = place) -> Any:
            whole = x.clone()
            whole[place] = value
            return case.free(f(whole)[place]).reshape(-1)

        jacobian = func.jacrev(g)(x[place]).numpy().reshape(-1, x[place].numel())
        expected[place] = np.linalg.slogdet(jacobian)[1]
    assert_close(got, expected, rtol=1e-10, atol=1e-12)


@each(CASES)
def test_derivatives(case: Case) -> None:
    """Of the function, of its inverse and of the volume; in both modes, and twice."""
    f, x = build(case), points(case).requires_grad_()
    gradcheck(f, [x])
    gradgradcheck(f, [x])
    if "definite" not in case.label:  # the root of a matrix that is not symmetric
        gradcheck(f.inv, [f(x).detach().requires_grad_()])
    if f.bijective:
        gradcheck(lambda x: f.log_abs_det_jacobian(x, f(x)), [x])


def test_derivatives_by_the_settings() -> None:
    x = points(CASES[1]).exp()

    def density(loc: Any, scale: Any, exponent: Any) -> Any:
        f = ComposeTransform([PowerTransform(exponent), AffineTransform(loc, scale)])
        y = f(x)
        return chainrule.cat([y, f.inv(y + 0.1), f.log_abs_det_jacobian(x, y)])

    settings = [chainrule.tensor(v, dtype=chainrule.float64) for v in (0.5, 2.0, [1.0, 0.5, 2.0])]
    gradcheck(density, [s.requires_grad_() for s in settings])


@each(PLAIN)
def test_float32_stays(case: Case) -> None:
    f, x = build(case), points(case)
    low = f(x.float())
    assert low.dtype is chainrule.float32
    assert_close(low, f(x).float(), rtol=1e-4, atol=1e-5)
    if f.bijective:
        assert f.log_abs_det_jacobian(x.float(), low).dtype is chainrule.float32


# --- regions and shapes ---------------------------------------------------------------------------


@each(CASES)
def test_regions(case: Case) -> None:
    f, x = build(case), points(case)
    y = f(x)
    for region, value in ((f.domain, x), (f.codomain, y)):
        valid = region.check(value)
        assert bool(valid.all())
        assert valid.shape == value.shape[: value.ndim - region.event_dim]
    before, after = f.domain.event_dim, f.codomain.event_dim
    assert (f.inv.domain.event_dim, f.inv.codomain.event_dim) == (after, before)
    if before == after:
        assert f.event_dim == before
    else:
        with pytest.raises(ValueError, match=f"{before} dimensions before and {after} after"):
            _ = f.event_dim


@each(CASES)
def test_shapes(case: Case) -> None:
    f, x = build(case), points(case)
    y = f(x)
    assert f.forward_shape(x.shape) == y.shape == f.inv.inverse_shape(x.shape)
    assert f.inverse_shape(y.shape) == x.shape == f.inv.forward_shape(y.shape)
    if "cat" not in case.label and "stack" not in case.label:
        many = x.expand(4, *x.shape)
        assert f(many).shape == (4, *y.shape) == f.forward_shape(many.shape)


@pytest.mark.parametrize(
    ("loc", "shape", "expected"),
    [((), (3,), (3,)), ((2, 1), (3,), (2, 3)), ((3,), (), (3,)), ((4,), (5, 1), (5, 4))],
)
def test_settings_broadcast(loc: Any, shape: Any, expected: Any) -> None:
    f = AffineTransform(chainrule.zeros(loc), chainrule.ones(loc))
    g = PowerTransform(chainrule.ones(loc))
    x = chainrule.ones(shape)
    assert f.forward_shape(shape) == f.inverse_shape(shape) == expected == f(x).shape
    assert g.forward_shape(shape) == g.inverse_shape(shape) == expected == g(x).shape
    assert f.log_abs_det_jacobian(x, f(x)).shape == expected


@each([c for c in ONE_TO_ONE if build(c).domain.event_dim == 0 and "cat" not in c.label])
def test_sign(case: Case) -> None:
    f, x = build(case), points(case)
    if isinstance(f, StackTransform):
        with pytest.raises(NotImplementedError, match="neither increasing nor decreasing"):
            _ = f.sign
        return
    rise = (f(x + 1e-3) - f(x)).sign()
    assert bool((rise == f.sign).all())
    assert bool((f.inv.sign * rise == 1).all())


def can_be_mapped(case: Case) -> bool:
    f = build(case)
    return case.x.ndim > f.domain.event_dim and getattr(f, "dim", -1) < 0


@each([c for c in PLAIN if can_be_mapped(c)])
def test_vmap(case: Case) -> None:
    f, x = build(case), points(case)
    y = f(x)
    assert_close(func.vmap(f)(x), y, rtol=1e-12)
    assert_close(func.vmap(f.inv)(y), f.inv(y), rtol=1e-12)
    if f.bijective:
        got = func.vmap(f.log_abs_det_jacobian)(x, y)
        assert_close(got, f.log_abs_det_jacobian(x, y), rtol=1e-12)


# --- caches ---------------------------------------------------------------------------------------


@each([c for c in CASES if c.label != "identity"])
def test_cache(case: Case) -> None:
    plain = build(case).with_cache(0)
    x = points(case)
    assert plain.with_cache(0) is plain
    assert plain(x) is not plain(x)
    f = plain.with_cache()
    assert f.with_cache(1) is f
    assert type(f) is type(plain)
    assert not f.with_cache(0)._cache_size
    y = f(x)
    assert f(x) is y
    assert f.inv(y) is x
    assert_close(y, plain(x), rtol=1e-13)
    other = x.clone()
    assert f(other) is not y
    assert f.inv(y) is not x  # one pair is remembered
    z = y.clone()
    back = f.inv(z)
    assert f(back) is z
    assert f.inv.with_cache(1) is f.inv


def test_a_cached_inverse_has_the_history_of_the_value() -> None:
    f = TanhTransform(cache_size=1)
    x = chainrule.tensor(40.0, requires_grad=True)
    assert f.inv(f(x)) is x
    f.inv(f(x)).backward()
    assert x.grad == 1
    assert math.isinf(TanhTransform().inv(TanhTransform()(x)).item())


# --- equality, copies, printing -------------------------------------------------------------------

EQUAL = [
    (ExpTransform(), ExpTransform(cache_size=1)),
    (ExpTransform().inv, ExpTransform().inv),
    (AffineTransform(1.0, 2.0), AffineTransform(1, 2)),
    (AffineTransform(Vector([1.0, 1.0]), 2.0), AffineTransform(1.0, Vector(2.0))),
    (PowerTransform(2.0), PowerTransform(Vector([2.0, 2.0]))),
    (ComposeTransform([ExpTransform()]), ComposeTransform([ExpTransform()])),
    (ComposeTransform([]), identity_transform),
    (ComposeTransform([ExpTransform()]).inv, ComposeTransform([ExpTransform().inv])),
    (IndependentTransform(ExpTransform(), 1), IndependentTransform(ExpTransform(), 1)),
    (ReshapeTransform((2, 3), (6,)), ReshapeTransform([2, 3], [6])),
    (CatTransform([ExpTransform()]), CatTransform([ExpTransform()], lengths=[1])),
    (StackTransform([ExpTransform()]), StackTransform([ExpTransform()])),
]
DIFFERENT = [
    (ExpTransform(), TanhTransform()),
    (ExpTransform(), ExpTransform().inv),
    (ExpTransform(), 1),
    (AffineTransform(1.0, 2.0), AffineTransform(1.0, 3.0)),
    (AffineTransform(0.0, 2.0), AffineTransform(1.0, 2.0)),
    (AffineTransform(Vector([1.0, 0.0]), 2.0), AffineTransform(1.0, 2.0)),
    (AffineTransform(chainrule.zeros(3), 2.0), AffineTransform(chainrule.zeros(2), 2.0)),
    (PowerTransform(2.0), PowerTransform(3.0)),
    (ComposeTransform([ExpTransform()]), ComposeTransform([ExpTransform(), ExpTransform()])),
    (IndependentTransform(ExpTransform(), 1), IndependentTransform(ExpTransform(), 2)),
    (ReshapeTransform((2, 3), (6,)), ReshapeTransform((3, 2), (6,))),
    (CatTransform([ExpTransform()], 0), CatTransform([ExpTransform()], 1)),
    (
        CumulativeDistributionTransform(Normal(0.0, 1.0)),
        CumulativeDistributionTransform(Normal(0.0, 1.0)),
    ),
]


@pytest.mark.parametrize(("a", "b"), EQUAL, ids=str)
def test_equal(a: Transform, b: Transform) -> None:
    assert a == b
    assert hash(a) == hash(b)


@pytest.mark.parametrize(("a", "b"), DIFFERENT, ids=str)
def test_different(a: Transform, b: Any) -> None:
    assert a != b


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda f: pickle.loads(pickle.dumps(f))]
)
def test_copies_have_their_own_inverse(copied: Any) -> None:
    f = AffineTransform(1.0, 2.0, cache_size=1)
    inverse, x = f.inv, chainrule.ones(2, requires_grad=True)
    y = f(x)
    g = copied(f)
    assert g == f
    assert g.inv.inv is g
    assert g.inv is not inverse
    assert g.inv(y) is not x
    assert f.inv(y) is x


@pytest.mark.parametrize(
    ("f", "text"),
    [
        (ExpTransform(), "ExpTransform()"),
        (ExpTransform().inv, "_InverseTransform(ExpTransform())"),
        (AffineTransform(1.0, 2.0), "AffineTransform(1.0, 2.0)"),
        (IndependentTransform(TanhTransform(), 2), "IndependentTransform(TanhTransform(), 2)"),
        (
            ComposeTransform([ExpTransform(), TanhTransform()]),
            "ComposeTransform(\n    ExpTransform(),\n    TanhTransform()\n)",
        ),
        (identity_transform, "ComposeTransform()"),
    ],
)
def test_printing(f: Transform, text: str) -> None:
    assert repr(f) == text


# --- far from zero --------------------------------------------------------------------------------


@pytest.mark.parametrize("x", [-1e4, -50.0, -20.0, 0.0, 1e-8, 20.0, 50.0, 1e4])
def test_tanh_far_from_zero(x: float) -> None:
    """log(1 - tanh(x)^2) = log(4) - 2 |x| - 2 log(1 + exp(-2 |x|)), where 1 - tanh(x)^2 is 0."""
    value = chainrule.tensor(x, dtype=chainrule.float64, requires_grad=True)
    got = TanhTransform().log_abs_det_jacobian(value, value.tanh())
    expected = math.log(4) - 2 * abs(x) - 2 * math.log1p(math.exp(-2 * abs(x)))
    assert got.item() == pytest.approx(expected, rel=1e-14, abs=1e-15)
    got.backward()
    assert value.grad is not None
    assert value.grad.item() == pytest.approx(-2 * math.tanh(x), rel=1e-12)


@pytest.mark.parametrize("dtype", [chainrule.float32, chainrule.float64])
@pytest.mark.parametrize("size", [1.0, 10.0, 20.0])
@pytest.mark.parametrize(
    "f",
    [SigmoidTransform(), StickBreakingTransform(), CorrCholeskyTransform(), SoftplusTransform()],
)
def test_large_values_stay_in_the_region(f: Transform, size: float, dtype: Any) -> None:
    x = size * chainrule.tensor(
        [[1.0, -1.0, 1.0], [1.0, 1.0, 1.0], [-1.0, -1.0, -1.0]], dtype=dtype
    )
    y = f(x)
    assert bool(f.codomain.check(y).all())
    if not isinstance(f, SigmoidTransform):  # whose numbers near 1 lie apart
        assert_close(f.inv(y), x, rtol=1e-5 if dtype is chainrule.float32 else 1e-12)
    assert bool(f.log_abs_det_jacobian(x, y).isfinite().all())


def test_a_sigmoid_keeps_off_its_ends() -> None:
    x = chainrule.tensor([-1e3, 1e3])
    y = SigmoidTransform()(x)
    assert 0 < y[0].item() < 1e-30
    assert 0 < 1 - y[1].item() < 1e-6
    assert bool(SigmoidTransform().inv(chainrule.tensor([0.0, 1.0])).isfinite().all())


# --- refusals -------------------------------------------------------------------------------------

REFUSED = [
    (lambda: ExpTransform(cache_size=2), "ExpTransform: cache_size must be 0 or 1, got 2"),
    (lambda: ReshapeTransform((2, 3), (5,)), r"\(2, 3\) and out_shape \(5,\) have different num"),
    (lambda: ReshapeTransform((2, 3), (6,))(chainrule.zeros(6)), r"ends with \(2, 3\), got \(6,\)"),
    (lambda: ReshapeTransform((2,), (1, 2)).inverse_shape((2,)), r"ends with \(1, 2\), got \(2,\)"),
    (lambda: CorrCholeskyTransform()(chainrule.zeros(4)), "4 numbers are not D"),
    (lambda: CorrCholeskyTransform().forward_shape(()), "at least 1 dimensions, got shape"),
    (lambda: CorrCholeskyTransform().inverse_shape((3,)), "at least 2 dimensions, got shape"),
    (lambda: CorrCholeskyTransform().inverse_shape((3, 2)), r"expected square matrices, got \(3"),
    (lambda: SoftmaxTransform().forward_shape(()), "SoftmaxTransform: a value has at least 1"),
    (lambda: StickBreakingTransform().inverse_shape(()), "StickBreakingTransform: a value has at"),
    (
        lambda: IndependentTransform(ExpTransform(), 2)(chainrule.zeros(3)),
        r"IndependentTransform: a value has 2 dimensions, got shape \(3,\)",
    ),
    (
        lambda: IndependentTransform(CorrCholeskyTransform(), 1).inv(chainrule.eye(3)),
        r"IndependentTransform: a value has 3 dimensions, got shape \(3, 3\)",
    ),
    (lambda: IndependentTransform(ExpTransform(), -1), "must not be negative, got -1"),
    (lambda: ComposeTransform([ExpTransform(), 3]), "ComposeTransform: expected transforms, got i"),
    (lambda: CatTransform([Normal(0.0, 1.0)]), "CatTransform: expected transforms, got Normal"),
    (lambda: StackTransform([None]), "StackTransform: expected transforms, got NoneType"),
    (lambda: CatTransform([ExpTransform()], lengths=[1, 2]), "1 transforms, but 2 lengths"),
    (
        lambda: CatTransform([ExpTransform()], dim=1)(chainrule.zeros(3)),
        r"CatTransform: expected size 1 in dimension 1, got shape \(3,\)",
    ),
    (
        lambda: StackTransform([ExpTransform()] * 2).inv(chainrule.ones(3)),
        r"StackTransform: expected size 2 in dimension 0, got shape \(3,\)",
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[m[:40] for _, m in REFUSED])
def test_refusals(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_what_a_transform_must_give() -> None:
    class Mine(Transform):
        domain = codomain = constraints.real

    f, x = Mine(), chainrule.ones(2)
    for call, what in (
        (lambda: f(x), "the function is not defined"),
        (lambda: f.inv(x), "the inverse is not known"),
        (lambda: f.log_abs_det_jacobian(x, x), "log_abs_det_jacobian is not known"),
        (lambda: f.sign, "neither increasing nor decreasing"),
    ):
        with pytest.raises(NotImplementedError, match=f"Mine: {what}"):
            call()
    assert f != Mine()


def test_a_scale_of_zero_has_no_volume() -> None:
    for zero in (0.0, chainrule.tensor(0.0)):
        got = AffineTransform(1.0, zero).log_abs_det_jacobian(chainrule.ones(2), chainrule.ones(2))
        assert got.tolist() == [-math.inf, -math.inf]
