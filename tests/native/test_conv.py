"""The compiled convolutions against their NumPy twins."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from chainrule import backend
from chainrule.backend.numpy_kernels import conv as reference

native: Any = pytest.importorskip("chainrule.backend._native", reason=backend.why_not_native)

Array = np.ndarray[Any, Any]
KERNELS = ["convolution", "convolution_input", "convolution_weight"]
SETS = ["baseline", "avx2", "avx512"]
TOLERANCE = {np.float32: 3e-6, np.float64: 1e-13}


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    threads, isa = native.get_num_threads(), native.get_isa()
    yield
    native.set_num_threads(threads)
    native.set_isa(isa)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No kernel of the family may be handed to its twin."""

    def refuse(name: str) -> Callable[..., Any]:
        def kernel(*args: Any, **kwargs: Any) -> Any:
            raise AssertionError(f"{name} was left to NumPy")

        return kernel

    families = backend._IMPLEMENTATIONS["numpy"]
    everything = {name: getattr(f, name) for f in families for name in f.__all__}
    native.bind_reference(everything | {name: refuse(name) for name in reference.__all__})
    yield
    native.bind_reference(everything)


class Case:
    """Arrays x, w and y that fit together, with the settings."""

    def __init__(
        self,
        dtype: Any,
        batch: int,
        groups: int,
        channels: tuple[int, int],
        inputs: list[int],
        kernel: list[int],
        stride: list[int],
        padding: list[int],
        dilation: list[int],
        outputs: list[int] | None = None,
        seed: int = 0,
    ) -> None:
        rng = np.random.default_rng(seed)
        each = zip(inputs, kernel, stride, padding, dilation, strict=True)
        fits = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in each]
        self.size = {
            "convolution": tuple(outputs or fits),
            "convolution_input": tuple(inputs),
            "convolution_weight": tuple(kernel),
        }
        c, o = channels
        self.x = rng.standard_normal((batch, groups * c, *inputs)).astype(dtype)
        self.w = rng.standard_normal((groups * o, c, *kernel)).astype(dtype)
        self.y = rng.standard_normal((batch, groups * o, *(outputs or fits))).astype(dtype)
        self.settings: dict[str, Any] = {
            "stride": tuple(stride),
            "padding": tuple(padding),
            "dilation": tuple(dilation),
            "groups": groups,
        }

    def operands(self, kernel: str) -> tuple[Array, Array]:
        return {
            "convolution": (self.x, self.w),
            "convolution_input": (self.y, self.w),
            "convolution_weight": (self.x, self.y),
        }[kernel]

    def by(self, module: Any, kernel: str) -> Array:
        a, b = self.operands(kernel)
        result: Array = getattr(module, kernel)(a, b, size=self.size[kernel], **self.settings)
        return result


def agree(case: Case, kernel: str) -> None:
    """Native and NumPy give the same, up to the rounding of sums in another order."""
    expected, got = case.by(reference, kernel), case.by(native, kernel)
    assert got.shape == expected.shape
    assert got.dtype == expected.dtype
    scale = max(float(np.abs(expected).max()), 1e-30)
    assert float(np.abs(got - expected).max()) <= TOLERANCE[got.dtype.type] * scale


def random_case(rng: np.random.Generator) -> Case | None:
    nd = int(rng.integers(1, 4))

    def some(low: int, high: int) -> list[int]:
        return [int(n) for n in rng.integers(low, high, nd)]

    groups = int(rng.choice([1, 1, 1, 2, 3]))
    channels = (int(rng.integers(1, 8)), int(rng.integers(1, 20)))
    if rng.random() < 0.15:
        groups, channels = int(rng.integers(1, 20)), (1, 1)
    inputs = some(1, {1: 60, 2: 24, 3: 9}[nd])
    kernel, stride = some(1, {1: 9, 2: 6, 3: 4}[nd]), some(1, 4)
    padding, dilation = some(-1, 4), some(1, 4)
    each = zip(inputs, kernel, stride, padding, dilation, strict=True)
    outputs = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in each]
    # The sizes may also ask for more or less than symmetric padding gives.
    outputs = [n + int(rng.integers(-1, 3)) * int(rng.random() < 0.2) for n in outputs]
    if min(outputs) < 1:
        return None
    dtype = np.float32 if rng.random() < 0.5 else np.float64
    return Case(
        dtype,
        int(rng.integers(1, 6)),
        groups,
        channels,
        inputs,
        kernel,
        stride,
        padding,
        dilation,
        outputs,
        int(rng.integers(1 << 30)),
    )


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.usefixtures("alone")
def test_random_shapes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(40):
        case = random_case(rng)
        native.set_isa(str(rng.choice(SETS)))
        native.set_num_threads(int(rng.integers(1, 4)))
        if case is not None:
            for kernel in KERNELS:
                agree(case, kernel)


COURSE: dict[str, tuple[Any, ...]] = {
    "first layer": (np.float32, 4, 1, (3, 6), [32, 32], [5, 5], [1, 1], [0, 0], [1, 1]),
    "second layer": (np.float32, 4, 1, (6, 16), [14, 14], [5, 5], [1, 1], [0, 0], [1, 1]),
    "to one": (np.float32, 9, 1, (16, 120), [5, 5], [5, 5], [1, 1], [0, 0], [1, 1]),
    "same": (np.float32, 3, 1, (32, 64), [32, 32], [3, 3], [1, 1], [1, 1], [1, 1]),
    "half": (np.float64, 3, 1, (33, 40), [16, 16], [3, 3], [2, 2], [1, 1], [1, 1]),
    "depthwise": (np.float32, 3, 40, (1, 1), [16, 16], [3, 3], [1, 1], [1, 1], [1, 1]),
    "depthwise half": (np.float32, 3, 37, (1, 1), [15, 13], [3, 3], [2, 2], [1, 1], [1, 1]),
    "depthwise wide": (np.float64, 2, 24, (1, 1), [14, 14], [5, 5], [1, 1], [2, 2], [1, 1]),
    "depthwise dilated": (np.float32, 2, 20, (1, 1), [9, 16], [7, 7], [1, 2], [6, 5], [2, 1]),
    "depthwise tiny": (np.float32, 3, 33, (1, 1), [3, 2], [3, 3], [1, 1], [1, 1], [1, 1]),
    "depthwise narrow": (np.float64, 2, 17, (1, 1), [5, 4], [3, 3], [1, 1], [1, 1], [1, 1]),
    "depthwise short": (np.float32, 3, 24, (1, 1), [7, 8], [3, 3], [1, 1], [1, 1], [1, 1]),
    "pointwise tails": (np.float32, 3, 1, (40, 30), [8, 8], [1, 1], [1, 1], [0, 0], [1, 1]),
    "small images": (np.float32, 9, 1, (64, 96), [2, 2], [3, 3], [1, 1], [1, 1], [1, 1]),
    "small halves": (np.float64, 40, 2, (32, 31), [7, 5], [3, 3], [2, 2], [1, 1], [1, 1]),
    "pointwise small": (np.float32, 33, 1, (64, 62), [4, 4], [1, 1], [1, 1], [0, 0], [1, 1]),
    "many weights": (np.float32, 70, 1, (128, 160), [8, 8], [3, 3], [2, 2], [1, 1], [1, 1]),
    "pointwise": (np.float64, 3, 1, (17, 35), [9, 9], [1, 1], [1, 1], [0, 0], [1, 1]),
    "patches": (np.float32, 2, 1, (3, 24), [32, 32], [8, 8], [8, 8], [0, 0], [1, 1]),
    "many channels": (np.float32, 5, 1, (150, 130), [4, 4], [3, 3], [1, 1], [1, 1], [1, 1]),
    "wide": (np.float64, 1, 1, (2, 3), [5000], [9], [1], [4], [2]),
    "large": (np.float32, 1, 1, (8, 8), [200, 150], [3, 3], [1, 1], [1, 1], [1, 1]),
    "volume": (np.float64, 2, 2, (3, 4), [12, 13, 14], [3, 3, 3], [1, 2, 1], [1, 1, 1], [1, 1, 2]),
    "long stride": (np.float32, 2, 1, (2, 3), [90], [3], [17], [0], [5]),
}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", COURSE)
@pytest.mark.usefixtures("alone")
def test_shapes_of_layers(name: str, kernel: str) -> None:
    for isa in SETS:
        native.set_isa(isa)
        agree(Case(*COURSE[name]), kernel)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    "name",
    [
        *("second layer", "same", "depthwise", "many channels", "large"),
        *("depthwise half", "small images", "small halves", "pointwise small", "many weights"),
    ],
)
def test_number_of_threads_changes_nothing(name: str, kernel: str) -> None:
    case = Case(*COURSE[name])
    results = []
    for threads in (1, 2, 3, 5):
        native.set_num_threads(threads)
        results.append(case.by(native, kernel))
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.usefixtures("alone")
def test_any_strides(kernel: str) -> None:
    case = Case(np.float32, 4, 1, (5, 6), [9, 12], [3, 2], [1, 2], [1, 0], [1, 1])
    expected = case.by(reference, kernel)
    case.x = np.asfortranarray(case.x)
    case.w = case.w[::-1, ::-1][::-1, ::-1].swapaxes(2, 3).copy().swapaxes(2, 3)
    case.y = np.repeat(case.y, 2, axis=0)[::2]
    np.testing.assert_allclose(case.by(native, kernel), expected, rtol=1e-5, atol=1e-5)
    case.y = np.broadcast_to(np.float32(0.5), case.y.shape)
    agree(case, kernel)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("at", ["x", "w", "y"])
def test_not_finite(kernel: str, value: float, at: str) -> None:
    for shape in ([9, 11], [6, 16], [4, 3]):
        case = Case(np.float64, 2, 1, (3, 18), shape, [3, 3], [1, 1], [1, 1], [1, 1])
        getattr(case, at)[0, 1, 0, -1] = value
        with np.errstate(invalid="ignore"):
            expected = case.by(reference, kernel)
        np.testing.assert_allclose(case.by(native, kernel), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kernel", KERNELS)
def test_left_to_numpy(kernel: str) -> None:
    """Other dtypes, no elements and swapped bytes."""
    for dtype in (np.float16, np.complex128, np.int64, np.dtype(">f8")):
        case = Case(np.float64, 2, 1, (3, 4), [6, 7], [3, 2], [1, 1], [0, 1], [1, 1])
        case.x, case.w, case.y = (a.astype(dtype) for a in (case.x, case.w, case.y))
        expected = case.by(reference, kernel)
        got = case.by(native, kernel)
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)
    for batch, channels in ((0, (3, 4)), (2, (0, 4)), (2, (3, 0))):
        case = Case(np.float32, batch, 1, channels, [6, 7], [3, 2], [1, 1], [0, 1], [1, 1])
        if kernel == "convolution_weight" and 0 in channels:
            continue
        got = case.by(native, kernel)
        np.testing.assert_array_equal(got, case.by(reference, kernel))


def test_wrong_calls_raise_what_numpy_raises() -> None:
    case = Case(np.float64, 2, 1, (3, 4), [6, 7], [3, 2], [1, 1], [0, 1], [1, 1])
    settings = case.settings | {"size": (4, 8)}
    wrong = case.w[:, :2]
    for module in (reference, native):
        with pytest.raises(ValueError, match="matmul"):
            module.convolution(case.x, wrong, **settings)
        with pytest.raises(TypeError):
            module.convolution(case.x, case.w, **settings, other=1)
        with pytest.raises(TypeError):
            module.convolution(case.x)


def test_settings_beyond_all_measure() -> None:
    """They must not make sizes overflow; a stride or dilation that cannot matter is harmless."""
    x, w = np.ones((1, 1, 3)), np.ones((1, 1, 1))
    settings: dict[str, Any] = {"padding": (0,), "groups": 1}
    with pytest.raises(ValueError, match="dimension"):
        native.convolution(x, w, size=(1,), stride=(1 << 62,), dilation=(1,), **settings)
    for n in (1 << 29, 70):
        got = native.convolution(x, w, size=(1,), stride=(n,), dilation=(n,), **settings)
        np.testing.assert_array_equal(got, np.ones((1, 1, 1)))
    got = native.convolution_weight(
        x, w, size=(3,), stride=(1 << 29,), padding=(0,), dilation=(1,), groups=1
    )
    np.testing.assert_array_equal(got, np.ones((1, 1, 3)))


@pytest.mark.parametrize("dilation", [1 << 20, 1 << 29])
def test_a_huge_dilation_takes_no_time(dilation: int) -> None:
    """All but the first place of the kernel lie outside: there is next to nothing to compute."""
    x, y, w = np.full((1, 1, 4), 2.0), np.full((1, 1, 3), 3.0), np.full((1, 1, 2), 5.0)
    settings: dict[str, Any] = {"stride": (1,), "dilation": (dilation,), "groups": 1}
    began = time.process_time()
    for padding, reached in ((0, (3, 0)), (dilation, (0, 3))):
        padded = settings | {"padding": (padding,)}
        by_w = native.convolution_weight(x, y, size=(2,), **padded)
        np.testing.assert_array_equal(by_w, [[[6 * n for n in reached]]])
        by_x = native.convolution_input(y, w, size=(4,), **padded)
        np.testing.assert_array_equal(by_x, [[[15, 15, 15, 0]]])
        np.testing.assert_array_equal(
            native.convolution(x, w, size=(3,), **padded), [[[10, 10, 10]]]
        )
    # The NumPy kernel has zeros that nobody touches; AddressSanitizer marks them all.
    sanitized = "asan" in os.environ.get("LD_PRELOAD", "")
    assert time.process_time() - began < (10 if sanitized else 1)


def test_several_python_threads() -> None:
    case = Case(*COURSE["same"])
    native.set_num_threads(2)
    expected = {kernel: case.by(native, kernel) for kernel in KERNELS}
    wrong: list[str] = []

    def work() -> None:
        for _ in range(3):
            results = {kernel: case.by(native, kernel) for kernel in KERNELS}
            wrong.extend(k for k in KERNELS if not np.array_equal(results[k], expected[k]))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_in_a_forked_process() -> None:
    case = Case(*COURSE["same"])
    native.set_num_threads(2)
    expected = case.by(native, "convolution")
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(case.by(native, "convolution"), expected) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_the_step_of_a_dimension_of_one_element_is_any_number() -> None:
    x = np.arange(12.0).reshape(3, 1, 4)
    far = np.lib.stride_tricks.as_strided(x, x.shape, (32, 2**62, 8))
    w = np.ones((2, 1, 2))
    settings: dict[str, Any] = {"stride": (3,), "padding": (0,), "dilation": (2,)}
    for kernels in (reference, native):
        columns = kernels.im2col(far, size=(1,), kernel=(2,), **settings)
        np.testing.assert_array_equal(columns.reshape(3, 2), x[:, 0, [0, 2]])
        out = kernels.convolution(far, w, size=(1,), groups=1, **settings)
        np.testing.assert_array_equal(out[:, 0, 0], x[:, 0, 0] + x[:, 0, 2])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.usefixtures("alone")
def test_columns(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    for _ in range(60):
        case = random_case(rng)
        if case is None:
            continue
        settings = {k: v for k, v in case.settings.items() if k != "groups"}
        settings["kernel"] = case.size["convolution_weight"]
        outputs, inputs = case.size["convolution"], case.size["convolution_input"]
        x = case.x.astype(dtype)
        x = x[0] if rng.random() < 0.3 else x
        columns = reference.im2col(x, size=outputs, **settings)
        np.testing.assert_array_equal(native.im2col(x, size=outputs, **settings), columns)
        expected = reference.col2im(columns, size=inputs, outputs=outputs, **settings)
        got = native.col2im(columns, size=inputs, outputs=outputs, **settings)
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
