"""A rule that looks for one mistake, and what it says when it finds it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

__all__ = ["RULES", "Finding", "Rule", "Seen", "apply", "rule"]

Severity = Literal["error", "warning"]
# What a rule looks at: the data, one forward and backward pass, a short training of a copy, or a
# training that was watched, or the curves of one that is over.
Stage = Literal["data", "network", "trial", "loop", "curves"]


@dataclass(frozen=True)
class Finding:
    """One mistake: the rule that found it, where it is, its number and the rule's threshold, and
    what to do. ``layer`` is the name of a module or parameter, "data", "loss" or "optimizer"."""

    rule: str
    severity: Severity
    layer: str
    number: float
    threshold: float
    sentence: str
    remedy: str

    def __str__(self) -> str:
        place = f" [{self.layer}]" if self.layer else ""
        return f"{self.severity}: {self.rule}{place}: {self.sentence}\n  remedy: {self.remedy}"


class Seen(NamedTuple):
    """What the function of a rule gives: the place, the number, and the words."""

    layer: str
    number: float
    sentence: str
    remedy: str


@dataclass(frozen=True)
class Rule:
    """One row of the table: a mistake, from which number on it is one, and why from there."""

    name: str
    stage: Stage
    severity: Severity
    threshold: float
    because: str
    look: Callable[[Any, float], Iterable[Seen]]

    def findings(self, subject: object) -> Iterator[Finding]:
        """What this rule finds in what it looks at."""
        for seen in self.look(subject, self.threshold):
            yield Finding(
                self.name,
                self.severity,
                seen.layer,
                float(seen.number),
                self.threshold,
                seen.sentence,
                seen.remedy,
            )


RULES: dict[str, Rule] = {}

Look = Callable[[Any, float], Iterable[Seen]]


def rule(
    name: str, stage: Stage, threshold: float, because: str, severity: Severity = "warning"
) -> Callable[[Look], Look]:
    """Puts a function ``look(subject, threshold)`` on the list of rules.

    Args:
        name: the mistake, as it is told.
        stage: what the function looks at.
        threshold: from which number on it is a mistake.
        because: why from there.
        severity: "error" where training cannot work, else "warning".
    """

    def listed(look: Look) -> Look:
        if name in RULES:
            raise ValueError(f"rule: there are two of the name {name!r}")
        RULES[name] = Rule(name, stage, severity, threshold, because, look)
        return look

    return listed


def apply(stage: Stage, subject: object, skipped: dict[str, str] | None = None) -> list[Finding]:
    """What all rules of a stage find; of a rule that cannot look, ``skipped`` gets the reason."""
    found: list[Finding] = []
    for one in RULES.values():
        if one.stage == stage:
            try:
                found += one.findings(subject)
            except (RuntimeError, ValueError, TypeError, IndexError) as error:
                if skipped is None:
                    raise
                skipped[one.name] = f"it fails here: {error}"
    return found
