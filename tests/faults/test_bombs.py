"""Files that are small until they are unpacked: refused in time, in little memory."""

from __future__ import annotations

import gzip
import io
import tarfile
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from chainrule.data import CIFAR10, MNIST, TableError, downloads, read_table
from chainrule.data.vision import DatasetError

MEGABYTE = 1 << 20
SIZE = 24 * MEGABYTE
ALLOWED = 4 * MEGABYTE


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Bombs of some megabytes are large enough, and the memory that they take is watched."""
    monkeypatch.setattr(downloads, "ENOUGH", ALLOWED)
    monkeypatch.setattr("chainrule.data.cifar.LARGEST", ALLOWED)
    tracemalloc.start()
    yield
    tracemalloc.stop()


def refusal(act: Callable[[], Any], error: type[Exception]) -> str:
    """The message with which a bomb is refused."""
    tracemalloc.reset_peak()
    with pytest.raises(error) as told:
        act()
    assert tracemalloc.get_traced_memory()[1] < SIZE
    return str(told.value)


@pytest.mark.parametrize("text", [b"0\n", b"a,b\n", b"x", b'"'], ids=repr)
def test_table(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"head\n" + text * (SIZE // len(text))))
    told = refusal(lambda: read_table(path), TableError)
    assert "bomb.csv.gz" in told
    if text == b"x":
        assert f"larger than {max(ALLOWED, 200 * path.stat().st_size):,}" in told
        assert "gunzip" in told


def test_what_is_packed_well_is_read(tmp_path: Path) -> None:
    path = tmp_path / "zeros.csv.gz"
    path.write_bytes(gzip.compress(b"a\n" + b"0\n" * MEGABYTE))
    assert len(read_table(path)) == MEGABYTE  # 1000:1, and less than ENOUGH


@pytest.mark.parametrize("said", [10, SIZE, 2**32 - 1])
def test_idx(tmp_path: Path, said: int) -> None:
    head = bytes([0, 0, 8, 3]) + b"".join(n.to_bytes(4, "big") for n in (said, 1, 1))
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(head + bytes(SIZE)))
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 1, 3]))
    told = refusal(lambda: MNIST(tmp_path), DatasetError)
    assert "train-images-idx3-ubyte.gz" in told
    limit = max(ALLOWED, 200 * path.stat().st_size)
    assert ("but there are more" if said == 10 else f"larger than {limit:,}") in told


@pytest.mark.parametrize("name", ["cifar-10-batches-bin/test_batch.bin", "other"])
@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE])
def test_archive(tmp_path: Path, name: str, kind: bytes) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        member = tarfile.TarInfo(name)
        member.size, member.type = SIZE, kind
        tar.addfile(member, io.BytesIO(bytes(SIZE)))
    (tmp_path / "cifar-10-binary.tar.gz").write_bytes(packed.getvalue())
    told = refusal(lambda: CIFAR10(tmp_path, train=False), DatasetError)
    assert "cifar-10-binary.tar.gz" in told
    assert f"larger than {ALLOWED:,}" in told
