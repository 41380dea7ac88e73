"""Mistakes that stand in the data: values, order, labels, splits."""

from __future__ import annotations

import math
from collections.abc import Iterator

from chainrule.inspect.health.evidence import as_numbers, correlations, explained_after_shifts
from chainrule.inspect.health.findings import Seen, rule
from chainrule.inspect.health.samples import Data, rows_of
from chainrule.ops.reduce.sort import unique
from chainrule.tensor import Tensor

__all__: list[str] = []

FEW_ROWS = 30  # below that a share or a correlation says nothing


@rule("NaN in the data", "data", 0, "one NaN makes every weight NaN in one step", "error")
def _not_finite(data: Data, threshold: float) -> Iterator[Seen]:
    targets = data.y if data.y is not None and data.y.dtype.is_floating_point else None
    for place, values in (("inputs", data.x), ("targets", targets)):
        if values is None:
            continue
        bad = ~values.reshape(values.shape[0], -1).isfinite()
        count = int(bad.sum())
        if count > threshold:
            rows = bad.any(1).nonzero().reshape(-1).tolist()
            columns = bad.any(0).nonzero().reshape(-1).tolist()
            yield Seen(
                "data",
                count,
                f"{count} values of the {place} are NaN or infinite, in rows {_few(rows)} and "
                f"columns {_few(columns)}",
                "drop these rows or fill them in (data.TableEncoder does) before training",
            )


@rule(
    "nothing varies",
    "data",
    1,
    "how many different rows of inputs, or classes, there are: from one nothing can be learned",
    "error",
)
def _constant(data: Data, threshold: float) -> Iterator[Seen]:
    for place, values in (("inputs", data.x), ("classes", _labels(data))):
        if values is None or values.shape[0] < FEW_ROWS:
            continue
        if bool((values == values[:1]).all()):
            yield Seen(
                "data",
                threshold,
                f"the {place} of all {values.shape[0]} rows are the same",
                "look at how they are read: a column that is no column, a mask that keeps one "
                "class, or a scaling by zero",
            )


def _few(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:5])) + (", ..." if len(numbers) > 5 else "")


def _rows(data: Data, least: int = FEW_ROWS) -> tuple[Tensor, Tensor] | None:
    """Inputs and targets that can be compared row by row."""
    x, y = data.x, data.y
    if x is None or y is None or x.shape[0] != y.shape[0] or x.shape[0] < least:
        return None
    numbers = as_numbers(y)
    if not bool(x.isfinite().all()) or not bool(numbers.isfinite().all()):
        return None
    return x, numbers


def _labels(data: Data) -> Tensor | None:
    """Targets that are classes, one of each row."""
    y = data.labels
    if y is None or y.dtype.is_floating_point or y.ndim != 1 or y.shape[0] < FEW_ROWS:
        return None
    return y.long()


@rule(
    "sorted data",
    "data",
    0.5,
    "the mean entropy of the classes in a batch as a share of that in all; in random order it is "
    "above 0.8 from batches of 8 on, in sorted order near 0",
)
def _sorted(data: Data, threshold: float) -> Iterator[Seen]:
    remedy = "shuffle: DataLoader(..., shuffle=True), or permute the rows once"
    targets = [t for _, t in data.batches if isinstance(t, Tensor) and t.ndim]
    if not data.in_order or len(targets) < 3 or len(targets) != len(data.batches):
        return
    if min(len(t) for t in targets[:-1]) < 4:
        return
    if targets[0].dtype.is_floating_point:
        yield from _sorted_numbers(targets, remedy)
        return
    if targets[0].ndim != 1:
        return
    whole = _entropy([v for t in targets for v in t.tolist()])
    inner = sum(_entropy(t.tolist()) for t in targets) / len(targets)
    # Small batches of many classes are never like the whole: what chance gives is the measure.
    classes = len({v for t in targets for v in t.tolist()})
    if classes < 2 or whole == 0:
        return
    possible = min(whole, math.log(min(len(targets[0]), classes)) if classes > 1 else whole)
    if inner / possible < threshold:
        yield Seen(
            "data",
            inner / possible,
            f"batches hold few classes each: their entropy is {inner:.2f} where the data has "
            f"{whole:.2f}, so the network forgets one class while it learns the next",
            remedy,
        )


def _sorted_numbers(targets: list[Tensor], remedy: str) -> Iterator[Seen]:
    values = [v for t in targets for v in t.reshape(t.shape[0], -1)[:, 0].tolist()]
    n = len(values)
    if n < FEW_ROWS or len(set(values)) < n / 2:
        return
    ranks = [0] * n
    for rank, i in enumerate(sorted(range(n), key=values.__getitem__)):
        ranks[i] = rank
    middle, spread = (n - 1) / 2, (n * n - 1) / 12
    r = sum((i - middle) * (k - middle) for i, k in enumerate(ranks)) / n / spread
    if abs(r) > 0.95:  # in random order below 4 / sqrt(n)
        yield Seen(
            "data",
            abs(r),
            f"the targets come in order: the rank correlation with their place is {r:.3f}",
            remedy,
        )


def _entropy(values: list[float]) -> float:
    counts: dict[float, int] = {}
    for v in values:
        counts[v] = counts.get(v, 0) + 1
    n = len(values)
    return -sum(c / n * math.log(c / n) for c in counts.values())


@rule(
    "shifted labels",
    "data",
    0.2,
    "the share of variance that inputs explain rises by so much when the labels are moved by a "
    "few rows, and is near 0 as they stand; chance gives less than 0.1",
    "error",
)
def _shifted(data: Data, threshold: float) -> Iterator[Seen]:
    found = _rows(data, least=60)
    if found is None:
        return
    x, y = (part[:1500] for part in found)
    explained = explained_after_shifts(x, y, [0, -3, -2, -1, 1, 2, 3])
    best = max(explained, key=lambda s: explained[s])
    # A series whose next value is the target is equal to its own inputs one row further.
    copied = float(correlations(x, y.roll(-best, 0)).abs().max()) > 0.999
    gain = explained[best] - max(0.0, explained[0])
    if best and explained[0] < 0.1 and gain > threshold and not copied:
        yield Seen(
            "data",
            gain,
            f"the inputs explain {max(0.0, explained[0]):.0%} of the targets, but "
            f"{explained[best]:.0%} of those {abs(best)} row{'s' * (abs(best) > 1)} "
            f"{'further down' if best > 0 else 'further up'}",
            f"inputs and targets are out of step by {abs(best)}: check how both were read and "
            "sorted (a header read as a row, a roll, a filter applied to one of them)",
        )


@rule(
    "classes do not start at 0",
    "data",
    0,
    "labels 1 to K need K + 1 outputs, one of which is never right",
)
def _from_one(data: Data, threshold: float) -> Iterator[Seen]:
    y = _labels(data)
    if y is None or int(y.min()) <= threshold:
        return
    low, high = int(y.min()), int(y.max())
    if high - low < 200 and len(unique(y)) == high - low + 1 and low == 1:
        yield Seen(
            "data",
            low,
            f"the labels run from {low} to {high}: class 0 never occurs",
            f"subtract {low} from the labels, and give the network {high - low + 1} outputs",
        )


@rule(
    "target among the inputs",
    "data",
    1 - 1e-6,
    "correlation of a column with the target; measured values that are not copies stay below",
    "error",
)
def _leak(data: Data, threshold: float) -> Iterator[Seen]:
    found = _rows(data)
    if found is None:
        return
    x, y = found
    # With one column the target may be a line of it; as many as columns make an autoencoder.
    if x.shape[1] < 2 or (y.shape[1] > 1 and y.shape[1] >= x.shape[1]):
        return
    labels = _labels(data)
    if labels is not None:
        labels = labels[: x.shape[0]]
        if y.shape[1] > 1:  # numbers of classes in a column, too
            single = correlations(x, labels.reshape(-1, 1).to(x.dtype)).abs()
            if float(single.max()) > threshold and y.shape[1] > 2:
                yield _leaked(int(single.argmax()), float(single.max()))
                return
        present = y.mean(0) > 0
        y = y[:, present]
    strongest = correlations(x, y).abs()
    each = strongest.amax(0)
    if y.shape[1] and bool((each > threshold).all()):
        yield _leaked(int(strongest[:, 0].argmax()), float(each.min()))


def _leaked(column: int, r: float) -> Seen:
    return Seen(
        "data",
        r,
        f"input {column} is the target itself (correlation {r:.7f}): nothing is left to learn, "
        "and new data will not have it",
        f"leave column {column} out of the inputs",
    )


@rule(
    "class imbalance",
    "data",
    10,
    "the largest class against the smallest; above 10 to 1 a constant is right in 9 of 10 cases",
)
def _imbalance(data: Data, threshold: float) -> Iterator[Seen]:
    y = _labels(data)
    if y is None or data.weighted:
        return
    counts = [c for c in (y - y.min()).bincount().tolist() if c]
    if 2 <= len(counts) <= 100 and max(counts) > threshold * min(counts):
        yield Seen(
            "data",
            max(counts) / min(counts),
            f"the largest class has {max(counts)} samples, the smallest {min(counts)}: always the "
            f"largest is right in {max(counts) / sum(counts):.0%}",
            "weigh the classes (Trainer(class_weight='balanced'), CrossEntropyLoss(weight=...)) "
            "or sample them evenly (data.WeightedRandomSampler), and look at recall, not accuracy",
        )


@rule(
    "duplicate rows across the split",
    "data",
    0.05,
    "the share of validation rows that are in the training data; single twins occur in measured "
    "tables, and where training rows repeat each other so may these",
    "error",
)
def _duplicates(data: Data, threshold: float) -> Iterator[Seen]:
    if data.held_out is None or data.x is None or data.held_out[0] is None:
        return
    known, held = _keys(data.x), _keys(data.held_out[0])
    if len(held) < 5 or data.x.shape[1] != data.held_out[0].shape[1]:
        return
    seen = set(known)
    shared = [i for i, key in enumerate(held) if key in seen]
    share, within = len(shared) / len(held), 1 - len(seen) / len(known)
    if share > threshold and share > 2 * within:
        yield Seen(
            "data",
            share,
            f"{len(shared)} of {len(held)} validation rows ({share:.0%}) stand in the training "
            f"data, too (rows {_few(shared)}): validation measures memory",
            "remove duplicates before splitting, or split by group (data.GroupKFold)",
        )


def _keys(x: Tensor) -> list[bytes]:
    return [row.tobytes() for row in x.contiguous().numpy()]


@rule(
    "batch norm on one sample",
    "data",
    2,
    "samples in a batch: the variance of one is 0, and its output does not depend on its input",
    "error",
)
def _single(data: Data, threshold: float) -> Iterator[Seen]:
    layers = data.batch_norms
    sizes = data.sizes or [len(rows) for rows in [rows_of(data.first[0])] if rows is not None]
    alone = [i for i, n in enumerate(sizes) if n < threshold]
    if layers and alone:
        which = "every batch has" if len(alone) == len(sizes) else f"batch {alone[0] + 1} of "
        which += "" if len(alone) == len(sizes) else f"{len(sizes)} has"
        yield Seen(
            layers[0],
            1,
            f"{which} one sample, from which {layers[0]} takes mean and variance",
            "larger batches, DataLoader(drop_last=True) for a last batch of one, or GroupNorm or "
            "LayerNorm",
        )
