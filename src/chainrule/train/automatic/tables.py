"""From a table to a trained, evaluated network."""

from __future__ import annotations

from typing import Any

from chainrule import nn
from chainrule.data import Table
from chainrule.models import TabularNetwork, WeightedNetworks
from chainrule.data.tabular.roles import Roles
from chainrule.random import fork_rng, manual_seed
from chainrule.train.attending import Doctor
from chainrule.train.automatic.baselines import baselines
from chainrule.train.automatic.parts import Parts, prepare, summary, target_in_its_role
from chainrule.train.automatic.settings import Settings
from chainrule.train.automatic.training import make_network, train_network
from chainrule.train.fitted import FittedNetwork, scores_of
from chainrule.train.progress import ProgressLike
from chainrule.train.run_folder import RunFolder
from chainrule.train.trainer import Trainer

__all__ = ["finish", "fit_table"]


def fit_table(
    table: Table,
    target: str | None = None,
    task: str = "auto",
    settings: Settings | None = None,
    *,
    roles: Roles | None = None,
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
        roles: what columns are, in the place of guesses; see :class:`~chainrule.data.TableEncoder`.
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
    given = {"roles": {n: r if isinstance(r, str) else list(r) for n, r in (roles or {}).items()}}
    table, roles = target_in_its_role(table, target, roles)
    parts = prepare(table, target, task, settings, roles)
    about = {
        "source": source,
        "given": {name: value for name, value in given.items() if value},
        "rows": len(table),
        "columns": table.names,
        "features": parts.inputs.feature_names,
        "left_out": parts.inputs.left_out,
        "roles": {name: role.told() for name, role in parts.inputs.roles.items()},
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
    learned = train_network(model, parts, settings, progress, checkpoints, **facts)
    model, trainer, norms, found = learned
    model.eval()
    output = learned.predict(parts.test[0])
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
        "settings": _complete(model, settings).as_dict(),
        "scores": scores,
        "baselines": baselines(parts),
        "stopped": trainer.history.stopped,
        "best_epoch": trainer.history.best("val_loss")["epoch"],
        "parameters": sum([p.numel() for p in model.parameters()]),
        **found,
        **_found(trainer),
    }
    x, y = parts.test
    held_out = {"output": output, "target": y, "inputs": x, "rows": parts.rows}
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
