"""The base of all modules, where PyTorch has it."""

from chainrule.nn import Module
from chainrule.nn.module.state import IncompatibleKeys as _IncompatibleKeys

__all__ = [
    "Module",
    "_IncompatibleKeys",
]
