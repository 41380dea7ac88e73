"""Records of the drawings in ``inspect/structure``."""

from __future__ import annotations

from looking.records import Record

from chainrule import inspect

NOT_RECURRENT = dict.fromkeys(("mlp", "lenet", "residual", "two_inputs"), "no recurrent layer")

RECORDS = {
    "draw": Record(lambda net: inspect.draw(net.model, net.inputs), draws=False),
    "wiring": Record(
        lambda net: inspect.wiring(net.model), nets=("lstm",), refused=NOT_RECURRENT, draws=False
    ),
}
