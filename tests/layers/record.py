"""One record per layer or loss: how it is made, what it is tried on, and whether PyTorch has it.

The registry-driven tests take from it: outputs, gradients of inputs and parameters, buffers and
state_dict against PyTorch in training and evaluation; gradcheck in both modes and second order;
vmap over the batch's parameters; repr, deepcopy and pickle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Layer"]


@dataclass(frozen=True)
class Layer:
    """``make(nn)`` builds the module from ``chainrule.nn`` or ``torch.nn``.

    ``inputs`` makes the arguments of the call from a NumPy generator, by the same rules as for
    operations: float64 arrays are differentiated, other arrays are constants, lists and tuples may
    contain arrays, everything else is passed as it is. ``call`` says how to call the module if not
    by ``module(*inputs)``; ``pick`` selects what is compared from the output.
    """

    name: str
    make: Callable[[Any], Any]
    inputs: Callable[[np.random.Generator], tuple[Any, ...]]
    torch: bool = True  # whether PyTorch has the same module
    random: bool = False  # random in training: only evaluation is compared by value
    differentiable: bool = True
    exact: bool = True  # False: the gradient in training takes for constant what is not
    second_order: bool = True
    vmap: bool = True  # False only where the size of the output depends on the values
    float32: bool = True  # False where float32 is too coarse for a comparison
    call: Callable[..., Any] | None = None
    pick: Callable[[Any], Any] | None = None
    same_repr: bool = True  # whether it prints as PyTorch's does
    note: str = ""

    @property
    def label(self) -> str:
        return f"{self.name}[{self.note}]" if self.note else self.name
