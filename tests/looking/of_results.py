"""Records of the instruments in ``inspect/results``."""

from __future__ import annotations

import chainrule
from chainrule import data, inspect
from looking.nets import Net
from looking.records import Record

NO_COLUMNS = dict.fromkeys(("lenet", "residual"), "pictures have no columns")
ROWS = [{"epoch": i, "loss": 1 / i, "val_loss": 1 / i + 0.1, "lr": 0.1**i} for i in range(1, 5)]


def _numbers(net: Net) -> chainrule.Tensor:
    """Targets in the form of the output that is looked at; each network has its number of these."""
    classes = int(net.targets.max()) + 1
    return chainrule.linspace(-1, 1, len(net.targets) * classes).reshape(-1, classes)


def _column(net: Net) -> object:
    """One output of a network, as a function."""
    return inspect.regression_fit(lambda x: net.model(x)[:, :1], net.inputs, _numbers(net)[:, 0])


RECORDS = {
    "confusion": Record(lambda net: inspect.confusion(net.model, net.inputs, net.targets)),
    "calibration": Record(lambda net: inspect.calibration(net.model, net.inputs, net.targets)),
    "roc": Record(lambda net: inspect.roc(net.model, net.inputs, net.targets)),
    "precision_recall": Record(
        lambda net: inspect.precision_recall(net.model, net.inputs, net.targets)
    ),
    "residuals": Record(lambda net: inspect.residuals(net.model, net.inputs, _numbers(net))),
    "top_losses": Record(
        lambda net: inspect.top_losses(
            net.model, net.inputs, net.targets, training=net.data, loss=net.loss, k=3
        )
    ),
    "permutation_importance": Record(
        lambda net: inspect.permutation_importance(net.model, net.inputs, net.targets, repeats=2),
        nets=("mlp", "lstm", "two_inputs"),
        refused=NO_COLUMNS,
    ),
    "partial_dependence": Record(
        lambda net: inspect.partial_dependence(net.model, net.inputs, 0, output=1, points=5),
        nets=("mlp", "lstm", "two_inputs"),
        refused=NO_COLUMNS,
    ),
    "regression_fit": Record(_column, nets=("mlp",)),
    "learning_curves": Record(lambda net: inspect.learning_curves(ROWS), nets=("mlp",)),
    "schedules": Record(
        lambda net: inspect.schedules([lambda t: 0.5**t, [0.1, 0.2]], 10), nets=("mlp",)
    ),
    "folds": Record(
        lambda net: inspect.folds(data.KFold(3), net.inputs, net.targets),
        nets=("mlp",),
        draws=False,
    ),
    "data_sheet": Record(
        lambda net: inspect.data_sheet(net.inputs, net.targets),
        nets=("mlp", "lenet", "residual"),
        refused={"two_inputs": "dataset"},
    ),
    "augmentation_sheet": Record(
        lambda net: inspect.augmentation_sheet(net.inputs[0], [chainrule.neg]), nets=("lenet",)
    ),
    "reconstructions": Record(
        lambda net: inspect.reconstructions(lambda x: 0.9 * x, net.inputs),
        nets=("lenet", "residual"),
    ),
}
