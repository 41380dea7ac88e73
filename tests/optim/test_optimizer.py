"""What all optimizers share: groups, errors, steps, files."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from helpers import assert_close
from optim.weights import with_gradient

import chainrule
from chainrule import Tensor, backend, nn, optim
from chainrule.optim.settings import Interval


def weight(*values: float) -> Tensor:
    return chainrule.tensor(values, dtype=chainrule.float64, requires_grad=True)


# --- what is refused ------------------------------------------------------------------------------


W = weight(1.0, 2.0)


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "empty list": (lambda: optim.SGD([]), ValueError, "SGD: got an empty parameter list"),
    "tensor": (lambda: optim.SGD(W), TypeError, r"got a Tensor; write \[tensor\]"),
    "set": (lambda: optim.SGD([{"params": {W}}]), TypeError, "need an order, got a set"),
    "set of all": (lambda: optim.SGD({W}), TypeError, "need an order, got a set"),
    "number": (lambda: optim.SGD([1.0]), TypeError, "can only optimize Tensors, got float"),
    "integers": (
        lambda: optim.SGD([chainrule.zeros(3, dtype=chainrule.int64)]),
        ValueError,
        r"parameter 0 of shape \(3,\) has dtype .*int64; only floating point",
    ),
    "twice": (lambda: optim.SGD([W, W]), ValueError, "parameter 1 .* appears more than once"),
    "twice in two groups": (
        lambda: optim.SGD([{"params": [W]}, {"params": W}]),
        ValueError,
        "parameter 0 .* appears more than once",
    ),
    "non-leaf": (lambda: optim.SGD([W * 2]), ValueError, "can't optimize a non-leaf Tensor"),
    "expanded": (
        lambda: optim.SGD([chainrule.zeros(1).expand(3)]),
        ValueError,
        r"share memory.*clone\(\)",
    ),
    "no params": (lambda: optim.SGD([{"lr": 1.0}]), ValueError, "needs the key 'params'"),
    "no dict": (
        lambda: optim.SGD([W]).add_param_group([weight(1.0)]),
        TypeError,
        "must be a dict",
    ),
    "unknown argument": (
        lambda: optim.SGD([W], learning_rate=1),
        TypeError,
        "unexpected keyword .*learning_rate",
    ),
    "unknown setting": (
        lambda: optim.SGD([{"params": [W], "learning_rate": 1}]),
        ValueError,
        r"unknown settings \['learning_rate'\].*takes .*'lr'",
    ),
    "negative lr": (lambda: optim.SGD([W], lr=-0.1), ValueError, r"SGD: invalid lr: -0.1; .*\[0"),
    "NaN lr": (lambda: optim.Adam([W], lr=float("nan")), ValueError, "Adam: invalid lr: nan"),
    "negative lr of a group": (
        lambda: optim.SGD([{"params": [W], "lr": -1}]),
        ValueError,
        "SGD: invalid lr: -1",
    ),
    "negative lr under a valid one": (
        lambda: optim.SGD([{"params": [W], "lr": 0.1}], lr=-1),
        ValueError,
        "SGD: invalid lr: -1",
    ),
    "lr tensor": (
        lambda: optim.SGD([W], lr=chainrule.tensor([0.1, -0.1])),
        ValueError,
        "SGD: invalid lr",
    ),
    "lr of another shape": (
        lambda: optim.SGD([W], lr=chainrule.ones(3)),
        ValueError,
        r"learning rate of shape \(3,\) does not fit a parameter of shape \(2,\)",
    ),
    "too many rates": (
        lambda: optim.SGD([W], lr=[0.1, 0.2]),
        ValueError,
        "2 learning rates for 1 parameters",
    ),
    "betas": (
        lambda: optim.Adam([W], betas=(0.9, 1.0)),
        ValueError,
        r"Adam: invalid betas: \(0.9, 1.0\); it must lie in \[0.0, 1.0\)",
    ),
    "betas of a group": (
        lambda: optim.AdamW([{"params": [W], "betas": (-0.1, 0.9)}]),
        ValueError,
        "AdamW: invalid betas",
    ),
    "one beta": (lambda: optim.Adam([W], betas=0.9), ValueError, "betas must be a pair"),
    "rho": (lambda: optim.Adadelta([W], rho=1.1), ValueError, r"rho: 1.1; .*\[0.0, 1.0\]"),
    "alpha": (lambda: optim.RMSprop([W], alpha=1.1), ValueError, "RMSprop: invalid alpha"),
    "nesterov of a group": (
        lambda: optim.SGD([{"params": [W], "nesterov": True}]),
        ValueError,
        "requires a momentum",
    ),
    "etas": (lambda: optim.Rprop([W], etas=(1.2, 0.5)), ValueError, "0 < etaminus < 1 < etaplus"),
    "step_sizes": (
        lambda: optim.Rprop([W], step_sizes=(1, 0.1)),
        ValueError,
        "0 <= smallest <= largest",
    ),
    "rates of ASGD": (
        lambda: optim.ASGD([W], lr=chainrule.ones(2)),
        ValueError,
        "ASGD: lr must be one number",
    ),
    "capturable": (lambda: optim.Adam([W], capturable=True), ValueError, "CUDA graphs"),
    "fused and foreach": (
        lambda: optim.Adam([W], fused=True, foreach=True),
        RuntimeError,
        "`fused` and `foreach`",
    ),
    "fused and differentiable": (
        lambda: optim.Adam([W], fused=True, differentiable=True),
        RuntimeError,
        "differentiable",
    ),
    "state of other groups": (
        lambda: optim.SGD([W]).load_state_dict({"param_groups": [], "state": {}}),
        ValueError,
        "has 0 parameter groups, this optimizer has 1",
    ),
}


@pytest.mark.parametrize(("call", "error", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_a_generator_that_is_used_up() -> None:
    parameters = nn.Linear(2, 1).parameters()
    optim.SGD(parameters)
    with pytest.raises(ValueError, match="a generator can be used only once"):
        optim.SGD(parameters)


def test_intervals_and_their_ends() -> None:
    assert [x in Interval(0, 1, "(]") for x in (0, 0.5, 1, float("nan"))] == [
        False,
        True,
        True,
        False,
    ]
    assert [str(Interval(0, 1, ends)) for ends in ("[)", "[]", "()")] == [
        "[0, 1)",
        "[0, 1]",
        "(0, 1)",
    ]
    assert str(Interval(1)) == "[1, infinity)"


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_no_parameter_changes_if_a_gradient_is_not_finite(bad: float) -> None:
    first, second, third = with_gradient(1.0), with_gradient(2.0, 3.0), with_gradient(4.0)
    second.grad = chainrule.tensor([1.0, bad], dtype=chainrule.float64)
    optimizer = optim.Adam([{"params": [("a", first)]}, {"params": [("b", second), ("c", third)]}])
    counts = "1 NaN and 0" if bad != bad else "0 NaN and 1"
    message = rf"parameter 0 'b' of shape \(2,\) in group 1 has {counts} infinite values; no param"
    with pytest.raises(RuntimeError, match=message):
        optimizer.step()
    assert [p.tolist() for p in (first, second, third)] == [[1.0], [2.0, 3.0], [4.0]]
    assert optimizer.state_dict()["state"] == {}
    optimizer.check_finite = False
    optimizer.step()
    assert first.item() != 1.0
    assert not np.isfinite(second.tolist()[1])


def test_huge_gradients_are_finite() -> None:
    """Their sum of squares is not."""
    w = with_gradient(1e200, 1.0)
    optim.SGD([w], lr=1.0).step()
    assert w.tolist() == [0.0, 0.0]


def test_a_state_of_another_shape_is_refused() -> None:
    w, v = with_gradient(1.0, 2.0), weight(1.0, 2.0, 3.0)
    optimizer = optim.Adam([w])
    optimizer.step()
    with pytest.raises(ValueError, match=r"'exp_avg' has shape \(2,\) for a parameter of shape"):
        optim.Adam([v]).load_state_dict(optimizer.state_dict())


# --- steps ----------------------------------------------------------------------------------------


def test_zero_grad_both_ways() -> None:
    w = with_gradient(1.0)
    optimizer = optim.SGD([w])
    optimizer.zero_grad(set_to_none=False)
    assert w.grad is not None
    assert w.grad.tolist() == [0.0]
    optimizer.zero_grad()
    assert w.grad is None
    optimizer.zero_grad(set_to_none=False)
    assert w.grad is None


def test_a_closure_is_called_with_gradients_enabled() -> None:
    w = weight(2.0)
    optimizer = optim.SGD([w], lr=0.25)
    calls = []

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        calls.append(loss)
        return loss

    with chainrule.no_grad():
        loss = optimizer.step(closure)
    assert loss is calls[0]
    assert (len(calls), loss.item(), w.item()) == (1, 4.0, 1.0)
    assert optimizer.step() is None


def test_several_losses_add_up_before_a_step() -> None:
    w, v = weight(1.0, 2.0), weight(1.0, 2.0)
    for loss in (lambda x: (x * x).sum(), lambda x: x.prod(), lambda x: x.sin().sum()):
        loss(w).backward()
    ((v * v).sum() + v.prod() + v.sin().sum()).backward()
    for p in (w, v):
        optim.Adam([p], lr=0.1).step()
    assert_close(w.detach(), v.detach(), rtol=1e-15)


def test_groups_have_settings_of_their_own_and_can_be_added() -> None:
    w, v, u = with_gradient(1.0), with_gradient(1.0), with_gradient(1.0)
    optimizer = optim.SGD([{"params": [w]}, {"params": v, "lr": 0.5}], lr=0.1)
    optimizer.add_param_group({"params": [u], "weight_decay": 1.0, "lr": 0.25})
    optimizer.step()
    assert [p.item() for p in (w, v, u)] == pytest.approx([0.9, 0.5, 0.5])
    assert [g["weight_decay"] for g in optimizer.param_groups] == [0, 0, 1.0]
    group = {"params": [weight(1.0)]}
    optimizer.add_param_group(group)
    assert set(group) == {"params"}  # what was given stays as it was


def test_hooks_around_a_step() -> None:
    w = with_gradient(1.0)
    optimizer = optim.SGD([w], lr=0.5)
    seen: list[Any] = []
    before = optimizer.register_step_pre_hook(lambda o, a, k: seen.append(("before", w.item())))
    optimizer.register_step_post_hook(lambda o, a, k: seen.append(("after", w.item(), o)))
    optimizer.step()
    before.remove()
    before.remove()
    optimizer.step()
    assert seen == [("before", 1.0), ("after", 0.5, optimizer), ("after", 0.0, optimizer)]
    optimizer.register_step_pre_hook(lambda o, a, k: (a, k))
    with pytest.raises(RuntimeError, match="a hook of a step returned a value"):
        optimizer.step()
    assert w.item() == 0.0


def test_a_step_invalidates_what_was_saved_for_backward() -> None:
    w = with_gradient(1.0, 2.0)
    loss = (w**3).sum()
    version = w._version
    optim.SGD([w], lr=0.1).step()
    assert w._version > version
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_parameters_of_several_dtypes() -> None:
    values = [chainrule.ones(2, dtype=d) for d in (chainrule.float32, chainrule.float64)]
    for v in values:
        v.requires_grad_()
        v.grad = chainrule.full_like(v.detach(), 0.5)
    optim.SGD(values, lr=0.1).step()
    assert [v.dtype for v in values] == [chainrule.float32, chainrule.float64]
    assert_close(values[0].detach(), values[1].detach().float(), rtol=1e-6)


def test_a_read_only_view_can_be_learned() -> None:
    w = chainrule.zeros(3).expand(3).detach().requires_grad_()
    w.grad = chainrule.ones(3)
    optim.SGD([w], lr=1.0).step()
    assert w.tolist() == [-1.0] * 3


# --- files and copies -----------------------------------------------------------------------------


def test_a_state_dict_has_numbers_for_parameters() -> None:
    w, v = with_gradient(1.0), weight(2.0)
    optimizer = optim.Adam([{"params": [v]}, {"params": [w], "lr": 0.5}])
    optimizer.step()
    saved = optimizer.state_dict()
    assert [g["params"] for g in saved["param_groups"]] == [[0], [1]]
    assert list(saved["state"]) == [1]
    assert set(saved["state"][1]) == {"step", "exp_avg", "exp_avg_sq"}
    assert saved["state"][1]["step"].item() == 1


def test_a_loaded_state_is_a_copy() -> None:
    w, v = with_gradient(1.0), with_gradient(1.0)
    first, second = optim.SGD([w], momentum=0.9), optim.SGD([v], lr=0.5)
    first.step()
    saved = first.state_dict()
    second.load_state_dict(saved)
    second.step()
    assert second.param_groups[0]["lr"] == 1e-3
    assert saved["state"][0]["momentum_buffer"].item() == 1.0
    assert second.state[v]["momentum_buffer"].item() == pytest.approx(1.9)


def test_a_state_is_loaded_in_the_parameters_dtype() -> None:
    w, v = with_gradient(1.0), chainrule.ones(1, requires_grad=True)
    first, second = optim.NAdam([w]), optim.NAdam([v])
    first.step()
    second.load_state_dict(first.state_dict())
    assert second.state[v]["exp_avg"].dtype == chainrule.float32
    assert second.state[v]["mu_product"] == first.state[w]["mu_product"]  # to the last digit


def test_options_that_come_later_start_their_state() -> None:
    """amsgrad or momentum that is switched on between steps."""
    w = with_gradient(1.0)
    optimizer = optim.Adam([w])
    optimizer.step()
    optimizer.param_groups[0]["amsgrad"] = True
    optimizer.step()
    assert set(optimizer.state[w]) == {"step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"}


def test_copies_keep_the_link_to_a_model() -> None:
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    optimizer.register_step_post_hook(lambda *_: None)
    for make in (copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))):
        twin, twin_optimizer = make((model, optimizer))
        assert twin_optimizer.param_groups[0]["params"][0] is twin.weight
        assert twin.weight is not model.weight


def test_repr() -> None:
    assert repr(optim.SGD([W], lr=0.1)) == (
        "SGD (\nParameter Group 0\n    dampening: 0\n    differentiable: False\n    foreach: None\n"
        "    fused: None\n    lr: 0.1\n    maximize: False\n    momentum: 0\n    nesterov: False\n"
        "    weight_decay: 0\n)"
    )


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (optim.Adamax, {"betas": (1.0, 0.9)}, r"invalid betas: \(1.0, 0.9\)"),
        (optim.Adagrad, {"lr_decay": -1.0}, "invalid lr_decay: -1.0"),
        (optim.Quickprop, {"growth": -1.0}, "invalid growth: -1.0"),
    ],
)
def test_settings_that_are_loaded_are_checked(kind: Any, settings: Any, message: str) -> None:
    w = chainrule.ones(2, requires_grad=True)
    optimizer = kind([w])
    w.sum().backward()
    optimizer.step()
    told = optimizer.state_dict()
    (group,) = told["param_groups"]
    with pytest.raises(ValueError, match=message):
        optimizer.load_state_dict({**told, "param_groups": [{**group, **settings}]})
    assert optimizer.state_dict()["param_groups"] == [group]  # nothing was taken over
    optimizer.load_state_dict({**told, "param_groups": [{**group, "lr": -1e-20}]})  # of a schedule


def test_a_count_of_steps_below_zero_is_not_loaded() -> None:
    w = chainrule.ones(2, requires_grad=True)
    optimizer = optim.Adam([w])
    w.sum().backward()
    optimizer.step()
    told = optimizer.state_dict()
    told["state"][0]["step"] = chainrule.tensor(-1.0)
    with pytest.raises(ValueError, match="the state has taken -1 steps"):
        optimizer.load_state_dict(told)


@pytest.mark.parametrize("name", backend.available())
@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (optim.Adam, {"betas": (1.0, 0.9)}),
        (optim.Adamax, {"betas": (1.0, 0.9)}),
        (optim.RAdam, {"betas": (1.0, 0.9)}),
        (optim.Adagrad, {"lr_decay": -1.0}),
        (optim.Quickprop, {"growth": -1.0}),
    ],
)
def test_settings_that_divide_by_zero_raise_with_all_kernels(
    name: str, kind: Any, settings: Any, request: pytest.FixtureRequest
) -> None:
    request.addfinalizer(partial(backend.use, backend.current()))
    backend.use(name)
    w = chainrule.ones(2, requires_grad=True)
    optimizer = kind([w])
    w.sum().backward()
    optimizer.step()
    before = w.tolist()
    optimizer.param_groups[0].update(settings)
    with pytest.raises(ZeroDivisionError):
        optimizer.step()
    assert w.tolist() == before
