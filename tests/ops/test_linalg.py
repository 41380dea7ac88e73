"""Linear algebra where it is hard: singular matrices, values that meet, modes, complex numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import assert_close, resolve, weight
from samples import ALL

import chainrule
import chainrule.linalg as L
from chainrule.autograd import gradgradcheck
from chainrule.func import hessian
from chainrule.tensor import Tensor, of_array


INF = float("inf")


R = np.random.default_rng(0)


def tensor(value: Any, requires_grad: bool = False) -> Tensor:
    return of_array(np.array(value, dtype=np.float64)).requires_grad_(requires_grad)


def gradient(function: Any, value: Any) -> Tensor:
    x = tensor(value, requires_grad=True)
    function(x).backward()
    return x.grad


def of_rank(k: int, *shape: int) -> np.ndarray:
    return R.normal(size=(*shape[:-1], k)) @ R.normal(size=(*shape[:-2], k, shape[-1]))


def test_every_function_has_a_record() -> None:
    sampled = {id(resolve(chainrule, s.name)) for s in ALL}
    missing = [n for n in L.__all__ if n != "LinAlgError" and id(getattr(L, n)) not in sampled]
    assert not missing


# --- singular matrices ----------------------------------------------------------------------------


def cofactors(a: np.ndarray) -> np.ndarray:
    n = len(a)
    out = np.empty_like(a)
    for i in range(n):
        for j in range(n):
            minor = np.delete(np.delete(a, i, 0), j, 1)
            out[i, j] = (-1) ** (i + j) * np.linalg.det(minor)
    return out


@pytest.mark.parametrize("rank", [4, 3, 2, 1, 0])
def test_gradient_of_the_determinant_of_a_singular_matrix(rank: int) -> None:
    a = of_rank(rank, 4, 4)
    assert_close(gradient(L.det, a), cofactors(a), rtol=1e-9, atol=1e-9)


def test_determinants_of_a_batch_with_singular_members() -> None:
    a = np.stack([of_rank(k, 3, 3) for k in (3, 2, 1)])
    expected = np.stack([cofactors(m) for m in a])
    assert_close(gradient(lambda x: L.det(x).sum(), a), expected, rtol=1e-9, atol=1e-9)


def test_second_derivative_of_the_determinant() -> None:
    a = tensor(R.normal(size=(3, 3)), requires_grad=True)
    gradgradcheck(L.det, [a])
    with pytest.raises(L.LinAlgError, match="singular"):
        hessian(L.det)(tensor(np.ones((2, 2))))


def test_logarithm_of_the_determinant() -> None:
    sign, log = L.slogdet(tensor(np.ones((2, 2))))
    assert (sign.item(), log.item()) == (0.0, -INF)
    assert not np.isfinite(
        gradient(lambda x: L.slogdet(x).logabsdet, np.ones((2, 2))).numpy()
    ).any()
    assert np.isnan(chainrule.logdet(tensor(-np.eye(3))).item())
    assert chainrule.logdet(tensor(np.ones((2, 2)))).item() == -INF


@pytest.mark.parametrize(
    ("match", "call"),
    [
        (
            r"linalg\.inv: the matrix is singular: the diagonal element 2 .*\(2, 2\)",
            lambda: L.inv(tensor(np.ones((2, 2)))),
        ),
        (
            r"linalg\.inv: \(batch element 1\) the matrix is singular",
            lambda: L.inv(tensor([np.eye(2), np.ones((2, 2)), np.eye(2)])),
        ),
        (
            r"linalg\.solve: \(batch element 2\) the matrix is singular: the diagonal element 1",
            lambda: L.solve(tensor([np.eye(2), np.eye(2), np.zeros((2, 2))]), tensor(np.ones(2))),
        ),
        (
            r"linalg\.cholesky: the matrix is not positive-definite: its leading minor of order 2",
            lambda: L.cholesky(tensor([[1.0, 2.0], [2.0, 1.0]])),
        ),
        (
            r"linalg\.cholesky: \(batch element 1\).*minor of order 1",
            lambda: L.cholesky(tensor([np.eye(2), -np.eye(2)])),
        ),
        (r"linalg\.cholesky: .*order 1", lambda: L.cholesky(tensor(np.full((2, 2), np.nan)))),
        (
            r"linalg\.svd: .*failed to converge; the input contains values that are not finite",
            lambda: L.svd(tensor(np.full((2, 2), np.nan))),
        ),
        (r"linalg\.inv: .*singular", lambda: L.matrix_power(tensor(np.ones((2, 2))), -2)),
    ],
)
def test_matrices_without_a_result(match: str, call: Any) -> None:
    assert issubclass(L.LinAlgError, RuntimeError)
    with pytest.raises(L.LinAlgError, match=match):
        call()


def test_a_zero_on_a_triangular_diagonal_gives_infinity() -> None:
    out = L.solve_triangular(tensor([[1.0, 0.0], [5.0, 0.0]]), tensor([[1.0], [2.0]]), upper=False)
    assert out[1].item() == -INF
    assert np.isinf(L.cond(tensor(np.ones((2, 2))), "fro").item())


def test_least_squares_of_any_rank() -> None:
    for a in (of_rank(2, 5, 3), of_rank(1, 3, 5), of_rank(3, 5, 3)):
        b = R.normal(size=(len(a), 2))
        expected, residuals, rank, values = np.linalg.lstsq(a, b)
        out = L.lstsq(tensor(a), tensor(b), driver="gelsd")
        assert_close(out.solution, expected, rtol=1e-9, atol=1e-11)
        assert out.rank.item() == rank
        assert_close(out.singular_values, values, atol=1e-12)
        assert_close(out.residuals, residuals)
        assert L.lstsq(tensor(a), tensor(b)).residuals.shape == (0,)
        assert L.lstsq(tensor(a), tensor(b), driver="gels").rank.shape == (0,)


def test_pseudoinverse_of_a_singular_matrix() -> None:
    for a in (of_rank(2, 5, 3), of_rank(1, 2, 4), np.zeros((2, 3))):
        p = L.pinv(tensor(a)).numpy()
        assert_close(a @ p @ a, a, atol=1e-12)
        assert_close(p @ a @ p, p, atol=1e-12)
        assert_close(a @ p, (a @ p).T, atol=1e-12)
        assert_close(p @ a, (p @ a).T, atol=1e-12)
    assert L.pinv(tensor(np.zeros((0, 3)))).shape == (3, 0)


def test_tolerances() -> None:
    a = tensor(np.diag([1.0, 1e-3, 1e-9]))
    assert L.matrix_rank(a).item() == 3
    assert L.matrix_rank(a, rtol=1e-6).item() == 2
    assert L.matrix_rank(a, atol=1e-2).item() == 1
    assert L.matrix_rank(a, tol=2.0).item() == 0
    assert_close(L.pinv(a, atol=1e-2), np.diag([1.0, 0.0, 0.0]))
    assert_close(L.pinv(a, 1e-6), np.diag([1.0, 1e3, 0.0]))
    limits = of_array(np.array([1e-2, 1e-6]))
    assert_close(L.matrix_rank(chainrule.stack([a, a]), atol=limits), np.array([1, 2]))


# --- values that meet -----------------------------------------------------------------------------


def test_singular_values_that_meet() -> None:
    """They have a gradient, their vectors have none."""
    assert_close(gradient(lambda x: L.svd(x)[1].sum(), np.eye(3)), np.eye(3))
    assert_close(gradient(lambda x: L.svdvals(x).sum(), np.eye(3)), np.eye(3))
    assert_close(gradient(lambda x: L.matrix_norm(x, "nuc"), np.eye(3)), np.eye(3))
    assert not np.isfinite(
        gradient(lambda x: (L.svd(x)[0] * tensor(weight((3, 3)))).sum(), np.eye(3)).numpy()
    ).any()


def test_eigenvalues_that_meet() -> None:
    assert_close(gradient(lambda x: L.eigh(x)[0].sum(), np.eye(3)), np.eye(3))
    assert_close(gradient(lambda x: L.eigvalsh(x).sum(), np.eye(3)), np.eye(3))
    turned = gradient(lambda x: (L.eigh(x)[1] * tensor(weight((3, 3)))).sum(), np.eye(3))
    assert not np.isfinite(turned.numpy()).all()


def test_eigenvectors_at_a_diagonal_matrix() -> None:
    """Where the gradient of an eigenvector is zero, its derivative need not be."""
    a = tensor(np.diag([1.0, 2.0, 4.0]), requires_grad=True)
    gradgradcheck(lambda x: (L.eigh((x + x.mT) / 2)[1] ** 2).sum(-1), [a])


def test_gradients_of_symmetric_matrices_are_symmetric() -> None:
    a = R.normal(size=(3, 3))
    a = a @ a.T + np.eye(3)
    w = tensor(weight((3, 3)))
    for function in (
        lambda x: (L.cholesky(x) * w).sum(),
        lambda x: (L.cholesky(x, upper=True) * w).sum(),
        lambda x: (L.eigh(x)[1].abs() * w).sum(),
        lambda x: L.eigvalsh(x, UPLO="U")[0],
    ):
        g = gradient(function, a).numpy()
        assert_close(g, g.T, rtol=1e-12, atol=1e-12)


def test_one_triangle_is_read() -> None:
    a = R.normal(size=(3, 3))
    a = a @ a.T + np.eye(3)
    lower, upper = tensor(np.tril(a)), tensor(np.triu(a))
    assert_close(L.cholesky(lower), L.cholesky(tensor(a)))
    assert_close(L.cholesky(upper, upper=True), L.cholesky(tensor(a), upper=True))
    assert_close(L.eigvalsh(lower), L.eigvalsh(tensor(a)))
    assert_close(L.eigvalsh(upper, UPLO="u"), L.eigvalsh(tensor(a)))
    assert_close(L.eigh(upper, UPLO="U").eigenvalues, L.eigh(tensor(a)).eigenvalues)


# --- modes of QR and SVD --------------------------------------------------------------------------


def test_modes_of_qr() -> None:
    a = R.normal(size=(4, 2))
    q, r = L.qr(tensor(a), mode="complete")
    assert (q.shape, r.shape) == ((4, 4), (4, 2))
    assert_close(q @ r, a, atol=1e-12)
    empty, only = L.qr(tensor(a), mode="r")
    assert empty.shape == (0,)
    assert_close(only, r[:2])
    with pytest.raises(RuntimeError, match="not differentiable when mode='complete'"):
        gradient(lambda x: L.qr(x, mode="complete").Q.sum(), a)


def test_results_have_names() -> None:
    a = tensor(np.eye(2))
    assert L.qr(a)._fields == ("Q", "R")
    assert L.svd(a)._fields == ("U", "S", "Vh")
    assert L.eigh(a)._fields == L.eig(a)._fields == ("eigenvalues", "eigenvectors")
    assert L.slogdet(a)._fields == ("sign", "logabsdet")


def test_full_singular_vectors_of_a_batch() -> None:
    a = tensor(R.normal(size=(2, 4, 2)))
    u, s, vh = L.svd(a)
    assert (u.shape, s.shape, vh.shape) == ((2, 4, 4), (2, 2), (2, 2, 2))
    assert_close(u[..., :2] * s.unsqueeze(-2) @ vh, a, atol=1e-12)
    assert_close(u.mT @ u, np.broadcast_to(np.eye(4), (2, 4, 4)), atol=1e-12)


def test_eigenvalues_of_any_matrix_are_complex() -> None:
    rotation = chainrule.tensor([[0.0, 1.0], [-1.0, 0.0]], requires_grad=True)
    values, vectors = L.eig(rotation)
    assert values.dtype is vectors.dtype is chainrule.complex64
    values.imag.square().sum().backward()
    assert rotation.grad.dtype is chainrule.float32
    assert_close(rotation.grad, np.array([[0.0, 1.0], [-1.0, 0.0]]) * 2, rtol=1e-6)
    assert sorted(L.eigvals(rotation.detach()).numpy().imag) == [-1.0, 1.0]


# --- norms ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ord", [2, 1, 3, 1.5, INF, "fro"])
def test_gradient_of_a_norm_at_zero_is_finite(ord: Any) -> None:
    g = gradient(
        lambda x: L.norm(x, ord, dim=(0, 1) if ord == "fro" else 0).sum(), np.zeros((2, 2))
    )
    assert np.isfinite(g.numpy()).all()


@pytest.mark.parametrize("ord", ["fro", "nuc", 2, 1, INF])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 0, 3)])
def test_norms_of_empty_matrices(ord: Any, shape: tuple[int, ...]) -> None:
    assert_close(L.matrix_norm(tensor(np.zeros(shape)), ord), np.zeros(shape[:-2]))


def test_norms_in_another_type() -> None:
    x = of_array(np.ones((2, 2), np.float32))
    assert L.matrix_norm(x, dtype=chainrule.float64).dtype is chainrule.float64
    assert L.vector_norm(x, dtype=chainrule.float64).dtype is chainrule.float64


# --- products -------------------------------------------------------------------------------------


def test_the_order_of_products_is_the_cheapest(monkeypatch: pytest.MonkeyPatch) -> None:
    op = chainrule.ops.core.primitive.REGISTRY["matmul"]
    raw, cost = op.raw, []
    monkeypatch.setattr(op, "raw", lambda a, b: cost.append(a.size * b.shape[-1]) or raw(a, b))
    L.multi_dot([tensor(weight(s)) for s in [(10, 100), (100, 5), (5, 50)]])
    assert sum(cost) == 10 * 100 * 5 + 10 * 5 * 50


def test_powers() -> None:
    a = tensor(R.normal(size=(2, 3, 3)))
    assert_close(L.matrix_power(a, 0), np.broadcast_to(np.eye(3), (2, 3, 3)))
    assert_close(a.matrix_power(7), np.linalg.matrix_power(a.numpy(), 7))


# --- complex matrices -----------------------------------------------------------------------------


Z = R.normal(size=(3, 3)) + 1j * R.normal(size=(3, 3))


H = Z @ Z.conj().T + np.eye(3)


def test_values_of_complex_matrices() -> None:
    z, h = of_array(Z), of_array(H)
    assert_close(L.inv(z), np.linalg.inv(Z))
    assert_close(L.det(z), np.linalg.det(Z))
    assert_close(L.pinv(z[:, :2]), np.linalg.pinv(Z[:, :2]), atol=1e-12)
    assert_close(L.pinv(h, hermitian=True), np.linalg.inv(H), atol=1e-10)
    assert_close(L.cholesky(h), np.linalg.cholesky(H))
    assert_close(L.eigvalsh(h), np.linalg.eigvalsh(H))
    assert_close(L.svdvals(z), np.linalg.svdvals(Z))
    assert_close(L.matrix_norm(z), np.linalg.norm(Z))
    u, s, vh = L.svd(z)
    assert_close(u.numpy() * s.numpy() @ vh.numpy(), Z, atol=1e-12)
