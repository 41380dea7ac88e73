"""Seeds and generators: where every random number of the library comes from.

A :class:`Generator` is a stream of random bits that can be seeded, saved and restored. Functions
that draw numbers take one as ``generator=``; without it they draw from the default one, which
:func:`manual_seed` seeds.

SFC64 is the fastest of NumPy's bit generators at the numbers that training draws.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from chainrule.tensor import Tensor
    from chainrule.typing import Device

    # Streams passes everything on to the generator that is selected.
    Raw: TypeAlias = "np.random.Generator | Streams"

__all__ = [
    "Generator",
    "Streams",
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]

_WORDS = 7  # of 64 bits: four of state, two of a half used word, the seed


class Generator:
    """A stream of random bits.

    >>> import chainrule
    >>> g = chainrule.Generator().manual_seed(1)
    >>> a = chainrule.rand(3, generator=g)
    >>> b = chainrule.rand(3, generator=g.manual_seed(1))
    >>> bool((a == b).all())
    True
    """

    # How a state is handed out: the room of operations sets this to make a uint8 tensor.
    wrap_state: Callable[[np.ndarray], Any] = staticmethod(lambda state: state)
    # The device of a name, an error if it is not there: ``placement`` sets this, too.
    place: Callable[[Any], Any] = staticmethod(lambda name: name)
    _device: Device = "cpu"

    def __init__(self, device: Device = "cpu"):
        if device != "cpu":
            self._device = self.place(device)
        self._seed = 67280421310721  # PyTorch's, for generators that were never seeded
        self._raw: Raw | None = None

    @property
    def device(self) -> Any:
        """The device that was named. Bits are made on the host, the same ones for all devices."""
        return self.place(self._device)

    @property
    def raw(self) -> Raw:
        """NumPy's generator, made when first used: importing numpy.random takes a while."""
        if self._raw is None:
            self._raw = np.random.Generator(np.random.SFC64(self._seed))
        return self._raw

    def manual_seed(self, seed: int) -> Generator:
        """Starts the stream that belongs to this seed."""
        number = int(seed)
        if not -(2**63) <= number < 2**64:
            raise ValueError(f"manual_seed: the seed must lie in [-2**63, 2**64 - 1], got {number}")
        self._seed = number % 2**64
        self._raw = None
        return self

    def seed(self) -> int:
        """Starts a stream that nobody can foresee; returns its seed."""
        self.manual_seed(int.from_bytes(os.urandom(8), "little"))
        return self._seed

    def initial_seed(self) -> int:
        """The seed this stream started from."""
        return self._seed

    def get_state(self) -> Tensor:
        """Everything that determines the numbers to come, as bytes (a uint8 tensor)."""
        state = self.raw.bit_generator.state
        words = np.empty(_WORDS, np.uint64)
        words[:4] = state["state"]["state"]
        words[4:] = state["has_uint32"], state["uinteger"], self._seed
        return self.wrap_state(words.astype("<u8").view(np.uint8))

    def set_state(self, new_state: Tensor | np.ndarray) -> Generator:
        """Goes on from a state that :meth:`get_state` returned."""
        data = np.asarray(new_state)
        if data.dtype != np.uint8:
            raise TypeError(f"set_state: the state must be a tensor of uint8, got {data.dtype}")
        if data.size != 8 * _WORDS:
            raise RuntimeError(
                f"set_state: expected a state of {8 * _WORDS} bytes, as get_state returns it, got "
                f"{data.size}"
            )
        words = np.frombuffer(data.tobytes(), "<u8").astype(np.uint64)
        bits = np.random.SFC64(0)
        bits.state = {
            "bit_generator": "SFC64",
            "state": {"state": words[:4]},
            "has_uint32": int(words[4]),
            "uinteger": int(words[5]),
        }
        self._seed, self._raw = int(words[6]), np.random.Generator(bits)
        return self

    def clone_state(self) -> Generator:
        """A second generator that will give the same numbers."""
        return Generator(self._device).set_state(self.get_state())

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (np.asarray(self.get_state()).tobytes(),)


def _restored(state: bytes) -> Generator:
    return Generator().set_state(np.frombuffer(state, np.uint8))


class _Fork:
    """The stream of one thread inside :func:`fork_rng`."""

    def __init__(self, seed: int, raw: Raw | None):
        self.seed, self.raw = seed, raw


class _DefaultGenerator(Generator):
    """One stream for all threads; a thread inside :func:`fork_rng` has one of its own."""

    def __init__(self) -> None:
        self.local = threading.local()
        self.shared = _Fork(0, None)
        super().__init__()

    def here(self) -> _Fork:
        """The stream that this thread draws from."""
        forks = getattr(self.local, "forks", None)
        return forks[-1] if forks else self.shared

    @property
    def _seed(self) -> int:
        return self.here().seed

    @_seed.setter
    def _seed(self, value: int) -> None:
        self.here().seed = value

    @property
    def _raw(self) -> Raw | None:
        return self.here().raw

    @_raw.setter
    def _raw(self, value: Raw | None) -> None:
        self.here().raw = value

    def forks(self) -> list[_Fork]:
        """The streams of this thread, the innermost last."""
        return self.local.__dict__.setdefault("forks", [])

    @contextlib.contextmanager
    def fork(self) -> Iterator[None]:
        """A stream of this thread's own, that goes on from here until the block ends."""
        copy = self.clone_state()
        forks = self.forks()
        forks.append(_Fork(copy.initial_seed(), copy.raw))
        try:
            yield
        finally:
            forks.pop()


class Streams:
    """Several generators, of which the selected one stands in for the default one.

    Inside ``with streams:`` all that draws without a generator of its own draws from the one that
    :meth:`select` chose last.

    >>> import chainrule
    >>> from chainrule.random import Generator, Streams
    >>> with Streams([Generator().manual_seed(s) for s in (0, 1)]) as streams:
    ...     streams.select(1)
    ...     a = chainrule.rand(3)
    >>> bool((a == chainrule.rand(3, generator=Generator().manual_seed(1))).all())
    True
    """

    def __init__(self, generators: Iterable[Generator]):
        self.generators = list(generators)
        self.choices = 0  # how often one was chosen
        self.select(0)

    def select(self, i: int) -> None:
        """Makes the i-th generator the one to draw from."""
        self._raw = self.generators[i].raw
        self.selected = i
        self.choices += 1

    def orders(self, n: int) -> np.ndarray:
        """A random order of n samples from each generator, as a loader that shuffles draws it."""
        rows = np.empty((len(self.generators), n), np.int64)
        for row, g in zip(rows, self.generators, strict=True):
            row[:] = g.raw.permutation(n)
            g.raw.integers(0, 2**62)  # which seeds the loader's workers
        return rows

    def keep(self, numbers: Iterable[int]) -> None:
        """Goes on with some of the generators only."""
        self.generators = [self.generators[i] for i in numbers]

    def __getattr__(self, name: str) -> Any:
        # A function that draws keeps hold of the stream it began with, so this stands in for all.
        return getattr(self.__dict__["_raw"], name)

    def __enter__(self) -> Streams:
        default_generator.forks().append(_Fork(self.generators[0].initial_seed(), self))
        return self

    def __exit__(self, *error: object) -> None:
        default_generator.forks().pop()


class Selected(Generator):
    """The i-th of the streams that stand in for the default generator, whichever they are.

    A recorded step draws from it where the step itself selected the stream.
    """

    def __init__(self, number: int):
        self.number = number

    def _generator(self) -> Generator:
        streams = default_generator.raw
        return (
            streams.generators[self.number] if isinstance(streams, Streams) else default_generator
        )

    @property
    def raw(self) -> Raw:
        """NumPy's generator of that stream."""
        return self._generator().raw

    def get_state(self) -> Tensor:
        """The state of that stream."""
        return self._generator().get_state()

    def set_state(self, new_state: Tensor | np.ndarray) -> Generator:
        """Has that stream go on from a state."""
        return self._generator().set_state(new_state)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Selected) and other.number == self.number

    def __hash__(self) -> int:
        return hash(self.number)


default_generator = _DefaultGenerator()
default_generator.seed()


def manual_seed(seed: int) -> Generator:
    """Makes all that follows reproducible: seeds the default generator.

    >>> import chainrule
    >>> generator = chainrule.manual_seed(0)
    >>> chainrule.initial_seed()
    0
    """
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Seeds the default generator with a number that nobody can foresee; returns it."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the default generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default generator."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor | np.ndarray) -> None:
    """Restores a state of the default generator."""
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(
    devices: Iterable[Device] | None = None, enabled: bool = True, device_type: str = "cuda"
) -> Iterator[None]:
    """Random numbers drawn inside leave the numbers drawn after it as if it had not been there.

    Other threads draw from the stream outside meanwhile, so that each can have a fork of its own.
    ``devices`` and ``device_type`` name GPUs whose streams are to be kept, too: there are none.
    """
    with default_generator.fork() if enabled else contextlib.nullcontext():
        yield
