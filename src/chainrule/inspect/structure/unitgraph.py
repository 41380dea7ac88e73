"""Units and the weights between them, read from a trace of a network of linear layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from chainrule.autograd.modes import no_grad
from chainrule.inspect.core.arguments import tensors
from chainrule.inspect.core.tracing import Operation, Trace
from chainrule.inspect.structure.values import class_name
from chainrule.nn.module.base import Module
from chainrule.nn.utils.parametrize import is_parametrized
from chainrule.ops.core.primitive import Elementwise
from chainrule.ops.creation.patterns import arange
from chainrule.tensor import Tensor

__all__ = ["Layer", "UnitGraph", "Weights", "read_units"]

# Operations whose outputs are inputs in another place; views are such, too.
MOVES = {"cat", "stack", "index", "index_select", "gather", "flip", "take", "repeat", "clone"}
OVER_UNITS = {"softmax", "log_softmax"}


@dataclass
class Weights:
    """The links from units to the units of a layer: ``matrix[i, j]`` is from j to i.

    ``mask`` is False where a weight was pruned; ``trained`` says whether they learn.
    """

    sources: list[int]
    matrix: Tensor | None  # None: each source to the unit of the same place, with weight 1
    mask: Tensor | None
    trained: bool
    name: str


@dataclass
class Layer:
    """Units that were made by one operation: their numbers, and the links to them."""

    name: str
    units: list[int]
    rank: int
    weights: list[Weights] = field(default_factory=list)
    bias: Tensor | None = None
    functions: list[str] = field(default_factory=list)  # applied to the sums, in order


@dataclass
class UnitGraph:
    """Layers of units in order; the first are the inputs. ``outputs`` are units by number."""

    layers: list[Layer]
    outputs: list[int]

    def layer_of(self, unit: int) -> Layer:
        """The layer of a unit."""
        return next(layer for layer in self.layers if unit in layer.units)

    @property
    def in_rows(self) -> bool:
        """Whether every link leads from one rank to the next."""
        rank = {u: layer.rank for layer in self.layers for u in layer.units}
        return all(
            rank[u] == layer.rank - 1
            for layer in self.layers
            for weights in layer.weights
            for u in weights.sources
        )


def read_units(trace: Trace) -> UnitGraph:
    """The units of a traced network; what is made of other things than sums is refused."""
    return _Reader(trace).read()


class _Reader:
    """Follows units through a trace: each tensor holds numbers of units where it has values."""

    def __init__(self, trace: Trace):
        self.trace = trace
        self.layers: list[Layer] = []
        self.count = 0
        self.held: dict[int, Tensor] = {}  # numbers of units, by the tensor of their values
        self.paths = {id(p): name for name, p in trace.model.named_parameters()}

    @no_grad()
    def read(self) -> UnitGraph:
        """Reads all operations in order."""
        for t in self.trace.root.inputs:
            self._new(t, "input", 0)
        for op in self.trace.operations:
            self._follow(op)
        outs = [t for t in tensors(self.trace.output) if id(t) in self.held]
        if not outs or len(self.layers) < 2:
            raise self._refusal("no output is a sum of the inputs")
        found = dict.fromkeys(u for t in outs for u in self._row(t))
        return UnitGraph(self.layers, list(found))

    def _new(self, t: Tensor, name: str, rank: int) -> Layer:
        """New units for the last dimension of a tensor."""
        size = int(t.shape[-1]) if t.ndim else 1
        layer = Layer(name, list(range(self.count, self.count + size)), rank)
        self.count += size
        self.layers.append(layer)
        self.held[id(t)] = (arange(size).double() + layer.units[0]).expand(*t.shape)
        return layer

    def _row(self, t: Tensor) -> list[int]:
        """The units of a tensor; they are the same for every sample."""
        numbers = self.held[id(t)]
        width = int(numbers.shape[-1]) if numbers.ndim else 1
        return [int(n) for n in numbers.reshape(-1, width)[0].tolist()]

    def _rank(self, units: Sequence[int]) -> int:
        wanted = set(units)
        return max(layer.rank for layer in self.layers if wanted & set(layer.units))

    def _follow(self, op: Operation) -> None:
        known = [t for t in op.inputs if id(t) in self.held]
        if not known:
            return None  # of weights and constants alone: no unit
        name, out = op.name, op.outputs[0]
        if name == "linear" or name.startswith("linear_"):
            return self._linear(op, out, op.inputs[1], transposed=False)
        if name == "matmul" and len(known) == 1 and op.inputs[0] is known[0]:
            return self._linear(op, out, op.inputs[1], transposed=True)
        places = [t for t in op.inputs if id(t) not in self.held and not t.is_floating_point()]
        if (op.op.is_view or name in MOVES) and len(known) + len(places) == len(op.inputs):
            moved = [self.held.get(id(t), t) for t in op.inputs]
            self.held[id(out)] = op.op(*moved, **op.params)
            return None
        if len(known) == 1 and self._is_function(op, known[0]):
            self.held[id(out)] = self.held[id(known[0])]
            for layer in self._layers_of(known[0]):
                if name not in layer.functions and not _does_nothing(op):
                    layer.functions.append(name)
            return None
        if name in ("add", "sub", "mul") and all(t.shape == out.shape for t in known):
            return self._joined(op, known, out)
        raise self._refusal(f"the operation {name!r}{self._where(op)} is none of them")

    def _is_function(self, op: Operation, t: Tensor) -> bool:
        kind = op.call.kind
        if op.outputs[0].shape != t.shape:
            return False
        of_module = "activations" in type(op.call.module).__module__ or kind.startswith("BatchNorm")
        return of_module or isinstance(op.op, Elementwise) or op.name in OVER_UNITS

    def _layers_of(self, t: Tensor) -> list[Layer]:
        units = set(self._row(t))
        return [layer for layer in self.layers if units & set(layer.units) and layer.rank]

    def _linear(self, op: Operation, out: Tensor, weight: Tensor, transposed: bool) -> None:
        if op.inputs[0] is weight or weight.ndim != 2 or id(weight) in self.held:
            raise self._refusal(f"a product{self._where(op)} is not one by a matrix of weights")
        sources = self._row(op.inputs[0])
        layer = self._new(out, _layer_name(op), self._rank(sources) + 1)
        mask, trained = _state(op.call.module, weight)
        name = self.paths.get(id(weight), f"{op.call.path}.weight".lstrip("."))
        matrix = weight.detach().mT if transposed else weight.detach()
        layer.weights.append(Weights(sources, matrix, mask, trained, name))
        layer.bias = op.inputs[2].detach() if len(op.inputs) > 2 else None
        if op.name.startswith("linear_"):
            layer.functions.append(op.name.removeprefix("linear_"))

    def _joined(self, op: Operation, known: Sequence[Tensor], out: Tensor) -> None:
        rows = [self._row(t) for t in known]
        rank = max(map(self._rank, rows)) + 1
        layer = self._new(out, op.name, rank)
        layer.functions.append({"add": "sum", "sub": "difference", "mul": "product"}[op.name])
        layer.weights += [Weights(row, None, None, False, "fixed") for row in rows]

    def _where(self, op: Operation) -> str:
        return f" in {op.call.path!r}" if op.call.path else ""

    def _refusal(self, why: str) -> ValueError:
        return ValueError(
            "draw: level='units' draws networks of Linear layers and functions of single units; "
            f"{why}; use level='modules'"
        )


def _layer_name(op: Operation) -> str:
    name = class_name(op.call.module)
    return f"{op.call.path}: {name}" if op.call.path else name


def _does_nothing(op: Operation) -> bool:
    return (op.name, op.params.get("number")) in (("add", 0), ("sub", 0), ("mul", 1), ("div", 1))


def _state(module: Module, weight: Tensor) -> tuple[Tensor | None, bool]:
    """The mask of a weight, and whether it is trained."""
    if is_parametrized(module, "weight"):
        steps: Any = getattr(module, "parametrizations").weight  # noqa: B009
        masks = [step.mask for step in steps if getattr(step, "is_mask", False)]
        return (masks[0] if masks else None), bool(steps.original.requires_grad)
    return None, bool(weight.requires_grad)
