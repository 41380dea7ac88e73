"""bfloat16 as a type: what it is with ml_dtypes, and what is said without."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import chainrule
from chainrule.backend import dtypes

WITHOUT = """
import sys
sys.modules["ml_dtypes"] = None  # importing it fails
import io, json, struct
import chainrule as c

def refused(call):
    try:
        call()
    except ImportError as error:
        assert "pip install 'chainrule[bfloat16]'" in str(error), error
    else:
        raise AssertionError("not refused")

assert repr(c.bfloat16) == "chainrule.bfloat16"
assert c.bfloat16.itemsize == 2 and c.bfloat16.is_floating_point and not c.bfloat16.is_complex
assert c.promote_types(c.bfloat16, c.float16) is c.float32
assert c.finfo(c.bfloat16).eps == 2**-7
x = c.ones(2)
for call in (
    lambda: c.zeros(2, dtype=c.bfloat16),
    lambda: c.tensor([1.0], dtype="bfloat16"),
    lambda: c.randn(2, dtype=c.bfloat16),
    lambda: x.to(c.bfloat16),
    lambda: x.bfloat16(),
    lambda: x.view(c.bfloat16),
    lambda: c.nn.Linear(2, 1).bfloat16(),
    lambda: c.nn.Linear(2, 1).to(c.bfloat16),
    lambda: c.nn.Linear(2, 1, dtype=c.bfloat16),
    lambda: c.set_default_dtype(c.bfloat16),
):
    refused(call)
assert c.get_default_dtype() is c.float32
assert (x.half() + 1).tolist() == [2.0, 2.0]

header = json.dumps({"w": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}).encode()
content = struct.pack("<Q", len(header)) + header + struct.pack("<2H", 0x3FC0, 0xC010)
refused(lambda: c.load(io.BytesIO(content)))
assert c.load(io.BytesIO(content), dtype=c.float32)["w"].tolist() == [1.5, -2.25]
assert c.load(io.BytesIO(content), dtype=c.float64)["w"].dtype is c.float64
"""


def test_without_ml_dtypes_the_first_use_says_what_to_install() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_ml_dtypes_is_not_imported_before_it_is_needed() -> None:
    program = "import sys, chainrule as c; c.ones(2).half().sum(); c.bfloat16; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "ml_dtypes" not in done.stdout.split()


def test_the_type_is_one_object() -> None:
    pytest.importorskip("ml_dtypes")
    assert (
        chainrule.bfloat16 is dtypes.as_dtype("bfloat16") is dtypes.as_dtype("chainrule.bfloat16")
    )
    assert pickle.loads(pickle.dumps(chainrule.bfloat16)) is chainrule.bfloat16
    assert copy.deepcopy(chainrule.bfloat16) is chainrule.bfloat16
    with pytest.raises(AttributeError, match=r"bfloat16 has no attribute 'width'"):
        chainrule.bfloat16.width  # noqa: B018


def test_arrays_of_ml_dtypes() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a = np.array([1.5, -2.25], ml_dtypes.bfloat16)
    assert dtypes.as_dtype(a.dtype) is dtypes.as_dtype(ml_dtypes.bfloat16) is chainrule.bfloat16
    x = chainrule.from_numpy(a)
    assert x.dtype is chainrule.bfloat16
    assert x.numpy() is a
    assert np.asarray(x, dtype=np.float32).tolist() == [1.5, -2.25]
    assert chainrule.tensor(a).tolist() == [1.5, -2.25]
    with pytest.raises(TypeError, match="float8_e4m3fn"):
        chainrule.tensor(a.astype(ml_dtypes.float8_e4m3fn))


def test_an_array_from_elsewhere_is_a_first_use() -> None:
    pytest.importorskip("ml_dtypes")
    program = (
        "import numpy as np, ml_dtypes, chainrule as c\n"
        "x = c.from_numpy(np.full(4000, 0.1, ml_dtypes.bfloat16))\n"
        "print(x.sum().item(), x.softmax(0).dtype, c.cat([x, x]).dtype)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["400.0", "chainrule.bfloat16", "chainrule.bfloat16"]


def test_numbers_as_they_are_stored() -> None:
    pytest.importorskip("ml_dtypes")
    x = chainrule.tensor([1.0, 1 + 2**-8, 1 + 3 * 2**-8, 3.4e38, -0.0, float("nan")])
    b = x.bfloat16()
    assert repr(b[:3]) == "tensor([1.0000, 1.0000, 1.0156], dtype=chainrule.bfloat16)"
    assert b.view(chainrule.int16)[:5].tolist() == [0x3F80, 0x3F80, 0x3F82, 0x7F80, -0x8000]
    assert b.view(chainrule.int16).view(chainrule.bfloat16)[:4].equal(b[:4])
    assert b.isnan().tolist() == [False] * 5 + [True]
    assert (b.nbytes, b.type(), b.element_size()) == (12, "chainrule.BFloat16Tensor", 2)
    assert pickle.loads(pickle.dumps(b[:3])).equal(b[:3])
    assert isinstance(b, chainrule.BFloat16Tensor)
    assert chainrule.BFloat16Tensor([1, 2]).dtype is chainrule.bfloat16


def test_dlpack_passes_the_bits() -> None:
    pytest.importorskip("ml_dtypes")
    b = chainrule.tensor([1.5, -2.25]).bfloat16()
    with pytest.raises(BufferError, match=r"x\.view\(chainrule\.int16\)"):
        b.__dlpack__()
    with pytest.raises(BufferError, match="view the tensor as chainrule.bfloat16"):
        chainrule.from_dlpack(b)
    there = chainrule.from_dlpack(b.view(chainrule.int16)).view(chainrule.bfloat16)
    there[0] = 3.0
    assert b.tolist() == [3.0, -2.25]


def test_the_default_type() -> None:
    pytest.importorskip("ml_dtypes")
    chainrule.set_default_dtype(chainrule.bfloat16)
    try:
        assert chainrule.tensor([1.5]).dtype is chainrule.bfloat16
        assert chainrule.nn.Linear(2, 1).weight.dtype is chainrule.bfloat16
        assert (chainrule.tensor(1) / 2).dtype is chainrule.bfloat16
        assert repr(chainrule.ones(1)) == "tensor([1.])"
    finally:
        chainrule.set_default_dtype(chainrule.float32)


def test_random_numbers() -> None:
    pytest.importorskip("ml_dtypes")
    chainrule.manual_seed(0)
    u = chainrule.rand(20000, dtype=chainrule.bfloat16)
    assert u.dtype is chainrule.bfloat16
    assert 0 <= u.min().item() < 0.01
    assert 0.98 < u.max().item() < 1
    z = chainrule.randn(20000, dtype=chainrule.bfloat16).float()
    assert abs(z.mean().item()) < 0.03
    assert abs(z.std().item() - 1) < 0.03
    n = chainrule.empty(1000, dtype=chainrule.bfloat16).random_()
    assert 0 <= n.min().item() <= n.max().item() <= 256  # all integers up to there


def test_complex_numbers_of_bfloat16_are_refused() -> None:
    pytest.importorskip("ml_dtypes")
    x = chainrule.ones(2, dtype=chainrule.bfloat16)
    with pytest.raises(RuntimeError, match="complex: not implemented for bfloat16"):
        chainrule.complex(x, x)
    with pytest.raises(RuntimeError, match="unsupported dtype chainrule.bfloat16"):
        chainrule.fft.fft(x)
    assert (x + 1j).dtype is chainrule.complex64
