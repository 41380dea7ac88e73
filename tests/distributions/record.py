"""One record per family: its parameters, the same law in SciPy, and what must be refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import chainrule
from chainrule import distributions

__all__ = ["Family", "draws", "make", "offers", "tensors"]

Numbers = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Family:
    """``distributions.name(**params)``.

    ``params`` are float64 arrays, which become tensors, and settings that are passed as they are.
    ``scipy`` makes SciPy's law of one element's parameters (floats), or of the arrays where values
    are vectors; None where SciPy has none. ``bad`` are parameters that must be refused, each with
    a pattern of the message; ``outside`` is a value that does not lie in the support. ``fixed``
    names the parameters by which there is no derivative.
    """

    name: str
    params: Numbers
    scipy: Callable[..., Any] | None = None
    bad: list[tuple[Numbers, str]] = field(default_factory=list)
    outside: Any = None
    fixed: tuple[str, ...] = ()
    note: str = ""
    by_value: bool = True  # log_prob can be differentiated by any change of a value
    total: bool = True  # log_prob has a value outside the support, if asked not to check
    exact: bool = True  # the derivatives of samples are those of the mean
    torch_rtol: float = 1e-8  # how exact PyTorch is
    torch: bool = True  # PyTorch is exact enough to compare with

    @property
    def label(self) -> str:
        return f"{self.name}[{self.note}]" if self.note else self.name

    @property
    def variables(self) -> list[str]:
        """The parameters that are differentiated."""
        return [
            k for k, v in self.params.items() if isinstance(v, np.ndarray) and k not in self.fixed
        ]


def tensors(params: Numbers, library: Any = chainrule) -> dict[str, Any]:
    """The parameters as tensors of a library."""
    return {
        k: library.tensor(v.tolist(), dtype=library.float64) if isinstance(v, np.ndarray) else v
        for k, v in params.items()
    }


def make(family: Family, **changed: Any) -> Any:
    """The distribution of a record; some of its parameters may be replaced."""
    return getattr(distributions, family.name)(**(tensors(family.params) | changed))


def draws(family: Family, *sample_shape: int, seed: int = 0) -> Any:
    """Samples, the same in every test."""
    chainrule.manual_seed(seed)
    return make(family).sample(sample_shape)


def offers(d: Any, name: str) -> bool:
    """Whether a distribution of either library has a closed form for something."""
    try:
        value = getattr(d, name)
        if name in ("cdf", "icdf"):
            if d.event_shape:
                return False
            x = d.sample()
            value(x if name == "cdf" else x * 0 + 0.5)
        elif callable(value) and name != "log_prob":
            value()
    except NotImplementedError:
        return False
    return True
