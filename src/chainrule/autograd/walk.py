"""The walk of reverse mode over the graph, from the youngest node to the oldest.

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

from chainrule.ops.core.arguments import placed_like
from chainrule.autograd.anomaly import check_gradients
from chainrule.autograd.hooks import run_hooks
from chainrule.backend import K
from chainrule.graph import Edge, Mode, Node, Storage, mode
from chainrule.ops.core.apply import INFERENCE
from chainrule.ops.core.recording import SELECT
from chainrule.tensor import Tensor, LayoutError, OtherLayout, of_array

__all__ = ["dense_gradient", "leading_to", "walk", "watchers", "youngest_first"]

# Called with the gradients of the roots and the nodes before each walk, and whether it is one on
# tensors: by what records a step.
watchers: list[Callable[[dict[Any, Any], list[Node], bool], None]] = []
_by_age = operator.attrgetter("seq")
FREED = ("freed",)  # stands in place of what a node saved once the graph has been used


def youngest_first(roots: Sequence[Edge]) -> list[Node]:
    """Every node that the roots were computed from, in the order of the walk."""
    seen = {root for root in roots if root.__class__ is Node}
    stack = list(seen)
    while stack:
        for edge in stack.pop().edges:
            if edge.__class__ is Node and edge not in seen:
                seen.add(edge)
                stack.append(edge)
    return sorted(seen, key=_by_age, reverse=True)


def leading_to(order: list[Node], wanted: set[Edge]) -> list[Node]:
    """Of the nodes in the order of the walk, those through which a wanted input is reached."""
    useful = set()
    for node in reversed(order):
        for edge in node.edges:
            if edge is not None and (edge in wanted or edge in useful):
                useful.add(node)
                break
    return [node for node in order if node in useful]


def walk(
    gradients: dict[Any, Any],
    order: list[Node],
    wanted: set[Edge],
    tensors: bool,
    keep: bool,
    observe: Callable[[Node, Any, Sequence[Any]], None] | None = None,
) -> None:
    """Carries the gradients of the roots down to the leaves (and to the wanted nodes)."""
    if mode.flags & Mode.ANOMALY:
        observe = check_gradients
    for watcher in watchers:
        watcher(gradients, order, tensors)
    add = operator.add if tensors else K.add
    own: set[Edge] = set()  # whose gradient is an array that was made here, and nobody else has
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
        if op.adds_into is not None and not tensors and observe is None:
            if _is_added(gradients, own, node, g):
                continue
        parts = op.vjp(node, g, tensors)
        if observe is not None:
            observe(node, g, [dense_gradient(part) for part in parts])
        for edge, part in zip(node.edges, parts):  # noqa: B905 (a check at every node is too dear)
            if edge is not None and part is not None:
                if edge in gradients:
                    try:
                        gradients[edge] = add(gradients[edge], part)
                        own.add(edge)
                    except LayoutError:
                        gradients[edge] = _sum_of_layouts(gradients[edge], part)
                else:
                    gradients[edge] = part
        if not keep and (saved is not None or node.out is not None):
            node.saved = FREED
            node.out = None


def _is_added(gradients: dict[Any, Any], own: set[Edge], node: Node, g: Any) -> bool:
    """Adds the gradient of a part to that of the whole in place, if there is one to be changed."""
    edge, adds = node.edges[0], node.op.adds_into
    total = gradients.get(edge)
    if total is None:
        own.add(edge)  # the rule makes a new array, to which later parts are added
        return False
    if edge not in own or total.__class__ is not K.Array or g.__class__ is not K.Array:
        return False
    if total.dtype != g.dtype:
        return False
    gradients[edge] = adds(total, g, **node.params)
    return True


def dense_gradient(g: Any) -> Any:
    """The array of a gradient, also of a sparse one."""
    return g.to_dense().array if isinstance(g, OtherLayout) else g


def _sum_of_layouts(a: Any, b: Any) -> Any:
    """The sum of two gradients of which at least one is sparse: sparse if both are."""
    if isinstance(a, OtherLayout) and isinstance(b, OtherLayout):
        return a.operate("add", (a, b), {})
    return K.add(dense_gradient(a), dense_gradient(b))


def _extra_work(
    gradients: dict[Any, Any], node: Node, g: Any, wanted: set[Edge], tensors: bool
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
    filled, known = [], next((part for part in parts if isinstance(part, Tensor)), None)
    for part, out in zip(parts, node.out, strict=True):
        if part is None:
            zero = K.zeros(out.shape, out.dtype)
            part = of_array(zero) if tensors else zero
            part = part if known is None else placed_like(known, part)
        filled.append(part)
    return tuple(filled)


def _used_before(node: Node) -> RuntimeError:
    return RuntimeError(
        f"backward: trying to backward through the graph a second time ({node.name()}), but the "
        "saved values have been freed; pass retain_graph=True to the first backward call if you "
        "need a second"
    )


def _changed(node: Node, store: Storage, what: str) -> RuntimeError:
    if store is INFERENCE:
        return RuntimeError(
            f"backward: {what} of {node.name()} was made in inference_mode; inference tensors "
            "cannot be saved for backward. Use no_grad instead of inference_mode, or clone the "
            "tensor first"
        )
    return RuntimeError(
        f"backward: one of the variables needed for gradient computation has been modified by an "
        f"inplace operation: {what} of {node.name()} was changed after it was saved. Use an "
        "operation that makes a new tensor (x = x + 1, not x += 1), or clone() before changing it; "
        "autograd.detect_anomaly() shows the line that saved it"
    )
