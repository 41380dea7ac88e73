"""The lines of the recipe before a training: each looks at one thing and passes or fails."""

from __future__ import annotations

import copy
import itertools
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from chainrule.autograd import grad
from chainrule.autograd.modes import enable_grad, no_grad
from chainrule.inspect.core.arguments import arguments, call, main_tensor, tensors
from chainrule.inspect.health.objectives import Loss, Objective, look_at
from chainrule.inspect.health.samples import Data, part_of
from chainrule.nn.layers.dropout import DropoutLayer
from chainrule.nn.layers.norm import _BatchNorm
from chainrule.nn.module.base import Module
from chainrule.nn.recurrent.base import RNNBase
from chainrule.ops.reduce.reductions import mean
from chainrule.ops.shape.stacking import cat
from chainrule.optim import Adam, NotFiniteError
from chainrule.tensor import Tensor

__all__ = [
    "Check",
    "by_heart",
    "data_as_seen",
    "first_pass",
    "pictures",
    "separate",
    "sheet",
    "start",
    "with_inputs",
]

SMALL = 8  # samples that are learned by heart
RATES = (0.01, 0.001)  # of Adam, with which small batches are learned
SHOWN = 16


@dataclass(frozen=True)
class Check:
    """One line: ``passed`` is None where it could not be looked at, and ``reason`` says why."""

    name: str
    passed: bool | None
    number: float | None
    expected: float | None
    reason: str
    remedy: str = ""


# --- the data -------------------------------------------------------------------------------------


def data_as_seen(data: Data, features: dict[str, list[float]], classes: dict[str, int]) -> Check:
    """Ranges of the inputs and counts of the classes; they have to be finite and to vary."""
    x, y = data.x, data.y
    if x is None:
        return Check("data", None, None, None, "the inputs are no rows of numbers")
    bad = int((~x.isfinite()).sum())
    features["lowest"], features["highest"] = x.amin(0).tolist(), x.amax(0).tolist()
    features["mean"] = x.mean(0).tolist()
    kind = str(tensors(data.first[0])[0].dtype).rpartition(".")[2]
    words = f"{x.shape[0]} rows of {x.shape[1]} inputs ({kind}) from {_short(x.min())} to "
    words += _short(x.max())
    if y is not None and not y.dtype.is_floating_point and y.ndim == 1:
        values = y.tolist()
        for k in sorted(set(values)):
            classes[str(k)] = values.count(k)
        counts = list(classes.values())
        words += f"; {len(counts)} classes of {min(counts)} to {max(counts)} rows"
    elif y is not None and y.dtype.is_floating_point:
        words += f"; targets from {_short(y.min())} to {_short(y.max())}"
        bad += int((~y.isfinite()).sum())
    if bad:
        remedy = "drop or fill in what is missing (inspect.doctor names rows and columns)"
        return Check("data", False, bad, 0, f"{bad} values are NaN or infinite; {words}", remedy)
    constant = x.shape[0] > 1 and bool((x == x[:1]).all())
    if constant:
        return Check(
            "data", False, 0, 1, f"all rows are equal; {words}", "look at how the data is read"
        )
    return Check("data", True, 0, 0, words)


def _short(t: Tensor) -> str:
    return f"{float(t):.3g}"


def pictures(batch: tuple[Any, Any]) -> tuple[Tensor | None, list[str]]:
    """The first samples, if they are pictures (N, C, H, W) of one or three channels, and their
    classes."""
    found, targets = tensors(batch[0]), batch[1]
    if not found or found[0].ndim != 4 or found[0].shape[1] not in (1, 3):
        return None, []
    classes = isinstance(targets, Tensor) and targets.ndim == 1
    labels = [str(v) for v in targets[:SHOWN].tolist()] if classes else []
    return found[0].detach()[:SHOWN], labels if classes and not _is_float(targets) else []


def _is_float(t: Tensor) -> bool:
    return t.dtype.is_floating_point


def sheet(given: Tensor) -> Tensor:
    """Pictures side by side, as one of height, width and perhaps channels from 0 to 1."""
    low, high = given.min(), given.max()
    given = (given - low) / (high - low).clamp(min=1e-12)
    columns = math.ceil(math.sqrt(len(given)))
    rows = math.ceil(len(given) / columns)
    n, c, h, w = given.shape
    blank = given.new_ones(rows * columns - n, c, h, w)
    tiles = cat([given, blank]).reshape(rows, columns, c, h, w)
    # A line of one pixel between them.
    framed = given.new_ones(rows, columns, c, h + 1, w + 1)
    framed[..., :h, :w] = tiles
    joined = framed.permute(0, 3, 1, 4, 2).reshape(rows * (h + 1), columns * (w + 1), c)
    return joined[:-1, :-1, 0] if c == 1 else joined[:-1, :-1]


# --- output and start -----------------------------------------------------------------------------


def first_pass(model: Module, loss: Loss, batch: tuple[Any, Any]) -> tuple[Objective | None, Check]:
    """The loss of the first batch, and whether outputs fit it."""
    model.train()
    try:
        with no_grad():
            output = call(model, "preflight", batch[0])
            objective = look_at(loss, output, batch[1])
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        return None, Check(
            "output", False, 0, 0, f"a pass fails: {error}", "mend what the error names"
        )
    return objective, _fits(objective)


def _fits(o: Objective) -> Check:
    name = "output"
    if o.value.numel() != 1:
        reason = f"the loss is a tensor of shape {tuple(o.value.shape)}, not one number"
        return Check(name, False, o.value.numel(), 1, reason, "take its mean: reduction='mean'")
    if o.widened is not None:
        reason = f"the loss broadcasts {o.widened[0]} against {o.widened[1]} to all pairs"
        remedy = "output.squeeze(-1) or target.unsqueeze(-1)"
        return Check(name, False, o.widened[0][0], 1, reason, remedy)
    if o.scores is None:
        return Check(name, None, None, None, "the loss is not one whose range is known here")
    scores = o.scores.detach().double()
    low, high = float(scores.min()), float(scores.max())
    shape = f"{tuple(scores.shape)} from {low:.3g} to {high:.3g} for {o.kind}"
    sums = scores.sum(1) if scores.ndim > 1 else scores
    trouble = {
        "cross-entropy": low >= 0 and scores.ndim > 1 and _is_one(sums),
        "likelihood": high > 1e-6,
        "binary": low < 0 or high > 1,
    }.get(o.kind, False)
    remedy = {
        "cross-entropy": "remove the softmax: cross-entropy takes logits",
        "likelihood": "end the network with nn.LogSoftmax(1), or use cross-entropy",
        "binary": "end the network with a sigmoid, or use binary_cross_entropy_with_logits",
    }.get(o.kind, "")
    if trouble:
        return Check(name, False, high, 0, f"{shape} does not fit: {_wants(o.kind)}", remedy)
    missed = _out_of_reach(o, low)
    if missed is not None:
        return missed
    return Check(name, True, high, 0, shape)


def _is_one(sums: Tensor) -> bool:
    return float((sums - 1).abs().max()) < 1e-3


def _wants(kind: str) -> str:
    return {
        "cross-entropy": "it wants logits, these are probabilities",
        "likelihood": "it wants logarithms of probabilities",
        "binary": "it wants probabilities",
    }[kind]


def _out_of_reach(o: Objective, low: float) -> Check | None:
    """Targets that an output which is never negative cannot have."""
    if o.kind != "regression" or o.labels is None or o.scores is None or low < 0:
        return None
    least, zeros = float(o.labels.min()), float((o.scores == 0).double().mean())
    if least < 0 and zeros > 0.2:
        reason = f"outputs are never negative ({zeros:.0%} are 0), targets go down to {least:.3g}"
        return Check("output", False, zeros, 0, reason, "no ReLU behind the last layer")
    return None


def start(o: Objective, losses: dict[str, float]) -> Check:
    """The loss at the start against that of knowing nothing."""
    value = float(o.value.detach().double().mean())
    losses["at the start"] = value
    expected = o.expected()
    name = "loss at the start"
    if not math.isfinite(value):
        return Check(name, False, value, 0, f"it is {value}", "inspect.autopsy says where")
    if expected is None:
        return Check(name, None, value, None, f"{value:.4g}; of this loss none is expected")
    wanted, formula = expected
    losses["expected"] = wanted
    words = f"{value:.4g} against {wanted:.4g} ({formula})"
    if value > 2 * wanted + 1e-12:
        remedy = "smaller weights in the last layer, inputs and targets with variance 1"
        return Check(name, False, value, wanted, f"{words}: sure of itself and wrong", remedy)
    more = "; already below chance" if value < 0.5 * wanted else ""
    return Check(name, True, value, wanted, words + more)


# --- two short trainings --------------------------------------------------------------------------


def _learn(
    model: Module,
    loss: Loss,
    batches: list[tuple[Any, Any]],
    rate: float,
    steps: int,
    seconds: float,
) -> Iterator[float]:
    """The losses of a copy without dropout, step by step."""
    own = copy.deepcopy(model)
    own.train()
    for module in own.modules():
        if isinstance(module, DropoutLayer):
            module.eval()
    parameters = [p for p in own.parameters() if p.requires_grad]
    if not parameters:
        return
    optimizer = Adam(parameters, lr=rate)
    began = time.perf_counter()
    for inputs, targets in itertools.islice(itertools.cycle(batches), steps):
        optimizer.zero_grad()
        with enable_grad():
            value = mean(loss(call(own, "preflight", inputs), targets))
        yield float(value.detach())
        if not value.requires_grad or time.perf_counter() - began > seconds:
            return
        value.backward()
        try:
            optimizer.step()
        except NotFiniteError:
            return


def by_heart(
    model: Module, loss: Loss, data: Data, steps: int, seconds: float, curve: list[float]
) -> Check:
    """Whether a copy learns a few samples by heart."""
    name = "one batch by heart"
    inputs, targets = part_of(data.first, SMALL)
    reached, count = 0.3, sum(t.numel() for t in tensors(targets))
    least = _chance(model, loss, (inputs, targets))
    for rate in RATES:
        seen = []
        for value in _learn(model, loss, [(inputs, targets)], rate, steps, seconds):
            seen.append(value)
            if least is not None and value < 0.1 * reached * least:
                break
        if not curve or (seen and min(seen) < min(curve)):
            curve[:] = seen
        if curve and least is not None and min(curve) < reached * least:
            break
    if not curve:
        return Check(name, False, None, 0, "no parameter learns", "requires_grad_(True)")
    first = curve[0] if least is None else least
    share = min(curve) / first if first > 0 else 0.0
    words = f"{min(curve):.3g} after {len(curve)} steps, {share:.1%} of "
    words += "the start" if least is None else "the best constant"
    if share < reached:
        return Check(name, True, share, reached, words)
    parameters = sum(p.numel() for p in model.parameters())
    if parameters < 2 * count:
        few = f"{words}; {parameters} parameters are too few for {count} numbers"
        return Check(name, None, share, reached, few)
    remedy = "a bug in forward, a frozen or dead layer, contradictory labels, or too few units"
    return Check(name, False, share, reached, words, remedy)


def _chance(model: Module, loss: Loss, batch: tuple[Any, Any]) -> float | None:
    with no_grad():
        value = look_at(loss, call(model, "preflight", batch[0]), batch[1]).chance()
    return value if value is not None and value > 1e-9 else None


def with_inputs(
    model: Module, loss: Loss, data: Data, steps: int, seconds: float, losses: dict[str, float]
) -> Check:
    """Whether a copy that sees the inputs gets below one that does not."""
    name, reached = "baseline without inputs", 0.9
    blind = [(_zeroed(inputs), targets) for inputs, targets in data.batches]
    baseline = _level(list(_learn(model, loss, blind, RATES[0], steps, seconds / 2)), len(blind))
    best = math.inf
    for rate in RATES:
        seen: list[float] = []
        for value in _learn(model, loss, data.batches, rate, steps, seconds / 2):
            seen.append(value)
            if len(seen) > len(blind) and _level(seen, len(blind)) < 0.5 * reached * baseline:
                break
        best = min(best, _level(seen, len(blind)))
        if best < reached * baseline:
            break
    losses["without inputs"], losses["with inputs"] = baseline, best
    if not math.isfinite(best) or not math.isfinite(baseline) or baseline <= 0:
        return Check(name, None, best, baseline, "the short trainings gave no number")
    words = f"{best:.3g} with inputs, {baseline:.3g} with zeros in their place"
    if best < reached * baseline:
        return Check(name, True, best / baseline, reached, words)
    remedy = "the network does not use its inputs: look at forward, dead layers, shuffled labels"
    return Check(name, False, best / baseline, reached, words, remedy)


def _level(losses: list[float], batches: int) -> float:
    """The mean of the last losses, over every batch as often."""
    last = losses[-max(batches, 1) :]
    return sum(last) / len(last) if last else math.inf


def _zeroed(inputs: Any) -> Any:
    if isinstance(inputs, Tensor):
        return inputs * 0
    if isinstance(inputs, dict):
        return {k: _zeroed(v) for k, v in inputs.items()}
    if isinstance(inputs, (tuple, list)):
        return tuple(_zeroed(v) for v in inputs)
    return inputs


# --- samples --------------------------------------------------------------------------------------


def separate(model: Module, inputs: Any) -> Check:
    """Whether the output of one sample depends on that sample alone."""
    name = "samples are separate"
    model.train()
    found = _foreign(model, inputs)
    if found is None:
        reason = "inputs without derivative, or a batch of one"
        return Check(name, None, None, 0, reason)
    if found < 1e-6:
        return Check(name, True, found, 0, "no gradient of one sample's output at another's input")
    norms = [n for n, m in model.named_modules() if isinstance(m, _BatchNorm)]
    model.eval()
    alone = _foreign(model, inputs)
    if norms and alone is not None and alone < 1e-6:
        reason = f"batch norm ({norms[0]}) joins the samples of a batch in training, as it does; in"
        return Check(name, True, found, 0, f"{reason} evaluation they are separate")
    remedy = "look for view, reshape, softmax or mean over the dimension of the samples"
    reason = f"the output of one sample depends on others (by {found:.1%} of its own input)"
    return Check(name, False, found, 0, reason, remedy)


def _foreign(model: Module, inputs: Any) -> float | None:
    """The gradient of one sample's output at the inputs of others, against that at its own."""
    args, kwargs = arguments("preflight", part_of((inputs, ()), SMALL)[0])
    first = next((t for t in tensors((args, kwargs)) if t.dtype.is_floating_point), None)
    if first is None or first.ndim < 2:
        return None
    leaf = first.detach().clone().requires_grad_()
    args = tuple(leaf if a is first else a for a in args)
    kwargs = {k: leaf if v is first else v for k, v in kwargs.items()}
    with enable_grad():
        output = main_tensor("preflight", model(*args, **kwargs))
    dim = _batch_dimension(model)
    n = leaf.shape[dim]
    if n < 2 or output.ndim <= dim or output.shape[dim] != n or not output.requires_grad:
        return None
    # Weights that differ, since the outputs of a softmax sum to a constant.
    weights = output.detach().new_ones(output.shape).cumsum(-1).sqrt()
    one = n // 2
    (back,) = grad((output * weights).select(dim, one).sum(), leaf, allow_unused=True)
    if back is None:
        return None
    sizes = [float(back.select(dim, i).abs().max()) for i in range(n)]
    own = sizes.pop(one)
    return max(sizes) / own if own > 0 else (math.inf if max(sizes) > 0 else 0.0)


def _batch_dimension(model: Module) -> int:
    """1 where the model gives its inputs to a recurrent layer that wants time first."""
    first = next((m for m in model.modules() if next(m.children(), None) is None), model)
    return int(isinstance(first, RNNBase) and not first.batch_first)
