"""Newton's method without a matrix: conjugate gradients on products with the curvature."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from chainrule.ops.creation.patterns import zeros_like
from chainrule.optim.line_search import dot
from chainrule.optim.optimizer import check_range
from chainrule.optim.second_derivatives import WithOutputs
from chainrule.optim.second_order import SecondOrderMethod, Step, rounding_error
from chainrule.tensor import Tensor
from chainrule.typing import Params

__all__ = ["HessianFree"]

LEAST_DAMPING, MOST_DAMPING = 1e-15, 1e15
SPACING = 1.3  # iterates of conjugate gradients are kept at 1.3^j


class _Iterate(NamedTuple):
    """A step d of conjugate gradients with its model 1/2 d.B d + g.d, and with d.B d."""

    d: Tensor
    model: float
    curvature: float


class _Solution(NamedTuple):
    kept: list[_Iterate]  # from the first to the last
    bounded: bool  # False if a direction of negative curvature was met


def conjugate_gradients(
    product: Callable[[Tensor], Tensor],
    g: Tensor,
    start: Tensor,
    max_iter: int,
    tolerance: float,
) -> _Solution:
    """Steps d that make 1/2 d.B d + g.d smaller and smaller, from ``start`` on.

    Truncated (Martens) when the last k = max(10, i/10) of i iterations lowered the model by less
    than a share of k * tolerance, when the equation B d = -g holds to half the digits, or at a
    direction of negative curvature, where the model has no minimum.
    """
    d, r = zeros_like(g), -g
    kept: list[_Iterate] = []
    if float(abs(start).max()) > 0:
        there = -g - product(start)
        first = _iterate(start, g, there)
        if first.model < 0:  # lower than at zero
            d, r, kept = start, there, [first]
    p, rr, solved = r, dot(r, r), rounding_error(g) * dot(g, g)
    models, next_kept, bounded = [dot(d, g - r) / 2], 1.0, True
    for i in range(1, max_iter + 1):
        if rr <= solved:
            break
        bp = product(p)
        curvature = dot(p, bp)
        if not curvature > 0:
            bounded = False
            break
        d, r = d + (rr / curvature) * p, r - (rr / curvature) * bp
        rr, before = dot(r, r), rr
        p = r + (rr / before) * p
        models.append(dot(d, g - r) / 2)
        if i >= next_kept:
            kept.append(_iterate(d, g, r))
            next_kept = math.ceil(next_kept * SPACING)
        k = max(10, i // 10)
        if i > k and 1 - models[-1 - k] / models[-1] < k * tolerance:
            break
    if len(models) > 1 and kept[-1].d is not d:
        kept.append(_iterate(d, g, r))
    return _Solution(kept or [_steepest(product, g)], bounded)


def _iterate(d: Tensor, g: Tensor, r: Tensor) -> _Iterate:
    """From the residual r = -g - B d."""
    return _Iterate(d, dot(d, g - r) / 2, -dot(d, g + r))


def _steepest(product: Callable[[Tensor], Tensor], g: Tensor) -> _Iterate:
    """The step along -g as far as the size of the curvature says."""
    squared, curvature = dot(g, g), dot(g, product(g))
    t = squared / abs(curvature) if curvature else 1.0
    return _Iterate(-t * g, t * t * curvature / 2 - t * squared, t * t * curvature)


class HessianFree(SecondOrderMethod[WithOutputs]):
    """Hessian-free optimization: (B + damping I) d = -g, solved by conjugate gradients.

    B is the Gauss-Newton matrix J^T H_L J if the closure returns ``(outputs, loss_fn)`` or
    residuals (a tensor of more than one element, with the loss 1/2 sum r^2), the Hessian if it
    returns the loss alone. Only its products with vectors are used, each at the cost of about two
    gradients: no matrix is formed. The solution starts from ``decay`` times the last one and is
    truncated early; of its iterates the one with the lowest loss is taken (backtracking), and then
    shortened until the loss falls enough. The damping follows the reduction ratio rho, the fall of
    the loss over that of the quadratic model: damping * 3/2 if rho < 1/4, damping * 2/3 if rho >
    3/4.

    Martens, Deep learning via Hessian-free optimization, 2010.

    Args:
        params: the parameters.
        damping: of the first step (default 1.0).
        max_cg: the largest number of iterations of conjugate gradients in a step (default 250).
        cg_tolerance: the smallest relative fall of the quadratic model in an iteration (default
            5e-4).
        decay: how much of the last step the next one starts from (default 0.95).
        tolerance_grad: converged if no entry of the gradient is larger (default 1e-7).
        tolerance_change: converged if neither loss nor parameters change by more, relatively
            (default 1e-9).

    >>> import chainrule
    >>> from chainrule import nn, optim
    >>> x = chainrule.linspace(-1, 1, 50).reshape(-1, 1)
    >>> model, loss_fn = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1)), nn.MSELoss()
    >>> optimizer = optim.HessianFree(model.parameters())
    >>> report = optimizer.run(lambda: (model(x), lambda y: loss_fn(y, (3 * x).sin())), 30)
    >>> report.loss < 1e-3
    True
    """

    objective_type = WithOutputs

    def __init__(
        self,
        params: Params,
        damping: float = 1.0,
        max_cg: int = 250,
        cg_tolerance: float = 5e-4,
        decay: float = 0.95,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
    ):
        check_range("HessianFree", damping=damping, cg_tolerance=cg_tolerance)
        check_range("HessianFree", 0.0, 1.0, decay=decay)
        check_range("HessianFree", 1, max_cg=max_cg)
        settings = {
            "damping": damping,
            "max_cg": max_cg,
            "cg_tolerance": cg_tolerance,
            "decay": decay,
            "line_search_fn": "backtracking",
        }
        super().__init__(params, settings, tolerance_grad, tolerance_change)

    def iterate(self, f: WithOutputs, x: Tensor, loss: float, g: Tensor) -> Step:
        group, memory = self.param_groups[0], self.memory
        start = group["decay"] * memory["direction"] if "direction" in memory else zeros_like(g)
        step = self._try(f, x, loss, g, start)
        if step[0] is x and "direction" in memory:  # it may be the start that led astray
            f.move_to(x)
            step = self._try(f, x, loss, g, zeros_like(g))
        return step

    def _try(self, f: WithOutputs, x: Tensor, loss: float, g: Tensor, start: Tensor) -> Step:
        group, memory = self.param_groups[0], self.memory
        damping = memory.get("damping", group["damping"])
        solution = conjugate_gradients(
            lambda v: f.curvature_product(v) + damping * v,
            g,
            start,
            group["max_cg"],
            group["cg_tolerance"],
        )
        best, best_loss = self._backtrack(f, x, solution.kept)
        ratio = _reduction_ratio(best, g, damping, best_loss - loss)
        if not solution.bounded or not ratio >= 0.25:
            damping = min(damping * 1.5, MOST_DAMPING)
        elif ratio > 0.75:
            damping = max(damping / 1.5, LEAST_DAMPING)
        memory["damping"], memory["direction"] = damping, solution.kept[-1].d
        return self.follow(f, x, loss, g, best.d)

    def _backtrack(self, f: WithOutputs, x: Tensor, kept: list[_Iterate]) -> tuple[_Iterate, float]:
        """The last iterate, or an earlier one as long as going back lowers the loss."""
        best = kept[-1]
        best_loss = f.value(x + best.d)
        for earlier in reversed(kept[:-1]):
            loss = f.value(x + earlier.d)
            if not loss < best_loss:
                break
            best, best_loss = earlier, loss
        return best, best_loss


def _reduction_ratio(step: _Iterate, g: Tensor, damping: float, change: float) -> float:
    """The change of the loss over that of the model without damping; -1 if that did not fall."""
    curvature = step.curvature - damping * dot(step.d, step.d)
    expected = dot(g, step.d) + curvature / 2
    return change / expected if expected < 0 else -1.0
