"""Weights held at zero: a mask is a parametrization, ``weight = where(mask, original, 0)``.

The optimizer goes on with the same parameter, whose pruned entries have no gradient and no effect:
so the mask holds under any optimizer, momentum and weight decay included. It is a buffer, in the
``state_dict`` as ``parametrizations.weight.0.mask``. A parameter that several modules share gets
one mask in all of them. :func:`remove` makes ordinary parameters of it all, zeros included.

Here a weight keeps its plain name, ``0.weight``, masked or not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chainrule.autograd.modes import no_grad
from chainrule.backend import dtypes
from chainrule.nn.layers.containers import ModuleList
from chainrule.nn.module.base import Module
from chainrule.nn.module.names import Where
from chainrule.nn.parameter import is_lazy
from chainrule.nn.utils.parametrize import (
    is_parametrized,
    register_parametrization,
    remove_parametrizations,
)
from chainrule.ops.creation.patterns import ones_like
from chainrule.ops.elementwise.logic import logical_and, where
from chainrule.ops.core.promotion import cast
from chainrule.ops.reduce.reductions import count_nonzero
from chainrule.regularize.where import select_weights
from chainrule.tensor import Tensor

__all__ = [
    "Mask",
    "Weight",
    "masks",
    "put_mask",
    "remove",
    "set_masks",
    "sparsity",
    "weights_of",
]


class Mask(Module):
    """The parametrization of a pruned weight: zero where the mask is False.

    >>> from chainrule import nn, tensor
    >>> from chainrule.nn.utils import parametrize
    >>> from chainrule.regularize import prune
    >>> layer = nn.Linear(2, 1, bias=False)
    >>> mask = prune.Mask(tensor([[True, False]]))
    >>> _ = parametrize.register_parametrization(layer, "weight", mask)
    >>> layer.weight[0, 1].item()
    0.0
    """

    is_mask = True
    mask: Any

    def __init__(self, mask: Tensor):
        super().__init__()
        self.register_buffer("mask", mask)

    def forward(self, original: Tensor) -> Tensor:
        return where(self.mask, original, 0.0)

    def right_inverse(self, value: Tensor) -> Tensor:
        """What is kept of a value that is assigned to the weight."""
        return where(self.mask, value, 0.0)


@dataclass
class Weight:
    """A parameter with its plain name, the names an optimizer sees, and the modules that hold it.

    ``names`` are all plain names of a shared parameter, the first of which is ``name``; ``key`` is
    its name among ``model.named_parameters()``.
    """

    name: str
    key: str
    parameter: Any
    names: list[str] = field(default_factory=list)
    owners: list[tuple[Module, str]] = field(default_factory=list)
    function: Mask | None = None

    @property
    def mask(self) -> Tensor:
        """True where a weight is left."""
        if self.function is not None:
            return self.function.mask
        return cast(ones_like(self.parameter.detach()), dtypes.bool_)

    @property
    def value(self) -> Tensor:
        """The weight as the network uses it, without history."""
        p = self.parameter.detach()
        return p if self.function is None else where(self.function.mask, p, 0.0)


_MASKED = re.compile(r"(^|\.)parametrizations\.([^.]+)\.original$")


def _all_weights(op: str, model: Module) -> list[Weight]:
    """The real floating-point parameters of a module, each once."""
    if not isinstance(model, Module):
        raise TypeError(f"{op}: expected a Module, got {type(model).__name__}")
    found: dict[int, Weight] = {}
    for key, p in model.named_parameters(remove_duplicate=False):
        if is_lazy(p):
            raise ValueError(
                f"{op}: the parameter {key!r} has no shape yet; call the model once before"
            )
        if not p.dtype.is_floating_point:
            continue
        path, _, attribute = key.rpartition(".")
        owner, name, function = model.get_submodule(path), key, None
        held = list(owner) if isinstance(owner, ModuleList) and _MASKED.search(key) else []
        if len(held) == 1 and isinstance(held[0], Mask):
            name, function = _MASKED.sub(r"\1\2", key), held[0]
            path, _, attribute = name.rpartition(".")
            owner = model.get_submodule(path)
        weight = found.setdefault(id(p), Weight(name, key, p))
        weight.names.append(name)
        if not any(o is owner and a == attribute for o, a in weight.owners):
            weight.owners.append((owner, attribute))
        weight.function = weight.function or function
    return list(found.values())


def weights_of(op: str, model: Module, where: Where = None) -> list[Weight]:
    """The weights that are meant; without ``where`` all parameters of two or more dimensions."""
    known = _all_weights(op, model)
    named = [(w.names, w.parameter) for w in known]
    return [known[i] for i in select_weights(op, named, where)]


def put_mask(weight: Weight, mask: Tensor) -> None:
    """Masks a weight everywhere it is used, and zeroes its pruned entries."""
    with no_grad():
        if weight.function is None:
            weight.function = Mask(mask)
            for owner, attribute in weight.owners:
                register_parametrization(owner, attribute, weight.function)
        else:
            weight.function.mask = mask
        weight.parameter.data = where(mask, weight.parameter.detach(), 0.0)


def masks(model: Module) -> dict[str, Tensor]:
    """The masks of a model by the names of its weights, True where a weight is left.

    >>> from chainrule import nn
    >>> from chainrule.regularize import prune
    >>> net = nn.Linear(2, 2)
    >>> _ = prune.magnitude(net, 0.5)
    >>> prune.masks(net)["weight"].sum().item()
    2
    """
    return {w.name: w.mask for w in _all_weights("masks", model) if w.function is not None}


def set_masks(model: Module, masks: Mapping[str, Any]) -> Module:
    """Prunes the weights of these names where their masks are False; returns the model.

    What was pruned before stays pruned. With the masks of another model of the same architecture,
    this one can load its ``state_dict``.

    >>> from chainrule import nn, tensor
    >>> from chainrule.regularize import prune
    >>> net = nn.Linear(2, 1)
    >>> _ = prune.set_masks(net, {"weight": tensor([[True, False]])})
    >>> prune.sparsity(net)
    0.5
    """
    by_name = {n: w for w in _all_weights("set_masks", model) for n in w.names}
    for name, mask in masks.items():
        if name not in by_name:
            raise KeyError(
                f"set_masks: the model has no parameter {name!r}; it has {sorted(by_name)}"
            )
        weight = by_name[name]
        if not isinstance(mask, Tensor) or tuple(mask.shape) != tuple(weight.parameter.shape):
            got = tuple(mask.shape) if isinstance(mask, Tensor) else type(mask).__name__
            raise ValueError(
                f"set_masks: the mask of {name!r} must be a tensor of its shape "
                f"{tuple(weight.parameter.shape)}, got {got}"
            )
    for name, mask in masks.items():
        put_mask(by_name[name], logical_and(by_name[name].mask, cast(mask, dtypes.bool_)))
    return model


def remove(model: Module) -> Module:
    """Takes the masks away; pruned weights stay zero until they are trained. Returns the model.

    >>> from chainrule import nn
    >>> from chainrule.regularize import prune
    >>> net = nn.Linear(2, 2)
    >>> _ = prune.magnitude(net, 0.5)
    >>> prune.masks(prune.remove(net)), prune.sparsity(net, "weight")
    ({}, 0.5)
    """
    for module in list(model.modules()):
        if not is_parametrized(module):
            continue
        for name, functions in list(module.parametrizations.items()):
            if len(functions) == 1 and isinstance(functions[0], Mask):
                remove_parametrizations(module, name)
    return model


def sparsity(model: Module, where: Where = None) -> float:
    """The fraction of the weights that are zero.

    >>> from chainrule import nn
    >>> from chainrule.regularize import prune
    >>> net = nn.Linear(4, 2)
    >>> _ = prune.magnitude(net, 0.25)
    >>> prune.sparsity(net)
    0.25
    """
    chosen = weights_of("sparsity", model, where)
    total = sum(w.parameter.numel() for w in chosen)
    return 1.0 - sum(int(count_nonzero(w.value)) for w in chosen) / max(1, total)
