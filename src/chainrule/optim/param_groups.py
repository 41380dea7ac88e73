"""Groups of parameters: what may be in one, and steps of those whose gradients are sparse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from chainrule.backend import K
from chainrule.graph import Box
from chainrule.ops.core.inplace import touch_all
from chainrule.ops.shape.views import expand
from chainrule.tensor import OtherLayout, Tensor
from chainrule.typing import Rates

if TYPE_CHECKING:
    from chainrule.optim.optimizer import Optimizer

__all__ = [
    "NotFiniteError",
    "check_names",
    "check_order",
    "check_params",
    "check_rates",
    "named_group",
    "step_rows",
]


class NotFiniteError(RuntimeError):
    """A loss or a gradient is NaN or infinite; no parameter was changed."""


def check_order(name: str, params: object) -> None:
    """Refuses a set: a state_dict knows parameters by their number."""
    if isinstance(params, (set, frozenset)):
        raise TypeError(f"{name}: parameters need an order, got a set; use a list instead")


def named_group(name: str, given: object) -> dict[str, Any]:
    """A copy of a group as the user gave it, with a list of parameters, their names apart."""
    if not isinstance(given, dict):
        raise TypeError(
            f"{name}: a parameter group must be a dict with the key 'params', got "
            f"{type(given).__name__}"
        )
    if "params" not in given:
        raise ValueError(f"{name}: a parameter group needs the key 'params', got {given}")
    check_order(name, given["params"])
    params: list[Any] = (
        [given["params"]] if isinstance(given["params"], Tensor) else list(given["params"])
    )
    named = [isinstance(p, tuple) for p in params]
    if not any(named):
        return {**given, "params": params}
    if not all(named):
        raise ValueError(f"{name}: give names to all parameters, or to none")
    return {**given, "params": [p for _, p in params], "param_names": [n for n, _ in params]}


def check_names(name: str, group: dict[str, Any], others: Sequence[dict[str, Any]]) -> None:
    """Refuses a group with names beside groups without, and the other way round."""
    if others and ("param_names" in group) != ("param_names" in others[0]):
        raise ValueError(f"{name}: give names to the parameters of all groups, or of none")


def check_params(
    name: str, params: Sequence[object], known: Sequence[Tensor], differentiable: bool
) -> None:
    """Refuses what cannot be learned, or belongs to a group already."""
    seen = {id(p) for p in known}
    for i, p in enumerate(params):
        checked = _checked(name, i, p, differentiable)
        if id(p) in seen:
            raise ValueError(
                f"{name}: parameter {i} of shape {tuple(checked.shape)} appears more than once; "
                "each parameter belongs to one group, once"
            )
        seen.add(id(p))


def _checked(name: str, i: int, p: object, differentiable: bool) -> Tensor:
    if not isinstance(p, Tensor):
        raise TypeError(
            f"{name}: can only optimize Tensors, got {type(p).__name__} as parameter {i}"
        )
    which = f"parameter {i} of shape {tuple(p.shape)}"
    if not (p.dtype.is_floating_point or p.dtype.is_complex):
        raise ValueError(
            f"{name}: {which} has dtype {p.dtype}; only floating point tensors can be optimized"
        )
    if not (p.is_leaf or differentiable or p.__dict__.get("retains_grad", False)):
        raise ValueError(
            f"{name}: can't optimize a non-leaf Tensor ({which}, made by {p.grad_fn}); pass the "
            "tensors it was computed from, or detach() it"
        )
    if isinstance(p.array, Box):
        return p  # inside a transformation, where nothing is written
    if K.is_shared_inside(p.array):
        raise ValueError(f"{name}: elements of {which} share memory (an expanded view); clone() it")
    K.allow_writing(p.array)
    return p


def check_rates(name: str, lr: Rates, params: Sequence[Tensor]) -> None:
    """lr is a number, a tensor for all parameters of the group, or one of either for each."""
    rates = lr if isinstance(lr, (list, tuple)) else [lr] * len(params)
    if len(rates) != len(params):
        raise ValueError(
            f"{name}: got {len(rates)} learning rates for {len(params)} parameters; give one "
            "number or tensor for each"
        )
    for rate, p in zip(rates, params, strict=True):
        if isinstance(rate, Tensor) and not _fits(rate, p):
            raise ValueError(
                f"{name}: a learning rate of shape {tuple(rate.shape)} does not fit a parameter of "
                f"shape {tuple(p.shape)}"
            )


def _fits(rate: Tensor, p: Tensor) -> bool:
    """Whether a tensor of learning rates can be broadcast to a parameter."""
    try:
        expand(rate, *p.shape)
    except RuntimeError:
        return False
    return True


# --- sparse gradients: only the rows that have one are read and written ---------------------------


def step_rows(optimizer: Optimizer, active: list[list[Tensor]]) -> list[list[Tensor]]:
    """Updates the parameters with sparse gradients; returns the others, group by group."""
    sparse = [[p for p in params if isinstance(p._grad, OtherLayout)] for params in active]
    rest = [[p for p in params if not isinstance(p._grad, OtherLayout)] for params in active]
    pairs = list(zip(optimizer.param_groups, sparse, strict=True))
    for group, params in pairs:
        for p in params:
            _check_rows(optimizer, group, p)
    if optimizer.check_finite:
        optimizer._check_gradients(rest)
    for group, params in pairs:
        for p in params:
            _update_rows(optimizer, group, p)
    return rest


def _check_rows(optimizer: Optimizer, group: dict[str, Any], p: Tensor) -> None:
    """Refuses a sparse gradient that this optimizer has no rule for."""
    name, place, g = type(optimizer).__name__, optimizer._place(group, p), p._grad
    if not optimizer.takes_rows(group) or group.get("differentiable"):
        raise RuntimeError(
            f"{name}.step: the gradient of {place} is sparse, and a step with these settings "
            "changes rows without a gradient, too; use SGD without momentum and weight decay, "
            "Adagrad without weight decay or SparseAdam, or make it with sparse=False"
        )
    if g.sparse_dim() != 1 or p.dtype.is_complex:
        raise RuntimeError(
            f"{name}.step: the sparse gradient of {place} must have real rows as entries, got "
            f"{g.sparse_dim()} sparse dimensions and {g.dtype}; use p.grad = p.grad.to_dense()"
        )
    if not isinstance(group["lr"], (int, float)):
        raise RuntimeError(
            f"{name}.step: with sparse gradients the learning rate must be a number, got "
            f"{type(group['lr']).__name__}"
        )
    if optimizer.check_finite and not K.all_finite([g.entries.array]):
        raise NotFiniteError(
            f"{name}.step: the sparse gradient of {place} has NaN or infinite values; no parameter "
            "was changed"
        )


def _update_rows(optimizer: Optimizer, group: dict[str, Any], p: Tensor) -> None:
    """Applies the rule of an optimizer to the rows of a parameter that have a gradient."""
    names, lr = optimizer.states(group), float(group["lr"])
    fresh = optimizer._make_state(group, p, names)
    (step,) = optimizer._count([optimizer.state[p]], [fresh])
    constants = optimizer.constants(group, step)
    g: Any = p._grad.distinct()
    rows = g.structure.indices[0]
    held = [p, *[optimizer.state[p][name] for name in names]]
    values = [K.take_rows(t.array, rows) for t in held]
    new: Any = optimizer.rule(values[0], g.entries.array, lr, *values[1:], **constants)
    for t, value in zip(held, new, strict=True):
        t.array = K.write_index(t.array, rows, value)
    touch_all(held)
