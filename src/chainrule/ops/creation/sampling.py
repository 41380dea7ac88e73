"""Sampling: random tensors.

Every number is drawn through :func:`draw`, so that there is one place where ``vmap`` decides
whether the samples of a batch get the same numbers or different ones.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Unpack

from chainrule import random
from chainrule.ops.core.synonyms import takes_out
from chainrule.backend import K, dtypes
from chainrule.ops.core.arguments import (
    placed_like,
    arranged,
    check_device,
    checked_size,
    float_type,
    made,
    number,
    placed,
    size_argument,
    tensor_argument,
    whole,
)
from chainrule.ops.core.promotion import broadcast_shapes, cast
from chainrule.ops.core.primitive import Nondifferentiable
from chainrule.random import (
    Generator,
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from chainrule.graph import Box
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Array, DType, Device, LikeMemory, Memory, Random, Real, Shape

__all__ = [
    "Generator",
    "bernoulli",
    "default_generator",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "multinomial",
    "normal",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "seed",
    "set_rng_state",
]
METHODS = ("bernoulli", "multinomial")
INPLACE: tuple[str, ...] = ()

random.Generator.wrap_state = staticmethod(of_array)


class Hooks(threading.local):
    """What ``vmap`` puts between a random function and its numbers, a hook per level and thread."""

    def __init__(self) -> None:
        self.stack: list[Callable[..., Tensor]] = []
        self.append, self.pop = self.stack.append, self.stack.pop

    def __len__(self) -> int:
        return len(self.stack)

    def __getitem__(self, i: int) -> Callable[..., Tensor]:
        return self.stack[i]


batch_draw = Hooks()


def draw(shape: tuple[int, ...], sampler: Callable[[tuple[int, ...]], Array]) -> Tensor:
    """A tensor of the shape from the array that ``sampler(shape)`` makes."""

    def sample(shape: tuple[int, ...]) -> Tensor:
        return made(sampler(shape))

    return batch_draw[-1](shape, sample) if batch_draw.stack else sample(shape)


def stream(op: str, generator: Random) -> Any:
    """The stream to draw from."""
    if generator is None:
        return default_generator.raw
    if not isinstance(generator, Generator):
        raise TypeError(
            f"{op}(): argument 'generator' must be Generator, not {type(generator).__name__}"
        )
    return generator.raw


def real_type(op: str, dtype: DType | None) -> Any:
    """The array type of continuous random numbers."""
    target = float_type(dtype)
    if K.kind_of(target) not in "fc":
        raise NotImplementedError(
            f"{op}: not implemented for {dtypes.from_array_dtype(target)}; random numbers of this "
            "kind need a floating-point dtype"
        )
    return target


def _finished(out: Tensor, requires_grad: bool) -> Tensor:
    return out.requires_grad_() if requires_grad else out


# --- new tensors ----------------------------------------------------------------------------------


@placed
@takes_out(typed=True)
def rand(
    *sizes: int | Shape,
    size: Shape | None = None,
    generator: Generator | None = None,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    **memory: Unpack[Memory],
) -> Tensor:
    """Random numbers, uniform in [0, 1).

    >>> import chainrule
    >>> chainrule.rand(2, 3).shape
    chainrule.Size([2, 3])
    """
    check_device("rand", device, memory)
    g, d = stream("rand", generator), real_type("rand", dtype)
    out = draw(size_argument("rand", sizes, size), lambda shape: K.random_uniform(g, shape, d))
    return _finished(out, requires_grad)


@placed
@takes_out(typed=True)
def randn(
    *sizes: int | Shape,
    size: Shape | None = None,
    generator: Generator | None = None,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    **memory: Unpack[Memory],
) -> Tensor:
    """Random numbers, normal with mean 0 and variance 1."""
    check_device("randn", device, memory)
    g, d = stream("randn", generator), real_type("randn", dtype)
    out = draw(size_argument("randn", sizes, size), lambda shape: K.random_normal(g, shape, d))
    return _finished(out, requires_grad)


@placed
@takes_out(typed=True)
def randint(
    *bounds: int | Shape,
    low: int | None = None,
    high: int | None = None,
    size: Shape | None = None,
    generator: Generator | None = None,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    **memory: Unpack[Memory],
) -> Tensor:
    """Random integers from ``low`` up to, without, ``high``: ``randint(high, size)`` starts at 0.

    ``randint(low=0, high, size)``, the arguments by position or by name.
    """
    check_device("randint", device, memory)
    low, high, size = _randint_arguments(list(bounds), low, high, size)
    shape = checked_size("randint", size)
    d = dtypes.int64 if dtype is None else dtypes.as_dtype(dtype)
    return _finished(draw_integers("randint", shape, low, high, d, generator), requires_grad)


def _randint_arguments(
    given: list[Any], low: int | None, high: int | None, size: Shape | None
) -> tuple[int, int, Shape]:
    if size is None and given:
        size = given.pop()
    if high is None and given:
        high = given.pop()
    if low is None and given:
        low = given.pop()
    if size is None or high is None or given:
        raise TypeError("randint(): expected (high, size) or (low, high, size), size being a tuple")
    return 0 if low is None else low, high, size


def draw_integers(
    op: str, shape: tuple[int, ...], low: int, high: int, d: dtypes.dtype, generator: Random
) -> Tensor:
    """Random integers from ``low`` up to, without, ``high``, if the type can hold them."""
    first, end = whole(op, "low", low), whole(op, "high", high)
    if first >= end:
        raise RuntimeError(
            f"{op}: expects 'low' to be less than 'high', but got low={first} >= high={end}"
        )
    smallest, largest = K.integer_limits(d.array_dtype)
    for name, value in (("low", first), ("high - 1", end - 1)):
        if not smallest <= value <= largest:
            raise RuntimeError(f"{op}: {name} = {value} is out of bounds for {d}")
    g = stream(op, generator)
    return draw(shape, lambda shape: K.random_integers(g, shape, d.array_dtype, first, end))


@placed
@takes_out(typed=True)
def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    dtype: DType = dtypes.int64,
    device: Device | None = None,
    requires_grad: bool = False,
    **memory: Unpack[Memory],
) -> Tensor:
    """The integers 0, ..., n - 1 in random order."""
    check_device("randperm", device, memory)
    shape, target = checked_size("randperm", (whole("randperm", "n", n),)), dtypes.as_dtype(dtype)
    if shape[0] - 1 > K.integer_limits(target.array_dtype)[1]:
        raise RuntimeError(f"randperm: {n - 1} cannot be converted to {target} without overflow")
    g = stream("randperm", generator)
    out = draw(shape, lambda shape: K.random_permutation(g, shape, target.array_dtype))
    return _finished(out, requires_grad)


@placed
def rand_like(
    input: Tensor,
    *,
    generator: Generator | None = None,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    **memory: Unpack[LikeMemory],
) -> Tensor:
    """Uniform numbers in [0, 1) in the shape and type of ``input``."""
    shape, d = tensor_argument("rand_like", input).shape, input.dtype if dtype is None else dtype
    check_device("rand_like", device, memory, has_format=True)
    out = rand(shape, generator=generator, dtype=d, requires_grad=requires_grad)
    return arranged("rand_like", out, input, memory)


@placed
def randn_like(
    input: Tensor,
    *,
    generator: Generator | None = None,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    **memory: Unpack[LikeMemory],
) -> Tensor:
    """Standard normal numbers in the shape and type of ``input``."""
    shape, d = tensor_argument("randn_like", input).shape, input.dtype if dtype is None else dtype
    check_device("randn_like", device, memory, has_format=True)
    out = randn(shape, generator=generator, dtype=d, requires_grad=requires_grad)
    return arranged("randn_like", out, input, memory)


@placed
def randint_like(
    input: Tensor,
    *bounds: int,
    low: int | None = None,
    high: int | None = None,
    generator: Generator | None = None,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    **memory: Unpack[LikeMemory],
) -> Tensor:
    """Random integers from ``low`` (0) to ``high - 1`` in the shape and type of ``input``."""
    shape = tuple(tensor_argument("randint_like", input).shape)
    check_device("randint_like", device, memory, has_format=True)
    out = randint(
        *bounds,
        low=low,
        high=high,
        size=shape,
        generator=generator,
        dtype=input.dtype if dtype is None else dtype,
        requires_grad=requires_grad,
    )
    return arranged("randint_like", out, input, memory)


# --- numbers that depend on tensors ---------------------------------------------------------------


@placed
@takes_out()
def normal(
    mean: Real | Tensor,
    std: Real | Tensor = 1.0,
    size: Shape | None = None,
    *,
    generator: Generator | None = None,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    **memory: Unpack[Memory],
) -> Tensor:
    """Normal numbers; mean and standard deviation are tensors, or numbers given with a size.

    No gradient flows to the parameters: write ``mean + std * randn_like(std)`` if one should.
    """
    check_device("normal", device, memory)
    if not (isinstance(mean, Tensor) or isinstance(std, Tensor)):
        if size is None:
            raise TypeError("normal(): with a number as mean and as std, a size must be given")
        g, d = stream("normal", generator), real_type("normal", dtype)
        center, spread = number("normal", "mean", mean), nonnegative("normal", std)
        shape = checked_size("normal", size)
        out = draw(shape, lambda shape: K.random_normal(g, shape, d, center, spread))
        return _finished(out, requires_grad)
    s = _detached_std(std) if isinstance(std, Tensor) else nonnegative("normal", std)
    m = mean.detach() if isinstance(mean, Tensor) else number("normal", "mean", mean)
    tensors = [x for x in (m, s) if isinstance(x, Tensor)]
    d = tensors[0].dtype
    target, g = real_type("normal", d), stream("normal", generator)
    shape = broadcast_shapes(*[x.shape for x in tensors], op="normal")
    noise = draw(tuple(shape), lambda shape: K.random_normal(g, shape, target))
    return cast(placed_like(tensors[0], noise) * s + m, d)


def nonnegative(op: str, std: Real | Tensor) -> Real:
    """A standard deviation as a number that is not negative."""
    value = number(op, "std", std)
    if not value >= 0:
        raise RuntimeError(f"{op}: expects std >= 0.0, but found std {value}")
    return value


def _detached_std(std: Tensor) -> Tensor:
    std = std.detach()
    if std.is_complex():
        raise RuntimeError("normal: expects standard deviation to be non-complex")
    if not isinstance(std.array, Box) and not K.all_in_range(std.array, 0.0, float("inf")):
        raise RuntimeError("normal: expects all elements of std >= 0.0")
    return std


@takes_out(exact=False)
def bernoulli(
    input: Tensor, p: float | None = None, *, generator: Generator | None = None
) -> Tensor:
    """1 with the probability that ``input`` holds (or with probability p), else 0.

    A choice has no derivative: no gradient flows to the probabilities.
    """
    input = tensor_argument("bernoulli", input).detach()
    if p is not None:
        drawn = bits("bernoulli", tuple(input.shape), p, input.dtype, generator)
        return placed_like(input, drawn)
    if not input.is_floating_point():
        raise NotImplementedError(
            f"bernoulli: not implemented for probabilities of {input.dtype}; use a floating dtype"
        )
    return bits("bernoulli", tuple(input.shape), input, input.dtype, generator)


def bits(
    op: str, shape: tuple[int, ...], p: float | Tensor, dtype: DType, generator: Random
) -> Tensor:
    """0 and 1 of the given type, 1 with probability p."""
    g = stream(op, generator)
    if isinstance(p, Tensor):
        p = p.detach()
        if not isinstance(p.array, Box) and not K.all_in_range(p.array, 0.0, 1.0):
            raise RuntimeError(f"{op}: expects all probabilities to be in [0, 1]")
        d = dtypes.float64 if p.dtype is dtypes.float64 else dtypes.float32
        uniform = draw(shape, lambda shape: K.random_uniform(g, shape, d.array_dtype))
        return cast(placed_like(p, uniform) < p, dtype)
    value = number(op, "p", p)
    if not 0 <= value <= 1:
        raise RuntimeError(f"{op}: expects p to be in [0, 1], but got p={value}")
    return cast(draw(shape, lambda shape: K.random_bits(g, shape, value)), dtype)


def mask(op: str, shape: tuple[int, ...], p: float, dtype: dtypes.dtype, value: float) -> Tensor:
    """``value`` with probability p and 0 else, of the given type."""
    g = stream(op, None)
    return draw(shape, lambda shape: K.random_mask(g, shape, dtype.array_dtype, p, value))


_with_replacement = Nondifferentiable("pick_with_replacement", "carry")
_without_replacement = Nondifferentiable("pick_without_replacement", "carry")


@takes_out()
def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Indices drawn with probabilities proportional to the weights in each row of ``input``."""
    weights = tensor_argument("multinomial", input).detach()
    count, n = whole("multinomial", "num_samples", num_samples), _categories(weights)
    if count <= 0:
        raise RuntimeError(f"multinomial: cannot sample num_samples <= 0 samples, got {count}")
    if not replacement and count > n:
        raise RuntimeError(
            f"multinomial: cannot sample {count} of {n} categories without replacement; pass "
            "replacement=True"
        )
    if not isinstance(weights.array, Box):
        _check_weights(weights)
    g, rows = stream("multinomial", generator), tuple(weights.shape[:-1])
    if replacement:
        uniform = draw((*rows, count), lambda shape: K.random_uniform(g, shape, "float64"))
        return _with_replacement(weights, placed_like(weights, uniform))
    clocks = draw((*rows, n), lambda shape: K.random_exponential(g, shape, "float64"))
    return _without_replacement(weights, placed_like(weights, clocks), count=count)


def _categories(weights: Tensor) -> int:
    if weights.ndim not in (1, 2):
        raise RuntimeError(
            f"multinomial: weights must have 1 or 2 dimensions, got shape {tuple(weights.shape)}"
        )
    if not weights.is_floating_point():
        raise RuntimeError(
            f"multinomial: only supports floating-point dtypes for input, got {weights.dtype}"
        )
    return weights.shape[-1]


def _check_weights(weights: Tensor) -> None:
    if not K.all_finite_weights(weights.array):
        raise RuntimeError("multinomial: the weights contain either inf, nan or an element < 0")
    if not K.all_rows_positive(weights.array):
        raise RuntimeError("multinomial: invalid distribution (sum of weights <= 0 in a row)")
