"""Feedback alignment: errors go back through fixed random weights instead of the layer's own."""

from __future__ import annotations


from chainrule.nn.layers.linear import Linear
from chainrule.nn.module.base import Module
from chainrule.ops.creation.patterns import empty_like
from chainrule.ops.linalg.matmul import linear
from chainrule.tensor import Tensor
from chainrule.typing import Device, DType, Random

__all__ = ["FeedbackLinear", "feedback_alignment"]


class FeedbackLinear(Linear):
    """An affine map that learns by feedback alignment: y = x A^T + b, but dL/dx = dL/dy B.

    B is a fixed random matrix, the buffer ``feedback``, where backpropagation has A: no unit needs
    to know the weights of others. The layers before still learn, since A comes to agree with B.
    The gradients of A and b themselves are the true ones.

    In training y = A sg(x) + B (x - sg(x)) + b, where sg(x) is x held constant: so forward mode
    goes through B as well. In evaluation this is a :class:`Linear`, and its derivatives are the
    true ones. Lillicrap et al., 2016.

    Shape: (*, in_features) -> (*, out_features).

    Args:
        in_features: size of each input.
        out_features: size of each output.
        bias: whether to add a learned b.
        generator: where B comes from.

    >>> from chainrule import nn, ones
    >>> layer, x = nn.FeedbackLinear(3, 2), ones(3).requires_grad_()
    >>> layer(x).sum().backward()
    >>> bool((x.grad == layer.feedback.sum(0)).all())
    True
    """

    feedback: Tensor

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Device | None = None,
        dtype: DType | None = None,
        generator: Random = None,
    ):
        super().__init__(in_features, out_features, bias, device, dtype)
        self._draw_feedback(generator)

    def _draw_feedback(self, generator: Random) -> None:
        """Draws B from the distribution that the weight starts from."""
        bound = self.in_features**-0.5 if self.in_features > 0 else 0.0
        feedback = empty_like(self.weight.detach())
        self.register_buffer("feedback", feedback.uniform_(-bound, bound, generator=generator))

    @classmethod
    def from_linear(cls, layer: Linear, generator: Random = None) -> FeedbackLinear:
        """A layer with the very weight and bias of another, and its own feedback."""
        if type(layer) is not Linear:
            raise TypeError(f"FeedbackLinear: expected an nn.Linear, got {type(layer).__name__}")
        if layer.has_hooks:
            raise ValueError(f"FeedbackLinear: {layer} has hooks, which would be lost; remove them")
        new = cls.__new__(cls)
        Module.__init__(new)
        new.in_features, new.out_features = layer.in_features, layer.out_features
        new.register_parameter("weight", layer.weight)
        new.register_parameter("bias", layer.bias)
        new._draw_feedback(generator)
        return new.train(layer.training)

    def forward(self, input: Tensor) -> Tensor:
        if not self.training:
            return linear(input, self.weight, self.bias)
        held = input.detach()
        return linear(held, self.weight, self.bias) + linear(input - held, self.feedback)


def feedback_alignment(model: Module, *, generator: Random = None) -> Module:
    """Makes every ``nn.Linear`` in a model a :class:`FeedbackLinear` with the same parameters.

    The model is changed in place and returned (a Linear alone: the new layer). An optimizer made
    before goes on working. Subclasses of Linear and layers with hooks are refused, since they would
    lose what makes them special.

    >>> from chainrule import nn
    >>> nn.feedback_alignment(nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)))
    Sequential(
      (0): FeedbackLinear(in_features=2, out_features=3, bias=True)
      (1): Tanh()
      (2): FeedbackLinear(in_features=3, out_features=1, bias=True)
    )
    """
    if isinstance(model, Linear):
        return FeedbackLinear.from_linear(model, generator)
    places = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent._modules.items()
        if isinstance(child, Linear) and not isinstance(child, FeedbackLinear)
    ]
    if not places:
        raise ValueError(
            f"feedback_alignment: {type(model).__name__} has no nn.Linear whose feedback could be "
            "replaced"
        )
    new: dict[int, FeedbackLinear] = {}  # a layer that stands in two places stays one layer
    for _, _, child in places:
        if id(child) not in new:
            new[id(child)] = FeedbackLinear.from_linear(child, generator)
    for parent, name, child in places:
        parent._modules[name] = new[id(child)]
    return model
