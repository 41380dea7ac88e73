"""Requests to ``chainrule serve``: seconds until the answer, and whether all are right.

A server in a process of its own answers single rows: to one client after another request, to 32
clients at a time, and to 1000 requests at once, each over a connection of its own.
"""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from time import perf_counter
from typing import Any

from chainrule import data, train

__all__ = ["main"]

AT_ONCE = 1000


async def _ask(streams: Any, row: Any) -> tuple[float, Any]:
    """Sends a row over an open connection; the seconds it took, and the prediction."""
    reader, writer = streams
    body = json.dumps(row).encode()
    began = perf_counter()
    writer.write(
        b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    )
    head = await reader.readuntil(b"\r\n\r\n")
    size = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    if not head.startswith(b"HTTP/1.1 200") or size is None:
        raise RuntimeError(f"refused: {head.decode()}")
    told = json.loads(await reader.readexactly(int(size[1])))
    return perf_counter() - began, told["answers"][0]["prediction"]


async def _client(port: int, rows: Sequence[Any]) -> list[tuple[float, Any]]:
    """One request after the other over one connection; the first includes the connecting."""
    began = perf_counter()
    streams = await asyncio.open_connection("127.0.0.1", port)
    connected = perf_counter() - began
    found = [await _ask(streams, row) for row in rows]
    streams[1].close()
    return [(found[0][0] + connected, found[0][1]), *found[1:]]


async def _clients(port: int, rows: Sequence[Any], count: int) -> list[tuple[float, Any]]:
    """The rows dealt out to clients that ask at the same time, in their order."""
    hands = [rows[i::count] for i in range(count)]
    found = await asyncio.gather(*[_client(port, hand) for hand in hands])
    return [found[i % count][i // count] for i in range(len(rows))]


def _line(name: str, times: list[float], whole: float) -> str:
    ordered = sorted(times)
    middle, late = (ordered[int(q * (len(ordered) - 1))] * 1e3 for q in (0.5, 0.99))
    rate = len(times) / whole
    return f"{name:<34} {middle:9.2f} {late:9.2f} {ordered[-1] * 1e3:9.2f} {rate:11.0f}"


def _allow_connections() -> None:
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 65536), most))


def main() -> None:
    """Prints a line for each way to ask."""
    _allow_connections()
    table = data.embedded("wine").table
    network = train.fit_table(table, settings=train.Settings(epochs=20), progress=False)
    names = list(network.columns)
    columns = [table[name].values for name in names]
    samples = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    expected = network.predict(table)
    with tempfile.TemporaryDirectory() as folder:
        network.save(folder)
        command = [sys.executable, "-m", "chainrule", "serve", folder, "--port", "0"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            address = re.search(r":(\d+)/", process.stdout.readline())  # type: ignore[union-attr]
            port = int(address[1])  # type: ignore[index]
            print(f"{'milliseconds':<34} {'median':>9} {'99 %':>9} {'worst':>9} {'requests/s':>11}")
            for name, count, clients in (
                ("one client", 500, 1),
                ("32 clients", 4000, 32),
                (f"{AT_ONCE} connections at once", AT_ONCE, AT_ONCE),
            ):
                rows = [samples[i % len(samples)] for i in range(count)]
                began = perf_counter()
                found = asyncio.run(_clients(port, rows, clients))
                whole = perf_counter() - began
                print(_line(name, [seconds for seconds, _ in found], whole))
                wrong = [i for i, f in enumerate(found) if f[1] != expected[i % len(samples)]]
                if wrong:
                    raise RuntimeError(f"{len(wrong)} answers are not those of predict")
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()
    print("all answers are those of FittedNetwork.predict")


if __name__ == "__main__":
    main()
