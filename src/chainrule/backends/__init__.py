"""PyTorch's ``torch.backends``: switches of libraries that PyTorch calls and chainrule does not.

They can be read and set, so that programs run; none changes a result here. Which kernels compute is
chosen in ``chainrule.backend``, and repeatability is not a choice: the same program gives the same
numbers on the same machine.
"""

from typing import Any

from chainrule.absent import absent
from chainrule.backends import (
    cpu,
    cuda,
    cudnn,
    mha,
    mkl,
    mkldnn,
    mps,
    openmp,
    opt_einsum,
    quantized,
)

__all__ = [
    "cpu",
    "cuda",
    "cudnn",
    "mha",
    "mkl",
    "mkldnn",
    "mps",
    "openmp",
    "opt_einsum",
    "quantized",
]

ABSENT = dict.fromkeys(
    ("cusparselt", "kleidiai", "miopen", "nnpack", "python_native", "xeon", "xnnpack"),
    "chainrule does not call this library; what computes is chosen in chainrule.backend",
)


def __getattr__(name: str) -> Any:
    raise absent(__name__, name, ABSENT)
