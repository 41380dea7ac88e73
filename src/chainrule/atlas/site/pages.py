"""The index and the page of an entry."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape

from chainrule.atlas.core.claims import VERDICTS, Judged
from chainrule.atlas.core.registry import COURSES, GROUPS, Entry
from chainrule.atlas.core.running import FILES, Record
from chainrule.atlas.core.sources import code_of, public_names
from chainrule.atlas.site.code import colored
from chainrule.atlas.site.sizes import Size
from chainrule.atlas.site.style import INDEX_SCRIPT, PAGE_SCRIPT, STYLE
from chainrule.atlas.site.summary import summary_rows
from chainrule.inspect.core.pages import page
from chainrule.version import __version__

__all__ = ["Shown", "entry_page", "index_page"]

Shown = tuple[Entry, Record]
SHRINK = 0.55  # of its size: words of 10 points are then 7 pixels high


def _badge(verdict: str) -> str:
    return f'<span class="badge {verdict.replace(" ", "-")}">{verdict}</span>'


def _paragraphs(text: str) -> str:
    """Paragraphs, with what stands between double backticks as code."""
    marked = re.sub(r"``(.+?)``", r"<code>\1</code>", escape(text))
    return "".join(f"<p>{' '.join(part.split())}</p>" for part in marked.split("\n\n"))


# --- the index ------------------------------------------------------------------------------------


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Cells are HTML already."""
    first = "".join(f"<th>{cell}</th>" for cell in head)
    body = "".join(
        "<tr>"
        + "".join(f'<td data-head="{h}">{c}</td>' for h, c in zip(head, row, strict=True))
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{first}</tr></thead><tbody>{body}</tbody></table>"


def _choice(name: str, values: Sequence[str], words: Sequence[str]) -> str:
    options = "".join(
        f'<option value="{escape(v)}">{escape(w)}</option>'
        for v, w in zip(values, words, strict=True)
    )
    return (
        f'<select name="{name}" aria-label="{name}"><option value="">any {name}</option>'
        f"{options}</select>"
    )


def _card(entry: Entry, record: Record) -> str:
    words = " ".join([entry.id, entry.title, entry.course, entry.printed, entry.explanation])
    picture = f"{FILES}/{entry.id}/{record.pictures[0]}" if record.pictures else ""
    courses = " ".join(entry.courses)
    return (
        f'<li data-course="{courses}" data-group="{entry.group}" '
        f'data-verdict="{record.verdict}" data-words="{escape(words.lower())}">'
        f'<a href="{entry.id}.html"><span class="thumb"><img loading="lazy" src="{picture}" '
        f'alt=""></span><span class="about"><b>{escape(entry.title)}</b>'
        f'<span class="row"><span class="soft">{entry.id} · {entry.course}, '
        f"{escape(entry.printed)}</span>{_badge(record.verdict)}</span></span></a></li>"
    )


def index_page(shown: Sequence[Shown]) -> str:
    """All entries with thumbnails, a search, and filters by course, group and verdict."""
    rows = summary_rows([(e.group, r.verdict) for e, r in shown])
    controls = (
        '<form hidden><input name="words" type="search" aria-label="search" '
        'placeholder="search (key /)">'
        + _choice("course", [*COURSES], [f"{k}: {v}" for k, v in COURSES.items()])
        + _choice("group", [*GROUPS], [*GROUPS])
        + _choice("verdict", VERDICTS, VERDICTS)
        + "</form>"
    )
    body = (
        "<p>What five courses on neural networks draw, measure and print, computed anew beside "
        f"what they say. Every verdict follows from numbers. chainrule {__version__}; the same as "
        '<a href="atlas.json">atlas.json</a>; <a href="api.html">functions that are used</a>.</p>'
        f"<details><summary>Summary</summary>{_table(['group', *VERDICTS, 'all'], rows)}</details>"
        f'{controls}<p id="count" class="soft" role="status">{len(shown)} entries</p>'
        f'<ul class="cards">{"".join(_card(e, r) for e, r in shown)}</ul>'
        f"<script>{INDEX_SCRIPT}</script>"
    )
    return page("Atlas of five courses on neural networks", body, STYLE)


# --- an entry -------------------------------------------------------------------------------------


def _claim_row(j: Judged) -> list[str]:
    kind = {"holds": "reproduced", "the printed form holds": "reproduced", "erratum": "erratum"}
    style = kind.get(j.finding, "not-checked" if j.finding == "not checked" else "not-reproduced")
    finding = f'<span class="{style}">{j.finding}</span>'
    note = f'<br><span class="soft">{escape(j.note)}</span>' if j.note else ""
    return [escape(j.name), escape(j.printed), escape(j.obtained), f"{finding}{note}"]


def _size(size: Size | None) -> str:
    """The size of a picture on a page: on a narrow one it shrinks, but not until nobody can read
    it; from there on it is moved sideways in its box."""
    if size is None:
        return ""
    width, height = size
    return f' width="{width}" height="{height}" style="min-width:{round(SHRINK * width)}px"'


def _pictures(entry: Entry, record: Record, sizes: Mapping[str, Size]) -> str:
    folder = f"{FILES}/{entry.id}"
    images = "".join(
        f'<div class="picture"><a href="{folder}/{name}" title="the picture alone">'
        f'<img src="{folder}/{name}" alt="{escape(entry.title)}"{_size(sizes.get(name))}></a></div>'
        for name in record.pictures
    )
    films = "".join(
        f'<p><a href="{folder}/{name}">Step through it</a> (arrow keys)</p>'
        f'<iframe loading="lazy" src="{folder}/{name}" title="{escape(entry.title)}"></iframe>'
        for name in record.films
    )
    return images + films


def _made(entry: Entry, record: Record) -> str:
    """How it was made: size, settings, seeds, time, the way to do it again."""
    settings = ", ".join(f"{k} = {v}" for k, v in record.settings.items())
    chosen = f" ({escape(settings)})" if settings else ""
    seconds = f"{record.seconds:.1f} s" if record.seconds >= 0.1 else "less than 0.1 s"
    other = ", ".join(
        f"{k} = {'as many as the course has' if v is None else v}" for k, v in entry.full.items()
    )
    size = "full" if record.full else "quick"
    more = f" The full settings are {escape(other)}." if other and not record.full else ""
    command = f"chainrule atlas {entry.id}{' --full' if record.full else ''}"
    return (
        f'<p class="soft">Computed at {size} settings{chosen} from seed 0 in {seconds}.{more} '
        f"Again: <code>{command}</code></p>"
    )


def entry_page(
    entry: Entry,
    record: Record,
    before: Entry | None = None,
    after: Entry | None = None,
    sizes: Mapping[str, Size] | None = None,
) -> str:
    """One entry: picture, printed against obtained, explanation, code. ``sizes`` are those of its
    pictures, by their names."""
    ways = '<a rel="up" href="index.html">All entries</a>'
    if before is not None:
        ways = f'<a rel="prev" href="{before.id}.html">← {before.id}</a> {ways}'
    if after is not None:
        ways += f' <a rel="next" href="{after.id}.html">{after.id} →</a>'
    names = "".join(
        f'<li><a href="api.html#{escape(name)}">{escape(name)}</a></li>'
        for name in public_names(entry)
    )
    note = f"<p><b>Note.</b> {escape(record.note)}</p>" if record.note else ""
    table = _table(
        ["claim", "printed", "obtained", "finding"], [_claim_row(j) for j in record.judged]
    )
    body = (
        f'<nav class="ways">{ways}</nav><p>{_badge(record.verdict)} '
        f"<span>{entry.id} · course {entry.course} ({COURSES[entry.course]}), "
        f"{escape(entry.printed)}</span></p>{_pictures(entry, record, sizes or {})}"
        f'<h2>Printed and obtained</h2><div class="claims">{table}</div>{note}'
        f"<h2>What it shows</h2>{_paragraphs(entry.explanation)}{_made(entry, record)}"
        f"<h2>The code that made it</h2>"
        f'<pre tabindex="0"><code>{colored(code_of(entry))}</code></pre>'
        + (f"<h2>What it calls</h2><ul>{names}</ul>" if names else "")
        + f"<script>{PAGE_SCRIPT}</script>"
    )
    return page(entry.title, body, STYLE)
