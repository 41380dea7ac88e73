"""Charts by matplotlib, which is imported when something is drawn and not before."""

from __future__ import annotations

import importlib.util
import io
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from chainrule.tensor import Tensor

__all__ = [
    "COLORS",
    "DIVERGING",
    "SEQUENTIAL",
    "add_colorbar",
    "available",
    "axes_for",
    "grid_of_axes",
    "levels_of",
    "log_if_wide",
    "marker_of",
    "plain_log_ticks",
    "save_gif",
    "spans_decades",
    "svg_of",
    "svg_of_frame",
]

# Colors that people with any color vision tell apart (Okabe and Ito), for lines and classes.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999933", "#000000")
# Continuous values: from low to high, and from negative over zero to positive.
SEQUENTIAL, DIVERGING = "viridis", "RdBu_r"


def marker_of(k: int) -> str:
    """The marker of class k: another one each time that the colors begin again."""
    return "os^Dv"[k // len(COLORS) % 5]


def available() -> bool:
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError(
            "plot: matplotlib is needed to draw; install it with: pip install 'chainrule[plot]' "
            "(the numbers of the result and print(result) do without it)"
        ) from None
    return plt


def axes_for(
    ax: Axes | None, size: tuple[float, float] = (6.4, 4.0), projection: str | None = None
) -> Any:
    """The axes that were given, or those of a new figure, flat or in three dimensions."""
    if ax is not None and projection is not None and ax.name != projection:
        raise ValueError(
            f"plot: this picture needs axes made with projection={projection!r}, got {ax.name!r}"
        )
    return grid_of_axes(None, 1, 1, size, projection)[0] if ax is None else ax


def grid_of_axes(
    axes: Iterable[Axes] | None,
    count: int,
    columns: int,
    size: tuple[float, float] = (3.2, 2.6),
    projection: str | None = None,
) -> list[Axes]:
    """As many axes as there are panels: those that were given, or those of a new figure.

    ``size`` is that of one panel in inches.
    """
    if axes is not None:
        given = list(axes.flat) if hasattr(axes, "flat") else list(axes)
        if len(given) < count:
            raise ValueError(f"plot: {count} panels need {count} axes, got {len(given)}")
        return given[:count]
    columns = max(1, min(columns, count))
    rows = math.ceil(count / columns)
    _, made = _pyplot().subplots(
        rows,
        columns,
        figsize=(size[0] * columns, size[1] * rows),
        layout="constrained",
        squeeze=False,
        subplot_kw={"projection": projection},
    )
    flat = list(made.flat)
    for ax in flat[count:]:
        ax.remove()
    return flat[:count]


def spans_decades(values: Iterable[float | None]) -> bool:
    """Whether the finite values are positive and the largest is 100 times the least, or more."""
    known = [float(v) for v in values if v is not None and math.isfinite(v)]
    return bool(known) and min(known) > 0 and max(known) >= 100 * min(known)


def log_if_wide(ax: Axes, values: Iterable[float], axis: str = "y") -> bool:
    """Makes an axis logarithmic if positive values span two decades; whether it did."""
    wide = spans_decades(values)
    if wide:
        (ax.set_yscale if axis == "y" else ax.set_xscale)("log")
    return wide


def plain_log_ticks(ax: Axes, axis: str = "y") -> None:
    """Numbers at 1, 2 and 5 of each decade of a logarithmic axis, which may span less than one."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    of = ax.yaxis if axis == "y" else ax.xaxis
    of.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    of.set_major_formatter(StrMethodFormatter("{x:g}"))
    of.set_minor_locator(NullLocator())


def levels_of(values: Tensor, count: int) -> tuple[Any, Any]:
    """How values become colors, and where contours lie: by powers if they span two decades."""
    from matplotlib.colors import LogNorm, Normalize

    finite = values[values.isfinite()]
    if not finite.numel():
        raise ValueError("plot: there is no finite value to draw")
    low, high = float(finite.min()), float(finite.max())
    high = high if high > low else low + (abs(low) or 1.0) * 1e-6
    shares = [i / count for i in range(count + 1)]
    if low > 0 and high >= 100 * low:
        return LogNorm(low, high), [low * (high / low) ** s for s in shares]
    return Normalize(low, high), [low + (high - low) * s for s in shares]


def add_colorbar(ax: Axes, drawn: Any, label: str) -> None:
    """The scale of colors beside axes, with few numbers on it."""
    from matplotlib.ticker import LogLocator, MaxNLocator

    log = type(drawn.norm).__name__ == "LogNorm"
    bar = ax.figure.colorbar(drawn, ax=ax, label=label)
    bar.locator = LogLocator() if log else MaxNLocator(6)
    bar.minorticks_off()
    bar.update_ticks()


def svg_of(plot: Callable[[], Any]) -> str:
    """What a plot method draws, as SVG text; the figure is closed again."""
    figure = _figure_of(plot())
    try:
        return _svg(figure)
    finally:
        _pyplot().close(figure)


def svg_of_frame(draw: Callable[[Figure, int], Any], i: int, size: tuple[float, float]) -> str:
    """Frame i of a film as SVG text."""
    figure = _pyplot().figure(figsize=size, layout="constrained")
    try:
        draw(figure, i)
        return _svg(figure)
    finally:
        _pyplot().close(figure)


def save_gif(
    path: Path,
    draw: Callable[[Figure, int], Any],
    count: int,
    size: tuple[float, float],
    seconds_per_frame: float,
) -> None:
    """Writes a film as a GIF by Pillow, which comes with matplotlib."""
    plt = _pyplot()
    from matplotlib.animation import PillowWriter

    figure = plt.figure(figsize=size, layout="constrained")
    try:
        writer = PillowWriter(fps=max(1, round(1 / seconds_per_frame)))
        with writer.saving(figure, str(path), dpi=100):
            for i in range(count):
                figure.clear()
                draw(figure, i)
                writer.grab_frame()
    finally:
        plt.close(figure)


def _svg(figure: Figure) -> str:
    text = io.StringIO()
    figure.savefig(text, format="svg")
    svg = text.getvalue()
    return svg[svg.index("<svg") :]


def _figure_of(drawn: Any) -> Any:
    first = drawn
    while not hasattr(first, "figure"):
        first = first[0]
    return first.figure
