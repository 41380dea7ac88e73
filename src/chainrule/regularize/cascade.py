"""Cascade correlation: a network that grows one hidden unit after the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from chainrule import nn, optim
from chainrule.autograd.modes import enable_grad, no_grad
from chainrule.backend import dtypes
from chainrule.ops.elementwise.complex_numbers import abs
from chainrule.ops.elementwise.functions import sigmoid
from chainrule.ops.index.reading import one_hot
from chainrule.ops.linalg.matmul import linear, matmul
from chainrule.ops.reduce.order import argmax
from chainrule.ops.core.promotion import cast
from chainrule.ops.reduce.reductions import mean, sum
from chainrule.ops.creation.sampling import rand
from chainrule.ops.shape.views import reshape
from chainrule.ops.shape.stacking import cat, stack
from chainrule.ops.layers.softmax import softmax
from chainrule.tensor import Tensor
from chainrule.typing import DType, Random

__all__ = ["CascadeFit", "CascadeNetwork", "CascadeStep", "cascade_correlation", "correlation"]

# How the outputs of a network are read: what comes out, and what it should be, per output unit.
_OUTPUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "least_squares": lambda s: s,
    "logistic": sigmoid,
    "softmax": lambda s: softmax(s, -1),
}


class CascadeNetwork(nn.Module):
    """Hidden units that see the inputs and all units before them, and a linear output of all.

    a[i] = f(w[i] . (x, a[1], ..., a[i-1]) + b[i]); y = W (x, a[1], ..., a[n]) + b

    Shape: (N, in_features) -> (N, out_features).

    Args:
        in_features: size of each input.
        out_features: size of each output.
        units: how many hidden units.
        activation: f, a function.

    >>> from chainrule import ones, regularize
    >>> regularize.CascadeNetwork(2, 1, units=3)(ones(5, 2)).shape
    chainrule.Size([5, 1])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        units: int = 0,
        activation: Callable[[Tensor], Tensor] | None = None,
        dtype: DType | None = None,
    ):
        super().__init__()
        if in_features < 1 or out_features < 1 or units < 0:
            raise ValueError(
                "CascadeNetwork: in_features and out_features must be positive and units not "
                f"negative, got {in_features}, {out_features}, {units}"
            )
        self.in_features, self.out_features = in_features, out_features
        self.activation = nn.Tanh() if activation is None else activation
        self.units = nn.ModuleList(
            [nn.Linear(in_features + i, 1, dtype=dtype) for i in range(units)]
        )
        self.output = nn.Linear(in_features + units, out_features, dtype=dtype)

    def features(self, input: Tensor) -> Tensor:
        """The inputs and the activations of all hidden units, side by side."""
        a = input
        for unit in self.units:
            a = cat([a, self.activation(unit(a))], -1)
        return a

    def forward(self, input: Tensor) -> Tensor:
        return self.output(self.features(input))

    @no_grad()
    def add_unit(self, weight: Tensor, bias: Tensor) -> None:
        """Adds a hidden unit, frozen, whose weight to the outputs is 0."""
        width = self.in_features + len(self.units)
        unit = nn.Linear(width, 1, dtype=weight.dtype)
        unit.weight.copy_(reshape(weight, (1, width)))
        unit.get_parameter("bias").copy_(reshape(bias, (1,)))
        self.units.append(unit.requires_grad_(False))
        before = self.output
        self.output = nn.Linear(width + 1, self.out_features, dtype=weight.dtype)
        self.output.weight.zero_()
        self.output.weight[:, :width] = before.weight
        self.output.get_parameter("bias").copy_(before.get_parameter("bias"))

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}"


def correlation(activation: Tensor, error: Tensor) -> Tensor:
    """sum_k |sum_n (a_n - mean a) (e_nk - mean e_k)|: what a new unit is trained to maximize.

    Each output unit k has its own sign: the gradient by the weights w of a = f(w . x) is
    sum_k sign_k sum_n (e_nk - mean e_k) f'(s_n) x_n. (The course prints one sign for all outputs.)

    Shape: activation (N, C) of C candidates, error (N, K) -> (C,).

    >>> from chainrule import regularize, tensor
    >>> regularize.correlation(tensor([[1.0], [-1.0]]), tensor([[1.0, -3.0], [-1.0, 3.0]]))
    tensor([8.])
    """
    if activation.ndim != 2 or error.ndim != 2 or activation.shape[0] != error.shape[0]:
        raise RuntimeError(
            "correlation: expected activations (N, C) and errors (N, K), got shapes "
            f"{tuple(activation.shape)} and {tuple(error.shape)}"
        )
    a = activation - mean(activation, 0)
    return sum(abs(matmul(a.mT, error - mean(error, 0))), 1)


@dataclass
class CascadeStep:
    """The network with so many hidden units: its loss, how often it errs, the last unit's score."""

    units: int
    loss: float
    error: float
    correlation: float


@dataclass
class CascadeFit:
    """A grown network, how it grew, and why it stopped."""

    model: CascadeNetwork
    steps: list[CascadeStep] = field(default_factory=list)
    stopped: str = ""

    def __str__(self) -> str:
        lines = [f"{'units':>5} {'loss':>10} {'error':>10} {'correlation':>11}"]
        lines += [
            f"{s.units:5d} {s.loss:10.4g} {s.error:10.4g} {s.correlation:11.4g}" for s in self.steps
        ]
        return "\n".join([*lines, f"stopped: {self.stopped}"])


def cascade_correlation(
    x: Tensor,
    y: Tensor,
    *,
    output: str = "least_squares",
    max_units: int = 30,
    candidates: int = 8,
    candidate_epochs: int = 200,
    activation: Callable[[Tensor], Tensor] | None = None,
    optimizer: Callable[[list[Tensor]], Any] | None = None,
    tolerance: float = 0.0,
    patience: int = 5,
    min_improvement: float = 1e-3,
    l2: float = 1e-6,
    generator: Random = None,
) -> CascadeFit:
    """Grows a network: trains the outputs, adds the unit that follows their error best, and so on.

    A pool of candidates, trained all at once, sees the inputs and the units there are; each
    maximizes its :func:`correlation` with the error of the outputs. The best one joins the network,
    its incoming weights are frozen, and the outputs are fitted anew. Fahlman and Lebiere, 1990.

    Hidden units end frozen; ``fit.model.requires_grad_()`` lets all weights be trained further.

    Args:
        x: inputs (N, D).
        y: targets (N,) or (N, K); class numbers (N,), which become one output for each class.
        output: how the outputs are fitted: by "least_squares", or with "logistic" (targets 0 and 1)
            or "softmax" (classes) outputs by Newton's method on that single layer.
        max_units: at most so many hidden units.
        candidates: how many units compete.
        candidate_epochs: how long they are trained.
        activation: of the hidden units, by default tanh. Bounded ones keep the score bounded.
        optimizer: makes the candidates' optimizer, by default Rprop; it has to work element by
            element, or the candidates would not be independent.
        tolerance: done when the error is not larger: the part of samples in a wrong class, or the
            mean squared error for targets that are no classes.
        patience: stops after so many units in a row that did not lower the loss.
        min_improvement: by which part the loss has to fall to count as lower.
        l2: a small penalty on the output weights, for units that resemble each other.
        generator: for the first weights of candidates.

    >>> import chainrule
    >>> from chainrule import problems, regularize
    >>> _ = chainrule.manual_seed(0)
    >>> xor = problems.boolean("xor")
    >>> fit = regularize.cascade_correlation(xor.inputs, xor.targets, tolerance=1e-6)
    >>> len(fit.model.units), fit.steps[-1].error < 1e-6
    (1, True)
    """
    _check(output, max_units, candidates, candidate_epochs, patience)
    target, classes = _targets(x, y, output)
    model = CascadeNetwork(x.shape[1], target.shape[1], 0, activation, dtype=x.dtype)
    fit = CascadeFit(model)
    features, score, best, waited = x, 0.0, float("inf"), 0
    while True:
        _fit_output(model, features, y, target, output, l2)
        error = _note(fit, features, y, target, output, classes, score)
        loss = fit.steps[-1].loss
        improved = loss < best * (1 - min_improvement)
        best, waited = (loss, 0) if improved else (best, waited + 1)
        if fit.steps[-1].error <= tolerance:
            fit.stopped = f"the error is {fit.steps[-1].error:.4g}"
        elif len(model.units) == max_units:
            fit.stopped = f"reached max_units = {max_units}"
        elif waited >= patience:
            fit.stopped = f"{patience} units in a row did not lower the loss"
        if fit.stopped:
            return fit
        weight, bias, score = _best_candidate(
            features, error, candidates, candidate_epochs, model.activation, optimizer, generator
        )
        model.add_unit(weight, bias)
        with no_grad():
            unit = model.activation(linear(features, reshape(weight, (1, -1)), bias))
            features = cat([features, unit], 1)


def _check(output: str, max_units: int, candidates: int, epochs: int, patience: int) -> None:
    if output not in _OUTPUTS:
        raise ValueError(
            f"cascade_correlation: output must be one of {sorted(_OUTPUTS)}, got {output!r}"
        )
    if max_units < 0 or candidates < 1 or epochs < 1 or patience < 1:
        raise ValueError(
            "cascade_correlation: max_units must not be negative; candidates, candidate_epochs and "
            f"patience must be positive, got {max_units}, {candidates}, {epochs}, {patience}"
        )


def _targets(x: Tensor, y: Tensor, output: str) -> tuple[Tensor, bool]:
    """What each output unit should give, (N, K), and whether targets are classes."""
    if x.ndim != 2 or y.ndim not in (1, 2) or x.shape[0] != y.shape[0] or not x.shape[0]:
        raise ValueError(
            "cascade_correlation: expected inputs (N, D) and targets (N,) or (N, K), got shapes "
            f"{tuple(x.shape)} and {tuple(y.shape)}"
        )
    if not y.dtype.is_floating_point and y.ndim == 1:
        if output == "logistic":
            return cast(y, x.dtype)[:, None], True
        return cast(one_hot(cast(y, dtypes.int64)), x.dtype), True
    if output == "softmax":
        raise ValueError(
            "cascade_correlation: output='softmax' needs class numbers (N,) as targets, got "
            f"{y.dtype} of shape {tuple(y.shape)}"
        )
    target = cast(y, x.dtype)
    return (target if target.ndim == 2 else target[:, None]), output == "logistic"


@no_grad()
def _fit_output(
    model: CascadeNetwork, features: Tensor, y: Tensor, target: Tensor, output: str, l2: float
) -> None:
    if output == "least_squares":
        fitted = optim.ridge(features, target, l2)
        weight, bias = fitted.weight, fitted.bias
    elif output == "softmax":
        fitted = optim.softmax_regression(features, y, target.shape[1], l2=max(l2, 1e-6))
        weight, bias = fitted.weight, fitted.bias
    else:
        fits = [
            optim.logistic_regression(features, target[:, k], l2=max(l2, 1e-6))
            for k in range(target.shape[1])
        ]
        weight = stack([f.weight for f in fits])
        bias = stack([f.bias for f in fits])
    model.output.weight.copy_(cast(weight, features.dtype))
    model.output.get_parameter("bias").copy_(cast(bias, features.dtype))


@no_grad()
def _note(
    fit: CascadeFit,
    features: Tensor,
    y: Tensor,
    target: Tensor,
    output: str,
    classes: bool,
    score: float,
) -> Tensor:
    """Writes a step down; the errors of the outputs."""
    out = _OUTPUTS[output](fit.model.output(features))
    error = out - target
    loss = float(mean(error * error))
    wrong = loss
    if classes:
        hit = argmax(out, 1) == y if target.shape[1] > 1 and y.ndim == 1 else None
        sides = (out > 0.5) == (target > 0.5)
        right = cast(sides if hit is None else hit, dtypes.float64)
        wrong = 1 - float(mean(right))
    fit.steps.append(CascadeStep(len(fit.model.units), loss, wrong, score))
    return error


def _best_candidate(
    features: Tensor,
    error: Tensor,
    count: int,
    epochs: int,
    activation: Any,
    optimizer: Any,
    generator: Any,
) -> tuple[Tensor, Tensor, float]:
    """The incoming weights of the unit, of a pool trained together, that follows the error best."""
    width = features.shape[1]
    start = (
        rand(count, width + 1, generator=generator, dtype=features.dtype, device=features.device)
        * 2
        - 1
    )
    weight, bias = start[:, :width].clone(), start[:, width].clone()
    params = [weight.requires_grad_(), bias.requires_grad_()]
    trained = optim.Rprop(params, lr=0.1) if optimizer is None else optimizer(params)
    scale = 1 / (float(sum(error * error)) or 1.0)
    with enable_grad():
        for _ in range(epochs):
            trained.zero_grad()
            scores = correlation(activation(linear(features, weight, bias)), error)
            (-sum(scores) * scale).backward()
            trained.step()
    with no_grad():
        scores = correlation(activation(linear(features, weight, bias)), error)
        best = int(argmax(scores))
        return weight.detach()[best], bias.detach()[best : best + 1], float(scores[best])
