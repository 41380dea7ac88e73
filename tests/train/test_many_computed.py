"""How networks that are trained at once are computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from train.many import classes

import chainrule
from chainrule import backend, models, nn, optim, regularize, train
from chainrule.data import KFold
from chainrule.random import Streams
from chainrule.train.batched.columns import Batches, Columns

from chainrule.train.batched.stacking import Stack
from chainrule.train.batched.steps import Steps
from chainrule.train.losses import WeightedLoss


F64 = chainrule.float64
native = pytest.mark.skipif(backend.current() != "native", reason="of the compiled kernels")


def folds(x: Any, y: Any, count: int = 4) -> tuple[list[Any], list[Any]]:
    splits = list(KFold(count, shuffle=True, random_state=0).split(x, y))
    return [(x[a], y[a]) for a, _ in splits], [(x[b], y[b]) for _, b in splits]


# --- how it is computed ---------------------------------------------------------------------------


def steps_of(networks: list[nn.Module], **options: Any) -> Steps:
    generators = [chainrule.Generator().manual_seed(i) for i in range(len(networks))]
    loss = WeightedLoss(options.pop("loss", "cross_entropy"))
    steps = Steps(Stack(networks), Streams(generators), loss, {}, False, None)
    steps.optimizer = optim.SGD(steps.stack.parameters, lr=0.0)
    steps.optimizer.check_finite = False
    return steps


@native
def test_a_layer_is_one_operation_for_all_networks() -> None:
    networks = [models.MLP(4, [5], 2) for _ in range(7)]
    steps = steps_of(networks)
    x, y = classes(10)
    x = x.float()
    (batch,) = Columns([(x, y, None)] * 7).batches(10)
    for _ in range(5):
        assert steps.take(batch, 0, 100, 1) == ([], False)
    (step,) = steps._known.values()
    assert step.repeated == steps.one_by_one == 2
    kernels = [i.kernel for i in step.program.instructions]
    assert [k for k in kernels if "linear" in k or "relu" in k or "entropy" in k] == [
        "linear",
        "relu",
        "linear",
        "cross_entropy",
        "cross_entropy_backward",
        "linear_backward",
        "relu_backward",
        "linear_backward",
    ]
    assert {i.way for i in step.program.instructions} == {"kept"}
    networks[3].zero_grad()
    alone = nn.functional.cross_entropy(networks[3](x), y)
    alone.backward()
    assert steps.rows[0][3] == pytest.approx(float(alone.detach()), rel=1e-6)
    gap = steps.stack.tensors["0.weight"].grad[3] - networks[3][0].weight.grad
    assert float(gap.abs().max()) < 1e-6


@native
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


@native
def test_what_a_recording_cannot_repeat_is_not_repeated() -> None:
    """A number that Python makes each time shows in the second recording."""
    count = iter(range(100))

    def loss(output: Any, target: Any) -> Any:
        return output.sum() * float(next(count))

    steps = steps_of([nn.Linear(2, 1) for _ in range(3)], loss=loss)
    x = chainrule.ones(4, 2)
    batch = Batches([x, x[:, :1], None], [True, True, True], 1, 4, fixed=True)
    before = []
    for _ in range(6):
        steps.take(batch, 0, 100, 1)
        before.append(steps.rows[0])
    assert "the time before" in steps.why
    assert steps.one_by_one == 0
    assert before[3] == pytest.approx([3 * value for value in before[1]])


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
