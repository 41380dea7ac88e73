"""What an entry drew as files: SVG where that is small, PNG where not, a page for a film."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

from chainrule.inspect.core.pages import Frames
from chainrule.inspect.core.results import Diagram, Result

__all__ = ["Picture", "close_all", "figure_of", "files_of"]

LARGEST_SVG = 160_000  # bytes; beyond, points and fields are dots of a raster


@dataclass(frozen=True)
class Picture:
    """One file: its name, its bytes, and whether it is a film."""

    name: str
    content: bytes
    is_film: bool = False


def figure_of(drawn: Any) -> Any:
    """The figure of matplotlib behind what was drawn, of a film the last; None for SVG text."""
    if isinstance(drawn, (str, Diagram)):
        return None
    if isinstance(drawn, Frames):
        figure = _figure(drawn.size)
        drawn.draw(figure, drawn.count - 1)
        return figure
    if isinstance(drawn, Result):
        drawn = drawn.plot()
    while not hasattr(drawn, "figure"):
        drawn = drawn[0]
    return drawn.figure


def files_of(number: int, drawn: Any) -> list[Picture]:
    """The files of the picture of this number: a film has a page, and a frame to be seen of it."""
    name = f"picture-{number}"
    if isinstance(drawn, (str, Diagram)):
        svg = drawn if isinstance(drawn, str) else drawn.svg
        return [Picture(f"{name}.svg", svg.encode())]
    files = [_of_figure(name, figure_of(drawn))]
    if isinstance(drawn, Frames) or (isinstance(drawn, Result) and hasattr(drawn, "to_html")):
        files.append(Picture(f"film-{number}.html", drawn.to_html().encode(), is_film=True))
    return files


def _figure(size: tuple[float, float]) -> Any:
    import matplotlib.pyplot as plt

    return plt.figure(figsize=size, layout="constrained")


def _of_figure(name: str, figure: Any) -> Picture:
    import matplotlib.pyplot as plt

    # Ids that do not change from run to run: the same picture is the same file.
    with plt.rc_context({"svg.hashsalt": name}):
        svg = io.BytesIO()
        figure.savefig(svg, format="svg", metadata={"Date": None})
    if len(svg.getvalue()) <= LARGEST_SVG:
        return Picture(f"{name}.svg", svg.getvalue())
    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=130, metadata={"Software": None})
    return Picture(f"{name}.png", png.getvalue())


def close_all() -> None:
    """Closes every figure that an entry left open."""
    import matplotlib.pyplot as plt

    plt.close("all")
