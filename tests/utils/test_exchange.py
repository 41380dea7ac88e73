"""Capsules of memory, handles of hooks."""

from __future__ import annotations

import numpy as np

import chainrule
from chainrule import nn
from chainrule.utils.dlpack import from_dlpack, to_dlpack
from chainrule.utils.hooks import RemovableHandle


def test_a_capsule_shares_memory() -> None:
    x = chainrule.zeros(3)
    y = from_dlpack(to_dlpack(x))
    y.add_(1)
    assert x.tolist() == [1, 1, 1]
    a = np.zeros(2, np.float32)
    from_dlpack(a).add_(1)
    assert a.tolist() == [1, 1]


def test_hooks_return_handles() -> None:
    handle = nn.Linear(1, 1).register_forward_hook(lambda *_: None)
    assert isinstance(handle, RemovableHandle)
