"""The ids that the atlas has to have, from the lists of the courses' items and of the errata."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["VERDICTS", "required"]

ROOT = Path(__file__).resolve().parent.parent.parent
VERDICTS = Path(__file__).parent / "verdicts"  # what entries found, a file for each of theirs

# Tables and closed forms of which the courses or the syllabus give a number.
NUMBERS = {
    "A": (3, 4, 5, 11, 12, 13, 17),
    "C": (2,),
    "D": (16,),
    "H": (1, 3, 5, 14),
    "I": (5, 8, 9, 10, 11, 14),
    "L": (2, 7, 8, 10, 14, 15),
    "M": (5, 13, 20, 21, 22, 23, 24, 37, 43, 46),
    "N": (1, 6, 7, 8, 10),
    "O": (6, 8, 9, 23, 39, 40),
    "P": (6,),
    "R": (1, 16),
    "S": (6, 17),
    "T": (1, 9, 10, 11, 16),
}


def required() -> list[str]:
    """Figures and experiments of the syllabus, numbers, the examples of 000, and all errata."""
    coverage = (ROOT / "docs" / "coverage.md").read_text("utf-8")
    errata = (ROOT / "docs" / "errata.md").read_text("utf-8")
    of_syllabus = re.findall(r"^\| ([VX]\d+) \|", coverage, re.M)
    numbers = [f"{letter}{n:02}" for letter, items in NUMBERS.items() for n in items]
    examples = [f"EX{n:02}" for n in range(1, 20)]
    rows = [f"ERR{int(n):03}" for n in re.findall(r"^\| (\d+) \|", errata, re.M)]
    return [*of_syllabus, *numbers, *examples, *rows]
