"""Looks at all pages in a browser: first at those with mistakes, which must be seen."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from browser.chromium import find, screenshot, wrong_with
from browser.pages import PAGES, PLANTED, PLANTED_ENTRIES, atlas_pages


def main() -> int:
    """Prints a line for each page, and what is wrong with it; 1 if anything is."""
    parser = argparse.ArgumentParser(prog="browser", description=__doc__)
    parser.add_argument("--pictures", metavar="DIR", help="write pictures of the pages, too")
    options = parser.parse_args()
    print(find())
    planted = [(name, "", *given) for name, given in PLANTED.items()]
    planted += [(name, "entry", *given) for name, given in PLANTED_ENTRIES.items()]
    unseen = [name for name, kind, page, word in planted if not _sees(page, word, kind)]
    print(f"{len(planted) - len(unseen)} of {len(planted)} planted mistakes are seen")
    for name in unseen:
        print(f"  not seen: {name}")
    with tempfile.TemporaryDirectory() as folder:
        bad = _look(options.pictures) + _look_at_atlas(options.pictures, Path(folder))
    return 1 if bad + len(unseen) else 0


def _sees(page: str, word: str, controls: str) -> bool:
    return any(word in line for line in wrong_with(page, controls, dark=True))


def _look(pictures: str | None) -> int:
    """How many pages have something wrong."""
    bad = 0
    for name, (make, controls) in PAGES.items():
        page = make()
        bad += _tell(name, page, controls)
        if pictures:
            _photograph(name.replace(" ", "-"), page, Path(pictures))
    return bad


def _look_at_atlas(pictures: str | None, folder: Path) -> int:
    """The same of a small atlas, whose pages show files beside them."""
    bad = 0
    for path, controls in atlas_pages(folder):
        name = path.stem if path.parent == folder else f"{path.parent.name} {path.stem}"
        bad += _tell(f"atlas {name}", path.read_text("utf-8"), controls, path.parent)
        if pictures:
            _photograph_file(f"atlas-{name.replace(' ', '-')}", path, Path(pictures))
    return bad


def _tell(name: str, page: str, controls: str, beside: Path | None = None) -> bool:
    """Prints what is wrong with a page; whether anything is."""
    size = len(page.encode())
    found = [f"has {size} bytes; 1 MB is the most"] if size > 1_000_000 else []
    for dark in (False, True):
        scheme = "dark" if dark else "light"
        found += [f"{scheme}, {line}" for line in wrong_with(page, controls, dark, beside)]
    print(f"{name}: {size / 1000:.0f} kB, {'wrong' if found else 'well'}")
    for line in dict.fromkeys(found):
        print(f"  {line}")
    return bool(found)


def _photograph(name: str, page: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    file = (folder / f"{name}.html").resolve()
    file.write_text(page, "utf-8")
    _photograph_file(name, file, folder)


def _photograph_file(name: str, file: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for width in (500, 1000):
        for dark in (False, True):
            scheme = "dark" if dark else "light"
            screenshot(file, folder.resolve() / f"{name}-{width}-{scheme}.png", width, dark)


if __name__ == "__main__":
    sys.exit(main())
