"""How networks that are trained at once are computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from train.many import classes

import chainrule
from chainrule import backend, models, nn, regularize, train
from chainrule.data import KFold
from chainrule.train.batched.program import Program
from chainrule.train.batched.stacking import Stack


F64 = chainrule.float64


def folds(x: Any, y: Any, count: int = 4) -> tuple[list[Any], list[Any]]:
    splits = list(KFold(count, shuffle=True, random_state=0).split(x, y))
    return [(x[a], y[a]) for a, _ in splits], [(x[b], y[b]) for _, b in splits]


# --- how it is computed ---------------------------------------------------------------------------


def test_a_layer_is_one_operation_for_all_networks() -> None:
    networks = [models.MLP(4, [5], 2) for _ in range(7)]
    stack = Stack(networks, steady=True)
    x, y = classes(10)

    def loss(model: nn.Module, x: Any, y: Any) -> Any:
        return [nn.functional.cross_entropy(model(x), y)], []

    generators = [chainrule.Generator().manual_seed(i) for i in range(7)]
    streams = chainrule.random.Streams(generators)
    for _ in range(3):
        (losses,), _ = stack.differentiate(loss, [x.float(), y], [True, True], streams)
    (plan,) = stack.plans.values()
    assert plan.checked
    names = [s.op.name for s in plan.program.steps]
    assert names == ["linear", "relu", "linear", "broadcast_to", "cross_entropy"]
    assert losses.shape == (7,)
    networks[3].zero_grad()
    alone = nn.functional.cross_entropy(networks[3](x.float()), y)
    alone.backward()
    assert float(losses[3]) == pytest.approx(float(alone.detach()), rel=1e-6)
    gap = stack.tensors["0.weight"].grad[3] - networks[3][0].weight.grad
    assert float(gap.abs().max()) < 1e-6


@pytest.mark.skipif(backend.current() != "native", reason="of the compiled kernels")
@pytest.mark.parametrize("rates", [[0.01] * 3, [0.01, 0.02, 0.03]], ids=["one rate", "rates"])
@pytest.mark.parametrize("batch_size", [16, 100])
def test_steps_are_not_left_to_numpy(rates: list[float], batch_size: int) -> None:
    """Also with batches in an order of their own, and a learning rate for each network."""
    families = backend._IMPLEMENTATIONS["numpy"]
    kernels = {name: getattr(family, name) for family in families for name in family.__all__}
    used = []

    def watched(name: str) -> Callable[..., Any]:
        def kernel(*args: Any, **options: Any) -> Any:
            used.append(name)
            return kernels[name](*args, **options)

        return kernel

    native = backend.native_module()
    native.bind_reference({name: watched(name) for name in kernels})
    try:
        train.fit_many(
            lambda: models.MLP(4, [5], 2, "tanh"),
            folds(*classes(51), 3)[0],
            "cross_entropy",
            "adam",
            lr=rates,
            epochs=5,
            batch_size=batch_size,
        )
    finally:
        native.bind_reference(kernels)
    step = {"linear", "linear_backward", "tanh", "tanh_backward", "cross_entropy_and_softmax"}
    assert not (step | {"cross_entropy_backward", "write_updates", "all_finite"}) & set(used)


def test_what_a_recording_cannot_repeat_is_not_repeated() -> None:
    """A constant that should have been an operation shows in the second call."""
    stack = Stack([nn.Linear(2, 1) for _ in range(3)], steady=True)
    count = iter(range(100))

    def loss(model: nn.Module, x: Any) -> Any:
        return [model(x).sum() * float(next(count))], []

    x = chainrule.ones(4, 2)
    streams = chainrule.random.Streams([chainrule.Generator() for _ in range(3)])
    before = [stack.differentiate(loss, [x], [True], streams)[0][0] for _ in range(4)]
    (plan,) = stack.plans.values()
    assert plan.failed
    assert bool((before[3] == 3 * before[1]).all())


def test_a_program_repeats_values_and_gradients() -> None:
    g = chainrule.Generator().manual_seed(0)
    w = chainrule.randn(3, 3, generator=g, dtype=F64).requires_grad_()

    def f(w: Any) -> Any:
        a, b = w.tanh().split(2)
        return (a @ w.mT).exp().sum() * w.detach().sum() + b.max()

    program = Program([w])
    with program.recording():
        out = f(w)
    program.finish([out])
    for _ in range(2):
        other = chainrule.randn(3, 3, generator=g, dtype=F64).requires_grad_()
        expected = f(other)
        expected.backward()
        assert float(program.forward([other])[0] - expected.detach()) == 0
        (gradient,) = program.backward([chainrule.ones((), dtype=F64)])
        assert float((gradient - other.grad).abs().max()) < 1e-14


# --- the operations behind it ---------------------------------------------------------------------


def layers(x: Any, w: Any, b: Any) -> Any:
    return nn.functional.linear(x, w, b)


@pytest.mark.parametrize("shared", [False, True])
def test_linear_layers_with_weights_of_their_own(shared: bool) -> None:
    """vmap over the weights, and its derivatives of first and second order in both modes."""
    g = chainrule.Generator().manual_seed(0)

    def normal(*shape: int) -> Any:
        return chainrule.randn(*shape, generator=g, dtype=F64)

    x, w, b = normal(*(() if shared else (3,)), 5, 4), normal(3, 2, 4), normal(3, 2)
    over = chainrule.func.vmap(layers, in_dims=(None if shared else 0, 0, 0))

    def loop(x: Any, w: Any, b: Any) -> Any:
        each = [x] * 3 if shared else list(x)
        return chainrule.stack([layers(each[i], w[i], b[i]) for i in range(3)])

    def total(f: Any) -> Any:
        return lambda *args: (f(*args) ** 3).sum()

    tangents = tuple(normal(*t.shape) for t in (x, w, b))
    for f in (over, loop):
        assert f(x, w, b).shape == (3, 5, 2)
    pairs = [(chainrule.func.grad(total(f), (0, 1, 2))(x, w, b)) for f in (over, loop)]
    pairs += [chainrule.func.jvp(f, (x, w, b), tangents) for f in (over, loop)]
    pairs += [chainrule.func.hvp(total(f), (x, w, b), tangents) for f in (over, loop)]
    for i in (0, 2, 4):
        for p, q in zip(flat(pairs[i]), flat(pairs[i + 1]), strict=True):
            assert float((p - q).abs().max()) < 1e-12


def flat(tree: Any) -> list[Any]:
    return [t for part in tree for t in flat(part)] if isinstance(tree, tuple) else [tree]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("shape", [(6,), (2, 3)])
def test_cross_entropy_of_many(reduction: str, shape: tuple[int, ...]) -> None:
    """One operation for all, also where targets are ignored, nested, and differentiated twice."""
    g = chainrule.Generator().manual_seed(1)
    x = chainrule.randn(2, 3, shape[0], 4, *shape[1:], generator=g, dtype=F64)
    y = chainrule.randint(4, (2, 3, *shape), generator=g)

    def loss(x: Any, y: Any) -> Any:
        return nn.functional.cross_entropy(x, y, ignore_index=2, reduction=reduction)

    def cube(x: Any, y: Any) -> Any:
        return (loss(x, y) ** 3).sum()

    vmap, grad = chainrule.func.vmap, chainrule.func.grad
    for f in (loss, grad(cube), grad(lambda x, y: (grad(cube)(x, y) ** 2).sum())):
        got = vmap(vmap(f))(x, y)
        for i in range(2):
            for j in range(3):
                expected = f(x[i, j], y[i, j])
                assert bool(got[i, j].isclose(expected, 1e-10, 1e-12).all())
    y[0, 1] = 2  # of one, all are ignored
    assert vmap(loss)(x[0], y[0])[1].isnan().all() if reduction == "mean" else True
    x.requires_grad_()
    vmap(vmap(loss))(x, y).nansum().backward()
    assert bool((x.grad[0, 1] == 0).all())
    assert bool((x.grad[1, 1] != 0).any())


@pytest.mark.parametrize(
    ("penalty", "message"),
    [
        (regularize.Normalized(regularize.L2(1.0), 0.1), "changes the gradient"),
        (regularize.SoftWeightSharing(0.1), "has parameters of its own"),
        (regularize.Tikhonov(0.1), "needs the inputs"),
    ],
    ids=["normalized", "soft-sharing", "tikhonov"],
)
def test_penalties_that_cannot_be_stacked_are_refused(penalty: Any, message: str) -> None:
    x = chainrule.randn(8, 2)
    with pytest.raises(ValueError, match=f"fit_many: the penalty .* {message}"):
        train.fit_many(
            lambda: nn.Linear(2, 1),
            (x, x[:, :1]),
            "mse",
            "sgd",
            seeds=range(2),
            epochs=1,
            penalties=[penalty],
        )
