"""Forward and backward through a network, operation by operation, with all numbers."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chainrule.autograd.explain import Step, explain
from chainrule.autograd.modes import enable_grad
from chainrule.graph import Node
from chainrule import charts
from chainrule.inspect.core.arguments import Inputs, arguments, as_targets, check_samples
from chainrule.inspect.core.pages import steps_page
from chainrule.inspect.core.registry import instrument
from chainrule.inspect.core.results import Result
from chainrule.inspect.core.tracing import Trace, recorded
from chainrule.inspect.steps.frames import backward_frame, forward_frame
from chainrule.nn.module.base import Module
from chainrule.ops.core.apply import watching
from chainrule.ops.creation.conversion import clone
from chainrule.printing import text_table
from chainrule.tensor import Tensor, of_array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["BackPropagation", "BackwardStep", "ForwardStep", "back_propagation"]

MOST = 400  # operations that a page steps through


@dataclass(frozen=True, eq=False)
class ForwardStep:
    """One operation: what it was given, by name, and what came out."""

    number: int
    operation: str
    layer: str
    inputs: list[tuple[str, Tensor]]
    value: Tensor


@dataclass(frozen=True, eq=False)
class Handed:
    """What an operation hands to one of its inputs: the gradient, and what it multiplied by."""

    to: str
    gradient: Tensor
    kind: str  # of ``local``: "derivative", "factor", "jacobian" or ""
    local: Tensor | None


@dataclass(frozen=True, eq=False)
class BackwardStep:
    """One operation on the way back: the gradient that reached it, and what it hands on.

    ``of`` is the number of its forward step.
    """

    number: int
    of: int
    operation: str
    layer: str
    gradient: Tensor
    handed: list[Handed]


@dataclass(repr=False, eq=False)
class BackPropagation(Result):
    """A forward and a backward pass in steps, and the ``gradients`` of parameters and inputs."""

    model: str
    loss: float
    forward: list[ForwardStep]
    backward: list[BackwardStep]
    gradients: dict[str, Tensor]

    def __str__(self) -> str:
        ahead = [
            [
                f"#{s.number}",
                s.operation,
                s.layer,
                ", ".join(n for n, _ in s.inputs),
                _brief(s.value),
            ]
            for s in self.forward
        ]
        back = [
            [f"#{s.of}", s.operation, _brief(s.gradient), h.to, _brief(h.gradient)]
            for s in self.backward
            for h in s.handed
        ]
        return "\n".join(
            [
                f"forward through {self.model}: loss {self.loss:.6g}",
                text_table(["step", "operation", "layer", "of", "value"], ahead, rule=True),
                "backward",
                text_table(["step", "operation", "gradient", "hands to", "this"], back, rule=True),
            ]
        )

    def to_html(self) -> str:
        """A page that goes through all steps by the arrow keys."""
        path = [s.operation for s in self.forward]
        frames = [forward_frame(s, path, len(self.forward)) for s in self.forward]
        frames += [backward_frame(s, path, len(self.backward)) for s in self.backward]
        intro = f'<p class="soft">Loss {self.loss:.6g}. Arrow keys go forward and back.</p>'
        return steps_page(f"Back-propagation through {self.model}", frames, intro, 1.5)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the page, one file that every browser shows."""
        target = Path(path)
        if target.suffix not in (".html", ".htm"):
            raise ValueError(f"save: the steps are a page; name it *.html, got {target.name!r}")
        target.write_text(self.to_html(), "utf-8")
        return target

    def plot(self, ax: Axes | None = None, **style: Any) -> Axes:
        """Draws the size of values on the way and of gradients on the way back."""
        ax = charts.axes_for(ax)
        places = [s.number for s in self.forward]
        values = [_size(s.value) for s in self.forward]
        back = {s.of: _size(s.gradient) for s in self.backward}
        ax.plot(places, values, "o-", color=charts.COLORS[0], label="value", **style)
        ax.plot(list(back), list(back.values()), "s--", color=charts.COLORS[1], label="gradient")
        charts.log_if_wide(ax, [v for v in [*values, *back.values()] if v > 0])
        # At most some twenty names find room below each other.
        shown = self.forward[:: 1 + len(self.forward) // 20]
        ax.set_xticks([s.number for s in shown], [s.operation for s in shown], rotation=90)
        ax.tick_params(axis="x", labelsize=7)
        ax.set(title="Size of values and gradients", ylabel="root mean square")
        ax.legend()
        return ax


def _size(value: Tensor) -> float:
    return float(value.detach().double().square().mean().sqrt()) if value.numel() else 0.0


def _brief(value: Tensor) -> str:
    """A number, or the shape and the size of many."""
    if value.numel() == 1:
        return f"{float(value):.4g}"
    return f"{tuple(value.shape)} ~ {_size(value):.3g}"


class _Notes:
    """The operations of a pass, the node of each, and what tensors are called."""

    def __init__(self, names: dict[int, str]):
        self.names, self.steps = names, list[tuple[str, list[tuple[str, Tensor]], Tensor]]()
        self.nodes: dict[Node, int] = {}

    def note(self, op: Any, inputs: tuple[Tensor, ...], params: Any, result: Any) -> None:
        """Notes one operation."""
        first = result[0] if isinstance(result, tuple) else result
        given = [(self.name(t), clone(t.detach())) for t in inputs]
        number = len(self.steps) + 1
        self.steps.append((str(op.name), given, clone(first.detach())))
        for t in result if isinstance(result, tuple) else (result,):
            self.names.setdefault(id(t), f"#{number}")
        node = first._node
        if node is not None:
            self.nodes[node.edges[0] if isinstance(result, tuple) else node] = number

    def name(self, t: Tensor) -> str:
        """What a tensor is called: a parameter, an input, or the step that made it."""
        if t._node is not None:
            node = t._node
            made = self.nodes.get(node) or self.nodes.get(node.edges[0])
            if made is not None:
                return f"#{made}"
        return self.names.get(id(t), "constant")


@instrument("D21", needs=("model", "inputs", "targets", "loss"))
def back_propagation(
    model: Module,
    inputs: Inputs,
    targets: Any = None,
    loss: Callable[..., Tensor] | None = None,
) -> BackPropagation:
    """Forward and backward through a network, operation by operation, with all numbers.

    Args:
        model: any module.
        inputs: what it is called with; few samples are easiest to follow.
        targets: what the loss takes beside the output.
        loss: ``loss(output, targets)``, or ``loss(output)`` without targets; without a loss the
            output must be one number.

    >>> from chainrule import inspect, nn, tensor
    >>> net = nn.Sequential(nn.Linear(2, 1), nn.Tanh())
    >>> seen = inspect.back_propagation(net, tensor([[1.0, 2.0]]), loss=lambda y: y.sum())
    >>> [step.operation for step in seen.forward], [step.operation for step in seen.backward]
    (['linear', 'tanh', 'sum'], ['sum', 'tanh', 'linear'])
    """
    check_samples("back_propagation", inputs)
    args, kwargs = arguments("back_propagation", inputs)
    leaves, names = {}, {}
    for label, value in [*_numbered(args), *kwargs.items()]:
        leaves[label] = _leaf(value)
        names[id(leaves[label])] = label
    given = [leaves[label] for label, _ in _numbered(args)]
    named = {key: leaves[key] for key in kwargs}
    names |= {id(p): name for name, p in model.named_parameters()}
    names |= {id(b): name for name, b in model.named_buffers()}
    notes = _Notes(names)
    with enable_grad(), recorded(model) as seen, watching(notes.note):
        output = model(*given, **named)
        value = _loss(output, as_targets(targets), loss)
    if len(notes.steps) > MOST:
        raise ValueError(
            f"back_propagation: {len(notes.steps)} operations are more than anybody steps through "
            f"({MOST}); look at one of its modules, or at inspect.gradient_flow"
        )
    if not value.requires_grad:
        raise ValueError("back_propagation: nothing in the loss requires a gradient")
    steps = list(explain(value))
    paths = _paths(seen, len(notes.steps))
    forward = [
        ForwardStep(i + 1, name, paths[i], parts, out)
        for i, (name, parts, out) in enumerate(notes.steps)
    ]
    backward = [_backward(step, notes, paths) for step in steps]
    found = _leaf_gradients(steps, names)
    return BackPropagation(type(model).__name__, float(value.detach()), forward, backward, found)


def _numbered(args: tuple[Any, ...]) -> list[tuple[str, Any]]:
    return [("input" if len(args) == 1 else f"input {i}", a) for i, a in enumerate(args)]


def _leaf(value: Any) -> Any:
    """A float input as a leaf of its own, so that its gradient is seen, too."""
    if isinstance(value, Tensor) and value.dtype.is_floating_point:
        return clone(value.detach()).requires_grad_()
    return value


def _loss(output: Any, targets: Any, loss: Callable[..., Tensor] | None) -> Tensor:
    value = output if loss is None else loss(output) if targets is None else loss(output, targets)
    if not isinstance(value, Tensor) or value.numel() != 1:
        shape = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
        raise ValueError(
            f"back_propagation: a backward pass starts from one number, got {shape}; give loss="
        )
    return value


def _paths(seen: Trace, count: int) -> list[str]:
    """The layer of each operation; the last ones are the loss's."""
    own = [op.call.path or "model" for op in seen.operations]
    return [*own, *["loss"] * (count - len(own))]


def _backward(step: Step, notes: _Notes, paths: Sequence[str]) -> BackwardStep:
    of = notes.nodes.get(step.node, 0)
    g = step.gradient[0] if isinstance(step.gradient, tuple) else step.gradient
    handed = []
    for part in step.inputs:
        made = notes.nodes.get(part.edge) if isinstance(part.edge, Node) else None
        if made is None and isinstance(part.edge, Node):  # one of several outputs
            made = notes.nodes.get(part.edge.edges[0])
        name = f"#{made}" if made is not None else notes.names.get(id(part.edge), "a tensor")
        local = None if part.local is None else of_array(part.local)
        handed.append(Handed(name, of_array(part.gradient), part.kind, local))
    layer = paths[of - 1] if of else ""
    return BackwardStep(step.number, of, step.name, layer, of_array(g), handed)


def _leaf_gradients(steps: Sequence[Step], names: dict[int, str]) -> dict[str, Tensor]:
    """What reached parameters and inputs in all."""
    total: dict[str, Tensor] = {}
    for step in steps:
        for part in step.inputs:
            if isinstance(part.edge, Tensor) and id(part.edge) in names:
                name, g = names[id(part.edge)], of_array(part.gradient)
                total[name] = total[name] + g if name in total else g
    return total
