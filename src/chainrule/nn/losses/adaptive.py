"""A softmax over many classes that spends little on rare ones (Grave et al., 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from chainrule.nn.layers.containers import ModuleList, Sequential
from chainrule.nn.layers.linear import Linear
from chainrule.nn.module.base import Module
from chainrule.ops.creation.patterns import zeros_like
from chainrule.ops.elementwise.logic import where
from chainrule.ops.elementwise.options import clamp
from chainrule.ops.index.reading import gather
from chainrule.ops.layers.softmax import log_softmax
from chainrule.ops.reduce.order import argmax
from chainrule.ops.shape.stacking import cat
from chainrule.ops.shape.views import squeeze, unsqueeze
from chainrule.tensor import Tensor
from chainrule.typing import Device, DType, Factory

__all__ = ["AdaptiveLogSoftmaxWithLoss", "AdaptiveOutput"]


class AdaptiveOutput(NamedTuple):
    """The log-probability of each target, and the loss: minus their mean."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """log p(t | x), where classes are ordered by frequency and cut into a head and clusters.

    log p(t | x) = head(x)[t] for a frequent class, and head(x)[cluster] + tail(x)[t] for one in a
    cluster; head and tail are log-softmaxes of linear maps, a tail's through
    D // div_value^i features.

    Shape: input (N, D), target (N) -> output (N) and a loss; or (D), a number -> numbers.

    Args:
        in_features: D.
        n_classes: the number of classes.
        cutoffs: where clusters begin, growing; the classes before the first are in the head.
        div_value: by how much the features of one tail are fewer than those of the one before.
        head_bias: whether the head has a bias.

    >>> import chainrule
    >>> from chainrule import nn
    >>> loss = nn.AdaptiveLogSoftmaxWithLoss(8, 20, cutoffs=[4, 10], div_value=2.0)
    >>> loss.log_prob(chainrule.ones(3, 8)).exp().sum(1).detach()
    tensor([1.0000, 1.0000, 1.0000])
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Device | None = None,
        dtype: DType | None = None,
    ):
        super().__init__()
        cuts = list(cutoffs)
        if not cuts:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        growing = cuts == sorted(set(cuts)) and all(int(c) == c for c in cuts)
        if not growing or cuts[0] <= 0 or cuts[-1] > n_classes - 1:
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing "
                f"order, where each value is between 1 and n_classes-1, got {cuts}"
            )
        factory: Factory = {"device": device, "dtype": dtype}
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cuts, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = cuts[0]
        self.n_clusters = len(cuts)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, **factory)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            hidden = int(in_features // div_value ** (i + 1))
            classes = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(
                    Linear(in_features, hidden, bias=False, **factory),
                    Linear(hidden, classes, bias=False, **factory),
                )
            )

    def reset_parameters(self) -> None:
        """Draws all weights anew."""
        self.head.reset_parameters()
        for part in self.tail.modules():
            if isinstance(part, Linear):
                part.reset_parameters()

    def forward(self, input: Tensor, target: Tensor) -> AdaptiveOutput:
        if target.ndim == 0:
            found = self.forward(unsqueeze(input, 0), unsqueeze(target, 0))
            return AdaptiveOutput(squeeze(found.output, 0), found.loss)
        self._check(input, target)
        low = self.shortlist_size
        head = log_softmax(self.head(input), 1)
        place, output = where(target < low, target, 0), zeros_like(head[:, 0])
        for i in range(self.n_clusters):
            start, end = self.cutoffs[i], self.cutoffs[i + 1]
            inside = (target >= start) & (target < end)
            if bool(inside.any()):
                tail = log_softmax(self.tail[i](input), 1)
                at = clamp(target - start, 0, end - start - 1)
                own = squeeze(gather(tail, 1, unsqueeze(at, 1)), 1)
                output = output + where(inside, own, 0.0)
            place = where(inside, low + i, place)
        output = output + squeeze(gather(head, 1, unsqueeze(place, 1)), 1)
        return AdaptiveOutput(output, -output.mean())

    def _check(self, input: Tensor, target: Tensor) -> None:
        if target.ndim != 1 or input.ndim != 2 or input.shape[0] != target.shape[0]:
            raise RuntimeError(
                "AdaptiveLogSoftmaxWithLoss: Input and target should have the same size in the "
                f"batch dimension, got shapes {tuple(input.shape)} and {tuple(target.shape)}"
            )
        if target.numel() and (int(target.min()) < 0 or int(target.max()) >= self.n_classes):
            raise RuntimeError(
                f"AdaptiveLogSoftmaxWithLoss: Target values should be in [0, {self.n_classes - 1}],"
                f" but values in range [{int(target.min())}, {int(target.max())}] were found"
            )

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes, (N, D) -> (N, n_classes)."""
        head, low = log_softmax(self.head(input), 1), self.shortlist_size
        parts = [head[:, :low]]
        for i in range(self.n_clusters):
            tail = log_softmax(self.tail[i](input), 1)
            parts.append(tail + head[:, low + i : low + i + 1])
        return cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """The likeliest class of each row, (N, D) -> (N)."""
        return argmax(self.log_prob(input), 1)
