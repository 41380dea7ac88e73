"""Linear algebra of complex matrices: derivatives of both modes and orders, phases, factors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
import chainrule.linalg as L
from chainrule.autograd import gradcheck, gradgradcheck
from chainrule.tensor import Tensor, of_array


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    r = np.random.default_rng(seed)
    return r.normal(size=shape) + 1j * r.normal(size=shape)


def as_complex(x: Tensor, y: Tensor) -> Tensor:
    return chainrule.complex(x, y)


def hermitian(z: Tensor) -> Tensor:
    return z @ z.mH + chainrule.eye(z.shape[-1], dtype=z.dtype)


def parts(*outputs: Tensor) -> tuple[Tensor, ...]:
    """Real and imaginary parts, so that the checks see real functions of real numbers."""
    return tuple(p for y in outputs for p in ((y.real, y.imag) if y.is_complex() else (y,)))


def of_vectors(out: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, ...]:
    """What does not depend on the phases of singular vectors, but on how U and V fit."""
    u, s, vh = out
    k = s.shape[-1]
    return (*parts(u[..., :k] * s.exp().unsqueeze(-2) @ vh[..., :k, :]), s, u.abs()[..., :k])


def of_eigenvectors(out: tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
    values, v = out
    return (*parts(values, v * (values / 8).exp().unsqueeze(-2) @ v.mH), v.abs())


FUNCTIONS: dict[str, tuple[tuple[int, ...], Callable[[Tensor], Any]]] = {
    "cholesky": ((3, 3), lambda z: parts(L.cholesky(hermitian(z)))),
    "cholesky, upper": ((2, 2), lambda z: parts(L.cholesky(hermitian(z), upper=True))),
    "cholesky_solve": ((2, 2), lambda z: parts(chainrule.cholesky_solve(z, z))),
    "cholesky_inverse": ((2, 2), lambda z: parts(chainrule.cholesky_inverse(z, upper=True))),
    "qr, tall": ((3, 2), lambda z: parts(*L.qr(z))),
    "qr, square": ((3, 3), lambda z: parts(*L.qr(z))),
    "qr, wide": ((2, 3), lambda z: parts(*L.qr(z, mode="complete"))),
    "svd, square": ((3, 3), lambda z: of_vectors(L.svd(z))),
    "svd, tall": ((4, 2), lambda z: of_vectors(L.svd(z, full_matrices=False))),
    "svd, wide and full": ((2, 3), lambda z: of_vectors(L.svd(z))),
    "svd, span": ((3, 2), lambda z: parts(L.svd(z).U[:, 2:] @ L.svd(z).U[:, 2:].mH)),
    "svdvals": ((2, 3, 2), L.svdvals),
    "eigh": ((3, 3), lambda z: of_eigenvectors(L.eigh(hermitian(z)))),
    "eigvalsh": ((2, 2, 2), lambda z: L.eigvalsh(hermitian(z), UPLO="U")),
    "eig": ((3, 3), lambda z: of_eigenvectors(L.eig(z))),
    "eig of a real matrix": ((3, 3), lambda z: of_eigenvectors(L.eig(z.real))),
    "eigvals": ((2, 3, 3), lambda z: parts(L.eigvals(z))),
    "eigvals of a real matrix": ((3, 3), lambda z: parts(L.eigvals(z.imag))),
    "pinv, tall": ((3, 2), lambda z: parts(L.pinv(z))),
    "pinv, wide": ((2, 3), lambda z: parts(L.pinv(z))),
    "pinv, hermitian": ((2, 2), lambda z: parts(L.pinv(hermitian(z), hermitian=True))),
    "slogdet": ((2, 3, 3), lambda z: parts(*L.slogdet(z))),
    "logdet": ((3, 3), lambda z: parts(chainrule.logdet(z))),
    "lstsq": ((4, 2), lambda z: parts(*L.lstsq(z, z[:, :1] ** 2, driver="gels")[:2])),
    "nuclear norm": ((3, 2), lambda z: L.matrix_norm(z, "nuc")),
    "spectral norm": ((3, 2), lambda z: L.matrix_norm(z, 2)),
    "cond": ((3, 3), L.cond),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name: str) -> None:
    shape, function = FUNCTIONS[name]
    z = drawn(*shape)
    x, y = (of_array(p.copy()).requires_grad_() for p in (z.real, z.imag))
    of_parts = lambda x, y: function(as_complex(x, y))  # noqa: E731
    assert gradcheck(of_parts, (x, y), check_forward_ad=True)
    assert gradgradcheck(of_parts, (x, y))


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 5), (2, 2, 3)])
def test_factors_give_the_matrix(shape: tuple[int, ...]) -> None:
    z = drawn(*shape)
    q, r = L.qr(of_array(z))
    assert_close(q @ r, z, atol=1e-12)
    one = np.broadcast_to(np.eye(q.shape[-1], dtype=complex), (q.mH @ q).shape)
    assert_close(q.mH @ q, one, atol=1e-12)
    u, s, vh = L.svd(of_array(z), full_matrices=False)
    assert_close(u * s.unsqueeze(-2) @ vh, z, atol=1e-12)
    p, lower, upper = L.lu(of_array(z))
    assert_close(p @ lower @ upper, z, atol=1e-12)


def test_solutions_from_a_factor() -> None:
    h = hermitian(of_array(drawn(3, 3)))
    b = of_array(drawn(3, 2, seed=1))
    for upper in (False, True):
        factor = L.cholesky(h, upper=upper)
        assert_close(h @ chainrule.cholesky_solve(b, factor, upper), b, atol=1e-12)
        assert_close(
            chainrule.cholesky_inverse(factor, upper), np.linalg.inv(h.numpy()), atol=1e-12
        )


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("svd", lambda z: L.svd(z).U.real.sum()),
        ("eigh", lambda z: L.eigh(hermitian(z)).eigenvectors.imag.sum()),
        ("eig", lambda z: L.eig(z).eigenvectors.real.sum()),
    ],
)
def test_a_loss_that_depends_on_phases_has_no_gradient(
    name: str, function: Callable[[Tensor], Tensor]
) -> None:
    z = of_array(drawn(3, 3)).requires_grad_()
    with pytest.raises(RuntimeError, match=rf"linalg\.{name}: complex vectors .* factor of size 1"):
        function(z).backward()


def test_results_of_complex_matrices_that_are_real() -> None:
    z = of_array(drawn(3, 2).astype(np.complex64)).requires_grad_()
    for out in (
        L.svdvals(z),
        L.slogdet(z[:2]).logabsdet,
        L.matrix_norm(z, "nuc"),
        L.matrix_norm(z[:0], "nuc"),
        L.matrix_norm(z[:0], 2),
        L.cond(z),
        L.cond(z[:0, :0]),
        L.lstsq(z, z, driver="gels").residuals,
        L.lstsq(z, z).residuals,
    ):
        assert out.dtype is chainrule.float32
        assert out.requires_grad
    L.svdvals(z).sum().backward()
    assert z.grad.dtype is chainrule.complex64
