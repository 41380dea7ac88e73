"""Networks that are trained at once run from records: with the same bits, whoever stops."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from train.many import classes
from train.test_many import folds, small

import chainrule
from chainrule import backend, models, nn, optim, problems, regularize, train
from chainrule.train.batched import job, steps
from chainrule.train.batched.stacking import Stack

native = pytest.mark.skipif(backend.current() != "native", reason="of the compiled kernels")

X, Y = classes(60)
DATA, HELD_OUT = folds(X, Y)
WEIGHTS = chainrule.rand(60, generator=chainrule.Generator().manual_seed(1), dtype=X.dtype)


def bits(fits: train.ManyFits) -> list[Any]:
    """All that training leaves, but seconds."""
    found: list[Any] = []
    for model, history in zip(fits.models, fits.histories, strict=True):
        found += [t.numpy().tobytes() for t in model.state_dict().values()]
        rows = [{k: v for k, v in row.items() if k != "seconds"} for row in history]
        found += [repr(rows), history.stopped, history.ending]
    return found


CASES: dict[str, dict[str, Any]] = {
    "all data": {"batch_size": 60, "data": (X, Y)},
    "all data, rates": {"batch_size": 60, "data": (X, Y), "lr": [0.01, 0.02, 0.03, 0.04]},
    "batches": {"batch_size": 7, "data": DATA},
    "many batches": {"batch_size": 2, "data": DATA, "epochs": 6},
    "in their order": {"batch_size": 7, "data": DATA, "shuffle": False},
    "shared, in their order": {"batch_size": 7, "data": (X, Y), "shuffle": False},
    "weights": {"batch_size": 16, "data": (X, Y, WEIGHTS), "validation": (X, Y, WEIGHTS)},
    "dropout": {"batch_size": 16, "data": DATA, "model": small(dropout=0.4)},
    "dropout, all data": {"batch_size": 60, "data": DATA, "model": small(dropout=0.4)},
    "batch norm": {
        "batch_size": 16,
        "data": DATA,
        "validation": HELD_OUT,
        "model": small(norm="batch", dropout=0.1),
        "metrics": ["accuracy"],
    },
    "penalties and clipping": {
        "batch_size": 16,
        "data": DATA,
        "penalties": [regularize.L2(0.1), regularize.L1(0.01)],
        "clip_norm": 0.3,
    },
    "penalties, all data": {"batch_size": 60, "data": (X, Y), "penalties": [regularize.L2(0.1)]},
    "stopping": {
        "batch_size": 8,
        "data": DATA,
        "validation": HELD_OUT,
        "early_stopping": 2,
        "optimizer": lambda p: optim.Adam(p, lr=0.05),
        "epochs": 40,
    },
    "schedules": {
        "batch_size": 16,
        "data": DATA,
        "lr": [0.1, 0.2, 0.3, 0.4],
        "schedule": lambda o: optim.lr_scheduler.ExponentialLR(o, 0.99),
        "schedule_each": "batch",
    },
    "one schedule": {
        "batch_size": 60,
        "data": (X, Y),
        "schedule": lambda o: optim.lr_scheduler.StepLR(o, 3),
    },
    "NAdam": {"batch_size": 60, "data": (X, Y), "optimizer": "nadam"},
}


def fit(**options: Any) -> train.ManyFits:
    given = {"model": small(), "optimizer": "adam", "epochs": 30, "seeds": range(4), **options}
    return train.fit_many(loss="cross_entropy", **given)


@native
@pytest.mark.parametrize("label", CASES)
def test_records_give_the_same_bits(label: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = fit(**CASES[label])
    monkeypatch.setattr(steps, "NEEDED", 10**9)
    eager = fit(**CASES[label])
    assert bits(compiled) == bits(eager)
    assert {h.ran for h in eager.histories} == {
        "eager: too few updates are alike to gain by a record"
    }
    assert all([h.ran.startswith("compiled") for h in compiled.histories])


@native
@pytest.mark.parametrize(
    ("options", "ran"),
    [
        ({"batch_size": 60, "epochs": 40}, "compiled epochs"),
        ({"batch_size": 3, "epochs": 5}, "compiled epochs"),
        ({"batch_size": 16}, "compiled steps"),
        ({"batch_size": 60, "epochs": 40, "validation": (X, Y)}, "compiled steps"),
        ({"batch_size": 16, "epochs": 5}, "eager: too few updates are alike to gain by a record"),
    ],
)
def test_the_history_says_how_updates_ran(options: dict[str, Any], ran: str) -> None:
    fits = fit(data=(X, Y), **options)
    assert {h.ran for h in fits.histories} == {ran}


@native
@pytest.mark.parametrize("restacks", [False, True])
def test_networks_do_not_depend_on_those_that_leave(
    restacks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither while those that have stopped are computed on, nor when they are taken out."""
    monkeypatch.setattr(job, "WORTH", 0 if restacks else 10**9)
    kept: list[int] = []
    plain = Stack.keep

    def keep(self: Any, numbers: Any) -> None:
        kept.append(len(numbers))
        plain(self, numbers)

    monkeypatch.setattr(Stack, "keep", keep)
    given: dict[str, Any] = {
        "epochs": 60,
        "batch_size": 8,
        "optimizer": lambda p: optim.Adam(p, lr=0.05),
        "early_stopping": 2,
        "model": small(dropout=0.1),
    }
    data, held_out = folds(X, Y, 6)
    together = fit(data=data, validation=held_out, **(given | {"seeds": range(6)}))
    assert len({len(h) for h in together.histories}) > 2
    assert bool(kept) == restacks
    assert kept == sorted(kept, reverse=True)
    assert len(kept) <= 3  # each time half of them
    for i in range(6):
        pair = [i, (i + 1) % 6]
        few = fit(
            data=[data[k] for k in pair],
            validation=[held_out[k] for k in pair],
            **(given | {"seeds": pair}),
        )
        half = len(bits(few)) // 2
        assert bits(few)[:half] == bits(together)[i * half : (i + 1) * half]


@native
@pytest.mark.parametrize("batch_size", [4, 16])
@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_networks_do_not_depend_on_those_that_diverge(batch_size: int, dropout: float) -> None:
    """One whose numbers overflow goes on as another one, and comes to nothing again."""
    x = chainrule.linspace(-1, 1, 16, dtype=chainrule.float64).reshape(-1, 1)

    def make() -> nn.Module:
        return nn.Sequential(nn.Linear(1, 3), nn.Dropout(dropout), nn.Linear(3, 1)).double()

    def run(rates: list[float], seeds: list[int]) -> train.ManyFits:
        return train.fit_many(
            make,
            [(x, (2 + s) * x) for s in seeds],
            "mse",
            lambda p: optim.SGD(p, lr=0.1, momentum=0.5),
            lr=rates,
            seeds=seeds,
            epochs=300,
            batch_size=batch_size,
        )

    fits = run([0.01, 5.0, 0.02, 0.9, 0.03], [0, 1, 2, 3, 4])
    assert [h.ending for h in fits.histories] == [
        "finished",
        "diverged",
        "finished",
        "diverged",
        "finished",
    ]
    assert "is not finite in batch" in fits.histories[1].stopped
    assert len(fits.histories[1]) < 300
    assert all([p.isfinite().all() for m in fits.models for p in m.parameters()])
    assert fits.histories[0].ran.startswith("compiled")
    left = run([0.01, 0.02, 0.03], [0, 2, 4])
    size = len(bits(left)) // 3
    parts = [bits(fits)[i * size : (i + 1) * size] for i in (0, 2, 4)]
    assert [value for part in parts for value in part] == bits(left)


@native
def test_where_it_diverges_is_the_same_from_records(monkeypatch: pytest.MonkeyPatch) -> None:
    x = chainrule.linspace(-1, 1, 12, dtype=chainrule.float64).reshape(-1, 1)
    given: dict[str, Any] = {
        "lr": [0.01, 1.4, 1.6, 0.1],
        "epochs": 3000,
        "batch_size": 12,
        "metrics": ["mae"],
        "clip_norm": 1e300,
    }

    def run() -> train.ManyFits:
        return train.fit_many(
            lambda: nn.Sequential(nn.Linear(1, 2), nn.BatchNorm1d(2), nn.Linear(2, 1)).double(),
            (x, x**3 * 100),
            "mse",
            optim.SGD,
            **given,
        )

    compiled = run()
    monkeypatch.setattr(steps, "NEEDED", 10**9)
    eager = run()
    assert bits(compiled) == bits(eager)
    assert "diverged" in [h.ending for h in compiled.histories]
    assert max([len(h) for h in compiled.histories]) == 3000


@native
@pytest.mark.parametrize("when", [1, 7, 600, 3 * 1000 - 1])
def test_an_interruption_while_epochs_are_written_down_loses_none(
    when: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The weights are those of the last epoch in the histories, which are all as long."""
    row, calls = job.Job._row, itertools.count(1)

    def interrupted(*args: Any) -> dict[str, Any]:
        if next(calls) == when:
            raise KeyboardInterrupt
        return row(*args)

    def run(epochs: int) -> train.ManyFits:
        return train.fit_many(
            lambda: models.MLP(2, [4], 1, "tanh"),
            (xor.inputs, xor.targets),
            "bce_with_logits",
            "sgd",
            seeds=range(3),
            epochs=epochs,
            batch_size=4,
        )

    xor = problems.boolean("xor")
    with monkeypatch.context() as patch:
        patch.setattr(job.Job, "_row", interrupted)
        fits = run(5000)
    (length,) = {len(h) for h in fits.histories}
    assert 0 < length < 5000
    for history in fits.histories:
        assert history.ending == "interrupted"
        assert history["epoch"] == list(range(1, length + 1))
    told = {"interrupted", "finished", fits.histories[0].stopped, f"finished {length} epochs"}
    assert [b for b in bits(fits) if b not in told] == [
        b for b in bits(run(length)) if b not in told
    ]


class Late(nn.Module):
    """Draws random numbers from its sixth call on."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 2)
        self.calls = 0

    def forward(self, input: Any) -> Any:
        self.calls += 1
        out = self.inner(input)
        return nn.functional.dropout(out, 0.5) if self.calls > 5 else out


def test_a_module_that_draws_late_draws_what_it_draws_alone() -> None:
    def alone(seed: int) -> list[float]:
        with chainrule.random.fork_rng():
            chainrule.manual_seed(seed)
            trainer = train.Trainer(Late().double(), "cross_entropy", "sgd", progress=False)
            return list(trainer.fit((X, Y), epochs=30, batch_size=60)["loss"])

    fits = train.fit_many(
        lambda: Late().double(), (X, Y), "cross_entropy", "sgd", seeds=[3], epochs=30, batch_size=60
    )
    assert fits.histories[0]["loss"] == pytest.approx(alone(3), abs=1e-12)
