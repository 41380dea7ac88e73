"""Soft weight sharing: weights gather around a few values, which are learned with them."""

from __future__ import annotations

import math

from chainrule.autograd.modes import no_grad
from chainrule.backend import dtypes
from chainrule.nn.module.base import Module
from chainrule.nn.module.names import Where, check_where, describe
from chainrule.nn.parameter import Parameter
from chainrule.ops.creation.patterns import full, linspace, zeros
from chainrule.ops.elementwise.functions import exp, log
from chainrule.ops.reduce.order import amax, amin
from chainrule.ops.reduce.quantiles import quantile
from chainrule.ops.core.promotion import cast
from chainrule.ops.reduce.reductions import logsumexp, sum
from chainrule.ops.shape.views import reshape, unsqueeze
from chainrule.ops.shape.stacking import cat
from chainrule.ops.layers.softmax import log_softmax, softmax
from chainrule.regularize.penalty import check_strength
from chainrule.regularize.where import select
from chainrule.tensor import Tensor
from chainrule.typing import DType

__all__ = ["SoftWeightSharing"]


class SoftWeightSharing(Module):
    """-strength sum_i log sum_j alpha_j N(w_i; mu_j, sigma_j^2): a mixture of J normal densities.

    The proportions alpha, the means mu and the standard deviations sigma are learned with the
    weights: alpha is the softmax of the parameter ``log_alpha``, sigma is ``min_sigma`` plus the
    exponential of ``log_sigma``. A ``Trainer`` that makes its own optimizer gives it these
    parameters, too; an optimizer made by hand is given
    ``[*model.parameters(), *sharing.parameters()]``.

    The gradient pulls a weight to each mean in proportion to that component's responsibility for
    it: strength sum_j p(j|w) (w - mu_j) / sigma_j^2.

    Nowlan and Hinton, "Simplifying neural networks by soft weight-sharing" (1992).

    Args:
        strength: what the penalty is multiplied with.
        components: how many normal densities.
        where: which parameters; see :class:`Penalty`.
        low: the first mean at the start; the means are evenly spaced.
        high: the last one.
        sigma: the standard deviations at the start; by default the spacing of the means.
        min_sigma: what a standard deviation cannot fall below: without it, a component that sits
            on one weight makes the density infinite.
        name: the name of its column.

    >>> from chainrule import nn, regularize
    >>> sharing = regularize.SoftWeightSharing(1e-3, components=3)
    >>> sharing.mu.detach(), sharing.alpha.detach()
    (tensor([-1.,  0.,  1.]), tensor([0.3333, 0.3333, 0.3333]))
    >>> bool(sharing(nn.Linear(4, 2)) > 0)
    True
    """

    needs_inputs = False

    def __init__(
        self,
        strength: float,
        components: int = 4,
        where: Where = None,
        low: float = -1.0,
        high: float = 1.0,
        sigma: float | None = None,
        min_sigma: float = 1e-3,
        name: str = "soft_sharing",
        dtype: DType | None = None,
    ):
        super().__init__()
        op = "SoftWeightSharing"
        check_strength(op, strength)
        check_where(op, where)
        if components < 1 or not low <= high:
            raise ValueError(
                f"{op}: expected at least one component and low <= high, got {components} "
                f"components from {low} to {high}"
            )
        spacing = (high - low) / max(1, components - 1) or 1.0
        sigma = spacing if sigma is None else sigma
        if not 0 <= min_sigma < sigma:
            raise ValueError(
                f"{op}: expected 0 <= min_sigma < sigma, got min_sigma={min_sigma}, sigma={sigma}"
            )
        dtype = dtypes.get_default_dtype() if dtype is None else dtype
        self.strength, self.where, self.name, self.min_sigma = strength, where, name, min_sigma
        self.mu = Parameter(linspace(low, high, components, dtype=dtype))
        self.log_alpha = Parameter(zeros(components, dtype=dtype))
        start = math.log(sigma - min_sigma)
        self.log_sigma = Parameter(full((components,), start, dtype=dtype))

    @property
    def alpha(self) -> Tensor:
        """The proportions of the components, which add up to 1."""
        return softmax(self.log_alpha, 0)

    @property
    def sigma(self) -> Tensor:
        """The standard deviations of the components."""
        return self.min_sigma + exp(self.log_sigma)

    def weights(self, model: Module) -> dict[str, Tensor]:
        """The parameters that are penalized, by name."""
        return select("SoftWeightSharing", model, self.where)

    def _joint(self, w: Tensor) -> Tensor:
        """log (alpha_j N(w; mu_j, sigma_j^2)), the components along a new last dimension."""
        sigma = self.sigma
        z = (unsqueeze(w, -1) - self.mu) / sigma
        return log_softmax(self.log_alpha, 0) - log(sigma) - 0.5 * math.log(2 * math.pi) - z * z / 2

    def log_density(self, w: Tensor) -> Tensor:
        """log sum_j alpha_j N(w; mu_j, sigma_j^2), elementwise."""
        return logsumexp(self._joint(w), -1)

    def responsibilities(self, w: Tensor) -> Tensor:
        """p(j|w), the probability that component j made the weight w: (*, J) for w of shape (*)."""
        return softmax(self._joint(w), -1)

    def forward(self, model: Module) -> Tensor:
        total: float | Tensor = 0.0
        for w in self.weights(model).values():
            total = total - sum(self.log_density(reshape(w, (-1,))))
        return self.strength * total  # type: ignore[return-value]

    def start_from(self, model: Module) -> SoftWeightSharing:
        """Puts the means at evenly spaced quantiles of the weights that there are."""
        with no_grad():
            flat = cat([reshape(w.detach(), (-1,)) for w in self.weights(model).values()])
            flat = cast(flat, self.mu.dtype)
            count = self.mu.shape[0]
            places = (
                linspace(0, count - 1, count, dtype=flat.dtype, device=flat.device) + 0.5
            ) / count
            self.mu.copy_(quantile(flat, places))
            spread = (amax(flat) - amin(flat)) / count
            self.log_sigma.fill_(math.log(max(float(spread), 2 * self.min_sigma, 1e-12)))
        return self

    def extra_repr(self) -> str:
        where = "" if self.where is None else f", where={describe(self.where)}"
        return f"{self.strength}, components={self.mu.shape[0]}{where}"
