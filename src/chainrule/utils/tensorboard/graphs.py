"""A model's graph for TensorBoard: every operation of one call, in the module that applied it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from chainrule.autograd.modes import no_grad
from chainrule.autograd.nested import flatten
from chainrule.nn import Module
from chainrule.ops.core.apply import watching
from chainrule.random import fork_rng
from chainrule.tensor import Tensor
from chainrule.utils.tensorboard import messages as m

__all__ = ["graph_of"]


class _Drawing:
    """The nodes found so far, and who made which tensor."""

    def __init__(self, model: Module):
        self.nodes: list[bytes] = []
        self.makers: dict[int, str] = {}
        self.kept: list[Tensor] = []  # so that no other tensor gets the id of one that is gone
        self.used: Counter[str] = Counter()
        self.places = [type(model).__name__]
        self.parameters = {id(t): name for name, t in model.named_parameters()}
        self.parameters |= {id(t): name for name, t in model.named_buffers()}

    def add(self, kind: str, name: str, inputs: Sequence[str], t: Tensor) -> str:
        """A node; returns the name it got."""
        self.used[name] += 1
        if self.used[name] > 1:
            name = f"{name}_{self.used[name] - 1}"
        sizes = m.inside(1, m.inside(7, m.shape(t.shape)))
        content = m.text(1, name) + m.text(2, kind) + b"".join([m.text(3, i) for i in inputs])
        self.nodes.append(m.inside(1, content + m.mapping(5, {"_output_shapes": sizes})))
        self.makers[id(t)] = name
        self.kept.append(t)
        return name

    def source(self, t: Tensor) -> str:
        """The node that a tensor comes from; one of its own for parameters and constants."""
        if id(t) in self.makers:
            return self.makers[id(t)]
        if id(t) in self.parameters:
            path = f"{self.places[0]}/{self.parameters[id(t)].replace('.', '/')}"
            return self.add("Parameter", path, (), t)
        return self.add("Constant", f"{self.places[-1]}/constant", (), t)

    def note(self, op: Any, inputs: tuple[Tensor, ...], params: Any, result: Any) -> None:
        """One operation."""
        names = [self.source(t) for t in inputs]
        results = result if isinstance(result, tuple) else (result,)
        name = self.add(op.name, f"{self.places[-1]}/{op.name}", names, results[0])
        for other in results[1:]:
            self.makers[id(other)] = name
            self.kept.append(other)


def graph_of(model: Module, inputs: Any) -> bytes:
    """The field of an Event that holds the graph of ``model(*inputs)``."""
    drawing = _Drawing(model)
    given = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
    for i, t in enumerate(flatten(list(given))[0]):
        if isinstance(t, Tensor):
            drawing.add("Placeholder", f"input/{i}", (), t)
    handles = []
    for path, module in model.named_modules():
        place = "/".join([drawing.places[0], *(path.split(".") if path else [])])
        handles += [
            module.register_forward_pre_hook(lambda *_, p=place: drawing.places.append(p)),
            module.register_forward_hook(lambda *_: drawing.places.pop() and None),
        ]
    try:
        with no_grad(), fork_rng(), watching(drawing.note):
            out = model(*given)
    finally:
        for handle in handles:
            handle.remove()
    for i, t in enumerate(flatten(out)[0]):
        if isinstance(t, Tensor):
            drawing.add("Output", f"output/{i}", [drawing.source(t)], t)
    return m.inside(4, b"".join(drawing.nodes) + m.inside(4, m.integer(1, 22)))
