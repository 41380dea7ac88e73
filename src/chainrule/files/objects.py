"""Objects that are more than modules: each says what it is made of, and is made again from that.

A class takes part by three things: ``file_kind``, its name below; ``file_parts()``, values that a
file can hold; and the class method ``from_file_parts(parts)``, which believes nothing of what it is
given and raises ValueError.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["find", "kind_of"]

# Where the classes are at home. That is above this room, so nothing here depends on them: one is
# looked up when a file names it.
HOMES = {
    "FittedNetwork": "chainrule.train",
    "NetworkClassifier": "chainrule.estimators",
    "NetworkRegressor": "chainrule.estimators",
    "NetworkTransformer": "chainrule.estimators",
}


def kind_of(value: object) -> str | None:
    """The name of the kind of object that a value is, None if it is none."""
    kind = getattr(type(value), "file_kind", None)
    if not isinstance(kind, str) or kind not in HOMES:
        return None
    if type(value) is not find(kind):
        raise TypeError(
            f"save: a {type(value).__name__} is a kind of {kind} that a file cannot name; save its "
            "state_dict, or what it holds"
        )
    return kind


def find(kind: str) -> Any:
    """The class of a kind."""
    if kind not in HOMES:
        raise ValueError(f"there is no kind of object {kind!r}; was it saved by a later version?")
    return getattr(importlib.import_module(HOMES[kind]), kind)
