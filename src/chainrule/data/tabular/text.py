"""Text in any language as hashed pieces of a few letters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from chainrule.backend import dtypes
from chainrule.data.columns import Column
from chainrule.data.tabular.features import Feature
from chainrule.data.tabular.shared import clipped
from chainrule.ops.core.promotion import cast
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.creation.patterns import arange, zeros
from chainrule.ops.creation.uncommon import frombuffer
from chainrule.ops.elementwise.functions import log1p, sqrt
from chainrule.ops.elementwise.logic import where
from chainrule.ops.elementwise.options import clamp
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.reduce.reductions import sum as sum_of
from chainrule.ops.reduce.sort import bincount
from chainrule.ops.shape.rearrange import repeat_interleave
from chainrule.ops.shape.views import reshape
from chainrule.tensor import Tensor

__all__ = ["Text"]

BUCKETS = 128
SIZES = (3, 4)  # letters of a piece; the ends of words count as one
LETTERS, TEXTS = 2**18, 2**13  # that are hashed at once
LONGEST = 2000  # letters of a text that are read
PRIME, BASE, SIGN = 2**31 - 1, 48271, 69621


@dataclass
class Text(Feature):
    """How often pieces of three and four letters occur, hashed into 128 features and scaled.

    A piece adds 1 or -1 to one of the features, by its hash; counts are taken by their logarithms,
    brought to length one for each text, and scaled by mean and standard deviation in training. No
    dictionary is kept, so that any text can come.
    """

    centers: list[float]
    spreads: list[float]

    kind = "text"
    kept: ClassVar[Mapping[str, str]] = {"centers": "numbers", "spreads": "numbers"}

    @classmethod
    def fit(cls, column: Column) -> Self:
        """Learns mean and spread of each feature."""
        often = bincount(column.codes.long() + 1, minlength=len(column.words) + 1)[1:].double()
        weights = often / sum_of(often)
        centers, squares = (
            zeros(BUCKETS, dtype=dtypes.float64),
            zeros(BUCKETS, dtype=dtypes.float64),
        )
        for start, x in _hashed(column.words):
            weight = weights[start : start + len(x)]
            centers, squares = centers + matmul(weight, x), squares + matmul(weight, x**2)
        spreads = sqrt(clamp(squares - centers**2, min=0.0))
        spreads = where(spreads > 1e-6, spreads, 1.0)
        return cls(column.name, column.missing > 0, centers.tolist(), spreads.tolist())

    @property
    def plain_names(self) -> list[str]:
        return [f"{self.name} letters {i}" for i in range(BUCKETS)]

    def values(self, column: Column) -> Tensor:
        text = column.as_category()
        centers, spreads = (tensor(v, dtype=dtypes.float64) for v in (self.centers, self.spreads))
        table = zeros(len(text.words) + 1, BUCKETS, dtype=dtypes.float32)  # the last for gaps
        for start, x in _hashed(text.words):
            table[start : start + len(x)] = clipped((x - centers) / spreads)
        return table[text.codes.long()]

    def check(self) -> None:
        if len(self.centers) != BUCKETS or len(self.spreads) != BUCKETS:
            raise ValueError(f"TableEncoder: text {self.name!r} needs {BUCKETS} scales")
        if not all(s > 0 for s in self.spreads):
            raise ValueError(f"TableEncoder: text {self.name!r} has a spread that is not positive")


def _hashed(words: Sequence[str]) -> Iterator[tuple[int, Tensor]]:
    """The features (some, 128) before they are scaled, of some words at once, and their start."""
    for start, texts in _batches(words):
        letters = frombuffer(bytearray("".join(texts).encode("utf-32-le")), dtype=dtypes.int32)
        lengths = tensor([len(t) for t in texts])
        rows = repeat_interleave(arange(len(texts)), lengths)
        counts = _pieces(letters.long(), rows, len(texts))
        size = sqrt(sum_of(counts**2, 1, keepdim=True))
        yield start, counts / where(size > 0, size, 1.0)


def _batches(words: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Texts in small letters, with one space around each word, a bounded number at once."""
    start, texts, letters = 0, [], 0
    for i, word in enumerate(words):
        text = f" {' '.join(str(word)[:LONGEST].lower().split())} "
        texts.append(text.encode("utf-8", "replace").decode())
        letters += len(text)
        if letters > LETTERS or len(texts) >= TEXTS:
            yield start, texts
            start, texts, letters = i + 1, [], 0
    if texts:
        yield start, texts


def _pieces(letters: Tensor, rows: Tensor, count: int) -> Tensor:
    """The logarithms of signed counts of pieces, by the hash of each."""
    total = None
    for size in SIZES:
        n = len(letters) - size + 1
        if n < 1:
            continue
        hashed = letters[:n] * 0 + size
        for k in range(size):
            hashed = (hashed * BASE + letters[k : k + n]) % PRIME
        whole = rows[:n] == rows[size - 1 :]  # a piece does not go on in the next text
        place = (rows[:n] * BUCKETS + hashed % BUCKETS)[whole]
        sign = where((hashed * SIGN) % PRIME % 2 == 0, 1.0, -1.0)[whole]
        found = bincount(place, cast(sign, dtypes.float64), minlength=count * BUCKETS)
        total = found if total is None else total + found
    if total is None:
        return zeros(count, BUCKETS, dtype=dtypes.float64)
    total = reshape(total, (count, BUCKETS))
    return where(total < 0, -1.0, 1.0) * log1p(abs(total))
