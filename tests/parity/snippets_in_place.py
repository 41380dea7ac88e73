"""Small programs that change tensors in place and by subscripts.

Each takes the library and two leaf tensors ``x`` (2, 3) and ``w`` (2, 3) that require grad, and
returns the tensor whose sum is differentiated. ``test_snippets.py`` runs them on both libraries.
"""

from __future__ import annotations

from typing import Any


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
