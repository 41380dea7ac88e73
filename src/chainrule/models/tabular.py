"""A network for tables: several members at once, beside a linear model."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Sequence

from chainrule import nn
from chainrule.autograd.modes import no_grad
from chainrule.backend import dtypes
from chainrule.models.mlp import Activation, activation_module
from chainrule.ops.core.promotion import cast
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.creation.patterns import empty, linspace, ones, zeros
from chainrule.ops.elementwise.functions import sqrt
from chainrule.ops.elementwise.options import clamp
from chainrule.ops.index.reading import index_select, one_hot
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.reduce.reductions import mean
from chainrule.ops.reduce.quantiles import quantile
from chainrule.ops.reduce.sort import unique
from chainrule.ops.shape.stacking import cat
from chainrule.ops.shape.views import transpose, unsqueeze
from chainrule.tensor import Tensor

__all__ = ["MemberLinear", "TabularNetwork", "WeightedNetworks"]

SMALL = 2**16  # entries of the matrix that gives each feature the scale of its column
FARTHEST = 0.05  # what is left of 1 - (x / clip)^2 at least: for a clip of 3, values up to 13


class MemberLinear(nn.Module):
    """One linear map for each of several members, as one product: y[m] = x[m] W[m] + b[m].

    Shape: (M, N, in_features), or (N, in_features) for the same rows for all -> (M, N,
    out_features).

    Args:
        members: M.
        in_features: size of each input.
        out_features: size of each output.

    >>> from chainrule import models, ones
    >>> models.MemberLinear(4, 3, 2)(ones(5, 3)).shape
    chainrule.Size([4, 5, 2])
    """

    def __init__(self, members: int, in_features: int, out_features: int):
        super().__init__()
        self.members, self.in_features, self.out_features = members, in_features, out_features
        self.weight = nn.Parameter(empty(members, in_features, out_features))
        self.bias = nn.Parameter(empty(members, 1, out_features))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weights from N(0, 2 / in_features), biases 0."""
        nn.init.normal_(self.weight, 0.0, math.sqrt(2 / max(1, self.in_features)))
        nn.init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return matmul(input, self.weight) + self.bias

    def extra_repr(self) -> str:
        return f"{self.members} x ({self.in_features} -> {self.out_features})"


class TabularNetwork(nn.Module):
    """Several small networks for tables in one, beside a linear model; their outputs are averaged.

    Each number x is seen as it is and by pieces, z_t = clamp((x - low_t) / width_t, 0, 1), each
    index by a learned vector. Member m computes, with its own scale of each feature s[m],

        h = f(... f(s[m] * (x, z, vectors) W1[m] + b1[m]) ...),   y[m] = h W[m] + V[m] x + c[m].

    V and c are a linear model's, set by :meth:`set_linear` and not trained by gradients; W starts
    near 0, so that the network starts as the linear model.

    Shape: (N, in_features) -> (N, out_features), the mean of the members; or (N, M, in_features),
    rows for each member -> (N, M, out_features). In training, all that is not learned may be
    computed once: :meth:`prepared` rows for each member, and the outputs of the linear models for
    them (N, M, out_features) as a second input.

    Args:
        in_features: how many columns there are, indices included.
        out_features: size of each output.
        hidden: the widths of the hidden layers.
        members: M.
        activation: f, by name or as a module.
        dropout: probability of dropping a hidden unit.
        index_sizes: for each of the last columns that is an index: how many values it has.
        pieces: for each of the other columns: by how many pieces it is seen.
        clip: the bound c of smoothly clipped numbers x / sqrt(1 + (x / c)^2), if they are that; the
            linear model sees them as they were.

    References:
        Gorishniy et al., On embeddings for numerical features in tabular deep learning (2022);
        Holzmueller et al., Better by default (2024); Gorishniy et al., TabM (2025).

    >>> from chainrule import models, ones
    >>> net = models.TabularNetwork(3, 2, index_sizes=[10], pieces=[4, 0])
    >>> net(ones(5, 3)).shape, net(ones(5, net.members, 3)).shape
    (chainrule.Size([5, 2]), chainrule.Size([5, 4, 2]))
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        hidden: Sequence[int] = (64, 64),
        *,
        members: int = 4,
        activation: Activation = "relu",
        dropout: float = 0.0,
        index_sizes: Sequence[int] = (),
        pieces: Sequence[int] = (),
        clip: float | None = None,
    ):
        super().__init__()
        plain = in_features - len(index_sizes)
        pieces = list(pieces) or [0] * plain
        _check(in_features, out_features, members, index_sizes, pieces)
        self.in_features, self.out_features, self.members = in_features, out_features, members
        self.plain, self.pieces, self.clip = plain, pieces, clip
        columns = [j for j, count in enumerate(pieces) for _ in range(count)]
        self.register_buffer("columns", tensor(columns, dtype=dtypes.int64))
        self.register_buffer("low", zeros(len(columns)))
        self.register_buffer("steepness", ones(len(columns)))
        self.tables = nn.ModuleList([nn.Embedding(n, _width(n)) for n in index_sizes])
        for table in self.tables:
            nn.init.normal_(table.weight, 0.0, 0.3)
            nn.init.zeros_(table.weight.data[0])  # of what is not seen in training: between all
        own = [plain + i for i, n in enumerate(index_sizes) for _ in range(_width(n))]
        sources = [*range(plain), *columns, *own]
        self.register_buffer("sources", tensor(sources, dtype=dtypes.int64))
        self.sees_as_is = len(sources) == plain == in_features
        if not self.sees_as_is and in_features * len(sources) <= SMALL:
            places = cast(one_hot(self.sources, in_features).mT, dtypes.get_default_dtype())
            self.register_buffer("places", places, persistent=False)
        self.scale = nn.Parameter(ones(members, in_features))
        widths = [len(sources), *hidden]
        self.hidden = nn.ModuleList(
            [MemberLinear(members, a, b) for a, b in itertools.pairwise(widths)]
        )
        if self.hidden:
            nn.init.uniform_(self.hidden[0].bias, -1.0, 1.0)
        self.activation = activation_module(activation)
        self.dropout = nn.Dropout(dropout)
        self.head = MemberLinear(members, widths[-1], out_features)
        nn.init.normal_(self.head.weight, 0.0, 0.001)
        self.register_buffer("linear_weight", zeros(members, plain, out_features))
        self.register_buffer("linear_bias", zeros(members, 1, out_features))

    @classmethod
    def pieces_of(cls, x: Tensor, most: int = 8) -> list[int]:
        """By how many pieces to see each column of x (N, D): at most as it has values, few for
        many columns."""
        wanted = min(most, 96 // max(1, x.shape[1]))
        counts = []
        for column in x.mT:
            values = len(unique(column[:2000]))
            counts.append(min(wanted, values - 1) if wanted > 2 and values > 3 else 0)
        return counts

    @no_grad()
    def set_pieces(self, x: Tensor) -> None:
        """Lays the pieces between the quantiles of the columns of x (N, in_features)."""
        start = 0
        for j, count in enumerate(self.pieces):
            if not count:
                continue
            edges = quantile(x[:, j], linspace(0, 1, count + 1))
            width = clamp(edges[1:] - edges[:-1], min=1e-3)
            self.low[start : start + count] = edges[:-1]
            self.steepness[start : start + count] = 1 / width
            start += count

    @no_grad()
    def set_linear(self, weight: Tensor, bias: Tensor) -> None:
        """Sets V (M, D, out_features) and c (M, 1, out_features), for :meth:`linear_features`."""
        self.linear_weight.copy_(cast(weight, self.linear_weight.dtype))
        self.linear_bias.copy_(cast(bias, self.linear_bias.dtype))

    @no_grad()
    def multiply(self, network: float, linear: float = 1.0) -> None:
        """Multiplies the network's part and the linear model's part of the outputs."""
        self.head.weight.mul_(network)
        self.head.bias.mul_(network)
        self.linear_weight.mul_(linear)
        self.linear_bias.mul_(linear)

    def linear_features(self, x: Tensor) -> Tensor:
        """What the linear model sees: the numbers as they were before smooth clipping."""
        x = x[..., : self.plain] if self.tables else x
        if self.clip is None:
            return x
        return x / sqrt(clamp(1 - (x / self.clip) ** 2, min=FARTHEST))

    def prepared(self, x: Tensor) -> Tensor:
        """All of the features that is not learned: numbers, pieces, and the indices."""
        found = [x[..., : self.plain] if self.tables else x]
        if len(self.columns):
            found.append(clamp((x[..., self.columns] - self.low) * self.steepness, 0, 1))
        if self.tables:
            found.append(x[..., self.plain :])
        return cat(found, -1) if len(found) > 1 else found[0]

    def features(self, x: Tensor) -> Tensor:
        """What the networks see: numbers, pieces, and the vectors of the indices (*, features)."""
        return self._with_vectors(self.prepared(x))

    def _with_vectors(self, prepared: Tensor) -> Tensor:
        if not self.tables:
            return prepared
        plain = self.plain + len(self.columns)
        found = [prepared[..., :plain]]
        for i, table in enumerate(self.tables):
            found.append(table(cast(prepared[..., plain + i], dtypes.int64)))
        return cat(found, -1)

    def linear(self, x: Tensor) -> Tensor:
        """The outputs of the linear models (M, N, out_features)."""
        return matmul(self.linear_features(x), self.linear_weight) + self.linear_bias

    def parts(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The outputs of the networks and of the linear models (M, N, out_features) each."""
        if x.ndim not in (2, 3) or x.shape[-1] != self.in_features:
            raise ValueError(
                f"TabularNetwork: expected rows (N, {self.in_features}), or (N, {self.members}, "
                f"{self.in_features}) for each member, got shape {tuple(x.shape)}"
            )
        x = transpose(x, 0, 1) if x.ndim == 3 else x
        return self._network(self.features(x)), self.linear(x)

    def _network(self, h: Tensor) -> Tensor:
        """The outputs of the networks (M, N, out_features) for features."""
        scale = unsqueeze(self._scale_of_features(), -1)
        for i, layer in enumerate(self.hidden):
            # Scaling the weights is cheaper than scaling the rows, and the same.
            h = layer(h) if i else matmul(h, layer.weight * scale) + layer.bias
            h = self.dropout(self.activation(h))
        if not self.hidden:
            h = h * transpose(scale, 1, 2)
        return self.head(h)

    def _scale_of_features(self) -> Tensor:
        """The scale of each feature for each member (M, features), by that of its column."""
        if self.sees_as_is:
            return self.scale
        if "places" in self._buffers:  # a small product takes less time than a choice
            return matmul(self.scale, self.places)
        return index_select(self.scale, 1, self.sources)

    def forward(self, input: Tensor, linear: Tensor | None = None) -> Tensor:
        if linear is not None:
            network = self._network(self._with_vectors(transpose(input, 0, 1)))
            return transpose(network, 0, 1) + linear
        network, of_linear = self.parts(input)
        both = network + of_linear
        return transpose(both, 0, 1) if input.ndim == 3 else mean(both, 0)

    def extra_repr(self) -> str:
        return f"{self.in_features} -> {self.out_features}, members={self.members}"


class WeightedNetworks(nn.Module):
    """The weighted mean of the outputs of several networks: y = sum_i w_i f_i(x).

    Shape: as that of the networks.

    Args:
        networks: f_i.
        weights: w_i.

    >>> from chainrule import models, nn, ones
    >>> two = models.WeightedNetworks([nn.Identity(), nn.Identity()], [0.25, 0.5])
    >>> two(ones(2))
    tensor([0.7500, 0.7500])
    """

    def __init__(self, networks: Sequence[nn.Module], weights: Sequence[float]):
        super().__init__()
        if not networks or len(networks) != len(weights):
            raise ValueError(
                f"WeightedNetworks: expected a weight for each network, got {len(networks)} "
                f"networks and {len(weights)} weights"
            )
        self.networks, self.weights = nn.ModuleList(networks), list(weights)

    def forward(self, input: Tensor) -> Tensor:
        parts = [w * f(input) for w, f in zip(self.weights, self.networks, strict=True)]
        return functools.reduce(operator.add, parts)


def _width(size: int) -> int:
    """How long the vectors of an index with so many values are."""
    return min(16, 2 + math.isqrt(size) // 2)


def _check(
    inputs: int, outputs: int, members: int, index_sizes: Sequence[int], pieces: Sequence[int]
) -> None:
    plain = inputs - len(index_sizes)
    if min(inputs, outputs, members) < 1 or plain < 0 or len(pieces) != plain:
        raise ValueError(
            "TabularNetwork: expected at least one feature, output and member, and `pieces` for "
            f"each column that is no index, got in_features={inputs}, out_features={outputs}, "
            f"members={members}, {len(index_sizes)} index_sizes and {len(pieces)} pieces"
        )
    if any(n < 1 for n in index_sizes) or any(n < 0 for n in pieces):
        raise ValueError(
            f"TabularNetwork: index_sizes are positive, got {list(index_sizes)}, and pieces not "
            f"negative, got {list(pieces)}"
        )
