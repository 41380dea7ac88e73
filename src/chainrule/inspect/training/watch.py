"""Watching a training: gradients, activations, weights and updates by name, every so many steps.

Between the steps that are looked at nothing is attached to the model, so that they cost what they
always cost.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from chainrule.autograd.hooks import RemovableHandle
from chainrule.autograd.modes import no_grad
from chainrule.inspect.core.arguments import Inputs, call, check_samples
from chainrule.inspect.core.registry import instrument
from chainrule.inspect.training.choosing import check_patterns, chosen
from chainrule.inspect.training.passes import PassRecorder
from chainrule.inspect.training.series import KINDS, Watched
from chainrule.inspect.training.statistics import (
    DETAILS,
    Statistics,
    as_values,
    norm_of,
    statistics,
)
from chainrule.nn.module.base import Module
from chainrule.nn.parameter import Parameter
from chainrule.ops.creation.conversion import clone
from chainrule.ops.shape.views import reshape
from chainrule.optim.optimizer import Optimizer
from chainrule.tensor import Tensor

__all__ = ["Watch", "activations", "watch"]

EVERY = 200
ALL = 1 << 20  # values that are counted where only one pass is looked at
OF_PASSES = ("activation", "preactivation")


class Watch(Watched):
    """Keeps statistics of chosen tensors during a training, and shows them.

    A callback of a Trainer, or around a loop of your own (see :func:`watch`).

    Args:
        patterns: of the names of modules and parameters: ``"encoder.*"``, ``"*.weight"``; a module
            stands for all in it. All unless given.
        what: of "grad" (before clipping), "activation" (outputs of layers, states and gates of
            recurrent ones), "preactivation" (weighted sums), "weight" and "update".
        every: after how many steps to look again; 1 looks at all.
        detail: "norm" alone, "moments", or "full" with quantiles and bins.

    Gradients and activations are those of the last pass with gradients before the update; a module
    that is called twice has a second series, ``name#2``.

    >>> import chainrule
    >>> from chainrule import inspect, nn, optim
    >>> model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    >>> optimizer = optim.SGD(model.parameters(), lr=0.1)
    >>> with inspect.watch(model, optimizer, "0", what=["grad"], every=1) as seen:
    ...     for _ in range(5):
    ...         optimizer.zero_grad()
    ...         (model(chainrule.ones(4, 2)) ** 2).mean().backward()
    ...         optimizer.step()
    >>> list(seen["grad"]), seen["grad"]["0.weight"].steps
    (['0.weight', '0.bias'], [0, 1, 2, 3, 4])
    """

    def __init__(
        self,
        *patterns: str,
        what: Sequence[str] | str = ("grad", "activation", "preactivation", "weight", "update"),
        every: int = EVERY,
        detail: str = "full",
    ):
        super().__init__()
        self.patterns = patterns or ("*",)
        self.what = (what,) if isinstance(what, str) else tuple(what)
        self.every, self.detail = every, detail
        self._check()
        self.step_number, self.epoch = 0, 0
        self._model: Module | None = None
        self._pass: PassRecorder | None = None
        self._found: list[tuple[str, str, Statistics]] = []
        self._grads: dict[str, Any] = {}
        self._before: dict[str, Tensor] = {}
        self._handles: list[RemovableHandle] = []
        self._on_optimizer: list[RemovableHandle] = []

    def _check(self) -> None:
        unknown = [w for w in self.what if w not in KINDS]
        if unknown or not self.what:
            raise ValueError(f"Watch: what must be some of {KINDS}, got {unknown or self.what}")
        if self.every < 1:
            raise ValueError(f"Watch: every must be at least 1 step, got {self.every}")
        if self.detail not in DETAILS:
            raise ValueError(f"Watch: detail must be one of {DETAILS}, got {self.detail!r}")
        if not all(isinstance(p, str) for p in self.patterns):
            raise TypeError(f"Watch: patterns must be strings, got {self.patterns}")

    # --- attaching --------------------------------------------------------------------------------

    def attach(self, model: Module, optimizer: Optimizer | None = None) -> None:
        """Begins to look at a model, and at each step of an optimizer where one is given."""
        self.detach()
        check_patterns("Watch", model, self.patterns)
        self._model = model
        if optimizer is not None:
            self._on_optimizer = [
                optimizer.register_step_post_hook(lambda *_: self.step()),
            ]
        self._begin(own_loop=True)

    def detach(self) -> None:
        """Leaves the model and the optimizer as they were; what was seen is kept."""
        self._end()
        for handle in self._on_optimizer:
            handle.remove()
        self._on_optimizer, self._model = [], None

    def step(self) -> None:
        """An update has been made. An optimizer that was given to :meth:`attach` says so itself;
        without one call this after each update."""
        if self._model is None:
            raise RuntimeError("Watch: step before attach(model, optimizer)")
        if self._watched:
            for name, _ in self._parameters():
                self._keep("grad", name, self._grads.get(name))
        self._after_update()
        self._begin(own_loop=True)

    # --- one step ---------------------------------------------------------------------------------

    @property
    def _watched(self) -> bool:
        return self.step_number % self.every == 0

    def _parameters(self) -> Iterator[tuple[str, Parameter]]:
        if self._model is not None:
            for name, p in self._model.named_parameters():
                if chosen(name, self.patterns):
                    yield name, p

    def _begin(self, own_loop: bool) -> None:
        """Before a step: attaches what has to be attached if it is to be looked at."""
        self._end()
        if self._model is None or not self._watched:
            return
        of_pass = [w for w in self.what if w in OF_PASSES]
        if of_pass:
            self._pass = PassRecorder(
                self._model, self.patterns, of_pass, self._keep_of_pass, self._found.clear
            )
            self._pass.hook()
        if "update" in self.what:
            with no_grad():
                self._before = {name: clone(p.detach()) for name, p in self._parameters()}
        if own_loop and "grad" in self.what:
            for name, p in self._parameters():
                if p.requires_grad:
                    self._handles.append(p.register_post_accumulate_grad_hook(self._saver(name)))

    def _saver(self, name: str) -> Any:
        """Copies a gradient when it is there: the loop may clip it before the update."""

        def save(p: Tensor) -> None:
            if p.grad is not None:
                self._grads[name] = p.grad.detach().clone()

        return save

    def _end(self) -> None:
        """After a step: nothing stays attached."""
        if self._pass is not None:
            self._pass.unhook()
        for handle in self._handles:
            handle.remove()
        self._pass, self._handles, self._found = None, [], []
        self._grads, self._before = {}, {}

    def _keep_of_pass(self, what: str, name: str, x: Tensor) -> None:
        values = as_values(x)
        if values is not None:
            self._found.append((what, name, statistics(values, self.detail)))

    def _keep(self, what: str, name: str, x: Any, over: Tensor | None = None) -> None:
        values = as_values(x)
        if values is None:
            return
        found = statistics(values, self.detail)
        if over is not None:
            norm = norm_of(reshape(over, (-1,)))
            found.ratio = found.norm / norm if norm else float("inf") if found.norm else 0.0
        self.add(what, name, found, self.step_number, self.epoch)

    def _after_update(self) -> None:
        if self._watched:
            for what, name, found in self._found:
                self.add(what, name, found, self.step_number, self.epoch)
            for name, p in self._parameters():
                if "weight" in self.what:
                    self._keep("weight", name, p)
                before = self._before.get(name)
                if before is not None:
                    with no_grad():
                        self._keep("update", name, p.detach() - before, before)
        self._end()
        self.step_number += 1

    def look_at_gradients(self, model: Module) -> None:
        """Keeps the gradients that the parameters of a model have now."""
        for name, p in model.named_parameters():
            if p.grad is not None and chosen(name, self.patterns):
                self._keep("grad", name, p.grad)

    # --- as a callback of a Trainer ---------------------------------------------------------------

    def on_fit_start(self, trainer: Any) -> None:
        """Begins to look at the trainer's model."""
        self._end()
        check_patterns("Watch", trainer.model, self.patterns)
        self._model = trainer.model
        self._begin(own_loop=False)

    def on_epoch_start(self, trainer: Any) -> None:
        """Notes the epoch."""
        self.epoch = trainer.epoch

    def on_backward_end(self, trainer: Any) -> None:
        """Looks at the gradients before they are clipped."""
        if self._watched and "grad" in self.what:
            self.look_at_gradients(trainer.model)

    def on_batch_end(self, trainer: Any) -> None:
        """Looks at the weights after the update."""
        self._after_update()
        self._begin(own_loop=False)

    def on_epoch_end(self, trainer: Any) -> None:
        """Does nothing: steps are what counts."""

    def on_fit_end(self, trainer: Any) -> None:
        """Leaves the model as it was."""
        self.detach()

    def on_error(self, trainer: Any) -> None:
        """Leaves the model as it was when the training fails."""
        self.detach()

    def state_dict(self) -> dict[str, Any]:
        """What was seen, for a run that is resumed."""
        return {"step": self.step_number, "epoch": self.epoch, **self.to_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Takes back what :meth:`state_dict` gave."""
        self.step_number, self.epoch = state["step"], state["epoch"]
        self.load(state["series"])


@contextlib.contextmanager
def watch(
    model: Module,
    optimizer: Optimizer | None = None,
    *patterns: str,
    what: Sequence[str] | str = KINDS,
    every: int = EVERY,
    detail: str = "full",
) -> Iterator[Watch]:
    """Watches a model inside a ``with`` block, for a loop of your own: see :class:`Watch`.

    Without an optimizer call ``seen.step()`` after each update.
    """
    seen = Watch(*patterns, what=what, every=every, detail=detail)
    seen.attach(model, optimizer)
    try:
        yield seen
    finally:
        seen.detach()


@instrument("V20", "V21", needs=("model", "inputs"))
def activations(
    model: Module, inputs: Inputs, *patterns: str, detail: str = "full", mode: str = "as is"
) -> Watched:
    """What every layer computes in one forward pass: sums and activations as distributions.

    Args:
        model: any module; states and gates of recurrent layers are seen, too.
        inputs: what it is called with.
        patterns: which layers, see :class:`Watch`.
        detail: as there.
        mode: "train", "eval", or "as is", the mode in which the model runs.

    >>> import chainrule
    >>> from chainrule import inspect, nn
    >>> seen = inspect.activations(nn.Sequential(nn.Linear(9, 9), nn.Tanh()), chainrule.ones(2, 9))
    >>> list(seen["preactivation"]), list(seen["activation"])
    (['0'], ['1'])
    """
    if mode not in ("train", "eval", "as is"):
        raise ValueError(f"activations: mode must be 'train', 'eval' or 'as is', got {mode!r}")
    names = patterns or ("*",)
    check_patterns("activations", model, names)
    check_samples("activations", inputs)
    if detail not in DETAILS:
        raise ValueError(f"activations: detail must be one of {DETAILS}, got {detail!r}")
    if mode != "as is":
        model.train(mode == "train")
    seen = Watched()

    def keep(what: str, name: str, x: Tensor) -> None:
        values = as_values(x)
        if values is not None:
            seen.add(what, name, statistics(values, detail, ALL), 0, 0)

    recorder = PassRecorder(model, names, OF_PASSES, keep, seen.series.clear, always=True)
    recorder.hook()
    try:
        with no_grad():
            call(model, "activations", inputs)
    finally:
        recorder.unhook()
    if not seen.series:
        raise ValueError(
            f"activations: no layer that {list(names)} means was called by the model's forward"
        )
    return seen
