"""What the parameters of the estimators may be."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from numbers import Integral, Real
from typing import Any, NamedTuple

from chainrule import nn, optim
from chainrule.optim.lr_scheduler import LRScheduler
from chainrule.optim.settings import Interval
from chainrule.train.callbacks import Events
from chainrule.typing import Array

__all__ = ["check_parameters", "hidden_sizes", "warn_of_scales"]


class Rule(NamedTuple):
    """A test of a value, and in words what passes it."""

    passes: Callable[[Any], bool]
    words: str


def _number(kind: type, low: float, high: float = math.inf, ends: str = "[)") -> Rule:
    interval = Interval(low, high, ends)
    name = "an int" if kind is Integral else "a float"

    def passes(value: Any) -> bool:
        number = isinstance(value, kind) and not isinstance(value, bool)
        return number and float(value) in interval

    return Rule(passes, f"{name} in {interval}")


def _one_of(*options: Any) -> Rule:
    return Rule(
        lambda v: any([v is o or (type(v) is type(o) and v == o) for o in options]),
        " or ".join(map(repr, options)),
    )


def _either(*rules: Rule) -> Rule:
    return Rule(lambda v: any([r.passes(v) for r in rules]), ", or ".join(r.words for r in rules))


def _is_callbacks(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all([isinstance(c, Events) for c in value])


def _is_activation(value: Any) -> bool:
    parts = value if isinstance(value, (list, tuple)) else [value]
    return all([isinstance(part, str) or callable(part) for part in parts])


_NONE = _one_of(None)
_TRUTH = Rule(lambda v: isinstance(v, bool) or type(v).__name__ == "bool", "True or False")
_POSITIVE = _number(Real, 0, ends="()")
_FRACTION = _number(Real, 0, 1)
_FUNCTION = Rule(callable, "a function")
_SCHEDULE = Rule(
    lambda v: callable(v) and not isinstance(v, LRScheduler),
    "a function of the optimizer that makes a schedule",
)
_NAME = Rule(lambda v: isinstance(v, str), "a name")

RULES: dict[str, Rule] = {
    "activation": Rule(_is_activation, "a name, a module or a function, or a list of these"),
    "alpha": _number(Real, 0),
    "batch_size": _either(_one_of("auto"), _number(Integral, 1)),
    "beta_1": _either(_NONE, _FRACTION),
    "beta_2": _either(_NONE, _FRACTION),
    "callbacks": Rule(
        _is_callbacks, "a list of chainrule.train.Callback, or of objects with its methods"
    ),
    "code_activation": Rule(_is_activation, "a name, a module or a function"),
    "dropout": _FRACTION,
    "early_stopping": _TRUTH,
    "epsilon": _either(_NONE, _POSITIVE),
    "layer": _either(_NONE, _NAME),
    "learning_rate": _either(_one_of("constant", "invscaling", "adaptive"), _SCHEDULE),
    "learning_rate_init": _either(_NONE, _POSITIVE),
    "loss": _either(_NAME, _FUNCTION),
    "max_iter": _number(Integral, 1),
    "module": _either(_NONE, Rule(lambda v: isinstance(v, nn.Module), "a module"), _FUNCTION),
    "momentum": _either(_NONE, _number(Real, 0, 1, "[]")),
    "n_components": _number(Integral, 1),
    "n_iter_no_change": _either(_number(Integral, 1), Rule(lambda v: v == math.inf, "infinity")),
    "nesterovs_momentum": _either(_NONE, _TRUTH),
    "norm": _one_of(None, "batch", "layer"),
    "power_t": _number(Real, 0),
    "shuffle": _TRUTH,
    "solver": _either(
        _NAME, Rule(callable, "a class of chainrule.optim, or a function that makes an optimizer")
    ),
    "task": _one_of("reconstruction", "classification", "regression"),
    "tol": _number(Real, 0),
    "validation_fraction": _number(Real, 0, 1, "()"),
    "verbose": _either(_TRUTH, _number(Integral, 0)),
    "warm_start": _TRUTH,
}


def check_parameters(name: str, parameters: dict[str, Any]) -> None:
    """Raises ValueError for the first parameter that is not what it may be."""
    for key, value in parameters.items():
        if isinstance(value, optim.Optimizer):
            raise ValueError(
                f"The {key!r} parameter of {name} must be the name or class of an optimizer, or a "
                "function that makes one for some parameters: an optimizer belongs to parameters "
                f"that exist already. Got {type(value).__name__} instead."
            )
        rule = RULES.get(key)
        if rule is not None and not rule.passes(value):
            raise ValueError(
                f"The {key!r} parameter of {name} must be {rule.words}. Got {value!r} instead."
            )


def hidden_sizes(given: int | Iterable[int]) -> list[int]:
    """The widths of the hidden layers: one number, or some."""
    sizes = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    if not all([isinstance(n, Integral) and not isinstance(n, bool) and int(n) > 0 for n in sizes]):
        raise ValueError(f"hidden_layer_sizes must be whole numbers > 0, got {given!r}.")
    return [int(n) for n in sizes]


APART = 1000.0  # how many times wider one feature is than another, beyond which none learns both


def warn_of_scales(name: str, X: Array, stacklevel: int) -> None:
    """Warns where features differ by orders of magnitude, as none scales them before."""
    if hasattr(X, "toarray") or len(X) < 2 or X.shape[1] < 2:
        return
    spreads = X.std(axis=0)
    varying = spreads[spreads > 1e-12 * abs(X).max(axis=0)]
    if len(varying) < 2 or not varying.max() > APART * varying.min():
        return
    wide, narrow = int(spreads.argmax()), int((spreads == varying.min()).argmax())
    warnings.warn(
        f"{name}: the features differ by orders of magnitude (feature {wide} varies by "
        f"{spreads[wide]:.2g}, feature {narrow} by {spreads[narrow]:.2g}), so the network will "
        "hardly learn from the narrow ones; put a scaler in front: make_pipeline("
        f"StandardScaler(), {name}(...))",
        stacklevel=stacklevel,
    )
