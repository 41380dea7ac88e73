"""The pages of the instruments: their pictures are drawn by what the page says, and can be read."""

from __future__ import annotations

from pathlib import Path

import pytest

import pictures
from looking.drawn import assert_drawn_well, figure_of

PAGES = [page for page in sorted(pictures.PAGES.glob("*.md")) if page != pictures.LIST]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_picture_is_drawn_as_the_page_says(page: Path) -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    for picture in pictures.pictures(page):
        assert picture.file.exists(), "run tools/pictures.py"
        assert picture.file.stat().st_size < 100_000, "a page is read on a phone"
        if not hasattr(picture.drawn, "svg"):
            assert_drawn_well(picture.drawn)
            plt.close(figure_of(picture.drawn))


def test_the_list_is_that_of_the_instruments() -> None:
    assert pictures.LIST.read_text("utf-8") == pictures.table(), "run tools/pictures.py"
