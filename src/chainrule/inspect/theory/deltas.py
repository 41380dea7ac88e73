"""Back-propagation as courses write it: delta errors, unit by unit and layer by layer.

The library differentiates operations, not layers; these are the formulas of the textbooks, to see
the numbers and to compare with ``backward()``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from chainrule.autograd.func import grad
from chainrule.autograd.modes import no_grad
from chainrule.nn.activations.moments import as_function, slope
from chainrule.nn.layers.containers import Sequential
from chainrule.nn.layers.linear import Linear
from chainrule.nn.layers.unit_graph import UnitGraph
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.reduce.reductions import sum as sum_of
from chainrule.ops.shape.stacking import stack
from chainrule.tensor import Tensor

__all__ = ["LayerDeltas", "UnitDeltas", "layer_deltas", "unit_deltas"]

Function = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class LayerDeltas:
    """The delta errors of each layer (N, units), first layer first, with what follows from them:
    the gradients by the weights and by the offsets (None where a layer has none)."""

    deltas: list[Tensor]
    weights: list[Tensor]
    biases: list[Tensor | None]


@dataclass(frozen=True, eq=False)
class UnitDeltas:
    """The delta error (N,) of every unit that is computed, by its number, with the gradients by the
    weight of each link, (source, target), and by the offset of each unit."""

    deltas: dict[int, Tensor]
    weights: dict[tuple[int, int], Tensor]
    biases: dict[int, Tensor]


def _identity(s: Tensor) -> Tensor:
    return s


def _layers(model: Sequential) -> list[tuple[Linear, Function]]:
    """The dense layers of a network, each with the activation behind it."""
    found: list[tuple[Linear, Function]] = []
    for module in model:
        if isinstance(module, Linear):
            found.append((module, _identity))
        elif found and found[-1][1] is _identity and not list(module.parameters()):
            found[-1] = (found[-1][0], as_function(module))
        else:
            raise TypeError(
                "layer_deltas: expected a Sequential of Linear layers, each with an elementwise "
                f"activation behind it or none, got {type(module).__name__}"
            )
    if not found:
        raise TypeError("layer_deltas: expected a Sequential with a Linear layer, got none")
    return found


def layer_deltas(model: Sequential, input: Tensor, loss: Function) -> LayerDeltas:
    """Back-propagation in matrices: delta[l - 1] = delta[l] W[l] diag f'(s[l - 1]).

    It begins with delta = dL/da diag f'(s) at the outputs; the gradient by the weights of a layer
    is delta^T a, with a what goes into it. For networks of dense layers with elementwise
    activations.

    Args:
        model: Linear layers, each with an activation behind it or none.
        input: (N, inputs).
        loss: a number, of the outputs (N, outputs).

    >>> import chainrule
    >>> from chainrule import nn
    >>> from chainrule.inspect import textbook
    >>> net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    >>> found = textbook.layer_deltas(net, chainrule.ones(4, 2), lambda a: (a**2).sum() / 2)
    >>> [tuple(delta.shape) for delta in found.deltas]
    [(4, 3), (4, 1)]
    """
    layers = _layers(model)
    with no_grad():
        inputs, sums, a = [], [], input
        for layer, f in layers:
            inputs.append(a)
            sums.append(layer(a))
            a = f(sums[-1])
    delta = grad(loss)(a) * slope(layers[-1][1])(sums[-1])
    deltas = [delta]
    for place in range(len(layers) - 1, 0, -1):
        weight, f = layers[place][0].weight.detach(), layers[place - 1][1]
        delta = matmul(delta, weight) * slope(f)(sums[place - 1])
        deltas.insert(0, delta)
    weights = [matmul(d.mT, a) for d, a in zip(deltas, inputs, strict=True)]
    biases = [
        sum_of(d, 0) if layer.bias is not None else None
        for d, (layer, _) in zip(deltas, layers, strict=True)
    ]
    return LayerDeltas(deltas, weights, biases)


def unit_deltas(graph: UnitGraph, input: Tensor, loss: Function) -> UnitDeltas:
    """Back-propagation unit by unit, shortcuts over layers included.

    delta_k = f'(s_k) dL/da_k for an output, delta_j = f'(s_j) sum over links j -> i of delta_i w_ij
    for a hidden unit, and dL/dw_ij = delta_i a_j.

    Args:
        graph: units and links.
        input: (N, inputs).
        loss: a number, of the outputs (N, outputs).

    >>> import chainrule
    >>> from chainrule import nn
    >>> from chainrule.inspect import textbook
    >>> net = nn.UnitGraph([(0, 2), (1, 2), (2, 3), (0, 3)])
    >>> found = textbook.unit_deltas(net, chainrule.ones(4, 2), lambda a: (a**2).sum() / 2)
    >>> sorted(found.deltas), sorted(found.weights)
    ([2, 3], [(0, 2), (0, 3), (1, 2), (2, 3)])
    """
    w = dict(zip(graph.links, graph.weight.detach(), strict=True))
    hidden = as_function(graph.activation or "tanh")
    output = as_function(graph.output_activation or "identity")
    functions = {u: output if u in graph.outputs else hidden for u in graph.computed}
    order = [u for layer in graph.layers[1:] for u in layer]
    offsets = (
        {} if graph.bias is None else dict(zip(graph.computed, graph.bias.detach(), strict=True))
    )
    a = {unit: input[:, k].detach() for k, unit in enumerate(graph.layers[0])}
    sums: dict[int, Tensor] = {}
    for unit in order:
        into = [w[j, i] * a[j] for j, i in graph.links if i == unit]
        sums[unit] = sum(into[1:], into[0]) + offsets.get(unit, 0.0)
        a[unit] = functions[unit](sums[unit])
    at_outputs = grad(loss)(stack([a[unit] for unit in graph.outputs], 1))
    slopes = dict(zip(graph.outputs, at_outputs.mT, strict=True))
    deltas: dict[int, Tensor] = {}
    for unit in reversed(order):
        if unit not in slopes:
            onwards = [deltas[i] * w[j, i] for j, i in graph.links if j == unit]
            slopes[unit] = sum(onwards[1:], onwards[0])
        deltas[unit] = slope(functions[unit])(sums[unit]) * slopes[unit]
    weights = {(j, i): sum_of(deltas[i] * a[j]) for j, i in graph.links}
    return UnitDeltas(deltas, weights, {unit: sum_of(deltas[unit]) for unit in offsets})
