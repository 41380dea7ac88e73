"""One record per operation: the inputs it is tried on and what to compare it with.

Everything the tests know about an operation is in its record: the registry-driven tests take from
it the value against a reference, both modes of differentiation, second order, adjointness, dtypes,
layouts, vmap, and the comparison with PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["Args", "Sample", "ints", "normal", "positive", "uniform"]


Args = Callable[[np.random.Generator], tuple[Any, ...]]


@dataclass(frozen=True)
class Sample:
    """``function(*args(rng), **kwargs)``.

    ``name`` is the public name, dotted below ``chainrule`` ("tanh", "linalg.inv"). ``args`` makes
    the arguments from a NumPy generator: float64 arrays stand for tensors that are differentiated,
    other arrays for tensors that are not, lists and tuples may contain arrays, everything else is
    passed as it is. ``reference`` is the same function on NumPy arrays (None: only PyTorch is the
    reference). ``torch`` is PyTorch's name for it if it differs, "" if PyTorch has none; if
    PyTorch's call differs in more than the name, ``torch_call`` takes the torch module and the
    arguments. ``pick`` selects what is compared and differentiated from the result (for example
    ``lambda out: out[0]``). ``prepare`` changes the arguments first, in every library alike (a
    function of symmetric matrices is given the symmetric part of any matrix).
    """

    name: str
    args: Callable[[np.random.Generator], tuple[Any, ...]]
    kwargs: dict[str, Any] = field(default_factory=dict)
    reference: Callable[..., Any] | None = None
    torch: str | None = None
    torch_call: Callable[..., Any] | None = None
    differentiable: bool = True  # False: integers, comparisons, choices
    second_order: bool = True  # False only where the function is piecewise linear by nature
    vmap: bool = True  # False only where the size of the output depends on the values
    float32: bool = True  # False where float32 is too coarse for a comparison
    pick: Callable[[Any], Any] | None = None
    prepare: Callable[..., tuple[Any, ...]] | None = None
    note: str = ""

    @property
    def label(self) -> str:
        return f"{self.name}[{self.note}]" if self.note else self.name


def normal(*shape: int) -> Callable[[np.random.Generator], tuple[Any, ...]]:
    """One standard normal input."""
    return lambda r: (r.normal(size=shape),)


def uniform(
    low: float, high: float, *shape: int
) -> Callable[[np.random.Generator], tuple[Any, ...]]:
    """One input between two limits."""
    return lambda r: (r.uniform(low, high, size=shape),)


def positive(*shape: int) -> Callable[[np.random.Generator], tuple[Any, ...]]:
    """One input well above zero."""
    return uniform(0.5, 2.0, *shape)


def ints(low: int, high: int, *shape: int) -> Callable[[np.random.Generator], tuple[Any, ...]]:
    """One input of int64."""
    return lambda r: (r.integers(low, high, size=shape),)
