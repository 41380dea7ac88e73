"""All that a run depends on, as a dictionary to save, and back into a trainer."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from chainrule.ops.creation.from_data import as_tensor
from chainrule.random import get_rng_state, set_rng_state
from chainrule.train.history import History
from chainrule.train.penalties import learned

if TYPE_CHECKING:
    from chainrule.train.trainer import Trainer

__all__ = ["restore", "state_of"]


def state_of(trainer: Trainer) -> dict[str, Any]:
    """Everything from which a run goes on bit for bit."""
    loader, schedule, generator = trainer._loader, trainer.schedule, trainer.generator
    return {
        "epoch": trainer.epoch,
        "model": dict(trainer.model.state_dict()),
        "optimizer": trainer.optimizer.state_dict(),
        "schedule": None if schedule is None else schedule.state_dict(),
        "random": as_tensor(get_rng_state()),
        "generator": None if generator is None else generator.get_state(),
        "loader": loader.state_dict() if hasattr(loader, "state_dict") else None,
        "history": trainer.history.rows,
        "penalties": {k: dict(p.state_dict()) for k, p in learned(trainer.penalties).items()},
        "best": trainer._best,
        "stop": trainer._stop,
        "callbacks": [c.state_dict() for c in trainer._running],
    }


def restore(trainer: Trainer, kept: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Puts a state back into a trainer of the same parts; ``path`` is for messages."""
    _check(trainer, kept, path)
    trainer.model.load_state_dict(kept["model"])
    for name, module in learned(trainer.penalties).items():
        module.load_state_dict(kept["penalties"][name])
    trainer.optimizer.load_state_dict(kept["optimizer"])
    if trainer.schedule is not None:
        trainer.schedule.load_state_dict(kept["schedule"])
    for callback, state in zip(trainer._running, kept["callbacks"], strict=True):
        callback.load_state_dict(state)
    trainer.history = History(kept["history"])
    trainer.epoch, trainer._best = kept["epoch"], kept["best"]
    trainer._stop = kept.get("stop", "")
    if kept["loader"] is not None and hasattr(trainer._loader, "load_state_dict"):
        trainer._loader.load_state_dict(kept["loader"])
    if trainer.generator is not None and kept["generator"] is not None:
        trainer.generator.set_state(kept["generator"])
    set_rng_state(kept["random"])


def _check(trainer: Trainer, kept: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Raises ValueError where the checkpoint is of another kind of run."""
    missing = {"model", "optimizer", "epoch", "random"} - set(kept)
    if missing:
        raise ValueError(f"fit: {path} is not a checkpoint of a Trainer: it lacks {missing}")
    if len(kept["callbacks"]) != len(trainer._running):
        raise ValueError(
            f"fit: the checkpoint {path} was made with {len(kept['callbacks'])} callbacks, "
            f"this trainer has {len(trainer._running)}; resume with the same ones"
        )
    if (kept["schedule"] is None) != (trainer.schedule is None):
        raise ValueError(f"fit: the checkpoint {path} and this trainer differ in the schedule")
    if set(kept.get("penalties", ())) != set(learned(trainer.penalties)):
        raise ValueError(f"fit: the checkpoint {path} and this trainer differ in the penalties")
