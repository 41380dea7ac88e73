"""What a network is called with, however the user gives it, and the tensors in what it returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from chainrule.autograd.nested import flatten
from chainrule.nn.module.base import Module
from chainrule.ops.creation.from_data import as_tensor
from chainrule.tensor import Tensor

__all__ = [
    "Inputs",
    "arguments",
    "as_targets",
    "call",
    "check_finite",
    "check_optimizer",
    "check_samples",
    "main_tensor",
    "of_batch",
    "tensors",
]

# A tensor (or array), several as a tuple or list, or keyword arguments as a dict.
Inputs = Any


def arguments(instrument: str, inputs: Inputs) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The positional and the keyword arguments of a call.

    >>> from chainrule import ones
    >>> arguments("draw", (ones(2), ones(3)))
    ((tensor([1., 1.]), tensor([1., 1., 1.])), {})
    """
    if inputs is None:
        raise TypeError(
            f"{instrument}: inputs are missing; give what the model is called with: a tensor, "
            "a tuple of them, or a dict of keyword arguments"
        )
    if isinstance(inputs, Mapping):
        return (), {name: _as_argument(value) for name, value in inputs.items()}
    # A named tuple is one argument: a packed sequence, say.
    if inputs.__class__ in (tuple, list) and any(map(_is_array, inputs)):
        return tuple(_as_argument(value) for value in inputs), {}
    return (_as_argument(inputs),), {}


def _is_array(value: object) -> bool:
    return isinstance(value, Tensor) or hasattr(value, "__array__")


def _as_argument(value: Any) -> Any:
    """Arrays of other libraries as tensors; what is no array (a number, a mode) as it is."""
    return as_tensor(value) if _is_array(value) and not isinstance(value, Tensor) else value


def call(model: Callable[..., Any], instrument: str, inputs: Inputs) -> Any:
    """What the model makes of the inputs."""
    args, kwargs = arguments(instrument, inputs)
    return model(*args, **kwargs)


def tensors(tree: object) -> list[Tensor]:
    """The tensors in nested tuples, lists and dicts, in order."""
    return [leaf for leaf in flatten(tree)[0] if isinstance(leaf, Tensor)]


def main_tensor(instrument: str, output: object) -> Tensor:
    """The output that an instrument looks at: the only tensor, or the first of several."""
    found = tensors(output)
    if not found:
        raise TypeError(
            f"{instrument}: the model returned {type(output).__name__}, in which there is no "
            "tensor; give a function that returns the tensor to look at as the output"
        )
    return found[0]


def of_batch(instrument: str, data: Any) -> tuple[Inputs, Any]:
    """Inputs and targets of a batch: a pair, or the first batch of a loader.

    Arrays of other libraries come as tensors.

    >>> from chainrule import ones, zeros
    >>> of_batch("doctor", (ones(2), zeros(2)))
    (tensor([1., 1.]), tensor([0., 0.]))
    """
    if not isinstance(data, (tuple, list)):
        data = next(iter(data), None)
    if not isinstance(data, (tuple, list)) or len(data) != 2:
        raise TypeError(
            f"{instrument}: data must be a pair (inputs, targets) or a loader of such pairs, got "
            f"{type(data).__name__}"
        )
    return data[0], as_targets(data[1])


def as_targets(targets: Any) -> Any:
    """Targets as a loss takes them: arrays of other libraries as tensors."""
    return _as_argument(targets)


def check_optimizer(instrument: str, optimizer: object) -> None:
    """Raises TypeError for something else than an optimizer, such as the name of one."""
    if optimizer is not None and not hasattr(optimizer, "param_groups"):
        raise TypeError(
            f"{instrument}: optimizer must be an optimizer with parameters, got {optimizer!r}; "
            "make one: optim.Adam(model.parameters())"
        )


def check_samples(instrument: str, inputs: Inputs) -> None:
    """Raises ValueError for inputs without a sample: of nothing nothing can be measured."""
    for t in tensors(arguments(instrument, inputs)):
        if t.numel() == 0:
            raise ValueError(
                f"{instrument}: the inputs have shape {tuple(t.shape)}, in which there is no "
                "sample; give a batch of one or more"
            )


def check_finite(instrument: str, model: Module, inputs: Inputs) -> None:
    """Raises ValueError where there is no sample, or NaN or infinity in the inputs or the weights:
    a verdict about sizes would be about them."""
    check_samples(instrument, inputs)
    given = {"the inputs": tensors(arguments(instrument, inputs))}
    weights = {f"the parameter {name}": [p] for name, p in model.named_parameters()}
    for where, found in (given | weights).items():
        for t in found:
            if t.dtype.is_floating_point and not bool(t.detach().isfinite().all()):
                raise ValueError(
                    f"{instrument}: there are NaN or infinite values in {where}; mend them first: "
                    "inspect.autopsy(model, inputs) says where the first one comes from"
                )


def name_of(model: Module) -> str:
    """How a model is called in titles: its class."""
    return type(model).__name__
