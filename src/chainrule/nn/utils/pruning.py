"""What PyTorch's pruning is made of: a hook that multiplies a weight by its mask."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from chainrule.autograd.modes import no_grad
from chainrule.nn.module.base import Module
from chainrule.ops.core.promotion import cast
from chainrule.ops.creation.patterns import ones_like
from chainrule.tensor import Tensor

__all__ = ["BasePruningMethod", "PruningContainer", "checked_dim", "hook_of"]


class BasePruningMethod:
    """A way to choose what is pruned: a subclass says ``compute_mask`` and ``PRUNING_TYPE``.

    The type says what a second pruning of the same tensor chooses from: the entries that are left
    ("unstructured"), the slices along ``dim`` that are left ("structured"), all ("global").

    >>> from chainrule import nn
    >>> from chainrule.nn.utils import prune
    >>> class EverySecond(prune.BasePruningMethod):
    ...     PRUNING_TYPE = "unstructured"
    ...     def compute_mask(self, t, default_mask):
    ...         mask = default_mask.clone()
    ...         mask.view(-1)[::2] = 0
    ...         return mask
    >>> layer = nn.Linear(4, 1)
    >>> _ = EverySecond.apply(layer, "weight")
    >>> layer.weight_mask
    tensor([[0., 1., 0., 1.]])
    """

    PRUNING_TYPE: ClassVar[str]
    _tensor_name: str | None = None

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask of a tensor (or of scores in its place): 1 where an entry is kept."""
        raise NotImplementedError(f"{type(self).__name__}: a subclass defines compute_mask")

    def __call__(self, module: Module, inputs: object) -> None:
        setattr(module, self._name, self.apply_mask(module))

    @property
    def _name(self) -> str:
        if self._tensor_name is None:
            raise AssertionError(f"{type(self).__name__} has not been applied to a module yet")
        return self._tensor_name

    def apply_mask(self, module: Module) -> Tensor:
        """The pruned tensor: the mask times the original one."""
        original = getattr(module, f"{self._name}_orig")
        return cast(getattr(module, f"{self._name}_mask"), original.dtype) * original

    @classmethod
    def apply(
        cls,
        module: Module,
        name: str,
        *args: Any,
        importance_scores: Tensor | None = None,
        **kwargs: Any,
    ) -> BasePruningMethod:
        """Prunes a tensor of a module from now on, on top of what is pruned already."""
        new = cls(*args, **kwargs)
        new._tensor_name = name
        scores = _scores(getattr(module, name), importance_scores, name)
        found = hook_of(module, name)
        if found is None:
            method: BasePruningMethod = new
            original = module._parameters.get(name)
            if original is None:
                raise ValueError(f"prune: {module} has no parameter {name!r}")
            mask = method.compute_mask(scores, ones_like(original.detach()))
            delattr(module, name)
            module.register_parameter(f"{name}_orig", original)
        else:
            key, old = found
            earlier = old if isinstance(old, PruningContainer) else [old]
            method = PruningContainer(*earlier, new)
            mask = method.compute_mask(scores, getattr(module, f"{name}_mask").detach().clone())
            del module._forward_pre_hooks[key]
        module.register_buffer(f"{name}_mask", mask)
        method(module, ())
        module.register_forward_pre_hook(method)
        return method

    def prune(
        self,
        t: Tensor,
        default_mask: Tensor | None = None,
        importance_scores: Tensor | None = None,
    ) -> Tensor:
        """A tensor with zeros in place of what is pruned, outside of any module."""
        start = ones_like(t.detach()) if default_mask is None else default_mask
        return t * self.compute_mask(_scores(t, importance_scores, "t"), start)

    def remove(self, module: Module) -> None:
        """Makes the pruned tensor an ordinary parameter again, zeros included."""
        name, original = self._name, module._parameters[f"{self._name}_orig"]
        if original is None:
            raise ValueError(f"prune: {module} has no parameter {name}_orig")
        with no_grad():
            original.data = self.apply_mask(module).detach()
        for held in (name, f"{name}_orig", f"{name}_mask"):
            delattr(module, held)
        module.register_parameter(name, original)


class PruningContainer(BasePruningMethod):
    """Several prunings of one tensor; the last chooses from what the others left.

    >>> from chainrule import nn
    >>> from chainrule.nn.utils import prune
    >>> layer = nn.Linear(4, 2)
    >>> for _ in range(2):
    ...     _ = prune.l1_unstructured(layer, "weight", amount=2)
    >>> int(layer.weight_mask.sum())
    4
    """

    def __init__(self, *args: BasePruningMethod):
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if args:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Puts a pruning behind the others."""
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method._tensor_name != self._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, index: int) -> BasePruningMethod:
        return self._pruning_methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        method = self._pruning_methods[-1]
        open_to = _open_to(method, t, default_mask)
        mask = cast(default_mask, t.dtype).clone()
        chosen = method.compute_mask(t[open_to], default_mask=default_mask[open_to])
        mask[open_to] = cast(chosen, mask.dtype)
        return mask


def _open_to(method: BasePruningMethod, t: Tensor, mask: Tensor) -> Any:
    """The index of what a pruning may choose from."""
    if method.PRUNING_TYPE == "unstructured":
        return mask == 1
    if method.PRUNING_TYPE == "structured":
        dim = checked_dim(t, getattr(method, "dim", 0))
        left = mask.sum(dim=[d for d in range(t.ndim) if d != dim]) != 0
        return (*[slice(None)] * dim, left)
    if method.PRUNING_TYPE == "global":
        return (slice(None),) * t.ndim
    raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")


def _scores(t: Tensor, scores: Tensor | None, name: str) -> Tensor:
    """What decides over a tensor: the scores that are given, or its own values."""
    if scores is None:
        return t.detach()
    if scores.shape != t.shape:
        raise AssertionError(
            f"importance_scores should have the same shape as parameter {name}, got "
            f"{tuple(scores.shape)} vs {tuple(t.shape)}"
        )
    return scores.detach()


def hook_of(module: Module, name: str) -> tuple[int, BasePruningMethod] | None:
    """The pruning of a tensor with its number among the module's hooks."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook.function, BasePruningMethod) and hook.function._tensor_name == name:
            return key, hook.function
    return None


def checked_dim(t: Tensor, dim: int) -> int:
    """A dimension of a tensor that has several, counted from the first."""
    if t.ndim <= 1:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. Found tensor of "
            f"shape {tuple(t.shape)} with {t.ndim} dims"
        )
    if not -t.ndim <= dim < t.ndim:
        raise IndexError(f"Invalid index {dim} for tensor of size {tuple(t.shape)}")
    return dim % t.ndim
