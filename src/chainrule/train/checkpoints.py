"""All that a run depends on, as a dictionary to save, and back into a trainer."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from chainrule.ops.creation.from_data import as_tensor
from chainrule.random import get_rng_state, set_rng_state
from chainrule.tensor import Tensor
from chainrule.train.history import History
from chainrule.train.penalties import learned

if TYPE_CHECKING:
    from chainrule.train.trainer import Trainer

__all__ = ["restore", "state_of"]

NEEDED = {"model", "optimizer", "epoch", "random"}


def state_of(trainer: Trainer) -> dict[str, Any]:
    """Everything from which a run goes on bit for bit, on the CPU.

    Of several processes all call this: each has a part of what lies on their devices.
    """
    loader, schedule, generator = trainer._loader, trainer.schedule, trainer.generator
    return _on_host(
        {
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
    )


def _on_host(value: Any) -> Any:
    """The same with all tensors on the CPU."""
    if isinstance(value, Tensor):
        return value if value.is_cpu else value.detach().cpu()
    if isinstance(value, Mapping):
        return {k: _on_host(v) for k, v in value.items()}
    return [_on_host(v) for v in value] if value.__class__ is list else value


def restore(trainer: Trainer, kept: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Puts a state back into a trainer of the same parts, all of it or none; ``path`` is for
    messages."""
    before = copy.deepcopy(state_of(trainer))
    try:
        _check(trainer, kept, path)
        _put(trainer, kept)
    except Exception as error:
        _put(trainer, before)
        if isinstance(error, ValueError) and str(path) in str(error):
            raise
        raise ValueError(
            f"fit: the checkpoint {path} is damaged, or of another model, optimizer or schedule; "
            f"the trainer was not changed: {error}"
        ) from error


def _put(trainer: Trainer, kept: Mapping[str, Any]) -> None:
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
    missing = NEEDED - set(kept if isinstance(kept, Mapping) else ())
    if missing:
        raise ValueError(
            f"fit: {path} is not a checkpoint of a Trainer: it lacks {', '.join(sorted(missing))}"
        )
    if len(kept["callbacks"]) != len(trainer._running):
        raise ValueError(
            f"fit: the checkpoint {path} was made with {len(kept['callbacks'])} callbacks, "
            f"this trainer has {len(trainer._running)}; resume with the same ones"
        )
    if (kept["schedule"] is None) != (trainer.schedule is None):
        raise ValueError(f"fit: the checkpoint {path} and this trainer differ in the schedule")
    if set(kept.get("penalties", ())) != set(learned(trainer.penalties)):
        raise ValueError(f"fit: the checkpoint {path} and this trainer differ in the penalties")
    epoch, best = kept["epoch"], kept["best"]
    if type(epoch) is not int or epoch < 0 or not (best is None or _fits(trainer, best)):
        raise ValueError(f"fit: the checkpoint {path} is damaged: its epoch or best epoch is wrong")
    if not isinstance(kept.get("stop", ""), str):
        raise ValueError(f"fit: the checkpoint {path} is damaged: why it stopped is no text")


def _fits(trainer: Trainer, best: Mapping[str, Any]) -> bool:
    """Whether this is a best epoch of this model, to which a run may go back at its end."""
    own = trainer.model.state_dict()
    if not isinstance(best["value"], float) or best["model"].keys() != own.keys():
        return False
    return all([_alike(best["model"][key], value) for key, value in own.items()])


def _alike(kept: Any, own: Any) -> bool:
    """Whether a kept value can take the place of the present one."""
    if isinstance(own, Tensor):
        return isinstance(kept, Tensor) and kept.shape == own.shape
    return type(kept) is type(own)
