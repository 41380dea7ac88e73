"""Curves of a training: losses, metrics and the learning rate over the epochs; schedules."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chainrule import charts
from chainrule.inspect.core.registry import instrument
from chainrule.inspect.core.results import Result
from chainrule.optim.lr_scheduler.analysis import preview
from chainrule.optim.lr_scheduler.base import LRScheduler
from chainrule.optim.lr_scheduler.plateau import ReduceLROnPlateau
from chainrule.printing import text_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LearningCurves", "Schedules", "learning_curves", "schedules"]

BESIDE = ("epoch", "seconds", "time", "epochs", "step")  # columns that are no curves
RATES = ("lr", "learning_rate")


@dataclass(repr=False, eq=False)
class LearningCurves(Result):
    """``panels``: for each of losses, metrics and the learning rate the curves by name, with None
    where an epoch has no value. ``epochs`` are their numbers, ``best`` is the epoch (and value) of
    the lowest validation loss."""

    epochs: list[float]
    panels: dict[str, dict[str, list[float | None]]]
    best: tuple[float, float] | None

    def __str__(self) -> str:
        rows = []
        for panel in self.panels.values():
            for name, values in panel.items():
                known = [v for v in values if v is not None and math.isfinite(v)]
                shown = (known[0], known[-1], min(known), max(known)) if known else ()
                rows.append([name, *(f"{v:.4g}" for v in shown), *[""] * (4 - len(shown))])
        text = text_table(["curve", "first", "last", "lowest", "highest"], rows, left=1)
        lines = [text]
        if self.best is not None:
            lines.append(f"lowest validation loss {self.best[1]:.4g} in epoch {self.best[0]:g}")
        if self.verdict:
            lines.append(self.verdict)
        lines += [
            f"{name} is not finite in epoch {epochs[0]:g}"
            + (f" and {len(epochs) - 1} more" if epochs[1:] else "")
            + ": inspect.autopsy finds where it comes from"
            for name, epochs in self.broken.items()
        ]
        return "\n".join(lines)

    @property
    def broken(self) -> dict[str, list[float]]:
        """The epochs in which a curve is NaN or infinite."""
        found = {
            name: [
                e
                for e, v in zip(self.epochs, values, strict=True)
                if v is not None and not math.isfinite(v)
            ]
            for panel in self.panels.values()
            for name, values in panel.items()
        }
        return {name: epochs for name, epochs in found.items() if epochs}

    @property
    def verdict(self) -> str:
        """Whether the validation loss has turned, and what to do about it."""
        losses = self.panels.get("loss", {})
        held = [v for v in losses.get("val_loss", []) if v is not None and math.isfinite(v)]
        own = [v for v in losses.get("loss", []) if v is not None and math.isfinite(v)]
        if self.best is None or len(held) < 5 or len(own) < 5 or held[-1] <= 0:
            return ""
        rise = held[-1] / self.best[1] - 1 if self.best[1] > 0 else 0.0
        if rise > 0.1 and own[-1] < own[len(own) // 2]:
            return (
                f"the validation loss rose by {rise:.0%} since its best epoch while the training "
                "loss fell: stop early, regularize, or get more data"
            )
        return ""

    def plot(self, axes: Sequence[Axes] | None = None, **style: Any) -> list[Axes]:
        """Draws a panel each for losses, metrics and the learning rate, on a logarithmic axis
        where positive values span two decades; the best epoch is marked."""
        made = charts.grid_of_axes(axes, len(self.panels), 3, (4.2, 3.2))
        for ax, (title, curves) in zip(made, self.panels.items(), strict=True):
            for i, (name, values) in enumerate(curves.items()):
                looks = {"color": charts.COLORS[i % len(charts.COLORS)], "label": name}
                if len(self.epochs) == 1:
                    looks["marker"] = "o"
                shown = [math.nan if v is None else v for v in values]
                ax.plot(self.epochs, shown, **looks | style)
            known = [v for values in curves.values() for v in values if v is not None]
            log = charts.log_if_wide(ax, known)
            ax.set_xlabel("epoch")
            ax.set_ylabel(f"{title} (logarithmic)" if log else title)
            ax.set_title(title.capitalize())
            if title == "loss" and self.best is not None:
                at, value = self.best
                ax.plot([at], [value], "o", color="black", markersize=4, label=f"best: {at:g}")
            ax.legend()
        return made


def _curves(rows: list[dict[str, Any]]) -> dict[str, dict[str, list[float | None]]]:
    names = list(dict.fromkeys(name for row in rows for name in row))
    panels: dict[str, dict[str, list[float | None]]] = {}
    for name in names:
        values = [row.get(name) for row in rows]
        numbers = [v for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)]
        if name in BESIDE or not numbers or len(numbers) + values.count(None) < len(values):
            continue
        if name in RATES:
            panel = "learning rate"
        elif name.endswith("loss"):
            panel = "loss"
        else:
            panel = name.removeprefix("val_")
        held: list[float | None] = [None if v is None else float(v) for v in values]
        panels.setdefault(panel, {})[name] = held
    first = {p: panels[p] for p in ("loss",) if p in panels}
    last = {p: panels[p] for p in ("learning rate",) if p in panels}
    return first | {p: c for p, c in panels.items() if p not in first and p not in last} | last


@instrument("V16", "V17", needs=("history",))
def learning_curves(history: Any, columns: Sequence[str] | None = None) -> LearningCurves:
    """The losses, metrics and learning rate of a training over its epochs.

    Args:
        history: what ``Trainer.fit`` returns (``history.plot()`` does this), or rows as dicts. A
            column ``name`` and its ``val_name`` share a panel.
        columns: which curves, by name; by default all that are numbers.

    >>> from chainrule import inspect
    >>> rows = [{"epoch": i, "loss": 1 / i, "val_loss": 1 / i + 0.1} for i in (1, 2, 4)]
    >>> seen = inspect.learning_curves(rows)
    >>> list(seen.panels), seen.best
    (['loss'], (4.0, 0.35))
    """
    rows = [dict(row) for row in history]
    if not rows:
        raise ValueError("learning_curves: the history has no epochs; train first")
    panels = _curves(rows)
    if columns is not None:
        known = [name for curves in panels.values() for name in curves]
        unknown = [name for name in columns if name not in known]
        if unknown:
            raise ValueError(
                f"learning_curves: there is no curve {unknown[0]!r}; there are {known}"
            )
        panels = {
            title: {n: v for n, v in curves.items() if n in columns}
            for title, curves in panels.items()
            if any(n in columns for n in curves)
        }
    if not panels:
        raise ValueError("learning_curves: the history has no columns of numbers")
    epochs = [float(row.get("epoch", i + 1)) for i, row in enumerate(rows)]
    held = panels.get("loss", {}).get("val_loss", [])
    finite = [(v, e) for v, e in zip(held, epochs, strict=False) if v is not None]
    finite = [(v, e) for v, e in finite if math.isfinite(v)]
    best = min(finite)[::-1] if finite else None
    return LearningCurves(epochs, panels, best)


# --- schedules ------------------------------------------------------------------------------------

Schedule = LRScheduler | Callable[[int], float] | Sequence[float]


@dataclass(repr=False, eq=False)
class Schedules(Result):
    """The learning rate of each schedule at the steps 0, 1, 2, ..."""

    rates: dict[str, list[float]]

    def __str__(self) -> str:
        rows = [
            [name, *(f"{v:.4g}" for v in (r[0], r[len(r) // 2], r[-1], min(r), max(r)))]
            for name, r in self.rates.items()
        ]
        return text_table(
            ["schedule", "first", "middle", "last", "lowest", "highest"], rows, left=1
        )

    def plot(self, ax: Axes | None = None, **style: Any) -> Axes:
        """Draws the rates over the steps, on a logarithmic axis where they span two decades."""
        ax = charts.axes_for(ax, (5.8, 3.8))
        for i, (name, rates) in enumerate(self.rates.items()):
            looks: dict[str, Any] = {"color": charts.COLORS[i % len(charts.COLORS)], "label": name}
            looks |= {"linestyle": ("-", "--", ":")[i // len(charts.COLORS) % 3]}
            ax.plot(range(len(rates)), rates, **looks | style)
        log = charts.log_if_wide(ax, [v for rates in self.rates.values() for v in rates])
        ax.set(xlabel="step", ylabel="learning rate (logarithmic)" if log else "learning rate")
        ax.set_title("Learning-rate schedules" if len(self.rates) > 1 else "Learning-rate schedule")
        ax.legend()
        return ax


def _rates(schedule: Any, steps: int) -> list[float]:
    if isinstance(schedule, (LRScheduler, ReduceLROnPlateau)):
        try:
            return [float(rate) for rate in preview(schedule, steps)]
        except TypeError as error:
            raise TypeError(f"schedules: {error}") from None
    if callable(schedule):
        return [float(schedule(t)) for t in range(steps)]
    rates = [float(rate) for rate in schedule]
    if not rates:
        raise ValueError("schedules: a list of rates is empty")
    return rates


def _named(given: Any) -> dict[str, Any]:
    if isinstance(given, Mapping):
        return {str(name): schedule for name, schedule in given.items()}
    if isinstance(given, str) or not (
        callable(given) or isinstance(given, (Iterable, LRScheduler, ReduceLROnPlateau))
    ):
        raise TypeError(
            "schedules: give one of optim.lr_scheduler, a function of the step, or rates, got "
            f"{given!r}"
        )
    several = isinstance(given, Iterable) and not isinstance(given, LRScheduler)
    many = list(given) if several else [given]
    if many and all(isinstance(v, (int, float)) for v in many):
        many = [many]
    named: dict[str, Any] = {}
    for schedule in many:
        name = getattr(schedule, "__name__", type(schedule).__name__)
        name = {"list": "rates", "tuple": "rates"}.get(name, name)
        same = sum(n.split(" (")[0] == name for n in named)
        named[f"{name} ({same + 1})" if same else name] = schedule
    return named


@instrument("V38", needs=("schedule",))
def schedules(schedule: Any, steps: int = 100) -> Schedules:
    """The learning rates that schedules will set, which stay as they are.

    Args:
        schedule: one of ``optim.lr_scheduler``, a function of the step, or a list of rates; several
            in a list, or in a dict with names.
        steps: how many; a list of rates has its own number.

    >>> import chainrule
    >>> from chainrule import inspect, optim
    >>> optimizer = optim.SGD([chainrule.zeros(1, requires_grad=True)], lr=1.0)
    >>> inspect.schedules(optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5), 4).rates
    {'StepLR': [1.0, 1.0, 0.5, 0.5]}
    """
    if steps < 1:
        raise ValueError(f"schedules: steps must be positive, got {steps}")
    named = _named(schedule)
    if not named:
        raise ValueError("schedules: there is none to show")
    rates = {name: _rates(schedule, steps) for name, schedule in named.items()}
    for name, values in rates.items():
        if not all(map(math.isfinite, values)):
            raise ValueError(f"schedules: {name} gives a rate that is not finite")
    return Schedules(rates)
