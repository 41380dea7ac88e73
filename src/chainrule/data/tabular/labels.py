"""Lists of labels in a cell, and columns of two answers."""

from __future__ import annotations

from chainrule.backend import dtypes
from chainrule.data.columns import NUMBER, Column, TableError
from chainrule.ops.core.promotion import cast
from chainrule.ops.creation.from_data import tensor
from chainrule.tensor import Tensor

__all__ = ["has_label_lists", "is_yes_or_no", "label_rows", "truths"]

SEPARATORS = (";", "|", ",")
YES, NO = {"1", "true", "yes", "y", "t"}, {"0", "false", "no", "n", "f"}
MANY_LABELS = 200


def has_label_lists(column: Column) -> bool:
    """Whether a column of text holds lists like "red;blue" of labels that occur again and again."""
    if column.kind == NUMBER:
        return False
    counts = column.counts()
    for mark in SEPARATORS[:2]:  # a comma may be part of a name
        lists = {words: n for words, n in counts.items() if mark in words}
        if not lists:
            continue
        rows = sum(counts.values())
        often: dict[str, int] = {}
        for words, n in counts.items():
            for label in _split(words, mark):
                often[label] = often.get(label, 0) + n
        common = sum(n >= 2 for n in often.values())
        if 10 * sum(lists.values()) >= rows and common >= 0.8 * len(often) > 1:
            return len(often) <= MANY_LABELS
    return False


def label_rows(column: Column, separator: str | None = None) -> tuple[str, list[list[str]]]:
    """The separator that stands in most rows, and the labels of each row.

    A missing cell has no labels.
    """
    text = column.as_category()
    if separator is None:
        found = {m: sum(n for w, n in text.counts().items() if m in w) for m in SEPARATORS}
        separator = max(SEPARATORS, key=lambda m: found[m])
    known = [_split(word, separator) for word in text.words]
    many = {label for labels in known for label in labels}
    if len(many) > MANY_LABELS:
        raise TableError(
            f"the target {column.name!r} has {len(many)} different labels (separated by "
            f"{separator!r}); at most {MANY_LABELS} can be learned: drop or merge rare ones"
        )
    known.append([])  # at -1
    return separator, [known[code] for code in text.codes.tolist()]


def _split(words: str, mark: str) -> list[str]:
    return list(dict.fromkeys(w.strip() for w in words.split(mark) if w.strip()))


def is_yes_or_no(column: Column) -> bool:
    """Whether a column holds two answers: 0 and 1, yes and no, true and false."""
    found = {str(word).lower() for word in column.as_category().counts()}
    return bool(found) and found <= YES | NO


def truths(column: Column) -> Tensor:
    """1 where the answer is yes, else 0, as numbers of the default type."""
    text = column.as_category()
    words = [str(word).lower() for word in text.words]
    unknown = sorted(
        {w for w in words if w not in YES | NO}.intersection(map(str.lower, text.counts()))
    )
    if unknown:
        raise TableError(
            f"the target {column.name!r} was 0 and 1 in training, now it has {unknown[0]!r}"
        )
    known = tensor([*[float(w in YES) for w in words], 0.0])
    return cast(known[text.codes.long()], dtypes.get_default_dtype())
