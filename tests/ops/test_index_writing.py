"""Writing by an index, and indexing inside transformations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import assert_close, weight

import chainrule
from chainrule.autograd import gradcheck, gradgradcheck
from chainrule.func import grad, jvp, vmap
from chainrule.tensor import Tensor, of_array


def tensor(array: Any, requires_grad: bool = False) -> Tensor:
    return of_array(np.array(array)).requires_grad_(requires_grad)


def numbers(*shape: int) -> np.ndarray:
    """Different numbers in a fixed order."""
    return np.array(weight(shape) * 10)


# --- what is refused ------------------------------------------------------------------------------


def places(*values: Any) -> Tensor:
    return tensor(np.array(values, dtype=np.int64))


Y = numbers(3, 3)


# --- in place -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda y, w: y.fill_(w[0, 0]),
        lambda y, w: y.copy_(w[0]),
        lambda y, w: y.masked_fill_(w > 5, w[0, 1]),
        lambda y, w: y.masked_scatter_(w > 5, w),
        lambda y, w: y.index_fill_(1, places(0, 2), w[0, 0]),
        lambda y, w: y.index_copy_(0, places(2, 0), w[:2]),
        lambda y, w: y.index_add_(0, places(2, 2), w[:2], alpha=2),
        lambda y, w: y.index_put_((places(0, 1), places(1, 1)), w[0, :2]),
        lambda y, w: y.scatter_(0, places([1, 2, 0]), w),
        lambda y, w: y.scatter_add_(0, places([1, 2, 0], [1, 1, 1]), w),
        lambda y, w: y.scatter_reduce_(0, places([1, 2, 0]), w, "amax"),
        lambda y, w: y[1].copy_(w[0]),
        lambda y, w: y[:, 1:].fill_(w[0, 0]),
        lambda y, w: y.__setitem__((slice(None), places(0, 2)), w[:, :2]),
        lambda y, w: y[0].__setitem__(slice(1, 3), w[0, :2]),
        lambda y, w: y.__setitem__(w > 5, 0.5),
    ],
)
def test_changes_in_place_have_gradients(change: Any) -> None:
    """Differences cannot tell a change in place from a new tensor."""

    def function(x: Tensor, w: Tensor) -> Tensor:
        y = x * x
        change(y, w)
        return y * y

    variables = [tensor(Y, requires_grad=True), tensor(Y[::-1] + 0.3, requires_grad=True)]
    gradcheck(function, variables)
    gradgradcheck(function, variables)


def test_filling_keeps_the_graph() -> None:
    x = chainrule.ones(3, requires_grad=True)
    y = x * 2
    y.zero_()
    assert y.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [0, 0, 0]


def test_assigning_writes_into_the_memory_of_the_tensor() -> None:
    array = np.zeros((2, 3))
    x = chainrule.from_numpy(array)
    x[0, 1] = 5
    x[1] = chainrule.ones(3)
    x[x > 4] = 7.0
    x[places(1, 1), places(0, 2)] = places(8, 9)
    assert array.tolist() == [[0, 7, 0], [8, 1, 9]]


def test_a_value_is_converted() -> None:
    x = chainrule.zeros(3, dtype=chainrule.int64)
    x[0] = 1.7
    x[1] = chainrule.tensor(2.9)
    x[2] = np.float32(3.5)
    assert x.tolist() == [1, 2, 3]
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        chainrule.zeros(3, requires_grad=True)[0] = 1.0


def test_overlapping_parts_are_read_before_they_are_written() -> None:
    x = chainrule.arange(5.0)
    x[1:] = x[:-1]
    assert x.tolist() == [0, 0, 1, 2, 3]


def test_of_repeated_places_the_last_one_stays() -> None:
    v = chainrule.tensor([1.0, 2.0, 3.0], requires_grad=True)
    x = chainrule.zeros(2)
    x[places(0, 1, 0)] = v
    assert x.tolist() == [3, 2]
    # As in PyTorch, every value gets the gradient of its place.
    (x * chainrule.tensor([5.0, 7.0])).sum().backward()
    assert v.grad.tolist() == [5, 7, 5]


def test_adding_to_a_part_in_place() -> None:
    x = chainrule.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 1
    y[1:] += x[0]
    y[places(0)] *= 3
    assert y.tolist() == [3, 3, 4]
    y.sum().backward()
    assert x.grad.tolist() == [5, 1, 1]


def test_indices_given_as_arrays_are_copied() -> None:
    x = chainrule.tensor([1.0, 2.0, 3.0], requires_grad=True)
    index = np.array([0, 1])
    y = x[index]
    index[:] = 2
    y.sum().backward()
    assert x.grad.tolist() == [1, 1, 0]


def test_an_index_changed_before_backward_is_refused() -> None:
    x = chainrule.ones(3, requires_grad=True)
    index = places(0, 1)
    y = x[index]
    index.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_the_tensor_read_may_change_before_backward() -> None:
    x = chainrule.ones(3, requires_grad=True)
    y = x * 1
    z = y[places(0, 0)].sum() + y[1:].sum() + y.gather(0, places(2)).sum()
    y.add_(1)
    z.backward()
    assert x.grad.tolist() == [2, 1, 2]


# --- inside transformations -----------------------------------------------------------------------


def test_sizes_that_depend_on_values_cannot_be_mapped() -> None:
    x = tensor(Y)
    for function in (lambda t: t[t > 0], lambda t: t.nonzero(), lambda t: t.masked_select(t > 0)):
        with pytest.raises(RuntimeError, match=r"vmap: (nonzero|mask_select) cannot be mapped"):
            vmap(function)(x)
    with pytest.raises(RuntimeError, match="one_hot: the number of classes cannot be found"):
        vmap(chainrule.one_hot)(places(0, 1))
    with pytest.raises(RuntimeError, match="lies outside vmap"):
        vmap(lambda t: x.__setitem__(0, t))(x)


def test_a_mask_can_be_assigned_to_inside_vmap() -> None:
    def clipped(t: Tensor) -> Tensor:
        y = t * 1
        y[y > 5] = 5.0
        return y

    assert_close(vmap(clipped)(tensor(Y)), np.minimum(Y, 5), rtol=0, atol=0)
    slopes = vmap(grad(lambda t: clipped(t).sum()))(tensor(Y))
    assert_close(slopes, (Y <= 5) * 1.0)


def test_assigning_inside_vmap_and_jvp() -> None:
    def rolled(t: Tensor, i: Tensor) -> Tensor:
        y = t.clone()
        y[0] = t[-1] * t[1]
        y[i] = t[0] ** 2
        y[1:][0] += t[2]
        return y

    index = np.array([2, 1, 0])
    rows = [rolled(tensor(Y[k]), tensor(index[k])) for k in range(3)]
    expected = np.stack([r.numpy() for r in rows])
    assert_close(vmap(rolled)(tensor(Y), tensor(index)), expected)
    for k in range(3):
        slope = jvp(lambda t, k=k: rolled(t, tensor(index[k])), (tensor(Y[k]),), (tensor(Y[0]),))[1]
        step = 1e-6 * Y[0]
        after, before = (rolled(tensor(Y[k] + d), tensor(index[k])).numpy() for d in (step, -step))
        assert_close(slope, (after - before) / 2e-6, rtol=1e-6)


def test_nested_vmap_with_mapped_indices() -> None:
    x = numbers(2, 3, 5)
    index = np.arange(24).reshape(2, 3, 4) % 5
    expected = np.take_along_axis(x, index, -1)
    twice = vmap(vmap(lambda t, i: t[i]))
    assert_close(twice(tensor(x), tensor(index)), expected, rtol=0, atol=0)
    # The inner mapping over the tensor alone, the outer over both, and the other way round.
    inner = vmap(lambda t, i: vmap(lambda u: u[i])(t))
    loop = np.stack([x[k][:, index[k, 0]] for k in range(2)])
    assert_close(inner(tensor(x), tensor(index[:, 0])), loop, rtol=0, atol=0)
    outer = vmap(lambda t, i: vmap(lambda j: t[j])(i), in_dims=(None, 0))
    assert_close(outer(tensor(x[0, 0]), tensor(index)), x[0, 0][index], rtol=0, atol=0)
    g = weight(expected.shape)
    slopes = grad(lambda t: (twice(t, tensor(index)) * tensor(g)).sum())(tensor(x))
    accumulated = np.zeros(x.shape)
    for a, b in np.ndindex(2, 3):
        np.add.at(accumulated[a, b], index[a, b], g[a, b])
    assert_close(slopes, accumulated)


def test_masks_inside_jvp() -> None:
    """A dual number shows its value, so sizes may depend on it."""
    value, slope = jvp(lambda t: (t[t > 5] ** 2).sum(), (tensor(Y),), (tensor(Y),))
    assert_close(value, (Y[Y > 5] ** 2).sum())
    assert_close(slope, 2 * (Y[Y > 5] ** 2).sum())
