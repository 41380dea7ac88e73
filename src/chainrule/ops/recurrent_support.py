"""What the recurrent primitives share: steps of time, held states, the rule of vmap, checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from chainrule.ops.batching import spread
from chainrule.ops.elementwise import where
from chainrule.ops.matmul import as_rows, matmul
from chainrule.ops.primitive import Op, Primitive
from chainrule.ops.promotion import cast
from chainrule.ops.shape import cat, flatten, movedim, reshape, stack, unsqueeze
from chainrule.tensor import Tensor

__all__ = [
    "at", "batch_rule", "before", "check_gates", "check_weight", "held", "operands", "steps",
    "sum_of", "time_order", "weight_gradient",
]  # fmt: skip

# --- time -----------------------------------------------------------------------------------------

# The slices along time. A primitive, since its transpose is one stack: a sum of as many sequences
# as there are steps would make a backward pass quadratic in the number of steps.
_steps = Primitive(
    "time_steps",
    lambda g, out, x, needs, dim: (stack(g, dim),),
    lambda tangents, out, x, dim: _steps(tangents[0], dim=dim),
    batch="carry",
)


def steps(x: Any, dim: int = -3) -> tuple[Any, ...]:
    """The slices along time, a dimension named from the end."""
    return _steps(x, dim=dim)


def time_order(length: int, reverse: bool) -> range:
    """The steps in the order in which they are computed."""
    return range(length - 1, -1, -1) if reverse else range(length)


def at(sequence: Sequence[Any] | None, t: int) -> Any:
    """The element of step t of a sequence that may not be given."""
    return None if sequence is None else sequence[t]


def before(states: Any, first: Any, reverse: bool) -> Any:
    """The state that each step started from."""
    first = unsqueeze(first, 0)
    return cat([states[1:], first]) if reverse else cat([first, states[:-1]])


def held(real: Any, new: Any, old: Any) -> Any:
    """The new value, or the old one where a sequence has ended."""
    return new if real is None else where(real, new, old)


def weight_gradient(g: Any, factor: Any) -> Any:
    """The gradient of w in ``factor @ w.mT``, summed over the steps and the batch."""
    return matmul(as_rows(g).mT, as_rows(factor))


def sum_of(*parts: Any) -> Any:
    """The sum of the parts that are not None; None if there are none."""
    given = [p for p in parts if p is not None]
    total = given[0] if given else None
    for part in given[1:]:
        total = total + part
    return total


# --- vmap -----------------------------------------------------------------------------------------


def batch_rule(states: int, by_steps: Callable[..., Any]) -> Any:
    """vmap: the batch joins the dimension N; with weights of their own, step by step."""

    def rule(
        op: Op, size: int, values: Sequence[Any], mapped: Sequence[bool], params: dict[str, Any]
    ) -> Any:
        masked = not values[-1].dtype.is_floating_point
        weights = range(1 + states, len(values) - masked)
        spread_out = [v if m else spread(v, size) for v, m in zip(values, mapped, strict=True)]
        if any(mapped[i] for i in weights):
            return by_steps(*spread_out, **params)
        folded = [
            values[i] if i in weights else _join_batch(v, 1 <= i <= states)
            for i, v in enumerate(spread_out)
        ]
        out = op(*folded, **params)
        if isinstance(out, tuple):
            return tuple(_part_batch(o, size) for o in out)
        return _part_batch(out, size)

    return rule


def _join_batch(x: Any, is_state: bool) -> Any:
    return flatten(x, 0, 1) if is_state else flatten(movedim(x, 0, 1), 1, 2)


def _part_batch(x: Any, size: int) -> Any:
    return movedim(reshape(x, (x.shape[0], size, x.shape[1] // size, x.shape[2])), 1, 0)


# --- checks ---------------------------------------------------------------------------------------


def operands(
    op: str, input: Any, states: list[Any], weights: list[Any], mask: Any
) -> tuple[Any, ...]:
    """All inputs of the primitive, after checks of what they have in common."""
    for t in (input, *states, *weights):
        if not isinstance(t, Tensor):
            raise TypeError(f"{op}: all arguments must be Tensors, got {type(t).__name__}")
        if t.dtype != input.dtype or not input.dtype.is_floating_point:
            raise RuntimeError(
                f"{op}: all tensors must have one floating dtype, got {input.dtype} and {t.dtype}; "
                "convert with .to(...)"
            )
    if input.ndim != 3 or input.shape[0] == 0:
        raise RuntimeError(
            f"{op}: expected an input of shape (steps, batch, gates) with at least one step, got "
            f"{tuple(input.shape)}"
        )
    for s in states:
        if s.ndim != 2 or s.shape[0] != input.shape[1]:
            raise RuntimeError(
                f"{op}: the state of shape {tuple(s.shape)} must be (batch, size) with the batch "
                f"of the input of shape {tuple(input.shape)}, {input.shape[1]}"
            )
    if mask is None:
        return (input, *states, *weights)
    if tuple(mask.shape) != tuple(input.shape[:2]):
        raise RuntimeError(
            f"{op}: mask of shape {tuple(mask.shape)} must have the steps and the batch of the "
            f"input, {tuple(input.shape[:2])}"
        )
    return (input, *states, *weights, cast(mask, "bool"))


def check_weight(op: str, name: str, weight: Any, shape: tuple[int, ...]) -> None:
    if tuple(weight.shape) != shape:
        raise RuntimeError(
            f"{op}: {name} has shape {tuple(weight.shape)}, but the state needs {shape}"
        )


def check_gates(op: str, input: Any, size: int) -> None:
    if input.shape[-1] != size:
        raise RuntimeError(
            f"{op}: the last dimension of the input of shape {tuple(input.shape)} must be {size}, "
            "all gates of the state; multiply the input with weight_ih first"
        )
