"""One record per distribution that is made of others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import chainrule

__all__ = ["COMPOUNDS", "Compound", "build", "draws", "leaves"]


@dataclass(frozen=True, eq=False)
class Compound:
    """``make(distributions, *parameters)`` in either library.

    ``torch`` names what PyTorch refuses or computes wrongly.
    """

    label: str
    make: Callable[..., Any]
    params: Sequence[Any]
    batch: tuple[int, ...]
    event: tuple[int, ...] = ()
    torch: tuple[str, ...] = ()


def leaves(record: Compound, library: Any = chainrule, grad: bool = False) -> list[Any]:
    """The parameters as tensors of a library."""
    made = [library.tensor(p, dtype=library.float64) for p in record.params]
    return [p.requires_grad_() for p in made] if grad else made


def build(record: Compound, library: Any = chainrule) -> Any:
    """The distribution of a record."""
    return record.make(library.distributions, *leaves(record, library))


def draws(record: Compound, *shape: int) -> Any:
    """Samples, the same in every test."""
    chainrule.manual_seed(0)
    return build(record).sample(shape)


LOC = [[0.0, 1.0, -1.0], [0.5, -0.5, 2.0]]
SCALE = [[1.0, 0.5, 2.0], [0.3, 1.5, 1.0]]
WEIGHTS = [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]
FACTORS = [[[1.0, 0.0], [0.5, 2.0]], [[0.5, 0.0], [-0.3, 1.0]]]

INDEPENDENT = [
    Compound("numbers", lambda d, m, s: d.Independent(d.Normal(m, s), 0), [LOC, SCALE], (2, 3)),
    Compound("vectors", lambda d, m, s: d.Independent(d.Normal(m, s), 1), [LOC, SCALE], (2,), (3,)),
    Compound(
        "matrices", lambda d, m, s: d.Independent(d.Normal(m, s), 2), [LOC, SCALE], (), (2, 3)
    ),
    Compound(
        "of vectors",
        lambda d, m, f: d.Independent(d.MultivariateNormal(m, scale_tril=f), 1),
        [[[0.0, 1.0], [1.0, 2.0]], FACTORS],
        (),
        (2, 2),
    ),
    Compound("counts", lambda d, p: d.Independent(d.Bernoulli(p), 1), [WEIGHTS], (2,), (3,)),
]

MIXTURES = [
    Compound(
        "mixture",
        lambda d, w, m, s: d.MixtureSameFamily(d.Categorical(w), d.Normal(m, s)),
        [WEIGHTS[0], LOC[0], SCALE[0]],
        (),
    ),
    Compound(
        "mixtures",
        lambda d, w, m, s: d.MixtureSameFamily(d.Categorical(w), d.Normal(m, s)),
        [WEIGHTS, LOC, SCALE],
        (2,),
    ),
    Compound(
        "mixtures by logits",
        lambda d, w, r: d.MixtureSameFamily(d.Categorical(logits=w), d.Exponential(r)),
        [LOC, SCALE],
        (2,),
    ),
    Compound(
        "mixtures of the same weights",
        lambda d, w, m, s: d.MixtureSameFamily(d.Categorical(w), d.Normal(m, s)),
        [WEIGHTS[0], LOC, SCALE],
        (2,),
        torch=("sample",),
    ),
    Compound(
        "mixtures of the same components",
        lambda d, w, m, s: d.MixtureSameFamily(d.Categorical(w), d.Normal(m, s)),
        [WEIGHTS, LOC[0], SCALE[0]],
        (2,),
        torch=("sample", "shape", "expand"),
    ),
    Compound(
        "mixture of vectors",
        lambda d, w, m, s: d.MixtureSameFamily(d.Categorical(w), d.Independent(d.Normal(m, s), 1)),
        [WEIGHTS[0][:2], LOC, SCALE],
        (),
        (3,),
    ),
    Compound(
        "mixture of normal vectors",
        lambda d, w, m, f: d.MixtureSameFamily(
            d.Categorical(w), d.MultivariateNormal(m, scale_tril=f)
        ),
        [WEIGHTS[0][:2], [[0.0, 1.0], [1.0, 2.0]], FACTORS],
        (),
        (2,),
    ),
    Compound(
        "mixture of counts",
        lambda d, w, r: d.MixtureSameFamily(d.Categorical(w), d.Poisson(r)),
        [WEIGHTS, SCALE],
        (2,),
    ),
]

TRANSFORMED = [
    Compound(
        "no function",
        lambda d, m, s: d.TransformedDistribution(d.Normal(m, s), []),
        [LOC, SCALE],
        (2, 3),
    ),
    Compound(
        "exp",
        lambda d, m, s: d.TransformedDistribution(d.Normal(m, s), d.ExpTransform()),
        [LOC, SCALE],
        (2, 3),
    ),
    Compound(
        "logistic",
        lambda d, m, s: d.TransformedDistribution(
            d.Uniform(0 * m, 1 + 0 * m), [d.SigmoidTransform().inv, d.AffineTransform(m, s)]
        ),
        [LOC, SCALE],
        (2, 3),
    ),
    Compound(
        "falling",
        lambda d, m, s: d.TransformedDistribution(
            d.Gumbel(m, s), [d.SoftplusTransform(), d.PowerTransform(2.0), d.AffineTransform(1, -2)]
        ),
        [LOC[0], SCALE[0]],
        (3,),
    ),
    Compound(
        "rising and falling",
        lambda d, m, s, k: d.TransformedDistribution(
            d.Normal(m, s), [d.TanhTransform(), d.AffineTransform(0.5, k)]
        ),
        [LOC[0], SCALE[0], [1.0, -2.0, 0.5]],
        (3,),
    ),
    Compound(
        "remembered",
        lambda d, m, s: d.TransformedDistribution(
            d.Normal(m, s), [d.TanhTransform(cache_size=1), d.ExpTransform(cache_size=1)]
        ),
        [LOC[0], SCALE[0]],
        (3,),
    ),
    Compound(
        "grown by the function",
        lambda d, m, s, k: d.TransformedDistribution(d.Normal(m, s), d.AffineTransform(k, 2.0)),
        [0.5, 2.0, [1.0, -2.0, 0.5]],
        (3,),
    ),
    Compound(
        "sticks",
        lambda d, m, s: d.TransformedDistribution(
            d.Normal(m, s), [d.AffineTransform(0.5, 0.5), d.StickBreakingTransform()]
        ),
        [LOC, SCALE],
        (2,),
        (4,),
    ),
    Compound(
        "correlations",
        lambda d, m, s: d.TransformedDistribution(
            d.Independent(d.Normal(m, s), 1), d.CorrCholeskyTransform()
        ),
        [LOC, SCALE],
        (2,),
        (3, 3),
    ),
    Compound(
        "vectors by numbers",
        lambda d, m, f: d.TransformedDistribution(
            d.MultivariateNormal(m, scale_tril=f),
            [d.ExpTransform(), d.ReshapeTransform((2,), (1, 2))],
        ),
        [[[0.0, 1.0], [1.0, 2.0]], FACTORS],
        (2,),
        (1, 2),
    ),
    Compound(
        "parts",
        lambda d, m, s: d.TransformedDistribution(
            d.Normal(m, s),
            d.CatTransform([d.ExpTransform(), d.AffineTransform(1.0, -2.0)], -1, [1, 2]),
        ),
        [LOC, SCALE],
        (2, 3),
    ),
    Compound(
        "stacked to a vector",
        lambda d, m, s: d.TransformedDistribution(
            d.Normal(m, s),
            d.StackTransform(
                [d.ExpTransform(), d.TanhTransform(), d.AffineTransform(1.0, 2.0)], -1
            ),
        ),
        [LOC, SCALE],
        (2,),
        (3,),
        torch=("log_prob",),
    ),
]

COMPOUNDS = INDEPENDENT + MIXTURES + TRANSFORMED
