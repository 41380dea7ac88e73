"""Checkpoints: the same numbers as without them, of every order, from less memory."""

from __future__ import annotations

import contextlib
import gc
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from helpers import assert_close

import chainrule
from chainrule import Tensor, nn
from chainrule.autograd import grad
from chainrule.autograd.walk import youngest_first
from chainrule.func import jvp, vmap
from chainrule.func import grad as func_grad
from chainrule.utils.checkpoint import CheckpointError, checkpoint, checkpoint_sequential

Run = Callable[..., Any]


def plain(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return function(*args, **kwargs)


def block(dropout: float = 0.0) -> nn.Sequential:
    layers = [nn.Linear(4, 8), nn.Tanh(), nn.Dropout(dropout), nn.Linear(8, 4)]
    return nn.Sequential(*layers).double()


def derivatives(run: Run, dropout: float = 0.0) -> list[Tensor]:
    """Loss, gradients by input and parameters, and the gradients of their squares."""
    chainrule.manual_seed(0)
    blocks = [block(dropout) for _ in range(3)]
    x = chainrule.randn(5, 4, dtype="float64", requires_grad=True)
    h = x
    for b in blocks:
        h = run(b, h)
    loss = (h**2).sum() + chainrule.rand(()) * h.mean()  # draws after the blocks did
    inputs = [x, *[p for b in blocks for p in b.parameters()]]
    first = grad(loss, inputs, create_graph=True)
    second = grad(sum((g**2).sum() for g in first), inputs)
    return [loss, *first, *second]


@pytest.mark.parametrize("use_reentrant", [None, True, False])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_derivatives_of_both_orders(use_reentrant: bool | None, dropout: float) -> None:
    def run(function: Any, h: Tensor) -> Any:
        return checkpoint(function, h, use_reentrant=use_reentrant)

    assert_close(derivatives(run, dropout), derivatives(plain, dropout), rtol=1e-12)


def test_other_random_numbers_if_asked_for() -> None:
    x = chainrule.ones(1000, requires_grad=True)
    y = checkpoint(lambda x: nn.functional.dropout(x), x, preserve_rng_state=False)
    y.sum().backward()
    assert not chainrule.equal(x.grad, y.detach())
    x.grad = None
    y = checkpoint(lambda x: nn.functional.dropout(x), x)
    state = chainrule.get_rng_state()
    y.sum().backward()
    assert chainrule.equal(x.grad, y.detach())
    assert chainrule.equal(chainrule.get_rng_state(), state)  # as if nothing had been drawn


def nodes_behind(loss: Tensor) -> int:
    return len(youngest_first([loss.grad_fn]))


def test_one_node_for_each_call() -> None:
    net = nn.Sequential(*[nn.Tanh() for _ in range(12)])
    x = chainrule.randn(2, 4, requires_grad=True)
    assert nodes_behind(net(x).sum()) == 12 + 1
    parts = checkpoint_sequential(net, 3, x)
    assert nodes_behind(parts.sum()) == 2 + 4 + 1  # two checkpoints, the last four, the sum
    assert_close(parts, net(x), rtol=0, atol=0)


def peak(run: Callable[[], Tensor]) -> int:
    """The most memory that a forward and a backward pass hold at once."""
    gc.collect()
    tracemalloc.start()
    run().sum().backward()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def test_memory_falls() -> None:
    net = [nn.Tanh() for _ in range(25)]
    x = chainrule.randn(256, 256, requires_grad=True)
    whole = peak(lambda: nn.Sequential(*net)(x))
    parts = peak(lambda: checkpoint_sequential(net, 5, x))
    assert whole > 25 * x.nbytes
    assert parts < 14 * x.nbytes  # four checkpoints, five layers, a few at work


def test_what_is_not_kept_is_freed() -> None:
    held: list[Any] = []

    class Freed(chainrule.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.token = Token()
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return g * 2

    class Token:
        def __init__(self) -> None:
            held.append(None)

        def __del__(self) -> None:
            held.pop()

    x = chainrule.ones(2, requires_grad=True)
    y = checkpoint(Freed.apply, x)
    gc.collect()
    assert held == []
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_arguments_are_freed_with_the_graph() -> None:
    x = chainrule.ones(2, requires_grad=True)
    y = checkpoint(lambda x: x.sin(), x)
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    assert_close(x.grad, 2 * chainrule.ones(2).cos())
    with pytest.raises(RuntimeError, match="a second time"):
        y.sum().backward()


# --- what the function may be ---------------------------------------------------------------------


class Pair(NamedTuple):
    a: Tensor
    b: Tensor


def test_nested_arguments_and_outputs() -> None:
    def function(parts: dict[str, list[Tensor]], scale: float, *, shift: Tensor) -> Any:
        a, b = parts["ab"]
        return {"pair": Pair(a * b * scale, b + shift), "number": 3, "same": [a, a.detach()]}

    for run in (plain, checkpoint):
        a, b, shift = (chainrule.full((2,), v, requires_grad=True) for v in (2.0, 3.0, 5.0))
        out = run(function, {"ab": [a, b]}, 4.0, shift=shift)
        assert isinstance(out["pair"], Pair)
        assert out["number"] == 3
        assert out["same"][0] is a
        assert not out["same"][1].requires_grad
        (out["pair"].a + out["pair"].b ** 2).sum().backward()
        assert [x.grad.tolist() for x in (a, b, shift)] == [[12, 12], [24, 24], [16, 16]]


def test_unused_outputs_have_no_gradient() -> None:
    x = chainrule.ones(2, requires_grad=True)
    y, _ = checkpoint(lambda x: (x * 2, x * 3), x)
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_the_same_output_twice() -> None:
    x = chainrule.ones(2, requires_grad=True)

    def twice(x: Tensor) -> tuple[Tensor, Tensor]:
        y = x * 3
        return y, y

    a, b = checkpoint(twice, x)
    assert a is b
    (a + 2 * b).sum().backward()
    assert x.grad.tolist() == [9, 9]


def test_tensors_that_the_function_finds_by_itself() -> None:
    w = chainrule.full((2,), 3.0, requires_grad=True)
    h = w * 2  # with a history
    x = chainrule.ones(2)  # requires no gradient
    y = checkpoint(lambda x: x * h * w, x, use_reentrant=True)
    y.sum().backward()
    assert w.grad.tolist() == [12, 12]


def test_hooks_run_once() -> None:
    seen: list[str] = []
    x = chainrule.ones(2, requires_grad=True)
    h = x * 1
    x.register_hook(lambda g: seen.append("leaf"))
    h.register_hook(lambda g: seen.append("between"))
    layer = nn.Linear(2, 2)
    layer.register_full_backward_hook(lambda *_: seen.append("module"))
    checkpoint(layer, h).sum().backward()
    assert seen == ["module", "between", "leaf"]


def test_parts_of_the_gradient() -> None:
    x, w = chainrule.ones(2, requires_grad=True), chainrule.ones(2, requires_grad=True)
    y = checkpoint(lambda x: (x * w).sin(), x, use_reentrant=True)
    (g,) = grad(y.sum(), w, retain_graph=True)
    assert_close(g, chainrule.ones(2).cos())
    y.sum().backward(inputs=[x])
    assert x.grad is not None
    assert w.grad is None


def test_inside_of_each_other() -> None:
    def inner(x: Tensor) -> Tensor:
        return x.sin() * x

    def outer(x: Tensor) -> Any:
        return checkpoint(inner, checkpoint(inner, x)).exp()

    x = chainrule.tensor([0.3, 0.7], dtype="float64", requires_grad=True)
    nested, flat = checkpoint(outer, x), inner(inner(x)).exp()
    (a,), (b,) = (grad(y.sum(), x, create_graph=True) for y in (nested, flat))
    assert_close(a, b)
    assert_close(grad(a.sum(), x)[0], grad(b.sum(), x)[0])


def test_complex_numbers() -> None:
    z = chainrule.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    for run in (plain, checkpoint):
        z.grad = None
        run(lambda z: z * z.conj() * 1j + z**2, z).abs().sum().backward()
        if run is plain:
            expected = z.grad
    assert_close(z.grad, expected)


def test_gradients_and_recording_off() -> None:
    x = chainrule.ones(2, requires_grad=True)
    with chainrule.no_grad():
        assert not checkpoint(lambda x: x * 2, x).requires_grad
    assert not checkpoint(lambda x: x * 2, chainrule.ones(2)).requires_grad
    y = checkpoint(lambda x: x.detach() * 2, x)
    assert not y.requires_grad


def test_under_transformations() -> None:
    def f(x: Tensor) -> Tensor:
        y: Tensor = checkpoint(lambda x: x.sin() * x, x)
        return y.sum()

    x = chainrule.tensor([0.3, 0.7], dtype="float64")
    slope = x.cos() * x + x.sin()
    assert_close(func_grad(f)(x), slope)
    assert_close(jvp(f, (x,), (chainrule.ones_like(x),))[1], slope.sum())
    assert_close(vmap(func_grad(f))(x.unsqueeze(1)), slope.unsqueeze(1))


# --- memory that is shared ------------------------------------------------------------------------


def test_a_function_that_changes_its_argument_keeps_its_graph() -> None:
    first = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(3, 3)).double()
    x = chainrule.randn(4, 3, dtype="float64", requires_grad=True)
    found = []
    for run in (plain, checkpoint):
        y = run(lambda h: first(h).add_(1), x * 2)
        found.append(grad(y.sin().sum(), [x, *first.parameters()]))
    assert_close(found[1], found[0])

    def doubled(h: Tensor) -> Tensor:
        return h.mul_(2).sin()

    (a,), (b,) = (grad(run(doubled, x * 1).sum(), x) for run in (plain, checkpoint))
    assert_close(a, b)


def test_an_output_that_is_a_view_of_an_argument_is_a_copy() -> None:
    x = chainrule.ones(2, 2, requires_grad=True)
    h = x * 1
    y = checkpoint(lambda h: h.t(), h)
    y.mul_(3)
    assert h.tolist() == [[1, 1], [1, 1]]
    (y.sum() + h.sum()).backward()
    assert x.grad.tolist() == [[4, 4], [4, 4]]


def test_outputs_that_share_memory_are_copies() -> None:
    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        y = x * 2
        return y, y.t()

    x = chainrule.ones(2, 2, requires_grad=True)
    a, b = checkpoint(function, x)
    b.mul_(3)
    assert a.tolist() == [[2, 2], [2, 2]]
    (a + b).sum().backward()
    assert x.grad.tolist() == [[8, 8], [8, 8]]


def test_changes_before_the_second_call_are_noticed() -> None:
    w = chainrule.ones(2, requires_grad=True)
    x = chainrule.ones(2, requires_grad=True)
    y = checkpoint(lambda x: x * w, x)
    with chainrule.no_grad():
        w.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    h = x * 1
    y = checkpoint(lambda h: h.sin(), h)
    h.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


# --- what it checks -------------------------------------------------------------------------------


def test_another_shape_the_second_time() -> None:
    sizes = [2, 1]
    x = chainrule.ones(2, requires_grad=True)
    y = checkpoint(lambda x: x[: sizes.pop(0)] * 2, x)
    with pytest.raises(CheckpointError, match=r"float32 of shape \(2,\) then.*shape \(1,\) now"):
        y.sum().backward()


def test_other_tensors_the_second_time() -> None:
    a, b = chainrule.ones(2, requires_grad=True), chainrule.ones(2, requires_grad=True)
    ways = [a, b]
    y = checkpoint(lambda: ways.pop(0) * 2)
    with pytest.raises(CheckpointError, match="used other tensors"):
        y.sum().backward()
    ways = [a, b]
    y = checkpoint(lambda: ways.pop(0) * 2, determinism_check="none")
    y.sum().backward()
    assert a.grad is None


def test_contexts_of_both_calls() -> None:
    seen: list[str] = []

    @contextlib.contextmanager
    def note(name: str) -> Iterator[None]:
        seen.append(name)
        yield

    x = chainrule.ones(2, requires_grad=True)
    y = checkpoint(lambda x: x * 2, x, context_fn=lambda: (note("first"), note("second")))
    assert seen == ["first"]
    y.sum().backward()
    assert seen == ["first", "second"]


@pytest.mark.parametrize("segments", [0, 4, -1])
def test_wrong_numbers_of_segments(segments: int) -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2))
    with pytest.raises(ValueError, match=f"expected 1 to 3 segments.*got {segments}"):
        checkpoint_sequential(net, segments, chainrule.ones(1, 2))


def test_a_wrong_check() -> None:
    with pytest.raises(ValueError, match="determinism_check.*'strict'"):
        checkpoint(lambda x: x, chainrule.ones(1), determinism_check="strict")
