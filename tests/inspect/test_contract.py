"""What holds for every instrument: it works on any network, changes nothing, prints and draws."""

from __future__ import annotations

import json
from inspect import signature
from typing import Any

import numpy as np
import pytest

import chainrule
from chainrule import inspect, nn
from chainrule.inspect.core.results import Result
from looking.drawn import assert_drawn_well, figure_of
from looking.nets import NETS, Net
from looking.records import RECORDS

CASES = [(name, net) for name, record in RECORDS.items() for net in record.nets]
REFUSALS = [(n, net, text) for n, r in RECORDS.items() for net, text in r.refused.items()]


def made(net: str) -> Net:
    chainrule.manual_seed(0)
    return NETS[net]()


def state(model: nn.Module) -> dict[str, Any]:
    """Everything an instrument could leave changed."""
    parameters, modules = dict(model.named_parameters()), list(model.modules())
    grads = {n: p.grad for n, p in parameters.items()}
    hooks = [[(k, len(v)) for k, v in m.__dict__.items() if "_hooks" in k] for m in modules]
    return {
        "modes": [m.training for m in modules],
        "values": {n: v.detach().numpy().copy() for n, v in model.state_dict().items()},
        "gradients": {n: None if g is None else g.numpy().copy() for n, g in grads.items()},
        "which": [*map(id, grads.values()), *map(id, model.buffers()), *map(id, modules)],
        "wanted": [p.requires_grad for p in parameters.values()],
        "hooks": hooks,
        "names": [sorted(m.__dict__) for m in modules],
        "random": chainrule.get_rng_state().numpy().copy(),
        "recording": chainrule.is_grad_enabled(),
    }


def test_every_instrument_has_a_record() -> None:
    assert set(RECORDS) == set(inspect.INSTRUMENTS)


@pytest.mark.parametrize(("name", "net"), CASES)
def test_it_works_and_changes_nothing(name: str, net: str) -> None:
    seen = made(net)
    seen.model.train()
    loss = seen.loss(_called(seen), seen.targets)
    loss.backward()
    next(seen.model.parameters()).requires_grad_(False)
    before = state(seen.model)
    result = RECORDS[name].call(seen)
    after = state(seen.model)
    for key, value in before.items():
        np.testing.assert_equal(after[key], value, err_msg=key)
    assert isinstance(result, Result)
    assert str(result).strip()
    json.dumps(result.to_dict())


def _called(net: Net) -> Any:
    return net.model(*net.inputs) if isinstance(net.inputs, tuple) else net.model(net.inputs)


@pytest.mark.parametrize(("name", "net"), [c for c in CASES if RECORDS[c[0]].draws])
def test_its_picture_can_be_read(name: str, net: str) -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    drawn = RECORDS[name].call(made(net)).plot()
    try:
        assert_drawn_well(drawn)
    finally:
        plt.close(figure_of(drawn))


@pytest.mark.parametrize(("name", "net", "text"), REFUSALS)
def test_what_it_cannot_look_into_is_refused(name: str, net: str, text: str) -> None:
    with pytest.raises((TypeError, ValueError), match=text):
        RECORDS[name].call(made(net))


def test_every_instrument_says_what_it_has_to_be_given() -> None:
    """The command line gives it that, and nothing else."""
    given = {"model", "inputs", "targets", "data", "loss"}
    for one in inspect.INSTRUMENTS.values():
        parameters = signature(one.function).parameters
        required = {n for n, p in parameters.items() if p.default is p.empty and p.kind < 2}
        assert required & given <= set(one.needs), one.name
        assert set(one.needs) & given <= set(parameters), one.name


def test_every_purpose_is_a_sentence() -> None:
    for instrument in inspect.INSTRUMENTS.values():
        assert 15 < len(instrument.purpose) < 130, instrument
