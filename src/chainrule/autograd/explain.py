"""A backward pass told step by step: what each node computed, received and handed on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chainrule.autograd.engine import watch_backward
from chainrule.autograd.node_values import NodeValues
from chainrule.autograd.walk import dense_gradient
from chainrule.backend import K
from chainrule.ops.core.primitive import Bilinear, Elementwise
from chainrule.ops.layers.fused import ActivatedLinear
from chainrule.graph import Node
from chainrule.printing import text_table
from chainrule.tensor import Tensor

__all__ = ["Explanation", "Input", "Step", "explain"]

_JACOBIAN_LIMIT = 256  # the largest local Jacobian, in elements, that is worked out
_SHOWN = 18  # the largest array, in elements, that a table shows as a whole


@dataclass(frozen=True)
class Input:
    """One input of a step: where it came from, the local derivative, and the gradient it gets."""

    source: str
    shape: tuple[int, ...]
    local: Any  # elementwise: f'(x); else the Jacobian, if it is small; a product: the other factor
    kind: str  # what ``local`` is: "derivative", "factor", "jacobian" or ""
    gradient: Any
    edge: Any = field(default=None, repr=False)  # the node or leaf that the gradient goes to


@dataclass(frozen=True)
class Step:
    """One node of the graph, as the backward pass met it."""

    number: int
    name: str
    shape: tuple[int, ...]
    value: Any  # None where the graph does not keep what is needed to work it out
    gradient: Any
    inputs: tuple[Input, ...]
    line: str | None
    node: Any = field(default=None, repr=False)  # two steps have the same one where it was fused


class Explanation:
    """The steps of a backward pass in order; prints as a table."""

    def __init__(self, steps: Sequence[Step]):
        self.steps = tuple(steps)

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __getitem__(self, i: int) -> Step:
        return self.steps[i]

    def __str__(self) -> str:
        header = (
            "step",
            "operation",
            "value",
            "gradient",
            "input",
            "local derivative",
            "handed on",
        )
        rows = []
        for step in self.steps:
            for i, x in enumerate(step.inputs):
                head = (
                    (
                        str(step.number),
                        f"{step.name} {_shape(step.shape)}",
                        _short(step.value),
                        _short(step.gradient),
                    )
                    if i == 0
                    else ("", "", "", "")
                )
                local = f"{x.kind} {_short(x.local)}".strip()
                rows.append((*head, f"{x.source} {_shape(x.shape)}", local, _short(x.gradient)))
        return text_table(header, rows, rule=True)

    __repr__ = __str__


def explain(
    loss: Tensor, gradient: Tensor | None = None, names: Mapping[str, Tensor] | None = None
) -> Explanation:
    """The account of ``loss.backward()``: every node in order, with its value, the gradient that
    reached it, its local derivative and the gradients it handed to its inputs.

    The graph and all ``.grad`` stay as they are. ``names`` gives names to leaf tensors. A linear
    layer and its activation, which may be one node, are two steps.

    >>> import chainrule
    >>> w = chainrule.tensor(3.0, requires_grad=True)
    >>> print(chainrule.autograd.explain(w.square() * 2, names={"w": w}))
    step  operation  value  gradient  input      local derivative  handed on
    ----  ---------  -----  --------  ---------  ----------------  ---------
    1     mul ()     18     1         square ()  derivative 2      2
    2     square ()  9      2         w ()       derivative 6      12
    """
    labels = {id(t): name for name, t in (names or {}).items()}
    values = NodeValues()
    steps: list[Step] = []

    def note(name: str, node: Node, value: Any, g: Any, inputs: Sequence[Input]) -> None:
        shape = tuple((g[0] if isinstance(g, tuple) else g).shape)
        number = len(steps) + 1
        steps.append(Step(number, name, shape, value, g, tuple(inputs), node.trace, node))

    def observe(node: Node, g: Any, parts: Sequence[Any]) -> None:
        op, value = node.op, values.of(node)
        if isinstance(op, ActivatedLinear):
            slope, inner = (
                op.differential(K.ones(g.shape, g.dtype), value),
                op.differential(g, value),
            )
            link = Input(op.map.name, tuple(g.shape), slope, "derivative", inner, node)
            note(op.activation.name, node, value, g, [link])
            given = [values.input(node, i) for i in range(len(node.edges))]
            known = all(x is not None for x in given)
            value, g = op.map.raw(*given) if known else None, inner
            op = op.map
        inputs = [
            _input(op, node, i, edge, part, g, values, labels)
            for i, (edge, part) in enumerate(zip(node.edges, parts, strict=True))
            if edge is not None and part is not None
        ]
        note(op.name, node, value, g, inputs)

    watch_backward(loss, gradient, observe)
    return Explanation(steps)


def _input(
    op: Any,
    node: Node,
    i: int,
    edge: Any,
    part: Any,
    g: Any,
    values: NodeValues,
    labels: dict[int, str],
) -> Input:
    source = _name(edge) if isinstance(edge, Node) else labels.get(id(edge), "leaf")
    kind, local = _local(op, node, i, g, values)
    return Input(source, tuple(part.shape), local, kind, part, edge)


def _name(node: Node) -> str:
    """The operation of a node; of a fused one the outer."""
    op = node.op
    return op.activation.name if isinstance(op, ActivatedLinear) else str(op.name)


def _local(op: Any, node: Node, i: int, g: Any, values: NodeValues) -> tuple[str, Any]:
    """What the chain rule multiplies by at this node, for input i."""
    if isinstance(g, tuple):
        return "", None
    if isinstance(op, Elementwise):
        unbroadcast, node.shapes = node.shapes, None
        try:
            return "derivative", op.vjp(node, K.ones(g.shape, g.dtype), False)[i]
        finally:
            node.shapes = unbroadcast
    if isinstance(op, Bilinear):
        return "factor", values.input(node, 1 - i)
    size_in = 1
    for n in op.vjp(node, K.zeros(g.shape, g.dtype), False)[i].shape:
        size_in *= n
    if g.size * size_in > _JACOBIAN_LIMIT:
        # Of W x the other factor says as much as the Jacobian, in which it stands many times.
        return (
            ("factor", values.input(node, 1 - i)) if op.name == "linear" and i < 2 else ("", None)
        )
    rows = K.eye(g.size, dtype=g.dtype).reshape((g.size, *g.shape))
    parts = [dense_gradient(op.vjp(node, rows[k], False)[i]) for k in range(g.size)]
    jacobian = [part.reshape(-1) for part in parts]
    return "jacobian", K.asarray(jacobian)


def _shape(shape: Sequence[int]) -> str:
    return f"({', '.join(str(n) for n in shape)})"


def _short(value: Any, limit: int = _SHOWN) -> str:
    """Numbers to four digits; of large arrays the first ones, and how many there are."""
    if value is None:
        return "-"
    if isinstance(value, tuple):
        return "(" + ", ".join(_short(v, 3) for v in value) + ")"
    if value.ndim == 0:
        return f"{value.item():.4g}"
    if value.size > limit:
        first = ", ".join(_short(v) for v in value.reshape(-1)[:3])
        return f"[{first}, ... {value.size} numbers]"
    return "[" + ", ".join(_short(v, limit) for v in value) + "]"
