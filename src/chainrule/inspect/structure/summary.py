"""The table of a network: layers in the order of their calls, shapes, parameters, cost, memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chainrule import charts
from chainrule.inspect.core.arguments import Inputs
from chainrule.inspect.core.registry import instrument
from chainrule.inspect.core.results import Result
from chainrule.inspect.core.tracing import Trace, trace
from chainrule.inspect.structure.amounts import amount, round_numbers, short, size
from chainrule.inspect.structure.initializers import initializer_of
from chainrule.inspect.structure.inputs import inputs_or_made, settled
from chainrule.inspect.structure.memory import arrays_of, bytes_of, memory_of, owner
from chainrule.inspect.structure.rows import Row, module_rows, rows_of
from chainrule.inspect.structure.table import COLUMNS, shape_text, table
from chainrule.nn.module.base import Module
from chainrule.nn.parameter import is_lazy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Summary", "summary"]


@dataclass(repr=False)
class Summary(Result):
    """What a network is made of. Bytes: ``parameter_bytes`` and ``buffer_bytes`` of its tensors,
    ``input_bytes`` of what it was given, ``forward_bytes`` of the activations that are alive at
    once in a forward pass, ``kept_bytes`` of those that a training step keeps for the backward
    pass, and ``disk_bytes`` of its saved state.

    ``unused`` names modules with parameters that the pass did not read. ``error`` is what ended
    the pass, if it failed; the rows then go as far as it came.
    """

    model: str
    rows: list[Row]
    parameters: int
    trainable: int
    buffers: int
    macs: int
    flops: int
    parameter_bytes: int
    gradient_bytes: int
    buffer_bytes: int
    input_bytes: int
    forward_bytes: int
    kept_bytes: int
    disk_bytes: int
    unused: dict[str, int]
    unknown: list[str]
    error: Exception | None = None
    columns: tuple[str, ...] = ()
    called: bool = True  # whether there were inputs to call it with
    _hint: str = ""

    @property
    def frozen(self) -> int:
        """Parameters that are not trained."""
        return self.parameters - self.trainable

    @property
    def training_bytes(self) -> int:
        """What a training step holds at its fullest, without the state of an optimizer: parameters,
        buffers, inputs, gradients, and the activations that the backward pass reads."""
        held = self.parameter_bytes + self.gradient_bytes + self.buffer_bytes
        return held + self.input_bytes + self.kept_bytes

    def to_dict(self) -> dict[str, Any]:
        """All numbers, as lists and dicts of Python's own types."""
        more = {"frozen": self.frozen, "training_bytes": self.training_bytes}
        error = None if self.error is None else f"{type(self.error).__name__}: {self.error}"
        return {**super().to_dict(), **more, "error": error}

    def __str__(self) -> str:
        text = table(self.rows, self.columns)
        width = max(map(len, text.splitlines()))
        return "\n".join([text, "=" * width, *self._totals()])

    def _totals(self) -> list[str]:
        lines = [
            f"parameters     {self.parameters:,}  ({self.trainable:,} trainable, "
            f"{self.frozen:,} frozen; buffers {self.buffers:,})"
        ]
        if self.called:
            lines += [
                f"multiply-adds  {amount(self.macs)}  (FLOPs {amount(self.flops)})",
                f"memory         forward {size(self.forward_bytes)} of activations at once; "
                f"training keeps {size(self.kept_bytes)}",
                f"               and holds {size(self.training_bytes)} with parameters, gradients "
                "and inputs",
            ]
        lines.append(f"on disk        {size(self.disk_bytes)}")
        if self.unknown:
            lines.append(f"not counted    {', '.join(self.unknown)}: depends on the values")
        if self.unused:
            names = ", ".join(f"{n or self.model} ({k:,})" for n, k in self.unused.items())
            lines.append(f"not used       parameters of {names}")
        if not self.called:
            lines.append("give inputs or input_size for shapes, multiply-adds and memory")
        if self.error is not None:
            lines += ["", f"{type(self.error).__name__}: {self.error}", *self._where()]
        return lines

    def _where(self) -> list[str]:
        row = next((r for r in reversed(self.rows) if r.failed), None)
        if row is None:
            return [self._hint] if self._hint else []
        where = f"in layer '{row.path}' ({row.kind})" if row.path else f"in {row.kind} itself"
        place = f"{where}, marked !, which was given {shape_text(row.input)}"
        return [place, self._hint] if self._hint else [place]

    def _largest(self, most: int = 40) -> list[Row]:
        """The rows with parameters or multiply-adds, in their order; of many those with most."""
        counting = [r for r in self.rows if r.parameters or r.macs] or self.rows
        total = max(1, self.parameters), max(1, self.macs)
        by_share = sorted(counting, key=lambda r: -max(r.parameters / total[0], r.macs / total[1]))
        kept = set(map(id, by_share[:most]))
        return [r for r in counting if id(r) in kept]

    def plot(self, axes: Any = None, **style: Any) -> list[Axes]:
        """Bars of the parameters and of the multiply-adds of each layer (of many, the largest)."""
        shown = self._largest()
        panels = ("parameters", "macs") if self.called else ("parameters",)
        height = 1.2 + 0.26 * len(shown)
        drawn = charts.grid_of_axes(axes, len(panels), len(panels), (4.6, height))
        style.setdefault("color", charts.COLORS[0])
        for ax, what in zip(drawn, panels, strict=True):
            values, at = [getattr(r, what) for r in shown], range(len(shown))
            bars = ax.barh(at, values, **style)
            ax.bar_label(bars, [amount(n) if n else "" for n in values], padding=3)
            ax.set_yticks(at, [_bar_label(r) for r in shown] if ax is drawn[0] else [])
            ax.set_ylim(len(shown) - 0.4, -0.6)
            ax.set_xlim(0, 1.25 * max(1, *values))
            ticks = round_numbers(max(1, *values))
            ax.set_xticks(ticks, [short(t) for t in ticks])
            word = "parameters" if what == "parameters" else "multiply-adds"
            total = self.parameters if what == "parameters" else self.macs
            ax.set_title(f"{amount(total)} {word}")
            ax.set_xlabel(f"{word} of the layer")
        return drawn


def _bar_label(row: Row) -> str:
    return f"{row.path or row.name}{' (again)' * row.reused}"


@instrument("Y08", "L15", "L16", "L17", needs=("model", "inputs"))
def summary(
    model: Module,
    inputs: Inputs = None,
    *,
    input_size: Any = None,
    depth: int | None = None,
    columns: Sequence[str] | None = None,
) -> Summary:
    """Lists the layers of a network with shapes, parameters, multiply-adds and memory.

    The model is called once, in its own mode, and what happens is written down: rows stand in the
    order of the calls, a module that is called twice has two, and the numbers are counted from the
    operations that ran. If the call fails, the table goes as far as it came and says where.

    Args:
        model: any module.
        inputs: what it is called with: a tensor, a tuple of them, or a dict of keyword arguments.
        input_size: instead of inputs, their sizes with the batch: (1, 3, 32, 32), a list of sizes,
            or a dict. Without both the parameters alone are listed.
        depth: how many levels of modules get rows of their own.
        columns: of "input", "output", "parameters", "trainable", "macs", "flops", "memory",
            "receptive_field", "initializer".

    >>> from chainrule import inspect, nn
    >>> net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    >>> print(inspect.summary(net, input_size=(5, 4)))
    layer       input   output  parameters  multiply-adds  memory
    ----------  ------  ------  ----------  -------------  ------
    Sequential  (5, 4)  (5, 3)           -              -       -
      0 Linear  (5, 4)  (5, 8)          40            160       -
      1 Tanh    (5, 8)  (5, 8)           -              -   160 B
      2 Linear  (5, 8)  (5, 3)          27            120       -
    =============================================================
    parameters     67  (67 trainable, 0 frozen; buffers 0)
    multiply-adds  280  (FLOPs 655)
    memory         forward 320 B of activations at once; training keeps 160 B
                   and holds 776 B with parameters, gradients and inputs
    on disk        268 B
    """
    chosen = _checked_columns(columns)
    if depth is not None and depth < 0:
        raise ValueError(f"summary: depth must not be negative, got {depth}")
    named = initializer_of if "initializer" in chosen else None
    if inputs is None and input_size is None:
        rows = module_rows(model, depth, named)
        own = tuple(c for c in chosen or ("parameters",) if c in OF_MODULES)
        return _summarized(model, rows, own or ("parameters",), None)
    model = settled(model)
    given = inputs_or_made("summary", model, inputs, input_size)
    seen = trace("summary", model, given, gradients=True, partial=True)
    rows = rows_of(seen, depth, named)
    result = _summarized(model, rows, chosen or _usual(rows), seen)
    if seen.error is not None and inputs is None:
        result._hint = (
            "the inputs were made from input_size, floating unless an embedding reads them; give "
            "inputs=... where others are needed"
        )
    return result


OF_MODULES = ("parameters", "trainable", "initializer")  # what is known without a call


def _checked_columns(columns: Sequence[str] | None) -> tuple[str, ...]:
    chosen = (columns,) if isinstance(columns, str) else tuple(columns or ())
    unknown = [c for c in chosen if c not in COLUMNS]
    if unknown:
        raise ValueError(f"summary: there is no column {unknown[0]!r}; there are {list(COLUMNS)}")
    return chosen


def _usual(rows: list[Row]) -> tuple[str, ...]:
    usual = ("input", "output", "parameters", "macs", "memory")
    return (*usual, "receptive_field") if any(r.receptive_field for r in rows) else usual


def _summarized(
    model: Module, rows: list[Row], columns: tuple[str, ...], seen: Trace | None
) -> Summary:
    parameters = [p for p in model.parameters() if not is_lazy(p)]
    trainable = [p for p in parameters if p.requires_grad]
    buffers = [b for b in model.buffers() if b is not None and not is_lazy(b)]
    memory = None if seen is None else memory_of(seen)
    unknown = list(dict.fromkeys(name for r in rows for name in r.unknown))
    return Summary(
        model=type(model).__name__,
        rows=rows,
        parameters=sum(p.numel() for p in parameters),
        trainable=sum(p.numel() for p in trainable),
        buffers=sum(b.numel() for b in buffers),
        macs=sum(r.macs for r in rows),
        flops=sum(r.flops for r in rows),
        parameter_bytes=bytes_of(parameters),
        gradient_bytes=sum(p.numel() * p.element_size() for p in trainable),
        buffer_bytes=bytes_of(buffers),
        input_bytes=0 if seen is None else bytes_of(seen.root.inputs),
        forward_bytes=0 if memory is None else memory.peak,
        kept_bytes=0 if memory is None else memory.kept,
        disk_bytes=_on_disk(model),
        unused={} if seen is None else _unused(seen),
        unknown=unknown,
        error=None if seen is None else seen.error,
        columns=columns,
        called=seen is not None,
    )


def _on_disk(model: Module) -> int:
    """The bytes of the state that is saved, shared tensors once."""
    distinct = {id(t.array): t for t in _state(model)}
    return sum(t.numel() * t.element_size() for t in distinct.values())


def _state(model: Module) -> list[Any]:
    values = model.state_dict().values()
    return [t for t in values if hasattr(t, "array") and not is_lazy(t)]


def _unused(seen: Trace) -> dict[str, int]:
    """Parameters that no operation of the pass read, by module: they get no gradient."""
    if seen.error is not None:
        return {}
    read = {id(owner(a)) for op in seen.operations for a in arrays_of(op.inputs)}
    unused: dict[str, int] = {}
    for path, module in seen.model.named_modules():
        held = [p for p in module._parameters.values() if p is not None and not is_lazy(p)]
        count = sum(p.numel() for p in held if id(owner(p.array)) not in read)
        if count:
            unused[path] = count
    return unused
