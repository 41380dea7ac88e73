"""vmap over densities, moments and samples: of every family, and of what is made of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from distributions.compounds import COMPOUNDS, Compound, build, draws, leaves
from distributions.families import ALL
from distributions.record import Family, make, offers, tensors
from distributions.record import draws as values
from helpers import assert_close
from scipy import stats

import chainrule
from chainrule import func
from chainrule.distributions import MultivariateNormal

MAPPED = [f for f in ALL if any(isinstance(v, np.ndarray) for v in f.params.values())]

# Whose numbers are no function of the parameters and of numbers that do not depend on them.
BY_PARAMETERS = {
    "Beta", "Binomial", "Chi2", "Dirichlet", "FisherSnedecor", "Gamma", "InverseGamma",
    "LKJCholesky", "NegativeBinomial", "Poisson", "StudentT", "VonMises", "Wishart",
}  # fmt: skip


def each(records: list[Any]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("record", records, ids=[r.label for r in records])


def repeated(family: Family) -> dict[str, Any]:
    """Three times its tensors."""
    given = tensors(family.params)
    return {k: v.expand(3, *v.shape) for k, v in given.items() if isinstance(v, chainrule.Tensor)}


def assert_drawn(sample: Any, batches: list[Any], region: Any, by_parameters: bool) -> None:
    """Other numbers for every element, or the same ones."""
    x = func.vmap(sample, randomness="different")(*batches)
    assert not bool((x[0] == x[1]).all())
    assert bool(region.check(x).all())
    if by_parameters:
        with pytest.raises(RuntimeError, match="randomness='same' the parameters must not be map"):
            func.vmap(sample, randomness="same")(*batches)
    else:
        y = func.vmap(sample, randomness="same")(*batches)
        assert x.shape == y.shape
        assert bool((y[0] == y[1]).all())
    with pytest.raises(RuntimeError, match="called a random function inside the mapped function"):
        func.vmap(sample)(*batches)


@each(MAPPED)
def test_samples_of_families(record: Family) -> None:
    batches = repeated(record)

    def sample(*given: Any) -> Any:
        return make(record, **dict(zip(batches, given, strict=True))).sample((64,))

    by_parameters = record.name in BY_PARAMETERS
    assert_drawn(sample, list(batches.values()), make(record).support, by_parameters)


@each(COMPOUNDS)
def test_samples(record: Compound) -> None:
    batches = [p.expand(3, *p.shape) for p in leaves(record)]

    def sample(*params: Any) -> Any:
        return record.make(chainrule.distributions, *params).sample((64,))

    assert_drawn(sample, batches, build(record).support, record.label == "mixture of counts")


@each(MAPPED)
def test_families(record: Family) -> None:
    """Densities and moments, with all checks."""
    batches, x = repeated(record), values(record, 3)
    d = make(record)

    def mapped(name: str, *args: Any) -> Any:
        def f(given: list[Any], *args: Any) -> Any:
            own = getattr(make(record, **dict(zip(batches, given, strict=True))), name)
            return own(*args) if callable(own) else own

        return func.vmap(f)(list(batches.values()), *args)

    assert_close(mapped("log_prob", x), d.log_prob(x), rtol=1e-10, atol=1e-12)
    for name in ("mean", "variance", "entropy"):
        if offers(d, name):
            own = d.entropy() if name == "entropy" else getattr(d, name)
            assert_close(mapped(name)[1], own, rtol=1e-10)


@each([r for r in COMPOUNDS if r.label not in ("parts", "stacked to a vector")])
def test_parameters_and_values(record: Compound) -> None:
    """The same as a loop: densities, and their derivatives for each sample."""
    batches = [chainrule.stack([p, 1.2 * p]) for p in leaves(record)]
    x = draws(record, 2)

    def log_prob(value: Any, *params: Any) -> Any:
        return record.make(chainrule.distributions, *params).log_prob(value).sum()

    loop = [log_prob(*each) for each in zip(x, *batches, strict=True)]
    assert_close(func.vmap(log_prob)(x, *batches), chainrule.stack(loop), rtol=1e-12)
    slope = func.grad(log_prob, argnums=1)
    loop = [slope(*each) for each in zip(x, *batches, strict=True)]
    assert_close(func.vmap(slope)(x, *batches), chainrule.stack(loop), rtol=1e-10, atol=1e-12)


def test_matrices_are_checked_without_a_branch() -> None:
    matrices = chainrule.stack([chainrule.eye(2), 2 * chainrule.eye(2)])
    f = func.vmap(lambda c, x: MultivariateNormal(chainrule.zeros(2), c).log_prob(x))
    laws = [stats.multivariate_normal(np.zeros(2), s * np.eye(2)) for s in (1, 2)]
    expected = np.array([law.logpdf(np.ones(2)) for law in laws], np.float32)
    assert_close(f(matrices, chainrule.ones(2, 2)), expected, rtol=1e-6)
