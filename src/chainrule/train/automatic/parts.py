"""The parts of a table: rows for training, validation and test, as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chainrule import nn
from chainrule.data import Column, Table, TableEncoder, TableError, TargetEncoder, detect_task
from chainrule.data import train_validation_test_split as split_in_three
from chainrule.data.tabular.guessing import guess_roles
from chainrule.data.tabular.roles import Roles
from chainrule.ops.creation.patterns import arange
from chainrule.ops.reduce.order import aminmax
from chainrule.ops.reduce.reductions import mean
from chainrule.printing import readable
from chainrule.tensor import Tensor
from chainrule.train.automatic.settings import Settings

__all__ = [
    "EXAMPLES",
    "Parts",
    "check_target",
    "encode",
    "prepare",
    "summary",
    "target_in_its_role",
]

EXAMPLES = 2000  # training rows that the report compares others with


@dataclass
class Parts:
    """Training, validation and test data as tensors, with the encoders fitted on the first."""

    inputs: nn.Module
    target: TargetEncoder
    train: tuple[Tensor, Tensor]
    validation: tuple[Tensor, Tensor]
    test: tuple[Tensor, Tensor]
    rows: Any = None  # of the test part as they were given: a table, or the files of images
    examples: Any = None  # the same of the first training rows


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


def target_in_its_role(
    table: Table, target: str, roles: Roles | None
) -> tuple[Table, dict[str, str | Sequence[Any]]]:
    """The table with its target as it was said to be, and the roles of the other columns."""
    others = dict(roles or {})
    role = others.pop(target, "")
    if role == "category":
        table = table.with_categories([target])
    elif role:
        raise TableError(
            f"column {target!r} is the target, which cannot be given as {role!r}; say its task"
        )
    return table, others


def prepare(
    table: Table, target: str, task: str, settings: Settings, roles: Roles | None = None
) -> Parts:
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
    return encode(table, target, task, (train, validation, test), roles)


def encode(
    table: Table,
    target: str,
    task: str,
    rows: Sequence[Tensor | Sequence[int]],
    roles: Roles | None = None,
) -> Parts:
    """Three parts of a table as tensors, encoded by what the first one shows."""
    part = table.take(rows[0])
    goal = TargetEncoder(task).fit(part[target])
    inputs, y = TableEncoder(roles), goal(part[target])
    guesses = guess_roles(table.without(target), inputs.given)
    encoded = [(inputs.fit_transform(part.without(target), y, guesses=guesses), y)]
    examples = part.take(range(min(EXAMPLES, len(part))))
    for some in rows[1:]:
        part = table.take(some)  # in the place of the part before
        encoded.append((inputs(part, target), goal(part[target])))
    train, validation, test = encoded
    return Parts(inputs, goal, train, validation, test, part, examples)


def summary(column: Column) -> dict[str, Any]:
    """A line about a column for the report."""
    present = column.where_present()
    if not len(present):
        values = "none"
    elif column.kind == "number":
        low, high = aminmax(present.numbers)
        center = float(mean(present.numbers))
        values = f"{readable(float(low))} to {readable(float(high))}, mean {readable(center)}"
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
