"""Training as estimation: the weights are the hidden state of a Kalman filter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from chainrule.autograd import engine
from chainrule.autograd.modes import enable_grad, no_grad
from chainrule.autograd.vmap import vmap
from chainrule.backend import K
from chainrule.ops.creation.conversion import clone
from chainrule.ops.creation.patterns import eye
from chainrule.ops.shape.diagonal import diag
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.core.promotion import cast
from chainrule.ops.reduce.reductions import sum as sum_over
from chainrule.ops.shape.views import expand, permute, reshape, transpose, unsqueeze
from chainrule.ops.shape.stacking import cat
from chainrule.ops.linalg.solving import solve
from chainrule.optim.optimizer import NotFiniteError, Optimizer
from chainrule.optim.settings import NOT_NEGATIVE, Interval
from chainrule.tensor import Tensor
from chainrule.typing import Params

__all__ = ["ExtendedKalmanFilter"]

COVARIANCES = ("global", "parameter", "node")


class _Block(NamedTuple):
    """Parameters with covariances of their own: ``rows`` vectors of ``size`` numbers."""

    owner: Tensor  # the parameter whose state has the covariances, of shape (rows, size, size)
    start: int  # where the numbers begin in the vector of all parameters
    rows: int
    size: int


class ExtendedKalmanFilter(Optimizer):
    """Training by the extended Kalman filter: recursive least squares along the linearized model.

    The targets are the outputs y(w) plus noise of variance R, the weights w move at random by a
    variance Q in each step, and P is the covariance of what is known of them. With H = dy/dw:

    K = P H^T (H P H^T + R)^-1; w <- w + K (target - y); P <- P - K H P + Q

    For a linear model without Q this is the exact least-squares solution of all samples so far,
    drawn to the first weights by 1 / initial_covariance. One sample (or step of a sequence) at a
    time teaches far more than a gradient step; it takes time and memory of the square of the number
    of weights, less with covariances of blocks, which neglect those between blocks. Singhal and Wu,
    1989; Puskorius and Feldkamp, 1991.

    Args:
        params: the parameters: one group, of one real dtype (float64 is better: P loses digits).
            Those that do not require grad are left alone.
        process_noise: Q, the variance added in each step (default 0.0). It keeps the filter awake:
            without it, every sample counts the same for ever.
        measurement_noise: R, the variance of the targets: a number, a tensor with one for each
            output, or their covariance matrix (default 1.0).
        initial_covariance: the variance of the weights before the first sample (default 1.0).
        covariance: "global" for one matrix, "parameter" for one for each parameter, "node" for one
            for each row of a weight matrix (the weights into one unit) and each bias (default
            "global").

    >>> import chainrule
    >>> from chainrule import nn, optim
    >>> model = nn.Linear(1, 1).double()
    >>> optimizer = optim.ExtendedKalmanFilter(model.parameters(), measurement_noise=1e-6)
    >>> for x in (0.0, 1.0, 2.0):  # the line 3 x + 2
    ...     x = chainrule.tensor([x], dtype=chainrule.float64)
    ...     error = optimizer.step(lambda: model(x), 3 * x + 2)
    >>> round(model.weight.item(), 3), round(model.bias.item(), 3)
    (3.0, 2.0)
    """

    ranges: ClassVar = {
        "process_noise": NOT_NEGATIVE,
        "initial_covariance": Interval(0, ends="()"),
    }

    def __init__(
        self,
        params: Params,
        process_noise: float = 0.0,
        measurement_noise: float | Tensor = 1.0,
        initial_covariance: float = 1.0,
        covariance: str = "global",
    ):
        defaults = {
            "process_noise": process_noise,
            "measurement_noise": measurement_noise,
            "initial_covariance": initial_covariance,
            "covariance": covariance,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError(
                f"ExtendedKalmanFilter: takes one parameter group, got {len(self.param_groups)}; "
                "the filter knows all weights together"
            )
        dtypes = list(dict.fromkeys(p.dtype for p in self.param_groups[0]["params"]))
        if len(dtypes) > 1 or dtypes[0].is_complex:
            raise ValueError(
                "ExtendedKalmanFilter: all parameters must have one real dtype, got "
                f"{', '.join(str(d) for d in dtypes)}"
            )

    def check_settings(self, settings: dict[str, Any]) -> None:
        super().check_settings(settings)
        if settings["covariance"] not in COVARIANCES:
            raise ValueError(
                "ExtendedKalmanFilter: covariance must be 'global', 'parameter' or 'node', got "
                f"{settings['covariance']!r}"
            )
        noise = settings["measurement_noise"]
        if not isinstance(noise, Tensor) or noise.ndim < 2:
            Interval(0, ends="()").check(self._name, "measurement_noise", noise)

    # --- a step -----------------------------------------------------------------------------------

    def step(  # type: ignore[override]  # the outputs and their targets, not a loss
        self, closure: Callable[[], Tensor] | None = None, target: Tensor | None = None
    ) -> float:
        """Takes in one observation. Returns the mean squared error from before.

        Args:
            closure: computes the model's outputs (not a loss), of any shape.
            target: what they should be, of the same shape.
        """
        if closure is None or target is None:
            raise ValueError(
                "ExtendedKalmanFilter.step: needs a closure that returns the outputs of the model "
                "(not a loss), and their targets: optimizer.step(lambda: model(x), y)"
            )
        self._call_hooks("step_pre", closure)
        params = [p for p in self.param_groups[0]["params"] if p.requires_grad]
        if not params:
            raise ValueError("ExtendedKalmanFilter.step: no parameter requires grad")
        with enable_grad():
            y = closure()
        error = self._innovation(y, target)
        jacobian = self._jacobian(y, params)
        if not K.all_finite([error.array, jacobian.array]):
            raise NotFiniteError(
                "ExtendedKalmanFilter.step: the error or the derivative of the outputs by the "
                "parameters has NaN or infinite values; no parameter was changed"
            )
        with no_grad():
            self._correct(params, jacobian, error)
        self._steps_taken += 1
        self._call_hooks("step_post", closure)
        return float((error * error).mean())

    def _innovation(self, y: object, target: Tensor) -> Tensor:
        """target - y, as a vector."""
        if not isinstance(y, Tensor) or not y.requires_grad:
            raise RuntimeError(
                "ExtendedKalmanFilter.step: the closure has to return the outputs, one tensor that "
                "was computed from the parameters with gradients enabled"
            )
        if not isinstance(target, Tensor) or tuple(target.shape) != tuple(y.shape) or not y.numel():
            raise ValueError(
                "ExtendedKalmanFilter.step: expected a target for each of one or more outputs, got "
                f"outputs of shape {tuple(y.shape)} and targets of shape "
                f"{tuple(target.shape) if isinstance(target, Tensor) else type(target).__name__}"
            )
        return reshape(target.detach() - y.detach(), (-1,))

    def _jacobian(self, y: Tensor, params: list[Tensor]) -> Tensor:
        """dy/dw, of shape (outputs, weights): one pull back for each output, all at once."""
        outputs = y.numel()
        units = reshape(eye(outputs, dtype=y.dtype, device=y.device), (outputs, *y.shape))

        def pull(unit: Tensor) -> tuple[Tensor, ...]:
            return engine.grad(y, params, unit, retain_graph=True, materialize_grads=True)

        rows = vmap(pull)(units)
        return cat([reshape(r, (outputs, -1)) for r in rows], 1)

    def _correct(self, params: list[Tensor], jacobian: Tensor, error: Tensor) -> None:
        """The equations of the filter, block by block; the blocks share H P H^T + R."""
        group, m = self.param_groups[0], len(error)
        parts = []
        total = self._noise(m, error)
        for block in self._blocks(params):
            h = jacobian[:, block.start : block.start + block.rows * block.size]
            h = permute(reshape(h, (m, block.rows, block.size)), (1, 2, 0))  # H^T of each
            p = self._covariance(block)
            ph = matmul(p, h)
            total = total + sum_over(matmul(transpose(h, 1, 2), ph), 0)
            parts.append((block, p, ph))
        inverse = self._inverse(total)
        step = matmul(inverse, error)
        changes = []
        for block, p, ph in parts:
            changes.append(reshape(matmul(ph, step), (-1,)))
            new = p - matmul(matmul(ph, inverse), transpose(ph, 1, 2))
            new = (new + transpose(new, 1, 2)) / 2  # symmetric to the last digit
            noise = group["process_noise"]
            self.state[block.owner]["covariance"] = (
                new + noise * eye(block.size, dtype=p.dtype, device=p.device) if noise else new
            )
        self._move(params, cat(changes))

    def _inverse(self, total: Tensor) -> Tensor:
        try:
            inverse = solve(total, eye(len(total), dtype=total.dtype, device=total.device))
        except RuntimeError:
            inverse = None
        if inverse is None or not K.all_finite([inverse.array]):
            raise RuntimeError(
                "ExtendedKalmanFilter.step: the covariance of the outputs is singular; no "
                "parameter was changed. Raise measurement_noise"
            )
        return inverse

    def _move(self, params: list[Tensor], change: Tensor) -> None:
        start = 0
        for p in params:
            part = change[start : start + p.numel()]
            p.copy_(p + reshape(part, tuple(p.shape)))
            start += p.numel()

    # --- covariances ------------------------------------------------------------------------------

    def _blocks(self, params: list[Tensor]) -> list[_Block]:
        """How the vector of all weights is divided."""
        kind = self.param_groups[0]["covariance"]
        if kind == "global":
            return [_Block(params[0], 0, 1, sum([p.numel() for p in params]))]
        blocks, start = [], 0
        for p in params:
            rows = p.shape[0] if kind == "node" and p.ndim else 1
            blocks.append(_Block(p, start, rows, p.numel() // max(rows, 1)))
            start += p.numel()
        return [block for block in blocks if block.rows * block.size]

    def _covariance(self, block: _Block) -> Tensor:
        """The covariances of a block, (rows, size, size)."""
        shape = (block.rows, block.size, block.size)
        found = self.state[block.owner].get("covariance")
        if found is None:
            unit = eye(block.size, dtype=block.owner.dtype, device=block.owner.device)
            first = self.param_groups[0]["initial_covariance"] * unit
            return clone(expand(unsqueeze(first, 0), *shape))
        if tuple(found.shape) != shape:
            raise RuntimeError(
                f"ExtendedKalmanFilter: the state has covariances of shape {tuple(found.shape)}, "
                f"the parameters that require grad need {shape}; make a new filter after freezing "
                "parameters or changing the kind of covariance"
            )
        return found

    def _noise(self, outputs: int, like: Tensor) -> Tensor:
        """R as a matrix."""
        noise = self.param_groups[0]["measurement_noise"]
        if not isinstance(noise, Tensor):
            return noise * eye(outputs, dtype=like.dtype, device=like.device)
        noise = cast(noise.detach(), like.dtype)
        if tuple(noise.shape) == (outputs, outputs):
            return noise
        if tuple(noise.shape) not in ((), (1,), (outputs,)):
            raise ValueError(
                f"ExtendedKalmanFilter: measurement_noise of shape {tuple(noise.shape)} does not "
                f"fit {outputs} outputs; give a number, one for each, or their covariance matrix"
            )
        return diag(clone(expand(noise, outputs)))
