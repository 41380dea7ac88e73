"""Random valid calls of every compiled kernel, of all sizes, with and without odd numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from native.test_update import RULES, Update
from native import valid_elementwise, valid_reductions  # noqa: F401 - they have makers, too
from native.drawing import MAKERS, Call, Draw, makes
from native.twins import native

__all__ = ["MAKERS", "Call", "Draw"]


@makes("softmax", "log_softmax", "softmax_backward", "log_softmax_backward")
def _softmax(d: Draw, name: str) -> Call:
    shape = (*d.sizes(0, 3), d.size(12))
    arrays = [d.array(*shape) for _ in range(2 if "backward" in name else 1)]
    return tuple(arrays), {"dim": d.pick(-1, -1, -1, -len(shape), d.r.randint(-len(shape), -1))}


@makes("cross_entropy", "cross_entropy_and_softmax", "cross_entropy_backward")
def _cross_entropy(d: Draw, name: str) -> Call:
    lead, classes = d.sizes(0, 3), d.size(12)
    within = d.pick(0, 0, 0, min(1, len(lead)))
    if within:  # where a target is ignored, NaN times zero is zero in the NumPy kernel alone
        d.odd = [-0.0, 0.0, 1e-40]
    settings = {
        "dim": -1,
        "ignore_index": d.pick(-100, 0, 1),
        "reduction": d.pick("mean", "sum", "none"),
        "within": within,
    }
    target = d.whole(classes, *lead)
    if "backward" not in name:
        return (d.array(*lead, classes), target), settings
    g = d.array(*(lead if settings["reduction"] == "none" else lead[:within]))
    return (g, d.array(*lead, classes), target), settings


@makes("attention", "attention_backward")
def _attention(d: Draw, name: str) -> Call:
    n, length, keys, heads, features, own = (d.size(3), *(d.size(7) for _ in range(5)))
    if d.chance(0.2):
        length, keys = 60, 40
    d.odd = [-0.0, 0.0, 1e-40]  # where nothing is read, NaN times zero is left out or not
    q, k = (d.array(n, rows, heads, features) / 8 for rows in (length, keys))
    v = d.array(n, keys, heads, own)
    shapes = [(n, heads, length, keys), (length, keys), (n, 1, 1, keys), (1, 1, keys), (keys,)]
    mask = d.pick(None, None, d.array(*d.pick(*shapes)))
    settings = {"scale": d.pick(0.5, 1.0, 1), "causal": d.flag()}
    if name == "attention":
        return (q, k, v, mask), settings
    lse = 3 + abs(d.array(n, heads, length))
    return (d.array(n, length, heads, own), q, k, v, mask, lse), settings


# --- windows --------------------------------------------------------------------------------------


def _settings(d: Draw, nd: int) -> dict[str, tuple[int, ...]]:
    """The size of an input, and what windows over it are like, in ``nd`` dimensions."""
    kernel, stride = ([d.r.randint(1, 3) for _ in range(nd)] for _ in range(2))
    padding, dilation = ([d.r.randint(0, k // 2) for k in kernel], [d.r.randint(1, 2)] * nd)
    size = [d.r.randint((k - 1) * e + 1, 8) for k, e in zip(kernel, dilation, strict=True)]
    outputs = [
        (n + 2 * p - e * (k - 1) - 1) // s + 1
        for n, k, s, p, e in zip(size, kernel, stride, padding, dilation, strict=True)
    ]
    names = ("input", "output", "kernel", "stride", "padding", "dilation")
    columns = (size, outputs, kernel, stride, padding, dilation)
    return {name: tuple(column) for name, column in zip(names, columns, strict=True)}


@makes("convolution", "convolution_input", "convolution_weight")
def _convolution(d: Draw, name: str) -> Call:
    s = _settings(d, d.r.randint(1, 3))
    x_size, y_size, kernel = s.pop("input"), s.pop("output"), s.pop("kernel")
    batch, groups, inputs, outputs = d.size(3), d.r.randint(1, 2), d.size(3), d.size(3)
    x = d.array(batch, groups * inputs, *x_size)
    y = d.array(batch, groups * outputs, *y_size)
    w = d.array(groups * outputs, inputs, *kernel)
    first, second, size = {
        "convolution": (x, w, y_size),
        "convolution_input": (y, w, x_size),
        "convolution_weight": (x, y, kernel),
    }[name]
    settings = {"size": size, **s, "groups": groups}
    if name == "convolution" and d.flag():
        settings["bias"] = d.pick(None, d.array(len(w)))
    return (first, second), settings


@makes("im2col", "col2im")
def _columns(d: Draw, name: str) -> Call:
    s = _settings(d, d.r.randint(1, 3))
    lead, channels = d.sizes(0, 2), d.size(3)
    x_size, y_size = s.pop("input"), s.pop("output")
    if name == "im2col":
        return (d.array(*lead, channels, *x_size),), {"size": y_size, **s}
    columns = d.array(*lead, channels * int(np.prod(s["kernel"])), int(np.prod(y_size)))
    return (columns,), {"size": x_size, "outputs": y_size, **s}


@makes("max_pool_indices", "avg_pool", "avg_pool_transpose")
def _pool(d: Draw, name: str) -> Call:
    s = _settings(d, d.r.randint(1, 3))
    lead, x_size, y_size = d.sizes(0, 2), s.pop("input"), s.pop("output")
    if name == "max_pool_indices":
        return (d.array(*lead, *x_size),), {"size": y_size, **s, "narrow": d.flag()}
    s |= {"divisor": d.pick(None, None, 2.0, 3), "count_pad": d.flag()}
    own, other = (y_size, x_size) if "transpose" in name else (x_size, y_size)
    return (d.array(*lead, *own),), {"size": other, **s}


@makes("adaptive_avg_pool", "adaptive_avg_pool_transpose", "adaptive_max_pool_indices")
def _adaptive(d: Draw, name: str) -> Call:
    nd = d.r.randint(1, 3)
    own, other = ([d.size() for _ in range(nd)] for _ in range(2))
    narrow = {"narrow": d.flag()} if "indices" in name else {}
    return (d.array(*d.sizes(0, 2), *own),), {"size": tuple(other), **narrow}


@makes("pool_gather", "pool_scatter")
def _by_index(d: Draw, name: str) -> Call:
    lead, own = d.sizes(0, 2), d.sizes(1, 3)
    other = tuple(d.size() for _ in own)
    if name == "pool_gather":
        index = d.whole(int(np.prod(own)), *lead, *other)
        return (d.array(*lead, *own), index), {"nd": len(own), "unique": d.flag()}
    count, size = int(np.prod([*lead, *own])), int(np.prod(other))
    unique = d.flag() and int(np.prod(own)) <= size
    index = d.whole(size, *lead, *own)
    if unique and count:
        rows = [d.numbers.permutation(size)[: int(np.prod(own))] for _ in range(int(np.prod(lead)))]
        index = np.array(rows).reshape(*lead, *own)
    return (d.array(*lead, *own), index), {"size": other, "unique": unique}


# --- normalization --------------------------------------------------------------------------------


def _normalized(d: Draw) -> tuple[Any, tuple[int, ...], Any]:
    """An array, the dimensions over which it is normalized, and weight and bias or neither."""
    shape = d.sizes(1, 4)
    dim = tuple(i for i in range(-len(shape), 0) if d.flag()) or (-1,)
    constant = tuple(1 if i in dim else n for i, n in enumerate(shape, -len(shape)))
    kind = d.pick(shape, shape[dim[0] :], constant, (1,) * len(shape))
    return d.array(*shape), dim, [d.array(*kind) for _ in range(d.pick(0, 1, 2))]


@makes("normalize", "normalize_parts")
def _normalize(d: Draw, name: str) -> Call:
    x, dim, affine = _normalized(d)
    return (x, *affine), {"dim": dim, "eps": d.pick(1e-5, 0.1), "center": d.flag()}


@makes("scale_channels")
def _scale_channels(d: Draw, name: str) -> Call:
    x = d.array(*d.sizes(2, 4))
    limits = {name: d.pick(None, d.number()) for name in ("low", "high") if d.flag()}
    return (x, d.array(x.shape[1]), d.array(x.shape[1])), limits


@makes("normalize_backward")
def _normalize_backward(d: Draw, name: str) -> Call:
    # Infinity times zero, or minus itself: which it comes to depends on the order of the factors.
    d.odd = [np.nan, -0.0, 0.0]
    x, dim, affine = _normalized(d)
    kept = [1 if i in dim else n for i, n in enumerate(x.shape, -x.ndim)]
    mean = d.pick(None, d.array(*kept))
    rstd = d.numbers.uniform(0.1, 3, kept).astype(d.dtype)
    shapes = tuple(a.shape for a in (x, *affine))
    needs = tuple(d.flag() for _ in shapes)
    return (d.array(*x.shape), x, mean, rstd, affine[0] if affine else None, dim, shapes, needs), {}


# --- recurrent layers -----------------------------------------------------------------------------


def _steps(d: Draw) -> tuple[int, int, int]:
    """The numbers of steps, of sequences and of units."""
    # A gate that is almost closed is 0 in one kernel and 1e-38 in the other: times infinity, that
    # makes a difference.
    d.odd = [np.nan, -0.0, 0.0]
    return d.size(), d.size(3), d.size()


def _mask(d: Draw, steps: int, batch: int) -> list[Any]:
    return [d.whole(2, steps, batch) > 0] if d.flag() else []


@makes("rnn_sequence", "rnn_sequence_backward")
def _rnn(d: Draw, name: str) -> Call:
    steps, batch, n = _steps(d)
    x = d.array(steps, batch, n)
    state = d.array(*x.shape) if "backward" in name else d.array(batch, n)
    named = {"nonlinearity": d.pick("tanh", "relu", "sigmoid"), "reverse": d.flag()}
    return (x, state, d.array(n, n), *_mask(d, steps, batch)), named


@makes("lstm_sequence", "lstm_sequence_backward", "peephole_sequence", "peephole_sequence_backward")
def _lstm(d: Draw, name: str) -> Call:
    steps, batch, n = _steps(d)
    peephole = "peephole" in name
    full, projected = peephole and d.chance(0.2), not peephole and d.chance(0.3)
    size = d.size() if projected else n
    others: Any = [d.array(size, n)] if projected else []
    if peephole:
        others = [d.array(n, n) if full else d.array(n) for _ in range(3)]
    named = {"full" if peephole else "projected": full or projected, "reverse": d.flag()}
    weight, mask = d.array(4 * n, size), _mask(d, steps, batch)
    gates = d.array(steps, batch, 4 * n)
    if "backward" not in name:
        first = (gates, d.array(batch, size), d.array(batch, n), weight)
        return (*first, *others, *mask), named
    gh, gc, c = (d.array(steps, batch, k) for k in (size, n, n))
    first = (gh, gc, c, gates, d.array(batch, n), weight)
    return (*first, *([tuple(others)] if peephole else others), *mask), named


@makes("gru_sequence", "gru_sequence_backward")
def _gru(d: Draw, name: str) -> Call:
    steps, batch, n = _steps(d)
    h, w, mask = d.array(batch, n), d.array(3 * n, n), _mask(d, steps, batch)
    if "backward" not in name:
        x = d.array(steps, batch, 3 * n)
        return (x, h, w, d.array(3 * n), *mask), {"reverse": d.flag()}
    g, out, kept = (d.array(steps, batch, k * n) for k in (1, 1, 4))
    return (g, out, kept, h, w, *mask), {"reverse": d.flag()}


# --- products, sums and rows ----------------------------------------------------------------------


# BLAS leaves out what is multiplied by zero, where it notices: then NaN times zero is zero.
WITHOUT_ZERO = [np.nan, np.inf, -np.inf]


@makes("linear", "linear_relu", "linear_tanh", "linear_sigmoid", "matmul")
def _product(d: Draw, name: str) -> Call:
    d.odd = WITHOUT_ZERO
    m, n = d.size(), d.size()
    x = d.array(*d.sizes(0, 3), n)
    if name == "matmul":
        stack = d.pick((), (), x.shape[:-2], (1, *x.shape[:-2]))
        return (x, d.pick(d.array(*stack, n, m), d.array(n))), {}
    stack = d.pick((), (), x.shape[:1]) if x.ndim == 3 else ()  # of layers
    return (x, d.array(*stack, m, n), *d.pick([], [None], [d.array(*stack, m)])), {}


@makes("linear_backward", "linear_relu_backward", "linear_tanh_backward", "linear_sigmoid_backward")
def _linear_backward(d: Draw, name: str) -> Call:
    d.odd = WITHOUT_ZERO
    lead, rows, m, n = d.pick((), (), (d.size(),)), d.size(), d.size(), d.size()
    x, w = d.pick(None, d.array(*lead, rows, n)), d.pick(None, d.array(*lead, m, n))
    own = [d.array(*lead, rows, m) for _ in range(1 if name == "linear_backward" else 2)]
    return (*own, x, w, d.flag()), {}


@makes("index", "index_place")
def _index(d: Draw, name: str) -> Call:
    shape = d.sizes(1, 3)
    at = d.whole(shape[0], *(d.sizes(0, 2) if shape[0] else (0,)))
    named = {"entries": (..., *[slice(None)] * (len(shape) - 1)), "tail": len(shape) - 1}
    if name == "index":
        return (d.array(*shape), at), {**named, "distinct": d.flag()}
    distinct = d.chance(0.2)
    if distinct:
        at = d.numbers.permutation(shape[0])[: d.size()]
    g = d.array(*at.shape, *shape[1:])
    return (g, at), {**named, "shape": shape, "distinct": distinct}


@makes("bag_rows", "bag_rows_backward")
def _bags(d: Draw, name: str) -> Call:
    d.odd = [-0.0, 0.0, 1e-40]  # NaN times the zeros of a sparse product is another NaN
    count, width, bags = d.size(9), d.pick(d.size(), 20, 70), d.size()
    last = d.flag()
    if d.flag() or not bags:
        rows, offsets, last = d.whole(count, bags, d.size() if count else 0), None, False
    else:
        rows = d.whole(count, d.size(30) if count else 0)
        offsets = np.sort(d.whole(rows.size + 1, bags + last))
        offsets[0] = 0
    weights = d.pick(None, d.array(*rows.shape))
    padding = d.pick(-1, -1, 0, 1)
    if name == "bag_rows":
        mode = d.pick("sum", "mean", "max")
        return (d.array(count, width), rows, offsets, weights, mode, padding, last), {}
    g = d.array(bags, width)
    return (g, rows, offsets, weights, count, d.pick("sum", "mean"), padding, last), {}


@makes("state_weight_gradient")
def _state_weight_gradient(d: Draw, name: str) -> Call:
    steps, batch, n = _steps(d)
    g = d.array(steps, batch, d.size())
    return (g, d.array(steps, batch, n), d.array(batch, n)), {"reverse": d.flag()}


@makes("broadcast_to")
def _broadcast_to(d: Draw, name: str) -> Call:
    shape = d.sizes()
    own = tuple(d.pick(1, n) for n in shape)[d.pick(0, 0, 1) :]
    return (d.array(*own), shape), {}


@makes("owned")
def _owned(d: Draw, name: str) -> Call:
    return (d.array(*d.sizes()), d.flag()), {}


@makes("random_mask")
def _random_mask(d: Draw, name: str) -> Call:
    generator = np.random.default_rng(d.r.randint(0, 99))
    return (generator, d.sizes(), np.dtype(d.dtype), d.pick(0.5, 1.0, 0.01), d.number()), {}


# --- lists of arrays ------------------------------------------------------------------------------


@makes("all_finite", "total_norm", "norm_of_all", "write_scaled", "write_clamped", "write_clipped")
def _lists(d: Draw, name: str) -> Call:
    arrays = [d.array(*d.sizes()) for _ in range(d.r.randint(0, 4))]
    others = {
        "total_norm": [d.pick(2.0, 2.0, np.inf)],
        "norm_of_all": [d.pick(2.0, np.inf), np.dtype(d.dtype), native.total_norm],
        "write_clipped": [np.asarray(abs(d.array())), d.pick(0.5, 1.0, 9.0), native.write_scaled],
        "write_scaled": [d.number()],
        "write_clamped": [-1.0, d.number()],
    }
    return (arrays, *others.get(name, ())), {}


@makes("write_updates")
def _updates(d: Draw, name: str) -> Call:
    kind, options = d.r.choice(RULES)
    u = Update(kind, options, [d.array(*d.sizes()) for _ in range(d.r.randint(1, 3))])
    return (u.rule, u.params, u.grads, u.lr, u.states, u.constants), {}


# --- text -----------------------------------------------------------------------------------------


@makes("read_cells")
def _cells(d: Draw, name: str) -> Call:
    delimiter, width = d.pick(",", ";", "\t", "|"), d.r.randint(1, 4)
    cells = ["1", "-2.5e3", "", " x", "NA", '"a\nb"', '"c"d', "1,5", '"', "\u2003", "1e400", "é"]
    rows = [
        delimiter.join([d.r.choice(cells) for _ in range(width)]) for _ in range(d.r.randint(0, 6))
    ]
    text = d.pick("\n", "\r\n", "\r").join(rows)
    modes = "".join([d.pick("n", "n", "t", "-") for _ in range(width)])
    return (text, delimiter, modes, d.flag(), d.flag()), {}
