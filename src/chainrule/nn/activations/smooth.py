"""Activations made of exponentials, and of what follows from them."""

from __future__ import annotations

from chainrule.nn.activations import functions as F
from chainrule.nn.activations.base import Activation, InPlace, Plain

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "Gaussian",
    "LeCunTanh",
    "LogSigmoid",
    "Mish",
    "SELU",
    "SiLU",
    "Sigmoid",
    "SobolevaTanh",
    "Softplus",
    "Softsign",
    "Tanh",
    "Tanhshrink",
]


class ELU(Activation, function=F.elu):
    """The exponential linear unit: y = x for x > 0, y = alpha (exp(x) - 1) for x <= 0.

    Shape: (*), the same out.

    Args:
        alpha: the limit on the left is -alpha.
        inplace: whether to write into the input.

    >>> from chainrule import nn, tensor
    >>> nn.ELU()(tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """

    alpha: float
    inplace: bool

    def __init__(self, alpha: float = 1.0, inplace: bool = False):
        super().__init__(alpha=alpha, inplace=inplace)


class CELU(Activation, function=F.celu):
    """A smooth ELU: y = x for x > 0, y = alpha (exp(x / alpha) - 1) for x <= 0.

    Shape: (*), the same out.

    Args:
        alpha: the limit on the left is -alpha.
        inplace: whether to write into the input.

    >>> from chainrule import nn, tensor
    >>> nn.CELU(2.0)(tensor([-1.0, 2.0]))
    tensor([-0.7869,  2.0000])
    """

    alpha: float
    inplace: bool

    def __init__(self, alpha: float = 1.0, inplace: bool = False):
        super().__init__(alpha=alpha, inplace=inplace)


class SELU(InPlace, function=F.selu):
    """The self-normalizing unit: y = 1.0507 x for x > 0, y = 1.7581 (exp(x) - 1) for x <= 0.

    It keeps mean 0 and variance 1 from layer to layer.

    Shape: (*), the same out.

    Args:
        inplace: whether to write into the input.

    >>> from chainrule import nn, tensor
    >>> nn.SELU()(tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """


class GELU(Activation, function=F.gelu):
    """The Gaussian error linear unit: y = x Phi(x), Phi the normal distribution function.

    Shape: (*), the same out.

    Args:
        approximate: "none", or "tanh" for an approximation of Phi.

    >>> from chainrule import nn, tensor
    >>> nn.GELU()(tensor([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    """

    approximate: str

    def __init__(self, approximate: str = "none"):
        super().__init__(approximate=approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class SiLU(InPlace, function=F.silu):
    """The sigmoid linear unit, also known as swish: y = x / (1 + exp(-x)).

    Shape: (*), the same out.

    Args:
        inplace: whether to write into the input.

    >>> from chainrule import nn, tensor
    >>> nn.SiLU()(tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """


class Mish(InPlace, function=F.mish):
    """y = x tanh(log(1 + exp(x))), smooth and not monotonic.

    Shape: (*), the same out.

    Args:
        inplace: whether to write into the input.

    >>> from chainrule import nn, tensor
    >>> nn.Mish()(tensor([-1.0, 2.0]))
    tensor([-0.3034,  1.9440])
    """


class Softplus(Activation, function=F.softplus):
    """A smooth ReLU: y = log(1 + exp(beta x)) / beta.

    Shape: (*), the same out.

    Args:
        beta: how sharp the bend is.
        threshold: where beta x exceeds it, y = x.

    >>> from chainrule import nn, tensor
    >>> nn.Softplus()(tensor([0.0, 30.0]))
    tensor([ 0.6931, 30.0000])
    """

    beta: float
    threshold: float

    def __init__(self, beta: float = 1.0, threshold: float = 20.0):
        super().__init__(beta=beta, threshold=threshold)


class Sigmoid(Plain, function=F.sigmoid):
    """The logistic function: y = 1 / (1 + exp(-x)).

    Shape: (*), the same out.

    >>> from chainrule import nn, tensor
    >>> nn.Sigmoid()(tensor([-1.0, 0.0]))
    tensor([0.2689, 0.5000])
    """


class LogSigmoid(Plain, function=F.logsigmoid):
    """The logarithm of the logistic function: y = -log(1 + exp(-x)).

    Shape: (*), the same out.

    >>> from chainrule import nn, tensor
    >>> nn.LogSigmoid()(tensor([-1.0, 0.0]))
    tensor([-1.3133, -0.6931])
    """


class Tanh(Plain, function=F.tanh):
    """The hyperbolic tangent: y = (exp(x) - exp(-x)) / (exp(x) + exp(-x)).

    Shape: (*), the same out.

    >>> from chainrule import nn, tensor
    >>> nn.Tanh()(tensor([-1.0, 0.0]))
    tensor([-0.7616,  0.0000])
    """


class Tanhshrink(Plain, function=F.tanhshrink):
    """What the hyperbolic tangent leaves: y = x - tanh(x).

    Shape: (*), the same out.

    >>> from chainrule import nn, tensor
    >>> nn.Tanhshrink()(tensor([-1.0, 0.0]))
    tensor([-0.2384,  0.0000])
    """


class Softsign(Plain, function=F.softsign):
    """A sigmoid without exponentials: y = x / (1 + |x|).

    Shape: (*), the same out.

    >>> from chainrule import nn, tensor
    >>> nn.Softsign()(tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """


class LeCunTanh(Plain, function=F.lecun_tanh):
    """LeCun's scaled tanh: y = 1.7159 tanh(2 x / 3).

    Shape: (*), the same out.

    >>> from chainrule import nn, tensor
    >>> nn.LeCunTanh()(tensor([0.0, 1.0]))
    tensor([0.0000, 1.0000])
    """


class SobolevaTanh(Activation, function=F.soboleva_tanh):
    """Soboleva's tanh: y = (exp(a x) - exp(-b x)) / (exp(c x) + exp(-d x)).

    Shape: (*), the same out.

    Args:
        a, b, c, d: the rates; y lies within (-1, 1) if a <= c and b <= d.

    >>> from chainrule import nn, tensor
    >>> nn.SobolevaTanh(a=0.5, b=0.5)(tensor([-1.0, 0.0]))
    tensor([-0.3377,  0.0000])
    """

    a: float
    b: float
    c: float
    d: float

    def __init__(self, a: float = 1.0, b: float = 1.0, c: float = 1.0, d: float = 1.0):
        super().__init__(a=a, b=b, c=c, d=d)


class Gaussian(Plain, function=F.gaussian):
    """A bump: y = exp(-x^2).

    Shape: (*), the same out.

    >>> from chainrule import nn, tensor
    >>> nn.Gaussian()(tensor([-1.0, 0.0]))
    tensor([0.3679, 1.0000])
    """
