"""The pages to look at, and pages with mistakes that must be seen."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import chainrule
from chainrule import atlas, data, inspect, nn, train
from chainrule.atlas.site.writing import write_site
from chainrule.inspect.core.pages import page

__all__ = ["PAGES", "PLANTED", "atlas_pages"]


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
    ids = ["V10", "V23", "V28", "X01", "N07", "EX04", "ERR001", "ERR003"]
    atlas.run(atlas.choose(ids), folder)
    write_site(folder)
    pages = [(folder / f"{id}.html", "") for id in ids]
    return [(folder / "index.html", "filters"), (folder / "api.html", ""), *pages]


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
}
