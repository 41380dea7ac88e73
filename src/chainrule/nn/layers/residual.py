"""Links that pass a layer by: residual blocks, highways, concatenation."""

from __future__ import annotations

from collections.abc import Callable

from chainrule.nn.activations.functions import relu
from chainrule.nn.activations.piecewise import ReLU
from chainrule.nn.layers.containers import Sequential
from chainrule.nn.layers.conv import Conv2d
from chainrule.nn.layers.linear import Linear
from chainrule.nn.module.base import Module
from chainrule.nn.layers.norm import BatchNorm2d
from chainrule.ops.elementwise.functions import sigmoid
from chainrule.ops.shape.stacking import cat
from chainrule.tensor import Tensor
from chainrule.typing import Device, DType

__all__ = ["Highway", "Residual", "ResidualBlock", "SkipConcat"]


def _sum(name: str, y: Tensor, x: Tensor) -> Tensor:
    """y + x, without broadcasting: a link that changes the shape is a mistake."""
    if y.array.shape != x.array.shape:
        raise ValueError(
            f"{name}: the branch gives shape {tuple(y.shape)} and the link {tuple(x.shape)}; make "
            "them equal, for example by a projection of the input"
        )
    return y + x


class Residual(Module):
    """A residual link: y = module(x) + x, or module(x) + projection(x) where the shape changes.

    Shape: that of the module; without projection the same in and out.

    Args:
        module: what is computed beside the link.
        projection: a module that brings x to the shape of module(x).

    >>> from chainrule import nn, ones
    >>> nn.Residual(nn.Identity())(ones(2))
    tensor([2., 2.])
    """

    module: Module
    projection: Module | None

    def __init__(self, module: Module, projection: Module | None = None):
        super().__init__()
        self.module = module
        self.projection = projection

    def forward(self, input: Tensor) -> Tensor:
        link = input if self.projection is None else self.projection(input)
        return _sum("Residual", self.module(input), link)


class ResidualBlock(Module):
    """Two convolutions of 3 x 3 and a link past them.

    y = relu(bn2(conv2(relu(bn1(conv1(x))))) + downsample(x))

    The names are those of torchvision's BasicBlock. Where the stride or the number of channels
    makes it necessary, and none is given, downsample is a convolution of 1 x 1 and a batch
    normalization.

    Shape: (N, C, H, W) -> (N, planes, H / stride, W / stride).

    Args:
        inplanes: C, channels in.
        planes: channels out.
        stride: of the first convolution and of the link.
        downsample: a module for the link.

    >>> from chainrule import nn, ones
    >>> nn.ResidualBlock(4, 8, stride=2)(ones(2, 4, 6, 6)).shape
    chainrule.Size([2, 8, 3, 3])
    """

    downsample: Module | None

    def __init__(
        self, inplanes: int, planes: int, stride: int = 1, downsample: Module | None = None
    ):
        super().__init__()
        self.conv1 = Conv2d(inplanes, planes, 3, stride=stride, padding=1, bias=False)
        self.bn1 = BatchNorm2d(planes)
        self.relu = ReLU(inplace=True)
        self.conv2 = Conv2d(planes, planes, 3, padding=1, bias=False)
        self.bn2 = BatchNorm2d(planes)
        if downsample is None and (stride != 1 or inplanes != planes):
            downsample = Sequential(
                Conv2d(inplanes, planes, 1, stride=stride, bias=False), BatchNorm2d(planes)
            )
        self.downsample = downsample
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        link = input if self.downsample is None else self.downsample(input)
        out = self.relu(self.bn1(self.conv1(input)))
        return self.relu(_sum("ResidualBlock", self.bn2(self.conv2(out)), link))


class Highway(Module):
    """A layer with a gate t that decides how much of the input passes: y = t * h + (1 - t) * x.

    h = activation(hidden(x)), t = sigmoid(gate(x))

    Shape: (*, features), the same out.

    Args:
        features: size of each input and output.
        activation: of the hidden layer.
        gate_bias: what the gate's bias starts with; below 0 the layer passes its input at first.

    >>> from chainrule import nn, ones
    >>> nn.Highway(3)(ones(2, 3)).shape
    chainrule.Size([2, 3])
    """

    def __init__(
        self,
        features: int,
        activation: Callable[[Tensor], Tensor] = relu,
        gate_bias: float = -1.0,
        device: Device | None = None,
        dtype: DType | None = None,
    ):
        super().__init__()
        self.hidden = Linear(features, features, device=device, dtype=dtype)
        self.gate = Linear(features, features, device=device, dtype=dtype)
        self.activation = activation
        self.gate.get_parameter("bias").detach().fill_(gate_bias)

    def forward(self, input: Tensor) -> Tensor:
        t = sigmoid(self.gate(input))
        return input + t * (self.activation(self.hidden(input)) - input)


class SkipConcat(Module):
    """A link by concatenation: y = cat([x, module(x)], dim).

    What follows sees the input and what was made of it.

    Shape: (N, C, *) -> (N, C + C_out, *), C_out being the channels of module(x).

    Args:
        module: what is computed beside the link.
        dim: the dimension along which both are joined.

    >>> from chainrule import nn, ones
    >>> nn.SkipConcat(nn.Linear(3, 2))(ones(4, 3)).shape
    chainrule.Size([4, 5])
    """

    def __init__(self, module: Module, dim: int = 1):
        super().__init__()
        self.module = module
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return cat([input, self.module(input)], self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"
