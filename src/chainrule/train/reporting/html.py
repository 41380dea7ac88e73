"""Tables and sections of a page, and how they look."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any

from chainrule.printing import readable

__all__ = ["STYLE", "Section", "framed", "note", "number", "section", "table", "table_of"]

# Beside the style that all pages have: wide enough for two charts, and one below the other on a
# phone.
STYLE = """
body{max-width:74rem;padding:1rem 1.2rem 3rem}
h1{font-size:1.6rem;margin:.6rem 0 0}h2{font-size:1.2rem;margin:0 0 .5rem}
h3{font-size:1rem;margin:1rem 0 .3rem}p{margin:.3rem 0 .7rem}
section{border-top:1px solid var(--line);margin-top:1.6rem;padding-top:1rem}
a{color:var(--mark)}.links{display:flex;flex-wrap:wrap;gap:.2rem 1rem;font-size:.9rem}
.tiles{display:flex;flex-wrap:wrap;gap:.8rem;margin:.8rem 0}
.tile{border:1px solid var(--line);border-radius:8px;padding:.5rem 1rem;min-width:8.5rem}
.tile span{display:block;font-size:.8rem}
.tile b{display:block;font-size:1.5rem;font-variant-numeric:tabular-nums;line-height:1.3}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr));gap:1rem}
.charts>*{min-width:0}figure{margin:0;max-width:36rem}figure svg{width:100%}
figure.own svg{width:auto}
figcaption{color:var(--soft);font-size:.9rem}
table{border-collapse:collapse;width:fit-content}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}th{font-weight:600}
pre{background:color-mix(in srgb,var(--ink) 6%,var(--ground));border-radius:6px;padding:.7rem}
.beside{display:flex;flex-wrap:wrap;gap:1rem 2rem;align-items:flex-start}
.beside>*{max-width:100%}.beside>div{flex:1 1 20rem;min-width:0}
.threshold label{display:flex;gap:.8rem;align-items:center;max-width:36rem}
.threshold input{flex:1;min-width:6rem;accent-color:var(--mark)}
.threshold output{font-size:1rem;color:inherit;margin:.3rem 0}
.tools{display:flex;flex-wrap:wrap;gap:.3rem;margin:.2rem 0}
.tools button{font-size:.8rem;padding:.1rem .55rem}
.tools button[aria-pressed=true]{background:var(--mark);color:var(--ground)}
.curves:focus-visible{outline:2px solid var(--mark);border-radius:6px}
.curves svg{touch-action:pan-y;cursor:crosshair}
output{display:block;min-height:1.4em;font-size:.85rem;color:var(--soft);
font-variant-numeric:tabular-nums}
.cases{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,20rem),1fr));gap:.8rem}
.case{border:1px solid var(--line);border-radius:8px;padding:.6rem .8rem;font-size:.9rem}
.case>*{overflow-wrap:anywhere}.case table{width:100%;overflow-wrap:normal}
.case td,.case th{padding:.05rem .3rem;white-space:nowrap;max-width:7.5rem;overflow:hidden;
text-overflow:ellipsis}
.case .n:last-child,.case td:first-child{color:var(--soft)}
.pair{display:flex;gap:.8rem;margin-top:.4rem}
.pair img{width:6rem;height:6rem;object-fit:contain;image-rendering:pixelated;
border:1px solid var(--line)}.pair figcaption{font-size:.8rem}
.verdict{border-left:6px solid var(--mark);border-radius:4px;padding:.5rem 1rem;margin:.8rem 0;
background:color-mix(in srgb,var(--mark) 9%,var(--ground))}
.verdict p{font-size:1.25rem;line-height:1.35;margin:0;font-weight:600}
.verdict.worse{border-color:#E69F00;background:color-mix(in srgb,#E69F00 11%,var(--ground))}
.verdict.nothing{border-color:#D55E00;
background:color-mix(in srgb,#D55E00 9%,var(--ground))}
ul{margin:.4rem 0 .8rem;padding-left:1.2rem}li{margin:.15rem 0}
code{font:.9em ui-monospace,monospace;background:color-mix(in srgb,var(--ink) 8%,var(--ground));
border-radius:3px;padding:0 .25em}
.finding{border-left:4px solid #E69F00;padding:.1rem .8rem;margin:.6rem 0}
.finding.error{border-color:#D55E00}
@media (max-width:30rem){td,th{padding:.15rem .3rem;font-size:.88rem}.tile{min-width:7rem}
body{padding:.6rem .8rem 2rem}}
@media print{.tools,output,.links{display:none}}
"""

Section = tuple[str, str]  # its title and what it holds; nothing, if there is nothing to show


def number(value: Any) -> str:
    """A number for people, anything else as text."""
    return readable(value) if isinstance(value, float) else str(value)


def note(text: str) -> str:
    """A line that is less important."""
    return f'<p class="soft">{escape(text)}</p>'


def framed(*charts: str) -> str:
    """Charts beside each other, below each other on a phone."""
    figures = "".join(f"<figure>{chart}</figure>" for chart in charts if chart)
    return f'<div class="charts">{figures}</div>'


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], numbers: bool = True) -> str:
    """A table; with numbers, all columns but the first are set to the right."""
    return table_of(head, [[escape(number(v)) for v in row] for row in rows], numbers)


def table_of(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: bool = True) -> str:
    """A table whose cells are pieces of HTML."""

    def cell(tag: str, i: int, text: str) -> str:
        mark = ' class="n"' if numbers and i else ""
        return f"<{tag}{mark}>{text}</{tag}>"

    lines = [
        '<table tabindex="0"><tr>'
        + "".join(cell("th", i, escape(h)) for i, h in enumerate(head))
        + "</tr>"
    ]
    lines += ["<tr>" + "".join(cell("td", i, v) for i, v in enumerate(r)) + "</tr>" for r in rows]
    return "".join(lines) + "</table>"


def section(title: str, make: Callable[[], str]) -> Section:
    """A section; where it cannot be made, it says why: the network is worth more than its page."""
    try:
        return title, make()
    except Exception as error:  # noqa: BLE001 - of a model and of data that may be anything
        return title, note(f"This cannot be shown: {type(error).__name__}: {error}")
