"""Starting points of whole models, from data: unit variance, pre-training, biases, symmetry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from chainrule.autograd.engine import grad
from chainrule.autograd.modes import enable_grad, no_grad
from chainrule.nn.layers.containers import Sequential
from chainrule.nn.layers.conv import Convolutional
from chainrule.nn.init.tensors import lecun_normal_, orthogonal_
from chainrule.nn.layers.linear import Linear
from chainrule.nn.module.base import Module
from chainrule.nn.init.variance import recorded_outputs, weighted_layers
from chainrule.ops.creation.patterns import empty, zeros
from chainrule.ops.linalg.matmul import linear
from chainrule.ops.reduce.reductions import mean
from chainrule.tensor import Tensor
from chainrule.typing import Random

__all__ = [
    "bias_to_mean_",
    "by_unit",
    "from_units",
    "pretrain_layerwise",
    "symmetric_units",
    "unit_variance_",
]


def bias_to_mean_(
    bias: Tensor | Module, targets: Tensor, inverse_link: Callable[[Tensor], Tensor] | None = None
) -> Tensor:
    """Sets an output layer's bias to the mean of the targets, so that the start predicts it.

    bias = inverse_link(mean over n of targets[n])

    Args:
        bias: the bias (K,), or the layer that has it.
        targets: (N, K), or (N,) for one output.
        inverse_link: what turns the mean into a sum, ``chainrule.logit`` before a sigmoid.
    """
    if isinstance(bias, Module):
        found = bias._parameters.get("bias")
        if found is None:
            raise ValueError(f"bias_to_mean_: {type(bias).__name__} has no bias")
        bias = found
    with no_grad():
        values = (
            targets.reshape(-1, 1) if targets.ndim == 1 else targets.reshape(-1, targets.shape[-1])
        )
        average = values.to(bias.dtype).mean(0)
        if average.shape != bias.shape:
            raise ValueError(
                f"bias_to_mean_: targets of shape {tuple(targets.shape)} have {average.shape[0]} "
                f"means, the bias has shape {tuple(bias.shape)}"
            )
        return bias.copy_(average if inverse_link is None else inverse_link(average))


# --- unit variance --------------------------------------------------------------------------------


def unit_variance_(
    model: Module,
    batch: Tensor,
    tolerance: float = 0.01,
    max_iterations: int = 10,
    orthogonal: bool = True,
    generator: Random = None,
) -> Module:
    """Scales each layer's weight so that its output on this batch has variance 1.

    weight = weight / sqrt(var(output)), until the variance is 1 up to ``tolerance``.

    Layer after layer in order of execution, starting from orthogonal weights unless told
    otherwise: Mishkin and Matas, "All you need is a good init" (2016).
    """
    with no_grad():
        if orthogonal:
            for layer in weighted_layers(model):
                orthogonal_(layer.weight, generator=generator)
        order = [module for module, _ in recorded_outputs(model, batch)[1]]
        for place, layer in enumerate(order):
            if layer not in order[:place]:
                _scale_to_unit(model, batch, place, layer, tolerance, max_iterations)
    return model


def _scale_to_unit(
    model: Module, batch: Tensor, place: int, layer: Any, tolerance: float, max_iterations: int
) -> None:
    for _ in range(max_iterations):
        output = recorded_outputs(model, batch)[1][place][1]
        variance = output.double().var(correction=0).item()
        if not 0 < variance < float("inf"):
            raise RuntimeError(
                f"unit_variance_: the output of layer {place} ({type(layer).__name__}) has "
                f"variance {variance} on this batch; it cannot be scaled to 1"
            )
        if abs(variance - 1) < tolerance:
            return
        layer.weight.div_(variance**0.5)


# --- pre-training ---------------------------------------------------------------------------------


def pretrain_layerwise(
    model: Sequential,
    batch: Tensor,
    steps: int = 100,
    lr: float = 0.1,
    generator: Random = None,
) -> list[tuple[float, float]]:
    """Trains each hidden linear layer of a Sequential as the encoder of an autoencoder.

    error = mean((decoder(layer(x)) - x)^2)

    Greedily from the bottom: a layer (with what follows it up to the next) codes what reaches it,
    a linear decoder that is thrown away afterwards reconstructs it, and plain gradient descent
    reduces the mean squared error. The output layer is left alone. Returns the error before and
    after for each layer.
    """
    if not isinstance(model, Sequential):
        raise TypeError(
            f"pretrain_layerwise: expected a Sequential, whose order is known, got "
            f"{type(model).__name__}"
        )
    errors = []
    signal = batch.detach()
    for block in _blocks(model):
        if isinstance(block[0], Linear):
            errors.append(_pretrain(block, signal, steps, lr, generator))
        with no_grad():
            signal = _through(block, signal)
    return errors


def _blocks(model: Sequential) -> list[list[Module]]:
    """The modules in runs that begin with a linear layer; the last such run is the output's."""
    blocks: list[list[Module]] = [[]]
    for module in model:
        if isinstance(module, Linear):
            blocks.append([])
        blocks[-1].append(module)
    return [block for block in blocks[:-1] if block]


def _through(block: list[Module], x: Tensor) -> Tensor:
    for module in block:
        x = module(x)
    return x


def _pretrain(
    block: list[Module], x: Tensor, steps: int, lr: float, generator: Random
) -> tuple[float, float]:
    encoder: Any = block[0]
    n_in, n_out = encoder.in_features, encoder.out_features
    back = lecun_normal_(
        empty(n_in, n_out, dtype=x.dtype, device=x.device), generator
    ).requires_grad_()
    offset = zeros(n_in, dtype=x.dtype, device=x.device, requires_grad=True)
    learned = [p for p in (encoder.weight, encoder.bias, back, offset) if p is not None]

    def error() -> Tensor:
        return mean((linear(_through(block, x), back, offset) - x) ** 2)

    first = error().item()
    for _ in range(steps):
        with enable_grad():
            gradients = grad(error(), learned)
        with no_grad():
            for p, g in zip(learned, gradients, strict=True):
                p -= lr * g
    return first, error().item()


# --- symmetry -------------------------------------------------------------------------------------


def symmetric_units(model: Module) -> dict[str, list[list[int]]]:
    """The units of each layer that have equal weights and biases, in groups, by the layer's name.

    Such units compute the same and get the same gradient as long as the next layer weighs them
    alike: training cannot tell them apart. An empty dictionary means that symmetry is broken.

    >>> from chainrule import nn
    >>> layer = nn.Linear(2, 3)
    >>> symmetric_units(layer)
    {}
    >>> _ = nn.init.constant_(layer.weight, 0.5), nn.init.zeros_(layer.bias)
    >>> symmetric_units(layer)
    {'': [[0, 1, 2]]}
    """
    weighted = set(map(id, weighted_layers(model)))
    found = {}
    for name, layer in model.named_modules():
        groups = _equal_units(layer) if id(layer) in weighted else []
        if groups:
            found[name] = groups
    return found


def _equal_units(layer: Any) -> list[list[int]]:
    weight, bias = layer.weight.detach(), layer._parameters.get("bias")
    rows = by_unit(layer, weight).tolist()
    biases = [None] * len(rows) if bias is None else bias.detach().tolist()
    each = len(rows) // getattr(layer, "groups", 1)  # units of other groups see other inputs
    groups: dict[Any, list[int]] = {}
    for unit, (row, b) in enumerate(zip(rows, biases, strict=True)):
        groups.setdefault((unit // each, tuple(row), b), []).append(unit)
    return [group for group in groups.values() if len(group) > 1]


def by_unit(layer: Module, values: Tensor) -> Tensor:
    """Weights of a layer, or what has their shape, with a row for each unit.

    >>> from chainrule import nn
    >>> layer = nn.ConvTranspose1d(2, 3, 5)
    >>> tuple(layer.weight.shape), tuple(by_unit(layer, layer.weight).shape)
    ((2, 3, 5), (3, 10))
    """
    if not (isinstance(layer, Convolutional) and layer.transposed):
        return values.reshape(values.shape[0], -1)
    parts = values.reshape(layer.groups, -1, layer.out_channels // layer.groups, *values.shape[2:])
    return parts.transpose(1, 2).reshape(layer.out_channels, -1)


def from_units(layer: Module, rows: Tensor, shape: Sequence[int]) -> Tensor:
    """Back from :func:`by_unit`."""
    if not (isinstance(layer, Convolutional) and layer.transposed):
        return rows.reshape(*shape)
    inputs, outputs = (n // layer.groups for n in (layer.in_channels, layer.out_channels))
    parts = rows.reshape(layer.groups, outputs, inputs, *shape[2:])
    return parts.transpose(1, 2).reshape(*shape)
