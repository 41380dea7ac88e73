"""``python -m reliability``: tries all kinds of faults, and writes the table of what came of it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from chainrule import backend
from reliability import data_files, load, own_files
from reliability.kernel_calls import Calls, HostileCalls
from reliability.kills import KILLS, run_kills
from reliability.page import PAGE, Row, rows_of, written
from reliability.runner import Result, run_cases


@dataclass
class Run:
    """A kind of fault, and what tries it."""

    name: str
    rule: str
    start: Callable[[], Result]


def runs(options: argparse.Namespace) -> Iterator[Run]:
    """All kinds, with as many cases as were asked for."""
    for kind in (*own_files.KINDS, *data_files.KINDS):
        yield Run(kind.name, kind.rule, partial(_cases, kind, options.cases, options.seed))
    for killed in KILLS:
        start = partial(run_kills, killed, options.kills, options.seed)
        yield Run(killed.name, killed.rule, start)
    for calls in () if backend.why_not_native else (Calls, HostileCalls):
        yield Run(calls.name, calls.rule, partial(_cases, calls, options.calls, options.seed))
    yield Run(load.NAME, load.RULE, partial(load.run_load, options.minutes, options.seed))


def _cases(kind: type, count: int, seed: int) -> Result:
    return run_cases(kind(), count, seed)


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    """The options of the command."""
    parser = argparse.ArgumentParser("reliability", description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000, help="damaged files of each kind")
    parser.add_argument("--kills", type=int, default=500, help="kills of each kind")
    parser.add_argument("--calls", type=int, default=1_000_000, help="calls of kernels")
    parser.add_argument("--minutes", type=float, default=60.0, help="of mixed load")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=[], help="kinds whose names begin like this")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Runs what is asked for; the page is written after each kind. 1 if there was a failure."""
    options = parsed(arguments)
    todo, failed = list(runs(options)), False
    for run in todo:
        if options.only and not run.name.startswith(tuple(options.only)):
            continue
        result = run.start()
        rows = rows_of(PAGE.read_text("utf-8")) if PAGE.exists() else {}
        rows[run.name] = row = Row.of(result, run.rule, options.seed)
        PAGE.write_text(written(rows, [r.name for r in todo]), "utf-8")
        print(row, flush=True)
        failed = failed or bool(result.failures)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
