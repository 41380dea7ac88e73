"""Records of the instruments in ``inspect/steps``."""

from __future__ import annotations

from looking.records import Record

from chainrule import inspect, nn

LAYER = nn.Conv2d(1, 1, 3, stride=2, padding=1)

RECORDS = {
    "back_propagation": Record(
        lambda net: inspect.back_propagation(net.model, net.inputs, net.targets, net.loss)
    ),
    "convolution_steps": Record(
        lambda net: inspect.convolution_steps(LAYER, 5),
        nets=("mlp",),
    ),
}
