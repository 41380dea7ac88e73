"""Records of the instruments in ``inspect/theory``."""

from __future__ import annotations

from looking.records import Record

from chainrule import inspect, nn

LAYER = nn.GroupNorm(2, 4)

RECORDS = {
    "activation_curves": Record(lambda net: inspect.activation_curves(), nets=("mlp",)),
    "moment_map": Record(lambda net: inspect.moment_map(points=5), nets=("mlp",)),
    "normalization_groups": Record(
        lambda net: inspect.normalization_groups(LAYER), nets=("mlp",), draws=False
    ),
}
