"""Reading by any subscript that NumPy takes, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import assert_close, weight
from hypothesis import given
from hypothesis import strategies as st

import chainrule
from chainrule.autograd import gradcheck, gradgradcheck
from chainrule.func import grad, vmap
from chainrule.tensor import Tensor, of_array


SHAPES = st.lists(st.integers(0, 4), max_size=4).map(tuple)


# Shapes of index arrays: any two of them broadcast together.
INDEX_SHAPES = [(), (1,), (3,), (2, 1), (2, 3)]


def tensor(array: Any, requires_grad: bool = False) -> Tensor:
    return of_array(np.array(array)).requires_grad_(requires_grad)


def numbers(*shape: int) -> np.ndarray:
    """Different numbers in a fixed order."""
    return np.array(weight(shape) * 10)


# --- any subscript that NumPy takes ---------------------------------------------------------------


@st.composite
def index_arrays(draw: Any, size: int) -> Any:
    shape = draw(st.sampled_from(INDEX_SHAPES))
    count = int(np.prod(shape))
    limit = max(size, 1)
    flat = draw(st.lists(st.integers(-limit, limit - 1), min_size=count, max_size=count))
    return np.array(flat, dtype=draw(st.sampled_from(["int64", "int32"]))).reshape(shape)


@st.composite
def items_for(draw: Any, sizes: tuple[int, ...]) -> list[Any]:
    """Items that take exactly these dimensions."""
    items: list[Any] = []
    while sizes or draw(st.integers(0, 5)) == 5:
        kinds = ["int", "slice", "slice", "array", "array", "mask"] if sizes else []
        kind = draw(st.sampled_from([*kinds, "none", "flag"]))
        taken = 1
        if kind == "none":
            items.append(None)
            taken = 0
        elif kind == "flag":
            items.append(draw(st.booleans()))
            taken = 0
        elif kind == "mask":
            taken = draw(st.integers(1, min(2, len(sizes))))
            count = int(np.prod(sizes[:taken]))
            flat = draw(st.lists(st.booleans(), min_size=count, max_size=count))
            items.append(np.array(flat, dtype=bool).reshape(sizes[:taken]))
        elif kind == "int":
            limit = max(sizes[0], 1)
            items.append(draw(st.integers(-limit, limit - 1)))
        else:
            items.append(draw(st.slices(sizes[0]) if kind == "slice" else index_arrays(sizes[0])))
        sizes = sizes[taken:]
    return items


@st.composite
def subscripts(draw: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """A tuple that stands between brackets, usually one that NumPy takes for this shape."""
    i = draw(st.integers(0, len(shape)))
    left = draw(items_for(shape[:i]))
    if draw(st.booleans()):
        return tuple(left)
    j = draw(st.integers(i, len(shape)))
    return (*left, ..., *draw(items_for(shape[j:])))


@st.composite
def cases(draw: Any) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    shape = draw(SHAPES)
    return shape, draw(subscripts(shape))


def as_tensors(index: Any) -> Any:
    """Index arrays as tensors, as lists (which keep no empty shape) and as they are, in turn."""
    forms: list[Callable[[np.ndarray], Any]] = [
        of_array,
        lambda a: a.tolist() if a.size else a,
        lambda a: a,
    ]
    return tuple(
        forms[i % 3](item) if isinstance(item, np.ndarray) else item for i, item in enumerate(index)
    )


def numpys(x: np.ndarray, index: Any) -> Any:
    """What NumPy reads, or the type of what it raises."""
    try:
        return np.asarray(x[index])
    except (IndexError, ValueError) as error:
        return type(error)


@given(cases())
def test_reading_is_numpys(example: Any) -> None:
    shape, index = example
    x = numbers(*shape)
    expected = numpys(x, index)
    if isinstance(expected, type):
        with pytest.raises(expected):
            tensor(x)[as_tensors(index)]
        return
    variable = tensor(x, requires_grad=True)
    out = variable[as_tensors(index)]
    assert_close(out, expected, rtol=0, atol=0)
    if not any(isinstance(i, (bool, np.ndarray)) for i in index) and out.numel():
        assert np.shares_memory(out.detach().numpy(), variable.detach().numpy())
    g = weight(expected.shape)
    (gradient,) = chainrule.autograd.grad(out, variable, tensor(g))
    accumulated = np.zeros(shape)
    np.add.at(accumulated, index, g)
    assert_close(gradient, accumulated)


@given(cases(), st.data())
def test_assigning_is_numpys(example: Any, data: Any) -> None:
    shape, index = example
    x = numbers(*shape)
    read = numpys(x, index)
    if isinstance(read, type):
        with pytest.raises(read):
            tensor(x)[as_tensors(index)] = 1.0
        return
    # A value that is broadcast: some of its dimensions are 1, or missing in front.
    sizes = [n if data.draw(st.booleans()) else 1 for n in read.shape]
    value = -numbers(*sizes[data.draw(st.integers(0, len(sizes))) :])
    expected = x.copy()
    expected[index] = value
    with chainrule.no_grad():
        plain = tensor(x)
        plain[as_tensors(index)] = tensor(value)
        assert_close(plain, expected, rtol=0, atol=0)
    a, b = tensor(x, requires_grad=True), tensor(value, requires_grad=True)
    out = a * 1
    out[as_tensors(index)] = b
    assert_close(out, expected, rtol=0, atol=0)
    g = np.array(weight(shape))
    to_x, to_value = chainrule.autograd.grad(out, [a, b], tensor(g), materialize_grads=True)
    kept = g.copy()
    kept[index] = 0
    assert_close(to_x, kept)
    assert_close(to_value, sum_to(g[index], value.shape))


def sum_to(g: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    g = g.sum(axis=tuple(range(g.ndim - len(shape))))
    axes = tuple(i for i, n in enumerate(shape) if n == 1)
    return g.sum(axis=axes, keepdims=True)


@given(cases())
def test_reading_a_batch_is_a_loop(example: Any) -> None:
    """Mapped over the tensor, and over the tensor and every index array."""
    shape, index = example
    x = numbers(3, *shape)
    expected = numpys(x[0], index)
    dynamic = any(isinstance(i, (bool, np.ndarray)) and np.asarray(i).dtype == bool for i in index)
    if isinstance(expected, type) or dynamic:
        return
    loop = np.stack([x[i][index] for i in range(3)])
    assert_close(vmap(lambda t: t[as_tensors(index)])(tensor(x)), loop, rtol=0, atol=0)
    places = [k for k, item in enumerate(index) if isinstance(item, np.ndarray)]
    if not places:
        return
    arrays = [np.stack([np.roll(index[k], s) for s in range(3)]) for k in places]

    def subscript(given: Any) -> tuple[Any, ...]:
        items = list(index)
        for k, item in zip(places, given, strict=True):
            items[k] = item
        return tuple(items)

    every = [subscript([a[s] for a in arrays]) for s in range(3)]
    shared = np.stack([x[0][i] for i in every])
    own = np.stack([x[s][i] for s, i in enumerate(every)])
    tensors = [tensor(a) for a in arrays]
    both = vmap(lambda t, *given: t[subscript(given)])
    assert_close(both(tensor(x), *tensors), own, rtol=0, atol=0)
    fixed = tensor(x[0])
    assert_close(vmap(lambda *given: fixed[subscript(given)])(*tensors), shared, rtol=0, atol=0)

    g = weight(own.shape)
    (gradient,) = grad(lambda t: (both(t, *tensors) * tensor(g)).sum(), (0,))(tensor(x))
    accumulated = np.zeros(x.shape)
    for s, i in enumerate(every):
        np.add.at(accumulated[s], i, g[s])
    assert_close(gradient, accumulated)

    def written(t: Tensor, *given: Tensor) -> Tensor:
        y = t * 1
        y[subscript(given)] = 0.5
        return y

    expected = x.copy()
    for s, i in enumerate(every):
        expected[s][i] = 0.5
    assert_close(vmap(written)(tensor(x), *tensors), expected, rtol=0, atol=0)


# --- what is refused ------------------------------------------------------------------------------


X = (2, 3, 4)


@pytest.mark.parametrize(
    ("shape", "index", "error", "message"),
    [
        (X, 5, IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
        (X, (0, -4), IndexError, "index -4 is out of bounds for dimension 1 with size 3"),
        (X, [0, 7], IndexError, "index 7 is out of bounds for dimension 0 with size 2"),
        (X, (slice(None), [-4]), IndexError, "index -4 is out of bounds for dimension 1"),
        (X, (0, 0, 0, 0), IndexError, "too many indices for tensor of dimension 3: got 4"),
        (X, (..., ...), IndexError, "single ellipsis"),
        (X, 1.5, IndexError, "only integers, slices .*got float"),
        (X, [1.5], IndexError, "must be long, int, byte or bool tensors"),
        (X, np.zeros(2), IndexError, "must be long, int, byte or bool tensors"),
        (X, "a", TypeError, "only integers, slices .*got str"),
        (X, [True, False, True], IndexError, r"mask \(3,\) does not match .* \(2, 3, 4\)"),
        (X, ([0, 1], [0, 1, 2]), IndexError, r"broadcast together with shapes \[2\], \[3\]"),
        (X, [[0], [0, 1]], IndexError, "must be rectangular"),
        (X, slice(None, None, 0), ValueError, "step cannot be zero"),
        ((), 0, IndexError, "too many indices for tensor of dimension 0"),
        ((), [0], IndexError, "too many indices for tensor of dimension 0"),
        ((0, 2), [0], IndexError, "index 0 is out of bounds for dimension 0 with size 0"),
    ],
)
def test_subscripts_that_are_refused(
    shape: tuple[int, ...], index: Any, error: type[Exception], message: str
) -> None:
    x = tensor(numbers(*shape))
    with pytest.raises(error, match=message):
        x[index]
    with pytest.raises(error, match=message):
        x[index] = 1.0
    assert_close(x, numbers(*shape), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("index", "value", "error", "message"),
    [
        (0, chainrule.ones(2, 2), RuntimeError, r"\(2, 2\) cannot be broadcast .* \(3, 4\)"),
        ([0, 1], chainrule.ones(2, 2), RuntimeError, r"cannot be broadcast .* \(2, 3, 4\)"),
        (0, [1.0, 2.0], TypeError, "can't assign a list"),
        (0, "a", TypeError, "can't assign a str"),
        (0, 1j, RuntimeError, "complex value cannot be assigned"),
    ],
)
def test_values_that_are_refused(
    index: Any, value: Any, error: type[Exception], message: str
) -> None:
    x = chainrule.zeros(2, 3, 4)
    with pytest.raises(error, match=message):
        x[index] = value


def places(*values: Any) -> Tensor:
    return tensor(np.array(values, dtype=np.int64))


Y = numbers(3, 3)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda y: y.select(0, 3), IndexError, "index 3 out of range .* at dimension 0"),
        (lambda y: y[0, 0].select(0, 0), IndexError, "without dimensions"),
        (lambda y: y.narrow(0, 2, 2), RuntimeError, r"start \(2\) \+ length \(2\) exceeds"),
        (lambda y: y.narrow(0, -4, 1), IndexError, "start out of range"),
        (lambda y: y.narrow(0, 0, -1), RuntimeError, "length must be non-negative"),
        (lambda y: y[0, 0].narrow(0, 0, 1), RuntimeError, "without dimensions"),
        (lambda y: y.index_select(0, places(5)), IndexError, "index_select: index 5 is out of"),
        (lambda y: y.index_select(0, places(-1)), IndexError, "index_select: index -1 is out of"),
        (lambda y: y.index_select(0, places([0], [1])), IndexError, "supposed to be a vector"),
        (lambda y: y.index_select(0, y[0]), RuntimeError, "expected dtype int32 or int64"),
        (lambda y: y.index_select(2, places(0)), IndexError, "dimension out of range"),
        (lambda y: y[0, 0].index_select(0, places(0, 0)), RuntimeError, "only 1 value, got 2"),
        (lambda y: y.gather(0, places([5])), RuntimeError, "gather: index 5 is out of bounds"),
        (lambda y: y.gather(0, places([-1])), RuntimeError, "gather: index -1 is out of bounds"),
        (lambda y: y.gather(0, places(1)), RuntimeError, "same number of dimensions"),
        (lambda y: y.gather(0, places([0] * 4)), RuntimeError, "does not match at dimension 1"),
        (lambda y: y.gather(0, y), RuntimeError, "gather: expected dtype int32 or int64"),
        (lambda y: y.take_along_dim(places(0), 1), RuntimeError, "same number of dimensions"),
        (lambda y: y.take_along_dim(places([3]), 1), RuntimeError, "index 3 is out of bounds"),
        (lambda y: y.take(places(9)), IndexError, "take: index 9 is out of bounds"),
        (lambda y: y.scatter(0, places([5]), 1.0), RuntimeError, "scatter: index 5 is out of"),
        (lambda y: y.scatter(0, places([0]), y[:1, :0]), RuntimeError, "no larger than src"),
        (lambda y: y.scatter(0, places([0]), y.float()), RuntimeError, "self.dtype to be equal"),
        (lambda y: y.scatter(0, places([0])), TypeError, "either src .* or value"),
        (lambda y: y.scatter(0, places([0]), y, reduce="mean"), RuntimeError, "add or multiply"),
        (lambda y: y.scatter_reduce(0, places([0]), y, "max"), RuntimeError, "amax or amin, got"),
        (lambda y: y.index_add(0, places(0, 1), y), RuntimeError, r"number of indices \(2\)"),
        (lambda y: y.index_add(0, places(0), y[:1, :2]), RuntimeError, "shape must match"),
        (lambda y: y.index_add(0, places(3), y[:1]), RuntimeError, "index 3 is out of bounds"),
        (lambda y: y.index_copy(0, places(0, 1), y), IndexError, r"number of indices \(2\)"),
        (lambda y: y.index_copy(0, places(0), y[:1].float()), RuntimeError, "the same dtype"),
        (lambda y: y.index_fill(0, places(3), 1.0), IndexError, "index 3 is out of bounds"),
        (lambda y: y.index_fill(0, places(0), y[0]), RuntimeError, "0-dimensional value tensor"),
        (lambda y: y.index_put(places(0), y[0]), TypeError, "must be a tuple of Tensors"),
        (lambda y: y.index_put((places(5),), y[0]), IndexError, "index_put: index 5 is out of"),
        (lambda y: y.index_put((places(0),), y.float()), RuntimeError, "dtypes match"),
        (lambda y: y.masked_fill(y, 1.0), RuntimeError, "only supports boolean masks"),
        (lambda y: y.masked_fill(y > 0, y), RuntimeError, "0-dimensional value tensor"),
        (lambda y: y.masked_select(y[:, :2] > 0), RuntimeError, "must match the size"),
        (lambda y: y.masked_scatter(y > 0, y[0]), RuntimeError, "source .3. < number of ones"),
        (lambda y: y.fill_(y), RuntimeError, "0-dimensional value tensor"),
        (lambda y: y.copy_(y[:, :2]), RuntimeError, "copy_: shape mismatch"),
        (lambda y: chainrule.one_hot(places(3), 3), RuntimeError, r"smaller than num_classes \(3"),
        (lambda y: chainrule.one_hot(places(-1)), RuntimeError, "must be non-negative"),
        (lambda y: chainrule.one_hot(places()), RuntimeError, "pass num_classes"),
        (lambda y: chainrule.one_hot(y), RuntimeError, "of type int64"),
    ],
)
def test_calls_that_are_refused(call: Any, error: type[Exception], message: str) -> None:
    y = tensor(Y)
    with pytest.raises(error, match=message):
        call(y)
    assert_close(y, Y, rtol=0, atol=0)


# --- forms of an index ----------------------------------------------------------------------------


def test_kinds_of_index() -> None:
    x = tensor(Y)
    for index in (1, np.int64(1), np.int32(1), chainrule.tensor(1), np.array(1)):
        assert_close(x[index], Y[1], rtol=0, atol=0)
    narrow = chainrule.tensor([0, 2], dtype=chainrule.uint8)
    listed = ([0, 2], (0, 2), range(0, 3, 2), [chainrule.tensor(0), 2])
    for index in (*listed, np.array([0, 2]), places(0, 2), narrow):
        assert_close(x[(index,)], Y[[0, 2]], rtol=0, atol=0)
    assert_close(x[chainrule.tensor(0) : chainrule.tensor(2)], Y[:2], rtol=0, atol=0)
    assert x[[]].shape == (0, 3)
    assert x[np.bool_(True)].shape == (1, 3, 3)
    assert x[chainrule.tensor(False)].shape == (0, 3, 3)


PLACES = {
    "matrix": ((3, 4), (5,)),
    "rows of a cube": ((3, 4, 2), (5,)),
    "table of places": ((3, 4), (2, 3)),
    "all dimensions": ((2, 3, 2), (4,)),
    "nothing": ((3, 4), (0,)),
}


@pytest.mark.parametrize("name", PLACES)
def test_several_tensors_of_one_shape(name: str) -> None:
    shape, chosen = PLACES[name]
    r = np.random.default_rng(0)
    sizes = shape if name == "all dimensions" else shape[:2]
    index = [r.integers(-n, n, chosen) for n in sizes]  # some come twice, some from the end
    at = tuple([chainrule.tensor(i) for i in index])
    a = r.normal(size=shape)
    x = chainrule.tensor(a, requires_grad=True)
    assert_close(x[at], a[tuple(index)])
    g = r.normal(size=a[tuple(index)].shape)
    expected = np.zeros(shape)
    np.add.at(expected, tuple(index), g)
    (slope,) = chainrule.autograd.grad(x[at], [x], chainrule.tensor(g))
    assert_close(slope, expected)
    assert chainrule.autograd.gradcheck(lambda x: x[at] ** 2, [x])
    assert chainrule.autograd.gradgradcheck(lambda x: x[at] ** 3, [x])
    _, tangent = chainrule.func.jvp(lambda x: x[at], (x.detach(),), (2 * x.detach(),))
    assert_close(tangent, 2 * a[tuple(index)])
    batch = chainrule.stack([x.detach(), -x.detach()])
    assert_close(chainrule.func.vmap(lambda x: x[at])(batch), np.stack([a, -a])[:, *index])
    written, value = chainrule.tensor(a), chainrule.tensor(g)
    written[at] = value
    wanted = a.copy()
    wanted[tuple(index)] = g
    assert_close(written, wanted)


def test_each_member_of_a_batch_has_places_of_its_own() -> None:
    x = chainrule.arange(6.0).reshape(2, 3)
    i, j = chainrule.tensor([[0, 1], [1, 1]]), chainrule.tensor([[2, 0], [1, -1]])
    both = chainrule.func.vmap(lambda i, j: x[i, j])(i, j)
    assert_close(both, np.array([[2.0, 3.0], [4.0, 5.0]]))


def test_long_rows_accumulate() -> None:
    """More elements than the short way takes."""
    rows = np.arange(900) % 7 - 3
    x = chainrule.zeros(7, 20, requires_grad=True)
    g = numbers(900, 20).astype(np.float32)
    x[places(*rows)].backward(tensor(g))
    expected = np.zeros((7, 20))
    np.add.at(expected, rows, g)
    assert x.grad.dtype is chainrule.float32
    assert_close(x.grad, expected.astype(np.float32), rtol=1e-5)


def test_integers_and_booleans_are_scattered_too() -> None:
    x = chainrule.arange(4)
    assert x.scatter_reduce(0, places(0, 0), places(-3, -4), "mean").tolist() == [-3, 1, 2, 3]
    assert x.scatter_reduce(0, places(3, 3), places(5, 4), "amin").tolist() == [0, 1, 2, 3]
    assert x.index_add(0, places(1, 1), places(1, 2)).tolist() == [0, 4, 2, 3]
    truth = chainrule.tensor([True, False, True])
    assert truth[places(1, 2)].tolist() == [False, True]
    assert truth.index_fill(0, places(0), False).tolist() == [False, False, True]


def test_nan_among_the_largest() -> None:
    nan = float("nan")
    x = chainrule.tensor([1.0, 2.0], requires_grad=True)
    src = chainrule.tensor([nan, 5.0, 1.0], requires_grad=True)
    out = x.scatter_reduce(0, places(0, 1, 1), src, "amax")
    assert_close(out, np.array([nan, 5], dtype=np.float32))
    out.sum().backward()
    assert x.grad.tolist() == [0, 0]
    assert src.grad.tolist() == [1, 1, 0]


@pytest.mark.parametrize("zeros", [0, 1, 2, 3])
@pytest.mark.parametrize("include_self", [True, False])
def test_products_of_groups_with_zeros(zeros: int, include_self: bool) -> None:
    """First and second derivatives are exact there too."""
    src = np.array([2.0, 3.0, -1.5, 0.5, 1.2])
    src[:zeros] = 0
    index = places(0, 0, 0, 1, 0)

    def function(x: Tensor, s: Tensor) -> Tensor:
        return x.scatter_reduce(0, index, s, "prod", include_self=include_self)

    variables = [tensor([0.7, 2.0, 3.0], requires_grad=True), tensor(src, requires_grad=True)]
    gradcheck(function, variables)
    gradgradcheck(function, variables)
