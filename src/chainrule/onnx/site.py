"""An operation at its place: what a rule reads of it, and how it writes nodes for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Protocol

from chainrule.backend import dtypes
from chainrule.onnx.errors import OnnxExporterError
from chainrule.onnx.graph import Graph, Quantity, is_fixed
from chainrule.onnx.recording import INPUT, STEP, Pass, Ref, Step
from chainrule.ops.core.promotion import cast
from chainrule.tensor import Tensor

__all__ = ["Made", "Rule", "Site", "Values"]

Made = str | tuple[str | None, ...]  # names of what a rule has made


class Values(Protocol):
    """Who knows what the tensors of a pass are in the graph."""

    graph: Graph
    passes: Sequence[Pass]
    input_dtypes: list[dtypes.dtype]

    def value(self, ref: Ref) -> str:
        """The name of a tensor in the graph."""

    def fixed_tensor(self, ref: Ref) -> Tensor | None:
        """A tensor that is the same whatever the inputs are; None if it is not."""


class Site:
    """One step of all passes at once."""

    def __init__(self, values: Values, number: int):
        self.values, self.number = values, number
        self.graph = values.graph
        self.steps: list[Step] = [p.steps[number] for p in values.passes]
        self.step = self.steps[0]
        self.name = self.step.name

    # --- what there is ----------------------------------------------------------------------------

    @property
    def what(self) -> str:
        """The operation and its layer, for errors."""
        return f"operation {self.name!r} in {self.step.place}"

    def fail(self, reason: str) -> NoReturn:
        """Refuses the operation."""
        raise OnnxExporterError(f"export: {self.what} cannot be written as ONNX: {reason}")

    @property
    def count(self) -> int:
        """How many inputs there are."""
        return len(self.step.inputs)

    def x(self, i: int = 0) -> str:
        """The name of an input in the graph."""
        return self.values.value(self.step.inputs[i])

    def fixed_tensor(self, i: int) -> Tensor | None:
        """An input that is the same whatever the inputs of the model are; None if it is not."""
        return self.values.fixed_tensor(self.step.inputs[i])

    def source(self, i: int) -> Site | None:
        """The operation that made an input; None for inputs of the model and constants."""
        ref = self.step.inputs[i]
        return Site(self.values, ref.number) if ref.kind == STEP else None

    def shape(self, i: int = 0) -> list[Quantity]:
        """The sizes of an input, each in all passes."""
        return list(zip(*[step.shapes[i] for step in self.steps], strict=True))

    def out_shape(self, k: int = 0) -> list[Quantity]:
        """The sizes of an output, each in all passes."""
        return list(zip(*[tuple(step.results[k].shape) for step in self.steps], strict=True))

    def ndim(self, i: int = 0) -> int:
        """The number of dimensions of an input."""
        return len(self.step.shapes[i])

    def fixed_shape(self, i: int = 0) -> list[int]:
        """The sizes of an input, none of which may change."""
        if not all(map(is_fixed, self.shape(i))):
            self.fail("a dynamic axis changes sizes that it needs to be fixed")
        return [int(d[0]) for d in self.shape(i)]

    @property
    def dtype(self) -> dtypes.dtype:
        """The type of the first output."""
        return self.step.results[0].dtype

    def param(self, key: str, default: Any = None) -> Any:
        """A parameter, which is the same in all passes."""
        first = self.step.params.get(key, default)
        if any(repr(s.params.get(key, default)) != repr(first) for s in self.steps):
            self.fail(f"its {key!r} changes with a dynamic axis")
        return first

    def many(self, key: str) -> list[Any]:
        """A parameter in all passes."""
        return [step.params[key] for step in self.steps]

    def dims(self, key: str = "dim") -> list[int]:
        """Dimensions counted from the front."""
        given = self.param(key)
        if given is None:
            return list(range(self.ndim()))
        given = (given,) if isinstance(given, int) else given
        return [d % self.ndim() for d in given]

    # --- what is made -----------------------------------------------------------------------------

    def add(self, kind: str, *inputs: str, **how: Any) -> Any:
        """A node for it."""
        return self.graph.add(kind, *inputs, place=self.path, **how)

    @property
    def path(self) -> str:
        """The layer's name, as a prefix for those of nodes."""
        return self.step.path.replace(".", "/")

    def number_of(self, value: float, dtype: dtypes.dtype | None = None) -> str:
        """A number as a constant without dimensions, of the output's type."""
        return self.graph.numbers(value, dtype or self.dtype)

    def integers(self, values: Sequence[int]) -> str:
        """Integers as a constant."""
        return self.graph.integers(values)

    def as_type(self, name: str, have: dtypes.dtype, want: dtypes.dtype) -> str:
        """A value of another type."""
        return name if have == want else self.graph.cast(name, want)

    def input_dtype(self, i: int = 0) -> dtypes.dtype:
        """The type of an input."""
        ref = self.step.inputs[i]
        if ref.kind == INPUT:
            return self.values.input_dtypes[ref.number]
        return self.values.passes[0].tensor(ref).dtype

    def integer_type(self) -> bool:
        """Whether the first input holds integers or truth values."""
        kind = self.input_dtype()
        return not kind.is_floating_point

    def boolean(self) -> bool:
        """Whether the first input holds truth values."""
        return self.input_dtype() == dtypes.bool_

    def constant(self, x: Tensor, dtype: dtypes.dtype | None = None, name: str = "constant") -> str:
        """A tensor that is part of the file."""
        return self.graph.constant(x if dtype is None or x.dtype == dtype else cast(x, dtype), name)


Rule = Callable[[Site], Made]
