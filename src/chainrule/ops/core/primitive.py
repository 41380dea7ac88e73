"""What a primitive is, and how one is applied.

A primitive is declared once: its kernel, its reverse rule (vjp) and its forward rule (jvp). Most
fall into three kinds that need less than that:

=============  ======================================  ==========================================
kind           declared by                             rules that follow
=============  ======================================  ==========================================
Elementwise    its differential with respect to each   vjp and jvp are both that differential
               input, ``d -> d * f'(x)``
Linear         its transpose                           vjp is the transpose, jvp is itself
Bilinear       its two transposes                      vjp are the transposes, jvp is the product
                                                       rule
Primitive      vjp and jvp by hand                     what is left
=============  ======================================  ==========================================

Rules are written in the library's own operations. Given tensors they build a graph, so derivatives
of any order follow; given bare arrays (an ordinary backward pass) they compute on bare arrays.
Inside a rule use operators and functions of ``ops``, never methods: arrays do not have them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from chainrule.backend import K, bind, dtypes
from chainrule.ops.core.apply import apply, as_operand
from chainrule.ops.core.recording import keep_table, note_view, one, saved_values
from chainrule.graph import ORDINARY, Edges, Node, Saved, mode
from chainrule.tensor import OtherLayout, Tensor
from chainrule.typing import Gradients, Tangent, Tangents, V, Value

if TYPE_CHECKING:
    from chainrule.ops.core.batching import Rule

__all__ = [
    "Bilinear",
    "Conjugated",
    "Differential",
    "Elementwise",
    "Linear",
    "Nondifferentiable",
    "Op",
    "Primitive",
    "REGISTRY",
    "broadcast_to",
    "sum_to",
]

ARRAY = K.Array
F32, F64 = dtypes.float32.array_dtype, dtypes.float64.array_dtype
REGISTRY: dict[str, Op] = {}
# From a change of an input, and what else it reads, to the change of the output.
Differential: TypeAlias = Callable[..., Value]


class Op:
    """A primitive operation. ``raw`` computes it on arrays: the kernel of its name, unless its
    class has a method for that. Subclasses give its derivatives.

    ``saves_out`` says that the reverse rule reads the output. ``batch`` is the rule of
    :func:`chainrule.func.vmap` (see ``ops/core/batching.py``), and ``is_view`` that the output may
    share the memory of the input.
    """

    differentiable = True
    aligns = False  # whether the output has the shape of each input that is not broadcast
    saves_input = False  # of one input: whether the reverse rule reads it
    saves_out = False
    keeps: tuple[int, ...] = keep_table(((0, 1), (0, 1)))  # of two: which of them it reads
    is_view = False
    may_copy = False  # whether a view can come out as a copy, when memory does not allow a view
    holomorphic = True  # complex differentiable, so that the rules for real numbers hold
    materializes_grads = True  # whether the gradient of an unused output is zeros, or None
    takes_tensors = False  # whether ``raw`` wants tensors, not arrays (the user's own operations)
    rounds = True  # whether float16 and bfloat16 are computed with in float32
    # ``adds_into(total, g, **params)`` adds the gradient of the one input to a sum of such, in
    # place, where that is less work than the gradient itself: that of a part is zero elsewhere.
    adds_into: Callable[..., Any] | None = None
    recipe: tuple[bool, bool, tuple[int, ...], bool] | None = None  # see ops/core/recording.py
    raw: Callable[..., Any]

    def __init__(self, name: str, batch: Rule | str | None = None, kernel: str | None = None):
        if name in REGISTRY:
            raise ValueError(f"primitive {name!r} is declared twice")
        self.name = name
        self.batch = batch
        REGISTRY[name] = self
        if not hasattr(type(self), "raw"):
            bind(self, kernel or name)

    def __call__(self, *inputs: Any, **params: Any) -> Any:
        """Applies to tensors (recording if asked to), or to bare arrays."""
        for x in inputs:
            if isinstance(x, Tensor):
                return apply(self, tuple([as_operand(y) for y in inputs]), params)
        if inputs and inputs[0].__class__ is not ARRAY and isinstance(inputs[0], OtherLayout):
            return inputs[0].operate(self.name, inputs, params)
        return self.free(*inputs, **params)

    def free(self, *arrays: Any, **params: Any) -> Any:
        """``raw`` of bare arrays."""
        return self.raw(*arrays, **params)

    def on_complex_numbers(self) -> Op:
        """The operation to record where the output is complex."""
        return Conjugated(self)

    def inner(self) -> Op:
        """The operation to apply one level further out; its own copy if it remembers a call."""
        return self

    def save(self, inputs: tuple[Tensor, ...], edges: Edges) -> Saved:
        """The inputs the reverse rule will read, None for those it will not."""
        return inputs

    def vjp(self, node: Node, g: Value, tensors: bool) -> Gradients:
        """The gradients of the inputs from the gradient of the output (None where not asked)."""
        raise RuntimeError(f"{self.name} is not differentiable")

    def jvp(
        self, tangents: Tangents, out: Value, inputs: Sequence[Value], params: dict[str, Any]
    ) -> Tangent:
        """The tangent of the output from the tangents of the inputs (None for zero)."""
        raise RuntimeError(f"{self.name} is not differentiable")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


class Nondifferentiable(Op):
    """An operation without derivative: comparisons, integers, choices."""

    differentiable = False


class Elementwise(Op):
    """A function of numbers applied to each element, with broadcasting.

    ``differentials[i]`` maps a change ``d`` of input i to the change of the output. Its further
    parameters name what it reads: ``x``, ``y``, ``z`` for the inputs, ``out`` for the output, then
    parameters of the operation by their own names. Only what is named is saved.
    """

    aligns = True

    def __init__(
        self, name: str, differentials: Sequence[Differential | None], kernel: str | None = None
    ):
        super().__init__(name, "align", kernel)
        self.differentials = tuple(differentials)
        self.arity = len(self.differentials)
        self.reads = tuple(_reads(f, self.arity) for f in self.differentials)
        self.reads_params = tuple(_reads_params(f) for f in self.differentials)
        self.saves_input = 0 in self.reads[0]
        self.saves_out = any(self.arity in r for r in self.reads)
        if self.arity == 2:
            self.keeps = keep_table(self.reads)
        self.differentiable = any(f is not None for f in self.differentials)

    def save(self, inputs: tuple[Tensor, ...], edges: Edges) -> Saved:
        needed = {k for e, r in zip(edges, self.reads, strict=True) if e is not None for k in r}
        return tuple([t if k in needed else None for k, t in enumerate(inputs)]) if needed else None

    def vjp(self, node: Node, g: Value, tensors: bool) -> Gradients:
        values = saved_values(node, tensors)
        shapes = node.shapes
        grads: list[Value | None] = []
        for i, edge in enumerate(node.edges):
            differential = self.differentials[i]
            if edge is None or differential is None:
                grads.append(None)
                continue
            gi = differential(g, *self._arguments(i, values, node.params))
            if shapes is not None and gi.shape != shapes[i]:
                gi = sum_to(gi, shape=shapes[i])
            grads.append(gi)
        return grads

    def jvp(
        self, tangents: Tangents, out: Value, inputs: Sequence[Value], params: dict[str, Any]
    ) -> Value:
        values = (*inputs, out)
        total: Any = None
        for i, (t, differential) in enumerate(zip(tangents, self.differentials, strict=True)):
            if t is not None and differential is not None:
                part = differential(t, *self._arguments(i, values, params))
                total = part if total is None else total + part
        if total is not None and total.shape != out.shape:
            total = broadcast_to(total, shape=tuple(out.shape))
        return total

    def _arguments(self, i: int, values: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        """What the i-th differential reads, in its order."""
        arguments = [values[k] for k in self.reads[i]]
        if self.reads_params[i]:
            arguments += [params[name] for name in self.reads_params[i]]
        return arguments


class Linear(Op):
    """A linear function of its one input. ``transpose(g, shape, **params)`` gives back the input's
    shape; ``shape`` is that shape."""

    def __init__(
        self,
        name: str,
        transpose: Callable[..., Value],
        batch: Rule | str | None = "carry",
        kernel: str | None = None,
        is_view: bool = False,
        may_copy: bool = False,
    ):
        super().__init__(name, batch, kernel)
        self.transpose = transpose
        self.is_view = is_view
        self.may_copy = may_copy

    def __call__(self, x: V, **params: Any) -> V:
        """Applies to a tensor or to a bare array; the ordinary case is written out for speed."""
        if not isinstance(x, Tensor):
            if x.__class__ is not ARRAY and isinstance(x, OtherLayout):
                return x.operate(self.name, (x,), params)
            return self.free(x, **params)
        a, flags = x.array, mode.flags
        dtype = a.dtype
        if (flags > 1 and (flags > ORDINARY or a.__class__ is not K.Array)) or (
            dtype is not F32 and dtype is not F64
        ):
            return apply(self, (x,), params)
        out = one(self, x, self.raw(a, **params), flags, params)
        if self.is_view:
            note_view(out, x, self, params)
        return out

    def save(self, inputs: tuple[Tensor, ...], edges: Edges) -> Saved:
        return None

    def vjp(self, node: Node, g: Value, tensors: bool) -> Gradients:
        return (self.transpose(g, node.shapes[0], **node.params),)

    def jvp(
        self, tangents: Tangents, out: Value, inputs: Sequence[Value], params: dict[str, Any]
    ) -> Value:
        tangent: Any = tangents[0]  # of the only input: not zero where this is called
        return self(tangent, **params)


class Bilinear(Op):
    """A function linear in each of its two inputs x and y.

    ``transposes`` are ``(g, x, y, **params) -> gradient`` for x (which reads y) and for y (which
    reads x); the one that is not read is passed as its shape.
    """

    keeps = keep_table(((1,), (0,)))

    def __init__(
        self,
        name: str,
        transposes: tuple[Callable[..., Value], Callable[..., Value]],
        batch: Rule | str | None,
        kernel: str | None = None,
    ):
        super().__init__(name, batch, kernel)
        self.transposes = transposes

    def save(self, inputs: tuple[Tensor, ...], edges: Edges) -> Saved:
        x, y = inputs
        return (x if edges[1] is not None else None, y if edges[0] is not None else None)

    def vjp(self, node: Node, g: Value, tensors: bool) -> Gradients:
        x, y, _ = saved_values(node, tensors)
        shapes, params = node.shapes, node.params
        gx = gy = None
        if node.edges[0] is not None:
            gx = self.transposes[0](g, shapes[0], y, **params)
            if gx.shape != shapes[0]:
                gx = sum_to(gx, shape=shapes[0])
        if node.edges[1] is not None:
            gy = self.transposes[1](g, x, shapes[1], **params)
            if gy.shape != shapes[1]:
                gy = sum_to(gy, shape=shapes[1])
        return gx, gy

    def jvp(
        self, tangents: Tangents, out: Value, inputs: Sequence[Value], params: dict[str, Any]
    ) -> Value:
        (x, y), (tx, ty) = inputs, tangents
        if tx is None:
            return self(x, ty, **params)
        if ty is None:
            return self(tx, y, **params)
        return self(tx, y, **params) + self(x, ty, **params)


class Primitive(Op):
    """An operation with rules by hand.

    ``vjp(g, out, *inputs, needs, **params)`` returns a tuple with a gradient for each input;
    ``needs[i]`` says whether the i-th is wanted (None is fine where it is not).
    ``jvp(tangents, out, *inputs, **params)`` returns the tangent of the output; a tangent is None
    where it is zero. With several outputs, ``out``, ``g`` and the tangent are tuples.
    """

    saves_out = True

    def __init__(
        self,
        name: str,
        vjp: Callable[..., Gradients],
        jvp: Callable[..., Tangent],
        batch: Rule | str | None,
        kernel: str | None = None,
        saves_out: bool = True,
    ):
        super().__init__(name, batch, kernel)
        self.vjp_rule = vjp
        self.jvp_rule = jvp
        self.saves_out = saves_out

    def vjp(self, node: Node, g: Value, tensors: bool) -> Gradients:
        *inputs, out = saved_values(node, tensors)
        needs = [edge is not None for edge in node.edges]
        grads = self.vjp_rule(g, out, *inputs, needs=needs, **node.params)
        shapes = node.shapes
        return [
            gi if gi is None or gi.shape == shapes[i] else sum_to(gi, shape=shapes[i])
            for i, gi in enumerate(grads)
        ]

    def jvp(
        self, tangents: Tangents, out: Value, inputs: Sequence[Value], params: dict[str, Any]
    ) -> Tangent:
        return self.jvp_rule(tangents, out, *inputs, **params)


class Conjugated(Op):
    """The reverse rule of an operation on complex numbers.

    Rules are written for real numbers: ``gx = g f'(x)``. The gradient of a real loss needs
    ``gx = g conj(f'(x))``, which is the same rule between two conjugations.
    """

    def __init__(self, op: Op):
        if not op.holomorphic:
            raise RuntimeError(f"{op.name}: the derivative for complex numbers is not available")
        self.op = op
        self.name = op.name
        self.raw = op.raw
        self.saves_out = op.saves_out
        self.is_view, self.may_copy = op.is_view, op.may_copy

    def save(self, inputs: tuple[Tensor, ...], edges: Edges) -> Saved:
        return self.op.save(inputs, edges)

    def vjp(self, node: Node, g: Value, tensors: bool) -> Gradients:
        conj = REGISTRY["conj"]
        return [None if p is None else conj(p) for p in self.op.vjp(node, conj(g), tensors)]


def _reads(differential: Differential | None, arity: int) -> tuple[int, ...]:
    """The positions (inputs, then output) of the values that a differential names."""
    if differential is None:
        return ()
    positions = {"x": 0, "y": 1, "z": 2, "out": arity}
    return tuple(positions[name] for name in _named(differential) if name in positions)


def _reads_params(differential: Differential | None) -> tuple[str, ...]:
    if differential is None:
        return ()
    return tuple(name for name in _named(differential) if name not in ("x", "y", "z", "out"))


def _named(differential: Differential) -> tuple[str, ...]:
    code = differential.__code__
    return code.co_varnames[1 : code.co_argcount]


# Broadcasting and its transpose: the one place where broadcasting is undone.
sum_to = Linear(
    "sum_to", lambda g, shape_in, shape: broadcast_to(g, shape=shape_in), batch="sum_to"
)
broadcast_to = Linear(
    "broadcast_to",
    lambda g, shape_in, shape: sum_to(g, shape=shape_in),
    batch="broadcast_to",
    is_view=True,
)
