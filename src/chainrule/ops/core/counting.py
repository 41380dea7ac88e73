"""How much an operation computes, from the shapes of what went in and came out.

A multiply-add is a product that is added to a sum: the inner step of products of matrices,
convolutions and recurrences, and what is meant by the cost of a layer. FLOPs count all arithmetic:

- a multiply-add is two; a sum of n terms has n additions, since it starts from zero;
- any function of one element (a sum, ``exp``, a comparison) is one;
- what moves, chooses or orders elements computes nothing;
- products with the zeros of a padding count, and so do steps after the end of a shorter sequence.

Factorizations are counted by the leading term of the usual algorithm (Golub and Van Loan), Fourier
transforms as 5 n log2 n. Where the number depends on the values (eigenvalues, say) the cost is
unknown, and :func:`cost_of` says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from chainrule.ops.core.primitive import Elementwise, Op
from chainrule.tensor import Tensor

__all__ = ["COMPOSED", "Cost", "RULES", "UNKNOWN", "cost_of", "has_rule", "is_elementwise"]


class Cost(NamedTuple):
    """What was computed: multiply-adds, and all operations on numbers (with two for each)."""

    macs: int
    flops: int

    def __add__(self, other: object) -> Cost:
        if not isinstance(other, Cost):
            return NotImplemented
        return Cost(self.macs + other.macs, self.flops + other.flops)


NOTHING = Cost(0, 0)
Tensors = Sequence[Tensor]
Rule = Callable[[Tensors, dict[str, Any], Tensors], Cost]
RULES: dict[str, Rule] = {}
# What is made of operations that are seen themselves: a part written in place, a checkpoint.
COMPOSED = frozenset({"overlay", "checkpoint"})
# The number of operations depends on the values: these iterate until a result is exact enough.
UNKNOWN = frozenset(
    {
        "ctc_log_likelihood",
        "eig",
        "eigh",
        "eigvals",
        "eigvalsh",
        "matrix_exp",
        "pinv",
        "svd",
        "svdvals",
    }
)


def cost_of(op: Op, inputs: Tensors, params: dict[str, Any], outputs: Tensors) -> Cost | None:
    """The cost of an operation that ran, None if it is not known."""
    rule = RULES.get(op.name)
    if rule is not None:
        return rule(inputs, params, outputs)
    if op.is_view or op.takes_tensors or op.name in COMPOSED:
        return NOTHING
    if is_elementwise(op):
        return _each(outputs)
    return None


def has_rule(op: Op) -> bool:
    """Whether :func:`cost_of` knows what an operation costs."""
    known = op.name in RULES or op.name in COMPOSED
    return known or op.is_view or op.takes_tensors or is_elementwise(op)


def is_elementwise(op: Any) -> bool:
    """Whether it works on each element; on complex numbers and in half precision the operation
    stands inside another."""
    return isinstance(op, Elementwise) or isinstance(getattr(op, "op", None), Elementwise)


# --- what rules are made of -----------------------------------------------------------------------


def _of(macs: int, more: int = 0) -> Cost:
    return Cost(macs, 2 * macs + more)


def _flops(count: float) -> Cost:
    return Cost(0, round(count))


def _each(tensors: Tensors, times: int = 1) -> Cost:
    return _flops(times * sum(t.numel() for t in tensors))


def _per_input(times: int = 1, per_output: int = 0) -> Rule:
    """So many operations for each element of the first input, and of the first output."""
    return lambda x, p, out: _flops(times * x[0].numel() + per_output * out[0].numel())


def _per_output(times: int = 1) -> Rule:
    return lambda x, p, out: _flops(times * out[0].numel())


def _nothing(inputs: Tensors, params: dict[str, Any], outputs: Tensors) -> Cost:
    return NOTHING


def _rules(rule: Rule, names: str) -> None:
    for name in names.split():
        RULES[name] = rule


def _lines(x: Tensor, dim: int | Sequence[int]) -> int:
    """How many lines (or planes) there are along dimensions."""
    dims = (dim,) if isinstance(dim, int) else dim
    return x.numel() // max(1, math.prod([x.shape[d] for d in dims]))


# --- elements that move, are chosen or ordered ----------------------------------------------------

_rules(
    _nothing,
    """
    arrange as_strided_place cast cast_to_integer cat checked_indices clone complex diagonal_place
    first_zero flip gather im2col index index_put inverse_order isin kthvalue lu_rows mask_place
    mask_select median median_along mode_along nonzero one_hot_classes pad_zeros
    pick_with_replacement pick_without_replacement pool_gather pool_scatter scatter searchsorted
    shift_along sparse_rows time_steps topk triangle unique unique_consecutive argsort
    """,
)

# --- many numbers to few, and running values ------------------------------------------------------

_rules(_per_input(), "sum sum_to prod all any count_nonzero bincount histc")
_rules(_per_input(), "amax amin argmax argmin max_along min_along")
_rules(_per_input(), "cumsum cumprod cummax cummin col2im unfold_place conj complex_abs")
_rules(_per_input(), "index_place gather_place scatter_product scatter_extreme")
_rules(_per_input(1, 1), "mean")
_rules(_per_input(4, 2), "var logsumexp")
_rules(_per_input(4, 3), "std")
_rules(_per_input(3, 1), "pnorm squared_error")
_rules(_per_input(4), "logcumsumexp")
_rules(_per_output(), "random_binomial random_poisson random_von_mises")
_rules(_per_output(3), "cross")
RULES["linear_scan"] = lambda x, p, out: _of(out[0].numel())

# --- softmax, losses, normalization ---------------------------------------------------------------

# The largest, the difference, exp, the sum and the quotient (or the difference with its logarithm).
RULES["softmax"] = _per_input(5)
RULES["log_softmax"] = lambda x, p, out: _flops(5 * x[0].numel() + _lines(x[0], p["dim"]))
RULES["cross_entropy"] = lambda x, p, out: _flops(5 * x[0].numel() + 3 * x[1].numel())
RULES["negative_log_likelihood"] = lambda x, p, out: _flops(2 * x[1].numel())


def _normalize(x: Tensors, params: dict[str, Any], out: Tensors) -> Cost:
    """Mean, deviation, square, mean of squares, eps, root and product; then weight and bias."""
    n, lines = x[0].numel(), _lines(x[0], params["dim"])
    own = 5 * n + 4 * lines if params["center"] else 3 * n + 3 * lines
    return _flops(own + (len(x) - 1) * n)


RULES["normalize"] = _normalize

# --- windows --------------------------------------------------------------------------------------


def _windowed(more: int) -> Rule:
    return lambda x, p, out: _flops(out[0].numel() * (math.prod(p["kernel"]) + more))


def _adaptive(x: Tensors, params: dict[str, Any], out: Tensors) -> Cost:
    """The windows from floor(i n / m) to ceil((i + 1) n / m), of n inputs and m outputs."""
    sizes = params["size"]
    seen = math.prod(
        sum(-(-(i + 1) * n // m) - i * n // m for i in range(m))
        for n, m in zip(x[0].shape[-len(sizes) :], sizes, strict=True)
    )
    return _flops(_lines(x[0], range(-len(sizes), 0)) * seen + out[0].numel())


RULES["avg_pool"] = _windowed(1)
RULES["max_pool_indices"] = _windowed(0)
_rules(_adaptive, "adaptive_avg_pool adaptive_max_pool_indices")
RULES["avg_pool_transpose"] = lambda x, p, out: _flops(x[0].numel() * (math.prod(p["kernel"]) + 1))
RULES["adaptive_avg_pool_transpose"] = lambda x, p, out: _adaptive(
    out, {"size": x[0].shape[-len(p["size"]) :]}, x
)

# --- products -------------------------------------------------------------------------------------


def _linear(x: Tensors, params: dict[str, Any], out: Tensors) -> Cost:
    bias = out[0].numel() if len(x) > 2 else 0
    return _of(out[0].numel() * x[1].shape[-1], bias)


def _activated(x: Tensors, params: dict[str, Any], out: Tensors) -> Cost:
    return _linear(x, params, out) + _each(out)


RULES["linear"] = _linear
_rules(_activated, "linear_relu linear_sigmoid linear_tanh")
RULES["matmul"] = lambda x, p, out: _of(out[0].numel() * (x[0].shape[-1] if x[0].ndim else 1))


def _attention(x: Tensors, params: dict[str, Any], out: Tensors) -> Cost:
    """Products with keys and values, the scale (of the queries), a mask and the softmax."""
    n, length, heads, d = x[0].shape
    scores = n * heads * length * x[1].shape[1]
    more = x[0].numel() + (len(x) - 3 + 5) * scores
    return _of(scores * (d + x[2].shape[-1]), more)


def _bag_rows(x: Tensors, params: dict[str, Any], out: Tensors) -> Cost:
    """Each row named is added, or compared; first it is multiplied by its weight."""
    count, features = x[1].numel(), x[0].shape[-1]
    weighted = len(x) > 2 + params["offset"]
    more = out[0].numel() if params["mode"] == "mean" else 0
    return _of(count * features, more) if weighted else _flops(count * features + more)


RULES["attention"] = _attention
RULES["bag_rows"] = _bag_rows
RULES["sparse_product"] = lambda x, p, out: _of(x[0].numel() * x[1].shape[-1])
RULES["sparse_sampled"] = lambda x, p, out: _of(out[0].numel() * x[0].shape[-1])


def _convolution(y: Tensor, w: Tensor) -> int:
    """Each output (of a transposed convolution, each input) meets a whole kernel per channel."""
    return y.shape[0] * math.prod(y.shape[2:]) * w.numel()


RULES["convolution"] = lambda x, p, out: _of(_convolution(out[0], x[1]))
RULES["biased_convolution"] = lambda x, p, out: _of(_convolution(out[0], x[1]), out[0].numel())
RULES["convolution_input"] = lambda x, p, out: _of(_convolution(x[0], x[1]))
RULES["convolution_weight"] = lambda x, p, out: _of(_convolution(x[1], out[0]))

# --- recurrent layers: products with the state, and so many operations for each unit and step -----


def _recurrent(weight: int, per_unit: int) -> Rule:
    """``weight`` is the position of the weights of the state among the inputs."""

    def rule(x: Tensors, params: dict[str, Any], out: Tensors) -> Cost:
        steps, w = x[0].shape[0] * x[0].shape[1], x[weight]
        units = out[0].shape[-1]
        return _of(steps * w.numel(), per_unit * steps * units)

    return rule


def _lstm(x: Tensors, params: dict[str, Any], out: Tensors) -> Cost:
    """4 sums, 4 activations, f c + i g, tanh, and the product with the output gate."""
    steps, (projected, cells) = x[0].shape[0] * x[0].shape[1], (params["projected"], out[1])
    weights = x[3].numel() + (x[4].numel() if projected else 0)
    return _of(steps * weights, 13 * cells.numel())


def _peephole(x: Tensors, params: dict[str, Any], out: Tensors) -> Cost:
    """An LSTM, and three looks at the cell: products with a matrix, or with a number each."""
    steps, cells = x[0].shape[0] * x[0].shape[1], out[1].numel()
    looks = sum(v.numel() for v in x[4:7]) if params["full"] else 0
    own = 3 if params["full"] else 6
    return _of(steps * (x[3].numel() + looks), (13 + own) * cells)


def _deep_rnn(x: Tensors, params: dict[str, Any], out: Tensors) -> Cost:
    """Each layer: a product, the sum with the input or the bias, and the activation."""
    steps = x[0].shape[0] * x[0].shape[1]
    weights = [x[2], *x[3 : 3 + 2 * params["layers"] : 2]]
    return _of(
        steps * sum(w.numel() for w in weights), 2 * steps * sum(w.shape[0] for w in weights)
    )


def _conv_recurrent(weight: int, per_unit: int) -> Rule:
    def rule(x: Tensors, params: dict[str, Any], out: Tensors) -> Cost:
        places = math.prod(x[0].shape[3:])
        steps = x[0].shape[0] * x[0].shape[1]
        return _of(steps * places * x[weight].numel(), per_unit * out[0].numel())

    return rule


RULES["rnn_sequence"] = _recurrent(2, 2)
RULES["gru_sequence"] = _recurrent(2, 14)
RULES["lstm_sequence"] = _lstm
RULES["peephole_sequence"] = _peephole
RULES["deep_rnn_sequence"] = _deep_rnn
RULES["conv_rnn_sequence"] = _conv_recurrent(2, 2)
RULES["conv_lstm_sequence"] = _conv_recurrent(3, 13)

# --- factorizations and equations -----------------------------------------------------------------


def _cubic(factor: float) -> Rule:
    """factor n^3 for each square matrix."""
    return lambda x, p, out: _flops(factor * x[0].numel() * x[0].shape[-1])


def _of_sizes(count: Callable[[int, int], float]) -> Rule:
    """For each matrix of m rows and n columns, m the larger number."""

    def rule(x: Tensors, params: dict[str, Any], out: Tensors) -> Cost:
        m, n = max(x[0].shape[-2:]), min(x[0].shape[-2:])
        return _flops(x[0].numel() // max(1, m * n) * count(m, n))

    return rule


def _fourier(factor: float) -> Rule:
    def rule(x: Tensors, params: dict[str, Any], out: Tensors) -> Cost:
        dims = params["dims"] if "dims" in params else (params["dim"],)
        whole = max(x[0], out[0], key=lambda t: t.numel())
        steps = sum(math.log2(max(1, whole.shape[d])) for d in dims)
        return _flops(factor * whole.numel() * steps)

    return rule


_rules(_cubic(1 / 3), "cholesky cholesky_info ldl_factor")
_rules(_cubic(2), "inv cofactor")
_rules(_cubic(2 / 3), "det slogdet")
_rules(_of_sizes(lambda m, n: m * n * n - n**3 / 3), "lu_factors lu_info lu_pivots")
RULES["geqrf"] = _of_sizes(lambda m, n: 2 * m * n * n - 2 * n**3 / 3)
RULES["qr"] = _of_sizes(lambda m, n: 4 * m * n * n - 4 * n**3 / 3)  # with Q written out
RULES["qr_complete"] = _of_sizes(lambda m, n: 4 * m * m * n - 2 * m * n * n + 2 * n**3 / 3)
RULES["solve"] = lambda x, p, out: (
    _cubic(2 / 3)(x, p, out) + _flops(2 * out[0].numel() * x[0].shape[-1])
)
RULES["solve_triangular"] = lambda x, p, out: _flops(out[0].numel() * x[0].shape[-1])
RULES["ldl_solve"] = lambda x, p, out: _flops(2 * out[0].numel() * x[0].shape[-1])
RULES["fft_c2c"] = _fourier(5)
_rules(_fourier(2.5), "fft_r2c fft_c2r")
