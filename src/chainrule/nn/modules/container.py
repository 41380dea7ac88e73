"""Containers of modules and of parameters, where PyTorch has them."""

from chainrule.nn import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential

__all__ = [
    "ModuleDict",
    "ModuleList",
    "ParameterDict",
    "ParameterList",
    "Sequential",
]
