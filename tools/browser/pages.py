"""The pages to look at, and pages with mistakes that must be seen."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import chainrule
from chainrule import atlas, data, inspect, nn, train
from chainrule.atlas.site.pages import Shown
from chainrule.atlas.site.writing import write_site
from chainrule.inspect.core.pages import page

__all__ = ["PAGES", "PLANTED", "PLANTED_ENTRIES", "atlas_pages"]


def _fitted(name: str) -> str:
    table = data.embedded(name)
    settings = train.Settings(epochs=25, doctor=name == "iris")
    network = train.fit_table(
        table.table, table.target, settings=settings, source=name, progress=False
    )
    network.about["embedded"] = True
    return train.html_report(network, f"chainrule fit {name} --epochs 25")


def _of_images() -> str:
    """Squares and lines in color, of which a network is often wrong after a few epochs."""
    g = chainrule.Generator().manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        for name in ("lines", "squares"):
            Path(folder, name).mkdir()
            for i in range(20):
                picture = chainrule.rand(3, 20, 24, generator=g)
                height = 6 if name == "squares" else 2
                picture[i % 3, i % 8 : i % 8 + height, 4:10] = 1.0
                data.write_image(picture, Path(folder, name, f"{i}.png"))
        settings = train.Settings(hidden=(8,), norm="batch", epochs=12)
        network = train.fit_images(folder, settings, progress=False)
    network.about["source"] = "pictures"
    return train.html_report(network, "chainrule fit pictures --epochs 12")


def _warned() -> str:
    """Words, gaps, names that are long and look like HTML, and a warning."""
    g = chainrule.Generator().manual_seed(0)
    x = chainrule.randn(200, generator=g).tolist()
    table = data.Table.from_dict(
        {
            "a column with a name that does not end for a long time": x,
            "<b>word</b>": [("north", "south", "west & east")[i % 3] for i in range(200)],
            "gaps": [None if i % 7 == 0 else 1e6 * v for i, v in enumerate(x)],
            "price": [1e5 * v + 3e5 for v in x],
        }
    )
    network = train.fit_table(
        table, "price", settings=train.Settings(epochs=12), source="houses.csv", progress=False
    )
    network.about["warnings"] = ["the column gaps gives the target <away>"]
    return train.html_report(network, "chainrule fit houses.csv --epochs 12")


def _net() -> tuple[nn.Module, chainrule.Tensor, chainrule.Tensor]:
    chainrule.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2))
    return net, chainrule.randn(2, 2), chainrule.tensor([0, 1])


def _back_propagation() -> str:
    net, x, y = _net()
    return inspect.back_propagation(net, x, y, nn.functional.cross_entropy).to_html()


def _convolution() -> str:
    chainrule.manual_seed(0)
    layer = nn.Conv2d(1, 2, 3, stride=2, padding=1)
    return inspect.convolution_steps(layer, chainrule.randn(1, 5, 5)).to_html()


def _drawing() -> str:
    chainrule.manual_seed(0)
    block = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
    net = nn.Sequential(block, nn.Sequential(nn.Flatten(), nn.Linear(512, 10)))
    return inspect.draw(net, chainrule.randn(1, 3, 8, 8)).to_html()


def atlas_pages(folder: Path) -> list[tuple[Path, str]]:
    """A small atlas: its pages, and what must work by keys on each."""
    atlas.run(atlas.choose([*LOOKED_AT, *DRAWN]), folder)
    shown = write_site(folder)
    drawings = folder / "drawings.html"
    drawings.write_text(_drawings(folder, shown), "utf-8")
    pages = [(folder / f"{id}.html", "entry") for id in LOOKED_AT]
    films = [(folder / "files" / e.id / film, "steps") for e, r in shown for film in r.films]
    return [
        (folder / "index.html", "filters"),
        (folder / "api.html", ""),
        (drawings, "drawings"),
        *films,
        *pages,
    ]


def _drawings(folder: Path, shown: list[Shown]) -> str:
    """All pictures whose words are text of SVG, on one page, as large as they are."""
    parts = []
    for entry, record in shown:
        for name in record.pictures:
            path = folder / "files" / entry.id / name
            svg = path.read_text("utf-8") if path.suffix == ".svg" else ""
            if "<text" in svg:
                parts.append(_drawing_of(f"{entry.id}-{path.stem}", svg))
    return page("Drawings", "".join(parts), ".drawing{overflow-x:auto;background:#fff}")


def _drawing_of(name: str, svg: str) -> str:
    """A drawing in a room of its own: its styles are for none of the others."""
    room = f'<template shadowrootmode="open">{svg[svg.index("<svg") :]}</template>'
    return f'<div class="drawing" id="{name}">{room}</div>'


# Entries of all kinds: figures, films, diagrams, experiments, numbers, examples, errata.
LOOKED_AT = ["V01", "V07", "V10", "V23", "V28", "V42", "X01", "N07", "EX04", "ERR001", "ERR003"]
LOOKED_AT += ["V41"]  # a narrow column of long numbers
# Those with pictures that are not drawn by matplotlib, and cards of errata.
DRAWN = ["V08", "V09", "V25", "V29", "V44", "X17", "EX01", "EX02", "M21", "M22", "M37", "ERR013"]
DRAWN += ["ERR034", "ERR053", "ERR085", "ERR102", "ERR126", "ERR136", "ERR143"]

# Its name, what makes it, and what must work by keys.
PAGES: dict[str, tuple[Callable[[], str], str]] = {
    "fit iris": (lambda: _fitted("iris"), "curves"),
    "fit digits": (lambda: _fitted("digits"), "curves"),
    "fit diabetes": (lambda: _fitted("diabetes"), "curves"),
    "fit breast_cancer": (lambda: _fitted("breast_cancer"), "slider"),
    "fit pictures": (_of_images, "slider"),
    "fit houses": (_warned, "curves"),
    "back_propagation": (_back_propagation, "steps"),
    "convolution_steps": (_convolution, "steps"),
    "draw": (_drawing, "modules"),
}
_STEPS = (
    '<nav aria-label="s"><button>Back</button></nav><span id="place">1 / 2</span>'
    '<div class="step">1</div>'
)


def _drawn(more: str) -> str:
    words = f'<text x="9" y="40">words</text>{more}'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="200" height="99">{words}</svg>'
    return page("t", _drawing_of("a", svg))


# A mistake, the page that has it, and a word of what must be said of it.
PLANTED: dict[str, tuple[str, str]] = {
    "a console with an error": (page("t", "<script>console.error('lost')</script>"), "lost"),
    "a script that breaks": (page("t", "<script>undefinedName()</script>"), "undefinedName"),
    "a picture from elsewhere": (
        page("t", '<img alt="a" src="https://example.com/a.png">'),
        "asks for",
    ),
    "a wide line": (page("t", '<p style="width:700px">wide</p>'), "scrolls to the side"),
    "gray on gray": (page("t", '<p style="color:#777;background:#888">x</p>'), "contrast"),
    "a white page in the dark": (page("t", "<p>x</p>", "body{background:#fff}"), "luminance"),
    "a picture without words": (page("t", '<img src="data:,">'), "without alt"),
    "a link to nothing": (page("t", '<a href="#gone">x</a>'), "leads nowhere"),
    "a button without a name": (page("t", "<button></button>"), "without a name"),
    "a slider that moves nothing": (
        page(
            "t",
            '<div class="threshold"><input type="range" min="1" max="99" aria-label="s">'
            "<output>At 50%</output></div>",
        ),
        "the slider changes nothing",
    ),
    "a search that leaves all cards": (
        page(
            "t",
            '<form><input name="words" aria-label="w"></form><ul class="cards"><li><b>x</b></li>'
            "</ul>",
        ),
        "the search leaves cards",
    ),
    "keys that do nothing": (page("t", _STEPS), "changes nothing"),
    "words over words": (_drawn('<text x="9" y="40">over</text>'), "covers"),
    "words outside": (_drawn('<text x="190" y="80">outside</text>'), "lies outside"),
}
_ENTRY = (
    '<a rel="up" href="#x" id="x">All</a><a rel="next" href="#x">V02</a><div class="picture">'
    '<img alt="a" src="SRC" width="WIDTH" style="max-width:100%"></div><div class="claims"><table>'
    "<tr><td>CLAIM</td></tr></table></div><pre><code>x</code></pre>"
)
_DOT = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/%3E"


def _entry(src: str = _DOT, width: int = 300, claim: str = "x") -> str:
    body = _ENTRY.replace("SRC", src).replace("WIDTH", str(width)).replace("CLAIM", claim)
    return page("t", body)


# The same for pages of the atlas.
PLANTED_ENTRIES: dict[str, tuple[str, str]] = {
    "a picture that is not there": (_entry("data:image/png,gone"), "shows nothing"),
    "a picture that is too small on a phone": (_entry(width=1100), "too small to read"),
    "a claim that is cut off": (_entry(claim="x" * 400), "is cut off"),
    "a number in two lines": (
        _entry(claim='<p style="width:3em;overflow-wrap:anywhere">0.0480128</p>'),
        "0.0480128 is broken",
    ),
    "arrows that lead nowhere": (_entry(), "ArrowRight does not lead"),
}
