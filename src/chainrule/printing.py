"""How tensors are printed: as PyTorch prints them, digit by digit.

All numbers of a tensor share one format (integers, decimals or powers of ten) and one width, which
the numbers that will be shown decide. Large tensors show their edges.
"""

from __future__ import annotations

import contextlib
import math
import textwrap
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypedDict, Unpack

from chainrule.backend import K, dtypes
from chainrule.graph import Box
from chainrule.tensor import Tensor

__all__ = [
    "format_entries",
    "format_tensor",
    "get_printoptions",
    "printoptions",
    "readable",
    "set_printoptions",
    "text_table",
]


@dataclass
class _Options:
    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


class PrintOptions(TypedDict, total=False):
    """The keyword arguments of :func:`set_printoptions`."""

    precision: int | None
    threshold: float | None
    edgeitems: int | None
    linewidth: int | None
    profile: str | None
    sci_mode: bool | None


_PROFILES = {
    "default": _Options(),
    "short": _Options(precision=2, edgeitems=2),
    "full": _Options(threshold=math.inf),
}
_options = _Options()


class _Override(threading.local):
    """What one thread prints with inside :func:`printoptions`."""

    options: _Options | None = None


_override = _Override()


def _current() -> _Options:
    """How this thread prints."""
    return _override.options or _options


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Sets how tensors are printed.

    ``precision`` is the number of digits behind the point, ``threshold`` the number of elements
    above which only ``edgeitems`` at each end of a dimension are shown, ``linewidth`` where lines
    break, ``profile`` one of "default", "short" and "full", and ``sci_mode`` whether powers of ten
    are used (None: where they are needed).

    >>> import chainrule
    >>> chainrule.set_printoptions(precision=2)
    >>> chainrule.tensor([1.12345])
    tensor([1.12])
    >>> chainrule.set_printoptions(profile="default")
    """
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(
                f"set_printoptions: no profile {profile!r}; use one of {list(_PROFILES)}"
            )
        _update(asdict(_PROFILES[profile]))
    given = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    _update({name: value for name, value in given.items() if value is not None})
    _current().sci_mode = sci_mode


def _update(values: dict[str, Any]) -> None:
    current = _current()
    for name, value in values.items():
        setattr(current, name, value)


def get_printoptions() -> dict[str, Any]:
    """How tensors are printed, as keyword arguments of :func:`set_printoptions`."""
    return asdict(_current())


@contextlib.contextmanager
def printoptions(**kwargs: Unpack[PrintOptions]) -> Iterator[None]:
    """Prints differently inside a ``with`` block, in this thread."""
    before = _override.options
    _override.options = replace(_current())
    try:
        set_printoptions(**kwargs)
        yield
    finally:
        _override.options = before


# --- numbers --------------------------------------------------------------------------------------


class _Format:
    """The common format of some numbers: how they are written, and how wide."""

    def __init__(self, values: list[Any], floating: bool):
        self.floating = floating
        self.integral = True
        self.scientific = False
        self.width = 1
        if not floating:
            self.width = max([len(str(v)) for v in values], default=1)
            return
        shown = [v for v in values if v != 0 and math.isfinite(v)]
        if not shown:
            return
        smallest, largest = min(map(abs, shown)), max(map(abs, shown))
        self.integral = all(v == math.ceil(v) for v in shown)
        wide = largest / smallest > 1000.0 or largest > 1.0e8 or smallest < 1.0e-4
        asked = _current().sci_mode
        self.scientific = wide if asked is None else asked
        self.width = max(1, *[len(self._digits(v)) for v in shown])

    def _digits(self, value: float) -> str:
        if self.scientific:
            return f"{value:.{_current().precision}e}"
        if self.integral:
            return f"{value:.0f}" + ("." if math.isfinite(value) else "")
        return f"{value:.{_current().precision}f}"

    def __call__(self, value: Any) -> str:
        return (self._digits(value) if self.floating else str(value)).rjust(self.width)


class _ComplexFormat:
    """Complex numbers: the real parts have one format, the imaginary parts another."""

    def __init__(self, values: list[complex]):
        self.real = _Format([v.real for v in values], True)
        self.imag = _Format([v.imag for v in values], True)
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, value: complex) -> str:
        imag = (self.imag(value.imag) + "j").lstrip()
        return self.real(value.real) + (imag if imag[0] in "+-" else "+" + imag)


# --- nested brackets ------------------------------------------------------------------------------


def _shortens(n: int, summarize: bool) -> bool:
    return summarize and n > 2 * _current().edgeitems


def _shown(array: Any, summarize: bool) -> list[Any]:
    """The numbers that will be printed, in one list."""
    if not summarize:
        return array.reshape(-1).tolist()
    if not _current().edgeitems and array.ndim > 1:
        return []
    if _shortens(array.shape[0], summarize):
        edge = _current().edgeitems
        parts = [*array[:edge], *array[array.shape[0] - edge :]]
    else:
        parts = list(array)
    if array.ndim == 1:
        return [x.item() for x in parts]
    return [number for part in parts for number in _shown(part, summarize)]


def _vector(array: Any, indent: int, summarize: bool, write: Any) -> str:
    edge = _current().edgeitems
    if summarize and not edge:
        words = ["..."]
    elif _shortens(array.shape[0], summarize):
        first, last = array[:edge].tolist(), array[-edge:].tolist()
        words = [*map(write, first), " ...", *map(write, last)]
    else:
        words = [write(v) for v in array.tolist()]
    in_line = max(1, (_current().linewidth - indent) // (write.width + 2))
    lines = [", ".join(words[i : i + in_line]) for i in range(0, len(words), in_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _nested(array: Any, indent: int, summarize: bool, write: Any) -> str:
    if array.ndim == 0:
        return write(array.item())
    if array.ndim == 1:
        return _vector(array, indent, summarize, write)
    n, edge = array.shape[0], _current().edgeitems
    rows: list[int | None] = list(range(n))
    if _shortens(n, summarize):
        rows = [*range(edge), None, *range(n - edge, n)]
    parts = ["..." if i is None else _nested(array[i], indent + 1, summarize, write) for i in rows]
    return "[" + ("," + "\n" * (array.ndim - 1) + " " * (indent + 1)).join(parts) + "]"


def _numbers(array: Any, indent: int) -> str:
    array = K.to_numpy(array)
    summarize = array.size > _current().threshold and array.ndim > 0
    shown = _shown(array, summarize)
    kind = K.kind_of(array.dtype)
    write = _ComplexFormat(shown) if kind == "c" else _Format(shown, kind == "f")
    return _nested(array, indent, summarize, write)


# --- the whole ------------------------------------------------------------------------------------


def format_tensor(t: Tensor) -> str:
    """What ``repr(t)`` returns."""
    if isinstance(t.array, Box):
        return _format_box(t.array)
    name = type(t).__name__
    prefix = "tensor(" if name in ("Tensor", "Parameter") else f"{name}("
    body = _numbers(t._numbers("print"), len(prefix)) if t.numel() else "[]"
    return _with_suffixes(prefix + body, _suffixes(t), len(prefix))


def format_entries(
    indices: dict[str, Tensor], values: Tensor, about: list[str], layout: str
) -> str:
    """What ``repr`` of a sparse tensor returns: its indices by name and its values; ``about`` and
    ``layout`` are said behind them."""
    prefix = "tensor("
    parts = []
    for name, part in (indices | {"values": values}).items():
        begin = f"{name}=tensor("
        if isinstance(part.array, Box):
            parts.append(f"{name}={_format_box(part.array)}")
        elif part.numel():
            parts.append(begin + _numbers(part._numbers("print"), len(prefix + begin)) + ")")
        else:
            parts.append(f"{begin}[], size={tuple(part.shape)})")
    text = prefix + (",\n" + " " * len(prefix)).join(parts)
    about = [*about, *_said_of_type(values), layout, *_said_of_history(values)]
    return _with_suffixes(text, about, len(prefix), new_line="indices" in indices)


def _suffixes(t: Tensor) -> list[str]:
    """What is said behind the numbers: what the numbers alone do not show."""
    found = [] if t.device.type == "cpu" else [f"device='{t.device}'"]
    if t.numel() == 0:
        if t.ndim != 1:
            found.append(f"size={tuple(t.shape)}")
        if t.dtype is not dtypes.get_default_dtype():
            found.append(f"dtype={t.dtype}")
    else:
        if not _current().edgeitems:
            found.append(f"size={tuple(t.shape)}")
        found += _said_of_type(t)
    return found + _said_of_history(t)


def _said_of_type(t: Tensor) -> list[str]:
    """The type, where the numbers do not show it."""
    default = dtypes.get_default_dtype()
    wide = dtypes.complex128 if default is dtypes.float64 else dtypes.complex64
    shown = t.dtype in (default, wide, dtypes.int64, dtypes.bool_)
    return [] if shown else [f"dtype={t.dtype}"]


def _said_of_history(t: Tensor) -> list[str]:
    made_by = _history(t)
    if made_by is not None:
        return [f"grad_fn=<{made_by}>"]
    return ["requires_grad=True"] if t.requires_grad else []


def _history(t: Tensor) -> str | None:
    try:
        return None if t.grad_fn is None else t.grad_fn.name()
    except RuntimeError:
        return "Invalid"


def _with_suffixes(text: str, suffixes: list[str], indent: int, new_line: bool = False) -> str:
    """The suffixes behind the text, on a new line where the old one is full, or the first one on
    one in any case."""
    column = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if new_line or column + len(suffix) + 2 > _current().linewidth:
            new_line = False
            text += ",\n" + " " * indent + suffix
            column = indent + len(suffix)
        else:
            text += ", " + suffix
            column += len(suffix) + 2
    return text + ")"


def _format_box(box: Any) -> str:
    """A tensor inside a transformation: what it is made of."""
    if hasattr(box, "primal"):
        name, parts = "DualTensor", {"primal": box.primal, "tangent": box.tangent}
    else:
        name, parts = "BatchedTensor", {"value": box.value}
    bdim = ", bdim=0" if getattr(box, "mapped", False) else ""
    inner = ",\n".join(f"{key}=\n{textwrap.indent(repr(v), '    ')}" for key, v in parts.items())
    return f"{name}(lvl={box.level}{bdim}, {inner}\n)"


def readable(value: float) -> str:
    """A number for people: four digits, those from 10,000 on whole and in groups of thousands.

    >>> [readable(v) for v in (0.012345, 43.8202, 1999, 52806.5, 1e-9)]
    ['0.01235', '43.82', '1999', '52,806', '1e-09']
    """
    return f"{value:,.0f}" if 9999.5 <= abs(value) < 1e15 else f"{value:.4g}"


def text_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    left: int | None = None,
    rule: bool = False,
) -> str:
    """A table as text, as wide as its cells.

    The first ``left`` columns begin at the left and the others end at the right; all begin at the
    left without it. ``rule`` draws a line below the header.

    >>> print(text_table(["layer", "size"], [["input", "4"], ["hidden", "16"]], left=1, rule=True))
    layer   size
    ------  ----
    input      4
    hidden    16
    """
    left = len(header) if left is None else left
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [header, *rows]
    ]
    if rule:
        lines.insert(1, "  ".join("-" * width for width in widths).rstrip())
    return "\n".join(lines)
