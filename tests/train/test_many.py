"""Networks trained together are what they are when trained alone."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import scipy.stats

import chainrule
from chainrule import backend, models, nn, optim, problems, regularize, train
from chainrule.data import KFold
from chainrule.random import fork_rng
from chainrule.train.batched.program import Program
from chainrule.train.batched.stacking import Stack, architecture, is_steady

F64 = chainrule.float64
SEEDS = range(4)


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
    own = {k: options.pop(k) for k in ("metrics", "penalties", "clip_norm") if k in options}
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


def classes(n: int = 50) -> tuple[Any, Any]:
    g = chainrule.Generator().manual_seed(0)
    x = chainrule.randn(n, 4, generator=g, dtype=F64)
    return x, (x[:, 0] + x[:, 1] * x[:, 2] > 0).long()


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
    compare(
        lambda: Counting().double(),
        classes(20),
        "cross_entropy",
        optim.SGD,
        epochs=4,
        batch_size=10,
        seeds=[0],
        tolerance=1e-12,
    )
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


# --- how it is computed ---------------------------------------------------------------------------


def test_a_layer_is_one_operation_for_all_networks() -> None:
    networks = [models.MLP(4, [5], 2) for _ in range(7)]
    stack = Stack(networks, steady=True)
    x, y = classes(10)

    def loss(model: nn.Module, x: Any, y: Any) -> Any:
        return [nn.functional.cross_entropy(model(x), y)], []

    generators = [chainrule.Generator().manual_seed(i) for i in range(7)]
    streams = chainrule.random.Streams(generators)
    for _ in range(3):
        (losses,), _ = stack.differentiate(loss, [x.float(), y], [True, True], streams)
    (plan,) = stack.plans.values()
    assert plan.checked
    names = [s.op.name for s in plan.program.steps]
    assert names == ["linear", "relu", "linear", "broadcast_to", "cross_entropy"]
    assert losses.shape == (7,)
    networks[3].zero_grad()
    alone = nn.functional.cross_entropy(networks[3](x.float()), y)
    alone.backward()
    assert float(losses[3]) == pytest.approx(float(alone.detach()), rel=1e-6)
    gap = stack.tensors["0.weight"].grad[3] - networks[3][0].weight.grad
    assert float(gap.abs().max()) < 1e-6


@pytest.mark.skipif(backend.current() != "native", reason="of the compiled kernels")
@pytest.mark.parametrize("rates", [[0.01] * 3, [0.01, 0.02, 0.03]], ids=["one rate", "rates"])
@pytest.mark.parametrize("batch_size", [16, 100])
def test_steps_are_not_left_to_numpy(rates: list[float], batch_size: int) -> None:
    """Also with batches in an order of their own, and a learning rate for each network."""
    families = backend._IMPLEMENTATIONS["numpy"]
    kernels = {name: getattr(family, name) for family in families for name in family.__all__}
    used = []

    def watched(name: str) -> Callable[..., Any]:
        def kernel(*args: Any, **options: Any) -> Any:
            used.append(name)
            return kernels[name](*args, **options)

        return kernel

    native = backend.native_module()
    native.bind_reference({name: watched(name) for name in kernels})
    try:
        train.fit_many(
            lambda: models.MLP(4, [5], 2, "tanh"),
            folds(*classes(51), 3)[0],
            "cross_entropy",
            "adam",
            lr=rates,
            epochs=5,
            batch_size=batch_size,
        )
    finally:
        native.bind_reference(kernels)
    step = {"linear", "linear_backward", "tanh", "tanh_backward", "cross_entropy_and_softmax"}
    assert not (step | {"cross_entropy_backward", "write_updates", "all_finite"}) & set(used)


def test_what_a_recording_cannot_repeat_is_not_repeated() -> None:
    """A constant that should have been an operation shows in the second call."""
    stack = Stack([nn.Linear(2, 1) for _ in range(3)], steady=True)
    count = iter(range(100))

    def loss(model: nn.Module, x: Any) -> Any:
        return [model(x).sum() * float(next(count))], []

    x = chainrule.ones(4, 2)
    streams = chainrule.random.Streams([chainrule.Generator() for _ in range(3)])
    before = [stack.differentiate(loss, [x], [True], streams)[0][0] for _ in range(4)]
    (plan,) = stack.plans.values()
    assert plan.failed
    assert bool((before[3] == 3 * before[1]).all())


def test_a_program_repeats_values_and_gradients() -> None:
    g = chainrule.Generator().manual_seed(0)
    w = chainrule.randn(3, 3, generator=g, dtype=F64).requires_grad_()

    def f(w: Any) -> Any:
        a, b = w.tanh().split(2)
        return (a @ w.mT).exp().sum() * w.detach().sum() + b.max()

    program = Program([w])
    with program.recording():
        out = f(w)
    program.finish([out])
    for _ in range(2):
        other = chainrule.randn(3, 3, generator=g, dtype=F64).requires_grad_()
        expected = f(other)
        expected.backward()
        assert float(program.forward([other])[0] - expected.detach()) == 0
        (gradient,) = program.backward([chainrule.ones((), dtype=F64)])
        assert float((gradient - other.grad).abs().max()) < 1e-14


# --- where it is used -----------------------------------------------------------------------------


def test_cross_validation_by_many_is_cross_validation() -> None:
    x, y = classes(61)
    settings: dict[str, Any] = {"folds": 4, "epochs": 3, "metrics": ["accuracy"], "seed": 2}
    one = train.cross_validate(small(dropout=0.2), (x, y), "cross_entropy", **settings)
    other = train.cross_validate(small(dropout=0.2), (x, y), "cross_entropy", many=True, **settings)
    assert other.folds["size"] == one.folds["size"]
    for name in ("loss", "accuracy"):
        assert other.folds[name] == pytest.approx(one.folds[name], abs=1e-9)
        assert other.mean[name] == pytest.approx(one.mean[name], abs=1e-9)
    with pytest.raises(ValueError, match=r"many=True does not take \['accumulate'\]"):
        train.cross_validate(small(), (x, y), "cross_entropy", many=True, accumulate=2)
    with pytest.raises(ValueError, match="many=True is one job, got n_jobs=2"):
        train.cross_validate(small(), (x, y), "cross_entropy", many=True, n_jobs=2)


def test_a_sweep_by_many(tmp_path: Any) -> None:
    calls: list[int] = []

    def run(settings: list[dict[str, Any]]) -> list[dict[str, float]]:
        calls.append(len(settings))
        rates = [s["lr"] for s in settings]
        fits = train.fit_many(small(), classes(), "cross_entropy", "sgd", lr=rates, epochs=3)
        return [{"loss": loss} for loss in fits.last("loss")]

    path = tmp_path / "results.jsonl"
    table = train.sweep(run, train.grid({"lr": [0.1, 0.2]}), many=True, path=path)
    again = train.sweep(run, train.grid({"lr": [0.1, 0.2, 0.5]}), many=True, path=path)
    assert calls == [2, 1]
    assert again["loss"][:2] == table["loss"]
    with pytest.raises(TypeError, match="a list of 1 dictionaries"):
        train.sweep(lambda settings: [], [{"lr": 1.0}], many=True)


@pytest.mark.parametrize("method", ["wilson", "exact"])
@pytest.mark.parametrize(("k", "n"), [(0, 20), (6, 20), (20, 20), (1, 1), (37, 400)])
def test_binomial_intervals(method: str, k: int, n: int) -> None:
    expected = scipy.stats.binomtest(k, n).proportion_ci(0.9, method=method)
    low, high = train.binomial_interval(k, n, 0.9, method)
    assert low == pytest.approx(expected.low, abs=1e-9)
    assert high == pytest.approx(expected.high, abs=1e-9)


def test_wrong_intervals() -> None:
    with pytest.raises(ValueError, match="0 <= k <= n"):
        train.binomial_interval(3, 2)
    with pytest.raises(ValueError, match="'wilson' or 'exact'"):
        train.binomial_interval(1, 2, method="normal")


def test_the_starting_point_matters_for_xor() -> None:
    """Document 001: from U(-10, 10) XOR fails 6 of 20 times (here about half of the times), from
    N(0, 1 / fan_in) never."""
    x, y = xor()

    def network(start: Callable[[Any], Any]) -> Callable[[], nn.Module]:
        def make() -> nn.Module:
            net = models.MLP(2, [4], 1, "sigmoid", output_activation="sigmoid").double()
            for layer in (net[0], net[2]):
                start(layer.weight)
                nn.init.zeros_(layer.bias)
            return net

        return make

    def rate(start: Callable[[Any], Any]) -> train.FailureRate:
        return train.failure_rate(
            network(start),
            (x, y),
            "bce",
            lambda p: optim.SGD(p, lr=0.1, momentum=0.99),
            solved=lambda output, y: ((output > 0.5) == (y > 0.5)).all(),
            epochs=1000,
            batch_size=4,
        )

    wide = rate(lambda w: nn.init.uniform_(w, -10, 10))
    narrow = rate(lambda w: nn.init.normal_(w, 0, 1 / math.sqrt(w.shape[1])))
    assert narrow.failures == 0
    assert 5 <= wide.failures <= 16
    assert wide.interval[0] < 0.52 < wide.interval[1]  # the rate over many starts
    assert f"failed {wide.failures} of 20 times" in str(wide)
    assert wide.fits.jobs == 1


def test_a_start_that_diverges_is_a_failure() -> None:
    x = chainrule.linspace(-1, 1, 16).reshape(-1, 1)
    result = train.failure_rate(
        lambda: nn.Linear(1, 1), (x, x), "mse", "sgd", solved=1.0, starts=3, lr=1e6, epochs=40
    )
    assert result.failures == 3
    with pytest.raises(ValueError, match="starts must be positive"):
        train.failure_rate(lambda: nn.Linear(1, 1), (x, x), "mse", solved=1.0, starts=0)


# --- the operations behind it ---------------------------------------------------------------------


def layers(x: Any, w: Any, b: Any) -> Any:
    return nn.functional.linear(x, w, b)


@pytest.mark.parametrize("shared", [False, True])
def test_linear_layers_with_weights_of_their_own(shared: bool) -> None:
    """vmap over the weights, and its derivatives of first and second order in both modes."""
    g = chainrule.Generator().manual_seed(0)

    def normal(*shape: int) -> Any:
        return chainrule.randn(*shape, generator=g, dtype=F64)

    x, w, b = normal(*(() if shared else (3,)), 5, 4), normal(3, 2, 4), normal(3, 2)
    over = chainrule.func.vmap(layers, in_dims=(None if shared else 0, 0, 0))

    def loop(x: Any, w: Any, b: Any) -> Any:
        each = [x] * 3 if shared else list(x)
        return chainrule.stack([layers(each[i], w[i], b[i]) for i in range(3)])

    def total(f: Any) -> Any:
        return lambda *args: (f(*args) ** 3).sum()

    tangents = tuple(normal(*t.shape) for t in (x, w, b))
    for f in (over, loop):
        assert f(x, w, b).shape == (3, 5, 2)
    pairs = [(chainrule.func.grad(total(f), (0, 1, 2))(x, w, b)) for f in (over, loop)]
    pairs += [chainrule.func.jvp(f, (x, w, b), tangents) for f in (over, loop)]
    pairs += [chainrule.func.hvp(total(f), (x, w, b), tangents) for f in (over, loop)]
    for i in (0, 2, 4):
        for p, q in zip(flat(pairs[i]), flat(pairs[i + 1]), strict=True):
            assert float((p - q).abs().max()) < 1e-12


def flat(tree: Any) -> list[Any]:
    return [t for part in tree for t in flat(part)] if isinstance(tree, tuple) else [tree]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("shape", [(6,), (2, 3)])
def test_cross_entropy_of_many(reduction: str, shape: tuple[int, ...]) -> None:
    """One operation for all, also where targets are ignored, nested, and differentiated twice."""
    g = chainrule.Generator().manual_seed(1)
    x = chainrule.randn(2, 3, shape[0], 4, *shape[1:], generator=g, dtype=F64)
    y = chainrule.randint(4, (2, 3, *shape), generator=g)

    def loss(x: Any, y: Any) -> Any:
        return nn.functional.cross_entropy(x, y, ignore_index=2, reduction=reduction)

    def cube(x: Any, y: Any) -> Any:
        return (loss(x, y) ** 3).sum()

    vmap, grad = chainrule.func.vmap, chainrule.func.grad
    for f in (loss, grad(cube), grad(lambda x, y: (grad(cube)(x, y) ** 2).sum())):
        got = vmap(vmap(f))(x, y)
        for i in range(2):
            for j in range(3):
                expected = f(x[i, j], y[i, j])
                assert bool(got[i, j].isclose(expected, 1e-10, 1e-12).all())
    y[0, 1] = 2  # of one, all are ignored
    assert vmap(loss)(x[0], y[0])[1].isnan().all() if reduction == "mean" else True
    x.requires_grad_()
    vmap(vmap(loss))(x, y).nansum().backward()
    assert bool((x.grad[0, 1] == 0).all())
    assert bool((x.grad[1, 1] != 0).any())


@pytest.mark.parametrize(
    ("penalty", "message"),
    [
        (regularize.Normalized(regularize.L2(1.0), 0.1), "changes the gradient"),
        (regularize.SoftWeightSharing(0.1), "has parameters of its own"),
        (regularize.Tikhonov(0.1), "needs the inputs"),
    ],
    ids=["normalized", "soft-sharing", "tikhonov"],
)
def test_penalties_that_cannot_be_stacked_are_refused(penalty: Any, message: str) -> None:
    x = chainrule.randn(8, 2)
    with pytest.raises(ValueError, match=f"fit_many: the penalty .* {message}"):
        train.fit_many(
            lambda: nn.Linear(2, 1),
            (x, x[:, :1]),
            "mse",
            "sgd",
            seeds=range(2),
            epochs=1,
            penalties=[penalty],
        )
