"""A kernel that is called on a device is one program, and computes what its parts do."""

from __future__ import annotations

import copy
import gc
import math
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import chainrule
from chainrule import nn, optim
from chainrule.backend import devices, precision

jax = pytest.importorskip("jax")

from chainrule.backend.xla_calls import MOST, called  # noqa: E402
from chainrule.backend.xla_kernels.checks import check  # noqa: E402

PLACE = "xla"
devices.activate()
jnp = jax.numpy


@contextmanager
def compilations() -> Iterator[list[str]]:
    """Counts what XLA compiles meanwhile."""
    found: list[str] = []

    def listen(name: str, seconds: float, **kwargs: Any) -> None:
        if "backend_compile" in name:
            found.append(name)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield found
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


class Counted:
    """A kernel that counts how often Python runs it: while it is traced, or as it is."""

    def __init__(self, kernel: Any):
        self.kernel, self.times = kernel, 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.times += 1
        return self.kernel(*args, **kwargs)


X = np.arange(6.0).reshape(2, 3)


def test_a_number_that_changes_becomes_an_argument() -> None:
    kernel = Counted(lambda x, a, b: a * x + b)
    x = jnp.asarray(X)
    for a, b in [(2.0, 3.0), (2.0, 3.0), (2.0, 4.0), (2.0, 5.0), (6.0, 5.0), (7.0, 8.0)]:
        np.testing.assert_array_equal(called(kernel, (x, a, b), {}), a * X + b)
    assert kernel.times == 3  # both are part of it; one of them; none


def test_numbers_are_told_apart_by_their_place() -> None:
    """Whichever changes first."""
    kernel = Counted(lambda x, a, b, c: (x - a) * b + c)
    x = jnp.asarray(X)
    for a, b, c in [(1.0, 2.0, 3.0), (1.0, 2.0, 9.0), (7.0, 2.0, 9.0), (4.0, 5.0, 6.0)]:
        np.testing.assert_array_equal(called(kernel, (x, a), {"b": b, "c": c}), (X - a) * b + c)


def test_threads_that_call_with_other_numbers_get_their_own() -> None:
    """Whether a number is an argument is decided once for each call."""
    kernel = Counted(lambda x, a, b, c: (x - a) * b + c)
    x = jnp.asarray(X)

    def calls(seed: int) -> bool:
        right = True
        for i in range(200):
            a, b, c = float(seed), float(i % 3), float(i % 7 * seed)
            out = np.asarray(called(kernel, (x, a, b, c), {}))
            right &= bool((out == (X - a) * b + c).all())
        return right

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(calls, range(8)))


def test_minus_zero_is_another_number() -> None:
    kernel = Counted(lambda x, a: x * a)
    for number in (0.0, -0.0, 0.0, -0.0):
        out = called(kernel, (jnp.ones(()), number), {})
        assert math.copysign(1, float(out)) == math.copysign(1, number)


def test_one_is_not_true() -> None:
    kernel = Counted(lambda x, flag: x + 10 if flag is True else x)
    assert float(called(kernel, (jnp.ones(()), True), {})) == 11
    assert float(called(kernel, (jnp.ones(()), 1), {})) == 1
    assert float(called(kernel, (jnp.ones(()), 1.0), {})) == 1


def test_what_looks_at_values_runs_as_it_is() -> None:
    kernel = Counted(lambda x: x * 2 if float(x.sum()) > 0 else x)
    for sign in (1.0, -1.0, 1.0):
        np.testing.assert_array_equal(
            called(kernel, (jnp.asarray(sign * X),), {}), X * 2 if sign > 0 else -X
        )
    assert kernel.times == 4  # the first one in vain


def test_what_returns_no_array_runs_as_it_is() -> None:
    kernel = Counted(lambda x: x.shape)
    assert called(kernel, (jnp.asarray(X),), {}) == (2, 3)
    assert type(called(kernel, (jnp.asarray(X),), {})[0]) is int


def test_errors_are_the_kernels_own() -> None:
    def kernel(x: Any) -> Any:
        check(jnp.all(x > 0), lambda: ValueError(f"kernel: the least is {float(x.min())}"))
        return jnp.sqrt(x)

    counted = Counted(kernel)
    np.testing.assert_array_equal(called(counted, (jnp.asarray(X + 1),), {}), np.sqrt(X + 1))
    with pytest.raises(ValueError, match=r"kernel: the least is -3\.0"):
        called(counted, (jnp.asarray(X - 3),), {})
    np.testing.assert_array_equal(called(counted, (jnp.asarray(X + 2),), {}), np.sqrt(X + 2))
    assert counted.times == 2  # traced, and for its error
    with pytest.raises(TypeError, match="unexpected"):
        called(counted, (jnp.asarray(X),), {"unexpected": 1})
    np.testing.assert_array_equal(called(counted, (jnp.asarray(X + 3),), {}), np.sqrt(X + 3))
    assert counted.times == 4  # and in vain


def test_ever_other_sizes_run_as_they_are() -> None:
    kernel = Counted(lambda x, shift: jnp.roll(x, shift))
    x = jnp.asarray(X)
    for _ in range(2):
        for shift in range(2 * MOST):
            np.testing.assert_array_equal(called(kernel, (x, shift), {}), np.roll(X, shift))
    assert kernel.times == 3 * MOST  # traced, and the others twice


def test_the_precision_is_part_of_a_program() -> None:
    kernel = Counted(lambda x: x * (2 if precision.current().matmul == "highest" else 3))
    one = jnp.ones(())
    try:
        assert float(called(kernel, (one,), {})) == 2
        precision.set_levels(matmul="high")
        assert float(called(kernel, (one,), {})) == 3
    finally:
        precision.set_levels(matmul="highest")
    assert float(called(kernel, (one,), {})) == 2
    assert kernel.times == 2


def test_rules_that_belong_to_an_object_do_not_keep_it() -> None:
    class Own(optim.SGD):
        """Its rule asks its object."""

        def rule(self, p: Any, g: Any, lr: Any, **constants: Any) -> Any:  # type: ignore[override]
            assert self.param_groups
            return (p - lr * g,)

    weight = chainrule.ones(3, device=PLACE, requires_grad=True)
    optimizer = Own([weight], lr=0.5)
    for _ in range(3):
        optimizer.zero_grad()
        weight.sum().backward()
        optimizer.step()
    assert weight.tolist() == [-0.5] * 3
    ref = weakref.ref(optimizer)
    del optimizer
    gc.collect()
    assert ref() is None


def _recurrent() -> tuple[Any, Any]:
    class Last(nn.Module):
        """A number from the last state."""

        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.head = nn.LSTM(3, 4, batch_first=True), nn.Linear(4, 1)

        def forward(self, x: Any) -> Any:
            return self.head(self.lstm(x)[0][:, -1])

    return Last(), chainrule.randn(2, 5, 3)


def _convolutional() -> tuple[Any, Any]:
    layers = [nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.SELU(), nn.Flatten(), nn.Linear(12, 1)]
    return nn.Sequential(*layers), chainrule.randn(4, 2, 4, 4)


@pytest.mark.parametrize("make", [_recurrent, _convolutional])
def test_eager_steps_compile_nothing_from_the_third_on(make: Any) -> None:
    """Also with a rate that changes at every step; and they are those of the CPU."""
    chainrule.manual_seed(0)
    net, x = make()
    there = copy.deepcopy(net).to(PLACE)
    runs = [(net, x), (there, x.to(PLACE))]
    optimizers = [optim.AdamW(n.parameters(), lr=0.01) for n, _ in runs]

    def step(which: int, rate: float) -> float:
        (model, data), optimizer = runs[which], optimizers[which]
        optimizer.param_groups[0]["lr"] = rate
        optimizer.zero_grad()
        loss = model(data).square().mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    rates = [0.01, 0.02, 0.03, 0.005, 0.001]
    wanted = [step(0, rate) for rate in rates]
    found = [step(1, rate) for rate in rates[:2]]
    with compilations() as compiled:
        found += [step(1, rate) for rate in rates[2:]]
    assert found == pytest.approx(wanted, rel=1e-5)
    assert not compiled


def test_groups_of_an_optimizer_have_numbers_of_their_own() -> None:
    """In the precision of Python's: 1 - 0.999 has four digits in float32."""
    results = []
    for place in ("cpu", PLACE):
        p = [chainrule.full((3,), v, device=place, requires_grad=True) for v in (1.0, 2.0)]
        groups = [{"params": p[:1], "lr": 0.1}, {"params": p[1:], "betas": (0.8, 0.99)}]
        optimizer = optim.Adam(groups, lr=0.02)
        for _ in range(4):
            optimizer.zero_grad()
            (p[0] * p[1]).sum().backward()
            optimizer.step()
        results.append([*p[0].tolist(), *p[1].tolist()])
    assert results[1] == pytest.approx(results[0], rel=3e-7)
