"""Sparse gradients of tables: where they come from, what adds to them, and steps along them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import nn, optim
from chainrule.sparse import SparseTensor
from chainrule.tensor import Tensor

WEIGHT = np.random.default_rng(0).normal(size=(6, 3))


def tables(**options: Any) -> tuple[nn.Embedding, nn.Embedding]:
    """The same table with sparse gradients and with dense ones."""
    made = []
    for sparse in (True, False):
        table = nn.Embedding(6, 3, sparse=sparse, dtype=chainrule.float64, **options)
        with chainrule.no_grad():
            table.weight.copy_(chainrule.tensor(WEIGHT))
        made.append(table)
    return made[0], made[1]


X = chainrule.tensor([[1, 4], [1, 0]])


def loss(table: nn.Module, x: Tensor = X) -> Tensor:
    return (table(x) ** 3).sum()


def test_the_gradient_is_sparse() -> None:
    sparse, dense = tables(padding_idx=4)
    for table in (sparse, dense):
        loss(table).backward()
    g = sparse.weight.grad
    assert isinstance(g, SparseTensor)
    assert (g.sparse_dim(), g.dense_dim(), g._nnz()) == (1, 1, 4)
    assert g._indices().tolist() == [[1, 4, 1, 0]]
    assert not isinstance(dense.weight.grad, SparseTensor)
    assert_close(g.to_dense(), dense.weight.grad, rtol=1e-12, atol=0)
    assert repr(sparse) == "Embedding(6, 3, padding_idx=4, sparse=True)"
    for table in (sparse, dense):
        loss(table).backward()
    assert isinstance(sparse.weight.grad, SparseTensor)
    assert_close(sparse.weight.grad.to_dense(), dense.weight.grad, rtol=1e-12, atol=0)
    sparse.zero_grad(set_to_none=False)
    assert not sparse.weight.grad.to_dense().any()


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags(mode: str) -> None:
    made = [nn.EmbeddingBag(6, 3, mode=mode, sparse=s) for s in (True, False)]
    made[0].load_state_dict(made[1].state_dict())
    for table in made:
        loss(table).backward()
    assert isinstance(made[0].weight.grad, SparseTensor)
    assert_close(made[0].weight.grad.to_dense(), made[1].weight.grad, rtol=1e-6, atol=0)


def test_sums_of_sparse_and_dense_gradients() -> None:
    """Of two uses of a table, in either order; into a gradient that is there already."""
    sparse, dense = tables()
    for order in (1, -1):
        for table in (sparse, dense):
            table.zero_grad()
            parts = [loss(table), loss(table, X + 1), (table.weight**2).sum()][::order]
            sum(parts[1:], parts[0]).backward()
        assert not isinstance(sparse.weight.grad, SparseTensor)
        assert_close(sparse.weight.grad, dense.weight.grad, rtol=1e-12, atol=0)
        loss(sparse).backward()
        loss(dense).backward()
        assert_close(sparse.weight.grad, dense.weight.grad, rtol=1e-12, atol=0)
    for table in (sparse, dense):
        table.zero_grad()
        (loss(table) + loss(table, X + 1)).backward()
    assert isinstance(sparse.weight.grad, SparseTensor)
    assert_close(sparse.weight.grad.to_dense(), dense.weight.grad, rtol=1e-12, atol=0)
    for table in (sparse, dense):
        (table.weight**2).sum().backward()
    assert_close(sparse.weight.grad, dense.weight.grad, rtol=1e-12, atol=0)


def test_every_other_way_to_a_gradient() -> None:
    sparse, dense = tables()
    (got,) = chainrule.autograd.grad(loss(sparse), sparse.weight)
    (expected,) = chainrule.autograd.grad(loss(dense), dense.weight)
    assert isinstance(got, SparseTensor)
    assert_close(got.to_dense(), expected, rtol=1e-12, atol=0)

    def twice(table: nn.Embedding) -> Tensor:
        (first,) = chainrule.autograd.grad(loss(table), table.weight, create_graph=True)
        return chainrule.autograd.grad((first**2).sum(), table.weight)[0].to_dense()

    assert_close(twice(sparse), twice(dense), rtol=1e-12, atol=0)
    rows = nn.functional.embedding
    of_weights = chainrule.func.grad(lambda w: (rows(X, w, sparse=True) ** 3).sum())
    assert_close(of_weights(chainrule.tensor(WEIGHT)), expected, rtol=1e-12, atol=0)
    w = chainrule.tensor(WEIGHT).requires_grad_()
    (rows(X, 2 * w, sparse=True) ** 3).sum().backward()  # no leaf: dense
    assert_close(w.grad, 8 * expected, rtol=1e-12, atol=0)
    seen = []
    handle = sparse.weight.register_hook(seen.append)
    with chainrule.autograd.detect_anomaly():
        loss(sparse).backward()
    handle.remove()
    assert isinstance(seen[0], SparseTensor)
    assert "sparse_rows" in str(chainrule.autograd.explain(loss(sparse)))
    with pytest.raises(IndexError, match="embedding: index 6 is out of bounds"):
        sparse(chainrule.tensor([6]))
    sparse.weight.grad = None
    with pytest.raises(RuntimeError, match=r"assigned grad has shape \(2, 3\)"):
        sparse.weight.grad = chainrule.sparse_coo_tensor((2, 3))


STEPS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 1, "maximize": True}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.2}),
    ("SparseAdam", {"lr": 0.1}),
    ("SparseAdam", {"lr": 0.1, "betas": (0.7, 0.9), "eps": 1e-3, "maximize": True}),
]


def train(library: Any, name: str, options: dict[str, Any], sparse: bool = True) -> list[Any]:
    table = library.nn.Embedding(6, 3, sparse=sparse, dtype=library.float64)
    with library.no_grad():
        table.weight.copy_(library.from_numpy(WEIGHT))
    optimizer = getattr(library.optim, name)(table.parameters(), **options)
    r, seen = np.random.default_rng(1), []
    for _ in range(6):
        optimizer.zero_grad()
        (table(library.from_numpy(r.integers(0, 6, (2, 2)))) ** 2).sum().backward()
        optimizer.step()
        seen.append(table.weight.detach().clone())
    state = optimizer.state[table.weight]
    return [*seen, *[state[k] for k in sorted(state) if k != "step"]]


@pytest.mark.filterwarnings("ignore:Sparse invariant")
@pytest.mark.parametrize(("name", "options"), STEPS)
def test_steps_as_in_pytorch(name: str, options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    for ours, theirs in zip(
        train(chainrule, name, options), train(torch, name, options), strict=True
    ):
        assert_close(ours, theirs, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize(("name", "options"), [s for s in STEPS if s[0] != "SparseAdam"])
def test_steps_as_along_the_dense_gradient(name: str, options: dict[str, Any]) -> None:
    both = [train(chainrule, name, options, sparse) for sparse in (True, False)]
    for a, b in zip(*both, strict=True):
        assert_close(a, b, rtol=1e-12, atol=1e-14)


def test_only_rows_with_a_gradient_change() -> None:
    """And dense parameters beside them take their ordinary step."""
    sparse, _ = tables()
    linear = nn.Linear(3, 1).double()
    before, bias = sparse.weight.detach().clone(), linear.bias.detach().clone()
    optimizer = optim.SparseAdam([*sparse.parameters(), *linear.parameters()], lr=0.1)
    linear(sparse(X)).sum().backward()
    optimizer.step()
    changed = (sparse.weight.detach() != before).any(1)
    assert changed.tolist() == [True, True, False, False, True, False]
    assert_close(linear.bias.detach(), bias - 0.1, rtol=1e-6, atol=0)
    for check in (True, False):
        optimizer.check_finite = check
        optimizer.step()
    assert optimizer.state[sparse.weight]["step"] == 3
    state = optimizer.state_dict()
    again = optim.SparseAdam([*sparse.parameters(), *linear.parameters()], lr=0.1)
    again.load_state_dict(state)
    assert again.state[sparse.weight]["step"] == 3
    optimizer.zero_grad(set_to_none=False)
    assert not sparse.weight.grad.any()


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
        lambda p: optim.SGD(p, lr=0.1, weight_decay=0.1),
        lambda p: optim.Adagrad(p, weight_decay=0.1),
        lambda p: optim.Adam(p),
    ],
)
def test_steps_that_are_refused(optimizer: Any) -> None:
    sparse, _ = tables()
    loss(sparse).backward()
    before = sparse.weight.detach().clone()
    for check in (True, False):
        made = optimizer(sparse.parameters())
        made.check_finite = check
        with pytest.raises(RuntimeError, match="parameter 0 .* is sparse, and a step with these"):
            made.step()
    assert_close(sparse.weight.detach(), before, rtol=0, atol=0)


def test_gradients_that_are_refused() -> None:
    sparse, _ = tables()
    loss(sparse).backward()
    made = optim.SparseAdam(sparse.parameters(), lr=chainrule.tensor(0.1))
    with pytest.raises(RuntimeError, match="the learning rate must be a number, got Tensor"):
        made.step()
    made = optim.SparseAdam(sparse.parameters())
    sparse.weight.grad.entries[0] = float("nan")
    with pytest.raises(optim.NotFiniteError, match="has NaN or infinite values; no parameter"):
        made.step()
    sparse.weight.grad = sparse.weight.grad.to_dense().nan_to_num().to_sparse()
    with pytest.raises(RuntimeError, match=r"got 2 sparse dimensions .* p\.grad\.to_dense"):
        made.step()
    with pytest.raises(TypeError, match="expected dense tensors, got one of layout"):
        nn.utils.clip_grad_norm_(sparse.parameters(), 1.0)
