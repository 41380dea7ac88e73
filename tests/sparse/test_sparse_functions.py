"""Every function of sparse tensors against the same function of the dense ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import assert_close
from sparse.graphs import KINDS, dense_of, values_of

import chainrule
from chainrule import sparse
from chainrule.autograd import gradcheck, gradgradcheck
from chainrule.func import jvp, vmap
from chainrule.sparse import SparseTensor
from chainrule.tensor import Tensor, of_array

Function = Callable[..., Any]
r = np.random.default_rng(3)
COLUMNS = of_array(r.normal(size=(4, 2)))
ROWS = of_array(r.normal(size=(2, 3)))
BATCH = of_array(r.normal(size=(5, 4, 2)))
SAME = of_array(r.normal(size=(3, 4)))
VECTOR = of_array(r.normal(size=4))
LEFT = of_array(r.normal(size=3))
SECOND = chainrule.sparse_coo_tensor(
    [[0, 0, 2, 1], [0, 2, 3, 2]], of_array(r.normal(size=4)), (3, 4), is_coalesced=None
)
SQUARE = of_array(r.normal(size=(3, 3)))
INDEX = chainrule.tensor([2, 0, 2])

# Of a sparse matrix (3, 4), and the same of the dense one.
FUNCTIONS: dict[str, tuple[Function, Function]] = {
    "to_dense": (lambda a: a.to_dense(), lambda d: d),
    "coalesce": (lambda a: a.to_sparse_coo().coalesce(), lambda d: d),
    "to_sparse_csr": (lambda a: a.to_sparse_csr(), lambda d: d),
    "to_sparse_coo": (lambda a: a.to_sparse_coo(), lambda d: d),
    "clone": (lambda a: a.clone(), lambda d: d),
    "@ matrix": (lambda a: a @ COLUMNS, lambda d: d @ COLUMNS),
    "matrix @": (lambda a: ROWS @ a, lambda d: ROWS @ d),
    "@ vector": (lambda a: a @ VECTOR, lambda d: d @ VECTOR),
    "vector @": (lambda a: LEFT @ a, lambda d: LEFT @ d),
    "@ batch": (lambda a: a @ BATCH, lambda d: d @ BATCH),
    "batch @": (lambda a: BATCH.mT @ a.t(), lambda d: BATCH.mT @ d.T),
    "@ sparse": (lambda a: a @ SECOND.t(), lambda d: d @ SECOND.to_dense().T),
    "sparse @": (lambda a: SECOND.t() @ a, lambda d: SECOND.to_dense().T @ d),
    "@ itself": (lambda a: a.t() @ a, lambda d: d.T @ d),
    "mm": (lambda a: chainrule.mm(a, COLUMNS), lambda d: d @ COLUMNS),
    "mv": (lambda a: chainrule.mv(a, VECTOR), lambda d: d @ VECTOR),
    "matmul": (lambda a: a.matmul(COLUMNS), lambda d: d @ COLUMNS),
    "spmm": (lambda a: chainrule.spmm(a, COLUMNS), lambda d: d @ COLUMNS),
    "sparse.mm": (lambda a: sparse.mm(a, COLUMNS), lambda d: d @ COLUMNS),
    "addmm": (
        lambda a: chainrule.addmm(SQUARE[:, :2], a, COLUMNS, beta=0.5, alpha=2),
        lambda d: 0.5 * SQUARE[:, :2] + 2 * (d @ COLUMNS),
    ),
    "sparse.addmm": (
        lambda a: sparse.addmm(SQUARE[:, :2], a, COLUMNS, beta=0.5, alpha=2),
        lambda d: 0.5 * SQUARE[:, :2] + 2 * (d @ COLUMNS),
    ),
    "sparse.addmm of sparse": (
        lambda a: sparse.addmm(a, SQUARE.to_sparse(), a, beta=0.5, alpha=2),
        lambda d: 0.5 * d + 2 * (SQUARE @ d),
    ),
    "linear": (
        lambda a: chainrule.nn.functional.linear(a, COLUMNS.T, VECTOR[:2]),
        lambda d: d @ COLUMNS + VECTOR[:2],
    ),
    "linear, sparse weight": (
        lambda a: chainrule.nn.functional.linear(SAME, a, LEFT),
        lambda d: SAME @ d.T + LEFT,
    ),
    "+ sparse": (lambda a: a + SECOND, lambda d: d + SECOND.to_dense()),
    "- sparse": (lambda a: a.sub(SECOND, alpha=2), lambda d: d - 2 * SECOND.to_dense()),
    "+ itself": (lambda a: a + a * 2, lambda d: 3 * d),
    "dense + ": (lambda a: SAME + a, lambda d: SAME + d),
    "+ dense": (lambda a: a + SAME, lambda d: SAME + d),
    "dense - ": (lambda a: SAME - a, lambda d: SAME - d),
    "- dense": (lambda a: a - SAME, lambda d: d - SAME),
    "* number": (lambda a: a * 3, lambda d: d * 3),
    "number *": (lambda a: 3 * a, lambda d: d * 3),
    "* 0-d": (lambda a: a * VECTOR[0], lambda d: d * VECTOR[0]),
    "/ number": (lambda a: a / 3, lambda d: d / 3),
    "div": (lambda a: chainrule.div(a, VECTOR[0]), lambda d: d / VECTOR[0]),
    "* sparse": (lambda a: a * SECOND, lambda d: d * SECOND.to_dense()),
    "* itself": (lambda a: a * a, lambda d: d * d),
    "* dense": (lambda a: a * SAME, lambda d: d * SAME),
    "dense *": (lambda a: SAME * a, lambda d: d * SAME),
    "* row": (lambda a: a * VECTOR, lambda d: d * VECTOR),
    "* column": (lambda a: a * LEFT[:, None], lambda d: d * LEFT[:, None]),
    "** 2": (lambda a: a**2, lambda d: d**2),
    "pow": (lambda a: chainrule.pow(a, 3), lambda d: d**3),
    "neg": (lambda a: -a, lambda d: -d),
    "t": (lambda a: a.t(), lambda d: d.T),
    "T": (lambda a: a.T, lambda d: d.T),
    "mT": (lambda a: a.mT, lambda d: d.T),
    "transpose": (lambda a: chainrule.transpose(a, 0, 1), lambda d: d.T),
    "permute": (lambda a: a.permute(1, 0), lambda d: d.T),
    "sum": (lambda a: a.sum(), lambda d: d.sum()),
    "sum 0": (lambda a: a.sum(0), lambda d: d.sum(0)),
    "sum -1": (lambda a: chainrule.sum(a, -1), lambda d: d.sum(1)),
    "sum both": (lambda a: a.sum((0, 1)), lambda d: d.sum()),
    "sum kept": (lambda a: a.sum(0, keepdim=True), lambda d: d.sum(0, keepdim=True)),
    "sum all kept": (lambda a: a.sum((0, 1), keepdim=True), lambda d: d.sum((0, 1), keepdim=True)),
    "sparse.sum": (lambda a: sparse.sum(a, 1), lambda d: d.sum(1)),
    "norm": (lambda a: (a + SECOND).norm(3), lambda d: (d + SECOND.to_dense()).norm(3)),
    "index_select 0": (lambda a: a.index_select(0, INDEX), lambda d: d[INDEX]),
    "index_select 1": (lambda a: a.index_select(1, INDEX), lambda d: d[:, INDEX]),
    "a[2]": (lambda a: a[2], lambda d: d[2]),
    "a[-1, 3]": (lambda a: a[-1, 3], lambda d: d[-1, 3]),
    "a[:, 1]": (lambda a: a[:, 1], lambda d: d[:, 1]),
    "a[1:, ::2]": (lambda a: a[1:, ::2], lambda d: d[1:, ::2]),
    "a[[2, 0]]": (lambda a: a[[2, 0]], lambda d: d[[2, 0]]),
    "select": (lambda a: a.select(1, 3), lambda d: d[:, 3]),
    "sparse_mask": (
        lambda a: a.sparse_mask(SECOND),
        lambda d: d * (SECOND.to_dense() != 0),
    ),
    "reduce mean": (
        lambda a: sparse.mm(SECOND.coalesce(), chainrule.cat([a.to_dense().T[:, :2]]), "mean"),
        lambda d: (
            SECOND.to_dense()
            @ d.T[:, :2]
            / (SECOND.to_dense() != 0).sum(1, keepdim=True).clamp(min=1).double()
        ),
    ),
}
KEEP_ZEROS = "abs asin asinh atan atanh deg2rad erf erfinv expm1 log1p nan_to_num rad2deg relu "
KEEP_ZEROS += "sgn sign sin sinh sqrt square tan tanh positive ceil floor frac round trunc"


def method(name: str) -> tuple[Function, Function]:
    return lambda a: getattr(a, name)(), lambda d: getattr(d, name)()


FUNCTIONS |= {f".{name}()": method(name) for name in KEEP_ZEROS.split()}
ALL = [(name, kind) for name in FUNCTIONS for kind in KINDS]


def as_dense(out: Any) -> Tensor:
    return out.to_dense() if isinstance(out, SparseTensor) else out


@pytest.mark.parametrize(("name", "kind"), ALL)
def test_value(name: str, kind: str) -> None:
    make, values = KINDS[kind][0], values_of(kind)
    ours, of_dense = FUNCTIONS[name]
    a = make(values)
    before = dense_of(a).copy()
    out, expected = ours(a), of_dense(of_array(before))
    assert_close(as_dense(out), expected, rtol=1e-12, atol=1e-12)
    assert tuple(out.shape) == tuple(expected.shape)
    assert out.dtype is expected.dtype
    assert_close(dense_of(a), before, rtol=0, atol=0)
    if isinstance(out, SparseTensor) and out.is_sparse and out.is_coalesced():
        keys = np.ravel_multi_index(tuple(out.indices().numpy()), tuple(out.shape))
        assert (np.diff(keys) > 0).all()


@pytest.mark.parametrize(
    ("name", "kind"), [(n, k) for n, k in ALL if k in ("twice at a place", "compressed rows")]
)
def test_derivatives(name: str, kind: str) -> None:
    """By the values of the entries: both modes, first and second order, many at once."""
    make, ours = KINDS[kind][0], FUNCTIONS[name][0]
    values = values_of(kind)

    def function(v: Tensor) -> Tensor:
        return as_dense(ours(make(v)))

    if name in (".ceil()", ".floor()", ".round()", ".trunc()", ".sign()", ".sgn()"):
        assert not function(values.requires_grad_()).sum().backward()
        assert not values.grad.any()
        return
    leaf = values.clone().requires_grad_()
    gradcheck(function, (leaf,))
    gradgradcheck(function, (leaf,))
    many = of_array(np.random.default_rng(5).uniform(0.1, 0.45, (3, len(values))))
    each = [function(v) for v in many]
    assert_close(vmap(function)(many), chainrule.stack(each), rtol=1e-12, atol=1e-12)
    tangent = chainrule.ones_like(values)
    forward = jvp(function, (values,), (tangent,))[1]
    (slope,) = chainrule.autograd.grad(function(leaf), leaf, chainrule.ones_like(forward))
    assert_close(forward.sum(), slope.sum(), rtol=1e-10, atol=1e-12)


def test_gradients_of_dense_operands() -> None:
    make, values = KINDS["twice at a place"][0], values_of("twice at a place")

    def function(v: Tensor, x: Tensor, y: Tensor, bias: Tensor) -> Tensor:
        a = make(v)
        out = chainrule.addmm(bias, a, x) + (y @ a).sum()
        return (
            out
            + (a * (x @ y).T[0, :1]).to_dense().sum()
            + sparse.sampled_addmm(a.to_sparse_csr(), y.T, x.T).sum()
        )

    inputs = [v.clone().requires_grad_() for v in (values, COLUMNS, ROWS, SQUARE[:, :2])]
    gradcheck(function, inputs)
    gradgradcheck(function, inputs)


def test_softmax_is_that_of_the_entries() -> None:
    """What is no entry counts as -inf, entries at one place as their sum."""
    for kind, (make, count) in KINDS.items():
        if not count:
            continue
        a = make(values_of(kind))
        filled = dense_of(a)
        filled[dense_of(make(chainrule.ones(count))) == 0] = -np.inf
        for dim in (0, 1, -1):
            expected = np.nan_to_num(chainrule.softmax(of_array(filled), dim).numpy())
            assert_close(sparse.softmax(a, dim).to_dense(), expected, rtol=1e-12, atol=0)
            logs = sparse.log_softmax(a, dim)
            assert_close(logs._values().exp(), sparse.softmax(a, dim)._values(), 1e-12, 0)

            def function(v: Tensor, make: Any = make, dim: int = dim) -> Any:
                a = make(v)
                return sparse.softmax(a, dim).to_dense(), sparse.log_softmax(a, dim).to_dense()

            leaf = values_of(kind).requires_grad_()
            gradcheck(function, (leaf,))
            gradgradcheck(function, (leaf,))
    empty = KINDS["none"][0](chainrule.zeros(0))
    assert sparse.softmax(empty, 1)._nnz() == 0


def test_softmax_of_large_values() -> None:
    a = chainrule.sparse_coo_tensor([[0, 0, 1], [0, 1, 1]], [1e30, 1e30, -1e30])
    assert sparse.softmax(a, 1).values().tolist() == [0.5, 0.5, 1.0]
    assert_close(sparse.log_softmax(a, 1).values().exp(), np.array([0.5, 0.5, 1.0]), 1e-6, 0)


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin"])
@pytest.mark.parametrize("kind", list(KINDS))
def test_products_with_another_reduction(kind: str, reduce: str) -> None:
    make, values = KINDS[kind][0], values_of(kind)
    a = make(values).to_sparse_coo().coalesce()
    terms = dense_of(a)[:, :, None] * COLUMNS.numpy()
    there = dense_of(a.with_values(chainrule.ones(a._nnz())))[:, :, None] != 0
    by = {"sum": np.sum, "mean": np.mean, "amax": np.max, "amin": np.min}[reduce]
    expected = np.zeros((3, 2))
    for i in range(3):
        if there[i].any():
            expected[i] = by(terms[i][there[i, :, 0]], axis=0)
    assert_close(sparse.mm(a, COLUMNS, reduce), expected, rtol=1e-12, atol=1e-12)
    if a._nnz():
        leaves = (values.requires_grad_(), COLUMNS.clone().requires_grad_())
        gradcheck(lambda v, x: sparse.mm(make(v), x, reduce), leaves)


def test_sampled_product() -> None:
    a = KINDS["compressed rows"][0](values_of("compressed rows"))
    x, y = of_array(r.normal(size=(3, 5))), of_array(r.normal(size=(5, 4)))
    out = sparse.sampled_addmm(a, x, y, beta=0.5, alpha=2)
    product = 0.5 * dense_of(a) + 2 * (x @ y).numpy()
    expected = product * (dense_of(a) != 0)
    assert_close(out.to_dense(), expected, rtol=1e-12, atol=1e-12)
    nothing = sparse.sampled_addmm(a, x * float("nan"), y, beta=0, alpha=0)
    assert nothing._values().isnan().all()
    with pytest.raises(RuntimeError, match="layout chainrule.sparse_csr, got chainrule.sparse_coo"):
        sparse.sampled_addmm(a.to_sparse_coo(), x, y)
    with pytest.raises(RuntimeError, match=r"product has shape \(3, 4\), got \(5, 3\)"):
        sparse.sampled_addmm(a, x.T, y)


def test_entries_with_dimensions_of_their_own() -> None:
    """Rows of a table, two of them the same."""
    v = of_array(r.normal(size=(3, 2, 2))).requires_grad_()

    def make(v: Tensor) -> SparseTensor:
        return chainrule.sparse_coo_tensor([[1, 3, 1]], v, (4, 2, 2))

    a = make(v)
    assert (a.sparse_dim(), a.dense_dim(), a.ndim) == (1, 2, 3)
    expected = np.zeros((4, 2, 2))
    np.add.at(expected, [1, 3, 1], v.detach().numpy())
    dense = of_array(expected)
    cases = {
        "dense": (a.to_dense(), dense),
        "sum": (a.sum(), dense.sum()),
        "sum 0": (a.sum(0), dense.sum(0)),
        "sum 1": (a.sum(1).to_dense(), dense.sum(1)),
        "sum 0, 2": (a.sum((0, 2)), dense.sum((0, 2))),
        "sum kept": (a.sum(2, keepdim=True).to_dense(), dense.sum(2, keepdim=True)),
        "a[1]": (a[1], dense[1]),
        "a[1, 0]": (a[1, 0], dense[1, 0]),
        "select": (a.index_select(2, chainrule.tensor([1, 1])).to_dense(), dense[:, :, [1, 1]]),
        "transpose": (a.transpose(1, 2).to_dense(), dense.mT),
        "square": (a.square().to_dense(), dense**2),
        "times": ((a * dense[1, 0]).to_dense(), dense * dense[1, 0]),
        "softmax": (sparse.softmax(a, 2).coalesce()[1], chainrule.softmax(dense[1], 1)),
    }
    for name, (ours, theirs) in cases.items():
        assert_close(ours.detach(), theirs, rtol=1e-12, atol=1e-12), name
    gradcheck(lambda v: make(v).square().to_dense(), (v,))
    gradgradcheck(lambda v: sparse.softmax(make(v), 0).to_dense(), (v,))
    with pytest.raises(RuntimeError, match="permute: sparse dimensions .* stay in front"):
        a.transpose(0, 1)
    assert_close(of_array(expected).to_sparse(1).to_dense(), expected, 0, 0)
    assert of_array(expected).to_sparse(1)._indices().tolist() == [[1, 3]]


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.complex64, np.complex128, np.int64])
@pytest.mark.parametrize("kind", ["twice at a place", "compressed rows"])
def test_types(dtype: Any, kind: str) -> None:
    numbers = np.round(values_of(kind).numpy() * 10)
    if np.issubdtype(dtype, np.complexfloating):
        numbers = numbers * (1 + 2j)
    a = KINDS[kind][0](of_array(numbers.astype(dtype)))
    x = of_array(np.round(COLUMNS.numpy() * 5).astype(dtype))
    for out in (a @ x, x.T @ a.t(), (a @ a.t()).to_dense(), a.to_dense(), a.sum(), a * a, -a):
        assert str(out.dtype) == f"chainrule.{np.dtype(dtype)}"
    assert_close(a @ x, dense_of(a) @ x.numpy(), rtol=1e-2 if dtype == np.float16 else 1e-5, atol=0)


def test_complex_gradients() -> None:
    make = KINDS["twice at a place"][0]
    parts = [of_array(r.normal(size=(2, *shape))).requires_grad_() for shape in ((6,), (4, 2))]

    def function(v: Tensor, x: Tensor) -> Any:
        a, x = make(chainrule.complex(*v)), chainrule.complex(*x)
        out = ((a @ x).sum(), (a * x.T[0]).to_dense().sum(), (a @ a.t()).to_dense().sum())
        return [part for y in out for part in (y.real, y.imag)]

    gradcheck(function, parts)


def test_booleans() -> None:
    a = chainrule.sparse_coo_tensor([[0, 0, 1], [1, 1, 0]], [True, True, False])
    assert a.to_dense().tolist() == [[False, True], [False, False]]
    assert a.sum().item() == 2
    assert a.float().dtype is chainrule.float32
    with pytest.raises(NotImplementedError, match="matmul: not implemented for booleans"):
        a @ chainrule.tensor([[True], [False]])


def test_diagonals() -> None:
    d = of_array(np.arange(1.0, 10).reshape(3, 3)).requires_grad_()
    offsets = chainrule.tensor([0, -1, 2])
    out = sparse.spdiags(d, offsets, (4, 4))
    import scipy.sparse

    expected = scipy.sparse.spdiags(d.detach().numpy(), [0, -1, 2], 4, 4).toarray()
    assert_close(out.to_dense().detach(), expected, 0, 0)
    assert sparse.spdiags(d, offsets, (4, 4), chainrule.sparse_csr).is_sparse_csr
    gradcheck(lambda d: sparse.spdiags(d, offsets, (4, 4)).to_dense(), (d,))
    with pytest.raises(ValueError, match="offsets must be different"):
        sparse.spdiags(d, chainrule.tensor([0, 0, 1]), (4, 4))
    with pytest.raises(ValueError, match="a row of diagonals for each of 2 offsets"):
        sparse.spdiags(d, chainrule.tensor([0, 1]), (4, 4))


@pytest.mark.parametrize(
    "shape", [(3, 10**5), (10**6, 10**6), (2**40, 2**40), (2**20, 2**30, 2**20)]
)
def test_large_shapes(shape: tuple[int, ...]) -> None:
    """Of which the elements have more numbers than int64 holds, in the end."""
    places = np.stack([r.integers(0, n, 300) for n in shape])
    places = np.concatenate([places, places[:, ::3]], axis=1)
    values = r.normal(size=400)
    expected: dict[tuple[int, ...], float] = {}
    for place, value in zip(places.T.tolist(), values, strict=True):
        expected[tuple(place)] = expected.get(tuple(place), 0.0) + value
    a = chainrule.sparse_coo_tensor(places, chainrule.tensor(values), shape)
    total = a.coalesce()
    assert list(map(tuple, total.indices().T.tolist())) == sorted(expected)
    assert_close(total.values(), np.array([expected[k] for k in sorted(expected)]), 1e-12, 1e-12)
    assert_close((a + a.coalesce()).values(), 2 * total.values(), 1e-12, 1e-12)
    assert_close((a * total).values(), total.values() ** 2, 1e-12, 1e-12)
    assert_close(a.sum(), values.sum(), 1e-12, 1e-12)
