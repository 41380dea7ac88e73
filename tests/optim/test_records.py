"""What holds for every optimizer: a record, descent, files, copies, parameters of all shapes."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from optim.records import CASES, ON_THEIR_OWN, Case

import chainrule
from chainrule import Tensor, optim
from chainrule.tensor import of_array


def each(cases: list[Case]) -> Any:
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.label)


each_case = each(CASES)
each_without_closure = each([case for case in CASES if case.needs == "gradient"])
each_that_resumes = each([case for case in CASES if case.resumes])


class Bowl:
    """An optimizer on sum a (w - c)^2 / 2, with a closure of the kind it needs."""

    def __init__(self, case: Case, params: list[Tensor] | None = None):
        self.case = case
        self.params = params or [
            chainrule.tensor([1.0, -1.0], dtype=chainrule.float64, requires_grad=True),
            chainrule.tensor([[0.5, 2.0]], dtype=chainrule.float64, requires_grad=True),
        ]
        self.optimizer = case.make_groups(optim, self.params[:1], self.params[1:])

    def residuals(self) -> Tensor:
        w, v = self.params
        return chainrule.cat([w - 0.2, 1.5 * (v[0] + 0.3) + 0.3 * w])

    def loss(self) -> Tensor:
        return (self.residuals() ** 2).sum() / 2

    def closure(self) -> Tensor:
        self.optimizer.zero_grad()
        if self.case.needs == "residuals":
            return self.residuals()
        loss = self.loss()
        if self.case.needs != "graph":
            loss.backward()
        return loss

    def steps(self, number: int) -> None:
        for _ in range(number):
            if self.case.needs == "gradient":
                self.closure()
                self.optimizer.step()
            else:
                self.optimizer.step(self.closure)

    def values(self) -> list[Any]:
        return [p.tolist() for p in self.params]


# --- completeness ---------------------------------------------------------------------------------


def missing(names: list[str], cases: list[Case]) -> set[str]:
    return set(names) - {case.name for case in cases} - set(ON_THEIR_OWN)


def exported() -> list[str]:
    """The optimizers of chainrule.optim that can be made: all but the base classes."""
    bases = {optim.Optimizer, getattr(optim, "Minimizer", optim.Optimizer)}
    return [
        name
        for name in optim.__all__
        if inspect.isclass(kind := getattr(optim, name))
        and issubclass(kind, optim.Optimizer)
        and kind not in bases
    ]


def test_every_optimizer_has_a_record() -> None:
    assert len(exported()) > 10
    assert not missing(exported(), CASES)
    assert {case.name for case in CASES} <= set(exported())
    assert missing([*exported(), "Unheard"], CASES) == {"Unheard"}  # this test can fail
    assert all(find_spec(f"optim.{module}") for module in ON_THEIR_OWN.values())


def test_labels_are_unique() -> None:
    labels = [case.label for case in CASES]
    assert len(labels) == len(set(labels))


# --- what holds for all ---------------------------------------------------------------------------


@each_case
def test_the_loss_falls_or_with_maximize_grows(case: Case) -> None:
    chainrule.manual_seed(0)
    bowl = Bowl(case)
    before = bowl.loss().item()
    bowl.steps(40)
    after = bowl.loss().item()
    assert after < 0.9 * before if case.descends else after > 1.01 * before


@each_without_closure
def test_parameters_without_gradient_are_left_alone(case: Case) -> None:
    bowl = Bowl(case)
    bowl.steps(2)
    before = bowl.values()
    bowl.optimizer.zero_grad()
    bowl.optimizer.step()
    assert bowl.values() == before


@each_that_resumes
def test_a_saved_run_goes_on(case: Case) -> None:
    bowl = Bowl(case)
    bowl.steps(3)
    saved = pickle.dumps(bowl.optimizer.state_dict())
    other = Bowl(case, [p.detach().clone().requires_grad_() for p in bowl.params])
    other.optimizer.load_state_dict(pickle.loads(saved))
    for run in (bowl, other):
        run.steps(3)
    assert other.values() == bowl.values()  # to the last digit


@each_that_resumes
@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["deepcopy", "pickle"]
)
def test_a_copy_goes_on(case: Case, copied: Callable[[Any], Any]) -> None:
    bowl = Bowl(case)
    bowl.steps(3)
    other = Bowl(case)
    other.optimizer = copied(bowl.optimizer)
    other.params = [p for group in other.optimizer.param_groups for p in group["params"]]
    before = bowl.values()
    other.steps(3)
    assert bowl.values() == before
    bowl.steps(3)
    assert other.values() == bowl.values()


@each_case
def test_the_dtype_stays(case: Case) -> None:
    chainrule.manual_seed(0)
    params = [chainrule.tensor([1.0, -1.0]), chainrule.tensor([[0.5, 2.0]])]
    bowl = Bowl(case, [p.requires_grad_() for p in params])
    bowl.steps(3)
    assert {p.dtype for p in bowl.params} == {chainrule.float32}
    tensors = [
        v for s in bowl.optimizer.state.values() for v in s.values() if isinstance(v, Tensor)
    ]
    assert {v.dtype for v in tensors if v.dtype.is_floating_point} <= {chainrule.float32}


@each_without_closure
def test_shapes_and_layouts_make_no_difference(case: Case) -> None:
    """A number, no elements at all, a transposed and a sliced array: all as a vector is."""
    values = np.random.default_rng(0).normal(size=(3, 4))
    layouts = [values.ravel(), values, np.asfortranarray(values), np.repeat(values, 2, 1)[:, ::2]]

    def moved(x: np.ndarray) -> np.ndarray:
        w = of_array(np.array(x, order="K") if x.flags.forc else x).requires_grad_()
        number, empty = chainrule.tensor(0.5, requires_grad=True), chainrule.zeros(0, 3)
        optimizer = case.make(optim, [empty.requires_grad_(), w, number])
        for _ in range(3):
            for p in (w, number, empty):
                p.grad = chainrule.cos(p.detach())
            optimizer.step()
        assert number.shape == ()
        assert number.item() != 0.5
        return w.detach().numpy().ravel()

    first, *others = [moved(x) for x in layouts]
    for other in others:
        assert other.tolist() == first.tolist()
