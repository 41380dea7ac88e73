"""What RNN, LSTM and GRU have in common: parameters, states, packed sequences, directions."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from numbers import Number
from typing import Any, TypeVar

from chainrule.nn.init.tensors import uniform_
from chainrule.nn.module.base import Module
from chainrule.nn.parameter import Parameter
from chainrule.nn.recurrent.functions import check_mask, run_stack, without_padding
from chainrule.nn.utils.rnn import PackedSequence, mask_of_batch_sizes, pad_data
from chainrule.ops.creation.like import new_zeros
from chainrule.ops.creation.patterns import empty
from chainrule.ops.index.reading import getitem, index_select
from chainrule.ops.shape.views import squeeze, unsqueeze
from chainrule.tensor import Tensor
from chainrule.typing import Device, DType, Factory

__all__ = ["Input", "RNNBase"]

# Packed in, packed out.
Input = TypeVar("Input", Tensor, PackedSequence)

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


class RNNBase(Module):
    """What RNN, LSTM and GRU have in common: parameters for each layer and direction.

    Args:
        mode: "RNN_TANH", "RNN_RELU", "RNN" (any function), "GRU" or "LSTM".
        input_size, hidden_size: features of the input and of the state.
        num_layers: how many layers stand on each other.
        bias: whether to learn biases.
        batch_first: whether the batch comes before time.
        dropout: the probability with which outputs between layers are dropped in training.
        bidirectional: whether a second set of weights runs from the end to the start.
        proj_size: features of the state after a projection, 0 for none.

    >>> from chainrule import nn
    >>> isinstance(nn.GRU(3, 4), nn.RNNBase), len(nn.GRU(3, 4).all_weights[0])
    (True, 4)
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Device | None = None,
        dtype: DType | None = None,
    ):
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = dropout
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._check_settings()
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[: 2 if bidirectional else 1]:
                self._add_weights(layer, f"_l{layer}{suffix}", {"device": device, "dtype": dtype})
        self.reset_parameters()

    @property
    def kind(self) -> str:
        """RNN, GRU or LSTM."""
        return self.mode.partition("_")[0]

    def _check_settings(self) -> None:
        name = type(self).__name__
        p = self.dropout
        if not isinstance(p, Number) or isinstance(p, bool) or not 0 <= p <= 1:
            raise ValueError(
                f"{name}: dropout should be a number in range [0, 1] representing the probability "
                f"of an element being zeroed, got {p!r}"
            )
        if p > 0 and self.num_layers == 1:
            warnings.warn(
                f"{name}: dropout is applied after all but the last layer, so dropout={p} expects "
                "num_layers greater than 1, but got num_layers=1",
                stacklevel=4,
            )
        for setting, kind in (
            ("bias", bool),
            ("batch_first", bool),
            ("input_size", int),
            ("hidden_size", int),
        ):
            value = getattr(self, setting)
            if not isinstance(value, kind):
                raise TypeError(
                    f"{name}: {setting} should be of type {kind.__name__}, got: "
                    f"{type(value).__name__}"
                )
        for setting in ("input_size", "hidden_size", "num_layers"):
            if getattr(self, setting) <= 0:
                raise ValueError(
                    f"{name}: {setting} must be greater than zero, got {getattr(self, setting)}"
                )
        if not 0 <= self.proj_size < self.hidden_size:
            raise ValueError(
                f"{name}: proj_size has to be smaller than hidden_size ({self.hidden_size}) and a "
                f"positive integer, or zero to disable projections, got {self.proj_size}"
            )

    @property
    def _output_size(self) -> int:
        return self.proj_size or self.hidden_size

    def _add_weights(self, layer: int, suffix: str, factory: Factory) -> None:
        """Adds the parameters of one layer in one direction."""
        directions = 2 if self.bidirectional else 1
        gates = GATES[self.kind] * self.hidden_size
        size_in = directions * self._output_size if layer else self.input_size
        shapes: dict[str, tuple[int, ...]] = {
            "weight_ih": (gates, size_in),
            "weight_hh": (gates, self._output_size),
        }
        if self.bias:
            shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        for name, shape in shapes.items():
            setattr(self, name + suffix, Parameter(empty(shape, **factory)))
        self._all_weights.append([name + suffix for name in shapes])

    def reset_parameters(self) -> None:
        """Draws all weights from U(-k, k), k = 1 / sqrt(hidden_size), as PyTorch does."""
        bound = 1 / math.sqrt(self.hidden_size)
        for weights in self.all_weights:
            for w in weights:
                uniform_(w, -bound, bound)

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Does nothing: the parameters need not lie together in memory here."""

    # --- forward ----------------------------------------------------------------------------------

    def _forward(
        self, input: Input, states: Sequence[Tensor] | None, mask: Tensor | None
    ) -> tuple[Any, list[Tensor]]:
        """Output and last states, for a packed, a padded or a single sequence."""
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, states)
        if input.ndim not in (2, 3):
            raise ValueError(
                f"{type(self).__name__}: expected input to be 2D or 3D, got {input.ndim}D instead"
            )
        batch_dim = 0 if self.batch_first else 1
        self._check_rank(input, states)
        batched = input.ndim == 3
        if not batched:
            input = unsqueeze(input, batch_dim)
            states = None if states is None else [unsqueeze(s, 1) for s in states]
            mask = None if mask is None else unsqueeze(mask, batch_dim)
        states = self._checked(input, input.shape[batch_dim], states)
        if mask is not None:
            check_mask(type(self).__name__, mask, input.shape[:2])
            input = without_padding(input, mask)
        output, last = self._run(input, states, mask, self.batch_first)
        if mask is not None:
            output = without_padding(output, mask)
        if batched:
            return output, last
        return squeeze(output, batch_dim), [squeeze(s, 1) for s in last]

    def _forward_packed(
        self, input: PackedSequence, states: Sequence[Tensor] | None
    ) -> tuple[PackedSequence, list[Tensor]]:
        data, sizes, order, back = input
        mask = mask_of_batch_sizes(sizes).to(data.device)
        if data.ndim != 2:
            raise RuntimeError(
                f"{type(self).__name__}: input must have 2 dimensions, got {data.ndim}"
            )
        if states is not None and order is not None:
            states = [index_select(s, 1, order) for s in states]
        states = self._checked(data, mask.shape[1], states)
        output, last = self._run(pad_data(data, mask), states, mask, False)
        if back is not None:
            last = [index_select(s, 1, back) for s in last]
        return PackedSequence(getitem(output, mask), sizes, order, back), last

    def _run(
        self, input: Tensor, states: Sequence[Tensor], mask: Tensor | None, batch_first: bool
    ) -> tuple[Tensor, list[Tensor]]:
        params = [getattr(self, name) for names in self._all_weights for name in names]
        return run_stack(
            self.kind,
            getattr(self, "nonlinearity", ""),
            input,
            states,
            params,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
            batch_first,
            mask,
        )

    def _check_rank(self, input: Tensor, states: Sequence[Tensor] | None) -> None:
        """The states have the rank of the input: two without a batch, three with one."""
        for s in states or ():
            if s.ndim != input.ndim:
                how = "batched" if input.ndim == 3 else "unbatched"
                raise RuntimeError(
                    f"{type(self).__name__}: for {how} {input.ndim}-D input, hx should also be "
                    f"{input.ndim}-D but got a {s.ndim}-D tensor"
                )

    def _checked(
        self, input: Tensor, batch: int, states: Sequence[Tensor] | None
    ) -> Sequence[Tensor]:
        """The first states, zeros if none are given, after all checks."""
        name, weight = type(self).__name__, getattr(self, self._all_weights[0][0])
        if input.dtype != weight.dtype:
            raise ValueError(
                f"{name}: input dtype ({input.dtype}) does not match weight dtype "
                f"({weight.dtype}). Convert input: input.to({weight.dtype}), or convert model: "
                f"model.to({input.dtype})"
            )
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"{name}: input.size(-1) must be equal to input_size. Expected {self.input_size}, "
                f"got {input.shape[-1]}"
            )
        if 0 in input.shape[:-1]:
            raise RuntimeError(
                f"{name}: expected at least one sequence of at least one step, got an input of "
                f"shape {tuple(input.shape)}"
            )
        count = self.num_layers * (2 if self.bidirectional else 1)
        sizes = (self._output_size, self.hidden_size)[: 2 if self.kind == "LSTM" else 1]
        shapes = [(count, batch, size) for size in sizes]
        if states is None:
            return [new_zeros(input, shape) for shape in shapes]
        for i, (s, shape) in enumerate(zip(states, shapes, strict=True)):
            if tuple(s.shape) != shape:
                which = f"hidden[{i}]" if len(shapes) > 1 else "hidden"
                raise RuntimeError(f"{name}: expected {which} size {shape}, got {tuple(s.shape)}")
        return states

    def extra_repr(self) -> str:
        shown = [f"{self.input_size}, {self.hidden_size}"]
        for setting, default in (
            ("proj_size", 0),
            ("num_layers", 1),
            ("bias", True),
            ("batch_first", False),
            ("dropout", 0.0),
            ("bidirectional", False),
        ):
            value = getattr(self, setting)
            if value != default:
                shown.append(f"{setting}={float(value) if setting == 'dropout' else value}")
        return ", ".join(shown)
