"""What a transform is, its inverse, and transforms made of others."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Sequence
from typing import Any

from chainrule.distributions import constraints
from chainrule.distributions.constraints import Constraint
from chainrule.distributions.utils import sum_rightmost
from chainrule.ops.core.promotion import broadcast_shapes
from chainrule.ops.creation.patterns import zeros
from chainrule.tensor import Size, Tensor
from chainrule.typing import Shape

__all__ = [
    "ComposeTransform",
    "IndependentTransform",
    "ReshapeTransform",
    "Transform",
    "identity_transform",
]


class Transform:
    """A function from ``domain`` to ``codomain`` whose change of volume is known.

    A transform gives ``_call`` and, if it is ``bijective``, ``_inverse`` and
    ``log_abs_det_jacobian``. ``sign`` is 1 or -1 for a function of numbers that rises or falls.

    Args:
        cache_size: 1 to remember the last x and y, so that the inverse of y is that x itself.

    >>> from chainrule import tensor
    >>> from chainrule.distributions.transforms import AffineTransform, ExpTransform
    >>> f = AffineTransform(loc=1.0, scale=2.0)
    >>> x = tensor([0.0, 3.0])
    >>> f(x), f.inv(f(x)), f.log_abs_det_jacobian(x, f(x))
    (tensor([1., 7.]), tensor([0., 3.]), tensor([0.6931, 0.6931]))
    >>> ExpTransform().inv.domain
    greater_than(lower_bound=0.0)
    """

    domain: Constraint
    codomain: Constraint
    bijective: bool = False
    _inv: weakref.ref[Transform] | None = None
    _kept: tuple[Tensor, Tensor] | None = None

    def __init__(self, cache_size: int = 0):
        if cache_size not in (0, 1):
            raise ValueError(f"{type(self).__name__}: cache_size must be 0 or 1, got {cache_size}")
        self._cache_size = cache_size

    @property
    def event_dim(self) -> int:
        """The dimensions of one value, before and after."""
        before, after = self.domain.event_dim, self.codomain.event_dim
        if before != after:
            raise ValueError(
                f"{type(self).__name__}: a value has {before} dimensions before and {after} after; "
                "ask domain.event_dim or codomain.event_dim"
            )
        return before

    @property
    def sign(self) -> Tensor | int:
        """1 for an increasing function of numbers, -1 for a decreasing one."""
        raise NotImplementedError(f"{type(self).__name__}: neither increasing nor decreasing")

    @property
    def inv(self) -> Transform:
        """The inverse transform; its inverse is this one."""
        inverse = None if self._inv is None else self._inv()
        if inverse is None:
            inverse = self._inverted()
            self._inv = weakref.ref(inverse)
        return inverse

    def _inverted(self) -> Transform:
        return _InverseTransform(self)

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The same transform with this size of its cache; itself, if it has that."""
        if cache_size == self._cache_size:
            return self
        new = copy.copy(self)
        Transform.__init__(new, cache_size)
        return new

    def __getstate__(self) -> dict[str, Any]:
        """A copy has an inverse of its own, and has computed nothing yet."""
        return {k: v for k, v in vars(self).items() if k not in ("_inv", "_kept")}

    def __call__(self, x: Tensor) -> Tensor:
        """y = f(x)"""
        if self._cache_size and self._kept is not None and self._kept[0] is x:
            return self._kept[1]
        return self._keep(x, self._call(x))[1]

    def _inv_call(self, y: Tensor) -> Tensor:
        """x with f(x) = y"""
        if self._cache_size and self._kept is not None and self._kept[1] is y:
            return self._kept[0]
        return self._keep(self._inverse(y), y)[0]

    def _keep(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        if self._cache_size:
            self._kept = x, y
        return x, y

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: the function is not defined")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: the inverse is not known")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log |det dy/dx|, one number for each value."""
        raise NotImplementedError(f"{type(self).__name__}: log_abs_det_jacobian is not known")

    def forward_shape(self, shape: Shape) -> Size:
        """The shape of f(x) for an x of this shape."""
        return Size(shape)

    def inverse_shape(self, shape: Shape) -> Size:
        """The shape of x for an f(x) of this shape."""
        return Size(shape)

    def _settings(self) -> tuple[Any, ...] | None:
        """What two transforms of the class may differ in; None if that is not known."""
        return None

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Transform) or type(self) is not type(other):
            return False
        mine, others = self._settings(), other._settings()
        if mine is None or others is None or len(mine) != len(others):
            return False
        return all(_same(a, b) for a, b in zip(mine, others, strict=True))

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        settings = self._settings() or ()
        return f"{type(self).__name__}({', '.join(map(str, settings))})"


def _same(a: object, b: object) -> bool:
    """Whether two settings are the same number, tensor or transform."""
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        try:
            equal: object = a == b
        except RuntimeError:  # of shapes that do not fit
            return False
        return bool(equal.all()) if isinstance(equal, Tensor) else bool(equal)
    return a == b


class _InverseTransform(Transform):
    """The inverse of a transform."""

    def __init__(self, transform: Transform):
        super().__init__(transform._cache_size)
        self.transform = transform
        self.domain, self.codomain = transform.codomain, transform.domain
        self.bijective = transform.bijective

    @property
    def sign(self) -> Tensor | int:
        return self.transform.sign

    @property
    def inv(self) -> Transform:
        return self.transform

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self.transform.with_cache(cache_size).inv

    def __call__(self, x: Tensor) -> Tensor:
        return self.transform._inv_call(x)

    def _inv_call(self, y: Tensor) -> Tensor:
        return self.transform(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self.transform.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Shape) -> Size:
        return self.transform.inverse_shape(shape)

    def inverse_shape(self, shape: Shape) -> Size:
        return self.transform.forward_shape(shape)

    def _settings(self) -> tuple[Any, ...]:
        return (self.transform,)


class ComposeTransform(Transform):
    """f(x) = parts[-1](... parts[0](x))

    >>> from chainrule import tensor
    >>> from chainrule.distributions.transforms import (
    ...     AffineTransform,
    ...     ComposeTransform,
    ...     ExpTransform,
    ... )
    >>> f = ComposeTransform([ExpTransform(), AffineTransform(1.0, 2.0)])
    >>> f(tensor(0.0)), f.inv(tensor(3.0))
    (tensor(3.), tensor(0.))
    >>> f
    ComposeTransform(
        ExpTransform(),
        AffineTransform(1.0, 2.0)
    )
    """

    _forward: ComposeTransform | None = None  # what this is the inverse of

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0):
        super().__init__(cache_size)
        self.parts = checked_transforms("ComposeTransform", parts, cache_size)
        self.bijective = all(p.bijective for p in self.parts)
        self.domain, self.codomain = _ends(self.parts)

    @property
    def inv(self) -> Transform:
        return super().inv if self._forward is None else self._forward

    def _inverted(self) -> Transform:
        inverse = ComposeTransform([p.inv for p in reversed(self.parts)], self._cache_size)
        inverse._forward = self
        return inverse

    def with_cache(self, cache_size: int = 1) -> Transform:
        if cache_size == self._cache_size:
            return self
        return ComposeTransform([p.with_cache(cache_size) for p in self.parts], cache_size)

    def __call__(self, x: Tensor) -> Tensor:
        return self._call(x)  # the parts remember

    def _inv_call(self, y: Tensor) -> Tensor:
        return self._inverse(y)

    @property
    def sign(self) -> Tensor | int:
        sign: Tensor | int = 1
        for p in self.parts:
            sign = sign * p.sign
        return sign

    def _call(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y: Tensor) -> Tensor:
        for part in reversed(self.parts):
            y = part.inv(y)
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        total = None
        dims = self.domain.event_dim
        for i, part in enumerate(self.parts):
            after = y if i == len(self.parts) - 1 else part(x)
            change = part.log_abs_det_jacobian(x, after)
            change = sum_rightmost(change, dims - part.domain.event_dim)
            total = change if total is None else total + change
            dims += part.codomain.event_dim - part.domain.event_dim
            x = after
        return zeros(x.shape, dtype=x.dtype, device=x.device) if total is None else total

    def forward_shape(self, shape: Shape) -> Size:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return Size(shape)

    def inverse_shape(self, shape: Shape) -> Size:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return Size(shape)

    def _settings(self) -> tuple[Any, ...]:
        return tuple(self.parts)

    def __repr__(self) -> str:
        lines = ",".join(f"\n    {p!r}" for p in self.parts)
        return f"ComposeTransform({lines}\n)" if lines else "ComposeTransform()"


def checked_transforms(
    name: str, transforms: Sequence[Transform], cache_size: int = 0
) -> list[Transform]:
    """The transforms that another one is made of, with its cache if it has one."""
    for t in transforms:
        if not isinstance(t, Transform):
            raise ValueError(f"{name}: expected transforms, got {type(t).__name__}")
    return [t.with_cache(cache_size) if cache_size else t for t in transforms]


def _ends(parts: Sequence[Transform]) -> tuple[Constraint, Constraint]:
    """Where a chain begins and ends; a value has as many dimensions as the greediest part needs."""
    if not parts:
        return constraints.real, constraints.real
    first, last = parts[0].domain, parts[-1].codomain
    before = last.event_dim
    for p in reversed(parts):
        before = max(before + p.domain.event_dim - p.codomain.event_dim, p.domain.event_dim)
    after = first.event_dim
    for p in parts:
        after = max(after + p.codomain.event_dim - p.domain.event_dim, p.codomain.event_dim)
    return _widened(first, before), _widened(last, after)


def _widened(constraint: Constraint, dims: int) -> Constraint:
    more = dims - constraint.event_dim
    return constraints.independent(constraint, more) if more else constraint


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform whose last ``reinterpreted_batch_ndims`` batch dimensions are one value.

    >>> import chainrule
    >>> from chainrule.distributions.transforms import ExpTransform, IndependentTransform
    >>> f = IndependentTransform(ExpTransform(), 1)
    >>> x = chainrule.ones(2, 3)
    >>> f.log_abs_det_jacobian(x, f(x))
    tensor([3., 3.])
    """

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ):
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache() if cache_size else base_transform
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.bijective = base_transform.bijective
        self.domain, self.codomain = (
            constraints.independent(c, reinterpreted_batch_ndims)
            for c in (base_transform.domain, base_transform.codomain)
        )

    @property
    def sign(self) -> Tensor | int:
        return self.base_transform.sign

    def _call(self, x: Tensor) -> Tensor:
        return self.base_transform(_of_dims(x, self.domain.event_dim))

    def _inverse(self, y: Tensor) -> Tensor:
        return self.base_transform.inv(_of_dims(y, self.codomain.event_dim))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        change = self.base_transform.log_abs_det_jacobian(x, y)
        return sum_rightmost(change, self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Shape) -> Size:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Shape) -> Size:
        return self.base_transform.inverse_shape(shape)

    def _settings(self) -> tuple[Any, ...]:
        return self.base_transform, self.reinterpreted_batch_ndims


def _of_dims(x: Tensor, dims: int) -> Tensor:
    if x.ndim < dims:
        raise ValueError(
            f"IndependentTransform: a value has {dims} dimensions, got shape {tuple(x.shape)}"
        )
    return x


class ReshapeTransform(Transform):
    """The last dimensions, of ``in_shape``, in ``out_shape``; no volume changes.

    >>> import chainrule
    >>> from chainrule.distributions.transforms import ReshapeTransform
    >>> ReshapeTransform((2, 3), (6,))(chainrule.zeros(5, 2, 3)).shape
    chainrule.Size([5, 6])
    """

    bijective = True

    def __init__(self, in_shape: Shape, out_shape: Shape, cache_size: int = 0):
        super().__init__(cache_size)
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError(
                f"ReshapeTransform: in_shape {tuple(in_shape)} and out_shape {tuple(out_shape)} "
                "have different numbers of elements"
            )
        self.domain, self.codomain = (
            constraints.independent(constraints.real, len(s)) for s in (in_shape, out_shape)
        )

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return zeros(x.shape[: x.ndim - len(self.in_shape)], dtype=x.dtype, device=x.device)

    def forward_shape(self, shape: Shape) -> Size:
        return self._exchanged(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Shape) -> Size:
        return self._exchanged(shape, self.out_shape, self.in_shape)

    def _exchanged(self, shape: Shape, old: Size, new: Size) -> Size:
        cut = len(shape) - len(old)
        if cut < 0 or tuple(shape[cut:]) != old:
            raise ValueError(
                f"ReshapeTransform: expected a shape that ends with {tuple(old)}, got "
                f"{tuple(shape)}"
            )
        return Size((*shape[:cut], *new))

    def _settings(self) -> tuple[Any, ...]:
        return self.in_shape, self.out_shape


def broadcast_with(shape: Shape, *settings: object) -> Size:
    """A shape broadcast with those of the settings that are tensors."""
    tensors = [s.shape for s in settings if isinstance(s, Tensor)]
    return Size(broadcast_shapes(shape, *tensors))
