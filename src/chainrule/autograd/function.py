"""The user's own operations: a forward computation with a hand-written vjp and jvp."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from chainrule.autograd.function_ctx import FunctionCtx
from chainrule.autograd.modes import enable_grad, no_grad
from chainrule.backend import K
from chainrule.ops.core.inplace import adopt, check_writable, touch
from chainrule.ops.core.apply import apply
from chainrule.ops.core.primitive import Op
from chainrule.graph import Node
from chainrule.tensor import Tensor, of_array

__all__ = ["Function", "FunctionCtx", "once_differentiable"]


class _FunctionOp(Op):
    """One call of a Function, standing in the graph like any other operation."""

    takes_tensors = True
    single = True
    child: _FunctionOp | None = None

    def __init__(
        self, function: type[Function], arguments: Sequence[Any], positions: Sequence[int]
    ):
        self.name = function.__name__
        self.function = function
        self.arguments = list(arguments)
        self.positions = list(positions)
        self.ctx = FunctionCtx()
        self.batch = self._batched if hasattr(function, "vmap") else None

    def _fill(self, tensors: Sequence[Any]) -> list[Any]:
        full = list(self.arguments)
        for position, t in zip(self.positions, tensors, strict=True):
            full[position] = t
        return full

    def inner(self) -> Op:
        self.child = _FunctionOp(self.function, self.arguments, self.positions)
        return self.child

    def raw(self, *tensors: Tensor) -> Any:
        """Runs the user's forward without recording what happens inside."""
        full, ctx = self._fill(tensors), self.ctx
        ctx.needs_input_grad = tuple(isinstance(a, Tensor) and a.requires_grad for a in full)
        with no_grad():
            if self.function.setup_context is not Function.setup_context:
                out = self.function.forward(*full)
                self.function.setup_context(ctx, tuple(full), out)
            else:
                out = self.function.forward(ctx, *full)
        self.materializes_grads = ctx.materialize_grads
        for t in ctx.dirty:
            touch(t)
        self.single = not isinstance(out, tuple)
        outs = (out,) if self.single else out
        for o in outs:
            if not isinstance(o, Tensor):
                raise TypeError(
                    f"{self.name}.forward: expected Tensor or tuple of Tensors, got "
                    f"{type(o).__name__}"
                )
        self.differentiable = not all(any(o is n for n in ctx._non_differentiable) for o in outs)
        return tuple(o.array for o in outs)

    def save(self, inputs: tuple[Tensor, ...], edges: tuple[Any, ...]) -> Any:
        return None

    def vjp(self, node: Node, g: Any, tensors: bool) -> Sequence[Any]:
        parts = [p if p is None or isinstance(p, Tensor) else of_array(K.asarray(p)) for p in g]
        with enable_grad() if tensors else no_grad():
            grads = self.function.backward(self.ctx, *parts)
        grads = grads if isinstance(grads, tuple) else (grads,)
        if len(grads) < len(self.arguments):
            raise RuntimeError(
                f"{self.name}.backward: returned an incorrect number of gradients (expected "
                f"{len(self.arguments)}, one for each argument of forward, got {len(grads)})"
            )
        picked = [grads[position] for position in self.positions]
        for i, (p, shape) in enumerate(zip(picked, node.shapes, strict=True)):
            if p is not None and tuple(p.shape) != tuple(shape):
                raise RuntimeError(
                    f"{self.name}.backward: returned an invalid gradient at index {i}: got shape "
                    f"{tuple(p.shape)} but expected shape {tuple(shape)}"
                )
        return [p if p is None or tensors else p.array for p in picked]

    def jvp(
        self, tangents: Sequence[Any], out: Any, inputs: Sequence[Any], params: dict[str, Any]
    ) -> Any:
        if self.function.jvp is Function.jvp:
            raise NotImplementedError(
                f"{self.name}: forward mode needs a staticmethod jvp(ctx, *tangents) on the "
                "Function"
            )
        full = self._fill(tangents)
        for i, a in enumerate(self.arguments):
            if i not in self.positions and not isinstance(a, Tensor):
                full[i] = None
        result = self.function.jvp(self.ctx, *full)
        return result if isinstance(result, tuple) else (result,)

    def _batched(
        self, op: Op, size: int, values: Sequence[Tensor], mapped: Sequence[bool], params: Any
    ) -> Any:
        dims: list[int | None] = [None] * len(self.arguments)
        for position, m in zip(self.positions, mapped, strict=True):
            dims[position] = 0 if m else None
        rule: Any = self.function.vmap  # type: ignore[attr-defined]
        out, _ = rule(_VmapInfo(size), tuple(dims), *self._fill(values))
        return out if isinstance(out, tuple) else (out,)


class _VmapInfo:
    def __init__(self, batch_size: int):
        self.batch_size = batch_size


class Function:
    """An operation with rules of the user's own.

    Subclasses define static methods ``forward(ctx, *args)`` and ``backward(ctx, *grad_outputs)``
    (the vjp), and for forward mode ``jvp(ctx, *tangents)``; ``vmap(info, in_dims, *args)`` for
    batching.

    >>> import chainrule
    >>> class Cube(chainrule.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x * x
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return g * 3 * x * x
    >>> x = chainrule.tensor(2.0, requires_grad=True)
    >>> Cube.apply(x).backward()
    >>> x.grad
    tensor(12.)
    """

    # Checkers let a rule with arguments of its own stand in place of *args and **kwargs.

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """The computation; with ``setup_context`` defined it gets no ctx."""
        raise NotImplementedError("Function: define a staticmethod forward(ctx, *args)")

    @staticmethod
    def setup_context(ctx: FunctionCtx, inputs: tuple[Any, ...], output: Any) -> None:
        """Saves what backward needs, if forward does not take a ctx."""

    @staticmethod
    def backward(ctx: FunctionCtx, *grad_outputs: Any, **kwargs: Any) -> Any:
        """The gradients of the inputs from the gradients of the outputs."""
        raise NotImplementedError(
            "Function: reverse mode needs a staticmethod backward(ctx, *grads)"
        )

    @staticmethod
    def jvp(ctx: FunctionCtx, *tangents: Any, **kwargs: Any) -> Any:
        """The tangents of the outputs from the tangents of the inputs."""
        raise NotImplementedError("Function: forward mode needs a staticmethod jvp(ctx, *tangents)")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Computes the operation and records it."""
        positions = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        op = _FunctionOp(cls, args, positions)
        out = apply(op, tuple(args[i] for i in positions), {})
        if op.child is None:
            out = tuple(_as_changed_input(op, o) for o in out)
        while op.child is not None:
            op = op.child
        _clear_marked(op, out)
        return out[0] if op.single else out


def _as_changed_input(op: _FunctionOp, output: Tensor) -> Tensor:
    """The input that was changed in place to be this output, with the output's history."""
    for t in op.ctx.dirty:
        if t.array is output.array:
            check_writable(t, op.name)
            adopt(t, output)
            return t
    return output


def _clear_marked(op: _FunctionOp, outputs: tuple[Tensor, ...]) -> None:
    """Takes the history away from outputs that were marked as not differentiable."""
    for o in outputs:
        for marked in op.ctx._non_differentiable:
            if o.array is marked.array:
                o._node, o.needs_grad = None, False


F = TypeVar("F", bound=Callable[..., Any])


def once_differentiable(backward: F) -> F:
    """Decorates a backward that cannot itself be differentiated; doing so raises an error."""

    def wrapped(ctx: FunctionCtx, *grad_outputs: Any) -> Any:
        with no_grad():
            out = backward(ctx, *grad_outputs)
        single = not isinstance(out, tuple)
        outs = (out,) if single else out
        if any(isinstance(g, Tensor) and g.requires_grad for g in grad_outputs):
            outs = tuple(o if o is None else _Once.apply(o.detach().requires_grad_()) for o in outs)
        return outs[0] if single else outs

    return cast("F", wrapped)


class _Once(Function):
    """Identity whose backward is an error."""

    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: FunctionCtx, *grads: Any) -> Any:
        raise RuntimeError(
            "trying to differentiate twice a function that was marked with @once_differentiable"
        )
