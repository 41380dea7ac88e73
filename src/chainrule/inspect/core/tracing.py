"""A forward pass written down: which module was called with what, and which operations ran in it.

Everything that looks at the structure of a network reads a :class:`Trace`: the summary, drawings,
counts of multiplications, the picture of a failed pass. It sees what happened, so that functional
code in ``forward``, modules that are used twice and parameters that are read without calling their
module are as visible as layers in a row.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from chainrule.autograd.modes import enable_grad, no_grad
from chainrule.graph import Node
from chainrule.inspect.core.arguments import Inputs, arguments, tensors
from chainrule.inspect.core.untouched import untouched
from chainrule.nn.module.base import Module
from chainrule.ops.core.apply import watching
from chainrule.ops.core.recording import SELECT
from chainrule.tensor import Tensor

__all__ = ["Call", "Operation", "Trace", "recorded", "trace"]


@dataclass(eq=False)
class Operation:
    """One operation as it ran: what it was given, what came out, and the call it ran in.

    ``versions`` are those of the inputs then: a tensor with a greater one later was changed in
    place in between. ``node`` is what the graph recorded, None if nothing: a tensor that is changed
    in place has another one afterwards.
    """

    number: int
    op: Any  # of chainrule.ops, with its name and rules
    inputs: tuple[Tensor, ...]
    params: dict[str, Any]
    result: Any
    call: Call
    versions: tuple[int, ...] = ()
    node: Node | None = None

    @property
    def name(self) -> str:
        """The operation's name in the registry of operations."""
        return str(self.op.name)

    @property
    def outputs(self) -> list[Tensor]:
        """The tensors that came out."""
        return tensors(self.result)


@dataclass(eq=False)
class Call:
    """One call of a module: a module that is used twice has two.

    ``path`` is the module's name in the model ("" is the model itself), and ``parent`` the call in
    which it happened. ``outputs`` is None where the call failed. ``began`` is how many operations
    had run before it.
    """

    number: int
    module: Module
    path: str
    parent: Call | None
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    output: Any = None
    finished: bool = False
    began: int = 0
    children: list[Call] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)  # its own, not those of children

    @property
    def kind(self) -> str:
        """The class of the module."""
        return type(self.module).__name__

    @property
    def depth(self) -> int:
        """How many calls this one lies in."""
        return 0 if self.parent is None else self.parent.depth + 1

    @property
    def inputs(self) -> list[Tensor]:
        """The tensors it was given."""
        return tensors((self.args, self.kwargs))

    @property
    def outputs(self) -> list[Tensor]:
        """The tensors it returned."""
        return tensors(self.output) if self.finished else []

    def below(self) -> Iterator[Call]:
        """This call and all that happened in it, in order."""
        yield self
        for child in self.children:
            yield from child.below()


@dataclass(eq=False)
class Trace:
    """A forward pass: its calls and its operations in order, and the error that ended it."""

    model: Module
    calls: list[Call] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    error: Exception | None = None

    @property
    def root(self) -> Call:
        """The call of the model itself."""
        return self.calls[0]

    @property
    def output(self) -> Any:
        """What the model returned."""
        return self.root.output

    @property
    def failed(self) -> Call | None:
        """The innermost call that did not come to its end."""
        return next((c for c in reversed(self.calls) if not c.finished), None)

    def calls_of(self, module: Module) -> list[Call]:
        """The calls of one module, in order."""
        return [c for c in self.calls if c.module is module]


class _Recorder:
    """Writes a trace: hooks tell it of the calls, the engine of the operations."""

    def __init__(self, model: Module):
        self.trace = Trace(model)
        self.paths = {id(module): path for path, module in reversed([*model.named_modules()])}
        self.open: list[Call] = []

    def enter(self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Notes that a call begins."""
        parent = self.open[-1] if self.open else None
        path = self.paths[id(module)]
        call = Call(len(self.trace.calls), module, path, parent, args, dict(kwargs))
        call.began = len(self.trace.operations)
        if parent is not None:
            parent.children.append(call)
        self.trace.calls.append(call)
        self.open.append(call)

    def leave(self, module: Module, args: tuple[Any, ...], output: Any) -> None:
        """Notes what a call returned; one that was left by an error stays open in the trace."""
        while self.open and self.open[-1].module is not module:
            self.open.pop()
        call = self.open.pop()
        call.output, call.finished = output, True

    def note(self, op: Any, inputs: tuple[Tensor, ...], params: dict[str, Any], out: Any) -> None:
        """Notes an operation."""
        if not self.open:
            return  # before or after the model
        call = self.open[-1]
        versions = tuple([t._version for t in inputs])
        node = next((t._node for t in tensors(out)), None)
        if node is not None and node.op is SELECT:  # of several outputs
            node = node.edges[0]
        found = Operation(len(self.trace.operations), op, inputs, params, out, call, versions, node)
        call.operations.append(found)
        self.trace.operations.append(found)

    @contextlib.contextmanager
    def hooked(self) -> Iterator[None]:
        """Has all modules of the model tell of their calls."""
        handles = []
        for module in self.trace.model.modules():
            # Last of the hooks before, first of those after: what runs in between is the forward.
            handles.append(module.register_forward_pre_hook(self.enter, with_kwargs=True))
            handles.append(module.register_forward_hook(self.leave, prepend=True))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()


@contextlib.contextmanager
def recorded(model: Module) -> Iterator[Trace]:
    """Writes down the calls of the model inside; the trace is there also when one fails."""
    recorder = _Recorder(model)
    with recorder.hooked(), watching(recorder.note):
        try:
            yield recorder.trace
        except Exception as error:
            recorder.trace.error = error
            raise


def trace(
    instrument: str,
    model: Module,
    inputs: Inputs,
    *,
    gradients: bool = False,
    loss: Callable[[Any], Tensor] | None = None,
    partial: bool = False,
) -> Trace:
    """The trace of one call of the model, which is left as it was.

    Args:
        instrument: whose name errors begin with.
        model: any module.
        inputs: what it is called with, see :func:`~chainrule.inspect.core.arguments.arguments`.
        gradients: whether operations are recorded for a backward pass, too.
        loss: called with the output; its operations belong to no call.
        partial: whether a pass that fails gives the trace up to there, with ``error`` set.

    >>> from chainrule import nn, ones
    >>> seen = trace("example", nn.Sequential(nn.Linear(2, 3), nn.Tanh()), ones(1, 2))
    >>> [(call.path, call.kind, [op.name for op in call.operations]) for call in seen.calls]
    [('', 'Sequential', []), ('0', 'Linear', ['linear']), ('1', 'Tanh', ['tanh'])]
    """
    args, kwargs = arguments(instrument, inputs)
    seen: Trace | None = None
    with untouched(model), enable_grad() if gradients else no_grad():
        try:
            with recorded(model) as seen:
                output = model(*args, **kwargs)
                if loss is not None:
                    loss(output)
        except Exception:
            if not partial or seen is None or not seen.calls:
                raise
    return seen
