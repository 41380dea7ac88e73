"""Problems with known answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import scipy.special
import scipy.stats

import chainrule
from chainrule import problems
from chainrule.autograd import gradcheck, gradgradcheck
from chainrule.func import hessian, jvp, vmap
from chainrule.problems import Problem


F64 = chainrule.float64


def seeded(seed: int = 0) -> chainrule.Generator:
    return chainrule.Generator().manual_seed(seed)


FUNCTIONS: dict[str, Callable[..., Problem]] = {
    "bowl": lambda **k: problems.bowl(dtype=k["dtype"]),
    "vialle": lambda **k: problems.vialle(dtype=k["dtype"]),
    "rosenbrock": lambda **k: problems.rosenbrock(4, dtype=k["dtype"]),
    "quadratic": lambda **k: problems.quadratic(6, 100.0, **k),
    "line": problems.line,
    "exponential": problems.exponential,
    "exponential_line": problems.exponential_line,
    "darcy": problems.darcy,
}


DATA: dict[str, Callable[..., Problem]] = {
    "line": problems.line,
    "exponential": problems.exponential,
    "exponential_line": problems.exponential_line,
    "darcy": problems.darcy,
    "radial_bessel": problems.radial_bessel,
    "moons": problems.moons,
    "circles": problems.circles,
    "spirals": problems.spirals,
    "blobs": problems.blobs,
    "bouc_wen": lambda **k: problems.bouc_wen(2, 40, **k),
    "ground_motion": lambda **k: Problem("g", "", inputs=problems.ground_motion(2, **k)),
}


# --- all of them ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_have_finite_gradients_and_their_minimum(name: str, dtype: str) -> None:
    d = getattr(chainrule, dtype)
    p = FUNCTIONS[name](dtype=d, **({} if name in ("bowl",) else {"generator": seeded()}))
    assert p.start.dtype == p.minimizer.dtype == d
    start = p.start.clone().requires_grad_()
    value = p.function(start)
    assert value.dtype == d
    value.backward()
    assert start.grad.isfinite().all()
    assert start.grad.abs().max() > 0
    assert value.item() > p.minimum
    tolerance = 1e-9 if dtype == "float64" else 1e-3
    assert p.function(p.minimizer).item() == pytest.approx(p.minimum, rel=1e-5, abs=1e-9)
    at = p.minimizer.clone().requires_grad_()
    p.function(at).backward()
    assert at.grad.abs().max() < tolerance * max(1.0, start.grad.abs().max().item())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_scipy_finds_the_minimum(name: str) -> None:
    p = FUNCTIONS[name](dtype=F64, **({} if name in ("bowl",) else {"generator": seeded(1)}))

    def function(v: np.ndarray) -> tuple[float, np.ndarray]:
        t = chainrule.tensor(v).requires_grad_()
        value = p.function(t)
        return value.item(), chainrule.autograd.grad(value, t)[0].numpy()

    start = p.start.numpy() if name != "vialle" else np.array([60.0, 65.0])
    if name == "rosenbrock":  # from the usual start descent may end in the other valley
        start = np.zeros(4)
    found = scipy.optimize.minimize(
        function, start, jac=True, method="BFGS", options={"gtol": 1e-12, "maxiter": 5000}
    )
    assert found.fun == pytest.approx(p.minimum, rel=1e-9, abs=1e-12)
    if name != "darcy":  # whose data are small: its valley is flat
        np.testing.assert_allclose(found.x, p.minimizer.numpy(), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", DATA)
def test_a_seed_gives_the_same_data_in_every_dtype(name: str) -> None:
    make = DATA[name]
    a, b, other = (make(generator=seeded(s), dtype=F64) for s in (3, 3, 4))
    single = make(generator=seeded(3), dtype=chainrule.float32)
    assert (a.inputs == b.inputs).all()
    assert not (a.inputs == other.inputs).all()
    assert single.inputs.dtype == chainrule.float32
    np.testing.assert_allclose(single.inputs.numpy(), a.inputs.numpy(), rtol=1e-5, atol=1e-6)
    if a.targets is None:
        return
    assert (a.targets == b.targets).all()
    if a.targets.is_floating_point():
        assert single.targets.dtype == chainrule.float32
        np.testing.assert_allclose(single.targets.numpy(), a.targets.numpy(), rtol=1e-4, atol=1e-4)
    else:
        assert a.targets.dtype == chainrule.int64
        assert (a.targets == single.targets).all()


@pytest.mark.parametrize("name", [n for n in DATA if n != "ground_motion"])
def test_data_follow_from_the_default_generator_and_know_their_source(name: str) -> None:
    chainrule.manual_seed(5)
    a = DATA[name]()
    chainrule.manual_seed(5)
    b = DATA[name]()
    assert (a.inputs == b.inputs).all()
    assert a.name == name
    assert "document" in a.source
    assert a.rule(a.inputs).shape == a.targets.shape


def test_every_public_problem_is_tested_here() -> None:
    helpers = {
        "Problem",
        "arrangements",
        "boolean",
        "bouc_wen_response",
        "configurations",
        "discharge",
        "radial_function",
    }
    assert set(problems.__all__) == helpers | set(FUNCTIONS) | set(DATA)


def test_split_divides_the_data() -> None:
    p = problems.exponential(generator=seeded(), dtype=F64)
    (x, y), (x_val, y_val) = p.split(0.8, seeded(1))
    assert x.shape == y.shape == (160, 1)
    assert x_val.shape == y_val.shape == (40, 1)
    both = np.concatenate([x.numpy(), x_val.numpy()])
    np.testing.assert_array_equal(np.sort(both, 0), np.sort(p.inputs.numpy(), 0))
    assert not (x == p.inputs[:160]).all()
    assert p.split(0.8, seeded(1))[0][0].tolist() == x.tolist()
    pairs = dict(zip(p.inputs[:, 0].tolist(), p.targets[:, 0].tolist(), strict=True))
    assert [pairs[v] for v in x[:, 0].tolist()] == y[:, 0].tolist()


def test_split_needs_data_and_a_fraction() -> None:
    with pytest.raises(ValueError, match="'bowl' has a function but no data"):
        problems.bowl().split()
    with pytest.raises(ValueError, match=r"fraction must lie in \[0, 1\], got 1.5"):
        problems.line().split(1.5)


def test_repr() -> None:
    assert "inputs (30, 1), targets (30, 1), minimum=" in repr(problems.line())
    assert repr(problems.bowl()) == "Problem('bowl', source='document 004, section 7.4', minimum=0)"


# --- surfaces -------------------------------------------------------------------------------------


def test_bowl_is_stable_below_a_rate_of_a_fifth() -> None:
    p = problems.bowl(F64)
    assert hessian(p.function)(p.start).tolist() == p.known["hessian"].tolist()

    def distance(rate: float) -> float:
        w = p.start
        for _ in range(200):
            w = w - rate * chainrule.func.grad(p.function)(w)
        return w.abs().max().item()

    assert distance(0.99 * p.known["largest_rate"]) < 0.05
    assert distance(1.01 * p.known["largest_rate"]) > 10


def test_vialle_minimum_is_global() -> None:
    p = problems.vialle(dtype=F64)
    assert p.minimizer.tolist() == pytest.approx([61.770, 67.590], abs=5e-4)
    assert p.minimum == pytest.approx(10.5195, abs=5e-5)

    def function(t: np.ndarray) -> Any:
        a, b = t
        return (
            8 * np.sin(1.5 * a / 10 - 3) ** 2
            + 8 * np.cos(b / 10 - 2) ** 2
            + 0.3 * ((a / 5 - 12) ** 2 + (b / 10 - 8) ** 2)
            + 10
        )

    grid = np.stack(np.meshgrid(np.linspace(-50, 200, 501), np.linspace(-100, 250, 501)))
    assert function(grid).min() >= p.minimum
    best = scipy.optimize.brute(function, ((0, 150), (0, 150)), Ns=60)
    np.testing.assert_allclose(best, p.minimizer.numpy(), atol=1e-3)
    point = np.array([135.0, 20.0])
    assert p.function(chainrule.tensor(point)).item() == pytest.approx(function(point), rel=1e-14)


def test_vialle_starts_are_as_far_as_they_are() -> None:
    """The start (45, 35) is the nearer one."""
    p = problems.vialle(dtype=F64)
    far, near = (math.dist(s, p.minimizer.tolist()) for s in p.known["starts"])
    assert (far, near) == pytest.approx((99.53, 36.65), abs=5e-3)
    assert problems.vialle((135.0, 135.0)).start.tolist() == [135, 135]


@pytest.mark.parametrize("n", [2, 3, 7])
def test_rosenbrock_is_scipys(n: int) -> None:
    p = problems.rosenbrock(n, F64)
    x = np.random.default_rng(n).normal(size=n)
    t = chainrule.tensor(x)
    assert p.function(t).item() == pytest.approx(scipy.optimize.rosen(x), rel=1e-13)
    g = chainrule.func.grad(p.function)(t)
    np.testing.assert_allclose(g.numpy(), scipy.optimize.rosen_der(x), rtol=1e-11, atol=1e-11)
    h = hessian(p.function)(t)
    np.testing.assert_allclose(h.numpy(), scipy.optimize.rosen_hess(x), rtol=1e-11, atol=1e-11)


def test_quadratic_has_the_condition_number() -> None:
    p = problems.quadratic(8, 1e6, seeded(), F64)
    h = hessian(p.function)(p.start).numpy()
    np.testing.assert_allclose(h, p.known["hessian"].numpy(), rtol=1e-9, atol=1e-6)
    assert np.linalg.cond(h) == pytest.approx(1e6, rel=1e-6)
    np.testing.assert_allclose(np.linalg.eigvalsh(h), np.logspace(0, 6, 8), rtol=1e-6)
    assert np.linalg.norm(np.diag(h)) < 0.95 * np.linalg.norm(h)  # the axes are turned
    g = chainrule.func.grad(p.function)(p.start).numpy()
    np.testing.assert_allclose(-np.linalg.solve(h, g), p.minimizer.numpy(), atol=1e-8)


# --- regression -----------------------------------------------------------------------------------


def test_line_is_three_x_plus_two() -> None:
    p = problems.line(generator=seeded(), dtype=F64)
    noise = p.targets - (3 * p.inputs + 2)
    assert p.inputs.shape == (30, 1)
    assert 0.08 < noise.abs().max().item() <= 0.1
    assert p.inputs.abs().max().item() < 1
    assert p.start.tolist() == [10, 5]
    slope, offset = np.polyfit(p.inputs.numpy()[:, 0], p.targets.numpy()[:, 0], 1)
    assert p.minimizer.tolist() == pytest.approx([offset, slope], rel=1e-10)
    assert (p.rule(p.inputs) == 3 * p.inputs + 2).all()
    wide = problems.line(low=0.0, high=10.0, generator=seeded())
    assert wide.inputs.max().item() > 5
    assert wide.inputs.min().item() >= 0


def test_exponential_has_the_distribution_of_the_course() -> None:
    """Moments as of x uniform, noise normal: the course's numbers come from NumPy's generator."""
    p = problems.exponential(20000, generator=seeded(42), dtype=F64)
    x, y = p.inputs.numpy(), p.targets.numpy()
    noise = y - (14.7351129 + 10.1542550 * np.exp(2.34 * x))
    assert x.mean() == pytest.approx(0.5, abs=0.01)
    assert x.var() == pytest.approx(1 / 12, abs=0.002)
    assert noise.mean() == pytest.approx(0, abs=0.3)
    assert noise.std() == pytest.approx(10.154988, rel=0.02)
    assert scipy.stats.kurtosis(noise[:, 0]) == pytest.approx(0, abs=0.15)
    assert problems.exponential().inputs.shape == (200, 1)


def test_exponential_minimizer_is_scipys() -> None:
    p = problems.exponential(generator=seeded(42), dtype=F64)
    x, y = p.inputs.numpy()[:, 0], p.targets.numpy()[:, 0]
    found = scipy.optimize.least_squares(
        lambda t: t[0] + t[1] * np.exp(t[2] * x) - y, [14, 10, 2], xtol=1e-15, ftol=1e-15
    )
    np.testing.assert_allclose(p.minimizer.numpy(), found.x, rtol=1e-6)
    assert p.minimum == pytest.approx(2 * found.cost / 200, rel=1e-12)
    assert p.minimum < p.function(p.truth).item()
    exact = problems.exponential(noise=0.0, dtype=F64)
    np.testing.assert_allclose(exact.minimizer.numpy(), exact.truth.numpy(), rtol=1e-10)


def test_line_through_the_exponential_tends_to_its_limit() -> None:
    p = problems.exponential_line(200000, generator=seeded(), dtype=F64)
    np.testing.assert_allclose(p.minimizer.numpy(), p.known["limit"].numpy(), atol=0.02)
    e = lambda f: scipy.integrate.quad(f, 0, 1)[0]  # noqa: E731
    y = lambda x: 14.7351129 + 10.1842550 * math.exp(x)  # noqa: E731
    slope = (e(lambda x: x * y(x)) - 0.5 * e(y)) * 12
    assert p.known["limit"].tolist() == pytest.approx([e(y) - slope / 2, slope], rel=1e-10)


# --- the radial function --------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [1, 2, 3, 5])
def test_radial_function_is_the_bessel_function(dim: int) -> None:
    x = np.random.default_rng(dim).uniform(-10, 10, (200, dim))
    r = np.linalg.norm(x, axis=1)
    expected = (0.2 / r) ** (dim / 2) * scipy.special.jv(dim / 2, 2 * np.pi * 0.2 * r)
    got = problems.radial_function(chainrule.tensor(x)).numpy()
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-14)


def test_radial_function_at_zero_is_the_volume_of_the_ball() -> None:
    values = [problems.radial_function(chainrule.zeros(1, d, dtype=F64)).item() for d in (1, 2, 3)]
    assert values == pytest.approx([0.4, math.pi * 0.04, 4 / 3 * math.pi * 0.008], rel=1e-14)
    assert values[1] == pytest.approx(0.12566, abs=5e-6)
    assert problems.radial_bessel(10).known["peak"] == pytest.approx(values[1], rel=1e-14)


def test_radial_function_is_the_fourier_transform_of_the_disk() -> None:
    x = 1.7
    real = scipy.integrate.quad(
        lambda w: 2 * math.sqrt(0.04 - w * w) * math.cos(2 * math.pi * x * w), -0.2, 0.2
    )[0]
    got = problems.radial_function(chainrule.tensor([[x, 0.0]], dtype=F64)).item()
    assert got == pytest.approx(real, abs=1e-9)


def test_radial_function_has_derivatives_of_all_orders() -> None:
    x = chainrule.tensor([[0.0, 0.0], [0.3, -0.2], [4.0, 7.0]], dtype=F64).requires_grad_()
    assert gradcheck(problems.radial_function, (x,))
    assert gradgradcheck(problems.radial_function, (x,))
    p, t = x.detach()[1], chainrule.tensor([1.0, 2.0], dtype=F64)
    slope = jvp(problems.radial_function, (p,), (t,))[1].item()
    g = chainrule.func.grad(problems.radial_function)(p)
    assert slope == pytest.approx((g * t).sum().item(), rel=1e-12)
    mapped = vmap(problems.radial_function)(x.detach())
    np.testing.assert_allclose(mapped.numpy(), problems.radial_function(x.detach()).numpy())


def test_radial_points_fill_the_square() -> None:
    p = problems.radial_bessel(generator=seeded())
    assert p.inputs.shape == (4000, 2)
    assert p.targets.shape == (4000, 1)
    assert 9.9 < p.inputs.abs().max().item() <= 10
    assert p.inputs.mean().abs().item() < 0.3


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: problems.rosenbrock(1), "rosenbrock: n must be an integer of at least 2, got 1"),
        (lambda: problems.line(1), "line: n must be an integer of at least 2, got 1"),
        (lambda: problems.quadratic(3, 0.5), "condition must be at least 1 and finite, got 0.5"),
        (lambda: problems.quadratic(1, 5.0), "one dimension has the condition number 1, got 5"),
        (lambda: problems.moons(0), "moons: n must be an integer of at least 1, got 0"),
        (lambda: problems.moons(noise=-1.0), "moons: noise must not be negative, got -1"),
        (lambda: problems.blobs(classes=1), "classes must be an integer of at least 2, got 1"),
        (lambda: problems.boolean("maybe"), "'maybe' is not one of or, and"),
        (lambda: problems.darcy(conductivities=()), r"conductivities must be positive, got \[\]"),
        (lambda: problems.darcy(conductivities=(1, -1)), r"must be positive, got \[1, -1\]"),
        (lambda: problems.darcy(length=0.0), "length must be positive and finite, got 0"),
        (lambda: problems.arrangements([0, 0]), r"not all 0, got \[0, 0\]"),
        (lambda: problems.arrangements([1.5]), r"must be integers, not all 0, got \[1.5\]"),
        (lambda: problems.radial_bessel(radius=-1.0), "radius must be positive and finite, got -1"),
        (lambda: problems.radial_function(chainrule.tensor(1.0)), r"points \(..., d\), got shape"),
        (lambda: problems.ground_motion(steps=1), "steps must be an integer of at least 2, got 1"),
        (lambda: problems.ground_motion(dt=0.0), "dt must be positive and finite, got 0"),
        (lambda: problems.bouc_wen(n=0), "bouc_wen: n must be an integer of at least 1, got 0"),
        (lambda: problems.bouc_wen_response(chainrule.zeros(3)), r"\(N, L\), got shape \(3,\)"),
        (
            lambda: problems.bouc_wen_response(chainrule.zeros(1, 3), n=0.5),
            "n must be at least 1, got 0.5",
        ),
    ],
)
def test_wrong_arguments(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_numbers_are_floating(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name}: dtype must be a floating one, got .*int64"):
        FUNCTIONS[name](dtype=chainrule.int64)


def test_generator_is_a_generator() -> None:
    with pytest.raises(TypeError, match="'generator' must be Generator, not int"):
        problems.moons(generator=42)
