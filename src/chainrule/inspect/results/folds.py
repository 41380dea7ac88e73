"""Which samples are trained on and which are tested in each fold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Any

from chainrule.charts import COLORS
from chainrule.inspect.core.registry import instrument
from chainrule.inspect.core.results import Diagram
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.creation.patterns import zeros
from chainrule.printing import text_table

__all__ = ["Folds", "folds"]

TRAIN, TEST, UNUSED = "train", "test", "unused"
FILL = {TRAIN: COLORS[0], TEST: COLORS[1], UNUSED: "#e6e6e6"}
WIDTH, ROW, LEFT, TOP = 640, 24, 76, 62


@dataclass(repr=False, eq=False)
class Folds(Diagram):
    """For each fold what happens to each sample: "train", "test" or "unused". ``classes`` are
    those of the samples, empty if they are not known."""

    uses: list[list[str]]
    classes: list[str]

    @property
    def tested(self) -> list[int]:
        """How often each sample is tested."""
        return [column.count(TEST) for column in zip(*self.uses, strict=True)]

    def __str__(self) -> str:
        names = list(dict.fromkeys(self.classes))
        rows = []
        for i, row in enumerate(self.uses):
            shares = [
                f"{sum(u == TEST and c == name for u, c in zip(row, self.classes, strict=True))}"
                for name in names
            ]
            rows.append([str(i + 1), str(row.count(TRAIN)), str(row.count(TEST)), *shares])
        header = ["fold", "trained on", "tested", *(f"of class {n}" for n in names)]
        lines = [text_table(header, rows, left=0)]
        once = set(self.tested)
        if once == {1}:
            lines.append("every sample is tested once")
        else:
            lines.append(f"a sample is tested {min(once)} to {max(once)} times")
        return "\n".join(lines)

    @property
    def svg(self) -> str:  # type: ignore[override]
        """The picture: a row for each fold, the samples from left to right."""
        count = len(self.uses[0])
        scale = (WIDTH - LEFT - 16) / count
        parts = [_text(WIDTH / 2, 20, f"{len(self.uses)} folds of {count} samples", "middle", True)]
        parts += _legend([u for u in (TRAIN, TEST, UNUSED) if any(u in row for row in self.uses)])
        for i, row in enumerate(self.uses):
            y = TOP + i * ROW
            parts.append(_text(LEFT - 8, y + ROW / 2 + 3, f"fold {i + 1}", "end"))
            parts += _runs(row, y, scale, FILL)
        bottom = TOP + len(self.uses) * ROW
        if self.classes:
            names = list(dict.fromkeys(self.classes))
            fill = {n: _shade(k, len(names)) for k, n in enumerate(names)}
            parts.append(_text(LEFT - 8, bottom + ROW / 2 + 7, "class", "end"))
            parts += _runs(self.classes, bottom + 4, scale, fill)
            bottom += ROW + 4
        parts.append(_text(LEFT, bottom + 16, "sample 0", "start"))
        parts.append(_text(WIDTH - 16, bottom + 16, f"sample {count - 1}", "end"))
        return _picture(parts, bottom + 28)


def _shade(k: int, count: int) -> str:
    level = 90 + round(130 * k / max(1, count - 1))
    return f"rgb({level},{level},{level})"


def _text(x: float, y: float, words: str, anchor: str, bold: bool = False) -> str:
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="12"{weight} '
        f'fill="#222">{escape(words)}</text>'
    )


def _runs(row: Sequence[str], y: float, scale: float, fill: dict[str, str]) -> list[str]:
    """Rectangles for samples next to each other of which the same is true."""
    parts, start = [], 0
    for kind, group in groupby(row):
        length = len(list(group))
        x, width = LEFT + start * scale, length * scale
        title = f"{kind}: {start} to {start + length - 1}"
        parts.append(
            f'<rect x="{x:.2f}" y="{y:.1f}" width="{width:.2f}" height="{ROW - 5}" '
            f'fill="{fill[kind]}"><title>{escape(title)}</title></rect>'
        )
        start += length
    return parts


def _legend(kinds: list[str]) -> list[str]:
    words = {TRAIN: "trained on", TEST: "tested", UNUSED: "not used"}
    parts = []
    for i, kind in enumerate(kinds):
        x = LEFT + 110 * i
        parts.append(f'<rect x="{x}" y="36" width="14" height="12" fill="{FILL[kind]}"/>')
        parts.append(_text(x + 20, 46, words[kind], "start"))
    return parts


def _picture(parts: Sequence[str], height: float) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" '
        f'width="{WIDTH}" height="{height:.0f}" role="img" aria-label="Folds" '
        "font-family=\"Helvetica,Arial,'Liberation Sans',sans-serif\">"
        f'<rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>'
    )


@instrument("V42", needs=("splits",))
def folds(splits: Any, data: Any = None, targets: Any = None, groups: Any = None) -> Folds:
    """Which samples are trained on and which are tested in each fold, as a diagram.

    Args:
        splits: an object with ``split`` (``data.KFold`` and its kin, scikit-learn's), or pairs of
            indices (train, test).
        data: the samples, or how many; not needed for pairs.
        targets: of the samples; shown below as classes if they are few, and given to ``split``.
        groups: given to ``split``.

    >>> from chainrule import data, inspect
    >>> seen = inspect.folds(data.KFold(3), 9)
    >>> seen.uses[0][:4], set(seen.tested)
    (['test', 'test', 'test', 'train'], {1})
    """
    pairs = _pairs(splits, data, targets, groups)
    if not pairs:
        raise ValueError("folds: there are none")
    lists = [tuple([int(i) for i in part] for part in pair) for pair in pairs]
    count = 1 + max((i for pair in lists for part in pair for i in part), default=-1)
    count = max(count, _length(data), 0 if targets is None else len(targets))
    if not count or min((i for pair in lists for part in pair for i in part), default=0) < 0:
        raise ValueError("folds: indices must be numbers of samples, from 0")
    uses = []
    for n, (train, test) in enumerate(lists):
        both = set(train) & set(test)
        if both:
            raise ValueError(
                f"folds: sample {min(both)} is both trained on and tested in fold {n + 1}; the "
                "test would show what was learned by heart"
            )
        row = [UNUSED] * count
        for i in train:
            row[i] = TRAIN
        for i in test:
            row[i] = TEST
        uses.append(row)
    return Folds(uses, _classes(targets, count))


def _length(data: Any) -> int:
    if data is None:
        return 0
    return data if isinstance(data, int) else len(data)


def _pairs(splits: Any, data: Any, targets: Any, groups: Any) -> list[Any]:
    if hasattr(splits, "split"):
        if data is None:
            raise TypeError("folds: data is missing; give the samples, or how many there are")
        x = zeros(data, 1).numpy() if isinstance(data, int) else data
        return list(splits.split(x, targets, groups))
    if not isinstance(splits, Iterable):
        raise TypeError(
            f"folds: splits must have a method split or be pairs of indices, got "
            f"{type(splits).__name__}"
        )
    pairs = [tuple(pair) for pair in splits]
    if any(len(pair) != 2 for pair in pairs):
        raise TypeError("folds: splits must be pairs (train indices, test indices)")
    return pairs


def _classes(targets: Any, count: int) -> list[str]:
    if targets is None:
        return []
    listed = targets.tolist() if hasattr(targets, "tolist") else list(targets)
    if len(listed) != count:
        raise ValueError(f"folds: {len(listed)} targets for {count} samples")
    words = any(isinstance(v, str) for v in listed)
    numbers = not words and as_tensor(listed).dtype.is_floating_point
    return [] if numbers or len(set(listed)) > 12 else [str(v) for v in listed]
