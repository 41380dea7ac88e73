"""The tree of modules: walking over it, and finding what is in it by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self

from chainrule.tensor import Tensor

if TYPE_CHECKING:
    from chainrule.nn.module.base import Module
    from chainrule.nn.parameter import Parameter

__all__ = ["Tree"]


class Tree:
    """What a module knows about the modules, parameters and buffers below it."""

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]

    def named_modules(
        self, memo: set[int] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all below it, with their dotted names."""
        this: Any = self
        seen = set() if memo is None else memo
        if remove_duplicate:
            if id(self) in seen:
                return
            seen.add(id(self))
        yield prefix, this
        for name, module in self._modules.items():
            if module is not None:
                below = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(seen, below, remove_duplicate)

    def modules(self) -> Iterator[Module]:
        """This module and all below it."""
        for _, module in self.named_modules():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly below, with their names."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def children(self) -> Iterator[Module]:
        """The modules directly below."""
        for _, module in self.named_children():
            yield module

    def _named_members(
        self, holder: str, prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Any]]:
        seen = set()
        walk = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        modules: Any = walk if recurse else [(prefix, self)]
        for path, module in modules:
            for name, value in module.__dict__[holder].items():
                if value is None or (remove_duplicate and id(value) in seen):
                    continue
                seen.add(id(value))
                yield (f"{path}.{name}" if path else name), value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters with their dotted names."""
        return self._named_members("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters: what an optimizer takes."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their dotted names."""
        return self._named_members("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target: str) -> Module:
        """The module of this dotted name."""
        module: Any = self
        for part in target.split(".") if target else []:
            if part not in module.__dict__["_modules"]:
                raise AttributeError(f"{type(module).__name__} has no attribute `{part}`")
            module = module._modules[part]
        return module

    def get_parameter(self, target: str) -> Parameter:
        """The parameter of this dotted name."""
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        found = owner._parameters.get(name)
        if found is None:
            raise AttributeError(f"{type(owner).__name__} has no parameter `{name}`")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer of this dotted name."""
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        found = owner._buffers.get(name)
        if found is None:
            raise AttributeError(f"{type(owner).__name__} has no buffer `{name}`")
        return found

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Calls ``fn`` with every module below, then with this one."""
        this: Any = self
        for module in self.children():
            module.apply(fn)
        fn(this)
        return self

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Puts a module at this dotted name; with ``strict``, only in place of another."""
        if not target:
            raise ValueError("set_submodule: the target is empty; it cannot be the module itself")
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if strict and owner._modules.get(name) is None:
            raise AttributeError(f"{type(owner).__name__} has no attribute `{name}`")
        setattr(owner, name, module)
