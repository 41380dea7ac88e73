"""Cross-validation: the risk of a way to train, estimated on data that was not trained on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from chainrule import nn
from chainrule.data import KFold, StratifiedKFold
from chainrule.ops.creation.from_data import as_tensor
from chainrule.optim.names import OptimizerLike
from chainrule.random import fork_rng, manual_seed
from chainrule.tensor import Tensor
from chainrule.train.batches import floating_dtype, to_tensor
from chainrule.train.history import History
from chainrule.train.batched.fit import fit_many
from chainrule.train.losses import LossLike
from chainrule.train.sweep import run_parallel
from chainrule.train.trainer import DivergedError, Trainer
from chainrule.typing import Rows

__all__ = ["CrossValidation", "cross_validate"]


@dataclass
class CrossValidation:
    """The results of all folds: a table, and means with their spread.

    ``mean["loss"]`` is the cross-validation risk (1/L) sum_l (L/N) sum_{i in fold l} loss_i: each
    fold counts by its size. ``std`` is the standard deviation over the folds and ``error`` that of
    the mean, std / sqrt(L).
    """

    folds: History
    mean: dict[str, float]
    std: dict[str, float]

    @classmethod
    def of(cls, rows: list[dict[str, Any]]) -> CrossValidation:
        """From the scores of each fold, with its ``size``."""
        names = [n for n in rows[0] if n not in ("fold", "size")]
        total = math.fsum(r["size"] for r in rows)
        mean = {n: math.fsum(r[n] * r["size"] for r in rows) / total for n in names}
        std = {n: _deviation([r[n] for r in rows]) for n in names}
        return cls(History(rows), mean, std)

    @property
    def error(self) -> dict[str, float]:
        """The standard error of each mean."""
        return {name: s / math.sqrt(len(self.folds)) for name, s in self.std.items()}

    def __str__(self) -> str:
        lines = [f"{name}: {self.mean[name]:.4g} +- {self.std[name]:.2g}" for name in self.mean]
        return f"{self.folds}\n" + "\n".join(lines)


def _deviation(values: list[float]) -> float:
    center = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((v - center) ** 2 for v in values) / max(1, len(values) - 1))


def cross_validate(
    model: Callable[[], nn.Module],
    data: tuple[Rows, Rows],
    loss: LossLike,
    optimizer: OptimizerLike | None = None,
    *,
    folds: int | Iterable[tuple[Rows, Rows]] = 5,
    stratify: bool = False,
    seed: int = 0,
    n_jobs: int = 1,
    many: bool = False,
    epochs: int = 10,
    batch_size: int = 32,
    **options: Any,
) -> CrossValidation:
    """Trains a new model for each fold on the others and evaluates it there.

    Args:
        model: makes a new model.
        data: (x, y), tensors or arrays.
        loss: see :class:`Trainer`.
        optimizer: the name of an optimizer or a function that makes one for parameters.
        folds: how many, or pairs (train indices, test indices) from one of chainrule.data's splits.
        stratify: whether each fold has the classes in their proportions.
        seed: of the folds, and of each model's start.
        n_jobs: how many folds at once (joblib).
        many: whether to train all folds as one batched job, by :func:`fit_many`; for small networks
            that is several times faster, with equal results up to rounding.
        epochs: of each training.
        batch_size: of each training.
        options: more arguments of :class:`Trainer`, such as ``metrics``.

    >>> import chainrule
    >>> from chainrule import nn, train
    >>> x = chainrule.linspace(-1, 1, 60).reshape(-1, 1)
    >>> result = train.cross_validate(lambda: nn.Linear(1, 1), (x, 2 * x), "mse", folds=3)
    >>> len(result.folds)
    3
    """
    x, y = data
    splits: Sequence[tuple[Rows, Rows]]
    if isinstance(folds, int):
        kind = StratifiedKFold if stratify else KFold
        splits = list(kind(folds, shuffle=True, random_state=seed).split(x, y))
    else:
        splits = list(folds)
    if many:
        if n_jobs != 1:
            raise ValueError(f"cross_validate: many=True is one job, got n_jobs={n_jobs}")
        return _together(model, x, y, splits, loss, optimizer, seed, epochs, batch_size, options)
    tasks = [
        _Fold(model, x, y, train, test, loss, optimizer, seed + i, epochs, batch_size, options)
        for i, (train, test) in enumerate(splits)
    ]
    rows = []
    for i, result in enumerate(run_parallel(tasks, n_jobs)):
        rows.append({"fold": i + 1, "size": len(splits[i][1]), **result})
    return CrossValidation.of(rows)


def _together(
    model: Callable[[], nn.Module],
    x: Rows,
    y: Rows,
    splits: Sequence[tuple[Rows, Rows]],
    loss: LossLike,
    optimizer: OptimizerLike | None,
    seed: int,
    epochs: int,
    batch_size: int,
    options: dict[str, Any],
) -> CrossValidation:
    """All folds in one job."""
    known = {"metrics", "penalties", "clip_norm", "progress"}
    if set(options) - known:
        raise ValueError(
            f"cross_validate: many=True does not take {sorted(set(options) - known)}; train the "
            "folds one by one, with many=False"
        )
    with fork_rng():
        manual_seed(seed)
        dtype = floating_dtype(model())
    x, y = to_tensor(x, dtype), to_tensor(y, dtype)
    data = [tuple(t[_indices(k)] for t in (x, y)) for k, _ in splits]
    fits = fit_many(
        model,
        data,
        loss,
        optimizer,
        seeds=range(seed, seed + len(splits)),
        epochs=epochs,
        batch_size=batch_size,
        **{k: v for k, v in options.items() if k != "progress"},
    )
    rows = []
    for i, (_, test) in enumerate(splits):
        if fits.histories[i].ending == "diverged":
            raise DivergedError(f"cross_validate: fold {i + 1} {fits.histories[i].stopped}")
        trainer = Trainer(fits.models[i], loss, metrics=options.get("metrics", ()), progress=False)
        scores = trainer.evaluate((x[_indices(test)], y[_indices(test)]))
        rows.append({"fold": i + 1, "size": len(test), **scores})
    return CrossValidation.of(rows)


@dataclass
class _Fold:
    """One fold, as a call that can be sent to another process."""

    model: Callable[[], nn.Module]
    x: Rows
    y: Rows
    train: Rows
    test: Rows
    loss: LossLike
    optimizer: OptimizerLike | None
    seed: int
    epochs: int
    batch_size: int
    options: dict[str, Any]

    def __call__(self) -> dict[str, float]:
        with fork_rng():
            manual_seed(self.seed)
            model = self.model()
            dtype = floating_dtype(model)
            x, y = to_tensor(self.x, dtype), to_tensor(self.y, dtype)
            train, test = _indices(self.train), _indices(self.test)
            trainer = Trainer(
                model, self.loss, self.optimizer, **{"progress": False, **self.options}
            )
            trainer.fit((x[train], y[train]), epochs=self.epochs, batch_size=self.batch_size)
            return trainer.evaluate((x[test], y[test]))


def _indices(given: Rows) -> Tensor:
    return given if isinstance(given, Tensor) else as_tensor(given)
