"""float16 and bfloat16: computed in float32, rounded once, in all modes of differentiation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule
from chainrule import Tensor, nn
from chainrule.func import grad, hessian, jvp, vmap
from chainrule.nn import functional as F
from chainrule.ops.core.rounding import rounds_once

ml_dtypes = pytest.importorskip("ml_dtypes")
TYPES = [chainrule.float16, chainrule.bfloat16]
each_type = pytest.mark.parametrize("dtype", TYPES, ids=[d.name for d in TYPES])


def rounded(x: Any, dtype: chainrule.dtype) -> np.ndarray:
    """Numbers as they are after one rounding, in float64."""
    return np.asarray(x, np.float32).astype(dtype.array_dtype).astype(np.float64)


def numbers(x: Tensor) -> np.ndarray:
    return x.detach().double().numpy()


@each_type
@pytest.mark.parametrize(
    ("function", "exact"),
    [
        (lambda x: x.sum(), lambda a: a.sum()),
        (lambda x: x.mean(), lambda a: a.mean()),
        (lambda x: x @ x, lambda a: (a * a).sum()),
        (lambda x: x.cumsum(0)[-1], lambda a: a.sum()),
        (lambda x: x.norm(), lambda a: np.sqrt((a * a).sum())),
        (lambda x: x.var(), lambda a: a.var(ddof=1)),
        (lambda x: F.mse_loss(x, 0 * x), lambda a: (a * a).mean()),
        (lambda x: F.mse_loss(x, 0 * x, reduction="sum"), lambda a: (a * a).sum()),
        (lambda x: chainrule.logsumexp(x, 0), lambda a: np.log(np.exp(a).sum())),
        (lambda x: F.linear(x[None], x[None], x[:1])[0, 0], lambda a: (a * a).sum() + a[0]),
    ],
)
def test_many_small_numbers_add_up(
    function: Callable[[Tensor], Tensor], exact: Callable[[Any], Any], dtype: chainrule.dtype
) -> None:
    """A sum that is rounded after each step stands still long before the end."""
    x = 0.1 + chainrule.arange(20000, dtype=chainrule.float64) / 1e6
    x = x.to(dtype)
    out = function(x)
    assert out.dtype is dtype
    np.testing.assert_array_equal(numbers(out), rounded(exact(numbers(x)), dtype))


@each_type
def test_gradients_are_rounded_once_and_have_the_type_of_their_tensor(
    dtype: chainrule.dtype,
) -> None:
    chainrule.manual_seed(0)
    x = chainrule.randn(5, 4000).to(dtype).requires_grad_()
    b = chainrule.randn(4000).to(dtype).requires_grad_()
    g = chainrule.rand(5, 4000).to(dtype)
    (chainrule.tanh(x) * 1.0 + b).backward(g)
    assert x.grad.dtype is b.grad.dtype is dtype
    np.testing.assert_array_equal(numbers(b.grad), rounded(numbers(g).sum(0), dtype))
    t = rounded(np.tanh(numbers(x)), dtype)
    close = np.isclose(
        numbers(x.grad), numbers(g) * (1 - t * t), rtol=2 * chainrule.finfo(dtype).eps
    )
    assert close.mean() > 0.99  # where 1 - t t does not cancel


@each_type
def test_gradients_that_meet_are_added_in_their_type(dtype: chainrule.dtype) -> None:
    x = chainrule.ones(3).to(dtype).requires_grad_()
    (x * 2 + x * 3).sum().backward()
    (x * x).sum().backward()
    assert x.grad.dtype is dtype
    assert x.grad.tolist() == [7.0] * 3


@each_type
def test_other_modes(dtype: chainrule.dtype) -> None:
    def f(x: Tensor) -> Tensor:
        return (x**3).sum()

    x = chainrule.tensor([1.0, 2.0, -0.5]).to(dtype)
    assert grad(f)(x).dtype is dtype
    assert grad(f)(x).tolist() == [3.0, 12.0, 0.75]
    value, tangent = jvp(f, (x,), (chainrule.ones(3).to(dtype),))
    assert value.dtype is tangent.dtype is dtype
    assert tangent.item() == 15.75
    assert hessian(f)(x).dtype is dtype
    assert hessian(f)(x).diagonal().tolist() == [6.0, 12.0, -3.0]
    batch = vmap(grad(lambda v: chainrule.softmax(v, 0)[0]))(chainrule.stack([x, x]))
    assert batch.dtype is dtype
    np.testing.assert_allclose(
        numbers(batch[0]), numbers(grad(lambda v: chainrule.softmax(v, 0)[0])(x)), rtol=1e-2
    )


@each_type
def test_gradients_of_gradients(dtype: chainrule.dtype) -> None:
    x = chainrule.tensor([0.5, 1.0]).to(dtype).requires_grad_()
    (first,) = chainrule.autograd.grad(chainrule.sigmoid(x).sum(), x, create_graph=True)
    (second,) = chainrule.autograd.grad(first.sum(), x)
    s = 1 / (1 + np.exp(-numbers(x)))
    np.testing.assert_allclose(numbers(first), s * (1 - s), rtol=2.0**-7)
    np.testing.assert_allclose(numbers(second), s * (1 - s) * (1 - 2 * s), rtol=2.0**-6)
    assert second.dtype is dtype


@each_type
def test_views_share_memory_and_changes_in_place_are_rounded(dtype: chainrule.dtype) -> None:
    x = chainrule.zeros(2, 3, dtype=dtype)
    x.t()[1] = 1.1
    x[0].add_(0.3)
    x.view(-1)[-1:] *= 3
    assert x.dtype is dtype
    kept = np.zeros((2, 3))
    kept[:, 1] = rounded(1.1, dtype)
    kept[0] = rounded(kept[0] + np.float32(0.3), dtype)
    np.testing.assert_array_equal(numbers(x), kept)


@each_type
def test_a_view_that_is_changed_in_place_keeps_its_history(dtype: chainrule.dtype) -> None:
    a = chainrule.ones(3).to(dtype).requires_grad_()
    x = a * 1
    x[1:].mul_(a[:2] * 4)
    x.sum().backward()
    assert a.grad.tolist() == [5.0, 8.0, 4.0]


@each_type
def test_user_operations_get_their_type(dtype: chainrule.dtype) -> None:
    seen = []

    class Double(chainrule.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            seen.append(x.dtype)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            seen.append(g.dtype)
            return g * 2

    x = chainrule.ones(2).to(dtype).requires_grad_()
    Double.apply(x).sum().backward()
    assert seen == [dtype, dtype]
    assert x.grad.dtype is dtype


@each_type
def test_statistics_of_normalization(dtype: chainrule.dtype) -> None:
    layer = nn.BatchNorm1d(2, momentum=1.0).to(dtype)
    x = chainrule.stack([chainrule.arange(3000) / 100, chainrule.ones(3000)], 1).to(dtype)
    assert layer(x).dtype is dtype
    assert layer.running_mean.dtype is dtype
    np.testing.assert_array_equal(numbers(layer.running_mean), rounded(numbers(x).mean(0), dtype))


def test_too_large_for_float16() -> None:
    big = chainrule.tensor([60000.0], dtype=chainrule.float16)
    assert (big * 2).tolist() == [float("inf")]
    assert (big.float() * 2).half().tolist() == [float("inf")]
    assert (big * 2 / 4).isinf().all()  # each operation is rounded
    assert chainrule.nan_to_num(big * 2).tolist() == [65504.0]
    assert chainrule.nan_to_num((big * -2).bfloat16()).tolist() == [
        float(chainrule.finfo("bfloat16").min)
    ]


@each_type
def test_the_next_number(dtype: chainrule.dtype) -> None:
    one = chainrule.ones(1, dtype=dtype)
    assert (chainrule.nextafter(one, one * 2) - one).item() == chainrule.finfo(dtype).eps


def test_functions_of_several_operations_round_once() -> None:
    calls = []

    @rounds_once
    def f(x: Tensor, y: Tensor | None = None, *, scale: float = 1.0) -> Any:
        calls.append(x.dtype)
        return (x + 2048.0) - 2048.0, (scale * x).argmax()

    half = chainrule.full((2,), 0.5, dtype=chainrule.float16)
    out, place = f(half, scale=3.0)
    assert out.dtype is chainrule.float16
    assert out.tolist() == [0.5, 0.5]
    assert place.dtype is chainrule.int64
    assert f(x=half, y=half)[0].tolist() == [0.5, 0.5]
    assert f(half, half.float())[0].tolist() == [0.0, 0.0]  # of two types: as it is written
    f(half.float())
    f(chainrule.ones(2, dtype=chainrule.int16))
    names = ["float32", "float32", "float16", "float32", "int16"]
    assert [d.name for d in calls] == names


def test_numbers_beside_a_tensor_are_not_rounded() -> None:
    x = chainrule.full((1,), 3.0, dtype=chainrule.bfloat16)
    np.testing.assert_array_equal(numbers(x * 1.001), rounded(np.float32(3) * 1.001, x.dtype))
    assert (chainrule.full((1,), 256.0, dtype=chainrule.bfloat16) * 1.005).tolist() == [258.0]
