"""The graph behind a tensor: the operations that made it, and the leaves that they started from."""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chainrule.graph import Node
from chainrule.inspect.core.arguments import tensors
from chainrule.inspect.structure.blocks import Block, Line
from chainrule.inspect.structure.folding import by_path, folded
from chainrule.inspect.structure.parts import Part, graph_of
from chainrule.inspect.structure.rendering import rendered
from chainrule.inspect.structure.scene import Drawing
from chainrule.inspect.structure.texts import shortened
from chainrule.inspect.structure.values import shape_text, value_text
from chainrule.tensor import Tensor, of_array

__all__ = ["ComputationGraph", "make_dot"]

SMALL, SOFT = 11.0, "#555"
ROOM = 44  # parts beside each other, so that inputs and outputs fit into 60 boxes, too
SELECT = "select_output"  # one of several outputs: no operation of the user's
DOT_COLORS = {
    "operation": "lightgrey",
    "parameter": "lightblue",
    "output": "darkolivegreen1",
    "saved": "orange",
}


@dataclass(repr=False)
class ComputationGraph(Drawing):
    """A drawing of the graph behind a tensor; ``source`` is the whole of it in Graphviz's words."""

    source: str = ""

    def render(
        self,
        filename: str | os.PathLike[str] = "graph",
        directory: str | os.PathLike[str] | None = None,
        format: str = "svg",
        cleanup: bool = True,
    ) -> str:
        """Writes ``filename.svg`` (or ``.html``) and returns its path; Graphviz is not needed.

        Args:
            filename: without an ending.
            directory: the folder, made if it is missing; where the program runs by default.
            format: "svg" or "html".
            cleanup: False writes the source as well, as ``filename``.
        """
        if format not in ("svg", "html"):
            raise ValueError(
                f"render: format must be 'svg' or 'html', got {format!r}; for other formats give "
                "graph.source to Graphviz, or print the SVG from a browser"
            )
        folder = Path(directory) if directory is not None else Path()
        folder.mkdir(parents=True, exist_ok=True)
        base = folder / filename
        if not cleanup:
            base.write_text(self.source, "utf-8")
        return str(self.save(base.with_name(f"{base.name}.{format}")))


def make_dot(
    var: Tensor | Sequence[Tensor],
    params: Mapping[str, Tensor] | Iterable[tuple[str, Tensor]] | None = None,
    show_attrs: bool = False,
    show_saved: bool = False,
    max_attr_chars: int = 50,
) -> ComputationGraph:
    """Draws the graph behind a tensor, under the name and with the arguments of torchviz.

    A graph of many operations is folded: by the modules that ``params`` name, and by what is
    repeated. Nothing has to be installed.

    Args:
        var: the tensor, or several of them.
        params: names of leaves, such as ``dict(model.named_parameters())``; those that it leaves
            out are drawn without a name.
        show_attrs: whether the settings of operations are written into their boxes.
        show_saved: whether what operations keep for the backward pass is drawn, each tensor on its
            own.
        max_attr_chars: how much of a setting is written.

    >>> from chainrule import inspect, nn, ones
    >>> net = nn.Linear(2, 3)
    >>> graph = inspect.make_dot(net(ones(1, 2)).sum(), dict(net.named_parameters()))
    >>> [box.name for box in graph.boxes]
    ['weight', 'bias', 'LinearBackward', 'SumBackward', 'output']
    """
    roots = tensors(var)
    if not roots:
        raise TypeError(f"make_dot: expected a tensor or several, got {type(var).__name__}")
    for i, t in enumerate(roots):
        if not t.requires_grad:
            raise ValueError(
                f"make_dot: tensor {i} has no graph behind it; compute it outside of no_grad() "
                "from something that requires a gradient"
            )
    pairs = params.items() if isinstance(params, Mapping) else (params or ())
    names = {id(p): name for name, p in pairs}
    reader = _Reader(names, show_attrs, show_saved, max_attr_chars)
    parts = reader.parts(roots)
    total = sum(p.block.kind == "operation" for p in parts)
    source = _source(parts, reader.outputs)
    if len(parts) > ROOM:
        parts = folded(by_path(parts, reader.paths), ROOM)
    graph = graph_of([*parts, *reader.outputs], {}, [], reader.notes)
    leaves = sum(b.kind == "parameter" for b in graph.everywhere())
    told = f"{total:,} operations" + ("" if total > ROOM else f" · {leaves} leaves")
    if any(b.inner is not None for b in graph.blocks):
        told += " · click to open or close"
    made = rendered(graph, "Computational graph", told)
    where = made.boxes, made.labels, made.edges
    return ComputationGraph(
        "Computational graph", *where, *made.area, made.svg, source, _tikz=made.tikz
    )


class _Reader:
    """Makes parts of nodes and leaves."""

    def __init__(self, names: Mapping[int, str], attrs: bool, saved: bool, longest: int):
        self.names, self.attrs, self.saved, self.longest = names, attrs, saved, longest
        self.notes: dict[Hashable, str] = {}
        self.paths: dict[str, str] = {}  # of the module that a leaf belongs to, by the leaf's part
        self.outputs: list[Part] = []
        self._kept: list[Any] = []  # saved arrays as tensors: their ids stay theirs

    def parts(self, roots: Sequence[Tensor]) -> list[Part]:
        """Leaves and operations, in the order in which they were first needed."""
        nodes = _nodes(roots)
        found: list[Part] = []
        seen: set[int] = set()
        for node in nodes:
            for edge in node.edges:
                if isinstance(edge, Tensor) and id(edge) not in seen:
                    seen.add(id(edge))
                    found.append(self._leaf(edge))
            found += self._operation(node)
        for i, t in enumerate(roots):
            source = _source_of(t.grad_fn) if t.grad_fn is not None else t
            if isinstance(source, Tensor) and id(source) not in seen:
                seen.add(id(source))
                found.append(self._leaf(source))
            name = self.names.get(id(t), "output" if len(roots) == 1 else f"output {i}")
            lines = [Line(name, bold=True), Line(shape_text(t), size=SMALL, color=SOFT)]
            block = Block(f"out{i}", lines, "output", value_text(t), round=True, name=name)
            block.facts = {"shape": shape_text(t)}
            self.outputs.append(Part(block, [id(source)], []))
        return found

    def _leaf(self, t: Tensor) -> Part:
        name = self.names.get(id(t), "")
        shape = Line(shape_text(t), size=SMALL, color=SOFT)
        lines = [Line(shortened(name, 220.0)), shape] if name else [shape]
        note = f"{name or 'leaf'}: {value_text(t)}"
        block = Block(
            f"l{len(self.paths)}", lines, "parameter", note, round=True, name=name or "leaf"
        )
        block.facts = {"shape": shape_text(t)}
        self.paths[block.key] = name.rpartition(".")[0]
        self.notes[id(t)] = shape_text(t)
        return Part(block, [], [id(t)], signature=("leaf", shape_text(t)))

    def _operation(self, node: Node) -> list[Part]:
        needs: list[Hashable] = [id(_source_of(e)) for e in node.edges if e is not None]
        lines = [Line(node.name())]
        settings = _settings(node)
        if self.attrs:
            told = [f"{name}: {value}"[: self.longest] for name, value in settings.items()]
            lines += [
                Line(shortened(words, 260.0, SMALL), size=SMALL, color=SOFT) for words in told
            ]
        saved = self._saved(node) if self.saved else []
        note = [node.name(), *(f"{name}: {value}" for name, value in settings.items())]
        if isinstance(node.trace, str):
            note.append(node.trace)
        block = Block(f"n{node.seq}", lines, "operation", "\n".join(note), name=node.name())
        block.facts = {"settings": ", ".join(f"{k}={v}" for k, v in settings.items())}
        signature = (node.op.name, str(node.shapes), len(needs), len(saved))
        needs += [value for part in saved for value in part.gives]
        return [*saved, Part(block, needs, [id(node)], signature=signature)]

    def _saved(self, node: Node) -> list[Part]:
        """What a node keeps: inputs, and what came out."""
        held = [(f"input {i}", t) for i, t in enumerate(node.saved or ()) if t is not None]
        outs = node.out if isinstance(node.out, tuple) else (node.out,)
        held += [("result", of_array(a)) for a in outs if a is not None]
        found = []
        for i, (what, t) in enumerate(held):
            if not isinstance(t, Tensor):
                continue
            self._kept.append(t)
            name = self.names.get(id(t), "")
            words = f"saved {what}" + (f": {name}" if name else "")
            lines = [Line(words, size=SMALL), Line(shape_text(t), size=SMALL, color=SOFT)]
            block = Block(
                f"s{node.seq}_{i}", lines, "saved", f"{words}: {value_text(t)}", name=words
            )
            block.facts = {"shape": shape_text(t)}
            value = ("saved", node.seq, i)
            found.append(Part(block, [], [value], signature=("saved", shape_text(t))))
        return found


def _nodes(roots: Sequence[Tensor]) -> list[Node]:
    """The nodes behind tensors from the oldest to the youngest."""
    found: dict[int, Node] = {}
    waiting: list[Any] = [t.grad_fn for t in roots]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Node) and id(node) not in found:
            found[id(node)] = node
            waiting += node.edges
    ordered = sorted(found.values(), key=lambda node: node.seq)
    return [node for node in ordered if node.op.name != SELECT]


def _source_of(edge: Any) -> Any:
    """The node or leaf that an edge leads to; a choice among outputs is passed over."""
    while isinstance(edge, Node) and edge.op.name == SELECT:
        edge = edge.edges[0]
    return edge


def _settings(node: Node) -> dict[str, str]:
    found = {name: str(value) for name, value in (node.params or {}).items()}
    if node.shapes is not None:
        found["inputs"] = ", ".join(str(tuple(shape)) for shape in node.shapes)
    return found


def _source(parts: Sequence[Part], outputs: Sequence[Part]) -> str:
    """The graph in the language of Graphviz."""
    lines = [
        "digraph {",
        "\tnode [align=left fontname=monospace fontsize=10 shape=box style=filled]",
    ]
    holder = {value: part.key for part in parts for value in part.gives}
    for part in (*parts, *outputs):
        label = json.dumps("\n".join(line.words for line in part.block.lines))
        lines.append(f"\t{part.key} [label={label} fillcolor={DOT_COLORS[part.block.kind]}]")
    for part in (*parts, *outputs):
        found = dict.fromkeys(holder[v] for v in part.needs if v in holder)
        lines += [f"\t{source} -> {part.key}" for source in found]
    return "\n".join([*lines, "}"]) + "\n"
