"""Which columns matter: how much worse the network becomes when one of them is shuffled."""

from __future__ import annotations

import re
from html import escape

from chainrule.autograd.modes import inference_mode
from chainrule.backend import dtypes
from chainrule.data import TableEncoder
from chainrule.inspect.core.svg import bar_chart, heat_chart
from chainrule.ops.creation.conversion import clone
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.creation.sampling import randperm
from chainrule.random import Generator
from chainrule.tensor import Tensor
from chainrule.train.fitted import FittedNetwork
from chainrule.train.reporting.html import framed
from chainrule.train.reporting.seen import CLASSES, KINDS, LABELS, seen_in

__all__ = ["IMPORTANCES", "columns_by_importance", "importance", "importances", "pixels"]

ROWS, COLUMNS, SHOWN = 1000, 500, 15
REPEATS = 5
IMPORTANCES = "importances"  # where they are kept while a page is made


def importance(network: FittedNetwork) -> str:
    """The columns that matter most, as bars; of pixels as a picture."""
    groups = _groups(network)
    if not groups:
        return ""
    if len(groups) > COLUMNS:
        return f"<p>Not measured for {len(groups)} columns; {COLUMNS} are the most.</p>"
    known = measured(network)
    found = sorted(known.items(), key=lambda item: -item[1])
    measure = _measure(network)
    rest = f" The other {len(found) - SHOWN} matter less." if len(found) > SHOWN else ""
    shape = pixels(network.about["columns"], network.about["target"])
    charts = [
        bar_chart(dict(found[:SHOWN]), "Permutation importance", f"increase of the {measure}")
    ]
    if shape is not None:
        names = [n for n in network.about["columns"] if n != network.about["target"]]
        values = [known.get(n, 0.0) for n in names]
        rows = [values[i * shape[1] : (i + 1) * shape[1]] for i in range(shape[0])]
        charts.insert(0, heat_chart(rows, "Where the pixels matter", f"increase of the {measure}"))
    return (
        f"<p>How much the {measure} of the held-out rows grows when the values of a column are "
        f"shuffled, so that they say nothing any more (mean of {REPEATS}). Columns that say the "
        f"same share what they matter.{escape(rest)}</p>{framed(*charts)}"
    )


def columns_by_importance(network: FittedNetwork) -> list[str]:
    """The columns that the network uses, from the most important down."""
    groups = _groups(network)
    if not groups or len(groups) > COLUMNS:
        return list(groups)
    found = measured(network)
    return sorted(found, key=lambda name: -found[name])


def measured(network: FittedNetwork) -> dict[str, float]:
    """The importances, computed once for all sections of a page."""
    if IMPORTANCES not in network.held_out:
        network.held_out[IMPORTANCES] = importances(network)
    found: dict[str, float] = network.held_out[IMPORTANCES]
    return found


def importances(network: FittedNetwork) -> dict[str, float]:
    """The mean increase of the error of the held-out rows for each column that is shuffled.

    What ``inspect.permutation_importance`` measures, on rows that are encoded once and not for each
    shuffling, so that a page takes a fraction of a second.
    """
    x, target = network.held_out["inputs"][:ROWS], network.held_out["target"][:ROWS]
    generator = Generator().manual_seed(network.about["settings"]["seed"])
    orders = [randperm(len(x), generator=generator) for _ in range(REPEATS)]
    network.model.eval()
    with inference_mode():
        usual = _error(network, x, target)
        return {
            name: sum(
                _error(network, _shuffled(x, columns, order), target) - usual for order in orders
            )
            / REPEATS
            for name, columns in _groups(network).items()
        }


def _groups(network: FittedNetwork) -> dict[str, list[int]]:
    """The columns of the encoded inputs that each column of the table becomes."""
    groups: dict[str, list[int]] = {}
    if isinstance(network.inputs, TableEncoder):
        for i, name in enumerate(network.inputs.sources):
            groups.setdefault(name, []).append(i)
    return groups


def _shuffled(x: Tensor, columns: list[int], order: Tensor) -> Tensor:
    changed = clone(x)
    changed[:, columns] = x[order][:, columns]
    return changed


def _measure(network: FittedNetwork) -> str:
    if network.task in KINDS:
        return "log loss"
    several = len(network.target.names) > 1
    return "mean RMSE of the targets (in standard deviations)" if several else "RMSE"


def _error(network: FittedNetwork, x: Tensor, target: Tensor) -> float:
    seen = seen_in(network, network.model(x), target)
    if seen.kind == CLASSES:
        own = seen.said.gather(1, seen.true.reshape(-1, 1))
        return -float(own.clamp(min=1e-300).log().mean())
    if seen.kind == LABELS:
        right = seen.true * seen.said + (1 - seen.true) * (1 - seen.said)
        return -float(right.clamp(min=1e-300).log().mean())
    errors = ((seen.centers - seen.true) ** 2).mean(0).sqrt()
    if len(seen.names) > 1:  # of several numbers each counts in its own scale
        errors = errors / tensor(network.target.spreads, dtype=dtypes.float64)
    return float(errors.mean())


def pixels(columns: list[str], target: str) -> tuple[int, int] | None:
    """Height and width, where all columns are named after the row and column of a pixel."""
    places = [re.fullmatch(r"\D+(\d+)\D(\d+)", name) for name in columns if name != target]
    if len(places) < 16 or not all(places):
        return None
    found = [(int(m[1]), int(m[2])) for m in places if m]
    high, wide = (max(axis) + 1 for axis in zip(*found, strict=True))
    whole = found == [(r, c) for r in range(high) for c in range(wide)]
    return (high, wide) if whole else None
