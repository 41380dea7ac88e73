"""What metrics, early stopping and predictions see of a run."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from train.small import problem

import chainrule
from chainrule import data, models, nn, optim, train
from chainrule.nn import functional as F


def network() -> nn.Module:
    chainrule.manual_seed(0)
    return models.MLP(4, [8], 3)


def weights(model: nn.Module) -> np.ndarray:
    return np.concatenate([p.detach().numpy().ravel() for p in model.parameters()])


@pytest.mark.parametrize(
    ("loss", "low", "head"),
    [
        ("bce", 0, nn.Sigmoid()),
        (nn.BCELoss(), 0, nn.Sigmoid()),
        ("bce_with_logits", 0, nn.Identity()),
        ("mse", 0, nn.Identity()),
        ("mse", 0, nn.Sigmoid()),
        ("mse", -1, nn.Tanh()),
        ("soft_margin", -1, nn.Identity()),
    ],
)
def test_accuracy_of_a_network_that_has_learned_xor(loss: Any, low: int, head: nn.Module) -> None:
    chainrule.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1), head)
    x = chainrule.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    y = chainrule.tensor([[0.0], [1.0], [1.0], [0.0]])
    y = y if low == 0 else 2 * y - 1
    optimizer = optim.Adam(model.parameters(), lr=0.05)
    metrics = ["accuracy", "f1", "error_rate"]
    trainer = train.Trainer(model, loss, optimizer, metrics=metrics, progress=False)
    trainer.fit((x, y), epochs=300)
    found = trainer.evaluate((x, y))
    assert found["loss"] < 0.1
    assert (found["accuracy"], found["f1"], found["error_rate"]) == (1, 1, 0)


def test_a_loss_of_logits_says_that_small_scores_are_logits() -> None:
    model = nn.Identity()
    x, y = chainrule.tensor([[0.2], [0.3]]), chainrule.tensor([[1.0], [1.0]])
    for loss, right in (("bce_with_logits", 1.0), ("bce", 0.0)):
        parameters = [nn.Parameter(chainrule.zeros(1))]
        optimizer = optim.SGD(parameters, lr=0.1)
        trainer = train.Trainer(model, loss, optimizer, metrics=["accuracy", "nll"])
        found = trainer.evaluate((x, y))
        assert found["accuracy"] == right
        assert found["nll"] == pytest.approx(found["loss"], rel=1e-6)


def column_setter(name: str, values: list[float]) -> train.LambdaCallback:
    """Gives the epochs these values in a column, before anything looks at them."""

    def start(trainer: train.Trainer) -> None:
        trainer.metrics[name.removeprefix("val_")] = lambda output, target: values[trainer.epoch]

    return train.LambdaCallback(on_epoch_start=start)


@pytest.mark.parametrize("where", ["fit", "callbacks"])
@pytest.mark.parametrize(
    ("values", "mode", "best"),
    [([0.1, 0.9, 0.5, 0.6], "max", 2), ([0.5, 0.2, 0.7, 0.1], "min", 4)],
)
def test_the_best_weights_are_those_of_the_monitored_column(
    where: str, values: list[float], mode: str, best: int
) -> None:
    x, y = problem()
    model = network()
    seen: dict[int, np.ndarray] = {}
    keep = train.LambdaCallback(
        on_epoch_end=lambda t: seen.__setitem__(t.epoch, weights(t.model).copy())
    )
    stop = train.EarlyStopping(9, monitor="val_own", mode=mode)
    callbacks = [column_setter("val_own", values), keep, *([stop] if where == "callbacks" else [])]
    trainer = train.Trainer(model, "cross_entropy", callbacks=callbacks)
    early = stop if where == "fit" else None
    history = trainer.fit((x, y), (x, y), epochs=4, early_stopping=early)
    assert history["val_loss"].index(min(history["val_loss"])) + 1 == 4
    np.testing.assert_array_equal(weights(model), seen[best])


def test_early_stopping_without_validation_restores_by_the_loss() -> None:
    x, y = problem()
    model = network()
    losses = iter([3.0, 1.0, 2.0, 2.5])
    seen: dict[int, np.ndarray] = {}

    def loss(output: Any, target: Any) -> Any:
        found = F.cross_entropy(output, target)
        return found * (next(losses) / found.detach())

    keep = train.LambdaCallback(
        on_epoch_end=lambda t: seen.__setitem__(t.epoch, weights(t.model).copy())
    )
    stop = train.EarlyStopping(2)
    trainer = train.Trainer(model, loss, callbacks=[keep, stop])
    history = trainer.fit((x, y), epochs=4, batch_size=96)
    assert history["loss"] == pytest.approx([3, 1, 2, 2.5])
    np.testing.assert_array_equal(weights(model), seen[2])


def test_nan_is_never_the_best() -> None:
    x, y = problem()
    values = [math.nan, 0.5, math.nan, 0.7]
    stop = train.EarlyStopping(9, monitor="val_error")
    seen: dict[int, np.ndarray] = {}
    keep = train.LambdaCallback(
        on_epoch_end=lambda t: seen.__setitem__(t.epoch, weights(t.model).copy())
    )
    model = network()
    callbacks = [column_setter("val_error", values), keep, stop]
    trainer = train.Trainer(model, "cross_entropy", callbacks=callbacks)
    trainer.fit((x, y), (x, y), epochs=4)
    np.testing.assert_array_equal(weights(model), seen[2])
    bad = chainrule.full((4, 4), math.nan)
    model = network()
    trainer = train.Trainer(model, "cross_entropy", callbacks=[keep])
    trainer.fit((x, y), (bad, y[:4]), epochs=2, restore_best=True)
    np.testing.assert_array_equal(weights(model), seen[2])  # no epoch was best, the last stays


def test_many_networks_restore_by_what_is_monitored() -> None:
    x, y = problem()
    seen: list[float] = []

    def own(output: Any, target: Any) -> float:
        seen.append(float(output.detach().abs().sum()))
        return [0.1, 0.9, 0.5][(len(seen) - 1) // 2 % 3]  # training, then validation

    stop = train.EarlyStopping(9, monitor="val_own")
    fits = train.fit_many(
        lambda: models.MLP(4, [8], 3),
        (x, y),
        "cross_entropy",
        "adam",
        seeds=[0],
        validation=(x, y),
        metrics={"own": own},
        epochs=3,
        batch_size=96,
        early_stopping=stop,
    )
    assert fits.histories[0]["val_own"] == [0.1, 0.9, 0.5]
    assert float(fits.models[0](x).abs().sum()) == pytest.approx(seen[3], rel=1e-5)


def test_gradient_norms_are_those_before_clipping() -> None:
    x, y = problem()
    found = []
    for options in ({}, {"clip_norm": 1e-4}, {"clip_value": 1e-6}):
        norms = train.GradientNorms()
        model = network()
        optimizer = optim.SGD(model.parameters(), lr=0.0)
        trainer = train.Trainer(model, "cross_entropy", optimizer, callbacks=[norms], **options)
        trainer.fit((x, y), epochs=1, shuffle=False)
        found.append(norms.norms)
    assert found[0] == found[1] == found[2]
    lbfgs = train.GradientNorms()
    train.Trainer(network(), "cross_entropy", "lbfgs", callbacks=[lbfgs]).fit((x, y), epochs=2)
    assert all(len(v) == 2 and min(v) > 0 for v in lbfgs.norms.values())


class TwoHeads(nn.Module):
    """Classes and a number from one network, as a tuple or as a dict."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.classes, self.number, self.kind = nn.Linear(4, 3), nn.Linear(4, 1), kind

    def forward(self, x: Any) -> Any:
        parts = (self.classes(x), self.number(x))
        if self.kind == "tuple":
            return parts
        return {"classes": parts[0], "more": {"number": parts[1], "mean": parts[1].mean()}}


@pytest.mark.parametrize("kind", ["tuple", "dict"])
def test_outputs_of_several_parts(kind: str) -> None:
    x, y = problem()
    model = TwoHeads(kind)

    def classes(output: Any) -> Any:
        return output[0] if kind == "tuple" else output["classes"]

    def loss(output: Any, target: Any) -> Any:
        return F.cross_entropy(classes(output), target)

    def right(output: Any, target: Any) -> float:
        return train.metrics.accuracy(classes(output), target)

    trainer = train.Trainer(model, loss, metrics={"right": right})
    history = trainer.fit((x, y), (x, y), epochs=2, batch_size=20)
    whole = model(x)
    assert history[-1]["val_right"] == right(whole, y)
    found = trainer.predict(x, batch_size=20)
    np.testing.assert_allclose(classes(found).numpy(), classes(whole).detach().numpy(), rtol=1e-5)
    if kind == "tuple":
        assert isinstance(found, tuple)
        assert found[1].shape == (96, 1)
    else:
        assert found["more"]["number"].shape == (96, 1)
        assert found["more"]["mean"].shape == (5,)
    with pytest.raises(TypeError, match=f"accuracy: the output is a {kind} of several tensors"):
        train.Trainer(model, loss, metrics="accuracy").evaluate((x, y))


def test_a_part_without_samples_first_is_refused() -> None:
    model = nn.LSTM(4, 8, num_layers=3, batch_first=True)
    trainer = train.Trainer(model, lambda output, target: (output[0] - target).square().mean())
    x = chainrule.randn(10, 5, 4)
    output, (h, _) = trainer.predict(x)
    assert (output.shape, h.shape) == ((10, 5, 8), (3, 10, 8))
    with pytest.raises(ValueError, match=r"shape \(3, 4, 8\) for a batch of 4 samples"):
        trainer.predict(x, batch_size=4)


def test_inputs_as_a_dict() -> None:
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 3)

        def forward(self, given: dict[str, Any]) -> Any:
            return self.layer(given["a"] + given["b"])

    x, y = problem()
    samples = [({"a": x[i], "b": x[i]}, y[i]) for i in range(50)]

    class Samples(data.Dataset):
        def __len__(self) -> int:
            return len(samples)

        def __getitem__(self, i: int) -> Any:
            return samples[i]

    model = Named()
    trainer = train.Trainer(model, "cross_entropy", metrics="accuracy")
    found = trainer.evaluate(data.DataLoader(Samples(), 16))
    output = trainer.predict({"a": x[:50], "b": x[:50].numpy()}, batch_size=16)
    np.testing.assert_allclose(output.numpy(), model.layer(2 * x[:50]).detach().numpy(), rtol=1e-5)
    assert found["loss"] == pytest.approx(float(F.cross_entropy(output, y[:50])), rel=1e-5)


@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool"])
def test_integer_features_become_numbers(dtype: str) -> None:
    r = np.random.default_rng(0)
    x = r.integers(0, 2 if dtype == "bool" else 9, size=(40, 4)).astype(dtype)
    y = (x.sum(1) > x.sum(1).mean()).astype("int64")
    results = []
    for given in (x, x.astype("float32")):
        chainrule.manual_seed(0)
        model = models.MLP(4, [8], 2)
        trainer = train.Trainer(model, "cross_entropy", metrics="accuracy")
        history = trainer.fit((given, y), (given, y), epochs=2, shuffle=False)
        results.append((history["val_loss"], trainer.predict(given).tolist(), weights(model)))
    assert results[0][:2] == results[1][:2]
    np.testing.assert_array_equal(results[0][2], results[1][2])
    fits = train.fit_many(lambda: models.MLP(4, [8], 2), (x, y), "cross_entropy", seeds=[0])
    assert fits.histories[0].ending == "finished"


def test_indices_stay_indices() -> None:
    class Counted(nn.Module):
        def forward(self, x: Any) -> Any:
            return F.one_hot(x, 5).float().sum(1)

    x, y = chainrule.randint(5, (30, 3)), chainrule.randint(2, (30,))
    for first in (nn.EmbeddingBag(5, 4), nn.Sequential(Counted(), nn.Linear(5, 4))):
        trainer = train.Trainer(nn.Sequential(first, nn.Linear(4, 2)), "cross_entropy")
        before = chainrule.get_rng_state().tolist()
        trainer.evaluate((x, y))
        assert trainer.predict(x).shape == (30, 2)
        assert chainrule.get_rng_state().tolist() == before
        assert trainer.fit((x, y), epochs=1).ending == "finished"
