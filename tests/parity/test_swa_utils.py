"""Averages of weights and the schedule that goes with them: step by step as PyTorch."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule

torch = pytest.importorskip("torch")
pytest.importorskip("torch.optim.swa_utils")

LIBRARIES = (chainrule, torch)


@pytest.fixture(autouse=True)
def _weights_of_means_in_float64() -> Iterator[None]:
    """PyTorch computes 1 / (n + 1) in the default dtype."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def net(library: Any) -> Any:
    nn, r = library.nn, np.random.default_rng(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)).double()
    for p in model.parameters():
        p.data = library.from_numpy(r.normal(size=tuple(p.shape)))
    return model


def batches(library: Any) -> list[Any]:
    r = np.random.default_rng(1)
    return [library.from_numpy(r.normal(size=(6, 3))) for _ in range(4)]


def train(library: Any, **options: Any) -> Any:
    """A model averaged after every step."""
    model = net(library)
    averaged = library.optim.swa_utils.AveragedModel(model, **options)
    optimizer = library.optim.SGD(model.parameters(), lr=0.1)
    for x in batches(library):
        optimizer.zero_grad()
        (model(x) ** 2).mean().backward()
        optimizer.step()
        averaged.update_parameters(model)
    return averaged


def assert_same_state(ours: Any, theirs: Any) -> None:
    mine, other = ours.state_dict(), theirs.state_dict()
    assert list(mine) == list(other)
    for key, value in other.items():
        assert_close(mine[key], value.numpy(), rtol=1e-12, atol=1e-13)


OPTIONS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "mean": lambda swa: {},
    "mean in lists": lambda swa: {"multi_avg_fn": swa.get_swa_multi_avg_fn()},
    "mean of each": lambda swa: {"avg_fn": swa.get_swa_avg_fn()},
    "moving": lambda swa: {"multi_avg_fn": swa.get_ema_multi_avg_fn(0.9)},
    "moving, each": lambda swa: {"avg_fn": swa.get_ema_avg_fn(0.8)},
    "moving, buffers too": lambda swa: {
        "multi_avg_fn": swa.get_ema_multi_avg_fn(0.5),
        "use_buffers": True,
    },
    "a user's": lambda swa: {"avg_fn": lambda mean, p, n: 0.3 * mean + 0.7 * p},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_averages(name: str) -> None:
    ours, theirs = (train(lib, **OPTIONS[name](lib.optim.swa_utils)) for lib in LIBRARIES)
    assert_same_state(ours, theirs)
    x, y = (batches(lib)[0] for lib in LIBRARIES)
    assert_close(ours.eval()(x).detach(), theirs.eval()(y).detach().numpy(), rtol=1e-12)
    theirs.load_state_dict({k: torch.from_numpy(v.numpy()) for k, v in ours.state_dict().items()})


@pytest.mark.parametrize("pairs", [False, True])
def test_statistics_of_batch_normalization(pairs: bool) -> None:
    found = []
    for library in LIBRARIES:
        averaged = train(library).eval()
        loader = [(x, 0) if pairs else x for x in batches(library)]
        library.optim.swa_utils.update_bn(loader, averaged)
        assert not averaged.training
        assert averaged.module[1].momentum == 0.1
        found.append(averaged)
    assert_same_state(*found)


def test_without_batch_normalization_no_batch_is_taken() -> None:
    def loader() -> Any:
        raise AssertionError("a batch was asked for")
        yield

    chainrule.optim.swa_utils.update_bn(loader(), chainrule.nn.Linear(1, 1))


RATES: dict[str, dict[str, Any]] = {
    "cosine": {"swa_lr": 0.05},
    "linear": {"swa_lr": 0.05, "anneal_strategy": "linear", "anneal_epochs": 3},
    "for each group": {"swa_lr": [0.5, 0.01], "anneal_epochs": 4},
    "at once": {"swa_lr": 0.05, "anneal_epochs": 0},
}


@pytest.mark.parametrize("name", RATES)
def test_rates(name: str) -> None:
    found = []
    for library in LIBRARIES:
        params = [library.zeros(1, requires_grad=True) for _ in range(2)]
        optimizer = library.optim.SGD(
            [{"params": params[:1]}, {"params": params[1:], "lr": 0.3}], lr=0.2
        )
        decay = library.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        schedule = library.optim.swa_utils.SWALR(optimizer, **RATES[name])
        seen = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for i in range(14):
                (decay if i < 2 else schedule).step()
                seen.append([*schedule.get_last_lr(), *[g["lr"] for g in optimizer.param_groups]])
        found.append(seen)
    assert_close(np.array(found[0]), np.array(found[1]), rtol=1e-12)


@pytest.mark.parametrize("library", LIBRARIES, ids=["ours", "theirs"])
def test_errors(library: Any) -> None:
    swa = library.optim.swa_utils
    optimizer = library.optim.SGD([library.zeros(1, requires_grad=True)], lr=0.1)
    with pytest.raises(ValueError, match="Invalid decay value 1.5"):
        swa.get_ema_avg_fn(1.5)
    with pytest.raises(ValueError, match="Invalid decay value -1"):
        swa.get_ema_multi_avg_fn(-1)
    with pytest.raises(ValueError, match="one of 'cos' or 'linear', instead got exp"):
        swa.SWALR(optimizer, 0.1, anneal_strategy="exp")
    with pytest.raises(ValueError, match="equal or greater than 0, got -1"):
        swa.SWALR(optimizer, 0.1, anneal_epochs=-1)
    with pytest.raises(ValueError, match="same length as optimizer.param_groups"):
        swa.SWALR(optimizer, [0.1, 0.2])
    with pytest.raises(AssertionError, match="Only one of avg_fn and multi_avg_fn"):
        swa.AveragedModel(net(library), avg_fn=print, multi_avg_fn=print)
