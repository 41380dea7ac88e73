"""The type of a result, for every pair of types and every kind of operand, against PyTorch."""

from __future__ import annotations

import itertools
import operator
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from helpers import case
from samples import BY_FAMILY

import chainrule
from chainrule.backend.dtypes import DTYPES

torch = pytest.importorskip("torch")

NAMES = [d.name for d in DTYPES]
SHAPES = {"tensor": (2,), "no dimensions": ()}
NUMBERS = {"bool": True, "int": 2, "float": 2.5, "complex": 1 + 2j}


def tensor(library: Any, name: str, shape: tuple[int, ...]) -> Any:
    """A tensor of ones of this type."""
    return library.ones(shape, dtype=getattr(library, name))


def function(name: str) -> Callable[..., Any]:
    return lambda library, *operands: getattr(library, name)(*operands)


# Every operation as a function of the library and the operands.
OPERATORS: dict[str, Callable[..., Any]] = {
    symbol: lambda library, a, b, f=f: f(a, b)
    for symbol, f in {
        "+": operator.add,
        "-": operator.sub,
        "*": operator.mul,
        "/": operator.truediv,
        "//": operator.floordiv,
        "%": operator.mod,
        "**": operator.pow,
        "==": operator.eq,
        "<": operator.lt,
        "&": operator.and_,
    }.items()
} | {
    "where": lambda t, a, b: t.where(tensor(t, "bool", (2,)), a, b),
    "result_type": lambda t, a, b: t.zeros(1, dtype=t.result_type(a, b)),
}
FUNCTIONS = {
    name: function(name)
    for name in (
        "add",
        "sub",
        "mul",
        "div",
        "true_divide",
        "floor_divide",
        "remainder",
        "fmod",
        "pow",
        "atan2",
        "hypot",
        "maximum",
        "minimum",
        "fmax",
        "fmin",
        "logaddexp",
        "logaddexp2",
        "xlogy",
        "copysign",
        "heaviside",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "logical_and",
        "logical_or",
        "logical_xor",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "bitwise_left_shift",
        "bitwise_right_shift",
    )
}


def outcome(library: Any, call: Callable[..., Any], *operands: Any) -> str:
    """The type of the result, or of the error."""
    try:
        out = call(library, *operands)
    except TypeError:
        return "TypeError"
    except RuntimeError:  # or NotImplementedError, which PyTorch raises where it has no kernel
        return "RuntimeError"
    return str(out.dtype).rpartition(".")[2] if hasattr(out, "dtype") else type(out).__name__


def differ_on_purpose(operation: str, *types: str) -> bool:
    """What is left out of the comparison, and why."""
    has_complex = any(t.startswith("complex") for t in types)
    if "float16" in types and has_complex:
        return True  # PyTorch makes it complex32, which NumPy does not have
    if operation == "heaviside" and types[0] != types[1]:
        return True  # PyTorch refuses different types; ours are promoted
    return operation == "**" and set(types) == {"bool"}  # PyTorch: refused or bool, by the operand


def assert_same(operation: str, call: Callable[..., Any], pairs: Iterator[Any]) -> None:
    found = []
    for types, label, make in pairs:
        if differ_on_purpose(operation, *types):
            continue
        ours, theirs = (outcome(library, call, *make(library)) for library in (chainrule, torch))
        if ours != theirs:
            found.append(f"{label}: {ours}, in PyTorch {theirs}")
    assert not found, "\n".join(found)


def tensor_pairs() -> Iterator[Any]:
    kinds = list(itertools.product(SHAPES.items(), NAMES))
    for ((kind_a, shape_a), a), ((kind_b, shape_b), b) in itertools.product(kinds, repeat=2):

        def make(library: Any, a: Any = (a, shape_a), b: Any = (b, shape_b)) -> Any:
            return tensor(library, *a), tensor(library, *b)

        yield (a, b), f"{a} ({kind_a}), {b} ({kind_b})", make


def number_pairs() -> Iterator[Any]:
    for ((kind, shape), name), (label, number) in itertools.product(
        itertools.product(SHAPES.items(), NAMES), NUMBERS.items()
    ):

        def last(library: Any, a: Any = (name, shape), number: Any = number) -> Any:
            return tensor(library, *a), number

        def first(library: Any, a: Any = (name, shape), number: Any = number) -> Any:
            return number, tensor(library, *a)

        yield (name, label), f"{name} ({kind}), {label}", last
        yield (name, label), f"{label}, {name} ({kind})", first


@pytest.mark.parametrize("operation", OPERATORS | FUNCTIONS)
def test_two_tensors(operation: str) -> None:
    assert_same(operation, (OPERATORS | FUNCTIONS)[operation], tensor_pairs())


@pytest.mark.parametrize("operation", OPERATORS)
def test_tensor_and_number(operation: str) -> None:
    assert_same(operation, OPERATORS[operation], number_pairs())


# --- one operand ----------------------------------------------------------------------------------

UNARY = sorted(
    {
        s.name
        for s in BY_FAMILY["elementwise"]
        if len(case(s).args) == 1 and s.name != "clamp" and hasattr(torch, s.name)
    }
)
# Types that one library takes and the other refuses.
REFUSED_BY_ONE = {
    "deg2rad": "complex",
    "rad2deg": "complex",
    "logit": "complex",
    "sigmoid": "complex",
    "sign": "bool",
    "sgn": "bool",
    "square": "bool",
}


@pytest.mark.parametrize("operation", UNARY)
def test_one_tensor(operation: str) -> None:
    found = []
    for name in NAMES:
        if operation in REFUSED_BY_ONE and name.startswith(REFUSED_BY_ONE[operation]):
            continue
        ours, theirs = (
            outcome(library, function(operation), tensor(library, name, (2,)))
            for library in (chainrule, torch)
        )
        if ours != theirs:
            found.append(f"{name}: {ours}, in PyTorch {theirs}")
    assert not found, "\n".join(found)


def test_promote_types() -> None:
    for a, b in itertools.product(NAMES, repeat=2):
        if not differ_on_purpose("promote_types", a, b):
            ours, theirs = (
                library.promote_types(getattr(library, a), getattr(library, b))
                for library in (chainrule, torch)
            )
            assert str(theirs) == f"torch.{ours.name}", (a, b)


# --- values where types meet ----------------------------------------------------------------------


def of(library: Any, dtype: str, *values: Any) -> Any:
    array = np.array(values, dtype=dtype)
    return chainrule.as_tensor(array) if library is chainrule else torch.from_numpy(array)


VALUES: dict[str, Callable[[Any], Any]] = {
    "wraps around": lambda t: of(t, "int8", 1) + 200,
    "wraps in a comparison": lambda t: of(t, "int8", 1) < 200,
    "unsigned": lambda t: of(t, "uint8", 1) - 2,
    "unsigned times -1": lambda t: of(t, "uint8", 1) * -1,
    "large": lambda t: of(t, "int64", 1) + 2**40,
    "too large": lambda t: of(t, "int32", 1) + 2**40,
    "overflow": lambda t: of(t, "float32", 1) + 1e300,
    "overflow of half": lambda t: of(t, "float16", 1) + 1e5,
    "integers divided": lambda t: of(t, "int64", 1, -1) / 0,
    "integers to integers": lambda t: of(t, "int64", 1, -1, 2) ** of(t, "int64", -1, -1, -1),
    "number to integers": lambda t: 2 ** of(t, "int64", -1, 3),
    "root of integers": lambda t: of(t, "int64", 4) ** 0.5,
    "by minus zero": lambda t: of(t, "float32", 1) / -0.0,
    "by zero": lambda t: of(t, "float32", 1) / 0.0,
    "times minus zero": lambda t: 1 / (of(t, "float32", 1) * -0.0),
    "plus nan": lambda t: of(t, "float32", 1) + float("nan"),
    "minus inf": lambda t: of(t, "float32", 1) - float("inf"),
    "bool plus 1": lambda t: of(t, "bool", True) + 1,
    "bool plus True": lambda t: of(t, "bool", True) + True,
    "NumPy's float32": lambda t: of(t, "float32", 1) * np.float32(2),
    "NumPy's float64": lambda t: of(t, "float32", 1) * np.float64(2),
    "NumPy's float64 first": lambda t: np.float64(2) * of(t, "float32", 1),
    "number // float": lambda t: 5 // of(t, "float32", 2, -2),
    "number % float": lambda t: 5 % of(t, "float32", 3, -3),
    "number // integer": lambda t: -7 // of(t, "int64", 2),
    "shift of a number": lambda t: 1 << of(t, "int64", 2),
    "shift of a negative": lambda t: of(t, "int64", -5) >> 1,
    "clamp integers by floats": lambda t: t.clamp(of(t, "int64", 1, 5), 0.5, 2.5),
    "clamp nan": lambda t: t.clamp(of(t, "float32", np.nan, 5), 0.5, 2.5),
    "clamp turned round": lambda t: t.clamp(of(t, "float32", 0, 5), 3.0, 1.0),
    "where": lambda t: t.where(of(t, "bool", True, False), of(t, "int64", 1, 2), 0.5),
    "where of numbers": lambda t: t.where(of(t, "bool", True, False), 1.0, 0),
    "alpha": lambda t: t.add(of(t, "int64", 1), of(t, "int64", 1), alpha=2),
    "halves": lambda t: t.round(of(t, "float32", 0.5, 1.5, 2.5, -0.5)),
    "decimals": lambda t: t.round(of(t, "float64", 15.2, 2.567), decimals=-1),
    "floor of integers": lambda t: t.div(of(t, "int64", -7), 2, rounding_mode="floor"),
    "trunc of integers": lambda t: t.div(of(t, "int64", -7), 2, rounding_mode="trunc"),
    "floor_divide": lambda t: of(t, "float32", -7, 7) // of(t, "float32", 2, -2),
    "remainder": lambda t: of(t, "float32", -7, 7) % of(t, "float32", 2, -2),
    "fmod": lambda t: t.fmod(of(t, "float32", -7, 7), of(t, "float32", 2, -2)),
    "reciprocal of integers": lambda t: t.reciprocal(of(t, "int64", 4)),
    "equal to None": lambda t: of(t, "float32", 2) == None,  # noqa: E711
    "equal to a string": lambda t: of(t, "float32", 2) == "a",
    "builtin round": lambda t: round(of(t, "float32", 2.567), 2),
    "builtin abs": lambda t: abs(of(t, "float32", -5)),
    "integer division by zero": lambda t: of(t, "int64", 1) // 0,
    "integer remainder by zero": lambda t: of(t, "int64", 1) % of(t, "int64", 0),
    "integers to -1": lambda t: of(t, "int64", 2) ** -1,
    "a list as operand": lambda t: of(t, "float32", 2) * [1.0],
    "less than a string": lambda t: of(t, "float32", 2) < "a",
    "alpha of integers": lambda t: t.add(of(t, "int64", 1), of(t, "int64", 1), alpha=0.5),
    "in place to float": lambda t: of(t, "int64", 2).__itruediv__(2),
}


@pytest.mark.parametrize("name", VALUES)
def test_values(name: str) -> None:
    results = []
    for library in (chainrule, torch):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                out = VALUES[name](library)
        except (RuntimeError, TypeError) as error:
            results.append(type(error).__name__)
        else:
            dtype = str(getattr(out, "dtype", type(out))).rpartition(".")[2]
            results.append((dtype, repr(out.tolist()) if hasattr(out, "tolist") else out))
    assert results[0] == results[1]
