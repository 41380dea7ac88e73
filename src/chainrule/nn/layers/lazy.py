"""Layers that learn the size of their input from the first input they see.

A lazy layer takes the arguments of its plain class without the first one (``in_features``,
``in_channels`` or ``num_features``). Its tensors have no shape until it is called, or until a
state_dict is loaded; after the first call it is an instance of the plain class.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, ClassVar

from chainrule.autograd.modes import no_grad
from chainrule.nn.layers.conv import Conv1d, Conv2d, Conv3d
from chainrule.nn.layers.conv_transpose import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from chainrule.nn.layers.linear import Linear
from chainrule.nn.layers.norm import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)
from chainrule.nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy
from chainrule.tensor import Tensor

__all__ = [
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
    "LazyLinear",
    "LazyModuleMixin",
]


class LazyModuleMixin:
    """What makes a module lazy: before its first forward it calls ``initialize_parameters``.

    That method gets the arguments of the call and has to give every uninitialized tensor its shape.
    Afterwards the module becomes an instance of ``cls_to_become``, if there is one.
    """

    cls_to_become: type | None = None

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Gives the tensors their shapes, and their first values, for this input."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def has_uninitialized_params(self) -> bool:
        """Whether the shape of some tensor is not known yet."""
        return any(is_lazy(t) for _, _, t in _held(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.cls_to_become is not None or self.has_uninitialized_params():
            self.initialize_parameters(*args, **kwargs)
            if self.has_uninitialized_params():
                name = type(self).__name__
                raise RuntimeError(f"module {name} has not been fully initialized")
        if self.cls_to_become is None:
            return super().__call__(*args, **kwargs)  # type: ignore[misc]
        self.__class__ = self.cls_to_become
        return self(*args, **kwargs)


def _held(module: Any) -> Iterator[tuple[dict[str, Any], str, Any]]:
    """The tensors that a module holds itself, each with its dictionary and its name there."""
    for holder in (module._parameters, module._buffers):
        for name, tensor in list(holder.items()):
            if tensor is not None:
                yield holder, name, tensor


class _Lazy(LazyModuleMixin):
    """A lazy layer. ``dim`` is the dimension of the input that tells the missing size."""

    cls_to_become: type
    dim: int
    defaults: ClassVar[dict[str, Any]] = {}  # where they differ from the plain class
    __signature__: ClassVar[inspect.Signature]  # that of the plain class without its size

    def __init_subclass__(cls) -> None:
        plain = inspect.signature(cls.cls_to_become)
        _, *others = [
            p.replace(default=cls.defaults.get(p.name, p.default))
            for p in plain.parameters.values()
        ]
        cls.__signature__ = plain.replace(parameters=others)
        super().__init_subclass__()

    def __init__(self, *args: Any, **kwargs: Any):
        given = inspect.signature(self.cls_to_become).bind(1, *args, **kwargs).arguments
        kwargs.update({name: v for name, v in self.defaults.items() if name not in given})
        # A layer of the smallest size shows which tensors there will be.
        template = self.cls_to_become(given.get("groups", 1), *args, **kwargs)
        self.__dict__.update(vars(template))
        for holder, name, tensor in _held(self):
            if holder is template._parameters:
                holder[name] = UninitializedParameter(tensor.requires_grad, dtype=tensor.dtype)
            elif tensor.ndim:
                holder[name] = UninitializedBuffer(dtype=tensor.dtype)
        self._arguments = args, kwargs
        setattr(self, self._size_name(), 0)

    def _size_name(self) -> str:
        return next(iter(inspect.signature(self.cls_to_become).parameters))

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        needed = -self.dim if self.dim < 0 else self.dim + 1
        if input.ndim < needed:
            raise RuntimeError(
                f"{type(self).__name__}: cannot infer {self._size_name()} from an input of shape "
                f"{tuple(input.shape)}; it needs at least {needed} dimensions"
            )
        size = input.shape[self.dim]
        arguments, keywords = self._arguments
        fresh = self.cls_to_become(size, *arguments, **keywords)
        with no_grad():
            for (_, _, tensor), (_, _, new) in zip(_held(self), _held(fresh), strict=True):
                if is_lazy(tensor):
                    tensor.materialize(new.shape)
                    tensor.copy_(new)
        setattr(self, self._size_name(), size)
        del self._arguments


class LazyLinear(_Lazy, Linear):
    """A :class:`Linear` whose in_features = x.shape[-1] is told by its first input x.

    Shape: (*, D) -> (*, out_features).

    Args:
        args, kwargs: those of :class:`Linear` without in_features.

    >>> from chainrule import nn, ones
    >>> layer = nn.LazyLinear(2)
    >>> layer
    LazyLinear(in_features=0, out_features=2, bias=True)
    >>> layer(ones(4, 3)).shape, layer
    (chainrule.Size([4, 2]), Linear(in_features=3, out_features=2, bias=True))
    """

    cls_to_become, dim = Linear, -1


class LazyConv1d(_Lazy, Conv1d):
    """A :class:`Conv1d` whose in_channels = x.shape[-2] is told by its first input x.

    Shape: (N, C, L) -> (N, out_channels, L_out), or both without N.

    Args:
        args, kwargs: those of :class:`Conv1d` without in_channels.

    >>> from chainrule import nn, ones
    >>> layer = nn.LazyConv1d(4, 3)
    >>> layer(ones(2, 6, 5)).shape, layer.in_channels
    (chainrule.Size([2, 4, 3]), 6)
    """

    cls_to_become, dim = Conv1d, -2


class LazyConv2d(_Lazy, Conv2d):
    """A :class:`Conv2d` whose in_channels = x.shape[-3] is told by its first input x.

    Shape: (N, C, H, W) -> (N, out_channels, H_out, W_out), or both without N.

    Args:
        args, kwargs: those of :class:`Conv2d` without in_channels.

    >>> from chainrule import nn, ones
    >>> layer = nn.LazyConv2d(4, 3)
    >>> layer(ones(2, 6, 5, 5)).shape, layer.in_channels
    (chainrule.Size([2, 4, 3, 3]), 6)
    """

    cls_to_become, dim = Conv2d, -3


class LazyConv3d(_Lazy, Conv3d):
    """A :class:`Conv3d` whose in_channels = x.shape[-4] is told by its first input x.

    Shape: (N, C, Z, H, W) -> (N, out_channels, Z_out, H_out, W_out), or both without N.

    Args:
        args, kwargs: those of :class:`Conv3d` without in_channels.

    >>> from chainrule import nn, ones
    >>> layer = nn.LazyConv3d(4, 3)
    >>> layer(ones(2, 6, 5, 5, 5)).shape, layer.in_channels
    (chainrule.Size([2, 4, 3, 3, 3]), 6)
    """

    cls_to_become, dim = Conv3d, -4


class LazyConvTranspose1d(_Lazy, ConvTranspose1d):
    """A :class:`ConvTranspose1d` whose in_channels = x.shape[-2] is told by its first input x.

    Shape: (N, C, L) -> (N, out_channels, L_out), or both without N.

    Args:
        args, kwargs: those of :class:`ConvTranspose1d` without in_channels.

    >>> from chainrule import nn, ones
    >>> layer = nn.LazyConvTranspose1d(4, 3)
    >>> layer(ones(2, 6, 5)).shape, layer.in_channels
    (chainrule.Size([2, 4, 7]), 6)
    """

    cls_to_become, dim = ConvTranspose1d, -2


class LazyConvTranspose2d(_Lazy, ConvTranspose2d):
    """A :class:`ConvTranspose2d` whose in_channels = x.shape[-3] is told by its first input x.

    Shape: (N, C, H, W) -> (N, out_channels, H_out, W_out), or both without N.

    Args:
        args, kwargs: those of :class:`ConvTranspose2d` without in_channels.

    >>> from chainrule import nn, ones
    >>> layer = nn.LazyConvTranspose2d(4, 3)
    >>> layer(ones(2, 6, 5, 5)).shape, layer.in_channels
    (chainrule.Size([2, 4, 7, 7]), 6)
    """

    cls_to_become, dim = ConvTranspose2d, -3


class LazyConvTranspose3d(_Lazy, ConvTranspose3d):
    """A :class:`ConvTranspose3d` whose in_channels = x.shape[-4] is told by its first input x.

    Shape: (N, C, Z, H, W) -> (N, out_channels, Z_out, H_out, W_out), or both without N.

    Args:
        args, kwargs: those of :class:`ConvTranspose3d` without in_channels.

    >>> from chainrule import nn, ones
    >>> layer = nn.LazyConvTranspose3d(4, 3)
    >>> layer(ones(2, 6, 5, 5, 5)).shape, layer.in_channels
    (chainrule.Size([2, 4, 7, 7, 7]), 6)
    """

    cls_to_become, dim = ConvTranspose3d, -4


class LazyBatchNorm1d(_Lazy, BatchNorm1d):
    """A :class:`BatchNorm1d` whose num_features = x.shape[1] is told by its first input x.

    Shape: (N, C) or (N, C, L), the same out.

    Args:
        args, kwargs: those of :class:`BatchNorm1d` without num_features.

    >>> from chainrule import nn, ones
    >>> layer = nn.LazyBatchNorm1d()
    >>> layer(ones(2, 6, 5)).shape, layer.num_features
    (chainrule.Size([2, 6, 5]), 6)
    """

    cls_to_become, dim = BatchNorm1d, 1


class LazyBatchNorm2d(_Lazy, BatchNorm2d):
    """A :class:`BatchNorm2d` whose num_features = x.shape[1] is told by its first input x.

    Shape: (N, C, H, W), the same out.

    Args:
        args, kwargs: those of :class:`BatchNorm2d` without num_features.

    >>> from chainrule import nn, ones
    >>> layer = nn.LazyBatchNorm2d()
    >>> layer(ones(2, 6, 5, 5)).shape, layer.num_features
    (chainrule.Size([2, 6, 5, 5]), 6)
    """

    cls_to_become, dim = BatchNorm2d, 1


class LazyBatchNorm3d(_Lazy, BatchNorm3d):
    """A :class:`BatchNorm3d` whose num_features = x.shape[1] is told by its first input x.

    Shape: (N, C, Z, H, W), the same out.

    Args:
        args, kwargs: those of :class:`BatchNorm3d` without num_features.

    >>> from chainrule import nn, ones
    >>> layer = nn.LazyBatchNorm3d()
    >>> layer(ones(2, 6, 5, 5, 5)).shape, layer.num_features
    (chainrule.Size([2, 6, 5, 5, 5]), 6)
    """

    cls_to_become, dim = BatchNorm3d, 1


# PyTorch's lazy instance normalization learns and keeps moments, unlike its plain one.
_KEPT = {"affine": True, "track_running_stats": True}


class LazyInstanceNorm1d(_Lazy, InstanceNorm1d):
    """An :class:`InstanceNorm1d` whose num_features = x.shape[-2] is told by its first input x.

    By default it learns weight and bias and keeps running moments, unlike the plain layer.

    Shape: (N, C, L) or (C, L), the same out.

    Args:
        args, kwargs: those of :class:`InstanceNorm1d` without num_features.

    >>> from chainrule import nn, ones
    >>> layer = nn.LazyInstanceNorm1d()
    >>> layer(ones(2, 6, 5)).shape, layer.num_features
    (chainrule.Size([2, 6, 5]), 6)
    """

    cls_to_become, dim = InstanceNorm1d, -2
    defaults = _KEPT


class LazyInstanceNorm2d(_Lazy, InstanceNorm2d):
    """An :class:`InstanceNorm2d` whose num_features = x.shape[-3] is told by its first input x.

    By default it learns weight and bias and keeps running moments, unlike the plain layer.

    Shape: (N, C, H, W) or (C, H, W), the same out.

    Args:
        args, kwargs: those of :class:`InstanceNorm2d` without num_features.

    >>> from chainrule import nn, ones
    >>> layer = nn.LazyInstanceNorm2d()
    >>> layer(ones(2, 6, 5, 5)).shape, layer.num_features
    (chainrule.Size([2, 6, 5, 5]), 6)
    """

    cls_to_become, dim = InstanceNorm2d, -3
    defaults = _KEPT


class LazyInstanceNorm3d(_Lazy, InstanceNorm3d):
    """An :class:`InstanceNorm3d` whose num_features = x.shape[-4] is told by its first input x.

    By default it learns weight and bias and keeps running moments, unlike the plain layer.

    Shape: (N, C, Z, H, W) or (C, Z, H, W), the same out.

    Args:
        args, kwargs: those of :class:`InstanceNorm3d` without num_features.

    >>> from chainrule import nn, ones
    >>> layer = nn.LazyInstanceNorm3d()
    >>> layer(ones(2, 6, 5, 5, 5)).shape, layer.num_features
    (chainrule.Size([2, 6, 5, 5, 5]), 6)
    """

    cls_to_become, dim = InstanceNorm3d, -4
    defaults = _KEPT
