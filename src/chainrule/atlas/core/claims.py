"""What a course claims, and whether what was obtained bears it out: decided by numbers alone."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from chainrule.atlas.core.values import (
    Forms,
    Spread,
    Value,
    distance,
    numbers,
    shown,
)

__all__ = [
    "Claim",
    "Judged",
    "Number",
    "Obtained",
    "Refuted",
    "Statement",
    "Unchecked",
    "VERDICTS",
    "Verdict",
    "Wrong",
    "tampered",
    "verdict_of",
    "without_files",
]

Verdict: TypeAlias = Literal["reproduced", "in part", "not reproduced", "erratum", "not checked"]
VERDICTS: tuple[Verdict, ...] = (
    "reproduced",
    "in part",
    "not reproduced",
    "erratum",
    "not checked",
)
Finding: TypeAlias = Literal[
    "holds", "does not hold", "erratum", "the printed form holds", "not checked"
]
Obtained: TypeAlias = "Value | Forms"


@dataclass(frozen=True)
class Judged:
    """A claim beside what was obtained, as a row of a table."""

    name: str
    printed: str
    obtained: str
    finding: Finding
    note: str = ""


@dataclass(frozen=True)
class Number:
    """A number as a course prints it, or several.

    Args:
        name: what it is the number of.
        printed: the number, or numbers.
        tolerance: how far the obtained one may be from it; half a unit of the last digit printed
            where the number is exact, more where the course rounds or draws at random.
        deviations: instead, in standard deviations of what many seeds give (a ``Spread``).
        needs: the files without which no number decides it: a run without them leaves it unchecked.
        unprinted: for a number that the course does not print, but that follows from what it
            prints: how. It stands beside the number, so that nobody looks for it in the course.
    """

    name: str
    printed: float | tuple[float, ...]
    tolerance: float = 0.0
    deviations: float = 0.0
    needs: str = ""
    unprinted: str = ""

    def __post_init__(self) -> None:
        if (self.tolerance > 0) == (self.deviations > 0):
            raise ValueError(
                f"Number: {self.name!r} needs a positive tolerance, or deviations, not both"
            )

    @property
    def text(self) -> str:
        """The number as a table shows it: if it is not printed, with where it comes from."""
        aside = f" (not printed: {self.unprinted})" if self.unprinted else ""
        return f"{shown(self.printed)}{aside}"

    def allowed(self, obtained: Obtained) -> float:
        """The largest difference that counts as none."""
        if not self.deviations:
            return self.tolerance
        if not isinstance(obtained, Spread):
            raise TypeError(f"Number: {self.name!r} in deviations needs a Spread of many seeds")
        if not obtained.deviation:
            raise ValueError(f"Number: {self.name!r} is the same for all seeds; give a tolerance")
        return self.deviations * obtained.deviation

    def judge(self, obtained: Obtained) -> Judged:
        """Whether the obtained number is the printed one."""
        value = _plain(self.name, obtained)
        allowed = self.allowed(value)
        holds = distance(self.printed, value) <= allowed
        note = f"within {allowed:.3g}" if holds else f"off by {distance(self.printed, value):.3g}"
        return Judged(self.name, self.text, shown(value), _finding(holds), note)


@dataclass(frozen=True)
class Statement:
    """A sentence of a course as bounds on a number.

    Args:
        name: the number that decides.
        text: what the course says, in a few words.
        at_least: the number is not below this.
        at_most: the number is not above this.
        needs: the files without which no number decides it: a run without them leaves it unchecked.
    """

    name: str
    text: str
    at_least: float = -math.inf
    at_most: float = math.inf
    needs: str = ""

    def __post_init__(self) -> None:
        if math.isinf(self.at_least) and math.isinf(self.at_most):
            raise ValueError(f"Statement: {self.name!r} needs a bound: at_least, at_most or both")

    def judge(self, obtained: Obtained) -> Judged:
        """Whether all obtained numbers lie within the bounds."""
        value = _plain(self.name, obtained)
        found = numbers(value)
        holds = bool(found) and all(self.at_least <= x <= self.at_most for x in found)
        return Judged(self.name, self.text, shown(value), _finding(holds), self._bounds())

    def _bounds(self) -> str:
        if math.isinf(self.at_least):
            return f"at most {self.at_most:g}"
        if math.isinf(self.at_most):
            return f"at least {self.at_least:g}"
        return f"from {self.at_least:g} to {self.at_most:g}"


@dataclass(frozen=True)
class Wrong:
    """A form that the errata call wrong: the printed one has to fail and the right one to hold.

    What is obtained for it are the ``Forms``: both evaluated, and the truth.

    Args:
        name: what the forms compute.
        printed: the form as it is printed, in a few words or letters.
        right: the right form.
        tolerance: how far a form may be from the truth.
    """

    name: str
    printed: str
    right: str
    tolerance: float = 1e-6

    def judge(self, obtained: Obtained) -> Judged:
        """An erratum if the right form alone meets the truth."""
        if not isinstance(obtained, Forms):
            raise TypeError(f"Wrong: {self.name!r} needs Forms(printed, right, truth)")
        printed = distance(obtained.printed, obtained.truth) <= self.tolerance
        right = distance(obtained.right, obtained.truth) <= self.tolerance
        finding = _finding_of_erratum(printed, right)
        return Judged(
            self.name,
            f"{self.printed}, which gives {shown(obtained.printed)}",
            f"{self.right}, which gives {shown(obtained.right)}; true is {shown(obtained.truth)}",
            finding,
            f"equal means within {self.tolerance:g}",
        )


@dataclass(frozen=True)
class Refuted:
    """A sentence that the errata call wrong: a number lies outside the bounds that the printed one
    sets, and inside those of the right one.

    Args:
        name: the number that decides.
        printed: what the course says, in a few words.
        says: the least and the greatest value that this allows.
        right: what is right.
        holds: the least and the greatest value that this allows.
    """

    name: str
    printed: str
    says: tuple[float, float]
    right: str
    holds: tuple[float, float]

    def judge(self, obtained: Obtained) -> Judged:
        """An erratum if the right sentence alone allows the obtained number."""
        value = _plain(self.name, obtained)
        found = numbers(value)
        printed, right = (
            bool(found) and all(low <= x <= high for x in found)
            for low, high in (self.says, self.holds)
        )
        finding = _finding_of_erratum(printed, right)
        return Judged(self.name, self.printed, shown(value), finding, f"right: {self.right}")


@dataclass(frozen=True)
class Unchecked:
    """A claim that no number decides, and why not."""

    name: str
    text: str
    why: str

    def judge(self, obtained: Obtained | None = None) -> Judged:
        """It is not judged."""
        return Judged(self.name, self.text, "", "not checked", self.why)


Claim: TypeAlias = Number | Statement | Wrong | Refuted | Unchecked


def without_files(claim: Claim) -> Unchecked | None:
    """The claim as a run leaves it that has not the files it needs; None if it needs none."""
    if not isinstance(claim, (Number, Statement)) or not claim.needs:
        return None
    return Unchecked(claim.name, claim.text, f"it takes {claim.needs}: --full --data DIR")


def _plain(name: str, obtained: Obtained) -> Value:
    if isinstance(obtained, Forms):
        raise TypeError(f"{name!r} got Forms, which are for a claim that is Wrong")
    return obtained


def _finding(holds: bool) -> Finding:
    return "holds" if holds else "does not hold"


def _finding_of_erratum(printed: bool, right: bool) -> Finding:
    if printed:
        return "the printed form holds"
    return "erratum" if right else "does not hold"


def verdict_of(judged: Sequence[Judged]) -> Verdict:
    """The verdict on an entry, from the findings of its claims.

    All that could be checked holds, and that is half of the claims or more: "reproduced"; all that
    is called wrong is wrong and the rest holds: "erratum"; nothing holds: "not reproduced"; else:
    "in part".
    """
    found = [j.finding for j in judged if j.finding != "not checked"]
    if not found:
        return "not checked"
    if set(found) == {"does not hold"}:
        return "not reproduced"
    if "erratum" not in found:
        all_holds = "does not hold" not in found and 2 * len(found) >= len(judged)
        return "reproduced" if all_holds else "in part"
    return "erratum" if set(found) <= {"erratum", "holds"} else "in part"


def tampered(claim: Claim, obtained: Obtained) -> tuple[Claim, Obtained]:
    """The claim changed so far that its finding must turn: a number that held is moved by ten
    tolerances and one that did not to what was obtained; a bound is moved past what was obtained;
    the printed and the right form, or sentence, change places.
    """
    if isinstance(claim, Number):
        return _moved(claim, obtained), obtained
    if isinstance(claim, Statement):
        found = numbers(_plain(claim.name, obtained))
        if claim.judge(obtained).finding == "holds":
            return dataclasses.replace(claim, at_least=max(found) + 1, at_most=math.inf), obtained
        return dataclasses.replace(claim, at_least=min(found), at_most=max(found)), obtained
    if isinstance(claim, Refuted):
        return dataclasses.replace(claim, says=claim.holds, holds=claim.says), obtained
    if isinstance(claim, Wrong) and isinstance(obtained, Forms):
        return claim, Forms(obtained.right, obtained.printed, obtained.truth)
    return claim, obtained


def _moved(claim: Number, obtained: Obtained) -> Number:
    value = _plain(claim.name, obtained)
    if claim.judge(value).finding != "holds":
        return dataclasses.replace(claim, printed=tuple(numbers(value)))
    first, *rest = numbers(claim.printed)
    return dataclasses.replace(claim, printed=(first + 10 * claim.allowed(value), *rest))
