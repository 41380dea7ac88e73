"""How the answer changes with a column while all others stay: partial dependence."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from chainrule.data import Column, Table
from chainrule.data.tabular.dates import moments
from chainrule.data.tabular.features import numbers_of
from chainrule.data.tabular.packed_dates import DAY
from chainrule.inspect.core.svg import bar_chart, curve_chart
from chainrule.printing import readable
from chainrule.tensor import Tensor
from chainrule.train.fitted import FittedNetwork
from chainrule.train.reporting.html import framed
from chainrule.train.reporting.importance import columns_by_importance, pixels
from chainrule.train.reporting.seen import LABELS, said_by, seen_of

__all__ = ["Dependence", "dependence", "dependence_of"]

SHOWN, ROWS, POINTS, WORDS, CURVES = 4, 100, 20, 8, 5
LEVELS = 12  # of an order, that are all shown
YEAR = 365.2425  # days
Dependence = tuple[list[float] | list[str], Tensor]  # values of a column, mean answers (values, K)


def dependence(network: FittedNetwork) -> str:
    """A chart for each of the columns that matter most."""
    rows = network.held_out["rows"]
    if not isinstance(rows, Table) or pixels(network.about["columns"], network.about["target"]):
        return ""
    names = columns_by_importance(network)[:SHOWN]
    found = {name: dependence_of(network, rows, name) for name in names}
    known = {
        name: (pair[0], _in_one_unit(network, pair[1]))
        for name, pair in found.items()
        if pair is not None
    }
    if not known:
        return ""
    seen, places = seen_of(network), _places(network)
    drawn = [answers[:, places] for values, answers in known.values() if _is_numeric(values)]
    span = [float(end) for a in drawn for end in (a.min(), a.max())]
    bars = {n: _bars(network, *pair) for n, pair in known.items() if not _is_numeric(pair[0])}
    reach = [v for _, values in bars.values() for v in values.values()]
    charts = [
        bar_chart(bars[name][1], name, bars[name][0], span=reach)
        if name in bars
        else _curves(network, name, *pair, span)
        for name, pair in known.items()
    ]
    what = "prediction" if seen.kind == "numbers" else "probability"
    what += ", in standard deviations of each target," * _is_scaled(network)
    between = " Numbers and dates go from the 5th to the 95th percentile." if drawn else ""
    scales = " All curves have one scale." * (len(drawn) > 1) + " All bars have one scale." * (
        len(bars) > 1
    )
    return (
        f"<p>The mean {what} over held-out rows as one column changes and all others stay as they "
        f"are.{between}{scales}</p>" + framed(*charts)
    )


def _is_scaled(network: FittedNetwork) -> bool:
    """Whether there are several numbers, which may have different units."""
    return seen_of(network).kind == "numbers" and len(network.target.names) > 1


def _in_one_unit(network: FittedNetwork, answers: Tensor) -> Tensor:
    """Several numbers as distances from their means, in standard deviations."""
    if not _is_scaled(network):
        return answers
    means, spreads = (answers.new_tensor(n) for n in (network.target.means, network.target.spreads))
    return (answers - means) / spreads


def _is_numeric(values: list[float] | list[str]) -> bool:
    return not isinstance(values[0], str)


def dependence_of(network: FittedNetwork, rows: Table, name: str) -> Dependence | None:
    """The mean answers as a column changes; nothing for one that does not change among the rows.

    What ``inspect.partial_dependence`` measures, with all values in one table. Dates are seconds
    since 1970.
    """
    column = rows[name].where_present()
    values, filled = _values(network, column)
    if len(values) < 2:
        return None
    present = rows.take([i for i, gap in enumerate(rows[name].gaps().tolist()) if not gap][:ROWS])
    n = len(present)
    many = present.take([i for _ in values for i in range(n)])
    filled = filled.take([i for i in range(len(values)) for _ in range(n)])
    used = network.columns
    changed = Table([filled if c.name == name else c for c in many if c.name in used])
    said = said_by(network, network.outputs(changed))
    return values, said.reshape(len(values), n, -1).mean(1)


def _values(network: FittedNetwork, column: Column) -> tuple[list[float] | list[str], Column]:
    """Values that a column takes, in their order or by how frequent they are, and as a column."""
    kind, written = network.columns[column.name], _written(network, column.name)
    if not len(column):
        return [], column
    if kind == "number" and column.kind == "number":
        grid = _grid(sorted(column.numbers.tolist()))
        return grid, Column(column.name, "number", grid)
    if kind in ("number", "date"):
        read = numbers_of(column, written) if kind == "number" else moments(column, written)[0]
        chosen = _evenly(read.tolist())
        return [float(read[i]) for i in chosen], column.take(chosen)
    first = {word: i for i, word in reversed(list(enumerate(column.as_category().values)))}
    words = _words(network, column, kind)
    return words, column.take([first[word] for word in words])


def _words(network: FittedNetwork, column: Column, kind: str) -> list[str]:
    """The words to show: of an order all, else the most frequent ones."""
    counts = column.as_category().counts()
    orders = [getattr(f, "order", []) for f in network.inputs.features if f.name == column.name]
    ordered = [word for order in orders for word in order if word in counts]
    if kind == "ordinal" and 2 <= len(ordered) <= LEVELS:
        return ordered
    if kind == "text" and max(counts.values()) < 2:
        return []  # texts of which each is another say nothing alone
    return sorted(counts, key=lambda word: (-counts[word], word))[:WORDS]


def _written(network: FittedNetwork, name: str) -> str:
    """The decimal mark of written numbers, or the form of dates."""
    own = [f for f in network.inputs.features if f.name == name]
    return next(filter(None, [getattr(f, "mark", "") or getattr(f, "form", "") for f in own]), "")


def _evenly(read: list[float]) -> list[int]:
    """The places of different readings from the 5th to the 95th percentile, in their order."""
    order = sorted(range(len(read)), key=lambda i: read[i])
    last = len(order) - 1
    count = min(POINTS, len(order))
    steps = [order[round(last * (0.05 + 0.9 * i / max(1, count - 1)))] for i in range(count)]
    found: dict[float, int] = {}
    for i in steps:
        found.setdefault(read[i], i)
    return list(found.values())


def _grid(ordered: list[float]) -> list[float]:
    different = sorted(set(ordered))
    if len(different) <= POINTS:
        return different
    n = len(ordered) - 1
    low, high = ordered[round(0.05 * n)], ordered[round(0.95 * n)]
    if not low < high:
        low, high = ordered[0], ordered[-1]
    return [low + (high - low) * i / (POINTS - 1) for i in range(POINTS)]


# --- charts ---------------------------------------------------------------------------------------


def _bars(
    network: FittedNetwork, values: list[float] | list[str], answers: Tensor
) -> tuple[str, dict[str, float]]:
    """What the bars of words show, and how long they are."""
    places = _places(network)
    k = places[0] if len(places) == 1 else _most_moved(answers)
    usual = float(answers[:, k].mean())
    bars = {str(v): float(answers[i, k]) - usual for i, v in enumerate(values)}
    return f"{_label(network, k)}, less {readable(usual)}", bars


def _curves(
    network: FittedNetwork,
    name: str,
    values: list[float] | list[str],
    answers: Tensor,
    span: Sequence[float],
) -> str:
    seen, places = seen_of(network), _places(network)
    numbers, xlabel = [float(v) for v in values], name
    if network.columns[name] == "date":
        numbers, xlabel = _since(numbers, name)
    curves = {
        seen.answers[k] if len(places) > 1 else "": list(
            zip(numbers, answers[:, k].tolist(), strict=True)
        )
        for k in places
    }
    ylabel = "prediction" if seen.kind == "numbers" else "probability"
    ylabel += " (standard deviations)" * _is_scaled(network)
    if len(places) == 1:
        ylabel += f" of {_short(seen.answers[places[0]])}"
    whole = xlabel.endswith("(year)")
    return curve_chart(curves, name, xlabel, ylabel, span=span, whole=whole)


def _since(seconds: list[float], name: str) -> tuple[list[float], str]:
    """Moments as years, or as days or hours since the first one, with the words for the axis."""
    first, days = seconds[0], (seconds[-1] - seconds[0]) / DAY
    if days > 4 * YEAR:
        return [1970 + s / DAY / YEAR for s in seconds], f"{name} (year)"
    if abs(first) < DAY:  # times of the day
        return [s / 3600 for s in seconds], f"{name} (hour)"
    start = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=first)
    if days >= 3:
        return [(s - first) / DAY for s in seconds], f"{name} (days since {start:%Y-%m-%d})"
    return [(s - first) / 3600 for s in seconds], f"{name} (hours since {start:%Y-%m-%d %H:%M})"


def _short(text: str) -> str:
    return text if len(text) <= 24 else text[:23] + "…"


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
