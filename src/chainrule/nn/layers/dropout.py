"""Dropout: parts of the activations are left out at random in training.

``p`` is the probability to drop, as in PyTorch; a course that calls p the probability to keep means
1 - p.
"""

from __future__ import annotations

import math
import warnings

from chainrule.nn.module.base import Module
from chainrule.ops.core.arguments import placed_like
from chainrule.ops.creation.sampling import mask
from chainrule.tensor import Tensor

__all__ = [
    "AlphaDropout",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "FeatureAlphaDropout",
    "UnscaledDropout",
    "alpha_dropout",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "feature_alpha_dropout",
    "unscaled_dropout",
]

# Where SELU saturates: lambda * alpha, with the sign turned.
_SATURATION = 1.7580993408473766


# --- functions ------------------------------------------------------------------------------------


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """x * d / (1 - p), d being 0 with probability p and else 1; x itself if not in training.

    The division keeps the mean, so that nothing has to be scaled in evaluation.

    >>> from chainrule import nn, ones
    >>> sorted(set(nn.functional.dropout(ones(100), 0.5).tolist()))
    [0.0, 2.0]
    """
    _check_probability("dropout", p)
    if not training or p == 0:
        return input
    return _masked("dropout", input, tuple(input.shape), p, inplace)


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """x[n, c] * d[n, c] / (1 - p): whole channels of (N, C, L) or (C, L) are left out, where d is 0
    with probability p and else 1."""
    _check_probability("dropout1d", p)
    if input.ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D input of shape "
            f"{tuple(input.shape)}; it drops the channels of (N, C, L) or (C, L)"
        )
    return _feature_dropout("dropout1d", input, input.ndim - 1, p, training, inplace)


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """x[n, c] * d[n, c] / (1 - p): whole channels of (N, C, H, W) are left out, where d is 0 with
    probability p and else 1.

    Three dimensions are taken for (N, C, L), with a warning, as in PyTorch.
    """
    _check_probability("dropout2d", p)
    if input.ndim == 3:
        warnings.warn(
            "dropout2d: Received a 3D input, which is interpreted as shape (N, C, L); use "
            "dropout1d for that, and unsqueeze(0) for one image (C, H, W)",
            stacklevel=2,
        )
    elif input.ndim != 4:
        _warn_of_rank("dropout2d", input, "(N, C, H, W)")
    return _feature_dropout("dropout2d", input, 2, p, training, inplace)


def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """x[n, c] * d[n, c] / (1 - p): whole channels of (N, C, Z, H, W) or (C, Z, H, W) are left out,
    where d is 0 with probability p and else 1."""
    _check_probability("dropout3d", p)
    if input.ndim not in (4, 5):
        _warn_of_rank("dropout3d", input, "(N, C, Z, H, W)")
    kept = 1 if input.ndim == 4 else 2
    return _feature_dropout("dropout3d", input, kept, p, training, inplace)


def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """a (x d + alpha' (1 - d)) + b: dropped values are alpha' = -1.7581, where SELU saturates.

    With the probability to keep q = 1 - p, a = (q + alpha'^2 q (1 - q))^(-1/2) and
    b = -a (1 - q) alpha' keep mean 0 and variance 1.
    """
    _check_probability("alpha_dropout", p)
    return _alpha("alpha_dropout", input, tuple(input.shape), p, training, inplace)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """a (x d + alpha' (1 - d)) + b with one d for each channel of (N, C, *): see
    :func:`alpha_dropout`."""
    _check_probability("feature_alpha_dropout", p)
    if not training or p == 0:
        return input
    shape = _channels("feature_alpha_dropout", input, 2)
    return _alpha("feature_alpha_dropout", input, shape, p, training, inplace)


def unscaled_dropout(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """x * d without the division: the form of dropout that scales the weights in evaluation.

    See :func:`chainrule.nn.functional.weight_scaled`.
    """
    _check_probability("unscaled_dropout", p)
    if not training or p == 0:
        return input
    kept = mask("unscaled_dropout", tuple(input.shape), 1 - p, input.dtype, 1.0)
    return input * placed_like(input, kept)


# --- what the functions share ---------------------------------------------------------------------


def _check_probability(op: str, p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"{op}: dropout probability has to be between 0 and 1, but got {p}")


def _check_floating(op: str, input: Tensor) -> None:
    if not (input.is_floating_point() or input.is_complex()):
        raise RuntimeError(
            f"{op}: result type Float can't be cast to the desired output type {input.dtype}; "
            "convert the input with .float()"
        )


def _warn_of_rank(op: str, input: Tensor, expected: str) -> None:
    warnings.warn(
        f"{op}: Received a {input.ndim}-D input of shape {tuple(input.shape)}, expected "
        f"{expected}; use dropout to drop single elements",
        stacklevel=3,
    )


def _channels(op: str, input: Tensor, kept: int) -> tuple[int, ...]:
    """The shape of a mask with one entry for each channel."""
    if input.ndim < 2:
        raise RuntimeError(
            f"{op}: Feature dropout requires at least 2 dimensions in the input, got shape "
            f"{tuple(input.shape)}"
        )
    return (*input.shape[:kept], *[1] * (input.ndim - kept))


def _feature_dropout(
    op: str, input: Tensor, kept: int, p: float, training: bool, inplace: bool
) -> Tensor:
    shape = _channels(op, input, kept)
    return _masked(op, input, shape, p, inplace) if training and p > 0 else input


def _masked(op: str, input: Tensor, shape: tuple[int, ...], p: float, inplace: bool) -> Tensor:
    _check_floating(op, input)
    factors = mask(op, shape, 1 - p, input.dtype, 1 / (1 - p) if p < 1 else 1.0)
    factors = placed_like(input, factors)
    return input.mul_(factors) if inplace else input * factors


def _alpha(
    op: str, input: Tensor, shape: tuple[int, ...], p: float, training: bool, inplace: bool
) -> Tensor:
    if not training or p == 0:
        return input
    _check_floating(op, input)
    if p == 1:
        return input.mul_(0.0) if inplace else input * 0.0
    a = 1 / math.sqrt((_SATURATION**2 * p + 1) * (1 - p))
    kept = placed_like(input, mask(op, shape, 1 - p, input.dtype, 1.0))
    shift = (kept - 1) * (_SATURATION * a) + _SATURATION * a * p
    return input.mul_(kept * a).add_(shift) if inplace else input * (kept * a) + shift


# --- layers ---------------------------------------------------------------------------------------


class DropoutLayer(Module):
    """What all forms of dropout have: the probability to drop, and whether to write in place."""

    def __init__(self, p: float = 0.5, inplace: bool = False):
        super().__init__()
        _check_probability(type(self).__name__, p)
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(DropoutLayer):
    """Dropout of single elements: y = x * d / (1 - p) in training, y = x else.

    d is 0 with probability p and else 1, one for each element.

    Shape: (*), the same out.

    Args:
        p: probability of an element to be dropped (not to be kept).
        inplace: whether to write into the input.

    >>> from chainrule import nn, ones
    >>> nn.Dropout(0.2).eval()(ones(3))
    tensor([1., 1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return dropout(input, self.p, self.training, self.inplace)


class Dropout1d(DropoutLayer):
    """Dropout of whole channels: y[n, c] = x[n, c] * d[n, c] / (1 - p) in training, y = x else.

    d[n, c] is 0 with probability p and else 1, one for each channel of each sample.

    Shape: (N, C, L) or (C, L), the same out.

    Args:
        p: probability of a channel to be dropped (not to be kept).
        inplace: whether to write into the input.

    >>> from chainrule import nn, ones
    >>> nn.Dropout1d(0.2).eval()(ones(2, 3, 4)).shape
    chainrule.Size([2, 3, 4])
    """

    def forward(self, input: Tensor) -> Tensor:
        return dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(DropoutLayer):
    """Dropout of whole channels: y[n, c] = x[n, c] * d[n, c] / (1 - p) in training, y = x else.

    d[n, c] is 0 with probability p and else 1, one for each channel of each sample.

    Shape: (N, C, H, W), the same out.

    Args:
        p: probability of a channel to be dropped (not to be kept).
        inplace: whether to write into the input.

    >>> from chainrule import nn, ones
    >>> nn.Dropout2d(0.2).eval()(ones(2, 3, 4, 4)).shape
    chainrule.Size([2, 3, 4, 4])
    """

    def forward(self, input: Tensor) -> Tensor:
        return dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(DropoutLayer):
    """Dropout of whole channels: y[n, c] = x[n, c] * d[n, c] / (1 - p) in training, y = x else.

    d[n, c] is 0 with probability p and else 1, one for each channel of each sample.

    Shape: (N, C, Z, H, W) or (C, Z, H, W), the same out.

    Args:
        p: probability of a channel to be dropped (not to be kept).
        inplace: whether to write into the input.

    >>> from chainrule import nn, ones
    >>> nn.Dropout3d(0.2).eval()(ones(2, 3, 4, 4, 4)).shape
    chainrule.Size([2, 3, 4, 4, 4])
    """

    def forward(self, input: Tensor) -> Tensor:
        return dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(DropoutLayer):
    """Dropout for SELU: y = a (x d + alpha' (1 - d)) + b keeps mean 0 and variance 1.

    alpha' = -1.7581 is where SELU saturates; a = (q + alpha'^2 q (1 - q))^(-1/2) and
    b = -a (1 - q) alpha' with q = 1 - p; d is 0 with probability p and else 1. Rates of 0.05 and
    0.1 are usual.

    Shape: (*), the same out.

    Args:
        p: probability of an element to be dropped (not to be kept).
        inplace: whether to write into the input.

    >>> from chainrule import nn, ones
    >>> nn.AlphaDropout(0.05).eval()(ones(3))
    tensor([1., 1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(DropoutLayer):
    """Dropout of whole channels for SELU: y = a (x d + alpha' (1 - d)) + b.

    a, b and alpha' are those of :class:`AlphaDropout`; d is 0 with probability p and else 1, one
    for each channel of each sample.

    Shape: (N, C, *), the same out.

    Args:
        p: probability of a channel to be dropped (not to be kept).
        inplace: whether to write into the input.

    >>> from chainrule import nn, ones
    >>> nn.FeatureAlphaDropout(0.05).eval()(ones(2, 3, 4)).shape
    chainrule.Size([2, 3, 4])
    """

    def forward(self, input: Tensor) -> Tensor:
        return feature_alpha_dropout(input, self.p, self.training, self.inplace)


# --- dropout that scales the weights --------------------------------------------------------------


class UnscaledDropout(DropoutLayer):
    """The older form of dropout, without division: y = x * d in training, y = x else.

    The activations that a unit sees in evaluation are larger than in training by 1 / (1 - p), so
    its weights must be multiplied by 1 - p: see :func:`chainrule.nn.functional.weight_scaled`.

    Shape: (*), the same out.

    Args:
        p: probability of an element to be dropped (not to be kept).

    >>> from chainrule import nn, ones
    >>> nn.UnscaledDropout(0.2).eval()(ones(3))
    tensor([1., 1., 1.])
    """

    def __init__(self, p: float = 0.5):
        super().__init__(p)

    def forward(self, input: Tensor) -> Tensor:
        return unscaled_dropout(input, self.p, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}"
