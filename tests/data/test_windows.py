"""Sliding windows over time series: P10."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule.data import ConcatDataset, DataLoader, WindowDataset

SERIES = np.random.default_rng(0).normal(size=(23, 3))


def pieces(
    series: np.ndarray, goal: np.ndarray, window: int, horizon: int, stride: int, gap: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """The definition, step by step."""
    out, t = [], 0
    while t + max(window, window + gap + horizon) <= len(series):
        first = t + window + gap
        out.append((series[t : t + window], goal[first : first + horizon]))
        t += stride
    return out


@pytest.mark.parametrize("channels", [0, 3])
@pytest.mark.parametrize(
    ("window", "horizon", "stride", "gap"),
    [
        (4, 1, 1, 0),
        (4, 2, 3, 0),
        (5, 5, 5, 0),
        (3, 2, 2, 4),
        (6, 1, 1, -1),
        (6, 6, 2, -6),
        (22, 1, 1, 0),
        (4, 2, 4, -3),
    ],
)
def test_windows_and_targets(
    channels: int, window: int, horizon: int, stride: int, gap: int
) -> None:
    series = SERIES if channels else SERIES[:, 0]
    data = WindowDataset(chainrule.tensor(series), window, horizon, stride, gap=gap)
    expected = pieces(series, series, window, horizon, stride, gap)
    assert len(data) == len(expected)
    for (x, y), (x_expected, y_expected) in zip(data, expected, strict=True):  # type: ignore[call-overload]
        assert_close(x, x_expected, 0, 0)
        assert_close(y, y_expected, 0, 0)
    x, y = data.take(chainrule.arange(len(data)))
    assert_close(x, np.stack([a for a, _ in expected]), 0, 0)
    assert_close(y, np.stack([b for _, b in expected]), 0, 0)


def test_chopped_into_windows_without_overlap() -> None:
    data = WindowDataset(chainrule.arange(10), window=3, horizon=0, stride=3)
    assert [x.tolist() for (x,) in DataLoader(data, batch_size=2)] == [
        [[0, 1, 2], [3, 4, 5]],
        [[6, 7, 8]],
    ]


def test_nothing_is_copied() -> None:
    series = chainrule.zeros(1000, 2)
    data = WindowDataset(series, window=100, horizon=10)
    assert data.targets is not None
    for view in (data.inputs, data.targets):
        assert np.shares_memory(view.numpy(), series.numpy())
    series[5, 1] = 7.0
    assert data[3][0][2, 1].item() == 7
    assert not np.shares_memory(data.take(slice(0, 2))[0].numpy(), series.numpy())


def test_targets_of_another_series() -> None:
    """Labels per step, the label of a window being that of its last step."""
    labels = np.arange(23) * 10
    data = WindowDataset(SERIES, 4, 1, 2, gap=-1, targets=labels)
    x, y = data[1]
    assert_close(x, SERIES[2:6], 0, 0)
    assert y.tolist() == [50]


@pytest.mark.parametrize(("wanted", "shape"), [(1, (2,)), ([2, 0], (2, 2)), (None, (2, 3))])
def test_target_channels(wanted: Any, shape: tuple[int, ...]) -> None:
    data = WindowDataset(SERIES, 4, 2, target_channels=wanted)
    _, y = data[0]
    assert tuple(y.shape) == shape
    assert_close(y, SERIES[4:6] if wanted is None else SERIES[4:6, wanted], 0, 0)


def test_channels_first_is_what_convolutions_take() -> None:
    data = WindowDataset(chainrule.tensor(SERIES).float(), 8, channels_first=True)
    (x, y) = next(iter(DataLoader(data, batch_size=5)))
    assert (tuple(x.shape), tuple(y.shape)) == ((5, 3, 8), (5, 3, 1))
    assert tuple(chainrule.nn.Conv1d(3, 4, 3)(x).shape) == (5, 4, 6)


def test_shuffled_batches_cover_all_windows() -> None:
    data = WindowDataset(chainrule.arange(50), 5, stride=2)
    seen = [int(x[0]) for xs, _ in DataLoader(data, batch_size=4, shuffle=True) for x in xs]
    assert sorted(seen) == list(range(0, 45, 2))


def test_several_series() -> None:
    both = ConcatDataset([WindowDataset(chainrule.arange(s, s + 6), 3) for s in (0, 100)])
    batches = list(DataLoader(both, batch_size=6))
    assert both.in_memory
    assert batches[0][1].tolist() == [[3], [4], [5], [103], [104], [105]]


@pytest.mark.parametrize(
    ("series", "kwargs", "error", "message"),
    [
        (np.zeros((2, 2, 2)), {"window": 1}, ValueError, r"shape \(L,\) or \(L, C\), time first"),
        (np.zeros(5), {"window": 5}, ValueError, "series of 5 steps is too short.* need 6"),
        (np.zeros(5), {"window": 0}, ValueError, "window must be an integer of at least 1, got 0"),
        (np.zeros(5), {"window": 2, "horizon": -1}, ValueError, "horizon must be .* at least 0"),
        (np.zeros(5), {"window": 2, "stride": 0}, ValueError, "stride must be .* at least 1"),
        (np.zeros(5), {"window": 2, "stride": 1.5}, ValueError, "stride must be an integer"),
        (np.zeros(5), {"window": 2, "gap": -3}, ValueError, "gap must be .* at least -2"),
        (np.zeros(5), {"window": 2, "targets": np.zeros(4)}, ValueError, "5 steps, .* have 4"),
        (np.zeros(5), {"window": 2, "target_channels": 0}, ValueError, r"shape \(L, C\)"),
        (np.zeros((5, 2)), {"window": 2, "target_channels": 2}, IndexError, "channel 2 is out"),
        (np.zeros(5), {"window": 2, "horizon": 0, "gap": 1}, ValueError, "without targets"),
    ],
)
def test_bad_input(series: Any, kwargs: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        WindowDataset(series, **kwargs)
