"""A fit whose updates run from a record gives the same bits as one that runs as it is."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from train.small import problem

import chainrule
from chainrule import backend, data, models, nn, optim, regularize, train
from chainrule.train import repeating

pytestmark = pytest.mark.skipif(
    backend.why_not_native != "", reason="there are no compiled kernels"
)
EPOCHS, STEPS = "compiled epochs", "compiled steps"


@pytest.fixture(autouse=True)
def _few_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeating, "NEEDED", 4)
    monkeypatch.setattr(repeating, "NEEDED_ALONE", 4)
    monkeypatch.setattr(repeating, "FEW", 2)


def bits(value: Any) -> Any:
    """A value with the bytes of its tensors."""
    if isinstance(value, chainrule.Tensor):
        return value.detach().numpy().tobytes()
    if isinstance(value, dict):
        return {str(k): bits(v) for k, v in value.items() if k != "seconds"}
    if isinstance(value, (list, tuple)):
        return [bits(v) for v in value]
    return value.hex() if isinstance(value, float) else value


def outcome(trainer: Any) -> dict[str, Any]:
    """All that a fit leaves behind."""
    grads = [p.grad for p in trainer.model.parameters()]
    return bits(
        {
            "history": trainer.history.rows,
            "model": dict(trainer.model.state_dict()),
            "optimizer": trainer.optimizer.state_dict(),
            "schedule": None if trainer.schedule is None else trainer.schedule.state_dict(),
            "gradients": grads,
            "random": chainrule.get_rng_state(),
            "batch": trainer.batch,
            "steps": trainer.optimizer._steps_taken,
        }
    )


def mlp(**options: Any) -> nn.Module:
    return models.MLP(4, [8], 3, **options)


class Recurrent(nn.Module):
    """Sees the four features one after the other."""

    def __init__(self, kind: Any = nn.LSTM) -> None:
        super().__init__()
        self.layer, self.out = kind(1, 6, batch_first=True), nn.Linear(6, 3)

    def forward(self, x: Any) -> Any:
        return self.out(self.layer(x.unsqueeze(2))[0][:, -1])


class Truncated(Recurrent):
    """Without gradients through the first half."""

    def forward(self, x: Any) -> Any:
        _, state = self.layer(x[:, :2].unsqueeze(2))
        state = tuple([part.detach() for part in state])
        return self.out(self.layer(x[:, 2:].unsqueeze(2), state)[0][:, -1])


def adam(parameters: Any) -> Any:
    return optim.Adam(parameters, lr=0.02)


def halved(optimizer: Any) -> Any:
    return optim.lr_scheduler.StepLR(optimizer, 2, 0.5)


def one_cycle(optimizer: Any) -> Any:
    """Moves the momentum, too."""
    return optim.lr_scheduler.OneCycleLR(optimizer, 0.5, total_steps=40)


CASES: dict[str, tuple[Callable[[], nn.Module], Any, dict[str, Any], str]] = {
    "plain": (mlp, adam, {}, EPOCHS),
    "metrics": (mlp, adam, {"metrics": ["accuracy", "f1"]}, EPOCHS),
    "dropout and batch norm": (lambda: mlp(dropout=0.3, norm="batch"), "adamw", {}, EPOCHS),
    "mean of all batches": (
        lambda: nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8, momentum=None), nn.Linear(8, 3)),
        "sgd",
        {},
        EPOCHS,
    ),
    "clipped norm": (mlp, adam, {"clip_norm": 0.2}, EPOCHS),
    "clipped values": (mlp, adam, {"clip_value": 0.02, "clip_norm": 0.5}, EPOCHS),
    "accumulated": (mlp, adam, {"accumulate": 3}, EPOCHS),
    "accumulated, with metrics": (mlp, adam, {"accumulate": 2, "metrics": "accuracy"}, STEPS),
    "penalties": (mlp, adam, {"penalties": [regularize.L2(1e-2), regularize.L1(1e-3)]}, EPOCHS),
    "penalties and metrics": (
        mlp,
        adam,
        {"penalties": [regularize.L2(1e-2)], "metrics": ["accuracy"], "clip_norm": 1.0},
        EPOCHS,
    ),
    "class weights": (mlp, adam, {"class_weight": "balanced"}, EPOCHS),
    "schedule": (mlp, adam, {"schedule": halved}, EPOCHS),
    "schedule of batches": (mlp, adam, {"schedule": halved, "schedule_each": "batch"}, EPOCHS),
    "one cycle": (mlp, "sgd", {"schedule": one_cycle, "schedule_each": "batch"}, EPOCHS),
    "plateau of batches": (
        mlp,
        adam,
        {"schedule": optim.lr_scheduler.ReduceLROnPlateau, "schedule_each": "batch"},
        STEPS,
    ),
    "plateau": (mlp, adam, {"schedule": optim.lr_scheduler.ReduceLROnPlateau}, EPOCHS),
    "lstm": (Recurrent, adam, {"clip_norm": 0.1}, EPOCHS),
    "truncated": (Truncated, adam, {}, EPOCHS),
    "nadam": (mlp, "nadam", {}, EPOCHS),
    "rprop": (mlp, "rprop", {}, EPOCHS),
    "lbfgs": (mlp, "lbfgs", {}, "eager: LBFGS looks at the loss as often as it likes"),
}


def fitted(label: str, compile: bool, **more: Any) -> Any:
    make, optimizer, options, _ = CASES[label]
    chainrule.manual_seed(0)
    trainer = train.Trainer(
        make(), "cross_entropy", optimizer, compile=compile, progress=False, **options
    )
    x, y = problem(59)
    trainer.fit((x[:47], y[:47]), (x[47:], y[47:]), **{"epochs": 4, "batch_size": 6, **more})
    return trainer


@pytest.mark.parametrize("label", CASES)
def test_the_same_bits(label: str) -> None:
    eager, compiled = fitted(label, False), fitted(label, True)
    assert compiled.history.ran == CASES[label][3]
    assert eager.history.ran == "eager: compile=False"
    assert outcome(eager) == outcome(compiled)


def test_orders_weights_and_early_stopping() -> None:
    x, y = problem(60)
    weights = chainrule.rand(48, generator=chainrule.Generator().manual_seed(1))
    for options in ({"shuffle": False}, {"shuffle": True}, {"early_stopping": 2, "epochs": 30}):
        found = []
        for compile in (False, True):
            chainrule.manual_seed(0)
            trainer = train.Trainer(
                mlp(), "cross_entropy", "adam", progress=False, compile=compile, seed=4
            )
            settings = {"epochs": 4, "batch_size": 8} | options
            trainer.fit((x[:48], y[:48], weights), (x[48:], y[48:]), **settings)
            found.append(outcome(trainer) | {"own": bits(trainer.generator.get_state())})
        assert trainer.history.ran == EPOCHS
        assert found[0] == found[1]


def test_averages_of_weights_by_callbacks() -> None:
    found = []
    for compile in (False, True):
        for event in ("on_batch_end", "on_epoch_end"):
            chainrule.manual_seed(0)
            model = mlp()
            decay = optim.swa_utils.get_ema_multi_avg_fn(0.9)
            mean = optim.swa_utils.AveragedModel(model, multi_avg_fn=decay)
            take = train.LambdaCallback(
                **{event: lambda trainer, mean=mean: mean.update_parameters(trainer.model)}
            )
            trainer = train.Trainer(
                model, "cross_entropy", adam, callbacks=[take], progress=False, compile=compile
            )
            trainer.fit(problem(50), epochs=4, batch_size=6)
            found.append((bits(dict(mean.state_dict())), outcome(trainer)))
            if compile:
                assert trainer.history.ran == (STEPS if event == "on_batch_end" else EPOCHS)
    assert found[:2] == found[2:]


@pytest.mark.parametrize("clip", [None, 0.1])
def test_gradients_that_are_watched(clip: float | None) -> None:
    norms = []
    for compile in (False, True):
        chainrule.manual_seed(0)
        seen = train.GradientNorms(every=2)
        trainer = train.Trainer(
            mlp(dropout=0.2),
            "cross_entropy",
            adam,
            callbacks=[seen],
            progress=False,
            compile=compile,
            clip_norm=clip,
        )
        trainer.fit(problem(50), epochs=4, batch_size=6)
        norms.append((seen.norms, outcome(trainer)))
    assert norms[0] == norms[1]
    early = "eager: GradientNorms sees the gradients before the update"
    assert trainer.history.ran == (STEPS if clip is None else early)


@pytest.mark.parametrize("ways", [(True, False), (False, True), (True, True)])
def test_resuming_one_way_after_the_other(ways: tuple[bool, bool], tmp_path: Path) -> None:
    def make(compile: bool) -> Any:
        chainrule.manual_seed(0)
        return train.Trainer(
            mlp(dropout=0.2, norm="batch"),
            "cross_entropy",
            adam,
            schedule=halved,
            metrics=["accuracy"],
            progress=False,
            compile=compile,
        )

    x, y = problem(50)
    whole = make(False)
    whole.fit((x, y), epochs=6, batch_size=6)
    expected = outcome(whole)
    first = make(ways[0])
    first.fit((x, y), epochs=3, batch_size=6)
    first.save_checkpoint(tmp_path / "here.safetensors")
    second = make(ways[1])
    second.fit((x, y), epochs=6, batch_size=6, resume=tmp_path / "here.safetensors")
    found = outcome(second)
    for key in ("history", "model", "optimizer", "schedule", "random"):
        assert found[key] == expected[key], key


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("where", ["loss", "gradient"])
def test_divergence(where: str, accumulate: int) -> None:
    x, y = problem(60)
    x[37] = float("nan")
    target: Any = x[:, :3].clone()

    class Rooted(nn.Module):
        """Has a finite loss and no slope where its input is 0."""

        def __init__(self) -> None:
            super().__init__()
            self.linear, self.scale = nn.Linear(4, 3), nn.Parameter(chainrule.ones(1))

        def forward(self, x: Any) -> Any:
            return self.linear(x) + (x[:, :1] * self.scale).sqrt()

    found = []
    for compile in (False, True):
        chainrule.manual_seed(0)
        model = mlp(dropout=0.1, norm="batch") if where == "loss" else Rooted()
        data = (x, y) if where == "loss" else (x.nan_to_num(0.0), target.nan_to_num(0.0))
        trainer = train.Trainer(
            model,
            "cross_entropy" if where == "loss" else "mse",
            adam,
            progress=False,
            compile=compile,
            accumulate=accumulate,
        )
        if where == "gradient":
            data = (data[0].abs() + 0.1, data[1])
            data[0][37] = 0.0
        with pytest.raises(train.DivergedError) as raised:
            trainer.fit(data, epochs=5, batch_size=4, shuffle=False)
        assert "in batch 10 of epoch 1" in str(raised.value)
        state = trainer._loader.state_dict()
        found.append((outcome(trainer), str(raised.value), state["position"]))
    assert found[0] == found[1]
    assert found[0][0]["steps"] == (9 if accumulate == 1 else 4)


class Noting(nn.Module):
    """Keeps what it saw."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.seen: list[int] = []

    def forward(self, x: Any) -> Any:
        self.seen.append(len(x))
        return self.linear(x)


class Hidden(Noting):
    """Keeps its last output."""

    def forward(self, x: Any) -> Any:
        self.last = self.linear(x)
        return self.last


@pytest.mark.parametrize("kind", [Noting, Hidden])
def test_networks_that_keep_something_run_as_they_are(kind: Any) -> None:
    model = kind()
    trainer = train.Trainer(model, "cross_entropy", adam, progress=False)
    trainer.fit(problem(50), epochs=4, batch_size=6)
    assert "keeps something of its own" in trainer.history.ran
    assert len(model.seen) in (0, 36)


FACTOR = 1.0


class Scaled(nn.Module):
    """Has a factor that is no part of it."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        return self.linear(x) * FACTOR


@pytest.mark.parametrize("event", ["on_epoch_end", "on_batch_end"])
def test_numbers_that_change_on_the_way(event: str) -> None:
    def change(trainer: Any) -> None:
        global FACTOR
        FACTOR *= 0.9
        trainer.clip_norm = 0.5 * trainer.epoch + 0.1
        penalty.strength *= 0.9
        if trainer.epoch == 3:
            trainer.model.linear.weight.requires_grad_(False)

    found = []
    for compile in (False, True):
        globals()["FACTOR"] = 1.0
        chainrule.manual_seed(0)
        penalty = regularize.L2(0.1)
        callback = train.LambdaCallback(**{event: change})
        trainer = train.Trainer(
            Scaled(),
            "cross_entropy",
            adam,
            penalties=[penalty],
            callbacks=[callback],
            progress=False,
            compile=compile,
        )
        trainer.fit(problem(60), epochs=5, batch_size=4)
        found.append(outcome(trainer))
    assert found[0] == found[1]


def test_hooks_run_each_time() -> None:
    model = mlp()
    calls = []
    model.register_forward_hook(lambda *_: calls.append(1))
    trainer = train.Trainer(model, "cross_entropy", adam, progress=False)
    trainer.fit(problem(60), epochs=4, batch_size=6)
    assert trainer.history.ran.startswith("eager: ")
    assert "hook of a module" in trainer.history.ran
    assert len(calls) == 40


def test_few_updates_run_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeating, "NEEDED", 41)
    monkeypatch.setattr(repeating, "NEEDED_ALONE", 41)
    trainer = train.Trainer(mlp(), "cross_entropy", adam, progress=False)
    history = trainer.fit(problem(60), epochs=4, batch_size=6)
    assert history.ran == "eager: too few updates are alike to gain by a record"


def test_other_data() -> None:
    class Pairs(data.Dataset[Any]):
        """Samples one by one."""

        def __getitem__(self, i: int) -> Any:
            x, y = problem(40)
            return x[i], y[i]

        def __len__(self) -> int:
            return 40

    def dict_batches() -> Any:
        x, y = problem(40)
        return [((x[i : i + 8],), y[i : i + 8]) for i in range(0, 40, 8)]

    for given, expected in ((Pairs(), STEPS), (data.DataLoader(Pairs(), 8), STEPS)):
        found = []
        for compile in (False, True):
            chainrule.manual_seed(0)
            trainer = train.Trainer(mlp(), "cross_entropy", adam, progress=False, compile=compile)
            trainer.fit(given, epochs=3, batch_size=8)
            found.append(outcome(trainer))
        assert trainer.history.ran == expected
        assert found[0] == found[1]
    trainer.fit(data.DataLoader(dict_batches(), batch_size=None), epochs=6)
    assert trainer.history.ran == STEPS


def test_a_bar_that_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[float, int]] = []

    class Bar:
        """Notes what it is told."""

        def batch_done(self, total: float, samples: int, metrics: Any) -> None:
            calls.append((total, samples, metrics()["accuracy"] if samples > 40 else 0.0))

        def epoch_done(self, row: Any) -> None:
            calls.append((row["loss"], 0, 0.0))

        def close(self) -> None:
            pass

    from chainrule.train import trainer as module

    monkeypatch.setattr(module, "progress_of", lambda *_: Bar())
    found = []
    for accumulate in (1, 2):
        for compile in (False, True):
            calls.clear()
            chainrule.manual_seed(0)
            trainer = train.Trainer(
                mlp(),
                "cross_entropy",
                adam,
                compile=compile,
                metrics=["accuracy"],
                accumulate=accumulate,
            )
            trainer.fit(problem(50), epochs=3, batch_size=6)
            found.append([(t, n) for t, n, _ in calls])
    assert found[0] == found[1]
    assert found[2] == found[3]
    assert not math.isnan(found[0][-1][0])
