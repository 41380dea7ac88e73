"""Networks with other weights that compute the same function: units exchanged, or turned."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from chainrule import nn
from chainrule.autograd.modes import no_grad
from chainrule.backend import dtypes
from chainrule.nn.activations.base import Activation
from chainrule.nn.activations.learned import PReLU
from chainrule.nn.activations.vector import GLU, LogSoftmax, Softmax, Softmax2d, Softmin
from chainrule.nn.layers.dropout import AlphaDropout, Dropout, FeatureAlphaDropout
from chainrule.ops.creation.patterns import linspace
from chainrule.tensor import Tensor

__all__ = ["flipped_units", "permuted_units"]

_MIXING = (GLU, LogSoftmax, Softmax, Softmax2d, Softmin)


def permuted_units(model: nn.Sequential, layer: int, order: Sequence[int]) -> nn.Sequential:
    """A copy in which the units of a hidden layer stand in another order: the same function.

    Unit i of the copy is unit ``order[i]`` of the model: the rows of the layer's weight and bias
    change places, and the columns of the weight that takes them.

    Args:
        model: dense layers with elementwise activations between them, such as a ``models.MLP``.
        layer: the place of the dense layer in the model; the last one has no hidden units.
        order: all its units, each once.

    >>> import chainrule
    >>> from chainrule import inspect, models
    >>> net, x = models.MLP(2, [3], 1), chainrule.randn(4, 2)
    >>> other = inspect.permuted_units(net, 0, [2, 0, 1])
    >>> chainrule.allclose(net(x), other(x)), chainrule.equal(net[0].weight, other[0].weight)
    (True, False)
    """
    changed = copy.deepcopy(model)
    first, between, second = _hidden("permuted_units", changed, layer)
    places = list(order)
    if sorted(places) != list(range(first.out_features)):
        raise ValueError(
            f"permuted_units: order must have each of the {first.out_features} units once, got "
            f"{places}"
        )
    slopes = [m.weight for m in between if isinstance(m, PReLU) and m.num_parameters > 1]
    with no_grad():
        for p in (first.weight, first.bias, *slopes):
            if p is not None:
                p.copy_(p[places])
        second.weight.copy_(second.weight[:, places])
    return changed


def flipped_units(
    model: nn.Sequential, layer: int, units: Sequence[int] | None = None
) -> nn.Sequential:
    """A copy in which units of a hidden layer have the other sign: the same function.

    w2 f(w1 x + b) = (-w2) f(-w1 x - b) for odd activations, f(-s) = -f(s), such as tanh.

    Args:
        model: as in :func:`permuted_units`.
        layer: the place of the dense layer in the model.
        units: which, by default all.

    >>> import chainrule
    >>> from chainrule import inspect, models
    >>> net, x = models.MLP(2, [3], 1, "tanh"), chainrule.randn(4, 2)
    >>> other = inspect.flipped_units(net, 0, [1])
    >>> chainrule.allclose(net(x), other(x)), chainrule.equal(net[0].weight, other[0].weight)
    (True, False)
    """
    changed = copy.deepcopy(model)
    first, between, second = _hidden("flipped_units", changed, layer)
    chosen = list(range(first.out_features)) if units is None else list(units)
    wrong = [u for u in chosen if not 0 <= u < first.out_features]
    if wrong or len(set(chosen)) != len(chosen):
        raise ValueError(
            f"flipped_units: units must be different numbers from 0 to {first.out_features - 1}, "
            f"got {chosen}"
        )
    even = [m for m in between if not _is_odd(m)]
    if even:
        raise ValueError(
            f"flipped_units: the activation {type(even[0]).__name__} is not odd, so that units "
            "with the other sign compute something else"
        )
    with no_grad():
        for p in (first.weight, first.bias):
            if p is not None:
                p[chosen] = -p[chosen]
        second.weight[:, chosen] = -second.weight[:, chosen]
    return changed


def _hidden(
    op: str, model: nn.Sequential, layer: int
) -> tuple[nn.Linear, list[nn.Module], nn.Linear]:
    """A dense layer, what follows it, and the next dense layer."""
    if not isinstance(model, nn.Sequential) or not 0 <= layer < len(model):
        raise ValueError(
            f"{op}: expected a Sequential and the place of a layer in it, got "
            f"{type(model).__name__} and layer={layer}"
        )
    first = _linear(op, model, layer)
    between: list[nn.Module] = []
    for i in range(layer + 1, len(model)):
        module = model[i]
        if isinstance(module, nn.Linear):
            return first, between, _linear(op, model, i)
        if not _is_elementwise(module):
            raise ValueError(
                f"{op}: behind layer {layer} stands {type(module).__name__}, which is not known "
                "to treat each unit alone"
            )
        between.append(module)
    raise ValueError(f"{op}: behind layer {layer} comes no dense layer; its units are outputs")


def _linear(op: str, model: nn.Sequential, place: int) -> nn.Linear:
    found = model[place]
    if not isinstance(found, nn.Linear) or "weight" not in found._parameters:
        raise ValueError(
            f"{op}: expected a dense layer with its own weight at place {place}, got "
            f"{type(found).__name__}"
        )
    return found


def _is_elementwise(module: nn.Module) -> bool:
    plain = isinstance(module, (nn.Identity, Dropout, AlphaDropout, FeatureAlphaDropout, PReLU))
    return plain or (isinstance(module, Activation) and not isinstance(module, _MIXING))


def _is_odd(module: nn.Module) -> bool:
    if not isinstance(module, Activation):
        return isinstance(module, (nn.Identity, Dropout))
    s = linspace(0, 9, 91, dtype=dtypes.float64)
    up: Tensor = copy.deepcopy(module).eval()(s.clone())
    down: Tensor = copy.deepcopy(module).eval()(-s)
    return bool(up.isclose(-down, rtol=1e-12, atol=1e-12).all())
