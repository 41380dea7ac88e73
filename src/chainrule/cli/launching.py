"""``chainrule launch``: a program in several processes, which end together."""

from __future__ import annotations

import argparse
import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from chainrule.cli.arguments import UserError

__all__ = ["HELP", "add_options", "launch"]

HELP = "run a program in several processes, which compute together and end together"
TO_END = 5.0  # seconds for a process to end after SIGTERM
TO_FINISH = 30.0  # seconds after Ctrl-C, in which a training saves what it has


class Failed(UserError):
    """A process failed, and with it all."""

    def __init__(self, text: str, status: int):
        super().__init__(text)
        self.status = status


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add = parser.add_argument
    add("--processes", type=int, required=True, metavar="N", help="how many on this machine")
    add("--nodes", type=int, default=1, metavar="M", help="how many machines run this command (1)")
    add("--node-rank", type=int, metavar="K", help="the number of this machine, from 0 on")
    add("--master-addr", metavar="A", help="the address of machine 0 (this one, if it is alone)")
    add("--master-port", type=int, metavar="P", help="a port of machine 0 (one that is free)")
    add(
        "--timeout",
        type=float,
        metavar="SECONDS",
        help="how long processes wait for each other at the start (300)",
    )
    add("-m", "--module", action="store_true", help="SCRIPT is a module, as in python -m")
    add("script", metavar="SCRIPT", help="the program, in Python")
    add("args", nargs=argparse.REMAINDER, metavar="...", help="its arguments")


def launch(options: argparse.Namespace) -> dict[str, Any]:
    """Starts the processes, and waits for them."""
    address, port = _check(options)
    start = time.monotonic()
    run = _Run(lambda i: _Process(*_started(options, i, address, port)), options.processes)
    run.wait()
    seconds = time.monotonic() - start
    return {"processes": options.processes, "port": port, "seconds": round(seconds, 3)}


# --- what was asked for ---------------------------------------------------------------------------


def _check(options: argparse.Namespace) -> tuple[str, int]:
    """Address and port of process 0; an error for what cannot be started."""
    if options.processes < 1:
        raise UserError(f"--processes {options.processes}: there is at least one")
    if options.timeout is not None and not options.timeout > 0:
        raise UserError(f"--timeout {options.timeout}: expected seconds, more than 0")
    if not options.module and not Path(options.script).is_file():
        raise UserError(
            f"there is no file {options.script!r}; name a program in Python, or -m MODULE"
        )
    address, port = options.master_addr, options.master_port
    if options.nodes < 1:
        raise UserError(f"--nodes {options.nodes}: there is at least one")
    if options.nodes > 1:
        needed = {"--node-rank": options.node_rank, "--master-addr": address, "--master-port": port}
        missing = [name for name, value in needed.items() if value is None]
        if missing:
            raise UserError(
                f"--nodes {options.nodes} needs {', '.join(missing)}: the number of this machine, "
                "and an address and a port of machine 0 which all machines are told"
            )
    elif address is None:
        address = "127.0.0.1"
    node = options.node_rank or 0
    if not 0 <= node < options.nodes:
        raise UserError(
            f"--node-rank {node}: with --nodes {options.nodes} machines are 0 to "
            f"{options.nodes - 1}"
        )
    return address, _port(address, port, node)


def _port(address: str, port: int | None, node: int) -> int:
    """A port that nobody uses: the one that was asked for, or a free one."""
    from chainrule.backend.processes import free_port

    if port is not None and not 0 < port < 2**16:
        raise UserError(f"--master-port {port}: expected a number from 1 to 65535")
    if port is not None and node:
        return port
    try:
        return free_port(address, port or 0)
    except OSError as error:
        raise UserError(
            f"--master-port {port}: the port is taken ({error.strerror}); leave the option out "
            "for a free one, or name another"
            if port
            else f"--master-addr {address}: cannot listen there ({error})"
        ) from None


def _started(
    options: argparse.Namespace, local: int, address: str, port: int
) -> tuple[int, subprocess.Popen[bytes]]:
    """One process, with torchrun's variables; its rank."""
    count = options.processes
    rank = (options.node_rank or 0) * count + local
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    given = {
        "RANK": rank,
        "WORLD_SIZE": options.nodes * count,
        "LOCAL_RANK": local,
        "LOCAL_WORLD_SIZE": count,
        "GROUP_RANK": options.node_rank or 0,
        "MASTER_ADDR": address,
        "MASTER_PORT": port,
        "TORCHELASTIC_RUN_ID": "chainrule",
        "CHAINRULE_LAUNCHER": os.getpid(),
    }
    if options.timeout is not None:
        given["CHAINRULE_START_TIMEOUT"] = options.timeout
    usual = {"PYTHONUNBUFFERED": 1, "OMP_NUM_THREADS": max(1, (cores or 1) // count)}
    env = {k: str(v) for k, v in usual.items()} | os.environ | {k: str(v) for k, v in given.items()}
    program = ["-m", options.script] if options.module else [options.script]
    return rank, subprocess.Popen(
        [sys.executable, *program, *options.args],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C comes to us, and we pass it on
    )


# --- while they run -------------------------------------------------------------------------------


class _Process:
    """A process, and what it prints."""

    def __init__(self, rank: int, popen: subprocess.Popen[bytes]):
        self.rank, self.popen = rank, popen
        self.last = ""  # line of its errors
        self.readers = [
            threading.Thread(target=self._pass_on, args=streams, daemon=True)
            for streams in ((popen.stdout, sys.stdout), (popen.stderr, sys.stderr))
        ]
        for reader in self.readers:
            reader.start()

    def _pass_on(self, source: IO[bytes], goal: IO[str]) -> None:
        """Lines with the rank before them."""
        with source:
            for line in source:
                text = line.decode(errors="replace").rstrip("\r\n")
                if goal is sys.stderr and text.strip():
                    self.last = text.strip()
                with contextlib.suppress(BrokenPipeError, ValueError), _printing:
                    goal.write(f"[{self.rank}] {text}\n")
                    goal.flush()

    def signal(self, number: int) -> None:
        """Sends a signal to the process and those that it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.popen.pid, number)

    def said(self) -> str:
        """How it ended, in words."""
        code = self.popen.returncode
        for reader in self.readers:
            reader.join(1)
        if code < 0:
            how = f"was ended by {signal.Signals(-code).name}"
        else:
            how = f"ended with exit status {code}"
        last = f": {self.last}" if self.last and code > 0 else ""
        return f"process {self.rank} (pid {self.popen.pid}) {how}{last}"


_printing = threading.Lock()


class _Run:
    """All processes of this machine: ``start(i)`` starts one."""

    def __init__(self, start: Callable[[int], _Process], count: int):
        self.start, self.count = start, count
        self.processes: list[_Process] = []
        self.events: queue.SimpleQueue[_Process | int] = queue.SimpleQueue()

    def _start_all(self) -> None:
        for i in range(self.count):
            p = self.start(i)
            self.processes.append(p)
            threading.Thread(target=self._wait_for, args=(p,), daemon=True).start()

    def _wait_for(self, process: _Process) -> None:
        process.popen.wait()
        self.events.put(process)

    def wait(self) -> None:
        """Starts them and waits until all have ended; the first that fails, or a signal, also one
        while they start, ends all."""
        with self._signals():
            try:
                self._start_all()
                for _ in self.processes:
                    event = self._next()
                    if isinstance(event, int):
                        self._interrupted(event)
                    elif event.popen.returncode:
                        self._failed(event)
            finally:
                self._end(signal.SIGKILL, 0)
                for p in self.processes:
                    for reader in p.readers:
                        reader.join(1)

    def _next(self, seconds: float | None = None) -> _Process | int:
        """The next process that ends, or a signal."""
        end = None if seconds is None else time.monotonic() + seconds
        while end is None or time.monotonic() < end:
            # A wait without an end would not be interrupted by signals on every system.
            with contextlib.suppress(queue.Empty):
                return self.events.get(timeout=0.2)
        raise TimeoutError

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Ctrl-C and SIGTERM come as events."""
        numbers = (signal.SIGINT, signal.SIGTERM)
        before = {n: signal.signal(n, lambda number, _: self.events.put(number)) for n in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _running(self) -> list[_Process]:
        return [p for p in self.processes if p.popen.returncode is None]

    def _end(self, number: int, seconds: float) -> bool:
        """Sends a signal to all, and waits; False if there was another Ctrl-C or SIGTERM."""
        for p in self._running():
            p.signal(number)
        end = time.monotonic() + seconds
        while self._running():
            try:
                event = self._next(max(0.0, end - time.monotonic()))
            except TimeoutError:
                return True
            if isinstance(event, int):
                return False
        return True

    def _failed(self, first: _Process) -> None:
        """Ends the others, and says which was the first and why."""
        others = self._running()
        if self._end(signal.SIGTERM, TO_END):
            self._end(signal.SIGKILL, 1)
        code = first.popen.returncode
        ended = f"; ended the other {len(others)}" if others else ""
        raise Failed(first.said() + ended, code if code > 0 else 128 - code)

    def _interrupted(self, number: int) -> None:
        """Passes the signal on; who does not end is ended, at once after a second Ctrl-C."""
        if self._end(number, TO_FINISH):
            self._end(signal.SIGTERM, TO_END)
        self._end(signal.SIGKILL, 1)
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise Failed("ended by SIGTERM", 128 + number)
