"""Multiply-adds and FLOPs of a forward pass, counted from the operations that ran."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from chainrule.graph import Box
from chainrule import charts
from chainrule.inspect.core.arguments import Inputs
from chainrule.inspect.core.registry import instrument
from chainrule.inspect.core.results import Result
from chainrule.inspect.core.tracing import Operation, Trace, trace
from chainrule.inspect.structure.inputs import inputs_or_made, settled
from chainrule.inspect.structure.amounts import amount, round_numbers, short
from chainrule.nn.module.base import Module
from chainrule.ops.core.counting import Cost, cost_of
from chainrule.printing import text_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Count", "Tally", "count", "costs_of"]


@dataclass
class Tally:
    """The cost of several operations; ``unknown`` names those whose cost is not known."""

    macs: int = 0
    flops: int = 0
    times: int = 0
    unknown: list[str] = field(default_factory=list)

    def add(self, name: str, cost: Cost | None) -> None:
        """Counts an operation."""
        self.times += 1
        if cost is None:
            if name not in self.unknown:
                self.unknown.append(name)
            return
        self.macs += cost.macs
        self.flops += cost.flops


def _cost(op: Operation) -> Cost | None:
    """Inside a transformation (vmap, jvp) the operations on what it holds are counted instead."""
    if any(isinstance(t.array, Box) for t in op.outputs):
        return Cost(0, 0)
    return cost_of(op.op, op.inputs, op.params, op.outputs)


def costs_of(operations: Iterable[Operation]) -> Tally:
    """The cost of operations together."""
    total = Tally()
    for op in operations:
        total.add(op.name, _cost(op))
    return total


@dataclass(repr=False)
class Count(Result):
    """What a forward pass computes: in all, by kind of operation, and by layer.

    ``unknown`` names operations whose cost depends on the values; they are not in the sums.
    """

    model: str
    macs: int
    flops: int
    operations: dict[str, Tally]
    layers: dict[str, Tally]
    unknown: list[str]

    def __str__(self) -> str:
        rows = [
            [name, f"{t.times:,}", f"{t.macs:,}", "unknown" if t.unknown else f"{t.flops:,}"]
            for name, t in _largest_first(self.operations)
        ]
        table = text_table(
            ["operation", "times", "multiply-adds", "FLOPs"], rows, left=1, rule=True
        )
        told = f"{self.model}: {self.macs:,} multiply-adds, {self.flops:,} FLOPs"
        if self.unknown:
            told += f", and {', '.join(self.unknown)}, whose cost depends on the values"
        return f"{told}\n{table}"

    def plot(self, ax: Axes | None = None, **style: Any) -> Axes:
        """FLOPs by kind of operation."""
        shown = [(n, t) for n, t in _largest_first(self.operations) if t.flops][:12][::-1]
        ax = charts.axes_for(ax, (6.4, 1.4 + 0.28 * len(shown)))
        style.setdefault("color", charts.COLORS[0])
        flops = [t.flops for _, t in shown]
        bars = ax.barh([name for name, _ in shown], flops, **style)
        ax.bar_label(bars, [amount(n) for n in flops], padding=3)
        ax.set_xlim(0, 1.25 * max(1, *flops, 1))
        ticks = round_numbers(max(1, *flops, 1))
        ax.set_xticks(ticks, [short(t) for t in ticks])
        ax.set_xlabel("FLOPs of one forward pass")
        ax.set_title(f"What {self.model} computes")
        return ax


def _largest_first(tallies: dict[str, Tally]) -> list[tuple[str, Tally]]:
    return sorted(tallies.items(), key=lambda item: (-item[1].flops, item[0]))


def counted(seen: Trace) -> Count:
    """The count of a trace."""
    operations: dict[str, Tally] = {}
    layers: dict[str, Tally] = {call.path: Tally() for call in seen.calls}
    total = Tally()
    for op in seen.operations:
        cost = _cost(op)
        tallies = operations.setdefault(op.name, Tally()), layers[op.call.path], total
        for tally in tallies:
            tally.add(op.name, cost)
    name = type(seen.model).__name__
    return Count(name, total.macs, total.flops, operations, layers, total.unknown)


@instrument("Y08", "L16", needs=("model", "inputs"))
def count(model: Module, inputs: Inputs = None, *, input_size: Any = None) -> Count:
    """Counts the multiply-adds and FLOPs of a forward pass, operation by operation.

    A multiply-add is a product that is added to a sum; FLOPs count it as two, and every function
    of one element as one (see ``ops/core/counting.py``). The pass runs in the model's own mode.

    Args:
        model: any module.
        inputs: what it is called with: a tensor, a tuple of them, or a dict of keyword arguments.
        input_size: instead of inputs, their sizes with the batch: (1, 3, 32, 32), or several.

    >>> from chainrule import inspect, nn
    >>> inspect.count(nn.Linear(784, 30), input_size=(1, 784)).macs
    23520
    """
    model = settled(model)
    return counted(trace("count", model, inputs_or_made("count", model, inputs, input_size)))
