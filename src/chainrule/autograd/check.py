"""Checking derivatives: finite differences against both modes, and the modes against each other.

The Jacobian J of all outputs by all inputs is worked out column by column from differences and from
jvp, row by row from vjp, and compared entry by entry. The modes must agree to rounding, not just to
the accuracy of a difference: <g, J t> = <J^T g, t>.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypedDict, Unpack

from chainrule.autograd.engine import grad
from chainrule.autograd.func import jvp, vjp
from chainrule.autograd.modes import enable_grad
from chainrule.autograd.vectors import count, flat, locate, made_up, reals, split
from chainrule.autograd.vmap import vmap
from chainrule.backend import K, dtypes
from chainrule.tensor import Tensor
from chainrule.typing import Array, Tensors

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """A derivative that :func:`gradcheck` found to be wrong."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_batched_grad: bool = False,
    check_forward_ad: bool = True,
    check_backward_ad: bool = True,
) -> bool:
    """Whether the derivatives of ``func`` at ``inputs`` are those of central differences.

    The inputs that require a gradient (float64, complex128) are varied by ``eps``, complex ones in
    both parts; an entry of the Jacobian is right if |analytical - numerical| <= atol + rtol *
    |numerical|. Unlike PyTorch's, this checks forward mode by default too, and with both modes on,
    that they are adjoint to each other.
    ``nondet_tol`` is what two backward passes may differ by; ``check_batched_grad`` also checks
    the backward pass under vmap.

    >>> import chainrule
    >>> x = chainrule.tensor([0.5, -1.0], dtype=chainrule.float64, requires_grad=True)
    >>> chainrule.autograd.gradcheck(chainrule.tanh, x)
    True
    """
    try:
        with enable_grad():
            point = _Point(func, inputs)
            numerical = point.columns(lambda step: point.difference(step, eps))
            if check_forward_ad:
                point.compare("forward", numerical, point.columns(point.push), atol, rtol)
            if check_backward_ad:
                point.compare("backward", numerical, point.rows(), atol, rtol)
                point.check_deterministic(nondet_tol)
            if check_forward_ad and check_backward_ad:
                point.check_adjoint()
            if check_batched_grad and numerical.size:
                point.compare("batched backward", numerical, point.rows_at_once(), atol, rtol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


class _Options(TypedDict, total=False):
    eps: float
    atol: float
    rtol: float
    raise_exception: bool
    nondet_tol: float
    check_batched_grad: bool


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    grad_outputs: Tensors | None = None,
    *,
    check_fwd_over_rev: bool = True,
    check_rev_over_rev: bool = True,
    check_over_fwd: bool = False,
    **options: Unpack[_Options],
) -> bool:
    """Whether the second derivatives of ``func`` are those of differences of its first ones.

    Runs :func:`gradcheck` (with its ``options``) on the backward pass as a function of the inputs
    and of ``grad_outputs`` (made up if None), in reverse mode (``check_rev_over_rev``) and forward
    mode (``check_fwd_over_rev``). With ``check_over_fwd`` it also runs, in both modes, on the
    tangent from forward mode as a function of the inputs and of the direction.

    >>> import chainrule
    >>> x = chainrule.tensor([0.5, -1.0], dtype=chainrule.float64, requires_grad=True)
    >>> chainrule.autograd.gradgradcheck(chainrule.tanh, x)
    True
    """
    point = _Point(func, inputs)
    xs, n = point.inputs, len(point.inputs)
    passed = True
    if check_fwd_over_rev or check_rev_over_rev:
        gs = made_up(point.outputs) if grad_outputs is None else flat(_tuple(grad_outputs))
        passed = gradcheck(
            lambda *args: vjp(point, *args[:n])[1](args[n:]),
            (*xs, *split(gs, point.outputs)),
            check_forward_ad=check_fwd_over_rev,
            check_backward_ad=check_rev_over_rev,
            **options,
        )
    if passed and check_over_fwd:
        ts = split(made_up(xs), xs)
        passed = gradcheck(lambda *args: jvp(point, args[:n], args[n:])[1], (*xs, *ts), **options)
    return passed


class _Point:
    """A function and where to check it. Its derivatives map vectors (all inputs) to vectors."""

    def __init__(self, func: Callable[..., Any], inputs: Tensor | Sequence[Any]):
        self.func, self.arguments = func, _tuple(inputs)
        tensors = [(i, x) for i, x in enumerate(self.arguments) if isinstance(x, Tensor)]
        self.places = [i for i, x in tensors if x.requires_grad]
        self.inputs = tuple([x for _, x in tensors if x.requires_grad])
        if not self.inputs:
            raise ValueError("gradcheck: expects at least one input tensor with requires_grad=True")
        for i, x in zip(self.places, self.inputs, strict=True):
            if x.dtype not in (dtypes.float64, dtypes.complex128):
                raise ValueError(
                    f"gradcheck: input {i} is {x.dtype}, too coarse for differences; use "
                    f"{'x.cdouble()' if x.is_complex() else 'x.double()'}"
                )
        self.outputs = self(*self.inputs)

    def __call__(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        arguments = list(self.arguments)
        for i, x in zip(self.places, inputs, strict=True):
            arguments[i] = x
        outputs = _tuple(self.func(*arguments))
        tensors = [y for y in outputs if isinstance(y, Tensor)]
        floating = [y for y in tensors if y.is_floating_point() or y.is_complex()]
        if not floating:
            raise ValueError(
                "gradcheck: the function returns no tensor of a floating point or complex dtype"
            )
        return tuple(floating)

    def difference(self, step: Array, eps: float) -> Array:
        """J times a unit vector, from the function at both sides of the point."""
        x = flat(self.inputs)
        ahead, behind = x + eps * step, x - eps * step
        right, left = (flat(self(*split(end, self.inputs))) for end in (ahead, behind))
        # Divided by what the distance really is, in floating point (of infinity, nothing).
        width = float((ahead - behind)[int(step.argmax())])
        return (right - left) / (width if width == width else 2 * eps)

    def push(self, t: Array) -> Array:
        """J t, in forward mode."""
        outputs, tangents = jvp(self, self.inputs, split(t, self.inputs))
        for j, (y, tangent) in enumerate(zip(outputs, tangents, strict=True)):
            _check_like(f"the tangent of output {j}", tangent, y)
        return flat(tangents)

    def pull(self, g: Array) -> Array:
        """J^T g, in reverse mode."""
        pairs = zip(self.outputs, split(g, self.outputs), strict=True)
        used = [(y, part) for y, part in pairs if y.requires_grad and bool(part.array.any())]
        if not used:
            return K.zeros(count(self.inputs), g.dtype)
        outputs, parts = zip(*used, strict=True)
        found = grad(outputs, self.inputs, parts, retain_graph=True, materialize_grads=True)
        grads = [g.to_dense() for g in found]  # of a table they may be sparse
        for i, x, gradient in zip(self.places, self.inputs, grads, strict=True):
            _check_like(f"the gradient of input {i}", gradient, x)
        return flat(grads)

    def columns(self, derivative: Callable[[Array], Array]) -> Array:
        """The Jacobian, from what a derivative makes of each unit vector."""
        columns = [derivative(unit)[:, None] for unit in K.eye(count(self.inputs))]
        return K.cat(K.zeros((count(self.outputs), 0)), *columns, dim=1)

    def rows(self) -> Array:
        rows = [self.pull(unit)[None] for unit in K.eye(count(self.outputs))]
        return K.cat(K.zeros((0, count(self.inputs))), *rows, dim=0)

    def rows_at_once(self) -> Array:
        units = split(K.eye(count(self.outputs)), self.outputs)
        grads = vmap(vjp(self, *self.inputs)[1])(units)
        return K.cat(
            *[K.to_numpy(reals(g.array)).reshape(len(g), -1) for g in grads if g.numel()], dim=1
        )

    def compare(
        self, how: str, numerical: Array, analytical: Array, atol: float, rtol: float
    ) -> None:
        """Raises for the entry that deviates most, if any deviates too much."""
        deviation = K.abs(analytical - numerical)
        if bool((deviation <= atol + rtol * K.abs(numerical)).all()):
            return
        deviation = K.where(K.isnan(deviation), float("inf"), deviation)
        at = divmod(int(deviation.argmax()), deviation.shape[1])
        j, of_output = locate(at[0], self.outputs)
        i, of_input = locate(at[1], self.inputs)
        raise GradcheckError(
            f"gradcheck: the Jacobian of output {j} with respect to input {self.places[i]} is "
            f"wrong in {how} mode. The largest deviation is at entry {of_output} of the output and "
            f"{of_input} of the input: numerical {float(numerical[at]):.10g}, analytical "
            f"{float(analytical[at]):.10g} (atol={atol:g}, rtol={rtol:g})"
        )

    def check_adjoint(self) -> None:
        """<g, J t> = <J^T g, t>, for vectors t and g without zeros."""
        t, g = made_up(self.inputs), made_up(self.outputs, 0.37)
        left, right = g * self.push(t), self.pull(g) * t
        scale = float(K.abs(left).sum() + K.abs(right).sum())
        if not abs(float(left.sum()) - float(right.sum())) <= 1e-8 * scale + 1e-10:
            raise GradcheckError(
                f"gradcheck: the two modes are not adjoint: <g, J t> = {float(left.sum()):.12g} in "
                f"forward mode, but <J^T g, t> = {float(right.sum()):.12g} in backward mode"
            )

    def check_deterministic(self, tolerance: float) -> None:
        g = made_up(self.outputs)
        change = K.abs(self.pull(g) - self.pull(g))
        if bool((change > tolerance).any()):
            raise GradcheckError(
                "gradcheck: backward is not deterministic: two passes gave gradients that differ "
                f"by {float(change.max()):g}, more than nondet_tol={tolerance:g}"
            )


def _check_like(what: str, value: Tensor, model: Tensor) -> None:
    (shape, dtype), (its_shape, its_dtype) = [(tuple(t.shape), t.dtype) for t in (model, value)]
    if (shape, dtype) != (its_shape, its_dtype):
        raise GradcheckError(f"gradcheck: {what} is {its_shape} {its_dtype}, not {shape} {dtype}")


def _tuple(x: object) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)
