"""Reverse mode: one walk over the graph, from the youngest node to the oldest.

Nodes are numbered as they are made, so "youngest first" is an order in which every node comes
before the nodes of its inputs: when a node is reached, its gradient is complete. The walk is a
loop, not a recursion, and has two ways: on bare arrays (an ordinary backward pass, which records
nothing), or on tensors (``create_graph=True``, and inside transformations), where the rules build a
graph themselves.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from chainrule.autograd.anomaly import check_gradients
from chainrule.autograd.hooks import hooks_left, run_hooks
from chainrule.autograd.modes import enable_grad, no_grad
from chainrule.backend import K
from chainrule.ops.core.pointwise import constant
from chainrule.ops.core.apply import edge_of, INFERENCE, SELECT
from chainrule.graph import Box, Mode, Node, mode
from chainrule.tensor import Tensor

__all__ = ["backward", "grad", "watch_backward"]

_by_age = operator.attrgetter("seq")
FREED = ("freed",)  # stands in place of what a node saved once the graph has been used


def _youngest_first(roots: Sequence[Any]) -> list[Node]:
    """Every node that the roots were computed from, in the order of the walk."""
    seen = {root for root in roots if root.__class__ is Node}
    stack = list(seen)
    while stack:
        for edge in stack.pop().edges:
            if edge.__class__ is Node and edge not in seen:
                seen.add(edge)
                stack.append(edge)
    return sorted(seen, key=_by_age, reverse=True)


def _leading_to(order: list[Node], wanted: set[Any]) -> list[Node]:
    """Of the nodes in the order of the walk, those through which a wanted input is reached."""
    useful = set()
    for node in reversed(order):
        for edge in node.edges:
            if edge is not None and (edge in wanted or edge in useful):
                useful.add(node)
                break
    return [node for node in order if node in useful]


def _walk(
    gradients: dict[Any, Any],
    order: list[Node],
    wanted: set[Any],
    tensors: bool,
    keep: bool,
    observe: Callable[[Node, Any, Sequence[Any]], None] | None = None,
) -> None:
    """Carries the gradients of the roots down to the leaves (and to the wanted nodes)."""
    if mode.flags & Mode.ANOMALY:
        observe = check_gradients
    add = operator.add if tensors else K.add
    for node in order:
        g = gradients.get(node) if wanted and node in wanted else gradients.pop(node, None)
        if g is None:
            continue
        if node.extra is not None:
            g = _extra_work(gradients, node, g, wanted, tensors)
        op = node.op
        if op is SELECT:
            _hand_to_parent(gradients, node, g)
            continue
        saved = node.saved
        if saved is not None:
            if saved is FREED:
                raise _used_before(node)
            for t in saved:
                if t is not None and t._store is not None and t._store.last_write > node.seq:
                    raise _changed(node, t._store, "an input")
        if g.__class__ is list:
            g = _fill_missing(node, g, tensors)
        parts = op.vjp(node, g, tensors)
        if observe is not None:
            observe(node, g, parts)
        for edge, part in zip(node.edges, parts):  # noqa: B905 (a check at every node is too dear)
            if edge is not None and part is not None:
                if edge in gradients:
                    gradients[edge] = add(gradients[edge], part)
                else:
                    gradients[edge] = part
        if not keep and (saved is not None or node.out is not None):
            node.saved = FREED
            node.out = None


def _extra_work(
    gradients: dict[Any, Any], node: Node, g: Any, wanted: set[Any], tensors: bool
) -> Any:
    """Runs a node's hooks, and checks that a saved output was not written to since."""
    extra: Any = node.extra
    if node.out is not None and extra.store is not None and extra.store.last_write > node.seq:
        raise _changed(node, extra.store, "the output")
    if extra.hooks:
        g = run_hooks(extra.hooks, g, tensors)
        if node in wanted:
            gradients[node] = g
    return g


def _hand_to_parent(gradients: dict[Any, Any], node: Node, g: Any) -> None:
    """Puts the gradient of one of several outputs into its place in the list of their node."""
    parent, i = node.edges[0], node.params["index"]
    if parent.saved is FREED:
        raise _used_before(parent)
    parts = gradients.setdefault(parent, [None] * len(parent.out))
    parts[i] = g if parts[i] is None else parts[i] + g


def _fill_missing(node: Node, parts: list[Any], tensors: bool) -> tuple[Any, ...]:
    """Zeros for the outputs that were not used, unless the operation wants None for them."""
    if not node.op.materializes_grads:
        return tuple(parts)
    filled = []
    for part, out in zip(parts, node.out, strict=True):
        if part is None:
            zero = K.zeros(out.shape, out.dtype)
            part = Tensor(zero) if tensors else zero
        filled.append(part)
    return tuple(filled)


def _used_before(node: Node) -> RuntimeError:
    return RuntimeError(
        f"backward: trying to backward through the graph a second time ({node.name()}), but the "
        f"saved "
        "values have been freed; pass retain_graph=True to the first backward call if you need a "
        "second"
    )


def _changed(node: Node, store: Any, what: str) -> RuntimeError:
    if store is INFERENCE:
        return RuntimeError(
            f"backward: {what} of {node.name()} was made in inference_mode; inference tensors "
            f"cannot "
            "be saved for backward. Use no_grad instead of inference_mode, or clone the tensor "
            "first"
        )
    return RuntimeError(
        f"backward: one of the variables needed for gradient computation has been modified by an "
        f"inplace operation: {what} of {node.name()} was changed after it was saved. Use an "
        "operation that makes a new tensor (x = x + 1, not x += 1), or clone() before changing it; "
        "autograd.detect_anomaly() shows the line that saved it"
    )


def _roots(
    op: str, tensors: Sequence[Tensor], cotangents: Any, on_tensors: bool
) -> tuple[list[Any], dict[Any, Any]]:
    """The edges of the outputs and their gradients."""
    if cotangents is None:
        if len(tensors) == 1 and not on_tensors and not tensors[0].array.ndim:  # a loss
            edge = edge_of(tensors[0])
            if edge is not None:
                return [edge], {edge: constant(1.0, tensors[0].array.dtype)}
        cotangents = [None] * len(tensors)
    elif isinstance(cotangents, Tensor):
        cotangents = [cotangents]
    if len(cotangents) != len(tensors):
        raise RuntimeError(f"{op}: got {len(tensors)} tensors and {len(cotangents)} gradients")
    edges: list[Any] = []
    gradients: dict[Any, Any] = {}
    for i, (t, g) in enumerate(zip(tensors, cotangents, strict=True)):
        edge = edge_of(t)
        if edge is None:
            raise RuntimeError(
                f"{op}: element {i} of tensors does not require grad and does not have a grad_fn; "
                "was it computed under no_grad, or does nothing it depends on require grad?"
            )
        g = _cotangent(op, t, g)
        if not on_tensors:
            g = g.array
        gradients[edge] = gradients[edge] + g if edge in gradients else g
        edges.append(edge)
    return edges, gradients


def _cotangent(op: str, t: Tensor, g: Tensor | None) -> Tensor:
    if g is None:
        if t.array.size != 1:
            raise RuntimeError(
                f"{op}: grad can be implicitly created only for scalar outputs, but the tensor has "
                f"shape {tuple(t.shape)}; reduce it (for example .sum()) or pass its gradient"
            )
        if t.array.shape == ():
            return Tensor(constant(1.0, t.array.dtype))
        return Tensor(K.ones(t.array.shape, t.array.dtype))
    if not isinstance(g, Tensor):
        raise TypeError(f"{op}: gradients must be Tensors or None, not {type(g).__name__}")
    if g.array.shape != t.array.shape:
        raise RuntimeError(
            f"{op}: mismatch in shape: the gradient has shape {tuple(g.shape)} and the output has "
            f"shape {tuple(t.shape)}"
        )
    return g


def _any_boxed(outputs: Sequence[Tensor], cotangents: Any) -> bool:
    """Whether a transformation is involved: then the rules must run on tensors."""
    if not mode.flags & Mode.BOXED:
        return False
    tensors = [*outputs, *(() if cotangents is None else _sequence(cotangents))]
    return any(isinstance(t.array, Box) for t in tensors if t is not None)


def _recording(create_graph: bool, outputs: Sequence[Tensor], cotangents: Any) -> Any:
    """Whether rules on tensors record: if asked to, or if something outside may need it."""
    given = [] if cotangents is None else [g for g in _sequence(cotangents) if g is not None]
    outside = any(isinstance(t.array, Box) for t in outputs) or any(_has_history(g) for g in given)
    return enable_grad() if create_graph or outside else no_grad()


def _has_history(t: Tensor) -> bool:
    """Whether a tensor, or one that it holds in a box, came from tensors that require grad."""
    if edge_of(t) is not None:
        return True
    return isinstance(t.array, Box) and any(_has_history(held) for held in t.array.held())


def _sequence(x: Any) -> Sequence[Any]:
    return (x,) if isinstance(x, Tensor) else tuple(x)


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Adds the gradients of ``tensors`` to the ``.grad`` of every leaf they were computed from.

    As a method, ``loss.backward(gradient=None, retain_graph=None, create_graph=False,
    inputs=None)``.
    """
    tensors = _sequence(tensors)
    on_tensors = create_graph or _any_boxed(tensors, grad_tensors)
    roots, gradients = _roots("backward", tensors, grad_tensors, on_tensors)
    given = {id(g) for g in gradients.values()}
    order = _youngest_first(roots)
    wanted: set[Any] = set()
    if inputs is not None:
        wanted = {edge_of(t) for t in _sequence(inputs)}
        order = _leading_to(order, wanted)
    keep = create_graph if retain_graph is None else retain_graph
    if on_tensors:
        with _recording(create_graph, tensors, grad_tensors):
            _walk(gradients, order, wanted, True, keep)
    else:
        _walk(gradients, order, wanted, False, keep)
    if inputs is not None:
        for t in _sequence(inputs):
            edge = edge_of(t)
            if edge in gradients:
                _accumulate(t, gradients[edge], on_tensors, given)
        return
    owned = K.owned
    for leaf, g in gradients.items():
        if leaf._grad is None and leaf._hooks is None and not on_tensors:
            # What _accumulate does, for the leaves of a network in training.
            key = id(g)
            leaf._grad = Tensor(owned(g, key in given))
            given.add(key)
        else:
            _accumulate(leaf, g, on_tensors, given)


def watch_backward(
    tensor: Tensor, gradient: Tensor | None, observe: Callable[[Node, Any, Sequence[Any]], None]
) -> None:
    """A backward pass that changes nothing: ``observe(node, gradient, parts)`` at each node."""
    roots, gradients = _roots("explain", [tensor], gradient, False)
    _walk(gradients, _youngest_first(roots), set(), False, True, observe)


def _accumulate(leaf: Tensor, g: Any, on_tensors: bool, given: set[int]) -> None:
    """Adds a gradient to a leaf's ``.grad``."""
    if leaf._hooks is not None:
        g = run_hooks(leaf._hooks, g, on_tensors)
    old = leaf._grad
    if on_tensors:
        leaf._grad = g if old is None else old + g
    elif old is None:
        # The gradient becomes the user's own: no memory shared with another leaf or an input.
        g = K.owned(g, id(g) in given)
        given.add(id(g))
        leaf._grad = Tensor(g)
    else:
        old.array = K.write_into(K.add, old.array, old.array, g)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """The gradients of ``outputs`` with respect to ``inputs``, as new tensors.

    >>> import chainrule
    >>> x = chainrule.tensor(2.0, requires_grad=True)
    >>> (first,) = chainrule.autograd.grad(x**3, x, create_graph=True)
    >>> chainrule.autograd.grad(first, x)
    (tensor(12.),)
    """
    outputs, inputs = _sequence(outputs), _sequence(inputs)
    on_tensors = create_graph or _any_boxed(outputs, grad_outputs)
    wanted_edges = []
    for i, t in enumerate(inputs):
        edge = edge_of(t)
        if edge is None:
            raise RuntimeError(
                f"grad: one of the differentiated tensors does not require grad (input {i} of "
                f"shape {tuple(t.shape)}); call requires_grad_() on it before computing the output"
            )
        wanted_edges.append(edge)
    roots, gradients = _roots("grad", outputs, grad_outputs, on_tensors)
    wanted = set(wanted_edges)
    order = _leading_to(_youngest_first(roots), wanted)
    keep = create_graph if retain_graph is None else retain_graph
    if on_tensors:
        with _recording(create_graph, outputs, grad_outputs):
            _walk(gradients, order, wanted, True, keep)
    else:
        _walk(gradients, order, wanted, False, keep)
    results = []
    for i, (t, edge) in enumerate(zip(inputs, wanted_edges, strict=True)):
        g = gradients.get(edge)
        if g is None:
            if not (allow_unused or materialize_grads):
                raise RuntimeError(
                    f"grad: one of the differentiated tensors (input {i} of shape "
                    f"{tuple(t.shape)}) "
                    "appears to not have been used in the graph; set allow_unused=True if this is "
                    "the desired behavior"
                )
            g = Tensor(K.zeros(t.array.shape, t.array.dtype)) if materialize_grads else None
        elif not isinstance(g, Tensor):
            g = Tensor(K.asarray(g))
        if g is not None:
            g = run_hooks(hooks_left(edge, order), g, True)
        results.append(g)
    return tuple(results)
