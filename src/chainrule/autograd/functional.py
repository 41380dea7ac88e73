"""Jacobians, Hessians and their products in the form of ``torch.autograd.functional``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

from chainrule.ops.core.arguments import placed_like
from chainrule.autograd import func as transforms
from chainrule.autograd.engine import grad
from chainrule.autograd.jacobian import hessian_of, jacfwd, jacrev
from chainrule.autograd.nested import map_tree
from chainrule.backend import K
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Tensors

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


R = TypeVar("R")


def _tuple(x: object) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def _like(result: tuple[Any, ...], given: Tensors) -> Any:
    return result if isinstance(given, (tuple, list)) else result[0]


def _finish(result: Any, create_graph: bool) -> Any:
    """Results keep their history only if asked to."""
    if create_graph:
        return result
    return map_tree(lambda x: x.detach() if isinstance(x, Tensor) else x, result)


def _direction(op: str, v: Tensors | None, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    if v is not None:
        return _tuple(v)
    if len(inputs) != 1 or inputs[0].numel() != 1:
        raise RuntimeError(f"{op}: the vector v can only be None if the input is a single number")
    return (placed_like(inputs[0], of_array(K.ones(inputs[0].array.shape, inputs[0].array.dtype))),)


@overload
def jacobian(
    func: Callable[..., Tensor],
    inputs: Tensor,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = True,
    strategy: str = "reverse-mode",
) -> Tensor: ...
@overload
def jacobian(
    func: Callable[..., Tensor],
    inputs: Sequence[Tensor],
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = True,
    strategy: str = "reverse-mode",
) -> tuple[Tensor, ...]: ...
@overload
def jacobian(
    func: Callable[..., Sequence[Tensor]],
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = True,
    strategy: str = "reverse-mode",
) -> tuple[Any, ...]: ...
def jacobian(
    func: Callable[..., Tensors],
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = True,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of ``func`` at ``inputs``; nested tuples (output, input) if there are several.

    ``vectorize`` is always on here; ``strict=True`` refuses an output independent of an input.

    >>> import chainrule
    >>> chainrule.autograd.functional.jacobian(lambda x: x**2, chainrule.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if strategy not in ("reverse-mode", "forward-mode"):
        raise ValueError(
            f"jacobian: strategy must be 'reverse-mode' or 'forward-mode', got {strategy!r}"
        )
    args = _tuple(inputs)
    if strict:
        _check_strict("jacobian", func, args)
    argnums: Any = tuple(range(len(args))) if isinstance(inputs, (tuple, list)) else 0
    transform = jacrev if strategy == "reverse-mode" else jacfwd
    return _finish(transform(func, argnums)(*args), create_graph)


def _check_strict(op: str, func: Callable[..., Tensors], args: tuple[Any, ...]) -> None:
    copies = [x.detach().requires_grad_() for x in args]
    outputs = _tuple(func(*copies))
    for i, y in enumerate(outputs):
        used = (
            grad(y, copies, y.detach() * 0, allow_unused=True, retain_graph=True)
            if y.requires_grad
            else [None]
        )
        if any(g is None for g in used):
            raise RuntimeError(
                f"{op}: output {i} is independent of an input; not allowed in strict mode"
            )


@overload
def hessian(
    func: Callable[..., Tensor],
    inputs: Tensor,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = True,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Tensor: ...
@overload
def hessian(
    func: Callable[..., Tensor],
    inputs: Sequence[Tensor],
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = True,
    outer_jacobian_strategy: str = "reverse-mode",
) -> tuple[tuple[Tensor, ...], ...]: ...
def hessian(
    func: Callable[..., Tensor],
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = True,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of a scalar ``func`` at ``inputs``; nested tuples if there are several.

    >>> import chainrule
    >>> from chainrule.autograd import functional
    >>> functional.hessian(lambda x: (x**3).sum(), chainrule.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    args = _tuple(inputs)
    if strict:
        _check_strict("hessian", func, args)
    argnums: Any = tuple(range(len(args))) if isinstance(inputs, (tuple, list)) else 0
    if outer_jacobian_strategy not in ("reverse-mode", "forward-mode"):
        raise ValueError(f"hessian: unknown outer_jacobian_strategy {outer_jacobian_strategy!r}")
    outer = hessian_of if outer_jacobian_strategy == "reverse-mode" else jacfwd
    return _finish(outer(transforms.grad(func, argnums), argnums)(*args), create_graph)


def vjp(
    func: Callable[..., R], inputs: Tensors, v: Tensors | None = None, create_graph: bool = False
) -> tuple[R, Any]:
    """``(func(inputs), v^T J)``

    >>> import chainrule
    >>> from chainrule.autograd import functional
    >>> functional.vjp(lambda x: x**2, chainrule.tensor([1.0, 2.0]), chainrule.tensor([1.0, 10.0]))
    (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    out, pull = transforms.vjp(func, *_tuple(inputs))
    cotangent = v if v is not None else _direction("vjp", None, _tuple(out))[0]
    return _finish((out, _like(pull(cotangent), inputs)), create_graph)


def jvp(
    func: Callable[..., R], inputs: Tensors, v: Tensors | None = None, create_graph: bool = False
) -> tuple[R, R]:
    """``(func(inputs), J v)``

    >>> import chainrule
    >>> from chainrule.autograd import functional
    >>> functional.jvp(lambda x: x**2, chainrule.tensor([1.0, 2.0]), chainrule.tensor([1.0, 10.0]))
    (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    args = _tuple(inputs)
    return _finish(transforms.jvp(func, args, _direction("jvp", v, args)), create_graph)


def hvp(
    func: Callable[..., Tensor],
    inputs: Tensors,
    v: Tensors | None = None,
    create_graph: bool = False,
) -> tuple[Tensor, Any]:
    """``(func(inputs), H v)``, by forward over reverse mode.

    >>> import chainrule
    >>> from chainrule.autograd import functional
    >>> x, v = chainrule.tensor([1.0, 2.0]), chainrule.tensor([1.0, 10.0])
    >>> functional.hvp(lambda x: (x**3).sum(), x, v)
    (tensor(9.), tensor([  6., 120.]))
    """
    args = _tuple(inputs)
    gradient = transforms.grad_and_value(func, tuple(range(len(args))))
    (_, value), (product, _) = transforms.jvp(gradient, args, _direction("hvp", v, args))
    return _finish((value, _like(product, inputs)), create_graph)


def vhp(
    func: Callable[..., Tensor],
    inputs: Tensors,
    v: Tensors | None = None,
    create_graph: bool = False,
) -> tuple[Tensor, Any]:
    """``(func(inputs), v^T H)``, by reverse over reverse mode.

    >>> import chainrule
    >>> from chainrule.autograd import functional
    >>> x, v = chainrule.tensor([1.0, 2.0]), chainrule.tensor([1.0, 10.0])
    >>> functional.vhp(lambda x: (x**3).sum(), x, v)
    (tensor(9.), tensor([  6., 120.]))
    """
    args = _tuple(inputs)
    gradient = transforms.grad_and_value(func, tuple(range(len(args))))
    (_, value), pull, *_ = transforms.vjp(gradient, *args)
    zero = placed_like(value, of_array(K.zeros(value.array.shape, value.array.dtype)))
    product = pull((_direction("vhp", v, args), zero))
    return _finish((value, _like(product, inputs)), create_graph)
