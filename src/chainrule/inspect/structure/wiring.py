"""Recurrent networks as they are wired: unrolled over time, and inside one step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from chainrule.inspect.core.registry import instrument
from chainrule.inspect.structure.canvas import Canvas
from chainrule.inspect.structure.cells import draw_cell
from chainrule.inspect.structure.recurrent import Recurrence, Strand, recurrence_of
from chainrule.inspect.structure.scene import Drawing
from chainrule.inspect.structure.texts import width_of
from chainrule.nn.module.base import Module

__all__ = ["wiring"]

WIDTH, HEIGHT = 58.0, 34.0  # of a step
BESIDE = 34.0  # of the middle, where there are two directions
UP, BETWEEN = 66.0, 56.0  # from input to state, and between two directions
SMALL = 10.0
FILL = {False: ("#e3f0f8", "#0072B2"), True: ("#fbe9dd", "#D55E00")}  # forward, backward
CLEAR = 46.0  # of the middle of a column, beside the lines that pass there

Place = tuple[float, float]


class Top(NamedTuple):
    """A box, by the middle of its upper edge."""

    x: float
    y: float
    name: str


@instrument("V08", needs=("model",))
def wiring(
    model: Module, steps: int = 3, *, cell: bool = False, layer: str | None = None
) -> Drawing:
    """Draws how a recurrent layer is wired: over some steps of time, or inside one of them.

    Everything in the picture is read from the module: layers, directions, sizes, projections, and
    the names of the weights, which are the same at every step.

    Args:
        model: an RNN, GRU or LSTM, one of their cells, PeepholeLSTM, Bidirectional, or a model
            that holds one.
        steps: how many steps are drawn beside each other.
        cell: whether to draw the inside of a step: gates, products and sums.
        layer: the name of the recurrent layer in the model; the first by default.

    >>> from chainrule import inspect, nn
    >>> drawing = inspect.wiring(nn.LSTM(3, 5), steps=2)
    >>> [box.name for box in drawing.boxes]
    ['x1', 'x2', 'h0, c0', 'h1, c1', 'h2, c2', 'h_n, c_n', 'y1', 'y2']
    """
    if steps < 1:
        raise ValueError(f"wiring: steps must be at least 1, got {steps}")
    found = recurrence_of(model, layer)
    if cell:
        return draw_cell(found)
    return _Unrolled(found, steps).drawing()


class _Unrolled:
    """The steps of a recurrence beside each other, time to the right, layers upward."""

    def __init__(self, found: Recurrence, steps: int):
        self.found, self.steps = found, steps
        self.canvas = Canvas()
        self.both = len(found.layers[0]) == 2
        self.across = 152.0 if self.both else 122.0
        self.y = 0.0

    def drawing(self) -> Drawing:
        """Draws the inputs, then layer after layer, then the outputs."""
        size = self.found.input_size
        below = self._row([f"x{t + 1}" for t in range(self.steps)], "input", f"{size} numbers")
        for number, strands in enumerate(self.found.layers):
            last = number == len(self.found.layers) - 1
            tops = [self._strand(s, number, below, i) for i, s in enumerate(strands)]
            joined = self.both and not last
            if last:
                below = self._outputs(tops)
            elif joined:
                below = self._joined(tops)
            else:
                below = tops[0]
        last_sizes = self.found.layers[-1]
        told = f"{self.steps} steps · the same weights at every step · states of "
        told += " and ".join(str(s.hidden_size) for s in last_sizes) + " numbers"
        return self.canvas.sketch(self.found.title, told)

    def _column(self, t: int) -> float:
        return t * self.across

    def _label(self, y: float, words: Sequence[str]) -> None:
        """What a row is, at the left."""
        left = -(BESIDE if self.both else 0.0) - WIDTH / 2 - 84
        for i, line in enumerate(words):
            at = y + (i - (len(words) - 1) / 2) * 13
            color = "#222222" if i == 0 else "#555555"
            size = 11.0 if i == 0 else SMALL
            self.canvas.words(line, left, at, size=size, bold=i == 0, anchor="end", color=color)

    def _row(self, names: Sequence[str], what: str, *told: str) -> list[Top]:
        """A row of inputs or outputs."""
        self._label(self.y, [what, *told])
        tops = []
        for t, name in enumerate(names):
            fill = "#ffffff" if what == "input" else "#e9e9e9"
            self.canvas.box(name, self._column(t), self.y, 40, 28, kind=what, fill=fill, radius=13)
            self.canvas.words(name, self._column(t), self.y)
            tops.append(Top(self._column(t), self.y - 14, name))
        return tops

    def _arrow(self, source: str, target: str, start: Place, stop: Place, note: str = "") -> None:
        self.canvas.line(source, target, [start, stop], arrow=True, note=note)

    def _up(self, source: Top, target: str, stop: Place, note: str = "") -> None:
        self._arrow(source.name, target, (source.x, source.y), stop, note)

    def _strand(self, s: Strand, number: int, below: list[Top], which: int) -> list[Top]:
        """The steps of a layer in one direction."""
        self.y -= UP if which == 0 else BETWEEN
        shift = (BESIDE if s.backward else -BESIDE) if self.both else 0.0
        direction = (" backward" if s.backward else " forward") if self.both else ""
        words = [f"layer {number + 1}{direction}: {s.kind}"]
        words += [f"{name} {shape}" for name, shape in _matrices(s).items()]
        self._label(self.y, words)
        fill, stroke = FILL[s.backward]
        order = range(self.steps - 1, -1, -1) if s.backward else range(self.steps)
        before = self._state(s, "0", self._column(order[0]) + shift, -1)
        tops: dict[int, Top] = {}
        for t in order:
            x = self._column(t) + shift
            name = _names(s, str(t + 1))
            note = f"step {t + 1}: {name} from x and the states before\n" + "\n".join(
                f"{n} {shape}" for n, shape in s.weights.items()
            )
            self.canvas.box(
                name, x, self.y, WIDTH, HEIGHT, kind="step", fill=fill, stroke=stroke, note=note,
                facts={"layer": str(number + 1), "direction": direction.strip() or "forward"},
            )  # fmt: skip
            self.canvas.words(name, x, self.y)
            self._carry(s, before, x, name)
            at = (x, self.y + HEIGHT / 2)
            self._up(below[t], name, at, f"through {s.name('weight_ih')}")
            before = (x, name)
            tops[t] = Top(x, self.y - HEIGHT / 2, name)
        self._state(s, "_n", self._column(order[-1]) + shift, 1, before)
        return [tops[t] for t in range(self.steps)]

    def _state(
        self,
        s: Strand,
        mark: str,
        x: float,
        side: int,
        before: tuple[float, str] | None = None,
    ) -> tuple[float, str]:
        """The state before the first step, or after the last one, beside that step."""
        side = -side if s.backward else side
        name = _names(s, mark)
        width = width_of(name, SMALL) + 14
        at = x + side * (WIDTH / 2 + 48)
        if before is not None and self.both:  # beside the lines from and to the other direction
            middle = x - (BESIDE if s.backward else -BESIDE)
            at = middle + side * (CLEAR + width / 2)
        self.canvas.box(name, at, self.y, width, 26, kind="state", radius=12)
        self.canvas.words(name, at, self.y, size=SMALL)
        if before is not None:
            self._carry(s, before, at, name, width / 2, last=True)
        return at, name

    def _carry(
        self,
        s: Strand,
        before: tuple[float, str],
        x: float,
        name: str,
        half: float = WIDTH / 2,
        last: bool = False,
    ) -> None:
        """The lines of the states from one step to the next."""
        start, source = before
        way = 1 if x > start else -1
        from_step = source not in (_names(s, "0"),)
        reach = WIDTH / 2 if from_step else (width_of(source, SMALL) + 14) / 2
        lines = s.states
        for i, state in enumerate(lines):
            y = self.y + (i - (len(lines) - 1) / 2) * 12
            ends = (start + way * reach, y), (x - way * half, y)
            through = f" through {s.name('weight_hh')}" if state == "h" else ""
            self._arrow(source, name, *ends, f"{state}{through}")
            if len(lines) > 1:
                share = 0.25 if last and self.both else 0.5
                middle = ends[0][0] + share * (ends[1][0] - ends[0][0])
                above = y - 8 if i == 0 else y + 8
                self.canvas.words(state, middle, above, size=SMALL, color="#555555")

    def _joined(self, tops: list[list[Top]]) -> list[Top]:
        """Both directions side by side, as the input of the layer above."""
        self.y -= 50
        self._label(self.y, ["both directions side by side"])
        found = []
        for t in range(self.steps):
            x = self._column(t)
            self.canvas.box("cat", x, self.y, 36, 22, kind="operation", fill="#f7f7f7", radius=11)
            self.canvas.words("cat", x, self.y, size=SMALL)
            for i, row in enumerate(tops):
                self._up(row[t], "cat", (x + (i * 2 - 1) * 8, self.y + 11))
            found.append(Top(x, self.y - 11, "cat"))
        return found

    def _outputs(self, tops: list[list[Top]]) -> list[Top]:
        self.y -= 58
        told = [f"{name} {shape}" for name, shape in self.found.output.items()]
        if not told:
            told = ["both directions side by side"] if self.both else ["the state h"]
        names = [f"y{t + 1}" for t in range(self.steps)]
        found = self._row(names, "output", *told)
        for t, name in enumerate(names):
            for i, row in enumerate(tops):
                x = self._column(t) + ((i * 2 - 1) * 8 if self.both else 0.0)
                self._up(row[t], name, (x, self.y + 14))
        return found


def _names(s: Strand, mark: str) -> str:
    return ", ".join(f"{state}{mark}" for state in s.states)


def _matrices(s: Strand) -> dict[str, tuple[int, ...]]:
    return {n: shape for n, shape in s.weights.items() if len(shape) == 2}
