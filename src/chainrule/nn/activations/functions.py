"""Activation functions: what a unit makes of the sum of its inputs.

The functions are the truth; the modules over them are beside this file, by kind. Where a
function has a kink, the slope there is PyTorch's (0 for ReLU at 0).
"""

from __future__ import annotations

import warnings
from typing import Any

from chainrule.backend import dtypes
from chainrule.ops.elementwise import activation as primitives
from chainrule.ops.layers import softmax as _softmax
from chainrule.ops.elementwise.activation import binary_step, gelu_tanh
from chainrule.ops.elementwise.activation import log_sigmoid as logsigmoid
from chainrule.ops.elementwise.complex_numbers import abs
from chainrule.ops.elementwise.functions import (
    exp,
    expm1,
    log,
    logaddexp,
    sigmoid,
    sign,
    square,
    tanh,
)
from chainrule.ops.elementwise.logic import where
from chainrule.ops.elementwise.options import clamp
from chainrule.ops.elementwise.functions import relu as _relu
from chainrule.ops.elementwise.functions import softplus as _softplus
from chainrule.ops.index.reading import narrow, one_hot
from chainrule.ops.core.inplace import assign
from chainrule.ops.core.promotion import cast, check_kind
from chainrule.ops.creation.sampling import rand_like
from chainrule.ops.shape.views import canonical_dim, movedim, reshape
from chainrule.tensor import Tensor, check_layout
from chainrule.typing import DType

__all__ = [
    "binary_step",
    "celu",
    "celu_",
    "elu",
    "elu_",
    "gaussian",
    "gelu",
    "glu",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "leaky_relu",
    "leaky_relu_",
    "lecun_tanh",
    "log_softmax",
    "logsigmoid",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "rrelu",
    "rrelu_",
    "selu",
    "selu_",
    "sigmoid",
    "sign",
    "silu",
    "soboleva_tanh",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
]

# Solve the fixed-point equations of SELU for mean 0 and variance 1
# (see ``nn/activations/moments.py``).
SELU_ALPHA = 1.6732632423543772
SELU_SCALE = 1.0507009873554805


def _check(name: str, input: Any) -> None:
    """Refuses what is not a floating-point tensor."""
    if not isinstance(input, Tensor):
        check_layout(name, input)
        raise TypeError(
            f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}; "
            "convert it with chainrule.tensor(...)"
        )
    check_kind(name, "f", input.array.dtype)


def _given(input: Tensor, out: Tensor, inplace: bool, name: str) -> Tensor:
    """The output, written into the input if asked."""
    return assign(input, out, name, fresh=out is not input) if inplace else out


def _readable(input: Tensor, inplace: bool) -> Tensor:
    """The input, or a copy for the backward pass of a composition to read where it is changed."""
    return input.clone() if inplace else input


# --- linear in pieces -----------------------------------------------------------------------------


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0)"""
    return _given(input, _relu(input), inplace, "relu_")


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6)"""
    return hardtanh(input, 0.0, 6.0, inplace)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x for x > 0, negative_slope * x for x <= 0."""
    return _given(input, primitives.prelu(input, negative_slope), inplace, "leaky_relu_")


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x for x > 0, weight * x for x <= 0, with one weight or one for each channel (dimension 1)."""
    if not isinstance(weight, Tensor) or weight.ndim > 1:
        found = tuple(weight.shape) if isinstance(weight, Tensor) else type(weight).__name__
        raise RuntimeError(
            f"prelu: expected weight to be a tensor of 0 or 1 dimension, got {found}"
        )
    if weight.dtype != input.dtype:
        raise RuntimeError(
            f"prelu: type promoting is not supported, input is {input.dtype} and weight "
            f"{weight.dtype}; convert one of them"
        )
    count = weight.numel()
    if count != 1:
        _check_channels(input, count)
        if input.ndim > 1:
            weight = reshape(weight, (count, *[1] * (input.ndim - 2)))
    elif weight.ndim and input.ndim == 0:
        weight = reshape(weight, ())
    return primitives.prelu(input, weight)


def _check_channels(input: Tensor, count: int) -> None:
    if input.ndim == 0:
        raise RuntimeError("prelu: a zero-dim input takes one weight, got " + str(count))
    channels = input.shape[1] if input.ndim > 1 else 1
    if channels != count:
        raise RuntimeError(
            f"prelu: mismatch of parameter numbers and input channel size. Found parameter numbers "
            f"= {count} and channel size = {channels} in an input of shape {tuple(input.shape)}; "
            "the channels are dimension 1"
        )


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """x for x > 0, a x for x <= 0; a is uniform in [lower, upper], in evaluation their mean."""
    if lower > upper:
        raise RuntimeError(
            f"rrelu: lower must not exceed upper, got lower={lower} and upper={upper}"
        )
    slope: float | Tensor = (lower + upper) / 2
    if training:
        slope = lower + (upper - lower) * rand_like(input)
    return _given(input, primitives.prelu(input, slope), inplace, "rrelu_")


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x for x > threshold, else value."""
    return _given(input, where(input <= threshold, value, input), inplace, "threshold_")


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """min(max(x, min_val), max_val)"""
    if min_val > max_val:
        raise ValueError(
            f"hardtanh: min_val cannot be greater than max_val, got {min_val} and {max_val}"
        )
    check_kind("hardtanh", "iuf", input.array.dtype)
    if isinstance(input, Tensor) and input.array.dtype.kind in "iu":
        min_val, max_val = int(min_val), int(max_val)  # as for floats: in the type of the input
    return _given(
        input, primitives.hardtanh(input, low=min_val, high=max_val), inplace, "hardtanh_"
    )


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x / 6 + 1 / 2, 0), 1)"""
    return _given(input, relu6(input + 3.0) / 6.0, inplace, "hardsigmoid_")


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x min(max(x / 6 + 1 / 2, 0), 1)"""
    x = _readable(input, inplace)
    return _given(input, x * relu6(x + 3.0) / 6.0, inplace, "hardswish_")


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x for |x| > lambd, else 0."""
    return where((input >= -lambd) & (input <= lambd), 0.0, input)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x - lambd for x > lambd, x + lambd for x < -lambd, else 0."""
    if lambd < 0:
        raise RuntimeError(f"softshrink: lambd must be greater or equal to 0, got {lambd}")
    return input - clamp(input, -lambd, lambd)


# --- exponential ----------------------------------------------------------------------------------


def elu(input: Tensor, alpha: float | Tensor = 1.0, inplace: bool = False) -> Tensor:
    """x for x > 0, alpha (exp(x) - 1) for x <= 0; alpha may be a tensor that is learned."""
    _check("elu", input)
    if isinstance(alpha, Tensor):
        x = _readable(input, inplace)
        out = where(x > 0, x, alpha * expm1(where(x > 0, 0.0, x)))
    else:
        out = primitives.elu(input, alpha=alpha, scale=1.0, rate=1.0)
    return _given(input, out, inplace, "elu_")


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x for x > 0, alpha (exp(x / alpha) - 1) for x <= 0."""
    _check("celu", input)
    if alpha == 0:
        raise RuntimeError("celu: alpha cannot be 0 (ZeroDivisionError)")
    out = primitives.elu(input, alpha=alpha, scale=1.0, rate=1.0 / alpha)
    return _given(input, out, inplace, "celu_")


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """SCALE x for x > 0, SCALE ALPHA (exp(x) - 1) for x <= 0.

    ALPHA = 1.6732632423543772 and SCALE = 1.0507009873554805 make mean 0 and variance 1 a stable
    fixed point from layer to layer.
    """
    _check("selu", input)
    out = primitives.elu(input, alpha=SELU_ALPHA, scale=SELU_SCALE, rate=1.0)
    return _given(input, out, inplace, "selu_")


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta x)) / beta, and x where beta x > threshold."""
    _check("softplus", input)
    scaled = input if beta == 1 else input * beta
    smooth = _softplus(scaled) if beta == 1 else _softplus(scaled) / beta
    return where(scaled > threshold, input, smooth)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x tanh(log(1 + exp(x)))"""
    x = _readable(input, inplace)
    return _given(input, x * tanh(_softplus(x)), inplace, "mish_")


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x / (1 + exp(-x)), also known as swish."""
    return _given(input, primitives.silu(input), inplace, "silu_")


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x Phi(x), Phi the normal distribution function (or its approximation by a ``"tanh"``)."""
    if approximate == "none":
        return primitives.gelu(input)
    if approximate == "tanh":
        return gelu_tanh(input)
    raise RuntimeError(
        f"gelu: approximate argument must be either 'none' or 'tanh', got {approximate!r}"
    )


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)"""
    return input - tanh(input)


def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)"""
    return input / (1 + abs(input))


# --- the courses' own -----------------------------------------------------------------------------


def lecun_tanh(input: Tensor) -> Tensor:
    """1.7159 tanh(2 x / 3): f(1) = 1, and the curvature is largest there."""
    return 1.7159 * tanh(input * (2 / 3))


def soboleva_tanh(
    input: Tensor,
    a: float | Tensor = 1.0,
    b: float | Tensor = 1.0,
    c: float | Tensor = 1.0,
    d: float | Tensor = 1.0,
) -> Tensor:
    """(exp(a x) - exp(-b x)) / (exp(c x) + exp(-d x)): tanh if a = b = c = d = 1.

    Its values lie in (-1, 1) if a <= c and b <= d; otherwise it grows without limit. The
    parameters may be tensors that are learned.
    """
    log_denominator = logaddexp(input * c, -(input * d))
    return exp(input * a - log_denominator) - exp(-(input * b) - log_denominator)


def gaussian(input: Tensor) -> Tensor:
    """exp(-x^2)"""
    return exp(-square(input))


# --- along a dimension ----------------------------------------------------------------------------


def _chosen_dim(name: str, dim: int | None, ndim: int, stacklevel: int) -> int:
    """PyTorch's choice of a dimension where none is given, and its warning."""
    if dim is not None:
        return dim
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include "
        "dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None
) -> Tensor:
    """exp(x) / sum(exp(x)) along ``dim``: positive numbers that sum to 1."""
    return _softmax.softmax(input, _chosen_dim("softmax", dim, input.ndim, _stacklevel), dtype)


def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None
) -> Tensor:
    """softmax(-x) along ``dim``."""
    return _softmax.softmax(-input, _chosen_dim("softmin", dim, input.ndim, _stacklevel), dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None
) -> Tensor:
    """log(softmax(x)) along ``dim``."""
    return _softmax.log_softmax(
        input, _chosen_dim("log_softmax", dim, input.ndim, _stacklevel), dtype
    )


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """a sigmoid(b), where a and b are the halves of x along ``dim``."""
    if input.ndim == 0:
        raise RuntimeError("glu: does not support 0-dimensional tensors")
    d = canonical_dim("glu", dim, input.ndim)
    size = input.shape[d]
    if size % 2:
        raise RuntimeError(
            f"glu: halving dimension must be even, but dimension {dim} is size {size}"
        )
    half = size // 2
    return narrow(input, d, 0, half) * sigmoid(narrow(input, d, half, half))


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """softmax((x + g) / tau) with Gumbel noise g: a class drawn with probabilities softmax(x).

    ``hard`` gives one-hot vectors with the gradient of the soft ones.
    """
    # The uniform numbers stay away from 0, whose logarithm is infinite.
    tiny = 1e-7 if logits.dtype is not dtypes.float64 else 1e-16
    noise = -log(-log(tiny + (1 - 2 * tiny) * rand_like(logits)))
    soft = _softmax.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    chosen = cast(one_hot(soft.detach().argmax(dim), soft.shape[dim]), soft.dtype)
    return movedim(chosen, -1, dim) - soft.detach() + soft


# --- in place -------------------------------------------------------------------------------------


def relu_(input: Tensor) -> Tensor:
    """x = max(x, 0), in place."""
    return relu(input, True)


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """x = x for x > 0, x = negative_slope * x for x <= 0, in place."""
    return leaky_relu(input, negative_slope, True)


def rrelu_(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False
) -> Tensor:
    """x = x for x > 0, x = a x for x <= 0, in place; a as in :func:`rrelu`."""
    return rrelu(input, lower, upper, training, True)


def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """x = x for x > threshold, else x = value, in place."""
    return _given(input, where(input <= threshold, value, input), True, "threshold_")


def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """x = min(max(x, min_val), max_val), in place."""
    return hardtanh(input, min_val, max_val, True)


def elu_(input: Tensor, alpha: float | Tensor = 1.0) -> Tensor:
    """x = x for x > 0, x = alpha (exp(x) - 1) for x <= 0, in place."""
    return elu(input, alpha, True)


def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """x = x for x > 0, x = alpha (exp(x / alpha) - 1) for x <= 0, in place."""
    return celu(input, alpha, True)


def selu_(input: Tensor) -> Tensor:
    """x = SCALE x for x > 0, x = SCALE ALPHA (exp(x) - 1) for x <= 0, in place."""
    return selu(input, True)
