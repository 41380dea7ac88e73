"""What courses state about derivatives, and where their formulas need a correction.

Closed-form gradients, Jacobians and Hessians are written out with NumPy and compared with the
library's. Where a formula is known to be printed wrongly somewhere, the test also shows that the
printed form is not the derivative.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import Tensor
from chainrule.curvature.hessian import condition_number, gauss_newton, hessian_matrix
from chainrule.curvature.jacobian import input_jacobian, parameter_jacobian
from chainrule.inspect.theory.textbook import compare, path_sum_derivative
from chainrule.func import grad, hessian, jacfwd, jacrev, jvp, vjp


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def tensor(array: Any) -> Tensor:
    return chainrule.tensor(np.asarray(array))


def sigma(a: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-a))


def softmax(a: np.ndarray) -> np.ndarray:
    e = np.exp(a - a.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def smallest_eigenvalue(matrix: np.ndarray) -> float:
    return float(np.linalg.eigvalsh(matrix).min())


# --- the worked example ---------------------------------------------------------------------------


def worked_example(w: Tensor) -> Tensor:
    """y = (y1 e^y2)(y2 e^y1) with y1 = w1.x and y2 = w2.x; w holds w1 and w2 as rows."""
    y = w @ tensor(normal(3, seed=1))
    return (y[0] * y[1].exp()) * (y[1] * y[0].exp())


def worked_example_gradient(w: np.ndarray) -> np.ndarray:
    """dy/dw1 = y2 (1 + y1) e^(y1 + y2) x, and the same with 1 and 2 exchanged."""
    x = normal(3, seed=1)
    y1, y2 = w @ x
    return np.exp(y1 + y2) * np.stack([y2 * (1 + y1) * x, y1 * (1 + y2) * x])


def test_worked_example_in_both_modes() -> None:
    w, direction = normal(2, 3), normal(2, 3, seed=2)
    expected = worked_example_gradient(w)
    assert_close(grad(worked_example)(tensor(w)), expected)
    assert_close(jacfwd(worked_example)(tensor(w)), expected)
    _, tangent = jvp(worked_example, (tensor(w),), (tensor(direction),))
    assert_close(tangent, np.float64((expected * direction).sum()))
    value, pull = vjp(worked_example, tensor(w))
    assert_close(pull(tensor(2.0))[0], 2 * expected)
    y1, y2 = w @ normal(3, seed=1)
    assert_close(value, np.float64(y1 * y2 * np.exp(y1 + y2)))


def test_worked_example_numerically_and_by_formula() -> None:
    w = normal(2, 3)
    table = compare(worked_example, tensor(w), lambda t: tensor(worked_example_gradient(t.numpy())))
    assert table.deviation("symbolic") < 1e-14
    assert table.deviation("forward") < 1e-14
    assert table.deviation("numerical") < 1e-8


def test_worked_example_as_a_sum_over_paths() -> None:
    """Each of y1 and y2 is used twice, so w is reached on four paths."""
    w = normal(2, 3)
    value, paths = path_sum_derivative(worked_example, tensor(w))
    assert paths == 4
    assert_close(value, worked_example_gradient(w))


# --- matrix identities ----------------------------------------------------------------------------


def test_derivatives_of_linear_and_quadratic_forms() -> None:
    """d(x.a)/dx = a, d(Ax)/dx = A, d(x^T A x)/dx = x^T (A + A^T), in numerator layout."""
    a, m, x = normal(3), normal(4, 3, seed=1), normal(3, seed=2)
    q = normal(3, 3, seed=3)
    assert_close(input_jacobian(lambda v: v @ tensor(a), tensor(x)), a)
    assert_close(input_jacobian(lambda v: tensor(m) @ v, tensor(x)), m)
    assert_close(input_jacobian(lambda v: tensor(m) @ v, tensor(x), layout="denominator"), m.T)
    assert_close(input_jacobian(lambda v: v @ tensor(q) @ v, tensor(x)), x @ (q + q.T))
    assert_close(hessian(lambda v: v @ tensor(q) @ v)(tensor(x)), q + q.T)


def test_product_rule_for_matrices() -> None:
    """d(AB)/dx = dA/dx B + A dB/dx."""
    m, n, t = normal(2, 3), normal(3, 4, seed=1), 0.7
    a, b = np.sin(m * t), np.exp(n * t)
    da, db = m * np.cos(m * t), n * np.exp(n * t)
    product = lambda s: (tensor(m) * s).sin() @ (tensor(n) * s).exp()  # noqa: E731
    assert_close(input_jacobian(product, tensor(t)), da @ b + a @ db)


def test_chain_rule_multiplies_jacobians() -> None:
    """dg(f(x))/dx = dg/df df/dx; in denominator layout the factors change places."""
    m, n, x = normal(4, 3), normal(2, 4, seed=1), normal(3, seed=2)
    inner = lambda v: (tensor(m) @ v).tanh()  # noqa: E731
    outer = lambda v: (tensor(n) @ v).sin()  # noqa: E731
    y = inner(tensor(x))
    both = lambda v: outer(inner(v))  # noqa: E731
    first, second = input_jacobian(inner, tensor(x)), input_jacobian(outer, y)
    assert_close(input_jacobian(both, tensor(x)), second.numpy() @ first.numpy())
    turned = [
        input_jacobian(f, v, layout="denominator").numpy()
        for f, v in ((inner, tensor(x)), (outer, y))
    ]
    got = input_jacobian(both, tensor(x), layout="denominator")
    assert_close(got, turned[0] @ turned[1])


def test_elementwise_functions_have_diagonal_jacobians() -> None:
    x, y = normal(4), normal(4, seed=1)
    assert_close(input_jacobian(chainrule.tanh, tensor(x)), np.diag(1 - np.tanh(x) ** 2))
    assert_close(input_jacobian(lambda v: v * tensor(y), tensor(x)), np.diag(y))
    assert_close(input_jacobian(lambda v: v + tensor(y), tensor(x)), np.eye(4))


def test_layer_with_the_weight_transposed() -> None:
    """n = W^T x has dn/dx = W^T, so grad_x = v W^T (not v W); grad_W = x v has W's own shape."""
    w, x, v = normal(3, 4), normal(3, seed=1), normal(4, seed=2)
    f = lambda w, x: w.T @ x  # noqa: E731
    assert_close(jacrev(f, 1)(tensor(w), tensor(x)), w.T)
    by_w, by_x = vjp(f, tensor(w), tensor(x))[1](tensor(v))
    assert_close(by_x, v @ w.T)
    assert_close(by_w, np.outer(x, v))


# --- Jacobians of activations and of recurrent networks -------------------------------------------


def test_softmax_jacobian() -> None:
    """dp_i/ds_j = p_i (delta_ij - p_j): the entries off the diagonal are negative."""
    s = normal(5)
    p = softmax(s)
    got = input_jacobian(lambda t: chainrule.softmax(t, dim=0), tensor(s))
    assert_close(got, np.diag(p) - np.outer(p, p))
    assert (got.numpy()[~np.eye(5, dtype=bool)] < 0).all()


def test_delta_of_softmax_needs_the_whole_jacobian() -> None:
    """ds = J^T dL/da; with the diagonal of J alone all but one entry would vanish here."""
    s, target = normal(4), 1
    p = softmax(s)
    loss = lambda t: -chainrule.softmax(t, dim=0)[target].log()  # noqa: E731
    delta = grad(loss)(tensor(s))
    assert_close(delta, p - np.eye(4)[target])
    by_output = np.where(np.arange(4) == target, -1 / p[target], 0)
    jacobian = np.diag(p) - np.outer(p, p)
    assert_close(delta, jacobian.T @ by_output)
    assert_close(by_output * np.diagonal(jacobian), np.array([0, p[1] - 1, 0, 0]))


def test_recurrent_jacobian_of_neighboring_states() -> None:
    """h_s = g(W h_{s-1} + U x_s): dh_s/dh_{s-1} = diag(g'(a_s)) W, not W^T diag(g')."""
    w, u, h, x = normal(3, 3), normal(3, 2, seed=1), normal(3, seed=2), normal(2, seed=3)
    slope = 1 - np.tanh(w @ h + u @ x) ** 2
    step = lambda t: (tensor(w) @ t + tensor(u) @ tensor(x)).tanh()  # noqa: E731
    got = input_jacobian(step, tensor(h))
    assert_close(got, np.diag(slope) @ w)
    assert_close(input_jacobian(step, tensor(h), layout="denominator"), w.T @ np.diag(slope))
    assert np.abs(got.numpy() - w.T @ np.diag(slope)).max() > 0.1


def test_recurrent_jacobian_over_time_is_a_product() -> None:
    """dh_T/dh_0 = prod_s diag(g'(a_s)) W, and the gradient of W is the sum over the steps."""
    w, u, xs = normal(3, 3), normal(3, 2, seed=1), normal(5, 2, seed=3)
    h0 = normal(3, seed=2)

    def states(h: Any, weight: Any) -> Any:
        for x in xs:
            h = (weight @ h + tensor(u @ x)).tanh()
        return h

    jacobian, h, history = np.eye(3), h0, []
    for x in xs:
        previous, h = h, np.tanh(w @ h + u @ x)
        jacobian = np.diag(1 - h**2) @ w @ jacobian
        history.append((previous, h))
    assert_close(input_jacobian(lambda t: states(t, tensor(w)), tensor(h0)), jacobian)
    expected, back = np.zeros((3, 3, 3)), np.eye(3)
    for previous, h in reversed(history):
        local = back @ np.diag(1 - h**2)
        expected += np.einsum("ki,j->kij", local, previous)
        back = local @ w
    assert_close(parameter_jacobian(lambda v, t: states(t, v), tensor(h0), tensor(w)), expected)


def test_recurrent_signal_by_its_input_weight() -> None:
    """a_t = W h_{t-1} + U x_t: da_m/dU_ij = delta_mi x_j[t], with the input of the same step."""
    u, x, h = normal(3, 2), normal(2, seed=1), normal(3, seed=2)
    got = parameter_jacobian(lambda v, t: tensor(h) + v @ t, tensor(x), tensor(u))
    assert_close(got, np.einsum("mi,j->mij", np.eye(3), x))


# --- Hessians of models that are linear in their parameters ---------------------------------------


def test_hessian_of_linear_regression() -> None:
    """X^T X: positive semidefinite, definite only if X has full column rank or with 1/2 |w|^2."""
    x, y = normal(6, 3), normal(6, seed=1)
    for data, rank in ((x, 3), (np.outer(np.ones(6), [1.0, 2, 3]), 1)):
        loss = lambda w, d=data: 0.5 * ((tensor(y) - tensor(d) @ w) ** 2).sum()  # noqa: E731
        w = tensor(normal(3, seed=2))
        assert_close(grad(loss)(w), data.T @ (data @ w.numpy() - y))
        h = hessian_matrix(loss, w).numpy()
        assert_close(h, data.T @ data, atol=1e-13)
        assert np.linalg.matrix_rank(h) == rank
        assert smallest_eigenvalue(h) > -1e-12
        assert (smallest_eigenvalue(h) > 1e-9) == (rank == 3)
        regularized = lambda w, f=loss: f(w) + 0.5 * (w**2).sum()  # noqa: E731
        assert smallest_eigenvalue(hessian_matrix(regularized, w).numpy()) > 1 - 1e-9


def test_hessian_of_logistic_regression() -> None:
    """X^T R X with R = diag p (1 - p), for labels -1 and 1."""
    x, w = normal(6, 3), normal(3, seed=1)
    x[:, 2] = x[:, 0] + x[:, 1]
    y = np.array([1.0, -1, -1, 1, 1, -1])
    loss = lambda v: (-tensor(y) * (tensor(x) @ v)).exp().log1p().sum()  # noqa: E731
    p = sigma(y * (x @ w))
    h = hessian_matrix(loss, tensor(w)).numpy()
    assert_close(grad(loss)(tensor(w)), -x.T @ (y * (1 - p)))
    assert_close(h, x.T @ np.diag(p * (1 - p)) @ x)
    assert abs(smallest_eigenvalue(h)) < 1e-12
    regularized = lambda v: loss(v) + 0.5 * (v**2).sum()  # noqa: E731
    assert smallest_eigenvalue(hessian_matrix(regularized, tensor(w)).numpy()) > 1 - 1e-9


def test_hessian_of_softmax_regression() -> None:
    """H_{kn,vm} = sum_i x_in x_im p(k) (delta_kv - p(v)); dp(k)/dw_v is -p(k) p(v) x for k != v."""
    x, w = normal(6, 3), normal(4, 3, seed=1)
    labels = np.array([0, 1, 2, 3, 1, 0])
    p = softmax(x @ w.T)
    by_weight = jacrev(lambda v: chainrule.softmax(tensor(x[0]) @ v.T, dim=0))(tensor(w)).numpy()
    expected = np.einsum("k,kv,m->kvm", p[0], np.eye(4), x[0])
    expected -= np.einsum("k,v,m->kvm", p[0], p[0], x[0])
    assert_close(by_weight, expected)

    def loss(v: Tensor) -> Tensor:
        return chainrule.cross_entropy(tensor(x) @ v.T, tensor(labels), reduction="sum")

    core = np.einsum("ik,kv->ikv", p, np.eye(4)) - np.einsum("ik,iv->ikv", p, p)
    expected = np.einsum("ikv,in,im->knvm", core, x, x)
    got = hessian(loss)(tensor(w))
    assert_close(got, expected, atol=1e-13)
    flat = hessian_matrix(loss, tensor(w)).numpy()
    assert_close(flat, expected.reshape(12, 12), atol=1e-13)
    # Adding the same vector to all weights changes nothing: semidefinite, not definite.
    assert abs(smallest_eigenvalue(flat)) < 1e-12
    regularized = lambda v: loss(v) + 0.5 * (v**2).sum()  # noqa: E731
    assert smallest_eigenvalue(hessian_matrix(regularized, tensor(w)).numpy()) > 1 - 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_gauss_newton_of_the_linear_models_is_their_hessian(seed: int) -> None:
    x, w = tensor(normal(6, 3, seed=seed)), tensor(normal(4, 3, seed=seed + 10))
    labels = tensor(np.random.default_rng(seed).integers(0, 4, 6))
    loss = lambda z: chainrule.cross_entropy(z, labels)  # noqa: E731
    expected = hessian_matrix(lambda v: loss(x @ v.T), w)
    assert_close(gauss_newton(lambda v, x: x @ v.T, x, loss, w), expected.numpy(), atol=1e-14)


def test_condition_number_of_a_bowl_sets_the_speed_of_descent() -> None:
    """w1^2 + 5 w2^2: condition 5; the best step shrinks the error by (5 - 1)/(5 + 1) each time."""
    bowl = lambda w: w[0] ** 2 + 5 * w[1] ** 2  # noqa: E731
    h = hessian(bowl)(tensor([1.0, 1.0]))
    assert_close(h, np.diag([2.0, 10.0]))
    condition = condition_number(h).item()
    assert condition == pytest.approx(5)
    w, rate = tensor([1.0, 1.0]), 2 / (2 + 10)
    for _ in range(10):
        w = w - rate * grad(bowl)(w)
    expected = ((condition - 1) / (condition + 1)) ** 10
    assert_close(w.abs(), np.array([expected, expected]))
