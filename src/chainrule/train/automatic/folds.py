"""Cross-validation of a table: everything is fitted anew for each fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chainrule.data import Table
from chainrule.data.table import TableLike
from chainrule.data.tabular.roles import Roles
from chainrule.random import fork_rng, manual_seed
from chainrule.train.automatic.choice import Choice, chosen, usable
from chainrule.train.automatic.parts import encode
from chainrule.train.automatic.settings import Settings
from chainrule.train.automatic.splitting import fold_parts, two_parts
from chainrule.train.automatic.training import make_network, train_network
from chainrule.train.cross_validation import CrossValidation
from chainrule.train.scoring import scores_of
from chainrule.train.sweep import run_parallel

__all__ = ["cross_validate_table"]


def cross_validate_table(
    table: TableLike,
    target: str | Sequence[str] | None,
    task: str,
    settings: Settings,
    folds: int = 5,
    n_jobs: int = 1,
    *,
    roles: Roles | None = None,
    weights: str | None = None,
    group: str | None = None,
    time: str | None = None,
    levels: Sequence[str] | None = None,
    quantiles: Sequence[float] | None = None,
) -> CrossValidation:
    """Fits a table anew for each fold, encoders included, and scores it on the fold.

    The arguments are those of :func:`fit_table`. Groups are never torn apart; in the order of time,
    each fold learns from the rows before those that it is scored on.
    """
    table, choice, others = chosen(
        Table.of(table),
        target,
        task,
        roles,
        weights=weights,
        group=group,
        time=time,
        levels=levels,
        quantiles=quantiles,
    )
    table, choice, _ = usable(table, choice)
    splits = fold_parts(table, choice, settings, folds)
    tasks = [_TableFold(table, choice, settings, *rows, others) for rows in splits]
    rows = [
        {"fold": i + 1, "size": len(splits[i][1]), **scores}
        for i, scores in enumerate(run_parallel(tasks, n_jobs))
    ]
    return CrossValidation.of(rows)


@dataclass
class _TableFold:
    """One fold of a table, as a call that can be sent to another process."""

    table: Table
    choice: Choice
    settings: Settings
    train: list[int]
    test: list[int]
    roles: Roles

    def __call__(self) -> dict[str, float]:
        rows, held = two_parts(self.table, self.choice, self.settings, self.train)
        three, indices = (rows, held, self.test), not self.settings.is_plain
        parts = encode(self.table, self.choice, three, self.roles, indices)
        with fork_rng():
            manual_seed(self.settings.seed)
            model = make_network(parts, self.settings)
            learned = train_network(model, parts, self.settings, progress=False)
            output, (_, truth) = learned.predict(parts.test[0]), parts.test
            return scores_of(parts.target, output, truth, parts.weights[2])
