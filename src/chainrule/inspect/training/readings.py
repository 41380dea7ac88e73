"""The instruments of the cockpit at one point: slope, noise and curvature of the loss of a batch.

All are exact for the batch: per-sample gradients and Hessian products exist for every module. For
many parameters the trace is estimated and eigenvalues come from Lanczos' method; the reading says
which.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from chainrule.autograd.functional_call import functional_call
from chainrule.autograd.nested import flatten, unflatten
from chainrule.curvature.estimates import random_signs
from chainrule.curvature.matrices import EmpiricalFisher, Hessian
from chainrule.curvature.spectrum import lanczos_eigenpairs
from chainrule.inspect.core.arguments import Inputs, arguments, tensors
from chainrule.linalg import vector_norm
from chainrule.nn.module.base import Module
from chainrule.ops.creation.conversion import clone
from chainrule.ops.creation.patterns import zeros
from chainrule.ops.linalg.decompositions import eigvalsh
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.reduce.reductions import std, sum as sum_over
from chainrule.ops.shape.padding import pad
from chainrule.ops.shape.stacking import cat, stack
from chainrule.ops.shape.views import reshape
from chainrule.random import get_rng_state, set_rng_state
from chainrule.tensor import Tensor

__all__ = ["LayerCurvature", "Noise", "Point", "Reading", "read"]

Loss = Callable[[Any, Any], Tensor]
EXACT = 1000  # up to so many parameters the whole Hessian is formed


@dataclass
class LayerCurvature:
    """The block of the Hessian that belongs to one layer."""

    name: str
    size: int
    top: float
    trace: float


@dataclass
class Noise:
    """What the gradients of single samples say of the mean gradient g of N of them.

    ``norm_test`` is the variance of g over |g|^2, ``inner_product_test`` that of its part along g,
    ``orthogonality_test`` that of the rest (Bollapragada and others, 2017); each below about 1 for
    a batch that is large enough. ``early_stopping`` above 0 says that g is as small as noise alone
    would make it (Mahsereci and others, 2017). ``signal_to_noise`` is the mean over parameters of
    g^2 over the variance of single samples (Liu and others, 2020).
    """

    samples: int
    signal_to_noise: float
    norm_test: float
    inner_product_test: float
    orthogonality_test: float
    early_stopping: float


@dataclass
class Reading:
    """All instruments at one step; those of a step are NaN where none was made."""

    step: int
    loss: float
    gradient_norm: float
    layer_gradient_norms: dict[str, float]
    eigenvalues: list[float]  # the largest of the Hessian
    trace: float
    trace_error: float  # standard error, 0 where the trace is exact
    layers: list[LayerCurvature]
    noise: Noise | None
    note: str = ""  # why there is no noise
    alpha: float = math.nan
    update_norm: float = math.nan
    update_ratio: float = math.nan
    distance: float = math.nan
    curve: dict[str, list[float]] = field(default_factory=dict)


class Point:
    """The loss of a batch as a function of the parameters that are learned.

    Args:
        model: any module.
        loss: of its output and the targets.
        inputs, targets: a batch.
        params: where to look, by name; where the model is unless given.
    """

    def __init__(
        self,
        model: Module,
        loss: Loss,
        inputs: Inputs,
        targets: Any,
        params: dict[str, Tensor] | None = None,
    ):
        self.model, self.loss, self.targets = model, loss, targets
        self.args, self.kwargs = arguments("cockpit", inputs)
        learned = {n: p.detach() for n, p in model.named_parameters() if p.requires_grad}
        if not learned:
            raise ValueError("cockpit: no parameter of the model asks for a gradient")
        self.params = learned if params is None else params
        self.random = get_rng_state()
        found = tensors((self.args, self.kwargs))
        self.samples = found[0].shape[0] if found and found[0].ndim else 1
        self.whole, self.sum = math.nan, math.nan  # of the losses of samples, once they are made

    def outputs(self, params: dict[str, Tensor]) -> Any:
        """What the model returns with these parameters; its buffers are spared, and dropout draws
        the same numbers each time."""
        set_rng_state(self.random)
        spare = {name: clone(b.detach()) for name, b in self.model.named_buffers()}
        return functional_call(self.model, {**spare, **params}, self.args, self.kwargs)

    def value(self, params: dict[str, Tensor]) -> Tensor:
        """The loss, one number."""
        found = self.loss(self.outputs(params), self.targets)
        if not isinstance(found, Tensor) or found.numel() != 1:
            raise ValueError(
                "cockpit: the loss must be one number; reduce it, by mean or by sum over samples"
            )
        return reshape(found, ())

    def values(self, params: dict[str, Tensor]) -> Tensor:
        """The loss of each sample, (N,): that of its part of the outputs and targets."""
        outputs = self.outputs(params)
        parts = [
            self.loss(self._sample(outputs, i), self._sample(self.targets, i))
            for i in range(self.samples)
        ]
        whole = self.loss(outputs, self.targets)
        self.whole, self.sum = float(whole.detach()), sum(float(p.detach()) for p in parts)
        return stack([reshape(p, ()) for p in parts])

    def _sample(self, tree: Any, i: int) -> Any:
        """What belongs to one sample: of the tensors that have a row for each."""
        leaves, structure = flatten(tree)
        cut = [
            t[i : i + 1] if isinstance(t, Tensor) and t.ndim and t.shape[0] == self.samples else t
            for t in leaves
        ]
        return unflatten(cut, structure)


def read(
    point: Point,
    step: int = 0,
    *,
    eigenvalues: int = 3,
    products: int = 30,
    noise: bool = True,
    update: dict[str, Tensor] | None = None,
    curve: bool = False,
) -> Reading:
    """All instruments at a point, and those of the update that follows, where it is given."""
    hessian = Hessian(point.value, (), None, point.params)
    gradient = hessian.gradient()
    flat = cat([reshape(g, (-1,)) for g in gradient.values()])
    layers = _layers(hessian, point.model)
    values, trace, error, blocks = _curvature(hessian, layers, eigenvalues, products)
    seen, note = _noise(point) if noise else (None, "not asked for")
    found = Reading(
        step,
        float(hessian.loss),
        float(vector_norm(flat)),
        _norms_by_layer(gradient, point.model),
        values,
        trace,
        error,
        blocks,
        seen,
        note,
    )
    if update is not None:
        _measure(found, point, hessian, flat, update, curve)
    return found


def _layer(name: str, model: Module) -> str:
    return name.rpartition(".")[0] or type(model).__name__


def _norms_by_layer(gradient: dict[str, Tensor], model: Module) -> dict[str, float]:
    squares: dict[str, float] = {}
    for name, g in gradient.items():
        layer = _layer(name, model)
        squares[layer] = squares.get(layer, 0.0) + float(vector_norm(g)) ** 2
    return {layer: math.sqrt(s) for layer, s in squares.items()}


# --- curvature ------------------------------------------------------------------------------------


def _layers(hessian: Hessian, model: Module) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in hessian.names:
        found.setdefault(_layer(name, model), []).append(name)
    return found


def _curvature(
    hessian: Hessian, layers: dict[str, list[str]], k: int, products: int
) -> tuple[list[float], float, float, list[LayerCurvature]]:
    k = min(k, hessian.size)
    if hessian.size <= EXACT:
        whole = hessian.matrix()
        values = eigvalsh((whole + whole.mT) / 2).tolist()[::-1][:k]
        blocks = []
        for layer, names in layers.items():
            part = whole if len(layers) == 1 else hessian.matrix(names)
            top = float(eigvalsh((part + part.mT) / 2).max())
            blocks.append(LayerCurvature(layer, part.shape[0], top, _trace(part)))
        return values, _trace(whole), 0.0, blocks
    pairs = hessian.eigenvalues(k, tolerance=1e-3)
    signs = random_signs(products, hessian.size, hessian.dtype)
    parts = signs * hessian.multiply(signs)  # whose mean is the diagonal
    totals = sum_over(parts, 1)
    spans = _spans(hessian, layers)
    blocks = [
        LayerCurvature(
            layer,
            stop - start,
            _top(hessian, start, stop),
            float(sum_over(parts[:, start:stop])) / products,
        )
        for layer, (start, stop) in spans.items()
    ]
    error = float(std(totals)) / math.sqrt(products)
    return pairs.values.tolist(), float(totals.mean()), error, blocks


def _trace(matrix: Tensor) -> float:
    return float(sum_over(matrix.diagonal()))


def _spans(hessian: Hessian, layers: dict[str, list[str]]) -> dict[str, tuple[int, int]]:
    """Where the parameters of each layer begin and end in the vector of all."""
    sizes = {n: p.numel() for n, p in hessian.params.items()}
    found, start = {}, 0
    for layer, names in layers.items():
        stop = start + sum(sizes[n] for n in names)
        found[layer] = start, stop
        start = stop
    return found


def _top(hessian: Hessian, start: int, stop: int) -> float:
    """The largest eigenvalue of a layer's block, from products with the whole."""

    def multiply(rows: Tensor) -> Tensor:
        return hessian.multiply(pad(rows, (start, hessian.size - stop)))[:, start:stop]

    found = lanczos_eigenpairs(multiply, stop - start, 1, hessian.dtype, tolerance=1e-3)
    return float(found.values[0])


# --- noise ----------------------------------------------------------------------------------------


def _noise(point: Point) -> tuple[Noise | None, str]:
    """The tests that need the gradients of single samples, or why there are none."""
    n = point.samples
    if n < 2:
        return None, "one sample has no noise: give a batch of two or more"
    fisher = EmpiricalFisher(point.values, (), lambda values: values, point.params)
    loss, parts = point.whole, point.sum
    tolerance = 1e-3 * max(abs(loss), 1e-12)
    if abs(parts / n - loss) > tolerance and abs(parts - loss) > tolerance:
        return None, (
            f"the loss of the batch, {loss:.4g}, is neither the mean nor the sum of those of its "
            f"samples ({parts / n:.4g}, {parts:.4g}); use one that is, without class weights"
        )
    g = fisher.score()
    mean = sum_over(g, 0) / n
    square = float(sum_over(mean * mean))
    if square == 0:
        return None, "the gradient is exactly zero"
    squares = sum_over(g * g, 1) / square
    along = matmul(g, mean) / square
    variance = sum_over((g - mean) ** 2, 0) / (n - 1)
    pairs = n * (n - 1)
    alive = variance > 0
    ratio = (mean * mean)[alive] / variance[alive]
    return Noise(
        n,
        float(ratio.mean()) * n / (n - 1) if ratio.numel() else math.inf,
        (float(sum_over(squares)) - n) / pairs,
        (float(sum_over(along * along)) - n) / pairs,
        float(sum_over(squares - along * along)) / pairs,
        1 - n * float(ratio.mean()) if ratio.numel() else math.nan,
    ), ""


# --- the step -------------------------------------------------------------------------------------


def _measure(
    found: Reading,
    point: Point,
    hessian: Hessian,
    gradient: Tensor,
    update: dict[str, Tensor],
    curve: bool,
) -> None:
    """Where the update ends on the parabola that touches the loss, and how long it is."""
    parts = [
        update[n] if n in update else zeros(p.shape, dtype=p.dtype) for n, p in point.params.items()
    ]
    step = cat([reshape(d, (-1,)) for d in parts])
    slope = float(sum_over(gradient * step))
    bend = float(sum_over(step * hessian.product(step)))
    weights = math.sqrt(sum(float(vector_norm(p)) ** 2 for p in point.params.values()))
    found.update_norm = float(vector_norm(step))
    found.update_ratio = found.update_norm / weights if weights else math.inf
    if slope < 0 and bend > 0:
        found.alpha = bend / -slope - 1
    if curve:
        moved = dict(zip(point.params, parts, strict=True))
        places = [-0.5 + 0.125 * i for i in range(29)]
        found.curve = {
            "place": places,
            "loss": [
                float(point.value({n: p + t * moved[n] for n, p in point.params.items()}).detach())
                for t in places
            ],
            "parabola": [found.loss + slope * t + 0.5 * bend * t * t for t in places],
        }
