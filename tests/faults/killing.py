"""Ends ``chainrule fit`` before its n-th operation on files, for every n, from the saving on.

``python killing.py FOLDER ARGUMENTS...`` trains once. For each n a fork of that process goes on and
is ended; a look at the folder follows, and it is put back as it was. Printed are the seeds found.
"""

from __future__ import annotations

import builtins
import io
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from chainrule.cli import main
from chainrule.train import FittedNetwork

CALLS = ("open", "replace", "rename", "fsync", "unlink", "chmod", "mkdir", "close", "fdopen")
KILLED = 77


def die_before(number: int) -> None:
    """Ends this process before its n-th operation on files, as SIGKILL would."""
    left = number

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                os._exit(KILLED)
            return call(*args, **kwargs)

        return wrapper

    os.fsync = lambda handle: None  # a kill is no loss of power: what was written is there
    for name in CALLS:
        setattr(os, name, counted(getattr(os, name)))
    builtins.open = io.open = counted(io.open)  # type: ignore[assignment]


def seed_of(folder: Path) -> int:
    """The seed of the run in a folder, after a look that all is of one run and nothing is left."""
    network = FittedNetwork.load(folder)
    seed = int(network.about["settings"]["seed"])
    page = (folder / "report.html").read_text()
    assert f"--seed {seed}" in page, f"the model is of seed {seed}, the report of another run"
    assert (folder / "history.csv").read_text() == network.history.to_csv()
    left = [p.name for p in folder.iterdir() if not p.name.startswith("weights-")]
    assert sorted(left) == ["history.csv", "model.json", "notes.txt", "report.html"], left
    assert len(list(folder.glob("weights-*"))) == 1
    assert (folder / "notes.txt").read_text() == "mine"
    return seed


class ForkedSave:
    """In place of ``FittedNetwork.save``: one child after the other saves and goes on from there.

    The parent looks at the folder after each; it leaves by SystemExit when a child came through.
    """

    def __init__(self, out: Path):
        self.save, self.out, self.former = FittedNetwork.save, out, out.with_name("former")
        self.seeds: list[int] = []

    def __call__(self, network: FittedNetwork, path: Path, report: str) -> None:
        if self.out.exists():
            shutil.copytree(self.out, self.former)
        status = KILLED
        while status == KILLED:
            child = os.fork()
            if child == 0:
                die_before(len(self.seeds))
                return self.save(network, path, report)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            assert status in (0, KILLED), status
            self.look_and_put_back()
        print(*self.seeds)
        raise SystemExit(0)

    def look_and_put_back(self) -> None:
        whole = (self.out / "model.json").exists()
        if whole:
            (self.out / "notes.txt").write_text("mine")
        self.seeds.append(seed_of(self.out) if whole else 0)
        shutil.rmtree(self.out, ignore_errors=True)
        if self.former.exists():
            shutil.copytree(self.former, self.out)


if __name__ == "__main__":
    own = os.getpid()
    out, *arguments = sys.argv[1:]
    forked = ForkedSave(Path(out))
    FittedNetwork.save = lambda *given: forked(*given)  # type: ignore[method-assign]
    status = main([*arguments, "--out", out, "--seed", "2"])
    os._exit(status if os.getpid() != own else 1)
