"""What each kernel does besides computing a result from its arguments.

A program that is recorded once and repeated (``chainrule.compile``) may fold, drop and move what is
pure; all others it has to treat as what they are. Every kernel of ``K`` is of exactly one kind.
"""

from __future__ import annotations

__all__ = ["CHECKS", "DRAWS", "OUTSIDE", "PURE", "READS", "SIZED", "STATIC", "WRITES", "effect_of"]

PURE = "pure"  # most
# Changes arrays that it is given; by the places of these among its arguments.
WRITES = {
    "write": (0,),
    "write_clamped": (0,),
    "write_clipped": (0,),
    "write_index": (0,),
    "write_into": (1,),
    "write_scaled": (0,),
    "write_subscript": (0,),
    "write_updates": (1, 4),
}
# Takes numbers from a generator.
DRAWS = {
    "random_binomial",
    "random_bits",
    "random_cauchy",
    "random_exponential",
    "random_geometric",
    "random_integers",
    "random_log_gamma",
    "random_log_normal",
    "random_mask",
    "random_normal",
    "random_permutation",
    "random_poisson",
    "random_uniform",
    "random_von_mises",
}
# Says whether values are as they have to be; if they are not, an error follows.
CHECKS = {
    "all_finite",
    "all_finite_weights",
    "all_in_range",
    "all_rows_positive",
}
# Depends on shapes, types and places in memory alone.
STATIC = {
    "Array",
    "ArrayLike",
    "LinAlgError",
    "SparsePattern",
    "allow_writing",
    "integer_limits",
    "is_contiguous",
    "is_in_order",
    "is_narrow",
    "is_shared_inside",
    "kind_of",
    "may_share_memory",
    "memory_order",
    "offset_between",
    "rounding_error",
}
# Leaves numbers to Python.
READS = {"bytes_of", "to_numpy", "total_norm"}
# The size of the result follows from values.
SIZED = {
    "bincount",
    "common_entries",
    "compressed_rows",
    "entries_by_key",
    "expanded_rows",
    "mask_select",
    "matching_entries",
    "nonzero",
    "repeat_numbers",
    "sparse_keys",
    "unique",
    "unique_consecutive",
}
# Has to do with the world outside of programs.
OUTSIDE = {"address", "from_dlpack", "read_cells", "resized", "scipy_sparse", "seed_global"}

_KINDS = {
    "writes": set(WRITES),
    "draws": DRAWS,
    "checks": CHECKS,
    "static": STATIC,
    "reads": READS,
    "sized by data": SIZED,
    "outside": OUTSIDE,
}


def effect_of(kernel: str) -> str:
    """The kind of a kernel.

    >>> effect_of("tanh"), effect_of("write_updates"), effect_of("random_mask")
    ('pure', 'writes', 'draws')
    """
    for kind, names in _KINDS.items():
        if kernel in names:
            return kind
    return PURE
