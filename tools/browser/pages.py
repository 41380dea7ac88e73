"""The pages to look at, and pages with mistakes that must be seen."""

from __future__ import annotations

from collections.abc import Callable

import chainrule
from chainrule import data, inspect, nn, train
from chainrule.inspect.core.pages import page

__all__ = ["PAGES", "PLANTED"]


def _fitted(name: str) -> str:
    table = data.embedded(name)
    settings = train.Settings(epochs=25, doctor=name == "iris")
    network = train.fit_table(
        table.table, table.target, settings=settings, source=name, progress=False
    )
    network.about["embedded"] = True
    return train.html_report(network, f"chainrule fit {name} --epochs 25")


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


# Its name, what makes it, and what must work by keys.
PAGES: dict[str, tuple[Callable[[], str], str]] = {
    "fit iris": (lambda: _fitted("iris"), "curves"),
    "fit digits": (lambda: _fitted("digits"), "curves"),
    "fit diabetes": (lambda: _fitted("diabetes"), "curves"),
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
    "keys that do nothing": (page("t", _STEPS), "changes nothing"),
}
