"""chainrule: neural networks in Python, with PyTorch's names and derivatives one can look at."""

# Lists of names, packed; tools/names.py writes what is marked, and __all__.
# fmt: off

from __future__ import annotations

import warnings as _warnings
from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

# Division by zero, overflow and the like follow IEEE 754 silently, as in every tensor library.
# NumPy warns of them; inside this package it need not. Warnings in the user's code stay.
_warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"chainrule\.")

from chainrule.ops.methods import attach as _attach

_attach()  # before anything that makes tensors while it is imported

from chainrule import autograd, backend, fft, func, linalg, random, signal, special
from chainrule.autograd.modes import (
    enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad,
    set_grad_enabled,
)
from chainrule.backend.dtypes import (
    bfloat16, bool_ as bool, complex128, complex128 as cdouble, complex64, complex64 as cfloat,
    dtype, float16, float16 as half, float32, float32 as float, float64, float64 as double,
    get_default_dtype, int16, int16 as short, int32, int32 as int, int64, int64 as long, int8,
    promote_types, set_default_dtype, uint8,
)
from chainrule.backend.limits import can_cast, e, finfo, iinfo, inf, nan, newaxis, pi  # all of it
from chainrule.ops.elementwise.complex_numbers import (  # all of it
    abs, absolute, angle, complex, conj, imag, real, sgn,
)
from chainrule.ops.elementwise.derived import (  # all of it
    addcdiv, addcmul, clamp_max, clamp_min, deg2rad, isclose, lerp, logit, positive, rad2deg,
)
from chainrule.ops.layers.columns import col2im, im2col  # all of it
from chainrule.ops.layers.conv import (  # all of it
    conv1d, conv2d, conv3d, conv_output_size, conv_transpose1d, conv_transpose2d, conv_transpose3d,
    conv_transpose_output_size,
)
from chainrule.ops.creation.conversion import (  # all of it
    clone, is_complex, is_floating_point, is_nonzero, is_tensor, numel,
)
from chainrule.ops.creation.patterns import (  # all of it
    arange, empty, empty_like, eye, full, full_like, linspace, logspace, ones, ones_like,
    scalar_tensor, tril_indices, triu_indices, zeros, zeros_like,
)
from chainrule.ops.shape.diagonal import (  # all of it
    block_diag, diag, diag_embed, diagflat, diagonal, diagonal_scatter, tril, triu,
)
from chainrule.ops.linalg.einsum import einsum, tensordot  # all of it
from chainrule.ops.elementwise.functions import (  # all of it
    acos, acosh, arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh, asin, asinh, atan,
    atan2, atanh, ceil, copysign, cos, cosh, digamma, erf, erfc, erfinv, exp, exp2, expm1, fix,
    floor, floor_divide, fmax, fmin, fmod, frac, heaviside, hypot, lgamma, log, log10, log1p, log2,
    logaddexp, logaddexp2, maximum, minimum, mul, multiply, neg, negative, polygamma, pow,
    reciprocal, relu, remainder, rsqrt, sigmoid, sign, sin, sinc, sinh, softplus, sqrt, square, tan,
    tanh, true_divide, trunc, xlogy,
)
from chainrule.ops.elementwise.logic import (  # all of it
    bitwise_and, bitwise_left_shift, bitwise_not, bitwise_or, bitwise_right_shift, bitwise_xor, eq,
    ge, greater, greater_equal, gt, isfinite, isinf, isnan, isneginf, isposinf, le, less,
    less_equal, logical_and, logical_not, logical_or, logical_xor, lt, ne, not_equal, signbit,
    where,
)
from chainrule.ops.elementwise.options import (  # all of it
    add, clamp, clip, div, divide, nan_to_num, round, sub, subtract,
)
from chainrule.ops.elementwise.special_methods import i0, igamma, igammac, mvlgamma  # all of it
from chainrule.ops.creation.from_data import (  # all of it
    as_tensor, asarray, from_dlpack, from_numpy, tensor,
)
from chainrule.ops.creation.typed import (  # all of it
    BFloat16Tensor, BoolTensor, ByteTensor, CharTensor, DoubleTensor, FloatTensor, HalfTensor,
    IntTensor, LongTensor, set_default_tensor_type, ShortTensor,
)
from chainrule.ops.index.reading import (  # all of it
    argwhere, gather, index_select, masked_select, narrow, nonzero, one_hot, select, take,
    take_along_dim,
)
from chainrule.ops.shape.joining import (  # all of it
    chunk, column_stack, concat, concatenate, dsplit, dstack, hsplit, hstack, row_stack, split,
    tensor_split, unbind, vsplit, vstack,
)
from chainrule.ops.linalg.matrices import (  # all of it
    chain_matmul, cholesky, cholesky_solve, det, inverse, logdet, matrix_exp, matrix_power,
    pinverse, slogdet,
)
from chainrule.ops.elementwise.integers import (  # all of it
    float_power, frexp, gcd, isreal, lcm, ldexp, nextafter,
)
from chainrule.func import vmap
from chainrule.ops.creation.memory import (  # all of it
    conj_physical, get_device, is_conj, is_inference, is_neg, is_same_size, is_signed, narrow_copy,
    resolve_conj, resolve_neg, unsafe_chunk, unsafe_split,
)
from chainrule.ops.creation.uncommon import (  # all of it
    constant_pad_nd, empty_permuted, empty_strided, fill, frombuffer, nonzero_static, range, rsub,
    vander,
)
from chainrule.ops.shape.copies import (  # all of it
    alias_copy, as_strided_copy, detach_copy, diagonal_copy, expand_copy, permute_copy, select_copy,
    slice_copy, split_copy, split_with_sizes_copy, squeeze_copy, t_copy, transpose_copy,
    unbind_copy, unfold_copy, unsqueeze_copy, view_as_complex_copy, view_as_real_copy, view_copy,
)
from chainrule.ops.reduce.histograms import histogram, histogramdd  # all of it
from chainrule.ops.creation.windows import (  # all of it
    bartlett_window, blackman_window, hamming_window, hann_window, kaiser_window,
)
from chainrule.ops.linalg.stft import istft, stft  # all of it
from chainrule.ops.linalg.lowrank import pca_lowrank, svd_lowrank  # all of it
from chainrule.ops.linalg.older import (  # all of it
    cholesky_inverse, geqrf, lu, lu_solve, lu_unpack, orgqr, ormqr, qr, svd,
)
from chainrule.ops.linalg.statistics import cdist, corrcoef, cov, gradient, pdist  # all of it
from chainrule.ops.linalg.matmul import linear, matmul  # all of it
from chainrule.ops.reduce.order import (  # all of it
    amax, amin, aminmax, argmax, argmin, max, median, min, mode, nanmedian,
)
from chainrule.ops.reduce.quantiles import nanquantile, quantile  # all of it
from chainrule.ops.shape.padding import pad  # all of it
from chainrule.ops.layers.avg_pool import (  # all of it
    adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d, avg_pool1d, avg_pool2d,
    avg_pool3d, lp_pool1d, lp_pool2d, lp_pool3d,
)
from chainrule.ops.layers.max_pool import (  # all of it
    adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d, max_pool1d, max_pool2d,
    max_pool3d, max_unpool1d, max_unpool2d, max_unpool3d,
)
from chainrule.ops.linalg.products import (  # all of it
    addbmm, addmm, addmv, addr, baddbmm, bmm, cross, dot, ger, inner, kron, mm, mv, outer, trace,
    vdot,
)
from chainrule.ops.core.promotion import broadcast_shapes, result_type
from chainrule.ops.shape.rearrange import (  # all of it
    adjoint, atleast_1d, atleast_2d, atleast_3d, broadcast_tensors, broadcast_to, cartesian_prod,
    combinations, flip, fliplr, flipud, meshgrid, moveaxis, ravel, repeat_interleave, roll, rot90,
    swapdims, t, tile, unflatten,
)
from chainrule.ops.reduce.reductions import (  # all of it
    all, allclose, any, count_nonzero, equal, logsumexp, mean, nanmean, nansum, std, std_mean, sum,
    var, var_mean,
)
from chainrule.ops.linalg.norms import dist, norm, renorm  # all of it
from chainrule.ops.reduce.product import prod  # all of it
from chainrule.ops.creation.parametric import poisson
from chainrule.ops.creation.sampling import (  # all of it
    bernoulli, default_generator, Generator, get_rng_state, initial_seed, manual_seed, multinomial,
    normal, rand, rand_like, randint, randint_like, randn, randn_like, randperm, seed,
    set_rng_state,
)
from chainrule.ops.reduce.scan import (  # all of it
    cummax, cummin, cumprod, cumsum, cumulative_trapezoid, diff, logcumsumexp, trapezoid, trapz,
)
from chainrule.ops.index.replacing import (  # all of it
    index_add, index_copy, index_fill, index_put, masked_fill, masked_scatter,
)
from chainrule.ops.index.places import put, unravel_index  # all of it
from chainrule.ops.shape.strided import (  # all of it
    as_strided, as_strided_scatter, polar, select_scatter, slice_scatter, view_as_complex,
    view_as_real,
)
from chainrule.ops.index.scatter import (  # all of it
    index_reduce, scatter, scatter_add, scatter_reduce,
)
from chainrule.ops.shape.views import (  # all of it
    expand, flatten, movedim, permute, reshape, squeeze, swapaxes, transpose, unsqueeze, view,
)
from chainrule.ops.shape.stacking import cat, stack  # all of it
from chainrule.ops.layers.softmax import (  # all of it
    binary_cross_entropy, binary_cross_entropy_with_logits, cross_entropy, log_softmax, nll_loss,
    softmax,
)
from chainrule.ops.reduce.sort import (  # all of it
    argsort, bincount, bucketize, histc, isin, kthvalue, msort, searchsorted, sort, topk, unique,
    unique_consecutive,
)
from chainrule.backend.devices import OutOfDeviceMemory as OutOfMemoryError
from chainrule.backend.threads import (
    are_deterministic_algorithms_enabled, get_num_threads, set_num_threads,
    use_deterministic_algorithms,
)
from chainrule.interop import announce as _announce
from chainrule.printing import set_printoptions
from chainrule.attributes import (
    channels_last, channels_last_3d, contiguous_format, memory_format, preserve_format,
)
from chainrule.tensor import device, layout, Size, sparse_coo, sparse_csr, strided, Tensor
from chainrule.version import __version__

if _TYPE_CHECKING:
    from chainrule import (
        accelerator, amp, backends, compiler, cpu, cuda, curvature, data, distributed,
        distributions, files, fx, hub, information, inspect, jit, metrics, models, nn, onnx, optim,
        problems, regularize, serialization, sparse, testing, train, utils, version,
    )
    from chainrule.amp import (
        autocast, get_autocast_dtype, is_autocast_enabled, set_autocast_enabled,
    )
    from chainrule.compiler import compile
    from chainrule.files import load, save
    from chainrule.nn.functional import (
        alpha_dropout, batch_norm, bilinear, celu, celu_, channel_shuffle, cosine_embedding_loss,
        cosine_similarity, ctc_loss, dropout, embedding, embedding_bag, feature_alpha_dropout,
        group_norm, hardshrink, hinge_embedding_loss, instance_norm, kl_div, layer_norm,
        margin_ranking_loss, pairwise_distance, pixel_shuffle, pixel_unshuffle, poisson_nll_loss,
        prelu, rms_norm, rrelu, rrelu_, selu, selu_, threshold, threshold_, triplet_margin_loss,
    )
    from chainrule.settings import (
        get_default_device, get_deterministic_debug_mode, get_float32_matmul_precision,
        get_num_interop_threads, is_deterministic_algorithms_warn_only_enabled, is_storage,
        is_warn_always_enabled, set_default_device, set_deterministic_debug_mode,
        set_float32_matmul_precision, set_flush_denormal, set_num_interop_threads, set_warn_always,
        typename,
    )
    from chainrule.sparse import sparse_coo_tensor, sparse_csr_tensor, spmm

_ROOMS = (
    "__config__", "accelerator", "amp", "backends", "compiler", "cpu", "cuda", "curvature", "data",
    "distributed", "distributions", "estimators", "files", "fx", "hub", "information", "inspect",
    "jit", "metrics", "models", "nn", "onnx", "optim", "problems", "regularize", "serialization",
    "serve", "settings", "sparse", "testing", "train", "utils",
)  # imported when first asked for: imports stay fast

_LATE = {  # functions of theirs
    "autocast": "amp", "compile": "compiler", "get_autocast_dtype": "amp",
    "is_autocast_enabled": "amp", "load": "files", "save": "files", "set_autocast_enabled": "amp",
    "sparse_coo_tensor": "sparse", "sparse_csr_tensor": "sparse", "spmm": "sparse",
    **dict.fromkeys((
        "get_default_device", "get_deterministic_debug_mode", "get_float32_matmul_precision",
        "get_num_interop_threads", "is_deterministic_algorithms_warn_only_enabled", "is_storage",
        "is_warn_always_enabled", "set_default_device", "set_deterministic_debug_mode",
        "set_float32_matmul_precision", "set_flush_denormal", "set_num_interop_threads",
        "set_warn_always", "typename",
    ), "settings"),
    **dict.fromkeys((
        "alpha_dropout", "batch_norm", "bilinear", "celu", "celu_", "channel_shuffle",
        "cosine_embedding_loss", "cosine_similarity", "ctc_loss", "dropout", "embedding",
        "embedding_bag", "feature_alpha_dropout", "group_norm", "hardshrink",
        "hinge_embedding_loss", "instance_norm", "kl_div", "layer_norm", "margin_ranking_loss",
        "pairwise_distance", "pixel_shuffle", "pixel_unshuffle", "poisson_nll_loss", "prelu",
        "rms_norm", "rrelu", "rrelu_", "selu", "selu_", "threshold", "threshold_",
        "triplet_margin_loss",
    ), "nn.functional"),
}
_METHODS = frozenset((  # that are functions, too
    "abs_", "acos_", "acosh_", "addmv_", "arccos_", "arccosh_", "arcsin_", "arcsinh_", "arctan_",
    "arctanh_", "as_strided_", "asin_", "asinh_", "atan_", "atanh_", "ceil_", "clamp_",
    "clamp_max_", "clamp_min_", "clip_", "conj_physical_", "cos_", "cosh_", "deg2rad_", "detach",
    "detach_", "erf_", "erfc_", "exp2_", "exp_", "expm1_", "fill_", "fix_", "floor_", "frac_",
    "gcd_", "i0_", "index_put_", "lcm_", "ldexp_", "log10_", "log1p_", "log2_", "log_", "logit_",
    "nan_to_num_", "neg_", "negative_", "rad2deg_", "reciprocal_", "relu_", "resize_as_", "round_",
    "rsqrt_", "sigmoid_", "sin_", "sinc_", "sinh_", "split_with_sizes", "sqrt_", "square_", "tan_",
    "tanh_", "trunc_", "xlogy_", "zero_",
))


class _OfSparse:
    """A method of Tensor that the room of sparse tensors attaches when it is first asked for."""

    def __init__(self, name: str):
        self.name = name

    def __get__(self, instance: Tensor | None, owner: type[Tensor]) -> _Any:
        _import_module("chainrule.sparse")
        return getattr(owner if instance is None else instance, self.name)


for _name in (
    "dense_dim", "sparse_dim", "sparse_mask", "to_sparse", "to_sparse_coo", "to_sparse_csr",
):
    setattr(Tensor, _name, _OfSparse(_name))


def __getattr__(name: str) -> _Any:
    if name in _ROOMS:
        return _import_module(f"chainrule.{name}")
    if name in _LATE:
        return getattr(_import_module(f"chainrule.{_LATE[name]}"), name)
    if name in _METHODS:
        return getattr(Tensor, name)
    raise _import_module("chainrule.absent").of_pytorch("chainrule", name)


def __dir__() -> list[str]:
    return __all__


_announce()


__all__ = [
    "__version__", "abs", "absolute", "accelerator", "acos", "acosh", "adaptive_avg_pool1d",
    "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "add", "addbmm", "addcdiv", "addcmul", "addmm", "addmv", "addr",
    "adjoint", "alias_copy", "all", "allclose", "alpha_dropout", "amax", "amin", "aminmax", "amp",
    "angle", "any", "arange", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2",
    "arctanh", "are_deterministic_algorithms_enabled", "argmax", "argmin", "argsort", "argwhere",
    "as_strided", "as_strided_copy", "as_strided_scatter", "as_tensor", "asarray", "asin", "asinh",
    "atan", "atan2", "atanh", "atleast_1d", "atleast_2d", "atleast_3d", "autocast", "autograd",
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "backend", "backends", "baddbmm", "bartlett_window",
    "batch_norm", "bernoulli", "bfloat16", "BFloat16Tensor", "bilinear", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "bincount", "bitwise_and", "bitwise_left_shift",
    "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "blackman_window",
    "block_diag", "bmm", "bool", "BoolTensor", "broadcast_shapes", "broadcast_tensors",
    "broadcast_to", "bucketize", "ByteTensor", "can_cast", "cartesian_prod", "cat", "cdist",
    "cdouble", "ceil", "celu", "celu_", "cfloat", "chain_matmul", "channel_shuffle",
    "channels_last", "channels_last_3d", "CharTensor", "cholesky", "cholesky_inverse",
    "cholesky_solve", "chunk", "clamp", "clamp_max", "clamp_min", "clip", "clone", "col2im",
    "column_stack", "combinations", "compile", "compiler", "complex", "complex128", "complex64",
    "concat", "concatenate", "conj", "conj_physical", "constant_pad_nd", "contiguous_format",
    "conv1d", "conv2d", "conv3d", "conv_output_size", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d", "conv_transpose_output_size", "copysign", "corrcoef", "cos", "cosh",
    "cosine_embedding_loss", "cosine_similarity", "count_nonzero", "cov", "cpu", "cross",
    "cross_entropy", "ctc_loss", "cuda", "cummax", "cummin", "cumprod", "cumsum",
    "cumulative_trapezoid", "curvature", "data", "default_generator", "deg2rad", "det",
    "detach_copy", "device", "diag", "diag_embed", "diagflat", "diagonal", "diagonal_copy",
    "diagonal_scatter", "diff", "digamma", "dist", "distributed", "distributions", "div", "divide",
    "dot", "double", "DoubleTensor", "dropout", "dsplit", "dstack", "dtype", "e", "einsum",
    "embedding", "embedding_bag", "empty", "empty_like", "empty_permuted", "empty_strided",
    "enable_grad", "eq", "equal", "erf", "erfc", "erfinv", "exp", "exp2", "expand", "expand_copy",
    "expm1", "eye", "feature_alpha_dropout", "fft", "files", "fill", "finfo", "fix", "flatten",
    "flip", "fliplr", "flipud", "float", "float16", "float32", "float64", "float_power",
    "FloatTensor", "floor", "floor_divide", "fmax", "fmin", "fmod", "frac", "frexp", "from_dlpack",
    "from_numpy", "frombuffer", "full", "full_like", "func", "fx", "gather", "gcd", "ge",
    "Generator", "geqrf", "ger", "get_autocast_dtype", "get_default_device", "get_default_dtype",
    "get_deterministic_debug_mode", "get_device", "get_float32_matmul_precision",
    "get_num_interop_threads", "get_num_threads", "get_rng_state", "gradient", "greater",
    "greater_equal", "group_norm", "gt", "half", "HalfTensor", "hamming_window", "hann_window",
    "hardshrink", "heaviside", "hinge_embedding_loss", "histc", "histogram", "histogramdd",
    "hsplit", "hstack", "hub", "hypot", "i0", "igamma", "igammac", "iinfo", "im2col", "imag",
    "index_add", "index_copy", "index_fill", "index_put", "index_reduce", "index_select", "inf",
    "inference_mode", "information", "initial_seed", "inner", "inspect", "instance_norm", "int",
    "int16", "int32", "int64", "int8", "IntTensor", "inverse", "is_autocast_enabled", "is_complex",
    "is_conj", "is_deterministic_algorithms_warn_only_enabled", "is_floating_point",
    "is_grad_enabled", "is_inference", "is_inference_mode_enabled", "is_neg", "is_nonzero",
    "is_same_size", "is_signed", "is_storage", "is_tensor", "is_warn_always_enabled", "isclose",
    "isfinite", "isin", "isinf", "isnan", "isneginf", "isposinf", "isreal", "istft", "jit",
    "kaiser_window", "kl_div", "kron", "kthvalue", "layer_norm", "layout", "lcm", "ldexp", "le",
    "lerp", "less", "less_equal", "lgamma", "linalg", "linear", "linspace", "load", "log", "log10",
    "log1p", "log2", "log_softmax", "logaddexp", "logaddexp2", "logcumsumexp", "logdet",
    "logical_and", "logical_not", "logical_or", "logical_xor", "logit", "logspace", "logsumexp",
    "long", "LongTensor", "lp_pool1d", "lp_pool2d", "lp_pool3d", "lt", "lu", "lu_solve",
    "lu_unpack", "manual_seed", "margin_ranking_loss", "masked_fill", "masked_scatter",
    "masked_select", "matmul", "matrix_exp", "matrix_power", "max", "max_pool1d", "max_pool2d",
    "max_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d", "maximum", "mean", "median",
    "memory_format", "meshgrid", "metrics", "min", "minimum", "mm", "mode", "models", "moveaxis",
    "movedim", "msort", "mul", "multinomial", "multiply", "mv", "mvlgamma", "nan", "nan_to_num",
    "nanmean", "nanmedian", "nanquantile", "nansum", "narrow", "narrow_copy", "ne", "neg",
    "negative", "newaxis", "nextafter", "nll_loss", "nn", "no_grad", "nonzero", "nonzero_static",
    "norm", "normal", "not_equal", "numel", "one_hot", "ones", "ones_like", "onnx", "optim",
    "orgqr", "ormqr", "outer", "OutOfMemoryError", "pad", "pairwise_distance", "pca_lowrank",
    "pdist", "permute", "permute_copy", "pi", "pinverse", "pixel_shuffle", "pixel_unshuffle",
    "poisson", "poisson_nll_loss", "polar", "polygamma", "positive", "pow", "prelu",
    "preserve_format", "problems", "prod", "promote_types", "put", "qr", "quantile", "rad2deg",
    "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "random", "randperm",
    "range", "ravel", "real", "reciprocal", "regularize", "relu", "remainder", "renorm",
    "repeat_interleave", "reshape", "resolve_conj", "resolve_neg", "result_type", "rms_norm",
    "roll", "rot90", "round", "row_stack", "rrelu", "rrelu_", "rsqrt", "rsub", "save",
    "scalar_tensor", "scatter", "scatter_add", "scatter_reduce", "searchsorted", "seed", "select",
    "select_copy", "select_scatter", "selu", "selu_", "serialization", "set_autocast_enabled",
    "set_default_device", "set_default_dtype", "set_default_tensor_type",
    "set_deterministic_debug_mode", "set_float32_matmul_precision", "set_flush_denormal",
    "set_grad_enabled", "set_num_interop_threads", "set_num_threads", "set_printoptions",
    "set_rng_state", "set_warn_always", "sgn", "short", "ShortTensor", "sigmoid", "sign", "signal",
    "signbit", "sin", "sinc", "sinh", "Size", "slice_copy", "slice_scatter", "slogdet", "softmax",
    "softplus", "sort", "sparse", "sparse_coo", "sparse_coo_tensor", "sparse_csr",
    "sparse_csr_tensor", "special", "split", "split_copy", "split_with_sizes_copy", "spmm", "sqrt",
    "square", "squeeze", "squeeze_copy", "stack", "std", "std_mean", "stft", "strided", "sub",
    "subtract", "sum", "svd", "svd_lowrank", "swapaxes", "swapdims", "t", "t_copy", "take",
    "take_along_dim", "tan", "tanh", "Tensor", "tensor", "tensor_split", "tensordot", "testing",
    "threshold", "threshold_", "tile", "topk", "trace", "train", "transpose", "transpose_copy",
    "trapezoid", "trapz", "tril", "tril_indices", "triplet_margin_loss", "triu", "triu_indices",
    "true_divide", "trunc", "typename", "uint8", "unbind", "unbind_copy", "unflatten",
    "unfold_copy", "unique", "unique_consecutive", "unravel_index", "unsafe_chunk", "unsafe_split",
    "unsqueeze", "unsqueeze_copy", "use_deterministic_algorithms", "utils", "vander", "var",
    "var_mean", "vdot", "version", "view", "view_as_complex", "view_as_complex_copy",
    "view_as_real", "view_as_real_copy", "view_copy", "vmap", "vsplit", "vstack", "where", "xlogy",
    "zeros", "zeros_like",
]
