"""How the rows of a summary are printed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule.inspect.structure.amounts import amount, size
from chainrule.inspect.structure.rows import Row
from chainrule.printing import text_table

__all__ = ["COLUMNS", "shape_text", "table"]

WIDEST = 30  # of a cell with shapes


def shape_text(value: Any) -> str:
    """Shapes as they are written, with names where they have some."""
    if value is None:
        return "-"
    if isinstance(value, tuple):
        return f"({', '.join(map(str, value))}{',' * (len(value) == 1)})"
    if isinstance(value, dict):
        parts = [f"{name} {shape_text(v)}" for name, v in value.items() if v is not None]
    else:
        parts = [shape_text(v) for v in value if v is not None]
    if len(parts) > 2 and len(set(parts)) == 1:
        return f"{len(parts)} x {parts[0]}"
    text = " ".join(parts)
    if len(text) <= WIDEST:
        return text or "-"
    kept = [parts[0]]
    for part in parts[1:]:
        if len(" ".join([*kept, part])) > WIDEST - 8:
            break
        kept.append(part)
    return f"{' '.join(kept)} +{len(parts) - len(kept)} more" if len(kept) < len(parts) else text


def _parameters(row: Row) -> str:
    if row.reused and row.shared:
        return "reused"
    if not row.parameters:
        return "shared" if row.shared else "-"
    return f"{row.parameters:,}{' +shared' * row.shared}"


def _macs(row: Row) -> str:
    return amount(row.macs) if row.macs else "-"


def _flops(row: Row) -> str:
    if row.unknown:
        return "unknown"
    return amount(row.flops) if row.flops else "-"


def _field(row: Row) -> str:
    return "-" if row.receptive_field is None else "x".join(map(str, row.receptive_field))


# By name: what stands above, what stands in a row, and whether it is text.
COLUMNS: dict[str, tuple[str, Callable[[Row], str], bool]] = {
    "input": ("input", lambda r: shape_text(r.input), True),
    "output": ("output", lambda r: shape_text(r.output), True),
    "parameters": ("parameters", _parameters, False),
    "trainable": ("trainable", lambda r: f"{r.trainable:,}" if r.trainable else "-", False),
    "macs": ("multiply-adds", _macs, False),
    "flops": ("FLOPs", _flops, False),
    "memory": ("memory", lambda r: size(r.memory) if r.memory else "-", False),
    "receptive_field": ("sees", _field, False),
    "initializer": ("initializer", lambda r: r.initializer or "-", True),
}


def _label(row: Row) -> str:
    mark = "! " if row.failed else ""
    if row.depth == 0:
        return f"{mark}{row.kind}"
    return f"{'  ' * row.depth}{mark}{row.name} {row.kind}"


def table(rows: list[Row], columns: tuple[str, ...]) -> str:
    """The rows with these columns; those of text come first in each line."""
    ordered = [c for c in columns if COLUMNS[c][2]] + [c for c in columns if not COLUMNS[c][2]]
    header = ["layer", *[COLUMNS[c][0] for c in ordered]]
    lines = [[_label(row), *[COLUMNS[c][1](row) for c in ordered]] for row in rows]
    left = 1 + sum(COLUMNS[c][2] for c in ordered)
    return text_table(header, lines, left=left, rule=True)
