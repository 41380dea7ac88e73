"""Which variant of resilient propagation PyTorch's Rprop is: iRprop-."""

from __future__ import annotations

import numpy as np
import pytest
from optim.traces import GRADIENTS, START, follow, parameter

from chainrule import optim

torch = pytest.importorskip("torch")


def test_pytorchs_rprop_is_irprop_minus() -> None:
    w = torch.tensor(START, requires_grad=True)
    theirs, expected = torch.optim.Rprop([w], lr=0.1), []
    for g in GRADIENTS:
        w.grad = torch.tensor(g)
        theirs.step()
        expected.append(w.detach().numpy().copy())
    for cls in (optim.IRpropMinus, optim.RpropMinus, optim.RpropPlus):
        p = parameter()
        difference = np.abs(follow(cls([p], lr=0.1), p) - np.array(expected)).max()
        assert (difference < 1e-12) == (cls is optim.IRpropMinus)
