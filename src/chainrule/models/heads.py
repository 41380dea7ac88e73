"""A linear model on features: of a fixed map, or of a network that is trained with it."""

from __future__ import annotations

from collections.abc import Callable

from chainrule import nn
from chainrule.autograd.modes import no_grad
from chainrule.backend import dtypes
from chainrule.models.mlp import Activation, activation_module
from chainrule.nn.functional import softmax
from chainrule.ops.core.promotion import cast
from chainrule.ops.elementwise.functions import sigmoid
from chainrule.ops.reduce.order import argmax
from chainrule.tensor import Tensor

__all__ = ["BinaryClassifier", "Classifier", "FeatureMapModel"]

Features = Callable[[Tensor], Tensor]  # a module or a function


class _OnFeatures(nn.Module):
    """``head(features(x))``, with checks."""

    def __init__(self, features: Features, width: int, outputs: int):
        super().__init__()
        if not callable(features):
            raise TypeError(
                f"{type(self).__name__}: features must be a module or a function, got "
                f"{type(features).__name__}"
            )
        self.features = features
        self.head = nn.Linear(width, outputs)

    def _scores(self, input: Tensor) -> Tensor:
        found = self.features(input)
        if found.ndim == 0 or found.shape[-1] != self.head.in_features:
            raise ValueError(
                f"{type(self).__name__}: expected features (N, {self.head.in_features}), got "
                f"shape {tuple(found.shape)}"
            )
        return self.head(found)


class BinaryClassifier(_OnFeatures):
    """A binary head on a feature net: log P(1|x) / P(0|x) = w . f(x) + b.

    Shape: (N, ...) -> (N, 1), the log-odds, as ``nn.BCEWithLogitsLoss`` takes them.

    Args:
        features: f, a module or a function to (N, width).
        width: how many features there are.

    >>> from chainrule import models, nn, ones
    >>> net = models.BinaryClassifier(nn.Sequential(nn.Linear(2, 5), nn.Tanh()), 5)
    >>> net(ones(3, 2)).shape, net.predict_proba(ones(3, 2)).shape
    (chainrule.Size([3, 1]), chainrule.Size([3]))
    """

    def __init__(self, features: Features, width: int):
        super().__init__(features, width, 1)

    def forward(self, input: Tensor) -> Tensor:
        return self._scores(input)

    @no_grad()
    def predict_proba(self, input: Tensor) -> Tensor:
        """The probabilities P(1|x) (N,)."""
        return sigmoid(self(input)[..., 0])

    @no_grad()
    def predict(self, input: Tensor) -> Tensor:
        """The more probable classes, 0 and 1 (N,)."""
        return cast(self(input)[..., 0] > 0, dtypes.int64)


class Classifier(_OnFeatures):
    """A multi-class head on a feature net: P(k|x) = softmax_k(w_k . f(x) + b_k).

    Shape: (N, ...) -> (N, classes), the logits, as ``nn.CrossEntropyLoss`` takes them.

    Args:
        features: f, a module or a function to (N, width).
        width: how many features there are.
        classes: how many classes there are.

    >>> from chainrule import models, nn, ones
    >>> net = models.Classifier(nn.Sequential(nn.Linear(2, 5), nn.Tanh()), 5, 3)
    >>> net(ones(4, 2)).shape, net.predict(ones(4, 2)).shape
    (chainrule.Size([4, 3]), chainrule.Size([4]))
    """

    def __init__(self, features: Features, width: int, classes: int):
        super().__init__(features, width, classes)

    def forward(self, input: Tensor) -> Tensor:
        return self._scores(input)

    @no_grad()
    def predict_proba(self, input: Tensor) -> Tensor:
        """The probabilities P(k|x) (N, classes)."""
        return softmax(self(input), -1)

    @no_grad()
    def predict(self, input: Tensor) -> Tensor:
        """The most probable classes (N,)."""
        return argmax(self(input), -1)


class FeatureMapModel(_OnFeatures):
    """A linear model on a fixed map of its inputs: h(x) = g(w . phi(x) + b).

    What is no straight border for x can be one for phi(x): a circle is one for the squares.

    Shape: (N, ...) -> (N, out_features).

    Args:
        phi: the map, a function to (N, width).
        width: how many features it makes.
        out_features: size of each output.
        activation: g, by name, as a module or as a function; by default none.

    >>> from chainrule import models, tensor
    >>> model = models.FeatureMapModel(lambda x: x**2, 2, activation="sigmoid")
    >>> model(tensor([[1.0, 2.0]])).shape
    chainrule.Size([1, 1])
    """

    def __init__(
        self,
        phi: Features,
        width: int,
        out_features: int = 1,
        activation: Activation | None = None,
    ):
        super().__init__(phi, width, out_features)
        self.activation = activation_module("identity" if activation is None else activation)

    def forward(self, input: Tensor) -> Tensor:
        return self.activation(self._scores(input))
