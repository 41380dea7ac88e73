"""LBFGS against PyTorch's: the same parameters after every step, and the same state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule.optim.line_search import strong_wolfe
from chainrule.optim.objective import Objective

torch = pytest.importorskip("torch")
_strong_wolfe = pytest.importorskip("torch.optim.lbfgs")._strong_wolfe

Loss = Callable[..., Any]
r = np.random.default_rng(0)
DATA = r.normal(size=(20, 3))
TARGET = np.sin(DATA @ np.array([[1.0], [-2.0], [0.5]]))


def rosenbrock(lib: Any, x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def bowl(lib: Any, x: Any) -> Any:
    return x[0] ** 2 + 5 * x[1] ** 2


def narrow(lib: Any, x: Any) -> Any:
    """A quadratic of condition number 1e4."""
    return (lib.as_tensor(np.logspace(0, 4, x.shape[0])) * x * x).sum() / 2 - x.sum()


def wavy(lib: Any, x: Any) -> Any:
    return (0.1 * x * x + lib.sin(3 * x)).sum()


def hollow(lib: Any, x: Any) -> Any:
    return -lib.exp(-(x * x).sum() / 50)


def network(lib: Any, w: Any, b: Any, v: Any) -> Any:
    hidden = lib.tanh(lib.as_tensor(DATA) @ w + b)
    return ((hidden @ v - lib.as_tensor(TARGET)) ** 2).mean()


PROBLEMS: dict[str, tuple[Loss, list[np.ndarray]]] = {
    "rosenbrock-2": (rosenbrock, [np.array([-1.2, 1.0])]),
    "rosenbrock-6": (rosenbrock, [np.linspace(-1, 2, 6)]),
    "bowl": (bowl, [np.array([3.0, 1.0])]),
    "narrow": (narrow, [np.linspace(0, 1, 8)]),
    "wavy": (wavy, [np.array([2.0, -1.0, 0.3])]),
    "hollow": (hollow, [np.array([1.0, -3.0])]),
    "network": (network, [r.normal(size=(3, 5)), np.zeros(5), r.normal(size=(5, 1))]),
}
SETTINGS: dict[str, dict[str, Any]] = {
    "wolfe": {"line_search_fn": "strong_wolfe"},
    "wolfe-lr": {"line_search_fn": "strong_wolfe", "lr": 0.3, "max_iter": 7},
    "wolfe-short": {"line_search_fn": "strong_wolfe", "history_size": 2, "max_iter": 5},
    "wolfe-one": {"line_search_fn": "strong_wolfe", "max_iter": 1},
    "wolfe-few-evals": {"line_search_fn": "strong_wolfe", "max_eval": 3},
    "fixed": {"lr": 0.01},
    "fixed-one": {"lr": 0.01, "max_iter": 1, "history_size": 3},
    "fixed-loose": {"lr": 0.1, "max_iter": 4, "tolerance_grad": 1e-2, "tolerance_change": 1e-4},
}


class Run:
    """One library's parameters, optimizer and closure."""

    def __init__(self, lib: Any, loss: Loss, start: list[np.ndarray], **settings: Any):
        make = chainrule.as_tensor if lib is chainrule else torch.from_numpy
        self.params = [make(np.array(x)).requires_grad_() for x in start]
        self.optimizer = lib.optim.LBFGS(self.params, **settings)
        self.lib, self.loss, self.losses = lib, loss, []

    def closure(self) -> Any:
        self.optimizer.zero_grad()
        loss = self.loss(self.lib, *self.params)
        loss.backward()
        self.losses.append(float(loss.detach()))
        return loss

    def step(self) -> float:
        return float(self.optimizer.step(self.closure).detach())

    @property
    def state(self) -> dict[str, Any]:
        return self.optimizer.state_dict()["state"][0]


def pair(problem: str, settings: str) -> tuple[Run, Run]:
    ours, theirs = [
        Run(lib, *PROBLEMS[problem], **SETTINGS[settings]) for lib in (chainrule, torch)
    ]
    return ours, theirs


def assert_same_point(ours: Run, theirs: Run) -> None:
    """Rounding errors grow by several digits over tens of evaluations, in either library."""
    assert len(ours.losses) == len(theirs.losses)
    assert_close(ours.losses, theirs.losses, 1e-7, 1e-10)
    assert_close(list(ours.params), list(theirs.params), 1e-7, 1e-9)


def assert_same_state(ours: dict[str, Any], theirs: dict[str, Any], rtol: float = 1e-6) -> None:
    assert set(ours) == set(theirs) - {"al"}  # al is room to compute in
    for name in ("n_iter", "func_evals"):
        assert ours[name] == theirs[name]
    for name in ("d", "prev_flat_grad", "old_dirs", "old_stps"):
        assert_close(ours[name], theirs[name], rtol, 1e-9)
    for name in ("t", "H_diag", "prev_loss"):
        assert ours[name] == pytest.approx(float(theirs[name]), rel=rtol, abs=1e-12)
    assert ours["ro"] == pytest.approx([float(x) for x in theirs["ro"]], rel=rtol)


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_steps_are_those_of_pytorch(problem: str, settings: str) -> None:
    ours, theirs = pair(problem, settings)
    for _ in range(2 if problem in ("network", "rosenbrock-6") else 5):
        assert ours.step() == pytest.approx(theirs.step(), rel=1e-9, abs=1e-12)
        assert_same_point(ours, theirs)


@pytest.mark.parametrize("settings", SETTINGS)
def test_single_iterations_have_the_state_of_pytorch(settings: str) -> None:
    ours, theirs = pair("rosenbrock-6", settings)
    for run in (ours, theirs):
        run.optimizer.param_groups[0]["max_iter"] = 2
    for _ in range(4):
        ours.step(), theirs.step()
        assert_same_state(ours.state, theirs.state)


def assert_same_search(function: Loss, start: float, first: float, c2: float) -> int:
    """Both searches along -g try the same points of a function of one variable; how many."""
    tried: tuple[list[float], list[float]] = ([], [])

    def value(lib: Any, x: Any) -> Any:
        tried[lib is torch].append(x.item())
        return function(lib, x).sum()

    def of_torch(x: Any, t: float, d: Any) -> tuple[float, Any]:
        point = (x + t * d).requires_grad_()
        loss = value(torch, point)
        loss.backward()
        return loss.item(), point.grad

    w = chainrule.tensor([start], dtype=chainrule.float64, requires_grad=True)
    f = Objective([w], lambda: value(chainrule, w))
    loss, g = f.value_and_gradient()
    found = strong_wolfe(f, f.vector(), loss, g, -g, first, c2=c2)
    x = torch.tensor([start], dtype=torch.float64)
    _, slope = of_torch(x, 0.0, x)
    at, _, step, evaluations = _strong_wolfe(
        of_torch, x, first, -slope, loss, slope, -(slope @ slope), c2=c2, max_ls=24
    )
    np.testing.assert_allclose(*tried, rtol=1e-6, atol=1e-8)
    assert found.step == pytest.approx(float(step), rel=1e-6, abs=1e-12)
    assert found.loss == pytest.approx(at, rel=1e-9)
    assert found.evaluations == evaluations
    return evaluations


@pytest.mark.parametrize("seed", range(60))
def test_line_search_tries_the_steps_of_pytorch(seed: int) -> None:
    """On bumpy functions, with first steps from tiny to huge."""
    q = np.random.default_rng(seed)
    a, b, c = q.normal(), q.uniform(0, 3), 10.0 ** q.uniform(-0.5, 1.5)
    scale, first = 10.0 ** q.uniform(-3, 2), 10.0 ** q.uniform(-3, 2)
    assert_same_search(
        lambda lib, x: scale * (0.1 * (x - a) ** 2 + b * lib.sin(c * x)),
        q.normal(),
        first,
        c2=0.1 if seed % 2 else 0.9,
    )


def test_line_search_goes_on_over_a_cliff_as_pytorch_does() -> None:
    """The second step is higher than the first but still leads down: the book would turn back."""

    def cliff(lib: Any, x: Any) -> Any:
        return lib.where(x < 5, -x, lib.where(x < 50, 9.1 - x, (x - 60) ** 2))

    assert assert_same_search(cliff, 0.0, 1.0, c2=0.9) > 3


def to_torch(x: Any) -> Any:
    """A state with tensors of PyTorch."""
    if isinstance(x, dict):
        return {k: to_torch(v) for k, v in x.items()}
    if isinstance(x, list):
        return [to_torch(v) for v in x]
    return torch.from_numpy(np.array(x.numpy())) if isinstance(x, chainrule.Tensor) else x


@pytest.mark.parametrize("settings", ["wolfe-short", "fixed-one"])
def test_state_of_pytorch_is_loaded(settings: str) -> None:
    ours, theirs = pair("network", settings)
    for _ in range(3):
        theirs.step()
    for p, q in zip(ours.params, theirs.params, strict=True):
        with chainrule.no_grad():
            p.copy_(chainrule.tensor(q.detach().numpy()))
    ours.optimizer.load_state_dict(theirs.optimizer.state_dict())
    ours.losses[:], theirs.losses[:] = [], []
    for _ in range(2):
        ours.step(), theirs.step()
    assert_same_point(ours, theirs)
    assert_same_state(ours.state, theirs.state)


@pytest.mark.parametrize("settings", ["wolfe-short", "fixed-one"])
def test_state_is_loaded_by_pytorch(settings: str) -> None:
    ours, theirs = pair("network", settings)
    for _ in range(3):
        ours.step()
    for p, q in zip(ours.params, theirs.params, strict=True):
        q.data.copy_(torch.from_numpy(p.detach().numpy()))
    theirs.optimizer.load_state_dict(to_torch(ours.optimizer.state_dict()))
    ours.losses[:], theirs.losses[:] = [], []
    for _ in range(2):
        ours.step(), theirs.step()
    assert_same_point(ours, theirs)
    assert_same_state(ours.state, theirs.state)


def test_settings_are_those_of_pytorch() -> None:
    ours, theirs = [run.optimizer.state_dict()["param_groups"] for run in pair("bowl", "fixed")]
    assert ours == theirs


@pytest.mark.parametrize("lib", [chainrule, torch], ids=["chainrule", "torch"])
@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"lr": -1.0}, ValueError),
        ({"line_search_fn": "armijo"}, RuntimeError),
        ({"groups": 2}, ValueError),
        ({"lr": [1.0, 2.0]}, ValueError),
    ],
    ids=["lr", "line-search", "groups", "two-lr"],
)
def test_refused_by_both(lib: Any, settings: dict[str, Any], error: type[Exception]) -> None:
    params = [lib.ones(2, requires_grad=True), lib.ones(1, requires_grad=True)]
    given: Any = [{"params": [p]} for p in params] if "groups" in settings else params
    options = {
        k: lib.tensor(v) if isinstance(v, list) else v for k, v in settings.items() if k != "groups"
    }

    def closure() -> Any:
        loss = (params[0] ** 2).sum() + (params[1] ** 2).sum()
        loss.backward()
        return loss

    with pytest.raises(error):
        lib.optim.LBFGS(given, **options).step(closure)


@pytest.mark.parametrize("settings", ["fixed", "fixed-loose", "wolfe"])
def test_a_closure_that_keeps_the_parameters_within_bounds(settings: str) -> None:
    """Style transfer clamps the picture where the loss is computed: iterations go on from there."""
    runs = pair("wavy", settings)
    for run in runs:
        loss = run.loss

        def clamped(lib: Any, *params: Any, loss: Loss = loss) -> Any:
            with lib.no_grad():
                for p in params:
                    p.clamp_(-0.2, 0.4)
            return loss(lib, *params)

        run.loss = clamped
        for _ in range(3):
            run.step()
    assert_same_point(*runs)
