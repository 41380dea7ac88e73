"""Functions of single elements."""

from __future__ import annotations

import math

from chainrule.onnx.site import Made, Rule, Site

__all__ = ["RULES", "binary_inputs"]

# --- of one input ---------------------------------------------------------------------------------

UNARY = {
    "abs": "Abs",
    "acos": "Acos",
    "acosh": "Acosh",
    "asin": "Asin",
    "asinh": "Asinh",
    "atan": "Atan",
    "atanh": "Atanh",
    "ceil": "Ceil",
    "checked_indices": "Identity",
    "clone": "Identity",
    "cos": "Cos",
    "cosh": "Cosh",
    "erf": "Erf",
    "exp": "Exp",
    "floor": "Floor",
    "isinf": "IsInf",
    "isnan": "IsNaN",
    "log": "Log",
    "logical_not": "Not",
    "neg": "Neg",
    "reciprocal": "Reciprocal",
    "relu": "Relu",
    "sigmoid": "Sigmoid",
    "sign": "Sign",
    "sin": "Sin",
    "sinh": "Sinh",
    "softplus": "Softplus",
    "sqrt": "Sqrt",
    "tan": "Tan",
    "tanh": "Tanh",
}


def _unary(kind: str) -> Rule:
    def rule(s: Site) -> Made:
        if kind in ("Floor", "Ceil") and s.integer_type():
            return s.add("Identity", s.x())
        return s.add(kind, s.x())

    return rule


def _logarithm(base: float) -> Rule:
    return lambda s: s.add("Div", s.add("Log", s.x()), s.number_of(math.log(base)))


def _gelu(s: Site) -> Made:
    inner = s.add("Erf", s.add("Div", s.x(), s.number_of(math.sqrt(2))))
    half = s.add("Mul", s.x(), s.number_of(0.5))
    return s.add("Mul", half, s.add("Add", inner, s.number_of(1.0)))


def _gelu_tanh(s: Site) -> Made:
    cube = s.add("Mul", s.add("Mul", s.x(), s.x()), s.x())
    inner = s.add("Add", s.x(), s.add("Mul", cube, s.number_of(0.044715)))
    bent = s.add("Tanh", s.add("Mul", inner, s.number_of(math.sqrt(2 / math.pi))))
    half = s.add("Mul", s.x(), s.number_of(0.5))
    return s.add("Mul", half, s.add("Add", bent, s.number_of(1.0)))


def _elu(s: Site) -> Made:
    """scale * x above 0, scale * alpha * (exp(rate x) - 1) below; exp sees no large numbers."""
    alpha, scale, rate = s.param("alpha"), s.param("scale"), s.param("rate")
    zero = s.number_of(0.0)
    below = s.add("Mul", s.add("Min", s.x(), zero), s.number_of(rate))
    below = s.add("Sub", s.add("Exp", below), s.number_of(1.0))
    below = s.add("Mul", below, s.number_of(alpha * scale))
    return s.add("Add", s.add("Mul", s.add("Max", s.x(), zero), s.number_of(scale)), below)


def _clip(s: Site) -> Made:
    """Limits that are not there are left out."""
    limits = []
    for key in ("low", "high"):
        values = s.many(key)
        limits.append("" if values[0] is None else s.graph.number(values, s.dtype, s.what))
    if s.dtype.is_floating_point:
        return s.add("Clip", s.x(), *(limits if limits[1] else limits[:1]))
    found = s.x()  # of integers ONNX's own is not everywhere
    for kind, limit in zip(("Max", "Min"), limits, strict=True):
        found = s.add(kind, found, limit) if limit else found
    return found


def _cast(s: Site) -> Made:
    return s.graph.cast(s.x(), s.dtype)


def _not(s: Site) -> Made:
    return s.add("Not" if s.boolean() else "BitwiseNot", s.x())


def _finite(s: Site) -> Made:
    return s.add("Not", s.add("Or", s.add("IsNaN", s.x()), s.add("IsInf", s.x())))


def _trunc(s: Site) -> Made:
    return s.add("Mul", s.add("Sign", s.x()), s.add("Floor", s.add("Abs", s.x())))


def _round(s: Site) -> Made:
    if s.param("decimals", 0):
        s.fail("Round of ONNX rounds to whole numbers only")
    return s.add("Round", s.x())


# --- of two ---------------------------------------------------------------------------------------

BINARY = {
    "add": "Add",
    "div": "Div",
    "eq": "Equal",
    "ge": "GreaterOrEqual",
    "gt": "Greater",
    "le": "LessOrEqual",
    "logical_and": "And",
    "logical_or": "Or",
    "logical_xor": "Xor",
    "lt": "Less",
    "maximum": "Max",
    "minimum": "Min",
    "mul": "Mul",
    "pow": "Pow",
    "sub": "Sub",
}
BITWISE = {
    "bitwise_and": ("And", "BitwiseAnd"),
    "bitwise_or": ("Or", "BitwiseOr"),
    "bitwise_xor": ("Xor", "BitwiseXor"),
}


def binary_inputs(s: Site) -> tuple[str, str]:
    """Both operands; one of them may be a Python number, which is no input of the operation."""
    if s.count == 2:
        return s.x(0), s.x(1)
    number = s.graph.number(s.many("number"), s.input_dtype(), s.what)
    return (s.x(), number) if s.step.op.side == 0 else (number, s.x())


def _binary(kind: str) -> Rule:
    return lambda s: s.add(kind, *binary_inputs(s))


def _bitwise(kinds: tuple[str, str]) -> Rule:
    return lambda s: s.add(kinds[0] if s.boolean() else kinds[1], *binary_inputs(s))


def _ne(s: Site) -> Made:
    return s.add("Not", s.add("Equal", *binary_inputs(s)))


def _prelu(s: Site) -> Made:
    x, slope = binary_inputs(s)
    zero = s.number_of(0.0)
    below = s.add("Mul", s.add("Min", x, zero), slope)
    return s.add("Add", s.add("Max", x, zero), below)


def _floor_divide(s: Site) -> Made:
    found = s.add("Div", *binary_inputs(s))
    if s.integer_type():
        s.fail("Div of ONNX rounds integers towards zero; convert to float first")
    return s.add("Floor", found)


def _remainder(s: Site) -> Made:
    x, y = binary_inputs(s)
    if s.integer_type():
        return s.add("Mod", x, y)
    return s.add("Sub", x, s.add("Mul", s.add("Floor", s.add("Div", x, y)), y))


def _logaddexp(s: Site) -> Made:
    x, y = binary_inputs(s)
    distance = s.add("Neg", s.add("Abs", s.add("Sub", x, y)))
    return s.add("Add", s.add("Max", x, y), s.add("Softplus", distance))


def _where(s: Site) -> Made:
    parts = [s.as_type(s.x(i), s.input_dtype(i), s.dtype) for i in (1, 2)]
    return s.add("Where", s.x(0), *parts)


RULES: dict[str, Rule] = {
    **{name: _unary(kind) for name, kind in UNARY.items()},
    **{name: _binary(kind) for name, kind in BINARY.items()},
    **{name: _bitwise(kinds) for name, kinds in BITWISE.items()},
    "bitwise_not": _not,
    "cast": _cast,
    "cast_to_integer": _cast,
    "clamp": _clip,
    "elu": _elu,
    "erfc": lambda s: s.add("Sub", s.number_of(1.0), s.add("Erf", s.x())),
    "exp2": lambda s: s.add("Exp", s.add("Mul", s.x(), s.number_of(math.log(2)))),
    "expm1": lambda s: s.add("Sub", s.add("Exp", s.x()), s.number_of(1.0)),
    "floor_divide": _floor_divide,
    "fmod": lambda s: s.add("Mod", *binary_inputs(s), fmod=1),
    "frac": lambda s: s.add("Sub", s.x(), str(_trunc(s))),
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "hardtanh": _clip,
    "isfinite": _finite,
    "isneginf": lambda s: s.add("IsInf", s.x(), detect_positive=0),
    "isposinf": lambda s: s.add("IsInf", s.x(), detect_negative=0),
    "log10": _logarithm(10),
    "log1p": lambda s: s.add("Log", s.add("Add", s.x(), s.number_of(1.0))),
    "log2": _logarithm(2),
    "log_sigmoid": lambda s: s.add("Neg", s.add("Softplus", s.add("Neg", s.x()))),
    "logaddexp": _logaddexp,
    "ne": _ne,
    "prelu": _prelu,
    "remainder": _remainder,
    "round": _round,
    "rsqrt": lambda s: s.add("Reciprocal", s.add("Sqrt", s.x())),
    "silu": lambda s: s.add("Mul", s.x(), s.add("Sigmoid", s.x())),
    "square": lambda s: s.add("Mul", s.x(), s.x()),
    "trunc": _trunc,
    "where": _where,
}
