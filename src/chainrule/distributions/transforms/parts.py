"""Transforms of the parts of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainrule.distributions import constraints
from chainrule.distributions.transforms.base import Transform, checked_transforms
from chainrule.distributions.utils import sum_rightmost
from chainrule.ops.shape.stacking import cat, stack
from chainrule.tensor import Tensor

__all__ = ["CatTransform", "StackTransform"]


class CatTransform(Transform):
    """The transforms ``tseq`` on the parts of a tensor along ``dim``, ``lengths`` long (1 each).

    >>> from chainrule import tensor
    >>> from chainrule.distributions.transforms import CatTransform, ExpTransform, TanhTransform
    >>> f = CatTransform([ExpTransform(), TanhTransform()], dim=0, lengths=[1, 2])
    >>> f(tensor([0.0, 0.0, 0.5]))
    tensor([1.0000, 0.0000, 0.4621])
    """

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ):
        super().__init__(cache_size)
        self.transforms = checked_transforms("CatTransform", tseq, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise ValueError(
                f"CatTransform: {len(self.transforms)} transforms, but {len(self.lengths)} lengths"
            )
        self.dim = dim
        self.bijective = all(t.bijective for t in self.transforms)
        self.domain, self.codomain = (
            constraints.cat(regions, dim, self.lengths)
            for regions in (
                [t.domain for t in self.transforms],
                [t.codomain for t in self.transforms],
            )
        )

    @property
    def length(self) -> int:
        """The size of the dimension."""
        return sum(self.lengths)

    def _parts(self, x: Tensor) -> Sequence[Tensor]:
        if not -x.ndim <= self.dim < x.ndim or x.shape[self.dim] != self.length:
            raise ValueError(
                f"CatTransform: expected size {self.length} in dimension {self.dim}, got shape "
                f"{tuple(x.shape)}"
            )
        return x.split(self.lengths, self.dim)

    def _call(self, x: Tensor) -> Tensor:
        parts = zip(self.transforms, self._parts(x), strict=True)
        return cat([t(part) for t, part in parts], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        parts = zip(self.transforms, self._parts(y), strict=True)
        return cat([t.inv(part) for t, part in parts], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        changes = []
        dims = self.domain.event_dim
        for t, before, after in zip(self.transforms, self._parts(x), self._parts(y), strict=True):
            change = t.log_abs_det_jacobian(before, after)
            changes.append(sum_rightmost(change, dims - t.domain.event_dim))
        at = self.dim % x.ndim
        return cat(changes, at) if at < x.ndim - dims else _total(changes)

    def _settings(self) -> tuple[Any, ...]:
        return self.dim, *self.lengths, *self.transforms


def _total(changes: Sequence[Tensor]) -> Tensor:
    """The change of volume of several parts that are one value."""
    total = changes[0]
    for change in changes[1:]:
        total = total + change
    return total


class StackTransform(Transform):
    """The transforms ``tseq`` on the slices of a tensor along ``dim``.

    Counted from the end, ``dim`` may lie among the dimensions of a value or just before them: then
    the slices together are one value.

    >>> from chainrule import tensor
    >>> from chainrule.distributions.transforms import ExpTransform, StackTransform, TanhTransform
    >>> StackTransform([ExpTransform(), TanhTransform()], dim=1)(tensor([[0.0, 0.0], [0.0, 0.0]]))
    tensor([[1., 0.],
            [1., 0.]])
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0):
        super().__init__(cache_size)
        self.transforms = checked_transforms("StackTransform", tseq, cache_size)
        self.dim = dim
        self.bijective = all(t.bijective for t in self.transforms)
        self.domain = constraints.stack([t.domain for t in self.transforms], dim)
        self.codomain = constraints.stack([t.codomain for t in self.transforms], dim)

    def _parts(self, x: Tensor) -> Sequence[Tensor]:
        if not -x.ndim <= self.dim < x.ndim or x.shape[self.dim] != len(self.transforms):
            raise ValueError(
                f"StackTransform: expected size {len(self.transforms)} in dimension {self.dim}, "
                f"got shape {tuple(x.shape)}"
            )
        return x.unbind(self.dim)

    def _call(self, x: Tensor) -> Tensor:
        parts = zip(self.transforms, self._parts(x), strict=True)
        return stack([t(part) for t, part in parts], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        parts = zip(self.transforms, self._parts(y), strict=True)
        return stack([t.inv(part) for t, part in parts], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        changes = []
        dims = max(t.domain.event_dim for t in self.transforms)
        for t, before, after in zip(self.transforms, self._parts(x), self._parts(y), strict=True):
            change = t.log_abs_det_jacobian(before, after)
            changes.append(sum_rightmost(change, dims - t.domain.event_dim))
        return (
            _total(changes) if self.domain.event_dim > dims else stack(changes, self.dim % x.ndim)
        )

    def _settings(self) -> tuple[Any, ...]:
        return self.dim, *self.transforms
