"""Writes the site of what a folder holds."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chainrule.atlas.core.registry import Entry, entries
from chainrule.atlas.core.running import FILES, Record, kept_record
from chainrule.atlas.core.sources import public_names
from chainrule.atlas.site.card import card
from chainrule.atlas.site.code import api_body
from chainrule.atlas.site.pages import Shown, entry_page, index_page
from chainrule.atlas.site.sizes import size_of
from chainrule.atlas.site.style import STYLE
from chainrule.files import write_atomically
from chainrule.inspect.core.pages import page
from chainrule.version import __version__

__all__ = ["write_site"]

CARD = "card.svg"


def write_site(out: Path) -> list[Shown]:
    """Writes index, pages and ``atlas.json`` of all entries that the folder holds; returns them."""
    found = {id: kept_record(out, id) for id in entries()}
    shown = [(entries()[id], _with_card(out, r)) for id, r in found.items() if r is not None]
    for k, (entry, record) in enumerate(shown):
        before = shown[k - 1][0] if k else None
        after = shown[k + 1][0] if k + 1 < len(shown) else None
        folder = out / FILES / entry.id
        sizes = {name: size_of(folder / name) for name in record.pictures}
        _write(out / f"{entry.id}.html", entry_page(entry, record, before, after, sizes))
    names, users = _api(shown)
    text = page("Functions that the atlas uses", api_body(names, users), STYLE)
    _write(out / "api.html", text)
    _write(out / "atlas.json", json.dumps(_told(shown), indent=1, ensure_ascii=False))
    _write(out / "index.html", index_page(shown))
    return shown


def _write(path: Path, text: str) -> None:
    """Files that are as they should be stay as they are."""
    content = text.encode()
    if not path.is_file() or path.read_bytes() != content:
        write_atomically(path, content)


def _with_card(out: Path, record: Record) -> Record:
    """An entry without a picture gets a card of its findings."""
    if record.pictures:
        return record
    _write(out / FILES / record.id / CARD, card(record.judged))
    return dataclasses.replace(record, pictures=[CARD])


def _api(shown: list[Shown]) -> tuple[dict[str, Any], Mapping[str, list[str]]]:
    names: dict[str, Any] = {}
    users: dict[str, list[str]] = {}
    for entry, _ in shown:
        for name, value in public_names(entry).items():
            names[name] = value
            users.setdefault(name, []).append(entry.id)
    return dict(sorted(names.items())), users


def _told(shown: list[Shown]) -> dict[str, Any]:
    return {"chainrule": __version__, "entries": [_of(entry, record) for entry, record in shown]}


def _of(entry: Entry, record: Record) -> dict[str, Any]:
    about = {
        "title": entry.title,
        "course": entry.course,
        "courses": [*entry.courses],
        "printed": entry.printed,
        "group": entry.group,
        "explanation": entry.explanation,
        "page": f"{entry.id}.html",
    }
    kept = dataclasses.asdict(record)
    folder = f"{FILES}/{entry.id}"
    for kind in ("pictures", "films"):
        kept[kind] = [f"{folder}/{name}" for name in kept[kind]]
    return {"id": entry.id, **about, **{k: v for k, v in kept.items() if k not in ("id", "error")}}
