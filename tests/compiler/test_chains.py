"""Elementwise calls that are computed together: bits, order, memory, what they say."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

import chainrule
from chainrule import backend, nn, optim
from chainrule.backend import K
from chainrule.compiler.chains import _dependencies, chains_of, in_order, size_of
from chainrule.compiler.compiled import Compiled
from chainrule.compiler.memory import lifetimes

native = pytest.mark.skipif(bool(backend.why_not_native), reason="there are no compiled kernels")
SHAPES = [(), (1,), (3,), (5, 7), (4, 1), (2, 3, 50), (33, 64), (3000,)]
ONE = [chainrule.tanh, chainrule.sigmoid, chainrule.exp, chainrule.relu, chainrule.neg]
TWO: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a * b,
    lambda a, b: a / (b * b + 1),
]


def _of_shape(shape: tuple[int, ...], r: random.Random) -> tuple[int, ...]:
    """A shape that is repeated to fill another one."""
    kind = r.choice(["all", "number", "row", "column", "one", "middle"])
    if kind == "all" or not shape:
        return shape
    if kind == "row":
        return shape[-1:]
    if kind == "column":
        return (shape[0], *[1] * (len(shape) - 1))
    if kind == "middle" and len(shape) == 3:
        return (shape[1], 1)
    return () if kind == "number" else (1,) * len(shape)


def _bits(t: Any) -> bytes:
    return bytes(t.detach().numpy().tobytes())


def _random_step(seed: int, dtype: Any) -> tuple[Callable[..., Any], list[Any]]:
    """Some fifteen operations of random kinds on values of one shape, and their gradient."""
    r = random.Random(seed)
    shape = r.choice(SHAPES)
    chainrule.manual_seed(seed)
    leaves = [chainrule.randn(_of_shape(shape, r), dtype=dtype) for _ in range(4)]
    leaves = [leaf.requires_grad_() for leaf in (*leaves, chainrule.randn(shape, dtype=dtype))]
    plan = [
        (r.random() < 0.4, r.choice(ONE), r.choice(TWO), r.random(), r.random(), r.uniform(-2, 2))
        for _ in range(r.randint(2, 15))
    ]
    optimizer = optim.SGD(leaves, lr=0.01)

    def step() -> Any:
        optimizer.zero_grad()
        values: list[Any] = list(leaves)
        for is_one, one, two, i, j, number in plan:
            a, b = values[int(i * len(values))], values[int(j * len(values))]
            values.append(chainrule.tanh(one(a) if is_one else two(a, b) * number))
        loss = (values[-1] * values[-2]).sum() + (values[-1] - leaves[-1]).mean()
        loss.backward()
        optimizer.step()
        return loss

    return step, leaves


@pytest.mark.parametrize("dtype", [chainrule.float32, chainrule.float64], ids=["f32", "f64"])
@pytest.mark.parametrize("seed", range(40))
def test_random_steps_have_the_same_bits(seed: int, dtype: Any) -> None:
    plain, leaves = _random_step(seed, dtype)
    repeated, others = _random_step(seed, dtype)
    compiled = chainrule.compile(repeated, fullgraph=True)
    for _ in range(7):
        assert _bits(plain()) == _bits(compiled())
    for a, b in zip(leaves, others, strict=True):
        assert _bits(a) == _bits(b)
        assert (a.grad is None) == (b.grad is None)
        assert a.grad is None or _bits(a.grad) == _bits(b.grad)


@native
def test_random_steps_are_chained() -> None:
    """The test above is one of chains, and of values that exist only in them."""
    chained = registers = 0
    for seed in range(40):
        step, _ = _random_step(seed, chainrule.float32)
        compiled = chainrule.compile(step, fullgraph=True)
        for _ in range(5):
            compiled()
        chained += sum([s.chain > 0 for s in compiled.program.instructions])
        registers += compiled.program.in_registers
    assert chained > 500
    assert registers > 300


def surface() -> Compiled:
    """Rosenbrock's valley."""
    x, y = [chainrule.tensor(v, requires_grad=True) for v in (-1.0, 1.5)]
    optimizer = optim.SGD([x, y], lr=1e-4)

    def step() -> Any:
        optimizer.zero_grad()
        loss = (1 - x) ** 2 + 100 * (y - x * x) ** 2
        loss.backward()
        optimizer.step()
        return loss

    compiled: Compiled = chainrule.compile(step, fullgraph=True)
    for _ in range(5):
        compiled()
    return compiled


@native
def test_a_surface_is_one_chain_of_numbers() -> None:
    program = surface().program
    assert [s.kernel for s in program.instructions if not s.chain] == [
        "all_finite",
        "write_updates",
    ]
    assert {s.chain for s in program.instructions} == {0, 1}
    assert "computed together, block by block, in 1 chain; 13 values" in program.explain()
    assert "# chain 1" in str(program)
    assert {s.kernel for s in program.instructions} >= {"square", "mul"}  # no power of 2


@native
def test_a_sum_between_two_passes_does_not_part_them() -> None:
    """The loss and its gradient are one chain; the mean comes after it."""
    w = chainrule.randn(40, 100).requires_grad_()

    @chainrule.compile
    def gradient() -> Any:
        w.grad = None
        ((w.tanh() * w) ** 2).mean().backward()
        return w.grad.detach()

    for _ in range(5):
        gradient()
    program = gradient.program
    assert {s.chain for s in program.instructions} == {1}
    assert program.unused == 2  # nobody asks for the mean
    assert program.in_registers == len(program.instructions) - 1


@native
def test_values_of_chains_have_no_memory() -> None:
    def net(x: Any) -> Any:
        y = x
        for _ in range(10):
            y = chainrule.tanh(y * 1.5 + x)
        return y

    x = chainrule.randn(100, 1000)
    compiled = chainrule.compile(net)
    for _ in range(5):
        y = compiled(x)
    assert y.numpy().tobytes() == net(x).numpy().tobytes()
    (tape,) = [e.runner for e in compiled.entries.values()]
    assert tape.plan.size <= 3 * x.numpy().nbytes  # the argument, the result, what sets them apart
    assert compiled.program.in_registers == 29


@native
def test_what_is_computed_twice_is_computed_once() -> None:
    def f(x: Any) -> Any:
        return (x.tanh() * x).sum() + (x.tanh() * x).mean()

    compiled = chainrule.compile(f)
    x = chainrule.randn(50)
    for _ in range(5):
        y = compiled(x)
    assert y.item() == f(x).item()
    assert compiled.program.reused == 2
    assert "2 compute what another one has computed" in compiled.program.explain()


def test_values_that_are_changed_are_not_shared() -> None:
    """Two equal products, of which one is changed in place afterwards."""

    def f(x: Any) -> Any:
        a, b = x * 2, x * 2
        a += 1
        return a + b * 3

    compiled = chainrule.compile(f)
    for i in range(6):
        x = chainrule.full((5,), float(i))
        assert compiled(x).tolist() == f(x).tolist()


def test_values_that_state_had_before_and_after_a_change() -> None:
    count = chainrule.zeros(3)

    def f(x: Any) -> Any:
        before = count * 2 + x
        count.add_(1)
        return before, count * 2 + x

    compiled = chainrule.compile(f)
    for i in range(6):
        before, after = compiled(chainrule.full((3,), 0.5))
        assert before.tolist() == [2 * i + 0.5] * 3
        assert after.tolist() == [2 * i + 2.5] * 3


def test_gradients_of_two_leaves_are_not_one_array() -> None:
    a, b = [chainrule.ones(3, requires_grad=True) for _ in range(2)]

    @chainrule.compile
    def f() -> Any:
        a.grad = b.grad = None
        loss = (a * 2 + b * 2).sum()
        loss.backward()
        return loss

    for _ in range(6):
        f()
    assert a.grad is not None
    assert b.grad is not None
    a.grad.mul_(5)
    assert b.grad.tolist() == [2.0] * 3


@native
def test_draws_writes_and_checks_keep_their_order() -> None:
    net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Tanh(), nn.Dropout(0.2))
    bn = nn.BatchNorm1d(8)
    optimizer = optim.Adam([*net.parameters(), *bn.parameters()], lr=0.01)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = ((bn(net(x)) * 2 - 1) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    compiled = chainrule.compile(step, fullgraph=True)
    x = chainrule.randn(6, 4)
    for _ in range(5):
        compiled(x)
    program = compiled.program
    order = [s for s in program.instructions if s.effect != "pure"]
    effects = [s.kernel for s in order]
    assert effects.index("all_finite") < effects.index("write_updates")
    assert effects.count("random_mask") == 2
    assert effects[-1] == "write_updates"
    again = in_order(program)
    assert [s for s in again if s.effect != "pure"] == order


@native
@pytest.mark.parametrize("seed", range(12))
def test_nothing_comes_before_what_it_needs(seed: int) -> None:
    step, _ = _random_step(seed, chainrule.float32)
    compiled = chainrule.compile(step, fullgraph=True)
    for _ in range(5):
        compiled()
    program = compiled.program
    made = {s for i in program.instructions for s in map(program.root, i.makes())}
    seen: set[int] = set()
    for i in program.instructions:
        needed = {program.root(s) for s in i.reads()} & made
        assert needed <= seen
        seen.update(map(program.root, i.makes()))
    waiting, followers = _dependencies(program)
    assert sum(waiting) == sum(map(len, followers))


@native
@pytest.mark.parametrize("seed", range(12))
def test_values_around_a_chain_live_as_long_as_it(seed: int) -> None:
    step, _ = _random_step(seed, chainrule.float32)
    compiled = chainrule.compile(step, fullgraph=True)
    for _ in range(5):
        compiled()
    program = compiled.program
    chains = chains_of(program)
    lives = lifetimes(program, chains)
    for chain in chains:
        sizes = {size_of(program, s) for s in program.instructions[chain.begin : chain.end]}
        assert len(sizes) == 1
        assert None not in sizes
        assert not {*chain.temporaries} & {*lives}
        for s in program.instructions[chain.begin : chain.end]:
            for root in {program.root(x) for x in (*s.reads(), *s.makes())} & {*lives}:
                assert lives[root][1] >= chain.end - 1
    inside = {i for c in chains for i in range(c.begin, c.end)}
    for i, s in enumerate(program.instructions):
        if i not in inside:
            gone = {t for c in chains for t in c.temporaries}
            assert gone.isdisjoint({program.root(x) for x in s.reads()})


@native
def test_arrays_that_are_no_chain_stay_steps() -> None:
    """What is read in another order than element by element cannot be joined."""
    tape = backend.native_module().Tape()  # type: ignore[union-attr]
    a, out = K.zeros((4,), "float32"), K.zeros((4,), "float32")
    tape.add(K.tanh, (a,), {}, (out,))
    tape.add(K.tanh, (out,), {}, (K.zeros((4,), "float32"),))
    tape.add(K.tanh, (K.zeros((3,), "float32"),), {}, (K.zeros((3,), "float32"),))
    assert not tape.join(0, (out,))
    assert len(tape) == 3
    assert not tape.join(0, ())
    with pytest.raises(IndexError, match="not so many steps"):
        tape.join(3, ())
    with pytest.raises(TypeError, match="arrays in one piece"):
        tape.join(0, (K.zeros((4, 4), "float32").T[1:],))
    with pytest.raises(TypeError, match="arrays in one piece"):
        tape.join(0, (None,))


@native
def test_chains_of_other_instruction_sets_and_threads() -> None:
    """Blocks are the same for any number of threads."""
    before = chainrule.get_num_threads()

    def f(x: Any) -> Any:
        return ((x * 3 - 1).tanh() * x).exp() + x

    x = chainrule.randn(300_001)
    expected = f(x).numpy().tobytes()
    compiled = chainrule.compile(f)
    try:
        for threads in (1, 2, 3, 1, 2, 4):
            chainrule.set_num_threads(threads)
            assert compiled(x).numpy().tobytes() == expected
    finally:
        chainrule.set_num_threads(before)
    assert {s.chain for s in compiled.program.instructions} == {1}
