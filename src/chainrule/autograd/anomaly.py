"""Where a NaN came from: checks every value and gradient, and remembers the user's lines."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from chainrule.autograd.modes import _Flags
from chainrule.backend import K
from chainrule.ops.core.apply import trace_with
from chainrule.ops.core.recording import SELECT
from chainrule.ops.core.primitive import Op
from chainrule.graph import Box, Mode, Node, mode
from chainrule.tensor import Tensor
from chainrule.typing import Value

__all__ = ["check_gradients", "detect_anomaly", "record_lines", "set_detect_anomaly", "user_line"]

_PACKAGE = str(Path(__file__).resolve().parent.parent)


def user_line() -> str:
    """The line outside this library that called it, as ``file:number: code``."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    line = traceback.FrameSummary(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
    return f"{line.filename}:{line.lineno}: {line.line}"


class record_lines(_Flags):
    """Remembers, for every operation recorded inside, the user's line that made it."""

    on = Mode.TRACE


class detect_anomaly(_Flags):
    """Raises at the first operation that makes a NaN or an infinity out of finite numbers.

    The error names the operation and the line of the user's program, in the forward pass and in the
    backward pass. Slow: for finding the fault, not for training.

    >>> import chainrule
    >>> x = chainrule.tensor([1.0, 0.0], requires_grad=True)
    >>> with chainrule.autograd.detect_anomaly():
    ...     y = chainrule.log(x)
    Traceback (most recent call last):
        ...
    RuntimeError: log produced 1 non-finite value of 2 ...
    """

    on = Mode.ANOMALY | Mode.TRACE

    def __init__(self, check_nan: bool = True):
        super().__init__()
        if not check_nan:
            self.on = Mode.TRACE


def set_detect_anomaly(mode_: bool, check_nan: bool = True) -> None:
    """Turns :class:`detect_anomaly` on or off for what follows in this thread."""
    flags = detect_anomaly(check_nan).on
    mode.flags = mode.flags | flags if mode_ else mode.flags & ~(Mode.ANOMALY | Mode.TRACE)


def _non_finite(array: Value | Box) -> int:
    """How many elements are NaN or infinite."""
    if isinstance(array, Tensor):
        array = array.array
    if isinstance(array, Box) or K.kind_of(K.asarray(array).dtype) not in "fc":
        return 0
    return int((~K.isfinite(array)).sum())


@trace_with
def _note(op: Op, result: Tensor | tuple[Tensor, ...], inputs: tuple[Tensor, ...]) -> None:
    outputs = result if isinstance(result, tuple) else (result,)
    line = user_line()
    for out in outputs:
        if out._node is not None:
            node = out._node.edges[0] if out._node.op is SELECT else out._node
            node.extras().trace = line
    if not mode.flags & Mode.ANOMALY or any(_non_finite(t) for t in inputs):
        return
    for out in outputs:
        bad = _non_finite(out)
        if bad:
            values = "value" if bad == 1 else "values"
            raise RuntimeError(
                f"{op.name} produced {bad} non-finite {values} of {out.array.size} (NaN or Inf) "
                f"from finite inputs of shapes {[tuple(t.shape) for t in inputs]}, in the line\n"
                f"  {line}"
            )


def check_gradients(node: Node, g: object, parts: Sequence[Value | None]) -> None:
    """Raises if a backward rule returned NaN or Inf."""
    for i, part in enumerate(parts):
        if part is not None and _non_finite(part):
            line = "" if node.trace is None else f", which was made in the line\n  {node.trace}"
            raise RuntimeError(
                f"backward: function {node.name()!r} returned nan or inf values in the gradient of "
                f"its input {i}{line}"
            )
