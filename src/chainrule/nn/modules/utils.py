"""Small things that layers of PyTorch's style are written with."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

__all__ = [
    "_list_with_default",
    "_ntuple",
    "_pair",
    "_quadruple",
    "_reverse_repeat_tuple",
    "_single",
    "_triple",
    "consume_prefix_in_state_dict_if_present",
]


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """A function that repeats a value n times, and makes a tuple of what has several."""

    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else tuple(itertools.repeat(x, n))

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: Sequence[Any], n: int) -> tuple[Any, ...]:
    """The values from the last to the first, each n times: paddings as ``pad`` takes them."""
    return tuple(x for x in reversed(t) for _ in range(n))


def _list_with_default(out_size: int | Sequence[int | None], defaults: Sequence[int]) -> list[int]:
    """Sizes, those of the input (the last of ``defaults``) where there is None."""
    if isinstance(out_size, (int, float)):
        return [out_size]
    if len(defaults) <= len(out_size):
        raise ValueError(
            f"_list_with_default: Input dimension should be at least {len(out_size) + 1}, got "
            f"{len(defaults)}"
        )
    wanted = zip(out_size, defaults[-len(out_size) :], strict=True)
    return [d if v is None else v for v, d in wanted]


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Takes a prefix off the names in a state_dict, in place: ``"module."`` of ``DataParallel``.

    >>> state = {"module.weight": 1, "bias": 2}
    >>> consume_prefix_in_state_dict_if_present(state, "module.")
    >>> state
    {'bias': 2, 'weight': 1}
    """
    for name in [name for name in state_dict if name.startswith(prefix)]:
        state_dict[name.removeprefix(prefix)] = state_dict.pop(name)
