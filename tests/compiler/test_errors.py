"""Errors, interruptions and other threads leave behind what they do where nothing is compiled."""

from __future__ import annotations

import signal
import threading
import warnings
from typing import Any

import pytest

import chainrule
from chainrule import backend, nn, optim
from chainrule.backend import K

native = pytest.mark.skipif(backend.why_not_native != "", reason="there are no compiled kernels")


class Step:
    """A network, its optimizer and a training step."""

    def __init__(self, dropout: float = 0.0):
        chainrule.manual_seed(0)
        layers = [nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(dropout), nn.Linear(8, 3)]
        self.net = nn.Sequential(*layers)
        self.optimizer = optim.Adam(self.net.parameters(), lr=0.01)
        self.x, self.y = chainrule.randn(6, 4), chainrule.arange(6) % 3

    def __call__(self, x: Any, y: Any) -> Any:
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.net(x), y)
        loss.backward()
        self.optimizer.step()
        return loss

    def state(self) -> list[Any]:
        """All that lives on, as numbers."""
        states = [v for s in self.optimizer.state.values() for v in s.values()]
        tensors = [*self.net.state_dict().values(), chainrule.get_rng_state(), *states]
        return [t.tolist() if isinstance(t, chainrule.Tensor) else t for t in tensors]


def after(step: Step, call: Any) -> list[Any]:
    """The state after five calls, one with a target that is no class, and another."""
    for _ in range(5):
        call(step.x, step.y)
    with pytest.raises(IndexError):
        call(step.x, step.y + 1)
    call(step.x, step.y)
    return step.state()


def test_a_kernel_that_raises_counts_no_step() -> None:
    eager, other = Step(dropout=0.5), Step(dropout=0.5)
    wanted = after(eager, eager)
    chainrule.manual_seed(0)
    Step(dropout=0.5)  # draws as the first one did
    assert after(other, chainrule.compile(other, fullgraph=True)) == wanted


@native
def test_control_c_in_an_epoch_keeps_the_steps_that_were_taken() -> None:
    step, twin = Step(), Step()
    compiled = chainrule.compile(step, fullgraph=True)
    many = chainrule.arange(6).repeat(100_000)

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGPROF, interrupt)
    try:
        compiled.epoch(step.x, step.y, batch_size=6, order=many[:60])
        signal.setitimer(signal.ITIMER_PROF, 0.01)  # of the processor: some thousand steps
        with pytest.raises(KeyboardInterrupt):
            compiled.epoch(step.x, step.y, batch_size=6, order=many)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    (count,) = {int(s["step"]) for s in step.optimizer.state.values()}
    assert count > 10
    assert step.optimizer._steps_taken == count
    for _ in range(count):
        twin(twin.x, twin.y)
    # Python may have been interrupted while it counted the batches of the normalization.
    pairs = zip(step.net.parameters(), twin.net.parameters(), strict=True)
    assert all([p.tolist() == q.tolist() for p, q in pairs])
    assert compiled(step.x, step.y).item() == twin(twin.x, twin.y).item()


@native
@pytest.mark.parametrize("which", ["kernel", "check"])
def test_an_error_in_the_middle_of_an_epoch(which: str) -> None:
    w = nn.Parameter(chainrule.ones(2))
    optimizer = optim.SGD([w], lr=1.0)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = (w * x).sum()
        if which == "kernel":
            nn.functional.binary_cross_entropy(x.mean().reshape(1), chainrule.ones(1))
        else:
            chainrule.normal(0.0, 1 - x)
        loss.backward()
        optimizer.step()
        return loss

    compiled = chainrule.compile(step, fullgraph=True)
    x = chainrule.full((8, 2), 0.5)
    x[6] = 2.0  # no probability, and 1 - 2 no deviation
    with pytest.raises(RuntimeError, match="between 0 and 1|std") as raised:
        compiled.epoch(x, batch_size=1)
    assert "in call 6 of 8" in raised.value.__notes__[0]
    assert w.tolist() == [1 - 6 * 0.5] * 2


@native
def test_a_check_that_fails_without_an_error() -> None:
    """The step runs as it is, and the epoch goes on behind it."""
    w = nn.Parameter(chainrule.ones(2))
    optimizer = optim.SGD([w], lr=1.0)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = (w * x).sum()
        loss.backward()
        if K.all_in_range(x.array, 0.0, 1.0):
            optimizer.step()
        return loss

    x = chainrule.full((12, 2), 0.5)
    x[6] = 2.0
    losses = chainrule.compile(step, fullgraph=True).epoch(x, batch_size=1)
    assert losses.tolist() == [1 - 0.5 * i for i in range(6)] + [-8.0] + [
        -2 - 0.5 * i for i in range(5)
    ]


def test_other_threads_train_while_one_records() -> None:
    stop, seen = threading.Event(), []

    def train() -> None:
        net = nn.Linear(3, 1)
        optimizer = optim.SGD(net.parameters(), lr=0.01)
        schedule = optim.lr_scheduler.ExponentialLR(optimizer, 0.99)
        net.register_forward_hook(lambda *_: None)
        while not stop.is_set():
            optimizer.zero_grad()
            net(chainrule.ones(4, 3)).sigmoid().sum().backward()
            optimizer.step()
            schedule.step()
            seen.append(type(net.weight.grad.array).__name__)

    other = threading.Thread(target=train)
    other.start()
    try:
        programs = []
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for _ in range(20):
                step = Step()
                compiled = chainrule.compile(step)
                for _ in range(4):
                    compiled(step.x, step.y)
                programs.append(len(compiled.program.instructions))
    finally:
        stop.set()
        other.join()
    assert len(set(programs)) == 1
    assert set(seen) == {"ndarray"}


def test_an_exception_while_recording_leaves_plain_arrays() -> None:
    step = Step()
    fail = [False]

    def wrapped(x: Any, y: Any) -> Any:
        loss = step(x, y)
        if fail[0]:
            raise RuntimeError("after the update")
        return loss

    compiled = chainrule.compile(wrapped)
    compiled(step.x, step.y)
    fail[0] = True
    with pytest.raises(RuntimeError, match="after the update"):
        compiled(step.x, step.y)
    leaves = [*step.net.parameters(), *step.net.buffers()]
    leaves += [p.grad for p in step.net.parameters()]
    assert {type(t.array).__name__ for t in leaves} == {"ndarray"}


def test_what_changes_all_the_time_is_not_recorded_for_ever() -> None:
    number = 0.0

    def f(x: Any) -> Any:
        return x * number

    compiled = chainrule.compile(f)
    x = chainrule.ones(2)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for i in range(160):
            number = float(i // 4)
            assert compiled(x).tolist() == [number, number]
    assert "8 times in vain; the last time this changed: a number or text" in str(said[0].message)
    assert sum(["a number" in e.reason for e in compiled.entries.values()]) == 1


def test_a_parameter_put_into_the_place_of_another() -> None:
    net = nn.Linear(2, 1, bias=False)
    kept = net.weight
    compiled = chainrule.compile(lambda x: net(x).detach())
    x = chainrule.ones(1, 2)
    for _ in range(5):
        compiled(x)
    net.weight = nn.Parameter(chainrule.full((1, 2), 3.0))
    assert compiled(x).tolist() == [[6.0]]
    assert kept is not net.weight


def test_narrow_types() -> None:
    compiled = chainrule.compile(lambda x: (x * x + 1).sum(), fullgraph=True)
    results = [compiled(chainrule.ones(6, dtype=chainrule.bfloat16)) for _ in range(5)]
    assert [r.item() for r in results] == [12.0] * 5
    assert results[-1].dtype is chainrule.bfloat16
    assert compiled.repeated == 2


def test_many_threads_have_their_epochs_one_after_the_other() -> None:
    w = nn.Parameter(chainrule.ones(3))
    optimizer = optim.SGD([w], lr=0.01)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = ((w * x).tanh() ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss

    compiled, x = chainrule.compile(step), chainrule.randn(40, 3)
    compiled.epoch(x, batch_size=4)
    found: list[Any] = []
    work = [
        threading.Thread(target=lambda: found.append(compiled.epoch(x, batch_size=4)), daemon=True)
        for _ in range(8)
    ]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join(timeout=60)
    assert [len(losses) for losses in found] == [10] * 8


def test_arguments_that_the_function_refuses_are_no_form() -> None:
    def f(x: Any) -> Any:
        if len(x) > 100:
            raise ValueError("too long")
        return x * 2

    compiled = chainrule.compile(f)
    for n in range(101, 120):
        with pytest.raises(ValueError, match="too long"):
            compiled(chainrule.ones(n))
    assert compiled.entries == {}
    for _ in range(5):
        compiled(chainrule.ones(3))
    assert compiled.repeated == 2


def test_of_too_many_forms_it_warns_once() -> None:
    compiled = chainrule.compile(lambda x: x * 2)
    for n in range(1, 9):
        compiled(chainrule.ones(n))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        answers = [compiled(chainrule.ones(n)).sum().item() for n in range(9, 20)]
    assert answers == [2.0 * n for n in range(9, 20)]
    assert [str(w.message).count("more than 8 forms of arguments") for w in told] == [1]


def test_fullgraph_is_an_error_each_time() -> None:
    compiled = chainrule.compile(lambda x: x * 2 if x.sum().item() > 0 else x, fullgraph=True)
    compiled(chainrule.ones(3))
    for _ in range(3):
        with pytest.raises(chainrule.compiler.NotRepeatable, match="return the tensor and look"):
            compiled(chainrule.ones(3))
