"""Layers that normalize within a sample: its features, groups of channels, neighboring channels."""

from __future__ import annotations

import math
from collections.abc import Sequence

from chainrule.backend import K
from chainrule.nn.module.base import Module
from chainrule.nn.parameter import Parameter
from chainrule.ops.elementwise.derived import clamp_min
from chainrule.ops.creation.patterns import empty
from chainrule.ops.layers.norm import normalized
from chainrule.ops.shape.padding import pad
from chainrule.ops.linalg.norms import norm
from chainrule.ops.core.primitive import REGISTRY
from chainrule.tensor import Tensor, check_layout
from chainrule.typing import DType, Device, MaybeNone, Sizes

__all__ = [
    "GroupNorm",
    "LayerNorm",
    "LocalResponseNorm",
    "RMSNorm",
    "group_norm",
    "layer_norm",
    "local_response_norm",
    "normalize",
    "rms_norm",
]


# --- functions ------------------------------------------------------------------------------------


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """weight * (x - mean) / sqrt(var + eps) + bias, with the moments of each sample.

    They are taken over the last dimensions, whose sizes are ``normalized_shape``.
    """
    dim = _last_dims("layer_norm", input, normalized_shape, weight, bias)
    return normalized(input, weight, bias, dim=dim, eps=eps)


def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """weight * x / sqrt(mean(x^2) + eps) over the last dimensions.

    ``eps`` is the rounding error of the input's type if it is not given. A complex x is squared as
    it is, as in PyTorch.
    """
    dim = _last_dims("rms_norm", input, normalized_shape, weight, kinds="fc")
    small = K.rounding_error(input.array.dtype) if eps is None else eps
    return normalized(input, weight, None, dim=dim, eps=small, center=False)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """weight * (x - mean) / sqrt(var + eps) + bias, with the moments of groups of channels."""
    if input.ndim < 2:
        raise RuntimeError(
            f"group_norm: Expected at least 2 dimensions for input tensor but received {input.ndim}"
        )
    check_type("group_norm", input, weight, bias)
    shape = tuple(input.array.shape)
    if num_groups < 1 or shape[1] % num_groups:
        raise RuntimeError(
            "group_norm: Expected number of channels in input to be divisible by num_groups, but "
            f"got input of shape {shape} and num_groups={num_groups}"
        )
    if shape[0] * shape[1] // num_groups * math.prod(shape[2:]) == 1:
        raise ValueError(
            "group_norm: Expected more than 1 value per channel when training, got input size "
            f"{shape} with num_groups={num_groups}"
        )
    for name, t in (("weight", weight), ("bias", bias)):
        if t is not None and t.array.shape != (shape[1],):
            raise RuntimeError(
                f"group_norm: Expected {name} to be a vector of size equal to the number of "
                f"channels in input, but got {name} of shape {tuple(t.shape)} and input of shape "
                f"{shape}"
            )
    apart = (num_groups, shape[1] // num_groups, 1)
    reshape = REGISTRY["reshape"]  # the sizes are known to fit
    w, b = [None if t is None else reshape(t, shape=apart) for t in (weight, bias)]
    x = reshape(input, shape=(shape[0], *apart[:2], math.prod(shape[2:])))
    return reshape(normalized(x, w, b, dim=(-2, -1), eps=eps), shape=shape)


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """x / (k + alpha * mean(x^2 over ``size`` channels around))^beta; channels are dimension 1."""
    if input.ndim < 3:
        raise ValueError(
            "local_response_norm: Expected 3D or higher dimensionality input (got "
            f"{input.ndim} dimensions)"
        )
    if size < 1:
        raise ValueError(f"local_response_norm: size must be at least 1, got {size}")
    if not input.numel():
        return input
    channels, behind = input.shape[1], (0, 0) * (input.ndim - 2)
    squares = pad(input * input, (*behind, size // 2, (size - 1) // 2))
    total = squares[:, :channels]
    for i in range(1, size):
        total = total + squares[:, i : i + channels]
    return input / (k + (alpha / size) * total) ** beta


def normalize(
    input: Tensor, p: float = 2.0, dim: int | Sequence[int] = 1, eps: float = 1e-12
) -> Tensor:
    """x / max(|x|_p, eps) along ``dim``.

    >>> from chainrule import nn, tensor
    >>> nn.functional.normalize(tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    return input / clamp_min(norm(input, p, dim, keepdim=True), eps)


# --- checks ---------------------------------------------------------------------------------------


def check_type(op: str, input: Tensor, *others: Tensor | None, kinds: str = "f") -> None:
    """Refuses what is not a floating-point tensor, and parameters of another type."""
    if not isinstance(input, Tensor):
        check_layout(op, input)
        raise TypeError(f"{op}(): argument 'input' must be Tensor, not {type(input).__name__}")
    if input.array.dtype.kind not in kinds and not input.is_floating_point():
        raise NotImplementedError(
            f"{op}: not implemented for {input.dtype}; convert the input with .float()"
        )
    for t in others:
        if t is not None and t.array.dtype != input.array.dtype:
            raise RuntimeError(
                f"{op}: mixed dtype: all inputs must share same datatype, but the input is "
                f"{input.dtype} and a parameter is {t.dtype}; convert one with .to(dtype)"
            )


def _last_dims(
    op: str,
    input: Tensor,
    normalized_shape: Sequence[int],
    *parameters: Tensor | None,
    kinds: str = "f",
) -> tuple[int, ...]:
    """The dimensions that ``normalized_shape`` names, after all checks."""
    check_type(op, input, *parameters, kinds=kinds)
    wanted = tuple(normalized_shape)
    if not wanted:
        raise RuntimeError(
            f"{op}: Expected normalized_shape to be at least 1-dimensional, i.e., containing at "
            "least one element, but got normalized_shape = []"
        )
    shape = input.array.shape
    if shape[-len(wanted) :] != wanted:
        raise RuntimeError(
            f"{op}: Given normalized_shape={list(wanted)}, expected input with shape "
            f"[*, {', '.join(map(str, wanted))}], but got input of size {list(shape)}"
        )
    for t in parameters:
        if t is not None and t.array.shape != wanted:
            raise RuntimeError(
                f"{op}: Expected weight and bias to be of same shape as normalized_shape, but got "
                f"a parameter of shape {tuple(t.shape)} and normalized_shape = {list(wanted)}"
            )
    return tuple(range(-len(wanted), 0))


# --- layers ---------------------------------------------------------------------------------------


class Affine(Module):
    """What a normalization learns: a factor, 1 at first, and a shift, 0 at first."""

    weight: Parameter | MaybeNone
    bias: Parameter | MaybeNone
    eps: float | MaybeNone

    def _make_affine(
        self,
        shape: Sizes,
        weight: bool,
        bias: bool,
        device: Device | None,
        dtype: DType | None,
    ) -> None:
        for name, wanted in (("weight", weight), ("bias", weight and bias)):
            value = Parameter(empty(shape, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, value)

    def reset_parameters(self) -> None:
        """The factor to 1, the shift to 0."""
        for p, value in ((self.weight, 1.0), (self.bias, 0.0)):
            if p is not None:
                p.detach().fill_(value)


def _shape_of(normalized_shape: int | Sequence[int]) -> tuple[int, ...]:
    return (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)


class LayerNorm(Affine):
    """Normalization of each sample: y = weight * (x - mean) / sqrt(var + eps) + bias.

    Shape: (N, *) with the last sizes ``normalized_shape``, the same out.

    Args:
        normalized_shape: the last sizes of the input, over which the moments are taken.
        eps: added to the variance.
        elementwise_affine: whether to learn weight and bias.
        bias: whether to learn the bias, if elementwise_affine.

    >>> from chainrule import nn, tensor
    >>> nn.LayerNorm(2)(tensor([[1.0, 3.0]])).detach()
    tensor([[-1.0000,  1.0000]])
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Device | None = None,
        dtype: DType | None = None,
    ):
        super().__init__()
        self.normalized_shape = _shape_of(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._make_affine(self.normalized_shape, elementwise_affine, bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class RMSNorm(Affine):
    """Scaling of each sample to unit mean square: y = weight * x / sqrt(mean(x^2) + eps).

    Shape: (N, *) with the last sizes ``normalized_shape``, the same out.

    Args:
        normalized_shape: the last sizes of the input, over which the mean is taken.
        eps: added to the mean of squares; None for the rounding error of the input's type.
        elementwise_affine: whether to learn the weight.

    >>> from chainrule import nn, tensor
    >>> nn.RMSNorm(2)(tensor([[1.0, 7.0]])).detach()
    tensor([[0.2000, 1.4000]])
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Device | None = None,
        dtype: DType | None = None,
    ):
        super().__init__()
        self.normalized_shape = _shape_of(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        value = empty(self.normalized_shape, device=device, dtype=dtype)
        self.register_parameter("weight", Parameter(value) if elementwise_affine else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """The factor to 1."""
        if self.weight is not None:
            self.weight.detach().fill_(1.0)

    def forward(self, input: Tensor) -> Tensor:
        return rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class GroupNorm(Affine):
    """Normalization of groups of channels: y = weight * (x - mean) / sqrt(var + eps) + bias.

    Shape: (N, C, *), the same out.

    Args:
        num_groups: how many groups the channels of a sample are divided into.
        num_channels: C.
        eps: added to the variance.
        affine: whether to learn weight and bias, one for each channel.
        bias: whether to learn the bias, if affine.

    >>> from chainrule import nn, ones
    >>> nn.GroupNorm(2, 6)(ones(5, 6, 4, 4)).shape
    chainrule.Size([5, 6, 4, 4])
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Device | None = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ):
        super().__init__()
        if num_groups < 1 or num_channels % num_groups:
            raise ValueError(
                f"GroupNorm: num_channels ({num_channels}) must be divisible by num_groups "
                f"({num_groups})"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._make_affine(num_channels, affine, bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class LocalResponseNorm(Module):
    """Normalization across channels: y = x / (k + alpha * mean(x^2 over the channels around))^beta.

    Shape: (N, C, *), the same out.

    Args:
        size: how many neighboring channels count; beyond the border they are 0.
        alpha: factor of the mean.
        beta: exponent.
        k: what is added.

    >>> from chainrule import nn, ones
    >>> nn.LocalResponseNorm(2)(ones(5, 6, 4, 4)).shape
    chainrule.Size([5, 6, 4, 4])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0):
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
