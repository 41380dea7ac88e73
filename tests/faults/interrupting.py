"""Sends real Ctrl-C to ``chainrule``: at each of the places named, one after the other.

Reads a list of cases (places, arguments, folder) as JSON. Each is run in a fork, in that folder; it
waits at each place, once, until the signal comes. Printed are exit statuses and outputs.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import chainrule.files.folder as model_folder
from chainrule import data, train
from chainrule.cli import main
from chainrule.train import EarlyStopping, Trainer

PLACES: dict[str, tuple[Any, str]] = {
    "reading": (data, "read_table"),
    "first batch": (Trainer, "_loss"),
    "epoch": (EarlyStopping, "on_epoch_end"),
    "report": (train, "html_report"),
    "saving": (model_folder, "write_atomically"),
    "published": (model_folder, "sync_folder"),
}


def wait_at(place: str, announce: Callable[[], object], skip: int = 0) -> None:
    """Makes a function wait for the signal, at its first call but ``skip``."""
    home, name = PLACES[place]
    function, calls = getattr(home, name), 0

    def waiting(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == skip + 1:
            announce()
            time.sleep(30)
        return function(*args, **kwargs)

    setattr(home, name, waiting)


def command(places: list[str], arguments: list[str], pipe: int, out: int) -> None:
    """The child: runs the command as the shell does."""
    os.dup2(out, 1)
    os.dup2(out, 2)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for place in places:
        wait_at(place, lambda: os.write(pipe, b"!"), skip=3 if place == "epoch" else 0)
    sys.argv = ["chainrule", *arguments]
    sys.exit(main())


def outcome(places: list[str], arguments: list[str], folder: str) -> tuple[int, str]:
    """The exit status of the command, and what it wrote."""
    reading, writing = os.pipe()
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            os.chdir(folder)
            command(places, arguments, writing, output.fileno())
        os.close(writing)
        while os.read(reading, 1):
            os.kill(child, signal.SIGINT)
        os.close(reading)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        output.seek(0)
        return status, output.read().decode()


if __name__ == "__main__":
    print(json.dumps([outcome(*case) for case in json.load(sys.stdin)]))
