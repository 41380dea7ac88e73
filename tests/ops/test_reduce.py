"""Reductions, order statistics and scans: ties, zeros, infinities, empty tensors, types, errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import Tensor

INF, NAN = math.inf, math.nan


def variable(values: Any) -> Tensor:
    return chainrule.tensor(values, dtype=chainrule.float64, requires_grad=True)


def gradient(function: Callable[[Tensor], Any], values: Any) -> list[Any]:
    """The gradient of the sum of the (first) result."""
    x = variable(values)
    out = function(x)
    out = out[0] if isinstance(out, tuple) else out
    return chainrule.autograd.grad(out.sum(), x)[0].tolist()


def hessian(function: Callable[[Tensor], Any], values: Any) -> list[Any]:
    return chainrule.func.hessian(function)(variable(values).detach()).tolist()


# --- ties -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x.amax(0), [0.0, 0.5, 0.5, 0.0]),
        (lambda x: x.amax(), [0.0, 0.5, 0.5, 0.0]),
        (lambda x: x.max(), [0.0, 0.5, 0.5, 0.0]),
        (lambda x: x.max(0), [0.0, 1.0, 0.0, 0.0]),
        (lambda x: x.aminmax(dim=0)[1], [0.0, 0.5, 0.5, 0.0]),
        (lambda x: (-x).amin(0), [0.0, -0.5, -0.5, 0.0]),
        (lambda x: (-x).min(), [0.0, -0.5, -0.5, 0.0]),
        (lambda x: (-x).min(0), [0.0, -1.0, 0.0, 0.0]),
        (lambda x: x.norm(INF), [0.0, 0.5, 0.5, 0.0]),
        (lambda x: x.cummax(0), [1.0, 1.0, 2.0, 0.0]),
        (lambda x: x.cummin(0), [4.0, 0.0, 0.0, 0.0]),
    ],
)
def test_gradient_at_ties(function: Callable[[Tensor], Any], expected: list[float]) -> None:
    assert gradient(function, [1.0, 3.0, 3.0, 2.0]) == expected


def test_median_gives_ties_an_even_share_and_along_a_dim_the_first_all() -> None:
    values = [1.0, 3.0, 3.0, 2.0, 3.0]
    assert_close(gradient(lambda x: x.median(), values), [0.0, 1 / 3, 1 / 3, 0.0, 1 / 3])
    assert gradient(lambda x: x.median(0), values) == [0, 1, 0, 0, 0]


def test_indices_at_ties_are_the_first_and_of_running_extremes_the_latest() -> None:
    x = chainrule.tensor([2.0, 5.0, 5.0, 2.0])
    assert x.max(0).indices.item() == x.argmax().item() == 1
    assert x.min(0).indices.item() == x.argmin().item() == 0
    assert x.cummax(0).indices.tolist() == [0, 1, 2, 2]
    assert x.cummin(0).indices.tolist() == [0, 0, 0, 3]


def test_mode_is_the_smallest_of_the_most_frequent_and_its_index_the_last() -> None:
    values, indices = chainrule.tensor([[3, 1, 1, 3, 3, 1]]).mode(1)
    assert (values.tolist(), indices.tolist()) == ([1], [5])


# --- zeros ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([2.0, 3.0, 4.0], [12.0, 8.0, 6.0]),
        ([2.0, 0.0, 4.0], [0.0, 8.0, 0.0]),
        ([0.0, 0.0, 4.0], [0.0, 0.0, 0.0]),
    ],
)
def test_prod_is_exact_at_zeros(values: list[float], expected: list[float]) -> None:
    assert gradient(lambda x: x.prod(), values) == expected


def test_second_derivative_of_prod_at_two_zeros() -> None:
    assert hessian(chainrule.prod, [0.0, 0.0, 4.0]) == [[0, 4, 0], [4, 0, 0], [0, 0, 0]]


def test_third_derivative_of_prod_at_three_zeros() -> None:
    def mixed(x: Tensor) -> Tensor:
        return chainrule.func.hessian(chainrule.prod)(x)[0, 1]

    x = chainrule.zeros(3, dtype=chainrule.float64)
    assert chainrule.func.grad(mixed)(x).tolist() == [0, 0, 1]


def test_cumprod_is_exact_at_zeros() -> None:
    values = [2.0, 0.0, 3.0, 0.0, 5.0]
    weights = np.array([1.0, 10.0, 100.0, 1000.0, 10000.0])
    jacobian = chainrule.func.jacrev(lambda x: x.cumprod(0))(variable(values).detach()).numpy()
    expected = np.zeros((5, 5))
    for i in range(5):
        for j in range(i + 1):
            expected[i, j] = np.prod([v for k, v in enumerate(values[: i + 1]) if k != j])
    assert_close(jacobian, expected)
    x = variable(values)
    (x.cumprod(0) * Tensor(weights)).sum().backward()
    assert_close(x.grad, expected.T @ weights)


def test_long_cumprod_does_not_turn_zeros_into_nan() -> None:
    # The product of the others overflows, but a zero stands before them.
    values = [0.0, *[1e200] * 4]
    assert gradient(lambda x: x.cumprod(0)[:2], values) == [1 + 1e200, 0, 0, 0, 0]


@pytest.mark.parametrize("p", [2, 3, 1.5, 1, INF, "fro"])
def test_norm_at_zero_has_subgradient_zero(p: Any) -> None:
    assert gradient(lambda x: x.norm(p), [0.0, 0.0]) == [0.0, 0.0]


def test_second_derivative_of_norm_at_zero_is_a_number() -> None:
    assert np.isfinite(hessian(chainrule.norm, [0.0, 0.0])).all()


def test_norm_of_order_zero_counts_and_has_no_slope() -> None:
    x = variable([0.0, -1.0, 2.0])
    assert chainrule.norm(x, 0).item() == 2
    assert gradient(lambda x: x.norm(0), [0.0, -1.0, 2.0]) == [0, 0, 0]


def test_dist_of_a_point_to_itself() -> None:
    assert gradient(lambda x: chainrule.dist(x, x.detach()), [1.0, 2.0]) == [0, 0]


def test_std_at_zero_has_subgradient_zero() -> None:
    assert gradient(lambda x: x.std(), [1.0, 1.0]) == [0, 0]
    assert gradient(lambda x: x.std(correction=0), [1.0]) == [0]


# --- infinities and NaN ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([-INF, -INF], -INF),
        ([-INF, 1.0], 1.0),
        ([INF, 1.0], INF),
        ([INF, -INF], INF),
        ([INF, INF], INF),
        ([NAN, 1.0], NAN),
        ([1e4, 1e4], 1e4 + math.log(2)),
        ([], -INF),
    ],
)
def test_logsumexp_of_extreme_values(values: list[float], expected: float) -> None:
    assert_close(variable(values).logsumexp(0), np.float64(expected))
    if values:
        assert_close(variable(values).logcumsumexp(0)[-1], np.float64(expected))


def test_gradients_of_logsumexp_beside_infinities() -> None:
    assert gradient(lambda x: x.logsumexp(0), [-INF, 1.0]) == [0, 1]
    assert_close(gradient(lambda x: x.logcumsumexp(0), [1.0, -INF, 1.0]), [2.5, 0.0, 0.5])
    assert_close(gradient(lambda x: x.logcumsumexp(0), [1.0, INF, 1.0]), [1.0, NAN, 0.0])


def test_logcumsumexp_of_a_wide_range_has_a_stable_gradient() -> None:
    assert_close(gradient(lambda x: x.logcumsumexp(0), [-800.0, 0.0, 800.0]), [1.0, 1.0, 1.0])


def test_nan_is_the_largest_the_smallest_and_the_median() -> None:
    x = chainrule.tensor([1.0, NAN, 3.0, NAN])
    for value in (x.max(), x.min(), x.amax(), x.median(), x.max(0)[0], x.median(0)[0]):
        assert math.isnan(value.item())
    assert x.argmax().item() == x.min(0).indices.item() == x.median(0).indices.item() == 1
    assert x.cummax(0).indices.tolist() == [0, 1, 1, 3]
    assert gradient(lambda x: x.max(), [1.0, NAN, 3.0, NAN]) == [0, 0.5, 0, 0.5]


def test_nan_is_skipped_if_asked() -> None:
    x = chainrule.tensor([1.0, NAN, 3.0, 2.0])
    assert x.nansum().item() == 6
    assert x.nanmean().item() == 2
    assert x.nanmedian().item() == 2
    assert x.nanmedian(0).indices.item() == 3
    assert x.nanquantile(0.5).item() == 2
    assert math.isnan(x.quantile(0.5).item())
    none = chainrule.tensor([NAN, NAN])
    assert none.nansum().item() == 0
    assert all(
        math.isnan(v.item()) for v in (none.nanmean(), none.nanmedian(), none.nanquantile(0.5))
    )
    assert gradient(lambda x: x.nanmean(), [1.0, NAN, 2.0]) == [0.5, 0, 0.5]


def test_quantile_of_infinite_values() -> None:
    x = chainrule.tensor([1.0, INF])
    assert [x.quantile(q).item() for q in (0.0, 0.5, 1.0)] == [1, INF, INF]


# --- too few elements -----------------------------------------------------------------------------


@np.errstate(invalid="ignore")
def test_variance_of_one_element() -> None:
    with pytest.warns(UserWarning, match="degrees of freedom is <= 0: 1 elements and correction 1"):
        assert math.isnan(chainrule.tensor([1.0]).var().item())
    with pytest.warns(UserWarning, match="std"):
        assert all(math.isnan(v) for v in gradient(lambda x: x.std(), [1.0]))
    assert chainrule.tensor([1.0]).var(correction=0).item() == 0


def test_reductions_of_nothing() -> None:
    empty = chainrule.zeros(0, 3)
    assert empty.sum().item() == 0
    assert empty.prod().item() == 1
    assert empty.sum(0).tolist() == [0, 0, 0]
    assert empty.prod(0).tolist() == [1, 1, 1]
    assert math.isnan(empty.mean().item())
    assert empty.all().item() is True
    assert empty.any().item() is False
    assert empty.norm().item() == 0
    assert empty.logsumexp(0).tolist() == [-INF] * 3
    assert empty.amax(1).shape == empty.max(1).values.shape == empty.mode(1).values.shape == (0,)
    assert math.isnan(empty.median().item())


@pytest.mark.parametrize("name", ["max", "min", "amax", "amin", "aminmax"])
def test_extreme_of_nothing(name: str) -> None:
    with pytest.raises(RuntimeError, match=rf"{name}: expected reduction dim to be specified"):
        getattr(chainrule.zeros(0, 3), name)()


@pytest.mark.parametrize("name", ["max", "min", "amax", "argmax", "argmin", "median", "mode"])
def test_choice_along_an_empty_dim(name: str) -> None:
    with pytest.raises(
        IndexError, match=rf"{name}: expected reduction dim 1 to have non-zero size"
    ):
        getattr(chainrule.zeros(3, 0), name)(1)


def test_argmax_of_nothing() -> None:
    with pytest.raises(IndexError, match="argmax: expected reduction dim to be specified"):
        chainrule.zeros(0).argmax()


@pytest.mark.parametrize("p", [INF, -INF, -1])
def test_norm_without_identity_of_nothing(p: float) -> None:
    with pytest.raises(RuntimeError, match=r"norm: cannot compute the .* norm .* \(0, 3\)"):
        chainrule.norm(chainrule.zeros(0, 3), p, dim=0)
    assert chainrule.norm(chainrule.zeros(0, 3), p, dim=1).shape == (0,)


# --- tensors without dimensions -------------------------------------------------------------------

REDUCING = [
    "sum",
    "mean",
    "prod",
    "logsumexp",
    "amax",
    "amin",
    "max",
    "min",
    "median",
    "mode",
    "cumsum",
    "cumprod",
    "cummax",
    "cummin",
    "logcumsumexp",
    "nansum",
]


@pytest.mark.parametrize("dim", [0, -1])
@pytest.mark.parametrize("name", REDUCING)
def test_a_number_is_its_own_reduction(name: str, dim: int) -> None:
    out = getattr(chainrule.tensor(3.0), name)(dim)
    value = out[0] if isinstance(out, tuple) else out
    assert (value.shape, value.item()) == ((), 3.0)
    if isinstance(out, tuple):
        assert (out.indices.shape, out.indices.item()) == ((), 0)


@pytest.mark.parametrize("name", [*REDUCING, "argmax", "all", "any", "quantile"])
def test_dim_out_of_range(name: str) -> None:
    arguments = (0.5, 2) if name == "quantile" else (2,)
    for x in (chainrule.tensor(3.0), chainrule.ones(2, 3)):
        with pytest.raises(IndexError, match=rf"{name}: dimension out of range"):
            getattr(x, name)(*arguments)


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
