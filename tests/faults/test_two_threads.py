"""Jobs in several threads at once, which change places as often as they can, give what each gives
alone, to the last bit."""

from __future__ import annotations

import io
import multiprocessing
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import chainrule
from chainrule import amp, autograd, data, func, manual_seed, models, nn, train
from chainrule.autograd.overlay import Overlay
from chainrule.nn.functional import weight_noise
from chainrule.nn.module.evaluation import evaluating
from chainrule.problems import boolean
from chainrule.random import fork_rng

THREADS = 3


@pytest.fixture(autouse=True)
def hurried() -> Iterator[None]:
    """Python changes from thread to thread as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def at_once(jobs: list[Callable[[], Any]]) -> list[Any]:
    """What jobs return that begin together, each in a thread of its own."""
    barrier, found = threading.Barrier(len(jobs)), dict[int, Any]()

    def run(i: int) -> None:
        try:
            barrier.wait(20)
            found[i] = jobs[i]()
        except BaseException as error:  # noqa: BLE001 (it is compared, and so seen)
            found[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return [found.get(i, "it did not end") for i in range(len(jobs))]


def numbers(*tensors: Any) -> list[bytes]:
    return [t.detach().numpy().tobytes() for t in tensors]


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 5), nn.Tanh(), nn.Dropout(0.2), nn.Linear(5, 1))


# --- jobs of their own ----------------------------------------------------------------------------


def fits_many(seed: int) -> Any:
    xor = boolean("xor")
    fits = train.fit_many(
        lambda: models.MLP(2, [3], 1, "tanh", dropout=0.1),
        (xor.inputs, xor.targets),
        "bce_with_logits",
        "adam",
        seeds=range(seed, seed + 2),
        lr=0.05,
        epochs=12,
        batch_size=2,
        validation=(xor.inputs, xor.targets),
    )
    return [numbers(*m.parameters()) for m in fits.models], fits.last()


def trains(seed: int) -> Any:
    with fork_rng():
        manual_seed(seed)
        model, xor = network(), boolean("xor")
        trainer = train.Trainer(model, "mse", "adam", progress=False)
        trainer.fit((xor.inputs, xor.targets), epochs=4, batch_size=2)
        return numbers(*model.parameters(), trainer.predict(xor.inputs))


def fits_a_table(seed: int) -> Any:
    settings = train.Settings(hidden=(4,), epochs=2, seed=seed)
    net = train.fit_table(data.embedded("iris").table, settings=settings, progress=False)
    return numbers(*net.model.parameters()), net.about["scores"]


def transforms(seed: int) -> Any:
    w, x = chainrule.ones(3) * (seed + 1), chainrule.arange(12.0).reshape(4, 3) / 7
    f = lambda w, x: (x * w).sin().sum()  # noqa: E731
    rows = func.vmap(func.grad(f), in_dims=(None, 0))(w, x)
    _, moved = func.jvp(func.grad(f), (w, x[0]), (x[1], x[2]))
    return numbers(rows, moved, func.hessian(f)(w, x[0]), func.jacrev(func.jacfwd(f))(w, x[3]))


def draws(seed: int) -> Any:
    found = []
    for i in range(5):
        with fork_rng():
            manual_seed(seed + i)
            found.append(chainrule.rand(3))
            with fork_rng():
                found.append(chainrule.randn(2))
            found.append(chainrule.randperm(5))
    return numbers(*found)


def modes(seed: int) -> Any:
    x, found = chainrule.ones(2, requires_grad=True), []
    for i in range(seed, seed + 6):
        block = [chainrule.no_grad, chainrule.inference_mode, autograd.detect_anomaly][i % 3]
        with block():
            y = (x * x).sum()
            found.append((y.requires_grad, y.is_inference(), chainrule.is_grad_enabled()))
        with amp.autocast("cpu", dtype=chainrule.bfloat16, enabled=False):
            found.append(((x @ x).dtype, (x * x).requires_grad, x.is_inference()))
    return found


def anomalies(seed: int) -> Any:
    x, found = chainrule.zeros(1, requires_grad=True), []
    for i in range(seed, seed + 4):
        y = (x.sqrt() * 0).sum()
        if i % 2:
            x.grad = None
            y.backward()
            found.append(bool(x.grad.isnan()))
        else:
            with autograd.detect_anomaly(), pytest.raises(RuntimeError, match="nan"):
                (x.sqrt() * 0).sum().backward()
            found.append(None)
    return found


def saves(seed: int) -> Any:
    with fork_rng():
        manual_seed(seed)
        model = network()
    for _ in range(3):
        file = io.BytesIO()
        chainrule.save(model, file)
        file.seek(0)
        model = chainrule.load(file)
    return numbers(*model.parameters(), chainrule.zeros(200, 200).sum())


def loads_data(seed: int) -> Any:
    given = chainrule.Generator().manual_seed(seed)
    loader = data.DataLoader(
        data.TensorDataset(chainrule.arange(20)), batch_size=3, shuffle=True, generator=given
    )
    first = [batch for _, (batch,) in zip(range(3), loader, strict=False)]
    state = loader.state_dict()
    rest = [batch for (batch,) in loader]
    loader.load_state_dict(state)
    return numbers(*first, *rest, *[batch for (batch,) in loader])


JOBS = [fits_many, trains, fits_a_table, transforms, draws, modes, anomalies, saves, loads_data]


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.__name__)
def test_jobs_do_not_disturb_each_other(job: Callable[[int], Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone = [job(seed) for seed in range(THREADS)]
        state = chainrule.get_rng_state()
        together = at_once([lambda seed=seed: job(seed) for seed in range(THREADS)])
    assert together == alone
    assert len({str(result) for result in alone}) > 1, "jobs that all give the same show nothing"
    if job is not loads_data:  # a loader draws the seed of its workers
        assert bool((chainrule.get_rng_state() == state).all())


def test_many_fits_in_threads_and_processes_agree() -> None:
    alone = fits_a_table(0)
    assert at_once([lambda: fits_a_table(0)] * 16) == [alone] * 16
    if hasattr(os, "fork"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads, from Python 3.12 on
            with multiprocessing.get_context("fork").Pool(4) as pool:
                assert pool.map(fits_a_table, [0] * 8, chunksize=1) == [alone] * 8


# --- one module for all ---------------------------------------------------------------------------


class Slow(nn.Module):
    """Looks at its weight twice, and lets others run between."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(chainrule.ones(2))
        self.register_buffer("shift", chainrule.zeros(2))

    def forward(self, x: Any) -> Any:
        out = x * self.weight
        time.sleep(0.001)
        return out * self.weight + self.shift


def test_functional_call_and_plain_calls_of_one_module() -> None:
    model = Slow()
    x = chainrule.ones(2)

    def replaced(value: float) -> list[Any]:
        tensors = {"weight": chainrule.full((2,), value), "shift": chainrule.full((2,), value)}
        return [func.functional_call(model, tensors, (x,)).tolist() for _ in range(20)]

    def nested() -> list[Any]:
        outer = nn.Sequential(model)
        found = []
        for _ in range(10):
            inner = func.functional_call(model, {"weight": x * 5}, (x,)).tolist()
            whole = func.functional_call(outer, {"0.weight": x * 3}, (x,)).tolist()
            found += [inner, whole]
        return found

    plain = [lambda: [model(x).tolist() for _ in range(20)]] * 2
    found = at_once([lambda: replaced(2.0), lambda: replaced(3.0), nested, *plain])
    assert found == [
        [[6.0, 6.0]] * 20,
        [[12.0, 12.0]] * 20,
        [[25.0, 25.0], [9.0, 9.0]] * 10,
        *[[[1.0, 1.0]] * 20] * 2,
    ]
    assert type(model._parameters) is dict
    assert type(model._buffers) is dict
    assert model.weight.tolist() == [1.0, 1.0]
    assert model.shift.tolist() == [0.0, 0.0]


def test_weight_noise_of_one_module() -> None:
    model = Slow()

    def noisy(seed: int) -> list[float]:
        with fork_rng():
            manual_seed(seed)
            with weight_noise(model, 0.5):
                model(chainrule.ones(2)).sum().backward()
                return model.weight.tolist() + model(chainrule.ones(2)).tolist()

    alone = [noisy(seed) for seed in range(THREADS)]
    assert at_once([lambda seed=seed: noisy(seed) for seed in range(THREADS)]) == alone
    assert model.weight.tolist() == [1.0, 1.0]


def test_predictions_of_one_network_in_training() -> None:
    model = nn.Sequential(nn.Dropout(0.5), Slow())
    trainer = train.Trainer(model, "mse", "sgd", progress=False)
    x = chainrule.ones(4, 2)
    predict = lambda: [trainer.predict(x).tolist() for _ in range(20)]  # noqa: E731
    assert at_once([predict] * 4) == [[[[1.0, 1.0]] * 4] * 20] * 4
    assert model.training
    assert model[0].training


def test_a_block_within_a_block_restores_what_it_found() -> None:
    model = nn.Sequential(nn.Dropout(0.5))
    with evaluating(model):
        model[0].train()
        with evaluating(model):
            assert not model[0].training
        assert model[0].training
    assert model.training
    assert model[0].training


# --- what stands in for a module's dictionary -----------------------------------------------------


def test_an_overlay_is_a_dictionary() -> None:
    held = {"a": 1, "b": 2}
    overlay = Overlay(held)
    undo = overlay.replace("a", 10)
    assert dict(overlay) == {"a": 10, "b": 2} == {**overlay}
    assert len(overlay) == 2
    again = overlay.replace("a", 11)
    del overlay["a"]
    assert "a" not in overlay
    assert list(overlay) == ["b"]
    assert overlay.get("a") is None
    assert not overlay.restore("a", again)
    assert overlay["a"] == 10
    overlay["a"], overlay["b"], overlay["c"] = 12, 3, 4
    assert at_once([lambda: dict(overlay)]) == [{"a": 1, "b": 3, "c": 4}]
    assert repr(overlay) == "{'a': 12, 'b': 3, 'c': 4}"
    assert overlay.restore("a", undo)
    assert held == {"a": 1, "b": 3, "c": 4}
    del overlay["c"]
    assert held == {"a": 1, "b": 3}


def test_a_copy_of_a_module_whose_tensors_are_replaced() -> None:
    import copy

    class Copies(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(chainrule.ones(1))

        def forward(self) -> Any:
            return copy.deepcopy(self)

    made = func.functional_call(Copies(), {"weight": chainrule.full((1,), 2.0)})
    assert type(made._parameters) is dict
    assert made.weight.tolist() == [2.0]
