"""Where memory is, memory given anew, Python functions of elements, windows."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import assert_close
from scipy.signal import get_window

import chainrule
from chainrule.tensor import of_array


def test_where_memory_is() -> None:
    x = chainrule.arange(6.0).reshape(2, 3)
    assert x.data_ptr() == x.array.__array_interface__["data"][0]
    assert x[1].data_ptr() == x.data_ptr() + 12
    assert (x.storage_offset(), x[1].storage_offset(), x[1, 2:].storage_offset()) == (0, 3, 5)
    assert not any((x.is_pinned(), x.is_shared(), x.is_conj(), x.is_neg(), x.is_inference()))
    assert x.pin_memory() is x
    assert chainrule.get_device(x) == -1
    with chainrule.inference_mode():
        assert chainrule.ones(2).is_inference()


def test_there_is_no_gpu() -> None:
    with pytest.raises(RuntimeError, match="'cuda' is not available"):
        chainrule.ones(2).cuda()
    with pytest.raises(RuntimeError, match="not shared between processes"):
        chainrule.ones(2).share_memory_()


def test_another_size_in_place() -> None:
    x = chainrule.arange(6)
    assert x.resize_(2, 2).tolist() == [[0, 1], [2, 3]]
    assert x.resize_as_(chainrule.zeros(3)).tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match="require grad"):
        chainrule.ones(2, requires_grad=True).resize_(1)


def test_memory_of_another_tensor() -> None:
    x, y = chainrule.zeros(2), chainrule.ones(3)
    x.set_(y)
    y[0] = 5
    assert x.tolist() == [5.0, 1.0, 1.0]
    with pytest.raises(RuntimeError, match="expected a tensor of"):
        x.set_(chainrule.arange(2))


def test_python_functions_of_elements() -> None:
    x = chainrule.arange(4.0).reshape(2, 2)
    assert x.apply_(lambda v: v * v).tolist() == [[0.0, 1.0], [4.0, 9.0]]
    assert x.map_(chainrule.ones(2), lambda a, b: a - b).tolist() == [[-1.0, 0.0], [3.0, 8.0]]
    with pytest.raises(TypeError, match="requires grad"):
        x.requires_grad_().apply_(abs)


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett"])
@pytest.mark.parametrize("periodic", [True, False])
def test_windows(name: str, periodic: bool) -> None:
    make = getattr(chainrule, f"{name}_window")
    for n in (2, 5, 8):
        window = make(n, periodic, dtype=chainrule.float64)
        assert_close(window, get_window(name, n, fftbins=periodic), atol=1e-12)
    assert make(0).shape == (0,)
    assert make(1).tolist() == [1.0]
    with pytest.raises(RuntimeError, match="non-negative window_length"):
        make(-1)


def test_a_kaiser_window() -> None:
    window = chainrule.kaiser_window(6, periodic=False, beta=5.0, dtype=chainrule.float64)
    assert_close(window, np.kaiser(6, 5.0))


def test_a_signal_comes_back_from_its_spectra() -> None:
    x = of_array(np.random.default_rng(0).normal(size=(2, 40)))
    window = chainrule.hann_window(8, dtype=chainrule.float64)
    spectra = chainrule.stft(x, 8, window=window, return_complex=True)
    assert_close(chainrule.istft(spectra, 8, window=window, length=40), x, atol=1e-12)
    with pytest.raises(RuntimeError, match="return_complex"):
        chainrule.stft(x, 8)
    with pytest.raises(RuntimeError, match="overlap add is 0"):
        chainrule.istft(spectra, 8, hop_length=8, window=window, center=False)
    with pytest.raises(RuntimeError, match="size equal to win_length=8"):
        chainrule.stft(x, 8, window=window[:4], return_complex=True)
