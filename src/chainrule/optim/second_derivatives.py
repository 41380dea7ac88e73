"""The loss with its graph: Hessians, Jacobians and their products at the current parameters.

The graph of an evaluation is kept until the parameters move, so that all derivatives at a point
cost one evaluation: products are made on that graph, see ``curvature/graph.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

from chainrule.curvature.graph import Derivatives
from chainrule.curvature.memory import check_matrix
from chainrule.ops.reduce.reductions import equal
from chainrule.ops.reduce.reductions import sum as sum_over
from chainrule.ops.shape.views import reshape
from chainrule.optim.objective import Closure, Objective
from chainrule.tensor import Tensor

__all__ = ["Residuals", "SecondOrderObjective", "WithOutputs"]


class SecondOrderObjective(Objective):
    """A closure that returns the loss with its graph, with first and second derivatives.

    Args:
        params: the parameters; those that do not require grad are left alone.
        closure: returns the loss; must not call ``backward()``.
        name: the method, for messages.
    """

    returns = "the loss"

    def __init__(self, params: Sequence[Tensor], closure: Closure, name: str):
        super().__init__(params, closure, name)
        self._point: Derivatives | None = None

    def move_to(self, x: Tensor) -> None:
        """Writes a vector into the parameters, and forgets the evaluation elsewhere."""
        if self._point is None or not equal(x, self.vector()):
            self._point = None
            super().move_to(x)

    @property
    def size(self) -> int:
        """The number of parameters."""
        return sum(p.numel() for p in self.params)

    # --- the closure ------------------------------------------------------------------------------

    def point(self) -> Derivatives:
        """The evaluation at the parameters as they are."""
        if self._point is None:
            self.evaluations += 1
            result = self._call(enable=True)
            if self.calls_backward:
                raise RuntimeError(
                    f"{self.name}: the closure called backward(), which frees the graph that "
                    f"second derivatives are taken from; let it only return {self.returns}"
                )
            point = self.read(result)
            depends = point.outputs if point.has_outputs else point.loss
            if not depends.requires_grad:
                raise RuntimeError(
                    f"{self.name}: {self.returns} must depend on the parameters; the closure has "
                    "to compute it from them with gradients enabled (no no_grad, no detach)"
                )
            if self.evaluations == 1:
                self.first = point.loss.detach()
            self._point = point
        return self._point

    def read(self, result: object) -> Derivatives:
        """What the closure returned, as an evaluation."""
        self._number(result)
        if not isinstance(result, Tensor):
            raise RuntimeError(
                f"{self.name}: the closure has to return the loss as a Tensor with its graph, got "
                f"{type(result).__name__}; do not call item() or float()"
            )
        return Derivatives(self.params, reshape(result, ()))

    # --- first order ------------------------------------------------------------------------------

    def value(self, x: Tensor | None = None) -> float:
        """The loss at x (or where the parameters are); NaN counts as infinite."""
        self._go(x)
        return self._number(self.point().loss)

    def value_and_gradient(self, x: Tensor | None = None) -> tuple[float, Tensor]:
        """The loss and its gradient at x."""
        number = self.value(x)
        self.gradients += 1
        return number, self.point().gradient()

    # --- the Hessian ------------------------------------------------------------------------------

    def hessian_product(self, v: Tensor) -> Tensor:
        """The Hessian of the loss times a vector."""
        self.products += 1
        return self.point().hessian_product(v)

    def hessian(self) -> Tensor:
        """The Hessian of the loss, (W, W)."""
        self._check_size("Hessian", self.size)
        self.products += self.size
        return self._checked("Hessian", self.point().hessian())

    def _check_size(self, what: str, rows: int) -> None:
        check_matrix(
            f"{self.name} ({what})",
            rows,
            self.size,
            self.params[0].dtype,
            "Use HessianFree, which needs no matrix, or LBFGS",
        )

    def _checked(self, what: str, matrix: Tensor) -> Tensor:
        if not bool(matrix.isfinite().all()):
            raise RuntimeError(
                f"{self.name}: the {what} has entries that are NaN or infinite; no parameter was "
                "changed. Find the operation with autograd.detect_anomaly()"
            )
        return matrix

    # --- the Jacobian of the outputs --------------------------------------------------------------

    def _with_outputs(self) -> Derivatives:
        point = self.point()
        if not point.has_outputs:
            raise RuntimeError(f"{self.name}: the closure returned a loss, so there is no Jacobian")
        return point

    def jacobian_product(self, v: Tensor) -> Tensor:
        """The derivative of the outputs in the direction v, J v, shaped like the outputs."""
        self.products += 1
        return self._with_outputs().jacobian_product(v)

    def jacobian(self) -> Tensor:
        """The derivative of each output by each parameter, (M, W), in the mode that is cheaper."""
        point = self._with_outputs()
        count = point.outputs.numel()
        self._check_size("Jacobian", count)
        self.products += min(count, self.size)
        return self._checked("Jacobian", point.jacobian())

    def gauss_newton_product(self, v: Tensor) -> Tensor:
        """J^T H_L J v, with the Jacobian J of the outputs and the Hessian H_L of the loss by them.

        The curvature of the loss without that of the outputs themselves; for residuals J^T J v.
        """
        self.products += 1
        return self._with_outputs().gauss_newton_product(v)


def _of_residuals(name: str, params: Sequence[Tensor], result: object) -> Derivatives:
    if not isinstance(result, Tensor):
        raise RuntimeError(
            f"{name}: the closure has to return the residuals as a Tensor with its graph, got "
            f"{type(result).__name__}"
        )
    if result.ndim == 0:
        raise RuntimeError(
            f"{name}: the closure has to return the residuals, such as model(x) - y, and not the "
            "loss; got one number (a single residual has shape (1,))"
        )
    if result.numel() == 0:
        raise RuntimeError(
            f"{name}: the closure returned no residuals, a tensor of shape {tuple(result.shape)}"
        )
    return Derivatives(params, sum_over(result * result) / 2, result)


class Residuals(SecondOrderObjective):
    """A closure that returns residuals r, of any shape; the loss is 1/2 sum r^2."""

    returns = "the residuals"

    def read(self, result: object) -> Derivatives:
        return _of_residuals(self.name, self.params, result)

    def residuals(self) -> Tensor:
        """The residuals at the parameters as they are, as a vector."""
        outputs = self._with_outputs().outputs.detach()
        return reshape(outputs, (outputs.numel(),))


class WithOutputs(SecondOrderObjective):
    """A closure that returns ``(outputs, loss_fn)``, or residuals, or the loss alone."""

    returns = "(outputs, loss_fn), the residuals or the loss"

    def read(self, result: object) -> Derivatives:
        if isinstance(result, tuple):
            if len(result) != 2 or not isinstance(result[0], Tensor) or not callable(result[1]):
                kinds = ", ".join(type(part).__name__ for part in result)
                raise RuntimeError(
                    f"{self.name}: a closure that returns a tuple has to return (outputs, "
                    f"loss_fn), a Tensor and a function of it, got ({kinds})"
                )
            outputs, loss_fn = result
            loss = super().read(loss_fn(outputs)).loss
            return Derivatives(self.params, loss, outputs, loss_fn)
        if isinstance(result, Tensor) and result.numel() != 1:
            return _of_residuals(self.name, self.params, result)
        return super().read(result)

    def curvature_product(self, v: Tensor) -> Tensor:
        """The Gauss-Newton matrix times v; the Hessian times v if there is only a loss."""
        if not self.point().has_outputs:
            return self.hessian_product(v)
        return self.gauss_newton_product(v)
