"""What the recurrent primitives share: time, products, slopes, the rule of vmap, checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, overload

from chainrule.backend import K
from chainrule.ops.core.batching import Rule, spread
from chainrule.ops.elementwise.functions import relu, sigmoid, tanh, zeros_like_of
from chainrule.ops.elementwise.logic import where
from chainrule.ops.linalg.matmul import as_rows, matmul
from chainrule.ops.core.primitive import Op, Primitive, broadcast_to
from chainrule.ops.core.promotion import cast
from chainrule.ops.shape.views import flatten, movedim, reshape, unsqueeze
from chainrule.ops.shape.stacking import cat, stack
from chainrule.tensor import Tensor
from chainrule.typing import V, Value

__all__ = [
    "ACTIVATIONS",
    "DENSE",
    "Product",
    "at",
    "batch_rule",
    "before",
    "check_gates",
    "check_nonlinearity",
    "check_weight",
    "held",
    "operands",
    "or_zeros",
    "real_steps",
    "slope_of",
    "state_weight_gradient",
    "steps",
    "sum_of",
    "time_order",
    "weight_gradient",
]

# --- time -----------------------------------------------------------------------------------------

# The slices along time. A primitive, since its transpose is one stack: a sum of as many sequences
# as there are steps would make a backward pass quadratic in the number of steps.
_steps = Primitive(
    "time_steps",
    lambda g, out, x, needs, dim: (stack(g, dim),),
    lambda tangents, out, x, dim: _steps(tangents[0], dim=dim),
    batch="carry",
)


def steps(x: V, dim: int | None = None) -> tuple[V, ...]:
    """The slices along time, a dimension named from the end; the first if none is named."""
    return _steps(x, dim=-x.ndim if dim is None else dim)


def real_steps(mask: V | None, ndim: int) -> tuple[V, ...] | None:
    """The steps of a mask (L, N) for sequences of so many dimensions; None if there is none."""
    if mask is None:
        return None
    return steps(reshape(mask, tuple(mask.shape) + (1,) * (ndim - 2)))


def time_order(length: int, reverse: bool) -> range:
    """The steps in the order in which they are computed."""
    return range(length - 1, -1, -1) if reverse else range(length)


def at(sequence: Sequence[V] | None, t: int) -> V | None:
    """The element of step t of a sequence that may not be given."""
    return None if sequence is None else sequence[t]


def before(states: V, first: V, reverse: bool) -> V:
    """The state that each step started from."""
    first = unsqueeze(first, 0)
    return cat([states[1:], first]) if reverse else cat([first, states[:-1]])


def held(real: Value | None, new: V, old: V | float) -> V:
    """The new value, or the old one where a sequence has ended."""
    return new if real is None else where(real, new, old)


def or_zeros(g: V | None, out: V) -> V:
    """The gradient of an output; where it was not used, zeros of one row that stands for all."""
    if g is not None:
        return g
    return broadcast_to(zeros_like_of(out[:1, :1]), shape=tuple(out.shape))


@overload
def sum_of(first: V, /, *parts: V | None) -> V: ...
@overload
def sum_of(*parts: V | None) -> V | None: ...
def sum_of(*parts: Any) -> Any:
    """The sum of the parts that are not None; None if there are none."""
    given = [p for p in parts if p is not None]
    total = given[0] if given else None
    for part in given[1:]:
        total = total + part
    return total


# The activations that the primitives know by name.
ACTIVATIONS: dict[str, Callable[[Any], Any]] = {"relu": relu, "sigmoid": sigmoid, "tanh": tanh}


def slope_of(out: V, nonlinearity: str) -> V:
    """The slope of tanh, relu or sigmoid where its value is ``out``."""
    if nonlinearity == "relu":
        return cast(out > 0, out.dtype)
    return 1 - out * out if nonlinearity == "tanh" else out * (1 - out)


# --- the product of a state with its weights ------------------------------------------------------


class Product(NamedTuple):
    """A bilinear map of states h and weights w, for one step or for all at once."""

    of: Callable[[Any, Any], Any]  # (h, w)
    by_state: Callable[[Any, Any], Any]  # (g, w): the gradient of the state
    # (g, states, first, reverse, w): that of w, summed over the steps
    by_weight: Callable[[Any, Any, Any, bool, Any], Any]


def weight_gradient(g: V, factor: V) -> V:
    """The gradient of w in ``factor @ w.mT``, summed over the steps and the batch."""
    return matmul(as_rows(g).mT, as_rows(factor))


def state_weight_gradient(g: V, states: V, first: V, reverse: bool, w: V | None = None) -> V:
    """The gradient of w in ``before(states, first, reverse) @ w.mT``, summed likewise."""
    # For small states a kernel without the copy; for large ones the general product is faster.
    if isinstance(g, Tensor) or states.shape[-1] > 256:
        return weight_gradient(g, before(states, first, reverse))
    return K.state_weight_gradient(g, states, first, reverse=reverse)


DENSE = Product(lambda h, w: matmul(h, w.mT), matmul, state_weight_gradient)


# --- vmap -----------------------------------------------------------------------------------------


def batch_rule(states: int, by_steps: Callable[..., Any]) -> Rule:
    """vmap: the batch joins the dimension N; with weights of their own, step by step."""

    def rule(
        op: Op, size: int, values: Sequence[Tensor], mapped: Sequence[bool], params: dict[str, Any]
    ) -> Tensor | tuple[Tensor, ...]:
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


def _join_batch(x: Tensor, is_state: bool) -> Tensor:
    return flatten(x, 0, 1) if is_state else flatten(movedim(x, 0, 1), 1, 2)


def _part_batch(x: Tensor, size: int) -> Tensor:
    return movedim(reshape(x, (x.shape[0], size, x.shape[1] // size, *x.shape[2:])), 1, 0)


# --- checks ---------------------------------------------------------------------------------------


def operands(
    op: str,
    input: Tensor,
    states: list[Tensor],
    weights: list[Tensor],
    mask: Tensor | None,
    space: int = 0,
) -> tuple[Tensor, ...]:
    """All inputs of the primitive, after checks of what they have in common.

    ``space`` is how many dimensions of space follow the gates.
    """
    for t in (input, *states, *weights):
        if not isinstance(t, Tensor):
            raise TypeError(f"{op}: all arguments must be Tensors, got {type(t).__name__}")
        if t.dtype != input.dtype or not input.dtype.is_floating_point:
            raise RuntimeError(
                f"{op}: all tensors must have one floating dtype, got {input.dtype} and {t.dtype}; "
                "convert with .to(...)"
            )
    if input.ndim != 3 + space or input.shape[0] == 0:
        layout = "(steps, batch, gates, *space)" if space else "(steps, batch, gates)"
        raise RuntimeError(
            f"{op}: expected an input of shape {layout} of {3 + space} dimensions with at least "
            f"one step, got {tuple(input.shape)}"
        )
    for s in states:
        if (s.shape[:1], s.shape[2:]) != (input.shape[1:2], input.shape[3:]) or s.ndim < 2:
            raise RuntimeError(
                f"{op}: the state of shape {tuple(s.shape)} must be "
                f"{'(batch, channels, *space)' if space else '(batch, size)'} with the batch of "
                f"the input of shape {tuple(input.shape)}, {input.shape[1]}"
                f"{', and its space' if space else ''}"
            )
    if mask is None:
        return (input, *states, *weights)
    if tuple(mask.shape) != tuple(input.shape[:2]):
        raise RuntimeError(
            f"{op}: mask of shape {tuple(mask.shape)} must have the steps and the batch of the "
            f"input, {tuple(input.shape[:2])}"
        )
    return (input, *states, *weights, cast(mask, "bool"))


def check_weight(op: str, name: str, weight: Tensor, shape: tuple[int, ...]) -> None:
    """Refuses a weight of another shape than the state needs."""
    if tuple(weight.shape) != shape:
        raise RuntimeError(
            f"{op}: {name} has shape {tuple(weight.shape)}, but the state needs {shape}"
        )


def check_gates(op: str, input: Tensor, size: int) -> None:
    """Refuses an input that does not hold all gates of the state."""
    if input.shape[2] != size:
        raise RuntimeError(
            f"{op}: the third dimension of the input of shape {tuple(input.shape)} must be {size}, "
            "all gates of the state; multiply the input with weight_ih first"
        )


def check_nonlinearity(op: str, nonlinearity: object) -> None:
    """Refuses a nonlinearity that the primitives do not know by name."""
    if nonlinearity not in ACTIVATIONS:
        raise ValueError(
            f"{op}: nonlinearity must be 'tanh', 'relu', 'sigmoid' or a function, got "
            f"{nonlinearity!r}"
        )
