"""Charts as instruments draw them: those of :mod:`chainrule.charts`."""

from __future__ import annotations

from chainrule.charts import (
    COLORS,
    DIVERGING,
    SEQUENTIAL,
    add_colorbar,
    available,
    axes_for,
    grid_of_axes,
    levels_of,
    log_if_wide,
    save_gif,
    svg_of,
    svg_of_frame,
)

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
    "save_gif",
    "svg_of",
    "svg_of_frame",
]
