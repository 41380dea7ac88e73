"""Random numbers whose law depends on tensors in more than place and scale.

They are operations on their parameters that draw while they are computed. The gamma law has a
derivative by its shape: how the quantile that was drawn moves with it.
"""

from __future__ import annotations

from typing import Any

from chainrule.backend import K
from chainrule.graph import Box
from chainrule.ops.core.arguments import placed_like, tensor_argument
from chainrule.ops.core.primitive import Elementwise, Nondifferentiable, Op
from chainrule.ops.core.promotion import broadcast_shapes
from chainrule.ops.creation.sampling import batch_draw, draw, stream
from chainrule.ops.elementwise.gamma import log_gamma_slope
from chainrule.tensor import Tensor
from chainrule.typing import Random

__all__ = ["poisson", "random_binomial", "random_log_gamma", "random_von_mises"]

_log_gamma = Elementwise("random_log_gamma", [lambda d, x, out: d * log_gamma_slope(x, out)])
_binomial = Nondifferentiable("random_binomial", "align")
_poisson = Nondifferentiable("random_poisson", "align")
_von_mises = Nondifferentiable("random_von_mises", "align")


def random_log_gamma(concentration: Tensor, generator: Random = None) -> Tensor:
    """Logarithms of gamma numbers of these shapes and rate 1, differentiable by the shape.

    Of a small shape a the numbers are of the order e^(-1/a): their logarithms do not underflow.

    >>> import chainrule
    >>> y = random_log_gamma(chainrule.full((10_000,), 2.0))
    >>> bool((y.exp().mean() - 2).abs() < 0.1)
    True
    """
    return _drawn(_log_gamma, (concentration,), generator)


def random_binomial(count: Tensor, prob: Tensor, generator: Random = None) -> Tensor:
    """How many of ``count`` trials with probability ``prob`` succeed.

    >>> import chainrule
    >>> random_binomial(chainrule.full((3,), 5.0), chainrule.ones(3))
    tensor([5., 5., 5.])
    """
    return _drawn(_binomial, (count.detach(), prob.detach()), generator)


def poisson(input: Tensor, generator: Random = None) -> Tensor:
    """Poisson numbers with the rates that ``input`` holds."""
    rates = tensor_argument("poisson", input).detach()
    if not rates.is_floating_point():
        raise NotImplementedError(f"poisson: not implemented for rates of {rates.dtype}")
    if not isinstance(rates.array, Box) and not K.all_in_range(rates.array, 0.0, float("inf")):
        raise RuntimeError("poisson: invalid rate, expected all rates to be non-negative")
    return _drawn(_poisson, (rates,), generator)


def random_von_mises(loc: Tensor, concentration: Tensor, generator: Random = None) -> Tensor:
    """Angles in [-pi, pi) with density proportional to exp(concentration cos(x - loc)).

    >>> import chainrule
    >>> bool((random_von_mises(chainrule.zeros(99), chainrule.full((99,), 1e4)).abs() < 0.1).all())
    True
    """
    return _drawn(_von_mises, (loc.detach(), concentration.detach()), generator)


def _drawn(op: Op, parameters: tuple[Tensor, ...], generator: Random) -> Tensor:
    """The operation on its parameters; inside vmap other numbers for each sample, or none."""
    g: Any = stream(op.name, generator)
    if batch_draw.stack:
        parameters = _apart(op, parameters)
    return op(*parameters, g=g)


def _apart(op: Op, parameters: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Parameters that differ from sample to sample, if the numbers are to: vmap says if they are.

    Numbers that are the same for parameters that are not would need one draw as a function of all
    parameters, which there is none of.
    """
    shape = broadcast_shapes(*[p.shape for p in parameters], op=op.name)
    first, dtype = parameters[0], parameters[0].array.dtype
    zero = placed_like(first, draw(tuple(shape), lambda shape: K.zeros(shape, dtype)))
    if not isinstance(zero.array, Box) and any(isinstance(p.array, Box) for p in parameters):
        raise RuntimeError(
            f"{op.name}: inside vmap with randomness='same' the parameters must not be mapped; "
            "use randomness='different'"
        )
    return (first + zero, *parameters[1:])
