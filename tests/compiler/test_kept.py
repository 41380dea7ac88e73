"""Steps of a tape that need no Python: which they are, and that they read no memory too early."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

import chainrule
from chainrule import backend, nn, optim
from chainrule.compiler.tape import Tape
from tests.compiler.nets import NETS, batches, make_step
from tests.compiler.test_equal import bits

pytestmark = pytest.mark.skipif(backend.why_not_native != "", reason="no compiled kernels")


def tape_of(compiled: Any) -> Tape:
    """The tape of a step that has one."""
    (entry,) = compiled.entries.values()
    assert isinstance(entry.runner, Tape)
    return entry.runner


@pytest.mark.parametrize("label", NETS)
def test_an_arena_of_nan_changes_nothing(label: str) -> None:
    outcomes = []
    for spoiled in (False, True):
        chainrule.manual_seed(0)
        make, shape = NETS[label]
        net = make()
        optimizer = optim.Adam(net.parameters(), lr=0.01)
        step: Any = make_step(net, optimizer)
        if spoiled:
            step = chainrule.compile(step, fullgraph=True)
        losses = []
        for number, (x, y) in enumerate(batches(shape, 7)):
            if spoiled and number > 3:
                tape_of(step).arena[...] = 255
            losses.append(step(x, y).item())
        outcomes.append((losses, bits(net, optimizer)))
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("label", NETS)
def test_which_steps_call_python(label: str) -> None:
    make, shape = NETS[label]
    net = make()
    compiled = chainrule.compile(make_step(net, optim.Adam(net.parameters())), fullgraph=True)
    for x, y in batches(shape, 4):
        compiled(x, y)
    others = [s.kernel for s in compiled.program.instructions if s.way != "kept"]
    assert others == []
    kept = len(compiled.program.instructions) - len(others)
    assert f"\n{kept} of them are kept as functions" in compiled.program.explain()


def test_other_threads_run_during_an_epoch() -> None:
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 3))
    compiled = chainrule.compile(make_step(net, optim.SGD(net.parameters(), lr=1e-3)))
    x, y = batches((4,), 1, size=60)[0]
    compiled.epoch(x, y, batch_size=5)
    order = chainrule.arange(60).repeat(4000)
    ticks, over = [], threading.Event()

    def tick() -> None:
        while not over.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.0005)

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.perf_counter()
    while time.perf_counter() - start < 0.3:
        compiled.epoch(x, y, batch_size=5, order=order)
    end = time.perf_counter()
    over.set()
    thread.join()
    # With the GIL held they would get their turn every 50 ms.
    assert len([t for t in ticks if start < t < end]) > 3 * (end - start) / 0.05


def test_python_is_called_where_it_has_to_be() -> None:
    x = chainrule.rand(4, 3)
    compiled = chainrule.compile(lambda x: chainrule.cumprod(x, 0).tanh().sum(), fullgraph=True)
    for _ in range(5):
        result = compiled(x)
    assert result.item() == chainrule.cumprod(x, 0).tanh().sum().item()
    assert "cumprod(%0, dim=-2, reverse=False)  # called by Python" in str(compiled.program)
    said = compiled.program.explain()
    assert "2 of them are kept as functions, which need no Python" in said
    assert "called by Python each time: cumprod" in said
    assert tape_of(compiled).in_python == [0]


def test_clipped_gradients_need_no_python() -> None:
    outcomes = []
    for compiled in (False, True):
        chainrule.manual_seed(0)
        net = NETS["mlp"][0]()
        optimizer = optim.SGD(net.parameters(), lr=0.1)

        def step(x: Any, y: Any) -> Any:
            optimizer.zero_grad()  # noqa: B023
            nn.functional.cross_entropy(net(x), y).backward()  # noqa: B023
            norm = nn.utils.clip_grad_norm_(net.parameters(), 0.3)  # noqa: B023
            optimizer.step()  # noqa: B023
            return norm

        call: Any = chainrule.compile(step, fullgraph=True) if compiled else step
        norms = [call(x, y).item() for x, y in batches((4,), 8)]
        outcomes.append((norms, bits(net, optimizer)))
    assert min(outcomes[0][0]) > 0.3
    assert outcomes[0] == outcomes[1]
    assert [s.kernel for s in call.program.instructions if s.way != "kept"] == []


@pytest.mark.parametrize("name", NETS)
def test_no_step_of_a_network_needs_python(name: str) -> None:
    net = NETS[name][0]()
    step = make_step(net, optim.Adam(net.parameters()))
    compiled = chainrule.compile(step, fullgraph=True)
    for x, y in batches(NETS[name][1], 5):
        compiled(x, y)
    assert [s.kernel for s in compiled.program.instructions if s.way != "kept"] == []
