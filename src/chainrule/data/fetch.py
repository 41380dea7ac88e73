"""How a loader reads a batch: at once, sample by sample, or from a stream."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from chainrule.backend import K
from chainrule.data.collate import default_collate
from chainrule.data.dataset import is_in_memory, numbers, rows
from chainrule.ops.creation.from_data import as_tensor
from chainrule.tensor import Tensor
from chainrule.typing import Indexed

__all__ = ["END", "Fetcher", "MapFetcher", "StreamFetcher"]


class _End:
    """Stands for the end of a stream; the same object in all processes."""

    def __reduce__(self) -> str:
        return "END"


END = _End()


class Fetcher:
    """Reads batches; ``begin`` starts an epoch."""

    def begin(self) -> None:
        """Starts an epoch."""

    def __call__(self, indices: Any) -> Any:
        """The batch of these indices, or ``END``."""
        raise NotImplementedError


class MapFetcher(Fetcher):
    """Batches of a dataset whose samples have numbers (``batched=False``: single samples)."""

    def __init__(self, dataset: Indexed, collate_fn: Callable[[Any], Any], batched: bool):
        self.dataset = dataset
        self.collate_fn = collate_fn
        self.batched = batched
        # A collate_fn of the user's is promised a list of samples.
        self.take = _taker(dataset) if batched and collate_fn is default_collate else None

    def __call__(self, indices: Any) -> Any:
        if self.take is not None:
            known = isinstance(indices, (slice, Tensor))
            return _listed(self.take(indices if known else numbers(indices)))
        if not self.batched:
            return self.collate_fn(self.sample(indices))
        if isinstance(indices, slice):
            indices = range(indices.start, indices.stop)
        elif isinstance(indices, Tensor):
            indices = indices.tolist()
        several = getattr(self.dataset, "__getitems__", None)
        if callable(several):
            return self.collate_fn(several(list(indices)))
        return self.collate_fn([self.sample(i) for i in indices])

    def sample(self, index: Any) -> Any:
        """One sample; an error says which."""
        try:
            return self.dataset[index]
        except Exception as error:
            error.add_note(f"DataLoader: raised by sample {index} of {_named(self.dataset)}")
            raise


def _listed(batch: Any) -> Any:
    """A batch with lists for tuples, as ``default_collate`` makes it."""
    if type(batch) is tuple:
        return [_listed(part) for part in batch]
    return {k: _listed(v) for k, v in batch.items()} if type(batch) is dict else batch


def _named(dataset: object) -> str:
    return f"the {type(dataset).__name__}"


def _taker(dataset: object) -> Callable[[Any], Any] | None:
    """What reads a whole batch of this dataset at once, if anything does."""
    if is_in_memory(dataset):
        return dataset.take
    if isinstance(dataset, K.Array) and K.kind_of(dataset.dtype) in "biufc":
        dataset = as_tensor(dataset)
    return functools.partial(rows, dataset) if isinstance(dataset, Tensor) else None


class StreamFetcher(Fetcher):
    """Batches of a dataset that can only be iterated over (``size=None``: single samples)."""

    def __init__(
        self,
        dataset: Iterable[Any],
        collate_fn: Callable[[Any], Any],
        size: int | None,
        drop_last: bool,
    ):
        self.dataset = dataset
        self.collate_fn = collate_fn
        self.size = size
        self.drop_last = drop_last
        self.samples: Iterator[Any] = iter(())

    def begin(self) -> None:
        """Starts the stream anew."""
        self.samples = iter(self.dataset)

    def __call__(self, indices: Any) -> Any:
        if self.size is None:
            sample = next(self.samples, END)
            return END if sample is END else self.collate_fn(sample)
        batch = list(itertools.islice(self.samples, self.size))
        if not batch or (self.drop_last and len(batch) < self.size):
            return END
        return self.collate_fn(batch)
