"""Entropies, maximum entropy, estimation and limits, against SciPy, sums and simulations."""

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
from chainrule import information, nn, problems, regularize
from chainrule.func import grad, hessian, jacfwd, jacrev, vmap

F64 = chainrule.float64


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


# --- maximum entropy ------------------------------------------------------------------------------


def test_maximum_entropy_meets_its_moments() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=(30, 3))
    mu = law(30, seed=2) @ y
    found = information.maximum_entropy(tensor(y), tensor(mu))
    p = found.probabilities.numpy()
    np.testing.assert_allclose(p @ y, mu, atol=1e-9)
    np.testing.assert_allclose(np.log(p), -y @ found.theta.numpy() - float(found.log_partition))
    h = float(found.entropy())
    assert h == pytest.approx(scipy.stats.entropy(p))
    # Any other distribution with these moments has less entropy.
    null = scipy.linalg.null_space(np.vstack([y.T, np.ones(30)]))
    for k in range(5):
        q = p + 0.3 * p.min() * null[:, k]
        np.testing.assert_allclose(q @ y, mu, atol=1e-9)
        assert scipy.stats.entropy(q) < h


def test_maximum_entropy_of_mean_and_variance_is_normal() -> None:
    x, w = tensor(np.linspace(-10, 10, 4001)), tensor(np.full(4001, 20 / 4000))
    found = information.maximum_entropy(chainrule.stack([x, x * x], 1), [0.0, 1.0], measure=w)
    np.testing.assert_allclose(found.theta.numpy(), [0, 0.5], atol=1e-8)
    assert float(found.log_partition) == pytest.approx(0.5 * math.log(2 * math.pi))
    assert float(found.entropy()) == pytest.approx(1.418938533204673, abs=1e-8)


def test_maximum_entropy_without_moments_that_bind_is_uniform() -> None:
    found = information.maximum_entropy(chainrule.arange(6.0), [2.5])
    np.testing.assert_allclose(found.probabilities.numpy(), 1 / 6, rtol=1e-6)
    assert found.iterations == 0
    die = information.maximum_entropy(tensor([1.0, 2, 3, 4, 5, 6]), [4.5])
    assert float(die.entropy()) == pytest.approx(1.61358, abs=1e-5)


def exponential_family() -> tuple[Any, Any]:
    y = tensor(np.random.default_rng(1).normal(size=(8, 2)))
    theta = tensor([0.7, -0.4])
    return y, information.MaximumEntropy(theta, y, chainrule.zeros(8, dtype=F64))


def test_score_hessian_and_fisher_information_of_the_exponential_family() -> None:
    """score = mu - y, Hessian = -Cov(y), Fisher information = Cov(y) = E[s s^T]."""
    y, family = exponential_family()

    def log_prob(theta: Any, features: Any) -> Any:
        return information.MaximumEntropy(theta, y, family.log_measure).log_prob(features)

    theta, p = family.theta, family.probabilities.numpy()
    scores = np.stack([grad(log_prob)(theta, y[i]).numpy() for i in range(8)])
    np.testing.assert_allclose(family.score(y).numpy(), scores, atol=1e-12)
    np.testing.assert_allclose(p @ scores, 0, atol=1e-15)  # the mean of grad ln p is zero
    np.testing.assert_allclose(
        family.hessian.numpy(), hessian(log_prob)(theta, y[3]).numpy(), atol=1e-12
    )
    cov = np.cov(y.numpy().T, aweights=p, bias=True)
    np.testing.assert_allclose(family.covariance.numpy(), cov, atol=1e-12)
    np.testing.assert_allclose(family.fisher.numpy(), scores.T @ (scores * p[:, None]), atol=1e-12)
    whole = information.fisher_information(log_prob, theta, y)
    np.testing.assert_allclose(whole.numpy(), cov, atol=1e-12)


def test_maximum_entropy_can_be_differentiated() -> None:
    """d theta / d mu = -Cov^-1."""
    y, family = exponential_family()
    mu = family.mean.detach()

    def theta(mu: Any) -> Any:
        return information.maximum_entropy(y, mu).theta

    h, expected = 1e-5, np.zeros((2, 2))
    for k in range(2):
        step = tensor(h * np.eye(2)[k])
        expected[:, k] = (theta(mu + step) - theta(mu - step)).numpy() / (2 * h)
    for transform in (jacrev, jacfwd):
        got = transform(theta)(mu).numpy()
        np.testing.assert_allclose(got, expected, rtol=1e-6)
        np.testing.assert_allclose(got, -np.linalg.inv(family.covariance.numpy()), rtol=1e-8)
    step = tensor([h, 0.0])
    change = (jacrev(theta)(mu + step) - jacrev(theta)(mu - step)).numpy() / (2 * h)
    second = jacfwd(jacrev(theta))(mu).numpy()[..., 0]
    np.testing.assert_allclose(second, change, rtol=1e-6, atol=1e-7)


def test_dependent_features_and_impossible_moments() -> None:
    x = tensor([0.0, 1.0, 2.0, 3.0])
    twice = chainrule.stack([x, 2 * x, 0 * x + 1], 1)
    found = information.maximum_entropy(twice, [1.0, 2.0, 1.0])
    np.testing.assert_allclose(found.mean.numpy(), [1, 2, 1], atol=1e-9)
    single = information.maximum_entropy(x, [1.0])
    np.testing.assert_allclose(found.probabilities.numpy(), single.probabilities.numpy(), rtol=1e-7)
    assert information.unidentifiable(found.fisher).shape == (3, 2)
    for moments in ([1.0, 3.0, 1.0], [1.0, 2.0, 2.0], [4.0, 8.0, 1.0]):
        with pytest.raises(
            ValueError, match="found no distribution over these states with the mom"
        ):
            information.maximum_entropy(twice, moments)


def test_identifiability_means_that_equal_laws_have_equal_parameters() -> None:
    """p1 = p2 implies theta1 = theta2: not so for softmax, whose logits may all be shifted."""
    z = tensor([0.3, -1.0, 2.0])
    shifted = (z + 5).softmax(0)
    np.testing.assert_allclose(z.softmax(0).numpy(), shifted.numpy())  # theta differs, p does not
    i = information.fisher_information(
        lambda z, e: (z.log_softmax(0) * e).sum(), z, chainrule.eye(3, dtype=F64)
    )
    direction = information.unidentifiable(i)
    assert direction.shape == (3, 1)
    np.testing.assert_allclose(np.abs(direction.numpy()), 3**-0.5, rtol=1e-6)
    two = lambda z, e: (chainrule.cat([z, 0 * z[:1]]).log_softmax(0) * e).sum()  # noqa: E731
    fixed = information.fisher_information(two, z[:2], chainrule.eye(3, dtype=F64))
    assert information.unidentifiable(fixed).shape == (2, 0)


# --- estimation -----------------------------------------------------------------------------------


def bernoulli(p: float, seed: int = 0) -> Callable[..., Any]:
    g = chainrule.Generator().manual_seed(seed)
    return lambda *shape: (chainrule.rand(*shape, generator=g) < p).double()


def test_fisher_information_by_quadrature() -> None:
    """Of a normal law about its mean and deviation: diag(1 / s^2, 2 / s^2)."""
    x, w = tensor(np.linspace(-30, 30, 6001)), tensor(np.full(6001, 0.01))
    log_prob = lambda p, x: -(((x - p[0]) / p[1]) ** 2) / 2 - (p[1] * math.sqrt(2 * math.pi)).log()  # noqa: E731
    got = information.fisher_information(log_prob, tensor([0.5, 2.0]), x, w)
    np.testing.assert_allclose(got.numpy(), np.diag([0.25, 0.5]), atol=1e-9)


def test_cramer_rao_bound() -> None:
    i = np.array([[2.0, 0.5], [0.5, 1.0]])
    bound = information.cramer_rao_bound(tensor(i), n=10)
    np.testing.assert_allclose(bound.numpy(), np.linalg.inv(i) / 10)
    j = np.array([[1.0, 3.0]])
    moved = information.cramer_rao_bound(tensor(i), n=10, slope=tensor(j))
    np.testing.assert_allclose(moved.numpy(), j @ np.linalg.inv(i) @ j.T / 10)
    assert float(information.cramer_rao_bound(tensor(4.0), 5, slope=3.0)) == pytest.approx(9 / 20)


def test_no_estimator_is_better_than_the_bound() -> None:
    """The mean of normal samples reaches it, the median does not, a biased one has its own."""
    g = chainrule.Generator().manual_seed(0)
    draw = lambda *s: 1.0 + chainrule.randn(*s, generator=g, dtype=F64)  # noqa: E731
    settings: dict[str, Any] = {"truth": 1.0, "n": 25, "trials": 20_000, "information": 1.0}
    mean = information.simulate_estimator(draw, lambda x: x.mean(1), **settings)
    median = information.simulate_estimator(draw, lambda x: x.median(1)[0], **settings)
    half = information.simulate_estimator(draw, lambda x: 0.5 * x.mean(1), **settings)
    assert mean.bound == pytest.approx(1 / 25)
    assert mean.efficiency == pytest.approx(1.0, abs=0.03)
    assert abs(mean.bias) < 4 * math.sqrt(1 / 25 / 20_000)
    assert median.efficiency is not None
    assert median.efficiency == pytest.approx(2 / math.pi, abs=0.05)
    assert half.variance == pytest.approx(
        float(information.cramer_rao_bound(1.0, 25, slope=0.5)), rel=0.05
    )
    for study in (mean, median, half):  # E[(A - theta*)^2] = bias^2 + variance
        assert study.error == pytest.approx(study.bias**2 + study.variance, rel=1e-3)


def test_the_estimate_of_largest_likelihood_is_asymptotically_normal() -> None:
    """Its variance is that of one sample's information: 0.21 for Bernoulli 0.3, not 0.21 / N."""
    log_prob = lambda p, x: x * p.log() + (1 - x) * (1 - p).log()  # noqa: E731
    i = information.fisher_information(log_prob, tensor(0.3), tensor([0.0, 1.0]))
    assert float(i) == pytest.approx(1 / 0.21)
    found = information.asymptotic_normality(
        bernoulli(0.3), lambda x: x.mean(1), 0.3, float(i), n=400, trials=20_000
    )
    assert found.expected == pytest.approx(0.21)
    assert found.variance == pytest.approx(0.21, abs=0.005)
    assert found.distance < 0.03
    printed = float(information.cramer_rao_bound(float(i), 400))
    assert printed == pytest.approx(0.000525)  # what the information of the whole sample would give


def test_the_likelihood_is_a_product() -> None:
    """argmax of prod p(x_i), not of sum p(x_i), which one far sample does not trouble."""
    x = np.array([-1.0, 0.0, 1.0, 12.0])
    means = np.linspace(-5, 15, 2001)
    density = scipy.stats.norm.pdf(x[:, None], means)
    assert means[np.argmax(np.log(density).sum(0))] == pytest.approx(x.mean())
    assert abs(means[np.argmax(density.sum(0))]) < 0.1


def test_gaussian_likelihood_is_the_squared_error_of_the_targets() -> None:
    """With the model h as the mean: -ln p = mean (y - h)^2 / 2 and a constant; y stays in it."""
    y, h = tensor([1.0, 2.0, 4.0]), tensor([0.5, 2.5, 3.0])
    nll = nn.functional.gaussian_nll_loss(h, y, chainrule.ones(3, dtype=F64))
    assert float(nll) == pytest.approx(float(((y - h) ** 2).mean()) / 2)


def test_the_score_is_the_gradient_of_the_logarithm() -> None:
    """s = grad ln p has mean zero under p; grad p has not."""
    p, theta = np.array([0.7, 0.3]), tensor(0.3)
    law_of = lambda t, x: x * t + (1 - x) * (1 - t)  # noqa: E731
    scores = [float(grad(lambda t, x=x: law_of(t, x).log())(theta)) for x in (0.0, 1.0)]
    slopes = [float(grad(lambda t, x=x: law_of(t, x))(theta)) for x in (0.0, 1.0)]
    assert p @ scores == pytest.approx(0)
    assert abs(p @ slopes) > 0.1


# --- limits ---------------------------------------------------------------------------------------


def test_laws_of_large_numbers() -> None:
    """Weak and strong: P(lim (mean_n - mu) = 0) = 1."""
    found = information.law_of_large_numbers(
        bernoulli(0.3), 0.3, (10, 100, 1000, 5000), trials=300, tolerance=0.05, variance=0.21
    )
    assert found.means.shape == (300, 4)
    outside, later = found.outside.numpy(), found.ever_outside.numpy()
    assert (np.diff(outside) <= 0).all()
    assert (np.diff(later) <= 0).all()
    assert (later >= outside).all()
    assert outside[-1] == later[-1] == 0
    assert found.chebyshev is not None
    assert (outside <= found.chebyshev.numpy()).all()


def test_the_mean_of_cauchy_samples_does_not_settle() -> None:
    g = chainrule.Generator().manual_seed(0)
    cauchy = lambda *s: (math.pi * (chainrule.rand(*s, generator=g, dtype=F64) - 0.5)).tan()  # noqa: E731
    found = information.law_of_large_numbers(cauchy, 0.0, (10, 1000), trials=400, tolerance=1.0)
    assert float(found.outside[1]) == pytest.approx(0.5, abs=0.1)


def test_central_limit() -> None:
    g = chainrule.Generator().manual_seed(0)
    draw = lambda *s: -chainrule.rand(*s, generator=g, dtype=F64).log()  # noqa: E731
    third = 12 / math.e - 2  # E|x - 1|^3
    found = information.central_limit(draw, 1.0, 1.0, (1, 4, 64), 20_000, third_moment=third)
    distance = found.distance.numpy()
    assert found.scaled.shape == (20_000, 3)
    assert distance[0] == pytest.approx(scipy.stats.norm.cdf(-1), abs=0.01)
    assert distance[0] / distance[1] == pytest.approx(2, rel=0.25)
    assert distance[2] < 0.03
    assert found.bound is not None
    assert (distance <= found.bound.numpy()).all()
    sample = found.scaled[:, 1].numpy()
    expected = scipy.stats.kstest(sample, "norm").statistic
    assert information.kolmogorov_distance(found.scaled[:, 1]) == pytest.approx(expected)


def test_berry_esseen_rate_of_preactivations() -> None:
    """Inputs of random signs: the exact distance falls as J^(-1/2), below the bound."""
    exact, bounds = [], []
    for j in (16, 64, 256):
        k = np.arange(j + 1)
        s, cdf = (2 * k - j) / math.sqrt(j), scipy.stats.binom(j, 0.5).cdf(k)
        phi = scipy.stats.norm.cdf(s)
        exact.append(max(np.abs(cdf - phi).max(), np.abs(phi[1:] - cdf[:-1]).max(), phi[0]))
        weights = chainrule.full((j,), 1 / math.sqrt(j), dtype=F64)
        bounds.append(float(information.berry_esseen_bound(weights, 1.0)))
    assert exact[0] / exact[1] == pytest.approx(2, rel=0.02)
    assert exact[1] / exact[2] == pytest.approx(2, rel=0.02)
    np.testing.assert_allclose(bounds, [0.56 / 4, 0.56 / 8, 0.56 / 16])
    assert all(e <= b for e, b in zip(exact, bounds, strict=True))
    # One weight that dominates keeps the pre-activation from becoming normal.
    uneven = tensor([10.0, *[0.1] * 255])
    assert float(information.berry_esseen_bound(uneven, 1.0)) > 0.5


# --- risk and description -------------------------------------------------------------------------


def test_noise_adds_its_variance_to_every_risk() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=200_000)
    f, g = np.sin(3 * x), 0.8 * x
    y = f + 0.5 * rng.normal(size=x.size)
    parts = information.noisy_target_risk(tensor(g), tensor(f), 0.25)
    assert float(parts.total) == pytest.approx(((y - g) ** 2).mean(), rel=0.01)
    assert float(parts.variance) == 0
    assert float(parts.bias) == pytest.approx(((f - g) ** 2).mean())
    perfect = information.noisy_target_risk(tensor(f), tensor(f), 0.25)
    assert float(perfect.total) == pytest.approx(0.25)


def test_bias_and_variance_of_polynomials() -> None:
    """Fits to 40 noisy samples: degree 1 is biased, degree 9 varies; the parts make the risk."""
    rng = np.random.default_rng(0)
    x = np.linspace(-1, 1, 12)
    f, found = np.sin(4 * x), []
    for degree in (1, 3, 9):
        fits = [
            np.polyval(np.polyfit(x, f + 0.3 * rng.normal(size=12), degree), x) for _ in range(40)
        ]
        found.append(information.bias_variance(tensor(fits), tensor(f), 0.09))
    bias, variance = ([float(getattr(p, k)) for p in found] for k in ("bias", "variance"))
    assert bias[0] > 10 * bias[2]
    assert variance[2] > 3 * variance[0]
    for parts in found:
        assert float(parts.total) == pytest.approx(float(parts.bias + parts.variance) + 0.09)
    with pytest.raises(RuntimeError, match=r"got \(2, 3\) and \(2,\)"):
        information.bias_variance(chainrule.zeros(2, 3), chainrule.zeros(2))


def test_description_length_of_weights() -> None:
    w, step = tensor([0.3, -1.0, 2.0]), 0.01
    density = scipy.stats.norm(scale=2.0).pdf(w.numpy())
    got = information.description_length(w, step, prior=2.0)
    assert float(got) == pytest.approx(-np.log2(density * step).sum())
    nats = information.description_length(w, step, prior=2.0, base=math.e)
    assert float(nats) == pytest.approx(float(got) * math.log(2))
    assert float(information.description_length(w, 1e6)) == 0  # no digit matters
    slope = grad(lambda w: information.description_length(w, step, 2.0, math.e))(w)
    np.testing.assert_allclose(slope.numpy(), w.numpy() / 4)  # of weight decay


def test_bits_of_a_flat_minimum() -> None:
    """With a uniform prior on [-1, 1], the bits are B / ln 2 of flat minimum search, plus W."""
    j = tensor(np.random.default_rng(0).normal(size=(2, 5)))
    box = regularize.flat_box(j, 0.01)
    uniform = lambda w: 0 * w - math.log(2)  # noqa: E731
    bits = float(information.description_length(tensor(np.zeros(5)), box, prior=uniform))
    assert bits == pytest.approx(-np.log2(box.numpy()).sum() + 5)
