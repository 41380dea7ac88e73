"""Records of the instruments in ``inspect/structure`` that count and list."""

from __future__ import annotations

from looking.records import Record

from chainrule import inspect

RECORDS = {
    "summary": Record(lambda net: inspect.summary(net.model, net.inputs)),
    "count": Record(lambda net: inspect.count(net.model, net.inputs)),
    "receptive_field": Record(
        lambda net: inspect.receptive_field(net.model, net.inputs),
        nets=("lenet", "residual"),
        refused={
            "mlp": "has no convolution or pooling",
            "lstm": "has no convolution or pooling",
            "two_inputs": "has no convolution or pooling",
        },
    ),
}
