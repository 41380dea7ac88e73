"""Networks over graphs, bags of words, and solutions of differential equations."""

from __future__ import annotations

from typing import Any

import numpy as np

from architectures.task import Task, few_ones, integers, normal, same_weights

__all__ = ["embedding_bag", "gat", "gcn", "pinn"]


def _graph(nodes: int, edges: int) -> np.ndarray:
    """Edges (2, E) both ways and from each node to itself, by rows."""
    r = np.random.default_rng(3)
    a, b = r.integers(0, nodes, (2, edges))
    loops = np.arange(nodes)
    pairs = np.stack([np.concatenate([a, b, loops]), np.concatenate([b, a, loops])])
    return np.unique(pairs, axis=1)


def _of_nodes(lib: Any, model: Any, nodes: int, features: int) -> Task:
    """Classes of all nodes; the features are mostly zero, as counts of words are."""
    model = same_weights(lib, model)
    x = few_ones(lib, nodes, features)
    y = integers(lib, 7, nodes)
    criterion = lib.nn.CrossEntropyLoss()
    return Task(lib, model, lambda: criterion(model(x), y), lambda: model(x), "Adam", {})


def gcn(lib: Any, nodes: int = 2708, edges: int = 5278, features: int = 1433) -> Task:
    """Two layers of Kipf and Welling, 2017, over a graph of the size of Cora."""
    nn = lib.nn
    i, j = _graph(nodes, edges)
    scale = np.bincount(i, minlength=nodes) ** -0.5
    adjacency = lib.sparse_coo_tensor(
        lib.tensor(np.stack([i, j])),
        lib.tensor(scale[i] * scale[j], dtype=lib.get_default_dtype()),
        (nodes, nodes),
    ).coalesce()

    class GCN(nn.Module):  # type: ignore[misc, name-defined]
        """A ReLU(A X W1) W2."""

        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(features, 16), nn.Linear(16, 7)

        def forward(self, x: Any) -> Any:
            h = lib.sparse.mm(adjacency, self.first(x)).relu()
            return lib.sparse.mm(adjacency, self.second(h))

    return _of_nodes(lib, GCN(), nodes, features)


def gat(lib: Any, nodes: int = 2708, edges: int = 5278, features: int = 1433) -> Task:
    """Two layers of Veličković et al., 2018: eight heads of eight, a softmax over neighbors."""
    nn = lib.nn
    to, source = (lib.tensor(part) for part in _graph(nodes, edges))

    class Attention(nn.Module):  # type: ignore[misc, name-defined]
        """Sums of the neighbors, each with a weight of its own."""

        def __init__(self, into: int, heads: int, width: int) -> None:
            super().__init__()
            self.heads, self.width = heads, width
            self.linear = nn.Linear(into, heads * width, bias=False)
            self.left = nn.Parameter(lib.zeros(heads, width))
            self.right = nn.Parameter(lib.zeros(heads, width))

        def forward(self, x: Any) -> Any:
            h = self.linear(x).view(-1, self.heads, self.width)
            left, right = (h * self.left).sum(-1), (h * self.right).sum(-1)
            scores = nn.functional.leaky_relu(left[to] + right[source], 0.2)
            index = to.unsqueeze(1).expand(-1, self.heads)
            least = lib.full((nodes, self.heads), -1e9)
            highest = least.scatter_reduce(0, index, scores.detach(), "amax")
            weights = (scores - highest[to]).exp()
            sums = lib.zeros(nodes, self.heads).index_add(0, to, weights)
            weights = (weights / sums[to]).unsqueeze(2)
            out = lib.zeros(nodes, self.heads, self.width)
            return out.index_add(0, to, weights * h[source]).flatten(1)

    model = nn.Sequential(Attention(features, 8, 8), nn.ELU(), Attention(64, 1, 7))
    return _of_nodes(lib, model, nodes, features)


def embedding_bag(
    lib: Any, batch: int = 64, words: int = 50, vocabulary: int = 50_000, width: int = 64
) -> Task:
    """Classes of texts from the mean of their words' vectors (``nn.EmbeddingBag``)."""
    nn = lib.nn

    class Bags(nn.Module):  # type: ignore[misc, name-defined]
        """A linear layer on means of vectors."""

        def __init__(self) -> None:
            super().__init__()
            self.bags = nn.EmbeddingBag(vocabulary, width, mode="mean")
            self.head = nn.Linear(width, 4)

        def forward(self, text: Any, offsets: Any) -> Any:
            return self.head(self.bags(text, offsets))

    model = same_weights(lib, Bags())
    lengths = np.random.default_rng(2).integers(1, 2 * words, batch)
    offsets = lib.tensor(np.concatenate([[0], np.cumsum(lengths)[:-1]]))
    text, y = integers(lib, vocabulary, int(lengths.sum())), integers(lib, 4, batch)
    criterion = nn.CrossEntropyLoss()
    run = lambda: model(text, offsets)  # noqa: E731
    return Task(lib, model, lambda: criterion(run(), y), run, "SGD", {})


def pinn(lib: Any, points: int = 1000, width: int = 50, order: int = 3) -> Task:
    """A physics-informed network, Raissi et al., 2019: 2-50-50-50-50-1.

    Args:
        order: 2 for Burgers' equation u_t + u u_x = 0.003 u_xx, 3 for that of Korteweg and
            de Vries, u_t + u u_x + 0.0025 u_xxx = 0.
    """
    nn = lib.nn
    layers: list[Any] = [nn.Linear(2, width), nn.Tanh()]
    for _ in range(3):
        layers += [nn.Linear(width, width), nn.Tanh()]
    model = same_weights(lib, nn.Sequential(*layers, nn.Linear(width, 1)))
    places = normal(lib, points, 2).tanh()
    x, t = (places[:, i : i + 1].clone().requires_grad_() for i in (0, 1))
    start = lib.cat([x.detach(), lib.zeros_like(t)], 1)
    wanted = -(np.pi * x.detach()).sin()

    def slope(u: Any, by: Any) -> Any:
        (result,) = lib.autograd.grad(u, by, lib.ones_like(u), create_graph=True)
        return result

    def loss() -> Any:
        u = model(lib.cat([x, t], 1))
        u_x, u_t = slope(u, x), slope(u, t)
        u_xx = slope(u_x, x)
        rest = 0.003 * u_xx if order == 2 else -0.0025 * slope(u_xx, x)
        return (u_t + u * u_x - rest).pow(2).mean() + (model(start) - wanted).pow(2).mean()

    return Task(lib, model, loss, lambda: model(places), "Adam", {})
