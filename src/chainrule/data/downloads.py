"""Files from elsewhere: fetched with progress, checked, resumed where they broke off, whole or
absent; and unpacked no further than what can be meant."""

from __future__ import annotations

import contextlib
import errno
import gzip
import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

__all__ = ["DownloadError", "Unpacked", "check_file", "download", "read_exactly"]

CHUNK = 1 << 18
TIMEOUT = 30.0  # seconds without a byte
# What is packed by gzip may become larger than ENOUGH only up to so many times its size.
TIMES, ENOUGH = 200, 100_000_000


class DownloadError(OSError):
    """A file that could not be fetched; the message says from where, and what is left to do."""


def download(
    url: str | Sequence[str],
    path: str | os.PathLike[str],
    *,
    md5: str | None = None,
    sha256: str | None = None,
    progress: bool = True,
) -> Path:
    """Fetches a file over HTTP to ``path``, from the first address that works; returns the path.

    What has arrived is kept in ``path`` with ``.part`` behind it until the checksum is right, so a
    later call goes on where an earlier one broke off, and ``path`` is a whole file or absent. A
    file that is there with the right checksum is not fetched again.
    """
    target, urls = Path(path), [url] if isinstance(url, str) else list(url)
    for address in urls:
        if not address.startswith(("http://", "https://")):
            raise ValueError(f"download: expected an http or https address, got {address!r}")
    if target.exists() and check_file(target, md5, sha256):
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    from http.client import HTTPException  # with urllib, the slowest of all imports of this room

    failures = []
    for address in urls:
        try:
            return _fetch(address, target, md5, sha256, progress)
        except (OSError, HTTPException) as error:
            if isinstance(error, OSError) and error.errno in _LOCAL:
                raise
            failures.append(f"{address}: {error}")
    part = _part(target)
    kept = part.stat().st_size if part.exists() else 0
    rest = f"; {kept:,} bytes are kept, and the next call goes on from there" if kept else ""
    raise DownloadError(f"could not download {target.name} from {'; '.join(failures)}{rest}")


# No permission, a full disk: no other address will help.
_LOCAL = (errno.EACCES, errno.ENOSPC, errno.EROFS, errno.EDQUOT)


def check_file(path: Path, md5: str | None = None, sha256: str | None = None) -> bool:
    """Whether a file has these checksums."""
    wanted = {"md5": md5, "sha256": sha256}
    names = [name for name, value in wanted.items() if value is not None]
    sums = {name: hashlib.new(name, usedforsecurity=False) for name in names}
    with path.open("rb") as file:
        while sums and (block := file.read(CHUNK)):
            for checksum in sums.values():
                checksum.update(block)
    return all(sums[name].hexdigest() == wanted[name] for name in names)


def _part(target: Path) -> Path:
    return target.with_name(target.name + ".part")


def _fetch(url: str, target: Path, md5: str | None, sha256: str | None, progress: bool) -> Path:
    part = _part(target)
    resumed = part.exists() and part.stat().st_size > 0
    _receive(url, part, progress)
    if not check_file(part, md5, sha256):
        part.unlink()
        if resumed:  # the two pieces may come from different versions of the file
            return _fetch(url, target, md5, sha256, progress)
        raise DownloadError("the file that arrived has the wrong checksum and was deleted")
    os.replace(part, target)
    return target


def _receive(url: str, part: Path, progress: bool) -> None:
    """Fetches what is missing of a file."""
    from urllib.error import HTTPError

    start = part.stat().st_size if part.exists() else 0
    try:
        response = _open(url, start)
    except HTTPError as error:
        with error:
            if error.code != 416 or not start:
                raise
        # Nothing lies behind what is there: it is whole, or of another file. The checksum decides.
        return
    with response:
        if start and not _goes_on(response, start):
            start = 0  # a server that cannot go on sends the whole
        left = response.headers.get("Content-Length")
        total = None if left is None else start + int(left)
        with part.open("ab" if start else "wb") as file, _bar(part, start, total, progress) as bar:
            for block in _blocks(response):
                file.write(block)
                bar.update(len(block))
    size = part.stat().st_size
    if total is not None and size < total:
        raise DownloadError(f"the connection ended after {size:,} of {total:,} bytes")


def _goes_on(response: Any, start: int) -> bool:
    if response.status != 206:
        return False
    told = response.headers.get("Content-Range", "")
    if not told.startswith(f"bytes {start}-"):
        raise DownloadError(f"asked to go on at byte {start}, the server sent {told!r}")
    return True


def _open(url: str, start: int) -> Any:
    from urllib.request import Request, urlopen

    headers = {"User-Agent": "chainrule"} | ({"Range": f"bytes={start}-"} if start else {})
    return urlopen(Request(url, headers=headers), timeout=TIMEOUT)


def _blocks(response: Any) -> Iterator[bytes]:
    while block := response.read(CHUNK):
        yield block


def _bar(part: Path, start: int, total: int | None, progress: bool) -> Any:
    """A progress bar, if there is somebody to see it."""
    if not progress:
        return contextlib.nullcontext(_Silent())
    from tqdm.auto import tqdm

    return tqdm(desc=part.stem, initial=start, total=total, unit="B", unit_scale=True, disable=None)


class _Silent:
    def update(self, count: int) -> None:
        pass


class Unpacked:
    """A file packed by gzip, from which one reads what is in it; a bomb is refused in time.

    Args:
        path: the file.
        refuse: the exception for one that becomes too large.
        most: the largest size, in bytes; None for 200 times the size of the file, and 100 million.
    """

    def __init__(self, path: Path, refuse: type[Exception], most: int | None = None):
        self.path, self.refuse, self.count = path, refuse, 0
        self.packed = path.stat().st_size
        self.most = max(ENOUGH, TIMES * self.packed) if most is None else most
        self.file = gzip.GzipFile(path)

    def __enter__(self) -> Unpacked:
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()

    def read(self, size: int) -> bytes:
        """The next bytes: so many, or fewer at the end."""
        content = self.file.read(size)
        self.count += len(content)
        self.check(self.count)
        return content

    def check(self, size: int) -> None:
        """Refuses to become that large."""
        if size > self.most:
            raise self.refuse(
                f"{self.path} has {self.packed:,} bytes and becomes larger than {self.most:,} when "
                f"it is unpacked, as files do that are made to fill the memory. If it is meant, "
                f"unpack it yourself (gunzip) and read that"
            )


def read_exactly(file: Unpacked | IO[bytes], size: int) -> bytearray:
    """So many bytes, or what there is; memory is taken as they come."""
    content = bytearray()
    while len(content) < size and (more := file.read(min(size - len(content), CHUNK))):
        content += more
    return content
