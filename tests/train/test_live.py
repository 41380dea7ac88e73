"""Curves while a network learns: what is drawn, where, how often, and that no rubbish is left."""

from __future__ import annotations

import io
import itertools
import math
import re
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from train.small import problem

import chainrule
from chainrule import models, train
from chainrule.cli import main
from chainrule.train.live import screens
from chainrule.train.live.curves import STEP, Curves
from chainrule.train.live.pace import Pace
from chainrule.train.live.plot import LivePlot
from chainrule.train.live.screens import Notebook, Paper, Terminal, drawn
from chainrule.train.live.text import Frame, Look, text_chart, visible

PLAIN = Look(braille=True, color=False)


class Screen(io.StringIO):
    """A terminal: what stands in its lines after all that was written to it."""

    def __init__(self, columns: int = 80, rows: int = 40):
        super().__init__()
        self.columns, self.rows = columns, rows
        self.lines, self.row, self.column = [""], 0, 0

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        for part in re.findall(r"\x1b\[[0-9;]*[A-Za-z]|\n|\r|[^\x1b\n\r]+", text):
            self._take(part)
        return len(text)

    def _take(self, part: str) -> None:
        if part == "\n":
            self.row, self.column = self.row + 1, 0
            self.lines += [""] * (self.row + 1 - len(self.lines))
        elif part == "\r":
            self.column = 0
        elif part.endswith("A"):
            self.row -= int(part[2:-1])
            assert self.row >= max(0, len(self.lines) - self.rows)  # no terminal goes above its top
        elif part.endswith("K"):
            self.lines[self.row] = self.lines[self.row][: self.column]
        elif part.endswith("J"):
            self.lines = [*self.lines[: self.row], self.lines[self.row][: self.column]]
        elif not part.endswith("m") or part[0] != "\x1b":
            line = self.lines[self.row].ljust(self.column)
            assert self.column + len(part) <= self.columns
            self.lines[self.row] = line[: self.column] + part + line[self.column + len(part) :]
            self.column += len(part)

    def resize(self, columns: int) -> None:
        """A window that becomes narrower breaks the lines that are too long for it."""
        broken = [
            line[i : i + columns]
            for line in self.lines
            for i in range(0, max(1, len(line)), columns)
        ]
        self.lines, self.row, self.columns = broken, len(broken) - 1, columns


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    made = Screen()
    monkeypatch.setattr(screens, "_size", lambda file: (file.columns, file.rows))
    return made


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def panels(epochs: int = 5, wide: bool = False) -> Any:
    losses = [10.0 ** (-i if wide else 0) / i for i in range(1, epochs + 1)]
    points = [(float(i), v) for i, v in enumerate(losses, 1)]
    return {"loss": {"loss": points, "val_loss": [(x, 1.2 * y) for x, y in points]}}


def run(**options: Any) -> train.History:
    x, y = problem()
    chainrule.manual_seed(0)
    trainer = train.Trainer(models.MLP(4, [8], 3), "cross_entropy", **options)
    return trainer.fit((x[:64], y[:64]), (x[64:], y[64:]), epochs=3, batch_size=16)


# --- how often ------------------------------------------------------------------------------------


@pytest.mark.parametrize("cost", [0.0005, 0.004, 0.03, 0.7])
@pytest.mark.parametrize("step", [0.0003, 0.02, 1.3])
def test_drawing_takes_at_most_one_percent(cost: float, step: float) -> None:
    clock = Clock()
    pace = Pace(clock=clock)
    times: list[float] = []

    def draw() -> None:
        times.append(clock.now)
        clock.now += cost

    for _ in range(20_000):
        clock.now += step
        if pace.due():
            pace.do(draw)
            if len(times) > 1:  # what the first one takes is known after it
                assert pace.spent <= 0.01 * clock.now * (1 + 1e-9)
    assert pace.spent == pytest.approx(cost * len(times))
    gaps = [b - a for a, b in itertools.pairwise(times)]
    assert min(gaps, default=1) >= 0.5
    if cost <= 0.005:  # and nothing but the half second keeps it from being drawn
        assert len(times) >= 0.9 * clock.now / (max(0.5, step) + cost + step) - 1


def test_a_run_asks_the_limiter() -> None:
    clock = Clock()
    shown: list[str] = []
    screen: Any = SimpleNamespace(
        show=lambda panels, status: shown.append(status),
        close=lambda panels, status: shown.append(f"last: {status}"),
    )
    plot = LivePlot(2, [], 100, screen, Pace(clock=clock))
    for i in range(1, 101):
        clock.now += 0.01
        plot.batch_done(float(i), i, dict)
    assert len(shown) == 2
    plot.epoch_done({"epoch": 1, "loss": 1.0, "val_loss": 2.0, "lr": 0.1})
    plot.close()
    assert shown[2:] == ["last: epoch 1/2, 1 s, best val_loss 2 in epoch 1, lr 0.1"]


# --- what -----------------------------------------------------------------------------------------


def test_steps_and_epochs_have_one_axis() -> None:
    curves = Curves([], batches=4)
    for epoch in range(2):
        for step in range(4):
            curves.add_step(10.0 * epoch + step)
        if not epoch:
            curves.add_epoch({"epoch": 1, "loss": 1.5, "val_loss": 3.0, "accuracy": 0.5, "lr": 1})
    found = curves.panels()
    assert found["loss"][STEP] == [
        (0.125 + i / 4, v) for i, v in enumerate([0.0, 1, 2, 3, 10, 11, 12, 13])
    ]
    assert found["loss"]["loss"] == [(1.0, 1.5)]
    assert found["loss"]["val_loss"] == [(1.0, 3.0)]
    assert list(found) == ["loss", "accuracy"]


def test_many_steps_are_averaged_in_little_room() -> None:
    curves = Curves([{"epoch": 1, "loss": 9.0}], most=8)
    for i in range(100):
        curves.add_step(float(i))
    curves.add_epoch({"epoch": 2, "loss": 8.0})
    points = curves.panels()["loss"][STEP]
    assert len(points) < 8
    assert points[0][1] == pytest.approx(7.5)  # of 0 to 15
    for x, y in points:
        assert x == pytest.approx(1 + (y + 0.5) / 100)


def test_an_epoch_of_unknown_length() -> None:
    curves = Curves([])
    for i in range(3):
        curves.add_step(float(i))
    assert [x for x, _ in curves.panels()["loss"][STEP]] == pytest.approx([1 / 6, 0.5, 5 / 6])


def test_not_finite_numbers_are_left_out() -> None:
    rows = [{"loss": 1.0, "auc": None}, {"loss": math.nan, "auc": math.inf}]
    assert Curves(rows).panels() == {"loss": {"loss": [(1.0, 1.0)]}}


# --- as text --------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [40, 57, 100])
@pytest.mark.parametrize("braille", [True, False])
def test_a_chart_has_the_size_that_was_asked_for(width: int, braille: bool) -> None:
    look = Look(braille, color=False)
    shown = panels()
    lines = text_chart(shown["loss"], "loss", 14, Frame.of(shown.values(), width), look)
    assert len(lines) == 14
    assert max(map(len, lines)) <= width
    assert all(c.isascii() for c in "".join(lines)) is not braille
    ends = [line for line in lines if line.endswith(("  loss 0.2", "  val_loss 0.24"))]
    assert len(ends) == 2
    assert ends[0].endswith("val_loss 0.24")  # the larger one is the upper one


@pytest.mark.parametrize("wide", [True, False])
def test_the_axis_is_logarithmic_over_two_decades(wide: bool) -> None:
    shown = panels(wide=wide)
    lines = text_chart(shown["loss"], "loss", 16, Frame.of(shown.values(), 60), PLAIN)
    assert ("(log axis)" in lines[0]) is wide
    numbers = [float(m[1]) for line in lines[1:-2] if (m := re.match(r"\s*([\d.e-]+) ┤", line))]
    assert numbers == sorted(numbers, reverse=True)
    steps = [a / b for a, b in itertools.pairwise(numbers[1:])]
    same = max(steps) / min(steps) < 1.1  # equal ratios, or equal differences
    assert same is wide


def test_small_windows_get_the_line_only() -> None:
    assert drawn(panels(), "epoch 1/2", (30, 40), PLAIN) == ["epoch 1/2"]
    assert drawn(panels(), "epoch 1/2", (80, 5), PLAIN) == ["epoch 1/2"]
    assert drawn(panels(), "epoch 1/2", (5, 5), PLAIN) == ["epoch"]


def test_high_windows_get_all_charts() -> None:
    both = {**panels(), "accuracy": {"accuracy": [(1.0, 0.5), (2.0, 0.75)]}}
    lines = drawn(both, "x", (80, 40), PLAIN)
    assert [line.strip() for line in lines if line.strip() in both] == ["loss", "accuracy"]
    assert len(drawn(both, "x", (80, 21), PLAIN)) == 17


# --- where ----------------------------------------------------------------------------------------


def test_a_terminal_holds_the_last_state_and_nothing_else(screen: Screen) -> None:
    screen.write("before\n")
    terminal = Terminal(screen)
    for epochs in (2, 5, 3):
        terminal.show(panels(epochs), f"epoch {epochs}")
    expected = drawn(panels(3), "epoch 3", (79, 38), PLAIN)
    assert screen.lines == ["before", *expected, ""]


@pytest.mark.parametrize("columns", [45, 79, 120])
def test_a_window_that_changes_its_width(screen: Screen, columns: int) -> None:
    screen.write("before\n")
    terminal = Terminal(screen)
    terminal.show(panels(2), "epoch 2")
    screen.resize(columns)
    terminal.show(panels(3), "epoch 3")
    expected = drawn(panels(3), "epoch 3", (columns - 1, 38), PLAIN)
    assert screen.lines == ["before", *expected, ""]


def test_colors_unless_they_are_not_wanted(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(Screen, "write", lambda self, text: written.append(text))
    monkeypatch.delenv("NO_COLOR", raising=False)
    Terminal(screen).show(panels(), "x")
    monkeypatch.setenv("NO_COLOR", "1")
    Terminal(screen).show(panels(), "x")
    assert "\x1b[38;5;32m" in written[0]
    assert not re.search(r"\x1b\[[0-9;]*m", written[1])
    lines = [re.sub(r"\x1b\[K", "", line) for line in written[0].split("\n")]
    assert max(visible(line) for line in lines) <= 79


def test_training_in_a_terminal(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", screen)
    history = run(progress="plot", metrics=["accuracy"])
    text = "\n".join(screen.lines)
    for name in ("loss", "val_loss", "accuracy", "val_accuracy"):
        assert f"  {name} {history[-1][name]:.4g}" in text
    assert "epoch 3/3" in screen.lines[-2]
    assert sum("└" in line for line in screen.lines) == 2


@pytest.mark.parametrize("terminal", ["none", "dumb"])
def test_without_a_terminal_the_last_state_is_plain_text(
    terminal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = io.StringIO()
    if terminal == "dumb":
        monkeypatch.setenv("TERM", "dumb")
        file.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stderr", file)
    run(progress="plot")
    text = file.getvalue()
    assert "\x1b" not in text
    assert "\r" not in text
    assert text.count("epoch 3/3") == 1
    assert isinstance(screens.screen_for(), Paper)


def test_signs_that_a_terminal_does_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.TextIOWrapper(io.BytesIO(), "latin-1")
    Paper(file).close(panels(), "epoch 5/5")
    file.flush()
    text = file.buffer.getvalue().decode("latin-1")  # type: ignore[attr-defined]
    assert "*" in text
    assert text.isascii()


def test_a_notebook_shows_one_picture_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    pages: list[tuple[str, str]] = []
    handle = SimpleNamespace(update=lambda page: pages.append(("update", page)))

    def display(page: str, display_id: bool) -> Any:
        pages.append(("display", page))
        assert display_id
        return handle

    module = SimpleNamespace(
        get_ipython=lambda: SimpleNamespace(kernel=object()),
        display=SimpleNamespace(HTML=str, display=display),
    )
    monkeypatch.setitem(sys.modules, "IPython", module)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "IPython.display", module.display)  # type: ignore[arg-type]
    assert isinstance(screens.screen_for(), Notebook)
    monkeypatch.setattr(Pace, "due", lambda self: True)
    run(progress="plot", metrics=["accuracy"])
    assert [how for how, _ in pages] == ["display", *["update"] * (len(pages) - 1)]
    last = pages[-1][1]
    assert last.count("<svg") == 2
    assert "val_accuracy" in last
    assert STEP in last


def test_ipython_in_a_terminal_is_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    module = SimpleNamespace(get_ipython=lambda: SimpleNamespace())
    monkeypatch.setitem(sys.modules, "IPython", module)  # type: ignore[arg-type]
    assert isinstance(screens.screen_for(Screen()), Terminal)


# --- asked for ------------------------------------------------------------------------------------


def test_what_is_none_of_the_ways_is_refused() -> None:
    with pytest.raises(ValueError, match="progress must be True or 'bar', 'plot', or False"):
        run(progress="curves")


def test_the_command_draws_curves(
    capsys: pytest.CaptureFixture[str], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = ["fit", "iris", "--epochs", "2", "--hidden", "4", "--out", "m"]
    assert main([*options, "--progress", "plot"]) == 0
    assert "val_accuracy" in capsys.readouterr().err
    assert main([*options, "--progress", "none"]) == 0
    assert capsys.readouterr().err == ""
    assert main([*options, "--progress", "plot", "--quiet"]) == 2
    assert "--quiet --progress plot: these contradict" in capsys.readouterr().err
