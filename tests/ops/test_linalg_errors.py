"""What linear algebra refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
import chainrule.linalg as L
from chainrule.autograd import gradcheck, gradgradcheck
from chainrule.func import vmap
from chainrule.tensor import Tensor, of_array


R = np.random.default_rng(0)


def tensor(value: Any, requires_grad: bool = False) -> Tensor:
    return of_array(np.array(value, dtype=np.float64)).requires_grad_(requires_grad)


@pytest.mark.parametrize(
    "name",
    [
        "inv",
        "det",
        "slogdet",
        "cholesky",
        "qr",
        "svd",
        "svdvals",
        "eigh",
        "eigvalsh",
        "eig",
        "eigvals",
        "pinv",
        "matrix_rank",
        "cond",
        "matrix_exp",
        "matrix_norm",
    ],
)
def test_arguments_that_are_no_matrices(name: str) -> None:
    function = getattr(L, name)
    with pytest.raises(RuntimeError, match=rf"linalg\.{name}: .*at least 2 dimensions.*\(3,\)"):
        function(tensor(np.ones(3)))
    with pytest.raises(RuntimeError, match=rf"linalg\.{name}: expected .*int64.*\.float\(\)"):
        function(of_array(np.eye(2, dtype=np.int64)))
    with pytest.raises(TypeError, match=rf"linalg\.{name}\(\): .*must be Tensor, not list"):
        function([[1.0]])
    if name in (
        "inv",
        "det",
        "slogdet",
        "cholesky",
        "eigh",
        "eigvalsh",
        "eig",
        "eigvals",
        "matrix_exp",
    ):
        with pytest.raises(RuntimeError, match=rf"linalg\.{name}: .*square.*2 by 3"):
            function(tensor(np.ones((2, 3))))


EYE3 = tensor(np.eye(3))


@pytest.mark.parametrize(
    ("error", "match", "call"),
    [
        (
            RuntimeError,
            r"linalg\.solve: incompatible shapes .*AX = B: \(3, 3\) and \(2, 3\)",
            lambda: L.solve(EYE3, tensor(np.ones((2, 3)))),
        ),
        (
            RuntimeError,
            r"linalg\.solve: the batch dimensions",
            lambda: L.solve(tensor([np.eye(3)] * 2), tensor(np.ones((5, 3, 3)))),
        ),
        (
            RuntimeError,
            r"linalg\.solve: expected A and B to have the same dtype",
            lambda: L.solve(EYE3, of_array(np.ones(3, np.float32))),
        ),
        (
            RuntimeError,
            r"linalg\.solve: vectors are not supported with left=False",
            lambda: L.solve(EYE3, tensor(np.ones(3)), left=False),
        ),
        (
            RuntimeError,
            r"linalg\.solve_triangular: B must have at least 2",
            lambda: L.solve_triangular(EYE3, tensor(np.ones(3)), upper=True),
        ),
        (
            RuntimeError,
            r"linalg\.solve_triangular: incompatible .*XA = B",
            lambda: L.solve_triangular(EYE3, tensor(np.ones((3, 2))), upper=True, left=False),
        ),
        (
            RuntimeError,
            r"linalg\.lstsq: driver should be one of",
            lambda: L.lstsq(EYE3, EYE3, driver="x"),
        ),
        (
            RuntimeError,
            r"linalg\.lstsq: .*same number of rows",
            lambda: L.lstsq(EYE3, tensor(np.ones((2, 2)))),
        ),
        (RuntimeError, r"linalg\.qr: unrecognized mode 'x'", lambda: L.qr(EYE3, mode="x")),
        (
            RuntimeError,
            r"linalg\.eigh: expected UPLO to be 'L' or 'U', but got 'x'",
            lambda: L.eigh(EYE3, UPLO="x"),
        ),
        (TypeError, r"'n' must be int, not float", lambda: L.matrix_power(EYE3, 0.5)),
        (RuntimeError, r"multi_dot: expected at least 2", lambda: L.multi_dot([EYE3])),
        (
            RuntimeError,
            r"tensors 0 and 1 with shapes \(3, 3\) and \(2, 2\)",
            lambda: L.multi_dot([EYE3, tensor(np.eye(2))]),
        ),
        (
            RuntimeError,
            r"multi_dot: tensor 1 must be 2-D",
            lambda: L.multi_dot([EYE3, tensor(np.ones(3)), EYE3]),
        ),
        (
            RuntimeError,
            r"chain_matmul: expected matrices",
            lambda: chainrule.chain_matmul(EYE3, tensor(np.ones(3))),
        ),
        (
            RuntimeError,
            r"linalg\.matrix_norm: order 3 is not supported",
            lambda: L.matrix_norm(EYE3, 3),
        ),
        (
            RuntimeError,
            r"linalg\.matrix_norm: dim must be a pair",
            lambda: L.matrix_norm(EYE3, dim=(0,)),
        ),
        (RuntimeError, r"multiple times", lambda: L.matrix_norm(EYE3, dim=(0, 0))),
        (IndexError, r"dimension out of range", lambda: L.matrix_norm(EYE3, dim=(0, 5))),
        (
            RuntimeError,
            r"linalg\.norm: if dim is not specified but ord is.*\(1, 1, 1\)",
            lambda: L.norm(tensor([[[1.0]]]), 2),
        ),
        (TypeError, r"'ord' must be a number, not 'fro'", lambda: L.vector_norm(EYE3, "fro")),
        (
            RuntimeError,
            r"linalg\.cross: inputs dimension -1 must have length 3",
            lambda: L.cross(tensor([1.0, 2.0]), tensor([1.0, 2.0])),
        ),
    ],
)
def test_refused(error: type[Exception], match: str, call: Any) -> None:
    with pytest.raises(error, match=match):
        call()


def test_methods_and_top_level_names() -> None:
    a = tensor([[2.0, 1.0], [1.0, 3.0]])
    assert chainrule.inverse is L.inv
    for name in ("inverse", "det", "logdet", "slogdet", "cholesky", "pinverse", "matrix_exp"):
        assert_close(getattr(a, name)(), getattr(chainrule, name)(a))
    assert_close(tensor(np.eye(2)).cholesky_solve(L.cholesky(a)), L.inv(a))


def test_a_batch_inside_a_map() -> None:
    a = tensor(R.normal(size=(4, 2, 3, 3)))
    b = tensor(R.normal(size=(4, 3)))
    out = vmap(L.solve)(a, b)
    for i in range(4):
        assert_close(out[i], L.solve(a[i], b[i]))


def test_a_shared_matrix_is_factorized_once(monkeypatch: pytest.MonkeyPatch) -> None:
    op, seen = chainrule.ops.core.primitive.REGISTRY["solve"], []
    raw = op.raw
    monkeypatch.setattr(op, "raw", lambda a, b: seen.append((a.shape, b.shape)) or raw(a, b))
    a, b = tensor(R.normal(size=(3, 3))), tensor(R.normal(size=(5, 3)))
    out = vmap(L.solve, in_dims=(None, 0))(a, b)
    assert_close(out, np.linalg.solve(a.numpy(), b.numpy().T).T)
    assert seen == [((3, 3), (3, 5))]


def test_rules_hold_for_a_program_of_many() -> None:
    """The likelihood of a Gaussian process, to second order."""

    def loss(scale: Tensor, x: Tensor) -> Tensor:
        kernel = chainrule.exp(-scale * (x.unsqueeze(-1) - x) ** 2) + tensor(np.eye(4)) * 0.1
        factor = L.cholesky(kernel)
        y = chainrule.sin(x).unsqueeze(-1)
        fit = (y * chainrule.cholesky_solve(y, factor)).sum()
        return fit + 2 * chainrule.log(L.diagonal(factor)).sum() - L.slogdet(kernel)[1] / 2

    inputs = [tensor(0.7, requires_grad=True), tensor([0.1, 0.8, 1.7, 2.9], requires_grad=True)]
    gradcheck(loss, inputs)
    gradgradcheck(loss, inputs)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    ("name", "error"),
    [
        *[(name, RuntimeError) for name in ("inv", "slogdet", "pinv", "matrix_rank")],
        *[(name, NotImplementedError) for name in ("det", "cholesky", "qr", "svd", "eigh", "eig")],
    ],
)
def test_types_of_half_the_bits_have_too_few(name: str, error: type, dtype: str) -> None:
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    with pytest.raises(error, match=rf"linalg\.{name}: expected .*{dtype}") as raised:
        getattr(L, name)(chainrule.eye(2, dtype=getattr(chainrule, dtype)))
    assert raised.type is error
