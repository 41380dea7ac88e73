"""Error bars from curvature: Laplace's approximation and the Cramer-Rao bound of a fitted model.

Both start from the information F that the data hold about the parameters, summed over the samples.
With a normal prior of precision lambda the posterior is about a normal distribution around the
fitted parameters with the covariance S = (F + lambda I)^-1, and a prediction with the derivatives J
by the parameters has the variance J S J^T. Without a prior, F^-1 is the least covariance that an
unbiased estimate of the parameters can have.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from chainrule.autograd.func import vjp
from chainrule.autograd.vmap import vmap
from chainrule.backend import K
from chainrule.curvature.information import log_partition, negative_log_likelihood
from chainrule.curvature.matrices import Fisher, Hessian
from chainrule.curvature.memory import CHUNK_BYTES
from chainrule.curvature.parameters import Model, arguments, as_function, ravel
from chainrule.curvature.symmetric import CurvatureMatrix
from chainrule.nn.module.evaluation import Prediction, evaluating
from chainrule.nn.module.names import Where
from chainrule.ops.linalg.decompositions import cholesky, eigh, eigvalsh
from chainrule.ops.shape.diagonal import diagonal
from chainrule.ops.elementwise.functions import sigmoid, sqrt
from chainrule.ops.elementwise.logic import where
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.reduce.reductions import sum as sum_over
from chainrule.ops.creation.sampling import randn
from chainrule.ops.shape.views import reshape
from chainrule.ops.shape.stacking import cat
from chainrule.ops.layers.softmax import softmax
from chainrule.ops.linalg.solving import solve_triangular
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Inputs, Nested, Random

__all__ = ["CramerRao", "Laplace", "Prediction", "cramer_rao", "residual_variance"]


class Laplace:
    """Error bars on the predictions of a fitted model, by Laplace's approximation.

    The posterior of the parameters is taken to be normal around their fitted values, with the
    precision F + prior_precision I. F is the Fisher information of the training inputs, which is
    the Gauss-Newton matrix of the negative log-likelihood, or with ``targets`` its Hessian. The
    model is used in evaluation (no dropout), and predictions are linearized in the parameters.
    MacKay, A practical Bayesian framework for backpropagation networks, 1992.

    Args:
        model: a fitted module, or a function f(params, *inputs); the batch is dimension 0 of
            inputs and output.
        inputs: those it was fitted to, all N of them.
        likelihood: "gaussian" (the output holds means), "bernoulli" or "categorical" (logits).
        variance: of the noise, if gaussian; :func:`residual_variance` estimates it.
        prior_precision: 1 / variance of the normal prior of each parameter: a number, or a tensor
            (W). A penalty strength / 2 ||w||^2 added to the *mean* loss of N samples (a squared
            error times 1 / (2 variance), or a cross-entropy) is a precision N * strength.
        structure: "full", or "diagonal", which leaves out the correlations of the parameters.
        targets: if given, the Hessian at these targets is used. Where it is not positive definite
            (the model is not at a minimum), it is damped, with a warning.
        params: the parameters, if not those of the module.
        where: the uncertain parameters; the others count as known. ``where=last_layer(model)``
            makes it cheap for large networks.
        chunk_size: the number of products made together; unless given, as many as fit.

    >>> import chainrule
    >>> from chainrule import curvature, nn
    >>> x = chainrule.linspace(-1, 1, 20).reshape(-1, 1)
    >>> laplace = curvature.Laplace(nn.Linear(1, 1), x, "gaussian", variance=0.1)
    >>> mean, std = laplace.predict(chainrule.tensor([[0.0], [5.0]]))
    >>> bool(std[1] > std[0])  # less is known far from the data
    True
    """

    def __init__(
        self,
        model: Model,
        inputs: Inputs,
        likelihood: str,
        *,
        variance: float | Tensor = 1.0,
        prior_precision: float | Tensor = 1.0,
        structure: str = "full",
        targets: Tensor | None = None,
        params: Nested | None = None,
        where: Where = None,
        chunk_size: int | None = None,
    ):
        if structure not in ("full", "diagonal"):
            raise ValueError(f"Laplace: structure must be 'full' or 'diagonal', got {structure!r}")
        if likelihood != "gaussian" and (isinstance(variance, Tensor) or variance != 1.0):
            raise ValueError(f"Laplace: a {likelihood} likelihood has no variance, got {variance}")
        log_partition("Laplace", likelihood, variance)
        self.likelihood, self.variance, self.structure = likelihood, variance, structure
        self._model, self._chunk_size = model, chunk_size
        with evaluating(model):
            self.curvature: CurvatureMatrix = (
                Fisher(
                    model,
                    inputs,
                    likelihood,
                    params,
                    variance=variance,
                    reduction="sum",
                    where=where,
                    chunk_size=chunk_size,
                )
                if targets is None
                else Hessian(
                    model,
                    inputs,
                    negative_log_likelihood("Laplace", likelihood, targets, variance),
                    params,
                    where=where,
                    chunk_size=chunk_size,
                )
            )
            prior = self._prior(prior_precision)
            #: What was added to the precision of each parameter to make it positive definite.
            self.damping = 0.0
            if structure == "full":
                matrix = self.curvature.matrix()
                self._factor = self._factored((matrix + matrix.mT) / 2, prior)
            else:
                self._precision = self._raised(ravel(self.curvature.diagonal())[0] + prior)

    def _prior(self, precision: float | Tensor) -> Tensor:
        size, dtype = self.curvature.size, self.curvature.dtype
        shape = tuple(precision.shape) if isinstance(precision, Tensor) else ()
        if shape not in ((), (size,)):
            raise RuntimeError(
                f"Laplace: prior_precision must be a number or have {size} elements, one for each "
                f"parameter, got shape {shape}"
            )
        prior = of_array(K.zeros((size,), dtype.array_dtype)) + precision
        if bool((prior < 0).any()):
            raise ValueError(f"Laplace: prior_precision should not be negative, got {precision}")
        return prior

    def _factored(self, matrix: Tensor, prior: Tensor) -> Tensor:
        """The lower triangle L with L L^T = matrix + prior, damped if it must be."""
        raised = matrix + _diagonal_matrix(prior)
        values = eigvalsh(raised)
        damping = self._damping(float(values[0]), float(abs(values).max()))
        return cholesky(raised + _diagonal_matrix(prior * 0 + damping) if damping else raised)

    def _raised(self, precision: Tensor) -> Tensor:
        return precision + self._damping(float(precision.min()), float(abs(precision).max()))

    def _damping(self, low: float, high: float) -> float:
        rounding = float(K.rounding_error(self.curvature.dtype.array_dtype))
        if low > self.curvature.size * rounding * high:
            return 0.0
        self.damping = max(0.0, -low) + math.sqrt(rounding) * (high or 1.0)
        warnings.warn(
            f"Laplace: the precision of the parameters is not positive definite (its smallest "
            f"eigenvalue is {low:.3g}, the largest {high:.3g}); {self.damping:.3g} was added to "
            "it. Raise prior_precision, or leave out targets to use the Gauss-Newton matrix",
            RuntimeWarning,
            stacklevel=5,
        )
        return self.damping

    # --- the parameters ---------------------------------------------------------------------------

    def _spread(self, rows: Tensor) -> Tensor:
        """Rows r (S, W) as r S^(1/2): the squared length of a result is r S r^T."""
        if self.structure == "diagonal":
            return rows / sqrt(self._precision)
        return solve_triangular(self._factor, rows.mT, upper=False).mT

    def std(self) -> Any:
        """The standard deviation of each parameter, as a tree like the parameters."""
        if self.structure == "diagonal":
            return self.curvature.by_name(1 / sqrt(self._precision))
        return self.curvature.by_name(sqrt(diagonal(self.covariance())))

    def covariance(self) -> Tensor:
        """The covariance of the parameters, (W, W)."""
        if self.structure == "diagonal":
            return _diagonal_matrix(1 / self._precision)
        half = self._spread(_diagonal_matrix(diagonal(self._factor) * 0 + 1))
        return matmul(half, half.mT)

    def sample(self, count: int, *, generator: Random = None) -> Any:
        """Parameters drawn from the posterior, a tree with ``count`` along dimension 0."""
        center, unravel = ravel(self.curvature.params)
        noise = randn(
            count, center.numel(), dtype=center.dtype, device=center.device, generator=generator
        )
        if self.structure == "diagonal":
            change = noise / sqrt(self._precision)
        else:
            change = solve_triangular(self._factor.mT, noise.mT, upper=True).mT
        return vmap(unravel)(center + change)

    # --- predictions ------------------------------------------------------------------------------

    def predict(self, inputs: Inputs, *, noise: bool = False) -> Prediction:
        """The model's output and its standard deviation, from the uncertainty of the parameters.

        With ``noise`` that of an observation, the noise of a gaussian likelihood included. The
        counterpart by dropout is ``nn.functional.monte_carlo_predict``.
        """
        if noise and self.likelihood != "gaussian":
            raise ValueError(
                f"Laplace: noise=True is for a gaussian likelihood, not for {self.likelihood}; see "
                "probabilities()"
            )
        mean, squares = self._linearized(inputs, lambda half: sum_over(half * half, -1))
        variance = reshape(squares, tuple(mean.shape))
        return Prediction(mean, sqrt(variance + self.variance if noise else variance))

    def predict_covariance(self, inputs: Inputs) -> Tensor:
        """The covariance of the K outputs of each sample, (N, K, K)."""
        return self._linearized(inputs, lambda half: matmul(half, half.mT))[1]

    def probabilities(self, inputs: Inputs) -> Tensor:
        """The probabilities of the classes, less certain where the logits z are.

        MacKay's approximation: the logits are divided by sqrt(1 + pi/8 var z).
        """
        if self.likelihood == "gaussian":
            raise ValueError("Laplace: a gaussian likelihood has no classes; use predict()")
        mean, std = self.predict(inputs)
        z = mean / sqrt(1 + math.pi / 8 * std * std)
        return sigmoid(z) if self.likelihood == "bernoulli" else softmax(z, -1)

    def _linearized(
        self, inputs: Inputs, reduce: Callable[[Tensor], Tensor]
    ) -> tuple[Tensor, Tensor]:
        """The outputs, and what ``reduce`` makes of J S^(1/2), (N, K, W), of some at a time."""
        given, params, size = arguments(inputs), self.curvature.params, self.curvature.size

        def one(*sample: Tensor) -> tuple[Tensor, Tensor]:
            return _rows(
                lambda p: reshape(self.curvature.output(p, *[x[None] for x in sample]), (-1,)),
                params,
            )

        with evaluating(self._model):
            mean = self.curvature.output(params, *given).detach()
            outputs = mean[:1].numel()
            each = 4 * outputs * size * self.curvature.dtype.itemsize
            together = self._chunk_size or max(1, CHUNK_BYTES // each)
            parts = []
            for start in range(0, mean.shape[0], together):
                alone, rows = vmap(one)(*[x[start : start + together] for x in given])
                self._check_samples(alone, reshape(mean, (-1, outputs))[start : start + together])
                half = self._spread(reshape(rows, (-1, size)))
                parts.append(reduce(reshape(half, (-1, outputs, size))))
        return mean, cat(parts)

    def _check_samples(self, alone: Tensor, together: Tensor) -> None:
        """A sample must have the same output alone as among others."""
        same = tuple(alone.shape) == tuple(together.shape)
        scale = 1e-3 * float(abs(together).max())
        if not same or float(abs(alone - together).max()) > scale:
            raise RuntimeError(
                "Laplace: a sample alone has another output than in the batch; the batch must be "
                "dimension 0 of inputs and output (batch_first=True), and samples must not mix"
            )


def _rows(function: Callable[[Any], Tensor], params: Nested) -> tuple[Tensor, Tensor]:
    """The vector (K) that a function returns, and its Jacobian by all parameters (K, W)."""
    y, pull = vjp(function, params)
    units = of_array(K.eye(y.numel(), dtype=y.dtype.array_dtype))
    return y, vmap(lambda u: ravel(pull(u)[0])[0])(units)


def _diagonal_matrix(d: Tensor) -> Tensor:
    return d[:, None] * of_array(K.eye(d.numel(), dtype=d.dtype.array_dtype))


# --- without a prior ------------------------------------------------------------------------------


class CramerRao(NamedTuple):
    """The least variances that unbiased estimates can have, from the information F of the data.

    ``std`` has the bound of each parameter, a tree like the parameters: infinite where the data do
    not determine it. ``values`` and ``vectors`` (in columns) are the eigenpairs of F, ``rank`` the
    number of directions that the data determine.
    """

    std: Any
    values: Tensor
    vectors: Tensor
    rank: int

    def covariance(self) -> Tensor:
        """F^-1, (W, W); of a singular F the inverse on the directions that are determined."""
        half = self._half(self.vectors)
        return matmul(half, half.mT)

    def of(self, function: Callable[[Any], Tensor], params: Nested) -> Tensor:
        """The bound for the standard deviation of an estimate of function(params), shaped like it.

        With g(w) the mean of the estimate, that is the root of g' F^-1 g'^T.
        """
        _, rows = _rows(lambda p: reshape(function(p), (-1,)), params)
        if rows.shape[1] != self.values.numel():
            raise RuntimeError(
                f"CramerRao: expected {self.values.numel()} parameters, got {rows.shape[1]}"
            )
        return reshape(self._bounds(matmul(rows, self.vectors)), tuple(function(params).shape))

    def _half(self, rows: Tensor) -> Tensor:
        known = rows[:, self.values.numel() - self.rank :]
        return known / sqrt(self.values[self.values.numel() - self.rank :])

    def _bounds(self, rows: Tensor) -> Tensor:
        """From rows in the eigenbasis: infinite if they have a part in what is not determined."""
        half = self._half(rows)
        unknown = rows[:, : self.values.numel() - self.rank]
        lost = sum_over(unknown * unknown, 1) > UNKNOWN * sum_over(rows * rows, 1)
        return where(lost, math.inf, sqrt(sum_over(half * half, 1)))


UNKNOWN = 1e-8  # of the squared length of a direction, more than rounding


def cramer_rao(
    model: Model,
    inputs: Inputs,
    likelihood: str,
    params: Nested | None = None,
    *,
    variance: float | Tensor = 1.0,
    where: Where = None,
    chunk_size: int | None = None,
) -> CramerRao:
    """The Cramer-Rao bound of the parameters of a fitted model, Cov >= F^-1.

    F is the Fisher information of all inputs together (N times that of one), at the fitted
    parameters. A direction in which F is zero to rounding is not determined by the data: shared
    scales, dead units, more parameters than samples. The arguments are those of :class:`Laplace`.

    >>> import chainrule
    >>> from chainrule import curvature
    >>> x, mean = chainrule.ones(100, 1), lambda w, x: x @ w  # of 100 numbers of variance 4
    >>> curvature.cramer_rao(mean, x, "gaussian", chainrule.zeros(1), variance=4.0).std
    tensor([0.2000])
    """
    with evaluating(model):
        information = Fisher(
            model,
            inputs,
            likelihood,
            params,
            variance=variance,
            reduction="sum",
            where=where,
            chunk_size=chunk_size,
        )
        matrix = information.matrix()
    values, vectors = eigh((matrix + matrix.mT) / 2)
    rounding = float(K.rounding_error(information.dtype.array_dtype))
    rank = int((values > 10 * values.numel() * rounding * float(abs(values).max())).sum())
    bound = CramerRao(None, values, vectors, rank)
    return bound._replace(std=information.by_name(bound._bounds(vectors)))


def residual_variance(
    model: Model, inputs: Inputs, targets: Tensor, params: Nested | None = None
) -> float:
    """The variance of the noise from the residuals of a fit: their sum of squares over M - W.

    M is the number of target values and W the number of parameters, which took as many degrees of
    freedom from the residuals.

    >>> import chainrule
    >>> from chainrule import curvature, nn
    >>> x = chainrule.linspace(-1, 1, 10).reshape(-1, 1)
    >>> model = nn.Linear(1, 1)
    >>> targets = model(x).detach() + 2.0
    >>> round(curvature.residual_variance(model, x, targets), 3)  # 10 times 4, over 10 - 2
    5.0
    """
    function, params = as_function(model, params)
    with evaluating(model):
        out = function(params, *arguments(inputs)).detach()
    if tuple(out.shape) != tuple(targets.shape):
        raise RuntimeError(
            f"residual_variance: expected targets of the shape of the output {tuple(out.shape)}, "
            f"got {tuple(targets.shape)}"
        )
    free = out.numel() - ravel(params)[0].numel()
    if free <= 0:
        raise ValueError(
            f"residual_variance: {out.numel()} target values leave nothing over for "
            f"{out.numel() - free} parameters; use residuals of data that were not fitted"
        )
    return float(sum_over((out - targets) ** 2)) / free
