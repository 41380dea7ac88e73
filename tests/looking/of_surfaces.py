"""Records of the instruments in ``inspect/surfaces``."""

from __future__ import annotations

from chainrule import inspect, optim, problems
from looking.nets import Net
from looking.records import Record

OPTIMIZERS = {"SGD": lambda p: optim.SGD(p, lr=0.05), "Adam": lambda p: optim.Adam(p, lr=0.05)}


def regions(net: Net) -> object:
    return inspect.regions(net.model, net.inputs, net.targets, points=20)


RECORDS = {
    "surface": Record(
        lambda net: inspect.surface(problems.rosenbrock().function, points=15), nets=("mlp",)
    ),
    "landscape": Record(lambda net: inspect.landscape(net.model, net.loss, net.data, points=5)),
    "loss_line": Record(lambda net: inspect.loss_line(net.model, net.loss, net.data, points=5)),
    "optimizer_paths": Record(
        lambda net: inspect.optimizer_paths(
            net.model, OPTIMIZERS, loss=net.loss, data=net.data, steps=4, points=5
        )
    ),
    "regions": Record(
        regions,
        nets=("mlp",),
        refused={"lenet": "table", "residual": "table", "lstm": "table", "two_inputs": "inputs"},
    ),
    "hidden_space": Record(lambda net: inspect.hidden_space(net.model, net.inputs, net.targets)),
}
