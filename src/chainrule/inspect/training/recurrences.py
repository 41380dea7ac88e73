"""Inside recurrent layers: the states and gates of all steps, and one step as a function.

A sequence is one primitive, so hooks do not fire inside it. What it was given and what it returned
is seen by those who watch operations; the rest follows from the equations of the layer. So the
states are those of the very pass that is looked at, with its dropout, its mask and its direction.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from chainrule.backend import dtypes
from chainrule.inspect.core.tracing import Trace
from chainrule.nn.module.base import Module
from chainrule.nn.recurrent.base import RNNBase
from chainrule.ops.core.apply import apply
from chainrule.ops.core.promotion import cast
from chainrule.ops.elementwise.functions import sigmoid, tanh
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.shape.joining import chunk
from chainrule.ops.shape.rearrange import flip
from chainrule.ops.shape.stacking import cat
from chainrule.ops.shape.views import reshape, unsqueeze
from chainrule.tensor import Tensor

__all__ = ["SEQUENCES", "Recurrence", "merged", "recurrence_of", "recurrences", "suffix_of"]

# The primitives of whole sequences, with the number of their states.
SEQUENCES = {
    "rnn_sequence": 1,
    "gru_sequence": 1,
    "lstm_sequence": 2,
    "peephole_sequence": 2,
}


@dataclass
class Recurrence:
    """One layer in one direction over one sequence, in the order in which its steps were made.

    Shape: ``inputs`` (L, N, gates * D), what the inputs add to the sums of the gates; ``states``
    and ``before`` the states after and before each step, h (L, N, P) and, where there is one, the
    cell c (L, N, D); ``mask`` (L, N) or None.
    """

    name: str
    op: Any = field(repr=False)
    inputs: Tensor
    states: list[Tensor]
    before: list[Tensor]
    weights: tuple[Tensor, ...] = field(repr=False)
    mask: Tensor | None
    params: dict[str, Any]

    @property
    def kind(self) -> str:
        """RNN, GRU, LSTM or PEEPHOLE."""
        return str(self.op.name).partition("_")[0].upper()

    @property
    def steps(self) -> int:
        """The number of steps, L."""
        return self.inputs.shape[0]

    def step(
        self, inputs: Tensor, states: list[Tensor], mask: Tensor | None = None
    ) -> list[Tensor]:
        """The states after one step, (B, ...), from those before it, by the same primitive."""
        given = [unsqueeze(inputs, 0), *states, *self.weights]
        if mask is not None:
            given.append(unsqueeze(mask, 0))
        out = apply(self.op, tuple(given), {**self.params, "reverse": False})
        parts = out if isinstance(out, tuple) else (out,)
        return [part[0] for part in parts[: len(states)]]

    def from_step(self, s: int, states: list[Tensor]) -> list[Tensor]:
        """The states of all steps after ``s``, when those at ``s`` are the ones given."""
        given = [self.inputs[s + 1 :], *states, *self.weights]
        if self.mask is not None:
            given.append(self.mask[s + 1 :])
        out = apply(self.op, tuple(given), {**self.params, "reverse": False})
        return [*(out if isinstance(out, tuple) else (out,))][: len(states)]

    def in_double(self, samples: int, steps: int | None) -> Recurrence:
        """The first samples and the last steps, computed anew in float64."""
        cut = slice(0 if steps is None else max(0, self.steps - steps), None)
        inputs = cast(self.inputs[cut, :samples], dtypes.float64)
        first = [cast(b[cut][0, :samples], dtypes.float64) for b in self.before]
        mask = None if self.mask is None else self.mask[cut, :samples]
        weights = tuple([cast(w, dtypes.float64) for w in self.weights])
        one = Recurrence(self.name, self.op, inputs, [], [], weights, mask, self.params)
        one.states = one.from_step(-1, first)
        one.before = [
            cat([unsqueeze(h0, 0), h[:-1]], 0) for h0, h in zip(first, one.states, strict=True)
        ]
        return one

    def sums(self) -> Tensor:
        """The pre-activations of all gates, (L, N, gates * D)."""
        weight = self.weights[0]
        recurrent = matmul(self.before[0], weight.mT)
        if self.kind == "GRU" and len(self.weights) > 1:
            recurrent = recurrent + self.weights[1]
        if self.kind == "GRU":  # the reset gate stands before the recurrent part of n
            (xr, xz, xn), (pr, pz, pn) = chunk(self.inputs, 3, -1), chunk(recurrent, 3, -1)
            r = sigmoid(xr + pr)
            return cat([xr + pr, xz + pz, xn + r * pn], -1)
        return self.inputs + recurrent

    def gates(self) -> dict[str, Tensor]:
        """The gates of all steps and the candidate for the state, each (L, N, D); a simple
        recurrent layer has none."""
        if self.kind == "GRU":
            r, z, n = chunk(self.sums(), 3, -1)
            return {"reset gate": sigmoid(r), "update gate": sigmoid(z), "candidate": tanh(n)}
        if self.kind == "LSTM":
            i, f, g, o = chunk(self.sums(), 4, -1)
            return {
                "input gate": sigmoid(i),
                "forget gate": sigmoid(f),
                "candidate": tanh(g),
                "output gate": sigmoid(o),
            }
        return {}


def recurrence_of(
    name: str, op: Any, inputs: tuple[Tensor, ...], params: dict[str, Any], result: Any
) -> Recurrence:
    """What is known from one operation."""
    count = SEQUENCES[op.name]
    x, first, rest = inputs[0], inputs[1 : 1 + count], inputs[1 + count :]
    mask = rest[-1] if rest and rest[-1].dtype == dtypes.bool_ else None
    weights = rest[:-1] if mask is not None else rest
    outputs = list(result if isinstance(result, tuple) else (result,))[:count]
    if params.get("reverse"):
        x, mask = flip(x, 0), None if mask is None else flip(mask, 0)
        outputs = [flip(h, 0) for h in outputs]
    x, outputs = x.detach(), [h.detach() for h in outputs]
    before = [
        cat([unsqueeze(h0.detach(), 0), h[:-1]], 0) for h0, h in zip(first, outputs, strict=True)
    ]
    return Recurrence(
        name, op, x, outputs, before, tuple([w.detach() for w in weights]), mask, dict(params)
    )


def suffix_of(module: Module, number: int) -> str:
    """Which layer and direction of a module its n-th sequence is."""
    if not isinstance(module, RNNBase):
        return f"#{number + 1}" if number else ""
    directions = 2 if module.bidirectional else 1
    layers = module.num_layers
    call, inside = divmod(number, layers * directions)
    layer, reverse = divmod(inside, directions)
    text = f".l{layer}" if layers * directions > 1 else ""
    text += "_reverse" if reverse else ""
    return text + (f"#{call + 1}" if call else "")


def recurrences(seen: Trace) -> list[Recurrence]:
    """The recurrent layers of a forward pass, in order; a cell that is called step by step has a
    sequence of one step for each call, which is not listed."""
    found = []
    counts: dict[int, int] = {}
    for operation in seen.operations:
        if operation.name not in SEQUENCES or operation.inputs[0].shape[0] < 2:
            continue
        call = operation.call
        number = counts.get(id(call.module), 0)
        counts[id(call.module)] = number + 1
        name = (call.path or type(call.module).__name__) + suffix_of(call.module, number)
        found.append(
            recurrence_of(name, operation.op, operation.inputs, operation.params, operation.result)
        )
    return found


def merged(x: Tensor) -> Tensor:
    """Steps and samples as one dimension."""
    return reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:]))
