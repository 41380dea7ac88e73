"""One call that minimizes a function: it writes the closure, runs a method and reports."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from chainrule.nn.module.base import Module
from chainrule.nn.parameter import Parameter
from chainrule.optim.descent import BFGS, ConjugateGradient, SteepestDescent
from chainrule.optim.hessian_free import HessianFree
from chainrule.optim.lbfgs import LBFGS
from chainrule.optim.gauss_newton import GaussNewton, LevenbergMarquardt
from chainrule.optim.minimizer import Callback, Minimizer, Report, check_start
from chainrule.optim.newton import DampedNewton, Newton, SaddleFreeNewton
from chainrule.optim.objective import Closure, Objective, Outputs
from chainrule.optim.optimizer import Optimizer
from chainrule.optim.settings import check_range
from chainrule.tensor import Tensor
from chainrule.typing import Params

__all__ = ["METHODS", "minimize"]

# Name: class, and the options it is made with unless others are given.
METHODS: dict[str, tuple[type[Minimizer], dict[str, Any]]] = {
    "steepest-descent": (SteepestDescent, {}),
    "cg": (ConjugateGradient, {}),
    "fletcher-reeves": (ConjugateGradient, {"formula": "fletcher-reeves"}),
    "polak-ribiere": (ConjugateGradient, {"formula": "polak-ribiere"}),
    "hestenes-stiefel": (ConjugateGradient, {"formula": "hestenes-stiefel"}),
    "bfgs": (BFGS, {}),
    "lbfgs": (LBFGS, {"line_search_fn": "strong_wolfe"}),
    "newton": (Newton, {}),
    "damped-newton": (DampedNewton, {}),
    "saddle-free-newton": (SaddleFreeNewton, {}),
    "gauss-newton": (GaussNewton, {}),
    "levenberg-marquardt": (LevenbergMarquardt, {}),
    "hessian-free": (HessianFree, {}),
}


def minimize(
    loss_fn: Callable[..., Tensor | float | Outputs],
    params: Tensor | Module | Params,
    method: str | type[Optimizer] = "lbfgs",
    *,
    max_iter: int = 1000,
    tolerance_grad: float = 1e-7,
    tolerance_change: float = 1e-9,
    callback: Callback | None = None,
    **options: Any,
) -> Report:
    """Moves parameters, in place, to where a loss is lowest, and tells how it went.

    The parameters never end at a higher loss than they began with; an exception from ``loss_fn``
    (or an interrupt from the keyboard) leaves them at the lowest point found so far.

    Args:
        loss_fn: returns the loss; called without arguments, or with the parameters if it asks for
            arguments. For "gauss-newton" and "levenberg-marquardt" it returns the residuals.
        params: a tensor, several, or a module's ``parameters()``. Tensors need not require grad
            (they do while it runs); a frozen ``nn.Parameter`` stays as it is.
        method: a name of ``METHODS``, or an optimizer's class (``optim.Adam``), with which
            the best parameters of the run are kept.
        max_iter: the most iterations.
        tolerance_grad: converged if no entry of the gradient is larger.
        tolerance_change: converged if neither the loss nor any parameter changes by more than this,
            relative to its size.
        callback: called as ``callback(iteration, loss)``; it may return True to stop.
        options: further arguments of the method's class.

    >>> import chainrule
    >>> from chainrule import optim
    >>> w = chainrule.tensor([3.0, 1.0])
    >>> report = optim.minimize(lambda w: w[0] ** 2 + 5 * (w[1] - 2) ** 2, w, "bfgs")
    >>> report.converged, bool((w - chainrule.tensor([0.0, 2.0])).abs().max() < 1e-5)
    (True, True)
    """
    kind, defaults = _method(method)
    check_range("minimize", max_iter=max_iter)
    tensors = _tensors(params)
    closure = _closure(loss_fn, tensors)
    opened = [p for p in tensors if not p.requires_grad and not isinstance(p, Parameter)]
    try:
        for p in opened:
            p.requires_grad_()
        if issubclass(kind, Minimizer):
            tolerances = {"tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change}
            optimizer = kind(tensors, **{**defaults, **tolerances, **options})
            return optimizer.run(closure, max_iter, callback)
        follow = _Follow(kind(tensors, **options), closure, tolerance_grad, tolerance_change)
        return follow.run(max_iter, callback)
    finally:
        for p in opened:
            p.requires_grad_(False)


def _method(method: Any) -> tuple[Any, dict[str, Any]]:
    if isinstance(method, str) and method in METHODS:
        return METHODS[method]
    if isinstance(method, type) and issubclass(method, Optimizer):
        return next((entry for entry in METHODS.values() if entry[0] is method), (method, {}))
    raise ValueError(
        f"minimize: unknown method {method!r}; there are {', '.join(METHODS)}, and the classes of "
        "chainrule.optim"
    )


def _tensors(params: Any) -> list[Tensor]:
    """The parameters as a list."""
    if isinstance(params, Tensor):
        params = [params]
    if hasattr(params, "parameters"):
        params = params.parameters()
    if not isinstance(params, Iterable):
        raise TypeError(
            "minimize: params must be a tensor, tensors, or a module's parameters(), got "
            f"{type(params).__name__}"
        )
    tensors = [p[1] if isinstance(p, tuple) and len(p) == 2 else p for p in params]
    if not tensors:
        raise ValueError(
            "minimize: got an empty parameter list; pass tensors or model.parameters() (a "
            "generator can be used only once)"
        )
    for p in tensors:
        if not isinstance(p, Tensor):
            raise TypeError(f"minimize: can only optimize Tensors, got {type(p).__name__}")
        if not p.dtype.is_floating_point:
            raise ValueError(f"minimize: parameters must be real floating point, got {p.dtype}")
    return tensors


def _closure(
    loss_fn: Callable[..., Tensor | float | Outputs], tensors: Sequence[Tensor]
) -> Closure:
    """The loss for the parameters as they are."""
    if not callable(loss_fn):
        raise TypeError(
            f"minimize: loss_fn must be a function that returns the loss, got "
            f"{type(loss_fn).__name__}; write lambda: loss(model(x), y)"
        )
    try:
        signature = inspect.signature(loss_fn)
    except ValueError:  # a function written in C
        return lambda: loss_fn(*tensors)
    wanted = [p for p in signature.parameters.values() if _is_wanted(p)]
    if not wanted:
        return loss_fn
    try:
        signature.bind(*tensors)
    except TypeError as error:
        raise TypeError(
            f"minimize: loss_fn{signature} cannot be called with the {len(tensors)} parameters "
            f"({error}); it takes either none or each of them"
        ) from None
    return lambda: loss_fn(*tensors)


def _is_wanted(p: inspect.Parameter) -> bool:
    """Whether an argument asks for a parameter: it is positional, and has no default."""
    if p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD):
        return False
    return p.kind == p.VAR_POSITIONAL or p.default is p.empty


class _Follow:
    """Runs an optimizer that knows no loss, and goes back to the best point it came through."""

    def __init__(self, optimizer: Optimizer, closure: Closure, gradient: float, change: float):
        self.optimizer, self.gradient, self.change = optimizer, gradient, change
        params = [p for group in optimizer.param_groups for p in group["params"]]
        self.f = Objective(params, closure, type(optimizer).__name__)

    def run(self, max_iter: int, callback: Callback | None) -> Report:
        f, done, reason, converged = self.f, 0, "", False
        best, lowest, x, loss = f.vector(), math.inf, None, math.inf
        grads = [p._grad for p in f.params]
        try:
            while not reason:
                before = x, loss
                x, (loss, g) = f.vector(), f.value_and_gradient()
                if not done:
                    check_start(f.name, loss, g)
                if loss <= lowest:
                    best, lowest = x, loss
                if done and callback is not None and callback(done, loss) is True:
                    reason = "stopped by the callback"
                reason, converged = self._end(x, loss, g, before) or (reason, False)
                if not reason and done == max_iter:
                    reason = f"reached max_iter = {max_iter}"
                if not reason:
                    f.set_grads(f.split(g))
                    self.optimizer.step()
                    done += 1
        finally:
            f.move_to(best)
            f.set_grads(grads)
        return Report(lowest, done, f.evaluations, f.gradients, 0, converged, reason)

    def _end(
        self, x: Tensor, loss: float, g: Tensor, before: tuple[Tensor | None, float]
    ) -> tuple[str, bool] | None:
        if not math.isfinite(loss) or not bool(g.isfinite().all()):
            return "the loss is not finite after the last step", False
        if float(g.abs().max()) <= self.gradient:
            return "the gradient is zero to tolerance_grad", True
        if before[0] is not None:
            change = float((x - before[0]).abs().max())
            if change <= self.change * max(1.0, float(x.abs().max())) and (
                abs(loss - before[1]) <= self.change * max(1.0, abs(loss))
            ):
                return "the change is smaller than tolerance_change", True
        return None
