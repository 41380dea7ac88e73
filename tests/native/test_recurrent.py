"""The compiled recurrent layers against their NumPy twins."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from native.twins import in_setting
from native.twins import native as _native
from chainrule.backend.numpy_kernels import recurrent as reference
from chainrule.backend.numpy_kernels import recurrent_peephole as peephole

SETTINGS = [(isa, threads) for isa in ("baseline", "avx2", "avx512") for threads in (1, 2, 3)]
TOLERANCE = {np.dtype(np.float32): 2e-5, np.dtype(np.float64): 1e-12}
# Steps, batch, size of the state: below, at and above the sizes of vectors and tiles.
SIZES = [(1, 1, 1), (3, 2, 5), (4, 9, 16), (2, 17, 33), (30, 8, 64), (5, 1, 70)]


@pytest.fixture(params=SETTINGS, ids=lambda p: f"{p[0]}-{p[1]}")
def kernels(request: pytest.FixtureRequest) -> Any:
    for _ in in_setting(request.param):
        yield _native


class Draw:
    """Random arrays, in memory as told."""

    def __init__(self, dtype: Any, layout: str = "plain"):
        self.rng, self.dtype, self.layout = np.random.default_rng(7), dtype, layout

    def __call__(self, *shape: int, scale: float = 1.0) -> np.ndarray:
        if self.layout == "plain":
            return (self.rng.standard_normal(shape) * scale).astype(self.dtype)
        if self.layout == "transposed":
            return (self.rng.standard_normal(shape[::-1]) * scale).astype(self.dtype).T
        if self.layout == "batch first" and len(shape) == 3:
            array = self.rng.standard_normal((shape[1], shape[0], shape[2])) * scale
            return array.astype(self.dtype).swapaxes(0, 1)
        return (self.rng.standard_normal((*shape, 2)) * scale).astype(self.dtype)[..., 0]

    def mask(self, steps: int, batch: int) -> np.ndarray:
        return self.rng.random((steps, batch)) < 0.7


def close(a: Any, b: Any) -> None:
    a, b = (list(v) if isinstance(v, tuple | list) else [v] for v in (a, b))
    assert len(a) == len(b)
    for one, other in zip(a, b, strict=True):
        assert one.shape == other.shape
        assert one.dtype == other.dtype
        tolerance = TOLERANCE[one.dtype]
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def each(*lists: Any) -> Any:
    return pytest.mark.parametrize(
        ("sizes", "dtype", "layout"), list(itertools.product(*lists)), ids=str
    )


all_cases = each(SIZES, [np.float32, np.float64], ["plain", "batch first", "transposed"])


@all_cases
def test_rnn(kernels: Any, sizes: Any, dtype: Any, layout: str) -> None:
    steps, n, h = sizes
    draw = Draw(dtype, layout)
    x, h0, g = draw(steps, n, h), draw(n, h), draw(steps, n, h)
    w, mask = draw(h, h, scale=h**-0.5), draw.mask(steps, n)
    for nonlinearity, reverse, masks in itertools.product(
        ("tanh", "relu", "sigmoid"), (False, True), ((), (mask,))
    ):
        how: dict[str, Any] = {"nonlinearity": nonlinearity, "reverse": reverse}
        out = reference.rnn_sequence(x, h0, w, *masks, **how)
        close(kernels.rnn_sequence(x, h0, w, *masks, **how), out)
        close(
            kernels.rnn_sequence_backward(g, out, w, *masks, **how),
            reference.rnn_sequence_backward(g, out, w, *masks, **how),
        )


@all_cases
def test_lstm(kernels: Any, sizes: Any, dtype: Any, layout: str) -> None:
    steps, n, h = sizes
    draw = Draw(dtype, layout)
    for size, reverse, masked in itertools.product((h, 3), (False, True), (False, True)):
        projected = size != h
        x, h0, c0 = draw(steps, n, 4 * h), draw(n, size), draw(n, h)
        w, w_hr = draw(4 * h, size, scale=size**-0.5), draw(size, h, scale=h**-0.5)
        others = [w_hr] * projected + [draw.mask(steps, n)] * masked
        gh, gc = draw(steps, n, size), draw(steps, n, h)
        how: dict[str, Any] = {"projected": projected, "reverse": reverse}
        states = reference.lstm_sequence(x, h0, c0, w, *others, **how)
        close(kernels.lstm_sequence(x, h0, c0, w, *others, **how), states)
        arguments = (gh, gc, states[1], states[2], c0, w, *others)
        close(
            kernels.lstm_sequence_backward(*arguments, **how),
            reference.lstm_sequence_backward(*arguments, **how),
        )


@all_cases
def test_gru(kernels: Any, sizes: Any, dtype: Any, layout: str) -> None:
    steps, n, h = sizes
    draw = Draw(dtype, layout)
    x, h0, g = draw(steps, n, 3 * h), draw(n, h), draw(steps, n, h)
    w, b, mask = draw(3 * h, h, scale=h**-0.5), draw(3 * h), draw.mask(steps, n)
    for reverse, masks in itertools.product((False, True), ((), (mask,))):
        out, kept = reference.gru_sequence(x, h0, w, b, *masks, reverse=reverse)
        close(kernels.gru_sequence(x, h0, w, b, *masks, reverse=reverse), (out, kept))
        arguments = (g, out, kept, h0, w, *masks)
        close(
            kernels.gru_sequence_backward(*arguments, reverse=reverse),
            reference.gru_sequence_backward(*arguments, reverse=reverse),
        )


@all_cases
def test_peepholes(kernels: Any, sizes: Any, dtype: Any, layout: str) -> None:
    steps, n, h = sizes
    draw = Draw(dtype, layout)
    for full, reverse, masked in itertools.product((False, True), repeat=3):
        x, h0, c0 = draw(steps, n, 4 * h), draw(n, h), draw(n, h)
        w = draw(4 * h, h, scale=h**-0.5)
        holes = [draw(h, h, scale=h**-0.5) if full else draw(h) for _ in range(3)]
        masks = [draw.mask(steps, n)] * masked
        gh, gc = draw(steps, n, h), draw(steps, n, h)
        how: dict[str, Any] = {"full": full, "reverse": reverse}
        states = peephole.peephole_sequence(x, h0, c0, w, *holes, *masks, **how)
        close(kernels.peephole_sequence(x, h0, c0, w, *holes, *masks, **how), states)
        arguments = (gh, gc, states[1], states[2], c0, w, tuple(holes), *masks)
        close(
            kernels.peephole_sequence_backward(*arguments, **how),
            peephole.peephole_sequence_backward(*arguments, **how),
        )


@all_cases
def test_weights(kernels: Any, sizes: Any, dtype: Any, layout: str) -> None:
    steps, n, h = sizes
    draw = Draw(dtype, layout)
    for gates, reverse in itertools.product((h, 4 * h, 33), (False, True)):
        arguments = draw(steps, n, gates), draw(steps, n, h), draw(n, h)
        close(
            kernels.state_weight_gradient(*arguments, reverse=reverse),
            reference.state_weight_gradient(*arguments, reverse=reverse),
        )


def test_the_result_does_not_depend_on_the_threads() -> None:
    draw = Draw(np.float32)
    x, h0, c0, w = draw(50, 23, 80), draw(23, 20), draw(23, 20), draw(80, 20, scale=0.2)
    gh, gc = draw(50, 23, 20), draw(50, 23, 20)
    how = {"projected": False, "reverse": False}
    before, results = _native.get_num_threads(), []
    for threads in (1, 2, 3, 7):
        _native.set_num_threads(threads)
        states = _native.lstm_sequence(x, h0, c0, w, **how)
        back = _native.lstm_sequence_backward(gh, gc, states[1], states[2], c0, w, **how)
        weights = _native.state_weight_gradient(back[0], states[0], h0, reverse=False)
        results.append([*states, *back, weights])
    _native.set_num_threads(before)
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30, -1e30])
def test_extreme_inputs(kernels: Any, value: float) -> None:
    for dtype in (np.float32, np.float64):
        draw = Draw(dtype)
        x, h0, c0, w = draw(6, 3, 20), draw(3, 5), draw(3, 5), draw(20, 5)
        x[2, 1, ::3] = value
        how = {"projected": False, "reverse": False}
        with np.errstate(all="ignore"):
            close(
                kernels.lstm_sequence(x, h0, c0, w, **how),
                reference.lstm_sequence(x, h0, c0, w, **how),
            )
            x, w, b = x[..., :15].copy(), draw(15, 5), draw(15)
            close(
                kernels.gru_sequence(x, h0, w, b, reverse=False),
                reference.gru_sequence(x, h0, w, b, reverse=False),
            )
            x, w = x[..., :5].copy(), draw(5, 5)
            for name in ("tanh", "relu", "sigmoid"):
                close(
                    kernels.rnn_sequence(x, h0, w, nonlinearity=name, reverse=False),
                    reference.rnn_sequence(x, h0, w, nonlinearity=name, reverse=False),
                )


def test_padding_hides_nan(kernels: Any) -> None:
    draw = Draw(np.float64)
    x, h0, c0, w = draw(5, 2, 12), draw(2, 3), draw(2, 3), draw(12, 3)
    mask = np.ones((5, 2), bool)
    mask[3:, 1] = False
    x[3:, 1] = np.nan
    how = {"projected": False, "reverse": False}
    h, c, gates = kernels.lstm_sequence(x, h0, c0, w, mask, **how)
    np.testing.assert_array_equal(h[4, 1], h[2, 1])
    gx, gh0, gc0, _ = kernels.lstm_sequence_backward(h, c, c, gates, c0, w, mask, **how)
    assert np.isfinite(gx).all()
    assert np.isfinite(gh0).all()
    assert np.isfinite(gc0).all()
    assert (gx[3:, 1] == 0).all()


def test_what_is_left_to_numpy() -> None:
    draw = Draw(np.float32)
    x, h0, w = draw(2, 3, 4), draw(3, 4), draw(4, 4)
    how: dict[str, Any] = {"nonlinearity": "tanh", "reverse": False}
    half = [a.astype(np.float16) for a in (x, h0, w)]
    np.testing.assert_array_equal(
        _native.rnn_sequence(*half, **how), reference.rnn_sequence(*half, **how)
    )
    swapped = [a.astype(">f4") for a in (x, h0, w)]
    np.testing.assert_array_equal(
        _native.rnn_sequence(*swapped, **how), reference.rnn_sequence(*swapped, **how)
    )
    empty = _native.rnn_sequence(x[:, :0], h0[:0], w, **how)
    assert empty.shape == (2, 0, 4)
    for wrong in ((x,), (x, h0), (x, h0[:, :2], w), (x, h0, w[:3]), (x, h0, w, h0)):
        with pytest.raises((TypeError, ValueError)):
            _native.rnn_sequence(*wrong, **how)
    with pytest.raises(TypeError):
        _native.lstm_sequence(x, h0, h0, w)
    assert _native.state_weight_gradient(x[:, :0], x[:, :0], h0[:0], reverse=True).shape == (4, 4)
    for wrong in ((x, x), (x, x[:1], h0), (x, x, h0[:2])):
        with pytest.raises((TypeError, ValueError)):
            _native.state_weight_gradient(*wrong, reverse=False)
