"""What a search over networks keeps in the checkpoint of its run, and goes on from."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from chainrule.files import load
from chainrule.random import fork_rng
from chainrule.tensor import Tensor
from chainrule.train.automatic.calibration import HeldOut
from chainrule.train.automatic.ensemble import Pool, Recipe, make_members
from chainrule.train.automatic.together import Candidate
from chainrule.train.run_folder import RunCheckpoint
from chainrule.train.trainer import Trainer

__all__ = ["KeptSearch"]


@dataclass
class KeptSearch:
    """How far a search is, and where that is kept.

    The checkpoint holds the state of the trainer of the first network, as that of a run with one
    network does, and with it all other networks. What is trained in a sweep that is not finished is
    trained again.

    Args:
        checkpoint: writes it, if there is one.
        resume: the file of a run that was killed.
    """

    checkpoint: RunCheckpoint | None = None
    resume: Path | None = None
    sweeps: int = 0  # that are finished
    networks: int = 1  # that were trained
    seconds: float = 0.0

    def write(self, others: list[Candidate], first: Trainer) -> None:
        """Keeps the networks but the first, if it is time for a checkpoint."""
        if self.checkpoint is None:
            return
        networks = [
            {
                "recipe": asdict(c.recipe) | {"hidden": list(c.recipe.hidden)},
                "share": c.facts["share"],
                "output": c.seen.output,
                "model": dict(c.model.state_dict()),
            }
            for c in others
        ]
        told = {"sweeps": self.sweeps, "networks": self.networks, "seconds": self.seconds}
        self.checkpoint.more = {"search": {**told, "others": networks}}
        self.checkpoint.on_epoch_end(first)

    def read(self, pool: Pool, seen: HeldOut) -> list[Candidate]:
        """The networks but the first of the run that was killed; ``seen`` is of the first."""
        kept = {} if self.resume is None else load(self.resume)
        if "search" not in kept:
            return []
        try:
            told = kept["search"]
            self.sweeps, self.networks = _count(told["sweeps"]), _count(told["networks"])
            self.seconds = max(0.0, float(told["seconds"]))
            return [_candidate(pool, seen, one) for one in told["others"]]
        except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            raise ValueError(
                f"fit: the checkpoint {self.resume} is damaged: its networks cannot be used, "
                f"{error}"
            ) from error


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"a number is {value!r}")
    return value


def _candidate(pool: Pool, seen: HeldOut, told: dict[str, Any]) -> Candidate:
    recipe = Recipe(**{**told["recipe"], "hidden": tuple(told["recipe"]["hidden"])})
    output = told["output"]
    if not isinstance(output, Tensor) or output.shape != seen.output.shape:
        raise ValueError("the outputs of one do not fit")
    held = sum([t.numel() for t in told["model"].values()])
    if any([width < 1 or width > held for width in recipe.hidden]):
        raise ValueError(f"layers of {recipe.hidden} are not those of the weights")
    with fork_rng():
        model = make_members(pool, recipe)
    model.load_state_dict(told["model"])
    return Candidate.of(pool, recipe, model, float(told["share"]), seen._replace(output=output))
