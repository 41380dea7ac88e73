"""Records of the instruments in ``inspect/training``."""

from __future__ import annotations

from looking.records import Record

from chainrule import inspect

WITHOUT_TIME = dict.fromkeys(("mlp", "lenet", "residual", "two_inputs"), "no recurrent layer")

RECORDS: dict[str, Record] = {
    "activations": Record(lambda net: inspect.activations(net.model, net.inputs)),
    "cockpit": Record(lambda net: inspect.cockpit(net.model, net.loss, net.data)),
    "gradient_flow": Record(lambda net: inspect.gradient_flow(net.model, net.loss, net.data)),
    "normality": Record(
        lambda net: inspect.normality(net.model, net.inputs),
        nets=("mlp", "lenet", "residual"),
        refused=dict.fromkeys(("lstm", "two_inputs"), "at least 8 units"),
    ),
    "through_time": Record(
        lambda net: inspect.through_time(net.model, net.inputs),
        nets=("lstm",),
        refused=WITHOUT_TIME,
    ),
    "variance_propagation": Record(lambda net: inspect.variance_propagation(net.model, net.inputs)),
    "weight_histograms": Record(lambda net: inspect.weight_histograms(net.model)),
}
