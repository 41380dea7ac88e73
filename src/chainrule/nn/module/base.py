"""Module: a function with parameters, made of other modules."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any, Self

from chainrule.absent import warn_once
from chainrule.autograd.hooks import RemovableHandle
from chainrule.nn.module.errors import tell_where
from chainrule.nn.module.hooks import Hooks, call_with_hooks, changes, everywhere, registered
from chainrule.nn.parameter import Buffer, Parameter
from chainrule.nn.module.state import IncompatibleKeys, load_state_dict, state_dict
from chainrule.nn.module.converting import Convertible
from chainrule.tensor import OtherLayout, Tensor

__all__ = ["Module"]


class Module(Convertible):
    """The base class of all layers and networks.

    A subclass calls ``super().__init__()``, assigns parameters and other modules to attributes, and
    defines ``forward``.

    >>> from chainrule import nn, ones
    >>> class Twice(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.weight = nn.Parameter(ones(1))
    ...     def forward(self, x):
    ...         return 2 * self.weight * x
    >>> Twice()(ones(2))
    tensor([2., 2.], grad_fn=<MulBackward>)
    """

    training: bool
    _init_args: tuple[tuple[Any, ...], dict[str, Any]]  # how it was made: what a file says of it

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        self = super().__new__(cls)
        object.__setattr__(self, "_init_args", (args, kwargs))
        return self

    def __init__(self) -> None:
        put = super().__setattr__
        put("training", True)
        for holder in ("_parameters", "_buffers", "_modules"):
            put(holder, {})
        put("_non_persistent_buffers_set", set())
        for hooks in (
            "_forward_pre_hooks",
            "_forward_hooks",
            "_backward_pre_hooks",
            "_backward_hooks",
            "_state_dict_pre_hooks",
            "_state_dict_hooks",
            "_load_pre_hooks",
            "_load_post_hooks",
        ):
            put(hooks, Hooks())

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; subclasses define it."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    # --- calling ----------------------------------------------------------------------------------

    # Whether a call is the forward of the class and nothing else: until the first hook is
    # registered, or a forward is assigned. It saves four look-ups in every call.
    _calls_forward_alone = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if self._calls_forward_alone or not self.has_hooks:
                return self.forward(*args, **kwargs)
            return call_with_hooks(self, args, kwargs)
        except Exception as error:
            tell_where(error, self, args, kwargs)
            raise

    @property
    def has_hooks(self) -> bool:
        """Whether anything but :meth:`forward` happens when the module is called."""
        forward = self._forward_pre_hooks or self._forward_hooks
        return bool(forward or self._backward_hooks or self._backward_pre_hooks or everywhere)

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Calls ``hook(module, args)`` before forward; what it returns replaces the arguments."""
        self.__dict__["_calls_forward_alone"] = False
        return self._forward_pre_hooks.add(hook, with_kwargs, prepend=prepend)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Calls ``hook(module, args, output)`` after forward; what it returns replaces the output.

        With ``always_call`` also after an error, the output then being None.
        """
        self.__dict__["_calls_forward_alone"] = False
        return self._forward_hooks.add(hook, with_kwargs, always_call, prepend=prepend)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls ``hook(module, grad_output)`` before the gradient enters the module."""
        self.__dict__["_calls_forward_alone"] = False
        return self._backward_pre_hooks.add(hook, prepend=prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls ``hook(module, grad_input, grad_output)`` once the input's gradient is known."""
        self.__dict__["_calls_forward_alone"] = False
        return self._backward_hooks.add(hook, prepend=prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """The older :meth:`register_full_backward_hook`, which PyTorch keeps for old programs."""
        return self.register_full_backward_hook(hook)

    # --- attributes -------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        holders = self.__dict__
        if "_modules" in holders:  # else __init__ has not been called yet
            if name in holders["_parameters"]:
                return holders["_parameters"][name]
            if name in holders["_modules"]:
                return holders["_modules"][name]
            if name in holders["_buffers"]:
                return holders["_buffers"][name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        changes.count += 1
        if name == "forward":
            self.__dict__["_calls_forward_alone"] = False
        if isinstance(value, Parameter):
            self._forget(name, "_buffers", "_modules")
            self.register_parameter(name, value)
        elif self._replaces_by_none(name, value, "_parameters"):
            self._parameters[name] = None
        elif isinstance(value, Module):
            self._forget(name, "_parameters", "_buffers")
            self._modules[name] = registered(everywhere.module, self, name, value)
        elif self._replaces_by_none(name, value, "_modules"):
            self._modules[name] = None
        elif isinstance(value, Buffer) or name in self.__dict__.get("_buffers", ()):
            self._check_started(name)
            kept = name not in self._non_persistent_buffers_set
            self.register_buffer(name, value, getattr(value, "persistent", kept))
        else:
            super().__setattr__(name, value)

    def _replaces_by_none(self, name: str, value: Any, holder: str) -> bool:
        """Whether None takes a held name; nothing else may take it."""
        if name not in self.__dict__.get(holder, ()):
            return False
        if value is not None:
            wanted = "Parameter" if holder == "_parameters" else "Module"
            what = "parameter" if holder == "_parameters" else "child module"
            raise TypeError(
                f"cannot assign {type(value).__name__!r} as {what} {name!r} "
                f"(chainrule.nn.{wanted} or None expected)"
            )
        return True

    def _check_started(self, name: str) -> None:
        if "_modules" not in self.__dict__:
            raise AttributeError(
                f"cannot assign {name!r} before Module.__init__() call; call super().__init__() "
                "first"
            )

    def _forget(self, name: str, *holders: str) -> None:
        """Removes what had a name before, in these places."""
        self._check_started(name)
        self.__dict__.pop(name, None)
        self._non_persistent_buffers_set.discard(name)
        for holder in holders:
            self.__dict__[holder].pop(name, None)

    def __delattr__(self, name: str) -> None:
        for holder in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__[holder]:
                del self.__dict__[holder][name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        held = [*self._parameters, *self._buffers, *self._modules]
        return sorted({*super().__dir__(), *held})

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter (or None, to keep its place)."""
        self._check_name(name, "parameter", "_parameters")
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign {type(param).__name__!r} object to parameter {name!r} "
                "(chainrule.nn.Parameter or None required)"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(f"cannot assign non-leaf Tensor to parameter {name!r}; detach() it")
        self._parameters[name] = registered(everywhere.parameter, self, name, param)

    def register_buffer(
        self, name: str, tensor: Tensor | OtherLayout | None, persistent: bool = True
    ) -> None:
        """Adds a tensor to the state that is not learned; not saved unless ``persistent``."""
        self._check_name(name, "buffer", "_buffers")
        if tensor is not None and not isinstance(tensor, (Tensor, OtherLayout)):
            raise TypeError(
                f"cannot assign {type(tensor).__name__!r} object to buffer {name!r} (Tensor or "
                "None required)"
            )
        self._buffers[name] = registered(everywhere.buffer, self, name, tensor)
        (
            self._non_persistent_buffers_set.discard
            if persistent
            else self._non_persistent_buffers_set.add
        )(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a module under a name."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{type(module).__name__} is not a Module subclass")
        self._check_name(name, "module", "_modules")
        self._modules[name] = registered(everywhere.module, self, name, module)

    register_module = add_module

    def _check_name(self, name: str, what: str, holder: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{what} name should be a string, got {type(name).__name__}")
        self._check_started(name)
        if "." in name or name == "":
            raise KeyError(f'{what} name can\'t be empty or contain ".", got {name!r}')
        if name not in self.__dict__[holder] and hasattr(self, name):
            raise KeyError(f"attribute {name!r} already exists")

    # --- state ------------------------------------------------------------------------------------

    def train(self, mode: bool = True) -> Self:
        """Training mode (or evaluation) for this module and all below it."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Evaluation mode: dropout passes everything, normalization uses running statistics."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Asks for gradients of all parameters, or freezes them."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients of all parameters, or sets them to zero in place."""
        for parameter in self.parameters():
            if set_to_none:
                parameter.grad = None
            elif parameter.grad is not None:
                if parameter.grad.requires_grad:
                    parameter.grad = parameter.grad.detach()
                parameter.grad.zero_()

    def share_memory(self) -> Self:
        """Refuses: memory is not shared between processes."""
        for tensor in itertools.chain(self.parameters(), self.buffers()):
            tensor.share_memory_()
        return self

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Leaves the module as it is, and says so once: ``chainrule.compile`` returns another."""
        warn_once("Module.compile: it is left as it is; use model = chainrule.compile(model)")

    def state_dict(
        self,
        *,
        destination: dict[str, Any] | None = None,
        prefix: str = "",
        keep_vars: bool = False,
    ) -> dict[str, Any]:
        """All parameters and persistent buffers by dotted name, sharing their memory."""
        return state_dict(self, destination, prefix, keep_vars)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copies (or assigns) the tensors of a ``state_dict()`` into this module, PyTorch's too."""
        return load_state_dict(self, state_dict, strict, assign)

    def get_extra_state(self) -> Any:
        """Further state to keep in the state_dict; a subclass that has some defines it."""
        raise RuntimeError(f"{type(self).__name__} has no extra state")

    def _has_extra_state(self) -> bool:
        return type(self).get_extra_state is not Module.get_extra_state

    def set_extra_state(self, state: Any) -> None:
        """Takes back what ``get_extra_state`` gave."""
        raise RuntimeError(f"{type(self).__name__} has no extra state")

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls ``hook(module, state_dict, prefix, local_metadata)`` after saving."""
        return self._state_dict_hooks.add(hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls ``hook(module, prefix, keep_vars)`` before saving."""
        return self._state_dict_pre_hooks.add(hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs)`` before this module's part is loaded."""
        return self._load_pre_hooks.add(hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls ``hook(module, incompatible_keys)`` after loading."""
        return self._load_post_hooks.add(hook)

    # --- printing ---------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """What stands in the brackets when the module is printed."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [
            f"({name}): " + repr(module).replace("\n", "\n  ")
            for name, module in self._modules.items()
        ]
        if not children and len(lines) <= 1:
            return f"{self._get_name()}({extra})"
        return "\n  ".join([f"{self._get_name()}(", *lines, *children]) + "\n)"
