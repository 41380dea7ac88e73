"""Recomputation: a part of the graph is not kept, but made again when the backward pass needs it.

:func:`recomputed` calls a function, looks at the graph it made, and puts one node in its place. The
node has an edge for everything outside that the graph hangs on: the arguments, and parameters and
tensors that the function found by itself. In the backward pass it calls the function again and
walks the new graph down to the same edges. On tensors (``create_graph=True``) that graph is kept,
so derivatives of any order are the same as without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from chainrule.autograd.modes import enable_grad
from chainrule.autograd.nested import Structure, flatten, unflatten
from chainrule.autograd.walk import walk
from chainrule.backend import K
from chainrule.graph import Edge, Mode, Node, mode, next_seq
from chainrule.ops.core.mixing import autocasting
from chainrule.ops.core.primitive import Op
from chainrule.ops.core.recording import record
from chainrule.random import default_generator, fork_rng
from chainrule.tensor import Tensor

__all__ = ["CheckpointError", "recomputed"]

Context = AbstractContextManager[Any]


class CheckpointError(RuntimeError):
    """A function that was called again did not compute the same as the first time."""


class _Again(Op):
    """One call of a function, standing in the graph in place of all that it computed."""

    materializes_grads = False

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: tuple[list[Any], Structure],
        state: Any,
        context: Context,
    ):
        self.name = "checkpoint"
        self.function = function
        leaves, self.structure = arguments
        # The tensors among the arguments are kept in the node, which forgets them after use.
        self.rest = [None if isinstance(a, Tensor) else a for a in leaves]
        self.places = [i for i, a in enumerate(leaves) if isinstance(a, Tensor)]
        self.state = state
        self.context = context
        self.autocast = mode.autocast
        self.kinds: list[tuple[tuple[int, ...], str]] = []
        self.checks = True

    def on_complex_numbers(self) -> Op:
        return self  # the rules of what it computes know what they compute with

    def vjp(self, node: Node, g: Any, tensors: bool) -> Sequence[Any]:
        leaves = list(self.rest)
        for place, t in zip(self.places, node.saved, strict=False):
            leaves[place] = t
        args, kwargs = unflatten(leaves, self.structure)
        start = next_seq()
        with enable_grad(), self._random_numbers(), autocasting(self.autocast), self.context:
            out = self.function(*args, **kwargs)
        made = _made_since(start, flatten(out)[0])
        self._check(made)
        gradients: dict[Any, Any] = {}  # by node, and by leaf in the end
        for t, part in zip(made, g if isinstance(g, tuple) else (g,), strict=False):
            if part is not None:
                gradients[t._node] = part
        order, outside = _between(list(gradients), start)
        if self.checks and not set(outside) <= set(node.edges):
            raise CheckpointError(
                "checkpoint: the function used other tensors when it was called again in the "
                "backward pass than the first time; it must depend on nothing that has changed "
                "since, and change no tensor in place that it did not make"
            )
        walk(gradients, order, set(), tensors, keep=tensors)
        return [gradients.get(edge) for edge in node.edges]

    @contextmanager
    def _random_numbers(self) -> Iterator[None]:
        """Those of the first call."""
        if self.state is None:
            yield
            return
        with fork_rng():
            default_generator.set_state(self.state)
            yield

    def _check(self, made: list[Tensor]) -> None:
        now = _kinds(made)
        if self.checks and now != self.kinds:
            raise CheckpointError(
                "checkpoint: Recomputed values have different metadata than during the forward "
                f"pass: {_in_words(self.kinds)} then, {_in_words(now)} now; the function must "
                "compute the same when it is called again"
            )


def recomputed(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    *,
    preserve_rng_state: bool = True,
    contexts: tuple[Context, Context] | None = None,
    check: bool = True,
) -> Any:
    """What the function returns, with a graph of one node that calls it again when it is needed.

    Inside a transformation (``func.grad``, ``vmap``, forward mode), and where the function changes
    its arguments in place, so that it cannot be called with them again, the graph is kept.
    """
    first, again = contexts or (nullcontext(), nullcontext())
    state = default_generator.get_state() if preserve_rng_state else None
    start = next_seq()
    with first:
        out = function(*args, **kwargs)
    if mode.flags & Mode.BOXED or not mode.flags & Mode.GRAD:
        return out
    leaves, structure = flatten(out)
    made = _made_since(start, leaves)
    arguments = flatten((args, dict(kwargs)))
    op = _Again(function, arguments, state, again)
    given = [arguments[0][i] for i in op.places]
    if not made or any(t._version > start for t in given):
        return out
    op.kinds, op.checks = _kinds(made), check
    edges = tuple(_between([t._node for t in made], start)[1])
    # Found by the function itself; kept so that a change of them before the second call is noticed.
    found = [e for e in edges if isinstance(e, Tensor) and not any(e is t for t in given)]
    arrays = tuple([_own_array(t, made, start) for t in made])
    recorded = record(op, (*given, *found), edges, {}, arrays if len(made) > 1 else arrays[0])
    outputs = recorded if len(made) > 1 else (recorded,)
    replaced = {id(t): o for t, o in zip(made, outputs, strict=True)}
    return unflatten([replaced.get(id(leaf), leaf) for leaf in leaves], structure)


def _made_since(start: int, leaves: list[Any]) -> list[Tensor]:
    """The tensors with a history that began after ``start``, each once."""
    found = {
        id(t): t
        for t in leaves
        if isinstance(t, Tensor) and t.requires_grad and t._node is not None
    }
    return [t for t in found.values() if t._node.seq > start]


def _between(roots: Sequence[Node], start: int) -> tuple[list[Node], list[Edge]]:
    """The nodes below the roots that were made after ``start``, youngest first; and the older
    nodes and leaves that these hang on."""
    inside, outside = set(roots), dict[Edge, None]()
    stack = list(inside)
    while stack:
        for edge in stack.pop().edges:
            if edge is None or edge in inside:
                continue
            if edge.__class__ is Node and edge.seq > start:
                inside.add(edge)
                stack.append(edge)
            else:
                outside[edge] = None
    return sorted(inside, key=lambda node: node.seq, reverse=True), list(outside)


def _own_array(t: Tensor, made: list[Tensor], start: int) -> Any:
    """The array of an output; a copy if it shares the memory of a tensor outside or of another
    output, which a later change in place would have to know of."""
    if t._view is None:
        shared = any(o is not t and o._store is t._store for o in made if o._store is not None)
    else:
        base = t._view.base._node
        shared = base is None or base.seq < start or len(made) > 1
    return K.copy(t.array) if shared else t.array


def _kinds(tensors: list[Tensor]) -> list[tuple[tuple[int, ...], str]]:
    return [(tuple(t.shape), t.dtype.name) for t in tensors]


def _in_words(kinds: list[tuple[tuple[int, ...], str]]) -> str:
    return ", ".join([f"{dtype} of shape {shape}" for shape, dtype in kinds]) or "nothing"
