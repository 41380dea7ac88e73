"""Records of the instruments in ``inspect/attribution``."""

from __future__ import annotations

from looking.nets import Net
from looking.records import Record

from chainrule import inspect

NO_MAPS = {"mlp": "no convolution", "lstm": "no convolution", "two_inputs": "no convolution"}
IMAGES = ("lenet", "residual")


def deeplift(net: Net) -> object:
    return inspect.attribute(net.model, net.inputs, method="deeplift")


RECORDS = {
    "attribute": Record(deeplift),
    "feature_maps": Record(
        lambda net: inspect.feature_maps(net.model, net.inputs), IMAGES, NO_MAPS
    ),
    "filters": Record(lambda net: inspect.filters(net.model), IMAGES, NO_MAPS),
    "deconvnet": Record(
        lambda net: inspect.deconvnet(net.model, net.inputs),
        ("mlp", *IMAGES, "lstm"),
        {"two_inputs": "one batch"},
    ),
    "maximize": Record(
        lambda net: inspect.maximize(net.model, net.inputs, steps=3),
        ("mlp", *IMAGES, "lstm"),
        {"two_inputs": "2 inputs"},
    ),
    "deep_dream": Record(
        lambda net: inspect.deep_dream(net.model, net.inputs, steps=3),
        ("mlp", *IMAGES, "lstm"),
        {"two_inputs": "2 inputs"},
    ),
}
