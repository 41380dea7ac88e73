"""Weights kept to a norm, to a largest singular value, or orthogonal."""

from __future__ import annotations

import functools
from typing import Any

from chainrule.autograd.modes import no_grad
from chainrule.backend import K
from chainrule.linalg import matrix_exp, qr, solve, solve_triangular, vector_norm
from chainrule.nn.module.base import Module
from chainrule.nn.parameter import update_buffer
from chainrule.nn.utils.parametrize import register_parametrization
from chainrule.ops.creation.patterns import eye, ones_like, zeros, zeros_like
from chainrule.ops.creation.sampling import randn
from chainrule.ops.shape.diagonal import diag_embed, diagonal, tril, triu
from chainrule.ops.elementwise.complex_numbers import sgn
from chainrule.ops.elementwise.functions import sign
from chainrule.ops.elementwise.logic import where
from chainrule.ops.elementwise.options import clamp
from chainrule.ops.reduce.reductions import allclose
from chainrule.ops.shape.views import flatten, movedim
from chainrule.ops.shape.stacking import cat
from chainrule.tensor import Tensor

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def _weight_of(module: Module, name: str) -> Tensor:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


def _rename(
    names: dict[str, str], module: Any, state: dict[str, Any], prefix: str, *_: Any
) -> None:
    """Takes the keys under which PyTorch's hooks of old saved a parametrized tensor."""
    if all(prefix + old in state for old in names):
        for old, new in names.items():
            state[f"{prefix}parametrizations.{new}"] = state.pop(prefix + old)


# --- weight normalization -------------------------------------------------------------------------


def norm_except(v: Tensor, dim: int | None) -> Tensor:
    """The norm over all dimensions but ``dim``, which stays; over all for None."""
    if dim is None or dim == -1:
        return vector_norm(v)
    kept = dim % v.ndim
    return vector_norm(v, dim=tuple(d for d in range(v.ndim) if d != kept), keepdim=True)


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0):
        super().__init__()
        self.dim = dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_v * (weight_g / norm_except(weight_v, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Learns length and direction of a weight apart: w = g v / |v|.

    ``g`` is ``parametrizations.weight.original0``, ``v`` is ``parametrizations.weight.original1``.
    The norm is one for each entry of ``dim``, or one for the whole tensor if ``dim`` is None.

    >>> from chainrule import nn
    >>> nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
    ParametrizedLinear(
      in_features=3, out_features=2, bias=True
      (parametrizations): ModuleDict(
        (weight): ParametrizationList(
          (0): _WeightNorm()
        )
      )
    )
    """
    _weight_of(module, name)
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)
    old = {f"{name}_g": f"{name}.original0", f"{name}_v": f"{name}.original1"}
    module.register_load_state_dict_pre_hook(functools.partial(_rename, old))
    return module


# --- spectral normalization -----------------------------------------------------------------------


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """A weight as a matrix, the rows of which are the entries of ``dim``."""
    return flatten(movedim(weight, dim, 0), 1)


def outputs_dim(module: Module) -> int:
    """The dimension of a layer's weight that belongs to its outputs."""
    return 1 if any("ConvTranspose" in c.__name__ for c in type(module).__mro__) else 0


class _SpectralNorm(Module):
    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, n_power_iterations: int, dim: int, eps: float):
        super().__init__()
        if not -weight.ndim <= dim < weight.ndim:
            raise IndexError(
                f"spectral_norm: Dimension out of range (expected to be in range of "
                f"[-{weight.ndim}, {weight.ndim - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                "spectral_norm: Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.dim, self.eps, self.n_power_iterations = dim % weight.ndim, eps, n_power_iterations
        if weight.ndim > 1:  # a vector has a norm, and nothing to iterate
            matrix = self._matrix(weight.detach())
            for name, size in zip(("_u", "_v"), matrix.shape, strict=True):
                self.register_buffer(
                    name, self._unit(randn(size, dtype=matrix.dtype, device=matrix.device))
                )
            self._iterate(matrix, 15)

    def _matrix(self, weight: Tensor) -> Tensor:
        return as_matrix(weight, self.dim)

    def _unit(self, x: Tensor) -> Tensor:
        return x / clamp(vector_norm(x), min=self.eps)

    def _iterate(self, matrix: Tensor, times: int) -> None:
        with no_grad():
            u, v = self._u, self._v
            for _ in range(times):
                u = self._unit(matrix @ v)
                v = self._unit(matrix.T @ u)
            update_buffer(self._u, u)
            update_buffer(self._v, v)

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return self._unit(weight)
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix.detach(), self.n_power_iterations)
        # Copies, so that a second forward pass does not change what this one's gradient needs.
        u, v = self._u.clone(), self._v.clone()
        return weight / (u @ (matrix @ v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divides a weight by its largest singular value: W / sigma, sigma = u^T W v.

    The singular vectors u and v are buffers, improved by ``n_power_iterations`` steps of the power
    method at every use in training. They count as constants in the gradient.
    """
    weight = _weight_of(module, name)
    dim = outputs_dim(module) if dim is None else dim
    function = _SpectralNorm(weight, n_power_iterations, dim, eps)
    register_parametrization(module, name, function)
    old = {
        f"{name}_orig": f"{name}.original",
        f"{name}_u": f"{name}.0._u",
        f"{name}_v": f"{name}.0._v",
    }
    module.register_load_state_dict_pre_hook(functools.partial(_rename, old))
    return module


# --- orthogonal matrices --------------------------------------------------------------------------


def _cayley(A: Tensor) -> Tensor:
    """(I - A/2)^-1 (I + A/2)."""
    one = eye(A.shape[-1], dtype=A.dtype, device=A.device)
    return solve(one - A / 2, one + A / 2)


def _householder(X: Tensor) -> Tensor:
    """The product of the reflections along the columns of X below its diagonal, in compact form.

    With these vectors v_i as columns of V (v_ii = 1), H_1 ... H_k = I - V T V^T, where the upper
    triangle of V^T V, its diagonal halved, is the inverse of T. The diagonal of X holds signs.
    """
    n, k = X.shape[-2:]
    one = eye(n, k, dtype=X.dtype, device=X.device)
    V = tril(X, -1) + one
    gram = V.mT @ V
    inverse = triu(gram, 1) + diag_embed(diagonal(gram, dim1=-2, dim2=-1) / 2)
    Q = one - V @ solve_triangular(inverse, V.mT[..., :k], upper=True)
    return Q * sign(diagonal(X, dim1=-2, dim2=-1))[..., None, :]


def _reflections(Q: Tensor) -> Tensor:
    """The X that :func:`_householder` makes of a matrix with orthonormal columns."""
    n, k = Q.shape[-2:]
    rest, columns = Q, []
    for i in range(k):
        # The reflection that takes x, the column from its diagonal on, to -+ |x| e_1.
        x = rest[..., i:, i]
        first, length = x[..., :1], vector_norm(x, dim=-1, keepdim=True)
        first = where(first < 0, first - length, first + length)
        below = x[..., 1:] / where(first == 0, 1, first)
        v = cat([zeros_like(Q[..., :i, 0]), ones_like(first), below], dim=-1)[..., None]
        rest = rest - v @ (v.mT @ rest) * (2 / (v * v).sum(dim=-2, keepdim=True))
        columns.append(v)
    signs = sign(diagonal(rest, dim1=-2, dim2=-1))[..., None, :]
    return tril(cat(columns, dim=-1), -1) + eye(n, k, dtype=Q.dtype, device=Q.device) * signs


def _orthonormal(A: Tensor) -> Tensor:
    """The Q of A = QR with a positive diagonal of R; A itself if it is orthogonal already."""
    n, k = A.shape[-2:]
    if n == k and allclose(
        A.mH @ A,
        eye(k, dtype=A.dtype, device=A.device),
        atol=10 * n * K.rounding_error(A.array.dtype),
    ):
        return A.clone()
    Q, R = qr(A)
    return Q * sgn(diagonal(R, dim1=-2, dim2=-1))[..., None, :]


class _Orthogonal(Module):
    base: Tensor

    def __init__(self, weight: Tensor, orthogonal_map: str, use_trivialization: bool):
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        wide = X.shape[-2] < X.shape[-1]
        Q = self._tall(X.mT if wide else X)
        if hasattr(self, "base"):
            Q = self.base @ Q
        return Q.mT if wide else Q

    def _tall(self, X: Tensor) -> Tensor:
        if self.orthogonal_map == "householder":
            return _householder(X)
        n, k = X.shape[-2:]
        # Skew-symmetric, from the entries on and below the diagonal alone.
        square = cat([tril(X), zeros(*X.shape[:-1], n - k, dtype=X.dtype, device=X.device)], dim=-1)
        to_orthogonal = matrix_exp if self.orthogonal_map == "matrix_exp" else _cayley
        return to_orthogonal(square - square.mH)[..., :k]

    def right_inverse(self, Q: Tensor) -> Tensor:
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of "
                f"shape {Q.shape}."
            )
        wide = Q.shape[-2] < Q.shape[-1]
        tall = Q.mT if wide else Q
        n, k = tall.shape[-2:]
        if hasattr(self, "base"):
            noise = randn(*tall.shape[:-1], n - k, dtype=Q.dtype, device=Q.device)
            self.base = _orthonormal(cat([tall, noise], dim=-1))
            # Where every map is the identity; minus, because of the last reflection.
            return -eye(*Q.shape[-2:], dtype=Q.dtype, device=Q.device).expand(Q.shape).clone()
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley "
                "parametrizations when use_trivialization=False."
            )
        X = _reflections(tall)
        return X.mT if wide else X


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Keeps a matrix orthogonal: Q^T Q = I (Q Q^T = I if it is wide).

    Args:
        module: the module that has the matrix.
        name: its name.
        orthogonal_map: ``"matrix_exp"`` (exp of a skew-symmetric matrix, the default for square
            ones), ``"cayley"`` (the Cayley transform of one) or ``"householder"`` (a product of
            reflections, the default for others).
        use_trivialization: whether to go from the present matrix, a buffer ``base``, so that any
            orthogonal matrix can be assigned.

    >>> from chainrule import nn, eye
    >>> Q = nn.utils.parametrizations.orthogonal(nn.Linear(3, 5)).weight
    >>> Q.T.matmul(Q).allclose(eye(3), atol=1e-6)
    True
    """
    weight = _weight_of(module, name)
    if weight.ndim < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions."
        )
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ValueError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
            f"Got: {orthogonal_map}"
        )
    function = _Orthogonal(weight, orthogonal_map, use_trivialization)
    return register_parametrization(module, name, function, unsafe=True)
