"""From passes of a model to a graph of ONNX."""

from __future__ import annotations

from collections.abc import Sequence

from chainrule.onnx.errors import OnnxExporterError
from chainrule.onnx.graph import Graph, is_fixed
from chainrule.onnx.recording import INPUT, LEAF, STEP, Pass, Ref
from chainrule.onnx.rules import RULES
from chainrule.onnx.site import Site
from chainrule.backend import dtypes
from chainrule.ops.creation.conversion import clone
from chainrule.ops.creation.patterns import arange
from chainrule.tensor import Tensor

__all__ = ["Translation"]


class Translation:
    """The passes of a model, and what their tensors are in the graph.

    An operation that cannot be written is an error only if something needs it: what an assertion in
    the model computes is dropped with it.
    """

    def __init__(
        self,
        graph: Graph,
        passes: Sequence[Pass],
        names: dict[int, str],
        input_dtypes: Sequence[dtypes.dtype],
    ):
        self.graph, self.passes, self.names = graph, passes, names
        self.input_dtypes = list(input_dtypes)
        self.made: dict[Ref, str | OnnxExporterError] = {}
        for i, name in enumerate(graph.inputs):
            self.made[Ref(INPUT, i)] = name
        _check_same(passes)
        self.varies = [self._leaf_varies(n) for n in range(len(passes[0].leaves))]
        self.live: list[bool] = []
        for n, step in enumerate(passes[0].steps):
            live = step.reached or any(map(self._is_live, step.inputs)) or self._step_varies(n)
            self.live.append(live)

    def _is_live(self, ref: Ref) -> bool:
        if ref.kind == INPUT:
            return True
        return self.live[ref.number] if ref.kind == STEP else self.varies[ref.number]

    def _step_varies(self, n: int) -> bool:
        """Whether an operation on constants gives something else in another pass: by its sizes."""
        first, *others = [p.steps[n].results for p in self.passes]
        return any(
            not (isinstance(a, Tensor) and isinstance(b, Tensor) and _equal(a, b))
            for other in others
            for a, b in zip(first, other, strict=True)
        )

    def _leaf_varies(self, n: int) -> bool:
        """Whether a constant of one pass is another one in another pass."""
        first, *others = [p.leaves[n] for p in self.passes]
        return any(other is not first and not _equal(first, other) for other in others)

    def translate(self) -> list[str]:
        """Writes all nodes; returns the names of the outputs."""
        for number, live in enumerate(self.live):
            if live:
                self._translate(number)
        return [self.value(ref) for ref in self.passes[0].outputs]

    def _translate(self, number: int) -> None:
        site = Site(self, number)
        results = site.step.results
        refs = [Ref(STEP, number, k) for k in range(len(results))]
        try:
            if site.name not in RULES:
                site.fail("there is no rule for it")
            made = RULES[site.name](site)
        except OnnxExporterError as error:
            self.made.update(dict.fromkeys(refs, error))
            return
        for ref, name in zip(refs, (made,) if isinstance(made, str) else made, strict=False):
            if name is not None:
                self.made[ref] = name

    # --- what rules ask for -----------------------------------------------------------------------

    def value(self, ref: Ref) -> str:
        """The name of a tensor in the graph."""
        found = self.made.get(ref)
        if isinstance(found, OnnxExporterError):
            raise found
        if found is None:
            found = self.made[ref] = self._constant(ref)
        return found

    def fixed_tensor(self, ref: Ref) -> Tensor | None:
        """A tensor that is the same whatever the inputs are; None if it is not."""
        found = None if self._is_live(ref) else self.passes[0].tensor(ref)
        return found if isinstance(found, Tensor) else None

    def _constant(self, ref: Ref) -> str:
        tensor = self.passes[0].tensor(ref)
        if ref.kind == LEAF and self.varies[ref.number]:
            return self._free_constant(ref)
        if self._is_live(ref) or not isinstance(tensor, Tensor):
            step = self.passes[0].steps[ref.number]
            raise OnnxExporterError(
                f"export: output {ref.k} of operation {step.name!r} in {step.place} cannot be "
                "written as ONNX"
            )
        return self.graph.constant(tensor, self.names.get(id(tensor), "constant"))

    def _free_constant(self, ref: Ref) -> str:
        """A constant whose size follows from the free axes: the same along these, or 0, 1, ..."""
        tensors = [p.leaves[ref.number] for p in self.passes]
        shapes = [tuple(t.shape) for t in tensors]
        dims = list(zip(*shapes, strict=True)) if len({len(s) for s in shapes}) == 1 else []
        place = self.passes[0].leaf_places[ref.number]
        what = f"a constant of shape {shapes[0]} that {place} makes while it runs"
        first = tensors[0]
        if all(t.numel() for t in tensors) and dims and not all(map(is_fixed, dims)):
            row = _repeated(tensors, [d for d, many in enumerate(dims) if not is_fixed(many)])
            if row is not None:
                have = [1 if is_fixed(many) else many[0] for many in dims]
                sizes = [[1] * len(m) if h == 1 else m for h, m in zip(have, dims, strict=True)]
                return self.graph.add(
                    "Expand", self.graph.constant(row), self.graph.sizes(sizes, what)
                )
            if len(dims) == 1 and all(_equal(t, arange(len(t), dtype=t.dtype)) for t in tensors):
                size = self.graph.add(
                    "Squeeze", self.graph.sizes(dims, what), self.graph.integers([0])
                )
                ends = [self.graph.numbers(n, dtypes.int64) for n in (0, 1)]
                counted = self.graph.add("Range", ends[0], size, ends[1])
                return self.graph.cast(counted, first.dtype)
        if all(t.ndim == 0 for t in tensors):
            return self.graph.number([t.item() for t in tensors], first.dtype, what)
        raise OnnxExporterError(
            f"export: {what} is another one in each pass (shapes {', '.join(map(str, shapes))}): "
            "it is drawn at random, or computed outside of the operations on tensors (NumPy, "
            "tolist()), or its size follows from a dynamic axis along which it is neither the same "
            "everywhere nor arange"
        )


def _equal(a: Tensor, b: Tensor) -> bool:
    """The same type, shape and values, NaN included."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return bool(((a == b) | ((a != a) & (b != b))).all())


def _repeated(tensors: Sequence[Tensor], dims: Sequence[int]) -> Tensor | None:
    """What is repeated along some dimensions, the same in all tensors; None if it is not."""
    rows = []
    for t in tensors:
        row = t
        for d in dims:
            row = row.narrow(d, 0, 1)
        if not _equal(t, row.expand(t.shape)):
            return None
        rows.append(row)
    same = all(_equal(rows[0], row) for row in rows[1:])
    return clone(rows[0]) if same else None


def _check_same(passes: Sequence[Pass]) -> None:
    """Refuses a model that does something else in another pass."""
    first = passes[0]
    for other in passes[1:]:
        for a, b in zip(first.steps, other.steps, strict=False):
            if (a.name, a.inputs, a.place) != (b.name, b.inputs, b.place):
                raise OnnxExporterError(
                    f"export: {a.place} computed {a.name!r} in one pass and {b.name!r} (in "
                    f"{b.place}) in another, with other values or sizes: a branch or a loop in "
                    "Python depends on them, and ONNX would keep one way; use where(), or leave "
                    "the axis that the loop goes along fixed"
                )
        if len(first.steps) != len(other.steps) or first.outputs != other.outputs:
            raise OnnxExporterError(
                f"export: the model ran {len(first.steps)} operations in one pass and "
                f"{len(other.steps)} in another, with other values or sizes: a branch or a loop "
                "in Python depends on them; use where(), or leave the axis that the loop goes "
                "along fixed"
            )
