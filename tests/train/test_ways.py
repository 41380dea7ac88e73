"""What trains in the library trains from records, and with the same bits as without them."""

from __future__ import annotations

import csv
import random
from pathlib import Path
from typing import Any

import pytest
from train.many import classes

import chainrule
from chainrule import backend, estimators, models, train
from chainrule.cli import main
from chainrule.train.batched import steps

pytestmark = pytest.mark.skipif(backend.current() != "native", reason="of the compiled kernels")

X, Y = classes(120)


class Ways:
    """How all trainers and jobs ran, with records or all as they are."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.found: list[str] = []
        self.eager = False
        fit, run = train.Trainer.fit, train.batched.job.Job.run

        def fitted(trainer: Any, *args: Any, **kwargs: Any) -> Any:
            trainer.compile = trainer.compile and not self.eager
            history = fit(trainer, *args, **kwargs)
            self.found.append(history.ran)
            return history

        def ran(job: Any) -> None:
            job.steps.why = "asked for" if self.eager else job.steps.why
            networks = list(job.networks)
            run(job)
            self.found += [n.history.ran for n in networks]

        monkeypatch.setattr(train.Trainer, "fit", fitted)
        monkeypatch.setattr(train.batched.job.Job, "run", ran)

    def both(self, run: Any, way: str) -> None:
        """Runs both ways: with the same result, and only one of them from records."""
        compiled = run()
        assert self.found
        assert set(self.found) == {way}
        self.found.clear()
        self.eager = True
        assert run() == compiled
        assert all([found.startswith("eager: ") for found in self.found])


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> Ways:
    return Ways(monkeypatch)


def small() -> Any:
    return models.MLP(4, [5], 2, "tanh", dropout=0.1).double()


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("metrics", [(), ("accuracy",)])
def test_cross_validation(many: bool, metrics: Any, ways: Ways) -> None:
    def run() -> str:
        result = train.cross_validate(
            small,
            (X, Y),
            "cross_entropy",
            folds=3,
            epochs=30,
            batch_size=4,
            many=many,
            metrics=metrics,
        )
        return repr(result.folds.rows)

    ways.both(run, "compiled steps" if many and metrics else "compiled epochs")


@pytest.mark.parametrize("many", [False, True])
def test_sweeps(many: bool, ways: Ways) -> None:
    def one(setting: dict[str, Any]) -> dict[str, float]:
        chainrule.manual_seed(0)
        adam = lambda p: chainrule.optim.Adam(p, **setting)  # noqa: E731
        trainer = train.Trainer(small(), "cross_entropy", adam, progress=False)
        return {"loss": trainer.fit((X, Y), epochs=20, batch_size=4)[-1]["loss"]}

    def all_at_once(settings: list[dict[str, Any]]) -> list[dict[str, float]]:
        rates = [s["lr"] for s in settings]
        fits = train.fit_many(
            small, (X, Y), "cross_entropy", "adam", lr=rates, epochs=20, batch_size=4
        )
        return [{"loss": loss} for loss in fits.last("loss")]

    def run() -> str:
        grid = train.grid({"lr": [0.01, 0.02, 0.05]})
        return repr(train.sweep(all_at_once if many else one, grid, many=many).rows)

    ways.both(run, "compiled epochs")


unconverged = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@unconverged
@pytest.mark.parametrize(
    "options", [{}, {"solver": "sgd", "momentum": 0.9}, {"early_stopping": True}, {"alpha": 0.1}]
)
def test_estimators(options: dict[str, Any], ways: Ways) -> None:
    def run() -> list[bytes]:
        made = estimators.NetworkClassifier(
            hidden_layer_sizes=(5,), max_iter=40, batch_size=8, random_state=0, **options
        )
        made.fit(X.numpy(), Y.numpy())
        return [t.numpy().tobytes() for t in made.module_.state_dict().values()]

    ways.both(run, "compiled epochs")


@unconverged
def test_an_estimator_goes_on_as_it_is_after_records(ways: Ways) -> None:
    """Epochs from records and others after each other, in both orders."""
    outcomes = []
    for first in (False, True):
        made = estimators.NetworkClassifier(
            hidden_layer_sizes=(5,), max_iter=30, batch_size=4, random_state=0, warm_start=True
        )
        for eager in (first, not first, first):
            ways.eager = eager
            made.fit(X.numpy(), Y.numpy())
        outcomes.append([t.numpy().tobytes() for t in made.module_.state_dict().values()])
    assert outcomes[0] == outcomes[1]
    assert ways.found[0] == "compiled epochs"
    assert ways.found[1].startswith("eager: ")


@pytest.mark.parametrize("options", [["--hidden", "8"], ["--effort", "normal"]])
def test_the_command_fit(
    options: list[str], ways: Ways, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    draw = random.Random(0)
    with Path("table.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "kind"])
        for _ in range(1200):
            a, b = draw.gauss(0, 1), draw.gauss(0, 1)
            writer.writerow([a, b, "up" if a * b + draw.gauss(0, 0.3) > 0 else "down"])
    more = ["--epochs", "40", "--batch-size", "32"]

    def run() -> str:
        assert main(["fit", "table.csv", "--target", "kind", *options, *more]) == 0
        with Path("chainrule-table", "history.csv").open() as file:
            rows = list(csv.DictReader(file))
        return repr([{k: v for k, v in row.items() if k != "seconds"} for row in rows])

    ways.both(run, "compiled steps")


def test_starts_that_fail_are_counted_from_records(ways: Ways) -> None:
    xor = chainrule.problems.boolean("xor")

    def run() -> str:
        result = train.failure_rate(
            lambda: models.MLP(2, [4], 1, "tanh"),
            (xor.inputs, xor.targets),
            "bce_with_logits",
            "sgd",
            solved=0.5,
            starts=6,
            epochs=200,
            batch_size=4,
        )
        return repr([h["loss"] for h in result.fits.histories])

    ways.both(run, "compiled epochs")
    assert steps.NEEDED < 200
