"""Sliding windows over time series."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainrule.data.dataset import Dataset, Indices, rows
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.index.reading import getitem, narrow
from chainrule.ops.shape.padding import unfold
from chainrule.ops.shape.views import movedim
from chainrule.tensor import Tensor
from chainrule.typing import ArrayLike

__all__ = ["WindowDataset"]


class WindowDataset(Dataset[tuple[Tensor, ...]]):
    """Windows of ``window`` steps of a time series, each with the ``horizon`` steps behind it.

    ::

        x_i = series[t : t + window]                              with t = i * stride
        y_i = targets[t + window + gap : t + window + gap + horizon]

    The series has shape (L,) or (L, C): time first, then channels. Nothing is copied: ``inputs``
    and ``targets`` are views of the series, and only a batch is a new tensor.

    Args:
        series: the time series, a tensor or an array.
        window: the number of steps in a window.
        horizon: the number of steps to predict; 0 for windows alone, such as an autoencoder's.
        stride: the number of steps from one window to the next; ``stride=window`` chops the series
            into pieces that do not overlap.
        gap: the steps between a window and its targets; negative ones lie inside the window, so
            that ``horizon=1, gap=-1`` is the label of the window's last step.
        targets: another series of the same length L to predict, instead of this one.
        target_channels: which channels to predict (all); a number for one of them.
        channels_first: windows (C, window), as convolutions take them, instead of (window, C).

    Several series are ``ConcatDataset([WindowDataset(s, ...) for s in series])``.

    >>> import chainrule
    >>> data = WindowDataset(chainrule.arange(6), window=3)
    >>> len(data), data[0]
    (3, (tensor([0, 1, 2]), tensor([3])))
    """

    inputs: Tensor
    targets: Tensor | None

    def __init__(
        self,
        series: ArrayLike,
        window: int,
        horizon: int = 1,
        stride: int = 1,
        *,
        gap: int = 0,
        targets: ArrayLike | None = None,
        target_channels: int | Sequence[int] | None = None,
        channels_first: bool = False,
    ):
        series = _series("series", series)
        _check_steps(window, horizon, stride, gap)
        if horizon == 0 and (targets is not None or target_channels is not None or gap):
            raise ValueError(
                "WindowDataset: horizon=0 means windows without targets; leave out targets, "
                "target_channels and gap, or give a horizon"
            )
        self.window, self.horizon, self.stride, self.gap = window, horizon, stride, gap
        steps, needed = len(series), window + max(gap + horizon, 0)
        if steps < needed:
            raise ValueError(
                f"WindowDataset: a series of {steps} steps is too short: window={window}, "
                f"gap={gap} and horizon={horizon} need {needed}"
            )
        count = (steps - needed) // stride + 1
        self.inputs = _windows(series, 0, window, stride, count, channels_first)
        self.targets = None
        if horizon:
            goal = _goal(series, targets, target_channels)
            self.targets = _windows(goal, window + gap, horizon, stride, count, channels_first)

    def __len__(self) -> int:
        return len(self.inputs)

    def _parts(self) -> list[Tensor]:
        return [self.inputs] if self.targets is None else [self.inputs, self.targets]

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple([part[index] for part in self._parts()])

    def take(self, indices: Indices) -> tuple[Tensor, ...]:
        """The windows and their targets, as copies."""
        return tuple([rows(part, indices) for part in self._parts()])


def _windows(
    series: Tensor, start: int, size: int, stride: int, count: int, channels_first: bool
) -> Tensor:
    """A view of ``count`` windows from ``start`` on: (count, size) or (count, size, C)."""
    span = narrow(series, 0, start, (count - 1) * stride + size)
    view = unfold(span, 0, size, stride)
    return view if channels_first else movedim(view, -1, 1)


def _series(name: str, series: ArrayLike) -> Tensor:
    series = as_tensor(series)
    if series.ndim not in (1, 2):
        raise ValueError(
            f"WindowDataset: {name} must have shape (L,) or (L, C), time first, got "
            f"{tuple(series.shape)}"
        )
    return series


def _goal(
    series: Tensor, targets: ArrayLike | None, channels: int | Sequence[int] | None
) -> Tensor:
    """The series that is predicted."""
    goal = series if targets is None else _series("targets", targets)
    if len(goal) != len(series):
        raise ValueError(
            f"WindowDataset: the series has {len(series)} steps, the targets have {len(goal)}"
        )
    if channels is None:
        return goal
    if goal.ndim == 1:
        raise ValueError("WindowDataset: target_channels needs a series of shape (L, C), got (L,)")
    wanted = [channels] if isinstance(channels, int) else list(channels)
    for c in wanted:
        if not -goal.shape[1] <= c < goal.shape[1]:
            raise IndexError(
                f"WindowDataset: target channel {c} is out of range for {goal.shape[1]} channels"
            )
    return getitem(goal, (slice(None), channels if isinstance(channels, int) else wanted))


def _check_steps(window: int, horizon: int, stride: int, gap: int) -> None:
    least = {"window": (window, 1), "horizon": (horizon, 0), "stride": (stride, 1)}
    for name, (value, low) in {**least, "gap": (gap, -window)}.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < low:
            raise ValueError(
                f"WindowDataset: {name} must be an integer of at least {low}, got {value!r}"
            )
