"""Switches of products and attention on a GPU. Those of TF32 count; others change nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from chainrule.absent import absent
from chainrule.backend.precision import current, set_levels

__all__ = [
    "cudnn_sdp_enabled",
    "enable_cudnn_sdp",
    "enable_flash_sdp",
    "enable_math_sdp",
    "enable_mem_efficient_sdp",
    "flash_sdp_enabled",
    "is_built",
    "is_flash_attention_available",
    "math_sdp_enabled",
    "matmul",
    "mem_efficient_sdp_enabled",
    "sdp_kernel",
]


class Matmul:
    """How a device rounds in products of matrices: ``set_float32_matmul_precision`` in switches.

    >>> import chainrule as torch
    >>> torch.backends.cuda.matmul.allow_tf32 = True
    >>> torch.get_float32_matmul_precision()
    'high'
    >>> torch.backends.cuda.matmul.allow_tf32 = False
    """

    def __init__(self) -> None:
        self.allow_fp16_reduced_precision_reduction = True
        self.allow_bf16_reduced_precision_reduction = True
        self.allow_fp16_accumulation = False

    @property
    def allow_tf32(self) -> bool:
        """Whether products of float32 may be computed in TF32."""
        return current().matmul != "highest"

    @allow_tf32.setter
    def allow_tf32(self, allowed: bool) -> None:
        set_levels(matmul="high" if allowed else "highest")

    @property
    def fp32_precision(self) -> str:
        """The same as "tf32", or "none" where nothing was allowed; "ieee" sets float32."""
        return "tf32" if self.allow_tf32 else "none"

    @fp32_precision.setter
    def fp32_precision(self, precision: str) -> None:
        if precision not in ("ieee", "tf32", "none"):
            raise RuntimeError(
                "backends.cuda.matmul.fp32_precision: expected 'ieee', 'tf32' or 'none', got "
                f"{precision!r}"
            )
        self.allow_tf32 = precision == "tf32"


matmul = Matmul()
_attention = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}


def is_built() -> bool:
    """Whether the library was compiled for NVIDIA's GPUs: it was not."""
    return False


def is_flash_attention_available() -> bool:
    """Whether a kernel for attention on a GPU is there: never here."""
    return False


def flash_sdp_enabled() -> bool:
    """Whether a GPU may use this kernel of attention."""
    return _attention["flash"]


def enable_flash_sdp(enabled: bool) -> None:
    """Sets whether a GPU may use this kernel of attention."""
    _attention["flash"] = enabled


def mem_efficient_sdp_enabled() -> bool:
    """Whether a GPU may use this kernel of attention."""
    return _attention["mem_efficient"]


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Sets whether a GPU may use this kernel of attention."""
    _attention["mem_efficient"] = enabled


def math_sdp_enabled() -> bool:
    """Whether a GPU may compute attention by its formula."""
    return _attention["math"]


def enable_math_sdp(enabled: bool) -> None:
    """Sets whether a GPU may compute attention by its formula."""
    _attention["math"] = enabled


def cudnn_sdp_enabled() -> bool:
    """Whether a GPU may use this kernel of attention."""
    return _attention["cudnn"]


def enable_cudnn_sdp(enabled: bool) -> None:
    """Sets whether a GPU may use this kernel of attention."""
    _attention["cudnn"] = enabled


@contextlib.contextmanager
def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> Iterator[None]:
    """A block in which a GPU may use these kernels of attention."""
    before = dict(_attention)
    _attention.update(
        flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn
    )
    try:
        yield
    finally:
        _attention.update(before)


ABSENT = dict.fromkeys(
    (
        "SDPAParams",
        "allow_fp16_bf16_reduction_math_sdp",
        "blas_workspace_size",
        "can_use_cudnn_attention",
        "can_use_efficient_attention",
        "can_use_flash_attention",
        "cuBLASModule",
        "cuFFTPlanCache",
        "cuFFTPlanCacheAttrContextProp",
        "cuFFTPlanCacheManager",
        "cublas_workspace_size",
        "cublaslt_workspace_size",
        "cufft_plan_cache",
        "fp16_bf16_reduction_math_sdp_allowed",
        "is_ck_sdpa_available",
        "preferred_blas_library",
        "preferred_linalg_library",
        "preferred_rocm_fa_library",
    ),
    "chainrule computes on the CPU and uses no GPU",
)


def __getattr__(name: str) -> Any:
    raise absent(__name__, name, ABSENT)
