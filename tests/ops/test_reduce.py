"""Reductions where it is hard: ties, zeros, infinities, too few elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import Tensor
from chainrule.tensor import of_array


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
    (x.cumprod(0) * of_array(weights)).sum().backward()
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
