"""Transforms of whole vectors and matrices."""

from __future__ import annotations

import math
from typing import Any

from chainrule.distributions import constraints
from chainrule.distributions.transforms.base import Transform
from chainrule.distributions.transforms.numbers import log_one_minus_tanh_squared
from chainrule.distributions.utils import tril_matrix_to_vec, vec_to_tril_matrix
from chainrule.linalg import cholesky
from chainrule.ops.creation.patterns import arange, eye, tril_indices
from chainrule.ops.elementwise.functions import softplus
from chainrule.ops.shape.diagonal import diag_embed
from chainrule.ops.shape.padding import pad
from chainrule.tensor import Size, Tensor
from chainrule.typing import Shape

__all__ = [
    "CorrCholeskyTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "SoftmaxTransform",
    "StickBreakingTransform",
]


class _Vectors(Transform):
    """A function of vectors without settings."""

    domain = constraints.real_vector

    def _settings(self) -> tuple[Any, ...]:
        return ()


class SoftmaxTransform(_Vectors):
    """y = exp(x) / sum(exp(x)); not one to one, log(y) is taken to be the inverse.

    >>> from chainrule import tensor
    >>> from chainrule.distributions.transforms import SoftmaxTransform
    >>> SoftmaxTransform()(tensor([1.0, 1.0]))
    tensor([0.5000, 0.5000])
    """

    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return x.softmax(-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Shape) -> Size:
        return _checked("SoftmaxTransform", shape, 1)

    def inverse_shape(self, shape: Shape) -> Size:
        return _checked("SoftmaxTransform", shape, 1)


def _checked(name: str, shape: Shape, dims: int) -> Size:
    if len(shape) < dims:
        raise ValueError(f"{name}: a value has at least {dims} dimensions, got shape {shape}")
    return Size(shape)


class StickBreakingTransform(_Vectors):
    """K numbers to K + 1 probabilities: x[k] says what part of the rest of a stick breaks off.

    y[k] = z[k] prod_(j<k) (1 - z[j]) with z[k] = sigmoid(x[k] - log(K - k)), and y[K] is the rest.
    The shift makes all y equal at x = 0.

    >>> import chainrule
    >>> from chainrule.distributions.transforms import StickBreakingTransform
    >>> StickBreakingTransform()(chainrule.zeros(3))
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    codomain = constraints.simplex
    bijective = True

    def _shift(self, x: Tensor, size: int) -> Tensor:
        return arange(size, 0, -1, dtype=x.dtype, device=x.device).log()

    def _call(self, x: Tensor) -> Tensor:
        x = x - self._shift(x, x.shape[-1])
        rest = pad((-softplus(x)).cumsum(-1), (1, 0))
        return (pad(-softplus(-x), (0, 1)) + rest).exp()

    def _inverse(self, y: Tensor) -> Tensor:
        first = y[..., :-1]
        rest = y[..., 1:].flip(-1).cumsum(-1).flip(-1)  # 1 - first.cumsum(-1) would cancel
        return first.log() - rest.log() + self._shift(y, first.shape[-1])

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # The Jacobian is triangular: dy[k]/dx[k] = y[k] (1 - z[k]).
        z = x - self._shift(x, x.shape[-1])
        return (y[..., :-1].log() - softplus(z)).sum(-1)

    def forward_shape(self, shape: Shape) -> Size:
        _checked("StickBreakingTransform", shape, 1)
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Shape) -> Size:
        _checked("StickBreakingTransform", shape, 1)
        return Size((*shape[:-1], shape[-1] - 1))


class LowerCholeskyTransform(Transform):
    """Any matrix to a lower triangular one with positive diagonal: exp of its own diagonal.

    >>> import chainrule
    >>> from chainrule.distributions.transforms import LowerCholeskyTransform
    >>> LowerCholeskyTransform()(chainrule.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + diag_embed(x.diagonal(0, -2, -1).exp())

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + diag_embed(y.diagonal(0, -2, -1).log())

    def _settings(self) -> tuple[Any, ...]:
        return ()


class PositiveDefiniteTransform(Transform):
    """Any matrix to L L^T, with the L of :class:`LowerCholeskyTransform`.

    >>> import chainrule
    >>> from chainrule.distributions.transforms import PositiveDefiniteTransform
    >>> PositiveDefiniteTransform()(chainrule.tensor([[0.0, 0.0], [2.0, 0.0]]))
    tensor([[1., 2.],
            [2., 5.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(cholesky(y))

    def _settings(self) -> tuple[Any, ...]:
        return ()


class CorrCholeskyTransform(_Vectors):
    """D (D - 1) / 2 numbers to the Cholesky factor of a correlation matrix (D, D).

    With r = tanh(x) below the diagonal, y[i, j] = r[i, j] prod_(k<j) sqrt(1 - r[i, k]^2), and the
    diagonal makes each row a unit vector: every r[i, j] is a partial correlation.

    >>> import chainrule
    >>> from chainrule.distributions.transforms import CorrCholeskyTransform
    >>> CorrCholeskyTransform()(chainrule.zeros(3))
    tensor([[1., 0., 0.],
            [0., 1., 0.],
            [0., 0., 1.]])
    """

    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        n = _side(x.shape)
        rest = 0.5 * vec_to_tril_matrix(log_one_minus_tanh_squared(x), -1)
        lengths = pad(rest.cumsum(-1), (1, -1)).exp()
        r = vec_to_tril_matrix(x.tanh(), -1) + eye(n, dtype=x.dtype, device=x.device)
        return r * lengths.tril()

    def _inverse(self, y: Tensor) -> Tensor:
        # r / sqrt(1 - r^2) = y[i, j] / sqrt(y[i, j + 1]^2 + ... + y[i, i]^2), even if r rounds to 1
        rest = pad(y.tril().square().flip(-1).cumsum(-1).flip(-1), (-1, 1))
        return (tril_matrix_to_vec(y, -1) / tril_matrix_to_vec(rest, -1).sqrt()).asinh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # dy[i, j]/dx[i, j] has the factor 1 - r[i, j]^2, and the root of it for every later y of
        # the row below the diagonal: i - 1 - j of them.
        n = _side(x.shape)
        row, column = tril_indices(n, n, -1)
        return (log_one_minus_tanh_squared(x) * (0.5 * (row - column + 1))).sum(-1)

    def forward_shape(self, shape: Shape) -> Size:
        _checked("CorrCholeskyTransform", shape, 1)
        n = _side(shape)
        return Size((*shape[:-1], n, n))

    def inverse_shape(self, shape: Shape) -> Size:
        _checked("CorrCholeskyTransform", shape, 2)
        if shape[-2] != shape[-1]:
            raise ValueError(f"CorrCholeskyTransform: expected square matrices, got {tuple(shape)}")
        return Size((*shape[:-2], shape[-1] * (shape[-1] - 1) // 2))


def _side(shape: Shape) -> int:
    """The D of a triangle of D (D - 1) / 2 numbers."""
    count = shape[-1]
    n = (1 + math.isqrt(1 + 8 * count)) // 2
    if n * (n - 1) // 2 != count:
        raise ValueError(f"CorrCholeskyTransform: {count} numbers are not D (D - 1) / 2 for any D")
    return n
