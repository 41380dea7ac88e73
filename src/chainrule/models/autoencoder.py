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
    """An encoder to a few features and a decoder back: y = decoder(encoder(x)), to be x again.

    Shape: (N, in_features), the same out.

    Args:
        in_features: size of each input.
        hidden: the widths between input and code, mirrored in the decoder.
        code: how many features the middle has.
        activation: of the hidden layers, by name, as a module or as a function.
        output_activation: applied to the reconstruction, by default nothing.

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
    """An autoencoder that sees noise while it is trained: y = decoder(encoder(x + noise * n)).

    n is standard normal; the loss compares y with x.

    Shape: (N, in_features), the same out.

    Args:
        in_features, hidden, code, activation, output_activation: those of :class:`Autoencoder`.
        noise: the standard deviation of the noise.

    >>> from chainrule import models, ones
    >>> models.DenoisingAutoencoder(8, [6], 2, noise=0.2)(ones(5, 8)).shape
    chainrule.Size([5, 8])
    """

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
    """An autoencoder of images: y = decoder(encoder(x)).

    The encoder is made of convolutions of 3 x 3 with stride 2, the decoder of their transposes.

    Shape: (N, in_channels, H, W), the same out, H and W divisible by 2 ** len(channels).

    Args:
        in_channels: channels of the images.
        channels: of each layer down, mirrored on the way up.
        activation: between the layers, by name, as a module or as a function.

    >>> from chainrule import models, ones
    >>> model = models.ConvAutoencoder(1, [4, 8])
    >>> model.encode(ones(2, 1, 8, 8)).shape, model(ones(2, 1, 8, 8)).shape
    (chainrule.Size([2, 8, 2, 2]), chainrule.Size([2, 1, 8, 8]))
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
