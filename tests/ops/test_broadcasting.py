"""Broadcasting against NumPy on shapes that hypothesis makes up, forward, backward and forward
mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import chainrule
from chainrule.func import jvp, vmap

SHAPES = hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, min_side=0, max_side=3)
OPERATIONS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "maximum": np.maximum}


def arrays(shapes: Any, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=s) for s in shapes]


def summed_to(a: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The transpose of broadcasting, one dimension after the other."""
    while a.ndim > len(shape):
        a = a.sum(0)
    for i, n in enumerate(shape):
        if n == 1:
            a = a.sum(i, keepdims=True)
    return a


@settings(max_examples=150, deadline=None)
@given(shapes=SHAPES, name=st.sampled_from(sorted(OPERATIONS)), seed=st.integers(0, 99))
def test_value_and_gradient(shapes: Any, name: str, seed: int) -> None:
    x, y = arrays(shapes.input_shapes, seed)
    a, b = (chainrule.tensor(v, requires_grad=True) for v in (x, y))
    out = getattr(chainrule, name)(a, b)
    expected = OPERATIONS[name](x, y)
    assert tuple(out.shape) == shapes.result_shape
    np.testing.assert_array_equal(out.detach().numpy(), expected)

    g = np.random.default_rng(seed + 1).normal(size=expected.shape)
    out.backward(chainrule.tensor(g))
    slopes = {
        "add": (1, 1),
        "sub": (1, -1),
        "mul": (y, x),
        "maximum": (x > y, y > x),
    }[name]
    for leaf, slope in zip((a, b), slopes, strict=True):
        full = np.broadcast_to(g * slope, expected.shape)
        np.testing.assert_allclose(
            leaf.grad.numpy(), summed_to(full, tuple(leaf.shape)), atol=1e-12
        )


@settings(max_examples=75, deadline=None)
@given(shapes=SHAPES, seed=st.integers(0, 99))
def test_forward_mode(shapes: Any, seed: int) -> None:
    x, y, tx, ty = (chainrule.tensor(v) for v in arrays(shapes.input_shapes * 2, seed))
    out, tangent = jvp(lambda a, b: a * b, (x, y), (tx, ty))
    assert tangent.shape == out.shape == shapes.result_shape
    expected = tx.numpy() * y.numpy() + x.numpy() * ty.numpy()
    np.testing.assert_allclose(tangent.numpy(), expected, atol=1e-12)


@settings(max_examples=75, deadline=None)
@given(
    shapes=SHAPES, seed=st.integers(0, 99), mapped=st.sampled_from([(0, 0), (0, None), (None, 0)])
)
def test_under_vmap(shapes: Any, seed: int, mapped: tuple[Any, Any]) -> None:
    batch = 3
    rng = np.random.default_rng(seed)
    x, y = (
        rng.normal(size=s if d is None else (batch, *s))
        for s, d in zip(shapes.input_shapes, mapped, strict=True)
    )
    out = vmap(chainrule.mul, in_dims=mapped)(chainrule.tensor(x), chainrule.tensor(y))
    pick = lambda v, d, i: v if d is None else v[i]  # noqa: E731
    expected = [pick(x, mapped[0], i) * pick(y, mapped[1], i) for i in range(batch)]
    np.testing.assert_allclose(out.numpy(), np.stack(expected))


@settings(max_examples=100, deadline=None)
@given(
    shape=hnp.array_shapes(max_dims=3, max_side=4), other=hnp.array_shapes(max_dims=3, max_side=4)
)
def test_shapes_that_do_not_fit(shape: Any, other: Any) -> None:
    x, y = chainrule.zeros(shape), chainrule.zeros(other)
    try:
        expected = np.broadcast_shapes(shape, other)
    except ValueError:
        for operation in (chainrule.add, chainrule.mul, chainrule.pow, chainrule.eq):
            with pytest.raises(RuntimeError, match=r"\(.*\) and \(.*\)"):
                operation(x, y)
    else:
        assert (x + y).shape == expected
