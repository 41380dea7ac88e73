"""Finding a learning rate by trying: a range test, and a search by decades.

Both train a model for a while and then put everything back, bit for bit: parameters, gradients,
buffers, modes and attributes of the modules, the optimizer with its state, the random numbers.
"""

from __future__ import annotations

import contextlib
import copy
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

from chainrule import charts
from chainrule.autograd.modes import enable_grad, no_grad
from chainrule.nn.module.base import Module
from chainrule.nn.parameter import is_lazy
from chainrule.ops.creation.conversion import clone
from chainrule.optim.making import made_by
from chainrule.optim.optimizer import Optimizer, check_range
from chainrule.random import fork_rng
from chainrule.tensor import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LogarithmicSearch", "RangeTest", "learning_rate_range_test", "logarithmic_search"]

SPAN = 5  # how many losses are averaged to see that they grow: batches differ

Loss = Callable[..., Tensor]
Factory = Callable[..., Optimizer]


@dataclass(frozen=True)
class RangeTest:
    """What a range test found.

    ``losses[i]`` is the loss on the next batch after the step at ``rates[i]``, ``smoothed`` the
    mean of its neighbors. ``bounds`` are the rates between which the loss falls: from where a tenth
    of the fall is made to where it is lowest. ``suggestion`` is the one where it falls most
    steeply. Both are None if the loss never fell.
    """

    rates: list[float]
    losses: list[float]
    smoothed: list[float]
    initial_loss: float
    diverged: bool
    bounds: tuple[float, float] | None
    suggestion: float | None

    def plot(self, ax: Axes | None = None, **style: Any) -> Axes:
        """Draws the loss over the rate, the range in which it falls, and the suggestion."""
        ax = charts.axes_for(ax, (5.8, 3.8))
        ax.plot(self.rates, self.losses, color="#999999", linewidth=0.8, label="loss")
        looks: dict[str, Any] = {"color": charts.COLORS[0], "linewidth": 2, "label": "smoothed"}
        ax.plot(self.rates, self.smoothed, **looks | style)
        if self.bounds is not None:
            ax.axvspan(*self.bounds, color=charts.COLORS[2], alpha=0.15, label="loss falls")
        if self.suggestion is not None:
            label = f"suggestion {self.suggestion:.2g}"
            ax.axvline(self.suggestion, color=charts.COLORS[1], linestyle="--", label=label)
        finite = [v for v in self.losses if math.isfinite(v)]
        top = 2 * max([self.initial_loss, *self.smoothed[:1]])
        if not charts.log_if_wide(ax, finite) and finite and max(finite) > top > 0:
            ax.set_ylim(top=top)  # where it diverges the loss would hide how it fell
        charts.log_if_wide(ax, self.rates, "x")
        ax.set(xlabel="learning rate", ylabel="loss after the step")
        ax.set_title("Learning-rate range test")
        ax.legend()
        return ax


@dataclass(frozen=True)
class LogarithmicSearch:
    """What a search by decades found: the losses at each rate and the first that converged.

    ``losses[k][i]`` is the loss after i steps at ``rates[k]``.
    """

    rates: list[float]
    losses: list[list[float]]
    converged: list[bool]
    suggestion: float | None

    def plot(self, ax: Axes | None = None, **style: Any) -> Axes:
        """Draws the losses over the steps at each rate that was tried."""
        ax = charts.axes_for(ax, (5.8, 3.8))
        for i, (rate, losses) in enumerate(zip(self.rates, self.losses, strict=True)):
            word = "converges" if self.converged[i] else "does not converge"
            label = f"rate {rate:.3g}: {word}"
            looks: dict[str, Any] = {"color": charts.COLORS[i % len(charts.COLORS)], "label": label}
            ax.plot(range(len(losses)), losses, **looks | style)
        known = [v for losses in self.losses for v in losses if math.isfinite(v)]
        charts.log_if_wide(ax, known)
        ax.set(xlabel="step", ylabel="loss")
        ax.set_title("Search for a learning rate")
        ax.legend()
        return ax


def learning_rate_range_test(
    model: Module,
    loss: Loss,
    optimizer: Optimizer | Factory,
    batches: Iterable[Any],
    lr_min: float = 1e-6,
    lr_max: float = 10.0,
    steps: int = 100,
    *,
    mode: str = "exponential",
    window: int = 5,
    divergence: float = 4.0,
) -> RangeTest:
    """Trains with a rate that grows at every step, and looks where the loss falls (Smith, 2017).

    rate_i = lr_min (lr_max / lr_min)^(i / (steps - 1)), or with mode="linear" on a line. The test
    ends early once a loss is not finite or the last five of them have grown, in the mean, to
    ``divergence`` times the first five. The model runs in the mode it is in; hooks of the model and
    of the optimizer are called.

    Args:
        model: what to train.
        loss: ``loss(model(*inputs), target)`` is one number.
        optimizer: an optimizer of the model's parameters, or a function that makes one of them,
            such as ``optim.SGD``. All its groups get the same rate.
        batches: tuples (*inputs, target), gone through again if they are fewer than the steps.
        lr_min: the first rate.
        lr_max: the last rate.
        steps: how many rates are tried.
        mode: "exponential" or "linear".
        window: how many losses on either side are averaged in ``smoothed``.
        divergence: how many times larger the loss may become.

    >>> import chainrule
    >>> from chainrule import nn, optim
    >>> generator = chainrule.manual_seed(0)
    >>> x = chainrule.randn(20, 1)
    >>> found = optim.learning_rate_range_test(
    ...     nn.Linear(1, 1), nn.functional.mse_loss, optim.SGD, [(x, 3 * x + 2)]
    ... )
    >>> found.diverged, 0.01 < found.suggestion < 1
    (True, True)
    """
    name = "learning_rate_range_test"
    check_range(name, closed=False, lr_min=lr_min, lr_max=lr_max, divergence=divergence)
    check_range(name, window=window)
    if not lr_min < lr_max:
        raise ValueError(f"{name}: lr_min must be below lr_max, got {lr_min} and {lr_max}")
    if steps < 2:
        raise ValueError(f"{name}: needs at least 2 steps, got {steps}")
    if mode not in ("exponential", "linear"):
        raise ValueError(f"{name}: mode must be 'exponential' or 'linear', got {mode!r}")
    rates = [_between(lr_min, lr_max, i / (steps - 1), mode) for i in range(steps)]
    optimizer = _optimizer(name, model, optimizer)
    with _unchanged(model, loss, optimizer):
        seen, diverged = _descend(name, model, loss, optimizer, batches, rates, divergence)
    losses = seen[1:]
    rates = rates[: len(losses)]
    smoothed = _smoothed(losses, window)
    bounds, suggestion = _judged(rates, smoothed, _mean(seen[: window + 1]))
    return RangeTest(rates, losses, smoothed, seen[0], diverged, bounds, suggestion)


def logarithmic_search(
    model: Module,
    loss: Loss,
    optimizer: Optimizer | Factory,
    batches: Iterable[Any],
    lr: float = 1.0,
    divisor: float = 10.0,
    lr_min: float = 1e-8,
    steps: int = 50,
    *,
    tolerance: float = 0.01,
    divergence: float = 4.0,
) -> LogarithmicSearch:
    """Starts with a high rate and lowers it, a decade at a time, until training converges.

    Every rate is tried for some steps from the same start, with the same batches and random
    numbers. Training converges if it does not diverge (see :func:`learning_rate_range_test`) and
    the losses of its last quarter lie, in the mean, below those of the untrained model on the same
    batches by ``tolerance`` of these.

    Args:
        model: what to train.
        loss: ``loss(model(*inputs), target)`` is one number.
        optimizer: an optimizer of the model's parameters, or a function that makes one of them.
        batches: tuples (*inputs, target), gone through again if they are fewer than the steps.
        lr: the first rate.
        divisor: this rate over the next.
        lr_min: no lower rate is tried.
        steps: how long a rate is tried.
        tolerance: how much the loss has to fall, as a part of the untrained model's.
        divergence: how many times larger the loss may become.

    >>> import chainrule
    >>> from chainrule import nn, optim
    >>> x = chainrule.tensor([[1.0], [3.0]])
    >>> found = optim.logarithmic_search(
    ...     nn.Linear(1, 1), nn.functional.mse_loss, optim.SGD, [(x, 3 * x + 2)], lr=10.0
    ... )
    >>> found.suggestion, found.converged
    (0.1, [False, False, True])
    """
    name = "logarithmic_search"
    check_range(name, closed=False, lr=lr, lr_min=lr_min, divergence=divergence, steps=steps)
    check_range(name, 1.0, closed=False, divisor=divisor)
    check_range(name, tolerance=tolerance)
    if iter(batches) is batches:  # an iterator can be used only once
        batches = list(islice(batches, steps + 1))
    optimizer = _optimizer(name, model, optimizer)
    last = slice(-max(1, steps // 4), None)

    def losses_at(rate: float) -> tuple[list[float], bool]:
        with _unchanged(model, loss, optimizer):
            same = [rate] * steps
            return _descend(name, model, loss, optimizer, batches, same, divergence)

    untrained = _mean(losses_at(0.0)[0][last])
    rates: list[float] = []
    losses: list[list[float]] = []
    converged: list[bool] = []
    rate = lr
    while rate >= lr_min * (1 - 1e-9) and not any(converged):
        seen, diverged = losses_at(rate)
        rates.append(rate)
        losses.append(seen)
        low = untrained - tolerance * abs(untrained)
        converged.append(not diverged and _mean(seen[last]) < low)
        rate = lr / divisor ** len(rates)
    return LogarithmicSearch(rates, losses, converged, rates[-1] if any(converged) else None)


# --- training for a while -------------------------------------------------------------------------


class _Diverged(Exception):
    """The loss became infinite, NaN or too large."""


def _descend(
    name: str,
    model: Module,
    loss: Loss,
    optimizer: Optimizer,
    batches: Iterable[Any],
    rates: list[float],
    divergence: float,
) -> tuple[list[float], bool]:
    """The losses before the first and after each step, and whether they grew too much.

    No step is made where the rate is zero.
    """
    seen: list[float] = []
    supply = _again_and_again(name, batches, len(rates) + 1)

    def value() -> Tensor:
        *inputs, target = batch
        result = loss(model(*inputs), target)
        if not isinstance(result, Tensor) or result.numel() != 1:
            raise ValueError(
                f"{name}: the loss must be a tensor with one number, got "
                f"{tuple(result.shape) if isinstance(result, Tensor) else type(result).__name__}"
            )
        return result

    def note(number: float) -> None:
        if not seen and not math.isfinite(number):
            raise ValueError(
                f"{name}: the loss is {number} before any step; find the operation with "
                "autograd.detect_anomaly()"
            )
        seen.append(number)
        start = _mean(seen[:SPAN])
        if not math.isfinite(number):
            raise _Diverged
        if _mean(seen[-SPAN:]) > start + (divergence - 1) * abs(start):
            raise _Diverged

    def closure() -> Tensor:
        optimizer.zero_grad()
        result = value()
        if len(seen) == done:  # a method that searches calls again in the same step
            note(float(result.detach()))
        result.backward()
        return result

    def look() -> None:
        with no_grad():
            note(float(value().detach()))

    try:
        for done, rate in enumerate(rates):  # noqa: B007
            batch = next(supply)
            if not rate:
                look()
                continue
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step(closure)
        batch = next(supply)
        look()
    except _Diverged:
        return seen, True
    return seen, False


def _again_and_again(name: str, batches: Iterable[Any], count: int) -> Iterator[Any]:
    made = 0
    while made < count:
        before = made
        for batch in batches:
            made += 1
            yield batch
        if made == before:
            raise ValueError(
                f"{name}: the batches ran out after {made} of {count}; pass a list or a loader, "
                "which can be gone through again, or make fewer steps"
            )


def _optimizer(name: str, model: Module, optimizer: Optimizer | Factory) -> Optimizer:
    if not isinstance(model, Module):
        raise TypeError(f"{name}: the model must be a Module, got {type(model).__name__}")
    held = [*model.parameters(), *model.buffers()]
    if any(is_lazy(t) for t in held):
        raise ValueError(
            f"{name}: the model has tensors without a shape yet; call it once on a batch first"
        )
    made = made_by(name, optimizer, model.parameters())
    own = {id(p) for p in held}
    for group in made.param_groups:
        if "lr" not in group:
            raise ValueError(f"{name}: {type(made).__name__} has no learning rate")
    if not any(id(p) in own for group in made.param_groups for p in group["params"]):
        raise ValueError(f"{name}: the optimizer has none of the model's parameters")
    return made


# --- putting everything back ----------------------------------------------------------------------


@contextlib.contextmanager
def _unchanged(model: Module, loss: Any, optimizer: Optimizer) -> Iterator[None]:
    """Puts model, loss, optimizer and random numbers back as they were.

    The optimizer works on copies of its state and settings meanwhile, gradients start from None.
    """
    roots = [model, loss] if isinstance(loss, Module) else [model]
    modules = {id(m): m for root in roots for m in root.modules()}.values()
    tensors = {id(t): t for m in modules for t in (*m.parameters(), *m.buffers())}
    tensors |= {id(p): p for group in optimizer.param_groups for p in group["params"]}
    values = [(t, clone(t.detach()), t._grad) for t in tensors.values()]
    attributes = [(m, type(m), _attributes(m)) for m in modules]
    settings = dict(optimizer.__dict__)
    try:
        with fork_rng(), enable_grad():
            for t in tensors.values():
                t._grad = None
            _isolate(optimizer)
            yield
    finally:
        optimizer.__dict__.clear()
        optimizer.__dict__.update(settings)
        for module, kind, held in attributes:
            module.__class__ = kind
            module.__dict__.clear()
            module.__dict__.update(held)
        with no_grad():
            for t, value, grad in values:
                t.copy_(value)
                t._grad = grad


def _attributes(module: Module) -> dict[str, Any]:
    """The attributes of a module, with copies of the dictionaries that hold its tensors."""
    holders = ("_parameters", "_buffers", "_modules")
    return {k: dict(v) if k in holders else v for k, v in module.__dict__.items()}


def _isolate(optimizer: Optimizer) -> None:
    """Copies of all that steps change in an optimizer itself."""
    state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
    state.update({p: _copied(held) for p, held in optimizer.state.items()})
    optimizer.state = state
    optimizer.param_groups = [
        {k: v if k == "params" else _copied(v) for k, v in group.items()}
        | {"differentiable": False}
        for group in optimizer.param_groups
    ]
    optimizer.check_finite = False  # a gradient that is not finite is a result here


def _copied(value: Any) -> Any:
    if isinstance(value, Tensor):
        return clone(value.detach())
    if type(value) in (list, tuple):
        return type(value)(_copied(v) for v in value)
    if isinstance(value, dict):
        return {k: _copied(v) for k, v in value.items()}
    return copy.deepcopy(value)


# --- judging --------------------------------------------------------------------------------------


def _between(low: float, high: float, x: float, mode: str) -> float:
    return low + (high - low) * x if mode == "linear" else low * (high / low) ** x


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _smoothed(values: list[float], window: int) -> list[float]:
    """Means over the neighbors; there is no lag as with running means."""
    means = []
    for i in range(len(values)):
        near = min(window, i, len(values) - 1 - i)
        some = values[i - near : i + near + 1]
        means.append(_mean(some) if all(map(math.isfinite, some)) else math.inf)
    return means


def _judged(
    rates: list[float], smoothed: list[float], first: float
) -> tuple[tuple[float, float] | None, float | None]:
    """The rates between which the loss falls, and where it falls most steeply."""
    if not smoothed or not min(smoothed) < first:
        return None, None
    bottom = smoothed.index(min(smoothed))
    fallen = first - 0.1 * (first - smoothed[bottom])
    start = next(i for i, value in enumerate(smoothed) if value <= fallen)
    path = [first, *smoothed[: bottom + 1]]
    falls = [a - b for a, b in pairwise(path)]
    return (rates[start], rates[bottom]), rates[falls.index(max(falls))]
