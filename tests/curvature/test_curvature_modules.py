"""The curvature of modules by parameter name, and error bars from it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import assert_close
from small_network import normal, softmax, tensor

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
    lanczos_eigenpairs,
    last_layer,
    memory,
    ravel,
    spectral_density,
)
from chainrule.func import functional_call, grad, vmap

F = nn.functional


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.head = nn.Linear(3, 3), nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(x + self.inner(x).tanh())


class Recurrent(nn.Module):
    def __init__(self, kind: Any, layers: int = 1) -> None:
        super().__init__()
        self.cells, self.head = kind(2, 3, layers, batch_first=True), nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.cells(x)[0][:, -1])


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))


def conv_bn() -> nn.Module:
    layers = [nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Tanh(), nn.AvgPool2d(2), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(8, 2))


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], bool]] = {
    "mlp": (mlp, (3,), True),
    "layer norm": (
        lambda: nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.GELU(), nn.Linear(4, 2)),
        (3,),
        True,
    ),
    "conv and batch norm in training": (conv_bn, (1, 6, 6), True),
    "conv and batch norm in evaluation": (conv_bn, (1, 6, 6), False),
    "residual": (Residual, (3,), True),
    "LSTM": (lambda: Recurrent(nn.LSTM), (4, 2), True),
    "LSTM of two layers": (lambda: Recurrent(nn.LSTM, 2), (3, 2), True),
    "GRU": (lambda: Recurrent(nn.GRU), (4, 2), True),
}


class Case:
    """A model in double precision with data and a loss."""

    def __init__(self, name: str, samples: int = 5):
        make, shape, training = MODELS[name]
        chainrule.manual_seed(3)
        self.model = make().double().train(training)
        for key, b in self.model.named_buffers():
            if key.endswith("running_var"):
                b.copy_(b + 0.5)
        self.x = tensor(normal(samples, *shape, seed=1))
        self.y = tensor(np.arange(samples) % 2)
        self.params = {name: p.detach().clone() for name, p in self.model.named_parameters()}

    def loss(self, out: Tensor) -> Tensor:
        return F.cross_entropy(out, self.y)

    def output(self, p: Any) -> Tensor:
        spare = {name: b.detach().clone() for name, b in self.model.named_buffers()}
        return functional_call(self.model, {**spare, **p}, (self.x,))

    def of_vector(self) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        vector, unravel = ravel(self.params)
        return vector, lambda v: self.loss(self.output(unravel(v)))

    def hessian(self) -> np.ndarray:
        vector, f = self.of_vector()
        return functional.hessian(f, vector).numpy()

    def jacobian(self) -> np.ndarray:
        vector, unravel = ravel(self.params)
        found = functional.jacobian(lambda v: self.output(unravel(v)), vector)
        return found.reshape(-1, vector.numel()).numpy()


@pytest.fixture(params=[*MODELS], scope="module")
def case(request: Any) -> Case:
    return Case(request.param)


def flat(tree: Any) -> np.ndarray:
    return ravel(tree)[0].numpy()


def generator(seed: int = 0) -> chainrule.Generator:
    return chainrule.Generator().manual_seed(seed)


def symmetric(eigenvalues: Any, seed: int = 0) -> tuple[np.ndarray, Callable[[Tensor], Tensor]]:
    """A matrix with these eigenvalues, and its products."""
    q, _ = np.linalg.qr(normal(len(eigenvalues), len(eigenvalues), seed=seed))
    matrix = (q * np.asarray(eigenvalues)) @ q.T
    return matrix, lambda rows: rows @ tensor(matrix)


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


# --- spectra --------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["largest", "smallest", "magnitude"])
@pytest.mark.parametrize(
    "values",
    [
        np.linspace(-3, 10, 250),
        np.r_[10.0, 10.0, 10.0, np.linspace(0, 9, 97)],  # an eigenvalue that occurs three times
        np.r_[np.full(60, 1e-3), 5.0, -100.0],
        np.ones(30),
        np.zeros(7),
        np.array([2.0, 1.0, -4.0, 0.5]),
    ],
    ids=["dense", "repeated", "gaps", "identity", "zero", "as many as there are"],
)
def test_lanczos_finds_known_spectra(values: np.ndarray, which: str) -> None:
    matrix, multiply = symmetric(values)
    found = lanczos_eigenpairs(
        multiply, len(values), 4, chainrule.float64, which=which, generator=generator()
    )
    key = {"largest": -values, "smallest": values, "magnitude": -np.abs(values)}[which]
    scale = np.abs(values).max()
    assert found.converged
    assert found.products <= len(values) + 4
    assert_close(
        found.values, values[np.argsort(key, kind="stable")][:4], rtol=0, atol=1e-8 * scale
    )
    v = found.vectors.numpy()
    assert_close(v @ v.T, np.eye(4), atol=1e-12)
    errors = np.linalg.norm(v @ matrix - found.values.numpy()[:, None] * v, axis=1)
    assert_close(found.residuals, errors, rtol=1e-3, atol=1e-11 * scale)


def test_lanczos_restarts_when_its_basis_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.linspace(-1, 10, 300)
    _, multiply = symmetric(values)
    monkeypatch.setattr(curvature.spectrum, "CHUNK_BYTES", 1)  # 32 vectors
    found = lanczos_eigenpairs(multiply, 300, 2, chainrule.float64, generator=generator())
    assert found.converged
    assert found.products > 64
    assert_close(found.values, values[:-3:-1].copy(), rtol=1e-8)
    tight = lanczos_eigenpairs(
        multiply, 300, 2, chainrule.float64, tolerance=1e-10, generator=generator()
    )
    assert float(tight.residuals.max()) <= 1e-9 < float(found.residuals.max())


def test_lanczos_says_if_it_did_not_converge() -> None:
    values = np.linspace(0, 1, 200)
    _, multiply = symmetric(values)
    with pytest.warns(RuntimeWarning, match=r"after \d+ products \d of 2 pairs have a residual"):
        found = lanczos_eigenpairs(multiply, 200, 2, chainrule.float64, max_products=10)
    assert not found.converged
    errors = np.abs(found.values.numpy()[:, None] - values).min(1)
    assert (errors <= found.residuals.numpy()).all()  # an eigenvalue lies within the residual


def test_spectral_density_has_the_moments_of_the_spectrum() -> None:
    values = np.r_[np.zeros(150), np.linspace(0.5, 1.5, 40), np.full(10, 5.0)]
    _, multiply = symmetric(values)
    density = spectral_density(
        multiply, 200, chainrule.float64, samples=60, steps=20, generator=generator()
    )
    assert density.nodes.shape == (60, 20)
    assert_close(density.weights.sum(1), np.ones(60))
    for power in (1, 2, 3):
        assert density.moment(power) == pytest.approx((values**power).mean(), rel=0.1)
    assert density.share(-0.1, 0.1) == pytest.approx(0.75, abs=0.03)
    assert density.share(4.9, 5.1) == pytest.approx(0.05, abs=0.02)
    x = chainrule.linspace(-2, 8, 2001, dtype=chainrule.float64)
    assert float(chainrule.trapezoid(density(x, 0.1), x)) == pytest.approx(1, abs=1e-6)
    exhausted = spectral_density(multiply, 200, chainrule.float64, samples=3, steps=60)
    assert exhausted.share(4.99, 5.01) == pytest.approx(0.05, abs=0.1)
    hessian = Hessian(lambda w: (tensor([1.0, 2.0, 3.0]) * w**2).sum(), params=tensor(normal(3)))
    assert_close(hessian.spectral_density(2, 3).nodes[0], np.array([2.0, 4.0, 6.0]))


@pytest.mark.parametrize("method", ["hutchinson", "hutch++"])
def test_trace_estimates_lie_within_their_errors(method: str) -> None:
    case = Case("LSTM")
    hessian = Hessian(case.model, case.x, case.loss)
    exact = hessian.trace()
    runs = [
        hessian.estimate_trace(60, method=method, generator=generator(seed)) for seed in range(40)
    ]
    z = np.array([(r.value - exact) / r.error for r in runs])
    assert np.abs(z.mean()) < 4 / np.sqrt(40)
    assert (np.abs(z) < 3).mean() > 0.9
    assert all(r.products == 60 for r in runs)
    again = hessian.estimate_trace(60, method=method, generator=generator(0))
    assert again.value == runs[0].value


def test_hutch_plus_plus_is_exact_where_few_eigenvalues_are() -> None:
    _, multiply = symmetric(np.r_[np.zeros(90), np.arange(10.0)])
    found = curvature.hutch_plus_plus(multiply, 100, 60, chainrule.float64)
    assert found.value == pytest.approx(45, abs=1e-9)
    assert found.error < 1e-9
    plain = curvature.hutchinson_trace(multiply, 100, 60, chainrule.float64)
    assert plain.error > 0.1


def test_diagonal_estimates_lie_within_their_errors() -> None:
    case = Case("GRU")
    hessian = Hessian(case.model, case.x, case.loss)
    fisher = Fisher(case.model, case.x, "categorical")
    for matrix in (hessian, fisher):
        exact = flat(matrix.diagonal())
        z = []
        for seed in range(10):
            found = matrix.estimate_diagonal(200, generator=generator(seed))
            z.append((flat(found.value) - exact) / flat(found.error))
        assert np.abs(np.mean(z, 0)).max() < 5 / np.sqrt(10)
        assert np.std(z) == pytest.approx(1, abs=0.2)


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli", "categorical"])
def test_fisher_diagonal_by_drawn_targets(likelihood: str) -> None:
    """All entries have a relative error of about sqrt(2 / samples)."""
    case = Case("mlp", samples=20)
    settings: Any = {"variance": 0.3} if likelihood == "gaussian" else {}
    fisher = Fisher(case.model, case.x, likelihood, **settings)
    exact = flat(fisher.diagonal())
    found = fisher.estimate_diagonal(2000, generator=generator())
    assert (flat(found.value) >= 0).all()
    assert np.abs(flat(found.value) / exact - 1).max() < 5 * np.sqrt(2 / 2000)
    assert_close(
        fisher.matrix(),
        curvature.fisher(case.model, case.x, likelihood, **settings).numpy(),
        atol=1e-12,
    )


def test_condition_numbers() -> None:
    scale = tensor([1.0, 4.0, 50.0])
    bowl = Hessian(lambda w: (scale * w**2).sum() / 2, params=tensor(normal(3)))
    assert bowl.condition_number() == pytest.approx(50)
    assert bowl.condition_number(method="lanczos") == pytest.approx(50)
    assert bowl.condition_number(damping=10.0) == pytest.approx(60 / 11)
    saddle = Hessian(lambda w: (tensor([-1.0, 2.0]) * w**2).sum(), params=tensor(normal(2)))
    assert saddle.condition_number() == pytest.approx(2)
    with pytest.raises(ValueError, match="reach from -2 to 4"):
        saddle.condition_number(method="lanczos")
    flat_direction = Hessian(lambda w: w.sum() ** 2, params=tensor(normal(3)))
    assert flat_direction.condition_number() == np.inf
    assert flat_direction.condition_number(damping=1.0) == pytest.approx(7)


# --- Laplace --------------------------------------------------------------------------------------


def linear_gaussian() -> Any:
    """Bayesian linear regression in closed form: the posterior and its predictions."""
    x, noise, prior = normal(30, 3, seed=5), 0.4, 2.5
    y = x @ np.array([1.0, -2.0, 0.5]) + 3 + np.sqrt(noise) * normal(30, seed=6)
    design = np.c_[x, np.ones(30)]
    precision = design.T @ design / noise + prior * np.eye(4)
    w = np.linalg.solve(precision, design.T @ y / noise)
    model = nn.Linear(3, 1).double()
    with chainrule.no_grad():
        model.weight.copy_(tensor(w[None, :3]))
        model.bias.copy_(tensor(w[3:]))
    return model, x, y, noise, prior, np.linalg.inv(precision)


def test_laplace_is_bayesian_linear_regression() -> None:
    model, x, y, noise, prior, covariance = linear_gaussian()
    new = normal(7, 3, seed=8)
    design = np.c_[new, np.ones(7)]
    variance = np.einsum("ni,ij,nj->n", design, covariance, design)[:, None]
    settings: Any = {"variance": noise, "prior_precision": prior}
    for targets in (None, tensor(y[:, None])):  # Gauss-Newton and Hessian are equal
        laplace = Laplace(model, tensor(x), "gaussian", targets=targets, **settings)
        assert laplace.damping == 0
        assert_close(laplace.covariance(), covariance)
        assert_close(laplace.std()["bias"], np.sqrt(covariance[3:, 3]))
        mean, std = laplace.predict(tensor(new))
        assert_close(mean, model(tensor(new)).detach().numpy())
        assert_close(std, np.sqrt(variance))
        assert_close(laplace.predict(tensor(new), noise=True).std, np.sqrt(variance + noise))
        assert_close(laplace.predict_covariance(tensor(new)), variance[:, :, None])
    drawn = laplace.sample(4000, generator=generator())
    rows = np.c_[drawn["weight"].numpy().reshape(4000, 3), drawn["bias"].numpy()]
    assert_close(np.cov(rows.T), covariance, rtol=0.15, atol=3e-4)
    each = Laplace(
        model,
        tensor(x),
        "gaussian",
        variance=noise,
        prior_precision=tensor([prior, prior, prior, 0.0]),
    )
    precision = np.linalg.inv(covariance) - np.diag([0, 0, 0, prior])
    assert_close(each.covariance(), np.linalg.inv(precision))


def test_laplace_with_a_diagonal() -> None:
    model, x, _, noise, prior, covariance = linear_gaussian()
    laplace = Laplace(
        model, tensor(x), "gaussian", variance=noise, prior_precision=prior, structure="diagonal"
    )
    diagonal = 1 / np.diagonal(np.linalg.inv(covariance))
    assert_close(laplace.covariance(), np.diag(diagonal))
    assert_close(flat(laplace.std()), np.sqrt(diagonal))
    design = np.c_[x, np.ones(30)]
    assert_close(laplace.predict(tensor(x)).std[:, 0], np.sqrt(design**2 @ diagonal))
    drawn = flat_rows(laplace.sample(4000, generator=generator()))
    assert_close(drawn.std(0), np.sqrt(diagonal), rtol=0.1)


def flat_rows(tree: dict[str, Tensor]) -> np.ndarray:
    return np.concatenate([t.numpy().reshape(len(t), -1) for t in tree.values()], 1)


def test_laplace_of_the_last_layer_is_regression_on_its_inputs() -> None:
    case = Case("mlp", samples=40)
    model = case.model
    assert last_layer(model) == ["2.weight", "2.bias"]
    settings: Any = {"variance": 0.1, "prior_precision": 0.7, "where": last_layer(model)}
    laplace = Laplace(model, case.x, "gaussian", **settings)
    features = model[1](model[0](case.x)).detach().numpy()
    design = np.c_[features, np.ones(40)]
    one = np.linalg.inv(design.T @ design / 0.1 + 0.7 * np.eye(6))  # of each of the two outputs
    variance = np.einsum("ni,ij,nj->n", design, one, design)
    assert_close(laplace.predict(case.x).std, np.sqrt(np.c_[variance, variance]), rtol=1e-8)
    outputs = laplace.predict_covariance(case.x)
    assert_close(outputs, variance[:, None, None] * np.eye(2), rtol=1e-8, atol=1e-14)


@pytest.mark.parametrize("name", ["conv and batch norm in training", "residual", "LSTM", "GRU"])
def test_laplace_through_any_module(name: str) -> None:
    """J (F + prior)^-1 J^T with the Jacobian of the whole batch, in evaluation."""
    case = Case(name)
    modes = [m.training for m in case.model.modules()]
    laplace = Laplace(case.model, case.x, "categorical", prior_precision=0.5, chunk_size=2)
    mean, std = laplace.predict(case.x)
    assert [m.training for m in case.model.modules()] == modes
    case.model.eval()
    assert_close(mean, case.model(case.x).detach().numpy())
    fisher = curvature.fisher(case.model, case.x, "categorical", reduction="sum").numpy()
    jacobian = case.jacobian()
    covariance = np.linalg.inv(fisher + 0.5 * np.eye(len(fisher)))
    expected = np.einsum("oi,ij,oj->o", jacobian, covariance, jacobian)
    assert_close(std.reshape(-1), np.sqrt(expected), rtol=1e-7)
    z = mean.numpy() / np.sqrt(1 + np.pi / 8 * std.numpy() ** 2)
    assert_close(laplace.probabilities(case.x), softmax(z))


def test_laplace_is_less_certain_far_from_the_data() -> None:
    x = tensor(normal(40, 2, seed=2))
    y = (x[:, :1] > 0).double()
    chainrule.manual_seed(0)
    model = nn.Linear(2, 1).double()
    chainrule.optim.LBFGS(model.parameters(), max_iter=100).step(
        lambda: _backward(model, F.binary_cross_entropy_with_logits(model(x), y, reduction="sum"))
    )
    laplace = Laplace(model, x, "bernoulli", prior_precision=1.0, targets=y)
    far = tensor([[0.1, 0.0], [20.0, 0.0], [0.1, 30.0]])
    p, sure = laplace.probabilities(far), model(far).sigmoid()
    assert ((p - 0.5).abs() < (sure - 0.5).abs()).all()
    assert float(laplace.predict(far).std[2]) > 5 * float(laplace.predict(far).std[0])


def _backward(model: nn.Module, loss: Tensor) -> Tensor:
    total = loss + sum((p**2).sum() for p in model.parameters()) / 2
    for p in model.parameters():
        p.grad = None
    total.backward()
    return total


def test_a_precision_that_is_not_positive_is_damped_and_said() -> None:
    case = Case("mlp")
    with pytest.warns(RuntimeWarning, match=r"not positive definite .* was added to it"):
        laplace = Laplace(case.model, case.x, "categorical", prior_precision=0.0)
    assert laplace.damping > 0
    assert bool(laplace.predict(case.x).std.isfinite().all())
    with pytest.warns(RuntimeWarning, match="leave out targets"):
        laplace = Laplace(
            case.model, case.x, "categorical", prior_precision=1e-3, targets=1 - case.y
        )
    hessian = np.linalg.inv(laplace.covariance().numpy())
    assert np.linalg.eigvalsh(hessian).min() > 0
    with pytest.warns(RuntimeWarning, match="was added"):
        Laplace(case.model, 0 * case.x, "categorical", prior_precision=0.0, structure="diagonal")


def test_error_bars_by_dropout_have_the_same_form() -> None:
    """Both are largest far from the data."""
    chainrule.manual_seed(1)
    model = nn.Sequential(nn.Linear(1, 50), nn.Tanh(), nn.Dropout(0.2), nn.Linear(50, 1)).double()
    x = chainrule.linspace(-1, 1, 30, dtype=chainrule.float64).reshape(-1, 1)
    dropout = F.monte_carlo_predict(model, x, samples=50)
    laplace = Laplace(model, x, "gaussian", variance=0.01).predict(x)
    assert type(dropout) is type(laplace) is curvature.Prediction
    assert dropout.std.shape == laplace.std.shape == (30, 1)
    model.eval()
    assert_close(laplace.mean, model(x).detach().numpy())


# --- the bound of Cramer and Rao ------------------------------------------------------------------


def test_cramer_rao_of_linear_regression_is_reached_by_least_squares() -> None:
    x, w, noise = normal(25, 2, seed=1), np.array([1.0, -2.0]), 0.3
    bound = cramer_rao(lambda w, x: x @ w, tensor(x), "gaussian", tensor(w), variance=noise)
    expected = noise * np.linalg.inv(x.T @ x)
    assert bound.rank == 2
    assert_close(bound.covariance(), expected)
    assert_close(bound.std, np.sqrt(np.diagonal(expected)))
    y = x @ w + np.sqrt(noise) * normal(20000, 25, seed=2)
    estimates = y @ np.linalg.pinv(x).T
    assert_close(estimates.std(0), np.sqrt(np.diagonal(expected)), rtol=0.02)
    # a function of the parameters: |dg|^2 F^-1
    found = bound.of(lambda w: w[0] * w[1], tensor(w))
    g = np.array([w[1], w[0]])
    assert_close(found, np.sqrt(g @ expected @ g))
    model = nn.Linear(2, 1).double()
    named = cramer_rao(model, tensor(x), "gaussian", variance=noise)
    design = np.c_[x, np.ones(25)]
    deviations = np.sqrt(np.diagonal(noise * np.linalg.inv(design.T @ design)))
    assert_close(named.std["weight"], deviations[None, :2])
    assert_close(named.std["bias"], deviations[2:])
    total = named.of(lambda p: p["weight"].sum() + p["bias"].sum(), dict(model.named_parameters()))
    assert_close(total, np.sqrt(named.covariance().numpy().sum()))


def test_cramer_rao_of_a_bernoulli_variable() -> None:
    """N observations of probability p: Var p >= p (1 - p) / N."""
    count, p = 50, 0.3
    logit = tensor([np.log(p / (1 - p))])
    x = chainrule.ones(count, 1, dtype=chainrule.float64)
    bound = cramer_rao(lambda w, x: x * w, x, "bernoulli", logit)
    assert_close(bound.of(lambda w: w.sigmoid(), logit), np.sqrt([p * (1 - p) / count]))


def test_what_the_data_do_not_determine_has_no_bound() -> None:
    """The product of two weights is determined, neither of them is; a third one is."""
    x = tensor(normal(20, 2))
    w = {"a": tensor(2.0), "b": tensor(3.0), "c": tensor(1.0)}
    bound = cramer_rao(lambda w, x: w["a"] * w["b"] * x[:, 0] + w["c"] * x[:, 1], x, "gaussian", w)
    assert bound.rank == 2
    assert float(bound.std["a"]) == float(bound.std["b"]) == np.inf
    expected = np.sqrt(np.diagonal(np.linalg.inv(x.numpy().T @ x.numpy())))
    assert_close(bound.std["c"], expected[1])
    assert_close(bound.of(lambda w: w["a"] * w["b"], w), expected[0], rtol=1e-7)


def test_variance_of_the_residuals() -> None:
    x, y = normal(20, 2), normal(20, 1, seed=3)
    model = nn.Linear(2, 1).double()
    got = curvature.residual_variance(model, tensor(x), tensor(y))
    r = model(tensor(x)).detach().numpy() - y
    assert got == pytest.approx((r**2).sum() / 17)
    with pytest.raises(ValueError, match="2 target values leave nothing over for 3 parameters"):
        curvature.residual_variance(model, tensor(x[:2]), tensor(y[:2]))
    with pytest.raises(RuntimeError, match=r"shape of the output \(20, 1\)"):
        curvature.residual_variance(model, tensor(x), tensor(y[:, 0]))


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
