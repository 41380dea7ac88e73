"""Files are written whole or not at all, with their permissions, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from chainrule.files.atomic import locked, write_atomically


def test_parts_are_one_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.bin"
    write_atomically(path, [b"one ", memoryview(b"two"), bytearray(b" three")])
    assert path.read_bytes() == b"one two three"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_a_new_file_follows_the_umask_and_an_old_one_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    for mask, mode in ((0o027, 0o640), (0o077, 0o600), (0o002, 0o664)):
        before = os.umask(mask)
        try:
            path.unlink(missing_ok=True)
            write_atomically(path, b"x")
        finally:
            os.umask(before)
        assert stat.S_IMODE(path.stat().st_mode) == mode
    path.chmod(0o604)
    write_atomically(path, b"y")
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    write_atomically(path, b"old")

    def parts() -> Iterator[bytes]:
        yield b"new"
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left on device; the file was not changed"):
        write_atomically(path, parts())
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


KILLED = """
import os, signal, sys
from pathlib import Path
from chainrule.files.atomic import write_atomically

def parts():
    yield b"half"
    os.kill(os.getpid(), signal.SIGKILL)

write_atomically(Path(sys.argv[1]), parts())
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_what_a_killed_writer_began_is_removed_by_the_next(tmp_path: Path) -> None:
    path = tmp_path / "a[1].bin"
    write_atomically(path, b"old")
    other = tmp_path / ".other.bin.0123.tmp"
    other.write_bytes(b"somebody else's")
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 3
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert sorted(tmp_path.iterdir()) == [other, path]


def test_many_writers_of_one_file(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    contents = [bytes([i]) * 10_000 for i in range(8)]
    failed: list[BaseException] = []

    def write(content: bytes) -> None:
        try:
            for _ in range(20):
                write_atomically(path, content)
                assert path.read_bytes() in contents
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=write, args=(c,)) for c in contents]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failed == []
    assert list(tmp_path.iterdir()) == [path]


def test_a_locked_folder_keeps_others_waiting(tmp_path: Path) -> None:
    order: list[str] = []

    def second() -> None:
        with locked(tmp_path):
            order.append("second")

    with locked(tmp_path):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(0.2)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
