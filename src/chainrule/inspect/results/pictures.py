"""How one picture is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chainrule.tensor import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["images_of", "show_picture"]


def show_picture(
    ax: Axes, picture: Tensor, span: tuple[float, float] | None = None, **style: Any
) -> None:
    """Draws a picture (H, W) or (C, H, W) without axes, gray or in color.

    ``span`` are the values of black and white; by default 0 and 1, or what the picture spans if it
    goes beyond these.
    """
    shown = picture.detach().double()
    if shown.ndim == 3 and shown.shape[0] not in (1, 3):
        shown = shown.mean(0, keepdim=True)
    low, high = (float(shown.min()), float(shown.max())) if span is None else span
    if span is None and low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    shown = ((shown - low) / ((high - low) or 1.0)).clamp(0, 1)
    if shown.ndim == 3:
        shown = shown[0] if shown.shape[0] == 1 else shown.permute(1, 2, 0)
    looks: dict[str, Any] = {"cmap": "gray", "vmin": 0, "vmax": 1, "interpolation": "nearest"}
    ax.imshow(shown.numpy(), **looks | style)
    ax.set(xticks=[], yticks=[])


def images_of(instrument: str, given: Tensor) -> Tensor:
    """Pictures as (N, C, H, W): one or many, with or without channels, of bytes or numbers."""
    images = given.detach()
    if not images.dtype.is_floating_point:
        images = (
            images.float() / 255 if images.numel() and int(images.max()) > 1 else images.float()
        )
    if images.ndim == 2 or (images.ndim == 3 and images.shape[0] in (1, 3)):
        images = images.unsqueeze(0)
    if images.ndim == 3:
        images = images.unsqueeze(1)
    if images.ndim != 4 or not images.numel():
        raise ValueError(
            f"{instrument}: expected pictures (N, C, H, W), got shape {tuple(given.shape)}"
        )
    if not bool(images.isfinite().all()):
        raise ValueError(f"{instrument}: the pictures have values that are not finite")
    return images
