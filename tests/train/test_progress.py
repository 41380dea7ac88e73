"""The bar of a run: what stands beside it, when it is drawn, and what it costs."""

from __future__ import annotations

import functools
import io
import re
from typing import Any

import pytest
from train.small import problem

import chainrule
from chainrule import models, train
from chainrule.train import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    @property
    def states(self) -> list[str]:
        """What was drawn, one state of the line after the other."""
        return [s.strip() for s in re.split(r"[\r\n]", self.getvalue()) if s.strip()]


def shown_on(file: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bars go to this file, and each batch is shown."""
    bar = functools.partial(progress.tqdm, file=file, mininterval=0)
    monkeypatch.setattr(progress, "tqdm", bar)
    monkeypatch.setattr(progress.Progress, "interval", -1.0)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    shown = Terminal()
    shown_on(shown, monkeypatch)
    return shown


def run(**options: Any) -> train.History:
    x, y = problem()
    chainrule.manual_seed(0)
    trainer = train.Trainer(models.MLP(4, [8], 3), "cross_entropy", **options)
    return trainer.fit((x[:64], y[:64]), (x[64:], y[64:]), epochs=3, batch_size=16)


def numbers(state: str) -> dict[str, float]:
    """The names and numbers behind the bar."""
    return {k: float(v) for k, v in re.findall(r"(\w+) (-?[\d.]+(?:e-?\d+)?)(?:,|\]|$)", state)}


def test_the_bar_shows_the_epoch_the_loss_and_the_metrics(terminal: Terminal) -> None:
    history = run(metrics=["accuracy"])
    seen = [numbers(s) for s in terminal.states]
    assert any("epoch 2/3" in s and "12/12" not in s for s in terminal.states)
    assert "12/12" in terminal.states[-1]
    live = [s for s in seen if {"loss", "accuracy", "val_loss", "val_accuracy"} <= set(s)]
    assert len(live) >= 8  # the batches of the second and the third epoch
    for first in history[:2]:
        after = [s for s in live if s["val_loss"] == pytest.approx(first["val_loss"], rel=1e-3)]
        assert after
        assert all(
            s["val_accuracy"] == pytest.approx(first["val_accuracy"], rel=1e-3) for s in after
        )
    last = numbers(terminal.states[-1])
    for name in ("loss", "accuracy", "val_loss", "val_accuracy"):
        assert last[name] == pytest.approx(history[-1][name], rel=1e-3)


def test_metrics_of_the_epoch_so_far(terminal: Terminal) -> None:
    sizes: list[int] = []

    def size(output: Any, target: Any) -> float:
        sizes.append(len(target))
        return float(len(target))

    run(metrics={"size": size})
    during = [numbers(s).get("size") for s in terminal.states]
    assert {16.0, 32.0, 48.0, 64.0} <= set(during)
    assert sizes.count(16) == 3


def test_what_a_part_of_an_epoch_has_no_metric_for_is_left_out(terminal: Terminal) -> None:
    def whole(output: Any, target: Any) -> float:
        if len(target) == 16:
            raise ValueError("too few")
        return 1.0

    assert run(metrics={"whole": whole})["whole"] == [1, 1, 1]
    assert any("whole" in numbers(s) for s in terminal.states)


@pytest.mark.parametrize("how", ["no terminal", "progress=False"])
def test_no_bar(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO() if how == "no terminal" else Terminal()
    shown_on(shown, monkeypatch)
    calls: list[int] = []

    def count(output: Any, target: Any) -> float:
        calls.append(len(target))
        return 0.0

    run(metrics={"count": count}, progress=how == "no terminal")
    assert shown.getvalue() == ""
    assert calls == [64, 32] * 3  # once an epoch, for training and validation
