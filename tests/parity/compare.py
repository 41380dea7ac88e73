"""The same call in both libraries: value, shape, dtype, gradients, and gradients of those."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule

torch = pytest.importorskip("torch")

__all__ = ["assert_agree", "random_choice", "refused_by_both"]

Function = Callable[..., Any]


def assert_agree(
    ours: Function, theirs: Function, inputs: Sequence[np.ndarray], second_order: bool = True
) -> None:
    """Asserts that two functions of float64 arrays agree, and their first two derivatives."""
    __tracebackhide__ = True
    first = derivatives(chainrule, chainrule.as_tensor, ours, inputs, second_order)
    second = derivatives(torch, torch.from_numpy, theirs, inputs, second_order)
    for a, b in zip(first, second, strict=True):
        assert tuple(a.shape) == tuple(b.shape)
        assert str(a.dtype).rpartition(".")[2] == str(b.dtype).rpartition(".")[2]
        scale = float(np.abs(b.detach().numpy()).max()) if b.numel() else 1.0
        assert_close(a, b, rtol=1e-9, atol=1e-10 * max(scale, 1.0))


def derivatives(
    library: Any, make: Function, function: Function, inputs: Sequence[np.ndarray], second: bool
) -> list[Any]:
    """The value, the gradient of a weighted sum of it, and the gradient of one of that."""
    r = np.random.default_rng(7)
    variables = [make(np.array(x)).requires_grad_() for x in inputs]

    def gradients(y: Any, create_graph: bool) -> list[Any]:
        parts = [p for p in y if p.requires_grad]
        if not parts:
            return [0 * v.detach() for v in variables]
        total = sum((p * make(r.normal(size=tuple(p.shape)))).sum() for p in parts)
        return list(
            library.autograd.grad(
                total, variables, create_graph=create_graph, materialize_grads=True
            )
        )

    value = function(*variables)
    if not value.requires_grad:
        return [value]
    slopes = gradients([value], True)
    return [value, *slopes, *(gradients(slopes, False) if second else [])]


def refused_by_both(ours: Function, theirs: Function, inputs: Sequence[np.ndarray]) -> bool:
    """Whether PyTorch refuses a call; then ours must, with an exception of the same kind."""
    try:
        theirs(*[torch.from_numpy(np.array(x)) for x in inputs])
    except (RuntimeError, ValueError, IndexError) as error:
        with pytest.raises((type(error), RuntimeError)):
            ours(*[chainrule.as_tensor(np.array(x)) for x in inputs])
        return True
    return False


def random_choice(r: np.random.Generator, low: int, high: int, nd: int) -> Any:
    """One number for all dimensions, or one for each."""
    numbers = tuple(int(n) for n in r.integers(low, high, size=nd))
    return numbers if r.random() < 0.6 else numbers[0]
