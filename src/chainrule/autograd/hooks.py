"""Hooks: the user's functions that see, and may replace, a gradient on its way."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from chainrule.backend import K
from chainrule.backend.recorded import cannot_repeat
from chainrule.graph import Edge, Node
from chainrule.tensor import OtherLayout, Tensor, of_array
from chainrule.typing import Value

__all__ = [
    "RemovableHandle",
    "register_hook",
    "register_post_accumulate_grad_hook",
    "retain_grad",
    "run_after",
    "run_hooks",
]


def run_hooks(
    hooks: dict[int, Callable[[Any], Tensor | None]], g: Value | list[Any], tensors: bool
) -> Any:
    """The gradient after all hooks; they get tensors, also where the walk is on arrays."""
    if hooks:
        cannot_repeat("a hook of a tensor is called")
    for hook in list(hooks.values()):
        kept = isinstance(g, (Tensor, list, OtherLayout))
        result = hook(g if kept else of_array(K.asarray(g)))
        if result is not None:
            g = result if tensors or isinstance(result, OtherLayout) else result.array
    return g


def hooks_left(edge: Edge, order: list[Node]) -> dict[int, Callable[[Any], Tensor | None]]:
    """The hooks of an input that the walk did not run: leaves', and those of its last nodes."""
    if isinstance(edge, Tensor):
        return edge._hooks or {}
    return {} if edge.extra is None or edge in order else edge.extra.hooks


class RemovableHandle:
    """What every function that registers a hook returns, of tensors, modules and optimizers:
    ``remove()`` takes the hook away again, and so does the end of a ``with`` block."""

    def __init__(self, hooks: dict[int, Any], key: int):
        self._hooks, self.id = hooks, key

    def remove(self) -> None:
        """Takes the hook away; a second time does nothing."""
        self._hooks.pop(self.id, None)

    def move_to(self, node: Node | None) -> None:
        """Takes the hook along when its tensor gets another history by a change in place."""
        hook = self._hooks.pop(self.id, None)
        if hook is not None and node is not None:
            self._hooks = node.extras().hooks
            self.id = max(self._hooks, default=0) + 1
            self._hooks[self.id] = hook

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


class _LeafHooks(dict[int, Any]):
    """The hooks of a leaf: those that see the gradient, and ``after``, called with the leaf."""

    def __init__(self) -> None:
        super().__init__()
        self.after: dict[int, Callable[[Tensor], None]] = {}


def _hooks_of_leaf(tensor: Tensor) -> _LeafHooks:
    if not isinstance(tensor._hooks, _LeafHooks):
        tensor._hooks = _LeafHooks()
    return tensor._hooks


def run_after(leaf: Tensor) -> None:
    """Calls the hooks that wait for the gradient in ``.grad`` of a leaf with hooks."""
    for hook in list(_hooks_of_leaf(leaf).after.values()):
        hook(leaf)


def register_hook(tensor: Tensor, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
    """Calls ``hook(gradient)`` when the tensor's gradient is known; what it returns replaces it."""
    if not tensor.requires_grad:
        raise RuntimeError(
            "register_hook: cannot register a hook on a tensor that doesn't require gradient"
        )
    if tensor._node is not None:
        hooks = tensor._node.extras().hooks
    else:
        hooks = _hooks_of_leaf(tensor)
    key = max(hooks, default=0) + 1
    hooks[key] = hook
    return RemovableHandle(hooks, key)


def register_post_accumulate_grad_hook(
    tensor: Tensor, hook: Callable[[Tensor], None]
) -> RemovableHandle:
    """Calls ``hook(tensor)`` when a backward pass has added the gradient of a leaf to ``.grad``.

    So an optimizer can take its step for a parameter, and free the gradient, at once:

    >>> import chainrule
    >>> w = chainrule.tensor([1.0, 2.0], requires_grad=True)
    >>> def step(p):
    ...     p.data -= 0.5 * p.grad
    ...     p.grad = None
    >>> handle = w.register_post_accumulate_grad_hook(step)
    >>> (w * w).sum().backward()
    >>> w.detach(), w.grad
    (tensor([0., 0.]), None)
    """
    op = "register_post_accumulate_grad_hook"
    if not tensor.requires_grad:
        raise RuntimeError(f"{op}: cannot register a hook on a tensor that doesn't require grad")
    if not tensor.is_leaf:
        raise RuntimeError(
            f"{op}: post accumulate grad hooks cannot be registered on non-leaf tensors; "
            "register_hook sees their gradients"
        )
    after = _hooks_of_leaf(tensor).after
    key = max(after, default=0) + 1
    after[key] = hook
    return RemovableHandle(after, key)


def retain_grad(tensor: Tensor) -> None:
    """Keeps the gradient of a tensor that is not a leaf in its ``.grad`` too."""
    if tensor.is_leaf:
        if not tensor.requires_grad:
            raise RuntimeError(
                "retain_grad: can't retain_grad on a tensor that has requires_grad=False"
            )
        return
    if "retains_grad" in tensor.__dict__:
        return
    reference = weakref.ref(tensor)  # the tensor holds its node, which holds this hook

    def keep(g: Tensor) -> None:
        owner = reference()
        if owner is not None:
            owner._grad = g.detach() if owner._grad is None else owner._grad + g.detach()

    tensor.__dict__["retains_grad"] = register_hook(tensor, keep)
