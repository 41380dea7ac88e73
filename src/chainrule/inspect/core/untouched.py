"""Looking changes nothing: a model is left as an instrument found it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from chainrule.autograd.modes import no_grad
from chainrule.nn.module.base import Module
from chainrule.nn.module.hooks import Hooks
from chainrule.ops.creation.conversion import clone
from chainrule.random import fork_rng

__all__ = ["untouched"]


@contextlib.contextmanager
def untouched(*models: Module, gradients: bool = False) -> Iterator[None]:
    """Inside, models may be run, switched between training and evaluation, watched by hooks and
    differentiated; outside nothing of it is seen.

    Restored are the modes of all modules, the hooks, the buffers (running statistics), ``.grad``
    and ``requires_grad`` of all parameters, and the random state. Inside every ``.grad`` is None,
    unless ``gradients`` asks for those that are there. The values of parameters are not kept: an
    instrument that needs others calls the model with them (``func.functional_call``) or trains a
    copy.
    """
    with contextlib.ExitStack() as stack:
        for model in models:
            stack.enter_context(_modules_kept(model))
            stack.enter_context(_buffers_kept(model))
            stack.enter_context(_gradients_kept(model, gradients))
        stack.enter_context(fork_rng())
        yield


@contextlib.contextmanager
def _modules_kept(model: Module) -> Iterator[None]:
    before = [
        (m, m.training, "_calls_forward_alone" in m.__dict__, _hooks(m)) for m in model.modules()
    ]
    try:
        yield
    finally:
        for module, training, slow, hooks in before:
            module.training = training
            for holder, keys in hooks:
                for key in set(holder) - keys:
                    del holder[key]
            if not slow:
                module.__dict__.pop("_calls_forward_alone", None)


def _hooks(module: Module) -> list[tuple[Hooks, set[int]]]:
    held = [value for value in module.__dict__.values() if isinstance(value, Hooks)]
    return [(hooks, set(hooks)) for hooks in held]


@contextlib.contextmanager
def _buffers_kept(model: Module) -> Iterator[None]:
    before = [
        (module, name, buffer, None if buffer is None else clone(buffer.detach()))
        for module in model.modules()
        for name, buffer in module._buffers.items()
    ]
    try:
        yield
    finally:
        with no_grad():
            for module, name, buffer, value in before:
                module._buffers[name] = buffer
                if buffer is not None and value is not None:
                    buffer.copy_(value)


@contextlib.contextmanager
def _gradients_kept(model: Module, visible: bool) -> Iterator[None]:
    before: list[tuple[Any, Any, bool]] = [(p, p.grad, p.requires_grad) for p in model.parameters()]
    try:
        for p, grad, _ in before:
            p.grad = clone(grad) if visible and grad is not None else None
        yield
    finally:
        for p, grad, wanted in before:
            p.requires_grad_(wanted)
            p.grad = grad
