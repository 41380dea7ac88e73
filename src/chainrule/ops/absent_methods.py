"""Methods of PyTorch's tensors that ours have not: the error for each says why.

A descriptor for each name costs nothing where it is not asked for; ``__getattr__`` would make every
attribute of every tensor slower (measured: 20 ns for an attribute, 45 ns for a call of a method).
"""

from __future__ import annotations

from importlib import import_module
from typing import NoReturn

__all__ = ["NAMES", "Absent"]


class Absent:
    """An attribute that is not there: ``hasattr`` says so, and the error gives the reason."""

    def __init__(self, name: str):
        self.name = name

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise import_module("chainrule.absent").of_pytorch(owner.__name__, self.name, "the class")


NAMES = (
    "as_subclass",
    "ccol_indices",
    "chalf",
    "coalesce",
    "col_indices",
    "const_data_ptr",
    "crow_indices",
    "dequantize",
    "dim_order",
    "eig",
    "geqrf",
    "grad_dtype",
    "hardshrink",
    "hash_tensor",
    "index",
    "indices",
    "int_repr",
    "ipu",
    "is_coalesced",
    "is_distributed",
    "is_set_to",
    "lstsq",
    "map2_",
    "module_load",
    "mtia",
    "name",
    "orgqr",
    "ormqr",
    "output_nr",
    "prelu",
    "q_per_channel_axis",
    "q_per_channel_scales",
    "q_per_channel_zero_points",
    "q_scale",
    "q_zero_point",
    "qscheme",
    "reinforce",
    "resize",
    "resize_as",
    "resize_as_sparse_",
    "retains_grad",
    "row_indices",
    "slice_inverse",
    "smm",
    "solve",
    "sparse_resize_",
    "sparse_resize_and_clear_",
    "sspaddmm",
    "storage_type",
    "symeig",
    "to_mkldnn",
    "to_padded_tensor",
    "to_sparse_bsc",
    "to_sparse_bsr",
    "to_sparse_csc",
    "triangular_solve",
    "unsafe_split_with_sizes",
    "untyped_storage",
    "values",
    "volatile",
    "xpu",
)
