"""PyTorch's names for what needs little or no work here, and for what has a newer name."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from chainrule.attributes import memory_format
from chainrule.nn.layers.conv import Conv2d, Conv3d
from chainrule.nn.layers.conv_transpose import ConvTranspose2d, ConvTranspose3d
from chainrule.nn.module.base import Module
from chainrule.nn.utils.clip_grad import Tensors, clip_grad_norm_
from chainrule.tensor import Tensor

__all__ = [
    "clip_grad_norm",
    "convert_conv2d_weight_memory_format",
    "convert_conv3d_weight_memory_format",
    "skip_init",
]

_Layer = TypeVar("_Layer", bound=Module)


def clip_grad_norm(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The old name of :func:`clip_grad_norm_`."""
    warnings.warn(
        "nn.utils.clip_grad_norm is now deprecated in favor of nn.utils.clip_grad_norm_",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def convert_conv2d_weight_memory_format(module: _Layer, memory_format: memory_format) -> _Layer:
    """Brings the weights of the 2d convolutions in a module into an order in memory."""
    return _arranged(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: _Layer, memory_format: memory_format) -> _Layer:
    """Brings the weights of the 3d convolutions in a module into an order in memory."""
    return _arranged(module, (Conv3d, ConvTranspose3d), memory_format)


def _arranged(module: _Layer, classes: tuple[type[Module], ...], format: memory_format) -> _Layer:
    for layer in module.modules():
        if isinstance(layer, classes):
            weight = layer.get_parameter("weight")
            weight.data = weight.data.to(memory_format=format)
    return module


def skip_init(module_cls: Callable[..., _Layer], *args: Any, **kwargs: Any) -> _Layer:
    """A module whose parameters may hold anything, to be loaded or set: here, its usual start.

    >>> from chainrule import nn
    >>> nn.utils.skip_init(nn.Linear, 3, 2)
    Linear(in_features=3, out_features=2, bias=True)
    """
    return module_cls(*args, **kwargs)
