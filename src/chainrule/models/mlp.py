"""Networks of dense layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from chainrule import nn
from chainrule.nn.activations import learned, piecewise, smooth, vector
from chainrule.ops.creation.from_data import tensor
from chainrule.tensor import Tensor

__all__ = [
    "MLP",
    "Activation",
    "SelfNormalizingMLP",
    "activation_module",
    "xor_from_ands",
    "xor_network",
]

Activation = str | nn.Module | Callable[[Tensor], Tensor]


class _Function(nn.Module):
    """A plain function as a module."""

    def __init__(self, function: Callable[[Tensor], Tensor]):
        super().__init__()
        self.function = function

    def forward(self, input: Tensor) -> Tensor:
        return self.function(input)

    def extra_repr(self) -> str:
        return getattr(self.function, "__name__", repr(self.function))


# Activations by name, in lower case and without underscores.
_NAMED: dict[str, Callable[[], nn.Module]] = {
    name.lower(): getattr(module, name)
    for module in (piecewise, smooth, learned, vector)
    for name in module.__all__
    if name not in ("ParametricActivation", "Threshold")  # which need numbers
}
_NAMED |= {
    "softmax": partial(nn.Softmax, -1),
    "softmin": partial(nn.Softmin, -1),
    "logsoftmax": partial(nn.LogSoftmax, -1),
    "identity": nn.Identity,
    "linear": nn.Identity,
    "logistic": nn.Sigmoid,
    "swish": nn.SiLU,
}


def activation_module(activation: Activation) -> nn.Module:
    """An activation by name (``"relu"``), as a module, a class of modules or a function.

    >>> activation_module("tanh"), activation_module("linear")
    (Tanh(), Identity())
    """
    if isinstance(activation, nn.Module):
        return activation
    if isinstance(activation, str):
        make = _NAMED.get(activation.replace("_", "").lower())
        if make is None:
            raise ValueError(
                f"activation: {activation!r} is not the name of an activation; select from "
                f"{sorted(_NAMED)}, or pass a module or a function"
            )
        return make()
    if isinstance(activation, type):
        return activation_module(activation())
    if callable(activation):
        return _Function(activation)
    raise TypeError(
        "activation: expected a name, a module or a function, got " + type(activation).__name__
    )


class MLP(nn.Sequential):
    """A multi-layer perceptron: a[l] = f(W[l] a[l-1] + b[l]), the last layer without f.

    Shape: (*, in_features) -> (*, out_features).

    Args:
        in_features: size of each input.
        hidden: the widths of the hidden layers.
        out_features: size of each output.
        activation: f, by name, as a module or as a function, or a list with one per hidden layer.
        dropout: probability of dropping a hidden unit.
        norm: ``"batch"`` or ``"layer"`` normalization before each activation, or None.
        bias: whether the layers add learned b.
        output_activation: applied to the last layer, by default nothing.

    >>> from chainrule import models, ones
    >>> models.MLP(4, [8], 3)(ones(5, 4)).shape
    chainrule.Size([5, 3])
    """

    def __init__(
        self,
        in_features: int,
        hidden: Sequence[int],
        out_features: int,
        activation: Activation | Sequence[Activation] = "relu",
        *,
        dropout: float = 0.0,
        norm: str | None = None,
        bias: bool = True,
        output_activation: Activation | None = None,
    ):
        norms: dict[str, Any] = {"batch": nn.BatchNorm1d, "layer": nn.LayerNorm}
        if norm is not None and norm not in norms:
            raise ValueError(f"MLP: norm must be 'batch', 'layer' or None, got {norm!r}")
        several = isinstance(activation, (list, tuple))
        each: Sequence[Any] = activation if several else [activation] * len(hidden)  # type: ignore[assignment]
        if len(each) != len(hidden):
            raise ValueError(
                f"MLP: expected one activation for each of {len(hidden)} hidden layers, got "
                f"{len(each)}"
            )
        layers: list[nn.Module] = []
        width = in_features
        for units, f in zip(hidden, each, strict=True):
            layers.append(nn.Linear(width, units, bias))
            if norm is not None:
                layers.append(norms[norm](units))
            layers.append(activation_module(f))
            if dropout:
                layers.append(nn.Dropout(dropout))
            width = units
        layers.append(nn.Linear(width, out_features, bias))
        if output_activation is not None:
            layers.append(activation_module(output_activation))
        super().__init__(*layers)


class SelfNormalizingMLP(nn.Sequential):
    """Dense layers that keep mean 0 and variance 1: a[l] = selu(W[l] a[l-1] + b[l]).

    The weights are drawn from N(0, 1 / fan_in), the biases are 0; the last layer has no selu.

    Shape: (*, in_features) -> (*, out_features).

    Args:
        in_features: size of each input.
        hidden: the widths of the hidden layers.
        out_features: size of each output.
        dropout: rate of alpha dropout behind the hidden layers.

    >>> from chainrule import models, ones
    >>> models.SelfNormalizingMLP(4, [8, 8], 3, dropout=0.05)(ones(5, 4)).shape
    chainrule.Size([5, 3])
    """

    def __init__(
        self, in_features: int, hidden: Sequence[int], out_features: int, *, dropout: float = 0.0
    ):
        layers: list[nn.Module] = []
        width = in_features
        for units in hidden:
            layers += [nn.Linear(width, units), nn.SELU()]
            if dropout:
                layers.append(nn.AlphaDropout(dropout))
            width = units
        layers.append(nn.Linear(width, out_features))
        super().__init__(*layers)
        self.apply(_lecun_start)


def _lecun_start(module: nn.Module) -> None:
    if isinstance(module, nn.Linear):
        nn.init.lecun_normal_(module.weight)
        nn.init.zeros_(module.get_parameter("bias"))


def xor_network() -> nn.Sequential:
    """The hand-set ReLU network for XOR: w max(0, W x + b), W = 1, b = (0, -1), w = (1, -2).

    >>> from chainrule import models, tensor
    >>> models.xor_network()(tensor([[0.0, 0], [0, 1], [1, 0], [1, 1]])).flatten().tolist()
    [0.0, 1.0, 1.0, 0.0]
    """
    network = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1, bias=False))
    state: dict[str, list[Any]] = {
        "0.weight": [[1.0, 1], [1, 1]],
        "0.bias": [0.0, -1],
        "2.weight": [[1.0, -2]],
    }
    network.load_state_dict({name: tensor(values) for name, values in state.items()})
    return network


def xor_from_ands() -> nn.Sequential:
    """XOR from two AND neurons: h1 = x1 and not x2, h2 = not x1 and x2, y = h1 or h2.

    All units are steps. No line divides the inputs; one divides the points (h1, h2).

    >>> from chainrule import models, tensor
    >>> network = models.xor_from_ands()
    >>> x = tensor([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    >>> network[:2](x).tolist(), network(x).flatten().tolist()
    ([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 0.0]], [0.0, 1.0, 1.0, 0.0])
    """
    network = nn.Sequential(nn.Linear(2, 2), nn.BinaryStep(), nn.Linear(2, 1), nn.BinaryStep())
    state: dict[str, list[Any]] = {
        "0.weight": [[1.0, -1], [-1, 1]],
        "0.bias": [-0.5, -0.5],
        "2.weight": [[1.0, 1]],
        "2.bias": [-0.5],
    }
    network.load_state_dict({name: tensor(values) for name, values in state.items()})
    return network
