"""What a tensor prints is what PyTorch prints, apart from the library's name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import chainrule
from chainrule import printing

torch = pytest.importorskip("torch")

DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
SHAPES = [
    (),
    (1,),
    (3,),
    (30,),
    (2, 3),
    (2, 1, 4),
    (2, 2, 2, 2),
    (0,),
    (0, 3),
    (1001,),
    (40, 40),
    (12, 2, 60),
    (1, 1200),
    (1200, 1),
    (5, 300),
]
KINDS = ["small integers", "integers", "decimals", "wide", "tiny", "huge", "special", "zeros"]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"precision": 2},
    {"profile": "short"},
    {"sci_mode": True},
    {"sci_mode": False},
    {"linewidth": 40},
    {"threshold": 5},
    {"edgeitems": 1, "threshold": 10},
    {"profile": "full"},
    {"edgeitems": 0, "threshold": 5},
]


@pytest.fixture(autouse=True)
def _default_options() -> Iterator[None]:
    yield
    for library in (torch, printing):
        library.set_printoptions(profile="default")


def numbers(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> np.ndarray:
    normal = rng.normal(size=shape)
    if kind == "small integers":
        return np.floor(normal * 3)
    if kind == "integers":
        return np.floor(normal * 10 ** rng.uniform(0, 6))
    if kind == "decimals":
        return normal * 10 ** rng.uniform(-2, 3)
    if kind == "wide":
        return normal * 10 ** rng.uniform(-6, 6, size=shape)
    if kind == "tiny":
        return normal * 1e-6
    if kind == "huge":
        return np.floor(normal * 1e10)
    if kind == "special":
        values = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 2.5])
        return rng.choice(values, size=shape)
    return np.zeros(shape)


def array(rng: np.random.Generator, shape: tuple[int, ...], kind: str, dtype: str) -> np.ndarray:
    values = numbers(rng, shape, kind)
    if dtype.startswith("complex"):
        parts = values, numbers(rng, shape, kind)
        values = np.empty(shape, complex)
        values.real, values.imag = parts
    if np.dtype(dtype).kind in "biu":
        values = np.clip(np.nan_to_num(values), 0 if dtype == "uint8" else -100, 100)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(values).astype(dtype)


def on_one_line(text: str) -> str:
    """The suffixes behind the numbers without line breaks: our name is longer than PyTorch's."""
    return re.sub(r",\n +(?=dtype=)", ", ", text).replace("torch.", "chainrule.")


def assert_prints_alike(ours: Any, theirs: Any) -> None:
    assert on_one_line(repr(ours)) == on_one_line(repr(theirs))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_all_types_and_shapes(dtype: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(len(shape))
    for kind in KINDS:
        a = array(rng, shape, kind, dtype)
        assert_prints_alike(chainrule.tensor(a), torch.tensor(a))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_all_options(options: dict[str, Any]) -> None:
    rng = np.random.default_rng(1)
    for library in (printing, torch):
        library.set_printoptions(**options)
    for dtype in ("int64", "float32", "complex64"):
        for shape in ((), (7,), (40,), (3, 8), (8, 3, 2), (1100,)):
            for kind in KINDS:
                a = array(rng, shape, kind, dtype)
                assert_prints_alike(chainrule.tensor(a), torch.tensor(a))


@pytest.mark.parametrize("width", [30, 79, 80, 81])
def test_suffixes_break_where_the_line_is_full(width: int) -> None:
    for library in (printing, torch):
        library.set_printoptions(linewidth=width)
    for n in range(1, 30):
        a = np.linspace(0, 1, n, dtype=np.float32)
        ours = chainrule.tensor(a, requires_grad=True)
        theirs = torch.tensor(a, requires_grad=True)
        assert repr(ours) == repr(theirs)
        history = repr(theirs * 2)
        if "\n" not in history:  # our names are one character shorter
            assert repr(ours * 2) == history.replace("MulBackward0", "MulBackward")


def test_default_dtype_is_not_named() -> None:
    ours, theirs = chainrule.ones(2, dtype=chainrule.float64), torch.ones(2, dtype=torch.float64)
    assert_prints_alike(ours, theirs)
    chainrule.set_default_dtype(chainrule.float64)
    torch.set_default_dtype(torch.float64)
    try:
        for d in ("float64", "float32", "complex128", "complex64"):
            a = np.ones(2, d)
            assert_prints_alike(chainrule.tensor(a), torch.tensor(a))
    finally:
        torch.set_default_dtype(torch.float32)


def test_the_options_are_the_same() -> None:
    for options in OPTIONS:
        for library in (printing, torch):
            library.set_printoptions(profile="default")
            library.set_printoptions(**options)
        assert printing.get_printoptions() == torch._tensor_str.get_printoptions()
