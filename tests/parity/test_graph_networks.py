"""Graph networks over sparse matrices, trained in both libraries: the same losses to the end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule

torch = pytest.importorskip("torch")

NODES, FEATURES, CLASSES, STEPS = 30, 8, 3, 40


def graph() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Edges both ways and from each node to itself, features, and classes of the nodes."""
    r = np.random.default_rng(4)
    a, b = r.integers(0, NODES, (2, 90))
    pairs = sorted({(i, j) for i, j in zip([*a, *b], [*b, *a], strict=True)})
    edges = sorted({*pairs, *[(i, i) for i in range(NODES)]})
    return np.array(edges).T, r.normal(size=(NODES, FEATURES)), r.integers(0, CLASSES, NODES)


def weights(t: Any, *shapes: tuple[int, ...]) -> list[Any]:
    r = np.random.default_rng(5)
    return [t.from_numpy(r.normal(size=s) / s[0] ** 0.5).requires_grad_() for s in shapes]


def train(t: Any, network: Any, optimizer: str, labels: np.ndarray, parameters: Any) -> list[float]:
    targets = t.from_numpy(labels)
    steps = getattr(t.optim, optimizer)(parameters, lr=0.05)
    losses = []
    for _ in range(STEPS):
        steps.zero_grad()
        loss = t.nn.functional.cross_entropy(network(*parameters), targets)
        loss.backward()
        steps.step()
        losses.append(loss.item())
    return losses


def convolution(t: Any, rows: bool) -> list[float]:
    """Two layers of Kipf and Welling, 2017: D^-1/2 A D^-1/2 X W."""
    edges, features, labels = graph()
    i = t.from_numpy(edges)
    a = t.sparse_coo_tensor(i, t.ones(edges.shape[1], dtype=t.float64), (NODES, NODES)).coalesce()
    scale = t.sparse.sum(a, 1).to_dense().pow(-0.5)
    a = t.sparse_coo_tensor(i, a.values() * scale[i[0]] * scale[i[1]], (NODES, NODES)).coalesce()
    a = a.to_sparse_csr() if rows else a
    x = t.from_numpy(features)

    def network(w1: Any, w2: Any) -> Any:
        return t.sparse.mm(a, t.relu(t.sparse.mm(a, x @ w1)) @ w2)

    parameters = weights(t, (FEATURES, 16), (16, CLASSES))
    return train(t, network, "Adam", labels, parameters)


def attention(t: Any, rows: bool) -> list[float]:
    """One layer of Veličković et al., 2018: a softmax over the neighbors of each node."""
    edges, features, labels = graph()
    i, x = t.from_numpy(edges), t.from_numpy(features)

    def network(w: Any, left: Any, right: Any, out: Any) -> Any:
        h = x @ w
        scores = t.nn.functional.leaky_relu((h @ left)[i[0]] + (h @ right)[i[1]], 0.2)
        weighted = t.sparse.softmax(t.sparse_coo_tensor(i, scores, (NODES, NODES)), 1)
        return t.tanh(t.sparse.mm(weighted, h)) @ out

    parameters = weights(t, (FEATURES, 16), (16,), (16,), (16, CLASSES))
    return train(t, network, "SGD", labels, parameters)


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("rows", [False, True], ids=["coo", "csr"])
@pytest.mark.parametrize("network", [convolution, attention])
def test_the_same_losses(network: Any, rows: bool) -> None:
    if rows and network is attention:
        pytest.skip("PyTorch has no softmax over compressed rows")
    ours, theirs = network(chainrule, rows), network(torch, rows)
    assert_close(np.array(ours), np.array(theirs), rtol=1e-9, atol=0)
    assert ours[-1] < 0.9 * ours[0]
