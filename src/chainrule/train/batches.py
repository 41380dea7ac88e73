"""Whatever a user calls data, as a loader of batches (inputs, target, weight)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from chainrule import nn
from chainrule.backend import dtypes
from chainrule.data import DataLoader, Dataset, TensorDataset
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.core.promotion import cast
from chainrule.random import Generator
from chainrule.tensor import Tensor
from chainrule.typing import Features

__all__ = ["Batch", "FirstBatches", "as_loader", "batches", "floating_dtype", "to_tensor"]


# A loader or any other iterable of batches, a dataset, (x, y) or (x, y, sample_weight).
DataLike = Iterable[Any] | Dataset[Any]


class Batch(NamedTuple):
    """The arguments of the model, the target, and the weights of the samples."""

    inputs: tuple[Any, ...]
    target: Any
    weight: Tensor | None

    @property
    def size(self) -> int:
        """The number of samples."""
        first = self.inputs[0]
        return int(first.shape[0]) if isinstance(first, Tensor) and first.ndim else 1


def floating_dtype(model: nn.Module) -> dtypes.dtype:
    """The dtype in which a model computes."""
    for p in model.parameters():
        if p.dtype.is_floating_point:
            return p.dtype
    return dtypes.get_default_dtype()


def to_tensor(value: Features, dtype: dtypes.dtype) -> Tensor:
    """An array, a frame or a list as a tensor; numbers with a point in the model's dtype."""
    if isinstance(value, Tensor):
        t = value
    else:
        plain: Any = value
        t = as_tensor(plain.to_numpy() if hasattr(plain, "to_numpy") else plain)
    if t.dtype.is_floating_point:
        return t if t.dtype == dtype else cast(t.detach(), dtype)
    return t


def as_loader(
    data: DataLike,
    model: nn.Module,
    batch_size: int = 32,
    shuffle: bool = False,
    generator: Generator | None = None,
) -> Iterable[Any]:
    """A loader of ``data``: a loader, a dataset, or a tuple (x, y) or (x, y, sample_weight)."""
    if isinstance(data, DataLoader) or (
        hasattr(data, "__iter__")
        and not isinstance(data, (tuple, list, Dataset, Tensor, dict, str, bytes))
        and not hasattr(data, "__array__")
    ):
        return data
    if isinstance(data, (tuple, list)):
        if len(data) not in (2, 3):
            raise ValueError(
                f"Trainer: expected data as (x, y) or (x, y, sample_weight), got {len(data)} parts"
            )
        dtype = floating_dtype(model)
        data = TensorDataset(*[to_tensor(part, dtype) for part in data if part is not None])
    if not isinstance(data, Dataset):
        raise TypeError(
            "Trainer: expected a DataLoader, a Dataset, or a tuple (x, y) of tensors or arrays, "
            f"got {type(data).__name__}"
        )
    return DataLoader(data, batch_size=batch_size, shuffle=shuffle, generator=generator)


class FirstBatches:
    """The first few batches of a loader, always the same."""

    def __init__(self, loader: Iterable[Any], count: int):
        self.kept = [batch for batch, _ in zip(loader, range(count), strict=False)]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.kept)

    def __len__(self) -> int:
        return len(self.kept)


def batches(loader: Iterable[Any]) -> Iterator[Batch]:
    """The batches of a loader: pairs (x, y) or triples (x, y, weight); x may be a tuple."""
    for given in loader:
        if not isinstance(given, (tuple, list)) or len(given) not in (2, 3):
            shown = len(given) if isinstance(given, (tuple, list)) else type(given).__name__
            raise ValueError(
                f"Trainer: a batch must be (input, target) or (input, target, weight), got {shown}"
            )
        inputs, target, *weight = given
        several = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
        yield Batch(several, target, weight[0] if weight else None)
