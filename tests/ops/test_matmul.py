"""Products: the short way and the general one, what is saved, what is refused, einsum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import assert_close, weight
from hypothesis import given
from hypothesis import strategies as st

import chainrule
from chainrule.func import grad, vmap
from chainrule.ops.core.primitive import apply
from chainrule.tensor import Tensor, of_array


OPS = chainrule.ops.core.primitive.REGISTRY


def tensor(*shape: int, dtype: Any = np.float64, requires_grad: bool = False) -> Tensor:
    return of_array(weight(shape, dtype) - 0.9).requires_grad_(requires_grad)


# --- the short way through ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("needs", [(True, True), (True, False), (False, True)])
def test_product_of_matrices_is_that_of_the_general_way(
    dtype: Any, needs: tuple[bool, bool]
) -> None:
    results = []
    for multiply in (chainrule.matmul, lambda x, y: apply(OPS["matmul"], (x, y), {})):
        x = tensor(5, 4, dtype=dtype, requires_grad=needs[0])
        y = tensor(4, 3, dtype=dtype, requires_grad=needs[1])
        out = multiply(x, y)
        (out * out).sum().backward()
        assert [t.grad is not None for t in (x, y)] == list(needs)
        results.append([out.detach(), *[t.grad for t in (x, y) if t.grad is not None]])
    assert_close(results[0], results[1], rtol=0, atol=0)


def test_operator_method_and_function_are_one() -> None:
    x, y = tensor(2, 3), tensor(3, 4)
    expected = x.numpy() @ y.numpy()
    for out in (x @ y, x.matmul(y), chainrule.matmul(x, y), x.numpy() @ y, x @ y.numpy(), x.mm(y)):
        assert isinstance(out, Tensor)
        assert_close(out, expected)


def test_a_subclass_of_tensor_takes_the_short_way_too() -> None:
    class Parameter(Tensor):
        pass

    w = Parameter(weight((3, 4)))
    w.requires_grad_()
    x = tensor(2, 4).to(w.dtype)
    (x @ w.mT).sum().backward()
    first = w.grad
    w.grad = None
    chainrule.linear(x, w).sum().backward()
    assert_close(first, w.grad)


def test_products_without_gradient_make_no_graph() -> None:
    x, w = tensor(2, 3, requires_grad=True), tensor(4, 3, requires_grad=True)
    with chainrule.no_grad():
        assert not (x @ w.mT).requires_grad
        assert not chainrule.linear(x, w).requires_grad
    assert not (x.detach() @ w.detach().mT).requires_grad


@pytest.mark.parametrize("bias", [True, False])
def test_linear_of_rows_that_do_not_lie_one_behind_the_other(bias: bool) -> None:
    x = tensor(3, 5, 4, requires_grad=True)
    w, b = tensor(6, 4, requires_grad=True), tensor(6, requires_grad=True)
    terms = (w, b) if bias else (w,)

    def of(x: Tensor, *terms: Tensor) -> Tensor:
        return chainrule.nn.functional.linear(x.transpose(0, 1), *terms)

    plain = chainrule.nn.functional.linear(x.transpose(0, 1).contiguous(), *terms)
    assert_close(of(x, *terms), plain)
    assert tuple(of(x, *terms).shape) == (5, 3, 6)
    assert chainrule.autograd.gradcheck(of, (x, *terms))
    assert chainrule.autograd.gradgradcheck(of, (x, *terms))
    mapped = vmap(of, (0, *[None] * len(terms)))(chainrule.stack([x, 2 * x]), *terms)
    assert_close(mapped, chainrule.stack([of(x, *terms), of(2 * x, *terms)]))


def test_linear_is_one_node() -> None:
    x, w, b = (tensor(*s, requires_grad=True) for s in ((2, 3), (4, 3), (4,)))
    out = chainrule.linear(x, w, b)
    assert [edge for edge, _ in out.grad_fn.next_functions] == [x, w, b]
    assert_close(out, x.detach().numpy() @ w.detach().numpy().T + b.detach().numpy())


def test_what_no_gradient_reads_may_change() -> None:
    x, w, b = tensor(2, 3), tensor(4, 3, requires_grad=True), tensor(4, requires_grad=True)
    out = chainrule.linear(x, w, b)
    with chainrule.no_grad():
        w.add_(1.0)
        b.add_(1.0)
    out.sum().backward()
    assert_close(w.grad, np.broadcast_to(x.numpy().sum(0), (4, 3)))
    assert_close(b.grad, np.full(4, 2.0))


@pytest.mark.parametrize("product", [chainrule.linear, lambda x, w: x @ w.mT])
def test_what_a_gradient_reads_may_not_change(product: Any) -> None:
    x, w = tensor(2, 3, requires_grad=True), tensor(4, 3, requires_grad=True)
    out = product(x, w)
    with chainrule.no_grad():
        w.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_in_place_forms() -> None:
    x, a, b = tensor(2, 4), tensor(2, 3), tensor(3, 4)
    expected = 2 * x.numpy() + a.numpy() @ b.numpy()
    assert x.addmm_(a, b, beta=2) is x
    assert_close(x, expected)


def test_input_that_counts_zero_times_may_be_nan() -> None:
    a, b = tensor(2, 3), tensor(3, 4)
    nan = of_array(np.full(4, np.nan))
    assert_close(chainrule.addmm(nan, a, b, beta=0), a.numpy() @ b.numpy())


def test_integers_multiply_exactly() -> None:
    a = np.arange(6).reshape(2, 3) + 2**40
    out = of_array(a) @ of_array(a.T)
    assert out.dtype is chainrule.int64
    assert (out.numpy() == a @ a.T).all()


# --- vmap without copies --------------------------------------------------------------------------


def test_a_shared_matrix_is_multiplied_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """x mapped and w shared is one product of two matrices, also if every x is a vector."""
    seen: list[Any] = []
    raw = OPS["matmul"].raw
    monkeypatch.setattr(
        OPS["matmul"], "free", lambda a, b: seen.append((a.shape, b.shape)) or raw(a, b)
    )
    x, w = tensor(5, 3), tensor(4, 3)
    out = vmap(lambda v: w @ v)(x)
    assert_close(out, x.numpy() @ w.numpy().T)
    assert seen == [((5, 3), (3, 4))]
    seen.clear()
    vmap(lambda v: v @ w.mT)(tensor(5, 2, 3))
    assert seen == [((5, 2, 3), (3, 4))]


def test_gradients_of_each_sample() -> None:
    x, w, b = tensor(5, 3), tensor(4, 3), tensor(4)

    def loss(w: Tensor, b: Tensor, v: Tensor) -> Tensor:
        return (chainrule.linear(v, w, b) ** 2).sum()

    per_sample = vmap(grad(loss, (0, 1)), in_dims=(None, None, 0))(w, b, x)
    for i in range(5):
        assert_close([g[i] for g in per_sample], list(grad(loss, (0, 1))(w, b, x[i])))


# --- einsum ---------------------------------------------------------------------------------------


@st.composite
def equations(draw: Any) -> tuple[str, list[tuple[int, ...]]]:
    """An equation of up to three operands over five letters, and fitting shapes."""
    sizes = {letter: draw(st.integers(1, 3)) for letter in "abcde"}
    words = [draw(st.text("abcde", max_size=3)) for _ in range(draw(st.integers(1, 3)))]
    used = sorted(set("".join(words)))
    output = draw(st.permutations(used))[: draw(st.integers(0, len(used)))]
    text = ",".join(words)
    if draw(st.booleans()):
        text += "->" + "".join(output)
    return text, [tuple(sizes[x] for x in word) for word in words]


@given(equations())
def test_einsum_is_that_of_numpy(drawn: tuple[str, list[tuple[int, ...]]]) -> None:
    text, shapes = drawn
    arrays = [weight(s) for s in shapes]
    out = chainrule.einsum(text, *[of_array(a) for a in arrays])
    assert_close(out, np.asarray(np.einsum(text, *arrays)))


@given(equations())
def test_gradient_of_einsum_is_einsum(drawn: tuple[str, list[tuple[int, ...]]]) -> None:
    """It is linear in each operand: <gradient, operand> is the result."""
    text, shapes = drawn
    tensors = [of_array(weight(s)).requires_grad_() for s in shapes]
    total = chainrule.einsum(text, *tensors).sum()
    for x, g in zip(tensors, chainrule.autograd.grad(total, tensors), strict=True):
        assert g.shape == x.shape
        assert_close((g * x).sum(), total)


def test_einsum_multiplies_small_things_first(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    raw = OPS["matmul"].raw
    monkeypatch.setattr(
        OPS["matmul"], "raw", lambda a, b: seen.append((a.shape, b.shape)) or raw(a, b)
    )
    x, y, v = tensor(50, 40), tensor(40, 30), tensor(30)
    out = chainrule.einsum("ij,jk,k->i", x, y, v)
    assert_close(out, x.numpy() @ (y.numpy() @ v.numpy()))
    assert sorted(np.prod(a) * b[-1] for a, b in seen) == [40 * 30, 50 * 40]


# --- what is refused ------------------------------------------------------------------------------

EYE = np.eye(2)


@pytest.mark.parametrize(
    ("error", "match", "call"),
    [
        (
            RuntimeError,
            r"matmul: shapes \(2, 3\) and \(2, 3\) cannot be multiplied.*\.mT",
            lambda: tensor(2, 3) @ tensor(2, 3),
        ),
        (RuntimeError, r"matmul: shapes \(3,\) and \(2,\)", lambda: tensor(3) @ tensor(2)),
        (RuntimeError, "at least 1-D, but they are 0-D and 1-D", lambda: tensor() @ tensor(2)),
        (
            RuntimeError,
            r"batch dimensions of shapes \(2, 3, 4\) and \(3, 4, 2\).*2 and 3",
            lambda: tensor(2, 3, 4) @ tensor(3, 4, 2),
        ),
        (
            RuntimeError,
            "same dtype, but got chainrule.float64 and chainrule.float32",
            lambda: tensor(2, 2) @ tensor(2, 2, dtype=np.float32),
        ),
        (NotImplementedError, "booleans", lambda: of_array(EYE > 0) @ of_array(EYE > 0)),
        (TypeError, "must be a Tensor, not int", lambda: tensor(2, 2) @ 2),
        (TypeError, "must be a Tensor, not list", lambda: chainrule.matmul(tensor(2, 2), [1, 2])),
        (RuntimeError, "mm: mat2 must be a matrix", lambda: chainrule.mm(tensor(2, 3), tensor(3))),
        (
            RuntimeError,
            "bmm: the batches must have the same size, got 2 and 3",
            lambda: chainrule.bmm(tensor(2, 3, 4), tensor(3, 4, 5)),
        ),
        (
            RuntimeError,
            r"mv: shapes \(2, 3\) and \(2,\)",
            lambda: chainrule.mv(tensor(2, 3), tensor(2)),
        ),
        (RuntimeError, r"dot: shapes \(3,\)", lambda: chainrule.dot(tensor(3), tensor(2))),
        (
            RuntimeError,
            "outer: vec2 must be a vector",
            lambda: chainrule.outer(tensor(3), tensor(3, 2)),
        ),
        (
            RuntimeError,
            r"inner: the last dimension must match.*\(2, 3\) and \(4, 2\)",
            lambda: chainrule.inner(tensor(2, 3), tensor(4, 2)),
        ),
        (RuntimeError, "trace: input must be a matrix", lambda: chainrule.trace(tensor(2, 3, 3))),
        (
            RuntimeError,
            "cross: no dimension of size 3",
            lambda: chainrule.cross(tensor(4, 2), tensor(4, 2)),
        ),
        (
            RuntimeError,
            "must have length 3, got 2 and 2",
            lambda: chainrule.cross(tensor(4, 2), tensor(4, 2), dim=1),
        ),
        (
            RuntimeError,
            "same number of dimensions",
            lambda: chainrule.cross(tensor(3, 3), tensor(3)),
        ),
        (
            RuntimeError,
            "addmm: .*size of tensor a",
            lambda: chainrule.addmm(tensor(2), tensor(2, 3), tensor(3, 3)),
        ),
        (
            RuntimeError,
            r"addmm: input of shape \(5, 2, 3\) cannot be expanded",
            lambda: chainrule.addmm(tensor(5, 2, 3), tensor(2, 3), tensor(3, 3)),
        ),
        (
            RuntimeError,
            r"linear: input of shape \(2, 3\) and weight of shape \(4, 2\)",
            lambda: chainrule.linear(tensor(2, 3), tensor(4, 2)),
        ),
        (
            RuntimeError,
            "linear: the size of tensor a",
            lambda: chainrule.linear(tensor(2, 3), tensor(4, 3), tensor(5)),
        ),
        (
            RuntimeError,
            r"linear: bias of shape \(2, 4\)",
            lambda: chainrule.linear(tensor(3), tensor(4, 3), tensor(2, 4)),
        ),
        (
            RuntimeError,
            "linear: input must have",
            lambda: chainrule.linear(tensor(2, 3), tensor(2, 4, 3)),
        ),
        (
            RuntimeError,
            "linear: expected both tensors to have the same dtype",
            lambda: chainrule.linear(tensor(2, 3), tensor(4, 3, dtype=np.float32)),
        ),
        (
            RuntimeError,
            "tensordot: contracted dimensions .*2 in dim -2 and.*3 in dim 0",
            lambda: chainrule.tensordot(tensor(2, 3), tensor(3, 4)),
        ),
        (
            RuntimeError,
            "tensordot: both dimension lists",
            lambda: chainrule.tensordot(tensor(2, 3), tensor(3, 4), ([1], [0, 1])),
        ),
        (
            RuntimeError,
            "tensordot: expects dims",
            lambda: chainrule.tensordot(tensor(2, 3), tensor(3, 4), 3),
        ),
        (
            IndexError,
            "tensordot: dimension out of range",
            lambda: chainrule.tensordot(tensor(2, 3), tensor(3, 4), ([5], [0])),
        ),
    ],
)
def test_refused(error: type[Exception], match: str, call: Any) -> None:
    with pytest.raises(error, match=match):
        call()


@pytest.mark.parametrize(
    ("text", "shapes", "match"),
    [
        ("ij,jk", [(2, 3), (4, 5)], "subscript j has size 4 for operand 1"),
        ("ij,jk->il", [(2, 3), (3, 5)], "output subscript l does not appear"),
        ("ij->ii", [(2, 3)], "output subscript i appears more than once"),
        ("ii->i", [(2, 3)], "subscript i is repeated for operand 0.*3 != 2"),
        ("ij,jk", [(2, 3)], "fewer operands were provided"),
        ("ij", [(2, 3), (3,)], "more operands were provided"),
        ("ijk", [(2, 3)], r"number of subscripts \(3\) does not match"),
        ("i1", [(2, 2)], "invalid subscript '1' in operand 0"),
        ("ij->->", [(2, 3)], "invalid subscript '-' in the output"),
        ("..ij", [(2, 3)], "not part of any ellipsis"),
        ("...i...", [(2, 3)], "not part of any ellipsis"),
    ],
)
def test_einsum_refuses(text: str, shapes: list[tuple[int, ...]], match: str) -> None:
    with pytest.raises(RuntimeError, match=f"einsum: .*{match}"):
        chainrule.einsum(text, *[tensor(*s) for s in shapes])


def test_einsum_refuses_arguments() -> None:
    with pytest.raises(
        ValueError, match="must specify the equation string and at least one operand"
    ):
        chainrule.einsum("ij")
    with pytest.raises(ValueError, match=r"subscript 60 .* range \[0, 52\)"):
        chainrule.einsum(tensor(2, 3), [0, 60])


def test_factors_of_integers_are_integers() -> None:
    i, v = chainrule.ones(2, 2, dtype=chainrule.int64), chainrule.ones(2, dtype=chainrule.int64)
    for out in (
        chainrule.addmm(i, i, i, beta=2.7, alpha=0.6),
        chainrule.addmv(v, i, v, beta=2.7, alpha=0.6),
        chainrule.baddbmm(i[None], i[None], i[None], beta=2.7, alpha=0.6),
        chainrule.addbmm(i, i[None], i[None], beta=2.7, alpha=0.6),
        chainrule.addr(i, v, v, beta=2, alpha=0),
    ):
        assert out.dtype is chainrule.int64
        assert (out == 2).all()
    b = v.bool()
    assert chainrule.addr(i.bool(), b, b, beta=3, alpha=2).dtype is chainrule.bool
    with pytest.raises(RuntimeError, match=r"addr: .*alpha must not be floating point.*0\.6"):
        chainrule.addr(i, v, v, alpha=0.6)
