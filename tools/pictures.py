"""Draws the pictures of the pages in docs/instruments and writes the list of all instruments.

A page is a program (see ``tests/test_docs.py``). Where it shows a picture, a comment above says
the expression that draws it, evaluated after the page's program up to there:

    <!-- picture: seen.plot() -->
    ![what it shows](landscape.png)

Run ``python tools/pictures.py`` for all pages, or name some: ``python tools/pictures.py draw``;
with ``--list`` it writes the list alone.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "instruments"
LIST = PAGES / "README.md"
LARGE = 60_000  # bytes of a picture

_PART = re.compile(
    r"^```python[^\n]*\n(?P<code>.*?)^```"
    r"|^<!-- picture: (?P<draw>.*?) -->\n!\[[^\]]*\]\((?P<file>[^)]+)\)",
    re.MULTILINE | re.DOTALL,
)


class Picture(NamedTuple):
    """What a page's expression made, and the file in which the page shows it."""

    drawn: Any
    file: Path


def parts(text: str) -> Iterator[re.Match[str]]:
    """The blocks of Python (``code``) and the pictures (``draw``, ``file``) of a page, in order."""
    return _PART.finditer(text)


def pictures(page: Path) -> Iterator[Picture]:
    """Runs a page and yields each picture where it stands."""
    space: dict[str, Any] = {"__name__": page.stem}
    for part in parts(page.read_text("utf-8")):
        if part["code"] is not None:
            if part["code"].startswith(">>>"):  # a session shows what there is
                continue
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(part["code"], str(page), "exec"), space)
        else:
            yield Picture(eval(part["draw"], space), page.parent / part["file"])


def save(picture: Picture) -> None:
    """Writes a diagram as it is, a chart by matplotlib."""
    if picture.file.suffix == ".svg" and hasattr(picture.drawn, "svg"):
        picture.file.write_text(picture.drawn.svg, "utf-8")
        return
    import matplotlib.pyplot as plt

    first = picture.drawn
    while not hasattr(first, "figure"):
        first = first[0]
    first.figure.savefig(picture.file, dpi=80)
    plt.close(first.figure)
    if picture.file.suffix == ".png" and picture.file.stat().st_size > LARGE:
        _in_fewer_colors(picture.file)


def _in_fewer_colors(file: Path) -> None:
    """A palette of 256 colors: a third of the size, and no difference to be seen in charts."""
    from PIL import Image

    with Image.open(file) as image:
        small = image.convert("RGB").quantize(256)
    small.save(file, optimize=True)


def table() -> str:
    """The page that lists all instruments by room."""
    from chainrule import inspect

    lines = [
        "# Instruments",
        "",
        "An instrument is one call that looks into a network and changes nothing: it returns "
        "numbers that print as a table, draw themselves with `.plot()` and leave with "
        "`.to_dict()`.",
        "This list is written by `tools/pictures.py`; `chainrule inspect --list` prints it, too.",
        "",
        "Beside them `inspect` has functions of several networks, of tensors, or whose whole "
        "answer is a plain value: `make_dot` (the graph behind a tensor, see [draw](draw.md)), "
        "`invariance_table` and `invariances` (which changes leave outputs alone), `symmetry` "
        "(units that are alike), `permuted_units` and `flipped_units` (networks that compute the "
        "same) and the `textbook` forms of derivatives. `Watch`, `Cockpit` and `examining` look on "
        "while a network learns.",
        "",
        "| instrument | what it is for | courses' items |",
        "|---|---|---|",
    ]
    for one in sorted(inspect.INSTRUMENTS.values(), key=lambda i: (i.room, i.name)):
        page = PAGES / f"{one.name}.md"
        name = f"[`{one.name}`]({page.name})" if page.exists() else f"`{one.name}`"
        lines.append(f"| {name} | {one.purpose} | {', '.join(one.items)} |")
    return "\n".join(lines) + "\n"


def main(names: list[str]) -> None:
    """Writes the list, and the pictures of all pages or of some."""
    LIST.write_text(table(), "utf-8")
    if names == ["--list"]:
        return
    import matplotlib

    matplotlib.use("agg")
    for page in sorted(PAGES.glob("*.md")):
        if page != LIST and (not names or page.stem in names):
            for picture in pictures(page):
                save(picture)
                print(picture.file.relative_to(ROOT), f"{picture.file.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
