"""The curvature of modules by parameter name."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from helpers import assert_close
from small_network import normal, softmax, tensor
from curvature.modules import Case, MODELS

import chainrule
from chainrule import Tensor, curvature, nn
from chainrule.autograd import functional
from chainrule.curvature import (
    EmpiricalFisher,
    Fisher,
    GaussNewton,
    Hessian,
    Laplace,
    cramer_rao,
    last_layer,
    memory,
    ravel,
)
from chainrule.func import functional_call, grad, vmap


F = nn.functional


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))


def conv_bn() -> nn.Module:
    layers = [nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Tanh(), nn.AvgPool2d(2), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(8, 2))


@pytest.fixture(params=[*MODELS], scope="module")
def case(request: Any) -> Case:
    return Case(request.param)


def flat(tree: Any) -> np.ndarray:
    return ravel(tree)[0].numpy()


def generator(seed: int = 0) -> chainrule.Generator:
    return chainrule.Generator().manual_seed(seed)


# --- matrices of any module -----------------------------------------------------------------------


def test_hessian_of_a_module(case: Case) -> None:
    buffers = {name: b.numpy().copy() for name, b in case.model.named_buffers()}
    hessian = Hessian(case.model, case.x, case.loss)
    matrix = hessian.matrix()
    assert_close(matrix, case.hessian(), rtol=1e-8, atol=1e-12)
    assert_close(matrix, matrix.mT.numpy(), atol=1e-13)
    vector, f = case.of_vector()
    step = 1e-5
    gradient = grad(f)
    for i in range(0, vector.numel(), 11):  # finite differences of the gradient
        e = tensor(np.eye(vector.numel())[i] * step)
        row = (gradient(vector + e) - gradient(vector - e)).numpy() / (2 * step)
        assert_close(matrix[i], row, rtol=1e-5, atol=1e-8)
    assert_close(flat(hessian.gradient()), gradient(vector).numpy(), atol=1e-14)
    assert_close(hessian.loss, f(vector).numpy())
    for name, b in case.model.named_buffers():
        assert_close(b, buffers[name], rtol=0, atol=0)


def test_parts_of_the_hessian_by_name(case: Case) -> None:
    hessian = Hessian(case.model, case.x, case.loss, chunk_size=20)
    whole = hessian.matrix()
    blocks = curvature.blocks(whole, case.params)
    names = list(case.params)
    for row, column in [(names[0], names[-1]), (names[-1], names[0]), (names[1], names[1])]:
        got = hessian.block(row, column)
        assert got.shape == (*case.params[row].shape, *case.params[column].shape)
        assert_close(got, blocks[row][column].numpy(), atol=1e-13)
    assert_close(hessian.block(names[1]), blocks[names[1]][names[1]].numpy(), atol=1e-13)
    assert_close(flat(hessian.diagonal()), np.diagonal(whole.numpy()), atol=1e-13)
    assert hessian.trace() == pytest.approx(float(whole.trace()))
    chosen = [n for n in names if n.endswith("bias")]
    assert_close(
        hessian.matrix("*.bias"),
        np.block(
            [
                [blocks[a][b].numpy().reshape(case.params[a].numel(), -1) for b in chosen]
                for a in chosen
            ]
        ),
        atol=1e-13,
    )
    some = Hessian(case.model, case.x, case.loss, where="*bias")
    assert some.names == chosen
    assert_close(some.matrix(), hessian.matrix("*.bias").numpy(), atol=1e-13)
    v = {name: tensor(normal(*p.shape, seed=4)) for name, p in case.params.items()}
    expected = whole.numpy() @ flat(v)
    assert_close(flat(hessian.product(v)), expected, atol=1e-13)
    assert_close(hessian.product(ravel(v)[0]), expected, atol=1e-13)


def test_gauss_newton_and_fisher_of_a_module(case: Case) -> None:
    """J^T H_L J, which for a cross-entropy does not depend on the targets: the Fisher matrix."""
    jacobian = case.jacobian()
    p = softmax(case.output(case.params).numpy())
    n, k = p.shape
    outer = np.zeros((n * k, n * k))
    for i in range(n):
        rows = slice(i * k, (i + 1) * k)
        outer[rows, rows] = (np.diag(p[i]) - np.outer(p[i], p[i])) / n
    expected = jacobian.T @ outer @ jacobian
    gauss_newton = GaussNewton(case.model, case.x, case.loss)
    assert_close(gauss_newton.matrix(), expected, rtol=1e-8, atol=1e-12)
    fisher = Fisher(case.model, case.x, "categorical")
    for matrix in (gauss_newton, fisher):
        assert matrix._derivatives.outputs.numel() < matrix.size  # so by the outputs
        assert_close(flat(matrix.diagonal()), np.diagonal(expected), rtol=1e-8, atol=1e-12)
    assert_close(fisher.matrix(), expected, rtol=1e-8, atol=1e-12)
    total = Fisher(case.model, case.x, "categorical", reduction="sum")
    assert_close(total.matrix(), n * expected, rtol=1e-8, atol=1e-12)
    found = fisher.eigenvalues(2, generator=generator())
    assert_close(found.values, np.linalg.eigvalsh(expected)[:-3:-1], rtol=1e-8)


def test_empirical_fisher_and_score_of_a_module(case: Case) -> None:
    def log_prob(out: Tensor) -> Tensor:
        return -F.cross_entropy(out, case.y, reduction="none")

    empirical = EmpiricalFisher(case.model, case.x, log_prob, chunk_size=3)
    _, unravel = ravel(case.params)
    rows = functional.jacobian(
        lambda v: log_prob(case.output(unravel(v))), ravel(case.params)[0]
    ).numpy()
    assert_close(empirical.score(), rows, rtol=1e-8, atol=1e-13)
    expected = rows.T @ rows / len(rows)
    assert_close(empirical.matrix(), expected, rtol=1e-8, atol=1e-13)
    assert_close(flat(empirical.diagonal()), np.diagonal(expected), rtol=1e-8, atol=1e-13)
    hessian = Hessian(case.model, case.x, case.loss)
    assert_close(empirical.score().mean(0), -flat(hessian.gradient()), atol=1e-13)


def test_eigenvalues_of_a_module(case: Case) -> None:
    hessian = Hessian(case.model, case.x, case.loss)
    matrix = hessian.matrix().numpy()
    values = np.linalg.eigvalsh(matrix)
    scale = np.abs(values).max()
    for which, expected in [("largest", values[::-1]), ("smallest", values)]:
        found = hessian.eigenvalues(3, which=which, generator=generator())
        assert found.converged
        assert_close(found.values, expected[:3].copy(), rtol=0, atol=1e-8 * scale)
        v = found.vectors.numpy()
        assert_close(v @ v.T, np.eye(3), atol=1e-10)
        errors = np.linalg.norm(v @ matrix - found.values.numpy()[:, None] * v, axis=1)
        assert_close(found.residuals, errors, atol=1e-10 * scale)
        assert errors.max() <= 1e-5 * scale
    assert list(hessian.by_name(found.vectors[0])) == list(case.params)


def test_gauss_newton_of_a_model_with_several_outputs() -> None:
    """An LSTM returns its outputs and its last state: a tree."""
    chainrule.manual_seed(0)
    model, x = nn.LSTM(2, 3).double(), tensor(normal(4, 5, 2))

    def loss(out: Any) -> Tensor:
        return (out[0] ** 2).mean() + (out[1][1] ** 4).sum()

    expected = curvature.gauss_newton(model, x, loss)
    assert_close(GaussNewton(model, x, loss).matrix(), expected.numpy(), atol=1e-12)


def test_more_outputs_than_parameters() -> None:
    model, x = nn.Linear(2, 2).double(), tensor(normal(50, 2))
    gauss_newton = GaussNewton(model, x, lambda y: (y**2).mean())
    assert_close(flat(gauss_newton.diagonal()), np.diagonal(gauss_newton.matrix().numpy()))


def test_functions_of_trees_of_parameters() -> None:
    p = {"w": tensor([1.0, 2.0]), "rest": [tensor(3.0)]}
    hessian = Hessian(lambda p: p["rest"][0] * (p["w"] ** 3).sum(), params=p)
    assert hessian.names == ["w", "rest.0"]
    expected = [[18.0, 0, 3], [0, 36, 12], [3, 12, 0]]
    assert_close(hessian.matrix(), np.array(expected))
    assert_close(hessian.block("w", "rest.0"), np.array([3.0, 12.0]))
    assert_close(hessian.diagonal()["rest"][0], np.array(0.0))
    part = Hessian(lambda p: p["rest"][0] * (p["w"] ** 3).sum(), params=p, where="w")
    assert_close(part.diagonal()["w"], np.array([18.0, 36.0]))
    assert_close(Hessian(lambda w: (w**3).sum(), params=tensor([2.0])).diagonal(), np.array([12.0]))


def test_a_linear_loss_has_no_curvature() -> None:
    model, x = nn.Linear(2, 1).double(), tensor(normal(3, 2))
    assert_close(Hessian(model, x, lambda y: y.sum()).matrix(), np.zeros((3, 3)))
    assert_close(GaussNewton(model, x, lambda y: y.sum()).matrix(), np.zeros((3, 3)))


def test_dropout_keeps_its_draw() -> None:
    model = nn.Sequential(nn.Linear(3, 20), nn.Dropout(0.5), nn.Tanh(), nn.Linear(20, 1)).double()
    hessian = Hessian(model, tensor(normal(4, 3)), lambda y: (y**2).mean())
    matrix = hessian.matrix().numpy()
    assert_close(matrix, matrix.T, atol=1e-14)
    assert_close(flat(hessian.diagonal()), np.diagonal(matrix), atol=1e-14)


def test_the_parameters_are_those_of_the_time() -> None:
    case = Case("mlp")
    hessian = Hessian(case.model, case.x, case.loss)
    before = case.hessian()
    with chainrule.no_grad():
        for p in case.model.parameters():
            p.mul_(3.0)
    assert_close(hessian.matrix(), before, rtol=1e-8, atol=1e-13)


def test_shared_weights_are_one_parameter() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)
            self.second.weight = self.first.weight

        def forward(self, x: Tensor) -> Tensor:
            return self.second(self.first(x).tanh())

    model, x = Tied().double(), tensor(normal(4, 3))
    w = model.first.weight.detach().clone()
    hessian = Hessian(model, x, lambda y: (y**2).sum())
    assert hessian.names == ["first.weight"]
    expected = curvature.hessian_matrix(lambda w: (((x @ w.T).tanh() @ w.T) ** 2).sum(), w)
    assert_close(hessian.matrix(), expected.numpy(), atol=1e-12)
    other = Hessian(model, x, lambda y: (y**2).sum(), where="second.weight")
    assert other.names == ["first.weight"]


def test_many_models_by_vmap() -> None:
    case = Case("mlp")
    stacked = {name: chainrule.stack([p, 2 * p]) for name, p in case.params.items()}

    def diagonal(p: Any) -> Any:
        return ravel(Hessian(case.model, case.x, case.loss, p).diagonal())[0]

    both = vmap(diagonal)(stacked)
    for i, factor in enumerate((1.0, 2.0)):
        params = {name: factor * p for name, p in case.params.items()}
        alone = Hessian(case.model, case.x, case.loss, params).diagonal()
        assert_close(both[i], flat(alone), atol=1e-13)


def test_chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("LSTM")
    expected = case.hessian()
    for chunk in (1, 7, 1000):
        assert_close(
            Hessian(case.model, case.x, case.loss, chunk_size=chunk).matrix(), expected, atol=1e-12
        )
    monkeypatch.setattr(memory, "CHUNK_BYTES", 1)
    hessian = Hessian(case.model, case.x, case.loss)
    assert hessian._at_once() == 1
    assert_close(hessian.matrix("head.bias"), hessian.block("head.bias").numpy())


def test_single_precision_stays() -> None:
    model, x = mlp(), tensor(normal(5, 3)).float()
    hessian = Hessian(model, x, lambda y: (y**2).mean())
    found = hessian.eigenvalues(2, generator=generator())
    expected = Hessian(model.double(), x.double(), lambda y: (y**2).mean()).eigenvalues(2)
    assert found.converged
    assert found.values.dtype is chainrule.float32
    assert_close(found.values.double(), expected.values.numpy(), rtol=1e-4)
    for result in (hessian.matrix(), hessian.diagonal()["0.weight"], found.vectors):
        assert result.dtype is chainrule.float32
    laplace = Laplace(model.float(), x, "gaussian")
    assert laplace.predict(x).std.dtype is chainrule.float32


# --- bad input ------------------------------------------------------------------------------------


def test_a_matrix_too_large_for_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = nn.Sequential(nn.Linear(784, 300), nn.ReLU(), nn.Linear(300, 10))
    x = chainrule.randn(2, 784)
    hessian = Hessian(model, x, lambda y: (y**2).mean())
    size = hessian.size**2 * 4
    with pytest.raises(MemoryError, match=rf"{size} bytes \(211.9 GiB\).*Lanczos"):
        hessian.matrix()
    assert hessian.block("2.bias").shape == (10, 10)
    assert hessian.eigenvalues(1, generator=generator()).converged
    params = {name: p.detach() for name, p in model.named_parameters()}
    with pytest.raises(MemoryError, match="hessian_matrix: a matrix of 238510 x 238510"):
        curvature.hessian_matrix(lambda p: p["0.weight"].sum(), params)
    with pytest.raises(MemoryError, match=r"Use curvature\.GaussNewton"):
        curvature.gauss_newton(model, x, lambda y: (y**2).mean())
    with pytest.raises(MemoryError, match="Fisher.matrix: a matrix of 238510 x 238510 .* float32"):
        Laplace(model, x, "categorical")
    log_prob = lambda p, x: functional_call(model, p, (x,)).sum()  # noqa: E731
    with pytest.raises(MemoryError, match=r"Use curvature\.EmpiricalFisher"):
        curvature.empirical_fisher(log_prob, params, x)
    with pytest.raises(MemoryError, match=r"Newton \(Hessian\): .* Use HessianFree"):
        chainrule.optim.Newton(model.parameters()).step(lambda: (model(x) ** 2).mean())
    diagonal = Laplace(model, x, "categorical", structure="diagonal", where=last_layer(model))
    assert diagonal.predict(x).std.shape == (2, 10)
    monkeypatch.setattr(memory, "MATRIX_LIMIT", 100)
    small = Hessian(lambda w: (w**2).sum(), params=tensor(normal(4)))
    with pytest.raises(MemoryError, match="takes 128 bytes .* and the limit is 100"):
        small.matrix()


def test_wrong_arguments_are_refused() -> None:
    case = Case("mlp")
    model, x, loss = case.model, case.x, case.loss
    with pytest.raises(ValueError, match=r"'conv\.\*' matches no parameter; there are 0.weight, "):
        Hessian(model, x, loss, where="conv.*")
    with pytest.raises(ValueError, match=r"Hessian: 'x' matches no parameter"):
        Hessian(model, x, loss, where=["0.*", "x"])
    with pytest.raises(TypeError, match="where must be a pattern"):
        Hessian(model, x, loss, where=3)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match=r"the loss must be one number, got shape \(5, 2\)"):
        Hessian(model, x)
    with pytest.raises(RuntimeError, match="does not depend on the parameters"):
        Hessian(model, x, lambda y: y.detach().sum())
    with pytest.raises(ValueError, match="chunk_size should be None or greater than 0, got 0"):
        Hessian(model, x, loss, chunk_size=0)
    with pytest.raises(ValueError, match="there are no parameters"):
        Hessian(nn.Tanh(), x, loss)
    hessian = Hessian(model, x, loss)
    with pytest.raises(KeyError, match="no parameter named 'weight'; there are 0.weight"):
        hessian.block("weight")
    with pytest.raises(RuntimeError, match="expected a vector of 32 elements or tensors of the"):
        hessian.product(tensor(normal(3)))
    with pytest.raises(ValueError, match="k must lie between 1 and 32, the parameters, got 33"):
        hessian.eigenvalues(33)
    with pytest.raises(ValueError, match="which must be one of"):
        hessian.eigenvalues(1, which="top")
    with pytest.raises(ValueError, match="tolerance should be greater than 0"):
        hessian.eigenvalues(1, tolerance=0.0)
    with pytest.raises(ValueError, match=r"method must be one of .*, got 'exact'"):
        hessian.estimate_trace(method="exact")
    with pytest.raises(ValueError, match="samples should be at least 6, got 2"):
        hessian.estimate_trace(2)
    with pytest.raises(ValueError, match="method must be 'exact' or 'lanczos'"):
        hessian.condition_number(method="power")
    with pytest.raises(TypeError, match="are options of method='lanczos'"):
        hessian.condition_number(tolerance=1e-3)
    with pytest.raises(ValueError, match="samples and steps should be at least 1"):
        hessian.spectral_density(0)
    with pytest.raises(ValueError, match="width should be greater than 0"):
        hessian.spectral_density(1, 2)(x, 0.0)
    with pytest.raises(RuntimeError, match=r"a number for each sample, shape \(N,\), got \(\)"):
        EmpiricalFisher(model, x, loss)
    with pytest.raises(ValueError, match="likelihood must be one of"):
        Fisher(model, x, "poisson")


def test_wrong_arguments_of_error_bars_are_refused() -> None:
    case = Case("mlp")
    model, x = case.model, case.x
    with pytest.raises(ValueError, match="structure must be 'full' or 'diagonal'"):
        Laplace(model, x, "gaussian", structure="kron")
    with pytest.raises(ValueError, match="a categorical likelihood has no variance"):
        Laplace(model, x, "categorical", variance=0.1)
    with pytest.raises(ValueError, match="prior_precision should not be negative"):
        Laplace(model, x, "gaussian", prior_precision=-1.0)
    with pytest.raises(RuntimeError, match="a number or have 32 elements"):
        Laplace(model, x, "gaussian", prior_precision=tensor(normal(3)))
    with pytest.raises(RuntimeError, match=r"needs targets of shape \(5,\), got \(5, 2\)"):
        Laplace(model, x, "categorical", targets=model(x))
    laplace = Laplace(model, x, "categorical")
    with pytest.raises(ValueError, match="noise=True is for a gaussian likelihood"):
        laplace.predict(x, noise=True)
    with pytest.raises(ValueError, match="a gaussian likelihood has no classes"):
        Laplace(model, x, "gaussian").probabilities(x)
    chainrule.manual_seed(0)
    time_first = nn.Sequential(nn.RNN(2, 3), _Last(), nn.Linear(3, 1)).double()
    sequences = tensor(normal(4, 5, 2))  # (L, N, D)
    with pytest.raises(RuntimeError, match=r"dimension 0 .* \(batch_first=True\)"):
        Laplace(time_first, sequences, "gaussian").predict(sequences)
    bound = cramer_rao(lambda w, x: x @ w, tensor(normal(9, 2)), "gaussian", tensor(normal(2)))
    with pytest.raises(RuntimeError, match="expected 2 parameters, got 1"):
        bound.of(lambda w: w, tensor(normal(1)))


class _Last(nn.Module):
    def forward(self, x: Any) -> Tensor:
        return x[0]


def test_nothing_is_said_when_all_is_well() -> None:
    case = Case("mlp")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Laplace(case.model, case.x, "categorical").predict(case.x)
        Hessian(case.model, case.x, case.loss).eigenvalues(2)
