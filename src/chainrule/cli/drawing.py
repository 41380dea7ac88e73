"""``chainrule atlas``: what the courses show, computed beside what they print."""

from __future__ import annotations

import argparse
import collections
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chainrule.cli.arguments import UserError, check_writable

if TYPE_CHECKING:
    from chainrule.atlas import Entry, Record

__all__ = ["HELP", "add_options", "atlas"]

HELP = "draw and compute what five courses show, beside what they print, as pages"
PAGES = ("index.html", "atlas.json")


class NotComputed(UserError):
    """An entry could not be computed; what the others found is written."""

    status = 1


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add = parser.add_argument
    add("ids", metavar="ID", nargs="*", help="entries such as V10, X06, N07, EX16, ERR044 (all)")
    add("--course", metavar="NUMBER", help="only entries of one course, 000 to 004")
    add("--list", action="store_true", help="name the entries, and compute nothing")
    add("--full", action="store_true", help="experiments at the size that the courses have: hours")
    add("--out", metavar="DIR", default="chainrule-atlas", help="where to write (chainrule-atlas)")
    add("--jobs", metavar="N", type=int, help="entries at once (as many as cores, at most 4)")
    add("--data", metavar="DIR", help="the folder with the files of MNIST, for --full")
    add(
        "--device",
        metavar="NAME",
        help="where --full trains the networks that take hours on a CPU, such as cuda",
    )
    add(
        "--summary",
        metavar="FILE",
        action="append",
        default=[],
        help="write how many entries have which verdict into a page of Markdown, between the lines "
        "<!-- summary --> and <!-- end -->; may be given again",
    )


def atlas(options: argparse.Namespace) -> Any:
    """Computes entries, writes the site, and says what came out."""
    from chainrule.atlas import choose

    try:
        chosen = choose(options.ids, options.course)
    except ValueError as error:
        raise UserError(str(error).removeprefix("choose: ")) from None
    if options.list:
        return _listed(chosen, options)
    out = Path(options.out)
    data = _checked(options, chosen, out)
    _check_summary(options)
    return _told(_run(options, chosen, out, data), out, options)


def _listed(chosen: Sequence[Entry], options: argparse.Namespace) -> Any:
    if not options.json:
        for entry in chosen:
            where = f"{entry.course}, {entry.printed}"
            where = where if len(where) <= 34 else where[:33].rstrip() + "…"
            print(f"{entry.id:<7} {where:<34}  {entry.title}")
    return [
        {
            "id": e.id,
            "group": e.group,
            "course": e.course,
            "printed": e.printed,
            "title": e.title,
            "claims": [c.name for c in e.claims],
        }
        for e in chosen
    ]


def _checked(options: argparse.Namespace, chosen: Sequence[Entry], out: Path) -> Path | None:
    """Looks before any work is done whether it can be done; returns the folder of the data."""
    from chainrule import charts
    from chainrule.atlas.core.running import FILES

    if not charts.available():
        raise UserError("pictures need matplotlib: pip install 'chainrule[plot]'")
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise UserError(f"pictures need matplotlib, which cannot be loaded: {error}") from None
    if not options.out:
        raise UserError("--out: an empty name; give the name of a folder")
    if options.jobs is not None and options.jobs < 1:
        raise UserError(f"--jobs {options.jobs}: at least 1")
    for folder in (out, out / FILES):
        check_writable(folder)
    if (out / PAGES[0]).exists() and not (out / PAGES[1]).exists():
        raise UserError(f"--out {out}: has an {PAGES[0]} that is no atlas; give another folder")
    if options.data == "":
        raise UserError("--data: an empty name; give the folder with the files of MNIST")
    data = None if options.data is None else Path(options.data)
    if data is not None and not data.is_dir():
        raise UserError(f"--data {data}: no such folder")
    if data is not None and not options.full:
        raise UserError(f"--data {data}: files are read with --full alone; give that, too")
    _check_device(options, chosen)
    reading = [e for e in chosen if e.data] if options.full else []
    return _found_data(reading, data) if reading else data


def _check_device(options: argparse.Namespace, chosen: Sequence[Entry]) -> None:
    """Whether there is such a device, and anything to be trained on it."""
    from chainrule.placement import device

    if options.device is None:
        return
    given = f"--device {options.device}"
    if (options.jobs or 1) > 1:
        raise UserError(f"{given}: one process has the device; leave out --jobs {options.jobs}")
    if not options.full:
        raise UserError(f"{given}: only --full has networks that take hours; give that, too")
    if not any([e.keeps_results for e in chosen]):
        raise UserError(f"{given}: none of these entries has networks that take hours")
    try:
        device(options.device)
    except (RuntimeError, ValueError) as error:
        raise UserError(f"{given}: {error}") from None


def _check_summary(options: argparse.Namespace) -> None:
    """Whether the table can be written: of all entries, and into pages that have a place for it."""
    from chainrule.atlas.site.summary import with_summary

    if options.summary and (options.ids or options.course):
        raise UserError("--summary counts all entries: name none of them, and no course")
    for path in options.summary:
        try:
            with_summary(Path(path).read_text("utf-8"), [])
        except OSError as error:
            raise UserError(f"--summary {path}: {error.strerror or error}") from None
        except ValueError as error:
            raise UserError(f"--summary {path}: {error}") from None


def _found_data(reading: Sequence[Entry], data: Path | None) -> Path:
    """The folder with the files that entries read; an error if they are not there."""
    from chainrule.data import MNIST, DatasetError, data_root

    root = data or data_root()
    try:
        MNIST(root, train=False)
    except (DatasetError, FileNotFoundError):
        names = ", ".join(e.id for e in reading)
        raise UserError(
            f"{names} --full reads the files of {', '.join(reading[0].data)}, which are not in "
            f"{root}; give their folder by --data DIR, or name other entries"
        ) from None
    except OSError as error:
        raise UserError(f"--data {root}: {error.strerror or error}: {error.filename}") from None
    return root


def _run(
    options: argparse.Namespace, chosen: Sequence[Entry], out: Path, data: Path | None
) -> list[Record]:
    """Computes with a bar on a terminal; the site is written also when it is interrupted."""
    from tqdm.auto import tqdm

    from chainrule.atlas import run
    from chainrule.atlas.site.writing import write_site

    jobs = options.jobs or (1 if options.device else min(4, os.cpu_count() or 1))
    bar = tqdm(total=len(chosen), disable=True if options.json else None, unit="entry")

    kept: list[str] = []

    def done(record: Record, was_there: bool) -> None:
        if not record.error:
            kept.append(record.id)
        bar.set_postfix_str(record.id, refresh=False)
        bar.update()

    try:
        return run(
            chosen,
            out,
            full=options.full,
            jobs=jobs,
            data=data,
            device=options.device,
            done=done,
        )
    except KeyboardInterrupt:
        bar.close()
        print(
            f"chainrule atlas: {len(kept)} of {len(chosen)} entries are done and kept in {out}; "
            "the same command goes on",
            file=sys.stderr,
        )
        raise
    finally:
        bar.close()
        if out.exists():
            write_site(out)


def _write_summary(records: Sequence[Record], paths: Sequence[str]) -> None:
    from chainrule.atlas import entries
    from chainrule.atlas.site.summary import with_summary
    from chainrule.files import write_atomically

    found = [(entries()[r.id].group, r.verdict) for r in records]
    for path in map(Path, paths):
        write_atomically(path, with_summary(path.read_text("utf-8"), found).encode())


def _why(record: Record) -> list[str]:
    """The claims that do not hold; how many could not be checked."""
    wrong = [j.name for j in record.judged if j.finding == "does not hold"]
    left = sum(j.finding == "not checked" for j in record.judged)
    return [*wrong, f"{left} of {len(record.judged)} claims are not checked"] if left else wrong


def _told(records: Sequence[Record], out: Path, options: argparse.Namespace) -> Any:
    from chainrule.atlas.core.claims import VERDICTS

    failed = [r for r in records if r.error]
    counts = collections.Counter(r.verdict for r in records if not r.error)
    if not options.json:
        for record in records:
            if record.verdict in ("in part", "not reproduced") and not record.error:
                print(f"{record.id:<7} {record.verdict}: {'; '.join(_why(record))}")
        print(", ".join(f"{counts[v]} {v}" for v in VERDICTS if counts[v]))
        print(f"open {out / PAGES[0]}")
    if failed:
        for record in failed:
            print(record.error, file=sys.stderr)
        raise NotComputed(f"{', '.join(r.id for r in failed)} could not be computed")
    _write_summary(records, options.summary)
    return {"out": str(out), "verdicts": {r.id: r.verdict for r in records}}
