"""Records of the losses as modules."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from layers.record import Layer
from samples.nn_loss import (
    Args,
    alignments,
    distributions,
    several,
    with_classes,
    with_labels,
    with_signs,
    with_variance,
)
from samples.softmax import classes, soft, two_classes
from scipy import special

__all__ = ["LAYERS"]


def loss(name: str, inputs: Args, note: str = "", torch: bool = True, **kwargs: Any) -> Layer:
    """A loss by its settings; lists among them are tensors."""

    def make(nn: Any) -> Any:
        tensor = importlib.import_module(nn.__name__.partition(".")[0]).tensor
        given = {k: tensor(v) if isinstance(v, list) else v for k, v in kwargs.items()}
        return getattr(nn, name)(**given)

    return Layer(name, make, inputs, torch=torch, note=note)


def aligned(module: Any, x: Any, *rest: Any) -> Any:
    """PyTorch's gradient is right for normalized log-probabilities alone."""
    return module(x.log_softmax(-1), *rest)


def probabilities(*shape: int) -> Args:
    return two_classes(*shape, low=0.1, high=0.8)


def log_probabilities(*shape: int) -> Args:
    def args(r: np.random.Generator) -> tuple[Any, ...]:
        x, target = classes(*shape, ignored=-100)(r)
        return special.log_softmax(x, axis=1), target

    return args


def ctc(note: str, inputs: Args, **kwargs: Any) -> Layer:
    return Layer("CTCLoss", lambda nn: nn.CTCLoss(**kwargs), inputs, call=aligned, note=note)


def triplet(nn: Any) -> Any:
    return nn.TripletMarginWithDistanceLoss(distance_function=nn.PairwiseDistance(p=3.0), swap=True)


LAYERS: list[Layer] = [
    loss("L1Loss", several(2, 4, 3)),
    loss("MSELoss", several(2, 4, 3)),
    loss("MSELoss", several(2, 4, 3), "sum", reduction="sum"),
    loss("HalfSquaredLoss", several(2, 4, 3), torch=False, reduction="none"),
    loss("SmoothL1Loss", several(2, 4, 3), beta=0.5),
    loss("HuberLoss", several(2, 4, 3), delta=0.5),
    loss("GaussianNLLLoss", with_variance((4, 3), (4, 3)), full=True),
    loss("GaussianNLLLoss", with_variance((4, 3), (4, 1)), "shared"),
    loss(
        "PoissonNLLLoss",
        lambda r: (r.normal(size=(4, 3)), r.uniform(0.2, 5, size=(4, 3))),
        full=True,
        reduction="none",
    ),
    loss(
        "PinballLoss",
        lambda r: (r.normal(size=(4, 3)), r.normal(size=4)),
        torch=False,
        quantiles=(0.1, 0.5, 0.9),
    ),
    loss(
        "OrdinalLoss",
        lambda r: (r.normal(size=(4, 3)), r.integers(0, 4, size=4)),
        torch=False,
        reduction="none",
    ),
    loss("KLDivLoss", distributions(4, 3), reduction="batchmean"),
    loss(
        "KLDivLoss",
        distributions(4, 3, log_target=True),
        "log_target",
        reduction="sum",
        log_target=True,
    ),
    loss("BCELoss", probabilities(4, 3)),
    loss("BCELoss", probabilities(4, 3), "weight", weight=[0.5, 1.0, 2.0]),
    loss("BCEWithLogitsLoss", two_classes(4, 3)),
    loss(
        "BCEWithLogitsLoss",
        two_classes(4, 3),
        "weights",
        weight=[0.5, 1.0, 2.0],
        pos_weight=[2.0, 0.3, 1.0],
    ),
    loss("SoftMarginLoss", with_signs(1, 4, 3)),
    loss("CrossEntropyLoss", classes(5, 3)),
    loss(
        "CrossEntropyLoss",
        classes(2, 3, 4, ignored=1),
        "all settings",
        weight=[0.5, 1.0, 2.0],
        ignore_index=1,
        label_smoothing=0.2,
        reduction="sum",
    ),
    loss("CrossEntropyLoss", soft(4, 3), "soft"),
    loss("NLLLoss", log_probabilities(5, 3)),
    loss("NLLLoss", log_probabilities(2, 3, 4), "weight", weight=[0.5, 1.0, 2.0], reduction="none"),
    Layer(
        "ZeroOneLoss",
        lambda nn: nn.ZeroOneLoss(),
        with_classes(5, 3),
        torch=False,
        differentiable=False,
    ),
    loss("PerceptronLoss", with_signs(1, 4, 3), torch=False),
    loss("HingeEmbeddingLoss", with_signs(1, 4, 3), margin=0.7),
    loss("MarginRankingLoss", with_signs(2, 4), margin=0.3),
    loss("MultiMarginLoss", with_classes(5, 3)),
    loss(
        "MultiMarginLoss",
        with_classes(5, 3),
        "all settings",
        p=2,
        margin=0.6,
        weight=[0.5, 1.0, 2.0],
        reduction="none",
    ),
    loss("MultiLabelMarginLoss", with_labels(5, 4)),
    loss("MultiLabelSoftMarginLoss", two_classes(4, 3)),
    loss(
        "MultiLabelSoftMarginLoss",
        two_classes(4, 3),
        "weight",
        weight=[0.5, 1.0, 2.0],
        reduction="none",
    ),
    loss("CosineSimilarity", several(2, 4, 3)),
    loss("PairwiseDistance", several(2, 4, 3), p=3.0, keepdim=True),
    loss("CosineEmbeddingLoss", with_signs(2, 4, 3, labels=(4,)), margin=0.1),
    loss("TripletMarginLoss", several(3, 5, 3), margin=0.8, p=1.0, swap=True),
    loss("TripletMarginWithDistanceLoss", several(3, 5, 3)),
    Layer("TripletMarginWithDistanceLoss", triplet, several(3, 5, 3), note="distance"),
    *[
        Layer(
            "AdaptiveLogSoftmaxWithLoss",
            lambda nn, bias=bias: nn.AdaptiveLogSoftmaxWithLoss(
                6, 9, [2, 5], div_value=2.0, head_bias=bias
            ),
            lambda r, labels=labels: (r.normal(size=(len(labels), 6)), np.array(labels)),
            note=note,
        )
        for note, bias, labels in (
            ("", False, [0, 8, 3, 1, 5]),
            ("bias, no rare class", True, [1, 0, 3]),
        )
    ],
    ctc("", alignments(5, (5, 4), (2, 1))),
    ctc("joined, sum", alignments(5, (5, 4), (2, 2), joined=True), reduction="sum"),
    ctc("impossible", alignments(2, (2, 2), (3, 1)), reduction="none", zero_infinity=True),
    ctc("blank", lambda r: (r.normal(size=(4, 3)), np.array([1, 0]), (4,), (2,)), blank=2),
]
