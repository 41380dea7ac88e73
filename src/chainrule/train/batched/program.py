"""A computation recorded once, and repeated with other numbers, with its gradient.

Inside :func:`chainrule.func.vmap` a function cannot look at the values of its tensors, so the
operations it comes to are the same for all values. Repeated alone, without the Python between them
and without a new graph, they cost a small network a fraction of the time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from chainrule.backend import K
from chainrule.graph import Box, Node
from chainrule.ops.core.apply import watching
from chainrule.tensor import Tensor, of_array

__all__ = ["Program"]


class _Step:
    """One operation: a kernel from cells to cells, and the node by which it is differentiated."""

    __slots__ = ("extra", "node", "op", "params", "several", "sources", "targets")

    def __init__(self, op: Any, sources: list[int], params: Any, targets: list[int], several: bool):
        self.op, self.sources, self.params = op, sources, params
        self.targets, self.several = targets, several
        self.node: Node | None = None
        self.extra: Tensor | None = None  # what its kernel leaves for the gradient


class Program:
    """The operations between some tensors and others that are computed from them.

    A tensor that is neither an input nor computed from one is a constant.

    >>> import chainrule
    >>> x = chainrule.ones(2, requires_grad=True)
    >>> program = Program([x])
    >>> with program.recording():
    ...     y = (x * x).sum()
    >>> program.finish([y])
    >>> program.forward([chainrule.full((2,), 5.0)])
    [tensor(50.)]
    >>> program.backward([chainrule.tensor(1.0)])
    [tensor([10., 10.])]
    """

    def __init__(self, inputs: Sequence[Tensor]):
        self.draws = 0  # how often random numbers are drawn
        self.steps: list[_Step] = []
        self.cells: list[Tensor] = []  # hold all values, those of the last time
        self._slots: dict[int, int] = {}
        self._arrays: dict[int, int] = {}
        self._alive: list[Any] = []  # what these numbers belong to
        for t in inputs:
            self._new(t)
        self.inputs = len(inputs)
        self.outputs: list[int] = []
        self._differentiated: list[_Step] = []  # in the order of the backward pass
        self.repeatable = True

    # --- recording --------------------------------------------------------------------------------

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Notes all operations on ordinary tensors, also those that transformations come to."""
        with watching(self._note):
            yield

    def noted_draw(self, draw: Callable[[], Tensor]) -> Tensor:
        """The result of a function that draws random numbers, which is called again each time."""
        result = draw()
        self.draws += 1
        self.steps.append(_Step(None, [], draw, [self._new(result)], False))
        return result

    def finish(self, outputs: Sequence[Tensor]) -> None:
        """Says which tensors are wanted, and forgets those that were recorded."""
        self.outputs = [self._slot(t) for t in outputs]
        for step in self.steps:
            step.node = self._node_of(step)
        self._differentiated = [step for step in reversed(self.steps) if step.node is not None]
        self._slots, self._arrays, self._alive = {}, {}, []

    def _note(self, op: Any, inputs: tuple[Tensor, ...], params: dict[str, Any], out: Any) -> None:
        several = out.__class__ is tuple
        results = out if several else (out,)
        if any([isinstance(t.array, Box) for t in (*inputs, *results)]):
            return  # carried out on ordinary tensors further out, where it is noted
        self.repeatable = self.repeatable and not op.takes_tensors
        sources = [self._slot(t) for t in inputs]
        self.steps.append(_Step(op, sources, params, [self._new(t) for t in results], several))

    def _new(self, t: Tensor) -> int:
        slot = len(self.cells)
        self.cells.append(of_array(t.array))
        self._slots[id(t)] = slot
        self._arrays.setdefault(id(t.array), slot)
        self._alive += [t, t.array]
        return slot

    def _slot(self, t: Tensor) -> int:
        if id(t) in self._slots:
            return self._slots[id(t)]
        # A known array in another tensor was detached from its history.
        known = self._arrays.get(id(t.array))
        return self._new(t) if known is None else known

    def _node_of(self, step: _Step) -> Node | None:
        """The node of a step with slots for edges and cells for what it saved."""
        tensors = [self._alive[2 * slot] for slot in step.targets]
        nodes = [t._node for t in tensors if t._node is not None]
        if step.op is None or not nodes:
            return None
        node = nodes[0].edges[0] if step.several else nodes[0]
        edges = tuple(
            [None if e is None else s for e, s in zip(node.edges, step.sources, strict=True)]
        )
        saved = node.saved
        if saved is not None:
            saved = tuple([None if t is None else self.cells[self._slot(t)] for t in saved])
        if hasattr(node.op, "raw_and_saved"):
            step.extra = of_array(self.cells[step.targets[0]].array)
            saved = (*saved[: len(step.sources)], step.extra)
        return Node(node.op, edges, saved, node.out, node.shapes, node.params)

    # --- repeating --------------------------------------------------------------------------------

    def forward(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """The outputs for other inputs, without history."""
        cells, array = self.cells, K.Array
        for cell, t in zip(cells, inputs, strict=False):
            cell.array = t.array
        for step in self.steps:
            op = step.op
            if op is None:
                cells[step.targets[0]].array = step.params().array
                continue
            arrays = [cells[i].array for i in step.sources]
            if step.extra is not None:
                out, step.extra.array = op.raw_and_saved(*arrays, **step.params)
            else:
                out = op.raw(*arrays, **step.params)
            if step.several:
                out = tuple([K.asarray(a) for a in out])
                for slot, a in zip(step.targets, out, strict=True):
                    cells[slot].array = a
            else:
                out = out if out.__class__ is array else K.asarray(out)
                cells[step.targets[0]].array = out
            if step.node is not None and step.node.out is not None:
                step.node.out = out
        return [of_array(cells[i].array) for i in self.outputs]

    def backward(self, gradients: Sequence[Tensor | None]) -> list[Tensor | None]:
        """The gradients of the inputs from those of the outputs, after a call of forward."""
        g: list[Any] = [None] * len(self.cells)
        for slot, given in zip(self.outputs, gradients, strict=True):
            if given is not None:
                g[slot] = given.array if g[slot] is None else g[slot] + given.array
        for step in self._differentiated:
            node: Any = step.node
            own = self._parts(step, g) if step.several else g[step.targets[0]]
            if own is None:
                continue
            for slot, part in zip(node.edges, node.op.vjp(node, own, False), strict=True):
                if slot is not None and part is not None:
                    before = g[slot]
                    g[slot] = part if before is None else before + part
        return [None if a is None else of_array(a) for a in g[: self.inputs]]

    def _parts(self, step: _Step, g: list[Any]) -> Any:
        """The gradients of several outputs, with zeros for those that were not used."""
        parts = [g[slot] for slot in step.targets]
        if all([part is None for part in parts]):
            return None
        if not step.op.materializes_grads:
            return tuple(parts)
        arrays = [self.cells[slot].array for slot in step.targets]
        return tuple(
            [
                K.zeros(a.shape, a.dtype) if p is None else p
                for p, a in zip(parts, arrays, strict=True)
            ]
        )
