"""Recurrent networks with a read-out."""

from __future__ import annotations

from typing import Any

from chainrule import nn
from chainrule.ops.shape.stacking import cat
from chainrule.tensor import Tensor

__all__ = ["SequenceModel"]

KINDS = {"rnn": "RNN", "lstm": "LSTM", "gru": "GRU"}


class SequenceModel(nn.Module):
    """A recurrent network and a dense layer on its states: y_t = readout(h_t).

    Shape: (N, L, in_features) -> (N, L, out_features), or (N, out_features) with
    ``each_step=False``.

    Args:
        in_features: size of the input at each step.
        hidden: size of the state.
        out_features: size of each output.
        kind: ``"rnn"``, ``"lstm"`` or ``"gru"``.
        num_layers: how many recurrent layers stand on each other.
        bidirectional: whether a second set of weights runs from the end to the start.
        dropout: rate of dropout between the layers.
        each_step: an output for every step, or one for the whole sequence.

    >>> from chainrule import models, ones
    >>> models.SequenceModel(3, 8, 2, kind="lstm")(ones(5, 7, 3)).shape
    chainrule.Size([5, 7, 2])
    """

    def __init__(
        self,
        in_features: int,
        hidden: int,
        out_features: int,
        *,
        kind: str = "lstm",
        num_layers: int = 1,
        bidirectional: bool = False,
        dropout: float = 0.0,
        each_step: bool = True,
    ):
        super().__init__()
        if kind not in KINDS:
            raise ValueError(f"SequenceModel: kind must be one of {sorted(KINDS)}, got {kind!r}")
        layer = getattr(nn, KINDS[kind])
        self.recurrent: Any = layer(
            in_features,
            hidden,
            num_layers,
            batch_first=True,
            bidirectional=bidirectional,
            dropout=dropout,
        )
        self.readout = nn.Linear(hidden * (2 if bidirectional else 1), out_features)
        self.each_step = each_step
        self.hidden, self.bidirectional = hidden, bidirectional

    def forward(self, input: Tensor) -> Tensor:
        states, _ = self.recurrent(input)
        if self.each_step:
            return self.readout(states)
        last = states[:, -1]
        if self.bidirectional:
            # The backward direction has read the whole sequence at its first step.
            last = cat([states[:, -1, : self.hidden], states[:, 0, self.hidden :]], dim=1)
        return self.readout(last)
