"""The list of all entries, which is found by looking into the folders of the groups."""

from __future__ import annotations

import difflib
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from chainrule.atlas.core.claims import (
    Claim,
    Judged,
    Obtained,
    Unchecked,
    Verdict,
    verdict_of,
    without_files,
)

__all__ = ["COURSES", "ENTRIES", "GROUPS", "Entry", "Outcome", "choose", "entries", "entry"]

# The folders, with the first letters of the ids in each.
GROUPS = {
    "figures": "V",
    "experiments": "X",
    "numbers": "any other letter of the syllabus",
    "examples": "EX",
    "errata": "ERR",
}
COURSES = {
    "000": "a chapter on neural networks",
    "001": "lecture slides on networks and their training",
    "002": "lecture slides on networks and recognition",
    "003": "slides to 000",
    "004": "lecture notes on deep learning",
}
ID = re.compile(r"([A-Z]+)(\d+)")


@dataclass(frozen=True)
class Outcome:
    """What an entry computed and drew.

    Args:
        obtained: a value for every claim, by its name.
        pictures: what was drawn: axes or figures of matplotlib, results of instruments (which are
            plotted), diagrams, films (``Frames``) or SVG text.
        note: what a reader has to know of this run: data that stand in for others, for example.
    """

    obtained: Mapping[str, Obtained]
    pictures: Sequence[Any] = ()
    note: str = ""


@dataclass(frozen=True)
class Entry:
    """One figure, experiment, number, example or erratum of a course.

    Args:
        id: of the syllabus (V10, X06, N07), of an example of 000 (EX01 to EX19), or of an erratum
            (ERR001 to ERR143).
        course: the document, "000" to "004".
        printed: where it stands there: "fig. 10.6", "table 4.1", "eq 7"; and where in others:
            "fig. 8; 003, one neuron".
        title: what it is, in a few words.
        claims: what the course says of it.
        function: what computes and draws it. Its docstring explains it to a student. Its defaults
            are the quick settings; it takes ``data``, a folder, if it reads files, and ``keep``
            (``Keep``) if a full run has results that take long, or that others need as well.
        full: settings of the size that the course has, instead of the defaults.
        data: the data sets that the full settings read from files.
    """

    id: str
    course: str
    printed: str
    title: str
    claims: tuple[Claim, ...]
    function: Callable[..., Outcome]
    group: str
    full: Mapping[str, Any] = field(default_factory=dict)
    data: tuple[str, ...] = ()

    def settings(self, full: bool = False) -> dict[str, Any]:
        """The settings of a quick or of a full run."""
        taken = inspect.signature(self.function).parameters
        quick = {n: p.default for n, p in taken.items() if n not in ("data", "keep")}
        return {**quick, **self.full} if full else quick

    @property
    def courses(self) -> tuple[str, ...]:
        """All documents that have it, the first one in front."""
        return tuple(dict.fromkeys([self.course, *re.findall(r"\b00[0-4]\b", self.printed)]))

    @property
    def reads_files(self) -> bool:
        """Whether a full run reads files, if they are there."""
        return "data" in inspect.signature(self.function).parameters

    @property
    def keeps_results(self) -> bool:
        """Whether a full run keeps results one by one."""
        return "keep" in inspect.signature(self.function).parameters

    @property
    def explanation(self) -> str:
        """What a student should know of it: the docstring of the function."""
        return inspect.cleandoc(self.function.__doc__ or "")

    def judge(self, outcome: Outcome) -> list[Judged]:
        """Every claim beside what was obtained."""
        claims = [self._decided(c, outcome) for c in self.claims]
        missing = [
            c.name
            for c in claims
            if c.name not in outcome.obtained and not isinstance(c, Unchecked)
        ]
        unknown = set(outcome.obtained) - {c.name for c in claims}
        if missing or unknown:
            raise ValueError(
                f"{self.id}: a value for every claim and no others; missing {missing}, without "
                f"claim {sorted(unknown)}"
            )
        return [
            c.judge() if isinstance(c, Unchecked) else c.judge(outcome.obtained[c.name])
            for c in claims
        ]

    @staticmethod
    def _decided(claim: Claim, outcome: Outcome) -> Claim:
        """The claim, or that it is unchecked, because it needs files and there were none."""
        unchecked = without_files(claim) if claim.name not in outcome.obtained else None
        return claim if unchecked is None else unchecked

    def verdict(self, outcome: Outcome) -> Verdict:
        """Reproduced, in part, not reproduced, erratum, or not checked."""
        return verdict_of(self.judge(outcome))


ENTRIES: dict[str, Entry] = {}


def entry(
    id: str,
    *,
    course: str,
    printed: str,
    title: str,
    claims: Sequence[Claim],
    full: Mapping[str, Any] | None = None,
    data: tuple[str, ...] = (),
) -> Callable[[Callable[..., Outcome]], Callable[..., Outcome]]:
    """Puts a function on the list of all entries; see :class:`Entry` for the arguments."""

    def listed(function: Callable[..., Outcome]) -> Callable[..., Outcome]:
        group = function.__module__.split(".")[2]
        made = Entry(
            id, course, printed, title, tuple(claims), function, group, full or {}, tuple(data)
        )
        _check(made)
        ENTRIES[id] = made
        return function

    return listed


def _check(made: Entry) -> None:
    if not ID.fullmatch(made.id):
        raise ValueError(f"entry: an id is capital letters and a number, got {made.id!r}")
    there = ENTRIES.get(made.id)
    if there is not None and there.function.__module__ != made.function.__module__:
        raise ValueError(
            f"entry: {made.id} is in {there.function.__module__} and {made.function.__module__}"
        )
    if made.course not in COURSES:
        raise ValueError(f"entry: {made.id} is of course {made.course!r}, none of {list(COURSES)}")
    if not made.claims:
        raise ValueError(f"entry: {made.id} has no claim")
    names = [c.name for c in made.claims]
    if len({*names}) < len(names):
        raise ValueError(f"entry: {made.id} has two claims of one name: {names}")
    if not made.explanation:
        raise ValueError(f"entry: {made.id} has no docstring that explains it")
    unknown = {*made.full} - {*inspect.signature(made.function).parameters}
    if unknown:
        raise ValueError(f"entry: {made.id} takes no setting {sorted(unknown)}")


@cache
def _imported() -> None:
    for group in GROUPS:
        package = importlib.import_module(f"chainrule.atlas.{group}")
        for module in sorted(m.name for m in pkgutil.iter_modules(package.__path__)):
            importlib.import_module(f"{package.__name__}.{module}")


def entries() -> dict[str, Entry]:
    """All entries by id: group after group, in the order of their numbers."""
    _imported()
    order = [*GROUPS]
    return dict(sorted(ENTRIES.items(), key=lambda e: (order.index(e[1].group), _number(e[0]))))


def _number(id: str) -> tuple[str, int]:
    match = ID.fullmatch(id)
    return (match[1], int(match[2])) if match else (id, 0)


def _nearest(given: str, count: int = 3) -> list[str]:
    """Ids that may have been meant: of the same letters by their numbers, else of like letters."""
    letters, number = _number(given)
    like = difflib.get_close_matches(letters, {_number(id)[0] for id in ENTRIES}, 1, 0.0)
    near = [id for id in ENTRIES if _number(id)[0] in like]
    return sorted(near, key=lambda id: abs(_number(id)[1] - number))[:count]


def choose(ids: Sequence[str] = (), course: str | None = None) -> list[Entry]:
    """The entries of these ids, or all; of one course, if it is given.

    Small letters and numbers without zeros serve, too: "v7", "err44".
    """
    found = entries()
    if course is not None and course not in COURSES:
        raise ValueError(f"choose: no course {course!r}; the courses are {', '.join(COURSES)}")
    by_number = {_number(id): e for id, e in found.items()}
    chosen: dict[str, Entry] = {}
    for given in ids:
        made = by_number.get(_number(given.upper()))
        if made is None:
            raise ValueError(
                f"choose: no entry {given!r}; the nearest are {', '.join(_nearest(given.upper()))} "
                "(chainrule atlas --list names all)"
            )
        chosen[made.id] = made
    wanted = [*chosen.values()] if ids else [*found.values()]
    wanted = [e for e in wanted if course is None or course in e.courses]
    if not wanted:
        raise ValueError(f"choose: none of {', '.join(ids)} is of course {course}")
    return wanted
