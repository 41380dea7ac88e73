"""Pruning step by step with retraining, and the table of what each step cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from chainrule.autograd.modes import no_grad
from chainrule.nn.module.base import Module
from chainrule.ops.creation.conversion import clone
from chainrule.printing import text_table
from chainrule.regularize.prune.choosing import Step, figure
from chainrule.regularize.prune.masks import put_mask, weights_of

__all__ = ["PruningTable", "iterate", "sparsities"]

COLUMNS = (
    "step",
    "method",
    "pruned",
    "remaining",
    "sparsity",
    "before",
    "predicted",
    "measured",
    "retrained",
)


@dataclass
class PruningTable:
    """The rows of a run of :func:`iterate`, as dictionaries; printed, a table.

    ``before`` is the loss before a step, ``predicted`` its change by the method's own account,
    ``measured`` the change before retraining, ``retrained`` what ``measure`` gives after it.
    """

    start: float | None = None  # what ``measure`` gives before the first step
    rows: list[dict[str, Any]] = field(default_factory=list)
    stopped: str = ""

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.rows[index]

    def add(self, step: Step, retrained: float | None) -> None:
        """Writes down a step, and what was measured after training on, if there was any."""
        self.rows.append(
            {
                "step": len(self.rows) + 1,
                "method": step.method,
                "pruned": step.pruned,
                "remaining": step.remaining,
                "sparsity": step.sparsity,
                "before": step.before,
                "predicted": step.predicted,
                "measured": step.measured,
                "retrained": retrained,
                "note": step.note,
            }
        )

    def __str__(self) -> str:
        names = [c for c in COLUMNS if any(r[c] is not None for r in self.rows)]
        if any(r["note"] for r in self.rows):
            names.append("note")
        body = [[figure(r[n]) for n in names] for r in self.rows]
        table = text_table(names, body, left=0)
        return f"{table}\n{self.stopped}" if self.stopped else table


def iterate(
    model: Module,
    step: Callable[[float], Step],
    targets: Iterable[float],
    *,
    retrain: Callable[[], Any] | None = None,
    measure: Callable[[], float] | None = None,
    worst: float | None = None,
) -> PruningTable:
    """Prunes to one sparsity after the other, with retraining after each.

    Args:
        model: the model that ``step`` prunes.
        step: prunes to a sparsity: ``lambda s: prune.obd(model, loss, data, s)``.
        targets: the sparsities, growing; see :func:`sparsities`.
        retrain: called after each step: ``lambda: trainer.fit(...)``.
        measure: a number after retraining, less is better: an error rate or a loss on held-out
            data.
        worst: ends the run at the first measure above this, with the model as it was before.

    >>> import chainrule
    >>> from chainrule import nn
    >>> from chainrule.regularize import prune
    >>> net = nn.Linear(8, 1)
    >>> table = prune.iterate(net, lambda s: prune.magnitude(net, s), [0.25, 0.5])
    >>> [row["remaining"] for row in table]
    [6, 4]
    """
    if worst is not None and measure is None:
        raise ValueError("iterate: worst needs a measure")
    table = PruningTable(None if measure is None else float(measure()))
    for target in targets:
        kept = _snapshot(model) if worst is not None else None
        done = step(target)
        if not isinstance(done, Step):
            raise TypeError(f"iterate: step must return a Step, got {type(done).__name__}")
        if retrain is not None:
            retrain()
        result = None if measure is None else float(measure())
        table.add(done, result)
        if worst is not None and result is not None and not result <= worst:
            _restore(model, kept)
            table.stopped = (
                f"stopped: {result:.4g} after retraining is above {worst:.4g}; the model is as it "
                f"was before step {len(table)}"
            )
            break
    return table


def sparsities(end: float, steps: int, start: float = 0.0, kind: str = "geometric") -> list[float]:
    """Targets from one sparsity to another.

    "geometric": each step leaves the same fraction of what was left; "cubic": large steps first
    (Zhu, Gupta 2017); "linear": equal steps.

    >>> sparsities(0.9, 3, kind="linear")
    [0.3, 0.6, 0.9]
    >>> [round(s, 3) for s in sparsities(0.875, 3)]
    [0.5, 0.75, 0.875]
    """
    if not 0 <= start <= end <= 1 or steps < 1:
        raise ValueError(
            f"sparsities: expected 0 <= start <= end <= 1 and steps >= 1, got start={start}, "
            f"end={end}, steps={steps}"
        )
    if kind == "geometric" and end == 1:
        raise ValueError("sparsities: geometric steps never reach 1; use kind='linear'")
    rules: dict[str, Callable[[float], float]] = {
        "geometric": lambda t: 1 - (1 - start) * ((1 - end) / (1 - start)) ** t,
        "cubic": lambda t: end + (start - end) * (1 - t) ** 3,
        "linear": lambda t: start + (end - start) * t,
    }
    if kind not in rules:
        raise ValueError(f"sparsities: kind must be one of {sorted(rules)}, got {kind!r}")
    return [round(rules[kind]((i + 1) / steps), 12) for i in range(steps)]


def _snapshot(model: Module) -> Any:
    weights = [(w, clone(w.parameter.detach()), clone(w.mask)) for w in _all(model)]
    return weights, [(b, clone(b.detach())) for b in model.buffers()]


def _restore(model: Module, kept: Any) -> None:
    weights, buffers = kept
    current = {id(w.parameter): w for w in _all(model)}
    with no_grad():
        for old, value, mask in weights:
            now = current[id(old.parameter)]
            if now.function is not None:
                put_mask(now, mask)
            now.parameter.data = value
        for buffer, value in buffers:
            if tuple(buffer.shape) == tuple(value.shape):
                buffer.data = value


def _all(model: Module) -> list[Any]:
    return weights_of("iterate", model, "*")
