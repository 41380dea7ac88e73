"""Modules and other places: there is one device, one process, no compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import chainrule
from chainrule import absent, nn


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda net: net.cuda(), RuntimeError, "'cuda' is not available; tensors live on 'cpu'"),
        (lambda net: net.cuda(0), RuntimeError, "'cuda' is not available"),
        (lambda net: net.xpu(), RuntimeError, "'xpu' is not available"),
        (lambda net: net.share_memory(), RuntimeError, "not shared between processes"),
        (lambda net: net.to_empty(device="meta"), RuntimeError, "'meta' is not available"),
    ],
)
def test_other_places_are_refused(
    call: Callable[[nn.Module], Any], error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        call(nn.Linear(2, 1))


def test_new_memory() -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    weight, array = net[0].weight, net[0].weight.array
    assert net.to_empty(device="cpu") is net
    assert net[0].weight is weight
    assert net[0].weight.shape == (3, 2)
    assert net[0].weight.array is not array
    assert net[0].weight.requires_grad


def test_compiling_in_place_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(absent, "_told", set())
    net = nn.Linear(2, 1)
    with pytest.warns(UserWarning, match="left as it is") as seen:
        net.compile(mode="max-autotune")
    assert seen[0].filename == __file__
    net.compile()
    assert net(chainrule.ones(1, 2)).shape == (1, 1)


def test_the_older_backward_hook() -> None:
    seen = []
    net = nn.Linear(2, 1)
    handle = net.register_backward_hook(lambda m, i, o: seen.append(o[0].tolist()))
    net(chainrule.ones(1, 2, requires_grad=True)).sum().backward()
    handle.remove()
    net(chainrule.ones(1, 2, requires_grad=True)).sum().backward()
    assert seen == [[[1.0]]]
