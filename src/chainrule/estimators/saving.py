"""Estimators as parts that a file can hold, and back; nothing of a file is believed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, get_args

from sklearn.preprocessing import LabelBinarizer, LabelEncoder
from sklearn.utils import check_random_state, column_or_1d

from chainrule import nn
from chainrule.data.preprocess import saved
from chainrule.estimators.checks import check_parameters, hidden_sizes
from chainrule.estimators.monitor import Monitor
from chainrule.estimators.network import Bottleneck, output_of
from chainrule.estimators.targets import Binary, Classes, Labels, Numbers, Outputs, Target
from chainrule.ops.creation.patterns import zeros
from chainrule.train import History
from chainrule.train.history import Ending
from chainrule.typing import Array

if TYPE_CHECKING:
    from chainrule.estimators.base import NetworkEstimator

__all__ = ["parts_of", "restore"]

OP = "estimator"
LARGEST = 2**24  # features, labels
WORDS = 624  # of the state of the generator
TYPES = {
    "bool": bool,
    **dict.fromkeys([f"int{n}" for n in (8, 16, 32, 64)], int),
    **dict.fromkeys([f"uint{n}" for n in (8, 16, 32, 64)], int),
    "float32": float,
    "float64": float,
    "str": str,
    "object": (str, int, float, bool),
}
MONITORED = {
    "losses": "numbers",
    "scores": "numbers",
    "best_loss": "number",
    "best_score": "number",
    "loss_at_best": "number",
    "samples": "count",
    "start_rate": "number",
    "waited": "count",
}


# --- parameters -----------------------------------------------------------------------------------


def _plain(name: str, value: Any) -> Any:
    """A parameter as a file can hold it."""
    if value is None or isinstance(value, (bool, str, nn.Module)):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, (list, tuple)):
        return type(value)([_plain(name, v) for v in value])
    if isinstance(value, Mapping):
        return {_plain(name, k): _plain(name, v) for k, v in value.items()}
    raise ValueError(
        f"save: the parameter {name!r} is {value!r:.60}, which a file cannot hold; "
        f"{_REMEDIES.get(name, 'give its name instead')}, by set_params({name}=...)"
    )


_REMEDIES = {
    "callbacks": "leave them out",
    "module": "pass a module, not a function or class that makes one",
    "random_state": "pass a whole number",
    "learning_rate": 'say "constant", "invscaling" or "adaptive"',
}


# --- targets --------------------------------------------------------------------------------------


def _classes(array: Array) -> dict[str, Any]:
    kind = str(array.dtype)
    return {"type": "str" if array.dtype.kind == "U" else kind, "values": array.tolist()}


def _array(told: Any) -> Array:
    """An array of different classes in their order."""
    kind, values = saved(OP, told, type="text", values="list")
    if kind not in TYPES or not all([isinstance(v, TYPES[kind]) for v in values]):  # type: ignore[arg-type]
        raise ValueError(f"{OP}: the saved classes are not of one type, {kind!r:.40}")
    array = column_or_1d(values, dtype=kind)
    if len(array) < 2 or LabelEncoder().fit(array).classes_.tolist() != array.tolist():
        raise ValueError(f"{OP}: the saved classes are not different, in order, and several")
    return array


def _encoder(told: Any) -> LabelEncoder:
    encoder = LabelEncoder()
    encoder.classes_ = _array(told)
    return encoder


def _target_parts(target: Target) -> dict[str, Any]:
    if isinstance(target, Numbers):
        return {"kind": "numbers", "width": target.width, "flat": target.flat}
    if isinstance(target, Outputs):
        return {"kind": "outputs", "classes": [_classes(c) for c in target.classes]}
    if isinstance(target, Labels):
        return {"kind": "labels", "width": target.width}
    kind = "binary" if isinstance(target, Binary) else "classes"
    return {"kind": kind, "classes": _classes(target.classes)}  # type: ignore[attr-defined]


def _target(told: Any, loss: Any) -> Target:
    (kind,) = saved(OP, told, kind="text")
    if kind == "numbers":
        width, flat = saved(OP, told, width="count", flat="truth")
        return Numbers("squared_error" if loss == "auto" else loss, width, flat)
    loss = "log_loss" if loss == "auto" else loss
    if kind == "labels":
        (width,) = saved(OP, told, width="count")
        if not 2 <= width <= LARGEST:
            raise ValueError(f"{OP}: {width} saved labels")
        return Labels(loss, LabelBinarizer().fit([[0] * width, [1] * width]))
    if kind == "outputs":
        (each,) = saved(OP, told, classes="list")
        return Outputs(loss, [_encoder(part) for part in each])
    if kind not in ("binary", "classes"):
        raise ValueError(f"{OP}: a saved target of the unknown kind {kind!r:.40}")
    encoder = _encoder(told.get("classes"))
    return Binary(encoder) if kind == "binary" else Classes(loss, encoder)


# --- the whole ------------------------------------------------------------------------------------


def _module_parts(module: nn.Module) -> Any:
    """A module, or the two parts of one that this room alone knows."""
    return [module.encoder, module.decoder] if type(module) is Bottleneck else module


def _module(told: Any) -> nn.Module:
    parts = told if isinstance(told, list) else [told]
    if len(parts) > 2 or not all([isinstance(part, nn.Module) for part in parts]):
        raise ValueError(f"{OP}: the saved module is {told!r:.60}")
    return Bottleneck(*parts) if len(parts) == 2 else parts[0]


def parts_of(estimator: NetworkEstimator) -> dict[str, Any]:
    """Parameters, and after ``fit`` the network with all that goes on from it."""
    given = estimator.get_params(deep=False)
    parts: dict[str, Any] = {"params": {name: _plain(name, v) for name, v in given.items()}}
    if not hasattr(estimator, "module_"):
        return parts
    names = getattr(estimator, "feature_names_in_", None)
    optimizer, monitor = estimator._optimizer, estimator._monitor
    return parts | {
        "module": _module_parts(estimator.module_),
        "features": int(estimator.n_features_in_),
        "names": None if names is None else [str(name) for name in names],
        "target": _target_parts(estimator._target_kind),
        "history": estimator.history_.rows,
        "ended": [estimator.history_.ending, estimator.history_.stopped],
        "epochs": estimator.n_iter_,
        "stopping": estimator.validation_scores_ is not None,
        "monitor": {name: getattr(monitor, name) for name in MONITORED},
        "optimizer": estimator._saved_optimizer if optimizer is None else optimizer.state_dict(),
        "random": _random_parts(estimator._random),
    }


def restore(estimator: NetworkEstimator, parts: Any) -> None:
    """Gives a new estimator what a file says, after it was checked."""
    (params,) = saved(OP, parts, params="dict")
    known = estimator.get_params(deep=False)
    if set(params) != set(known):
        raise ValueError(f"{OP}: the saved parameters are not those of {type(estimator).__name__}")
    check_parameters(type(estimator).__name__, params)
    hidden_sizes(params["hidden_layer_sizes"])
    estimator.set_params(**params)
    if "module" not in parts:
        return
    module = _module(parts["module"])
    features, told, history, ended, epochs, stopping, monitored = saved(
        OP,
        parts,
        features="count",
        target="dict",
        history="dicts",
        ended="texts",
        epochs="count",
        stopping="truth",
        monitor="dict",
    )
    target = _target(told, getattr(estimator, "loss", "auto"))
    if not 1 <= features <= LARGEST:
        raise ValueError(f"{OP}: {features} saved features")
    found = tuple(output_of(module, zeros(1, features)).shape)
    if found != (1, target.width):
        raise ValueError(f"{OP}: the module gives {found}, but (1, {target.width}) is expected")
    estimator.module_, estimator._target_kind = module.eval(), target
    estimator.n_features_in_ = features
    _restore_names(estimator, parts.get("names"), features)
    estimator.history_ = _history(history, ended)
    estimator._monitor = _monitor(target, monitored)
    estimator._optimizer = estimator._schedule = None
    estimator._saved_optimizer = parts.get("optimizer")
    estimator._random = _random(parts.get("random"))
    estimator._note_fit(epochs, stopping)
    estimator._note_target()


def _history(rows: list[dict[str, Any]], ended: list[str]) -> History:
    if len(ended) != 2 or ended[0] not in get_args(Ending):
        raise ValueError(f"{OP}: saved 'ended' should be how and why, got {ended!r:.60}")
    history = History(rows)
    history.end(ended[0], ended[1])  # type: ignore[arg-type]
    return history


def _restore_names(estimator: NetworkEstimator, names: Any, features: int) -> None:
    if names is None:
        return
    (texts,) = saved(OP, {"names": names}, names="texts")
    if len(texts) != features:
        raise ValueError(f"{OP}: {len(texts)} saved names of {features} features")
    estimator.feature_names_in_ = column_or_1d(texts, dtype=object)


def _is_real(value: Any) -> bool:
    return type(value) in (int, float) and not math.isnan(value)


_HOLDS: dict[str, Callable[[Any], bool]] = {
    "number": _is_real,
    "numbers": lambda v: isinstance(v, list) and all([_is_real(part) for part in v]),
    "count": lambda v: type(v) is int and v >= 0,
}


def _monitor(target: Target, told: dict[str, Any]) -> Monitor:
    monitor = Monitor(target)
    for name, kind in MONITORED.items():
        value: Any = told.get(name)
        if not _HOLDS[kind](value):
            raise ValueError(f"{OP}: saved {name!r} should be {kind}, got {value!r:.60}")
        setattr(monitor, name, value)
    return monitor


def _random_parts(random: Any) -> dict[str, Any]:
    _, words, place, has_normal, normal = random.get_state()
    return {
        "words": words.tolist(),
        "place": int(place),
        "has_normal": bool(has_normal),
        "normal": float(normal),
    }


def _random(told: Any) -> Any:
    """The generator; a place outside of its words would end the process."""
    words, place, has_normal, normal = saved(
        OP, told, words="list", place="count", has_normal="truth", normal="number"
    )
    if len(words) != WORDS or place > WORDS:
        raise ValueError(f"{OP}: the saved state of the generator is damaged")
    if not all([type(w) is int and 0 <= w < 2**32 for w in words]):
        raise ValueError(f"{OP}: the saved state of the generator is damaged")
    random = check_random_state(0)
    random.set_state(("MT19937", words, place, int(has_normal), normal))
    return random
