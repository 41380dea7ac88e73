"""Linear algebra, under PyTorch's names: ``chainrule.linalg.inv``, ``chainrule.linalg.svd``, ...

Every function takes a batch of matrices in the last two dimensions and, unless its description says
otherwise, is differentiable to any order.
"""

from __future__ import annotations

from importlib import import_module
from typing import NoReturn

from chainrule.ops.linalg.checked import cholesky_ex, inv_ex, solve_ex
from chainrule.ops.linalg.decompositions import (
    cholesky,
    eigh,
    eigvalsh,
    qr,
    svd,
    svdvals,
)
from chainrule.ops.linalg.eigen import eig, eigvals
from chainrule.ops.linalg.householder import householder_product
from chainrule.ops.linalg.ldl import ldl_factor, ldl_factor_ex, ldl_solve
from chainrule.ops.linalg.lu import lu, lu_factor, lu_factor_ex, lu_solve
from chainrule.ops.linalg.matrices import (
    cond,
    cross,
    diagonal,
    lstsq,
    matrix_norm,
    matrix_power,
    matrix_rank,
    multi_dot,
    norm,
    vecdot,
    vector_norm,
)
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.linalg.reshaped import tensorinv, tensorsolve, vander
from chainrule.ops.linalg.solving import (
    LinAlgError,
    det,
    inv,
    matrix_exp,
    pinv,
    slogdet,
    solve,
    solve_triangular,
)

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "householder_product",
    "inv",
    "inv_ex",
    "ldl_factor",
    "ldl_factor_ex",
    "ldl_solve",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vander",
    "vecdot",
    "vector_norm",
]


def __getattr__(name: str) -> NoReturn:
    raise import_module("chainrule.absent").of_pytorch(__name__, name)
