"""Initializers: of tensors (PyTorch's ``nn.init`` and the courses' own) and of whole models."""

from __future__ import annotations

from typing import Any

from chainrule.absent import absent
from chainrule.nn.init.tensors import (
    calculate_gain,
    constant_,
    dirac_,
    eye_,
    fan_in_and_fan_out,
    kaiming_normal_,
    kaiming_uniform_,
    lecun_normal_,
    lecun_uniform_,
    normal_,
    ones_,
    orthogonal_,
    self_normalizing_,
    sparse_,
    trunc_normal_,
    uniform_,
    variance_scaling_,
    xavier_normal_,
    xavier_uniform_,
    zeros_,
)
from chainrule.nn.init.older import (
    constant,
    dirac,
    eye,
    kaiming_normal,
    kaiming_uniform,
    normal,
    orthogonal,
    sparse,
    uniform,
    xavier_normal,
    xavier_uniform,
)
from chainrule.nn.init.variance import Propagation, gain, preserve_variance_, propagation
from chainrule.nn.init.models import (
    bias_to_mean_,
    pretrain_layerwise,
    symmetric_units,
    unit_variance_,
)

__all__ = [
    "Propagation",
    "bias_to_mean_",
    "calculate_gain",
    "constant",
    "constant_",
    "dirac",
    "dirac_",
    "eye",
    "eye_",
    "fan_in_and_fan_out",
    "gain",
    "kaiming_normal",
    "kaiming_normal_",
    "kaiming_uniform",
    "kaiming_uniform_",
    "lecun_normal_",
    "lecun_uniform_",
    "normal",
    "normal_",
    "ones_",
    "orthogonal",
    "orthogonal_",
    "preserve_variance_",
    "pretrain_layerwise",
    "propagation",
    "self_normalizing_",
    "sparse",
    "sparse_",
    "symmetric_units",
    "trunc_normal_",
    "uniform",
    "uniform_",
    "unit_variance_",
    "variance_scaling_",
    "xavier_normal",
    "xavier_normal_",
    "xavier_uniform",
    "xavier_uniform_",
    "zeros_",
]

ABSENT = {"Tensor": "it is chainrule.Tensor"}


def __getattr__(name: str) -> Any:
    raise absent(__name__, name, ABSENT)
