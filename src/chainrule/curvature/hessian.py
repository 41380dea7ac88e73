"""The curvature of a function: Hessian, its diagonal, Gauss-Newton matrix, Taylor model.

``func`` is a function of ``params`` alone (a tensor, or a nested dict, tuple or list of tensors)
that returns a number. ``parameters.py`` says what ``model`` and ``inputs`` are and what the *tree
order* is, in which the rows and columns of a (W, W) matrix stand; its ``blocks`` takes such a
matrix apart. What has one entry for each parameter is a tree like the parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from chainrule.autograd.func import grad, hvp, jvp, value_and_grad, vjp
from chainrule.autograd.jacobian import hessian_of
from chainrule.autograd.nested import flatten
from chainrule.autograd.rows import for_units
from chainrule.autograd.vmap import vmap
from chainrule.backend import K
from chainrule.curvature.estimates import hutchinson_diagonal
from chainrule.curvature.memory import AT_ONCE, check_matrix
from chainrule.curvature.parameters import Model, arguments, as_function, ravel
from chainrule.ops.linalg.decompositions import eigvalsh
from chainrule.ops.reduce.order import amax, amin
from chainrule.ops.reduce.reductions import sum as sum_over
from chainrule.tensor import Tensor
from chainrule.typing import Inputs, Nested, Random

__all__ = [
    "TaylorModel",
    "condition_number",
    "gauss_newton",
    "gauss_newton_product",
    "hessian_diagonal",
    "hessian_matrix",
    "taylor",
]


def _chunk(op: str, chunk_size: int | None) -> int:
    """The number of products to make together."""
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"{op}: chunk_size should be None or greater than 0, got {chunk_size}")
    return chunk_size or AT_ONCE


def _check_size(op: str, like: Tensor, instead: str) -> None:
    size = like.numel()
    instead = f"Use {instead}, which needs no matrix (diagonal, eigenvalues, products), or a part"
    check_matrix(op, size, size, like.dtype, f"{instead} of it")


def hessian_matrix(
    func: Callable[[Any], Tensor], params: Nested, *, chunk_size: int | None = None
) -> Tensor:
    """The Hessian of ``func`` by all parameters as one matrix (W, W).

    ``chunk_size`` products with unit vectors are made together (64 unless given).

    >>> import chainrule
    >>> from chainrule.curvature.hessian import hessian_matrix
    >>> params = {"w": chainrule.ones(2), "b": chainrule.tensor(2.0)}
    >>> hessian_matrix(lambda p: p["b"] * (p["w"] ** 2).sum(), params)
    tensor([[4., 0., 2.],
            [0., 4., 2.],
            [2., 2., 0.]])
    """
    vector, unravel = ravel(params)
    _check_size("hessian_matrix", vector, "curvature.Hessian")
    together = _chunk("hessian_matrix", chunk_size)
    return hessian_of(grad(lambda v: func(unravel(v))), 0, together)(vector)


def hessian_diagonal(
    func: Callable[[Any], Tensor],
    params: Nested,
    *,
    samples: int | None = None,
    generator: Random = None,
    chunk_size: int | None = None,
) -> Any:
    """The diagonal of the Hessian of ``func``, as a tree like the parameters.

    Exact, by a product of the Hessian with each unit vector (``chunk_size`` of them at once); or,
    with ``samples``, Hutchinson's estimate: the mean of v * H v over that many random vectors v of
    signs. It is unbiased, and the variance of entry i is sum_{j != i} H_ij^2 / samples.

    >>> import chainrule
    >>> from chainrule.curvature.hessian import hessian_diagonal
    >>> hessian_diagonal(lambda w: (w**3).sum(), chainrule.tensor([1.0, 2.0]))
    tensor([ 6., 12.])
    """
    vector, unravel = ravel(params)

    def product(v: Tensor) -> Tensor:
        return ravel(hvp(func, (params,), (unravel(v),)))[0]

    def curved(v: Tensor) -> Tensor:
        return v * product(v)

    together = _chunk("hessian_diagonal", chunk_size)
    if samples is None:
        diagonal = for_units(
            lambda unit: sum_over(curved(unit)), tuple(vector.shape), vector, together
        )
    elif samples < 1:
        raise ValueError(f"hessian_diagonal: samples should be None or at least 1, got {samples}")
    else:
        diagonal = hutchinson_diagonal(
            lambda rows: vmap(product)(rows),
            vector.numel(),
            samples,
            vector.dtype,
            generator=generator,
            chunk_size=together,
        ).value
    return unravel(diagonal)


# --- Gauss-Newton ---------------------------------------------------------------------------------


def gauss_newton_product(
    model: Model,
    inputs: Inputs,
    loss: Callable[[Any], Tensor],
    vector: Nested,
    params: Nested | None = None,
) -> Any:
    """The generalized Gauss-Newton matrix J^T H_L J times a vector, as a tree like the parameters.

    J is the Jacobian of the model's output by its parameters and H_L the Hessian of ``loss``, a
    function of the output that returns a number. Neither is formed: J v by forward mode, H_L by
    forward over reverse mode, J^T by reverse mode. ``vector`` is a tree like the parameters.

    >>> import chainrule
    >>> from chainrule import curvature
    >>> x, v = chainrule.tensor([[1.0, 2.0], [3.0, 4.0]]), chainrule.tensor([1.0, 0.0])
    >>> half_squares = lambda y: 0.5 * (y**2).sum()
    >>> curvature.gauss_newton_product(lambda w, x: x @ w, x, half_squares, v, chainrule.zeros(2))
    tensor([10., 14.])
    """
    function, params = as_function(model, params)
    return _gauss_newton(function, params, arguments(inputs), loss)(vector)


def _gauss_newton(
    function: Callable[..., Any],
    params: Any,
    inputs: tuple[Any, ...],
    loss: Callable[[Any], Tensor],
) -> Callable[[Any], Any]:
    def f(p: Any) -> Any:
        return function(p, *inputs)

    def product(vector: Any) -> Any:
        out, pull = vjp(f, params)
        _, tangent = jvp(f, (params,), (vector,))
        return pull(hvp(loss, (out,), (tangent,)))[0]

    return product


def gauss_newton(
    model: Model,
    inputs: Inputs,
    loss: Callable[[Any], Tensor],
    params: Nested | None = None,
    *,
    chunk_size: int | None = None,
) -> Tensor:
    """The generalized Gauss-Newton matrix J^T H_L J, of shape (W, W).

    The Hessian of loss(model) without the terms of the model's own curvature: equal to it for a
    model that is linear in its parameters, and positive semidefinite for a convex loss.

    >>> import chainrule
    >>> from chainrule.curvature.hessian import gauss_newton
    >>> x = chainrule.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> gauss_newton(lambda w, x: x @ w, x, lambda y: 0.5 * (y**2).sum(), chainrule.zeros(2))
    tensor([[10., 14.],
            [14., 20.]])
    """
    function, params = as_function(model, params)
    product = _gauss_newton(function, params, arguments(inputs), loss)
    flat, unravel = ravel(params)

    def column(unit: Tensor) -> Tensor:
        return ravel(product(unravel(unit)))[0]

    _check_size("gauss_newton", flat, "curvature.GaussNewton")
    together = _chunk("gauss_newton", chunk_size)
    return for_units(column, tuple(flat.shape), flat, together)


# --- what a Hessian says --------------------------------------------------------------------------


def condition_number(matrix: Tensor) -> Tensor:
    """The largest eigenvalue of a symmetric matrix divided by the smallest, in absolute values.

    Gradient descent on a quadratic with this Hessian needs a number of steps in proportion to it.

    >>> import chainrule
    >>> from chainrule.curvature.hessian import condition_number
    >>> condition_number(chainrule.tensor([[2.0, 0.0], [0.0, 10.0]]))
    tensor(5.)
    """
    a = matrix.detach().array
    if a.ndim != 2 or a.shape[0] != a.shape[1] or a.size == 0:
        raise RuntimeError(
            f"condition_number: expected a square matrix, got shape {tuple(matrix.shape)}"
        )
    if float(K.abs(a - a.T).max()) > 1e-3 * float(K.abs(a).max()):
        raise ValueError(
            "condition_number: expected a symmetric matrix, but it differs from its transpose; for "
            "another matrix use the singular values"
        )
    sizes = abs(eigvalsh(matrix))
    return amax(sizes) / amin(sizes)


@dataclass(frozen=True)
class TaylorModel:
    """A function near a point: R(w + dw) = R0 + g.dw + 1/2 dw^T H dw, called with the step dw."""

    func: Callable[[Any], Tensor]
    point: Any
    order: int
    value: Tensor
    gradient: Any

    def __call__(self, step: Nested) -> Tensor:
        """The value of the model after a step from the point."""
        total = self.value
        if self.order >= 1:
            total = total + _dot(self.gradient, step)
        if self.order == 2:
            total = total + 0.5 * _dot(step, hvp(self.func, (self.point,), (step,)))
        return total


def _dot(a: Nested, b: Nested) -> Tensor:
    """The scalar product of two trees."""
    pairs = zip(flatten(a)[0], flatten(b)[0], strict=True)
    return sum(sum_over(x * y) for x, y in pairs)


def taylor(func: Callable[[Any], Tensor], x: Nested, order: int = 2) -> TaylorModel:
    """The Taylor model of ``func`` at ``x``, of order 0, 1 or 2, as a function of the step from x.

    ``x`` and the step are tensors or trees of them. The Hessian is never formed.

    >>> import chainrule
    >>> from chainrule.curvature.hessian import taylor
    >>> model = taylor(lambda w: (w**3).sum(), chainrule.tensor([1.0]))
    >>> model(chainrule.tensor([0.5]))  # 1 + 3 / 2 + 3 / 4
    tensor(3.2500)
    """
    if order not in (0, 1, 2):
        raise ValueError(f"taylor: order must be 0, 1 or 2, got {order}")
    value, gradient = value_and_grad(func)(x)
    return TaylorModel(func, x, order, value, gradient)
