"""The base of all optimizers: what it refuses, groups, rates for each weight, hooks, files."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import Tensor, nn, optim
from chainrule.backend import K
from chainrule.backend.numpy_kernels import update
from chainrule.optim.settings import Interval


def weight(*values: float) -> Tensor:
    return chainrule.tensor(values, dtype=chainrule.float64, requires_grad=True)


def with_gradient(*values: float) -> Tensor:
    """A weight whose gradient is itself: that of half its square."""
    w = weight(*values)
    w.grad = w.detach().clone()
    return w


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


# --- rates for each weight ------------------------------------------------------------------------


def bowl(w: Tensor) -> Tensor:
    """f = w1^2 + 5 w2^2 (O11)."""
    return w[0] ** 2 + 5 * w[1] ** 2


def test_a_rate_for_each_weight_reaches_the_minimum_in_one_step() -> None:
    """O11: with 1 / 2 and 1 / 10, the inverse curvatures; no common rate does that."""
    rates = chainrule.tensor([1 / 2, 1 / 10], dtype=chainrule.float64)
    w, v = weight(3.0, -2.0), weight(3.0, -2.0)
    for p in (w, v):
        bowl(p).backward()
    optim.SGD([w], lr=rates).step()
    assert w.tolist() == pytest.approx([0.0, 0.0], abs=1e-15)
    optim.SGD([v], lr=0.1).step()
    assert v.tolist() == pytest.approx([2.4, 0.0])


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "NAdam", "Rprop"])
def test_rates_in_a_list_are_those_of_optimizers_for_each(name: str) -> None:
    kind, values = getattr(optim, name), [(1.0, -2.0), (3.0,), (0.5, 4.0)]
    rates = [0.1, chainrule.tensor(0.2, dtype=chainrule.float64), chainrule.tensor([0.3, 0.4])]
    together, alone = [weight(*v) for v in values], [weight(*v) for v in values]
    optimizers = [kind(together, lr=rates)]
    optimizers += [
        kind([alone[0]], lr=0.1),
        kind([alone[1]], lr=0.2),
        kind([alone[2]], lr=rates[2]),
    ]
    for _ in range(4):
        for p in [*together, *alone]:
            p.grad = chainrule.cos(p.detach())
        for optimizer in optimizers:
            optimizer.step()
    assert_close([p.detach() for p in together], [p.detach() for p in alone], rtol=1e-14)


def test_a_rate_for_each_weight_is_its_own_weights_rate() -> None:
    """A tensor of rates does to each weight what its number does to one alone, in Adam too."""
    rates = [0.1, 0.2, 0.05]
    w = weight(1.0, 2.0, 3.0)
    single = [weight(x) for x in (1.0, 2.0, 3.0)]
    many = optim.Adam([w], lr=chainrule.tensor(rates, dtype=chainrule.float64))
    ones = [optim.Adam([p], lr=r) for p, r in zip(single, rates, strict=True)]
    for _ in range(5):
        for p in [w, *single]:
            p.grad = chainrule.cos(p.detach())
        for optimizer in [many, *ones]:
            optimizer.step()
    assert w.tolist() == pytest.approx([p.item() for p in single], rel=1e-14)


def test_rates_of_complex_weights() -> None:
    """They hold for the real and for the imaginary part."""
    values = np.array([1 + 2j, -1 + 0.5j])
    w, v = (chainrule.tensor(values).requires_grad_() for _ in range(2))
    for p in (w, v):
        p.grad = p.detach() * 0.5
    optim.Adam([w], lr=[chainrule.tensor([0.1, 0.1], dtype=chainrule.float64)]).step()
    optim.Adam([v], lr=0.1).step()
    assert_close(w.detach(), v.detach(), rtol=1e-14)


def test_a_rate_can_be_changed_between_steps() -> None:
    w = with_gradient(1.0)
    optimizer = optim.SGD([w], lr=chainrule.tensor(0.5, dtype=chainrule.float64))
    optimizer.step()
    optimizer.param_groups[0]["lr"].fill_(0.25)
    optimizer.step()
    assert w.item() == 0.25


# --- a step that can be differentiated ------------------------------------------------------------

DIFFERENTIABLE = {
    "SGD": {"momentum": 0.9, "weight_decay": 0.1},
    "Adam": {"weight_decay": 0.1},
    "AdamW": {"amsgrad": True},
    "Adamax": {},
    "NAdam": {},
    "RAdam": {"betas": (0.9, 0.5)},
    "Adagrad": {"lr_decay": 0.1},
    "Adadelta": {"eps": 1e-2},
    "RMSprop": {"centered": True, "momentum": 0.5},
    "Rprop": {},
}


def loss_after(name: str, start: Tensor, lr: Any, steps: int = 3) -> Tensor:
    """The loss after some steps, as a function of the first weights and the learning rate."""
    w = start * 1.0
    optimizer = getattr(optim, name)([w], lr=lr, differentiable=True, **DIFFERENTIABLE[name])
    for _ in range(steps):
        x = w.clone()
        (w.grad,) = chainrule.autograd.grad((x.sin() + x**4 / 8).sum(), [x], create_graph=True)
        optimizer.step()
    return (w**2 + w).sum()


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_derivative_of_the_loss_after_steps(name: str) -> None:
    """With respect to the first weights and the learning rate, against finite differences."""
    start, lr, h = weight(1.0, -0.6, 2.0), weight(0.1)[0].detach().requires_grad_(), 1e-6
    got = chainrule.autograd.grad(loss_after(name, start, lr), [start, lr])
    values, rate = start.detach(), 0.1

    def moved(by: Any) -> Tensor:
        return (values + by).requires_grad_()

    def slope(move: Callable[[float], Tensor]) -> float:
        return (move(h).item() - move(-h).item()) / (2 * h)

    for i in range(3):
        unit = chainrule.eye(3, dtype=chainrule.float64)[i]
        expected = slope(lambda t, unit=unit: loss_after(name, moved(t * unit), rate))
        assert got[0][i].item() == pytest.approx(expected, rel=2e-6, abs=1e-8)
    expected = slope(lambda t: loss_after(name, moved(0.0), rate + t))
    assert got[1].item() == pytest.approx(expected, rel=2e-6, abs=1e-8)
    assert abs(expected) > 1e-3


@pytest.mark.parametrize("name", [*DIFFERENTIABLE, "ASGD"])
def test_a_recorded_step_is_the_same_step(name: str) -> None:
    options = DIFFERENTIABLE.get(name, {})
    values, kind = np.random.default_rng(1).normal(size=(2, 3)), getattr(optim, name)
    w = Tensor(values.copy()).requires_grad_() * 1.0
    v = Tensor(values.copy()).requires_grad_()
    optimizers = kind([w], differentiable=True, **options), kind([v], **options)
    for _ in range(4):
        for p, optimizer in zip((w, v), optimizers, strict=True):
            p.grad = chainrule.cos(p.detach())
            with chainrule.no_grad():
                optimizer.step()
    assert w.requires_grad
    assert_close(w.detach(), v.detach(), rtol=1e-13)


@pytest.mark.parametrize("name", ["SGD", "Adam", "Rprop", "RMSprop"])
def test_a_recorded_step_of_complex_weights(name: str) -> None:
    r, kind = np.random.default_rng(1), getattr(optim, name)
    values = r.normal(size=(2, 3)) + 1j * r.normal(size=(2, 3))
    w, v = chainrule.tensor(values).requires_grad_() * 1.0, chainrule.tensor(values)
    rate = chainrule.tensor(0.1, dtype=chainrule.float64)
    optimizers = kind([w], lr=rate, differentiable=True), kind([v], lr=0.1)
    for step in range(4):
        for p, optimizer in zip((w, v), optimizers, strict=True):
            p.grad = p.detach() * (0.5 - step)
            optimizer.step()
    assert_close(w.detach(), v.detach(), rtol=1e-13)


def test_the_decay_and_betas_can_be_learned() -> None:
    """Settings in tensors take part in the derivative of a step, too."""

    def loss(decay: Tensor, beta: Tensor) -> Tensor:
        w = weight(1.0, -2.0) + 0 * decay
        betas = (beta, chainrule.tensor(0.99, dtype=chainrule.float64))
        optimizer = optim.Adam(
            [w],
            lr=0.1,
            betas=betas,
            weight_decay=decay,
            decoupled_weight_decay=True,
            differentiable=True,
        )
        for _ in range(2):
            w.grad = chainrule.cos(w.clone())
            optimizer.step()
        return (w * w).sum()

    settings = [weight(0.3)[0].detach().requires_grad_(), weight(0.8)[0].detach().requires_grad_()]
    assert chainrule.autograd.gradcheck(loss, settings)


def test_leaves_cannot_be_stepped_recorded() -> None:
    w = with_gradient(1.0)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        optim.SGD([w], differentiable=True).step()


# --- the fused update -----------------------------------------------------------------------------


class Counted(optim.SGD):
    """Gradient descent that notes how many elements each call of its rule has."""

    calls: list[int]

    def constants(self, group: dict[str, Any], step: int, **scalars: float) -> dict[str, Any]:
        return {"calls": self.calls}

    @staticmethod
    def rule(p: Any, g: Any, lr: Any, *, calls: list[int]) -> tuple[Any, ...]:  # type: ignore[override]
        calls.append(p.size)
        return (p - lr * g,)


def counted(arrays: list[np.ndarray], lr: Any = 0.5) -> list[int]:
    """The sizes of the rule's calls for one step, whose result is checked."""
    params = [Tensor(a.copy(order="K") if a.flags.forc else a) for a in arrays]
    before = [p.numpy().copy() for p in params]
    optimizer = Counted(params, lr=lr)
    optimizer.calls = []
    for i, p in enumerate(params):
        p.grad = chainrule.full_like(p, i + 1.0)
    optimizer.step()
    for i, (p, old) in enumerate(zip(params, before, strict=True)):
        assert_close(p, old - 0.5 * (i + 1))
    return optimizer.calls


BLOCK = update.BLOCK


def test_small_parameters_are_updated_in_one_call() -> None:
    r = np.random.default_rng(0)
    shapes = [(), (3,), (0, 2), (4, 5)] * 25
    assert counted([np.asarray(r.normal(size=s)) for s in shapes]) == [25 * (1 + 3 + 20)]
    rates = [chainrule.tensor(0.5, dtype=chainrule.float64)] * 100
    assert counted([np.asarray(r.normal(size=s)) for s in shapes], rates) == [600]


def test_a_large_parameter_is_updated_in_blocks() -> None:
    r = np.random.default_rng(0)
    large, small = r.normal(size=(2 * BLOCK + 5,)), r.normal(size=3)
    assert counted([large]) == [BLOCK, BLOCK, 5]
    assert counted([small, large, small]) == [3, BLOCK, BLOCK, 5, 3]
    assert counted([large], lr=chainrule.tensor(0.5, dtype=chainrule.float64)) == [BLOCK, BLOCK, 5]
    rates = [chainrule.full((2 * BLOCK + 5,), 0.5, dtype=chainrule.float64)]
    assert counted([large], lr=rates) == [BLOCK, BLOCK, 5]


def test_batches_of_small_parameters_fill_blocks() -> None:
    parts = [np.zeros(BLOCK // 2)] * 3
    assert counted(parts) == [BLOCK, BLOCK // 2]


def test_arrays_that_are_not_contiguous() -> None:
    r = np.random.default_rng(0)
    sliced = np.repeat(r.normal(size=(200, 100)), 2, axis=1)[:, ::2]
    assert sliced.size > BLOCK
    assert counted([sliced]) == [20000]
    assert counted([np.asfortranarray(r.normal(size=(4, 5))), sliced[:2]]) == [20 + 200]


def test_only_empty_parameters() -> None:
    assert counted([np.zeros((0, 3)), np.zeros(0)]) == [0]


def test_all_finite() -> None:
    assert K.all_finite([np.zeros(0), np.array(1e300), np.full(3, 1e300)])
    assert not K.all_finite([np.ones(3), np.array([1.0, np.nan])])
    assert not K.all_finite([np.array([[1.0, -np.inf]])])
    assert not K.all_finite([np.array([1.0, 1j * np.inf])])


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


# --- single rules ---------------------------------------------------------------------------------


def test_centered_rmsprop_survives_a_constant_gradient() -> None:
    """Its variance is zero, and rounding must not make it negative."""
    w = weight(0.1, 0.3, 0.7)
    optimizer = optim.RMSprop([w], alpha=0.5, centered=True)
    for _ in range(200):
        w.grad = chainrule.tensor([0.1, 0.3, 0.7], dtype=chainrule.float64)
        optimizer.step()
    assert bool(w.isfinite().all())


def test_adagrad_knows_groups_that_were_added() -> None:
    w, v = with_gradient(1.0), with_gradient(1.0)
    optimizer = optim.Adagrad([w], lr=0.1)
    optimizer.add_param_group({"params": [v], "initial_accumulator_value": 3.0})
    assert optimizer.state[v]["sum"].item() == 3.0
    optimizer.step()
    assert [w.item(), v.item()] == pytest.approx([0.9, 1 - 0.1 / 2])


def test_asgd_averages_the_points_it_visits() -> None:
    w = weight(1.0)
    optimizer = optim.ASGD([w], lr=0.5, lambd=0.0, t0=0)
    places = []
    for target in (0.0, 1.0, 0.0, 1.0, 0.0):
        w.grad = w.detach() - target
        optimizer.step()
        places.append(w.item())
    assert optimizer.state[w]["ax"].item() == pytest.approx(np.mean(places[1:]), rel=1e-14)


def test_asgd_lowers_its_rate() -> None:
    """lr / (1 + lambd lr t)^alpha, one step later."""
    w = weight(0.0)
    optimizer = optim.ASGD([w], lr=0.1, lambd=2.0, alpha=0.5)
    w.grad = chainrule.zeros(1, dtype=chainrule.float64)
    for _ in range(3):
        optimizer.step()
    assert optimizer.state[w]["eta"] == pytest.approx(0.1 / (1 + 2.0 * 0.1 * 3) ** 0.5, rel=1e-14)


def test_rprop_needs_the_sign_alone() -> None:
    """Steps 0.1, 0.12; then the sign changes: half the size and no move; then on with that."""
    places = []
    w = weight(0.0)
    optimizer = optim.Rprop([w], lr=0.1)
    for g in (3.0, 0.001, -50.0, -1.0, -1.0):
        w.grad = chainrule.tensor([g], dtype=chainrule.float64)
        optimizer.step()
        places.append(w.item())
    expected = [-0.1, -0.22, -0.22, -0.22 + 0.06, -0.22 + 0.06 + 0.072]
    assert places == pytest.approx(expected, rel=1e-12)
