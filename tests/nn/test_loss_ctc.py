"""CTC: every alignment listed, the exact gradient, what cannot be aligned, and wrong calls."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from helpers import assert_close
from samples.nn_loss import ctc as by_listing
from scipy import special

import chainrule
from chainrule import nn, tensor
from chainrule.backend import K
from chainrule.func import grad, hessian, jvp, vmap
from chainrule.nn import functional as F
from chainrule.ops.layers.ctc import _posterior
from chainrule.tensor import Tensor, of_array


def log_probs(*shape: int, seed: int = 0) -> Tensor:
    return of_array(special.log_softmax(np.random.default_rng(seed).normal(size=shape), axis=-1))


@pytest.mark.parametrize("blank", [0, 1, 2])
@pytest.mark.parametrize("word", [[], [1], [1, 1], [1, 2], [2, 1, 2], [1, 1, 2]], ids=str)
@pytest.mark.parametrize("steps", [3, 5])
def test_every_alignment_counts(word: list[int], steps: int, blank: int) -> None:
    labels = [(k + blank) % 3 for k in word]  # any but the blank
    x, target = log_probs(steps, 1, 3), np.array([labels], int)
    lengths = (steps,), (len(word),)
    with np.errstate(divide="ignore"):
        expected = by_listing(x.numpy(), target, *lengths, blank, "none")
    assert_close(F.ctc_loss(x, of_array(target), *lengths, blank, "none"), expected, rtol=1e-12)


def test_all_readings_of_a_length_have_probability_one() -> None:
    """The words of up to two letters and what they do not reach."""
    x = log_probs(2, 1, 3)
    words = [[], [1], [2], [1, 2], [2, 1]]  # "11" needs three steps
    losses = [
        F.ctc_loss(x, of_array(np.array(w, int)), (2,), (len(w),), reduction="sum").item()
        for w in words
    ]
    assert sum(math.exp(-loss) for loss in losses) == pytest.approx(1, rel=1e-12)


def test_gradient_is_minus_the_probability_of_each_class() -> None:
    """At each step the path is in some class: the gradient sums to -1, and to 0 after the end."""
    x = log_probs(6, 2, 4).requires_grad_()
    F.ctc_loss(x, tensor([[1, 2, 2], [3, 1, 0]]), (6, 4), (3, 2), reduction="sum").backward()
    assert (x.grad <= 0).all()
    totals = x.grad.sum(2).numpy()
    assert_close(totals[:, 0], -np.ones(6), rtol=1e-12)
    assert_close(totals[:, 1], np.array([-1.0, -1, -1, -1, 0, 0]), rtol=1e-12)


def test_gradient_of_logits_is_softmax_minus_that_probability() -> None:
    s = of_array(np.random.default_rng(0).normal(size=(5, 1, 3)))
    target = tensor([[1, 2]])

    def loss(s: Tensor) -> Tensor:
        return F.ctc_loss(s.log_softmax(2), target, (5,), (2,), reduction="sum")

    def of_log_probs(x: Tensor) -> Tensor:
        return F.ctc_loss(x, target, (5,), (2,), reduction="sum")

    assert_close(grad(loss)(s), s.softmax(2) + grad(of_log_probs)(s.log_softmax(2)), atol=1e-14)


def test_the_rule_in_operations_is_the_kernel() -> None:
    """Where a derivative is differentiated again, the recursions are written in operations."""
    r = np.random.default_rng(0)
    e = np.log(r.uniform(size=(5, 4, 5)))
    e[2, 0, 1] = -np.inf
    skip = np.array([[False, True, False, k, False] for k in (True, False, True, True)])
    lengths: dict[str, Any] = {"input_lengths": (5, 3, 0, 1), "target_lengths": (2, 2, 0, 2)}
    kernel = K.ctc_posterior(e, skip, **lengths)
    assert_close(_posterior(of_array(e), of_array(skip), **lengths), kernel, rtol=1e-9, atol=1e-15)
    assert_close(kernel.sum(axis=2)[:, 0], np.ones(5), rtol=1e-12)
    assert not kernel[:, 2:].any()  # no step taken, and a word too long for one step


def test_forward_mode_and_second_order() -> None:
    x, v = log_probs(4, 1, 3), log_probs(4, 1, 3, seed=1)

    def loss(x: Tensor) -> Tensor:
        return F.ctc_loss(x, tensor([[1, 2]]), (4,), (2,))

    slope = jvp(loss, (x,), (v,))[1]
    assert_close(slope, (grad(loss)(x) * v).sum(), rtol=1e-12)
    curvature = hessian(loss)(x).reshape(12, 12)
    assert_close(curvature, curvature.T, atol=1e-14)
    h = 1e-5
    change = (grad(loss)(x + h * v) - grad(loss)(x - h * v)) / (2 * h)
    assert_close(curvature @ v.reshape(12), change.reshape(12), rtol=1e-6, atol=1e-8)


def test_vmap_over_targets() -> None:
    x, targets = log_probs(5, 2, 4), np.random.default_rng(1).integers(1, 4, size=(3, 2, 2))
    mapped = vmap(lambda t: F.ctc_loss(x, t, (5, 4), (2, 1), reduction="none"))(of_array(targets))
    for row, t in zip(mapped, targets, strict=True):
        assert_close(row, F.ctc_loss(x, of_array(t), (5, 4), (2, 1), reduction="none"))


# --- forms of the arguments -----------------------------------------------------------------------


def test_targets_one_after_the_other_or_padded_with_anything() -> None:
    x = log_probs(5, 3, 4)
    expected = F.ctc_loss(x, tensor([[1, 2], [3, 3], [2, 3]]), (5, 5, 3), (2, 0, 1))
    joined, padded = tensor([1, 2, 2]), tensor([[1, 2, 99], [-1, 99, 0], [2, -7, 0]])
    lengths = tensor([5, 5, 3]), tensor([2, 0, 1])
    assert_close(F.ctc_loss(x, joined, *lengths), expected)
    assert_close(F.ctc_loss(x, padded, *lengths), expected)
    assert_close(F.ctc_loss(x, padded.int(), [5, 5, 3], [2, 0, 1]), expected)
    assert_close(nn.CTCLoss()(x, joined, *lengths), expected)


def test_without_a_batch() -> None:
    x = log_probs(5, 4)
    whole = F.ctc_loss(x.unsqueeze(1), tensor([[1, 2]]), (5,), (2,), reduction="none")
    for lengths in (((5,), (2,)), (tensor(5), tensor(2)), (tensor([5]), tensor([2]))):
        loss = F.ctc_loss(x, tensor([1, 2]), *lengths, reduction="none")
        assert loss.shape == ()
        assert_close(loss, whole[0])
    assert_close(F.ctc_loss(x, tensor([1, 2]), (5,), (2,)), whole[0] / 2)


def test_the_mean_is_by_the_length_of_the_target() -> None:
    x = log_probs(5, 2, 4)
    losses = F.ctc_loss(x, tensor([[1, 2], [3, 0]]), (5, 5), (2, 0), reduction="none")
    mean = F.ctc_loss(x, tensor([[1, 2], [3, 0]]), (5, 5), (2, 0))
    assert_close(mean, (losses[0] / 2 + losses[1]) / 2)


# --- what cannot be aligned -----------------------------------------------------------------------


def test_a_target_that_does_not_fit() -> None:
    """The loss is infinite, and no gradient comes from it: not NaN either."""
    x = log_probs(3, 2, 3).requires_grad_()
    target = tensor([[1, 1], [1, 1]])  # needs three steps: a blank between
    losses = F.ctc_loss(x, target, (2, 3), (2, 2), reduction="none")
    assert losses[0].item() == math.inf
    assert math.isfinite(losses[1].item())
    losses.sum().backward()
    assert_close(x.grad[:, 0], np.zeros((3, 3)))
    assert (x.grad[:, 1] != 0).any()
    zeroed = F.ctc_loss(x, target, (2, 3), (2, 2), reduction="none", zero_infinity=True)
    assert_close(zeroed.detach(), np.array([0.0, losses[1].item()]))


def test_probabilities_of_zero() -> None:
    """-inf among the log-probabilities shuts some paths, not all."""
    p = np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])
    with np.errstate(divide="ignore"):
        x = of_array(np.log(p)[:, None]).requires_grad_()
    loss = F.ctc_loss(x, tensor([[1]]), (3,), (1,))
    # 11-, 1--, -1-: the only ways to read "1" and end with a blank.
    assert_close(loss.detach(), -math.log(0.5 * 0.3 + 0.5 * 0.2 + 0.5 * 0.3))
    loss.backward()
    assert np.isfinite(x.grad.numpy()).all()


def test_long_sequences_neither_underflow_nor_recurse() -> None:
    """The probability of one path of a thousand steps is far below the smallest number."""
    steps, classes = 1000, 20
    x = chainrule.full((steps, 1, classes), -math.log(classes)).requires_grad_()
    target = of_array(np.arange(100)[None] % (classes - 1) + 1)
    loss = F.ctc_loss(x, target, (steps,), (100,), reduction="sum")
    # All paths are alike, so they can be counted: 100 labels, no two neighbors the same.
    ways = special.gammaln(steps + 100 + 1) - special.gammaln(201) - special.gammaln(steps - 99)
    assert_close(loss.detach(), np.float32(steps * math.log(classes) - ways), rtol=1e-5)
    loss.backward()
    assert_close(x.grad.sum(2), np.full((steps, 1), -1, np.float32), rtol=1e-5)


# --- wrong calls ----------------------------------------------------------------------------------

X, Y = log_probs(3, 2, 4), tensor([[1, 2], [3, 1]])


@pytest.mark.parametrize(
    ("error", "message", "args", "kwargs"),
    [
        (RuntimeError, r"\(L, N, K\) or \(L, K\).*got \(3,\)", (X[:, 0, 0], Y, (3,), (1,)), {}),
        (RuntimeError, r"empty, got \(3, 0, 4\)", (X[:, :0], Y[:0], (), ()), {}),
        (
            RuntimeError,
            r"blank must be a label in \[0, 3\], got 4",
            (X, Y, (3, 3), (2, 2)),
            {"blank": 4},
        ),
        (RuntimeError, "input_lengths to be at most 3.*got 4", (X, Y, (3, 4), (2, 2)), {}),
        (RuntimeError, "input_lengths to be at least 0, but got -1", (X, Y, (3, -1), (2, 2)), {}),
        (RuntimeError, "target_lengths to be at least 0, but got -2", (X, Y, (3, 3), (2, -2)), {}),
        (RuntimeError, "each of the 2 sequences, got 1", (X, Y, (3,), (2, 2)), {}),
        (RuntimeError, "each of the 2 sequences, got 3", (X, Y, (3, 3), (2, 2, 1)), {}),
        (
            RuntimeError,
            "input_lengths must be integers, got",
            (X, Y, tensor([3.0, 3.0]), (2, 2)),
            {},
        ),
        (RuntimeError, r"N = 2 sequences and S >= 3.*got \(2, 2\)", (X, Y, (3, 3), (2, 3)), {}),
        (
            RuntimeError,
            r"sum\(target_lengths\) = 4 labels, got 3",
            (X, tensor([1, 2, 3]), (3, 3), (2, 2)),
            {},
        ),
        (
            IndexError,
            r"target 4 is out of bounds; with 4 classes.*\[0, 3\]",
            (X, Y + 1, (3, 3), (2, 2)),
            {},
        ),
        (
            NotImplementedError,
            "not implemented for log_probs of type",
            (X.long(), Y, (3, 3), (2, 2)),
            {},
        ),
        (
            ValueError,
            "'all' is not a valid value for reduction",
            (X, Y, (3, 3), (2, 2)),
            {"reduction": "all"},
        ),
        (TypeError, "argument 'targets' must be Tensor, not list", (X, [[1]], (3, 3), (2, 2)), {}),
    ],
)
def test_wrong_calls(
    error: type[Exception], message: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    with pytest.raises(error, match=message):
        F.ctc_loss(*args, **kwargs)
