"""Which number of a model's output is explained: one for each sample."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule.inspect.core.arguments import arguments, main_tensor
from chainrule.nn.module.base import Module
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.creation.patterns import arange
from chainrule.tensor import Tensor

__all__ = ["Explained"]


class Explained:
    """A model in evaluation mode, as a function of its float inputs that gives one number for each
    sample: the output of a class, or the only output."""

    def __init__(
        self,
        instrument: str,
        model: Module | Callable[..., Any],
        inputs: Any,
        target: Any,
        output: Callable[[Any], Tensor] | None,
    ):
        self.instrument, self.output = instrument, output
        self.model = model.eval() if isinstance(model, Module) else model
        self.args, self.kwargs = arguments(instrument, inputs)
        self.names = [*(f"input {i}" for i in range(len(self.args))), *self.kwargs]
        self.inputs = [self._checked(n, t) for n, t in zip(self.names, self._values(), strict=True)]
        if isinstance(model, Module):
            for p in model.parameters():
                p.requires_grad_(False)  # only inputs are of interest; the registry restores it
        self.target = self._chosen(target)

    def _values(self) -> list[Any]:
        return [*self.args, *self.kwargs.values()]

    def _checked(self, name: str, value: Any) -> Tensor:
        if not isinstance(value, Tensor) or not value.dtype.is_floating_point:
            kind = value.dtype if isinstance(value, Tensor) else type(value).__name__
            raise TypeError(
                f"{self.instrument}: {name} is {kind}; an output is explained by inputs that can "
                "change a little: give the embedded vectors, and as the model a function of them"
            )
        if value.ndim == 0 or not value.numel():
            raise ValueError(
                f"{self.instrument}: {name} has shape {tuple(value.shape)}: no samples"
            )
        if not bool(value.detach().isfinite().all()):
            raise ValueError(f"{self.instrument}: {name} has values that are not finite")
        return value.detach()

    def all_outputs(self, inputs: list[Tensor]) -> Tensor:
        """The output as a table: a row for each sample."""
        args = inputs[: len(self.args)]
        kwargs = dict(zip(self.kwargs, inputs[len(self.args) :], strict=True))
        given = self.model(*args, **kwargs)
        out = main_tensor(self.instrument, given if self.output is None else self.output(given))
        if out.ndim == 0 or out.shape[0] != inputs[0].shape[0]:
            raise ValueError(
                f"{self.instrument}: the output has shape {tuple(out.shape)} for "
                f"{inputs[0].shape[0]} samples; give output=, a function of what the model "
                "returns, with a row for each sample"
            )
        return out.reshape(out.shape[0], -1)

    def _chosen(self, target: Any) -> Tensor:
        """The column that is explained, for each sample; without a target the largest."""
        table = self.all_outputs(self.inputs).detach()
        if target is None:
            return table.argmax(1)
        chosen = as_tensor(target).reshape(-1).long()
        if len(chosen) not in (1, len(table)):
            raise ValueError(
                f"{self.instrument}: {len(chosen)} targets for {len(table)} samples; give one, or "
                "one for each"
            )
        low, high = int(chosen.min()), int(chosen.max())
        if low < 0 or high >= table.shape[1]:
            wrong = high if high >= table.shape[1] else low
            raise ValueError(
                f"{self.instrument}: target {wrong} is not one of the {table.shape[1]} outputs"
            )
        return chosen.expand(len(table)) if len(chosen) == 1 else chosen

    def __call__(self, inputs: list[Tensor]) -> Tensor:
        """The explained number of each sample."""
        table = self.all_outputs(inputs)
        return table[arange(len(table)), self.target]
