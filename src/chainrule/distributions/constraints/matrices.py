"""Regions of matrices."""

from __future__ import annotations

import math

from chainrule.backend import K
from chainrule.distributions.constraints.base import Constraint, all_of_last
from chainrule.graph import Box
from chainrule.linalg import eigvalsh
from chainrule.ops.creation.patterns import eye, full, zeros
from chainrule.ops.elementwise.derived import isclose
from chainrule.ops.elementwise.logic import where
from chainrule.tensor import Tensor

__all__ = [
    "corr_cholesky",
    "lower_cholesky",
    "lower_triangular",
    "positive_definite",
    "positive_semidefinite",
    "square",
    "symmetric",
]


class _lower_triangular(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return all_of_last(value.tril() == value, 2)


class _lower_cholesky(_lower_triangular):
    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (value.diagonal(0, -2, -1) > 0).all(-1)


class _corr_cholesky(_lower_cholesky):
    def check(self, value: Tensor) -> Tensor:
        tolerance = 10 * value.shape[-1] * K.rounding_error(value.array.dtype)
        lengths = value.detach().square().sum(-1).sqrt()
        return super().check(value) & ((lengths - 1).abs() < tolerance).all(-1)


class _square(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        full = zeros(value.shape[:-2], device=value.device) == 0
        return full if value.shape[-2] == value.shape[-1] else ~full


class _symmetric(_square):
    def check(self, value: Tensor) -> Tensor:
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        return all_of_last(isclose(value, value.mT, atol=1e-6), 2)


class _positive_semidefinite(_symmetric):
    def check(self, value: Tensor) -> Tensor:
        return (_eigenvalues(value) >= 0).all(-1)


class _positive_definite(_symmetric):
    def check(self, value: Tensor) -> Tensor:
        return (_eigenvalues(value) > 0).all(-1)


def _eigenvalues(value: Tensor) -> Tensor:
    """Of each symmetric matrix; NaN for those that are not, or not finite."""
    value = value.detach()
    *batch, rows, columns = value.shape
    if rows != columns:
        return full((*batch, 1), math.nan)
    known = all_of_last(
        (value - value.mT).abs() <= 1e-6 + 1e-5 * value.abs(), 2
    )  # not for Inf - Inf
    if not isinstance(known.array, Box) and known.all():
        return eigvalsh(value)
    inside = where(known[..., None, None], value, eye(rows, dtype=value.dtype))
    return where(known[..., None], eigvalsh(inside), math.nan)


lower_triangular, lower_cholesky = _lower_triangular(), _lower_cholesky()
corr_cholesky = _corr_cholesky()
square, symmetric = _square(), _symmetric()
positive_semidefinite, positive_definite = _positive_semidefinite(), _positive_definite()
