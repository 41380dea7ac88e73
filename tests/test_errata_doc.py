"""The page of errata lists every one once, and cites tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

from test_coverage_doc import has_test

PAGE = Path(__file__).parent.parent / "docs" / "errata.md"
ROWS = re.findall(r"^\| (\d+) \| ([ABCD]) \|.*\| ([^|]*) \|$", PAGE.read_text(), re.M)


def test_all_are_listed_once() -> None:
    assert [int(number) for number, _, _ in ROWS] == list(range(1, 144))
    classes = [kind for _, kind, _ in ROWS]
    assert {kind: classes.count(kind) for kind in "ABCD"} == {"A": 72, "B": 48, "C": 10, "D": 13}


def test_cited_tests_exist() -> None:
    cited = [node for _, _, cell in ROWS for node in re.findall(r"`(tests/[^`]+)`", cell)]
    assert len(cited) >= 40
    assert [node for node in cited if not has_test(node)] == []
