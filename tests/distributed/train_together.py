"""A program for any number of processes: a training on all their devices, and how it goes on.

    train_together.py FOLDER EPOCHS WAY [--resume]

WAY is "trainer" (every process reads whole batches), "sampler" (each its own samples, by a
``DistributedSampler``), or a loop of the program's own with ``DistributedDataParallel``, "eager" or
"compiled", or the same on the CPU without devices, "host".
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

import chainrule
from chainrule import distributed as dist
from chainrule import nn, optim
from chainrule.data import DataLoader, TensorDataset
from chainrule.nn.functional import cross_entropy
from chainrule.tensor import Tensor
from chainrule.train import Trainer
from chainrule.utils.data import DistributedSampler

COUNT, BATCH = 48, 12


def network(dropout: float) -> nn.Sequential:
    """With batch normalization, which is that of all samples of a batch."""
    chainrule.manual_seed(dist.get_rank())  # the network of process 0 counts
    return nn.Sequential(
        nn.Linear(6, 8, bias=False),
        nn.BatchNorm1d(8),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(8, 3),
    )


def samples() -> tuple[Tensor, Tensor]:
    g = chainrule.Generator().manual_seed(1)
    return chainrule.randn(COUNT, 6, generator=g), chainrule.randint(0, 3, (COUNT,), generator=g)


def by_trainer(folder: Path, epochs: int, resume: bool, way: str) -> list[float]:
    alone = dist.get_world_size() == 1
    # A mask of dropout belongs to a place in the batch: with a sampler samples come in another.
    net = network(0.0 if way == "sampler" else 0.3)
    x, y = samples()
    data = (x, y)
    loader = None
    if way == "sampler":
        shares = TensorDataset(x, y)
        sampler = DistributedSampler(shares, seed=4)
        loader = DataLoader(shares, BATCH // dist.get_world_size(), sampler=sampler)
    trainer = Trainer(
        net,
        "cross_entropy",
        lambda p: optim.Adam(p, lr=1e-2),
        progress=False,
        seed=3,
        device="xla" if alone else None,
        devices=None if alone else "xla",
    )
    file = folder / "kept.safetensors"
    chainrule.manual_seed(7)
    options = {"epochs": epochs, "batch_size": BATCH, "resume": file if resume else None}
    trainer.fit(loader or data, None if loader else data, **options)
    assert trainer.history.ran.startswith("compiled"), trainer.history.ran
    os.chdir(folder / str(dist.get_rank()))
    trainer.save_checkpoint("kept.safetensors")
    assert Path("kept.safetensors").exists() == dist.is_writer()
    if dist.is_writer():
        Path("kept.safetensors").replace(file)
    return [*trainer.history["loss"], *([] if loader else trainer.history["val_loss"])]


def by_hand(epochs: int, way: str) -> list[float]:
    """As PyTorch's programs do it: shares are moved to the device."""
    place = "cpu" if way == "host" else "xla"
    net: nn.Module = network(0.3).to(place)
    if place != "cpu":
        net = nn.parallel.DistributedDataParallel(net)
    other = network(0.3).to("xla")  # no share of a batch: its shape stays
    assert other[0].weight.shape == (8, 6)
    optimizer = optim.Adam(net.parameters(), lr=1e-2)
    x, y = samples()
    n, rank = dist.get_world_size(), dist.get_rank()

    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    run = chainrule.compile(step) if way == "compiled" else step
    chainrule.manual_seed(7)
    found = []
    for i in range(0, epochs * BATCH, BATCH):
        share = BATCH // n
        mine = slice(i % COUNT + rank * share, i % COUNT + (rank + 1) * share)
        found.append(float(run(x[mine].to(place), y[mine].to(place))))
    return found


def check_errors() -> None:
    """Once more than one process is there."""
    with pytest.raises(RuntimeError, match=r"2 processes have 2 devices together.*devices='xla'"):
        Trainer(network(0.0), "mse", devices=["xla:0"])
    with pytest.raises(RuntimeError, match="every device has to be in it"):
        dist.init_device_mesh("xla", (1,))
    mesh = dist.init_device_mesh("xla", (2,))
    with pytest.raises(ValueError, match="a dimension of 3 cannot be cut into 2 equal parts"):
        dist.distribute_tensor(chainrule.ones(3), mesh, dist.Shard(0))
    whole = dist.distribute_tensor(chainrule.arange(4.0), mesh, dist.Shard(0))
    assert whole.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert whole.array.raw.addressable_shards[0].data.shape == (2,)


def main(folder: Path, epochs: int, way: str, resume: bool) -> None:
    dist.init_process_group()
    (folder / str(dist.get_rank())).mkdir(exist_ok=True)
    if dist.get_world_size() > 1:
        check_errors()
    if way in ("eager", "compiled", "host"):
        losses = by_hand(epochs, way)
    else:
        losses = by_trainer(folder, epochs, resume, way)
    everybody: list[list[float]] = [[]] * dist.get_world_size()
    dist.all_gather_object(everybody, losses)
    assert everybody == everybody[:1] * len(everybody)
    if dist.is_writer():
        print(json.dumps(losses))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], "--resume" in sys.argv)
