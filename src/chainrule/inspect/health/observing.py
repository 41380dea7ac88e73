"""A doctor beside a training loop: it sees every forward pass, every backward pass, every step."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from chainrule.autograd.modes import is_grad_enabled
from chainrule.inspect.core.arguments import tensors
from chainrule.inspect.health.diagnosis import Diagnosis
from chainrule.inspect.health.doctor import doctor
from chainrule.inspect.health.findings import RULES, Seen, apply, rule
from chainrule.nn.layers.dropout import DropoutLayer
from chainrule.nn.layers.norm import _BatchNorm
from chainrule.nn.module.base import Module
from chainrule.optim import Optimizer
from chainrule.tensor import Tensor

__all__ = ["HealthWarning", "Visit", "examining"]


class HealthWarning(UserWarning):
    """A mistake in a training that the doctor saw."""


@dataclass(eq=False)
class Visit:
    """What a doctor saw of a training so far; ``findings`` are its mistakes."""

    model: Module
    optimizer: Optimizer
    diagnosis: Diagnosis = field(default_factory=Diagnosis)
    steps: int = 0
    stale: int = 0  # steps whose gradient was added to that of the step before
    training_passes: int = 0  # forward passes in training mode with gradients
    unused_passes: int = 0  # of these, from whose outputs no gradient was taken
    blind_passes: int = 0  # in training mode without gradients
    evaluation_steps: int = 0  # steps from passes in evaluation mode only
    losses: list[float] = field(default_factory=list)

    @property
    def findings(self) -> list[Any]:
        """The mistakes, first found first."""
        return self.diagnosis.findings

    @property
    def mode_layers(self) -> list[str]:
        """The layers that compute differently in training and evaluation."""
        return [n for n, m in self.model.named_modules() if _has_modes(m)]

    def add(self, diagnosis: Diagnosis) -> None:
        """Takes over findings that are new, and warns of each once."""
        known = {(f.rule, f.layer) for f in self.findings}
        for f in diagnosis.findings:
            if (f.rule, f.layer) not in known:
                self.diagnosis.findings.append(f)
                warnings.warn(str(f), HealthWarning, stacklevel=3)
        new = [c for c in diagnosis.checked if c not in self.diagnosis.checked]
        self.diagnosis.checked.extend(new)
        self.diagnosis.skipped.update(diagnosis.skipped)
        self.diagnosis.layers = diagnosis.layers or self.diagnosis.layers

    def conclude(self) -> Diagnosis:
        """Looks at what was seen of the loop."""
        checked = [r.name for r in RULES.values() if r.stage == "loop"]
        self.add(Diagnosis(apply("loop", self), checked))
        return self.diagnosis

    def __str__(self) -> str:
        return str(self.diagnosis)


def _has_modes(module: Module) -> bool:
    if isinstance(module, DropoutLayer):
        return float(getattr(module, "p", 0.0)) > 0
    # Without a momentum running statistics are being collected anew, for which there is no loss.
    return isinstance(module, _BatchNorm) and module.momentum is not None


class _Watcher:
    """The hooks of a visit."""

    def __init__(self, visit: Visit, loss: Module | None):
        self.visit, self.loss = visit, loss
        self.inputs: Any = None
        self.modes: set[bool] = set()
        self.stepped: set[int] = set()  # parameters of a step that had no gradient since
        self.asleep = False
        self.examined = False

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Everything hooked inside, nothing outside."""
        visit = self.visit
        handles = [
            visit.model.register_forward_hook(self.forward, with_kwargs=True),
            visit.optimizer.register_step_post_hook(self.step),
        ]
        learned = [p for p in visit.model.parameters() if p.requires_grad]
        handles += [p.register_hook(self.gradient_of(p)) for p in learned]
        if self.loss is not None:
            handles.append(self.loss.register_forward_hook(self.criterion))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def forward(self, model: Module, args: Any, kwargs: Any, output: Any) -> None:
        """After the model was called."""
        if self.asleep:
            return
        self.inputs = kwargs if kwargs else (args if len(args) != 1 else args[0])
        visit = self.visit
        if not is_grad_enabled():
            visit.blind_passes += model.training
            return
        self.modes.add(model.training)
        if model.training:
            visit.training_passes += 1
            visit.unused_passes += 1
            self.await_gradient(output)

    def await_gradient(self, output: Any) -> None:
        """Counts a pass as used when a gradient comes back to any of its outputs."""
        pending = [True]

        def arrived(_: Tensor) -> None:
            if pending:
                pending.clear()
                self.visit.unused_passes -= 1

        for t in tensors(output):
            if t.requires_grad:
                t.register_hook(arrived)

    def gradient_of(self, p: Tensor) -> Any:
        """The hook of one parameter, called before its gradient is added to ``.grad``."""
        key = id(p)

        def arrived(_: Tensor) -> None:
            if self.asleep:
                return
            if key in self.stepped:
                self.stepped.discard(key)
                held = p.grad
                if held is not None and bool((held.detach() != 0).any()):
                    self.stale_now = True

        return arrived

    stale_now = False

    def step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        """After a step."""
        if self.asleep:
            return
        visit = self.visit
        visit.steps += 1
        visit.stale += self.stale_now
        visit.evaluation_steps += self.modes == {False}
        self.stale_now, self.modes = False, set()
        self.stepped = {id(p) for group in optimizer.param_groups for p in group["params"]}

    def criterion(self, loss: Module, args: Any, output: Any) -> None:
        """After a loss module was called: the first batch is looked at before any step."""
        if self.asleep or len(args) < 2 or not is_grad_enabled():
            return
        if isinstance(output, Tensor) and output.ndim == 0:
            self.visit.losses.append(float(output.detach()))
        if not self.examined and self.inputs is not None and not self.visit.steps:
            self.examined, self.asleep = True, True
            try:
                batch = (self.inputs, args[1])
                self.visit.add(doctor(self.visit.model, loss, batch, self.visit.optimizer))
            finally:
                self.asleep = False


@contextlib.contextmanager
def examining(model: Module, optimizer: Optimizer, loss: Module | None = None) -> Iterator[Visit]:
    """Looks on while a training loop of your own runs inside, and warns of mistakes in it.

    It sees what a look at one batch cannot: gradients that are not cleared, validation in training
    mode, training in evaluation mode. With a loss module it also examines the first batch as
    :func:`doctor` does. The loop is not changed.

    Args:
        model: the model that is trained.
        optimizer: its optimizer.
        loss: the loss, if it is a module.

    >>> import chainrule
    >>> from chainrule import inspect, nn, optim
    >>> _ = chainrule.manual_seed(0)
    >>> model = nn.Linear(3, 1)
    >>> optimizer = optim.SGD(model.parameters(), lr=0.1)
    >>> x, y = chainrule.randn(8, 3), chainrule.randn(8, 1)
    >>> import warnings
    >>> with warnings.catch_warnings(), inspect.examining(model, optimizer) as visit:
    ...     warnings.simplefilter("ignore")
    ...     for _ in range(5):
    ...         nn.functional.mse_loss(model(x), y).backward()
    ...         optimizer.step()
    >>> visit.findings[0].rule, visit.findings[0].number
    ('gradients not cleared', 0.8)
    """
    visit = Visit(model, optimizer)
    with _Watcher(visit, loss).watching():
        yield visit
    visit.conclude()


# --- the rules ------------------------------------------------------------------------------------


@rule(
    "gradients not cleared",
    "loop",
    0.5,
    "the share of steps whose gradient holds that of the step before; one or two may be meant",
    "error",
)
def _not_cleared(visit: Visit, threshold: float) -> Iterator[Seen]:
    if visit.steps >= 3 and visit.stale > threshold * (visit.steps - 1):
        yield Seen(
            "optimizer",
            visit.stale / visit.steps,
            f"in {visit.stale} of {visit.steps} steps the gradient was added to that of the step "
            "before",
            "optimizer.zero_grad() before each backward()",
        )


@rule(
    "training mode in validation",
    "loop",
    0,
    "passes in training mode without gradients, or of which none is taken: dropout drops and batch "
    "norm learns from them",
)
def _training_mode(visit: Visit, threshold: float) -> Iterator[Seen]:
    layers = visit.mode_layers
    # A look or two at a loss is no validation.
    passes = visit.blind_passes + (visit.unused_passes if visit.unused_passes > 2 else 0)
    if layers and visit.steps and passes > threshold:
        yield Seen(
            layers[0],
            passes,
            f"{passes} passes that no step came from ran in training mode, in which {layers[0]} "
            f"({type(visit.model.get_submodule(layers[0])).__name__}) does not compute what it "
            "computes later",
            "model.eval() before validation, model.train() after it",
        )


@rule(
    "evaluation mode in training",
    "loop",
    0.05,
    "the share of steps from passes in evaluation mode after some in training mode",
)
def _evaluation_mode(visit: Visit, threshold: float) -> Iterator[Seen]:
    layers = visit.mode_layers
    share = visit.evaluation_steps / max(1, visit.steps)
    if layers and share > threshold and visit.evaluation_steps < visit.steps:
        yield Seen(
            layers[0],
            share,
            f"{visit.evaluation_steps} of {visit.steps} steps were made in evaluation mode, in "
            f"which {layers[0]} is off",
            "model.train() at the beginning of every epoch",
        )
