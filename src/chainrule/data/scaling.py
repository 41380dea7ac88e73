"""Scaling of columns, or of the channels of images, each by numbers of its own."""

from __future__ import annotations

from typing import Self

from chainrule.data.preprocess import Transform, training_part
from chainrule.ops.creation.patterns import ones_like, zeros_like
from chainrule.ops.elementwise.functions import sqrt
from chainrule.ops.elementwise.logic import where
from chainrule.ops.elementwise.options import clamp
from chainrule.ops.creation.from_data import as_tensor, tensor
from chainrule.ops.reduce.order import amax, amin
from chainrule.ops.reduce.quantiles import quantile
from chainrule.ops.reduce.reductions import mean
from chainrule.ops.shape.views import movedim, reshape
from chainrule.tensor import Tensor
from chainrule.typing import ArrayLike

__all__ = ["MinMaxScaler", "RobustScaler", "StandardScaler", "TargetScaler"]


def _columns(x: Tensor) -> Tensor:
    """(N, D) or (N, C, ...) as (values, columns)."""
    return x if x.ndim == 2 else reshape(movedim(x, 1, -1), (-1, x.shape[1]))


def _or_one(scale: Tensor, varies: Tensor) -> Tensor:
    """A scale to divide by: 1 for a column that does not vary."""
    return where(varies & (scale > 0), scale, ones_like(scale))


class MinMaxScaler(Transform):
    """Maps each column linearly to ``feature_range``::

        y = low + (high - low) * (x - minimum) / (maximum - minimum)

    with the smallest and the largest value of the training part; a constant column becomes low.
    Values outside the range of the training part leave the range, unless ``clip`` (then
    ``inverse`` cannot restore them).

    >>> import chainrule
    >>> scaler = MinMaxScaler().fit(chainrule.tensor([[0.0, 10.0], [4.0, 30.0]]))
    >>> scaler(chainrule.tensor([[1.0, 20.0]]))
    tensor([[0.2500, 0.5000]])
    """

    fitted_names = ("minimum", "maximum")

    def __init__(self, feature_range: tuple[float, float] = (0.0, 1.0), *, clip: bool = False):
        super().__init__()
        low, high = feature_range
        if not low < high:
            raise ValueError(
                "MinMaxScaler: feature_range must be (low, high) with low < high, got "
                f"{tuple(feature_range)}"
            )
        self.low, self.high, self.clip = float(low), float(high), clip

    def fit(self, x: ArrayLike) -> Self:
        """Learns the smallest and the largest value of each column."""
        values = _columns(training_part(self, x))
        return self.keep(minimum=amin(values, 0), maximum=amax(values, 0))

    def _width(self, x: Tensor) -> Tensor:
        width = self.fitted("maximum", x) - self.fitted("minimum", x)
        return _or_one(width, width > 0)

    def forward(self, x: ArrayLike) -> Tensor:
        """The scaled input."""
        x = self.checked(x, "minimum")
        share = (x - self.fitted("minimum", x)) / self._width(x)
        y = self.low + (self.high - self.low) * share
        return clamp(y, self.low, self.high) if self.clip else y

    def inverse(self, x: ArrayLike) -> Tensor:
        """The input from its scaled values."""
        x = self.shaped(x, "minimum")
        share = (x - self.low) / (self.high - self.low)
        return share * self._width(x) + self.fitted("minimum", x)

    def extra_repr(self) -> str:
        return f"feature_range=({self.low:g}, {self.high:g})" + ", clip=True" * self.clip


class _Affine(Transform):
    """(x - center) / scale for each column; ``fitted_names`` are the names of the two."""

    def forward(self, x: ArrayLike) -> Tensor:
        """The scaled input."""
        center, scale = self.fitted_names
        x = self.checked(x, center)
        return (x - self.fitted(center, x)) / self.fitted(scale, x)

    def inverse(self, x: ArrayLike) -> Tensor:
        """The input from its scaled values."""
        center, scale = self.fitted_names
        x = self.shaped(x, center)
        return x * self.fitted(scale, x) + self.fitted(center, x)


class StandardScaler(_Affine):
    """The z-score of each column::

        y = (x - mean) / (std + eps)

    with the mean and the standard deviation (n in its denominator) of the training part. A constant
    column is only centered. ``with_std=False`` centers alone, ``with_mean=False`` scales alone. The
    fitted numbers are ``mean`` and ``scale``.

    >>> import chainrule
    >>> scaler = StandardScaler().fit(chainrule.tensor([[1.0, 5.0], [3.0, 5.0]]))
    >>> scaler(chainrule.tensor([[4.0, 5.0]]))
    tensor([[2., 0.]])
    """

    fitted_names = ("mean", "scale")

    def __init__(self, *, with_mean: bool = True, with_std: bool = True, eps: float = 0.0):
        super().__init__()
        if not eps >= 0:
            raise ValueError(f"{type(self).__name__}: eps must not be negative, got {eps}")
        self.with_mean, self.with_std, self.eps = with_mean, with_std, float(eps)

    def fit(self, x: ArrayLike) -> Self:
        """Learns the mean and the standard deviation of each column."""
        values = _columns(training_part(self, x))
        least = amin(values, 0)
        varies = amax(values, 0) > least
        # The mean of equal numbers may be rounded, and then be none of them.
        center = where(varies, mean(values, 0), least)
        spread = sqrt(mean((values - center) ** 2, 0))
        scale = _or_one(spread + self.eps, varies)
        return self.keep(
            mean=center if self.with_mean else zeros_like(center),
            scale=scale if self.with_std else ones_like(scale),
        )

    def extra_repr(self) -> str:
        told = [f"{n}=False" for n in ("with_mean", "with_std") if not getattr(self, n)]
        return ", ".join(told + [f"eps={self.eps:g}"] * (self.eps > 0))


class TargetScaler(StandardScaler):
    """The z-score of targets of shape (N,) or (N, K), and a network's outputs back on their scale.

    For targets (N,), ``inverse`` takes outputs (N, 1) as well as (N,); shapes stay what they are.

    >>> import chainrule
    >>> scaler = TargetScaler().fit(chainrule.tensor([10.0, 30.0]))
    >>> scaler(chainrule.tensor([10.0, 20.0])), scaler.inverse(chainrule.tensor([[0.5]]))
    (tensor([-1.,  0.]), tensor([[25.]]))
    """

    def __init__(self, *, eps: float = 0.0):
        super().__init__(eps=eps)

    def fit(self, x: ArrayLike) -> Self:
        """Learns the mean and the standard deviation of each target."""
        return super().fit(_as_columns(x))

    def forward(self, x: ArrayLike) -> Tensor:
        """The scaled targets."""
        return reshape(super().forward(_as_columns(x)), tuple(as_tensor(x).shape))

    def inverse(self, x: ArrayLike) -> Tensor:
        """Targets from scaled ones, or from the outputs of a network."""
        return reshape(super().inverse(_as_columns(x)), tuple(as_tensor(x).shape))


def _as_columns(x: ArrayLike) -> Tensor:
    x = as_tensor(x)
    return reshape(x, (-1, 1)) if x.ndim == 1 else x


class RobustScaler(_Affine):
    """Scaling that outliers do not move::

        y = (x - median) / (q_high - q_low)

    with the quantiles of the training part at the percentages ``quantile_range``. A column whose
    quantiles are equal is only centered.

    >>> import chainrule
    >>> scaler = RobustScaler().fit(chainrule.tensor([[1.0], [2.0], [3.0], [4.0], [1000.0]]))
    >>> scaler(chainrule.tensor([[5.0]]))
    tensor([[1.]])
    """

    fitted_names = ("center", "scale")

    def __init__(
        self,
        *,
        with_centering: bool = True,
        with_scaling: bool = True,
        quantile_range: tuple[float, float] = (25.0, 75.0),
    ):
        super().__init__()
        low, high = quantile_range
        if not 0 <= low < high <= 100:
            raise ValueError(
                "RobustScaler: quantile_range must be two percentages, 0 <= low < high <= 100, got "
                f"{tuple(quantile_range)}"
            )
        self.with_centering, self.with_scaling = with_centering, with_scaling
        self.quantile_range = (float(low), float(high))

    def fit(self, x: ArrayLike) -> Self:
        """Learns the median and the distance of the quantiles of each column."""
        values = _columns(training_part(self, x))
        low, high = (q / 100 for q in self.quantile_range)
        wanted = tensor([low, 0.5, high], dtype=values.dtype)
        least, center, most = quantile(values, wanted, 0)
        scale = _or_one(most - least, most > least)
        return self.keep(
            center=center if self.with_centering else zeros_like(center),
            scale=scale if self.with_scaling else ones_like(scale),
        )

    def extra_repr(self) -> str:
        told = [f"{n}=False" for n in ("with_centering", "with_scaling") if not getattr(self, n)]
        low, high = self.quantile_range
        return ", ".join([*told, f"quantile_range=({low:g}, {high:g})"])
