"""Adjoints x* (transposed and conjugated), with which rules hold for real and complex matrices.

A gradient of complex numbers is that of PyTorch: for a real loss, d loss = Re tr(g* dx).
"""

from __future__ import annotations


from chainrule.backend import ARRAYS
from chainrule.ops.core.primitive import Op, Primitive
from chainrule.ops.elementwise.complex_numbers import conj, real
from chainrule.ops.shape.diagonal import diagonal
from chainrule.tensor import Tensor
from chainrule.typing import V, Value

__all__ = ["WithAdjoints", "adjoint", "check_phase", "hermitian", "real_diagonal"]


class WithAdjoints(Primitive):
    """A primitive whose rules have adjoints where those for real matrices have transposes: they
    need no conjugation around them."""

    def on_complex_numbers(self) -> Op:
        return self


def adjoint(x: V) -> V:
    """x*: the matrices transposed and conjugated."""
    kind = (x.array if isinstance(x, Tensor) else x).dtype.kind
    return conj(x).mT if kind == "c" else x.mT


def hermitian(x: V) -> V:
    """(x + x*) / 2"""
    return 0.5 * (x + adjoint(x))


def real_diagonal(x: V) -> V:
    """The real part of the diagonal of each matrix."""
    return real(diagonal(x, 0, -2, -1))


def check_phase(op: str, turn: Value) -> None:
    """Refuses gradients of complex vectors that depend on their phase, which is not determined.

    ``turn`` is the derivative of the loss by the phase of each vector. Inside a transformation it
    cannot be looked at.
    """
    array = turn.array if isinstance(turn, Tensor) else turn
    if isinstance(array, ARRAYS) and array.size and float(abs(array).max()) > 1e-2:
        raise RuntimeError(
            f"{op}: complex vectors are determined up to a factor of size 1, and this loss depends "
            "on that factor, so that its gradient is ill-defined; compute it from what does not, "
            "such as the absolute values of the vectors"
        )
