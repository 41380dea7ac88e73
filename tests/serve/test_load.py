"""The command under load: 1000 requests at once, none lost; and it ends in order."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chainrule import data, train

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
if sys.platform == "win32":
    pytest.skip("it has no SIGTERM", allow_module_level=True)
import resource

AT_ONCE = 1000


@pytest.fixture
def model(tmp_path: Path) -> Path:
    rows = {"a": [i / 9 for i in range(80)], "b": ["x", "y", "z", "y"] * 20}
    table = data.Table.from_dict({**rows, "price": [i * i / 50 for i in range(80)]})
    settings = train.Settings(epochs=3, hidden=(8,))
    network = train.fit_table(table, "price", "regression", settings, progress=False)
    network.save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def many_files() -> Iterator[None]:
    """Leave to have a connection for each request."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = AT_ONCE + 200
    if hard < wanted:
        pytest.skip(f"this process may open {hard} files only")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def started(model: Path, *options: str) -> tuple[subprocess.Popen[str], int]:
    command = [sys.executable, "-m", "chainrule", "serve", str(model), "--port", "0", *options]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    address = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
    assert address, (line, process.communicate())
    return process, int(address[1])


async def post(port: int, row: Any) -> tuple[int, Any]:
    """One request over a connection of its own."""
    body = json.dumps(row).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Connection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    )
    await writer.drain()
    head, _, content = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    await writer.wait_closed()
    return int(head.split()[1]), json.loads(content)


def test_a_thousand_at_once_and_a_clean_end(model: Path, many_files: None) -> None:
    process, port = started(model)
    try:
        rows = [{"a": i / 100, "b": "xyz"[i % 3]} for i in range(AT_ONCE)]

        async def all_at_once() -> list[tuple[int, Any]]:
            return await asyncio.gather(*[post(port, row) for row in rows])

        found = asyncio.run(all_at_once())
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert {status for status, _ in found} == {200}
    answers = [told["answers"][0]["prediction"] for _, told in found]
    columns = {name: [row[name] for row in rows] for name in ("a", "b")}
    network = train.FittedNetwork.load(model)
    assert answers == pytest.approx(network.predict(columns), rel=1e-5, abs=1e-5)
    assert (process.returncode, out, err) == (0, "ended\n", "")


def test_ctrl_c_ends_it_and_a_taken_port_is_told(model: Path) -> None:
    process, port = started(model)
    try:
        with socket.create_connection(("127.0.0.1", port)):
            pass
        command = [sys.executable, "-m", "chainrule", "serve", str(model), "--port", str(port)]
        second = subprocess.run(command, capture_output=True, text=True, timeout=120)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert second.returncode == 2
    assert f"cannot listen at 127.0.0.1 port {port}" in second.stderr
    assert second.stderr.count("\n") == 1
    assert (process.returncode, out, err) == (0, "ended\n", "")
