"""Softmax and the cross-entropies: stability, one node, both ways of the backward pass, errors."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from helpers import assert_close
from samples import softmax as samples
from scipy import special

import chainrule
from chainrule.autograd import detect_anomaly, grad, gradcheck
from chainrule.func import hessian, vmap
from chainrule.func import grad as grad_of
from chainrule.tensor import Tensor, of_array


def tensor(array: Any, requires_grad: bool = False, dtype: Any = None) -> Tensor:
    return of_array(np.array(array, dtype=dtype)).requires_grad_(requires_grad)


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape) * 2


def assert_equal(actual: Any, expected: Any) -> None:
    assert_close(actual, np.array(expected))


# --- softmax --------------------------------------------------------------------------------------


def test_softmax_neither_overflows_nor_underflows() -> None:
    x = np.array([[1e4, -1e4, 0.0], [-1e4, -1e4, -1e4]])
    assert_equal(chainrule.softmax(tensor(x), 1), [[1.0, 0.0, 0.0], [1 / 3] * 3])
    expected = [[0.0, -2e4, -1e4], [-np.log(3)] * 3]
    assert_equal(chainrule.log_softmax(tensor(x), 1), expected)


def test_softmax_of_infinities() -> None:
    inf = np.inf
    x = tensor([[0.0, -inf], [-inf, -inf], [inf, 0.0]])
    assert_equal(chainrule.softmax(x, 1), [[1.0, 0.0], [np.nan] * 2, [np.nan] * 2])


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_short_types(name: str) -> None:
    x = random(50, 30)
    half = getattr(chainrule, name)(tensor(x, dtype=np.float16), 1)
    assert half.dtype is chainrule.float16
    assert_close(half, getattr(special, name)(x, axis=1), rtol=1e-2, atol=1e-2)
    whole = getattr(chainrule, name)(tensor([1, 2]), 0, dtype=chainrule.float32)
    assert whole.dtype is chainrule.float32


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_keeps_its_output_alone(name: str) -> None:
    """So the input may be changed in place afterwards, as in PyTorch."""
    leaf = tensor(random(3, 4), True)
    x = leaf * 1
    y = getattr(chainrule, name)(x, 1)
    x.mul_(0)
    y[:, 0].sum().backward()
    again = tensor(leaf.detach().numpy(), True)
    getattr(chainrule, name)(again, 1)[:, 0].sum().backward()
    assert_close(leaf.grad, again.grad)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_backward_on_arrays_and_on_tensors_agree(name: str) -> None:
    x, g = tensor(random(3, 4, 2), True), tensor(random(3, 4, 2, seed=1))
    for dim in (0, 1, 2):
        y = getattr(chainrule, name)(x, dim)
        (plain,) = grad(y, x, g, retain_graph=True)
        (recorded,) = grad(y, x, g, create_graph=True)
        assert_close(plain, recorded, rtol=1e-12, atol=1e-14)


def test_softmax_refuses() -> None:
    with pytest.raises(IndexError, match=r"softmax: dimension out of range .* got 2"):
        chainrule.softmax(tensor(random(2, 3)), 2)
    with pytest.raises(NotImplementedError, match=r"softmax: not implemented for .*int64"):
        chainrule.softmax(tensor([1, 2]), 0)


# --- cross-entropy --------------------------------------------------------------------------------

TARGET = np.array([0, 2, 1, 2, 0])


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy_is_one_node(reduction: str) -> None:
    x = tensor(random(5, 3), True)
    loss = chainrule.cross_entropy(x, tensor(TARGET), reduction=reduction)
    assert loss.grad_fn is not None
    assert loss.grad_fn.name() == "CrossEntropyBackward"
    assert [edge for edge, _ in loss.grad_fn.next_functions] == [x, None]


@pytest.mark.parametrize("shape", [(5, 3), (4,), (2, 3, 4), (2, 3, 2, 2)])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("ignored", [False, True])
def test_every_way_of_the_backward_pass_agrees(
    shape: tuple[int, ...], reduction: str, ignored: bool
) -> None:
    """The kernel after the short way, after the general way, and the rule in operations."""
    args = samples.classes(*shape, ignored=-100 if ignored and len(shape) > 1 else None)
    logits, target = args(np.random.default_rng(1))
    x, t = tensor(logits, True), tensor(target)
    loss = chainrule.cross_entropy(x, t, reduction=reduction)
    g = chainrule.ones_like(loss) * 0.7
    (short,) = grad(loss, x, g, retain_graph=True)
    (recorded,) = grad(loss, x, g, create_graph=True)
    with detect_anomaly():
        general = chainrule.cross_entropy(x, t, reduction=reduction)
    assert_close(general, loss)
    assert_close(grad(general, x, g), [short], rtol=1e-12, atol=1e-14)
    assert_close(recorded, short, rtol=1e-12, atol=1e-14)


def test_gradient_is_softmax_minus_one_hot() -> None:
    x = tensor(random(5, 3), True)
    chainrule.cross_entropy(x, tensor(TARGET), reduction="sum").backward()
    assert_close(x.grad, special.softmax(x.detach().numpy(), axis=1) - np.eye(3)[TARGET])


def test_hessian_is_the_covariance_of_the_class() -> None:
    x = random(4)
    p = special.softmax(x)
    h = hessian(lambda z: chainrule.cross_entropy(z, tensor(2)))(tensor(x))
    assert_close(h, np.diag(p) - np.outer(p, p), rtol=1e-9, atol=1e-12)


def test_cross_entropy_of_far_logits() -> None:
    x = tensor([[1e4, -1e4, 0.0]], True)
    loss = chainrule.cross_entropy(x, tensor([1]))
    loss.backward()
    assert loss.item() == 2e4
    assert_equal(x.grad, [[1.0, -1.0, 0.0]])


def test_nothing_to_average_is_nan_with_gradient_zero() -> None:
    for weight in (None, tensor(np.ones(3))):
        x = tensor(random(2, 3), True)
        loss = chainrule.cross_entropy(x, tensor([-100, -100]), weight)
        loss.backward()
        assert np.isnan(loss.item())
        assert_close(x.grad, np.zeros((2, 3)))
    assert np.isnan(chainrule.cross_entropy(tensor(np.zeros((0, 3))), tensor([], dtype=int)).item())


def test_ignored_rows_may_hold_anything() -> None:
    x = random(3, 4)
    x[1] = [np.inf, -np.inf, np.nan, 0.0]
    target = tensor([0, -100, 3])
    for reduction, smoothed in itertools.product(("mean", "sum"), (0.0, 0.1)):
        settings: dict[str, Any] = {"reduction": reduction, "label_smoothing": smoothed}
        loss = chainrule.cross_entropy(tensor(x), target, **settings)
        kept = chainrule.cross_entropy(tensor(x[[0, 2]]), tensor([0, 3]), **settings)
        assert_close(loss, kept)


def test_smoothed_loss_of_masked_classes_is_infinite() -> None:
    x = tensor([[0.0, -np.inf, 1.0]], True)
    for target in (0, 1):
        loss = chainrule.cross_entropy(x, tensor([target]), label_smoothing=0.1)
        assert loss.item() == np.inf
        (slope,) = chainrule.autograd.grad(loss, [x])
        q = 0.9 * np.eye(3)[[target]] + 0.1 / 3
        assert_close(slope, special.softmax(x.detach().numpy(), axis=1) - q)


def test_smoothed_loss_of_nothing() -> None:
    x = tensor(random(2, 3), True)
    loss = chainrule.cross_entropy(x, tensor([-100, -100]), label_smoothing=0.1)
    loss.backward()
    assert np.isnan(loss.item())
    assert_close(x.grad, np.zeros((2, 3)))
    none = chainrule.cross_entropy(
        tensor(np.zeros((0, 3))), tensor([], dtype=int), label_smoothing=0.1
    )
    assert np.isnan(none.item())


def test_types_of_targets() -> None:
    x = tensor(random(5, 3))
    expected = chainrule.cross_entropy(x, tensor(TARGET))
    assert_close(chainrule.cross_entropy(x, tensor(TARGET, dtype=np.uint8)), expected)
    assert_close(chainrule.nll_loss(chainrule.log_softmax(x, 1), tensor(TARGET)), expected)
    hot = tensor(np.eye(3)[TARGET])
    assert_close(chainrule.cross_entropy(x, hot), expected)
    one = chainrule.cross_entropy(tensor(random(3)), tensor([1]))
    assert_close(one, chainrule.cross_entropy(tensor(random(3)), tensor(1)))


def test_float32_and_float16_stay() -> None:
    for dtype in (np.float32, np.float16):
        x = tensor(random(5, 3), True, dtype)
        loss = chainrule.cross_entropy(x, tensor(TARGET))
        loss.backward()
        assert loss.dtype == x.dtype == x.grad.dtype
        exact = samples.cross_entropy(x.detach().numpy().astype(float), TARGET)
        assert_close(loss.double(), exact, rtol=2e-3)


def test_vmap_of_samples_is_reduction_none() -> None:
    x, t = tensor(random(5, 3)), tensor(TARGET)
    each = vmap(chainrule.cross_entropy)(x, t)
    assert_close(each, chainrule.cross_entropy(x, t, reduction="none"))
    slopes = vmap(grad_of(chainrule.cross_entropy))(x, t)
    assert_close(slopes, special.softmax(x.numpy(), axis=1) - np.eye(3)[TARGET])


def test_weights_are_differentiated_too() -> None:
    """Unlike PyTorch, which refuses."""
    t = tensor(TARGET)
    inputs = [tensor(random(5, 3), True), tensor([0.5, 1.0, 2.0], True)]
    assert gradcheck(lambda x, w: chainrule.cross_entropy(x, t, w, label_smoothing=0.1), inputs)


BAD_CROSS_ENTROPY = {
    "too large": ([0, 3, 1, 2, 0], {}, IndexError, r"target 3 is out of bounds; with 3 classes"),
    "negative": ([0, -1, 1, 2, 0], {}, IndexError, r"target -1 is out of bounds"),
    "too few": ([0, 1], {}, ValueError, r"batch_size \(5\) to match target batch_size \(2\)"),
    "two dimensions": ([[0]] * 5, {}, RuntimeError, r"the target must have shape \(5,\)"),
    "floating": ([0.0] * 5, {}, RuntimeError, r"class numbers of type int64 or uint8.*float64"),
    "reduction": (TARGET, {"reduction": "most"}, ValueError, r"'most' is not a valid value"),
    "smoothing": (TARGET, {"label_smoothing": 1.5}, RuntimeError, r"between 0.0 and 1.0, got 1.5"),
    "integer probabilities": (np.zeros((5, 3), int), {}, RuntimeError, r"floating point target"),
    "weights": (TARGET, {"weight": tensor(np.ones(4))}, RuntimeError, r"all 3 classes"),
    "weight type": (
        TARGET,
        {"weight": tensor(np.ones(3), dtype=np.float32)},
        RuntimeError,
        r"float64 like",
    ),
    "ignored probabilities": (
        np.ones((5, 3)),
        {"ignore_index": 1},
        RuntimeError,
        r"ignore_index is not supported",
    ),
}


@pytest.mark.parametrize("case", BAD_CROSS_ENTROPY)
def test_cross_entropy_refuses(case: str) -> None:
    target, kwargs, error, message = BAD_CROSS_ENTROPY[case]
    with pytest.raises(error, match="cross_entropy: .*" + message):
        chainrule.cross_entropy(tensor(random(5, 3)), tensor(target), **kwargs)


def test_int32_targets_are_refused() -> None:
    with pytest.raises(RuntimeError, match=r"int64 or uint8, but got .*int32.*\.long\(\)"):
        chainrule.cross_entropy(tensor(random(5, 3)), tensor(TARGET, dtype=np.int32))


def test_lists_are_refused() -> None:
    with pytest.raises(TypeError, match=r"cross_entropy\(\): argument 'target' must be Tensor"):
        chainrule.cross_entropy(tensor(random(2, 3)), [0, 1])  # type: ignore[arg-type]


def test_nll_loss_refuses() -> None:
    x = tensor(random(5, 3))
    with pytest.raises(IndexError, match=r"nll_loss: target 7 is out of bounds"):
        chainrule.nll_loss(x, tensor([0, 7, 1, 2, 0]))
    with pytest.raises(ValueError, match=r"nll_loss: expected an input of 1 or more dimensions"):
        chainrule.nll_loss(tensor(1.0), tensor(0))
    with pytest.raises(RuntimeError, match=r"nll_loss: .* must have shape \(2, 4\)"):
        chainrule.nll_loss(tensor(random(2, 3, 4)), tensor(np.zeros((2, 5), int)))


# --- two classes ----------------------------------------------------------------------------------


def test_binary_cross_entropy_of_far_logits() -> None:
    x = tensor([1000.0, -1000.0, 1000.0, -1000.0], True)
    y = tensor([1.0, 0.0, 0.0, 1.0])
    loss = chainrule.binary_cross_entropy_with_logits(x, y, reduction="none")
    assert_equal(loss, [0.0, 0.0, 1000.0, 1000.0])
    loss.sum().backward()
    assert_equal(x.grad, [0.0, 0.0, 1.0, -1.0])


def test_positive_weight_is_stable_too() -> None:
    x, y = tensor([1000.0, -1000.0]), tensor([0.0, 1.0])
    pos_weight = tensor([3.0, 3.0])
    loss = chainrule.binary_cross_entropy_with_logits(x, y, None, "none", pos_weight)
    assert_equal(loss, [1000.0, 3000.0])


def test_logarithms_are_cut_off_at_minus_100() -> None:
    x = tensor([0.0, 1.0], True)
    loss = chainrule.binary_cross_entropy(x, tensor([1.0, 0.0]), reduction="none")
    assert_equal(loss, [100.0, 100.0])
    loss.sum().backward()
    assert_equal(x.grad, [-1e12, 1e12])


def test_binary_cross_entropy_refuses() -> None:
    x = tensor([0.5, 0.7])
    for function in (chainrule.binary_cross_entropy, chainrule.binary_cross_entropy_with_logits):
        with pytest.raises(ValueError, match=r"target size \(1,\) must be the same"):
            function(x, tensor([1.0]))
        with pytest.raises(ValueError, match=r"'most' is not a valid value"):
            function(x, x, reduction="most")
        with pytest.raises(RuntimeError, match=r"float|Float"):
            function(x, tensor([0, 1]))
    for bad in (1.5, -0.5, np.nan):
        with pytest.raises(RuntimeError, match=r"elements of input should be between 0 and 1"):
            chainrule.binary_cross_entropy(tensor([bad, 0.5]), x)
    with pytest.raises(RuntimeError, match=r"elements of target should be between 0 and 1"):
        chainrule.binary_cross_entropy(x, tensor([2.0, 0.5]))


def large_loss() -> tuple[Any, Any, np.ndarray]:
    """Logits with their loss, and the gradient by its formula."""
    rng = np.random.default_rng(0)
    x, t = rng.standard_normal((300, 4000)).astype(np.float32), rng.integers(0, 4000, 300)
    p = np.exp(x.astype(np.float64))
    p /= p.sum(1, keepdims=True)
    p[np.arange(300), t] -= 1
    logits = tensor(x, True)
    return logits, chainrule.cross_entropy(logits, chainrule.tensor(t)), p / 300


def test_a_gradient_takes_the_memory_of_a_large_softmax() -> None:
    logits, loss, wanted = large_loss()
    node = loss.grad_fn if hasattr(loss.grad_fn, "saved") else loss._node
    place = node.saved[2].array.__array_interface__["data"]
    loss.backward(retain_graph=True)
    assert len(node.saved) == 2
    assert logits.grad.array.__array_interface__["data"] == place
    for again in (False, True):
        if again:  # the softmax is made anew
            logits.grad = None
            loss.backward()
        np.testing.assert_allclose(logits.grad.numpy(), wanted, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("what", ["list", "tensor", "array"])
def test_a_softmax_that_somebody_looks_at_stays(what: str) -> None:
    logits, loss, wanted = large_loss()
    saved = loss._node.saved
    p = saved[2] if what != "list" else None
    array = p.array if what == "array" else None
    before = saved[2].array.copy()
    if what != "list":
        del saved
    loss.backward()
    held = saved[2].array if what == "list" else array if what == "array" else p.array
    np.testing.assert_array_equal(held, before)
    np.testing.assert_allclose(logits.grad.numpy(), wanted, rtol=1e-4, atol=1e-9)
