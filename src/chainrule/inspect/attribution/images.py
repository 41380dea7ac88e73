"""Grids of small pictures, as results show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from chainrule import charts
from chainrule.tensor import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_grid", "stretched"]


def stretched(picture: Tensor) -> Tensor:
    """A picture with its values stretched from 0 to 1; one value alone becomes gray."""
    low, high = float(picture.min()), float(picture.max())
    return (picture - low) / (high - low) if high > low else picture * 0 + 0.5


def draw_grid(
    axes: Sequence[Axes] | None,
    pictures: Sequence[Tensor],
    titles: Sequence[str],
    *,
    signed: bool = False,
    columns: int = 8,
    size: tuple[float, float] = (1.3, 1.45),
    **style: Any,
) -> list[Axes]:
    """Pictures (H, W) or (C, H, W) side by side; signed ones have white at zero."""
    made = charts.grid_of_axes(axes, len(pictures), columns, size)
    for ax, picture, title in zip(made, pictures, titles, strict=True):
        looks: dict[str, Any] = {"interpolation": "nearest"}
        picture = picture.reshape(1, -1) if picture.ndim < 2 else picture
        shown = picture[0] if picture.ndim == 3 and picture.shape[0] == 1 else picture
        if shown.ndim == 3 and shown.shape[0] == 3:
            shown = stretched(shown).permute(1, 2, 0)
        elif shown.ndim == 3:  # many channels: their mean
            shown = shown.mean(0)
        if shown.ndim == 2:
            top = float(shown.abs().max()) or 1.0
            looks |= {"cmap": charts.DIVERGING if signed else "gray"}
            looks |= {"vmin": -top, "vmax": top} if signed else {}
        ax.imshow(shown.numpy(), **looks | style)
        ax.set(xticks=[], yticks=[])
        ax.set_title(title, fontsize=8)
    return made
