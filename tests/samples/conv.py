"""Records of convolutions, with references that visit every output in a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from samples.record import Sample

__all__ = ["SAMPLES", "conv", "conv_transpose", "fold", "per_dim", "unfold"]

Args = Callable[[np.random.Generator], tuple[Any, ...]]

# --- references -----------------------------------------------------------------------------------


def per_dim(value: Any, nd: int) -> tuple[int, ...]:
    return (value,) * nd if isinstance(value, int) else tuple(value)


def pads(padding: Any, kernel: Any, dilation: Any) -> list[tuple[int, int]]:
    """The zeros before and behind each dimension."""
    if padding == "valid":
        return [(0, 0)] * len(kernel)
    if padding == "same":
        both = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
        return [(p // 2, p - p // 2) for p in both]
    return [(p, p) for p in per_dim(padding, len(kernel))]


def window(at: Any, kernel: Any, stride: Any, dilation: Any) -> tuple[Any, ...]:
    """The index of one window."""
    each = zip(at, kernel, stride, dilation, strict=True)
    return (..., *[slice(i * s, i * s + (k - 1) * d + 1, d) for i, k, s, d in each])


def conv(
    x: Any,
    w: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    nd = w.ndim - 2
    if x.ndim == nd + 1:
        return conv(x[None], w, bias, stride, padding, dilation, groups)[0]
    kernel = w.shape[2:]
    s, d = per_dim(stride, nd), per_dim(dilation, nd)
    x = np.pad(x, [(0, 0), (0, 0), *pads(padding, kernel, d)])
    each = zip(x.shape[2:], kernel, s, d, strict=True)
    size = [(n - (k - 1) * b - 1) // a + 1 for n, k, a, b in each]
    out = np.zeros((len(x), len(w), *size))
    per_group, inputs = len(w) // groups, w.shape[1]
    for o in range(len(w)):
        first = o // per_group * inputs
        for at in np.ndindex(*size):
            seen = x[:, first : first + inputs][window(at, kernel, s, d)]
            out[(slice(None), o, *at)] = (seen * w[o]).sum(axis=tuple(range(1, nd + 2)))
    return out if bias is None else out + bias.reshape(-1, *[1] * nd)


def conv_transpose(
    x: Any,
    w: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Any:
    nd = w.ndim - 2
    if x.ndim == nd + 1:
        return conv_transpose(x[None], w, bias, stride, padding, output_padding, groups, dilation)[
            0
        ]
    kernel = w.shape[2:]
    s, d, p = per_dim(stride, nd), per_dim(dilation, nd), per_dim(padding, nd)
    extra = per_dim(output_padding, nd)
    each = zip(x.shape[2:], kernel, s, d, extra, strict=True)
    full = [(n - 1) * a + (k - 1) * b + 1 + e for n, k, a, b, e in each]
    per_group, inputs = w.shape[1], len(w) // groups
    out = np.zeros((len(x), per_group * groups, *full))
    for c in range(len(w)):
        first = c // inputs * per_group
        for at in np.ndindex(*x.shape[2:]):
            spread = x[(slice(None), c, *at)].reshape(-1, 1, *[1] * nd) * w[c]
            out[:, first : first + per_group][window(at, kernel, s, d)] += spread
    cropped = out[(..., *[slice(a, n - a) for a, n in zip(p, full, strict=True)])]
    return cropped if bias is None else cropped + bias.reshape(-1, *[1] * nd)


def unfold(x: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    k, d, p, s = (per_dim(v, 2) for v in (kernel_size, dilation, padding, stride))
    x = np.pad(x, [(0, 0)] * (x.ndim - 2) + [(a, a) for a in p])
    each = zip(x.shape[-2:], k, s, d, strict=True)
    size = [(n - (a - 1) * c - 1) // b + 1 for n, a, b, c in each]
    columns = [x[window(at, k, s, d)].reshape(*x.shape[:-3], -1) for at in np.ndindex(*size)]
    return np.stack(columns, axis=-1)


def fold(
    cols: Any,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Any:
    k, d, p, s = (per_dim(v, 2) for v in (kernel_size, dilation, padding, stride))
    lead, channels = cols.shape[:-2], cols.shape[-2] // (k[0] * k[1])
    padded = [n + 2 * a for n, a in zip(output_size, p, strict=True)]
    out = np.zeros((*lead, channels, *padded))
    size = [(n - (a - 1) * c - 1) // b + 1 for n, a, b, c in zip(padded, k, s, d, strict=True)]
    for i, at in enumerate(np.ndindex(*size)):
        out[window(at, k, s, d)] += cols[..., i].reshape(*lead, channels, *k)
    return out[(..., *[slice(a, n - a) for a, n in zip(p, padded, strict=True)])]


def output_size(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    """By trying: how many windows begin where they still fit."""
    whole = size + 2 * padding
    return sum(start + (kernel - 1) * dilation < whole for start in range(0, whole, stride))


# --- records --------------------------------------------------------------------------------------


def operands(x: tuple[int, ...], w: tuple[int, ...], bias: int = 0) -> Args:
    """An input, a weight and, if its length is given, a bias."""

    def args(r: np.random.Generator) -> tuple[Any, ...]:
        return (r.normal(size=x), r.normal(size=w), *([r.normal(size=bias)] if bias else []))

    return args


def of_conv(name: str, args: Args, note: str, torch: bool = True, **kwargs: Any) -> Sample:
    reference = conv_transpose if "transpose" in name else conv
    same = f"nn.functional.{name}" if torch else ""
    return Sample(name, args, kwargs, reference, torch=same, note=note)


IMAGE = operands((2, 3, 5, 6), (4, 3, 3, 2))
SAMPLES: list[Sample] = [
    of_conv("conv1d", operands((2, 3, 7), (4, 3, 3), 4), "bias"),
    of_conv("conv1d", operands((2, 2, 8), (3, 2, 3)), "settings", stride=2, padding=1, dilation=2),
    of_conv("conv1d", operands((2, 7), (3, 2, 3)), "no batch, same", padding="same"),
    of_conv("conv2d", IMAGE, "plain"),
    of_conv("conv2d", operands((2, 3, 5, 6), (4, 3, 3, 2), 4), "bias, padding", padding=1),
    of_conv("conv2d", IMAGE, "stride", stride=(2, 3)),
    of_conv("conv2d", IMAGE, "all", stride=(2, 1), padding=(1, 2), dilation=(1, 2)),
    of_conv("conv2d", IMAGE, "valid", padding="valid"),
    of_conv(
        "conv2d", operands((1, 2, 5, 5), (2, 2, 3, 5)), "same", padding="same", dilation=(2, 1)
    ),
    # PyTorch warns of the copy it makes.
    of_conv("conv2d", operands((1, 2, 5, 5), (2, 2, 2, 4)), "same, even", False, padding="same"),
    of_conv("conv2d", operands((2, 4, 5, 4), (6, 2, 2, 2), 6), "groups", groups=2, padding=(0, 1)),
    of_conv("conv2d", operands((2, 3, 4, 4), (6, 1, 3, 3)), "depthwise", groups=3, padding=1),
    of_conv("conv2d", operands((3, 5, 5), (2, 3, 3, 3), 2), "no batch"),
    of_conv("conv2d", operands((2, 3, 4, 3), (2, 3, 1, 1)), "one by one"),
    of_conv("conv2d", operands((3, 2, 3, 3), (2, 2, 3, 3)), "one output"),
    of_conv("conv2d", operands((2, 1, 2, 2), (1, 1, 2, 2)), "mostly padding", padding=3, stride=4),
    of_conv("conv2d", operands((0, 2, 4, 4), (3, 2, 3, 3), 3), "no samples"),
    of_conv("conv3d", operands((1, 2, 4, 3, 4), (2, 2, 2, 2, 3), 2), "bias"),
    of_conv(
        "conv3d",
        operands((1, 2, 4, 3, 4), (2, 1, 2, 2, 2)),
        "settings",
        groups=2,
        stride=(1, 2, 1),
        padding=(0, 1, 1),
        dilation=(2, 1, 1),
    ),
    of_conv("conv_transpose1d", operands((2, 3, 4), (3, 2, 3), 2), "bias"),
    of_conv(
        "conv_transpose1d", operands((3, 4), (3, 2, 3)), "no batch", stride=3, output_padding=2
    ),
    of_conv("conv_transpose2d", operands((2, 3, 3, 4), (3, 2, 3, 2)), "plain"),
    of_conv(
        "conv_transpose2d", operands((2, 3, 3, 2), (3, 2, 4, 4), 2), "doubling", stride=2, padding=1
    ),
    of_conv(
        "conv_transpose2d",
        operands((2, 4, 3, 2), (4, 2, 3, 3), 4),
        "all",
        groups=2,
        stride=(2, 3),
        padding=(1, 2),
        output_padding=(1, 0),
        dilation=(1, 2),
    ),
    of_conv(
        "conv_transpose2d",
        operands((1, 2, 3, 3), (2, 1, 2, 2)),
        "output_padding by dilation",
        padding=1,
        output_padding=1,
        dilation=2,
    ),
    of_conv("conv_transpose2d", operands((0, 2, 3, 3), (2, 1, 2, 2)), "no samples"),
    of_conv(
        "conv_transpose3d",
        operands((1, 2, 2, 3, 2), (2, 2, 2, 1, 2), 2),
        "bias",
        stride=2,
        padding=(0, 0, 1),
        output_padding=1,
    ),
    *[
        Sample(
            "im2col",
            lambda r: (r.normal(size=(2, 3, 5, 4)),),
            kwargs,
            unfold,
            torch="nn.functional.unfold",
            note=note,
        )
        for note, kwargs in {
            "plain": {"kernel_size": 2},
            "all": {"kernel_size": (2, 3), "stride": (2, 1), "padding": (1, 2), "dilation": (2, 1)},
        }.items()
    ],
    Sample(
        "im2col",
        lambda r: (r.normal(size=(3, 4, 4)),),
        {"kernel_size": 1},
        unfold,
        torch="nn.functional.unfold",
        note="no batch, one by one",
    ),
    Sample(
        "col2im",
        lambda r: (r.normal(size=(2, 12, 6)),),
        {"output_size": (3, 4), "kernel_size": 2},
        fold,
        "nn.functional.fold",
        note="plain",
    ),
    Sample(
        "col2im",
        lambda r: (r.normal(size=(6, 18)),),
        {
            "output_size": (4, 4),
            "kernel_size": (2, 3),
            "stride": (2, 1),
            "padding": (1, 2),
            "dilation": (1, 1),
        },
        fold,
        torch="nn.functional.fold",
        note="no batch",
    ),
    Sample(
        "conv_output_size",
        lambda r: (13, 3),
        {"stride": 2, "padding": 1, "dilation": 2},
        output_size,
        torch="",
        differentiable=False,
        vmap=False,
    ),
    Sample(
        "conv_transpose_output_size",
        lambda r: (6, 4),
        {"stride": 2, "padding": 1},
        lambda size, kernel, stride, padding: conv_transpose(
            np.zeros((1, 1, size)), np.zeros((1, 1, kernel)), None, stride, padding
        ).shape[2],
        torch="",
        differentiable=False,
        vmap=False,
    ),
]
