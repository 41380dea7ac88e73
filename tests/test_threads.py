"""What is set for a while is set for one thread: others go on as if nothing had happened."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import numpy as np
import pytest

import chainrule
from chainrule import autograd, nn, optim, printing
from chainrule.autograd import forward_ad
from chainrule.nn.utils import parametrize
from chainrule.ops.core.apply import watching
from chainrule.ops.core.arguments import AllocationLimit
from chainrule.optim.linear import untold

T = TypeVar("T")


def elsewhere(function: Callable[[], T]) -> T:
    """What a function returns in a thread of its own."""
    found: list[T] = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def both_ways(context: Callable[[], AbstractContextManager[Any]], look: Callable[[], T]) -> list[T]:
    """What is seen outside; inside; in another thread meanwhile; and outside, while another thread
    is inside."""
    outside = look()
    with context():
        inside, other = look(), elsewhere(look)
    entered, seen = threading.Event(), threading.Event()

    def stay() -> None:
        with context():
            entered.set()
            assert seen.wait(10)

    thread = threading.Thread(target=stay)
    thread.start()
    assert entered.wait(10)
    meanwhile = look()
    seen.set()
    thread.join()
    return [outside, inside, other, meanwhile]


class Doubled(nn.Module):
    calls = 0

    def forward(self, x: Any) -> Any:
        Doubled.calls += 1
        return 2 * x


LAYER = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Doubled())


def computed() -> int:
    """How often a parametrized weight is computed when it is used twice."""
    before = Doubled.calls
    _ = LAYER.weight, LAYER.weight
    return Doubled.calls - before


def refused() -> bool:
    """Whether a large tensor is refused."""
    try:
        chainrule.zeros(100, 100)
    except MemoryError:
        return True
    return False


CASES: dict[str, tuple[Callable[[], AbstractContextManager[Any]], Callable[[], Any], Any, Any]] = {
    "no_grad": (chainrule.no_grad, chainrule.is_grad_enabled, True, False),
    "inference_mode": (
        chainrule.inference_mode,
        chainrule.is_inference_mode_enabled,
        False,
        True,
    ),
    "printoptions": (
        lambda: printing.printoptions(precision=2),
        lambda: str(chainrule.tensor(1.12345)),
        "tensor(1.1235)",
        "tensor(1.12)",
    ),
    "AllocationLimit": (lambda: AllocationLimit(1000, 1000), refused, False, True),
    "cached": (parametrize.cached, computed, 2, 1),
}


@pytest.mark.parametrize("case", CASES)
def test_a_block_holds_for_its_thread(case: str) -> None:
    context, look, outside, inside = CASES[case]
    assert both_ways(context, look) == [outside, inside, outside, outside]


def test_options_set_inside_a_block_end_with_it() -> None:
    before = printing.get_printoptions()
    with printing.printoptions(precision=2):
        chainrule.set_printoptions(precision=6)
        assert printing.get_printoptions()["precision"] == 6
        assert elsewhere(printing.get_printoptions) == before
    assert printing.get_printoptions() == before


def test_a_thread_that_is_not_told_leaves_the_others_their_warnings() -> None:
    told: list[str] = []

    def look() -> bool:
        x, y = chainrule.tensor([[0.0], [1.0], [2.0]]), chainrule.tensor([1.0, -1.0, 1.0])
        told.clear()
        optim.perceptron(x, y)
        return bool(told)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_: told.append(str(message))
        assert both_ways(untold, look) == [True, False, True, True]


def test_operations_are_watched_in_one_thread() -> None:
    seen: list[str] = []

    def compute() -> None:
        chainrule.ones(2).tanh()

    with watching(lambda op, inputs, params, out: seen.append(op.name)):
        elsewhere(compute)
        assert not seen
        compute()
    assert seen == ["tanh"]


def test_random_functions_under_vmap_in_one_thread_draw_freely_in_another() -> None:
    def sample(x: Any) -> Any:
        assert elsewhere(lambda: tuple(chainrule.rand(3).shape)) == (3,)
        with pytest.raises(RuntimeError, match="called a random function"):
            chainrule.rand(3)
        return x

    chainrule.func.vmap(sample)(chainrule.ones(2))


def test_levels_of_forward_mode_belong_to_one_thread() -> None:
    with forward_ad.dual_level():

        def make() -> str:
            with pytest.raises(RuntimeError, match="no level is open"):
                forward_ad.make_dual(chainrule.ones(1), chainrule.ones(1))
            return "refused"

        assert elsewhere(make) == "refused"


def test_anomalies_are_sought_in_one_thread() -> None:
    def backward() -> float:
        x = chainrule.zeros(1, requires_grad=True)
        (x.sqrt() * 0).sum().backward()
        return float(x.grad)

    with autograd.detect_anomaly():
        assert np.isnan(elsewhere(backward))
        with pytest.raises(RuntimeError, match="nan"):
            backward()
