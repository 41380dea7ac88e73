"""Descent along lines: steepest, conjugate and quasi-Newton directions with a line search."""

from __future__ import annotations

from typing import Any

from chainrule.backend import K
from chainrule.ops.creation.patterns import eye
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.shape.views import reshape
from chainrule.optim.line_search import LINE_SEARCHES, Search, dot
from chainrule.optim.minimizer import Minimizer
from chainrule.optim.objective import Objective
from chainrule.optim.settings import check_range
from chainrule.tensor import Tensor
from chainrule.typing import Params

__all__ = ["BFGS", "ConjugateGradient", "Descent", "SteepestDescent", "is_curved", "short_step"]


class Descent(Minimizer[Objective]):
    """The base of methods that choose a direction and search along it.

    A subclass says :meth:`direction` and what it :meth:`learn`\\ s from a step. A direction that
    does not lead to a lower loss makes it :meth:`forget`, and try again from there.
    """

    still = 0  # how many small changes there were in a row

    def direction(self, g: Tensor) -> Tensor:
        """Where to go, from the gradient and the memory; -g without one."""
        return -g

    def learn(self, found: Search, loss: float, g: Tensor, d: Tensor) -> None:
        """Remembers what the next direction depends on: a step along d, from this gradient."""
        fall = min(found.step * dot(g, d), 2 * (found.loss - loss))  # both are negative
        self.memory["slope_times_step"] = fall

    def forget(self) -> None:
        """Clears the memory."""
        self.memory.clear()

    def is_fresh(self) -> bool:
        """Whether there is no memory."""
        return not self.memory

    def first_trial(self, g: Tensor, slope: float) -> float:
        """The step to try first: as much should be gained by it as by the last one."""
        return self.memory.get("slope_times_step", 0.0) / slope or short_step(g)

    def search(
        self, f: Objective, x: Tensor, loss: float, g: Tensor, d: Tensor, step: float
    ) -> Search:
        """The line search."""
        group = self.param_groups[0]
        name, options = group["line_search_fn"], {k: group[k] for k in ("c1", "max_evals")}
        if name == "strong_wolfe":
            options["c2"] = group["c2"]
        return LINE_SEARCHES[name](f, x, loss, g, d, step, **options)

    def iterate(
        self, f: Objective, x: Tensor, loss: float, g: Tensor
    ) -> tuple[Tensor, float, Tensor]:
        fresh = self.is_fresh()
        found = self._attempt(f, x, loss, g)
        if not found.is_lower_than(loss) and not fresh:
            self.forget()
            found = self._attempt(f, x, loss, g)
        if not found.is_lower_than(loss):
            return x, loss, g
        return found.x, found.loss, found.gradient

    def _is_small(self, x: Tensor, new_x: Tensor, loss: float, new_loss: float) -> bool:
        """Two in a row: a single one may be due to a bad direction."""
        self.still = self.still + 1 if super()._is_small(x, new_x, loss, new_loss) else 0
        return self.still >= 2

    def _attempt(self, f: Objective, x: Tensor, loss: float, g: Tensor) -> Search:
        d = self.direction(g)
        slope = dot(g, d)
        if not slope < 0:
            self.forget()
            d = self.direction(g)
            slope = dot(g, d)
        t = self.first_trial(g, slope)
        self.expected = min(self.expected, -t * slope / 2)  # half of what the tangent promises
        found = self.search(f, x, loss, g, d, t)
        if found.is_lower_than(loss):
            self.learn(found, loss, g, d)
        return found


def line_settings(
    name: str, line_search_fn: str, c1: float, c2: float, max_evals: int
) -> dict[str, Any]:
    """The settings of a line search, checked."""
    if line_search_fn not in LINE_SEARCHES:
        raise ValueError(
            f"{name}: line_search_fn must be one of {', '.join(LINE_SEARCHES)}, got "
            f"{line_search_fn!r}"
        )
    check_range(name, low=0.0, high=1.0, closed=False, c1=c1, c2=c2)
    if c1 >= c2:
        raise ValueError(f"{name}: c1 must be below c2, got c1={c1}, c2={c2}")
    check_range(name, low=1, max_evals=max_evals)
    return {"line_search_fn": line_search_fn, "c1": c1, "c2": c2, "max_evals": max_evals}


def short_step(g: Tensor) -> float:
    """A step along -g that changes the parameters by 1 at most, all together."""
    return min(1.0, 1.0 / float(g.abs().sum()))


def is_curved(s: Tensor, y: Tensor, ys: float) -> bool:
    """The curvature condition y's > 0, by more than rounding: the loss curves upward along s."""
    return ys > K.rounding_error(s.array.dtype) * (dot(s, s) * dot(y, y)) ** 0.5


class SteepestDescent(Descent):
    """Steepest descent with a line search: p <- p - t g.

    Cauchy, 1847; Armijo, 1966; Wolfe, 1969.

    Args:
        params: the parameters.
        line_search_fn: "strong_wolfe", "backtracking" (Armijo), or "exact" (for a quadratic loss)
            (default "strong_wolfe").
        c1: the part of what the slope promises that the loss has to fall by, at least (default
            1e-4).
        c2: what has to be left of the slope, at most (default 0.1).
        max_evals: the most evaluations of one line search (default 25).
        tolerances: ``tolerance_grad`` and ``tolerance_change``, see :class:`Minimizer`.

    >>> import chainrule
    >>> from chainrule import optim
    >>> w = chainrule.tensor([3.0, 1.0], requires_grad=True)
    >>> optimizer = optim.SteepestDescent([w])
    >>> report = optimizer.run(lambda: (w[0] ** 2 + 5 * w[1] ** 2))
    >>> report.converged
    True
    """

    def __init__(
        self,
        params: Params,
        line_search_fn: str = "strong_wolfe",
        *,
        c1: float = 1e-4,
        c2: float = 0.1,
        max_evals: int = 25,
        **tolerances: float,
    ):
        settings = line_settings(self._name, line_search_fn, c1, c2, max_evals)
        super().__init__(params, settings, **tolerances)


class ConjugateGradient(Descent):
    """Nonlinear conjugate gradient: d <- -g + beta d, p <- p + t d.

    With y = g - g_old, beta is g'g / g_old'g_old ("fletcher-reeves"), max(0, g'y / g_old'g_old)
    ("polak-ribiere") or g'y / d'y ("hestenes-stiefel"). With "exact" line searches all three end
    after n steps on a quadratic of n variables. Hestenes and Stiefel, 1952; Fletcher and Reeves,
    1964; Polak and Ribiere, 1969; Nocedal and Wright, 2006, chapter 5.

    Args:
        params: the parameters.
        formula: which beta (default "polak-ribiere").
        line_search_fn: "strong_wolfe", "backtracking" (Armijo), or "exact" (for a quadratic loss)
            (default "strong_wolfe").
        restart: after how many directions to begin anew from -g; if None, the number of variables.
        c1: the part of what the slope promises that the loss has to fall by, at least (default
            1e-4).
        c2: what has to be left of the slope, at most (default 0.1).
        max_evals: the most evaluations of one line search (default 25).
        tolerances: ``tolerance_grad`` and ``tolerance_change``, see :class:`Minimizer`.

    >>> import chainrule
    >>> from chainrule import optim
    >>> w = chainrule.tensor([3.0, 1.0], dtype=chainrule.float64, requires_grad=True)
    >>> optimizer = optim.ConjugateGradient([w], line_search_fn="exact")
    >>> report = optimizer.run(lambda: w[0] ** 2 + 5 * w[1] ** 2)
    >>> report.converged, report.iterations
    (True, 2)
    """

    def __init__(
        self,
        params: Params,
        formula: str = "polak-ribiere",
        line_search_fn: str = "strong_wolfe",
        *,
        restart: int | None = None,
        c1: float = 1e-4,
        c2: float = 0.1,
        max_evals: int = 25,
        **tolerances: float,
    ):
        if formula not in BETAS:
            raise ValueError(
                f"{self._name}: formula must be one of {', '.join(BETAS)}, got {formula!r}"
            )
        if restart is not None:
            check_range(self._name, low=1, restart=restart)
        settings = line_settings(self._name, line_search_fn, c1, c2, max_evals)
        super().__init__(params, {"formula": formula, "restart": restart, **settings}, **tolerances)

    def direction(self, g: Tensor) -> Tensor:
        m, group = self.memory, self.param_groups[0]
        if m.get("directions", 0) >= (group["restart"] or g.numel()):
            m["directions"] = 0
        if not m.get("directions"):
            return -g
        return BETAS[group["formula"]](g, m["prev_flat_grad"], m["d"]) * m["d"] - g

    def learn(self, found: Search, loss: float, g: Tensor, d: Tensor) -> None:
        super().learn(found, loss, g, d)
        m = self.memory
        m.update(d=d, prev_flat_grad=g, directions=m.get("directions", 0) + 1)


def _fletcher_reeves(g: Tensor, old: Tensor, d: Tensor) -> float:
    return dot(g, g) / dot(old, old)


def _polak_ribiere(g: Tensor, old: Tensor, d: Tensor) -> float:
    return max(0.0, dot(g, g - old) / dot(old, old))


def _hestenes_stiefel(g: Tensor, old: Tensor, d: Tensor) -> float:
    y = g - old
    curvature = dot(d, y)
    return dot(g, y) / curvature if curvature else 0.0


BETAS = {
    "fletcher-reeves": _fletcher_reeves,
    "polak-ribiere": _polak_ribiere,
    "hestenes-stiefel": _hestenes_stiefel,
}


class BFGS(Descent):
    """The quasi-Newton method of Broyden, Fletcher, Goldfarb and Shanno: d = -H g, p <- p + t d.

    With s the step, y the change of the gradient and r = 1 / y's, the inverse Hessian H becomes
    (I - r s y') H (I - r y s') + r s s'; it is left as it is where y's is not positive. It starts
    from the multiple y's / y'y of the identity. It has n^2 numbers: see :class:`LBFGS` for large n.
    All four in 1970; Nocedal and Wright, 2006, chapter 6.

    Args:
        params: the parameters.
        line_search_fn: "strong_wolfe", "backtracking" (Armijo), or "exact" (for a quadratic loss)
            (default "strong_wolfe").
        c1: the part of what the slope promises that the loss has to fall by, at least (default
            1e-4).
        c2: what has to be left of the slope, at most (default 0.9).
        max_evals: the most evaluations of one line search (default 25).
        tolerances: ``tolerance_grad`` and ``tolerance_change``, see :class:`Minimizer`.

    >>> import chainrule
    >>> from chainrule import optim
    >>> w = chainrule.tensor([-1.2, 1.0], dtype=chainrule.float64, requires_grad=True)
    >>> optimizer = optim.BFGS([w])
    >>> report = optimizer.run(lambda: (1 - w[0]) ** 2 + 100 * (w[1] - w[0] ** 2) ** 2)
    >>> w.detach()
    tensor([1.0000, 1.0000], dtype=chainrule.float64)
    """

    def __init__(
        self,
        params: Params,
        line_search_fn: str = "strong_wolfe",
        *,
        c1: float = 1e-4,
        c2: float = 0.9,
        max_evals: int = 25,
        **tolerances: float,
    ):
        settings = line_settings(self._name, line_search_fn, c1, c2, max_evals)
        super().__init__(params, settings, **tolerances)

    def direction(self, g: Tensor) -> Tensor:
        m = self.memory
        return -matmul(m["inverse_hessian"], g) if "inverse_hessian" in m else -g

    def first_trial(self, g: Tensor, slope: float) -> float:
        return 1.0 if "inverse_hessian" in self.memory else super().first_trial(g, slope)

    def learn(self, found: Search, loss: float, g: Tensor, d: Tensor) -> None:
        super().learn(found, loss, g, d)
        s, y = found.step * d, found.gradient - g
        ys = dot(y, s)
        if is_curved(s, y, ys):
            H = self.memory.get("inverse_hessian")
            if H is None:
                H = eye(s.numel(), dtype=s.dtype, device=s.device) * (ys / dot(y, y))
            self.memory["inverse_hessian"] = _updated(H, s, y, ys)


def _updated(H: Tensor, s: Tensor, y: Tensor, ys: float) -> Tensor:
    """The inverse Hessian after a step, with H y = s."""
    Hy = matmul(H, y)
    column, row = reshape(s, (-1, 1)), reshape(s, (1, -1))
    mixed = reshape(Hy, (-1, 1)) * row
    return H + ((1 + dot(y, Hy) / ys) / ys) * (column * row) - (mixed + mixed.mT) / ys
