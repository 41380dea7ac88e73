"""Backward passes with other rules than derivatives.

DeepLIFT explains a difference: what each input contributes to f(x) - f(x0). It is a backward pass
in which an operation hands on, instead of its derivative, a multiplier m with
``f(a) - f(a0) = sum_i m_i (a_i - a0_i)``. A deconvolutional network is one in which rectifiers hand
on what is positive. The rules are put on the nodes of the graph, not on modules, so that a module
that is used twice, functional code and operations inside recurrent layers need nothing special.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from chainrule.autograd.engine import grad as gradients_of
from chainrule.autograd.modes import enable_grad, no_grad
from chainrule.graph import Node
from chainrule.nn.activations.moments import legendre
from chainrule.ops.core.apply import apply, watching
from chainrule.ops.core.primitive import Bilinear, Elementwise, Linear
from chainrule.ops.creation.conversion import clone
from chainrule.ops.elementwise.logic import where
from chainrule.ops.index.choice import Choice, Replacement
from chainrule.tensor import Tensor, of_array

__all__ = ["Differences", "deconvolution", "guided", "points_between", "rectifiers_replaced"]

# Linear in each input, so that the rule at the middle of two points is exact.
PRODUCTS = {"mul", "linear", "matmul", "biased_convolution", "cat", "pool_scatter", "shift_along"}
POINTS = 20  # of the mean of derivatives between two points, where there is no formula


class _Rule:
    """Stands in a node in the place of its operation."""

    materializes_grads = True
    adds_into = None

    def __init__(self, name: str, rule: Callable[[Any], Sequence[Any]]):
        self.name, self.rule = name, rule

    def vjp(self, node: Node, g: Any, tensors: bool) -> list[Any]:
        """What the node hands to its inputs."""
        given = tuple(map(of_array, g)) if isinstance(g, tuple) else of_array(g)
        with no_grad():
            parts = self.rule(given)
        return [None if part is None else part.array for part in parts]


def _node_of(result: Any) -> Node | None:
    """The node of an operation that has just run: of several outputs, the one behind them."""
    first = result[0] if isinstance(result, tuple) else result
    node: Any = first._node
    return node.edges[0] if isinstance(result, tuple) and node is not None else node


def _replace(node: Node, name: str, rule: Callable[[Any], Sequence[Any]]) -> None:
    node.op, node.saved = _Rule(name, rule), None


# --- DeepLIFT -------------------------------------------------------------------------------------


class _Before:
    """An operation as it ran on the baseline."""

    def __init__(self, name: str, inputs: tuple[Tensor, ...], result: Any):
        self.name = name
        self.inputs = [clone(t.detach()) for t in inputs]
        self.result = None if isinstance(result, tuple) else clone(result.detach())


class Differences:
    """Multipliers of differences from a baseline (DeepLIFT's rescale rule).

    ``with d.baseline(): model(x0)`` notes how the baseline goes through the model, ``with
    d.compared(): y = model(x)`` gives the graph of y its rules. The gradients of y are then the
    multipliers: they times ``x - x0`` sum to ``y - y0``.
    """

    def __init__(self, instrument: str) -> None:
        self.instrument = instrument
        self.before: list[_Before] = []
        self.at = 0

    @contextlib.contextmanager
    def baseline(self) -> Iterator[None]:
        """Notes all operations inside."""

        def note(op: Any, inputs: tuple[Tensor, ...], params: Any, result: Any) -> None:
            self.before.append(_Before(op.name, inputs, result))

        with watching(note), no_grad():
            yield

    @contextlib.contextmanager
    def compared(self) -> Iterator[None]:
        """Gives the operations inside the rules of their differences."""

        def note(op: Any, inputs: tuple[Tensor, ...], params: Any, result: Any) -> None:
            if self.at >= len(self.before) or self.before[self.at].name != op.name:
                raise self._another_way(op.name)
            node = _node_of(result)
            if node is not None:
                _put_difference(node, op, inputs, params, result, self.before[self.at])
            self.at += 1

        self.at = 0
        with watching(note), enable_grad():
            yield
        if self.at != len(self.before):
            raise self._another_way("nothing")

    def _another_way(self, name: str) -> ValueError:
        expected = self.before[self.at].name if self.at < len(self.before) else "nothing"
        return ValueError(
            f"{self.instrument}: operation {self.at} of the model is {name!r} for the inputs and "
            f"{expected!r} for the baseline: its code depends on the data, and there is no one "
            "graph to compare them on; use method='integrated_gradients' or 'occlusion'"
        )


def _put_difference(
    node: Node, op: Any, inputs: tuple[Tensor, ...], params: Any, result: Any, before: _Before
) -> None:
    if isinstance(op, Linear) or (node.saved is None and node.out is None):
        return  # its rule reads no values: it is linear
    given = [clone(t.detach()) for t in inputs]
    if isinstance(op, (Bilinear, Choice, Replacement)) or op.name in PRODUCTS:
        _replace(node, op.name, _Mean(node, op, given, before.inputs, params, 1))
    elif op.name == "pool_gather":
        _replace(node, op.name, _Pooled(node, op, given, before, params, result))
    elif isinstance(op, Elementwise) and op.arity == 1:
        _replace(node, op.name, _Rescaled(node, op, given, before, params, result))
    else:
        _replace(node, op.name, _Mean(node, op, given, before.inputs, params, POINTS))


def points_between(count: int) -> list[tuple[float, float]]:
    """Points of the way from 0 to 1 and their weights: the weighted sum of a polynomial of degree
    below 2 ``count`` is its mean.

    >>> points_between(1)
    [(0.5, 1.0)]
    """
    if count == 1:
        return [(0.5, 1.0)]
    nodes, weights = legendre(count)
    return list(zip(((nodes + 1) / 2).tolist(), (weights / 2).tolist(), strict=True))


class _Mean:
    """The mean of the derivative on the way from the baseline's inputs to these.

    The integral of the derivative along a line is the difference at its ends, whatever the
    operation; for products one point in the middle is exact.
    """

    def __init__(
        self, node: Node, op: Any, given: list[Tensor], start: list[Tensor], params: Any, count: int
    ):
        self.wanted = [edge is not None for edge in node.edges]
        self.op, self.given, self.start, self.params, self.count = op, given, start, params, count

    def __call__(self, g: Any) -> list[Any]:
        total: list[Any] = [None] * len(self.given)
        for share, weight in points_between(self.count):
            parts = self._at(share, g)
            total = [
                None if part is None else weight * part if sum_ is None else sum_ + weight * part
                for sum_, part in zip(total, parts, strict=True)
            ]
        return total

    def _at(self, share: float, g: Any) -> list[Any]:
        inputs = [
            (a + share * (b - a)).requires_grad_() if wanted else b
            for a, b, wanted in zip(self.start, self.given, self.wanted, strict=True)
        ]
        return _gradients(self.op, inputs, self.params, self.wanted, g)


def _gradients(op: Any, inputs: list[Tensor], params: Any, wanted: list[bool], g: Any) -> list[Any]:
    """The gradients of one operation at these inputs."""
    leaves = [t for t, needed in zip(inputs, wanted, strict=True) if needed]
    with enable_grad():
        out = apply(op, tuple(inputs), params)
    outputs, given = ((out,), (g,)) if isinstance(out, Tensor) else (out, g)
    used = [(o, gi) for o, gi in zip(outputs, given, strict=True) if o.requires_grad]
    found = iter(
        gradients_of(
            [o for o, _ in used], leaves, grad_outputs=[gi for _, gi in used], allow_unused=True
        )
    )
    return [next(found) if needed else None for needed in wanted]


class _Rescaled:
    """(f(a) - f(a0)) / (a - a0) of each element, the derivative where they are the same."""

    def __init__(
        self, node: Node, op: Any, given: list[Tensor], before: _Before, params: Any, result: Any
    ):
        (a,), (a0,) = given, before.inputs
        self.derivative = _Mean(node, op, given, before.inputs, params, 1)
        self.change = a - a0
        self.far = self.change.abs() > 1e-6 * (a.abs() + a0.abs()) + 1e-10
        self.slope = (result.detach() - before.result) / where(self.far, self.change, 1.0)

    def __call__(self, g: Any) -> list[Any]:
        (near,) = self.derivative(g)
        return [where(self.far, g * self.slope, near)]


class _Pooled:
    """Max pooling: a rise of the maximum is due to where it is now, a fall to where it was."""

    def __init__(
        self, node: Node, op: Any, given: list[Tensor], before: _Before, params: Any, result: Any
    ):
        self.wanted = [edge is not None for edge in node.edges]
        self.op, self.given, self.before, self.params = op, given, before.inputs, params
        out, out0 = result.detach(), before.result
        top = where(out >= out0, out, out0)
        self.rise, self.fall = top - out0, out - top

    def __call__(self, g: Any) -> list[Any]:
        x, x0 = self.given[0], self.before[0]
        change = x - x0
        far = change.abs() > 1e-10
        due = self._back(x, self.given[1], g * self.rise) + self._back(
            x0, self.before[1], g * self.fall
        )
        same = self._back(x, self.given[1], g)
        rest: list[Any] = [None] * (len(self.given) - 1)
        return [where(far, due / where(far, change, 1.0), same), *rest]

    def _back(self, x: Tensor, places: Tensor, g: Tensor) -> Tensor:
        leaf = x.detach().requires_grad_()
        inputs = [leaf, places, *self.given[2:]]
        return _gradients(self.op, inputs, self.params, self.wanted, g)[0]


# --- deconvolution --------------------------------------------------------------------------------


def deconvolution(g: Tensor, _: Tensor) -> Tensor:
    """A deconvolutional network's rectifier: what comes back is rectified (Zeiler and Fergus)."""
    return g.clamp(min=0)


def guided(g: Tensor, a: Tensor) -> Tensor:
    """Guided back-propagation's: what is positive, where the rectifier was open (Springenberg)."""
    return g.clamp(min=0) * (a > 0).to(dtype=g.dtype)


@contextlib.contextmanager
def rectifiers_replaced(rule: Callable[[Tensor, Tensor], Tensor]) -> Iterator[None]:
    """Rectifiers that run inside hand back ``rule(g, a)``, of a gradient and their input."""

    def note(op: Any, inputs: tuple[Tensor, ...], params: Any, result: Any) -> None:
        if op.name != "relu":
            return
        node, a = _node_of(result), clone(inputs[0].detach())
        if node is not None:
            _replace(node, "relu", lambda g: [rule(g, a)])

    with watching(note), enable_grad():
        yield
