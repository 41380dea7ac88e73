"""Complexity: errors against it, and whether a network has enough of it."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chainrule import charts, nn, optim
from chainrule.nn.module.evaluation import evaluating
from chainrule.ops.creation.patterns import zeros
from chainrule.regularize.selection import simplest_adequate
from chainrule.optim.names import OptimizerLike
from chainrule.tensor import Tensor
from chainrule.train.batches import floating_dtype, to_tensor
from chainrule.train.history import History
from chainrule.train.losses import LossLike, WeightedLoss
from chainrule.train.batched.fit import fit_many
from chainrule.train.trainer import Trainer
from chainrule.typing import ArrayLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ComplexityCurve", "OverfitCheck", "complexity_curve", "overfit_first"]


# --- errors against complexity --------------------------------------------------------------------


@dataclass
class ComplexityCurve:
    """Training and test error for each complexity, means over the seeds.

    ``table`` has the columns complexity, parameters, train, test, gap (test - train, the price of
    complexity: the risk is the training error and this), train_error and test_error (the standard
    errors of the means). ``models`` are the networks, a list for each complexity.
    """

    table: History
    models: list[list[nn.Module]]

    @property
    def best(self) -> dict[str, Any]:
        """The row of the lowest test error."""
        return self.table.best("test")

    @property
    def simplest(self) -> dict[str, Any]:
        """The row of the simplest model whose test error is the best one's, within its error."""
        columns = (self.table["parameters"], self.table["test"], self.table["test_error"])
        return self.table[simplest_adequate(*columns)]

    def __str__(self) -> str:
        return str(self.table)

    def plot(self, ax: Axes | None = None, **style: Any) -> Axes:
        """Draws training and test error over the complexity, with the standard errors of the
        means, and marks the lowest test error and the simplest model that is as good."""
        ax = charts.axes_for(ax, (5.8, 4.0))
        complexity = self.table["complexity"]
        numbers = all(isinstance(c, (int, float)) for c in complexity)
        x = complexity if numbers else list(range(len(complexity)))
        for name, color in (("train", charts.COLORS[0]), ("test", charts.COLORS[1])):
            looks: dict[str, Any] = {"color": color, "marker": "o", "label": name, "capsize": 3}
            ax.errorbar(x, self.table[name], self.table[f"{name}_error"], **looks | style)
        both = self.table["train"] + self.table["test"]
        log = charts.log_if_wide(ax, both)
        if numbers:
            charts.log_if_wide(ax, x, "x")
        else:
            ax.set_xticks(x, [str(c) for c in complexity])
        for row, marker, label in (
            (self.best, "*", "lowest test error"),
            (self.simplest, "s", "simplest as good"),
        ):
            at = x[self.table.rows.index(row)]
            ring: dict[str, Any] = {"markersize": 13, "fillstyle": "none", "color": "black"}
            ax.plot([at], [row["test"]], marker, label=label, **ring)
        ax.set(xlabel="complexity", ylabel="error (logarithmic)" if log else "error")
        ax.set_title("Errors against complexity")
        ax.legend()
        return ax


def complexity_curve(
    model: Callable[[Any], nn.Module],
    complexities: Sequence[Any],
    train: Sequence[ArrayLike],
    test: Sequence[ArrayLike],
    loss: LossLike,
    optimizer: OptimizerLike | None = None,
    *,
    seeds: Sequence[int] = (0, 1, 2),
    metric: str | None = None,
    **options: Any,
) -> ComplexityCurve:
    """The errors on training and test data against the complexity of the network.

    As complexity grows the training error falls, and the test error first falls and then rises.

    Args:
        model: makes a network of a complexity, such as ``lambda h: models.MLP(1, [h], 1)``.
        complexities: what it is called with, from simple to complex.
        train: (x, y).
        test: (x, y).
        loss: see :class:`Trainer`.
        optimizer: see :func:`fit_many`.
        seeds: of the starts over which the errors are averaged.
        metric: the name of a metric to take for the error in place of the loss ("error_rate").
        options: more arguments of :func:`fit_many`, such as ``epochs``.

    >>> import chainrule
    >>> from chainrule import models, train
    >>> x = chainrule.linspace(-1, 1, 20).reshape(-1, 1)
    >>> curve = train.complexity_curve(
    ...     lambda h: models.MLP(1, [h], 1), [1, 8], (x, x**2), (x, x**2), "mse", epochs=3,
    ... )
    >>> curve.table["parameters"]
    [4, 25]
    """
    if not len(complexities) or not len(seeds):
        raise ValueError("complexity_curve: needs at least one complexity and one seed")
    makers = [functools.partial(model, c) for c in complexities for _ in seeds]
    fits = fit_many(makers, train, loss, optimizer, seeds=[*seeds] * len(complexities), **options)
    metrics = () if metric is None else (metric,)
    rows, models = [], []
    for i, complexity in enumerate(complexities):
        own = fits.models[i * len(seeds) : (i + 1) * len(seeds)]
        trainers = [Trainer(m, loss, metrics=metrics, progress=False) for m in own]
        seen = [t.evaluate(train)[metric or "loss"] for t in trainers]
        new = [t.evaluate(test)[metric or "loss"] for t in trainers]
        (a, a_error), (b, b_error) = _mean(seen), _mean(new)
        size = [p.numel() for p in own[0].parameters()]
        rows.append(
            {
                "complexity": complexity,
                "parameters": sum(size),
                "train": a,
                "test": b,
                "gap": b - a,
                "train_error": a_error,
                "test_error": b_error,
            }
        )
        models.append(own)
    return ComplexityCurve(History(rows), models)


def _mean(values: list[float]) -> tuple[float, float]:
    """The mean and its standard error."""
    n = len(values)
    center = math.fsum(values) / n
    spread = math.fsum((v - center) ** 2 for v in values) / max(1, n - 1)
    return center, math.sqrt(spread / n)


# --- overfit first --------------------------------------------------------------------------------


@dataclass
class OverfitCheck:
    """Whether a network can fit its training data, as it must before it is regularized.

    ``loss`` is the lowest training loss that was reached without regularization, ``baseline`` that
    of the best constant output.
    """

    overfits: bool
    loss: float
    baseline: float
    epochs: int
    verdict: str
    history: History

    def __bool__(self) -> bool:
        return self.overfits

    def __str__(self) -> str:
        return self.verdict


def overfit_first(
    model: nn.Module,
    data: Sequence[ArrayLike],
    loss: LossLike,
    optimizer: OptimizerLike | None = None,
    *,
    epochs: int = 500,
    batch_size: int = 32,
    fraction: float = 0.05,
    seed: int = 0,
) -> OverfitCheck:
    """Tries whether a network can learn its training data by heart: capacity comes first.

    A copy of the model is trained without regularization (dropout off, no penalties, no weight
    decay but the optimizer's own) until its loss is at most ``fraction`` of that of the best
    constant output, or the epochs are over.

    Args:
        model: the network, which is left as it is.
        data: (x, y), the training data or a few batches of it.
        loss: see :class:`Trainer`.
        optimizer: the name of an optimizer or a function that makes one, by default Adam with
            lr = 0.01.
        epochs: at most.
        batch_size: of the training.
        fraction: what counts as learned by heart.
        seed: of the order of the data.

    >>> import chainrule
    >>> from chainrule import models, nn, problems, train
    >>> _ = chainrule.manual_seed(0)
    >>> xor = problems.boolean("xor")
    >>> data = (xor.inputs, xor.targets)
    >>> bool(train.overfit_first(models.MLP(2, [8], 1, "tanh"), data, "bce_with_logits"))
    True
    >>> bool(train.overfit_first(nn.Linear(2, 1), data, "bce_with_logits", epochs=100))
    False
    """
    if not 0 < fraction < 1 or epochs < 1:
        raise ValueError(
            "overfit_first: fraction must lie between 0 and 1 and epochs be positive, got "
            f"fraction={fraction}, epochs={epochs}"
        )
    if isinstance(optimizer, optim.Optimizer):
        raise TypeError(
            "overfit_first: give the optimizer's name or a function that makes one; this one "
            "belongs to the parameters of another network"
        )
    copied = copy.deepcopy(model)
    dtype = floating_dtype(copied)
    x, y = (to_tensor(part, dtype) for part in data[:2])
    made = functools.partial(optim.Adam, lr=0.01) if optimizer is None else optimizer
    trainer = Trainer(copied, loss, made, progress=False, seed=seed)
    baseline = _constant_loss(copied, x, y, trainer.loss)
    reached, history = math.inf, trainer.history
    with _unregularized(copied):
        while trainer.epoch < epochs and reached > fraction * baseline:
            stop = min(epochs, trainer.epoch + 10)
            history = trainer.fit((x, y), epochs=stop, batch_size=batch_size)
            reached = min(reached, trainer.evaluate((x, y))["loss"])
    done = reached <= fraction * baseline
    verdict = _verdict(done, reached, baseline, trainer.epoch, x, y)
    return OverfitCheck(done, reached, baseline, trainer.epoch, verdict, history)


class _unregularized:
    """No dropout: its probabilities are 0 meanwhile."""

    def __init__(self, model: nn.Module):
        self.layers = [m for m in model.modules() if "Dropout" in type(m).__name__]

    def __enter__(self) -> None:
        self.before = [m.p for m in self.layers]
        for m in self.layers:
            m.p = 0.0

    def __exit__(self, *error: object) -> None:
        for m, p in zip(self.layers, self.before, strict=True):
            m.p = p


def _constant_loss(model: nn.Module, x: Tensor, y: Tensor, loss: WeightedLoss) -> float:
    """The loss of the best output that does not depend on the input."""
    with evaluating(model):
        shape = tuple(model(x[:2]).shape[1:])
    c = zeros(*shape, dtype=floating_dtype(model)).requires_grad_()
    best = math.inf
    adam = optim.Adam([c], lr=0.1)
    for _ in range(300):
        adam.zero_grad()
        value = loss(c.expand(y.shape[0], *shape), y)
        if not math.isfinite(float(value.detach())):
            break
        best = min(best, float(value.detach()))
        value.backward()
        adam.step()
    return best


def _verdict(done: bool, reached: float, baseline: float, epochs: int, x: Tensor, y: Tensor) -> str:
    numbers = f"training loss {reached:.3g} after {epochs} epochs, constant output {baseline:.3g}"
    if done:
        return f"the network can overfit ({numbers}): it has the capacity; now regularize it"
    hint = "use more units or layers, a larger learning rate or more epochs"
    clashes = _clashes(x, y)
    if clashes:
        hint = f"{clashes} inputs occur with different targets, which no network can fit; or {hint}"
    return f"the network does not fit its training data ({numbers}): {hint}"


def _clashes(x: Tensor, y: Tensor) -> int:
    """How many inputs occur again with another target."""
    seen: dict[Any, Any] = {}
    rows = zip(x.flatten(1).tolist(), y.reshape(y.shape[0], -1).tolist(), strict=True)
    return sum([seen.setdefault(tuple(a), b) != b for a, b in rows])
