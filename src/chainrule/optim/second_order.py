"""What the second-order methods have in common: their objective, search and damping."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias, TypeVar

from chainrule.backend import K
from chainrule.ops.reduce.reductions import equal
from chainrule.optim.line_search import LINE_SEARCHES, dot
from chainrule.optim.minimizer import Minimizer
from chainrule.optim.objective import Objective
from chainrule.optim.optimizer import check_range
from chainrule.optim.second_derivatives import SecondOrderObjective
from chainrule.tensor import Tensor
from chainrule.typing import Params

__all__ = ["Damped", "SecondOrderMethod", "Step", "check_line_search", "rounding_error"]

S = TypeVar("S", bound=SecondOrderObjective)
Step: TypeAlias = tuple[Tensor, float, Tensor]  # a point, its loss, its gradient
LEAST_DAMPING, MOST_DAMPING = 1e-15, 1e15


def rounding_error(x: Tensor) -> float:
    """The distance from 1 to the next number in a tensor's dtype."""
    return float(K.rounding_error(x.array.dtype))


class SecondOrderMethod(Minimizer[S]):
    """A method whose closure leaves the graph, for second derivatives.

    The closure returns the loss and does not call ``backward()``.
    """

    objective_type: type[Objective] = SecondOrderObjective

    def expect(self, g: Tensor, d: Tensor) -> float:
        """The slope along d; ``expected`` becomes the fall of a quadratic with its minimum at d."""
        slope = dot(g, d)
        self.expected = -slope / 2
        return slope

    def follow(self, f: S, x: Tensor, loss: float, g: Tensor, d: Tensor) -> Step:
        """From x along d by ``line_search_fn``; by d itself or not at all if that is None.

        Nor is there anything to search if d does not point downhill.
        """
        name = self.param_groups[0]["line_search_fn"]
        if self.expect(g, d) < 0 and name is not None:
            found = LINE_SEARCHES[name](f, x, loss, g, d)
            return found.x, found.loss, found.gradient
        new = x + d
        if f.value(new) < loss:
            return new, *f.value_and_gradient()
        return x, loss, g


def check_line_search(name: str, line_search_fn: str | None) -> None:
    """Refuses a line search that does not exist."""
    if line_search_fn is not None and line_search_fn not in LINE_SEARCHES:
        known = ", ".join(repr(key) for key in LINE_SEARCHES)
        raise ValueError(
            f"{name}: line_search_fn must be None or one of {known}, got {line_search_fn!r}"
        )


class Damped(SecondOrderMethod[S]):
    """A method with a damping mu that shortens its step until the loss falls.

    A step that lowers the loss is taken and mu <- decrease mu; one that does not is not taken and
    mu <- increase mu. A subclass says :meth:`directions`.
    """

    def __init__(
        self,
        params: Params,
        mu: float,
        increase: float,
        decrease: float,
        tolerance_grad: float,
        tolerance_change: float,
        **settings: bool,
    ):
        check_range(self._name, mu=mu, closed=False)
        check_range(self._name, 1.0, increase=increase, closed=False)
        check_range(self._name, 0.0, 1.0, decrease=decrease, closed=False)
        defaults = {"mu": mu, "increase": increase, "decrease": decrease, **settings}
        super().__init__(params, defaults, tolerance_grad, tolerance_change)

    def directions(self, f: S, g: Tensor) -> Callable[[float], Tensor | None]:
        """The step as a function of mu, None if mu is too small for it to point downhill."""
        raise NotImplementedError

    def iterate(self, f: S, x: Tensor, loss: float, g: Tensor) -> Step:
        group, memory = self.param_groups[0], self.memory
        direction = self.directions(f, g)
        mu = memory.get("mu", group["mu"])
        while mu <= MOST_DAMPING:
            d = direction(mu)
            if d is not None:
                if self.expected == math.inf:
                    self.expect(g, d)
                new = x + d
                if equal(new, x):
                    break
                if f.value(new) <= loss:
                    memory["mu"] = max(mu * group["decrease"], LEAST_DAMPING)
                    return new, *f.value_and_gradient()
            mu = mu * group["increase"]
        return x, loss, g
