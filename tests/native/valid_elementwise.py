"""Random valid calls of the compiled elementwise kernels."""

from __future__ import annotations

import numpy as np

from native.drawing import Call, Draw, makes

__all__: list[str] = []


@makes(
    "abs",
    "atan",
    "ceil",
    "cos",
    "cosh",
    "exp",
    "expm1",
    "floor",
    "log",
    "log1p",
    "reciprocal",
    "rsqrt",
    "sign",
    "sin",
    "sinh",
    "tan",
    "isnan",
    "isinf",
    "isfinite",
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
    "sqrt",
)
def _unary(d: Draw, name: str) -> Call:
    return (d.array(*d.sizes()),), {}


@makes(
    "relu_backward",
    "tanh_backward",
    "sigmoid_backward",
    "softplus_backward",
    "silu_backward",
    "log_sigmoid_backward",
    "gelu_tanh_backward",
    "gelu_backward",
    "erf_backward",
    "binary_cross_entropy_with_logits",
)
def _binary(d: Draw, name: str) -> Call:
    shape = d.sizes()
    return (d.array(*shape), d.array(*shape)), {}


@makes("binary_cross_entropy_with_logits_backward")
def _ternary(d: Draw, name: str) -> Call:
    shape = d.sizes()
    return tuple(d.array(*shape) for _ in range(3)), {}


@makes("add", "sub", "mul", "div")
def _arithmetic(d: Draw, name: str) -> Call:
    shape = d.sizes()
    ones = tuple(d.pick(1, n) for n in shape)
    pair = d.pick((shape, shape), (shape, ()), ((), shape), (shape, ones), (ones[1:], shape))
    return tuple(d.array(*s) for s in pair), {}


@makes("eq", "ne", "lt", "le", "gt", "ge", "maximum", "minimum")
def _compared(d: Draw, name: str) -> Call:
    (a, b), _ = _arithmetic(d, name)
    if d.chance(0.3):
        number = d.pick(0, 1.5, a.dtype.type(1))
        return d.pick((a, number), (number, b)), {}
    if d.chance(0.3):  # many equal ones
        return (np.asarray(np.round(a)), np.asarray(np.round(b))), {}
    if d.chance(0.3):
        return (np.asarray(d.whole(3, *a.shape)), d.pick(d.whole(3, *b.shape), 2, np.int64(1))), {}
    return (a, b), {}


@makes("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor")
def _logic(d: Draw, name: str) -> Call:
    (a, b), _ = _arithmetic(d, name)
    return (np.asarray(a > 0), np.asarray(b > 0)), {}


@makes("logical_not", "bitwise_not")
def _not(d: Draw, name: str) -> Call:
    return (np.asarray(d.array(*d.sizes()) > 0),), {}


@makes("where")
def _where(d: Draw, name: str) -> Call:
    (a, b), _ = _arithmetic(d, name)
    condition = np.asarray(d.array(*d.pick(a.shape, b.shape, ())) > 0)
    if d.chance(0.3):
        return (condition, *d.pick((a, 0.0), (2, b))), {}
    if d.chance(0.2):
        return (condition, d.whole(9, *a.shape), d.whole(9, *b.shape)), {}
    return (condition, a, b), {}


@makes("clamp")
def _clamp(d: Draw, name: str) -> Call:
    a = d.array(*d.sizes())
    limits = [d.pick(None, d.number(), d.array(), d.array(*a.shape)) for _ in range(2)]
    return (a,), {"low": limits[0], "high": limits[1]}


@makes("pow")
def _pow(d: Draw, name: str) -> Call:
    a = np.asarray(abs(d.array(*d.sizes())))
    simple = d.pick(2, 2, 3, 0.5, 1, -1, 0, 1.7)
    if d.chance(0.3):
        return d.pick((d.array(*a.shape), simple), (2.0, a)), {}
    return (a, d.pick(np.asarray(simple, a.dtype), d.array(), d.array(*a.shape))), {}


@makes("squared_error", "squared_error_backward")
def _squared_error(d: Draw, name: str) -> Call:
    arrays, _ = _binary(d, name)
    g = (d.pick(d.array(), d.number()),) if "backward" in name else ()
    return (*g, *arrays, d.pick(1.0, 0.5, 2)), {}


@makes("elu", "elu_backward")
def _elu(d: Draw, name: str) -> Call:
    arrays, _ = _unary(d, name) if name == "elu" else _binary(d, name)
    return arrays, {"alpha": d.number(), "scale": d.number(), "rate": d.number()}


@makes("hardtanh_backward")
def _hardtanh(d: Draw, name: str) -> Call:
    arrays, _ = _binary(d, name)
    return (*arrays, d.number(), d.number()), {}


@makes("prelu", "prelu_backward")
def _prelu(d: Draw, name: str) -> Call:
    arrays, _ = _unary(d, name) if name == "prelu" else _binary(d, name)
    return (*arrays, d.pick(d.number(), d.array(), d.array(*arrays[0].shape))), {}
