"""Infinities and NaN through every operation, forward and back: both kernels agree on where."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from helpers import call, case, is_variable, map_arrays, outputs
from samples import ALL
from samples.record import Sample

import chainrule
from chainrule import backend, nn

pytestmark = pytest.mark.skipif(bool(backend.why_not_native), reason="the kernels are not compiled")
SAMPLES = [s for s in ALL if s.differentiable]
VALUES = [np.inf, -np.inf, np.nan]


@pytest.fixture(autouse=True)
def kernels() -> Iterator[None]:
    before = backend.current()
    yield
    backend.use(before)


def pattern(x: np.ndarray) -> np.ndarray:
    """0 where a number is finite, 1 where it is NaN, 2 where it is infinite."""
    return np.isnan(x) + 2 * np.isinf(x)


def is_norm(args: tuple[object, ...]) -> bool:
    """Whether a sample normalizes: its gradient sums terms of which one is inf and another -inf, so
    that the order of the sum decides between inf and NaN."""
    return isinstance(args[0], Sample) and "norm" in args[0].name


def is_causal(args: tuple[object, ...]) -> bool:
    """Whether a sample is attention that does not see the future: the compiled kernel leaves out
    the keys that no query of a block reads, which the NumPy kernel multiplies by 0."""
    return isinstance(args[0], Sample) and "causal" in args[0].note


def of_sample(sample: Sample, value: float, dtype: str) -> list[np.ndarray]:
    """Where the results and gradients of a sample are not finite, if a number in each input is."""
    r = np.random.default_rng(3)
    variables: list[chainrule.Tensor] = []

    def spoiled(a: np.ndarray) -> chainrule.Tensor:
        if not is_variable(a):
            return chainrule.from_numpy(np.array(a))
        a = np.array(a, dtype=dtype)
        if a.size:
            a.reshape(-1)[r.integers(a.size)] = value
        variables.append(chainrule.from_numpy(a).requires_grad_())
        return variables[-1]

    found = outputs(call(sample, map_arrays(spoiled, case(sample).args)))
    found = [y for y in found if y.requires_grad]
    if not found:
        return []
    grads = chainrule.autograd.grad(
        sum((y.sum() for y in found[1:]), found[0].sum()), variables, materialize_grads=True
    )
    return [pattern(t.detach().numpy()) for t in (*found, *grads)]


def of_layer(kind: str, place: str, value: float, dtype: str) -> list[np.ndarray]:
    """The same for a recurrent layer whose input, weight or bias is not finite."""
    chainrule.manual_seed(0)
    layer = getattr(nn, kind)(3, 17).to(getattr(chainrule, dtype))
    x = chainrule.randn(4, 3, 3, dtype=dtype)
    with chainrule.no_grad():
        spoil = x[1, 0] if place == "x" else getattr(layer, place)[1:2].reshape(-1)
        spoil[1 if place == "x" else 0] = value
    x.requires_grad_()
    out, _ = layer(x)
    grads = chainrule.autograd.grad(out.sum(), [x, *layer.parameters()])
    return [pattern(t.detach().numpy()) for t in (out, *grads)]


def assert_same(compute: Callable[..., list[np.ndarray]], *args: object) -> None:
    results = []
    for name in ("native", "numpy"):
        backend.use(name)
        with np.errstate(all="ignore"):
            try:
                results.append(compute(*args))
            except Exception as error:  # noqa: BLE001 - what one refuses, the other does
                results.append(type(error))
    ours, theirs = results
    assert type(ours) is type(theirs)
    if not isinstance(ours, list):
        assert ours is theirs
        return
    for a, b in zip(ours, theirs, strict=True):
        if is_causal(args):
            assert not ((a > 0) & (b == 0)).any()
            continue
        np.testing.assert_array_equal(*((a > 0, b > 0) if is_norm(args) else (a, b)))


@pytest.mark.parametrize("sample", SAMPLES, ids=[s.label for s in SAMPLES])
def test_operations(sample: Sample) -> None:
    for value, dtype in itertools.product(VALUES, ("float32", "float64")):
        assert_same(of_sample, sample, value, dtype)


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("place", ["x", "weight_ih_l0", "weight_hh_l0", "bias_ih_l0"])
@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_recurrent_layers(kind: str, place: str, value: float) -> None:
    for dtype in ("float32", "float64"):
        assert_same(of_layer, kind, place, value, dtype)
