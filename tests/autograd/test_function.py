"""The user's own operations."""

from __future__ import annotations

from typing import Any

import pytest

import chainrule
from chainrule import Tensor
from chainrule.autograd import Function, grad, gradcheck, gradgradcheck
from chainrule.autograd.function import once_differentiable
from chainrule.func import jvp, vmap


class Cube(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        ctx.scale = scale
        return x * x * x * scale

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return g * 3 * x * x * ctx.scale, None

    @staticmethod
    def jvp(ctx: Any, t: Tensor, _: Any) -> Tensor:
        (x,) = ctx.saved_tensors
        return 3 * x * x * t * ctx.scale


class Split(Function):
    """Two outputs, by ``setup_context``."""

    @staticmethod
    def forward(x: Tensor) -> tuple[Tensor, Tensor]:
        return x.sin(), x.cos()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, gs: Tensor, gc: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return gs * x.cos() - gc * x.sin()


def leaf() -> Tensor:
    return chainrule.tensor([0.5, -1.5], dtype=chainrule.float64, requires_grad=True)


def test_both_modes_and_second_order() -> None:
    assert gradcheck(lambda x: Cube.apply(x, 2.0), (leaf(),))
    assert gradgradcheck(lambda x: Cube.apply(x, 2.0), (leaf(),))


def test_forward_mode_uses_the_users_rule() -> None:
    x = chainrule.tensor([2.0])
    assert jvp(lambda a: Cube.apply(a, 1.0), (x,), (x,))[1].tolist() == [24]


def test_several_outputs() -> None:
    x = leaf()
    s, c = Split.apply(x)
    (g,) = grad((s + 2 * c).sum(), x)
    expected = x.detach().cos() - 2 * x.detach().sin()
    assert chainrule.allclose(g, expected)
    (only_first,) = grad(Split.apply(x)[0].sum(), x)
    assert chainrule.allclose(only_first, x.detach().cos())


def test_missing_forward_rule_is_told() -> None:
    x = leaf().detach()
    with pytest.raises(NotImplementedError, match="Split.*jvp"):
        jvp(lambda a: Split.apply(a)[0], (x,), (x,))


def test_missing_batching_rule_is_told_and_given_one_is_used() -> None:
    x = chainrule.ones(3, 2)
    with pytest.raises(RuntimeError, match="Cube.*batching rule"):
        vmap(lambda a: Cube.apply(a, 1.0))(x)

    class Batchable(Cube):
        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Tensor, scale: float) -> Any:
            assert info.batch_size == 3
            assert in_dims == (0, None)
            return Cube.apply(x, scale), 0

    assert vmap(lambda a: Batchable.apply(a, 2.0))(x).tolist() == [[2, 2]] * 3


def test_wrong_backward_is_refused() -> None:
    class Short(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
            return x + y

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Any:
            return g

    class Shape(Short):
        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Any:
            return g.sum(), g

    with pytest.raises(RuntimeError, match="Short.*expected 2.*got 1"):
        Short.apply(leaf(), leaf()).sum().backward()
    with pytest.raises(RuntimeError, match=r"Shape.*\(\).*\(2,\)"):
        Shape.apply(leaf(), leaf()).sum().backward()


def test_non_differentiable_output() -> None:
    class Parts(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Any:
            order = x.argsort()
            ctx.mark_non_differentiable(order)
            return x * 2, order

        @staticmethod
        def backward(ctx: Any, g: Tensor, _: Any) -> Tensor:
            return g * 2

    x = leaf()
    y, order = Parts.apply(x)
    assert y.requires_grad
    assert not order.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_changed_saved_tensor_is_refused() -> None:
    x = leaf()
    y = x * 1
    z = Cube.apply(y, 1.0)
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        z.sum().backward()


def test_once_differentiable() -> None:
    class Once(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return g * 2 * ctx.saved_tensors[0]

    x = leaf()
    (g,) = grad(Once.apply(x).sum(), x)
    assert chainrule.allclose(g, 2 * x.detach())
    y = leaf()
    (g,) = grad((Once.apply(y) * y).sum(), y, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        g.sum().backward()


class Both(Function):
    """Two outputs, whose gradients may be asked for as they come."""

    seen: Any = None

    @staticmethod
    def forward(ctx: Any, x: Tensor, materialize: bool) -> Any:
        ctx.set_materialize_grads(materialize)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx: Any, g2: Any, g3: Any) -> Any:
        Both.seen = g3
        return g2 * 2, None


@pytest.mark.parametrize("materialize", [True, False])
def test_gradient_of_an_unused_output(materialize: bool) -> None:
    x = leaf()
    Both.apply(x, materialize)[0].sum().backward()
    assert x.grad.tolist() == [2, 2]
    if materialize:
        assert Both.seen.tolist() == [0, 0]
    else:
        assert Both.seen is None


class DoubleInPlace(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return g * 2


def test_changed_input_takes_the_new_history() -> None:
    x = leaf()
    y = x * 3
    out = DoubleInPlace.apply(y)
    assert out is y
    (y * y).sum().backward()
    expected = 2 * 36 * x.detach()
    assert chainrule.allclose(x.grad, expected)
    with pytest.raises(RuntimeError, match="DoubleInPlace.*leaf"):
        DoubleInPlace.apply(leaf())
