"""The parts of a table: rows for training, validation and test, as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chainrule import nn
from chainrule.backend import dtypes
from chainrule.data import Column, Table, TableEncoder, TableError, TargetEncoder
from chainrule.data.tabular.dates import moments
from chainrule.data.tabular.guessing import guess_roles
from chainrule.data.tabular.features import numbers_of
from chainrule.data.tabular.making import mark_of
from chainrule.data.tabular.roles import DATE, NUMBER, Role, Roles
from chainrule.ops.core.promotion import cast
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.reduce.order import aminmax
from chainrule.ops.reduce.reductions import mean
from chainrule.ops.reduce.sort import argsort
from chainrule.printing import readable
from chainrule.tensor import Tensor
from chainrule.train.automatic.choice import Choice
from chainrule.train.automatic.settings import Settings
from chainrule.train.automatic.splitting import three_parts

__all__ = ["EXAMPLES", "Parts", "encode", "prepare", "summary"]

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
    # Of the three parts: how much each row counts, and which rows belong together; none if all.
    weights: tuple[Tensor | None, Tensor | None, Tensor | None] = (None, None, None)
    groups: tuple[Tensor | None, Tensor | None, Tensor | None] = (None, None, None)
    in_time: bool = False  # whether validation and test lie behind the training part
    picked: Sequence[Tensor] = ()  # the numbers of the rows of each part

    @property
    def kept(self) -> list[Tensor]:
        """All tensors that a training depends on."""
        more = [t for t in (*self.weights, *self.groups) if t is not None]
        return [*self.train, *self.validation, *self.test, *more]


def prepare(table: Table, choice: Choice, settings: Settings, roles: Roles | None = None) -> Parts:
    """Splits a table, fits the encoders on the training rows and encodes all three parts."""
    rows = three_parts(table, choice, settings)
    return encode(table, choice, rows, roles, indices=not settings.is_plain)


def encode(
    table: Table,
    choice: Choice,
    rows: Sequence[Tensor | Sequence[int]],
    roles: Roles | None = None,
    indices: bool = False,
) -> Parts:
    """Three parts of a table as tensors, encoded by what the first one shows.

    With ``indices`` the last features are the indices of large categories, for a network that has
    vectors for them.
    """
    part, others = table.take(rows[0]), choice.no_features()
    group = None if choice.group is None else table[choice.group].as_category().codes.long()
    goal = choice.encoder().fit(choice.target_of(part))
    inputs, y = TableEncoder(roles, indices=indices), goal(choice.target_of(part))
    guesses = {**guess_roles(_features(table, choice), inputs.given), **others}
    encoded = [(inputs.fit_transform(_features(part, choice), y, guesses=guesses), y)]
    weights = [choice.weight_of(part)]
    examples = part.take(range(min(EXAMPLES, len(part))))
    for some in rows[1:]:
        part = table.take(some)  # in the place of the part before
        encoded.append((inputs(_features(part, choice)), goal(choice.target_of(part))))
        weights.append(choice.weight_of(part))
    train, validation, test = encoded
    picked = [r if isinstance(r, Tensor) else tensor(list(r), dtype=dtypes.int64) for r in rows]
    return Parts(
        inputs,
        goal,
        train,
        validation,
        test,
        part,
        examples,
        _three([_in_means(w, weights[0]) for w in weights]),
        _three([None if group is None else group[some] for some in picked]),
        choice.time is not None,
        picked,
    )


def _features(table: Table, choice: Choice) -> Table:
    rest = [name for name in table.names if name not in choice.targets]
    if not rest:
        raise TableError(f"the table has no columns beside the targets {list(choice.targets)}")
    return table.without(*choice.targets)


def _in_means(weight: Tensor | None, first: Tensor | None) -> Tensor | None:
    """Weights in units of their mean over the training rows."""
    if weight is None or first is None:
        return None
    return cast(weight / mean(first), dtypes.get_default_dtype())


def _three(parts: list[Tensor | None]) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    train, validation, test = parts
    return train, validation, test


def summary(column: Column, role: Role | None = None) -> dict[str, Any]:
    """A line about a column for the report."""
    present = column.where_present()
    if not len(present):
        values = "none"
    elif role is not None and role.kind == DATE and "form" in role.how:
        values = _span(present, role.how["form"])
    elif column.kind == "number" or (role is not None and role.kind == NUMBER):
        numbers = numbers_of(present, "" if role is None else mark_of(present, role))
        low, high = aminmax(numbers)
        center = float(mean(numbers))
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


def _span(column: Column, form: str) -> str:
    """From the first to the last moment of a column, as they are written there."""
    order = argsort(moments(column, form)[0])
    first, last = column.take([int(order[0]), int(order[-1])]).as_category().values
    different = len(column.as_category().counts())
    return f"{first} to {last}, {different:,} different ones"
