"""Which columns are targets, weights, groups and times, and what the target is for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from chainrule.data import Column, Table, TableError, TargetEncoder, detect_task
from chainrule.data.columns import number_in
from chainrule.data.tabular.numerals import numeral
from chainrule.data.tabular.number_goals import mark_of_target, read_as_numbers
from chainrule.data.tabular.roles import DROP, Role, Roles
from chainrule.data.tabular.shared import quoted
from chainrule.data.tabular.targets import TASKS
from chainrule.tensor import Tensor
from chainrule.train.weights import row_weights

__all__ = ["Choice", "check_target", "chosen", "usable"]

LEAST = 10  # rows
RATING = 3  # consecutive whole numbers that may be a scale


@dataclass(frozen=True)
class Choice:
    """The columns that are no features, and the task."""

    targets: tuple[str, ...]
    task: str = "auto"
    weights: str | None = None
    group: str | None = None
    time: str | None = None
    classes: tuple[str, ...] | None = None
    quantiles: tuple[float, ...] | None = None
    time_form: str | None = None  # of dates, where it was said
    marks: tuple[str, ...] = ()  # the decimal marks of targets that are numbers in words

    def target_of(self, table: Table) -> Column | Table:
        """The target column of a table, or the table of several."""
        columns = [table[name] for name in self.targets]
        return columns[0] if len(columns) == 1 else Table(columns)

    def encoder(self) -> TargetEncoder:
        """What encodes this target, not fitted."""
        given = {} if self.quantiles is None else {"quantiles": self.quantiles}
        encoder = TargetEncoder(self.task, classes=self.classes, **given)
        encoder.asked.marks = self.marks
        return encoder

    def no_features(self) -> dict[str, Role]:
        """The columns beside the targets that are not learned from, and why."""
        named = {"the weights of the rows": self.weights, "the groups of the split": self.group}
        return {name: Role(DROP, why) for why, name in named.items() if name is not None}

    def weight_of(self, table: Table) -> Tensor | None:
        """The weights of the rows of a table."""
        return None if self.weights is None else table[self.weights].numbers


def chosen(
    table: Table,
    target: str | Sequence[str] | None,
    task: str,
    roles: Roles | None = None,
    *,
    weights: str | None = None,
    group: str | None = None,
    time: str | None = None,
    levels: Sequence[str] | None = None,
    quantiles: Sequence[float] | None = None,
) -> tuple[Table, Choice, dict[str, str | Sequence[Any]]]:
    """The table with its target as it was said to be, what is chosen, and the other roles."""
    if target is None:
        target = table.names[-1]
    targets = [target] if isinstance(target, str) else list(target)
    names = [n for n in (*targets, weights, group, time) if n is not None]
    for name in names:
        table[name]  # an error that lists the columns
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice or not targets:
        what = f"column {twice[0]!r} is named twice" if twice else "no target is named"
        raise TableError(f"{what}; targets, weights, groups and times are different columns")
    if group is not None and time is not None:
        raise TableError(
            f"rows cannot be split by the groups {group!r} and in the order of {time!r} at once; "
            "choose one"
        )
    table, others, task, levels = _in_their_roles(table, targets, roles, task, levels)
    task = _task_by_options(task, levels, quantiles)
    choice = Choice(
        tuple(targets),
        task,
        weights,
        group,
        time,
        None if levels is None else tuple(map(str, levels)),
        None if quantiles is None else tuple(quantiles),
        _form_said(others.get(time or "")),
    )
    return table, choice, others


def _form_said(role: object) -> str | None:
    """The "dmy" of "date dmy"."""
    return role.partition(" ")[2] or None if isinstance(role, str) else None


def _in_their_roles(
    table: Table,
    targets: Sequence[str],
    roles: Roles | None,
    task: str,
    levels: Sequence[str] | None,
) -> tuple[Table, dict[str, str | Sequence[Any]], str, Sequence[str] | None]:
    others = dict(roles or {})
    for name in targets:
        role = others.pop(name, "")
        if role == "category":
            table = table.with_categories([name])
        elif role == "ordinal" and task in ("auto", "ordinal"):
            task = "ordinal"
        elif role and not isinstance(role, str) and task in ("auto", "ordinal"):
            task, levels = "ordinal", levels or list(role)
        elif role:
            raise TableError(
                f"column {name!r} is the target, which cannot be given as {role!r}; say its task"
            )
    return table, others, task, levels


def _task_by_options(
    task: str, levels: Sequence[str] | None, quantiles: Sequence[float] | None
) -> str:
    if task not in TASKS:
        raise ValueError(f"task: expected one of {', '.join(TASKS)}, got {task!r}")
    for given, name, own in ((levels, "levels", "ordinal"), (quantiles, "quantiles", "quantile")):
        if given is not None and task not in ("auto", own):
            raise ValueError(f"{name} are for the task {own!r}, not for {task!r}")
    if levels is not None and quantiles is not None:
        raise ValueError("levels are for the task 'ordinal', quantiles for 'quantile'; choose one")
    if levels is not None:
        return "ordinal"
    return task if quantiles is None else "quantile"


def usable(table: Table, choice: Choice) -> tuple[Table, Choice, list[str]]:
    """The rows that can be learned from, the task with its classes, and notes for a person."""
    notes: list[str] = []
    table = _with_targets(table, choice, notes)
    table = _with_weights(table, choice, notes)
    for name in (choice.group, choice.time):
        if name is not None and table[name].missing:
            raise TableError(
                f"column {name!r}, by which the rows are split, is missing in "
                f"{table[name].missing} of {len(table)} rows; fill it, or drop these rows"
            )
    asked, target = choice.task, choice.target_of(table)
    task = asked
    if isinstance(target, Column):
        task = check_target(target, asked, torn=choice.group is None and choice.time is None)
    elif len(table) < LEAST:
        check_target(next(iter(target)), "regression")
    else:
        task = detect_task(target) if asked == "auto" else asked
    choice = replace(choice, task=task)
    table, choice = _in_numbers(table, choice, notes)
    target = choice.target_of(table)
    _check_levels(target, choice)
    encoder = choice.encoder().fit(target)  # a constant target is an error before anything else
    if asked == "auto" and isinstance(target, Column):
        notes += _how_taken(target, task)
    if encoder.classes and encoder.names != encoder.classes:
        choice = replace(choice, classes=tuple(encoder.classes))
    return table, choice, notes


def _in_numbers(table: Table, choice: Choice, notes: list[str]) -> tuple[Table, Choice]:
    """The table with its targets as numbers, where the task is for numbers and they are words."""
    if choice.task not in ("regression", "count", "quantile"):
        return table, choice
    columns = dict(table.columns)
    marks = [mark_of_target(table[name]) or "" for name in choice.targets]
    for name, mark in zip(choice.targets, marks, strict=True):
        if mark:
            columns[name] = read_as_numbers(table[name])
            words = [str(word) for word in table[name].counts()]
            shown = next((word for word in words if number_in(word) is None), words[0])
            notes.append(
                f"{name!r} is read as numbers: {shown!r} is {numeral(shown, mark) or 0:.15g}"
            )
    return Table(list(columns.values())), replace(choice, marks=tuple(marks))


def _check_levels(target: Column | Table, choice: Choice) -> None:
    if choice.classes is None or not isinstance(target, Column):
        return
    unnamed = [v for v in target.as_category().counts() if v not in choice.classes]
    if unnamed:
        raise TableError(
            f"the target {target.name!r} has values that are no levels: {quoted(unnamed)}; the "
            f"levels are {quoted(list(choice.classes))}"
        )


def _with_targets(table: Table, choice: Choice, notes: list[str]) -> Table:
    gaps = table[choice.targets[0]].gaps()
    for name in choice.targets[1:]:
        gaps = gaps | table[name].gaps()
    missing = int(gaps.sum())
    if missing == len(table):
        raise TableError(f"the target {choice.targets[0]!r} is missing in all {missing} rows")
    if not missing:
        return table
    notes.append(f"left out, as the target is missing there: {missing:,} of {len(table):,} rows")
    return table.take(~gaps)


def _with_weights(table: Table, choice: Choice, notes: list[str]) -> Table:
    if choice.weights is None:
        return table
    numbers = row_weights(table, choice.weights)
    without = int((numbers == 0).sum())
    if not without:
        return table
    notes.append(f"left out, as their weight is 0: {without:,} of {len(table):,} rows")
    return table.take(numbers > 0)


def check_target(column: Column, task: str, torn: bool = True) -> str:
    """The task for a target column, after checks of what cannot be learned.

    ``torn``: whether each class is needed in each part of the split.
    """
    rows = len(column)
    if column.missing:
        raise TableError(
            f"the target {column.name!r} is missing in {column.missing} of {rows} rows; drop "
            "these rows"
        )
    if rows < LEAST:
        raise TableError(f"the data has {rows} row{'s' * (rows > 1)}; at least {LEAST} are needed")
    task = detect_task(column) if task == "auto" else task
    if task != "classification" or not torn:
        return task
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


def _how_taken(column: Column, task: str) -> list[str]:
    """For whole numbers that may be a rating or a count: how they were taken, and what else."""
    if column.kind != "number":
        return []
    values = list(column.counts())
    if not all(v.is_integer() for v in values):
        return []
    low, high = int(min(values)), int(max(values))
    if task == "classification" and len(values) >= RATING and high - low + 1 == len(values):
        return [
            f"{column.name!r} has the whole numbers {low} to {high} and is taken as "
            f"{len(values)} classes without an order; a rating is `--task ordinal`, a measurement "
            "`--task regression`, a count `--task count`"
        ]
    if task == "regression" and 0 <= low <= 2 and len(values) <= 100:
        return [
            f"{column.name!r} has whole numbers from {low} to {high} and is taken as a "
            "measurement; if they count something, `--task count` fits better, and a rating is "
            "`--task ordinal`"
        ]
    return []
