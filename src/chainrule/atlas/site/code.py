"""Python source as HTML, and what the library says of the names in it."""

from __future__ import annotations

import inspect
import io
import keyword
import tokenize
from collections.abc import Mapping
from html import escape
from typing import Any

__all__ = ["api_body", "colored"]


def _kind(token: tokenize.TokenInfo) -> str:
    if token.type == tokenize.COMMENT:
        return "c"
    if token.type == tokenize.STRING:
        return "s"
    if token.type == tokenize.NAME and keyword.iskeyword(token.string):
        return "k"
    return ""


def colored(source: str) -> str:
    """Source with keywords, strings and comments marked."""
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    parts, at = [], 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        kind = _kind(token)
        if not kind:
            continue
        first = starts[token.start[0] - 1] + token.start[1]
        last = starts[token.end[0] - 1] + token.end[1]
        parts += [escape(source[at:first]), f'<span class="{kind}">']
        parts += [escape(source[first:last]), "</span>"]
        at = last
    return "".join([*parts, escape(source[at:])])


def _signature(name: str, value: Any) -> str:
    try:
        return f"{name}{inspect.signature(value)}"
    except (TypeError, ValueError):  # of what is written in C
        return f"{name}(...)"


def api_body(names: Mapping[str, Any], users: Mapping[str, list[str]]) -> str:
    """What the library says of each name, and which entries use it."""
    parts = [
        '<p class="ways"><a rel="up" href="index.html">All entries</a></p>'
        "<p>The functions and classes that the entries of the atlas call, as the library "
        "documents them.</p>"
    ]
    for name, value in names.items():
        links = " ".join(f'<a href="{id}.html">{id}</a>' for id in users[name])
        parts.append(
            f'<section id="{escape(name)}"><h2>{escape(name)}</h2>'
            f"<pre><code>{colored(_signature(name.rpartition('.')[2], value))}</code></pre>"
            f"<pre>{escape(inspect.cleandoc(value.__doc__ or ''))}</pre>"
            f'<p class="soft">used by {links}</p></section>'
        )
    return "".join(parts)
