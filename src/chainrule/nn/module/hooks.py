"""Hooks of modules: functions called before and after forward and backward."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from chainrule.autograd.function import Function
from chainrule.backend.recorded import cannot_repeat
from chainrule.tensor import Tensor, of_array

from chainrule.autograd.hooks import RemovableHandle

if TYPE_CHECKING:
    from chainrule.nn.module.base import Module

__all__ = ["Everywhere", "Hook", "Hooks", "call_with_hooks", "changes", "everywhere", "registered"]

_numbers = itertools.count()


class Changes:
    """Counts what is set on modules, and their hooks: what depends on these looks again."""

    count = 0


changes = Changes()


class Hook(NamedTuple):
    """A function; whether it wants keyword arguments, and to be called after an error too."""

    function: Callable[..., Any]
    with_kwargs: bool = False
    always_call: bool = False


class Hooks(dict[int, Hook]):
    """Hooks in their order."""

    def add(
        self,
        function: Callable[..., Any],
        with_kwargs: bool = False,
        always_call: bool = False,
        *,
        prepend: bool = False,
    ) -> RemovableHandle:
        """Puts a hook behind the others, or before them; the handle takes it away."""
        key = next(_numbers)
        changes.count += 1
        before = dict(self) if prepend else {}
        if prepend:
            self.clear()
        self[key] = Hook(function, with_kwargs, always_call)
        self.update(before)
        return RemovableHandle(self, key)

    def all(self) -> list[Hook]:
        """The hooks as they are now: a hook may remove itself."""
        return list(self.values())


class Everywhere:
    """Hooks of all modules, called before those of each."""

    def __init__(self) -> None:
        self.forward_pre, self.forward = Hooks(), Hooks()
        self.backward_pre, self.backward = Hooks(), Hooks()
        self.parameter, self.buffer, self.module = Hooks(), Hooks(), Hooks()

    def __bool__(self) -> bool:
        return bool(self.forward_pre or self.forward or self.backward_pre or self.backward)


everywhere = Everywhere()


def registered(hooks: Hooks, module: Module, name: str, value: Any) -> Any:
    """What a module gets under a name, after the hooks that see it or replace it."""
    for hook in hooks.all():
        changed = hook.function(module, name, value)
        value = value if changed is None else changed
    return value


def call_with_hooks(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls a module's forward between its hooks."""
    cannot_repeat("a hook of a module is called")
    called: list[Hook] = []
    try:
        args, kwargs = _before(module, args, kwargs)
        watched = everywhere.backward or everywhere.backward_pre
        if watched or module._backward_hooks or module._backward_pre_hooks:
            result = _watch_backward(module, args, kwargs)
        else:
            result = module.forward(*args, **kwargs)
        for hook in [*everywhere.forward.all(), *module._forward_hooks.all()]:
            called.append(hook)
            changed = _after(module, hook, args, kwargs, result)
            result = result if changed is None else changed
    except Exception:
        for hook in [*everywhere.forward.all(), *module._forward_hooks.all()]:
            if hook.always_call and hook not in called:
                _after(module, hook, args, kwargs, None)
        raise
    return result


def _before(
    module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    for hook in [*everywhere.forward_pre.all(), *module._forward_pre_hooks.all()]:
        if not hook.with_kwargs:
            changed = hook.function(module, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
            continue
        changed = hook.function(module, args, kwargs)
        if changed is None:
            continue
        if not isinstance(changed, tuple) or len(changed) != 2:
            raise RuntimeError(
                f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got "
                f"{changed!r}"
            )
        args, kwargs = changed
    return args, kwargs


def _after(module: Module, hook: Hook, args: Any, kwargs: Any, result: Any) -> Any:
    given = (module, args, kwargs, result) if hook.with_kwargs else (module, args, result)
    return hook.function(*given)


# --- backward -------------------------------------------------------------------------------------


class _Watch(Function):
    """Passes tensors through unchanged and shows their gradients to a function."""

    @staticmethod
    def forward(ctx: Any, see: Callable[..., Any], *tensors: Tensor) -> Any:
        ctx.see = see
        return tuple(of_array(t.array) for t in tensors)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return (None, *ctx.see(gradients))

    @staticmethod
    def jvp(ctx: Any, see: Any, *tangents: Any) -> Any:
        return tangents


class _Passage:
    """One call of a module whose backward hooks want to see both ends."""

    def __init__(self, module: Module, args: tuple[Any, ...]):
        self.module = module
        self.watched = any(isinstance(a, Tensor) and a.requires_grad for a in args)
        self.of_input = (None,) * len(args)
        self.of_output: tuple[Any, ...] | None = None

    def see_output(self, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in [*everywhere.backward_pre.all(), *self.module._backward_pre_hooks.all()]:
            gradients = _replaced(hook.function(self.module, gradients), gradients, "output")
        self.of_output = gradients
        if not self.watched:  # no input has a gradient: the hooks are called all the same
            self.see_input(self.of_input)
        return gradients

    def see_input(self, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        if self.of_output is None:  # a gradient that did not come through the output
            return gradients
        for hook in [*everywhere.backward.all(), *self.module._backward_hooks.all()]:
            new = hook.function(self.module, gradients, self.of_output)
            gradients = _replaced(new, gradients, "input")
        self.of_output = None
        return gradients


def _replaced(new: Any, old: tuple[Any, ...], which: str) -> tuple[Any, ...]:
    if new is None:
        return old
    new = new if isinstance(new, tuple) else (new,)
    if len(new) != len(old):
        raise RuntimeError(
            f"Backward hook returned an invalid number of grad_{which}, got {len(new)}, but "
            f"expected {len(old)}"
        )
    return new


def _passed(see: Callable[[tuple[Any, ...]], Any], values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values, the gradients of which ``see`` gets (None where there is none) and may change."""
    places = [i for i, v in enumerate(values) if isinstance(v, Tensor) and v.requires_grad]
    if not places:
        return values

    def see_all(gradients: tuple[Any, ...]) -> list[Any]:
        full: list[Any] = [None] * len(values)
        for i, g in zip(places, gradients, strict=True):
            full[i] = g
        seen = see(tuple(full))
        return [seen[i] for i in places]

    out = list(values)
    for i, t in zip(places, _Watch.apply(see_all, *[values[i] for i in places]), strict=True):
        out[i] = t
    return tuple(out)


def _watch_backward(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs forward between two watches, so that the backward hooks are called."""
    passage = _Passage(module, args)
    result = module.forward(*_passed(passage.see_input, args), **kwargs)
    if isinstance(result, tuple):
        parts = _passed(passage.see_output, result)
        return type(result)(*parts) if hasattr(result, "_fields") else parts
    return _passed(passage.see_output, (result,))[0]
