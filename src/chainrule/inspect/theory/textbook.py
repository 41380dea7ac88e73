"""Derivatives as textbooks introduce them, to compare with: differences, formulas, delta errors,
and sums over all paths.

None of this is how the library differentiates. Central differences need two evaluations for each
input and lose half of the digits or more; the sum over all paths of the graph grows exponentially
with its depth, which is what reverse mode avoids by adding up at every node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from chainrule.autograd.jacobian import jacfwd, jacrev
from chainrule.autograd.modes import enable_grad, no_grad
from chainrule.autograd.nested import flatten, unflatten
from chainrule.backend import K
from chainrule.curvature.parameters import ravel
from chainrule.graph import Node
from chainrule.inspect.theory.deltas import LayerDeltas, UnitDeltas, layer_deltas, unit_deltas
from chainrule.inspect.theory.symbolic import Formula, symbolic_derivative
from chainrule.ops.core.recording import SELECT, edge_of
from chainrule.ops.shape.joining import split
from chainrule.ops.shape.stacking import stack
from chainrule.ops.shape.views import reshape
from chainrule.printing import text_table
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Nested

__all__ = [
    "Comparison",
    "Formula",
    "LayerDeltas",
    "PathSum",
    "UnitDeltas",
    "compare",
    "layer_deltas",
    "numerical_gradient",
    "numerical_jacobian",
    "path_sum_derivative",
    "symbolic_derivative",
    "unit_deltas",
]

T = TypeVar("T", bound=Nested)


# --- differences ----------------------------------------------------------------------------------


def numerical_jacobian(func: Callable[[T], Tensor], x: T, *, eps: float | None = None) -> T:
    """The Jacobian of ``func`` at ``x`` by central differences (f(x + h) - f(x - h)) / 2h.

    ``x`` is a tensor or a tree of them; the Jacobian has the shape (*Y, *X) for each. The step h is
    ``eps * max(1, |x_i|)``; ``eps`` is the cube root of the machine precision unless it is given,
    at which the errors of rounding and of the difference are about equal.
    """
    vector, unravel = ravel(x)
    if not vector.is_floating_point():
        raise RuntimeError(
            f"numerical_jacobian: expected tensors of floating point dtype, got {vector.dtype}"
        )
    if eps is None:
        eps = {2: 2.0**-10, 4: 2.0**-23, 8: 2.0**-52}[vector.itemsize] ** (1 / 3)
    if eps <= 0:
        raise ValueError(f"numerical_jacobian: eps should be greater than 0, got {eps}")
    columns = []
    with no_grad():
        for i, value in enumerate(vector.tolist()):
            step = of_array(K.eye(1, vector.numel(), i, dtype=vector.array.dtype)[0])
            step = step * (eps * max(1.0, abs(value)))
            ahead, behind = vector + step, vector - step
            # Divided by the distance as it came out in floating point.
            columns.append((func(unravel(ahead)) - func(unravel(behind))) / (ahead - behind)[i])
    leaves, structure = flatten(x)
    parts = split(stack(columns, -1), [leaf.numel() for leaf in leaves], -1)
    shaped = [
        reshape(j, (*j.shape[:-1], *leaf.shape)) for j, leaf in zip(parts, leaves, strict=True)
    ]
    return unflatten(shaped, structure)


def numerical_gradient(func: Callable[[T], Tensor], x: T, *, eps: float | None = None) -> T:
    """The gradient of a function that returns a number, by central differences.

    >>> import chainrule
    >>> from chainrule.inspect.theory.textbook import numerical_gradient
    >>> x = chainrule.tensor([1.0, 2.0], dtype=chainrule.float64)
    >>> numerical_gradient(lambda x: (x**3).sum(), x)
    tensor([ 3.0000, 12.0000], dtype=chainrule.float64)
    """
    with no_grad():
        y = func(x)
    if y.ndim != 0:
        raise RuntimeError(
            "numerical_gradient: expected a function that returns a tensor with 0 dimensions, got "
            f"shape {tuple(y.shape)}; reduce it, or use numerical_jacobian"
        )
    return numerical_jacobian(func, x, eps=eps)


# --- the sum over all paths -----------------------------------------------------------------------


class PathSum(NamedTuple):
    """A derivative as the sum over the paths of a graph, and how many there are."""

    value: Tensor
    paths: int


def path_sum_derivative(
    func: Callable[[Tensor], Tensor], x: Tensor, *, max_paths: int = 100_000
) -> PathSum:
    """The derivative of a number by ``x``, as the sum over all paths from it down to x.

    Along a path the local derivatives are multiplied, and no two paths share any work: with m
    layers of n nodes there are n^m of them. Raises a RuntimeError beyond ``max_paths``.

    >>> import chainrule
    >>> from chainrule.inspect.theory.textbook import path_sum_derivative
    >>> path_sum_derivative(lambda x: (x * x) * (x * x), chainrule.tensor(2.0))
    PathSum(value=tensor(32.), paths=4)
    """
    leaf = of_array(x.detach().array).requires_grad_()
    with enable_grad():
        y = func(leaf)
    if y.ndim != 0:
        raise RuntimeError(
            "path_sum_derivative: expected a function that returns a tensor with 0 dimensions, got "
            f"shape {tuple(y.shape)}"
        )
    total, paths, ends = K.zeros(leaf.array.shape, leaf.array.dtype), 0, 0
    stack = [(edge_of(y), K.ones((), y.array.dtype))]
    while stack:
        edge, g = stack.pop()
        if isinstance(edge, Node):
            stack += _handed_on(edge, g)
            continue
        ends += 1
        if ends > max_paths:
            raise RuntimeError(
                f"path_sum_derivative: the graph has more than max_paths={max_paths} paths; use "
                "func.grad, which visits every node once"
            )
        if edge is leaf:
            total, paths = total + g, paths + 1
    return PathSum(of_array(K.asarray(total)), paths)


def _handed_on(node: Node, g: Any) -> Iterable[tuple[Any, Any]]:
    """The inputs of a node, each with its share of the gradient g of the output."""
    if node.op is SELECT:
        chosen, node = node.params["index"], node.edges[0]
        outputs = enumerate(node.out)
        g = tuple(g if i == chosen else K.zeros(out.shape, out.dtype) for i, out in outputs)
    parts = zip(node.edges, node.op.vjp(node, g, False), strict=True)
    return [(edge, part) for edge, part in parts if edge is not None and part is not None]


# --- all ways side by side ------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """One Jacobian (*Y, *X) computed in several ways; prints as a table.

    ``passes`` counts the evaluations of the function (differences), the passes forward or the
    passes backward that each way took.
    """

    jacobians: dict[str, Tensor]
    passes: dict[str, int]

    def deviation(self, name: str) -> float:
        """The largest deviation of one way from reverse mode."""
        a, b = self.jacobians[name].array, self.jacobians["reverse"].array
        return float(K.abs(a - b).max()) if a.size else 0.0

    def __str__(self) -> str:
        names = list(self.jacobians)
        columns = [j.detach().numpy().reshape(-1).tolist() for j in self.jacobians.values()]
        rows = [
            [str(i), *[f"{v:.10g}" for v in row]]
            for i, row in enumerate(zip(*columns, strict=True))
        ]
        rows.append(["passes", *[str(self.passes.get(name, "-")) for name in names]])
        rows.append(["deviation", *[f"{self.deviation(name):.1e}" for name in names]])
        return text_table(["entry", *names], rows)

    __repr__ = __str__


def compare(
    func: Callable[[Tensor], Tensor],
    x: Tensor,
    symbolic: Callable[[Tensor], Tensor] | None = None,
    *,
    eps: float | None = None,
) -> Comparison:
    """The derivative of ``func`` at ``x`` numerically, by forward mode and by reverse mode.

    ``symbolic`` is the derivative as a formula: that of :func:`symbolic_derivative`, or one that
    was worked out by hand.

    >>> import chainrule
    >>> from chainrule.inspect.theory.textbook import compare
    >>> x = chainrule.tensor([1.0, 2.0], dtype=chainrule.float64)
    >>> compare(lambda x: (x**3).sum(), x, lambda x: 3 * x**2)
    entry      numerical  forward  reverse  symbolic
    0          3          3        3        3
    1          12         12       12       12
    passes     4          2        1        -
    deviation  ...        0.0e+00  0.0e+00  0.0e+00
    """
    jacobians = {
        "numerical": numerical_jacobian(func, x, eps=eps),
        "forward": jacfwd(func)(x),
        "reverse": jacrev(func)(x),
    }
    outputs = jacobians["reverse"].numel() // max(1, x.numel())
    passes = {"numerical": 2 * x.numel(), "forward": x.numel(), "reverse": outputs}
    if symbolic is not None:
        found = symbolic(x)
        if tuple(found.shape) != tuple(jacobians["reverse"].shape):
            raise RuntimeError(
                f"compare: symbolic returned shape {tuple(found.shape)}, but the Jacobian has the "
                f"shape {tuple(jacobians['reverse'].shape)}"
            )
        jacobians["symbolic"] = found
    return Comparison(jacobians, passes)
