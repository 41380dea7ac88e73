"""Which columns matter: how much worse the network becomes when one of them is shuffled."""

from __future__ import annotations

from html import escape

from chainrule import metrics
from chainrule.autograd.modes import inference_mode
from chainrule.data import TableEncoder
from chainrule.inspect.core.svg import bar_chart
from chainrule.ops.creation.conversion import clone
from chainrule.ops.creation.sampling import randperm
from chainrule.random import Generator
from chainrule.tensor import Tensor
from chainrule.train.fitted import FittedNetwork

__all__ = ["importance", "importances"]

ROWS, COLUMNS, SHOWN = 1000, 500, 15
REPEATS = 5


def importance(network: FittedNetwork) -> str:
    """The columns that matter most, as bars."""
    groups = _groups(network)
    if not groups:
        return ""
    if len(groups) > COLUMNS:
        return f"<p>Not measured for {len(groups)} columns; {COLUMNS} are the most.</p>"
    found = sorted(importances(network).items(), key=lambda item: -item[1])
    measure = "negative log-likelihood" if network.task == "classification" else "RMSE"
    rest = f" The other {len(found) - SHOWN} matter less." if len(found) > SHOWN else ""
    chart = bar_chart(dict(found[:SHOWN]), "Permutation importance", f"increase of the {measure}")
    return (
        f"<p>How much the {measure} of the held-out rows grows when the values of a column are "
        f"shuffled, so that they say nothing any more (mean of {REPEATS}). Columns that say the "
        f"same share what they matter.{escape(rest)}</p><figure>{chart}</figure>"
    )


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


def _error(network: FittedNetwork, x: Tensor, target: Tensor) -> float:
    output = network.model(x)
    if network.task == "classification":
        return metrics.nll(output, target, scores="logits")
    return metrics.rmse(output, target) * network.target.spread
