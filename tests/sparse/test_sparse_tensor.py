"""What a sparse tensor is: how it is made, what it tells, copies, gradients, what it refuses."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from helpers import assert_close
from sparse.graphs import KINDS, dense_of, values_of

import chainrule
from chainrule import nn, sparse
from chainrule.sparse import SparseTensor
from chainrule.tensor import Tensor, of_array

COO, CSR = chainrule.sparse_coo_tensor, chainrule.sparse_csr_tensor


def matrix(**options: Any) -> SparseTensor:
    return COO([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3), **options)


# --- made -----------------------------------------------------------------------------------------


def test_what_it_tells() -> None:
    a = matrix()
    assert (a.shape, a.size(), a.size(1), a.dim(), a.ndim, len(a)) == ((2, 3), (2, 3), 3, 2, 2, 2)
    assert (a.numel(), a._nnz(), a.sparse_dim(), a.dense_dim()) == (6, 3, 2, 0)
    assert (a.dtype, a.device, a.layout) == (chainrule.float32, "cpu", chainrule.sparse_coo)
    assert (a.is_sparse, a.is_sparse_csr, a.is_coalesced()) == (True, False, False)
    assert not a.requires_grad
    assert a.is_leaf
    assert a.is_floating_point()
    assert not a.is_complex()
    assert chainrule.is_tensor(a)
    assert a._indices().tolist() == [[0, 1, 1], [2, 0, 2]]
    assert a._values().tolist() == [3, 4, 5]
    b = a.coalesce()
    assert b.is_coalesced()
    assert b.coalesce() is b
    assert b.indices().dtype is chainrule.int64
    c = a.to_sparse_csr()
    assert (c.layout, c.is_sparse, c.is_sparse_csr) == (chainrule.sparse_csr, False, True)
    assert c.crow_indices().tolist() == [0, 1, 3]
    assert c.col_indices().tolist() == [2, 0, 2]
    assert c.values().tolist() == [3, 4, 5]
    assert c.to_sparse_csr() is c
    assert c.to_sparse().layout is chainrule.sparse_coo
    assert a.to_sparse() is a
    assert a.to_sparse(layout=chainrule.sparse_csr).is_sparse_csr
    dense = chainrule.ones(2, 3)
    assert (dense.layout, dense.is_sparse) == (chainrule.strided, False)
    assert (dense.sparse_dim(), dense.dense_dim()) == (0, 2)
    assert dense.to_dense() is dense


def test_made_without_a_size_or_without_entries() -> None:
    assert COO([[0, 4], [2, 1]], [1.0, 2.0]).shape == (5, 3)
    assert COO([[1, 0]], [[1.0, 2.0], [3.0, 4.0]]).shape == (2, 2)
    assert CSR([0, 1, 1], [4], [1.0]).shape == (2, 5)
    for a in (
        COO((2, 3)),
        COO(chainrule.zeros(2, 0), chainrule.zeros(0), (2, 3)),
        COO(np.zeros((2, 0), int), [], (2, 3)),
        CSR([0, 0, 0], chainrule.zeros(0).long(), [], (2, 3)),
        chainrule.zeros(2, 3).to_sparse(),
        chainrule.zeros(2, 3).to_sparse_csr(),
    ):
        assert (a._nnz(), a.shape) == (0, (2, 3))
        assert not a.to_dense().any()
        assert not (a @ chainrule.ones(3, 2)).any()
        assert a.t().shape == (3, 2)
        assert a.sum().item() == 0
        assert (a + matrix().to(a.dtype)).to_dense().sum() == 12
    assert COO(np.zeros((2, 0), int), []).shape == (0, 0)
    assert COO((2, 0)).to_dense().shape == (2, 0)
    assert (COO((0, 3)) @ chainrule.ones(3, 2)).shape == (0, 2)


def test_from_dense() -> None:
    dense = of_array(np.array([[0.0, 2, 0], [3, 0, 4]])).requires_grad_()
    a = dense.to_sparse()
    assert a.is_coalesced()
    assert a.indices().tolist() == [[0, 1, 1], [1, 0, 2]]
    (a * a).to_dense().sum().backward()
    assert dense.grad.tolist() == [[0, 4, 0], [6, 0, 8]]
    assert dense.to_sparse_csr().crow_indices().tolist() == [0, 1, 3]
    assert dense.to_sparse(layout=chainrule.sparse_csr).is_sparse_csr
    assert chainrule.tensor(3.0).to_sparse().to_dense().item() == 3
    mask = COO([[1, 0], [2, 0]], [1.0, 1.0], (2, 3))
    assert dense.sparse_mask(mask)._values().tolist() == [4, 0]
    with pytest.raises(RuntimeError, match="sparse_dim must be between 1 and .* 2; got 3"):
        dense.to_sparse(3)
    with pytest.raises(RuntimeError, match=r"sparse_csr is for matrices, got shape \(3,\)"):
        chainrule.ones(3).to_sparse_csr()
    with pytest.raises(RuntimeError, match="layout must be .* got chainrule.strided"):
        dense.to_sparse(layout=chainrule.strided)
    with pytest.raises(RuntimeError, match="sparse_mask: operands have incompatible sizes"):
        chainrule.ones(3, 2).sparse_mask(mask)
    with pytest.raises(TypeError, match="sparse_mask: mask must be a sparse tensor, got Tensor"):
        dense.sparse_mask(dense)


def test_indices_are_its_own_and_values_are_shared() -> None:
    i, v = chainrule.tensor([[0, 1]]), chainrule.tensor([1.0, 2.0])
    a = COO(i, v, (3,))
    i[0, 0] = 2
    v[0] = 7
    assert a.to_dense().tolist() == [7, 2, 0]


def test_a_part_of_it_is_another_tensor() -> None:
    """In the same memory; what is asked of one is not asked of the other."""
    a = matrix()
    for other in (a.coalesce(), a.to_sparse_csr(), a.t(), a.detach(), a.to_sparse_csr().t()):
        other.requires_grad_()
        assert other.is_leaf
        assert not a.requires_grad
    leaf = matrix(requires_grad=True)
    for other in (leaf.coalesce(), leaf.to_sparse_csr(), leaf.t(), leaf.to_sparse_csr().t()):
        assert not other.is_leaf
        (slope,) = chainrule.autograd.grad(other.sum(), leaf)
        assert slope._values().tolist() == [1, 1, 1]


@pytest.mark.parametrize("form", ["coo", "csr", "csc", "lil", "dia"])
def test_scipy(form: str) -> None:
    theirs = scipy.sparse.random_array((5, 4), density=0.4, rng=0, format=form)
    a = sparse.from_scipy(theirs)
    assert a.layout is (chainrule.sparse_csr if form == "csr" else chainrule.sparse_coo)
    assert a.dtype is chainrule.float64
    assert_close(a.to_dense(), theirs.toarray(), 0, 0)
    for back in (sparse.to_scipy(a), a.to_scipy()):
        assert back.format == ("csr" if form == "csr" else "coo")
        assert_close(back.toarray(), theirs.toarray(), 0, 0)
    assert_close(
        sparse.from_scipy(scipy.sparse.csr_matrix(theirs)).to_dense(), theirs.toarray(), 0, 0
    )
    with pytest.raises(TypeError, match="from_scipy: expected a sparse array .* got ndarray"):
        sparse.from_scipy(theirs.toarray())
    with pytest.raises(RuntimeError, match="to_scipy: this tensor requires grad"):
        a.requires_grad_().to_scipy()


# --- what is refused ------------------------------------------------------------------------------

WRONG: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (
        lambda: COO([[0, 5], [1, 1]], [1.0, 2.0], (2, 3)),
        RuntimeError,
        "for dimension 0, size is 2 but found index 5",
    ),
    (lambda: COO([[0, -1]], [1.0, 2.0], (2,)), RuntimeError, "negative index -1 for dimension 0"),
    (lambda: COO([0, 1], [1.0, 2.0], (2, 3)), RuntimeError, r"\(sparse_dim, nnz\), got \(2,\)"),
    (lambda: COO([[0, 1]], [1.0], (2,)), RuntimeError, r"name 2 entries, values have shape \(1,\)"),
    (lambda: COO([[0.5, 1]], [1.0, 2.0], (2,)), RuntimeError, "must be integers, got .*float32"),
    (lambda: COO([[0, 1]], [1.0, 2.0], (2, 3)), RuntimeError, r"size \(2, 3\) has 2 dimensions"),
    (
        lambda: COO([[0, 1]], [[1.0], [2.0]], (2, 3)),
        RuntimeError,
        r"expected \(2, 3\), got \(2, 1\)",
    ),
    (lambda: COO([[0, 1]], [1.0, 2.0], (-2,)), RuntimeError, "negative dimension"),
    (lambda: COO([[1, 0]], [1.0, 2.0], is_coalesced=True), RuntimeError, "are not sorted"),
    (lambda: COO([[0]], matrix()), TypeError, "values must be a dense tensor, got a sparse one"),
    (lambda: COO([[0]], [1.0], device="cuda"), RuntimeError, "'cuda' is not available"),
    (lambda: COO([[0]], [1.0], pin_memory=True), RuntimeError, "memory is pinned for a GPU"),
    (lambda: COO([[0]], [1], requires_grad=True), RuntimeError, "only tensors of floating point"),
    (lambda: CSR([0, 1, 3], [1, 0], [1.0, 2.0]), RuntimeError, r"entries, 2; got \[0, 1, 3\]"),
    (lambda: CSR([0, 2, 1, 2], [1, 0], [1.0, 2.0]), RuntimeError, "must grow from 0"),
    (lambda: CSR([0, 2], [1, 7], [1.0, 2.0], (1, 5)), RuntimeError, "dimension 1, size is 5 but"),
    (lambda: CSR([0, 2], [1, -7], [1.0, 2.0]), RuntimeError, "negative index -7 for dimension 1"),
    (lambda: CSR([0, 2], [1, 0], [1.0]), RuntimeError, "name 2 entries, values have shape"),
    (lambda: CSR([0, 2], [1, 0], [1.0, 2.0], (2, 5)), RuntimeError, "a matrix with 1 rows"),
    (lambda: CSR([0.0, 1], [1], [1.0]), RuntimeError, "crow_indices must be integers"),
    (lambda: CSR([[0, 1]], [[1]], [[1.0]]), RuntimeError, "must be vectors, one matrix at a time"),
    (
        lambda: CSR([0, 2], [1, 0], [1.0, 2.0], check_invariants=True),
        RuntimeError,
        "not sorted, or name a place twice",
    ),
    (lambda: matrix().values(), RuntimeError, "values of an uncoalesced tensor; call .coalesce"),
    (lambda: matrix().indices(), RuntimeError, "indices of an uncoalesced tensor"),
    (
        lambda: matrix().crow_indices(),
        RuntimeError,
        "crow_indices: expected .* layout .*sparse_csr",
    ),
    (lambda: matrix().to_sparse_csr().indices(), RuntimeError, "layout chainrule.sparse_coo, got"),
    (lambda: matrix().to_sparse_csr().coalesce(), RuntimeError, "convert it with .to_sparse_coo"),
    (lambda: matrix().to_sparse(1), RuntimeError, "2 sparse dimensions, got sparse_dim=1"),
    (lambda: COO([[0]], [1.0]).to_sparse_csr(), RuntimeError, "rows are for matrices of numbers"),
    (lambda: matrix() @ chainrule.ones(2, 2), RuntimeError, r"\(2, 3\) and \(2, 2\) cannot be mul"),
    (lambda: matrix() @ chainrule.ones(3, 2).double(), RuntimeError, "to have the same dtype"),
    (lambda: matrix() @ 3, TypeError, "expected a tensor, got int; multiply by a number with"),
    (lambda: COO([[0]], [1.0]) @ chainrule.ones(1, 1), RuntimeError, "a matrix with 2 sparse dim"),
    (lambda: sparse.mm(matrix(), chainrule.ones(3)), RuntimeError, "sparse.mm: expected matrices"),
    (lambda: sparse.mm(matrix(), chainrule.ones(3, 1), "max"), ValueError, "got 'max'"),
    (lambda: sparse.sum(chainrule.ones(2)), TypeError, "sparse.sum: expected a sparse tensor"),
    (lambda: sparse.softmax(matrix().long(), 0), RuntimeError, "not implemented for .*int64"),
    (lambda: matrix() + COO((3, 2)), RuntimeError, r"same shape .* \(2, 3\) and \(3, 2\)"),
    (lambda: matrix() * chainrule.ones(4, 2, 3), RuntimeError, "does not expand to the shape"),
    (lambda: matrix() / chainrule.ones(2, 3), RuntimeError, "divided by a number .* by 1 / y"),
    (lambda: matrix() ** 0, RuntimeError, "exponent of a sparse tensor must be .* above 0"),
    (lambda: matrix().norm(0), RuntimeError, "p must be above 0 for a sparse tensor"),
    (lambda: matrix()[2], IndexError, "index 2 is out of range for dimension 0"),
    (lambda: matrix().index_select(0, chainrule.tensor([2])), IndexError, "index_select"),
    (lambda: matrix().size(2), IndexError, "dimension 2 is out of range"),
    (lambda: matrix().permute(0), RuntimeError, "expected 2 dimensions"),
    (lambda: matrix().to("cuda"), RuntimeError, "'cuda' is not available"),
    (lambda: matrix().copy_(COO((3, 2))), RuntimeError, r"shape \(2, 3\) and layout"),
]


@pytest.mark.parametrize(("call", "error", "message"), WRONG)
def test_what_is_wrong_is_said(
    call: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()


DENSE: dict[str, Callable[[Any], Any]] = {
    "cumsum": lambda a: chainrule.cumsum(a, 0),
    "exp": chainrule.exp,
    "cat": lambda a: chainrule.cat([a, a]),
    "softmax": lambda a: chainrule.softmax(a, 1),
    "reshape": lambda a: chainrule.reshape(a, (3, 2)),
    "amax": chainrule.amax,
    "conv1d": lambda a: chainrule.conv1d(a, chainrule.ones(1, 1, 1)),
    "zeros_like": chainrule.zeros_like,
    "where": lambda a: chainrule.where(a, 1, 0),
    "tensor": chainrule.tensor,
    "Tensor": chainrule.Tensor,
    "clamp": lambda a: chainrule.clamp(a, 0, 1),
    "add": lambda a: a + 1,
    "rsub": lambda a: 1 - a,
    "division by a sparse tensor": lambda a: 1 / a,
    "pow with a sparse exponent": lambda a: 2**a,
    "maximum": lambda a: chainrule.maximum(chainrule.ones(2, 3), a),
    "comparison": lambda a: a > 0,
    "numpy": lambda a: a.numpy(),
    "np.asarray": np.asarray,
    "bool": lambda a: bool(a),
    "gelu": nn.functional.gelu,
    "mse_loss": lambda a: nn.functional.mse_loss(a, chainrule.ones(2, 3)),
    "cross_entropy": lambda a: nn.functional.cross_entropy(a, chainrule.tensor([0, 1])),
    "layer_norm": lambda a: nn.functional.layer_norm(a, (3,)),
    "inv": chainrule.linalg.inv,
    "equal": lambda a: chainrule.equal(a, a),
    "Parameter": nn.Parameter,
}


@pytest.mark.parametrize("name", list(DENSE))
@pytest.mark.parametrize("a", [matrix(), matrix().to_sparse_csr()], ids=["coo", "csr"])
def test_dense_operations_say_so(name: str, a: SparseTensor) -> None:
    with pytest.raises(
        TypeError, match=r"expected dense tensors, got one of .* convert it with \.to_dense\(\)"
    ):
        DENSE[name](a)


def test_methods_of_dense_tensors_say_so() -> None:
    with pytest.raises(AttributeError, match="no attribute 'exp': it is for dense tensors"):
        matrix().exp()
    with pytest.raises(AttributeError, match="no attribute 'nonsense'$"):
        matrix().nonsense  # noqa: B018
    with pytest.raises(AttributeError, match=r"and this one is dense; x\.to_sparse\(\)"):
        chainrule.ones(2).coalesce()


# --- gradients ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_leaf_gets_a_sparse_gradient(kind: str) -> None:
    """Of each place once: the gradient of the dense matrix, at the places of the entries."""
    a = KINDS[kind][0](values_of(kind)).requires_grad_()
    assert a.requires_grad
    assert a.is_leaf
    x = of_array(np.random.default_rng(0).normal(size=(4, 2)))
    dense = a.detach().to_dense().requires_grad_()
    for m in (a, dense):
        (m @ x).square().sum().backward()
    assert a.grad.layout is a.layout
    there = dense_of(a.with_values(chainrule.ones(a._nnz()))) != 0
    assert a.grad._nnz() == there.sum()
    assert_close(a.grad.to_dense(), dense.grad.numpy() * there, rtol=1e-12, atol=0)
    (got,) = chainrule.autograd.grad((a @ x).square().sum(), a)
    assert_close(got.to_dense(), a.grad.to_dense(), rtol=0, atol=0)
    (a @ x).square().sum().backward()
    assert_close(a.grad.to_dense(), 2 * got.to_dense(), rtol=1e-12, atol=0)
    a.grad = None
    assert a.grad is None


def test_second_order_through_a_leaf() -> None:
    a, x = matrix(requires_grad=True), chainrule.ones(3, 2)
    (first,) = chainrule.autograd.grad((a @ x).pow(3).sum(), a, create_graph=True)
    assert first.requires_grad
    (second,) = chainrule.autograd.grad(first.sum(), [a])
    assert second.to_dense().tolist() == [[0, 0, 36], [216, 0, 216]]


def test_gradients_flow_to_the_values_it_was_made_of() -> None:
    v = chainrule.tensor([3.0, 4.0, 5.0], requires_grad=True)
    a = COO([[0, 1, 0], [0, 1, 0]], v)
    assert a.requires_grad
    assert not a.is_leaf
    a.retain_grad()
    (a @ chainrule.ones(2, 1)).square().sum().backward()
    assert v.grad.tolist() == [16, 8, 16]
    assert a.grad.to_dense().tolist() == [[16, 0], [0, 8]]
    assert not a.detach().requires_grad
    leaf = COO([[0], [0]], v[:1], requires_grad=True)
    assert leaf.is_leaf
    assert leaf.coalesce().values().requires_grad
    assert not leaf._values().requires_grad
    with pytest.raises(RuntimeError, match="requires grad cannot be changed in place"):
        leaf.copy_(leaf)
    with pytest.raises(RuntimeError, match="with entries at the same places, or None; got Tensor"):
        leaf.grad = chainrule.ones(1, 1)


def test_the_compressed_form_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """And shared by all tensors that have the same places, and by their transposes."""
    a = COO([[1, 0], [0, 1]], [1.0, 2.0], (2, 2))
    x = chainrule.ones(2, 1)
    _ = a @ x, a.t() @ x
    calls = []
    kernels = chainrule.backend.numpy_kernels.sparse
    monkeypatch.setattr(kernels, "compressed_rows", lambda *given: calls.append(given))
    for same in (a, a * 2, -a, a.detach(), a.clone(), a.double().float()):
        assert (same @ x).shape == (2, 1)
        assert (same.t() @ x).shape == (2, 1)
        assert (x.T @ same).shape == (1, 2)
    assert not calls


# --- copies ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", list(KINDS))
def test_copies(kind: str) -> None:
    a = KINDS[kind][0](values_of(kind)).requires_grad_()
    (a @ chainrule.ones(4, 1).double()).sum().backward()
    for other in (
        copy.deepcopy(a),
        copy.copy(a),
        pickle.loads(pickle.dumps(a)),
        a.clone(),
        a.detach(),
        a.data,
    ):
        assert type(other) is SparseTensor
        assert other.layout is a.layout
        assert_close(other.to_dense().detach(), a.to_dense().detach(), rtol=0, atol=0)
    assert copy.deepcopy(a).requires_grad
    assert_close(copy.deepcopy(a).grad.to_dense(), a.grad.to_dense(), rtol=0, atol=0)
    assert copy.deepcopy(a)._values().array is not a._values().array
    two = copy.deepcopy([a, a])
    assert two[0] is two[1]
    assert pickle.loads(pickle.dumps(a.layout)) is a.layout


def test_conversions() -> None:
    a = matrix()
    assert a.to(chainrule.float32) is a
    assert a.cpu() is a
    assert a.to("cpu", chainrule.float64).dtype is chainrule.float64
    assert a.to(matrix().double()).dtype is chainrule.float64
    assert a.type_as(chainrule.ones(1).half()).dtype is chainrule.float16
    kinds = ("half", "float", "double", "cfloat", "cdouble", "int", "long", "bool")
    names = [getattr(a, kind)().dtype.name for kind in kinds]
    assert names == [
        *("float16", "float32", "float64", "complex64", "complex128"),
        *("int32", "int64", "bool"),
    ]
    assert a.type("float64").dtype is chainrule.float64
    assert (a.cfloat() * 2j).imag.to_dense().tolist() == [[0, 0, 6], [8, 0, 10]]
    assert a.to_dense(chainrule.float64).dtype is chainrule.float64
    a.zero_()
    assert (a._nnz(), a.to_dense().any().item()) == (3, False)


# --- in modules and files -------------------------------------------------------------------------


class Propagate(nn.Module):
    """One layer of a graph network."""

    adjacency: SparseTensor

    def __init__(self, adjacency: SparseTensor):
        super().__init__()
        self.register_buffer("adjacency", adjacency)
        self.linear = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.adjacency @ self.linear(x)


@pytest.mark.parametrize("as_rows", [False, True])
def test_a_buffer(as_rows: bool, tmp_path: Any) -> None:
    edges = COO([[0, 1, 2, 0], [1, 2, 0, 1]], [1.0, 2.0, 3.0, 4.0], (4, 4))
    net = Propagate(edges.to_sparse_csr() if as_rows else edges)
    x = chainrule.ones(4, 3)
    out = net(x)
    assert dict(net.named_buffers())["adjacency"] is net.adjacency
    state = net.state_dict()
    assert list(state) == ["adjacency", "linear.weight", "linear.bias"]
    other = Propagate(COO((4, 4)).to_sparse(layout=net.adjacency.layout))
    other.load_state_dict(state)
    assert_close(other(x), out, rtol=0, atol=0)
    assert other.adjacency.structure is net.adjacency.structure
    net.adjacency.zero_()
    assert other.adjacency.to_dense().any()

    path = tmp_path / "state.safetensors"
    chainrule.save(other.state_dict(), path)
    loaded = chainrule.load(path)
    assert loaded["adjacency"].layout is net.adjacency.layout
    again = Propagate(COO((4, 4)).to_sparse(layout=net.adjacency.layout))
    again.load_state_dict(loaded)
    assert_close(again(x), out, rtol=0, atol=0)
    twin = copy.deepcopy(again).double()
    assert twin.adjacency.dtype is chainrule.float64
    assert again.adjacency.dtype is chainrule.float32
    assert_close(twin(x.double()), out, rtol=1e-6, atol=0)
    assert again.to(chainrule.float64).adjacency.dtype is chainrule.float64

    with pytest.raises(RuntimeError, match=r"copy_: expected a sparse tensor of shape \(3, 3\)"):
        Propagate(COO((3, 3))).load_state_dict(state)
    with pytest.raises(RuntimeError, match="expected a sparse tensor"):
        again.load_state_dict(state | {"adjacency": chainrule.ones(4, 4)})
    assert "adjacency" not in nn.Linear(2, 2).state_dict()


def test_files(tmp_path: Any) -> None:
    path = tmp_path / "sparse.safetensors"
    values = {
        "coo": matrix(),
        "sorted": matrix().coalesce(),
        "csr": matrix().to_sparse_csr(),
        "leaf": matrix(requires_grad=True),
        "none": COO((2, 3)),
        "complex": matrix().cfloat(),
        "rows of a table": [COO([[1]], [[1.0, 2.0]], (3, 2))],
    }
    chainrule.save(values, path)
    loaded = chainrule.load(path)
    for name, old in values.items():
        a, b = (old[0], loaded[name][0]) if isinstance(old, list) else (old, loaded[name])
        assert repr(b) == repr(a), name
        assert b.requires_grad == a.requires_grad
        assert b.is_sparse_csr or b.is_coalesced() == a.is_coalesced()
        assert_close(b.to_dense().detach(), a.to_dense().detach(), rtol=0, atol=0)


def test_damaged_files_are_refused(tmp_path: Any) -> None:
    path = tmp_path / "sparse.safetensors"
    a = matrix()
    a.structure.indices[0, 0] = 7
    chainrule.save(a, path)
    with pytest.raises(ValueError, match="holds a damaged sparse tensor: .* found index 7"):
        chainrule.load(path)
