"""Where LAPACK stops, what it keeps, and what has no derivative there."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from helpers import assert_close

import chainrule
import chainrule.linalg as L
from chainrule.autograd import gradcheck, gradgradcheck
from chainrule.func import vmap
from chainrule.tensor import Tensor, of_array

R = np.random.default_rng(0)
GOOD = np.array([[2.0, 1.0], [1.0, 3.0]])
SINGULAR = np.ones((2, 2))
INDEFINITE = np.array([[1.0, 2.0], [2.0, 1.0]])


def test_matrices_without_a_result_have_nan_and_say_where() -> None:
    a = of_array(np.stack([GOOD, SINGULAR])).requires_grad_()
    inverse, info = L.inv_ex(a)
    assert info.dtype is chainrule.int32
    assert info.tolist() == [0, 2]
    assert_close(inverse[0].detach(), np.linalg.inv(GOOD))
    assert np.isnan(inverse[1].detach().numpy()).all()
    inverse[0].sum().backward()
    assert np.isfinite(a.grad.numpy()).all()
    solution, info = L.solve_ex(a.detach(), of_array(np.ones(2)))
    assert info.tolist() == [0, 2]
    assert_close(solution[0], np.linalg.solve(GOOD, np.ones(2)))
    assert np.isnan(solution[1].numpy()).all()
    for upper in (False, True):
        factor, info = L.cholesky_ex(of_array(np.stack([GOOD, INDEFINITE])), upper=upper)
        assert info.tolist() == [0, 2]
        assert_close(factor[0], np.linalg.cholesky(GOOD, upper=upper))
        assert np.isnan(factor[1].numpy()).all()
    assert L.lu_factor_ex(of_array(np.stack([GOOD, SINGULAR]))).info.tolist() == [0, 2]
    assert L.ldl_factor_ex(of_array(np.stack([GOOD, 0 * GOOD]))).info.tolist() == [0, 1]
    assert chainrule.lu(of_array(SINGULAR), get_infos=True)[2].item() == 2


def test_where_they_stop_inside_vmap() -> None:
    a = of_array(np.stack([GOOD, SINGULAR]))
    out = vmap(L.inv_ex)(a)
    assert out.info.tolist() == [0, 2]
    assert_close(out.inverse[0], np.linalg.inv(GOOD))


@pytest.mark.parametrize(
    ("match", "call"),
    [
        ("linalg.inv: .*singular", lambda: L.inv_ex(of_array(SINGULAR), check_errors=True)),
        (
            "linalg.solve: .*singular",
            lambda: L.solve_ex(of_array(SINGULAR), of_array(np.ones(2)), check_errors=True),
        ),
        (
            "linalg.cholesky: .*not positive-definite",
            lambda: L.cholesky_ex(of_array(INDEFINITE), check_errors=True),
        ),
        ("element 2 on the diagonal of U is zero", lambda: L.lu_factor(of_array(SINGULAR))),
        ("element 2 on the diagonal of U is zero", lambda: chainrule.lu(of_array(SINGULAR))),
        ("block 1 of D is zero", lambda: L.ldl_factor(of_array(0 * GOOD))),
    ],
)
def test_errors_where_they_are_asked_for(match: str, call: Callable[[], object]) -> None:
    with pytest.raises(L.LinAlgError, match=match):
        call()


@pytest.mark.parametrize("hermitian", [False, True])
def test_solutions_from_ldl(hermitian: bool) -> None:
    """They are those of the matrix, and linear in the right side."""
    a = R.normal(size=(2, 4, 4)) + 1j * R.normal(size=(2, 4, 4))
    a = a + (a.conj() if hermitian else a).mT
    a[0][np.diag_indices(4)] = 0
    packed, pivots = L.ldl_factor(of_array(a), hermitian=hermitian)
    assert (pivots.numpy() < 0).any()
    b = R.normal(size=(4, 2)) + 1j * R.normal(size=(4, 2))
    x = L.ldl_solve(packed, pivots, of_array(b), hermitian=hermitian)
    assert_close(a @ x.numpy(), np.broadcast_to(b, (2, 4, 2)), atol=1e-12)
    p, q = (of_array(part.copy()).requires_grad_() for part in (b.real, b.imag))

    def parts(p: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
        out = L.ldl_solve(packed, pivots, chainrule.complex(p, q), hermitian=hermitian)
        return out.real, out.imag

    assert gradcheck(parts, (p, q), check_forward_ad=True)
    assert gradgradcheck(parts, (p, q))


@pytest.mark.parametrize(
    ("match", "call"),
    [
        ("geqrf: the derivative is not implemented", lambda x: chainrule.geqrf(x).a),
        ("ldl_factor: the derivative", lambda x: L.ldl_factor(x).LD),
        (
            "ldl_factor: the derivative",
            lambda x: L.ldl_solve(x.tril(), of_array(np.array([1, 2], np.int32)), x.detach()),
        ),
    ],
)
def test_factors_without_a_derivative_say_so(match: str, call: Callable[[Tensor], Tensor]) -> None:
    x = of_array(GOOD.copy()).requires_grad_()
    with pytest.raises(NotImplementedError, match=match):
        call(x).sum().backward()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_reflections_of_a_qr(dtype: type) -> None:
    z = R.normal(size=(2, 4, 3)) + 1j * R.normal(size=(2, 4, 3))
    a = (z if np.issubdtype(dtype, np.complexfloating) else z.real).astype(dtype)
    packed, tau = chainrule.geqrf(of_array(a))
    q, r = L.qr(of_array(a))
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if np.finfo(dtype).bits == 32 else {"atol": 1e-12}
    assert_close(L.householder_product(packed, tau), q, **tolerance)
    assert_close(packed[:, :3].triu(), r, **tolerance)
    whole = L.qr(of_array(a), mode="complete").Q
    c = of_array(R.normal(size=(2, 4, 2)).astype(dtype))
    assert_close(packed.ormqr(tau, c), whole @ c, **tolerance)
    assert_close(packed.ormqr(tau, c, transpose=True), whole.mH @ c, **tolerance)
    assert_close(packed.ormqr(tau, c.mT, left=False), c.mT @ whole, **tolerance)


@pytest.mark.parametrize(
    ("error", "match", "call"),
    [
        (RuntimeError, r"vander: N must be greater than 1, got 1", lambda x: L.vander(x[0], N=1)),
        (
            RuntimeError,
            r"vander: N must be non-negative, got -1",
            lambda x: chainrule.vander(x[0], -1),
        ),
        (RuntimeError, r"tensorinv: ind must be a strictly positive", lambda x: L.tensorinv(x, 0)),
        (RuntimeError, r"tensorinv: expected prod.*got 1 and 4", lambda x: L.tensorinv(x, 2)),
        (RuntimeError, r"tensorsolve: expected A to satisfy", lambda x: L.tensorsolve(x, x)),
        (RuntimeError, r"tau to have one dimension less", lambda x: L.householder_product(x, x)),
        (RuntimeError, r"tau dtype", lambda x: L.householder_product(x, x[0].float())),
        (RuntimeError, r"other.shape\[-2\] == input", lambda x: chainrule.ormqr(x, x[0], x[:1])),
        (RuntimeError, r"the dtype of LD and 2 rows", lambda x: L.ldl_solve(x, x[0], x[:1])),
        (RuntimeError, r"pivots to be integers", lambda x: L.ldl_solve(x, x[0], x)),
        (ValueError, r"0 <= q <= 2.*got q=3", lambda x: chainrule.svd_lowrank(x, 3)),
        (ValueError, r"q\(=3\) must be non-negative", lambda x: chainrule.pca_lowrank(x, 3)),
        (ValueError, r"niter\(=-1\) must be", lambda x: chainrule.pca_lowrank(x, 2, niter=-1)),
    ],
)
def test_wrong_calls(error: type[Exception], match: str, call: Callable[[Tensor], object]) -> None:
    with pytest.raises(error, match=match):
        call(of_array(GOOD.copy()))
