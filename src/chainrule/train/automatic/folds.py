"""Cross-validation of a table: everything is fitted anew for each fold."""

from __future__ import annotations

from dataclasses import dataclass

from chainrule.data import KFold, StratifiedKFold, Table, TargetEncoder
from chainrule.data import train_test_split as split_in_two
from chainrule.data.tabular.roles import Roles
from chainrule.random import fork_rng, manual_seed
from chainrule.train.automatic.parts import check_target, encode, target_in_its_role
from chainrule.train.automatic.settings import Settings
from chainrule.train.automatic.training import make_network, train_network
from chainrule.train.cross_validation import CrossValidation
from chainrule.train.fitted import scores_of
from chainrule.train.sweep import run_parallel

__all__ = ["cross_validate_table"]


def cross_validate_table(
    table: Table,
    target: str,
    task: str,
    settings: Settings,
    folds: int = 5,
    n_jobs: int = 1,
    *,
    roles: Roles | None = None,
) -> CrossValidation:
    """Fits a table anew for each fold, encoders included, and scores it on the fold."""
    table, roles = target_in_its_role(table, target, roles)
    column = table[target]
    task = check_target(column, task)
    TargetEncoder(task).fit(column)
    kind = StratifiedKFold if task == "classification" else KFold
    splitter = kind(folds, shuffle=True, random_state=settings.seed)
    labels = column.as_category().values if task == "classification" else None
    splits = [(a.tolist(), b.tolist()) for a, b in splitter.split(list(range(len(table))), labels)]
    tasks = [_TableFold(table, target, task, settings, *rows, roles) for rows in splits]
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
    roles: Roles

    def __call__(self) -> dict[str, float]:
        labels = self.table[self.target].take(self.train).as_category().values
        rows, held = split_in_two(
            self.train,
            test_size=self.settings.validation_size,
            random_state=self.settings.seed,
            stratify=labels if self.task == "classification" else None,
        )
        parts = encode(self.table, self.target, self.task, (rows, held, self.test), self.roles)
        with fork_rng():
            manual_seed(self.settings.seed)
            model = make_network(parts, self.settings)
            learned = train_network(model, parts, self.settings, progress=False)
            return scores_of(parts.target, learned.predict(parts.test[0]), parts.test[1])
