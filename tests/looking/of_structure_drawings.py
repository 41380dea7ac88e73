"""Records of the drawings in ``inspect/structure``."""

from __future__ import annotations

from looking.records import Record

from chainrule import inspect

RECORDS = {
    "draw": Record(lambda net: inspect.draw(net.model, net.inputs), draws=False),
}
