"""Links that pass a layer by (L19, M26)."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import nn
from chainrule.tensor import Tensor, of_array


def test_residual_adds_its_input() -> None:
    f = nn.Linear(3, 3)
    x = chainrule.randn(4, 3)
    assert_close(nn.Residual(f)(x), f(x) + x, rtol=0, atol=0)
    g, p = nn.Linear(3, 2), nn.Linear(3, 2)
    assert_close(nn.Residual(g, p)(x), g(x) + p(x), rtol=0, atol=0)


def test_gradient_passes_a_residual_block_that_does_nothing() -> None:
    f = nn.Linear(3, 3)
    with chainrule.no_grad():
        for p in f.parameters():
            p.zero_()
    x = chainrule.randn(2, 3, requires_grad=True)
    nn.Residual(f)(x).sum().backward()
    assert_close(x.grad, np.ones((2, 3), "float32"), rtol=0, atol=0)


@pytest.mark.parametrize("depth", [200])
def test_two_hundred_residual_layers_train_a_step(depth: int) -> None:
    """Without recursion, without overflow, and every layer gets a gradient."""
    chainrule.manual_seed(0)
    layers = [
        nn.Residual(nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)))
        for _ in range(depth)
    ]
    model = nn.Sequential(*layers, nn.LayerNorm(8), nn.Linear(8, 3))
    x, y = chainrule.randn(16, 8), chainrule.randint(3, (16,))

    def loss() -> Tensor:
        return chainrule.cross_entropy(model(x), y)

    first = loss()
    first.backward()
    sizes = [float(layer.module[1].weight.grad.abs().max()) for layer in layers]
    assert np.isfinite(sizes).all()
    assert min(sizes) > 0
    with chainrule.no_grad():
        for p in model.parameters():
            p -= 1e-3 * p.grad
    assert float(loss()) < float(first)


def test_without_links_the_same_depth_gets_no_gradient() -> None:
    """What the links are for: the plain chain of 200 layers does not reach its first one."""
    chainrule.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(200)]
    x = chainrule.randn(4, 8)
    nn.Sequential(*layers)(x).sum().backward()
    assert float(layers[0][0].weight.grad.abs().max()) < 1e-20


def test_block_has_the_names_of_torchvision_s() -> None:
    block = nn.ResidualBlock(4, 8, stride=2)
    assert [name for name, _ in block.named_children()] == [
        "conv1",
        "bn1",
        "relu",
        "conv2",
        "bn2",
        "downsample",
    ]
    assert "downsample.1.running_var" in block.state_dict()
    assert nn.ResidualBlock(4, 4).downsample is None


def test_block_against_pytorch() -> None:
    torch = pytest.importorskip("torch")

    class BasicBlock(torch.nn.Module):  # as in torchvision
        def __init__(self) -> None:
            super().__init__()
            t = torch.nn
            self.conv1 = t.Conv2d(2, 3, 3, 2, 1, bias=False)
            self.bn1 = t.BatchNorm2d(3)
            self.relu = t.ReLU(inplace=True)
            self.conv2 = t.Conv2d(3, 3, 3, 1, 1, bias=False)
            self.bn2 = t.BatchNorm2d(3)
            self.downsample = t.Sequential(t.Conv2d(2, 3, 1, 2, bias=False), t.BatchNorm2d(3))

        def forward(self, x):  # type: ignore[no-untyped-def]
            out = self.relu(self.bn1(self.conv1(x)))
            return self.relu(self.bn2(self.conv2(out)) + self.downsample(x))

    theirs = BasicBlock().double()
    ours = nn.ResidualBlock(2, 3, stride=2).double()
    ours.load_state_dict(theirs.state_dict())
    x = np.random.default_rng(0).normal(size=(3, 2, 5, 5))
    for training in (True, False):
        out = ours.train(training)(of_array(x))
        expected = theirs.train(training)(torch.from_numpy(x))
        assert_close(out, expected, rtol=1e-9, atol=1e-11)
        ours.zero_grad()
        theirs.zero_grad()
        (out * out).sum().backward()
        (expected * expected).sum().backward()
        for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
            assert_close(a.grad, b.grad, rtol=1e-8, atol=1e-9)


def test_a_closed_gate_passes_the_input() -> None:
    x = chainrule.randn(4, 3)
    assert_close(nn.Highway(3, gate_bias=-50.0)(x), x.numpy(), rtol=1e-6, atol=1e-6)
    layer = nn.Highway(3, chainrule.tanh, gate_bias=50.0)
    assert_close(layer(x), chainrule.tanh(layer.hidden(x)), rtol=1e-5, atol=1e-6)


def test_concatenation_keeps_the_input_in_front() -> None:
    layer, x = nn.SkipConcat(nn.Linear(3, 2), dim=-1), chainrule.randn(5, 4, 3)
    out = layer(x)
    assert out.shape == (5, 4, 5)
    assert_close(out[..., :3], x, rtol=0, atol=0)


def test_shapes_that_would_broadcast_are_refused() -> None:
    with pytest.raises(ValueError, match=r"Residual: .*\(4, 1\).*\(4, 3\)"):
        nn.Residual(nn.Linear(3, 1))(chainrule.ones(4, 3))
    with pytest.raises(ValueError, match="ResidualBlock: the branch gives shape"):
        nn.ResidualBlock(2, 3, downsample=nn.Identity())(chainrule.ones(1, 2, 3, 3))
