"""``Variable``: what a tensor with a gradient was called before they became one."""

from __future__ import annotations

import warnings

from chainrule.ops.creation.patterns import empty
from chainrule.tensor import Tensor

__all__ = ["Variable"]


class _AnyTensor(type):
    """Makes a class of which all tensors are instances, and whose call returns a tensor."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor)

    def __call__(
        cls,
        data: Tensor | None = None,
        requires_grad: bool = False,
        volatile: bool | None = None,
    ) -> Tensor:
        if volatile is not None:
            warnings.warn(
                "volatile was removed and now has no effect. Use `with chainrule.no_grad():` "
                "instead",
                stacklevel=2,
            )
        if data is None:
            data = empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(
                f"Variable: Variable data has to be a tensor, but got {type(data).__name__}; "
                "chainrule.tensor makes one"
            )
        return data.detach().requires_grad_(requires_grad)


class Variable(metaclass=_AnyTensor):
    """The tensor, without history, in the same memory; every tensor is an instance of it.

    Args:
        data: a tensor.
        requires_grad: whether to ask for a gradient of what is returned.
        volatile: once asked for nothing to be recorded; now ``no_grad()`` does.

    >>> import chainrule as torch
    >>> x = torch.autograd.Variable(torch.ones(2), requires_grad=True)
    >>> x
    tensor([1., 1.], requires_grad=True)
    >>> isinstance(x, torch.autograd.Variable)
    True
    """
