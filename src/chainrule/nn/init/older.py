"""The initializers under the names they had before the underscore, which PyTorch keeps with a
warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import update_wrapper
from typing import Any, ParamSpec, TypeVar

from chainrule.nn.init.tensors import (
    constant_,
    dirac_,
    eye_,
    kaiming_normal_,
    kaiming_uniform_,
    normal_,
    orthogonal_,
    sparse_,
    uniform_,
    xavier_normal_,
    xavier_uniform_,
)

__all__ = [
    "constant",
    "dirac",
    "eye",
    "kaiming_normal",
    "kaiming_uniform",
    "normal",
    "orthogonal",
    "sparse",
    "uniform",
    "xavier_normal",
    "xavier_uniform",
]

P = ParamSpec("P")
R = TypeVar("R")


def _older(function: Callable[P, R]) -> Callable[P, R]:
    """A function under its name without the underscore: it says so and calls it."""
    new = function.__name__
    old = new.removesuffix("_")

    def renamed(*args: P.args, **kwargs: P.kwargs) -> Any:
        warnings.warn(
            f"nn.init.{old} is now deprecated in favor of nn.init.{new}",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    update_wrapper(renamed, function)
    renamed.__name__ = renamed.__qualname__ = old
    renamed.__module__ = __name__
    renamed.__doc__ = f"The older name of ``{new}``."
    return renamed


constant = _older(constant_)
dirac = _older(dirac_)
eye = _older(eye_)
kaiming_normal = _older(kaiming_normal_)
kaiming_uniform = _older(kaiming_uniform_)
normal = _older(normal_)
orthogonal = _older(orthogonal_)
sparse = _older(sparse_)
uniform = _older(uniform_)
xavier_normal = _older(xavier_normal_)
xavier_uniform = _older(xavier_uniform_)
