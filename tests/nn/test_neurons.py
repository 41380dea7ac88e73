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


def test_binary_head_is_linear_in_the_log_odds() -> None:
    """log P(1|x) / P(0|x) = w.f(x) + b (M11)."""
    chainrule.manual_seed(0)
    features = nn.Sequential(nn.Linear(2, 5), nn.Tanh()).double()
    head = nn.Linear(5, 1).double()
    x = chainrule.randn(7, 2, dtype=DOUBLE)
    p = head(features(x)).sigmoid()
    assert chainrule.allclose((p / (1 - p)).log(), head(features(x)))


def test_multi_class_head_sums_to_one_and_ignores_a_common_shift() -> None:
    """P(k|x) = softmax_k(w_k.f(x) + b_k) (M12)."""
    chainrule.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 5), nn.Tanh(), nn.Linear(5, 3)).double()
    scores = net(chainrule.randn(7, 2, dtype=DOUBLE))
    p = nn.functional.softmax(scores, dim=1)
    assert chainrule.allclose(p.sum(1), chainrule.ones(7, dtype=DOUBLE))
    assert chainrule.allclose(p, nn.functional.softmax(scores + 3, dim=1))
    odds = (p[:, 0] / p[:, 1]).log()
    assert chainrule.allclose(odds, scores[:, 0] - scores[:, 1])


def test_xor_from_two_and_neurons() -> None:
    """h1 = x1 and not x2, h2 = not x1 and x2, y = h1 or h2: linear in the (h1, h2) plane (M14)."""
    hidden = nn.Sequential(nn.Linear(2, 2), nn.BinaryStep())
    output = nn.Sequential(nn.Linear(2, 1), nn.BinaryStep())
    hidden[0].load_state_dict(
        {"weight": chainrule.tensor([[1.0, -1], [-1, 1]]), "bias": chainrule.tensor([-0.5, -0.5])}
    )
    output[0].load_state_dict(
        {"weight": chainrule.tensor([[1.0, 1]]), "bias": chainrule.tensor([-0.5])}
    )
    x = chainrule.tensor([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    assert hidden(x).tolist() == [[0, 0], [0, 1], [1, 0], [0, 0]]
    assert output(hidden(x)).flatten().tolist() == [0, 1, 1, 0]


def test_linear_model_on_a_feature_map() -> None:
    """h = g(w.phi(x) + b): a circle is a straight line in the squares of the coordinates (M16)."""
    chainrule.manual_seed(0)
    x = chainrule.randn(200, 2)
    inside = ((x**2).sum(1) < 1).float().unsqueeze(1)
    model = nn.Linear(2, 1)
    for _ in range(2000):
        loss = nn.functional.binary_cross_entropy_with_logits(model(x**2), inside)
        model.zero_grad()
        loss.backward()
        with chainrule.no_grad():
            for p in model.parameters():
                p -= 1.0 * p.grad
    right = ((model(x**2) > 0).float() == inside).float().mean().item()
    assert right > 0.97
