"""What operations compute, and how a gradient g goes on from them, for pages that step through."""

from __future__ import annotations

__all__ = ["FORMULAS"]

_BACK_IN_TIME = "back through time, from the last step"
FORMULAS = {
    "linear": ("y = x W^T + b", "x gets g W, W gets g^T x, b gets the sum of g"),
    "matmul": ("y = a b", "a gets g b^T, b gets a^T g"),
    "convolution": ("y = x * w, moved over the image", "x gets g through w, w gets the sum of g x"),
    "add": ("y = a + b", "both get g"),
    "sub": ("y = a - b", "a gets g, b gets -g"),
    "mul": ("y = a b", "a gets g b, b gets g a"),
    "div": ("y = a / b", "a gets g / b, b gets -g a / b^2"),
    "square": ("y = x^2", "x gets 2 x g"),
    "exp": ("y = exp(x)", "x gets g y"),
    "log": ("y = ln(x)", "x gets g / x"),
    "neg": ("y = -x", "x gets -g"),
    "relu": ("y = max(0, x)", "x gets g where x > 0, else 0"),
    "sigmoid": ("y = 1 / (1 + exp(-x))", "x gets g y (1 - y)"),
    "tanh": ("y = tanh(x)", "x gets g (1 - y^2)"),
    "softmax": ("y = exp(x) / sum exp(x)", "x gets y (g - sum g y)"),
    "log_softmax": ("y = x - ln sum exp(x)", "x gets g - softmax(x) sum g"),
    "cross_entropy": (
        "y = mean of -ln softmax(x) at the class",
        "x gets g / N times softmax(x), less 1 at the class",
    ),
    "negative_log_likelihood": ("y = mean of -x at the class", "x gets -g / N at the class"),
    "normalize": (
        "y = gamma (x - mean) / sqrt(var + eps) + beta",
        "x gets g, less its mean and its part along y, over the deviation",
    ),
    "pool_gather": ("y = the largest of each window", "the largest gets g, the others 0"),
    "avg_pool": ("y = the mean of each window", "each of a window gets its share of g"),
    "mean": ("y = sum x / n", "every x gets g / n"),
    "sum": ("y = sum x", "every x gets g"),
    "reshape": ("the same numbers in another shape", "g in the old shape"),
    "permute": ("dimensions in another order", "g in the old order"),
    "lstm_sequence": ("c = f c + i tanh(...), h = o tanh(c), step by step", _BACK_IN_TIME),
    "gru_sequence": ("h = (1 - z) n + z h, step by step", _BACK_IN_TIME),
    "rnn_sequence": ("h = tanh(W x + U h + b), step by step", _BACK_IN_TIME),
}
