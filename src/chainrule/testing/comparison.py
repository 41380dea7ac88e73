"""``assert_close``: two values are nearly the same, or an error says where they differ.

What is compared stands on the left, what it should be on the right. Numbers a and e are close if
``abs(a - e) <= atol + rtol * abs(e)``. Containers are compared part by part.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from chainrule.backend import K, dtypes
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.elementwise.complex_numbers import abs as absolute
from chainrule.ops.elementwise.derived import isclose
from chainrule.ops.elementwise.logic import where
from chainrule.ops.reduce.order import argmax
from chainrule.tensor import Tensor

__all__ = ["assert_allclose", "assert_close"]

# For each type (rtol, atol); what is not here has to be equal.
TOLERANCES = {
    "bfloat16": (1.6e-2, 1e-5),
    "float16": (1e-3, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}
NUMBERS = (int, float, complex)


def assert_close(
    actual: object,
    expected: object,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raises AssertionError unless ``actual`` and ``expected`` are close.

    Both are tensors, arrays, numbers, True, False or None, or the same sequences or mappings of
    them.

    Args:
        allow_subclasses: whether tensors may be of different classes.
        rtol: the relative tolerance; with ``atol``, or by the less precise of both types.
        atol: the absolute tolerance; with ``rtol``.
        equal_nan: whether NaN equals NaN.
        check_device: whether tensors must be in the same place: they are on the CPU.
        check_dtype: whether types must be the same; else both are converted to one.
        check_layout: whether tensors must be arranged alike: there is one arrangement.
        check_stride: whether tensors must have the same steps in memory.
        msg: the message of the error, or a function of the message.

    >>> import chainrule as torch
    >>> torch.testing.assert_close(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.5]))
    Traceback (most recent call last):
    AssertionError: Tensor-likes are not close!
    <BLANKLINE>
    Mismatched elements: 1 / 2 (50.0%)
    Greatest absolute difference: 0.5 at index (1,) (up to 1e-05 allowed)
    Greatest relative difference: 0.20000000298023224 at index (1,) (up to 1.3e-06 allowed)
    """
    if (rtol is None) != (atol is None):
        missing = "rtol" if rtol is None else "atol"
        raise ValueError(
            "assert_close: Both 'rtol' and 'atol' must be either specified or omitted, but got no "
            f"{missing}"
        )
    tolerances = None if rtol is None or atol is None else (float(rtol), float(atol))
    comparison = _Comparison(tolerances, equal_nan, check_dtype, check_stride, allow_subclasses)
    found = comparison.difference(actual, expected, "")
    if found is not None:
        raise AssertionError(msg(found) if callable(msg) else found if msg is None else msg)


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """The older :func:`assert_close`: what can be made a tensor, of any type; NaN equals NaN."""
    assert_close(
        as_tensor(actual),
        as_tensor(expected),
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_dtype=False,
        msg=msg or None,
    )


@dataclasses.dataclass(frozen=True)
class _Comparison:
    """What counts as the same."""

    tolerances: tuple[float, float] | None
    equal_nan: bool
    check_dtype: bool
    check_stride: bool
    allow_subclasses: bool

    def difference(self, actual: Any, expected: Any, place: str) -> str | None:
        """What is different, and in which item, in words; None if nothing is."""
        parts: Iterable[Any] = ()
        if _both(Sequence, actual, expected) and not _both(str, actual, expected):
            found = self._of_lengths(actual, expected)
            parts = range(0 if found else len(actual))
        elif _both(Mapping, actual, expected):
            found = self._of_keys(actual, expected)
            parts = () if found else expected
        else:
            found = self._of_values(actual, expected)
        if found is not None:
            return f"{found}\n\nThe failure occurred for item {place}" if place else found
        for key in parts:
            inner = self.difference(actual[key], expected[key], f"{place}[{key!r}]")
            if inner is not None:
                return inner
        return None

    @staticmethod
    def _of_lengths(actual: Sequence[Any], expected: Sequence[Any]) -> str | None:
        if len(actual) == len(expected):
            return None
        return f"The length of the sequences mismatch: {len(actual)} != {len(expected)}"

    @staticmethod
    def _of_keys(actual: Mapping[Any, Any], expected: Mapping[Any, Any]) -> str | None:
        missing = [key for key in expected if key not in actual]
        extra = [key for key in actual if key not in expected]
        if not missing and not extra:
            return None
        return (
            "The keys of the mappings do not match:\n"
            f"Missing keys in the actual mapping: {sorted(missing, key=repr)}\n"
            f"Additional keys in the actual mapping: {sorted(extra, key=repr)}"
        )

    def _of_values(self, actual: Any, expected: Any) -> str | None:
        if actual is None or expected is None:
            return None if actual is expected else f"None mismatch: {actual} is not {expected}"
        if _both(bool, actual, expected):
            return None if actual is expected else f"Booleans mismatch: {actual} is not {expected}"
        if _both(NUMBERS, actual, expected):
            return self._of_numbers(actual, expected)
        if self._are_tensors(actual, expected):
            return self._of_tensors(as_tensor(actual).detach(), as_tensor(expected).detach())
        raise TypeError(
            "assert_close: No comparison pair was able to handle inputs of type "
            f"{type(actual)} and {type(expected)}; tensors, arrays, numbers, None and sequences "
            "and mappings of them can be compared, of the same kind on both sides"
        )

    def _are_tensors(self, actual: Any, expected: Any) -> bool:
        if not self.allow_subclasses and type(actual) is not type(expected):
            return False
        return _both(Tensor, actual, expected) or _both(K.ArrayLike, actual, expected)

    def _of_numbers(self, actual: Any, expected: Any) -> str | None:
        if self.check_dtype and type(actual) is not type(expected):
            return f"The (d)types do not match: {type(actual)} != {type(expected)}."
        kinds = {complex: dtypes.complex128, float: dtypes.float64}
        a, e = (as_tensor(x, dtype=kinds.get(type(x), dtypes.int64)) for x in (actual, expected))
        return self._of_elements(a, e, dtypes.float64)

    def _of_tensors(self, actual: Tensor, expected: Tensor) -> str | None:
        for name, a, e, checked in (
            ("shape", actual.shape, expected.shape, True),
            ("stride()", actual.stride(), expected.stride(), self.check_stride),
            ("dtype", actual.dtype, expected.dtype, self.check_dtype),
        ):
            if checked and a != e:
                return f"The values for attribute {name!r} do not match: {a} != {e}."
        return self._of_elements(actual, expected)

    def _allowed(self, *kinds: str) -> tuple[float, float]:
        if self.tolerances is not None:
            return self.tolerances
        known = [TOLERANCES.get(kind, (0.0, 0.0)) for kind in kinds]
        return max(r for r, _ in known), max(a for _, a in known)

    def _of_elements(
        self, a: Tensor, e: Tensor, ratio: dtypes.dtype = dtypes.float32
    ) -> str | None:
        """What is different; ratios of whole numbers are written in the type ``ratio``."""
        rtol, atol = self._allowed(a.dtype.name, e.dtype.name)
        common = dtypes.promote_types(a.dtype, e.dtype)
        if common.category < dtypes.FLOATING:
            common = dtypes.int64
        a, e = a.to(common), e.to(common)
        same = isclose(a, e, rtol=rtol, atol=atol, equal_nan=self.equal_nan)
        if bool(same.all()):
            return None
        absolutes = absolute(a - e)
        whole = common.category < dtypes.FLOATING
        relatives = (absolutes.to(ratio) if whole else absolutes) / absolute(e)
        return _in_words(a, e, same, absolutes, relatives, rtol, atol)


def _both(kind: Any, a: object, e: object) -> bool:
    return isinstance(a, kind) and isinstance(e, kind)


def _in_words(
    a: Tensor,
    e: Tensor,
    same: Tensor,
    absolutes: Tensor,
    relatives: Tensor,
    rtol: float,
    atol: float,
) -> str:
    exact = rtol == atol == 0
    missed = "equal" if exact else "close"
    up_to = "" if exact else f" (up to {atol} allowed)", "" if exact else f" (up to {rtol} allowed)"
    if a.ndim == 0:
        return (
            f"Scalars are not {missed}!\n\nExpected {e.item()} but got {a.item()}.\n"
            f"Absolute difference: {absolutes.item()}{up_to[0]}\n"
            f"Relative difference: {relatives.item()}{up_to[1]}"
        )
    wrong = same.numel() - int(same.sum())
    return (
        f"Tensor-likes are not {missed}!\n\n"
        f"Mismatched elements: {wrong} / {same.numel()} ({wrong / same.numel():.1%})\n"
        f"Greatest absolute difference: {_greatest(absolutes, same)}{up_to[0]}\n"
        f"Greatest relative difference: {_greatest(relatives, same)}{up_to[1]}"
    )


def _greatest(differences: Tensor, same: Tensor) -> str:
    """The largest difference of elements that are not the same, and where it is."""
    place = int(argmax(where(same, 0, differences)))
    subscripts: list[int] = []
    rest = place
    for size in reversed(differences.shape):
        rest, subscript = divmod(rest, size)
        subscripts.insert(0, subscript)
    return f"{differences.reshape(-1)[place].item()} at index {tuple(subscripts)}"
