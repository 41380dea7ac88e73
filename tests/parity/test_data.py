"""``chainrule.data`` beside ``torch.utils.data``: batches, lengths and the types of errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import chainrule
import chainrule.data

torch = pytest.importorskip("torch")
torch_data = pytest.importorskip("torch.utils.data")


def pair(data: Any, lib: Any, n: int = 7) -> Any:
    return data.TensorDataset(lib.arange(n), lib.arange(2.0 * n).reshape(n, 2))


def seen(value: Any) -> Any:
    """Structure, types of elements and numbers, whatever the library."""
    if hasattr(value, "tolist"):
        return str(value.dtype).partition(".")[2], tuple(value.shape), value.tolist()
    if isinstance(value, dict):
        return {k: seen(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [seen(v) for v in value]
    return value


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "in order": lambda d, t: list(d.DataLoader(pair(d, t), batch_size=3)),
    "drop_last": lambda d, t: list(d.DataLoader(pair(d, t), batch_size=3, drop_last=True)),
    "batch of one": lambda d, t: list(d.DataLoader(pair(d, t))),
    "single samples": lambda d, t: list(d.DataLoader(pair(d, t), batch_size=None)),
    "own sampler": lambda d, t: list(d.DataLoader(pair(d, t), 2, sampler=[4, 1, 1])),
    "batch sampler": lambda d, t: list(d.DataLoader(pair(d, t), batch_sampler=[[4], [1, 1]])),
    "subset": lambda d, t: list(d.DataLoader(d.Subset(pair(d, t), [5, 2, 0]), 2)),
    "concatenation": lambda d, t: list(d.DataLoader(pair(d, t) + pair(d, t, 3), 4)),
    "stack": lambda d, t: list(d.DataLoader(d.StackDataset(a=pair(d, t), b=range(7)), 4)),
    "stack in memory": lambda d, t: [
        list(d.DataLoader(stack, 4, shuffle=False))
        for stack in (
            d.StackDataset(a=pair(d, t), b=pair(d, t)),
            d.StackDataset(pair(d, t), pair(d, t)),
        )
    ],
    "tensor": lambda d, t: list(d.DataLoader(t.arange(5), 2)),
    "range": lambda d, t: list(d.DataLoader(range(5), 2)),
    "floats": lambda d, t: list(d.DataLoader([0.5, 1.5], 2)),
    "words": lambda d, t: list(d.DataLoader(["a", "b"], 2)),
    "lengths": lambda d, t: [
        len(d.DataLoader(pair(d, t), b, drop_last=drop))
        for b in (1, 2, 7, 9)
        for drop in (False, True)
    ],
    "nested": lambda d, t: d.default_collate([{"a": (1, 2.0)}, {"a": (3, 4.0)}]),
    "convert": lambda d, t: d.default_convert([t.ones(2).numpy(), (1, "a")]),
    "split lengths": lambda d, t: [len(p) for p in d.random_split(range(11), [0.5, 0.3, 0.2])],
    "batches": lambda d, t: list(d.BatchSampler(d.SequentialSampler(range(5)), 2, True)),
    "more samples": lambda d, t: sorted(d.RandomSampler(range(3), num_samples=6)),
    # Errors.
    "batch_size 0": lambda d, t: d.DataLoader(pair(d, t), batch_size=0),
    "empty and shuffled": lambda d, t: d.DataLoader([], shuffle=True),
    "different lengths": lambda d, t: d.TensorDataset(t.ones(2), t.ones(3)),
    "wrong sum": lambda d, t: d.random_split(range(5), [1, 2]),
    "fraction": lambda d, t: d.random_split(range(5), [1.5, -0.5]),
    "nothing to concatenate": lambda d, t: d.ConcatDataset([]),
    "too far back": lambda d, t: (pair(d, t) + pair(d, t))[-15],
    "stack of different lengths": lambda d, t: d.StackDataset("ab", "c"),
    "sampler and shuffle": lambda d, t: d.DataLoader("ab", sampler=[0], shuffle=True),
    "batch_sampler and size": lambda d, t: d.DataLoader("ab", 2, batch_sampler=[[0]]),
    "no batches to drop": lambda d, t: d.DataLoader("ab", None, drop_last=True),
    "workers": lambda d, t: d.DataLoader("ab", num_workers=-1),
    "prefetch": lambda d, t: d.DataLoader("ab", prefetch_factor=2),
    "persistent": lambda d, t: d.DataLoader("ab", persistent_workers=True),
    "set batch_size": lambda d, t: setattr(d.DataLoader("ab"), "batch_size", 2),
    "replacement": lambda d, t: d.RandomSampler("ab", replacement=1),
    "num_samples": lambda d, t: d.WeightedRandomSampler([1.0], 0),
    "weights": lambda d, t: d.WeightedRandomSampler([[1.0]], 1),
    "unequal lists": lambda d, t: d.default_collate([[1], [1, 2]]),
    "unequal tensors": lambda d, t: d.default_collate([t.ones(2), t.ones(3)]),
    "objects": lambda d, t: d.default_collate([object()]),
    "out of range": lambda d, t: pair(d, t)[9],
    "without getitem": lambda d, t: d.Dataset()[0],
}


@pytest.mark.parametrize("name", CALLS)
def test_same_as_pytorch(name: str) -> None:
    try:
        expected = CALLS[name](torch_data, torch)
    except Exception as error:  # noqa: BLE001 (whatever PyTorch raises is the answer)
        with pytest.raises(type(error)):
            CALLS[name](chainrule.data, chainrule)
        return
    assert seen(CALLS[name](chainrule.data, chainrule)) == seen(expected)
