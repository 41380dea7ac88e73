"""Mistakes that one forward and backward pass shows: of the loss, of parameters, of scales."""

from __future__ import annotations

import math
from collections.abc import Iterator

from chainrule.inspect.health.findings import Seen, rule
from chainrule.inspect.health.passes import Pass, by_unit, rms
from chainrule.tensor import Tensor

__all__: list[str] = []


# --- numbers --------------------------------------------------------------------------------------


@rule(
    "not finite",
    "network",
    0,
    "NaN or infinite weights, outputs or losses, from finite data: no step can mend them",
    "error",
)
def _not_finite(seen: Pass, threshold: float) -> Iterator[Seen]:
    looked: list[tuple[str, str, list[Tensor]]] = []
    looked += [(n, "parameter", [p]) for n, p in seen.model.named_parameters()]
    name = type(seen.model).__name__
    looked += [(c.path or name, "output", c.outputs) for c in seen.leaves]
    looked.append(("loss", "value", [seen.objective.value]))
    for where, what, found in looked:
        count = sum(int((~t.detach().isfinite()).sum()) for t in found if t.dtype.is_floating_point)
        if count > threshold:
            total = sum(t.numel() for t in found)
            yield Seen(
                where,
                count,
                f"{count} of {total} numbers of this {what} are NaN or infinite",
                "inspect.autopsy(model, inputs, targets, loss) names the operation; after a "
                "training that went astray: start anew with a lower rate or clip_norm",
            )
            return  # the first is the cause of the others


# --- the loss -------------------------------------------------------------------------------------


@rule(
    "softmax before cross-entropy",
    "network",
    1e-3,
    "how far rows of scores are from summing to 1; scores of a network that are no probabilities "
    "never do so in every row",
    "error",
)
def _softmax_twice(seen: Pass, threshold: float) -> Iterator[Seen]:
    scores = seen.objective.scores
    if seen.objective.kind != "cross-entropy" or scores is None or scores.ndim < 2:
        return
    values = scores.detach().double()
    off = float((values.sum(1) - 1).abs().max())
    if values.shape[1] > 1 and off < threshold and float(values.min()) >= 0:
        yield Seen(
            _last(seen),
            off,
            f"the scores are probabilities already (rows sum to 1 within {off:.1e}), and "
            "cross-entropy takes the softmax of them again: its gradient is too small and its "
            f"loss cannot fall below {_floor(values.shape[1]):.2f}",
            "remove the softmax at the end of the network: the loss takes logits",
        )


def _floor(k: int) -> float:
    """The cross-entropy of a one-hot vector taken for logits."""
    return math.log(1 + (k - 1) / math.e)


def _last(seen: Pass) -> str:
    return next((c.path for c in reversed(seen.leaves) if c.path), "")


@rule(
    "sigmoid before the logistic loss",
    "network",
    0,
    "a sigmoid whose output is the logit of a loss that applies it again",
    "error",
)
def _sigmoid_twice(seen: Pass, threshold: float) -> Iterator[Seen]:
    scores = seen.objective.scores
    if seen.objective.kind == "binary with logits" and scores is not None:
        low, high = float(scores.detach().min()), float(scores.detach().max())
        if low >= threshold and high <= 1 and any(_makes(seen, scores, "sigmoid")):
            yield Seen(
                _last(seen),
                high,
                f"the logits come from a sigmoid (from {low:.2f} to {high:.2f}), and the loss "
                "applies one again: no probability below 0.5 can be said",
                "remove the sigmoid at the end of the network, or use nn.BCELoss",
            )


def _makes(seen: Pass, scores: Tensor, *names: str) -> Iterator[bool]:
    """Whether an operation made the scores, apart from their shape."""
    for o in seen.operations(*names):
        out = o.outputs[0]
        yield out.numel() == scores.numel() and bool(
            (out.detach().reshape(-1) == scores.detach().reshape(-1)).all()
        )


@rule(
    "(N, 1) against (N,)",
    "network",
    1,
    "pairs for each sample that the loss compares; a column against a row makes N of them",
    "error",
)
def _broadcast(seen: Pass, threshold: float) -> Iterator[Seen]:
    found = seen.objective.widened
    if found is not None and max(found[0][0], found[1][0]) > threshold:
        n = max(found[0][0], found[1][0])
        yield Seen(
            "loss",
            n,
            f"the loss takes {found[0]} and {found[1]} and makes ({n}, {n}) of them: every "
            "output is compared with every target, and the best output is the mean",
            "give both one shape: output.squeeze(-1) or target.unsqueeze(-1)",
        )


@rule(
    "wrong loss reduction",
    "network",
    0.9,
    "the exponent with which the loss grows with the batch: 0 for a mean, 1 for a sum",
)
def _summed(seen: Pass, threshold: float) -> Iterator[Seen]:
    o = seen.objective
    n = seen.size
    value = o.value.detach()
    if value.ndim:
        yield Seen(
            "loss",
            1,
            f"the loss is a tensor of shape {tuple(value.shape)}, not a number",
            "take its mean: reduction='mean'",
        )
        return
    if n < 16 or o.scores is None or o.labels is None or o.scores.shape[0] != n:
        return
    if o.kind == "unknown" or o.labels.shape[0] != n or float(value) <= 0:
        return
    try:
        # Each half on its own: their losses add up to a sum, and are a mean's twice.
        halves = [float(o._loss(o.scores[p].detach(), o.labels[p])) for p in _halves(n)]
    except (RuntimeError, TypeError, ValueError, KeyError, IndexError, AttributeError):
        return  # a loss of something else than the scores
    together = sum(halves) / 2
    if together <= 0:
        return
    exponent = math.log2(float(value) / together)
    if exponent > threshold:
        yield Seen(
            "loss",
            exponent,
            f"the loss of {n} samples is {float(value):.3g}, that of half of them "
            f"{together:.3g}: it is a sum, so the rate that works depends on the batch size",
            "reduction='mean' (or divide the rate by the batch size)",
        )


def _halves(n: int) -> tuple[slice, slice]:
    half = n // 2
    return slice(0, half), slice(half, 2 * half)


# --- parameters and optimizer ---------------------------------------------------------------------


@rule(
    "parameters missing from the optimizer",
    "network",
    0,
    "parameters that want a gradient and are in no group are never changed",
    "error",
)
def _missing(seen: Pass, threshold: float) -> Iterator[Seen]:
    if seen.optimizer is None:
        return
    held = {id(p) for group in seen.optimizer.param_groups for p in group["params"]}
    names = [n for n, p in seen.model.named_parameters() if p.requires_grad and id(p) not in held]
    if len(names) > threshold:
        count = sum(p.numel() for n, p in seen.model.named_parameters() if n in names)
        yield Seen(
            names[0],
            count,
            f"{count} numbers in {len(names)} parameters are not in the optimizer: "
            f"{_listed(names)}; they keep their start",
            "pass model.parameters() to the optimizer after the whole model is made, or freeze "
            "them by requires_grad_(False) if that is meant",
        )


def _listed(names: list[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


@rule(
    "frozen by mistake",
    "network",
    0,
    "frozen parameters that the optimizer was given, or that come last; a frozen trunk below a "
    "trained head is no mistake",
)
def _frozen(seen: Pass, threshold: float) -> Iterator[Seen]:
    parameters = dict(seen.model.named_parameters())
    frozen = [n for n, p in parameters.items() if not p.requires_grad]
    held: set[int] = set()
    if seen.optimizer is not None:
        held = {id(p) for group in seen.optimizer.param_groups for p in group["params"]}
    named = [n for n in frozen if id(parameters[n]) in held]
    if not named and seen.weighted_calls:
        last = seen.weighted_calls[-1]
        own = [n for n, p in last.module._parameters.items() if p is not None]
        above = [f"{last.path}.{n}" if last.path else n for n in own]
        named = [n for n in frozen if n in above]
    if len(named) > threshold:
        count = sum(parameters[n].numel() for n in named)
        yield Seen(
            named[0],
            count,
            f"{count} numbers do not want a gradient (requires_grad is False): {_listed(named)}",
            "requires_grad_(True), or leave them out of the optimizer if they are to stay",
        )


@rule(
    "no gradient",
    "network",
    0,
    "a parameter that wants a gradient and of which the loss does not depend",
)
def _unused(seen: Pass, threshold: float) -> Iterator[Seen]:
    names = [n for n, g in seen.gradients.items() if g is None]
    if len(names) > threshold:
        yield Seen(
            names[0],
            len(names),
            f"the loss does not depend on {len(names)} parameters: {_listed(names)}",
            "look for detach(), no_grad() or .item() in forward, or a layer that is not called",
        )


@rule(
    "equal units",
    "network",
    2,
    "units with equal weights and equal gradients stay equal: two count as one; weights that are "
    "all 0, or scales that are all 1, with gradients that differ are no mistake",
    "error",
)
def _equal(seen: Pass, threshold: float) -> Iterator[Seen]:
    parameters = dict(seen.model.named_parameters())
    for name, gradient in seen.gradients.items():
        p = parameters[name].detach()
        if gradient is None or p.ndim < 2 or p.shape[0] < threshold or p.numel() < 4:
            continue
        rows, back = p.reshape(p.shape[0], -1), gradient.detach().reshape(p.shape[0], -1)
        alike = bool((back == back[:1]).all())
        plain = bool((rows == 0).all()) or bool((rows == 1).all())  # nothing, or scales
        if bool((rows == rows[:1]).all()) and (alike or not plain):
            yield Seen(
                name,
                p.shape[0],
                f"all {p.shape[0]} units have the same weights"
                + (" and the same gradient: they stay equal and count as one" * alike),
                "start from random weights (nn.init.kaiming_normal_, xavier_uniform_, ...)",
            )


# --- what the network sees ------------------------------------------------------------------------


@rule(
    "unscaled inputs",
    "network",
    25,
    "the size of an input: standard starts expect 1, and the curvature grows with its square",
)
def _unscaled(seen: Pass, threshold: float) -> Iterator[Seen]:
    calls = seen.weighted_calls
    given = [t for t in (calls[0].inputs if calls else []) if t.dtype.is_floating_point]
    if not given or given[0].ndim < 2:
        return
    units = by_unit(given[0]).double()
    sizes = units.square().mean(0).sqrt()
    largest = float(sizes.max())
    if largest > threshold:
        which = int(sizes.argmax())
        yield Seen(
            calls[0].path,
            largest,
            f"its input {which} has size {largest:.3g} (root mean square), the median one "
            f"{float(sizes.median()):.3g}",
            "standardize the inputs to mean 0 and variance 1 (data.StandardScaler), or divide "
            "pixels by 255",
        )


@rule(
    "unscaled targets",
    "network",
    25,
    "the size of a target under a squared loss: a start of outputs near 0 is that far away, and "
    "the gradient as large",
)
def _unscaled_targets(seen: Pass, threshold: float) -> Iterator[Seen]:
    o = seen.objective
    if o.kind == "regression" and o.labels is not None and not seen.learned:
        size = rms(o.labels)
        if size > threshold:
            yield Seen(
                "data",
                size,
                f"the targets have size {size:.3g} (root mean square)",
                "standardize the targets, and undo it in the prediction",
            )


@rule(
    "constant prediction",
    "network",
    0.01,
    "how much outputs vary over the samples, against the targets; a network that has learned "
    "anything exceeds it",
    "error",
)
def _constant(seen: Pass, threshold: float) -> Iterator[Seen]:
    o = seen.objective
    if seen.fresh or o.scores is None or o.labels is None or seen.size < 16 or seen.learned:
        return
    scores = o.scores.detach().double()
    varied = float((scores - scores.mean(0)).square().mean().sqrt())
    if o.kind == "regression":
        labels = o.labels.detach().double()
        varied /= max(1e-12, float((labels - labels.mean(0)).square().mean().sqrt()))
    if varied < threshold:
        yield Seen(
            _last(seen),
            varied,
            f"after training the outputs are the same for all {seen.size} samples (they vary by "
            f"{varied:.1e}): the inputs are not used",
            "less weight decay or a lower rate; look for dead layers, and overfit one batch first",
        )
