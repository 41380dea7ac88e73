"""A compiled step gives the same bits as the step itself, whatever the network and optimizer."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import chainrule
from chainrule import backend, nn, optim
from tests.compiler.nets import NETS, batches, make_step
from tests.optim.records import CASES

MODES = ["reference"] if backend.why_not_native else ["tape", "reference"]
PLAIN = [c for c in CASES if c.needs == "gradient"]


def bits(net: nn.Module, optimizer: Any) -> list[bytes]:
    """All that a step changes."""
    found = [*net.state_dict().values(), *[p.grad for p in net.parameters() if p.grad is not None]]
    for state in optimizer.state_dict()["state"].values():
        found += [chainrule.as_tensor(v) for v in state.values() if v is not None]
    return [t.detach().numpy().tobytes() for t in found]


def run(label: str, make: Any, mode: str | None, steps: int = 7) -> tuple[Any, ...]:
    """The losses and all that is left after some steps."""
    chainrule.manual_seed(0)
    net_of, shape = NETS[label]
    net = net_of()
    optimizer = make(net.parameters())
    step: Any = make_step(net, optimizer)
    if mode is not None:
        step = chainrule.compile(step, mode=mode if mode == "reference" else None, fullgraph=True)
    losses = [step(x, y).item() for x, y in batches(shape, steps)]
    repeated = 0 if mode is None else step.repeated
    return losses, bits(net, optimizer), chainrule.get_rng_state().tolist(), repeated


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("label", NETS)
def test_networks(label: str, mode: str) -> None:
    def make(parameters: Any) -> Any:
        return optim.Adam(parameters, lr=0.01)

    eager, compiled = run(label, make, None), run(label, make, mode)
    assert compiled[3] >= 3
    assert eager[:3] == compiled[:3]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", PLAIN, ids=[c.label for c in PLAIN])
def test_optimizers(case: Any, mode: str) -> None:
    def make(parameters: Any) -> Any:
        return case.make(optim, list(parameters))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        eager = run("mlp", make, None)
        try:
            compiled = run("mlp", make, mode)
        except chainrule.compiler.NotRepeatable as reason:
            assert case.name in EAGER, reason  # noqa: PT017
            return
    assert case.name not in EAGER
    assert eager[:3] == compiled[:3]


# Their steps read numbers, or draw in Python.
EAGER: set[str] = set()


@pytest.mark.skipif(backend.why_not_native != "", reason="there are no compiled kernels")
@pytest.mark.parametrize("label", ["mlp", "dropout", "cnn", "lstm"])
@pytest.mark.parametrize("ordered", [False, True])
def test_epochs(label: str, ordered: bool) -> None:
    net_of, shape = NETS[label]
    data = batches(shape, 1, size=53)[0]
    outcomes = []
    for compiled in (False, True):
        chainrule.manual_seed(0)
        net = net_of()
        optimizer = optim.Adam(net.parameters(), lr=0.01)
        step: Any = make_step(net, optimizer)
        order = chainrule.randperm(53) if ordered else chainrule.arange(53)
        if compiled:
            step = chainrule.compile(step)
            losses = step.epoch(*data, batch_size=5, order=order if ordered else None).tolist()
            assert step.repeated == 7
        else:
            rows = [order[i : i + 5] for i in range(0, 50, 5)]
            losses = [step(*[t[some] for t in data]).item() for some in rows]
        outcomes.append((losses, bits(net, optimizer), chainrule.get_rng_state().tolist()))
    assert len(outcomes[0][0]) == 10
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("kind", ["SGD", "Adam", "RMSprop", "Adadelta"])
def test_surfaces(kind: str) -> None:
    outcomes = []
    for compiled in (False, True):
        w = chainrule.tensor([-1.0, 2.0], requires_grad=True)
        optimizer = getattr(optim, kind)([w], lr=1e-3)

        def step() -> Any:
            optimizer.zero_grad()  # noqa: B023
            loss = (1 - w[0]) ** 2 + 100 * (w[1] - w[0] ** 2) ** 2  # noqa: B023
            loss.backward()
            optimizer.step()  # noqa: B023
            return loss

        if compiled:
            losses = chainrule.compile(step).repeat(60).tolist()
        else:
            losses = [step().item() for _ in range(60)]
        outcomes.append((losses, w.detach().tolist(), w.grad.tolist()))
    assert outcomes[0] == outcomes[1]


def test_schedules_clipping_by_value_and_accumulation() -> None:
    outcomes = []
    for compiled in (False, True):
        chainrule.manual_seed(0)
        net, _ = NETS["mlp"][0](), None
        optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        schedule = optim.lr_scheduler.ExponentialLR(optimizer, 0.9)

        def step(x: Any, y: Any) -> Any:
            optimizer.zero_grad()  # noqa: B023
            for part in (slice(0, 2), slice(2, 5)):
                loss = nn.functional.cross_entropy(net(x[part]), y[part])  # noqa: B023
                loss.backward()
            nn.utils.clip_grad_value_(net.parameters(), 0.05)  # noqa: B023
            optimizer.step()  # noqa: B023
            schedule.step()  # noqa: B023
            return loss

        call: Any = chainrule.compile(step, fullgraph=True) if compiled else step
        losses = [call(x, y).item() for x, y in batches((4,), 8)]
        rate = optimizer.param_groups[0]["lr"]
        outcomes.append((losses, bits(net, optimizer), rate, schedule.last_epoch))
    assert outcomes[0] == outcomes[1]
