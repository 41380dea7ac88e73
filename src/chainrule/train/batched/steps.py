"""The updates of networks that are trained together: as they are, or from a record."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from operator import add
from typing import Any

from chainrule import backend, nn, optim
from chainrule.autograd.modes import no_grad
from chainrule.backend import K
from chainrule.backend.recorded import cannot_repeat, check_fails_with, thread
from chainrule.ops.creation.conversion import clone
from chainrule.ops.creation.patterns import ones_like
from chainrule.ops.elementwise.functions import sqrt
from chainrule.ops.elementwise.logic import isfinite
from chainrule.ops.elementwise.options import clamp
from chainrule.ops.reduce.reductions import all as all_of, sum as sum_of
from chainrule.ops.shape.stacking import cat, stack
from chainrule.ops.shape.views import flatten, reshape
from chainrule.random import Streams
from chainrule.tensor import Tensor
from chainrule.train.batched.columns import Batches
from chainrule.train.batched.stacking import Lists, Stack
from chainrule.train.dependence import Dependence, python_state
from chainrule.train.losses import WeightedLoss
from chainrule.train.repeating import Quiet

__all__ = ["NotFinite", "Steps", "to_the_end"]

# Updates of one form that a record has to serve: it has saved as much time as it took after these.
NEEDED = 20
MOST = 7  # forms of batches that are recorded
FEW = 10  # updates for which a call of all is not worth its beginning


Note = dict[int, Tensor]  # what an update leaves: its numbers, and its outputs


class NotFinite(RuntimeError):
    """The loss or the gradient of a network is not finite; no parameter was changed."""


def to_the_end(write: Callable[[], None]) -> None:
    """Writes down what is done, all of it: Ctrl-C meanwhile is heard behind it.

    ``write`` begins anew where it was interrupted, so it has to come to the same twice.
    """
    heard = None
    while True:
        try:
            write()
            break
        except KeyboardInterrupt as interrupt:
            heard = interrupt
    if heard is not None:
        raise heard


class Steps:
    """What is computed for all networks at once.

    An update leaves a vector: the losses of all networks, then each penalty of all of them. It is
    recorded where enough of its form are to come (see :func:`chainrule.compile`).

    Args:
        networks: the networks.
        streams: of random numbers, one for each.
        loss: of one network.
        penalties: of one network.
        keeps_outputs: whether updates return the outputs, too.
        clip_norm: the largest norm of a network's gradient.
    """

    def __init__(
        self,
        networks: Stack,
        streams: Streams,
        loss: WeightedLoss,
        penalties: dict[str, Callable[..., Any]],
        keeps_outputs: bool,
        clip_norm: float | None,
    ):
        self.stack, self.streams = networks, streams
        self.loss, self.penalties = loss, penalties
        self.keeps_outputs, self.clip_norm = keeps_outputs, clip_norm
        self.optimizer: optim.Optimizer | None = None
        self.rows: list[list[float]] = []  # the numbers of the updates that were taken last
        self.at_once = self.one_by_one = 0  # updates that ran from records
        called = [loss.loss, *penalties.values()]
        self._watched = [m for m in (networks.template, *called) if isinstance(m, nn.Module)]
        self._depends = Dependence(self._watched, called, list)
        self.why = "" if backend.current() == "native" else "there are no compiled kernels"
        self.forget()

    def forget(self) -> None:
        """Forgets all records: the tensors are others."""
        self._known: dict[Any, Quiet] = {}
        self._notes: dict[Any, Note] = {}  # by the form of batches
        self._last: Note = {}

    @property
    def has_records(self) -> bool:
        """Whether there are updates that run from records."""
        return any([step.repeated for step in self._known.values()])

    def look_around(self) -> None:
        """Forgets all records where something has changed that they do not see themselves."""
        if self._depends.changed():
            self.forget()

    # --- what is asked for ------------------------------------------------------------------------

    def take(
        self, batches: Batches, first: int, expected: int, times: int
    ) -> tuple[list[Tensor], bool]:
        """So many updates from batches, from a number on; those of a fixed batch are all from it.

        ``rows`` has their numbers, also after an error.

        Args:
            batches: of all networks.
            first: the number of the first.
            expected: updates of this form that are to come in the fit.
            times: how many updates.

        Returns:
            The outputs of each update, if they are kept; and whether the last update was not taken,
            because its numbers, or the gradients where they belong, are not finite.
        """
        self.rows = []
        form = (batches.fixed, *batches.shared, *[_form(t) for t in batches.one(first)])
        self._last = self._notes.setdefault(form, {})
        step = self._recorded(form, batches, expected)
        before = 0 if step is None else step.repeated
        found: list[Tensor] = []
        few = 1 if batches.fixed else FEW
        many = step is not None and times > few and not self.keeps_outputs
        try:
            if step is not None and many:
                self._take_at_once(step, batches, first, times)
            else:
                for k in range(first, first + times):
                    found += self._take_one(step, batches, k)
        except NotFinite:
            numbers, *outputs = self._last.values()
            self.rows.append(numbers.tolist())
            return [*found, *[clone(t) for t in outputs]], True
        finally:
            if step is not None:
                self.at_once += (step.repeated - before) * many
                self.one_by_one += (step.repeated - before) * (not many)
                self.why = self.why or step.why
        return found, False

    def _take_at_once(self, step: Quiet, batches: Batches, first: int, many: int) -> None:
        try:
            if batches.fixed:
                step.repeat(many)
            else:
                step.epoch(*batches.some(first, many), batch_size=batches.rows)
        finally:

            def keep() -> None:
                self.rows = [
                    row for t in step.taken for row in (t if t.ndim > 1 else t[:, None]).tolist()
                ]

            to_the_end(keep)

    def _take_one(self, step: Quiet | None, batches: Batches, number: int) -> list[Tensor]:
        if step is None:
            numbers, *outputs = self._update(batches.one(number), batches.shared, self._last)
        else:
            found = step(*(() if batches.fixed else _given(batches.one(number))))
            numbers, *outputs = found if isinstance(found, tuple) else (found,)
        self.rows.append(numbers.tolist())
        return outputs

    def evaluate(self, batches: Batches, number: int, expected: int) -> tuple[Tensor, list[Tensor]]:
        """The loss of each network for a batch, and its output if that is kept."""
        args = batches.one(number)
        with no_grad():
            step = self._evaluation(batches, args, expected)
            found = self._look(args, batches.shared) if step is None else step(*_given(args))
        return found[0], list(found[1:])

    def finish(self) -> None:
        """The end of an update: its gradients are there, and what it writes is not."""
        grads = [p for p in self.stack.parameters if p._grad is not None]
        if self.optimizer is None:
            return
        if self.clip_norm is not None:
            self._clip(grads, self.clip_norm)
        self.optimizer.step()

    def not_finite(self) -> tuple[list[bool], list[bool]]:
        """Which networks have a loss, and which have a gradient, that is not finite."""
        count = self.stack.size
        losses = [not ok for ok in isfinite(self._last[0][:count]).tolist()]
        grads = [p._grad for p in self.stack.parameters if p._grad is not None]
        if not grads:
            return losses, [False] * count
        finite = stack([all_of(isfinite(flatten(g.detach(), 1)), 1) for g in grads])
        return losses, [not ok for ok in all_of(finite, 0).tolist()]

    # --- from records -----------------------------------------------------------------------------

    def _recorded(self, form: Any, batches: Batches, expected: int) -> Quiet | None:
        """The update from batches of a form, compiled; None if it runs as it is."""
        if form in self._known:
            return self._compiled(form, None, expected)
        shared, fixed = tuple(batches.shared), tuple(batches.one(0)) if batches.fixed else ()
        note = self._notes[form]
        held = (*self._watched, *self.stack.tensors.values())  # what the record looks at

        def update(*data: Tensor) -> Any:
            args = fixed or _args(data)
            found = _watched(held, lambda: self._update(args, shared, note))
            return found if len(found) > 1 else found[0]

        return self._compiled(form, update, expected)

    def _evaluation(self, batches: Batches, args: list[Any], expected: int) -> Quiet | None:
        form = ("look", *batches.shared, *[_form(t) for t in args])
        if form in self._known:
            return self._compiled(form, None, expected)
        shared = tuple(batches.shared)
        held = (*self._watched, *self.stack.tensors.values())

        def look(*data: Tensor) -> Any:
            return _watched(held, lambda: self._look(_args(data), shared))

        return self._compiled(form, look, expected)

    def _compiled(self, form: Any, function: Any, expected: int) -> Quiet | None:
        step = self._known.get(form)
        if step is None and not self.why and expected >= NEEDED and len(self._known) < MOST:
            step = self._known[form] = Quiet(function)
        return step if step is None or not step.why else None

    # --- what is computed -------------------------------------------------------------------------

    def _update(
        self, args: Sequence[Any], shared: Sequence[bool], note: Note
    ) -> tuple[Tensor, ...]:
        """The numbers of an update, and its outputs; noted, for one that is not taken."""
        networks = self.stack
        for p in networks.parameters:
            p._grad = None
        (parts, outputs), buffers = networks.call(self._losses, args, shared, self.streams)
        whole = functools.reduce(add, parts)
        if whole.requires_grad:
            whole.backward(ones_like(whole.detach()))
        networks.keep_buffers([b.detach() for b in buffers])
        parts = [part.detach() for part in parts]
        left = [parts[0] if len(parts) == 1 else cat(parts), *[t.detach() for t in outputs]]
        for i, t in enumerate(left):
            if i in note:
                K.write(note[i].array, t.array)
            else:
                note[i] = clone(t)
        grads = [p._grad.array for p in networks.parameters if p._grad is not None]
        if not K.all_finite([parts[0].array, *grads]):
            raise NotFinite("a loss or a gradient is not finite")
        check_fails_with(NotFinite)
        self.finish()
        return tuple(left)

    def _look(self, args: Sequence[Any], shared: Sequence[bool]) -> tuple[Tensor, ...]:
        (parts, outputs), _ = self.stack.call(self._losses, args, shared)
        return parts[0], *outputs

    def _losses(self, model: nn.Module, x: Tensor, y: Tensor, w: Tensor | None) -> Lists:
        """The loss and the penalties of one network, and its output if that is kept."""
        output = model(x)
        parts = [self.loss(output, y, w)]
        parts += [penalty(model) for penalty in self.penalties.values()]
        return parts, [output] if self.keeps_outputs else []

    @no_grad()
    def _clip(self, params: list[Tensor], limit: float) -> None:
        grads = [p._grad for p in params]
        squares = [sum_of(flatten(g * g, 1), 1) for g in grads]
        norm = sqrt(sum_of(stack(squares), 0))
        scale = clamp(limit / (norm + 1e-6), max=1.0)
        for g in grads:
            g.mul_(reshape(scale, (-1, *[1] * (g.ndim - 1))))


def _watched(held: tuple[Any, ...], call: Callable[[], Any]) -> Any:
    """The result of a call, which cannot be repeated if it leaves something in a module."""
    if thread.recorder is None:
        return call()
    before = python_state(held)
    found = call()
    if python_state(held) != before:
        cannot_repeat("a module keeps something of its own each time it is called")
    return found


def _args(data: tuple[Tensor, ...]) -> Sequence[Any]:
    """Inputs, targets and weights, which may be missing."""
    return [*data, None] if len(data) == 2 else list(data)


def _given(args: list[Any]) -> list[Tensor]:
    return [t for t in args if t is not None]


def _form(t: Tensor | None) -> Any:
    return None if t is None else (t.array.shape, t.array.dtype)
