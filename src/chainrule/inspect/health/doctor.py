"""A teacher's eye on a network, its loss, its data and its optimizer."""

from __future__ import annotations

from typing import Any

from chainrule.inspect.core.arguments import check_optimizer
from chainrule.inspect.core.registry import instrument
from chainrule.inspect.health import rules_curves, rules_data, rules_layers, rules_network
from chainrule.inspect.health.diagnosis import Diagnosis
from chainrule.inspect.health.findings import RULES, Finding, Stage, apply
from chainrule.inspect.health.objectives import Loss
from chainrule.inspect.health.passes import Pass, passed
from chainrule.inspect.health.samples import Data, read
from chainrule.inspect.health.trials import Trial
from chainrule.nn.layers.norm import _BatchNorm
from chainrule.nn.module.base import Module
from chainrule.optim import Optimizer
from chainrule.tensor import Tensor

__all__ = ["doctor"]

# Which put their rules on the list.
_TABLES = rules_curves, rules_data, rules_network, rules_layers


@instrument("Y06", needs=("model", "loss", "data"))
def doctor(
    model: Module,
    loss: Loss,
    data: Any,
    optimizer: Optimizer | None = None,
    *,
    validation: Any = None,
    weighted: bool | None = None,
    trained: bool | None = None,
    trial: bool = True,
) -> Diagnosis:
    """Looks for common mistakes in a model, its loss, its data and its optimizer.

    The data is looked at as it is; the model makes one forward and one backward pass; and a copy of
    it makes some steps of training. Each rule has a threshold with a reason: see docs/doctor.md.

    Args:
        model: the model, before or after training.
        loss: ``loss(output, targets)``.
        data: a pair (inputs, targets), or a loader of such batches in their order.
        optimizer: with it, rates and groups of parameters are looked at, too.
        validation: data that is held out, like ``data``.
        weighted: whether classes are weighted elsewhere than in the loss or the data.
        trained: whether training is over; by default if the optimizer has made steps.
        trial: whether a copy may be trained for some steps.

    >>> import chainrule
    >>> from chainrule import inspect, nn
    >>> _ = chainrule.manual_seed(0)
    >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3), nn.Softmax(1))
    >>> data = chainrule.randn(30, 4), chainrule.arange(30) % 3
    >>> found = inspect.doctor(net, nn.CrossEntropyLoss(), data).findings
    >>> found[0].rule, found[0].layer, found[0].remedy
    ('softmax before cross-entropy', '3', 'remove the softmax at the end of the network: ...')
    """
    check_optimizer("doctor", optimizer)
    seen = read("doctor", data, validation, _has_weights(loss) if weighted is None else weighted)
    seen.batch_norms = [n for n, m in model.named_modules() if isinstance(m, _BatchNorm)]
    diagnosis = Diagnosis()
    _examine(diagnosis, "data", seen)
    if any(f.severity == "error" and f.rule in _STOPS for f in diagnosis.findings):
        _skip(diagnosis, "network", "the data has to be mended first")
        return diagnosis
    found = _passed(diagnosis, model, loss, seen, optimizer)
    if found is None:
        return diagnosis
    if trained is not None:
        found.fresh = not trained
    diagnosis.layers = found.layers
    _examine(diagnosis, "network", found)
    _try(diagnosis, model, loss, seen, optimizer, trial and found.fresh)
    return diagnosis


# What makes a pass meaningless or impossible.
_STOPS = ("NaN in the data", "batch norm on one sample")


def _examine(diagnosis: Diagnosis, stage: Stage, subject: object) -> None:
    diagnosis.findings += apply(stage, subject, diagnosis.skipped)
    diagnosis.checked += [r.name for r in RULES.values() if r.stage == stage]


def _skip(diagnosis: Diagnosis, stage: Stage, why: str) -> None:
    diagnosis.skipped[{"network": "the network", "trial": "the rate"}.get(stage, stage)] = why


def _passed(
    diagnosis: Diagnosis, model: Module, loss: Loss, data: Data, optimizer: Optimizer | None
) -> Pass | None:
    """One pass; where it fails, the error is the finding."""
    inputs, targets = data.first
    try:
        found = passed("doctor", model, loss, inputs, targets, optimizer)
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        diagnosis.findings.append(
            Finding(
                _named(str(error)),
                "error",
                "",
                0.0,
                0.0,
                f"a pass over the first batch fails: {error}",
                "see the error: it names the shapes and the rule they break",
            )
        )
        _skip(diagnosis, "network", "no pass over the first batch")
        return None
    found.weighted = data.weighted
    return found


def _named(error: str) -> str:
    """Which mistake an error is."""
    return "(N, 1) against (N,)" if "does not broadcast" in error else "the pass fails"


def _try(
    diagnosis: Diagnosis,
    model: Module,
    loss: Loss,
    data: Data,
    optimizer: Optimizer | None,
    wanted: bool,
) -> None:
    if optimizer is None or not wanted:
        _skip(diagnosis, "trial", "no optimizer was given" if wanted else "not before a training")
        return
    if "sorted data" in diagnosis.rules:
        _skip(diagnosis, "trial", "losses of sorted batches do not compare")
        return
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    if not any(id(p) in held and p.requires_grad for p in model.parameters()):
        _skip(diagnosis, "trial", "the optimizer has no parameter of the model that learns")
        return
    _examine(diagnosis, "trial", Trial(model, loss, optimizer, data.batches))


def _has_weights(loss: Loss) -> bool:
    """Whether a loss weighs its classes."""
    own = getattr(loss, "loss", loss)
    return any(isinstance(getattr(own, n, None), Tensor) for n in ("weight", "pos_weight"))
