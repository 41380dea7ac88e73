"""Methods for a sum of squares: Gauss-Newton and Levenberg-Marquardt.

The closure returns residuals r (of any shape), the loss is 1/2 sum r^2 and its gradient J^T r with
the Jacobian J of the residuals. J^T J stands for the Hessian. It is never formed, which would
square the condition number: from the singular values s of J = U diag(s) V^T the step is

    d = -V diag(s / (s^2 + mu)) U^T r

which solves the damped equations (J^T J + mu I) d = -J^T r for any mu.
"""

from __future__ import annotations

from collections.abc import Callable

from chainrule.ops.linalg.decompositions import svd
from chainrule.ops.elementwise.functions import sqrt
from chainrule.ops.elementwise.logic import where
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.reduce.reductions import sum
from chainrule.optim.second_derivatives import Residuals
from chainrule.optim.second_order import (
    Damped,
    SecondOrderMethod,
    Step,
    check_line_search,
    rounding_error,
)
from chainrule.tensor import Tensor
from chainrule.typing import Params

__all__ = ["GaussNewton", "LevenbergMarquardt"]


class GaussNewton(SecondOrderMethod[Residuals]):
    """The Gauss-Newton method, w <- w - (J^T J)^-1 J^T r: exact in one step for linear residuals.

    If the columns of J depend on each other, the smallest of the possible steps is taken. A step
    that does not lower the loss enough is shortened by the line search, or with
    ``line_search_fn=None`` not taken. Gauss, 1809; Nocedal and Wright, 2006, chapter 10.

    Args:
        params: the parameters.
        line_search_fn: "backtracking", "strong_wolfe", or None to try the whole step alone (default
            "backtracking").
        tolerance_grad: converged if no entry of the gradient is larger (default 1e-7).
        tolerance_change: converged if neither loss nor parameters change by more, relatively
            (default 1e-9).

    >>> import chainrule
    >>> from chainrule import optim
    >>> x = chainrule.tensor([0.0, 1.0, 2.0])
    >>> w = chainrule.zeros(2, requires_grad=True)
    >>> optimizer = optim.GaussNewton([w])
    >>> loss = optimizer.step(lambda: w[0] * x + w[1] - (3 * x + 2))
    >>> w.detach()
    tensor([3.0000, 2.0000])
    """

    objective_type = Residuals

    def __init__(
        self,
        params: Params,
        line_search_fn: str | None = "backtracking",
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
    ):
        check_line_search("GaussNewton", line_search_fn)
        settings = {"line_search_fn": line_search_fn}
        super().__init__(params, settings, tolerance_grad, tolerance_change)

    def iterate(self, f: Residuals, x: Tensor, loss: float, g: Tensor) -> Step:
        jacobian = f.jacobian()
        u, s, vh = svd(jacobian, full_matrices=False)
        least = max(jacobian.shape) * rounding_error(s) * float(s.max())
        weights = where(s > least, 1 / where(s > least, s, 1.0), 0.0)
        d = -matmul(vh.mT, weights * matmul(u.mT, f.residuals()))
        return self.follow(f, x, loss, g, d)


class LevenbergMarquardt(Damped[Residuals]):
    """Gauss-Newton with damping, w <- w - (J^T J + mu D^2)^-1 J^T r.

    mu grows until the step lowers the loss, which turns and shortens it toward the gradient, and
    shrinks after a step that did. D is the identity (Levenberg) or, with ``scaling``, holds the
    lengths of the columns of J (Marquardt): then the steps do not depend on the units of the
    parameters. Levenberg, 1944; Marquardt, 1963.

    Args:
        params: the parameters.
        mu: the damping of the first step (default 1e-3).
        increase: the factor of mu after a step that was not taken (default 10.0).
        decrease: the factor of mu after a step that was (default 0.1).
        scaling: whether the damping is scaled by the columns of J.
        tolerance_grad: converged if no entry of the gradient is larger (default 1e-7).
        tolerance_change: converged if neither loss nor parameters change by more, relatively
            (default 1e-9).

    >>> import chainrule
    >>> from chainrule import optim
    >>> x = chainrule.linspace(0, 1, 20)
    >>> w = chainrule.tensor([1.0, 1.0], requires_grad=True)
    >>> optimizer = optim.LevenbergMarquardt([w])
    >>> report = optimizer.run(lambda: w[0] * (w[1] * x).exp() - 2 * (-3 * x).exp())
    >>> w.detach()
    tensor([ 2., -3.])
    """

    objective_type = Residuals

    def __init__(
        self,
        params: Params,
        mu: float = 1e-3,
        increase: float = 10.0,
        decrease: float = 0.1,
        scaling: bool = False,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
    ):
        super().__init__(
            params, mu, increase, decrease, tolerance_grad, tolerance_change, scaling=scaling
        )

    def directions(self, f: Residuals, g: Tensor) -> Callable[[float], Tensor | None]:
        jacobian, r = f.jacobian(), f.residuals()
        lengths = _column_lengths(jacobian) if self.param_groups[0]["scaling"] else 1.0
        u, s, vh = svd(jacobian / lengths, full_matrices=False)
        along = matmul(u.mT, r)
        return lambda mu: -matmul(vh.mT, s / (s * s + mu) * along) / lengths


def _column_lengths(jacobian: Tensor) -> Tensor:
    """The length of each column; 1 for one of zeros, whose parameter does not move anyway."""
    squares = sum(jacobian * jacobian, 0)
    return where(squares > 0, sqrt(squares), 1.0)
