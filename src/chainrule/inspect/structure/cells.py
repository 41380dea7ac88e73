"""The inside of one step of a recurrent layer: what is multiplied, added and squashed."""

from __future__ import annotations

from collections.abc import Sequence

from chainrule.inspect.structure.blocks import Block, Graph, Line, Link
from chainrule.inspect.structure.recurrent import Recurrence, Strand
from chainrule.inspect.structure.rendering import rendered
from chainrule.inspect.structure.scene import Drawing
from chainrule.inspect.structure.texts import TIMES

__all__ = ["draw_cell"]

SMALL, SOFT = 10.0, "#555"
GATES = {"LSTM": "ifgo", "GRU": "rzn"}  # in the order of the rows of the weights
MEANING = {
    "i": "input gate",
    "f": "forget gate",
    "g": "candidate",
    "o": "output gate",
    "r": "reset gate",
    "z": "update gate",
    "n": "candidate",
}
EQUATIONS = {
    "LSTM": "c_t = f * c_{t-1} + i * g,  h_t = o * tanh(c_t)",
    "GRU": "h_t = (1 - z) * n + z * h_{t-1}",
    "RNN": "h_t = g(weight_ih x_t + bias_ih + weight_hh h_{t-1} + bias_hh)",
}


class _Cell:
    """The blocks and links of one step."""

    def __init__(self, strand: Strand, input_size: int):
        self.s = strand
        self.blocks: list[Block] = []
        self.links: list[Link] = []
        self.add("x", ["x_t", f"{input_size} numbers"], "input", round=True)
        out = strand.weights.get(strand.name("weight_hr"), (strand.hidden_size,))[0]
        self.add("h", ["h_{t-1}", f"{out} numbers"], "input", round=True)

    def add(
        self,
        key: str,
        words: Sequence[str],
        kind: str,
        sources: Sequence[str] = (),
        round: bool = False,
        facts: dict[str, str] | None = None,
    ) -> str:
        """A block, with links from others."""
        lines = [Line(words[0], bold=True)]
        lines += [Line(w, size=SMALL, color=SOFT) for w in words[1:] if w]
        note = "\n".join(words)
        block = Block(key, lines, kind, note, round=round, name=words[0], facts=facts or {})
        self.blocks.append(block)
        self.links += [Link(source, key, key, source) for source in sources]
        return key

    def gate(self, letter: str, function: str, sources: Sequence[str], extra: str = "") -> str:
        """A gate: a function of a part of the rows of the weights."""
        start, stop = self.rows(letter)
        said = f"{letter} = {function}(W x_t + U h_{{t-1}} + b{extra})"
        held = (
            f"rows {start} to {stop - 1} of {self.s.name('weight_ih')}, {self.s.name('weight_hh')}"
        )
        words = [f"{letter}: {MEANING[letter]}", said, held]
        kind = "activation" if function == "sigmoid" else "recurrent"
        facts = {"rows": f"{start}:{stop}", "function": function}
        return self.add(letter, words, kind, sources, facts=facts)

    def rows(self, letter: str) -> tuple[int, int]:
        """The rows of the weights that belong to a gate."""
        place, size = GATES[self.s.kind].index(letter), self.s.hidden_size
        return place * size, (place + 1) * size

    def sign(self, key: str, sign: str, *sources: str) -> str:
        """A product or a sum."""
        return self.add(key, [sign], "operation", sources, round=True)


def _lstm(cell: _Cell) -> None:
    s = cell.s
    cell.add("c", ["c_{t-1}", f"{s.hidden_size} numbers"], "input", round=True)
    seen = ["h", "x"]
    early = [*seen, "c"] if s.peepholes else seen
    cell.gate("f", "sigmoid", early, " + weight_cf c_{t-1}" if s.peepholes else "")
    cell.gate("i", "sigmoid", early, " + weight_ci c_{t-1}" if s.peepholes else "")
    cell.gate("g", "tanh", seen)
    cell.sign("fc", TIMES, "c", "f")
    cell.sign("ig", TIMES, "i", "g")
    cell.sign("sum", "+", "fc", "ig")
    late = [*seen, "sum"] if s.peepholes else seen
    cell.gate("o", "sigmoid", late, " + weight_co c_t" if s.peepholes else "")
    cell.add("tanh", ["tanh"], "activation", ["sum"], round=True)
    last = cell.sign("oh", TIMES, "o", "tanh")
    if s.name("weight_hr"):
        rows, columns = s.weights[s.name("weight_hr")]
        words = [f"projection by {s.name('weight_hr')}", f"from {columns} to {rows} numbers"]
        last = cell.add("hr", words, "weights", [last])
    cell.add("c_t", ["c_t", "c_t = f * c_{t-1} + i * g"], "output", ["sum"], round=True)
    said = "h_t = o * tanh(c_t)" + (f", times {s.name('weight_hr')}" * bool(s.name("weight_hr")))
    cell.add("h_t", ["h_t", said], "output", [last], round=True)


def _gru(cell: _Cell) -> None:
    s = cell.s
    start, stop = cell.rows("n")
    rows = f"rows {start} to {stop - 1} of "
    facts = {"rows": f"{start}:{stop}"}
    cell.gate("r", "sigmoid", ["x", "h"])
    cell.gate("z", "sigmoid", ["x", "h"])
    cell.add("nh", ["U h_{t-1} + b", rows + s.name("weight_hh")], "weights", ["h"], facts=facts)
    cell.add("nx", ["W x_t + b", rows + s.name("weight_ih")], "weights", ["x"], facts=facts)
    cell.sign("rn", TIMES, "r", "nh")
    cell.sign("sum", "+", "nx", "rn")
    words = ["n: candidate", "n = tanh(W x_t + b + r * (U h_{t-1} + b))"]
    cell.add("n", words, "recurrent", ["sum"])
    cell.add("1z", ["1 - z"], "operation", ["z"], round=True)
    cell.sign("new", TIMES, "1z", "n")
    cell.sign("old", TIMES, "z", "h")
    cell.sign("mix", "+", "new", "old")
    cell.add("h_t", ["h_t", EQUATIONS["GRU"]], "output", ["mix"], round=True)


def _rnn(cell: _Cell) -> None:
    s = cell.s
    cell.add("wx", [f"{s.name('weight_ih')} x_t + b"], "weights", ["x"])
    cell.add("wh", [f"{s.name('weight_hh')} h_{{t-1}} + b"], "weights", ["h"])
    cell.sign("sum", "+", "wx", "wh")
    cell.add("g", [s.function], "activation", ["sum"], round=True)
    said = f"h_t = {s.function}(W x_t + U h_{{t-1}} + b)"
    cell.add("h_t", ["h_t", said], "output", ["g"], round=True)


def draw_cell(found: Recurrence) -> Drawing:
    """The inside of one step of the first layer."""
    strand = found.layers[0][0]
    cell = _Cell(strand, found.input_size)
    {"LSTM": _lstm, "GRU": _gru, "RNN": _rnn}[strand.kind](cell)
    title = f"One step of {found.title}"
    told = f"{EQUATIONS[strand.kind]}" if strand.kind != "RNN" else "W, U: the weights of x and h"
    made = rendered(Graph(cell.blocks, cell.links), title, told)
    where = made.boxes, made.labels, made.edges
    return Drawing(title, *where, *made.area, made.svg, _tikz=made.tikz)
