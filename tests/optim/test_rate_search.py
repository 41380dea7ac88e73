"""The range test and the search by decades: what they find, and that they leave no trace."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from helpers import assert_close, to_array

import chainrule
from chainrule import nn, optim
from chainrule.nn import functional as F

X = np.array([1.0, 2.0, 3.0, 4.0])
Y = 3 * X
BETA = (
    2 * (X * X).mean()
)  # the curvature of mean((w x - y)^2) in w: gradient descent needs 2 / BETA


def line(w: float = 0.0) -> nn.Linear:
    model = nn.Linear(1, 1, bias=False).double()
    with chainrule.no_grad():
        model.weight.fill_(w)
    return model


def batches(count: int = 1) -> list[tuple[Any, Any]]:
    """The four points, in so many batches."""
    pairs = zip(np.split(X, count), np.split(Y, count), strict=True)
    return [(chainrule.tensor(x[:, None]), chainrule.tensor(y[:, None])) for x, y in pairs]


# --- what is found --------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["exponential", "linear"])
@pytest.mark.parametrize("count", [1, 2])
def test_range_test_by_hand(mode: str, count: int) -> None:
    """Losses after each step, on the next batch, of gradient descent written in NumPy."""
    result = optim.learning_rate_range_test(
        line(), F.mse_loss, optim.SGD, batches(count), 1e-3, 0.1, 12, mode=mode, window=2
    )
    rates = np.geomspace(1e-3, 0.1, 12) if mode == "exponential" else np.linspace(1e-3, 0.1, 12)
    xs, ys = np.split(X, count), np.split(Y, count)
    w, losses = 0.0, []
    for i, rate in enumerate(rates):
        x, y = xs[i % count], ys[i % count]
        w -= rate * (2 * x * (w * x - y)).mean()
        x, y = xs[(i + 1) % count], ys[(i + 1) % count]
        losses.append(((w * x - y) ** 2).mean())
    assert_close(result.rates, list(rates))
    assert_close(result.losses, losses)
    assert result.initial_loss == pytest.approx((ys[0] ** 2).mean())
    near = [0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 1, 0]
    means = [np.mean(losses[i - n : i + n + 1]) for i, n in enumerate(near)]
    assert_close(result.smoothed, [float(m) for m in means])
    assert not result.diverged


def test_range_test_finds_the_bound_of_gradient_descent() -> None:
    result = optim.learning_rate_range_test(
        line(), F.mse_loss, optim.SGD, batches(), 1e-5, 10.0, 200, window=0
    )
    assert result.diverged
    assert len(result.rates) == len(result.losses) < 200
    assert result.losses[-1] > 4 * result.initial_loss
    assert result.bounds is not None
    assert result.suggestion is not None
    low, high = result.bounds
    assert low < result.suggestion < high
    # The loss is lowest after the last step that still shrinks the error.
    assert high < 2 / BETA < 1.1 * high
    assert_close(high, result.rates[int(np.argmin(result.losses))])
    falls = -np.diff([result.initial_loss, *result.losses])
    assert result.suggestion == result.rates[int(np.argmax(falls))]
    assert abs(1 - result.suggestion * BETA) < 1  # it converges


def test_range_test_where_nothing_falls() -> None:
    result = optim.learning_rate_range_test(line(3.0), F.mse_loss, optim.SGD, batches(), steps=10)
    assert result.losses == [0.0] * 10
    assert result.suggestion is None
    assert result.bounds is None
    assert not result.diverged


def test_range_test_stops_at_nan() -> None:
    def loss(output: Any, target: Any) -> Any:
        value = F.mse_loss(output, target)
        calls.append(value)
        return value * math.nan if len(calls) == 4 else value

    calls: list[Any] = []
    result = optim.learning_rate_range_test(line(), loss, optim.SGD, batches(), steps=10)
    assert result.diverged
    assert len(calls) == 4
    assert len(result.rates) == len(result.losses) == 3
    assert math.isnan(result.losses[-1])
    assert all(math.isfinite(value) for value in result.losses[:-1])


def test_range_test_goes_on_past_a_gradient_that_is_not_finite() -> None:
    """sqrt(|w|) at 0 has no finite slope; the next loss is not a number, which ends the test."""
    result = optim.learning_rate_range_test(
        line(), lambda out, y: (out * 0).sqrt().sum() + 1, optim.SGD, batches(), steps=10
    )
    assert result.diverged
    assert result.initial_loss == 1.0
    assert len(result.losses) == 1


@pytest.mark.parametrize(
    ("lr", "divisor", "expected"),
    [(1.0, 10.0, [1.0, 0.1]), (10.0, 10.0, [10.0, 1.0, 0.1]), (1.0, 2.0, [1.0, 0.5, 0.25, 0.125])],
)
def test_logarithmic_search(lr: float, divisor: float, expected: list[float]) -> None:
    """The first rate below 2 / BETA = 0.133 converges."""
    assert 0.125 < 2 / BETA < 0.25
    result = optim.logarithmic_search(line(), F.mse_loss, optim.SGD, batches(), lr, divisor)
    assert result.rates == expected
    assert result.converged == [False] * (len(expected) - 1) + [True]
    assert result.suggestion == expected[-1]
    errors = 9 * (X * X).mean() * (1 - expected[-1] * BETA) ** (2 * np.arange(51))
    assert_close(result.losses[-1], [float(e) for e in errors], rtol=1e-6, atol=1e-20)
    assert all(len(losses) < 51 for losses in result.losses[:-1])  # they ended early


def test_logarithmic_search_that_finds_nothing() -> None:
    search = functools.partial(optim.logarithmic_search, line(), F.mse_loss, optim.SGD, batches())
    result = search(1.0, lr_min=0.5)
    assert result.rates == [1.0]
    assert result.suggestion is None
    stuck = search(1e-6, lr_min=1e-7)  # too low to make progress
    assert stuck.converged == [False, False]
    with_patience = search(1e-6, lr_min=1e-7, tolerance=1e-4)
    assert with_patience.suggestion == 1e-6


def test_oscillation_is_no_convergence() -> None:
    """At 2 / BETA the error only changes its sign."""
    result = optim.logarithmic_search(line(), F.mse_loss, optim.SGD, batches(), 2 / BETA)
    assert result.converged == [False, True]
    assert_close(result.losses[0], [result.losses[0][0]] * 51, rtol=1e-9)


def test_batches_that_differ_are_no_divergence() -> None:
    """The second batch has ten times the loss of the first, and the last is an easy one."""
    x = [chainrule.tensor([[v]], dtype=chainrule.float64) for v in (1.0, math.sqrt(10), 0.1)]
    some = [(v, 3 * v) for v in x]
    result = optim.learning_rate_range_test(
        line(), F.mse_loss, optim.SGD, some, 1e-6, 1e-3, steps=20
    )
    assert not result.diverged
    search = functools.partial(optim.logarithmic_search, line(), F.mse_loss, optim.SGD, some)
    assert search(1e-7, lr_min=1e-7, steps=2).converged == [False]  # nothing was learned
    assert search(0.01, lr_min=0.01, steps=4).converged == [True]


def test_an_iterator_of_batches() -> None:
    found = [
        optim.logarithmic_search(line(), F.mse_loss, optim.SGD, supply, 10.0, steps=3)
        for supply in (batches() * 4, iter(batches() * 4))
    ]
    assert found[0] == found[1]
    assert len(found[1].rates) == 3


def test_a_method_that_takes_a_closure() -> None:
    result = optim.learning_rate_range_test(
        line(), F.mse_loss, optim.LBFGS, batches(), 1e-3, 1.0, 5
    )
    assert len(result.losses) == 5
    assert result.losses[-1] < 1e-9 * result.initial_loss


# --- no trace -------------------------------------------------------------------------------------


class Replaces(nn.Module):
    """Counts its calls, and puts new tensors into its buffers instead of writing into them."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", chainrule.zeros(4))
        self.register_buffer("hidden", chainrule.zeros(1), persistent=False)
        self.calls = 0

    def forward(self, x: Any) -> Any:
        self.calls += 1
        self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)
        self.hidden += 1
        self.last = x
        return x


class Weighted(nn.Module):
    """A loss with a parameter and a buffer of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(chainrule.ones(1))
        self.register_buffer("seen", chainrule.zeros(()))

    def forward(self, output: Any, target: Any) -> Any:
        self.seen += 1
        return (self.scale**2 * (output - target) ** 2).mean() + F.mse_loss(output, target)


def network() -> nn.Sequential:
    chainrule.manual_seed(3)
    model = nn.Sequential(
        nn.Linear(3, 4),
        nn.BatchNorm1d(4),
        nn.Dropout(0.5),
        Replaces(),
        nn.BatchNorm1d(4),
        nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4)),
        nn.Tanh(),
        nn.Linear(4, 2),
    )
    model[4].eval()
    model[0].bias.requires_grad_(False)
    return model


def data() -> list[tuple[Any, Any]]:
    r = np.random.default_rng(0)
    return [
        (
            chainrule.tensor(r.normal(size=(6, 3)).astype("f")),
            chainrule.tensor(r.normal(size=(6, 2)).astype("f")),
        )
        for _ in range(3)
    ]


def bits(x: Any) -> Any:
    """Which tensor it is and what is in it."""
    return None if x is None else (id(x), to_array(x.detach()).tobytes(), bits(x.grad))


def trace(model: Any, loss: Any, optimizer: Any) -> dict[str, Any]:
    """Everything that could have been changed."""
    modules = [*model.modules(), *loss.modules()]
    plain = (bool, int, float, str, tuple, type(None))
    return {
        "parameters": [bits(p) for m in modules for p in m._parameters.values()],
        "buffers": [(name, bits(b)) for m in modules for name, b in m._buffers.items()],
        "modes": [m.training for m in modules],
        "attributes": [
            (type(m), sorted(m.__dict__), [v for v in m.__dict__.values() if isinstance(v, plain)])
            for m in modules
        ],
        "state": [
            (id(p), [(k, bits(v) if hasattr(v, "grad") else v) for k, v in held.items()])
            for p, held in optimizer.state.items()
        ],
        "groups": [
            [(k, [id(p) for p in v] if k == "params" else v) for k, v in g.items()]
            for g in optimizer.param_groups
        ],
        "optimizer": (sorted(optimizer.__dict__), id(optimizer.state), optimizer._steps_taken),
        "random": to_array(chainrule.get_rng_state()).tobytes(),
    }


def prepared() -> tuple[Any, Any, Any, Any]:
    """A model in the middle of its training, with gradients and a schedule."""
    model, loss = network(), Weighted()
    groups = [{"params": list(model.parameters())[2:], "lr": 0.02}, {"params": [loss.scale]}]
    optimizer = optim.Adam(groups, lr=0.01, amsgrad=True)
    schedule = optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    for x, y in data():
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()
        schedule.step()
    return model, loss, optimizer, schedule


def failing(loss: Any, calls: int) -> Callable[..., Any]:
    made = []

    def wrapped(output: Any, target: Any) -> Any:
        made.append(1)
        if len(made) > calls:
            raise ZeroDivisionError("a mistake of the user's")
        return loss(output, target)

    return wrapped


def mistaken(model: Any, loss: Any, optimizer: Any) -> None:
    """The loss raises in the third step."""
    search = optim.learning_rate_range_test
    with pytest.raises(ZeroDivisionError, match="of the user's"):
        search(model, failing(loss, 2), optimizer, data(), steps=9)


SEARCHES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "range test": lambda m, f, o: optim.learning_rate_range_test(m, f, o, data(), steps=9),
    "a test that diverges": lambda m, f, o: optim.learning_rate_range_test(
        m, f, o, data(), 1e-3, 1e30, steps=9
    ),
    "a search by decades": lambda m, f, o: optim.logarithmic_search(
        m, f, o, data(), 1e20, 1e10, steps=6
    ),
    "a new optimizer": lambda m, f, o: optim.learning_rate_range_test(
        m, f, functools.partial(optim.SGD, momentum=0.9), data(), steps=9
    ),
    "a mistake": mistaken,
}


@pytest.mark.parametrize("name", SEARCHES)
def test_everything_is_left_as_it_was(name: str) -> None:
    """Bit for bit, and the very same tensors."""
    model, loss, optimizer, schedule = prepared()
    if name == "a mistake":  # the function around it hides the loss, whose buffer is its own matter
        loss = Weighted()
        loss.forward = F.mse_loss  # type: ignore[method-assign]
    before = trace(model, loss, optimizer)
    rates = schedule.get_last_lr()
    SEARCHES[name](model, loss, optimizer)
    after = trace(model, loss, optimizer)
    assert before.keys() == after.keys()
    for what in before:
        assert before[what] == after[what], what
    assert rates == schedule.get_last_lr()


def test_the_trace_would_show_a_change() -> None:
    """The comparison above sees training without the search around it."""
    model, loss, optimizer, _ = prepared()
    before = trace(model, loss, optimizer)
    model.eval()
    model.train()
    for x, y in data():
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()
    optimizer.param_groups[0]["lr"] = 1.0
    after = trace(model, loss, optimizer)
    assert all(before[what] != after[what] for what in before)


def test_training_goes_on_as_if_nothing_had_been() -> None:
    ends = []
    for searched in (False, True):
        model, loss, optimizer, schedule = prepared()
        if searched:
            SEARCHES["range test"](model, loss, optimizer)
            SEARCHES["a search by decades"](model, loss, optimizer)
        for x, y in data() * 2:
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
            schedule.step()
        ends.append([to_array(p.detach()).tobytes() for p in model.parameters()])
    assert ends[0] == ends[1]


def test_every_rate_starts_from_the_same_point_with_the_same_numbers() -> None:
    """Also where the batches are drawn at random."""

    class Drawn:
        def __iter__(self) -> Iterator[Any]:
            for _ in range(4):
                x = chainrule.randn(5, 3)
                yield x, x[:, :2]

    model = network()
    found = optim.logarithmic_search(model, F.mse_loss, optim.SGD, Drawn(), 1e9, 1e3, steps=5)
    assert len(found.rates) > 1
    assert len({losses[0] for losses in found.losses}) == 1


def test_a_differentiable_optimizer_leaves_leaves() -> None:
    model = line()
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9, differentiable=True)
    optim.learning_rate_range_test(model, F.mse_loss, optimizer, batches(), steps=4)
    assert model.weight.is_leaf
    assert model.weight.grad is None
    assert optimizer.param_groups[0]["differentiable"] is True


# --- bad input ------------------------------------------------------------------------------------


def test_wrong_settings() -> None:
    test = functools.partial(
        optim.learning_rate_range_test, line(), F.mse_loss, optim.SGD, batches()
    )
    with pytest.raises(ValueError, match="lr_min must be below lr_max, got 1.0 and 0.1"):
        test(1.0, 0.1)
    with pytest.raises(ValueError, match="learning_rate_range_test: invalid lr_min: 0.0"):
        test(0.0, 0.1)
    with pytest.raises(ValueError, match="at least 2 steps, got 1"):
        test(steps=1)
    with pytest.raises(ValueError, match="mode must be 'exponential' or 'linear', got 'log'"):
        test(mode="log")
    search = functools.partial(optim.logarithmic_search, line(), F.mse_loss, optim.SGD, batches())
    with pytest.raises(ValueError, match="logarithmic_search: invalid divisor: 1.0"):
        search(divisor=1.0)
    with pytest.raises(ValueError, match="logarithmic_search: invalid lr: -1"):
        search(-1)


def test_wrong_partners() -> None:
    test = optim.learning_rate_range_test
    with pytest.raises(TypeError, match="the model must be a Module, got function"):
        test(lambda x: x, F.mse_loss, optim.SGD, batches())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected an Optimizer, got list"):
        test(line(), F.mse_loss, list, batches())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="the optimizer has none of the model's parameters"):
        test(line(), F.mse_loss, optim.SGD(line().parameters()), batches())
    with pytest.raises(ValueError, match="tensors without a shape yet; call it once"):
        test(nn.LazyLinear(1), F.mse_loss, optim.SGD, batches())
    with pytest.raises(ValueError, match=r"a tensor with one number, got \(4, 1\)"):
        test(line(), lambda out, y: out - y, optim.SGD, batches())
    with pytest.raises(ValueError, match="DampedNewton has no learning rate"):
        test(line(), F.mse_loss, optim.DampedNewton, batches())


@pytest.mark.parametrize("search", [optim.learning_rate_range_test, optim.logarithmic_search])
def test_a_model_that_is_broken_already(search: Any) -> None:
    with pytest.raises(ValueError, match="the loss is nan before any step"):
        search(line(math.nan), F.mse_loss, optim.SGD, batches())


def test_batches_that_run_out() -> None:
    test = functools.partial(optim.learning_rate_range_test, line(), F.mse_loss, optim.SGD)
    with pytest.raises(ValueError, match="the batches ran out after 0 of 101"):
        test([])
    with pytest.raises(ValueError, match="ran out after 3 of 101; pass a list or a loader"):
        test(iter(batches() * 3))
