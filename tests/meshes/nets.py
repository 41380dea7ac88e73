"""One training for all places: what it comes to on the CPU, and elsewhere."""

from __future__ import annotations

from collections.abc import Callable

import chainrule
from chainrule import distributed as dist
from chainrule import nn, optim
from chainrule.nn.functional import cross_entropy
from chainrule.tensor import Tensor

__all__ = ["PLACES", "images", "losses", "network", "place"]

Losses = list[float]
CLASSES = 4


def network() -> nn.Sequential:
    """Dropout and batch normalization, over channels and over features."""
    chainrule.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, bias=False),  # a bias before a normalization has no gradient but noise
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(4 * 16, 16, bias=False),
        nn.BatchNorm1d(16),
        nn.ReLU(),
        nn.Dropout(0.3),
        nn.Linear(16, CLASSES),
    )


def images(count: int) -> tuple[Tensor, Tensor]:
    """Images and classes."""
    g = chainrule.Generator().manual_seed(1)
    x = chainrule.randn(count, 1, 6, 6, generator=g)
    return x, chainrule.randint(0, CLASSES, (count,), generator=g)


def _on_four(net: nn.Module) -> nn.Module:
    return nn.parallel.DistributedDataParallel(net.to("xla"))


def _on_two_by_two(net: nn.Module) -> nn.Module:
    """Batches cut along the rows of a mesh, two layers along its columns."""
    mesh = dist.init_device_mesh("xla", (2, 2), mesh_dim_names=("data", "model"))
    columns, rows = [dist.Replicate(), dist.Shard(0)], [dist.Replicate(), dist.Shard(1)]
    dist.distribute_module(net, mesh, {"4.weight": columns, "8.weight": rows})
    return nn.parallel.DistributedDataParallel(net, mesh=mesh)


def _in_parts(net: nn.Module) -> nn.Module:
    """Batches and a layer cut along the same devices: each holds a fourth of its weights."""
    mesh = dist.init_device_mesh("xla", (4,))
    dist.distribute_module(net, mesh, {"4.weight": dist.Shard(0), "0.weight": dist.Shard(0)})
    return nn.parallel.DistributedDataParallel(net, mesh=mesh)


PLACES: dict[str, Callable[[nn.Module], nn.Module]] = {
    "the CPU": lambda net: net,
    "a device": lambda net: net.to("xla"),
    "four devices": _on_four,
    "two by two": _on_two_by_two,
    "parts of weights": _in_parts,
}


def place(name: str) -> nn.Module:
    """The network there."""
    return PLACES[name](network())


def losses(model: nn.Module, compiled: bool, steps: int = 8, count: int = 32) -> Losses:
    """What steps of Adam come to, with the same random numbers each time."""
    optimizer = optim.Adam(model.parameters(), lr=1e-2)
    where = next(model.parameters()).device
    x, y = (t.to(where) for t in images(count))

    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    run = chainrule.compile(step) if compiled else step
    chainrule.manual_seed(5)
    return [float(run(x, y)) for _ in range(steps)]
