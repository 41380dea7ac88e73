"""What one forward pass computes, layer by layer, while it happens."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from chainrule.autograd.hooks import RemovableHandle
from chainrule.autograd.modes import is_grad_enabled, no_grad
from chainrule.graph import mode
from chainrule.inspect.core.arguments import tensors
from chainrule.inspect.training.choosing import chosen, has_sums, label
from chainrule.inspect.training.recurrences import SEQUENCES, recurrence_of, suffix_of
from chainrule.nn.module.base import Module
from chainrule.ops.core.apply import watching
from chainrule.tensor import Tensor

__all__ = ["PassRecorder"]

# Activation functions that a forward calls as functions, by the names of their operations.
NONLINEAR = frozenset(
    (
        "relu",
        "tanh",
        "sigmoid",
        "elu",
        "gelu",
        "silu",
        "prelu",
        "softplus",
        "hardtanh",
        "binary_step",
        "log_sigmoid",
    )
)

Keep = Callable[[str, str, Tensor], None]


class PassRecorder:
    """Tells of the sums and activations of each forward pass of a model, under their names.

    Args:
        model: whose passes are seen.
        patterns: which layers.
        what: of "activation" and "preactivation".
        keep: called as ``keep(what, name, tensor)``, at once: the tensor may change later.
        start: called when a pass begins.
        always: whether passes without gradients count, too.
    """

    def __init__(
        self,
        model: Module,
        patterns: Sequence[str],
        what: Sequence[str],
        keep: Keep,
        start: Callable[[], None],
        always: bool = False,
    ):
        self.model, self.patterns, self.what = model, patterns, what
        self.keep, self.start, self.always = keep, start, always
        self.paths = {id(module): path for path, module in reversed([*model.named_modules()])}
        self.open: list[Module] = []
        self.held: list[bool] = []  # whether other modules were called in each of them
        self.calls: dict[str, int] = {}
        self.busy = False
        self._outside = mode.flags, mode.watchers
        self._watching: contextlib.AbstractContextManager[None] | None = None
        self._handles: list[RemovableHandle] = []
        self._slow: list[Module] = []

    def hook(self) -> None:
        """Begins to look."""
        for module in self.model.modules():
            if "_calls_forward_alone" not in module.__dict__:
                self._slow.append(module)
            self._handles.append(module.register_forward_pre_hook(self._enter))
            self._handles.append(
                module.register_forward_hook(self._leave, always_call=True, prepend=True)
            )

    def unhook(self) -> None:
        """Leaves the model as it was."""
        for handle in self._handles:
            handle.remove()
        for module in self._slow:  # a layer and its activation may be one operation again
            if not module.has_hooks:
                module.__dict__.pop("_calls_forward_alone", None)
        self._handles, self._slow = [], []
        self._stop()

    def _stop(self) -> None:
        if self._watching is not None:
            self._watching.__exit__(None, None, None)
        self._watching, self.open, self.held = None, [], []

    def _enter(self, module: Module, args: Any) -> None:
        if self.busy or not (self.always or is_grad_enabled()):
            return
        if not self.open:
            self.calls = {}
            self.start()
            self._outside = mode.flags, mode.watchers
            self._watching = watching(self._note)
            self._watching.__enter__()
        if self.held:
            self.held[-1] = True
        self.open.append(module)
        self.held.append(False)

    def _leave(self, module: Module, args: Any, output: Any) -> None:
        if self.busy or not self.open or module not in self.open:
            return
        held = self.held.pop()
        while self.open.pop() is not module:
            held = self.held.pop()  # a call that was left by an error
        if not self.open:
            self._stop()
        if output is None:
            return
        path = self.paths[id(module)]
        if not held or path in self.patterns:
            found = tensors(output)
            if found:
                kind = "preactivation" if has_sums(module) else "activation"
                self._found(kind, label(path, self.model), found[0])

    def _note(self, op: Any, inputs: tuple[Tensor, ...], params: dict[str, Any], out: Any) -> None:
        if self.busy or not self.open:
            return
        module = self.open[-1]
        path = self.paths[id(module)]
        if op.name in NONLINEAR:
            if any(True for _ in module.children()) or has_sums(module):
                self._found("activation", f"{path}.{op.name}" if path else op.name, out)
        elif op.name in SEQUENCES and inputs[0].shape[0] > 1:
            self._recurrent(module, path, op, inputs, params, out)

    def _recurrent(
        self,
        module: Module,
        path: str,
        op: Any,
        inputs: tuple[Tensor, ...],
        params: dict[str, Any],
        out: Any,
    ) -> None:
        """The states and gates of all steps of a layer."""
        base = label(path, self.model)
        if not chosen(base, self.patterns) and not chosen(f"{base}.hidden", self.patterns):
            return
        number = self.calls.get(f"{base} sequences", 0)
        self.calls[f"{base} sequences"] = number + 1
        name = base + suffix_of(module, number)
        with self._looking():
            seen = recurrence_of(name, op, inputs, params, out)
            parts = dict(zip(("hidden", "cell"), seen.states, strict=False))
            if "activation" in self.what:
                parts |= seen.gates()
                for part, value in parts.items():
                    self.keep("activation", f"{name}.{part}", value)
            if "preactivation" in self.what and seen.kind != "PEEPHOLE":
                self.keep("preactivation", f"{name}.sums", seen.sums())

    def _found(self, kind: str, name: str, value: Tensor) -> None:
        if kind not in self.what or not chosen(name, self.patterns):
            return
        number = self.calls.get(name, 0) + 1
        self.calls[name] = number
        with self._looking():
            self.keep(kind, name if number == 1 else f"{name}#{number}", value)

    @contextlib.contextmanager
    def _looking(self) -> Iterator[None]:
        """What looking computes is not looked at, and runs as fast as outside."""
        inside = mode.flags, mode.watchers
        self.busy = True
        mode.flags, mode.watchers = self._outside
        try:
            with no_grad():
                yield
        finally:
            mode.flags, mode.watchers = inside
            self.busy = False
