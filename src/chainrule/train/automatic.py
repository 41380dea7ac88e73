"""From a table to a trained, evaluated network, with sensible choices where none are given."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chainrule import nn, optim
from chainrule.data import (
    Column,
    KFold,
    StratifiedKFold,
    Table,
    TableEncoder,
    TableError,
    TargetEncoder,
    detect_task,
)
from chainrule.data import train_test_split as split_in_two
from chainrule.data import train_validation_test_split as split_in_three
from chainrule.models import MLP
from chainrule.ops.creation.patterns import arange
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.reduce.order import aminmax
from chainrule.ops.reduce.reductions import mean
from chainrule.optim.linear import untold
from chainrule.optim.names import make_optimizer, optimizer_class
from chainrule.random import fork_rng, manual_seed
from chainrule.tensor import Tensor
from chainrule.train.attending import Doctor
from chainrule.train.callbacks import Callback, GradientNorms
from chainrule.train.cross_validation import CrossValidation
from chainrule.train.fitted import FittedNetwork, scores_of
from chainrule.train.progress import ProgressLike
from chainrule.train.run_folder import RunFolder, digest_of, facts_of
from chainrule.train.sweep import run_parallel
from chainrule.train.trainer import Trainer

__all__ = [
    "Parts",
    "Settings",
    "check_target",
    "cross_validate_table",
    "finish",
    "fit_table",
    "hidden_sizes",
    "optimizer_of",
    "prepare",
]


BASELINE_ROWS = 20_000  # on which the linear model is fitted, at most
LARGEST = 10**9  # weights of a network; with their gradients and Adam's states, 16 GB


@dataclass
class Settings:
    """How a network is made and trained; see ``chainrule fit --help``."""

    hidden: tuple[int, ...] = (64, 64)
    activation: str = "relu"
    dropout: float = 0.0
    norm: str | None = None
    optimizer: str = "adam"
    lr: float | None = None
    weight_decay: float = 0.0
    epochs: int = 200
    batch_size: int = 32
    patience: int = 20
    class_weight: str | None = None
    test_size: float = 0.2
    validation_size: float = 0.15
    seed: int = 0
    doctor: bool = False

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        weights = sum(a * b for a, b in itertools.pairwise((1, *self.hidden, 1)))
        if weights > LARGEST:
            raise ValueError(
                f"hidden layers of {','.join(map(str, self.hidden))} units have {weights:.1e} "
                f"weights; at most {LARGEST:.0e} fit. Give fewer units, like 64,64"
            )


@dataclass
class Parts:
    """Training, validation and test data as tensors, with the encoders fitted on the first."""

    inputs: nn.Module
    target: TargetEncoder
    train: tuple[Tensor, Tensor]
    validation: tuple[Tensor, Tensor]
    test: tuple[Tensor, Tensor]
    rows: Any = None  # of the test part as they were given: a table, or the files of images


# --- preparing ------------------------------------------------------------------------------------


def check_target(column: Column, task: str) -> str:
    """The task for a target column, after checks of what cannot be learned."""
    if column.missing:
        raise TableError(
            f"the target {column.name!r} is missing in {column.missing} of {len(column)} "
            "rows; drop these rows"
        )
    rows = len(column)
    if rows < 10:
        raise TableError(f"the data has {rows} row{'s' * (rows > 1)}; at least 10 are needed")
    task = detect_task(column) if task == "auto" else task
    if task == "classification":
        counts = column.as_category().counts()
        rare = [v for v, n in counts.items() if n < 3]
        if len(counts) > 1 and rare:
            shown = ", ".join(f"{v!r} ({counts[v]})" for v in rare[:5])
            more = f" and {len(rare) - 5} more" if len(rare) > 5 else ""
            raise TableError(
                f"the target {column.name!r} has {len(counts)} classes in {rows} rows, of which "
                f"{len(rare)} have fewer than 3 members: {shown}{more}; each needs one for "
                "training, validation and test. Drop or merge them, or use --task regression for "
                "numbers"
            )
    return task


def prepare(table: Table, target: str, task: str, settings: Settings) -> Parts:
    """Splits a table, fits the encoders on the training rows and encodes all three parts."""
    column = table[target]
    task = check_target(column, task)
    TargetEncoder(task).fit(column)  # a constant target is an error before anything else
    train, validation, test = split_in_three(
        arange(len(table)),
        validation_size=settings.validation_size,
        test_size=settings.test_size,
        random_state=settings.seed,
        stratify=column.as_category().values if task == "classification" else None,
    )
    return encode(table, target, task, (train, validation, test))


def encode(table: Table, target: str, task: str, rows: Sequence[Tensor | Sequence[int]]) -> Parts:
    """Three parts of a table as tensors, encoded by what the first one shows."""
    part = table.take(rows[0])
    inputs = TableEncoder().fit(part.without(target))
    goal = TargetEncoder(task).fit(part[target])
    encoded = [(inputs(part, target), goal(part[target]))]
    for some in rows[1:]:
        part = table.take(some)  # in the place of the part before
        encoded.append((inputs(part, target), goal(part[target])))
    train, validation, test = encoded
    return Parts(inputs, goal, train, validation, test, part)


def make_network(parts: Parts, settings: Settings) -> nn.Module:
    """The multi-layer perceptron that the settings describe."""
    return MLP(
        int(parts.train[0].shape[1]),
        list(settings.hidden),
        parts.target.outputs,
        activation=settings.activation,
        dropout=settings.dropout,
        norm=settings.norm,
    )


# --- training -------------------------------------------------------------------------------------


def optimizer_of(settings: Settings, model: nn.Module) -> optim.Optimizer:
    """The optimizer that the settings name, with their rate and decay."""
    cls = optimizer_class(settings.optimizer)
    options: dict[str, Any] = {}
    if settings.lr is not None:
        options["lr"] = settings.lr
    elif cls in (optim.SGD, optim.SGDW):
        options |= {"lr": 0.05, "momentum": 0.9}
    if settings.weight_decay:
        options["weight_decay"] = settings.weight_decay
    try:
        return make_optimizer("fit", cls, model.parameters(), **options)
    except TypeError as error:
        raise ValueError(
            f"the optimizer {settings.optimizer!r} does not take these: {error}"
        ) from None


def train_network(
    model: nn.Module,
    parts: Parts,
    settings: Settings,
    progress: ProgressLike = True,
    checkpoints: RunFolder | None = None,
    **facts: Any,
) -> tuple[Trainer, GradientNorms]:
    """Trains with early stopping on the validation part; the best weights are restored.

    Checkpoints are those of the run that the settings, the data and ``facts`` tell.
    """
    classes = parts.target.task == "classification"
    norms = GradientNorms()
    callbacks: list[Callback] = [norms]
    if settings.doctor:
        callbacks.append(Doctor(preflight=True, warn=False))
    resume = None
    if checkpoints is not None:
        data = digest_of([*parts.train, *parts.validation, *parts.test])
        told = {**vars(settings), "hidden": list(settings.hidden)}
        checkpoint, resume = checkpoints.before(model, facts_of(model, told, data, **facts))
        callbacks.append(checkpoint)
    trainer = Trainer(
        model,
        "cross_entropy" if classes else "mse",
        optimizer_of(settings, model),
        metrics=["accuracy"] if classes else ["r2"],
        class_weight=settings.class_weight,
        callbacks=callbacks,
        progress=progress,
        seed=settings.seed,
    )
    trainer.fit(
        parts.train,
        parts.validation,
        epochs=settings.epochs,
        batch_size=settings.batch_size,
        early_stopping=settings.patience,
        resume=resume,
    )
    if not len(trainer.history):  # interrupted before there was anything to keep
        raise KeyboardInterrupt
    return trainer, norms


def baselines(parts: Parts) -> dict[str, dict[str, float]]:
    """The scores on the test part of a constant prediction and of a linear model.

    The linear model is fitted on the first 20,000 training rows, which are in random order.
    """
    (x, y), (x_test, y_test) = parts.train, parts.test
    flat, flat_test = x.reshape(x.shape[0], -1), x_test.reshape(x_test.shape[0], -1)
    flat = flat[:BASELINE_ROWS].double()
    if parts.target.task == "regression":
        constant = y_test * 0 + mean(y)
        fit = optim.ridge(flat, y[:BASELINE_ROWS].double(), l2=1.0)
        linear = matmul(flat_test.double(), fit.weight.mT) + fit.bias
        names = ("mean", "linear model")
    else:
        k = len(parts.target.classes)
        counts = y.bincount(minlength=k).double()
        constant = (counts / counts.sum()).clamp(min=1e-9).log().expand(x_test.shape[0], k)
        with untold():  # not converged is good enough here
            weights = flat.shape[1] * k
            big = weights > 3000 or len(flat) * weights**2 > 10**10  # of the second derivatives
            fit = optim.softmax_regression(
                flat,
                y[:BASELINE_ROWS],
                k,
                "gradient" if big else "newton",
                l2=1.0,
                max_iter=300 if big else 50,
            )
        linear = matmul(flat_test.double(), fit.weight.mT) + fit.bias
        names = ("majority class", "linear model")
    return {
        name: scores_of(parts.target, output, y_test)
        for name, output in zip(names, (constant, linear), strict=True)
    }


def fit_table(
    table: Table,
    target: str | None = None,
    task: str = "auto",
    settings: Settings | None = None,
    *,
    source: str = "table",
    progress: ProgressLike = True,
    checkpoints: RunFolder | None = None,
) -> FittedNetwork:
    """Trains a multi-layer perceptron on a table: detects, encodes, splits, trains, evaluates.

    Args:
        table: the data.
        target: the column to predict; by default the last one.
        task: "classification", "regression" or "auto".
        settings: see :class:`Settings`.
        source: what the data is called in the report.
        progress: whether to show a bar, or "plot" for curves.
        checkpoints: where they are kept from which the training can be resumed.

    >>> from chainrule import data, train
    >>> settings = train.Settings(hidden=(16,), lr=0.02, epochs=60)
    >>> net = train.fit_table(data.embedded("iris").table, settings=settings, progress=False)
    >>> net.about["scores"]["accuracy"] > 0.9
    True
    """
    settings = settings or Settings()
    target = table.names[-1] if target is None else target
    parts = prepare(table, target, task, settings)
    about = {
        "source": source,
        "rows": len(table),
        "columns": table.names,
        "features": parts.inputs.feature_names,
        "left_out": parts.inputs.left_out,
        "summary": [summary(c) for c in table],
    }
    with fork_rng():
        manual_seed(settings.seed)
        model = make_network(parts, settings)
        return finish(model, parts, settings, target, about, progress, checkpoints)


def finish(
    model: nn.Module,
    parts: Parts,
    settings: Settings,
    target: str,
    about: dict[str, Any],
    progress: ProgressLike,
    checkpoints: RunFolder | None,
) -> FittedNetwork:
    """Trains, evaluates on the test part, and puts everything together."""
    facts = {"target": target, "task": parts.target.task, "features": about["features"]}
    trainer, norms = train_network(model, parts, settings, progress, checkpoints, **facts)
    model.eval()
    output = trainer.predict(parts.test[0])
    scores = scores_of(parts.target, output, parts.test[1])
    facts = {
        **about,
        **facts,
        "classes": list(parts.target.classes),
        "split": {
            "train": len(parts.train[1]),
            "validation": len(parts.validation[1]),
            "test": len(parts.test[1]),
        },
        "settings": {**vars(settings), "hidden": list(settings.hidden)},
        "scores": scores,
        "baselines": baselines(parts),
        "stopped": trainer.history.stopped,
        "best_epoch": trainer.history.best("val_loss")["epoch"],
        "parameters": sum([p.numel() for p in model.parameters()]),
        **_found(trainer),
    }
    x, y = parts.test
    held_out = {"output": output, "target": y, "inputs": x, "rows": parts.rows}
    return FittedNetwork(
        model, parts.inputs, parts.target, facts, trainer.history, norms.norms, held_out
    )


def _found(trainer: Trainer) -> dict[str, Any]:
    """What the doctor found, and the lines of the preflight, where there was one."""
    found: dict[str, Any] = {}
    for doctor in trainer.callbacks:
        if isinstance(doctor, Doctor):
            found["findings"] = [vars(f) for f in doctor.findings]
            found["preflight"] = [vars(c) for c in doctor.checks]
    return found


def cross_validate_table(
    table: Table, target: str, task: str, settings: Settings, folds: int = 5, n_jobs: int = 1
) -> CrossValidation:
    """Fits a table anew for each fold, encoders included, and scores it on the fold."""
    column = table[target]
    task = check_target(column, task)
    TargetEncoder(task).fit(column)
    kind = StratifiedKFold if task == "classification" else KFold
    splitter = kind(folds, shuffle=True, random_state=settings.seed)
    labels = column.as_category().values if task == "classification" else None
    splits = [(a.tolist(), b.tolist()) for a, b in splitter.split(list(range(len(table))), labels)]
    tasks = [_TableFold(table, target, task, settings, *rows) for rows in splits]
    rows = [
        {"fold": i + 1, "size": len(splits[i][1]), **scores}
        for i, scores in enumerate(run_parallel(tasks, n_jobs))
    ]
    return CrossValidation.of(rows)


@dataclass
class _TableFold:
    """One fold of a table, as a call that can be sent to another process."""

    table: Table
    target: str
    task: str
    settings: Settings
    train: list[int]
    test: list[int]

    def __call__(self) -> dict[str, float]:
        labels = self.table[self.target].take(self.train).as_category().values
        rows, held = split_in_two(
            self.train,
            test_size=self.settings.validation_size,
            random_state=self.settings.seed,
            stratify=labels if self.task == "classification" else None,
        )
        parts = encode(self.table, self.target, self.task, (rows, held, self.test))
        with fork_rng():
            manual_seed(self.settings.seed)
            model = make_network(parts, self.settings)
            trainer, _ = train_network(model, parts, self.settings, progress=False)
            return scores_of(parts.target, trainer.predict(parts.test[0]), parts.test[1])


def summary(column: Column) -> dict[str, Any]:
    """A line about a column for the report."""
    present = column.where_present()
    if not len(present):
        values = "none"
    elif column.kind == "number":
        low, high = aminmax(present.numbers)
        center = float(mean(present.numbers))
        values = f"{float(low):.4g} to {float(high):.4g}, mean {center:.4g}"
    else:
        counts = sorted(column.counts().items(), key=lambda item: -item[1])
        shown = ", ".join(f"{v} ({n})" for v, n in counts[:6])
        values = shown + (f", and {len(counts) - 6} more" if len(counts) > 6 else "")
    return {
        "column": column.name,
        "kind": column.kind,
        "missing": column.missing,
        "values": values,
    }


def hidden_sizes(text: str) -> Sequence[int]:
    """ "64,64" as (64, 64)."""
    try:
        sizes = tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        sizes = (0,)
    if any(s < 1 for s in sizes):
        raise ValueError(f"hidden sizes are positive whole numbers like 64,64, got {text!r}")
    return sizes
