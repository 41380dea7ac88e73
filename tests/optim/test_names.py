"""Optimizers by their names, and who asks for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import chainrule
from chainrule import nn, optim, train
from chainrule.estimators import NetworkClassifier
from chainrule.optim.names import make_optimizer, optimizer_class
from chainrule.train.automatic.settings import Settings
from chainrule.train.automatic.training import optimizer_of


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
    lambda name: optimizer_of(Settings(optimizer=name), nn.Linear(2, 1)),
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


def test_an_optimizer_is_made_or_taken_as_it_is() -> None:
    weights = [nn.Parameter(chainrule.ones(2))]
    given = optim.SGD(weights, lr=0.1)
    assert make_optimizer("Trainer", given, []) is given
    assert type(make_optimizer("Trainer", None, weights)) is optim.Adam
    made = make_optimizer("Trainer", "rmsprop", weights, lr=0.3)
    assert type(made) is optim.RMSprop
    assert made.param_groups[0]["lr"] == 0.3
    assert type(make_optimizer("Trainer", lambda p: optim.Rprop(p), weights)) is optim.Rprop


DATA = chainrule.ones(4, 2)


@pytest.mark.parametrize("wrong", [3, lambda p: p, list])
@pytest.mark.parametrize(
    ("asker", "ask"),
    [
        ("Trainer", lambda wrong: train.Trainer(nn.Linear(2, 1), "mse", wrong)),
        (
            "fit_many",
            lambda wrong: train.fit_many(
                lambda: nn.Linear(2, 1), (DATA, DATA[:, :1]), "mse", wrong, seeds=[0]
            ),
        ),
    ],
)
def test_what_makes_no_optimizer_is_refused(asker: str, ask: Any, wrong: Any) -> None:
    with pytest.raises(TypeError, match=rf"{asker}: expected an Optimizer, got \w+"):
        ask(wrong)


def test_a_loss_or_gradient_that_is_not_finite_has_an_error_of_its_own() -> None:
    p = nn.Parameter(chainrule.ones(2))
    p.grad = chainrule.tensor([1.0, float("nan")])
    with pytest.raises(optim.NotFiniteError, match="1 NaN and 0 infinite values"):
        optim.SGD([p], lr=0.1).step()
    with pytest.raises(optim.NotFiniteError, match="the loss at the starting point is not finite"):
        optim.BFGS([p]).step(lambda: (p - 2).log().sum())
    assert p.tolist() == [1.0, 1.0]
