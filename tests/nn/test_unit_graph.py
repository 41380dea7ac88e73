"""Networks given unit by unit: against a loop over the units, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import nn
from chainrule.ops.core.apply import watching


def random_links(seed: int, units: int = 9) -> list[tuple[int, int]]:
    """A graph without cycles whose unit numbers say nothing about the order."""
    r = np.random.default_rng(seed)
    name = r.permutation(units)
    pairs = [(i, j) for i in range(units) for j in range(i) if r.random() < 0.5]
    return [(int(name[j]), int(name[i])) for i, j in pairs] or [(0, 1)]


def by_units(net: Any, x: Any) -> Any:
    """One unit after the other, as the equations say."""
    weights = dict(zip(net.links, net.weight.detach().numpy(), strict=True))
    bias = dict(zip(net.computed, net.bias.detach().numpy(), strict=True))
    values = {unit: x[:, n] for n, unit in enumerate(net.layers[0])}
    while len(values) < len(net.layers[0]) + len(net.computed):
        for unit in net.computed:
            sources = [j for j, i in net.links if i == unit]
            if unit not in values and all(j in values for j in sources):
                s = bias[unit] + sum(weights[j, unit] * values[j] for j in sources)
                values[unit] = s if unit in net.outputs else np.tanh(s)
    return np.stack([values[unit] for unit in net.outputs], axis=1)


@pytest.mark.parametrize("seed", range(12))
def test_layers_give_what_units_give(seed: int) -> None:
    chainrule.manual_seed(seed)
    net = nn.UnitGraph(random_links(seed)).double()
    x = np.random.default_rng(seed).normal(size=(4, len(net.layers[0])))
    assert_close(net(chainrule.tensor(x)).detach(), by_units(net, x))


def test_every_link_leads_to_a_later_layer() -> None:
    """Erratum 97: a weight is zero where the source's layer is not before the target's. The printed
    rule would leave no weight at all."""
    net = nn.UnitGraph(random_links(3))
    layer = {unit: n for n, units in enumerate(net.layers) for unit in units}
    assert all(layer[source] < layer[target] for source, target in net.links)
    for target in range(len(net.layers)):
        for source in range(target, len(net.layers)):
            assert not net.matrix(target, source).detach().numpy().any()
    linked = sum(
        int((net.matrix(t, s).detach().numpy() != 0).sum())
        for t in range(len(net.layers))
        for s in range(t)
    )
    assert linked == len(net.links)


def test_layers_without_shortcuts_are_a_perceptron() -> None:
    net = nn.UnitGraph.from_layers([3, 4, 2])
    other = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    other[0].weight.detach().copy_(net.matrix(1, 0).detach())
    other[2].weight.detach().copy_(net.matrix(2, 1).detach())
    other[0].bias.detach().copy_(net.bias[:4].detach())
    other[2].bias.detach().copy_(net.bias[4:].detach())
    x = chainrule.randn(5, 3)
    assert_close(net(x).detach(), other(x).detach(), rtol=1e-5, atol=1e-6)
    assert sum(p.numel() for p in net.parameters()) == sum(p.numel() for p in other.parameters())


def test_shortcuts_link_all_later_layers() -> None:
    net = nn.UnitGraph.from_layers([2, 3, 1], shortcuts=True)
    assert len(net.links) == 2 * 3 + 2 * 1 + 3 * 1
    assert [len(layer) for layer in net.layers] == [2, 3, 1]


def test_a_mask_says_which_unit_sees_which() -> None:
    mask = chainrule.tensor([[0, 0, 0], [0, 0, 0], [1, 1, 0]])
    assert nn.UnitGraph.from_mask(mask, bias=False).links == [(0, 2), (1, 2)]


def operations(net: nn.Module, x: chainrule.Tensor) -> list[str]:
    """The operations of a forward pass; the backward pass has one or two for each."""
    names: list[str] = []

    def note(op: Any, inputs: Any, params: Any, result: Any) -> None:
        names.append(op.name)

    with watching(note):
        net(x)
    return names


def test_work_grows_with_the_links_and_not_with_the_units() -> None:
    """M10: one product for each pair of layers, however many units they have."""
    narrow, wide = (
        operations(nn.UnitGraph.from_layers([n] * 4, shortcuts=True), chainrule.ones(2, n))
        for n in (4, 40)
    )
    assert narrow == wide
    assert wide.count("linear") == 6


def test_xor_with_one_hidden_unit_and_shortcuts() -> None:
    """x1 + x2 - 2 [x1 + x2 > 1.5] needs the links past the hidden unit."""
    step = lambda s: (s > 0).to(s.dtype)  # noqa: E731
    net = nn.UnitGraph([(0, 2), (1, 2), (0, 3), (1, 3), (2, 3)], activation=step)
    net.weight.detach().copy_(chainrule.tensor([1.0, 1.0, 1.0, 1.0, -2.0]))
    net.bias.detach().copy_(chainrule.tensor([-1.5, 0.0]))
    x = chainrule.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    assert net(x)[:, 0].tolist() == [0, 1, 1, 0]


def test_output_activation() -> None:
    net = nn.UnitGraph([(0, 1), (1, 2), (0, 3)], output_activation=chainrule.sigmoid)
    out = net(chainrule.randn(50, 1)).detach().numpy()
    assert ((out > 0) & (out < 1)).all()


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ([], "there are no links"),
        ([(0, 1), (1, 2), (2, 1)], r"the links make a cycle through some of the units \[1, 2\]"),
        ([(0, 0)], "the links make a cycle"),
        ([(0, 1), (0, 1)], r"the link \(0, 1\) is given more than once"),
        ([(-1, 0)], r"units are numbered from 0, got the link \(-1, 0\)"),
    ],
)
def test_links_are_refused(links: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        nn.UnitGraph(links)


def test_input_of_the_wrong_size_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"shape \(\*, 2\).* units \[0, 1\], but got \(5, 3\)"):
        nn.UnitGraph([(0, 2), (1, 2)])(chainrule.ones(5, 3))
