"""Small programs about the graph: detaching, backward passes, hooks, views, errors.

Each takes the library and two leaf tensors ``x`` (2, 3) and ``w`` (2, 3) that require grad, and
returns the tensor whose sum is differentiated. ``test_snippets.py`` runs them on both libraries.
"""

from __future__ import annotations

from typing import Any


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
