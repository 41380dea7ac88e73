"""Records of the primitive behind all normalizations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from samples.record import Sample

__all__ = ["SAMPLES", "affine", "normalized"]

NAME = "ops.layers.norm.normalized"


def normalized(
    x: Any, w: Any = 1.0, b: Any = 0.0, *, dim: tuple[int, ...], eps: float, center: bool = True
) -> Any:
    """As it is written in a book, in twice the precision."""
    wide = np.asarray(x, np.longdouble)
    mean = wide.mean(axis=dim, keepdims=True) if center else 0.0
    var = ((wide - mean) ** 2).mean(axis=dim, keepdims=True)
    out = (wide - mean) / np.sqrt(var + eps) * (1.0 if w is None else w)
    return (out + (0.0 if b is None else b)).astype(np.float64)


def affine(
    shape: tuple[int, ...], *more: tuple[int, ...]
) -> Callable[[np.random.Generator], tuple[Any, ...]]:
    """An input and, of the shapes given, weight and bias."""
    return lambda r: (2 * r.normal(size=shape) + 0.5, *[r.normal(size=s) for s in more])


def sample(note: str, args: Any, dim: tuple[int, ...], eps: float = 1e-5, **kwargs: Any) -> Sample:
    more = {"torch": ""} if "torch_call" not in kwargs else {}
    given = {k: kwargs.pop(k) for k in ("center",) if k in kwargs}
    return Sample(
        NAME, args, {"dim": dim, "eps": eps, **given}, normalized, note=note, **more, **kwargs
    )


def layer_norm(torch: Any, x: Any, *more: Any, eps: float) -> Any:
    return torch.nn.functional.layer_norm(x, x.shape[-1:], *more, eps=eps)


def shifted(r: np.random.Generator) -> tuple[Any, ...]:
    """Numbers whose mean is large against their deviations."""
    return (r.normal(size=(3, 6)) + 1e5,)


SAMPLES: list[Sample] = [
    sample("last", affine((3, 4)), (-1,), torch_call=layer_norm),
    sample("last, affine", affine((2, 3, 4), (4,), (4,)), (-1,), torch_call=layer_norm),
    sample("last, weight", affine((3, 4), (4,)), (-1,), torch_call=layer_norm),
    sample("batch", affine((5, 3)), (-2,)),
    sample("batch, affine", affine((5, 3), (3,), (3,)), (-2,)),
    sample("channels", affine((2, 3, 2, 2), (3, 1, 1), (3, 1, 1)), (-4, -2, -1)),
    sample("groups", affine((2, 2, 3, 4), (2, 3, 1), (2, 3, 1)), (-2, -1)),
    sample("bias alone", affine((3, 4), (4,)), (-1,), prepare=lambda x, b: (x, None, b)),
    sample("root mean square", affine((3, 4), (4,)), (-1,), center=False),
    sample("root mean square, no weight", affine((2, 3, 2)), (-2, -1), center=False),
    sample("large eps", affine((3, 4)), (-1,), eps=2.0),
    sample("everything", affine((3, 4)), (-2, -1)),
    sample("no rows", affine((0, 3), (3,), (3,)), (-1,)),
    sample("large mean", shifted, (-1,), float32=False, differentiable=False),
]
