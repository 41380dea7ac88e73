"""The compiled updates of parameters against their NumPy twins."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import chainrule
from chainrule import backend, optim
from chainrule.backend.numpy_kernels import update as reference
from chainrule.optim.rules import fused

native: Any = pytest.importorskip("chainrule.backend._native", reason=backend.why_not_native)

FLOATS = [np.float32, np.float64]
RULES: list[tuple[type[optim.Optimizer], dict[str, Any]]] = [
    (optim.SGD, {}),
    (optim.SGD, {"momentum": 0.9, "weight_decay": 0.1, "maximize": True}),
    (optim.SGD, {"momentum": 0.9, "dampening": 0.3}),
    (optim.SGD, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    (optim.SGDW, {"weight_decay": 0.1}),
    (optim.SGDW, {"weight_decay": 0.1, "momentum": 0.9, "nesterov": True}),
    (optim.SGDW, {"weight_decay": 0, "momentum": 0.9}),
    (optim.AveragedMomentum, {"weight_decay": 0.1}),
    (optim.Lion, {"weight_decay": 0.1}),
    (optim.Lion, {"maximize": True}),
    (optim.Adam, {}),
    (optim.Adam, {"weight_decay": 0.1, "amsgrad": True, "maximize": True}),
    (optim.Adam, {"eps_in_root": True, "eps": 1e-3}),
    (optim.AdamW, {}),
    (optim.AdamW, {"amsgrad": True, "weight_decay": 0.3}),
    (optim.Adamax, {"weight_decay": 0.1}),
    (optim.NAdam, {"weight_decay": 0.1}),
    (optim.NAdam, {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    (optim.RAdam, {"weight_decay": 0.1}),
    (optim.RAdam, {"betas": (0.9, 0.5), "decoupled_weight_decay": True, "weight_decay": 0.1}),
    (optim.Adagrad, {"lr_decay": 0.1, "weight_decay": 0.1}),
    (optim.Adagrad, {"eps_in_root": True, "eps": 1e-3, "maximize": True}),
    (optim.RMSprop, {"weight_decay": 0.1}),
    (optim.RMSprop, {"momentum": 0.9}),
    (optim.RMSprop, {"centered": True, "eps": 1e-2}),
    (optim.RMSprop, {"centered": True, "momentum": 0.9, "eps_in_root": True, "eps": 1e-2}),
    (optim.Adadelta, {"weight_decay": 0.1}),
    (optim.ASGD, {"weight_decay": 0.1}),
    (optim.ASGD, {"t0": 0, "lambd": 0.1}),
    (optim.Rprop, {}),
    (optim.RpropMinus, {"maximize": True}),
    (optim.IRpropMinus, {}),
    (optim.RpropPlus, {"step_sizes": (1e-3, 0.02)}),
    (optim.Quickprop, {"weight_decay": 0.1}),
    (optim.Quickprop, {"gradient_term": False}),
    (optim.DeltaDelta, {"weight_decay": 0.1}),
    (optim.DeltaBarDelta, {"weight_decay": 0.1}),
]
each_rule = pytest.mark.parametrize(("kind", "options"), RULES)
each_float = pytest.mark.parametrize("dtype", FLOATS)
SHAPES = [(), (1,), (0, 3), (7,), (3, 5), (64,), (1000,), (33, 70)]
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30, -1e30, 1e-40, 1.0, -2.0]


@pytest.fixture(autouse=True, params=["baseline", "avx2", "avx512"])
def instructions(request: pytest.FixtureRequest) -> Iterator[None]:
    """Runs a test with each instruction set that the processor has."""
    before = native.get_isa()
    if not native.set_isa(request.param):
        pytest.skip(f"the processor has no {request.param}")
    yield
    native.set_isa(before)


@pytest.fixture
def alone() -> Iterator[None]:
    """Without the NumPy kernels: whatever is handed to them is an error."""
    kernels = {
        name: getattr(family, name)
        for family in backend._IMPLEMENTATIONS["numpy"]
        for name in family.__all__
    }
    native.bind_reference({})
    yield
    native.bind_reference(kernels)


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    before = native.get_num_threads()
    yield native.set_num_threads
    native.set_num_threads(before)


class Update:
    """The arguments of an update, random, for a rule and its options."""

    def __init__(self, kind: Any, options: dict[str, Any], values: list[np.ndarray], step: int = 3):
        r = np.random.default_rng(0)
        self.dtype = values[0].dtype
        optimizer = kind([chainrule.zeros(1, requires_grad=True)], **options)
        (group,) = optimizer.param_groups
        scalars = {"mu_product": 0.4, "eta": 0.02, "mu": 1 if step == 1 else 0.25, "loss": 1.0}
        scalars = {name: scalars[name] for name in optimizer.scalar_states}
        self.rule, self.lr = kind.rule, 0.0625  # type: tuple[Any, Any]
        self.constants = optimizer.constants(group, step, **scalars)
        self.params = [v.copy("K") for v in values]
        self.grads = [r.normal(size=v.shape).astype(v.dtype) for v in values]
        self.states = [
            [self.start(name, r.normal(size=v.shape)).astype(v.dtype) for v in values]
            for name in optimizer.states(group)
        ]

    @staticmethod
    def start(name: str, x: Any) -> np.ndarray:
        if name in ("exp_avg_sq", "max_exp_avg_sq", "exp_inf", "sum", "acc_delta", "step_size"):
            return np.asarray(np.abs(x) / 8)
        if name in ("square_avg", "grad_avg"):  # whose variance is well above zero
            return np.asarray(1 + np.abs(x) if name == "square_avg" else x / 8)
        return np.asarray(x)

    def run(self, kernel: Any) -> list[np.ndarray]:
        """All that is written, as vectors, by this kernel."""
        params = [p.copy("K") for p in self.params]
        states = [[s.copy("K") for s in column] for column in self.states]
        kernel(self.rule, params, self.grads, self.lr, states, self.constants)
        return [a for column in (params, *states) for a in column]


def random_values(dtype: Any, shapes: list[Any] = SHAPES) -> list[np.ndarray]:
    r = np.random.default_rng(1)
    return [np.asarray(r.normal(size=s)).astype(dtype) for s in shapes]


def assert_same(got: list[np.ndarray], expected: list[np.ndarray]) -> None:
    for a, b in zip(got, expected, strict=True):
        assert a.dtype == b.dtype
        rtol = 1e-5 if a.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol / 10)


# --- rules ----------------------------------------------------------------------------------------


@each_rule
@each_float
@pytest.mark.parametrize("step", [1, 3, 50])
def test_rules(kind: Any, options: Any, dtype: Any, step: int, request: Any) -> None:
    update = Update(kind, options, random_values(dtype), step)
    expected = update.run(reference.write_updates)
    request.getfixturevalue("alone")
    assert_same(update.run(native.write_updates), expected)


@each_rule
@each_float
@pytest.mark.parametrize("step", [1, 3])
def test_a_rate_for_each_entry_of_the_first_dimension(
    kind: Any, options: Any, dtype: Any, step: int, request: Any
) -> None:
    shapes = [(), (1,), (7,), (5, 1), (5, 3, 2), (3, 500), (40, 2)]
    update = Update(kind, options, random_values(dtype, shapes), step)
    update.lr = [rates_of(p) for p in update.params]
    expected = update.run(reference.write_updates)
    request.getfixturevalue("alone")
    assert_same(update.run(native.write_updates), expected)


def rates_of(p: np.ndarray) -> np.ndarray:
    """Rates along the first dimension, as large as the parameter."""
    rates = np.linspace(0.02, 0.3, p.shape[0] if p.ndim else 1).astype(p.dtype)
    return np.broadcast_to(rates.reshape(-1, *[1] * (p.ndim - 1)) if p.ndim else rates[0], p.shape)


@pytest.mark.parametrize("count", [1, 3])
def test_rates_are_those_of_updates_one_by_one(count: int, threads: Callable[[int], None]) -> None:
    threads(count)
    whole = Update(optim.Adam, {}, random_values(np.float64, [(5, 30), (4, 3000, 7)]))
    whole.lr = [rates_of(p) for p in whole.params]
    written = whole.run(native.write_updates)
    for k, p in enumerate(whole.params):
        for i in range(len(p)):
            part = Update(optim.Adam, {}, [p[i]])
            part.grads = [whole.grads[k][i]]
            part.states = [[column[k][i]] for column in whole.states]
            part.lr = float(whole.lr[k][i].flat[0])
            for a, b in zip(part.run(native.write_updates), written[k::2], strict=True):
                np.testing.assert_array_equal(a, b[i])


def test_rates_of_other_shapes_and_layouts() -> None:
    """Rates of single elements are left to NumPy, as are those of too many rows."""
    for shape in ((4, 6), (3, 4, 5), (0, 3), (70000,)):
        update = Update(optim.Adam, {}, [np.asfortranarray(random_values(np.float32, [shape])[0])])
        each = np.random.default_rng(0).random(shape).astype(np.float32)
        one = np.broadcast_to(np.float32(0.1), shape)
        for rates in (each, one, rates_of(each), np.asfortranarray(each), rates_of(each)[::-1]):
            update.lr = [rates]
            assert_same(update.run(native.write_updates), update.run(reference.write_updates))


@each_rule
@each_float
def test_special_values(kind: Any, options: Any, dtype: Any) -> None:
    r = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        special = np.array(SPECIAL).astype(dtype)
        update = Update(kind, options, [r.choice(special, size=1000)])
        update.grads = [r.choice(special, size=1000)]
        update.states = [[r.choice(special, size=1000)] for _ in update.states]
        assert_same(update.run(native.write_updates), update.run(reference.write_updates))


@each_rule
def test_threads_and_layouts_make_no_difference(
    kind: Any, options: Any, threads: Callable[[int], None]
) -> None:
    update = Update(kind, options, random_values(np.float32, [(100, 701), (3,), (70001,), (65,)]))
    threads(1)
    expected = update.run(native.write_updates)
    for count in (2, 3):
        threads(count)
        for a, b in zip(update.run(native.write_updates), expected, strict=True):
            np.testing.assert_array_equal(a, b)
    for layout in (np.asfortranarray, lambda a: np.repeat(a, 2, -1)[..., ::2]):
        update.params[0] = layout(update.params[0])
        update.grads[0] = update.grads[0].T.copy().T
        for a, b in zip(update.run(native.write_updates), expected, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.usefixtures("alone")
def test_layouts_are_not_left_to_numpy() -> None:
    values = random_values(np.float64, [(4, 6), (6, 4), (4, 12)])
    update = Update(optim.Adam, {}, [values[0], values[1].T, values[2][:, ::2]])
    update.params = [values[0], values[1].T, values[2][:, ::2]]
    update.grads = [np.asfortranarray(g) for g in update.grads]
    update.states[0] = [np.asfortranarray(s) for s in update.states[0]]
    native.write_updates(Adam, update.params, update.grads, 0.1, update.states, update.constants)
    unaligned = np.frombuffer(bytearray(8 * 3 + 1), np.uint8)[1:].view(np.float64)
    update = Update(optim.SGD, {}, [np.zeros(3)])
    native.write_updates(
        optim.SGD.rule, [unaligned], update.grads, 1.0, update.states, update.constants
    )
    np.testing.assert_array_equal(unaligned, -update.grads[0])


Adam = optim.Adam.rule


def test_dtypes_can_be_mixed() -> None:
    values = [*random_values(np.float32), *random_values(np.float64)] * 3
    for kind, options in RULES:
        update = Update(kind, options, values)
        assert_same(update.run(native.write_updates), update.run(reference.write_updates))


# --- what is left to NumPy, and errors ------------------------------------------------------------


def doubled(p: Any, g: Any, lr: float, **constants: Any) -> Any:
    return (p - 2 * lr * g,)


@pytest.mark.parametrize("kernel", ["unknown", "", "adam", None, 3, b"sgd"])
def test_a_kernel_that_is_not_there_or_does_not_fit(kernel: Any) -> None:
    sgd = Update(optim.SGD, {}, [np.ones(3)])
    sgd.rule = fused(kernel)(lambda *args, **constants: doubled(*args))
    assert_same(sgd.run(native.write_updates), sgd.run(reference.write_updates))
    np.testing.assert_array_equal(sgd.run(native.write_updates)[0], 1 - 0.125 * sgd.grads[0])


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("kernel", ["sgd", "".join(["sg", "d"])])
def test_any_function_may_name_a_kernel(kernel: str) -> None:
    """The binding knows neither modules nor classes."""
    sgd = Update(optim.SGD, {}, [np.ones(3)])
    sgd.rule = fused(kernel)(lambda: ())
    np.testing.assert_array_equal(sgd.run(native.write_updates)[0], 1 - 0.0625 * sgd.grads[0])


def test_a_rule_of_its_own_is_not_computed_by_the_kernel_of_its_base(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Doubled(optim.SGD):
        rule = staticmethod(doubled)

    def step(kind: type[optim.SGD]) -> float:
        w = chainrule.ones(1, requires_grad=True)
        w.grad = chainrule.ones(1)
        kind([w], lr=0.25).step()
        return w.item()

    assert step(optim.SGD) == 0.75
    assert step(Doubled) == 0.5
    monkeypatch.setattr(optim.SGD, "rule", staticmethod(doubled))
    assert step(optim.SGD) == 0.5


def test_every_kernel_has_an_optimizer_and_a_test() -> None:
    kinds = [k for k in vars(optim).values() if isinstance(k, type)]
    kinds = [k for k in kinds if issubclass(k, optim.Optimizer) and hasattr(k.rule, "kernel")]
    assert {k.rule.kernel for k in kinds} == set(native.update_rules)
    assert {k.rule.kernel for k, _ in RULES} == set(native.update_rules)


def test_other_kinds_of_arguments() -> None:
    (p,), g = [np.full(3, 0.5)], np.ones(3)
    sgd = Update(optim.SGD, {}, [p])
    native.write_updates(sgd.rule, [p], [g], [np.full(3, 0.5)], [], sgd.constants)
    np.testing.assert_array_equal(p, [0] * 3)
    for dtype in (np.float16, np.complex64, ">f8"):
        (p,), g = [np.ones(3, dtype)], np.ones(3, dtype)
        native.write_updates(sgd.rule, [p], [g], 0.25, [], sgd.constants)
        np.testing.assert_array_equal(p, np.full(3, 0.75, dtype) + (p[0] - 0.75))
    (p,) = [np.ones(3)]
    native.write_updates(sgd.rule, (p,), (np.ones(3),), 0.25, (), sgd.constants)
    constants = {**sgd.constants, "weight_decay": chainrule.tensor(1.0), "momentum": 0}
    native.write_updates(sgd.rule, [p], [np.ones(3)], 0.25, [], constants)
    np.testing.assert_array_equal(p, [0.75 - 0.25 * 1.75] * 3)


@pytest.mark.parametrize("name", ["smallest", "largest"])
def test_a_bound_that_is_nan(name: str) -> None:
    p, g = np.full(3, 0.5), np.ones(3)
    rprop = Update(optim.Rprop, {}, [p])
    outcomes = []
    for kernels in (reference, native):
        arrays = [p.copy(), np.ones(3), np.full(3, 0.1)]
        constants = {**rprop.constants, name: math.nan}
        states = [[arrays[1]], [arrays[2]]]
        kernels.write_updates(rprop.rule, [arrays[0]], [g], 0.1, states, constants)
        outcomes.append(arrays)
    np.testing.assert_array_equal(outcomes[0], outcomes[1])
    assert np.isnan(outcomes[0][0]).all()


def test_wrong_calls_raise_and_write_nothing() -> None:
    update = Update(optim.Adam, {}, [np.ones(3)])
    p, g, states = np.ones(3), np.ones(3), [[np.zeros(3)], [np.zeros(3)]]
    fixed = np.ones(3)
    fixed.flags.writeable = False
    wrong: list[Any] = [
        (Adam, [fixed], [g], 0.1, states, update.constants),
        (Adam, [p], [g], 0.1, states, {**update.constants, "more": 1}),
        (Adam, [p], [g], 0.1, states, {"beta1": 0.9}),
        (Adam, [p], [g], 0.1, states, {**update.constants, "eps": None}),
        (Adam, [p], [g], 0.1, states, {**update.constants, "eps": "1"}),
        (Adam, [p], [g], 0.1, states[:1], update.constants),
        (Adam, [p], [g], 0.1, [*states, *states], update.constants),
        (Adam, [p], [g, g], 0.1, states, update.constants),
        (Adam, [p], [np.ones(2)], 0.1, states, update.constants),
        (Adam, [p], [g], 0.1, [[np.zeros(3)], []], update.constants),
        (Adam, [p], [g], "0.1", states, update.constants),
        (Adam, [p], [None], 0.1, states, update.constants),
        (None, [p], [g], 0.1, states, update.constants),
        (Adam, [p]),
        (),
    ]
    for arguments in wrong:
        with pytest.raises((TypeError, ValueError, AttributeError)):
            native.write_updates(*arguments)
        np.testing.assert_array_equal(p, np.ones(3))
    native.write_updates(Adam, [], [], 0.1, [[], []], update.constants)


# --- gradients ------------------------------------------------------------------------------------


@each_float
@pytest.mark.parametrize("count", [1, 2, 3])
def test_all_finite(dtype: Any, count: int, threads: Callable[[int], None]) -> None:
    threads(count)
    values = random_values(dtype, [*SHAPES, (90001,)])
    values[-1][7] = np.finfo(dtype).max
    values[-1][8] = np.finfo(dtype).smallest_subnormal
    assert native.all_finite(values) is True
    assert native.all_finite([]) is True
    for bad in (np.nan, np.inf, -np.inf):
        for i in (0, 30000, 90000):
            values[-1][i], kept = bad, values[-1][i]
            assert native.all_finite(values) is False
            values[-1][i] = kept
        assert native.all_finite([values[0], np.array(bad, dtype)]) is False
    assert native.all_finite([np.array([1, np.nan])[::-1], np.ones((2, 3))[:, ::2]]) is False
    assert native.all_finite([np.ones(2, complex), np.ones(2)]) is True


@pytest.mark.parametrize("order", [2.0, math.inf])
@each_float
def test_total_norm(order: float, dtype: Any, threads: Callable[[int], None]) -> None:
    values = [*random_values(dtype, [*SHAPES, (100, 901)]), *random_values(np.float32)]
    values += random_values(dtype, [(5,)] * 50)
    found = set()
    for count in (1, 2, 3):
        threads(count)
        found.add(native.total_norm(values, order))
    assert len(found) == 1  # for any number of threads
    np.testing.assert_allclose(found.pop(), reference.total_norm(values, order), rtol=1e-6)
    assert native.total_norm([], order) == reference.total_norm([], order) == 0
    for some in (values[:3], [values[4][:, ::2], values[4].T], [np.zeros(3, dtype)]):
        expected = reference.total_norm(some, order)
        np.testing.assert_allclose(native.total_norm(some, order), expected, rtol=1e-6)
    for bad in ([np.nan, np.inf], [-np.inf], [np.nan], [1e30, 1e30], [1e-30], [1e200]):
        with np.errstate(all="ignore"):
            some = [np.ones(3, dtype), np.array(bad).astype(dtype)]
            expected = reference.total_norm(some, order)
        np.testing.assert_allclose(native.total_norm(some, order), expected, rtol=1e-6)


@each_float
@pytest.mark.parametrize("count", [1, 3])
def test_scaling_and_clamping(dtype: Any, count: int, threads: Callable[[int], None]) -> None:
    threads(count)
    values = [*random_values(dtype, [*SHAPES, (90001,)]), np.array(SPECIAL).astype(np.float64)]
    values += [np.asfortranarray(values[4]), np.repeat(values[4], 2, 1)[:, ::2]]
    for name, numbers in (("write_scaled", (0.3,)), ("write_clamped", (-0.5, 0.25))):
        got, expected = [[v.copy("K") for v in values] for _ in range(2)]
        assert getattr(native, name)(got, *numbers) is None
        getattr(reference, name)(expected, *numbers)
        for a, b in zip(got, expected, strict=True):
            np.testing.assert_array_equal(a, b)
        fixed = np.ones(3)
        fixed.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            getattr(native, name)([fixed], *numbers)
        with pytest.raises(TypeError):
            getattr(native, name)([fixed])


def test_from_several_python_threads() -> None:
    values = random_values(np.float32, [(300, 400), (5,)])
    update = Update(optim.Adam, {}, values)
    expected, norm = update.run(native.write_updates), native.total_norm(values, 2.0)
    wrong = []

    def work() -> None:
        for _ in range(20):
            got = update.run(native.write_updates)
            if not all(np.array_equal(a, b) for a, b in zip(got, expected, strict=True)):
                wrong.append(got)
            if native.total_norm(values, 2.0) != norm or not native.all_finite(values):
                wrong.append(values)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not wrong
