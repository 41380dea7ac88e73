"""Records of the instruments in ``inspect/training``."""

from __future__ import annotations

from looking.records import Record

from chainrule import inspect

RECORDS: dict[str, Record] = {
    "activations": Record(lambda net: inspect.activations(net.model, net.inputs)),
}
