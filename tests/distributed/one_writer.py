"""A program for any number of processes: a training that is saved, and goes on (``--resume``)."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest

import chainrule
from chainrule import distributed as dist
from chainrule import nn, optim
from chainrule.backend import processes
from chainrule.train import Trainer
from chainrule.train.callbacks import Checkpoint


def full_disk() -> None:
    raise OSError(errno.ENOSPC, "no room", Path("somewhere"))


def main(folder: Path, epochs: int, resume: bool) -> None:
    dist.init_process_group()
    rank = dist.get_rank()
    assert processes.agreed(["what", rank, None]) == ["what", 0, None]
    with pytest.raises(OSError, match="no room: .*'somewhere'") as error:
        processes.once(full_disk)
    assert error.value.errno == errno.ENOSPC

    # Each process has a place of its own, and writes if it is its turn.
    (folder / str(rank)).mkdir(exist_ok=True)
    os.chdir(folder / str(rank))
    chainrule.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.3), nn.Linear(4, 1))
    x = chainrule.randn(20, 3)
    trainer = Trainer(
        net,
        nn.MSELoss(),
        optim.Adam(net.parameters()),
        callbacks=[Checkpoint("kept.safetensors", seconds=1e-9 * (1 + rank))],
    )
    kept = folder / "0" / "kept.safetensors" if resume else None
    trainer.fit((x, x.sum(1, keepdim=True)), epochs=epochs, resume=kept)
    assert Path("kept.safetensors").exists() == (rank == 0)
    losses = [None] * dist.get_world_size()
    dist.all_gather_object(losses, trainer.history["loss"])
    assert losses == losses[:1] * len(losses)
    if dist.is_writer():
        print(losses[0])


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), "--resume" in sys.argv)
