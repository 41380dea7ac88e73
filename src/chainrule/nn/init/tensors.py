"""Initializers of one tensor: each fills it in place, without a gradient, and returns it.

``nn/init.py`` lists them together with those of whole models.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

from chainrule.autograd.modes import no_grad
from chainrule.backend import dtypes
from chainrule.nn.parameter import Parameter
from chainrule.ops.core.arguments import is_limited
from chainrule.ops.linalg.decompositions import qr
from chainrule.ops.shape.diagonal import diagonal
from chainrule.ops.elementwise.functions import sign
from chainrule.ops.creation.sampling import randn, randperm
from chainrule.tensor import Tensor
from chainrule.typing import Random

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "fan_in_and_fan_out",
    "kaiming_normal_",
    "kaiming_uniform_",
    "lecun_normal_",
    "lecun_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "self_normalizing_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "variance_scaling_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

# The standard deviation of a standard normal number that is cut off at +-2.
_STD_OF_TRUNCATED = 0.8796256610342398

# --- numbers --------------------------------------------------------------------------------------


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """PyTorch's factor on the *standard deviation* of the weights before a nonlinearity.

    It is 1 for linear layers, convolutions and sigmoid, 5 / 3 for tanh, sqrt(2) for relu,
    sqrt(2 / (1 + param^2)) for leaky_relu and 3 / 4 for selu.

    :func:`chainrule.nn.init.gain` computes the exact factor on the *variance*.

    >>> calculate_gain("leaky_relu", 0.2) ** 2
    1.923...
    """
    plain = (
        "linear",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_transpose1d",
        "conv_transpose2d",
        "conv_transpose3d",
        "sigmoid",
    )
    if nonlinearity in plain:
        return 1.0
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "selu":
        return 3.0 / 4
    if nonlinearity == "leaky_relu":
        if param is not None and (isinstance(param, bool) or not isinstance(param, (int, float))):
            raise ValueError(f"calculate_gain: negative_slope {param!r} not a valid number")
        return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    raise ValueError(
        f"calculate_gain: unsupported nonlinearity {nonlinearity!r}; for the gain of any "
        "activation use nn.init.gain"
    )


def fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """How many inputs each output of a layer with this weight has, and the reverse.

    fan_in = shape[1] * size of the kernel, fan_out = shape[0] * size of the kernel, for the weight
    of a linear layer (out, in) or of a convolution (out, in, *kernel)

    >>> import chainrule
    >>> fan_in_and_fan_out(chainrule.empty(16, 6, 5, 5))
    (150, 400)
    """
    if tensor.ndim < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions, got "
            f"shape {tuple(tensor.shape)}"
        )
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _fan(op: str, tensor: Tensor, mode: str) -> float:
    fan_in, fan_out = fan_in_and_fan_out(tensor)
    fans = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}
    if str(mode).lower() not in fans:
        raise ValueError(f"{op}: mode {mode!r} not supported, please use one of {list(fans)}")
    return fans[mode.lower()]


def _is_given(tensor: Tensor) -> bool:
    """Whether a file is about to give this its values: then its memory is not even touched."""
    return is_limited() and isinstance(tensor, Parameter)


# --- constants ------------------------------------------------------------------------------------


def constant_(tensor: Tensor, val: float) -> Tensor:
    """w = val everywhere; units that start alike stay alike (see ``symmetric_units``)."""
    if _is_given(tensor):
        return tensor
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """w = 1 everywhere."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """w = 0 everywhere."""
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    """w[i, j] = 1 for i = j, else 0: the identity matrix, or as much of it as fits."""
    if tensor.ndim != 2:
        raise ValueError(
            f"eye_: only tensors with 2 dimensions are supported, got shape {tuple(tensor.shape)}"
        )
    with no_grad():
        tensor.fill_(0)
        diagonal(tensor).fill_(1)
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """w[c, c, center] = 1 in each group, else 0: a convolution that passes as many channels as
    possible on unchanged."""
    shape = tuple(tensor.shape)
    if len(shape) not in (3, 4, 5):
        raise ValueError(
            f"dirac_: only tensors with 3, 4, or 5 dimensions are supported, got shape {shape}"
        )
    if shape[0] % groups != 0:
        raise ValueError(f"dirac_: dim 0 must be divisible by groups, got {shape[0]} and {groups}")
    per_group = shape[0] // groups
    center = tuple(n // 2 for n in shape[2:])
    with no_grad():
        tensor.fill_(0)
        for g in range(groups):
            for d in range(min(per_group, shape[1])):
                tensor[(g * per_group + d, d, *center)] = 1
    return tensor


# --- random ---------------------------------------------------------------------------------------


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Random = None) -> Tensor:
    """Numbers from U[a, b)."""
    if _is_given(tensor):
        return tensor
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Random = None
) -> Tensor:
    """Numbers from N(mean, std^2)."""
    if _is_given(tensor):
        return tensor
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Random = None,
) -> Tensor:
    """Numbers from N(mean, std^2), those outside [a, b] drawn again.

    With std 1 and the limits +-2 the variance is 0.7737 and the standard deviation 0.8796.
    """
    if not a <= b:
        raise ValueError(f"trunc_normal_: expected a <= b, got a={a} and b={b}")
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. "
            "The distribution of values may be incorrect.",
            stacklevel=2,
        )
    low, high = (2 * _normal_cdf((limit - mean) / std) - 1 for limit in (a, b))
    with no_grad():
        # The inverse of the distribution function, between its values at the limits.
        tensor.uniform_(low, high, generator=generator)
        tensor.erfinv_()
        tensor.mul_(std * math.sqrt(2.0))
        tensor.add_(mean)
        return tensor.clamp_(a, b)


def _normal_cdf(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def _is_empty(tensor: Tensor) -> bool:
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return True
    return False


# --- by variance ----------------------------------------------------------------------------------


def variance_scaling_(
    tensor: Tensor,
    scale: float = 1.0,
    mode: str = "fan_in",
    distribution: str = "normal",
    generator: Random = None,
) -> Tensor:
    """Random weights of mean 0 and variance scale / fan.

    Args:
        scale: the gain on the variance: 1 (LeCun), 2 (He), ``nn.init.gain(activation)``.
        mode: the fan, ``"fan_in"`` (keeps the variance of signals), ``"fan_out"`` (of gradients)
            or ``"fan_avg"`` (Glorot's compromise).
        distribution: ``"normal"``, ``"truncated_normal"`` (at two standard deviations) or
            ``"uniform"``.
    """
    if not scale >= 0:
        raise ValueError(f"variance_scaling_: expected scale >= 0, got {scale}")
    if _is_empty(tensor):
        return tensor
    std = math.sqrt(scale / _fan("variance_scaling_", tensor, mode))
    if distribution == "normal":
        return normal_(tensor, 0.0, std, generator)
    if distribution == "uniform":
        bound = math.sqrt(3.0) * std
        return uniform_(tensor, -bound, bound, generator)
    if distribution == "truncated_normal":
        uncut = std / _STD_OF_TRUNCATED
        return trunc_normal_(tensor, 0.0, uncut, -2 * uncut, 2 * uncut, generator)
    raise ValueError(
        f"variance_scaling_: distribution {distribution!r} is not one of 'normal', "
        "'truncated_normal', 'uniform'"
    )


def lecun_normal_(tensor: Tensor, generator: Random = None) -> Tensor:
    """Normal with variance 1 / fan_in."""
    return variance_scaling_(tensor, 1.0, "fan_in", "normal", generator)


def lecun_uniform_(tensor: Tensor, generator: Random = None) -> Tensor:
    """Uniform within +-sqrt(3 / fan_in), of variance 1 / fan_in."""
    return variance_scaling_(tensor, 1.0, "fan_in", "uniform", generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Random = None) -> Tensor:
    """Normal with variance gain^2 * 2 / (fan_in + fan_out)."""
    return variance_scaling_(tensor, gain * gain, "fan_avg", "normal", generator)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Random = None) -> Tensor:
    """Uniform within +-gain * sqrt(6 / (fan_in + fan_out))."""
    return variance_scaling_(tensor, gain * gain, "fan_avg", "uniform", generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Random = None,
) -> Tensor:
    """Normal with variance gain^2 / fan, the gain being that of the nonlinearity."""
    return _kaiming(tensor, a, mode, nonlinearity, "normal", generator)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Random = None,
) -> Tensor:
    """Uniform within +-gain * sqrt(3 / fan), the gain being that of the nonlinearity."""
    return _kaiming(tensor, a, mode, nonlinearity, "uniform", generator)


def _kaiming(
    tensor: Tensor, a: float, mode: str, nonlinearity: str, distribution: str, generator: Random
) -> Tensor:
    if str(mode).lower() not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode!r} not supported, please use one of ['fan_in', 'fan_out']")
    gain = calculate_gain(nonlinearity, a)
    return variance_scaling_(tensor, gain * gain, mode, distribution, generator)


# --- by structure ---------------------------------------------------------------------------------


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Random = None) -> Tensor:
    """w = gain Q with a random Q, Q^T Q = I (Q Q^T = I if it is wide); further dimensions are
    flattened."""
    if tensor.ndim < 2:
        raise ValueError(
            "orthogonal_: only tensors with 2 or more dimensions are supported, got shape "
            f"{tuple(tensor.shape)}"
        )
    if tensor.numel() == 0:
        return tensor
    rows = tensor.shape[0]
    columns = tensor.numel() // rows
    if _is_given(tensor):
        return tensor
    with no_grad():
        shape = (rows, columns) if rows >= columns else (columns, rows)
        drawn = dtypes.float64 if tensor.dtype is dtypes.float64 else dtypes.float32
        q, r = qr(randn(*shape, generator=generator, dtype=drawn))
        # The signs make Q uniform over the orthogonal matrices.
        q = q * sign(diagonal(r))
        q = q if rows >= columns else q.mT
        tensor.copy_(gain * q.reshape(tuple(tensor.shape)))
    return tensor


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Random = None) -> Tensor:
    """Numbers from N(0, std^2), a fraction ``sparsity`` of each column set to 0 (rounded up)."""
    if tensor.ndim != 2:
        raise ValueError(
            f"sparse_: only tensors with 2 dimensions are supported, got shape "
            f"{tuple(tensor.shape)}"
        )
    if not 0 <= sparsity <= 1:
        raise ValueError(f"sparse_: expected sparsity between 0 and 1, got {sparsity}")
    rows, columns = tensor.shape
    count = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            tensor[randperm(rows, generator=generator)[:count], column] = 0
    return tensor


def self_normalizing_(tensor: Tensor, generator: Random = None) -> Tensor:
    """Random weights with sum over j of w[i, j] = 0 and sum over j of w[i, j]^2 = 1, exactly.

    With SELU units, mean 0 and variance 1 are then the fixed point of each layer.
    """
    fan_in, _ = fan_in_and_fan_out(tensor)
    if fan_in < 2:
        raise ValueError(
            "self_normalizing_: a unit needs at least 2 weights for them to sum to 0, got shape "
            f"{tuple(tensor.shape)}"
        )
    with no_grad():
        rest = _all_but_first(tensor.shape)
        tensor.normal_(generator=generator)
        tensor.sub_(tensor.mean(rest, keepdim=True))
        return tensor.div_(tensor.square().sum(rest, keepdim=True).sqrt())


def _all_but_first(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(range(1, len(shape)))
