"""Networks over time beyond RNN, LSTM and GRU: peepholes, deep transitions, two directions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

from chainrule.nn.init.tensors import uniform_
from chainrule.nn.layers.containers import ModuleList
from chainrule.nn.layers.linear import Linear
from chainrule.nn.module.base import Module
from chainrule.nn.parameter import Parameter
from chainrule.nn.recurrent.functions import Nonlinearity, check_mask, without_padding
from chainrule.ops.creation.like import new_zeros
from chainrule.ops.creation.patterns import empty
from chainrule.ops.elementwise.logic import where
from chainrule.ops.index.reading import getitem
from chainrule.ops.linalg.matmul import linear
from chainrule.ops.shape.rearrange import flip
from chainrule.ops.recurrent.rnn import rnn_sequence
from chainrule.ops.recurrent.deep import deep_rnn_sequence
from chainrule.ops.recurrent.peephole import peephole_sequence
from chainrule.ops.recurrent.steps import run_steps
from chainrule.ops.recurrent.support import ACTIVATIONS
from chainrule.ops.reduce.reductions import sum
from chainrule.ops.shape.views import flatten, movedim, reshape, unsqueeze
from chainrule.ops.shape.stacking import cat
from chainrule.tensor import Tensor
from chainrule.typing import DType, Device, Factory, MaybeNone

__all__ = [
    "Bidirectional",
    "DeepRNN",
    "PeepholeLSTM",
    "TimeDistributed",
    "deep_rnn_sequence",
    "peephole_lstm",
    "peephole_sequence",
    "time_summed",
]


def activation_of(name: str, nonlinearity: Nonlinearity | None) -> Callable[[Tensor], Tensor]:
    """The function that a layer's argument names; None is the identity."""
    if nonlinearity is None:
        return lambda x: x
    if callable(nonlinearity):
        return nonlinearity
    if nonlinearity not in ACTIVATIONS:
        raise ValueError(
            f"{name}: unknown nonlinearity {nonlinearity!r}; select from {sorted(ACTIVATIONS)}, or "
            "pass a function"
        )
    return ACTIVATIONS[nonlinearity]


def _sequence_input(
    name: str, input: Tensor, mask: Tensor | None, size: int, batch_first: bool
) -> tuple[Tensor, Tensor | None]:
    """The input as (L, N, D) and the mask as (L, N), after checks."""
    if input.ndim != 3 or input.shape[-1] != size or 0 in input.shape:
        layout = "(N, L, D)" if batch_first else "(L, N, D)"
        raise RuntimeError(
            f"{name}: expected an input of shape {layout} with D = {size} and at least one step, "
            f"got {tuple(input.shape)}"
        )
    if mask is not None:
        check_mask(name, mask, input.shape[:2])
        input = without_padding(input, mask)
        mask = movedim(mask, 0, 1) if batch_first else mask
    return (movedim(input, 0, 1) if batch_first else input), mask


# --- peepholes ------------------------------------------------------------------------------------


def peephole_lstm(
    input: Tensor,
    hx: Sequence[Tensor],
    weight_ih: Tensor,
    weight_hh: Tensor,
    peepholes: Sequence[Tensor],
    bias: Tensor | None = None,
    mask: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The states h and c of all steps of an LSTM whose gates look at the cell.

    c_t = f * c_{t-1} + i * g; h_t = o * tanh(c_t), with the gates of
    :class:`chainrule.nn.PeepholeLSTM`; ``peepholes`` are weight_ci, weight_cf, weight_co, all
    vectors (hidden_size) or all matrices (hidden_size, hidden_size).

    Shape: input (L, N, D), hx = (h_0, c_0), each (N, hidden_size); h and c (L, N, hidden_size).
    """
    h0, c0 = hx
    gates = linear(input, weight_ih, bias)
    return peephole_sequence(gates, h0, c0, weight_hh, peepholes, mask)


class PeepholeLSTM(Module):
    """An LSTM whose gates also see the cell: i and f the cell before, o the new one.

    i = sigmoid(W_xi x_t + W_hi h_{t-1} + weight_ci c_{t-1} + b_i), f likewise with weight_cf;
    c_t = f * c_{t-1} + i * tanh(W_xg x_t + W_hg h_{t-1} + b_g);
    o = sigmoid(W_xo x_t + W_ho h_{t-1} + weight_co c_t + b_o); h_t = o * tanh(c_t)

    With the input gate closed (i = 0) and the forget gate open (f = 1) the cell keeps c for ever.

    Shape: input (L, N, D), or (N, L, D) if ``batch_first``; output (L, N, hidden_size); hx and the
    second result are pairs (h, c), each (N, hidden_size).

    Args:
        input_size: D, the features of the input.
        hidden_size: features of the state.
        full: whether the peepholes are matrices instead of vectors.
        bias: whether to learn a bias.
        batch_first: whether the batch comes before time.

    >>> from chainrule import nn, ones
    >>> output, (h, c) = nn.PeepholeLSTM(3, 4)(ones(5, 2, 3))
    >>> output.shape, c.shape
    (chainrule.Size([5, 2, 4]), chainrule.Size([2, 4]))
    """

    weight_ih: Parameter
    weight_hh: Parameter
    weight_ci: Parameter
    weight_cf: Parameter
    weight_co: Parameter
    bias: Parameter | MaybeNone

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        full: bool = False,
        bias: bool = True,
        batch_first: bool = False,
        device: Device | None = None,
        dtype: DType | None = None,
    ):
        super().__init__()
        for name, size in (("input_size", input_size), ("hidden_size", hidden_size)):
            if size <= 0:
                raise ValueError(f"PeepholeLSTM: {name} must be greater than zero, got {size}")
        self.input_size, self.hidden_size = input_size, hidden_size
        self.full, self.batch_first = full, batch_first
        factory: Factory = {"device": device, "dtype": dtype}
        self.weight_ih = Parameter(empty(4 * hidden_size, input_size, **factory))
        self.weight_hh = Parameter(empty(4 * hidden_size, hidden_size, **factory))
        shape = (hidden_size, hidden_size) if full else (hidden_size,)
        for name in ("weight_ci", "weight_cf", "weight_co"):
            setattr(self, name, Parameter(empty(shape, **factory)))
        self.register_parameter(
            "bias", Parameter(empty(4 * hidden_size, **factory)) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws all weights from U(-k, k), k = 1 / sqrt(hidden_size), as LSTM does."""
        bound = 1 / math.sqrt(self.hidden_size)
        for p in self.parameters():
            uniform_(p, -bound, bound)

    def forward(
        self, input: Tensor, hx: Sequence[Tensor] | None = None, *, mask: Tensor | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        x, mask = _sequence_input("PeepholeLSTM", input, mask, self.input_size, self.batch_first)
        if hx is None:
            hx = [new_zeros(x, (x.shape[1], self.hidden_size))] * 2
        peepholes = (self.weight_ci, self.weight_cf, self.weight_co)
        h, c = peephole_lstm(x, hx, self.weight_ih, self.weight_hh, peepholes, self.bias, mask)
        last = (getitem(h, -1), getitem(c, -1))
        if mask is not None:
            h = without_padding(h, mask)
        return (movedim(h, 0, 1) if self.batch_first else h), last

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}, full={self.full}"


# --- deep transitions -----------------------------------------------------------------------------


def _layers(sizes: Sequence[int], factory: Factory) -> ModuleList:
    """Linear layers from each of these sizes to the next."""
    return ModuleList([Linear(a, b, **factory) for a, b in itertools.pairwise(sizes)])


class DeepRNN(Module):
    """A recurrent network with an output, and with layers inside each of its three maps.

    u_t = MLP_in(x_t); h_t = MLP_hh(g(W_x u_t + b + W_h h_{t-1}));
    z_t = g_o(W_o MLP_out(h_t) + b_o [+ W_ox x_t] [+ W_oh h_{t-1}])

    Each MLP is left out if its widths are empty: without all three, this is Elman's network.

    The states of all steps are one operation if g has a name. With a function for g, which may have
    parameters or draw random numbers, they are computed step by step, and so they are if
    ``from_hidden`` or a layer of ``hidden_mlp`` is replaced by anything but a Linear layer, or has
    hooks: these then run at every step.

    Shape: input (L, N, D), or (N, L, D) if ``batch_first``; output (L, N, K); hx and the second
    result (N, hidden_size).

    Args:
        input_size: D, the features of the input.
        hidden_size: features of the state.
        output_size: K, the outputs of a step.
        input_layers: widths of MLP_in.
        hidden_layers: widths of the layers between g and h_t; one more leads back to hidden_size.
        output_layers: widths of MLP_out.
        nonlinearity: g, of all hidden layers: "tanh", "relu", "sigmoid" or a function.
        output_nonlinearity: g_o (None: the identity).
        output_from_input: whether to add W_ox x_t to the output.
        output_from_previous: whether to add W_oh h_{t-1} to the output.
        batch_first: whether the batch comes before time.

    >>> from chainrule import nn, ones
    >>> z, h = nn.DeepRNN(3, 4, 2, hidden_layers=[5])(ones(6, 1, 3))
    >>> z.shape, h.shape
    (chainrule.Size([6, 1, 2]), chainrule.Size([1, 4]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        output_size: int,
        input_layers: Sequence[int] = (),
        hidden_layers: Sequence[int] = (),
        output_layers: Sequence[int] = (),
        nonlinearity: Nonlinearity = "tanh",
        output_nonlinearity: Nonlinearity | None = None,
        output_from_input: bool = False,
        output_from_previous: bool = False,
        batch_first: bool = False,
        device: Device | None = None,
        dtype: DType | None = None,
    ):
        super().__init__()
        activation_of("DeepRNN", nonlinearity), activation_of("DeepRNN", output_nonlinearity)
        self.input_size, self.hidden_size, self.output_size = input_size, hidden_size, output_size
        self.nonlinearity, self.output_nonlinearity = nonlinearity, output_nonlinearity
        self.batch_first = batch_first
        factory: Factory = {"device": device, "dtype": dtype}
        wide = [hidden_size, *hidden_layers, *([hidden_size] if hidden_layers else [])]
        self.input_mlp = _layers([input_size, *input_layers], factory)
        self.hidden_mlp = _layers(wide, factory)
        self.output_mlp = _layers([hidden_size, *output_layers], factory)
        self.from_input = Linear([input_size, *input_layers][-1], hidden_size, **factory)
        self.from_hidden = Linear(hidden_size, hidden_size, bias=False, **factory)
        self.output = Linear([hidden_size, *output_layers][-1], output_size, **factory)
        self.output_from_input: Linear | None = None
        self.output_from_previous: Linear | None = None
        if output_from_input:
            self.output_from_input = Linear(input_size, output_size, bias=False, **factory)
        if output_from_previous:
            self.output_from_previous = Linear(hidden_size, output_size, bias=False, **factory)

    def _through(self, layers: ModuleList, x: Tensor) -> Tensor:
        g = activation_of("DeepRNN", self.nonlinearity)
        for layer in layers:
            x = g(layer(x))
        return x

    def hidden_states(self, input: Tensor, h0: Tensor, mask: Tensor | None = None) -> Tensor:
        """h of all steps (L, N, hidden_size) for an input (L, N, D)."""
        a = self.from_input(self._through(self.input_mlp, input))
        g = self.nonlinearity
        if isinstance(g, str) and self._is_plain():
            w = self.from_hidden.weight
            if len(self.hidden_mlp) == 0:
                return rnn_sequence(a, h0, w, mask, nonlinearity=g)
            layers = [(layer.weight, layer.bias) for layer in self.hidden_mlp]
            return deep_rnn_sequence(a, h0, w, layers, mask, nonlinearity=g)
        activation = activation_of("DeepRNN", g)

        def advance(at: Tensor, h: Tensor) -> tuple[Tensor]:
            return (self._through(self.hidden_mlp, activation(at + self.from_hidden(h))),)

        return run_steps(advance, a, (h0,), mask)[0]

    def _is_plain(self) -> bool:
        """Whether the step from state to state is made of Linear layers that only compute."""
        inner = [self.from_hidden, *self.hidden_mlp]
        return (
            all(type(layer) is Linear and not layer.has_hooks for layer in inner)
            and self.from_hidden.bias is None
            and not self.hidden_mlp.has_hooks
        )

    def forward(
        self, input: Tensor, hx: Tensor | None = None, *, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        x, mask = _sequence_input("DeepRNN", input, mask, self.input_size, self.batch_first)
        h0 = new_zeros(x, (x.shape[1], self.hidden_size)) if hx is None else hx
        h = self.hidden_states(x, h0, mask)
        z = self.output(self._through(self.output_mlp, h))
        if self.output_from_input is not None:
            z = z + self.output_from_input(x)
        if self.output_from_previous is not None:
            before = cat([unsqueeze(h0, 0), getitem(h, slice(-1))])
            z = z + self.output_from_previous(before)
        z = activation_of("DeepRNN", self.output_nonlinearity)(z)
        if mask is not None:
            z = without_padding(z, mask)
        return (movedim(z, 0, 1) if self.batch_first else z), getitem(h, -1)


# --- around layers --------------------------------------------------------------------------------


class Bidirectional(Module):
    """Two recurrent layers, one of which reads the sequence from its end, and an output.

    y_t = g_o(W_f hf_t + W_b hb_t + b), where hb_t has seen x_t and all that follows

    Shape: input (L, N, D), or (N, L, D) if the layers are batch_first; output (L, N, K).

    Args:
        forward_layer: a recurrent layer that returns (output, state).
        backward_layer: the one for the other direction.
        output_size: K, the outputs of a step.
        output_nonlinearity: g_o: a name or a function (None: the identity).

    >>> from chainrule import nn, ones
    >>> net = nn.Bidirectional(nn.RNN(3, 4), nn.LSTM(3, 5), output_size=2)
    >>> net(ones(6, 1, 3)).shape
    chainrule.Size([6, 1, 2])
    """

    def __init__(
        self,
        forward_layer: Module,
        backward_layer: Module,
        output_size: int,
        output_nonlinearity: Nonlinearity | None = None,
        device: Device | None = None,
        dtype: DType | None = None,
    ):
        super().__init__()
        if forward_layer.batch_first != backward_layer.batch_first:
            raise ValueError("Bidirectional: both layers must agree in batch_first")
        self.forward_layer, self.backward_layer = forward_layer, backward_layer
        self.output_nonlinearity = output_nonlinearity
        activation_of("Bidirectional", output_nonlinearity)
        factory: Factory = {"device": device, "dtype": dtype}
        size_f, size_b = (
            getattr(layer, "proj_size", 0) or layer.hidden_size
            for layer in (forward_layer, backward_layer)
        )
        self.from_forward = Linear(size_f, output_size, **factory)
        self.from_backward = Linear(size_b, output_size, bias=False, **factory)

    def forward(self, input: Tensor, *, mask: Tensor | None = None) -> Tensor:
        time = 1 if self.forward_layer.batch_first else 0
        turned = None if mask is None else flip(mask, time)
        hf = self.forward_layer(input, mask=mask)[0]
        hb = flip(self.backward_layer(flip(input, time), mask=turned)[0], time)
        g = activation_of("Bidirectional", self.output_nonlinearity)
        return g(self.from_forward(hf) + self.from_backward(hb))


class TimeDistributed(Module):
    """A module applied to every step of a sequence alike: y_t = module(x_t).

    So a convolutional network feeds a recurrent one. All steps go through it as one batch.

    Shape: (L, N, *) -> (L, N, *), where * is what the module takes and what it gives.

    Args:
        module: what is computed at each step.

    >>> from chainrule import nn, ones
    >>> nn.TimeDistributed(nn.Linear(3, 2))(ones(5, 4, 3)).shape
    chainrule.Size([5, 4, 2])
    """

    def __init__(self, module: Module):
        super().__init__()
        self.module = module

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim < 2:
            raise RuntimeError(
                "TimeDistributed: expected an input of at least 2 dimensions, (L, N, *), got "
                f"{tuple(input.shape)}"
            )
        out = self.module(flatten(input, 0, 1))
        return reshape(out, (*input.shape[:2], *out.shape[1:]))


def time_summed(
    loss: Callable[..., Tensor],
    input: Tensor,
    target: Tensor,
    mask: Tensor | None = None,
    batch_first: bool = False,
) -> Tensor:
    """A loss summed over time: (1/N) sum_t sum_i loss(input_i[t], target_i[t]), N samples i.

    ``loss`` is one of the functions with ``reduction``; steps where ``mask`` (L, N), or (N, L) if
    ``batch_first``, is False do not count.

    >>> from chainrule import nn, ones, zeros
    >>> float(nn.functional.time_summed(nn.functional.mse_loss, ones(5, 2, 1), zeros(5, 2, 1)))
    5.0
    """
    if tuple(input.shape[:2]) != tuple(target.shape[:2]):
        raise ValueError(
            f"time_summed: input of shape {tuple(input.shape)} and target of shape "
            f"{tuple(target.shape)} must agree in steps and samples, their first two dimensions"
        )
    losses = loss(flatten(input, 0, 1), flatten(target, 0, 1), reduction="none")
    if mask is not None:
        kept = reshape(mask, (-1, *[1] * (losses.ndim - 1)))
        losses = where(kept, losses, 0.0)
    return sum(losses) / input.shape[0 if batch_first else 1]
