"""Processes that are killed at random moments, and what is found after that.

A child is killed (SIGKILL) some time after it began: of a saver one whole version has to be there,
a training that is resumed has to end with the same bits as one that was not killed, and after the
next save nothing that a killed one began may be left.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import chainrule
from chainrule import models, nn, optim, train
from chainrule.cli import main
from reliability.cases import fingerprint
from reliability.children import forked, status_of
from reliability.runner import IN_MEMORY, Result

__all__ = ["KILLS", "run_kills"]


class Killed:
    """Something that is done over and over, and looked at after each kill."""

    name = ""
    rule = ""
    longest = 0.05  # seconds until the kill

    def __init__(self, folder: Path, r: random.Random):
        self.folder, self.r = folder, r

    def act(self) -> None:
        """What is killed."""
        raise NotImplementedError

    def look(self) -> str:
        """What is wrong after a kill ("" if nothing); leaves all ready for the next."""
        raise NotImplementedError


# --- savers ---------------------------------------------------------------------------------------


class SavedFile(Killed):
    name = "kills while a file is saved"
    rule = "one whole version, not an older one than before; no litter after the next save"
    as_folder = False

    def __init__(self, folder: Path, r: random.Random):
        super().__init__(folder, r)
        self.path = folder / "home" / "saved"
        self._save(0)
        self.last = 0

    def _save(self, number: int) -> None:
        value = {"number": number, "x": chainrule.full((300, 300), float(number)), "net": NET}
        chainrule.save(value, self.path, folder=self.as_folder)

    def act(self) -> None:
        """Saves one version after the other."""
        number = self.last
        while True:
            number += 1
            self._save(number)

    def look(self) -> str:
        """Loads, saves the next version, looks for what else is there."""
        value = chainrule.load(self.path)
        number = value["number"]
        if number < self.last or not bool((value["x"] == number).all()):
            return f"after version {self.last} there is {number}, with {value['x']}"
        self.last = number + 1
        self._save(self.last)
        return _litter(self.path.parent, {"saved"}) or (
            _litter(self.path, {"model.json"}, weights=1) if self.as_folder else ""
        )


NET = nn.Linear(30, 30)


class SavedFolder(SavedFile):
    name = "kills while a folder is saved"
    as_folder = True


def _litter(folder: Path, known: set[str], weights: int = 0) -> str:
    """What is in a folder and does not belong there."""
    names = {p.name for p in folder.iterdir()}
    ours = {n for n in names if n.startswith("weights-")} if weights else set()
    if names - ours != known or len(ours) != weights:
        return f"{folder} holds {sorted(names)}"
    return ""


# --- trainings ------------------------------------------------------------------------------------


class TrainedOn(Killed):
    name = "kills of a Trainer with checkpoints"
    rule = "resumed until its end, it has the same bits as one that was not killed; no litter"
    longest = 0.12

    def __init__(self, folder: Path, r: random.Random):
        super().__init__(folder, r)
        self.checkpoint, self.end = folder / "home" / "checkpoint", folder / "home" / "end"
        self._run()
        self.expected = self._ended()

    def _run(self, resume: bool = False) -> None:
        chainrule.manual_seed(7)
        g = chainrule.Generator().manual_seed(1)
        x = chainrule.randn(60, 4, generator=g)
        y = (x @ chainrule.randn(4, 3, generator=g)).argmax(1)
        model = models.MLP(4, [16, 8], 3, dropout=0.3, norm="batch")
        optimizer = optim.Adam(model.parameters(), lr=0.01)
        trainer = train.Trainer(
            model,
            "cross_entropy",
            optimizer,
            schedule=optim.lr_scheduler.CosineAnnealingLR(optimizer, 12),
            callbacks=[train.Checkpoint(self.checkpoint)],
            # The lock of tqdm's bars is shared between forks: one that is killed may hold it.
            progress=False,
        )
        trainer.fit(
            (x[:40], y[:40]),
            (x[40:], y[40:]),
            epochs=12,
            batch_size=8,
            early_stopping=50,
            resume=self.checkpoint if resume and self.checkpoint.exists() else None,
        )
        history = [{k: v for k, v in row.items() if k != "seconds"} for row in trainer.history]
        kept = {"model": dict(model.state_dict()), "history": history, "next": chainrule.rand(3)}
        chainrule.save({**kept, "optimizer": optimizer.state_dict()}, self.end)

    def _ended(self) -> str:
        found = fingerprint(chainrule.load(self.end))
        self.end.unlink()
        self.checkpoint.unlink()
        return found

    def act(self) -> None:
        """Goes on with what the last one left, to the end."""
        self._run(resume=True)

    def look(self) -> str:
        """Every so often lets it come to its end, and compares."""
        if not self.end.exists():
            if self.checkpoint.exists():
                chainrule.load(self.checkpoint)
            if self.r.random() < 0.7:
                return ""
            if status_of(forked(self.act)) != 0:
                return "it could not be resumed"
        found = _litter(self.end.parent, {"end", "checkpoint"})
        return found or ("" if self._ended() == self.expected else "other bits than without kills")


class FittedOn(Killed):
    name = "kills of chainrule fit"
    rule = "the former network or the new one, with its own history and report; no litter"
    longest = 0.4
    more: tuple[str, ...] = ()

    def __init__(self, folder: Path, r: random.Random):
        super().__init__(folder, r)
        self.out, self.table = folder / "home" / "out", folder / "table.csv"
        rows = [f"{i},{i % 5},{'yes' if i * i % 7 > 2 else 'no'}" for i in range(60)]
        self.table.write_text("a,b,c\n" + "\n".join(rows) + "\n")
        self.seeds = (1, 2)
        self.networks = {}
        for seed in self.seeds:
            self._fit(seed)
            self.networks[str(seed)] = self._fingerprint()

    def _fit(self, seed: int) -> None:
        arguments = ["fit", str(self.table), "--out", str(self.out), "--seed", str(seed)]
        options = ["--hidden", "4", "--epochs", "3", "--json", *self.more]
        with contextlib.redirect_stdout(io.StringIO()):
            if main([*arguments, *options]) != 0:
                raise RuntimeError("chainrule fit failed")

    def _fingerprint(self) -> str:
        network = train.FittedNetwork.load(self.out)
        return fingerprint([network.model, network.inputs, network.target])

    def act(self) -> None:
        """Fits with the two seeds in turn."""
        for seed in self.seeds * 100:
            self._fit(seed)

    def look(self) -> str:
        """The network is one of the two, its report and history are of the same run."""
        network = train.FittedNetwork.load(self.out)
        seed = str(network.about["settings"]["seed"])
        if self._fingerprint() != self.networks[seed]:
            return f"the network of seed {seed} has other bits than without kills"
        if f"--seed {seed}" not in (self.out / "report.html").read_text():
            return f"the report is not of seed {seed}, as the network is"
        if (self.out / "history.csv").read_text() != network.history.to_csv():
            return "the history is of another run than the network"
        return _litter(self.out, {"history.csv", "model.json", "report.html"}, 1) or _litter(
            self.out.parent, {"out"}
        )


KILLS: tuple[type[Killed], ...] = (SavedFile, SavedFolder, TrainedOn, FittedOn)


def run_kills(kind: type[Killed], count: int, seed: int) -> Result:
    """Kills a child so many times, each at a random moment, and looks after each."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="chainrule-kills-", dir=IN_MEMORY) as name:
        Path(name, "home").mkdir()
        threads = chainrule.get_num_threads()
        chainrule.set_num_threads(1)
        r = random.Random(f"{kind.name}/{seed}")
        killed, result = kind(Path(name), r), Result(kind.name)
        try:
            while result.tried < count:
                child = forked(killed.act)
                time.sleep(r.random() * killed.longest)
                os.kill(child, signal.SIGKILL)
                ended = status_of(child)
                result.tried += ended == -signal.SIGKILL
                fault = "" if ended in (0, -signal.SIGKILL) else f"it ended with {ended}"
                fault = fault or _looked(killed)
                if fault:
                    result.note(f"kill {result.tried}: {fault}")
        finally:
            chainrule.set_num_threads(threads)
    result.seconds = time.perf_counter() - began
    return result


def _looked(killed: Any) -> str:
    try:
        return killed.look()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what is looked for
        return f"{type(error).__name__}: {error}"
