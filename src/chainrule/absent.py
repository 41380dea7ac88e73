"""What PyTorch has and this library has not: said in a sentence, never by a bare error.

A name that programs import at their top and use only where there is a GPU, or several processes, is
there to be imported, named in annotations and asked for with ``isinstance``; it refuses when it is
called. What is rarer is absent, and the error for it says why and what to do instead.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NoReturn

__all__ = ["Refused", "absent", "of_pytorch", "reason_of", "refused", "warn_once"]

_told: set[str] = set()


class Refused:
    """A class of which there can be no objects here; ``reason`` says why.

    >>> class Stream(Refused):
    ...     reason = "there is no GPU"
    >>> isinstance(3, Stream)
    False
    >>> Stream()
    Traceback (most recent call last):
    RuntimeError: Stream: there is no GPU
    """

    reason: ClassVar[str]

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(f"{cls.__name__}: {cls.reason}")


def refused(
    name: str, reason: str, error: type[Exception] = RuntimeError
) -> Callable[..., NoReturn]:
    """A function that refuses when it is called, with PyTorch's exception where it has one.

    >>> refused("load", "there is no network")("resnet18")
    Traceback (most recent call last):
    RuntimeError: load: there is no network
    """

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise error(f"{name}: {reason}")

    refuse.__name__ = refuse.__qualname__ = name.rpartition(".")[2]
    refuse.__doc__ = f"Refuses: {reason}."
    return refuse


def absent(module: str, name: str, reasons: Mapping[str, str]) -> AttributeError:
    """The error for a name that a module lacks, with the reason if one is known.

    >>> absent("chainrule", "mps", {"mps": "there is no GPU"})
    AttributeError("module 'chainrule' has no attribute 'mps': there is no GPU")
    """
    reason = f": {reasons[name]}" if name in reasons else ""
    return AttributeError(f"module {module!r} has no attribute {name!r}{reason}")


# Why names of PyTorch are not here and what to use instead: the first pattern that fits a whole
# name answers. A name that is here is found before anybody asks.
REASONS: tuple[tuple[str, str], ...] = (
    (
        r"(c?c?row|c?col)_indices_copy|(indices|values)_copy",
        "take the view with the function without _copy, then .clone()",
    ),
    (
        r"(fake_)?quantize.*|quantized.*|fbgemm.*|q_.*|qscheme|per_(channel|tensor)_.*|dequantize"
        r"|q?u?int\d+(x\d)?_repr|int_repr|qu?int\d+(x\d)?|QU?Int.*|empty_quantized|ao"
        r"|choose_qparams.*|fused_moving_avg.*|quantization",
        "there is no quantization; float16 halves the memory of float32",
    ),
    (
        r"crow_indices|col_indices|indices|values|coalesce|is_coalesced",
        "a method of sparse tensors, and this one is dense; x.to_sparse() makes one",
    ),
    (
        r".*sparse.*|ccol_indices|row_indices|.*_bs[rc]|.*_csc|[hds]?smm|hspmm|ss?paddmm|saddmm|spsolve"
        r"|semi_structured|SparseSemi.*|.*semi_structured",
        "sparse tensors have coordinates (COO) or compressed rows (CSR) here: "
        "sparse_coo_tensor, sparse_csr_tensor, and sparse.mm, which multiplies either",
    ),
    (
        r"(cudnn|miopen|mkldnn)_.*|to_mkldnn|native_.*|batch_norm_.*|conv_tbc|convolution",
        "a kernel inside PyTorch; use the operation that it computes, such as conv2d or batch_norm",
    ),
    (
        r"Sym.*|sym_.*|(Script|Concrete|Static|Lite).*|.*(Type|TypeBuilder)|JIT.*|AliasDb|Argument.*"
        r"|Block|CallStack|Capsule|Code|CompilationUnit|Complete.*|DeepCopyMemoTable|ErrorReport"
        r"|ExecutionPlan|FileCheck|FunctionSchema|Gradient|Graph.*|IODescriptor|Node|OperatorInfo"
        r"|TracingState|Use|Value|Tag|Benchmark.*|ThroughputBenchmark|import_ir.*|parse_.*|merge_type.*"
        r"|unify_type.*|classes|DispatchKey.*|Disable.*|Exclude.*|Aggregation.*|AVG|SUM|.*Logger.*"
        r"|PRIVATE_OPS|fork|wait|Future|futures|library|cpp|export|cond|while_loop|overrides|package",
        "a part of PyTorch's compiler and script language; Python itself runs the program here",
    ),
    (
        r".*Storage.*|storage|storage_type|is_set_to|const_data_ptr|PyTorchFile.*"
        r"|from_file|.*StorageContext|torch_version|get_file_path",
        "memory is a NumPy array: x.numpy() shares it, numpy.memmap maps a file",
    ),
    (
        r"Event|Stream|mps|xpu|mtia|ipu|xla|vulkan|is_vulkan.*|AcceleratorError"
        r"|get_device_module|FatalError|profiler_allow.*",
        "devices besides the CPU are JAX's; chainrule.cuda and chainrule.accelerator ask for them",
    ),
    (
        r"float[48]_.*|complex32|chalf|u?int[1-7]|uint(16|32|64)|bit|bits.*",
        "NumPy has no such type, or no arithmetic for it; float16, bfloat16, float32, int8 to "
        "int64, uint8 are here",
    ),
    (
        r"dim_order",
        "x.stride() tells the order of the dimensions in memory",
    ),
    (
        r"(get|set|is|clear|autocast)_.*autocast.*|autocast_.*|GradScaler",
        "mixed precision is a matter of GPUs; chainrule.amp has what runs on the CPU",
    ),
    (
        r"symeig|eig|lstsq|solve|triangular_solve|matrix_rank|frobenius_norm|nuclear_norm"
        r"|norm_except_dim|lobpcg",
        "chainrule.linalg has eigh, eig, lstsq, solve, solve_triangular, matrix_rank, qr, svd and "
        "norm",
    ),
    (
        r"(gru|lstm|rnn_(relu|tanh))(_cell)?",
        "use the modules nn.GRU, nn.LSTM, nn.RNN and their cells",
    ),
    (
        r"grid_sampler.*|affine_grid_generator|embedding_renorm_|max_pool1d_with_indices"
        r"|(feature_|feature_alpha_|alpha_)?dropout_|feature_dropout",
        "nn.functional has grid_sample, affine_grid, embedding, max_pool1d, dropout, dropout2d",
    ),
    (
        r"ModuleDict|ParameterDict|BufferDict",
        "nn has ModuleDict and ParameterDict",
    ),
    (
        r"binomial|hash_tensor|segment_reduce|slice_inverse",
        "use distributions.Binomial, hash, scatter_reduce, slice_scatter",
    ),
    (
        r"(is|set)_anomaly_.*",
        "autograd.detect_anomaly and autograd.set_detect_anomaly turn it on",
    ),
    (
        r"has_(lapack|mkl|openmp|spectral)|init_num_threads|compiled_with_.*|USE_.*"
        r"|prepare_multiprocessing_environment|thread_safe_generator|is_distributed|legacy_.*"
        r"|classproperty|return_types|functional|common_.*|factory_.*|multi_dim_.*|types",
        "an inner part of PyTorch; chainrule.__config__ and `chainrule info` tell what is in use",
    ),
    (r"windows", "chainrule.signal.windows has them"),
    (
        r"nested|masked|jagged|to_padded_tensor|monitor|multiprocessing|profiler|quasirandom"
        r"|to_dlpack",
        "not part of this library; nn.utils.rnn pads sequences, cProfile profiles, the standard "
        "library has multiprocessing, scipy has quasi-random numbers, x.__dlpack__() "
        "shares memory",
    ),
    (
        r"as_subclass|module_load|map2_|reinforce|resize(_as)?|volatile|name|index|unsafe_.*"
        r"|output_nr|retains_grad|grad_dtype|hardshrink|prelu|untyped_.*",
        "seldom used; x[index], nn.functional.hardshrink and prelu do the same",
    ),
)


def reason_of(name: str) -> str | None:
    """Why a name of PyTorch is not here, None if nothing is known about it.

    >>> reason_of("cudnn_convolution")
    'a kernel inside PyTorch; use the operation that it computes, such as conv2d or batch_norm'
    """
    for pattern, reason in REASONS:
        if re.fullmatch(pattern, name):
            return reason
    return None


def of_pytorch(owner: str, name: str, kind: str = "module") -> AttributeError:
    """The error for a name that PyTorch's module or class of the same name may have."""
    reason = reason_of(name)
    what = f"{kind} {owner!r} has no attribute {name!r}"
    return AttributeError(what if reason is None else f"{what}: {reason}")


def warn_once(message: str, stacklevel: int = 2) -> None:
    """Warns the first time; ``stacklevel`` counts from the caller, as in ``warnings.warn``."""
    if message not in _told:
        _told.add(message)
        warnings.warn(message, stacklevel=stacklevel + 1)
