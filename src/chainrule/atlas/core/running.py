"""Computing entries: one after another or several at once, each kept as soon as it is done."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import io
import json
import math
import multiprocessing
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from chainrule import random
from chainrule.atlas.core.claims import Judged
from chainrule.atlas.core.keep import NOT_KEPT, Keep
from chainrule.atlas.core.pictures import close_all, files_of
from chainrule.atlas.core.registry import Entry, Outcome, entries
from chainrule.atlas.core.sources import key_of
from chainrule.backend.threads import get_num_threads, set_num_threads
from chainrule.files import write_atomically
from chainrule.inspect.core.results import plain

__all__ = ["Record", "compute", "kept_record", "run"]

FILES = "files"  # the folder with what entries computed and drew
SHARED = "kept"  # the folder with what takes long, and entries share
RECORD = "record.json"


@dataclass(frozen=True)
class Record:
    """What is kept of an entry: its findings, and the names of its pictures.

    ``error`` has the traceback of an entry that could not be computed; nothing of it is kept.
    """

    id: str
    key: str
    full: bool
    settings: dict[str, Any]
    verdict: str
    judged: list[Judged]
    obtained: dict[str, Any]
    pictures: list[str] = field(default_factory=list)
    films: list[str] = field(default_factory=list)
    note: str = ""
    seconds: float = 0.0
    error: str = ""


def compute(
    entry: Entry, full: bool = False, data: Path | None = None, keep: Keep = NOT_KEPT
) -> Outcome:
    """Runs an entry from the seed 0, silently; the random numbers of others are not touched.

    Files, in the folder ``data``, are read by full runs alone; ``keep`` has
    what takes long.
    """
    settings = entry.settings(full)
    if entry.reads_files:
        settings["data"] = data if full else None
    if entry.keeps_results:
        settings["keep"] = keep
    # Programs of the courses print their tables.
    with random.fork_rng(), contextlib.redirect_stdout(io.StringIO()):
        random.manual_seed(0)
        return entry.function(**settings)


def kept_record(out: Path, id: str) -> Record | None:
    """What the folder has of an entry; None if that is nothing, or not whole."""
    folder = out / FILES / id
    try:
        told = json.loads((folder / RECORD).read_text("utf-8"))
        told["judged"] = [Judged(**j) for j in told["judged"]]
        record = Record(**told)
    except (OSError, ValueError, TypeError, KeyError):
        return None
    names = [*record.pictures, *record.films]
    return record if all([(folder / name).is_file() for name in names]) else None


def _is_done(entry: Entry, out: Path, full: bool) -> Record | None:
    """What was computed before, if that is current. A quick run does not take the place of a full
    one, which may have taken hours."""
    record = kept_record(out, entry.id)
    if record is None:
        return None
    return record if record.key in {key_of(entry, full), key_of(entry, True)} else None


def _finite(value: Any) -> Any:
    """JSON has no infinity: such numbers are written as text."""
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_finite(v) for v in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _write(entry: Entry, outcome: Outcome, full: bool, out: Path, seconds: float) -> Record:
    """Writes the pictures and, when they are whole, the record."""
    files = [f for i, drawn in enumerate(outcome.pictures) for f in files_of(i, drawn)]
    judged = entry.judge(outcome)
    record = Record(
        id=entry.id,
        key=key_of(entry, full),
        full=full,
        settings=_finite(plain(entry.settings(full))),
        verdict=entry.verdict(outcome),
        judged=judged,
        obtained=_finite(plain(dict(outcome.obtained))),
        pictures=[f.name for f in files if not f.is_film],
        films=[f.name for f in files if f.is_film],
        note=outcome.note,
        seconds=round(seconds, 3),
    )
    folder = out / FILES / entry.id
    for file in files:
        write_atomically(folder / file.name, file.content)
    text = json.dumps(dataclasses.asdict(record), indent=1, ensure_ascii=False, allow_nan=False)
    write_atomically(folder / RECORD, text.encode())
    for path in folder.iterdir():  # pictures of an earlier run, which had more or other ones
        if path.name not in {RECORD, *(f.name for f in files)}:
            path.unlink()
    return record


def _kept(
    id: str,
    full: bool,
    out: Path,
    data: Path | None,
    device: str | None,
    interrupts: Sequence[int] = (),
) -> Record:
    """Computes an entry and writes what it found, if there were no interrupts."""
    entry = entries()[id]
    _draw_without_window()
    start = time.perf_counter()
    try:
        keep = Keep(out / SHARED, interrupts, device) if full else NOT_KEPT
        outcome = compute(entry, full, data, keep)
        if interrupts:
            raise KeyboardInterrupt  # it may be half trained
        return _write(entry, outcome, full, out, time.perf_counter() - start)
    except OSError:
        raise
    except Exception:  # noqa: BLE001  (of one entry: the others go on, and it is told at the end)
        if interrupts:  # what is half trained may be too short for what comes next
            raise KeyboardInterrupt from None
        told = traceback.format_exc()
        return Record(id, "", full, {}, "not checked", [], {}, error=told)
    finally:
        close_all()
        _give_back_memory()


def _give_back_memory() -> None:
    """What an entry had is free, but the C library keeps it for later; two workers that do so come
    to more than a gigabyte. Systems without this call do not keep as much."""
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


@contextlib.contextmanager
def _interrupts() -> Iterator[list[int]]:
    """The interrupts of a while, also those of which nobody else hears: training ends in order at
    Ctrl-C and gives back what it has learned by then, and Python drops what is raised while an
    object is taken away."""
    before = signal.getsignal(signal.SIGINT)
    seen: list[int] = []
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        yield seen
        return

    def note(number: int, frame: FrameType | None) -> None:
        seen.append(number)
        before(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, before)


def _draw_without_window() -> None:
    import matplotlib

    matplotlib.use("agg")


def _begin(threads: int) -> None:
    """A worker: Ctrl-C is for the process that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    set_num_threads(threads)


@contextlib.contextmanager
def _workers(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that start clean; if anything ends this one early, they are ended at once: files
    are whole or not there."""
    before = multiprocessing.active_children()
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, context, _begin, (max(1, get_num_threads() // jobs),))
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            if process not in before:
                process.terminate()
        raise
    pool.shutdown()


def run(
    chosen: Sequence[Entry],
    out: Path,
    *,
    full: bool = False,
    jobs: int = 1,
    data: Path | None = None,
    device: str | None = None,
    done: Callable[[Record, bool], None] | None = None,
) -> list[Record]:
    """Computes the entries that are not done yet, and returns the records of all of them.

    An entry is done if the folder holds what it computed from the same source, settings and
    version. Networks that take long are trained on the ``device``. ``done`` is called with each
    record, and whether it was there already. Interrupted, what is done is kept.
    """
    tell = done or (lambda record, was_there: None)
    records: dict[str, Record] = {}
    waiting = []
    for entry in chosen:
        there = _is_done(entry, out, full)
        if there is None:
            waiting.append(entry)
        else:
            records[entry.id] = there
            tell(there, True)
    for record in _computed(waiting, out, full, jobs, data, device):
        records[record.id] = record
        tell(record, False)
    return [records[entry.id] for entry in chosen]


def _computed(
    waiting: Sequence[Entry],
    out: Path,
    full: bool,
    jobs: int,
    data: Path | None,
    device: str | None,
) -> Iterator[Record]:
    if jobs == 1 or len(waiting) < 2:
        with _interrupts() as interrupts:
            for entry in waiting:
                yield _kept(entry.id, full, out, data, device, interrupts)
                if interrupts:
                    raise KeyboardInterrupt
        return
    with _workers(min(jobs, len(waiting))) as pool:
        args = full, out, data, device
        left: set[Future[Record]] = {pool.submit(_kept, e.id, *args) for e in waiting}
        while left:
            ended, left = wait(left, return_when=FIRST_COMPLETED)
            for future in ended:
                yield future.result()
