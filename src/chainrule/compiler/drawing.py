"""The generators behind the streams that a step draws from."""

from __future__ import annotations

import functools
import gc
from typing import Any

from chainrule.backend.recorded import cannot_repeat
from chainrule.random import Generator, Selected, Streams, default_generator

__all__ = ["Sources", "stream_classes"]


@functools.cache
def stream_classes() -> tuple[type, ...]:
    """The classes of what kernels draw from, when first asked for: see Generator.raw."""
    return type(Generator().raw), Streams


class Sources:
    """Finds the generator of a stream: seeded anew, a generator has another stream.

    Which of several streams stands in for the default one may be chosen before a step, or by the
    step itself: then it is that one each time.
    """

    def __init__(self) -> None:
        streams = default_generator.raw
        self._choices = {id(streams): streams.choices} if isinstance(streams, Streams) else {}

    def of(self, raw: Any) -> Generator:
        """The generator that has this stream now."""
        if isinstance(raw, Streams) and raw.choices != self._choices.get(id(raw)):
            return Selected(raw.selected)
        return default_generator if raw is default_generator.raw else _holder_of(raw)


def _holder_of(raw: Any) -> Generator:
    for g in gc.get_referrers(raw):
        if isinstance(g, Generator):
            return g
        if isinstance(g, dict):  # its attributes
            for owner in gc.get_referrers(g):
                if isinstance(owner, Generator):
                    return owner
    cannot_repeat("it draws random numbers from a stream that no generator has")
    return default_generator
