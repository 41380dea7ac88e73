"""What distributions of yes and no share: a probability, or its logit."""

from __future__ import annotations

from chainrule.distributions.distribution import Distribution
from chainrule.distributions.utils import (
    broadcast_all,
    exactly_one,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)
from chainrule.tensor import Size, Tensor

__all__ = ["Odds"]


class Odds(Distribution):
    """The base of the distributions with ``probs``, or ``logits`` = log(probs / (1 - probs)).

    >>> from chainrule.distributions import Bernoulli
    >>> Bernoulli(logits=0.0).probs, Bernoulli(probs=0.5).logits
    (tensor(0.5000), tensor(0.))
    """

    def _set_odds(
        self, probs: Tensor | float | None, logits: Tensor | float | None, *others: Tensor | float
    ) -> tuple[Tensor, ...]:
        """Keeps what was given, broadcast with the other parameters, which it returns."""
        name, given = exactly_one(type(self).__name__, probs=probs, logits=logits)
        self._is_logits = name == "logits"
        self.__dict__[name], *rest = broadcast_all(given, *others)
        return tuple(rest)

    @lazy_property
    def logits(self) -> Tensor:
        """log(probs / (1 - probs))"""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """The probability of yes."""
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def _param(self) -> Tensor:
        """The one of both that was given."""
        return self.__dict__["probs" if "probs" in self.__dict__ else "logits"]

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._param.shape
