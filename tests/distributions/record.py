"""One record per family: its parameters, the same law in SciPy, and what must be refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import chainrule
from chainrule import distributions

__all__ = ["Family", "draws", "make", "tensors"]

Numbers = Mapping[str, Any]


@dataclass(frozen=True)
class Family:
    """``distributions.name(**params)``.

    ``params`` are float64 arrays, which become tensors, and settings that are passed as they are.
    ``scipy`` makes SciPy's law of one element's parameters (floats), or of the arrays where values
    are vectors; None where SciPy has none. ``bad`` are parameters that must be refused, each with
    a pattern of the message; ``outside`` is a value that does not lie in the support. ``fixed``
    names the parameters by which there is no derivative. ``values`` are where the density is
    compared; without them, samples are.
    """

    name: str
    params: Numbers
    scipy: Callable[..., Any] | None = None
    bad: list[tuple[Numbers, str]] = field(default_factory=list)
    outside: float | list[float] | None = None
    fixed: tuple[str, ...] = ()
    values: Any = None
    note: str = ""
    torch: bool = True  # PyTorch has it

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
    """The values of a record, or samples."""
    if family.values is not None:
        return chainrule.tensor(np.asarray(family.values, np.float64))
    chainrule.manual_seed(seed)
    return make(family).sample(sample_shape)
