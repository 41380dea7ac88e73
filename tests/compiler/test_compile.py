"""What is recorded again, what runs as it is, and what is said about it."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import numpy as np
import pytest

import chainrule
from chainrule import backend, compiler, func, nn, optim
from chainrule.backend import K
from chainrule.backend import effects
from chainrule.compiler.memory import lifetimes, planned
from tests.compiler.nets import NETS, batches, make_step

native = pytest.mark.skipif(backend.why_not_native != "", reason="there are no compiled kernels")


def call_often(compiled: Any, arguments: Any) -> None:
    """Calls with one tuple of arguments after the other."""
    for args in arguments:
        compiled(*args)


def warmed(function: Any, *args: Any, calls: int = 4) -> Any:
    """A compiled function that has its program."""
    compiled = chainrule.compile(function, fullgraph=True)
    for _ in range(calls):
        compiled(*args)
    assert compiled.repeated
    return compiled


def test_every_kernel_has_one_kind() -> None:
    kinds = [*map(set, (effects.DRAWS, effects.CHECKS, effects.STATIC, effects.READS))]
    kinds += [set(effects.WRITES), effects.SIZED, effects.OUTSIDE]
    named = [name for kind in kinds for name in kind]
    assert len(named) == len(set(named))
    assert not set(named) - set(vars(K))
    for name in vars(K):
        if name.startswith("write"):
            assert effects.effect_of(name) == "writes"
        elif name.startswith("random_"):
            assert effects.effect_of(name) == "draws"


# --- guards ---------------------------------------------------------------------------------------


def test_modes_settings_and_frozen_parameters_are_seen() -> None:
    net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 3))
    x = chainrule.ones(2, 4)

    def f(x: Any) -> Any:
        with chainrule.no_grad():
            return net(x).sum()

    compiled = warmed(f, x)
    net.eval()
    for _ in range(4):
        assert compiled(x).item() == f(x).item()
    net.train()
    net[1].p = 0.0
    for _ in range(4):
        assert compiled(x).item() == f(x).item()
    with chainrule.no_grad():
        net[0].weight.mul_(2)  # in place: the same memory
    assert compiled(x).item() == f(x).item()
    net[0].weight.data = chainrule.ones(8, 4)  # other memory
    for _ in range(5):
        assert compiled(x).item() == f(x).item()
    changes = next(iter(compiled.entries.values())).changes
    assert len(changes) == 3
    assert "replaced" in changes[-1]


def test_numbers_in_closures_and_globals() -> None:
    factor = 2.0

    def f(x: Any) -> Any:
        return (x * factor).sum()

    x = chainrule.ones(3)
    compiled = warmed(f, x)
    factor = 5.0
    assert compiled(x).item() == 15


def test_rates_are_asked_for_and_need_no_record() -> None:
    w = chainrule.ones(2, requires_grad=True)
    optimizer = optim.SGD([w], lr=0.5)

    def step() -> Any:
        optimizer.zero_grad()
        loss = w.sum()
        loss.backward()
        optimizer.step()
        return loss

    compiled = warmed(step)
    optimizer.param_groups[0]["lr"] = 0.25
    before, repeated = w.detach().clone(), compiled.repeated
    compiled()
    assert chainrule.equal(before - 0.25, w.detach())
    assert compiled.repeated == repeated + 1


def test_seeds_between_calls() -> None:
    compiled = warmed(lambda: chainrule.nn.functional.dropout(chainrule.ones(50)))
    chainrule.manual_seed(3)
    first = compiled()
    chainrule.manual_seed(3)
    assert chainrule.equal(first, compiled())
    assert not chainrule.equal(first, compiled())


def test_gradients_left_by_the_caller() -> None:
    w = chainrule.ones(2, requires_grad=True)

    def step() -> Any:
        loss = (w * w).sum()
        loss.backward()
        return loss

    compiled = chainrule.compile(step)
    for _ in range(5):
        w.grad = None
        compiled()
        assert w.grad.tolist() == [2, 2]
    assert compiled.repeated
    compiled()
    assert w.grad.tolist() == [4, 4]


def test_a_ninth_form_runs_as_it_is() -> None:
    compiled = chainrule.compile(lambda x: x.sum())
    for n in range(1, 9):
        compiled(chainrule.ones(n))
    with pytest.warns(UserWarning, match="more than 8 forms of arguments"):
        assert compiled(chainrule.ones(9)).item() == 9


# --- what cannot be repeated ----------------------------------------------------------------------


def reads(x: Any) -> Any:
    """Looks at a number."""
    y = x.sum()
    return y * 2 if y.item() > 2 else y


def branches(x: Any) -> Any:
    """Looks at a truth value."""
    return x if bool((x > 0).all()) else -x


def sized(x: Any) -> Any:
    """A result whose size follows from values."""
    return x[x > 0].sum()


def hooked(x: Any) -> Any:
    """A hook of a tensor."""
    y = x.clone().requires_grad_()
    y.register_hook(lambda g: 2 * g)
    (y * y).sum().backward()
    return y.grad


CALLS = iter(range(10**6))


def counted(x: Any) -> Any:
    """A number that is another one each time."""
    return (x * float(next(CALLS))).sum()


def with_graph(x: Any) -> Any:
    """A result that a gradient can be asked of."""
    return (x.requires_grad_() * 2).sum()


def changes_argument(x: Any) -> Any:
    """Writes into what it is given."""
    x += 1
    return x.sum()


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (reads, r"test_compile\.py line \d+: it reads numbers of a tensor"),
        (branches, "reads numbers of a tensor"),
        (sized, "whose size depends on values"),
        (hooked, "a hook of a tensor"),
        (counted, "calls mul with .* where it was .* the time before|a constant .* has changed"),
        (with_graph, "a gradient can still be asked of"),
        (changes_argument, "changes an argument in place"),
    ],
)
def test_reasons(function: Any, reason: str) -> None:
    compiled = chainrule.compile(function)
    inputs = [(chainrule.full((3,), float(i) - 2),) for i in range(6)]
    with pytest.warns(UserWarning, match=reason):
        call_often(compiled, inputs[:4])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # said once
        if function is not counted:
            x = chainrule.full((3,), 2.0)
            assert chainrule.equal(compiled(x.clone()).detach(), function(x).detach())
    strict = chainrule.compile(function, fullgraph=True)
    with pytest.raises(compiler.NotRepeatable, match=reason):
        call_often(strict, inputs)


def test_hooks_of_modules_and_of_optimizers() -> None:
    net, _ = NETS["mlp"][0](), None
    net[0].register_forward_hook(lambda *_: None)
    compiled = chainrule.compile(make_step(net, optim.SGD(net.parameters(), lr=0.1)))
    with pytest.warns(UserWarning, match="a hook of a module"):
        call_often(compiled, batches((4,), 3))
    net = NETS["mlp"][0]()
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    optimizer.register_step_post_hook(lambda *_: None)
    compiled = chainrule.compile(make_step(net, optimizer))
    with pytest.warns(UserWarning, match="a hook of an optimizer"):
        call_often(compiled, batches((4,), 3))


# --- errors ---------------------------------------------------------------------------------------


def test_a_gradient_that_is_not_finite() -> None:
    net = NETS["mlp"][0]()
    step = make_step(net, optim.Adam(net.parameters()))
    (x, y), *_ = batches((4,), 1)
    compiled = warmed(step, x, y)
    before = [p.detach().clone() for p in net.parameters()]
    with pytest.raises(optim.NotFiniteError, match=r"Adam\.step: the gradient of parameter"):
        compiled(x * float("nan"), y)
    after = [p.detach() for p in net.parameters()]
    assert all(map(chainrule.equal, before, after))
    assert compiled(x, y).isfinite()


@native
def test_one_in_the_middle_of_an_epoch() -> None:
    net = NETS["mlp"][0]()
    optimizer = optim.Adam(net.parameters())
    compiled = chainrule.compile(make_step(net, optimizer))
    x, y = batches((4,), 1, size=60)[0]
    x[37] = float("nan")
    with pytest.raises(optim.NotFiniteError) as raised:
        compiled.epoch(x, y, batch_size=5)
    assert "call 7 of 12" in raised.value.__notes__[0]
    assert {int(s["step"]) for s in optimizer.state.values()} == {7}
    assert all(p.isfinite().all() for p in net.parameters())


def test_a_step_that_raises_leaves_a_library_that_works() -> None:
    def fails(x: Any) -> Any:
        if len(calls) > 1:
            raise KeyError("mine")
        calls.append(1)
        return x.sum()

    calls: list[int] = []
    compiled = chainrule.compile(fails)
    compiled(chainrule.ones(2))
    compiled(chainrule.ones(2))
    with pytest.raises(KeyError, match="mine"):
        compiled(chainrule.ones(2))
    assert not compiler.is_compiling()
    assert type((chainrule.ones(2) * 2).array) is np.ndarray


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"dynamic": True}, ValueError, "a record of its own"),
        ({"options": {"trace": True}}, ValueError, "no options"),
        ({"backend": "cudagraphs"}, ValueError, "backend must be one of"),
        ({"mode": "fast"}, ValueError, "mode must be one of"),
        ({"model": 5}, TypeError, "a function or a module"),
    ],
)
def test_arguments(arguments: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        chainrule.compile(**{"model": abs, **arguments})


def test_arguments_of_epochs() -> None:
    compiled = chainrule.compile(lambda x: x.sum())
    x = chainrule.ones(7)
    with pytest.raises(ValueError, match="not one whole call"):
        compiled.epoch(x, batch_size=8)
    with pytest.raises(IndexError, match="from 0 to 9, but there are 7"):
        compiled.epoch(x, batch_size=2, order=chainrule.tensor([0, 9]))
    with pytest.raises(ValueError, match="do not belong together"):
        compiled.epoch(x, chainrule.ones(6), batch_size=2)
    with pytest.raises(RuntimeError, match="no program yet"):
        _ = compiled.program


# --- modules, transformations, threads ------------------------------------------------------------


def test_modules_for_evaluation() -> None:
    net = NETS["cnn"][0]().eval()
    twin = chainrule.compile(net)
    assert list(twin.state_dict()) == list(net.state_dict())
    x = batches((1, 8, 8), 1)[0][0]
    with chainrule.no_grad():
        for _ in range(5):
            assert chainrule.equal(twin(x), net(x))
    assert twin.forward.repeated == 2
    net[-1].bias.data += 1
    with chainrule.no_grad():
        assert chainrule.equal(twin(x), net(x))


def test_transformations() -> None:
    def f(x: Any) -> Any:
        return (x.sin() * x.roll(1) ** 2).sum()

    x = chainrule.arange(6.0, dtype=chainrule.float64) / 3
    rows = func.vmap(lambda t: t.exp().sum())
    for transformed, given in ((func.grad(f), x), (func.hessian(f), x), (rows, x.reshape(2, 3))):
        compiled = chainrule.compile(transformed, fullgraph=True)
        for i in range(5):
            assert chainrule.equal(compiled(given + i), transformed(given + i))
        assert compiled.repeated == 2


def test_threads_share_a_program() -> None:
    compiled = warmed(lambda x: (x @ x).sum(), chainrule.ones(8, 8))
    found: dict[int, float] = {}

    def work(i: int) -> None:
        for _ in range(30):
            found[i] = compiled(chainrule.full((8, 8), float(i))).item()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == {i: 512.0 * i * i for i in range(4)}


def test_printing_explaining_and_verifying() -> None:
    net = NETS["mlp"][0]()
    step = make_step(net, optim.Adam(net.parameters()))
    (x, y), *_ = batches((4,), 1)
    compiled = chainrule.compile(step)
    said = compiled.verify(x, y)
    assert said == "step: 8 instructions give the same bits as the function itself"
    text = str(compiled.program)
    assert "inputs: f32[5,4], i64[5]" in text
    assert "linear_relu_backward(" in text
    assert "13 calls of kernels were recorded" in compiled.program.explain()
    plan, lives = planned(compiled.program), lifetimes(compiled.program)
    assert plan.size < plan.unplanned
    taken = [
        (plan.offsets[s], plan.offsets[s] + compiled.program.slots[s].span(), lives[s])
        for s in lives
    ]
    for i, (a, b, (start, end)) in enumerate(taken):
        for c, d, (other, last) in taken[:i]:
            assert b <= c or d <= a or end < other or last < start


def test_stances_and_disabled_functions() -> None:
    compiled = warmed(lambda x: x * 2, chainrule.ones(2))
    before = compiled.repeated
    with compiler.set_stance("force_eager"):
        compiled(chainrule.ones(2))
    assert compiled.repeated == before
    inner = compiler.disable(lambda x: x + 1)
    outer = chainrule.compile(lambda x: inner(x) * 2)
    with pytest.warns(UserWarning, match=r"compiler\.disable"):
        call_often(outer, [(chainrule.ones(2),)] * 3)
    compiler.reset()
    assert not compiled.entries


@pytest.mark.parametrize("mode", [None, "reference"])
def test_verify_names_the_first_instruction_that_differs(mode: Any) -> None:
    """A planted fault: a program that computes cosines where the function has sines."""

    def f(x: Any) -> Any:
        y = x.sin()
        return (y * 2).sum()

    compiled = chainrule.compile(f, mode=mode)
    x = chainrule.arange(3.0)
    for _ in range(3):
        compiled(x)
    (step,) = [s for s in compiled.program.instructions if s.kernel == "sin"]
    step.function = backend.K.cos
    with pytest.raises(AssertionError, match=r"results of f differ; the first is that of .*sin\("):
        compiled.verify(x)
