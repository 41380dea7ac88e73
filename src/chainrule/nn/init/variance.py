"""How the variance of signals and of gradients changes from layer to layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from chainrule.autograd.engine import grad
from chainrule.autograd.modes import enable_grad, no_grad
from chainrule.nn.init.tensors import fan_in_and_fan_out, normal_
from chainrule.nn.module.base import Module
from chainrule.nn.activations.moments import as_function, gaussian_expectation, slope
from chainrule.ops.creation.sampling import randn
from chainrule.tensor import Tensor
from chainrule.typing import Random

__all__ = [
    "Propagation",
    "gain",
    "preserve_variance_",
    "propagation",
    "recorded_outputs",
    "weighted_layers",
]


class Propagation(NamedTuple):
    """Second moments by layer: of the sums ``s`` (before the activation) and of their gradients.

    ``forward[0]`` belongs to the first layer, ``backward[-1]`` to the last; the gradient at the
    top has second moment 1.
    """

    forward: list[float]
    backward: list[float]


def gain(activation: str | Callable[..., Tensor], q: float = 1.0) -> float:
    """The factor q / E[f(sqrt(q) Z)^2] on the *variance* of weights that keeps that of the sums.

    Weights of variance gain / fan_in give the next layer's sums the variance q again. PyTorch's
    ``calculate_gain`` is a factor on the standard deviation, and approximate for tanh.

    >>> round(gain("relu"), 6), round(gain("tanh"), 3), round(gain("sigmoid"), 3)
    (2.0, 2.536, 3.409)
    """
    f = as_function(activation)
    moment = gaussian_expectation(lambda s: f(s) ** 2, 0.0, q)
    if moment == 0:
        raise ValueError("gain: the activation is 0 everywhere; no weights can keep the variance")
    return q / moment


def propagation(
    model: Module | str | Callable[..., Tensor],
    q: float = 1.0,
    depth: int | None = None,
    *,
    weight_variance: float = 1.0,
    backward_variance: float | None = None,
    bias_variance: float = 0.0,
    input: Tensor | None = None,
    samples: int = 256,
    generator: Random = None,
) -> Propagation:
    """Variance through depth, both ways: predicted for an activation, measured on a model.

    An activation f (a name, a function, a module without weights) stands for wide layers: the sums
    of layer 0 have variance q, those of the next F(q) = weight_variance * E[f(sqrt(q) Z)^2] +
    bias_variance. The gradient's second moment takes the factor backward_variance *
    E[f'(sqrt(q) Z)^2] at each layer down.

    A model is given ``input``, or ``samples`` normal inputs of variance q, and a random gradient
    of second moment 1 at its output; the moments at each layer with a weight are reported.

    Args:
        depth: the number of layers (10 for an activation, all of a model).
        weight_variance: fan_in times the variance of a weight (J s_w^2).
        backward_variance: fan_out times it (I s_w^2); as ``weight_variance`` if not given.

    >>> [round(v, 3) for v in propagation("relu", 1.0, 3).forward]
    [1.0, 0.5, 0.25, 0.125]
    """
    if depth is not None and depth < 0:
        raise ValueError(f"propagation: expected depth >= 0, got {depth}")
    if isinstance(model, Module) and weighted_layers(model):
        return _measured(model, q, depth, input, samples, generator)
    f = as_function(model)
    down = weight_variance if backward_variance is None else backward_variance
    return _predicted(f, q, 10 if depth is None else depth, weight_variance, down, bias_variance)


def _predicted(
    f: Callable[[Tensor], Tensor], q: float, depth: int, up: float, down: float, bias: float
) -> Propagation:
    derivative = slope(f)
    forward = [q]
    factors = []
    for _ in range(depth):
        q = forward[-1]
        factors.append(down * _second_moment(derivative, q))
        forward.append(up * _second_moment(f, q) + bias)
    backward = [1.0]
    for factor in reversed(factors):
        backward.append(backward[-1] * factor)
    return Propagation(forward, backward[::-1])


def _second_moment(f: Callable[[Tensor], Tensor], q: float) -> float:
    """E[f(sqrt(q) Z)^2], also where q has died out or has overflowed."""
    if not 1e-300 < q < 1e300:
        return float("nan")
    return gaussian_expectation(lambda s: f(s) ** 2, 0.0, q)


def weighted_layers(model: Module) -> list[Module]:
    """The modules with a weight of two or more dimensions, in order of registration."""
    return [m for m in model.modules() if _has_weight(m)]


def _has_weight(module: Module) -> bool:
    weight = module._parameters.get("weight")
    return weight is not None and weight.ndim >= 2


def recorded_outputs(model: Module, input: Tensor) -> tuple[Any, list[tuple[Module, Tensor]]]:
    """The output of a model, and that of each layer with a weight, in order of execution."""
    records: list[tuple[Module, Tensor]] = []

    def note(module: Module, args: Any, output: Any) -> None:
        records.append((module, output))

    handles = [m.register_forward_hook(note) for m in weighted_layers(model)]
    try:
        return model(input), records
    finally:
        for handle in handles:
            handle.remove()


def _measured(
    model: Module,
    q: float,
    depth: int | None,
    input: Tensor | None,
    samples: int,
    generator: Random,
) -> Propagation:
    first = weighted_layers(model)[0]
    if input is None:
        width = getattr(first, "in_features", None)
        if width is None:
            raise ValueError(
                f"propagation: the size of the input cannot be told from {type(first).__name__}; "
                "pass input="
            )
        dtype = first._parameters["weight"].dtype  # type: ignore[union-attr]
        input = randn(samples, width, generator=generator, dtype=dtype) * q**0.5
    with enable_grad():
        out, records = recorded_outputs(model, input)
        sums = [s for _, s in records][: None if depth is None else depth]
        noise = normal_(out.detach().clone(), generator=generator)
        gradients = grad(out, sums, noise, allow_unused=True, materialize_grads=True)
    return Propagation([_mean_square(s) for s in sums], [_mean_square(g) for g in gradients])


def _mean_square(x: Tensor) -> float:
    return x.detach().double().square().mean().item()


def preserve_variance_(
    model: Module,
    activation: str | Callable[..., Tensor],
    q: float = 1.0,
    input_second_moment: float = 1.0,
    generator: Random = None,
) -> Module:
    """Draws all weights so that the sums of every layer have variance q; biases become 0.

    Layer 1 receives the data, not activations: its weights have variance q / (fan_in E[X^2]), those
    of the others q / (fan_in E[f(sqrt(q) Z)^2]) = gain / fan_in.
    """
    if not input_second_moment > 0:
        raise ValueError(
            f"preserve_variance_: expected input_second_moment > 0, got {input_second_moment}"
        )
    scales = _first_then(q / input_second_moment, gain(activation, q))
    for layer, scale in zip(weighted_layers(model), scales, strict=False):
        weight, bias = layer._parameters["weight"], layer._parameters.get("bias")
        if weight is None:
            continue
        fan_in, _ = fan_in_and_fan_out(weight)
        normal_(weight, 0.0, (scale / fan_in) ** 0.5, generator)
        if bias is not None:
            with no_grad():
                bias.fill_(0)
    return model


def _first_then(first: float, rest: float) -> Iterator[float]:
    yield first
    while True:
        yield rest
