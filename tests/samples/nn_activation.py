"""Records of the activation functions.

Inputs stay away from kinks, where differences say nothing.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.special as special
from samples.elementwise import apart
from samples.record import Sample, normal

__all__ = ["SAMPLES"]


def sample(name: str, args: Any, reference: Any = None, **options: Any) -> Sample:
    torch = options.pop("torch", f"nn.functional.{name}")
    return Sample(f"nn.functional.{name}", args, reference=reference, torch=torch, **options)


pieces = partial(sample, second_order=False)
own = partial(sample, torch="")  # PyTorch has none


def in_place(name: str, reference: Any, more: tuple[float, ...] = (), **options: Any) -> Sample:
    """On a copy: a leaf may not be changed in place."""
    args = lambda r: (*apart(3, 4)(r), *more)  # noqa: E731
    return sample(name, args, reference, prepare=lambda x, *rest: (x * 1, *rest), **options)


def with_weights(r: np.random.Generator) -> tuple[Any, ...]:
    return apart(2, 3, 4)(r)[0], r.uniform(0.1, 0.5, size=3)


def with_one_weight(r: np.random.Generator) -> tuple[Any, ...]:
    return apart(3, 4)(r)[0], r.uniform(0.1, 0.5, size=1)


def elu(x: Any, alpha: float = 1.0, scale: float = 1.0, rate: float = 1.0) -> Any:
    return scale * np.where(x > 0, x, alpha * np.expm1(rate * x))


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def gelu_tanh(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def soboleva_tanh(x: Any, a: float = 1, b: float = 1, c: float = 1, d: float = 1) -> Any:
    return (np.exp(a * x) - np.exp(-b * x)) / (np.exp(c * x) + np.exp(-d * x))


def with_shape_parameters(r: np.random.Generator) -> tuple[Any, ...]:
    return (r.normal(size=(3, 4)), *(np.array(r.uniform(0.5, 2)) for _ in range(4)))


SAMPLES: list[Sample] = [
    pieces("relu", apart(3, 4), lambda x: np.maximum(x, 0)),
    pieces("relu6", lambda r: (3 * apart(3, 4)(r)[0],), lambda x: np.clip(x, 0, 6)),
    pieces("leaky_relu", apart(3, 4), lambda x: np.where(x > 0, x, 0.01 * x)),
    pieces(
        "leaky_relu",
        apart(3, 4),
        lambda x, negative_slope: np.where(x > 0, x, 0.3 * x),
        kwargs={"negative_slope": 0.3},
        note="slope",
    ),
    sample("prelu", with_weights, lambda x, w: np.where(x > 0, x, w[:, None] * x)),
    sample("prelu", with_one_weight, lambda x, w: np.where(x > 0, x, w * x), note="one weight"),
    pieces("rrelu", apart(3, 4), lambda x: np.where(x > 0, x, 11 / 48 * x)),
    pieces(
        "threshold", lambda r: (*apart(3, 4)(r), 0.5, 7.0), lambda x, t, v: np.where(x > t, x, v)
    ),
    pieces("hardtanh", apart(3, 4), lambda x: np.clip(x, -1, 1)),
    # PyTorch's gradient uses 1/6 in float32.
    pieces("hardsigmoid", apart(3, 4), lambda x: np.clip(x + 3, 0, 6) / 6, torch=""),
    sample("hardswish", apart(3, 4), lambda x: x * np.clip(x + 3, 0, 6) / 6),
    pieces("hardshrink", apart(3, 4), lambda x: np.where(np.abs(x) > 0.5, x, 0)),
    pieces("softshrink", apart(3, 4), lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0)),
    sample("elu", apart(3, 4), elu),
    sample("elu", apart(3, 4), elu, kwargs={"alpha": 1.5}, note="alpha"),
    sample(
        "celu", apart(3, 4), lambda x, alpha: elu(x, alpha, 1.0, 1 / alpha), kwargs={"alpha": 2.0}
    ),
    sample("selu", apart(3, 4), lambda x: elu(x, 1.6732632423543772, 1.0507009873554805)),
    sample("softplus", normal(3, 4), lambda x: np.log1p(np.exp(x))),
    sample(
        "softplus",
        apart(3, 4),
        lambda x, beta, threshold: np.where(
            x * beta > threshold, x, np.log1p(np.exp(beta * x)) / beta
        ),
        kwargs={"beta": 2.0, "threshold": 3.0},
        note="beta",
    ),
    sample("mish", normal(3, 4), lambda x: x * np.tanh(np.log1p(np.exp(x)))),
    sample("silu", normal(3, 4), lambda x: x * sigmoid(x)),
    sample("gelu", normal(3, 4), lambda x: x * special.ndtr(x)),
    sample("gelu", normal(3, 4), gelu_tanh, kwargs={"approximate": "tanh"}, note="tanh"),
    sample("logsigmoid", normal(3, 4), lambda x: -np.log1p(np.exp(-x))),
    sample("tanhshrink", normal(3, 4), lambda x: x - np.tanh(x)),
    sample("softsign", apart(3, 4), lambda x: x / (1 + np.abs(x))),
    sample("softmax", normal(3, 4), lambda x, dim: special.softmax(x, axis=dim), kwargs={"dim": 1}),
    sample(
        "softmin", normal(3, 4), lambda x, dim: special.softmax(-x, axis=dim), kwargs={"dim": 0}
    ),
    sample(
        "log_softmax",
        normal(3, 4),
        lambda x, dim: special.log_softmax(x, axis=dim),
        kwargs={"dim": -1},
    ),
    sample("glu", normal(3, 4), lambda x: x[:, :2] * sigmoid(x[:, 2:])),
    sample(
        "glu", normal(4, 3), lambda x, dim: x[:2] * sigmoid(x[2:]), kwargs={"dim": 0}, note="dim"
    ),
    in_place("relu_", lambda x: np.maximum(x, 0), second_order=False),
    in_place("leaky_relu_", lambda x: np.where(x > 0, x, 0.01 * x), second_order=False),
    in_place("rrelu_", lambda x: np.where(x > 0, x, 11 / 48 * x), second_order=False),
    in_place("threshold_", lambda x, t, v: np.where(x > t, x, v), (0.5, 7.0), second_order=False),
    in_place("hardtanh_", lambda x: np.clip(x, -1, 1), second_order=False),
    in_place("elu_", elu),
    in_place("celu_", elu),
    in_place("selu_", lambda x: elu(x, 1.6732632423543772, 1.0507009873554805)),
    own("binary_step", apart(3, 4), lambda x: np.where(x < 0, 0.0, 1.0), second_order=False),
    own("lecun_tanh", normal(3, 4), lambda x: 1.7159 * np.tanh(2 * x / 3)),
    own("soboleva_tanh", normal(3, 4), soboleva_tanh),
    own("soboleva_tanh", with_shape_parameters, soboleva_tanh, note="learned"),
    own("gaussian", normal(3, 4), lambda x: np.exp(-x * x)),
]
