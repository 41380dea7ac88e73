"""PyTorch's pruning by hooks: ``weight = weight_mask * weight_orig`` before every call.

``chainrule.regularize.prune`` has the methods of this library, whose masks are parametrizations
and hold in every optimizer; this file is for programs that expect PyTorch's names.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from chainrule.linalg import vector_norm
from chainrule.nn.module.base import Module
from chainrule.nn.utils.pruning import (
    BasePruningMethod,
    PruningContainer,
    checked_dim,
    hook_of,
)
from chainrule.nn.utils.vector import parameters_to_vector
from chainrule.ops.core.promotion import cast
from chainrule.ops.creation.patterns import ones_like, zeros_like
from chainrule.ops.creation.sampling import rand
from chainrule.ops.reduce.sort import topk
from chainrule.tensor import Tensor

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]

_Layer = TypeVar("_Layer", bound=Module)
Amount = int | float


# --- how much -------------------------------------------------------------------------------------


def _check_amount(amount: Amount) -> Amount:
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if amount < 0 or (not isinstance(amount, numbers.Integral) and amount > 1):
        raise ValueError(
            f"amount={amount} should either be a float in the range [0, 1] or a non-negative "
            "integer"
        )
    return amount


def _how_many(amount: Amount, size: int) -> int:
    """A number of entries, given as such or as a fraction of all."""
    if isinstance(amount, int):
        if amount > size:
            raise ValueError(
                f"amount={amount} should be smaller than the number of parameters to prune={size}"
            )
        return amount
    return round(amount * size)


# --- the methods ----------------------------------------------------------------------------------


class Identity(BasePruningMethod):
    """Prunes nothing: the mask is all 1."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


class _Entries(BasePruningMethod):
    """Prunes the entries of the smallest scores."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: Amount):
        self.amount = _check_amount(amount)

    def scores(self, t: Tensor) -> Tensor:
        """What is small for entries that shall go."""
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count, mask = _how_many(self.amount, t.numel()), default_mask.clone()
        if count:
            chosen = topk(self.scores(t).reshape(-1), count, largest=False).indices
            mask.view(-1)[chosen] = 0
        return mask


class RandomUnstructured(_Entries):
    """Prunes entries at random."""

    def scores(self, t: Tensor) -> Tensor:
        return rand(*t.shape, device=t.device)


class L1Unstructured(_Entries):
    """Prunes the entries of smallest absolute value."""

    def scores(self, t: Tensor) -> Tensor:
        return t.abs()


class _Slices(BasePruningMethod):
    """Prunes the slices along a dimension that have the smallest scores."""

    PRUNING_TYPE = "structured"
    amount: Amount
    dim: int

    def scores(self, t: Tensor, dim: int) -> Tensor:
        """What is small for slices that shall go."""
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        dim = checked_dim(t, self.dim)
        size = t.shape[dim]
        count = _how_many(self.amount, size)
        if not count:
            return default_mask
        mask = zeros_like(t)
        kept = topk(self.scores(t, dim), size - count).indices
        mask[(*[slice(None)] * dim, kept)] = 1
        return mask * cast(default_mask, mask.dtype)


class RandomStructured(_Slices):
    """Prunes slices at random."""

    def __init__(self, amount: Amount, dim: int = -1):
        self.amount, self.dim = _check_amount(amount), dim

    def scores(self, t: Tensor, dim: int) -> Tensor:
        return rand(t.shape[dim], device=t.device)


class LnStructured(_Slices):
    """Prunes the slices of smallest n-norm."""

    def __init__(self, amount: Amount, n: float, dim: int = -1):
        self.amount, self.n, self.dim = _check_amount(amount), n, dim

    def scores(self, t: Tensor, dim: int) -> Tensor:
        return vector_norm(t, self.n, dim=tuple(d for d in range(t.ndim) if d != dim))


class CustomFromMask(BasePruningMethod):
    """Prunes where a mask is 0."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor):
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"prune: a mask of shape {tuple(self.mask.shape)} does not fit a tensor of shape "
                f"{tuple(default_mask.shape)}"
            )
        return default_mask * cast(self.mask, default_mask.dtype)


# --- functions ------------------------------------------------------------------------------------


def identity(module: _Layer, name: str) -> _Layer:
    """Gives a tensor mask and hook without pruning anything; returns the module."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: _Layer, name: str, amount: Amount) -> _Layer:
    """Prunes entries of a tensor at random; ``amount`` is a number or a fraction of those left."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: _Layer, name: str, amount: Amount, importance_scores: Tensor | None = None
) -> _Layer:
    """Prunes the entries of smallest absolute value (or score); returns the module.

    >>> from chainrule import nn, tensor
    >>> from chainrule.nn.utils import prune
    >>> layer = nn.Linear(3, 1, bias=False)
    >>> _ = layer.load_state_dict({"weight": tensor([[3.0, -1.0, 2.0]])})
    >>> prune.l1_unstructured(layer, "weight", amount=1).weight.detach()
    tensor([[3., -0., 2.]])
    >>> list(layer.state_dict())
    ['weight_orig', 'weight_mask']
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: _Layer, name: str, amount: Amount, dim: int) -> _Layer:
    """Prunes slices along ``dim`` at random; returns the module."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: _Layer,
    name: str,
    amount: Amount,
    n: float,
    dim: int,
    importance_scores: Tensor | None = None,
) -> _Layer:
    """Prunes the slices along ``dim`` of smallest n-norm; returns the module."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: _Layer, name: str, mask: Tensor) -> _Layer:
    """Prunes a tensor where a mask is 0; returns the module."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: Mapping[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prunes tensors of several modules as if they were one.

    >>> from chainrule import nn
    >>> from chainrule.nn.utils import prune
    >>> net = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2))
    >>> weights = [(net[0], "weight"), (net[1], "weight")]
    >>> prune.global_unstructured(weights, prune.L1Unstructured, amount=6)
    >>> int(net[0].weight_mask.sum() + net[1].weight_mask.sum())
    12
    """
    held, given = list(parameters), importance_scores or {}
    scores = parameters_to_vector([given.get(key, getattr(*key)).detach() for key in held])
    masks = [getattr(m, f"{n}_mask", ones_like(getattr(m, n).detach())) for m, n in held]
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    mask, start = PruningContainer(method).compute_mask(scores, parameters_to_vector(masks)), 0
    for (module, name), old in zip(held, masks, strict=True):
        end = start + old.numel()
        custom_from_mask(module, name, mask[start:end].reshape(old.shape))
        start = end


def remove(module: _Layer, name: str) -> _Layer:
    """Takes mask and hook away; what is pruned stays zero until it is trained."""
    found = hook_of(module, name)
    if found is None:
        raise ValueError(
            f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
        )
    key, method = found
    method.remove(module)
    del module._forward_pre_hooks[key]
    return module


def is_pruned(module: Module) -> bool:
    """Whether a tensor of the module, or of one inside it, is pruned by this file's functions."""
    return any(
        isinstance(hook.function, BasePruningMethod)
        for part in module.modules()
        for hook in part._forward_pre_hooks.all()
    )
