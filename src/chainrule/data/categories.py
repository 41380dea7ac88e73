"""Categories: text or numbers as indices, and indices as unit vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

from chainrule.backend import dtypes
from chainrule.data.preprocess import Transform
from chainrule.data.table import Column, Table
from chainrule.ops.creation.from_data import as_tensor, tensor
from chainrule.ops.reduce.order import argmax
from chainrule.ops.core.promotion import cast
from chainrule.ops.reduce.reductions import any as any_of
from chainrule.ops.shape.views import unsqueeze
from chainrule.ops.shape.stacking import cat, stack
from chainrule.ops.reduce.sort import unique
from chainrule.tensor import Tensor
from chainrule.typing import ArrayLike

__all__ = ["CategoryEncoder", "OneHot"]

Categories = Table | Column | ArrayLike


class OneHot(Transform):
    """Unit vectors for class numbers, C_k = e_k, and back.

    Takes integers of shape (N,) or (N, D) and returns (N, K): for each column as many numbers as it
    has different values in the training part, in their order. ``inverse`` finds the largest of
    them, so that it takes the outputs of a network, too.

    Args:
        num_classes: the number of classes, if the values are 0, ..., num_classes - 1 and the
            training part may lack some.
        unknown: what to do with a value that was not in training: "error", or "zeros".

    >>> import chainrule
    >>> one_hot = OneHot().fit(chainrule.tensor([2, 0, 5]))
    >>> one_hot(chainrule.tensor([5, 2]))
    tensor([[0., 0., 1.],
            [0., 1., 0.]])
    >>> one_hot.inverse(chainrule.tensor([[0.1, 0.7, 0.2]]))
    tensor([2])
    """

    fitted_names = ("values", "sizes", "dims")

    def __init__(self, num_classes: int | None = None, *, unknown: str = "error"):
        super().__init__()
        if num_classes is not None and num_classes < 1:
            raise ValueError(f"OneHot: num_classes must be positive, got {num_classes}")
        if unknown not in ("error", "zeros"):
            raise ValueError(f"OneHot: unknown must be 'error' or 'zeros', got {unknown!r}")
        self.num_classes, self.unknown = num_classes, unknown

    def fit(self, x: ArrayLike) -> Self:
        """Learns the values of each column."""
        x = _integers(self, x)
        columns = [x] if x.ndim == 1 else list(x.unbind(1))
        if 0 in x.shape:
            raise ValueError(f"OneHot.fit: the training part is empty, got {tuple(x.shape)}")
        if self.num_classes is None:
            values = [unique(c) for c in columns]
        else:
            values = [tensor(list(range(self.num_classes)))] * len(columns)
            for i, column in enumerate(columns):
                _refuse_unknown(i, column, unsqueeze(column, 1) == values[i])
        sizes = tensor([len(v) for v in values])
        return self.keep(values=cat(values), sizes=sizes, dims=tensor(x.ndim))

    def _columns(self) -> list[Tensor]:
        """The values of each column."""
        return list(self.values.split(self.sizes.tolist()))

    def forward(self, x: ArrayLike) -> Tensor:
        """Vectors (N, K) of zeros and ones, in the default floating type."""
        self.need_fit()
        x = _integers(self, x)
        if x.ndim != int(self.dims) or (x.ndim == 2 and x.shape[1] != len(self.sizes)):
            wanted = "(N,)" if int(self.dims) == 1 else f"(N, {len(self.sizes)})"
            raise ValueError(f"OneHot: fitted on shape {wanted}, got {tuple(x.shape)}")
        columns = [x] if x.ndim == 1 else list(x.unbind(1))
        blocks = []
        for i, (column, values) in enumerate(zip(columns, self._columns(), strict=True)):
            hits = unsqueeze(column, 1) == values
            if self.unknown == "error":
                _refuse_unknown(i, column, hits)
            blocks.append(hits)
        return cast(cat(blocks, 1), dtypes.get_default_dtype())

    def inverse(self, x: ArrayLike) -> Tensor:
        """The values at the largest number in each block: (N,) or (N, D)."""
        self.need_fit()
        x, sizes = as_tensor(x), self.sizes.tolist()
        if x.ndim != 2 or x.shape[1] != sum(sizes):
            raise ValueError(
                f"OneHot.inverse: expected shape (N, {sum(sizes)}), got {tuple(x.shape)}"
            )
        blocks = x.detach().split(sizes, 1)
        for i, block in enumerate(blocks):
            some = any_of(block != 0, 1).tolist()
            if not all(some):
                raise ValueError(
                    f"OneHot.inverse: row {some.index(False)} is all zeros in column {i}, both "
                    "counted from 0: a value that was unknown cannot be restored"
                )
        found = [v[argmax(b, 1)] for v, b in zip(self._columns(), blocks, strict=True)]
        return found[0] if int(self.dims) == 1 else stack(found, 1)

    def extra_repr(self) -> str:
        told = [] if self.num_classes is None else [str(self.num_classes)]
        return ", ".join(told + ["unknown='zeros'"] * (self.unknown == "zeros"))


def _refuse_unknown(i: int, column: Tensor, hits: Tensor) -> None:
    known = any_of(hits, 1).tolist()
    if not all(known):
        row = known.index(False)
        raise ValueError(
            f"OneHot: row {row} of column {i}, both counted from 0, has the value "
            f"{column[row].item()}, which was not in training; use unknown='zeros', or "
            "num_classes"
        )


def _integers(transform: Transform, x: ArrayLike) -> Tensor:
    op, x = type(transform).__name__, as_tensor(x)
    if x.dtype.is_floating_point or x.dtype.is_complex:
        raise TypeError(
            f"{op}: expected integers, got {x.dtype}; convert class numbers with .long(), or use "
            "CategoryEncoder first"
        )
    if x.ndim not in (1, 2):
        raise ValueError(f"{op}: expected shape (N,) or (N, D), got {tuple(x.shape)}")
    return cast(x, dtypes.int64)


class CategoryEncoder(Transform):
    """Categories (text or integers) as indices 0, 1, ... in their order, and back.

    Takes a list of values or a column (the result has shape (N,)), or a table, a list of rows or an
    integer tensor (N, D), whose columns are encoded each on its own. None, a missing value, is a
    category if it occurs in the training part. :class:`OneHot` makes unit vectors of the indices,
    :class:`chainrule.nn.Embedding` learns vectors for them.

    Args:
        unknown: what to do with a value that was not in training: "error", or "index" for one
            index behind all others (``inverse`` gives None for it).

    >>> encoder = CategoryEncoder().fit(["red", "blue", "red"])
    >>> encoder(["blue", "red"]), encoder.categories
    (tensor([0, 1]), [['blue', 'red']])
    >>> encoder.inverse(encoder(["red"]))
    ['red']
    """

    def __init__(self, unknown: str = "error"):
        super().__init__()
        if unknown not in ("error", "index"):
            raise ValueError(
                f"CategoryEncoder: unknown must be 'error' or 'index', got {unknown!r}"
            )
        self.unknown = unknown
        self.categories: list[list[Any]] = []
        self.names: list[str] = []
        self.single = True

    @property
    def is_fitted(self) -> bool:
        """Whether ``fit`` has been called, or a fitted state loaded."""
        return bool(self.categories)

    @property
    def sizes(self) -> list[int]:
        """The number of indices of each column, that for unknown values included."""
        return [len(c) + (self.unknown == "index") for c in self.categories]

    def fit(self, x: Categories) -> Self:
        """Learns the categories of each column."""
        columns, names, single = _values(x)
        if not columns or not columns[0]:
            raise ValueError("CategoryEncoder.fit: the training part is empty")
        self.categories = [_ordered(c, n) for c, n in zip(columns, names, strict=True)]
        self.names, self.single = names, single
        return self

    def forward(self, x: Categories) -> Tensor:
        """Indices, of shape (N,) or (N, D)."""
        self.need_fit()
        columns, names, single = _values(x)
        if single != self.single or names != self.names:
            raise ValueError(f"CategoryEncoder: fitted on {self._told()}, got {', '.join(names)}")
        indices = []
        for values, name, categories in zip(columns, names, self.categories, strict=True):
            place = {c: i for i, c in enumerate(categories)}
            found = [place.get(v, len(categories)) for v in values]
            if self.unknown == "error" and len(categories) in found:
                row = found.index(len(categories))
                raise ValueError(
                    f"CategoryEncoder: row {row}, counted from 0, of {name} has {values[row]!r}, "
                    "which was not in training; use unknown='index'"
                )
            indices.append(tensor(found, dtype=dtypes.int64))
        return indices[0] if single else stack(indices, 1)

    def _told(self) -> str:
        return ", ".join(self.names)

    def inverse(self, x: ArrayLike) -> list[Any]:
        """The values of indices: a list, or a list of rows if fitted on several columns."""
        self.need_fit()
        x = _integers(self, x)
        columns = [x] if self.single else list(x.unbind(-1))
        if x.ndim != 2 - self.single or len(columns) != len(self.categories):
            wanted = "(N,)" if self.single else f"(N, {len(self.categories)})"
            raise ValueError(f"CategoryEncoder.inverse: expected {wanted}, got {tuple(x.shape)}")
        restored = []
        for column, categories, size in zip(columns, self.categories, self.sizes, strict=True):
            indices = column.tolist()
            wrong = [i for i in indices if not 0 <= i < size]
            if wrong:
                raise IndexError(f"CategoryEncoder.inverse: index {wrong[0]} of {size}")
            known = [*categories, None]
            restored.append([known[i] for i in indices])
        return restored[0] if self.single else [list(row) for row in zip(*restored, strict=True)]

    def get_extra_state(self) -> dict[str, Any]:
        return {"categories": self.categories, "names": self.names, "single": self.single}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        self.categories = [list(c) for c in state["categories"]]
        self.names, self.single = list(state["names"]), bool(state["single"])

    def extra_repr(self) -> str:
        return "unknown='index'" if self.unknown == "index" else ""


def _values(x: Categories) -> tuple[list[list[Any]], list[str], bool]:
    """The values of each column, the columns' names, and whether it is a single one."""
    if isinstance(x, Table):
        return (
            [_plain(c.as_category().values) for c in x],
            [f"column {n!r}" for n in x.names],
            False,
        )
    if isinstance(x, Column):
        return [_plain(x.as_category().values)], ["the column"], True
    if hasattr(x, "tolist"):  # a tensor, an array, a series
        x = x.tolist()
    if isinstance(x, str) or not isinstance(x, Sequence):
        raise TypeError(
            "CategoryEncoder: expected a list of values or of rows, a column, a table or a tensor, "
            f"got {type(x).__name__}"
        )
    rows = list(x)
    if not rows or not isinstance(rows[0], (list, tuple)):
        return [_plain(rows)], ["the column"], True
    lengths = {len(r) if isinstance(r, (list, tuple)) else -1 for r in rows}
    if len(lengths) > 1:
        raise ValueError("CategoryEncoder: the rows have different lengths")
    columns = [_plain(c) for c in zip(*rows, strict=True)]
    return columns, [f"column {i}" for i in range(len(columns))], False


def _plain(values: Sequence[Any]) -> list[Any]:
    """Text, integers and None; NaN is None, and a number of another kind is an error."""
    return [_one(v) for v in values]


def _one(value: object) -> str | int | None:
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, float):
        if math.isnan(value):
            return None
        if value.is_integer():
            return int(value)
    raise TypeError(
        f"CategoryEncoder: categories are text or whole numbers, got {value!r} "
        f"({type(value).__name__})"
    )


def _ordered(values: list[Any], name: str) -> list[Any]:
    """The different values: None first, then numbers or text in their order."""
    different = set(values)
    present = [v for v in different if v is not None]
    try:
        ordered = sorted(present)
    except TypeError:
        raise ValueError(f"CategoryEncoder: {name} mixes text and numbers; make all text") from None
    return [None] * (None in different) + ordered
