"""Feed-forward networks given unit by unit, with links between any two of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Any

from chainrule.nn.module.base import Module
from chainrule.nn.parameter import Parameter
from chainrule.ops.creation.patterns import empty, zeros
from chainrule.ops.elementwise.functions import tanh
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.index.reading import choose, narrow
from chainrule.ops.linalg.matmul import linear
from chainrule.ops.index.replacing import index_put
from chainrule.ops.shape.views import reshape
from chainrule.ops.shape.stacking import cat
from chainrule.tensor import Tensor
from chainrule.typing import DType, Device, Factory, MaybeNone, Real

__all__ = ["UnitGraph"]

Link = tuple[int, int]


class UnitGraph(Module):
    """A network of numbered units and links j -> i, shortcuts over layers among them:

    s_i = b_i + sum over links j -> i of w_ij a_j,  a_i = f(s_i)

    Units without a link to them are inputs (a_i is given), those without a link from them outputs;
    both in the order of their numbers. A unit's layer is one more than the last of the layers that
    link to it, so that every link leads to a later layer, and a whole layer is computed at once: by
    a product with one matrix for each earlier layer that it sees, zero where there is no link.

    Shape: (*, inputs) -> (*, outputs).

    Args:
        links: pairs (source, target) of unit numbers.
        activation: f of the hidden units, tanh if not given.
        output_activation: f of the outputs, if any.
        bias: whether to add learned b_i.

    ``weight[k]`` is the weight of ``links[k]``, ``bias[k]`` belongs to unit ``computed[k]``.

    >>> from chainrule import nn, ones
    >>> net = nn.UnitGraph([(0, 2), (1, 2), (2, 3), (0, 3)])  # 0 -> 3 is a shortcut
    >>> net(ones(5, 2)).shape
    chainrule.Size([5, 1])
    >>> net
    UnitGraph(units=4, links=4, layers=[2, 1, 1], bias=True)
    """

    weight: Parameter
    bias: Parameter | MaybeNone

    def __init__(
        self,
        links: Iterable[Link],
        activation: Callable[[Tensor], Tensor] | None = None,
        output_activation: Callable[[Tensor], Tensor] | None = None,
        bias: bool = True,
        device: Device | None = None,
        dtype: DType | None = None,
    ):
        super().__init__()
        self.links = _checked([(int(a), int(b)) for a, b in links])
        self.layers = _layers(self.links)
        self.activation = activation
        self.output_activation = output_activation
        sources = {source for source, _ in self.links}
        self.computed = sorted(unit for layer in self.layers[1:] for unit in layer)
        self.outputs = sorted(unit for unit in self.computed if unit not in sources)
        self._lay_out()
        factory: Factory = {"device": device, "dtype": dtype}
        self.weight = Parameter(empty(len(self.links), **factory))
        if bias:
            self.bias = Parameter(empty(len(self.computed), **factory))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    @classmethod
    def from_mask(cls, mask: Tensor | Sequence[Sequence[Real]], **settings: Any) -> UnitGraph:
        """The network with a link from unit j to unit i where ``mask[i][j]`` holds."""
        rows = mask.tolist() if isinstance(mask, Tensor) else mask
        return cls(
            [(j, i) for i, row in enumerate(rows) for j, on in enumerate(row) if on], **settings
        )

    @classmethod
    def from_layers(
        cls, sizes: Sequence[int], shortcuts: bool = False, **settings: Any
    ) -> UnitGraph:
        """Fully connected layers of these sizes, each linked to the next or, with ``shortcuts``, to
        all later ones."""
        ends = [0, *accumulate(sizes)]
        units = [range(a, b) for a, b in pairwise(ends)]
        links = [
            (j, i)
            for to, targets in enumerate(units)
            for sources in (units[:to] if shortcuts else units[max(to - 1, 0) : to])
            for i in targets
            for j in sources
        ]
        return cls(links, **settings)

    def _lay_out(self) -> None:
        """Where everything stands when whole layers are computed."""
        at = {u: (to, n) for to, layer in enumerate(self.layers) for n, u in enumerate(layer)}
        blocks: dict[Link, list[Link]] = {}
        for k, (source, target) in enumerate(self.links):
            (before, column), (to, row) = at[source], at[target]
            place = row * len(self.layers[before]) + column
            blocks.setdefault((to, before), []).append((place, k))
        # For each pair of layers with links between them: the places in their matrix, and which
        # weights stand there.
        self._blocks = {pair: tensor(sorted(blocks[pair])).T for pair in sorted(blocks)}
        number = {unit: n for n, unit in enumerate(self.computed)}
        self._biases = [tensor([number[u] for u in layer]) for layer in self.layers[1:]]
        order = {unit: n for n, unit in enumerate(u for layer in self.layers for u in layer)}
        self._outputs = tensor([order[unit] for unit in self.outputs])

    def reset_parameters(self) -> None:
        """Draws the weights to a unit and its bias from U(-k, k), k = 1 / sqrt(links to it)."""
        fan_in = dict.fromkeys(self.computed, 0)
        for _, target in self.links:
            fan_in[target] += 1
        for p, units in ((self.weight, [t for _, t in self.links]), (self.bias, self.computed)):
            if p is not None:
                bounds = tensor(
                    [1 / math.sqrt(fan_in[u]) for u in units], dtype=p.dtype, device=p.device
                )
                p.detach().uniform_(-1, 1).mul_(bounds)

    def matrix(self, target: int, source: int) -> Tensor:
        """The weights from one layer to another as a matrix, zero where there is no link."""
        rows, columns = len(self.layers[target]), len(self.layers[source])
        nothing = zeros(rows * columns, dtype=self.weight.dtype, device=self.weight.device)
        if (target, source) not in self._blocks:
            return reshape(nothing, (rows, columns))
        places, which = self._blocks[target, source]
        weights = choose(self.weight, -1, which, "UnitGraph")
        if len(which) < rows * columns:
            weights = index_put(nothing, (places,), weights)
        return reshape(weights, (rows, columns))

    def forward(self, input: Tensor) -> Tensor:
        inputs = len(self.layers[0])
        if input.ndim < 1 or input.shape[-1] != inputs:
            raise RuntimeError(
                f"UnitGraph: expected input of shape (*, {inputs}), a number for each of the input "
                f"units {self.layers[0]}, but got {tuple(input.shape)}"
            )
        done = [input]
        for target in range(1, len(self.layers)):
            sources = [source for to, source in self._blocks if to == target]
            s: Any = sum(linear(done[source], self.matrix(target, source)) for source in sources)
            if self.bias is not None:
                s = s + choose(self.bias, -1, self._biases[target - 1], "UnitGraph")
            done.append(self._activate(s, target))
        return choose(cat(done, -1), -1, self._outputs, "UnitGraph")

    def _activate(self, s: Tensor, layer: int) -> Tensor:
        """f(s), where outputs (which may lie in any layer) have their own."""
        other = self.output_activation
        activation = tanh if self.activation is None else self.activation
        outputs = [u in self.outputs for u in self.layers[layer]]
        if not any(outputs):
            return activation(s)
        last = s if other is None else other(s)
        if all(outputs):
            return last
        hidden = activation(s)
        columns = [narrow(last if o else hidden, -1, n, 1) for n, o in enumerate(outputs)]
        return cat(columns, -1)

    def extra_repr(self) -> str:
        units, layers = sum(map(len, self.layers)), [len(layer) for layer in self.layers]
        bias = self.bias is not None
        return f"units={units}, links={len(self.links)}, layers={layers}, bias={bias}"


def _checked(links: list[Link]) -> list[Link]:
    if not links:
        raise ValueError("UnitGraph: there are no links; give pairs (source, target)")
    for link in links:
        if min(link) < 0:
            raise ValueError(f"UnitGraph: units are numbered from 0, got the link {link}")
    if len(set(links)) < len(links):
        twice = next(link for link in links if links.count(link) > 1)
        raise ValueError(f"UnitGraph: the link {twice} is given more than once")
    return links


def _layers(links: list[Link]) -> list[list[int]]:
    """The units by layer: those whose sources all lie in earlier layers, again and again."""
    sources: dict[int, set[int]] = {unit: set() for link in links for unit in link}
    targets: dict[int, list[int]] = {unit: [] for unit in sources}
    for source, target in links:
        sources[target].add(source)
        targets[source].append(target)
    layers, left = [], {unit: len(before) for unit, before in sources.items()}
    ready = sorted(unit for unit, count in left.items() if not count)
    while ready:
        layers.append(ready)
        following = []
        for unit in ready:
            del left[unit]
            for target in targets[unit]:
                left[target] -= 1
                if not left[target]:
                    following.append(target)
        ready = sorted(following)
    if left:
        raise ValueError(
            f"UnitGraph: the links make a cycle through some of the units {sorted(left)}; every "
            "link must lead to a later layer"
        )
    return layers
