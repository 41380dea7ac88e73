"""Elementwise functions of sparse tensors: those that keep zeros, and arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

from chainrule.backend import K
from chainrule.ops.core.promotion import NUMBERS, broadcast_shapes
from chainrule.ops.elementwise import complex_numbers, derived, functions, logic, options
from chainrule.ops.shape.stacking import cat
from chainrule.ops.shape.views import expand, reshape
from chainrule.sparse.base import Sparse, gathered, summed
from chainrule.sparse.creation import at_places
from chainrule.sparse.structure import Structure
from chainrule.tensor import Tensor
from chainrule.typing import Number

__all__ = ["KEEP_ZEROS", "LINEAR", "add", "applied", "div", "mul", "pow", "to_dense"]

S = TypeVar("S", bound=Sparse)
Function = Callable[..., Tensor]

# Functions with f(0) = 0: what is no entry stays none.
KEEP_ZEROS: dict[str, Function] = {
    "abs": complex_numbers.abs,
    "asin": functions.asin,
    "asinh": functions.asinh,
    "atan": functions.atan,
    "atanh": functions.atanh,
    "ceil": functions.ceil,
    "deg2rad": derived.deg2rad,
    "erf": functions.erf,
    "erfinv": functions.erfinv,
    "expm1": functions.expm1,
    "floor": functions.floor,
    "frac": functions.frac,
    "isinf": logic.isinf,
    "isnan": logic.isnan,
    "log1p": functions.log1p,
    "nan_to_num": options.nan_to_num,
    "rad2deg": derived.rad2deg,
    "relu": functions.relu,
    "round": options.round,
    "sgn": complex_numbers.sgn,
    "sign": functions.sign,
    "sin": functions.sin,
    "sinh": functions.sinh,
    "sqrt": functions.sqrt,
    "square": functions.square,
    "tan": functions.tan,
    "tanh": functions.tanh,
    "trunc": functions.trunc,
}
# Those with f(x + y) = f(x) + f(y), too: entries at one place need not be summed before.
LINEAR: dict[str, Function] = {
    "conj": complex_numbers.conj,
    "imag": complex_numbers.imag,
    "neg": functions.neg,
    "positive": derived.positive,
    "real": complex_numbers.real,
}


def applied(name: str, x: S, **options: Any) -> S:
    """A function that keeps zeros, of each element."""
    if name in LINEAR:
        return x.with_values(LINEAR[name](x.entries))
    x = x.distinct()
    return x.with_values(KEEP_ZEROS[name](x.entries, **options))


def to_dense(x: Sparse) -> Tensor:
    """All elements, the zeros too."""
    count = math.prod(x.shape[: x.sparse_dim()])
    return reshape(summed(x.entries, x.structure.keys, count), tuple(x.shape))


def _check_shapes(op: str, x: Sparse, y: Sparse) -> None:
    if x.shape != y.shape or x.sparse_dim() != y.sparse_dim():
        raise RuntimeError(
            f"{op}: sparse tensors must have the same shape and sparse dimensions, got shapes "
            f"{tuple(x.shape)} and {tuple(y.shape)} with {x.sparse_dim()} and {y.sparse_dim()} of "
            "them"
        )


def add(x: Any, y: Any, alpha: Number = 1) -> Any:
    """x + alpha y: sparse if both are, dense if one is."""
    for a, b in ((x, y), (y, x)):
        if not isinstance(b, Sparse) and (isinstance(b, NUMBERS) or b.ndim == 0):
            raise a.refusal("add of a number")
    if not isinstance(x, Sparse):
        return x + to_dense(y if alpha == 1 else scaled(y, alpha))
    if not isinstance(y, Sparse):
        return to_dense(x) + (y if alpha == 1 else y * alpha)
    _check_shapes("add", x, y)
    y = y if alpha == 1 else scaled(y, alpha)
    if x.structure.equals(y.structure):
        return x.with_values(x.entries + y.entries)
    places = K.cat(x.structure.indices, y.structure.indices, dim=1)
    values = cat([x.entries, y.entries])
    both = x.of(Structure(places, tuple(x.shape)), values)
    return both.distinct() if x.structure.starts is None else both.in_rows()


def scaled(x: S, number: Number | Tensor) -> S:
    """A sparse tensor times a number."""
    return x.with_values(x.entries * number)


def mul(x: Any, y: Any) -> Any:
    """The product of each element of one and the same of the other: sparse if one of them is."""
    if not isinstance(x, Sparse):
        x, y = y, x
    if isinstance(y, NUMBERS) or (isinstance(y, Tensor) and y.ndim == 0):
        return scaled(x, y)
    if isinstance(y, Sparse):
        return _product_of_sparse(x, y)
    if tuple(broadcast_shapes(x.shape, y.shape, op="mul")) != tuple(x.shape):
        raise RuntimeError(
            f"mul: a dense tensor of shape {tuple(y.shape)} does not expand to the shape of the "
            f"sparse one, {tuple(x.shape)}"
        )
    return x.with_values(x.entries * at_places(type(x), expand(y, *x.shape), x.structure).entries)


def _product_of_sparse(x: Any, y: Any) -> Any:
    _check_shapes("mul", x, y)
    x, y = x.distinct(), y.distinct()
    if x.structure.equals(y.structure):
        return x.with_values(x.entries * y.entries)
    places = K.cat(x.structure.indices, y.structure.indices, dim=1)
    keys = Structure(places, tuple(x.shape)).keys
    a, b = K.common_entries(keys[: x.structure.nnz], keys[x.structure.nnz :])
    return x.of(x.structure.at(a), gathered(x.entries, a) * gathered(y.entries, b))


def div(x: Any, y: Any, op: Callable[[Any, Any], Tensor] = functions.true_divide) -> Any:
    """A sparse tensor divided by a number."""
    if not isinstance(x, Sparse):
        raise y.refusal("division by a sparse tensor")
    if not isinstance(y, NUMBERS) and not (isinstance(y, Tensor) and y.ndim == 0):
        raise RuntimeError(
            "div: a sparse tensor is divided by a number (elsewhere it would be 0 / y, or 0 / 0); "
            f"got one of shape {tuple(y.shape)}; multiply by 1 / y"
        )
    if op is not functions.true_divide:
        x = x.distinct()
    return x.with_values(op(x.entries, y))


def pow(x: Any, exponent: Any) -> Any:
    """Each element to a power above 0."""
    if not isinstance(x, Sparse):
        raise exponent.refusal("pow with a sparse exponent")
    if not isinstance(exponent, NUMBERS) or isinstance(exponent, complex) or exponent <= 0:
        raise RuntimeError(
            f"pow: the exponent of a sparse tensor must be a number above 0, which keeps zeros; "
            f"got {exponent}; convert with .to_dense() first"
        )
    x = x.distinct()
    return x.with_values(functions.pow(x.entries, exponent))
