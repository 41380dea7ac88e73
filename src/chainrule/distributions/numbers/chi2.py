"""The chi-squared distribution."""

from __future__ import annotations

from typing import ClassVar

from chainrule.distributions import constraints
from chainrule.distributions.numbers.gamma import Gamma
from chainrule.tensor import Tensor

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The sum of the squares of df standard normal numbers: Gamma(df / 2, 1 / 2).

    Args:
        df: the degrees of freedom.

    >>> from chainrule.distributions import Chi2
    >>> Chi2(3.0).mean, Chi2(3.0).variance
    (tensor(3.), tensor(6.))
    """

    arg_constraints: ClassVar = {"df": constraints.positive}

    def __init__(self, df: Tensor | float, validate_args: bool | None = None):
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        return 2 * self.concentration
