"""How the answer changes with a column while all others stay: partial dependence."""

from __future__ import annotations


from chainrule.data import Column, Table
from chainrule.inspect.core.svg import bar_chart, curve_chart
from chainrule.printing import readable
from chainrule.tensor import Tensor
from chainrule.train.fitted import FittedNetwork
from chainrule.train.reporting.html import framed
from chainrule.train.reporting.importance import columns_by_importance, pixels
from chainrule.train.reporting.seen import LABELS, said_by, seen_of

__all__ = ["Dependence", "dependence", "dependence_of"]

SHOWN, ROWS, POINTS, WORDS, CURVES = 4, 100, 20, 8, 5
Dependence = tuple[list[float] | list[str], Tensor]  # values of a column, mean answers (values, K)


def dependence(network: FittedNetwork) -> str:
    """A chart for each of the columns that matter most."""
    rows = network.held_out["rows"]
    if not isinstance(rows, Table) or pixels(network.about["columns"], network.about["target"]):
        return ""
    names = columns_by_importance(network)[:SHOWN]
    found = {name: dependence_of(network, rows, name) for name in names}
    known = {name: pair for name, pair in found.items() if pair is not None}
    if not known:
        return ""
    seen, places = seen_of(network), _places(network)
    shown = [answers[:, places] for _, answers in known.values()]
    span = (min(float(a.min()) for a in shown), max(float(a.max()) for a in shown))
    charts = [_chart(network, name, *pair, span) for name, pair in known.items()]
    what = "prediction" if seen.kind == "numbers" else "probability"
    return (
        f"<p>The mean {what} over held-out rows as one column changes and all others stay as they "
        "are, between the 5th and the 95th percentile. All charts have one scale.</p>"
        + framed(*charts)
    )


def dependence_of(network: FittedNetwork, rows: Table, name: str) -> Dependence | None:
    """The mean answers as a column changes; nothing for one that does not change among the rows.

    What ``inspect.partial_dependence`` measures, with all values in one table.
    """
    column = rows[name]
    present = rows.take([i for i, gap in enumerate(column.gaps().tolist()) if not gap][:ROWS])
    column = column.where_present()
    values: list[float] | list[str]
    if column.kind == "number":
        values = _grid(sorted(column.numbers.tolist()))
    else:
        counts = column.counts()
        values = sorted(counts, key=lambda word: (-counts[word], word))[:WORDS]
    if len(values) < 2:
        return None
    n = len(present)
    many = present.take([i for _ in values for i in range(n)])
    filled = Column(name, column.kind, [v for v in values for _ in range(n)])
    used = network.columns
    changed = Table([filled if c.name == name else c for c in many if c.name in used])
    said = said_by(network, network.outputs(changed))
    return values, said.reshape(len(values), n, -1).mean(1)


def _grid(ordered: list[float]) -> list[float]:
    different = sorted(set(ordered))
    if len(different) <= POINTS:
        return different
    n = len(ordered) - 1
    low, high = ordered[round(0.05 * n)], ordered[round(0.95 * n)]
    if not low < high:
        low, high = ordered[0], ordered[-1]
    return [low + (high - low) * i / (POINTS - 1) for i in range(POINTS)]


def _chart(
    network: FittedNetwork,
    name: str,
    values: list[float] | list[str],
    answers: Tensor,
    span: tuple[float, float],
) -> str:
    seen = seen_of(network)
    places = _places(network)
    if isinstance(values[0], str):
        k = places[0] if len(places) == 1 else _most_moved(answers)
        what = _label(network, k)
        usual = float(answers[:, k].mean())
        bars = {str(v): float(answers[i, k]) - usual for i, v in enumerate(values)}
        return bar_chart(bars, name, f"{what}, less {readable(usual)}")
    numbers = [float(v) for v in values]
    curves = {
        seen.answers[k]: list(zip(numbers, answers[:, k].tolist(), strict=True)) for k in places
    }
    ylabel = "prediction" if seen.kind == "numbers" else "probability"
    return curve_chart(curves, name, name, ylabel, span=span)


def _places(network: FittedNetwork) -> list[int]:
    """The outputs that are shown: of two classes the second, of many the first ones."""
    seen = seen_of(network)
    if seen.kind == "classes" and len(seen.names) == 2:
        return [1]
    return list(range(min(CURVES, len(seen.answers))))


def _most_moved(answers: Tensor) -> int:
    return int((answers.max(0)[0] - answers.min(0)[0]).argmax())


def _label(network: FittedNetwork, k: int) -> str:
    seen = seen_of(network)
    if seen.kind == "numbers":
        return f"mean prediction of {seen.answers[k]}"
    return f"mean probability of {'label ' if seen.kind == LABELS else ''}{seen.names[k]}"
