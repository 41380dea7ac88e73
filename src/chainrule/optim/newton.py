"""Newton's method and its safer relatives: what each does to the eigenvalues of the Hessian.

With the Hessian H = Q diag(l) Q^T and the gradient g, all three take the step

    d = -Q diag(1 / c(l)) Q^T g

Newton divides by the curvature itself, c = l, and so runs to the next stationary point, be it a
minimum, a saddle or a maximum; damped Newton adds to it, c = l + mu; saddle-free Newton takes its
size, c = |l| + mu, and so leaves a saddle along the directions that fall.

The Hessian is formed and decomposed: for more than some thousand parameters use
:class:`~chainrule.optim.HessianFree`.
"""

from __future__ import annotations

from collections.abc import Callable

from chainrule.ops.linalg.decompositions import eigh
from chainrule.ops.linalg.matmul import matmul
from chainrule.optim.second_derivatives import SecondOrderObjective
from chainrule.optim.second_order import (
    Damped,
    SecondOrderMethod,
    Step,
    check_line_search,
    rounding_error,
)
from chainrule.tensor import Tensor
from chainrule.typing import Params

__all__ = ["DampedNewton", "Newton", "SaddleFreeNewton"]


def _decomposed(f: SecondOrderObjective) -> tuple[Tensor, Tensor]:
    """The eigenvalues, in ascending order, and the eigenvectors of the Hessian."""
    hessian = f.hessian()
    values, vectors = eigh((hessian + hessian.mT) / 2)
    return values, vectors


def _step(vectors: Tensor, curvature: Tensor, g: Tensor) -> Tensor:
    return -matmul(vectors, matmul(vectors.mT, g) / curvature)


class Newton(SecondOrderMethod[SecondOrderObjective]):
    """Newton's method, w <- w - H^-1 g: exact in one step on a quadratic.

    A step that does not lower the loss enough is shortened by the line search, or with
    ``line_search_fn=None`` not taken; a step uphill, which a Hessian with negative eigenvalues can
    give, is taken whole or not at all. A singular Hessian is an error. Nocedal and Wright, 2006,
    chapter 3.

    Args:
        params: the parameters.
        line_search_fn: "backtracking", "strong_wolfe", or None to try the whole step alone (default
            "backtracking").
        tolerance_grad: converged if no entry of the gradient is larger (default 1e-7).
        tolerance_change: converged if neither loss nor parameters change by more, relatively
            (default 1e-9).

    >>> import chainrule
    >>> from chainrule import optim
    >>> w = chainrule.tensor([3.0, 2.0], requires_grad=True)
    >>> optimizer = optim.Newton([w])
    >>> loss = optimizer.step(lambda: w[0] ** 2 + 5 * w[1] ** 2 + w[0])
    >>> w.detach()
    tensor([-0.5000,  0.0000])
    """

    def __init__(
        self,
        params: Params,
        line_search_fn: str | None = "backtracking",
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
    ):
        check_line_search("Newton", line_search_fn)
        settings = {"line_search_fn": line_search_fn}
        super().__init__(params, settings, tolerance_grad, tolerance_change)

    def iterate(self, f: SecondOrderObjective, x: Tensor, loss: float, g: Tensor) -> Step:
        values, vectors = _decomposed(f)
        sizes = abs(values)
        if float(sizes.min()) <= values.numel() * rounding_error(values) * float(sizes.max()):
            smallest = float(values[int(sizes.argmin())])
            raise RuntimeError(
                f"Newton: the Hessian is singular, its smallest eigenvalue is {smallest:.3g} (the "
                f"largest {float(sizes.max()):.3g}), so H d = -g has no single solution; no "
                "parameter was changed. Use DampedNewton or SaddleFreeNewton, or add a penalty of "
                "the weights to the loss"
            )
        return self.follow(f, x, loss, g, _step(vectors, values, g))


class DampedNewton(Damped[SecondOrderObjective]):
    """Newton's method on a curvature raised until the loss falls, w <- w - (H + mu I)^-1 g.

    mu grows until H + mu I is positive definite and the step lowers the loss; it shrinks after a
    step that did, back to Newton's method. Goldfeld, Quandt and Trotter, 1966.

    Args:
        params: the parameters.
        mu: the damping of the first step (default 1e-3).
        increase: the factor of mu after a step that was not taken (default 10.0).
        decrease: the factor of mu after a step that was (default 0.1).
        tolerance_grad: converged if no entry of the gradient is larger (default 1e-7).
        tolerance_change: converged if neither loss nor parameters change by more, relatively
            (default 1e-9).

    >>> import chainrule
    >>> from chainrule import optim
    >>> w = chainrule.tensor([0.5], requires_grad=True)
    >>> optimizer = optim.DampedNewton([w])
    >>> optimizer.run(lambda: (w**4 - w**2).sum()).converged
    True
    >>> w.detach()
    tensor([0.7071])
    """

    def __init__(
        self,
        params: Params,
        mu: float = 1e-3,
        increase: float = 10.0,
        decrease: float = 0.1,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
    ):
        super().__init__(params, mu, increase, decrease, tolerance_grad, tolerance_change)

    def directions(self, f: SecondOrderObjective, g: Tensor) -> Callable[[float], Tensor | None]:
        values, vectors = _decomposed(f)
        least = values.numel() * rounding_error(values) * float(abs(values).max())

        def direction(mu: float) -> Tensor | None:
            if float(values[0]) + mu <= least:
                return None
            return _step(vectors, values + mu, g)

        return direction


class SaddleFreeNewton(Damped[SecondOrderObjective]):
    """Newton's method on the size of the curvature, w <- w - (|H| + mu I)^-1 g.

    |H| = Q diag(|l|) Q^T, so that a step along a direction of negative curvature runs away from the
    saddle that attracts Newton's method. The damping is that of :class:`DampedNewton`. Exactly on a
    saddle the gradient is zero, and no method that follows it moves.

    Dauphin et al., Identifying and attacking the saddle point problem in high-dimensional
    non-convex optimization, 2014.

    Args:
        params: the parameters.
        mu: the damping of the first step (default 1e-3).
        increase: the factor of mu after a step that was not taken (default 10.0).
        decrease: the factor of mu after a step that was (default 0.1).
        tolerance_grad: converged if no entry of the gradient is larger (default 1e-7).
        tolerance_change: converged if neither loss nor parameters change by more, relatively
            (default 1e-9).

    >>> import chainrule
    >>> from chainrule import optim
    >>> w = chainrule.tensor([1.0, 0.01], requires_grad=True)
    >>> optimizer = optim.SaddleFreeNewton([w])
    >>> report = optimizer.run(lambda: w[0] ** 2 - w[1] ** 2 + w[1] ** 4 / 2)
    >>> w.detach().abs()
    tensor([0., 1.])
    """

    def __init__(
        self,
        params: Params,
        mu: float = 1e-3,
        increase: float = 10.0,
        decrease: float = 0.1,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
    ):
        super().__init__(params, mu, increase, decrease, tolerance_grad, tolerance_change)

    def directions(self, f: SecondOrderObjective, g: Tensor) -> Callable[[float], Tensor | None]:
        values, vectors = _decomposed(f)
        return lambda mu: _step(vectors, abs(values) + mu, g)
