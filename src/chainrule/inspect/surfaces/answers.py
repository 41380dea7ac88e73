"""What a model answers, as probabilities of classes or as numbers, whatever kind of model it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from chainrule.inspect.core.arguments import main_tensor
from chainrule.nn.functional import one_hot
from chainrule.nn.module.base import Module
from chainrule.ops.creation.from_data import as_tensor, tensor
from chainrule.ops.shape.stacking import stack
from chainrule.tensor import Tensor

__all__ = ["Answers", "answers_of"]


@dataclass(frozen=True, eq=False)
class Answers:
    """Probabilities (N, K) and the names of the K classes; or numbers (N,) and no classes."""

    values: Tensor
    classes: list[str] = field(default_factory=list)
    levels: list[float] = field(default_factory=list)  # what targets call the classes

    def numbered(self, instrument: str, targets: Tensor) -> Tensor:
        """Targets as numbers of classes."""
        found = stack([targets == level for level in self.levels], 1)
        if not bool(found.any(1).all()):
            wrong = float(targets[~found.any(1)][0])
            raise ValueError(
                f"{instrument}: the target {wrong:g} is none of the model's classes "
                f"{', '.join(self.classes[:12])}; number classes from 0, and say "
                "task='regression' for numbers"
            )
        return found.long().argmax(1)


def answers_of(
    instrument: str,
    model: Any,
    x: Tensor,
    targets: Tensor | None,
    task: str | None,
    columns: Callable[[Any], Any] | None = None,
) -> Answers:
    """The answers of a module, a function or an estimator to rows of inputs.

    ``columns`` makes of an array the table with names that an estimator was fitted on.
    """
    found = _answers(instrument, model, x, targets, task, columns)
    if not bool(found.values.isfinite().all()):
        raise ValueError(
            f"{instrument}: the model answers with values that are not finite; find where they "
            "come from with inspect.autopsy"
        )
    return found


def _answers(
    instrument: str,
    model: Any,
    x: Tensor,
    targets: Tensor | None,
    task: str | None,
    columns: Callable[[Any], Any] | None,
) -> Answers:
    if task not in (None, "classification", "regression"):
        raise ValueError(
            f"{instrument}: task must be 'classification' or 'regression', got {task!r}"
        )
    given = x.numpy() if columns is None else columns(x.numpy())
    if task != "regression" and hasattr(model, "predict_proba"):
        shares = as_tensor(model.predict_proba(given)).double()
        known = [str(c) for c in getattr(model, "classes_", range(shares.shape[1]))]
        return Answers(shares, known, _levels(known))
    if not isinstance(model, Module) and hasattr(model, "predict"):
        said = model.predict(given)
        if task == "regression" or not hasattr(model, "classes_"):
            return Answers(as_tensor(said).double().reshape(-1))
        known = model.classes_.tolist()  # no probabilities: all or nothing
        chosen = tensor([known.index(label) for label in said.tolist()])
        names = [str(c) for c in known]
        return Answers(one_hot(chosen, len(known)).double(), names, _levels(names))
    if not callable(model):
        raise TypeError(
            f"{instrument}: model must be a module, a function or an estimator, got "
            f"{type(model).__name__}"
        )
    output = main_tensor(instrument, _run(model, x)).detach()
    return _of_output(instrument, output.reshape(len(x), -1), targets, task)


def _levels(names: list[str]) -> list[float]:
    try:
        return [float(name) for name in names]
    except ValueError:  # names of classes that are no numbers: targets are their numbers
        return [float(k) for k in range(len(names))]


def _run(model: Any, x: Tensor) -> Any:
    if not isinstance(model, Module):
        return model(x)
    first = next(iter(model.parameters()), None)
    return model.eval()(x if first is None else x.to(dtype=first.dtype))


def _of_output(
    instrument: str, output: Tensor, targets: Tensor | None, task: str | None
) -> Answers:
    width = output.shape[1]
    whole = targets is not None and not targets.dtype.is_floating_point
    if task is None:
        task = "classification" if whole or width > 1 else "regression"
    if task == "regression":
        if width != 1:
            raise ValueError(
                f"{instrument}: a regression with {width} outputs has no one picture; give a "
                "function that returns one of them"
            )
        return Answers(output.reshape(-1))
    if width > 1:
        return Answers(_shares(output), [str(k) for k in range(width)], _range(width))
    levels = [0.0, 1.0]
    if targets is not None and bool((targets == -1).any()):
        levels = [-1.0, 1.0]  # tanh: the sign decides
        second = (output.reshape(-1) + 1) / 2 if _within(output, -1, 1) else output.sigmoid()
    else:
        second = output if _within(output, 0, 1) else output.sigmoid()
    second = second.reshape(-1)
    return Answers(stack([1 - second, second], 1), [f"{v:g}" for v in levels], levels)


def _range(count: int) -> list[float]:
    return [float(k) for k in range(count)]


def _within(values: Tensor, low: float, high: float) -> bool:
    return bool(((values >= low) & (values <= high)).all())


def _shares(output: Tensor) -> Tensor:
    """Probabilities as they are; the softmax of anything else."""
    sums = bool(((output.sum(1) - 1).abs() < 1e-4).all())
    return output if sums and _within(output, 0, 1 + 1e-6) else output.softmax(1)
