"""Small programs run on both libraries: same gradients, or the same type of exception.

Each program takes the library and two leaf tensors ``x`` (2, 3) and ``w`` (2, 3) that require grad,
and returns the tensor whose sum is differentiated.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import chainrule

torch = pytest.importorskip("torch")


def inplace_mul_on_result(lib: Any, x: Any, w: Any) -> Any:
    y = x * 2
    y.mul_(w)
    return y


def inplace_after_use_that_saves_nothing(lib: Any, x: Any, w: Any) -> Any:
    y = x * 2
    z = y + w
    y.mul_(3)
    return z + y


def inplace_after_use_that_saves(lib: Any, x: Any, w: Any) -> Any:
    y = x * 2
    z = y * w
    y.add_(1)
    return z


def inplace_on_saved_output(lib: Any, x: Any, w: Any) -> Any:
    y = x.exp()
    y.add_(1)
    return y


def inplace_on_view_of_saved_output(lib: Any, x: Any, w: Any) -> Any:
    y = x.exp()
    y[0].add_(1)
    return y


def inplace_on_detached_alias(lib: Any, x: Any, w: Any) -> Any:
    y = x.exp()
    y.detach().mul_(2)
    return y


def inplace_on_leaf(lib: Any, x: Any, w: Any) -> Any:
    x.add_(1)
    return x


def inplace_on_view_of_leaf(lib: Any, x: Any, w: Any) -> Any:
    x[0].add_(1)
    return x


def inplace_on_expanded(lib: Any, x: Any, w: Any) -> Any:
    y = lib.ones(1, 3).expand(2, 3)
    y.add_(x)
    return y


def inplace_operator_augmented(lib: Any, x: Any, w: Any) -> Any:
    y = x + 0
    y += w
    y *= x
    y -= 1
    y /= 2
    return y


def view_then_base_changes(lib: Any, x: Any, w: Any) -> Any:
    y = x * 1
    v = y[0]
    y.mul_(w)
    return v * v


def base_then_view_changes(lib: Any, x: Any, w: Any) -> Any:
    y = x * 1
    v = y[:, 1]
    v.mul_(5)
    return y * w


def two_views_one_changes(lib: Any, x: Any, w: Any) -> Any:
    y = x * 1
    a, b = y[0], y.reshape(6)
    a.mul_(w[1])
    return b * 2


def view_of_view_changes(lib: Any, x: Any, w: Any) -> Any:
    y = x * 1
    v = y.t()[1:].reshape(2, 2)[0]
    y.t()[1:][0].mul_(w[:, 0])
    return y * y + v.sum()


def transposed_view_inplace(lib: Any, x: Any, w: Any) -> Any:
    y = x * 1
    y.t().mul_(w.t())
    return y


def setitem_row(lib: Any, x: Any, w: Any) -> Any:
    y = lib.zeros(2, 3, dtype=x.dtype)
    y[0] = x[1]
    y[1, 1:] = w[0, :2]
    return y * y


def setitem_on_history(lib: Any, x: Any, w: Any) -> Any:
    y = x * w
    y[:, 0] = w[:, 1]
    return y * 2


def setitem_number(lib: Any, x: Any, w: Any) -> Any:
    y = x * w
    y[0, 1] = 7.0
    return y


def setitem_broadcast(lib: Any, x: Any, w: Any) -> Any:
    y = x * w
    y[:] = w[0]
    return y * x


def setitem_mask(lib: Any, x: Any, w: Any) -> Any:
    y = x * w
    y[y > 0] = 0.5
    return y * y


def setitem_integer_list(lib: Any, x: Any, w: Any) -> Any:
    y = x * w
    y[:, [0, 2]] = x[:, [1, 1]]
    return y * y


def setitem_in_loop(lib: Any, x: Any, w: Any) -> Any:
    out = lib.zeros(4, 3, dtype=x.dtype)
    h = x[0]
    for t in range(4):
        h = (h * w[0]).tanh()
        out[t] = h
    return out


def setitem_saved_before(lib: Any, x: Any, w: Any) -> Any:
    y = x * 1
    z = y * w
    y[0] = 0.0
    return z


def setitem_on_leaf(lib: Any, x: Any, w: Any) -> Any:
    x[0] = 0.0
    return x


def setitem_under_no_grad(lib: Any, x: Any, w: Any) -> Any:
    with lib.no_grad():
        x[0] = 3.0
        x.mul_(2)
        x -= 1
    return x * x


def inplace_wrong_shape(lib: Any, x: Any, w: Any) -> Any:
    y = x[0] * 1
    y.add_(w)
    return y


def inplace_wrong_type(lib: Any, x: Any, w: Any) -> Any:
    y = lib.ones(2, 3, dtype=lib.int64)
    y.add_(1.5)
    return x


def copy_into(lib: Any, x: Any, w: Any) -> Any:
    y = lib.empty(2, 3, dtype=x.dtype)
    y.copy_(x)
    y[0].copy_(w[1])
    return y * y


def fill_and_zero(lib: Any, x: Any, w: Any) -> Any:
    y = x * w
    y[0].zero_()
    y[1].fill_(2.0)
    return y * x


def masked_fill_inplace(lib: Any, x: Any, w: Any) -> Any:
    y = x * w
    y.masked_fill_(x > 0, 0.0)
    return y


def unary_inplace(lib: Any, x: Any, w: Any) -> Any:
    y = x * w
    y.clamp_(-0.5, 2.0)
    y.neg_()
    y.tanh_()
    return y


def detach_shares_memory(lib: Any, x: Any, w: Any) -> Any:
    y = x * w
    d = y.detach()
    d.requires_grad_()
    return (d * d).sum() * 0 + y


def data_changes_silently(lib: Any, x: Any, w: Any) -> Any:
    y = x * w
    w.data.mul_(3)
    return y


def backward_twice(lib: Any, x: Any, w: Any) -> Any:
    y = (x * w).sum()
    y.backward()
    y.backward()
    return x


def backward_twice_retained(lib: Any, x: Any, w: Any) -> Any:
    y = (x * w).sum()
    y.backward(retain_graph=True)
    return y


def backward_twice_nothing_saved(lib: Any, x: Any, w: Any) -> Any:
    y = (x + w).sum()
    y.backward()
    return y


def backward_of_matrix(lib: Any, x: Any, w: Any) -> Any:
    (x * w).backward()
    return x


def backward_wrong_gradient_shape(lib: Any, x: Any, w: Any) -> Any:
    (x * w).backward(lib.ones(3, dtype=x.dtype))
    return x


def backward_without_history(lib: Any, x: Any, w: Any) -> Any:
    lib.ones(()).backward()
    return x


def grad_of_unused(lib: Any, x: Any, w: Any) -> Any:
    lib.autograd.grad((x * 2).sum(), w)
    return x


def grad_of_unused_allowed(lib: Any, x: Any, w: Any) -> Any:
    a, b = lib.autograd.grad((x * x).sum(), (x, w), allow_unused=True, create_graph=True)
    return a if b is None else b


def grad_of_intermediate(lib: Any, x: Any, w: Any) -> Any:
    y = x * w
    (g,) = lib.autograd.grad((y * y * y).sum(), y, create_graph=True)
    return g


def grad_twice(lib: Any, x: Any, w: Any) -> Any:
    (g,) = lib.autograd.grad((x**3 * w).sum(), x, create_graph=True)
    (h,) = lib.autograd.grad((g * g).sum(), w, create_graph=True)
    return h * x


def backward_with_inputs(lib: Any, x: Any, w: Any) -> Any:
    (x * w).sum().backward(inputs=[x])
    return x * 2


def hooks_scale(lib: Any, x: Any, w: Any) -> Any:
    y = x * w
    y.register_hook(lambda g: g * 2)
    x.register_hook(lambda g: g + 1)
    return y


def retained_gradient(lib: Any, x: Any, w: Any) -> Any:
    y = x * w
    y.retain_grad()
    (y * y).sum().backward()
    return x * y.grad


def no_grad_cuts(lib: Any, x: Any, w: Any) -> Any:
    with lib.no_grad():
        y = x * 2
        with lib.enable_grad():
            z = x * 3
    return y * w + z


def set_grad_enabled_cuts(lib: Any, x: Any, w: Any) -> Any:
    with lib.set_grad_enabled(False):
        y = x * 2
    return y * w


def requires_grad_on_integers(lib: Any, x: Any, w: Any) -> Any:
    lib.ones(2, dtype=lib.int64, requires_grad=True)
    return x


def requires_grad_off_on_result(lib: Any, x: Any, w: Any) -> Any:
    (x * 2).requires_grad_(False)
    return x


def view_made_without_grad(lib: Any, x: Any, w: Any) -> Any:
    y = x * 1
    with lib.no_grad():
        v = y[0]
    v.mul_(w[0])
    return y


def numpy_of_tensor_with_history(lib: Any, x: Any, w: Any) -> Any:
    (x * 2).numpy()
    return x


def deepcopy_of_result(lib: Any, x: Any, w: Any) -> Any:
    import copy

    return copy.deepcopy(x * 2)


def gradient_assigned_wrong_shape(lib: Any, x: Any, w: Any) -> Any:
    x.grad = lib.ones(7, dtype=x.dtype)
    return x


def no_such_device(lib: Any, x: Any, w: Any) -> Any:
    return lib.ones(2, device="nonsense")


def truth_of_many(lib: Any, x: Any, w: Any) -> Any:
    return x if x > 0 else w


def item_of_many(lib: Any, x: Any, w: Any) -> Any:
    return x * w.item()


def reshape_wrong(lib: Any, x: Any, w: Any) -> Any:
    return x.reshape(4, 2)


def view_of_noncontiguous(lib: Any, x: Any, w: Any) -> Any:
    return x.t().view(6)


def expand_wrong(lib: Any, x: Any, w: Any) -> Any:
    return x.expand(4, 3)


def broadcast_wrong(lib: Any, x: Any, w: Any) -> Any:
    return x + w[:, :2]


def dimension_out_of_range(lib: Any, x: Any, w: Any) -> Any:
    return x.sum(dim=2)


def split_and_change(lib: Any, x: Any, w: Any) -> Any:
    y = x * w
    a, b = y.chunk(2, dim=0)
    return a * b + y.unbind(1)[0].sum()


def change_of_what_saved_nothing(lib: Any, x: Any, w: Any) -> Any:
    quotient = x / w
    quotient.add_(1)
    parts = [quotient, x.sinc(), x.var(1), (x.tanh() / 2).erfinv(), 2 / w]
    for part in parts[1:]:
        part.mul_(3)
    return lib.cat([part.reshape(-1) for part in parts])


def input_of_cat_changes(lib: Any, x: Any, w: Any) -> Any:
    y = x * 2
    z = lib.cat([y, w]).roll(1)
    y.mul_(3)
    return z


def backward_through_cat_twice(lib: Any, x: Any, w: Any) -> Any:
    y = lib.cat([x, w])
    y.sum().backward()
    return y


def repeated_single_element_changes(lib: Any, x: Any, w: Any) -> Any:
    y = x[:, :1] * w[:, :1]
    a, b, c, d = y.repeat(1, 2), y.repeat_interleave(2, 1), y[:, :1].flip(1), y.tile(3)
    for part in (a, b, c, d):
        part.mul_(2)
    y.add_(1)
    return lib.cat([a, b, c, d, y], 1)


def ravelled_with_strides(lib: Any, x: Any, w: Any) -> Any:
    y = x * w
    z = y[:, 1].ravel()
    y.zero_()
    return z


def expanded_to_its_own_shape_changes(lib: Any, x: Any, w: Any) -> Any:
    y = x * w
    y.expand_as(x).mul_(2)
    y.expand(2, 2, 3).diagonal(0, 0, 1).add_(1)
    with lib.no_grad():
        x.expand_as(w).detach().mul_(2)
    return y + x


def part_of_a_view_of_a_constant_changes(lib: Any, x: Any, w: Any) -> Any:
    y = lib.ones(2, 3, dtype=x.dtype)
    v = y[None]
    v[..., 1] *= x[:, 1]
    v[0][1] += w[0]
    return y * y


def hidden_view_made_without_grad(lib: Any, x: Any, w: Any) -> Any:
    with lib.no_grad():
        y = x.kthvalue(2, 1)[0]
    y.mul_(w[:, 0])
    return y


def retained_gradient_after_change(lib: Any, x: Any, w: Any) -> Any:
    y = x * w
    y.retain_grad()
    y.mul_(3)
    (y * y).sum().backward()
    return x * y.grad


def masked_scatter_where_nothing_holds(lib: Any, x: Any, w: Any) -> Any:
    y = lib.zeros(2, 3, dtype=x.dtype)
    y.masked_scatter_(x > 100, w)
    return y * x


PROGRAMS = [
    f
    for _, f in list(globals().items())
    if inspect.isfunction(f) and list(inspect.signature(f).parameters) == ["lib", "x", "w"]
]


def run(lib: Any, program: Any) -> Any:
    rng = np.random.default_rng(0)
    x = lib.tensor(rng.normal(size=(2, 3)), requires_grad=True)
    w = lib.tensor(rng.normal(size=(2, 3)), requires_grad=True)
    try:
        out = program(lib, x, w)
        out.sum().backward()
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        return type(error), str(error)
    values = [out.detach(), x.grad, w.grad, x.detach(), w.detach()]
    return [None if v is None else v.numpy().copy() for v in values]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_program(program: Any) -> None:
    ours, theirs = run(chainrule, program), run(torch, program)
    if isinstance(theirs, tuple):
        assert isinstance(ours, tuple), f"PyTorch raises {theirs}, we return {ours}"
        assert issubclass(theirs[0], ours[0]) or issubclass(ours[0], theirs[0]), (ours, theirs)
        return
    assert not isinstance(ours, tuple), f"PyTorch computes, we raise {ours}"
    for a, b in zip(ours, theirs, strict=True):
        if b is None:
            assert a is None or not a.any()
        else:
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
