"""Records of the functions that change the shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from samples.record import Sample, ints, normal

__all__ = ["SAMPLES"]

Args = Callable[[np.random.Generator], tuple[Any, ...]]


def then(args: Args, *more: Any) -> Args:
    """An input, then arguments that are the same in every call."""
    return lambda r: (*args(r), *more)


def several(*shapes: tuple[int, ...]) -> Args:
    """A list of inputs of these shapes."""
    return lambda r: ([r.normal(size=s) for s in shapes],)


def linear(*args: Any, **kwargs: Any) -> Sample:
    """All of these are linear: their second derivative is zero."""
    return Sample(*args, second_order=False, **kwargs)


def flattened(x: np.ndarray, start: int, end: int) -> np.ndarray:
    end %= x.ndim
    return x.reshape(*x.shape[:start], -1, *x.shape[end + 1 :])


def method(name: str) -> Callable[..., Any]:
    """What PyTorch has as a method only."""
    return lambda torch, x, *args: getattr(x, name)(*args)


SAMPLES: list[Sample] = [
    linear("reshape", then(normal(3, 4), (2, 6)), reference=np.reshape),
    linear("reshape", then(normal(3, 4), (2, -1)), reference=np.reshape, note="-1"),
    linear("reshape", then(normal(1, 1), ()), reference=np.reshape, note="to no dimensions"),
    linear("reshape", then(normal(), (1, 1)), reference=np.reshape, note="from no dimensions"),
    linear("reshape", then(normal(0, 3), (3, 0, 2)), reference=np.reshape, note="empty"),
    linear(
        "reshape",
        then(ints(0, 9, 6), (3, 2)),
        reference=np.reshape,
        differentiable=False,
        note="integers",
    ),
    linear("view", then(normal(3, 4), (4, 3)), reference=np.reshape, torch_call=method("view")),
    linear(
        "view", then(normal(3, 4), -1), reference=np.reshape, torch_call=method("view"), note="-1"
    ),
    linear("permute", then(normal(2, 3, 4), (2, 0, 1)), reference=np.transpose),
    linear("permute", then(normal(2, 3, 4), (-1, 0, -2)), reference=np.transpose, note="negative"),
    linear("permute", then(normal(), ()), reference=np.transpose, note="no dimensions"),
    linear("transpose", then(normal(2, 3, 4), 0, 2), reference=np.swapaxes),
    linear("transpose", then(normal(2, 3, 4), -1, -2), reference=np.swapaxes, note="negative"),
    linear("transpose", then(normal(3), 0, 0), reference=np.swapaxes, note="the same"),
    linear("swapaxes", then(normal(2, 3), 0, 1), reference=np.swapaxes),
    linear("movedim", then(normal(2, 3, 4), 0, -1), reference=np.moveaxis),
    linear("movedim", then(normal(2, 3, 4), (0, 2), (1, 0)), reference=np.moveaxis, note="several"),
    linear("squeeze", normal(1, 3, 1, 2), reference=np.squeeze),
    linear("squeeze", then(normal(1, 3, 1), 0), reference=lambda x, d: x[0], note="dim"),
    linear("squeeze", then(normal(1, 3, 1), 1), reference=lambda x, d: x, note="not of size 1"),
    linear("squeeze", then(normal(1, 3, 1), (0, -1)), reference=np.squeeze, note="dims"),
    linear("unsqueeze", then(normal(3, 4), 1), reference=np.expand_dims),
    linear("unsqueeze", then(normal(3, 4), -1), reference=np.expand_dims, note="negative"),
    linear("unsqueeze", then(normal(), 0), reference=np.expand_dims, note="no dimensions"),
    linear("flatten", normal(2, 3, 2), reference=np.ravel),
    linear(
        "flatten",
        then(normal(2, 3, 2), 1),
        reference=lambda x, s: flattened(x, s, -1),
        note="start",
    ),
    linear("flatten", then(normal(2, 3, 2), 0, -2), reference=flattened, note="end"),
    linear("flatten", normal(), reference=np.ravel, note="no dimensions"),
    linear(
        "expand",
        then(normal(3, 1), 3, 4),
        reference=lambda x, *s: np.broadcast_to(x, s),
        torch_call=method("expand"),
    ),
    linear(
        "expand",
        then(normal(3, 1), (2, -1, 4)),
        torch_call=method("expand"),
        note="-1",
        reference=lambda x, s: np.broadcast_to(x, (2, 3, 4)),
    ),
    linear(
        "expand",
        then(normal(), 2, 2),
        reference=lambda x, *s: np.broadcast_to(x, s),
        torch_call=method("expand"),
        note="no dimensions",
    ),
    linear(
        "expand",
        then(normal(1, 3), 0, 3),
        reference=lambda x, *s: np.broadcast_to(x, s),
        torch_call=method("expand"),
        note="empty",
    ),
    linear("cat", several((2, 3), (1, 3), (3, 3)), reference=np.concatenate),
    linear("cat", then(several((2, 3), (2, 1)), -1), reference=np.concatenate, note="last"),
    linear("cat", several((2, 3), (0, 3)), reference=np.concatenate, note="empty"),
    linear("cat", several((0,), (2, 3)), reference=lambda xs: xs[1], note="legacy empty"),
    linear("cat", several((4,)), reference=np.concatenate, note="one"),
    linear(
        "cat",
        lambda r: ([r.normal(size=2), r.integers(0, 5, size=3)],),
        note="mixed types",
        reference=np.concatenate,
    ),
    linear("stack", several((2, 3), (2, 3)), reference=np.stack),
    linear("stack", then(several((2, 3), (2, 3), (2, 3)), -1), reference=np.stack, note="last"),
    linear("stack", several((), ()), reference=np.stack, note="no dimensions"),
]
