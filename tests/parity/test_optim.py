"""The optimizers against PyTorch's: parameters and state step by step, files, printing."""

from __future__ import annotations

import copy
import functools
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from helpers import assert_close, to_array
from optim.records import TORCH_CASES, Case

import chainrule
from chainrule import optim

torch = pytest.importorskip("torch")

each_case = pytest.mark.parametrize("case", TORCH_CASES, ids=lambda case: case.label)


@pytest.fixture(autouse=True)
def _scalars_of_the_state_in_float64() -> Iterator[None]:
    """PyTorch keeps numbers such as NAdam's ``mu_product`` in the default dtype."""
    torch.set_default_dtype(torch.float64)
    chainrule.set_default_dtype(chainrule.float64)
    yield
    torch.set_default_dtype(torch.float32)


# --- one problem in both libraries ----------------------------------------------------------------


def start(dtype: Any = np.float64, big: bool = True) -> list[np.ndarray]:
    """Parameters of all layouts: a matrix, a number, none, a transposed and a sliced one, a big
    one, and one that never gets a gradient."""
    r = np.random.default_rng(11)
    shapes = [(4, 3), (), (0, 2), (5, 7), (6, 8), (130, 130) if big else (3, 3), (2,)]
    values = [np.asarray(r.normal(size=shape)).astype(dtype) for shape in shapes]
    values[3] = np.asfortranarray(values[3])
    values[4] = values[4][:, ::2]
    return values


@functools.cache
def noise(shape: tuple[int, ...], seed: tuple[int, int]) -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).normal(size=shape))


def gradient(w: np.ndarray, number: int, step: int) -> np.ndarray:
    """That of the nonconvex sum of sin(w + c) + 0.2 w^2, as a batch would give it: with noise.

    It is written down so that nothing but the optimizers is compared; without noise, the adaptive
    ones would blow up the last digit of parameters that start where the gradient is zero.
    """
    g = np.cos(w + number) + 0.4 * w + noise(w.shape, (number, step))
    return np.asarray(g, dtype=w.dtype)


def complex_gradient(w: np.ndarray, number: int, step: int) -> np.ndarray:
    return np.asarray(gradient(w.real, number, step) + 1j * gradient(w.imag, number + 9, step))


def is_without(number: int, step: int) -> bool:
    """Some parameters get a gradient only sometimes, one from the eighth step on, one never."""
    sometimes = number in (1, 3) and (step + number) % 4 == 0
    return sometimes or (number == 4 and step < 7) or number == 6


class Run:
    """An optimizer of either library with its parameters."""

    def __init__(self, library: Any, case: Case, values: Sequence[np.ndarray]):
        self.library = library
        self.params = [self._tensor(x).requires_grad_() for x in values]
        self.optimizer = case.make_groups(library.optim, self.params[:3], self.params[3:])

    def _tensor(self, x: np.ndarray) -> Any:
        x = x.copy(order="K") if x.flags.forc else np.repeat(x, 2, axis=1)[:, ::2]
        return torch.from_numpy(x) if self.library is torch else chainrule.as_tensor(x)

    def steps(self, first: int, last: int, gradient: Callable[..., Any] = gradient) -> None:
        for step in range(first, last):
            if step in (20, 35):
                for number, group in enumerate(self.optimizer.param_groups):
                    group["lr"] = group["lr"] * (0.5 + number if step == 20 else 1.7)
            for number, p in enumerate(self.params):
                g = None if is_without(number, step) else gradient(to_array(p), number, step)
                p.grad = None if g is None else self._tensor(g)
            self.optimizer.step()

    def state_dict(self) -> Any:
        return self.optimizer.state_dict()


def assert_same(ours: Run, theirs: Run, rtol: float = 1e-12, atol: float = 1e-13) -> None:
    """Parameters, the state of each, and the groups' settings."""
    __tracebackhide__ = True
    for a, b in zip(ours.params, theirs.params, strict=True):
        assert_close(a.detach(), b.detach(), rtol, atol)
    mine, other = ours.state_dict(), theirs.state_dict()
    assert set(mine["state"]) == set(other["state"])
    for number, state in other["state"].items():
        assert set(mine["state"][number]) == set(state)
        for name, value in state.items():
            assert_close(mine["state"][number][name], value, rtol, atol)
    assert mine["param_groups"] == other["param_groups"]


def converted(tree: Any) -> Any:
    """A state_dict with PyTorch's tensors in place of ours."""
    if isinstance(tree, dict):
        return {k: converted(v) for k, v in tree.items()}
    if isinstance(tree, chainrule.Tensor):
        return torch.from_numpy(to_array(tree).copy())
    return tree


# --- trajectories ---------------------------------------------------------------------------------


@each_case
def test_fifty_steps(case: Case) -> None:
    ours, theirs = (Run(library, case, start()) for library in (chainrule, torch))
    for first in range(0, 50, 10):
        for run in (ours, theirs):
            run.steps(first, first + 10)
        assert_same(ours, theirs)
    assert to_array(ours.params[6]).tolist() == start()[6].tolist()  # never had a gradient


@each_case
def test_float32(case: Case) -> None:
    torch.set_default_dtype(torch.float32)
    values = start(np.float32, big=False)
    ours, theirs = (Run(library, case, values) for library in (chainrule, torch))
    for run in (ours, theirs):
        run.steps(0, 20)
    assert_same(ours, theirs, rtol=1e-5, atol=1e-5)
    assert {p.dtype for p in ours.params} == {chainrule.float32}


@each_case
def test_complex(case: Case) -> None:
    r = np.random.default_rng(3)
    values = [np.asarray(r.normal(size=s) + 1j * r.normal(size=s)) for s in [(3, 2), (), (2,)]]
    ours, theirs = (Run(library, case, values) for library in (chainrule, torch))
    for run in (ours, theirs):
        run.steps(0, 15, complex_gradient)
    assert_same(ours, theirs)


def test_a_difference_is_seen() -> None:
    """The comparison can fail: another option, and another state alone."""
    case, other = Case("Adam", {"lr": 0.05}), Case("Adam", {"lr": 0.05, "betas": (0.9, 0.998)})
    ours, theirs = Run(chainrule, case, start()), Run(torch, other, start())
    for run in (ours, theirs):
        run.steps(0, 2)
    with pytest.raises(AssertionError, match="elements differ"):
        assert_same(ours, theirs)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Rprop", "ASGD", "NAdam"])
def test_learning_rate_in_a_tensor(name: str) -> None:
    values = start(big=False)
    options = {"momentum": 0.9} if name == "SGD" else {}
    ours = Run(chainrule, Case(name, {**options, "lr": chainrule.tensor(0.05)}, None), values)
    theirs = Run(torch, Case(name, {**options, "lr": torch.tensor(0.05)}, None), values)
    for run in (ours, theirs):
        run.steps(0, 12)
    for a, b in zip(ours.params, theirs.params, strict=True):
        assert_close(a.detach(), b.detach(), 1e-12, 1e-13)


def test_betas_and_decay_in_tensors() -> None:
    values = start(big=False)

    def run(library: Any) -> Run:
        tensor = library.tensor
        options = {"betas": (tensor(0.8), tensor(0.95)), "weight_decay": tensor(0.1)}
        made = Run(library, Case("Adam", options, None), values)
        made.steps(0, 12)
        return made

    for a, b in zip(run(chainrule).params, run(torch).params, strict=True):
        assert_close(a.detach(), b.detach(), 1e-12, 1e-13)


# --- files, copies, printing ----------------------------------------------------------------------


@each_case
def test_state_of_pytorch_is_continued(case: Case) -> None:
    theirs = Run(torch, case, start(big=False))
    theirs.steps(0, 17)
    ours = Run(chainrule, case, [to_array(p) for p in theirs.params])
    ours.optimizer.load_state_dict(theirs.state_dict())
    for run in (ours, theirs):
        run.steps(17, 40)
    assert_same(ours, theirs)


@each_case
def test_pytorch_continues_our_state(case: Case) -> None:
    ours = Run(chainrule, case, start(big=False))
    ours.steps(0, 17)
    theirs = Run(torch, case, [to_array(p) for p in ours.params])
    theirs.optimizer.load_state_dict(converted(ours.state_dict()))
    for run in (ours, theirs):
        run.steps(17, 40)
    assert_same(ours, theirs)


@pytest.mark.parametrize(
    "case", {case.name: case for case in TORCH_CASES}.values(), ids=lambda case: case.name
)
@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["deepcopy", "pickle"]
)
def test_a_copy_goes_on_like_pytorchs(case: Case, copied: Callable[[Any], Any]) -> None:
    ours, theirs = (Run(library, case, start(big=False)) for library in (chainrule, torch))
    for run in (ours, theirs):
        run.steps(0, 9)
    ours.optimizer = copied(ours.optimizer)
    before = [to_array(p).copy() for p in ours.params]
    originals = ours.params
    ours.params = [p for group in ours.optimizer.param_groups for p in group["params"]]
    for run in (ours, theirs):
        run.steps(9, 18)
    assert_same(ours, theirs)
    for p, x in zip(originals, before, strict=True):
        assert to_array(p).tolist() == x.tolist()  # the copy has parameters of its own


@each_case
def test_repr_and_defaults(case: Case) -> None:
    values = start(big=False)
    ours, theirs = (Run(library, case, values).optimizer for library in (chainrule, torch))
    assert repr(ours) == repr(theirs)
    assert ours.defaults == theirs.defaults


def test_named_parameters() -> None:
    ours, theirs = (
        library.optim.Adam([("weight", library.zeros(2)), ("bias", library.zeros(1))])
        for library in (chainrule, torch)
    )
    assert ours.param_groups[0]["param_names"] == theirs.param_groups[0]["param_names"]
    assert repr(ours) == repr(theirs)
    assert ours.state_dict()["param_groups"] == theirs.state_dict()["param_groups"]


# --- wrong calls ----------------------------------------------------------------------------------

WRONG: dict[str, Callable[[Any, Any], Any]] = {
    "empty list": lambda o, w: o.SGD([]),
    "tensor": lambda o, w: o.SGD(w),
    "set": lambda o, w: o.SGD([{"params": {w}}]),
    "numbers": lambda o, w: o.SGD([1.0, 2.0]),
    "twice, in two groups": lambda o, w: o.SGD([{"params": [w]}, {"params": [w]}]),
    "non-leaf": lambda o, w: o.SGD([w * 2]),
    "group is no dict": lambda o, w: o.SGD([w]).add_param_group([w]),
    "names of some": lambda o, w: o.SGD([("a", w), w.detach().clone()]),
    "SGD lr": lambda o, w: o.SGD([w], lr=-1),
    "SGD momentum": lambda o, w: o.SGD([w], momentum=-0.1),
    "SGD weight_decay": lambda o, w: o.SGD([w], weight_decay=-0.1),
    "SGD nesterov": lambda o, w: o.SGD([w], nesterov=True),
    "SGD dampened nesterov": lambda o, w: o.SGD([w], momentum=1, dampening=0.1, nesterov=True),
    "Adam beta1": lambda o, w: o.Adam([w], betas=(1.0, 0.9)),
    "Adam beta2": lambda o, w: o.Adam([w], betas=(0.9, -0.1)),
    "Adam eps": lambda o, w: o.Adam([w], eps=-1),
    "AdamW weight_decay": lambda o, w: o.AdamW([w], weight_decay=-1),
    "Adamax betas": lambda o, w: o.Adamax([w], betas=(0.9, 1.0)),
    "NAdam momentum_decay": lambda o, w: o.NAdam([w], momentum_decay=-1),
    "RAdam lr": lambda o, w: o.RAdam([w], lr=-1),
    "Adagrad lr_decay": lambda o, w: o.Adagrad([w], lr_decay=-1),
    "Adagrad start": lambda o, w: o.Adagrad([w], initial_accumulator_value=-1),
    "Adadelta rho": lambda o, w: o.Adadelta([w], rho=1.1),
    "RMSprop alpha": lambda o, w: o.RMSprop([w], alpha=-0.1),
    "RMSprop momentum": lambda o, w: o.RMSprop([w], momentum=-0.1),
    "Rprop etas": lambda o, w: o.Rprop([w], etas=(1.1, 1.2)),
    "ASGD weight_decay": lambda o, w: o.ASGD([w], weight_decay=-1),
    "unknown argument": lambda o, w: o.SGD([w], learning_rate=1),
    "capturable SGD": lambda o, w: o.SGD([w], capturable=False),
    "fused Rprop": lambda o, w: o.Rprop([w], fused=False),
    "fused and foreach": lambda o, w: o.SGD([w], foreach=True, fused=True),
    "fused and differentiable": lambda o, w: o.Adam([w], fused=True, differentiable=True),
    "state of other groups": lambda o, w: o.SGD([w]).load_state_dict(
        o.SGD([{"params": [w]}, {"params": [w.detach().clone()]}]).state_dict()
    ),
    "state of more parameters": lambda o, w: o.SGD([w]).load_state_dict(
        o.SGD([w, w.detach().clone()]).state_dict()
    ),
}


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG.keys())
def test_wrong_calls_raise_what_pytorch_raises(call: Callable[[Any, Any], Any]) -> None:
    with pytest.raises((TypeError, ValueError, RuntimeError)) as theirs:
        call(torch.optim, torch.ones(2, requires_grad=True))
    with pytest.raises(theirs.type):
        call(optim, chainrule.ones(2, requires_grad=True))
