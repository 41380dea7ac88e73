"""PyTorch's ``torch.fx``: programs are not made into graphs that could be rewritten."""

from __future__ import annotations

from typing import TypeVar

from chainrule.absent import Refused, refused

__all__ = [
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]

T = TypeVar("T")
REASON = (
    "chainrule does not trace programs into graphs. The graph of what was computed is behind every "
    "tensor (y.grad_fn), and forward hooks (module.register_forward_hook) give a layer's output"
)


def wrap(fn_or_name: T) -> T:
    """Marks a function that is not to be traced into: the function, or its name, as it is."""
    return fn_or_name


def has_side_effect(fn: T) -> T:
    """Marks a function that is not to be left out of a graph: the function as it is."""
    return fn


class Graph(Refused):
    """A program as a list of calls."""

    reason = REASON


class Node(Refused):
    """A call in a program."""

    reason = REASON


class GraphModule(Refused):
    """A module made of a graph."""

    reason = REASON


class Tracer(Refused):
    """What makes a program into a graph."""

    reason = REASON


class Proxy(Refused):
    """What stands for a value while a program is traced."""

    reason = REASON


class Interpreter(Refused):
    """What computes a graph call by call."""

    reason = REASON


class Transformer(Refused):
    """What makes one graph into another."""

    reason = REASON


symbolic_trace = refused("fx.symbolic_trace", REASON)
replace_pattern = refused("fx.replace_pattern", REASON)
map_arg = refused("fx.map_arg", REASON)
