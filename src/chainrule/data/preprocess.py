"""Preprocessing that is fitted on the training part, can be undone, and is saved with the model."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self

from chainrule.autograd.modes import no_grad
from chainrule.backend import dtypes
from chainrule.nn.module.base import Module
from chainrule.nn.parameter import Buffer, UninitializedBuffer, is_lazy
from chainrule.ops.elementwise.logic import isfinite, isnan
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.core.promotion import cast, to_floating
from chainrule.ops.reduce.reductions import all as all_of
from chainrule.ops.reduce.reductions import any as any_of
from chainrule.ops.shape.views import reshape
from chainrule.ops.index.subscript import numbers_of
from chainrule.tensor import Tensor
from chainrule.typing import ArrayLike

__all__ = [
    "Fittable",
    "Pipeline",
    "Transform",
    "across",
    "check_finite",
    "floating",
    "saved",
    "training_part",
]


class Fittable(Module):
    """What learns from the training part and is then called on any part, or its ``transform``."""

    def fit(self, x: Any) -> Self:
        """Learns what it needs from the training part; returns itself."""
        raise NotImplementedError(f"{type(self).__name__} does not define fit")

    def transform(self, x: Any) -> Any:
        """The same as a call."""
        return self(x)

    def fit_transform(self, x: Any) -> Any:
        """Learns from the training part and transforms it."""
        return self.fit(x)(x)


class Transform(Fittable):
    """The base class of preprocessing: ``fit`` on the training part, then call it on any part.

    ``transform``, ``fit_transform`` and ``inverse_transform`` are what scikit-learn calls them.

    A subclass names its fitted numbers in ``fitted_names``: they are buffers, which have no shape
    before ``fit`` and are saved and loaded with the module. It defines ``fit`` (which ends with
    ``return self.keep(...)``), ``forward`` and ``inverse``.

    Samples stand along the first dimension, columns (or channels) along the second: (N, D) or (N,
    C, H, W). The fitted numbers are float64 and constants; results have the input's type and are
    differentiable by the input. NaN and infinite inputs are errors that name the column.

    >>> import chainrule
    >>> class Shift(Transform):
    ...     fitted_names = ("least",)
    ...     def fit(self, x):
    ...         return self.keep(least=x.amin(0))
    ...     def forward(self, x):
    ...         return x - self.fitted("least", x)
    ...     def inverse(self, x):
    ...         return x + self.fitted("least", x)
    >>> shift = Shift().fit(chainrule.tensor([[1.0], [3.0]]))
    >>> shift(chainrule.tensor([[5.0]])), shift.inverse(chainrule.tensor([[4.0]]))
    (tensor([[4.]]), tensor([[5.]]))
    """

    fitted_names: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__()
        for name in self.fitted_names:
            self.register_buffer(name, UninitializedBuffer(dtype=dtypes.float64))

    def inverse(self, x: Any) -> Any:
        """Undoes the transform."""
        raise NotImplementedError(f"{type(self).__name__} cannot be undone")

    def inverse_transform(self, x: Any) -> Any:
        """The same as ``inverse``."""
        return self.inverse(x)

    @property
    def is_fitted(self) -> bool:
        """Whether ``fit`` has been called, or a fitted state loaded."""
        return not any(is_lazy(b) for b in self.buffers())

    def keep(self, **numbers: ArrayLike) -> Self:
        """Stores fitted numbers, by the names in ``fitted_names``."""
        if set(numbers) != set(self.fitted_names):
            raise ValueError(
                f"{type(self).__name__}.keep: expected {sorted(self.fitted_names)}, got "
                f"{sorted(numbers)}"
            )
        with no_grad():
            for name, value in numbers.items():
                found = as_tensor(value).detach()
                if found.is_floating_point():
                    found = cast(found, dtypes.float64)
                self._buffers[name] = Buffer(found.clone())
        return self

    def need_fit(self) -> None:
        """An error before ``fit``."""
        if not self.is_fitted:
            raise RuntimeError(
                f"{type(self).__name__}: not fitted; call fit(x) with the training part first"
            )

    def fitted(self, name: str, x: Tensor) -> Tensor:
        """A fitted vector over the columns, in the type of ``x`` and a shape that broadcasts."""
        self.need_fit()
        return across(cast(getattr(self, name), x.dtype), x.ndim)

    def shaped(self, x: ArrayLike, name: str) -> Tensor:
        """A floating tensor with as many columns as the fitted vector of that name has numbers."""
        self.need_fit()
        return floating(self, x, int(getattr(self, name).shape[0]))

    def checked(self, x: ArrayLike, name: str) -> Tensor:
        """As :meth:`shaped`, and finite."""
        return check_finite(self, self.shaped(x, name))


def across(vector: Tensor, ndim: int) -> Tensor:
    """A vector over columns or channels in a shape that broadcasts with ``ndim`` dimensions."""
    return reshape(vector, (1, -1, *[1] * (ndim - 2)))


def floating(transform: Module, x: ArrayLike, size: int | None = None) -> Tensor:
    """The input as a floating tensor (N, D) or (N, C, ...) with ``size`` columns or channels."""
    op = type(transform).__name__
    real: Tensor = to_floating(as_tensor(x))
    shape = tuple(real.shape)
    if not real.is_floating_point():
        raise TypeError(f"{op}: expected real numbers, got {real.dtype}")
    if real.ndim < 2:
        raise ValueError(
            f"{op}: expected samples in rows, (N, D) or (N, C, H, W), got shape {shape}; reshape "
            "one column to (N, 1), or one sample to (1, D)"
        )
    if size is not None and shape[1] != size:
        raise ValueError(
            f"{op}: fitted on {size} {_columns(real)}s, got {shape[1]} (shape {shape})"
        )
    return real


def _columns(x: Tensor) -> str:
    return "column" if x.ndim == 2 else "channel"


def check_finite(transform: Module, x: Tensor) -> Tensor:
    """``x``, or an error that names the first column with NaN or inf (not known inside vmap)."""
    good = all_of(isfinite(x.detach()))
    if numbers_of(good) is None or bool(good):
        return x
    others = (0, *range(2, x.ndim))
    columns = all_of(isfinite(x.detach()), others).tolist()
    bad = [i for i, fine in enumerate(columns) if not fine]
    has_nan = bool(any_of(isnan(x.detach()[:, bad[0]])))
    what = "missing values (NaN); fill them with Imputer" if has_nan else "infinite values"
    more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
    raise ValueError(
        f"{type(transform).__name__}: {_columns(x)} {bad[0]}{more}, counted from 0, has {what}"
        f"{' first' if has_nan else '; replace them first'}"
    )


def training_part(transform: Module, x: ArrayLike, least: int = 1) -> Tensor:
    """The training part in float64, without a graph; an error if it is too small or not finite."""
    with no_grad():
        part = check_finite(transform, floating(transform, x)).detach()
        exact: Tensor = cast(part, dtypes.float64)
    if exact.shape[0] < least or math.prod(exact.shape) == 0:
        raise ValueError(
            f"{type(transform).__name__}.fit: needs at least {least} sample{'s' * (least > 1)} and "
            f"one column, got shape {tuple(exact.shape)}"
        )
    return exact


class Pipeline(Transform):
    """Transforms one after another; ``inverse`` undoes them in the reverse order.

    ``fit`` fits each on what the ones before it make of the training part.

    >>> import chainrule
    >>> from chainrule.data import PCA, StandardScaler
    >>> x = chainrule.tensor([[1.0, 10.0], [2.0, 30.0], [3.0, 20.0]])
    >>> pipeline = Pipeline(StandardScaler(), PCA()).fit(x)
    >>> chainrule.allclose(pipeline.inverse(pipeline(x)), x)
    True
    """

    def __init__(self, *transforms: Transform):
        super().__init__()
        if not transforms:
            raise ValueError("Pipeline: expected at least one transform")
        for i, transform in enumerate(transforms):
            if not isinstance(transform, Transform):
                raise TypeError(
                    f"Pipeline: expected transforms, got {type(transform).__name__} at place {i}"
                )
            self.add_module(str(i), transform)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Transform]:
        return iter(self._modules.values())  # type: ignore[arg-type]

    def __getitem__(self, index: int) -> Transform:
        return list(self)[index]

    @property
    def is_fitted(self) -> bool:
        """Whether all transforms are fitted."""
        return all(t.is_fitted for t in self)

    def fit(self, x: Any) -> Self:
        """Fits each transform on what the ones before it make of the training part."""
        steps = list(self)
        for transform in steps[:-1]:
            x = transform.fit_transform(x)
        steps[-1].fit(x)
        return self

    def forward(self, x: Any) -> Any:
        """The results of all transforms, one after another."""
        for transform in self:
            x = transform(x)
        return x

    def inverse(self, x: Any) -> Any:
        """Undoes the transforms, the last one first."""
        for transform in reversed(list(self)):
            x = transform.inverse(x)
        return x


# --- what was saved, checked by its kind before it is believed -----------------------------------


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= sys.float_info.max  # which NaN is not


def _are(kind: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all([kind(v) for v in value])


KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "text": ("text", lambda v: isinstance(v, str)),
    "texts": ("a list of texts", _are(lambda v: isinstance(v, str))),
    "truth": ("true or false", lambda v: isinstance(v, bool)),
    "number": ("a finite number", _is_number),
    "numbers": ("a list of finite numbers", _are(_is_number)),
    "count": ("a whole number, not negative", lambda v: type(v) is int and v >= 0),
    "sizes": ("a list of positive whole numbers", _are(lambda v: type(v) is int and v > 0)),
    "list": ("a list", lambda v: isinstance(v, list)),
    "dict": ("a dictionary", lambda v: isinstance(v, dict)),
    "dicts": ("a list of dictionaries", _are(lambda v: isinstance(v, dict))),
}


def saved(op: str, state: Any, **kinds: str) -> list[Any]:
    """The values that a saved state has under some names, each of the kind that is named.

    >>> saved("Example", {"mean": 0.5, "names": ["a"]}, mean="number", names="texts")
    [0.5, ['a']]
    """
    if not isinstance(state, dict):
        raise ValueError(f"{op}: expected a saved state with names, got {state!r:.60}")
    for name, kind in kinds.items():
        expected, holds = KINDS[kind]
        if name not in state:
            raise ValueError(f"{op}: the saved state lacks {name!r}, {expected}")
        if not holds(state[name]):
            raise ValueError(f"{op}: saved {name!r} should be {expected}, got {state[name]!r:.60}")
    return [state[name] for name in kinds]
