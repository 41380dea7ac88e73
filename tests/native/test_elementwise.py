"""The compiled arithmetic, activations and their slopes against their NumPy twins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from native.twins import FLOATS, SETTINGS, agree, in_setting, native, numbers, reference

UNARY = [
    "exp",
    "tanh",
    "sigmoid",
    "erf",
    "relu",
    "softplus",
    "log_sigmoid",
    "silu",
    "gelu_tanh",
    "normal_cdf",
    "gelu",
    "neg",
    "square",
]
SLOPES = [
    "relu_backward",
    "tanh_backward",
    "sigmoid_backward",
    "softplus_backward",
    "log_sigmoid_backward",
    "silu_backward",
    "gelu_tanh_backward",
    "gelu_backward",
    "erf_backward",
    "binary_cross_entropy_with_logits",
]
# Empty, one element, fewer and more than a register, enough for several threads.
SHAPES: list[tuple[int, ...]] = [(), (0,), (1,), (3, 5), (40,), (2, 0, 3), (7, 11, 13), (300, 1001)]
ODD = [
    0.0,
    -0.0,
    np.inf,
    -np.inf,
    np.nan,
    1e-45,
    -1e-45,
    1e-30,
    1e30,
    -1e30,
    88.8,
    -88.8,
    -104.0,
    709.9,
    -746.0,
    1.0,
    -1.0,
    1e-8,
    -1e-8,
]


@pytest.fixture(autouse=True, params=SETTINGS, ids=str)
def setting(request: Any) -> Iterator[None]:
    yield from in_setting(request.param)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", UNARY)
def test_one_input(name: str, dtype: Any) -> None:
    for seed, shape in enumerate(SHAPES):
        x = numbers(seed, shape, dtype)
        agree(getattr(native, name)(x), reference(name)(x))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", UNARY)
def test_relative_error(name: str, dtype: Any) -> None:
    """Where the result is small it is as exact as elsewhere (but for the normal distribution)."""
    if name in ("normal_cdf", "gelu", "gelu_tanh") and dtype is np.float32:
        return
    x = numbers(0, 3000, dtype, 1e-3)
    np.testing.assert_allclose(
        getattr(native, name)(x), reference(name)(x), rtol=5e-6 if dtype is np.float32 else 1e-14
    )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", UNARY)
def test_limits(name: str, dtype: Any) -> None:
    x = np.array(ODD).astype(dtype)
    ours, theirs = getattr(native, name)(x), reference(name)(x)
    np.testing.assert_allclose(
        ours, theirs, rtol=1e-5 if dtype is np.float32 else 1e-12, atol=1e-35
    )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", SLOPES)
def test_slopes(name: str, dtype: Any) -> None:
    for seed, shape in enumerate(SHAPES):
        g, x = numbers(seed, shape, dtype), numbers(seed + 99, shape, dtype, 1.0)
        agree(getattr(native, name)(g, x), reference(name)(g, x), 4.0)
    x = np.array(ODD).astype(dtype)
    g = np.ones_like(x)
    finite = np.isfinite(x) | (x != x)
    ours, theirs = getattr(native, name)(g, x)[finite], reference(name)(g, x)[finite]
    np.testing.assert_array_equal(np.isnan(ours), np.isnan(theirs))
    small = np.abs(x[finite]) < 1e5
    np.testing.assert_allclose(ours[small], theirs[small], rtol=1e-4, atol=1e-6)


def test_relu_of_what_is_not_finite() -> None:
    out, g = np.array([np.nan, 0.0, -0.0, np.inf], "f"), np.array([2, 3, 4, 5], "f")
    np.testing.assert_array_equal(native.relu_backward(g, out), [2, 0, 0, 5])
    np.testing.assert_array_equal(
        native.relu(np.array([np.nan, -np.inf, np.inf], "f")), [np.nan, 0, np.inf]
    )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("alpha", "scale", "rate"), [(1.0, 1.0, 1.0), (1.67, 1.05, 1), (2, 1, 0.5)]
)
def test_elu(alpha: float, scale: float, rate: float, dtype: Any) -> None:
    for seed, shape in enumerate(SHAPES):
        g, x = numbers(seed, shape, dtype), numbers(seed + 9, shape, dtype)
        settings = {"alpha": alpha, "scale": scale, "rate": rate}
        agree(native.elu(x, **settings), reference("elu")(x, **settings))
        agree(
            native.elu_backward(g, x, alpha, scale, rate),
            reference("elu_backward")(g, x, alpha, scale, rate),
            4.0,
        )
    x = np.array(ODD).astype(dtype)
    agree(native.elu(x, alpha, scale, rate), reference("elu")(x, alpha, scale, rate), 1.0, 1e25)


@pytest.mark.parametrize("dtype", FLOATS)
def test_prelu(dtype: Any) -> None:
    for seed, shape in enumerate(SHAPES):
        g, x = numbers(seed, shape, dtype), numbers(seed + 9, shape, dtype)
        for slope in (0.01, -2, np.asarray(0.3, dtype), np.asarray([0.25], dtype)):
            agree(native.prelu(x, slope), reference("prelu")(x, slope))
            agree(native.prelu_backward(g, x, slope), reference("prelu_backward")(g, x, slope))
    x = numbers(0, (4, 3), dtype)
    agree(native.prelu(x, x[0]), reference("prelu")(x, x[0]))  # a slope for each column
    assert np.isnan(native.prelu(np.array([np.nan], dtype), 0.1)).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_slope_of_binary_cross_entropy(dtype: Any) -> None:
    name = "binary_cross_entropy_with_logits_backward"
    for seed, shape in enumerate(SHAPES):
        g, x, y = (numbers(seed + k, shape, dtype) for k in range(3))
        agree(getattr(native, name)(g, x, y), reference(name)(g, x, y), 4.0)


def strided(x: np.ndarray) -> list[np.ndarray]:
    """Views of all steps."""
    return [x.T, x[::2], x[:, ::-1], np.broadcast_to(x[:1], x.shape), x[1:, 1:], x[:, 2], x[3:, :1]]


def unreadable(x: np.ndarray) -> list[np.ndarray]:
    """Arrays that the processor cannot read, which the compiled kernels leave to NumPy."""
    swapped = x.astype(x.dtype.newbyteorder())
    shifted = np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(x.dtype).reshape(x.shape)
    return [swapped, shifted]


@pytest.mark.parametrize("dtype", FLOATS)
def test_odd_memory(dtype: Any) -> None:
    x = numbers(0, (6, 6), dtype)
    for view in strided(x):
        for name in ("tanh", "relu", "sigmoid", "gelu", "sin", "log1p"):
            kernel = getattr(native, name)
            np.testing.assert_array_equal(kernel(view), kernel(view.copy(order="C")))
    for view in unreadable(x):
        for name in ("tanh", "relu", "sigmoid", "gelu", "sin"):
            np.testing.assert_allclose(
                getattr(native, name)(view), reference(name)(view), rtol=1e-5
            )
    for view in (*strided(x), *unreadable(x)):
        ones = np.ones(view.shape, dtype)
        for g, y in ((view, ones), (ones, view), (view, view)):
            np.testing.assert_allclose(
                native.silu_backward(g, y), reference("silu_backward")(g, y), rtol=1e-4, atol=1e-6
            )


def test_other_types() -> None:
    half = np.array([1.0, -2.0], np.float16)
    assert native.tanh(half).dtype == np.float16
    assert native.sigmoid(half).dtype == np.float16
    np.testing.assert_array_equal(native.relu(np.array([-1, 2])), [0, 2])
    np.testing.assert_allclose(native.exp(np.array([1j])), np.exp([1j]))
    assert native.exp(np.float32(0.0)) == 1
    g, x = np.ones(3, "f"), np.ones(3, "d")
    assert native.tanh_backward(g, x).dtype == np.float64
    with pytest.raises((TypeError, ValueError)):
        native.tanh_backward(np.ones(3, "f"), np.ones(4, "f"))
    with pytest.raises(TypeError):
        native.tanh()
    with pytest.raises(TypeError):
        native.elu(np.ones(3, "f"))


# --- arithmetic -----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_arithmetic_is_exact(name: str, dtype: Any) -> None:
    """Equal bit by bit, also with one number, and with what NumPy broadcasts."""
    ours, theirs = getattr(native, name), reference(name)
    for seed, shape in enumerate(SHAPES):
        a, b, number = numbers(seed, shape, dtype), numbers(9, shape, dtype), numbers(5, (), dtype)
        for x, y in ((a, b), (a, number), (number, a), (a, 2.5), (2.5, a), (a, a)):
            out, expected = ours(x, y), theirs(x, y)
            assert out.dtype == expected.dtype
            assert out.shape == expected.shape
            np.testing.assert_array_equal(out, expected)
    odd = np.array(ODD).astype(dtype)
    np.testing.assert_array_equal(ours(odd, odd[::-1]), theirs(odd, odd[::-1]))
    np.testing.assert_array_equal(ours(odd, odd[::-1].copy()), theirs(odd, odd[::-1]))
    wide = numbers(0, (4, 5), dtype)
    np.testing.assert_array_equal(ours(wide, wide[0]), theirs(wide, wide[0]))
    for x in (wide, wide.T, wide[::2], wide[:, ::2], wide[::-1], wide[:, :1], wide[:1], wide[None]):
        for y in (x, x[:1], x[..., :1], np.broadcast_to(x[:1], x.shape), np.asfortranarray(x)):
            np.testing.assert_array_equal(ours(x, y), theirs(x, y))
            np.testing.assert_array_equal(ours(y, x), theirs(y, x))
    images = numbers(0, (64, 5, 40, 30), dtype)
    for shape in (
        (5, 1, 1),
        (1, 5, 1, 1),
        (64, 1, 1, 1),
        (30,),
        (40, 1),
        (1, 1),
        (40, 30),
        (5, 40, 30),
    ):
        part = numbers(1, shape, dtype)
        np.testing.assert_array_equal(ours(images, part), theirs(images, part))
        np.testing.assert_array_equal(ours(part, images), theirs(part, images))
    integers = np.ones(5, int)
    assert ours(integers, wide[0]).dtype == theirs(integers, wide[0]).dtype
    assert isinstance(ours(np.array(2, dtype), np.array(3, dtype)), np.ndarray)
    with pytest.raises(ValueError, match="broadcast"):
        ours(np.ones((2, 3), dtype), np.ones((3, 2), dtype))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", FLOATS)
def test_roots_and_powers(dtype: Any) -> None:
    for shape in SHAPES:
        x = np.abs(numbers(0, shape, dtype))
        np.testing.assert_array_equal(native.sqrt(x), reference("sqrt")(x))
        for exponent in (2.0, 3.0, 0.5, -1.0, 0.0):
            b = np.asarray(exponent, dtype)
            agree(native.pow(x + 1, b), reference("pow")(x + 1, b))
    assert np.isnan(native.sqrt(np.array([-1.0], dtype)))[0]


@pytest.mark.parametrize("dtype", FLOATS)
def test_squared_error(dtype: Any) -> None:
    for seed, shape in enumerate(SHAPES):
        a, b, g = numbers(seed, shape, dtype), numbers(9, shape, dtype), numbers(5, (), dtype)
        exact = 0.3 * float(((a.astype("d") - b.astype("d")) ** 2).sum())
        ours = native.squared_error(a, b, 0.3)
        assert ours.dtype == dtype
        assert ours.shape == ()
        np.testing.assert_allclose(ours, exact, rtol=3e-7 if dtype is np.float32 else 1e-14)
        agree(
            native.squared_error_backward(g, a, b, 0.3),
            reference("squared_error_backward")(g, a, b, 0.3),
        )
    with pytest.raises(ValueError, match="broadcast"):
        native.squared_error(np.ones(3, dtype), np.ones(2, dtype), 1.0)


def test_an_array_of_ones_own_stays_and_others_are_copied() -> None:
    a = np.arange(6.0)
    assert native.owned(a, False) is a
    for given in ((a, True), (a[1:], False), (np.float64(2), False)):
        copy = native.owned(*given)
        assert copy is not given[0]
        assert not np.shares_memory(copy, a)
    a.flags.writeable = False
    assert native.owned(a, False).flags.writeable


def test_instruction_sets_by_name() -> None:
    before = native.get_isa()
    assert native.set_isa("baseline") is True
    assert native.get_isa() == "baseline"
    assert native.set_isa("sse9") is False
    assert native.get_isa() == "baseline"
    assert native.set_isa(before) is True
