"""Through time: what a state still knows of an earlier one, and what the gates do meanwhile."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from chainrule.autograd.engine import grad
from chainrule.autograd.modes import enable_grad, no_grad
from chainrule.inspect.core.arguments import Inputs, check_finite
from chainrule.charts import COLORS, DIVERGING, SEQUENTIAL, grid_of_axes
from chainrule.inspect.core.registry import instrument
from chainrule.inspect.core.results import Result
from chainrule.inspect.core.tracing import trace
from chainrule.inspect.training.choosing import chosen
from chainrule.inspect.training.recurrences import Recurrence, merged, recurrences
from chainrule.linalg import vector_norm
from chainrule.nn.module.base import Module
from chainrule.ops.creation.patterns import eye
from chainrule.ops.creation.sampling import randn
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.reduce.reductions import sum as sum_over
from chainrule.ops.shape.stacking import cat, stack
from chainrule.ops.shape.views import expand, reshape, unsqueeze
from chainrule.printing import text_table
from chainrule.tensor import Tensor

__all__ = ["LayerThroughTime", "ThroughTime", "through_time"]

MOST_BYTES = 1 << 29  # of all products of Jacobians
# A gradient that has lost or grown by this factor is called vanished or exploded.
FAR = 100.0
REMEDIES = {
    "RNN": "use an LSTM or a GRU, or start weight_hh orthogonal",
    "GRU": "raise the bias of the update gate z, which keeps the state",
}
CHECKED = 12  # steps from which products of Jacobians are compared with the layer's own gradient


@dataclass(repr=False, eq=False)
class LayerThroughTime(Result):
    """One layer in one direction; steps are counted in the order in which they are made.

    ``norms[t][s]`` is the Frobenius norm of dh_t/dh_s, the mean over the samples (NaN for s > t),
    and ``cell_norms`` that of dc_t/dc_s. ``gains[k]`` is the norm over sqrt(D) for a lag of k
    steps, the geometric mean over all t: 1 for a state that is passed on unchanged.
    """

    name: str
    kind: str
    norms: list[list[float]]
    cell_norms: list[list[float]] | None
    gains: list[float]
    cell_gains: list[float] | None
    rate: float  # the factor per step
    check: float  # largest relative difference from the layer's own gradient
    hidden: Tensor  # of the first sample, (L, D)
    cell: Tensor | None
    gates: dict[str, Tensor]

    @property
    def verdict(self) -> str:
        """Vanishing, stable or exploding, at the largest lag."""
        return _verdict(self.gains[-1])

    @property
    def memory(self) -> int | None:
        """The lag after which less than a hundredth is left; None if there is none."""
        return next((k for k, g in enumerate(self.gains) if g < 1 / FAR), None)

    def __str__(self) -> str:
        last = len(self.gains) - 1
        lags = sorted({k for k in (1, 2, 3, 5, 10, 20, 50, 100, 200, 500) if k < last} | {last})
        rows = [[str(k), f"{self.gains[k]:.3g}", _verdict(self.gains[k])] for k in lags]
        header = ["lag", "gain", "verdict"]
        if self.cell_gains is not None:
            header.append("gain of the cell")
            rows = [[*r, f"{self.cell_gains[k]:.3g}"] for r, k in zip(rows, lags, strict=True)]
        table = text_table(header, rows, left=0, rule=True)
        lines = [
            f"{self.name} ({self.kind}): {self.verdict}, factor {self.rate:.3g} per step",
            table,
        ]
        if self.memory is not None:
            lines.append(f"after {self.memory} steps less than 1 % of a state is left")
        lines.append(f"checked against the layer's own gradient: {self.check:.1g} apart at most")
        return "\n".join([*lines, *self._remedy()])

    def _remedy(self) -> list[str]:
        if self.verdict == "vanishing":
            what = REMEDIES.get(self.kind, "raise the bias of the forget gate to 1 or 2")
            return [f"Gradients vanish through time: {what}, or shorten the way with attention."]
        if self.verdict == "exploding":
            return [
                "Gradients explode through time: clip them (Trainer(clip_norm=1.0)), or scale "
                "weight_hh so that its largest singular value is at most 1."
            ]
        return []

    def maps(self) -> dict[str, Tensor]:
        """Hidden state, cell and gates by name, each (L, D)."""
        cell = {} if self.cell is None else {"cell c": self.cell}
        return {"hidden h": self.hidden, **cell, **self.gates}


@dataclass(repr=False, eq=False)
class ThroughTime(Result):
    """All recurrent layers that were looked at, by name."""

    layers: dict[str, LayerThroughTime]

    def __getitem__(self, name: str) -> LayerThroughTime:
        return self.layers[name]

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.layers.values()))

    def plot(self, kind: str = "jacobians", *, axes: Any = None, **style: Any) -> list[Any]:
        """Draws norms of dh_t/dh_s and gains by lag ("jacobians"), or "states" and gates."""
        if kind not in ("jacobians", "states"):
            raise ValueError(f"plot: kind must be 'jacobians' or 'states', got {kind!r}")
        return (_draw_jacobians if kind == "jacobians" else _draw_maps)(self, axes, style)


def _verdict(gain: float) -> str:
    if not math.isfinite(gain) or gain > FAR:
        return "exploding"
    return "vanishing" if gain < 1 / FAR else "stable"


@instrument("O29", "V52", needs=("model", "inputs"))
def through_time(
    model: Module,
    inputs: Inputs,
    layer: str | None = None,
    *,
    samples: int = 4,
    steps: int | None = 100,
) -> ThroughTime:
    """How much of each earlier state of a recurrent layer is in each later one: norms of dh_t/dh_s.

    dh_t/dh_s is the product of the Jacobians of the steps from s to t, each of them made of exact
    vector-Jacobian products in float64. Some of the products are compared with the gradient that
    the layer itself gives through all those steps. In an LSTM h_s is moved and c_s held, and the
    other way round for the norms of the cell. Padded steps hold the state.

    Args:
        model: a recurrent layer, or a model with some in it; the layers are found in a pass.
        inputs: what it is called with.
        layer: a name or pattern of those to look at, such as "lstm.l1_reverse"; all unless given.
        samples: how many of the batch to look at.
        steps: how many of the last steps to look at; None for all.

    >>> import chainrule
    >>> from chainrule import inspect, nn
    >>> _ = chainrule.manual_seed(0)
    >>> seen = inspect.through_time(nn.RNN(3, 8), chainrule.randn(20, 2, 3))
    >>> seen["RNN"].verdict, seen["RNN"].check < 1e-9
    ('vanishing', True)
    """
    if samples < 1 or (steps is not None and steps < 2):
        raise ValueError(
            f"through_time: needs a sample and two steps at least, got samples={samples}, "
            f"steps={steps}"
        )
    check_finite("through_time", model, inputs)
    found = recurrences(trace("through_time", model, inputs))
    if not found:
        raise ValueError(
            f"through_time: no recurrent layer of two steps or more ran in {type(model).__name__} "
            "(RNN with tanh or relu, LSTM, GRU, PeepholeLSTM); cells that a loop calls step by "
            "step are not followed"
        )
    meant = [r for r in found if layer is None or chosen(r.name, [layer])]
    if not meant:
        raise ValueError(
            f"through_time: {layer!r} matches no recurrent layer; there are "
            f"{', '.join(r.name for r in found)}"
        )
    return ThroughTime({r.name: _looked(r.in_double(samples, steps)) for r in meant})


def _looked(seen: Recurrence) -> LayerThroughTime:
    sizes = [h.shape[-1] for h in seen.states]
    total, (steps, batch) = sum(sizes), seen.states[0].shape[:2]
    needed = 8 * steps * batch * total * total * 2
    if needed > MOST_BYTES:
        raise ValueError(
            f"through_time: {steps} steps of {batch} samples with {total} states each need "
            f"{needed / 2**30:.1f} GiB; look at fewer steps= or samples="
        )
    jacobians = _one_step(seen, total)
    norms, cells, products = _products(jacobians, sizes)
    gains = _by_lag(norms, sizes[0])
    last = [h[:, 0].detach() for h in seen.states]
    return LayerThroughTime(
        seen.name,
        seen.kind,
        norms,
        cells,
        gains,
        None if cells is None else _by_lag(cells, sizes[1]),
        _rate(gains),
        _difference(seen, products),
        last[0],
        last[1] if len(last) > 1 else None,
        {name: g[:, 0].detach() for name, g in seen.gates().items()},
    )


def _one_step(seen: Recurrence, total: int) -> Tensor:
    """The Jacobian of each step for each sample, (L, N, S, S): one product for each state."""
    mask = None if seen.mask is None else reshape(seen.mask, (-1,))
    with enable_grad():
        before = [merged(b).detach().requires_grad_() for b in seen.before]
        after = cat(seen.step(merged(seen.inputs), before, mask), -1)
        rows = [
            cat(grad(sum_over(after[:, i]), before, retain_graph=True), -1).detach()
            for i in range(total)
        ]
    return reshape(stack(rows, 1), (seen.steps, -1, total, total))


def _products(
    jacobians: Tensor, sizes: list[int]
) -> tuple[list[list[float]], list[list[float]] | None, Tensor]:
    """Norms of all products, for the state and for the cell, and those that end at the last step,
    (L, N, S, S)."""
    steps, batch, total = jacobians.shape[:3]
    one = expand(eye(total, dtype=jacobians.dtype), (1, batch, total, total))
    products = one
    rows: dict[int, list[list[float]]] = {i: [] for i in range(len(sizes))}
    starts = [0, sizes[0]]
    with no_grad():
        for t in range(steps):
            if t:
                products = cat([matmul(unsqueeze(jacobians[t], 0), products), one], 0)
            for i, size in enumerate(sizes):
                part = slice(starts[i], starts[i] + size)
                block = products[:, :, part, part]
                norms = vector_norm(block, dim=(2, 3)).mean(1).tolist()
                rows[i].append(norms + [math.nan] * (steps - t - 1))
    return rows[0], rows.get(1), products


def _by_lag(norms: list[list[float]], size: int) -> list[float]:
    """The geometric mean over all pairs of each lag, relative to a state that is passed on."""
    gains = []
    for lag in range(len(norms)):
        values = [norms[t][t - lag] / math.sqrt(size) for t in range(lag, len(norms))]
        logs = [math.log(max(v, 1e-300)) for v in values if math.isfinite(v)]
        gains.append(math.exp(sum(logs) / len(logs)) if logs else math.inf)
    return gains


def _rate(gains: list[float]) -> float:
    """The factor per step: the slope of log gain over the lag, by least squares through lag 0."""
    points = [(k, math.log(g)) for k, g in enumerate(gains) if k and 1e-290 < g < math.inf]
    squares = sum(k * k for k, _ in points)
    return math.exp(sum(k * y for k, y in points) / squares) if squares else 0.0


def _difference(seen: Recurrence, products: Tensor) -> float:
    """How far u^T dh_L/dh_s of the product is from the gradient of the whole layer, relatively."""
    size, last = seen.states[0].shape[-1], seen.steps - 1
    u = randn(products.shape[1], size, dtype=products.dtype)
    worst = 0.0
    for s in sorted({round(i * (last - 1) / (CHECKED - 1)) for i in range(CHECKED)}):
        with enable_grad():
            states = [h[s].detach().requires_grad_() for h in seen.states]
            end = seen.from_step(s, states)[0][-1]
            exact = cat(grad(sum_over(end * u), states), -1)
        product = matmul(unsqueeze(u, 1), products[s][:, :size])[:, 0]
        scale = float(vector_norm(exact))
        if scale > 1e-290:
            worst = max(worst, float(vector_norm(exact - product)) / scale)
    return worst


# --- pictures -------------------------------------------------------------------------------------


def _draw_jacobians(seen: ThroughTime, axes: Any, style: dict[str, Any]) -> list[Any]:
    made = grid_of_axes(axes, 2 * len(seen.layers), 2, (4.6, 3.5))
    for i, one in enumerate(seen.layers.values()):
        left, right = made[2 * i], made[2 * i + 1]
        logs = [[math.log10(v) if v > 0 else math.nan for v in row] for row in one.norms]
        image = left.imshow(logs, **{"cmap": SEQUENTIAL, "origin": "lower", **style})
        left.set(xlabel="from step s", ylabel="to step t", title=f"{one.name}: norm of dh_t / dh_s")
        left.figure.colorbar(image, ax=left, label="log10 of the norm")
        lags = range(len(one.gains))
        right.axhspan(1 / FAR, FAR, color="0.93", label="within a factor of 100")
        right.plot(lags, one.gains, color=COLORS[0], label="hidden state")
        if one.cell_gains is not None:
            right.plot(lags, one.cell_gains, color=COLORS[1], label="cell")
        right.set_yscale("log")
        right.set(xlabel="lag t - s in steps", ylabel="gain")
        right.set_title(f"{one.verdict}, factor {one.rate:.2g} per step")
        right.legend(fontsize=8, frameon=False)
    return made


def _draw_maps(seen: ThroughTime, axes: Any, style: dict[str, Any]) -> list[Any]:
    panels = [
        (one.name, name, values) for one in seen.layers.values() for name, values in _maps(one)
    ]
    made = grid_of_axes(axes, len(panels), 3, (3.4, 2.6))
    for ax, (layer, name, values) in zip(made, panels, strict=True):
        gate = name.endswith("gate")
        top = 1.0 if gate else float(abs(values).max()) or 1.0
        image = ax.imshow(
            values.mT.tolist(),
            **{
                "aspect": "auto",
                "cmap": SEQUENTIAL if gate else DIVERGING,
                "vmin": 0.0 if gate else -top,
                "vmax": top,
                "interpolation": "nearest",
                **style,
            },
        )
        ax.set_title(f"{layer}: {name}", fontsize=9)
        ax.set_xlabel("step", fontsize=8)
        ax.set_ylabel("unit", fontsize=8)
        ax.figure.colorbar(image, ax=ax)
    return made


def _maps(one: LayerThroughTime) -> list[tuple[str, Tensor]]:
    return list(one.maps().items())
