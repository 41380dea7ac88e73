"""Mistakes of layers that one forward and backward pass shows: activations, depth, time."""

from __future__ import annotations

import math
from collections.abc import Iterator

from chainrule import nn
from chainrule.autograd import grad
from chainrule.inspect.core.tracing import Operation
from chainrule.inspect.health.findings import Seen, rule
from chainrule.inspect.health.passes import Pass, by_unit, rms
from chainrule.nn.layers.dropout import DropoutLayer
from chainrule.nn.recurrent.base import RNNBase
from chainrule.tensor import Tensor

__all__: list[str] = []

# --- activations ----------------------------------------------------------------------------------


@rule(
    "dead layer",
    "network",
    0.9,
    "the share of units that are 0 for every sample; at a good start half of them are active, and "
    "sparse layers of trained networks keep more than a tenth",
    "error",
)
def _dead(seen: Pass, threshold: float) -> Iterator[Seen]:
    for o in seen.operations("relu"):
        units = by_unit(o.outputs[0])
        if units.shape[0] < 8 or units.shape[1] < 2:
            continue
        share = float((units == 0).all(0).double().mean())
        if share >= threshold:
            yield Seen(
                seen.feeding(o),
                share,
                f"{share:.0%} of its {units.shape[1]} units are 0 for all {units.shape[0]} values "
                "of the batch, so no gradient passes the ReLU behind it",
                "start anew with a bias of 0 and kaiming_normal_, lower the rate, or LeakyReLU",
            )


@rule(
    "saturated layer",
    "network",
    0.9,
    "the share of values where the slope is below a tenth of the largest; there is none at a "
    "normal start",
)
def _saturated(seen: Pass, threshold: float) -> Iterator[Seen]:
    if seen.learned:
        return  # sure of itself, and right
    for o in seen.operations("tanh", "sigmoid", "rnn_sequence"):
        out = o.outputs[0].detach()
        if _is_output(seen, o) or out.numel() < 8:
            continue
        if o.name == "rnn_sequence" and not _has_tanh(o):
            continue
        # f' = f (1 - f) against 1/4, and 1 - f^2 against 1.
        slope = 4 * out * (1 - out) if o.name == "sigmoid" else 1 - out.square()
        share = float((slope < 0.1).double().mean())
        if share >= threshold:
            yield Seen(
                seen.feeding(o),
                share,
                f"{share:.0%} of the values behind it lie where {_word(o)} is flat (mean slope "
                f"{float(slope.mean()) / (4 if o.name == 'sigmoid' else 1):.1e})",
                "scale the inputs to mean 0 and variance 1, start with smaller weights "
                "(xavier_uniform_), or put a norm before the activation",
            )


def _word(o: Operation) -> str:
    return "tanh" if o.name == "rnn_sequence" else o.name


def _has_tanh(o: Operation) -> bool:
    return getattr(o.call.module, "nonlinearity", "tanh") == "tanh"


def _is_output(seen: Pass, o: Operation) -> bool:
    """Whether no layer with weights comes after an operation."""
    return not any(later.number > o.number for c in seen.weighted_calls for later in c.operations)


@rule(
    "SELU with the wrong start",
    "network",
    1.6,
    "weights with variance 1 / fan_in keep mean 0 and variance 1; the number is how far, as a "
    "factor, fan_in times their variance is from 1",
)
def _selu_start(seen: Pass, threshold: float) -> Iterator[Seen]:
    if not seen.fresh or seen.learned:
        return
    modules = dict(seen.model.named_modules())
    for o in seen.operations("elu"):
        if not isinstance(o.call.module, nn.SELU) and not _is_selu(o):
            continue
        name = seen.feeding(o)
        weight = getattr(modules.get(name), "weight", None)
        if not isinstance(weight, Tensor) or weight.ndim < 2 or weight.numel() < 64:
            continue
        fan_in = weight.numel() // weight.shape[0]
        product = fan_in * rms(weight) ** 2
        factor = max(product, 1 / max(product, 1e-30))
        if factor > threshold:
            yield Seen(
                name,
                factor,
                f"before SELU the variance of the weights times fan_in is {product:.2f}, not 1: "
                "mean 0 and variance 1 are not kept from layer to layer",
                "nn.init.lecun_normal_(weight), bias 0 (models.SelfNormalizingMLP does both)",
            )


def _is_selu(o: Operation) -> bool:
    """Of elu(alpha, scale): SELU's are 1.6733 and 1.0507."""
    return any(abs(v - 1.0507) < 1e-3 for v in o.params.values() if isinstance(v, float))


@rule(
    "SELU with the wrong dropout",
    "network",
    0,
    "dropout sets to 0, which is not the value that keeps SELU's mean and variance",
)
def _selu_dropout(seen: Pass, threshold: float) -> Iterator[Seen]:
    made = {id(t) for o in seen.operations("elu") if _of_selu(o) for t in o.outputs}
    for c in seen.leaves:
        wrong = isinstance(c.module, DropoutLayer) and not isinstance(
            c.module, (nn.AlphaDropout, nn.FeatureAlphaDropout)
        )
        p = float(getattr(c.module, "p", 0.0)) if wrong else 0.0
        if p > threshold and any(id(t) in made for t in c.inputs):
            yield Seen(
                c.path,
                p,
                f"{c.kind}(p={p:g}) follows SELU and changes the variance that SELU keeps",
                f"nn.AlphaDropout({p:g})",
            )


def _of_selu(o: Operation) -> bool:
    return isinstance(o.call.module, nn.SELU) or _is_selu(o)


# --- depth and time -------------------------------------------------------------------------------


def _ends(seen: Pass) -> tuple[str, float, float] | None:
    """The first layer of a deep network, and the gradients that come to its first and last."""
    layers = [x for x in seen.layers if not math.isnan(x.gradient)]
    if len(layers) < 4 or layers[-1].gradient == 0:
        return None
    return layers[0].name, layers[0].gradient, layers[-1].gradient


@rule(
    "vanishing depth",
    "network",
    1e-4,
    "the gradient of the first layer against that of the last: below it the first layers stand "
    "still while the last ones learn; a good start keeps it above 1e-2",
)
def _vanishing(seen: Pass, threshold: float) -> Iterator[Seen]:
    found = _ends(seen)
    if found is not None and 0 < found[1] < threshold * found[2]:
        name, first, last = found
        n = len(seen.layers)
        yield Seen(
            name,
            first / last,
            f"the gradient shrinks from {last:.1e} at the last of {n} layers to {first:.1e} at the "
            f"first, by {(first / last) ** (1 / (n - 1)):.2g} in each",
            "ReLU or SELU with its start, a norm in every layer, skip links, or fewer layers",
        )


@rule(
    "exploding depth",
    "network",
    1e3,
    "the gradient of the first layer against that of the last; a good start keeps it below 10",
    "error",
)
def _exploding(seen: Pass, threshold: float) -> Iterator[Seen]:
    found = _ends(seen)
    if found is not None and found[1] > threshold * found[2]:
        name, first, last = found
        n = len(seen.layers)
        yield Seen(
            name,
            first / last,
            f"the gradient grows from {last:.1e} at the last of {n} layers to {first:.1e} at the "
            f"first, by {(first / last) ** (1 / (n - 1)):.2g} in each",
            "smaller weights at the start (kaiming_normal_, orthogonal_), a norm in every layer, "
            "or clip_norm",
        )


@rule(
    "exploding recurrence",
    "network",
    1e3,
    "the gradient with respect to the earliest step against that to the last one",
    "error",
)
def _through_time(seen: Pass, threshold: float) -> Iterator[Seen]:
    for c in seen.trace.calls:
        if not c.finished or not isinstance(c.module, RNNBase) or not c.outputs:
            continue
        growth = _growth(c.module, c.args[0]) if c.args else None
        if growth is not None and growth > threshold:
            yield Seen(
                c.path,
                growth,
                f"the gradient of the last step grows {growth:.1e} times on its way to the first "
                "inputs",
                "an orthogonal or identity start of weight_hh (nn.init.orthogonal_), clip_norm, or "
                "an LSTM or GRU",
            )


def _growth(module: RNNBase, x: object) -> float | None:
    """How much larger the gradient of the last state is at early inputs than at the last one."""
    if not isinstance(x, Tensor):
        return None  # sequences of different lengths
    time = 1 if module.batch_first and x.ndim == 3 else 0
    if x.ndim < 2 or x.shape[time] < 4:
        return None
    given = x.detach().requires_grad_()
    states = module(given)[0]
    (back,) = grad(states.select(time, -1).sum(), given)
    if back is None:
        return None
    norms = [rms(back.select(time, t)) for t in range(x.shape[time])]
    return max(norms) / norms[-1] if norms[-1] > 0 and all(map(math.isfinite, norms)) else None
