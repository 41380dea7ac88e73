"""PyTorch draws its random numbers from chainrule's generators, so that programs can be compared.

Inside :func:`shared_draws` the random functions of PyTorch hand out what the functions of the same
names here draw: ``torch.randn(2, 3)`` is ``chainrule.randn(2, 3)``, ``tensor.uniform_()``,
dropout and the order of a shuffled ``DataLoader`` likewise, and ``torch.manual_seed`` seeds
chainrule. A program that calls the same functions in the same order on both libraries then sees
the same numbers: the initial weights of its layers, its noise, its samples. Nothing is changed on
chainrule's side, so that the order in which chainrule's own layers, loaders and distributions draw
is compared as well.

What PyTorch draws inside compiled functions stays its own: dropout between the layers of
``nn.LSTM``.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import chainrule
from chainrule.utils import data

_NEW = ("rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like")
_DEPENDENT = ("normal", "bernoulli", "multinomial", "poisson")
_IN_PLACE = ("bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "normal_")
_DROPOUT = ("dropout", "dropout1d", "dropout2d", "dropout3d")

_generators: weakref.WeakKeyDictionary[torch.Generator, chainrule.Generator]
_generators = weakref.WeakKeyDictionary()


def ours(value: Any) -> Any:
    """An argument of PyTorch's as one of chainrule's."""
    if isinstance(value, torch.Tensor):
        return chainrule.tensor(value.detach().numpy())
    if isinstance(value, torch.dtype):
        return getattr(chainrule, str(value).removeprefix("torch."))
    if value is torch.default_generator:
        return None
    if isinstance(value, torch.Generator):
        known = _generators.get(value)
        if known is None or known.initial_seed() != value.initial_seed():
            known = _generators[value] = chainrule.Generator().manual_seed(value.initial_seed())
        return known
    return str(value) if isinstance(value, torch.device) else value


def theirs(value: chainrule.Tensor) -> torch.Tensor:
    """A tensor of chainrule's as one of PyTorch's."""
    return torch.from_numpy(value.numpy().copy())


def _drawn(name: str) -> Callable[..., torch.Tensor]:
    """The function of this name, with chainrule's numbers in tensors of PyTorch's."""
    function = getattr(chainrule, name)

    def draw(*args: Any, requires_grad: bool = False, **settings: Any) -> torch.Tensor:
        if settings.get("dtype") is None and name in ("rand", "randn"):
            settings["dtype"] = torch.get_default_dtype()
        for ignored in ("layout", "memory_format", "out", "pin_memory"):
            settings.pop(ignored, None)
        given = {key: ours(value) for key, value in settings.items()}
        return theirs(function(*map(ours, args), **given)).requires_grad_(requires_grad)

    return draw


def _filled(name: str) -> Callable[..., torch.Tensor]:
    """The method that fills a tensor, with chainrule's numbers."""

    def fill(self: torch.Tensor, *args: Any, **settings: Any) -> torch.Tensor:
        draft = chainrule.zeros(tuple(self.shape), dtype=ours(self.dtype))
        given = {key: ours(value) for key, value in settings.items()}
        getattr(draft, name)(*map(ours, args), **given)
        return self.copy_(theirs(draft))

    return fill


def _dropping(name: str) -> Callable[..., torch.Tensor]:
    """Dropout by the mask that chainrule draws."""
    function = getattr(chainrule.nn.functional, name)

    def drop(
        input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
    ) -> torch.Tensor:
        if not training or p == 0:
            return input
        mask = function(chainrule.ones(tuple(input.shape), dtype=ours(input.dtype)), p)
        return input.mul_(theirs(mask)) if inplace else input * theirs(mask)

    return drop


def _attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    kernel: Callable[..., torch.Tensor] = F.scaled_dot_product_attention,
) -> torch.Tensor:
    """PyTorch's attention; with dropout by its definition, so that the mask can be chosen."""
    if dropout_p == 0.0:
        return kernel(query, key, value, attn_mask, 0.0, is_causal, scale=scale)
    n, m, d = query.shape[-2], key.shape[-2], query.shape[-1]
    scores = query @ key.mT * (d**-0.5 if scale is None else scale)
    if is_causal:
        attn_mask = torch.ones(n, m, dtype=torch.bool).tril()
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask, float("-inf"))
    elif attn_mask is not None:
        scores = scores + attn_mask
    return F.dropout(scores.softmax(-1), dropout_p) @ value


def _ordered(sampler: Any) -> Iterator[int]:
    """The order of an epoch as chainrule's loader draws it: the order, then a seed for workers."""
    g = ours(sampler.generator)
    if isinstance(sampler, torch.utils.data.RandomSampler):
        args: tuple[Any, ...] = (sampler.data_source, sampler.replacement, sampler._num_samples)
        order = list(data.RandomSampler(*args, generator=g))
    elif isinstance(sampler, torch.utils.data.SubsetRandomSampler):
        order = list(data.SubsetRandomSampler(sampler.indices, generator=g))
    else:
        args = (ours(sampler.weights), sampler.num_samples, sampler.replacement)
        order = list(data.WeightedRandomSampler(*args, generator=g))
    chainrule.randint(2**62, (), generator=g)
    return iter(order)


def _seed(seed: int, *, kept: Callable[[int], Any] = torch.manual_seed) -> Any:
    chainrule.manual_seed(seed)
    return kept(seed)


@contextlib.contextmanager
def shared_draws() -> Iterator[None]:
    """Inside, PyTorch's random numbers are chainrule's."""
    with pytest.MonkeyPatch.context() as patch:
        for name in _NEW + _DEPENDENT:
            patch.setattr(torch, name, _drawn(name))
        patch.setattr(torch.utils.data.dataset, "randperm", _drawn("randperm"))
        for name in (*_IN_PLACE, "uniform_"):
            patch.setattr(torch.Tensor, name, _filled(name))
        for name in ("bernoulli", "multinomial"):
            patch.setattr(torch.Tensor, name, _drawn(name))
        for name in _DROPOUT:
            patch.setattr(F, name, _dropping(name))
        patch.setattr(F, "scaled_dot_product_attention", _attention)
        patch.setattr(torch, "manual_seed", _seed)
        for name in ("RandomSampler", "SubsetRandomSampler", "WeightedRandomSampler"):
            patch.setattr(getattr(torch.utils.data, name), "__iter__", _ordered)
        yield
