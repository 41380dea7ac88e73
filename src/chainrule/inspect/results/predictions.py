"""What a model predicts for data whose targets are known, whatever kind of model it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, Self

from chainrule.autograd.modes import no_grad
from chainrule.inspect.core.arguments import call, main_tensor, tensors
from chainrule.inspect.core.results import Result
from chainrule.inspect.core.untouched import untouched
from chainrule.metrics.labels import classes_of
from chainrule.metrics.scores import probabilities
from chainrule.nn.functional import one_hot
from chainrule.nn.module.base import Module
from chainrule.ops.creation.from_data import as_tensor, tensor
from chainrule.tensor import Tensor

__all__ = ["Display", "Predictions", "fitting", "is_fitted", "outputs_of", "predicted", "scored"]

TASKS = ("classification", "labels", "regression")
# Options of scikit-learn's displays, and what they are here.
HABITS = {
    "ax": "the display draws itself: .plot(ax=...)",
    "display_labels": "names of the classes are classes=[...]",
    "labels": "names of the classes are classes=[...]",
    "n_bins": "it is called bins",
    "name": "pass label=... to .plot()",
    "pos_label": "of two classes the second is meant; number them so",
}


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions and targets in one form.

    Classification: probabilities (N, K) and numbers of classes (N,); labels (each sample may have
    several): probabilities (N, K) and zeros and ones (N, K); regression: numbers (N, D) and (N, D).
    """

    task: str
    scores: Tensor
    targets: Tensor
    classes: list[str]


class Display(Result):
    """A result of predictions, also made in the way of scikit-learn's displays."""

    _name = "display"
    _task: str | None = None

    @classmethod
    def _of(cls, found: Predictions, *args: Any, **options: Any) -> Self:
        raise NotImplementedError(cls.__name__)

    @classmethod
    def _made(cls, found: Predictions, options: dict[str, Any]) -> Self:
        """The display, after a look whether it has these options."""
        known = [name for name in signature(cls._of).parameters if name != "found"]
        for name in options:
            if name not in known:
                hint = HABITS.get(name, f"there are classes, {', '.join(known)}")
                raise TypeError(f"{cls._name}: there is no option {name!r}; {hint}")
        return cls._of(found, **options)

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_pred: Any, *, classes: Sequence[str] | None = None, **options: Any
    ) -> Self:
        """Of targets and predictions: scores, or predicted labels where these suffice."""
        return cls._made(scored(cls._name, y_pred, y_true, cls._task, classes), options)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, classes: Sequence[str] | None = None, **options: Any
    ) -> Self:
        """Of an estimator, a network or a fitted network, and data."""
        return cls._made(predicted(cls._name, estimator, X, y, cls._task, classes), options)


def predicted(
    instrument: str,
    model: Any,
    inputs: Any,
    targets: Any,
    task: str | None = None,
    classes: Sequence[str] | None = None,
) -> Predictions:
    """What a module, a fitted network, an estimator or a function predicts for inputs."""
    output, names = outputs_of(instrument, model, inputs)
    if is_fitted(model):
        truth = inputs[model.about["target"]] if targets is None else targets
        targets = model.target(truth)
        if model.task == "regression":
            targets = as_tensor(model.target.decode(targets.reshape(-1, 1)))
    elif names:
        targets = _numbered(instrument, targets, names)
    return scored(instrument, output, targets, task, classes or [str(n) for n in names])


def is_fitted(model: Any) -> bool:
    """Whether a model reads raw data itself, as those of ``train.fit_table`` do."""
    return all(hasattr(model, name) for name in ("outputs", "about", "target", "task"))


def outputs_of(instrument: str, model: Any, inputs: Any) -> tuple[Tensor, list[Any]]:
    """Scores or numbers for inputs, and how an estimator calls its classes."""
    if is_fitted(model):
        with untouched(model.model):
            if model.task == "classification":
                return model.predict_proba(inputs), list(model.target.classes)
            return as_tensor(model.predict(inputs)), []
    if not isinstance(model, Module) and hasattr(model, "predict"):
        return _of_estimator(instrument, model, inputs)
    if not callable(model):
        raise TypeError(
            f"{instrument}: model must be a module, a fitted network, an estimator or a function, "
            f"got {type(model).__name__}"
        )
    modules = [model] if isinstance(model, Module) else []
    with untouched(*modules), no_grad():
        for module in modules:
            module.eval()
        output = call(model, instrument, fitting(model, inputs))
        return main_tensor(instrument, output).detach(), []


def fitting(model: Any, inputs: Any) -> Any:
    """Inputs as a module takes them: numbers of other libraries in the type of its parameters."""
    first = next(iter(model.parameters()), None) if isinstance(model, Module) else None

    def converted(value: Any) -> Any:
        if isinstance(value, Tensor) or not hasattr(value, "__array__"):
            return value
        made = as_tensor(value)
        return made.to(dtype=first.dtype) if first is not None and _is_floating(made) else made

    if isinstance(inputs, dict):
        return {name: converted(value) for name, value in inputs.items()}
    if isinstance(inputs, (tuple, list)):
        if any(isinstance(v, Tensor) or hasattr(v, "__array__") for v in inputs):
            return type(inputs)(converted(v) for v in inputs)
        inputs = tensor(inputs) if isinstance(inputs, list) else inputs
    return converted(inputs.to_numpy() if hasattr(inputs, "to_numpy") else inputs)


def _is_floating(values: Tensor) -> bool:
    return values.dtype.is_floating_point


def _of_estimator(instrument: str, model: Any, inputs: Any) -> tuple[Tensor, list[Any]]:
    given = inputs.numpy() if isinstance(inputs, Tensor) else inputs
    if hasattr(model, "predict_proba"):
        return as_tensor(model.predict_proba(given)), list(model.classes_)
    if hasattr(model, "decision_function") and hasattr(model, "classes_"):
        return as_tensor(model.decision_function(given)), list(model.classes_)
    return as_tensor(model.predict(given)), []


def scored(
    instrument: str,
    output: Any,
    targets: Any,
    task: str | None = None,
    classes: Sequence[str] | None = None,
) -> Predictions:
    """Predictions and targets in one form, after checks."""
    if task not in (None, *TASKS):
        raise ValueError(f"{instrument}: task must be one of {TASKS}, got {task!r}")
    output, targets, known = _numbers(instrument, output, targets, task)
    if len(output) != len(targets) or not len(output):
        raise ValueError(
            f"{instrument}: expected as many predictions as targets, at least one, got "
            f"{len(output)} and {len(targets)}"
        )
    if not bool(output.isfinite().all()) or not bool(targets.isfinite().all()):
        raise ValueError(
            f"{instrument}: predictions and targets must be finite; drop the samples that are not, "
            "or find where they come from with inspect.autopsy"
        )
    found = _in_form(instrument, output, targets, task or _task_of(instrument, output, targets))
    names = [str(c) for c in classes or known]
    if found.task == "regression" or not names:
        return found
    if len(names) != found.scores.shape[1]:
        raise ValueError(
            f"{instrument}: {len(names)} names for {found.scores.shape[1]} classes: {names}"
        )
    return replace(found, classes=names)


def _numbers(
    instrument: str, output: Any, targets: Any, task: str | None
) -> tuple[Tensor, Tensor, list[str]]:
    """Tensors, and of labels that are words or predicted ones their names."""
    for what in (output, targets):
        if isinstance(what, dict) or (isinstance(what, (tuple, list)) and tensors(what)):
            raise TypeError(
                f"{instrument}: predictions and targets are one array each, got a "
                f"{type(what).__name__} of several; choose one of them"
            )
    true, said = _listed(targets), _listed(output)
    words = bool(true) and isinstance(true[0], str)
    labels = bool(said) and isinstance(said[0], (str, bool, int)) and task == "classification"
    if words and task == "regression":
        raise ValueError(
            f"{instrument}: the targets are words such as {true[0]!r} and no numbers; look at "
            "inspect.confusion instead"
        )
    if not labels and said and isinstance(said[0], str):
        raise ValueError(
            f"{instrument}: predicted labels such as {said[0]!r} have no scores to compare with a "
            "threshold; give probabilities, or look at inspect.confusion"
        )
    if not words and not labels:
        return as_tensor(output).detach(), as_tensor(targets).detach(), []
    names = sorted({*true, *(said if labels else ())})
    numbers = _numbered(instrument, true, names)
    if not labels:
        return as_tensor(output).detach(), numbers, [str(n) for n in names]
    chosen = one_hot(_numbered(instrument, said, names), max(2, len(names))).double()
    return chosen, numbers, [str(n) for n in names] if len(names) > 1 else []


def _listed(values: Any) -> list[Any]:
    """A column as a list; nothing of what has several columns."""
    if isinstance(values, Tensor):
        values = values.detach()
    listed = values.tolist() if hasattr(values, "tolist") else list(values)
    if not isinstance(listed, list):
        listed = [listed]
    if listed and isinstance(listed[0], list):
        return [row[0] for row in listed] if len(listed[0]) == 1 else []
    return listed


def _numbered(instrument: str, labels: Any, names: Sequence[Any]) -> Tensor:
    place = {name: k for k, name in enumerate(names)}
    listed = _listed(labels)
    unknown = [label for label in listed if label not in place]
    if unknown:
        raise ValueError(
            f"{instrument}: the target {unknown[0]!r} is none of the model's classes "
            f"{list(names)[:12]}"
        )
    return tensor([place[label] for label in listed])


def _task_of(instrument: str, output: Tensor, targets: Tensor) -> str:
    """What the shapes and values of predictions and targets say about the task."""
    values = targets.double()
    whole = bool((values == values.round()).all())
    if output.numel() == len(output):
        two = whole and (_all_in(values, 0, 1) or _all_in(values, -1, 1))
        return "classification" if two else "regression"
    if targets.numel() == len(targets):
        if not whole:
            raise ValueError(
                f"{instrument}: outputs of shape {tuple(output.shape)} and one number as the "
                "target fit neither classes nor numbers; choose one output"
            )
        return "classification"
    if targets.ndim == 2 and _all_in(values, 0, 1):
        return "classification" if bool((values.sum(1) == 1).all()) else "labels"
    return "regression"


def _all_in(values: Tensor, low: float, high: float) -> bool:
    return bool(((values == low) | (values == high)).all())


def _in_form(instrument: str, output: Tensor, targets: Tensor, task: str) -> Predictions:
    if task == "classification":
        _, true = classes_of(instrument, output, targets)
        shares = probabilities(instrument, output, None)
        names = [str(k) for k in range(shares.shape[1])]
        return Predictions(task, shares, true, names)
    if output.numel() != targets.numel():
        raise ValueError(
            f"{instrument}: expected predictions and targets of one shape, got "
            f"{tuple(output.shape)} and {tuple(targets.shape)}"
        )
    scores, true = output.reshape(len(output), -1).double(), targets.reshape(len(targets), -1)
    if task == "regression":
        return Predictions(task, scores, true.double(), [])
    plain = bool(((scores >= 0) & (scores <= 1)).all())
    names = [str(k) for k in range(scores.shape[1])]
    return Predictions(task, scores if plain else scores.sigmoid(), true.double(), names)
