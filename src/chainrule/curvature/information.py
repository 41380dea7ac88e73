"""Fisher information: how much the data say about the parameters of a model.

The matrices are (W, W) in the tree order of ``parameters.py``, which says what ``model``,
``params`` and ``inputs`` are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule.curvature.hessian import gauss_newton
from chainrule.autograd.func import grad
from chainrule.autograd.tree import flatten
from chainrule.autograd.vmap import vmap
from chainrule.backend import K
from chainrule.ops.elementwise import logaddexp, zeros_like_of
from chainrule.ops.matmul import matmul
from chainrule.ops.products import outer
from chainrule.ops.reduce import logsumexp
from chainrule.ops.reduce import sum as sum_over
from chainrule.ops.shape import cat, reshape
from chainrule.tensor import Tensor

__all__ = ["empirical_fisher", "fisher", "inverse_hessian", "score"]


def score(
    log_prob: Callable[..., Tensor], params: Any, *data: Any, chunk_size: int | None = None
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
    log_prob: Callable[..., Tensor], params: Any, *data: Any, chunk_size: int | None = None
) -> Tensor:
    """The empirical Fisher information 1/N sum_n s_n s_n^T from the scores s_n of the data.

    The arguments are those of :func:`score`; the sign of ``log_prob`` does not matter, so a loss
    will do. It estimates :func:`fisher` only as far as the data follow the model's distribution.
    """
    rows = score(log_prob, params, *data, chunk_size=chunk_size)
    return matmul(rows.mT, rows) / rows.shape[0]


def inverse_hessian(gradients: Tensor, damping: float = 1e-4) -> Tensor:
    """The inverse of the outer-product approximation damping I + 1/N sum_n g_n g_n^T of a Hessian.

    ``gradients`` (N, W) holds the g_n: gradients of the samples' outputs for a squared error, of
    their log-likelihoods (see :func:`score`) otherwise. No matrix is inverted: each g_n changes the
    inverse by a matrix of rank one, H^-1 <- H^-1 - (H^-1 g)(H^-1 g)^T / (N + g^T H^-1 g), as in
    the optimal brain surgeon.
    """
    if gradients.ndim != 2:
        raise RuntimeError(
            f"inverse_hessian: expected gradients of shape (N, W), got {tuple(gradients.shape)}"
        )
    if damping <= 0:
        raise ValueError(f"inverse_hessian: damping should be greater than 0, got {damping}")
    count, size = gradients.shape
    inverse = Tensor(K.eye(size, dtype=gradients.array.dtype)) / damping
    for n in range(count):
        g = gradients[n]
        changed = matmul(inverse, g)
        inverse = inverse - outer(changed, changed) / (count + matmul(g, changed))
    return inverse


# The log-likelihood of an observation y is y z - A(z) and terms without z for all three, where z is
# the model's output (over the variance, for the Gaussian). So its Hessian by z is -A''(z) whatever
# y is, the expectation over y is no work, and the Fisher information is the Gauss-Newton matrix
# of A. These are the functions A, summed over all observations.
_LOG_PARTITION: dict[str, Callable[[Tensor, Any], Tensor]] = {
    "categorical": lambda z, variance: sum_over(logsumexp(z, -1)),
    "bernoulli": lambda z, variance: sum_over(logaddexp(z, zeros_like_of(z))),
    "gaussian": lambda z, variance: sum_over(z * z / (2 * variance)),
}


def fisher(
    model: Any,
    inputs: Any,
    likelihood: str,
    params: Any = None,
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
    if likelihood not in _LOG_PARTITION:
        raise ValueError(
            f"fisher: likelihood must be one of {[*_LOG_PARTITION]}, got {likelihood!r}"
        )
    if reduction not in ("mean", "sum"):
        raise ValueError(f"fisher: reduction must be 'mean' or 'sum', got {reduction!r}")
    if not isinstance(variance, Tensor) and variance <= 0:
        raise ValueError(f"fisher: variance should be greater than 0, got {variance}")
    least = 2 if likelihood == "categorical" else 1

    def log_partition(z: Tensor) -> Tensor:
        if z.ndim < least:
            raise RuntimeError(
                f"fisher: for a {likelihood} likelihood the model must return a batch, of at least "
                f"{least} dimensions, got shape {tuple(z.shape)}; give the inputs a batch dimension"
            )
        total = _LOG_PARTITION[likelihood](z, variance)
        return total / z.shape[0] if reduction == "mean" else total

    return gauss_newton(model, inputs, log_partition, params, chunk_size=chunk_size)
