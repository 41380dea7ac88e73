"""DataLoader: an epoch of batches."""

from __future__ import annotations

import contextlib
import itertools
import weakref
from collections import deque
from collections.abc import Callable, Generator as Yields, Iterable, Iterator, Sequence
from multiprocessing.context import BaseContext
from typing import Any, NamedTuple

from chainrule.absent import warn_once
from chainrule.data.collate import default_collate, default_convert
from chainrule.data.dataset import IterableDataset, defined_together, is_in_memory
from chainrule.data.fetch import END, Fetcher, MapFetcher, StreamFetcher
from chainrule.data.sampler import BatchSampler, RandomSampler, SequentialSampler
from chainrule.data.workers import WorkerPool, context_named
from chainrule.ops.creation.sampling import randint
from chainrule.ops.shape.stacking import cat
from chainrule.random import Generator, default_generator
from chainrule.tensor import Tensor
from chainrule.typing import Indexed

__all__ = ["DataLoader"]

Batches = Yields[Any, None, None]

_FIXED = ("batch_size", "batch_sampler", "dataset", "drop_last", "persistent_workers", "sampler")


class _Epoch:
    """Where an epoch stands: what it started from, and how many batches were handed out."""

    def __init__(self, starts: list[Tensor], position: int, workers: list[Tensor | None]):
        self.starts = starts  # the states of all generators before the epoch drew its order
        self.position = position
        self.workers = workers  # the states of the workers' generators
        self.seed = 0


class Rows(NamedTuple):
    """The rows of tensors that an epoch goes through, batch after batch."""

    tensors: tuple[Tensor, ...]
    order: Tensor | None  # in which they come; None for their own
    samples: int  # of which a last batch may have fewer than the others


class DataLoader:
    """Batches of a dataset, epoch after epoch.

    ``for x, y in loader`` is one epoch: the order comes from the sampler (random if ``shuffle``),
    and the last batch holds what is left, or is dropped with ``drop_last``. A dataset in memory
    (:class:`TensorDataset`, its subsets, a tensor) is read by one slice or one choice of rows per
    batch; others sample by sample, joined by ``collate_fn``.

    ``num_workers`` processes read ahead, ``prefetch_factor`` batches each. The batches come in the
    same order, and worker i is seeded by a number that ``generator`` draws, plus i.

    :meth:`state_dict` in the middle of an epoch and :meth:`load_state_dict` in a new loader lead to
    the same remaining batches.

    >>> import chainrule
    >>> from chainrule.data import DataLoader, TensorDataset
    >>> data = TensorDataset(chainrule.arange(10) ** 2)
    >>> for (x,) in DataLoader(data, batch_size=4):
    ...     print(x)
    tensor([0, 1, 4, 9])
    tensor([16, 25, 36, 49])
    tensor([64, 81])
    """

    def __init__(
        self,
        dataset: Indexed,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Sequence[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: str | BaseContext | None = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ):
        self._iterable = isinstance(dataset, IterableDataset)
        _check_workers(
            num_workers, timeout, prefetch_factor, persistent_workers, multiprocessing_context
        )
        _check_order(self._iterable, batch_size, shuffle, sampler, batch_sampler, drop_last)
        if pin_memory:
            warn_once(
                "DataLoader: pin_memory=True changes nothing: JAX copies batches to a device "
                "by itself",
            )
        if generator is not None and not isinstance(generator, Generator):
            raise TypeError(
                f"DataLoader: generator must be a Generator, not {type(generator).__name__}"
            )
        counted: Any = dataset  # if nobody else says in which order to read it
        if sampler is None and not self._iterable:
            sampler = (
                RandomSampler(counted, generator=generator)
                if shuffle
                else SequentialSampler(counted)
            )
        self.batch_size = None if batch_sampler is not None else batch_size
        if self.batch_size is not None:
            batch_sampler = BatchSampler(sampler or (), self.batch_size, drop_last)
        self.dataset: Any = dataset
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.in_order = in_order
        self.sampler = sampler
        self.batch_sampler = None if self._iterable else batch_sampler
        self.drop_last = drop_last
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.persistent_workers = persistent_workers
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.generator = generator
        self.collate_fn = collate_fn or (
            default_convert if batch_sampler is None else default_collate
        )
        self._pool: WorkerPool | None = None
        self._epoch: _Epoch | None = None
        self._resumed = False  # whether the next epoch goes on where self._epoch stands
        self._ready = True

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED and "_ready" in self.__dict__:
            raise ValueError(
                f"DataLoader: {name} attribute should not be set after DataLoader is initialized; "
                "make a new loader"
            )
        super().__setattr__(name, value)

    def __len__(self) -> int:
        """The number of batches in an epoch."""
        if not self._iterable:
            return len(self.sampler if self.batch_sampler is None else self.batch_sampler)  # type: ignore[arg-type]
        n = len(self.dataset)
        if self.batch_size is None:
            return n
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    # --- an epoch ---------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Any]:
        epoch, order = self._begin()
        self._epoch = epoch
        batches = self._read_ahead if self.num_workers else self._read
        return self._counted(epoch, batches(epoch, order))

    def _counted(self, epoch: _Epoch, batches: Batches) -> Batches:
        with contextlib.closing(batches):
            for batch in batches:
                epoch.position += 1
                yield batch
        if self._epoch is epoch:
            self._epoch = None

    def _begin(self) -> tuple[_Epoch, Iterator[Any]]:
        """Draws the order of an epoch, or draws again that of the epoch which goes on."""
        generators = self._generators()
        resumed, self._resumed = self._resumed, False
        epoch = self._epoch
        if not resumed or epoch is None:
            starts = [g.get_state() for g in generators]
            epoch = _Epoch(starts, 0, [None] * self.num_workers)
            return epoch, self._drawn(epoch)
        now = [g.get_state() for g in generators[1:]]
        with default_generator.fork():  # other threads go on drawing from it
            for g, state in zip(generators, epoch.starts, strict=True):
                g.set_state(state)
            try:
                order = self._drawn(epoch)
                if not self._iterable:
                    deque(itertools.islice(order, epoch.position), maxlen=0)
            finally:
                for g, state in zip(generators[1:], now, strict=True):
                    g.set_state(state)
        return epoch, order

    def _drawn(self, epoch: _Epoch) -> Iterator[Any]:
        """The indices of the epoch's batches; everything random about them is drawn now."""
        order = self._order()
        # A loader that goes through its dataset in order, alone, leaves the generator untouched.
        if self.num_workers or not isinstance(self.sampler, (SequentialSampler, type(None))):
            epoch.seed = int(randint(2**62, (), generator=self.generator))
        return order

    def _order(self) -> Iterator[Any]:
        if self._iterable:
            return itertools.repeat(None)
        if self.batch_sampler is None:
            return iter(self.sampler or ())
        if defined_together(type(self.batch_sampler), "cut", "__iter__"):
            cut = self.batch_sampler.cut()  # type: ignore[attr-defined]
            if cut is not None:
                return cut
        return iter(self.batch_sampler)

    def begin_rows(self) -> Rows | None:
        """Begins an epoch whose batches are rows of tensors, and nothing more; None for others.

        Who asks takes the rows, and says by :meth:`end_rows` how many batches it took.
        """
        whole = getattr(self.dataset, "whole", None)
        plain = type(self).__iter__ is DataLoader.__iter__ and self.collate_fn is default_collate
        if whole is None or not plain or self.num_workers or self._resumed:
            return None
        if not is_in_memory(self.dataset) or not defined_together(
            type(self.dataset), "whole", "take"
        ):
            return None
        tensors, cutting = whole(), type(self.batch_sampler)
        if tensors is None or not defined_together(cutting, "cut", "__iter__"):
            return None
        if not defined_together(type(self.sampler), "order", "__iter__"):
            return None
        self._epoch, cut = self._begin()
        batches = list(cut)
        if not batches or isinstance(batches[0], slice):
            return Rows(tensors, None, batches[-1].stop if batches else 0)
        order = batches[0] if len(batches) == 1 else cat(batches)
        return Rows(tensors, order, len(order))

    def end_rows(self, batches: int, whole: bool) -> None:
        """Says how many batches of an epoch of rows were taken, and whether that is all of it."""
        if whole:
            self._epoch = None
        elif self._epoch is not None:
            self._epoch.position = batches

    def _fetcher(self) -> Fetcher:
        if self._iterable:
            return StreamFetcher(self.dataset, self.collate_fn, self.batch_size, self.drop_last)
        return MapFetcher(self.dataset, self.collate_fn, self.batch_sampler is not None)

    def _read(self, epoch: _Epoch, order: Iterator[Any]) -> Batches:
        fetch = self._fetcher()
        fetch.begin()
        skip = epoch.position if self._iterable else 0
        for indices in order:
            batch = fetch(indices)
            if batch is END:
                return
            skip -= 1
            if skip < 0:
                yield batch

    def _read_ahead(self, epoch: _Epoch, order: Iterator[Any]) -> Batches:
        pool = self._workers()
        skip = epoch.position if self._iterable else 0
        asked: deque[int] = deque()

        def ask(worker: int) -> None:
            for indices in itertools.islice(order, 1):
                pool.ask(worker, indices)
                asked.append(worker)

        try:
            # A stream is read again from its start, so its workers start from their seeds.
            states = [None] * self.num_workers if self._iterable else epoch.workers
            number = pool.begin(epoch.seed, states)
            first = epoch.position - skip
            for i in range(self.num_workers * (self.prefetch_factor or 1)):
                ask((first + i) % self.num_workers)
            while asked:
                worker = asked.popleft()
                batch, state = pool.receive(worker, number, self.timeout)
                if batch is END:
                    continue
                ask(worker)
                epoch.workers[worker] = state
                skip -= 1
                if skip < 0:
                    yield batch
        finally:
            if not self.persistent_workers:
                pool.close()

    def _workers(self) -> WorkerPool:
        if self._pool is not None:
            if self._pool.alive():
                return self._pool
            self._pool.close()
        pool = WorkerPool(
            self._fetcher(),
            self.dataset,
            self.num_workers,
            self.worker_init_fn,
            context_named(self.multiprocessing_context),
        )
        if self.persistent_workers:
            self._pool = pool
            weakref.finalize(self, pool.close)
        return pool

    # --- going on later ---------------------------------------------------------------------------

    def _generators(self) -> list[Generator]:
        """The generators an epoch may draw from: the default one and those given, each once."""
        inner = getattr(self.batch_sampler, "sampler", None)
        holders = (self, self.sampler, self.batch_sampler, inner)
        found: list[Generator] = [default_generator]
        for g in [getattr(holder, "generator", None) for holder in holders]:
            if isinstance(g, Generator) and all(g is not other for other in found):
                found.append(g)
        return found

    def state_dict(self) -> dict[str, Any]:
        """Where this loader stands: in the middle of an epoch, or between two.

        The generators given to the loader and its samplers are part of it. The default generator is
        not: who saves a run saves that one with :func:`chainrule.get_rng_state`. An epoch that was
        left early (by ``break``) counts as not finished until the next one starts.
        """
        epoch = self._epoch
        state: dict[str, Any] = {
            "position": 0 if epoch is None else epoch.position,
            "epoch": None if epoch is None else list(epoch.starts),
            "workers": [] if epoch is None else list(epoch.workers),
            "generators": [g.get_state() for g in self._generators()[1:]],
        }
        return state | self._identity()

    def _identity(self) -> dict[str, Any]:
        """What a state and its loader must agree on."""
        sized = hasattr(self.dataset, "__len__")
        together = getattr(self.sampler, "num_replicas", 1)  # processes that share each batch
        return {
            "samples": len(self.dataset) if sized else None,
            "batch_size": None if self.batch_size is None else self.batch_size * together,
            "num_workers": self.num_workers,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on from a state that :meth:`state_dict` returned: the next epoch is its rest."""
        missing = {"position", "epoch", "workers", "generators"} - set(state_dict)
        if missing:
            raise ValueError(f"DataLoader: the state has no {', '.join(sorted(missing))}")
        own = self._identity()
        if state_dict["epoch"] is None:
            del own["num_workers"]  # between two epochs it may change
        for key, value in own.items():
            if state_dict.get(key) != value:
                raise ValueError(
                    f"DataLoader: the state belongs to a loader with {key}={state_dict.get(key)}, "
                    f"this one has {key}={value}"
                )
        given, starts = self._generators()[1:], state_dict["epoch"]
        for states, count in ((state_dict["generators"], len(given)), (starts, len(given) + 1)):
            if states is not None and len(states) != count:
                raise ValueError(
                    f"DataLoader: the state holds {len(states)} generators, this loader has {count}"
                )
        for g, state in zip(given, state_dict["generators"], strict=True):
            g.set_state(state)
        self._epoch = None
        self._resumed = starts is not None
        if starts is not None:
            workers = list(state_dict["workers"])
            self._epoch = _Epoch(list(starts), int(state_dict["position"]), workers)


# --- bad calls ------------------------------------------------------------------------------------


def _check_workers(
    num_workers: int,
    timeout: float,
    prefetch: int | None,
    persistent: bool,
    context: str | BaseContext | None,
) -> None:
    if not isinstance(num_workers, int) or isinstance(num_workers, bool) or num_workers < 0:
        raise ValueError(
            "DataLoader: num_workers option should be a non-negative integer; use num_workers=0 to "
            f"disable multiprocessing, got num_workers={num_workers}"
        )
    if timeout < 0:
        raise ValueError(f"DataLoader: timeout option should be non-negative, got {timeout}")
    if num_workers == 0:
        given = {
            "prefetch_factor": prefetch is not None,
            "persistent_workers": persistent,
            "multiprocessing_context": context is not None,
        }
        for name in [name for name, is_given in given.items() if is_given]:
            raise ValueError(
                f"DataLoader: {name} option needs num_workers > 0, but got num_workers=0"
            )
    if prefetch is not None and prefetch < 1:
        raise ValueError(f"DataLoader: prefetch_factor option should be positive, got {prefetch}")
    if context is not None:
        context_named(context)


def _check_order(
    iterable: bool, batch_size: Any, shuffle: Any, sampler: Any, batch_sampler: Any, drop_last: Any
) -> None:
    if iterable:
        options = {"shuffle": shuffle or None, "sampler": sampler, "batch_sampler": batch_sampler}
        for name, value in options.items():
            if value is not None:
                raise ValueError(
                    f"DataLoader with IterableDataset: expected unspecified {name} option, but got "
                    f"{name}={value}; the dataset itself says what comes next"
                )
    if sampler is not None and shuffle:
        raise ValueError(
            "DataLoader: sampler option is mutually exclusive with shuffle; use a RandomSampler"
        )
    if batch_sampler is not None and (
        batch_size != 1 or shuffle or sampler is not None or drop_last
    ):
        raise ValueError(
            "DataLoader: batch_sampler option is mutually exclusive with batch_size, shuffle, "
            "sampler, and drop_last; the batch_sampler decides all of them"
        )
    if batch_size is None and drop_last:
        raise ValueError(
            "DataLoader: batch_size=None option disables auto-batching and is mutually exclusive "
            "with drop_last"
        )
