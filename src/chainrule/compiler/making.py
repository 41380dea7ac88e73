"""``chainrule.compile``: what it takes, and what it gives back."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from chainrule import nn
from chainrule.compiler.compiled import Compiled

__all__ = ["compile"]

BACKENDS = ("inductor", "eager", "tape", "reference")
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs", "reference")


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str = "tape",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """A function or module that runs from a record of its kernels, with the same bits.

    The first call runs as it is, the next two or three are recorded while they run. From then on
    calls whose arguments have the same form repeat the record from compiled code: without the
    Python of the function, of its operations and of their derivatives. For a whole training step
    that is where small networks gain most::

        @chainrule.compile
        def step(x, y):
            optimizer.zero_grad()
            loss = loss_function(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        losses = step.epoch(x, y, batch_size=32, order=chainrule.randperm(len(x)))

    What a record cannot hold (numbers that Python reads, hooks, sizes that follow from values) runs
    as it is after one warning, which says the line and the reason. ``print(step.program)`` shows
    the record, ``step.verify(x, y)`` compares both ways.

    Args:
        model: a function, or a module, which is compiled for evaluation: the result has its
            parameters, and runs from the record under ``no_grad`` or ``inference_mode``.
        fullgraph: whether it is an error where the function cannot be repeated.
        dynamic: False or None; every form of arguments has a record of its own, at most 8.
        backend: "tape" (PyTorch's "inductor" means the same), "reference" for a loop in Python over
            the record, or "eager" for the function as it is.
        mode: PyTorch's modes, which mean the same here, or "reference".
        options: none are known.
        disable: whether to leave the function as it is.

    >>> import chainrule
    >>> @chainrule.compile
    ... def f(x):
    ...     return (x * x).sum()
    >>> for i in range(5):
    ...     y = f(chainrule.full((3,), float(i)))
    >>> y, f.repeated
    (tensor(48.), 2)
    """
    if dynamic:
        raise ValueError(
            "compile: dynamic=True is not possible: every form of arguments has a record of its own"
        )
    if options:
        raise ValueError(f"compile: there are no options; got {sorted(options)}")
    if backend not in BACKENDS:
        raise ValueError(f"compile: backend must be one of {BACKENDS}, got {backend!r}")
    if mode is not None and mode not in MODES:
        raise ValueError(f"compile: mode must be one of {MODES}, got {mode!r}")
    way = "reference" if "reference" in (backend, mode) else "tape"
    leave = disable or backend == "eager"

    def compiled(function: Any) -> Any:
        return function if leave else _compiled(function, fullgraph, way)

    return compiled if model is None else compiled(model)


class _Twin:
    """Mixed into the class of a compiled module, which is otherwise like the module itself."""

    def __reduce__(self) -> Any:
        """A copy, or what a file says of it, is made of the module and compiled again."""
        function = vars(self)["forward"]
        return _twin, (function.function.__self__, function.fullgraph, function.mode)


_kinds: dict[type[nn.Module], Any] = {}


def _class_of_twins(kind: type[nn.Module]) -> Any:
    if kind not in _kinds:
        about = {"__module__": kind.__module__, "__doc__": kind.__doc__}
        _kinds[kind] = type(kind.__name__, (_Twin, kind), about)
    return _kinds[kind]


def _twin(module: nn.Module, fullgraph: bool, way: str) -> Any:
    """A module with the same parameters, buffers and modules, whose forward is compiled."""
    if isinstance(module, _Twin):
        return module
    twin = copy.copy(module)
    # A class of its own keeps it out of steps that join a layer with what follows it.
    twin.__class__ = _class_of_twins(type(module))
    twin.__dict__["forward"] = Compiled(module.forward, fullgraph, way)
    return twin


def _compiled(function: Callable[..., Any], fullgraph: bool, way: str) -> Any:
    if isinstance(function, Compiled):
        return function
    if isinstance(function, nn.Module):
        return _twin(function, fullgraph, way)
    if not callable(function):
        raise TypeError(f"compile: expected a function or a module, got {type(function).__name__}")
    return Compiled(function, fullgraph, way)
