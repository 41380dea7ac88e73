"""Records of the instruments in ``inspect/results``."""

from __future__ import annotations

import chainrule
from chainrule import inspect
from looking.nets import Net
from looking.records import Record


def _numbers(net: Net) -> chainrule.Tensor:
    """Targets in the form of the output that is looked at; each network has its number of these."""
    classes = int(net.targets.max()) + 1
    return chainrule.linspace(-1, 1, len(net.targets) * classes).reshape(-1, classes)


RECORDS = {
    "confusion": Record(lambda net: inspect.confusion(net.model, net.inputs, net.targets)),
    "calibration": Record(lambda net: inspect.calibration(net.model, net.inputs, net.targets)),
    "roc": Record(lambda net: inspect.roc(net.model, net.inputs, net.targets)),
    "precision_recall": Record(
        lambda net: inspect.precision_recall(net.model, net.inputs, net.targets)
    ),
    "residuals": Record(lambda net: inspect.residuals(net.model, net.inputs, _numbers(net))),
}
