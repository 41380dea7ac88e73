"""The smallest models of the courses, made of ``chainrule.nn``."""

from __future__ import annotations

import numpy as np

import chainrule
from chainrule import nn
from chainrule.func import functional_call, jacrev

DOUBLE = chainrule.float64


def test_neuron_is_constant_on_hyperplanes() -> None:
    """h(x) = g(w.x + b) is a ridge: moving along the hyperplane w.x = c changes nothing (M01)."""
    chainrule.manual_seed(0)
    neuron = nn.Sequential(nn.Linear(3, 1), nn.Sigmoid()).double()
    w = neuron[0].weight.detach().flatten()
    x = chainrule.randn(3, dtype=DOUBLE)
    along = chainrule.linalg.cross(w, chainrule.randn(3, dtype=DOUBLE))
    assert chainrule.allclose(neuron(x), neuron(x + 7 * along))
    assert not chainrule.allclose(neuron(x), neuron(x + w))
    gradient = jacrev(lambda v: neuron(v).sum())(x).detach()
    np.testing.assert_allclose(chainrule.linalg.cross(gradient, w).numpy(), 0, atol=1e-12)


def test_outputs_of_a_linear_network_are_independent() -> None:
    """a = W x is K linear neurons side by side (M04)."""
    chainrule.manual_seed(0)
    layer = nn.Linear(3, 4, bias=False).double()
    x = chainrule.randn(3, dtype=DOUBLE)
    j = jacrev(lambda w: functional_call(layer, {"weight": w}, (x,)))(layer.weight.detach())
    for k in range(4):
        expected = np.zeros((4, 3))
        expected[k] = x.numpy()
        np.testing.assert_allclose(j[k].numpy(), expected)
