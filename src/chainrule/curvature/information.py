"""Fisher information: how much the data say about the parameters of a model.

The matrices are (W, W) in the tree order of ``parameters.py``, which says what ``model``,
``params`` and ``inputs`` are.
"""

from __future__ import annotations

from collections.abc import Callable

from chainrule.curvature.hessian import gauss_newton
from chainrule.curvature.memory import check_matrix
from chainrule.curvature.parameters import Model
from chainrule.autograd.func import grad
from chainrule.autograd.nested import flatten
from chainrule.autograd.vmap import vmap
from chainrule.backend import K
from chainrule.ops.creation.patterns import arange
from chainrule.ops.elementwise.functions import logaddexp, sigmoid, zeros_like_of
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.linalg.products import outer
from chainrule.ops.core.promotion import cast
from chainrule.ops.reduce.reductions import logsumexp
from chainrule.ops.reduce.reductions import sum as sum_over
from chainrule.ops.creation.sampling import bernoulli, multinomial, randn
from chainrule.ops.shape.views import expand, reshape
from chainrule.ops.shape.stacking import cat
from chainrule.ops.layers.softmax import softmax
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Inputs, Nested, Random

__all__ = [
    "draw_residuals",
    "empirical_fisher",
    "fisher",
    "inverse_hessian",
    "log_partition",
    "negative_log_likelihood",
    "score",
]


def score(
    log_prob: Callable[..., Tensor], params: Nested, *data: Tensor, chunk_size: int | None = None
) -> Tensor:
    """The score of each sample, grad_params ln p(sample; params), as the rows of a matrix (N, W).

    ``log_prob(params, *sample)`` is the log-likelihood of one sample; the samples lie along
    dimension 0 of each tensor of ``data``. Under the model's own distribution the mean is zero.

    >>> import chainrule
    >>> from chainrule.curvature.information import score
    >>> bernoulli = lambda p, x: x * p.log() + (1 - x) * (1 - p).log()
    >>> score(bernoulli, chainrule.tensor(0.5), chainrule.tensor([0.0, 1.0]))
    tensor([[-2.],
            [ 2.]])
    """
    if not data:
        raise TypeError("score: expected at least one tensor of samples after params")
    in_dims = (None, *[0] * len(data))
    gradients = vmap(grad(log_prob), in_dims, chunk_size=chunk_size)(params, *data)
    leaves = flatten(gradients)[0]
    count = leaves[0].shape[0]
    return cat([reshape(g, (count, g[0].numel())) for g in leaves], 1)


def empirical_fisher(
    log_prob: Callable[..., Tensor], params: Nested, *data: Tensor, chunk_size: int | None = None
) -> Tensor:
    """The empirical Fisher information 1/N sum_n s_n s_n^T from the scores s_n of the data.

    The arguments are those of :func:`score`; the sign of ``log_prob`` does not matter, so a loss
    will do. It estimates :func:`fisher` only as far as the data follow the model's distribution.

    >>> import chainrule
    >>> from chainrule import curvature
    >>> bernoulli = lambda p, x: x * p.log() + (1 - x) * (1 - p).log()
    >>> curvature.empirical_fisher(bernoulli, chainrule.tensor(0.5), chainrule.tensor([0.0, 1.0]))
    tensor([[4.]])
    """
    size = sum(p.numel() for p in flatten(params)[0])
    check_matrix(
        "empirical_fisher",
        size,
        size,
        flatten(params)[0][0].dtype,
        "Use curvature.EmpiricalFisher, which needs no matrix (diagonal, eigenvalues, products)",
    )
    rows = score(log_prob, params, *data, chunk_size=chunk_size)
    return matmul(rows.mT, rows) / rows.shape[0]


def inverse_hessian(gradients: Tensor, damping: float = 1e-4) -> Tensor:
    """The inverse of the outer-product approximation damping I + 1/N sum_n g_n g_n^T of a Hessian.

    ``gradients`` (N, W) holds the g_n: gradients of the samples' outputs for a squared error, of
    their log-likelihoods (see :func:`score`) otherwise. No matrix is inverted: each g_n changes the
    inverse by a matrix of rank one, H^-1 <- H^-1 - (H^-1 g)(H^-1 g)^T / (N + g^T H^-1 g), as in
    the optimal brain surgeon.

    >>> import chainrule
    >>> from chainrule import curvature
    >>> curvature.inverse_hessian(chainrule.tensor([[2.0, 0.0], [0.0, 2.0]]), damping=2.0)
    tensor([[0.2500, 0.0000],
            [0.0000, 0.2500]])
    """
    if gradients.ndim != 2:
        raise RuntimeError(
            f"inverse_hessian: expected gradients of shape (N, W), got {tuple(gradients.shape)}"
        )
    if damping <= 0:
        raise ValueError(f"inverse_hessian: damping should be greater than 0, got {damping}")
    count, size = gradients.shape
    inverse = of_array(K.eye(size, dtype=gradients.array.dtype)) / damping
    for n in range(count):
        g = gradients[n]
        changed = matmul(inverse, g)
        inverse = inverse - outer(changed, changed) / (count + matmul(g, changed))
    return inverse


# The log-likelihood of an observation y is y z - A(z) and terms without z for all three, where z is
# the model's output (over the variance, for the Gaussian). So its Hessian by z is -A''(z) whatever
# y is, the expectation over y is no work, and the Fisher information is the Gauss-Newton matrix
# of A. These are the functions A, summed over all observations.
_LOG_PARTITION: dict[str, Callable[[Tensor, float | Tensor], Tensor]] = {
    "categorical": lambda z, variance: sum_over(logsumexp(z, -1)),
    "bernoulli": lambda z, variance: sum_over(logaddexp(z, zeros_like_of(z))),
    "gaussian": lambda z, variance: sum_over(z * z / (2 * variance)),
}


def log_partition(
    op: str, likelihood: str, variance: float | Tensor = 1.0, reduction: str = "sum"
) -> Callable[[Tensor], Tensor]:
    """A as a function of the model's output (N, *): the log-likelihood without what is linear.

    Its Hessian by the output is that of the negative log-likelihood, whatever the targets are.
    """
    if likelihood not in _LOG_PARTITION:
        raise ValueError(f"{op}: likelihood must be one of {[*_LOG_PARTITION]}, got {likelihood!r}")
    if reduction not in ("mean", "sum"):
        raise ValueError(f"{op}: reduction must be 'mean' or 'sum', got {reduction!r}")
    if not isinstance(variance, Tensor) and variance <= 0:
        raise ValueError(f"{op}: variance should be greater than 0, got {variance}")
    least = 2 if likelihood == "categorical" else 1

    def total(z: Tensor) -> Tensor:
        if not isinstance(z, Tensor) or z.ndim < least:
            got = f"shape {tuple(z.shape)}" if isinstance(z, Tensor) else type(z).__name__
            raise RuntimeError(
                f"{op}: for a {likelihood} likelihood the model must return a batch, of at least "
                f"{least} dimensions, got {got}; give the inputs a batch dimension"
            )
        value = _LOG_PARTITION[likelihood](z, variance)
        return value / z.shape[0] if reduction == "mean" else value

    return total


def negative_log_likelihood(
    op: str, likelihood: str, targets: Tensor, variance: float | Tensor = 1.0
) -> Callable[[Tensor], Tensor]:
    """-ln p(targets) as a function of the model's output, up to terms without the parameters.

    The targets of a categorical likelihood are class numbers, (N, *); the others have the shape of
    the output.
    """
    partition = log_partition(op, likelihood, variance)

    def loss(z: Tensor) -> Tensor:
        classes = likelihood == "categorical"
        expected = tuple(z.shape[:-1] if classes else z.shape)
        if tuple(targets.shape) != expected:
            raise RuntimeError(
                f"{op}: for outputs of shape {tuple(z.shape)} a {likelihood} likelihood needs "
                f"targets of shape {expected}, got {tuple(targets.shape)}"
            )
        linear = z * (_in_classes(targets, z) if classes else targets)
        return partition(z) - sum_over(linear / variance if likelihood == "gaussian" else linear)

    return loss


def _in_classes(targets: Tensor, z: Tensor) -> Tensor:
    """Class numbers as ones and zeros, like the output z."""
    return cast(targets[..., None] == arange(z.shape[-1]), z.dtype)


def draw_residuals(
    z: Tensor,
    count: int,
    likelihood: str,
    variance: float | Tensor = 1.0,
    reduction: str = "sum",
    *,
    generator: Random = None,
) -> Tensor:
    """d ln p / dz for ``count`` draws of the targets from the model's own prediction, (count, *z).

    Their mean is zero and their covariance the Hessian of :func:`log_partition`.
    """
    shape = (count, *z.shape)
    if likelihood == "gaussian":
        r = randn(shape, dtype=z.dtype, device=z.device, generator=generator) / variance**0.5
    elif likelihood == "bernoulli":
        p = sigmoid(z)
        r = bernoulli(expand(p, shape), generator=generator) - p
    else:
        p = softmax(z, -1)
        rows = reshape(p, (-1, z.shape[-1]))
        drawn = multinomial(rows, count, True, generator=generator)
        r = _in_classes(reshape(drawn.mT, shape[:-1]), z) - p
    return r / z.shape[0] ** 0.5 if reduction == "mean" else r


def fisher(
    model: Model,
    inputs: Inputs,
    likelihood: str,
    params: Nested | None = None,
    *,
    variance: float | Tensor = 1.0,
    reduction: str = "mean",
    chunk_size: int | None = None,
) -> Tensor:
    """The Fisher information E[s s^T] = -E[Hessian of ln p], s the score, of shape (W, W).

    The expectation is taken exactly over the model's own predictions y, not over observed targets.
    ``likelihood`` says what the model's output is: the logits of K classes along the last dimension
    (``"categorical"``, output (N, *, K)), logits of independent yes-or-no variables
    (``"bernoulli"``, output (N, *)), or the means of normal variables of the given ``variance``
    (``"gaussian"``, output (N, *)). The information of the N samples is averaged
    (``reduction="mean"``: that of one observation) or added up (``"sum"``).

    It equals the generalized Gauss-Newton matrix of the negative log-likelihood.

    >>> import chainrule
    >>> from chainrule.curvature.information import fisher
    >>> x = chainrule.tensor([[1.0, 2.0]])
    >>> fisher(lambda w, x: x @ w, x, "bernoulli", chainrule.zeros(2))
    tensor([[0.2500, 0.5000],
            [0.5000, 1.0000]])
    """
    loss = log_partition("fisher", likelihood, variance, reduction)
    return gauss_newton(model, inputs, loss, params, chunk_size=chunk_size)
