"""Special functions that PyTorch has outside of its module ``special``, too, and as methods."""

from __future__ import annotations

from chainrule.ops.elementwise.functions import polygamma as _polygamma
from chainrule.ops.elementwise.special import gammainc, gammaincc, i0, multigammaln
from chainrule.tensor import Tensor

__all__ = ["i0", "igamma", "igammac", "mvlgamma"]
METHODS = (*__all__, "polygamma")
INPLACE = METHODS

igamma, igammac, mvlgamma = gammainc, gammaincc, multigammaln


def polygamma(input: Tensor, n: int) -> Tensor:
    """The n-th derivative of digamma: a method has the tensor first."""
    return _polygamma(n, input)
