"""Numbers over the steps of a training, by name: the result of watching."""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chainrule.inspect.core.results import Result, plain
from chainrule.inspect.training import pictures
from chainrule.inspect.training.statistics import QUANTILES, Statistics
from chainrule.printing import text_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["KINDS", "Series", "Watched", "row_of"]

# What can be looked at: gradients before clipping, outputs of layers, sums before an activation,
# weights after the update, and the update itself.
KINDS = ("grad", "activation", "preactivation", "weight", "update")
SCALARS = ("size", "norm", "mean", "std", "min", "max", "zeros", "nonfinite", "ratio")
# Limits of the remarks below a table.
VANISHED, DEAD, LARGE_UPDATE, SMALL_UPDATE = 1e-4, 0.95, 0.1, 1e-7


@dataclass
class Series:
    """The statistics of one tensor at the steps at which it was looked at."""

    name: str
    steps: list[int] = field(default_factory=list)
    epochs: list[int] = field(default_factory=list)
    statistics: list[Statistics] = field(default_factory=list)

    def values(self, statistic: str) -> list[Any]:
        """One statistic at all steps, such as "norm".

        >>> Series("weight", [0], [0], [Statistics(4, 2.0)]).values("norm")
        [2.0]
        """
        if statistic not in Statistics.__dataclass_fields__:
            known = list(Statistics.__dataclass_fields__)
            raise ValueError(f"values: there is no statistic {statistic!r}; select from {known}")
        return [getattr(s, statistic) for s in self.statistics]

    @property
    def last(self) -> Statistics:
        """What was seen last."""
        return self.statistics[-1]


@dataclass(repr=False, eq=False)
class Watched(Result):
    """What was seen: ``series[what][name]``, each a :class:`Series`.

    ``plot`` draws one kind of picture: "norms" (of each layer against the step, on a logarithmic
    axis), "updates" (the size of updates relative to the weights), "histograms" (of each layer at
    one step), "densities" (standardized, beside the normal density), "ridges" (one tensor over
    time) and "heat" (norms of all layers over time).
    """

    series: dict[str, dict[str, Series]] = field(default_factory=dict)

    def __getitem__(self, what: str) -> dict[str, Series]:
        if what not in self.series:
            raise KeyError(f"{what!r} was not looked at; there is {[*self.series]}")
        return self.series[what]

    def add(self, what: str, name: str, found: Statistics, step: int, epoch: int) -> None:
        """Puts what was found at a step behind the rest."""
        one = self.series.setdefault(what, {}).setdefault(name, Series(name))
        one.steps.append(step)
        one.epochs.append(epoch)
        one.statistics.append(found)

    def rows(self) -> Iterator[tuple[str, str, int, int, Statistics]]:
        """All that was found: what, name, step, epoch and statistics."""
        for what, by_name in self.series.items():
            for name, one in by_name.items():
                for step, epoch, found in zip(one.steps, one.epochs, one.statistics, strict=True):
                    yield what, name, step, epoch, found

    # --- as text ----------------------------------------------------------------------------------

    def __str__(self) -> str:
        if not any(self.series.values()):
            return "nothing was seen yet: no step has been looked at"
        header = ["what", "name", "size", "steps", "norm first", "norm last"]
        header += ["mean", "std", "zeros", "not finite"]
        rows = []
        for what, by_name in self.series.items():
            for name, one in by_name.items():
                last = one.last
                norms = [_number(one.statistics[0].norm), _number(last.norm)]
                zeros = "" if math.isnan(last.zeros) else f"{last.zeros:.0%}"
                bad = str(last.nonfinite) if last.nonfinite else ""
                numbers = [*norms, _number(last.mean), _number(last.std), zeros, bad]
                rows.append([what, name, str(last.size), str(len(one.steps)), *numbers])
        table = text_table(header, rows, left=2, rule=True)
        remarks = self.remarks()
        return table + ("\n\n" + "\n".join(remarks) if remarks else "")

    def remarks(self) -> list[str]:
        """What is out of the ordinary at the last step, each with a remedy."""
        found = [
            f"{what} of {name}: {one.last.nonfinite} of {one.last.size} values are not finite; "
            "lower the learning rate, clip gradients, or see inspect.autopsy"
            for what, by_name in self.series.items()
            for name, one in by_name.items()
            if one.last.nonfinite
        ]
        return [*found, *self._about_gradients(), *self._about_units(), *self._about_updates()]

    def _about_gradients(self) -> list[str]:
        grads = {n: s.last.norm for n, s in self.series.get("grad", {}).items()}
        top = max([v for v in grads.values() if math.isfinite(v)], default=0.0)
        none = [n for n, v in grads.items() if v == 0]
        small = [n for n, v in grads.items() if 0 < v < VANISHED * top]
        found = []
        if none:
            found.append(
                f"the gradient of {_few(none)} is exactly 0: is what it makes used in the loss, "
                "or are all units behind it dead?"
            )
        if small:
            found.append(
                f"gradients vanish in {_few(small)}: below {VANISHED:g} of the largest norm, "
                f"{top:.2g}; use ReLU or SELU, normalization, residual links, or weights of larger "
                "variance"
            )
        return found

    def _about_units(self) -> list[str]:
        by_name = self.series.get("activation", {})
        dead = [n for n, s in by_name.items() if s.last.zeros >= DEAD]
        if not dead:
            return []
        return [
            f"{_few(dead)}: at least {DEAD:.0%} of the activations are 0; use a lower rate, leaky "
            "ReLU, or weights of larger variance"
        ]

    def _about_updates(self) -> list[str]:
        ratios = {n: s.last.ratio for n, s in self.series.get("update", {}).items()}
        large = [n for n, r in ratios.items() if r > LARGE_UPDATE and math.isfinite(r)]
        still = {n for n, s in self.series.get("grad", {}).items() if s.last.norm == 0}
        small = [n for n, r in ratios.items() if r < SMALL_UPDATE and n not in still]
        found = []
        if large:
            found.append(
                f"{_few(large)}: an update changes more than {LARGE_UPDATE:.0%} of the weights' "
                "norm; lower the learning rate (about 0.1 % is usual)"
            )
        if small:
            found.append(
                f"{_few(small)}: an update changes less than {SMALL_UPDATE:g} of the weights' "
                "norm; is the parameter frozen, or the learning rate too small?"
            )
        return found

    # --- to files ---------------------------------------------------------------------------------

    def to_jsonl(self, path: str | os.PathLike[str]) -> Path:
        """Writes a line of JSON for each tensor and step, with all that was found."""
        target = Path(path)
        lines = [json.dumps(row_of(*row), allow_nan=False) for row in self.rows()]
        target.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        return target

    def to_csv(self, path: str | os.PathLike[str]) -> Path:
        """Writes a table with a row for each tensor and step; bins are left to JSON lines."""
        target = Path(path)
        quantiles = [f"q{100 * q:g}" for q in QUANTILES]
        with target.open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file)
            table.writerow(["what", "name", "step", "epoch", *SCALARS, *quantiles])
            for what, name, step, epoch, found in self.rows():
                scalars = [getattr(found, s) for s in SCALARS]
                table.writerow(
                    [what, name, step, epoch]
                    + ["" if v != v else v for v in scalars]
                    + list(found.quantiles or [""] * len(QUANTILES))
                )
        return target

    def to_dict(self) -> dict[str, Any]:
        """All numbers, as lists and dicts of Python's own types."""
        return {"series": plain(self.series)}

    def load(self, series: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
        """Takes back what :meth:`to_dict` gave as "series"."""
        tuples = ("quantiles", "edges", "counts")
        self.series = {
            what: {
                name: Series(
                    name,
                    list(one["steps"]),
                    list(one["epochs"]),
                    [
                        Statistics(**{**s, **{key: tuple(s[key]) for key in tuples}})
                        for s in one["statistics"]
                    ],
                )
                for name, one in by_name.items()
            }
            for what, by_name in series.items()
        }

    # --- pictures ---------------------------------------------------------------------------------

    def plot(
        self,
        kind: str | None = None,
        ax: Axes | None = None,
        *,
        what: str | None = None,
        name: str | None = None,
        step: int | None = None,
        axes: Any = None,
        **style: Any,
    ) -> Any:
        """Draws a picture; without a kind the one that suits what was looked at.

        Args:
            kind: "norms", "updates", "histograms", "densities", "ridges" or "heat".
            ax, axes: where to draw; "histograms" and "densities" have a panel for each layer.
            what: which series, such as "grad"; by default the first that was looked at.
            name: which tensor "ridges" shows, or a pattern of those to draw.
            step: which step "histograms" and "densities" show, the last by default.
            style: passed on to matplotlib; ``against="epoch"`` draws "norms" and "updates" as
                means of each epoch.
        """
        return pictures.draw(self, kind, ax if axes is None else axes, what, name, step, style)


def row_of(what: str, name: str, step: int, epoch: int, found: Statistics) -> dict[str, Any]:
    """A line of the file: numbers that are not there are null."""
    values = {"what": what, "name": name, "step": step, "epoch": epoch, **plain(found)}
    return {k: _or_null(v) for k, v in values.items()}


def _or_null(value: Any) -> Any:
    if isinstance(value, list):
        return [_or_null(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3g}"


def _few(names: list[str], most: int = 4) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if names[most:] else "")
