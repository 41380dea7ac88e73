"""Principal components: projection on the directions of largest variance, and whitening."""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple, Self

from chainrule.backend import K, dtypes
from chainrule.data.preprocess import Transform, check_finite, floating, training_part
from chainrule.ops.elementwise.complex_numbers import abs
from chainrule.ops.linalg.decompositions import qr, svd
from chainrule.ops.elementwise.functions import rsqrt, sign, sqrt
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.index.reading import gather
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.reduce.order import argmax
from chainrule.ops.core.promotion import cast
from chainrule.ops.reduce.reductions import mean
from chainrule.ops.shape.views import flatten, reshape
from chainrule.tensor import Tensor
from chainrule.typing import ArrayLike

__all__ = ["PCA", "Whitening"]


class _Principal(NamedTuple):
    """Directions of decreasing variance (rows), their variances, and how many are not noise."""

    components: Tensor
    variances: Tensor
    rank: int


def _principal(centered: Tensor, eps: float) -> _Principal:
    """The principal components of centered data (N, D), with n - 1 in the variances.

    Of many rows only the triangular factor matters. Each direction points to where its largest
    entry is positive, so that the result does not depend on the library.
    """
    n, d = centered.shape
    factor = qr(centered, "r").R if n > d else centered
    _, s, vh = svd(factor, full_matrices=False)
    largest = argmax(abs(vh), 1, keepdim=True)
    vh = vh * sign(gather(vh, 1, largest))
    floor = float(s[0]) * max(n, d) * eps
    rank = sum([v > floor for v in s.tolist()])
    return _Principal(vh, s**2 / (n - 1), rank)


def _machine_eps(x: ArrayLike) -> float:
    """The rounding of the data's own type: what is smaller is noise."""
    x = as_tensor(x)
    return K.rounding_error((x.dtype if x.is_floating_point() else dtypes.float64).array_dtype)


class _Rotation(Transform):
    """What PCA and whitening share: centering and flattening of the samples."""

    fitted_names: ClassVar[tuple[str, ...]] = ("mean", "components", "variances")

    def _center(self, x: ArrayLike) -> tuple[Tensor, Tensor]:
        """The training part, centered and flattened, and the mean in the shape of a sample."""
        x = training_part(self, x, least=2)
        center = mean(x, 0)
        return flatten(x - center, 1), center

    def _flat(self, x: ArrayLike) -> Tensor:
        """Samples, checked, centered and flattened."""
        x = check_finite(self, self._samples(x))
        return flatten(x - cast(self.mean, x.dtype), 1)

    def _samples(self, x: ArrayLike) -> Tensor:
        """The input, if it is of the shape that was fitted."""
        self.need_fit()
        x, expected = floating(self, x), tuple(self.mean.shape)
        if tuple(x.shape[1:]) != expected:
            raise ValueError(
                f"{type(self).__name__}: fitted on samples of shape {expected}, got "
                f"{tuple(x.shape[1:])} (shape {tuple(x.shape)})"
            )
        return x

    def _restore(self, flat: Tensor) -> Tensor:
        """Samples from flat ones: in their shape, and with their mean."""
        return reshape(flat, (flat.shape[0], *self.mean.shape)) + cast(self.mean, flat.dtype)

    def _like(self, name: str, x: Tensor) -> Tensor:
        return cast(getattr(self, name), x.dtype)


class PCA(_Rotation):
    """Projection on the directions of largest variance::

        y = (x - mean) components'            x ~ y components + mean

    ``components`` has orthonormal rows (n_components, D), in order of decreasing variance; each
    points to where its largest entry is positive. ``inverse`` is the reconstruction: the best one
    of this rank in squares, and exact if all directions with variance are kept. Samples of more
    dimensions, such as images, are flattened; ``inverse`` restores their shape.

    Args:
        n_components: how many directions to keep; a float between 0 and 1 keeps as many as that
            fraction of the variance needs; all by default.

    >>> import chainrule
    >>> pca = PCA(1).fit(chainrule.tensor([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]))
    >>> pca.components.float(), pca.explained_variance_ratio.float()
    (tensor([[0.7071, 0.7071]]), tensor([1.]))
    """

    fitted_names = (*_Rotation.fitted_names, "total")

    def __init__(self, n_components: int | float | None = None):
        super().__init__()
        _check_count("PCA", n_components)
        self.n_components = n_components

    def fit(self, x: ArrayLike) -> Self:
        """Learns the mean and the directions of largest variance."""
        flat, center = self._center(x)
        found = _principal(flat, 0.0)
        k = _how_many(self, self.n_components, found.variances, min(flat.shape))
        return self.keep(
            mean=center,
            components=found.components[:k],
            variances=found.variances[:k],
            total=found.variances.sum(),
        )

    @property
    def explained_variance(self) -> Tensor:
        """The variance along each direction (n - 1 in its denominator)."""
        self.need_fit()
        return self.variances

    @property
    def explained_variance_ratio(self) -> Tensor:
        """The part of the whole variance that lies along each direction."""
        self.need_fit()
        return self.variances / self.total

    def forward(self, x: ArrayLike) -> Tensor:
        """The coordinates along the directions, (N, n_components)."""
        flat = self._flat(x)
        return matmul(flat, self._like("components", flat).mT)

    def inverse(self, x: ArrayLike) -> Tensor:
        """The reconstruction from coordinates."""
        y = _coordinates(self, x)
        return self._restore(matmul(y, self._like("components", y)))

    def extra_repr(self) -> str:
        return "" if self.n_components is None else f"n_components={self.n_components}"


class Whitening(_Rotation):
    """Makes columns uncorrelated and of variance 1: the covariance of the result is I.

    With V the directions of largest variance (columns) and L the variances along them::

        zca:  y = (x - mean) V (L + eps)^(-1/2) V'
        pca:  y = (x - mean) V (L + eps)^(-1/2)

    For centered data X (one sample in a row) and eps = 0, the first is y = X W with W = sqrt(n - 1)
    (X'X)^(-1/2), of all whitening matrices the one that changes the data least (Bell and Sejnowski,
    1997). Directions in which the training part does not vary are left out: "pca" then has fewer
    columns, and "zca", whose shape is that of the input, is zero along them (for eps = 0; else
    1 / sqrt(eps) is its factor there). Samples of more dimensions are flattened.

    Args:
        method: "zca" or "pca".
        eps: added to the variances, so that directions of little variance are not blown up.
        n_components: for "pca", how many directions to keep, as in :class:`PCA`.

    >>> import chainrule
    >>> x = chainrule.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 2.0], [0.0, -2.0]])
    >>> y = Whitening().fit_transform(x)
    >>> chainrule.allclose(y.T @ y / 3, chainrule.eye(2), atol=1e-6)
    True
    """

    def __init__(
        self,
        method: str = "zca",
        *,
        eps: float = 0.0,
        n_components: int | float | None = None,
    ):
        super().__init__()
        if method not in ("zca", "pca"):
            raise ValueError(f"Whitening: method must be 'zca' or 'pca', got {method!r}")
        if not eps >= 0:
            raise ValueError(f"Whitening: eps must not be negative, got {eps}")
        if method == "zca" and n_components is not None:
            raise ValueError("Whitening: n_components is for method='pca'; zca keeps the shape")
        _check_count("Whitening", n_components)
        self.method, self.eps, self.n_components = method, float(eps), n_components

    def fit(self, x: ArrayLike) -> Self:
        """Learns the mean and the directions with their variances."""
        flat, center = self._center(x)
        components, variances, rank = _principal(flat, _machine_eps(x))
        if not rank:
            raise ValueError("Whitening: all columns are constant, there is nothing to whiten")
        k = _how_many(self, self.n_components, variances[:rank], rank)
        return self.keep(mean=center, components=components[:k], variances=variances[:k])

    def forward(self, x: ArrayLike) -> Tensor:
        """The whitened input."""
        flat = self._flat(x)
        components = self._like("components", flat)
        factors = rsqrt(self._like("variances", flat) + self.eps)
        y = matmul(flat, components.mT)
        if self.method == "pca":
            return y * factors
        outside = self.eps**-0.5 if self.eps else 0.0  # the factor where nothing varied
        y = matmul(y * (factors - outside), components)
        return reshape(y + outside * flat if outside else y, (y.shape[0], *self.mean.shape))

    def inverse(self, x: ArrayLike) -> Tensor:
        """The input from whitened values (without what lay along directions left out)."""
        self.need_fit()
        if self.method == "pca":
            y = _coordinates(self, x)
            factors = sqrt(self._like("variances", y) + self.eps)
            return self._restore(matmul(y * factors, self._like("components", y)))
        flat = flatten(self._samples(x), 1)
        components, outside = self._like("components", flat), math.sqrt(self.eps)
        factors = sqrt(self._like("variances", flat) + self.eps)
        y = matmul(matmul(flat, components.mT) * (factors - outside), components)
        return self._restore(y + outside * flat if outside else y)

    def extra_repr(self) -> str:
        told = [repr(self.method)] + [f"eps={self.eps:g}"] * (self.eps > 0)
        return ", ".join(told + [f"n_components={self.n_components}"] * bool(self.n_components))


def _coordinates(transform: Transform, x: ArrayLike) -> Tensor:
    """An input of ``inverse``: (N, number of components)."""
    transform.need_fit()
    x, k = floating(transform, x), int(transform.components.shape[0])
    if x.ndim != 2 or x.shape[1] != k:
        raise ValueError(
            f"{type(transform).__name__}.inverse: expected shape (N, {k}), got {tuple(x.shape)}"
        )
    return x


def _check_count(op: str, wanted: int | float | None) -> None:
    if wanted is None:
        return
    is_count = isinstance(wanted, int) and not isinstance(wanted, bool) and wanted >= 1
    if not is_count and not (isinstance(wanted, float) and 0 < wanted < 1):
        raise ValueError(
            f"{op}: n_components must be a positive int, or a float between 0 and 1 (a fraction of "
            f"the variance), got {wanted!r}"
        )


def _how_many(
    transform: Transform, wanted: int | float | None, variances: Tensor, most: int
) -> int:
    """The number of directions to keep."""
    if wanted is None:
        return most
    if isinstance(wanted, int):
        if wanted > most:
            raise ValueError(
                f"{type(transform).__name__}: n_components={wanted}, but the training part has "
                f"only {most} directions (its rank, or the smaller of samples and columns)"
            )
        return wanted
    shares = (variances.cumsum(0) / variances.sum()).tolist()
    return min(1 + sum([s <= wanted for s in shares]), most)
