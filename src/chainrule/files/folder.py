"""A model's folder: its files change together, whatever happens in between.

All files of a new version are first written under staged names. Then the description, which names
each with its checksum, takes its place in one step: that is the moment at which the folder holds
the new version. At last the staged files get their names. Whoever comes next, to read or to write,
ends what a killed writer left: what the description names gets its name, all else goes.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from chainrule.files.atomic import Buffer, locked, sync_folder, write_atomically

__all__ = ["DESCRIPTION", "WEIGHTS", "check_digest", "finish_if_left", "places_of", "write_folder"]

DESCRIPTION = "model.json"
WEIGHTS = re.compile(r"weights-([0-9a-f]{12})\.safetensors")  # by their checksum
PLAIN = re.compile(r"\w[\w.-]*")  # names that the description may give to files beside it
STAGED = re.compile(r"\.(\w[\w.-]*)\.([0-9a-f]{12})\.staged")
BEGUN = re.compile(
    r"\.(model\.json|.+\.staged)\.[0-9a-f]{12}\.tmp"
)  # killed while they were written
REPLACED = "replaced"  # a list, staged like a file, of what the former description names


def write_folder(
    folder: Path, told: Mapping[str, Any], weights: Sequence[Buffer], beside: Mapping[str, bytes]
) -> None:
    """Writes a description, its weights and the files beside it, as one version or not at all.

    Of two that write at once one waits. Of the former version only what its description names, and
    nobody has changed, is removed.
    """
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"save: {folder} is a file; give another name for the folder")
    digest = _digest(weights)
    name = f"weights-{digest}.safetensors"
    files = {n: _digest([content]) for n, content in beside.items()}
    text = _signed({**told, "weights": name, "files": files})
    contents: dict[str, Sequence[Buffer]] = {name: weights}
    contents |= {n: [content] for n, content in beside.items()}
    named = {name: digest, **files}
    with locked(folder) as alone:
        finish(folder, None if alone else ())
        former = {n: d for n, d in _unchanged(folder) if n not in named}
        if former:
            contents[REPLACED] = [json.dumps(former).encode()]
            named[REPLACED] = _digest(contents[REPLACED])
        staged = {n: _staged(n, named[n]) for n in contents}
        try:
            for n, content in contents.items():
                _write(folder / staged[n], content, folder / n)
            write_atomically(folder / DESCRIPTION, text)
        finally:
            finish(folder, None if alone else staged.values())


def _digest(parts: Sequence[Buffer]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()[:12]


def _staged(name: str, digest: str) -> str:
    return f".{name}.{digest}.staged"


def _write(path: Path, content: Sequence[Buffer], wanted: Path) -> None:
    """A staged file; an error names the file that was wanted."""
    try:
        write_atomically(path, content)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(wanted)) from None


# --- the description ------------------------------------------------------------------------------


def _signed(told: Mapping[str, Any]) -> bytes:
    """The description as text, with a checksum of itself."""
    own = _digest([json.dumps(told).encode()])
    return json.dumps({**told, "digest": own}, indent=1).encode()


def check_digest(where: Path, told: Mapping[str, Any]) -> None:
    """Raises ValueError where a description is not as it was written."""
    if "digest" not in told and "files" not in told:
        return  # of a version that wrote none
    rest = {key: value for key, value in told.items() if key != "digest"}
    if _digest([json.dumps(rest).encode()]) != told.get("digest"):
        raise ValueError(
            f"load: {where} is damaged: it is not as it was written, by its own checksum; restore "
            "it, or save the model again"
        )


def _named(folder: Path) -> dict[str, str]:
    """The files that the description in a folder names, with their checksums; only plain names."""
    try:
        told = json.loads(_content(folder / DESCRIPTION))
    except (OSError, ValueError, RecursionError):
        return {}
    weights, files = (told.get(k) if isinstance(told, dict) else None for k in ("weights", "files"))
    named: dict[str, str] = {}
    if isinstance(weights, str) and (known := WEIGHTS.fullmatch(weights)):
        named[weights] = known[1]
    if isinstance(files, dict):
        pairs = [(n, d) for n, d in files.items() if isinstance(d, str) and n != DESCRIPTION]
        named |= {n: d for n, d in pairs if PLAIN.fullmatch(n)}
    return named


def _content(path: Path) -> bytes:
    """The bytes of a file; what is none, such as a device that never ends, is an OSError."""
    if not path.is_file():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    return path.read_bytes()


def _unchanged(folder: Path) -> Iterator[tuple[str, str]]:
    """What the description names, and is there as it was written."""
    for name, digest in _named(folder).items():
        if _is_as_written(folder / name, digest):
            yield name, digest


def _is_as_written(path: Path, digest: str) -> bool:
    with contextlib.suppress(OSError):
        if WEIGHTS.fullmatch(path.name):  # whose name is their checksum
            return path.is_file()
        return _digest([_content(path)]) == digest
    return False


def places_of(folder: Path, name: str) -> list[Path]:
    """Where to look for weights: they may be staged, and get their name just then."""
    known = WEIGHTS.fullmatch(name)
    between = [folder / _staged(name, known[1])] if known else []
    return [folder / name, *between, *([folder / name] if known else [])]


# --- the end of a publication ---------------------------------------------------------------------


def finish_if_left(folder: Path) -> None:
    """What a reader does first: it ends what a killed writer left, if it may write there."""
    with contextlib.suppress(OSError):
        if _left(folder):
            with locked(folder, wait=False) as alone:
                finish(folder, None if alone else ())


def finish(folder: Path, removable: Collection[str] | None) -> None:
    """Gives staged files their names if the description names them, and removes the others.

    ``removable`` are the names that may be removed; None: all, since no other writer is there.
    """
    left = _left(folder)
    if not left:
        return
    named = _named(folder)
    for staged in left:
        known = STAGED.fullmatch(staged)
        if known and named.get(known[1]) == known[2]:
            _give_name(folder / staged, folder / known[1])
        elif removable is None or staged in removable:
            if known and known[1] == REPLACED:
                _remove_replaced(folder, folder / staged, named)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(folder / staged)
    sync_folder(folder)


def _left(folder: Path) -> list[str]:
    """The names of staged files, whole or begun."""
    with os.scandir(folder) as entries:
        names = [e.name for e in entries]
    return [n for n in names if STAGED.fullmatch(n) or BEGUN.fullmatch(n)]


def _give_name(staged: Path, path: Path) -> None:
    with contextlib.suppress(OSError):
        if path.exists():
            os.chmod(staged, stat.S_IMODE(path.stat().st_mode))
    with contextlib.suppress(FileNotFoundError):  # another one was faster
        os.replace(staged, path)


def _remove_replaced(folder: Path, listed: Path, named: Mapping[str, str]) -> None:
    """Removes the files of the former version that the present one does not have."""
    with contextlib.suppress(OSError, ValueError, RecursionError):
        former = json.loads(_content(listed))
        for name, digest in former.items() if isinstance(former, dict) else ():
            ours = PLAIN.fullmatch(name) and name not in (*named, DESCRIPTION)
            if ours and _is_as_written(folder / name, digest):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(folder / name)
