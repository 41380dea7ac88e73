"""Networks that reproduce their input through a narrow middle."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from chainrule import nn
from chainrule.models.mlp import MLP, Activation, activation_module
from chainrule.ops.creation.sampling import randn_like
from chainrule.tensor import Tensor

__all__ = ["Autoencoder", "ConvAutoencoder", "DenoisingAutoencoder"]


class Autoencoder(nn.Module):
    """An encoder to ``code`` features and a decoder back, minimizing ||x - decoder(encoder(x))||^2.

    ``hidden`` are the widths between input and code, mirrored in the decoder.

    >>> from chainrule import models, ones
    >>> model = models.Autoencoder(784, [256], 50)
    >>> model.encode(ones(2, 784)).shape, model(ones(2, 784)).shape
    (chainrule.Size([2, 50]), chainrule.Size([2, 784]))
    """

    def __init__(
        self,
        in_features: int,
        hidden: Sequence[int],
        code: int,
        activation: Activation = "relu",
        output_activation: Activation | None = None,
    ):
        super().__init__()
        widths = list(hidden)
        self.encoder: nn.Module = MLP(in_features, widths, code, activation)
        self.decoder: nn.Module = MLP(
            code, widths[::-1], in_features, activation, output_activation=output_activation
        )

    def encode(self, input: Tensor) -> Tensor:
        """The code of an input."""
        return self.encoder(input)

    def decode(self, code: Tensor) -> Tensor:
        """The reconstruction from a code."""
        return self.decoder(code)

    def forward(self, input: Tensor) -> Tensor:
        return self.decoder(self.encoder(input))


class DenoisingAutoencoder(Autoencoder):
    """An autoencoder that sees x + noise while it is trained and has to reproduce x."""

    def __init__(
        self,
        in_features: int,
        hidden: Sequence[int],
        code: int,
        activation: Activation = "relu",
        output_activation: Activation | None = None,
        *,
        noise: float = 0.1,
    ):
        super().__init__(in_features, hidden, code, activation, output_activation)
        if noise < 0:
            raise ValueError(f"DenoisingAutoencoder: noise must be at least 0, got {noise}")
        self.noise = noise

    def forward(self, input: Tensor) -> Tensor:
        if self.training and self.noise:
            input = input + self.noise * randn_like(input)
        return super().forward(input)


class ConvAutoencoder(Autoencoder):
    """Strided convolutions down, transposed convolutions up.

    Shape: (N, in_channels, H, W) -> the same, H and W divisible by 2 ** len(channels).
    """

    def __init__(
        self,
        in_channels: int = 1,
        channels: Sequence[int] = (16, 32),
        activation: Activation = "relu",
    ):
        nn.Module.__init__(self)
        sizes = [in_channels, *channels]
        down: list[nn.Module] = []
        for a, b in pairwise(sizes):
            down += [nn.Conv2d(a, b, 3, stride=2, padding=1), activation_module(activation)]
        up: list[nn.Module] = []
        for a, b in pairwise(sizes[::-1]):
            up += [
                nn.ConvTranspose2d(a, b, 3, stride=2, padding=1, output_padding=1),
                activation_module(activation),
            ]
        self.encoder = nn.Sequential(*down)
        self.decoder = nn.Sequential(*up[:-1])
