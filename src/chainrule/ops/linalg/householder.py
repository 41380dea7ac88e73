"""Householder reflections: Q = H_1 ... H_k with H_i = I - tau_i v_i v_i*, as LAPACK keeps a QR.

v_i is 0 above element i, 1 at it, and column i of a matrix below it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, NoReturn

from chainrule.backend import K
from chainrule.ops.core.primitive import Primitive
from chainrule.ops.creation.patterns import eye
from chainrule.ops.elementwise.complex_numbers import conj
from chainrule.ops.elementwise.logic import where
from chainrule.ops.index.reading import narrow
from chainrule.ops.linalg.adjoint import adjoint
from chainrule.ops.linalg.solving import check_matrix
from chainrule.ops.shape.diagonal import tril
from chainrule.ops.shape.views import unsqueeze
from chainrule.tensor import Tensor, of_array

__all__ = ["Geqrf", "geqrf", "householder_product", "orgqr", "ormqr"]


class Geqrf(NamedTuple):
    """What :func:`geqrf` returns."""

    a: Tensor
    tau: Tensor


def _not_differentiable(*args: object, **kwargs: object) -> NoReturn:
    raise NotImplementedError("geqrf: the derivative is not implemented; linalg.qr has one")


_geqrf = Primitive("geqrf", _not_differentiable, _not_differentiable, batch="carry")


def geqrf(input: Tensor) -> Geqrf:
    """R of input = QR with the Householder vectors of Q below the diagonal, and their factors tau:
    what :func:`ormqr` and ``linalg.householder_product`` take. Without derivative."""
    check_matrix("geqrf", input, name="input")
    return Geqrf(*_geqrf(input))


def _check_reflections(op: str, A: Tensor, tau: Tensor) -> None:
    check_matrix(op, A, name="input")
    if A.dtype is not tau.dtype:
        raise RuntimeError(
            f"{op}: tau dtype {tau.dtype} does not match input dtype {A.dtype}; convert one of them"
        )
    if tau.ndim != A.ndim - 1 or tuple(tau.shape[:-1]) != tuple(A.shape[:-2]):
        raise RuntimeError(
            f"{op}: expected tau to have one dimension less than input, and the same batch, got "
            f"shapes {tuple(tau.shape)} and {tuple(A.shape)}"
        )
    if A.shape[-1] < tau.shape[-1]:
        raise RuntimeError(
            f"{op}: input.shape[-1] must be greater than or equal to tau.shape[-1], got "
            f"{A.shape[-1]} and {tau.shape[-1]}"
        )


def _reflected(A: Tensor, tau: Tensor, x: Tensor, order: Iterable[int]) -> Tensor:
    """The reflections of A applied to x one after the other."""
    vectors = tril(A, -1) + eye(*A.shape[-2:], dtype=A.dtype, device=A.device)
    for i in order:
        v = narrow(vectors, -1, i, 1)
        x = x - (unsqueeze(narrow(tau, -1, i, 1), -1) * v) @ (adjoint(v) @ x)
    return x


def householder_product(A: Tensor, tau: Tensor) -> Tensor:
    """The first n columns of Q = H_1 ... H_k, for A (*, m, n) with the Householder vectors below
    its diagonal and tau (*, k), as :func:`chainrule.geqrf` returns them.

    >>> import chainrule
    >>> a = chainrule.tensor([[1.0, 0.5], [2.0, 1.0]])
    >>> chainrule.allclose(chainrule.linalg.householder_product(*chainrule.geqrf(a)), a.qr().Q)
    True
    """
    _check_reflections("linalg.householder_product", A, tau)
    m, n = A.shape[-2:]
    if m < n:
        raise RuntimeError(
            "linalg.householder_product: input.shape[-2] must be greater than or equal to "
            f"input.shape[-1], got shape {tuple(A.shape)}"
        )
    # The identity, in the shape of A, and with a derivative (0) even if there is no reflection.
    start = where(of_array(K.zeros((), "bool")), A, eye(m, n, dtype=A.dtype, device=A.device))
    return _reflected(A, tau, start, reversed(range(tau.shape[-1])))


orgqr = householder_product


def ormqr(
    input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False
) -> Tensor:
    """Q other, or other Q if not ``left``, for the square Q = H_1 ... H_k; with Q* for Q if
    ``transpose``. ``input`` and ``tau`` are what :func:`geqrf` returns."""
    _check_reflections("ormqr", input, tau)
    check_matrix("ormqr", other, name="other")
    side = -2 if left else -1
    if other.shape[side] != input.shape[-2] or other.dtype is not input.dtype:
        raise RuntimeError(
            f"ormqr: expected other to have the dtype of input and other.shape[{side}] == "
            f"input.shape[-2] = {input.shape[-2]}, got {other.dtype} {tuple(other.shape)}"
        )
    if tuple(other.shape[:-2]) != tuple(input.shape[:-2]):
        raise RuntimeError(
            "ormqr: batch dimensions of other must be those of input, got shapes "
            f"{tuple(other.shape)} and {tuple(input.shape)}"
        )
    if not left:  # (Q* other*)* = other Q
        return adjoint(ormqr(input, tau, adjoint(other), True, not transpose))
    count = range(tau.shape[-1])
    if transpose:
        return _reflected(input, conj(tau), other, count)
    return _reflected(input, tau, other, reversed(count))
