"""PCA and whitening: the values of scikit-learn, unit covariances, best reconstructions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn import decomposition, preprocessing
from sklearn.datasets import load_iris, load_wine

import chainrule
from chainrule import data
from chainrule.tensor import Tensor


def numbers(n: int = 40, d: int = 5, seed: int = 0) -> np.ndarray:
    """Correlated columns of different sizes."""
    r = np.random.default_rng(seed)
    return r.normal(size=(n, d)) @ r.normal(size=(d, d)) * 10.0 ** np.arange(d) + np.arange(d)


def images() -> np.ndarray:
    return np.random.default_rng(2).normal(size=(6, 3, 4, 5)) * [[[[1]], [[5]], [[0.1]]]] + 2


def close(a: Any, b: Any, rtol: float = 1e-9, atol: float = 1e-9) -> None:
    a = a.numpy() if isinstance(a, Tensor) else np.asarray(a)
    np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


def test_pca_equals_scikit_learn() -> None:
    x = load_wine().data
    ours = data.PCA(4).fit(chainrule.tensor(x))
    theirs = decomposition.PCA(4, svd_solver="full").fit(x)
    signs = np.sign((ours.components.numpy() * theirs.components_).sum(1))
    close(ours.components, signs[:, None] * theirs.components_, atol=1e-9)
    close(ours.mean, theirs.mean_)
    close(ours.explained_variance, theirs.explained_variance_)
    close(ours.explained_variance_ratio, theirs.explained_variance_ratio_)
    close(ours(chainrule.tensor(x)), signs * theirs.transform(x), atol=1e-7)
    back = theirs.inverse_transform(theirs.transform(x))
    close(ours.inverse(ours(chainrule.tensor(x))), back, rtol=1e-8, atol=1e-7)


@pytest.mark.parametrize("shape", [(50, 6), (7, 7), (5, 9)])
def test_pca_is_the_best_reconstruction_of_its_rank(shape: tuple[int, int]) -> None:
    x = numbers(*shape)
    s = np.linalg.svd(x - x.mean(0), compute_uv=False)
    for k in range(1, min(shape)):
        pca = data.PCA(k).fit(chainrule.tensor(x))
        error = ((pca.inverse(pca(chainrule.tensor(x))).numpy() - x) ** 2).sum()
        close(error, (s[k:] ** 2).sum(), rtol=1e-6, atol=1e-6 * s[0] ** 2 * 1e-6)
        w = np.random.default_rng(0).normal(size=(20, k, shape[1]))
        for other in w:
            q = np.linalg.qr(other.T)[0]
            centered = x - x.mean(0)
            assert ((centered - centered @ q @ q.T) ** 2).sum() >= error - 1e-6


@pytest.mark.parametrize("fraction", [0.5, 0.9, 0.999])
def test_pca_by_fraction_of_variance(fraction: float) -> None:
    x = preprocessing.scale(load_wine().data)
    ours = data.PCA(fraction).fit(chainrule.tensor(x))
    theirs = decomposition.PCA(fraction, svd_solver="full").fit(x)
    assert ours.components.shape == theirs.components_.shape
    assert ours.explained_variance_ratio.sum().item() > fraction


def test_pca_of_constant_column_and_constant_data() -> None:
    x = numbers(d=3)
    x[:, 1] = 4.0
    pca = data.PCA().fit(chainrule.tensor(x))
    close(pca.inverse(pca(chainrule.tensor(x))), x)
    flat = chainrule.ones(5, 2)
    pca = data.PCA().fit(flat)
    assert pca.inverse(pca(flat)).tolist() == flat.tolist()


def test_pca_signs_do_not_depend_on_the_order_of_rows() -> None:
    x = numbers()
    a = data.PCA().fit(chainrule.tensor(x)).components
    b = data.PCA().fit(chainrule.tensor(x[::-1].copy())).components
    close(a, b.numpy(), atol=1e-6)
    assert (a.numpy()[np.arange(5), np.abs(a.numpy()).argmax(1)] > 0).all()


def test_pca_of_images_restores_their_shape() -> None:
    x = images()
    pca = data.PCA(3).fit(chainrule.tensor(x))
    y = pca(chainrule.tensor(x))
    assert y.shape == (6, 3)
    assert pca.inverse(y).shape == (6, 3, 4, 5)
    with pytest.raises(ValueError, match=r"samples of shape \(3, 4, 5\), got \(3, 5, 4\)"):
        pca(chainrule.ones(2, 3, 5, 4))


def test_pca_errors() -> None:
    for wrong in (0, -1, 1.5, 0.0, True, "all"):
        with pytest.raises(ValueError, match="n_components must be"):
            data.PCA(wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="n_components=6, but the training part has only 5"):
        data.PCA(6).fit(chainrule.tensor(numbers()))
    pca = data.PCA(2).fit(chainrule.tensor(numbers()))
    with pytest.raises(ValueError, match=r"PCA.inverse: expected shape \(N, 2\), got \(4, 3\)"):
        pca.inverse(chainrule.ones(4, 3))
    with pytest.raises(RuntimeError, match="not fitted"):
        _ = data.PCA().explained_variance_ratio


@pytest.mark.parametrize("method", ["zca", "pca"])
@pytest.mark.parametrize("shape", [(40, 5), (1000, 3), (5, 4)])
def test_whitened_data_has_unit_covariance(method: str, shape: tuple[int, int]) -> None:
    """Errata 64: the factor is sqrt(n - 1), not its inverse."""
    y = data.Whitening(method).fit_transform(chainrule.tensor(numbers(*shape))).numpy()
    close(np.cov(y.T), np.eye(shape[1]), atol=1e-7)
    close(y.mean(0), np.zeros(shape[1]), atol=1e-7)


def test_zca_matrix_of_the_course() -> None:
    """W = sqrt(n - 1) (X X')^(-1/2) with a sample in each column of the centered X (errata 64)."""
    x = np.random.default_rng(0).normal(size=(500, 4)) @ np.random.default_rng(1).normal(
        size=(4, 4)
    )
    centered = (x - x.mean(0)).T
    values, vectors = np.linalg.eigh(centered @ centered.T)
    root = vectors @ np.diag(values**-0.5) @ vectors.T
    y = data.Whitening().fit_transform(chainrule.tensor(x)).numpy()
    close(y.T, np.sqrt(499) * root @ centered, atol=1e-10)
    printed = root / np.sqrt(499) @ centered
    close(np.cov(printed), np.eye(4) / 499**2, atol=1e-12)  # what the printed factor gives


def test_zca_changes_the_data_least() -> None:
    x = preprocessing.scale(load_iris().data)
    zca = data.Whitening("zca").fit_transform(chainrule.tensor(x)).numpy()
    pca = data.Whitening("pca").fit_transform(chainrule.tensor(x)).numpy()
    assert ((zca - x) ** 2).sum() < ((pca - x) ** 2).sum()
    r = np.random.default_rng(0)
    for _ in range(20):
        q = np.linalg.qr(r.normal(size=(4, 4)))[0]
        assert ((zca @ q - x) ** 2).sum() >= ((zca - x) ** 2).sum()


@pytest.mark.parametrize("dtype", [chainrule.float32, chainrule.float64])
def test_whitening_of_rank_deficient_data(dtype: Any) -> None:
    r = np.random.default_rng(0)
    x = r.normal(size=(30, 3)) @ r.normal(size=(3, 6)) + 2
    x = np.concatenate([x, np.full((30, 1), 4.0)], 1)  # rank 3 in 7 columns
    values = chainrule.tensor(x, dtype=dtype)
    pca = data.Whitening("pca").fit(values)
    y = pca(values)
    assert y.shape == (30, 3)
    close(np.cov(y.numpy().T), np.eye(3), atol=1e-4)
    close(pca.inverse(y), x, atol=1e-4)
    zca = data.Whitening("zca").fit(values)
    z = zca(values)
    close(np.linalg.eigvalsh(np.cov(z.numpy().T)), [0] * 4 + [1] * 3, atol=1e-4)
    close(zca.inverse(z), x, atol=1e-4)


def test_whitening_of_more_columns_than_rows() -> None:
    x = chainrule.tensor(numbers(4, 9))
    y = data.Whitening("pca").fit_transform(x)
    assert y.shape == (4, 3)
    close(np.cov(y.numpy().T), np.eye(3), atol=1e-6)


@pytest.mark.parametrize("shape", [(40, 4), (4, 9)])
def test_whitening_with_eps_is_the_inverse_root_of_covariance_plus_eps(
    shape: tuple[int, int],
) -> None:
    x = np.random.default_rng(3).normal(size=shape)
    values, vectors = np.linalg.eigh(np.cov(x.T) + 0.3 * np.eye(shape[1]))
    root = vectors @ np.diag(values**-0.5) @ vectors.T
    zca = data.Whitening(eps=0.3).fit(chainrule.tensor(x))
    new = np.random.default_rng(4).normal(size=(5, shape[1]))
    y = zca(chainrule.tensor(new))
    close(y, (new - x.mean(0)) @ root)
    close(zca.inverse(y), new)


def test_whitening_of_images_keeps_their_shape() -> None:
    x = chainrule.tensor(np.random.default_rng(0).normal(size=(60, 2, 3, 3)))
    zca = data.Whitening().fit(x)
    y = zca(x)
    assert y.shape == x.shape
    close(np.cov(y.numpy().reshape(60, -1).T), np.eye(18), atol=1e-9)
    close(zca.inverse(y), x.numpy())
    assert data.Whitening("pca", n_components=4).fit_transform(x).shape == (60, 4)


def test_pca_whitening_equals_scikit_learn() -> None:
    x = load_iris().data
    ours = data.Whitening("pca", n_components=3).fit(chainrule.tensor(x))
    theirs = decomposition.PCA(3, whiten=True, svd_solver="full").fit(x)
    y = ours(chainrule.tensor(x)).numpy()
    close(np.abs(y), np.abs(theirs.transform(x)), atol=1e-9)
    close(ours.inverse(chainrule.tensor(y)), theirs.inverse_transform(theirs.transform(x)))


def test_whitening_errors() -> None:
    with pytest.raises(ValueError, match="method must be 'zca' or 'pca', got 'ica'"):
        data.Whitening("ica")
    with pytest.raises(ValueError, match="eps must not be negative"):
        data.Whitening(eps=-1.0)
    with pytest.raises(ValueError, match="n_components is for method='pca'"):
        data.Whitening("zca", n_components=2)
    with pytest.raises(ValueError, match="all columns are constant"):
        data.Whitening().fit(chainrule.ones(5, 2))
