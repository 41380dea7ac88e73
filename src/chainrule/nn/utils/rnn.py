"""Sequences of different lengths: padded to one length, or packed without padding.

A packed batch holds first the first steps of all sequences, then the second steps of those that
have one, and so on; the sequences are sorted by length, the longest first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from chainrule.ops.creation.like import new_full
from chainrule.ops.creation.patterns import arange
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.index.reading import getitem, index_select
from chainrule.ops.reduce.scan import cumsum
from chainrule.ops.index.replacing import masked_fill
from chainrule.ops.shape.views import movedim, reshape, unsqueeze
from chainrule.ops.shape.stacking import cat, stack
from chainrule.ops.reduce.sort import argsort
from chainrule.tensor import Tensor
from chainrule.typing import Device, DType

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Packed):
    """Sequences of different lengths without padding; made by :func:`pack_padded_sequence`.

    ``batch_sizes[t]`` is the number of sequences that have a step t. ``sorted_indices`` says which
    sequence stands where (None: they were sorted), and ``unsorted_indices`` is its inverse.

    >>> from chainrule import tensor
    >>> from chainrule.nn.utils.rnn import pack_sequence
    >>> packed = pack_sequence([tensor([1, 2, 3]), tensor([4, 5]), tensor([6])])
    >>> packed.data
    tensor([1, 4, 6, 2, 5, 3])
    >>> packed.batch_sizes
    tensor([3, 2, 1])
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(
        self,
        *args: Device | DType | Tensor | bool | None,
        **kwargs: Device | DType | bool | None,
    ) -> PackedSequence:
        """The same sequences with data of another dtype, or on another device."""
        convert: Any = self.data.to
        data = convert(*args, **kwargs)
        return self if data is self.data else self._with(data)

    def float(self) -> PackedSequence:
        """The same sequences in float32."""
        return self._with(self.data.float())

    def double(self) -> PackedSequence:
        """The same sequences in float64."""
        return self._with(self.data.double())

    def cpu(self) -> PackedSequence:
        """The same sequences on the CPU."""
        return self.to("cpu")

    def _with(self, data: Tensor) -> PackedSequence:
        return PackedSequence(data, *self[1:])


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes this one (None for None)."""
    return None if permutation is None else argsort(permutation)


def mask_of_batch_sizes(batch_sizes: Tensor) -> Tensor:
    """(L, N), True where a sequence of the packed batch has a step."""
    sizes = batch_sizes.tolist()
    return getitem(arange(sizes[0], device="cpu"), None) < unsqueeze(batch_sizes, 1)


def pad_data(data: Tensor, mask: Tensor, padding_value: float = 0.0) -> Tensor:
    """Packed data as (L, N, *): row by row, the places where the mask is True."""
    mask = mask.to(data.device)
    places = masked_fill(cumsum(reshape(mask, (-1,)), 0) - 1, reshape(~mask, (-1,)), 0)
    padded = reshape(index_select(data, 0, places), (*mask.shape, *data.shape[1:]))
    return masked_fill(padded, reshape(~mask, (*mask.shape, *[1] * (data.ndim - 1))), padding_value)


def pack_padded_sequence(
    input: Tensor,
    lengths: Tensor | Sequence[int],
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    """Packs padded sequences (L, N, \\*), or (N, L, \\*) if ``batch_first``.

    With ``enforce_sorted=False`` they may come in any order.

    >>> from chainrule import tensor
    >>> padded = tensor([[1, 2, 0], [3, 0, 0], [4, 5, 6]])
    >>> pack_padded_sequence(padded, [2, 1, 3], batch_first=True, enforce_sorted=False).data
    tensor([4, 1, 3, 5, 2, 6])
    """
    if input.ndim < 2:
        raise RuntimeError(
            f"pack_padded_sequence: expected at least 2 dimensions, (L, N, *), got "
            f"{tuple(input.shape)}"
        )
    if batch_first:
        input = movedim(input, 0, 1)
    counts = [int(n) for n in (lengths.tolist() if isinstance(lengths, Tensor) else lengths)]
    _check_lengths(input, counts, enforce_sorted)
    order = None
    if not enforce_sorted:
        by_length = sorted(range(len(counts)), key=lambda n: -counts[n])
        counts = [counts[n] for n in by_length]
        order = tensor(by_length, device=input.device)
        input = index_select(input, 1, order)
    sizes = tensor([sum(n > t for n in counts) for t in range(counts[0])], device="cpu")
    data = getitem(getitem(input, slice(counts[0])), mask_of_batch_sizes(sizes))
    return PackedSequence(data, sizes, order)


def _check_lengths(input: Tensor, lengths: list[int], enforce_sorted: bool) -> None:
    steps, batch = input.shape[:2]
    if len(lengths) != batch:
        raise RuntimeError(
            f"pack_padded_sequence: expected len(lengths) to be equal to the batch size {batch}, "
            f"but got {len(lengths)} (batch_first={{True: (N, L, *), False: (L, N, *)}})"
        )
    if batch == 0:
        raise RuntimeError("pack_padded_sequence: cannot pack an empty batch")
    if min(lengths) <= 0:
        raise RuntimeError(
            "pack_padded_sequence: the length of all samples has to be greater than 0, but found "
            f"{min(lengths)} in lengths"
        )
    if max(lengths) > steps:
        raise RuntimeError(
            f"pack_padded_sequence: a length of {max(lengths)} exceeds the {steps} steps of the "
            "input"
        )
    if enforce_sorted and lengths != sorted(lengths, reverse=True):
        raise RuntimeError(
            "pack_padded_sequence: lengths must be sorted in decreasing order when enforce_sorted "
            f"is True, got {lengths}; pass enforce_sorted=False if the order does not matter"
        )


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The packed sequences padded, in the order in which they were packed, and their lengths.

    >>> from chainrule import tensor
    >>> packed = pack_sequence([tensor([1]), tensor([2, 3])], enforce_sorted=False)
    >>> pad_packed_sequence(packed, batch_first=True)
    (tensor([[1, 0],
            [2, 3]]), tensor([1, 2]))
    """
    mask = mask_of_batch_sizes(sequence.batch_sizes)
    steps = mask.shape[0]
    padded, lengths = pad_data(sequence.data, mask, padding_value), mask.sum(0)
    if total_length is not None:
        if total_length < steps:
            raise ValueError(
                "pad_packed_sequence: expected total_length to be at least the length of the "
                f"longest sequence, {steps}, but got {total_length}"
            )
        padded = _filled_up(padded, total_length, padding_value)
    if sequence.unsorted_indices is not None:
        padded = index_select(padded, 1, sequence.unsorted_indices)
        lengths = index_select(lengths, 0, sequence.unsorted_indices)
    return (movedim(padded, 0, 1) if batch_first else padded), lengths


def _filled_up(x: Tensor, steps: int, value: float, left: bool = False) -> Tensor:
    """A sequence with padding up to this number of steps."""
    missing = steps - x.shape[0]
    if missing == 0:
        return x
    padding = new_full(x, (missing, *x.shape[1:]), value)
    return cat([padding, x] if left else [x, padding])


def pad_sequence(
    sequences: Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences (L, \\*) of different lengths as one tensor (L, N, \\*), or (N, L, \\*).

    >>> from chainrule import tensor
    >>> pad_sequence([tensor([1, 2]), tensor([3])], batch_first=True)
    tensor([[1, 2],
            [3, 0]])
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: expected an iterable of sequences, but got {type(sequences).__name__}"
        )
    listed = list(sequences)
    if not listed:
        raise RuntimeError("pad_sequence: received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"pad_sequence: padding_side must be 'left' or 'right', got {padding_side!r}"
        )
    for x in listed:
        if x.ndim == 0 or tuple(x.shape[1:]) != tuple(listed[0].shape[1:]):
            raise RuntimeError(
                f"pad_sequence: sequences of shapes {tuple(listed[0].shape)} and {tuple(x.shape)} "
                "differ in more than their length (the first dimension)"
            )
    longest = max(x.shape[0] for x in listed)
    left = padding_side == "left"
    padded = [_filled_up(x, longest, padding_value, left) for x in listed]
    return stack(padded, 0 if batch_first else 1)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False
) -> list[Tensor]:
    """The sequences without their padding: the inverse of :func:`pad_sequence`."""
    if not batch_first:
        padded_sequences = movedim(padded_sequences, 0, 1)
    counts = lengths.tolist() if isinstance(lengths, Tensor) else lengths
    return [getitem(padded_sequences, (n, slice(count))) for n, count in enumerate(counts)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Packs a list of sequences (L, \\*) of different lengths."""
    lengths = [x.shape[0] for x in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The list of sequences that were packed."""
    return unpad_sequence(*pad_packed_sequence(packed_sequences, batch_first=True), True)
