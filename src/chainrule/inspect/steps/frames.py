"""The pages of back-propagation: one operation each, with its numbers as colored tables."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from chainrule.inspect.steps.formulas import FORMULAS
from chainrule.inspect.steps.scenes import number, shade
from chainrule.tensor import Tensor

if TYPE_CHECKING:
    from chainrule.inspect.steps.backprop import BackwardStep, ForwardStep

__all__ = ["backward_frame", "forward_frame"]

ROWS, COLUMNS = 8, 10  # of a table; more is cut


def forward_frame(step: ForwardStep, path: Sequence[str], count: int) -> str:
    """One operation on the way to the loss."""
    parts = [_rail(path, step.number, back=False)]
    parts.append(_title(f"Forward {step.number} of {count}", step.operation, step.layer, 0))
    inputs = "".join(_figure(name, value) for name, value in step.inputs)
    result = _figure(f"#{step.number}", step.value)
    parts.append(f'<div class="flow">{inputs}<span class="soft">gives</span>{result}</div>')
    return "".join(parts)


def backward_frame(step: BackwardStep, path: Sequence[str], count: int) -> str:
    """One operation on the way back."""
    parts = [_rail(path, step.of, back=True)]
    title = f"Backward {step.number} of {count}"
    parts.append(_title(title, f"{step.operation} (#{step.of})", step.layer, 1, step.operation))
    parts.append(f'<div class="flow">{_figure("gradient that reaches it", step.gradient)}')
    for h in step.handed:
        size = f"{step.gradient.numel()} x {h.gradient.numel()}"
        note = f"the derivative for {h.to} is a matrix of {size}, too large to be shown"
        local = f'<p class="soft">{escape(note)}</p>'
        if h.local is not None:
            local = _figure(f"{h.kind} for {h.to}", h.local)
        parts.append(f"{local}{_figure(f'handed to {h.to}', h.gradient)}")
    parts.append("</div>")
    return "".join(parts)


def _title(head: str, operation: str, layer: str, side: int, name: str = "") -> str:
    formula = FORMULAS.get(name or operation)
    where = f" of <b>{escape(layer)}</b>" if layer else ""
    text = f"<h2>{escape(head)}: {escape(operation)}{where}</h2>"
    return text + (f"<p>{escape(formula[side])}</p>" if formula else "")


def _rail(path: Sequence[str], at: int, back: bool) -> str:
    """All operations in a row, with the place marked."""
    items = [
        f'<b style="color:var({"--other" if back else "--mark"})">{escape(name)}</b>'
        if i + 1 == at
        else f"<span>{escape(name)}</span>"
        for i, name in enumerate(path)
    ]
    arrow = " ← " if back else " → "
    return f'<p class="soft" style="font-size:.85rem">{arrow.join(items)}</p>'


def _figure(name: str, value: Tensor) -> str:
    """A tensor as a table whose cells are colored by their values."""
    shape = tuple(value.shape)
    shown, note = value.detach(), ""
    while shown.ndim > 2:
        shown, note = shown[0], "first of each of the outer dimensions"
    grid = shown.reshape(1, -1) if shown.ndim < 2 else shown
    if grid.shape[0] > ROWS or grid.shape[1] > COLUMNS:
        note += "; " if note else ""
        note += f"the first {min(ROWS, grid.shape[0])} x {min(COLUMNS, grid.shape[1])}"
    largest = float(value.detach().abs().max()) if value.numel() else 0.0
    rows = "".join(
        "<tr>" + "".join(_cell(float(v), largest) for v in row[:COLUMNS]) + "</tr>"
        for row in grid[:ROWS]
    )
    about = f'<div class="soft" style="font-size:.75rem">{escape(note)}</div>' if note else ""
    size = f" {shape}" if shape else ""
    return (
        '<figure style="margin:.4rem;display:inline-block;vertical-align:top;max-width:100%">'
        f"<figcaption>{escape(name)}<span class=soft>{escape(size)}</span></figcaption>"
        f'<table style="font:12px ui-monospace,monospace">{rows}</table>{about}</figure>'
    )


def _cell(value: float, largest: float) -> str:
    color = shade(value, largest)
    return f'<td style="background:{color};color:#111" title="{value:.9g}">{number(value)}</td>'
