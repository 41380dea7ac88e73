"""Drawings of networks: as modules and operations, or as units and weights."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from chainrule.inspect.core.arguments import Inputs, name_of
from chainrule.inspect.core.registry import instrument
from chainrule.inspect.core.tracing import Call, Trace, trace
from chainrule.inspect.structure.blocks import Block, Graph
from chainrule.inspect.structure.modules import Reader
from chainrule.inspect.structure.parts import graph_of
from chainrule.inspect.structure.rendering import rendered
from chainrule.inspect.structure.scene import Drawing
from chainrule.inspect.structure.unitgraph import read_units
from chainrule.inspect.structure.units import draw_units
from chainrule.inspect.structure.canvas import Sketch
from chainrule.nn.module.base import Module
from chainrule.ops.creation.patterns import zeros

__all__ = ["draw"]

LEVELS = ("modules", "operations", "units")
MOST = 60  # boxes that are seen at once, unless a depth is asked for


@instrument("V07", "V09", "V44", needs=("model", "inputs"))
def draw(
    model: Module,
    inputs: Inputs = None,
    *,
    level: str = "modules",
    depth: int | None = None,
    weights: bool = False,
    most: int | None = None,
) -> Drawing:
    """Draws a network as it runs: modules, operations between them, and the tensors that flow.

    The picture is SVG text; nothing has to be installed for it. In a browser a click on a module
    opens or closes it. A call that fails is drawn up to where it failed.

    Args:
        model: any module.
        inputs: what it is called with: a tensor, a tuple of them, or a dict of arguments.
        level: "modules" (the modules, and operations that belong to none of the library's),
            "operations" (all operations inside them, too), "units" (circles and lines for units
            and weights, of a network of linear layers; inputs are not needed).
        depth: how deep modules are open at first: 0 shows the model as one box, 1 what it is made
            of. By default as deep as 60 boxes allow.
        weights: for units: whether lines are as wide as their weights are large, blue where they
            are positive and orange where they are negative.
        most: for units: how many of a layer are drawn, 8 by default.

    >>> from chainrule import inspect, nn, ones
    >>> net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    >>> drawing = inspect.draw(net, ones(1, 2))
    >>> [box.name for box in drawing.boxes]
    ['input', '0', '1', '2', 'output']
    >>> drawing.svg[:4]
    '<svg'
    """
    if level not in LEVELS:
        raise ValueError(f"draw: level must be one of {', '.join(LEVELS)}, got {level!r}")
    if depth is not None and depth < 0:
        raise ValueError(f"draw: depth must not be negative, got {depth}")
    if level == "units":
        return _draw_units(model, inputs, depth, weights, most)
    if weights or most is not None:
        raise ValueError(f"draw: weights and most are for level='units', got level={level!r}")
    seen = trace("draw", model, inputs, partial=True)
    reader = Reader(seen, level == "operations")
    parts = [*reader.inputs(), reader.call(seen.root), *reader.outputs()]
    graph = graph_of(parts, {}, [], reader.notes)
    calls = {f"c{call.number}": call for call in seen.calls}
    _open(graph, calls, seen, depth)
    if graph_root(graph, seen).open:
        graph = _without_root(graph, seen)
    made = rendered(graph, name_of(model), _subtitle(model, seen, graph))
    where = made.boxes, made.labels, made.edges
    return Drawing(name_of(model), *where, *made.area, made.svg, _tikz=made.tikz)


def _draw_units(
    model: Module, inputs: Inputs, depth: int | None, weights: bool, most: int | None
) -> Sketch:
    if depth is not None:
        raise ValueError("draw: depth is for modules and operations, not for level='units'")
    if most is not None and most < 3:
        raise ValueError(f"draw: most must be at least 3, got {most}")
    seen = trace("draw", model, inputs) if inputs is not None else _trace_of_zeros(model)
    return draw_units(read_units(seen), name_of(model), weights, most)


def _trace_of_zeros(model: Module) -> Trace:
    made = _some_input(model)
    try:
        return trace("draw", model, made)
    except Exception as error:
        raise TypeError(
            f"draw: {name_of(model)} cannot be called with {tuple(made.shape)}, the size that its "
            "first Linear layer takes; give inputs, what the model is called with"
        ) from error


def _some_input(model: Module) -> Inputs:
    """Zeros of the size that the first linear layer of a model takes."""
    sizes = [getattr(m, "in_features", None) for m in model.modules()]
    found = [(size, m) for size, m in zip(sizes, model.modules(), strict=True) if size]
    if not found:
        raise TypeError("draw: the model has no Linear layer to tell its input size; give inputs")
    dtype = next(model.parameters()).dtype
    return zeros(2, found[0][0], dtype=dtype)  # of one sample nothing can be normalized


def graph_root(graph: Graph, seen: Trace) -> Block:
    """The block of the model itself."""
    return next(b for b in graph.blocks if b.key == f"c{seen.root.number}")


def _open(graph: Graph, calls: dict[str, Call], seen: Trace, depth: int | None) -> None:
    """Opens modules to a depth, and whatever an error was raised in."""
    deepest = max(call.depth for call in seen.calls)
    wanted = range(deepest + 1, 0, -1) if depth is None else [depth]
    for tried in wanted:
        for block in graph.everywhere():
            call = calls.get(block.key)
            failed = call is not None and not call.finished
            shallow = call is not None and call.depth < tried
            block.open = block.inner is not None and (shallow or failed)
        if depth is not None or sum(not b.open for b in graph.seen()) <= MOST:
            return


def _without_root(graph: Graph, seen: Trace) -> Graph:
    """What the model is made of, between its inputs and outputs, without a frame around it."""
    root = graph_root(graph, seen)
    inner = root.inner or Graph([], [])
    ends = [b for b in graph.blocks if b is not root]
    leaving: dict[Hashable, list[Hashable]] = {}
    for link in graph.links:
        if link.source == root.key:
            leaving.setdefault(link.out_port, []).append(link.target)
    links = []
    for link in inner.links:
        source = link.source[1] if isinstance(link.source, tuple) else link.source
        out = isinstance(link.target, tuple)
        targets = leaving[link.target[1]] if isinstance(link.target, tuple) else [link.target]
        links += [
            replace(link, source=source, target=t, in_port=source if out else link.in_port)
            for t in targets
        ]
    first = [b for b in ends if b.kind == "input"]
    return Graph([*first, *inner.blocks, *(b for b in ends if b.kind != "input")], links)


def _subtitle(model: Module, seen: Trace, graph: Graph) -> str:
    held = sum(p.numel() for p in model.parameters())
    told = [f"{held:,} parameters"]
    if seen.error is not None:
        told.append(f"the pass failed: {type(seen.error).__name__}")
    if any(b.inner is not None for b in graph.everywhere()):
        told.append("click a module to open or close it")
    return " · ".join(told)
