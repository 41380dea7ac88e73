"""einops as modules: ``from einops.layers.chainrule import EinMix, Rearrange, Reduce``."""

from __future__ import annotations

from typing import Any

from einops.layers import RearrangeMixin, ReduceMixin
from einops.layers._einmix import _EinmixMixin

from chainrule.nn.module.base import Module
from chainrule.nn.parameter import Parameter
from chainrule.ops.creation.patterns import empty
from chainrule.ops.linalg.einsum import einsum
from chainrule.tensor import Tensor

__all__ = ["EinMix", "Rearrange", "Reduce"]


class _Copied:
    """Copied and pickled as every module is: with hooks, mode, and what it was made with."""

    def __getstate__(self) -> Any:
        return vars(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)


class Rearrange(_Copied, RearrangeMixin, Module):
    """``einops.rearrange`` as a layer: the same elements in the arrangement that a pattern names.

    Shape: those of the pattern.

    Args:
        pattern: what the dimensions are before and after ``->``.
        axes_lengths: sizes by name, where the pattern leaves them open.

    >>> import chainrule
    >>> from chainrule import nn
    >>> from einops.layers.chainrule import Rearrange
    >>> net = nn.Sequential(Rearrange("n c h w -> n (c h w)"), nn.Linear(12, 2))
    >>> net(chainrule.ones(5, 3, 2, 2)).shape
    chainrule.Size([5, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        """The pattern, applied."""
        return self._apply_recipe(input)


class Reduce(_Copied, ReduceMixin, Module):
    """``einops.reduce`` as a layer: dimensions that the pattern drops are reduced.

    Shape: those of the pattern.

    Args:
        pattern: what the dimensions are before and after ``->``.
        reduction: "min", "max", "sum", "mean", "prod", "any" or "all".
        axes_lengths: sizes by name, where the pattern leaves them open.

    >>> import chainrule
    >>> from einops.layers.chainrule import Reduce
    >>> Reduce("n c (h p) (w q) -> n c h w", "max", p=2, q=2)(chainrule.ones(1, 3, 8, 4)).shape
    chainrule.Size([1, 3, 4, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        """The pattern, applied."""
        return self._apply_recipe(input)


class EinMix(_EinmixMixin, Module):
    """A linear layer over the dimensions that a pattern names: y = einsum(x, weight) + bias.

    Shape: those of the pattern.

    Args:
        pattern: what the dimensions of input and output are.
        weight_shape: the dimensions of the weight.
        bias_shape: those of the bias; none if left out.
        axes_lengths: the sizes of the dimensions of weight and bias, by name.

    >>> import chainrule
    >>> from einops.layers.chainrule import EinMix
    >>> mix = EinMix("n c l -> n d l", weight_shape="c d", bias_shape="d", c=3, d=4)
    >>> mix(chainrule.ones(2, 3, 5)).shape
    chainrule.Size([2, 4, 5])
    """

    weight: Parameter
    bias: Parameter | None
    pre_rearrange: Rearrange | None
    post_rearrange: Rearrange | None

    def _create_parameters(
        self,
        weight_shape: list[int],
        weight_bound: float,
        bias_shape: list[int] | None,
        bias_bound: float,
    ) -> None:
        self.weight = Parameter(empty(weight_shape).uniform_(-weight_bound, weight_bound))
        self.bias = None
        if bias_shape is not None:
            self.bias = Parameter(empty(bias_shape).uniform_(-bias_bound, bias_bound))

    def _create_rearrange_layers(
        self,
        pre_reshape_pattern: str | None,
        pre_reshape_lengths: dict[str, int] | None,
        post_reshape_pattern: str | None,
        post_reshape_lengths: dict[str, int] | None,
    ) -> None:
        self.pre_rearrange = self.post_rearrange = None
        if pre_reshape_pattern is not None:
            self.pre_rearrange = Rearrange(pre_reshape_pattern, **(pre_reshape_lengths or {}))
        if post_reshape_pattern is not None:
            self.post_rearrange = Rearrange(post_reshape_pattern, **(post_reshape_lengths or {}))

    def forward(self, input: Tensor) -> Tensor:
        """The product over the named dimensions, plus the bias."""
        if self.pre_rearrange is not None:
            input = self.pre_rearrange(input)
        out = einsum(self.einsum_pattern, input, self.weight)
        if self.bias is not None:
            out = out + self.bias
        return out if self.post_rearrange is None else self.post_rearrange(out)
