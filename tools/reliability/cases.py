"""What a kind of file is here, and when the outcome of reading one is a failure."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chainrule import Tensor, nn

__all__ = ["MEMORY", "REFUSALS", "SECONDS", "Case", "Kind", "fault_in", "fingerprint"]

# What the readers say they raise. A subclass counts if it is chainrule's own (TableError,
# ImageError) or says what the system said; what Python's own parsers raise has leaked.
REFUSALS = (ValueError, OSError, EOFError)
MEMORY = 2 << 30  # bytes for reading a file, beyond what the process holds before
SECONDS = 5.0  # of the processor, for one case
LEAKED = (UnicodeError, json.JSONDecodeError)


@dataclass
class Case:
    """One damaged file: how it is read, and what is read if that is to be what was written."""

    read: Callable[[], Any]
    expected: str | None = None  # None: there is no checksum, or it was made anew
    named: str = ""  # what a refusal has to name


class Kind:
    """A kind of file: good ones, made once, and damaged ones, made of them."""

    name = ""
    rule = ""  # what has to come of a damaged one
    memory = MEMORY
    seconds = SECONDS

    def prepare(self, folder: Path) -> None:
        """Makes what the cases are made of; in ``folder`` files can be written."""
        raise NotImplementedError

    def begin(self) -> None:
        """Called once in the process that tries the cases."""

    def case(self, r: random.Random, folder: Path) -> Case:
        """A damaged file, written into ``folder``."""
        raise NotImplementedError


def fault_in(case: Case) -> tuple[bool, str]:
    """Reads a case. Whether it was refused, and what is wrong with that ("" if nothing)."""
    try:
        value = case.read()
    except REFUSALS as error:
        return True, _fault_of(error, case.named)
    except Exception as error:  # noqa: BLE001 - whatever else comes is what is looked for
        return True, f"{type(error).__name__}: {error}"
    if case.expected is not None and fingerprint(value) != case.expected:
        return False, "loaded, but it is not what was saved"
    return False, ""


def _fault_of(error: Exception, named: str) -> str:
    text = str(error)
    if isinstance(error, LEAKED):
        return f"{type(error).__name__} of a parser: {text}"
    if not text.strip():
        return f"{type(error).__name__} without a message"
    if named not in text:
        return f"{type(error).__name__} does not name the file: {text}"
    return ""


def fingerprint(value: Any) -> str:
    """A hash of all that matters in a value: structure, names, types, every bit of every tensor."""
    digest = hashlib.sha256()
    _add(digest, value)
    return digest.hexdigest()


def _add(digest: Any, value: Any) -> None:
    if isinstance(value, Tensor):
        array = value.detach().numpy()
        about = (type(value).__name__, str(value.dtype), array.shape, value.requires_grad)
        digest.update(repr(about).encode())
        digest.update(array.tobytes())
    elif isinstance(value, nn.Module):
        digest.update(f"{value}{[m.training for m in value.modules()]}".encode())
        digest.update(str([p.requires_grad for p in value.parameters()]).encode())
        _add(digest, dict(value.state_dict()))
    elif dataclasses.is_dataclass(value):
        _add(digest, [getattr(value, f.name) for f in dataclasses.fields(value)])
    elif isinstance(value, Mapping):
        for key, part in value.items():
            digest.update(repr(key).encode())
            _add(digest, part)
    elif isinstance(value, (list, tuple)):
        digest.update(f"{type(value).__name__}{len(value)}".encode())
        for part in value:
            _add(digest, part)
    else:
        digest.update(repr(value).encode())
