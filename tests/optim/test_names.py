"""Optimizers by their names, and who asks for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chainrule import nn, optim, train
from chainrule.estimators import NetworkClassifier
from chainrule.optim.names import optimizer_class
from chainrule.train.automatic import Settings, make_optimizer


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("adam", optim.Adam),
        ("SGD", optim.SGD),
        ("L-BFGS", optim.LBFGS),
        ("conjugate_gradient", optim.ConjugateGradient),
        ("iRprop-Minus", optim.IRpropMinus),
    ],
)
def test_names(name: str, kind: type[optim.Optimizer]) -> None:
    assert optimizer_class(name) is kind


ASKERS: list[Callable[[str], Any]] = [
    optimizer_class,
    lambda name: train.Trainer(nn.Linear(2, 1), "mse", name),
    lambda name: make_optimizer(Settings(optimizer=name), nn.Linear(2, 1)),
    lambda name: NetworkClassifier(solver=name).fit([[0.0], [1.0]], [0, 1]),
]


@pytest.mark.parametrize("name", ["adamm", "", "optimizer", "Minimizer", "hebbian", "lr_scheduler"])
@pytest.mark.parametrize("ask", ASKERS)
def test_other_names_are_refused(ask: Callable[[str], Any], name: str) -> None:
    with pytest.raises(ValueError, match=rf"unknown optimizer '{name}'; select from \[.*'adam'.*"):
        ask(name)


def test_every_optimizer_has_a_name() -> None:
    with pytest.raises(ValueError, match="select from") as caught:
        optimizer_class("?")
    for name in optim.__all__:
        cls = getattr(optim, name)
        by_name = isinstance(cls, type) and issubclass(cls, optim.Optimizer)
        listed = f"'{name.lower()}'" in str(caught.value)
        assert listed == (by_name and cls not in (optim.Optimizer, optim.Minimizer, optim.Hebbian))
