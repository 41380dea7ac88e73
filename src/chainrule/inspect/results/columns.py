"""The features of inputs in any form, to be shuffled or set to a value one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chainrule.data.columns import Column
from chainrule.data.table import Table
from chainrule.inspect.core.arguments import arguments
from chainrule.ops.creation.conversion import clone
from chainrule.ops.creation.from_data import as_tensor, tensor
from chainrule.tensor import Tensor

__all__ = ["Columns", "columns_of"]


class Columns:
    """Named features of N samples.

    ``values(j)`` are those of feature j, ``shuffled(j, order)`` the inputs with its samples in
    another order, ``filled({j: value})`` the inputs with one value for all samples.
    """

    names: list[str]
    count: int

    def values(self, j: int) -> Tensor:
        """Feature j of all samples, as numbers."""
        raise NotImplementedError(type(self).__name__)

    def shuffled(self, j: int, order: Tensor) -> Any:
        """The inputs with feature j in another order of samples."""
        raise NotImplementedError(type(self).__name__)

    def filled(self, given: Mapping[int, float]) -> Any:
        """The inputs with some features at one value."""
        raise NotImplementedError(type(self).__name__)

    def place(self, instrument: str, feature: int | str) -> int:
        """The number of a feature that is given by number or name."""
        if isinstance(feature, str) and feature in self.names:
            return self.names.index(feature)
        if isinstance(feature, int) and -len(self.names) <= feature < len(self.names):
            return feature % len(self.names)
        raise ValueError(
            f"{instrument}: there is no feature {feature!r}; there are {self.names[:20]}"
        )


class _Arrays(Columns):
    """Columns of arrays (N, D), and channels of series (N, L, C), over all inputs of a model."""

    def __init__(self, instrument: str, inputs: Any):
        args, kwargs = arguments(instrument, inputs)
        given: dict[Any, Any] = {**dict(enumerate(args)), **kwargs}
        self.keywords, self.several = bool(kwargs), len(args) > 1
        self.leaves: dict[Any, Tensor] = {}
        for key, value in given.items():
            leaf = as_tensor(value).detach()
            if leaf.ndim not in (1, 2, 3) or not leaf.numel():
                raise ValueError(
                    f"{instrument}: inputs must be a table (N, D) or series (N, L, C), got shape "
                    f"{tuple(leaf.shape)}; pictures have no columns: use inspect.attribute"
                )
            self.leaves[key] = leaf
        self.places = [
            (key, c)
            for key, leaf in self.leaves.items()
            for c in range(leaf.shape[-1] if leaf.ndim > 1 else 1)
        ]
        only = len(self.leaves) == 1
        self.names = [str(c) if only else f"{key}.{c}" for key, c in self.places]
        self.count = len(next(iter(self.leaves.values())))

    def values(self, j: int) -> Tensor:
        key, c = self.places[j]
        leaf = self.leaves[key]
        return (leaf if leaf.ndim == 1 else leaf[..., c]).double()

    def shuffled(self, j: int, order: Tensor) -> Any:
        key, c = self.places[j]
        changed = clone(self.leaves[key])
        if changed.ndim == 1:
            return self._again({key: changed[order]})
        changed[..., c] = self.leaves[key][order][..., c]
        return self._again({key: changed})

    def filled(self, given: Mapping[int, float]) -> Any:
        made: dict[Any, Tensor] = {}
        for j, value in given.items():
            key, c = self.places[j]
            made.setdefault(key, clone(self.leaves[key]))
            if made[key].ndim == 1:
                made[key][:] = value
            else:
                made[key][..., c] = value
        return self._again(made)

    def _again(self, changed: Mapping[Any, Tensor]) -> Any:
        whole = {key: changed.get(key, leaf) for key, leaf in self.leaves.items()}
        if self.keywords:
            return whole
        return tuple(whole.values()) if self.several else next(iter(whole.values()))


class _Rows(Columns):
    """The columns of a table."""

    def __init__(self, table: Table, left_out: str | None):
        self.table, self.count = table, len(table)
        self.names = [name for name in table.names if name != left_out]

    def values(self, j: int) -> Tensor:
        column = self.table[self.names[j]]
        if column.kind != "number":
            raise ValueError(
                f"partial_dependence: the feature {self.names[j]!r} has words and no numbers; "
                "choose another, or encode it first"
            )
        return column.numbers

    def shuffled(self, j: int, order: Tensor) -> Table:
        own = self.names[j]
        other = self.table.take(order)
        return Table([other[c.name] if c.name == own else c for c in self.table])

    def filled(self, given: Mapping[int, float]) -> Table:
        fixed = {self.names[j]: value for j, value in given.items()}
        return Table(
            [
                Column(c.name, "number", [fixed[c.name]] * self.count) if c.name in fixed else c
                for c in self.table
            ]
        )


class _Frame(Columns):
    """The columns of a pandas frame."""

    def __init__(self, frame: Any):
        self.frame, self.count = frame, len(frame)
        self.names = [str(name) for name in frame.columns]

    def values(self, j: int) -> Tensor:
        return as_tensor(self.frame.iloc[:, j].to_numpy()).double()

    def shuffled(self, j: int, order: Tensor) -> Any:
        changed = self.frame.copy()
        changed.isetitem(j, self.frame.iloc[order.tolist(), j].to_numpy())
        return changed

    def filled(self, given: Mapping[int, float]) -> Any:
        changed = self.frame.copy()
        for j, value in given.items():
            changed.isetitem(j, [value] * self.count)
        return changed


def columns_of(
    instrument: str, inputs: Any, names: Sequence[str] | None, left_out: str | None = None
) -> Columns:
    """The features of a table, a frame, an array, or of several arrays."""
    if isinstance(inputs, Table):
        found: Columns = _Rows(inputs, left_out)
    elif hasattr(inputs, "iloc") and hasattr(inputs, "columns"):
        found = _Frame(inputs)
    else:
        listed = isinstance(inputs, list) and inputs and not hasattr(inputs[0], "__array__")
        found = _Arrays(instrument, tensor(inputs) if listed else inputs)
    if names is not None:
        if len(names) != len(found.names):
            raise ValueError(f"{instrument}: {len(names)} names for {len(found.names)} features")
        found.names = [str(name) for name in names]
    return found
