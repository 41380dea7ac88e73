"""Distributions made of others against PyTorch's, by the same records."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from distributions.compounds import COMPOUNDS, Compound, build, draws, leaves
from distributions.record import offers
from helpers import assert_close

import chainrule

torch = pytest.importorskip("torch")


def each(records: list[Compound]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("record", records, ids=[r.label for r in records])


def each_of(*names: str) -> pytest.MarkDecorator:
    """What PyTorch offers, and is right in."""
    cases = [
        pytest.param(r, name, id=f"{name}-{r.label}")
        for name in names
        for r in COMPOUNDS
        if name not in r.torch and ("sample" in r.torch or offers(build(r, torch), name))
    ]
    return pytest.mark.parametrize(("record", "name"), cases)


@each_of("log_prob", "cdf", "icdf", "mean", "variance", "stddev", "entropy", "mode")
def test_values(record: Compound, name: str) -> None:
    """And gradients by the parameters; what PyTorch does not offer, we may."""
    x = draws(record, 4).numpy()
    if name == "icdf":
        x = np.random.default_rng(0).uniform(0.05, 0.95, size=x.shape)
    results = []
    for library, tensor in ((chainrule, chainrule.tensor), (torch, torch.tensor)):
        own = leaves(record, library, grad=True)
        try:
            value = getattr(record.make(library.distributions, *own), name)
            if callable(value):
                value = value() if name == "entropy" else value(tensor(x))
        except NotImplementedError:
            results.append([])
            continue
        grads: list[Any] = []
        if value.requires_grad:
            # PyTorch hands some of a gradient to the upper triangle of a factor
            grads = list(library.autograd.grad(value.sum(), own, materialize_grads=True))
            grads = [g.tril() if g.ndim == 3 else g for g in grads]
        results.append([value, *grads])
    if results[1]:
        assert_close(results[0], results[1], rtol=1e-8, atol=1e-10)
    else:
        assert "sample" in record.torch


@each([r for r in COMPOUNDS if "shape" not in r.torch])
def test_shapes_and_regions(record: Compound) -> None:
    a, b = build(record), build(record, torch)
    assert tuple(a.batch_shape) == tuple(b.batch_shape)
    assert tuple(a.event_shape) == tuple(b.event_shape)
    assert a.has_rsample == b.has_rsample
    assert a.has_enumerate_support == b.has_enumerate_support
    assert (a.support.event_dim, a.support.is_discrete) == (
        b.support.event_dim,
        b.support.is_discrete,
    )


@each([r for r in COMPOUNDS if not {"expand", "log_prob"} & set(r.torch)])
def test_expand(record: Compound) -> None:
    x = draws(record, 4)
    shape = (4, *record.batch)
    a, b = (build(record, library).expand(shape) for library in (chainrule, torch))
    assert tuple(a.batch_shape) == tuple(b.batch_shape) == shape
    assert_close(a.log_prob(x), b.log_prob(torch.tensor(x.numpy())), rtol=1e-9, atol=1e-12)


@each([r for r in COMPOUNDS if r.torch])
def test_where_pytorch_fails(record: Compound) -> None:
    """If it does not one day, the record should say so."""
    d = build(record, torch)
    if "sample" in record.torch:
        with pytest.raises(RuntimeError, match="Index tensor must have the same number of dim"):
            d.sample((2,))
    if "shape" in record.torch:
        assert tuple(d.batch_shape) != record.batch
    if "log_prob" in record.torch:
        x = torch.tensor(draws(record).numpy())
        with pytest.raises(RuntimeError, match="must match the size of tensor b"):
            d.log_prob(x)


@pytest.mark.parametrize("name", ["Independent", "MixtureSameFamily", "TransformedDistribution"])
def test_signatures(name: str) -> None:
    ours, theirs = (
        inspect.signature(getattr(library.distributions, name).__init__).parameters.values()
        for library in (chainrule, torch)
    )
    assert [(p.name, p.default) for p in ours] == [(p.name, p.default) for p in theirs]


@pytest.mark.parametrize(
    "call",
    [
        lambda lib, d: d.Independent(d.Normal(0.0, 1.0), 1),
        lambda lib, d: d.Independent(d.Exponential(lib.ones(2)), 1).log_prob(-lib.ones(2)),
        lambda lib, d: d.Independent(d.Bernoulli(0.5 * lib.ones(2)), 1).enumerate_support(),
        lambda lib, d: d.Independent(d.Normal(lib.ones(2), 1.0), 1).cdf(lib.ones(2)),
        lambda lib, d: d.MixtureSameFamily(d.Normal(0.0, 1.0), d.Normal(lib.ones(2), 1.0)),
        lambda lib, d: d.MixtureSameFamily(d.Categorical(lib.ones(2)), 3),
        lambda lib, d: d.MixtureSameFamily(d.Categorical(lib.ones(3)), d.Normal(lib.ones(2), 1.0)),
        lambda lib, d: d.MixtureSameFamily(
            d.Categorical(lib.ones(4, 2)), d.Normal(lib.ones(3, 2), 1.0)
        ),
        lambda lib, d: d.MixtureSameFamily(
            d.Categorical(lib.ones(2)), d.Normal(lib.ones(2), 1.0)
        ).rsample(),
        lambda lib, d: d.TransformedDistribution(d.Normal(0.0, 1.0), 3),
        lambda lib, d: d.TransformedDistribution(d.Normal(0.0, 1.0), [3]),
        lambda lib, d: d.TransformedDistribution(d.Normal(0.0, 1.0), d.StickBreakingTransform()),
        lambda lib, d: d.TransformedDistribution(d.Normal(0.0, 1.0), d.ExpTransform()).log_prob(
            -lib.ones(2)
        ),
        lambda lib, d: d.TransformedDistribution(d.Normal(0.0, 1.0), d.AbsTransform()).cdf(
            lib.ones(2)
        ),
        lambda lib, d: d.TransformedDistribution(d.Normal(0.0, 1.0), d.ExpTransform()).mean,
        lambda lib, d: d.Distribution.set_default_validate_args(3),
    ],
)
def test_refusals(call: Any) -> None:
    """Of the same class."""
    kinds = []
    for library in (chainrule, torch):
        with pytest.raises((ValueError, NotImplementedError)) as error:
            call(library, library.distributions)
        kinds.append(error.type)
    assert kinds[0] is kinds[1]


@each([r for r in COMPOUNDS if "Categorical" not in repr(build(r))])
def test_printing(record: Compound) -> None:
    """Of a mixture PyTorch shows the logits as well, which it has computed to know their shape."""
    ours, theirs = (repr(build(record, library)) for library in (chainrule, torch))
    assert ours == theirs.replace("torch.", "chainrule.")


def test_mixtures_are_printed_on_three_lines() -> None:
    for library in (chainrule, torch):
        d = library.distributions
        mixture = d.MixtureSameFamily(
            d.Categorical(library.ones(2)), d.Normal(library.ones(2), 1.0)
        )
        first, second, third = repr(mixture).replace("torch.", "chainrule.").split("\n")
        assert first == "MixtureSameFamily("
        assert second.startswith("  Categorical(probs: chainrule.Size([2])")
        assert third == "  Normal(loc: chainrule.Size([2]), scale: chainrule.Size([2])))"
