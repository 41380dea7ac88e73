"""Randomness: seeds and states, distributions, and what random functions refuse."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats
from helpers import assert_close

import chainrule
from chainrule import Tensor, random
from chainrule.func import vmap

N = 20000

# --- seeds ----------------------------------------------------------------------------------------

DRAWS: dict[str, Callable[[Any], Tensor]] = {
    "rand": lambda g: chainrule.rand(3, generator=g),
    "rand double": lambda g: chainrule.rand(3, generator=g, dtype=chainrule.float64),
    "randn": lambda g: chainrule.randn(3, generator=g),
    "randint": lambda g: chainrule.randint(0, 1000, (3,), generator=g),
    "randperm": lambda g: chainrule.randperm(50, generator=g),
    "normal": lambda g: chainrule.normal(chainrule.zeros(3), 2.0, generator=g),
    "bernoulli": lambda g: chainrule.bernoulli(chainrule.full((50,), 0.5), generator=g),
    "multinomial": lambda g: chainrule.multinomial(chainrule.ones(50), 20, generator=g),
    "with replacement": lambda g: chainrule.multinomial(chainrule.ones(50), 20, True, generator=g),
    "poisson": lambda g: chainrule.poisson(chainrule.full((20,), 9.0), generator=g),
    "normal_": lambda g: chainrule.empty(3).normal_(generator=g),
    "uniform_": lambda g: chainrule.empty(3).uniform_(generator=g),
    "bernoulli_": lambda g: chainrule.empty(50).bernoulli_(generator=g),
    "random_": lambda g: chainrule.empty(3).random_(generator=g),
    "exponential_": lambda g: chainrule.empty(3).exponential_(generator=g),
    "log_normal_": lambda g: chainrule.empty(3).log_normal_(generator=g),
    "cauchy_": lambda g: chainrule.empty(3).cauchy_(generator=g),
    "geometric_": lambda g: chainrule.empty(50).geometric_(0.1, generator=g),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_seed_gives_the_same_numbers_again(name: str) -> None:
    draw = DRAWS[name]
    for g in (None, chainrule.Generator()):
        seed = chainrule.manual_seed if g is None else g.manual_seed
        seed(3)
        first, second = draw(g), draw(g)
        seed(3)
        assert draw(g).tolist() == first.tolist()
        assert first.tolist() != second.tolist()
        seed(4)
        assert draw(g).tolist() != first.tolist()


@pytest.mark.parametrize("name", DRAWS)
def test_a_generator_leaves_the_default_one_alone(name: str) -> None:
    chainrule.manual_seed(3)
    expected = chainrule.rand(3).tolist()
    chainrule.manual_seed(3)
    DRAWS[name](chainrule.Generator())
    assert chainrule.rand(3).tolist() == expected


def test_seeds_may_be_negative_and_large() -> None:
    assert chainrule.manual_seed(-1).initial_seed() == 2**64 - 1 == chainrule.initial_seed()
    assert chainrule.manual_seed(2**64 - 1) is chainrule.default_generator
    for seed in (2**64, -(2**63) - 1):
        with pytest.raises(ValueError, match="seed"):
            chainrule.manual_seed(seed)
    assert chainrule.seed() == chainrule.initial_seed()


def test_a_state_is_a_tensor_of_bytes_and_goes_on_exactly() -> None:
    g = chainrule.Generator().manual_seed(5)
    chainrule.rand(3, generator=g)  # float32 draws leave half a word behind
    state = g.get_state()
    assert isinstance(state, Tensor)
    assert state.dtype is chainrule.uint8
    expected = chainrule.rand(5, generator=g).tolist()
    g.set_state(state)
    others = [chainrule.Generator().set_state(state), pickle.loads(pickle.dumps(g))]
    for other in (*others, copy.deepcopy(g), g.clone_state()):
        assert other.initial_seed() == 5
        assert chainrule.rand(5, generator=other).tolist() == expected
    with pytest.raises(TypeError, match="uint8"):
        g.set_state(chainrule.zeros(56))
    with pytest.raises(RuntimeError, match="56 bytes"):
        chainrule.set_rng_state(chainrule.zeros(3, dtype=chainrule.uint8))


def test_the_state_of_the_default_generator() -> None:
    state = chainrule.get_rng_state()
    first = chainrule.randn(4).tolist()
    chainrule.set_rng_state(state)
    assert chainrule.randn(4).tolist() == first


def test_fork_rng() -> None:
    chainrule.manual_seed(0)
    expected = chainrule.rand(2).tolist()
    chainrule.manual_seed(0)
    with random.fork_rng():
        chainrule.rand(100)
        chainrule.manual_seed(9)
    assert chainrule.rand(2).tolist() == expected
    chainrule.manual_seed(0)
    with random.fork_rng(enabled=False):
        chainrule.rand(100)
    assert chainrule.rand(2).tolist() != expected


def test_a_generator_is_needed_where_one_is_asked_for() -> None:
    with pytest.raises(TypeError, match="Generator"):
        chainrule.rand(2, generator=3)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="cpu"):
        chainrule.Generator("cuda")


# --- distributions --------------------------------------------------------------------------------

CONTINUOUS: dict[str, tuple[Callable[[Any], Tensor], Any]] = {
    "rand": (lambda d: chainrule.rand(N, dtype=d), scipy.stats.uniform()),
    "randn": (lambda d: chainrule.randn(N, dtype=d), scipy.stats.norm()),
    "rand_like": (
        lambda d: chainrule.rand_like(chainrule.empty(N, dtype=d)),
        scipy.stats.uniform(),
    ),
    "randn_like": (lambda d: chainrule.randn_like(chainrule.empty(N, dtype=d)), scipy.stats.norm()),
    "normal": (lambda d: chainrule.normal(2.0, 3.0, (N,), dtype=d), scipy.stats.norm(2, 3)),
    "normal, mean": (
        lambda d: chainrule.normal(chainrule.full((N,), 2.0, dtype=d), 3.0),
        scipy.stats.norm(2, 3),
    ),
    "normal, std": (
        lambda d: chainrule.normal(2.0, chainrule.full((N,), 3.0, dtype=d)),
        scipy.stats.norm(2, 3),
    ),
    "normal_": (lambda d: chainrule.empty(N, dtype=d).normal_(-1, 0.5), scipy.stats.norm(-1, 0.5)),
    "uniform_": (lambda d: chainrule.empty(N, dtype=d).uniform_(-1, 3), scipy.stats.uniform(-1, 4)),
    "exponential_": (
        lambda d: chainrule.empty(N, dtype=d).exponential_(2),
        scipy.stats.expon(scale=0.5),
    ),
    "log_normal_": (
        lambda d: chainrule.empty(N, dtype=d).log_normal_(0.5, 0.7),
        scipy.stats.lognorm(0.7, scale=np.exp(0.5)),
    ),
    "cauchy_": (lambda d: chainrule.empty(N, dtype=d).cauchy_(1, 2), scipy.stats.cauchy(1, 2)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distributions(name: str, dtype: str) -> None:
    draw, distribution = CONTINUOUS[name]
    chainrule.manual_seed(1)
    x = draw(getattr(chainrule, dtype))
    assert x.dtype.name == dtype
    assert scipy.stats.kstest(x.numpy(), distribution.cdf).pvalue > 1e-3


def test_half_precision_stays_below_one() -> None:
    x = chainrule.rand(N, dtype=chainrule.float16)
    assert x.dtype is chainrule.float16
    assert x.numpy().min() >= 0
    assert x.numpy().max() < 1


def test_complex_numbers_have_unit_variance() -> None:
    x = chainrule.randn(N, dtype=chainrule.complex128).numpy()
    assert abs(np.mean(np.abs(x) ** 2) - 1) < 0.05
    assert abs(np.mean(x)) < 0.05


def assert_frequencies(counts: Any, probabilities: Any) -> None:
    expected = np.asarray(probabilities) / np.sum(probabilities) * np.sum(counts)
    assert scipy.stats.chisquare(counts, expected).pvalue > 1e-3


def test_integers() -> None:
    chainrule.manual_seed(0)
    for x in (
        chainrule.randint(3, 7, (N,)),
        chainrule.empty(N).random_(3, 7).long(),
        chainrule.randint_like(chainrule.empty(N, dtype=chainrule.int64), 3, 7),
    ):
        assert x.dtype is chainrule.int64
        assert_frequencies(np.bincount(x.numpy())[3:], np.ones(4))
    assert set(chainrule.randint(2, (100,)).tolist()) == {0, 1}
    assert chainrule.randint(high=3, size=(2,)).shape == (2,)
    assert chainrule.randint(0, 3, (2,), dtype=chainrule.float32).dtype is chainrule.float32
    assert chainrule.randint_like(chainrule.ones(2), 5).dtype is chainrule.float32


def test_random_fills_what_the_type_holds() -> None:
    assert set(chainrule.empty(100, dtype=chainrule.bool).random_().tolist()) == {False, True}
    x = chainrule.empty(N, dtype=chainrule.int8).random_().numpy()
    assert (x.min(), x.max()) == (0, 127)
    y = chainrule.empty(N).random_().numpy()
    assert y.max() > 2**23
    assert (y == np.floor(y)).all()


def test_permutations() -> None:
    chainrule.manual_seed(0)
    assert sorted(chainrule.randperm(20).tolist()) == list(range(20))
    assert chainrule.randperm(0).shape == (0,)
    first = [chainrule.randperm(4)[0].item() for _ in range(2000)]
    assert_frequencies(np.bincount(first), np.ones(4))


def test_bernoulli() -> None:
    chainrule.manual_seed(0)
    p = chainrule.tensor([0.0, 0.2, 1.0]).expand(N, 3)
    x = chainrule.bernoulli(p)
    assert x.dtype is chainrule.float32
    assert set(np.unique(x.numpy())) == {0.0, 1.0}
    assert_close(x.numpy().mean(axis=0), np.array([0, 0.2, 1], np.float32), atol=0.02)
    assert abs(chainrule.empty(N).bernoulli_(0.3).numpy().mean() - 0.3) < 0.02
    assert chainrule.zeros(5, dtype=chainrule.int64).bernoulli_(1.0).tolist() == [1] * 5
    assert chainrule.zeros(3).bernoulli_(chainrule.tensor([0.0, 1.0, 1.0])).tolist() == [0, 1, 1]
    assert chainrule.bernoulli(chainrule.zeros(4), 1.0).tolist() == [1] * 4


def test_multinomial_with_replacement() -> None:
    chainrule.manual_seed(0)
    weights = chainrule.tensor([[1.0, 0.0, 3.0], [0.0, 5.0, 0.0]])
    x = chainrule.multinomial(weights, N, replacement=True)
    assert x.dtype is chainrule.int64
    counts = np.bincount(x[0].numpy(), minlength=3)
    assert counts[1] == 0
    assert_frequencies(counts[[0, 2]], [1, 3])
    assert (x[1].numpy() == 1).all()


def test_multinomial_without_replacement() -> None:
    chainrule.manual_seed(0)
    weights = chainrule.tensor([0.0, 1.0, 2.0, 4.0]).expand(N, 4)
    x = chainrule.multinomial(weights, 3).numpy()
    assert (np.sort(x, axis=1) == [1, 2, 3]).all()
    assert_frequencies(np.bincount(x[:, 0])[1:], [1, 2, 4])
    second = x[x[:, 0] == 3, 1]  # given that 3 came first
    assert_frequencies(np.bincount(second)[1:], [1, 2])
    assert chainrule.multinomial(weights[0], 3).shape == (3,)


def test_counting_distributions() -> None:
    chainrule.manual_seed(0)
    poisson = chainrule.poisson(chainrule.full((N,), 3.0, dtype=chainrule.float64)).numpy()
    assert abs(poisson.mean() - 3) < 0.1
    assert abs(poisson.var() - 3) < 0.2
    geometric = chainrule.empty(N, dtype=chainrule.int64).geometric_(0.25).numpy()
    assert geometric.min() == 1
    assert abs(geometric.mean() - 4) < 0.15


# --- refusals -------------------------------------------------------------------------------------

x = chainrule.ones(2)
i = chainrule.ones(2, dtype=chainrule.int64)
REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: chainrule.rand(2, dtype=chainrule.int64), NotImplementedError, "floating"),
    (lambda: chainrule.rand_like(i), NotImplementedError, "floating"),
    (lambda: chainrule.rand(-1), RuntimeError, "negative dimension"),
    (lambda: chainrule.randint(3, 3, (2,)), RuntimeError, "low=3 >= high=3"),
    (lambda: chainrule.randint(0, 3, 2), TypeError, "size"),
    (lambda: chainrule.randint(3), TypeError, "randint"),
    (lambda: chainrule.randint(1.5, (2,)), TypeError, "'high' must be int"),
    (lambda: chainrule.randint(0, 257, (2,), dtype=chainrule.uint8), RuntimeError, "out of bounds"),
    (lambda: chainrule.randperm(-1), RuntimeError, "negative"),
    (lambda: chainrule.randperm(300, dtype=chainrule.uint8), RuntimeError, "overflow"),
    (lambda: chainrule.normal(0.0, -1.0, (2,)), RuntimeError, "std >= 0.0"),
    (lambda: chainrule.normal(x, -x), RuntimeError, "std >= 0.0"),
    (lambda: chainrule.normal(0.0, 1.0), TypeError, "size"),
    (lambda: chainrule.normal(x, chainrule.ones(3)), RuntimeError, "size of tensor a"),
    (lambda: chainrule.bernoulli(x * 1.1), RuntimeError, r"\[0, 1\]"),
    (lambda: chainrule.bernoulli(x * float("nan")), RuntimeError, r"\[0, 1\]"),
    (lambda: chainrule.bernoulli(x, 1.5), RuntimeError, "p=1.5"),
    (lambda: chainrule.bernoulli(i), NotImplementedError, "int64"),
    (lambda: chainrule.bernoulli(0.5), TypeError, "must be Tensor"),  # type: ignore[arg-type]
    (lambda: chainrule.multinomial(x, 3), RuntimeError, "without replacement"),
    (lambda: chainrule.multinomial(-x, 1), RuntimeError, "element < 0"),
    (lambda: chainrule.multinomial(x * float("inf"), 1), RuntimeError, "inf"),
    (lambda: chainrule.multinomial(x * 0, 1), RuntimeError, "sum of weights <= 0"),
    (lambda: chainrule.multinomial(i, 1), RuntimeError, "floating"),
    (lambda: chainrule.multinomial(x, 0), RuntimeError, "num_samples <= 0"),
    (lambda: chainrule.multinomial(chainrule.ones(2, 2, 2), 1), RuntimeError, "1 or 2 dimensions"),
    (lambda: chainrule.poisson(-x), RuntimeError, "non-negative"),
    (lambda: chainrule.ones(2).normal_(0, -1), RuntimeError, "std >= 0.0"),
    (lambda: chainrule.ones(2).uniform_(2, 1), RuntimeError, "from=2 > to=1"),
    (lambda: i.clone().uniform_(), NotImplementedError, "int64"),
    (lambda: chainrule.ones(2).bernoulli_(1.5), RuntimeError, "p=1.5"),
    (lambda: chainrule.ones(2).exponential_(0), RuntimeError, "lambd > 0.0"),
    (lambda: i.clone().exponential_(), RuntimeError, "floating"),
    (lambda: chainrule.ones(2).log_normal_(1, 0), RuntimeError, "std > 0.0"),
    (lambda: chainrule.ones(2).cauchy_(0, -1), RuntimeError, "sigma > 0.0"),
    (lambda: chainrule.ones(2).geometric_(1), RuntimeError, r"\(0, 1\)"),
    (lambda: chainrule.ones(2).random_(3, 1), RuntimeError, "low=3 >= high=1"),
    (lambda: chainrule.ones(2, requires_grad=True).normal_(), RuntimeError, "leaf"),
    (lambda: chainrule.ones(1).expand(2).normal_(), RuntimeError, "single memory location"),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refusals(number: int) -> None:
    call, error, message = REFUSED[number]
    with pytest.raises(error, match=message):
        call()


# --- inside vmap ----------------------------------------------------------------------------------


def test_vmap_refuses_random_functions_unless_told() -> None:
    with pytest.raises(RuntimeError, match="randomness"):
        vmap(lambda v: v + chainrule.rand(2))(chainrule.zeros(3, 2))


IN_VMAP: dict[str, Callable[[Tensor], Tensor]] = {
    "rand": lambda v: v + chainrule.rand(6),
    "randn_like": lambda v: v + chainrule.randn_like(v),
    "normal": lambda v: chainrule.normal(v, 1.0),
    "bernoulli": lambda v: chainrule.bernoulli(v + 0.5),
    "randperm": lambda v: v + chainrule.randperm(6),
    "multinomial": lambda v: chainrule.multinomial(v + 1, 5),
    "with replacement": lambda v: chainrule.multinomial(v + 1, 9, replacement=True),
}


@pytest.mark.parametrize("name", IN_VMAP)
def test_vmap_draws_the_same_or_different_numbers(name: str) -> None:
    chainrule.manual_seed(0)
    batch = chainrule.zeros(4, 6)
    different = vmap(IN_VMAP[name], randomness="different")(batch).tolist()
    assert len({tuple(row) for row in different}) == 4
    same = vmap(IN_VMAP[name], randomness="same")(batch).tolist()
    assert len({tuple(row) for row in same}) == 1
