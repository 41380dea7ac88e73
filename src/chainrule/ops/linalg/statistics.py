"""Distances between rows, covariances and correlations, slopes of samples."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from chainrule.ops.core.rounding import rounds_once
from chainrule.backend import dtypes
from chainrule.ops.core.synonyms import numpy_names
from chainrule.ops.core.promotion import cast, to_floating
from chainrule.ops.elementwise.complex_numbers import complex, conj, imag, real
from chainrule.ops.elementwise.functions import sqrt
from chainrule.ops.elementwise.logic import where
from chainrule.ops.elementwise.options import clamp
from chainrule.ops.creation.patterns import full, triu_indices
from chainrule.ops.index.reading import narrow
from chainrule.ops.index.subscript import numbers_of
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.reduce.norms import p_norm
from chainrule.ops.reduce.reductions import sum
from chainrule.ops.shape.diagonal import diagonal
from chainrule.ops.shape.stacking import cat
from chainrule.ops.shape.views import canonical_dim, canonical_dims, reshape, squeeze, unsqueeze
from chainrule.tensor import Tensor
from chainrule.typing import Dims

__all__ = ["cdist", "corrcoef", "cov", "gradient", "pdist"]
METHODS = ("corrcoef", "cov")
INPLACE: tuple[str, ...] = ()


def cdist(
    x1: Tensor,
    x2: Tensor,
    p: float = 2.0,
    compute_mode: str = "use_mm_for_euclid_dist_if_necessary",
) -> Tensor:
    """The p-norms of the differences of the rows of ``x1`` (..., P, D) and ``x2`` (..., R, D).

    Differences are taken as they are, whatever ``compute_mode``; the gradient is 0 where rows meet.

    >>> import chainrule
    >>> chainrule.cdist(chainrule.tensor([[0.0, 0.0]]), chainrule.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[5., 1.]])
    """
    if x1.ndim < 2 or x2.ndim < 2 or x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(
            "cdist: x1 and x2 must be matrices (or batches) with the same number of columns, got "
            f"{tuple(x1.shape)} and {tuple(x2.shape)}"
        )
    if p < 0:
        raise RuntimeError(f"cdist: only supports non-negative p values, got {p}")
    return p_norm(unsqueeze(x1, -2) - unsqueeze(x2, -3), float(p), -1, False, None)


def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The p-norm of the difference of every two rows of a matrix, in the order of :func:`cdist`'s
    upper triangle."""
    if input.ndim != 2:
        raise RuntimeError(f"pdist: only supports 2D tensors, got shape {tuple(input.shape)}")
    i, j = triu_indices(input.shape[0], input.shape[0], 1)
    return p_norm(input[i] - input[j], float(p), -1, False, None)


def cov(
    input: Tensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """The covariances of the rows of ``input``, whose columns are observations.

    ``fweights`` says how often each was made and ``aweights`` how much it counts.

    >>> import chainrule
    >>> chainrule.cov(chainrule.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    if input.ndim > 2:
        raise RuntimeError(f"cov: expected input to have two or fewer dimensions, got {input.ndim}")
    if input.dtype is dtypes.bool_:
        raise RuntimeError("cov: bool dtype is not supported; convert it with .float()")
    rows = to_floating(input if input.ndim == 2 else reshape(input, (1, -1)))
    n = rows.shape[1]
    w = _weights_of_observations(n, fweights, aweights)
    if w is None:
        centered = rows - sum(rows, -1, True) / n
        weighted, freedom = centered, full((), n - correction, device=rows.device)
    else:
        total = sum(w)
        centered = rows - sum(rows * w, -1, True) / total
        weighted, freedom = centered * w, total - correction
        if aweights is not None and correction:
            freedom = total - correction * sum(w * aweights) / total
    if _holds(freedom <= 0):
        warnings.warn(
            f"cov(): degrees of freedom is <= 0: {freedom.item()}, with correction {correction}; "
            "the correction should be less than the number of observations",
            stacklevel=2,
        )
    return squeeze(matmul(centered, conj(weighted).mT) / where(freedom <= 0, 0, freedom))


def _holds(condition: Tensor) -> bool:
    """Whether any element is true (not known inside vmap, where it counts as no)."""
    numbers = numbers_of(condition)
    return numbers is not None and bool(numbers.any())


def _weights_of_observations(
    n: int, fweights: Tensor | None, aweights: Tensor | None
) -> Tensor | None:
    """The product of how often and how much each of the n observations counts."""
    kinds = (("fweights", fweights, "integral"), ("aweights", aweights, "floating point"))
    product: Tensor | None = None
    for name, w, kind in kinds:
        if w is None:
            continue
        if w.ndim > 1 or w.numel() != n:
            raise RuntimeError(
                f"cov: expected {name} to be a vector of {n} numbers, one for each observation, "
                f"got shape {tuple(w.shape)}"
            )
        if w.is_floating_point() is (kind == "integral") or w.is_complex():
            raise RuntimeError(f"cov: expected {name} to have {kind} dtype, got {w.dtype}")
        if n and _holds(w < 0):
            raise RuntimeError(f"cov: {name} cannot be negative")
        product = w if product is None else product * w
    if product is not None and _holds(sum(product) == 0):
        raise RuntimeError("cov: weights sum to zero, can't be normalized")
    return product


def corrcoef(input: Tensor) -> Tensor:
    """The correlation coefficients of the rows of ``input``, in both parts within [-1, 1]."""
    c = cov(input)
    if c.ndim == 0:
        return c / c
    d = sqrt(real(diagonal(c)))
    c = c / unsqueeze(d, -1) / unsqueeze(d, 0)
    if c.is_complex():
        return complex(clamp(real(c), -1, 1), clamp(imag(c), -1, 1))
    return clamp(c, -1, 1)


@rounds_once
@numpy_names
def gradient(
    input: Tensor,
    *,
    spacing: float | Sequence[float | Tensor] | Tensor | None = 1,
    dim: Dims = None,
    edge_order: int = 1,
) -> tuple[Tensor, ...]:
    """The slopes along each dimension (or those in ``dim``) of a function given by samples.

    ``spacing`` is their distance, one for each dimension, or their coordinates. At the edges the
    slope is that of the line (``edge_order=1``) or the parabola (2) through the last samples.

    >>> import chainrule
    >>> chainrule.gradient(chainrule.tensor([0.0, 1.0, 4.0, 9.0]))
    (tensor([1., 2., 4., 5.]),)
    """
    if edge_order not in (1, 2):
        raise RuntimeError(
            f"gradient: only supports edge_order=1 and edge_order=2, got {edge_order}"
        )
    x = to_floating(input)
    dims = canonical_dims("gradient", dim, x.ndim)
    spacing = 1 if spacing is None else spacing
    steps: list[float | Tensor]
    if isinstance(spacing, Sequence):
        steps = list(spacing)
    else:
        steps = [spacing] if isinstance(spacing, Tensor) else [spacing] * len(dims)
    if len(steps) != len(dims):
        raise RuntimeError(
            f"gradient: expected spacing to have one entry for each of {len(dims)} dimensions, got "
            f"{len(steps)}"
        )
    return tuple(_slope(x, d, h, edge_order) for d, h in zip(dims, steps, strict=True))


def _slope(x: Tensor, dim: int, spacing: float | Tensor, edge_order: int) -> Tensor:
    """The slope along one dimension, of parabolas through three neighbours inside."""
    d, n = canonical_dim("gradient", dim, x.ndim), x.shape[dim]
    if n < edge_order + 1:
        raise RuntimeError(
            f"gradient: each dimension size must be at least edge_order+1 = {edge_order + 1}, got "
            f"{n} in shape {tuple(x.shape)}"
        )
    share: float | Tensor = 0.5
    change = narrow(x, d, 1, n - 1) - narrow(x, d, 0, n - 1)
    if isinstance(spacing, Tensor) and spacing.ndim:
        h = narrow(spacing, 0, 1, n - 1) - narrow(spacing, 0, 0, n - 1)
        step = reshape(cast(h, x.dtype), (-1, *[1] * (-1 - d)))
        slopes = change / step
        left, right = narrow(step, d, 0, n - 2), narrow(step, d, 1, n - 2)
        share = right / (left + right)
    else:
        slopes = change / spacing
    before, after = narrow(slopes, d, 0, n - 2), narrow(slopes, d, 1, n - 2)
    middle = before * share + after * (1 - share)
    first, last = narrow(slopes, d, 0, 1), narrow(slopes, d, n - 2, 1)
    if edge_order == 2:
        # The slope of a parabola is linear: its value at the middle of an interval is the quotient.
        first = 2 * first - narrow(middle, d, 0, 1)
        last = 2 * last - narrow(middle, d, n - 3, 1)
    return cat([first, middle, last], d)
