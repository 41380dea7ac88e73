"""Every operation against PyTorch, by its records: value, shape, dtype and derivatives."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from helpers import assert_close, call, case, is_variable, map_arrays, torch_call, weight
from samples import ALL, BY_FAMILY
from samples.record import Sample

import chainrule

torch = pytest.importorskip("torch")

IN_TORCH = [s for s in ALL if s.torch != ""]
DIFFERENTIABLE = [s for s in IN_TORCH if s.differentiable]


def each(samples: list[Sample]) -> pytest.MarkDecorator:
    """Runs a test for each of these samples."""
    return pytest.mark.parametrize("sample", samples, ids=[s.label for s in samples])


class Side:
    """A sample in one of the two libraries."""

    def __init__(self, sample: Sample, dtype: str, ours: bool, requires_grad: bool):
        self.sample, self.dtype, self.ours = sample, dtype, ours
        self.variables: list[Any] = []
        self.args = map_arrays(lambda a: self._tensor(a, requires_grad), case(sample).args)

    def _tensor(self, a: np.ndarray, requires_grad: bool) -> Any:
        make = chainrule.as_tensor if self.ours else torch.from_numpy
        if not is_variable(a):
            return make(np.array(a))
        x = make(np.array(a, dtype=self.dtype)).requires_grad_(requires_grad)
        self.variables.append(x)
        return x

    def __call__(self) -> list[Any]:
        """The results, in a list even if there is one."""
        out = (
            call(self.sample, self.args) if self.ours else torch_call(torch, self.sample, self.args)
        )
        return flat(out)

    def gradients(self, results: Sequence[Any], create_graph: bool = False) -> list[Any]:
        """The gradients of a sum of the results weighted irregularly; zeros where there is none."""
        results = [y for y in results if y.requires_grad]
        make = chainrule.as_tensor if self.ours else torch.from_numpy
        weights = [make(weight(tuple(y.shape), dtype_name(y))) for y in results]
        autograd = chainrule.autograd if self.ours else torch.autograd
        return list(
            autograd.grad(
                results, self.variables, weights, create_graph=create_graph, materialize_grads=True
            )
        )


def flat(out: Any) -> list[Any]:
    """The tensors of a result that may be a tuple or a list of them."""
    return [y for part in out for y in flat(part)] if isinstance(out, (list, tuple)) else [out]


def dtype_name(x: Any) -> str:
    return str(x.dtype).rpartition(".")[2]


def both(sample: Sample, dtype: str, requires_grad: bool = False) -> tuple[Side, Side]:
    sides = [Side(sample, dtype, ours, requires_grad) for ours in (True, False)]
    return sides[0], sides[1]


def assert_same(ours: Sequence[Any], theirs: Sequence[Any], tolerance: float) -> None:
    """Shape, dtype and value; what a value may deviate by is relative to the largest."""
    __tracebackhide__ = True
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        if not isinstance(b, torch.Tensor):
            assert type(a) is type(b)
            assert a == b
            continue
        assert tuple(a.shape) == tuple(b.shape)
        assert dtype_name(a) == dtype_name(b)
        values = b.numpy(force=True)
        sizes = np.abs(values[np.isfinite(values)]) if values.dtype.kind in "fc" else np.zeros(0)
        scale = float(sizes.max()) if sizes.size else 1.0
        narrow = values.dtype in (np.float32, np.complex64)
        limit = max(tolerance, 1e-5) if narrow else tolerance
        assert_close(a, values, rtol=limit, atol=limit * max(scale, 1e-3))


def differentiable_in_both(a: list[Any], b: list[Any]) -> tuple[list[Any], list[Any]]:
    """The results that PyTorch differentiates; ours must be differentiable there too."""
    pairs = [(x, y) for x, y in zip(a, b, strict=True) if y.requires_grad]
    assert all(x.requires_grad for x, _ in pairs)
    return [x for x, _ in pairs], [y for _, y in pairs]


TOLERANCES = {"float64": 1e-9, "float32": 1e-5}
each_type = pytest.mark.parametrize("dtype", TOLERANCES)


@each_type
@each(IN_TORCH)
def test_value(sample: Sample, dtype: str) -> None:
    if dtype == "float32" and not sample.float32:
        dtype = "float64"
    ours, theirs = both(sample, dtype)
    assert_same(ours(), theirs(), TOLERANCES[dtype])


@each_type
@each(DIFFERENTIABLE)
def test_gradient(sample: Sample, dtype: str) -> None:
    if dtype == "float32" and not sample.float32:
        dtype = "float64"
    ours, theirs = both(sample, dtype, requires_grad=True)
    a, b = differentiable_in_both(ours(), theirs())
    # Through a derivative the errors of both libraries add up.
    assert_same(ours.gradients(a), theirs.gradients(b), 4 * TOLERANCES[dtype])


# Where PyTorch's own second derivative is NaN or not written, although the function has one.
NAN_IN_TORCH = ("softplus[far out]", "sinc[near zero]", "nn.functional.pdist")

WITHOUT_SECOND_IN_TORCH = ("cdist", "pdist")


@each(
    [
        s
        for s in DIFFERENTIABLE
        if s.second_order and s.label not in NAN_IN_TORCH and s.name not in WITHOUT_SECOND_IN_TORCH
    ]
)
def test_second_derivative(sample: Sample) -> None:
    ours, theirs = both(sample, "float64", requires_grad=True)
    second = []
    results = differentiable_in_both(ours(), theirs())
    for side, out in zip((ours, theirs), results, strict=True):
        first = [g for g in side.gradients(out, create_graph=True) if g.requires_grad]
        # A first derivative that is constant says so in one library and is zero in the other.
        second.append(side.gradients(first) if first else [0 * x.detach() for x in side.variables])
    assert_same(second[0], second[1], 1e-8)


# --- where differences say nothing: borders, poles, infinities ------------------------------------

EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 1e-30, 1e30, -1e30, np.inf, -np.inf, np.nan]


def plain(count: int) -> list[Sample]:
    """The elementwise functions of so many tensors and nothing else, each once."""
    found = {}
    for s in BY_FAMILY["elementwise"]:
        args = case(s).args
        if len(args) == count == len(case(s).values) and not s.kwargs and s.torch_call is None:
            found.setdefault(s.name, s)
    return list(found.values())


# Where we differ on purpose or where no value is right: per function, the inputs left out.
LEFT_OUT: dict[str, Callable[..., Any]] = {
    "sign": np.isnan,  # NaN stays NaN; PyTorch makes it 0
    "sgn": np.isnan,
    "abs": np.isnan,  # the same in its gradient
    "heaviside": lambda x, y: np.isnan(x),
    "logit": lambda x: (x <= 0) | (x >= 1),  # outside the domain, the value is NaN
    "lgamma": lambda x: x == -np.inf,
    "digamma": lambda x: x <= -1,  # poles
    "remainder": lambda x, y: np.abs(x) >= 1e15 * np.abs(y),  # the value is rounding, or NaN
}


@each(plain(1) + plain(2))
def test_edges(sample: Sample) -> None:
    """Values and gradients at zeros, infinities and NaN, in all combinations."""
    count = len(case(sample).values)
    grids = [g.reshape(-1) for g in np.meshgrid(*[np.array(EDGES)] * count)]
    keep = ~LEFT_OUT.get(sample.name, lambda *xs: np.zeros(xs[0].shape, bool))(*grids)
    points = tuple(g[keep] for g in grids)
    edge = dataclasses.replace(sample, args=lambda r: points)
    ours, theirs = both(edge, "float64", requires_grad=sample.differentiable)
    a, b = ours(), theirs()
    assert_close(a, b, rtol=1e-9, atol=1e-15)
    if sample.differentiable:
        assert_close(ours.gradients(a), theirs.gradients(b), rtol=1e-9, atol=1e-15)
