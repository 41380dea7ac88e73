"""Mixed load: processes with threads that save, load, fit, predict and read the same files.

Nothing may fail, whoever reads finds one whole version, memory and open files do not grow, and no
litter is left.
"""

from __future__ import annotations

import os
import random
import resource
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import chainrule
from chainrule import data, files, nn, optim, train
from reliability.children import forked, status_of
from reliability.runner import Result

__all__ = ["NAME", "PROCESSES", "RULE", "THREADS", "run_load"]

PROCESSES, THREADS, PLACES = 3, 2, 3
GROWTH = 64 << 20  # bytes a process may be larger at the end than after its first fifth
NAME = "mixed load"
RULE = "no failure, only whole versions, no growth of memory or open files, no litter"


class Work:
    """What a thread does, on files that all share."""

    def __init__(self, home: Path, r: random.Random):
        self.home, self.r = home, r
        self.done = 0

    def step(self) -> None:
        """One of the actions, by chance."""
        act: Callable[[], None] = self.r.choice(
            (
                self.save_file,
                self.load_file,
                self.load_file,
                self.save_folder,
                self.load_folder,
                self.load_folder,
                self.write_table,
                self.read_table,
                self.read_table,
                self.fit,
                self.predict,
                self.predict,
                self.train,
            )
        )
        act()
        self.done += 1

    def _place(self, kind: str) -> Path:
        return self.home / f"{kind}-{self.r.randrange(PLACES)}"

    def _save(self, path: Path, folder: bool) -> None:
        number = self.r.randrange(1000)
        value = {"number": number, "x": chainrule.full((64, 64), float(number)), "net": self._net()}
        chainrule.save(value, path, folder=folder)

    def _load(self, path: Path) -> None:
        if not path.exists():
            return
        value = chainrule.load(path)
        if not bool((value["x"] == value["number"]).all()):
            raise RuntimeError(f"{path} holds a mixture: {value['number']} and {value['x']}")

    def _net(self) -> nn.Module:
        return nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 2))

    def save_file(self) -> None:
        """One file."""
        self._save(self._place("file"), False)

    def load_file(self) -> None:
        """One file."""
        self._load(self._place("file"))

    def save_folder(self) -> None:
        """A folder."""
        self._save(self._place("folder"), True)

    def load_folder(self) -> None:
        """A folder."""
        path = self._place("folder")
        if (path / "model.json").exists():
            self._load(path)

    def write_table(self) -> None:
        """A table of which every row says how many there are."""
        n = self.r.randrange(20, 200)
        rows = [f"{i},{i % 4},{'up' if i % 3 else 'down'},{n}" for i in range(n)]
        text = "a,b,target,rows\n" + "\n".join(rows) + "\n"
        files.write_atomically(self._place("table").with_suffix(".csv"), text.encode())

    def read_table(self) -> None:
        """A table, which is whole."""
        path = self._place("table").with_suffix(".csv")
        if path.exists():
            table = data.read_table(path)
            if set(table["rows"].values) != {float(len(table))}:
                raise RuntimeError(f"{path} holds a mixture of tables")

    def fit(self) -> None:
        """A network for a table, saved into a folder."""
        path = self._place("table").with_suffix(".csv")
        if path.exists():
            table = data.read_table(path).without("rows")
            settings = train.Settings(epochs=1, hidden=(4,), seed=self.r.randrange(5))
            train.fit_table(table, "target", "auto", settings).save(self._place("network"))

    def predict(self) -> None:
        """What a network that somebody fitted says."""
        path = self._place("network")
        if (path / "model.json").exists():
            network = train.FittedNetwork.load(path)
            table = data.Table.from_dict({"a": [1.0, 2.0], "b": [0.0, 3.0]})
            if not set(network.predict(table)) <= {"up", "down"}:
                raise RuntimeError(f"{path} predicts what is no class")

    def train(self) -> None:
        """A training with checkpoints, which all write to one file."""
        net = self._net()
        x, y = chainrule.randn(16, 8), chainrule.tensor([0, 1] * 8)
        path = self._place("checkpoint")
        trainer = train.Trainer(
            net,
            "cross_entropy",
            optim.SGD(net.parameters(), 0.1),
            callbacks=[train.Checkpoint(path)],
            progress=False,
        )
        trainer.fit((x, y), epochs=2, batch_size=8)


def run_load(minutes: float, seed: int) -> Result:
    """Lets several processes work for some minutes; a step is a case."""
    result, began = Result(NAME), time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="chainrule-load-") as name:
        home, told = Path(name) / "home", Path(name) / "told"
        home.mkdir()
        told.mkdir()
        children = [
            forked(partial(_process, n, home, told, 60 * minutes, seed), 60 * minutes + 120)
            for n in range(PROCESSES)
        ]
        for number, child in enumerate(children):
            ended = status_of(child)
            if ended != 0:
                result.note(f"process {number} ended with {ended}")
            result.tried += _told(told / f"{number}", result)
        for path in sorted(home.rglob(".*")):
            result.note(f"litter: {path.relative_to(home)}")
    result.seconds = time.perf_counter() - began
    return result


def _told(path: Path, result: Result) -> int:
    """The number of steps that a process tells; its failures go into the result."""
    count, *failures = path.read_text().splitlines() if path.exists() else ["0"]
    for failure in failures:
        result.note(failure)
    return int(count)


def _process(number: int, home: Path, told: Path, seconds: float, seed: int) -> None:
    """The work of one process: threads, and a look at memory and open files."""
    chainrule.set_num_threads(1)
    began = time.monotonic()
    failures: list[str] = []
    works = [Work(home, random.Random(f"{seed}/{number}/{n}")) for n in range(THREADS)]

    def run(work: Work) -> None:
        while time.monotonic() < began + seconds:
            try:
                work.step()
            except Exception as error:  # noqa: BLE001 - whatever it is, it is what is looked for
                failures.append(f"{type(error).__name__}: {error}".replace("\n", " "))

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    time.sleep(seconds / 5)
    size, open_files = _size(), len(os.listdir("/proc/self/fd"))
    for thread in threads:
        thread.join()
    if _size() > size + GROWTH:
        failures.append(f"memory grew from {size >> 20} to {_size() >> 20} MiB")
    if len(os.listdir("/proc/self/fd")) > open_files + 8 * THREADS:
        failures.append(f"{open_files} open files became {len(os.listdir('/proc/self/fd'))}")
    lines = [str(sum(work.done for work in works)), *failures]
    (told / f"{number}").write_text("\n".join(lines))


def _size() -> int:
    """The memory that this process holds, in bytes."""
    resident = Path("/proc/self/statm").read_text().split()[1]
    return int(resident) * resource.getpagesize()
