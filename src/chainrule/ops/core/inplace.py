"""Changing a tensor in place: ``x += y``, ``x.mul_(y)``, ``x[i] = y``.

The new value is computed as a new tensor, with its history; then it is written into the old memory
and the old tensor takes over that history. Where nobody else sees the old memory, the tensor takes
over the new one instead: the copy is spared, and what was computed is not held twice. If the tensor
is a view, its base takes over a history in which part of it was replaced (:data:`overlay`), and
every view of that base gets its own history anew when it is next used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from sys import getrefcount
from typing import Any

from chainrule.ops.core.arguments import placed_like
from chainrule.backend import K
from chainrule.ops.elementwise.functions import zeros_like_of
from chainrule.ops.elementwise.logic import where
from chainrule.ops.core.pointwise import F32, F64, BinaryFunction
from chainrule.ops.core.promotion import cast
from chainrule.ops.core.apply import INFERENCE
from chainrule.ops.core.out import check_memory, touch
from chainrule.ops.core.recording import edge_of, record
from chainrule.ops.core.primitive import REGISTRY, Op
from chainrule.graph import Box, Edges, Mode, Node, Saved, Storage, View, mode, next_seq, repeated
from chainrule.tensor import Size, Tensor, of_array
from chainrule.typing import Gradients, Operand, Value

__all__ = ["assign", "in_place", "in_place_operator", "in_place_view", "touch"]


class Overlay(Op):
    """``base`` with the part that a view shows replaced by ``value``; linear in both."""

    def __init__(self) -> None:
        self.name = "overlay"
        self.batch = None

    def on_complex_numbers(self) -> Op:
        return self  # elements or parts of them are kept or replaced: nothing is to be conjugated

    def save(self, inputs: tuple[Tensor, ...], edges: Edges) -> Saved:
        return None

    def vjp(self, node: Node, g: Value, tensors: bool) -> Gradients:
        steps, shown = node.params["steps"], node.params["shown"]
        t = g if isinstance(g, Tensor) else of_array(g)
        parts = _replaced(shown, zeros_like_of(t), t), repeated(steps, t)
        return parts if tensors else tuple(p.array for p in parts)


overlay = Overlay()


PARTS = {"imag", "real", "view_as_complex", "view_as_real"}  # views that take elements apart


def _shown(view: View, base: Tensor) -> Tensor:
    """Which elements of its base a view shows; of a complex base that it takes apart, which of
    their real and imaginary parts, in a last dimension of size 2.

    The elements are numbered, and the view shows their numbers.
    """
    shape = tuple(base.shape)
    in_parts = any([op.name in PARTS for op, _ in view.steps])
    pairs = in_parts and base.is_complex()
    if pairs:
        shape += (2,)
    size = Size(shape).numel()
    numbers = K.arange(0, size, 1, "float64" if in_parts else "int64").reshape(shape)
    found = view.replay(of_array(K.view_as_complex(numbers) if pairs else numbers)).array
    if in_parts:
        found = K.astype(K.view_as_real(found) if found.dtype.kind == "c" else found, "int64")
    mask = K.write_index(K.zeros(size, "bool"), found.reshape(-1), True)
    return placed_like(base, of_array(mask.reshape(shape)))


def _replaced(shown: Tensor, value: Tensor, base: Tensor) -> Tensor:
    """``value`` where it is shown, ``base`` elsewhere."""
    if shown.ndim == base.ndim:
        return where(shown, value, base)
    apart = REGISTRY["view_as_real"]
    return REGISTRY["view_as_complex"](where(shown, apart(value), apart(base)))


def check_writable(x: Tensor, op: str) -> None:
    """Refuses the changes in place that PyTorch refuses."""
    if not isinstance(x.array, Box):
        check_memory(x, op)
    if not mode.flags & Mode.GRAD:
        return
    if x.requires_grad and x._node is None:
        raise RuntimeError(
            f"{op}: a leaf Variable that requires grad is being used in an in-place operation; "
            "update it under chainrule.no_grad(), or make a new tensor instead"
        )
    view = x._view
    if view is not None and view.base._node is None and view.base.needs_grad:
        raise RuntimeError(
            f"{op}: a view of a leaf Variable that requires grad is being used in an in-place "
            "operation; update it under chainrule.no_grad(), or clone() first"
        )


def touch_all(tensors: Sequence[Tensor]) -> None:
    """The same for many, at one moment."""
    now = next_seq()
    for x in tensors:
        store = x._store
        if store is None:
            store = x.storage()
        if store is not INFERENCE:
            store.last_write = now


def assign(
    x: Tensor, value: Tensor, op: str, since: int | None = None, fresh: bool = False
) -> Tensor:
    """Writes ``value`` (computed from x or not) into x, with its history.

    Where a composition computed it, ``since`` is the number of the moment before: every node that
    was made after it keeps what it needs of the old value of x. ``fresh`` promises that the value
    is a tensor which the caller made for this and nobody else has.
    """
    check_writable(x, op)
    if value.array.shape != x.array.shape:
        raise RuntimeError(
            f"{op}: output with shape {tuple(x.shape)} doesn't match the broadcast shape "
            f"{tuple(value.shape)}; a change in place cannot change the shape"
        )
    if value.array.dtype != x.array.dtype:
        if value.dtype.category > x.dtype.category:
            raise RuntimeError(
                f"{op}: result type {value.dtype} can't be cast to the desired output type "
                f"{x.dtype}; use the operation that makes a new tensor"
            )
        if since is None and value._node is not None:
            since = value._node.seq - 1
        value = cast(value, x.dtype)
    moves = fresh and _can_move(x, value)
    if value._node is not None:
        _keep_old_value(x, value._node, since, moves)
    if moves and x._store is not INFERENCE:
        x._store = Storage()  # other memory: what was saved of the old one stays as it was
    x.array = value.array if moves or _is_boxed(x, value) else K.write(x.array, value.array)
    touch(x)
    adopt(x, value)
    return x


class _Holder:
    """Something with an array that nobody else has."""

    def __init__(self) -> None:
        self.array = object()


def _holders(x: Tensor | _Holder) -> int:
    """How many there are who have the array of x; views of it have it, too."""
    return getrefcount(x.array)


_ALONE = _holders(_Holder())
LARGE = 1 << 16  # bytes from which a copy takes longer than to find out that none is needed


def _is_alone(x: Tensor) -> bool:
    """Whether nobody but x has its memory, and its own node, to read from it."""
    read = x._node is not None and x._node.out is x.array
    return x._view is None and _holders(x) == _ALONE + read


def _can_move(x: Tensor, value: Tensor) -> bool:
    """Whether nobody could tell that x gets the memory of the value, instead of a copy of it."""
    if isinstance(x.array, Box) or isinstance(value.array, Box) or x.array.nbytes < LARGE:
        return False
    if x.array.__class__ is not value.array.__class__:  # drawn on the host, for a device
        return False
    if not (_is_alone(x) and _is_alone(value)):
        return False
    old, new = x.array, value.array
    return old.strides == new.strides and old.flags.owndata and new.flags.owndata


def _is_boxed(x: Tensor, value: Tensor) -> bool:
    level = x.array.level if isinstance(x.array, Box) else 0
    if isinstance(value.array, Box) and value.array.level > level:
        raise RuntimeError(
            f"in-place: the tensor to be changed lies outside {value.array.transformation} and the "
            "new value inside it; make a new tensor instead of changing one in place, or make the "
            "one to be changed there, with zeros_like(...) of a tensor inside"
        )
    return isinstance(x.array, Box)


def _keep_old_value(x: Tensor, last: Node, since: int | None, moves: bool) -> None:
    """If the new history needs what the memory of x held before, keeps a copy of it there, or the
    memory itself if x ``moves`` out of it."""
    store = x._store
    copies: dict[int, Tensor] = {}
    nodes, seen = [last], {last}
    for node in nodes:
        for t in node.saved or ():
            if t is x or (t is not None and store is not None and t._store is store):
                if id(t) not in copies:
                    copies[id(t)] = _copy_of(t, moves)
        if copies and node.saved:
            node.saved = tuple([copies.get(id(t), t) for t in node.saved])
        if since is not None:
            for edge in node.edges:
                if edge.__class__ is Node and edge.seq > since and edge not in seen:
                    seen.add(edge)
                    nodes.append(edge)


def _copy_of(t: Tensor, moves: bool) -> Tensor:
    """The same value and history in memory of its own."""
    old = of_array(t.array if moves or isinstance(t.array, Box) else K.copy(t.array))
    old._node, old.needs_grad = t._node, t.needs_grad
    return old


def adopt(x: Tensor, value: Tensor) -> None:
    """Gives x the history of the value that was written into it."""
    before = x._node
    _take_history(x, value)
    if x._node is not before and "retains_grad" in x.__dict__:
        x.__dict__["retains_grad"].move_to(x._node)


def _take_history(x: Tensor, value: Tensor) -> None:
    view = x._view
    if view is not None:
        if mode.flags & Mode.GRAD and (value.needs_grad or view.base.requires_grad):
            _rebase(x, value)
        elif isinstance(x.array, Box):
            _rebase(x, value)
        return
    if mode.flags & Mode.GRAD:
        x._node, x.needs_grad = value._node, value.needs_grad
        if x._node is not None:
            # The node is younger than the write, so that it does not count as changed by it.
            x._node.seq = next_seq()
            if x._node.out is x.array:
                x._node.extras().store = x._store
    elif not isinstance(x.array, Box):
        return
    if x._store is not None and x._store is not INFERENCE:
        x._store.rebased = next_seq()


def _rebase(x: Tensor, value: Tensor) -> None:
    """Writes the change of a view into the history of its base."""
    view = x._view
    base = view.base
    if base._view is not None:
        raise RuntimeError(
            "in-place: the tensor that this is a view of was given another shape in place (by "
            "squeeze_, transpose_ or the like) after the view was taken; take the view afterwards"
        )
    recording = mode.flags & Mode.GRAD
    if recording and view.made_without_grad and base.requires_grad and value.needs_grad:
        raise RuntimeError(
            "in-place: a view was created in no_grad mode and is being modified inplace with grad "
            "mode enabled; take the view inside the same mode, or clone() it"
        )
    shown = _shown(view, base)
    params = {"steps": view.steps, "shown": shown}  # not the view: its base holds this node
    edges = (edge_of(base), edge_of(value))
    if isinstance(base.array, Box):
        base.array = _overlay_value(base, value, view, shown).array
    if recording and any([e is not None for e in edges]):
        new = record(overlay, (base, value), edges, params, base.array)
        base._node, base.needs_grad = new._node, True
    x._store.rebased = next_seq()
    x._refresh()


def _overlay_value(base: Tensor, value: Tensor, view: View, shown: Tensor) -> Tensor:
    """The value of an overlay without shared memory: the view's transpose puts it back."""
    for i in range(len(view.steps), 0, -1):
        op, params = view.steps[i - 1]
        before = repeated(view.steps[: i - 1], base)
        value = op.transpose(value, tuple(before.shape), **params)
    return _replaced(shown, value, base)


def in_place(function: Callable[..., Tensor], name: str) -> Callable[..., Tensor]:
    """The method ``name`` that changes its tensor in place to what ``function`` computes."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        since = next_seq()
        value = function(self, *args, **kwargs)
        given = (self, *args, *kwargs.values())
        fresh = value._node is not None and not any([value is t for t in given])
        return assign(self, value, name, since, fresh)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"In-place version of ``{function.__name__}``."
    update_wrapper(method, function, assigned=(), updated=())  # whose signature it has
    return method


def in_place_view(function: Callable[..., Tensor], name: str) -> Callable[..., Tensor]:
    """The method ``name`` that makes its tensor the view of itself which ``function`` gives."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if mode.flags & Mode.GRAD and self._node is None and self.requires_grad:
            raise RuntimeError(
                f"{name}: a leaf Variable that requires grad is being used in an in-place "
                f"operation; use {function.__name__}, which makes a new tensor"
            )
        before, node = self.__copy__(), self._node
        out = function(before, *args, **kwargs)
        self.array, self._node, self.needs_grad = out.array, out._node, out.needs_grad
        if self._store is not None:  # it may have views, which keep the tensor it was as their base
            self._view = out._view
        if self._node is not node and "retains_grad" in self.__dict__:
            self.__dict__["retains_grad"].move_to(self._node)
        return self

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"In-place version of ``{function.__name__}``."
    method.__wrapped__ = function  # type: ignore[attr-defined]  # whose signature it has
    return method


def in_place_operator(function: BinaryFunction, name: str) -> Callable[[Tensor, Operand], Tensor]:
    """``x += y`` and its like, without a temporary where nothing is recorded and the types fit."""
    general = in_place(function, name)
    op = function.op

    def operator(self: Tensor, other: Operand) -> Tensor:
        a = self.array
        if mode.flags or self._view is not None or (a.dtype is not F32 and a.dtype is not F64):
            return general(self, other)
        b: Any = other.array if isinstance(other, Tensor) else other
        if b.__class__ is not float:
            if not isinstance(other, Tensor) or b.dtype is not a.dtype or b.shape != a.shape:
                return general(self, other)
        self.array = K.write_into(op.raw, a, a, b)
        touch(self)
        return self

    operator.__name__ = operator.__qualname__ = name
    return operator
