"""How many entries of each group have which verdict: on the index, and in pages of Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from chainrule.atlas.core.claims import VERDICTS
from chainrule.atlas.core.registry import GROUPS

__all__ = ["HEAD", "summary_rows", "with_summary"]

HEAD = ["group", *VERDICTS, "all"]
BEGIN, END = "<!-- summary -->", "<!-- end -->"  # between these a page has the table

Found = Sequence[tuple[str, str]]  # group and verdict of every entry


def summary_rows(found: Found) -> list[list[str]]:
    """How many entries of each group have which verdict, from (group, verdict) pairs."""
    counts = Counter(found)
    rows = []
    for group in GROUPS:
        each = [counts[group, verdict] for verdict in VERDICTS]
        rows.append([group, *map(str, each), str(sum(each))])
    total = [sum(int(row[k]) for row in rows) for k in range(1, len(HEAD))]
    return [*rows, ["all", *map(str, total)]]


def with_summary(text: str, found: Found) -> str:
    """A page of Markdown with the table between its two marks, in place of what was there.

    Raises ValueError if the page has not each of the marks once, and in their order.
    """
    before, begin, rest = text.partition(f"{BEGIN}\n")
    _, end, after = rest.partition(END)
    if not begin or not end or BEGIN in rest:
        raise ValueError(f"has no place for the summary: a line {BEGIN} and, below it, {END}")
    rows = [HEAD, ["---"] * len(HEAD), *summary_rows(found)]
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return f"{before}{begin}{table}\n{end}{after}"
