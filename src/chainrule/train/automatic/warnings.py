"""What may be wrong with data that looks fine: said before anybody believes a score."""

from __future__ import annotations

import math
from collections.abc import Iterator

from chainrule.backend import dtypes
from chainrule.data import Column, Table
from chainrule.data.tabular.large import LargeCategory
from chainrule.data.tabular.shared import quoted
from chainrule.ops.core.promotion import cast
from chainrule.ops.creation.patterns import arange, zeros
from chainrule.ops.creation.sampling import randperm
from chainrule.ops.elementwise.complex_numbers import abs
from chainrule.ops.elementwise.logic import where
from chainrule.ops.index.reading import one_hot
from chainrule.ops.reduce.order import amax
from chainrule.ops.reduce.reductions import mean, sum
from chainrule.ops.reduce.sort import searchsorted, sort, unique
from chainrule.ops.shape.stacking import cat
from chainrule.random import Generator
from chainrule.tensor import Tensor
from chainrule.train.automatic.choice import Choice
from chainrule.train.automatic.doubts import as_it_is_read, doubtful_columns
from chainrule.train.automatic.parts import Parts

__all__ = ["given_away", "warnings_of"]

LOOKED_AT = 20_000  # rows of which relations and distributions are looked at, at most
NEARLY = 0.975  # share of what a constant gets wrong that one column gets right
FEW = 10  # test rows, below which no score says anything
RARE, RATIO = 0.05, 10.0  # share of a class, and how many times more frequent another is
DRIFT, SURE = 0.25, 1e-4  # distance of two distributions, and how likely chance alone makes it
REPEATED = 0.03  # share of test rows that stand in the training part, too


def warnings_of(
    table: Table, choice: Choice, parts: Parts, class_weight: str | None = None
) -> list[str]:
    """Sentences about what may be wrong, each with what to do."""
    return [
        *_leaks(table, choice, parts),
        *_repeated(table, choice, parts),
        *_drift(table, choice, parts),
        *doubtful_columns(table, parts.inputs),
        *_few(parts),
        *_imbalance(parts, class_weight),
        *_untrained(parts),
    ]


def _some(rows: Tensor) -> Tensor:
    """All rows, or some at random where they are many."""
    if len(rows) <= LOOKED_AT:
        return rows
    return rows[randperm(len(rows), generator=Generator().manual_seed(0))[:LOOKED_AT]]


# --- a column that gives the target away ----------------------------------------------------------


def _leaks(table: Table, choice: Choice, parts: Parts) -> Iterator[str]:
    y = cat([parts.train[1], parts.validation[1], parts.test[1]])
    rows = cat(list(parts.picked))
    if len(rows) < 30:  # anything may fit a few rows
        return
    chosen = _some(arange(len(rows)))
    rows, y = rows[chosen], y[chosen]
    goal = cast(one_hot(y, int(y.max()) + 1) if y.ndim == 1 else y, dtypes.float64)
    used = [name for name in dict.fromkeys(parts.inputs.sources) if name != choice.time]
    for name in used:
        column = as_it_is_read(table[name].take(rows), parts.inputs)
        shares = given_away(column, goal, classes=y.ndim == 1)
        share = max(shares)
        if share >= NEARLY:
            known = [i for i, s in enumerate(shares) if s >= NEARLY]
            what = _named(choice, parts, known)
            told = (
                f"{share:.1%} of what a constant gets wrong" if y.ndim == 1 else f"R2 {share:.3f}"
            )
            yield (
                f"column {name!r} alone predicts {what} nearly perfectly ({told}). If it is not "
                f"known when predictions are made, it gives the target away: leave it out with "
                f"--drop {name!r}"
            )


def _named(choice: Choice, parts: Parts, which: list[int]) -> str:
    """Some of several targets or labels by their names."""
    if parts.target.task == "multilabel":
        labels = quoted([parts.target.classes[i] for i in which])
        return f"the label{'s' * (len(which) > 1)} {labels}"
    several = len(choice.targets) > 1
    return quoted([choice.targets[i] for i in which] if several else list(choice.targets))


def given_away(column: Column, goal: Tensor, classes: bool) -> list[float]:
    """How much of a target (N, m) one column tells: the R2 of each number, or the one share of
    errors of the classes that it saves.

    Half of the rows say what follows from each value, and between values by a line; the other half
    is predicted, and the other way round.
    """
    values = column.numbers if column.kind == "number" else cast(column.codes, dtypes.float64)
    known = ~column.gaps()
    order = randperm(len(values), generator=Generator().manual_seed(0))
    halves = order[: len(order) // 2], order[len(order) // 2 :]
    found = 1 if classes else int(goal.shape[1])
    errors, chance = (zeros(found, dtype=dtypes.float64) for _ in range(2))
    for learned, asked in (halves, halves[::-1]):
        learned = learned[known[learned]]
        if len(learned) < 2:
            return [0.0]
        constant = mean(goal[learned], 0)
        said = where(
            known[asked].reshape(-1, 1),
            _between(
                values[learned], goal[learned], values[asked], constant, column.kind == "number"
            ),
            constant,
        )
        if classes:
            truth = goal[asked].argmax(1)
            errors = errors + sum(said.argmax(1) != truth)
            chance = chance + sum(constant.argmax() != truth)
        else:
            errors = errors + sum((said - goal[asked]) ** 2, 0)
            chance = chance + sum((constant - goal[asked]) ** 2, 0)
    saved = where(chance > 0, 1 - errors / where(chance > 0, chance, 1.0), 0.0)
    return saved.tolist()


def _between(x: Tensor, y: Tensor, asked: Tensor, constant: Tensor, is_number: bool) -> Tensor:
    """The mean of y at each value of x, and a line between neighbors (numbers), at other values."""
    found, place, count = unique(x, return_inverse=True, return_counts=True)
    total = zeros(len(found), y.shape[1], dtype=y.dtype, device=y.device).index_add(0, place, y)
    means = total / count.reshape(-1, 1)
    after = searchsorted(found, where(asked == asked, asked, found[0])).clamp(max=len(found) - 1)
    before = (after - 1).clamp(min=0)
    at = (found[after] == asked).reshape(-1, 1)
    if not is_number:
        return where(at, means[after], constant)
    width = found[after] - found[before]
    part = where(width > 0, (found[after] - asked) / where(width > 0, width, 1.0), 0.0)
    part = part.clamp(0.0, 1.0).reshape(-1, 1)
    return where(at, means[after], means[after] * (1 - part) + means[before] * part)


# --- rows of the test part that were trained on ---------------------------------------------------


def _repeated(table: Table, choice: Choice, parts: Parts) -> Iterator[str]:
    used = {*parts.inputs.sources, *choice.targets}
    columns = [c for c in table if c.name in used]
    some = _some(arange(len(table)))
    # Rows of few values repeat by themselves.
    if _by_chance([c.take(some) for c in columns], len(table)) > 0.01:
        return
    marks = _marks(columns)
    train, test = marks[parts.picked[0]], marks[parts.picked[2]]
    again = int(sum(_is_in(test, train)))
    if again >= max(3, REPEATED * len(test)):
        yield (
            f"{again:,} of {len(test):,} test rows stand in the training part, too, value by "
            "value, so the scores are too good: drop repeated rows first, or name the column of "
            "what is repeated with --group"
        )


def _by_chance(columns: list[Column], rows: int) -> float:
    """How many rows would equal a given one if the columns did not depend on each other."""
    logs = math.log(rows)
    for column in columns:
        counts = column.counts()
        total = max(1, math.fsum(counts.values()))
        logs += math.log(max(1e-300, math.fsum((n / total) ** 2 for n in counts.values())))
    return math.exp(min(logs, 0.0))


def _marks(columns: list[Column]) -> Tensor:
    """A number for each row that is the same for equal rows, and else hardly ever."""
    mark = zeros(len(columns[0]), dtype=dtypes.int64)
    for column in columns:
        if column.kind == "number":
            own = where(column.gaps(), 0.5, column.numbers + 0.0).view(dtypes.int64)
        else:
            own = cast(column.codes, dtypes.int64)
        mark = (mark ^ own) * 6364136223846793005 + 1442695040888963407
        mark = mark ^ (mark >> 29)
    return mark


def _is_in(asked: Tensor, known: Tensor) -> Tensor:
    ordered = sort(known)[0]
    return ordered[searchsorted(ordered, asked).clamp(max=len(ordered) - 1)] == asked


# --- other rows than those of the training --------------------------------------------------------


def _drift(table: Table, choice: Choice, parts: Parts) -> Iterator[str]:
    """Columns whose values are distributed otherwise in the test part (Kolmogorov, Smirnov).

    The statistics of large categories are left out: those of training rows are computed in folds,
    and differ from those of other rows by that alone.
    """
    (x, _), (z, _) = parts.train, parts.test
    plain = int(x.shape[1]) - len(parts.inputs.index_sizes)
    x, z = _some(x), _some(z)
    n, m = len(x), len(z)
    limit = math.sqrt(math.log(2 * max(1, plain) / SURE) / 2 * (n + m) / (n * m))
    large = [f.name for f in parts.inputs.features if isinstance(f, LargeCategory)]
    train, test = _some(parts.picked[0]), _some(parts.picked[2])
    apart = [(name, distance_of_words(table[name], train, test)) for name in large]
    for i, name in enumerate(parts.inputs.sources[:plain]):
        if name not in large:
            apart.append((name, distance(x[:, i], z[:, i])))
    found: dict[str, float] = {}
    for name, far in apart:
        if far > max(DRIFT, limit) and name != choice.time:
            found[name] = max(far, found.get(name, 0.0))
    if found:
        worst = sorted(found, key=lambda name: -found[name])
        shown = ", ".join(f"{name!r} ({found[name]:.0%} apart)" for name in worst[:3])
        more = f" and {len(worst) - 3} more" if len(worst) > 3 else ""
        yield (
            f"the test rows differ from the training rows in {shown}{more}: the scores hold for "
            "rows like these, and fall as the data goes on changing. Train on newer rows, or leave "
            "such columns out with --drop"
        )


def distance(a: Tensor, b: Tensor) -> float:
    """The largest distance of two distributions, by their cumulated shares.

    >>> from chainrule import tensor
    >>> distance(tensor([0.0, 1.0]), tensor([1.0, 2.0]))
    0.5
    """
    both = sort(cat([a, b]))[0]
    shares = [
        cast(searchsorted(sort(part)[0], both, right=True), dtypes.float64) / len(part)
        for part in (a, b)
    ]
    return float(amax(abs(shares[0] - shares[1])))


def distance_of_words(column: Column, train: Tensor, test: Tensor) -> float:
    """How far apart the shares of a category are in two parts of its rows.

    It is that of one value, or of all that the training part does not have; of these, as many as
    the values that stand there once are expected (Good, Turing).
    """
    text = column.as_category()
    codes = cast(text.codes, dtypes.int64) + 1  # 0 is missing
    often, other = [
        cast(codes[rows].bincount(minlength=len(text.words) + 1), dtypes.float64)
        for rows in (train, test)
    ]
    shift = float(amax(abs(often / len(train) - other / len(test))))
    new = float(sum(where(often == 0, other, 0.0))) / len(test)
    return max(shift, new - float(sum(often == 1)) / len(train))


# --- rows and classes that are too few ------------------------------------------------------------


def _few(parts: Parts) -> Iterator[str]:
    rows = len(parts.test[1])
    if rows < FEW:
        yield (
            f"the scores rest on {rows} test row{'s' * (rows > 1)}, which is too few to say how "
            "good the network is (see the intervals): bring more rows, or use `chainrule cv`, "
            "which scores all rows in turn"
        )


def _imbalance(parts: Parts, class_weight: str | None) -> Iterator[str]:
    y, classes = parts.train[1], parts.target.classes
    if parts.target.task == "classification":
        shares = cast(y.bincount(minlength=len(classes)), dtypes.float64) / len(y)
        rare, most = int(shares.argmin()), float(shares.max())
        least = float(shares[rare])
        if 0 < least < RARE and most > RATIO * least:
            yield (
                f"class {classes[rare]!r} has {least:.1%} of the training rows: a network that "
                "never says it is still mostly right. Look at F1 and at the scores of each class "
                "rather than at the accuracy"
                + (
                    ""
                    if class_weight
                    else ", and weigh rare classes up with --class-weight balanced"
                )
            )
    elif parts.target.task == "multilabel":
        shares = cast(mean(y, 0), dtypes.float64)
        least = float(shares.min())
        if 0 < least < RARE / 5:
            yield (
                f"label {classes[int(shares.argmin())]!r} has {least:.1%} of the training rows, "
                "which may be too few to learn it: look at the scores of each label, or drop it"
            )


def _untrained(parts: Parts) -> Iterator[str]:
    """Classes that only other parts have, where rows are split by groups or in time."""
    classes, y = parts.target.classes, parts.train[1]
    if y.ndim != 1:
        return
    counts = y.bincount(minlength=len(classes)).tolist()
    never = [c for c, n in zip(classes, counts, strict=True) if n == 0]
    if never:
        yield (
            f"no training row has the class {quoted(never)}, which the network cannot learn: split "
            "the rows in another way, or leave these rows out"
        )
