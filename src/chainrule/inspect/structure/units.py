"""Networks as units and weights: circles and lines, or the lines and crossings of a cascade."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from chainrule.inspect.structure.canvas import Canvas, Sketch
from chainrule.inspect.structure.texts import width_of
from chainrule.inspect.structure.unitgraph import Layer, UnitGraph, Weights

__all__ = ["UnitLink", "draw_units"]

POSITIVE, NEGATIVE, FROZEN, PRUNED, LOST = "#0072B2", "#D55E00", "#8a8a8a", "#b0b0b0", "#CC79A7"
RADIUS, DOWN, ACROSS = 13.0, 34.0, 118.0
MOST = 8  # units of a layer that are drawn; of more, the first and the last
STEP, SIDE = 30.0, 44.0  # between the lines of a cascade: down and across
THIN, THICK = 0.5, 4.5


@dataclass
class UnitLink:
    """A weight between two units. ``state`` is trained, frozen, pruned, or fixed (no weight)."""

    source: str
    target: str
    weight: float
    state: str
    name: str

    @property
    def note(self) -> str:
        """What is said of it on hover."""
        return f"{self.source} → {self.target}: {self.weight:.4g} ({self.name}, {self.state})"

    def color(self, weights: bool) -> str:
        """By its sign, or by its state alone."""
        if self.state == "pruned":
            return PRUNED
        if not math.isfinite(self.weight):
            return LOST
        if not weights:
            return "#555555" if self.state != "frozen" else FROZEN
        if self.state in ("frozen", "fixed"):
            return FROZEN
        return POSITIVE if self.weight >= 0 else NEGATIVE


class _Shown:
    """The units that are drawn, with their names, and the links between them."""

    def __init__(self, graph: UnitGraph, most: int):
        self.graph = graph
        self.rows = {id(layer): _shortened(layer.units, most) for layer in graph.layers}
        self.names: dict[int, str] = {}
        self.links: list[UnitLink] = []
        self.target_of: list[tuple[int, int]] = []  # units of each link
        self._name()
        for layer in graph.layers:
            for weights in layer.weights:
                self._add(layer, weights)
        free = [k.weight for k in self.links if k.state != "fixed"]
        sizes = [abs(weight) for weight in free if math.isfinite(weight)]
        self.largest = max(sizes, default=0.0) or 1.0

    def _name(self) -> None:
        """x1, x2 ... for inputs, y1 ... for outputs, h1 ... for hidden units, and h2.1 ... for
        those of the second of several hidden layers."""
        outputs = {u: i + 1 for i, u in enumerate(self.graph.outputs)}
        first = [layer for layer in self.graph.layers if not layer.rank]
        inner = [k for k in self.graph.layers if k.rank and not set(k.units) <= set(outputs)]
        for i, u in enumerate(u for layer in first for u in layer.units):
            self.names[u] = f"x{i + 1}"
        grouped = len(inner) > 1 and any(len(layer.units) > 1 for layer in inner)
        for n, layer in enumerate(inner):
            for i, u in enumerate(layer.units):
                self.names[u] = f"h{n + 1}.{i + 1}" if grouped else f"h{n + i + 1}"
        self.names |= {u: f"y{i}" for u, i in outputs.items()}

    def _add(self, layer: Layer, weights: Weights) -> None:
        seen = {u for row in self.rows.values() for u in row if u is not None}
        columns = [(j, u) for j, u in enumerate(weights.sources) if u in seen]
        rows = [(i, u) for i, u in enumerate(layer.units) if u in seen]
        if weights.matrix is None:
            pairs = [(u, weights.sources[i], 1.0, "fixed") for i, u in rows]
        else:
            values = weights.matrix[[i for i, _ in rows]][:, [j for j, _ in columns]].tolist()
            kept = None if weights.mask is None else weights.mask.tolist()
            state = "trained" if weights.trained else "frozen"
            pairs = [
                (u, v, values[a][b], state if kept is None or kept[i][j] else "pruned")
                for a, (i, u) in enumerate(rows)
                for b, (j, v) in enumerate(columns)
            ]
        for u, v, value, how in pairs:
            self.links.append(UnitLink(self.names[v], self.names[u], value, how, weights.name))
            self.target_of.append((v, u))

    def note(self, u: int) -> str:
        """What is said of a unit on hover."""
        layer = self.graph.layer_of(u)
        told = [f"{self.names[u]} ({layer.name})", *layer.functions]
        if layer.bias is not None:
            told.append(f"bias {self.bias(u):.4g}")
        return ", ".join(told)

    def bias(self, u: int) -> float:
        """The bias of a unit."""
        layer = self.graph.layer_of(u)
        return 0.0 if layer.bias is None else float(layer.bias[layer.units.index(u)].item())

    def width(self, link: UnitLink) -> float:
        """How wide a link is drawn: from its size against that of the largest."""
        if link.state in ("pruned", "fixed") or not math.isfinite(link.weight):
            return 1.0
        return THIN + (THICK - THIN) * abs(link.weight) / self.largest


def _shortened(units: Sequence[int], most: int) -> list[int | None]:
    """The units, or the first and the last of them with None between."""
    if len(units) <= most:
        return list(units)
    last = max(1, most // 4)
    return [*units[: most - last - 1], None, *units[-last:]]


def draw_units(graph: UnitGraph, title: str, weights: bool, most: int | None) -> Sketch:
    """The units of a network and the weights between them."""
    shown = _Shown(graph, MOST if most is None else most)
    canvas = Canvas()
    bottom = (_draw_rows if graph.in_rows else _draw_cascade)(canvas, shown, weights)
    _legend(canvas, shown, weights, not graph.in_rows, bottom)
    drawn = [(k, w) for k in graph.layers for w in k.weights if w.matrix is not None]
    total = sum(len(w.sources) * len(k.units) for k, w in drawn)
    units = sum(len(layer.units) for layer in graph.layers if layer.rank)
    inputs = sum(len(layer.units) for layer in graph.layers if not layer.rank)
    told = f"{inputs} inputs · {units} units · {total:,} weights between them"
    sketch = canvas.sketch(title, told)
    sketch.links = shown.links
    return sketch


# --- layers beside each other ---------------------------------------------------------------------


def _caption(layer: Layer) -> list[str]:
    size = len(layer.units)
    told = [layer.name, f"{size} unit{'s' * (size != 1)}" if layer.rank else str(size)]
    return [*told, ", ".join(layer.functions)] if layer.functions else told


def _draw_rows(canvas: Canvas, shown: _Shown, weights: bool) -> float:
    ranks: dict[int, list[Layer]] = {}
    for layer in shown.graph.layers:
        ranks.setdefault(layer.rank, []).append(layer)
    places: dict[int, tuple[float, float]] = {}
    x, lowest = 0.0, 0.0
    heads: list[tuple[float, list[str]]] = []
    for rank in sorted(ranks):
        captions = [_caption(layer) for layer in ranks[rank]]
        words = captions[0] if len(captions) == 1 else [f"{len(captions)} layers"]
        wide = max(width_of(line, 11) for line in words)
        x += (wide - ACROSS) / 2 + 16 if heads and wide + 16 > ACROSS else 0.0
        rows = [u for layer in ranks[rank] for u in (*shown.rows[id(layer)], "gap")][:-1]
        top = -(len(rows) - 1) / 2 * DOWN
        for i, u in enumerate(rows):
            y = top + i * DOWN
            if isinstance(u, int):
                places[u] = (x, y)
            elif u is None:
                canvas.dots(x, y)
        lowest = max(lowest, top + (len(rows) - 1) * DOWN)
        heads.append((x, words))
        x += max(ACROSS, wide / 2 + ACROSS / 2 + 16)
    for u, (cx, cy) in places.items():
        _unit(canvas, shown, u, cx, cy)
    for link, (source, target) in zip(shown.links, shown.target_of, strict=True):
        _straight(canvas, shown, link, places[source], places[target], weights)
    bottom = lowest + RADIUS + 20
    for cx, words in heads:
        for i, line in enumerate(words):
            color = "#222222" if i == 0 else "#555555"
            canvas.words(line, cx, bottom + 14 * i, size=11, bold=i == 0, color=color)
    return bottom + 14 * 3 + 8


def _unit(canvas: Canvas, shown: _Shown, u: int, x: float, y: float) -> None:
    name = shown.names[u]
    layer = shown.graph.layer_of(u)
    fill = "#ffffff" if not layer.rank else "#f0f0f0" if name[0] == "y" else "#f7fafc"
    facts = {"layer": layer.name, "function": ", ".join(layer.functions)}
    if layer.bias is not None:
        facts["bias"] = f"{shown.bias(u):.4g}"
    kind = {"x": "input", "y": "output"}.get(name[0], "hidden")
    canvas.circle(name, x, y, RADIUS, kind=kind, fill=fill, note=shown.note(u), facts=facts)
    canvas.words(name, x, y, size=round(min(10.0, 10 * 22 / width_of(name, 10)), 1))


def _straight(
    canvas: Canvas,
    shown: _Shown,
    link: UnitLink,
    start: tuple[float, float],
    stop: tuple[float, float],
    weights: bool,
) -> None:
    length = math.dist(start, stop)
    dx, dy = ((stop[i] - start[i]) / length * RADIUS for i in (0, 1))
    ends = [(start[0] + dx, start[1] + dy), (stop[0] - dx, stop[1] - dy)]
    width = shown.width(link) if weights else 1.0
    dash = "dotted" if link.state == "pruned" else "dashed" if link.state == "frozen" else ""
    canvas.line(
        link.source, link.target, ends, color=link.color(weights), width=width, dash=dash,
        note=link.note,
    )  # fmt: skip


# --- a cascade ------------------------------------------------------------------------------------


def _draw_cascade(canvas: Canvas, shown: _Shown, weights: bool) -> float:
    """Every unit has a line across, from itself to the right, and one down, where it sums: the
    crossings are the weights (Fahlman and Lebiere)."""
    graph = shown.graph
    order = [u for layer in graph.layers for u in shown.rows[id(layer)] if u is not None]
    outputs = [u for u in order if u in graph.outputs]
    inputs = [u for u in order if not graph.layer_of(u).rank]
    hidden = [u for u in order if u not in outputs and u not in inputs]
    line = {u: -i * STEP for i, u in enumerate([*inputs, *hidden])}
    column = {u: (i + 1) * SIDE for i, u in enumerate([*hidden, *outputs])}
    top = -(len(line)) * STEP
    right = (len(column) + 0.5) * SIDE
    biased = any(layer.bias is not None for layer in graph.layers)
    place = {u: (column.get(u, 0.0), line.get(u, top)) for u in order}
    ground = STEP if biased else 0.0
    if biased:
        canvas.words("+1", -4, ground, size=11, anchor="end", color="#555555")
        _wire(canvas, [(2, ground), (right, ground)])
    for u in (*inputs, *hidden):
        x, y = place[u]
        _wire(canvas, [(x + RADIUS, y), (right, y)])
    for u in (*hidden, *outputs):
        x, y = place[u]
        _wire(canvas, [(x, ground), (x, y + RADIUS)])
    for link, (source, target) in zip(shown.links, shown.target_of, strict=True):
        (sx, sy), (tx, ty) = place[source], place[target]
        way = [(sx + RADIUS, sy), (tx, sy), (tx, ty + RADIUS)]
        canvas.link(link.source, link.target, way, link.note)
        _mark(canvas, shown, link, tx, sy, weights)
    for u in column if biased else ():
        _bias_mark(canvas, shown, u, column[u], ground, weights)
    for u in order:
        _unit(canvas, shown, u, *place[u])
    return ground + 30


def _wire(canvas: Canvas, points: list[tuple[float, float]]) -> None:
    canvas.line("", "", points, color="#c4c4c4", width=1.0, edge=False)


def _bias_mark(canvas: Canvas, shown: _Shown, u: int, x: float, y: float, weights: bool) -> None:
    layer = shown.graph.layer_of(u)
    if layer.bias is None:
        return
    state = "trained" if any(w.trained for w in layer.weights) else "frozen"
    link = UnitLink("+1", shown.names[u], shown.bias(u), state, "bias")
    _mark(canvas, shown, link, x, y, weights)


def _mark(canvas: Canvas, shown: _Shown, link: UnitLink, x: float, y: float, weights: bool) -> None:
    size = 3.0 + 4.0 * min(1.0, abs(link.weight) / shown.largest) if weights else 5.0
    size = size if math.isfinite(size) else 5.0
    sign = POSITIVE if link.weight >= 0 else NEGATIVE
    color = link.color(weights) if link.state == "pruned" or not weights else sign
    canvas.mark(x, y, size, link.state, color, link.note)


# --- what colors and shapes mean ------------------------------------------------------------------


def _legend(canvas: Canvas, shown: _Shown, weights: bool, cascade: bool, y: float) -> None:
    states = {link.state for link in shown.links}
    entries: list[tuple[str, str, str]] = []  # what it is, its color, its dash or mark
    live = [k for k in shown.links if k.state == "trained" or (cascade and k.state == "frozen")]
    if weights:
        if any(k.weight >= 0 for k in live):
            entries.append(("positive", POSITIVE, ""))
        if any(k.weight < 0 for k in live):
            entries.append(("negative", NEGATIVE, ""))
    if cascade:
        entries += [(s, "#555555", s) for s in ("trained", "frozen", "pruned") if s in states]
    else:
        entries += [("frozen", FROZEN, "dashed")] if "frozen" in states else []
        entries += [("pruned", PRUNED, "dotted")] if "pruned" in states else []
        entries += [("fixed at 1", FROZEN, "")] if "fixed" in states and weights else []
    if any(not math.isfinite(k.weight) for k in shown.links):
        entries.append(("not finite", LOST, ""))
    x = -RADIUS
    for words, color, mark in entries:
        if cascade and mark:
            canvas.mark(x + 12, y, 5.0, mark, color, "")
        else:
            canvas.line(
                "", "", [(x, y), (x + 24, y)], color=color, width=2.4, dash=mark, edge=False
            )
        canvas.words(words, x + 30, y, size=11, anchor="start", color="#444444")
        x += 30 + width_of(words, 11) + 18
    if weights:
        what = "largest mark" if cascade else "widest line"
        canvas.words(f"{what}: {shown.largest:.3g}", x, y, size=11, anchor="start", color="#444444")
