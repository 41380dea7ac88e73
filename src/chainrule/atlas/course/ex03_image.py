"""Example 3: an image as a tensor of shape (1, 3, H, W), colours between 0 and 1.

The course's picture is not supplied, so this one is painted: tilted layers of rock, 188 by 257.
"""

from __future__ import annotations

import chainrule
from chainrule import Tensor


def picture(height: int = 188, width: int = 257) -> Tensor:
    """Tilted, wavy strata in three colours."""
    y = chainrule.arange(height).reshape(-1, 1) / height
    x = chainrule.arange(width) / width
    depth = 9 * (y + 0.25 * x + 0.04 * (9 * x).sin())
    colours = [(depth + phase).sin() * 0.5 + 0.5 for phase in (0.0, 0.7, 1.9)]
    return chainrule.stack(colours)


def main() -> Tensor:
    """The image, with its shape and range printed."""
    image = picture().unsqueeze(0)
    print("image:", tuple(image.shape), "from", image.min().item(), "to", image.max().item())
    return image


if __name__ == "__main__":
    main()
