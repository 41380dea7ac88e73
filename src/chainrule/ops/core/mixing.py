"""Products under ``autocast``: on devices, of operands that are rounded to 16 bits.

The one place where that happens. An operation that is or contains a product is replaced by its
:class:`Mixed` form before it is computed or recorded, so its rules round, too, wherever the
backward pass is started. Its inputs, its results and its gradients stay float32.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from chainrule.backend.placed import Placed
from chainrule.backend.precision import rounding_to
from chainrule.graph import Edges, Mode, Node, Saved, mode
from chainrule.ops.core.apply import mix_with
from chainrule.ops.core.primitive import Op
from chainrule.tensor import Tensor
from chainrule.typing import ArrayDType, Gradients, Tangent, Tangents, Value

__all__ = ["PRODUCTS", "Around", "Mixed", "autocasting", "set_autocast"]

# Operations whose kernels multiply matrices or convolve.
PRODUCTS = {
    "attention",
    "biased_convolution",
    "conv_lstm_sequence",
    "conv_rnn_sequence",
    "convolution",
    "convolution_input",
    "convolution_weight",
    "deep_rnn_sequence",
    "gru_sequence",
    "linear",
    "linear_relu",
    "linear_sigmoid",
    "linear_tanh",
    "lstm_sequence",
    "matmul",
    "peephole_sequence",
    "rnn_sequence",
}


@contextlib.contextmanager
def autocasting(types: Mapping[str, ArrayDType]) -> Iterator[None]:
    """Rounds operands of this thread's products to these types, by kinds of devices."""
    flags, before = mode.flags, mode.autocast
    set_autocast(types)
    try:
        yield
    finally:
        mode.autocast = before
        mode.flags = (mode.flags & ~Mode.AUTOCAST) | (flags & Mode.AUTOCAST)


def set_autocast(types: Mapping[str, ArrayDType]) -> None:
    """The same from now on."""
    mode.autocast = types
    mode.flags = (mode.flags & ~Mode.AUTOCAST) | (Mode.AUTOCAST if types else 0)


class Around(Op):
    """An operation that another one computes, in its own way."""

    def __init__(self, op: Op):
        self.op = op
        self.name, self.batch, self.differentiable = op.name, op.batch, op.differentiable
        self.aligns, self.saves_out = op.aligns, op.saves_out
        self.is_view, self.may_copy = op.is_view, op.may_copy
        self.materializes_grads = op.materializes_grads

    def __getattr__(self, name: str) -> Any:
        """What only some kinds of operations have."""
        return getattr(self.op, name)

    def save(self, inputs: tuple[Tensor, ...], edges: Edges) -> Saved:
        return self.op.save(inputs, edges)


class Mixed(Around):
    """A product on a kind of device, whose operands are rounded to a type; so are those of its
    rules, and of theirs."""

    rounds = False

    def __init__(self, op: Op, kind: str, operands: ArrayDType):
        super().__init__(op)
        self.kind, self.operands = kind, operands

    def _inside(self, tensors: bool) -> contextlib.AbstractContextManager[None]:
        if not tensors:
            return rounding_to(self.operands)
        return autocasting({**mode.autocast, self.kind: self.operands})

    def raw(self, *arrays: Any, **params: Any) -> Any:
        with rounding_to(self.operands):
            return self.op.raw(*arrays, **params)

    def vjp(self, node: Node, g: Value, tensors: bool) -> Gradients:
        with self._inside(tensors):
            return self.op.vjp(node, g, tensors)

    def jvp(
        self, tangents: Tangents, out: Value, inputs: Sequence[Value], params: dict[str, Any]
    ) -> Tangent:
        with self._inside(True):
            return self.op.jvp(tangents, out, inputs, params)


_made: dict[tuple[Op, str, ArrayDType], Mixed] = {}


@mix_with
def mixed(op: Op, inputs: tuple[Tensor, ...]) -> Op:
    """The operation as autocast has it computed where its inputs are."""
    if op.name not in PRODUCTS or op.__class__ is Mixed:
        return op
    for t in inputs:
        if t.array.__class__ is Placed:
            kind = t.array.place.kind
            operands = mode.autocast.get(kind)
            if operands is None:
                return op
            made = _made.get((op, kind, operands))
            if made is None:
                made = _made[op, kind, operands] = Mixed(op, kind, operands)
            return made
    return op
