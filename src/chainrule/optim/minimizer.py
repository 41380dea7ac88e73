"""Methods that see the whole loss: an iteration evaluates it as often as it needs, by a closure."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, cast, overload

from chainrule.backend import K
from chainrule.optim.objective import Closure, Objective, Outputs
from chainrule.optim.optimizer import NotFiniteError, Optimizer
from chainrule.optim.settings import check_range
from chainrule.tensor import Tensor
from chainrule.typing import Params

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # the checkers bring it along

    F = TypeVar("F", bound=Objective, default=Any)
else:
    from typing import TypeVar

    F = TypeVar("F")

__all__ = ["Callback", "Minimizer", "Report"]

Callback: TypeAlias = Callable[[int, float], object]  # True stops


@dataclass
class Report:
    """What a minimization did and why it stopped.

    ``loss`` is the one the parameters have now, ``iterations`` how often they were moved,
    ``evaluations``, ``gradients`` and ``products`` how often the loss, its gradient, and a matrix
    of second derivatives times a vector were computed; ``converged`` is whether a criterion of
    convergence was met, ``reason`` says in words why it ended.
    """

    loss: float
    iterations: int
    evaluations: int
    gradients: int
    products: int
    converged: bool
    reason: str

    def __str__(self) -> str:
        products = f", {self.products} products of second derivatives" if self.products else ""
        return (
            f"loss {self.loss:.6g} after {self.iterations} iterations, {self.evaluations} "
            f"evaluations of the loss, {self.gradients} of its gradient{products}: {self.reason}"
        )


FAILED = "no lower loss was found"
AT_ROUNDING = "the loss can only fall by less than its rounding error"


def check_start(name: str, loss: float, g: Tensor) -> None:
    """Refuses to start where the loss or its gradient is not finite."""
    if not math.isfinite(loss) or not bool(g.isfinite().all()):
        what = "gradient" if math.isfinite(loss) else "loss"
        raise NotFiniteError(
            f"{name}: the {what} at the starting point is not finite; no parameter was changed. "
            "Start from other values (a logarithm or root of a negative number?), or find the "
            "operation with autograd.detect_anomaly()"
        )


class Minimizer(Optimizer, Generic[F]):
    """The base of the methods that take a closure.

    A subclass says :meth:`iterate`: from the point, loss and gradient to the next point. ``step``
    makes one iteration, ``run`` (and :func:`~chainrule.optim.minimize`) many. An iteration that
    finds no lower loss puts the parameters back where they were, and so does an exception from the
    closure. After a step, ``report`` tells how it went.

    Args:
        params: the parameters: one group, of one real dtype unless the method takes any.
        defaults: settings.
        tolerance_grad: converged if no entry of the gradient is larger (default 1e-7).
        tolerance_change: converged if neither the loss nor any parameter changes by more than this,
            relative to its size if that is above 1 (the rounding error of the dtype at least)
            (default 1e-9).
    """

    implementation_keys = ()
    objective_type: type[Objective] = Objective  # its own, F, in a subclass
    takes_any_dtype = False  # whether parameters may be complex, and of several dtypes
    expected = math.inf  # by how much the last iteration should have lowered the loss

    def __init__(
        self,
        params: Params,
        defaults: dict[str, Any],
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
    ):
        check_range(self._name, tolerance_grad=tolerance_grad, tolerance_change=tolerance_change)
        super().__init__(
            params,
            {**defaults, "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change},
        )
        if len(self.param_groups) != 1:
            raise ValueError(
                f"{self._name}: doesn't support per-parameter options (parameter groups), got "
                f"{len(self.param_groups)} groups; all parameters are one vector here"
            )
        dtypes = list(dict.fromkeys(p.dtype for p in self._params))
        if not self.takes_any_dtype and (len(dtypes) > 1 or dtypes[0].is_complex):
            raise ValueError(
                f"{self._name}: all parameters must have one real dtype, got "
                f"{', '.join(str(d) for d in dtypes)}"
            )
        self.report: Report | None = None

    @property
    def _params(self) -> list[Tensor]:
        return self.param_groups[0]["params"]

    @property
    def memory(self) -> dict[str, Any]:
        """What the method remembers between iterations; saved with the state_dict."""
        return self.state[self._params[0]]

    def iterate(self, f: F, x: Tensor, loss: float, g: Tensor) -> tuple[Tensor, float, Tensor]:
        """The next point with its loss and gradient; the given ones if no lower loss was found."""
        raise NotImplementedError("Minimizer: a subclass defines iterate(f, x, loss, g)")

    def objective(self, closure: Closure | None) -> F:
        """The closure as a function of the vector of parameters."""
        made = self.objective_type(self._params, self._required(closure), self._name)
        return cast("F", made)

    def _required(self, closure: Closure | None) -> Closure:
        if closure is None:
            raise ValueError(
                f"{self._name}.step: needs a closure that returns the loss for the parameters as "
                "they are: optimizer.step(lambda: loss(model(x), y)); or use optim.minimize"
            )
        return closure

    @overload  # type: ignore[override]  # there is no step without a closure
    def step(self, closure: Callable[[], Tensor | Outputs]) -> Tensor: ...
    @overload
    def step(self, closure: Callable[[], float]) -> float: ...
    def step(self, closure: Closure | None = None) -> Tensor | float:
        """One iteration. Returns the loss from before it, as PyTorch's optimizers do."""
        f = self.objective(closure)
        for hook in tuple(self._hooks["step_pre"].values()):
            hook(self, (closure,), {})
        before = self._advance(f)
        self._steps_taken += 1
        for hook in tuple(self._hooks["step_post"].values()):
            hook(self, (closure,), {})
        return f.first if f.first is not None and f.first.numel() == 1 else before

    def run(
        self,
        closure: Closure,
        max_iter: int = 1000,
        callback: Callback | None = None,
    ) -> Report:
        """Iterates until convergence, or ``max_iter`` times.

        ``callback(iteration, loss)`` is called after each; it may return True to stop.
        """
        check_range(f"{self._name}.run", max_iter=max_iter)
        self._run(self.objective(closure), max_iter, callback)
        return self.report  # type: ignore[return-value]

    def _advance(self, f: F) -> float:
        """What a step does; the loss at its start."""
        return self._run(f, 1)

    def _run(self, f: F, max_iter: int, callback: Callback | None = None) -> float:
        """Iterates; the loss at the start. The parameters end at the best point, come what may."""
        x = f.vector()
        done, converged, reason = 0, False, ""
        try:
            loss, g = f.value_and_gradient()
            start = loss
            check_start(self._name, loss, g)
            reason, converged = self._at_rest(g)
            while done < max_iter and not reason:
                before = x
                x, loss, g, reason, converged = self._one(f, x, loss, g)
                if x is before:
                    break
                done += 1
                if callback is not None:
                    f.move_to(x)  # the callback may look at the model
                    if callback(done, loss) is True:
                        reason = reason or "stopped by the callback"
        finally:
            f.move_to(x)
        reason = reason or f"reached max_iter = {max_iter}"
        self.report = Report(loss, done, f.evaluations, f.gradients, f.products, converged, reason)
        return start

    def _at_rest(self, g: Tensor) -> tuple[str, bool]:
        """Why there is nothing to do, if there is nothing."""
        if float(g.abs().max()) <= self.param_groups[0]["tolerance_grad"]:
            return "the gradient is zero to tolerance_grad", True
        return "", False

    def _one(
        self, f: F, x: Tensor, loss: float, g: Tensor
    ) -> tuple[Tensor, float, Tensor, str, bool]:
        """One iteration that never ends higher than it began; why it is the last one, if it is."""
        self.expected = math.inf
        new_x, new_loss, new_g = self.iterate(f, x, loss, g)
        if new_x is x or not new_loss <= loss or not bool(new_g.isfinite().all()):
            least = 10 * K.rounding_error(x.array.dtype) * max(1.0, abs(loss))
            lowest = 0 <= self.expected <= least
            return x, loss, g, AT_ROUNDING if lowest else FAILED, lowest
        reason, converged = self._at_rest(new_g)
        if not reason and self._is_small(x, new_x, loss, new_loss):
            reason, converged = "the change is smaller than tolerance_change", True
        return new_x, new_loss, new_g, reason, converged

    def _is_small(self, x: Tensor, new_x: Tensor, loss: float, new_loss: float) -> bool:
        rounding = K.rounding_error(x.array.dtype)
        small = max(self.param_groups[0]["tolerance_change"], rounding)
        change = float((new_x - x).abs().max())
        return change <= small * max(1.0, float(x.abs().max())) and (
            loss - new_loss <= small * max(1.0, abs(loss))
        )
