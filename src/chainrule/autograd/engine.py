"""Reverse mode: ``backward``, which adds to the leaves, and ``grad``, which returns."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, overload

from chainrule.ops.elementwise.functions import zeros_like_of
from chainrule.autograd.hooks import hooks_left, run_after, run_hooks
from chainrule.autograd.roots import Cotangents, any_boxed, recording, roots_of, sequence
from chainrule.autograd.vmap import vmap
from chainrule.autograd.walk import leading_to, walk, youngest_first
from chainrule.backend import K
from chainrule.graph import Node
from chainrule.ops.core.recording import edge_of
from chainrule.tensor import OtherLayout, Tensor, of_array

__all__ = ["backward", "grad", "watch_backward"]

ARRAY = K.Array


def backward(
    tensors: Tensor | Iterable[Tensor],
    grad_tensors: Cotangents = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Iterable[Tensor] | None = None,
) -> None:
    """Adds the gradients of ``tensors`` to the ``.grad`` of every leaf they were computed from.

    As a method, ``loss.backward(gradient=None, retain_graph=None, create_graph=False,
    inputs=None)``.

    >>> import chainrule
    >>> x = chainrule.tensor(3.0, requires_grad=True)
    >>> y = x * x
    >>> chainrule.autograd.backward([y, 2 * x])  # of their sum
    >>> x.grad
    tensor(8.)
    """
    tensors = sequence(tensors)
    on_tensors = create_graph or any_boxed(tensors, grad_tensors)
    roots, gradients = roots_of("backward", tensors, grad_tensors, on_tensors)
    given = {id(g) for g in gradients.values()}
    order = youngest_first(roots)
    wanted: set[Any] = set()
    if inputs is not None:
        inputs = sequence(inputs)
        wanted = {edge_of(t) for t in inputs}
        order = leading_to(order, wanted)
    keep = create_graph if retain_graph is None else retain_graph
    if on_tensors:
        with recording(create_graph, tensors, grad_tensors):
            walk(gradients, order, wanted, True, keep)
    else:
        walk(gradients, order, wanted, False, keep)
    if inputs is not None:
        for t in inputs:
            edge = edge_of(t)
            if edge in gradients:
                _accumulate(t, gradients[edge], on_tensors, given)
        return
    owned = K.owned
    for leaf, g in gradients.items():
        if leaf._grad is None and leaf._hooks is None and not on_tensors and g.__class__ is ARRAY:
            # What _accumulate does, for the leaves of a network in training.
            key = id(g)
            leaf._grad = of_array(owned(g, key in given))
            given.add(key)
        else:
            _accumulate(leaf, g, on_tensors, given)


def watch_backward(
    tensor: Tensor, gradient: Tensor | None, observe: Callable[[Node, Any, Sequence[Any]], None]
) -> None:
    """A backward pass that changes nothing: ``observe(node, gradient, parts)`` at each node."""
    roots, gradients = roots_of("explain", [tensor], gradient, False)
    walk(gradients, youngest_first(roots), set(), False, True, observe)


def _accumulate(leaf: Tensor, g: Any, on_tensors: bool, given: set[int]) -> None:
    """Adds a gradient to a leaf's ``.grad``."""
    if leaf._hooks is not None:
        g = run_hooks(leaf._hooks, g, on_tensors)
    old = leaf._grad
    if isinstance(old, OtherLayout) or isinstance(g, OtherLayout):
        own = g if isinstance(g, (Tensor, OtherLayout)) else of_array(g)
        leaf._grad = own if old is None else own + old
    elif on_tensors:
        leaf._grad = g if old is None else old + g
    elif old is None:
        # The gradient becomes the user's own: no memory shared with another leaf or an input.
        key = id(g)
        leaf._grad = of_array(K.owned(g, key in given))
        given.add(key)
    else:
        old.array = K.write_into(K.add, old.array, old.array, g)
    if leaf._hooks is not None:
        run_after(leaf)


@overload
def grad(
    outputs: Tensor | Iterable[Tensor],
    inputs: Tensor | Iterable[Tensor],
    grad_outputs: Cotangents = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: Literal[False] | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]: ...
@overload
def grad(
    outputs: Tensor | Iterable[Tensor],
    inputs: Tensor | Iterable[Tensor],
    grad_outputs: Cotangents = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    *,
    materialize_grads: Literal[True],
) -> tuple[Tensor, ...]: ...
@overload
def grad(
    outputs: Tensor | Iterable[Tensor],
    inputs: Tensor | Iterable[Tensor],
    grad_outputs: Cotangents = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]: ...
def grad(
    outputs: Tensor | Iterable[Tensor],
    inputs: Tensor | Iterable[Tensor],
    grad_outputs: Cotangents = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of ``outputs`` with respect to ``inputs``, as new tensors.

    With ``is_grads_batched`` the first dimension of each of ``grad_outputs`` counts vectors that
    are pulled back together. ``only_inputs`` is a relic of PyTorch's: only those are returned.

    >>> import chainrule
    >>> x = chainrule.tensor(2.0, requires_grad=True)
    >>> (first,) = chainrule.autograd.grad(x**3, x, create_graph=True)
    >>> chainrule.autograd.grad(first, x)
    (tensor(12.),)
    """
    if not only_inputs:
        text = "grad: only_inputs=False changes nothing; backward() adds to all leaves"
        warnings.warn(text, FutureWarning, stacklevel=2)
    outputs, asked = sequence(outputs), sequence(inputs)
    if is_grads_batched:
        settings = (retain_graph, create_graph, True, allow_unused, False, materialize_grads)
        return _batched(outputs, asked, grad_outputs, settings)
    inputs = [t if isinstance(t, Tensor) else t.entries for t in asked]
    on_tensors = create_graph or any_boxed(outputs, grad_outputs)
    wanted_edges = []
    for i, t in enumerate(inputs):
        edge = edge_of(t)
        if edge is None:
            raise RuntimeError(
                f"grad: one of the differentiated tensors does not require grad (input {i} of "
                f"shape {tuple(t.shape)}); call requires_grad_() on it before computing the output"
            )
        wanted_edges.append(edge)
    roots, gradients = roots_of("grad", outputs, grad_outputs, on_tensors)
    wanted = set(wanted_edges)
    order = leading_to(youngest_first(roots), wanted)
    keep = create_graph if retain_graph is None else retain_graph
    if on_tensors:
        with recording(create_graph, outputs, grad_outputs):
            walk(gradients, order, wanted, True, keep)
    else:
        walk(gradients, order, wanted, False, keep)
    results: list[Any] = []
    g: Any
    for i, (t, edge) in enumerate(zip(inputs, wanted_edges, strict=True)):
        g = gradients.get(edge)
        if g is None:
            if not (allow_unused or materialize_grads):
                raise RuntimeError(
                    f"grad: one of the differentiated tensors (input {i} of shape "
                    f"{tuple(t.shape)}) appears to not have been used in the graph; set "
                    "allow_unused=True if this is the desired behavior"
                )
            g = zeros_like_of(t) if materialize_grads else None
        elif not isinstance(g, (Tensor, OtherLayout)):
            g = of_array(K.asarray(g))
        if g is not None:
            g = run_hooks(hooks_left(edge, order), g, True)
            whole: Any = asked[i]
            if whole is not t:
                g = whole.gradient_of(g)
        results.append(g)
    return tuple(results)


def _batched(
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    grad_outputs: Cotangents,
    settings: tuple[Any, ...],
) -> tuple[Tensor | None, ...]:
    """The gradients for each of many vectors, along dimension 0; None where there are none."""
    vectors = [None] * len(outputs) if grad_outputs is None else list(sequence(grad_outputs))
    if all([v is None for v in vectors]):
        raise RuntimeError(
            "grad: is_grads_batched=True needs grad_outputs, a batch of vectors each"
        )
    used: list[bool] = []

    def pulled(*some: Tensor) -> tuple[Tensor, ...]:
        left = iter(some)
        filled = [None if v is None else next(left) for v in vectors]
        found = grad(outputs, inputs, filled, *settings)
        used[:] = [g is not None for g in found]
        return tuple(g for g in found if g is not None)

    rows = iter(vmap(pulled)(*[v for v in vectors if v is not None]))
    return tuple(next(rows) if there else None for there in used)
