"""Records of dropout and noise: random in training, the identity in evaluation."""

from __future__ import annotations

from layers.norm import normal
from layers.record import Layer

__all__ = ["LAYERS"]

LAYERS: list[Layer] = [
    Layer("Dropout", lambda nn: nn.Dropout(0.3), normal(4, 3), random=True),
    Layer("Dropout", lambda nn: nn.Dropout(0.0), normal(4, 3), note="never"),
    Layer("Dropout", lambda nn: nn.Dropout(1.0), normal(4, 3), note="always"),
    Layer("Dropout1d", lambda nn: nn.Dropout1d(), normal(2, 3, 4), random=True),
    Layer("Dropout2d", lambda nn: nn.Dropout2d(0.2), normal(2, 3, 2, 2), random=True),
    Layer("Dropout3d", lambda nn: nn.Dropout3d(0.2), normal(2, 3, 2, 1, 2), random=True),
    Layer("AlphaDropout", lambda nn: nn.AlphaDropout(0.1), normal(4, 3), random=True),
    Layer("AlphaDropout", lambda nn: nn.AlphaDropout(1.0), normal(4, 3), note="always"),
    Layer(
        "FeatureAlphaDropout", lambda nn: nn.FeatureAlphaDropout(0.1), normal(2, 3, 4), random=True
    ),
    Layer(
        "UnscaledDropout",
        lambda nn: nn.UnscaledDropout(0.2),
        normal(4, 3),
        torch=False,
        random=True,
    ),
    Layer(
        "GaussianNoise", lambda nn: nn.GaussianNoise(0.2), normal(4, 3), torch=False, random=True
    ),
    Layer(
        "WeightNoise",
        lambda nn: nn.WeightNoise(nn.Linear(3, 2), 0.2),
        normal(4, 3),
        torch=False,
        random=True,
    ),
]
