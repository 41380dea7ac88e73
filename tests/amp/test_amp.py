"""Mixed precision: ``autocast`` changes nothing and says so, ``GradScaler`` scales."""

from __future__ import annotations

import warnings

import pytest
from helpers import assert_close

import chainrule as torch
from chainrule import absent, nn
from chainrule.amp import GradScaler, custom_bwd, custom_fwd


@pytest.fixture(autouse=True)
def _nothing_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(absent, "_told", set())


# --- autocast -------------------------------------------------------------------------------------


def test_a_block_computes_as_outside_and_says_so_once() -> None:
    x, layer = torch.randn(3, 4), nn.Linear(4, 2)
    expected = layer(x)
    with pytest.warns(UserWarning, match="nothing is computed in 16 bits") as seen:
        block = torch.autocast("cpu", dtype=torch.float16)
    with block:
        y = layer(x)
        assert not torch.is_autocast_enabled()
        assert not torch.is_autocast_enabled("cpu")
    assert seen[0].filename == __file__
    assert y.dtype is torch.float32
    assert_close(y, expected, rtol=0, atol=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with torch.autocast(device_type="cuda"):
            pass


def test_a_block_that_is_not_enabled_says_nothing() -> None:
    with torch.autocast("cuda", enabled=False), torch.amp.autocast("cpu", enabled=False):
        pass
    torch.set_autocast_enabled("cpu", False)
    torch.set_autocast_enabled(False)


def test_a_decorated_function() -> None:
    @torch.autocast("cpu", enabled=False)
    def f(x: float) -> float:
        return 2 * x

    assert f(3.0) == 6


def test_turning_it_on_is_said_too() -> None:
    with pytest.warns(UserWarning, match="nothing is computed in 16 bits"):
        torch.set_autocast_enabled("cpu", True)
    assert torch.get_autocast_dtype("cpu") is torch.float32


def test_wrong_devices() -> None:
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`, got: `int`"):
        torch.autocast(3)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="unsupported autocast device_type 'toaster'"):
        torch.autocast("toaster")
    for decorate in (custom_fwd, custom_bwd):
        with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
            decorate(device_type=None)  # type: ignore[operator]


# --- scaling --------------------------------------------------------------------------------------


def problem() -> tuple[nn.Linear, torch.optim.SGD, torch.Tensor]:
    torch.manual_seed(0)
    net = nn.Linear(3, 1)
    return net, torch.optim.SGD(net.parameters(), lr=0.1), torch.randn(5, 3)


def test_training_is_the_same_with_it() -> None:
    found = []
    for scaler in (GradScaler("cpu"), GradScaler(enabled=False)):
        net, optimizer, x = problem()
        for _ in range(3):
            optimizer.zero_grad()
            scaler.scale((net(x) ** 2).mean()).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
        found.append(list(net.parameters()))
    assert_close(found[0], found[1], rtol=1e-6)


def test_a_step_that_is_not_finite_is_skipped() -> None:
    net, optimizer, x = problem()
    before = net.weight.detach().clone()
    scaler = GradScaler("cpu", init_scale=8.0)
    scaler.scale((net(x) * float("inf")).sum()).backward()
    assert scaler.step(optimizer) is None
    scaler.update()
    assert torch.equal(net.weight, before)
    assert scaler.get_scale() == 4.0


def test_the_factor_grows_after_steps_in_a_row() -> None:
    net, optimizer, x = problem()
    scaler = GradScaler("cpu", init_scale=8.0, growth_interval=2)
    scales = []
    for _ in range(4):
        optimizer.zero_grad()
        scaler.scale(net(x).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    assert scales == [8, 16, 16, 32]
    scaler.scale(net(x).sum())
    scaler.update(3.0)
    assert scaler.get_scale() == 3


def test_several_losses() -> None:
    scaler = GradScaler("cpu", init_scale=2.0)
    a, b = scaler.scale([torch.ones(1), torch.ones(2)])
    assert (a.tolist(), b.tolist()) == ([2], [2, 2])
    assert [t.tolist() for t in scaler.scale(t for t in (torch.ones(1),))] == [[2]]
    with pytest.raises(ValueError, match="must be a Tensor or an iterable of Tensors, got int"):
        scaler.scale(3)


def test_its_state_is_pytorchs() -> None:
    scaler = GradScaler("cpu", growth_interval=7)
    state = scaler.state_dict()
    assert state == {
        "scale": 65536.0,
        "growth_factor": 2.0,
        "backoff_factor": 0.5,
        "growth_interval": 7,
        "_growth_tracker": 0,
    }
    other = GradScaler("cpu", init_scale=1.0)
    other.load_state_dict(state)
    assert other.state_dict() == state
    other.set_growth_factor(3.0)
    other.set_backoff_factor(0.25)
    other.set_growth_interval(5)
    assert [other.get_growth_factor(), other.get_backoff_factor()] == [3.0, 0.25]
    assert other.get_growth_interval() == 5
    with pytest.raises(RuntimeError, match="source state dict is empty"):
        other.load_state_dict({})


def test_without_a_gpu_it_is_disabled() -> None:
    with pytest.warns(UserWarning, match="'cuda' is not available, so nothing is scaled"):
        scaler = GradScaler()
    net, optimizer, x = problem()
    loss = net(x).sum()
    assert scaler.scale(loss) is loss
    loss.backward()
    before = net.weight.detach().clone()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert not torch.equal(net.weight, before)
    assert scaler.get_scale() == 1.0
    assert scaler.state_dict() == {}
    scaler.load_state_dict({})


def test_calls_out_of_order() -> None:
    net, optimizer, x = problem()
    scaler = GradScaler("cpu")
    for call in (lambda: scaler.step(optimizer), lambda: scaler.unscale_(optimizer), scaler.update):
        with pytest.raises(AssertionError, match="no loss was scaled yet"):
            call()
    scaler.scale(net(x).sum()).backward()
    with pytest.raises(AssertionError, match="No inf checks"):
        scaler.update()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called on this optimizer"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="called after step"):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="step.. has already been called"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="closure"):
        scaler.step(optimizer, closure=lambda: None)


def test_wrong_factors_and_types() -> None:
    with pytest.raises(AssertionError, match="growth_factor must be > 1.0, got 1.0"):
        GradScaler("cpu", growth_factor=1.0)
    with pytest.raises(AssertionError, match="backoff_factor must be < 1.0, got 1.0"):
        GradScaler("cpu", backoff_factor=1.0)
    w = torch.ones(1, dtype=torch.float16, requires_grad=True)
    optimizer, scaler = torch.optim.SGD([w], lr=0.1), GradScaler("cpu", init_scale=2.0)
    scaler.scale(w.sum()).backward()
    with pytest.raises(ValueError, match="FP16"):
        scaler.step(optimizer)
