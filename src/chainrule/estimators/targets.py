"""Targets as tensors, and outputs of a network as labels, probabilities and numbers.

A kind of target says how many outputs a network needs, which loss goes with it, how targets are
encoded and outputs decoded, and how good outputs are.
"""

from __future__ import annotations

import builtins
from typing import Any

from sklearn.preprocessing import LabelBinarizer, LabelEncoder
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from chainrule.backend import K, dtypes
from chainrule.nn import functional as F
from chainrule.estimators.sparse_rows import SparseRows, is_sparse
from chainrule.ops.elementwise.functions import exp, sigmoid
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.shape.joining import split
from chainrule.ops.core.promotion import cast
from chainrule.ops.reduce.reductions import mean, sum
from chainrule.ops.shape.stacking import stack
from chainrule.ops.layers.softmax import log_softmax, softmax
from chainrule.tensor import Tensor
from chainrule.train.losses import LOSSES, LossLike, WeightedLoss
from chainrule.typing import Array, ArrayLike

__all__ = [
    "Binary",
    "BlockLoss",
    "Classes",
    "Labeled",
    "Labels",
    "Numbers",
    "Outputs",
    "Target",
    "class_target",
    "half_squared_error",
    "label_loss",
]


def half_squared_error(output: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """(y - t)^2 / 2, the mean over all outputs."""
    return F.mse_loss(output, target, reduction=reduction) / 2


def label_loss(output: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The cross-entropy of independent labels: the sum over the labels of a sample."""
    losses = sum(F.binary_cross_entropy_with_logits(output, target, reduction="none"), 1)
    return mean(losses) if reduction == "mean" else losses


class Target:
    """What the kinds of targets have in common.

    Args:
        loss: a name or a function ``loss(output, target)``.
        width: the number of outputs that a network needs.
    """

    out_activation = "identity"
    stratified = False  # whether a split keeps the proportions of the targets
    counts = False  # whether the score is a share of right answers, equal for many weights

    def __init__(self, loss: LossLike, width: int):
        self.loss, self.width = loss, width

    def encode(self, y: Array, dtype: dtypes.dtype) -> Tensor:
        """Targets as a tensor."""
        raise NotImplementedError

    def decode(self, output: Tensor) -> Array:
        """Outputs as an array of targets."""
        raise NotImplementedError

    def score(self, output: Tensor, target: Tensor, weight: Tensor | None) -> float:
        """How good outputs are: accuracy, or R^2."""
        raise NotImplementedError

    def adopt(self, width: int) -> Target:
        """The kind for a user's network with so many outputs."""
        if width != self.width:
            raise ValueError(
                f"module: expected {self.width} outputs for this target, got {width}; a function "
                "for `module` gets the numbers of features and outputs"
            )
        return self


def _mean(values: Tensor, weight: Tensor | None) -> float:
    values = values.double()
    if weight is None:
        return float(mean(values))
    return float(sum(values * weight.double()) / sum(weight.double()))


# --- numbers --------------------------------------------------------------------------------------


class Numbers(Target):
    """One or more numbers for each sample; with the loss "poisson" the network gives logarithms."""

    def __init__(self, loss: LossLike, width: int, flat: bool):
        super().__init__(loss, width)
        self.flat = flat  # whether targets are a vector
        self.logarithmic = loss in ("poisson", "poisson_nll")
        if self.logarithmic:
            self.out_activation, self.loss = "exp", LOSSES["poisson_nll"]
        elif loss == "squared_error":
            self.loss = half_squared_error

    def encode(self, y: Any, dtype: dtypes.dtype) -> Any:
        if is_sparse(y):  # inputs that are to be made again
            if self.logarithmic and y.min() < 0:
                raise ValueError("loss='poisson' needs targets y >= 0")
            return SparseRows(y, dtype)
        if self.logarithmic and y.size and y.min() < 0:
            raise ValueError("loss='poisson' needs targets y >= 0")
        return cast(as_tensor(y), dtype).reshape(-1, self.width)

    def numbers(self, output: Tensor) -> Tensor:
        """The predictions that outputs stand for."""
        return exp(output) if self.logarithmic else output

    def decode(self, output: Tensor) -> Array:
        found = self.numbers(output)
        return (found.reshape(-1) if self.flat else found).numpy()

    def score(self, output: Tensor, target: Tensor, weight: Tensor | None) -> float:
        w = 1.0 if weight is None else weight.double().unsqueeze(1)
        total = float(target.shape[0]) if weight is None else sum(weight.double())
        t = target.double()
        center = sum(t * w, 0) / total
        error = sum((t - self.numbers(output).double()) ** 2 * w, 0)
        spread = sum((t - center) ** 2 * w, 0)
        each = [
            1 - e / s if s else float(e == 0)
            for e, s in zip(error.tolist(), spread.tolist(), strict=True)
        ]
        return float(mean(as_tensor(each)))


# --- classes --------------------------------------------------------------------------------------


class Labeled(Target):
    """Targets with classes: ``classes`` is an array, or a list of them for several targets."""

    classes: Any
    counts = True

    def chosen(self, output: Tensor) -> Tensor:
        """The class index, or the indices, of each output."""
        raise NotImplementedError

    def probabilities(self, output: Tensor) -> Array | list[Array]:
        """The probabilities of the classes."""
        raise NotImplementedError

    def log_probabilities(self, output: Tensor) -> Array | list[Array]:
        """Their logarithms."""
        raise NotImplementedError

    def margins(self, output: Tensor) -> Array | list[Array]:
        """What ``decision_function`` returns."""
        return output.numpy()

    def unknown(self, y: Array) -> list[Any]:
        """The classes in y that are new."""
        return []

    def score(self, output: Tensor, target: Tensor, weight: Tensor | None) -> float:
        hits: Any = self.chosen(output) == target
        if hits.ndim > 1:
            hits = hits.all(1)
        return _mean(hits, weight)


class Classes(Labeled):
    """One of K classes: K outputs, cross-entropy."""

    out_activation = "softmax"
    stratified = True

    def __init__(self, loss: LossLike, encoder: LabelEncoder):
        self.encoder, self.classes = encoder, encoder.classes_
        super().__init__(F.cross_entropy if loss == "log_loss" else loss, len(self.classes))

    def unknown(self, y: Array) -> list[Any]:
        return sorted(set(y.tolist()) - set(self.classes.tolist()))

    def encode(self, y: Array, dtype: dtypes.dtype) -> Tensor:
        return cast(as_tensor(self.encoder.transform(y)), dtypes.int64)

    def chosen(self, output: Tensor) -> Tensor:
        return output.argmax(1)

    def decode(self, output: Tensor) -> Array:
        return self.classes[self.chosen(output).numpy()]

    def probabilities(self, output: Tensor) -> Array:
        return softmax(output, 1).numpy()

    def log_probabilities(self, output: Tensor) -> Array:
        return log_softmax(output, 1).numpy()

    def margins(self, output: Tensor) -> Array:
        if self.width == 2:
            return (output[:, 1] - output[:, 0]).numpy()
        return output.numpy()

    def adopt(self, width: int) -> Target:
        if width == 1 and self.width == 2 and self.loss is F.cross_entropy:
            return Binary(self.encoder)
        return super().adopt(width)


class Binary(Classes):
    """One of two classes by a single output, the logit of the second."""

    out_activation = "logistic"

    def __init__(self, encoder: LabelEncoder):
        super().__init__(F.binary_cross_entropy_with_logits, encoder)
        self.width = 1

    def encode(self, y: Array, dtype: dtypes.dtype) -> Tensor:
        return cast(super().encode(y, dtype), dtype).reshape(-1, 1)

    def chosen(self, output: Tensor) -> Tensor:
        return cast(output.reshape(-1) > 0, dtypes.int64)

    def probabilities(self, output: Tensor) -> Array:
        z = output.reshape(-1)
        return stack([sigmoid(-z), sigmoid(z)], 1).numpy()

    def log_probabilities(self, output: Tensor) -> Array:
        z = output.reshape(-1)
        return stack([F.logsigmoid(-z), F.logsigmoid(z)], 1).numpy()

    def margins(self, output: Tensor) -> Array:
        return output.reshape(-1).numpy()

    def score(self, output: Tensor, target: Tensor, weight: Tensor | None) -> float:
        return super().score(output, target.reshape(-1), weight)


class Labels(Labeled):
    """Any of L labels: an output for each, its logit."""

    out_activation = "logistic"

    def __init__(self, loss: LossLike, encoder: LabelBinarizer):
        self.encoder, self.classes = encoder, encoder.classes_
        super().__init__(label_loss if loss == "log_loss" else loss, len(self.classes))

    def encode(self, y: Array, dtype: dtypes.dtype) -> Tensor:
        return cast(as_tensor(self.encoder.transform(y)), dtype)

    def chosen(self, output: Tensor) -> Tensor:
        return cast(output > 0, dtypes.int64)

    def decode(self, output: Tensor) -> Array:
        return self.chosen(output).numpy()

    def probabilities(self, output: Tensor) -> Array:
        return sigmoid(output).numpy()

    def log_probabilities(self, output: Tensor) -> Array:
        return F.logsigmoid(output).numpy()


class Outputs(Labeled):
    """Several targets at once, each one of its own classes: their outputs stand side by side."""

    out_activation = "softmax"

    def __init__(self, loss: LossLike, encoders: list[LabelEncoder]):
        self.each = [Classes(loss, encoder) for encoder in encoders]
        self.classes = [part.classes for part in self.each]
        self.widths = [part.width for part in self.each]
        super().__init__(BlockLoss(self.each[0].loss, self.widths), builtins.sum(self.widths))

    def unknown(self, y: Array) -> list[Any]:
        return [new for i, part in enumerate(self.each) for new in part.unknown(y[:, i])]

    def encode(self, y: Array, dtype: dtypes.dtype) -> Tensor:
        return stack([part.encode(y[:, i], dtype) for i, part in enumerate(self.each)], 1)

    def _parts(self, output: Tensor) -> list[tuple[Classes, Tensor]]:
        return list(zip(self.each, split(output, self.widths, 1), strict=True))

    def chosen(self, output: Tensor) -> Tensor:
        return stack([part.chosen(o) for part, o in self._parts(output)], 1)

    def decode(self, output: Tensor) -> Array:
        return K.cat(*[p.decode(o).reshape(-1, 1) for p, o in self._parts(output)], dim=1)

    def probabilities(self, output: Tensor) -> list[Array]:
        return [part.probabilities(o) for part, o in self._parts(output)]

    def log_probabilities(self, output: Tensor) -> list[Array]:
        return [part.log_probabilities(o) for part, o in self._parts(output)]

    def margins(self, output: Tensor) -> list[Array]:
        return [part.margins(o) for part, o in self._parts(output)]


class BlockLoss:
    """The sum of a loss over targets whose outputs stand side by side."""

    def __init__(self, loss: LossLike, widths: list[int]):
        self.loss, self.widths = WeightedLoss(loss), widths

    def __call__(self, output: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
        loss = self.loss if reduction == "mean" else self.loss.each
        blocks = split(output, self.widths, 1)
        first, *rest = [loss(block, target[:, i]) for i, block in enumerate(blocks)]
        for part in rest:
            first = first + part
        return first


def class_target(
    y: Array, loss: LossLike, one_output: bool, classes: ArrayLike | None = None
) -> Labeled:
    """The kind of target that class labels y are.

    Args:
        y: the labels: a vector, or a matrix of labels.
        loss: "log_loss", another name, or a function.
        one_output: whether two classes are told apart by one output.
        classes: all classes there will be, if y may lack some.
    """
    check_classification_targets(y)
    kind = type_of_target(y)
    if kind == "multilabel-indicator":
        return Labels(loss, LabelBinarizer().fit(y))
    if kind == "multiclass-multioutput":
        return Outputs(loss, [LabelEncoder().fit(y[:, i]) for i in range(y.shape[1])])
    encoder = LabelEncoder().fit(y if classes is None else classes)
    if len(encoder.classes_) < 2:
        raise ValueError(
            "Classifier can't train when only one class is present: at least 2 classes are "
            f"needed, got {encoder.classes_.tolist()}"
        )
    if len(encoder.classes_) == 2 and one_output and loss == "log_loss":
        return Binary(encoder)
    return Classes(loss, encoder)
