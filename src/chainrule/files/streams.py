"""Where a file is read from and written to: a path, or an object that is open already."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import IO, TypeAlias, TypeGuard

from chainrule.backend import devices
from chainrule.files.atomic import Buffer
from chainrule.tensor import Tensor, device, of_array
from chainrule.typing import Device

__all__ = [
    "FileLike",
    "MapLocation",
    "check_readable",
    "is_stream",
    "mapped",
    "path_of",
    "write_all",
]

FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
MapLocation: TypeAlias = Device | Mapping[str, Device] | Callable[[Tensor, str], Tensor | None]


def is_stream(f: object) -> TypeGuard[IO[bytes]]:
    """Whether this is open already: an io.BytesIO, an open file."""
    return hasattr(f, "read") or hasattr(f, "write")


def path_of(op: str, f: FileLike) -> Path:
    """The path that was given."""
    if not isinstance(f, (str, os.PathLike)):
        raise TypeError(f"{op}: expected a path or an open file, got {type(f).__name__}")
    if not str(f):
        raise ValueError(f"{op}: the path is empty")
    return Path(f)


def write_all(f: IO[bytes], content: Iterable[Buffer]) -> None:
    """Writes into an open file from where it stands."""
    if isinstance(f, io.TextIOBase):
        raise TypeError("save: the file is open for text; open it with open(path, 'wb')")
    for part in content:
        f.write(part)
    with contextlib.suppress(AttributeError):
        f.flush()


def check_readable(f: IO[bytes]) -> str:
    """The name of an open file; refuses one that is open for text, or at its end.

    Only what one :func:`chainrule.save` wrote is read from it: what is behind can be loaded next.
    """
    if isinstance(f, io.TextIOBase):
        raise TypeError("load: the file is open for text; open it with open(path, 'rb')")
    name = str(getattr(f, "name", type(f).__name__))
    if f.seekable():
        at = f.tell()
        if not f.read(1):
            raise EOFError(f"load: {name} is at its end; f.seek(0) goes back to its beginning")
        f.seek(at)
    return name


def mapped(tensors: dict[str, Tensor], location: MapLocation | None) -> dict[str, Tensor]:
    """The tensors where ``map_location`` puts them. All of a file are on the CPU at first."""
    if location is None:
        return tensors
    if callable(location):
        return {name: _called(location, t) for name, t in tensors.items()}
    for place in location.values() if isinstance(location, Mapping) else (location,):
        device(place)  # refuses what is not there
    target = location.get("cpu") if isinstance(location, Mapping) else location
    home = None if target is None else device(target).home()
    if home is None:
        return tensors
    return {name: of_array(devices.put(t.array, home)) for name, t in tensors.items()}


def _called(location: Callable[[Tensor, str], Tensor | None], t: Tensor) -> Tensor:
    found = location(t, "cpu")
    if found is not None and not isinstance(found, Tensor):
        raise TypeError(
            "load: map_location is called with a tensor and 'cpu' and returns the tensor or None; "
            f"it returned {type(found).__name__}"
        )
    return t if found is None else found
