"""Activations with parameters that are learned."""

from __future__ import annotations

from collections.abc import Callable

from chainrule.nn.activations import functions as F
from chainrule.nn.module.base import Module
from chainrule.nn.parameter import Parameter
from chainrule.ops.creation.patterns import full
from chainrule.ops.creation.from_data import as_tensor
from chainrule.tensor import Tensor
from chainrule.typing import ArrayLike, Device, DType

__all__ = ["PReLU", "ParametricActivation"]


class PReLU(Module):
    """A leaky unit whose slope is learned: y = x for x > 0, y = weight * x for x <= 0.

    Shape: (*), or (N, C, *) with a weight for each channel; the same out.

    Args:
        num_parameters: 1, or the number of channels (dimension 1) to have a weight for each.
        init: the weight at the start.

    >>> from chainrule import nn, tensor
    >>> nn.PReLU()(tensor([-1.0, 2.0]))
    tensor([-0.2500,  2.0000], grad_fn=<PreluBackward>)
    """

    weight: Parameter

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


class ParametricActivation(Module):
    """Any function with parameters that are learned: y = function(x, **parameters).

    Shape: (*), the same out if the function is elementwise.

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
