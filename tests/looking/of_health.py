"""Records of the instruments in ``inspect/health``."""

from __future__ import annotations

from looking.records import Record

from chainrule import inspect, optim

RECORDS = {
    "autopsy": Record(
        lambda net: inspect.autopsy(net.model, net.inputs, net.targets, net.loss), draws=False
    ),
    "doctor": Record(
        lambda net: inspect.doctor(
            net.model, net.loss, net.data, optim.SGD(net.model.parameters(), lr=0.1)
        )
    ),
    "layer_jacobians": Record(lambda net: inspect.layer_jacobians(net.model, net.inputs)),
    "preflight": Record(lambda net: inspect.preflight(net.model, net.loss, net.data, seconds=0.5)),
}
