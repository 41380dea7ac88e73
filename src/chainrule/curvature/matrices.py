"""The curvature of any module by parameter name: Hessian, Gauss-Newton matrix, Fisher information.

Each is a symmetric matrix over the parameters that is known by its products with vectors, and from
these come its blocks, diagonal, trace, eigenvalues and the density of its spectrum. The matrix
itself is formed only if it is asked for and fits into memory.

What ``model``, ``params`` and ``inputs`` are is said in ``parameters.py``. The parameters are
copied and the model is evaluated once, in the mode that it is in: later changes of the model do not
matter, its buffers (running moments) are left alone, and all products belong to one draw of its
random numbers (dropout). A parameter that a module has under several names (shared weights) is one
parameter, with the first of its names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule.autograd.rows import for_units, map_rows
from chainrule.curvature.estimates import Estimate, average, check_samples
from chainrule.curvature.graph import Derivatives
from chainrule.curvature.information import draw_residuals, log_partition
from chainrule.curvature.memory import check_matrix
from chainrule.curvature.parameters import Model, ravel
from chainrule.curvature.symmetric import CurvatureMatrix, unit_vectors
from chainrule.nn.module.names import Where
from chainrule.ops.linalg.decompositions import eigh
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.reduce.reductions import sum as sum_over
from chainrule.ops.shape.views import reshape
from chainrule.tensor import Tensor
from chainrule.typing import Inputs, Nested, Random

__all__ = ["EmpiricalFisher", "Fisher", "GaussNewton", "Hessian"]

MOST_OUTPUTS = 2048  # above, the eigenvalues of H_L take longer than products with the parameters


class Hessian(CurvatureMatrix):
    """The Hessian of a loss by the parameters of a model.

    Args:
        model: a module, or a function f(params, *inputs).
        inputs: a tensor, or a tuple with one entry for each argument.
        loss: the loss as a function of the model's output; None if the model returns the loss.
        params: the parameters, if not those of the module.
        where: a name, a pattern or several of the parameters that are meant; all unless given.
        chunk_size: the number of products made together; unless given, as many as fit.

    >>> import chainrule
    >>> from chainrule import curvature, nn
    >>> model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    >>> x, y = chainrule.randn(20, 4), chainrule.randint(0, 3, (20,))
    >>> hessian = curvature.Hessian(model, x, lambda out: nn.functional.cross_entropy(out, y))
    >>> hessian.block("0.weight", "2.bias").shape
    chainrule.Size([8, 4, 3])
    >>> hessian.diagonal()["0.bias"].shape, hessian.eigenvalues(2).values.shape
    (chainrule.Size([8]), chainrule.Size([2]))
    """

    def __init__(
        self,
        model: Model,
        inputs: Inputs = (),
        loss: Callable[[Any], Tensor] | None = None,
        params: Nested | None = None,
        *,
        where: Where = None,
        chunk_size: int | None = None,
    ):
        super().__init__(model, inputs, params, where, chunk_size)
        leaves, value = self._trace(loss or (lambda output: output))
        if value.numel() != 1:
            raise RuntimeError(
                f"{self.op}: the loss must be one number, got shape {tuple(value.shape)}; give a "
                "loss that is a function of the output, and reduce it"
            )
        self._derivatives = Derivatives(leaves, reshape(value, ()))
        self.loss = value.detach()

    def gradient(self) -> Any:
        """The gradient of the loss, as a tree like the parameters."""
        return self.by_name(self._derivatives.gradient())

    def _multiply_one(self, v: Tensor) -> Tensor:
        return self._derivatives.hessian_product(v)

    def _at_once(self) -> int:
        return self._derivatives.at_once("hessian", self.chunk_size)


class GaussNewton(CurvatureMatrix):
    """The generalized Gauss-Newton matrix J^T H_L J of a loss by the parameters of a model.

    J is the Jacobian of the model's output, H_L the Hessian of the loss by the output: the Hessian
    without the curvature of the model. It has no negative eigenvalues if the loss is convex.

    The arguments are those of :class:`Hessian`; ``loss`` is a function of the output.

    >>> import chainrule
    >>> from chainrule import curvature
    >>> x = chainrule.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> half_squares = lambda y: 0.5 * (y**2).sum()
    >>> curvature.GaussNewton(lambda w, x: x @ w, x, half_squares, chainrule.zeros(2)).matrix()
    tensor([[10., 14.],
            [14., 20.]])
    """

    def __init__(
        self,
        model: Model,
        inputs: Inputs,
        loss: Callable[[Any], Tensor],
        params: Nested | None = None,
        *,
        where: Where = None,
        chunk_size: int | None = None,
    ):
        super().__init__(model, inputs, params, where, chunk_size)
        shape: list[Callable[[Tensor], Any]] = []

        def as_vector(output: Any) -> Tensor:
            vector, back = ravel(output)
            shape.append(back)
            return vector

        leaves, vector = self._trace(as_vector)
        self._output = lambda z: shape[0](z)
        self._derivatives = Derivatives(
            leaves, outputs=vector, loss_fn=lambda z: loss(self._output(z))
        )

    def _multiply_one(self, v: Tensor) -> Tensor:
        return self._derivatives.gauss_newton_product(v)

    def _at_once(self) -> int:
        return self._derivatives.at_once("jacobian", self.chunk_size)

    def diagonal(self) -> Any:
        """The diagonal, exact, as a tree like the parameters.

        From H_L = U diag(l) U^T it is sum_r l_r (J^T u_r)^2, a product for each of M output
        elements, if those are fewer than the parameters; else a product for each parameter.
        """
        outputs = self._derivatives.outputs
        count = outputs.numel()
        if count >= min(self.size, MOST_OUTPUTS):
            return super().diagonal()
        together = self._at_once()
        outer = for_units(self._derivatives.outer_product, (count,), outputs.array.dtype, together)
        values, vectors = eigh((outer + outer.mT) / 2)
        total: Any = 0.0
        for start in range(0, count, together):
            some = vectors.mT[start : start + together]
            pulled = map_rows(self._derivatives.pulled, some, together)
            total = total + matmul(values[start : start + together], pulled * pulled)
        return self.by_name(total)


class Fisher(GaussNewton):
    """The exact Fisher information of a model that predicts a distribution, by its parameters.

    The expectation over the model's own predictions of s s^T, s the gradient of the log-likelihood,
    which is the Gauss-Newton matrix of the negative log-likelihood.

    Args:
        likelihood: what the model's output is: "categorical" (logits (N, *, K)), "bernoulli"
            (logits (N, *)) or "gaussian" (means (N, *)), see :func:`~chainrule.curvature.fisher`.
        variance: of the normal variables.
        reduction: "mean" over the N samples or "sum".

    The other arguments are those of :class:`Hessian`.

    >>> import chainrule
    >>> from chainrule import curvature
    >>> x = chainrule.tensor([[1.0, 2.0]])
    >>> curvature.Fisher(lambda w, x: x @ w, x, "bernoulli", chainrule.zeros(2)).matrix()
    tensor([[0.2500, 0.5000],
            [0.5000, 1.0000]])
    """

    def __init__(
        self,
        model: Model,
        inputs: Inputs,
        likelihood: str,
        params: Nested | None = None,
        *,
        variance: float | Tensor = 1.0,
        reduction: str = "mean",
        where: Where = None,
        chunk_size: int | None = None,
    ):
        loss = log_partition("Fisher", likelihood, variance, reduction)
        super().__init__(model, inputs, loss, params, where=where, chunk_size=chunk_size)
        self._settings = (likelihood, variance, reduction)

    def estimate_diagonal(self, samples: int = 100, *, generator: Random = None) -> Estimate:
        """An estimate of the diagonal with its standard error, each a tree.

        The mean of the squared gradients of the log-likelihood for targets that are drawn from the
        model's own predictions: not negative, and all entries have about the same relative error,
        sqrt(2 / samples), which Hutchinson's estimate does not promise.
        """
        check_samples("estimate_diagonal", samples)
        output = self._output(self._derivatives.outputs.detach())

        def draw(count: int) -> Tensor:
            drawn = draw_residuals(output, count, *self._settings, generator=generator)
            flat = reshape(drawn, (count, -1))
            pulled = map_rows(self._derivatives.pulled, flat, self._at_once())
            return pulled * pulled

        value, error = average(draw, samples, self._at_once())
        return Estimate(self.by_name(value), self.by_name(error), samples)


class EmpiricalFisher(CurvatureMatrix):
    """The empirical Fisher information 1/N sum_n s_n s_n^T from the scores of observed data.

    Args:
        log_prob: the log-likelihood of each sample (N) as a function of the model's output. A loss
            with ``reduction="none"`` has the other sign, which changes :meth:`score` alone.

    The other arguments are those of :class:`Hessian`. All samples go through the model together,
    so that it may be any, batch normalization in training included.

    >>> import chainrule
    >>> from chainrule import curvature, nn
    >>> model, x, y = nn.Linear(4, 3), chainrule.randn(20, 4), chainrule.randint(0, 3, (20,))
    >>> log_prob = lambda out: -nn.functional.cross_entropy(out, y, reduction="none")
    >>> curvature.EmpiricalFisher(model, x, log_prob).score().shape
    chainrule.Size([20, 15])
    """

    def __init__(
        self,
        model: Model,
        inputs: Inputs,
        log_prob: Callable[[Any], Tensor],
        params: Nested | None = None,
        *,
        where: Where = None,
        chunk_size: int | None = None,
    ):
        super().__init__(model, inputs, params, where, chunk_size)
        leaves, values = self._trace(log_prob)
        if values.ndim != 1:
            raise RuntimeError(
                f"{self.op}: log_prob must return a number for each sample, shape (N,), got "
                f"{tuple(values.shape)}; use reduction='none', and add up what belongs to a sample"
            )
        self._derivatives = Derivatives(leaves, outputs=values)
        self._count = values.shape[0]

    def score(self) -> Tensor:
        """The gradient of the log-likelihood of each sample, in rows (N, W)."""
        check_matrix(f"{self.op}.score", self._count, self.size, self.dtype, "Use fewer samples")
        return self._derivatives.jacobian(self.chunk_size)

    def diagonal(self) -> Any:
        """The diagonal, exact, as a tree like the parameters: the mean of the squared scores."""
        total: Any = 0.0
        together = self._at_once()
        for start in range(0, self._count, together):
            some = range(start, min(start + together, self._count))
            units = unit_vectors(some, self._count, self.dtype)
            rows = map_rows(self._derivatives.pulled, units, together)
            total = total + sum_over(rows * rows, 0)
        return self.by_name(total / self._count)

    def _multiply_one(self, v: Tensor) -> Tensor:
        return self._derivatives.gauss_newton_product(v) / self._count

    def _at_once(self) -> int:
        return self._derivatives.at_once("jacobian", self.chunk_size)
