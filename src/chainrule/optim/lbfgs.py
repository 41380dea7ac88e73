"""L-BFGS: the quasi-Newton method that remembers a few steps instead of a matrix."""

from __future__ import annotations

import math
from typing import Any

from chainrule.ops.creation.conversion import clone
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.core.promotion import cast
from chainrule.optim.descent import Descent, is_curved, short_step
from chainrule.optim.line_search import Search, dot, strong_wolfe
from chainrule.optim.minimizer import Report, check_start
from chainrule.optim.objective import Objective
from chainrule.optim.settings import check_range
from chainrule.tensor import Tensor
from chainrule.typing import Params, Rate

__all__ = ["LBFGS"]

VECTORS = ("d", "prev_flat_grad")
LISTS = ("old_dirs", "old_stps")  # the changes y of the gradient, and the steps s
NUMBERS = ("t", "H_diag", "prev_loss")
COUNTS = ("func_evals", "n_iter")


class LBFGS(Descent):
    """L-BFGS: BFGS whose inverse Hessian is the product of the last ``history_size`` updates.

    d = -H g, p <- p + t d, where H is the multiple y's / y'y of the identity, updated as in
    :class:`BFGS` by the last steps s and changes y of the gradient.

    A ``step`` makes up to ``max_iter`` iterations. Without line search an iteration goes ``lr``
    times the direction, even if the loss rises (it is undone if the loss is no longer finite), and
    the last point of a step is not evaluated. ``run`` iterates as often as asked and keeps to a
    falling loss; ``optim.minimize`` does that, with the line search. Nocedal, 1980.

    Args:
        params: the parameters.
        lr: the first step that is tried, in units of the direction (default 1).
        max_iter: the most iterations of one ``step`` (default 20).
        max_eval: the most evaluations of one ``step`` (default: max_iter * 5 // 4).
        tolerance_grad: ends a step if no entry of the gradient is larger (default 1e-7).
        tolerance_change: ends a step if the loss or no parameter changes by more (default 1e-9).
        history_size: how many updates are kept (default 100).
        line_search_fn: None or "strong_wolfe".

    >>> import chainrule
    >>> from chainrule import optim
    >>> w = chainrule.tensor([-1.2, 1.0], dtype=chainrule.float64, requires_grad=True)
    >>> optimizer = optim.LBFGS([w], max_iter=100, line_search_fn="strong_wolfe")
    >>> optimizer.step(lambda: (1 - w[0]) ** 2 + 100 * (w[1] - w[0] ** 2) ** 2)
    tensor(24.2000, dtype=chainrule.float64)
    >>> w.detach()
    tensor([1.0000, 1.0000], dtype=chainrule.float64)
    """

    def __init__(
        self,
        params: Params,
        lr: Rate = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ):
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError(f"LBFGS: a tensor lr must have 1 element, got {tuple(lr.shape)}")
        if line_search_fn not in (None, "strong_wolfe"):
            raise RuntimeError(
                f"LBFGS: only 'strong_wolfe' is supported as line_search_fn, got {line_search_fn!r}"
            )
        check_range("LBFGS", lr=lr, max_iter=max_iter)
        check_range("LBFGS", low=1, history_size=history_size)
        settings = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, settings, tolerance_grad, tolerance_change)

    takes_any_dtype = True

    # --- the direction ----------------------------------------------------------------------------

    def direction(self, g: Tensor, least: float | None = None) -> Tensor:
        """-H g, after taking the last step into H (``least``: if its y's is larger than that)."""
        m = self.memory
        m["n_iter"] = m.get("n_iter", 0) + 1
        if m["n_iter"] == 1:
            m.update(old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
            d = -g
        else:
            self._remember(g - m["prev_flat_grad"], m["d"] * m["t"], least)
            d = self._product(-g)
        m.update(d=d, prev_flat_grad=g)
        return d

    def _remember(self, y: Tensor, s: Tensor, least: float | None) -> None:
        m, ys = self.memory, dot(y, s)
        if not (is_curved(s, y, ys) if least is None else ys > least):
            return
        kept = self.param_groups[0]["history_size"]
        for name, value in (("old_dirs", y), ("old_stps", s), ("ro", 1.0 / ys)):
            m[name] = [*m[name], value][-kept:]
        m["H_diag"] = ys / dot(y, y)

    def _product(self, q: Tensor) -> Tensor:
        """H q by the two loops: through the updates backward, and forward again."""
        m = self.memory
        updates = list(zip(m["old_dirs"], m["old_stps"], m["ro"], strict=True))
        parts = []
        for y, s, rho in reversed(updates):
            part = dot(s, q) * rho
            q = q - part * y
            parts.append(part)
        q = q * m["H_diag"]
        for (y, s, rho), part in zip(updates, reversed(parts), strict=True):
            q = q + (part - dot(y, q) * rho) * s
        return q

    def first_trial(self, g: Tensor, slope: float) -> float:
        lr = float(self.param_groups[0]["lr"])
        return short_step(g) * lr if self.memory["n_iter"] == 1 else lr

    def is_fresh(self) -> bool:
        return not self.memory.get("n_iter")

    def forget(self) -> None:
        """Clears the history; the next direction is -g."""
        m = self.memory
        evaluations = m.get("func_evals", 0)
        m.clear()
        m.update(func_evals=evaluations, n_iter=0)

    # --- one iteration of many --------------------------------------------------------------------

    def search(
        self,
        f: Objective,
        x: Tensor,
        loss: float,
        g: Tensor,
        d: Tensor,
        step: float,
        max_evals: int = 25,
    ) -> Search:
        if self.param_groups[0]["line_search_fn"]:
            return strong_wolfe(f, x, loss, g, d, step, max_evals=max_evals)
        new_loss, new_g = f.value_and_gradient(x + step * d)
        new = f.vector()  # a closure may have moved the parameters, into bounds for example
        return Search(step, new, new_loss, new_g, 1, new_loss <= loss)

    def learn(self, found: Search, loss: float, g: Tensor, d: Tensor) -> None:
        m = self.memory
        m.update(t=found.step, prev_loss=found.loss)
        m["func_evals"] = m.get("func_evals", 0) + found.evaluations

    # --- PyTorch's step ---------------------------------------------------------------------------

    def _advance(self, f: Objective) -> float:
        group, m = self.param_groups[0], self.memory
        x = best = f.vector()
        n, reason, converged = 0, "", False
        try:
            loss, g = f.value_and_gradient()
            start = lowest = loss
            x = best = f.vector()  # a closure may have moved the parameters
            check_start(self._name, loss, g)
            reason, converged = self._at_rest(g)
            while n < group["max_iter"] and not reason:
                n += 1
                found, before = self._pytorch_iteration(f, x, loss, g, n), loss
                if found is None:
                    reason, converged = "the slope is smaller than tolerance_change", True
                    break
                x, loss, g = found.x, found.loss, found.gradient
                if not math.isfinite(loss) or not bool(g.isfinite().all()):
                    x, loss, reason = best, lowest, "the loss is not finite after the last step"
                    self.forget()
                    break
                if loss <= lowest:
                    best, lowest = x, loss
                reason, converged = self._pytorch_end(f, n, g, before - loss)
        except BaseException:
            x = best
            self.forget()
            raise
        finally:
            f.move_to(x)
        m["func_evals"] = m.get("func_evals", 0) + f.evaluations
        m.setdefault("n_iter", 0)
        reason = reason or f"reached max_iter = {n}"
        self.report = Report(loss, n, f.evaluations, f.gradients, 0, converged, reason)
        return start

    def _pytorch_iteration(
        self, f: Objective, x: Tensor, loss: float, g: Tensor, n: int
    ) -> Search | None:
        """One iteration; None if the direction is too flat to go along."""
        group, m = self.param_groups[0], self.memory
        d = self.direction(g, least=1e-10)
        slope = dot(g, d)
        t = self.first_trial(g, slope)
        m.update(t=t, prev_loss=loss)
        if slope > -group["tolerance_change"]:
            return None
        if group["line_search_fn"] is None and n == group["max_iter"]:
            return Search(t, x + t * d, loss, g, 0, True)  # PyTorch saves the evaluation
        found = self.search(f, x, loss, g, d, t, group["max_eval"] - f.evaluations + 1)
        m["t"] = found.step
        return found

    def _pytorch_end(self, f: Objective, n: int, g: Tensor, fall: float) -> tuple[str, bool]:
        """Why a step ends after an iteration, if it does."""
        group, m = self.param_groups[0], self.memory
        if n == group["max_iter"]:
            return f"reached max_iter = {n}", False
        if f.evaluations >= group["max_eval"]:
            return f"reached max_eval = {group['max_eval']}", False
        small = group["tolerance_change"]
        reason, converged = self._at_rest(g)
        if not reason and (float((m["d"] * m["t"]).abs().max()) <= small or abs(fall) < small):
            return "the change is smaller than tolerance_change", True
        return reason, converged

    # --- files ------------------------------------------------------------------------------------

    def _unpacked(self, p: Tensor, values: dict[str, Any]) -> dict[str, Any]:
        """The state as it is kept here, from one of PyTorch or of this class."""
        new: dict[str, Any] = {}
        for name, value in values.items():
            if value is None:
                continue
            if name in VECTORS:
                new[name] = _vector(p, value)
            elif name in LISTS:
                new[name] = [_vector(p, v) for v in value]
            elif name == "ro":
                new[name] = [float(v) for v in value]
            elif name in NUMBERS:
                new[name] = float(value)
            elif name in COUNTS:
                new[name] = int(value)
        return new


def _vector(p: Tensor, value: Any) -> Tensor:
    value = value if isinstance(value, Tensor) else tensor(value)
    return clone(cast(value.detach(), p.real.dtype if p.is_complex() else p.dtype))
