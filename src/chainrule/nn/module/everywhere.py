"""Hooks that are called by every module, for looking into a program: PyTorch's
``torch.nn.modules.module.register_module_forward_hook`` and its like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule.autograd.hooks import RemovableHandle
from chainrule.nn.module.base import Module
from chainrule.nn.module.hooks import Hooks, everywhere

__all__ = [
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]


class _HandleOfAll(RemovableHandle):
    """Takes the hook away; with the last one, calls of modules stop looking for hooks."""

    def remove(self) -> None:
        super().remove()
        Module._calls_forward_alone = not everywhere


def _of_calls(hooks: Hooks, hook: Callable[..., Any], *settings: bool) -> RemovableHandle:
    # Until the hook is removed every call of a module looks for hooks.
    Module._calls_forward_alone = False
    return _HandleOfAll(hooks, hooks.add(hook, *settings).id)


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls ``hook(module, args)`` before the forward of every module."""
    return _of_calls(everywhere.forward_pre, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Calls ``hook(module, args, output)`` after the forward of every module.

    >>> from chainrule import nn, ones
    >>> from chainrule.nn.modules.module import register_module_forward_hook
    >>> seen = []
    >>> handle = register_module_forward_hook(lambda m, args, out: seen.append(type(m).__name__))
    >>> out = nn.Sequential(nn.Linear(2, 2), nn.ReLU())(ones(1, 2))
    >>> handle.remove()
    >>> seen
    ['Linear', 'ReLU', 'Sequential']
    """
    return _of_calls(everywhere.forward, hook, with_kwargs, always_call)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls ``hook(module, grad_output)`` before the gradient enters any module."""
    return _of_calls(everywhere.backward_pre, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls ``hook(module, grad_input, grad_output)`` once the gradient of the input of any module
    is known."""
    return _of_calls(everywhere.backward, hook)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """The older :func:`register_module_full_backward_hook`."""
    return register_module_full_backward_hook(hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls ``hook(module, name, parameter)`` when a module gets a parameter; what it returns
    replaces the parameter."""
    return everywhere.parameter.add(hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls ``hook(module, name, buffer)`` when a module gets a buffer."""
    return everywhere.buffer.add(hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls ``hook(module, name, submodule)`` when a module gets another one."""
    return everywhere.module.add(hook)
