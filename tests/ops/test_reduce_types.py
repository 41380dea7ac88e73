"""Results, types and errors of reductions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule
from chainrule import Tensor


def variable(values: Any) -> Tensor:
    return chainrule.tensor(values, dtype=chainrule.float64, requires_grad=True)


# --- results --------------------------------------------------------------------------------------


def test_results_with_names() -> None:
    x = chainrule.tensor([[1.0, 5.0], [7.0, 3.0]])
    for name in ("max", "min", "median", "nanmedian", "mode", "cummax", "cummin"):
        out = getattr(x, name)(dim=1)
        assert out._fields == ("values", "indices")
        assert out.indices.dtype is chainrule.int64
    assert x.aminmax()._fields == ("min", "max")
    assert [v.item() for v in x.aminmax()] == [1, 7]


def test_max_has_three_forms() -> None:
    x, y = chainrule.tensor([1.0, 4.0]), chainrule.tensor([3, 2])
    assert x.max().item() == 4
    assert x.max(dim=0, keepdim=True).values.tolist() == [4]
    assert x.max(y).tolist() == x.max(other=y).tolist() == [3, 4]
    assert chainrule.min(x, y).tolist() == [1, 2]
    assert x.max(y).dtype is chainrule.float32


def test_reductions_do_not_hold_on_to_what_they_do_not_need() -> None:
    # As in PyTorch, the input may be changed in place before the backward pass.
    x = variable([1.0, 2.0])
    y = x * 1
    total = y.sum() + y.mean() + y.max(0)[0] + y.cumsum(0)[1]
    y.zero_()
    total.backward()
    assert x.grad.tolist() == [2.5, 3.5]


def test_results_have_memory_of_their_own() -> None:
    x = chainrule.tensor(3.0)
    for out in (x.sum(), x.prod(0), x.amax(), x.max(0)[0], x.cumsum(0), x.reshape(1).diff(n=0)):
        out.zero_()
    assert x.item() == 3


def test_in_place_scans() -> None:
    x = chainrule.tensor([1.0, 2.0, 3.0])
    assert x.cumsum_(0) is x
    assert x.tolist() == [1, 3, 6]
    assert x.cumprod_(0).tolist() == [1, 3, 18]


def test_bare_arrays_give_bare_arrays() -> None:
    a = np.array([[1.0, 2.0], [3.0, 4.0]], dtype=np.float32)
    for function in (
        chainrule.sum,
        chainrule.mean,
        chainrule.prod,
        chainrule.amax,
        chainrule.max,
        chainrule.norm,
        chainrule.var,
        chainrule.median,
        chainrule.nansum,
    ):
        out = function(a)
        assert not isinstance(out, Tensor)
        assert out.dtype == np.float32
    for name in ("max", "cumsum", "logsumexp", "argmax", "all", "cummax"):
        out = getattr(chainrule, name)(a, 1)
        assert isinstance(out[0] if isinstance(out, tuple) else out, np.ndarray)


# --- types ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sum", "prod", "cumsum", "cumprod", "nansum"])
def test_integers_are_accumulated_as_int64(name: str) -> None:
    function = getattr(chainrule, name)
    arguments = (0,) if name.startswith("cum") else ()
    for d in (chainrule.bool, chainrule.uint8, chainrule.int8, chainrule.int32, chainrule.int64):
        assert function(chainrule.ones(3, dtype=d), *arguments).dtype is chainrule.int64
    x = chainrule.ones(3, dtype=chainrule.int8)
    for d in (chainrule.int32, chainrule.float16, chainrule.float64):
        assert function(x, *arguments, dtype=d).dtype is d


def test_half_precision_is_accumulated_in_single() -> None:
    x = chainrule.full((4096, 2), 1.0, dtype=chainrule.float16)
    assert x.sum(0).tolist() == [4096, 4096]
    assert x.mean().item() == 1
    assert x.sum(0).dtype is x.norm().dtype is x.var().dtype is x.logsumexp(0).dtype is x.dtype


def test_truth_of_bytes_is_a_byte() -> None:
    x = chainrule.tensor([1, 2], dtype=chainrule.uint8)
    assert x.all().dtype is x.any(0).dtype is chainrule.uint8
    assert chainrule.tensor([1, 2]).all().dtype is chainrule.bool


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: x.mean(), RuntimeError, r"mean: could not infer output dtype.*int64.*float\(\)"),
        (lambda x: x.float().mean(dtype=chainrule.int32), RuntimeError, "mean: .*Optional dtype"),
        (lambda x: x.var(), RuntimeError, "var: expected a tensor of floating point"),
        (lambda x: x.std(), RuntimeError, "std: expected a tensor of floating point"),
        (lambda x: x.norm(), RuntimeError, "norm: expected a tensor of floating point"),
        (lambda x: x.nanmean(), RuntimeError, "nanmean: expected a tensor of floating point"),
        (lambda x: x.dist(x), RuntimeError, "dist: expected a tensor of floating point"),
        (lambda x: x.quantile(0.5), RuntimeError, "quantile: input must be either float or double"),
        (lambda x: x.logcumsumexp(0), NotImplementedError, "logcumsumexp: not implemented.*int64"),
        (lambda x: x.bool().argmax(), RuntimeError, "argmax: does not support bool"),
        (lambda x: x.bool().median(), NotImplementedError, "median: not implemented for .*bool"),
        (lambda x: x.allclose(x.float()), RuntimeError, "did not match"),
        (lambda x: chainrule.trapezoid(x.bool()), RuntimeError, "trapezoid: received a bool input"),
        (lambda x: x.float().norm(dtype=chainrule.int64), RuntimeError, "norm: dtype should be fl"),
        (lambda x: x.double().norm(dtype=chainrule.float32), RuntimeError, "norm: .*without narr"),
    ],
)
def test_types_that_do_not_fit(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(chainrule.tensor([1, 2]))


# --- wrong calls ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: x.sum((0, 0)), RuntimeError, "sum: dim.* appears multiple times"),
        (lambda x: x.sum("a"), TypeError, "sum"),
        (lambda x: x.prod((0, 1)), TypeError, "prod"),
        (lambda x: x.cumsum((0, 1)), TypeError, "cumsum"),
        (lambda x: x.max((0, 1)), TypeError, "max"),
        (lambda x: x.max(keepdim=True), TypeError, r"max\(\): keepdim=True is given without dim"),
        (lambda x: x.median(keepdim=True), TypeError, r"median\(\): keepdim=True is given without"),
        (lambda x: x.var(0, unbiased=True, correction=1), TypeError, "either 'unbiased' or 'corr"),
        (lambda x: x.logsumexp(None), TypeError, "logsumexp.*'dim' must be int or tuple"),
        (lambda x: x.norm("abc"), RuntimeError, "norm: order 'abc' is not supported"),
        (lambda x: x.quantile(1.5), RuntimeError, r"q must be in the range \[0, 1\] but got 1.5"),
        (lambda x: x.quantile(chainrule.tensor([0.5, -1.0])), RuntimeError, "q values must be in"),
        (lambda x: x.quantile(chainrule.ones(1, 1)), RuntimeError, "q must be a scalar or 1D"),
        (lambda x: x.quantile(chainrule.ones(1).double()), RuntimeError, "q tensor must be same"),
        (lambda x: x.quantile("a"), TypeError, "'q' must be a float or a Tensor, not str"),
        (lambda x: x.quantile(0.5, interpolation="cubic"), RuntimeError, "but got cubic"),
        (lambda x: x[:0].quantile(0.5), RuntimeError, "quantile: input tensor must be non-empty"),
        (lambda x: x.diff(n=-1), RuntimeError, "diff: order must be non-negative but got -1"),
        (lambda x: x[0, 0].diff(), RuntimeError, "diff: expects input to be at least one-dim"),
        (lambda x: x.diff(prepend=x[0]), RuntimeError, r"diff: .*same dimension.*\(3,\).*\(2, 3\)"),
        (lambda x: x.diff(prepend=x[:1]), RuntimeError, "diff: .*except along the differencing"),
        (lambda x: chainrule.trapezoid(x, x[0], dx=1.0), TypeError, "either 'x' or 'dx', got both"),
        (lambda x: chainrule.trapezoid(x, x[:, 0]), RuntimeError, "one `x` value for each sample"),
        (lambda x: chainrule.trapezoid(x[0, 0]), IndexError, "trapezoid: .*has no dimensions"),
        (lambda x: chainrule.equal(x, 1.0), TypeError, r"equal\(\): argument 'other'"),
        (lambda x: x.allclose(chainrule.ones(2)), RuntimeError, "must match"),
    ],
)
def test_wrong_calls(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(chainrule.ones(2, 3))


@pytest.mark.parametrize("name", ["sum", "mean", "max", "amax", "prod", "var", "norm", "median"])
def test_a_list_is_not_a_tensor(name: str) -> None:
    with pytest.raises(
        TypeError, match=rf"{name}\(\): argument 'input' .* must be Tensor, not list"
    ):
        getattr(chainrule, name)([1.0, 2.0])
