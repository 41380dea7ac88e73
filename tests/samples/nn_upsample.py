"""Records of resampling and rearranging."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from samples.record import Sample, normal

__all__ = ["SAMPLES", "along"]

# --- references -----------------------------------------------------------------------------------


def places(n_in: int, n_out: int, align_corners: bool) -> Any:
    i = np.arange(n_out)
    if align_corners:
        return i * ((n_in - 1) / (n_out - 1)) if n_out > 1 else 0.0 * i
    return (i + 0.5) * n_in / n_out - 0.5


def cubic(d: float) -> float:
    """Keys' kernel with a = -3/4."""
    a, d = -0.75, abs(d)
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * (d**3 - 5 * d**2 + 8 * d - 4) if d < 2 else 0.0


def along(x: Any, n_out: int, mode: str, align_corners: bool) -> Any:
    """A row of numbers at another size, output by output."""
    n_in = len(x)
    if mode == "nearest":
        return np.array([x[int(i * n_in / n_out)] for i in range(n_out)])
    at = places(n_in, n_out, align_corners)
    if mode == "nearest-exact":
        return np.array([x[min(int(np.floor(p + 0.5)), n_in - 1)] for p in at])
    if mode != "bicubic":
        return np.interp(at, np.arange(n_in), x)
    out = np.zeros(n_out)
    for i, p in enumerate(at):
        for k in range(int(np.floor(p)) - 1, int(np.floor(p)) + 3):
            out[i] += cubic(p - k) * x[min(max(k, 0), n_in - 1)]
    return out


def resampled(
    x: Any, size: Any, mode: str = "nearest", align_corners: bool = False, **_: Any
) -> Any:
    for dim, n in enumerate(size, 2):
        x = np.apply_along_axis(along, dim, x, n, mode, align_corners)
    return x


def shuffled(x: Any, r: int) -> Any:
    *lead, c, h, w = x.shape
    out = np.zeros((*lead, c // r**2, h * r, w * r))
    for i, j in itertools.product(range(r), repeat=2):
        for k in range(c // r**2):
            out[..., k, i::r, j::r] = x[..., k * r**2 + i * r + j, :, :]
    return out


def unshuffled(x: Any, r: int) -> Any:
    *lead, c, h, w = x.shape
    out = np.zeros((*lead, c * r**2, h // r, w // r))
    for i, j in itertools.product(range(r), repeat=2):
        for k in range(c):
            out[..., k * r**2 + i * r + j, :, :] = x[..., k, i::r, j::r]
    return out


def dealt(x: Any, groups: int) -> Any:
    c = x.shape[1]
    return x[:, [g * (c // groups) + k for k in range(c // groups) for g in range(groups)]]


# --- records --------------------------------------------------------------------------------------


def record(note: str, shape: tuple[int, ...], **kwargs: Any) -> Sample:
    has_reference = "size" in kwargs and kwargs.get("mode") != "area" and 0 not in shape
    return Sample(
        "nn.functional.interpolate",
        normal(*shape),
        kwargs,
        resampled if has_reference else None,
        note=note,
    )


def with_number(n: int, *shape: int) -> Any:
    return lambda r: (r.normal(size=shape), n)


SAMPLES: list[Sample] = [
    record("nearest", (2, 2, 4, 5), size=(7, 3)),
    record("nearest exact", (2, 2, 4, 5), size=(7, 3), mode="nearest-exact"),
    record("linear", (2, 2, 6), size=(10,), mode="linear"),
    record("linear aligned", (2, 2, 6), size=(4,), mode="linear", align_corners=True),
    record("bilinear", (2, 2, 4, 5), size=(7, 3), mode="bilinear"),
    record("bicubic", (2, 2, 4, 5), size=(7, 3), mode="bicubic"),
    record("bicubic aligned", (2, 2, 4, 5), size=(3, 8), mode="bicubic", align_corners=True),
    record(
        "bilinear antialiased",
        (2, 2, 7, 4),
        scale_factor=(0.4, 1.5),
        mode="bilinear",
        antialias=True,
    ),
    record(
        "bicubic antialiased", (2, 2, 7, 4), scale_factor=(0.4, 1.5), mode="bicubic", antialias=True
    ),
    record("trilinear", (1, 2, 2, 3, 2), size=(4, 2, 3), mode="trilinear"),
    record("area", (2, 2, 6, 5), size=(3, 2), mode="area"),
    record("factor", (2, 2, 4, 5), scale_factor=(1.7, 0.6), mode="bilinear"),
    record("one output", (2, 2, 4), size=(1,), mode="linear", align_corners=True),
    record("no samples", (0, 2, 4), size=(6,), mode="linear"),
    Sample("nn.functional.pixel_shuffle", with_number(2, 2, 8, 3, 2), reference=shuffled),
    Sample(
        "nn.functional.pixel_shuffle", with_number(3, 9, 2, 2), reference=shuffled, note="no batch"
    ),
    Sample("nn.functional.pixel_unshuffle", with_number(2, 2, 2, 4, 6), reference=unshuffled),
    Sample("nn.functional.channel_shuffle", with_number(3, 2, 6, 2, 2), reference=dealt),
]
