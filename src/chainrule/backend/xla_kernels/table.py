"""Which kernel of ``K`` is computed how, where an argument is an array on a device.

Every kernel of ``K`` is in exactly one of these: ``TABLE`` (it has a version for XLA), ``HOSTED``
(it is computed on the host, and its result goes back), ``PLACELESS`` (it takes no arrays),
``ABSENT`` (it refuses arrays on a device).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule.backend.xla_kernels import (
    attention,
    bags,
    conv,
    elementwise,
    index,
    linalg,
    memory,
    norm,
    pool,
    products,
    random,
    rearrange,
    recurrent,
    reduce,
    slopes,
    softmax,
    sort,
    special,
    update,
)

__all__ = ["ABSENT", "HOSTED", "MAKING", "PLACELESS", "TABLE"]

FAMILIES = (
    memory,
    elementwise,
    special,
    slopes,
    reduce,
    index,
    bags,
    rearrange,
    sort,
    linalg,
    products,
    softmax,
    conv,
    pool,
    recurrent,
    norm,
    random,
    update,
    attention,
)
TABLE: dict[str, Callable[..., Any]] = {
    name: getattr(family, name)
    for family in FAMILIES
    for name in family.__all__
    if name not in ("mask_of_key", "Convolving", "product")  # of other kernels and of programs
}

_NO_SUCH = "XLA has no such function"
_SIZED = "the size of the result follows from values"
_LAPACK = "its result is what LAPACK has in memory"
_DRAWN = "random numbers are drawn on the host, in the order of the program"
HOSTED: dict[str, str] = {
    **dict.fromkeys(
        (
            "airy_ai",
            "airy_ai_slope",
            "bessel_j0",
            "bessel_j1",
            "bessel_y0",
            "bessel_y1",
            "eig",
            "eigvals",
            "erfcx",
            "gammaincinv",
            "hyp0f1",
            "log_gamma_slope",
            "modified_bessel_k0",
            "modified_bessel_k1",
            "orthogonal_polynomial",
            "scaled_modified_bessel_k0",
            "scaled_modified_bessel_k1",
        ),
        _NO_SUCH,
    ),
    **dict.fromkeys(("erfinv", "ndtri"), "XLA's has not the precision of the type"),
    **dict.fromkeys(
        (
            "bincount",
            "histogram_edges",
            "mask_select",
            "nonzero",
            "repeat_numbers",
            "unique",
            "unique_consecutive",
        ),
        _SIZED,
    ),
    **dict.fromkeys(
        (
            "cholesky_info",
            "geqrf",
            "ldl_factor",
            "ldl_solve",
            "lu_factors",
            "lu_info",
            "lu_pivots",
            "lu_rows",
        ),
        _LAPACK,
    ),
    **dict.fromkeys(
        ("ctc_log_likelihood", "ctc_posterior"), "a loop over steps and labels without a scan yet"
    ),
    **dict.fromkeys(
        ("random_binomial", "random_log_gamma", "random_poisson", "random_von_mises"), _DRAWN
    ),
}

# Without arrays among their arguments. Those of MAKING make arrays, which have no place until they
# meet one that has.
MAKING = {
    "arange",
    "combination_numbers",
    "empty",
    "eye",
    "from_buffer",
    "full",
    "half_spectrum_weights",
    "linspace",
    "logspace",
    "ones",
    "pad_numbers",
    "random_bits",
    "random_cauchy",
    "random_exponential",
    "random_geometric",
    "random_integers",
    "random_log_normal",
    "random_mask",
    "random_normal",
    "random_permutation",
    "random_uniform",
    "tril_indices",
    "triu_indices",
    "zeros",
}
PLACELESS = MAKING | {
    "Array",
    "ArrayLike",
    "LinAlgError",
    "SparsePattern",
    "from_dlpack",
    "integer_limits",
    "is_narrow",
    "kind_of",
    "read_cells",
    "rounding_error",
    "seed_global",
}

_SPARSE = "sparse tensors live on the CPU"
ABSENT: dict[str, str] = {
    "address": "an array on a device has no address that a program could use",
    **dict.fromkeys(
        (
            "common_entries",
            "compressed_rows",
            "entries_by_key",
            "expanded_rows",
            "matching_entries",
            "scipy_sparse",
            "sparse_keys",
            "sparse_product",
            "sparse_sampled",
        ),
        _SPARSE,
    ),
}
