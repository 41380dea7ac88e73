"""Looks at all pages in a browser: first at those with mistakes, which must be seen."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from browser.chromium import find, screenshot, wrong_with
from browser.pages import PAGES, PLANTED


def main() -> int:
    """Prints a line for each page, and what is wrong with it; 1 if anything is."""
    parser = argparse.ArgumentParser(prog="browser", description=__doc__)
    parser.add_argument("--pictures", metavar="DIR", help="write pictures of the pages, too")
    options = parser.parse_args()
    print(find())
    unseen = [name for name, (page, word) in PLANTED.items() if not _sees(page, word)]
    print(f"{len(PLANTED) - len(unseen)} of {len(PLANTED)} planted mistakes are seen")
    for name in unseen:
        print(f"  not seen: {name}")
    return 1 if _look(options.pictures) + len(unseen) else 0


def _sees(page: str, word: str) -> bool:
    return any(word in line for line in wrong_with(page, "", dark=True))


def _look(pictures: str | None) -> int:
    """How many pages have something wrong."""
    bad = 0
    for name, (make, controls) in PAGES.items():
        page = make()
        size = len(page.encode())
        found = [f"has {size} bytes; 1 MB is the most"] if size > 1_000_000 else []
        for dark in (False, True):
            scheme = "dark" if dark else "light"
            found += [f"{scheme}, {line}" for line in wrong_with(page, controls, dark)]
        print(f"{name}: {size / 1000:.0f} kB, {'wrong' if found else 'well'}")
        for line in dict.fromkeys(found):
            print(f"  {line}")
        bad += bool(found)
        if pictures:
            _photograph(name.replace(" ", "-"), page, Path(pictures))
    return bad


def _photograph(name: str, page: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    file = (folder / f"{name}.html").resolve()
    file.write_text(page, "utf-8")
    for width in (500, 1000):
        for dark in (False, True):
            scheme = "dark" if dark else "light"
            screenshot(file, folder.resolve() / f"{name}-{width}-{scheme}.png", width, dark)


if __name__ == "__main__":
    sys.exit(main())
