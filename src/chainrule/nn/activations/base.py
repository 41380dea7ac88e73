"""What all activation modules are made of: a function and its options.

The functions are in ``nn/activations/functions.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule.nn.module.base import Module
from chainrule.tensor import Tensor

__all__ = ["Activation", "InPlace", "Plain"]


class Activation(Module):
    """A function and its options; the options are attributes, as in PyTorch."""

    function: Callable[..., Tensor]
    named = True  # whether options are printed with their names

    def __init_subclass__(cls, function: Callable[..., Tensor] | None = None, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        if function is not None:
            cls.function = staticmethod(function)

    def __init__(self, **options: object):
        super().__init__()
        self._options = tuple(options)
        self.__dict__.update(options)

    def forward(self, input: Tensor) -> Tensor:
        held = self.__dict__
        return self.function(input, *[held[name] for name in self._options])

    def extra_repr(self) -> str:
        shown = {name: self.__dict__[name] for name in self._options}
        if shown.pop("inplace", False):
            shown["inplace"] = True  # behind the others, and only where it holds
        return ", ".join(f"{k}={v}" if self.named else f"{v}" for k, v in shown.items())


class InPlace(Activation):
    """An activation whose one option is whether it changes its input."""

    inplace: bool

    def __init__(self, inplace: bool = False):
        super().__init__(inplace=inplace)


class Plain(Activation):
    """An activation without options."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return self.function(input)
