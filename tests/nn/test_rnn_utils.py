"""Packed and padded sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule.nn.utils import rnn
from chainrule.nn.utils.rnn import (
    PackedSequence,
    invert_permutation,
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
    pad_sequence,
    unpack_sequence,
    unpad_sequence,
)
from chainrule.tensor import Tensor, of_array


def normal(*shape: int) -> Tensor:
    return of_array(np.random.default_rng(shape).normal(size=shape))


def test_packing_goes_step_by_step() -> None:
    """The documented example: the longest first, then one step after the other."""
    padded = chainrule.tensor([[1, 2, 0], [3, 0, 0], [4, 5, 6]])
    packed = pack_padded_sequence(padded, [2, 1, 3], batch_first=True, enforce_sorted=False)
    assert packed.data.tolist() == [4, 1, 3, 5, 2, 6]
    assert packed.batch_sizes.tolist() == [3, 2, 1]
    assert packed.sorted_indices is not None
    assert packed.unsorted_indices is not None
    assert packed.sorted_indices.tolist() == [2, 0, 1]
    assert packed.unsorted_indices.tolist() == [1, 2, 0]
    back, lengths = pad_packed_sequence(packed, batch_first=True)
    assert back.tolist() == padded.tolist()
    assert lengths.tolist() == [2, 1, 3]
    assert back.dtype == chainrule.int64


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("trailing", [(), (2,), (2, 3)])
def test_round_trip(batch_first: bool, trailing: tuple[int, ...]) -> None:
    lengths = [2, 4, 1]
    sequences = [normal(n, *trailing) for n in lengths]
    packed = pack_sequence(sequences, enforce_sorted=False)
    for a, b in zip(unpack_sequence(packed), sequences, strict=True):
        assert_close(a, b, rtol=0, atol=0)
    padded, found = pad_packed_sequence(packed, batch_first, padding_value=-7.0, total_length=6)
    assert found.tolist() == lengths
    expected = pad_sequence([*sequences, normal(6, *trailing)], batch_first, -7.0)
    expected = expected[:-1] if batch_first else expected[:, :-1]
    assert_close(padded, expected, rtol=0, atol=0)
    for a, b in zip(unpad_sequence(padded, found, batch_first), sequences, strict=True):
        assert_close(a, b, rtol=0, atol=0)
    again = pack_padded_sequence(padded, found, batch_first, enforce_sorted=False)
    assert_close(again.data, packed.data, rtol=0, atol=0)


def test_padding_on_either_side() -> None:
    a, b = chainrule.tensor([1, 2]), chainrule.tensor([3])
    assert pad_sequence([a, b], True).tolist() == [[1, 2], [3, 0]]
    assert pad_sequence([a, b], True, 9, padding_side="left").tolist() == [[1, 2], [9, 3]]


def test_sorted_sequences_need_no_order() -> None:
    packed = pack_sequence([chainrule.tensor([1, 2, 3]), chainrule.tensor([4, 5])])
    assert packed.sorted_indices is None
    assert packed.unsorted_indices is None
    assert packed.data.tolist() == [1, 4, 2, 5, 3]


def test_gradient_reaches_real_steps_only() -> None:
    x = normal(4, 3, 2).requires_grad_()
    packed = pack_padded_sequence(x, [1, 4, 2], enforce_sorted=False)
    padded, _ = pad_packed_sequence(packed)
    (g,) = chainrule.autograd.grad((padded * 3).sum(), x)
    expected = np.zeros((4, 3, 2))
    expected[:1, 0] = expected[:4, 1] = expected[:2, 2] = 3
    assert_close(g, expected, rtol=0, atol=0)


def test_conversion_keeps_the_order() -> None:
    packed = pack_sequence([normal(1), normal(3)], enforce_sorted=False)
    narrow = packed.float()
    assert narrow.data.dtype == chainrule.float32
    assert narrow.sorted_indices is packed.sorted_indices
    assert narrow.double().data.dtype == chainrule.float64
    assert packed.to(chainrule.float64) is packed
    assert packed.cpu() is packed
    assert isinstance(packed.to(chainrule.float32), PackedSequence)


def test_inverse_of_a_permutation() -> None:
    assert invert_permutation(chainrule.tensor([2, 0, 1])).tolist() == [1, 2, 0]  # type: ignore[union-attr]
    assert invert_permutation(None) is None


def test_names() -> None:
    assert set(rnn.__all__) == {
        "PackedSequence",
        "invert_permutation",
        "pack_padded_sequence",
        "pack_sequence",
        "pad_packed_sequence",
        "pad_sequence",
        "unpack_sequence",
        "unpad_sequence",
    }


ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: pack_padded_sequence(normal(4, 2), [1, 3]), RuntimeError, "enforce_sorted=False"),
    (lambda: pack_padded_sequence(normal(4, 2), [3]), RuntimeError, "batch size 2, but got 1"),
    (lambda: pack_padded_sequence(normal(4, 2), [3, 0]), RuntimeError, "greater than 0.*found 0"),
    (lambda: pack_padded_sequence(normal(4, 2), [5, 1]), RuntimeError, "5 exceeds the 4 steps"),
    (lambda: pack_padded_sequence(normal(4), [1]), RuntimeError, "at least 2 dimensions"),
    (lambda: pack_padded_sequence(normal(4, 0), []), RuntimeError, "empty batch"),
    (lambda: pad_sequence([]), RuntimeError, "empty list"),
    (lambda: pad_sequence(5), RuntimeError, "iterable.*int"),  # type: ignore[arg-type]
    (lambda: pad_sequence([normal(2, 3), normal(2, 4)]), RuntimeError, r"\(2, 3\) and \(2, 4\)"),
    (lambda: pad_sequence([normal(2)], padding_side="top"), RuntimeError, "'top'"),
    (
        lambda: pad_packed_sequence(pack_sequence([normal(3)]), total_length=2),
        ValueError,
        "longest sequence, 3, but got 2",
    ),
]


@pytest.mark.parametrize(("call", "error", "match"), ERRORS)
def test_errors(call: Callable[[], Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        call()
