"""Long computations made short: what is repeated is folded, what is left is cut into pieces."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import count, groupby
from operator import eq

from chainrule.inspect.structure.blocks import Block, Line
from chainrule.inspect.structure.parts import Part
from chainrule.inspect.structure.texts import TIMES, shortened

__all__ = ["by_path", "folded", "outer_values"]

LIMIT = 50  # parts side by side
PIECES = 24
LONGEST = 400  # of a pattern that is looked for
SMALLER = "#555"

_number = count()


def outer_values(parts: Sequence[Part]) -> tuple[list[Hashable], list[Hashable]]:
    """What parts need of others, and what they give."""
    needs: dict[Hashable, None] = {}
    gives: dict[Hashable, None] = {}
    for part in parts:
        needs.update(dict.fromkeys(v for v in part.needs if v not in gives))
        gives.update(dict.fromkeys(part.gives))
    return list(needs), list(gives)


def folded(parts: list[Part], limit: int = LIMIT) -> list[Part]:
    """The same computation in at most so many parts, which hold the others.

    Patterns that follow each other are one part, of which one repetition is shown; if that is not
    enough, the rest is cut where few values pass.
    """
    if len(parts) <= limit:
        return parts
    found = _fold_repeated(parts)
    if len(found) <= limit:
        return found
    pieces = min(PIECES, limit, math.ceil(math.sqrt(len(found))))
    return [_piece(run) for run in _cuts(found, pieces)]


def by_path(parts: list[Part], paths: Mapping[str, str]) -> list[Part]:
    """Parts that follow each other and belong to the same module as one part.

    ``paths`` are the modules of some parts, by their keys; the others belong to that before them.
    """
    known, path = [], next((paths[p.key] for p in parts if paths.get(p.key)), "")
    for part in parts:
        path = paths.get(part.key) or path
        known.append((part, path.split(".") if path else []))
    return _by_path(known, ())


def _by_path(known: list[tuple[Part, list[str]]], above: tuple[str, ...]) -> list[Part]:
    found: list[Part] = []
    depth = len(above)
    for name, run in groupby(known, key=lambda pair: pair[1][depth : depth + 1]):
        members = list(run)
        if not name or len(members) == 1:
            found += [part for part, _ in members]
            continue
        inside = _by_path(members, (*above, *name))
        needs, gives = outer_values(inside)
        title = ".".join((*above, *name))
        operations = sum(_operations(p) for p in inside)
        lines = [Line(shortened(title, 220.0, bold=True), bold=True)]
        told = f"{operations:,} operation{'s' * (operations != 1)}"
        lines.append(Line(told, size=11, color=SMALLER))
        block = Block(f"g{next(_number)}", lines, "module", title, name=title)
        signature = ("module", tuple(p.signature for p in inside))
        found.append(Part(block, needs, gives, folded(inside), signature))
    return found


def _operations(part: Part) -> int:
    if part.inside is None:
        return int(part.block.kind == "operation")
    return part.count or sum(_operations(p) for p in part.inside)


def _fold_repeated(parts: list[Part]) -> list[Part]:
    """Folds the repetition that saves most, then those before and after it."""
    found: list[Part] = []
    waiting = [parts]  # from the last to the first
    while waiting:
        run = waiting.pop()
        start, period, times = _repetition([part.signature for part in run])
        if not times:
            found += run
            continue
        stop = start + period * times
        waiting += [run[stop:], [_repeated(run[start:stop], period, times)], run[:start]]
    return found


def _repetition(signatures: Sequence[Hashable]) -> tuple[int, int, int]:
    """Start, period and times of the repetition that saves most; zeros if none saves much."""
    known: dict[Hashable, int] = {}
    signs = [known.setdefault(signature, len(known)) for signature in signatures]
    periods = range(1, min(LONGEST, len(signs) // 2) + 1)
    best = max(
        (_longest_run(signs, period) for period in periods),
        key=lambda run: (run[0], -run[1], -run[2]),
        default=(0, 0, 0, 0),
    )
    return best[1:] if best[0] >= 3 else (0, 0, 0)


def _longest_run(signs: list[int], period: int) -> tuple[int, int, int, int]:
    """The longest repetition with a period: how many parts it saves, its start, period, times."""
    same = bytes(map(eq, signs, signs[period:]))
    longest = max(map(len, same.split(b"\0")))
    times = longest // period + 1
    worth = times > 2 or (times == 2 and period > 2)
    return (times - 1) * period * worth, same.find(b"\1" * longest), period, times


def _repeated(parts: list[Part], period: int, times: int) -> Part:
    """One repetition in place of all: its parts need and give what their like do elsewhere."""
    needs, gives = outer_values(parts)
    outer, shown = set(needs), []
    for i in range(period):
        like = parts[i::period]
        wanted = dict.fromkeys([*parts[i].needs, *(v for p in like for v in p.needs if v in outer)])
        given = dict.fromkeys(v for p in like for v in p.gives)
        shown.append(replace(parts[i], needs=list(wanted), gives=list(given)))
    names = _names(parts[:period])
    if period == 1 and parts[-1].block.name != names:
        names = f"{names} … {parts[-1].block.name}"
    lines = [
        Line(f"{times} {TIMES} the same", bold=True),
        Line(shortened(names, 190.0, 11.0), size=11, color=SMALLER),
    ]
    note = f"{times} repetitions of {period} parts: {names}\nopen it to see one of them"
    block = Block(f"g{next(_number)}", lines, "module", note, name=f"{times} {TIMES} ({names})")
    block.facts = {"parts": str(period * times)}
    signature = ("repeated", times, tuple(p.signature for p in shown))
    whole = Part(block, needs, gives, folded(shown), signature)
    whole.count = sum(_operations(p) for p in parts)
    return whole


def _names(parts: Sequence[Part]) -> str:
    counts = Counter(p.block.name for p in parts)
    return ", ".join(f"{n} {name}" if n > 1 else name for name, n in counts.most_common())


def _cuts(parts: list[Part], pieces: int) -> list[list[Part]]:
    """Runs of parts of about the same length, cut where few values are still needed later."""
    last_use: dict[Hashable, int] = {}
    for i, part in enumerate(parts):
        last_use.update(dict.fromkeys(part.needs, i))
    alive, open_values = [], set()
    for i, part in enumerate(parts):
        open_values |= set(part.gives)
        open_values = {v for v in open_values if last_use.get(v, -1) > i}
        alive.append(len(open_values))
    length, runs, start = len(parts) / pieces, [], 0
    for k in range(1, pieces + 1):
        middle, slack = k * length, length / 3
        places = range(
            max(start + 1, int(middle - slack)), min(len(parts), int(middle + slack)) + 1
        )
        stop = min(places, key=_narrow(alive, middle), default=len(parts))
        stop = len(parts) if k == pieces else stop
        if stop > start:
            runs.append(parts[start:stop])
            start = stop
    return runs


def _narrow(alive: Sequence[int], middle: float) -> Callable[[int], tuple[int, float]]:
    return lambda place: (alive[place - 1], abs(place - middle))


def _piece(parts: list[Part]) -> Part:
    if len(parts) == 1:
        return parts[0]
    needs, gives = outer_values(parts)
    names = _names(parts)
    lines = [
        Line(f"{len(parts)} parts", bold=True),
        Line(shortened(names, 190.0, 11.0), size=11, color=SMALLER),
    ]
    block = Block(f"g{next(_number)}", lines, "module", names, name=f"{len(parts)} parts")
    signature = ("piece", tuple(p.signature for p in parts))
    return Part(block, needs, gives, folded(list(parts)), signature)
