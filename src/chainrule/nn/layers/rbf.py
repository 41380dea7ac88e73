"""Radial basis functions: bumps around centers, and networks of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from chainrule.autograd.engine import grad
from chainrule.autograd.modes import no_grad
from chainrule.backend import dtypes
from chainrule.linalg import lstsq
from chainrule.clustering import growing_neural_gas, kmeans, squared_distances, uniform_centers
from chainrule.nn.layers.linear import Linear
from chainrule.nn.module.base import Module
from chainrule.nn.parameter import Parameter
from chainrule.ops.creation.patterns import empty, ones
from chainrule.ops.elementwise.functions import exp, sigmoid, sqrt
from chainrule.ops.elementwise.logic import where
from chainrule.ops.index.reading import one_hot
from chainrule.ops.core.promotion import cast
from chainrule.ops.reduce.reductions import mean
from chainrule.ops.shape.views import unsqueeze
from chainrule.ops.shape.stacking import cat
from chainrule.ops.layers.softmax import binary_cross_entropy_with_logits, cross_entropy, softmax
from chainrule.ops.reduce.sort import topk
from chainrule.tensor import Tensor
from chainrule.typing import Device, DType, Random

__all__ = ["RBF", "RBFNetwork", "fit_rbf", "rbf"]


def rbf(input: Tensor, centers: Tensor, widths: Tensor, bias: bool = False) -> Tensor:
    """phi_i = exp(-|x - mu_i|^2 / (2 sigma_i^2)), and phi_0 = 1 in front if ``bias``.

    Shape: input (N, D), centers mu (K, D), widths sigma (K,) -> (N, K) or (N, K + 1).

    >>> from chainrule import nn, tensor
    >>> nn.functional.rbf(tensor([[0.0], [1.0]]), tensor([[0.0]]), tensor([1.0]), bias=True)
    tensor([[1.0000, 1.0000],
            [1.0000, 0.6065]])
    """
    if input.ndim < 1 or input.shape[-1] != centers.shape[-1]:
        raise RuntimeError(
            f"rbf: the last dimension of the input, of shape {tuple(input.shape)}, must be the "
            f"{centers.shape[-1]} features of the centers, of shape {tuple(centers.shape)}"
        )
    phi = exp(squared_distances(input, centers) / (-2 * widths * widths))
    return (
        cat([ones(*phi.shape[:-1], 1, dtype=phi.dtype, device=phi.device), phi], -1)
        if bias
        else phi
    )


class RBF(Module):
    """phi_i = exp(-|x - mu_i|^2 / (2 sigma_i^2)) with learned centers mu and widths sigma.

    Shape: (N, in_features) -> (N, num_centers), one more in front (phi_0 = 1) if bias.

    Args:
        in_features: size of each input.
        num_centers: how many functions.
        bias: whether phi_0 = 1 is put in front.

    >>> from chainrule import nn, ones
    >>> nn.RBF(2, 5, bias=True)(ones(3, 2)).shape
    chainrule.Size([3, 6])
    """

    def __init__(
        self,
        in_features: int,
        num_centers: int,
        bias: bool = False,
        device: Device | None = None,
        dtype: DType | None = None,
    ):
        super().__init__()
        self.in_features = in_features
        self.num_centers = num_centers
        self.bias = bias
        self.centers = Parameter(empty(num_centers, in_features, device=device, dtype=dtype))
        self.widths = Parameter(empty(num_centers, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Centers from the standard normal distribution, widths as far as they lie apart."""
        self.centers.detach().normal_()
        self.widths.detach().fill_(math.sqrt(self.in_features))

    def forward(self, input: Tensor) -> Tensor:
        return rbf(input, self.centers, self.widths, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, num_centers={self.num_centers}, bias={self.bias}"


# --- networks -------------------------------------------------------------------------------------


def _mean_square(scores: Tensor, target: Tensor) -> Tensor:
    return mean((scores - target) ** 2)


# The transfer function g and the loss of each task.
_TASKS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor, Tensor], Tensor]]] = {
    "regression": (lambda scores: scores, _mean_square),
    "binary": (sigmoid, binary_cross_entropy_with_logits),
    "multiclass": (lambda scores: softmax(scores, -1), cross_entropy),
}


class RBFNetwork(Module):
    """y = g(w . phi(x)) with the radial functions phi (phi_0 = 1) and the transfer function g.

    g is the identity for "regression", sigmoid for "binary" and softmax for "multiclass";
    ``forward`` gives the scores w . phi, as losses want them, and ``predict`` y.

    Shape: (N, in_features) -> (N, out_features).

    Args:
        in_features: size of each input.
        num_centers: how many radial functions.
        out_features: size of each output: the classes if multiclass, 1 if binary.
        task: "regression", "binary" or "multiclass".

    >>> from chainrule import nn, ones
    >>> nn.RBFNetwork(2, 5, 3, task="multiclass").predict(ones(4, 2)).shape
    chainrule.Size([4, 3])
    """

    def __init__(
        self,
        in_features: int,
        num_centers: int,
        out_features: int = 1,
        task: str = "regression",
        device: Device | None = None,
        dtype: DType | None = None,
    ):
        super().__init__()
        if task not in _TASKS:
            raise ValueError(f"RBFNetwork: task must be one of {list(_TASKS)}, got {task!r}")
        self.task = task
        self.rbf = RBF(in_features, num_centers, True, device, dtype)
        self.linear = Linear(num_centers + 1, out_features, False, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return self.linear(self.rbf(input))

    def predict(self, input: Tensor) -> Tensor:
        """Values, or the probabilities of the classes."""
        return _TASKS[self.task][0](self(input))


def fit_rbf(
    x: Tensor,
    y: Tensor,
    num_centers: int,
    task: str = "regression",
    centers: str = "kmeans",
    steps: int = 2,
    neighbors: int = 2,
    max_iter: int = 200,
    generator: Random = None,
) -> RBFNetwork:
    """A network of radial functions, y = g(w . phi(x)), learned in two or three steps.

    1. Centers from x: "kmeans" (started by k-means++), "gng" (growing neural gas) or "uniform";
       each width is the root mean square distance to the nearest other centers.
    2. The weights by linear least squares; for classes this is one Newton step of the likelihood
       from weights 0.
    3. Centers, widths and weights together by gradient descent on the loss.

    Args:
        x: inputs (N, D).
        y: values (N,) or (N, K); 0 and 1 (N,) if binary; class numbers (N,) if multiclass.
        num_centers: how many radial functions.
        task: "regression", "binary" or "multiclass".
        centers: where they come from.
        steps: 2 or 3.
        neighbors: how many nearest centers make a width.
        max_iter: of the third step.

    >>> from chainrule import linspace, manual_seed, nn
    >>> _ = manual_seed(0)
    >>> x = linspace(-3, 3, 50)[:, None]
    >>> model = nn.functional.fit_rbf(x, x.sin(), num_centers=8)
    >>> bool((model.predict(x) - x.sin()).abs().max() < 0.05)
    True
    """
    if task not in _TASKS:
        raise ValueError(f"fit_rbf: task must be one of {list(_TASKS)}, got {task!r}")
    if steps not in (2, 3):
        raise ValueError(f"fit_rbf: steps must be 2 or 3, got {steps}")
    if x.ndim != 2 or y.shape[:1] != x.shape[:1]:
        raise ValueError(
            f"fit_rbf: expected x (N, D) and y with the same N, got shapes {tuple(x.shape)} and "
            f"{tuple(y.shape)}"
        )
    target, wanted = _targets(task, y, x.dtype)
    model = RBFNetwork(x.shape[1], num_centers, wanted.shape[1], task, dtype=x.dtype)
    with no_grad():
        places = _centers(x, num_centers, centers, generator)
        model.rbf.centers.copy_(places)
        model.rbf.widths.copy_(_widths(places, x, neighbors))
        model.linear.weight.copy_(lstsq(model.rbf(x), wanted).solution.mT)
    if steps == 3:
        loss = _TASKS[task][1]
        _descend(lambda: loss(model(x), target), list(model.parameters()), max_iter)
    return model


def _targets(task: str, y: Tensor, dtype: DType) -> tuple[Tensor, Tensor]:
    """What the loss compares with, and the scores (N, K) that least squares aims at."""
    if task == "multiclass":
        if y.is_floating_point() or y.ndim != 1:
            raise ValueError(
                f"fit_rbf: multiclass needs class numbers (N,) of int64, got {y.dtype} of shape "
                f"{tuple(y.shape)}"
            )
        labels = cast(y, dtypes.int64)
        hot = cast(one_hot(labels), dtype)
        return labels, hot.shape[1] * hot - 1
    column = cast(y, dtype)
    if column.ndim == 1:
        column = unsqueeze(column, 1)
    if task == "regression":
        return column, column
    if column.shape[1] != 1 or not bool(((column == 0) | (column == 1)).all()):
        raise ValueError("fit_rbf: binary needs labels 0 and 1 of shape (N,)")
    return column, 4 * column - 2


def _centers(x: Tensor, k: int, how: str, generator: Random) -> Tensor:
    if how == "kmeans":
        return kmeans(x, k, generator=generator).centers
    if how == "gng":
        return growing_neural_gas(x, k, generator=generator)
    if how == "uniform":
        return uniform_centers(x, k, generator)
    raise ValueError(f"fit_rbf: centers must be kmeans, gng or uniform, got {how!r}")


def _widths(centers: Tensor, x: Tensor, neighbors: int) -> Tensor:
    """The root mean square distance of each center to the nearest others (or to all points)."""
    k = centers.shape[0]
    count = min(neighbors, k - 1)
    spread = mean(squared_distances(x, centers))
    if count < 1:
        return sqrt(unsqueeze(spread, 0))
    nearest = topk(squared_distances(centers, centers), count + 1, largest=False).values[:, 1:]
    squares = mean(nearest, 1)
    return sqrt(where(squares > 0, squares, spread / k))


def _descend(loss: Callable[[], Tensor], parameters: list[Any], max_iter: int) -> None:
    """Gradient descent that halves its step until the loss falls, and doubles it when it does."""
    step = 1.0
    for _ in range(max_iter):
        now = loss()
        slopes = grad(now, parameters)
        with no_grad():
            square = float(sum((g * g).sum() for g in slopes))
            before = [p.clone() for p in parameters]
            while step * square > 1e-14 * abs(float(now)):
                for p, old, g in zip(parameters, before, slopes, strict=True):
                    p.copy_(old - step * g)
                if float(loss()) <= float(now) - 1e-4 * step * square:
                    break
                step /= 2
            else:
                for p, old in zip(parameters, before, strict=True):
                    p.copy_(old)
                return
        step *= 2
