"""The held-out rows on which the network is most wrong, with what it was given."""

from __future__ import annotations

import base64
from html import escape
from pathlib import Path
from typing import Any

from chainrule.data import Column, Table
from chainrule.data.image_encoder import ImageEncoder
from chainrule.inspect.results.worst import Case, top_losses
from chainrule.nn.functional import interpolate
from chainrule.printing import readable
from chainrule.tensor import Tensor
from chainrule.train.fitted import FittedNetwork
from chainrule.train.reporting.html import number, table_of
from chainrule.train.reporting.importance import columns_by_importance, pixels
from chainrule.train.reporting.seen import CLASSES, KINDS, LABELS, Seen, seen_of, true_of
from chainrule.utils.tensorboard.pictures import in_bytes, png

__all__ = ["worst_cases"]

CASES, COLUMNS, PIXELS = 8, 10, 64
LONG = 14  # letters of a cell, above which it may be cut off


def worst_cases(network: FittedNetwork) -> str:
    """The rows with the largest loss, each beside the nearest of the training rows."""
    seen = seen_of(network)
    losses = _losses(seen)
    worst = losses.argsort(descending=True, stable=True).tolist()[:CASES]
    total = float(losses.sum())
    share = float(losses[worst].sum()) / total if total > 0 else 0.0
    nearest = _nearest(network, worst)
    shown = "".join(_case(network, seen, i, nearest.get(i)) for i in worst)
    one, many = ("image", "images") if network.about.get("images") else ("row", "rows")
    beside = f" Beside each is the training {one} that is most like it." if nearest else ""
    return (
        f"<p>The held-out {many} on which the network is most wrong: look here for mistakes in the "
        f"data, and for what is missing in it. These {len(worst)} make {share:.0%} of the loss."
        f'{beside}</p><div class="cases">{shown}</div>'
    )


def _losses(seen: Seen) -> Tensor:
    """The loss of each row: of probabilities that of what is true, of numbers the error."""
    if seen.kind == CLASSES:
        right = seen.said.gather(1, seen.true.reshape(-1, 1)).reshape(-1)
        return -right.clamp(min=1e-300).log()
    if seen.kind == LABELS:
        right = seen.true * seen.said + (1 - seen.true) * (1 - seen.said)
        return -right.clamp(min=1e-300).log().mean(1)
    # Several numbers count in their own scales.
    return ((seen.centers - seen.true) / seen.true.std(0).clamp(min=1e-300)).abs().mean(1)


def _words(seen: Seen, i: int) -> str:
    """What was true and what was said."""
    if seen.kind == CLASSES:
        p, t = seen.said[i], int(seen.true[i])
        best = int(p.argmax())
        names = seen.names
        own = "" if best == t else f"; {names[t]} {float(p[t]):.1%}"
        return f"{names[t]}, predicted {names[best]} ({float(p[best]):.1%}{own})"
    if seen.kind == LABELS:
        true, said = (
            [n for n, v in zip(seen.names, row[i].tolist(), strict=True) if v > 0.5]
            for row in (seen.true, seen.said)
        )
        return f"{' + '.join(true) or 'none'}, predicted {' + '.join(said) or 'none'}"
    true, said = seen.true[i].tolist(), seen.centers[i].tolist()
    listed = ", ".join(map(readable, said))
    left = said[0] - true[0]
    off = f" ({'+' if left >= 0 else '-'}{readable(abs(left))})" if len(said) == 1 else ""
    return f"{', '.join(map(readable, true))}, predicted {listed}{off}"


def _nearest(network: FittedNetwork, worst: list[int]) -> dict[int, Case]:
    """The nearest training row of each, as far as training rows are kept."""
    if "examples" not in network.held_out:
        return {}
    x, rows = network.held_out["inputs"][worst], network.held_out["examples"]
    # Which is nearest depends on inputs alone: any numbers serve as targets.
    found = top_losses(_zeros, x, _zeros(x), training=(rows[0], _zeros(rows[0])), k=len(worst))
    return {worst[case.index]: case for case in found.cases}


def _zeros(x: Tensor) -> Tensor:
    return x.reshape(len(x), -1)[:, 0].double() * 0


def _case(network: FittedNetwork, seen: Seen, i: int, near: Case | None) -> str:
    rows = network.held_out["rows"]
    picture = _thumbnail(network, rows, network.held_out["inputs"], i, f"held-out image {i + 1}")
    said = f"<b>{escape(_words(seen, i))}</b>"
    if not picture:
        return f'<div class="case">{said}{_compared(network, rows, i, near)}</div>'
    inputs = "" if isinstance(rows, Table) else f'<div class="soft">{escape(_short(rows[i]))}</div>'
    beside = ""
    if near is not None and near.nearest is not None:
        x, others, target = network.held_out["examples"]
        name = _known(network, target[near.nearest])
        other = _thumbnail(network, others, x, near.nearest, f"most like it: {name}")
        beside = f"<figure>{other}<figcaption>trained on: {escape(name)}</figcaption></figure>"
    return (
        f'<div class="case">{said}<div class="pair"><figure>{picture}'
        f"<figcaption>this one</figcaption></figure>{beside}</div>{inputs}</div>"
    )


def _short(path: object) -> str:
    """A file with its folder, which is its class."""
    return "/".join(Path(str(path)).parts[-2:])


def _known(network: FittedNetwork, target: Tensor) -> str:
    """What a training row was, in words."""
    true = true_of(network, target.unsqueeze(0))
    kind = KINDS.get(network.task)
    if kind == CLASSES:
        return network.target.classes[int(true)]
    if kind == LABELS:
        row = true.reshape(-1).tolist()
        names = [n for n, v in zip(network.target.classes, row, strict=True) if v > 0.5]
        return " + ".join(names) or "none"
    return ", ".join(map(readable, true.reshape(-1).tolist()))


def _compared(network: FittedNetwork, rows: Table, i: int, near: Case | None) -> str:
    """What the row holds in the columns that matter most, and the training row that is nearest."""
    names = columns_by_importance(network)
    tables = [rows.take([i])]
    if near is not None and near.nearest is not None:
        tables.append(network.held_out["examples"][1].take([near.nearest]))
    target = [n for n in network.target.names if all(n in t for t in tables)]
    lines = []
    for name in [*target, *names[:COLUMNS]]:
        cells = [_shown(t[name]) for t in tables]
        lines.append([_cell(c) for c in (name, *cells)])
    more = len(names) - COLUMNS
    rest = f'<div class="soft">and {more} more columns</div>' if more > 0 else ""
    head = ["", "this", "nearest"][: 1 + len(tables)]
    return table_of(head, lines) + rest


def _cell(text: str) -> str:
    """Text that may be cut off where it is long, and is whole under the mouse."""
    return (
        escape(text) if len(text) <= LONG else f'<span title="{escape(text)}">{escape(text)}</span>'
    )


def _shown(column: Column) -> str:
    """The one value of a column, or that there is none."""
    return "missing" if column.missing else number(column.values[0])


def _thumbnail(network: FittedNetwork, rows: Any, x: Tensor, i: int, words: str) -> str:
    """A row as a picture, if it is one: of a file, or of columns that are pixels."""
    encoder: Any = network.inputs
    if isinstance(encoder, ImageEncoder):
        image = x[i] * encoder.spread + encoder.mean
    else:
        shape = pixels(network.about["columns"], network.about["target"])
        if shape is None:
            return ""
        one = rows.take([i])
        names = [n for n in network.about["columns"] if n != network.about["target"]]
        image = _scaled([float(one[n].values[0]) for n in names], shape, x)
    high = max(image.shape[1:])
    if high > PIXELS:
        size = [max(1, round(n * PIXELS / high)) for n in image.shape[1:]]
        image = interpolate(image.unsqueeze(0), size=size, mode="bilinear", antialias=True)[0]
    data = base64.b64encode(png(in_bytes(image.permute(1, 2, 0)))).decode()
    return f'<img alt="{escape(words)}" src="data:image/png;base64,{data}">'


def _scaled(values: list[float], shape: tuple[int, int], like: Tensor) -> Tensor:
    """Dark ink on a light ground, whatever the range of the values is."""
    low, high = min(values), max(values)
    pixels_ = [1 - (v - low) / ((high - low) or 1) for v in values]
    return like.new_tensor(pixels_).reshape(1, *shape)
