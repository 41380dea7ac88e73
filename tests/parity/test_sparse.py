"""Sparse tensors beside PyTorch's: values, gradients, what is printed and what is refused."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule

torch = pytest.importorskip("torch")

Function = Callable[[Any, Any, Any], Any]


@pytest.fixture(autouse=True)
def without_its_warning() -> Iterator[None]:
    """PyTorch warns that compressed rows are in beta."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(Sparse CSR|sparse|Sparse).*")
        yield


r = np.random.default_rng(0)
PLACES = {
    "coalesced": np.array([[0, 0, 1, 2], [1, 3, 0, 2]]),
    "twice at a place": np.array([[2, 0, 1, 2, 0, 2], [2, 1, 0, 2, 3, 0]]),
    "none": np.zeros((2, 0), int),
}


def of(library: Any, array: np.ndarray) -> Any:
    return library.from_numpy(array.copy())


def same(ours: Any, theirs: Any, rtol: float = 1e-9) -> None:
    """Layout, shape, type, elements, and where the entries stand."""
    sparse = theirs.layout is not torch.strided
    assert str(ours.layout).rpartition(".")[2] == str(theirs.layout).rpartition(".")[2]
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert str(ours.dtype).rpartition(".")[2] == str(theirs.dtype).rpartition(".")[2]
    if sparse:
        assert (ours.sparse_dim(), ours.dense_dim()) == (theirs.sparse_dim(), theirs.dense_dim())
        coalesced = [places(x) for x in (ours, theirs)]
        assert coalesced[0] == coalesced[1]
        ours, theirs = ours.to_dense(), theirs.to_dense()
    assert_close(ours.detach(), theirs.detach().resolve_conj(), rtol=rtol, atol=rtol)


def places(x: Any) -> Any:
    """The places of the entries, each once and sorted."""
    x = x.detach()
    x = x.coalesce() if x.is_sparse else x.to_sparse(layout=x.layout).to_sparse_coo().coalesce()
    return x.indices().tolist()


X = r.normal(size=(4, 2))
SAME = r.uniform(0.5, 2, size=(3, 4))

# Of a library, a sparse matrix (3, 4) and a dense one (4, 2).
FUNCTIONS: dict[str, Function] = {
    "sparse.mm": lambda t, a, x: t.sparse.mm(a, x),
    "spmm": lambda t, a, x: t.spmm(a, x),
    "mm": lambda t, a, x: t.mm(a, x),
    "matmul": lambda t, a, x: t.matmul(a, x),
    "@": lambda t, a, x: a @ x,
    "a.mm": lambda t, a, x: a.mm(x),
    "mv": lambda t, a, x: t.mv(a, x[:, 0]),
    "@ vector": lambda t, a, x: a @ x[:, 0],
    "dense @": lambda t, a, x: x.t() @ a.t(),
    "vector @": lambda t, a, x: x[:3, 0] @ a,
    "addmm": lambda t, a, x: t.addmm(x[:3], a, x, beta=0.5, alpha=2),
    "sparse.addmm": lambda t, a, x: t.sparse.addmm(x[:3], a, x, beta=0.5, alpha=2),
    "sparse @ sparse": lambda t, a, x: t.sparse.mm(a, a.t()),
    "a + a": lambda t, a, x: a + a.coalesce(),
    "a - a": lambda t, a, x: a - 2 * a,
    "dense + a": lambda t, a, x: of(t, SAME) + a,
    "a * 3": lambda t, a, x: a * 3,
    "3 * a": lambda t, a, x: 3 * a,
    "a / 3": lambda t, a, x: a / 3,
    "-a": lambda t, a, x: -a,
    "a * dense": lambda t, a, x: a.coalesce() * of(t, SAME),
    "to_dense": lambda t, a, x: a.to_dense(),
    "coalesce": lambda t, a, x: a.coalesce(),
    "t": lambda t, a, x: a.t(),
    "transpose": lambda t, a, x: t.transpose(a, 0, 1),
    "sum": lambda t, a, x: a.sum(),
    "sparse.sum": lambda t, a, x: t.sparse.sum(a),
    "sparse.sum 0": lambda t, a, x: t.sparse.sum(a, 0),
    "sparse.sum 1": lambda t, a, x: t.sparse.sum(a, dim=1),
    "sparse.sum both": lambda t, a, x: t.sparse.sum(a, (0, 1)),
    "sparse.softmax 0": lambda t, a, x: t.sparse.softmax(a, 0),
    "sparse.softmax 1": lambda t, a, x: t.sparse.softmax(a, dim=1),
    "sparse.log_softmax": lambda t, a, x: t.sparse.log_softmax(a, 1),
    "index_select 0": lambda t, a, x: a.index_select(0, t.tensor([2, 0, 2])),
    "index_select 1": lambda t, a, x: a.index_select(1, t.tensor([3, 1])),
    "a[2]": lambda t, a, x: a.coalesce()[2],
    "values": lambda t, a, x: a.coalesce().values(),
    "indices": lambda t, a, x: a.coalesce().indices(),
    "clone": lambda t, a, x: a.clone(),
    "detach": lambda t, a, x: a.detach(),
    "float": lambda t, a, x: a.float(),
    "sparse_mask": lambda t, a, x: of(t, SAME).sparse_mask(a.coalesce()),
    "to_sparse_csr": lambda t, a, x: a.coalesce().to_sparse_csr(),
    "norm": lambda t, a, x: (a + a).norm() if a._nnz() else a.sum(),
}


def method(name: str) -> Function:
    return lambda t, a, x: getattr(a, name)()


FUNCTIONS |= {
    name: method(name)
    for name in (
        *("abs", "asin", "asinh", "atan", "ceil", "deg2rad", "erf", "expm1", "floor", "frac"),
        *("isnan", "log1p", "neg", "rad2deg", "relu", "round", "sgn", "sign", "sin", "sinh"),
        *("sqrt", "square", "tan", "tanh", "trunc"),
    )
}
# Those that PyTorch differentiates for dense tensors only.
THROUGH_DENSE = {
    *("asin", "asinh", "atan", "erf", "expm1", "index_select 0", "index_select 1", "sgn", "sin"),
    *("sinh", "sqrt", "tan", "tanh"),
}
# Those that it does not differentiate, or with another meaning of what is no entry.
NO_GRADIENT = {
    *("isnan", "indices", "detach", "sparse_mask", "to_sparse_csr", "a[2]", "norm"),
    *("sparse.softmax 0", "sparse.log_softmax"),
}


def call(library: Any, name: str, kind: str, dtype: Any) -> tuple[Any, ...]:
    """The result, and the gradients of its elements' weighted sum by the values and by x."""
    entries = np.random.default_rng(1).uniform(0.1, 0.45, PLACES[kind].shape[1]).astype(dtype)
    v = of(library, entries).requires_grad_()
    x = of(library, X.astype(dtype)).requires_grad_()
    a = library.sparse_coo_tensor(of(library, PLACES[kind]), v, (3, 4))
    global SAME
    before, SAME = SAME, SAME.astype(dtype)
    try:
        out = FUNCTIONS[name](library, a, x)
    finally:
        SAME = before
    if not out.requires_grad or name in NO_GRADIENT:
        return (out,)
    dense = out if out.layout is library.strided else out.to_dense()
    if library is torch and name in THROUGH_DENSE:
        dense = FUNCTIONS[name](torch, a.to_dense(), x)
    weight = np.random.default_rng(2).normal(size=tuple(dense.shape)).astype(dtype)
    (dense * of(library, weight).to(dense.dtype)).sum().backward()
    return out, v.grad, *(() if x.grad is None else (x.grad,))


@pytest.mark.parametrize("kind", list(PLACES))
@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_values_and_gradients(name: str, kind: str) -> None:
    try:
        theirs = call(torch, name, kind, np.float64)
    except (RuntimeError, IndexError) as error:
        if kind != "none":
            raise
        pytest.skip(f"PyTorch: {error}")
    ours = call(chainrule, name, kind, np.float64)
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        same(a, b)


@pytest.mark.parametrize("name", ["sparse.mm", "sparse @ sparse", "sparse.softmax 1", "a * dense"])
def test_float32(name: str) -> None:
    both = [call(t, name, "twice at a place", np.float32) for t in (chainrule, torch)]
    for a, b in zip(*both, strict=True):
        same(a, b, rtol=1e-5)


def test_complex_numbers() -> None:
    entries = r.normal(size=6) + 1j * r.normal(size=6)
    dense = r.normal(size=(4, 2)) + 1j * r.normal(size=(4, 2))
    grads = []
    for t in (chainrule, torch):
        v, x = of(t, entries).requires_grad_(), of(t, dense).requires_grad_()
        a = t.sparse_coo_tensor(of(t, PLACES["twice at a place"]), v, (3, 4))
        out = t.sparse.mm(a, x)
        (out.abs() ** 2).sum().backward()
        grads.append((out, v.grad, x.grad))
    for a, b in zip(*grads, strict=True):
        same(a, b)


# --- leaves ---------------------------------------------------------------------------------------

LEAVES: dict[str, Function] = {
    "mm": lambda t, a, x: t.sparse.mm(a, x).square().sum(),
    "mm twice": lambda t, a, x: t.sparse.mm(a, x).sum() + t.sparse.mm(a, x.square()).sum(),
    "scaled": lambda t, a, x: (2 * a).to_dense().square().sum(),
    "dense": lambda t, a, x: (a.to_dense() * of(t, SAME)).sum(),
}


@pytest.mark.parametrize("rows", [False, True], ids=["coo", "csr"])
@pytest.mark.parametrize("kind", ["coalesced", "twice at a place"])
@pytest.mark.parametrize("name", list(LEAVES))
def test_a_leaf_has_a_sparse_gradient(name: str, kind: str, rows: bool) -> None:
    if rows and (name in ("scaled", "mm twice") or kind != "coalesced"):
        pytest.skip("PyTorch has no such derivative for compressed rows")
    found = []
    for t in (chainrule, torch):
        entries = of(t, np.arange(1.0, 1 + PLACES[kind].shape[1]))
        a = t.sparse_coo_tensor(of(t, PLACES[kind]), entries, (3, 4))
        a = (a.coalesce().to_sparse_csr() if rows else a).detach().requires_grad_()
        LEAVES[name](t, a, of(t, X)).backward()
        (again,) = t.autograd.grad(LEAVES[name](t, a, of(t, X)), a)
        found.append((a.grad, again))
        assert a.is_leaf
    for a, b in zip(*found, strict=True):
        same(a, b)


def test_second_order() -> None:
    """Of the values behind a product, which PyTorch differentiates twice by the dense factor."""
    found = []
    for t in (chainrule, torch):
        v = of(t, np.arange(1.0, 7)).requires_grad_()
        x = of(t, X).requires_grad_()
        a = t.sparse_coo_tensor(of(t, PLACES["twice at a place"]), v, (3, 4))
        dense = a.to_dense() if t is torch else a
        (slope,) = t.autograd.grad((dense @ x).pow(3).sum(), x, create_graph=True)
        found.append(t.autograd.grad(slope.square().sum(), (v, x)))
    for a, b in zip(*found, strict=True):
        same(a, b)


# --- compressed rows, diagonals, entries with dimensions ------------------------------------------

ROWS: dict[str, Function] = {
    "@": lambda t, a, x: a @ x,
    "@ vector": lambda t, a, x: a @ x[:, 0],
    "dense @": lambda t, a, x: x[:3].t() @ a,
    "a @ a": lambda t, a, x: a @ (a.to_dense().t() @ a.to_dense()).to_sparse_csr(),
    "a * 2": lambda t, a, x: a * 2,
    "a * a": lambda t, a, x: a * a,
    "dense + a": lambda t, a, x: of(t, SAME) + a,
    "abs": lambda t, a, x: a.abs(),
    "sin": lambda t, a, x: t.sin(a),
    "sum": lambda t, a, x: a.sum(),
    "sum kept": lambda t, a, x: a.sum(1, keepdim=True),
    "to_dense": lambda t, a, x: a.to_dense(),
    "to_sparse": lambda t, a, x: a.to_sparse(),
    "crow_indices": lambda t, a, x: a.crow_indices(),
    "col_indices": lambda t, a, x: a.col_indices(),
    "values": lambda t, a, x: a.values(),
    "sampled_addmm": lambda t, a, x: t.sparse.sampled_addmm(a, x[:3], x.t(), beta=0.5, alpha=2),
    "mask": lambda t, a, x: of(t, SAME).sparse_mask(a),
    "mm mean": lambda t, a, x: t.sparse.mm(a, x, reduce="mean"),
    "mm amax": lambda t, a, x: t.sparse.mm(a, x, reduce="amax"),
    "mm amin": lambda t, a, x: t.sparse.mm(a, x, reduce="amin"),
}


@pytest.mark.parametrize("name", list(ROWS))
def test_compressed_rows(name: str) -> None:
    found = []
    for t in (chainrule, torch):
        a = t.sparse_csr_tensor([0, 2, 2, 4], [0, 3, 1, 2], of(t, np.arange(1.0, 5)), (3, 4))
        found.append(ROWS[name](t, a, of(t, X)))
    same(*found)


def test_diagonals() -> None:
    for layout in ("sparse_coo", "sparse_csr"):
        for shape in ((4, 4), (2, 5)):
            found = [
                t.sparse.spdiags(
                    of(t, np.arange(1.0, 13).reshape(3, 4)),
                    t.tensor([0, -1, 2]),
                    shape,
                    getattr(t, layout),
                )
                for t in (chainrule, torch)
            ]
            same(*found)


def test_entries_with_dimensions() -> None:
    values = r.normal(size=(3, 2))
    for function in (
        lambda t, a: a.to_dense(),
        lambda t, a: a.coalesce(),
        lambda t, a: t.sparse.sum(a, 0),
        lambda t, a: t.sparse.sum(a, 1),
        lambda t, a: t.sparse.softmax(a, 1),
        lambda t, a: t.sparse.softmax(a, 0),
        lambda t, a: a * 2,
        lambda t, a: a.to_dense().to_sparse(1),
    ):
        found = [
            function(t, t.sparse_coo_tensor([[3, 1, 3]], of(t, values), (4, 2)))
            for t in (chainrule, torch)
        ]
        same(*found)


# --- what is printed ------------------------------------------------------------------------------


def printed(t: Any) -> Iterator[Any]:
    a = t.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.5, 5.0], (2, 3))
    yield a
    yield a.double()
    yield a.coalesce().requires_grad_()
    yield a.to_sparse_csr()
    yield a.to_sparse_csr().double()
    yield a.long()
    yield t.sparse_coo_tensor((2, 3))
    yield t.sparse_coo_tensor([[0, 1]], [[1.0, 2.0], [1, 2]])
    yield t.sparse_coo_tensor(t.arange(60).reshape(2, 30), t.arange(30.0))
    yield t.eye(200).to_sparse()
    yield t.eye(1100).to_sparse_csr()
    yield (t.eye(2) * (1 + 2j)).to_sparse()


def test_printing() -> None:
    for ours, theirs in zip(printed(chainrule), printed(torch), strict=True):
        # Lines with our longer name break earlier.
        assert repr(ours).replace("chainrule.", "torch.").split() == repr(theirs).split()
        first, second = (repr(x).split("values=")[0] for x in (ours, theirs))
        assert first == second


# --- what both refuse -----------------------------------------------------------------------------

WRONG: list[Callable[[Any], Any]] = [
    lambda t: t.sparse_coo_tensor([[0, -1]], [1.0, 2.0]),
    lambda t: t.sparse_coo_tensor([[0, 5]], [1.0, 2.0], (2,), check_invariants=True),
    lambda t: t.sparse_coo_tensor([0, 1], [1.0, 2.0], (2, 3)),
    lambda t: t.sparse_coo_tensor([[0, 1]], [1.0], (2,)),
    lambda t: t.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (2, 3)),
    lambda t: t.sparse_coo_tensor([[0, 1]], [[1.0], [2.0]], (2, 3)),
    lambda t: t.sparse_coo_tensor([[0, 1]], [1.0, 2.0]).values(),
    lambda t: t.sparse_coo_tensor([[0, 1]], [1.0, 2.0]).indices(),
    lambda t: t.sparse_coo_tensor([[0]], [1.0]).crow_indices(),
    lambda t: t.eye(2).to_sparse_csr().coalesce(),
    lambda t: t.eye(2).to_sparse() @ t.ones(3, 2),
    lambda t: t.eye(2).to_sparse() @ t.ones(2, 2).double(),
    lambda t: t.eye(2).to_sparse() / t.ones(2, 2),
    lambda t: t.ones(3, 2).sparse_mask(t.eye(2).to_sparse()),
]


@pytest.mark.parametrize("wrong", WRONG)
def test_both_refuse(wrong: Callable[[Any], Any]) -> None:
    for t in (torch, chainrule):
        with pytest.raises(RuntimeError):
            wrong(t)
