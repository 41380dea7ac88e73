"""The graph that is written: nodes, constants, and the sizes of free axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from chainrule.backend import dtypes
from chainrule.onnx import messages
from chainrule.onnx.errors import OnnxExporterError
from chainrule.onnx.messages import Attribute
from chainrule.onnx.sizes import Axis, Linear, Monomial, formula_of
from chainrule.ops.creation.from_data import tensor
from chainrule.tensor import Tensor

__all__ = ["Graph", "ML", "Quantity", "is_fixed"]

ML = "ai.onnx.ml"  # the domain of operators for words
# A number in each of the passes.
Quantity = Sequence[float]


def is_fixed(values: Quantity) -> bool:
    """Whether a number is the same in all passes."""
    return all(v == values[0] for v in values)


@dataclass
class _Node:
    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    name: str
    attributes: dict[str, Attribute]
    domain: str


@dataclass
class Graph:
    """A graph in the making: names of values go in and out of its methods."""

    inputs: list[str]
    axes: Sequence[Axis]
    nodes: list[_Node] = field(default_factory=list)
    constants: dict[str, Tensor | list[str]] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    known: dict[Any, str] = field(default_factory=dict)  # constants and sizes that are there
    final: set[str] = field(default_factory=set)  # outputs that have their names

    def unique(self, name: str) -> str:
        """The name, or one like it that is not taken."""
        found, n = name, 1
        while found in self.taken:
            found, n = f"{name}_{n}", n + 1
        self.taken.add(found)
        return found

    def add(
        self,
        kind: str,
        *inputs: str,
        outputs: int = 1,
        place: str = "",
        domain: str = "",
        **attributes: Attribute,
    ) -> Any:
        """A node; returns the name of its output, or a tuple of several."""
        name = self.unique(f"{place}/{kind}" if place else kind)
        made = (name,) if outputs == 1 else tuple(f"{name}:{k}" for k in range(outputs))
        self.nodes.append(_Node(kind, inputs, made, name, attributes, domain))
        return name if outputs == 1 else made

    # --- constants --------------------------------------------------------------------------------

    def constant(self, x: Tensor, name: str = "constant") -> str:
        """A tensor that is part of the file."""
        key = (id(x), name)
        if key not in self.known:
            if x.dtype.name not in messages.TYPES:
                raise OnnxExporterError(f"export: ONNX has no tensors of type {x.dtype}")
            self.known[key] = self.unique(name)
            self.constants[self.known[key]] = x
        return self.known[key]

    def numbers(self, values: Any, dtype: dtypes.dtype) -> str:
        """A number or a list of numbers as a constant."""
        key = (repr(values), dtype.name)
        if key not in self.known:
            self.known[key] = self.unique("constant")
            self.constants[self.known[key]] = tensor(values, dtype=dtype)
        return self.known[key]

    def integers(self, values: Sequence[int]) -> str:
        """Integers in a constant of one dimension, as shapes and axes are given."""
        return self.numbers([int(v) for v in values], dtypes.int64)

    def words(self, values: Sequence[str]) -> str:
        """Texts in a constant of one dimension."""
        name = self.unique("words")
        self.constants[name] = list(values)
        return name

    # --- sizes ------------------------------------------------------------------------------------

    def axis(self, k: int) -> str:
        """The size of a free axis, as one integer in a tensor of one dimension."""
        if ("axis", k) not in self.known:
            a = self.axes[k]
            made = self.add("Shape", self.inputs[a.input], start=a.dim, end=a.dim + 1, place=a.name)
            self.known["axis", k] = made
        return self.known["axis", k]

    def size(self, values: Quantity, what: str) -> str:
        """An integer of each pass, as one integer in a tensor of one dimension."""
        if is_fixed(values):
            return self.integers([int(values[0])])
        found = self._formula(values, what)
        if ("size", found) not in self.known:
            if isinstance(found, Linear):
                made = self._linear(found)
            else:
                made = self._product(found, what)
            self.known["size", found] = made
        return self.known["size", found]

    def sizes(self, dims: Sequence[Quantity], what: str) -> str:
        """Integers of each pass, in a tensor of one dimension."""
        if all(map(is_fixed, dims)):
            return self.integers([int(d[0]) for d in dims])
        parts = [self.size(d, what) for d in dims]
        return parts[0] if len(parts) == 1 else self.add("Concat", *parts, axis=0)

    def number(self, values: Quantity, dtype: dtypes.dtype, what: str) -> str:
        """A number of each pass, as a tensor without dimensions."""
        if is_fixed(values) or repr(list(values)) == repr([values[0]] * len(values)):  # NaN, too
            return self.numbers(values[0], dtype)
        found = self._formula(values, what)
        axes = [self._scalar(k, dtype) for k in range(len(self.axes))]
        if isinstance(found, Linear):
            total = self.numbers(float(found.offset), dtype)
            for factor, axis in zip(found.factors, axes, strict=True):
                if factor:
                    part = self.add("Mul", axis, self.numbers(float(factor), dtype))
                    total = self.add("Add", total, part)
            return total
        total = self.numbers(found.factor, dtype)
        for exponent, axis in zip(found.exponents, axes, strict=True):
            if exponent:
                part = self.add("Pow", axis, self.numbers(float(exponent), dtype))
                total = self.add("Mul", total, part)
        return total

    def _formula(self, values: Quantity, what: str) -> Linear | Monomial:
        found = formula_of(values, self.axes)
        if found is None:
            listed = ", ".join(f"{v:g}" for v in values)
            raise OnnxExporterError(
                f"export: {what} has a number that changes from pass to pass ({listed}) and does "
                "not follow from the dynamic axes: it was computed in Python from values of "
                "tensors (item(), tolist(), if), or is drawn at random; keep it a tensor"
            )
        return found

    def _scalar(self, k: int, dtype: dtypes.dtype) -> str:
        empty = self.integers([])
        whole = self.add("Reshape", self.axis(k), empty)
        return self.add("Cast", whole, to=messages.TYPES[dtype.name])

    def _linear(self, found: Linear) -> str:
        common = math.lcm(*[f.denominator for f in (found.offset, *found.factors)])
        total: str | None = None
        for k, factor in enumerate(found.factors):
            if factor:
                times = int(factor * common)
                part = self.axis(k)
                if times != 1:
                    part = self.add("Mul", part, self.integers([times]))
                total = part if total is None else self.add("Add", total, part)
        if total is None:
            return self.integers([int(found.offset)])
        if found.offset:
            total = self.add("Add", total, self.integers([int(found.offset * common)]))
        return total if common == 1 else self.add("Div", total, self.integers([common]))

    def _product(self, found: Monomial, what: str) -> str:
        whole = float(found.factor).is_integer()
        if not whole or any(e < 0 or not e.is_integer() for e in found.exponents):
            raise OnnxExporterError(f"export: {what} has a size that is no multiple of the axes")
        total = self.integers([int(found.factor)])
        for k, exponent in enumerate(found.exponents):
            for _ in range(int(exponent)):
                total = self.add("Mul", total, self.axis(k))
        return total

    # --- the end ----------------------------------------------------------------------------------

    def cast(self, name: str, dtype: dtypes.dtype) -> str:
        """A value as one of another type."""
        return self.add("Cast", name, to=messages.TYPES[dtype.name])

    def renamed(self, have: str, want: str) -> None:
        """Gives a value the name of an output; an input, a constant or another output is copied."""
        maker = next((n for n in self.nodes if have in n.outputs), None)
        if maker is None or have in self.final:
            name = self.unique(f"to/{want}")
            self.nodes.append(_Node("Identity", (have,), (want,), name, {}, ""))
        else:
            for node in self.nodes:
                node.inputs = tuple([want if n == have else n for n in node.inputs])
                node.outputs = tuple([want if n == have else n for n in node.outputs])
        self.final.add(want)

    def pruned(self, outputs: Sequence[str]) -> tuple[list[bytes], list[bytes]]:
        """The nodes that outputs depend on, and the constants that these read, as messages."""
        needed, kept = set(outputs), []
        for node in reversed(self.nodes):
            if needed.intersection(node.outputs):
                needed.update(node.inputs)
                kept.append(node)
        nodes = [
            messages.node(n.kind, n.inputs, n.outputs, n.name, n.attributes, n.domain)
            for n in reversed(kept)
        ]
        constants = [
            messages.strings(name, x) if isinstance(x, list) else messages.tensor(name, x)
            for name, x in self.constants.items()
            if name in needed
        ]
        return nodes, constants

    @property
    def domains(self) -> set[str]:
        """The domains of its operators."""
        return {n.domain for n in self.nodes}
