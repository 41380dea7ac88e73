"""What several kinds of features and targets need: places among words, constants, robust scales."""

from __future__ import annotations

import math
from collections.abc import Sequence

from chainrule.backend import dtypes
from chainrule.data.columns import DATE, NUMBER, Column, TableError
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.elementwise.functions import sqrt
from chainrule.ops.elementwise.options import clamp
from chainrule.ops.reduce.order import aminmax
from chainrule.ops.reduce.quantiles import quantile
from chainrule.ops.reduce.reductions import all as all_of
from chainrule.ops.reduce.sort import unique
from chainrule.tensor import Tensor

__all__ = ["clipped", "is_constant", "places", "quoted", "robust_scale"]
__all__ += ["used_words"]

BEND = 3.0  # scaled numbers stay below it in size
FAR = 1e9  # beyond which a scaled number is as good as infinite; its square is still finite


def quoted(names: Sequence[str]) -> str:
    """Names for an error."""
    shown = ", ".join(map(repr, names[:20]))
    return shown + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def places(column: Column, words: Sequence[str]) -> Tensor:
    """The place of each row's text among some words, -1 where it has none."""
    place = {word: i for i, word in enumerate(words)}
    known = tensor([*[place.get(word, -1) for word in column.words], -1], dtype=dtypes.int64)
    return known[column.codes.long()]


def used_words(column: Column) -> tuple[list[str | None], Tensor]:
    """The words that rows have, None for nothing, and the place of each row's among these.

    Of some rows of a large table, only their own words are looked at.
    """
    codes = column.codes.long()
    if len(column.words) <= len(codes):
        used = column.counts()
        return [*[word if word in used else None for word in column.words], None], codes
    found, places = unique(codes, return_inverse=True)
    return [None if code < 0 else column.words[code] for code in found.tolist()], places


def is_constant(column: Column) -> bool:
    """Whether all that is not missing is the same, and there is something."""
    if column.kind not in (NUMBER, DATE):
        return len(column.counts()) == 1
    numbers = column.where_present().numbers
    return len(numbers) > 0 and bool(all_of(numbers == numbers[0]))


def robust_scale(name: str, numbers: Tensor) -> tuple[float, float]:
    """The median of finite numbers, and a spread that a few extreme ones do not change.

    The spread is the distance of the quartiles; where they are equal that of the outer twentieths,
    and else half of the range.
    """
    middle, low, high, least, most = quantile(
        numbers, tensor([0.5, 0.25, 0.75, 0.05, 0.95], dtype=numbers.dtype)
    ).tolist()
    bottom, top = (float(v) for v in aminmax(numbers))
    spread = next((s for s in (high - low, most - least, top / 2 - bottom / 2) if s > 0), 1.0)
    if not math.isfinite(spread):
        raise TableError(
            f"column {name!r} has values that are too large to be scaled, from {bottom:g} to "
            f"{top:g}; divide them, or take logarithms"
        )
    return middle, spread


def clipped(x: Tensor) -> Tensor:
    """Smoothly clipped numbers: x / sqrt(1 + (x / 3)^2), which is x near 0 and never beyond 3."""
    near = clamp(x, -FAR, FAR)
    return near / sqrt(1 + (near / BEND) ** 2)
