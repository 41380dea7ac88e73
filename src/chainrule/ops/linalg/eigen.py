"""Eigenvalues and eigenvectors of any square matrix: A V = V diag(L), columns of V of length 1.

dL = diag(P) and dV = V (P_ij / (L_j - L_i)) for P = V^-1 dA V, less what would change the lengths
of the columns (C. Boeddeker et al., "On the computation of complex-valued gradients with
application to statistically optimum beamforming", 2017). A real matrix has complex ones, too; its
gradient is real.
"""

from __future__ import annotations

from collections.abc import Sequence

from chainrule.ops.core.promotion import cast, is_complex_value
from chainrule.ops.elementwise.complex_numbers import conj, imag, real
from chainrule.ops.linalg.adjoint import (
    WithAdjoints,
    adjoint,
    check_phase,
    real_diagonal,
)
from chainrule.ops.linalg.decompositions import Eigen, gaps_of, over_gaps
from chainrule.ops.linalg.solving import check_matrix, solve
from chainrule.ops.shape.diagonal import diag_embed, diagonal
from chainrule.ops.shape.views import unsqueeze
from chainrule.tensor import Tensor
from chainrule.typing import V, Value

__all__ = ["eig", "eigvals"]


def _pulled_back(core: V, v: V, x: V) -> V:
    """V^-* core V*, the gradient of x; its real part if x is real."""
    vh = adjoint(v)
    out = solve(vh, core @ vh)
    return out if is_complex_value(x) else real(out)


def _eig_vjp(
    g: tuple[Value, Value], out: tuple[Value, Value], x: Value, needs: Sequence[bool]
) -> tuple[Value]:
    (gl, gv), (values, v) = g, out
    vh = adjoint(v)
    inside = vh @ gv
    check_phase("linalg.eig", imag(diagonal(inside, 0, -2, -1)))
    turned = inside - (vh @ v) * unsqueeze(real_diagonal(inside), -2)
    core = over_gaps(turned, conj(gaps_of(values))) + diag_embed(gl)
    return (_pulled_back(core, v, x),)


def _eig_jvp(tangents: Sequence[Value], out: tuple[Value, Value], x: Value) -> tuple[Value, Value]:
    values, v = out
    p = solve(v, cast(tangents[0], v.dtype) @ v)
    turned = v @ over_gaps(p, gaps_of(values))
    longer = real_diagonal(adjoint(v) @ turned)
    return diagonal(p, 0, -2, -1), turned - v * unsqueeze(longer, -2)


_eig = WithAdjoints("eig", _eig_vjp, _eig_jvp, batch="carry")


def eig(A: Tensor) -> Eigen:
    """The complex eigenvalues and eigenvectors (columns, of length 1) of a square matrix.

    >>> import chainrule
    >>> chainrule.linalg.eig(chainrule.tensor([[2.0, 0.0], [0.0, 3.0]])).eigenvalues
    tensor([2.+0.j, 3.+0.j])
    """
    check_matrix("linalg.eig", A, square=True)
    return Eigen(*_eig(A))


def _eigvals_vjp(g: Value, out: Value, x: Value, needs: Sequence[bool]) -> tuple[Value]:
    return (_pulled_back(diag_embed(g), _eig(x)[1], x),)


def _eigvals_jvp(tangents: Sequence[Value], out: Value, x: Value) -> Value:
    v = _eig(x)[1]
    return diagonal(solve(v, cast(tangents[0], v.dtype) @ v), 0, -2, -1)


_eigvals = WithAdjoints("eigvals", _eigvals_vjp, _eigvals_jvp, batch="carry", saves_out=False)


def eigvals(A: V) -> V:
    """The complex eigenvalues of a square matrix."""
    check_matrix("linalg.eigvals", A, square=True)
    return _eigvals(A)
