"""Scaling, powers and logarithms of features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn import preprocessing
from data.tables import numbers

import chainrule
from chainrule import data
from chainrule.tensor import Tensor


NAN, INF = float("nan"), float("inf")


def positive() -> np.ndarray:
    r = np.random.default_rng(1)
    return np.exp(r.normal(size=(60, 3)) * [0.5, 1, 2]) + np.arange(3)


def images() -> np.ndarray:
    return np.random.default_rng(2).normal(size=(6, 3, 4, 5)) * [[[[1]], [[5]], [[0.1]]]] + 2


def close(a: Any, b: Any, rtol: float = 1e-9, atol: float = 1e-9) -> None:
    a = a.numpy() if isinstance(a, Tensor) else np.asarray(a)
    np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


# --- scaling --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (data.MinMaxScaler(), preprocessing.MinMaxScaler()),
        (data.MinMaxScaler((-3, 5)), preprocessing.MinMaxScaler(feature_range=(-3, 5))),
        (data.MinMaxScaler(clip=True), preprocessing.MinMaxScaler(clip=True)),
        (data.StandardScaler(), preprocessing.StandardScaler()),
        (data.StandardScaler(with_std=False), preprocessing.StandardScaler(with_std=False)),
        (data.StandardScaler(with_mean=False), preprocessing.StandardScaler(with_mean=False)),
        (data.RobustScaler(), preprocessing.RobustScaler()),
        (
            data.RobustScaler(with_centering=False, quantile_range=(5, 80)),
            preprocessing.RobustScaler(with_centering=False, quantile_range=(5, 80)),
        ),
        (data.RobustScaler(with_scaling=False), preprocessing.RobustScaler(with_scaling=False)),
    ],
    ids=["minmax", "range", "clip", "standard", "center", "scale", "robust", "robust-q", "median"],
)
def test_scalers_equal_scikit_learn(ours: Any, theirs: Any) -> None:
    x, new = numbers(), numbers(seed=1) * 1.5
    x[:, 1] = 0.1  # a constant column, whose mean is rounded
    new[:, 1] = 7.0
    a, b = ours.fit(chainrule.tensor(x)), theirs.fit(x)
    for values in (x, new):
        close(a(chainrule.tensor(values)), b.transform(values))
        close(a.inverse(chainrule.tensor(values)), b.inverse_transform(values), atol=1e-8)


def test_standard_scaler_moments_and_eps() -> None:
    x = chainrule.tensor(numbers())
    y = data.StandardScaler().fit_transform(x)
    close(y.mean(0), np.zeros(5), atol=1e-12)
    close(y.std(0, correction=0), np.ones(5))
    scaler = data.StandardScaler(eps=0.5).fit(x)
    close(scaler(x), (x.numpy() - x.numpy().mean(0)) / (x.numpy().std(0) + 0.5))
    with pytest.raises(ValueError, match="eps must not be negative"):
        data.StandardScaler(eps=-1)


@pytest.mark.parametrize("value", [0.1, 1e6 + 0.1, -3.0, 0.0])
@pytest.mark.parametrize("dtype", [chainrule.float32, chainrule.float64])
def test_constant_columns(value: float, dtype: Any) -> None:
    x = chainrule.full((7, 1), value, dtype=dtype)
    assert data.StandardScaler().fit_transform(x).tolist() == [[0.0]] * 7
    assert data.RobustScaler().fit_transform(x).tolist() == [[0.0]] * 7
    assert data.MinMaxScaler((-1, 1)).fit_transform(x).tolist() == [[-1.0]] * 7
    scaler = data.MinMaxScaler((-1, 1)).fit(x)
    assert scaler.inverse(scaler(x)).tolist() == x.tolist()


def test_one_row() -> None:
    x = chainrule.tensor([[3.0, -2.0]])
    assert data.StandardScaler().fit_transform(x).tolist() == [[0, 0]]
    assert data.MinMaxScaler().fit_transform(x).tolist() == [[0, 0]]


def test_min_max_reaches_its_ends() -> None:
    x = chainrule.tensor(numbers(), dtype=chainrule.float32)
    y = data.MinMaxScaler().fit_transform(x)
    assert y.amin(0).tolist() == [0.0] * 5
    assert y.amax(0).tolist() == [1.0] * 5
    with pytest.raises(ValueError, match="low < high"):
        data.MinMaxScaler((1, 1))


def test_robust_scaler_range_is_checked() -> None:
    with pytest.raises(ValueError, match="two percentages"):
        data.RobustScaler(quantile_range=(75, 25))


@pytest.mark.parametrize("cls", [data.MinMaxScaler, data.StandardScaler, data.RobustScaler])
def test_images_are_scaled_by_channel(cls: Any) -> None:
    x = images()
    rows = x.transpose(0, 2, 3, 1).reshape(-1, 3)
    scaler = cls().fit(chainrule.tensor(x))
    expected = cls().fit_transform(chainrule.tensor(rows)).numpy()
    y = scaler(chainrule.tensor(x))
    close(y, expected.reshape(6, 4, 5, 3).transpose(0, 3, 1, 2))
    close(scaler.inverse(y), x)
    x[0, 1, 2, 3] = np.nan
    with pytest.raises(ValueError, match="channel 1, counted from 0"):
        scaler(chainrule.tensor(x))


def test_target_scaler() -> None:
    y = np.random.default_rng(0).normal(size=20) * 50 + 1000
    scaler = data.TargetScaler().fit(chainrule.tensor(y))
    close(scaler(chainrule.tensor(y)), (y - y.mean()) / y.std())
    close(scaler.inverse(scaler(chainrule.tensor(y))), y)
    outputs = chainrule.zeros(4, 1, dtype=chainrule.float64)
    close(scaler.inverse(outputs), np.full((4, 1), y.mean()))
    two = data.TargetScaler().fit(chainrule.tensor(np.stack([y, 2 * y], 1)))
    assert two.inverse(chainrule.zeros(3, 2)).shape == (3, 2)
    with pytest.raises(ValueError, match="fitted on 2 columns, got 1"):
        two.inverse(chainrule.zeros(3))


# --- powers and logarithms ------------------------------------------------------------------------


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("method", ["yeo-johnson", "box-cox"])
def test_power_transform_equals_scikit_learn(method: Any, standardize: bool) -> None:
    x = positive()
    if method == "yeo-johnson":
        x[:, 0] = -x[:, 0]
        x[:, 1] -= 2
    ours = data.PowerTransform(method, standardize=standardize).fit(chainrule.tensor(x))
    theirs = preprocessing.PowerTransformer(method, standardize=standardize).fit(x)
    close(ours.power, theirs.lambdas_, atol=1e-4)
    y = ours(chainrule.tensor(x))
    close(y, theirs.transform(x), rtol=1e-3, atol=1e-3)
    close(ours.inverse(y), x, rtol=1e-8)


def test_power_transform_of_constant_column_and_exponents_without_power() -> None:
    x = chainrule.full((5, 1), 3.0)
    assert data.PowerTransform().fit_transform(x).tolist() == [[0.0]] * 5
    for method, power in (("box-cox", 0.0), ("yeo-johnson", 0.0), ("yeo-johnson", 2.0)):
        transform = data.PowerTransform(method)
        transform.keep(power=[power], mean=[0.0], scale=[1.0])
        values = chainrule.tensor([[0.5], [3.0]], dtype=chainrule.float64)
        if power == 2.0:
            values = -values
        size = values.abs()
        expected = size.log() if method == "box-cox" else size.log1p()
        y = transform(values)
        close(y.abs(), expected.abs().numpy())
        close(transform.inverse(y), values.numpy())


def test_power_transform_errors() -> None:
    with pytest.raises(ValueError, match="column 1, counted from 0, .*not positive; use 'yeo-j"):
        data.PowerTransform("box-cox").fit(chainrule.tensor([[1.0, 0.0], [2.0, 3.0]]))
    with pytest.raises(ValueError, match="column 0, counted from 0, .*not positive"):
        data.PowerTransform("box-cox").fit(chainrule.tensor([[1.0], [2.0]]))(chainrule.zeros(1, 1))
    with pytest.raises(ValueError, match="method must be"):
        data.PowerTransform("log")


def test_log_transform() -> None:
    x = chainrule.tensor(positive())
    close(data.LogTransform()(x), np.log1p(x.numpy()))
    close(data.LogTransform(0)(x), np.log(x.numpy()))
    close(data.LogTransform().inverse(data.LogTransform()(x)), x.numpy())
    with pytest.raises(ValueError, match="column 1.*not greater than -1"):
        data.LogTransform().fit(chainrule.tensor([[0.0, -1.0]]))
    with pytest.raises(ValueError, match="shift must be finite"):
        data.LogTransform(INF)
