"""Steps that draw from several streams, of which one stands in for the default generator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import chainrule
from chainrule import backend, nn
from chainrule.random import Generator, Streams

MODES = ["reference"] if backend.why_not_native else [None, "reference"]


def each(streams: Streams, count: int) -> Callable[[Any], Any]:
    """Draws from one stream after the other."""

    def step(x: Any) -> Any:
        parts = []
        for i in range(count):
            streams.select(i)
            parts.append(nn.functional.dropout(x, 0.5) + chainrule.randn(3))
        return chainrule.stack(parts)

    return step


@pytest.mark.parametrize("mode", MODES)
def test_a_step_selects_streams(mode: str | None) -> None:
    """Each draw is from its stream at each call, also when streams are seeded anew."""
    outcomes = []
    x = chainrule.ones(3)
    for compiled in (False, True):
        streams = Streams([Generator().manual_seed(i) for i in range(3)])
        step: Any = each(streams, 3)
        if compiled:
            step = chainrule.compile(step, mode=mode, fullgraph=True)
        found = []
        with streams:
            for k in range(9):
                if k == 6:
                    streams.generators[1].manual_seed(77)
                found.append(step(x).tolist())
        outcomes.append((found, [g.get_state().tolist() for g in streams.generators]))
        if compiled:
            assert step.repeated == 6
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("mode", MODES)
def test_streams_that_are_selected_outside(mode: str | None) -> None:
    outcomes = []
    for compiled in (False, True):
        streams = Streams([Generator().manual_seed(i) for i in range(2)])

        def step() -> Any:
            return chainrule.rand(4)

        function: Any = chainrule.compile(step, mode=mode, fullgraph=True) if compiled else step
        found = []
        with streams:
            for k in range(9):
                streams.select(k % 2)
                found.append(function().tolist())
        chainrule.manual_seed(3)
        found.append(function().tolist())  # and without any
        outcomes.append(found)
    assert outcomes[0] == outcomes[1]


def test_a_record_draws_from_the_streams_of_the_moment() -> None:
    outcomes = []
    for compiled in (False, True):
        chosen: list[Streams] = []

        def step() -> Any:
            chosen[-1].select(1)  # noqa: B023
            return chainrule.rand(4)

        function: Any = chainrule.compile(step, fullgraph=True) if compiled else step
        found = []
        for seed in (0, 10):
            chosen[:] = [Streams([Generator().manual_seed(seed + i) for i in range(2)])]
            with chosen[-1]:
                found += [function().tolist() for _ in range(6)]
        outcomes.append(found)
    assert outcomes[0] == outcomes[1]


def test_draws_from_streams_are_kept() -> None:
    if backend.current() != "native":
        pytest.skip("there are no compiled kernels")
    streams = Streams([Generator().manual_seed(i) for i in range(3)])

    def step(x: Any) -> Any:
        parts = []
        for i in range(3):
            streams.select(i)
            parts.append(nn.functional.dropout(x, 0.5))
        return chainrule.stack(parts)

    compiled = chainrule.compile(step)
    with streams:
        for _ in range(5):
            compiled(chainrule.ones(4))
        draws = [i for i in compiled.program.instructions if i.effect == "draws"]
        assert len(draws) == 3
        assert {i.way for i in draws} == {"kept"}
        said = compiled.verify(chainrule.ones(4))
    assert "give the same bits" in said
