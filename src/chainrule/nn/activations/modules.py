"""Activations as modules: each is a function of ``nn/activations/functions.py`` with its options.

All keep the shape of their input but GLU, which halves a dimension.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule.nn.activations import functions as F
from chainrule.nn.module.base import Module
from chainrule.nn.parameter import Parameter
from chainrule.ops.creation.patterns import full
from chainrule.ops.creation.from_data import as_tensor
from chainrule.tensor import Tensor
from chainrule.typing import ArrayLike, Device, DType

__all__ = [
    "BinaryStep",
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "Gaussian",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LeCunTanh",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "ParametricActivation",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SELU",
    "SiLU",
    "Sigmoid",
    "Sign",
    "SobolevaTanh",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]


class _Activation(Module):
    """A function and its options; the options are attributes, as in PyTorch."""

    function: Callable[..., Any]
    named = True  # whether options are printed with their names

    def __init_subclass__(cls, function: Callable[..., Any] | None = None, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        if function is not None:
            cls.function = staticmethod(function)

    def __init__(self, **options: Any):
        super().__init__()
        self._options = tuple(options)
        self.__dict__.update(options)

    def forward(self, input: Tensor) -> Tensor:
        held = self.__dict__
        return self.function(input, *[held[name] for name in self._options])

    def extra_repr(self) -> str:
        shown = {name: self.__dict__[name] for name in self._options}
        if not shown.pop("inplace", False):
            shown.pop("inplace", None)
            entries = shown.items()
        else:
            entries = {**shown, "inplace": True}.items()
        return ", ".join(f"{k}={v}" if self.named else f"{v}" for k, v in entries)


class _InPlace(_Activation):
    """An activation whose one option is whether it changes its input."""

    def __init__(self, inplace: bool = False):
        super().__init__(inplace=inplace)


class _Plain(_Activation):
    """An activation without options."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return self.function(input)


# --- linear in pieces -----------------------------------------------------------------------------


class ReLU(_InPlace, function=F.relu):
    """max(x, 0)

    >>> from chainrule import nn, tensor
    >>> nn.ReLU()(tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """


class ReLU6(_InPlace, function=F.relu6):
    """min(max(x, 0), 6)"""


class LeakyReLU(_Activation, function=F.leaky_relu):
    """x for x > 0, negative_slope * x for x <= 0."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False):
        super().__init__(negative_slope=negative_slope, inplace=inplace)


class PReLU(Module):
    """x for x > 0, weight * x for x <= 0, with a weight that is learned.

    Args:
        num_parameters: 1, or the number of channels (dimension 1) to have a weight for each.
        init: the weight at the start.

    >>> from chainrule import nn, tensor
    >>> nn.PReLU()(tensor([-1.0, 2.0]))
    tensor([-0.2500,  2.0000], grad_fn=<PreluBackward>)
    """

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        device: Device | None = None,
        dtype: DType | None = None,
    ):
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(full((num_parameters,), init, device=device, dtype=dtype))

    def reset_parameters(self) -> None:
        """Sets the weight to its start."""
        self.weight.detach().fill_(self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class RReLU(_Activation, function=F.rrelu):
    """x for x > 0, a x for x <= 0, with a uniform in [lower, upper]; in evaluation, their mean."""

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False):
        super().__init__(lower=lower, upper=upper, inplace=inplace)

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class Threshold(_Activation, function=F.threshold):
    """x for x > threshold, else value."""

    def __init__(self, threshold: float, value: float, inplace: bool = False):
        super().__init__(threshold=threshold, value=value, inplace=inplace)


class Hardtanh(_Activation, function=F.hardtanh):
    """x limited to [min_val, max_val]."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False):
        if not max_val > min_val:
            raise ValueError(
                f"Hardtanh: max_val must be larger than min_val, got {max_val} and {min_val}"
            )
        super().__init__(min_val=min_val, max_val=max_val, inplace=inplace)


class Hardsigmoid(_InPlace, function=F.hardsigmoid):
    """0 for x <= -3, 1 for x >= 3, x/6 + 1/2 between."""


class Hardswish(_InPlace, function=F.hardswish):
    """x hardsigmoid(x)"""


class Hardshrink(_Activation, function=F.hardshrink):
    """x for |x| > lambd, else 0."""

    named = False

    def __init__(self, lambd: float = 0.5):
        super().__init__(lambd=lambd)


class Softshrink(_Activation, function=F.softshrink):
    """x - lambd for x > lambd, x + lambd for x < -lambd, else 0."""

    named = False

    def __init__(self, lambd: float = 0.5):
        super().__init__(lambd=lambd)


class BinaryStep(_Plain, function=F.binary_step):
    """0 for x < 0, else 1; its slope is 0."""


class Sign(_Plain, function=F.sign):
    """-1, 0 or 1, by the sign of x: the perceptron's; its slope is 0."""


# --- exponential ----------------------------------------------------------------------------------


class ELU(_Activation, function=F.elu):
    """x for x > 0, alpha (exp(x) - 1) for x <= 0."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False):
        super().__init__(alpha=alpha, inplace=inplace)


class CELU(_Activation, function=F.celu):
    """x for x > 0, alpha (exp(x / alpha) - 1) for x <= 0."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False):
        super().__init__(alpha=alpha, inplace=inplace)


class SELU(_InPlace, function=F.selu):
    """1.0507 x for x > 0, 1.7581 (exp(x) - 1) for x <= 0: mean 0 and variance 1 are kept."""


class GELU(_Activation, function=F.gelu):
    """x Phi(x), Phi the normal distribution function (or its approximation by a ``"tanh"``)."""

    def __init__(self, approximate: str = "none"):
        super().__init__(approximate=approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class SiLU(_InPlace, function=F.silu):
    """x / (1 + exp(-x)), also known as swish."""


class Mish(_InPlace, function=F.mish):
    """x tanh(log(1 + exp(x)))"""


class Softplus(_Activation, function=F.softplus):
    """log(1 + exp(beta x)) / beta, and x where beta x > threshold."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0):
        super().__init__(beta=beta, threshold=threshold)


class Sigmoid(_Plain, function=F.sigmoid):
    """1 / (1 + exp(-x))"""


class LogSigmoid(_Plain, function=F.logsigmoid):
    """log(1 / (1 + exp(-x)))"""


class Tanh(_Plain, function=F.tanh):
    """(exp(2 x) - 1) / (exp(2 x) + 1)"""


class Tanhshrink(_Plain, function=F.tanhshrink):
    """x - tanh(x)"""


class Softsign(_Plain, function=F.softsign):
    """x / (1 + |x|)"""


class LeCunTanh(_Plain, function=F.lecun_tanh):
    """1.7159 tanh(2 x / 3)"""


class SobolevaTanh(_Activation, function=F.soboleva_tanh):
    """(exp(a x) - exp(-b x)) / (exp(c x) + exp(-d x)), within (-1, 1) if a <= c and b <= d."""

    def __init__(self, a: float = 1.0, b: float = 1.0, c: float = 1.0, d: float = 1.0):
        super().__init__(a=a, b=b, c=c, d=d)


class Gaussian(_Plain, function=F.gaussian):
    """exp(-x^2)"""


# --- along a dimension ----------------------------------------------------------------------------


class Softmax(_Activation, function=F.softmax):
    """exp(x) / sum(exp(x)) along ``dim``.

    >>> from chainrule import nn, tensor
    >>> nn.Softmax(dim=-1)(tensor([0.0, 0.0]))
    tensor([0.5000, 0.5000])
    """

    def __init__(self, dim: int | None = None):
        super().__init__(dim=dim)


class Softmin(_Activation, function=F.softmin):
    """softmax(-x) along ``dim``."""

    def __init__(self, dim: int | None = None):
        super().__init__(dim=dim)


class LogSoftmax(_Activation, function=F.log_softmax):
    """log(softmax(x)) along ``dim``."""

    def __init__(self, dim: int | None = None):
        super().__init__(dim=dim)


class Softmax2d(_Plain):
    """Softmax over the channels. Shape: (N, C, H, W) or (C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (3, 4):
            raise ValueError(
                f"Softmax2d: expected input to be 3D or 4D, got shape {tuple(input.shape)}"
            )
        return F.softmax(input, -3)


class GLU(_Activation, function=F.glu):
    """a sigmoid(b), where a and b are the halves of x along ``dim``."""

    def __init__(self, dim: int = -1):
        super().__init__(dim=dim)


# --- learned --------------------------------------------------------------------------------------


class ParametricActivation(Module):
    """Any function of x and of parameters that are learned: ``function(x, **parameters)``.

    Args:
        function: takes the input and the parameters by name.
        parameters: their values at the start, numbers or tensors.

    >>> from chainrule import nn, tensor
    >>> swish = nn.ParametricActivation(lambda x, beta: x * (beta * x).sigmoid(), beta=1.0)
    >>> [name for name, _ in swish.named_parameters()]
    ['beta']
    >>> swish(tensor([0.0])).requires_grad
    True
    """

    def __init__(self, function: Callable[..., Tensor], **parameters: ArrayLike):
        super().__init__()
        if not parameters:
            raise ValueError(
                "ParametricActivation: expected at least one parameter by name, such as alpha=0.25"
            )
        self.function = function
        for name, value in parameters.items():
            self.register_parameter(name, Parameter(as_tensor(value).clone().detach()))

    def forward(self, input: Tensor) -> Tensor:
        return self.function(input, **self._parameters)

    def extra_repr(self) -> str:
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return ", ".join([name, *self._parameters])
