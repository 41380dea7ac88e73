"""What views show, in memory of its own: ``permute_copy`` and its like, as PyTorch has them."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, ParamSpec, TypeVar

from chainrule.ops.creation.conversion import clone
from chainrule.ops.index.reading import select
from chainrule.ops.shape.diagonal import diagonal
from chainrule.ops.shape.joining import split, split_with_sizes, unbind
from chainrule.ops.shape.padding import unfold
from chainrule.ops.shape.rearrange import t
from chainrule.ops.shape.strided import as_strided, slice_view_of, view_as_complex, view_as_real
from chainrule.ops.shape.views import expand, permute, squeeze, transpose, unsqueeze, view
from chainrule.tensor import Tensor

__all__ = [
    "alias_copy", "as_strided_copy", "detach_copy", "diagonal_copy", "expand_copy", "permute_copy",
    "select_copy", "slice_copy", "split_copy", "split_with_sizes_copy", "squeeze_copy", "t_copy",
    "transpose_copy", "unbind_copy", "unfold_copy", "unsqueeze_copy", "view_as_complex_copy",
    "view_as_real_copy", "view_copy",
]  # fmt: skip
METHODS: tuple[str, ...] = ()
INPLACE: tuple[str, ...] = ()

P = ParamSpec("P")
R = TypeVar("R")


def _copy_of(function: Callable[P, R], name: str) -> Callable[P, R]:
    """The function that copies what another one shows, or each of the parts that it shows."""

    def copying(*args: P.args, **kwargs: P.kwargs) -> Any:
        shown = function(*args, **kwargs)
        parts: Any = shown
        return tuple(clone(x) for x in parts) if isinstance(parts, tuple) else clone(parts)

    update_wrapper(copying, function)
    copying.__name__ = copying.__qualname__ = name
    copying.__module__ = __name__
    copying.__doc__ = f"A copy of what ``{name.removesuffix('_copy')}`` shows."
    return copying


def alias_copy(input: Tensor) -> Tensor:
    """A copy of the whole tensor."""
    return clone(input)


def detach_copy(input: Tensor) -> Tensor:
    """A copy without history."""
    return clone(input.detach())


as_strided_copy = _copy_of(as_strided, "as_strided_copy")
diagonal_copy = _copy_of(diagonal, "diagonal_copy")
expand_copy = _copy_of(expand, "expand_copy")
permute_copy = _copy_of(permute, "permute_copy")
select_copy = _copy_of(select, "select_copy")
slice_copy = _copy_of(slice_view_of, "slice_copy")
split_copy = _copy_of(split, "split_copy")
split_with_sizes_copy = _copy_of(split_with_sizes, "split_with_sizes_copy")
squeeze_copy = _copy_of(squeeze, "squeeze_copy")
t_copy = _copy_of(t, "t_copy")
transpose_copy = _copy_of(transpose, "transpose_copy")
unbind_copy = _copy_of(unbind, "unbind_copy")
unfold_copy = _copy_of(unfold, "unfold_copy")
unsqueeze_copy = _copy_of(unsqueeze, "unsqueeze_copy")
view_as_complex_copy = _copy_of(view_as_complex, "view_as_complex_copy")
view_as_real_copy = _copy_of(view_as_real, "view_as_real_copy")
view_copy = _copy_of(view, "view_copy")
