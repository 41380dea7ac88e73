"""The list of the instruments' pages; the pages are run by ``tests/test_docs.py``."""

from __future__ import annotations

import pictures


def test_the_list_is_that_of_the_instruments() -> None:
    assert pictures.LIST.read_text("utf-8") == pictures.table(), "run tools/pictures.py"
