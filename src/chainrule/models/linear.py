"""Linear models that know their learning rule.

They are ordinary layers, trained like any other or, in one call, by ``fit``.
"""

from __future__ import annotations

from typing import Any

from chainrule import nn
from chainrule.autograd.modes import no_grad
from chainrule.backend import dtypes
from chainrule.ops.elementwise.functions import sigmoid
from chainrule.ops.elementwise.logic import where
from chainrule.ops.reduce.order import argmax
from chainrule.ops.core.promotion import cast
from chainrule.ops.shape.views import reshape
from chainrule.ops.layers.softmax import softmax
from chainrule.optim.linear import FitReport, LinearFit, delta_rule, least_squares, ridge
from chainrule.optim.linear_classes import logistic_regression, softmax_regression
from chainrule.optim.separation import perceptron
from chainrule.tensor import Tensor
from chainrule.typing import Device, DType

__all__ = ["LinearRegression", "LogisticRegression", "Perceptron", "SoftmaxRegression"]


class _Linear(nn.Linear):
    """A linear layer whose weights a learning rule can write; ``report`` tells how that went."""

    report: FitReport | None = None

    def _keep(self, fit: LinearFit) -> FitReport:
        with no_grad():
            self.weight.copy_(reshape(fit.weight, tuple(self.weight.shape)))
            if fit.bias is not None:
                bias = self.get_parameter("bias")
                bias.copy_(reshape(fit.bias, tuple(bias.shape)))
        self.report = fit.report
        return fit.report

    def _check(self, x: Tensor, y: Tensor) -> Tensor:
        """The targets, checked with the inputs against the layer; (N,) for one output."""
        name, outputs = type(self).__name__, self.out_features
        if x.ndim != 2 or x.shape[1] != self.in_features:
            raise ValueError(
                f"{name}.fit: x must be of shape (N, {self.in_features}), got {tuple(x.shape)}"
            )
        if outputs == 1 and y.ndim == 2 and y.shape[1] == 1:
            return y[:, 0]
        return y


class LinearRegression(_Linear):
    """A linear model fitted by least squares: y = W x + b.

    Shape: (N, in_features) -> (N, out_features).

    Args:
        in_features: size of each input.
        out_features: size of each output.
        bias: whether to add a learned b.

    >>> from chainrule import models, tensor
    >>> model = models.LinearRegression(1)
    >>> report = model.fit(tensor([[0.0], [1.0], [2.0]]), tensor([2.0, 5, 8]))
    >>> model(tensor([[10.0]])).detach(), report.converged
    (tensor([[32.]]), True)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int = 1,
        bias: bool = True,
        device: Device | None = None,
        dtype: DType | None = None,
    ):
        super().__init__(in_features, out_features, bias, device, dtype)

    def fit(
        self, x: Tensor, y: Tensor, method: str = "exact", *, l2: float = 0.0, **options: Any
    ) -> FitReport:
        """Writes the weights for targets (N,) or (N, out_features); returns the report.

        "exact" is :func:`optim.least_squares`, or :func:`optim.ridge` with ``l2`` > 0; "delta" is
        :func:`optim.delta_rule`, which has ``options``.
        """
        y = self._check(x, y)
        if (y.shape[1] if y.ndim == 2 else 1) != self.out_features:
            raise ValueError(
                f"LinearRegression.fit: y must be of shape (N, {self.out_features}), got "
                f"{tuple(y.shape)}"
            )
        bias = self.bias is not None
        if method == "delta" and l2 == 0:
            return self._keep(delta_rule(x, y, bias=bias, **options))
        if method != "exact" or options:
            raise ValueError(
                "LinearRegression.fit: method must be 'exact' (without options) or 'delta' "
                f"(without l2), got {method!r} with l2={l2}, {options}"
            )
        return self._keep(ridge(x, y, l2, bias) if l2 else least_squares(x, y, bias))


class Perceptron(_Linear):
    """A perceptron fitted by Rosenblatt's rule: s = w . x + b, whose sign is the label.

    Shape: (N, in_features) -> (N, 1), the score s.

    Args:
        in_features: size of each input.
        bias: whether to add a learned b.

    >>> from chainrule import models, problems
    >>> p = problems.boolean("and", signed=True)
    >>> model = models.Perceptron(2)
    >>> model.fit(p.inputs, p.targets).converged, model.predict(p.inputs)
    (True, tensor([-1, -1, -1,  1]))
    """

    def __init__(
        self,
        in_features: int,
        bias: bool = True,
        device: Device | None = None,
        dtype: DType | None = None,
    ):
        super().__init__(in_features, 1, bias, device, dtype)

    def fit(self, x: Tensor, y: Tensor, **options: Any) -> FitReport:
        """Writes the weights for labels -1 and 1; options as in :func:`optim.perceptron`."""
        y = self._check(x, y)
        return self._keep(perceptron(x, y, bias=self.bias is not None, **options))

    def predict(self, x: Tensor) -> Tensor:
        """The labels -1 and 1 (N,); a point on the border is given 1."""
        return cast(where(self(x)[..., 0] >= 0, 1, -1), dtypes.int64)


class LogisticRegression(_Linear):
    """A linear model of two classes: p = sigmoid(w . x + b).

    Shape: (N, in_features) -> (N, 1), the logit w . x + b.

    Args:
        in_features: size of each input.
        bias: whether to add a learned b.

    >>> from chainrule import models, tensor
    >>> x, y = tensor([[0.0], [1.0], [2.0], [3.0]]), tensor([0, 1, 0, 1])
    >>> model = models.LogisticRegression(1)
    >>> _ = model.fit(x, y)
    >>> model.predict_proba(x)
    tensor([0.2039, 0.3884, 0.6116, 0.7961])
    """

    def __init__(
        self,
        in_features: int,
        bias: bool = True,
        device: Device | None = None,
        dtype: DType | None = None,
    ):
        super().__init__(in_features, 1, bias, device, dtype)

    def fit(self, x: Tensor, y: Tensor, method: str = "irls", **options: Any) -> FitReport:
        """Writes the weights for labels 0 and 1; see :func:`optim.logistic_regression`."""
        y = self._check(x, y)
        return self._keep(logistic_regression(x, y, method, bias=self.bias is not None, **options))

    @no_grad()
    def predict_proba(self, x: Tensor) -> Tensor:
        """The probabilities of label 1 (N,)."""
        return sigmoid(self(x)[..., 0])

    def predict(self, x: Tensor) -> Tensor:
        """The more probable labels, 0 and 1 (N,)."""
        return cast(self(x)[..., 0] > 0, dtypes.int64)


class SoftmaxRegression(_Linear):
    """A linear model of many classes: p = softmax(W x + b).

    Shape: (N, in_features) -> (N, classes), the logits W x + b.

    Args:
        in_features: size of each input.
        classes: how many classes there are.
        bias: whether to add a learned b.

    >>> from chainrule import models, problems
    >>> p = problems.blobs(300, noise=0.6)
    >>> model = models.SoftmaxRegression(2, 3)
    >>> model.fit(p.inputs, p.targets).converged
    True
    """

    def __init__(
        self,
        in_features: int,
        classes: int,
        bias: bool = True,
        device: Device | None = None,
        dtype: DType | None = None,
    ):
        super().__init__(in_features, classes, bias, device, dtype)

    def fit(self, x: Tensor, y: Tensor, method: str = "newton", **options: Any) -> FitReport:
        """Writes the weights for class numbers (N,); see :func:`optim.softmax_regression`."""
        y = self._check(x, y)
        bias = self.bias is not None
        return self._keep(softmax_regression(x, y, self.out_features, method, bias=bias, **options))

    @no_grad()
    def predict_proba(self, x: Tensor) -> Tensor:
        """The probabilities of the classes (N, classes)."""
        return softmax(self(x), -1)

    def predict(self, x: Tensor) -> Tensor:
        """The most probable class of each (N,)."""
        return argmax(self(x), -1)
