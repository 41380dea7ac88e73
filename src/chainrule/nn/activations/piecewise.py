"""Activations that are linear in pieces."""

from __future__ import annotations

from chainrule.nn.activations import functions as F
from chainrule.nn.activations.base import Activation, InPlace, Plain
from chainrule.tensor import Tensor

__all__ = [
    "BinaryStep",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "Sign",
    "Softshrink",
    "Threshold",
]


class ReLU(InPlace, function=F.relu):
    """The rectified linear unit: y = max(x, 0).

    Shape: (*), the same out.

    Args:
        inplace: whether to write into the input.

    >>> from chainrule import nn, tensor
    >>> nn.ReLU()(tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """


class ReLU6(InPlace, function=F.relu6):
    """A rectified linear unit with a limit: y = min(max(x, 0), 6).

    Shape: (*), the same out.

    Args:
        inplace: whether to write into the input.

    >>> from chainrule import nn, tensor
    >>> nn.ReLU6()(tensor([-1.0, 2.0, 8.0]))
    tensor([0., 2., 6.])
    """


class LeakyReLU(Activation, function=F.leaky_relu):
    """A rectified linear unit that leaks: y = x for x > 0, y = negative_slope * x for x <= 0.

    Shape: (*), the same out.

    Args:
        negative_slope: the slope of the left half.
        inplace: whether to write into the input.

    >>> from chainrule import nn, tensor
    >>> nn.LeakyReLU(0.1)(tensor([-1.0, 2.0]))
    tensor([-0.1000,  2.0000])
    """

    negative_slope: float
    inplace: bool

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False):
        super().__init__(negative_slope=negative_slope, inplace=inplace)


class RReLU(Activation, function=F.rrelu):
    """A leaky unit of random slope: y = x for x > 0, y = a x for x <= 0.

    In training each a is uniform in [lower, upper], in evaluation a = (lower + upper) / 2.

    Shape: (*), the same out.

    Args:
        lower, upper: between which the slopes lie.
        inplace: whether to write into the input.

    >>> from chainrule import nn, tensor
    >>> nn.RReLU(0.1, 0.3).eval()(tensor([-1.0, 2.0]))
    tensor([-0.2000,  2.0000])
    """

    lower: float
    upper: float
    inplace: bool

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False):
        super().__init__(lower=lower, upper=upper, inplace=inplace)

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class Threshold(Activation, function=F.threshold):
    """A unit that passes what is large: y = x for x > threshold, else y = value.

    Shape: (*), the same out.

    Args:
        threshold: from where on x is passed.
        value: what stands for the rest.
        inplace: whether to write into the input.

    >>> from chainrule import nn, tensor
    >>> nn.Threshold(1.0, 0.5)(tensor([-1.0, 2.0]))
    tensor([0.5000, 2.0000])
    """

    threshold: float
    value: float
    inplace: bool

    def __init__(self, threshold: float, value: float, inplace: bool = False):
        super().__init__(threshold=threshold, value=value, inplace=inplace)


class Hardtanh(Activation, function=F.hardtanh):
    """x between two limits: y = min(max(x, min_val), max_val).

    Shape: (*), the same out.

    Args:
        min_val, max_val: the limits.
        inplace: whether to write into the input.

    >>> from chainrule import nn, tensor
    >>> nn.Hardtanh()(tensor([-3.0, 0.5]))
    tensor([-1.0000,  0.5000])
    """

    min_val: float
    max_val: float
    inplace: bool

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False):
        if not max_val > min_val:
            raise ValueError(
                f"Hardtanh: max_val must be larger than min_val, got {max_val} and {min_val}"
            )
        super().__init__(min_val=min_val, max_val=max_val, inplace=inplace)


class Hardsigmoid(InPlace, function=F.hardsigmoid):
    """A sigmoid made of lines: y = min(max(x / 6 + 1 / 2, 0), 1).

    Shape: (*), the same out.

    Args:
        inplace: whether to write into the input.

    >>> from chainrule import nn, tensor
    >>> nn.Hardsigmoid()(tensor([-4.0, 0.0, 1.5]))
    tensor([0.0000, 0.5000, 0.7500])
    """


class Hardswish(InPlace, function=F.hardswish):
    """SiLU with a sigmoid made of lines: y = x min(max(x / 6 + 1 / 2, 0), 1).

    Shape: (*), the same out.

    Args:
        inplace: whether to write into the input.

    >>> from chainrule import nn, tensor
    >>> nn.Hardswish()(tensor([-1.5, 1.5]))
    tensor([-0.3750,  1.1250])
    """


class Hardshrink(Activation, function=F.hardshrink):
    """A unit that drops what is small: y = x for |x| > lambd, else y = 0.

    Shape: (*), the same out.

    Args:
        lambd: how large x must be.

    >>> from chainrule import nn, tensor
    >>> nn.Hardshrink()(tensor([-1.0, 0.2]))
    tensor([-1.,  0.])
    """

    named = False
    lambd: float

    def __init__(self, lambd: float = 0.5):
        super().__init__(lambd=lambd)


class Softshrink(Activation, function=F.softshrink):
    """x brought nearer to 0: y = sign(x) max(|x| - lambd, 0).

    Shape: (*), the same out.

    Args:
        lambd: by how much.

    >>> from chainrule import nn, tensor
    >>> nn.Softshrink()(tensor([-1.0, 0.2]))
    tensor([-0.5000,  0.0000])
    """

    named = False
    lambd: float

    def __init__(self, lambd: float = 0.5):
        super().__init__(lambd=lambd)


class BinaryStep(Plain, function=F.binary_step):
    """A step: y = 0 for x < 0, else y = 1; its slope is 0.

    Shape: (*), the same out.

    >>> from chainrule import nn, tensor
    >>> nn.BinaryStep()(tensor([-1.0, 0.0, 2.0]))
    tensor([0., 1., 1.])
    """


class Sign(Plain, function=F.sign):
    """The perceptron's step: y = -1 for x < 0, y = 0 for x = 0, else y = 1; its slope is 0.

    Shape: (*), the same out.

    >>> from chainrule import nn, tensor
    >>> nn.Sign()(tensor([-1.0, 0.0, 2.0]))
    tensor([-1.,  0.,  1.])
    """
