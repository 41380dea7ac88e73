"""From a table to a trained, evaluated network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainrule import nn
from chainrule.data import Table
from chainrule.data.table import TableLike
from chainrule.models import TabularNetwork, WeightedNetworks
from chainrule.data.tabular.roles import Roles
from chainrule.random import fork_rng, manual_seed
from chainrule.train.attending import Doctor
from chainrule.train.automatic.baselines import baselines
from chainrule.train.automatic.choice import chosen, usable
from chainrule.train.automatic.parts import Parts, prepare, summary
from chainrule.train.automatic.settings import Settings
from chainrule.train.automatic.training import make_network, train_network
from chainrule.train.automatic.warnings import warnings_of
from chainrule.train.fitted import FittedNetwork
from chainrule.train.placing import DevicesLike
from chainrule.train.progress import ProgressLike
from chainrule.train.run_folder import RunFolder
from chainrule.train.scoring import intervals_of, scores_of
from chainrule.train.trainer import Trainer

__all__ = ["finish", "fit_table"]


def fit_table(
    table: TableLike,
    target: str | Sequence[str] | None = None,
    task: str = "auto",
    settings: Settings | None = None,
    *,
    roles: Roles | None = None,
    weights: str | None = None,
    group: str | None = None,
    time: str | None = None,
    levels: Sequence[str] | None = None,
    quantiles: Sequence[float] | None = None,
    source: str = "table",
    progress: ProgressLike = True,
    checkpoints: RunFolder | None = None,
    devices: DevicesLike | None = None,
) -> FittedNetwork:
    """Trains a network on a table: detects, encodes, splits, trains, evaluates.

    Args:
        table: the data: a table, a frame of pandas, polars or Arrow, or columns by name.
        target: the column to predict, by default the last one; or several of numbers, or of labels.
        task: "classification", "regression", "multilabel", "count", "quantile", "ordinal" or
            "auto"; see :class:`~chainrule.data.TargetEncoder`. Rows without a target are left out.
        settings: see :class:`Settings`.
        roles: what columns are, in the place of guesses; see :class:`~chainrule.data.TableEncoder`.
        weights: the column that says how much each row counts, in training and scores.
        group: the column of groups that no split tears apart, like patients or customers.
        time: the column of numbers or dates by which later rows are held out.
        levels: the values of an ordinal target, from the lowest to the highest.
        quantiles: which quantiles to predict, by default 0.1, 0.5 and 0.9.
        source: what the data is called in the report.
        progress: whether to show a bar, or "plot" for curves.
        checkpoints: where they are kept from which the training can be resumed.
        devices: which devices share each batch: see :class:`~chainrule.train.Trainer`. The fitted
            network computes on the CPU.

    >>> from chainrule import data, train
    >>> settings = train.Settings(hidden=(16,), lr=0.02, epochs=60)
    >>> net = train.fit_table(data.embedded("iris").table, settings=settings, progress=False)
    >>> net.about["scores"]["accuracy"] > 0.9
    True
    """
    settings = settings or Settings()
    given = {"roles": {n: r if isinstance(r, str) else list(r) for n, r in (roles or {}).items()}}
    asked: dict[str, Any] = {
        "weights": weights,
        "group": group,
        "time": time,
        "levels": None if levels is None else list(levels),
        "quantiles": None if quantiles is None else list(quantiles),
    }
    table, choice, others = chosen(Table.of(table), target, task, roles, **asked)
    table, choice, notes = usable(table, choice)
    parts = prepare(table, choice, settings, others)
    about = {
        "source": source,
        "given": {name: value for name, value in {**given, **asked}.items() if value},
        "rows": len(table),
        "columns": table.names,
        "features": parts.inputs.feature_names,
        "left_out": parts.inputs.left_out,
        "roles": {name: role.told() for name, role in parts.inputs.roles.items()},
        "summary": [summary(c, parts.inputs.roles.get(c.name)) for c in table],
        "targets": list(choice.targets),
        "notes": notes,
        "warnings": warnings_of(table, choice, parts, settings.class_weight),
    }
    name = ", ".join(choice.targets)
    with fork_rng():
        manual_seed(settings.seed)
        model = make_network(parts, settings)
        return finish(model, parts, settings, name, about, progress, checkpoints, devices)


def finish(
    model: nn.Module,
    parts: Parts,
    settings: Settings,
    target: str,
    about: dict[str, Any],
    progress: ProgressLike,
    checkpoints: RunFolder | None,
    devices: DevicesLike | None = None,
) -> FittedNetwork:
    """Trains, evaluates on the test part, and puts everything together."""
    facts = {"target": target, "task": parts.target.task, "features": about["features"]}
    learned = train_network(model, parts, settings, progress, checkpoints, devices, **facts)
    model, trainer, norms, found = learned
    model.eval()
    output, weight = learned.predict(parts.test[0]), parts.weights[2]
    scores = scores_of(parts.target, output, parts.test[1], weight)
    facts = {
        **about,
        **facts,
        "classes": list(parts.target.classes),
        "split": {
            "train": len(parts.train[1]),
            "validation": len(parts.validation[1]),
            "test": len(parts.test[1]),
        },
        "settings": _complete(model, settings).as_dict(),
        "scores": scores,
        "intervals": intervals_of(parts.target, output, parts.test[1], weight),
        "baselines": baselines(parts),
        "stopped": trainer.history.stopped,
        "best_epoch": trainer.history.best("val_loss")["epoch"],
        "parameters": sum([p.numel() for p in model.parameters()]),
        **found,
        **_found(trainer),
    }
    x, y = parts.test
    held_out = {"output": output, "target": y, "inputs": x, "rows": parts.rows, "weight": weight}
    if parts.examples is not None:
        few = [t[: len(parts.examples)].clone() for t in parts.train]  # not a view of all of them
        held_out["examples"] = (few[0], parts.examples, few[1])
    return FittedNetwork(
        model, parts.inputs, parts.target, facts, trainer.history, norms.norms, held_out
    )


def _complete(model: nn.Module, settings: Settings) -> Settings:
    """The settings, with those of a plain network where it is one."""
    return (
        settings if isinstance(model, (TabularNetwork, WeightedNetworks)) else settings.as_plain()
    )


def _found(trainer: Trainer) -> dict[str, Any]:
    """What the doctor found, and the lines of the preflight, where there was one."""
    found: dict[str, Any] = {}
    for doctor in trainer.callbacks:
        if isinstance(doctor, Doctor):
            found["findings"] = [vars(f) for f in doctor.findings]
            found["preflight"] = [vars(c) for c in doctor.checks]
    return found
