"""Whatever a user calls data, as a loader of batches (inputs, target, weight)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from chainrule import nn
from chainrule.autograd.modes import no_grad
from chainrule.autograd.nested import flatten, map_tree
from chainrule.backend import dtypes
from chainrule.data import DataLoader, Dataset, TensorDataset
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.core.promotion import cast
from chainrule.nn.module.evaluation import evaluating
from chainrule.random import Generator, fork_rng
from chainrule.tensor import Tensor
from chainrule.train.placing import Placing
from chainrule.typing import Features

__all__ = [
    "Batch",
    "FirstBatches",
    "as_loader",
    "batches",
    "floating_dtype",
    "to_features",
    "to_tensor",
]


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
        if not isinstance(first, Tensor):
            first = next((t for t in flatten(self.inputs)[0] if isinstance(t, Tensor)), None)
        return 1 if first is None or not first.ndim else int(first.shape[0])


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


def to_features(inputs: Sequence[Any], model: nn.Module) -> list[Any]:
    """The arguments of a model as tensors: arrays, frames and lists, or dicts of them.

    Integers become numbers of the model's dtype where the model does not take them as they are, as
    one that begins with an embedding does.
    """
    dtype = floating_dtype(model)
    given = [_mapped(lambda v: to_tensor(v, dtype), part) for part in inputs]
    if not any(_is_integer(t) for t in flatten(given)[0]) or _takes(model, given):
        return given
    return [_mapped(lambda t: cast(t, dtype) if _is_integer(t) else t, part) for part in given]


def _mapped(function: Callable[[Any], Tensor], value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: function(v) for k, v in value.items()}
    return function(value)


def _is_integer(t: Tensor) -> bool:
    return not (t.dtype.is_floating_point or t.dtype.is_complex)


def _takes(model: nn.Module, inputs: list[Any]) -> bool:
    """Whether a model can compute with inputs of these dtypes; seen from one sample."""
    with evaluating(model), no_grad(), fork_rng():
        try:
            model(*Placing(model).put(map_tree(lambda t: t[:1], inputs)))
        except (RuntimeError, TypeError, ValueError, IndexError):
            return False
    return True


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
        (x,) = to_features(data[:1], model)
        rest = [to_tensor(part, dtype) for part in data[1:] if part is not None]
        data = TensorDataset(x, *rest)
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
