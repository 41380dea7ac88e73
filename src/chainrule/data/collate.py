"""From samples to a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from chainrule.backend import K
from chainrule.ops.creation.from_data import as_tensor, tensor
from chainrule.ops.shape.stacking import stack
from chainrule.tensor import Tensor

__all__ = ["default_collate", "default_convert"]


def default_collate(batch: Sequence[Any]) -> Any:
    """Samples as one batch: tensors, arrays and numbers are stacked along a new first dimension.

    Tuples become a list of batches, dicts a dict of batches; strings stay a list.

    >>> import chainrule
    >>> default_collate([(chainrule.ones(2), 5), (chainrule.zeros(2), 6)])
    [tensor([[1., 1.],
            [0., 0.]]), tensor([5, 6])]
    """
    if not batch:
        raise IndexError("default_collate: the batch is empty; expected at least one sample")
    first = batch[0]
    if isinstance(first, Tensor):
        return stack(list(batch))
    if isinstance(first, K.ArrayLike):
        _check_numbers(first)
        return stack([as_tensor(sample) for sample in batch])
    if isinstance(first, float):
        return tensor(batch, dtype="float64")
    if isinstance(first, int):
        return tensor(batch)
    if isinstance(first, (str, bytes)):
        return list(batch)
    if isinstance(first, Mapping):
        return _same_mapping(first, {k: default_collate([s[k] for s in batch]) for k in first})
    if isinstance(first, Sequence):
        return _sequence(first, batch)
    raise TypeError(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found "
        f"{type(first)}; convert the samples (for images with a transform), or pass a collate_fn"
    )


def _check_numbers(array: Any) -> None:
    if K.kind_of(array.dtype) not in "biufc":
        raise TypeError(
            "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; "
            f"found an array of {array.dtype}"
        )


def _sequence(first: Sequence[Any], batch: Sequence[Any]) -> Any:
    sizes = {len(sample) for sample in batch}
    if len(sizes) > 1:
        raise RuntimeError(
            "default_collate: each element in list of batch should be of equal size, got samples "
            f"of {sorted(sizes)} elements; pass a collate_fn that pads them"
        )
    return _same_sequence(first, [default_collate(part) for part in zip(*batch, strict=True)])


def default_convert(data: object) -> Any:
    """One sample with its arrays as tensors: what a loader without batches returns."""
    if isinstance(data, K.ArrayLike) and K.kind_of(data.dtype) in "biufc":
        return as_tensor(data)
    if isinstance(data, Mapping):
        return _same_mapping(data, {k: default_convert(data[k]) for k in data})
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _same_sequence(data, [default_convert(part) for part in data])
    return data


def _same_mapping(like: Mapping[Any, Any], content: dict[Any, Any]) -> Any:
    return _rebuilt(lambda: type(like)(content), content)  # type: ignore[call-arg]


def _same_sequence(like: Sequence[Any], content: list[Any]) -> Any:
    if type(like) is tuple:  # as in PyTorch
        return content
    if isinstance(like, tuple) and hasattr(like, "_fields"):
        return type(like)(*content)
    return _rebuilt(lambda: type(like)(content), content)  # type: ignore[call-arg]


def _rebuilt(make: Callable[[], Any], otherwise: Any) -> Any:
    """A user's class of container, or the plain one if it cannot be made from its content."""
    try:
        return make()
    except TypeError:
        return otherwise
