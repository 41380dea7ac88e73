"""Regions of the parts of a tensor, and of the components of a mixture."""

from __future__ import annotations

from collections.abc import Sequence

from chainrule.distributions.constraints.base import Constraint, all_of_last, checked
from chainrule.ops.shape.stacking import cat as concatenated
from chainrule.ops.shape.stacking import stack as stacked
from chainrule.tensor import Tensor

__all__ = ["MixtureSameFamilyConstraint", "cat", "stack"]


class _parts(Constraint):
    """Several regions, side by side along a dimension."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0):
        self.cseq, self.dim = checked(type(self).__name__, cseq), dim
        self.is_discrete = any(c.is_discrete for c in self.cseq)
        self.event_dim = max(c.event_dim for c in self.cseq)

    def _wrapped(self, value: Tensor, size: int) -> int:
        if not -value.ndim <= self.dim < value.ndim or value.shape[self.dim] != size:
            raise ValueError(
                f"constraints.{type(self).__name__}: expected size {size} in dimension {self.dim}, "
                f"got shape {tuple(value.shape)}"
            )
        return self.dim % value.ndim

    def _valid(self, parts: Sequence[Tensor], dims: int) -> list[Tensor]:
        """Of every part, which values of so many dimensions lie in its region."""
        pairs = zip(self.cseq, parts, strict=True)
        return [all_of_last(c.check(x), dims - c.event_dim) for c, x in pairs]


class cat(_parts):
    """Regions of the parts of a tensor along ``dim``, which are ``lengths`` long (1 each).

    >>> from chainrule import tensor
    >>> from chainrule.distributions import constraints
    >>> region = constraints.cat([constraints.real, constraints.positive], dim=0, lengths=[1, 2])
    >>> region.check(tensor([-1.0, -1.0, 1.0]))
    tensor([ True, False,  True])
    """

    def __init__(
        self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None
    ):
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise ValueError(
                f"constraints.cat: {len(self.cseq)} regions, but {len(self.lengths)} lengths"
            )

    def check(self, value: Tensor) -> Tensor:
        at, dims = self._wrapped(value, sum(self.lengths)), self.event_dim
        valid = self._valid(value.split(self.lengths, at), dims)
        return concatenated(valid, at) if at < value.ndim - dims else stacked(valid).all(0)


class stack(_parts):
    """Regions of the slices of a tensor along ``dim``.

    Counted from the end, ``dim`` may lie among the dimensions of a value or just before them: then
    the slices together are one value.

    >>> from chainrule import tensor
    >>> from chainrule.distributions import constraints
    >>> region = constraints.stack([constraints.real, constraints.positive], dim=1)
    >>> region.check(tensor([[-1.0, -1.0], [1.0, 1.0]]))
    tensor([[ True, False],
            [ True,  True]])
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0):
        super().__init__(cseq, dim)
        self._slice_dim = self.event_dim
        self.event_dim += -1 - self._slice_dim <= self.dim < 0

    def check(self, value: Tensor) -> Tensor:
        at = self._wrapped(value, len(self.cseq))
        valid = self._valid(value.unbind(at), self._slice_dim)
        return stacked(valid).all(0) if self.event_dim > self._slice_dim else stacked(valid, at)


class MixtureSameFamilyConstraint(Constraint):
    """The region of a mixture: that of its components, which have a dimension more.

    >>> from chainrule import tensor
    >>> from chainrule.distributions import constraints
    >>> components = constraints.interval(0.0, tensor([1.0, 2.0]))
    >>> constraints.MixtureSameFamilyConstraint(components).check(tensor([0.5, 1.5]))
    tensor([ True, False])
    """

    def __init__(self, base_constraint: Constraint):
        (self.base_constraint,) = checked("MixtureSameFamilyConstraint", [base_constraint])
        self.is_discrete, self.event_dim = base_constraint.is_discrete, base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        each = value.unsqueeze(-1 - self.event_dim)
        return self.base_constraint.check(each).all(-1)
