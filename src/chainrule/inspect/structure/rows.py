"""The rows of a summary: one for each call of a module, in the order of the calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from chainrule.inspect.core.tracing import Call, Trace
from chainrule.inspect.structure.counting import costs_of
from chainrule.inspect.structure.memory import memory_of
from chainrule.inspect.structure.spans import Field, fields_of, hull
from chainrule.nn.module.base import Module
from chainrule.nn.parameter import is_lazy
from chainrule.tensor import Tensor

__all__ = ["Row", "module_rows", "rows_of", "shapes", "spatial_axes"]

# Operations after which a unit sees a window of the input.
WINDOWS = {"convolution", "biased_convolution", "convolution_input", "avg_pool", "max_pool_indices"}


@dataclass
class Row:
    """One call of a module. The numbers are those of the module itself and of the calls in it that
    have no row, so that the rows add up to the whole; parameters are counted where they are first.

    ``shared`` says that some of its parameters belong to an earlier row, ``reused`` that the
    module itself was called before, ``failed`` that this is where an error came from.
    """

    name: str
    path: str
    kind: str
    depth: int
    input: Any = None
    output: Any = None
    parameters: int = 0
    trainable: int = 0
    macs: int = 0
    flops: int = 0
    memory: int = 0
    receptive_field: tuple[int, ...] | None = None
    initializer: str = ""
    unknown: list[str] = field(default_factory=list)
    shared: bool = False
    reused: bool = False
    failed: bool = False


def shapes(value: Any) -> Any:
    """Nested tuples, lists and dicts with shapes in the place of tensors, and None of all else.

    >>> from chainrule import ones
    >>> shapes({"logits": ones(2, 3), "states": (ones(1), None)})
    {'logits': (2, 3), 'states': [(1,), None]}
    """
    if isinstance(value, Tensor):
        return tuple(value.shape)
    if isinstance(value, Mapping):
        return {str(k): shapes(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [shapes(v) for v in value]
    return None


def _arguments(call: Call) -> Any:
    """The shapes of what a call was given: of the only argument, or of all by place and name."""
    given = [shapes(a) for a in call.args]
    named = {k: shapes(v) for k, v in call.kwargs.items()}
    given = [g for g in given if g is not None]
    named = {k: v for k, v in named.items() if v is not None}
    if named:
        return {**{str(i): g for i, g in enumerate(given)}, **named}
    return given[0] if len(given) == 1 else given


class _Parameters:
    """Counts each parameter once, where it is met first."""

    def __init__(self) -> None:
        self.met: set[int] = set()

    def count(self, row: Row, parameters: Iterable[Any]) -> None:
        for parameter in parameters:
            if id(parameter) in self.met:
                row.shared = True
                continue
            self.met.add(id(parameter))
            n = 0 if is_lazy(parameter) else parameter.numel()
            row.parameters += n
            row.trainable += n if parameter.requires_grad else 0


def rows_of(
    seen: Trace, depth: int | None, initializer: Callable[[Module], str] | None
) -> list[Row]:
    """A row for each call down to ``depth`` (the model itself is 0)."""
    fields, memory = fields_of(seen), memory_of(seen)
    spatial = spatial_axes(seen, fields)
    met, failed = _Parameters(), seen.failed if seen.error is not None else None
    others = {id(call.module) for call in seen.calls}
    called: set[int] = set()
    rows = []
    for call in seen.calls:
        if depth is not None and call.depth > depth:
            continue
        row = Row(_name(call), call.path, call.kind, call.depth, _arguments(call))
        row.reused = id(call.module) in called
        called.add(id(call.module))
        hidden = depth is not None and call.depth == depth
        inside = list(call.below()) if hidden else [call]
        met.count(row, call.module.parameters() if hidden else _own(call.module, others))
        if initializer is not None:
            row.initializer = initializer(call.module)
        cost = costs_of(op for c in inside for op in c.operations)
        row.macs, row.flops, row.unknown = cost.macs, cost.flops, cost.unknown
        row.memory = sum(memory.by_call.get(c.number, 0) for c in inside)
        row.output = shapes(call.output) if call.finished else None
        row.receptive_field = _field(call, fields, spatial)
        row.failed = failed is not None and failed in inside
        rows.append(row)
    return rows


def _name(call: Call) -> str:
    """The module's name in the module that called it."""
    if call.parent is None:
        return call.kind
    above = call.parent.path
    inside = call.path.startswith(f"{above}.") if above else True
    return call.path.removeprefix(f"{above}.") if inside else call.path


def _own(module: Module, called: set[int]) -> list[Any]:
    """The parameters of a module, and of those below it that are read without being called."""
    own = [p for p in module._parameters.values() if p is not None]
    inner = [m for m in module.children() if id(m) not in called]
    return own + [p for m in inner for p in _own(m, called)]


def module_rows(
    model: Module, depth: int | None, initializer: Callable[[Module], str] | None
) -> list[Row]:
    """A row for each module, without a call."""
    met, rows = _Parameters(), []
    for path, module in model.named_modules():
        level = path.count(".") + 1 if path else 0
        if depth is not None and level > depth:
            continue
        name = path.rpartition(".")[2] or type(module).__name__
        row = Row(name, path, type(module).__name__, level)
        everywhere = {id(m) for m in module.modules()}
        met.count(row, module.parameters() if level == depth else _own(module, everywhere))
        if initializer is not None:
            row.initializer = initializer(module)
        rows.append(row)
    return rows


# --- receptive fields -----------------------------------------------------------------------------


def spatial_axes(seen: Trace, fields: dict[int, Field]) -> list[tuple[int, int]]:
    """The axes along which windows run, of the first input that has such."""
    found = set()
    for op in seen.operations:
        if op.name not in WINDOWS:
            continue
        nd = len(op.params["size"])
        field = fields.get(id(op.inputs[0]), {})
        found |= {k for k, s in field.items() if s.carrier is not None and s.carrier >= -nd}
    return sorted(key for key in found if key[0] == min(found)[0])


def _field(
    call: Call, fields: dict[int, Field], spatial: list[tuple[int, int]]
) -> tuple[int, ...] | None:
    """How many places of the first input with windows a unit sees at most, for each axis."""
    field = next((fields[id(t)] for t in call.outputs if id(t) in fields), None)
    if field is None or not spatial:
        return None
    if any(key not in field for key in spatial):
        return None
    reach = [[hull(places) for places in field[key].seen] for key in spatial]
    return tuple(max((h[1] - h[0] + 1 for h in each if h), default=0) for each in reach)
