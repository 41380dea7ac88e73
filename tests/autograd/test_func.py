"""Function transformations: values against closed forms, and every nesting of the modes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule
from chainrule import Tensor, autograd
from chainrule.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    hvp,
    jacfwd,
    jacrev,
    jvp,
    value_and_grad,
    vjp,
    vmap,
)

RNG = np.random.default_rng(0)


def random(*shape: int) -> Tensor:
    return chainrule.tensor(RNG.normal(size=shape))


def close(a: Tensor, b: Any) -> None:
    expected = b.numpy() if isinstance(b, Tensor) else np.asarray(b)
    assert tuple(a.shape) == expected.shape
    np.testing.assert_allclose(a.detach().numpy(), expected, rtol=1e-10, atol=1e-12)


def cube(x: Tensor) -> Tensor:
    return (x * x * x).sum()


def mixed(x: Tensor) -> Tensor:
    """A function with a full Hessian."""
    return (x.sin() * x.sum() + x.exp() * (x * x).sum()).tanh().sum()


def test_grad_value_and_argnums() -> None:
    x, y = random(3), random(3)
    f = lambda a, b: (a * a * b).sum()  # noqa: E731
    close(grad(f)(x, y), 2 * x * y)
    close(grad(f, 1)(x, y), x * x)
    gx, gy = grad(f, (0, 1))(x, y)
    close(gx, 2 * x * y)
    close(gy, x * x)
    g, value = grad_and_value(f)(x, y)
    close(value, (x * x * y).sum())
    value, g = value_and_grad(f)(x, y)
    close(g, 2 * x * y)


def test_grad_of_nested_arguments_and_aux() -> None:
    params = {"w": random(3), "b": [random(3)]}
    f = lambda p, x: ((p["w"] * x + p["b"][0]).sum(), {"seen": x})  # noqa: E731
    x = random(3)
    g, aux = grad(f, has_aux=True)(params, x)
    close(g["w"], x)
    close(g["b"][0], np.ones(3))
    close(aux["seen"], x)


def test_grad_leaves_no_history_unless_something_outside_needs_it() -> None:
    x = random(3)
    assert not grad(cube)(x).requires_grad
    w = random(3).requires_grad_()
    g = grad(lambda a: (w * a * a).sum())(x)
    g.sum().backward()
    close(w.grad, 2 * x)
    x.requires_grad_()
    grad(cube)(x).sum().backward()
    close(x.grad, 6 * x.detach())


def test_history_that_does_not_reach_the_derivative_is_dropped() -> None:
    x, w = random(3), random(3).requires_grad_()
    assert not grad(lambda a: (a * a + w).sum())(x).requires_grad
    assert not jacrev(lambda a: a * a + w)(x).requires_grad
    first, second = grad(lambda a, b: (a * b).sum(), argnums=(0, 1))(w, x)
    assert not first.requires_grad
    assert second.requires_grad
    inner = grad(lambda a: (a * grad(cube)(x * 1) * grad(lambda b: (a * b * b).sum())(x)).sum())
    assert not inner(x).requires_grad
    close(inner(x), 12 * x**4)


def test_grad_refuses_what_is_not_a_number() -> None:
    with pytest.raises(RuntimeError, match=r"0 dimensions.*\(3,\)"):
        grad(lambda x: x * 2)(random(3))
    with pytest.raises(RuntimeError, match="argnums"):
        grad(cube, 3)(random(3))
    with pytest.raises(TypeError, match="Tensors, got float"):
        grad(cube)(1.0)
    with pytest.raises(RuntimeError, match="int64"):
        grad(lambda x: x.sum())(chainrule.tensor([1, 2]))


def test_vjp_and_jvp_are_adjoint() -> None:
    x, t, g = random(4), random(4), random(4)
    f = lambda a: a.sin() * a.sum()  # noqa: E731
    out, pull = vjp(f, x)
    _, push = jvp(f, (x,), (t,))
    close((push * g).sum(), (pull(g)[0] * t).sum())
    close(out, f(x))


def test_jvp_of_several_arguments_and_outputs() -> None:
    x, y = random(3), random(3)
    (a, b), (ta, tb) = jvp(lambda p, q: (p * q, p.sum()), (x, y), (y, x))
    close(a, x * y)
    close(ta, y * y + x * x)
    close(tb, y.sum())
    close(b, x.sum())


def test_jvp_of_a_constant_is_zero() -> None:
    x = random(3)
    _, tangent = jvp(lambda a: chainrule.ones(2), (x,), (x,))
    close(tangent, np.zeros(2))


def test_jvp_refuses_tangents_that_do_not_fit() -> None:
    with pytest.raises(RuntimeError, match=r"\(3,\).*\(2,\)"):
        jvp(cube, (random(3),), (random(2),))
    with pytest.raises(RuntimeError, match="tuples"):
        jvp(cube, random(3), random(3))


def test_control_flow_on_values_works_in_forward_mode() -> None:
    f = lambda x: x * 2 if x.sum() > 0 else x * 3  # noqa: E731
    _, t = jvp(f, (chainrule.ones(2),), (chainrule.ones(2),))
    assert t.tolist() == [2, 2]


def test_no_perturbation_confusion() -> None:
    one = chainrule.tensor(1.0)
    inner = lambda x: jvp(lambda y: x + y, (one,), (one,))[1]  # noqa: E731
    assert jvp(lambda x: x * inner(x), (one,), (one,))[1].item() == 1
    reverse = lambda x: grad(lambda y: x + y)(one)  # noqa: E731
    assert grad(lambda x: x * reverse(x))(one).item() == 1
    assert grad(lambda x: x * inner(x))(one).item() == 1
    assert jvp(lambda x: x * reverse(x), (one,), (one,))[1].item() == 1


@pytest.mark.parametrize("outer", [jacfwd, jacrev])
@pytest.mark.parametrize("inner", [jacfwd, jacrev, grad])
def test_hessian_by_every_pair_of_modes(outer: Any, inner: Any) -> None:
    x = random(3)
    xr = x.clone().requires_grad_()
    (first,) = autograd.grad(mixed(xr), xr, create_graph=True)
    rows = [autograd.grad(first[i], xr, retain_graph=True)[0].numpy() for i in range(3)]
    close(outer(inner(mixed))(x), np.stack(rows))
    close(hessian(mixed)(x), np.stack(rows))


def test_third_derivatives_by_mixed_modes() -> None:
    x = chainrule.tensor(0.7, dtype=chainrule.float64)
    f = lambda a: a.sin()  # noqa: E731
    for first in (grad, jacfwd):
        for second in (grad, jacfwd):
            for third in (grad, jacfwd):
                close(third(second(first(f)))(x), -np.cos(0.7))


def test_hessian_of_several_arguments_and_outputs() -> None:
    w, b = chainrule.tensor([1.0, 2.0]), chainrule.tensor(3.0)

    def loss(p: Any, b: Any) -> Any:
        return (p["w"] ** 2).sum() * b**2

    h = hessian(loss, argnums=(0, 1))({"w": w}, b)
    close(h[0]["w"][0]["w"], 18 * np.eye(2))
    close(h[0]["w"][1], 4 * w.numpy() * 3)
    close(h[1][0]["w"], 4 * w.numpy() * 3)
    close(h[1][1], 10.0)
    several = hessian(lambda x: chainrule.stack([(x**3).sum(), x[0] * x[1]]))(w)
    close(several, [[[6.0, 0.0], [0.0, 12.0]], [[0.0, 1.0], [1.0, 0.0]]])
    close(hessian(lambda x: x.sum())(w), np.zeros((2, 2)))


def test_hessian_keeps_history_that_reaches_outside() -> None:
    c = chainrule.tensor(2.0, requires_grad=True)
    h = hessian(lambda x: (c * x**3).sum())(chainrule.tensor([1.0, 2.0]))
    h.sum().backward()
    close(c.grad, 18.0)
    assert not hessian(lambda x: (x**3).sum())(chainrule.ones(2)).requires_grad


def test_hessian_evaluates_a_scalar_function_once() -> None:
    calls = []
    hessian(lambda x: calls.append(x) or (x**3).sum())(chainrule.ones(3))  # type: ignore[func-returns-value]
    assert len(calls) == 1


def test_hvp_equals_hessian_times_vector() -> None:
    x, v = random(4), random(4)
    close(hvp(mixed, (x,), (v,)), hessian(mixed)(x).numpy() @ v.numpy())


def test_jacobians_of_several_inputs_and_outputs() -> None:
    x, y = random(2), random(3)
    f = lambda a, b: (a.sum() * b, a * 2)  # noqa: E731
    for transform in (jacrev, jacfwd):
        (ja, jb), (ka, kb) = transform(f, (0, 1))(x, y)
        close(ja, np.outer(y.numpy(), np.ones(2)))
        close(jb, np.eye(3) * x.numpy().sum())
        close(ka, 2 * np.eye(2))
        close(kb, np.zeros((2, 3)))


def test_jacobian_chunks_give_the_same() -> None:
    x = random(5)
    f = lambda a: a * a.sum()  # noqa: E731
    for transform in (jacrev, jacfwd):
        close(transform(f, chunk_size=2)(x), transform(f)(x))


def test_vmap_is_one_operation_for_the_whole_batch() -> None:
    calls = 0

    def f(x: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        assert x.shape == (3,)
        return (x * x).sum()

    x = random(5, 3)
    close(vmap(f)(x), (x * x).sum(1))
    assert calls == 1


def test_vmap_dimensions() -> None:
    x, y = random(3, 5), random(4)
    close(vmap(lambda a, b: a.sum() * b, in_dims=(1, None))(x, y), x.sum(0).unsqueeze(1) * y)
    close(vmap(lambda a: a * 2, in_dims=1, out_dims=1)(x), x * 2)
    close(vmap(lambda a: a.sum(), in_dims=-1)(x), x.sum(0))
    tree = {"a": x, "b": [y]}
    out = vmap(lambda t: t["a"] + t["b"][0].sum(), in_dims=({"a": 0, "b": None},))(tree)
    close(out, x + y.sum())
    close(vmap(lambda a: (a, y))(x)[1], np.tile(y.numpy(), (3, 1)))
    close(vmap(lambda a, *, k: a * k)(x, k=x), x * x)


def test_vmap_nests_and_chunks() -> None:
    x, y = random(3, 2), random(4, 2)
    outer = vmap(lambda a: vmap(lambda b: (a * b).sum())(y))(x)
    close(outer, x.numpy() @ y.numpy().T)
    close(vmap(lambda a: a * 2, chunk_size=2)(x), x * 2)


def test_per_sample_gradients() -> None:
    w, x = random(3), random(5, 3)
    loss = lambda w_, x_: ((w_ * x_).sum().tanh()) ** 2  # noqa: E731
    stacked = vmap(grad(loss), in_dims=(None, 0))(w, x)
    for i in range(5):
        close(stacked[i], grad(loss)(w, x[i]))


def test_vmap_over_and_under_every_derivative() -> None:
    x = random(4, 3)
    by_loop = np.stack([grad(mixed)(x[i]).numpy() for i in range(4)])
    close(vmap(grad(mixed))(x), by_loop)
    close(grad(lambda a: vmap(mixed)(a).sum())(x), by_loop)
    t = random(4, 3)
    close(jvp(vmap(mixed), (x,), (t,))[1], (by_loop * t.numpy()).sum(1))
    close(vmap(lambda a, b: jvp(mixed, (a,), (b,))[1])(x, t), (by_loop * t.numpy()).sum(1))
    hessians = np.stack([hessian(mixed)(x[i]).numpy() for i in range(4)])
    close(vmap(hessian(mixed))(x), hessians)
    close(vmap(jacrev(grad(mixed)))(x), hessians)
    close(vmap(jacfwd(jacfwd(mixed)))(x), hessians)
    close(grad(lambda a: vmap(grad(mixed))(a).sum())(x), hessians.sum(1))


def test_pulling_back_a_batch_leaves_no_history_unless_something_outside_needs_it() -> None:
    x, g = random(3), random(4, 3)
    _, pull = vjp(lambda a: a.sin(), x)
    assert not vmap(pull)(g)[0].requires_grad
    assert not jacrev(lambda a: a.sin())(x).requires_grad
    g.requires_grad_()
    vmap(pull)(g)[0].sum().backward()
    close(g.grad, np.tile(np.cos(x.numpy()), (4, 1)))


def test_vmap_of_a_function_with_history_outside() -> None:
    w, x = random(3).requires_grad_(), random(4, 3)
    vmap(lambda a: (a * w).sum() ** 2)(x).sum().backward()
    close(w.grad, (2 * (x @ w.detach()).unsqueeze(1) * x).sum(0))


def test_inplace_inside_transformations() -> None:
    def f(x: Tensor) -> Tensor:
        y = x * 1
        y[0] = y[1] * 2
        y += x
        y[1:].mul_(3)
        return y

    x = random(4, 3)
    close(vmap(f)(x), np.stack([f(x[i]).numpy() for i in range(4)]))
    t = random(3)
    close(jvp(f, (x[0],), (t,))[1], jacrev(f)(x[0]).numpy() @ t.numpy())


def test_view_sees_its_base_change_inside_transformations() -> None:
    def f(x: Tensor) -> Tensor:
        y = x * 1
        v, w = y.view(-1), y[1:]
        y.mul_(x)
        w.add_(1)
        return v if x.ndim == 0 else v * x

    x, t = random(4, 3), random(3)
    close(vmap(f)(x), np.stack([f(x[i]).numpy() for i in range(4)]))
    close(jvp(f, (x[0],), (t,))[1], jacrev(f)(x[0]).numpy() @ t.numpy())
    close(vmap(lambda a: (a * 1).view(-1))(x), x)


def test_new_tensor_like_one_inside_can_be_changed_there() -> None:
    def f(x: Tensor) -> Tensor:
        out = chainrule.zeros_like(x)
        out[0] = x.sum()
        other = x.new_ones(3)
        other.mul_(x)
        return out + other

    x = random(4, 3)
    close(vmap(f)(x), np.stack([f(x[i]).numpy() for i in range(4)]))
    close(jacfwd(f)(x[0]), jacrev(f)(x[0]))


def test_tensor_of_an_outer_transformation_cannot_take_an_inner_value() -> None:
    def outer(a: Tensor) -> Tensor:
        return vmap(lambda b: a.add_(b))(chainrule.ones(2, dtype=a.dtype))

    with pytest.raises(RuntimeError, match="lies outside vmap"):
        vmap(outer)(random(3))


@pytest.mark.parametrize("cut", [Tensor.detach, lambda x: x.data, lambda x: (x * 1).detach_()])
def test_detached_is_constant_in_every_transformation(cut: Any) -> None:
    x, t = random(4, 3), random(3)
    close(grad(lambda a: (cut(a) * a).sum())(x), x)
    close(jvp(lambda a: cut(a) * a, (x[0],), (t,))[1], x[0] * t)
    close(grad(lambda a: vmap(lambda b: cut(b) * b)(a).sum())(x), x)
    close(vmap(lambda b: jvp(lambda a: cut(a) * a, (b,), (t,))[1])(x), x * t)


def test_vmap_refuses() -> None:
    x = random(3, 2)
    with pytest.raises(ValueError, match="same size.*3, 4"):
        vmap(lambda a, b: a)(x, random(4, 2))
    with pytest.raises(ValueError, match="at least one"):
        vmap(lambda a: a, in_dims=(None,))(x)
    with pytest.raises(ValueError, match="only return Tensors.*float"):
        vmap(lambda a: 1.0)(x)
    with pytest.raises(ValueError, match=r"in_dim=2.*\(3, 2\)"):
        vmap(lambda a: a, in_dims=2)(x)
    with pytest.raises(RuntimeError, match=r"item\(\).*vmap"):
        vmap(lambda a: a * a.sum().item())(x)
    with pytest.raises(RuntimeError, match=r"bool.*vmap"):
        vmap(lambda a: a if a.sum() > 0 else -a)(x)
    with pytest.raises(RuntimeError, match="nonzero"):
        vmap(lambda a: a.nonzero())(x)


def test_vmap_randomness() -> None:
    x = random(3, 2)
    with pytest.raises(RuntimeError, match="randomness"):
        vmap(lambda a: a + chainrule.rand(2))(x)
    same = vmap(lambda a: chainrule.rand(2), randomness="same")(x).numpy()
    other = vmap(lambda a: chainrule.rand(2), randomness="different")(x).numpy()
    assert (same == same[0]).all()
    assert len(np.unique(other)) == 6


def test_functional_call_replaces_and_restores() -> None:
    class Affine:
        def __init__(self) -> None:
            self.weight = chainrule.ones(2)
            self.inner = self

        def __call__(self, x: Tensor) -> Tensor:
            return (self.weight * x).sum()

    module = Affine()
    x = random(2)
    g = grad(lambda p: functional_call(module, p, (x,)))({"weight": random(2)})
    close(g["weight"], x)
    close(functional_call(module, {"inner.weight": x}, x), (x * x).sum())
    assert module.weight.tolist() == [1, 1]
    with pytest.raises(KeyError, match="bias"):
        functional_call(module, {"bias": x}, x)


def test_forward_ad_levels() -> None:
    from chainrule.autograd import forward_ad

    x = chainrule.tensor(3.0)
    with forward_ad.dual_level():
        d = forward_ad.make_dual(x, chainrule.tensor(1.0))
        assert forward_ad.unpack_dual(d * d).tangent.item() == 6
        assert forward_ad.unpack_dual(d * d).primal.item() == 9
        assert forward_ad.unpack_dual(x * x).tangent is None
    with pytest.raises(RuntimeError, match="dual_level"):
        forward_ad.make_dual(x, x)


def test_functional_forms() -> None:
    from chainrule.autograd import functional as F

    x, v = random(3), random(3)
    close(F.jacobian(lambda a: a**2, x), np.diag(2 * x.numpy()))
    close(F.jacobian(lambda a: a**2, x, strategy="forward-mode"), np.diag(2 * x.numpy()))
    h = hessian(mixed)(x).numpy()
    close(F.hessian(mixed, x), h)
    close(F.hvp(mixed, x, v)[1], h @ v.numpy())
    close(F.vhp(mixed, x, v)[1], v.numpy() @ h)
    close(F.vjp(lambda a: a * 2, x, v)[1], 2 * v)
    close(F.jvp(lambda a: a * 2, x, v)[1], 2 * v)
    (aa, ab), (ba, bb) = F.hessian(lambda a, b: (a * b).sum(), (x, v))
    close(ab, np.eye(3))
    close(aa, np.zeros((3, 3)))
    close(ba, np.eye(3))
    close(bb, np.zeros((3, 3)))
    with pytest.raises(RuntimeError, match="independent"):
        F.jacobian(lambda a: chainrule.ones(2), x, strict=True)
    w = x.clone().requires_grad_()
    assert F.hvp(mixed, w, v, create_graph=True)[1].requires_grad
    assert not F.hvp(mixed, w, v)[1].requires_grad


def test_where_a_transformed_tensor_lives() -> None:
    places: list[str] = []

    def f(v: Tensor) -> Tensor:
        places.append(v.device.type)
        return (v.to("cpu") ** 3).sum()

    x = chainrule.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=chainrule.float64)
    found = jacfwd(vmap(grad(f)))(x)
    assert chainrule.allclose(found.sum((2, 3)), 6 * x)
    assert set(places) == {"cpu"}
