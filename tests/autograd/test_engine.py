"""Reverse mode: the walk, its bookkeeping, and what it refuses."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import tracemalloc
from typing import Any

import numpy as np
import pytest

import chainrule
from chainrule import Tensor, autograd


def leaf(*values: float) -> Tensor:
    return chainrule.tensor(list(values), dtype=chainrule.float64, requires_grad=True)


def test_gradient_of_a_shared_subexpression_is_summed() -> None:
    x = leaf(2.0)
    y = x * x
    (y + y * x).sum().backward()
    assert x.grad.item() == 2 * 2 + 3 * 4


def test_gradients_accumulate_until_cleared() -> None:
    x = leaf(3.0)
    for _ in range(2):
        (x * x).sum().backward()
    assert x.grad.item() == 12
    x.grad = None
    (x * x).sum().backward()
    assert x.grad.item() == 6


def test_accumulation_keeps_the_gradient_object() -> None:
    x = leaf(1.0, 2.0)
    x.sum().backward()
    before = x.grad
    x.sum().backward()
    assert x.grad is before
    assert before.tolist() == [2, 2]


def test_gradients_of_two_leaves_do_not_share_memory() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    (x + y).backward(chainrule.ones(2, dtype=chainrule.float64))
    x.grad.zero_()
    assert y.grad.tolist() == [1, 1]


def test_given_gradient_is_not_taken_over() -> None:
    x = leaf(1.0, 2.0)
    g = chainrule.ones(2, dtype=chainrule.float64)
    (x + 0).backward(g)
    x.grad.zero_()
    assert g.tolist() == [1, 1]


def test_third_derivative() -> None:
    x = leaf(2.0)
    (first,) = autograd.grad((x**4).sum(), x, create_graph=True)
    (second,) = autograd.grad(first.sum(), x, create_graph=True)
    (third,) = autograd.grad(second.sum(), x)
    assert (first.item(), second.item(), third.item()) == (32, 48, 48)


def test_backward_with_create_graph_differentiates_the_gradient() -> None:
    x = leaf(3.0)
    (x**3).sum().backward(create_graph=True)
    (g,) = autograd.grad(x.grad.sum(), x)
    assert g.item() == 18


def test_second_backward_is_refused_with_advice() -> None:
    x = leaf(1.0)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="second time.*retain_graph=True"):
        y.backward()


def test_non_scalar_is_refused_with_its_shape() -> None:
    with pytest.raises(RuntimeError, match=r"scalar outputs.*\(2,\)"):
        (leaf(1.0, 2.0) * 2).backward()


def test_output_without_history_is_refused() -> None:
    with pytest.raises(RuntimeError, match="does not require grad"):
        chainrule.ones(()).backward()


def test_gradient_of_wrong_shape_is_refused_with_both_shapes() -> None:
    with pytest.raises(RuntimeError, match=r"\(3,\).*\(2,\)"):
        (leaf(1.0, 2.0) * 2).backward(chainrule.ones(3))


def test_unused_input() -> None:
    x, y = leaf(1.0), leaf(2.0)
    with pytest.raises(RuntimeError, match="allow_unused=True"):
        autograd.grad(x.sum() * 2, y)
    assert autograd.grad(x.sum() * 2, y, allow_unused=True) == (None,)
    (zero,) = autograd.grad(x.sum() * 2, y, materialize_grads=True)
    assert zero.tolist() == [0]


def test_changed_saved_value_is_refused() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation.*MulBackward"):
        z.sum().backward()


def test_inference_tensors_cannot_be_saved() -> None:
    x = leaf(1.0, 2.0)
    with chainrule.inference_mode():
        y = x * 2
    assert not y.requires_grad
    with pytest.raises(RuntimeError, match="inference"):
        (y * x).sum().backward()


def test_hook_replaces_the_gradient_and_can_be_removed() -> None:
    x = leaf(1.0)
    y = x * 2
    handle = y.register_hook(lambda g: g * 10)
    y.sum().backward(retain_graph=True)
    assert x.grad.item() == 20
    handle.remove()
    y.sum().backward()
    assert x.grad.item() == 22


def test_hook_sees_the_finished_gradient() -> None:
    x, seen = leaf(1.0), []
    y = x * 2
    y.register_hook(lambda g: seen.append(g.item()))
    (y * 3 + y * 4).sum().backward()
    assert seen == [7]


def test_retain_grad() -> None:
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    (y * 3).sum().backward()
    assert y.grad.item() == 3


@pytest.mark.parametrize(
    ("change", "same"),
    [
        (lambda y: y.mul_(y.t()), lambda y: y * y.t()),
        (lambda y: y.mul_(y[0]), lambda y: y * y[0]),
        (lambda y: y.mul_(y.detach()), lambda y: y * y.detach()),
        (lambda y: y.view(-1).mul_(y.view(-1)).view(3, 3), lambda y: y * y),
    ],
)
def test_change_by_another_view_of_the_same_memory(change: Any, same: Any) -> None:
    """The rule reads what the memory held before."""
    gradients = []
    for function in (change, same):
        x = chainrule.arange(9.0).reshape(3, 3).requires_grad_()
        function(x + 1).square().sum().backward()
        gradients.append(x.grad.tolist())
    assert gradients[0] == gradients[1]


def test_grad_mode_is_per_thread() -> None:
    states: dict[str, bool] = {}

    def look() -> None:
        states["thread"] = chainrule.is_grad_enabled()

    with chainrule.no_grad():
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        states["main"] = chainrule.is_grad_enabled()
    assert states == {"thread": True, "main": False}


def test_modes_as_decorators_and_nested() -> None:
    x = leaf(1.0)

    @chainrule.no_grad()
    def double(t: Tensor) -> Tensor:
        with chainrule.enable_grad():
            assert (t * 2).requires_grad
        return t * 2

    assert not double(x).requires_grad
    assert (x * 2).requires_grad
    chainrule.set_grad_enabled(False)
    assert not (x * 2).requires_grad
    chainrule.set_grad_enabled(True)
    assert (x * 2).requires_grad


def test_mode_is_restored_after_an_error() -> None:
    with pytest.raises(ValueError, match="inside"), chainrule.no_grad():
        raise ValueError("inside")
    assert chainrule.is_grad_enabled()


def build_differentiate_and_drop(length: int) -> float:
    x = leaf(1.0)
    y = x
    for _ in range(length):
        y = y + 1e-9
    y.sum().backward()
    return x.grad.item()


def test_long_chain_needs_no_recursion_and_leaves_nothing() -> None:
    build_differentiate_and_drop(10_000)  # fills the interpreter's own free lists
    gc.collect()
    tracemalloc.start()
    try:
        build_differentiate_and_drop(1_000)
        before = tracemalloc.get_traced_memory()[0]
        assert build_differentiate_and_drop(200_000) == 1
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    # What may stay is the interpreter's bounded free list of tuples, whatever the length.
    assert after - before < 150_000


def differentiated(x: Any) -> None:
    (x.tanh() * x.exp()).sum().backward()


def changed_through_views(x: Any) -> None:
    y = x * 2
    y[0].mul_(x[1])
    y.view(-1).sin_()
    y[y > 0] = 0.5


def retained(x: Any) -> None:
    y = x * 2
    y.retain_grad()
    y.sum().backward()


@pytest.mark.parametrize("work", [differentiated, changed_through_views, retained])
def test_graphs_are_freed_without_the_garbage_collector(work: Any) -> None:
    x = leaf(1.0, 2.0)
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            work(x)
        before = len(gc.get_objects())
        for _ in range(100):
            work(x)
        assert len(gc.get_objects()) - before < 20
    finally:
        gc.enable()


def test_replaced_memory_is_not_that_of_earlier_views() -> None:
    y = leaf(1.0, 2.0) * 1
    v = y.view(-1)
    y.data = chainrule.tensor([5.0, 6.0], dtype=chainrule.float64)
    y.mul_(2)
    assert v.tolist() == [1, 2]
    assert y.tolist() == [10, 12]


def test_graph_can_be_looked_at() -> None:
    x = leaf(1.0)
    y = (x * 2).tanh()
    assert y.grad_fn.name() == "TanhBackward"
    assert y.grad_fn.next_functions[0][0].name() == "MulBackward"
    assert y.grad_fn.next_functions[0][0].next_functions[0][0] is x
    assert x.is_leaf
    assert not y.is_leaf
    assert repr(y.grad_fn) == "<TanhBackward>"


def test_leaf_flag_rules() -> None:
    with pytest.raises(RuntimeError, match="floating point.*int64"):
        chainrule.tensor([1, 2], requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        (leaf(1.0) * 2).requires_grad_(False)


def test_gradient_assignment_is_checked() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match=r"\(3,\).*\(2,\)"):
        x.grad = chainrule.ones(3, dtype=chainrule.float64)
    with pytest.raises(TypeError, match="Tensor or None"):
        x.grad = 3.0
    with pytest.raises(RuntimeError, match="float32.*float64"):
        x.grad = chainrule.ones(2)


def test_copying_and_pickling() -> None:
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    for again in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert again.requires_grad
        assert again.tolist() == [1, 2]
        assert again.grad.tolist() == [2, 4]
        again.detach().zero_()
    assert x.tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(x * 2)
    with pytest.raises(RuntimeError, match="history"):
        pickle.dumps(x * 2)


def test_numpy_bridge_shares_memory() -> None:
    a = np.array([1.0, 2.0])
    x = chainrule.from_numpy(a)
    a[0] = 5
    assert x.tolist() == [5, 2]
    x.mul_(2)
    assert a.tolist() == [10, 4]
    with pytest.raises(RuntimeError, match=r"detach\(\).numpy\(\)"):
        leaf(1.0).numpy()


def test_numpy_operators_and_functions_defer_to_tensors() -> None:
    x = leaf(1.0, 2.0)
    y: Any = np.array([3.0, 4.0]) * x
    assert isinstance(y, Tensor)
    y.sum().backward()
    assert x.grad.tolist() == [3, 4]
    assert isinstance(np.sin(x), Tensor)
    assert np.sin(x).requires_grad
    assert isinstance(np.float64(2.0) * x, Tensor)


def test_dlpack_in_and_out() -> None:
    x = chainrule.tensor([1.0, 2.0])
    a = np.from_dlpack(x)
    a_again = chainrule.from_dlpack(a)
    assert a_again.tolist() == [1, 2]
    assert np.shares_memory(a, x.numpy())


def test_parallel_backward_through_a_shared_leaf() -> None:
    x = leaf(2.0)
    results: list[float] = []

    def work() -> None:
        for _ in range(50):
            (g,) = autograd.grad((x**3).sum(), x)
            results.append(g.item())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [12.0] * 200


# --- arguments of grad ----------------------------------------------------------------------------


def test_gradients_for_a_batch_of_vectors() -> None:
    x = chainrule.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    w = chainrule.tensor([1.0, -1.0], requires_grad=True)
    unused = chainrule.ones(2, requires_grad=True)
    y, u = (x @ w).sin(), (x * x).sum()
    rows, weights = chainrule.eye(2), chainrule.tensor([1.0, 2.0])
    settings: dict[str, Any] = {"retain_graph": True, "allow_unused": True}
    found = autograd.grad(
        (y, u), (x, w, unused), (rows, weights), is_grads_batched=True, **settings
    )
    for i in range(2):
        one = autograd.grad((y, u), (x, w), (rows[i], weights[i]), **settings)
        for batch, single in zip(found, one, strict=False):
            np.testing.assert_allclose(batch[i].numpy(), single.numpy(), rtol=1e-6)
    assert found[2] is None
    some = autograd.grad((u, y), (w,), (None, rows), is_grads_batched=True, **settings)
    assert some[0].tolist() == found[1].tolist()


def test_a_batch_of_vectors_has_derivatives_and_is_checked() -> None:
    x = chainrule.tensor([1.0, 2.0], requires_grad=True)
    unused = chainrule.ones(3, requires_grad=True)
    settings: dict[str, Any] = {"is_grads_batched": True, "create_graph": True}
    rows = chainrule.eye(2)
    jacobian, zeros = autograd.grad(x**3, (x, unused), rows, materialize_grads=True, **settings)
    assert autograd.grad(jacobian.sum(), x)[0].tolist() == [6.0, 12.0]
    assert zeros.tolist() == [[0.0] * 3] * 2
    with pytest.raises(RuntimeError, match="needs grad_outputs"):
        autograd.grad(x**3, x, **settings)
    with pytest.raises(RuntimeError, match="grad: mismatch in shape"):
        autograd.grad(x**3, x, chainrule.ones(2), **settings)


def test_only_inputs_is_a_relic() -> None:
    x = chainrule.tensor(2.0, requires_grad=True)
    assert autograd.grad(x * x, x, None, None, False, True)[0].item() == 4
    with pytest.warns(FutureWarning, match="only_inputs=False changes nothing"):
        assert autograd.grad(x * x, x, only_inputs=False)[0].item() == 4
