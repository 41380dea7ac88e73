"""One call of a record, made by both libraries on the same arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from parity.database.translate import function, of_chainrule, to_torch
from torch.testing._internal.opinfo.core import BinaryUfuncInfo, OpInfo, SampleInput, UnaryUfuncInfo

import chainrule

__all__ = ["Call", "Refused", "Side", "tensors_in"]

Function = Callable[..., Any]


class Call:
    """A call of one function on one sample, in both libraries."""

    def __init__(self, op: OpInfo, sample: SampleInput, theirs: Function, ours: Function):
        self.op, self.sample, self.theirs, self.ours = op, sample, theirs, ours
        self.elementwise = isinstance(op, UnaryUfuncInfo | BinaryUfuncInfo)
        self.process = sample.output_process_fn_grad
        self.our_process = function(self.process, "")

    def as_checked(self) -> Call | None:
        """The call as PyTorch's own checks of derivatives make it, for a function of matrices of a
        kind (Hermitian, triangular): on that part of the input. None for other functions."""
        part = self.op.gradcheck_wrapper
        if part is OpInfo.gradcheck_wrapper:
            return None
        theirs, ours = partial(part, self.theirs), partial(function(part, ""), self.ours)
        return Call(self.op, self.sample, theirs, ours)

    def torch_inputs(self, requires_grad: bool) -> tuple[list[Any], dict[str, Any]]:
        """Fresh copies of the arguments, and which of them are variables."""

        def copy(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                return value.detach().clone().requires_grad_(requires_grad and value.requires_grad)
            if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
                return type(value)(copy(v) for v in value)
            return value

        args = [copy(v) for v in (self.sample.input, *self.sample.args)]
        return args, {k: copy(v) for k, v in self.sample.kwargs.items()}

    def both(self, requires_grad: bool = False, process: bool = False) -> tuple[Side, Side]:
        """The call made by PyTorch (its refusal is raised as Refused) and by chainrule."""
        args, kwargs = self.torch_inputs(requires_grad)
        our_args, our_kwargs = (
            of_chainrule(args, requires_grad),
            of_chainrule(kwargs, requires_grad),
        )
        try:
            theirs = Side(torch, self.theirs, args, kwargs, self.process if process else None)
        except Exception as error:
            raise Refused(error) from error
        ours = Side(
            chainrule, self.ours, our_args, our_kwargs, self.our_process if process else None
        )
        return theirs, ours


class Refused(Exception):
    """PyTorch refuses the call."""


class Side:
    """What one library makes of a call: its variables and its results."""

    def __init__(
        self,
        library: Any,
        f: Function,
        args: list[Any],
        kwargs: dict[str, Any],
        process: Function | None,
    ):
        self.library = library
        self.first = args[0]
        self.variables = [v for v in tensors_in((args, kwargs), library.Tensor) if v.requires_grad]
        self.result = f(*args, **kwargs)
        if process is not None:
            self.result = process(self.result)

    def outputs(self) -> list[Any]:
        """The results that have derivatives."""
        found = tensors_in(self.result, self.library.Tensor)
        return [y for y in found if y.requires_grad]

    def constant(self, array: np.ndarray) -> Any:
        """An array as a tensor of this library."""
        array = np.asarray(array)
        return to_torch(array) if self.library is torch else chainrule.as_tensor(array)


def tensors_in(value: Any, kind: type) -> list[Any]:
    """All tensors in nested lists, tuples and dictionaries."""
    if isinstance(value, kind):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors_in(v, kind)]
    return []
