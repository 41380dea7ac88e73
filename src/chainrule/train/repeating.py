"""How the updates of a fit run: as they are, or from a record, one by one or an epoch at once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from chainrule import backend, optim
from chainrule.backend.recorded import cannot_repeat, thread
from chainrule.compiler.compiled import Compiled
from chainrule.data.loader import DataLoader
from chainrule.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau
from chainrule.tensor import Tensor
from chainrule.train.batches import Batch, batches
from chainrule.train.by_rows import ByRows, cut
from chainrule.train.dependence import Dependence, modules_of, python_state
from chainrule.train.packing import Layout, packed
from chainrule.train.progress import Shown
from chainrule.train.updates import LossNotFinite, Parts, Sums, calls_closures, take_step

if TYPE_CHECKING:
    from chainrule.train.trainer import Trainer

__all__ = ["Repeater"]

# Updates of one form that a record has to serve, in epochs and one by one: a network of ten
# parameters has saved as much time as it took to record after about half of them.
NEEDED, NEEDED_ALONE = 150, 300
FEW = 10  # updates for which an epoch at once is not worth its beginning
NEEDED_THERE = 6  # on a device, where every single kernel has to be called, three of them recorded
RESIDENT = 2**30  # bytes of samples that lie on a device for an epoch at once
MOST = 7  # forms of batches that are recorded


class Quiet(Compiled):
    """A compiled function that keeps to itself why it runs as it is."""

    why = ""

    def _tell(self, reason: str) -> None:
        self.why = reason


class Step:
    """The update as it is recorded."""

    def __init__(self, trainer: Trainer, late: bool):
        self.trainer, self.late = trainer, late
        # What records have to watch: modules, and the weights of classes.
        self.watched = [*modules_of(trainer), trainer._weights]
        self.size = 0  # samples of a batch, where several come as one
        self.inputs = 0  # arguments of the network, where a batch comes as tensors

    def compiled(self, call: Callable[..., Any]) -> Quiet:
        """One of the methods below, by a function that names all that is watched."""
        watched = self.watched

        def update(*data: Any) -> Any:
            return call(watched, *data)

        return Quiet(update)

    def of_batches(self, watched: list[Any], group: list[Batch]) -> Parts:
        """An update from batches."""
        if thread.recorder is None:
            return take_step(self.trainer, group, self.late)
        before = python_state(watched)
        parts = take_step(self.trainer, group, self.late)
        if python_state(watched) != before:
            cannot_repeat("a module keeps something of its own each time it is called")
        return parts

    def of_tensors(self, watched: list[Any], *data: Tensor) -> Any:
        """An update from one batch; its loss, or all parts if there are more."""
        target, *weight = data[self.inputs :]
        batch = Batch(data[: self.inputs], target, weight[0] if weight else None)
        parts = self.of_batches(watched, [batch])
        alone = not parts.penalties[0] and not parts.outputs
        return parts.losses[0] if alone else parts

    def of_rows(self, watched: list[Any], *data: Tensor) -> Tensor:
        """An update from the rows of one batch, or of several."""
        spread = self.trainer.placing.spread
        return packed(self.of_batches(watched, [spread(b) for b in cut(data, self.size)]))


class Repeater:
    """Runs the updates of a fit.

    An update is recorded where enough of its form are to come; what cannot be repeated runs as it
    is, and ``way`` says which was the case in the last epoch.
    """

    def __init__(self, trainer: Trainer, epochs: int):
        self.trainer, self.epochs = trainer, epochs
        self.reason = _why_not(trainer)
        # Whether callbacks see gradients when the update is over: they look at nothing else.
        self.late = _looks_late(trainer) and not self.reason
        self.way = f"eager: {self.reason}"
        self.layout: Layout | None = None  # of what an update of rows leaves
        self._has_records = False
        self._usual: Any = None  # the form of the first update
        self._updates = 0  # of an epoch, if that is known
        self._seen: dict[Any, int] = {}  # updates of each form that ran as they are
        self._chosen: set[Any] = set()  # forms that are recorded
        self.there = trainer.placing.place is not None  # whether updates run on a device
        self._resident: tuple[list[Tensor], list[Tensor]] = [], []

    # Made when the first update is worth a record, which one of few epochs never is.

    @functools.cached_property
    def step(self) -> Step:
        """The update."""
        return Step(self.trainer, self.late)

    @functools.cached_property
    def steps(self) -> Quiet:
        """The update from batches."""
        self._has_records = True
        return self.step.compiled(self.step.of_batches)

    @functools.cached_property
    def single(self) -> Quiet:
        """The update from the tensors of one batch, the fastest of all to call."""
        self._has_records = True
        return self.step.compiled(self.step.of_tensors)

    @functools.cached_property
    def rows(self) -> Quiet:
        """The update from rows."""
        self._has_records = True
        return self.step.compiled(self.step.of_rows)

    @functools.cached_property
    def depends(self) -> Dependence:
        """What updates depend on that their records do not see."""
        return Dependence.of(self.trainer)

    def _repeated(self) -> tuple[int, int]:
        """How many updates ran from records, in epochs and one by one."""
        if not self._has_records:
            return 0, 0
        return self.rows.repeated, self.steps.repeated + self.single.repeated

    @property
    def schedule(self) -> Any:
        """The schedule that steps after each update, if there is one."""
        return self.trainer.schedule if self.trainer.schedule_each == "batch" else None

    def resident(self, data: list[Tensor]) -> list[Tensor]:
        """The samples where the model lies, moved once for all epochs."""
        known, there = self._resident
        if len(known) != len(data) or any([a is not b for a, b in zip(known, data, strict=True)]):
            there = [self.trainer.placing.keep(t) for t in data]
            self._resident = data, there
        return there

    # --- an epoch ---------------------------------------------------------------------------------

    def one_epoch(self, loader: Any, sums: Sums, bar: Shown) -> None:
        """One pass over the training data."""
        rows_before, steps_before = self._repeated()
        length = length_of(loader)
        self._updates = -(-length // self.trainer.accumulate) if length is not None else 0
        rows = loader.begin_rows() if self._takes_rows(loader) else None
        if rows is None:
            given = self.trainer.placing.batches(batches(loader), loader)
            self._by_batches(given, length, sums, bar)
        else:
            ByRows(self, loader, rows, sums, bar).run()
        in_epochs, in_steps = self._repeated()
        if in_epochs > rows_before:
            self.way = "compiled epochs"
        elif in_steps > steps_before:
            self.way = "compiled steps"
        else:
            self.way = f"eager: {self.reason or 'too few updates are alike to gain by a record'}"

    def _takes_rows(self, loader: Any) -> bool:
        """Whether an epoch may run at once: nobody looks at single batches, and enough are left."""
        t = self.trainer
        if self.reason or not isinstance(loader, DataLoader) or loader.batch_size is None:
            return False
        if self.schedule is not None and (
            not isinstance(self.schedule, LRScheduler)
            or isinstance(self.schedule, ReduceLROnPlateau)
        ):
            return False  # one that has to see the losses
        if t.metrics and (t.accumulate > 1 or (self.layout is not None and not self.layout.fits)):
            return False
        if self._updates < (NEEDED_THERE if self.there else FEW) or not self._fits(loader):
            return False
        events = ("on_batch_end", "on_backward_end")
        looks = any([wants(callback, event) for callback in t._running for event in events])
        needed = NEEDED_THERE if self.there else NEEDED
        enough = self._repeated()[0] or self._updates * (self.epochs - t.epoch) >= needed
        return bool(enough) and not looks

    def _fits(self, loader: DataLoader) -> bool:
        """Whether the samples may lie on a device all at once."""
        if not self.there:
            return True
        whole: Any = getattr(loader.dataset, "whole", tuple)()
        size = sum([t.nbytes for t in whole or ()])
        return size <= RESIDENT and not self.trainer.placing.has_shares(loader)

    def _by_batches(
        self, given: Iterable[Batch], length: int | None, sums: Sums, bar: Shown
    ) -> None:
        group: list[Batch] = []
        number = -1
        for number, batch in enumerate(given):
            group.append(batch)
            if len(group) == self.trainer.accumulate or number + 1 == length:
                self.update(group, number, sums)
                group = []
            bar.batch_done(sums.totals["loss"], sums.samples, sums.measured)
        if group:
            self.update(group, number, sums)

    # --- an update --------------------------------------------------------------------------------

    def update(self, group: list[Batch], number: int, sums: Sums) -> Parts:
        """One update, the last of whose batches has this number in the epoch."""
        t = self.trainer
        t.batch = group[-1]
        if self.late and not _looks_late(t):  # something clips from now on
            self.late, self.reason = False, _why_not(t)
        try:
            parts = self._taken(group)
        except LossNotFinite as error:
            t._diverged("the loss", group[error.place], number)
        except optim.NotFiniteError:
            if calls_closures(t.optimizer):
                raise
            t._diverged("a gradient", group[-1], number)
        if self.late:
            t._call("on_backward_end")
        mean = sums.add(group, parts)
        if self.schedule is not None:
            t._step_schedule(mean)
        t._call("on_batch_end")
        return parts

    def _taken(self, group: list[Batch]) -> Parts:
        if self.reason or not self._gains(group):
            return take_step(self.trainer, group, self.late)
        self.look()
        data = _tensors_of(group)
        if data is None:
            parts: Parts = self.steps(group)
        else:
            if self.step.inputs != len(group[0].inputs):
                self.step.inputs = len(group[0].inputs)
                self.single.forget()
            found = self.single(*data)
            parts = Parts([found], [{}], []) if isinstance(found, Tensor) else found
        self.reason = self.steps.why or self.single.why
        return parts

    def look(self) -> None:
        """Forgets all records where something has changed that they do not see themselves."""
        if self.depends.changed():
            for compiled in (self.steps, self.single, self.rows):
                compiled.forget()

    def _gains(self, group: list[Batch]) -> bool:
        """Whether enough updates of this form are to come, as far as that is known."""
        form = tuple([_form(b) for b in group])
        if form in self._chosen:
            return True
        if self._usual is None:
            self._usual = form
        seen = self._seen[form] = self._seen.get(form, 0) + 1
        left = self.epochs - self.trainer.epoch
        expected = left * self._updates if form == self._usual else left
        needed = NEEDED_THERE if self.there else NEEDED_ALONE
        if max(seen, expected) < needed or len(self._chosen) >= MOST:
            return False
        self._chosen.add(form)
        return True


def wants(callback: object, event: str) -> bool:
    """Whether a callback does anything at an event: most methods are empty."""
    method = getattr(callback, event)
    code = getattr(getattr(method, "__func__", method), "__code__", None)
    return code is None or code.co_code not in EMPTY


def _with_text(self: object, trainer: object) -> None:
    """Nothing."""


def _without_text(self: object, trainer: object) -> None:
    pass


EMPTY = {f.__code__.co_code for f in (_with_text, _without_text)}


def length_of(loader: Any) -> int | None:
    """The number of batches, if that is known."""
    try:
        return len(loader)
    except TypeError:
        return None


def _why_not(trainer: Trainer) -> str:
    """Why no update of a trainer is recorded; "" if they may be."""
    if not trainer.compile:
        return "compile=False"
    if trainer.placing.place is None and backend.current() != "native":
        return "there are no compiled kernels"
    if calls_closures(trainer.optimizer):
        return f"{type(trainer.optimizer).__name__} looks at the loss as often as it likes"
    for callback in trainer._running:
        if wants(callback, "on_backward_end") and not _looks_late(trainer):
            return f"{type(callback).__name__} sees the gradients before the update"
    return ""


def _looks_late(trainer: Trainer) -> bool:
    """Whether callbacks that see gradients see the same when the update is over."""
    seeing = [c for c in trainer._running if wants(c, "on_backward_end")]
    clips = trainer.clip_norm is not None or trainer.clip_value is not None
    return bool(seeing) and not clips and all([getattr(c, "gradients_only", False) for c in seeing])


def _tensors_of(group: list[Batch]) -> list[Tensor] | None:
    """The parts of a single batch, if all of them are tensors."""
    if len(group) > 1:
        return None
    inputs, target, weight = group[0]
    data = [*inputs, target] if weight is None else [*inputs, target, weight]
    return data if all([t.__class__ is Tensor for t in data]) else None


def _form(batch: Batch) -> Any:
    first = batch.inputs[0]
    return first.array.shape if isinstance(first, Tensor) else batch.size
