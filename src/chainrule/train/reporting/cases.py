"""The held-out rows on which the network is most wrong, with what it was given."""

from __future__ import annotations

import base64
import re
from html import escape
from typing import Any

from chainrule.data import Table
from chainrule.data.image_encoder import ImageEncoder
from chainrule.nn.functional import interpolate
from chainrule.ops.layers.softmax import log_softmax
from chainrule.tensor import Tensor
from chainrule.train.fitted import FittedNetwork
from chainrule.train.reporting.html import number
from chainrule.utils.tensorboard.pictures import in_bytes, png

__all__ = ["worst_cases"]

CASES, COLUMNS, PIXELS = 8, 10, 64


def worst_cases(network: FittedNetwork) -> str:
    """The rows with the largest loss."""
    losses, said = _judged(network)
    worst = sorted(range(len(losses)), key=lambda i: -losses[i])[:CASES]
    shown = "".join(_case(network, i, said[i]) for i in worst)
    return (
        "<p>The held-out rows on which the network is most wrong: look here for mistakes in the "
        f'data, and for what is missing in it.</p><div class="cases">{shown}</div>'
    )


def _judged(network: FittedNetwork) -> tuple[list[float], list[str]]:
    """The loss of each row, and what was true and what was said, in words."""
    output, target = network.held_out["output"], network.held_out["target"]
    if network.task == "classification":
        logs, classes = log_softmax(output.double(), 1), network.about["classes"]
        p, best = logs.exp().tolist(), logs.argmax(1).tolist()
        true = target.tolist()
        losses = [-row[t] for row, t in zip(logs.tolist(), true, strict=True)]
        said = [
            f"{classes[t]}, predicted {classes[b]} ({p[i][b]:.0%}; {classes[t]} {p[i][t]:.2g})"
            if b != t
            else f"{classes[t]}, predicted {classes[b]} ({p[i][b]:.0%})"
            for i, (t, b) in enumerate(zip(true, best, strict=True))
        ]
        return losses, said
    spread, mean = network.target.spread, network.target.mean
    pairs = zip(target.reshape(-1).tolist(), output.reshape(-1).tolist(), strict=True)
    values = [(t * spread + mean, o * spread + mean) for t, o in pairs]
    said = [f"{t:.4g}, predicted {o:.4g} ({o - t:+.4g})" for t, o in values]
    return [abs(t - o) for t, o in values], said


def _case(network: FittedNetwork, i: int, said: str) -> str:
    rows = network.held_out["rows"]
    picture = _thumbnail(network, i)
    if not isinstance(rows, Table):
        inputs = f'<div class="soft">{escape(str(rows[i]))}</div>'
    elif picture:
        inputs = ""
    else:
        inputs = _inputs(network, rows, i)
    return f'<div class="case">{picture}<b>{escape(said)}</b>{inputs}</div>'


def _inputs(network: FittedNetwork, rows: Table, i: int) -> str:
    """What the row holds: its columns, or the first of them."""
    names = network.inputs.columns
    one = rows.take([i])
    cells = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(number(one[name].values[0]))}</dd>"
        for name in names[:COLUMNS]
    )
    more = len(names) - COLUMNS
    rest = f'<div class="soft">and {more} more</div>' if more > 0 else ""
    return f"<dl>{cells}</dl>{rest}"


def _thumbnail(network: FittedNetwork, i: int) -> str:
    """The row as a picture, if it is one: of a file, or of columns that are pixels."""
    x = network.held_out["inputs"]
    encoder: Any = network.inputs
    if isinstance(encoder, ImageEncoder):
        image = x[i] * encoder.spread + encoder.mean
    else:
        shape = _pixels(network.about["columns"], network.about["target"])
        if shape is None:
            return ""
        rows = network.held_out["rows"].take([i])
        names = [n for n in rows.names if n != network.about["target"]]
        image = _scaled([float(rows[n].values[0]) for n in names], shape, x)
    high = max(image.shape[1:])
    if high > PIXELS:
        size = [max(1, round(n * PIXELS / high)) for n in image.shape[1:]]
        image = interpolate(image.unsqueeze(0), size=size, mode="bilinear", antialias=True)[0]
    data = base64.b64encode(png(in_bytes(image.permute(1, 2, 0)))).decode()
    return f'<img alt="held-out image {i + 1}" src="data:image/png;base64,{data}">'


def _scaled(values: list[float], shape: tuple[int, int], like: Tensor) -> Tensor:
    """Dark ink on a light ground, whatever the range of the values is."""
    low, high = min(values), max(values)
    pixels = [1 - (v - low) / ((high - low) or 1) for v in values]
    return like.new_tensor(pixels).reshape(1, *shape)


def _pixels(columns: list[str], target: str) -> tuple[int, int] | None:
    """Height and width, where all columns are named after the row and column of a pixel."""
    places = [re.fullmatch(r"\D+(\d+)\D(\d+)", name) for name in columns if name != target]
    if len(places) < 16 or not all(places):
        return None
    found = [(int(m[1]), int(m[2])) for m in places if m]
    high, wide = (max(axis) + 1 for axis in zip(*found, strict=True))
    whole = found == [(r, c) for r in range(high) for c in range(wide)]
    return (high, wide) if whole else None
