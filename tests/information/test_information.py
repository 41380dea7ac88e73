"""Entropy, divergence and information of discrete and continuous variables, and counting."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats

import chainrule
from chainrule import information, problems
from chainrule.func import grad, hessian, vmap


def tensor(x: Any) -> chainrule.Tensor:
    return chainrule.tensor(np.asarray(x, dtype=np.float64))


def law(*shape: int, seed: int = 0) -> np.ndarray:
    """Random probabilities over the last dimension."""
    return np.random.default_rng(seed).dirichlet(np.ones(shape[-1]), size=shape[:-1])


def table(*shape: int, seed: int = 0) -> np.ndarray:
    """Random probabilities of several variables."""
    return law(math.prod(shape), seed=seed).reshape(shape)


# --- discrete -------------------------------------------------------------------------------------


def test_self_information() -> None:
    p = tensor([1.0, 0.5, 0.2, 0.0])
    got = information.self_information(p, base=2).numpy()
    np.testing.assert_allclose(got, [0.0, 1.0, np.log2(5), np.inf], atol=1e-15)
    assert not np.signbit(got[0])
    # of independent events it adds up
    a, b = information.self_information(tensor(0.3)), information.self_information(tensor(0.2))
    assert float(information.self_information(tensor(0.06))) == pytest.approx(float(a + b))


@pytest.mark.parametrize("base", [math.e, 2.0, 10.0, 0.5])
def test_entropy_in_any_base(base: float) -> None:
    p = law(4, 5)
    p[0] = [1, 0, 0, 0, 0]
    got = information.entropy(tensor(p), base=base).numpy()
    np.testing.assert_allclose(got, scipy.stats.entropy(p, axis=1, base=base), atol=1e-14)
    across = information.entropy(tensor(p.T), base=base, dim=0).numpy()
    np.testing.assert_allclose(across, got)


def test_entropy_of_float32_stays_float32() -> None:
    p = chainrule.tensor([0.25, 0.75])
    for f in (information.entropy, information.self_information):
        assert f(p).dtype == chainrule.float32
    assert information.kl_divergence(p, p).dtype == chainrule.float32


def test_derivatives_of_entropies() -> None:
    """Through softmax: dH/dz = -p (ln p + H), and the second derivative of ln Z is a covariance."""
    z = tensor([0.3, -1.0, 2.0])
    p = scipy.special.softmax(z.numpy())
    h = scipy.stats.entropy(p)
    got = grad(lambda z: information.entropy(z.softmax(0)))(z)
    np.testing.assert_allclose(got.numpy(), -p * (np.log(p) + h), rtol=1e-12)
    q = tensor(law(3, seed=4))
    f = lambda z: information.kl_divergence(q, z.softmax(0))  # noqa: E731
    np.testing.assert_allclose(grad(f)(z).numpy(), p - q.numpy(), rtol=1e-11)
    np.testing.assert_allclose(hessian(f)(z).numpy(), np.diag(p) - np.outer(p, p), atol=1e-12)
    batch = vmap(information.entropy)(tensor(law(3, 4)))
    np.testing.assert_allclose(batch.numpy(), scipy.stats.entropy(law(3, 4), axis=1))


def test_conditional_entropy_is_a_mean_and_not_negative() -> None:
    """H(Y|X) = +E_x[H(Y|x)]."""
    p = np.array([[0.3, 0.2], [0.1, 0.4]])
    rows = p.sum(1)
    expected = sum(rows[i] * scipy.stats.entropy(p[i] / rows[i]) for i in range(2))
    got = float(information.conditional_entropy(tensor(p)))
    assert got == pytest.approx(expected)
    assert got > 0
    columns = p.sum(0)
    other = sum(columns[j] * scipy.stats.entropy(p[:, j] / columns[j]) for j in range(2))
    assert float(information.conditional_entropy(tensor(p), given=1)) == pytest.approx(other)


def test_chain_rule_of_entropies() -> None:
    p = table(3, 4, 2)
    joint = float(information.joint_entropy(tensor(p)))
    assert joint == pytest.approx(scipy.stats.entropy(p.ravel()))
    x = float(information.entropy(tensor(p.sum((1, 2)))))
    y = float(information.conditional_entropy(tensor(p.sum(2))))
    z = float(information.conditional_entropy(tensor(p), given=(0, 1)))
    assert joint == pytest.approx(x + y + z)


def test_divergence_and_cross_entropy() -> None:
    p, q = law(5, 4), law(5, 4, seed=1)
    d = information.kl_divergence(tensor(p), tensor(q), base=2).numpy()
    np.testing.assert_allclose(d, scipy.stats.entropy(p, q, axis=1, base=2))
    c = information.cross_entropy(tensor(p), tensor(q), base=2).numpy()
    np.testing.assert_allclose(c, d + information.entropy(tensor(p), base=2).numpy())


def test_divergence_is_zero_only_between_equals() -> None:
    """Finite if the support of p lies in that of q; zero if and only if they are the same."""
    p = tensor([0.5, 0.5, 0.0])
    assert float(information.kl_divergence(p, p)) == 0
    assert float(information.kl_divergence(p, tensor([0.4, 0.4, 0.2]))) > 0  # supports intersect
    assert float(information.kl_divergence(tensor([0.4, 0.4, 0.2]), p)) == math.inf
    assert float(information.cross_entropy(tensor([0.4, 0.4, 0.2]), p)) == math.inf


def test_mutual_information() -> None:
    p = table(3, 4)
    x, y = p.sum(1), p.sum(0)
    expected = (p * np.log(p / np.outer(x, y))).sum()
    got = float(information.mutual_information(tensor(p)))
    assert got == pytest.approx(expected)
    for own, given in ((y, 0), (x, 1)):
        left = information.conditional_entropy(tensor(p), given=given)
        assert got == pytest.approx(scipy.stats.entropy(own) - float(left))
    three = table(2, 3, 4)
    one = (three * np.log(three / (three.sum((1, 2), keepdims=True) * three.sum(0)))).sum()
    assert float(information.mutual_information(tensor(three))) == pytest.approx(one)


def test_mutual_information_from_independence_to_determination() -> None:
    """I = H(X) - H(X|Y): 0 if independent, H(X) at most, where Y determines X."""
    x = np.array([0.2, 0.3, 0.5])
    independent = np.outer(x, [0.4, 0.6])
    assert float(information.mutual_information(tensor(independent))) == pytest.approx(0, abs=1e-15)
    known = np.diag(x)
    h = float(information.entropy(tensor(x)))
    assert float(information.mutual_information(tensor(known))) == pytest.approx(h)
    assert float(information.conditional_entropy(tensor(known), given=1)) == pytest.approx(0)
    for seed in range(20):
        p = table(3, 4, seed=seed)
        assert (
            0 <= float(information.mutual_information(tensor(p))) <= scipy.stats.entropy(p.sum(1))
        )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: information.entropy(tensor([0.5, 0.6])),
            "must add up to 1 over dimension -1, they",
        ),
        (lambda: information.entropy(tensor([1.5, -0.5])), "must not be negative or NaN"),
        (lambda: information.entropy(tensor(0.5)), "along a dimension, got a single number"),
        (
            lambda: information.entropy(tensor([1.0]), base=1),
            "base must be a positive number other",
        ),
        (lambda: information.self_information(tensor(1.5)), "lies between 0 and 1"),
        (
            lambda: information.conditional_entropy(tensor([0.5, 0.5])),
            "table of two variables or more",
        ),
        (lambda: information.gaussian_entropy(-1.0), "covariance must be positive definite"),
        (lambda: information.integrate(lambda x: x, 0.0, math.inf), "finite limits low < high"),
        (lambda: information.integrate(lambda x: x, [0.0, 0.0], [1.0]), "one for each variable"),
        (
            lambda: information.integrate(lambda x: x, 0.0, 1.0, panels=0),
            "panels must be at least 1",
        ),
        (
            lambda: information.differential_entropy(lambda x: 0 * x, 0.0, 2.0),
            "the integral 2 between",
        ),
        (lambda: information.description_length(tensor([1.0]), 0.0), "precision must be positive"),
        (
            lambda: information.description_length(tensor([1.0]), 1.0, -1.0),
            "deviation must be positive",
        ),
        (lambda: information.configurations(-1, 2), "channels must be an integer of at least 0"),
        (lambda: information.multiplicity_entropy([3]), "two values or more"),
        (lambda: information.composition_log_probability([1], [0.5, 0.5]), "1 counts and 2 prob"),
        (lambda: information.composition_log_probability([1, 1], [0.5, 0.6]), "add up to 1"),
        (lambda: information.maximum_entropy([1.0, 2.0], [1.0, 2.0], [-1.0, 2.0]), "measure"),
        (
            lambda: information.maximum_entropy([1.0, 2.0], [3.0]),
            "inside the range .*from .1.0. to",
        ),
        (lambda: information.cramer_rao_bound(tensor([[1.0, 1.0], [1.0, 1.0]])), "is singular"),
        (lambda: information.cramer_rao_bound(1.0, n=0), "n must be at least 1"),
        (lambda: information.berry_esseen_bound(tensor([1.0]), 0.0), "must be positive, got 0.0"),
        (
            lambda: information.kolmogorov_distance(tensor([1.0]), std=0.0),
            "expected samples and std",
        ),
        (lambda: information.central_limit(chainrule.rand, 0.0, 0.0), "std must be positive"),
        (lambda: information.law_of_large_numbers(chainrule.rand, 0.5, []), "sizes of at least 1"),
        (
            lambda: information.law_of_large_numbers(chainrule.rand, 0.5, tolerance=0),
            "tolerance must",
        ),
        (lambda: information.bias_variance(tensor([[1.0]]), tensor([1.0]), -1.0), "must be >= 0"),
        (
            lambda: information.asymptotic_normality(chainrule.rand, lambda x: x[:, 0], 0.0, 0.0),
            "information must be positive",
        ),
        (
            lambda: information.simulate_estimator(
                chainrule.rand, lambda x: x[:, 0], 0.0, 3, trials=1
            ),
            "needs two trials",
        ),
        (
            lambda: information.fisher_information(
                lambda p, x: p * x, tensor(0.1), tensor([0.0, 1.0])
            ),
            "add up to 2.1.* instead of 1",
        ),
    ],
)
def test_errors(call: Callable[[], Any], message: str) -> None:
    with pytest.raises((ValueError, RuntimeError), match=message):
        call()


def test_wrong_shapes() -> None:
    with pytest.raises(RuntimeError, match="over the same outcomes, got 2 and 3"):
        information.kl_divergence(tensor([0.5, 0.5]), tensor([0.5, 0.25, 0.25]))
    with pytest.raises(IndexError, match="table of 2 variables has no dimension 2"):
        information.conditional_entropy(tensor(table(2, 2)), given=2)
    with pytest.raises(RuntimeError, match=r"draw\(2000, 1\) must return a Tensor"):
        information.central_limit(lambda *s: chainrule.rand(3), 0.5, 1.0)
    with pytest.raises(RuntimeError, match="one number for each of 5 trials"):
        information.simulate_estimator(chainrule.rand, lambda x: x, 0.0, 3, trials=5)
    with pytest.raises(RuntimeError, match=r"features \(S, M\), moments \(M,\)"):
        information.maximum_entropy([1.0, 2.0], [1.0, 2.0])


# --- continuous -----------------------------------------------------------------------------------


def normal_log(std: Any, mean: float = 0.0) -> Callable[[Any], Any]:
    return lambda x: -(((x - mean) / std) ** 2) / 2 - chainrule.log(std * math.sqrt(2 * math.pi))


def test_gaussian_entropy_has_the_determinant() -> None:
    """d/2 (1 + ln 2 pi) + 1/2 ln det, not the trace; 1.418938533204673 for the standard normal."""
    assert float(information.gaussian_entropy(tensor(1.0))) == pytest.approx(
        1.418938533204673, abs=1e-15
    )
    assert float(information.gaussian_entropy(tensor(4.0))) == pytest.approx(2.1121, abs=5e-5)
    a = np.random.default_rng(0).normal(size=(3, 3))
    sigma = a @ a.T
    expected = scipy.stats.multivariate_normal(cov=sigma).entropy()
    assert float(information.gaussian_entropy(tensor(sigma))) == pytest.approx(expected)
    slope = grad(information.gaussian_entropy)(tensor(sigma))
    np.testing.assert_allclose(slope.numpy(), np.linalg.inv(sigma) / 2, rtol=1e-9)


def test_gaussian_divergence() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 2, 2))
    s, t = a @ a.T + np.eye(2), b @ b.T + np.eye(2)
    m, k = rng.normal(size=(2, 2))
    p, q = scipy.stats.multivariate_normal(m, s), scipy.stats.multivariate_normal(k, t)
    f = lambda x: tensor(p.pdf(x.numpy()) * (p.logpdf(x.numpy()) - q.logpdf(x.numpy())))  # noqa: E731
    expected = float(information.integrate(f, [-15.0, -15.0], [15.0, 15.0], panels=40))
    got = float(information.gaussian_kl(tensor(m), tensor(s), tensor(k), tensor(t)))
    assert got == pytest.approx(expected, rel=1e-8)
    assert float(
        information.gaussian_kl(tensor(m), tensor(s), tensor(m), tensor(s))
    ) == pytest.approx(0)


def test_differential_entropy_by_quadrature() -> None:
    for dist, low, high in (
        (scipy.stats.norm(1, 2), -25.0, 27.0),
        (scipy.stats.expon(), 0.0, 60.0),
        (scipy.stats.uniform(0, 0.5), 0.0, 0.5),
        (scipy.stats.beta(2, 3), 0.0, 1.0),
    ):
        got = information.differential_entropy(
            lambda x, dist=dist: tensor(dist.logpdf(x.numpy())), low, high
        )
        assert float(got) == pytest.approx(float(dist.entropy()), rel=1e-6, abs=1e-8)


def test_the_entropy_of_a_density_may_be_negative() -> None:
    """-E ln p >= 0 holds for discrete distributions only."""
    narrow = information.differential_entropy(normal_log(tensor(0.1)), -2.0, 2.0)
    assert float(narrow) == pytest.approx(-0.8836465597893728, abs=1e-10)
    assert float(information.gaussian_entropy(tensor(0.01))) == pytest.approx(float(narrow))


def test_derivative_of_a_differential_entropy() -> None:
    """dh/d sigma = 1 / sigma, through the quadrature."""
    h = lambda s: information.differential_entropy(normal_log(s), -30.0, 30.0)  # noqa: E731
    assert float(grad(h)(tensor(2.0))) == pytest.approx(0.5, rel=1e-9)


def test_entropy_relative_to_a_measure_does_not_depend_on_the_units() -> None:
    """x in meters or centimeters: the plain entropy changes by ln 100, Jaynes' does not."""
    plain, jaynes = [], []
    for unit in (1.0, 100.0):
        p, m = normal_log(tensor(unit), 0.3 * unit), normal_log(tensor(3 * unit))
        plain.append(float(information.differential_entropy(p, -20 * unit, 20 * unit)))
        h = information.differential_entropy(p, -20 * unit, 20 * unit, reference=m)
        jaynes.append(float(h))
    assert plain[1] - plain[0] == pytest.approx(math.log(100))
    assert jaynes[0] == pytest.approx(jaynes[1])
    d = information.gaussian_kl(tensor(0.3), tensor(1.0), tensor(0.0), tensor(9.0))
    assert jaynes[0] == pytest.approx(-float(d))


def test_entropy_of_two_variables_by_quadrature() -> None:
    sigma = np.array([[1.0, 0.6], [0.6, 2.0]])
    dist = scipy.stats.multivariate_normal(cov=sigma)
    got = information.differential_entropy(
        lambda x: tensor(dist.logpdf(x.numpy())), [-10.0, -10.0], [10.0, 10.0], base=2, panels=20
    )
    assert float(got) == pytest.approx(dist.entropy() / math.log(2), rel=1e-9)


# --- counting -------------------------------------------------------------------------------------


def test_darcy_multiplicities() -> None:
    """ln N_Q / (N ln b) tends to the entropy: 0.9274 for N = 600, f = (.2, .3, .5), H = 0.9372."""
    f = (0.2, 0.3, 0.5)
    h = float(information.entropy(tensor(f), base=3))
    assert h == pytest.approx(0.9372, abs=5e-5)
    rates = [
        information.multiplicity_entropy([round(n * x) for x in f]) for n in (60, 600, 600_000)
    ]
    assert rates[1] == pytest.approx(0.9274, abs=5e-5)
    assert rates == sorted(rates)
    assert rates[-1] == pytest.approx(h, abs=3e-5)
    assert information.arrangements is problems.arrangements
    assert information.configurations is problems.configurations


def test_compositions_are_counted() -> None:
    counts = [c for c in itertools.product(range(5), repeat=3) if sum(c) == 4]
    assert len(counts) == information.configurations(4, 3)
    p = [0.2, 0.3, 0.5]
    total = sum(math.exp(information.composition_log_probability(c, p)) for c in counts)
    assert total == pytest.approx(1)
    assert information.composition_log_probability([1, 1], [1.0, 0.0]) == -math.inf
    expected = scipy.stats.multinomial(4, p).logpmf([1, 1, 2])
    assert information.composition_log_probability([1, 1, 2], p) == pytest.approx(expected)
    # Away from the probabilities, ln p / N tends to minus the divergence.
    rate = information.composition_log_probability([4000, 3000, 3000], p) / 10_000
    d = float(information.kl_divergence(tensor([0.4, 0.3, 0.3]), tensor(p)))
    assert rate == pytest.approx(-d, abs=2e-3)
