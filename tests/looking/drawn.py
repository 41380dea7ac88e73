"""What is asked of every drawing: it has words, they lie inside the figure, none covers another."""

from __future__ import annotations

import itertools
from typing import Any

__all__ = ["assert_axes_numbered", "assert_drawn_well", "figure_of", "texts_of"]


def figure_of(drawn: Any) -> Any:
    """The figure of axes, or of an array or list of them."""
    while not hasattr(drawn, "figure"):
        drawn = drawn[0]
    return drawn.figure


def texts_of(figure: Any) -> list[Any]:
    """The words of a figure that are seen: matplotlib keeps ticks that it does not draw."""
    import matplotlib.axis
    import matplotlib.text

    unseen: set[int] = set()
    for axis in figure.findobj(matplotlib.axis.Axis):
        drawn = {id(tick) for tick in axis._update_ticks()}
        for tick in [*axis.majorTicks, *axis.minorTicks]:
            if id(tick) not in drawn or not axis.axes.axison:
                unseen |= {id(tick.label1), id(tick.label2)}
    found = figure.findobj(matplotlib.text.Text)
    return [t for t in found if t.get_visible() and t.get_text().strip() and id(t) not in unseen]


def assert_drawn_well(drawn: Any, overlap: float = 2.0) -> None:
    """Every text lies inside the figure, and no two cover each other by more than some pixels."""
    figure = figure_of(drawn)
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    texts = texts_of(figure)
    assert texts, "nothing is said in the figure"
    assert any(ax.get_title() for ax in figure.axes) or figure._suptitle, "the figure has no title"
    boxes = [(t.get_text(), t.get_window_extent(renderer)) for t in texts]
    width, height = figure.canvas.get_width_height()
    for words, box in boxes:
        inside = box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1
        assert inside, f"{words!r} lies outside the figure: {box}"
    for (a, one), (b, other) in itertools.combinations(boxes, 2):
        across = min(one.x1, other.x1) - max(one.x0, other.x0)
        along = min(one.y1, other.y1) - max(one.y0, other.y0)
        assert min(across, along) <= overlap, f"{a!r} covers {b!r}: {one}, {other}"


def assert_axes_numbered(drawn: Any) -> None:
    """Every logarithmic axis with ticks has two numbers or more in sight."""
    for ax in figure_of(drawn).axes:
        for axis in (ax.xaxis, ax.yaxis):
            if axis.get_scale() != "log" or not ax.axison or not axis.get_visible():
                continue
            ticks = axis._update_ticks()
            told = [t for t in ticks if t.label1.get_visible() and t.label1.get_text().strip()]
            outer = not ticks or not any(t.label1.get_visible() for t in ticks)  # shared axes
            assert outer or len(told) > 1, f"{ax.get_title()!r}: an axis has {len(told)} numbers"
