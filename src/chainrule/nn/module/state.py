"""Saving and loading the tensors of a module by name."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from chainrule.autograd.modes import no_grad
from chainrule.nn.parameter import Parameter, is_lazy
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.core.promotion import cast
from chainrule.tensor import OtherLayout, Tensor

if TYPE_CHECKING:
    from chainrule.nn.module.base import Module

__all__ = ["IncompatibleKeys", "load_state_dict", "state_dict"]

EXTRA = "_extra_state"


class IncompatibleKeys(NamedTuple):
    """What did not fit when a state was loaded."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (
            f"_IncompatibleKeys(missing_keys={self.missing_keys}, "
            f"unexpected_keys={self.unexpected_keys})"
        )


def _own_tensors(module: Module) -> dict[str, Tensor]:
    """The parameters and persistent buffers that a module holds itself."""
    skipped = module._non_persistent_buffers_set
    held: dict[str, Any] = dict(module._parameters)
    held.update({n: b for n, b in module._buffers.items() if n not in skipped})
    return {name: tensor for name, tensor in held.items() if tensor is not None}


def state_dict(
    module: Module,
    destination: dict[str, Any] | None = None,
    prefix: str = "",
    keep_vars: bool = False,
) -> dict[str, Any]:
    """The tensors of a module and all below it, by dotted name."""
    for hook in module._state_dict_pre_hooks.all():
        hook.function(module, prefix, keep_vars)
    out: dict[str, Any] = OrderedDict() if destination is None else destination
    for name, tensor in _own_tensors(module).items():
        out[prefix + name] = tensor if keep_vars or is_lazy(tensor) else tensor.detach()
    if module._has_extra_state():
        out[prefix + EXTRA] = module.get_extra_state()
    for name, child in module._modules.items():
        if child is not None:
            state_dict(child, out, f"{prefix}{name}.", keep_vars)
    for hook in module._state_dict_hooks.all():
        hook.function(module, out, prefix, {})
    return out


def load_state_dict(
    module: Module, state: Mapping[str, Any], strict: bool, assign: bool
) -> IncompatibleKeys:
    """Puts tensors by dotted name into a module; refuses what does not fit, all at once."""
    if not isinstance(state, Mapping):
        raise TypeError(f"load_state_dict: expected a dict of tensors, got {type(state).__name__}")
    loading = _Loading(dict(state), strict, assign)
    with no_grad():
        loading.load(module, "")
    keys = IncompatibleKeys(loading.missing, loading.unexpected + list(loading.left))
    problems = loading.problems
    for m in module.modules():
        for hook in m._load_post_hooks.all():
            hook.function(m, keys)
    if strict:
        if keys.unexpected_keys:
            names = ", ".join(f'"{k}"' for k in keys.unexpected_keys)
            problems.insert(0, f"Unexpected key(s) in state_dict: {names}.")
        if keys.missing_keys:
            names = ", ".join(f'"{k}"' for k in keys.missing_keys)
            problems.insert(0, f"Missing key(s) in state_dict: {names}.")
    if problems:
        listed = "\n\t".join(problems)
        name = type(module).__name__
        raise RuntimeError(f"Error(s) in loading state_dict for {name}:\n\t{listed}")
    return keys


class _Loading:
    """What is left to load, and what did not fit so far."""

    def __init__(self, left: dict[str, Any], strict: bool, assign: bool):
        self.left, self.strict, self.assign = left, strict, assign
        self.missing: list[str] = []
        self.unexpected: list[str] = []
        self.problems: list[str] = []

    def load(self, module: Module, prefix: str) -> None:
        for hook in module._load_pre_hooks.all():
            hook.function(
                module,
                self.left,
                prefix,
                {},
                self.strict,
                self.missing,
                self.unexpected,
                self.problems,
            )
        for name, tensor in _own_tensors(module).items():
            key = prefix + name
            if key in self.left:
                self.put(module, name, tensor, self.left.pop(key), key)
            else:
                self.missing.append(key)
        if module._has_extra_state():
            if prefix + EXTRA in self.left:
                module.set_extra_state(self.left.pop(prefix + EXTRA))
            else:
                self.missing.append(prefix + EXTRA)
        for name, child in module._modules.items():
            if child is not None:
                self.load(child, f"{prefix}{name}.")

    def put(self, module: Module, name: str, tensor: Any, value: Any, key: str) -> None:
        """Copies one value into a tensor of the module, or notes why it does not fit."""
        if is_lazy(value):
            if not is_lazy(tensor):
                self.problems.append(f'"{key}": the state is of a lazy module that never ran.')
            return
        if isinstance(tensor, OtherLayout):
            try:
                tensor.copy_(value)
            except RuntimeError as error:
                self.problems.append(f'"{key}": {error}.')
            return
        try:
            new = as_tensor(value).detach()
        except (TypeError, ValueError, RuntimeError):
            self.problems.append(f'"{key}": expected a tensor, got {type(value).__name__}.')
            return
        if is_lazy(tensor):
            tensor.materialize(new.shape)
        # PyTorch saved scalars with one dimension once; they still load.
        if tensor.array.shape == () and new.array.shape == (1,):
            new = new[0]
        if new.array.shape != tensor.array.shape:
            self.problems.append(
                f"size mismatch for {key}: copying a param with shape {tuple(new.shape)} from the "
                f"state_dict, the shape in current model is {tuple(tensor.shape)}."
            )
        elif not self.assign:
            tensor.copy_(cast(new, tensor.dtype))
        elif name in module._parameters:
            module._parameters[name] = Parameter(new, tensor.requires_grad)
        else:
            module._buffers[name] = new
