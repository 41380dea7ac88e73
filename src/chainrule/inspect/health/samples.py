"""The data as the doctor sees it: the first batches in their order, and the rows behind them."""

from __future__ import annotations

import contextlib
import copy
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from chainrule.backend import dtypes
from chainrule.data import DataLoader
from chainrule.inspect.core.arguments import arguments, tensors
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.creation.patterns import arange
from chainrule.ops.creation.sampling import randperm
from chainrule.ops.shape.stacking import cat
from chainrule.random import fork_rng, manual_seed
from chainrule.tensor import Tensor

__all__ = ["Data", "first_batches", "part_of", "read", "rows_of"]

# What is read of the data: enough for shares and correlations, and read within a second.
BATCHES, ROWS, NUMBERS = 64, 4000, 8_000_000
WHOLE = 256  # a pair of so many rows is one batch; of a larger one random rows are taken
PART, PARTS = 64, 8


@dataclass(eq=False)
class Data:
    """What rules about data look at.

    ``batches`` are pairs in the order in which a loader gives them; ``x`` (n, d) and ``y`` are rows
    in the order of the dataset.
    """

    batches: list[tuple[Any, Any]]
    sizes: list[int] = field(default_factory=list)  # of all batches of an epoch, if they are known
    in_order: bool = False  # whether batches follow each other in training as they do here
    weighted: bool = False  # whether samples or classes have weights
    x: Tensor | None = None
    y: Tensor | None = None
    labels: Tensor | None = None  # all targets that are there, of more rows than x and y
    held_out: tuple[Tensor | None, Tensor | None] | None = None
    batch_norms: list[str] = field(default_factory=list)  # layers that take means over a batch

    @property
    def first(self) -> tuple[Any, Any]:
        """The first batch."""
        return self.batches[0]


def read(instrument: str, data: Any, validation: Any = None, weighted: bool = False) -> Data:
    """Looks at data: a pair (inputs, targets), with weights as a third, or a loader of such."""
    if isinstance(data, (tuple, list)):
        found = _of_pair(instrument, data)
    else:
        found = _of_loader(instrument, data)
    found.weighted = found.weighted or weighted
    if validation is not None:
        other = read(instrument, validation)
        found.held_out = other.x, other.y
    return found


def _split(instrument: str, given: Any) -> tuple[Any, Any, bool]:
    if not isinstance(given, (tuple, list)) or len(given) not in (2, 3):
        shown = f"{len(given)} parts" if isinstance(given, (tuple, list)) else type(given).__name__
        raise TypeError(
            f"{instrument}: data must be a pair (inputs, targets), with weights as a third part or "
            f"not, or a loader of such batches, got {shown}"
        )
    target = given[1]
    if hasattr(target, "__array__") and not isinstance(target, Tensor):
        target = as_tensor(target)
    return given[0], target, len(given) == 3


def _of_pair(instrument: str, given: Any) -> Data:
    inputs, target, weighted = _split(instrument, given)
    args, kwargs = arguments(instrument, inputs)
    inputs = kwargs if kwargs else (args if len(args) > 1 else args[0])
    found = tensors((args, kwargs))
    n = int(found[0].shape[0]) if found and found[0].ndim else 1
    if n == 0:
        raise ValueError(f"{instrument}: the data has no samples")
    x = rows_of(inputs)
    y = _head(target, x)
    labels = target if isinstance(target, Tensor) else None
    if n <= WHOLE:
        return Data([(inputs, target)], [], False, weighted, x, y, labels)
    with fork_rng():
        manual_seed(0)  # the same rows each time
        order = randperm(n)[: PART * PARTS]
    parts = [order[i : i + PART] for i in range(0, len(order), PART)]
    batches = [(_take(inputs, rows), _take(target, rows)) for rows in parts]
    return Data(batches, [], False, weighted, x, y, labels)


def _of_loader(instrument: str, loader: Any) -> Data:
    if not isinstance(loader, Iterable) or isinstance(loader, (str, bytes, Mapping, Tensor)):
        raise TypeError(
            f"{instrument}: data must be a pair (inputs, targets) or a loader of such batches, got "
            f"{type(loader).__name__}"
        )
    if isinstance(loader, Iterator):
        raise TypeError(
            f"{instrument}: data is an iterator, from which every batch comes once; give the "
            "loader itself, or a pair (inputs, targets)"
        )
    given = [_split(instrument, b) for b in first_batches(loader, BATCHES)]
    if not given:
        raise ValueError(f"{instrument}: the data has no batches")
    batches = [(inputs, target) for inputs, target, _ in given]
    sizes = [_size(inputs) for inputs, _ in batches]
    dataset = getattr(loader, "dataset", None)
    held = getattr(dataset, "tensors", None)
    if isinstance(held, (tuple, list)) and len(held) in (2, 3):
        x, labels = rows_of(held[0]), held[1]
        y = _head(labels, x)
        sizes = _all_sizes(loader, int(held[0].shape[0])) or sizes
    else:
        size = sum(t.numel() for t in tensors(batches[0][0]))
        few = batches[: max(1, NUMBERS // max(1, size))]
        x = _joined([rows_of(inputs) for inputs, _ in few])
        labels = _joined([t if isinstance(t, Tensor) else None for _, t in batches])
        y = _head(labels, x)
    return Data(batches, sizes, True, given[0][2], x, y, labels)


def _all_sizes(loader: Any, n: int) -> list[int]:
    size = getattr(loader, "batch_size", None)
    if not isinstance(size, int) or size < 1:
        return []
    rest = n % size if not getattr(loader, "drop_last", False) else 0
    return [size] * (n // size) + ([rest] if rest else [])


def first_batches(loader: Iterable[Any], count: int) -> list[Any]:
    """The first batches of a loader, whose own place and order are kept."""
    # A copy has its own place in an epoch, so that a loader in the middle of one stays there.
    own = copy.copy(loader) if isinstance(loader, DataLoader) else loader
    with _order_kept(own):
        return list(itertools.islice(own, count))


@contextlib.contextmanager
def _order_kept(loader: Any) -> Iterator[None]:
    """Puts the generators back from which a loader draws its order."""
    owners = (loader, getattr(loader, "sampler", None), getattr(loader, "batch_sampler", None))
    generators = [g for g in (getattr(o, "generator", None) for o in owners) if g is not None]
    before = [(g, g.get_state()) for g in generators]
    try:
        with fork_rng():
            yield
    finally:
        for generator, state in before:
            generator.set_state(state)


def _size(inputs: Any) -> int:
    found = tensors(inputs)
    return int(found[0].shape[0]) if found and found[0].ndim else 1


def _take(tree: Any, rows: Tensor) -> Any:
    if isinstance(tree, Tensor):
        return tree[rows]
    if isinstance(tree, Mapping):
        return {name: _take(value, rows) for name, value in tree.items()}
    if isinstance(tree, (tuple, list)):
        return tuple(_take(value, rows) for value in tree)
    return tree


def part_of(batch: tuple[Any, Any], count: int) -> tuple[Any, Any]:
    """Some samples of a batch, spread over it."""
    n = _size(batch[0])
    rows = arange(0, n, max(1, n // count))[:count]
    return _take(batch[0], rows), _take(batch[1], rows)


def _head(target: Any, x: Tensor | None) -> Tensor | None:
    """The targets of the rows that were read."""
    if not isinstance(target, Tensor) or not target.ndim:
        return None
    return target.detach()[: ROWS if x is None else x.shape[0]]


def rows_of(inputs: Any) -> Tensor | None:
    """All numbers of each sample side by side, (n, d) in float64; None where there are none."""
    parts = []
    for t in tensors(inputs):
        if t.ndim and (t.dtype.is_floating_point or t.ndim > 1):
            part = t.detach()[: min(ROWS, max(PART, NUMBERS * t.shape[0] // max(1, t.numel())))]
            parts.append(part.reshape(part.shape[0], -1).to(dtypes.float64))
    if not parts or any(p.shape[0] != parts[0].shape[0] for p in parts):
        return None
    return cat(parts, 1)


def _joined(parts: list[Tensor | None]) -> Tensor | None:
    found = [p for p in parts if p is not None]
    if len(found) != len(parts) or any(p.ndim == 0 for p in found):
        return None
    if any(p.shape[1:] != found[0].shape[1:] for p in found):
        return None
    return cat(found, 0)
