"""Networks to compact, and what compacting must keep."""

from __future__ import annotations

from typing import Any

import numpy as np
from regularize.networks import F64

import chainrule
from chainrule import nn
from chainrule.regularize import prune


def randn(*shape: int, seed: int = 0) -> Any:
    return chainrule.randn(shape, dtype=F64, generator=chainrule.Generator().manual_seed(seed))


def unsettle(model: Any) -> Any:
    """In float64 and evaluation mode, with random moments, factors and shifts in its norms."""
    model = model.double().eval()
    for m in model.modules():
        if isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d)):
            for t in (m.running_mean, m.weight.detach(), m.bias.detach()):
                t.normal_()
            m.running_var.uniform_(0.5, 2)
    return model


def check(model: Any, x: Any, **settings: Any) -> Any:
    """The compact network, after comparing it on another input than the one it was made with."""
    small = prune.compact(model, x, **settings)
    other = randn(*x.shape, seed=9)
    with chainrule.no_grad():
        a, b = model(other), small(other)
    for p, q in zip(_flat(a), _flat(b), strict=True):
        np.testing.assert_allclose(q.numpy(), p.numpy(), rtol=1e-10, atol=1e-12)
    return small


def _flat(out: Any) -> list[Any]:
    return [t for o in out for t in _flat(o)] if isinstance(out, tuple) else [out]
