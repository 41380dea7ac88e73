"""Data sets over the network: what arrives, what does not."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import assert_close
from data.image_files import write_cifar, write_mnist

from chainrule.data import CIFAR10, CIFAR100, MNIST, DownloadError, download


def numbers(*shape: int, seed: int = 0, high: int = 256) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, high, shape).astype(np.uint8)


def idx(array: np.ndarray) -> bytes:
    sizes = b"".join(n.to_bytes(4, "big") for n in array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes()


def batch(cifar: type, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    return numbers(n, 3072, seed=seed), numbers(n, seed=seed + 9, high=len(cifar.classes))


def binary(cifar: Any, x: np.ndarray, y: np.ndarray) -> bytes:
    coarse = [y[:, None] // 5] if cifar is CIFAR100 else []
    return np.concatenate([*coarse, y[:, None], x], 1).astype(np.uint8).tobytes()


CONTENT = numbers(300_000).tobytes()


MD5 = hashlib.md5(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves files; can break off, ignore or misread ranges, and remembers the requests."""

    files: dict[str, bytes]
    how = ""
    ranges: list[str | None]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        content, asked = self.server.files.get(self.path), self.headers.get("Range")
        self.server.ranges.append(asked)
        if content is None:
            self.send_error(404)
            return
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
        if self.server.how == "no ranges":
            start, asked = 0, None
        if start >= len(content) and asked:
            self.send_error(416)
            return
        self.send_response(206 if asked else 200)
        if asked:
            first = start + (7 if self.server.how == "wrong range" else 0)
            self.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        stop = start + 100_000 if self.server.how == "breaks off" else len(content)
        self.wfile.write(content[start:stop])
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server(monkeypatch: Any) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = Server(("127.0.0.1", 0), Handler)
    server.files, server.ranges = {"/file.bin": CONTENT}, []
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def address(server: Server, name: str = "file.bin") -> str:
    return f"http://127.0.0.1:{server.server_port}/{name}"


def test_download(tmp_path: Path, server: Server) -> None:
    path = tmp_path / "new" / "file.bin"
    sha = hashlib.sha256(CONTENT).hexdigest()
    assert download(address(server), path, md5=MD5, sha256=sha) == path
    assert path.read_bytes() == CONTENT
    assert [p.name for p in path.parent.iterdir()] == ["file.bin"]
    download(address(server), path, md5=MD5)  # it is there
    assert server.ranges == [None]
    path.write_bytes(b"damaged")
    download(address(server), path, md5=MD5, progress=False)
    assert path.read_bytes() == CONTENT


def test_download_goes_on(tmp_path: Path, server: Server) -> None:
    part = tmp_path / "file.bin.part"
    part.write_bytes(CONTENT[:123_456])
    download(address(server), tmp_path / "file.bin", md5=MD5)
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert server.ranges == ["bytes=123456-"]
    assert not part.exists()


def test_an_interrupted_download_goes_on(tmp_path: Path, server: Server) -> None:
    server.how = "breaks off"
    path = tmp_path / "file.bin"
    for kept in ("100,000", "200,000"):
        message = f"the connection ended after {kept} of 300,000 bytes; {kept} bytes are kept"
        with pytest.raises(DownloadError, match=message):
            download(address(server), path, md5=MD5)
        assert not path.exists()
    download(address(server), path, md5=MD5)
    assert path.read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=100000-", "bytes=200000-"]


def test_servers_that_cannot_go_on_send_the_whole(tmp_path: Path, server: Server) -> None:
    server.how = "no ranges"
    (tmp_path / "file.bin.part").write_bytes(CONTENT[:1000])
    download(address(server), tmp_path / "file.bin", md5=MD5)
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    server.how = "wrong range"
    (tmp_path / "other.bin.part").write_bytes(CONTENT[:1000])
    with pytest.raises(
        DownloadError, match="asked to go on at byte 1000, the server sent 'bytes 10"
    ):
        download(address(server), tmp_path / "other.bin", md5=MD5)


def test_parts_of_another_file_are_dropped(tmp_path: Path, server: Server) -> None:
    (tmp_path / "file.bin.part").write_bytes(b"x" * 1000)
    download(address(server), tmp_path / "file.bin", md5=MD5)
    assert server.ranges == ["bytes=1000-", None]
    (tmp_path / "b.bin.part").write_bytes(CONTENT)  # whole, but not yet renamed
    download(address(server), tmp_path / "b.bin", md5=MD5)
    (tmp_path / "c.bin.part").write_bytes(CONTENT + b"more")
    download(address(server), tmp_path / "c.bin", md5=MD5)
    assert {(tmp_path / f"{n}.bin").read_bytes() for n in ("file", "b", "c")} == {CONTENT}


def test_a_wrong_checksum(tmp_path: Path, server: Server) -> None:
    with pytest.raises(
        DownloadError, match=r"file.bin: the file that arrived has the wrong checks"
    ):
        download(address(server), tmp_path / "file.bin", md5="0" * 32)
    with pytest.raises(DownloadError, match="wrong checksum and was deleted"):
        download(address(server), tmp_path / "file.bin", sha256="0" * 64)
    assert list(tmp_path.iterdir()) == []


def test_other_addresses_are_tried(tmp_path: Path, server: Server) -> None:
    urls = [address(server, "none.bin"), address(server)]
    download(urls, tmp_path / "file.bin", md5=MD5)
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    with pytest.raises(DownloadError, match=r"could not download a.bin from .*none.bin: .*404"):
        download(urls[:1], tmp_path / "a.bin")


def test_nobody_answers(tmp_path: Path, server: Server) -> None:
    with Server(("127.0.0.1", 0), Handler) as closed:
        url = f"http://127.0.0.1:{closed.server_port}/file.bin"
    with pytest.raises(
        DownloadError, match=r"could not download file.bin from http://127.*refused"
    ):
        download(url, tmp_path / "file.bin")
    with pytest.raises(ValueError, match="expected an http or https address, got 'file:///etc"):
        download("file:///etc/passwd", tmp_path / "file.bin")


def test_a_full_disk_is_no_reason_to_ask_another(
    tmp_path: Path, server: Server, monkeypatch: Any
) -> None:
    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("chainrule.data.downloads.os.replace", full)
    with pytest.raises(OSError, match="No space left") as caught:
        download([address(server)] * 2, tmp_path / "file.bin")
    assert not isinstance(caught.value, DownloadError)
    assert len(server.ranges) == 1


def test_progress_is_shown(tmp_path: Path, server: Server) -> None:
    """On a terminal; a log file gets no bar."""
    program = (
        "import sys; from chainrule.data import download\n"
        "sys.stderr.isatty = lambda: True\n"
        "download(sys.argv[1], sys.argv[2])"
    )
    command = [sys.executable, "-c", program, address(server), str(tmp_path / "a.bin")]
    seen = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "a.bin: 100%" in seen.stderr
    quiet = [*command[:2], program.replace("True", "False"), *command[3:]]
    quiet[-1] = str(tmp_path / "b.bin")
    assert subprocess.run(quiet, capture_output=True, text=True, check=True).stderr == ""


class Small(MNIST):
    """MNIST from the test's own server."""

    folder_names = ("Small",)


def test_mnist_is_downloaded(tmp_path: Path, server: Server, monkeypatch: Any) -> None:
    x, y = write_mnist(tmp_path / "source")
    files = {p.name: p.read_bytes() for p in (tmp_path / "source").iterdir()}
    server.files = {f"/{name}": content for name, content in files.items()}
    sums = {name: hashlib.md5(content).hexdigest() for name, content in files.items()}
    monkeypatch.setattr(Small, "resources", sums)
    monkeypatch.setattr(Small, "mirrors", (address(server, "gone/"), address(server, "")))
    mnist = Small(tmp_path / "data", download=True)
    assert_close(mnist.data, x)
    assert mnist.targets.tolist() == y.tolist()
    asked = len(server.ranges)
    assert sorted(p.name for p in (tmp_path / "data/Small/raw").iterdir()) == sorted(files)
    assert len(Small(tmp_path / "data", download=True)) == 12
    assert len(server.ranges) == asked  # nothing is fetched twice


def test_cifar_is_downloaded(tmp_path: Path, server: Server, monkeypatch: Any) -> None:
    x, _ = write_cifar(tmp_path / "source", CIFAR10, "binary", True)
    name = "cifar-10-binary.tar.gz"
    content = (tmp_path / "source" / name).read_bytes()
    server.files = {f"/{name}": content}
    monkeypatch.setattr("chainrule.data.cifar.MIRROR", address(server, ""))
    sums = CIFAR10.archives | {name: hashlib.md5(content).hexdigest()}
    monkeypatch.setattr(CIFAR10, "archives", sums)
    assert_close(CIFAR10(tmp_path / "data", download=True).data, x.reshape(-1, 3, 32, 32))
    assert (tmp_path / "data" / name).exists()


def test_offline_says_what_to_do(tmp_path: Path, server: Server, monkeypatch: Any) -> None:
    with Server(("127.0.0.1", 0), Handler) as closed:
        url = f"http://127.0.0.1:{closed.server_port}/"
    monkeypatch.setattr(Small, "mirrors", (url,))
    with pytest.raises(DownloadError) as caught:
        Small(tmp_path, download=True)
    message = str(caught.value)
    for part in (
        "Small: could not download train-images-idx3-ubyte.gz",
        f"{url}train-images-idx3-ubyte.gz",
        "Without a network: get train-images-idx3-ubyte.gz",
        str(tmp_path / "Small" / "raw"),
        f"looked in {tmp_path / 'Small' / 'raw'}, ",
    ):
        assert part in message
