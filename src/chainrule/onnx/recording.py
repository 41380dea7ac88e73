"""One pass of a model written down: its operations, each with where its inputs come from.

A tensor is known by its node of the graph, since one that is changed in place has another node
afterwards; by itself where it has none (integers, truth values); and by its memory where it was
detached. What is found in no way is a constant of this pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from chainrule.autograd.modes import enable_grad
from chainrule.autograd.nested import flatten
from chainrule.backend import dtypes
from chainrule.inspect.core.tracing import Trace, recorded
from chainrule.inspect.core.untouched import untouched
from chainrule.nn.module.base import Module
from chainrule.onnx.errors import OnnxExporterError
from chainrule.ops.core.apply import watching
from chainrule.ops.creation.conversion import clone
from chainrule.random import manual_seed
from chainrule.tensor import Tensor

__all__ = ["INPUT", "LEAF", "STEP", "Pass", "Ref", "Step", "place_of", "run"]

INPUT, STEP, LEAF = "input", "step", "leaf"


class Ref(NamedTuple):
    """Where a tensor comes from: the n-th input, output ``k`` of the n-th step, or n-th leaf."""

    kind: str
    number: int
    k: int = 0


class Shaped(NamedTuple):
    """What is kept of a tensor that follows from the inputs."""

    shape: tuple[int, ...]
    dtype: dtypes.dtype

    @classmethod
    def of(cls, t: Tensor) -> Shaped:
        """Shape and type of a tensor."""
        return cls(tuple(t.shape), t.dtype)


@dataclass(eq=False)
class Step:
    """An operation of a pass. ``reached`` says whether the inputs of the model have a part in it;
    if not, ``results`` are copies of what came out."""

    op: Any
    params: dict[str, Any]
    inputs: tuple[Ref, ...]
    shapes: tuple[tuple[int, ...], ...]
    results: tuple[Tensor | Shaped, ...]
    reached: bool
    path: str  # of the layer
    place: str  # the same, for errors

    @property
    def name(self) -> str:
        """The operation's name."""
        return str(self.op.name)


@dataclass(eq=False)
class Pass:
    """What happened: the steps, the constants they read, and where the outputs come from."""

    steps: list[Step] = field(default_factory=list)
    leaves: list[Tensor] = field(default_factory=list)
    leaf_places: list[str] = field(default_factory=list)  # the layer that reads each first
    outputs: list[Ref] = field(default_factory=list)
    output_kinds: list[Shaped] = field(default_factory=list)

    def tensor(self, ref: Ref) -> Tensor | Shaped:
        """The tensor of a step or of a leaf."""
        return (
            self.leaves[ref.number] if ref.kind == LEAF else self.steps[ref.number].results[ref.k]
        )


def place_of(path: str, kind: str) -> str:
    """A layer for an error."""
    return f"layer {path!r} ({kind})" if path else f"the model ({kind})"


class _Recorder:
    """Writes a pass; ``trace`` says in which layer the operations run."""

    def __init__(self, trace: Trace, lasting: set[int]):
        self.trace, self.lasting = trace, lasting
        self.found = Pass()
        self.refs: dict[Any, Ref] = {}
        self.kept: list[Any] = []  # so that no other object gets the id of one that is gone
        self.versions: dict[int, int] = {}

    def know(self, t: Tensor, ref: Ref) -> None:
        """Remembers what a tensor is."""
        self.kept += [t, t.array, t._node]
        for key in ([t._node] if t._node is not None else []) + [id(t), ("memory", id(t.array))]:
            self.refs[key] = ref
        self.versions[id(t.array)] = t._version

    def ref(self, t: Tensor) -> Ref:
        """What a tensor is; a constant if nobody made it."""
        if t._view is not None:
            t._refresh()
        if t._node is not None and t._node in self.refs:
            return self.refs[t._node]
        if t._node is not None:
            raise OnnxExporterError(
                f"export: {self.place()} uses a tensor of which a part was changed in place "
                "(through a view); compute the new value with torch.where, cat or index_put, or "
                "assign to the whole tensor"
            )
        same = self.versions.get(id(t.array)) == t._version
        for key in (id(t), ("memory", id(t.array))):
            if key in self.refs and same:
                return self.refs[key]
        known = self.refs.get(id(t))
        if known is not None and known.kind == STEP and self.found.steps[known.number].reached:
            raise OnnxExporterError(
                f"export: {self.place()} changes a tensor in place that has no history (integers, "
                "truth values, or under no_grad); compute a new one instead"
            )
        leaf = Ref(LEAF, len(self.found.leaves))
        self.know(t, leaf)
        # A constant may be changed in place later; parameters are not, by a model that evaluates.
        self.found.leaf_places.append(self.place())
        self.found.leaves.append(t if id(t) in self.lasting else clone(t.detach()))
        return leaf

    def place(self) -> str:
        """The layer that is being computed."""
        operations = self.trace.operations
        call = operations[-1].call if operations else self.trace.root
        return place_of(call.path, call.kind)

    def note(self, op: Any, inputs: tuple[Tensor, ...], params: dict[str, Any], out: Any) -> None:
        """Writes an operation down."""
        refs = tuple([self.ref(t) for t in inputs])
        steps = self.found.steps
        reached = any(r.kind == INPUT or (r.kind == STEP and steps[r.number].reached) for r in refs)
        results = out if isinstance(out, tuple) else (out,)
        for k, t in enumerate(results):
            self.know(t, Ref(STEP, len(steps), k))
        kept = tuple([Shaped.of(t) if reached else clone(t.detach()) for t in results])
        shapes = tuple([tuple(t.shape) for t in inputs])
        path = self.trace.operations[-1].call.path
        steps.append(Step(op, dict(params), refs, shapes, kept, reached, path, self.place()))


def run(
    model: Module,
    call: Callable[[Sequence[Tensor]], Any],
    inputs: Sequence[Tensor],
    seed: int,
) -> Pass:
    """One pass: ``call`` is given copies of the inputs; the model is left as it was.

    It is called twice, and the second time counts: what a function keeps for the next call, like
    the weights of an interpolation, is a constant then.
    """
    lasting = {id(t) for t in (*model.parameters(), *model.buffers())}
    with untouched(model), enable_grad():
        model.eval()
        call([clone(t.detach()) for t in inputs])
        manual_seed(seed)  # another one in each pass: what is drawn is no constant
        with recorded(model) as trace:
            recorder = _Recorder(trace, lasting)
            # With a node of their own, so that a change of an input in place is seen, too.
            given = [
                clone(t.detach().requires_grad_() if t.is_floating_point() else t.detach())
                for t in inputs
            ]
            for i, t in enumerate(given):
                recorder.know(t, Ref(INPUT, i))
            with watching(recorder.note):
                output = call(given)
        found = recorder.found
        outputs = [t for t in flatten(output)[0] if isinstance(t, Tensor)]
        found.output_kinds = [Shaped.of(t) for t in outputs]
        found.outputs = [recorder.ref(t) for t in outputs]
    return found
