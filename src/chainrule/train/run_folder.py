"""The folder of a fit while it runs: room for its results, and checkpoints to go on from."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chainrule import backend, nn
from chainrule.backend import K, processes
from chainrule.files import check_room, load, save
from chainrule.files.atomic import remove_begun
from chainrule.tensor import Tensor
from chainrule.train.callbacks import Checkpoint
from chainrule.train.checkpoints import state_of

if TYPE_CHECKING:
    from chainrule.train.trainer import Trainer

__all__ = ["RunFolder", "digest_of", "facts_of"]

PATTERN = "checkpoint-*.safetensors"
PAGES = 2**19  # bytes for the report and the description, and for each epoch in them:
EPOCH = 2**10
EPOCHS = 200  # where their number is chosen, at most so many are likely


class RunFolder:
    """Where a fit keeps what it needs to go on after a kill.

    The checkpoint of a run is named after its data and settings, so that runs of one folder do not
    take each other's. It is written when an epoch ends, if enough time has passed; whoever has
    saved the results calls :meth:`remove_checkpoint`. Several processes need a folder that all of
    them see; the one of rank 0 writes.

    Args:
        path: the folder; made when the first checkpoint is written.
        seconds: the time between checkpoints; infinity for none.
        resume: whether to go on from the checkpoint of the same run.
        notice: called with a line where something goes wrong that does not end the training.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        seconds: float = 30.0,
        resume: bool = False,
        notice: Callable[[str], object] = print,
    ):
        if not seconds >= 0:
            raise ValueError(f"the seconds between checkpoints must not be negative, got {seconds}")
        self.path, self.seconds, self.resume, self.notice = Path(path), seconds, resume, notice
        self.checkpoint: Path | None = None
        if resume and not self._others():  # before anything is read
            raise ValueError(
                f"there is nothing to resume: {self.path} holds no checkpoint (one is written "
                f"every {seconds:g} seconds, and removed when the fit is complete)"
            )

    def before(self, model: nn.Module, run: Mapping[str, Any]) -> tuple[RunCheckpoint, Path | None]:
        """The callback that writes checkpoints of a run, and the one to resume from, if asked for.

        Raises OSError where there is no room for the results, ValueError where nothing can be
        resumed.
        """
        weights = sum([t.nbytes for t in model.state_dict().values() if isinstance(t, Tensor)])
        size = weights + PAGES + EPOCH * (run["settings"]["epochs"] or EPOCHS)
        processes.once(lambda: check_room(self.path, size))
        name = hashlib.sha256(json.dumps(run, sort_keys=True).encode()).hexdigest()[:12]
        self.checkpoint = self.path / PATTERN.replace("*", name)
        if self.resume and not self.checkpoint.exists():
            raise ValueError(self._why_not(run))
        if not self.resume and processes.is_writer():
            self._tell_of_others()
        callback = RunCheckpoint(self.checkpoint, run, self.seconds, self.notice)
        return callback, self.checkpoint if self.resume else None

    def remove_checkpoint(self) -> None:
        """Removes the checkpoint of this run, whose results are saved."""
        if self.checkpoint is not None and processes.is_writer():
            self.checkpoint.unlink(missing_ok=True)
            remove_begun(self.checkpoint)  # of a run that was killed while it wrote one

    def _others(self) -> list[Path]:
        """The checkpoints that are there, the newest first."""
        return sorted(self.path.glob(PATTERN), key=lambda p: p.stat().st_mtime, reverse=True)

    def _why_not(self, run: Mapping[str, Any]) -> str:
        other = self._others()[0]
        kept = load(other)
        if not isinstance(kept, dict) or not isinstance(kept.get("run"), dict):
            return f"{other} is not a checkpoint of a fit"
        return f"{other} is of another fit: {'; '.join(_differences(kept['run'], run))}"

    def _tell_of_others(self) -> None:
        for other in self._others()[:1]:
            self.notice(
                f"{other} is left of a fit that was not completed; --resume goes on from it, with "
                "the same data and options"
            )


class RunCheckpoint(Checkpoint):
    """The checkpoint of a fit, with what tells its run from others."""

    def __init__(
        self,
        path: Path,
        run: Mapping[str, Any],
        seconds: float,
        notice: Callable[[str], object],
    ):
        super().__init__(path, seconds=seconds)
        self.run, self.notice, self.told = run, notice, False
        self.more: dict[str, Any] = {}  # what else is kept, of a run that trains several networks

    def write(self, trainer: Trainer) -> None:
        try:
            state = {**state_of(trainer), **self.more, "run": self.run}
            processes.once(lambda: save(state, self.path, folder=False))
        except OSError as error:  # the training itself can go on
            if not self.told and processes.is_writer():
                self.notice(f"no checkpoint could be written, training goes on: {error}")
            self.told = True


def facts_of(
    model: nn.Module, settings: Mapping[str, Any], data: str, **more: Any
) -> dict[str, Any]:
    """What a run depends on: two with the same facts give the same bits."""
    version = "unknown"
    with contextlib.suppress(metadata.PackageNotFoundError):
        version = metadata.version("chainrule")
    return {
        "settings": dict(settings),
        **more,
        "network": str(model),
        "data": data,
        "kernels": backend.current(),
        "chainrule": version,
    }


def digest_of(tensors: list[Tensor]) -> str:
    """A checksum of the values of tensors."""
    digest = hashlib.sha256()
    for t in tensors:
        digest.update(f"{t.dtype} {tuple(t.shape)} ".encode())
        digest.update(K.bytes_of(K.to_contiguous(t.array)))
    return digest.hexdigest()[:16]


def _differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What two runs differ in: settings first, of which all else may be a consequence."""
    before, after = then.get("settings"), now["settings"]
    before = before if isinstance(before, dict) else {}
    found = [
        f"{name} was {before.get(name)!r}, is {value!r}"
        for name, value in after.items()
        if before.get(name) != value
    ]
    if not found:
        found = [
            f"{name} was {then.get(name)!r:.60}, is {value!r:.60}"
            for name, value in now.items()
            if name not in ("settings", "network", "data") and then.get(name) != value
        ]
    return found or ["its data are others"]
