"""How the loop treats penalties: what they are called with, and what belongs to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from chainrule import nn, optim
from chainrule.autograd.modes import no_grad
from chainrule.ops.shape.stacking import cat
from chainrule.optim.minimizer import Minimizer
from chainrule.tensor import Tensor
from chainrule.train.batches import Batch

__all__ = [
    "after_backward",
    "changes_gradient",
    "check_penalties",
    "check_stackable",
    "learned",
    "named_penalties",
    "penalty_values",
]


Penalty = Callable[..., Tensor]  # of a model, or of a model and its inputs
PenaltiesLike = Penalty | Iterable[Penalty] | Mapping[str, Penalty]


def named_penalties(given: PenaltiesLike) -> dict[str, Penalty]:
    """Penalties by name."""
    if isinstance(given, Mapping):
        return dict(given)
    named: dict[str, Penalty] = {}
    for one in [given] if callable(given) else given:
        name: str = getattr(one, "name", "") or getattr(one, "__name__", type(one).__name__.lower())
        while name in named:
            name += "'"
        named[name] = one
    return named


def changes_gradient(penalty: object) -> bool:
    """Whether it is no part of the loss, and changes the gradient after the backward pass."""
    return hasattr(penalty, "after_backward")


def learned(penalties: Mapping[str, Any]) -> dict[str, nn.Module]:
    """The penalties that have parameters of their own."""
    return {name: p for name, p in penalties.items() if isinstance(p, nn.Module)}


def penalty_values(
    penalties: Mapping[str, Any], model: nn.Module, batch: Batch
) -> dict[str, Tensor]:
    """What each penalty is for a batch."""
    found = {}
    for name, penalty in penalties.items():
        inputs = batch.inputs if _needs_inputs(penalty) else ()
        if changes_gradient(penalty):
            with no_grad():
                found[name] = penalty(model, *inputs)
        else:
            found[name] = penalty(model, *inputs)
    return found


def after_backward(penalties: Mapping[str, Any], model: nn.Module, group: list[Batch]) -> None:
    """Lets the penalties that do so change the gradient of a group of batches."""
    for penalty in penalties.values():
        if changes_gradient(penalty):
            penalty.after_backward(model, *(_joined(group) if _needs_inputs(penalty) else ()))


def check_penalties(penalties: Mapping[str, Any], optimizer: optim.Optimizer) -> None:
    """Raises ValueError for penalties that this optimizer would leave without effect."""
    known = {id(p) for group in optimizer.param_groups for p in group["params"]}
    for name, module in learned(penalties).items():
        if any(p.requires_grad and id(p) not in known for p in module.parameters()):
            raise ValueError(
                f"Trainer: the penalty {name!r} has parameters that the optimizer does not have; "
                "give them to it with those of the model, or freeze them with "
                "penalty.requires_grad_(False)"
            )
    for name, penalty in penalties.items():
        if changes_gradient(penalty) and isinstance(optimizer, (Minimizer, optim.LBFGS)):
            raise ValueError(
                f"Trainer: the penalty {name!r} changes the gradient and not the loss; "
                f"{type(optimizer).__name__} needs a gradient that is that of its loss"
            )


def check_stackable(penalties: Mapping[str, Any]) -> None:
    """Raises ValueError for penalties that are not a function of one model's parameters alone."""
    for name, penalty in penalties.items():
        if changes_gradient(penalty):
            reason = "changes the gradient after the backward pass"
        elif isinstance(penalty, nn.Module):
            reason = "has parameters of its own, which all networks would share"
        elif _needs_inputs(penalty):
            reason = "needs the inputs of the batch"
        else:
            continue
        raise ValueError(
            f"fit_many: the penalty {name!r} {reason}; train these networks one by one with Trainer"
        )


def _needs_inputs(penalty: object) -> bool:
    return bool(getattr(penalty, "needs_inputs", False))


def _joined(group: list[Batch]) -> tuple[Any, ...]:
    """The inputs of several batches as those of one."""
    if len(group) == 1:
        return group[0].inputs
    return tuple(cat(list(parts)) for parts in zip(*[b.inputs for b in group], strict=True))
