"""The loop: training, what it records, and what goes wrong."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from train.small import problem

import chainrule
from chainrule import data, models, nn, optim, train
from chainrule.nn import functional as F


def network(seed: int = 0, dropout: float = 0.0) -> nn.Module:
    chainrule.manual_seed(seed)
    return models.MLP(4, [8], 3, dropout=dropout)


def weights(model: nn.Module) -> np.ndarray:
    return np.concatenate([p.detach().numpy().ravel() for p in model.parameters()])


def test_equals_a_loop_written_by_hand() -> None:
    x, y = problem()
    by_hand = network()
    optimizer = optim.SGD(by_hand.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for _ in range(3):
        total = 0.0
        for i in range(0, 96, 20):
            optimizer.zero_grad()
            loss = F.cross_entropy(by_hand(x[i : i + 20]), y[i : i + 20])
            loss.backward()
            nn.utils.clip_grad_norm_(by_hand.parameters(), 0.5)
            optimizer.step()
            total += float(loss.detach()) * len(x[i : i + 20])
        losses.append(total / 96)
    model = network()
    trainer = train.Trainer(
        model, "cross_entropy", optim.SGD(model.parameters(), lr=0.1, momentum=0.9), clip_norm=0.5
    )
    history = trainer.fit((x, y), epochs=3, batch_size=20, shuffle=False)
    np.testing.assert_array_equal(weights(model), weights(by_hand))
    assert history["loss"] == pytest.approx(losses)
    assert (history.ending, history.stopped) == ("finished", "finished 3 epochs")


def test_accumulation_equals_larger_batches() -> None:
    x, y = problem(100)
    results = []
    for size, parts in ((40, 1), (10, 4)):
        model = network().double()
        trainer = train.Trainer(
            model, "cross_entropy", optim.SGD(model.parameters(), lr=0.5), accumulate=parts
        )
        trainer.fit((x.double(), y), epochs=2, batch_size=size, shuffle=False)
        results.append(weights(model))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-12)


def test_sample_weights_equal_repeated_samples() -> None:
    x, y = problem(30)
    weight = chainrule.tensor([2.0 if i % 3 == 0 else 1.0 for i in range(30)], dtype=x.dtype)
    repeated = chainrule.cat(
        [chainrule.tensor([i] * int(w)) for i, w in enumerate(weight.tolist())]
    )
    results = []
    for given in ((x, y, weight), (x[repeated], y[repeated])):
        model = network().double()
        optimizer = optim.SGD(model.parameters(), lr=0.5)
        doubled = tuple(t.double() if t.dtype.is_floating_point else t for t in given)
        train.Trainer(model, "cross_entropy", optimizer).fit(doubled, epochs=3, batch_size=100)
        results.append(weights(model))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-9)


def test_class_weights_equal_those_of_the_loss() -> None:
    x, y = problem(60)
    own = [1.0, 3.0, 0.5]
    results = []
    for loss, class_weight in (
        (nn.CrossEntropyLoss(weight=chainrule.tensor(own)), None),
        ("cross_entropy", own),
        ("cross_entropy", dict(enumerate(own))),
    ):
        model = network()
        optimizer = optim.SGD(model.parameters(), lr=0.5)
        trainer = train.Trainer(model, loss, optimizer, class_weight=class_weight)
        trainer.fit((x, y), epochs=3, batch_size=20, shuffle=False)
        results.append(weights(model))
    np.testing.assert_allclose(results[1], results[0], rtol=1e-5)
    np.testing.assert_array_equal(results[2], results[1])


def test_balanced_class_weights() -> None:
    from chainrule.train.batches import as_loader
    from chainrule.train.weights import class_weights

    y = chainrule.tensor([0] * 6 + [1] * 3 + [2])
    loader = as_loader((chainrule.zeros(10, 4), y), network(), 4)
    found = class_weights("balanced", loader)
    assert found is not None
    assert found.tolist() == pytest.approx([10 / 18, 10 / 9, 10 / 3])


def test_penalties_are_added_and_reported() -> None:
    x, y = problem()

    def l2(model: nn.Module) -> Any:
        return 0.05 * sum((p * p).sum() for p in model.parameters())

    results = []
    for decay, penalties in ((0.1, ()), (0.0, l2)):
        model = network().double()
        optimizer = optim.SGD(model.parameters(), lr=0.1, weight_decay=decay)
        trainer = train.Trainer(model, "cross_entropy", optimizer, penalties=penalties)
        history = trainer.fit((x.double(), y), epochs=2, batch_size=32, shuffle=False)
        results.append(weights(model))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-10)
    assert "l2" in history
    assert history["l2"][0] > 0


def test_validation_metrics_and_history(tmp_path: Path) -> None:
    x, y = problem()
    trainer = train.Trainer(network(), nn.CrossEntropyLoss(), "adam", metrics=["accuracy", "f1"])
    history = trainer.fit((x[:64], y[:64]), (x[64:], y[64:]), epochs=4, batch_size=16)
    assert list(history[0]) == [
        "epoch",
        "loss",
        "accuracy",
        "f1",
        "val_loss",
        "val_accuracy",
        "val_f1",
        "lr",
        "seconds",
    ]
    measured = trainer.evaluate((x[64:], y[64:]))
    assert measured["accuracy"] == history[-1]["val_accuracy"]
    assert measured["loss"] == pytest.approx(history[-1]["val_loss"])
    output = trainer.predict(x[64:])
    assert float(F.cross_entropy(output, y[64:])) == pytest.approx(measured["loss"], rel=1e-5)
    text = history.to_csv(tmp_path / "h.csv")
    assert (tmp_path / "h.csv").read_text() == text
    assert text.count("\n") == 5
    assert history.to_pandas()["val_loss"].tolist() == history["val_loss"]
    assert str(history).count("\n") == 5
    with pytest.raises(KeyError, match="no column 'auc'"):
        history["auc"]
    with pytest.raises(ValueError, match="mode must be"):
        history.best(mode="low")


def test_modes_are_left_as_they_were() -> None:
    x, y = problem()
    model = network(dropout=0.5)
    trainer = train.Trainer(model, "cross_entropy")
    model[2].eval()
    trainer.evaluate((x, y))
    assert model.training
    assert not model[2].training
    first, second = trainer.predict(x), trainer.predict(x.numpy())
    np.testing.assert_array_equal(first.numpy(), second.numpy())
    assert not first.requires_grad


def test_early_stopping_restores_the_best_weights() -> None:
    x, y = problem()
    model = network()
    seen: dict[int, np.ndarray] = {}
    keep = train.LambdaCallback(
        on_epoch_end=lambda t: seen.__setitem__(t.epoch, weights(t.model).copy())
    )
    noise = (chainrule.randn(32, 4), chainrule.randint(3, (32,)))
    trainer = train.Trainer(
        model, "cross_entropy", optim.Adam(model.parameters(), lr=0.05), callbacks=[keep]
    )
    history = trainer.fit((x, y), noise, epochs=100, early_stopping=4)
    best = history.best("val_loss")["epoch"]
    assert len(history) == best + 4 < 100
    assert history.stopped == "val_loss has not improved for 4 epochs"
    assert history.ending == "stopped"
    np.testing.assert_array_equal(weights(model), seen[best])


def test_early_stopping_on_a_metric_and_its_errors() -> None:
    x, y = problem()
    stop = train.EarlyStopping(2, monitor="val_accuracy")
    trainer = train.Trainer(network(), "cross_entropy", metrics="accuracy")
    history = trainer.fit((x, y), (x, y), epochs=200, early_stopping=stop)
    values = history["val_accuracy"]
    assert max(values[-2:]) <= max(values[:-2])
    missing = train.EarlyStopping(2, monitor="val_accuracy")
    with pytest.raises(KeyError, match="no column 'val_accuracy'"):
        train.Trainer(network(), "cross_entropy").fit((x, y), epochs=3, early_stopping=missing)


@pytest.mark.parametrize("each", ["epoch", "batch"])
def test_schedules(each: str) -> None:
    x, y = problem()
    model = network()
    trainer = train.Trainer(
        model,
        "cross_entropy",
        optim.SGD(model.parameters(), lr=1.0),
        schedule=lambda o: optim.lr_scheduler.ExponentialLR(o, 0.5),
        schedule_each=each,
    )
    history = trainer.fit((x, y), epochs=3, batch_size=48)
    expected = [1.0, 0.5, 0.25] if each == "epoch" else [0.25, 0.0625, 0.015625]
    assert history["lr"] == expected


def test_plateau_schedule_sees_the_validation_loss() -> None:
    x, y = problem()
    model = network()
    optimizer = optim.SGD(model.parameters(), lr=1e-12)
    schedule = optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
    trainer = train.Trainer(model, "cross_entropy", optimizer, schedule=schedule)
    assert trainer.fit((x, y), (x, y), epochs=3)["lr"] == pytest.approx([1e-12, 1e-12, 0.5e-12])


@pytest.mark.parametrize("name", ["lbfgs", "bfgs", "conjugate-gradient", "levenberg"])
def test_optimizers_with_closures(name: str) -> None:
    x, y = problem()
    if name == "levenberg":
        with pytest.raises(ValueError, match="unknown optimizer 'levenberg'"):
            train.Trainer(network(), "cross_entropy", name)
        return
    trainer = train.Trainer(network(), "cross_entropy", name)
    before = trainer.evaluate((x, y))["loss"]
    trainer.fit((x, y), epochs=5, batch_size=96)
    assert trainer.evaluate((x, y))["loss"] < 0.7 * before


def test_fast_dev_run_and_overfit_batches() -> None:
    x, y = problem()
    seen: list[int] = []
    count = train.LambdaCallback(on_batch_end=lambda t: seen.append(t.epoch))
    trainer = train.Trainer(network(), "cross_entropy", callbacks=[count])
    assert len(trainer.fit((x, y), (x, y), epochs=50, fast_dev_run=True)) == 1
    assert seen == [0]
    model = network()
    trainer = train.Trainer(model, "cross_entropy", optim.Adam(model.parameters(), lr=0.05))
    history = trainer.fit((x, y), epochs=150, batch_size=8, overfit_batches=1)
    assert history[-1]["loss"] < 0.01  # eight samples are learned by heart


def test_gradient_norms() -> None:
    x, y = problem()
    norms = train.GradientNorms()
    model = network()
    train.Trainer(model, "cross_entropy", callbacks=[norms]).fit((x, y), epochs=3)
    assert list(norms.norms) == [name for name, _ in model.named_parameters()]
    assert all(len(v) == 3 and min(v) > 0 for v in norms.norms.values())


def test_inputs_of_several_parts() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Bilinear(4, 4, 3)

        def forward(self, a: Any, b: Any) -> Any:
            return self.layer(a, b)

    x, y = problem()
    pairs = [((x[i], x[i]), y[i]) for i in range(len(x))]

    class Pairs(data.Dataset):
        def __len__(self) -> int:
            return len(pairs)

        def __getitem__(self, i: int) -> Any:
            return pairs[i]

    history = train.Trainer(Two(), "cross_entropy").fit(data.DataLoader(Pairs(), 16), epochs=2)
    assert history["loss"][1] < history["loss"][0]


# --- what goes wrong ------------------------------------------------------------------------------


def test_a_nan_in_the_data_is_found() -> None:
    x, y = problem()
    x[41, 2] = float("nan")
    model = network()
    trainer = train.Trainer(model, "cross_entropy")
    with pytest.raises(train.DivergedError, match=r"batch 2 of epoch 1.*(?s:.*)rows 9") as caught:
        trainer.fit((x, y), epochs=3, shuffle=False)
    assert trainer.history.ending == "diverged"
    assert caught.value.autopsy.where == "input"
    assert caught.value.autopsy.samples == [9]
    assert np.isfinite(weights(model)).all()


def test_an_overflowing_layer_is_found() -> None:
    x, y = problem()
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    with chainrule.no_grad():
        model[2].weight.fill_(3e38)
    with pytest.raises(train.DivergedError, match="the layer '2', Linear, turned finite inputs"):
        train.Trainer(model, "cross_entropy").fit((x + 5, y), epochs=1)


def test_an_infinite_gradient_is_found() -> None:
    class Root(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(chainrule.zeros(4))

        def forward(self, x: Any) -> Any:
            return (x * self.w).sum(1).abs().sqrt()

    x, _ = problem()
    model = Root()
    with pytest.raises(train.DivergedError, match="a gradient is not finite") as caught:
        train.Trainer(model, "mse").fit((x, x[:, 0]), epochs=1)
    assert caught.value.autopsy.where == "backward"
    assert weights(model).tolist() == [0, 0, 0, 0]


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C interrupts, also where the tests run in the background and a shell has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_stops_cleanly_and_keeps_the_best(ctrl_c: None) -> None:
    x, y = problem()
    model = network()

    def interrupt(trainer: train.Trainer) -> None:
        if trainer.epoch == 3:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)

    ended: list[str] = []
    callback = train.LambdaCallback(
        on_batch_end=interrupt, on_fit_end=lambda t: ended.append(t.history.stopped)
    )
    if threading.current_thread() is not threading.main_thread():
        pytest.fail("signals reach the main thread only")
    trainer = train.Trainer(model, "cross_entropy", callbacks=[callback])
    history = trainer.fit((x, y), (x, y), epochs=50)
    assert len(history) == 3
    assert history.stopped == "interrupted by the user"
    assert history.ending == "interrupted"
    assert ended == ["interrupted by the user"]
    best = history.best("val_loss")["val_loss"]
    assert trainer.evaluate((x, y))["loss"] == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda m: train.Trainer(m, "crossentropy"), ValueError, "unknown name 'crossentropy'"),
        (lambda m: train.Trainer(m, 3), TypeError, "loss: expected a name"),
        (lambda m: train.Trainer(m, "mse", "adamm"), ValueError, "unknown optimizer 'adamm'"),
        (lambda m: train.Trainer(m, "mse", metrics=["auc"]), ValueError, "unknown name 'auc'"),
        (lambda m: train.Trainer(m, "mse", accumulate=0), ValueError, "accumulate must be pos"),
        (lambda m: train.Trainer(m, "mse", clip_norm=-1), ValueError, "clip_norm must be pos"),
        (lambda m: train.Trainer(m, "mse", schedule_each="day"), ValueError, "schedule_each"),
        (lambda m: train.Trainer(m, "mse").fit((1, 2, 3, 4)), ValueError, "got 4 parts"),
        (lambda m: train.Trainer(m, "mse").fit("data.csv"), TypeError, "expected a DataLoader"),
        (lambda m: train.Trainer(m, "mse").fit(problem(), epochs=-1), ValueError, "negative"),
        (lambda m: train.Trainer(m, lambda a, b: 3.0).fit(problem()), TypeError, "not a tensor"),
        (lambda m: train.LambdaCallback(on_epoc_end=print), TypeError, "no event 'on_epoc_end'"),
        (lambda m: train.EarlyStopping(0), ValueError, "patience must be positive"),
        (lambda m: train.Checkpoint("x", every=0), ValueError, "every must be positive"),
        (
            lambda m: train.Trainer(m, lambda a, b: (a - b).sum()).fit(
                (*problem(), chainrule.ones(96))
            ),
            ValueError,
            "no argument `reduction`",
        ),
        (
            lambda m: train.Trainer(m, "cross_entropy", class_weight="even").fit(problem()),
            ValueError,
            "expected 'balanced'",
        ),
    ],
)
def test_bad_input(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make(network())
