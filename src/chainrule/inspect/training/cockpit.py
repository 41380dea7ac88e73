"""The cockpit: slope, noise, curvature and the step, at one point or while a network learns."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field
from typing import Any, Self

from chainrule.autograd.hooks import RemovableHandle
from chainrule.autograd.modes import enable_grad, no_grad
from chainrule.inspect.core.arguments import check_finite, check_optimizer, of_batch
from chainrule.inspect.core.registry import instrument
from chainrule.inspect.core.results import Result
from chainrule.inspect.core.untouched import untouched
from chainrule.inspect.training import dials
from chainrule.inspect.training.readings import Loss, Point, Reading, read
from chainrule.linalg import vector_norm
from chainrule.nn.module.base import Module
from chainrule.ops.creation.conversion import clone
from chainrule.optim.optimizer import Optimizer
from chainrule.printing import text_table
from chainrule.random import set_rng_state
from chainrule.tensor import Tensor

__all__ = ["Cockpit", "Flight", "cockpit"]

EVERY = 100


@dataclass(repr=False, eq=False)
class Flight(Result):
    """Readings in the order of the steps; the last one is explained instrument by instrument."""

    readings: list[Reading] = field(default_factory=list)

    @property
    def last(self) -> Reading:
        """What the instruments show now."""
        if not self.readings:
            raise ValueError("Cockpit: no step has been looked at yet")
        return self.readings[-1]

    def values(self, dial: str) -> list[float]:
        """One instrument at all steps, such as "alpha" or "signal_to_noise"."""
        return [dials.value_of(r, dial) for r in self.readings]

    def __str__(self) -> str:
        if not self.readings:
            return "no step has been looked at yet"
        last = self.last
        rows = [[name, value, said] for name, value, said in dials.explained(last)]
        table = text_table(["instrument", "value", "meaning"], rows, rule=True)
        norms = last.layer_gradient_norms
        layers = [
            [b.name, str(b.size), *[f"{v:.3g}" for v in (norms[b.name], b.top, b.trace)]]
            for b in last.layers
        ]
        header = ["layer", "size", "gradient norm", "top eigenvalue", "trace"]
        by_layer = text_table(header, layers, left=1, rule=True)
        return f"step {last.step}\n{table}\n\n{by_layer}"

    def plot(self, *, axes: Any = None, **style: Any) -> list[Any]:
        """Draws all instruments: over the steps, or the step on its parabola for one reading."""
        return dials.draw(self.readings, axes, style)


class Cockpit(Flight):
    """Reads all instruments every so many steps: a callback of a Trainer, or a context.

    Args:
        model, loss, data, optimizer: for a loop of your own, ``with Cockpit(model, loss, data,
            optimizer) as seen``; the batch ``data`` is looked at. A Trainer gives them all, and
            the batch of the present update (its loss without penalties).
        every: after how many steps to read again.
        eigenvalues: how many of the Hessian's largest.
        products: how many to estimate the trace of a large Hessian from.
        noise: whether to read what needs gradients of single samples.

    >>> import chainrule
    >>> from chainrule import inspect, nn, optim
    >>> _ = chainrule.manual_seed(0)
    >>> model, x = nn.Linear(3, 1), chainrule.randn(20, 3)
    >>> optimizer = optim.SGD(model.parameters(), lr=0.1)
    >>> batch, loss = (x, x.sum(1, keepdim=True)), nn.functional.mse_loss
    >>> with inspect.Cockpit(model, loss, batch, optimizer, every=5) as seen:
    ...     for _ in range(10):
    ...         optimizer.zero_grad()
    ...         loss(model(x), batch[1]).backward()
    ...         optimizer.step()
    >>> [r.step for r in seen.readings], -1 < seen.last.alpha < 0
    ([0, 5], True)
    """

    def __init__(
        self,
        model: Module | None = None,
        loss: Loss | None = None,
        data: Any = None,
        optimizer: Optimizer | None = None,
        *,
        every: int = EVERY,
        eigenvalues: int = 3,
        products: int = 30,
        noise: bool = True,
    ):
        super().__init__()
        if every < 1 or eigenvalues < 1 or products < 2:
            raise ValueError(
                "Cockpit: every and eigenvalues must be at least 1 and products at least 2, got "
                f"{every}, {eigenvalues} and {products}"
            )
        self.every = every
        self._options: dict[str, Any] = {
            "eigenvalues": eigenvalues,
            "products": products,
            "noise": noise,
        }
        self._model, self._loss, self._data, self._optimizer = model, loss, data, optimizer
        self.step_number = 0
        self._start: dict[str, Tensor] = {}
        self._before: dict[str, Tensor] = {}
        self._handle: RemovableHandle | None = None

    # --- one step ---------------------------------------------------------------------------------

    def _learned(self) -> dict[str, Tensor]:
        parameters = [] if self._model is None else self._model.named_parameters()
        with no_grad():
            return {n: clone(p.detach()) for n, p in parameters if p.requires_grad}

    def _begin(self) -> None:
        self._before = self._learned() if self.step_number % self.every == 0 else {}
        self._start = self._start or self._before

    def _after(self, loss: Loss, inputs: Any, targets: Any) -> None:
        """After an update: reads the instruments where it began, if it is to be looked at."""
        if self._before and self._model is not None:
            now = self._learned()
            update = {n: now[n] - before for n, before in self._before.items()}
            with untouched(self._model):
                point = Point(self._model, loss, inputs, targets, self._before)
                found = read(point, self.step_number, update=update, **self._options)
            found.distance = _distance(self._before, self._start)
            self.readings.append(found)
        self.step_number += 1
        self._begin()

    # --- as a context -----------------------------------------------------------------------------

    def __enter__(self) -> Self:
        missing = [
            name
            for name, given in (
                ("model", self._model),
                ("loss", self._loss),
                ("data", self._data),
                ("optimizer", self._optimizer),
            )
            if given is None
        ]
        if missing:
            raise ValueError(
                f"Cockpit: {', '.join(missing)} missing; a loop of your own needs "
                "Cockpit(model, loss, data, optimizer), a Trainer callbacks=[Cockpit()]"
            )
        loss, optimizer = self._loss, self._optimizer
        inputs, targets = of_batch("Cockpit", self._data)
        self._begin()

        def stepped(*_: Any) -> None:
            self._after(loss, inputs, targets)  # type: ignore[arg-type]

        self._handle = optimizer.register_step_post_hook(stepped)  # type: ignore[union-attr]
        return self

    def __exit__(self, *error: object) -> None:
        if self._handle is not None:
            self._handle.remove()
        self._handle, self._before = None, {}

    # --- as a callback of a Trainer ---------------------------------------------------------------

    def on_fit_start(self, trainer: Any) -> None:
        """Begins to look at the trainer's model."""
        self._model = trainer.model
        self._begin()

    def on_epoch_start(self, trainer: Any) -> None:
        """Does nothing: steps are what counts."""

    def on_backward_end(self, trainer: Any) -> None:
        """Does nothing: readings follow the update."""

    def on_batch_end(self, trainer: Any) -> None:
        """Reads the instruments where the update began."""
        batch = trainer.batch
        weight = trainer.weight_of(batch) if self._before else None
        loss: Loss = trainer.loss if weight is None else _Weighted(trainer.loss, weight)
        self._after(loss, tuple(batch.inputs), batch.target)

    def on_epoch_end(self, trainer: Any) -> None:
        """Does nothing: steps are what counts."""

    def on_fit_end(self, trainer: Any) -> None:
        """Forgets the model."""
        self._model, self._before = None, {}

    def on_error(self, trainer: Any) -> None:
        """Forgets the model."""
        self.on_fit_end(trainer)

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs; readings stay with the run that made them."""
        return {"step": self.step_number, "start": self._start}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Takes back what :meth:`state_dict` gave."""
        self.step_number, self._start = state["step"], dict(state["start"])


class _Weighted:
    """A loss with the weights of the samples of a batch."""

    def __init__(self, loss: Any, weight: Tensor):
        self.loss, self.weight = loss, weight

    def __call__(self, output: Any, target: Any) -> Tensor:
        """The loss of the whole batch; a single sample weighs nothing special."""
        whole = len(target) == len(self.weight)
        return self.loss(output, target, self.weight if whole else None)


def _distance(a: dict[str, Tensor], b: dict[str, Tensor]) -> float:
    return math.sqrt(sum(float(vector_norm(a[n] - b[n])) ** 2 for n in a))


@instrument("V15", "V43", "D22", needs=("model", "loss", "data"))
def cockpit(
    model: Module,
    loss: Loss,
    data: Any,
    optimizer: Optimizer | None = None,
    *,
    eigenvalues: int = 3,
    products: int = 30,
    noise: bool = True,
) -> Flight:
    """Slope, noise and curvature of the loss of a batch, and where the next step would lead.

    Args:
        model: any module, in the mode that it is in.
        loss: a function of the model's output and the targets that gives one number.
        data: a pair (inputs, targets), or a loader of which the first batch is taken.
        optimizer: whose next step is tried on copies; without it no step is looked at.
        eigenvalues: how many of the Hessian's largest.
        products: how many to estimate the trace of a large Hessian from.
        noise: whether to read what needs gradients of single samples.

    >>> import chainrule
    >>> from chainrule import inspect, nn, optim
    >>> model, x = nn.Linear(2, 1), chainrule.tensor([[1.0, 0.0], [0.0, 2.0]])
    >>> sgd = optim.SGD(model.parameters(), lr=0.01)
    >>> seen = inspect.cockpit(model, nn.functional.mse_loss, (x, chainrule.ones(2, 1)), sgd)
    >>> -1 < seen.last.alpha < -0.9
    True
    """
    check_optimizer("cockpit", optimizer)
    inputs, targets = of_batch("cockpit", data)
    check_finite("cockpit", model, inputs)
    point = Point(model, loss, inputs, targets)
    update = None if optimizer is None else _tried(model, optimizer, point)
    options: dict[str, Any] = {"eigenvalues": eigenvalues, "products": products, "noise": noise}
    return Flight([read(point, update=update, curve=update is not None, **options)])


def _tried(model: Module, optimizer: Optimizer, point: Point) -> dict[str, Tensor]:
    """The update that the optimizer would make, on copies of it and of the model."""
    known = {id(p) for group in optimizer.param_groups for p in group["params"]}
    if not any(id(p) in known for p in model.parameters()):
        raise ValueError("cockpit: the optimizer has no parameter of this model")
    twin, copied = copy.deepcopy((model, optimizer))
    with enable_grad():
        for p in twin.parameters():
            p.grad = None

        def closure() -> Tensor:
            copied.zero_grad()
            set_rng_state(point.random)
            value = point.loss(twin(*point.args, **point.kwargs), point.targets)
            value.backward()
            return value

        copied.step(closure)
    after = dict(twin.named_parameters())
    return {n: after[n].detach() - p for n, p in point.params.items()}
