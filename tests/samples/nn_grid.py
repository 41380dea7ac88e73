"""Records of sampling at places of a grid."""

from __future__ import annotations

from typing import Any

import numpy as np
from samples.record import Sample
from scipy import ndimage

__all__ = ["SAMPLES"]

OUTSIDE = {"zeros": "grid-constant", "border": "nearest", "reflection": "reflect"}


def sampled(
    x: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros", **_: Any
) -> Any:
    """SciPy's interpolation, at places counted in pixels."""
    sizes = np.array(x.shape[2:])
    out = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for n, c in np.ndindex(x.shape[:2]):
        places = ((grid[n, ..., ::-1] + 1) * sizes - 1) / 2
        out[n, c] = ndimage.map_coordinates(
            x[n, c],
            np.moveaxis(places, -1, 0),
            order=1 if mode == "bilinear" else 0,
            mode=OUTSIDE[padding_mode],
        )
    return out


def affine(theta: Any, size: Any, align_corners: bool) -> Any:
    out = np.zeros((len(theta), *size[2:], len(size) - 2))
    for n, *at in np.ndindex(len(theta), *size[2:]):
        if align_corners:
            places = [2 * i / (s - 1) - 1 for i, s in zip(at, size[2:], strict=True)]
        else:
            places = [(2 * i + 1) / s - 1 for i, s in zip(at, size[2:], strict=True)]
        out[(n, *at)] = theta[n] @ [*places[::-1], 1]
    return out


def grid(nd: int) -> Any:
    def args(r: np.random.Generator) -> tuple[Any, ...]:
        n, sizes, places = (2, (3, 4), (2, 1)) if nd == 2 else (1, (2, 3, 2), (2, 1, 1))
        return (r.normal(size=(n, 1, *sizes)), r.uniform(-1.6, 1.6, size=(n, *places, nd)))

    return args


def record(nd: int, mode: str, padding_mode: str, align_corners: bool = False) -> Sample:
    settings = {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
    known = mode != "bicubic" and not align_corners
    note = f"{nd}d, {mode}, {padding_mode}" + (", aligned" if align_corners else "")
    return Sample(
        "nn.functional.grid_sample", grid(nd), settings, sampled if known else None, note=note
    )


SAMPLES: list[Sample] = [
    record(2, "bilinear", "zeros"),
    record(2, "bilinear", "border"),
    record(2, "bilinear", "reflection"),
    record(2, "bilinear", "reflection", True),
    record(2, "nearest", "zeros"),
    record(2, "bicubic", "zeros", True),
    record(2, "bicubic", "reflection"),
    record(3, "bilinear", "zeros"),
    record(3, "bilinear", "border", True),
    record(3, "nearest", "border"),
    Sample(
        "nn.functional.affine_grid",
        lambda r: (r.normal(size=(2, 2, 3)), [2, 1, 3, 4]),
        {"align_corners": False},
        affine,
    ),
    Sample(
        "nn.functional.affine_grid",
        lambda r: (r.normal(size=(2, 3, 4)), [2, 1, 3, 2, 4]),
        {"align_corners": True},
        affine,
        note="3d, aligned",
    ),
]
