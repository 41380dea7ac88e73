"""What all preprocessing shares, missing values, one step after another."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import impute, preprocessing as sk_preprocessing
from data.tables import numbers

import chainrule
from chainrule import data, nn
from chainrule.autograd import gradcheck
from chainrule.func import jvp, vmap
from chainrule.tensor import Tensor


NAN, INF = float("nan"), float("inf")


def images() -> np.ndarray:
    return np.random.default_rng(2).normal(size=(6, 3, 4, 5)) * [[[[1]], [[5]], [[0.1]]]] + 2


def with_gaps() -> np.ndarray:
    x = numbers()
    x[3, 0] = x[7, 0] = x[5, 2] = np.nan
    return x


TRANSFORMS = {
    "min-max": lambda: data.MinMaxScaler(),
    "min-max-range": lambda: data.MinMaxScaler((-1, 2)),
    "standard": lambda: data.StandardScaler(),
    "standard-eps": lambda: data.StandardScaler(eps=0.1),
    "center": lambda: data.StandardScaler(with_std=False),
    "scale": lambda: data.StandardScaler(with_mean=False),
    "robust": lambda: data.RobustScaler(quantile_range=(10, 90)),
    "target": lambda: data.TargetScaler(),
    "zca": lambda: data.Whitening(),
    "zca-eps": lambda: data.Whitening(eps=0.1),
    "pca-whitening": lambda: data.Whitening("pca"),
    "pca-whitening-eps": lambda: data.Whitening("pca", eps=0.1),
    "pca": lambda: data.PCA(),
    "log": lambda: data.LogTransform(shift=100_000.0),
    "power": lambda: data.PowerTransform(),
    "imputer": lambda: data.Imputer("median"),
    "pipeline": lambda: data.Pipeline(data.StandardScaler(), data.PCA(), data.MinMaxScaler()),
}


each = pytest.mark.parametrize("name", list(TRANSFORMS))


each_learning = pytest.mark.parametrize("name", [n for n in TRANSFORMS if n != "log"])


def made(name: str) -> Any:
    return TRANSFORMS[name]()


def close(a: Any, b: Any, rtol: float = 1e-9, atol: float = 1e-9) -> None:
    a = a.numpy() if isinstance(a, Tensor) else np.asarray(a)
    np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


# --- what all share -------------------------------------------------------------------------------


@each
def test_inverse_restores(name: str) -> None:
    x = chainrule.tensor(numbers())
    transform = made(name)
    y = transform.fit_transform(x)
    assert y.dtype is chainrule.float64
    close(transform.inverse(y), x.numpy(), rtol=1e-7, atol=1e-5)
    assert transform.fit(x) is transform


@each
def test_fitted_on_the_training_part_only(name: str) -> None:
    """The same rows give the same result, whatever else is transformed with them."""
    x, others = chainrule.tensor(numbers()), chainrule.tensor(numbers(seed=1)) / 3
    transform = made(name).fit(x)
    before = {k: v.numpy().copy() for k, v in transform.state_dict().items()}
    both = transform(chainrule.cat([x[:4], others]))
    close(both[:4], transform(x[:4]).numpy(), rtol=1e-9, atol=1e-9)
    for key, value in transform.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[key])


@each
def test_gradients(name: str) -> None:
    transform = made(name).fit(chainrule.tensor(numbers(d=3)))
    x = chainrule.tensor(numbers(4, 3, seed=1), requires_grad=True)
    assert gradcheck(transform, (x,), rtol=1e-4, atol=1e-5)
    y = transform(x).detach().requires_grad_()
    if name == "power":
        y = (y.detach() / 4).requires_grad_()  # away from where the inverse ends
    if name != "log":
        assert gradcheck(transform.inverse, (y,), rtol=1e-3, atol=1e-4)


@each
def test_forward_mode_and_vmap(name: str) -> None:
    transform = made(name).fit(chainrule.tensor(numbers()))
    batches = chainrule.tensor(np.stack([numbers(seed=s) for s in range(3)]))
    close(vmap(transform)(batches), np.stack([transform(b).numpy() for b in batches]))
    tangent = chainrule.ones_like(batches[0])
    value, slope = jvp(transform, (batches[0],), (tangent,))
    close(value, transform(batches[0]).numpy())
    assert np.isfinite(slope.numpy()).all()


@each
def test_float32_stays_float32(name: str) -> None:
    x = numbers(d=3)
    wide = made(name).fit(chainrule.tensor(x))
    narrow = chainrule.tensor(x, dtype=chainrule.float32)
    y = wide(narrow)
    assert y.dtype is chainrule.float32
    assert wide.inverse(y).dtype is chainrule.float32
    scale = np.abs(wide(chainrule.tensor(x)).numpy()).max()
    close(y, wide(chainrule.tensor(x)).numpy(), rtol=1e-4, atol=1e-4 * scale)
    assert made(name).fit(narrow)(narrow).dtype is chainrule.float32


@each
def test_file_round_trip_is_exact(name: str, tmp_path: Path) -> None:
    x = chainrule.tensor(numbers())
    transform = made(name).fit(x)
    chainrule.save(transform, tmp_path / "transform.safetensors")
    loaded = chainrule.load(tmp_path / "transform.safetensors")
    assert type(loaded) is type(transform)
    assert str(loaded) == str(transform)
    y = transform(x)
    np.testing.assert_array_equal(loaded(x).numpy(), y.numpy())
    np.testing.assert_array_equal(loaded.inverse(y).numpy(), transform.inverse(y).numpy())


@each
def test_state_dict_round_trip_is_exact(name: str) -> None:
    x = chainrule.tensor(numbers())
    transform, other = made(name).fit(x), made(name)
    other.load_state_dict(transform.state_dict())
    np.testing.assert_array_equal(other(x).numpy(), transform(x).numpy())
    for copied in (copy.deepcopy(transform), pickle.loads(pickle.dumps(transform))):
        np.testing.assert_array_equal(copied(x).numpy(), transform(x).numpy())


@each_learning
def test_unfitted_is_an_error(name: str) -> None:
    x = chainrule.tensor(numbers())
    for use in (made(name), made(name).inverse):
        with pytest.raises(RuntimeError, match=r"not fitted; call fit\(x\)"):
            use(x)


@each
@pytest.mark.parametrize(("value", "what"), [(NAN, "missing values .*Imputer"), (INF, "infinite")])
def test_not_finite_is_an_error_that_names_the_column(name: str, value: float, what: str) -> None:
    good, bad = numbers(), numbers()
    bad[7, 3] = value
    if name == "imputer" and value is NAN:
        return
    with pytest.raises(ValueError, match=f"column 3.*counted from 0.*{what}"):
        made(name).fit(chainrule.tensor(bad))
    with pytest.raises(ValueError, match=f"column 3.*counted from 0.*{what}"):
        made(name).fit(chainrule.tensor(good))(chainrule.tensor(bad))


@each_learning
def test_other_width_is_an_error(name: str) -> None:
    with pytest.raises(ValueError, match=r"fitted on .*5.*got \(?3"):
        made(name).fit(chainrule.tensor(numbers()))(chainrule.tensor(numbers(d=3)))


@each
def test_refit_on_other_shape(name: str) -> None:
    transform = made(name).fit(chainrule.tensor(numbers()))
    x = chainrule.tensor(numbers(d=2, seed=3))
    close(transform.fit_transform(x), made(name).fit_transform(x).numpy())


@each
def test_arrays_lists_and_integers_are_taken(name: str) -> None:
    x = np.random.default_rng(5).integers(0, 20, size=(12, 3))
    transform = made(name).fit(x)
    assert transform(x).dtype is chainrule.float32
    close(transform(x.tolist()), transform(chainrule.tensor(x)).numpy())


def test_wrong_inputs() -> None:
    with pytest.raises(ValueError, match=r"reshape one column to \(N, 1\)"):
        data.StandardScaler().fit(chainrule.ones(4))
    with pytest.raises(TypeError, match="real numbers"):
        data.StandardScaler().fit(chainrule.ones(4, 2, dtype=chainrule.complex64))
    with pytest.raises(ValueError, match="at least 1 sample"):
        data.StandardScaler().fit(chainrule.zeros(0, 2))
    with pytest.raises(ValueError, match="at least 2 samples"):
        data.PCA().fit(chainrule.zeros(1, 2))


def test_fitting_leaves_no_graph() -> None:
    x = chainrule.tensor(numbers(), requires_grad=True)
    for name in TRANSFORMS:
        transform = made(name).fit(x)
        assert not any(b.requires_grad for b in transform.buffers())
        assert not list(transform.parameters())


def test_own_transform(tmp_path: Path) -> None:
    x = chainrule.tensor([[1.0, 2.0], [3.0, 5.0]])
    shift = Shift().fit(x)
    chainrule.save(data.Pipeline(shift, data.StandardScaler()).fit(x), tmp_path / "p")
    loaded = chainrule.load(tmp_path / "p", classes=[Shift])
    assert loaded[0](x).tolist() == [[0, 0], [2, 3]]
    with pytest.raises(ValueError, match="keep: expected"):
        shift.keep(other=1)
    with pytest.raises(NotImplementedError, match="cannot be undone"):
        data.Transform().inverse(x)
    with pytest.raises(NotImplementedError, match="does not define fit"):
        data.Transform().fit(x)


class Shift(data.Transform):
    fitted_names = ("least",)

    def fit(self, x: Tensor) -> Shift:
        return self.keep(least=x.amin(0))

    def forward(self, x: Tensor) -> Tensor:
        return x - self.fitted("least", x)

    def inverse(self, x: Tensor) -> Tensor:
        return x + self.fitted("least", x)


# --- missing values -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "theirs"),
    [
        ({"strategy": "mean"}, {"strategy": "mean"}),
        ({"strategy": "median"}, {"strategy": "median"}),
        (
            {"strategy": "constant", "fill_value": -7},
            {"strategy": "constant", "fill_value": -7.0},
        ),
        ({"indicators": True}, {"add_indicator": True}),
    ],
    ids=["mean", "median", "constant", "indicators"],
)
def test_imputer_equals_scikit_learn(options: Any, theirs: Any) -> None:
    x, new = with_gaps(), numbers(seed=9)
    new[0, 0] = new[1, 2] = np.nan
    a = data.Imputer(**options).fit(chainrule.tensor(x))
    b = impute.SimpleImputer(**theirs).fit(x)
    for values in (x, new):
        close(a(chainrule.tensor(values)), b.transform(values))
    if a.indicators:
        np.testing.assert_array_equal(a.inverse(a(chainrule.tensor(x))).numpy(), x)


def test_imputer_gradient_is_zero_in_gaps() -> None:
    imputer = data.Imputer(indicators=True).fit(chainrule.tensor(with_gaps()))
    x = chainrule.tensor(with_gaps(), requires_grad=True)
    imputer(x).sum().backward()
    expected = (~np.isnan(with_gaps())).astype(float)
    np.testing.assert_array_equal(x.grad.numpy(), expected)


def test_imputer_of_images_fills_by_channel() -> None:
    x = images()
    x[0, 1, 0, 0] = np.nan
    y = data.Imputer().fit_transform(chainrule.tensor(x)).numpy()
    assert y[0, 1, 0, 0] == pytest.approx(np.nanmean(x[:, 1]))
    with pytest.raises(ValueError, match=r"indicators need an input \(N, D\)"):
        data.Imputer(indicators=True).fit(chainrule.tensor(x))


def test_imputer_before_scaler() -> None:
    pipeline = data.Pipeline(data.Imputer(indicators=True), data.StandardScaler())
    x = chainrule.tensor(with_gaps())
    np.testing.assert_allclose(pipeline.inverse(pipeline.fit_transform(x)).numpy(), x.numpy())


def test_imputer_errors() -> None:
    x = numbers()
    x[:, 3] = np.nan
    with pytest.raises(ValueError, match="column 3, counted from 0, has no values at all"):
        data.Imputer().fit(chainrule.tensor(x))
    filled = data.Imputer("constant", fill_value=0).fit_transform(chainrule.tensor(x))
    assert filled.numpy()[:, 3].tolist() == [0.0] * 40
    with pytest.raises(ValueError, match="strategy must be one of"):
        data.Imputer("mode")
    for wrong in ({"strategy": "constant"}, {"fill_value": 1.0}):
        with pytest.raises(ValueError, match="give fill_value with strategy='constant'"):
            data.Imputer(**wrong)
    with pytest.raises(ValueError, match="must be finite"):
        data.Imputer("constant", fill_value=NAN)
    with pytest.raises(ValueError, match="training part is empty"):
        data.Imputer().fit(chainrule.zeros(0, 3))


# --- one after another ----------------------------------------------------------------------------


def test_pipeline_equals_its_parts() -> None:
    x = chainrule.tensor(numbers())
    pipeline = data.Pipeline(data.StandardScaler(), data.PCA(3), data.MinMaxScaler()).fit(x)
    scaler = data.StandardScaler().fit(x)
    pca = data.PCA(3).fit(scaler(x))
    expected = data.MinMaxScaler().fit_transform(pca(scaler(x)))
    close(pipeline(x), expected.numpy())
    assert len(pipeline) == 3
    assert [type(t).__name__ for t in pipeline] == ["StandardScaler", "PCA", "MinMaxScaler"]
    close(pipeline[0].mean, x.numpy().mean(0))


def test_pipeline_errors() -> None:
    with pytest.raises(ValueError, match="at least one transform"):
        data.Pipeline()
    with pytest.raises(TypeError, match="expected transforms, got Linear at place 1"):
        data.Pipeline(data.StandardScaler(), nn.Linear(1, 1))  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="StandardScaler: not fitted"):
        data.Pipeline(data.StandardScaler())(chainrule.ones(2, 2))


def test_preprocessing_as_a_layer_of_a_network(tmp_path: Path) -> None:
    """Saved with the model; gradients reach the raw inputs."""
    x = chainrule.tensor(numbers(), dtype=chainrule.float32)
    net = nn.Sequential(data.StandardScaler().fit(x), nn.Linear(5, 2))
    chainrule.save(net, tmp_path / "net")
    loaded = chainrule.load(tmp_path / "net")
    assert loaded(x).tolist() == net(x).tolist()
    raw = x.clone().requires_grad_()
    net(raw).sum().backward()
    expected = net[1].weight.detach().numpy().sum(0) / net[0].scale.numpy()
    close(raw.grad, np.tile(expected, (40, 1)), rtol=1e-4)
    net.float()
    assert net[0].scale.dtype is chainrule.float32
    assert net(x).dtype is chainrule.float32


def test_unfitted_transform_cannot_be_saved(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"a StandardScaler, is not fitted; call fit\(x\)"):
        chainrule.save(data.StandardScaler(), tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_loaded_state_must_fit() -> None:
    state = data.StandardScaler().fit(chainrule.ones(2, 3)).state_dict()
    with pytest.raises(RuntimeError, match="size mismatch for mean"):
        data.StandardScaler().fit(chainrule.ones(2, 4)).load_state_dict(state)
    with pytest.raises(RuntimeError, match=r"Missing key\(s\)"):
        data.StandardScaler().load_state_dict({})


# --- scikit-learn's names -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        data.StandardScaler,
        data.MinMaxScaler,
        data.RobustScaler,
        data.PCA,
        data.Whitening,
        data.PowerTransform,
        data.Imputer,
        lambda: data.Pipeline(data.StandardScaler(), data.PCA()),
    ],
)
def test_transform_and_its_inverse_by_their_usual_names(make: Any) -> None:
    x = chainrule.tensor(np.random.default_rng(0).normal(size=(20, 3)) + 5)
    transform = make()
    with pytest.raises(RuntimeError, match="not fitted"):
        transform.transform(x)
    fitted = transform.fit(x[:15])
    assert fitted is transform
    assert transform.transform(x).tolist() == transform(x).tolist()
    assert (
        transform.inverse_transform(transform(x)).tolist()
        == transform.inverse(transform(x)).tolist()
    )
    assert make().fit_transform(x).tolist() == make().fit(x).transform(x).tolist()


def test_scalers_beside_those_of_scikit_learn() -> None:
    x = np.random.default_rng(0).normal(size=(20, 3)) * [1, 10, 100] + 5
    for name in ("StandardScaler", "MinMaxScaler", "RobustScaler"):
        ours, theirs = getattr(data, name)(), getattr(sk_preprocessing, name)()
        np.testing.assert_allclose(ours.fit_transform(x).numpy(), theirs.fit_transform(x))
        y = x[:5] + 1
        np.testing.assert_allclose(ours.transform(y).numpy(), theirs.transform(y))
        back = ours.inverse_transform(ours.transform(y)).numpy()
        np.testing.assert_allclose(back, theirs.inverse_transform(theirs.transform(y)))


def test_encoders_by_their_usual_names() -> None:
    table = data.Table.from_dict({"x": [1.0, 3.0], "color": ["red", "blue"]})
    encoder = data.TableEncoder()
    assert encoder.fit_transform(table).tolist() == encoder.transform(table).tolist()
    target = data.TargetEncoder()
    assert target.fit_transform(table["color"]).tolist() == [1, 0]
    assert target.transform(table["color"]).tolist() == [1, 0]
    one_hot = data.OneHot().fit(chainrule.tensor([0, 2]))
    assert one_hot.transform(chainrule.tensor([2])).tolist() == [[0, 1]]
