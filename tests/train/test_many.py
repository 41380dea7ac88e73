"""Networks trained at once are as if trained one by one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from train.many import classes

import chainrule
from chainrule import models, nn, optim, problems, regularize, train
from chainrule.data import KFold
from chainrule.random import fork_rng
from chainrule.train.batched.stacking import architecture, is_steady


F64 = chainrule.float64


SEEDS = range(4)
TRAINERS = ("metrics", "penalties", "clip_norm", "schedule", "schedule_each")


def alone(
    make: Callable[[], nn.Module],
    data: Any,
    loss: Any,
    optimizer: Any,
    seeds: Sequence[int],
    lr: Sequence[float] | None = None,
    validation: Any = None,
    trainer: Any = None,
    **options: Any,
) -> tuple[list[nn.Module], list[train.History]]:
    """Each network by a Trainer of its own."""
    networks, histories = [], []
    for i, seed in enumerate(seeds):
        with fork_rng():
            chainrule.manual_seed(seed)
            model = make()
            made = optimizer if lr is None else (lambda p, r=lr[i]: optimizer(p, lr=r))
            t = train.Trainer(model, loss, made, progress=False, **(trainer or {}))
            part = data[i] if isinstance(data, list) else data
            held_out = validation[i] if isinstance(validation, list) else validation
            histories.append(t.fit(part, held_out, **options))
            networks.append(model)
    return networks, histories


def compare(
    make: Any, data: Any, loss: Any, optimizer: Any, *, tolerance: float = 1e-9, **options: Any
) -> train.ManyFits:
    """Trains both ways and compares weights, buffers and histories."""
    own = {k: options.pop(k) for k in TRAINERS if k in options}
    seeds = options.pop("seeds", SEEDS)
    networks, histories = alone(make, data, loss, optimizer, seeds, trainer=own, **options)
    fits = train.fit_many(make, data, loss, optimizer, seeds=seeds, **own, **options)
    for a, b in zip(networks, fits.models, strict=True):
        assert all(m.training for m in b.modules())
        for (name, x), y in zip(a.state_dict().items(), b.state_dict().values(), strict=True):
            gap = float((x.to(F64) - y.to(F64)).abs().max())
            assert gap <= tolerance, f"{name} differs by {gap}"
    for one, other in zip(histories, fits.histories, strict=True):
        assert (one.stopped, one.columns, len(one)) == (other.stopped, other.columns, len(other))
        for column in set(one.columns) - {"seconds"}:
            assert other[column] == pytest.approx(one[column], abs=tolerance), column
    return fits


def folds(x: Any, y: Any, count: int = 4) -> tuple[list[Any], list[Any]]:
    splits = list(KFold(count, shuffle=True, random_state=0).split(x, y))
    return [(x[a], y[a]) for a, _ in splits], [(x[b], y[b]) for _, b in splits]


def small(**options: Any) -> Callable[[], nn.Module]:
    return lambda: models.MLP(4, [5], 2, "tanh", **options).double()


def xor() -> tuple[Any, Any]:
    p = problems.boolean("xor", dtype=F64)
    return p.inputs, p.targets


# --- equal to one by one --------------------------------------------------------------------------


def test_learning_rates_and_full_batches() -> None:
    fits = compare(
        lambda: models.MLP(2, [4], 1, "tanh").double(),
        xor(),
        "bce_with_logits",
        optim.SGD,
        lr=[0.1, 0.3, 0.5, 1.0],
        epochs=30,
        batch_size=4,
    )
    assert fits.jobs == 1
    assert [h[-1]["lr"] for h in fits.histories] == [0.1, 0.3, 0.5, 1.0]
    assert len({round(loss, 6) for loss in fits.last("loss")}) == 4


@pytest.mark.parametrize("shuffle", [True, False])
def test_the_order_of_batches(shuffle: bool) -> None:
    compare(
        small(), classes(), "cross_entropy", optim.Adam, epochs=4, batch_size=16, shuffle=shuffle
    )


@pytest.mark.parametrize("batch_size", [16, 100])
def test_dropout_drops_the_same_units(batch_size: int) -> None:
    compare(
        small(dropout=0.5), classes(), "cross_entropy", optim.Adam, epochs=5, batch_size=batch_size
    )


def test_folds_of_two_sizes_with_batch_norm_validation_and_metrics() -> None:
    x, y = classes()
    data, held_out = folds(x, y)  # 37 or 38 samples to train on
    fits = compare(
        small(norm="batch", dropout=0.2),
        data,
        "cross_entropy",
        optim.Adam,
        validation=held_out,
        metrics=["accuracy"],
        epochs=4,
        batch_size=16,
    )
    assert fits.jobs == 2
    assert fits.histories[0].columns == [
        "epoch",
        "loss",
        "accuracy",
        "val_loss",
        "val_accuracy",
        "lr",
        "seconds",
    ]


def test_each_network_stops_early_on_its_own() -> None:
    x, y = classes()
    data, held_out = folds(x, y)
    fits = compare(
        small(),
        data,
        "cross_entropy",
        lambda p: optim.Adam(p, lr=0.05),
        validation=held_out,
        epochs=40,
        batch_size=16,
        early_stopping=2,
        tolerance=1e-7,
    )
    lengths = {len(h) for h in fits.histories}
    assert len(lengths) > 1
    assert min(lengths) < 40
    best = [h.best("val_loss")["val_loss"] for h in fits.histories]
    for model, part, value in zip(fits.models, held_out, best, strict=True):
        assert train.Trainer(model, "cross_entropy").evaluate(part)["loss"] == pytest.approx(value)


def test_penalties_clipping_and_weights_of_samples() -> None:
    x, y = classes()
    w = chainrule.rand(50, generator=chainrule.Generator().manual_seed(1), dtype=F64)
    compare(
        small(),
        (x, y, w),
        "cross_entropy",
        optim.RMSprop,
        epochs=3,
        batch_size=20,
        lr=[0.01, 0.02, 0.03, 0.04],
        clip_norm=0.1,
        validation=(x, y, w),
        penalties={"l2": lambda m: 1e-2 * sum((p * p).sum() for p in m.parameters())},
    )
    compare(
        small(),
        (x, y),
        "cross_entropy",
        optim.SGD,
        epochs=3,
        batch_size=20,
        penalties=[regularize.L2(0.1, where="*.weight"), regularize.L1(0.01)],
    )


def elementwise_optimizers() -> list[str]:
    found = []
    for name in optim.__all__:
        kind = getattr(optim, name)
        if isinstance(kind, type) and issubclass(kind, optim.Optimizer):
            plain = kind.step is optim.Optimizer.step and kind.update is optim.Optimizer.update
            if plain and kind.rule is not optim.Optimizer.rule:
                found.append(name)
    return found


@pytest.mark.parametrize("name", elementwise_optimizers())
def test_every_elementwise_optimizer(name: str) -> None:
    kind = getattr(optim, name)
    compare(small(), classes(20), "cross_entropy", kind, epochs=4, batch_size=10, seeds=[0, 1])
    options: Any = {"epochs": 4, "batch_size": 10, "seeds": [0, 1], "lr": [0.01, 0.02]}
    if name == "ASGD":
        with pytest.raises(ValueError, match="ASGD: lr must be one number"):
            compare(small(), classes(20), "cross_entropy", kind, **options)
    else:
        compare(small(), classes(20), "cross_entropy", kind, **options)


ARCHITECTURES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "convolutional": (
        lambda: nn.Sequential(
            nn.Conv2d(1, 3, 3),
            nn.BatchNorm2d(3),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(12, 2),
        ),
        (1, 6, 6),
    ),
    "layer norm": (lambda: models.MLP(4, [5], 2, norm="layer"), (4,)),
    "self-normalizing": (lambda: models.SelfNormalizingMLP(4, [5], 2, dropout=0.1), (4,)),
    "weight norm": (
        lambda: nn.Sequential(
            nn.utils.parametrizations.weight_norm(nn.Linear(4, 5)), nn.GELU(), nn.Linear(5, 2)
        ),
        (4,),
    ),
    "recurrent": (lambda: models.SequenceModel(3, 4, 2, each_step=False), (5, 3)),
    "cascade": (lambda: models.CascadeNetwork(4, 2, units=3), (4,)),
}


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_architectures(name: str) -> None:
    make, shape = ARCHITECTURES[name]
    g = chainrule.Generator().manual_seed(2)
    x = chainrule.randn(12, *shape, generator=g, dtype=F64)
    y = chainrule.randint(2, (12,), generator=g)
    fits = compare(
        lambda: make().double(),
        (x, y),
        "cross_entropy",
        optim.Adam,
        epochs=6,
        batch_size=6,
        seeds=[3, 4, 5],
    )
    assert fits.jobs == 1


class Counting(nn.Module):
    """A module of a user's own, which changes from call to call."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 2)
        self.calls = 0

    def forward(self, input: Any) -> Any:
        self.calls += 1
        return self.inner(input) * 0.9**self.calls


def test_modules_that_count_their_calls_are_called() -> None:
    fits = compare(
        lambda: Counting().double(),
        classes(20),
        "cross_entropy",
        optim.SGD,
        epochs=30,
        batch_size=10,
        seeds=[0],
        tolerance=1e-12,
    )
    ran = fits.histories[0].ran
    assert "a module keeps something of its own" in ran or "no compiled kernels" in ran
    assert not is_steady(Counting(), [])
    assert is_steady(models.MLP(2, [3], 1), [nn.functional.mse_loss])


def test_float32() -> None:
    x, y = classes()
    compare(
        lambda: models.MLP(4, [5], 2),
        (x.float(), y),
        "cross_entropy",
        optim.SGD,
        epochs=5,
        tolerance=1e-5,
    )


# --- what belongs together ------------------------------------------------------------------------


def test_networks_that_differ_are_trained_apart() -> None:
    makers = [lambda h=h: models.MLP(4, [h], 2).double() for h in (3, 3, 5, 5)]
    fits = train.fit_many(makers, classes(), "cross_entropy", epochs=2)
    assert fits.jobs == 2
    assert [m[0].out_features for m in fits.models] == [3, 3, 5, 5]
    single = train.fit_many(makers[2:3], classes(), "cross_entropy", seeds=[2], epochs=2)
    assert single.last("loss") == pytest.approx(fits.last("loss")[2:3])


def test_settings_that_are_no_numbers_make_another_architecture() -> None:
    def of(p: float, f: Any) -> Any:
        return architecture(models.MLP(2, [3], 1, f, dropout=p))

    assert of(0.1, "relu") == of(0.1, "relu")
    assert of(0.1, "relu") != of(0.2, "relu")
    assert of(0.1, "relu") != of(0.1, "tanh")

    def scaled(c: float) -> Any:
        return lambda z: c * z

    assert of(0.1, scaled(2.0)) == of(0.1, scaled(2.0))
    assert of(0.1, scaled(2.0)) != of(0.1, scaled(3.0))


def test_shared_weights_stay_shared() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
            self.b.weight = self.a.weight
            self.out = nn.Linear(4, 2)

        def forward(self, input: Any) -> Any:
            return self.out(self.b(self.a(input).tanh()))

    fits = compare(lambda: Tied().double(), classes(20), "cross_entropy", optim.Adam, epochs=3)
    assert fits.models[1].b.weight is fits.models[1].a.weight


def test_frozen_parameters_stay() -> None:
    def make() -> nn.Module:
        model = small()()
        model[0].requires_grad_(False)
        return model

    fits = compare(make, classes(20), "cross_entropy", optim.Adam, epochs=3)
    chainrule.manual_seed(1)
    assert bool((fits.models[1][0].weight == make()[0].weight).all())


def test_the_global_generator_is_left_alone() -> None:
    chainrule.manual_seed(0)
    expected = chainrule.rand(3)
    chainrule.manual_seed(0)
    train.fit_many(small(dropout=0.5), classes(), "cross_entropy", seeds=SEEDS, epochs=2)
    assert bool((chainrule.rand(3) == expected).all())


# --- networks that diverge ------------------------------------------------------------------------


def test_a_network_that_diverges_leaves_the_others_alone() -> None:
    x = chainrule.linspace(-1, 1, 16, dtype=F64).reshape(-1, 1)
    rates = [0.01, 1e6, 0.02]

    def make() -> nn.Module:
        return nn.Linear(1, 1).double()

    fits = train.fit_many(make, (x, 3 * x), "mse", optim.SGD, lr=rates, epochs=60)
    assert "diverged: the loss is not finite in batch 1 of epoch" in fits.histories[1].stopped
    assert [h.ending for h in fits.histories] == ["finished", "diverged", "finished"]
    assert len(fits.histories[1]) < 60
    assert all(bool(p.isfinite().all()) for m in fits.models for p in m.parameters())
    networks, _ = alone(make, (x, 3 * x), "mse", optim.SGD, [0, 2], [0.01, 0.02], epochs=60)
    for model, i in zip(networks, (0, 2), strict=True):
        assert float((model.weight - fits.models[i].weight).abs().max()) < 1e-12
        assert len(fits.histories[i]) == 60
    assert "diverged" in str(fits)


def test_a_fold_that_diverges_is_an_error_of_its_own_kind() -> None:
    x = chainrule.linspace(-1, 1, 16, dtype=F64).reshape(-1, 1)
    sgd = functools.partial(optim.SGD, lr=1e9)
    for many in (False, True):
        with pytest.raises(train.DivergedError, match="is not finite in batch"):
            train.cross_validate(
                lambda: nn.Linear(1, 1).double(), (x, 3 * x), "mse", sgd, epochs=60, many=many
            )


# --- wrong calls ----------------------------------------------------------------------------------


def test_wrong_calls() -> None:
    data = classes(10)
    with pytest.raises(ValueError, match="how many networks"):
        train.fit_many(small(), data, "cross_entropy")
    with pytest.raises(ValueError, match=r"one entry for each network.*'lr': 2, 'seeds': 3"):
        train.fit_many(small(), data, "cross_entropy", lr=[0.1, 0.2], seeds=range(3))
    with pytest.raises(ValueError, match="empty"):
        train.fit_many(small(), data, "cross_entropy", seeds=[])
    with pytest.raises(ValueError, match="module of its own"):
        train.fit_many(small()(), data, "cross_entropy", seeds=range(2))
    with pytest.raises(TypeError, match="must return a module, got int"):
        train.fit_many(lambda: 3, data, "cross_entropy", seeds=range(2))
    with pytest.raises(ValueError, match="LBFGS does not work element by element"):
        train.fit_many(small(), data, "cross_entropy", "lbfgs", seeds=range(2))
    model = small()()
    with pytest.raises(TypeError, match="belongs to parameters already"):
        train.fit_many(small(), data, "mse", optim.SGD(model.parameters()), seeds=range(2))
    with pytest.raises(ValueError, match=r"expected data as \(x, y\)"):
        train.fit_many(small(), data[0], "cross_entropy", seeds=range(2))
    with pytest.raises(ValueError, match=r"one length, got \[10, 9\]"):
        train.fit_many(small(), (data[0], data[1][:9]), "cross_entropy", seeds=range(2))
    with pytest.raises(ValueError, match="must not be negative"):
        train.fit_many(small(), data, "cross_entropy", lr=[0.1, -0.1])
    with pytest.raises(ValueError, match="clip_norm must be positive"):
        train.fit_many(small(), data, "cross_entropy", seeds=range(2), clip_norm=0.0)
    with pytest.raises(ValueError, match=r"have no shape yet"):
        train.fit_many(lambda: nn.LazyLinear(2), data, "cross_entropy", seeds=range(2))
